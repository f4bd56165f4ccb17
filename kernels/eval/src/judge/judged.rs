//! One recorded space -> what each strategy finds on it, and how well the model's metrics order it.

use super::kendall::tau_b;
use nvtune::model::Score;
use nvtune::record::{RecordedSpace, SpaceError};
use nvtune::settings::Strategy;
use nvtune::tune;
use nvtune::tune::Scored;

/// Candidates of the default strategy that are looked at as the first ones.
pub const FIRST: usize = 8;

/// Sets of macros of a search without a GPU that most sources allow (`src/tune/compile_budget.rs`).
pub const SETS: usize = 4;

/// The metrics whose order is compared with that of the times, by their names in the table.
pub const METRICS: [&str; 4] = ["C", "RO", "efficiency", "predicted time"];

/// What is found on one kernel's space. Shares of time are over the best: 0.01 is 1% slower.
#[derive(Clone, Debug)]
pub struct Judged {
    pub kernel: String,
    /// The GPU.
    pub device: String,
    /// Configurations of the space, and points that were recorded.
    pub configurations: usize,
    pub points: usize,
    /// Whether these are a sample of the space's points.
    pub sampled: bool,
    pub best_us: f64,
    pub baseline_us: f64,
    pub found: Vec<Found>,
    /// The default strategy where it may time `FIRST` configurations.
    pub few: Found,
    /// How far the best of PO's Pareto set is from the best, and the best of the first `FIRST` candidates; infinite where none
    /// of them ran.
    pub pareto: f64,
    pub first: f64,
    /// How far the model's single choice is from the best, and its speed over the baseline's; none where it was refused.
    pub predicted: f64,
    pub predicted_speed: Option<f64>,
    /// The same speed among the `SETS` sets of macros that lie farthest apart.
    pub screened_speed: Option<f64>,
    /// Kendall's tau-b between each of `METRICS` and time, signed so that 1 is perfect.
    pub tau: [f64; METRICS.len()],
}

/// What a strategy finds.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub strategy: Strategy,
    /// Points that it times, the baseline included.
    pub timed: usize,
    /// Time of its winner over the best, less 1; and the winner's speed over the baseline's.
    pub regret: f64,
    pub speed: f64,
}

/// Judges the model and the strategies on one space.
///
/// # Errors
/// Where the record is broken, or where its baseline cannot be scored.
pub fn judge(space: &RecordedSpace) -> Result<Judged, SpaceError> {
    let broken = |problem: String| SpaceError::Inconsistent(problem);
    let scored = tune::score(nvtune::tune::recorded_scoring_input(space)?)
        .map_err(|none| broken(format!("its baseline: {}", none.reason)))?;
    let times: Vec<Option<f64>> = space.configurations.iter().map(|found| found.time.map(|time| time.us())).collect();
    let truth = Truth { scored: &scored, times: &times };
    let baseline_us = truth.time(space.baseline).ok_or_else(|| broken("its baseline has no time".to_owned()))?;
    let best_us = times.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let far = |us: Option<f64>| us.map_or(f64::INFINITY, |us| us / best_us - 1.0);

    let found = |strategy: Strategy, most: usize| {
        let sent = truth.sent(strategy, most);
        let winner = truth.winner(&sent, baseline_us);
        let us = winner.and_then(|winner| truth.time(winner)).unwrap_or(baseline_us);
        let others = sent.iter().filter(|&&index| index != space.baseline).count();
        Found { strategy, timed: others + 1, regret: us / best_us - 1.0, speed: baseline_us / us }
    };
    let predicted_us = truth.predicted();
    let screened_us = truth.time(truth.screened_choice());
    Ok(Judged {
        kernel: space.kernel.clone(),
        device: space.device.name.clone(),
        configurations: space.size.configurations,
        points: space.points().count(),
        sampled: space.size.sample.is_some(),
        best_us,
        baseline_us,
        found: Strategy::ALL.iter().map(|&(_, strategy)| found(strategy, usize::MAX)).collect(),
        few: found(Strategy::Refit, FIRST),
        pareto: far(truth.best_of(&scored.pareto())),
        first: far(truth.first()),
        predicted: far(predicted_us),
        predicted_speed: predicted_us.map(|us| baseline_us / us),
        screened_speed: screened_us.map(|us| baseline_us / us),
        tau: truth.taus(),
    })
}

