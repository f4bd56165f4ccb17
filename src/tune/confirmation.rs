//! Whether the code that a winner was chosen by is that of the whole source. Variants are made of
//! what device code needs of it ([`FrontEnds`](super::variants::FrontEnds)).

use super::kernel::Prepared;
use crate::launch::{Configuration, FrontEndOptions};
use crate::nvcc::{FrontEnd, Toolchain};
use crate::process;
use crate::ptx;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Scope;

/// Receives the front-end options of a configuration that may win.
pub type OnContender<'a> = Arc<dyn Fn(&FrontEndOptions) + Send + Sync + 'a>;

/// The number of cores of which one may run the front end for options that may not win.
const CORES_PER_RUN: usize = 4;

/// Whether there are cores for what is only predicted to be among the fastest.
pub fn has_cores_for_predicted() -> bool {
    process::own_permits() >= CORES_PER_RUN
}

/// Returns a function that starts the front end on the whole source in a thread of `scope`, with the
/// options that it is given, if a core is free. What is not started is run by [`is_confirmed`].
pub fn run_ahead<'s, 'b: 's>(scope: &'s Scope<'s, '_>, toolchain: &'b Toolchain) -> OnContender<'s> {
    let running = Arc::new(AtomicUsize::new(0));
    Arc::new(move |options| {
        let most = (process::own_permits() / CORES_PER_RUN).max(1);
        if toolchain.has_begun_whole(options) || process::free_permit().is_none() {
            return;
        }
        let add = |runs| (runs < most).then_some(runs + 1);
        if running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_err() {
            return;
        }
        let begun = process::spawn_or_return(scope, (options.clone(), Arc::clone(&running)), |(options, running)| {
            let _ = toolchain.front_end_on_whole(&options);
            running.fetch_sub(1, Ordering::Relaxed);
        });
        if begun.is_err() {
            running.fetch_sub(1, Ordering::Relaxed);
        }
    })
}

/// Returns whether the whole source gives a kernel the code of its baseline and of its winner.
pub fn is_confirmed(toolchain: &Toolchain, prepared: &Prepared<'_>, winner: &Configuration) -> bool {
    let info = &prepared.info;
    [info.baseline().front_end(), winner.front_end()].iter().all(|set| {
        let options = info.options(set);
        let symbol = info.entry(set).map(|entry| entry.symbol.as_str()).unwrap_or_default();
        let made = prepared.front_ends.get(&options).and_then(|made| made.as_ref().ok());
        made.is_none_or(|made| {
            !made.is_of_device_code
                || toolchain.front_end_on_whole(&options).is_ok_and(|whole| has_same_code(made, &whole, symbol))
        })
    })
}

/// Returns whether a kernel has the same code in both.
fn has_same_code(part: &FrontEnd, whole: &FrontEnd, kernel: &str) -> bool {
    let canonical = |ptx: &str| ptx::Module::parse(ptx).ok()?.canonical_text(kernel);
    // What is called by address may be any function.
    let calls_by_name = || ptx::calls_by_address(&part.ptx, kernel).is_ok_and(|calls| !calls);
    part.ptx == whole.ptx || calls_by_name() && canonical(&part.ptx) == canonical(&whole.ptx)
}
