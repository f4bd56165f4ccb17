//! Every configuration with its launch, its variant and its score.

use super::profiles::{Allowance, Known, Profiles};
use super::scoring_input::{ScoringInput, VariantSource};
use crate::launch::{CacheOperator, Configuration, FrontEndOptions};
use crate::model::{Analysis, Inputs, Limiter, Score, score_configuration as score_of};
use crate::ptx::{AccessKind, Edits, MemorySpace};
use crate::sass::Cubin;
use crate::search;
use crate::search::{Point, Promise, Search};
use crate::settings::Strategy;
use crate::sim::Profile;
use crate::workload::Workload;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Bytes that a launch writes, by the index of the workload's buffer.
pub type WrittenBytes = BTreeMap<u32, f64>;

/// A space, scored.
pub struct Scored {
    pub laid: ScoringInput,
    /// By configuration; `None` where there is no variant, or where no block of it fits on a
    /// multiprocessor.
    pub scores: Vec<Option<Score>>,
    /// By configuration: bytes that its launch writes to each buffer of the workload, as far as
    /// the model ran it.
    pub written: Vec<Option<WrittenBytes>>,
}

/// A baseline that cannot be built or launched, and why: there is nothing to compare with.
pub struct NoBaseline {
    pub configuration: Configuration,
    pub reason: String,
}

/// That a launch is more than the hardware takes.
pub const UNFIT: &str = "no block of it fits on a multiprocessor";

/// That a grid waits for blocks that wait for their places.
const UNHELD: &str = "its blocks wait for each other, and the GPU cannot hold all of them at once";

/// That macros decide whether a kernel waits for its grid.
const OTHERWISE: &str =
    "only one of it and the baseline waits for its whole grid, so that the program would have to launch it otherwise";

/// Why the baseline cannot be launched, with the remedy where there is one.
fn does_not_fit(laid: &ScoringInput, score: &Score) -> String {
    let [x, y, z] = laid.launches[laid.baseline].block;
    let threads = u64::from(x) * u64::from(y) * u64::from(z);
    // Blocks that would fit may be more than the code is compiled for.
    let limiter = Some(score.limiter).filter(|_| score.blocks_per_sm == 0);
    match (limiter, laid.configurations[laid.baseline].cap) {
        (Some(Limiter::Registers), 0) => format!(
            "{UNFIT}: {} registers for each of {threads} threads; __launch_bounds__({threads}) keeps them low enough",
            score.registers
        ),
        (Some(Limiter::Registers), cap) => format!(
            "{UNFIT}: under the cap of {cap} that `default` gives, each of its {threads} threads has {} registers",
            score.registers
        ),
        (Some(Limiter::SharedMemory), _) => format!(
            "{UNFIT}: its shared memory, static and dynamic, is more than the {} bytes that a block can have",
            laid.machine.architecture.shared_per_block
        ),
        _ => UNFIT.to_owned(),
    }
}

/// Scores the whole space.
pub fn score(laid: ScoringInput) -> Result<Scored, NoBaseline> {
    score_again(laid, &mut Known::new(Allowance::TIMED))
}

