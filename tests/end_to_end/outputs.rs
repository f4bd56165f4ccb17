//! What a tuned build writes: object, header, record, dependency file.

use super::project::{CAPS_WIN, Project, compile, reproducible, run, succeed};
use crate::support::full::{cases, is_full};
use std::process::{Child, Command, Stdio};

#[test]
fn marked_source_gives_object_header_and_record() {
    let project = Project::new(&["saxpy.cu"]).with_cuda_headers();
    let ran = succeed(&mut project.nvtune(&compile("saxpy.cu", "saxpy.o")));
    let line = ran.stderr.lines().next().unwrap_or_default();
    assert!(line.starts_with("nvtune: saxpy: block="), "{}", ran.stderr);
    assert!(line.contains("0 of 192 points timed"), "{line}");
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    assert_eq!(project.files(), ["saxpy.cu", "saxpy.o", "saxpy.tune.h", "saxpy.tune.json"]);
    let header = project.read("saxpy.tune.h");
    assert!(!header.contains("measured"), "nothing was timed, yet: {header}");
    let record = project.record("saxpy.tune.json");
    let kernel = &record["kernels"][0];
    assert_eq!(kernel["name"], "saxpy");
    assert_eq!(kernel["points"], 192);
    assert_eq!(kernel["timed"], 0);
    assert!(kernel.get("device").is_none(), "no GPU was used");
    assert!(["predicted", "baseline"].contains(&kernel["provenance"].as_str().unwrap_or_default()));
    let configurations = kernel["configurations"].as_array().expect("a list");
    assert_eq!(configurations.len(), 192);
    assert!(configurations.iter().all(|row| row["variant"].is_u64() && row["score"]["c"].is_number()));
    assert!(configurations.iter().any(|row| row["candidate"] == true));
}

#[test]
fn summary_without_a_gpu_says_that_there_is_none() {
    let project = Project::new(&["saxpy.cu"]);
    let build = || {
        let mut command = project.nvtune(&compile("saxpy.cu", "saxpy.o"));
        command.env("NVTUNE", "measure").env("CUDA_VISIBLE_DEVICES", "");
        succeed(&mut command).stderr
    };
    let cold = build();
    assert!(cold.contains("); no GPU was found, 0 of 192 points timed, "), "{cold}");
    let warm = build();
    assert!(warm.ends_with("); from the cache, no GPU was found [N0032]\n"), "{warm}");
    // A build that asks for no GPU does not mention one.
    let asked_for_none = succeed(project.nvtune(&compile("saxpy.cu", "saxpy.o")).env("NVTUNE_CACHE_SIZE", "0")).stderr;
    assert!(!asked_for_none.contains("GPU"), "{asked_for_none}");
}

#[test]
fn closed_or_full_stderr_does_not_stop_a_build() {
    let project = Project::new(&["saxpy.cu"]);
    let (reader, closed) = std::io::pipe().expect("a pipe");
    drop(reader);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    for stderr in [std::process::Stdio::from(closed), full.into()] {
        let _ = std::fs::remove_file(project.path("saxpy.o"));
        let ran = run(project.nvtune(&compile("saxpy.cu", "saxpy.o")).env("NVTUNE_CACHE_SIZE", "0").stderr(stderr));
        assert_eq!(ran.code, Some(0));
        assert!(project.path("saxpy.o").exists());
        assert_eq!(project.record("saxpy.tune.json")["kernels"][0]["name"], "saxpy");
    }
}

#[test]
fn unchanged_header_keeps_its_time() {
    let project = Project::new(&["saxpy.cu"]);
    let written =
        || std::fs::metadata(project.path("saxpy.tune.h")).and_then(|data| data.modified()).expect("it is there");
    succeed(&mut project.nvtune(&compile("saxpy.cu", "saxpy.o")));
    let (first, text) = (written(), project.read("saxpy.tune.h"));
    succeed(&mut project.nvtune(&compile("saxpy.cu", "saxpy.o")));
    assert_eq!((written(), project.read("saxpy.tune.h")), (first, text));
}

