//! Scores every configuration of a space, and runs the search strategies on the scores.

use super::profiles::{Allowance, ProfileCache, Profiles};
use super::scoring_input::{ScoringInput, VariantSource};
use crate::launch::{Configuration, FrontEndOptions, LoadCacheOperator};
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
    pub input: ScoringInput,
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

/// The reason for a launch that exceeds the resources of a multiprocessor.
pub const DOES_NOT_FIT: &str = "no block of it fits on a multiprocessor";

/// The reason for a grid that synchronizes all its blocks but cannot be resident as a whole.
const GRID_NOT_RESIDENT: &str = "its blocks wait for each other, and the GPU cannot hold all of them at once";

/// The reason for a variant that differs from the baseline in whether it waits for its grid.
const GRID_SYNC_DIFFERS: &str =
    "only one of it and the baseline waits for its whole grid, so that the program would have to launch it otherwise";

/// Why the baseline cannot be launched, with the remedy where there is one.
fn does_not_fit(input: &ScoringInput, score: &Score) -> String {
    let [x, y, z] = input.launches[input.baseline].block;
    let threads = u64::from(x) * u64::from(y) * u64::from(z);
    // Blocks that would fit may be more than the code is compiled for.
    let limiter = Some(score.limiter).filter(|_| score.blocks_per_sm == 0);
    match (limiter, input.configurations[input.baseline].cap) {
        (Some(Limiter::Registers), 0) => format!(
            "{DOES_NOT_FIT}: {} registers for each of {threads} threads; __launch_bounds__({threads}) keeps them low enough",
            score.registers
        ),
        (Some(Limiter::Registers), cap) => format!(
            "{DOES_NOT_FIT}: under the cap of {cap} that `default` gives, each of its {threads} threads has {} registers",
            score.registers
        ),
        (Some(Limiter::SharedMemory), _) => format!(
            "{DOES_NOT_FIT}: its shared memory, static and dynamic, is more than the {} bytes that a block can have",
            input.machine.architecture.shared_per_block
        ),
        _ => DOES_NOT_FIT.to_owned(),
    }
}

/// Scores the whole space.
pub fn score(input: ScoringInput) -> Result<Scored, NoBaseline> {
    score_again(input, &mut ProfileCache::new(Allowance::TIMED))
}

