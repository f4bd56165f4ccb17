//! Profiles every launch of a space on its workload, within an allowance of interpreted
//! instructions for all of them.
//!
//! For most kernels a few threads and a small share of the allowance suffice for each launch. If
//! control depends on data, or threads run for long, they do not: each profile would be wrong by
//! a different factor, and launches could not be compared. Then one of the launches that do the
//! same work (equal macros and as many threads, in blocks of other shapes) gets a long allowance.
//! It lends the others its execution counts; the memory accesses of a warp remain each launch's
//! own.

use super::scoring_input::ScoringInput;
use crate::gpu::WARP;
use crate::launch::{FrontEndOptions, Launch};
use crate::ptx::Module;
use crate::sim;
use crate::sim::Profile;
use crate::workload::Workload;
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// PTX instructions that may be interpreted for a kernel's space.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// For all launches' own profiles together, if that leaves [`SUFFICIENT_PER_PROFILE`] for each.
    own: u64,
    /// Maximum for them, if it leaves less.
    max_own: u64,
    /// For all lenders together.
    lenders: u64,
}

impl Allowance {
    /// Of a space that is timed. The search chooses as well by it as by any more: with a third
    /// for the launches' own, the first eight candidates on the recorded spaces are up to 13%
    /// slower than the best, in place of 2%.
    pub const TIMED: Self = Self { own: 30_000_000, max_own: 100_000_000, lenders: 100_000_000 };
    /// Of a space that is not: 0.8 s of processor time at most. With four sets of macros the
    /// model's choices on the recorded spaces of an H200 gain 1.41x by it, and 1.42x without a
    /// bound; with less than half, 1.36x.
    pub const UNTIMED: Self = Self { own: 10_000_000, max_own: 10_000_000, lenders: 5_000_000 };
}

/// With less, too few warps of a large block are run to see what they share in the level-1 cache.
/// With 113,000 the predicted time of `stencil3d` in blocks of 32 by 8 is 1.7 times the true one.
const SUFFICIENT_PER_PROFILE: u64 = 250_000;
/// Minimum allowance of a profile, even if none is left: a launch without one cannot be compared.
const MIN_PER_PROFILE: u64 = 20_000;
/// Maximum allowance of a profile, so that a round of one launch leaves something for the others.
const MAX_PER_PROFILE: u64 = 1_000_000;
const MAX_PER_LENDER: u64 = 10_000_000;
/// Minimum allowance of a lender: with less left, no further one is run.
const MIN_PER_LENDER: u64 = 500_000;
/// Launches whose numbers of threads differ by at most this factor do the same work, except for
/// surplus threads of the last block.
const SAME_WORK: f64 = 1.02;

/// Maximum factor between the busiest warps of launches that do the same work. If only one
/// dimension of the block strides over a row, another block shape gives each thread more to do.
const SAME_WARP: f64 = 1.5;

/// The profiles of earlier rounds, and the allowance that remains.
pub struct ProfileCache {
    /// By front-end options and launch: profiles with a launch's own allowance; `None` if the
    /// code could not be run.
    own: HashMap<(FrontEndOptions, Launch), Option<Arc<Profile>>>,
    /// Those with a long allowance.
    lenders: Vec<Lender>,
    /// What is left for profiles of later rounds.
    remaining: Allowance,
}

impl ProfileCache {
    /// Creates an empty cache with the allowance of all rounds together.
    pub fn new(remaining: Allowance) -> Self {
        Self { own: HashMap::new(), lenders: Vec::new(), remaining }
    }

    /// Reserves the allowance of `count` new profiles; returns that of each.
    fn take_for_profiles(&mut self, count: usize) -> u64 {
        let count = count.max(1) as u64;
        let sufficient = (self.remaining.max_own / count).min(SUFFICIENT_PER_PROFILE);
        let each = (self.remaining.own / count).max(sufficient).clamp(MIN_PER_PROFILE, MAX_PER_PROFILE);
        self.remaining.own = self.remaining.own.saturating_sub(each * count);
        self.remaining.max_own = self.remaining.max_own.saturating_sub(each * count);
        each
    }

