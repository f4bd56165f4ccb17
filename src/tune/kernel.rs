//! Tuning of one kernel: compile and score its space (`prepare`), draw up the decision (`draft`),
//! time the candidates (`time`), choose the winner (`conclude`).

use super::compile_space;
use super::compile_space::{CompileCallbacks, CompileScope, CompiledSpace};
use super::confirmation::OnContender;
use super::failure::Problem;
use super::fingerprint;
use super::kernel_info::{KernelInfo, UNCOMPARED_MATH};
use super::launch_path::MUST_DIVIDE;
use super::launches::pinned_notes;
use super::not_timed;
use super::outcome::Tuned;
use super::overlap::{OverlappedTiming, PlannedRound};
use super::scoring::Scored;
use super::scoring_input::ScoringInput;
use super::search_journal::SearchJournal;
use super::validity::Stores;
use super::variants::{Assembly, CompileFailure, FrontEnds, Variant, Variants, options_for};
use super::{Tuner, axes, timing};
use crate::comment::Annotation;
use crate::diag::{MessageCode, progress};
use crate::gpu::{Architecture, Machine};
use crate::launch::{Configuration, FrontEndOptions};
use crate::measure;
use crate::measure::{Candidate, Measurer, Options, ProcessPool};
use crate::model::Analysis;
use crate::nvcc::Toolchain;
use crate::nvcc::{FrontEndResult, Loaded};
use crate::process;
use crate::process::Permit;
use crate::record::{Decision, Fingerprint, HeldPoints, RecordedConfiguration, RecordedVariant, Seconds};
use crate::sass::Cubin;
use crate::search::{Provenance, Search};
use crate::settings::Strategy;
use crate::settings::Trust;
use crate::space::Space;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ScopedJoinHandle;
use std::time::Instant;

/// A kernel with its space compiled and scored.
pub struct Prepared<'a> {
    pub info: KernelInfo<'a>,
    pub variants: Variants,
    pub scored: Scored,
    /// The sets of front-end options that were compiled, and how many the space has.
    pub sets: (usize, usize),
    /// What that took.
    pub seconds: Seconds,
    /// The kernel's fingerprint, and the digest of its code for each set of options that was
    /// compiled: for lock file and cache.
    pub basis: Option<Fingerprint>,
    pub digests: Vec<(FrontEndOptions, String)>,
    /// What the front end made so far.
    pub front_ends: HashMap<FrontEndOptions, FrontEndResult>,
    /// Whether the GPU at hand loads the machine code, the PTX or neither.
    pub loaded: Loaded,
}

impl Prepared<'_> {
    /// Returns whether any of it is made of what device code needs of the source.
    pub fn is_of_device_code(&self) -> bool {
        self.front_ends.values().flatten().any(|made| made.is_of_device_code)
    }
}

/// How a kernel's space is compiled.
#[derive(Clone, Copy)]
pub struct PrepareOptions<'o> {
    /// Whether an earlier build could not tune the kernel: the baseline is compiled alone first.
    pub was_refused: bool,
    /// Whether a search follows, whose first round may be timed during the compile.
    pub is_searched: bool,
    /// When the work on the kernel began.
    pub begin: Instant,
    /// Receives the options that may win, as soon as they are predicted or timed.
    pub on_contender: Option<&'o OnContender<'o>>,
}

