//! A decision -> its row: what tables, JSON and CSV say of a kernel.

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
}

impl Row {
    pub fn new(read: &ReadRecord, decision: &Decision) -> Self {
        let [winner, baseline] = [decision.winner, decision.baseline].map(|index| &decision.configurations[index]);
        let time = |timing: &RecordedTiming| timing.paired_us.unwrap_or(timing.median_us);
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
        }
    }
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
