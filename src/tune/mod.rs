//! One marked source: annotations -> winners, through every stage of the pipeline.

mod axes;
mod basis;
mod caps;
mod explored;
mod expression;
mod facts;
mod files;
mod host;
mod kernel;
mod laid;
mod launches;
mod measured;
mod position;
mod problem;
mod profiles;
mod reach;
mod recalled;
mod scored;
mod screen;
mod subject;
mod tuned;
mod variants;

pub use basis::data as workload_data;
pub use files::load as load_files;
pub use host::{Types, baseline_headers, header};
pub use kernel::{Prepared, recorded_variant};
pub use laid::{Code, Laid, Source, representatives};
pub use measured::{ROUNDS, baseline, candidates, finalists, settled};
pub use problem::Problem;
pub use reach::Surroundings;
pub use scored::{NoBaseline, Scored, score};
pub use tuned::Tuned;

use crate::comment::Annotation;
use crate::console::{self, Console};
use crate::measure::{self, Device, Measurer, Options, Pool};
use crate::results::Results;
use crate::settings::{Mode, Settings};
use crate::variant::Toolchain;
use recalled::Recall;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;
use subject::Ahead;
pub use variants::Macros;
use variants::{FrontEnds, InForce};

/// Tunes the kernels of a compile; holds the measuring process for all of them.
pub struct Tuner<'a> {
    settings: &'a Settings,
    console: &'a Console,
    /// Once it was asked for: what times candidates, if there is a GPU.
    measurer: Option<Pool>,
    is_started: bool,
    /// What the front end read so far.
    files: BTreeSet<String>,
    /// Where results of earlier builds are looked up and kept; none for who wants to know it all anew.
    results: Option<&'a Results>,
    /// Of the source under way, where its object is to be built.
    surroundings: Option<Surroundings>,
    /// The macros of kernels by name that were decided on another architecture: they hold for the whole file.
    kept: BTreeMap<String, Macros>,
}

impl<'a> Tuner<'a> {
    /// A tuner that looks at no earlier results.
    pub fn new(settings: &'a Settings, console: &'a Console) -> Self {
        Self {
            settings,
            console,
            measurer: None,
            is_started: false,
            files: BTreeSet::new(),
            results: None,
            surroundings: None,
            kept: BTreeMap::new(),
        }
    }

    /// Takes earlier results for what they say, and keeps new ones.
    pub fn with_results(self, results: &'a Results) -> Self {
        Self { results: Some(results), ..self }
    }

    /// Starts the measuring process where the mode asks for it and there is a GPU; the first call alone does anything.
    pub fn start(&mut self) {
        if std::mem::replace(&mut self.is_started, true) {
            return;
        }
        let (settings, console) = (self.settings, self.console);
        self.measurer = match settings.mode {
            Mode::Measure => match start() {
                Ok(measurer) => Some(measurer),
                // A farm without GPUs is nothing to warn of: the provenance says `predicted`.
                Err(measure::Error::NoDevice(_)) => None,
                Err(error) => {
                    console.warning(&format!("nothing is timed, the model chooses: {error}"));
                    None
                }
            },
            Mode::Off | Mode::Locked | Mode::Static => None,
        };
    }

    /// The GPU that candidates are timed on.
    pub fn device(&self) -> Option<&Device> {
        self.measurer.as_ref().map(|measurer| measurer.device())
    }

    /// The code around the kernels; none where no object is built, and every configuration is launched as it is.
    fn surroundings(&self) -> Option<&Surroundings> {
        self.surroundings.as_ref()
    }

    /// What times candidates.
    pub fn measurer(&mut self) -> Option<&mut Pool> {
        self.measurer.as_mut()
    }

    /// The compute capability of the GPU that candidates are timed on.
    pub fn device_architecture(&self) -> Option<u32> {
        self.device().map(|device| device.compute_capability)
    }

    /// The files that the front end read so far, as the preprocessor names them.
    pub fn files(&self) -> impl Iterator<Item = &String> {
        self.files.iter()
    }

