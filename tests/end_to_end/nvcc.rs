//! nvtune in nvcc's place, from end to end: what the build gets, through the real toolkit and without a GPU.

use super::measured::CAPS_WIN;
use super::project::{Project, nvcc, run, succeed};
use std::process::{Child, Command, Stdio};

const FLAGS: [&str; 3] = ["-O3", "-arch=sm_90", "-c"];

pub fn compile(source: &str, output: &str) -> Vec<String> {
    FLAGS.iter().copied().chain([source, "-o", output]).map(str::to_owned).collect()
}

/// Two compiles agree to the byte only when their temporary files have the same names.
fn reproducible(source: &str, output: &str) -> Vec<String> {
    let mut arguments = compile(source, output);
    arguments.push("-objtemp".to_owned());
    arguments
}

#[test]
fn a_build_goes_on_where_nobody_hears_what_is_said_of_it() {
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
fn an_unmarked_source_is_nvccs_alone() {
    let project = Project::new(&["plain.cu"]);
    succeed(&mut project.plain(&reproducible("plain.cu", "same.o")));
    let expected = project.bytes("same.o");
    std::fs::remove_file(project.path("same.o")).expect("removed");
    let before = project.files();
    let ran = succeed(&mut project.nvtune(&reproducible("plain.cu", "same.o")));
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert!(project.bytes("same.o") == expected, "the object differs from plain nvcc's");
    let mut after = project.files();
    after.retain(|name| name != "same.o");
    assert_eq!(after, before);
}

#[test]
fn what_was_surely_meant_as_a_tuning_comment_is_a_warning_and_the_build_is_nvccs() {
    let project = Project::new(&["plain.cu", "saxpy.cu"]);
    let plain = project.read("plain.cu");
    project.write("near.cuh", "// A header.\n//@Tune block(auto)\n");
    project.write("plain.cu", &format!("#include \"near.cuh\"\n// @param tune it\n{plain}"));
    succeed(&mut project.plain(&reproducible("plain.cu", "same.o")));
    let expected = project.bytes("same.o");
    std::fs::remove_file(project.path("same.o")).expect("removed");
    let mut nvtune = project.nvtune(&reproducible("plain.cu", "same.o"));
    let ran = succeed(nvtune.env("NVTUNE_STRICT", "1"));
    let warning = "near.cuh(2): warning: this comment does nothing: a tuning comment begins with //@tune\n  //@Tune block(auto)\n    ^~~~~\n\n";
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", warning));
    assert!(project.bytes("same.o") == expected, "the object differs from plain nvcc's");
    assert!(!project.files().iter().any(|name| name.contains(".tune.")));
    // Beside a marked kernel, and in a call that makes no code or that nvtune is to leave alone.
    let saxpy = project.read("saxpy.cu");
    project.write("saxpy.cu", &format!("#include \"near.cuh\"\n{saxpy}"));
    for (arguments, mode, count) in [
        (&["-arch=sm_90", "-c", "saxpy.cu", "-o", "saxpy.o"][..], "static", 1),
        (&["-arch=sm_90", "-c", "saxpy.cu", "plain.cu"], "static", 1),
        (&["-arch=sm_90", "-c", "plain.cu", "-o", "plain.o"], "off", 0),
        (&["-E", "plain.cu", "-o", "plain.ii"], "static", 0),
    ] {
        let ran = succeed(project.nvtune(arguments).env("NVTUNE", mode));
        assert_eq!(ran.stderr.matches("this comment does nothing").count(), count, "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn nvtune_off_and_calls_without_machine_code_are_nvccs_alone() {
    let project = Project::new(&["saxpy.cu"]);
    let cases: [(&[&str], &str); 3] = [
        (&["-O3", "-arch=sm_90", "-c", "saxpy.cu", "-o", "saxpy.o"], "off"),
        (&["-E", "saxpy.cu", "-o", "saxpy.ii"], "static"),
        (&["--dryrun", "-c", "saxpy.cu"], "static"),
    ];
    for (arguments, mode) in cases {
        let ran = succeed(project.nvtune(arguments).env("NVTUNE", mode));
        assert!(!ran.stderr.contains("nvtune"), "{arguments:?}: {}", ran.stderr);
        assert!(!project.files().iter().any(|name| name.contains(".tune.")), "{arguments:?}");
    }
}

#[test]
fn the_launcher_form_is_nvcc_too() {
    let project = Project::new(&["plain.cu"]);
    let nvtune = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nvtune"));
        command.current_dir(project.path("")).env_remove("NVTUNE_NVCC");
        command
    };
    succeed(nvtune().arg(nvcc()).args(compile("plain.cu", "path.o")));
    assert!(project.path("path.o").is_file());
    succeed(nvtune().arg("nvcc").args(compile("plain.cu", "name.o")).env("NVTUNE_NVCC", nvcc()));
    assert!(project.path("name.o").is_file());
    let version = succeed(nvtune().arg(nvcc()).arg("--version"));
    assert!(version.stdout.contains("Cuda compiler driver"), "{}", version.stdout);
}

#[test]
fn a_marked_source_gives_object_header_and_record() {
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
fn the_header_is_written_only_when_it_changes() {
    let project = Project::new(&["saxpy.cu"]);
    let written =
        || std::fs::metadata(project.path("saxpy.tune.h")).and_then(|data| data.modified()).expect("it is there");
    succeed(&mut project.nvtune(&compile("saxpy.cu", "saxpy.o")));
    let (first, text) = (written(), project.read("saxpy.tune.h"));
    succeed(&mut project.nvtune(&compile("saxpy.cu", "saxpy.o")));
    assert_eq!((written(), project.read("saxpy.tune.h")), (first, text));
}

#[test]
fn sources_of_one_name_in_different_folders_are_used_together() {
    let project = Project::new(&[]).with_cuda_headers();
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

#[test]
fn one_source_compiled_twice_at_once_reads_its_own_header_each_time_and_the_clash_is_told() {
    let project = Project::new(&[]);
    let text = "#if __has_include(\"kernel.tune.h\")\n#include \"kernel.tune.h\"\n#endif\n#ifndef TILE\n#define TILE 1\n#endif\n\
                #ifndef REAL\n#define REAL float\n#endif\n\
                //@tune threads(ceildiv(n, TILE)) block(256) regs({0}) define(TILE = {1, 2, 4}) args(n = 4096, x = random[n])\n\
                __global__ void k(int n, REAL *x) {\nconst int i = (blockIdx.x * blockDim.x + threadIdx.x) * TILE;\n\
                for (int j = i; j < i + TILE && j < n; ++j) x[j] += 1;\n}\nint tile = TILE;\n";
    project.write("kernel.cu", text);
    let objects = [("float", 2), ("double", 4)];
    let start = |(real, tile): (&str, u32)| {
        let times = r#"{"time_us": 10.0, "spread": 0.01}"#;
        let device = r#"{"name": "NVIDIA H200", "compute_capability": 90, "driver": 13000}"#;
        let recorded =
            format!(r#"{{"device": {device}, "entries": [{{"label": "TILE={tile}", "time_us": 5.0}}, {times}]}}"#);
        project.write(&format!("{real}.json"), &recorded);
        let mut arguments = compile("kernel.cu", &format!("{real}.o"));
        arguments.push(format!("-DREAL={real}"));
        let mut build = project.nvtune(&arguments);
        build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", format!("{real}.json")).stderr(Stdio::piped());
        build.spawn().expect("it starts")
    };
    let end = |built: Child| {
        let ended = built.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success(), "{said}");
        said
    };
    for _ in 0..5 {
        for built in objects.map(start) {
            end(built);
        }
    }
    project.write("main.cu", "#include <cstdio>\nextern int tile;\nint main() { std::printf(\"%d\", tile); }\n");
    for (real, tile) in objects {
        succeed(&mut project.plain(&["main.cu", &format!("{real}.o"), "-o", "tile"]));
        assert_eq!(succeed(&mut Command::new(project.path("tile"))).stdout, tile.to_string(), "{real}");
    }
    let clash = |said: String| {
        said.contains("'./kernel.tune.h' is of 'double.o' now, and was of 'float.o': where a source makes")
    };
    end(start(objects[0]));
    assert!(clash(end(start(objects[1]))), "the header was of the other object");
    assert!(!clash(end(start(objects[1]))), "and is its own now");

    // A copy of it all has the record of an object that is elsewhere.
    let copy = project.path("copy");
    std::fs::create_dir(&copy).expect("a folder");
    for name in ["kernel.tune.h", "kernel.tune.json", "double.o"] {
        std::fs::copy(project.path(name), copy.join(name)).expect("copied");
    }
    std::fs::write(copy.join("kernel.cu"), text.replace("{1, 2, 4}", "{1, 2}")).expect("written");
    let mut build = project.nvtune(&compile("kernel.cu", "double.o"));
    let ran = succeed(build.current_dir(&copy).env("NVTUNE_STRICT", "1"));
    assert!(!ran.stderr.contains("kernel.tune.h"), "{}", ran.stderr);
}

#[test]
fn the_dependency_file_names_the_header() {
    let project = Project::new(&["saxpy.cu"]).with_cuda_headers();
    let mut arguments = compile("saxpy.cu", "saxpy.o");
    arguments.extend(["-MD", "-MF", "saxpy.d"].map(str::to_owned));
    succeed(&mut project.nvtune(&arguments));
    let dependencies = project.read("saxpy.d");
    assert!(dependencies.contains("saxpy.tune.h"), "{dependencies}");
}

#[test]
fn only_the_fat_binary_differs_from_plain_nvccs_object() {
    let project = Project::new(&["two.cu"]).with_cuda_headers();
    succeed(&mut project.plain(&reproducible("two.cu", "same.o")));
    std::fs::rename(project.path("same.o"), project.path("plain.o")).expect("renamed");
    project.write("recorded.json", super::measured::CAPS_WIN);
    succeed(
        project
            .nvtune(&reproducible("two.cu", "same.o"))
            .env("NVTUNE", "measure")
            .env("NVTUNE_REPLAY", "recorded.json"),
    );
    let (plain, tuned) = (sections(&project.bytes("plain.o")), sections(&project.bytes("same.o")));
    let names = |all: &[(String, Vec<u8>)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&plain), names(&tuned));
    let different: Vec<&String> =
        plain.iter().zip(&tuned).filter(|(a, b)| a.1 != b.1).map(|((name, _), _)| name).collect();
    assert_eq!(different, [".nv_fatbin"]);
}

fn sections(object: &[u8]) -> Vec<(String, Vec<u8>)> {
    use object::{Object, ObjectSection};
    let file = object::File::parse(object).expect("an object file");
    let section = |section: object::Section<'_, '_>| {
        (section.name().expect("named").to_owned(), section.data().expect("readable").to_vec())
    };
    file.sections().map(section).collect()
}

#[test]
fn a_macro_axis_reaches_the_whole_file_and_the_header() {
    let project = Project::new(&["tiled.cu"]).with_cuda_headers();
    succeed(&mut project.nvtune(&compile("tiled.cu", "tiled.o")));
    let record = project.record("tiled.tune.json");
    let kernel = &record["kernels"][0];
    let winner = kernel["winner"].as_u64().expect("an index") as usize;
    let work = kernel["configurations"][winner]["macros"]["WORK"].as_i64().expect("a value");
    assert!(project.read("tiled.tune.h").contains(&format!("#define WORK {work}\n")));
    let variants = kernel["variants"].as_array().expect("a list");
    assert_eq!(variants.len(), 4, "each value of WORK gives other code");
    // The value is in the host code, too: `work()` returns it.
    let assembly = project.tool_of_host("objdump", &["-d", "--no-show-raw-insn", "tiled.o"]);
    let body = assembly.split("<_Z4workv>:").nth(1).expect("the function is there");
    assert!(body.lines().take(6).any(|line| line.contains(&format!("${work:#x}"))), "{body}");
}

#[test]
fn a_fat_build_and_a_program_in_one_call_are_tuned() {
    let project = Project::new(&["saxpy.cu"]).with_cuda_headers();
    let two = ["-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=[sm_90,compute_90]"];
    let mut arguments: Vec<&str> = two.to_vec();
    arguments.extend(["-O3", "-c", "saxpy.cu", "-o", "saxpy.o", "-t", "2"]);
    succeed(&mut project.nvtune(&arguments));
    assert_eq!(project.record("saxpy.tune.json")["kernels"][0]["architecture"], "sm_90");
    let images = project.tool("cuobjdump", &["-lelf", "-lptx", "saxpy.o"]);
    for image in ["sm_80.cubin", "sm_90.cubin", "sm_90.ptx"] {
        assert!(images.contains(image), "{images}");
    }
}

#[test]
fn where_tuning_cannot_apply_the_build_is_nvccs_and_one_line_says_why() {
    let project = Project::new(&["saxpy.cu"]);
    let cases: [(&[&str], &str); 3] = [
        (&["-G"], "-G compiles device code without optimisation"),
        (&["-dlto"], "no linked machine code"),
        (&["-arch=compute_90"], "no linked machine code"),
    ];
    for (options, reason) in cases {
        let mut arguments = vec!["-c", "saxpy.cu", "-o", "saxpy.o"];
        arguments.extend(options);
        let ran = succeed(&mut project.nvtune(&arguments));
        let lines: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("nvtune")).collect();
        assert!(matches!(lines.as_slice(), [line] if line.contains(reason)), "{options:?}: {}", ran.stderr);
        assert!(project.path("saxpy.o").is_file(), "{options:?}");
        let strict = run(project.nvtune(&arguments).env("NVTUNE_STRICT", "1"));
        assert_eq!(strict.code, Some(1), "{options:?}: {}", strict.stderr);
    }
}

/// What makes relocatable code hang on other files: a function of one, and a kernel that launches another.
const APART: &str = "\
__device__ float far(float);
__global__ void parent(const float *x, float *y) { first<<<1, 32>>>(32, x, y); }
//@tune threads(n) block(128) regs({0, 24}) default(block = 128) args(n = 1 << 16, x = random[n])
__global__ void calls(int n, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = far(x[i]);
}
";

#[test]
fn a_relocatable_kernel_that_needs_no_other_file_is_tuned_whatever_the_others_of_its_file_need() {
    let project = Project::new(&["two.cu"]).with_cuda_headers();
    project.write("two.cu", &format!("{}{APART}", project.read("two.cu")));
    project.write("recorded.json", CAPS_WIN);
    let mut arguments = compile("two.cu", "two.o");
    arguments.push("-rdc=true".to_owned());
    let mut call = project.nvtune(&arguments);
    let ran = succeed(call.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"));
    for line in [
        "calls: not tuned: its baseline (block=128) cannot be built or launched: it needs `far` of another file",
        "nvtune: first: block=128 regs=24 (1.",
        "nvtune: bounded: block=128 regs=32 (1.",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {}", ran.stderr);
    }
    // That what was built is not what was timed would be one.
    assert_eq!(ran.stderr.matches("nvtune warning").count(), 1, "{}", ran.stderr);
}

/// A kernel with a macro axis; `head` stands before it.
fn with_macro_axis(head: &str) -> String {
    format!(
        "{head}\n//@tune define(WORK = {{1, 2, 4, 8}}) block({{128, 256}}) regs({{0}}) default(block = 256, WORK = 1)\n\
         //@tune threads(ceildiv(n, WORK)) args(n = 1 << 20, x = random[n], y = out[n])\n\
         __global__ void part(int n, const float *x, float *y) {{\n\
             const int first = (blockIdx.x * blockDim.x + threadIdx.x) * WORK;\n\
             for (int k = 0; k < WORK; ++k)\n\
                 if (first + k < n) y[first + k] = x[first + k] * 2.0f;\n\
         }}\n"
    )
}

const GUARDED: &str = "#ifndef WORK\n#define WORK 1\n#endif";

#[test]
fn a_macro_that_nvtune_does_not_set_is_no_axis() {
    let cases: [(&str, &[&str], &str); 4] = [
        ("#define WORK 1", &[], "`WORK` is defined in part.cu(1) whatever nvtune sets"),
        ("#undef WORK\n#define WORK 8", &[], "`WORK` is defined in part.cu(2) whatever nvtune sets"),
        (GUARDED, &["-DWORK=1"], "`WORK` is defined in the command line whatever nvtune sets"),
        ("#ifndef WORK\n#define WORK 4\n#endif", &[], "is not what the source is without nvtune"),
    ];
    for (head, options, reason) in cases {
        let project = Project::new(&[]);
        project.write("part.cu", &with_macro_axis(head));
        let mut arguments = compile("part.cu", "part.o");
        arguments.extend(options.iter().map(|option| (*option).to_owned()));
        let ran = succeed(&mut project.nvtune(&arguments));
        let lines: Vec<&str> = ran.stderr.lines().collect();
        assert!(matches!(lines.as_slice(), [line] if line.contains(reason)), "{head}: {}", ran.stderr);
        assert_eq!(project.files(), ["part.cu", "part.o"], "{head}: a header would launch another grid");
    }
}

#[test]
fn a_macro_axis_does_not_reach_the_other_sources_of_a_call() {
    let project = Project::new(&[]);
    project.write("part.cu", &with_macro_axis(GUARDED));
    project.write("other.cu", "#define WORK 7\nint other() { return WORK; }\n");
    let both = ["-arch=sm_90", "-c", "part.cu", "other.cu"];
    let ran = succeed(&mut project.nvtune(&both));
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let reason = "-D would set its macros for the other sources of this call too; include \"part.tune.h\"";
    assert!(matches!(lines.as_slice(), [line] if line.contains(reason)), "{}", ran.stderr);
    // The header is asked for, but the source's own default stands before it: what is built is not what was scored.
    project.write("part.cu", &with_macro_axis(&format!("{GUARDED}\n#include \"part.tune.h\"")));
    let ran = succeed(&mut project.nvtune(&both));
    assert!(ran.stderr.contains("the tuned result is not used"), "{}", ran.stderr);
    let (header, record) = (project.read("part.tune.h"), project.record("part.tune.json"));
    assert!(header.contains("#define WORK 1\n") && header.contains("PROVENANCE \"baseline\""), "{header}");
    let kernel = &record["kernels"][0];
    assert_eq!((&kernel["provenance"], &kernel["winner"]), (&"baseline".into(), &kernel["baseline"]));
}

#[test]
fn a_result_that_cannot_be_kept_does_not_stop_the_build() {
    let project = Project::new(&["saxpy.cu"]);
    let nothing = succeed(&mut project.nvtune(&compile("saxpy.cu", "/dev/null")));
    assert_eq!((nothing.stderr.as_str(), project.files().as_slice()), ("", ["saxpy.cu".to_owned()].as_slice()));
    std::fs::create_dir_all(project.path("headers/saxpy.tune.h")).expect("a folder in the header's place");
    let ran = succeed(project.nvtune(&compile("saxpy.cu", "saxpy.o")).env("NVTUNE_HEADER_DIR", "headers"));
    assert_eq!(ran.stderr.matches("cannot write 'headers/saxpy.tune.h'").count(), 1, "{}", ran.stderr);
    assert!(project.path("saxpy.o").is_file());
}

#[test]
fn a_malformed_comment_is_an_error_with_its_place_and_leaves_nothing() {
    let project = Project::new(&[]);
    project.write(
        "bad.cu",
        "//@tune threads(n) bock(64:1024:32)\n//@tune args(n = 1 << 20, z = random[n])\n__global__ void k(int n, float *x) {}\n",
    );
    let ran = run(&mut project.nvtune(&compile("bad.cu", "bad.o")));
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    expect_test::expect_file!["sources/bad.stderr"].assert_eq(&ran.stderr);
    assert_eq!(project.files(), ["bad.cu"]);
}

#[test]
fn what_a_source_becomes_is_known_where_several_options_say_it() {
    // Where the second source fails, header and record stay beside what was made of the first, as nvcc leaves that.
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
    // What ends in PTX ends there, whatever else is asked for.
    for options in [["-ptx", "-cubin"], ["-cubin", "-ptx"]] {
        let ran = succeed(&mut project.nvtune(&[&options[..], &["-arch=sm_90", "saxpy.cu"]].concat()));
        assert!(ran.stderr.contains("not tuned: -ptx makes no machine code"), "{options:?}: {}", ran.stderr);
        assert!(project.path("saxpy.ptx").is_file() && !project.path("saxpy.cubin").exists(), "{options:?}");
    }
    let ran = succeed(&mut project.nvtune(&["-cuda", "-cubin", "-arch=sm_90", "saxpy.cu"]));
    assert!(!ran.stderr.contains("makes no machine code"), "{}", ran.stderr);
    assert!(project.path("saxpy.cubin").is_file() && project.path("saxpy.tune.json").is_file());
}

#[test]
fn parameters_that_a_macro_of_the_build_leaves_out_are_those_that_args_names() {
    let project = Project::new(&[]);
    let source = |given: &str| {
        format!(
            "struct Tree {{ int n; }};\n//@tune threads(n) block({{64, 128, 256}}) default(block = 128)\n\
             //@tune args(n = 1 << 20, x = random[n], y = out[n]{given})\n__global__ void k(\n#if SPATIAL\nTree tree,\n#endif\n\
             const float *x, float *y,\n#ifdef WIDE\nlong n\n#else\nint n\n#endif\n) {{\n\
             const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] * 2; }}\n"
        )
    };
    for (given, options) in [
        ("", &[][..]),
        ("", &["-DWIDE"]),
        (", tree = {n = 3}", &["-DSPATIAL=1"]),
        (", tree = {}", &["-DSPATIAL=1", "-DWIDE"]),
    ] {
        project.write("k.cu", &source(given));
        let ran = succeed(&mut project.nvtune(&[options, &["-arch=sm_90", "-c", "k.cu"]].concat()));
        assert!(
            !ran.stderr.contains("warning") && ran.stderr.contains("nvtune: k: block="),
            "{options:?}: {}",
            ran.stderr
        );
        assert_ne!(project.record("k.tune.json")["kernels"][0]["winner"], serde_json::Value::Null, "{options:?}");
    }
    let ran = succeed(&mut project.nvtune(&["-arch=sm_90", "-c", "k.cu"]));
    let hint = "no kernel `k` with 4 parameters; it is not tuned: of those under #if the ones count that args(...) gives a value";
    assert!(ran.stderr.contains(hint), "{}", ran.stderr);
}

/// A kernel with its comment, for launches of this block alone; with a macro of which this is the clause, or none.
fn copier(name: &str, way: &str, block: u32, guard: &str) -> String {
    let factor = if way.is_empty() { "2" } else { "WAY" };
    format!(
        "{guard}\n//@tune threads(n) block({block}) regs({{0, 32}}) {way} args(n = 4096, x = random[n], y = out[n])\n\
         __global__ void {name}(int n, const float *x, float *y) {{ int i = blockIdx.x * {block} + threadIdx.x; if (i < n) y[i] = {factor} * x[i]; }}\n"
    )
}

#[test]
fn of_alternatives_of_one_kernel_the_compiled_one_is_tuned() {
    let project = Project::new(&[]);
    let include = "#include \"copy.tune.h\"\n";
    let way = "define(WAY = {1, 2}) default(WAY = 1)";
    // Of the alternatives, where and else, that of this block is compiled.
    let alternatives = |name: &str, way: &str, first: &str, second: &str, block: u32| {
        format!(
            "{}{}#endif\nstatic_assert({}_BLOCK_X == {block}, \"of the other one\");\n",
            copier(name, way, 64, first),
            copier(name, way, 128, second),
            name.to_uppercase()
        )
    };
    let fast = "#if defined FAST || __CUDA_ARCH__ >= 900";
    let slow = "#if defined FASTER || __CUDA_ARCH__ >= 900";
    let copy = alternatives("copy", way, fast, "#else", 64);
    let several = [
        copy.clone(),
        alternatives("other", "", slow, "#else", 128),
        alternatives("apart", "", slow, "#endif\n#if !defined FASTER", 128),
    ];
    for (text, options, blocks) in [
        (several.concat(), &["-c", "-arch=sm_80", "-DFAST"][..], &[("copy", 64), ("other", 128), ("apart", 128)][..]),
        // No host code is compiled.
        (copy.clone(), &["-cubin", "-arch=sm_80", "-DFAST"], &[("copy", 64)]),
        // Each architecture has its own.
        (copy.clone(), &["-c", "-arch=sm_90"], &[("copy", 64)]),
        (copy, &["-c", "-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90"], &[("copy", 64)]),
    ] {
        project.write("copy.cu", &format!("{include}{text}"));
        for from_cache in [false, true] {
            let ran = succeed(&mut project.nvtune(&[&["copy.cu", "-o", "copy.o"], options].concat()));
            assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
            for (name, block) in blocks {
                let result = ran.stderr.lines().find(|line| line.starts_with(&format!("nvtune: {name}: ")));
                let told = result.is_some_and(|line| line.starts_with(&format!("nvtune: {name}: block={block} ")));
                assert!(told, "{options:?} {name}: {}", ran.stderr);
                assert!(!from_cache || result.is_some_and(|line| line.contains("from the cache")), "{}", ran.stderr);
            }
        }
    }
    // Who marked one of them has not marked the other.
    let other = "#else\n__global__ void copy(int n, const float *x, float *y) { y[n] = x[n]; }\n#endif\n";
    project.write("copy.cu", &format!("{}{other}", copier("copy", "", 64, "#ifdef FAST")));
    for (options, is_tuned) in [(&["-DFAST"][..], true), (&[], false)] {
        let ran = succeed(&mut project.nvtune(&[&["-cubin", "copy.cu", "-arch=sm_90"], options].concat()));
        assert_eq!(ran.stderr.starts_with("nvtune: copy: block=64 "), is_tuned, "{}", ran.stderr);
        assert!(is_tuned || ran.stderr.is_empty(), "{}", ran.stderr);
    }
    // Nor is what an earlier build said of it: the header has no word of a kernel that is not compiled.
    let host =
        "#ifdef COPY_BLOCK_X\nstatic_assert(USES_HEADER, \"\");\n#else\nstatic_assert(!USES_HEADER, \"\");\n#endif\n";
    let include = "#if __has_include(\"copy.tune.h\")\n#include \"copy.tune.h\"\n#endif\n";
    project.write("copy.cu", &format!("{include}{}{other}{host}", copier("copy", "", 64, "#ifdef FAST")));
    for (options, warm) in [("-DFAST", false), ("-DOTHER", false), ("-DOTHER", true), ("-DFAST", true)] {
        let uses = format!("-DUSES_HEADER={}", u8::from(options == "-DFAST"));
        let ran = run(&mut project.nvtune(&["-c", "copy.cu", "-arch=sm_90", options, &uses]));
        assert_eq!(ran.code, Some(0), "{options} {warm}: {}", ran.stderr);
    }
    // Alternatives may be files of their own; a kernel among a macro's arguments is seen, too.
    project.write("fast.cuh", &format!("#pragma once\n{}", copier("copy", "", 64, "")));
    project.write(
        "slow.cuh",
        &format!(
            "#ifndef S\n#define S\n#define IN(...) namespace of {{ __VA_ARGS__ }}\nIN(\n{}\n)\n#endif\n",
            copier("copy", "", 128, "")
        ),
    );
    project.write("copy.cu", "#ifdef FAST\n#include \"fast.cuh\"\n#else\n#include \"slow.cuh\"\n#endif\n");
    for (option, block) in [("-DFAST", 64), ("-DSLOW", 128)] {
        let ran = succeed(&mut project.nvtune(&["-cubin", "copy.cu", "-arch=sm_90", option]));
        let told = format!("nvtune: copy: block={block} ");
        assert!(ran.stderr.starts_with(&told) && !ran.stderr.contains("warning"), "{option}: {}", ran.stderr);
    }
    project.write("copy.cu", &alternatives("copy", way, fast, "#endif\n#if 1", 64));
    let ran = run(&mut project.nvtune(&["-c", "copy.cu", "-arch=sm_90"]));
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    for expected in ["macro `WAY` is already an axis", "two tuned kernels of this file are called `copy`"] {
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
}

#[test]
fn bad_surroundings_are_named() {
    let project = Project::new(&["saxpy.cu", "plain.cu"]);
    let missing = run(project.nvtune(&compile("plain.cu", "a.o")).env("NVTUNE_NVCC", "/nowhere/nvcc"));
    assert_eq!(missing.code, Some(1));
    assert_eq!(missing.stderr, "nvtune fatal   : NVTUNE_NVCC names '/nowhere/nvcc', which does not exist\n");
    let folder = run(&mut project.nvtune(&compile("saxpy.cu", "nowhere/a.o")));
    assert_eq!(folder.code, Some(1));
    assert_eq!(folder.stderr, "nvtune fatal   : output folder 'nowhere' does not exist; make it first\n");
    let setting = succeed(project.nvtune(&compile("saxpy.cu", "a.o")).env("NVTUNE_STRATEGY", "best"));
    let first = setting.stderr.lines().next();
    assert_eq!(
        first,
        Some(
            "nvtune warning : NVTUNE_STRATEGY='best' is not understood; expected one of refit, es, ros, pos, posf, ryoo"
        )
    );
}

#[test]
fn errors_of_the_call_are_nvccs_own_and_leave_nothing() {
    let project = Project::new(&["saxpy.cu"]);
    let cases: [&[&str]; 3] =
        [&["-c", "saxpy.cu", "-o"], &["-c", "saxpy.cu", "-I"], &["-c", "saxpy.cu", "-arch=sm_12", "-o", "saxpy.o"]];
    for arguments in cases {
        let ran = run(&mut project.nvtune(arguments));
        let plain = run(&mut project.plain(arguments));
        assert_eq!((ran.code, &ran.stderr), (plain.code, &plain.stderr), "{arguments:?}");
        assert_ne!(ran.code, Some(0), "{arguments:?}");
        assert_eq!(project.files(), ["saxpy.cu"], "{arguments:?}");
    }
}

#[test]
fn errors_of_the_source_are_nvccs_own() {
    let project = Project::new(&[]).with_cuda_headers();
    let kernel = "//@tune threads(n) block(auto) args(n = 1024, x = out[n])\n__global__ void k(int n, float *x) { undeclared; }\n";
    project.write("wrong.cu", kernel);
    let ran = run(&mut project.nvtune(&compile("wrong.cu", "wrong.o")));
    let plain = run(&mut project.plain(&compile("wrong.cu", "wrong.o")));
    assert_eq!((ran.code, &ran.stderr), (plain.code, &plain.stderr));
    assert_eq!(project.files(), ["wrong.cu"]);
}

#[test]
fn a_source_finds_its_header_where_nothing_is_tuned_too() {
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
fn a_tuned_header_refuses_code_under_other_macros() {
    let project = Project::new(&["tiled.cu"]);
    succeed(&mut project.nvtune(&compile("tiled.cu", "tiled.o")));
    let mut arguments = compile("tiled.cu", "tiled.o");
    arguments.push("-DWORK=3".to_owned());
    let plain = run(&mut project.plain(&arguments));
    assert_ne!(plain.code, Some(0), "the header's grid is for another WORK than the code");
    assert!(plain.stderr.contains("build it with nvtune again, or remove this header"), "{}", plain.stderr);
}

#[test]
fn a_buffer_of_structures_is_made_of_what_the_comment_says() {
    let project = Project::new(&[]);
    let kernel = |argument: &str| {
        format!(
            "struct Point {{ float x, y; }};\n//@tune threads(n) block(auto)\n//@tune args(n = 1 << 20, {argument}, length = out[n])\n\
             __global__ void lengths(int n, const Point *points, float *length) {{\n\
             int i = blockIdx.x * blockDim.x + threadIdx.x;\n if (i < n) length[i] = points[i].x + points[i].y;\n}}\n"
        )
    };
    let cases = [
        ("float points = random[2 * n]", None),
        ("uint points = random(0, n - 1)[2 * n]", None),
        ("points = random[n]", Some("say what numbers it is made of, as in float points = random[2 * n]")),
        ("Point points = random[n]", Some("`Point` is no type that a buffer is filled with")),
        ("float n2 = random[n]", Some("has no parameter `n2`")),
    ];
    for (argument, problem) in cases {
        project.write("points.cu", &kernel(argument));
        let ran = run(&mut project.nvtune(&compile("points.cu", "points.o")));
        assert_eq!(ran.code, Some(if problem.is_some() { 2 } else { 0 }), "{argument}: {}", ran.stderr);
        assert!(ran.stderr.contains(problem.unwrap_or("nvtune: lengths: ")), "{argument}: {}", ran.stderr);
    }
}

#[test]
fn a_field_that_points_to_structures_is_made_of_what_the_comment_says() {
    let project = Project::new(&[]);
    let kernel = |field: &str| {
        format!(
            "struct Point {{ float x, y; }};\nstruct Cloud {{ const Point *points; int n; }};\n\
             //@tune threads(cloud.n) block({{64, 256}}) default(block = 256) regs({{0}})\n\
             //@tune args(cloud = {{n = 1 << 18, {field}}}, length = out[cloud.n])\n\
             __global__ void lengths(Cloud cloud, float *length) {{\n\
             int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
             if (i < cloud.n) length[i] = cloud.points[i].x + cloud.points[i].y;\n}}\n"
        )
    };
    let cases = [
        ("float points = random[2 * cloud.n]", None),
        ("points = nullptr", None),
        ("points = random[1 << 18]", Some("say what numbers it is made of, as in float cloud.points = random[2 * n]")),
        ("Point points = random[1 << 18]", Some("`Point` is no type that a buffer is filled with")),
        ("float m = 3", Some("no member \"m\"")),
    ];
    for (field, problem) in cases {
        project.write("cloud.cu", &kernel(field));
        let ran = run(&mut project.nvtune(&compile("cloud.cu", "cloud.o")));
        assert_eq!(ran.code, Some(if problem.is_some() { 2 } else { 0 }), "{field}: {}", ran.stderr);
        assert!(ran.stderr.contains(problem.unwrap_or("nvtune: lengths: ")), "{field}: {}", ran.stderr);
    }
}

/// A kernel of which no comment can give all parameters.
const HELD_BACK: &str = "\
__global__ void rows(int w, int h, float *const *rows, cudaTextureObject_t image, float *out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) out[y * w + x] = rows[y][x] + tex2D<float>(image, x, y);
}
";

#[test]
fn what_takes_no_value_may_be_left_out_and_the_others_tell_the_launch() {
    let project = Project::new(&[]).with_cuda_headers();
    let ran = |args: &str| {
        let comment = "//@tune threads(w, h) block({32, 64}, {1, 4}) default(block = {32, 4}) regs({0})";
        project.write("rows.cu", &format!("{comment}\n//@tune {args}\n{HELD_BACK}"));
        run(&mut project.nvtune(&compile("rows.cu", "rows.o")))
    };
    for args in ["args(w = 1920, h = 1080)", "args(w = 1920, h = 1080, rows = nullptr, out = out[w * h])"] {
        let ran = ran(args);
        assert!(ran.code == Some(0) && ran.stderr.starts_with("nvtune: rows: block="), "{args}: {}", ran.stderr);
        assert!(project.read("rows.tune.h").contains("static dim3 grid(int w, int h)"), "{args}");
    }
    let short = ran("args(w = 1920)");
    assert!(short.code == Some(2) && short.stderr.contains("`h` has no value; add args(h = ...)"), "{}", short.stderr);
    let all = ran("args(w = 1920, h = 1080, rows = zeros[4], image = 0, out = out[w * h])");
    for line in [
        "error: `rows` is of type `float *const *`: buffers hold numbers, not pointers",
        "error: `image` is a texture, which a comment cannot describe",
        "note: leave it out of args(...): the others then tell the launch, and `rows` is tuned by the model alone",
    ] {
        assert!(all.code == Some(2) && all.stderr.contains(line), "{line}: {}", all.stderr);
    }
}

/// Vectors are listed as C does it, and arrays are numbers side by side, however a pointer to them is declared.
#[test]
fn vectors_and_pointers_to_arrays_take_values() {
    let project = Project::new(&[]);
    // Strictly: where a number is not what it is given, nobody does anything, which is a warning.
    let strict = |args: &str| {
        project.write(
            "v.cu",
            &format!(
                "//@tune threads(n) block({{64, 128}}) default(block = 128) regs({{0}})\n//@tune args(n = 1 << 16, {args})\n\
                 __global__ void k(int n, const float2 v, float4 w, float (*rows)[4], const int columns[][2][2], float3 *points) {{\n\
                 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
                 if (i < n && v.x == 1 && v.y == 2.5f && w.z == 3 && w.w == 0 && columns[i][1][1] == 4 * i + 3) rows[i][i % 4] += points[i].x;\n}}\n"
            ),
        );
        run(project.nvtune(&compile("v.cu", "v.o")).env("NVTUNE_STRICT", "1"))
    };
    let good = "v = {1, 2.5}, w = {1, 2, 3}, rows = random[4 * n], columns = iota[4 * n], points = zeros[n]";
    let ran = strict(good);
    assert!(ran.code == Some(0) && ran.stderr.starts_with("nvtune: k: "), "{}", ran.stderr);
    for (from, to, message) in [
        ("{1, 2.5}", "{x = 1, y = 0}", "`k` does nothing on this workload"),
        ("{1, 2.5}", "{1, 2.5, 3}", "`v` is of type `float2`: give its fields, as in v = {x = 1, y = 1}"),
        ("{1, 2.5}", "1", "`v` is of type `float2`: give its fields, as in v = {x = 1, y = 1}"),
        (", rows = random[4 * n]", "", "parameter `rows` of `k` has no value"),
    ] {
        let ran = strict(&good.replacen(from, to, 1));
        assert!(ran.code != Some(0) && ran.stderr.contains(message), "{to}: {}", ran.stderr);
    }
}

