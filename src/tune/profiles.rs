//! A space's launches on their workloads -> a profile for each, within an allowance for all.
//!
//! Most kernels are known after a few of their threads, and a small share of the allowance
//! suffices for each launch. Where control depends on data, or threads run for long, it does not,
//! and each launch's own profile would be wrong by a factor of its own: no basis for a
//! comparison. There one launch of those that do the same work (equal macros and as many
//! threads, in blocks of other shapes) has a long allowance, and lends the others what its
//! warps execute; how the accesses of a warp lie side by side remains each one's own.

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

/// PTX instructions that are interpreted for a kernel's space.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// For all launches' own profiles together.
    own: u64,
    /// For all lenders together.
    lenders: u64,
}

impl Allowance {
    /// Of a space that is timed. The search chooses as well by it as by any more: with a third
    /// for the launches' own, the first eight candidates on the recorded spaces are up to 13%
    /// slower than the best, in place of 2%.
    pub const TIMED: Self = Self { own: 30_000_000, lenders: 100_000_000 };
    /// Of a space that is not: 0.8 s of processor time at most. With four sets of macros the
    /// model's choices on the recorded spaces of an H200 gain 1.41x by it, and 1.42x without a
    /// bound; with less than half, 1.36x.
    pub const UNTIMED: Self = Self { own: 10_000_000, lenders: 5_000_000 };
}

/// What a profile takes though nothing is left: a launch without one cannot be compared.
const LEAST_FOR_PROFILE: u64 = 20_000;
/// What one takes at most, so that a round of one launch leaves something for the others.
const MOST_FOR_PROFILE: u64 = 1_000_000;
const MOST_FOR_LENDER: u64 = 10_000_000;
/// What a lender takes at least: with less left, no further one is run.
const ONE_LENDER: u64 = 500_000;
/// Launches that differ in their threads by no more than this factor do the same work, but for
/// what the last block has too much.
const SAME_WORK: f64 = 1.02;

/// Their busiest warps, as far as the allowances tell, differ by no more than this. Where a
/// dimension of the block alone strides over a row, a block of another shape gives a thread
/// more of it to do.
const SAME_WARP: f64 = 1.5;

/// The profiles that were made before; `None` where the code could not be run.
pub struct Known {
    /// By the axes' macros and the launch, as that launch's own allowance made them.
    own: HashMap<(FrontEndOptions, Launch), Option<Arc<Profile>>>,
    /// Those with a long allowance.
    lenders: Vec<Lender>,
    /// What is left for profiles of later rounds.
    left: Allowance,
}

impl Known {
    /// Nothing yet, and what all rounds together may take.
    pub fn new(left: Allowance) -> Self {
        Self { own: HashMap::new(), lenders: Vec::new(), left }
    }

    /// Takes the allowance of `count` new profiles; returns what each may take.
    fn take_for_profiles(&mut self, count: usize) -> u64 {
        let each = (self.left.own / count.max(1) as u64).clamp(LEAST_FOR_PROFILE, MOST_FOR_PROFILE);
        self.left.own = self.left.own.saturating_sub(each * count as u64);
        each
    }

