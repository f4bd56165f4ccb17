//! The final build takes what the front end made while the source was tuned, and only that.

use super::environments::{profile, toolkit_with};
use super::explain::explain;
use super::project::{CAPS_WIN, Project, nvcc, reproducible, succeed};
use super::results::noting;
use crate::support::full::is_full;

/// A line that includes the header where it is.
const INCLUDING: &str = "#if __has_include(\"two.tune.h\")\n#include \"two.tune.h\"\n#endif\n";

/// Host code that launches by the header's functions.
const LAUNCH: &str = "void go(int n, const float *x, float *y) { first<<<nvtune::first::grid(n), nvtune::first::block()>>>(n, x, y); }\n";

/// Variables that no kernel uses, with internal names, as headers of the toolkit leave them; and a warning.
const INTERNAL: &str = "namespace tags { struct Tag {}; static __device__ constexpr Tag tag{}; }\n";

/// Device code that depends on a value of the winner's, which the baseline's header does not have.
const VALUE: &str = "#ifdef FIRST_REGS\n__global__ void other(int *x) { *x = FIRST_REGS; }\n#endif\n";

#[test]
fn final_build_takes_what_cicc_made_of_the_same_source() {
    let plain = Project::new(&["two.cu"]).read("two.cu");
    let with = |before: &str, after: &str| format!("{before}{plain}{after}");
    // What the source is, nvcc's options, how often a cold build runs cicc.
    let mut cases: Vec<(&str, String, &[&str], usize)> = vec![
        ("with its header", with(INCLUDING, LAUNCH), &[], 1),
        ("with a value of its header", with(INCLUDING, VALUE), &[], 2),
        ("with internal names, and a warning", with(INTERNAL, ""), &[], 1),
    ];
    if is_full() {
        cases.push(("linked later, by names that cicc has of cudafe++", with("", ""), &["-rdc=true"], 1));
        let short = "__global__ void k() {}\n";
        cases.push((
            "with an id of another length",
            with(short, "").replacen(short, &format!("{short}{INTERNAL}"), 1),
            &[],
            2,
        ));
        let inlined = "namespace { __device__ int more(int a) { return a * a + 3; } }\n\
                       __global__ void inlining(int *x) { *x = more(*x) * more(*x + 1); }\n";
        let inlined = format!("{INTERNAL}{inlined}");
        cases.push(("with the names of inlined functions", with(&inlined, ""), &["-lineinfo"], 2));
        cases.push(("for two architectures", with(INTERNAL, ""), &["-gencode=arch=compute_80,code=sm_80"], 2));
        let warned = "__global__ void w(int *x) { int unused; *x = 1; return; *x = 2; }\n";
        cases.push(("with warnings", with("", warned), &[], 1));
        let hidden = "namespace { __device__ int hidden; }\n__global__ void h(int *x) { *x = hidden; }\n";
        cases.push(("with an internal name in use, and an id of another length", with(hidden, ""), &[], 2));
        cases.push(("with an internal name in use", with("", hidden), &[], 1));
        cases.push(("marked", with("", ""), &[], 1));
        cases.push(("with line numbers", with(INCLUDING, LAUNCH), &["-lineinfo"], 1));
        cases.push(("with the files of all steps", with("", ""), &["--keep"], 2));
    }
    for (what, text, options, expected) in cases {
        check_object(what, &project(&text, CAPS_WIN), options, expected);
    }
}

/// A product that is found by another name of its type, which the kernel does not use. Without it,
/// numbers are multiplied.
const OTHER_PRODUCT: &str = "struct V { float x; __device__ operator float() const { return x; } };\n\
    typedef V Alias;\n\
    __device__ inline V operator*(Alias a, Alias b) { return V{a.x * b.x + 1}; }\n";

/// Functions that a loop calls without naming them.
const RANGE: &str = "struct Range { float value[2]; };\n\
    __device__ inline const float *begin(const Range &range) { return range.value; }\n\
    __device__ inline const float *end(const Range &range) { return range.value + 2; }\n\
    __device__ float sum(float a, float b) { float all = 0; for (float value : Range{{a, b}}) all += value; return all; }\n";

/// Of a source with CUDA's own headers variants are made of its device code alone.
#[test]
fn final_build_takes_the_whole_source_although_variants_are_of_its_device_code() {
    let plain = Project::new(&["two.cu"]).read("two.cu");
    let of_kernel = |text: &str| plain.replacen("= mixed(x, i)", text, 1);
    let multiplying = of_kernel("= mixed(x, i) + V{x[i]} * V{x[i]}");
    let twice = multiplying.replace("mixed(x, i + 3)", "V{x[i]} * V{x[i + 1]}");
    // How often a cold build runs cicc: on the device code and on the whole source.
    let mut cases =
        vec![("with other code than its device code alone, for both kernels", format!("{OTHER_PRODUCT}{twice}"), 2)];
    if is_full() {
        cases.push(("that compiles only as a whole", format!("{RANGE}{}", of_kernel("= sum(mixed(x, i), 2)")), 2));
        let hidden = "namespace { __device__ int hidden; }\n__global__ void h(int *x) { *x = hidden; }\n";
        cases.push(("with its header", format!("{INCLUDING}{plain}{LAUNCH}"), 2));
        cases.push(("with a value of its header", format!("{INCLUDING}{plain}{VALUE}"), 3));
        cases.push(("with an internal name in use", format!("{plain}{hidden}"), 2));
    }
    for (what, text, expected) in cases {
        check_object(what, &project(&text, CAPS_WIN).with_cuda_headers(), &[], expected);
    }
}

