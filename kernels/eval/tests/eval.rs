//! `nvtune-eval record`, `judge` and `export`, with a measuring process that answers from recorded timings.

#[allow(dead_code, reason = "the tests of nvtune use the rest of it")]
#[path = "../../../tests/support/toolkit.rs"]
mod toolkit;

#[path = "../../../tests/support/json_schema.rs"]
mod json_schema;

mod export;

use nvtune::model::CONSTANTS;
use nvtune::record::RecordedSpace;
use nvtune::settings::Strategy;
use nvtune_eval::{constants, judge};
use std::path::{Path, PathBuf};
use std::process::Command;
use toolkit::nvcc;

/// A folder with the source `saxpy.cu` and recorded times.
struct Project {
    folder: tempfile::TempDir,
}

/// What a command did.
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Project {
    fn new() -> Self {
        let project = Self { folder: tempfile::tempdir().expect("a folder") };
        let saxpy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/end_to_end/sources/saxpy.cu");
        std::fs::copy(saxpy, project.path("saxpy.cu")).expect("copied");
        project.write("times.json", TIMES);
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("readable")
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }
}

fn run(command: &mut Command) -> Ran {
    let output = command.output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// The best of the space is a block that is not the default; one block computes other results.
const TIMES: &str = r#"{
    "device": {"name": "NVIDIA H200", "compute_capability": 90},
    "entries": [
        {"label": "block=64", "time_us": 80.0, "spread": 0.01},
        {"label": "block=512", "time_us": 90.0, "spread": 0.01},
        {"label": "block=192", "refused": {"stray": {"buffer": "y"}}},
        {"label": "block=1024", "time_us": 3000.0},
        {"time_us": 100.0, "spread": 0.01}
    ]
}"#;

fn nvtune_eval(project: &Project, words: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nvtune-eval"));
    command.args(words).current_dir(project.path("")).env("NVTUNE_NVCC", nvcc()).env("NVTUNE_REPLAY", "times.json");
    run(command.env_remove("NVTUNE").env_remove("NVTUNE_RUNNER").env_remove("NVTUNE_STRICT"))
}

