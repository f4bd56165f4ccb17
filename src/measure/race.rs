//! Paired samples of a duel's contenders -> who is out, and whether it is decided.
//!
//! In: the times of all contenders round by round, the baseline's first. Out: who is sampled
//! further. Invariant: what is concluded from the looks and from the verdict after the last round
//! is wrong no more often than [`ERROR_RATE`], all together (Bonferroni).

use super::outcome::quantile;
use super::verdict::{ERROR_RATE, Verdict, faster_by, median_interval, ratios, slower_by};

/// The numbers of rounds after which the samples are looked at, before the last round. With fewer
/// than 12, no sample is sure enough for [`ONE_LOOK`]: 2 * 0.5^12 = 0.0005.
const LOOKS: [usize; 5] = [12, 16, 20, 26, 33];
/// How often a look may be wrong. Small, because what it leaves is the last verdict's.
const ONE_LOOK: f64 = 0.0005;
/// The width of an interval in which a ratio is known closely: a fraction of the gain that counts.
const CLOSELY: f64 = 0.003;
/// By how much another finalist may be faster than the leader when the rounds end.
const NEGLIGIBLE_GAIN: f64 = 0.003;
/// How often the verdict after the last round may be wrong.
pub const LAST_VERDICT: f64 = ERROR_RATE - LOOKS.len() as f64 * ONE_LOOK;

/// How many buffer sets a duel with warm caches has by turns: its rounds until the first look. The time
/// of a launch whose data the L2 cache holds depends on the addresses of its buffers, which are
/// chance in a program, and so does the ratio of two candidates: 0.95 to 1.13 for a matrix product
/// of PolyBench, 0.97 to 0.98 with cold caches (H200, `kernels/results/h200/addresses.txt`).
pub(super) const BUFFER_SETS: u32 = LOOKS[0] as u32;

/// The median time of each buffer set, of the samples of a duel with warm caches: samples of one set
/// are no independent draws of what a program may have.
pub fn medians_by_set(samples: &[f64]) -> Vec<f64> {
    let sets = BUFFER_SETS as usize;
    (0..sets).filter_map(|set| median(samples.iter().skip(set).step_by(sets).copied().collect())).collect()
}

fn median(mut times: Vec<f64>) -> Option<f64> {
    times.sort_by(f64::total_cmp);
    quantile(&times, 0.5)
}

/// A contender's samples, in microseconds.
pub(super) struct Racer<T> {
    pub contender: T,
    /// Those of rounds that counted.
    pub times: Vec<f64>,
}

/// Tells whether more rounds with warm caches would change nothing for those who are compared with
/// the first, the baseline: each of them is surely slower, or its ratio to the baseline is known
/// closely.
pub(super) fn is_known<T>(racers: &[Racer<T>]) -> bool {
    let Some((baseline, challengers)) = racers.split_first() else { return true };
    let before = medians_by_set(&baseline.times);
    let is_slower = |racer: &Racer<T>| {
        matches!(slower_by(&before, &medians_by_set(&racer.times), ONE_LOOK), Verdict::Faster { .. })
    };
    let is_close = |racer: &Racer<T>| {
        let interval = median_interval(&ratios(&racer.times, &baseline.times), ONE_LOOK);
        interval.is_some_and(|(low, high)| high - low < CLOSELY)
    };
    LOOKS.contains(&baseline.times.len()) && challengers.iter().all(|racer| is_slower(racer) || is_close(racer))
}