    /// Reserves the allowance of `count` new lenders; returns how many may be run, and the
    /// allowance of each.
    fn take_for_lenders(&mut self, count: usize) -> (usize, u64) {
        let run = count.min((self.remaining.lenders / MIN_PER_LENDER) as usize);
        let each = (self.remaining.lenders / run.max(1) as u64).min(MAX_PER_LENDER);
        self.remaining.lenders -= each * run as u64;
        (run, each)
    }
}

struct Lender {
    options: FrontEndOptions,
    launch: Launch,
    /// Instructions of its busiest warp, by its own allowance.
    busiest: f64,
    profile: Option<Arc<Profile>>,
}

impl Lender {
    /// Tells whether it does the same work as a launch whose own profile is `own`.
    fn does_same_work(&self, job: &ProfileJob<'_>, own: &Profile) -> bool {
        let (a, b) = (self.launch.threads() as f64, job.launch.threads() as f64);
        self.options == job.options && within(SAME_WORK, a, b) && within(SAME_WARP, self.busiest, busiest(own))
    }

    /// Returns the profile of a launch that does the same work: its own accesses with the
    /// lender's execution counts.
    fn lend(&self, own: &Profile, ProfileJob { launch, workload, .. }: &ProfileJob<'_>) -> Option<Arc<Profile>> {
        let lender = self.profile.as_ref()?;
        let rows = |launch: &Launch| launch.block[1..] == [1, 1] && launch.block[0].is_multiple_of(WARP);
        // The same threads make up the same warps, though in blocks of others; and however others
        // lie side by side, that tells more than nothing does.
        if own.accesses.is_empty()
            || (lender.settled || lender.exact && !own.exact) && rows(launch) && rows(&self.launch)
        {
            return Some(Arc::clone(lender));
        }
        Some(Arc::new(own.with_counts_of(lender).within_buffers(&workload.sizes())))
    }
}

fn within(factor: f64, a: f64, b: f64) -> bool {
    a <= b * factor && b <= a * factor
}

/// Instructions of the busiest warp.
fn busiest(profile: &Profile) -> f64 {
    profile.counts.values().sum()
}

/// A launch that is to be profiled.
struct ProfileJob<'a> {
    options: FrontEndOptions,
    launch: Launch,
    source: usize,
    workload: &'a Workload,
}

impl ProfileJob<'_> {
    fn key(&self) -> (FrontEndOptions, Launch) {
        (self.options.clone(), self.launch)
    }
}

/// Profiles, one for each set of front-end options and launch.
pub struct Profiles {
    made: Vec<Option<Arc<Profile>>>,
    /// Index into `made`, by configuration; `None` without code or workload.
    index_by_configuration: Vec<Option<usize>>,
}

impl Profiles {
    /// Makes the profiles of all configurations with code and a workload; those in `known` are
    /// reused.
    pub fn for_space(input: &ScoringInput, known: &mut ProfileCache) -> Self {
        let mut keys: HashMap<(usize, Launch), usize> = HashMap::new();
        let mut jobs: Vec<ProfileJob<'_>> = Vec::new();
        let mut index_by_configuration = Vec::with_capacity(input.configurations.len());
        for (index, workload) in input.workloads.iter().enumerate() {
            // No thread sees the carve-out.
            let (source, launch) = (input.source_of[index], Launch { carveout: None, ..input.launches[index] });
            let compiled = input.variants[index].is_ok();
            index_by_configuration.push(workload.as_deref().filter(|_| compiled).map(|workload| {
                *keys.entry((source, launch)).or_insert_with(|| {
                    jobs.push(ProfileJob {
                        options: input.configurations[index].front_end(),
                        launch,
                        source,
                        workload,
                    });
                    jobs.len() - 1
                })
            }));
        }
        let modules: Vec<Option<Arc<Module>>> = input
            .sources
            .par_iter()
            .map(|source| source.ptx.as_deref().and_then(|ptx| Module::parse(ptx).ok()).map(Arc::new))
            .collect();
        let profile = |job: &ProfileJob<'_>, instructions: u64| {
            let limits = sim::Limits { instructions, ..sim::Limits::default() };
            let (module, symbol) = (modules[job.source].as_ref(), &input.sources[job.source].symbol);
            let made =
                module.and_then(|module| sim::profile_entry(module, symbol, &job.launch, job.workload, &limits).ok());
            made.map(Arc::new)
        };

