//! Schedules jobs on a bench: the order in which they are checked and sampled, and the replies that
//! report it.
//!
//! The method is nvbench's cold measurement (`measure_cold.cuh`: one launch a sample, the L2
//! cache flushed before each), but with the samples of all candidates interleaved round by
//! round, so that a drift of the clocks meets all of them alike. Invariant: no
//! candidate is sampled before its results were found to agree, and each sample is announced
//! before.

use super::bench::{Bench, JobError, Sampling};
use super::candidate::{Caches, Plan};
use super::protocol::{Job, Reply, Rounds};
use super::race::{self, Racer};
use super::sampled::SampledCandidate;
use super::throttling::Throttling;
use crate::workload::random::Order;
use std::time::{Duration, Instant};

/// The baseline is run for this long before the first sample, for the clocks to rise from idle,
/// but not more often than this.
const WARM_UP: Duration = Duration::from_millis(50);
const WARM_UP_LAUNCHES: u32 = 50;

/// How long after the last launch the clocks are still up.
const WARM_FOR: Duration = Duration::from_millis(500);

/// A baseline that takes less than this many microseconds is short: the launch overhead would
/// exceed the differences between candidates.
pub(super) const SHORT_US: f64 = 20.0;

/// Maximum delay of a launch by the host in microseconds, and the number of launches by which it
/// is decided whether a kernel that may be short is.
const MAX_HOST_DELAY_US: f64 = 400.0;
const MAX_SHORT_PROBES: u32 = 10;

/// Share of the budget after which no further candidate is checked, so that some is left for
/// those that were.
const CHECK_SHARE: f64 = 0.7;

/// The pause before a throttled round is repeated.
const THROTTLE_PAUSE: Duration = Duration::from_millis(100);

/// The state that is kept from one request to the next.
#[derive(Debug, Default)]
pub(super) struct ScheduleState {
    /// When the last request was served.
    served: Option<Instant>,
    /// Whether the baseline whose results the bench has is short. This must not change between
    /// requests, as their times are compared with each other.
    short: Option<bool>,
    /// Which rounds count.
    throttling: Throttling,
}

impl ScheduleState {
    fn is_warm(&self) -> bool {
        self.served.is_some_and(|served| served.elapsed() < WARM_FOR)
    }

    /// Decides at the first call whether the baseline is short; `us` is its fastest launch.
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
    state: &mut ScheduleState,
    send: &mut dyn FnMut(Reply),
) -> Result<(), BenchLost> {
    let begin = Instant::now();
    state.throttling.begin_request();
    let spent = || begin.elapsed().as_secs_f64();
    let Some((baseline, candidates)) = jobs.split_first() else {
        send(Reply::Done);
        return Ok(());
    };

    if !ensure_reference(bench, baseline, state, send)? {
        send(Reply::Done);
        return Ok(());
    }
    let Some(us) = warm_up(bench, baseline, state.is_warm(), send)? else {
        send(Reply::Done);
        return Ok(());
    };
    let sampling = Sampling { short: state.is_short(us), ..Sampling::default() };

    // Each candidate is sampled right after its check: it is loaded and warm, and each has a sample
    // however short the budget.
    let mut active: Vec<SampledCandidate<'_>> = Vec::with_capacity(jobs.len());
    for job in jobs {
        if !active.is_empty() && spent() > CHECK_SHARE * plan.budget_s {
            break;
        }
        send(Reply::Running(job.slot));
        let mut first_us = f64::INFINITY;
        if !job.checked && job.slot != baseline.slot {
            let checked = bench.check(job, &mut || send(Reply::Working));
            let Some(run) = send_result(job, checked, send)? else {
                continue;
            };
            first_us = run.us;
            send(Reply::Checked(job.slot, run.us, run.tolerance_used));
        }
        if let Some(us) = sample(bench, job, sampling, send)? {
            active.push(SampledCandidate::new(job, us, first_us));
        }
    }

    let mut order = Order::new(plan.seed, candidates.len());
    let mut round = u32::from(round_counts(bench, state, spent() < plan.budget_s, send));
    'rounds: while round < plan.rounds {
        let fastest = active.iter().min_by(|a, b| a.fastest.total_cmp(&b.fastest));
        let best = fastest.map_or((f64::MAX, f64::MAX), SampledCandidate::range);
        // Where the first round does not count, each is to have a sample that does.
        active.retain(|sampled| {
            if round == 0 {
                return true;
            }
            sampled.is_in_time(plan) && (sampled.job.slot == baseline.slot || sampled.needs_sample(round, best, plan))
        });
        if active.is_empty() {
            break;
        }
        order.shuffle(&mut active);
        for sampled in &mut active {
            if spent() > plan.budget_s {
                break 'rounds;
            }
            // A candidate that fails now is refused by the reply; infinity takes it out of the
            // field.
            sampled.add(sample(bench, sampled.job, sampling, send)?.unwrap_or(f64::INFINITY));
        }
        active.retain(|sampled| sampled.fastest.is_finite());
        round += u32::from(round_counts(bench, state, spent() < plan.budget_s, send));
    }
    state.served = Some(Instant::now());
    send(Reply::Done);
    Ok(())
}