/// Scores a space of which a part may have been scored before.
pub fn score_again(mut laid: ScoringInput, known: &mut Known) -> Result<Scored, NoBaseline> {
    let profiles = Profiles::of(&laid, known);
    // Many configurations share their machine code and profile: that pair is analysed once.
    let mut trips: Vec<&[f64]> = Vec::new();
    let mut groups: HashMap<(usize, Option<usize>, usize), Vec<usize>> = HashMap::new();
    for (index, variant) in laid.variants.iter().enumerate() {
        if let Ok(variant) = variant {
            let own = laid.trips[index].as_slice();
            let assumed = trips.iter().position(|known| *known == own).unwrap_or_else(|| {
                trips.push(own);
                trips.len() - 1
            });
            groups.entry((*variant, profiles.index(index), assumed)).or_default().push(index);
        }
    }
    let groups: Vec<_> = groups.into_iter().collect();
    let found: Vec<(usize, Score, Option<WrittenBytes>)> = groups
        .par_iter()
        .flat_map_iter(|((variant, profile, assumed), members)| {
            let profile = profile.and_then(|index| profiles.get(index));
            let code = &laid.codes[*variant];
            // It was parsed once already, to tell variants apart.
            let cubin = Cubin::parse(&code.cubin).ok();
            let kernel = cubin.as_ref().and_then(|cubin| cubin.kernel(&code.symbol));
            let analysis = kernel.map(|kernel| Analysis::with_trips(kernel, profile, trips[*assumed]));
            members
                .iter()
                .filter_map(|&index| {
                    let buffers = laid.workloads[index].as_deref().map(Workload::sizes);
                    let inputs = analysis.as_ref().map(|analysis| Inputs {
                        machine: &laid.machine,
                        kernel: analysis,
                        launch: &laid.launches[index],
                        buffers: buffers.as_deref(),
                    });
                    let written = profile.and_then(|profile| written(profile, laid.launches[index].warps() as f64));
                    inputs.as_ref().map(|inputs| (index, score_of(inputs), written))
                })
                .collect::<Vec<_>>()
        })
        .collect();
    let baseline = laid.baseline;
    // What the program launches so already fits on its GPU, whatever this one is.
    let waits: Vec<bool> = laid.sources.iter().map(VariantSource::waits_for_grid).collect();
    let is_held = |laid: &ScoringInput, index: usize, score: &Score| {
        let resident = u64::from(score.blocks_per_sm) * u64::from(laid.machine.sms);
        !laid.waits_for_grid || index == baseline || laid.launches[index].blocks() <= resident
    };
    let mut scores = vec![None; laid.configurations.len()];
    let mut written = vec![None; laid.configurations.len()];
    let mut crowded = None;
    for (index, score, bytes) in found {
        written[index] = bytes;
        if !score.feasible {
            crowded = crowded.or_else(|| (index == baseline).then(|| does_not_fit(&laid, &score)));
        } else if waits[laid.source_of[index]] != laid.waits_for_grid {
            laid.variants[index] = Err(OTHERWISE.to_owned());
        } else if is_held(&laid, index, &score) {
            scores[index] = Some(score);
        } else {
            laid.variants[index] = Err(UNHELD.to_owned());
        }
    }
    let reason = match &laid.variants[baseline] {
        Err(problem) => Some(problem.clone()),
        Ok(_) => crowded.or_else(|| scores[baseline].is_none().then(|| UNFIT.to_owned())),
    };
    match reason {
        Some(reason) => Err(NoBaseline { configuration: laid.configurations[baseline].clone(), reason }),
        None => Ok(Scored { laid, scores, written }),
    }
}

/// Returns the bytes that `warps` warps write to each buffer; `None` if the buffer of a store
/// is not known.
fn written(profile: &Profile, warps: f64) -> Option<WrittenBytes> {
    let mut written = BTreeMap::new();
    for (line, access) in &profile.accesses {
        let count = profile.mean.get(line).copied().unwrap_or(0.0);
        if access.kind == AccessKind::Store && access.space == MemorySpace::Global && count > 0.0 {
            *written.entry(access.buffer?).or_default() += count * access.lanes * f64::from(access.width) * warps;
        }
    }
    Some(written)
}

/// What a configuration tells the caches.
type Policy = (Option<CacheOperator>, Option<u8>);

fn policy_of(configuration: &Configuration) -> Policy {
    (configuration.cache, configuration.carveout)
}

impl Scored {
    /// The points of the search, with the configuration of each.
    pub fn points(&self) -> (Vec<usize>, Vec<Point>) {
        let laid = &self.laid;
        let policies: BTreeSet<Policy> = laid.configurations.iter().map(policy_of).collect();
        let policies: Vec<Policy> = policies.into_iter().collect();
        let baseline = Edits::from(&laid.configurations[laid.baseline]);
        let natural = (0..laid.configurations.len())
            .filter(|&index| Edits::from(&laid.configurations[index]).is_natural(baseline));
        let natural: HashSet<usize> = natural.map(|index| laid.representative[index]).collect();
        (0..laid.configurations.len())
            .filter(|&index| laid.representative[index] == index)
            .filter_map(|index| {
                let score = self.scores[index]?;
                let variant = *laid.variants[index].as_ref().ok()?;
                let policy = policies.binary_search(&policy_of(&laid.configurations[index])).ok()?;
                let coordinates = laid.coordinates(index, &score);
                let threads = laid.launches[index].threads();
                let natural = natural.contains(&index);
                Some((index, Point { threads, variant, policy, natural, score, coordinates }))
            })
            .unzip()
    }

