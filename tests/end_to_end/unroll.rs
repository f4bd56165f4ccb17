//! Unrolling: winners whose loops have another factor than nvcc chooses.

use super::measured::sass;
use super::project::{Project, Ran, compile, reproducible, run, succeed};
use super::results::nvtune;
use serde_json::{Value, json};

/// Builds `unrolled.cu` on a GPU on which `label` is faster than all else.
fn timed(project: &Project, label: &str) -> Ran {
    let recorded = json!({
        "device": {"name": "NVIDIA H200", "compute_capability": 90, "driver": 13000},
        "entries": [{"label": label, "time_us": 8.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}],
    });
    project.write("recorded.json", &recorded.to_string());
    let mut build = project.nvtune(&reproducible("unrolled.cu", "unrolled.o"));
    run(build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"))
}

/// The tested source with another text in place of `before`.
fn rewritten(project: &Project, before: &str, after: &str) {
    let source = project.read("unrolled.cu");
    assert!(source.contains(before), "{source}");
    project.write("unrolled.cu", &source.replace(before, after));
}

/// A kernel's code in an object, without its name.
fn code(project: &Project, object: &str, kernel: &str) -> String {
    sass(project, object, kernel).split_once(' ').map(|(_, code)| code.to_owned()).expect("a name and code")
}

/// The factors of the configurations that a record has of the space, and whether each has code
/// of its own.
fn tried(project: &Project) -> Vec<(Value, Value)> {
    let record = project.record("unrolled.tune.json");
    let rows = record["kernels"][0]["configurations"].as_array().expect("a list").clone();
    let rows = rows.into_iter().filter(|row| row["exact_block"].is_null() && row["block"][0] == 256);
    rows.map(|row| (row["unroll"].clone(), row["variant"].clone())).collect()
}

#[test]
#[ignore = "long: in the full run"]
fn winner_has_its_factor_and_all_else_the_loops_of_the_source() {
    let project = Project::new(&["unrolled.cu"]);
    let ran = timed(&project, "block=128 unroll=8");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("nvtune: sum: block=128 unroll=8 (1.2"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    assert!(project.read("unrolled.tune.h").contains("innermost loops by 8"));
    let factors: Vec<Value> = tried(&project).into_iter().map(|(factor, _)| factor).collect();
    assert_eq!(factors, [Value::Null, json!(1), json!(8)]);

    // A file with the pragma has the winner's code, and one of nvcc's own the other kernels'.
    succeed(&mut project.plain(&compile("unrolled.cu", "plain.o")));
    rewritten(&project, "        for (int k", "#pragma unroll 8\n        for (int k");
    succeed(&mut project.plain(&compile("unrolled.cu", "pragma.o")));
    let winner = code(&project, "unrolled.o", "sumiPKfPf__nvtune_");
    assert_eq!(winner, code(&project, "pragma.o", "3sumiPKfPf"));
    assert_ne!(winner, code(&project, "plain.o", "3sumiPKfPf"));
    assert_eq!(code(&project, "unrolled.o", "3sumiPKfPf\n"), code(&project, "plain.o", "3sumiPKfPf"));
    assert_eq!(code(&project, "unrolled.o", "plain"), code(&project, "plain.o", "plain"));
}

#[test]
fn factor_that_gives_the_code_of_another_is_no_further_point() {
    let project = Project::new(&["unrolled.cu"]);
    // What does not depend on the loop's variable is computed once, whatever the factor.
    rewritten(&project, "total += x[k] * x[k]", "total = x[0]");
    timed(&project, "block=128");
    let variants: Vec<Value> = tried(&project).into_iter().map(|(_, variant)| variant).collect();
    assert!(variants.len() == 3 && variants.iter().all(|variant| *variant == variants[0]), "{variants:?}");
}

#[test]
fn loops_with_pragma_are_no_axis() {
    let project = Project::new(&["unrolled.cu"]);
    rewritten(&project, "        for (int k", "#pragma unroll 2\n        for (int k");
    let ran = timed(&project, "block=128");
    assert_eq!(tried(&project).len(), 1);
    let warning = "warning: `unroll` has no effect: the body of `sum` has no loop without a pragma of its own";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
}

#[test]
fn model_chooses_among_factors_without_a_gpu() {
    let project = Project::new(&["unrolled.cu"]);
    let ran = succeed(project.nvtune(&compile("unrolled.cu", "static.o")).env("NVTUNE", "static"));
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let compiled = tried(&project).into_iter().filter(|(factor, variant)| !factor.is_null() && !variant.is_null());
    assert!(compiled.count() > 0, "no factor was compiled");
}

#[test]
#[ignore = "long: in the full run"]
fn locked_factor_is_built_without_a_gpu() {
    let project = Project::new(&["unrolled.cu"]).with_cuda_headers_in_full_run();
    timed(&project, "block=256 unroll=1");
    let object = project.bytes("unrolled.o");
    succeed(&mut nvtune(&project, &["lock"]));
    let lock = project.read("nvtune.lock");
    assert!(lock.contains("\"unroll\": 1"), "{lock}");

    let farm = Project::new(&["unrolled.cu"]).with_cuda_headers_in_full_run();
    farm.write("nvtune.lock", &lock);
    let ran = succeed(farm.nvtune(&reproducible("unrolled.cu", "unrolled.o")).env("NVTUNE", "locked"));
    assert!(ran.stderr.contains("block=256 unroll=1 (1.2") && !ran.stderr.contains("warning"), "{}", ran.stderr);
    assert!(farm.bytes("unrolled.o") == object, "the object is another one");
}
