//! One marked source: annotations -> winners, through every stage of the pipeline.

mod argument_conditions;
mod axes;
mod baseline_run;
mod buffer_files;
mod cache_lookup;
mod capture_stub;
mod compile_budget;
mod compile_space;
mod confirmation;
mod failed_launches;
mod failure;
mod final_rounds;
mod fingerprint;
mod grid_axis;
mod header_functions;
mod kernel;
mod kernel_info;
mod launch_path;
mod launches;
mod macro_screening;
mod not_timed;
mod other_launches;
mod outcome;
mod overlap;
mod preprocessing;
mod profiles;
mod recorded_input;
mod refinement;
mod register_caps;
mod scoring;
mod scoring_input;
mod search_journal;
mod session;
mod surroundings;
mod timing;
mod validity;
mod variants;
mod written_variables;

pub use baseline_run::BaselineRun;
pub use buffer_files::load as load_files;
pub use capture_stub::{KernelStub, kernel_stubs};
pub use failure::Problem;
pub use fingerprint::data as workload_data;
pub use header_functions::{baseline_headers, header};
pub use kernel::{Prepared, recorded_variant};
pub use launch_path::Build;
pub use launches::infer_default_block;
pub use macro_screening::spread as spread_macro_sets;
pub use outcome::Tuned;
pub use preprocessing::Preprocessing;
pub use profiles::{Allowance, ProfileCache, Profiles};
pub use recorded_input::recorded_scoring_input;
pub use scoring::{DOES_NOT_FIT, NoBaseline, Scored, score, score_again};
pub use scoring_input::{Code, ScoringInput, VariantSource, representatives};
pub use surroundings::Surroundings;
pub use timing::{ROUNDS, baseline, candidates, finalists, settled};
pub use variants::Macros;

use super::measure;
use super::process;
use crate::comment::Annotation;
use crate::diag::console;
use crate::diag::console::Console;
use crate::diag::progress;
use crate::gpu::Device;
use crate::launch::FrontEndOptions;
use crate::measure::{Measurer, Options, ProcessPool};
use crate::nvcc::Toolchain;
use crate::process::{DetachedWork, ScopedWork};
use crate::record::result_store::Results;
use crate::settings::{Mode, Settings, Trust};
use cache_lookup::ResultLookup;
use kernel::{Draft, Timed};
use overlap::OverlappedTiming;
use search_journal::SearchJournal;
use session::{KernelState, TuningSession};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// Tunes the kernels of a compile; holds the measuring process for all of them.
pub struct Tuner<'a> {
    settings: &'a Settings,
    console: &'a Console,
    /// The measuring processes, after [`Self::start`] and if there is a GPU.
    measurer: Option<ProcessPool>,
    /// The GPU of the measurer; known also while the measurer is lent to a thread.
    device: Option<Device>,
    is_started: bool,
    /// The measuring process while it is being started.
    starting: Option<DetachedWork<Result<ProcessPool, measure::Error>>>,
    /// What the front end read so far.
    files: BTreeSet<String>,
    /// Lock file and cache; `None` for commands that search anew.
    results: Option<&'a Results>,
    /// The code around the kernels of the current source, if an object is built.
    surroundings: Option<Surroundings>,
    /// Number of kernels of the current source.
    kernels: usize,
    /// Whether a kernel was left out, or not timed, for a reason that another build may not
    /// have.
    has_temporary_failure: bool,
    /// Whether candidates were to be timed on a GPU of this machine, and there is none.
    has_no_gpu: bool,
    /// Whether it tunes for an architecture of a fat build that is not timed.
    is_other_architecture: bool,
}

impl<'a> Tuner<'a> {
    /// A tuner that looks at no earlier results.
    pub fn new(settings: &'a Settings, console: &'a Console) -> Self {
        Self {
            settings,
            console,
            measurer: None,
            device: None,
            is_started: false,
            starting: None,
            files: BTreeSet::new(),
            results: None,
            surroundings: None,
            kernels: 1,
            has_temporary_failure: false,
            has_no_gpu: false,
            is_other_architecture: false,
        }
    }

    /// Uses earlier results, and stores new ones.
    pub fn with_results(self, results: &'a Results) -> Self {
        Self { results: Some(results), ..self }
    }

