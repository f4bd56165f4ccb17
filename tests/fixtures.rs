//! The files of `tests/fixtures/`: all are there, and are what NVIDIA's tools make.
//!
//! `NVTUNE_UPDATE_FIXTURES=1` writes them anew.

use super::support::fixtures::{self, Fixture};
use super::support::full::is_full;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Returns the files below a folder by their paths in it.
fn files(folder: &Path, prefix: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("a folder that can be read").map(|entry| entry.expect("an entry"));
    let paths = entries.flat_map(|entry| {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() { files(&entry.path(), &format!("{name}/")) } else { BTreeSet::from([name]) }
    });
    paths.collect()
}

fn is_update() -> bool {
    std::env::var_os("NVTUNE_UPDATE_FIXTURES").is_some_and(|value| value == "1")
}

/// Makes fixtures in a folder of their own and returns the paths of those that differ from the checked-in ones.
fn different(wanted: &[Fixture]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    fixtures::make_all(wanted, folder.path());
    let differs = |path: &&str| fixtures::read_below(folder.path(), path) != fixtures::read(path);
    wanted.iter().map(|fixture| fixture.path.as_str()).filter(differs).map(str::to_owned).collect()
}

/// Returns the versions that made the fixtures, if this toolkit has others, and its own.
fn other_versions() -> Option<String> {
    let (recorded, present) = (fixtures::read(fixtures::VERSIONS), fixtures::versions());
    let recorded = String::from_utf8(recorded).expect("text");
    (recorded != present).then(|| format!("made by\n{recorded}this toolkit is\n{present}"))
}

#[test]
fn folder_has_files_of_table_only() {
    if is_update() {
        return;
    }
    let mut expected: BTreeSet<String> = fixtures::all().into_iter().map(|fixture| fixture.path).collect();
    expected.extend([fixtures::VERSIONS, "README.md"].map(str::to_owned));
    assert_eq!(files(&fixtures::folder(), ""), expected);
}

/// The quick run makes those of one source for one architecture, if the toolkit has the recorded versions.
#[test]
fn fixtures_are_what_toolkit_makes() {
    let mut wanted = fixtures::all();
    if is_update() {
        for path in files(&fixtures::folder(), "").iter().filter(|path| *path != "README.md") {
            fs::remove_file(fixtures::folder().join(path)).expect("a fixture can be removed");
        }
        return fixtures::make_all(&wanted, &fixtures::folder());
    }
    let versions = other_versions();
    if !is_full() {
        if let Some(versions) = versions {
            return eprintln!("fixtures are not compared: {versions}");
        }
        wanted.retain(|fixture| fixture.path.starts_with("shared/sm_90."));
        assert_eq!(wanted.len(), 4, "PTX, cubin, listing and resources");
    } else if let Some(versions) = versions {
        panic!("tests/fixtures: {versions}");
    }
    assert_eq!(different(&wanted), [""; 0], "NVTUNE_UPDATE_FIXTURES=1 writes them anew");
}
