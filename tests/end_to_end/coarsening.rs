//! Winners of which each block does the work of several.

use super::project::{Project, Ran, reproducible, run, succeed};
use super::results::nvtune;
use serde_json::{Value, json};

/// 65536 blocks of 64 threads, many more than an H200 has at once.
const SOURCE: &str = "//@tune threads(n) block({64, 128}) regs({0}) default(block = 64)
//@tune args(n = 1 << 22, x = random[n], y = out[n])
__global__ void scale(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

void launch(int n, const float *x, float *y) { scale<<<(n + 63) / 64, 64>>>(n, x, y); }
";

/// A project with this source, on a GPU on which blocks that do the work of four are the fastest.
fn project(source: &str) -> Project {
    let project = Project::new(&[]).with_cuda_headers_in_full_run();
    project.write("scale.cu", source);
    let recorded = json!({
        "device": {"name": "NVIDIA H200", "compute_capability": 90, "driver": 13000},
        "entries": [{"label": "block=64 coarsen=4", "time_us": 8.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}],
    });
    project.write("recorded.json", &recorded.to_string());
    project
}

/// With the warnings that host compilers find in optimized code.
fn arguments() -> Vec<String> {
    [reproducible("scale.cu", "scale.o"), vec!["-Xcompiler=-Wall,-Wextra,-Werror,-O3".to_owned()]].concat()
}

fn timed(project: &Project) -> Ran {
    let mut build = project.nvtune(&arguments());
    run(build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"))
}

/// How many blocks of the program's grid the configurations of a record do the work of in one.
fn tried(project: &Project) -> Vec<Value> {
    let record = project.record("scale.tune.json");
    let rows = record["kernels"][0]["configurations"].as_array().expect("a list").clone();
    let rows = rows.into_iter().filter(|row| row["block"][0] == 64);
    rows.map(|row| row["coarsening"].clone()).filter(|blocks| !blocks.is_null()).collect()
}

#[test]
fn winner_launches_a_part_of_the_blocks() {
    let project = project(SOURCE);
    let ran = timed(&project);
    assert!(ran.stderr.starts_with("nvtune: scale: block=64 reqntid coarsen=4 (1.2"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    assert_eq!(tried(&project), [json!(2), json!(4), json!(8)], "with 16 the GPU would not be full");

    // A lock file keeps it.
    let object = project.bytes("scale.o");
    succeed(&mut nvtune(&project, &["lock"]));
    let farm = Project::new(&[]).with_cuda_headers_in_full_run();
    farm.write("scale.cu", SOURCE);
    farm.write("nvtune.lock", &project.read("nvtune.lock"));
    let ran = succeed(farm.nvtune(&arguments()).env("NVTUNE", "locked"));
    assert!(ran.stderr.contains("coarsen=4 (1.2") && !ran.stderr.contains("warning"), "{}", ran.stderr);
    assert!(farm.bytes("scale.o") == object, "the object is another one");
}

#[test]
fn blocks_that_depend_on_each_other_or_fill_no_gpu_do_their_own_work_alone() {
    for (before, after) in [
        ("y[i] = 2 * x[i];", "y[i] = atomicAdd(y, x[i]);"),
        ("if (i < n)", "__syncthreads();\n    if (i < n)"),
        ("1 << 22", "1 << 18"),
    ] {
        let project = project(&SOURCE.replace(before, after));
        let ran = timed(&project);
        assert!(ran.stderr.contains("nvtune: scale: block=64 (kept: "), "{}", ran.stderr);
        assert_eq!(tried(&project), Vec::<Value>::new(), "{after}");
    }
}

#[test]
fn lock_file_that_coarsens_dependent_blocks_is_not_used() {
    let source = SOURCE.replace("if (i < n)", "__syncthreads();\n    if (i < n)");
    let project = project(&source);
    project.write("recorded.json", &project.read("recorded.json").replace("block=64 coarsen=4", "block=128"));
    assert!(timed(&project).stderr.contains("block=128 "), "no winner");
    succeed(&mut nvtune(&project, &["lock"]));
    let lock = project.read("nvtune.lock");
    let forged = lock.replace("\"block\":", "\"coarsening\": 4, \"block\":");
    assert_ne!(forged, lock);
    project.write("nvtune.lock", &forged);
    let ran = succeed(project.nvtune(&arguments()).env("NVTUNE", "locked"));
    assert!(ran.stderr.contains("block=64 (kept: the fastest configuration does not fit"), "{}", ran.stderr);
}
