//! The reasons why a kernel is not tuned, and their messages.

use super::scoring::NoBaseline;
use super::variants::Macros;
use crate::comment::Annotation;
use crate::diag::console::Console;
use crate::diag::{Diagnostic, MessageCode};
use crate::launch::{Configuration, FrontEndOptions};
use crate::nvcc::ToolError;
use crate::ptx;
use std::sync::Arc;
use thiserror::Error;

/// Why a kernel is not tuned.
#[derive(Debug, Error)]
pub enum Problem {
    /// With places in the source.
    #[error("its tuning comment does not fit it")]
    Comment(Vec<Diagnostic>),
    #[error("{0}")]
    Tool(Arc<ToolError>),
    /// The front end refuses the source as it stands: most likely nvcc will say the same.
    #[error("{0}")]
    Source(Arc<ToolError>),
    /// The front end accepts the source only without these macros.
    #[error(
        "with {} the source does not compile: rename it if the name is taken; {}",
        FrontEndOptions::from(macros.clone()),
        first(error)
    )]
    Macros { macros: Macros, error: Arc<ToolError> },
    #[error("{0}")]
    Ptx(#[from] ptx::PtxError),
    /// An `#if` leaves the kernel out, or no code instantiates it.
    #[error("the compilation has no such kernel")]
    Absent,
    /// The source's own definition overrides the values of the axis.
    #[error("macro axis `{name}` is also defined in {place}: remove that, or put #ifndef around it")]
    Defined { name: String, place: String },
    /// A template's comment stands for all of its instances, and there is none.
    #[error("the source makes no instance that is surely its own")]
    NoInstance,
    /// Its name, made of the template's and the arguments, is another kernel's.
    #[error("another kernel of the source is called so, too: give one of them name(...)")]
    NameTaken,
    /// Recordings are kept under the name.
    #[error(
        "its name has {bytes} bytes, more than a folder's: name this instance in template(...), by shorter aliases"
    )]
    LongName { bytes: usize },
    /// A `template` clause may name what is specialized elsewhere.
    #[error("the comment of the kernel at line {line} tunes this instance, too: remove one")]
    Twice { line: u32 },
    #[error("its baseline ({configuration}) differs from the source: correct `default`")]
    Default { configuration: Configuration },
    #[error("{0} is not an architecture that this version of nvtune knows")]
    Architecture(String),
    /// The comment leaves all values to a recording, and its launch depends on one.
    #[error("no value is given for `{name}` and no launch recorded: build with NVTUNE=capture and run it")]
    NotRecorded { name: String },
    /// Handles in memory are recorded as numbers.
    #[error("its recording cannot be used: it has none of the kernel's textures: make their handles parameters")]
    TexturesNotRecorded,
    #[error("its baseline ({configuration}) cannot be built or launched: {reason}")]
    Baseline { configuration: Configuration, reason: String },
    /// Its results depend on which warp comes first, by nvcc's own code, too.
    #[error("its warps race on {0}: put a barrier between them")]
    Race(String),
}

/// The error in one line: of what a tool says its first, which the rest often follows from.
pub fn first(error: &ToolError) -> String {
    let said = error.to_string();
    said.lines().next().unwrap_or_default().to_owned()
}

impl From<Vec<Diagnostic>> for Problem {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Self::Comment(diagnostics)
    }
}

impl From<NoBaseline> for Problem {
    fn from(NoBaseline { configuration, reason }: NoBaseline) -> Self {
        Self::Baseline { configuration, reason }
    }
}

impl From<Diagnostic> for Problem {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Comment(vec![diagnostic])
    }
}

impl From<Box<Diagnostic>> for Problem {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        Self::Comment(vec![*diagnostic])
    }
}

impl Problem {
    /// Tells whether the same inputs give the same problem, provided no tool was interrupted.
    pub fn is_lasting(&self) -> bool {
        // Of a source that the front end refuses not even the files are known.
        !matches!(self, Self::Tool(_) | Self::Source(_))
    }

    /// Tells whether the front end's output may be the reason.
    pub fn depends_on_front_end(&self) -> bool {
        match self {
            Self::Source(_) | Self::Macros { .. } | Self::Ptx(_) | Self::Absent | Self::NoInstance => true,
            Self::Default { .. } | Self::Baseline { .. } | Self::Race(_) => true,
            Self::Comment(_) | Self::Tool(_) | Self::Defined { .. } | Self::Twice { .. } | Self::LongName { .. } => {
                false
            }
            Self::NameTaken | Self::Architecture(_) | Self::NotRecorded { .. } | Self::TexturesNotRecorded => false,
        }
    }

    /// Returns the code of the warning. Diagnostics of a comment have their own.
    fn code(&self) -> MessageCode {
        match self {
            Self::Comment(_) | Self::Absent => MessageCode::KernelNotCompiled,
            Self::Tool(_) => MessageCode::ToolFailed,
            Self::Source(_) => MessageCode::SourceRefused,
            Self::Macros { .. } => MessageCode::MacrosBreakSource,
            Self::Ptx(_) => MessageCode::PtxNotRead,
            Self::Defined { .. } => MessageCode::MacroDefined,
            Self::Twice { .. } => MessageCode::InstanceTwice,
            Self::Default { .. } => MessageCode::WrongDefault,
            Self::Architecture(_) => MessageCode::UnknownArchitecture,
            Self::NoInstance | Self::NameTaken | Self::LongName { .. } => MessageCode::NotRecorded,
            Self::NotRecorded { .. } => MessageCode::NotRecorded,
            Self::TexturesNotRecorded => MessageCode::RecordingNotUsed,
            Self::Baseline { .. } => MessageCode::BaselineUnusable,
            Self::Race(_) => MessageCode::WarpsRace,
        }
    }

    /// Says that the kernel stays as nvcc builds it, and why.
    pub fn print(&self, console: &Console, annotation: &Annotation) {
        self.print_as("not tuned", console, annotation);
    }

    /// Says that the launches of the kernel are not recorded, and why.
    pub fn print_not_recorded(&self, console: &Console, annotation: &Annotation) {
        self.print_as("not recorded", console, annotation);
    }

    fn print_as(&self, result: &str, console: &Console, annotation: &Annotation) {
        let (code, message) = (self.code(), format!("{}: {result}: {self}", annotation.name));
        match self {
            // What a program recorded is no fault of the source's.
            Self::Comment(diagnostics) if annotation.clauses.recorded.is_some() => {
                let warning = |diagnostic: &Diagnostic| diagnostic.clone().as_warning();
                console.diagnostics(&diagnostics.iter().map(warning).collect::<Vec<_>>());
            }
            Self::Comment(diagnostics) if diagnostics.iter().all(|of| annotation.is_about_inferred(of)) => {
                // The rest suggests another name, which is of no use for a lock file.
                let reason = diagnostics.first().and_then(|of| of.message.split([';', ':']).next()).unwrap_or("");
                let name = &annotation.name;
                let message = format!("{name}: {result}: its lock entry does not fit: {reason}; record it again");
                console.warning(MessageCode::LockEntry, message);
            }
            Self::Comment(diagnostics) => console.diagnostics(diagnostics),
            Self::Absent => {}
            // What nvcc refuses as well is nvcc's to say.
            Self::Source(_) | Self::Macros { .. } | Self::Baseline { .. } => {
                console.warn_if_the_build_passes(code, message)
            }
            _ => console.warning(code, message),
        }
    }
}
