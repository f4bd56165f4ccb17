//! The final build: the real nvcc with the winners, and the ways back to what it builds without
//! them.

use super::build::{Build, hand_over};
use super::call_cache::CallLookup;
use super::depfile;
use super::include_folder::{IncludeFolder, IncludedHeader};
use super::tuning::Tuning;
use crate::diag::{MessageCode, exit_code};
use crate::emit::{BuildPlan, CiccOutput, Header, PlannedKernel, StubText};
use crate::nvcc::final_build;
use crate::nvcc::final_build::{Built, StartedBuild, Wrong};
use crate::nvcc::{Made, Programs};
use crate::process;
use crate::process::TemporaryFolder;
use crate::tune::Tuned;
use std::ffi::OsString;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;

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
        (programs, started): (&Programs, Option<StartedBuild>),
        folder: &Path,
        mut tunings: Vec<Tuning>,
        warm: Option<&CallLookup<'_>>,
    ) -> u8 {
        self.written.take_turns(tunings.iter().filter_map(|tuning| tuning.header_in(folder)));
        self.choose_lasting(folder, &mut tunings);
        self.set_fallback(&tunings);
        let wrong = match self.attempt((programs, started), folder, &tunings, warm) {
            Attempt::Ended(code) => {
                // What refused a kernel may be what nvcc stumbles over, too: a disk that is full.
                if code != 0 && self.console.has_deferred() {
                    warm.iter().for_each(|warm| warm.forget());
                }
                return code;
            }
            Attempt::Failed(problem) => return self.fall_back(folder, tunings, MessageCode::ResultNotUsed, &problem),
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
                let message = format!("{}: the tuned result is not used: {problem}", tuned.decision.name);
                self.console.warning(MessageCode::CodeDiffers, message);
                tuned.fall_back(MessageCode::CodeDiffers, problem);
            }
            for tuning in &mut tunings {
                let before = tuning.captures.len();
                tuning.captures.retain(|stub| stub.stub != *symbol);
                if tuning.captures.len() < before {
                    self.console.warning(MessageCode::CodeDiffers, format!("launches are not recorded: {problem}"));
                }
            }
        }
        if let Some(code) = self.console.failure() {
            return self.take_back_all(code);
        }
        let (code, problem) = match self.attempt((programs, None), folder, &tunings, None) {
            Attempt::Ended(code) => return code,
            Attempt::Refused(status) => return self.retry_without_winners(folder, tunings, status),
            Attempt::Failed(problem) => (MessageCode::ResultNotUsed, problem),
            Attempt::Differs(wrong) => {
                let problems = wrong.iter().map(|Wrong { symbol, problem, .. }| format!("{symbol}: {problem}"));
                (MessageCode::CodeDiffers, problems.collect::<Vec<_>>().join(", "))
            }
        };
        self.fall_back(folder, tunings, code, &problem)
    }

    /// Starts nvcc while its source is tuned, where that changes nothing of what it reads: the
    /// source includes no header of nvtune's. `None` where it is to start later.
    pub(super) fn start_final_build(&self, programs: &Programs, tunings: &[Tuning]) -> Option<StartedBuild> {
        let must_wait = self.several_sources()
            || tunings.iter().any(|tuning| tuning.source.includes_header)
            || self.invocation.keeps_steps
            || self.invocation.does_more
            || programs.cicc.is_none()
            || process::is_short_of_processes();
        let permit = (!must_wait).then(process::free_permit).flatten()?;
        StartedBuild::new(programs, &self.invocation.arguments, permit)
    }

    /// Writes headers and records and lets nvcc build with what is decided.
    fn attempt(
        &self,
        (programs, started): (&Programs, Option<StartedBuild>),
        folder: &Path,
        tunings: &[Tuning],
        warm: Option<&CallLookup<'_>>,
    ) -> Attempt {
        // A signal from here to the end of the build leaves nothing that speaks of an object that is
        // not there, or not whole.
        let written = self.written.clone();
        process::set_undo(Some(Box::new(move || written.restore())));
        self.keep_for_whole_objects(tunings);
        for tuning in tunings {
            if let Err(problem) = process::uninterrupted(|| self.write_results(folder, tuning, warm)) {
                return Attempt::Failed(problem);
            }
        }
        let kernels = tunings.iter().flat_map(|tuning| {
            let source = self.several_sources().then(|| tuning.source.name());
            tuning
                .tuned
                .iter()
                .flat_map(Tuned::planned_kernels)
                .map(move |kernel| PlannedKernel { source: source.clone(), ..kernel })
        });
        let kernels: Vec<PlannedKernel> = kernels.collect();
        let dispatches = tunings.iter().flat_map(|tuning| &tuning.tuned).filter_map(Tuned::stub);
        let captures = tunings.iter().flat_map(|tuning| tuning.captures.iter().cloned());
        let stubs: Vec<StubText> = dispatches.chain(captures).collect();
        let known = tunings.iter().flat_map(|tuning| &tuning.cicc_outputs).flat_map(|made| made.outputs.clone());
        // With `--keep`, all that cicc writes is wanted.
        let known: Vec<CiccOutput> = known.filter(|_| !self.invocation.keeps_steps).collect();
        let has_winners = !kernels.is_empty() || !stubs.is_empty();
        if !has_winners && started.is_none() && (known.is_empty() || !tunings.iter().any(Tuning::has_results)) {
            return self.attempt_baselines(folder, tunings);
        }
        let sources = match self.several_sources() {
            true => self.invocation.sources.iter().map(|source| source.to_string_lossy().into_owned()).collect(),
            false => Vec::new(),
        };
        let plan = BuildPlan { sources, kernels, stubs, cicc_outputs: known };
        let is_nvccs_own = !has_winners && !tunings.iter().any(Tuning::has_results);
        let built = match started {
            Some(started) => Ok(started.finish(&plan)),
            None => self.including(folder, tunings, |arguments| final_build::build(programs, arguments, &plan)),
        };
        match built.unwrap_or_else(Err) {
            Ok(Built::Done(status)) if is_nvccs_own => Attempt::Ended(self.ended(Ok(status))),
            // A signal ends the whole build.
            Ok(Built::Done(status)) if !status.success() && status.code().is_some() => Attempt::Refused(status),
            Ok(Built::Done(status)) => Attempt::Ended(self.end(status)),
            Ok(Built::Differs(wrong)) => Attempt::Differs(wrong),
            Err(_) if !has_winners => self.attempt_baselines(folder, tunings),
            Err(problem) => Attempt::Failed(problem),
        }
    }

    /// Lets nvcc build with headers, and with no winners.
    fn attempt_baselines(&self, folder: &Path, tunings: &[Tuning]) -> Attempt {
        if !tunings.iter().any(Tuning::has_results) {
            return Attempt::Ended(self.plain());
        }
        match self.including(folder, tunings, |arguments| self.status(arguments)) {
            Ok(Ok(status)) if !status.success() && status.code().is_some() => Attempt::Refused(status),
            Ok(Ok(status)) => Attempt::Ended(self.end(status)),
            Ok(Err(code)) => Attempt::Ended(code),
            Err(problem) => Attempt::Failed(problem),
        }
    }

    /// Builds with baselines, and says so in headers and records too: the object must be one
    /// that plain nvcc would make.
    fn fall_back(&self, folder: &Path, mut tunings: Vec<Tuning>, code: MessageCode, problem: &str) -> u8 {
        if !self.settings.strict && self.write_baselines(folder, &mut tunings, (code, problem)).is_err() {
            return self.hand_to_nvcc(problem);
        }
        self.console.warning(code, format!("the tuned result is not used: {problem}"));
        if let Some(code) = self.console.failure() {
            return self.take_back_all(code);
        }
        self.including(folder, &tunings, |arguments| self.status(arguments))
            .map_or_else(|problem| self.hand_to_nvcc(&problem), |status| self.ended(status))
    }

    /// Builds with baselines after nvcc failed with winners, then as nvcc does, without
    /// headers, too: they may be what fails, or what leaves no room for the object. If nvcc
    /// fails without, the user's own code is wrong, and its messages are on the screen already.
    fn retry_without_winners(&self, folder: &Path, mut tunings: Vec<Tuning>, status: ExitStatus) -> u8 {
        let problem = "nvcc fails with it (see the messages above)";
        if process::is_short_of_processes() {
            // The threads of this process may be what nvcc lacks: it is gone once nvcc takes its place.
            return self.hand_to_nvcc(problem);
        }
        let captured = |arguments: &[OsString]| {
            run_with_captured_stderr(Command::new(&self.nvcc.path).args(arguments))
                .map_err(|error| format!("cannot start '{}': {error}", self.nvcc.path.display()))
        };
        let passed = |(status, _): &(ExitStatus, Vec<u8>)| status.success();
        let mut retried = None;
        let is_changed = tunings.iter().any(|tuning| tuning.has_winners() || !tuning.captures.is_empty());
        if is_changed {
            let written = self.write_baselines(folder, &mut tunings, (MessageCode::BuildFails, problem));
            let built = written.and_then(|()| self.including(folder, &tunings, captured)?);
            match built {
                Ok(built) => retried = Some(built).filter(passed),
                Err(problem) => return self.hand_to_nvcc(&problem),
            }
        }
        let mut message = format!("the tuned result is not used: {problem}");
        if retried.is_none() && process::has_faulted() {
            // What nvtune keeps running may be what nvcc lacks.
            return self.hand_to_nvcc(problem);
        }
        // Of several sources some may be built, with their headers.
        if retried.is_none() && !self.several_sources() {
            self.written.stay_where(None);
            self.restore_files();
            retried = captured(&self.with_options(vec![format!("-D{}", Header::OFF).into()])).ok().filter(passed);
            message = format!("neither header nor tuned result is used: {problem}");
        }
        let Some((retried, said)) = retried else { return self.end(status) };
        self.console.warning(MessageCode::BuildFails, message);
        if let Some(code) = self.console.failure() {
            return self.take_back_all(code);
        }
        // A closed standard error does not make the build fail.
        let _ = std::io::stderr().write_all(&said);
        self.end(retried)
    }

    /// Writes the baselines' headers and records; the error is why one cannot be written.
    fn write_baselines(
        &self,
        folder: &Path,
        tunings: &mut [Tuning],
        (code, problem): (MessageCode, &str),
    ) -> Result<(), String> {
        for tuning in &mut *tunings {
            tuning.tuned.iter_mut().for_each(|tuned| tuned.fall_back(code, problem));
            tuning.captures.clear();
        }
        self.keep_for_whole_objects(tunings);
        tunings.iter().try_for_each(|tuning| self.write_results(folder, tuning, None))
    }

    /// Makes the folder in which the sources find their headers; `None` where no source
    /// includes one.
    fn include_folder(&self, folder: &Path, tunings: &[Tuning]) -> Result<Option<IncludeFolder>, String> {
        let included = |tuning: &Tuning| {
            let (places, text) = (tuning.source.header_places(), tuning.header_text());
            let header = tuning.header_in(folder)?;
            Some(IncludedHeader { places, text, lasting: tuning.keeps_results.then_some(header) })
        };
        let headers: Vec<IncludedHeader> = tunings.iter().filter_map(included).collect();
        let made = (!headers.is_empty()).then(|| IncludeFolder::new(headers)).transpose();
        made.map_err(|error| format!("cannot make a temporary folder: {error}"))
    }

    /// What the final build is given besides the user's own arguments.
    fn extra_options(&self, included: Option<&IncludeFolder>, tunings: &[Tuning]) -> Vec<OsString> {
        let mut options = included.map(|included| included.options(!self.several_sources())).unwrap_or_default();
        for tuning in tunings.iter().filter(|tuning| tuning.needs_header() && tuning.has_winners()) {
            options.push(format!("-D{}", Header::tuned_macro(&tuning.source.stem)).into());
        }
        options
    }

    /// The user's arguments, and others behind them.
    fn with_options(&self, options: Vec<OsString>) -> Vec<OsString> {
        [self.invocation.arguments.clone(), options].concat()
    }

    /// Has nvcc run with the headers of the sources in a folder of its include path; `run` gets
    /// its arguments.
    fn including<T>(&self, folder: &Path, tunings: &[Tuning], run: impl FnOnce(&[OsString]) -> T) -> Result<T, String> {
        let included = self.include_folder(folder, tunings)?;
        let options = self.extra_options(included.as_ref(), tunings);
        let Some(included) = included.map(Arc::new) else { return Ok(run(&self.with_options(options))) };
        let keeps_headers = self.settings.header_in_depfile;
        // A dependency file in its place would name the folder until nvcc has ended.
        let temporary = TemporaryFolder::new().map_err(|error| format!("cannot make a temporary folder: {error}"))?;
        let written = temporary.path().join("depfile");
        match self.invocation.with_depfile_at(&written).filter(|(_, path)| depfile::can_be_written(path)) {
            Some((arguments, path)) => {
                // An object whose dependency file is missing would not be made again.
                let sources = self.invocation.sources.iter();
                let made: Vec<Made> = sources.filter_map(|source| Made::of(self.invocation, source)).collect();
                let (of, from, to) = (Arc::downgrade(&included), written.clone(), path.clone());
                process::set_finish(Some(Box::new(move || {
                    if let Some(included) = of.upgrade().filter(|_| made.iter().any(Made::is_whole)) {
                        let _ = included.move_depfile(&from, &to, keeps_headers);
                    }
                })));
                let ended = run(&[arguments, options].concat());
                let moved = included.move_depfile(&written, &path, keeps_headers);
                process::set_finish(None);
                moved.map(|()| ended)
            }
            None => {
                let ended = run(&self.with_options(options));
                included.rename_in(&self.invocation.depfiles(), keeps_headers);
                Ok(ended)
            }
        }
    }

    /// Runs nvcc with the user's arguments, others among them.
    fn exec(&self, arguments: &[OsString]) -> u8 {
        let is_plain = arguments == self.invocation.arguments;
        if is_plain && !self.console.has_deferred() && self.written.is_empty() {
            return hand_over(self.nvcc, &self.invocation.arguments, self.console);
        }
        self.ended(self.status(arguments))
    }

    /// Returns the exit code after nvcc, or once it could not be started.
    fn ended(&self, status: Result<ExitStatus, u8>) -> u8 {
        match status {
            Ok(status) if !status.success() && status.code().is_some() && process::is_short_of_processes() => {
                self.hand_to_nvcc("nvcc fails, and the user may start few processes")
            }
            Ok(status) => self.end(status),
            Err(code) => code,
        }
    }

    /// Runs nvcc to its end.
    ///
    /// # Errors
    /// The exit code, once nvcc could not be started.
    pub(super) fn status(&self, arguments: &[OsString]) -> Result<ExitStatus, u8> {
        process::wait_for_status(Command::new(&self.nvcc.path).args(arguments))
            .map_err(|error| self.hand_to_nvcc(&format!("cannot start '{}': {error}", self.nvcc.path.display())))
    }

    /// Returns the exit code after nvcc, and prints the messages that only a passed build gets.
    pub(super) fn end(&self, status: ExitStatus) -> u8 {
        if status.success() {
            // The object is nvcc's last word.
            process::set_fallback(None);
            self.console.print_deferred();
        } else {
            self.restore_files();
        }
        self.console.failure().unwrap_or_else(|| exit_code(status))
    }

    pub(super) fn plain(&self) -> u8 {
        self.exec(&self.invocation.arguments)
    }
}

/// Runs a program to its end. Returns its status and what it wrote to standard error.
fn run_with_captured_stderr(command: &mut Command) -> std::io::Result<(ExitStatus, Vec<u8>)> {
    let mut said = tempfile::tempfile()?;
    let status = process::wait_for_status(command.stderr(said.try_clone()?))?;
    let mut bytes = Vec::new();
    said.rewind()?;
    said.read_to_end(&mut bytes)?;
    Ok((status, bytes))
}
