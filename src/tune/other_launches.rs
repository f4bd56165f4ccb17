//! A winner on the launches of its kernel that were recorded besides the one that it was tuned on.
//!
//! In: the baseline, a winner, and what the comment has of other launches. Out: for which grids the
//! winner runs, if it is surely slower on all larger or all smaller ones; why it may not win, if
//! results differ on one launch, or if those that it runs for are together surely slower. A launch
//! that tells nothing, or that runs nvcc's own code in the program, is left out.

use super::argument_conditions;
use super::final_rounds::{Contender, Finals, Objection};
use super::timing::rounds;
use crate::comment::OtherLaunch;
use crate::diag::MessageCode;
use crate::launch::{GridLimit, blocks};
use crate::measure::verdict::Verdict;
use crate::measure::{Caches, Candidate, Error, LAST_VERDICT, Measurer, Outcome, Plan, Reason, verdict};
use crate::record::Decision;
use crate::recording;
use crate::space::Space;
use std::sync::Arc;

/// Recordings with more bytes are not sent: the measuring process keeps what it has for a search.
const MOST_BYTES: u64 = 256 << 20;

/// Microseconds of the baseline and of a winner for the same launches, by round.
struct PairedTimes {
    before: Vec<f64>,
    after: Vec<f64>,
}

/// Another launch that was timed.
struct TimedLaunch {
    /// Of the baseline's grid.
    blocks: u64,
    /// How many times the program launches it for each of the launch that was tuned on.
    frequency: f64,
    times: PairedTimes,
}

/// What a winner does on one other launch.
enum Trial {
    Timed(PairedTimes),
    /// Nothing is known of it.
    Unknown,
    Refused(String),
}

