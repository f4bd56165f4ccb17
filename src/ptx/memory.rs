//! Memory spaces and accesses as PTX, machine code and the model all speak of them.

/// The memory that an access goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemorySpace {
    #[default]
    Global,
    Shared,
    Local,
    Constant,
    Texture,
}

/// What an access does to memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AccessKind {
    #[default]
    Load,
    Store,
    Atomic,
}
