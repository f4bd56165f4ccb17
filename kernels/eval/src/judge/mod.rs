//! Recorded spaces -> how good the model and the strategies of this nvtune are on them; no GPU, no toolkit.
//!
//! In: the files that `nvtune-eval record` wrote. Out: tables. Invariant: a recorded space is scored by the code that a compile
//! runs, its candidates are chosen and its winner is settled by the same; only the times are the recorded ones.

mod instructions;
mod judged;
mod kendall;
mod table;

pub use instructions::{Block, Instructions, instructions};
pub use judged::{FIRST, Found, Judged, Losses, judge, losses};
pub use kendall::tau_b;
pub(crate) use table::rows;

use nvtune::record::{RecordedSpace, SPACE_EXTENSION, SpaceError};
use nvtune::{put, put_on, say};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Judges every record among these files and below these folders, and prints the tables. The exit code tells whether all could
/// be judged.
pub fn run(paths: &[PathBuf]) -> u8 {
    let clock = Instant::now();
    let Some(files) = files(paths) else { return 1 };
    let (judged, problems) = of_each(&files, judge);
    put_on!("{}", table::text(&judged));
    for problem in &problems {
        say!("nvtune warning : {problem}");
    }
    say!("nvtune: {} spaces judged in {:.1} s", judged.len(), clock.elapsed().as_secs_f64());
    u8::from(judged.is_empty() || !problems.is_empty())
}

/// Prints how many instructions the model says that the baseline of each record executes, one line of JSON for each. The exit code
/// tells whether it says so of all.
pub fn run_instructions(paths: &[PathBuf]) -> u8 {
    let Some(files) = files(paths) else { return 1 };
    let (found, problems) = of_each(&files, instructions);
    for line in found.iter().filter_map(|found| serde_json::to_string(found).ok()) {
        put!("{line}");
    }
    for problem in &problems {
        say!("nvtune warning : {problem}");
    }
    u8::from(found.is_empty() || !problems.is_empty())
}

/// The records among these files and below these folders; none, and why is said, where there are none.
pub(crate) fn files(paths: &[PathBuf]) -> Option<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if let Err(error) = records(path, &mut files) {
            say!("nvtune fatal   : '{}': {error}", path.display());
            return None;
        }
    }
    if files.is_empty() {
        say!("nvtune fatal   : there are no records there; `nvtune-eval record` makes them");
        return None;
    }
    files.sort();
    Some(files)
}

/// What is found of each record, in their order, and what is wrong with the others.
pub(crate) fn of_each<T: Send>(
    files: &[PathBuf],
    find: impl Fn(&RecordedSpace) -> Result<T, SpaceError> + Sync,
) -> (Vec<T>, Vec<String>) {
    let found: Vec<Result<T, String>> = files
        .par_iter()
        .map(|path| {
            let found = RecordedSpace::read(path).and_then(|space| find(&space));
            found.map_err(|error| format!("'{}' {error}", path.display()))
        })
        .collect();
    let (mut all, mut problems) = (Vec::new(), Vec::new());
    for found in found {
        match found {
            Ok(found) => all.push(found),
            Err(problem) => problems.push(problem),
        }
    }
    (all, problems)
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
