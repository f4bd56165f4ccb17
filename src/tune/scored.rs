//! Every configuration with its launch, its variant and its score.

use super::kernel::{Problem, Subject};
use super::variants::{FrontEnds, Macros, Variants, merged};
use crate::model::{Analysis, Inputs, Profile, Score, frequency, score as score_of};
use crate::ptx::Module;
use crate::search::{self, Point, Strategy};
use crate::space::{Configuration, Launch};
use crate::workload::Workload;
use rayon::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;

/// A space, scored; the vectors go with `configurations`.
pub struct Scored {
    pub configurations: Vec<Configuration>,
    pub launches: Vec<Launch>,
    pub workloads: Vec<Option<Arc<Workload>>>,
    /// The variant's index, or why there is none.
    pub variants: Vec<Result<usize, String>>,
    /// `None` where there is no variant or no block of it fits on a multiprocessor.
    pub scores: Vec<Option<Score>>,
    /// Index of the baseline.
    pub baseline: usize,
    /// For each configuration the first one with the same machine code and launch: they are one point for the search.
    pub representative: Vec<usize>,
}

/// PTX instructions that are interpreted for all profiles of a kernel together (about a tenth of a second), and at least for
/// each. Six times as many choose no better on the suite.
const ALL_PROFILES: u64 = 10_000_000;
const ONE_PROFILE: u64 = 400_000;

/// Scores the whole space.
pub fn score(
    subject: &Subject<'_>,
    front_ends: &mut FrontEnds<'_>,
    variants: &Variants,
    in_force: &Macros,
) -> Result<Scored, Problem> {
    let mut scored = laid_out(subject, variants)?;
    let profiles = profiles(subject, front_ends, &scored, in_force);
    // Many configurations share their machine code and profile: that pair is analysed once.
    let mut trips: Vec<Vec<f64>> = Vec::new();
    let mut groups: HashMap<(usize, Option<usize>, usize), Vec<usize>> = HashMap::new();
    for (index, variant) in scored.variants.iter().enumerate() {
        if let Ok(variant) = variant {
            let own = subject.space.trips(&scored.configurations[index])?;
            let assumed = trips.iter().position(|known| *known == own).unwrap_or_else(|| {
                trips.push(own);
                trips.len() - 1
            });
            groups.entry((*variant, profiles.of[index], assumed)).or_default().push(index);
        }
    }
    let groups: Vec<_> = groups.into_iter().collect();
    let scores: Vec<(usize, Option<Score>)> = groups
        .par_iter()
        .flat_map_iter(|((variant, profile, assumed), members)| {
            let profile = profile.and_then(|index| profiles.made[index].as_ref());
            let cubin = variants.cubin(*variant).ok();
            let kernel = cubin.as_ref().and_then(|cubin| cubin.kernel(&variants.all[*variant].symbol));
            let analysis = kernel.map(|kernel| Analysis::assuming(kernel, profile, &trips[*assumed]));
            members
                .iter()
                .map(|&index| {
                    let inputs = analysis.as_ref().map(|analysis| Inputs {
                        machine: &subject.machine,
                        kernel: analysis,
                        launch: &scored.launches[index],
                        footprint: scored.workloads[index].as_deref().map(footprint),
                    });
                    (index, inputs.as_ref().map(score_of).filter(|score| score.feasible))
                })
                .collect::<Vec<_>>()
        })
        .collect();
    for (index, score) in scores {
        scored.scores[index] = score;
    }
    let baseline = scored.baseline;
    let reason = match &scored.variants[baseline] {
        Err(problem) => Some(problem.clone()),
        Ok(_) if scored.scores[baseline].is_none() => Some("no block of it fits on a multiprocessor".to_owned()),
        Ok(_) => None,
    };
    match reason {
        Some(reason) => Err(Problem::Baseline { configuration: scored.configurations[baseline].clone(), reason }),
        None => Ok(scored),
    }
}