fn record(project: &Project, options: &[&str]) -> Ran {
    let ran = nvtune_eval(project, &[&["record", "saxpy.cu", "--results", "results"], options].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran
}

fn space(project: &Project) -> RecordedSpace {
    RecordedSpace::read(&project.path("results/h200/saxpy.json.gz")).unwrap_or_else(|error| panic!("it {error}"))
}

/// Records the space of saxpy.cu.
fn recorded(options: &[&str]) -> (Project, RecordedSpace) {
    let project = Project::new();
    record(&project, options);
    let space = space(&project);
    (project, space)
}

#[test]
fn the_whole_space_is_recorded_with_what_a_model_looks_at() {
    let (_project, space) = recorded(&[]);
    assert_eq!((space.size.configurations, space.size.points, space.size.sample), (192, 16, None));
    assert_eq!(space.options, ["-O3", "-arch=sm_90"]);
    assert_eq!((space.problems(), space.code_problems()), (vec![], vec![]));
    assert!(space.is_complete());
    let of = |block: u32| {
        let mut points = space.points().map(|index| &space.configurations[index]);
        points.find(|found| found.configuration.block == [block, 1, 1]).expect("it is a point")
    };
    let time = of(64).time.expect("it was timed");
    assert!((time.median_us - 80.0).abs() < 0.8 && time.samples == 7 && time.spread > 0.0, "{time:?}");
    assert!(time.again_us.is_some_and(|again| (again - 80.0).abs() < 0.8), "{time:?}");
    assert_eq!(of(1024).time.map(|time| time.samples), Some(1), "far slower than the best");
    let refused = of(192);
    assert!(refused.time.is_none() && refused.check.as_ref().is_some_and(|check| check.contains("writes to `y`")));
    let again = space.repeatability.expect("200 points would have been timed again");
    assert!(again.points == 15 && again.median < 0.02, "{again:?}");
    let ptx = &space.parts().expect("it unpacks").ptx[0];
    assert!(ptx.as_ref().is_some_and(|ptx| ptx.contains(&space.sources[0].symbol)));
}

#[test]
fn what_is_recorded_is_not_timed_again_and_what_is_missing_is_added() {
    let (project, mut space) = recorded(&["--repeat", "0"]);
    assert_eq!(space.repeatability, None);
    project.write("times.json", &TIMES.replace("80.0", "40.0"));
    assert!(record(&project, &[]).stderr.contains("recorded already"));
    // As if the budget had ended before one of the points.
    let missing = space.points().last().expect("there are points");
    (space.configurations[missing].check, space.configurations[missing].time) = (None, None);
    space.write(&project.path("results/h200/saxpy.json.gz")).expect("written");
    record(&project, &[]);
    let time = |space: &RecordedSpace, block: u32| {
        let found =
            space.configurations.iter().find(|found| found.configuration.block[0] == block && found.time.is_some());
        found.and_then(|found| found.time).expect("it was timed").median_us
    };
    let added = self::space(&project);
    assert!(added.is_complete());
    assert!(time(&added, 64) > 70.0, "known times are kept");
    // With other options, for another source or where it is asked for, all of it is timed anew.
    record(&project, &["--", "-O2", "-arch=sm_90"]);
    assert!(time(&self::space(&project), 64) < 41.0);
    project.write("times.json", TIMES);
    project.write("saxpy.cu", &format!("{}// more\n", project.read("saxpy.cu")));
    record(&project, &["--", "-O2", "-arch=sm_90"]);
    assert!(time(&self::space(&project), 64) > 70.0);
    project.write("times.json", &TIMES.replace("80.0", "40.0"));
    record(&project, &["--force", "--", "-O2", "-arch=sm_90"]);
    assert!(time(&self::space(&project), 64) < 41.0);
}

#[test]
fn of_a_large_space_a_sample_is_recorded() {
    let (_project, space) = recorded(&["--most", "8"]);
    assert_eq!((space.size.points, space.size.sample.map(|sample| sample.points)), (16, Some(8)));
    assert_eq!((space.points().count(), space.configurations.len()), (8, 8));
    assert_eq!(space.configurations[space.baseline].configuration.block, [256, 1, 1]);
    assert_eq!((space.problems(), space.code_problems()), (vec![], vec![]));
}

#[test]
fn a_recorded_space_is_scored_as_the_compile_scored_it() {
    let (project, space) = recorded(&[]);
    // The workspace's nvtune is built beside this program.
    let nvtune = Path::new(env!("CARGO_BIN_EXE_nvtune-eval")).with_file_name("nvtune");
    let mut build = Command::new(nvtune);
    build.args(["nvcc", "-O3", "-arch=sm_90", "-c", "saxpy.cu", "-o", "saxpy.o"]).current_dir(project.path(""));
    let built = run(build.env("NVTUNE_NVCC", nvcc()).env("NVTUNE", "static").env_remove("NVTUNE_STRICT"));
    assert_eq!(built.code, Some(0), "{}", built.stderr);
    let text = std::fs::read(project.path("saxpy.tune.json")).expect("a record");
    let record: serde_json::Value = serde_json::from_slice(&text).expect("the record is JSON");
    let scored = nvtune::tune::score(nvtune::tune::recorded_scoring_input(&space).expect("laid out"))
        .unwrap_or_else(|none| panic!("{}", none.reason));
    let rows = record["kernels"][0]["configurations"].as_array().expect("a list");
    assert_eq!(rows.len(), scored.scores.len());
    for (row, score) in rows.iter().zip(&scored.scores) {
        let cycles = score.as_ref().map(|score| score.c);
        assert_eq!(row["score"]["c"].as_f64(), cycles, "{row}");
    }
}

#[test]
fn strategies_are_judged_by_the_recorded_times() {
    let (project, space) = recorded(&[]);
    let judged = judge::judge(&space).unwrap_or_else(|error| panic!("it {error}"));
    let es = judged.found.iter().find(|found| found.strategy == Strategy::Es).expect("every strategy is judged");
    assert_eq!((es.timed, judged.points), (16, 16));
    assert!(es.regret < 0.01 && (1.2..1.3).contains(&es.speed), "{es:?}");
    for found in &judged.found {
        assert!(found.timed <= 16 && found.regret >= 0.0 && found.speed >= 0.99, "{found:?}");
    }
    let ran = nvtune_eval(&project, &["judge", "results"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("| saxpy "), "{}", ran.stdout);
    assert!(ran.stdout.starts_with(&format!("## {}\n", judged.device)), "{}", ran.stdout);
    for word in ["posf", "PO set", "predicted time", "within 1%"] {
        assert!(ran.stdout.contains(word), "{word}: {}", ran.stdout);
    }
    // Another GPU has tables of its own.
    let mut other = space;
    other.device.name = "NVIDIA Z9".to_owned();
    std::fs::create_dir(project.path("results/z9")).expect("a folder");
    other.write(&project.path("results/z9/saxpy.json.gz")).expect("written");
    let both = nvtune_eval(&project, &["judge", "results"]).stdout;
    let second = ran.stdout.replace(&format!("## {}\n", judged.device), "## NVIDIA Z9\n");
    assert_eq!(both, format!("{}\n{second}", ran.stdout));
}

#[test]
fn constants_that_no_prediction_depends_on_are_told_from_those_that_count() {
    let (project, space) = recorded(&[]);
    let ablated = constants::ablate(&space).unwrap_or_else(|error| panic!("it {error}"));
    let without = |name: &str| {
        let place = CONSTANTS.iter().position(|constant| constant.name == name).expect("a constant");
        ablated.without[place]
    };
    // Every launch has its overhead; saxpy stores whole sectors.
    assert!(without("launch_us").is_some() && without("split_store_cycles").is_none());
    let ran = nvtune_eval(&project, &["constants", "results"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let row = |name: &str| ran.stdout.lines().find(|line| line.starts_with(&format!("| `{name}`"))).expect("its row");
    assert!(row("split_store_cycles").contains("not exercised"), "{}", ran.stdout);
    assert!(!row("launch_us").contains("not exercised"), "{}", ran.stdout);
}

#[test]
fn what_is_no_record_is_refused_with_the_reason() {
    let (project, space) = recorded(&[]);
    let path = project.path("results/h200/saxpy.json.gz");
    let refused = |space: &RecordedSpace, reason: &str| {
        space.write(&path).expect("written");
        let error = RecordedSpace::read(&path).expect_err(reason).to_string();
        assert!(error.contains(reason), "{error}");
        let ran = nvtune_eval(&project, &["judge", "results"]);
        assert!(ran.code == Some(1) && ran.stderr.contains(reason), "{}", ran.stderr);
    };
    refused(&RecordedSpace { format: 2, ..space.clone() }, "is of format 2");
    refused(&RecordedSpace { baseline: 1000, ..space.clone() }, "there is no baseline");
    refused(&RecordedSpace { source_digest: String::new(), ..space.clone() }, "no SHA-256");
    let mut other = space.clone();
    other.configurations[space.baseline].check = None;
    refused(&other, "its time and its check disagree");
    let mut other = space.clone();
    other.configurations[3].source = 9;
    refused(&other, "configuration 3 (");
    std::fs::write(&path, "{}").expect("written");
    assert!(nvtune_eval(&project, &["judge", "results"]).stderr.contains("cannot be read"), "it is no gzip");

    let mut other = space.clone();
    other.variants[0].variant.digest = "0".to_owned();
    assert_eq!(other.code_problems(), ["variant 0 is other code than its digest says"]);
    other.sources[0].bytes += 1;
    assert_eq!(other.code_problems(), ["its `code` is broken: it is too short"]);
}

#[test]
fn what_cannot_be_recorded_is_named() {
    let project = Project::new();
    project.write("times.json", r#"{"start": "no-device", "entries": []}"#);
    let none = nvtune_eval(&project, &["record", "saxpy.cu"]);
    assert!(none.code == Some(1) && none.stderr.contains("no GPU to time on"), "{}", none.stderr);
    project.write("times.json", TIMES);
    project.write("plain.cu", "__global__ void k() {}\n");
    project.write("bad.cu", "//@tune blok(64)\n__global__ void k() {}\n");
    project.write("args.cu", "//@tune threads(64) block(64)\n__global__ void k() {}\n");
    for (source, message) in [
        ("plain.cu", "plain.cu: not recorded: it has no tuning comment"),
        ("bad.cu", "bad.cu: not recorded: its tuning comments cannot be read"),
        ("args.cu", "k: not recorded: its comment has no `args` clause"),
        ("none.cu", "none.cu: not recorded: No such file or directory"),
    ] {
        let ran = nvtune_eval(&project, &["record", source, "--results", "results"]);
        assert!(ran.code == Some(1) && ran.stderr.contains(message), "{source}: {}", ran.stderr);
    }
    let usage = nvtune_eval(&project, &["record", "saxpy.cu", "--budget", "0"]);
    assert!(usage.code == Some(2) && usage.stderr.contains("above 0"), "{}", usage.stderr);
}