/// Scores a space. Profiles in `known` are reused, new ones are added.
pub fn score_again(mut input: ScoringInput, known: &mut ProfileCache) -> Result<Scored, NoBaseline> {
    let profiles = Profiles::for_space(&input, known);
    // Many configurations share their machine code and profile: that pair is analysed once.
    let mut trips: Vec<&[f64]> = Vec::new();
    let mut groups: HashMap<(usize, Option<usize>, usize), Vec<usize>> = HashMap::new();
    for (index, variant) in input.variants.iter().enumerate() {
        if let Ok(variant) = variant {
            let own = input.trips[index].as_slice();
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
            let code = &input.codes[*variant];
            // It was parsed once already, to tell variants apart.
            let cubin = Cubin::parse(&code.cubin).ok();
            let kernel = cubin.as_ref().and_then(|cubin| cubin.kernel(&code.symbol));
            let analysis =
                kernel.map(|kernel| Analysis::with_calibration(kernel, profile, trips[*assumed], &input.calibration));
            members
                .iter()
                .filter_map(|&index| {
                    let buffers = input.workloads[index].as_deref().map(Workload::sizes);
                    let inputs = analysis.as_ref().map(|analysis| Inputs {
                        machine: &input.machine,
                        kernel: analysis,
                        launch: &input.launches[index],
                        buffers: buffers.as_deref(),
                    });
                    let written = profile.and_then(|profile| written(profile, input.launches[index].warps() as f64));
                    inputs.as_ref().map(|inputs| (index, score_of(inputs), written))
                })
                .collect::<Vec<_>>()
        })
        .collect();
    let baseline = input.baseline;
    // What the program launches so already fits on its GPU, whatever this one is.
    let waits: Vec<bool> = input.sources.iter().map(VariantSource::waits_for_grid).collect();
    let is_held = |input: &ScoringInput, index: usize, score: &Score| {
        let resident = u64::from(score.blocks_per_sm) * u64::from(input.machine.sms);
        !input.waits_for_grid || index == baseline || input.launches[index].blocks() <= resident
    };
    let mut scores = vec![None; input.configurations.len()];
    let mut written = vec![None; input.configurations.len()];
    let mut crowded = None;
    for (index, score, bytes) in found {
        written[index] = bytes;
        if !score.feasible {
            crowded = crowded.or_else(|| (index == baseline).then(|| does_not_fit(&input, &score)));
        } else if waits[input.source_of[index]] != input.waits_for_grid {
            input.variants[index] = Err(GRID_SYNC_DIFFERS.to_owned());
        } else if is_held(&input, index, &score) {
            scores[index] = Some(score);
        } else {
            input.variants[index] = Err(GRID_NOT_RESIDENT.to_owned());
        }
    }
    let reason = match &input.variants[baseline] {
        Err(problem) => Some(problem.clone()),
        Ok(_) => crowded.or_else(|| scores[baseline].is_none().then(|| DOES_NOT_FIT.to_owned())),
    };
    match reason {
        Some(reason) => Err(NoBaseline { configuration: input.configurations[baseline].clone(), reason }),
        None => Ok(Scored { input, scores, written }),
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

/// The cache settings of a configuration: cache operator of loads, and carve-out.
type Policy = (Option<LoadCacheOperator>, Option<u8>);

fn policy_of(configuration: &Configuration) -> Policy {
    (configuration.cache, configuration.carveout)
}

impl Scored {
    /// The points of the search, with the configuration of each.
    pub fn points(&self) -> (Vec<usize>, Vec<Point>) {
        let input = &self.input;
        let policies: BTreeSet<Policy> = input.configurations.iter().map(policy_of).collect();
        let policies: Vec<Policy> = policies.into_iter().collect();
        let baseline = Edits::from(&input.configurations[input.baseline]);
        let compiled_first = (0..input.configurations.len())
            .filter(|&index| Edits::from(&input.configurations[index]).is_compiled_first(baseline));
        let compiled_first: HashSet<usize> = compiled_first.map(|index| input.representative[index]).collect();
        (0..input.configurations.len())
            .filter(|&index| input.representative[index] == index)
            .filter_map(|index| {
                let score = self.scores[index]?;
                let variant = *input.variants[index].as_ref().ok()?;
                let policy = policies.binary_search(&policy_of(&input.configurations[index])).ok()?;
                let coordinates = input.coordinates(index, &score);
                let threads = input.launches[index].threads();
                let compiled_first = compiled_first.contains(&index);
                Some((index, Point { threads, variant, policy, compiled_first, score, coordinates }))
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
        let configurations = &self.input.configurations;
        let is_of_set = |index: &usize| configurations[*index].front_end() == *options;
        let of_set = (0..configurations.len()).filter(is_of_set);
        of_set.filter_map(|index| Some(self.scores[index]?.predicted_us)).min_by(f64::total_cmp)
    }

    /// The options of the configurations that are predicted to be the fastest, at most `most`.
    pub fn fastest_front_ends(&self, most: usize) -> Vec<FrontEndOptions> {
        let time = |index: usize| Some((index, self.scores[index]?.predicted_us));
        let mut timed: Vec<(usize, f64)> = (0..self.scores.len()).filter_map(time).collect();
        timed.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut fastest = Vec::new();
        for (index, _) in timed {
            let options = self.input.configurations[index].front_end();
            if !fastest.contains(&options) {
                fastest.push(options);
            }
            if fastest.len() == most {
                break;
            }
        }
        fastest
    }

    /// The configurations that a strategy sends to the GPU, in the order of predicted time.
    pub fn candidates(&self, strategy: Strategy) -> Vec<usize> {
        let (indices, points) = self.points();
        search::choose_candidates(strategy, &points).into_iter().map(|point| indices[point]).collect()
    }

    /// Returns the configuration of each point, the points, and the baseline's index among them
    /// (their number, if it is none of them).
    fn task(&self) -> (Vec<usize>, Vec<Point>, usize) {
        let (indices, points) = self.points();
        let baseline = indices.iter().position(|&index| index == self.input.baseline).unwrap_or(points.len());
        (indices, points, baseline)
    }

    /// Returns the first round of a search if it can be timed before the whole space is scored;
    /// otherwise nothing.
    pub fn early(&self, strategy: Strategy, most: usize) -> Vec<usize> {
        if !Search::has_early_first_round(strategy, most) {
            return Vec::new();
        }
        let (indices, points, baseline) = self.task();
        let first = Search::new(strategy, &points, baseline, most).next_points(&vec![None; points.len()]);
        first.into_iter().map(|point| indices[point]).collect()
    }

    /// Runs a strategy that times at most `most` configurations. `time` takes the configurations
    /// of a round and returns their times, `None` for those without one. The first round is
    /// `early`, unless that is empty.
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
            let point = |&index: &usize| indices.iter().position(|&point| point == self.input.representative[index]);
            search = search.with_first_round(early.iter().filter_map(point).collect());
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

    /// Returns the configurations among which the model alone chooses: all for a strategy with
    /// several rounds, else the strategy's candidates.
    pub fn choices(&self, strategy: Strategy) -> Vec<usize> {
        if strategy == Strategy::Refit { self.points().0 } else { self.candidates(strategy) }
    }

    /// Returns the gains that the model promises for the baseline and these candidates.
    pub fn promises(&self, candidates: &[usize]) -> Vec<(usize, Promise)> {
        let baseline = self.input.baseline;
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
        let configurations = &self.input.configurations;
        let baseline = &configurations[self.input.baseline];
        search::predicted_winner(promises, |index| configurations[index].departure(baseline))
    }
}
