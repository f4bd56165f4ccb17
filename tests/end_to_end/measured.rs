//! Decisions by timing, with a measuring process that answers from recorded timings: all of it is real but the driver.

use super::project::{CAPS_WIN, Project, Ran, compile, run, succeed};
use crate::support::full::cases;
use std::process::Command;

/// Writes recorded times of a device of compute capability 9.0.
fn record(project: &Project, entries: &str) {
    project.write(
        "recorded.json",
        &format!(r#"{{"device": {{"name": "NVIDIA H200", "compute_capability": 90}}, "entries": [{entries}]}}"#),
    );
}

/// Tunes `source` with these recorded entries for a device of compute capability 9.0.
fn tuned(project: &Project, source: &str, entries: &str) -> Ran {
    record(project, entries);
    let object = source.replace(".cu", ".o");
    run(project.nvtune(&compile(source, &object)).env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"))
}

/// The same for `saxpy.cu` to a cubin, half the work: its launches follow the header.
fn tuned_saxpy(project: &Project, entries: &str) -> Ran {
    record(project, entries);
    run(saxpy_cubin(project).env("NVTUNE_REPLAY", "recorded.json"))
}

/// A measured build of `saxpy.cu` to a cubin.
fn saxpy_cubin(project: &Project) -> Command {
    let source = project.read("saxpy.cu");
    if !source.contains("launch(header)") {
        project.write("saxpy.cu", &source.replacen("//@tune", "//@tune launch(header)", 1));
    }
    let mut build = project.nvtune(&["-arch=sm_90", "-cubin", "saxpy.cu"]);
    build.env("NVTUNE", "measure");
    build
}

/// Like [`tuned`], where nothing is to be warned of; the header must have these lines.
fn tuned_to(project: &Project, source: &str, entries: &str, lines: &[&str]) {
    let ran = tuned(project, source, entries);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let header = project.read(&source.replace(".cu", ".tune.h"));
    for line in lines {
        assert!(header.contains(line), "{line}: {header}");
    }
}

#[test]
fn fastest_candidate_wins_and_is_recorded_as_measured() {
    let project = Project::new(&["saxpy.cu"]);
    let ran = tuned_saxpy(
        &project,
        r#"{"label": "block=512", "time_us": 8.0, "spread": 0.02}, {"time_us": 10.0, "spread": 0.02}"#,
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("nvtune: saxpy: block=512 (1.2"), "{}", ran.stderr);
    let header = project.read("saxpy.tune.h");
    for line in [
        "#define SAXPY_BLOCK_X 512",
        "#define SAXPY_PROVENANCE \"measured\"",
        "#define SAXPY_GPU \"NVIDIA H200, sm_90\"",
        "static dim3 grid(int n)",
    ] {
        assert!(header.contains(line), "{line}: {header}");
    }
    let record = project.record("saxpy.tune.json");
    let kernel = &record["kernels"][0];
    assert_eq!(kernel["provenance"], "measured");
    let winner = kernel["winner"].as_u64().expect("an index") as usize;
    let timing = &kernel["configurations"][winner]["timing"];
    let paired = timing["paired_us"].as_f64().expect("the winner met the baseline in paired rounds");
    assert!((7.8..8.2).contains(&paired), "{timing}");
    let timed = kernel["configurations"].as_array().expect("a list").iter().filter(|row| row["timing"].is_object());
    assert!(timed.count() as u64 >= kernel["timed"].as_u64().expect("a count"));
}

#[test]
fn candidate_that_is_slower_with_warm_caches_does_not_win() {
    // The time with warm caches of the fastest, whose gain is 2.5%, and of the default: why it is refused.
    for (fastest, warm, reason) in [
        (97.5, [60.0, 50.0], "with warm caches it takes 1.20 times as long as the baseline"),
        (
            97.5,
            [50.0, 49.6],
            "with warm caches it takes 1.008 times as long as the baseline, too much for a gain of 2.6%",
        ),
    ] {
        let project = Project::new(&["saxpy.cu"]);
        let [its, default] = warm;
        let recorded = format!(
            r#"{{"label": "block=512", "time_us": {fastest}, "warm_us": {its}}},
            {{"label": "block=64", "time_us": 98.5, "warm_us": 48.0}},
            {{"time_us": 100.0, "warm_us": {default}}}"#
        );
        let ran = tuned_saxpy(&project, &recorded);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("nvtune: saxpy: block=64 (1.0"), "{}", ran.stderr);
        let record = project.record("saxpy.tune.json");
        let kernel = &record["kernels"][0];
        let notes = kernel["notes"].as_array().expect("a list");
        let note = format!("the fastest is refused: block=512: {reason} [N0037]");
        assert!(notes.iter().any(|known| *known == note), "{notes:?}");
        let winner = kernel["winner"].as_u64().expect("an index") as usize;
        let warm = kernel["configurations"][winner]["timing"]["warm_us"].as_f64();
        let warm = warm.expect("it was timed with warm caches");
        assert!((47.0..49.0).contains(&warm), "{warm}");
    }
}

#[test]
fn buffers_larger_than_free_gpu_memory_leave_the_choice_to_the_model() {
    let project = Project::new(&["saxpy.cu"]);
    let recorded = r#"{"device": {"name": "NVIDIA H200", "compute_capability": 90, "free_bytes": 2000000},
        "entries": [{"time_us": 10.0}]}"#;
    project.write("recorded.json", recorded);
    let ran = run(saxpy_cubin(&project).env("NVTUNE_REPLAY", "recorded.json"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let warning =
        "warning: buffers of 8 MiB exceed the 1 free MiB of NVIDIA H200: use smaller ones; `saxpy` is not timed";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    assert!(!project.read("saxpy.tune.h").contains("measured"));
}

#[test]
#[ignore = "long: in the full run"]
fn each_kernel_of_a_file_has_its_own_register_cap() {
    let project = Project::new(&["two.cu"]).with_cuda_headers_in_full_run();
    succeed(&mut project.plain(&compile("two.cu", "plain.o")));
    let plain = project.registers("plain.o");
    project.write("recorded.json", CAPS_WIN);
    let mut nvtune = project.nvtune(&compile("two.cu", "two.o"));
    let ran = succeed(nvtune.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"));
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let tuned = project.registers("two.o");
    let of = |all: &[(String, u32)], name: &str| {
        all.iter().find(|(symbol, _)| symbol.contains(name)).map(|(_, registers)| *registers).expect("it is there")
    };
    assert!(of(&plain, "first") > 24 && of(&plain, "bounded") > 32, "the caps mean nothing here: {plain:?}");
    assert!(of(&tuned, "first") <= 24, "{tuned:?}");
    // It has launch bounds, for which ptxas ignores --maxrregcount in silence.
    assert!((25..=32).contains(&of(&tuned, "bounded")), "{tuned:?}");
    assert_eq!(of(&tuned, "unmarked"), of(&plain, "unmarked"), "an unmarked kernel is as it was");
}

#[test]
#[ignore = "long: in the full run"]
fn kernels_of_one_name_in_two_sources_keep_their_own_winners() {
    let project = Project::new(&["two.cu"]);
    let text = project.read("two.cu");
    let (shared, kernels) = text.split_once("//@tune").expect("marked");
    let first = kernels.split("//@tune threads").next().expect("one");
    // The same name, with internal linkage, and another body and problem each.
    for (name, size, body) in
        [("a.cu", "1 << 16", "mixed(x, i)"), ("a_b.cu", "1 << 14", "mixed(x, i) + mixed(x, i + 1)")]
    {
        let kernel = first.replace("1 << 16", size).replace("regs({0, 24})", "regs({0, 24, 32})");
        let kernel = kernel.replace("mixed(x, i)", body).replace("__global__", "static __global__");
        let launch =
            "void NAME(int n, float *x) { first<<<n / 128, 128>>>(n, x, x); }".replace("NAME", &name.replace('.', "_"));
        project.write(name, &format!("{shared}//@tune{kernel}\n{launch}\n"));
    }
    let entries = r#"{"grid": [512, 1, 1], "label": "regs=24", "time_us": 8.0, "spread": 0.01},
        {"grid": [128, 1, 1], "label": "regs=32", "time_us": 8.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    let device = r#"{"name": "NVIDIA H200", "compute_capability": 90}"#;
    project.write("recorded.json", &format!(r#"{{"device": {device}, "entries": [{entries}]}}"#));
    // What nvcc calls its files depends on these.
    let all = [
        &["-arch=sm_90", "--keep"][..],
        &["-gencode=arch=compute_90,code=sm_90", "-gencode=arch=compute_80,code=sm_80"],
        &["-arch=sm_90"],
        &["-arch=sm_90", "-objtemp"],
    ];
    for options in cases(&all, 2) {
        let arguments = options.iter().chain(&["-O3", "-c", "a.cu", "a_b.cu"]).collect::<Vec<_>>();
        let mut nvtune = project.nvtune(&arguments);
        let ran = succeed(nvtune.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"));
        assert!(!ran.stderr.contains("warning"), "{options:?}: {}", ran.stderr);
        let has = |object: &str, registers: std::ops::RangeInclusive<u32>| {
            project.registers(object).iter().any(|(_, count)| registers.contains(count))
        };
        assert!(has("a.o", 1..=24) && has("a_b.o", 25..=32), "{options:?}: {}", ran.stderr);
    }
}

/// The SASS of a kernel of an object.
pub fn sass(project: &Project, object: &str, kernel: &str) -> String {
    let all = project.listing(object);
    let code = all
        .split("Function : ")
        .find(|part| part.lines().next().is_some_and(|name| (name.to_owned() + "\n").contains(kernel)));
    let code = code.unwrap_or_else(|| panic!("{object} has no {kernel}: {all}"));
    // What follows the last kernel speaks of the options; how wide the columns are, of the widest instruction of the file.
    let code = code.split("Fatbin").next().unwrap_or_default();
    code.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn cache_operator_is_in_the_object_and_carveout_in_the_header() {
    let project = Project::new(&["cached.cu"]);
    let ran = tuned(
        &project,
        "cached.cu",
        r#"{"label": "block=128 cache=cg carveout=50", "time_us": 8.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#,
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("nvtune: folded: block=128 cache=cg carveout=50 (1.25x"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let header = project.read("cached.tune.h");
    for line in ["#define FOLDED_CARVEOUT 50\n", "static int carveout() { return 50; }\n"] {
        assert_eq!(header.matches(line).count(), 1, "{line}: {header}");
    }
    for word in ["_CARVEOUT ", "int carveout()"] {
        assert_eq!(header.matches(word).count(), 1, "a kernel without the axis has none: {header}");
    }
    let record = project.record("cached.tune.json");
    let kernel = &record["kernels"][0];
    let configurations = kernel["configurations"].as_array().expect("a list");
    let of_the_space = |row: &&serde_json::Value| row["exact_block"].is_null();
    assert_eq!(configurations.iter().filter(of_the_space).count(), 2 * 3 * 3);
    let winner = &configurations[kernel["winner"].as_u64().expect("an index") as usize];
    assert_eq!((&winner["cache"], &winner["carveout"]), (&"cg".into(), &50.into()));
    let variants = kernel["variants"].as_array().expect("a list").iter().filter(of_the_space);
    let caches: Vec<_> = variants.map(|variant| &variant["cache"]).collect();
    assert_eq!(caches, [&serde_json::Value::Null, &"ca".into(), &"cg".into()]);

    // The code of a file of this kernel alone under the option, and of the other kernel as nvcc makes it.
    succeed(&mut project.plain(&compile("cached.cu", "plain.o")));
    let mut option = compile("cached.cu", "option.o");
    option.extend(["-Xptxas", "-dlcm=cg"].map(str::to_owned));
    succeed(&mut project.plain(&option));
    let folded = sass(&project, "cached.o", "foldediPKfPf__nvtune_").split_once(' ').map(|(_, code)| code.to_owned());
    let folded = folded.expect("a name and code");
    assert!(folded.contains("LDG.E.STRONG.GPU"), "{folded}");
    assert!(sass(&project, "option.o", "folded").ends_with(&folded));
    // The last of this name is nvcc's own.
    assert_eq!(sass(&project, "cached.o", "6foldediPKfPf\n"), sass(&project, "plain.o", "folded"));
    assert_eq!(sass(&project, "cached.o", "plain"), sass(&project, "plain.o", "plain"));
}

#[test]
#[ignore = "long: in the full run"]
fn kept_baseline_has_the_loads_of_nvcc_and_the_carveout_of_the_driver() {
    let project = Project::new(&["cached.cu"]);
    let ran = tuned(&project, "cached.cu", r#"{"time_us": 10.0, "spread": 0.01}"#);
    assert!(ran.stderr.starts_with("nvtune: folded: block=256 (kept: "), "{}", ran.stderr);
    assert!(project.read("cached.tune.h").contains("#define FOLDED_CARVEOUT -1\n"));
    succeed(&mut project.plain(&compile("cached.cu", "plain.o")));
    assert_eq!(sass(&project, "cached.o", "folded"), sass(&project, "plain.o", "folded"));
    // Without a GPU the model, which knows nothing of caches, does not guess.
    let ran = succeed(&mut project.nvtune(&compile("cached.cu", "static.o")));
    assert!(!ran.stderr.contains("cache=") && !ran.stderr.contains("carveout="), "{}", ran.stderr);
}

#[test]
fn messages_of_the_shimmed_ptxas_name_ptxas() {
    let project = Project::new(&["two.cu"]);
    project.write("recorded.json", CAPS_WIN);
    let mut arguments = compile("two.cu", "two.o");
    arguments.extend(["-Xptxas", "-v"].map(str::to_owned));
    let mut nvtune = project.nvtune(&arguments);
    let ran = succeed(nvtune.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"));
    // Each of three kernels and two winners, from the final build alone.
    let lines = ran.stderr.lines().filter(|line| line.starts_with("ptxas info    : Used "));
    assert_eq!(lines.count(), 5, "{}", ran.stderr);
    assert!(!ran.stderr.contains("nvtune-real-ptxas"), "{}", ran.stderr);
}

#[test]
fn baseline_is_kept_without_a_certain_gain() {
    for entries in [
        r#"{"time_us": 10.0, "spread": 0.05}"#,
        r#"{"label": "block=256", "time_us": 10.0, "spread": 0.05}, {"time_us": 9.99, "spread": 0.05}"#,
        r#"{"label": "block=256", "time_us": 10.0}, {"time_us": 12.0}"#,
    ] {
        let project = Project::new(&["saxpy.cu"]);
        let ran = tuned_saxpy(&project, entries);
        assert!(ran.stderr.starts_with("nvtune: saxpy: block=256 (kept: "), "{entries}: {}", ran.stderr);
        assert!(project.read("saxpy.tune.h").contains("#define SAXPY_PROVENANCE \"baseline\""));
    }
}

#[test]
fn failed_candidates_are_named_and_do_not_win() {
    let cases = [
        (
            r#"{"label": "block=512", "refused": {"faulted": {"error": "CUDA_ERROR_ILLEGAL_ADDRESS"}}}"#,
            "ILLEGAL_ADDRESS",
        ),
        (r#"{"label": "block=512", "fault": "die"}"#, "died while it ran"),
        (r#"{"label": "block=512", "fault": "garbage"}"#, "block=512"),
    ];
    for (entry, word) in cases {
        let project = Project::new(&["saxpy.cu"]);
        let entries =
            format!(r#"{entry}, {{"label": "block=1024", "time_us": 5.0}}, {{"time_us": 10.0, "spread": 0.01}}"#);
        let ran = tuned_saxpy(&project, &entries);
        assert_eq!(ran.code, Some(0), "{entry}: {}", ran.stderr);
        let warning = ran.stderr.lines().find(|line| line.starts_with("nvtune warning")).unwrap_or_default();
        assert!(warning.contains("candidate refused: block=512") && warning.contains(word), "{entry}: {}", ran.stderr);
        assert!(ran.stderr.contains("nvtune: saxpy: block=1024 (2.00x"), "{entry}: {}", ran.stderr);
        assert!(project.path("saxpy.cubin").is_file(), "{entry}");
    }
}

#[test]
#[ignore = "long: in the full run"]
fn failed_measuring_process_leaves_the_choice_to_the_model() {
    let project = Project::new(&["saxpy.cu"]);
    for (start, warned) in [("no-device", false), ("die", true), ("garbage", true), ("version", true)] {
        project.write("recorded.json", &format!(r#"{{"start": "{start}", "entries": []}}"#));
        let ran = succeed(saxpy_cubin(&project).env("NVTUNE_REPLAY", "recorded.json"));
        assert_eq!(ran.stderr.contains("nvtune warning"), warned, "{start}: {}", ran.stderr);
        assert!(!project.read("saxpy.tune.h").contains("measured"), "{start}");
    }
    let runner = saxpy_cubin(&project).env("NVTUNE_RUNNER", "/nowhere/ssh gpu").output();
    let runner = runner.expect("it starts");
    assert!(runner.status.success());
    assert!(String::from_utf8_lossy(&runner.stderr).contains("/nowhere/ssh"));
}

#[test]
fn baseline_that_crashes_is_kept() {
    let project = Project::new(&["tiled.cu"]);
    let crash = r#"{"refused": {"faulted": {"error": "CUDA_ERROR_ILLEGAL_ADDRESS"}}}"#;
    let ran = tuned(&project, "tiled.cu", crash);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("not timed: the baseline cannot be measured"), "{}", ran.stderr);
    assert!(ran.stderr.contains("nvtune: tiled: block=256 WORK=1 (kept: "), "{}", ran.stderr);
}

/// The labels of the candidates that were tried where these entries are what a GPU answers.
fn tried(entries: &str) -> Vec<String> {
    let project = Project::new(&["saxpy.cu"]);
    let device = r#""device": {"name": "NVIDIA H200", "compute_capability": 90}"#;
    project.write("recorded.json", &format!(r#"{{"log": "log.txt", {device}, "entries": [{entries}]}}"#));
    succeed(saxpy_cubin(&project).env("NVTUNE_REPLAY", "recorded.json"));
    project.read("log.txt").lines().filter_map(|line| line.strip_prefix("check ")).map(str::to_owned).collect()
}

#[test]
fn kernel_that_works_in_its_own_launch_alone_costs_few_refusals() {
    let difference =
        r#"{"differs": {"buffer": "y", "index": 0, "lane": 0, "expected": "1", "got": "2", "count": 1, "of": 9}}"#;
    for refused in [r#"{"faulted": {"error": "CUDA_ERROR_ILLEGAL_ADDRESS"}}"#, difference] {
        let tried = tried(&format!(r#"{{"label": "block=256", "time_us": 10.0}}, {{"refused": {refused}}}"#));
        let elsewhere = tried.iter().filter(|label| !label.contains("block=256")).count();
        // A round that has begun is ended.
        assert!((6..10).contains(&elsewhere), "{tried:?}");
    }
}

#[test]
fn refused_launch_is_not_tried_with_other_registers() {
    let crash = r#""refused": {"faulted": {"error": "CUDA_ERROR_ILLEGAL_ADDRESS"}}"#;
    let entries = |other: &str| format!(r#"{{"label": "block=128", {other}}}, {{"time_us": 10.0}}"#);
    let count = |tried: &[String]| tried.iter().filter(|label| label.contains("block=128")).count();
    assert!(count(&tried(&entries(r#""time_us": 9.0"#))) > 1);
    assert_eq!(count(&tried(&entries(crash))), 1);
}

#[test]
#[ignore = "long: in the full run"]
fn header_of_another_build_next_to_the_source_is_not_used() {
    let project = Project::new(&["tiled.cu"]);
    std::fs::create_dir(project.path("out")).expect("a folder");
    // The disassembled function for the block has its extent.
    let block_function = |object: &str| {
        let text = project.tool_of_host("objdump", &["-d", "--no-show-raw-insn", object]);
        text.split("nvtune_tiled_blockv>:").nth(1).unwrap_or_default().lines().take(12).collect::<String>()
    };
    for (block, object) in [(128, "tiled.o"), (256, "out/tiled.o")] {
        project.write(
            "recorded.json",
            &format!(
                r#"{{"device": {{"name": "NVIDIA H200", "compute_capability": 90}},
                    "entries": [{{"label": "WORK=1 block={block}", "time_us": 5.0}}, {{"time_us": 10.0}}]}}"#
            ),
        );
        // Without -O, for the host compiler would inline the grid function.
        let mut nvtune = project.nvtune(&["-arch=sm_90", "-c", "tiled.cu", "-o", object]);
        let ran = succeed(nvtune.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"));
        assert!(ran.stderr.contains(&format!("block={block} WORK=1 (")), "{}", ran.stderr);
        assert!(block_function(object).contains(&format!("${block:#x},")), "{object}: {}", block_function(object));
    }
}

#[test]
fn each_template_instance_has_its_own_winner() {
    let project = Project::new(&["instances.cu"]).with_cuda_headers_in_full_run();
    tuned_to(
        &project,
        "instances.cu",
        r#"{"kernel": "_ZN2ns5scaleIfEEviT_PKS1_PS1_", "label": "block=64", "time_us": 5.0},
           {"kernel": "_Z5applyIN2ns5TwiceIfEELi8EEviPKfPf", "label": "block=64 WORK=4", "time_us": 5.0},
           {"time_us": 10.0}"#,
        &[
            "#define SCALE_FLOAT_BLOCK_X 64",
            "#define SCALE_FLOAT_PROVENANCE \"measured\"",
            "struct scale_float {",
            "#define SCALE_DOUBLE_BLOCK_X 256",
            "#define SCALE_DOUBLE_PROVENANCE \"baseline\"",
            "#define APPLY_TWICE_FLOAT_WORK_2_WORK 4",
            "#define WORK 2",
        ],
    );
    // The instance that the source makes is there with a winner, which is another instance's code.
    let record = project.record("instances.tune.json");
    assert_eq!(record["kernels"][2]["symbol"], "_Z5applyIN2ns5TwiceIfEELi4EEviPKfPf");
    let symbols: Vec<String> = project.registers("instances.o").into_iter().map(|(symbol, _)| symbol).collect();
    let is_winner = |symbol: &&String| symbol.contains("5TwiceIfEELi4EEviPKfPf__nvtune_");
    assert_eq!(symbols.iter().filter(is_winner).count(), 1, "{symbols:?}");
}

/// Aliases, enumerators, constants and macros of the source are what the compiler says they are, before C++17 too.
#[test]
#[ignore = "long: in the full run"]
fn template_arguments_are_named_as_in_the_source() {
    let project = Project::new(&["aliases.cu"]);
    let all = [
        "twice_real_WIDTH_STEP 5twiceIfLi8EEE",
        "apply_element_SCALE 5applyIfLNS_4ModeE1EEE",
        "pick_Kind_Odd 4pickIL4Kind1EE",
    ];
    for (standard, known) in [("-std=c++17", 3), ("-std=c++11", 2)] {
        let mut call = compile("aliases.cu", "aliases.o");
        call.push(standard.to_owned());
        let ran = succeed(&mut project.nvtune(&call));
        let record = project.record("aliases.tune.json");
        let tuned = record["kernels"].as_array().expect("kernels");
        assert_eq!(tuned.len(), known, "{standard}: {}", ran.stderr);
        for (tuned, expected) in tuned.iter().zip(all) {
            let (name, symbol) = expected.split_once(' ').expect("two words");
            assert_eq!(tuned["name"], name, "{standard}");
            assert!(tuned["symbol"].as_str().is_some_and(|mangled| mangled.contains(symbol)), "{standard}: {tuned}");
        }
    }
}

/// A specialization is a kernel of its own, with parameters that have names of their own, beside the template's other instances.
#[test]
#[ignore = "long: in the full run"]
fn each_template_specialization_has_its_own_winner() {
    tuned_to(
        &Project::new(&["specialized.cu"]).with_cuda_headers(),
        "specialized.cu",
        r#"{"kernel": "_Z5shiftI6__halfEvPT_i", "label": "block=64", "time_us": 5.0},
           {"kernel": "_Z5shiftIdEvPT_i", "label": "block=128", "time_us": 5.0},
           {"time_us": 10.0}"#,
        &["#define SHIFT_FLOAT_BLOCK_X 256", "#define SHIFT___HALF_BLOCK_X 64", "#define SHIFT_DOUBLE_BLOCK_X 128"],
    );
}

/// The predicted cycles of the only kernel's first configuration, with one text of the source replaced.
fn cycles(project: &Project, source: &str, from: &str, to: &str) -> f64 {
    let text = project.read(source);
    assert!(text.contains(from), "{from}");
    project.write(source, &text.replace(from, to));
    succeed(&mut project.nvtune(&compile(source, "cycles.o")));
    project.write(source, &text);
    let record = project.record(&source.replace(".cu", ".tune.json"));
    record["kernels"][0]["configurations"][0]["score"]["c"].as_f64().expect("a number")
}

#[test]
fn model_reads_contents_of_variables() {
    // The loop takes as many steps as the variable says.
    let project = Project::new(&["symbols.cu"]);
    let [few, many] = ["steps = 10", "steps = 1000"].map(|to| cycles(&project, "symbols.cu", "steps = 24", to));
    assert!(many > 20.0 * few, "{few} {many}");
}

#[test]
fn model_reads_fields_of_structures() {
    let project = Project::new(&["structs.cu"]);
    let [few, many] = ["skip = 10", "skip = 1000"].map(|to| cycles(&project, "structs.cu", "skip = 3", to));
    assert!(many > few + 3000.0, "{few} {many}");
}

/// `files.cu` with a folder of the files that it names.
fn with_files() -> Project {
    let project = Project::new(&["files.cu"]);
    std::fs::create_dir(project.path("data")).expect("a folder");
    write_array(&project, "<f4", 1 << 10);
    write_rows(&project, 10);
    project
}

/// Writes `data/rows.bin`, the steps of each row.
fn write_rows(project: &Project, steps: i32) {
    let bytes: Vec<u8> = (0..1 << 10).flat_map(|_| steps.to_le_bytes()).collect();
    std::fs::write(project.path("data/rows.bin"), bytes).expect("written");
}

/// Writes `data/x.npy`, an array of this type.
fn write_array(project: &Project, kind: &str, count: usize) {
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({count},), }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(vec![0; 4 * count]);
    std::fs::write(project.path("data/x.npy"), file).expect("written");
}

const BLOCK_64_WINS: &str = r#"{"label": "block=64", "time_us": 5.0}, {"time_us": 10.0}"#;

#[test]
fn model_reads_buffers_from_files() {
    let project = with_files();
    let cycles = [10, 1000].map(|steps| {
        write_rows(&project, steps);
        let ran = tuned(&project, "files.cu", BLOCK_64_WINS);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.starts_with("nvtune: sum: block=64 (2.00x"), "{}", ran.stderr);
        let record = project.record("files.tune.json");
        record["kernels"][0]["configurations"][0]["score"]["c"].as_f64().expect("a number")
    });
    assert!(cycles[1] > 20.0 * cycles[0], "{cycles:?}");
}

#[test]
#[ignore = "long: in the full run"]
fn unsuitable_buffer_file_is_a_warning_and_the_kernel_is_built_by_nvcc() {
    type Damage = fn(&Project);
    let cases: [(&str, Damage); 5] = [
        (
            "'data/x.npy' has elements of type <f8, `x` is of type `const float *`; nvcc builds `sum` as it is",
            |project| {
                write_array(project, "<f8", 1 << 9);
            },
        ),
        ("'data/x.npy' has 512 elements of 4 bytes, and not 1024; nvcc builds `sum` as it is", |project| {
            write_array(project, "<f4", 1 << 9);
        }),
        (
            "'data/rows.bin' has 3 bytes of data, which are no elements of 4 bytes; nvcc builds `sum` as it is",
            |project| std::fs::write(project.path("data/rows.bin"), [1, 2, 3]).expect("written"),
        ),
        (
            "'data/rows.bin' cannot be read: No such file or directory (os error 2); nvcc builds `sum` as it is",
            |project| std::fs::remove_file(project.path("data/rows.bin")).expect("removed"),
        ),
        (
            "'/etc/passwd' is not below the source's own folder; NVTUNE_FILES can name a folder to read from",
            |project| project.write("files.cu", &project.read("files.cu").replace("data/rows.bin", "/etc/passwd")),
        ),
    ];
    for (message, damage) in cases {
        let project = with_files();
        damage(&project);
        let ran = tuned(&project, "files.cu", BLOCK_64_WINS);
        assert_eq!(ran.code, Some(0), "{message}: {}", ran.stderr);
        assert!(ran.stderr.contains(&format!("files.cu(3): warning: {message}")), "{message}: {}", ran.stderr);
        assert!(project.path("files.o").is_file(), "{message}");
    }
}
