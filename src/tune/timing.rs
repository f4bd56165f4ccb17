//! Candidates on the GPU: who wins.

use super::argument_conditions;
use super::kernel_info::Subject;
use super::overlap::{Early, Found as FoundEarly};
use super::scoring::Scored;
use super::scoring_input::Laid;
use super::search_journal::Logbook;
use crate::gpu::Conditions;
use crate::measure;
use crate::measure::verdict;
use crate::measure::verdict::Verdict;
use crate::measure::{Caches, Candidate, Error, Measurer, Options, Outcome, Plan, Reason, Timing, Trial, Unsanitized};
use crate::record::{Decision, Found, RecordedTiming};
use crate::search::Provenance;
use crate::space::Space;
use crate::workload;
use crate::workload::{Buffer, Fill, Workload};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// How many of the fastest candidates meet the baseline in paired rounds.
const FINALISTS: usize = 4;

/// Paired rounds: enough for a verdict at 99% on a difference of 1% where the noise is of that size.
pub const ROUNDS: u32 = 41;

/// What the measuring process is sent for these configurations, without those that have no code or no workload.
pub fn candidates(laid: &Laid, indices: &[usize]) -> (Vec<usize>, Vec<Candidate>) {
    indices.iter().filter_map(|&index| Some((index, candidate(laid, index)?))).unzip()
}

fn candidate(laid: &Laid, index: usize) -> Option<Candidate> {
    let code = &laid.codes[*laid.variants[index].as_ref().ok()?];
    Some(Candidate {
        id: u32::try_from(index).ok()?,
        label: laid.configurations[index].to_string(),
        cubin: Arc::clone(&code.cubin),
        kernel: code.symbol.clone(),
        launch: laid.launches[index],
        cooperative: laid.waits_for_grid,
        workload: Arc::clone(laid.workloads[index].as_ref()?),
    })
}

/// The baseline, as the measuring process is sent it.
pub fn baseline(laid: &Laid) -> Result<Candidate, Error> {
    candidate(laid, laid.baseline).ok_or_else(|| Error::Failed("the baseline has no workload".to_owned()))
}

/// Sets the decision's `surplus`: whether a winner may run on problems that its grid does not divide. The workload itself shows it if
/// every division of the grid leaves a remainder there; otherwise slightly smaller problems are tried. Returns why the winner cannot
/// be used on the workload itself.
fn has_remainders(
    subject: &Subject<'_>,
    laid: &Laid,
    winner: usize,
    measurer: &mut impl Measurer,
    decision: &mut Decision,
) -> Result<Option<String>, Error> {
    let configuration = &laid.configurations[winner];
    let remainders = argument_conditions::remainders(&subject.space, configuration);
    decision.surplus = false;
    // Where launches follow the header, they are the winner's own.
    if !subject.launch_path.reshapes() || remainders.is_empty() {
        return Ok(None);
    }
    if remainders.iter().all(|remainder| remainder.is_some_and(|rest| rest != 0)) {
        decision.surplus = true;
        return Ok(None);
    }
    // The baseline crashes on a smaller problem if the kernel has the size as a constant.
    let refused = bears_remainders(subject, laid, winner, measurer).unwrap_or_else(|error| Some(error.to_string()));
    decision.surplus = refused.is_none();
    let is_exact = remainders.iter().all(|remainder| *remainder == Some(0));
    Ok(refused.filter(|_| !is_exact && !subject.launch_path.accepts()).map(|reason| {
        let applies = argument_conditions::conditions_text(&subject.space, configuration);
        format!("it applies only to launches with {applies}: {reason}")
    }))
}

/// Returns why a configuration's results differ from the baseline's on problems that its grid does not divide; `None` if equal.
fn bears_remainders(
    subject: &Subject<'_>,
    laid: &Laid,
    index: usize,
    measurer: &mut impl Measurer,
) -> Result<Option<String>, Error> {
    let problems = argument_conditions::problems_with_remainders(&subject.space, &laid.configurations[index]);
    if problems.is_empty() {
        return Ok(Some("nothing is known: the workload has no smaller problem of its kind".to_owned()));
    }
    for (smaller, which) in problems.iter().zip(["a smaller problem", "another smaller problem"]) {
        let refused = bears(subject, laid, index, (smaller, which), measurer)?;
        if refused.is_some() {
            return Ok(refused);
        }
    }
    Ok(None)
}

