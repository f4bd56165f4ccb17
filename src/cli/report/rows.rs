//! A decision -> its row: what tables, JSON and CSV say of a kernel.

use super::gpu_time::GpuTimes;
use super::reading::ReadRecord;
use crate::model::Bottleneck;
use crate::record::{Decision, RecordedTiming};
use crate::search::Provenance;
use serde::Serialize;

/// One kernel on one architecture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub kernel: String,
    pub source: String,
    /// The path of the record.
    pub record: String,
    pub architecture: String,
    /// The GPU that it was timed on.
    pub gpu: Option<String>,
    pub provenance: Provenance,
    /// Time of the baseline over time of the winner.
    pub speedup: f64,
    /// As the build's summary line has them: `block=256 regs=56`.
    pub winner: String,
    pub baseline: String,
    /// Medians in microseconds: of the paired rounds if there were any.
    pub winner_us: Option<f64>,
    pub baseline_us: Option<f64>,
    /// What bounds the predicted time of the winner.
    pub bottleneck: Option<Bottleneck>,
    pub points: usize,
    pub timed: usize,
    /// Microseconds of all launches that the program recorded, before it was tuned.
    pub gpu_us: Option<f64>,
    /// The same as a share of the project's.
    pub gpu_share: Option<f64>,
}

impl Row {
    pub fn new(read: &ReadRecord, decision: &Decision, times: &GpuTimes) -> Self {
        let [winner, baseline] = [decision.winner, decision.baseline].map(|index| &decision.configurations[index]);
        let time = |timing: &RecordedTiming| timing.paired_us.unwrap_or(timing.median_us);
        let gpu_us = times.of_kernel(&read.path, &decision.name);
        Self {
            kernel: decision.name.clone(),
            source: read.record.source.clone(),
            record: read.path.strip_prefix(".").unwrap_or(&read.path).display().to_string(),
            architecture: decision.architecture.clone(),
            gpu: decision.device.as_ref().map(|device| device.name.clone()),
            provenance: decision.provenance,
            speedup: decision.speedup,
            winner: winner.configuration.to_string(),
            baseline: baseline.configuration.to_string(),
            winner_us: winner.timing.as_ref().map(time),
            baseline_us: baseline.timing.as_ref().map(time),
            bottleneck: winner.score.map(|score| score.bottleneck),
            points: decision.points,
            timed: decision.timed,
            gpu_us,
            gpu_share: gpu_us.and_then(|time_us| times.share(time_us)),
        }
    }
}

/// Returns a share in per cent; `-` if it is not known.
pub fn format_share(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.1}%", 100.0 * share))
}

/// Orders kernels by gain, the greatest first, then by name.
pub fn sort_by_gain(kernels: &mut [(&ReadRecord, &Decision)]) {
    kernels.sort_by(|(a_read, a), (b_read, b)| {
        b.speedup.total_cmp(&a.speedup).then_with(|| (&a.name, &a_read.path).cmp(&(&b.name, &b_read.path)))
    });
}

/// Returns the geometric mean of the speed-ups; `None` if there is no row.
pub fn mean_speedup(rows: &[Row]) -> Option<f64> {
    let logarithms = rows.iter().map(|row| row.speedup.ln()).sum::<f64>();
    (!rows.is_empty()).then(|| (logarithms / rows.len() as f64).exp())
}

/// Counts the rows of each provenance: `30 measured, 12 kept`.
pub fn provenance_counts(rows: &[Row]) -> String {
    let kinds = [
        (Provenance::Measured, "measured"),
        (Provenance::Locked, "locked"),
        (Provenance::Predicted, "predicted"),
        (Provenance::Baseline, "kept"),
    ];
    let counts = kinds.map(|(kind, name)| (rows.iter().filter(|row| row.provenance == kind).count(), name));
    let parts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}"));
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns the name of each row: with its architecture or source if the name alone is not unique.
pub fn unique_names(rows: &[Row]) -> Vec<String> {
    let is_unique = |name: &dyn Fn(&Row) -> String, row: &Row| {
        rows.iter().filter(|other| other.kernel == row.kernel && name(other) == name(row)).count() == 1
    };
    let by_architecture = |row: &Row| format!("{} ({})", row.kernel, row.architecture);
    let by_source = |row: &Row| format!("{} ({})", row.kernel, row.source);
    let by_record = |row: &Row| format!("{} ({}, {})", row.kernel, row.architecture, row.record);
    let name = |row: &Row| match row {
        row if is_unique(&|row| row.kernel.clone(), row) => row.kernel.clone(),
        row if is_unique(&by_architecture, row) => by_architecture(row),
        row if is_unique(&by_source, row) => by_source(row),
        row => by_record(row),
    };
    rows.iter().map(name).collect()
}
