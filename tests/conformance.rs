//! The readers of machine code against the toolkit's tools, on compiled programs.
//!
//! The quick run compiles one program of the suite for one architecture. The full run (`make test-full`) compiles the
//! whole suite and a large library for every architecture. `NVTUNE_TEST_CUBINS` names a folder of further cubins.

use super::suite::programs;
use super::support::full::is_full;
use super::support::{disassembly, fixtures, resource_usage, toolkit};

use disassembly::Compared;
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// One cubin with its name in messages.
struct Built {
    name: String,
    architecture: u32,
    path: PathBuf,
}

/// Architectures that the suite is compiled for.
fn architectures() -> Vec<u32> {
    if is_full() { toolkit::architectures() } else { vec![90] }
}

/// Compiles the suite once for all tests; the quick run compiles `gemm_wmma`.
fn built_suite() -> &'static [Built] {
    static BUILT: OnceLock<(tempfile::TempDir, Vec<Built>)> = OnceLock::new();
    let (_, built) = BUILT.get_or_init(|| {
        let mut names = programs();
        names.retain(|name| is_full() || name == "gemm_wmma");
        let sources: Vec<(String, PathBuf)> = names
            .into_iter()
            .map(|name| (name.clone(), root().join("kernels").join(&name).join(format!("{name}.cu"))))
            .collect();
        let architectures = architectures();
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
            toolkit::compile_cubin(source, *architecture, &[&["-O3"], options].concat(), &path);
            Built { name: name.clone(), architecture: *architecture, path }
        })
        .collect();
    (folder, built)
}

/// Returns the cubins of the folder that `NVTUNE_TEST_CUBINS` names.
fn further_cubins() -> Vec<PathBuf> {
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

fn file_name(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}

fn compare_resources(path: &Path) -> (usize, Vec<String>) {
    resource_usage::compare(&file_name(path), &bytes(path), &fixtures::resource_usage(path))
}

fn compare_instructions(path: &Path) -> Compared {
    disassembly::compare(&file_name(path), &bytes(path), &fixtures::nvdisasm(path))
}

#[test]
fn resources_of_suite_equal_cuobjdump() {
    let compared: Vec<_> = built_suite().par_iter().map(|built| compare_resources(&built.path)).collect();
    let wrong: Vec<String> = compared.iter().flat_map(|(_, wrong)| wrong.clone()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let kernels: usize = compared.iter().map(|(seen, _)| seen).sum();
    let built_for: BTreeSet<u32> = built_suite().iter().map(|built| built.architecture).collect();
    let names: BTreeSet<&str> = built_suite().iter().map(|built| built.name.as_str()).collect();
    println!("resources: {kernels} kernels of {} programs for {built_for:?}, 0 differ", names.len());
    assert!(kernels >= names.len() * built_for.len());
    assert_eq!(built_for, architectures().into_iter().collect());
}

#[test]
fn resources_of_further_cubins_equal_cuobjdump() {
    let cubins = further_cubins();
    let compared: Vec<_> = cubins.par_iter().map(|path| compare_resources(path)).collect();
    let wrong: Vec<String> = compared.iter().flat_map(|(_, wrong)| wrong.clone()).collect();
    let kernels: usize = compared.iter().map(|(seen, _)| seen).sum();
    println!("resources: {kernels} kernels of {} further cubins, {} differ", cubins.len(), wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Adds what several cubins gave, and prints the sum.
fn sum(what: &str, compared: Vec<Compared>) -> Compared {
    let mut all = Compared::default();
    compared.into_iter().for_each(|one| all.add(one));
    println!(
        "{what}: {} instructions, {} targets, {} mnemonics, {} differ",
        all.instructions,
        all.targets,
        all.mnemonics.len(),
        all.wrong.len()
    );
    all
}

#[test]
fn instructions_of_suite_equal_nvdisasm() {
    let mut all = Compared::default();
    for architecture in architectures() {
        let cubins = built_suite().par_iter().filter(|built| built.architecture == architecture);
        let compared = cubins.map(|built| compare_instructions(&built.path)).collect();
        all.add(sum(&format!("suite, sm_{architecture}"), compared));
    }
    all.assert_right();
    assert!(all.instructions >= if is_full() { 100_000 } else { 100 }, "only {} were compared", all.instructions);
}

/// Compiles a large library (see `tests/cubin/library.cu`) in the full run.
#[test]
#[ignore = "long: in the full run"]
fn instructions_of_library_equal_nvdisasm() {
    let library = ("library".to_owned(), root().join("tests/cubin/library.cu"));
    let wanted: Vec<_> = fixtures::ARCHITECTURES.map(|architecture| (architecture, &library)).to_vec();
    let (_folder, built) = build(&wanted, &["-std=c++17"]);
    let compared: Vec<Compared> = built.par_iter().map(|built| compare_instructions(&built.path)).collect();
    let mut all = Compared::default();
    for (built, compared) in built.iter().zip(compared) {
        all.add(sum(&format!("library, sm_{}", built.architecture), vec![compared]));
    }
    all.assert_right();
    assert!(all.instructions > 1_000, "only {} were compared", all.instructions);
}

#[test]
fn instructions_of_further_cubins_equal_nvdisasm() {
    let cubins = further_cubins();
    let compared: Vec<Compared> = cubins.par_iter().map(|path| compare_instructions(path)).collect();
    let mut all = Compared::default();
    for (path, compared) in cubins.iter().zip(compared) {
        all.add(sum(&file_name(path), vec![compared]));
    }
    all.assert_right();
}