/// A structure whose type is an instance of a template in a namespace without a name, and a constant structure.
const UNNAMED: &str = "\
struct Scale { float by, plus; };
__constant__ Scale scale;
namespace a { namespace {
template <typename T, int N> struct Tuple { T v[N]; };
//@tune template(float, 4, Tuple<float, 4>) threads(n) block({64, 256}) default(block = 256) regs({0})
//@tune args(n = 1 << 18, float x = random[4 * n], float y = out[4 * n], p = {v = {1, 2, 3, 4}}) symbol(float scale = {2, 1})
template <typename T, int N, class W> __global__ void k(int n, const W *x, W *y, W p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int j = 0; j < N; ++j) if (i < n && p.v[3] == 4) y[i].v[j] = x[i].v[j] * p.v[j] * scale.by + scale.plus;
}
}
void go(int n, Tuple<float, 4> *x, Tuple<float, 4> *y) { k<float, 4, Tuple<float, 4>><<<n / 256, 256>>>(n, x, y, {}); }
}
";

#[test]
fn structures_of_namespaces_without_a_name_and_constant_ones_are_given() {
    let project = Project::new(&[]).with_cuda_headers();
    project.write("unnamed.cu", UNNAMED);
    // Strictly: where `p` is not what it is given, nobody does anything, which is a warning.
    let ran = run(project.nvtune(&compile("unnamed.cu", "unnamed.o")).env("NVTUNE_STRICT", "1"));
    assert!(ran.code == Some(0) && ran.stderr.starts_with("nvtune: k_float_4_Tuple_float_4"), "{}", ran.stderr);
    project.write("unnamed.cu", &UNNAMED.replace("float scale =", "scale ="));
    let ran = run(&mut project.nvtune(&compile("unnamed.cu", "unnamed.o")));
    let said =
        "`scale` has elements of type `Scale`: say what numbers it is made of, as in symbol(float scale = random[4])";
    assert!(ran.code == Some(2) && ran.stderr.contains(said), "{}", ran.stderr);
}

