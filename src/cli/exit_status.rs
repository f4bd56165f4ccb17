//! How a command ends.

use crate::say;

/// Exit code of a usage error, as clap has it, and of a measuring process that cannot begin.
pub(crate) const USAGE: u8 = 2;

/// The exit code of a command that may fail; what it failed of is printed.
pub(crate) fn exit_code(done: Result<u8, String>) -> u8 {
    done.unwrap_or_else(|problem| {
        say!("nvtune fatal   : {problem}");
        1
    })
}
