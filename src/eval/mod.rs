//! Recorded spaces -> how good the model and the strategies of this nvtune are on them; no GPU, no toolkit.
//!
//! In: the files that `nvtune bench` wrote. Out: tables. What always holds: a recorded space is scored by the code that a compile
//! runs, its candidates are chosen and its winner is settled by the same; only the times are the recorded ones.

mod judged;
mod kendall;
mod table;

pub use judged::{Found, Judged, judge};
pub use kendall::tau_b;

use crate::record::{RecordedSpace, SPACE_EXTENSION};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Judges every record among these files and below these folders, and prints the tables. The exit code tells whether all could
/// be judged.
pub fn run(paths: &[PathBuf]) -> u8 {
    let clock = Instant::now();
    let mut files = Vec::new();
    for path in paths {
        if let Err(error) = records(path, &mut files) {
            eprintln!("nvtune fatal   : '{}': {error}", path.display());
            return 1;
        }
    }
    if files.is_empty() {
        eprintln!("nvtune fatal   : there are no records there; `nvtune bench` makes them");
        return 1;
    }
    files.sort();
    let found: Vec<Result<Judged, String>> = files
        .par_iter()
        .map(|path| {
            let judged = RecordedSpace::read(path).and_then(|space| judge(&space));
            judged.map_err(|error| format!("'{}' {error}", path.display()))
        })
        .collect();
    let (judged, problems): (Vec<_>, Vec<_>) = found.into_iter().partition(Result::is_ok);
    let judged: Vec<Judged> = judged.into_iter().flatten().collect();
    print!("{}", table::text(&judged));
    for problem in problems.iter().filter_map(|problem| problem.as_ref().err()) {
        eprintln!("nvtune warning : {problem}");
    }
    eprintln!("nvtune: {} kernels judged in {:.1} s", judged.len(), clock.elapsed().as_secs_f64());
    u8::from(judged.is_empty() || !problems.is_empty())
}

/// The records at or below a path.
fn records(path: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !path.is_dir() {
        found.push(path.to_path_buf());
        return Ok(());
    }
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_dir() || path.to_string_lossy().ends_with(SPACE_EXTENSION) {
            records(&path, found)?;
        }
    }
    Ok(())
}