/// Parameters whose types hang on arguments of the template: a class of a number, typedefs of a class, of numbers and of pointers, in the
/// company of a function and a pack among the arguments.
const DEPENDENT: &str = "\
namespace { template <int N, class T> struct Tuple { T v[N]; }; enum class Mode : short { A = 1, B }; }
template <class T> struct Traits { typedef const T *in; using out = T *; typedef unsigned number; typedef double sum; };
struct Cell { float a, b; };
__device__ float twice(float a) { return 2 * a; }
//@tune template(4, float, twice, int, char) threads(n) block({64, 256}) default(block = 256) regs({0})
//@tune args(n = 1 << 18, p = {v = {1, 2, 3, 4}}, mode = 2, sum = 1.5, x = random[n], y = out[n])
template <int N, class T, float (*F)(float), class... A>
__global__ void k(typename Traits<T>::number n, Tuple<N, T> p, Mode mode, typename Traits<T>::sum sum, typename Traits<T>::in x, typename Traits<T>::out y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && p.v[3] == 4 && mode == Mode::B && sum == 1.5) y[i] = F(x[i]) + sizeof...(A);
}
void go(int n, const float *x, float *y) { k<4, float, twice, int, char><<<n / 256, 256>>>(n, {}, Mode::A, 1, x, y); }
";