/// Does the same for one smaller problem; `which` names it in labels.
fn bears(
    subject: &Subject<'_>,
    laid: &Laid,
    index: usize,
    (smaller, which): (&Space, &str),
    measurer: &mut impl Measurer,
) -> Result<Option<String>, Error> {
    let sent = |index: usize| {
        let (of, symbol) = (&laid.configurations[index], candidate(laid, index)?);
        let prepared = subject.launch_path.prepared(smaller, of);
        let entry = subject.entry(&of.macros).ok()?;
        let workload = workload::bind(smaller.annotation(), entry, smaller, &prepared).ok()?;
        let launch = smaller.launch(of).ok()?;
        let label = format!("{} on {which}", symbol.label);
        Some(Candidate { launch, label, workload: Arc::new(workload), ..symbol })
    };
    let (Some(baseline), Some(winner)) = (sent(laid.baseline), sent(index)) else {
        return Ok(Some("nothing is known: a smaller problem cannot be made".to_owned()));
    };
    let plan = Plan { rounds: 1, ..Plan::default() };
    let timings = measurer.time(&baseline, std::slice::from_ref(&winner), &plan)?;
    Ok(match timings.candidates.first() {
        Some(Outcome::Timed(_)) => None,
        Some(Outcome::Refused(reason)) => Some(reason.to_string()),
        Some(Outcome::Skipped) | None => Some("there was no time to try it".to_owned()),
    })
}

/// The fastest of the timed configurations: those that meet the baseline in paired rounds.
pub fn finalists(timed: &[(usize, f64)]) -> Vec<usize> {
    let mut ranked = timed.to_vec();
    ranked.sort_by(|a, b| a.1.total_cmp(&b.1));
    ranked.into_iter().take(FINALISTS).map(|(index, _)| index).collect()
}

/// The finalist that is surely faster than the baseline, and among several the fastest, with its gain; from samples of paired
/// rounds. `None`: the baseline stays.
pub fn settled<'a>(baseline: &[f64], finalists: impl IntoIterator<Item = (usize, &'a [f64])>) -> Option<(usize, f64)> {
    let mut best: Option<(usize, f64, f64)> = None;
    for (index, samples) in finalists {
        let Verdict::Faster { ratio } = verdict::faster(baseline, samples) else { continue };
        let time = median(samples);
        if best.is_none_or(|(_, least, _)| time < least) {
            best = Some((index, time, ratio));
        }
    }
    best.map(|(index, _, ratio)| (index, ratio))
}

/// What a search may take.
#[derive(Clone, Debug)]
pub struct Effort {
    /// Seconds.
    pub budget_s: f64,
    /// Configurations that are timed, the baseline among them.
    pub most: usize,
    /// How the measuring process is started where a winner is run under compute-sanitizer.
    pub sanitize: Option<Options>,
}

/// What may keep launches of more blocks than the baseline's from ending.
const MAY_WAIT: &str = "a launch of more blocks did not end: where blocks wait for each other, as in a barrier of the kernel's own, write launch(cooperative)";

