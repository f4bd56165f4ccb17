//! A tool that ends where nvtune is killed.
//!
//! The system is asked for that by the process itself, between `fork` and `exec`. A `fork` of
//! nvtune, which has many threads and some hundred megabytes, takes milliseconds and holds up all
//! of them. So nvtune's own program is started in the tool's place, without a `fork`
//! (`posix_spawn`), which asks and becomes the tool.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The name by which nvtune's program becomes a tool.
pub const LAUNCHER: &str = "nvtune-tool";

/// This program, whatever becomes of its file.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Whether this process is nvtune's program, and not another one with its library.
static IS_NVTUNE: AtomicBool = AtomicBool::new(false);

/// Says that this process is nvtune's program.
pub fn set_own_program() {
    IS_NVTUNE.store(true, Ordering::Relaxed);
}

/// A tool to be run by [`output_within`](super::output_within).
#[derive(Debug)]
pub struct Tool {
    pub command: Command,
    is_launched: bool,
}

impl Tool {
    /// Any program. If it cannot be started, [`output_within`](super::output_within) returns the error.
    pub fn new(command: Command) -> Self {
        Self { command, is_launched: false }
    }

    /// The shell, which runs a command line.
    pub fn shell(line: &OsStr) -> Self {
        let is_launched = IS_NVTUNE.load(Ordering::Relaxed) && is_own_program();
        let mut command = Command::new(if is_launched { OWN_PROGRAM } else { SHELL });
        if is_launched {
            command.arg0(LAUNCHER).arg(std::process::id().to_string()).arg(SHELL);
        }
        command.arg("-c").arg(line);
        Self { command, is_launched }
    }

    /// The command, which ends with this process.
    pub(super) fn ending_with_parent(&mut self) -> &mut Command {
        if !self.is_launched {
            // SAFETY: between fork and exec nothing is called but `prctl`, which may be.
            unsafe { self.command.pre_exec(end_with_parent) };
        }
        &mut self.command
    }
}

const SHELL: &str = "/bin/sh";

/// Whether [`OWN_PROGRAM`] is nvtune's, and not a dynamic loader's that was given nvtune's to run.
fn is_own_program() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: the call reads what the system left in this process's memory. A loader that is
        // the program itself has no base.
        let loader = unsafe { libc::getauxval(libc::AT_BASE) };
        loader != 0 && std::fs::exists(OWN_PROGRAM).is_ok_and(|exists| exists)
    })
}

/// Becomes a tool: `words` are the process that started this one, a program and its arguments.
/// Returns the exit code if that cannot be.
pub fn become_tool(words: &[OsString]) -> u8 {
    let [parent, program, arguments @ ..] = words else { return CANNOT_START };
    let is_orphan = || parent.to_str().and_then(|id| id.parse().ok()) != Some(std::os::unix::process::parent_id());
    // In this order: a parent that ends in between is seen by one of them.
    if end_with_parent().is_err() || is_orphan() {
        return CANNOT_START;
    }
    let error = Command::new(program).args(arguments).exec();
    let _ = writeln!(io::stderr(), "{}: {error}", program.display());
    CANNOT_START
}

/// As a shell has it for a program that is not found.
const CANNOT_START: u8 = 127;

/// Has the system kill this process where the thread that started it ends.
fn end_with_parent() -> io::Result<()> {
    // SAFETY: the call changes an attribute of this process alone.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    Ok(())
}
