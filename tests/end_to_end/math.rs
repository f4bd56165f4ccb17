//! Math options: winners that are compiled by a front end with other options than the build's.

use super::measured::sass;
use super::project::{Project, Ran, compile, reproducible, run, succeed};
use super::results::nvtune;
use crate::support::full::cases;
use serde_json::{Value, json};

/// The times of a GPU on which `label` is faster than all else; with `more` fields.
fn recorded(label: &str, more: Value) -> String {
    let mut recorded = json!({
        "device": {"name": "NVIDIA H200", "compute_capability": 90, "driver": 13000},
        "entries": [{"label": label, "time_us": 8.0, "spread": 0.01, "tolerance_used": 0.123}, {"time_us": 10.0, "spread": 0.01}],
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        recorded[name] = value.clone();
    }
    recorded.to_string()
}

/// Builds `mathed.cu` with these options besides, on a GPU with these times.
fn timed(project: &Project, recorded: &str, options: &[&str]) -> Ran {
    project.write("recorded.json", recorded);
    let mut arguments = reproducible("mathed.cu", "mathed.o");
    arguments.extend(options.iter().map(|&option| option.to_owned()));
    run(project.nvtune(&arguments).env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"))
}

/// The math options of the configurations that a record has of the space.
fn tried(project: &Project) -> Vec<Value> {
    let record = project.record("mathed.tune.json");
    let rows = record["kernels"][0]["configurations"].as_array().expect("a list").clone();
    let rows = rows.into_iter().filter(|row| row["exact_block"].is_null() && row["block"][0] == 256);
    rows.map(|row| row["math"].clone()).collect()
}

#[test]
fn winner_has_its_math_options_and_all_else_those_of_the_build() {
    let project = Project::new(&["mathed.cu"]);
    let ran = timed(&project, &recorded("block=128 math=ftz", Value::Null), &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("nvtune: ratio: block=128 math=ftz (1.2"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("x over the baseline, measured, results within the default tolerance)"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let report = succeed(&mut nvtune(&project, &["report", "mathed.tune.json"])).stdout;
    let results = "  the winner's results are within the default tolerance of the baseline's: the largest difference takes \
                   12.30% of that\n";
    assert!(report.contains(results), "{report}");
    assert_eq!(tried(&project), [Value::Null, json!(["ftz"]), json!(["fast_div"]), json!(["ftz", "fast_div"])]);
    let record = project.record("mathed.tune.json");
    let kernel = &record["kernels"][0];
    let winner = &kernel["configurations"][kernel["winner"].as_u64().expect("an index") as usize];
    assert_eq!(winner["math"], json!(["ftz"]));
    let variants = kernel["variants"].as_array().expect("a list");
    assert!(variants.iter().any(|variant| variant["math"] == json!(["fast_div"])), "{variants:?}");

    // A file of the option alone has the winner's code, and one of nvcc's own the other kernels'.
    succeed(&mut project.plain(&compile("mathed.cu", "plain.o")));
    let mut option = compile("mathed.cu", "option.o");
    option.push("-ftz=true".to_owned());
    succeed(&mut project.plain(&option));
    let code = |object: &str, kernel: &str| {
        sass(&project, object, kernel).split_once(' ').map(|(_, code)| code.to_owned()).expect("a name and code")
    };
    let winner = code("mathed.o", "ratioiPKfPf__nvtune_");
    assert!(winner.contains("FFMA.FTZ"), "{winner}");
    assert_eq!(winner, code("option.o", "ratio"));
    assert_eq!(code("mathed.o", "5ratioiPKfPf\n"), code("plain.o", "ratio"));
    assert_eq!(code("mathed.o", "plain"), code("plain.o", "plain"));
}

#[test]
#[ignore = "long: in the full run"]
fn math_is_off_unless_it_was_timed_and_compared() {
    let project = Project::new(&["mathed.cu"]);
    let ran = timed(&project, &recorded("math=ftz", json!({"uncompared": true})), &[]);
    assert!(ran.stderr.contains("candidate refused: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("nvtune: ratio: block=256 (kept: "), "{}", ran.stderr);
    succeed(&mut project.plain(&compile("mathed.cu", "plain.o")));
    let baseline = sass(&project, "plain.o", "ratio");
    // The model may not choose it, even where a strategy has it compiled.
    for &strategy in cases(&["es", ""], 1) {
        let mut build = project.nvtune(&compile("mathed.cu", "static.o"));
        if !strategy.is_empty() {
            build.env("NVTUNE_STRATEGY", strategy);
        }
        let ran = succeed(build.env("NVTUNE", "static").env("NVTUNE_CACHE_SIZE", "0"));
        assert!(ran.stderr.contains("nvtune: ratio: block=") && !ran.stderr.contains("math="), "{}", ran.stderr);
        assert!(!ran.stderr.contains("note:"), "{}", ran.stderr);
        assert_eq!(sass(&project, "static.o", "5ratioiPKfPf\n"), baseline);
    }
}

#[test]
fn variable_that_is_not_compared_forbids_math() {
    let project = Project::new(&["mathed.cu"]);
    let source = project.read("mathed.cu").replace("math(ftz, fast_div)", "math(ftz) check(y)");
    let source = source.replace("if (i < n) y[i] = (", "if (i == 0) last = x[0];\n    if (i < n) y[i] = (");
    project.write("mathed.cu", &format!("__device__ float last;\n{source}"));
    let ran = timed(&project, &recorded("math=ftz", Value::Null), &[]);
    assert!(ran.stderr.contains("nvtune: ratio: block=256 (kept: "), "{}", ran.stderr);
    let record = project.read("mathed.tune.json");
    let reason = "`last` is written and not compared, so that nothing bounds the errors of math options";
    assert!(record.contains(reason), "{record}");
}

#[test]
#[ignore = "long: in the full run"]
fn source_is_preprocessed_once_for_all_math_options() {
    let runs = |clause: &str| {
        let project = Project::new(&["mathed.cu"]);
        project.write("mathed.cu", &project.read("mathed.cu").replace("math(ftz, fast_div)", clause));
        project.write("recorded.json", &recorded("block=128", Value::Null));
        let noted = format!("echo \"$*\" >> '{}'\nexec g++ \"$@\"", project.path("log").display());
        let mut arguments = compile("mathed.cu", "mathed.o");
        arguments.push(format!("-ccbin={}", project.script("g++", &noted)));
        succeed(project.nvtune(&arguments).env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"));
        project.read("log").lines().filter(|line| line.contains(" -E ") && line.contains("-D__CUDA_ARCH__=")).count()
    };
    let without = runs("");
    assert!(without > 0, "the compiler was not seen");
    assert_eq!(runs("math(ftz, fast_div, fast_sqrt)"), without);
}

#[test]
fn options_that_the_build_has_are_not_tried() {
    let project = Project::new(&["mathed.cu"]);
    let times = recorded("block=128", Value::Null);
    assert_eq!(timed(&project, &times, &["-ftz=true"]).code, Some(0));
    assert_eq!(tried(&project), [Value::Null, json!(["fast_div"])]);
    assert_eq!(timed(&project, &times, &["-use_fast_math"]).code, Some(0));
    assert_eq!(tried(&project), [Value::Null]);
}

#[test]
#[ignore = "long: in the full run"]
fn fused_operations_can_be_allowed_to_one_kernel() {
    let project = Project::new(&["mathed.cu"]);
    let source = project.read("mathed.cu").replace("math(ftz, fast_div)", "math(fmad) check(y, rtol = 1e-5)");
    project.write("mathed.cu", &source);
    let times = recorded("block=256 math=fmad", Value::Null);
    let ran = timed(&project, &times, &["-fmad=false"]);
    assert!(ran.stderr.starts_with("nvtune: ratio: block=256 math=fmad (1.2"), "{}", ran.stderr);
    assert!(ran.stderr.contains(", results within rtol = 0.00001)"), "{}", ran.stderr);
    let (winner, own) =
        (sass(&project, "mathed.o", "ratioiPKfPf__nvtune_"), sass(&project, "mathed.o", "5ratioiPKfPf\n"));
    assert!(own.contains(" FMUL R"), "nvcc's kernel multiplies and adds: {own}");
    assert!(!winner.contains(" FMUL R"), "{winner}");
    assert_eq!(timed(&project, &times, &[]).code, Some(0));
    assert_eq!(tried(&project), [Value::Null], "nvcc fuses by itself");
}

#[test]
#[ignore = "long: in the full run"]
fn locked_winner_with_math_options_is_built_without_a_gpu() {
    let project = Project::new(&["mathed.cu"]).with_cuda_headers_in_full_run();
    let ran = timed(&project, &recorded("block=256 math=ftz+fast_div", Value::Null), &[]);
    assert!(ran.stderr.starts_with("nvtune: ratio: block=256 math=ftz+fast_div (1.2"), "{}", ran.stderr);
    let object = project.bytes("mathed.o");
    succeed(&mut nvtune(&project, &["lock"]));
    let lock = project.read("nvtune.lock");
    assert!(lock.contains("\"math\": [\"ftz\",\"fast_div\"],\n"), "{lock}");

    let farm = Project::new(&["mathed.cu"]).with_cuda_headers_in_full_run();
    farm.write("nvtune.lock", &lock);
    let ran = succeed(farm.nvtune(&reproducible("mathed.cu", "mathed.o")).env("NVTUNE", "locked"));
    assert!(ran.stderr.contains("math=ftz+fast_div (1.2") && !ran.stderr.contains("warning"), "{}", ran.stderr);
    assert!(farm.bytes("mathed.o") == object, "the object is another one");

    // The code under the options counts, too: this function divides exactly under each.
    let quotient = "(x[i] + 1.0f) / (x[n - 1 - i] * x[i] + 2.0f)";
    let exact = "__fdiv_rn(x[i] + 1.0f, x[n - 1 - i] * x[i] + 2.0f)";
    farm.write("mathed.cu", &farm.read("mathed.cu").replace(quotient, exact));
    let ran = succeed(farm.nvtune(&reproducible("mathed.cu", "mathed.o")).env("NVTUNE", "locked"));
    let stale =
        "its entry in nvtune.lock is stale and not used: another is its code (PTX) under the winner's options; ";
    assert!(ran.stderr.contains(stale), "{}", ran.stderr);
}