/// Compiles and scores the space of one kernel. Meanwhile a free GPU times its first round.
pub fn prepare<'a>(
    tuner: &mut Tuner<'_>,
    toolchain: &Toolchain,
    front_ends: &mut FrontEnds<'_>,
    mut info: KernelInfo<'a>,
    PrepareOptions { was_refused, is_searched, begin, on_contender }: PrepareOptions<'_>,
) -> Result<(Prepared<'a>, Option<OverlappedTiming>), Problem> {
    let loaded = toolchain.loaded(tuner.device_architecture());
    progress::begin(&info.annotation.name, budget(info.annotation, tuner.settings.budget));
    let effort = compile_scope(tuner, toolchain, info.annotation);
    // A GPU may have been asked for since.
    info.machine = machine(tuner, info.machine.architecture);
    // While a kernel before is on the GPU, the measuring process is lent to who times it.
    let lent = Mutex::new(tuner.measurer.take().map(|measurer| (measurer, baseline_to_preload(tuner, &info, loaded))));
    let preload = |assembly: &Assembly| {
        let mut lent = lent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((measurer, Some(baseline))) = lent.as_mut() {
            baseline.cubin = Arc::clone(&assembly.cubin);
            baseline.kernel.clone_from(&assembly.symbol);
            measurer.prepare_baseline(baseline);
        }
    };
    let strategy = strategy(info.annotation, tuner.settings.strategy);
    let (most, budget_s) = (tuner.settings.candidates, budget(info.annotation, tuner.settings.budget));
    let has_early_first_round = is_searched && Search::has_early_first_round(strategy, most);
    let basis = tuner.results.and_then(|_| fingerprint::for_kernel(&info, front_ends, toolchain));
    let name = info.annotation.name.as_str();
    let (lookup, device) = (tuner.lookup(toolchain, info.annotation), tuner.device());
    let cache = tuner.results.and_then(|results| results.cache.clone());
    let is_trusted = tuner.settings.trust != Trust::Nothing;
    let is_compiled = AtomicBool::new(false);
    let macros = info.space.baseline().macros.clone();
    let on_contender = |set: &FrontEndOptions| {
        if let Some(on_contender) = on_contender {
            on_contender(&options_for(&macros, set));
        }
    };
    let (explored, early, overtime) = std::thread::scope(|scope| {
        let mut thread = None;
        let mut time_first_round = |scored: Scored| {
            let mut lent = lent.lock().unwrap_or_else(PoisonError::into_inner);
            let planned = PlannedRound::new(name, scored, strategy, most, budget_s * (1.0 - COMPILE_SHARE));
            let Some(planned) = planned else { return };
            let Some((measurer, ahead)) = lent.take_if(|(_, ahead)| ahead.is_some()) else { return };
            let place = lookup.as_ref().zip(basis.as_ref()).zip(device);
            let place = place.and_then(|((lookup, basis), device)| lookup.search(planned.input(), basis, device));
            let planned = planned.with_journal(cache.clone().zip(place), is_trusted);
            let (is_compiled, on_contender) = (&is_compiled, &on_contender);
            let begun =
                process::spawn_or_return(scope, (measurer, ahead, planned), move |(mut measurer, _, planned)| {
                    let early = planned.time(&mut measurer, is_compiled);
                    if let Some(leader) = early.as_ref().and_then(OverlappedTiming::leader) {
                        on_contender(&leader.front_end());
                    }
                    (measurer, early)
                });
            match begun {
                Ok(begun) => thread = Some(begun),
                // All is timed once all is compiled.
                Err((measurer, ahead, _)) => *lent = Some((measurer, ahead)),
            }
        };
        let first_round: Option<&mut dyn FnMut(Scored)> =
            if has_early_first_round { Some(&mut time_first_round) } else { None };
        let callbacks = CompileCallbacks { on_baseline: &preload, on_contender: &on_contender, first_round };
        let explored = compile_space::explore(front_ends, toolchain, &mut info, (effort, was_refused), callbacks);
        is_compiled.store(true, Ordering::Relaxed);
        let clock = Instant::now();
        let early = thread.and_then(|thread: ScopedJoinHandle<'_, (ProcessPool, Option<OverlappedTiming>)>| {
            let (measurer, early) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            *lent.lock().unwrap_or_else(PoisonError::into_inner) = Some((measurer, None));
            early
        });
        (explored, early, clock.elapsed().as_secs_f64())
    });
    if let Some((measurer, _)) = lent.into_inner().unwrap_or_else(PoisonError::into_inner) {
        tuner.measurer = Some(measurer);
    }
    // Nobody goes on from what was timed early where the rest cannot be compiled.
    let explored = explored.inspect_err(|_| process::set_last_words(None))?;
    let CompiledSpace { variants, mut scored, sets, model } = explored;
    let model = model.as_secs_f64();
    let compile = begin.elapsed().as_secs_f64() - model - overtime;
    let waited = early.as_ref().map_or(0.0, |early| early.waited.as_secs_f64().min(overtime));
    let seconds = Seconds { compile, model, measure: overtime, waited };
    if will_time(tuner, toolchain, info.annotation) && loaded == Loaded::Ptx {
        send_ptx(&mut scored, &variants, &info, front_ends);
    }
    let mut digests = Vec::new();
    if tuner.results.is_some() {
        digests = fingerprint::set_digests(&info, front_ends, info.space.front_ends());
    }
    let front_ends = front_ends.all();
    Ok((Prepared { info, variants, scored, sets, seconds, basis, digests, front_ends, loaded }, early))
}