/// How far the model alone is from the best of a space.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// 1 less Kendall's tau-b between predicted and recorded time.
    pub order: f64,
    /// How far the best of the first `FIRST` candidates, and the single choice, are from the best; 1 where it did not run.
    pub first: f64,
    pub choice: f64,
}

/// What the model's scores of a recorded space lose.
pub fn losses(space: &RecordedSpace, scored: &Scored) -> Losses {
    let times: Vec<Option<f64>> = space.configurations.iter().map(|found| found.time.map(|time| time.us())).collect();
    let best_us = times.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let truth = Truth { scored, times: &times };
    let far = |us: Option<f64>| us.map_or(1.0, |us| us / best_us - 1.0).min(1.0);
    let order = 1.0 - truth.tau(|score| score.predicted_us);
    Losses { order, first: far(truth.first()), choice: far(truth.predicted()) }
}

/// The model's scores beside the recorded times.
struct Truth<'a> {
    scored: &'a Scored,
    /// By configuration, for points that ran.
    times: &'a [Option<f64>],
}

impl Truth<'_> {
    /// The time of a configuration, which may stand for another with its code and launch.
    fn time(&self, index: usize) -> Option<f64> {
        self.times[self.scored.input.representative[index]]
    }

    fn best_of(&self, indices: &[usize]) -> Option<f64> {
        indices.iter().filter_map(|&index| self.time(index)).min_by(f64::total_cmp)
    }

    /// The best of the first candidates.
    fn first(&self) -> Option<f64> {
        let candidates = self.scored.candidates(Strategy::Refit);
        self.best_of(candidates.get(..FIRST).unwrap_or(&candidates))
    }

    /// The model's single choice.
    fn predicted(&self) -> Option<f64> {
        let winner = self.scored.predicted_winner(&self.scored.promises(&self.scored.choices(Strategy::Refit)));
        self.time(winner.map_or(self.scored.input.baseline, |(winner, _)| winner))
    }

    /// The model's choice if only some sets of macros are compiled.
    fn screened_choice(&self) -> usize {
        let input = &self.scored.input;
        let mut sets = vec![input.configurations[input.baseline].front_end()];
        for configuration in &input.configurations {
            let set = configuration.front_end();
            // What is not timed has no math options.
            if set.math.is_none() && !sets.contains(&set) {
                sets.push(set);
            }
        }
        let sets = tune::spread_macro_sets(&sets, SETS);
        let mut choices = self.scored.choices(Strategy::Refit);
        choices.retain(|&index| sets.contains(&input.configurations[index].front_end()));
        let winner = self.scored.predicted_winner(&self.scored.promises(&choices));
        winner.map_or(input.baseline, |(winner, _)| winner)
    }

    /// What a strategy sends to the GPU in all its rounds.
    fn sent(&self, strategy: Strategy, most: usize) -> Vec<usize> {
        let mut sent = Vec::new();
        let Ok(()) = self.scored.search(strategy, most, &[], |round| {
            sent.extend_from_slice(round);
            Ok::<_, std::convert::Infallible>(round.iter().map(|&index| self.time(index)).collect())
        });
        sent
    }

    /// What the tuner would settle on if every launch took the recorded time; `None` for the baseline.
    fn winner(&self, candidates: &[usize], baseline_us: f64) -> Option<usize> {
        let rounds = |us: f64| vec![us; tune::ROUNDS as usize];
        let timed: Vec<(usize, f64)> =
            candidates.iter().filter_map(|&index| Some((index, self.time(index)?))).collect();
        let met: Vec<(usize, Vec<f64>)> =
            tune::finalists(&timed).into_iter().filter_map(|index| Some((index, rounds(self.time(index)?)))).collect();
        let met = met.iter().map(|(index, samples)| (*index, samples.as_slice()));
        tune::settled(&rounds(baseline_us), met).map(|(index, _)| index)
    }

    fn taus(&self) -> [f64; METRICS.len()] {
        // More of RO and efficiency is better, less of C and time.
        [
            self.tau(|score| score.c),
            self.tau(|score| -score.ro),
            self.tau(|score| -score.efficiency),
            self.tau(|score| score.predicted_us),
        ]
    }

    fn tau(&self, metric: fn(&Score) -> f64) -> f64 {
        let (indices, points) = self.scored.points();
        let timed = indices.iter().zip(&points);
        tau_b(&timed.filter_map(|(&index, point)| Some((metric(&point.score), self.time(index)?))).collect::<Vec<_>>())
    }
}
