//! The targets of `tests/fuzz` over their seeds: inputs that reach each part of a reader, and those that once made one fail.

#[path = "fuzz/targets/mod.rs"]
pub mod targets;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn every_target_reads_its_seeds() {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds");
    for (name, run) in targets::TARGETS {
        let files = fs::read_dir(seeds.join(name)).unwrap_or_else(|error| panic!("seeds of {name}: {error}"));
        let mut count = 0;
        for file in files {
            run(&fs::read(file.expect("an entry").path()).expect("a seed"));
            count += 1;
        }
        assert!(count > 0, "no seed of {name}");
    }
}

#[test]
fn every_target_is_in_the_table() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/targets");
    let files = fs::read_dir(folder).expect("the targets").map(|file| file.expect("an entry").path());
    let mut stems: BTreeSet<_> =
        files.filter_map(|path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned())).collect();
    stems.retain(|stem| stem != "mod" && stem != "memory");
    assert_eq!(stems, targets::TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect());
}
