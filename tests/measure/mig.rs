//! A GPU that is divided (multi-instance GPU): what stands in for the driver shows one instance, or the whole.

use super::driver::stand_in;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

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
fn mig_instance_has_the_uuid_of_its_gpu_and_memory_of_its_own() {
    // By its name it is locked: who measures on another instance may be in its way.
    let gpu = "GPU-11111111-1111-1111-1111-111111111111";
    for (is_instance, free) in [(false, 70), (true, 9)] {
        let device = ready(stand_in(), is_instance);
        assert_eq!((&device["uuid"], &device["free_bytes"]), (&gpu.into(), &free.into()), "{device}");
    }
}
