//! Jobs and a plan -> the order in which a bench checks and samples them, and the replies that
//! tell of it.
//!
//! The method is nvbench's cold measurement (`measure_cold.cuh`: one launch a sample, the L2
//! cache flushed before each), but with the samples of all candidates interleaved round by
//! round, so that a drift of the clocks meets all of them alike. Invariant: no
//! candidate is sampled before its results were found to agree, and each sample is announced
//! before.

use super::bench::{Bench, Halt, Sampling};
use super::candidate::{Caches, Plan};
use super::protocol::{Job, Reply, Rounds};
use super::race::{self, Racer};
use super::sampled::Sampled;
use crate::workload::random::Order;
use std::time::{Duration, Instant};

/// The baseline is run for this long before the first sample, for the clocks to rise from idle,
/// but not more often than this.
const WARM_UP: Duration = Duration::from_millis(50);
const WARM_UP_LAUNCHES: u32 = 50;

/// So long after the last launch the clocks are still up.
const WARM: Duration = Duration::from_millis(500);

/// Where the baseline takes less than this many microseconds, what a launch itself takes would
/// swamp what candidates differ by.
pub(super) const SHORT_US: f64 = 20.0;

/// The host holds up a launch now and then, for this many microseconds at most: one that may be
/// short is looked at so often.
const HELD_UP_US: f64 = 400.0;
const LOOKS: u32 = 10;

/// Share of the budget after which no further candidate is checked, so that some is left for
/// those that were.
const CHECK_SHARE: f64 = 0.7;

/// A round during which the GPU was throttled is repeated after a pause, but not more often
/// than this for a kernel: some GPUs run at the limit of their power all the time, and the order
/// within rounds is fair to all candidates even so.
const REPEATS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(100);

/// What lasts from one request to the next.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When the last request was served.
    served: Option<Instant>,
    /// Whether the baseline is short, whose results the bench has: times of different requests
    /// are compared with each other.
    short: Option<bool>,
    /// The rounds that were repeated since the baseline was run for its results.
    repeats: u32,
}

impl Pace {
    fn is_warm(&self) -> bool {
        self.served.is_some_and(|served| served.elapsed() < WARM)
    }

    /// Whether the baseline is short, whose fastest launch took this many microseconds now.
    fn is_short(&mut self, us: f64) -> bool {
        *self.short.get_or_insert(us < SHORT_US)
    }
}

/// Serves [`Request::Time`](super::protocol::Request::Time): the first job is the baseline. An
/// error means that the bench is of no more use; the replies were sent.
pub(super) fn time(
    bench: &mut dyn Bench,
    jobs: &[Job],
    plan: &Plan,
    pace: &mut Pace,
    send: &mut dyn FnMut(Reply),
) -> Result<(), Unusable> {
    let begin = Instant::now();
    let spent = || begin.elapsed().as_secs_f64();
    let Some((baseline, candidates)) = jobs.split_first() else {
        send(Reply::Done);
        return Ok(());
    };

    if !has_results(bench, baseline, pace, send)? {
        send(Reply::Done);
        return Ok(());
    }
    let Some(us) = warm_up(bench, baseline, pace.is_warm(), send)? else {
        send(Reply::Done);
        return Ok(());
    };
    let sampling = Sampling { short: pace.is_short(us), ..Sampling::default() };

    // Each candidate is sampled right after its check: it is loaded and warm, and each has a sample
    // however short the budget.
    let mut field: Vec<Sampled<'_>> = Vec::with_capacity(jobs.len());
    for job in jobs {
        if !field.is_empty() && spent() > CHECK_SHARE * plan.budget_s {
            break;
        }
        send(Reply::Running(job.slot));
        let mut first_us = f64::INFINITY;
        if !job.checked && job.slot != baseline.slot {
            let checked = bench.check(job, &mut || send(Reply::Working));
            let Some(us) = send_result(job, checked, send)? else {
                continue;
            };
            first_us = us;
            send(Reply::Checked(job.slot, us));
        }
        if let Some(us) = sample(bench, job, sampling, send)? {
            field.push(Sampled::new(job, us, first_us));
        }
    }

    let mut order = Order::new(plan.seed, candidates.len());
    let mut round = u32::from(round_counts(bench, pace, spent() < plan.budget_s, send));
    'rounds: while round < plan.rounds {
        let best = field.iter().map(|sampled| sampled.fastest).fold(f64::MAX, f64::min);
        // Where the first round does not count, each is to have a sample that does.
        field.retain(|sampled| {
            if round == 0 {
                return true;
            }
            sampled.is_in_time(plan) && (sampled.job.slot == baseline.slot || sampled.is_open(round, best, plan))
        });
        if field.is_empty() {
            break;
        }
        order.shuffle(&mut field);
        for sampled in &mut field {
            if spent() > plan.budget_s {
                break 'rounds;
            }
            // A candidate that fails now is refused by the reply; infinity takes it out of the field.
            sampled.add(sample(bench, sampled.job, sampling, send)?.unwrap_or(f64::INFINITY));
        }
        field.retain(|sampled| sampled.fastest.is_finite());
        round += u32::from(round_counts(bench, pace, spent() < plan.budget_s, send));
    }
    pace.served = Some(Instant::now());
    send(Reply::Done);
    Ok(())
}

