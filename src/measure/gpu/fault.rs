//! Driver errors after which a GPU context is of no more use.

use super::driver::name;
use crate::measure::bench::Halt;
use crate::measure::outcome::Reason;

/// An error of a call that fails only where a kernel has broken the context before.
pub(crate) fn faulted(error: cudarc::driver::DriverError) -> Halt {
    Halt::Faulted(Reason::Faulted { error: name(&error) })
}
