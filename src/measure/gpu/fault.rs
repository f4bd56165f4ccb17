//! Driver errors after which a GPU context is no longer usable.

use super::driver::name;
use crate::measure::bench::JobError;
use crate::measure::outcome::Reason;

/// An error of a call that fails only where a kernel has broken the context before.
pub(crate) fn faulted(error: cudarc::driver::DriverError) -> JobError {
    JobError::Faulted(Reason::Faulted { error: name(&error) })
}