/// Serves [`Request::Ahead`](super::protocol::Request::Ahead): runs the baseline for its
/// results, where they are not there.
pub(super) fn prepare_baseline(
    bench: &mut dyn Bench,
    baseline: &Job,
    state: &mut ScheduleState,
    send: &mut dyn FnMut(Reply),
) -> Result<(), BenchLost> {
    ensure_reference(bench, baseline, state, send).map(drop)
}

/// Runs the baseline for its results if the bench does not have them. Returns false if it was
/// refused.
fn ensure_reference(
    bench: &mut dyn Bench,
    baseline: &Job,
    state: &mut ScheduleState,
    send: &mut dyn FnMut(Reply),
) -> Result<bool, BenchLost> {
    if bench.has_reference(baseline) {
        return Ok(true);
    }
    state.short = None;
    state.throttling.begin_workload();
    send(Reply::Running(baseline.slot));
    let first = bench.reference(baseline, &mut || send(Reply::Working));
    let us = send_result(baseline, first, send)?;
    us.into_iter().for_each(|us| send(Reply::Checked(baseline.slot, us, None)));
    Ok(us.is_some())
}

/// Serves [`Request::Duel`](super::protocol::Request::Duel).
pub(super) fn time_paired(
    bench: &mut dyn Bench,
    jobs: &[Job],
    rounds: Rounds,
    state: &mut ScheduleState,
    send: &mut dyn FnMut(Reply),
) -> Result<(), BenchLost> {
    state.throttling.begin_request();
    let mut active = Vec::with_capacity(jobs.len());
    let mut sampling = Sampling { caches: rounds.caches, ..Sampling::default() };
    for job in jobs {
        send(Reply::Running(job.slot));
        let warm = bench.warm(job, &mut || send(Reply::Working));
        let us = match send_result(job, warm, send)? {
            Some(_) => warm_up(bench, job, state.is_warm(), send)?,
            None => None,
        };
        // The first is the baseline, here too: without it there is nothing to decide.
        if us.is_none() && active.is_empty() {
            break;
        }
        if let Some(us) = us {
            if active.is_empty() {
                sampling.short = if bench.has_reference(job) { state.is_short(us) } else { us < SHORT_US };
            }
            active.push(Racer { contender: job, times: Vec::new() });
            state.served = Some(Instant::now());
        }
    }
    let mut order = Order::new(rounds.seed, jobs.len());
    let mut round = 0;
    while round < rounds.count && !active.is_empty() {
        let mut order_of_round: Vec<usize> = (0..active.len()).collect();
        order.shuffle(&mut order_of_round);
        let mut times = vec![None; active.len()];
        if rounds.caches == Caches::Warm {
            sampling.buffer_set = round % race::BUFFER_SETS;
        }
        for index in order_of_round {
            times[index] = sample(bench, active[index].contender, sampling, send)?;
        }
        let counts = round_counts(bench, state, true, send);
        round += u32::from(counts);
        let is_whole = times[0].is_some();
        let mut times = times.into_iter();
        active.retain_mut(|racer| {
            let us = times.next().flatten();
            racer.times.extend(us.filter(|_| counts));
            us.is_some()
        });
        // Without the baseline there is nothing to decide.
        let is_decided = |active: &mut Vec<_>| match rounds.caches {
            Caches::Cold => race::is_decided(active),
            Caches::Warm => race::is_known(active),
        };
        if !is_whole || counts && is_decided(&mut active) {
            break;
        }
    }
    state.served = Some(Instant::now());
    send(Reply::Done);
    Ok(())
}

