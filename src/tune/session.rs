//! The kernels of a source in their order: looks each up in lock file and cache, else compiles
//! and scores its space.
//!
//! Each kernel is compiled under its own macros alone, so the next one can be prepared while
//! one is timed.

use super::cache_lookup::ResultLookup;
use super::confirmation::OnContender;
use super::failure::Problem;
use super::kernel;
use super::kernel::{PrepareOptions, Prepared};
use super::kernel_info;
use super::kernel_info::InitialCompile;
use super::outcome::Tuned;
use super::overlap::OverlappedTiming;
use super::variants::{CompileDeadlines, FrontEnds, Macros};
use super::{Tuner, axes, header_functions, launches};
use crate::comment::Annotation;
use crate::diag::Diagnostic;
use crate::nvcc::Toolchain;
use crate::process;
use crate::settings::Mode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The state of a kernel after look-up and compile.
pub enum KernelState<'a> {
    Decided(Box<Tuned>),
    /// Its space is compiled and scored; with the first round, if that was timed meanwhile.
    Prepared(Arc<Prepared<'a>>, Option<Box<OverlappedTiming>>),
    /// No result is locked, and the mode does not permit a search.
    NotLocked,
}

/// The kernels of one source while they are tuned.
pub struct TuningSession<'a> {
    toolchain: &'a Toolchain,
    annotations: &'a [Annotation],
    front_ends: FrontEnds<'a>,
    /// Whether lock file or cache have an entry, by kernel.
    promising: Vec<bool>,
    /// Whether an earlier build could not tune such a kernel.
    refused: Vec<bool>,
    /// Why a kernel cannot be tuned in any case.
    problems: Vec<Option<Problem>>,
    /// The kernels that were looked at: symbol and index.
    symbols: Vec<(String, usize)>,
    /// Whether the kernels are decided by searches within their budgets.
    is_searched: bool,
}

impl<'a> TuningSession<'a> {
    /// Starts the session of a source; `None` if only locked results are permitted and there are
    /// none.
    pub fn new(tuner: &Tuner<'_>, toolchain: &'a Toolchain, annotations: &'a [Annotation]) -> Option<Self> {
        let promising = |annotation| tuner.lookup(toolchain, annotation).is_some_and(|lookup| lookup.is_promising());
        let promising: Vec<bool> = annotations.iter().map(promising).collect();
        let refused = |annotation| tuner.lookup(toolchain, annotation).is_some_and(|lookup| lookup.was_refused());
        let refused = annotations.iter().map(refused).collect();
        // Nothing but what is known counts: where nothing is, nothing need be compiled to see it.
        if tuner.settings.mode == Mode::Locked && !promising.contains(&true) {
            let lookups = annotations.iter().filter_map(|annotation| tuner.lookup(toolchain, annotation));
            lookups.for_each(|lookup| lookup.warn_not_locked());
            return None;
        }
        let baseline = |annotation| header_functions::baseline(annotation, toolchain.architecture());
        let axes: Vec<Macros> = annotations
            .iter()
            .map(|annotation| baseline(annotation).map(|found| found.macros).unwrap_or_default())
            .collect();
        let elsewhere = axes::defined_elsewhere(
            toolchain,
            &axes.iter().flatten().map(|(name, value)| (name.clone(), *value)).collect(),
        );
        let problems = axes.iter().map(|own| axes::problem(own, &elsewhere)).collect();
        let front_ends = FrontEnds::new(toolchain);
        Some(Self {
            toolchain,
            annotations,
            front_ends,
            promising,
            refused,
            problems,
            symbols: Vec::new(),
            is_searched: false,
        })
    }

    /// Has each kernel decided by a search within its budget.
    pub fn searched(self, tuner: &Tuner<'_>) -> Self {
        // What is known already is for code of the whole source.
        let is_on_whole = self.promising.contains(&true) || self.needs_output_of_build_alone(tuner);
        let front_ends = if is_on_whole { self.front_ends } else { self.front_ends.on_device_code() };
        Self { is_searched: true, front_ends, ..self }
    }

