//! The chosen configuration, and how it was chosen.

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

/// A prediction replaces the baseline only where it promises more than the model's usual error between neighbours.
const PREDICTED_GAIN: f64 = 1.05;

/// The winner by prediction alone: the candidate of least predicted time, or `None` (the baseline) where it does not
/// promise to be at least 5% faster.
///
/// `candidates` are points with their predicted times; of equals the first wins.
pub fn predicted_winner(candidates: &[(usize, f64)], baseline_us: f64) -> Option<usize> {
    let finite = candidates.iter().filter(|(_, time)| time.is_finite());
    let &(index, time) = finite.min_by(|a, b| a.1.total_cmp(&b.1))?;
    (baseline_us / time >= PREDICTED_GAIN).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_must_promise_a_clear_gain() {
        assert_eq!(predicted_winner(&[(3, 100.0), (1, 110.0)], 120.0), Some(3));
        assert_eq!(predicted_winner(&[(1, 110.0), (3, 100.0), (2, 100.0)], 120.0), Some(3));
        assert_eq!(predicted_winner(&[(3, 100.0)], 104.0), None);
        assert_eq!(predicted_winner(&[(3, f64::NAN)], 104.0), None);
        assert_eq!(predicted_winner(&[], 104.0), None);
    }
}
