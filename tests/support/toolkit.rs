//! The CUDA toolkit that tests run: `NVTUNE_NVCC`, else that of `.toolkit/`, else the `nvcc` on PATH.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the path of the real nvcc. A machine without one fails the test: `make toolkit` gets one.
pub fn nvcc() -> PathBuf {
    if let Some(path) = std::env::var_os("NVTUNE_NVCC") {
        return path.into();
    }
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join(".toolkit/bin/nvcc"));
    folders.find(|own| own.exists()).unwrap_or_else(|| which::which("nvcc").expect("an nvcc: run `make toolkit` first"))
}

/// Returns the path of another program of the toolkit.
pub fn program(name: &str) -> PathBuf {
    nvcc().with_file_name(name)
}

/// Runs a program of the toolkit and returns its standard output; a failure of it is a failure of the test.
pub fn run<S: AsRef<OsStr>>(name: &str, arguments: &[S]) -> String {
    let path = program(name);
    let output =
        Command::new(&path).args(arguments).output().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns every architecture that the toolkit's compiler knows (`nvcc --list-gpu-code`).
pub fn architectures() -> Vec<u32> {
    let listed = run("nvcc", &["--list-gpu-code"]);
    listed.lines().filter_map(|line| line.trim().strip_prefix("sm_")?.parse().ok()).collect()
}

/// Compiles a source for one architecture into a cubin with PTX lines.
pub fn compile_cubin(source: &Path, architecture: u32, options: &[&str], output: &Path) {
    let mut arguments: Vec<PathBuf> = ["-cubin", "-lineinfo", "-o"].map(PathBuf::from).to_vec();
    arguments.extend([output.to_owned(), format!("-arch=sm_{architecture}").into(), source.to_owned()]);
    arguments.extend(options.iter().map(PathBuf::from));
    run("nvcc", &arguments);
}

/// The CUDA headers that nvcc reads before each source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headers {
    /// The stand-in of `tests/support/mini/`, with which a compile takes a third of the time.
    Small,
    /// CUDA's own.
    Cuda,
}

/// Makes an nvcc read these headers, and C++14 where its arguments name no other standard.
///
/// With C++17, CUDA's headers include half as much again.
pub fn set_headers(nvcc: &mut Command, headers: Headers) {
    let names_standard = nvcc.get_args().any(|argument| argument.to_string_lossy().contains("-std"));
    let mut options = Vec::new();
    if !names_standard {
        options.push("-std=c++14".to_owned());
    }
    if headers == Headers::Small {
        options.push(format!("-I{}/tests/support/mini", env!("CARGO_MANIFEST_DIR")));
    }
    match options.is_empty() {
        true => nvcc.env_remove("NVCC_PREPEND_FLAGS"),
        false => nvcc.env("NVCC_PREPEND_FLAGS", options.join(" ")),
    };
}

/// Returns the folder that `make` fills from a source. It is kept for later runs with the same source.
pub fn kept_folder(name: &str, source: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let hash = source
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{hash:016x}"));
    if !kept.exists() {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        make(folder.path());
        // Another process may have been faster.
        let renamed = std::fs::rename(folder.path(), &kept);
        assert!(renamed.is_ok() || kept.exists(), "{renamed:?}");
    }
    kept
}

/// Returns the folder of CUDA's headers.
pub fn include_folder() -> PathBuf {
    nvcc().parent().and_then(Path::parent).expect("a toolkit").join("include")
}
