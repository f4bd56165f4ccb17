//! The final rounds: the fastest configurations and the baseline are timed alternately, and the
//! fastest one that passes all checks wins.
//!
//! In: what the search timed. Out: the decision's winner. In doubt the baseline stays.

use super::argument_conditions;
use super::confirmation::OnContender;
use super::kernel_info::KernelInfo;
use super::refinement;
use super::scoring_input::ScoringInput;
use super::timing::{SearchClock, affordable_contenders, candidate, finalists, median, name_first, rounds, settled};
use crate::diag::MessageCode;
use crate::launch::{Configuration, Launch};
use crate::measure;
use crate::measure::verdict;
use crate::measure::verdict::Verdict;
use crate::measure::{
    Caches, Candidate, Error, LAST_VERDICT, Measurer, MemcheckError, Options, Outcome, Plan, Reason, medians_by_set,
};
use crate::nvcc::Toolchain;
use crate::process::Permit;
use crate::record::Decision;
use crate::search::Provenance;
use crate::space::Space;
use crate::workload::{Buffer, Fill, Workload};
use std::cmp::Ordering;
use std::sync::Arc;

/// Maximum speedup that is believed. From one thread a block to full warps on full SMs it is
/// 32 x 64; the rest is for macros.
const MAX_SPEEDUP: f64 = 10_000.0;

/// Maximum number of groups of finalists that are tried if all faster ones of a group are
/// refused. What is wrong with one, such as its block shape, is often wrong with its group.
const MAX_FINALIST_GROUPS: usize = 3;

/// A winner is timed with warm caches if the baseline takes less than this many seconds. To fill the
/// second-level cache takes less than 0.1 ms, far below the least gain on such a baseline.
const CACHES_MATTER_S: f64 = 0.05;

/// Number of spilling configurations, besides the finalists, that are tried with their spills in
/// shared memory: about two of the register caps of a kernel make it spill a little.
const MAX_SPILLING: usize = 2;

/// Inputs and limits of the final rounds.
pub struct Finals<'a> {
    pub info: &'a KernelInfo<'a>,
    pub input: &'a ScoringInput,
    /// Compiles refined finalists; `None` if the driver compiles the PTX.
    pub toolchain: Option<&'a Toolchain>,
    /// The time of the search.
    pub clock: SearchClock,
    /// Configurations that may still be timed.
    pub remaining: usize,
    /// How the measuring process is started where a winner is run under compute-sanitizer.
    pub sanitize: Option<&'a Options>,
    /// Receives the options of each configuration that may win, the fastest first.
    pub on_contender: Option<OnContender<'a>>,
}

/// A configuration in the final rounds: the baseline or one that competes with it.
#[derive(Clone)]
pub struct Contender {
    /// Index into the decision's configurations.
    pub row: usize,
    pub configuration: Configuration,
    pub candidate: Candidate,
    /// The row of the configuration that this one refines ([`refinement`]), where it does.
    pub unrefined: Option<usize>,
}

impl Contender {
    /// The time of one launch, in seconds; infinite if it was not timed.
    pub fn seconds(&self, decision: &Decision) -> f64 {
        seconds(self.row, decision)
    }
}

fn seconds(row: usize, decision: &Decision) -> f64 {
    let timing = decision.configurations[row].timing.as_ref();
    timing.map_or(f64::INFINITY, |timing| timing.median_us / 1e6)
}

/// A contender and its samples in microseconds.
type ContenderSamples = (Contender, Vec<f64>);

/// The baseline's samples, and those of the contenders that remain.
type PairedSamples = (Vec<f64>, Vec<ContenderSamples>);