    /// Decides for every annotation of a source, in order; a kernel that cannot be tuned is warned of and left out.
    pub fn tune(&mut self, toolchain: &Toolchain, annotations: &[Annotation], around: Surroundings) -> Vec<Tuned> {
        self.surroundings = Some(around);
        let tuned = RefCell::new(Vec::new());
        let push = |found: Tuned| {
            let macros = found.winner().macros.clone();
            tuned.borrow_mut().push(found);
            macros
        };
        self.each_unknown(toolchain, annotations, &push, |tuner, prepared| {
            let mut found = kernel::decide(tuner, toolchain, prepared)?;
            if let (Some(basis), Some(recall)) = (&prepared.basis, tuner.recall(toolchain, prepared.subject.annotation))
            {
                let pinned = basis::pinned(&found, basis.clone(), &prepared.digests);
                recall.keep(&found, &pinned, prepared.digests.clone());
                found.decision.pinned = Some(pinned);
            }
            Ok(push(found))
        });
        self.surroundings = None;
        tuned.into_inner()
    }

    /// The look-up of a kernel's earlier results, where they count.
    fn recall<'b>(&'b self, toolchain: &'b Toolchain, annotation: &'b Annotation) -> Option<Recall<'b>> {
        let kept = self.kept.get(&annotation.name);
        Some(Recall {
            settings: self.settings,
            console: self.console,
            results: self.results?,
            toolchain,
            annotation,
            strategy: kernel::strategy(annotation, self.settings.strategy),
            budget: kernel::budget(annotation, self.settings.budget),
            is_beside: kept.is_some(),
            given: kept.filter(|_| !annotation.macros.is_empty()),
        })
    }

    /// Decides for another architecture of a fat build, whose macros are those of `tuned` and which is not that of the GPU at hand.
    pub fn tune_beside(
        &mut self,
        toolchain: &Toolchain,
        annotations: &[Annotation],
        around: Surroundings,
        tuned: &[Tuned],
    ) -> Vec<Tuned> {
        let measurer = self.measurer.take();
        // Nothing is timed here: no other measuring process is to be started in its place.
        let is_started = std::mem::replace(&mut self.is_started, true);
        self.kept = tuned.iter().map(|tuned| (tuned.decision.name.clone(), tuned.winner().macros.clone())).collect();
        let left = annotations.iter().filter(|annotation| self.kept.contains_key(&annotation.name));
        let left: Vec<Annotation> = left.cloned().collect();
        let found = self.tune(toolchain, &left, around);
        self.kept.clear();
        (self.measurer, self.is_started) = (measurer, is_started);
        found
    }

    /// Compiles and scores the spaces of a source's kernels, one after the other, and gives each to `decide`, whose answer, the
    /// kernel's macros, holds for the kernels after it. A kernel that cannot be tuned is warned of and left out.
    pub fn each<'b>(
        &mut self,
        toolchain: &Toolchain,
        annotations: &'b [Annotation],
        decide: impl FnMut(&mut Self, &Prepared<'b>) -> Result<Macros, Problem>,
    ) {
        self.each_unknown(toolchain, annotations, |tuned| tuned.winner().macros.clone(), decide);
    }

    /// The same for the kernels that nothing is known of; the others go to `take`.
    fn each_unknown<'b>(
        &mut self,
        toolchain: &Toolchain,
        annotations: &'b [Annotation],
        mut take: impl FnMut(Tuned) -> Macros,
        mut decide: impl FnMut(&mut Self, &Prepared<'b>) -> Result<Macros, Problem>,
    ) {
        let promising =
            |tuner: &Self, annotation| tuner.recall(toolchain, annotation).is_some_and(|recall| recall.is_promising());
        let promising: Vec<bool> = annotations.iter().map(|annotation| promising(self, annotation)).collect();
        // Nothing but what is known counts: where nothing is, nothing need be compiled to see it.
        if self.settings.mode == Mode::Locked && !promising.contains(&true) {
            let recalls = annotations.iter().filter_map(|annotation| self.recall(toolchain, annotation));
            recalls.for_each(|recall| recall.warn_of_nothing());
            return;
        }
        let mut front_ends = FrontEnds::new(toolchain);
        // The macros of one kernel hold for the whole file: each kernel is tuned under the others' present values.
        let baseline = |annotation| host::baseline(annotation, toolchain.architecture());
        let mut each: Vec<Macros> = annotations
            .iter()
            .map(|annotation| baseline(annotation).map(|found| found.macros).unwrap_or_default())
            .collect();
        let elsewhere = axes::defined_elsewhere(toolchain, &joined(&each));
        let problems: Vec<_> = each.iter().map(|own| axes::problem(own, &each, &elsewhere)).collect();
        for (own, _) in each.iter_mut().zip(&problems).filter(|(_, problem)| problem.is_some()) {
            own.clear();
        }
        let baselines = joined(&each);
        for (own, annotation) in each.iter_mut().zip(annotations) {
            if let Some(kept) = self.kept.get(&annotation.name) {
                own.clone_from(kept);
            }
        }
        for (index, (annotation, problem)) in annotations.iter().zip(problems).enumerate() {
            let in_force = InForce { baselines: &baselines, now: &joined(&each) };
            let found = match problem {
                Some(problem) => Err(problem),
                None => self.found(toolchain, &mut front_ends, annotation, &in_force, promising[index]),
            };
            // What is known after a tool was stopped is not all that is to know.
            let found = match toolchain.late() {
                Some(late) => Err(Problem::Tool(Arc::new(late.clone().into()))),
                None => found,
            };
            let decided = found.and_then(|found| match found {
                Found::Known(tuned) => Ok(take(*tuned)),
                Found::Prepared(prepared) => decide(self, &prepared),
                Found::Nothing(macros) => Ok(macros),
            });
            if let Some(measurer) = &mut self.measurer {
                // What comes now needs no GPU: another compile may have it.
                measurer.rest();
            }
            match decided {
                Ok(macros) => each[index] = macros,
                Err(problem) => {
                    each[index].clear();
                    problem.print(self.console, annotation);
                }
            }
        }
        self.files.extend(front_ends.files().cloned());
    }
}