/// Divisor of the GPU's memory that gives how much may be allocated before the GPU is claimed:
/// other processes may measure on it at that time.
pub(super) const AHEAD_SHARE: u64 = 16;

/// Returns the baseline, without its code, whose buffers the measuring process fills during the
/// compile. `None` if the GPU does not load the machine code or the buffers are too large.
fn baseline_to_preload(tuner: &Tuner<'_>, info: &KernelInfo<'_>, loaded: Loaded) -> Option<Candidate> {
    let device = tuner.device().filter(|_| loaded == Loaded::Cubin)?;
    let baseline = info.baseline();
    let (launch, workload) = info.launch(&baseline).ok()?;
    let workload = workload.filter(|found| found.bytes() <= device.memory_bytes / AHEAD_SHARE)?;
    // What there is no room for is not timed at all.
    if not_timed::exceeds_memory(&info.annotation.name, &workload, device).is_some() {
        return None;
    }
    let (label, workload) = (baseline.to_string(), Arc::new(workload));
    let cooperative = info.waits_for_grid;
    Some(Candidate {
        id: 0,
        label,
        cubin: Arc::from([]),
        kernel: String::new(),
        launch,
        cooperative,
        needs_comparison: false,
        workload,
    })
}

/// Shares of a budget for compiling variants, and of it for the front end. Timing has the rest,
/// at least half. A tool that is running when its share is spent is not stopped.
pub const COMPILE_SHARE: f64 = 0.5;
pub const FRONT_END_SHARE: f64 = 0.3;

/// Tells whether candidates of a kernel are timed by this build, as far as that is known.
pub fn will_time(tuner: &Tuner<'_>, toolchain: &Toolchain, annotation: &Annotation) -> bool {
    let can_time = match tuner.device_architecture() {
        Some(device) => toolchain.loaded(Some(device)) != Loaded::Nothing,
        None => tuner.is_starting(),
    };
    can_time && annotation.has_workload()
}

/// Returns how much of a kernel's space is compiled: all of it if it will be timed.
pub(super) fn compile_scope(tuner: &Tuner<'_>, toolchain: &Toolchain, annotation: &Annotation) -> CompileScope {
    let strategy = strategy(annotation, tuner.settings.strategy);
    let timed = will_time(tuner, toolchain, annotation);
    if timed || strategy == Strategy::Es {
        CompileScope::Whole
    } else {
        CompileScope::Screened { kernels: tuner.kernels }
    }
}

pub(super) fn machine(tuner: &Tuner<'_>, architecture: Architecture) -> Machine {
    match tuner.device() {
        Some(device) => Machine::from_device(architecture, device),
        None => Machine::flagship_of(architecture),
    }
}

/// A decision before its winner is chosen.
pub struct Draft {
    decision: Decision,
    /// Notes on its launches.
    notes: Vec<String>,
}

/// The result of timing.
pub struct Timed {
    result: Result<(), measure::Error>,
    /// Why the journal of the search could not be written.
    unkept: Option<String>,
}