impl Finals<'_> {
    /// Times the fastest of `ranked` and the baseline in paired rounds, and takes the fastest
    /// one without an objection. If all are refused, continues with the next fastest. `permit`
    /// is that of the measuring process.
    ///
    /// # Errors
    /// As [`Measurer::time`].
    pub fn decide(
        &self,
        ranked: &[(usize, f64)],
        permit: &mut Option<Permit>,
        measurer: &mut impl Measurer,
        decision: &mut Decision,
    ) -> Result<(), Error> {
        let mut refused = Vec::new();
        let decided = self.decide_among_groups(ranked, &mut refused, permit, measurer, decision);
        if let Some(first) = name_first(&refused) {
            decision.note(MessageCode::WinnerRefused, format!("the fastest is refused{first}"));
        }
        decided
    }

    /// As [`Finals::decide`]; what is refused comes to `refused`.
    fn decide_among_groups(
        &self,
        ranked: &[(usize, f64)],
        refused: &mut Vec<String>,
        permit: &mut Option<Permit>,
        measurer: &mut impl Measurer,
        decision: &mut Decision,
    ) -> Result<(), Error> {
        let mut ranked = ranked.to_vec();
        for _ in 0..MAX_FINALIST_GROUPS {
            let mut rows = self.finalists(&ranked, decision);
            // Those that there is no time for now may have it in the next group.
            rows.truncate(self.affordable(&rows, measurer, decision));
            let is_open = self.decide_among((&rows, &ranked), refused, permit, measurer, decision)?;
            if !is_open {
                break;
            }
            ranked.retain(|(row, _)| !rows.contains(row));
        }
        Ok(())
    }

    /// Returns the rows of the fastest of `ranked`, and of those that spills in shared memory
    /// may make faster.
    fn finalists(&self, ranked: &[(usize, f64)], decision: &Decision) -> Vec<usize> {
        let mut rows = finalists(ranked);
        let spilling = self.fastest_spilling(ranked, decision);
        rows.extend(spilling.filter(|row| !rows.contains(row)).collect::<Vec<_>>());
        rows
    }

    /// Times these configurations and the baseline in paired rounds, with the code of some of
    /// `ranked` [refined](refinement), and takes the fastest one without an objection. Returns
    /// whether to try others: some were faster than the baseline, but all of them are refused.
    fn decide_among(
        &self,
        (rows, ranked): (&[usize], &[(usize, f64)]),
        refused: &mut Vec<String>,
        permit: &mut Option<Permit>,
        measurer: &mut impl Measurer,
        decision: &mut Decision,
    ) -> Result<bool, Error> {
        let others = refinement::beyond_finalists(self, rows, ranked, decision);
        let others: Vec<Contender> = others.into_iter().filter_map(|row| self.contender(row)).collect();
        let rows = std::iter::once(self.input.baseline).chain(rows.iter().copied());
        let mut contenders: Vec<Contender> = rows.filter_map(|row| self.contender(row)).collect();
        if let Some(on_contender) = &self.on_contender {
            let others = contenders.iter().skip(1).chain(&others);
            others.for_each(|other| on_contender(&self.info.options(&other.configuration.front_end())));
        }
        let refined = refinement::contenders(self, (&contenders, &others), permit, measurer, decision);
        contenders.extend(refined);
        self.drop_refined(&mut contenders, measurer, decision);
        let Some(baseline) = contenders.first().filter(|first| first.row == self.input.baseline).cloned() else {
            return Ok(false);
        };
        let mut is_open = false;
        while contenders.len() > 1 {
            let Some((reference, mut samples_by_contender)) =
                self.run_paired_rounds(&contenders, measurer, decision)?
            else {
                break;
            };
            let samples =
                samples_by_contender.iter().enumerate().map(|(index, (_, samples))| (index, samples.as_slice()));
            let Some((index, ratio)) = settled(&reference, samples) else { break };
            let (winner, _) = samples_by_contender.remove(index);
            let Some(Objection { by, reason }) = self.objection(&baseline, &winner, ratio, measurer, decision)? else {
                decision.winner = winner.row;
                if winner.unrefined.is_some() {
                    decision.configurations[winner.row].score = refinement::score(self.input, &winner);
                }
                decision.provenance = Provenance::Measured;
                decision.speedup = ratio;
                return Ok(false);
            };
            decision.grid_limit = None;
            refused.push(format!("{by}: {}: {reason}", winner.configuration));
            decision.configurations[winner.row].refused = Some(reason);
            is_open = true;
            // Those that dropped out for this one had too few rounds to be judged.
            contenders = std::iter::once(baseline.clone())
                .chain(samples_by_contender.into_iter().map(|(contender, _)| contender))
                .collect();
        }
        Ok(is_open)
    }

    /// Times the contenders, of which the first is the baseline, in paired rounds. Returns the
    /// samples of the baseline and of those that remain; `None` if the baseline fails.
    fn run_paired_rounds(
        &self,
        contenders: &[Contender],
        measurer: &mut impl Measurer,
        decision: &mut Decision,
    ) -> Result<Option<PairedSamples>, Error> {
        let candidates: Vec<Candidate> = contenders.iter().map(|contender| contender.candidate.clone()).collect();
        let rounds = self.rounds(contenders, 1, measurer, decision);
        let samples = measurer.time_paired(&candidates, rounds, Caches::Cold)?;
        let samples_by_contender =
            contenders.iter().zip(samples).filter_map(|(contender, samples)| Some((contender.clone(), samples?)));
        let mut samples_by_contender: Vec<ContenderSamples> = samples_by_contender.collect();
        for (contender, samples) in &samples_by_contender {
            note_paired(decision, contender.row, samples);
        }
        refinement::keep_faster(&mut samples_by_contender);
        let Some(position) = samples_by_contender.iter().position(|(contender, _)| contender.row == contenders[0].row)
        else {
            return Ok(None);
        };
        let (_, reference) = samples_by_contender.remove(position);
        Ok(Some((reference, samples_by_contender)))
    }

    /// How many of these rows there is time for in a duel with the baseline, the first of them first.
    fn affordable(&self, rows: &[usize], measurer: &impl Measurer, decision: &Decision) -> usize {
        let others: Vec<f64> = rows.iter().map(|&row| seconds(row, decision)).collect();
        affordable_contenders(seconds(self.input.baseline, decision), &others, self.clock.left_s(measurer))
    }

    /// Leaves out the slowest refined contenders that there is no time for: each must be proved to be
    /// faster than the contender that it refines, which stays.
    fn drop_refined(&self, contenders: &mut Vec<Contender>, measurer: &impl Measurer, decision: &Decision) {
        contenders.sort_by(|a, b| {
            let [of_a, of_b] = [a, b].map(|contender| contender.unrefined.map(|_| contender.seconds(decision)));
            of_a.partial_cmp(&of_b).unwrap_or(Ordering::Equal)
        });
        let unrefined = contenders.iter().filter(|contender| contender.unrefined.is_none()).count();
        let rows: Vec<usize> = contenders.iter().skip(1).map(|contender| contender.row).collect();
        contenders.truncate((1 + self.affordable(&rows, measurer, decision)).max(unrefined));
    }

    /// The rounds of a duel of these contenders, of which each is launched so often in a round.
    fn rounds(&self, contenders: &[Contender], launches: u32, measurer: &impl Measurer, decision: &Decision) -> u32 {
        let round_s: f64 = contenders.iter().map(|contender| contender.seconds(decision)).sum();
        rounds(f64::from(launches) * round_s, self.clock.left_s(measurer))
    }

    /// Tells whether a configuration is tried with its spills in shared memory. It must spill
    /// and have no dynamic shared memory, which ptxas does not permit then. More shared memory
    /// may leave too few blocks resident for a kernel that waits for its grid.
    pub fn may_share_spills(&self, row: usize, decision: &Decision) -> bool {
        let code = decision.configurations[row].variant.and_then(|variant| decision.variants.get(variant));
        self.info.annotation.clauses.shared_spills
            && !self.input.waits_for_grid
            && self.input.launches[row].shared == 0
            && code.is_some_and(|code| code.spills > 0)
    }

    /// Returns the fastest configurations that may have their spills in shared memory, which may
    /// make one of them the fastest of all.
    fn fastest_spilling(&self, ranked: &[(usize, f64)], decision: &Decision) -> impl Iterator<Item = usize> {
        let spilling: Vec<(usize, f64)> =
            ranked.iter().copied().filter(|(row, _)| self.may_share_spills(*row, decision)).collect();
        finalists(&spilling).into_iter().take(MAX_SPILLING)
    }

    fn contender(&self, row: usize) -> Option<Contender> {
        let configuration = self.input.configurations[row].clone();
        Some(Contender { row, configuration, candidate: candidate(self.input, row)?, unrefined: None })
    }

    /// Returns the first objection to a winner that is faster than the baseline by this ratio.
    /// The cheapest checks come first. Checks that cannot be made are noted in the decision.
    fn objection(
        &self,
        baseline: &Contender,
        winner: &Contender,
        ratio: f64,
        measurer: &mut impl Measurer,
        decision: &mut Decision,
    ) -> Result<Option<Objection>, Error> {
        if ratio > MAX_SPEEDUP {
            let reason = format!("{ratio:.0} times as fast as the baseline is faster than any configuration can be");
            return Ok(Some(Objection { by: " for the time that was said of it", reason }));
        }
        if baseline.seconds(decision) < CACHES_MATTER_S {
            // With warm caches each launch comes after one that is not timed.
            let rounds = self.rounds(&[baseline.clone(), winner.clone()], 2, measurer, decision);
            if let Some(reason) = warm_cache_objection((baseline, winner), ratio, (rounds, measurer), decision)? {
                return Ok(Some(Objection { by: "", reason }));
            }
        }
        match compare_on_other_contents(baseline, winner, measurer)? {
            SecondCheck::Equal => {}
            SecondCheck::Unknown(reason) => decision.note(
                MessageCode::ContentsNotCompared,
                format!(
                    "{}: its results could not be compared for other contents of the buffers: {reason}",
                    winner.configuration
                ),
            ),
            SecondCheck::Different(reason) => {
                return Ok(Some(Objection { by: " for other contents of the buffers", reason: reason.to_string() }));
            }
        }
        if let Some(reason) = self.remainder_objection((baseline, winner), measurer, decision)? {
            return Ok(Some(Objection { by: "", reason }));
        }
        if let Some(objection) = self.other_launches_objection((baseline, winner), measurer, decision) {
            return Ok(Some(objection));
        }
        let Some(options) = self.sanitize else { return Ok(None) };
        // The tool has a process of its own, which needs the GPU.
        measurer.release_gpu();
        match measure::sanitize(&winner.candidate, options) {
            Ok(problem) => Ok(problem.map(|reason| Objection { by: " by compute-sanitizer", reason })),
            Err(error) => {
                // Behind a runner it never will be.
                decision.provisional = !matches!(error, MemcheckError::Runner);
                decision.note(MessageCode::NotSanitized, format!("its winner is not sanitized: {error}"));
                Ok(None)
            }
        }
    }

    /// Sets the decision's `surplus`: whether a winner may run on problems that its grid does
    /// not divide. The workload itself shows it if every division of the grid leaves a
    /// remainder there; otherwise slightly smaller problems are tried. Returns why the winner
    /// cannot be used on the workload itself.
    fn remainder_objection(
        &self,
        contenders: (&Contender, &Contender),
        measurer: &mut impl Measurer,
        decision: &mut Decision,
    ) -> Result<Option<String>, Error> {
        let KernelInfo { space, launch_path, .. } = self.info;
        let configuration = &contenders.1.configuration;
        let remainders = argument_conditions::remainders(space, configuration);
        decision.surplus = false;
        if !launch_path.reshapes() || remainders.is_empty() {
            return Ok(None);
        }
        if remainders.iter().all(|remainder| remainder.is_some_and(|rest| rest != 0)) {
            decision.surplus = true;
            return Ok(None);
        }
        // The baseline crashes on a smaller problem if the kernel has the size as a constant.
        let refused =
            self.compare_on_smaller_problems(contenders, measurer).unwrap_or_else(|error| Some(error.to_string()));
        decision.surplus = refused.is_none();
        let is_exact = remainders.iter().all(|remainder| *remainder == Some(0));
        // Where launches follow the header, they are the winner's own.
        let is_own = launch_path.accepts() && launch_path.is_own_in_header(configuration, space.baseline());
        Ok(refused.filter(|_| !is_exact && !is_own).map(|reason| {
            let applies = argument_conditions::conditions_text(space, configuration);
            format!("it applies only to launches with {applies}: {reason}")
        }))
    }

    /// Returns why a configuration's results differ from the baseline's on problems that its
    /// grid does not divide; `None` if equal.
    fn compare_on_smaller_problems(
        &self,
        contenders: (&Contender, &Contender),
        measurer: &mut impl Measurer,
    ) -> Result<Option<String>, Error> {
        let problems = argument_conditions::problems_with_remainders(&self.info.space, &contenders.1.configuration);
        if problems.is_empty() {
            return Ok(Some("nothing is known: the workload has no smaller problem of its kind".to_owned()));
        }
        for (smaller, which) in problems.iter().zip(["a smaller problem", "another smaller problem"]) {
            let refused = self.compare_on_smaller_problem(contenders, (smaller, which), measurer)?;
            if refused.is_some() {
                return Ok(refused);
            }
        }
        Ok(None)
    }

    /// Returns a contender's candidate for another problem, which `space` is the space of and `which`
    /// names.
    pub(super) fn on_other_problem(&self, contender: &Contender, space: &Space, which: &str) -> Option<Candidate> {
        let (launch, workload) = self.info.launch_in(space, &contender.configuration).ok()?;
        let candidate = contender.candidate.clone();
        let launch = Launch { coarsening: candidate.launch.coarsening, ..launch };
        Some(Candidate {
            launch,
            label: format!("{} on {which}", candidate.label),
            workload: Arc::new(workload?),
            ..candidate
        })
    }

    /// Does the same as [`Self::compare_on_smaller_problems`] for one problem; `which` names it
    /// in labels.
    fn compare_on_smaller_problem(
        &self,
        (baseline, winner): (&Contender, &Contender),
        (smaller, which): (&Space, &str),
        measurer: &mut impl Measurer,
    ) -> Result<Option<String>, Error> {
        let sent = |contender: &Contender| self.on_other_problem(contender, smaller, which);
        let (Some(baseline), Some(winner)) = (sent(baseline), sent(winner)) else {
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
}

/// Why the fastest may not win.
pub(super) struct Objection {
    /// Which check refuses it; follows "the fastest is refused" in the message.
    pub by: &'static str,
    pub reason: String,
}

/// Times the baseline and a winner with warm caches and returns why the winner is refused.
/// `cold` is its gain with cold caches. It is refused if it is surely slower with warm caches, or
/// if the geometric mean of both gains is below the minimum. A program may do either.
fn warm_cache_objection(
    (baseline, winner): (&Contender, &Contender),
    cold: f64,
    (rounds, measurer): (u32, &mut impl Measurer),
    decision: &mut Decision,
) -> Result<Option<String>, Error> {
    let candidates = [baseline.candidate.clone(), winner.candidate.clone()];
    let samples = measurer.time_paired(&candidates, rounds, Caches::Warm)?;
    let [Some(before), Some(after)] = samples.as_slice() else {
        return Ok(Some("it or the baseline failed when it was launched again and again".to_owned()));
    };
    for (row, samples) in [(baseline.row, before), (winner.row, after)] {
        if let Some(timing) = &mut decision.configurations[row].timing {
            timing.warm_us = Some(median(samples));
        }
    }
    let [before, after] = [before, after].map(|samples| medians_by_set(samples));
    let verdict = verdict::slower_by(&before, &after, LAST_VERDICT);
    let (Verdict::Faster { ratio } | Verdict::NotFaster { ratio } | Verdict::Ambiguous { ratio }) = verdict;
    Ok(if matches!(verdict, Verdict::Faster { .. }) {
        Some(format!("with warm caches it takes {ratio:.2} times as long as the baseline"))
    } else if (cold / ratio).sqrt() < verdict::MINIMUM_GAIN {
        let gain = 100.0 * (cold - 1.0);
        Some(format!(
            "with warm caches it takes {ratio:.3} times as long as the baseline, too much for a gain of {gain:.1}%"
        ))
    } else {
        None
    })
}

/// Whether a winner gives the baseline's results for other contents of the buffers.
enum SecondCheck {
    Equal,
    /// The baseline itself cannot run on them, or there was no time.
    Unknown(String),
    Different(Reason),
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

/// Runs the baseline and a winner once more on random contents of another seed: an error that
/// the first contents hide (a maximum that was never searched for, a branch that was never
/// taken) may show on them.
fn compare_on_other_contents(
    baseline: &Contender,
    winner: &Contender,
    measurer: &mut impl Measurer,
) -> Result<SecondCheck, Error> {
    let other = |contender: &Contender| {
        let candidate = contender.candidate.clone();
        let workload = reseeded(&candidate.workload)?;
        Some(Candidate { label: format!("{} seed=2", candidate.label), workload: Arc::new(workload), ..candidate })
    };
    // Where nothing is random there are no other contents.
    let (Some(baseline), Some(winner)) = (other(baseline), other(winner)) else { return Ok(SecondCheck::Equal) };
    let plan = Plan { rounds: 1, budget_s: f64::MAX, ..Plan::default() };
    match measurer.time(&baseline, &[winner], &plan) {
        Ok(timings) => Ok(match timings.candidates.into_iter().next() {
            Some(Outcome::Timed(_)) => SecondCheck::Equal,
            Some(Outcome::Refused(reason)) => SecondCheck::Different(reason),
            Some(Outcome::Skipped) | None => SecondCheck::Unknown("there was no time".to_owned()),
        }),
        Err(Error::Baseline(reason)) => Ok(SecondCheck::Unknown(format!("the baseline {reason}"))),
        Err(error) => Err(error),
    }
}

fn note_paired(decision: &mut Decision, row: usize, samples: &[f64]) {
    if let Some(timing) = &mut decision.configurations[row].timing {
        timing.paired_us = Some(median(samples));
    }
}