/// What there is of a kernel before it is decided.
enum Found<'a> {
    Known(Box<Tuned>),
    Prepared(Box<Prepared<'a>>),
    /// Nothing, and the mode asks for no more: the baseline's macros.
    Nothing(Macros),
}

impl Tuner<'_> {
    /// Looks a kernel up, and compiles and scores its space where nothing is known of it.
    fn found<'b>(
        &mut self,
        toolchain: &Toolchain,
        front_ends: &mut FrontEnds<'_>,
        annotation: &'b Annotation,
        in_force: &InForce<'_>,
        is_promising: bool,
    ) -> Result<Found<'b>, Problem> {
        let begin = Instant::now();
        let is_locked = self.settings.mode == Mode::Locked;
        if is_locked && !is_promising {
            self.recall(toolchain, annotation).iter().for_each(Recall::warn_of_nothing);
            let baseline = host::baseline(annotation, toolchain.architecture())?;
            return Ok(Found::Nothing(baseline.macros));
        }
        if !is_promising {
            self.start();
        }
        let ahead = if is_promising { Ahead::Baseline } else { Ahead::FirstRound };
        let mut subject = subject::learn(self, toolchain, front_ends, annotation, in_force, ahead)?;
        if is_promising && let Some(recall) = self.recall(toolchain, annotation) {
            if let Some(tuned) = recall.find(&mut subject, front_ends, in_force, begin) {
                launches::reach_notes(self, &subject);
                launches::warn_of_launches(self, &subject, tuned.winner());
                return Ok(Found::Known(Box::new(tuned)));
            }
            if is_locked {
                recall.warn_of_nothing();
                return Ok(Found::Known(Box::new(recall.nothing(&subject, front_ends, in_force, begin))));
            }
        }
        self.start();
        let prepared = kernel::prepare(self, toolchain, front_ends, subject, in_force, begin)?;
        Ok(Found::Prepared(Box::new(prepared)))
    }
}

fn start() -> Result<Pool, measure::Error> {
    Pool::start(Options { notice: Some(console::notice), ..Options::from_environment()? })
}

/// The macros of all kernels of a file together.
fn joined(each: &[Macros]) -> Macros {
    each.iter().flatten().map(|(name, value)| (name.clone(), *value)).collect()
}
