//! The final rounds: the fastest configurations meet the baseline in pairs, and the fastest
//! that nothing speaks against wins.
//!
//! In: what the search timed. Out: the decision's winner. In doubt the baseline stays.

use super::argument_conditions;
use super::exact_block;
use super::kernel_info::KernelInfo;
use super::scoring_input::ScoringInput;
use super::timing::{ROUNDS, candidate, finalists, median, settled};
use crate::diag::MessageCode;
use crate::launch::Configuration;
use crate::measure;
use crate::measure::verdict;
use crate::measure::verdict::Verdict;
use crate::measure::{Caches, Candidate, Error, Measurer, MemcheckError, Options, Outcome, Plan, Reason};
use crate::nvcc::Toolchain;
use crate::process::Permit;
use crate::record::Decision;
use crate::search::Provenance;
use crate::space::Space;
use crate::workload;
use crate::workload::{Buffer, Fill, Workload};
use std::sync::Arc;

/// Most times that a winner is believed to be as fast as the baseline. From one thread a block
/// to full warps on full SMs it is 32 x 64; the rest is for macros.
const MOST_RATIO: f64 = 10_000.0;

/// How many groups of finalists have their turn, where each that is faster than the baseline is
/// refused: what speaks against one, such as the shape of its block, may speak against all that
/// are as fast.
const TURNS: usize = 3;

/// Configurations that spill registers, besides the fastest of all, that are tried with their
/// spills in shared memory: about two of the register caps of a kernel make it spill a little.
const SPILLING: usize = 2;

/// Holds what the final rounds look at and may take.
pub struct Finals<'a> {
    pub subject: &'a KernelInfo<'a>,
    pub laid: &'a ScoringInput,
    /// Compiles finalists for exactly their block; `None` if the driver compiles the PTX.
    pub toolchain: Option<&'a Toolchain>,
    /// Seconds that remain of the budget.
    pub remaining_s: f64,
    /// Configurations that may still be timed.
    pub remaining: usize,
    /// How the measuring process is started where a winner is run under compute-sanitizer.
    pub sanitize: Option<&'a Options>,
}

/// Holds a configuration that meets the baseline, or the baseline.
#[derive(Clone)]
pub struct Contender {
    /// Index into the decision's configurations.
    pub row: usize,
    pub configuration: Configuration,
    pub candidate: Candidate,
    /// The row of the same configuration without `exact_block`, where this has it.
    pub inexact: Option<usize>,
}

/// A contender and its samples, in microseconds.
type Met = (Contender, Vec<f64>);

/// The baseline's samples, and who is left with theirs.
type Paired = (Vec<f64>, Vec<Met>);