/// As [`decide_on`]; notes besides how the GPU was, and how long it was waited for.
pub fn decide(
    (subject, scored): (&Subject<'_>, &Scored),
    early: Option<Early>,
    effort: Effort,
    measurer: &mut impl Measurer,
    logbook: &mut Logbook<'_>,
    decision: &mut Decision,
) -> Result<(), Error> {
    let waited = measurer.waited();
    // What earlier kernels saw is theirs.
    measurer.conditions();
    let conditions = early.as_ref().map(|early| early.conditions.clone()).unwrap_or_default();
    let decided = decide_on((subject, scored), early, effort, measurer, logbook, decision);
    decision.seconds.waited += (measurer.waited() - waited).as_secs_f64();
    decision.conditions = Some(conditions.and(measurer.conditions())).filter(Conditions::is_known);
    if let Some(conditions) = decision.conditions.as_ref().filter(|conditions| conditions.doubtful > 0) {
        let (doubtful, rounds) = (conditions.doubtful, conditions.rounds);
        let reasons = conditions.throttled.join(", ");
        decision.notes.push(format!("the GPU was throttled in {doubtful} of {rounds} rounds ({reasons})"));
    }
    // The claimed GPU may be another one of the same model.
    decision.device = Some(measurer.device().clone());
    decided
}

/// Times what the strategy sends, for at most so many seconds, but for what was timed early; then the fastest of it against the baseline
/// in paired rounds, and writes the outcome into the decision. In doubt the baseline stays.
fn decide_on<M: Measurer>(
    (subject, scored): (&Subject<'_>, &Scored),
    early: Option<Early>,
    Effort { budget_s, most, sanitize }: Effort,
    measurer: &mut M,
    logbook: &mut Logbook<'_>,
    decision: &mut Decision,
) -> Result<(), Error> {
    let laid = &scored.laid;
    let baseline = baseline(laid)?;
    let (clock, waited) = (Instant::now(), measurer.waited());
    let left = |measurer: &M| budget_s - (clock.elapsed() - (measurer.waited() - waited)).as_secs_f64();
    let mut tally = Tally::default();
    let early = early.map(|early| early.found(laid)).transpose()?;
    let mut earlier = HashMap::new();
    if logbook.has_earlier() {
        let timings = measurer.time(&baseline, &[], &Plan { budget_s, ..Plan::default() })?;
        tally.baseline(laid, decision, &timings.baseline);
        earlier = logbook.resume(&timings.baseline);
    }
    let mut begun = Vec::new();
    let mut timed_on = None;
    if let Some(FoundEarly { round, gpu, baseline, indices, outcomes }) = early {
        timed_on = Some((gpu, baseline.median_us));
        tally.baseline(laid, decision, &baseline);
        logbook.note(&indices, &[&[Outcome::Timed(baseline)], outcomes.as_slice()].concat());
        for (index, outcome) in indices.into_iter().zip(outcomes) {
            tally.outcome(laid, decision, index, outcome);
        }
        begun = round;
    }
    scored.search(decision.strategy, most, &begun, |round| {
        // The baseline is timed with every round; what is known already, or what there is no time for, is not sent.
        let mut unknown = Vec::new();
        for &index in round.iter().filter(|&&index| index != laid.baseline) {
            let row = &decision.configurations[index];
            if row.timing.is_some() || row.refused.is_some() {
                continue;
            }
            match earlier.remove(&index) {
                Some(found) => {
                    decision.resumed += 1;
                    tally.candidate(laid, decision, index, found);
                }
                None => unknown.push(index),
            }
        }
        let left = left(measurer);
        if tally.baseline_us.is_none() || !unknown.is_empty() && left > 0.0 {
            let (indices, sent) = candidates(laid, &unknown);
            let plan = Plan { budget_s: left.max(0.0), ..Plan::default() };
            let watch = &mut |outcomes: &[Outcome]| logbook.note(&indices, outcomes);
            let trial = Trial { baseline: &baseline, candidates: &sent, plan: &plan };
            let timings = measurer.time_watched(trial, watch)?;
            if let Some((gpu, before)) = timed_on.take()
                && gpu != measurer.device().uuid
            {
                tally.scale(timings.baseline.median_us / before);
            }
            tally.baseline(laid, decision, &timings.baseline);
            for (&index, outcome) in indices.iter().zip(timings.candidates) {
                tally.outcome(laid, decision, index, outcome);
            }
        }
        decision.timed = 1 + tally.ranked.len();
        Ok::<_, Error>(round.iter().map(|index| tally.times.get(index).copied()).collect())
    })?;
    tally.say_refused(decision);
    final_rounds((subject, laid), baseline, &tally.ranked, sanitize.as_ref(), measurer, decision)
}

/// Times the fastest and the baseline in paired rounds, and takes the fastest that nothing speaks against.
fn final_rounds(
    (subject, laid): (&Subject<'_>, &Laid),
    baseline: Candidate,
    ranked: &[(usize, f64)],
    sanitize: Option<&Options>,
    measurer: &mut impl Measurer,
    decision: &mut Decision,
) -> Result<(), Error> {
    let (finalists, mut contenders) = candidates(laid, &finalists(ranked));
    if finalists.is_empty() {
        return Ok(());
    }
    contenders.insert(0, baseline);
    let mut samples = measurer.duel(&contenders, ROUNDS, Caches::Cold)?.into_iter();
    let Some(reference) = samples.next().flatten() else { return Ok(()) };
    note_paired(decision, laid.baseline, &reference);
    let mut met: Vec<(usize, Vec<f64>)> =
        finalists.into_iter().zip(samples).filter_map(|(index, samples)| Some((index, samples?))).collect();
    for (index, samples) in &met {
        note_paired(decision, *index, samples);
    }
    while let Some((winner, ratio)) =
        settled(&reference, met.iter().map(|(index, samples)| (*index, samples.as_slice())))
    {
        let Some(Objection { by, reason }) = objection((subject, laid), (winner, ratio), sanitize, measurer, decision)?
        else {
            decision.winner = winner;
            decision.provenance = Provenance::Measured;
            decision.speedup = ratio;
            break;
        };
        decision.notes.push(format!("the fastest is refused{by}: {}: {reason}", laid.configurations[winner]));
        decision.configurations[winner].refused = Some(reason);
        met.retain(|(index, _)| *index != winner);
    }
    Ok(())
}

/// Why the fastest may not win.
struct Objection {
    /// Whose it is, behind "the fastest is refused".
    by: &'static str,
    reason: String,
}

/// What speaks against a winner that is faster than the baseline by this ratio, in the order of what it takes to find out. What could
/// not be looked at goes into the decision's notes.
fn objection(
    (subject, laid): (&Subject<'_>, &Laid),
    (winner, ratio): (usize, f64),
    sanitize: Option<&Options>,
    measurer: &mut impl Measurer,
    decision: &mut Decision,
) -> Result<Option<Objection>, Error> {
    if let Some(reason) = loses_warm(laid, (winner, ratio), measurer, decision)? {
        return Ok(Some(Objection { by: "", reason }));
    }
    match holds(laid, winner, measurer)? {
        Held::Well => {}
        Held::Unknown(reason) => decision.notes.push(format!(
            "{}: its results could not be compared for other contents of the buffers: {reason}",
            laid.configurations[winner]
        )),
        Held::Not(reason) => {
            return Ok(Some(Objection { by: " for other contents of the buffers", reason: reason.to_string() }));
        }
    }
    if let Some(reason) = has_remainders(subject, laid, winner, measurer, decision)? {
        return Ok(Some(Objection { by: "", reason }));
    }
    let Some((candidate, options)) = candidate(laid, winner).zip(sanitize) else { return Ok(None) };
    // The tool has a process of its own, which needs the GPU.
    measurer.rest();
    match measure::sanitize(&candidate, options) {
        Ok(problem) => Ok(problem.map(|reason| Objection { by: " by compute-sanitizer", reason })),
        Err(error) => {
            // Behind a runner it never will be.
            decision.provisional = !matches!(error, Unsanitized::Runner);
            decision.notes.push(format!("its winner is not sanitized: {error}"));
            Ok(None)
        }
    }
}

/// What came of the configurations so far.
#[derive(Default)]
struct Tally {
    /// Microseconds of the baseline when it was timed first.
    baseline_us: Option<f64>,
    /// Microseconds by index, the baseline's among them.
    times: HashMap<usize, f64>,
    /// Those of the candidates, in the order in which they came.
    ranked: Vec<(usize, f64)>,
    /// In words.
    refused: Vec<String>,
    /// Whether one of more blocks than the baseline's hung.
    may_wait: bool,
}

impl Tally {
    /// Notes what was refused, and why.
    fn say_refused(&self, decision: &mut Decision) {
        if let Some(first) = self.refused.first() {
            let rest = match self.refused.len() {
                1 => String::new(),
                all => format!(" (and {} more, see the record)", all - 1),
            };
            decision.notes.push(format!("candidate refused: {first}{rest}"));
        }
        if self.may_wait {
            decision.notes.push(MAY_WAIT.to_owned());
        }
    }

    fn baseline(&mut self, laid: &Laid, decision: &mut Decision, timing: &Timing) {
        if self.baseline_us.is_none() {
            self.baseline_us = Some(timing.median_us);
            record(laid, decision, laid.baseline, &timing.into());
        }
        self.times.insert(laid.baseline, timing.median_us);
    }

    /// Takes what was timed so far for times of another GPU, on which the baseline takes so many times as long.
    fn scale(&mut self, ratio: f64) {
        self.times.values_mut().for_each(|time| *time *= ratio);
        self.ranked.iter_mut().for_each(|(_, time)| *time *= ratio);
    }

    fn outcome(&mut self, laid: &Laid, decision: &mut Decision, index: usize, outcome: Outcome) {
        match outcome {
            Outcome::Timed(timing) => self.candidate(laid, decision, index, Found::Timed((&timing).into())),
            Outcome::Refused(reason) => {
                let more = laid.launches[index].blocks() > laid.launches[laid.baseline].blocks();
                self.may_wait |= more && !laid.waits_for_grid && matches!(reason, Reason::Hung { .. });
                self.candidate(laid, decision, index, Found::Refused(reason.to_string()));
            }
            Outcome::Skipped => decision.configurations[index].candidate = true,
        }
    }

    fn candidate(&mut self, laid: &Laid, decision: &mut Decision, index: usize, found: Found) {
        decision.configurations[index].candidate = true;
        match found {
            Found::Timed(timing) => {
                record(laid, decision, index, &timing);
                self.ranked.push((index, timing.median_us));
                self.times.insert(index, timing.median_us);
            }
            Found::Refused(reason) => {
                self.refused.push(format!("{}: {reason}", laid.configurations[index]));
                decision.configurations[index].refused = Some(reason);
            }
        }
    }
}

/// Why a winner is refused that was found with cold caches, where it is faster by this ratio: it is surely slower than the baseline
/// where a launch right before has filled them, or too much so for a gain over both. A program may call its kernel either way.
fn loses_warm(
    laid: &Laid,
    (winner, cold): (usize, f64),
    measurer: &mut impl Measurer,
    decision: &mut Decision,
) -> Result<Option<String>, Error> {
    let (indices, contenders) = candidates(laid, &[laid.baseline, winner]);
    let samples = measurer.duel(&contenders, ROUNDS, Caches::Warm)?;
    let [Some(baseline), Some(challenger)] = samples.as_slice() else {
        return Ok(Some("it or the default failed when it was launched again and again".to_owned()));
    };
    for (index, samples) in indices.into_iter().zip([baseline, challenger]) {
        if let Some(timing) = &mut decision.configurations[index].timing {
            timing.warm_us = Some(median(samples));
        }
    }
    let verdict = verdict::faster(challenger, baseline);
    let (Verdict::Faster { ratio } | Verdict::Slower { ratio } | Verdict::Ambiguous { ratio }) = verdict;
    Ok(if matches!(verdict, Verdict::Faster { .. }) {
        Some(format!("with warm caches it takes {ratio:.2} times as long as the default"))
    } else if (cold / ratio).sqrt() < verdict::MINIMUM_GAIN {
        let gain = 100.0 * (cold - 1.0);
        Some(format!(
            "with warm caches it takes {ratio:.3} times as long as the default, too much for a gain of {gain:.1}%"
        ))
    } else {
        None
    })
}

/// Whether a winner gives the baseline's results for other contents of the buffers too.
enum Held {
    Well,
    /// The baseline itself cannot run on them, or nobody could tell.
    Unknown(String),
    Not(Reason),
}

/// Mixed into the seeds of random contents for the second look at a winner.
const SECOND_SEED: u64 = 0x5eed_0002;

/// A workload with other random contents; `None` where nothing of it is random.
fn reseeded(workload: &Workload) -> Option<Workload> {
    let is_random = |buffer: &Buffer| matches!(buffer.fill, Fill::Random { .. });
    if !workload.all_buffers().any(is_random) {
        return None;
    }
    let mut other = workload.clone();
    other.reseed(SECOND_SEED);
    // The rest stays as it is, on the GPU too.
    for (buffer, known) in other.buffers.iter_mut().zip(&workload.buffers).filter(|(_, known)| !is_random(known)) {
        buffer.seed = known.seed;
    }
    Some(other)
}

/// Runs the baseline and a winner once more on random contents of another seed: an error that the first contents hide (a maximum
/// that was never searched for, a branch that was never taken) may show on them.
fn holds(laid: &Laid, winner: usize, measurer: &mut impl Measurer) -> Result<Held, Error> {
    let other = |index: usize| {
        let found = candidate(laid, index)?;
        let workload = reseeded(&found.workload)?;
        Some(Candidate { label: format!("{} seed=2", found.label), workload: Arc::new(workload), ..found })
    };
    // Where nothing is random there are no other contents.
    let (Some(baseline), Some(winner)) = (other(laid.baseline), other(winner)) else { return Ok(Held::Well) };
    let plan = Plan { rounds: 1, budget_s: f64::MAX, ..Plan::default() };
    match measurer.time(&baseline, &[winner], &plan) {
        Ok(timings) => Ok(match timings.candidates.into_iter().next() {
            Some(Outcome::Timed(_)) => Held::Well,
            Some(Outcome::Refused(reason)) => Held::Not(reason),
            Some(Outcome::Skipped) | None => Held::Unknown("there was no time".to_owned()),
        }),
        Err(Error::Baseline(reason)) => Ok(Held::Unknown(format!("the baseline {reason}"))),
        Err(error) => Err(error),
    }
}

/// A timing holds for every configuration with the same machine code and launch.
fn record(laid: &Laid, decision: &mut Decision, index: usize, timing: &RecordedTiming) {
    for (other, configuration) in decision.configurations.iter_mut().enumerate() {
        if laid.representative[other] == index {
            configuration.timing = Some(timing.clone());
        }
    }
}

fn note_paired(decision: &mut Decision, index: usize, samples: &[f64]) {
    if let Some(timing) = &mut decision.configurations[index].timing {
        timing.paired_us = Some(median(samples));
    }
}

fn median(samples: &[f64]) -> f64 {
    Timing::new(samples.to_vec()).map_or(f64::NAN, |timing| timing.median_us)
}
