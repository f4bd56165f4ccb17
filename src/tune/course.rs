//! The kernels of a source in their order: what is known of each before it is decided, and the macros that hold for those after it.
//!
//! What always holds: each kernel is looked at under the macros that the ones before it were decided to have, for macros hold for the
//! whole file. A kernel without macro axes leaves the others alone: the next one can be prepared while it is timed.

use super::cache_lookup::Recall;
use super::failure::Problem;
use super::kernel;
use super::kernel::{Prepared, Preparing};
use super::kernel_info;
use super::kernel_info::Ahead;
use super::outcome::Tuned;
use super::overlap::Early;
use super::variants::{Bounds, FrontEnds, InForce, Macros};
use super::{Tuner, axes, header_functions, launches};
use crate::comment::Annotation;
use crate::cuda::HostCode;
use crate::diag::Diagnostic;
use crate::nvcc::{ToolError, Toolchain};
use crate::ptx::Module;
use crate::settings::Mode;
use crate::workload;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What there is of a kernel before it is decided.
pub enum Standing<'a> {
    Known(Box<Tuned>),
    /// And what was timed of it meanwhile.
    Prepared(Arc<Prepared<'a>>, Option<Box<Early>>),
    /// Nothing, and the mode asks for no more: the baseline's macros.
    Nothing(Macros),
}

/// The kernels of a source.
pub struct Course<'a> {
    toolchain: &'a Toolchain,
    annotations: &'a [Annotation],
    front_ends: FrontEnds<'a>,
    /// Whether something of an earlier build may be known, by kernel.
    promising: Vec<bool>,
    /// Whether an earlier build could not tune such a kernel.
    refused: Vec<bool>,
    /// Why a kernel cannot be tuned whatever is found.
    problems: Vec<Option<Problem>>,
    /// The macros of all kernels' baselines.
    baselines: Macros,
    /// The macros of each kernel: its winner's where it is decided, else its baseline's.
    each: Vec<Macros>,
    /// The kernels that were looked at: symbol and index.
    symbols: Vec<(String, usize)>,
    /// Whether they are decided by a search within their budgets.
    is_searched: bool,
}