/// Builds a source for which each warning is an error, as that a kernel does nothing, and says a line that begins so; then the same with one
/// text in place of another, which must be told.
fn told_strictly(source: &str, begins: &str, cases: &[(&str, &str, &str)]) {
    let project = Project::new(&[]);
    let strict = |text: &str| {
        project.write("strict.cu", text);
        let mut call = compile("strict.cu", "strict.o");
        call.push("-std=c++17".to_owned());
        run(project.nvtune(&call).env("NVTUNE_STRICT", "1"))
    };
    let ran = strict(source);
    assert!(ran.code == Some(0) && ran.stderr.starts_with(begins), "{}", ran.stderr);
    for (from, to, message) in cases {
        assert!(source.contains(from), "{from}");
        let ran = strict(&source.replacen(from, to, 1));
        assert!(ran.code != Some(0) && ran.stderr.contains(message), "{to}: {}", ran.stderr);
    }
}

#[test]
fn types_that_hang_on_the_arguments_of_a_template_are_the_compilers() {
    // Where one of the values were another, nobody would do anything.
    told_strictly(
        DEPENDENT,
        "nvtune: k_4_float_twice_int_char: ",
        &[
            ("sum = 1.5,", "sum = 1,", "does nothing on this workload"),
            ("mode = 2", "mode = 1", "does nothing on this workload"),
            ("n = 1 << 18", "n = -1", "note: `n` is given here"),
            ("{v = {1", "{w = {1", "class \"<unnamed>::Tuple<4, float>\" has no member \"w\""),
            ("x = random[n]", "x = 1", "`x` is of type `const float *` and takes a buffer"),
        ],
    );
}