/// Takes out who surely takes longer than the fastest challenger; the first is the baseline, and
/// stays. True where it is decided: each challenger that is left is surely faster than the
/// baseline, and surely not faster than the leader by more than [`NEGLIGIBLE_GAIN`]; or none may
/// be faster than the baseline.
pub(super) fn is_decided<T>(racers: &mut Vec<Racer<T>>) -> bool {
    let Some((baseline, challengers)) = racers.split_first() else { return true };
    if !LOOKS.contains(&baseline.times.len()) {
        return false;
    }
    let time = |racer: &Racer<T>| median(racer.times.clone()).unwrap_or(f64::INFINITY);
    let Some(leader) = challengers.iter().min_by(|a, b| time(a).total_cmp(&time(b))) else { return true };
    let leading = leader.times.clone();
    // At least this many times the leader's time.
    let least_ratio =
        |racer: &Racer<T>| median_interval(&ratios(&racer.times, &leading), ONE_LOOK).map_or(0.0, |(low, _)| low);
    let mut position = 0;
    racers.retain(|racer| {
        position += 1;
        position == 1 || least_ratio(racer) <= 1.0
    });
    let (baseline, left) = (&racers[0], &racers[1..]);
    let verdict = |racer: &Racer<T>| faster_by(&baseline.times, &racer.times, ONE_LOOK);
    let is_ahead = |racer: &Racer<T>| matches!(verdict(racer), Verdict::Faster { .. });
    let is_behind = |racer: &Racer<T>| matches!(verdict(racer), Verdict::NotFaster { .. });
    let is_as_fast = |racer: &Racer<T>| least_ratio(racer) > 1.0 - NEGLIGIBLE_GAIN;
    left.iter().all(|racer| is_ahead(racer) && is_as_fast(racer)) || left.iter().all(is_behind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::random::Random;

    /// Times around a mean, with 1% of noise.
    fn times(mean: f64, rounds: usize, random: &mut Random) -> Vec<f64> {
        (0..rounds).map(|_| mean * (0.99 + 0.02 * random.uniform())).collect()
    }

    /// The rounds of a duel of these means, and who is left.
    fn race(means: &[f64], seed: u64) -> (usize, Vec<usize>) {
        let mut random = Random::new(seed);
        let all: Vec<Vec<f64>> = means.iter().map(|&mean| times(mean, 41, &mut random)).collect();
        let mut racers: Vec<Racer<usize>> =
            (0..means.len()).map(|contender| Racer { contender, times: Vec::new() }).collect();
        let mut round = 0;
        while round < 41 && !is_decided(&mut racers) {
            for racer in &mut racers {
                racer.times.push(all[racer.contender][round]);
            }
            round += 1;
        }
        (racers[0].times.len(), racers.iter().map(|racer| racer.contender).collect())
    }

    #[test]
    fn it_ends_when_decided() {
        for (why, means, rounds, left) in [
            ("one challenger is surely the fastest", vec![100.0, 80.0, 90.0, 85.0], 12, vec![0, 1]),
            ("none is faster than the baseline", vec![100.0, 105.0, 110.0], 12, vec![0, 1]),
            ("two are equal, as far as the noise shows", vec![100.0, 80.0, 80.0, 90.0], 41, vec![0, 1, 2]),
            ("one is about as much faster as counts", vec![100.0, 99.2], 41, vec![0, 1]),
        ] {
            assert_eq!(race(&means, 7), (rounds, left), "{why}");
        }
    }

    #[test]
    fn duel_with_warm_caches_ends_when_the_ratio_is_known() {
        let mut random = Random::new(3);
        for (why, challenger, noise, expected) in [
            ("surely slower", 110.0, 1.0, 12),
            ("faster, but it is not known by how much", 80.0, 1.0, 41),
            ("faster, and it is known by how much", 80.0, 0.05, 12),
            ("equal", 100.0, 0.05, 12),
            ("equal, as far as the noise shows", 100.0, 1.0, 41),
        ] {
            let means = [100.0, challenger];
            let mut racers = means.map(|_| Racer { contender: (), times: Vec::new() });
            let mut rounds = 0;
            while rounds < 41 && !is_known(&racers) {
                for (racer, mean) in racers.iter_mut().zip(means) {
                    racer.times.extend(times(mean, 1, &mut random).iter().map(|us| mean + noise * (us - mean)));
                }
                rounds += 1;
            }
            assert_eq!(rounds, expected, "{why}");
        }
    }

    #[test]
    fn samples_of_one_buffer_set_count_once() {
        assert_eq!(medians_by_set(&[3.0, 1.0, 2.0]), [3.0, 1.0, 2.0], "fewer rounds than sets");
        let times: Vec<f64> = (0..36).map(|round| f64::from(100 * (round % 12) + round / 12)).collect();
        let expected: Vec<f64> = (0..12).map(|set| f64::from(100 * set + 1)).collect();
        assert_eq!(medians_by_set(&times), expected);
        // Slower in nine of twelve sets, which a chance of 7% gives to two of equal medians.
        let (before, after): (Vec<f64>, Vec<f64>) =
            (0..41).map(|round| (100.0, if round % 12 < 9 { 105.0 } else { 95.0 })).unzip();
        let is_slower =
            |before: &[f64], after: &[f64]| matches!(slower_by(before, after, LAST_VERDICT), Verdict::Faster { .. });
        assert!(is_slower(&before, &after));
        assert!(!is_slower(&medians_by_set(&before), &medians_by_set(&after)));
    }

    #[test]
    fn equal_challengers_are_seldom_taken_out() {
        let wrong = (0..400).filter(|&seed| race(&[100.0, 80.0, 80.0], seed).1.len() < 3).count();
        assert!(wrong <= 12, "{wrong} of 400");
    }

    #[test]
    fn it_ends_among_equal_challengers_where_noise_is_low() {
        let mut random = Random::new(3);
        let mut racers = Vec::from([100.0, 80.0, 80.0, 80.0].map(|mean| Racer { contender: mean, times: Vec::new() }));
        let mut rounds = 0;
        while rounds < 41 && !is_decided(&mut racers) {
            for racer in &mut racers {
                let us = times(racer.contender, 1, &mut random)[0];
                racer.times.push(racer.contender + 0.1 * (us - racer.contender));
            }
            rounds += 1;
        }
        assert_eq!((rounds, racers.len()), (12, 4));
    }
}