/// Ends a round: reports the condition of the GPU, and whether the round counts. One that does not
/// is followed by a pause.
fn round_counts(
    bench: &mut dyn Bench,
    state: &mut ScheduleState,
    time_is_left: bool,
    send: &mut dyn FnMut(Reply),
) -> bool {
    let condition = bench.condition();
    let counts = state.throttling.counts(&condition, time_is_left);
    send(Reply::Round(condition, counts));
    if !counts {
        std::thread::sleep(THROTTLE_PAUSE);
        send(Reply::Working);
    }
    counts
}

/// The bench cannot be used any more.
#[derive(Debug)]
pub(super) struct BenchLost;

/// Runs `job` until the clocks have risen and it is known whether it is short; returns the
/// microseconds of its fastest launch. `None` if it was refused.
fn warm_up(
    bench: &mut dyn Bench,
    job: &Job,
    is_warm: bool,
    send: &mut dyn FnMut(Reply),
) -> Result<Option<f64>, BenchLost> {
    let begin = Instant::now();
    let mut fastest = f64::INFINITY;
    for launch in 1..=WARM_UP_LAUNCHES {
        send(Reply::Running(job.slot));
        let result = bench.sample(job, Sampling::default());
        let Some(us) = send_result(job, result, send)? else {
            return Ok(None);
        };
        fastest = fastest.min(us);
        let is_doubtful = (SHORT_US..MAX_HOST_DELAY_US).contains(&fastest) && launch < MAX_SHORT_PROBES;
        if (is_warm || begin.elapsed() > WARM_UP) && !is_doubtful {
            break;
        }
    }
    Ok(Some(fastest))
}

/// Takes one sample and reports it. `None` if the job was refused.
fn sample(
    bench: &mut dyn Bench,
    job: &Job,
    sampling: Sampling,
    send: &mut dyn FnMut(Reply),
) -> Result<Option<f64>, BenchLost> {
    send(Reply::Running(job.slot));
    let result = bench.sample(job, sampling);
    let us = send_result(job, result, send)?;
    if let Some(us) = us {
        send(Reply::Sample(job.slot, us));
    }
    Ok(us)
}

