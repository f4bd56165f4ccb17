//! One kernel: annotation -> winner.

use super::explored::{self, Effort, Explored};
use super::scored::{NoBaseline, Scored};
use super::tuned::Tuned;
use super::variants::{FrontEnds, InForce, Macros, Made, Variant, Variants, merged};
use super::{Tuner, facts, host, measured};
use crate::comment::{self, Annotation, Diagnostic};
use crate::console::Console;
use crate::cubin::Cubin;
use crate::measure::{self, Device, Measurer};
use crate::model::{Analysis, Architecture, Machine};
use crate::ptx;
use crate::record::{Decision, RecordedConfiguration, RecordedVariant, Seconds};
use crate::search::{Provenance, Strategy};
use crate::space::{Configuration, Launch, Space};
use crate::variant::{FrontEnd, ToolError, Toolchain};
use crate::workload::{self, Entry, Layout, Workload, layout};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;
use thiserror::Error;

/// Why a kernel is not tuned.
#[derive(Debug, Error)]
pub enum Problem {
    /// With places in the source.
    #[error("its tuning comment does not fit it")]
    Comment(Vec<Diagnostic>),
    #[error("{0}")]
    Tool(Arc<ToolError>),
    /// The front end refuses the source as it stands: most likely nvcc will say the same.
    #[error("{0}")]
    Source(Arc<ToolError>),
    #[error("{0}")]
    Ptx(#[from] ptx::Error),
    /// Then its values are not what the code is made of.
    #[error(
        "macro axis `{name}` is defined in {place} whatever nvtune sets: define it there only where it is not (#ifndef), or not at all"
    )]
    Defined { name: String, place: String },
    #[error("macro axis `{name}` is an axis of another kernel of the file too: give each a macro of its own")]
    Shared { name: String },
    #[error(
        "its baseline ({configuration}) is not what the source is without nvtune: let `default` give the macros the values that the source gives them"
    )]
    Default { configuration: Configuration },
    #[error("{0} is not an architecture that this version of nvtune knows")]
    Architecture(String),
    #[error("its baseline ({configuration}) cannot be built or launched: {reason}")]
    Baseline { configuration: Configuration, reason: String },
}

impl From<Vec<Diagnostic>> for Problem {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Self::Comment(diagnostics)
    }
}

impl From<NoBaseline> for Problem {
    fn from(NoBaseline { configuration, reason }: NoBaseline) -> Self {
        Self::Baseline { configuration, reason }
    }
}

impl From<Diagnostic> for Problem {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::Comment(vec![diagnostic])
    }
}

impl From<Box<Diagnostic>> for Problem {
    fn from(diagnostic: Box<Diagnostic>) -> Self {
        Self::Comment(vec![*diagnostic])
    }
}

impl Problem {
    /// Says that the kernel stays as nvcc builds it, and why.
    pub fn print(&self, console: &Console, annotation: &Annotation) {
        let message = format!("{}: not tuned: {self}", annotation.name);
        match self {
            Self::Comment(diagnostics) => console.diagnostics(diagnostics),
            Self::Source(_) => console.warn_if_the_build_passes(message),
            _ => console.warning(&message),
        }
    }
}

/// The number in `sm_90`, `sm_90a`, `compute_90`.
pub fn architecture_number(name: &str) -> Option<u32> {
    let digits = name.rsplit('_').next()?;
    digits.trim_end_matches(|character: char| character.is_ascii_alphabetic()).parse().ok()
}

/// What is known of a kernel once the front end has run.
pub struct Subject<'a> {
    pub annotation: &'a Annotation,
    /// The kernel under the baseline's macros.
    pub entry: Entry,
    /// The kernel under each set of the axes' macros: they may be arguments of a template, and so change its name. `Err` is
    /// why there is none.
    entries: HashMap<Macros, Result<Entry, String>>,
    pub space: Space,
    pub machine: Machine,
}