    /// Returns whether the search needs no more of the front end than the build, which takes that
    /// over.
    fn needs_output_of_build_alone(&self, tuner: &Tuner<'_>) -> bool {
        let is_taken_over = tuner.surroundings().is_some_and(|around| !around.includes_header);
        // What is timed is faster on device code alone. Without timing there are no math options.
        let needs_one = |annotation: &Annotation| {
            let space = header_functions::space(annotation, self.toolchain.architecture());
            space.is_ok_and(|space| space.baseline().macros.is_empty() && space.unroll().len() == 1)
                && !kernel::will_time(tuner, self.toolchain, annotation)
        };
        is_taken_over && self.annotations.iter().all(needs_one)
    }

    /// Returns the errors of all comments' spaces, so that they end the call before any kernel is
    /// tuned. Other errors need the front end: an unknown launch is not an error of a kernel that
    /// is not compiled.
    pub fn wrong(&self) -> Vec<Diagnostic> {
        let is_comments_own = |annotation: &Annotation| annotation.clauses.recorded.is_none();
        let kernels = self.annotations.iter().zip(&self.problems);
        let kernels = kernels.filter(|(annotation, problem)| problem.is_none() && is_comments_own(annotation));
        let wrong = kernels.filter_map(|(annotation, _)| {
            match header_functions::space(annotation, self.toolchain.architecture()) {
                Err(Problem::Comment(mut diagnostics)) => {
                    diagnostics.retain(|diagnostic| !annotation.is_about_inferred(diagnostic));
                    Some(diagnostics)
                }
                _ => None,
            }
        });
        // Instances of one template have one comment, and mostly one fault.
        let mut said: Vec<Diagnostic> = Vec::new();
        for diagnostic in wrong.flatten() {
            if !said.contains(&diagnostic) {
                said.push(diagnostic);
            }
        }
        said
    }

    /// Sets the deadlines for compiling a kernel that was begun at `begin` and will be timed.
    /// Without a GPU there are none: a slow machine must choose as a fast one does.
    fn set_deadlines(&mut self, tuner: &Tuner<'_>, annotation: &Annotation, begin: Instant) {
        let is_bounded = self.is_searched && kernel::will_time(tuner, self.toolchain, annotation);
        let bounds = is_bounded.then(|| {
            let budget = kernel::budget(annotation, tuner.settings.budget);
            // More than a year is no bound, and no time that a clock can tell.
            let share = |share: f64| Duration::from_secs_f64((budget * share).min(1e8));
            let (front_ends, variants) = (share(kernel::FRONT_END_SHARE), share(kernel::COMPILE_SHARE));
            let least = variants.saturating_sub(front_ends);
            CompileDeadlines { front_ends: begin + front_ends, variants: begin + variants, least }
        });
        self.front_ends.set_deadlines(bounds);
    }

