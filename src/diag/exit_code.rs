//! Exit codes: nvcc's own, and those of other programs handed on.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Exit code where nvtune itself cannot go on; nvcc's own for the like.
pub const FATAL: u8 = 1;

/// Exit code of nvcc where its front end finds errors in the source.
pub const SOURCE_ERROR: u8 = 2;

/// The exit code that hands on how another program ended: its own, or 128 and the signal, as a
/// shell has it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code & 0xff).unwrap_or(FATAL)
}
