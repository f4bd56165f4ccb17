//! Cases: sources of `cases/`, each with the builds that are made of it and what these must say.
//!
//! A case is one test, named after its file. Behind the source stand directives, in comments that begin with `//#`.
//! A `build` directive begins a build; the directives up to the next one belong to it.
//!
//! | directive | meaning |
//! | --- | --- |
//! | `//# build LABEL` | builds the source; a failure names the label |
//! | `//# args WORDS` | arguments of nvcc besides the source; `-O3 -arch=sm_90 -cubin` without it |
//! | `//# headers cuda` | builds with CUDA's own headers, not the small ones |
//! | `//# env NAME=VALUE` | an environment variable; `NVTUNE=static` is set without it |
//! | `//# times ENTRIES` | measures, with these recorded times (JSON, without the brackets of a list) |
//! | `//# recording FIELDS` | more of that recording (JSON, `"uncompared": true`) |
//! | `//# replace FROM => TO` | replaces the first FROM of the source in this build; `\n` is a line break |
//! | `//# exit CODE` | the exit code; 0 without it |
//! | `//# header TEXT` | a text of the header that is written |
//! | `//# record POINTER VALUE` | a fact of the record: JSON pointer, JSON value; `null` is none |
//! | `//# files NAMES` | all files of the folder after the build, sorted, without `recorded.json` |
//! | `//#\| TEXT` | a line of standard error, in order; `*` stands for any text |
//!
//! All of standard error is compared. `UPDATE_EXPECT=1` rewrites the `exit` and `|` lines of a file: lines that still
//! match stay as they are, and a result that the model chose is shortened to `nvtune: NAME: block=*`.
//!
//! `cases/include/` is on the include path. Builds of one case share a folder and its cache. The quick run makes the first.

use super::project::{Project, Ran, run};
use crate::support::full::cases;
use crate::support::toolkit::{Headers, set_headers};
use std::path::{Path, PathBuf};

const DEFAULT_ARGUMENTS: &str = "-O3 -arch=sm_90 -cubin";

/// Declares a test for each case, and one that no file is left out.
macro_rules! cases {
    ($($name:ident,)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*

        #[test]
        fn every_case_file_is_a_test() {
            let declared = [$(concat!(stringify!($name), ".cu")),*];
            let entries = std::fs::read_dir(folder()).expect("the folder of cases").flatten();
            let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
            let undeclared: Vec<String> =
                names.filter(|name| name.ends_with(".cu") && !declared.contains(&name.as_str())).collect();
            assert!(undeclared.is_empty(), "list these in tests/end_to_end/cases.rs: {undeclared:?}");
        }
    };
}

cases! {
    accesses_beyond_buffers,
    array_field_with_too_many_values,
    baseline_without_compared_results,
    block_that_the_code_fixes,
    buffer_of_structures,
    caps_of_launch_bounds_and_options,
    constants_as_template_arguments,
    contents_of_variables,
    default_register_cap,
    elements_of_arrays,
    error_of_all_instances,
    field_that_points_to_structures,
    fields_of_structures,
    functions_called_by_address,
    idle_workload,
    instruction_that_ptxas_refuses,
    kernel_of_two_comments,
    kernel_that_launches_kernels,
    macro_that_clashes_with_a_name,
    macros_that_nvtune_does_not_set,
    macros_varied_in_vain,
    malformed_clause,
    missing_instance_of_values,
    missing_template_instance,
    misspelled_marker_alone,
    order_within_a_block,
    overloaded_templates,
    parameters_under_conditionals,
    parameters_without_value,
    registers_of_a_pool,
    remedies_for_lambdas,
    search_without_hits,
    silent_mistakes,
    space_of_too_many_configurations,
    structures_of_unnamed_namespaces,
    template_arguments_that_no_expression_uses,
    threads_rounded_down,
    types_that_depend_on_template_arguments,
    values_of_types_of_the_source,
    variable_that_is_written,
    vectors_and_pointers_to_arrays,
    work_left_undone,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/cases")
}

