//! A GPU that is divided (multi-instance GPU): what stands in for the driver shows one instance, or the whole.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

/// Makes a library of `tests/stubs/mig.cpp` that programs take for the driver and for its management library.
fn stand_in(folder: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stubs/mig.cpp");
    let compiler = which::which("c++").or_else(|_| which::which("g++")).expect("nvcc's own host compiler");
    let driver = folder.join("libcuda.so.1");
    let made =
        Command::new(compiler).args(["-shared", "-fPIC", "-o"]).arg(&driver).arg(source).status().expect("it runs");
    assert!(made.success());
    // The names that are looked for first, lest the machine's own be found.
    for name in ["libcuda.so", "libnvidia-ml.so.1"] {
        std::fs::copy(&driver, folder.join(name)).expect("a copy");
    }
}

/// What the measuring process says of the GPU when it is ready.
fn ready(folder: &Path, is_instance: bool) -> serde_json::Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nvtune"));
    command.arg("measure").env("LD_LIBRARY_PATH", folder).env_remove("MIG");
    if is_instance {
        command.env("MIG", "1");
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
    said.read_line(&mut String::new()).expect("a version");
    let mut lengths = [0; 8];
    said.read_exact(&mut lengths).expect("a frame");
    let mut text = vec![0; u32::from_le_bytes([lengths[0], lengths[1], lengths[2], lengths[3]]) as usize];
    said.read_exact(&mut text).expect("its text");
    drop(child.stdin.take());
    child.wait().expect("it ends");
    let ready: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    ready["Ready"][0].clone()
}

#[test]
fn an_instance_of_a_gpu_has_the_gpus_name_and_memory_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    stand_in(folder.path());
    // By its name it is locked: who measures on another instance may be in its way.
    let gpu = "GPU-11111111-1111-1111-1111-111111111111";
    for (is_instance, free) in [(false, 70), (true, 9)] {
        let device = ready(folder.path(), is_instance);
        assert_eq!((&device["uuid"], &device["free_bytes"]), (&gpu.into(), &free.into()), "{device}");
    }
}
