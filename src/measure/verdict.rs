//! Decides from paired samples of two candidates whether one is faster.
//!
//! In: times of the baseline and of a challenger, pair by pair from the same rounds. Out: a
//! [`Verdict`]. Pure, and the same for the same samples. Invariant: a challenger is called faster
//! only with 99% confidence (unless another error rate is asked for) and a gain of at least 1%,
//! and of 0.2 us.

/// A gain below this is not worth a change of the build.
pub const MINIMUM_GAIN: f64 = 1.01;

/// Minimum gain in microseconds a launch. A change can cost the launches around it as much: in
/// `jacobi1D` of PolyBench one kernel gained 0.15 us as it was timed, and 0.06 us in the program,
/// where the other one, unchanged, lost 0.08 us (H200,
/// `kernels/results/h200/unmarked_projects_3.json`).
const MINIMUM_GAIN_US: f64 = 0.2;

/// Pairs needed before a verdict other than [`Verdict::Ambiguous`] is possible: with fewer,
/// even all of them pointing one way happens by chance more often than [`ERROR_RATE`] (2 *
/// 0.5^7 = 0.016).
pub const MINIMUM_PAIRS: usize = 8;

/// How often the confidence interval may miss the true ratio.
pub const ERROR_RATE: f64 = 0.01;

/// What the samples say of the challenger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// It is faster: `ratio` is the median of baseline time over its time.
    Faster { ratio: f64 },
    /// Its gain is surely too small to count, or it is slower.
    NotFaster { ratio: f64 },
    /// More samples could decide either way. `ratio` is 0 where there is no sample.
    Ambiguous { ratio: f64 },
}

/// Judges `challenger` against `baseline`, microseconds of the same rounds in the same order;
/// what exceeds the shorter of the two is not looked at, nor is a pair that is not finite and
/// positive.
///
/// The median of the paired ratios is bracketed by order statistics: of `n` samples the k-th
/// smallest and the k-th largest enclose the true median with probability 1 - 2 * P(Binomial(n,
/// 1/2) < k) whatever the distribution (the interval that belongs to the sign test; Gibbons and
/// Chakraborti, Nonparametric Statistical Inference, 5.2).
pub fn faster(baseline: &[f64], challenger: &[f64]) -> Verdict {
    faster_by(baseline, challenger, ERROR_RATE)
}

/// [`faster`], wrong no more often than `error_rate`.
pub fn faster_by(baseline: &[f64], challenger: &[f64], error_rate: f64) -> Verdict {
    judge(baseline, challenger, error_rate, needed_ratio(baseline, challenger))
}

/// Whether `challenger` is slower: [`Verdict::Faster`] if the baseline is surely faster than it by
/// 1%, however few microseconds that is.
pub fn slower_by(baseline: &[f64], challenger: &[f64], error_rate: f64) -> Verdict {
    judge(challenger, baseline, error_rate, MINIMUM_GAIN)
}

/// A verdict for which the median ratio must be at least `needed`.
fn judge(baseline: &[f64], challenger: &[f64], error_rate: f64, needed: f64) -> Verdict {
    let ratios = ratios(baseline, challenger);
    let ratio = super::outcome::quantile(&ratios, 0.5).unwrap_or(0.0);
    let Some((low, high)) = median_interval(&ratios, error_rate) else {
        return Verdict::Ambiguous { ratio };
    };
    if low > 1.0 && ratio >= needed {
        Verdict::Faster { ratio }
    } else if high < needed {
        Verdict::NotFaster { ratio }
    } else {
        Verdict::Ambiguous { ratio }
    }
}

/// How many times as fast a challenger must be, at least, for its gain to count.
fn needed_ratio(baseline_us: &[f64], challenger_us: &[f64]) -> f64 {
    let pairs = baseline_us.iter().zip(challenger_us).filter(|(time, other)| is_valid(**time / **other));
    let mut sorted: Vec<f64> = pairs.map(|(time, _)| *time).collect();
    sorted.sort_by(f64::total_cmp);
    let time_us = super::outcome::quantile(&sorted, 0.5).unwrap_or(0.0);
    let left_us = time_us - MINIMUM_GAIN_US;
    if left_us > 0.0 { MINIMUM_GAIN.max(time_us / left_us) } else { f64::INFINITY }
}

fn is_valid(ratio: f64) -> bool {
    ratio.is_finite() && ratio > 0.0
}

/// The ratios of the pairs, sorted.
pub(super) fn ratios(times: &[f64], others: &[f64]) -> Vec<f64> {
    let ratios = times.iter().zip(others).map(|(time, other)| time / other);
    let mut ratios: Vec<f64> = ratios.filter(|ratio| is_valid(*ratio)).collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

/// The confidence interval of the median of sorted samples, which misses it no more often than
/// `error_rate`; `None` where there are too few, and for fewer than [`MINIMUM_PAIRS`].
pub(super) fn median_interval(sorted: &[f64], error_rate: f64) -> Option<(f64, f64)> {
    let n = sorted.len();
    if n < MINIMUM_PAIRS {
        return None;
    }
    // The largest k with 2 * P(Binomial(n, 1/2) < k) <= error_rate, by logarithms so that no n
    // underflows.
    let mut log_term = n as f64 * 0.5f64.ln();
    let mut tail = 0.0;
    let mut k = 0;
    while k < n / 2 {
        tail += log_term.exp();
        if 2.0 * tail > error_rate {
            break;
        }
        log_term += ((n - k) as f64 / (k + 1) as f64).ln();
        k += 1;
    }
    Some((*sorted.get(k.checked_sub(1)?)?, *sorted.get(n - k)?))
}