    /// The Pareto set of POS.
    pub fn pareto(&self) -> Vec<usize> {
        let (indices, points) = self.points();
        search::po_pareto_set(&points).into_iter().map(|point| indices[point]).collect()
    }

    /// The least predicted time among the configurations with these options.
    pub fn least_time(&self, options: &FrontEndOptions) -> Option<f64> {
        let configurations = &self.laid.configurations;
        let is_of_set = |index: &usize| configurations[*index].front_end() == *options;
        let of_set = (0..configurations.len()).filter(is_of_set);
        of_set.filter_map(|index| Some(self.scores[index]?.predicted_us)).min_by(f64::total_cmp)
    }

    /// The configurations that a strategy sends to the GPU, in the order of predicted time.
    pub fn candidates(&self, strategy: Strategy) -> Vec<usize> {
        let (indices, points) = self.points();
        search::choose_candidates(strategy, &points).into_iter().map(|point| indices[point]).collect()
    }

    /// The points, and which of them is the baseline: none, where that is beyond them.
    fn task(&self) -> (Vec<usize>, Vec<Point>, usize) {
        let (indices, points) = self.points();
        let baseline = indices.iter().position(|&index| index == self.laid.baseline).unwrap_or(points.len());
        (indices, points, baseline)
    }

    /// What a search begins with where that can be timed before all is scored that it goes on
    /// with; else nothing.
    pub fn early(&self, strategy: Strategy, most: usize) -> Vec<usize> {
        if !Search::begins_early(strategy, most) {
            return Vec::new();
        }
        let (indices, points, baseline) = self.task();
        let first = Search::new(strategy, &points, baseline, most).next_points(&vec![None; points.len()]);
        first.into_iter().map(|point| indices[point]).collect()
    }

    /// Runs a strategy, of which at most `most` configurations are timed: `time` is given the
    /// configurations of each round and gives their times, `None` for those without one.
    /// The first round is `early`, if that is not empty.
    ///
    /// # Errors
    /// The first of `time`.
    pub fn search<E>(
        &self,
        strategy: Strategy,
        most: usize,
        early: &[usize],
        mut time: impl FnMut(&[usize]) -> Result<Vec<Option<f64>>, E>,
    ) -> Result<(), E> {
        let (indices, points, baseline) = self.task();
        let mut search = Search::new(strategy, &points, baseline, most);
        let mut times = vec![None; points.len()];
        if !early.is_empty() {
            let point = |&index: &usize| indices.iter().position(|&point| point == self.laid.representative[index]);
            search = search.with_first(early.iter().filter_map(point).collect());
        }
        loop {
            let round = search.next_points(&times);
            if round.is_empty() {
                return Ok(());
            }
            let configurations: Vec<usize> = round.iter().map(|&point| indices[point]).collect();
            for (point, found) in round.into_iter().zip(time(&configurations)?) {
                times[point] = found;
            }
        }
    }

    /// The configurations among which the model alone chooses: all, where the strategy's own
    /// candidates are the first of several rounds.
    pub fn choices(&self, strategy: Strategy) -> Vec<usize> {
        if strategy == Strategy::Refit { self.points().0 } else { self.candidates(strategy) }
    }

    /// What the model promises of the baseline and of these candidates.
    pub fn promises(&self, candidates: &[usize]) -> Vec<(usize, Promise)> {
        let baseline = self.laid.baseline;
        let candidates: HashSet<usize> = candidates.iter().copied().collect();
        let (indices, points) = self.points();
        let may_win = |(index, _): &(usize, Point)| *index == baseline || candidates.contains(index);
        let (indices, points): (Vec<usize>, Vec<Point>) = indices.into_iter().zip(points).filter(may_win).unzip();
        let Some(at_baseline) = indices.iter().position(|&index| index == baseline) else { return Vec::new() };
        let promises = search::list_promises(&points, at_baseline).into_iter();
        promises.map(|(point, promise)| (indices[point], promise)).collect()
    }

    /// The configuration that the model alone chooses by what it promises, with its gain;
    /// `None` for the baseline.
    pub fn predicted_winner(&self, promises: &[(usize, Promise)]) -> Option<(usize, f64)> {
        let configurations = &self.laid.configurations;
        let baseline = &configurations[self.laid.baseline];
        search::predicted_winner(promises, |index| configurations[index].departure(baseline))
    }
}
