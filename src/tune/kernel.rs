//! One kernel: annotation -> winner.

use super::basis;
use super::explored::{self, Effort, Explored};
use super::problem::Problem;
use super::reach::{Reach, Way};
use super::scored::Scored;
use super::tuned::Tuned;
use super::variants::{FrontEnds, InForce, Macros, Made, Variant, Variants, merged};
use super::{Tuner, facts, host, launches, measured};
use crate::comment::{self, Annotation, Diagnostic};
use crate::cubin::Cubin;
use crate::measure::{self, Device, Measurer};
use crate::model::{Analysis, Architecture, Machine};
use crate::nvcc::Loaded;
use crate::ptx;
use crate::record::{Basis, Decision, Held, RecordedConfiguration, RecordedVariant, Seconds};
use crate::search::{Provenance, Strategy};
use crate::space::{Configuration, Launch, Space};
use crate::variant::{FrontEnd, ToolError, Toolchain};
use crate::workload::{self, Entry, Layout, Spelled, Workload, alias, layout};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

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
    /// How a winner gets to the kernel's launches.
    pub reach: Reach,
    /// The values of the axes' macros that were decided on another architecture.
    pub kept: Option<Macros>,
}

impl Subject<'_> {
    /// What stays where nothing is surely faster: the baseline, or what comes nearest to it under macros that are decided.
    pub fn baseline(&self) -> Configuration {
        let baseline = self.space.baseline().clone();
        let Some(kept) = &self.kept else { return baseline };
        let wanted = Configuration { macros: kept.clone(), ..baseline };
        if self.space.contains(&wanted) {
            return wanted;
        }
        let mut fitting = self.space.iter().filter(|found| found.macros == wanted.macros && found.cap == 0);
        fitting.next().unwrap_or(wanted)
    }

    /// The sets of the axes' macros that can be chosen.
    pub fn macro_sets(&self) -> Vec<Macros> {
        self.kept.as_ref().map_or_else(|| self.space.macro_sets(), |kept| vec![kept.clone()])
    }

    /// The kernel under these values of the axes' macros.
    pub fn entry(&self, macros: &Macros) -> Result<&Entry, String> {
        match self.entries.get(macros) {
            Some(entry) => entry.as_ref().map_err(Clone::clone),
            None => Ok(&self.entry),
        }
    }

    /// Finds the kernel under these sets of the axes' macros. `in_force` are the macros of the file's other kernels.
    pub fn learn(&mut self, front_ends: &mut FrontEnds<'_>, toolchain: &Toolchain, sets: &[Macros], in_force: &Macros) {
        let full: Vec<Macros> = sets.iter().map(|set| merged(in_force, set)).collect();
        let found = sets.par_iter().zip(front_ends.get(&full)).map(|(set, made)| {
            let entry = made.map_err(|error| error.to_string()).and_then(|front_end| {
                let entries = workload::entries(&front_end.stub);
                let found = find(toolchain, self.annotation, &entries, set, &merged(in_force, set));
                let found = found.map_err(|problem| problem.message)?;
                Ok(Entry { layouts: self.entry.layouts.clone(), ..found })
            });
            (set.clone(), entry)
        });
        let found: Vec<_> = found.collect();
        self.entries.extend(found);
    }

    /// The launch and the workload of a configuration; no workload where the comment has no `args`.
    pub fn launch(&self, configuration: &Configuration) -> Result<(Launch, Option<Workload>), Problem> {
        let launch = self.reach.launch(&self.space, configuration)?;
        let workload = match self.annotation.has_workload() {
            true => {
                let entry = self.entry(&configuration.macros).unwrap_or(&self.entry);
                let prepared = self.reach.prepared(&self.space, configuration);
                Some(workload::bind(self.annotation, entry, &self.space, &prepared)?)
            }
            false => None,
        };
        Ok((launch, workload))
    }
}

/// How much of a kernel is compiled at once, to learn of it.
#[derive(Clone, Copy, Debug)]
pub enum Ahead {
    /// The baseline: the winner may be known already.
    Baseline,
    /// What will be compiled in any case.
    FirstRound,
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
    /// What its winner hangs on, and the digest of its code under each set of macros that was compiled: for lock file and cache.
    pub basis: Option<Basis>,
    pub digests: Vec<(Macros, String)>,
    /// What the GPU at hand loads of the code.
    pub loaded: Loaded,
}

