//! Registers that are spilled to shared memory.

use super::project::{Project, Ran, reproducible, run, succeed};
use super::results::nvtune;
use serde_json::{Value, json};

/// The source's axes.
const AXES: &str = "regs({0, 48}) spill(shared)";

/// Builds `spilled.cu` on a GPU on which code with spills in shared memory is the fastest.
fn timed(project: &Project) -> Ran {
    let recorded = json!({
        "device": {"name": "NVIDIA H200", "compute_capability": 90, "driver": 13000},
        "entries": [{"label": "spill=shared", "time_us": 8.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}],
    });
    project.write("recorded.json", &recorded.to_string());
    let mut build = project.nvtune(&reproducible("spilled.cu", "spilled.o"));
    run(build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"))
}

/// The register caps under which a record has code with spills in shared memory.
fn tried(project: &Project) -> Vec<Value> {
    let record = project.record("spilled.tune.json");
    let rows = record["kernels"][0]["configurations"].as_array().expect("a list").clone();
    rows.into_iter().filter(|row| row["shared_spills"] == json!(true)).map(|row| row["cap"].clone()).collect()
}

/// Bytes of static shared memory of the kernel whose name has this part, as cuobjdump says.
fn static_shared(project: &Project, kernel: &str) -> u32 {
    let usage = project.tool("cuobjdump", &["-res-usage", "spilled.o"]);
    let mut lines = usage.lines().skip_while(|line| !line.contains(kernel)).skip(1);
    let shared = lines.next().and_then(|line| line.split_once("SHARED:")).map(|(_, rest)| rest);
    let digits = shared.map(|rest| rest.split(' ').next().unwrap_or_default());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("no {kernel}: {usage}"))
}

#[test]
fn winner_spills_to_shared_memory() {
    let project = Project::new(&["spilled.cu"]).with_cuda_headers_in_full_run();
    let ran = timed(&project);
    assert!(ran.stderr.starts_with("nvtune: wide: block=256 reqntid regs=48 spill=shared (1.2"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    assert_eq!(tried(&project), [json!(48)], "code that does not spill has nothing to gain");
    let kernel = project.record("spilled.tune.json")["kernels"][0].clone();
    let row = &kernel["configurations"][kernel["winner"].as_u64().expect("an index") as usize];
    let variant = &kernel["variants"][row["variant"].as_u64().expect("an index") as usize];
    assert_eq!(variant["shared_spills"], json!(true));
    assert!(variant["static_shared"].as_u64().is_some_and(|bytes| bytes > 0), "{variant}");
    assert!(static_shared(&project, "wideiiPKfPf__nvtune_") > 0);
    assert_eq!(static_shared(&project, "4wideiiPKfPf:"), 0);

    // A lock file keeps it.
    let object = project.bytes("spilled.o");
    succeed(&mut nvtune(&project, &["lock"]));
    let farm = Project::new(&["spilled.cu"]).with_cuda_headers_in_full_run();
    farm.write("nvtune.lock", &project.read("nvtune.lock"));
    let ran = succeed(farm.nvtune(&reproducible("spilled.cu", "spilled.o")).env("NVTUNE", "locked"));
    assert!(ran.stderr.contains("spill=shared (1.2") && !ran.stderr.contains("warning"), "{}", ran.stderr);
    assert!(farm.bytes("spilled.o") == object, "the object is another one");
}

#[test]
fn spills_stay_in_local_memory_unless_asked_for() {
    let project = Project::new(&["spilled.cu"]);
    let source = project.read("spilled.cu");
    assert!(source.contains(AXES), "{source}");
    project.write("spilled.cu", &source.replace(AXES, "regs({0, 48})"));
    let ran = timed(&project);
    assert!(ran.stderr.contains("nvtune: wide: block=256 (kept: "), "{}", ran.stderr);
    assert_eq!(tried(&project), Vec::<Value>::new());
}

#[test]
#[ignore = "long: in the full run"]
fn kernel_with_dynamic_shared_memory_is_built_without_spills_in_shared_memory() {
    let project = Project::new(&["spilled.cu"]);
    let source = project.read("spilled.cu").replace("    float values[64];", "    extern __shared__ float values[];");
    let source = source.replace(AXES, &format!("{AXES} shared(65536)")).replace("256, 256>>>", "256, 256, 65536>>>");
    let source = source
        .replace("values[(k", "values[threadIdx.x * 64 + (k")
        .replace("values[k]", "values[threadIdx.x * 64 + k]");
    project.write("spilled.cu", &source);
    let ran = timed(&project);
    assert!(ran.stderr.contains("nvtune: wide: block=256"), "{}", ran.stderr);
    assert_eq!(tried(&project), Vec::<Value>::new());
}
