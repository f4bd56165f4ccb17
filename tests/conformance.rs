//! The readers of machine code against the toolkit's own tools, on everything that there is to compile: the benchmark suite and a
//! large library, for every architecture.
//!
//! `NVTUNE_TEST_FULL=1` (`make test-full`) compares all of it, which takes minutes; otherwise a sample is looked at. `NVTUNE_TEST_CUBINS`
//! may name a folder of further cubins, from wherever. Needs a toolkit, no GPU.

use super::support::{cubins as toolkit, disassembly, resource_usage as usage};

use disassembly::Compared;
use rayon::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

fn is_full() -> bool {
    std::env::var_os("NVTUNE_TEST_FULL").is_some_and(|value| value == "1")
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Kernels of the suite by name; three of them in a sample.
fn suite() -> Vec<(String, PathBuf)> {
    let folders = fs::read_dir(root().join("kernels")).expect("kernels/ is there");
    let mut sources: Vec<(String, PathBuf)> = folders
        .filter_map(|entry| {
            let name = entry.expect("kernels/ can be read").file_name().into_string().expect("a plain name");
            let source = root().join("kernels").join(&name).join(format!("{name}.cu"));
            source.exists().then_some((name, source))
        })
        .collect();
    sources.sort();
    assert!(sources.len() >= 42, "{}", sources.len());
    sources.retain(|(name, _)| is_full() || ["attention", "gemm_wmma", "hash_lookup"].contains(&name.as_str()));
    sources
}

/// One compiled source.
struct Built {
    name: String,
    architecture: u32,
    path: PathBuf,
}

/// The suite for every architecture of the toolkit (in a sample, for the oldest, the newest and sm_90).
fn built_suite() -> &'static [Built] {
    static BUILT: OnceLock<(tempfile::TempDir, Vec<Built>)> = OnceLock::new();
    let (_, built) = BUILT.get_or_init(|| {
        let architectures: Vec<u32> =
            toolkit::architectures().into_iter().filter(|found| is_full() || [75, 90, 120].contains(found)).collect();
        let sources = suite();
        let wanted: Vec<_> = architectures.iter().flat_map(|&a| sources.iter().map(move |s| (a, s))).collect();
        build(&wanted, &[])
    });
    built
}

fn build(wanted: &[(u32, &(String, PathBuf))], options: &[&str]) -> (tempfile::TempDir, Vec<Built>) {
    let folder = tempfile::tempdir().expect("a folder for cubins");
    let built = wanted
        .par_iter()
        .map(|(architecture, (name, source))| {
            let path = folder.path().join(format!("{name}.sm_{architecture}.cubin"));
            toolkit::compile(source, *architecture, &[&["-O3"], options].concat(), &path);
            Built { name: name.clone(), architecture: *architecture, path }
        })
        .collect();
    (folder, built)
}

/// The cubins of the folder that `NVTUNE_TEST_CUBINS` names.
fn named() -> Vec<PathBuf> {
    let Some(folder) = std::env::var_os("NVTUNE_TEST_CUBINS") else { return Vec::new() };
    let files = fs::read_dir(&folder).expect("the folder that NVTUNE_TEST_CUBINS names");
    let mut paths: Vec<PathBuf> = files.map(|entry| entry.expect("a file of it").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "cubin"));
    paths.sort();
    paths
}

fn bytes(path: &Path) -> Vec<u8> {
    fs::read(path).expect("a cubin that can be read")
}

#[test]
fn resources_of_the_suite_are_those_of_cuobjdump() {
    let compared: Vec<_> =
        built_suite().par_iter().map(|built| (built, usage::compare(&built.path, &bytes(&built.path)))).collect();
    let wrong: Vec<String> = compared.iter().flat_map(|(_, (_, wrong))| wrong.clone()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let kernels: usize = compared.iter().map(|(_, (seen, _))| seen).sum();
    let mut architectures: Vec<u32> = compared.iter().map(|(built, _)| built.architecture).collect();
    architectures.dedup();
    let mut names: Vec<&str> = compared.iter().map(|(built, _)| built.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    println!("resources: {kernels} kernels of {} programs for {architectures:?}, 0 differ", names.len());
    let others: Vec<_> = named().par_iter().map(|path| usage::compare(path, &bytes(path))).collect();
    let wrong: Vec<String> = others.iter().flat_map(|(_, wrong)| wrong.clone()).collect();
    println!(
        "resources: {} kernels of {} further cubins, {} differ",
        others.iter().map(|found| found.0).sum::<usize>(),
        others.len(),
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(kernels >= names.len() * architectures.len());
    assert_eq!(architectures.len(), if is_full() { toolkit::architectures().len() } else { 3 });
}

#[test]
fn instructions_are_those_of_nvdisasm() {
    let mut all = Compared::default();
    let compare_built = |built: &Built| disassembly::compare(&built.path, &bytes(&built.path));
    let mut add = |what: &str, found: Vec<Compared>| {
        let mut these = Compared::default();
        found.into_iter().for_each(|one| these.add(one));
        println!(
            "{what}: {} instructions, {} targets, {} differ",
            these.instructions,
            these.targets,
            these.wrong.len()
        );
        all.add(these);
    };
    for &architecture in &toolkit::architectures() {
        let of_it = built_suite().par_iter().filter(|built| built.architecture == architecture);
        add(&format!("suite, sm_{architecture}"), of_it.map(compare_built).collect());
    }
    if is_full() {
        let library = ("library".to_owned(), root().join("tests/cubin/library.cu"));
        let wanted: Vec<_> = toolkit::ARCHITECTURES.map(|architecture| (architecture, &library)).to_vec();
        let (_folder, built) = build(&wanted, &["-std=c++17"]);
        let found: Vec<Compared> = built.par_iter().map(compare_built).collect();
        for (built, found) in built.iter().zip(found) {
            add(&format!("library, sm_{}", built.architecture), vec![found]);
        }
    }
    let named = named();
    let found: Vec<Compared> = named.par_iter().map(|path| disassembly::compare(path, &bytes(path))).collect();
    for (path, found) in named.iter().zip(found) {
        add(&path.file_name().unwrap().display().to_string(), vec![found]);
    }
    println!("{} instructions, {} mnemonics, {} differ", all.instructions, all.mnemonics.len(), all.wrong.len());
    all.assert_right();
    assert!(all.instructions >= if is_full() { 100_000 } else { 1_000 }, "only {} were compared", all.instructions);
}