/// A build of a case, by its directives.
#[derive(Default)]
struct Build<'a> {
    label: &'a str,
    arguments: Option<&'a str>,
    environment: Vec<(&'a str, &'a str)>,
    needs_cuda_headers: bool,
    times: Option<&'a str>,
    recording: Option<&'a str>,
    replacements: Vec<(String, String)>,
    exit: i32,
    header: Vec<&'a str>,
    record: Vec<(&'a str, serde_json::Value)>,
    files: Option<Vec<&'a str>>,
    messages: Vec<&'a str>,
    /// The directives that are written by hand.
    kept: Vec<&'a str>,
}

/// Splits a case into its source and its builds.
fn parse(text: &str) -> (&str, Vec<Build<'_>>) {
    let end = text.find("//# build ").expect("a case has a `//# build`");
    let (source, directives) = text.split_at(end);
    let mut builds: Vec<Build<'_>> = Vec::new();
    for line in directives.lines().filter(|line| !line.is_empty()) {
        if let Some(label) = line.strip_prefix("//# build ") {
            builds.push(Build { label, kept: vec![line], ..Build::default() });
            continue;
        }
        let build = builds.last_mut().expect("the first directive is a build");
        if let Some(message) = line.strip_prefix("//#|") {
            build.messages.push(message.strip_prefix(' ').unwrap_or(message));
            continue;
        }
        let directive = line.strip_prefix("//# ").unwrap_or_else(|| panic!("not a directive: {line}"));
        let (name, value) = directive.split_once(' ').unwrap_or_else(|| panic!("no value: {line}"));
        let pair = |separator| value.split_once(separator).unwrap_or_else(|| panic!("no `{separator}`: {line}"));
        match name {
            "args" => build.arguments = Some(value),
            "env" => build.environment.push(pair("=")),
            "headers" => build.needs_cuda_headers = value == "cuda",
            "times" => build.times = Some(value),
            "recording" => build.recording = Some(value),
            "replace" => {
                let (from, to) = pair(" =>");
                let text = |text: &str| text.replace("\\n", "\n");
                build.replacements.push((text(from), text(to.strip_prefix(' ').unwrap_or(to))));
            }
            "header" => build.header.push(value),
            "record" => {
                let (pointer, value) = pair(" ");
                build.record.push((pointer, serde_json::from_str(value).expect("a JSON value")));
            }
            "files" => build.files = Some(value.split(' ').collect()),
            "exit" => {
                build.exit = value.parse().expect("an exit code");
                continue;
            }
            _ => panic!("unknown directive: {line}"),
        }
        build.kept.push(line);
    }
    (source, builds)
}

/// Most builds of a case in the quick run.
const QUICK: usize = 1;