    /// Starts the measuring process in the background if the mode asks for it and there seems to
    /// be a GPU; otherwise as [`Self::start`]. A driver takes a quarter of a second to start
    /// (`kernels/results/h200/test-gpu.txt`), a runner longer; meanwhile variants are compiled.
    fn begin(&mut self) {
        let may_be_there = self.results.is_some_and(|results| results.present.has_gpu());
        if !self.is_started && self.settings.mode == Mode::Measure && may_be_there {
            self.is_started = true;
            let options = Options::new(self.settings);
            self.starting = Some(process::start_thread(|| start(options)));
        }
        if self.starting.is_none() {
            self.start();
        }
    }

    /// Starts the measuring process if the mode asks for it and there is a GPU, and waits for
    /// it. Later calls do nothing.
    pub fn start(&mut self) {
        let starting = self.starting.take();
        if std::mem::replace(&mut self.is_started, true) && starting.is_none() {
            return;
        }
        let started = || match starting {
            Some(starting) => starting.join(),
            None => start(Options::new(self.settings)),
        };
        let (settings, console) = (self.settings, self.console);
        self.measurer = match settings.mode {
            Mode::Measure => match started() {
                Ok(measurer) => Some(measurer),
                // A farm without GPUs is nothing to warn of: the provenance says `predicted`.
                Err(measure::Error::NoDevice(_)) => {
                    self.has_no_gpu = true;
                    self.has_temporary_failure |= self.results.is_some_and(|results| results.present.has_gpu());
                    None
                }
                Err(error) => {
                    self.has_temporary_failure = true;
                    console.warning(error.code(), format!("nothing is timed, the model chooses: {error}"));
                    None
                }
            },
            Mode::Off | Mode::Locked | Mode::Static | Mode::Capture => None,
        };
        self.device = self.measurer.as_ref().map(|measurer| measurer.device().clone());
    }

    /// Tells whether the measuring process is being started: the GPU is not known yet.
    fn is_starting(&self) -> bool {
        self.starting.is_some()
    }

    /// The GPU that candidates are timed on.
    pub fn device(&self) -> Option<&Device> {
        self.device.as_ref()
    }

    /// Returns the code around the kernels; `None` if no object is built.
    fn surroundings(&self) -> Option<&Surroundings> {
        self.surroundings.as_ref()
    }

    /// What times candidates.
    pub fn measurer(&mut self) -> Option<&mut ProcessPool> {
        self.measurer.as_mut()
    }

    /// Releases the GPU for other processes until it is needed again.
    fn release_gpu(&mut self) {
        if let Some(measurer) = &mut self.measurer {
            measurer.release_gpu();
        }
    }

    /// The compute capability of the GPU that candidates are timed on.
    pub fn device_architecture(&self) -> Option<u32> {
        self.device().map(|device| device.compute_capability)
    }

    /// The files that the front end read so far, as the preprocessor names them.
    pub fn files(&self) -> impl Iterator<Item = &String> {
        self.files.iter()
    }

    /// Whether a kernel of the sources so far was left out, or not timed, for a reason that
    /// another build may not have.
    pub fn has_temporary_failure(&self) -> bool {
        self.has_temporary_failure
    }

    /// Decides for every annotation of a source, in order. Warns of a kernel that cannot be tuned
    /// and leaves it out.
    ///
    /// While candidates of one kernel are on the GPU, in a thread of their own, the next kernel
    /// is compiled and scored. One kernel is timed at a time, and each is decided as if it were
    /// alone.
    pub fn tune(&mut self, toolchain: &Toolchain, annotations: &[Annotation], around: Surroundings) -> Vec<Tuned> {
        process::start_pool();
        progress::enable(self.settings.progress && !self.is_other_architecture);
        self.surroundings = Some(around);
        self.kernels = annotations.len();
        let mut tuned = Vec::new();
        let session = TuningSession::new(self, toolchain, annotations).map(|session| session.searched(self));
        let wrong = session.as_ref().map(TuningSession::wrong).unwrap_or_default();
        self.console.diagnostics(&wrong);
        if let Some(mut session) = session.filter(|_| wrong.is_empty()) {
            std::thread::scope(|scope| {
                let ahead = session.are_on_device_code().then(|| confirmation::run_ahead(scope, toolchain));
                if let Some(run_ahead) = &ahead {
                    // Most builds need it.
                    run_ahead(&FrontEndOptions::default());
                }
                let mut before: Option<Timing<'_, '_>> = None;
                for index in 0..annotations.len() {
                    // What is to be said of this kernel comes after what is to be said of the one
                    // before.
                    self.console.hold(before.is_some());
                    let on_contender = ahead.as_ref().filter(|_| confirmation::has_cores_for_predicted());
                    let found = session.find(self, index, on_contender);
                    if let Some(timing) = before.take() {
                        let held = self.console.release();
                        self.conclude(scope, toolchain, timing, (&mut session, &mut tuned));
                        self.console.say(held);
                    }
                    before = self.go_on(scope, toolchain, (index, found), (&mut session, &mut tuned));
                }
                if let Some(timing) = before {
                    self.conclude(scope, toolchain, timing, (&mut session, &mut tuned));
                }
            });
            self.files.extend(session.files().cloned());
        }
        self.surroundings = None;
        tuned
    }

