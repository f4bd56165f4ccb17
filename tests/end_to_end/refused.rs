//! Kernels that cannot be tuned or timed: what the same inputs would give again is known from then on, and said in the same words.

use crate::nvcc::compile;
use crate::project::{Project, nvcc, run, succeed};
use crate::results::noting;
use std::collections::HashMap;

/// A kernel with a macro axis, for which the front end runs three times; `head` stands before it, `clauses` are more of its comment.
fn kernel(head: &str, clauses: &str) -> String {
    format!(
        "{head}\n#ifndef WORK\n#define WORK 1\n#endif\n\
         //@tune define(WORK = {{1, 2, 4}}) threads(n) block({{64, 128}}) regs({{0}}) default(block = 128, WORK = 1)\n\
         //@tune {clauses}\n\
         __global__ void k(int n, const float *x, float *y) {{\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         if (i < n) for (int j = 0; j < WORK; ++j) y[i] += j * x[(i + j) % n]; }}\n"
    )
}

const ARGS: &str = "args(n = 1 << 16, x = random[n], y = zeros[n])";

/// A GPU, of which more may be said, and what is recorded on it.
fn recording(device: &str, entries: &str) -> String {
    format!(
        r#"{{"device": {{"name": "NVIDIA H200", "compute_capability": 90, "driver": 13000{device}}}, "log": "log",
            "entries": [{entries}]}}"#
    )
}

/// Builds of `k.cu` that are watched.
struct Watched {
    project: Project,
    architecture: &'static str,
}

/// What a build said of its kernels but for the line of each decision, and what it took.
#[derive(Debug)]
struct Took {
    said: Vec<String>,
    /// Runs of the preprocessor.
    preprocessed: usize,
    /// What ran on the GPU.
    on_gpu: usize,
}

impl Watched {
    fn new(source: &str, recorded: Option<&str>) -> Self {
        let project = Project::new(&[]);
        std::fs::create_dir(project.path("tools")).expect("a folder");
        noting(&project, "tools/gcc", &which::which("gcc").expect("a host compiler"));
        noting(&project, "tools/nvcc", &nvcc());
        project.write("k.cu", source);
        if let Some(recorded) = recorded {
            project.write("recorded.json", recorded);
        }
        Self { project, architecture: "-arch=sm_90" }
    }

    /// Runs of the preprocessor by plain nvcc.
    fn plain(&self) -> usize {
        let project = &self.project;
        let mut plain = project.plain(&["-O3", self.architecture, "-rdc=true", "-c", "k.cu", "-o", "plain.o"]);
        project.write("notes", "");
        let path = std::env::var("PATH").expect("there is one");
        succeed(plain.env("PATH", format!("{}:{path}", project.path("tools").display())));
        project.read("notes").lines().count()
    }

    fn build(&self) -> Took {
        let project = &self.project;
        let mut arguments = compile("k.cu", "k.o");
        arguments.retain(|word| !word.starts_with("-arch"));
        arguments.extend([self.architecture.to_owned(), "-rdc=true".to_owned()]);
        let mut build = project.nvtune(&arguments);
        let path = std::env::var("PATH").expect("there is one");
        build.env("NVTUNE_NVCC", project.path("tools/nvcc"));
        build.env("PATH", format!("{}:{path}", project.path("tools").display()));
        if project.path("recorded.json").exists() {
            build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json").env("NVTUNE_WAIT", "0");
        }
        project.write("notes", "");
        project.write("log", "");
        let ran = succeed(&mut build);
        let is_said = |line: &&str| !line.starts_with("nvtune: ");
        Took {
            said: ran.stderr.lines().filter(is_said).map(str::to_owned).collect(),
            preprocessed: project.read("notes").lines().filter(|line| line.ends_with("gcc")).count(),
            on_gpu: project.read("log").lines().count(),
        }
    }
}