/// Makes the builds of a case and compares what they give, or rewrites what is expected of them.
fn check(name: &str) {
    let path = folder().join(format!("{name}.cu"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (source, builds) = parse(&text);
    let project = Project::new(&[]);
    let is_update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut failures = String::new();
    let mut rewritten = source.to_owned();
    for build in if is_update { &builds } else { cases(&builds, builds.len().min(QUICK)) } {
        let ran = made(&project, name, source, build);
        let mut problems = missing_facts(&project, name, build);
        if is_update {
            rewritten += &expected(build, &ran);
        } else {
            problems += &differences(build, &ran);
        }
        if !problems.is_empty() {
            failures += &format!("{name}, build {}:\n{problems}{}\n", build.label, ran.stderr);
        }
    }
    if is_update {
        std::fs::write(&path, rewritten.trim_end().to_owned() + "\n").expect("rewritten");
    }
    assert!(failures.is_empty(), "{failures}");
}

fn made(project: &Project, name: &str, source: &str, build: &Build<'_>) -> Ran {
    let mut text = source.to_owned();
    for (from, to) in &build.replacements {
        assert!(text.contains(from), "{name}, build {}: the source has no `{from}`", build.label);
        text = text.replacen(from, to, 1);
    }
    let file = format!("{name}.cu");
    project.write(&file, &text);
    let include = format!("-I{}", folder().join("include").display());
    let mut arguments: Vec<&str> = build.arguments.unwrap_or(DEFAULT_ARGUMENTS).split_whitespace().collect();
    arguments.extend([include.as_str(), &file]);
    let mut command = project.nvtune(&arguments);
    if build.needs_cuda_headers {
        set_headers(&mut command, Headers::Cuda);
    }
    if let Some(entries) = build.times {
        let device = r#"{"name": "NVIDIA H200", "compute_capability": 90}"#;
        let more = build.recording.map(|fields| format!(", {fields}")).unwrap_or_default();
        project.write("recorded.json", &format!(r#"{{"device": {device}, "entries": [{entries}]{more}}}"#));
        command.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json");
    }
    command.envs(build.environment.iter().copied());
    run(&mut command)
}

/// Says how the exit code and the messages differ from the directives.
fn differences(build: &Build<'_>, ran: &Ran) -> String {
    let mut problems = String::new();
    if ran.code != Some(build.exit) {
        problems += &format!("exit code {:?}, expected {}\n", ran.code, build.exit);
    }
    let lines: Vec<&str> = ran.stderr.lines().collect();
    for at in 0..lines.len().max(build.messages.len()) {
        match (lines.get(at), build.messages.get(at)) {
            (Some(line), Some(pattern)) if matches(pattern, line) => (),
            (line, pattern) => problems += &format!("line {}: {line:?}, expected {pattern:?}\n", at + 1),
        }
    }
    problems
}

/// Says which directives about header, record and files do not hold.
fn missing_facts(project: &Project, name: &str, build: &Build<'_>) -> String {
    let mut problems = String::new();
    if let Some(expected) = &build.files {
        let mut files = project.files();
        files.retain(|file| file != "recorded.json");
        if files != *expected {
            problems += &format!("the folder has {files:?}, expected {expected:?}\n");
        }
    }
    if !build.header.is_empty() {
        let header = project.read(&format!("{name}.tune.h"));
        for text in build.header.iter().filter(|text| !header.contains(**text)) {
            problems += &format!("the header lacks `{text}`\n");
        }
    }
    for (pointer, value) in &build.record {
        let record = project.record(&format!("{name}.tune.json"));
        let recorded = record.pointer(pointer).unwrap_or(&serde_json::Value::Null);
        if recorded != value {
            problems += &format!("the record has {recorded} at {pointer}, expected {value}\n");
        }
    }
    problems
}

/// Returns whether a line matches a pattern, of which each `*` stands for any text.
fn matches(pattern: &str, line: &str) -> bool {
    matches_text(pattern, without_choice(line))
}

/// Returns the line of a kernel without the code of a kept baseline: what the model chose is not compared.
fn without_choice(line: &str) -> &str {
    let code = line.strip_prefix("nvtune: ").filter(|result| result.contains(" (kept: "));
    code.and_then(|_| line.rsplit_once(" [N")).map_or(line, |(result, _)| result)
}

fn matches_text(pattern: &str, line: &str) -> bool {
    let (first, rest) = match pattern.split_once('*') {
        None => return pattern == line,
        Some(parts) => parts,
    };
    let Some(line) = line.strip_prefix(first) else { return false };
    (0..=line.len()).any(|at| line.is_char_boundary(at) && matches_text(rest, &line[at..]))
}

/// The text of a build's directives with what the build gave.
fn expected(build: &Build<'_>, ran: &Ran) -> String {
    let mut text: String = build.kept.iter().map(|line| format!("{line}\n")).collect();
    let code = ran.code.unwrap_or(-1);
    if code != 0 {
        text += &format!("//# exit {code}\n");
    }
    for (at, line) in ran.stderr.lines().enumerate() {
        let kept = build.messages.get(at).filter(|pattern| matches(pattern, line));
        let line = kept.map_or_else(|| shortened(line), |pattern| (*pattern).to_owned());
        text += if line.is_empty() { "//#|" } else { "//#| " };
        text += &line;
        text.push('\n');
    }
    text + "\n"
}

/// A line without the time that tuning took and without what the model chose.
fn shortened(line: &str) -> String {
    let Some(result) = without_choice(line).strip_prefix("nvtune: ") else { return line.to_owned() };
    let Some((name, choice)) = result.split_once(": block=") else { return line.to_owned() };
    match choice.split_once(" over the baseline, measured") {
        Some((choice, _)) => format!("nvtune: {name}: block={choice} over the baseline, measured*"),
        None if choice.ends_with("; from the cache") => format!("nvtune: {name}: block=*; from the cache"),
        None => format!("nvtune: {name}: block=*"),
    }
}
