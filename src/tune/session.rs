//! The kernels of a source in their order: what is known of each before it is decided.
//!
//! Each kernel is compiled under its own macros alone, so the next one can be prepared while
//! one is timed.

use super::cache_lookup::Recall;
use super::failure::Problem;
use super::kernel;
use super::kernel::{Prepared, Preparing};
use super::kernel_info;
use super::kernel_info::Ahead;
use super::outcome::Tuned;
use super::overlap::OverlappedTiming;
use super::variants::{Bounds, FrontEnds, Macros};
use super::{Tuner, axes, header_functions, launches};
use crate::comment::Annotation;
use crate::diag::Diagnostic;
use crate::nvcc::Toolchain;
use crate::process;
use crate::settings::Mode;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What there is of a kernel before it is decided.
pub enum Standing<'a> {
    Known(Box<Tuned>),
    /// And what was timed of it meanwhile.
    Prepared(Arc<Prepared<'a>>, Option<Box<OverlappedTiming>>),
    /// Nothing, and the mode asks for no more.
    Nothing,
}

/// The kernels of one source while they are tuned.
pub struct TuningSession<'a> {
    toolchain: &'a Toolchain,
    annotations: &'a [Annotation],
    front_ends: FrontEnds<'a>,
    /// Whether something of an earlier build may be known, by kernel.
    promising: Vec<bool>,
    /// Whether an earlier build could not tune such a kernel.
    refused: Vec<bool>,
    /// Why a kernel cannot be tuned whatever is found.
    problems: Vec<Option<Problem>>,
    /// The kernels that were looked at: symbol and index.
    symbols: Vec<(String, usize)>,
    /// Whether they are decided by a search within their budgets.
    is_searched: bool,
}

