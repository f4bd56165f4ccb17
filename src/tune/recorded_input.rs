//! A recorded space as the input of scoring.

use super::scoring_input::{Code, ScoringInput, VariantSource, representatives};
use crate::gpu::{Architecture, Machine, architecture_number};
use crate::model::CALIBRATION;
use crate::record::{RecordedSpace, SpaceError, SpaceSource, SpaceVariant};
use crate::workload::FileBytes;
use std::sync::Arc;

/// Returns the scoring input of a recorded space, equal to the tuner's when it was recorded.
pub fn recorded_scoring_input(space: &RecordedSpace) -> Result<ScoringInput, SpaceError> {
    let broken = |problem: &str| SpaceError::Inconsistent(problem.to_owned());
    let architecture = architecture_number(&space.architecture).and_then(Architecture::find);
    let architecture = architecture.ok_or_else(|| broken("its architecture is not known"))?;
    let parts = space.parts()?;
    let mut workloads = Vec::with_capacity(space.workloads.len());
    for (recorded, files) in space.workloads.iter().zip(parts.files) {
        let (mut workload, files, mut start) = (recorded.workload.clone(), Arc::new(files), 0_usize);
        let next = |length: usize| {
            let begin = start;
            start = begin.checked_add(length)?;
            FileBytes::part(&files, begin..start)
        };
        if !workload.attach(next) {
            return Err(broken("the files of a workload are too short"));
        }
        workloads.push(Arc::new(workload));
    }
    let sources = space.sources.iter().zip(parts.ptx);
    // What the comment said of launches shows in what was refused.
    let source = |(source, ptx): (&SpaceSource, Option<String>)| {
        let (symbol, whole_ptx) = (source.symbol.clone(), ptx.map(Arc::from));
        VariantSource { symbol, is_declared_cooperative: false, ptx: whole_ptx.clone(), whole_ptx }
    };
    let sources: Vec<VariantSource> = sources.map(source).collect();
    let of_baseline = space.configurations.get(space.baseline).and_then(|found| sources.get(found.source));
    let codes = space.variants.iter().zip(parts.cubins);
    let launches: Vec<_> = space.configurations.iter().map(|found| found.launch).collect();
    let variants: Vec<Result<usize, String>> = space
        .configurations
        .iter()
        .map(|found| found.variant.ok_or_else(|| found.infeasible.clone().unwrap_or_default()))
        .collect();
    let code = |(variant, cubin): (&SpaceVariant, Vec<u8>)| Code {
        symbol: variant.symbol.clone(),
        digest: variant.variant.digest.clone(),
        cubin: Arc::from(cubin),
    };
    Ok(ScoringInput {
        machine: Machine::from_device(architecture, &space.device),
        calibration: CALIBRATION,
        configurations: space.configurations.iter().map(|found| found.configuration.clone()).collect(),
        workloads: space.configurations.iter().map(|found| workloads.get(found.workload).map(Arc::clone)).collect(),
        source_of: space.configurations.iter().map(|found| found.source).collect(),
        trips: space.configurations.iter().map(|found| found.trips.clone()).collect(),
        needs_comparison: vec![false; space.configurations.len()],
        baseline: space.baseline,
        representative: representatives(&variants, &launches, space.baseline),
        waits_for_grid: of_baseline.is_some_and(VariantSource::waits_for_grid),
        sources,
        codes: codes.map(code).collect(),
        launches,
        variants,
    })
}