/// Enumerations, an array in a structure, lists and the instances of a variable template, with what must not be said of them.
const VALUES: &str = "\
enum class Mode : short { A = -1, B };
struct Tag {};
struct Plan { float *d; int sizes[2][2]; Mode mode; float2 v[3]; };
template <class T, int N> __constant__ T lut[N];
namespace ns { __constant__ unsigned char key[8]; }
//@tune threads(1 << 20) block({64, 256}) default(block = 256) regs({0})
//@tune args(p = {d = random[1 << 20], sizes = {1 << 20, 2}, mode = -1, v = random[3]}, table = {34, 5, 4}[9], tag = {}, m = -1)
//@tune symbol(lut<int, 4> = {1, 2}, ns::key = {1, 2, 0xff})
__global__ void k(Plan p, const unsigned char *table, Tag tag, Mode m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < p.sizes[0][0] && m == Mode::A && p.mode == Mode::A)
        p.d[i] += table[i % 9] + p.v[i % 3].x + lut<int, 4>[i % 4] + ns::key[i % 8] + lut<short, 2>[i % 2];
}
";

#[test]
fn values_of_the_sources_own_types_are_given_and_checked() {
    // Were `m` or `p.mode` not -1, or `p.sizes[0][0]` not what it is given, the kernel would do nothing.
    told_strictly(
        VALUES,
        "nvtune: k: ",
        &[
            ("m = -1)", "m = 0)", "`k` does nothing on this workload"),
            ("mode = -1", "mode = 0", "does nothing on this workload"),
            ("sizes = {1 << 20, 2}", "sizes = {0, 1 << 20}", "does nothing on this workload"),
            ("m = -1)", "m = 1 << 15)", "`m` is of type `short` and cannot be 32768: it holds -32768 to 32767"),
            ("m = -1)", "m = {1, 2})", "`m` is of type `short` and takes one value, not a list"),
            (
                "m = -1)",
                "m = C)",
                "unknown name `C`: where it is an enumerator or a constant of the source, give its value",
            ),
            ("m = -1)", "m = Mode::C)", "`Mode::` names something of the source, which a comment does not know"),
            ("m = -1)", "m = Mode::B)", "`k` does nothing on this workload"),
            ("{34, 5, 4}[9]", "{}", "`table` is of type `const unsigned char *`, which has no fields"),
            ("{34, 5, 4}", "{34, 500, 4}", "`table[1]` is of type `unsigned char` and cannot be 500"),
            ("4}[9]", "4}[2]", "3 values are listed for `table`, which has 2 of them"),
            ("{1 << 20, 2}", "{1, 2, 3, 4, 5}", "`p.sizes` is of type `int[2][2]`, and is given 5 elements"),
            ("{1 << 20, 2}", "4", "`p.sizes` is of type `int[2][2]`: an array in a structure takes a list"),
            ("0xff}", "3, 4, 5, 6, 7, 8, 9}", "variable `ns::key` has 8 bytes, and is given 9"),
            (
                "symbol(lut<int, 4>",
                "symbol(int lut",
                "`lut` is a template: say which instance is given, of those that this file makes: `lut<int, 4>`, `lut<short, 2>`",
            ),
            (
                "symbol(lut<int, 4>",
                "symbol(lut<int, 5>",
                "the compilation has no variable `lut<int, 5>`, only `lut<int, 4>`, `lut<short, 2>`; `k` is not tuned",
            ),
        ],
    );
}

