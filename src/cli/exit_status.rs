//! How a command ends.

use crate::diag::MessageCode;
use crate::diag::console::fatal;

/// Exit code of a usage error, as clap has it, and of a measuring process that cannot begin.
pub(crate) const USAGE: u8 = 2;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    code: MessageCode,
    message: String,
}

impl CommandFailure {
    pub fn new(code: MessageCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Returns what makes a failure of a message, for `map_err`.
    pub fn with(code: MessageCode) -> impl Fn(String) -> Self {
        move |message| Self { code, message }
    }
}

/// Returns the exit code of a command that may fail, and prints why it failed.
pub(crate) fn exit_code(done: Result<u8, CommandFailure>) -> u8 {
    done.unwrap_or_else(|CommandFailure { code, message }| {
        fatal(code, message);
        1
    })
}