impl<'a> TuningSession<'a> {
    /// Looks at all of them together; `None` where nothing can come of them.
    pub fn new(tuner: &Tuner<'_>, toolchain: &'a Toolchain, annotations: &'a [Annotation]) -> Option<Self> {
        let promising = |annotation| tuner.recall(toolchain, annotation).is_some_and(|recall| recall.is_promising());
        let promising: Vec<bool> = annotations.iter().map(promising).collect();
        let refused = |annotation| tuner.recall(toolchain, annotation).is_some_and(|recall| recall.was_refused());
        let refused = annotations.iter().map(refused).collect();
        // Nothing but what is known counts: where nothing is, nothing need be compiled to see it.
        if tuner.settings.mode == Mode::Locked && !promising.contains(&true) {
            let recalls = annotations.iter().filter_map(|annotation| tuner.recall(toolchain, annotation));
            recalls.for_each(|recall| recall.warn_of_nothing());
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

    /// The same where each is decided by a search, and none may take more than its budget.
    pub fn searched(self) -> Self {
        Self { is_searched: true, ..self }
    }

    /// What is wrong with the comments' spaces, of all kernels: errors that end the call are
    /// not to come after the work for the kernels before. The rest shows once the front end
    /// has run: a launch that is not known is no error of a kernel that is not compiled.
    pub fn wrong(&self) -> Vec<Diagnostic> {
        let is_comments_own = |annotation: &Annotation| annotation.clauses.recorded.is_none();
        let kernels = self.annotations.iter().zip(&self.problems);
        let kernels = kernels.filter(|(annotation, problem)| problem.is_none() && is_comments_own(annotation));
        let wrong = kernels.filter_map(|(annotation, _)| {
            match header_functions::space(annotation, self.toolchain.architecture()) {
                Err(Problem::Comment(diagnostics)) => Some(diagnostics),
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

    /// Bounds the compiling of a kernel that was begun at `begin` and will be timed. Without a
    /// GPU the same is to be compiled, and chosen, on a slow machine as on a fast one.
    fn bound(&mut self, tuner: &Tuner<'_>, annotation: &Annotation, begin: Instant) {
        let is_bounded = self.is_searched && kernel::will_time(tuner, self.toolchain, annotation);
        let bounds = is_bounded.then(|| {
            let budget = kernel::budget(annotation, tuner.settings.budget);
            // More than a year is no bound, and no time that a clock can tell.
            let share = |share: f64| Duration::from_secs_f64((budget * share).min(1e8));
            let (front_ends, variants) = (share(kernel::FRONT_END_SHARE), share(kernel::COMPILE_SHARE));
            let least = variants.saturating_sub(front_ends);
            Bounds { front_ends: begin + front_ends, variants: begin + variants, least }
        });
        self.front_ends.bound(bounds);
    }

    /// Looks a kernel up, and compiles and scores its space where nothing is known of it.
    pub fn find(&mut self, tuner: &mut Tuner<'_>, index: usize) -> Result<Standing<'a>, Problem> {
        let found = match self.problems.get_mut(index).and_then(Option::take) {
            Some(problem) => Err(problem),
            None => self.look(tuner, index),
        };
        // What is known after a tool was stopped is not all that is to know.
        match self.toolchain.late() {
            Some(late) => Err(Problem::Tool(Arc::new(late.clone().into()))),
            None => found,
        }
    }

    fn look(&mut self, tuner: &mut Tuner<'_>, index: usize) -> Result<Standing<'a>, Problem> {
        let (toolchain, annotation, is_promising) = (self.toolchain, &self.annotations[index], self.promising[index]);
        let begin = Instant::now();
        self.front_ends.bound(None);
        let is_locked = tuner.settings.mode == Mode::Locked;
        if is_locked && !is_promising {
            tuner.recall(toolchain, annotation).iter().for_each(Recall::warn_of_nothing);
            return Ok(Standing::Nothing);
        }
        if !is_promising {
            tuner.begin();
            self.bound(tuner, annotation, begin);
        }
        let was_refused = self.refused[index];
        let ahead = if is_promising || was_refused { Ahead::Baseline } else { Ahead::FirstRound };
        let mut subject = kernel_info::learn(tuner, toolchain, &mut self.front_ends, annotation, ahead)?;
        match self.symbols.iter().find(|(symbol, of)| *symbol == subject.entry.symbol && *of != index) {
            Some((_, of)) => return Err(Problem::Twice { line: self.annotations[*of].kernel.line }),
            None => self.symbols.push((subject.entry.symbol.clone(), index)),
        }
        if is_promising && let Some(recall) = tuner.recall(toolchain, annotation) {
            if let Some(tuned) = recall.find(&mut subject, &mut self.front_ends, begin) {
                launches::pinned_notes(tuner, &subject);
                axes::warn_of_unused(tuner, annotation, &tuned.decision.unused);
                return Ok(Standing::Known(Box::new(tuned)));
            }
            if is_locked {
                recall.warn_of_nothing();
                return Ok(Standing::Known(Box::new(recall.nothing(&subject, &self.front_ends, begin))));
            }
        }
        tuner.start();
        self.bound(tuner, annotation, begin);
        let preparing = Preparing { was_refused, is_searched: self.is_searched, begin };
        let (prepared, early) = kernel::prepare(tuner, toolchain, &mut self.front_ends, subject, preparing)?;
        Ok(Standing::Prepared(Arc::new(prepared), early.map(Box::new)))
    }

    /// Says why a kernel stays as nvcc builds it.
    pub fn refuse(&mut self, tuner: &mut Tuner<'_>, index: usize, problem: &Problem) {
        problem.print(tuner.console, &self.annotations[index]);
        self.note_refusal(tuner, &self.annotations[index], problem);
    }

    /// Keeps that a kernel is not tuned, if the same inputs will meet the same again. It depends
    /// on the files that the front end read: where there are none, it is only for now.
    fn note_refusal(&self, tuner: &mut Tuner<'_>, annotation: &Annotation, problem: &Problem) {
        if !problem.is_lasting()
            || self.toolchain.is_disturbed()
            || process::has_faulted()
            || self.files().next().is_none()
        {
            tuner.lacks_some = true;
        } else if let Some(recall) = tuner.recall(self.toolchain, annotation) {
            recall.note_refusal();
        }
    }

    /// The files that the front end read.
    pub fn files(&self) -> impl Iterator<Item = &String> {
        self.front_ends.files()
    }
}