/// Runs the front end and learns what there is to know of one kernel before its space is compiled. `in_force` are the values of
/// the macro axes of the whole file.
pub fn learn<'a>(
    tuner: &Tuner<'_>,
    toolchain: &Toolchain,
    front_ends: &mut FrontEnds<'_>,
    annotation: &'a Annotation,
    in_force: &InForce<'_>,
    ahead: Ahead,
) -> Result<Subject<'a>, Problem> {
    let subject = subject(tuner, toolchain, front_ends, annotation, in_force, ahead)?;
    if subject.kept.is_none() {
        advise(tuner, toolchain, front_ends, &subject, in_force.now)?;
    }
    Ok(subject)
}

/// Compiles and scores the space of one kernel, which took from `begin` on.
pub fn prepare<'a>(
    tuner: &Tuner<'_>,
    toolchain: &Toolchain,
    front_ends: &mut FrontEnds<'_>,
    mut subject: Subject<'a>,
    in_force: &InForce<'_>,
    begin: Instant,
) -> Result<Prepared<'a>, Problem> {
    let in_force = in_force.now;
    let loaded = toolchain.loaded(tuner.device_architecture());
    let effort = effort(tuner, toolchain, subject.annotation);
    // A GPU may have been asked for since.
    subject.machine = machine(tuner, subject.machine.architecture);
    let Explored { variants, mut scored, sets, model } =
        explored::explore(front_ends, toolchain, &mut subject, effort, in_force)?;
    let model = model.as_secs_f64();
    let seconds = Seconds { compile: begin.elapsed().as_secs_f64() - model, model, ..Seconds::default() };
    if will_time(tuner, toolchain, subject.annotation) && loaded == Loaded::Ptx {
        send_ptx(&mut scored, &variants, front_ends);
    }
    let (mut basis, mut digests) = (None, Vec::new());
    if tuner.results.is_some() {
        basis = basis::basis(&subject, front_ends, toolchain, in_force);
        digests = basis::sets(&subject, front_ends, subject.space.macro_sets(), in_force);
    }
    Ok(Prepared { subject, variants, scored, sets, seconds, basis, digests, loaded })
}

/// Whether candidates of a kernel are timed here.
fn will_time(tuner: &Tuner<'_>, toolchain: &Toolchain, annotation: &Annotation) -> bool {
    let loaded = toolchain.loaded(tuner.device_architecture());
    tuner.measurer.is_some() && annotation.has_workload() && loaded != Loaded::Nothing
}

/// All of a space is compiled where it will be timed.
fn effort(tuner: &Tuner<'_>, toolchain: &Toolchain, annotation: &Annotation) -> Effort {
    let strategy = strategy(annotation, tuner.settings.strategy);
    let timed = will_time(tuner, toolchain, annotation);
    if timed || strategy == Strategy::Es { Effort::Whole } else { Effort::Screened }
}

fn machine(tuner: &Tuner<'_>, architecture: Architecture) -> Machine {
    match &tuner.measurer {
        Some(measurer) => Machine::of_device(architecture, measurer.device()),
        None => Machine::nominal(architecture),
    }
}

/// Decides for one kernel.
pub fn decide(tuner: &mut Tuner<'_>, toolchain: &Toolchain, prepared: &Prepared<'_>) -> Result<Tuned, Problem> {
    let clock = Instant::now();
    let Prepared { subject, variants, scored, sets, seconds, .. } = prepared;
    let annotation = subject.annotation;
    let strategy = strategy(annotation, tuner.settings.strategy);
    let candidates = scored.candidates(strategy);
    let mut decision = Decision {
        name: annotation.name.clone(),
        symbol: subject.entry.symbol.clone(),
        architecture: toolchain.architecture().to_owned(),
        device: tuner.measurer.as_ref().map(|measurer| measurer.device().clone()),
        conditions: None,
        strategy,
        provenance: Provenance::Baseline,
        baseline: scored.laid.baseline,
        winner: scored.laid.baseline,
        speedup: 1.0,
        surplus: false,
        provisional: false,
        points: scored.laid.configurations.len(),
        timed: 0,
        seconds: *seconds,
        held: Vec::new(),
        notes: screening_note(*sets),
        pinned: None,
        variants: variants.all.iter().map(recorded_variant).collect(),
        configurations: recorded(scored, &candidates),
    };
    let notes = reach_notes(tuner, subject);
    let by_model = choose(tuner, prepared, &mut decision);
    decision.held = held(prepared, by_model);
    decision.notes.extend(notes);
    decision.seconds.measure = clock.elapsed().as_secs_f64();
    let tuned = Tuned::new(toolchain, subject, variants, scored, decision)?;
    warn_of_launches(tuner, subject, tuned.winner());
    Ok(tuned)
}