/// Draws up the decision for a kernel, with the baseline as its winner, and returns the limits of
/// its search; `None` if the model decides.
pub fn draft<'a>(
    tuner: &Tuner<'_>,
    toolchain: &'a Toolchain,
    prepared: &Prepared<'_>,
) -> (Draft, Option<timing::SearchLimits<'a>>) {
    let Prepared { info, variants, scored, sets, seconds, .. } = prepared;
    let annotation = info.annotation;
    let strategy = strategy(annotation, tuner.settings.strategy);
    let candidates = scored.candidates(strategy);
    let mut decision = Decision {
        name: annotation.name.clone(),
        symbol: info.entry.symbol.clone(),
        architecture: toolchain.architecture().to_owned(),
        device: tuner.device().cloned(),
        strategy,
        baseline: scored.input.baseline,
        winner: scored.input.baseline,
        speedup: 1.0,
        points: scored.input.configurations.len(),
        seconds: *seconds,
        notes: screening_note(&info.space, *sets),
        stale: info.stale.clone(),
        variants: variants.all.iter().map(recorded_variant).collect(),
        configurations: recorded(scored, &candidates),
        ..Decision::default()
    };
    let notes = pinned_notes(tuner, info);
    let budget_s = budget(annotation, tuner.settings.budget);
    decision.notes.extend(cut_note(prepared, budget_s));
    decision.notes.extend(idle_macros_note(prepared));
    // What was timed early during the compile is none of this; what it took longer than the
    // compiler is.
    let (compiled, timed) = (seconds.compile + seconds.model, seconds.measure - seconds.waited);
    let effort = can_time(tuner, prepared, &mut decision).then(|| timing::SearchLimits {
        budget_s: (budget_s - compiled).max(budget_s * (1.0 - COMPILE_SHARE)) - timed,
        most: tuner.settings.candidates,
        sanitize: tuner.settings.sanitize.then(|| Options::new(tuner.settings).ok()).flatten(),
        // What the driver compiles is not edited.
        toolchain: (prepared.loaded == Loaded::Cubin).then_some(toolchain),
        on_contender: None,
    });
    (Draft { decision, notes }, effort)
}