/// Reports why a job did not complete, if it did not.
fn send_result<T>(job: &Job, result: Result<T, JobError>, send: &mut dyn FnMut(Reply)) -> Result<Option<T>, BenchLost> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(JobError::Refused(reason)) => {
            send(Reply::Refused(job.slot, reason));
            Ok(None)
        }
        Err(JobError::Faulted(reason)) => {
            send(Reply::Faulted(job.slot, reason));
            Err(BenchLost)
        }
        Err(JobError::Failed(message)) => {
            send(Reply::Failed(message));
            Err(BenchLost)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::Condition;
    use crate::launch::Launch;
    use crate::measure::bench::CheckedRun;
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
        buffer_sets: Vec<u32>,
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

        fn reference(&mut self, job: &Job, _: &mut dyn FnMut()) -> Result<f64, JobError> {
            Ok(us(job))
        }

        fn has_reference(&self, job: &Job) -> bool {
            job.checked
        }

        fn check(&mut self, job: &Job, _: &mut dyn FnMut()) -> Result<CheckedRun, JobError> {
            match job.slot {
                2 => Err(JobError::Refused(Reason::OutOfMemory { bytes: 1 })),
                _ => Ok(CheckedRun { us: us(job), tolerance_used: None }),
            }
        }

        fn warm(&mut self, job: &Job, heartbeat: &mut dyn FnMut()) -> Result<(), JobError> {
            self.check(job, heartbeat).map(drop)
        }

        fn sample(&mut self, job: &Job, sampling: Sampling) -> Result<f64, JobError> {
            self.short = sampling.short;
            self.buffer_sets.push(sampling.buffer_set);
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
            launch: Launch { grid: [1; 3], block: [1; 3], shared: 0, carveout: None, coarsening: None },
            cooperative: false,
            needs_comparison: false,
            variant: 0,
            workload: 0,
            checked: false,
        };
        (0..n).map(job).collect()
    }

    #[test]
    fn rounds_with_warm_caches_take_turns_of_buffer_sets() {
        for (caches, expected) in [(Caches::Cold, [0, 0, 0, 0]), (Caches::Warm, [0, 1, 11, 0])] {
            // They end early if all samples are equal.
            let baseline = ([0.0, 60.0].repeat(40), Some(100.0));
            let (mut bench, rounds) = (Steady { baseline, ..Steady::default() }, Rounds { caches, ..rounds(41) });
            time_paired(&mut bench, &jobs(2), rounds, &mut ScheduleState::default(), &mut |_| {}).unwrap();
            let pairs: Vec<&[u32]> = bench.buffer_sets.rchunks(2).take(41).collect();
            assert_eq!([40, 39, 29, 28].map(|round| pairs[round]), expected.map(|set| [set; 2]));
        }
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
                Reply::Checked(slot, ..) => checked.push(*slot),
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
            time(&mut Steady::default(), &jobs(6), &plan, &mut ScheduleState::default(), &mut |reply| {
                replies.push(reply)
            })
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
        time(&mut bench, &jobs(2), &plan, &mut ScheduleState::default(), &mut |reply| replies.push(reply)).unwrap();
        assert_eq!(samples(&replies, false).iter().filter(|&&slot| slot == 1).count(), 6);
    }

    #[test]
    fn sampling_ends_where_more_would_not_change_the_verdict() {
        // The samples of the baseline (100 us), and of candidates of 100, 500 and 130 us.
        for (keep, expected) in [(2.0, [9, 5, 1, 3]), (1.2, [9, 5, 1, 1]), (100.0, [9, 5, 3, 3])] {
            let mut replies = Vec::new();
            let plan = Plan { keep, ..Plan::default() };
            time(&mut Steady::default(), &jobs(7), &plan, &mut ScheduleState::default(), &mut |reply| {
                replies.push(reply)
            })
            .unwrap();
            let slots = samples(&replies, false);
            let counts = [0, 1, 3, 6].map(|slot| slots.iter().filter(|&&found| found == slot).count());
            assert_eq!(counts, expected, "within {keep} times the best");
        }
        // Samples that differ are taken to the end.
        let mut replies = Vec::new();
        let mut bench = Steady { held_up: 1, ..Steady::default() };
        time(&mut bench, &jobs(2), &Plan::default(), &mut ScheduleState::default(), &mut |reply| replies.push(reply))
            .unwrap();
        assert_eq!(samples(&replies, false).iter().filter(|&&slot| slot == 1).count(), 9);
    }

    #[test]
    fn a_kernel_is_short_in_all_requests_or_in_none() {
        for (baseline_us, expected) in [(5.0, true), (19.0, true), (21.0, false), (500.0, false)] {
            let (mut bench, mut state) = (Steady::default(), ScheduleState::default());
            let mut known = jobs(2);
            for (held_up_us, is_duel) in [(0.0, false), (19.0, false), (19.0, true), (300.0, false), (-10.0, true)] {
                bench.baseline = (vec![held_up_us], Some(baseline_us));
                match is_duel {
                    true => time_paired(&mut bench, &known, rounds(3), &mut state, &mut |_| {}).unwrap(),
                    false => time(&mut bench, &known, &Plan::default(), &mut state, &mut |_| {}).unwrap(),
                }
                assert_eq!(bench.short, expected, "{baseline_us} us, held up {held_up_us} us");
                known[0].checked = true;
            }
        }
        // The next one's results are not known, or it has none.
        for is_duel in [true, false] {
            let (mut bench, mut state) =
                (Steady { baseline: (vec![], Some(500.0)), ..Steady::default() }, ScheduleState::default());
            time(&mut bench, &jobs(2), &Plan::default(), &mut state, &mut |_| {}).unwrap();
            bench.baseline = (vec![19.0], Some(5.0));
            match is_duel {
                true => time_paired(&mut bench, &jobs(2), rounds(3), &mut state, &mut |_| {}).unwrap(),
                false => time(&mut bench, &jobs(2), &Plan::default(), &mut state, &mut |_| {}).unwrap(),
            }
            assert!(bench.short);
        }
    }

    #[test]
    fn a_candidate_takes_no_more_than_its_time() {
        // Of 100 us and 500 us.
        for (sample_s, expected) in [(0.00025, [3, 3, 1]), (0.00045, [5, 5, 1]), (1.0, [6, 5, 3])] {
            let plan = Plan { rounds: 6, keep: 100.0, sample_s: Some(sample_s), ..Plan::default() };
            let mut replies = Vec::new();
            time(&mut Steady::default(), &jobs(4), &plan, &mut ScheduleState::default(), &mut |reply| {
                replies.push(reply)
            })
            .unwrap();
            let slots = samples(&replies, false);
            let counts = [0, 1, 3].map(|slot| slots.iter().filter(|&&found| found == slot).count());
            assert_eq!(counts, expected, "{sample_s} s");
        }
    }

    #[test]
    fn duels_pair_samples() {
        let mut replies = Vec::new();
        time_paired(&mut Steady::default(), &jobs(4), rounds(3), &mut ScheduleState::default(), &mut |reply| {
            replies.push(reply)
        })
        .unwrap();
        for round in samples(&replies, true).chunks(3) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 3]);
        }
    }

    #[test]
    fn throttled_rounds_are_repeated() {
        let hot = Condition { throttled: vec!["hot".to_owned()], ..Condition::default() };
        let mut bench = Steady { conditions: vec![Condition::default(), hot], ..Steady::default() };
        let mut replies = Vec::new();
        time_paired(&mut bench, &jobs(2), rounds(6), &mut ScheduleState::default(), &mut |reply| replies.push(reply))
            .unwrap();
        let count_rounds = |wanted: bool| {
            replies.iter().filter(|reply| matches!(reply, Reply::Round(_, counts) if *counts == wanted)).count()
        };
        assert_eq!((count_rounds(true), count_rounds(false)), (6, 1));
        assert_eq!(samples(&replies, true).len(), 2 * 7);
    }

    #[test]
    fn a_baseline_whose_results_are_known_is_not_run_for_them_again() {
        let mut known = jobs(2);
        known[0].checked = true;
        let mut replies = Vec::new();
        time(&mut Steady::default(), &known, &Plan::default(), &mut ScheduleState::default(), &mut |reply| {
            replies.push(reply)
        })
        .unwrap();
        let checked: Vec<_> = replies.iter().filter(|reply| matches!(reply, Reply::Checked(..))).collect();
        assert_eq!(checked, [&Reply::Checked(1, 100.0, None)]);
    }
}