impl Finals<'_> {
    /// Returns the objection of the other recorded launches to a winner, and sets the decision's
    /// `grid_limit`. That launches cannot be tried is noted in the decision.
    pub(super) fn other_launches_objection(
        &self,
        contenders: (&Contender, &Contender),
        measurer: &mut impl Measurer,
        decision: &mut Decision,
    ) -> Option<Objection> {
        let (baseline, winner) = contenders;
        let paired = |contender: &Contender| decision.configurations[contender.row].timing.as_ref()?.paired_us;
        let main = [paired(baseline)?, paired(winner)?];
        let mut main_frequency = 1.0;
        let mut timed: Vec<TimedLaunch> = Vec::new();
        for (number, other) in self.info.annotation.clauses.other_launches.iter().enumerate() {
            if self.clock.left_s(measurer) <= 0.0 {
                break;
            }
            let which = format!("recorded launch {}", number + 2);
            let trial = match self.on_other_launch(other, contenders, (&which, decision.surplus)) {
                Some(candidates) => self.try_other_launch(&candidates, measurer),
                None => Ok(Trial::Unknown),
            };
            match trial {
                Ok(Trial::Timed(times)) => {
                    timed.push(TimedLaunch { blocks: blocks(other.grid), frequency: other.frequency, times });
                }
                // The launch that the kernel was tuned on stands for all of its kind.
                Ok(Trial::Unknown) if other.is_of_main_kind => main_frequency += other.frequency,
                Ok(Trial::Unknown) => {}
                Ok(Trial::Refused(reason)) => {
                    return Some(Objection { by: " on another recorded launch", reason });
                }
                Err(error) => {
                    let message = format!("{}: not tried on {which}: {error}", winner.configuration);
                    decision.note(MessageCode::ContentsNotCompared, message);
                    break;
                }
            }
        }
        decision.grid_limit = self.grid_limit(blocks(baseline.candidate.launch.grid), &timed);
        let runs = |launch: &TimedLaunch| decision.grid_limit.is_none_or(|limit| limit.holds(launch.blocks));
        let scaled = timed.into_iter().filter(runs).map(|launch| launch.times.scaled(launch.frequency));
        let others = scaled.reduce(PairedTimes::plus)?;
        let PairedTimes { before, after } = others.shifted(main.map(|us| main_frequency * us));
        let Verdict::Faster { ratio } = verdict::slower_by(&before, &after, LAST_VERDICT) else { return None };
        let reason = format!("the recorded launches together take {ratio:.3} times as long as by the baseline");
        Some(Objection { by: "", reason })
    }

    /// Returns the limit of grids that leaves out all launches that a winner makes surely slower,
    /// and keeps the others, among them the one with `main_blocks`. `None` if there is no such
    /// limit, or none is needed, or launches by the header ask for the winner themselves.
    fn grid_limit(&self, main_blocks: u64, timed: &[TimedLaunch]) -> Option<GridLimit> {
        let is_slower = |launch: &&TimedLaunch| {
            let PairedTimes { before, after } = &launch.times;
            matches!(verdict::slower_by(before, after, LAST_VERDICT), Verdict::Faster { .. })
        };
        let blocks_of = |launches: Vec<&TimedLaunch>| launches.iter().map(|launch| launch.blocks).collect::<Vec<_>>();
        let (slower, mut kept) = {
            let (slower, kept): (Vec<_>, Vec<_>) = timed.iter().partition(is_slower);
            (blocks_of(slower), blocks_of(kept))
        };
        kept.push(main_blocks);
        let path = &self.info.launch_path;
        let selects = path.reshapes() && !path.accepts() && !slower.is_empty();
        selects.then(|| GridLimit::between(&kept, &slower)).flatten()
    }

    /// Compares the results of a winner with the baseline's, and times both in paired rounds.
    fn try_other_launch(&self, candidates: &[Candidate; 2], measurer: &mut impl Measurer) -> Result<Trial, Error> {
        let [baseline, winner] = candidates;
        let plan = Plan { rounds: 1, ..Plan::default() };
        let timings = match measurer.time(baseline, std::slice::from_ref(winner), &plan) {
            // What the baseline cannot run on says nothing of the winner.
            Err(Error::Baseline(_)) => return Ok(Trial::Unknown),
            timings => timings?,
        };
        let once_us = match timings.candidates.first() {
            Some(Outcome::Timed(timing)) => timings.baseline.median_us + timing.median_us,
            Some(Outcome::Refused(Reason::Incomparable { .. })) => return Ok(Trial::Unknown),
            Some(Outcome::Refused(reason)) => return Ok(Trial::Refused(reason.to_string())),
            Some(Outcome::Skipped) | None => return Ok(Trial::Unknown),
        };
        let rounds = rounds(once_us / 1e6, self.clock.left_s(measurer));
        let mut samples = measurer.time_paired(candidates, rounds, Caches::Cold)?.into_iter();
        Ok(match (samples.next().flatten(), samples.next().flatten()) {
            (Some(before), Some(after)) => Trial::Timed(PairedTimes { before, after }),
            (Some(_), None) => Trial::Refused("it failed when it was launched again and again".to_owned()),
            _ => Trial::Unknown,
        })
    }

    /// Returns the candidates of the baseline and a winner for another recorded launch, which `which`
    /// names. `None` where it cannot be read, the comment's grid is another one than it had, or the
    /// launch stub does not select the winner for it, which takes `surplus` threads or not.
    fn on_other_launch(
        &self,
        other: &OtherLaunch,
        (baseline, winner): (&Contender, &Contender),
        (which, surplus): (&str, bool),
    ) -> Option<[Candidate; 2]> {
        let bytes = std::fs::metadata(&other.memory.path).ok()?.len();
        let mut annotation = self.info.annotation.clone();
        annotation.clauses.args = Some(other.args.clone());
        annotation.clauses.recorded = Some(Arc::clone(&other.memory));
        if bytes > MOST_BYTES || !recording::load(std::slice::from_mut(&mut annotation)).is_empty() {
            return None;
        }
        let space = Space::new(&annotation, self.info.space.limits()).ok()?;
        let holds = |required| space.evaluate(&winner.configuration, required).is_ok_and(|value| value.is_true());
        let leaves_none = |remainder: &Option<i64>| *remainder == Some(0);
        let divides = || argument_conditions::remainders(&space, &winner.configuration).iter().all(leaves_none);
        let is_selected = argument_conditions::requirements(&annotation).all(holds)
            && (surplus || !self.info.launch_path.reshapes() || divides());
        let baseline = self.on_other_problem(baseline, &space, which).filter(|_| is_selected)?;
        // That it works was proved by the results of the launch that it was chosen on.
        let winner = Candidate { needs_comparison: false, ..self.on_other_problem(winner, &space, which)? };
        let is_the_launch = baseline.launch.grid == other.grid && baseline.launch.shared == other.shared;
        is_the_launch.then_some([baseline, winner])
    }
}

impl PairedTimes {
    fn scaled(self, factor: f64) -> Self {
        let scale = |samples: Vec<f64>| samples.into_iter().map(|sample| factor * sample).collect();
        Self { before: scale(self.before), after: scale(self.after) }
    }

    /// Adds a time of the baseline and one of the winner to each round.
    fn shifted(self, [before, after]: [f64; 2]) -> Self {
        let shift = |samples: Vec<f64>, by: f64| samples.into_iter().map(|sample| sample + by).collect();
        Self { before: shift(self.before, before), after: shift(self.after, after) }
    }

    /// Adds the times of another launch, in the rounds that both have.
    fn plus(self, other: Self) -> Self {
        let add = |a: Vec<f64>, b: Vec<f64>| a.into_iter().zip(b).map(|(a, b)| a + b).collect();
        Self { before: add(self.before, other.before), after: add(self.after, other.after) }
    }
}