/// Serves [`Request::Ahead`](super::protocol::Request::Ahead): runs the baseline for its
/// results, where they are not there.
pub(super) fn ahead(
    bench: &mut dyn Bench,
    baseline: &Job,
    pace: &mut Pace,
    send: &mut dyn FnMut(Reply),
) -> Result<(), Unusable> {
    has_results(bench, baseline, pace, send).map(drop)
}

/// Runs the baseline for its results, where they are not there. False where it was refused.
fn has_results(
    bench: &mut dyn Bench,
    baseline: &Job,
    pace: &mut Pace,
    send: &mut dyn FnMut(Reply),
) -> Result<bool, Unusable> {
    if bench.has_reference(baseline) {
        return Ok(true);
    }
    (pace.short, pace.repeats) = (None, 0);
    send(Reply::Running(baseline.slot));
    let first = bench.reference(baseline, &mut || send(Reply::Working));
    let us = send_result(baseline, first, send)?;
    us.into_iter().for_each(|us| send(Reply::Checked(baseline.slot, us)));
    Ok(us.is_some())
}

/// Serves [`Request::Duel`](super::protocol::Request::Duel).
pub(super) fn duel(
    bench: &mut dyn Bench,
    jobs: &[Job],
    rounds: Rounds,
    pace: &mut Pace,
    send: &mut dyn FnMut(Reply),
) -> Result<(), Unusable> {
    let mut field = Vec::with_capacity(jobs.len());
    let mut sampling = Sampling { caches: rounds.caches, ..Sampling::default() };
    for job in jobs {
        send(Reply::Running(job.slot));
        let warm = bench.warm(job, &mut || send(Reply::Working));
        let us = match send_result(job, warm, send)? {
            Some(_) => warm_up(bench, job, pace.is_warm(), send)?,
            None => None,
        };
        // The first is the baseline, here too: without it there is nothing to decide.
        if us.is_none() && field.is_empty() {
            break;
        }
        if let Some(us) = us {
            if field.is_empty() {
                sampling.short = if bench.has_reference(job) { pace.is_short(us) } else { us < SHORT_US };
            }
            field.push(Racer { contender: job, times: Vec::new() });
            pace.served = Some(Instant::now());
        }
    }
    let mut order = Order::new(rounds.seed, jobs.len());
    // With warm caches it is asked who is slower, not who is fastest.
    let may_end = rounds.caches == Caches::Cold;
    let mut round = 0;
    while round < rounds.count && !field.is_empty() {
        let mut turns: Vec<usize> = (0..field.len()).collect();
        order.shuffle(&mut turns);
        let mut times = vec![None; field.len()];
        for turn in turns {
            times[turn] = sample(bench, field[turn].contender, sampling, send)?;
        }
        let counts = round_counts(bench, pace, true, send);
        round += u32::from(counts);
        let is_whole = times[0].is_some();
        let mut times = times.into_iter();
        field.retain_mut(|racer| {
            let us = times.next().flatten();
            racer.times.extend(us.filter(|_| counts));
            us.is_some()
        });
        // Without the baseline there is nothing to decide.
        if !is_whole || may_end && counts && race::is_decided(&mut field) {
            break;
        }
    }
    pace.served = Some(Instant::now());
    send(Reply::Done);
    Ok(())
}

/// Ends a round: tells how the GPU is, and whether the round counts. One that does not is
/// followed by a pause.
fn round_counts(bench: &mut dyn Bench, pace: &mut Pace, time_is_left: bool, send: &mut dyn FnMut(Reply)) -> bool {
    let condition = bench.condition();
    let counts = condition.throttled.is_empty() || pace.repeats >= REPEATS || !time_is_left;
    send(Reply::Round(condition, counts));
    if !counts {
        pace.repeats += 1;
        std::thread::sleep(PAUSE);
        send(Reply::Working);
    }
    counts
}