/// Times the candidates of a kernel. Results go into the draft, and into the journal at once.
pub fn time(
    prepared: &Prepared<'_>,
    (mut draft, early): (Draft, Option<OverlappedTiming>),
    (effort, permit): (timing::SearchLimits<'_>, Option<Permit>),
    measurer: &mut measure::ProcessPool,
    mut journal: SearchJournal<'_>,
) -> (Draft, Timed) {
    let clock = Instant::now();
    let decision = &mut draft.decision;
    let Prepared { info, scored, .. } = prepared;
    let result = timing::decide((info, scored), early, (effort, permit), measurer, &mut journal, decision);
    decision.seconds.measure += clock.elapsed().as_secs_f64();
    (draft, Timed { result, unkept: journal.close() })
}

/// Decides for one kernel: by its times if it was timed, else by the model.
pub fn conclude(
    tuner: &Tuner<'_>,
    toolchain: &Toolchain,
    prepared: &Prepared<'_>,
    Draft { mut decision, notes }: Draft,
    timed: Option<Timed>,
) -> Result<Tuned, Problem> {
    let Prepared { info, scored, .. } = prepared;
    let by_model = choose(tuner, prepared, timed, &mut decision);
    if by_model && let Some(note) = idle_macros_note(prepared) {
        tuner.console.warning_as_kept(&format!("{}: {note}", decision.name));
    }
    decision.unused = unused_macros(prepared);
    axes::warn_unused_macros(tuner, prepared.info.annotation, &decision.unused);
    decision.held = excluded_points(prepared, by_model);
    record_parts(scored, &mut decision);
    decision.notes.extend(notes);
    let mut tuned = Tuned::new(toolchain, info, scored, decision);
    tuned.decision.thin();
    Ok(tuned)
}

/// Replaces the machine code of each variant by its PTX for timing, for a GPU that cannot load
/// the machine code.
fn send_ptx(scored: &mut Scored, variants: &Variants, info: &KernelInfo<'_>, front_ends: &FrontEnds<'_>) {
    for (code, variant) in scored.input.codes.iter_mut().zip(&variants.all) {
        // The PTX that is embedded is nvcc's own: register caps and cache operators are in the
        // machine code alone.
        if let Some(made) = front_ends.made(&info.options(&variant.options)) {
            code.cubin = Arc::from(made.ptx.as_bytes());
        }
    }
}

/// Tells whether a kernel's candidates are timed. Notes why not, and whether the driver compiles
/// the code that is timed.
fn can_time(tuner: &Tuner<'_>, prepared: &Prepared<'_>, decision: &mut Decision) -> bool {
    let Prepared { info, scored, loaded, .. } = prepared;
    let Some(device) = tuner.device() else {
        decision.lacks = tuner.has_no_gpu.then(|| "no GPU was found".to_owned());
        return false;
    };
    if !info.annotation.has_workload() {
        let reason = match &info.annotation.clauses.args {
            None => "the comment has no `args` clause",
            Some(_) => "`args` does not give all parameters",
        };
        decision.note(MessageCode::NoWorkload, format!("not timed: {reason}"));
        decision.lacks = Some(reason.to_owned());
        return false;
    }
    let gpu = format!("{} (sm_{})", device.name, device.compute_capability);
    let without_code = match loaded {
        Loaded::Cubin => None,
        Loaded::Ptx => {
            let note = "timed as compiled by the driver: this call makes no machine code for the";
            decision.note(MessageCode::DriverCompiled, format!("{note} {gpu}"));
            None
        }
        Loaded::Nothing => Some(not_timed::without_code(&gpu)),
    };
    let workload = scored.input.workloads[scored.input.baseline].as_deref();
    let exceeds_memory = || not_timed::exceeds_memory(&info.annotation.name, workload?, device);
    let Some(found) = without_code.or_else(exceeds_memory) else { return true };
    found.report(tuner.console, info.annotation, decision);
    false
}

/// Takes the result of timing; without one the model chooses. Returns whether the model chose.
fn choose(tuner: &Tuner<'_>, prepared: &Prepared<'_>, timed: Option<Timed>, decision: &mut Decision) -> bool {
    let Prepared { info, scored, .. } = prepared;
    if let Some(Timed { result, unkept }) = timed {
        if let (Some(results), Some(problem)) = (tuner.results, unkept) {
            results.write(tuner.console, |_| Err(problem));
        }
        match result {
            Ok(()) => {
                for note in &decision.notes {
                    tuner.console.warning_as_kept(&format!("{}: {note}", decision.name));
                }
                return false;
            }
            Err(error) => match not_timed::by_baseline(&error) {
                // A workload that the kernel cannot run on as it stands tells nothing of its
                // variants either.
                Some(found) => {
                    found.report(tuner.console, info.annotation, decision);
                    return false;
                }
                None => {
                    let message = format!("{}: not timed, the model chooses: {error}", decision.name);
                    tuner.console.warning(error.code(), message);
                    decision.note(error.code(), &error);
                    decision.provisional = true;
                }
            },
        }
    }
    decision.device = None;
    let stores = Stores::new(scored);
    let allowed = |&index: &usize| {
        let configuration = &scored.input.configurations[index];
        info.refuses_predicted(configuration, &scored.input.launches[index]).is_none()
            && stores.undone_work(index).is_none()
    };
    let choices: Vec<usize> = scored.choices(decision.strategy).into_iter().filter(allowed).collect();
    let promises = scored.promises(&choices);
    for (index, promise) in &promises {
        decision.configurations[*index].promised = Some(promise.gain);
    }
    if let Some((winner, gain)) = scored.predicted_winner(&promises) {
        decision.provenance = Provenance::Predicted;
        decision.winner = winner;
        decision.speedup = gain;
    }
    true
}

/// Counts the points that may not be chosen, by reason. `by_model`: nothing was timed.
fn excluded_points(Prepared { info, variants, scored, .. }: &Prepared<'_>, by_model: bool) -> Vec<HeldPoints> {
    let input = &scored.input;
    let stores = by_model.then(|| Stores::new(scored));
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    // Whether another block than the baseline's may be chosen.
    let mut moves = false;
    for (index, configuration) in input.configurations.iter().enumerate() {
        if index == input.baseline {
            continue;
        }
        // That a launch cannot be so at all comes before what is wrong with its code; points that
        // were not compiled may no more be chosen than those that were.
        let refuses = || info.refuses_predicted(configuration, &input.launches[index]);
        let by_launch = || refuses().or_else(|| stores.as_ref()?.undone_work(index));
        let is_looked_at = || variants.of(configuration).is_ok();
        let by_code = || input.variants[index].clone().err().filter(|_| is_looked_at());
        let reason = if by_model { by_launch().or_else(by_code) } else { by_code() };
        match reason {
            Some(reason) => *reasons.entry(reason).or_default() += 1,
            None => moves |= configuration.block != input.configurations[input.baseline].block,
        }
    }
    let held = reasons.into_iter().map(|(reason, points)| {
        let quiet = moves && reason == MUST_DIVIDE || reason == UNCOMPARED_MATH;
        HeldPoints { reason, points, quiet }
    });
    let mut held: Vec<HeldPoints> = held.collect();
    held.sort_by_key(|held| std::cmp::Reverse(held.points));
    held
}

/// Seconds for compiling and timing variants: those of the comment, else `default`.
pub fn budget(annotation: &Annotation, default: f64) -> f64 {
    annotation.clauses.budget.unwrap_or(default)
}

/// The strategy of the comment, else `default`.
pub fn strategy(annotation: &Annotation, default: Strategy) -> Strategy {
    annotation.clauses.strategy.as_deref().and_then(|name| name.parse().ok()).unwrap_or(default)
}

/// What the record says where not every set of macros and factors of loops was compiled.
fn screening_note(space: &Space, (compiled, sets): (usize, usize)) -> Vec<String> {
    let what = if space.unroll().len() > 1 { "macros and factors" } else { "macros" };
    let note =
        format!("{compiled} of {sets} sets of {what} were compiled: strategy es compiles all, and so does a GPU");
    if compiled < sets { vec![MessageCode::MacrosScreened.tag(note)] } else { Vec::new() }
}

/// What the record says where the budget did not suffice to compile all.
fn cut_note(Prepared { variants, scored, .. }: &Prepared<'_>, budget_s: f64) -> Option<String> {
    let of = &scored.input.configurations;
    let cut = of.iter().filter(|found| variants.failure(found) == Some(&CompileFailure::OutOfTime)).count();
    let remedy = "a larger budget (NVTUNE_BUDGET, budget(...)) compiles more";
    (cut > 0).then(|| {
        let all = of.len();
        let note = format!("{cut} of {all} points were not compiled in half of the budget of {budget_s} s: {remedy}");
        MessageCode::BudgetCut.tag(note)
    })
}

/// Returns a note if only the baseline's values of the macro axes compile, with the reason.
fn idle_macros_note(Prepared { info, variants, scored, .. }: &Prepared<'_>) -> Option<String> {
    let baseline = info.baseline().macros;
    let others = || scored.input.configurations.iter().filter(|found| found.macros != baseline);
    if others().any(|found| variants.of(found).is_ok() || variants.failure(found) == Some(&CompileFailure::OutOfTime)) {
        return None;
    }
    let first = others().find_map(|found| Some((&found.macros, variants.failure(found)?)));
    first.map(|(macros, reason)| {
        let values = FrontEndOptions::from(macros.clone());
        let reason = match reason {
            CompileFailure::Source { said, .. } => said.clone(),
            CompileFailure::OutOfTime | CompileFailure::Code(_) => reason.to_string(),
        };
        let note = "its macros are varied in vain: no value but the baseline's gives code";
        MessageCode::MacrosInVain.tag(format!("{note}, with {values} because {reason}"))
    })
}

/// Returns the macros whose values change neither the kernel's code nor its launch. A block that
/// is tied to the macro does not count.
fn unused_macros(Prepared { info, scored, .. }: &Prepared<'_>) -> Vec<String> {
    let tied = info.space.tied_macros();
    let axes = info.annotation.clauses.macros.iter().filter(|axis| axis.values.len() > 1);
    let unused = axes.filter(|axis| is_inert(&scored.input, &axis.name, tied.contains(&axis.name)));
    unused.map(|axis| axis.name.clone()).collect()
}

/// Tells whether all values of a macro, with everything else as in the baseline, give the same
/// code and, unless the block is tied to the macro, the same launch.
fn is_inert(input: &ScoringInput, name: &str, is_tied: bool) -> bool {
    let baseline = &input.configurations[input.baseline];
    let is_other_in_it_alone = |found: &Configuration| {
        let is_like = |(other, value): (&String, &i64)| other == name || baseline.macros.get(other) == Some(value);
        let has_shape = is_tied || (found.block, found.grid) == (baseline.block, baseline.grid);
        let rest = |of: &Configuration| (of.cap, of.cache, of.carveout, of.math, of.unroll);
        has_shape && rest(found) == rest(baseline) && found.macros.iter().all(is_like)
    };
    let code = |index: usize| Some(&input.codes.get(*input.variants[index].as_ref().ok()?)?.digest);
    let is_launched_alike = |index: usize| {
        input.launches[index] == input.launches[input.baseline]
            && input.workloads[index] == input.workloads[input.baseline]
            && input.trips[index] == input.trips[input.baseline]
    };
    let is_same = |index: usize| {
        code(index).is_some() && code(index) == code(input.baseline) && (is_tied || is_launched_alike(index))
    };
    let found: Vec<usize> =
        (0..input.configurations.len()).filter(|&index| is_other_in_it_alone(&input.configurations[index])).collect();
    found.len() > 1 && found.into_iter().all(is_same)
}

fn recorded(scored: &Scored, candidates: &[usize]) -> Vec<RecordedConfiguration> {
    let pareto: HashSet<usize> = scored.pareto().into_iter().collect();
    let candidates: HashSet<usize> = candidates.iter().copied().collect();
    let rows = scored.input.configurations.iter().enumerate().map(|(index, configuration)| RecordedConfiguration {
        configuration: configuration.clone(),
        launch: scored.input.launches[index],
        variant: scored.input.variants[index].as_ref().ok().copied(),
        score: scored.scores[index],
        // Configurations with the same machine code and launch are one point.
        pareto: pareto.contains(&scored.input.representative[index]),
        candidate: candidates.contains(&index),
        promised: None,
        timing: None,
        parts: None,
        refused: scored.input.variants[index].as_ref().err().cloned(),
    });
    rows.collect()
}

/// Notes the parts of the predicted times of winner and baseline.
fn record_parts(scored: &Scored, decision: &mut Decision) {
    for index in [decision.baseline, decision.winner] {
        // Code for exactly one block has no score of its own.
        let score = scored.scores.get(index).copied().flatten().filter(|score| score.predicted_us.is_finite());
        decision.configurations[index].parts = score.map(|score| score.terms);
    }
}

/// What a record says of a variant.
pub fn recorded_variant(variant: &Variant) -> RecordedVariant {
    let resources = Cubin::parse(&variant.cubin)
        .ok()
        .and_then(|cubin| cubin.kernels().first().map(|kernel| Analysis::new(kernel, None)))
        .map(|analysis| (analysis.resources.clone(), analysis.spills.loads + analysis.spills.stores));
    let (resources, spills) = resources.unwrap_or_default();
    RecordedVariant {
        macros: variant.options.macros.clone(),
        math: variant.options.math,
        unroll: variant.options.unroll,
        caps: variant.caps.clone(),
        cache: variant.cache,
        exact_block: None,
        shared_spills: false,
        coarsened: false,
        digest: variant.digest.clone(),
        registers: resources.registers,
        static_shared: resources.static_shared,
        stack: resources.stack_frame,
        spills,
    }
}
