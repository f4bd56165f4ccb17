//! The way back where nvtune itself fails: what is half done is undone, and plain nvcc takes
//! the process.
//!
//! Invariant: it is gone at most once in a process, and only before nvcc's own outputs are
//! final.

use super::exec::hand_over;
use super::signals;
use crate::diag::MessageCode;
use crate::diag::console::{error, fatal, warn};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, Once, PoisonError};

/// The call of nvcc that takes the build's place if nvtune itself fails.
pub struct WayBack {
    pub nvcc: PathBuf,
    /// Without `argv[0]`.
    pub arguments: Vec<OsString>,
    /// Takes back what was written for the build.
    pub undo: Box<dyn FnOnce() + Send>,
    /// The exit code where warnings are errors (`NVTUNE_STRICT`): nvcc is not started then.
    pub strict: Option<u8>,
}

static WAY_BACK: Mutex<Option<WayBack>> = Mutex::new(None);

/// From now on a panic in any thread takes this way back in place of ending the process; with
/// `None` it no longer does.
pub fn set_way_back(way: Option<WayBack>) {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            match take_way_back() {
                // The text has the place in nvtune's own source, which a report of the fault needs.
                Some(way) => follow(way, &panic.to_string().replace('\n', " ")),
                None => usual(panic),
            }
        }));
    });
    *WAY_BACK.lock().unwrap_or_else(PoisonError::into_inner) = way;
}

/// Takes the way back after `problem`. Comes back only where none is set.
pub fn go_back(problem: &str) {
    if let Some(way) = take_way_back() {
        follow(way, problem);
    }
}

fn take_way_back() -> Option<WayBack> {
    WAY_BACK.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn follow(WayBack { nvcc, arguments, undo, strict }: WayBack, problem: &str) -> ! {
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
