//! Every recorded space under `kernels/results/` can be read, says all that it should, and holds the code that was timed.

use nvtune::record::{RecordedSpace, SPACE_EXTENSION};
use std::path::{Path, PathBuf};

/// All of them together, in bytes.
const LIMIT: u64 = 60_000_000;

/// Two runs must not differ by more than this in the median.
const REPEATABILITY: f64 = 0.02;

fn records() -> Vec<PathBuf> {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/results");
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        entries.map(|entry| entry.expect("readable").path()).collect()
    };
    let folders = entries(&results).into_iter().filter(|path| path.is_dir());
    folders
        .flat_map(|folder| entries(&folder))
        .filter(|path| path.to_string_lossy().ends_with(SPACE_EXTENSION))
        .collect()
}

#[test]
fn every_record_is_valid_and_complete() {
    let mut size = 0;
    for path in records() {
        let name = path.display();
        size += std::fs::metadata(&path).expect("it is there").len();
        // Reading checks what can be checked without the code.
        let space = RecordedSpace::read(&path).unwrap_or_else(|error| panic!("{name} {error}"));
        assert_eq!(space.code_problems(), Vec::<String>::new(), "{name}");
        assert!(space.is_complete(), "{name}: not every point was timed");
        assert!(path.ends_with(format!("{}{SPACE_EXTENSION}", space.kernel)), "{name} is of `{}`", space.kernel);
        let state = space.state.as_ref().unwrap_or_else(|| panic!("{name}: neither driver nor clocks are told"));
        assert!(!state.driver.is_empty() && state.sm_mhz > 0.0, "{name}: {state:?}");
        let again = space.repeatability.unwrap_or_else(|| panic!("{name}: times were taken once"));
        assert!(again.median < REPEATABILITY, "{name}: {again:?}");
    }
    assert!(size < LIMIT, "the records take {size} bytes");
}
