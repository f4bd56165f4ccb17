//! A recorded space -> files in the formats that auto-tuning researchers share: T1 describes the tuning problem, T4 has the results.
//!
//! In: a file of `nvtune-eval record`; no GPU, no toolkit. Out: JSON that other tuners read. Both files name the parameters alike
//! ([`parameters`]). Invariant: what the record does not say is left out, never made up; a T1 file describes exactly the recorded
//! configurations, or there is none.
//!
//! The formats: Hozzova et al., "FAIR Sharing of Data in Autotuning Research", ICPE 2024 (doi 10.1145/3629527.3651429); schemas 1.0.0
//! of Kernel Tuner, which adds the word `correct` to T4.

mod arguments;
mod launch_size;
mod parameters;
mod t1;
mod t4;

pub use t1::{SampledSpace, problem};
pub use t4::results;

use nvtune::record::RecordedSpace;
use nvtune::say;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Writes the files that are asked for, and gives the exit code.
pub fn run(record: &Path, t1: Option<PathBuf>, t4: Option<PathBuf>) -> u8 {
    match export(record, t1, t4) {
        Ok(()) => 0,
        Err(problem) => {
            say!("nvtune fatal   : {problem}");
            1
        }
    }
}

fn export(record: &Path, t1: Option<PathBuf>, t4: Option<PathBuf>) -> Result<(), String> {
    let of_record = |error: &dyn std::fmt::Display| format!("'{}' {error}", record.display());
    let space = RecordedSpace::read(record).map_err(|error| of_record(&error))?;
    // Both are made before either is written.
    let problem = t1.map(|path| problem(&space).map(|problem| (path, problem)));
    let problem = problem.transpose().map_err(|error| of_record(&error))?;
    let results = t4.map(|path| (path, results(&space)));
    problem.into_iter().chain(results).try_for_each(|(path, value)| write(&path, &value))
}

fn write(path: &Path, value: &Value) -> Result<(), String> {
    let written = serde_json::to_string_pretty(value).map_err(std::io::Error::other);
    let written = written.and_then(|text| std::fs::write(path, text + "\n"));
    written.map_err(|error| format!("cannot write '{}': {error}", path.display()))
}
