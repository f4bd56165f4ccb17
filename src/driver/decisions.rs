//! Marked sources -> the winners of their kernels: tuned, or recalled from an earlier call with
//! the same inputs.

use super::build::Build;
use super::call_cache::{Call, CallLookup, Snapshot, Winners};
use super::tuning::Tuning;
use crate::comment::Annotation;
use crate::diag::MessageCode;
use crate::gpu::architecture_number;
use crate::nvcc::final_build::StartedBuild;
use crate::nvcc::{Dryrun, DryrunError, Phase, Programs, Toolchain, compilers, wrapper_problem};
use crate::process;
use crate::recording;
use crate::settings::Mode;
use crate::tune;
use crate::tune::{Tuned, Tuner};
use std::path::{Path, PathBuf};

impl Build<'_> {
    /// Tunes the kernels of all sources; returns where the final build finds its programs, and the
    /// final build if it has begun.
    ///
    /// # Errors
    /// The exit code, where the call ends here: nvcc refused it, or NVTUNE_STRICT does.
    pub(super) fn tune(
        &self,
        tunings: &mut [Tuning],
        warm: Option<&CallLookup<'_>>,
    ) -> Result<(Programs, Option<StartedBuild>), u8> {
        let dryrun = self.ask_steps(tunings)?;
        let programs = Programs::new(&dryrun, self.nvcc);
        let mut started = None;
        let is_untunable = self.warn_untunable(tunings, &dryrun);
        tunings.iter_mut().for_each(|tuning| tuning.annotations.retain(|of| !of.is_for_all_instances()));
        if !is_untunable {
            started = self.start_final_build(&programs, tunings);
            let tuner = self.tune_all(&dryrun, tunings);
            if let Some(warm) = warm {
                self.keep(warm, &dryrun, tunings, &tuner);
            }
        }
        Ok((programs, started))
    }

    /// Asks nvcc for the steps behind the compile, and notes the newest architecture of each
    /// source.
    ///
    /// # Errors
    /// The exit code, where the call ends here.
    pub(super) fn ask_steps(&self, tunings: &mut [Tuning]) -> Result<Dryrun, u8> {
        let dryrun = match Dryrun::ask(&self.nvcc.path, &self.invocation.arguments) {
            Ok(dryrun) => dryrun,
            Err(problem @ DryrunError::Refused(_)) => return Err(self.refused(&problem)),
            Err(problem) => return Err(self.hand_to_nvcc(&problem.to_string())),
        };
        for tuning in tunings {
            tuning.architecture = tuning.source.newest_architecture(&dryrun);
        }
        Ok(dryrun)
    }

    /// Builds as nvcc does, which itself says what is wrong with the call; the exit code. A call
    /// that passes was refused for its dry run alone.
    fn refused(&self, problem: &DryrunError) -> u8 {
        match self.status(&self.invocation.arguments) {
            Ok(status) => {
                if status.success() {
                    self.console.warning(MessageCode::NvccTakesOver, format!("nvcc builds without nvtune: {problem}"));
                }
                self.end(status)
            }
            Err(code) => code,
        }
    }

    /// Warns where no source of the call can be tuned; tells whether that is so.
    pub(super) fn warn_untunable(&self, tunings: &[Tuning], dryrun: &Dryrun) -> bool {
        let wrapped = || wrapper_problem(dryrun, self.nvcc, &self.invocation.arguments);
        let reason = self.untunable().map(|reason| (MessageCode::NoMachineCode, reason));
        let reason = reason.or_else(|| wrapped().map(|reason| (MessageCode::WrapperChanged, reason)));
        let Some((code, reason)) = reason else { return false };
        let result = if self.settings.mode == Mode::Capture { "not recorded" } else { "not tuned" };
        for tuning in tunings {
            self.console.warning(code, format!("{}: {result}: {reason}", tuning.source.path.display()));
        }
        true
    }

    /// Tunes the kernels of all sources; returns what tuned them.
    pub(super) fn tune_all(&self, dryrun: &Dryrun, tunings: &mut [Tuning]) -> Tuner<'_> {
        let mut tuner = Tuner::new(self.settings, self.console).with_results(self.results);
        for tuning in tunings {
            self.tune_source(dryrun, tuning, &mut tuner);
        }
        tuner
    }

    /// Why no source of the call can be tuned.
    pub(super) fn untunable(&self) -> Option<String> {
        match self.invocation.phase {
            Phase::Assembly(option) => Some(format!("{option} makes no machine code")),
            _ if self.invocation.device_debug => Some("-G compiles device code without optimisation".to_owned()),
            _ => None,
        }
    }

    /// Tunes the kernels of one source; what cannot be tuned is warned of and stays as nvcc
    /// builds it.
    fn tune_source(&self, dryrun: &Dryrun, tuning: &mut Tuning, tuner: &mut Tuner<'_>) {
        let source = tuning.source.name();
        self.console.compiling(&source);
        if tuning.source.is_fat(dryrun) {
            // Which of the architectures is tuned depends on the GPU.
            tuner.start();
        }
        let device = tuner.device_architecture();
        let plan = |toolchain: &Toolchain, of: &[Annotation]| tuner.preprocessing(toolchain, of);
        let mut made = tuning.preprocess(dryrun, device, plan);
        if let Ok(toolchain) = &made {
            match tuning.leave_out_uncompiled(toolchain, !tuning.source.is_fat(dryrun)) {
                // The header is that of the kernels that are left.
                Ok(true) if tuning.source.includes_header => {
                    made = tuning.source.toolchain(dryrun, &tuning.annotations, device)
                }
                Ok(_) => {}
                Err(problems) => return self.console.diagnostics(&problems),
            }
        }
        let toolchain = match made {
            Ok(toolchain) => toolchain.with_cache(self.results.cache.clone()),
            Err(problem) => {
                tuning.is_provisional = true;
                return self.console.warning(MessageCode::ToolFailed, format!("{source}: not tuned: {problem}"));
            }
        };
        let mut annotations = tuning.compiled(&toolchain).into_owned();
        for (name, problem) in recording::load(&mut annotations) {
            annotations.retain(|annotation| annotation.name != name);
            self.console.warning(MessageCode::RecordingNotUsed, format!("{name}: not tuned: its recording {problem}"));
        }
        let around = tuning.source.surroundings(dryrun);
        tuning.tuned = tuner.tune(&toolchain, &annotations, around);
        tuning.cicc_outputs.push(toolchain.cicc_outputs());
        self.tune_others(dryrun, tuning, &toolchain, tuner);
        for line in tuning.tuned.iter().flat_map(Tuned::summaries) {
            self.console.summary(&line);
        }
    }

    /// Decides for the other architectures of a fat build: what nothing is decided for stays as
    /// nvcc builds it there.
    fn tune_others(&self, dryrun: &Dryrun, tuning: &mut Tuning, chosen: &Toolchain, tuner: &mut Tuner<'_>) {
        if tuning.tuned.is_empty() {
            return;
        }
        for toolchain in tuning.source.other_toolchains(dryrun, &tuning.annotations, chosen) {
            let toolchain = match toolchain {
                Ok(toolchain) => toolchain.with_cache(self.results.cache.clone()),
                Err(problem) => {
                    tuning.is_provisional = true;
                    let message = format!("{}: not tuned: {problem}", tuning.source.path.display());
                    self.console.warning(MessageCode::ToolFailed, message);
                    continue;
                }
            };
            let annotations = tuning.compiled(&toolchain);
            let around = tuning.source.surroundings(dryrun);
            let others = tuner.tune_other_architecture(&toolchain, &annotations, around, &tuning.tuned);
            tuning.cicc_outputs.push(toolchain.cicc_outputs());
            let capability = architecture_number(toolchain.architecture());
            for tuned in &mut tuning.tuned {
                let left = others.iter().all(|other| other.decision.name != tuned.decision.name);
                let untuned: Vec<u32> = capability.into_iter().filter(|_| left).collect();
                tuned.add_architectures(&others, &untuned);
            }
        }
    }

    /// Tells whether the call compiles several sources.
    pub(super) fn several_sources(&self) -> bool {
        self.invocation.sources.len() + self.invocation.host_sources > 1
    }

    /// Makes the look-up of the whole call; none where there is no cache, or nothing that it
    /// keeps can be used.
    pub(super) fn warm(&self, tunings: &[Tuning]) -> Option<CallLookup<'_>> {
        CallLookup::new(&self.call(tunings), self.results, self.console).filter(|_| !self.invocation.device_debug)
    }

    /// Collects what the look-up of the whole call depends on.
    fn call<'b>(&'b self, tunings: &'b [Tuning]) -> Call<'b> {
        let kernels = tunings.iter().flat_map(|tuning| &tuning.annotations);
        let kernels = kernels.map(|found| (found.text.clone(), found.name.clone(), tune::workload_data(found)));
        // Host code too, which the compiler's device side may not read: launches and macros depend on
        // it. But not the headers that come out of the call itself.
        let is_made = |path: &Path| tunings.iter().any(|tuning| tuning.source.is_own_header(path));
        let texts = |tuning: &Tuning| {
            tuning.source.around().filter(|file| !is_made(&file.path)).map(|file| file.text).collect()
        };
        Call {
            nvcc: &self.nvcc.path,
            arguments: &self.invocation.arguments,
            settings: self.settings,
            sources: tunings.iter().map(|tuning| (tuning.source.path.as_path(), texts(tuning))).collect(),
            kernels: kernels.collect(),
        }
    }

    /// Returns where this call's own toolkit is, if that is the one that an earlier call was
    /// tuned with. The cache names no program to run.
    pub(super) fn programs(&self, snapshot: &Snapshot) -> Option<Programs> {
        let is_same = |programs: &Programs| programs.are_those(&snapshot.programs);
        let asked = || {
            let dryrun = Dryrun::ask(&self.nvcc.path, &self.invocation.arguments).ok()?;
            let is_changed = wrapper_problem(&dryrun, self.nvcc, &self.invocation.arguments).is_some();
            (!is_changed).then(|| Programs::new(&dryrun, self.nvcc))
        };
        Programs::next_to(self.nvcc).filter(is_same).or_else(|| asked().filter(is_same))
    }

    /// Takes what an earlier call decided.
    pub(super) fn recall(&self, snapshot: Snapshot, tunings: &mut [Tuning]) {
        self.console.repeat(&snapshot.said);
        snapshot.deferred.into_iter().for_each(|message| self.console.defer_as_kept(message));
        for (tuning, winners) in tunings.iter_mut().zip(snapshot.sources) {
            tuning.leave_out(&winners.left_out);
            tuning.architecture = winners.architecture;
            tuning.tuned = winners.tuned;
            tuning.record = winners.record;
            tuning.source.includes_header = winners.includes_header;
            for line in tuning.tuned.iter().flat_map(Tuned::summaries) {
                self.console.summary(&line);
            }
        }
    }

    /// Keeps what was decided, unless a part of it was only for now: a tool that was stopped, a
    /// GPU that failed.
    fn keep(&self, warm: &CallLookup<'_>, dryrun: &Dryrun, tunings: &[Tuning], tuner: &Tuner<'_>) {
        let can_time = self.settings.mode == Mode::Measure && self.results.present.has_gpu();
        let is_final = |tuning: &Tuning| tuning.is_final(can_time);
        if self.console.failure().is_some()
            || process::has_faulted()
            || tuner.has_temporary_failure()
            || !tunings.iter().all(is_final)
        {
            return;
        }
        let is_header =
            |name: &&String| tunings.iter().any(|tuning| tuning.source.is_own_header(Path::new(name.as_str())));
        let files = tuner.files().filter(|name| !is_header(name)).map(PathBuf::from);
        let sources = tunings.iter().map(|tuning| {
            let record = self.record(tuning).filter(|_| !tuning.tuned.is_empty());
            let (architecture, tuned) = (tuning.architecture.clone(), tuning.tuned.clone());
            let (includes_header, left_out) = (tuning.source.includes_header, tuning.left_out.clone());
            (Winners { architecture, tuned, record: None, includes_header, left_out }, record)
        });
        let programs = Programs::new(dryrun, self.nvcc);
        let compilers = compilers(dryrun, &programs);
        warm.keep(programs, sources.collect(), files, compilers);
    }
}