impl<'a> Course<'a> {
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
        // The macros of one kernel hold for the whole file: each kernel is tuned under the others' present values.
        let baseline = |annotation| header_functions::baseline(annotation, toolchain.architecture());
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
            if let Some(kept) = tuner.kept.get(&annotation.name) {
                own.clone_from(kept);
            }
        }
        let front_ends = FrontEnds::new(toolchain);
        Some(Self {
            toolchain,
            annotations,
            front_ends,
            promising,
            refused,
            problems,
            baselines,
            each,
            symbols: Vec::new(),
            is_searched: false,
        })
    }

    /// The same where each is decided by a search, and none may take more than its budget.
    pub fn searched(self) -> Self {
        Self { is_searched: true, ..self }
    }

    /// What is wrong with the comments' spaces, of all kernels: errors that end the call are not to come after the work for the
    /// kernels before. The rest shows once the front end has run: a launch that is not known is no error of a kernel that is not compiled.
    pub fn wrong(&self) -> Vec<Diagnostic> {
        let kernels = self.annotations.iter().zip(&self.problems).filter(|(_, problem)| problem.is_none());
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

    /// Bounds the compiling of a kernel that was begun at `begin` and will be timed. Without a GPU the same is to be compiled, and
    /// chosen, on a slow machine as on a fast one.
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
            None => loop {
                match self.look(tuner, index) {
                    Err(Problem::Macros { macros, error }) if self.leave_out(index, &macros, &error) => {}
                    found => break found,
                }
            },
        };
        // What is known after a tool was stopped is not all that is to know.
        match self.toolchain.late() {
            Some(late) => Err(Problem::Tool(Arc::new(late.clone().into()))),
            None => found,
        }
    }

    /// Leaves the macros of later kernels out under which the source does not compile: those kernels are not tuned, and this one is.
    /// False where none of `macros` is theirs, or one is this kernel's own.
    fn leave_out(&mut self, index: usize, macros: &Macros, error: &Arc<ToolError>) -> bool {
        if self.annotations[index].clauses.macros.iter().any(|axis| macros.contains_key(&axis.name)) {
            return false;
        }
        let mut is_less = false;
        for later in index + 1..self.each.len() {
            let at_fault: Macros =
                self.each[later].clone().into_iter().filter(|(name, _)| macros.contains_key(name)).collect();
            if !at_fault.is_empty() {
                is_less = true;
                self.problems[later] = Some(Problem::Macros { macros: at_fault, error: Arc::clone(error) });
                self.clear(later);
            }
        }
        is_less
    }

    /// Sets no macro for a kernel any more.
    fn clear(&mut self, index: usize) {
        for name in std::mem::take(&mut self.each[index]).keys() {
            self.baselines.remove(name);
        }
    }

    fn look(&mut self, tuner: &mut Tuner<'_>, index: usize) -> Result<Standing<'a>, Problem> {
        let (toolchain, annotation, is_promising) = (self.toolchain, &self.annotations[index], self.promising[index]);
        let begin = Instant::now();
        self.front_ends.bound(None);
        let is_locked = tuner.settings.mode == Mode::Locked;
        if is_locked && !is_promising {
            tuner.recall(toolchain, annotation).iter().for_each(Recall::warn_of_nothing);
            let baseline = header_functions::baseline(annotation, toolchain.architecture())?;
            return Ok(Standing::Nothing(baseline.macros));
        }
        if !is_promising {
            tuner.begin();
            self.bound(tuner, annotation, begin);
        }
        let now = joined(&self.each);
        let was_refused = self.refused[index];
        let ahead = if is_promising || was_refused { Ahead::Baseline } else { Ahead::FirstRound };
        let in_force = &InForce { baselines: &self.baselines, now: &now };
        let mut subject = kernel_info::learn(tuner, toolchain, &mut self.front_ends, annotation, in_force, ahead)?;
        match self.symbols.iter().find(|(symbol, of)| *symbol == subject.entry.symbol && *of != index) {
            Some((_, of)) => return Err(Problem::Twice { line: self.annotations[*of].kernel.line }),
            None => self.symbols.push((subject.entry.symbol.clone(), index)),
        }
        if is_promising && let Some(recall) = tuner.recall(toolchain, annotation) {
            if let Some(tuned) = recall.find(&mut subject, &mut self.front_ends, in_force, begin) {
                launches::reach_notes(tuner, &subject);
                launches::warn_of_launches(tuner, &subject, tuned.winner());
                axes::warn_of_unused(tuner, annotation, &tuned.decision.unused);
                return Ok(Standing::Known(Box::new(tuned)));
            }
            if is_locked {
                recall.warn_of_nothing();
                return Ok(Standing::Known(Box::new(recall.nothing(&subject, &self.front_ends, in_force, begin))));
            }
        }
        tuner.start();
        self.bound(tuner, annotation, begin);
        let in_force = &InForce { baselines: &self.baselines, now: &now };
        let preparing = Preparing { was_refused, is_searched: self.is_searched, begin };
        let (prepared, early) = kernel::prepare(tuner, toolchain, &mut self.front_ends, subject, in_force, preparing)?;
        Ok(Standing::Prepared(Arc::new(prepared), early.map(Box::new)))
    }

    /// Whether other kernels are compiled otherwise by what is decided for this one.
    pub fn reaches_others(&self, index: usize) -> bool {
        !self.annotations[index].clauses.macros.is_empty()
    }

    /// Takes the macros that a kernel was decided to have, or says why it stays as nvcc builds it.
    pub fn settle(&mut self, tuner: &mut Tuner<'_>, index: usize, decided: Result<Macros, Problem>) {
        match decided {
            Ok(macros) => self.each[index] = macros,
            Err(problem) => {
                problem.print(tuner.console, &self.annotations[index]);
                self.note_refusal(tuner, &self.annotations[index], &problem);
                self.clear(index);
            }
        }
    }

    /// Keeps that a kernel is not tuned, if the same inputs will meet the same again. It hangs on the files that the front end read:
    /// where there are none, it is only for now.
    fn note_refusal(&self, tuner: &mut Tuner<'_>, annotation: &Annotation, problem: &Problem) {
        if !problem.is_lasting() || self.toolchain.is_disturbed() || self.files().next().is_none() {
            tuner.lacks_some = true;
        } else if let Some(recall) = tuner.recall(self.toolchain, annotation) {
            recall.note_refusal();
        }
    }

    /// Warns where a macro by which one kernel's work is divided changes another kernel: macros hold for the whole file, and launches of
    /// the other that do not know of it leave work undone.
    pub fn divided_others(&mut self, host: &HostCode) -> Vec<Diagnostic> {
        let (annotations, mut found) = (self.annotations, Vec::new());
        for (annotation, own) in annotations.iter().zip(self.each.clone()) {
            if own.iter().all(|(name, value)| self.baselines.get(name) == Some(value)) {
                continue;
            }
            let Ok(space) = header_functions::space(annotation, self.toolchain.architecture()) else { continue };
            let dividing = space.dividing_macros();
            for axis in annotation.clauses.macros.iter().filter(|axis| dividing.contains(&axis.name)) {
                // Launches that are written with the macro follow it.
                let is_changed = |value: &&i64| self.baselines.get(&axis.name) != Some(*value);
                let Some(&value) = own.get(&axis.name).filter(is_changed) else { continue };
                if host.use_of(&axis.name).is_some() {
                    continue;
                }
                let others = self.changed_by(&axis.name, value);
                if others.is_empty() {
                    continue;
                }
                let message = format!(
                    "{}={value} holds for the whole file, and changes {} too, whose launches know nothing of it: give the macro of `{}` a name that no other kernel uses, or launch by it",
                    axis.name,
                    others.join(" and "),
                    annotation.kernel.name
                );
                let warning = annotation.source.warning(axis.span, message);
                // Instances of a template have one comment.
                if !found.contains(&warning) {
                    found.push(warning);
                }
            }
        }
        found
    }

    /// The kernels whose code is other by this macro alone, and whose comments do not have it.
    fn changed_by(&mut self, name: &str, value: i64) -> Vec<String> {
        let now = joined(&self.each);
        let mut alone = self.baselines.clone();
        alone.insert(name.to_owned(), value);
        let changed = self.other_under(name, &now);
        if changed.is_empty() || alone == now {
            return changed;
        }
        self.front_ends.get(std::slice::from_ref(&alone));
        self.other_under(name, &alone)
    }

    /// The kernels whose code is other under these macros than under the baselines', and whose comments do not have the one of this name.
    /// None where the front end was not run for both: then it is not known.
    fn other_under(&self, name: &str, macros: &Macros) -> Vec<String> {
        let made = [&self.baselines, macros].map(|set| self.front_ends.made(set));
        let [Some(before), Some(after)] = made else { return Vec::new() };
        let [Ok(first), Ok(second)] = [before, after].map(|made| Module::parse(&made.ptx)) else { return Vec::new() };
        let has_it = |symbol: &str| {
            let mut known = self.symbols.iter().filter(|(known, _)| known == symbol);
            known.any(|(_, index)| self.annotations[*index].clauses.macros.iter().any(|axis| axis.name == name))
        };
        let others = workload::entries(&before.stub).into_iter().filter(|entry| !has_it(&entry.symbol));
        let is_other =
            |symbol: &str| second.canonical(symbol).is_some_and(|text| first.canonical(symbol) != Some(text));
        others.filter(|entry| is_other(&entry.symbol)).map(|entry| format!("`{}`", entry.qualified)).collect()
    }

    /// The files that the front end read.
    pub fn files(&self) -> impl Iterator<Item = &String> {
        self.front_ends.files()
    }
}

/// The macros of all kernels of a file together.
fn joined(each: &[Macros]) -> Macros {
    each.iter().flatten().map(|(name, value)| (name.clone(), *value)).collect()
}