/// Expressions take a constant for what its file, or one that is included with quotes, defines it as; where a build makes it another one, that is said.
#[test]
fn constants_as_template_arguments_have_a_value_that_the_compiler_agrees_with() {
    let project = Project::new(&[]);
    project.write(
        "sizes.h",
        "#ifndef SIZE\n#define SIZE 8\n#endif\nenum { NO_ROWS, ROWS = 8 };\nnamespace sizes { constexpr int WIDTH = ROWS; }\n",
    );
    let source = |name: &str, definition: &str, argument: &str| {
        format!(
            "{definition}\n//@tune template({argument}) threads(ceildiv(n, N)) block({{64, 128}}) default(block = 128)\n\
             //@tune args(n = 1 << 16, x = random[n])\ntemplate <int N>\n__global__ void {name}(int n, float *x) {{\n\
             const int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;\n\
             for (int i = first; i < first + N && i < n; ++i) x[i] += 1;\n}}\n\
             void all_{name}(int n, float *x) {{ {name}<{argument}><<<(n / {argument} + 127) / 128, 128>>>(n, x); }}\n"
        )
    };
    let given = "#ifndef GIVEN\n#define GIVEN 8\n#endif";
    // The macros of a build, and of each kernel of its file the definition, the argument and what is said.
    for (macros, kernels) in [
        (
            &[][..],
            &[
                ("constexpr int ITEMS = 1 << 3;", "ITEMS", ""),
                ("enum { NONE, ENTRIES = 8 };", "ENTRIES", ""),
                ("#define HALF 4\n#define WHOLE (HALF * 2)", "WHOLE", ""),
                ("namespace ns { struct S { static constexpr int WITHIN{8}; }; }", "ns::S::WITHIN", ""),
                (given, "GIVEN", ""),
                ("#include \"sizes.h\"", "ROWS", ""),
                ("", "sizes::WIDTH", ""),
            ][..],
        ),
        (
            &["-DGIVEN=4", "-DSIZE=4"],
            &[
                (
                    given,
                    "GIVEN",
                    "a.cu(4): warning: `GIVEN` is 4 in this build, and 8 where the source defines it: write the number in `template`; `k0` is not tuned",
                ),
                (
                    "#include \"sizes.h\"",
                    "SIZE",
                    "a.cu(13): warning: `SIZE` is 4 in this build, and 8 where the source defines it: write the number in `template`; `k1` is not tuned",
                ),
            ],
        ),
        (&["-DSIZE=16"], &[("#define SIZE 16\n#include \"sizes.h\"", "SIZE", "")]),
    ] {
        let text = |(number, &(definition, argument, _)): (usize, &(&str, &str, &str))| {
            source(&format!("k{number}"), definition, argument)
        };
        project.write("a.cu", &kernels.iter().enumerate().map(text).collect::<String>());
        let ran = run(project.nvtune(&compile("a.cu", "a.o")).args(macros).env("NVTUNE", "static"));
        assert_eq!(ran.code, Some(0), "{macros:?}: {}", ran.stderr);
        for (number, (definition, argument, said)) in kernels.iter().enumerate() {
            let tuned = format!("nvtune: k{number}_{}", argument.replace("::", "_"));
            assert_eq!(ran.stderr.contains(&tuned), said.is_empty(), "{definition}: {}", ran.stderr);
            assert!(ran.stderr.contains(said), "{definition}: {}", ran.stderr);
        }
    }
}

