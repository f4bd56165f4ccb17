//! A call of nvcc with marked sources, and what its steps share.

use crate::diag::FATAL;
use crate::diag::console::Console;
use crate::nvcc::{Invocation, RealNvcc};
use crate::process;
use crate::record::Written;
use crate::record::result_store::Results;
use crate::settings::Settings;
use std::ffi::OsString;
use std::time::SystemTime;

/// A call with marked sources.
pub(super) struct Build<'a> {
    pub console: &'a Console,
    pub settings: &'a Settings,
    pub nvcc: &'a RealNvcc,
    pub invocation: &'a Invocation,
    pub started: SystemTime,
    pub results: &'a Results,
    /// What was written for this build.
    pub written: Written,
}

/// Gives the process to nvcc: no parent stays.
pub(super) fn hand_over(nvcc: &RealNvcc, arguments: &[OsString], console: &Console) -> u8 {
    let error = process::hand_over(&nvcc.path, arguments);
    console.fatal(&format!("cannot start '{}': {error}", nvcc.path.display()));
    FATAL
}