/// Has the PTX of each variant timed in place of its machine code: the GPU at hand cannot load that, and will be given the PTX.
fn send_ptx(scored: &mut Scored, variants: &Variants, front_ends: &FrontEnds<'_>) {
    for (code, variant) in scored.laid.codes.iter_mut().zip(&variants.all) {
        // The PTX that is embedded is nvcc's own: register caps and cache operators are in the machine code alone.
        if let Some(made) = front_ends.made(&variant.macros) {
            code.cubin = Arc::from(made.ptx.as_bytes());
        }
    }
}

/// Measures where that is possible, else lets the model choose, and says whether it did.
fn choose(tuner: &mut Tuner<'_>, prepared: &Prepared<'_>, decision: &mut Decision) -> bool {
    let Prepared { subject, scored, loaded, .. } = prepared;
    let effort = measured::Effort {
        budget_s: budget(subject.annotation, tuner.settings.budget),
        most: tuner.settings.candidates,
        sanitize: tuner.settings.sanitize,
    };
    let has_workload = tuner.measurer.is_some() && subject.annotation.has_workload();
    let can_measure = has_workload && *loaded != Loaded::Nothing;
    if let Some(device) = tuner.measurer.as_ref().map(|measurer| measurer.device()).filter(|_| has_workload) {
        let gpu = format!("{} (sm_{})", device.name, device.compute_capability);
        match loaded {
            Loaded::Cubin => {}
            Loaded::Ptx => decision.notes.push(format!(
                "timed as the driver compiles its PTX: this call makes no machine code that the {gpu} runs"
            )),
            Loaded::Nothing => {
                let note = format!("not timed, the model chooses: the {gpu} runs no machine code of this call");
                tuner.console.warning(&format!("{}: {note}", decision.name));
                decision.notes.push(note);
            }
        }
    }
    let device = tuner.measurer.as_ref().map(|measurer| measurer.device());
    if let Some(problem) = device.filter(|_| can_measure).and_then(|device| beyond_memory(subject, scored, device)) {
        decision.notes.push(problem.message.clone());
        tuner.console.diagnostics(&[problem]);
    } else if let Some(measurer) = tuner.measurer.as_mut().filter(|_| can_measure) {
        match measured::decide(scored, effort, measurer, decision) {
            Ok(()) => {
                if decision.provenance == Provenance::Measured {
                    probe_surplus(subject, scored, measurer, decision);
                }
                for note in &decision.notes {
                    tuner.console.warning(&format!("{}: {note}", decision.name));
                }
                return false;
            }
            Err(error) => {
                let instead = if matches!(error, measure::Error::Baseline(_)) { "" } else { ", the model chooses" };
                tuner.console.warning(&format!("{}: not timed{instead}: {error}", decision.name));
                decision.notes.push(error.to_string());
                // A workload that the kernel cannot run on as it stands tells nothing of its variants either.
                if matches!(error, measure::Error::Baseline(_)) {
                    return false;
                }
            }
        }
    } else if tuner.measurer.is_some() && !has_workload {
        decision.notes.push("not timed: the comment has no `args` clause".to_owned());
    }
    decision.device = None;
    let allowed = |&index: &usize| {
        let configuration = &scored.laid.configurations[index];
        subject.reach.refuses_predicted(&subject.space, configuration, &scored.laid.launches[index]).is_none()
    };
    let choices: Vec<usize> = scored.choices(decision.strategy).into_iter().filter(allowed).collect();
    if let Some(winner) = scored.predicted_winner(&choices) {
        let time = |index: usize| scored.scores[index].as_ref().map_or(f64::NAN, |score| score.predicted_us);
        decision.provenance = Provenance::Predicted;
        decision.winner = winner;
        decision.speedup = time(scored.laid.baseline) / time(winner);
    }
    true
}