/// Templates of one name with as many parameters are overloads, which the types of these tell apart.
#[test]
fn instances_of_overloaded_templates_are_told_apart_by_their_parameters() {
    let project = Project::new(&[]);
    let build = |launches: &str| {
        let text = format!(
            "//@tune template(float) threads(n) block({{64, 128}}) default(block = 128)\n//@tune args(n = 1 << 16, x = random[n])\n\
             template <typename T> __global__ void k(T *x, int n) {{ if (threadIdx.x < n) x[blockIdx.x * blockDim.x + threadIdx.x] += 1; }}\n\
             template <typename T> __global__ void k(double *x, T a) {{ x[blockIdx.x * blockDim.x + threadIdx.x] += a; }}\n\
             //@tune name(numbered) template(4) threads(n) block({{64, 128}}) default(block = 128)\n//@tune args(n = 1 << 16, x = random[n])\n\
             template <int N> __global__ void k(float *x, int n) {{ if (threadIdx.x < n) x[blockIdx.x * blockDim.x + threadIdx.x] += N; }}\n\
             void all(int n, float *x, double *y) {{ k<4><<<n / 128, 128>>>(x, n); {launches} }}\n"
        );
        project.write("a.cu", &text);
        let ran = run(project.nvtune(&compile("a.cu", "a.o")).env("NVTUNE", "static"));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stderr
    };
    let said = build("k<float><<<n / 128, 128>>>(x, n); k<float><<<n / 128, 128>>>(y, 2.0f);");
    assert!(said.contains("nvtune: k_float") && !said.contains("not tuned"), "{said}");
    assert!(said.contains("nvtune: numbered"), "{said}");
    // What is there is the other overload's.
    let said = build("k<float><<<n / 128, 128>>>(y, 2.0f);");
    let why = "a.cu(3): warning: the compilation has no kernel `k` with parameters of these types, for those of its name take (double *, float); it is not tuned";
    assert!(said.contains(why) && said.contains("nvtune: numbered"), "{said}");
}

/// The numbers of the source's constants stand in a comment by their names; where a build makes them others, that is said.
#[test]
fn constants_of_the_source_and_of_what_it_includes_are_known_and_checked() {
    let project = Project::new(&[]);
    project.write(
        "limits.h",
        "#ifndef THREADS\n#define THREADS (4 * WARP)\n#endif\nenum { WARP = 32 };\n__constant__ float bias;\n",
    );
    project.write(
        "a.cu",
        "#include \"limits.h\"\nnamespace ns { constexpr int ROWS = 1 << 16; }\n\
         //@tune block({64, THREADS}) threads(n) default(block = THREADS) regs({0})\n\
         //@tune args(n = ns::ROWS, x = random[ROWS]) symbol(bias = 2)\n\
         __global__ void k(int n, float *x) {\n    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         if (i < n) x[i] += bias;\n}\n\
         void all(float *x) { k<<<ns::ROWS / THREADS, THREADS>>>(ns::ROWS, x); }\n",
    );
    let compiled = |options: &[&str]| {
        let mut call = project.nvtune(&compile("a.cu", "a.o"));
        run(call.args(options).env("NVTUNE", "static"))
    };
    let ran = compiled(&[]);
    assert!(ran.code == Some(0) && ran.stderr.contains("nvtune: k: block=128"), "{}", ran.stderr);
    let ran = compiled(&["-DTHREADS=64"]);
    let said = "a.cu(3): warning: `THREADS` is another number in this build than 128, which the source defines it as: write the number; `k` is not tuned";
    assert!(ran.code == Some(0) && ran.stderr.contains(said), "{}", ran.stderr);
    // What a result hangs on is the number, too.
    project.write("limits.h", "enum { WARP = 32, THREADS = 2 * WARP };\n__constant__ float bias;\n");
    let ran = compiled(&[]);
    assert!(ran.stderr.contains("nvtune: k: block=64 ") && !ran.stderr.contains("from the cache"), "{}", ran.stderr);
}

/// A comment whose expressions do not ask for a number is as good in a build that makes it another one, and a type may be called as an
/// enumerator is.
#[test]
fn arguments_that_no_expression_asks_for_are_the_compilers_alone() {
    let project = Project::new(&[]);
    let tuned = |head: &str, macros: &str| {
        let text = format!(
            "#ifndef ITEMS\n#define ITEMS 8\n#endif\nstruct Half {{ float x; }};\nenum class Kind {{ Whole, Half }};\n{head}\n\
             //@tune args(n = 1 << 16, x = random[n]) block({{64, 128}}) default(block = 128)\n\
             template <int N, typename T>\n__global__ void k(int n, float *x) {{\n\
             const int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;\n\
             for (int i = first; i < first + N && i < n; ++i) x[i] += sizeof(T);\n}}\n\
             void all(int n, float *x) {{ k<ITEMS, Half><<<n / 128, 128>>>(n, x); }}\n"
        );
        project.write("a.cu", &text);
        let mut call = project.nvtune(&compile("a.cu", "a.o"));
        call.args((!macros.is_empty()).then_some(macros));
        run(call.env("NVTUNE", "static")).stderr
    };
    for (head, macros) in [
        ("//@tune template(ITEMS, Half) threads(n)", ""),
        ("//@tune template(ITEMS, Half) threads(n)", "-DITEMS=4"),
        ("//@tune template(ITEMS, Half) threads(ceildiv(n, N))", ""),
        ("//@tune template(ITEMS, Half) threads(n) define(ITEMS = {8, 4})", ""),
    ] {
        let said = tuned(head, macros);
        assert!(said.contains("nvtune: k_") && !said.contains("not tuned"), "{head} {macros}: {said}");
    }
}

#[test]
fn errors_in_a_header_are_counted_for_the_source_that_includes_it() {
    let project = Project::new(&[]);
    std::fs::create_dir(project.path("src")).expect("a folder");
    project.write("src/a.cu", "#include \"k.cuh\"\n");
    // One is found in the comment itself, the other with what the compiler says of the kernel.
    for (clauses, line) in [("bock(256)", "unknown clause `bock`"), ("block(256) threads(n)", "`n` has no value")] {
        project.write("src/k.cuh", &format!("//@tune {clauses}\n__global__ void k(int n, float *x) {{ x[0] = n; }}\n"));
        let ran = run(&mut project.nvtune(&compile("src/a.cu", "a.o")));
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.starts_with("src/k.cuh(1): error: ") && ran.stderr.contains(line), "{}", ran.stderr);
        assert!(ran.stderr.ends_with("\n1 error detected in the compilation of \"src/a.cu\".\n"), "{}", ran.stderr);
    }
}

