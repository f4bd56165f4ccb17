//! The CUDA toolkit that tests use, and the PTX that it makes of the sources in this folder.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The path of a program of the toolkit: beside `NVTUNE_NVCC`, in `.toolkit/bin`, or on PATH.
pub fn program(name: &str) -> PathBuf {
    let local = Path::new(env!("CARGO_MANIFEST_DIR")).join(".toolkit/bin");
    let folder = std::env::var_os("NVTUNE_NVCC")
        .and_then(|nvcc| PathBuf::from(nvcc).parent().map(Path::to_path_buf))
        .or_else(|| local.join("nvcc").exists().then_some(local));
    folder.map_or_else(|| PathBuf::from(name), |folder| folder.join(name))
}

/// Runs a program of the toolkit; gives its standard output.
pub fn run(name: &str, arguments: &[&str]) -> String {
    let output = Command::new(program(name)).args(arguments).output().expect("the toolkit runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} {arguments:?}: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The PTX of `tests/ptx/NAME.cu`, for sm_90 unless the options say otherwise.
pub fn ptx(name: &str, options: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = folder.path().join("out.ptx");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/ptx/{name}.cu"));
    // Of C++14 nvcc's compilers read a third less of the C++ library, which is most of what they do here.
    let mut arguments = vec!["-ptx", "-std=c++14"];
    if !options.contains(&"-arch") {
        arguments.push("-arch=sm_90");
    }
    arguments.extend_from_slice(options);
    let (source, output) = (source.to_string_lossy().into_owned(), output.to_string_lossy().into_owned());
    arguments.extend([source.as_str(), "-o", output.as_str()]);
    run("nvcc", &arguments);
    std::fs::read_to_string(output).expect("nvcc wrote PTX")
}
