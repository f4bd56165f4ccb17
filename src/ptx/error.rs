//! What can be wrong with PTX text, and where.

/// An error in PTX text, or in a request about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PtxError {
    /// A token stands where the grammar has no place for it.
    #[error("PTX line {line}: expected {expected}, found `{found}`")]
    Unexpected { line: u32, expected: &'static str, found: String },
    /// The text ends inside a construct.
    #[error("PTX line {line}: the text ends inside {what}")]
    Unterminated { line: u32, what: &'static str },
    /// A number that no integer or floating type holds.
    #[error("PTX line {line}: malformed number `{text}`")]
    Number { line: u32, text: String },
    /// Scopes, braces or brackets inside one another beyond any use.
    #[error("PTX line {line}: nested too deeply")]
    Nesting { line: u32 },
    /// The module has no entry of this name.
    #[error("the PTX has no entry `{name}`")]
    NoEntry { name: String },
    /// A register cap that `.maxnreg` does not take.
    #[error("register cap {cap} is out of range (1 to 255)")]
    Cap { cap: u32 },
    /// One block of the entry may not do the work of several.
    #[error("the blocks of `{name}` depend on each other, or its threads on the rest of their block")]
    DependentBlocks { name: String },
}
