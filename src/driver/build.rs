//! A call of nvcc with marked sources, and what its steps share.

use super::tuning::Tuning;
use crate::diag::console::Console;
use crate::diag::{FATAL, MessageCode};
use crate::emit::Header;
use crate::nvcc::{Invocation, RealNvcc};
use crate::process;
use crate::process::Fallback;
use crate::record::result_store::Results;
use crate::record::{Baseline, WrittenFiles};
use crate::settings::Settings;
use crate::tune;
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
    pub written: WrittenFiles,
}

impl Build<'_> {
    /// From now on a fault of nvtune's own ends in what plain nvcc builds of these sources.
    pub fn set_fallback(&self, tunings: &[Tuning]) {
        let (written, is_strict) = (self.written.clone(), self.settings.strict);
        // What is of another object stays.
        let kept = tunings.iter().filter(|tuning| tuning.keeps_results);
        let baselines: Vec<Baseline> = kept.map(|tuning| self.baseline(tuning)).collect();
        // In a strict build no object takes the place of the earlier one.
        let undo = move || written.reset(if is_strict { &[] } else { &baselines });
        process::set_fallback(Some(Fallback {
            nvcc: self.nvcc.path.clone(),
            arguments: self.invocation.arguments.clone(),
            undo: Box::new(undo),
            strict: self.settings.strict.then_some(FATAL),
        }));
    }

    fn baseline(&self, tuning: &Tuning) -> Baseline {
        let folder = self.settings.header_folder.clone().unwrap_or_else(|| self.invocation.object_folder());
        let kernels = tune::baseline_headers(&tuning.annotations, &tuning.architecture);
        let (header, record) = tuning.results_in(&folder);
        Baseline { header, text: Header { source: tuning.source.file_name(), kernels }.text().into_bytes(), record }
    }

    /// Undoes what is done and lets plain nvcc build, after a fault of nvtune's own.
    pub fn hand_to_nvcc(&self, problem: &str) -> u8 {
        process::use_fallback(problem);
        // Returns only if the fallback was used already.
        self.console.fatal(MessageCode::NvccTakesOver, problem);
        FATAL
    }
}

/// Gives the process to nvcc, or to what the user has start it: no parent stays.
pub(super) fn hand_over(nvcc: &RealNvcc, arguments: &[OsString], console: &Console) -> u8 {
    let (program, error) = match &nvcc.launcher {
        Some(launcher) => {
            let words = [&[nvcc.path.clone().into_os_string()], arguments].concat();
            (launcher, process::hand_over(launcher, &words))
        }
        None => (&nvcc.path, process::hand_over(&nvcc.path, arguments)),
    };
    console.fatal(MessageCode::CannotStart, format!("cannot start '{}': {error}", program.display()));
    FATAL
}
