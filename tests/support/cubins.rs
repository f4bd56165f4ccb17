//! The kernels of `tests/cubin/`, compiled for every architecture that tests look at.

use super::toolkit::run;
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, OnceLock};

/// Architectures that the kernels are compiled for.
pub const ARCHITECTURES: [u32; 7] = [75, 80, 86, 89, 90, 100, 120];

/// Sources in `tests/cubin/` with the options that they are compiled with.
const SOURCES: [(&str, &[&str]); 5] =
    [("loops", &[]), ("shared", &[]), ("double", &[]), ("tensor", &[]), ("local", &["-maxrregcount=32"])];

/// A kernel source compiled for one architecture.
pub struct Compiled {
    pub source: &'static str,
    pub architecture: u32,
    pub path: PathBuf,
    pub bytes: Vec<u8>,
}

/// Every architecture that the toolkit's compiler knows (`nvcc --list-gpu-code`).
pub fn architectures() -> Vec<u32> {
    let listed = run("nvcc", &["--list-gpu-code"]);
    listed.lines().filter_map(|line| line.trim().strip_prefix("sm_")?.parse().ok()).collect()
}

/// Compiles a source for one architecture into a cubin with PTX lines.
pub fn compile(source: &Path, architecture: u32, options: &[&str], output: &Path) {
    let mut arguments: Vec<PathBuf> = ["-cubin", "-lineinfo", "-o"].map(PathBuf::from).to_vec();
    arguments.extend([output.to_owned(), format!("-arch=sm_{architecture}").into(), source.to_owned()]);
    arguments.extend(options.iter().map(PathBuf::from));
    run("nvcc", &arguments);
}

/// All sources for all of [`ARCHITECTURES`], compiled once; empty (with a note) where there is no toolkit.
pub fn compiled() -> &'static [Compiled] {
    static COMPILED: LazyLock<(tempfile::TempDir, Vec<Compiled>)> =
        LazyLock::new(|| compile_all(&SOURCES, || ARCHITECTURES.to_vec()));
    &COMPILED.1
}

/// One source for the architectures of the toolkit that are not among [`ARCHITECTURES`].
pub fn compiled_for_the_others() -> &'static [Compiled] {
    let others = || architectures().into_iter().filter(|found| !ARCHITECTURES.contains(found)).collect();
    static COMPILED: OnceLock<(tempfile::TempDir, Vec<Compiled>)> = OnceLock::new();
    &COMPILED.get_or_init(|| compile_all(&[("shared", &[])], others)).1
}

type Sources<'a> = [(&'static str, &'a [&'a str])];

fn compile_all(sources: &Sources<'_>, architectures: impl FnOnce() -> Vec<u32>) -> (tempfile::TempDir, Vec<Compiled>) {
    let folder = tempfile::tempdir().expect("a folder for cubins");
    let wanted: Vec<_> = architectures().into_iter().flat_map(|a| sources.iter().map(move |s| (a, s))).collect();
    let compiled = wanted.into_par_iter().map(|(architecture, &(source, options))| {
        let path = folder.path().join(format!("{source}.{architecture}.cubin"));
        let cu = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cubin/{source}.cu"));
        compile(&cu, architecture, options, &path);
        let bytes = std::fs::read(&path).expect("the cubin that nvcc wrote");
        Compiled { source, architecture, path, bytes }
    });
    let compiled = compiled.collect();
    (folder, compiled)
}