#[test]
#[ignore = "long: in the full run"]
fn headers_of_sources_of_one_name_can_be_included_together() {
    let project = Project::new(&[]);
    for (folder, kernel, tile) in [("a", "up", 2), ("b", "down", 4)] {
        std::fs::create_dir(project.path(folder)).expect("a folder");
        let comment = "//@tune threads(ceildiv(n, TILE)) block({128, 256}) default(block = 128)";
        let macros = format!("define(TILE = {{{tile}}}) args(n = 1024, x = random[n])");
        let text = format!(
            "#if __has_include(\"kernel.tune.h\")\n#include \"kernel.tune.h\"\n#endif\n#ifndef TILE\n#define TILE {tile}\n#endif\n\
             {comment} {macros}\n__global__ void {kernel}(int n, float *x) {{\n\
             const int i = (blockIdx.x * blockDim.x + threadIdx.x) * TILE;\nif (i < n) x[i] += 1.0f;\n}}\n"
        );
        project.write(&format!("{folder}/kernel.cu"), &text);
        succeed(&mut project.nvtune(&compile(&format!("{folder}/kernel.cu"), &format!("{folder}/kernel.o"))));
    }
    let both = "#include \"a/kernel.tune.h\"\n#include \"b/kernel.tune.h\"\n#include \"a/kernel.tune.h\"\n\
                dim3 blocks[] = {nvtune::up::block(), nvtune::down::block(), nvtune::down::grid(9)};\n\
                int sizes[] = {UP_BLOCK_X, DOWN_BLOCK_X};\n";
    project.write("both.cu", both);
    succeed(&mut project.plain(&compile("both.cu", "both.o")));
}

/// Builds of `kernel.cu` with two values of its macro, each into an object of its own.
struct Shared {
    project: Project,
}

/// The type that each object is of, and the value of TILE that wins for it.
const OBJECTS: [(&str, u32); 2] = [("float", 2), ("double", 4)];

impl Shared {
    fn new() -> Self {
        Self { project: Project::new(&["kernel.cu"]) }
    }