impl Finals<'_> {
    /// Times the fastest of `ranked` and the baseline in paired rounds, and takes the fastest
    /// that nothing speaks against; if that leaves none, the same with the next ones. `permit`
    /// is for the process that measures.
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
        let mut ranked = ranked.to_vec();
        for _ in 0..TURNS {
            let rows = self.finalists(&ranked, decision);
            let is_open = self.decide_among(&rows, permit, measurer, decision)?;
            if !is_open {
                break;
            }
            ranked.retain(|(row, _)| !rows.contains(row));
        }
        Ok(())
    }

    /// The rows of the fastest of `ranked`, and of those that their spills in shared memory may
    /// make so.
    fn finalists(&self, ranked: &[(usize, f64)], decision: &Decision) -> Vec<usize> {
        let mut rows = finalists(ranked);
        let spilling = self.fastest_spilling(ranked, decision);
        rows.extend(spilling.filter(|row| !rows.contains(row)).collect::<Vec<_>>());
        rows
    }

    /// Times these configurations and the baseline in paired rounds, and takes the fastest that
    /// nothing speaks against. Returns whether others should have their turn: some were faster
    /// than the baseline, but each is refused.
    fn decide_among(
        &self,
        rows: &[usize],
        permit: &mut Option<Permit>,
        measurer: &mut impl Measurer,
        decision: &mut Decision,
    ) -> Result<bool, Error> {
        let rows = std::iter::once(self.laid.baseline).chain(rows.iter().copied());
        let mut contenders: Vec<Contender> = rows.filter_map(|row| self.contender(row)).collect();
        let exact = exact_block::contenders(self, &contenders, permit, measurer, decision);
        contenders.extend(exact);
        let Some(baseline) = contenders.first().filter(|first| first.row == self.laid.baseline).cloned() else {
            return Ok(false);
        };
        let mut is_open = false;
        while contenders.len() > 1 {
            let Some((reference, mut met)) = Self::meet(&contenders, measurer, decision)? else { break };
            let samples = met.iter().enumerate().map(|(index, (_, samples))| (index, samples.as_slice()));
            let Some((index, ratio)) = settled(&reference, samples) else { break };
            let (winner, _) = met.remove(index);
            let Some(Objection { by, reason }) = self.objection(&baseline, &winner, ratio, measurer, decision)? else {
                decision.winner = winner.row;
                if winner.inexact.is_some() {
                    decision.configurations[winner.row].score = exact_block::score(self.laid, &winner);
                }
                decision.provenance = Provenance::Measured;
                decision.speedup = ratio;
                return Ok(false);
            };
            decision.note(
                MessageCode::WinnerRefused,
                format!("the fastest is refused{by}: {}: {reason}", winner.configuration),
            );
            decision.configurations[winner.row].refused = Some(reason);
            is_open = true;
            // Those that dropped out for this one had too few rounds to be judged.
            contenders =
                std::iter::once(baseline.clone()).chain(met.into_iter().map(|(contender, _)| contender)).collect();
        }
        Ok(is_open)
    }

    /// Has the contenders, of which the first is the baseline, meet in paired rounds. Returns the
    /// baseline's samples and who is left with theirs; `None` where the baseline fails.
    fn meet(
        contenders: &[Contender],
        measurer: &mut impl Measurer,
        decision: &mut Decision,
    ) -> Result<Option<Paired>, Error> {
        let candidates: Vec<Candidate> = contenders.iter().map(|contender| contender.candidate.clone()).collect();
        let samples = measurer.duel(&candidates, ROUNDS, Caches::Cold)?;
        let met = contenders.iter().zip(samples).filter_map(|(contender, samples)| Some((contender.clone(), samples?)));
        let mut met: Vec<Met> = met.collect();
        for (contender, samples) in &met {
            note_paired(decision, contender.row, samples);
        }
        exact_block::keep_faster(&mut met);
        let Some(position) = met.iter().position(|(contender, _)| contender.row == contenders[0].row) else {
            return Ok(None);
        };
        let (_, reference) = met.remove(position);
        Ok(Some((reference, met)))
    }

    /// Whether a configuration is worth a try with its spills in shared memory: it has some, and
    /// no dynamic shared memory, with which ptxas refuses that. More shared memory may leave too
    /// few blocks resident for a kernel that waits for its grid.
    pub fn may_share_spills(&self, row: usize, decision: &Decision) -> bool {
        let code = decision.configurations[row].variant.and_then(|variant| decision.variants.get(variant));
        self.subject.annotation.clauses.shared_spills
            && !self.laid.waits_for_grid
            && self.laid.launches[row].shared == 0
            && code.is_some_and(|code| code.spills > 0)
    }

    /// The fastest configurations that may have their spills in shared memory. With that one may
    /// overtake those that are faster without.
    fn fastest_spilling(&self, ranked: &[(usize, f64)], decision: &Decision) -> impl Iterator<Item = usize> {
        let spilling: Vec<(usize, f64)> =
            ranked.iter().copied().filter(|(row, _)| self.may_share_spills(*row, decision)).collect();
        finalists(&spilling).into_iter().take(SPILLING)
    }

    fn contender(&self, row: usize) -> Option<Contender> {
        let configuration = self.laid.configurations[row].clone();
        Some(Contender { row, configuration, candidate: candidate(self.laid, row)?, inexact: None })
    }

    /// What speaks against a winner that is faster than the baseline by this ratio, in the
    /// order of what it takes to find out. What could not be looked at goes into the
    /// decision's notes.
    fn objection(
        &self,
        baseline: &Contender,
        winner: &Contender,
        ratio: f64,
        measurer: &mut impl Measurer,
        decision: &mut Decision,
    ) -> Result<Option<Objection>, Error> {
        if ratio > MOST_RATIO {
            let reason = format!("{ratio:.0} times as fast as the baseline is faster than any configuration can be");
            return Ok(Some(Objection { by: " for the time that was said of it", reason }));
        }
        if let Some(reason) = loses_warm((baseline, winner), ratio, measurer, decision)? {
            return Ok(Some(Objection { by: "", reason }));
        }
        match holds(baseline, winner, measurer)? {
            SecondCheck::Well => {}
            SecondCheck::Unknown(reason) => decision.note(
                MessageCode::ContentsNotCompared,
                format!(
                    "{}: its results could not be compared for other contents of the buffers: {reason}",
                    winner.configuration
                ),
            ),
            SecondCheck::Not(reason) => {
                return Ok(Some(Objection { by: " for other contents of the buffers", reason: reason.to_string() }));
            }
        }
        if let Some(reason) = self.has_remainders((baseline, winner), measurer, decision)? {
            return Ok(Some(Objection { by: "", reason }));
        }
        let Some(options) = self.sanitize else { return Ok(None) };
        // The tool has a process of its own, which needs the GPU.
        measurer.rest();
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
    fn has_remainders(
        &self,
        contenders: (&Contender, &Contender),
        measurer: &mut impl Measurer,
        decision: &mut Decision,
    ) -> Result<Option<String>, Error> {
        let KernelInfo { space, launch_path, .. } = self.subject;
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
        let refused = self.bears_remainders(contenders, measurer).unwrap_or_else(|error| Some(error.to_string()));
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
    fn bears_remainders(
        &self,
        contenders: (&Contender, &Contender),
        measurer: &mut impl Measurer,
    ) -> Result<Option<String>, Error> {
        let problems = argument_conditions::problems_with_remainders(&self.subject.space, &contenders.1.configuration);
        if problems.is_empty() {
            return Ok(Some("nothing is known: the workload has no smaller problem of its kind".to_owned()));
        }
        for (smaller, which) in problems.iter().zip(["a smaller problem", "another smaller problem"]) {
            let refused = self.bears(contenders, (smaller, which), measurer)?;
            if refused.is_some() {
                return Ok(refused);
            }
        }
        Ok(None)
    }

    /// Does the same for one smaller problem; `which` names it in labels.
    fn bears(
        &self,
        (baseline, winner): (&Contender, &Contender),
        (smaller, which): (&Space, &str),
        measurer: &mut impl Measurer,
    ) -> Result<Option<String>, Error> {
        let sent = |contender: &Contender| {
            let configuration = &contender.configuration;
            let prepared = self.subject.launch_path.prepared(smaller, configuration);
            let entry = self.subject.entry(&configuration.front_end()).ok()?;
            let workload = workload::bind(smaller.annotation(), entry, smaller, &prepared).ok()?;
            let launch = smaller.launch(configuration).ok()?;
            let candidate = contender.candidate.clone();
            let label = format!("{} on {which}", candidate.label);
            Some(Candidate { launch, label, workload: Arc::new(workload), ..candidate })
        };
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
struct Objection {
    /// Whose it is, behind "the fastest is refused".
    by: &'static str,
    reason: String,
}

/// Why a winner is refused that was found with cold caches, where it is faster by this ratio:
/// it is surely slower than the baseline where a launch right before has filled them, or too
/// much so for a gain over both. A program may call its kernel either way.
fn loses_warm(
    (baseline, winner): (&Contender, &Contender),
    cold: f64,
    measurer: &mut impl Measurer,
    decision: &mut Decision,
) -> Result<Option<String>, Error> {
    let candidates = [baseline.candidate.clone(), winner.candidate.clone()];
    let samples = measurer.duel(&candidates, ROUNDS, Caches::Warm)?;
    let [Some(before), Some(after)] = samples.as_slice() else {
        return Ok(Some("it or the default failed when it was launched again and again".to_owned()));
    };
    for (row, samples) in [(baseline.row, before), (winner.row, after)] {
        if let Some(timing) = &mut decision.configurations[row].timing {
            timing.warm_us = Some(median(samples));
        }
    }
    let verdict = verdict::faster(after, before);
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
enum SecondCheck {
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

/// Runs the baseline and a winner once more on random contents of another seed: an error that
/// the first contents hide (a maximum that was never searched for, a branch that was never
/// taken) may show on them.
fn holds(baseline: &Contender, winner: &Contender, measurer: &mut impl Measurer) -> Result<SecondCheck, Error> {
    let other = |contender: &Contender| {
        let candidate = contender.candidate.clone();
        let workload = reseeded(&candidate.workload)?;
        Some(Candidate { label: format!("{} seed=2", candidate.label), workload: Arc::new(workload), ..candidate })
    };
    // Where nothing is random there are no other contents.
    let (Some(baseline), Some(winner)) = (other(baseline), other(winner)) else { return Ok(SecondCheck::Well) };
    let plan = Plan { rounds: 1, budget_s: f64::MAX, ..Plan::default() };
    match measurer.time(&baseline, &[winner], &plan) {
        Ok(timings) => Ok(match timings.candidates.into_iter().next() {
            Some(Outcome::Timed(_)) => SecondCheck::Well,
            Some(Outcome::Refused(reason)) => SecondCheck::Not(reason),
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