/// Configurations with launches, workloads and variants, not yet scored.
fn laid_out(subject: &Subject<'_>, variants: &Variants) -> Result<Scored, Problem> {
    let mut configurations: Vec<Configuration> = subject.space.iter().collect();
    let baseline = subject.space.baseline().clone();
    let baseline = configurations.iter().position(|found| *found == baseline).unwrap_or_else(|| {
        configurations.push(baseline);
        configurations.len() - 1
    });
    let mut workloads: Vec<Option<Arc<Workload>>> = Vec::with_capacity(configurations.len());
    let mut launches = Vec::with_capacity(configurations.len());
    let mut known: Vec<Arc<Workload>> = Vec::new();
    for configuration in &configurations {
        let (launch, workload) = subject.launch(configuration)?;
        launches.push(launch);
        workloads.push(workload.map(|workload| match known.iter().find(|known| ***known == workload) {
            Some(shared) => Arc::clone(shared),
            None => {
                known.push(Arc::new(workload));
                Arc::clone(&known[known.len() - 1])
            }
        }));
    }
    let of: Vec<Result<usize, String>> =
        configurations.iter().map(|configuration| variants.of(configuration).map_err(str::to_owned)).collect();
    let mut first: HashMap<(usize, Launch), usize> = HashMap::new();
    // The baseline stands for its like, so that it is the baseline that is timed.
    let order = std::iter::once(baseline).chain(0..configurations.len());
    for index in order {
        if let Ok(variant) = of[index] {
            first.entry((variant, launches[index])).or_insert(index);
        }
    }
    let representative = (0..configurations.len())
        .map(|index| {
            of[index]
                .as_ref()
                .ok()
                .and_then(|&variant| first.get(&(variant, launches[index])))
                .copied()
                .unwrap_or(index)
        })
        .collect();
    let scores = vec![None; configurations.len()];
    Ok(Scored { configurations, launches, workloads, variants: of, scores, baseline, representative })
}

/// Bytes of all buffers.
fn footprint(workload: &Workload) -> u64 {
    workload.buffers.iter().map(|buffer| buffer.count.saturating_mul(buffer.element.size() as u64)).sum()
}

/// Profiles, one for each set of macros and launch.
struct Profiles {
    made: Vec<Option<Profile>>,
    /// By configuration: index into `made`.
    of: Vec<Option<usize>>,
}

fn profiles(subject: &Subject<'_>, front_ends: &mut FrontEnds<'_>, scored: &Scored, in_force: &Macros) -> Profiles {
    let mut keys: HashMap<(&Macros, Launch), usize> = HashMap::new();
    let mut jobs: Vec<(Macros, &str, Launch, Arc<Workload>)> = Vec::new();
    let mut of = Vec::with_capacity(scored.configurations.len());
    for (index, configuration) in scored.configurations.iter().enumerate() {
        let compiled = scored.variants[index].is_ok();
        of.push(scored.workloads[index].as_ref().filter(|_| compiled).map(|workload| {
            *keys.entry((&configuration.macros, scored.launches[index])).or_insert_with(|| {
                let entry = subject.entry(&configuration.macros).unwrap_or(&subject.entry);
                let macros = merged(in_force, &configuration.macros);
                jobs.push((macros, &entry.symbol, scored.launches[index], Arc::clone(workload)));
                jobs.len() - 1
            })
        }));
    }
    let sets: Vec<Macros> = jobs.iter().map(|(macros, ..)| macros.clone()).collect();
    let mut modules: HashMap<Macros, Option<Arc<Module>>> = HashMap::new();
    for (set, made) in sets.iter().zip(front_ends.get(&sets)) {
        modules
            .entry(set.clone())
            .or_insert_with(|| made.ok().and_then(|front_end| Module::parse(&front_end.ptx).ok()).map(Arc::new));
    }
    let limits = frequency::Limits {
        instructions: (ALL_PROFILES / jobs.len().max(1) as u64).max(ONE_PROFILE),
        ..frequency::Limits::default()
    };
    let made = jobs
        .par_iter()
        .map(|(macros, symbol, launch, workload)| {
            let module = modules.get(macros)?.as_ref()?;
            frequency::profile(module, symbol, launch, workload, &limits).ok()
        })
        .collect();
    Profiles { made, of }
}

impl Scored {
    /// The points of the search, with the configuration of each.
    fn points(&self) -> (Vec<usize>, Vec<Point>) {
        (0..self.configurations.len())
            .filter(|&index| self.representative[index] == index)
            .filter_map(|index| {
                let score = self.scores[index]?;
                let variant = *self.variants[index].as_ref().ok()?;
                Some((index, Point { threads: self.launches[index].threads(), variant, score }))
            })
            .unzip()
    }

    /// The Pareto set of POS.
    pub fn pareto(&self) -> Vec<usize> {
        let (indices, points) = self.points();
        search::po_pareto_set(&points).into_iter().map(|point| indices[point]).collect()
    }

    /// The least predicted time among the configurations with these macros.
    pub fn least_time(&self, macros: &Macros) -> Option<f64> {
        let with_macros = (0..self.configurations.len()).filter(|&index| self.configurations[index].macros == *macros);
        with_macros.filter_map(|index| Some(self.scores[index]?.predicted_us)).min_by(f64::total_cmp)
    }

    /// The configurations that a strategy sends to the GPU, in the order of predicted time.
    pub fn candidates(&self, strategy: Strategy) -> Vec<usize> {
        let (indices, points) = self.points();
        search::candidates(strategy, &points).into_iter().map(|point| indices[point]).collect()
    }
}