/// The points that may not be chosen, by reason. `by_model`: nothing was timed.
fn held(Prepared { subject, variants, scored, .. }: &Prepared<'_>, by_model: bool) -> Vec<Held> {
    let laid = &scored.laid;
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for (index, configuration) in laid.configurations.iter().enumerate() {
        if index == laid.baseline {
            continue;
        }
        // That a launch cannot be so at all comes before what is wrong with its code; points that were not compiled may no more be
        // chosen than those that were.
        let by_launch = || subject.reach.refuses_predicted(&subject.space, configuration, &laid.launches[index]);
        let by_code = || laid.variants[index].clone().err().filter(|_| variants.of(configuration).is_ok());
        let reason = if by_model { by_launch().or_else(by_code) } else { by_code() };
        if let Some(reason) = reason {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    let mut held: Vec<Held> = reasons.into_iter().map(|(reason, points)| Held { reason, points }).collect();
    held.sort_by_key(|held| std::cmp::Reverse(held.points));
    held
}

/// Launches the winner with one more block in each dimension in which a launch of the program may have threads beyond the
/// baseline's: where the results are the same, such launches may be reshaped too.
fn probe_surplus(subject: &Subject<'_>, scored: &Scored, measurer: &mut measure::Pool, decision: &mut Decision) {
    let surplus = subject.reach.surplus(&subject.space, &scored.laid.configurations[decision.winner]);
    if surplus == [false; 3] {
        return;
    }
    match measured::bears_surplus(&scored.laid, decision.winner, surplus, measurer) {
        Ok(None) => decision.surplus = true,
        Ok(Some(reason)) => decision.notes.push(format!(
            "launches of threads that its block does not divide are not reshaped: with threads beyond those, {reason}"
        )),
        Err(error) => {
            decision.notes.push(format!("launches of threads that its block does not divide are not reshaped: {error}"))
        }
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

/// Seconds of GPU time: those of the comment, else `default`.
pub fn budget(annotation: &Annotation, default: f64) -> f64 {
    annotation.budget.unwrap_or(default)
}

/// The strategy of the comment, else `default`.
pub fn strategy(annotation: &Annotation, default: Strategy) -> Strategy {
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
    ahead: Ahead,
) -> Result<Subject<'a>, Problem> {
    let name = toolchain.architecture();
    let unknown = || Problem::Architecture(name.to_owned());
    let architecture = architecture_number(name).and_then(Architecture::find).ok_or_else(unknown)?;
    let machine = machine(tuner, architecture);
    let unbounded = Space::new(annotation, &host::limits(&architecture, None))?;
    unbounded.check_size()?;
    let baseline = unbounded.baseline().clone();
    // All at once, for as long as there are cores: one after the other each would wait for the one before.
    let kept = tuner.kept.get(&annotation.name).cloned();
    let planned = match (&kept, ahead) {
        (Some(kept), _) => vec![kept.clone()],
        (None, Ahead::Baseline) => vec![baseline.macros.clone()],
        (None, Ahead::FirstRound) => effort(tuner, toolchain, annotation).first_round(unbounded.macro_sets()),
    };
    let own = kept.as_ref().unwrap_or(&baseline.macros);
    let planned: Vec<Macros> = planned.iter().map(|set| merged(in_force.now, set)).collect();
    let (plain, _) = rayon::join(
        || (kept.is_none() && !baseline.macros.is_empty()).then(|| toolchain.source_digest(&Macros::new())),
        || front_ends.get(&planned),
    );
    let full = merged(in_force.now, own);
    let front_end = one(front_ends, &full)?;
    let entries = workload::entries(&front_end.stub);
    if annotation.instance.is_none() && !entries.iter().any(|entry| entry.name() == annotation.kernel.name) {
        return Err(Problem::Absent);
    }
    let mut entry = find(toolchain, annotation, &entries, own, &full)?;
    entry.layouts = layouts(toolchain, annotation, &entry, &full)?;
    let module = ptx::Module::parse(&front_end.ptx)?;
    if plain.is_some_and(|plain| !is_plain(front_ends, plain.ok(), in_force.baselines, &entry.symbol)) {
        return Err(Problem::Default { configuration: baseline });
    }
    let bounds = module.entry(&entry.symbol).and_then(launch_bounds);
    let space = Space::new(annotation, &host::limits(&architecture, bounds))?;
    let reach = match tuner.surroundings() {
        Some(around) => Reach::new(annotation, &space, &module, &entry, around),
        None => Reach::header(),
    };
    Ok(Subject { annotation, entry, entries: HashMap::new(), space, machine, reach, kept })
}

/// The entry of an annotation. Template arguments that are not told by their text are asked of the compiler; `full` are the
/// macros that it is given.
fn find(
    toolchain: &Toolchain,
    annotation: &Annotation,
    entries: &[Entry],
    macros: &Macros,
    full: &Macros,
) -> Result<Entry, Box<Diagnostic>> {
    let problem = match workload::find(entries, annotation, macros, &Spelled::new()) {
        Ok(entry) => return Ok(entry.clone()),
        Err(problem) if annotation.instance.is_none() => return Err(problem),
        Err(problem) => problem,
    };
    // A source that the preprocessor cannot read has no entries.
    let definitions = toolchain.definitions(full).unwrap_or_default();
    // C++17's word for a value of any type; before it integers are all that can be asked for.
    for value_type in ["auto", "long long"] {
        let Some(question) = alias::question(annotation, entries, full, &definitions, value_type) else { break };
        if let Ok(stub) = toolchain.ask(full, &question) {
            return workload::find(entries, annotation, macros, &alias::answer(&stub)).cloned();
        }
    }
    Err(problem)
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
        // What has no name in the source cannot be asked for, and takes no value.
        Err(ToolError::Failed { .. }) if !annotation.has_structures() => Ok(BTreeMap::new()),
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
    tuner: &Tuner<'_>,
    toolchain: &Toolchain,
    front_ends: &mut FrontEnds<'_>,
    subject: &Subject<'_>,
    in_force: &Macros,
) -> Result<(), Problem> {
    let baseline = subject.space.baseline();
    let module = ptx::Module::parse(&one(front_ends, &merged(in_force, &baseline.macros))?.ptx)?;
    let (launch, workload) = subject.launch(baseline)?;
    let run = workload.as_ref().map(|workload| (&launch, workload));
    let facts = facts::facts(&module, &subject.entry.symbol, toolchain.register_cap(), run);
    let mut found = comment::advice(subject.annotation, &subject.space, &facts);
    found.extend(tuner.surroundings().and_then(|around| launches::beside_the_baseline(subject, around)));
    tuner.console.diagnostics(&found);
    Ok(())
}

fn one(front_ends: &mut FrontEnds<'_>, macros: &Macros) -> Result<Arc<FrontEnd>, Problem> {
    match front_ends.get(std::slice::from_ref(macros)).pop() {
        Some(made) => made.map_err(|error| match at_fault(front_ends, macros, &error) {
            Some(macros) => Problem::Macros { macros, error },
            None => Problem::Source(error),
        }),
        None => Err(Problem::Tool(Arc::new(ToolError::NoKernel(String::new())))),
    }
}

/// Of macros under which the front end fails those that make it fail alone, or all where none does; `None` where it fails without
/// any of them.
fn at_fault(front_ends: &mut FrontEnds<'_>, macros: &Macros, error: &ToolError) -> Option<Macros> {
    // What comes after cicc has seen a source that cicc took.
    let is_source =
        matches!(error, ToolError::Failed { program, .. } if ["gcc -E", "cicc"].contains(&program.as_str()));
    if !is_source || macros.is_empty() || front_ends.get(&[Macros::new()]).iter().any(Result::is_err) {
        return None;
    }
    let alone: Vec<Macros> = macros.iter().map(|(name, value)| Macros::from([(name.clone(), *value)])).collect();
    let failing = alone.iter().zip(front_ends.get(&alone)).filter(|(_, made)| made.is_err());
    let failing: Macros = failing.flat_map(|(set, _)| set.clone()).collect();
    Some(if failing.is_empty() { macros.clone() } else { failing })
}

/// The threads that a block may have by `.maxntid` or must have by `.reqntid`.
fn launch_bounds(entry: &ptx::Function) -> Option<u32> {
    let bound = entry.directives.iter().find(|directive| matches!(&*directive.name, ".maxntid" | ".reqntid"))?;
    u32::try_from(bound.values.iter().product::<u64>()).ok()
}

/// Warns of launches in the source itself that know nothing of what was chosen.
pub fn warn_of_launches(tuner: &Tuner<'_>, subject: &Subject<'_>, chosen: &Configuration) {
    if let Some(around) = tuner.surroundings().filter(|_| subject.kept.is_none()) {
        tuner.console.diagnostics(&launches::beside_the_header(subject, around, chosen));
    }
}

/// How the note begins that says why launches are not reshaped.
pub const LAUNCHES_STAY: &str = "its launches stay as they are: ";

/// Says what keeps a kernel's launches from being reshaped, and which launches are not reached.
pub fn reach_notes(tuner: &Tuner<'_>, subject: &Subject<'_>) -> Vec<String> {
    let annotation = subject.annotation;
    match &subject.reach.way {
        Way::Header => Vec::new(),
        Way::Remap { .. } => {
            if let Some(around) = tuner.surroundings().filter(|_| subject.kept.is_none()) {
                tuner.console.diagnostics(&around.host.unreached(&annotation.kernel.name));
            }
            Vec::new()
        }
        Way::Pinned(reason) => {
            let baseline = subject.space.baseline();
            if subject.space.iter().all(|other| other.block == baseline.block && other.grid == baseline.grid) {
                return Vec::new();
            }
            let note = format!("{LAUNCHES_STAY}{reason}");
            if annotation.told_launch().is_some() && subject.kept.is_none() {
                tuner.console.diagnostics(&[annotation
                    .source
                    .warning(annotation.place("launch"), format!("`{}`: {note}", annotation.name))]);
            }
            vec![note]
        }
    }
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
