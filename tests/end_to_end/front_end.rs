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

/// Variables that no kernel uses, with internal names, as headers of the toolkit leave them; and a
/// warning.
const INTERNAL: &str = "namespace tags { struct Tag {}; static __device__ constexpr Tag tag{}; }\n";

/// Device code that depends on a value of the winner's, which the baseline's header does not have.
const VALUE: &str = "#ifdef FIRST_REGS\n__global__ void other(int *x) { *x = FIRST_REGS; }\n#endif\n";

/// A product that is found by another name of its type, as which the kernel does not name it:
/// without it, that is a product of numbers.
const OTHER_PRODUCT: &str = "struct V { float x; __device__ operator float() const { return x; } };\n\
    typedef V Alias;\n\
    __device__ inline V operator*(Alias a, Alias b) { return V{a.x * b.x + 1}; }\n";

/// Functions that a loop calls without naming them.
const RANGE: &str = "struct Range { float value[2]; };\n\
    __device__ inline const float *begin(const Range &range) { return range.value; }\n\
    __device__ inline const float *end(const Range &range) { return range.value + 2; }\n\
    __device__ float sum(float a, float b) { float all = 0; for (float value : Range{{a, b}}) all += value; return all; }\n";

#[test]
fn final_build_takes_what_cicc_made_of_the_same_source() {
    let plain = Project::new(&["two.cu"]).read("two.cu");
    let with = |before: &str, after: &str| format!("{before}{plain}{after}");
    // What the source is, nvcc's options, how often a cold build runs cicc: once on what device
    // code needs, and once on the whole source, unless the final build needs another run.
    let mut cases: Vec<(&str, String, &[&str], usize)> = vec![
        ("with its header", with(INCLUDING, LAUNCH), &[], 2),
        ("with a value of its header", with(INCLUDING, VALUE), &[], 3),
        ("with internal names, and a warning", with(INTERNAL, ""), &[], 2),
        (
            "with other code than its device code alone",
            with(OTHER_PRODUCT, "").replacen("= mixed(x, i)", "= mixed(x, i) + V{x[i]} * V{x[i]}", 1),
            &[],
            2,
        ),
        (
            "that compiles only as a whole",
            with(RANGE, "").replacen("= mixed(x, i)", "= sum(mixed(x, i), 2)", 1),
            &[],
            2,
        ),
    ];
    if is_full() {
        cases.push(("linked later, by names that cicc has of cudafe++", with("", ""), &["-rdc=true"], 2));
        let short = "__global__ void k() {}\n";
        cases.push((
            "with an id of another length",
            with(short, "").replacen(short, &format!("{short}{INTERNAL}"), 1),
            &[],
            3,
        ));
        let inlined = "namespace { __device__ int more(int a) { return a * a + 3; } }\n\
                       __global__ void inlining(int *x) { *x = more(*x) * more(*x + 1); }\n";
        let inlined = format!("{INTERNAL}{inlined}");
        cases.push(("with the names of inlined functions", with(&inlined, ""), &["-lineinfo"], 3));
        cases.push(("for two architectures", with(INTERNAL, ""), &["-gencode=arch=compute_80,code=sm_80"], 4));
        let warned = "__global__ void w(int *x) { int unused; *x = 1; return; *x = 2; }\n";
        cases.push(("with warnings", with("", warned), &[], 2));
        let hidden = "namespace { __device__ int hidden; }\n__global__ void h(int *x) { *x = hidden; }\n";
        cases.push(("with an internal name in use, and an id of another length", with(hidden, ""), &[], 4));
        cases.push(("with an internal name in use", with("", hidden), &[], 2));
        cases.push(("marked", with("", ""), &[], 2));
        cases.push(("with line numbers", with(INCLUDING, LAUNCH), &["-lineinfo"], 2));
        cases.push(("with the files of all steps", with("", ""), &["--keep"], 3));
    }
    for (what, text, options, expected) in cases {
        let project = project(&text, CAPS_WIN);
        let mut arguments = reproducible("two.cu", "two.o");
        arguments.extend(options.iter().map(|&option| option.to_owned()));
        let (said, cold_runs, cold) = build(&project, &arguments);
        assert!(said.contains(": block=128 regs=24 "), "{what}: {said}");
        let of_compiler = lines_of_compiler(&said);
        let (said, warm_runs, warm) = build(&project, &arguments);
        assert!(said.contains("from the cache"), "{what}: {said}");
        let architectures = if options.iter().any(|option| option.starts_with("-gencode")) { 2 } else { 1 };
        assert_eq!((cold_runs, warm_runs), (expected, architectures), "{what}");
        assert!(cold == warm, "{what}: another object");
        assert_eq!(of_compiler, lines_of_compiler(&succeed(&mut project.plain(&arguments)).stderr), "{what}");
    }
}

/// The second kernel has the whole source compiled while the first one, whose device code alone is
/// other code, is timed.
#[test]
fn winner_is_confirmed_although_the_next_kernel_needs_the_whole_source() {
    let plain = Project::new(&["two.cu"]).read("two.cu");
    let (first, second) = plain.split_once("//@tune threads(n) block(128) regs({0, 32})").expect("a second comment");
    let first = first.replacen("= mixed(x, i)", "= mixed(x, i) + V{x[i]} * V{x[i]}", 1);
    let (_, second) = second.split_once("__global__").expect("a second kernel");
    let project = project(&format!("{OTHER_PRODUCT}{first}//@tune\n__global__{second}"), CAPS_WIN);
    let (said, _, _) = build(&project, &reproducible("two.cu", "two.o"));
    assert!(said.contains("first: block=128 regs=24 ") && said.contains("bounded: not tuned"), "{said}");
    assert!(!said.contains("[N0050]"), "{said}");
}

#[test]
fn build_of_baselines_takes_it_too_and_is_nvccs() {
    let project = project(&Project::new(&["two.cu"]).read("two.cu"), &CAPS_WIN.replace("10.0", "15.0"));
    let (said, runs, object) = build(&project, &reproducible("two.cu", "two.o"));
    assert!(said.matches("(kept: ").count() == 2 && runs == 2, "{runs}: {said}");
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
    assert!(said.matches("(kept: ").count() == 2 && runs == 2, "{runs}: {said}");
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