impl Subject<'_> {
    /// The kernel under these values of the axes' macros.
    pub fn entry(&self, macros: &Macros) -> Result<&Entry, String> {
        match self.entries.get(macros) {
            Some(entry) => entry.as_ref().map_err(Clone::clone),
            None => Ok(&self.entry),
        }
    }

    /// Finds the kernel under these sets of the axes' macros. `in_force` are the macros of the file's other kernels.
    pub fn learn(&mut self, front_ends: &mut FrontEnds<'_>, sets: &[Macros], in_force: &Macros) {
        let full: Vec<Macros> = sets.iter().map(|set| merged(in_force, set)).collect();
        let found = sets.par_iter().zip(front_ends.get(&full)).map(|(set, made)| {
            let entry = made.map_err(|error| error.to_string()).and_then(|front_end| {
                let entries = workload::entries(&front_end.stub);
                let found = workload::find(&entries, self.annotation, set).map_err(|problem| problem.message)?;
                Ok(Entry { layouts: self.entry.layouts.clone(), ..found.clone() })
            });
            (set.clone(), entry)
        });
        let found: Vec<_> = found.collect();
        self.entries.extend(found);
    }

    /// The launch and the workload of a configuration; no workload where the comment has no `args`.
    pub fn launch(&self, configuration: &Configuration) -> Result<(Launch, Option<Workload>), Problem> {
        let launch = self.space.launch(configuration)?;
        let workload = match self.annotation.has_workload() {
            true => {
                let entry = self.entry(&configuration.macros).unwrap_or(&self.entry);
                Some(workload::bind(self.annotation, entry, &self.space, configuration)?)
            }
            false => None,
        };
        Ok((launch, workload))
    }
}

/// A kernel with its space compiled and scored.
pub struct Prepared<'a> {
    pub subject: Subject<'a>,
    pub variants: Variants,
    pub scored: Scored,
    /// The sets of macros that were compiled, and how many the space has.
    pub sets: (usize, usize),
    /// What that took.
    pub seconds: Seconds,
}

/// Compiles and scores the space of one kernel. `in_force` are the values of the macro axes of the whole file.
pub fn prepare<'a>(
    tuner: &Tuner<'_>,
    toolchain: &Toolchain,
    front_ends: &mut FrontEnds<'_>,
    annotation: &'a Annotation,
    in_force: &InForce<'_>,
) -> Result<Prepared<'a>, Problem> {
    let clock = Instant::now();
    let strategy = strategy(annotation, tuner.settings.strategy);
    let timed = tuner.measurer.is_some() && annotation.has_workload();
    let effort = if timed || strategy == Strategy::Es { Effort::Whole } else { Effort::Screened };
    let mut subject = subject(tuner, toolchain, front_ends, annotation, in_force, effort)?;
    let in_force = in_force.now;
    advise(tuner.console, toolchain, front_ends, &subject, in_force)?;
    let Explored { variants, scored, sets, model } =
        explored::explore(front_ends, toolchain, &mut subject, effort, in_force)?;
    let model = model.as_secs_f64();
    let seconds = Seconds { compile: clock.elapsed().as_secs_f64() - model, model, measure: 0.0 };
    Ok(Prepared { subject, variants, scored, sets, seconds })
}

/// Decides for one kernel.
pub fn decide(tuner: &mut Tuner<'_>, architecture: &str, prepared: &Prepared<'_>) -> Result<Tuned, Problem> {
    let clock = Instant::now();
    let Prepared { subject, variants, scored, sets, seconds } = prepared;
    let annotation = subject.annotation;
    let strategy = strategy(annotation, tuner.settings.strategy);
    let candidates = scored.candidates(strategy);
    let mut decision = Decision {
        name: annotation.name.clone(),
        symbol: subject.entry.symbol.clone(),
        architecture: architecture.to_owned(),
        device: tuner.measurer.as_ref().map(|measurer| measurer.device().clone()),
        strategy,
        provenance: Provenance::Baseline,
        baseline: scored.laid.baseline,
        winner: scored.laid.baseline,
        speedup: 1.0,
        points: scored.laid.configurations.len(),
        timed: 0,
        seconds: *seconds,
        notes: screening_note(*sets),
        variants: variants.all.iter().map(recorded_variant).collect(),
        configurations: recorded(scored, &candidates),
    };
    choose(tuner, subject, scored, &candidates, &mut decision);
    decision.seconds.measure = clock.elapsed().as_secs_f64();
    Tuned::new(subject, variants, scored, decision)
}

