//! The chosen configuration, and how it was chosen.

use super::hedge::{Doubt, Suppositions};
use super::strategy::Point;
use super::task::Task;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a winner was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// Timed on a GPU against the baseline.
    Measured,
    /// Taken from the lock file.
    Locked,
    /// Chosen by the model alone.
    Predicted,
    /// What plain nvcc would have used: nothing was found that is surely better.
    Baseline,
}

impl fmt::Display for Provenance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Measured => "measured",
            Self::Locked => "locked",
            Self::Predicted => "predicted",
            Self::Baseline => "baseline",
        })
    }
}

/// How wrong the model is supposed to be: a choice must bear it.
const DOUBT: Doubt = Doubt { part: 0.35, drift: 0.1 };
/// A choice is slower than the baseline in at most this share of them.
const RISK: f64 = 0.3;
/// And it promises at least this gain, the geometric mean over them.
const GAIN: f64 = 1.05;

/// The winner by prediction alone, and the gain that it promises; `None` for the baseline.
///
/// A prediction alone is as bold as it is wrong: the point of least predicted time is often one whose bottleneck the model
/// underrates. So the choice is made over what the model may be wrong about (see [`hedge`](super::hedge)): of the points that hardly
/// ever lose to the baseline that which gains most in the mean.
pub fn predicted_winner(points: &[Point], baseline: usize) -> Option<(usize, f64)> {
    points.get(baseline).filter(|point| point.score.predicted_us.is_finite())?;
    let task = Task::new(points, baseline, usize::MAX);
    let Suppositions { looked_at, times } = Suppositions::new(&task, DOUBT);
    let at_baseline = looked_at.iter().position(|&index| index == baseline)?;
    let gains = |at: usize| times.iter().map(move |times| times[at_baseline] - times[at]);
    let promise = |at: usize| {
        let slower = gains(at).filter(|gain| *gain < 0.0).count() as f64 / times.len() as f64;
        let gain = gains(at).sum::<f64>() / times.len() as f64;
        (slower <= RISK && gain >= GAIN.ln()).then_some((looked_at[at], gain.exp()))
    };
    (0..looked_at.len()).filter_map(promise).max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))
}

#[cfg(test)]
mod tests {
    use super::super::strategy::tests::bound;
    use super::*;
    use crate::model::Terms;

    /// What is chosen of points with these parts of their prediction, the first of them the baseline.
    fn chosen(terms: &[Terms]) -> Option<usize> {
        let points: Vec<Point> = terms.iter().copied().map(bound).collect();
        predicted_winner(&points, 0).map(|(index, _)| index)
    }

    fn latency(us: f64) -> Terms {
        Terms { latency: us, ..Terms::default() }
    }

    #[test]
    fn a_prediction_must_promise_a_clear_gain() {
        assert_eq!(chosen(&[latency(120.0), latency(110.0), latency(100.0), latency(100.0)]), Some(2));
        assert_eq!(chosen(&[latency(104.0), latency(100.0)]), None);
        assert_eq!(chosen(&[latency(104.0), latency(f64::INFINITY)]), None);
        assert_eq!(chosen(&[latency(f64::INFINITY), latency(100.0)]), None);
        assert_eq!(chosen(&[latency(104.0)]), None);
        assert_eq!(predicted_winner(&[], 0), None);
    }

    #[test]
    fn of_two_promises_the_one_that_asks_less_trust_is_kept() {
        let cache = |us: f64| Terms { cache: us, ..Terms::default() };
        // The caches would have to be judged right beside the latency for the last to win: they are as likely underrated.
        assert_eq!(chosen(&[latency(100.0), latency(90.0), cache(89.0)]), Some(1));
        assert_eq!(chosen(&[latency(100.0), cache(92.0)]), None);
        // So much faster that it hardly matters.
        assert_eq!(chosen(&[latency(100.0), latency(90.0), cache(30.0)]), Some(2));
    }
}
