//! The final build: the real nvcc with the winners, and the ways back to what it builds without them.

use super::build::{Build, hand_over};
use super::call_cache::Warm;
use super::tuning::Tuning;
use crate::diag::exit_code;
use crate::emit::{Header, StubText, TicketKernel};
use crate::nvcc::final_build;
use crate::nvcc::final_build::{Built, Wrong};
use crate::nvcc::{Programs, list_value};
use crate::process;
use crate::tune::Tuned;
use std::ffi::OsString;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::process::{Command, ExitStatus};

/// What became of a build with winners.
enum Attempt {
    /// With this exit code.
    Ended(u8),
    Differs(Vec<Wrong>),
    /// nvcc ran, failed and printed its reason.
    Refused(ExitStatus),
    /// Nothing could be built with winners.
    Failed(String),
}

impl Build<'_> {
    /// Writes headers and records and lets nvcc build with the winners.
    pub(super) fn build(
        &self,
        programs: &Programs,
        folder: &Path,
        mut tunings: Vec<Tuning>,
        warm: Option<&Warm<'_>>,
    ) -> u8 {
        self.written.take_turns(tunings.iter().filter_map(|tuning| tuning.header_in(folder)));
        let wrong = match self.attempt(programs, folder, &tunings, warm) {
            Attempt::Ended(code) => {
                // What refused a kernel may be what nvcc stumbles over, too: a disk that is full.
                if code != 0 && self.console.has_deferred() {
                    warm.iter().for_each(|warm| warm.forget());
                }
                return code;
            }
            Attempt::Failed(problem) => return self.fall_back(folder, tunings, &problem),
            Attempt::Refused(status) => {
                warm.iter().for_each(|warm| warm.forget());
                return self.retry_without_winners(folder, tunings, status);
            }
            Attempt::Differs(wrong) => wrong,
        };
        if let Some(warm) = warm {
            warm.forget();
        }
        // The others may still be what was timed. Where once more one is not, nothing is used.
        for Wrong { source, symbol, problem } in &wrong {
            let is_its = |tuning: &&mut Tuning| source.as_deref().is_none_or(|source| tuning.source.is_named(source));
            let kernels = tunings.iter_mut().filter(is_its).flat_map(|tuning| &mut tuning.tuned);
            for tuned in kernels.filter(|tuned| tuned.is_built_as(symbol)) {
                self.console.warning(&format!("{}: the tuned result is not used: {problem}", tuned.decision.name));
                tuned.fall_back(problem);
            }
        }
        if let Some(code) = self.console.failure() {
            return self.take_back_all(code);
        }
        let problem = match self.attempt(programs, folder, &tunings, None) {
            Attempt::Ended(code) => return code,
            Attempt::Refused(status) => return self.retry_without_winners(folder, tunings, status),
            Attempt::Failed(problem) => problem,
            Attempt::Differs(wrong) => {
                let problems = wrong.iter().map(|Wrong { symbol, problem, .. }| format!("{symbol}: {problem}"));
                problems.collect::<Vec<_>>().join(", ")
            }
        };
        self.fall_back(folder, tunings, &problem)
    }

    /// Writes headers and records and lets nvcc build with what is decided.
    fn attempt(&self, programs: &Programs, folder: &Path, tunings: &[Tuning], warm: Option<&Warm<'_>>) -> Attempt {
        // A signal from here to the end of the build leaves nothing that speaks of an object that is not there, or not whole.
        let written = self.written.clone();
        process::set_undo(Some(Box::new(move || written.restore())));
        self.keep_beside_what_is_made(tunings);
        for tuning in tunings {
            if let Err(problem) = process::uninterrupted(|| self.write_results(folder, tuning, warm)) {
                return Attempt::Failed(problem);
            }
        }
        let options = self.extra_options(folder, tunings);
        let kernels = tunings.iter().flat_map(|tuning| {
            let source = self.several_sources().then(|| tuning.source.name());
            tuning
                .tuned
                .iter()
                .flat_map(Tuned::tickets)
                .map(move |kernel| TicketKernel { source: source.clone(), ..kernel })
        });
        let kernels: Vec<TicketKernel> = kernels.collect();
        let stubs: Vec<StubText> = tunings.iter().flat_map(|tuning| &tuning.tuned).filter_map(Tuned::stub).collect();
        if kernels.is_empty() {
            return Attempt::Ended(self.exec(&options));
        }
        let sources = match self.several_sources() {
            true => self.invocation.sources.iter().map(|source| source.to_string_lossy().into_owned()).collect(),
            false => Vec::new(),
        };
        match final_build::build(programs, &self.invocation.arguments, &options, (sources, kernels, stubs)) {
            // A signal ends the whole build.
            Ok(Built::Done(status)) if !status.success() && status.code().is_some() => Attempt::Refused(status),
            Ok(Built::Done(status)) => Attempt::Ended(self.end(status)),
            Ok(Built::Differs(wrong)) => Attempt::Differs(wrong),
            Err(problem) => Attempt::Failed(problem),
        }
    }

    /// Builds with baselines, and says so in headers and records too: the object must be one that plain nvcc would make.
    fn fall_back(&self, folder: &Path, mut tunings: Vec<Tuning>, problem: &str) -> u8 {
        if !self.settings.strict && self.write_baselines(folder, &mut tunings, problem).is_err() {
            return self.go_back(problem);
        }
        self.console.warning(&format!("the tuned result is not used: {problem}"));
        if let Some(code) = self.console.failure() {
            return self.take_back_all(code);
        }
        self.exec(&self.extra_options(folder, &tunings))
    }

    /// Builds with baselines after nvcc failed with winners. If nvcc fails without winners too, the user's own code is wrong, and
    /// its messages are on the screen already.
    fn retry_without_winners(&self, folder: &Path, mut tunings: Vec<Tuning>, status: ExitStatus) -> u8 {
        let problem = "nvcc fails with it (see the messages above)";
        if let Err(problem) = self.write_baselines(folder, &mut tunings, problem) {
            return self.go_back(&problem);
        }
        let mut nvcc = Command::new(&self.nvcc.path);
        nvcc.args(&self.invocation.arguments).args(self.extra_options(folder, &tunings));
        let (retried, said) = match run_with_captured_stderr(&mut nvcc) {
            Ok((retried, said)) if retried.success() => (retried, said),
            // What nvtune keeps running may be what nvcc lacks.
            Ok(_) if process::has_faulted() => return self.go_back(problem),
            Ok(_) => return self.end(status),
            Err(error) => return self.go_back(&format!("cannot start '{}': {error}", self.nvcc.path.display())),
        };
        self.console.warning(&format!("the tuned result is not used: {problem}"));
        if let Some(code) = self.console.failure() {
            return self.take_back_all(code);
        }
        // A closed standard error does not make the build fail.
        let _ = std::io::stderr().write_all(&said);
        self.end(retried)
    }

    /// Writes the baselines' headers and records; the error is why one cannot be written.
    fn write_baselines(&self, folder: &Path, tunings: &mut [Tuning], problem: &str) -> Result<(), String> {
        for tuning in &mut *tunings {
            tuning.tuned.iter_mut().for_each(|tuned| tuned.fall_back(problem));
        }
        self.keep_beside_what_is_made(tunings);
        tunings.iter().try_for_each(|tuning| self.write_results(folder, tuning, None))
    }

    /// What the final build is given besides the user's own arguments.
    fn extra_options(&self, folder: &Path, tunings: &[Tuning]) -> Vec<OsString> {
        let mut options = Vec::new();
        if tunings.iter().any(Tuning::needs_header) {
            options.extend(["-I".into(), list_value(folder.as_os_str())]);
        }
        for tuning in tunings.iter().filter(|tuning| tuning.needs_header() && tuning.has_winners()) {
            options.push(format!("-D{}", Header::tuned_macro(&tuning.source.stem)).into());
        }
        if !self.several_sources() {
            // A quoted include finds a header that a build into the source's own folder left before it looks in `folder`: its
            // grids would be for another winner. The include guard makes it empty once the right one is read.
            // One that could not be written was warned of.
            let headers = tunings.iter().filter_map(|tuning| tuning.header_in(folder));
            for header in headers.filter(|header| header.is_file()) {
                options.extend(["-include".into(), list_value(header.as_os_str())]);
            }
        }
        options
    }

    fn exec(&self, options: &[OsString]) -> u8 {
        let mut arguments = self.invocation.arguments.clone();
        arguments.extend_from_slice(options);
        if !self.console.has_deferred() && self.written.is_empty() {
            return hand_over(self.nvcc, &arguments, self.console);
        }
        match process::status(Command::new(&self.nvcc.path).args(&arguments)) {
            Ok(status) => self.end(status),
            Err(error) => self.go_back(&format!("cannot start '{}': {error}", self.nvcc.path.display())),
        }
    }

    /// Returns the exit code after nvcc, and prints the messages that only a passed build gets.
    fn end(&self, status: ExitStatus) -> u8 {
        if status.success() {
            // The object is nvcc's last word.
            process::set_way_back(None);
            self.console.print_deferred();
        } else {
            self.restore_files();
        }
        self.console.failure().unwrap_or_else(|| exit_code(status))
    }

    pub(super) fn plain(&self) -> u8 {
        self.exec(&[])
    }
}

/// Runs a program to its end. Returns its status and what it wrote to standard error.
fn run_with_captured_stderr(command: &mut Command) -> std::io::Result<(ExitStatus, Vec<u8>)> {
    let mut said = tempfile::tempfile()?;
    let status = process::status(command.stderr(said.try_clone()?))?;
    let mut bytes = Vec::new();
    said.rewind()?;
    said.read_to_end(&mut bytes)?;
    Ok((status, bytes))
}