        let new: Vec<&ProfileJob<'_>> = jobs.iter().filter(|job| !known.own.contains_key(&job.key())).collect();
        let allowance = known.take_for_profiles(new.len());
        let made: Vec<_> = new.into_par_iter().map(|job| (job.key(), profile(job, allowance))).collect();
        known.own.extend(made);

        let own = |known: &ProfileCache, job: &ProfileJob<'_>| known.own.get(&job.key()).cloned().flatten();
        // The smallest block lends: where threads need what others of their block load, it is the
        // cheapest to run as a whole.
        let needs = |job| own(known, job).filter(|profile| !profile.settled).map(|profile| (job, profile));
        let mut unsettled: Vec<(&ProfileJob<'_>, Arc<Profile>)> = jobs.iter().filter_map(needs).collect();
        unsettled.sort_by_key(|(job, _)| job.launch.block_threads().max(WARP));
        let mut lenders: Vec<(Lender, &ProfileJob<'_>)> = Vec::new();
        for (job, own) in unsettled {
            let mut all = known.lenders.iter().chain(lenders.iter().map(|(lender, _)| lender));
            if !all.any(|lender| lender.does_same_work(job, &own)) {
                let (options, launch) = (job.options.clone(), job.launch);
                lenders.push((Lender { options, launch, busiest: busiest(&own), profile: None }, job));
            }
        }
        let (run, allowance) = known.take_for_lenders(lenders.len());
        lenders.truncate(run);
        let lenders: Vec<Lender> = lenders
            .into_par_iter()
            .map(|(lender, job)| Lender { profile: profile(job, allowance), ..lender })
            .collect();
        known.lenders.extend(lenders);

        let borrowed = |job: &ProfileJob<'_>| {
            let own = own(known, job)?;
            if own.settled {
                return Some(own);
            }
            let lender = known.lenders.iter().find(|lender| lender.does_same_work(job, &own));
            let lent = lender.and_then(|lender| lender.lend(&own, job));
            Some(lent.unwrap_or(own))
        };
        Self { made: jobs.par_iter().map(borrowed).collect(), index_by_configuration }
    }

    /// The number of a configuration's profile.
    pub fn index(&self, configuration: usize) -> Option<usize> {
        self.index_by_configuration[configuration]
    }

    /// The profile with a number; `None` where the code could not be run.
    pub fn get(&self, index: usize) -> Option<&Profile> {
        self.made[index].as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_of_other_busiest_warps_do_other_work() {
        let launch = |block| Launch { grid: [1, 1, 64], block, shared: 0, carveout: None, coarsening: None };
        let workload = Workload::default();
        let profile = |instructions| Profile { counts: [(1, instructions)].into(), ..Profile::default() };
        let lender =
            Lender { options: FrontEndOptions::default(), launch: launch([1, 16, 4]), busiest: 3000.0, profile: None };
        for (instructions, does_same_work) in
            [(3000.0, true), (4000.0, true), (2500.0, true), (6000.0, false), (1500.0, false)]
        {
            let job = ProfileJob {
                options: FrontEndOptions::default(),
                launch: launch([2, 8, 4]),
                source: 0,
                workload: &workload,
            };
            assert_eq!(lender.does_same_work(&job, &profile(instructions)), does_same_work, "{instructions}");
        }
    }
}