/// The bench cannot be used any more.
#[derive(Debug)]
pub(super) struct Unusable;

/// Runs `job` until the clocks have risen, or where they are up until it is known whether it is
/// short; gives the microseconds of its fastest launch. `None` where it was refused.
fn warm_up(
    bench: &mut dyn Bench,
    job: &Job,
    is_warm: bool,
    send: &mut dyn FnMut(Reply),
) -> Result<Option<f64>, Unusable> {
    let begin = Instant::now();
    let mut fastest = f64::INFINITY;
    for launch in 1..=WARM_UP_LAUNCHES {
        send(Reply::Running(job.slot));
        let result = bench.sample(job, Sampling::default());
        let Some(us) = send_result(job, result, send)? else {
            return Ok(None);
        };
        fastest = fastest.min(us);
        let is_doubtful = (SHORT_US..HELD_UP_US).contains(&fastest) && launch < LOOKS;
        if (is_warm || begin.elapsed() > WARM_UP) && !is_doubtful {
            break;
        }
    }
    Ok(Some(fastest))
}

/// Takes one sample and tells it. `None` where the job was refused.
fn sample(
    bench: &mut dyn Bench,
    job: &Job,
    sampling: Sampling,
    send: &mut dyn FnMut(Reply),
) -> Result<Option<f64>, Unusable> {
    send(Reply::Running(job.slot));
    let result = bench.sample(job, sampling);
    let us = send_result(job, result, send)?;
    if let Some(us) = us {
        send(Reply::Sample(job.slot, us));
    }
    Ok(us)
}

