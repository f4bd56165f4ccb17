//! Places -> the records that they mean, read and checked.

use crate::cli::records;
use crate::record::{Decision, FORMAT, Record};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// A record and the path that it was read from.
#[derive(Debug)]
pub struct ReadRecord {
    pub path: PathBuf,
    pub record: Record,
}

/// The records that were read, and why others were not.
#[derive(Debug, Default)]
pub struct Records {
    pub read: Vec<ReadRecord>,
    /// The place or record, and what is wrong with it.
    pub problems: Vec<(PathBuf, String)>,
}

impl Records {
    /// Reads every record that the places mean. A record that several places mean is read once.
    pub fn read(places: &[PathBuf]) -> Self {
        let mut records = Self::default();
        let mut paths: Vec<PathBuf> = Vec::new();
        for place in places {
            match records::of_place(place) {
                Ok(found) => paths.extend(found),
                Err(problem) => records.problems.push((place.clone(), problem)),
            }
        }
        let mut seen = HashSet::new();
        paths.retain(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
        for path in paths {
            match read(&path) {
                Ok(record) => records.read.push(ReadRecord { path, record }),
                Err(problem) => records.problems.push((path, problem)),
            }
        }
        records
    }

    /// Lists all decisions, each with its record.
    pub fn decisions(&self) -> impl Iterator<Item = (&ReadRecord, &Decision)> {
        self.read.iter().flat_map(|read| read.record.kernels.iter().map(move |decision| (read, decision)))
    }
}

fn read(path: &Path) -> Result<Record, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    let record: Record = serde_json::from_slice(&bytes).map_err(|error| format!("is no record of nvtune: {error}"))?;
    if record.format > FORMAT {
        return Err(format!(
            "is of format {}, and this nvtune reads up to {FORMAT}: use the nvtune that wrote it ({})",
            record.format, record.nvtune
        ));
    }
    let has_both = |decision: &Decision| decision.winner.max(decision.baseline) < decision.configurations.len();
    match record.kernels.iter().find(|decision| !has_both(decision)) {
        Some(Decision { name, .. }) => {
            Err(format!("is no record of nvtune: winner or baseline of {name} is not in it"))
        }
        None => Ok(record),
    }
}