    /// Goes on from what was found of a kernel: starts timing its candidates, takes what is decided, or
    /// reports why it is not tuned.
    fn go_on<'s, 'b: 's>(
        &mut self,
        scope: &'s std::thread::Scope<'s, '_>,
        toolchain: &'b Toolchain,
        (index, found): (usize, Result<KernelState<'b>, Problem>),
        (session, tuned): (&mut TuningSession<'b>, &mut Vec<Tuned>),
    ) -> Option<Timing<'s, 'b>> {
        match found {
            Ok(KernelState::Prepared(prepared, early)) => {
                return Some(self.time(scope, toolchain, index, (prepared, early)));
            }
            Ok(KernelState::Decided(found)) => tuned.push(*found),
            Ok(KernelState::NotLocked) => {}
            Err(problem) => {
                self.release_gpu();
                progress::end(session.name(index));
                session.refuse(self, index, &problem);
            }
        }
        None
    }

    /// Starts timing a kernel's candidates in a thread, which has the measurer until it ends. If
    /// nothing is to be timed, returns the draft.
    fn time<'s, 'b: 's>(
        &mut self,
        scope: &'s std::thread::Scope<'s, '_>,
        toolchain: &'b Toolchain,
        index: usize,
        (prepared, early): (Arc<Prepared<'b>>, Option<Box<OverlappedTiming>>),
    ) -> Timing<'s, 'b> {
        let search = self.lookup(toolchain, prepared.info.annotation).zip(self.device());
        let search = search.zip(prepared.basis.as_ref());
        let search = search.and_then(|((lookup, device), basis)| lookup.search(&prepared.scored.input, basis, device));
        let (draft, effort) = kernel::draft(self, toolchain, &prepared);
        let lent = effort.and_then(|effort| Some((effort, self.measurer.take()?)));
        let Some((mut effort, mut measurer)) = lent else {
            return Timing { index, prepared, search, stage: Stage::Drafted(Box::new(draft)) };
        };
        let (sent, place) = (Arc::clone(&prepared), self.results.and_then(|results| results.cache.clone()));
        let (place, is_trusted) = (place.zip(search.clone()), self.settings.trust != Trust::Nothing);
        // It keeps a core busy, as a tool of the compiler does.
        let permit = measurer.runs_here().then(process::wait_for_permit);
        effort.on_contender = prepared.is_of_device_code().then(|| confirmation::run_ahead(scope, toolchain));
        let thread = process::spawn_or_run(scope, move || {
            let of = (sent.info.annotation.name.as_str(), &sent.scored.input);
            let journal = SearchJournal::open(of, place, is_trusted && early.is_none());
            let (draft, timed) =
                kernel::time(&sent, (draft, early.map(|early| *early)), (effort, permit), &mut measurer, journal);
            // What comes now needs no GPU: another compile may have it.
            measurer.release_gpu();
            (measurer, draft, timed)
        });
        Timing { index, prepared, search, stage: Stage::Lent(Box::new(thread)) }
    }

    /// Waits until a kernel's candidates are timed, and decides. A winner whose code the whole
    /// source does not give is searched once more.
    fn conclude<'s, 'b: 's>(
        &mut self,
        scope: &'s std::thread::Scope<'s, '_>,
        toolchain: &'b Toolchain,
        timing: Timing<'s, 'b>,
        (session, tuned): (&mut TuningSession<'b>, &mut Vec<Tuned>),
    ) {
        let Timing { index, prepared, search, stage } = timing;
        let (draft, timed) = match stage {
            Stage::Drafted(draft) => {
                self.release_gpu();
                (*draft, None)
            }
            Stage::Lent(thread) => {
                let (measurer, draft, timed) = thread.join();
                self.device = Some(measurer.device().clone());
                self.measurer = Some(measurer);
                (draft, Some(timed))
            }
        };
        progress::end(&prepared.info.annotation.name);
        // Messages about code that is not confirmed are dropped.
        self.console.hold(true);
        let decided = kernel::conclude(self, toolchain, &prepared, draft, timed).map(|mut found| {
            let clock = Instant::now();
            let is_confirmed = confirmation::is_confirmed(toolchain, &prepared, found.winner());
            found.decision.seconds.compile += clock.elapsed().as_secs_f64();
            (found, is_confirmed)
        });
        let held = self.console.release();
        if !matches!(decided, Ok((_, false))) {
            self.console.say(held);
        }
        match decided {
            Ok((mut found, true)) => {
                // What failed for the moment is not to be decided by for good.
                found.decision.provisional |= toolchain.is_disturbed() || process::has_faulted();
                if let (Some(basis), Some(lookup)) = (&prepared.basis, self.lookup(toolchain, prepared.info.annotation))
                {
                    let pinned = fingerprint::lock_entry(&found, basis.clone(), &prepared.digests);
                    lookup.keep(&found, &pinned, &prepared, search.as_deref());
                    found.decision.pinned = Some(pinned);
                }
                tuned.push(found);
            }
            Ok((_, false)) => {
                let found = session.find_in_whole(self, index);
                if let Some(timing) = self.go_on(scope, toolchain, (index, found), (session, tuned)) {
                    self.conclude(scope, toolchain, timing, (session, tuned));
                }
            }
            Err(problem) => session.refuse(self, index, &problem),
        }
    }

    /// Returns the look-up of a kernel's earlier results, if they are used.
    fn lookup<'b>(&'b self, toolchain: &'b Toolchain, annotation: &'b Annotation) -> Option<ResultLookup<'b>> {
        Some(ResultLookup {
            settings: self.settings,
            console: self.console,
            results: self.results?,
            toolchain,
            annotation,
            strategy: kernel::strategy(annotation, self.settings.strategy),
            budget: kernel::budget(annotation, self.settings.budget),
            is_other_architecture: self.is_other_architecture,
        })
    }

    /// Decides for the kernels of `tuned` on another architecture of a fat build, without timing.
    pub fn tune_other_architecture(
        &mut self,
        toolchain: &Toolchain,
        annotations: &[Annotation],
        around: Surroundings,
        tuned: &[Tuned],
    ) -> Vec<Tuned> {
        let (measurer, device) = (self.measurer.take(), self.device.take());
        // Nothing is timed here: no other measuring process is to be started in its place.
        let (is_started, starting) = (std::mem::replace(&mut self.is_started, true), self.starting.take());
        let is_tuned = |annotation: &&Annotation| tuned.iter().any(|tuned| tuned.decision.name == annotation.name);
        let left: Vec<Annotation> = annotations.iter().filter(is_tuned).cloned().collect();
        self.is_other_architecture = true;
        let found = self.tune(toolchain, &left, around);
        self.is_other_architecture = false;
        (self.measurer, self.device) = (measurer, device);
        (self.is_started, self.starting) = (is_started, starting);
        found
    }

    /// Compiles and scores the spaces of a source's kernels, one after the other, and gives
    /// each to `decide`. A kernel that cannot be tuned is warned of and left out.
    pub fn each<'b>(
        &mut self,
        toolchain: &'b Toolchain,
        annotations: &'b [Annotation],
        mut decide: impl FnMut(&mut Self, &Prepared<'b>) -> Result<(), Problem>,
    ) {
        let Some(mut session) = TuningSession::new(self, toolchain, annotations) else { return };
        for index in 0..annotations.len() {
            let decided = session.find(self, index, None).and_then(|found| match found {
                KernelState::Prepared(prepared, _) => decide(self, &prepared),
                KernelState::Decided(_) | KernelState::NotLocked => Ok(()),
            });
            self.release_gpu();
            if let Err(problem) = decided {
                session.refuse(self, index, &problem);
            }
        }
        self.files.extend(session.files().cloned());
    }
}

/// A kernel whose candidates are being timed, or that the model decides.
struct Timing<'s, 'b> {
    index: usize,
    prepared: Arc<Prepared<'b>>,
    /// Cache key of the journal of its search.
    search: Option<String>,
    stage: Stage<'s>,
}

enum Stage<'s> {
    /// The model decides.
    Drafted(Box<Draft>),
    /// Its candidates are being timed.
    Lent(Box<ScopedWork<'s, (ProcessPool, Draft, Timed)>>),
}

fn start(options: Result<Options, measure::Error>) -> Result<ProcessPool, measure::Error> {
    ProcessPool::start(Options { notice: Some(console::notice), ..options? })
}