#[test]
fn what_is_refused_for_good_is_refused_from_the_cache_in_the_same_words() {
    let crash = r#"{"refused": {"faulted": {"error": "CUDA_ERROR_ILLEGAL_ADDRESS"}}}"#;
    let runs = r#"{"time_us": 10.0}"#;
    let instance =
        kernel("", &format!("template(false) {ARGS}")).replace("__global__", "template <bool B>\n__global__");
    let instance = format!("{instance}template __global__ void k<true>(int, const float *, float *);\n");
    let elsewhere = kernel("__device__ float far(float);", ARGS).replace("j * x[", "far(j) * x[");
    let many = "float a[72];\n#pragma unroll\nfor (int j = 0; j < 72; ++j) a[j] = x[(i + j * WORK) % n];\n__syncthreads();\n\
                #pragma unroll\nfor (int j = 0; j < 72; ++j) y[i] += a[j] * a[j * 7 % 72];";
    let crowded = kernel("", ARGS).replace("{64, 128}", "1024").replace("block = 128", "block = 1024");
    let crowded = crowded.replace("if (i < n) for (int j = 0; j < WORK; ++j) y[i] += j * x[(i + j) % n];", many);
    let capped = crowded.replace("block = 1024", "block = 1024, regs = 80").replace("regs({0})", "regs(80)");
    let tile = "__shared__ float tile[12000]; tile[threadIdx.x] = i; __syncthreads(); if (i < n) y[i] = tile[i % 128]; if (i < n)";
    let shared = kernel("", &format!("shared(200000) {ARGS}")).replace("if (i < n)", tile);
    // By architecture, the compilers that plain nvcc runs.
    let mut of_plain = HashMap::new();
    // What it is, the source, the GPU, the architecture, and what is said.
    for (what, source, recorded, architecture, said) in [
        ("an instance that the file does not make", instance, None, "-arch=sm_90", "`k` has no instance <"),
        (
            "a default that is not the source's",
            kernel("", ARGS).replace("#define WORK 1", "#define WORK 2"),
            None,
            "-arch=sm_90",
            "k: not tuned: its baseline (block=128 WORK=1) is not what the source is without nvtune",
        ),
        (
            "a baseline that cannot be built alone",
            elsewhere,
            None,
            "-arch=sm_90",
            "k: not tuned: its baseline (block=128 WORK=1) cannot be built or launched: it needs `_Z3farf` of another file",
        ),
        (
            "a baseline of more registers than there are",
            crowded,
            None,
            "-arch=sm_90",
            "k: not tuned: its baseline (block=1024 WORK=1) cannot be built or launched: no block of it fits on a multiprocessor: the compiler gives each of its 1024 threads",
        ),
        (
            "a baseline of a cap that is too high",
            capped,
            None,
            "-arch=sm_90",
            "no block of it fits on a multiprocessor: under the cap of 80 that `default` gives, each of its 1024 threads has 80 registers",
        ),
        (
            "a baseline of more shared memory than there is",
            shared,
            None,
            "-arch=sm_90",
            "no block of it fits on a multiprocessor: its shared memory, static and dynamic, is more than the 232448 bytes that a block can have",
        ),
        (
            "a baseline that crashes",
            kernel("", ARGS),
            Some(recording("", crash)),
            "-arch=sm_90",
            "k: not timed: the baseline cannot be measured: crashed on the GPU: CUDA_ERROR_ILLEGAL_ADDRESS",
        ),
        (
            "buffers that no such GPU has room for",
            kernel("", &ARGS.replace("16", "18")),
            Some(recording(r#", "memory_bytes": 1500000, "free_bytes": 1400000"#, runs)),
            "-arch=sm_90",
            "these buffers take 2 MiB, and the NVIDIA H200 has 1 MiB",
        ),
        (
            "a GPU that runs none of the code",
            kernel("", ARGS),
            Some(recording("", runs)),
            "-gencode=arch=compute_80,code=sm_80",
            "k: not timed, the model chooses: the NVIDIA H200 (sm_90) runs no machine code of this call",
        ),
        (
            "a kernel without a workload",
            kernel("", "").replace("threads(n)", "threads(65536)"),
            Some(recording("", runs)),
            "-arch=sm_90",
            "",
        ),
    ] {
        let mut watched = Watched::new(&source, recorded.as_deref());
        watched.architecture = architecture;
        let cold = watched.build();
        assert!(cold.said.iter().any(|line| line.contains(said)) || said.is_empty(), "{what}: {cold:?}");
        let warm = watched.build();
        assert_eq!(warm.said, cold.said, "{what}");
        let of_plain = *of_plain.entry(architecture).or_insert_with(|| watched.plain());
        assert_eq!((warm.preprocessed, warm.on_gpu), (of_plain, 0), "{what}: nothing is looked at again: {warm:?}");

        // The kernel and all that it hangs on stay, one line further down.
        let text = watched.project.read("k.cu");
        watched.project.write("k.cu", &format!("\n{text}\nint another() {{ return 1; }}\n"));
        let known = watched.build();
        let words = |took: &Took| -> Vec<String> {
            let word = |line: &String| line.split_once("): ").map_or(line.clone(), |(_, message)| message.to_owned());
            took.said.iter().map(word).collect()
        };
        assert_eq!(words(&known), words(&cold), "{what}");
        assert_eq!(known.on_gpu, 0, "{what}: {known:?}");
        // What the model chose is compared under each set of macros that it chose from.
        let is_chosen = watched.project.path("k.tune.json").exists() && !said.contains("baseline");
        assert!(is_chosen || known.preprocessed + 1 < cold.preprocessed, "{what}: {known:?} after {cold:?}");
    }
}

#[test]
fn what_may_be_otherwise_next_time_is_looked_at_again() {
    let entry = |what: &str| format!("{{{what}}}");
    // What there is no room for is never tried, not even ahead of the other variants' code.
    for (what, recorded, is_tried) in [
        (
            "a GPU that is full",
            recording(r#", "memory_bytes": 150000000, "free_bytes": 140000"#, &entry(r#""time_us": 10.0"#)),
            false,
        ),
        ("a baseline that took too long", recording("", &entry(r#""refused": {"hung": {"limit_s": 1.0}}"#)), true),
        ("a process that died", recording("", &entry(r#""fault": "die""#)), true),
        ("memory that was lacking", recording("", &entry(r#""refused": {"out_of_memory": {"bytes": 7}}"#)), true),
        (
            "a broken GPU",
            recording("", &entry(r#""refused": {"faulted": {"error": "CUDA_ERROR_ECC_UNCORRECTABLE"}}"#)),
            true,
        ),
        ("a process that does not start", recording("", "").replace(r#""log""#, r#""start": "die", "log""#), false),
    ] {
        let watched = Watched::new(&kernel("", ARGS), Some(&recorded));
        let first = watched.build();
        assert!(!first.said.is_empty(), "{what}: {first:?}");
        assert_eq!(first.on_gpu > 0, is_tried, "{what}: {first:?}");
        let again = watched.build();
        assert_eq!((again.preprocessed, again.on_gpu), (first.preprocessed, first.on_gpu), "{what}: {again:?}");
    }
}

#[test]
fn what_is_wrong_with_a_comment_is_said_before_the_files_other_kernels_are_tuned() {
    let entries = r#"{"label": "WORK=2", "time_us": 5.0}, {"time_us": 10.0}"#;
    let other = "//@tune threads(n) block({2048}) args(n = 1 << 16, z = zeros[n])\n__global__ void other(int n, float *z) { z[0] = n; }\n";
    let watched = Watched::new(&(kernel("", ARGS) + other), Some(&recording("", entries)));
    let arguments = compile("k.cu", "k.o");
    let mut build = watched.project.nvtune(&arguments);
    let ran = run(build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"));
    let said = "k.cu(10): error: no block of this clause can be launched: a block has at most 1024 threads";
    assert_eq!(ran.stderr.lines().next().map(|line| line.starts_with(said)), Some(true), "{}", ran.stderr);
    assert_eq!(ran.code, Some(2));
    assert!(!watched.project.path("log").exists() && !watched.project.path("k.o").exists());
}

/// A template's instances share its comment, and what is wrong with it.
#[test]
fn what_is_wrong_with_all_instances_is_said_once() {
    let source = "//@tune threads(ceildiv(m, N)) block({64, 128}) template(1) template(2)\n\
                  template <int N> __global__ void k(int n) {}\n\
                  template __global__ void k<1>(int);\ntemplate __global__ void k<2>(int);\n";
    let watched = Watched::new(source, None);
    let ran = run(&mut watched.project.nvtune(&compile("k.cu", "k.o")));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.starts_with("k.cu(1): error: unknown name `m`"), "{}", ran.stderr);
    assert!(ran.stderr.ends_with("\n1 error detected in the compilation of \"k.cu\".\n"), "{}", ran.stderr);
}