    fn start(&self, (real, tile): (&str, u32)) -> Child {
        let mut arguments = compile("kernel.cu", &format!("{real}.o"));
        arguments.push(format!("-DREAL={real}"));
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.call((real, tile), &words).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    /// A call for which a value of TILE wins.
    fn call(&self, (real, tile): (&str, u32), arguments: &[&str]) -> Command {
        let device = r#"{"name": "NVIDIA H200", "compute_capability": 90, "driver": 13000}"#;
        let entries = format!(r#"{{"label": "TILE={tile}", "time_us": 5.0}}, {{"time_us": 10.0, "spread": 0.01}}"#);
        self.project.write(&format!("{real}.json"), &format!(r#"{{"device": {device}, "entries": [{entries}]}}"#));
        let mut build = self.project.nvtune(arguments);
        build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", format!("{real}.json"));
        build
    }

    /// Waits for the end of a build and returns its messages.
    fn end(build: Child) -> String {
        let ended = build.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success(), "{said}");
        said
    }
}

#[test]
#[ignore = "long: in the full run"]
fn one_source_compiled_twice_at_once_reads_its_own_header_each_time() {
    let shared = Shared::new();
    let rounds = if is_full() { 5 } else { 1 };
    for _ in 0..rounds {
        for build in OBJECTS.map(|object| shared.start(object)) {
            Shared::end(build);
        }
    }
    let project = &shared.project;
    project.write("main.cu", "#include <cstdio>\nextern int tile;\nint main() { std::printf(\"%d\", tile); }\n");
    for (real, tile) in OBJECTS {
        succeed(&mut project.plain(&["main.cu", &format!("{real}.o"), "-o", "tile"]));
        assert_eq!(succeed(&mut Command::new(project.path("tile"))).stdout, tile.to_string(), "{real}");
    }
}

#[test]
#[ignore = "long: in the full run"]
fn header_stays_that_of_the_first_object_of_a_folder() {
    // With what is said, and the value of TILE that its own header gives to what it makes: none where that has no machine code.
    let forms = [
        (&["-c", "kernel.cu", "-o", "o/double.o"][..], "belongs to 'o/float.o', not to 'o/double.o'", Some(4)),
        (&["-ptx", "kernel.cu", "-o", "o/kernel.ptx"], "-ptx makes no machine code", None),
        (&["-lib", "kernel.cu", "-o", "o/double.a"], "belongs to 'o/float.o', not to 'o/double.a'", Some(4)),
        (&["-c", "sub/kernel.cu", "-o", "o/other.o"], "belongs to 'o/float.o', not to 'o/other.o'", Some(4)),
        (&["kernel.cu", "main.o", "-o", "o/prog"], "belongs to 'o/float.o', not to 'o/prog'", Some(4)),
    ];
    for &(words, said, tile) in cases(&forms, 2) {
        let shared = Shared::new();
        let project = &shared.project;
        for folder in ["o", "sub"] {
            std::fs::create_dir(project.path(folder)).expect("a folder");
        }
        std::fs::copy(project.path("kernel.cu"), project.path("sub/kernel.cu")).expect("copied");
        project.write("main.cu", "#include <cstdio>\nextern int tile;\nint main() { std::printf(\"%d\", tile); }\n");
        succeed(&mut project.plain(&["-c", "main.cu", "-o", "main.o"]));
        let arguments = [&["-arch=sm_90", "-MD", "-MF", "made.d", "-DREAL=double"], words].concat();
        let build = || {
            let ran = succeed(&mut shared.call(OBJECTS[1], &arguments));
            assert!(ran.stderr.contains(said) && ran.stderr.matches("nvtune warning").count() == 1, "{}", ran.stderr);
            assert!(!project.read("made.d").contains("tune.h"), "{words:?}: {}", project.read("made.d"));
        };
        succeed(&mut shared.call(OBJECTS[0], &["-arch=sm_90", "-c", "kernel.cu", "-o", "o/float.o"]));
        let results = || (project.read("o/kernel.tune.h"), project.read("o/kernel.tune.json"));
        let before = results();
        build();
        assert!(results() == before, "{words:?}");
        if let Some(tile) = tile {
            let is_program = words[1] == "main.o";
            let program = if is_program { words[3] } else { "tile" };
            if !is_program {
                succeed(&mut project.plain(&["main.o", words[3], "-o", program]));
            }
            assert_eq!(succeed(&mut Command::new(project.path(program))).stdout, tile.to_string(), "{words:?}");
        } else {
            std::fs::remove_file(project.path("o/kernel.tune.h")).expect("removed");
            build();
            assert!(!project.path("o/kernel.tune.h").exists(), "nor does it leave one where it comes first");
        }
    }
}

#[test]
fn header_of_a_copied_folder_is_no_other_objects() {
    let shared = Shared::new();
    Shared::end(shared.start(OBJECTS[1]));
    let project = &shared.project;
    let copy = project.path("copy");
    std::fs::create_dir(&copy).expect("a folder");
    for name in ["kernel.tune.h", "kernel.tune.json", "double.o"] {
        std::fs::copy(project.path(name), copy.join(name)).expect("copied");
    }
    let text = project.read("kernel.cu").replace("{1, 2, 4}", "{1, 2}");
    std::fs::write(copy.join("kernel.cu"), text).expect("written");
    let mut build = project.nvtune(&compile("kernel.cu", "double.o"));
    let ran = succeed(build.current_dir(&copy).env("NVTUNE_STRICT", "1"));
    assert!(!ran.stderr.contains("kernel.tune.h"), "{}", ran.stderr);
}

#[test]
fn dependency_file_names_the_header() {
    let project = Project::new(&["saxpy.cu"]).with_cuda_headers_in_full_run();
    let mut arguments = compile("saxpy.cu", "saxpy.o");
    arguments.extend(["-MD", "-MF", "saxpy.d"].map(str::to_owned));
    succeed(&mut project.nvtune(&arguments));
    let dependencies = project.read("saxpy.d");
    assert_eq!(dependencies.matches("saxpy.tune.h").count(), 1, "{dependencies}");
}

/// Includes files of four names by which others stand beside the object; the compile fails where it reads one of those.
const INCLUDES: &str = "#include <climits>\n#include <config.h>\n\
    #if !defined(INT_MAX) || ANSWER != 1 || __has_include(<other.h>) || __has_include(\"other.h\")\n\
    #error it reads a file beside the object\n#endif\n";

#[test]
fn compile_reads_no_other_file_beside_its_object() {
    for (options, object, depfile) in [
        (&["-MD", "-MP", "-I", "third"][..], "build/kernel.o", "build/kernel.d"),
        (&["-MD", "-MF", "made.d", "-isystem", "third"], "build/other.o", "made.d"),
    ] {
        let project = Project::new(&["kernel.cu"]);
        for (name, text) in [
            ("third/config.h", "#define ANSWER 1\n"),
            ("build/config.h", "#define ANSWER 2\n"),
            ("build/limits.h", "#define MAX 4\n"),
            ("build/other.h", ""),
        ] {
            std::fs::create_dir_all(project.path(name).parent().expect("it has one")).expect("a folder");
            project.write(name, text);
        }
        let source = project.read("kernel.cu");
        project.write("kernel.cu", &format!("{INCLUDES}{source}"));
        let arguments = [compile("kernel.cu", object), options.iter().map(|&word| word.to_owned()).collect()].concat();
        let mut build = project.nvtune(&arguments);
        succeed(build.env("TMPDIR", project.path("bin")));
        let dependencies = project.read(depfile);
        assert!(dependencies.contains("build/kernel.tune.h"), "{options:?}: {dependencies}");
        assert!(!dependencies.contains("nvtune-"), "a file that is gone: {options:?}: {dependencies}");
        assert!(std::fs::read_dir(project.path("bin")).expect("a folder").count() == 2, "nvcc and the cache");
    }
}

#[test]
#[ignore = "long: in the full run"]
fn dependency_file_is_without_the_header_on_request() {
    // Beside the source the header is found by another name, too.
    for (object, depfile) in [("kernel.o", "kernel.d"), ("o/kernel.o", "o/kernel.d")] {
        let project = Project::new(&["kernel.cu"]);
        std::fs::create_dir(project.path("o")).expect("a folder");
        let arguments = [compile("kernel.cu", object), ["-MD", "-MP"].map(str::to_owned).into()].concat();
        let mut build = project.nvtune(&arguments);
        succeed(build.env("NVTUNE_HEADER_IN_DEPFILE", "0"));
        let tuned = project.read(depfile);
        assert!(project.path(object).with_file_name("kernel.tune.h").is_file(), "{object}");
        std::fs::remove_file(project.path(object).with_file_name("kernel.tune.h")).expect("removed");
        succeed(&mut project.plain(&arguments));
        assert_eq!(tuned, project.read(depfile), "{object}: as plain nvcc's");
    }
}

#[test]
fn object_of_kept_baselines_is_that_of_plain_nvcc() {
    let project = Project::new(&["two.cu"]).with_cuda_headers();
    succeed(&mut project.plain(&reproducible("two.cu", "same.o")));
    std::fs::rename(project.path("same.o"), project.path("plain.o")).expect("renamed");
    project.write("recorded.json", &CAPS_WIN.replace("10.0", "15.0"));
    succeed(
        project
            .nvtune(&reproducible("two.cu", "same.o"))
            .env("NVTUNE", "measure")
            .env("NVTUNE_REPLAY", "recorded.json"),
    );
    assert!(project.bytes("plain.o") == project.bytes("same.o"));
}

#[test]
fn output_to_the_null_device_is_not_tuned() {
    let project = Project::new(&["saxpy.cu"]);
    let nothing = succeed(&mut project.nvtune(&compile("saxpy.cu", "/dev/null")));
    assert_eq!((nothing.stderr.as_str(), project.files().as_slice()), ("", ["saxpy.cu".to_owned()].as_slice()));
}

#[test]
fn header_that_cannot_be_written_does_not_stop_a_build() {
    let project = Project::new(&["saxpy.cu"]);
    std::fs::create_dir_all(project.path("headers/saxpy.tune.h")).expect("a folder in the header's place");
    let ran = succeed(project.nvtune(&compile("saxpy.cu", "saxpy.o")).env("NVTUNE_HEADER_DIR", "headers"));
    assert_eq!(ran.stderr.matches("cannot write 'headers/saxpy.tune.h'").count(), 1, "{}", ran.stderr);
    assert!(project.path("saxpy.o").is_file());
}

#[test]
fn header_folder_that_cannot_be_made_does_not_stop_a_build() {
    let project = Project::new(&["saxpy.cu"]);
    project.write("file", "");
    for (strict, code) in [("0", 0), ("1", 1)] {
        let mut nvtune = project.nvtune(&compile("saxpy.cu", "saxpy.o"));
        let ran = run(nvtune.env("NVTUNE_HEADER_DIR", "file/headers").env("NVTUNE_STRICT", strict));
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("cannot make NVTUNE_HEADER_DIR 'file/headers'").count(), 1, "{}", ran.stderr);
        assert_eq!(project.path("saxpy.o").is_file(), code == 0);
        let _ = std::fs::remove_file(project.path("saxpy.o"));
    }
}

#[test]
fn failing_second_source_leaves_the_outputs_of_the_first() {
    let project = Project::new(&["saxpy.cu"]);
    project.write("bad.cu", "int main() { return nothing; }\n");
    for (options, made) in
        [(["-cubin", "-c"], "saxpy.cubin"), (["-c", "-fatbin"], "saxpy.fatbin"), (["-dc", "-c"], "saxpy.o")]
    {
        let ran = run(&mut project.nvtune(&[&options[..], &["-arch=sm_90", "saxpy.cu", "bad.cu"]].concat()));
        assert_ne!(ran.code, Some(0), "{options:?}: {}", ran.stderr);
        assert_eq!(project.files(), ["bad.cu", "saxpy.cu", made, "saxpy.tune.h", "saxpy.tune.json"], "{options:?}");
        for file in [made, "saxpy.tune.h", "saxpy.tune.json"] {
            std::fs::remove_file(project.path(file)).expect("removed");
        }
    }
}

#[test]
fn ptx_wins_over_cubin_and_is_not_tuned() {
    let project = Project::new(&["saxpy.cu"]);
    for options in [["-ptx", "-cubin"], ["-cubin", "-ptx"]] {
        let ran = succeed(&mut project.nvtune(&[&options[..], &["-arch=sm_90", "saxpy.cu"]].concat()));
        assert!(ran.stderr.contains("not tuned: -ptx makes no machine code"), "{options:?}: {}", ran.stderr);
        assert!(project.path("saxpy.ptx").is_file() && !project.path("saxpy.cubin").exists(), "{options:?}");
    }
}

#[test]
fn cubin_wins_over_cuda_and_is_tuned() {
    let project = Project::new(&["saxpy.cu"]);
    let ran = succeed(&mut project.nvtune(&["-cuda", "-cubin", "-arch=sm_90", "saxpy.cu"]));
    assert!(!ran.stderr.contains("makes no machine code"), "{}", ran.stderr);
    assert!(project.path("saxpy.cubin").is_file() && project.path("saxpy.tune.json").is_file());
}

#[test]
fn source_that_is_not_tuned_gets_a_baseline_header() {
    for (options, mode) in [(vec!["-G"], "static"), (vec!["-dlto"], "static"), (vec![], "locked")] {
        let project = Project::new(&["tiled.cu"]);
        let mut arguments = compile("tiled.cu", "tiled.o");
        arguments.extend(options.iter().map(|option| (*option).to_owned()));
        succeed(project.nvtune(&arguments).env("NVTUNE", mode));
        let header = project.read("tiled.tune.h");
        assert!(header.contains("#define TILED_PROVENANCE \"baseline\""), "{options:?}: {header}");
        assert!(!project.files().contains(&"tiled.tune.json".to_owned()), "{options:?}: nothing was decided");
    }
}

#[test]
fn header_refuses_code_under_other_macros() {
    let project = Project::new(&["tiled.cu"]);
    succeed(&mut project.nvtune(&compile("tiled.cu", "tiled.o")));
    let mut arguments = compile("tiled.cu", "tiled.o");
    arguments.push("-DWORK=3".to_owned());
    let plain = run(&mut project.plain(&arguments));
    assert_ne!(plain.code, Some(0), "the header's grid is for another WORK than the code");
    assert!(plain.stderr.contains("build it with nvtune again, or remove this header"), "{}", plain.stderr);
}

#[test]
fn header_gives_the_launch_of_the_source_if_the_winner_has_other_macros() {
    let project = Project::new(&["tiled.cu"]);
    succeed(&mut project.nvtune(&compile("tiled.cu", "tiled.o")));
    let header = project.read("tiled.tune.h");
    // It is right for nvcc's kernel, whoever launches it in whatever way; the launch stub gives it to the winner.
    for line in ["#define TILED_BLOCK_X 256\n", "#define WORK 1\n", "(NVTUNE_AS(long long, n), 1LL)"] {
        assert!(header.contains(line), "{line}: {header}");
    }
    assert!(header.contains("#define TILED_WORK ") && !header.contains("#define TILED_WORK 1\n"), "{header}");
}

#[test]
fn errors_in_a_header_are_counted_for_the_source_that_includes_it() {
    let project = Project::new(&[]);
    std::fs::create_dir(project.path("src")).expect("a folder");
    project.write("src/a.cu", "#include \"k.cuh\"\n");
    // One is found in the comment itself, the other with what the compiler says of the kernel.
    for (clauses, line) in
        [("bock(256)", "unknown clause `bock`"), ("block(256) threads(n) args(n = 1, x = 2)", "`x` is ")]
    {
        project.write("src/k.cuh", &format!("//@tune {clauses}\n__global__ void k(int n, float *x) {{ x[0] = n; }}\n"));
        let ran = run(&mut project.nvtune(&compile("src/a.cu", "a.o")));
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.starts_with("src/k.cuh(1): error: ") && ran.stderr.contains(line), "{}", ran.stderr);
        assert!(ran.stderr.ends_with("\n1 error detected in the compilation of \"src/a.cu\".\n"), "{}", ran.stderr);
    }
}

#[test]
fn errors_of_all_kernels_are_counted_once() {
    let project = Project::new(&[]);
    let kernel = |name: &str| {
        format!(
            "//@tune block(256) threads(n) args(n = 1, x = 2)\n__global__ void {name}(int n, float *x) {{ x[0] = n; }}\n"
        )
    };
    project.write("a.cu", &(kernel("k") + &kernel("l")));
    let ran = run(&mut project.nvtune(&compile("a.cu", "a.o")));
    assert_eq!((ran.code, ran.stderr.matches(": error: ").count()), (Some(2), 2), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("\n\n2 errors detected in the compilation of \"a.cu\".\n"), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("detected in").count(), 1, "{}", ran.stderr);
}

#[test]
fn launch_by_an_argument_without_a_value_waits_for_a_recording() {
    let project = Project::new(&[]);
    let kernel = "__global__ void k(int n, float *x) { x[0] = n; }\n";
    project.write("a.cu", &format!("//@tune block({{128, 256}}) threads(n)\n{kernel}"));
    let ran = succeed(&mut project.nvtune(&compile("a.cu", "a.o")));
    let expected = "nvtune warning : k: not tuned: no value is given for `n` and no launch recorded: build with NVTUNE=capture and \
        run it [N0094]\n";
    assert_eq!(ran.stderr, expected);
    // A value that is given for another argument is a comment that waits for nothing.
    project.write("a.cu", &format!("//@tune block({{128, 256}}) threads(n) args(x = zeros[4])\n{kernel}"));
    let ran = run(&mut project.nvtune(&compile("a.cu", "a.o")));
    assert!(ran.code == Some(2) && ran.stderr.contains("parameter `n` of `k` has no value"), "{}", ran.stderr);
}

#[test]
fn comment_that_is_not_compiled_is_not_read() {
    let wrong = "//@tune bock(256)\n__global__ void old(int n) {}\n";
    let project = Project::new(&["saxpy.cu"]);
    project.write("old.cuh", wrong);
    let saxpy = project.read("saxpy.cu");
    for (text, line) in [
        (format!("#if 0\n{wrong}#endif\n{saxpy}"), None),
        (format!("#if 0\n#include \"old.cuh\"\n#endif\n{saxpy}"), None),
        (format!("{saxpy}#ifdef OLD\n{wrong}#else\n{}#endif\n", wrong.replace("old", "new_one")), Some(23)),
    ] {
        project.write("saxpy.cu", &text);
        let ran = run(&mut project.nvtune(&compile("saxpy.cu", "saxpy.o")));
        match line {
            None => {
                assert_eq!(ran.code, Some(0), "{text}{}", ran.stderr);
                assert!(ran.stderr.starts_with("nvtune: saxpy: "), "{text}{}", ran.stderr);
            }
            Some(line) => {
                assert_eq!(ran.code, Some(2), "{text}{}", ran.stderr);
                assert!(ran.stderr.starts_with(&format!("saxpy.cu({line}): error: ")), "{text}{}", ran.stderr);
                assert!(ran.stderr.contains("\n1 error detected"), "{text}{}", ran.stderr);
            }
        }
    }
}

#[test]
fn nothing_of_a_header_is_left_where_nvtune_is_off() {
    let project = Project::new(&["saxpy.cu"]);
    succeed(&mut project.plain(&reproducible("saxpy.cu", "same.o")));
    let expected = project.bytes("same.o");
    succeed(&mut project.nvtune(&compile("saxpy.cu", "saxpy.o")));
    assert!(project.path("saxpy.tune.h").is_file());
    succeed(project.nvtune(&reproducible("saxpy.cu", "same.o")).env("NVTUNE", "off"));
    assert!(project.bytes("same.o") == expected, "the header is read");
}

#[test]
fn sources_of_these_tests_are_tuned_without_warnings() {
    let sources = ["saxpy.cu", "tiled.cu", "two.cu"];
    let project = Project::new(&sources);
    for source in sources {
        let ran = succeed(project.nvtune(&compile(source, "out.o")).env("NVTUNE_STRICT", "1"));
        assert!(ran.stderr.lines().all(|line| line.starts_with("nvtune: ")), "{source}: {}", ran.stderr);
    }
}