/// Measures where that is possible, else lets the model choose.
fn choose(
    tuner: &mut Tuner<'_>,
    subject: &Subject<'_>,
    scored: &Scored,
    candidates: &[usize],
    decision: &mut Decision,
) {
    let budget = subject.annotation.budget.unwrap_or(tuner.settings.budget);
    let can_measure = tuner.measurer.is_some() && subject.annotation.has_workload();
    let device = tuner.measurer.as_ref().map(|measurer| measurer.device());
    if let Some(problem) = device.filter(|_| can_measure).and_then(|device| beyond_memory(subject, scored, device)) {
        decision.notes.push(problem.message.clone());
        tuner.console.diagnostics(&[problem]);
    } else if let Some(measurer) = tuner.measurer.as_mut().filter(|_| can_measure) {
        match measured::decide(scored, budget, measurer, decision) {
            Ok(()) => {
                for note in &decision.notes {
                    tuner.console.warning(&format!("{}: {note}", decision.name));
                }
                return;
            }
            Err(error) => {
                tuner.console.warning(&format!("{}: not timed: {error}", decision.name));
                decision.notes.push(error.to_string());
                // A workload that the kernel cannot run on as it stands tells nothing of its variants either.
                if matches!(error, measure::Error::Baseline(_)) {
                    return;
                }
            }
        }
    } else if tuner.measurer.is_some() {
        decision.notes.push("not timed: the comment has no `args` clause".to_owned());
    }
    decision.device = None;
    if let Some(winner) = scored.predicted_winner(candidates) {
        let time = |index: usize| scored.scores[index].as_ref().map_or(f64::NAN, |score| score.predicted_us);
        decision.provenance = Provenance::Predicted;
        decision.winner = winner;
        decision.speedup = time(scored.laid.baseline) / time(winner);
    }
}

/// The warning where the baseline's buffers are more than the GPU has free.
fn beyond_memory(subject: &Subject<'_>, scored: &Scored, device: &Device) -> Option<Diagnostic> {
    let annotation = subject.annotation;
    let wanted = scored.laid.workloads[scored.laid.baseline].as_ref()?.bytes();
    if device.free_bytes == 0 || wanted <= device.free_bytes {
        return None;
    }
    let mib = |bytes: u64| bytes >> 20;
    let message = format!(
        "these buffers take {} MiB, and the {} has {} MiB free: make them smaller; `{}` is not timed",
        mib(wanted),
        device.name,
        mib(device.free_bytes),
        annotation.name
    );
    Some(annotation.source.warning(annotation.place("args"), message))
}

fn strategy(annotation: &Annotation, default: Strategy) -> Strategy {
    annotation.strategy.as_deref().and_then(|name| name.parse().ok()).unwrap_or(default)
}

/// What the record says where not every set of macros was compiled.
fn screening_note((compiled, sets): (usize, usize)) -> Vec<String> {
    let note =
        format!("{compiled} of {sets} sets of macros were compiled: strategy es compiles all, and so does a GPU");
    if compiled < sets { vec![note] } else { Vec::new() }
}

/// Runs the front end under the baseline's macros and learns what the compiler knows of the kernel.
fn subject<'a>(
    tuner: &Tuner<'_>,
    toolchain: &Toolchain,
    front_ends: &mut FrontEnds<'_>,
    annotation: &'a Annotation,
    in_force: &InForce<'_>,
    effort: Effort,
) -> Result<Subject<'a>, Problem> {
    let name = toolchain.architecture();
    let unknown = || Problem::Architecture(name.to_owned());
    let architecture = architecture_number(name).and_then(Architecture::find).ok_or_else(unknown)?;
    let machine = match &tuner.measurer {
        Some(measurer) => Machine::of_device(architecture, measurer.device()),
        None => Machine::nominal(architecture),
    };
    let unbounded = Space::new(annotation, &host::limits(&architecture, None))?;
    unbounded.check_size()?;
    let baseline = unbounded.baseline().clone();
    // All at once, for as long as there are cores: one after the other each would wait for the one before.
    let planned = effort.first_round(unbounded.macro_sets());
    let planned: Vec<Macros> = planned.iter().map(|set| merged(in_force.now, set)).collect();
    let (plain, _) = rayon::join(
        || (!baseline.macros.is_empty()).then(|| toolchain.source_digest(&Macros::new())),
        || front_ends.get(&planned),
    );
    let front_end = one(front_ends, &merged(in_force.now, &baseline.macros))?;
    let entries = workload::entries(&front_end.stub);
    let mut entry = workload::find(&entries, annotation, &baseline.macros)?.clone();
    entry.layouts = layouts(toolchain, annotation, &entry, &merged(in_force.now, &baseline.macros))?;
    let module = ptx::Module::parse(&front_end.ptx)?;
    if plain.is_some_and(|plain| !is_plain(front_ends, plain.ok(), in_force.baselines, &entry.symbol)) {
        return Err(Problem::Default { configuration: baseline });
    }
    let bounds = module.entry(&entry.symbol).and_then(launch_bounds);
    let space = Space::new(annotation, &host::limits(&architecture, bounds))?;
    Ok(Subject { annotation, entry, entries: HashMap::new(), space, machine })
}

