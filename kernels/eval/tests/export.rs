//! `nvtune-eval export`: recorded spaces -> T1 and T4, checked against what the formats ask for.

use super::json_schema::violations;
use super::{Project, TIMES, nvtune_eval, recorded};
use nvtune::record::{RecordedSpace, SPACE_EXTENSION};
use nvtune_eval::export::{problem, results};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const RECORD: &str = "results/h200/saxpy.json.gz";

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

fn t1_violation(value: &Value) -> Option<String> {
    violations(&json(include_str!("t1.schema.json")), value, "t1")
}

fn t4_violation(value: &Value) -> Option<String> {
    violations(&json(include_str!("t4.schema.json")), value, "t4")
}

/// The spaces that are kept with the suite.
fn kept() -> Vec<PathBuf> {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results");
    let folders = std::fs::read_dir(results).expect("readable").map(|entry| entry.expect("an entry").path());
    let files = folders.filter(|path| path.is_dir()).flat_map(|folder| std::fs::read_dir(folder).expect("readable"));
    let paths = files.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.to_string_lossy().ends_with(SPACE_EXTENSION)).collect()
}

fn kept_space(name: &str) -> RecordedSpace {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../results/h200").join(name);
    RecordedSpace::read(&path).unwrap_or_else(|error| panic!("{name} {error}"))
}

/// The result of the configuration with this block and without a register cap.
fn of_block(t4: &Value, block: u32) -> &Value {
    let is_it = |result: &&Value| {
        result["configuration"]["block_size_x"] == block && result["configuration"]["maxrregcount"] == 0
    };
    t4["results"].as_array().expect("a list").iter().find(is_it).expect("it has a result")
}

#[test]
fn kept_spaces_follow_both_schemas() {
    let paths = kept();
    assert!(paths.len() >= 80, "{}", paths.len());
    paths.par_iter().for_each(|path| {
        let space = RecordedSpace::read(path).unwrap_or_else(|error| panic!("{} {error}", path.display()));
        let (t1, t4) = (problem(&space).expect("whole spaces are kept"), results(&space));
        assert_eq!((t1_violation(&t1), t4_violation(&t4)), (None, None), "{}", path.display());
        assert_eq!(t4["results"].as_array().map(Vec::len), Some(space.configurations.len()), "{}", path.display());
    });
}

