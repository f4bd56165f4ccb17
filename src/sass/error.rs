//! Why bytes could not be read as a cubin, with the place.

/// A cubin that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SassError {
    /// The bytes are something else.
    #[error("not a cubin: {0}")]
    NotACubin(&'static str),
    /// The ELF tables cannot be read.
    #[error("cubin: malformed ELF: {0}")]
    Elf(String),
    /// A section's contents cannot be read.
    #[error("cubin: section `{section}`, offset {offset:#x}: {reason}")]
    Section { section: String, offset: u64, reason: String },
    /// The instructions of this architecture have an encoding that is not read here.
    #[error("cubin: architecture sm_{0} is not supported (sm_70 and later are)")]
    Architecture(u32),
}

impl SassError {
    pub(super) fn at(section: &str, offset: u64, reason: impl Into<String>) -> Self {
        Self::Section { section: section.to_owned(), offset, reason: reason.into() }
    }
}