/// Asks the compiler for the layouts of the structures that the comment gives values to.
fn layouts(
    toolchain: &Toolchain,
    annotation: &Annotation,
    entry: &Entry,
    macros: &Macros,
) -> Result<BTreeMap<usize, Layout>, Problem> {
    let Some(question) = layout::question(annotation, entry) else { return Ok(BTreeMap::new()) };
    match toolchain.ask(macros, &question) {
        Ok(stub) => Ok(layout::answer(annotation, &stub)),
        Err(ToolError::Failed { message, .. }) => {
            // The source alone was compiled before, so the question is at fault: a field that does not exist, or cannot be named.
            let said = message.lines().find_map(|line| line.split_once("error: ")).map_or("", |(_, said)| said);
            Err(annotation.source.error(layout::place(annotation, said), said.to_owned()).into())
        }
        Err(error) => Err(Problem::Tool(Arc::new(error))),
    }
}

/// Whether nvcc alone makes the same kernel as under the baselines' macros. A source that nvcc alone cannot read needs nvtune.
/// `plain` is the digest of the source that nvcc alone sees.
fn is_plain(front_ends: &mut FrontEnds<'_>, plain: Option<String>, baselines: &Macros, symbol: &str) -> bool {
    if let [Ok(baseline)] = front_ends.get(std::slice::from_ref(baselines)).as_slice()
        && plain.is_some_and(|plain| plain == baseline.source_digest)
    {
        return true;
    }
    let made = front_ends.get(&[Macros::new(), baselines.clone()]);
    let canonical = |made: &Made| {
        let module = ptx::Module::parse(&made.as_ref().ok()?.ptx).ok()?;
        module.canonical(symbol)
    };
    match made.as_slice() {
        [plain @ Ok(_), baseline] => canonical(plain) == canonical(baseline),
        _ => true,
    }
}

/// Warns of what is legal in the comment but surely meant otherwise.
fn advise(
    console: &Console,
    toolchain: &Toolchain,
    front_ends: &mut FrontEnds<'_>,
    subject: &Subject<'_>,
    in_force: &Macros,
) -> Result<(), Problem> {
    let baseline = subject.space.baseline();
    let module = ptx::Module::parse(&one(front_ends, &merged(in_force, &baseline.macros))?.ptx)?;
    let workload = subject.launch(baseline)?.1;
    let facts = facts::facts(&module, &subject.entry.symbol, toolchain.register_cap(), workload.as_ref());
    console.diagnostics(&comment::advice(subject.annotation, &subject.space, &facts));
    Ok(())
}

fn one(front_ends: &mut FrontEnds<'_>, macros: &Macros) -> Result<Arc<FrontEnd>, Problem> {
    match front_ends.get(std::slice::from_ref(macros)).pop() {
        Some(made) => made.map_err(Problem::Source),
        None => Err(Problem::Tool(Arc::new(ToolError::NoKernel(String::new())))),
    }
}

/// The threads that a block may have by `.maxntid` or must have by `.reqntid`.
fn launch_bounds(entry: &ptx::Function) -> Option<u32> {
    let bound = entry.directives.iter().find(|directive| matches!(&*directive.name, ".maxntid" | ".reqntid"))?;
    u32::try_from(bound.values.iter().product::<u64>()).ok()
}

fn recorded(scored: &Scored, candidates: &[usize]) -> Vec<RecordedConfiguration> {
    let pareto: HashSet<usize> = scored.pareto().into_iter().collect();
    let candidates: HashSet<usize> = candidates.iter().copied().collect();
    let rows = scored.laid.configurations.iter().enumerate().map(|(index, configuration)| RecordedConfiguration {
        configuration: configuration.clone(),
        launch: scored.laid.launches[index],
        variant: scored.laid.variants[index].as_ref().ok().copied(),
        score: scored.scores[index],
        // Configurations with the same machine code and launch are one point.
        pareto: pareto.contains(&scored.laid.representative[index]),
        candidate: candidates.contains(&index),
        timing: None,
        refused: scored.laid.variants[index].as_ref().err().cloned(),
    });
    rows.collect()
}

/// What a record says of a variant.
pub fn recorded_variant(variant: &Variant) -> RecordedVariant {
    let resources = Cubin::parse(&variant.cubin)
        .ok()
        .and_then(|cubin| cubin.kernels().first().map(|kernel| Analysis::new(kernel, None)))
        .map(|analysis| (analysis.resources.clone(), analysis.spills.loads + analysis.spills.stores));
    let (resources, spills) = resources.unwrap_or_default();
    RecordedVariant {
        macros: variant.macros.clone(),
        caps: variant.caps.clone(),
        cache: variant.cache,
        digest: variant.digest.clone(),
        registers: resources.registers,
        static_shared: resources.static_shared,
        stack: resources.stack_frame,
        spills,
    }
}