    /// Looks a kernel up; without a known result compiles and scores its space. Front-end options that
    /// may win go to `on_contender` as soon as they are predicted or timed.
    pub fn find(
        &mut self,
        tuner: &mut Tuner<'_>,
        index: usize,
        on_contender: Option<&OnContender<'_>>,
    ) -> Result<KernelState<'a>, Problem> {
        if let Some(problem) = self.problems.get_mut(index).and_then(Option::take) {
            return self.unless_late(Err(problem));
        }
        // The first kernel's time is also that of preprocessing the source.
        let begin = if index == 0 { self.toolchain.begin() } else { Instant::now() };
        let is_baseline_alone = self.promising[index] || self.refused[index];
        let ahead = if is_baseline_alone { InitialCompile::Baseline } else { InitialCompile::FirstRound };
        let found = self.look(tuner, index, (begin, ahead), on_contender);
        let may_be_of_part = self.are_on_device_code() && self.toolchain.late().is_none();
        if found.as_ref().is_err_and(Problem::depends_on_front_end) && may_be_of_part {
            let made = self.front_ends.begin_with_whole();
            let found = self.look(tuner, index, (begin, InitialCompile::Baseline), None);
            if found.is_err() {
                self.front_ends.end_with_whole(made);
            }
            return self.unless_late(found);
        }
        self.unless_late(found)
    }

    /// As [`Self::find`], for this kernel and all that follow in the whole source: what device code
    /// seemed to need of it gives other code.
    pub fn find_in_whole(&mut self, tuner: &mut Tuner<'_>, index: usize) -> Result<KernelState<'a>, Problem> {
        self.front_ends.begin_with_whole();
        let found = self.look(tuner, index, (Instant::now(), InitialCompile::FirstRound), None);
        self.unless_late(found)
    }

    /// What is known after a tool was stopped is not all that is to know.
    fn unless_late(&self, found: Result<KernelState<'a>, Problem>) -> Result<KernelState<'a>, Problem> {
        match self.toolchain.late() {
            Some(late) => Err(Problem::Tool(Arc::new(late.clone().into()))),
            None => found,
        }
    }

    /// Returns whether kernels are compiled of what device code needs of the source.
    pub fn are_on_device_code(&self) -> bool {
        self.front_ends.are_on_device_code()
    }

    fn look(
        &mut self,
        tuner: &mut Tuner<'_>,
        index: usize,
        (begin, ahead): (Instant, InitialCompile),
        on_contender: Option<&OnContender<'_>>,
    ) -> Result<KernelState<'a>, Problem> {
        let (toolchain, annotation, is_promising) = (self.toolchain, &self.annotations[index], self.promising[index]);
        self.front_ends.set_deadlines(None);
        let is_locked = tuner.settings.mode == Mode::Locked;
        if is_locked && !is_promising {
            tuner.lookup(toolchain, annotation).iter().for_each(ResultLookup::warn_not_locked);
            return Ok(KernelState::NotLocked);
        }
        if !is_promising {
            tuner.begin();
            self.set_deadlines(tuner, annotation, begin);
        }
        let was_refused = self.refused[index];
        let mut info = kernel_info::inspect_kernel(tuner, toolchain, &mut self.front_ends, annotation, ahead)?;
        match self.symbols.iter().find(|(symbol, of)| *symbol == info.entry.symbol && *of != index) {
            Some((_, of)) => return Err(Problem::Twice { line: self.annotations[*of].kernel.line }),
            None => self.symbols.push((info.entry.symbol.clone(), index)),
        }
        if is_promising && let Some(lookup) = tuner.lookup(toolchain, annotation) {
            if let Some(tuned) = lookup.find(&mut info, &mut self.front_ends, begin) {
                launches::pinned_notes(tuner, &info);
                axes::warn_unused_macros(tuner, annotation, &tuned.decision.unused);
                return Ok(KernelState::Decided(Box::new(tuned)));
            }
            if is_locked {
                lookup.warn_not_locked();
                return Ok(KernelState::Decided(Box::new(lookup.baseline_without_result(
                    &info,
                    &self.front_ends,
                    begin,
                ))));
            }
        }
        tuner.start();
        self.set_deadlines(tuner, annotation, begin);
        let preparing = PrepareOptions { was_refused, is_searched: self.is_searched, begin, on_contender };
        let (prepared, early) = kernel::prepare(tuner, toolchain, &mut self.front_ends, info, preparing)?;
        Ok(KernelState::Prepared(Arc::new(prepared), early.map(Box::new)))
    }

    /// Returns the name of a kernel.
    pub fn name(&self, index: usize) -> &'a str {
        &self.annotations[index].name
    }

    /// Reports why a kernel is not tuned.
    pub fn refuse(&mut self, tuner: &mut Tuner<'_>, index: usize, problem: &Problem) {
        problem.print(tuner.console, &self.annotations[index]);
        self.note_refusal(tuner, &self.annotations[index], problem);
    }

    /// Records in the cache that a kernel is not tuned, if the same inputs give the same problem.
    /// The entry depends on the files that the front end read; without any it is not recorded.
    fn note_refusal(&self, tuner: &mut Tuner<'_>, annotation: &Annotation, problem: &Problem) {
        if !problem.is_lasting()
            || self.toolchain.is_disturbed()
            || process::has_faulted()
            || self.files().next().is_none()
        {
            tuner.has_temporary_failure = true;
        } else if let Some(lookup) = tuner.lookup(self.toolchain, annotation) {
            lookup.note_refusal();
        }
    }

    /// The files that the front end read.
    pub fn files(&self) -> impl Iterator<Item = &String> {
        self.front_ends.files()
    }
}