/// Tells why a job did not run to its end, if it did not.
fn send_result<T>(job: &Job, result: Result<T, Halt>, send: &mut dyn FnMut(Reply)) -> Result<Option<T>, Unusable> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Halt::Refused(reason)) => {
            send(Reply::Refused(job.slot, reason));
            Ok(None)
        }
        Err(Halt::Faulted(reason)) => {
            send(Reply::Faulted(job.slot, reason));
            Err(Unusable)
        }
        Err(Halt::Failed(message)) => {
            send(Reply::Failed(message));
            Err(Unusable)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::Condition;
    use crate::launch::Launch;
    use crate::measure::candidate::Caches;
    use crate::measure::outcome::Reason;
    use crate::workload::Workload;

    /// Answers at once: the third job is refused, the fourth slow.
    #[derive(Default)]
    struct Steady {
        /// The conditions of the first rounds, the first one last.
        conditions: Vec<Condition>,
        /// The number of samples of the second job that are held up.
        held_up: u32,
        /// How long the baseline is held up, launch by launch, the first one last, and then
        /// takes this long.
        baseline: (Vec<f64>, Option<f64>),
        /// Whether the samples of the last request were a short kernel's.
        short: bool,
    }

    fn us(job: &Job) -> f64 {
        match job.slot {
            3 => 500.0,
            6 => 130.0,
            _ => 100.0,
        }
    }

    impl Bench for Steady {
        fn load(&mut self, _: Vec<Vec<u8>>, _: Vec<Workload>) {}

        fn clear(&mut self) {}

        fn reference(&mut self, job: &Job, _: &mut dyn FnMut()) -> Result<f64, Halt> {
            Ok(us(job))
        }

        fn has_reference(&self, job: &Job) -> bool {
            job.checked
        }

        fn check(&mut self, job: &Job, _: &mut dyn FnMut()) -> Result<f64, Halt> {
            match job.slot {
                2 => Err(Halt::Refused(Reason::OutOfMemory { bytes: 1 })),
                _ => Ok(us(job)),
            }
        }

        fn warm(&mut self, job: &Job, alive: &mut dyn FnMut()) -> Result<(), Halt> {
            self.check(job, alive).map(drop)
        }

        fn sample(&mut self, job: &Job, sampling: Sampling) -> Result<f64, Halt> {
            self.short = sampling.short;
            if let (0, Some(us)) = (job.slot, self.baseline.1) {
                return Ok(us + self.baseline.0.pop().unwrap_or_default());
            }
            if job.slot == 1 && self.held_up > 0 {
                self.held_up -= 1;
                return Ok(10.0 * us(job));
            }
            Ok(us(job))
        }

        fn condition(&mut self) -> Condition {
            self.conditions.pop().unwrap_or_default()
        }
    }

    fn jobs(n: u32) -> Vec<Job> {
        let job = |slot| Job {
            slot,
            label: String::new(),
            kernel: "k".to_owned(),
            launch: Launch { grid: [1; 3], block: [1; 3], shared: 0, carveout: None },
            cooperative: false,
            needs_comparison: false,
            variant: 0,
            workload: 0,
            checked: false,
        };
        (0..n).map(job).collect()
    }

    fn rounds(count: u32) -> Rounds {
        Rounds { count, caches: Caches::Cold, seed: 1 }
    }

    /// The slots sampled, in order. Panics where a sample was not announced, or is of a job
    /// that was not checked.
    fn samples(replies: &[Reply], unchecked: bool) -> Vec<u32> {
        let mut checked = Vec::new();
        let mut samples = Vec::new();
        for (i, reply) in replies.iter().enumerate() {
            match reply {
                Reply::Checked(slot, _) => checked.push(*slot),
                Reply::Sample(slot, _) => {
                    assert_eq!(replies[i - 1], Reply::Running(*slot));
                    assert!(unchecked || checked.contains(slot));
                    samples.push(*slot);
                }
                _ => {}
            }
        }
        assert_eq!(replies.last(), Some(&Reply::Done));
        samples
    }

    #[test]
    fn samples_are_interleaved_by_rounds() {
        let plan = Plan { rounds: 5, ..Plan::default() };
        let run = || {
            let mut replies = Vec::new();
            time(&mut Steady::default(), &jobs(6), &plan, &mut Pace::default(), &mut |reply| replies.push(reply))
                .unwrap();
            samples(&replies, false)
        };
        let order = run();
        let (first, rest) = order.split_at(5);
        assert_eq!(first, [0, 1, 3, 4, 5], "each is sampled after its check");
        assert_eq!(rest.len(), 4 * 4, "the slow one is dropped");
        let mut orders = Vec::new();
        for round in rest.chunks(4) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 4, 5]);
            orders.push(round);
        }
        orders.dedup();
        assert!(orders.len() > 1, "the order is drawn anew");
        assert_eq!(order, run(), "from a fixed seed");
    }

    #[test]
    fn a_first_sample_that_is_held_up_does_not_end_it() {
        let plan = Plan { rounds: 6, ..Plan::default() };
        let mut replies = Vec::new();
        let mut bench = Steady { held_up: 1, ..Steady::default() };
        time(&mut bench, &jobs(2), &plan, &mut Pace::default(), &mut |reply| replies.push(reply)).unwrap();
        assert_eq!(samples(&replies, false).iter().filter(|&&slot| slot == 1).count(), 6);
    }

    #[test]
    fn sampling_ends_where_more_would_not_change_the_verdict() {
        // The samples of the baseline (100 us), and of candidates of 100, 500 and 130 us.
        for (keep, expected) in [(2.0, [9, 5, 1, 3]), (3.0, [9, 5, 1, 5]), (100.0, [9, 5, 5, 5])] {
            let mut replies = Vec::new();
            let plan = Plan { keep, ..Plan::default() };
            time(&mut Steady::default(), &jobs(7), &plan, &mut Pace::default(), &mut |reply| replies.push(reply))
                .unwrap();
            let slots = samples(&replies, false);
            let counts = [0, 1, 3, 6].map(|slot| slots.iter().filter(|&&found| found == slot).count());
            assert_eq!(counts, expected, "within {keep} times the best");
        }
        // Samples that differ are taken to the end.
        let mut replies = Vec::new();
        let mut bench = Steady { held_up: 1, ..Steady::default() };
        time(&mut bench, &jobs(2), &Plan::default(), &mut Pace::default(), &mut |reply| replies.push(reply)).unwrap();
        assert_eq!(samples(&replies, false).iter().filter(|&&slot| slot == 1).count(), 9);
    }

    #[test]
    fn a_kernel_is_short_in_all_requests_or_in_none() {
        for (baseline_us, expected) in [(5.0, true), (19.0, true), (21.0, false), (500.0, false)] {
            let (mut bench, mut pace) = (Steady::default(), Pace::default());
            let mut known = jobs(2);
            for (held_up_us, is_duel) in [(0.0, false), (19.0, false), (19.0, true), (300.0, false), (-10.0, true)] {
                bench.baseline = (vec![held_up_us], Some(baseline_us));
                match is_duel {
                    true => duel(&mut bench, &known, rounds(3), &mut pace, &mut |_| {}).unwrap(),
                    false => time(&mut bench, &known, &Plan::default(), &mut pace, &mut |_| {}).unwrap(),
                }
                assert_eq!(bench.short, expected, "{baseline_us} us, held up {held_up_us} us");
                known[0].checked = true;
            }
        }
        // The next one's results are not known, or it has none.
        for is_duel in [true, false] {
            let (mut bench, mut pace) =
                (Steady { baseline: (vec![], Some(500.0)), ..Steady::default() }, Pace::default());
            time(&mut bench, &jobs(2), &Plan::default(), &mut pace, &mut |_| {}).unwrap();
            bench.baseline = (vec![19.0], Some(5.0));
            match is_duel {
                true => duel(&mut bench, &jobs(2), rounds(3), &mut pace, &mut |_| {}).unwrap(),
                false => time(&mut bench, &jobs(2), &Plan::default(), &mut pace, &mut |_| {}).unwrap(),
            }
            assert!(bench.short);
        }
    }

    #[test]
    fn a_candidate_takes_no_more_than_its_time() {
        // Of 100 us and 500 us.
        for (sample_s, expected) in [(0.00025, [3, 3, 1]), (0.00045, [5, 5, 1]), (1.0, [6, 5, 5])] {
            let plan = Plan { rounds: 6, keep: 100.0, sample_s: Some(sample_s), ..Plan::default() };
            let mut replies = Vec::new();
            time(&mut Steady::default(), &jobs(4), &plan, &mut Pace::default(), &mut |reply| replies.push(reply))
                .unwrap();
            let slots = samples(&replies, false);
            let counts = [0, 1, 3].map(|slot| slots.iter().filter(|&&found| found == slot).count());
            assert_eq!(counts, expected, "{sample_s} s");
        }
    }

    #[test]
    fn duels_pair_samples() {
        let mut replies = Vec::new();
        duel(&mut Steady::default(), &jobs(4), rounds(3), &mut Pace::default(), &mut |reply| replies.push(reply))
            .unwrap();
        for round in samples(&replies, true).chunks(3) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 3]);
        }
    }

    #[test]
    fn throttled_rounds_are_repeated_so_many_times() {
        let hot = Condition { throttled: vec!["hot".to_owned()], ..Condition::default() };
        for (hot_rounds, repeated) in [(0, 0), (2, 2), (9, REPEATS as usize)] {
            let mut replies = Vec::new();
            let mut bench = Steady { conditions: vec![hot.clone(); hot_rounds], ..Steady::default() };
            duel(&mut bench, &jobs(2), rounds(6), &mut Pace::default(), &mut |reply| replies.push(reply)).unwrap();
            let count_samples = |wanted: bool| {
                replies.iter().filter(|reply| matches!(reply, Reply::Round(_, counts) if *counts == wanted)).count()
            };
            assert_eq!((count_samples(true), count_samples(false)), (6, repeated), "{hot_rounds} hot rounds");
            assert_eq!(samples(&replies, true).len(), 2 * (6 + repeated));
        }
    }

    #[test]
    fn rounds_of_a_kernel_are_repeated_a_few_times_in_all() {
        let hot = Condition { throttled: vec!["hot".to_owned()], ..Condition::default() };
        let mut pace = Pace::default();
        let mut repeats_of = |hot_rounds: usize| {
            let mut replies = Vec::new();
            let mut bench = Steady { conditions: vec![hot.clone(); hot_rounds], ..Steady::default() };
            duel(&mut bench, &jobs(2), rounds(6), &mut pace, &mut |reply| replies.push(reply)).unwrap();
            replies.iter().filter(|reply| matches!(reply, Reply::Round(_, false))).count()
        };
        assert_eq!([1, 2, 6, 6].map(&mut repeats_of), [1, 2, REPEATS as usize - 3, 0]);
    }

    #[test]
    fn a_baseline_whose_results_are_known_is_not_run_for_them_again() {
        let mut known = jobs(2);
        known[0].checked = true;
        let mut replies = Vec::new();
        time(&mut Steady::default(), &known, &Plan::default(), &mut Pace::default(), &mut |reply| replies.push(reply))
            .unwrap();
        let checked: Vec<_> = replies.iter().filter(|reply| matches!(reply, Reply::Checked(..))).collect();
        assert_eq!(checked, [&Reply::Checked(1, 100.0)]);
    }
}