/// Builds a project twice. The second build finds the winners in the cache, and runs cicc on the source.
fn check_object(what: &str, project: &Project, options: &[&str], expected_runs: usize) {
    let mut arguments = reproducible("two.cu", "two.o");
    arguments.extend(options.iter().map(|&option| option.to_owned()));
    let (said, cold_runs, cold) = build(project, &arguments);
    let architectures = if options.iter().any(|option| option.starts_with("-gencode")) { 2 } else { 1 };
    // The names of several architectures are followed by theirs.
    let on = if architectures == 2 { " on sm_90" } else { "" };
    for winner in [format!("first{on}: block=128 regs=24 "), format!("bounded{on}: block=128 regs=32 ")] {
        assert!(said.contains(&winner), "{what}: {said}");
    }
    let of_compiler = lines_of_compiler(&said);
    let (said, warm_runs, warm) = build(project, &arguments);
    assert!(said.contains("from the cache"), "{what}: {said}");
    assert_eq!((cold_runs, warm_runs), (expected_runs, architectures), "{what}");
    assert!(cold == warm, "{what}: another object");
    assert_eq!(of_compiler, lines_of_compiler(&succeed(&mut project.plain(&arguments)).stderr), "{what}");
}

#[test]
fn build_of_baselines_takes_it_too_and_is_nvccs() {
    let project = project(&Project::new(&["two.cu"]).read("two.cu"), &CAPS_WIN.replace("10.0", "15.0"));
    let (said, runs, object) = build(&project, &reproducible("two.cu", "two.o"));
    assert!(said.matches("(kept: ").count() == 2 && runs == 1, "{runs}: {said}");
    succeed(&mut project.plain(&reproducible("two.cu", "two.o")));
    assert!(object == project.bytes("two.o"), "another object");
}

/// cudafe++ does not run for a cubin: cicc makes the module id.
#[test]
fn cubin_takes_it_too_and_is_nvccs() {
    let text = format!("{INTERNAL}{}", Project::new(&["two.cu"]).read("two.cu"));
    let project = project(&text, &CAPS_WIN.replace("10.0", "15.0"));
    let arguments = ["-arch=sm_90", "-cubin", "two.cu", "-o", "two.o"].map(str::to_owned);
    let (said, runs, object) = build(&project, &arguments);
    assert!(said.matches("(kept: ").count() == 2 && runs == 1, "{runs}: {said}");
    let plain = succeed(&mut project.plain(&arguments)).stderr;
    assert_eq!(lines_of_compiler(&said), lines_of_compiler(&plain));
    assert!(object == project.bytes("two.o"), "another cubin");
}

#[test]
fn build_that_records_launches_takes_it_too() {
    let project = project(&Project::new(&["two.cu"]).read("two.cu"), CAPS_WIN);
    let (said, runs, _) = build_in("capture", &project, &reproducible("two.cu", "two.o"));
    assert!(said.contains("launches are recorded below") && runs == 1, "{runs}: {said}");
}

#[test]
fn comments_of_one_source_are_explained_by_one_run_beside_the_compiler_s_own() {
    let project = project(&Project::new(&["two.cu"]).read("two.cu"), CAPS_WIN);
    project.write("notes", "");
    let mut explain = explain(&project, &["two.cu", "--", "-arch=sm_90"]);
    let text = succeed(explain.env("NVTUNE_NVCC", project.path("toolkit/bin/nvcc"))).stdout;
    assert_eq!(text.matches("the baseline of its comment").count(), 2, "{text}");
    assert_eq!(project.read("notes").lines().count(), 2);
}

fn lines_of_compiler(said: &str) -> Vec<String> {
    said.lines().filter(|line| !line.starts_with("nvtune: ")).map(str::to_owned).collect()
}

/// A project with this source and these timings, and a toolkit whose cicc notes each run.
fn project(text: &str, timings: &str) -> Project {
    let project = Project::new(&[]);
    project.write("two.cu", text);
    project.write("recorded.json", timings);
    let real = nvcc().parent().and_then(std::path::Path::parent).expect("a toolkit").join("nvvm/bin/cicc");
    std::fs::create_dir(project.path("cicc-folder")).expect("a folder");
    noting(&project, "cicc-folder/cicc", &real);
    let profile = profile().lines().filter(|line| !line.starts_with("CICC_PATH")).collect::<Vec<_>>().join("\n");
    toolkit_with(&project, "toolkit", &format!("{profile}\nCICC_PATH = {}\n", project.path("cicc-folder").display()));
    project
}

fn build(project: &Project, arguments: &[String]) -> (String, usize, Vec<u8>) {
    build_in("measure", project, arguments)
}

/// Builds; returns what was said, how often cicc ran, and the object.
fn build_in(mode: &str, project: &Project, arguments: &[String]) -> (String, usize, Vec<u8>) {
    project.write("notes", "");
    let mut build = project.nvtune(arguments);
    build.env("NVTUNE", mode).env("NVTUNE_REPLAY", "recorded.json");
    let ran = succeed(build.env("NVTUNE_NVCC", project.path("toolkit/bin/nvcc")));
    (ran.stderr, project.read("notes").lines().count(), project.bytes("two.o"))
}
