//! What is proposed for the kernels of a file.

/// What is proposed for one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileProposals {
    pub proposals: Vec<Proposal>,
    pub refusals: Vec<Refusal>,
    /// Kernels that have a comment already.
    pub marked: usize,
}

/// A comment for one kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    pub kernel: String,
    /// 1-based line of the kernel's declaration, above which the comment belongs.
    pub line: u32,
    /// The lines of the comment with their indentation.
    pub lines: Vec<String>,
    pub basis: Basis,
}

/// What a proposal is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The program recorded the kernel's launches.
    Recording,
    /// The source tells the launch and a value for every parameter, or these are marked as
    /// guesses.
    Workload,
    /// The source tells the launch alone.
    Launch,
    /// The same, for a type of a parameter that is not found.
    UnknownType,
}

/// A kernel that gets no comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub kernel: String,
    /// 1-based line of its name.
    pub line: u32,
    pub reason: String,
}