    /// Takes the allowance of `count` new lenders; returns how many may be run, and what each
    /// may take.
    fn take_for_lenders(&mut self, count: usize) -> (usize, u64) {
        let run = count.min((self.left.lenders / ONE_LENDER) as usize);
        let each = (self.left.lenders / run.max(1) as u64).min(MOST_FOR_LENDER);
        self.left.lenders -= each * run as u64;
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
    /// Whether it does the same work as a launch of which this is known.
    fn does(&self, job: &ProfileJob<'_>, own: &Profile) -> bool {
        let (a, b) = (self.launch.threads() as f64, job.launch.threads() as f64);
        self.options == job.options && within(SAME_WORK, a, b) && within(SAME_WARP, self.busiest, busiest(own))
    }

    /// The profile of a launch that does the same work, of which its own allowance says too
    /// little.
    fn lends(&self, own: &Profile, ProfileJob { launch, workload, .. }: &ProfileJob<'_>) -> Option<Arc<Profile>> {
        let lender = self.profile.as_ref()?;
        let rows = |launch: &Launch| launch.block[1..] == [1, 1] && launch.block[0].is_multiple_of(WARP);
        // The same threads make up the same warps, though in blocks of others; and however others lie
        // side by side, that tells more than nothing does.
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
    /// By configuration: index into `made`.
    of: Vec<Option<usize>>,
}

impl Profiles {
    /// Those of all configurations that have code and a workload; what is `known` is not made
    /// again.
    pub fn of(laid: &ScoringInput, known: &mut Known) -> Self {
        let mut keys: HashMap<(usize, Launch), usize> = HashMap::new();
        let mut jobs: Vec<ProfileJob<'_>> = Vec::new();
        let mut of = Vec::with_capacity(laid.configurations.len());
        for (index, workload) in laid.workloads.iter().enumerate() {
            // No thread sees the carve-out.
            let (source, launch) = (laid.source_of[index], Launch { carveout: None, ..laid.launches[index] });
            let compiled = laid.variants[index].is_ok();
            of.push(workload.as_deref().filter(|_| compiled).map(|workload| {
                *keys.entry((source, launch)).or_insert_with(|| {
                    jobs.push(ProfileJob { options: laid.configurations[index].front_end(), launch, source, workload });
                    jobs.len() - 1
                })
            }));
        }
        let modules: Vec<Option<Arc<Module>>> = laid
            .sources
            .par_iter()
            .map(|source| source.ptx.as_deref().and_then(|ptx| Module::parse(ptx).ok()).map(Arc::new))
            .collect();
        let profile = |job: &ProfileJob<'_>, instructions: u64| {
            let limits = sim::Limits { instructions, ..sim::Limits::default() };
            let (module, symbol) = (modules[job.source].as_ref(), &laid.sources[job.source].symbol);
            let made =
                module.and_then(|module| sim::profile_entry(module, symbol, &job.launch, job.workload, &limits).ok());
            made.map(Arc::new)
        };

        let new: Vec<&ProfileJob<'_>> = jobs.iter().filter(|job| !known.own.contains_key(&job.key())).collect();
        let allowance = known.take_for_profiles(new.len());
        let made: Vec<_> = new.into_par_iter().map(|job| (job.key(), profile(job, allowance))).collect();
        known.own.extend(made);

        let own = |known: &Known, job: &ProfileJob<'_>| known.own.get(&job.key()).cloned().flatten();
        // The smallest block lends: where threads need what others of their block load, it is the
        // cheapest to run as a whole.
        let needs = |job| own(known, job).filter(|profile| !profile.settled).map(|profile| (job, profile));
        let mut needy: Vec<(&ProfileJob<'_>, Arc<Profile>)> = jobs.iter().filter_map(needs).collect();
        needy.sort_by_key(|(job, _)| job.launch.block_threads().max(WARP));
        let mut lenders: Vec<(Lender, &ProfileJob<'_>)> = Vec::new();
        for (job, own) in needy {
            let mut all = known.lenders.iter().chain(lenders.iter().map(|(lender, _)| lender));
            if !all.any(|lender| lender.does(job, &own)) {
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
            let lender = known.lenders.iter().find(|lender| lender.does(job, &own));
            let lent = lender.and_then(|lender| lender.lends(&own, job));
            Some(lent.unwrap_or(own))
        };
        Self { made: jobs.par_iter().map(borrowed).collect(), of }
    }

    /// The number of a configuration's profile.
    pub fn index(&self, configuration: usize) -> Option<usize> {
        self.of[configuration]
    }

    /// The profile with a number; `None` where the code could not be run.
    pub fn get(&self, index: usize) -> Option<&Profile> {
        self.made[index].as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordedSpace;
    use crate::tune::recorded_input;
    use std::path::Path;
    use std::sync::LazyLock;

    /// Returns a recorded space; the quick run leaves out all blocks but those with this many
    /// threads.
    ///
    fn laid(kernel: &str, quick_blocks: &[u32]) -> ScoringInput {
        let file = format!("{}/kernels/results/h200/{kernel}.json.gz", env!("CARGO_MANIFEST_DIR"));
        let mut laid = recorded_input::laid(&RecordedSpace::read(Path::new(&file)).unwrap()).unwrap();
        if std::env::var_os("NVTUNE_TEST_FULL").is_none_or(|value| value != "1") {
            for (launch, variant) in laid.launches.iter().zip(&mut laid.variants) {
                if !quick_blocks.contains(&launch.block_threads()) {
                    *variant = Err("left out".to_owned());
                }
            }
        }
        laid
    }

    /// In `particles` each lane of a warp has neighbours of its own: a warp takes far longer
    /// than any of its threads.
    static PARTICLES: LazyLock<(ScoringInput, Known, Profiles)> = LazyLock::new(|| {
        let (laid, mut known) = (laid("particles", &[64, 128, 192, 256, 320]), Known::new(Allowance::TIMED));
        let profiles = Profiles::of(&laid, &mut known);
        (laid, known, profiles)
    });

    #[test]
    fn diverging_warps_beyond_allowance_have_accesses() {
        let (_, known, _) = &*PARTICLES;
        assert!(known.own.len() >= 25, "{}", known.own.len());
        for ((_, launch), own) in &known.own {
            assert!(own.as_ref().is_some_and(|profile| !profile.accesses.is_empty()), "{launch:?}");
        }
    }

    /// The warps of `particles` execute 1.56e8 instructions together, in whatever launch. Lanes
    /// that are run alone execute a quarter less. Some launches are still wrong: of 256
    /// threads those in 264 blocks give 1.1e8.
    #[test]
    fn diverging_warps_execute_equal_work_in_every_launch() {
        let (laid, _, profiles) = &*PARTICLES;
        let mut seen = 0;
        for (index, launch) in laid.launches.iter().enumerate() {
            let Some(profile) = profiles.index(index).and_then(|number| profiles.get(number)) else { continue };
            if launch.block[0] == 256 && matches!(launch.grid[0], 1056 | 2112 | 4224) {
                let warps = launch.blocks() * u64::from(launch.block_threads().div_ceil(WARP));
                let total = profile.mean_instructions * warps as f64;
                assert!((1.5e8..1.6e8).contains(&total), "{launch:?}: {total}");
                seen += 1;
            }
        }
        assert!(seen >= 3, "{seen}");
    }

    #[test]
    fn launches_of_other_busiest_warps_do_other_work() {
        let launch = |block| Launch { grid: [1, 1, 64], block, shared: 0, carveout: None };
        let workload = Workload::default();
        let profile = |instructions| Profile { counts: [(1, instructions)].into(), ..Profile::default() };
        let lender =
            Lender { options: FrontEndOptions::default(), launch: launch([1, 16, 4]), busiest: 3000.0, profile: None };
        for (instructions, does) in [(3000.0, true), (4000.0, true), (2500.0, true), (6000.0, false), (1500.0, false)] {
            let job = ProfileJob {
                options: FrontEndOptions::default(),
                launch: launch([2, 8, 4]),
                source: 0,
                workload: &workload,
            };
            assert_eq!(lender.does(&job, &profile(instructions)), does, "{instructions}");
        }
    }

    /// Profiles a kernel, of which all launches with equal macros do equal work, and compares
    /// the instructions of each.
    fn check_equal_work(kernel: &str, macro_sets: usize) {
        let laid = laid(kernel, &[64, 256, 1024]);
        let profiles = Profiles::of(&laid, &mut Known::new(Allowance::TIMED));
        let mut work: HashMap<&std::collections::BTreeMap<String, i64>, Vec<f64>> = HashMap::new();
        for (index, configuration) in laid.configurations.iter().enumerate() {
            if let Some(profile) = profiles.index(index).and_then(|number| profiles.get(number)) {
                let threads = laid.launches[index].threads() as f64;
                work.entry(&configuration.macros).or_default().push(profile.mean_instructions * threads);
            }
        }
        assert_eq!(work.len(), macro_sets, "{kernel}");
        for (macros, of) in work {
            let (least, most) = of.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), &n| (a.min(n), b.max(n)));
            assert!(of.len() >= 3, "{kernel} {macros:?}: {of:?}");
            assert!(least > 1e9 && most < least * 1.02, "{kernel} {macros:?}: {least} to {most}");
        }
    }

    /// A block's threads load what decides how long its loops run: a whole block must be run,
    /// and a large one costs much.
    #[test]
    fn launches_that_need_whole_blocks_have_equal_work() {
        check_equal_work("rpes", 4);
    }

    /// Single threads differ by their position, and few warps can be run to their end.
    #[test]
    fn launches_of_position_dependent_threads_have_equal_work() {
        check_equal_work("sound3d", 1);
    }
}
