//! A scored space and its times -> the recorded space.

use nvtune::gpu::Device;
use nvtune::launch::FrontEndOptions;
use nvtune::measure::{Plan, Reason};
use nvtune::record::{
    PointTime, RecordedSpace, Repeatability, SPACE_FORMAT, Sample, Seconds, SpaceConfiguration, SpaceSize, SpaceSource,
    SpaceVariant, SpaceWorkload,
};
use nvtune::sass;
use nvtune::tune::{DOES_NOT_FIT, Prepared, recorded_variant};
use nvtune::workload::{FileBytes, Workload};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What came of one point: its check result and its times.
#[derive(Clone, Debug)]
pub struct Taken {
    pub check: String,
    pub refused: Option<Reason>,
    pub time: Option<PointTime>,
}

/// What a record says besides the space itself.
pub struct Facts {
    pub source: String,
    pub source_digest: String,
    pub command: Vec<String>,
    pub options: Vec<String>,
    pub toolkit: String,
    pub architecture: String,
    pub device: Device,
    pub plan: Plan,
}

/// What timing gave.
pub struct Times {
    /// By configuration, for points.
    pub taken: BTreeMap<usize, Taken>,
    /// The points, where they are a sample of the space's.
    pub sample: Option<(Sample, Vec<usize>)>,
    pub repeatability: Option<Repeatability>,
    /// Of the GPU.
    pub seconds: f64,
}

/// Numbers what is referred to in the order of first use.
struct Numbers {
    of: Vec<Option<usize>>,
    used: Vec<usize>,
}

impl Numbers {
    fn new(count: usize) -> Self {
        Self { of: vec![None; count], used: Vec::new() }
    }

    fn number(&mut self, index: usize) -> usize {
        let used = &mut self.used;
        *self.of[index].get_or_insert_with(|| {
            used.push(index);
            used.len() - 1
        })
    }
}

/// Draws up the record of a space. A space that was sampled is recorded as the sample.
pub fn recorded(prepared: &Prepared<'_>, facts: Facts, times: &Times) -> Result<RecordedSpace, String> {
    let (scored, input) = (&prepared.scored, &prepared.scored.input);
    let kept: Vec<usize> = match &times.sample {
        Some((_, points)) => points.clone(),
        None => (0..input.configurations.len()).collect(),
    };
    let mut sources = Numbers::new(input.sources.len());
    let mut variants = Numbers::new(input.codes.len());
    let mut workloads: Vec<Arc<Workload>> = Vec::new();
    let mut configurations = Vec::with_capacity(kept.len());
    for &index in &kept {
        let workload = input.workloads[index].as_ref().ok_or("a configuration has no workload")?;
        let known = workloads.iter().position(|known| Arc::ptr_eq(known, workload));
        let workload = known.unwrap_or_else(|| {
            workloads.push(Arc::clone(workload));
            workloads.len() - 1
        });
        let taken = times.taken.get(&index);
        let infeasible = match &input.variants[index] {
            Err(problem) => Some(problem.clone()),
            Ok(_) if scored.scores[index].is_none() => Some(DOES_NOT_FIT.to_owned()),
            Ok(_) => None,
        };
        configurations.push(SpaceConfiguration {
            configuration: input.configurations[index].clone(),
            launch: input.launches[index],
            source: sources.number(input.source_of[index]),
            workload,
            trips: input.trips[index].clone(),
            variant: input.variants[index].as_ref().ok().map(|&variant| variants.number(variant)),
            infeasible,
            check: taken.map(|taken| taken.check.clone()),
            refused: taken.and_then(|taken| taken.refused.clone()),
            time: taken.and_then(|taken| taken.time),
        });
    }
    let baseline = kept.iter().position(|&index| index == input.baseline).ok_or("the baseline is not in the sample")?;
    let options_of = |source: usize| {
        let index = input.source_of.iter().position(|&found| found == source);
        index.map(|index| input.configurations[index].front_end()).unwrap_or_default()
    };
    let ptx = |source: usize| input.sources[source].ptx.as_deref().unwrap_or_default();
    let cubins: Vec<Vec<u8>> =
        variants.used.iter().map(|&variant| sass::without_ptx_text(&input.codes[variant].cubin)).collect();
    let files: Vec<Vec<u8>> =
        workloads.iter().map(|workload| workload.files().flat_map(FileBytes::bytes).copied().collect()).collect();
    let parts = sources.used.iter().map(|&source| ptx(source).as_bytes());
    let parts = parts.chain(cubins.iter().map(Vec::as_slice)).chain(files.iter().map(Vec::as_slice));
    let points = scored.points().0.len();
    Ok(RecordedSpace {
        format: SPACE_FORMAT,
        nvtune: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: prepared.info.annotation.name.clone(),
        source: facts.source,
        source_digest: facts.source_digest,
        command: facts.command,
        options: facts.options,
        date: super::date::now(),
        toolkit: facts.toolkit,
        architecture: facts.architecture,
        state: super::facts::state(&facts.device),
        device: facts.device,
        plan: facts.plan,
        seconds: Seconds { measure: times.seconds, ..prepared.seconds },
        size: SpaceSize {
            configurations: input.configurations.len(),
            points,
            sample: times.sample.as_ref().map(|(sample, _)| *sample),
        },
        repeatability: times.repeatability,
        baseline,
        code: RecordedSpace::pack_code(parts).map_err(|error| error.to_string())?,
        sources: sources
            .used
            .iter()
            .map(|&source| {
                let FrontEndOptions { macros, math, unroll } = options_of(source);
                let symbol = input.sources[source].symbol.clone();
                SpaceSource { macros, math, unroll, symbol, bytes: ptx(source).len() }
            })
            .collect(),
        variants: variants
            .used
            .iter()
            .zip(&cubins)
            .map(|(&variant, cubin)| SpaceVariant {
                variant: recorded_variant(&prepared.variants.all[variant]),
                symbol: input.codes[variant].symbol.clone(),
                bytes: cubin.len(),
            })
            .collect(),
        workloads: workloads
            .iter()
            .zip(&files)
            .map(|(workload, files)| SpaceWorkload { workload: (**workload).clone(), bytes: files.len() })
            .collect(),
        configurations,
    })
}
