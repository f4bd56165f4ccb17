//! The fallback if nvtune itself fails: half-done work is undone, and plain nvcc takes the
//! process.
//!
//! Invariant: it is used at most once in a process, and only before nvcc's own outputs are
//! final.

use super::exec::hand_over;
use super::signals;
use crate::diag::MessageCode;
use crate::diag::console::{error, fatal, warn};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, Once, PoisonError};

/// The call of nvcc that takes the build's place if nvtune itself fails.
pub struct Fallback {
    pub nvcc: PathBuf,
    /// Without `argv[0]`.
    pub arguments: Vec<OsString>,
    /// Takes back what was written for the build.
    pub undo: Box<dyn FnOnce() + Send>,
    /// The exit code where warnings are errors (`NVTUNE_STRICT`): nvcc is not started then.
    pub strict: Option<u8>,
}

static FALLBACK: Mutex<Option<Fallback>> = Mutex::new(None);

/// Makes a panic in any thread take this fallback instead of ending the process; `None` removes
/// it.
pub fn set_fallback(fallback: Option<Fallback>) {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            match take_fallback() {
                // The text has the place in nvtune's own source, which a report of the fault needs.
                Some(fallback) => follow(fallback, &panic.to_string().replace('\n', " ")),
                None => usual(panic),
            }
        }));
    });
    *FALLBACK.lock().unwrap_or_else(PoisonError::into_inner) = fallback;
}

/// Takes the fallback after `problem`. Returns only if none is set.
pub fn use_fallback(problem: &str) {
    if let Some(fallback) = take_fallback() {
        follow(fallback, problem);
    }
}

fn take_fallback() -> Option<Fallback> {
    FALLBACK.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn follow(Fallback { nvcc, arguments, undo, strict }: Fallback, problem: &str) -> ! {
    signals::undo_all(undo);
    if let Some(code) = strict {
        error(MessageCode::NvccTakesOver, format!("the tuned result is not used: {problem}"));
        signal_hook::low_level::exit(code.into())
    }
    warn(MessageCode::NvccTakesOver, format!("the tuned result is not used: {problem}"));
    let reason = hand_over(&nvcc, &arguments);
    fatal(MessageCode::CannotStart, format!("cannot start '{}': {reason}", nvcc.display()));
    signal_hook::low_level::exit(1)
}