#[test]
fn macros_that_are_varied_in_vain_are_told_of() {
    let project = Project::new(&[]);
    let source = |head: &str, factor: &str, launch: &str| {
        format!(
            "#ifndef WORK\n#define WORK 1\n#endif\n\
             //@tune {head}\n\
             __global__ void k(int n, float *x) {{\n\
             const int i = blockIdx.x * blockDim.x + threadIdx.x;\n if (i < n) x[i] *= {factor};\n}}\n\
             void go(int n, float *x) {{ {launch}<<<(n + 127) / 128, 128>>>(n, x); }}\n"
        )
    };
    let clauses = "define(WORK = {1, 4, 8}) threads(n) block({64, 128}) default(block = 128, WORK = 1)\n\
                   //@tune args(n = 1 << 20, x = random[n])";
    let templated = format!("template(WORK) {clauses}\ntemplate <int N>");
    for (text, said) in [
        // The source makes its instances without the macro.
        (source(&templated, "N", "k<1>"), Some("with -DWORK=4 because `k` has no instance <4>: this file makes <1>")),
        (
            source(clauses, "[] { static_assert(WORK < 3, \"too much\"); return WORK; }()", "k"),
            Some("with -DWORK=4 because cicc failed: vain.cu(8): error: static assertion failed with \"too much\""),
        ),
        // Some of an axis is no more than narrow.
        (source(clauses, "[] { static_assert(WORK < 5, \"too much\"); return WORK; }()", "k"), None),
    ] {
        project.write("vain.cu", &text);
        let ran = succeed(&mut project.nvtune(&compile("vain.cu", "vain.o")));
        let warned = ran.stderr.lines().find(|line| line.starts_with("nvtune warning"));
        match said {
            Some(said) => {
                let line = warned.unwrap_or_default();
                assert!(
                    line.contains(": its macros are varied in vain: no value but the baseline's gives code, "),
                    "{line}"
                );
                assert!(line.ends_with(said), "{}", ran.stderr);
            }
            None => assert_eq!(warned, None, "{}", ran.stderr),
        }
    }
}

#[test]
fn a_macro_that_is_also_a_name_of_the_headers_is_named_and_leaves_other_kernels_alone() {
    let project = Project::new(&[]);
    let source = |value: &str| {
        let kernel = |name: &str, clauses: &str, factor: &str| {
            format!(
                "//@tune {clauses} threads(n) block({{64, 256}}) default(block = 256)\n\
                 //@tune args(n = 1 << 20, x = random[n], y = out[n])\n\
                 __global__ void {name}(int n, const float *x, float *y) {{\n\
                 int i = blockIdx.x * blockDim.x + threadIdx.x;\n if (i < n) y[i] = x[i] * {factor};\n}}\n"
            )
        };
        format!(
            "template <class U> struct Twice {{ template <class V> V of(V T, U) {{ return 2 * T; }} }};\n\
             #ifndef T\n#define T {value}\n#endif\n#ifndef SCALE\n#define SCALE 1\n#endif\n{}{}{}",
            kernel("before", "", "2"),
            kernel("k", "define(T = {1, 2}, LONGER = {3, 4})", "T"),
            kernel("after", "define(SCALE = {1, 2})", "SCALE"),
        )
    };
    project.write("clash.cu", &source("1"));
    let ran = succeed(&mut project.nvtune(&compile("clash.cu", "clash.o")));
    let [before, after, line] = ran.stderr.lines().collect::<Vec<_>>()[..] else { panic!("{}", ran.stderr) };
    assert!(before.starts_with("nvtune: before: block="), "{before}");
    assert!(line.starts_with("nvtune warning : k: not tuned: with -DT=1 the source does not compile"), "{line}");
    assert!(line.contains("give the macro a longer one; cicc failed: "), "{line}");
    assert!(after.starts_with("nvtune: after: block="), "{after}");
    // What nvcc refuses as well is nvcc's to say.
    project.write("clash.cu", &source("1\n#error no"));
    let ran = run(&mut project.nvtune(&compile("clash.cu", "clash.o")));
    assert!(ran.code != Some(0) && !ran.stderr.contains("-DT=1"), "{}", ran.stderr);
}

#[test]
fn what_the_assembler_refuses_is_said_by_nvcc_alone() {
    let project = Project::new(&[]);
    project.write(
        "old.cu",
        "//@tune threads(n) block({64, 256}) default(block = 256) args(n = 1 << 16, y = out[n])\n\
         __global__ void old(int n, unsigned *y) {\n\
         int i = blockIdx.x * blockDim.x + threadIdx.x;\n unsigned mask = 0;\n\
         asm(\"vote.ballot.b32 %0, 1;\" : \"=r\"(mask));\n if (i < n) y[i] = mask;\n}\n",
    );
    let ran = run(&mut project.nvtune(&compile("old.cu", "old.o")));
    assert_ne!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("Instruction 'vote' without '.sync'"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("nvtune"), "{}", ran.stderr);
}

#[test]
fn a_search_that_finds_nothing_is_no_idle_workload() {
    let project = Project::new(&[]);
    project.write(
        "search.cu",
        "//@tune threads(n) block({64, 256}) default(block = 256) regs({0})\n\
         //@tune args(n = 1 << 16, sought = 7, found = out[1])\n\
         __global__ void search(unsigned n, unsigned sought, unsigned *found) {\n\
         unsigned i = blockIdx.x * blockDim.x + threadIdx.x, hash = i;\n\
         for (int round = 0; round < 64; ++round) hash = (hash ^ hash >> 15) * 0x2c1b3c6du + round;\n\
         if (i < n && hash == sought) *found = i;\n}\n",
    );
    let ran = succeed(project.nvtune(&compile("search.cu", "search.o")).env("NVTUNE_STRICT", "1"));
    assert!(ran.stderr.starts_with("nvtune: search: "), "{}", ran.stderr);
}

#[test]
fn what_is_told_of_a_lambda_says_what_takes_its_place() {
    let project = Project::new(&[]).with_cuda_headers();
    let build = |clauses: &str, parameters: &str| {
        let other = if parameters == "class F" { "apply<<<(n + 255) / 256, 256>>>(n, Scaled {k}, y);" } else { "" };
        project.write(
            "apply.cu",
            &format!(
                "//@tune {clauses} threads(n) block({{128, 256}}) regs({{0}})\n\
                 template <{parameters}> __global__ void apply(int n, F f, float *y) {{\n\
                 int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = f(i); }}\n\
                 struct Scaled {{ float k; __device__ float operator()(int i) const {{ return k * i; }} }};\n\
                 void go(int n, float *y, float k) {{\n\
                 apply<<<(n + 255) / 256, 256>>>(n, [k] __device__ (int i) {{ return k * i; }}, y);\n\
                 {other}\n}}\n"
            ),
        );
        let mut arguments = compile("apply.cu", "apply.o");
        arguments.push("--extended-lambda".to_owned());
        run(&mut project.nvtune(&arguments)).stderr
    };
    let instance = build("template(Other) args(n = 1 << 12, f = {}, y = zeros[n])", "class F");
    assert!(
        instance.contains("(of a lambda: pass a structure with an operator() of its own in its place"),
        "{instance}"
    );
    let values = build("template(1) args(n = 1 << 12, f = {}, y = zeros[n])", "int N = 1, class F");
    assert!(values.contains("(a lambda's has none: pass a structure with an operator() of its own"), "{values}");
    let without = build("template(Scaled) args(n = 1 << 12, y = zeros[n])", "class F");
    assert!(
        without.contains("add `f = ...` to args(...); a structure takes its fields, as in `f = {x = 1}`"),
        "{without}"
    );
    let followed = build("template(Scaled) args(n = 1 << 12, f = {k = 2}, y = zeros[n])", "class F");
    assert!(followed.starts_with("nvtune: apply_Scaled: block="), "{followed}");
}