#[test]
fn files_are_written_from_a_record_without_gpu() {
    let (project, space) = recorded(&[]);
    std::fs::remove_file(project.path("times.json")).expect("removed");
    let ran = nvtune_eval(&project, &["export", RECORD, "--t1", "t1.json", "--t4", "t4.json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let (t1, t4) = (json(&project.read("t1.json")), json(&project.read("t4.json")));
    assert_eq!((&t1, &t4), (&problem(&space).expect("it is whole"), &results(&space)));
    assert_eq!((t1_violation(&t1), t4_violation(&t4)), (None, None));
}

#[test]
fn times_are_milliseconds_and_shared_by_equal_code() {
    let (_project, space) = recorded(&[]);
    let t4 = results(&space);
    let measured = |result: &Value, name: &str| {
        let all = result["measurements"].as_array().expect("a list");
        all.iter().find(|one| one["name"] == name).map(|one| one["value"].as_f64().expect("a number"))
    };
    let fast = of_block(&t4, 64);
    let time = measured(fast, "time").expect("it was timed");
    assert!((time - 0.08).abs() < 0.001, "{time}");
    let runtimes = fast["times"]["runtimes"].as_array().expect("a list");
    assert!(runtimes.len() == 2 && runtimes.iter().all(|run| (run.as_f64().unwrap() - 0.08).abs() < 0.001), "{fast}");
    let all = t4["results"].as_array().expect("a list");
    assert_eq!(all.len(), 192);
    let same: Vec<&Value> = all.iter().filter(|one| measured(one, "point") == measured(fast, "point")).collect();
    assert_eq!(same.len(), 12, "one for each register cap");
    assert!(same.iter().all(|one| measured(one, "time") == Some(time)));
}

#[test]
fn failures_have_the_words_of_the_format() {
    let project = Project::new();
    let refused = r#"{"label": "block=128", "refused": {"hung": {"limit_s": 5.0}}},
        {"label": "block=320", "refused": {"faulted": {"error": "CUDA_ERROR_ILLEGAL_ADDRESS"}}},"#;
    project.write("times.json", &TIMES.replace(r#""entries": ["#, &format!(r#""entries": [{refused}"#)));
    super::record(&project, &[]);
    let mut space = super::space(&project);
    let place = |space: &RecordedSpace, block: u32| {
        let mut all = space.configurations.iter();
        all.position(|found| found.configuration.block == [block, 1, 1] && found.check.is_some()).expect("a point")
    };
    let (compile, launch, open) = (place(&space, 384), place(&space, 448), place(&space, 576));
    for index in [compile, launch, open] {
        (space.configurations[index].check, space.configurations[index].time) = (None, None);
    }
    space.configurations[compile].variant = None;
    space.configurations[compile].infeasible = Some("ptxas refused it".to_owned());
    space.configurations[launch].infeasible = Some("no block of it fits".to_owned());
    let t4 = results(&space);
    assert_eq!(t4_violation(&t4), None);
    for (block, word, correctness) in [
        (64, "correct", 1),
        (192, "correctness", 0),
        (128, "timeout", 0),
        (320, "runtime", 0),
        (384, "compile", 0),
        (448, "runtime", 0),
    ] {
        let result = of_block(&t4, block);
        assert_eq!((&result["invalidity"], &result["correctness"]), (&json!(word), &json!(correctness)), "{block}");
        assert_eq!(result["times"]["runtimes"] == json!([]), word != "correct", "{block}");
    }
    let blocks = t4["results"].as_array().expect("a list").iter();
    let unmeasured = blocks.filter(|result| result["configuration"]["block_size_x"] == 576).count();
    assert_eq!(unmeasured, 0, "what was not run has no result");
}

#[test]
fn problem_has_parameters_conditions_launch_and_arguments() {
    let t1 = problem(&kept_space("matmul_tiled.json.gz")).expect("it is whole");
    let space = &t1["ConfigurationSpace"];
    let parameters = space["TuningParameters"].as_array().expect("a list").iter();
    let values: BTreeMap<&str, &str> =
        parameters.filter_map(|one| Some((one["Name"].as_str()?, one["Values"].as_str()?))).collect();
    assert_eq!(values["block_size_x"], "[8,16,32]");
    assert_eq!(values["TILE"], "[8,16,32]");
    let condition = &space["Conditions"][0];
    assert_eq!(condition["Parameters"], json!(["block_size_x", "block_size_y", "TILE", "WORK"]));
    let expression = condition["Expression"].as_str().expect("words");
    assert!(expression.starts_with("(block_size_x, block_size_y, TILE, WORK,) in {(8, 1, 8, 8,), "), "{expression}");
    assert_eq!(expression.matches("(").count() - 1, 12, "{expression}");
    let kernel = &t1["KernelSpecification"];
    let blocks = "(2048 + block_size_x - 1) // (block_size_x)";
    assert_eq!(kernel["GlobalSize"], json!({ "X": blocks, "Y": blocks, "Z": "1" }));
    assert_eq!(kernel["LocalSize"], json!({ "X": "block_size_x", "Y": "block_size_y", "Z": "1" }));
    let arguments = kernel["Arguments"].as_array().expect("a list");
    assert_eq!((&arguments[0]["Type"], &arguments[0]["FillValue"]), (&json!("int32"), &json!(2048)));
    assert_eq!((&arguments[3]["Name"], &arguments[3]["AccessType"]), (&json!("c"), &json!("WriteOnly")));
}

#[test]
fn free_parameters_need_no_condition() {
    let t1 = problem(&kept_space("nbody.json.gz")).expect("it is whole");
    assert_eq!(t1["ConfigurationSpace"]["Conditions"], json!([]));
}

#[test]
fn grid_without_a_rule_is_a_table() {
    let t1 = problem(&kept_space("spmv.json.gz")).expect("it is whole");
    let grid = t1["KernelSpecification"]["GlobalSize"]["X"].as_str().expect("words");
    assert!(grid.starts_with("{(64, 1,): 16384, (64, 2,): 32768, "), "{grid}");
    assert!(grid.ends_with("}[(block_size_x, LANES,)]"), "{grid}");
}

#[test]
fn macro_keeps_its_name_where_a_parameter_has_it() {
    let (_project, mut space) = recorded(&[]);
    for found in &mut space.configurations {
        found.configuration.macros = BTreeMap::from([("block_size_x".to_owned(), 7)]);
    }
    let t4 = results(&space);
    let configuration = &t4["results"][0]["configuration"];
    assert_eq!(configuration["block_size_x"], 7);
    assert_eq!(configuration["nvtune_block_size_x"], space.configurations[0].configuration.block[0]);
}

#[test]
fn sample_has_results_but_is_no_problem() {
    let (project, _) = recorded(&["--most", "8"]);
    let ran = nvtune_eval(&project, &["export", RECORD, "--t1", "t1.json", "--t4", "t4.json"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("has a sample of 8 of 16 points: T1 describes whole spaces"), "{}", ran.stderr);
    assert!(!project.path("t1.json").exists() && !project.path("t4.json").exists(), "nothing was written");
    let ran = nvtune_eval(&project, &["export", RECORD, "--t4", "t4.json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(json(&project.read("t4.json"))["results"].as_array().map(Vec::len), Some(8));
}

#[test]
fn export_says_what_is_wrong() {
    let (project, _) = recorded(&["--repeat", "0"]);
    for (words, code, message) in [
        (&["export", RECORD][..], 2, "--t1"),
        (&["export", "none.json.gz", "--t4", "t4.json"], 1, "'none.json.gz' cannot be read"),
        (&["export", RECORD, "--t4", "none/t4.json"], 1, "cannot write 'none/t4.json'"),
    ] {
        let ran = nvtune_eval(&project, words);
        assert!(ran.code == Some(code) && ran.stderr.contains(message), "{words:?}: {}", ran.stderr);
    }
}
