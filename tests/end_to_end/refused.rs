//! Kernels that cannot be tuned or timed: what the same inputs would give again is known from then on, and said in the same words.

use super::project::{Project, compile, nvcc, run, succeed};
use super::results::noting;
use crate::support::full::cases;
use std::collections::HashMap;

/// A kernel with a macro axis, for which the front end runs twice; `head` stands before it, `clauses` are more of its comment.
fn kernel(head: &str, clauses: &str) -> String {
    named("k", "WORK", head, clauses)
}

/// The same of this name and with this axis.
fn named(name: &str, work: &str, head: &str, clauses: &str) -> String {
    format!(
        "{head}\n#ifndef {work}\n#define {work} 1\n#endif\n\
         //@tune define({work} = {{1, 2}}) threads(n) block({{64, 128}}) regs({{0}}) default(block = 128, {work} = 1) launch(header)\n\
         //@tune {clauses}\n\
         __global__ void {name}(int n, const float *x, float *y) {{\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         if (i < n) for (int j = 0; j < {work}; ++j) y[i] += j * x[(i + j) % n]; }}\n"
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

/// Runs of the preprocessor by a warm build whose nvcc is a script: a dry run by it, and one by the nvcc that it starts.
const DRY_RUNS: usize = 2;

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
        let mut plain = project.plain(&["-O3", self.architecture, "-rdc=true", "-cubin", "k.cu", "-o", "plain.cubin"]);
        project.write("notes", "");
        let path = std::env::var("PATH").expect("there is one");
        succeed(plain.env("PATH", format!("{}:{path}", project.path("tools").display())));
        project.read("notes").lines().count()
    }

    fn build(&self) -> Took {
        let project = &self.project;
        // Device code alone: there is no host code to any of it.
        let mut build = project.nvtune(&["-O3", self.architecture, "-rdc=true", "-cubin", "k.cu", "-o", "k.cubin"]);
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
#[ignore = "long: in the full run"]
fn lasting_refusals_come_from_the_cache_in_the_same_words() {
    let crash = r#"{"kernel": "_Z7crashesiPKfPf", "refused": {"faulted": {"error": "CUDA_ERROR_ILLEGAL_ADDRESS"}}}"#;
    let runs = r#"{"time_us": 10.0}"#;
    let instance = named("instance", "W1", "", &format!("template(false) {ARGS}"));
    let instance = instance.replace("__global__", "template <bool B>\n__global__")
        + "template __global__ void instance<true>(int, const float *, float *);\n";
    let other = named("other", "W2", "", ARGS).replace("#define W2 1", "#define W2 2");
    let elsewhere = named("elsewhere", "W3", "__device__ float far(float);", ARGS).replace("j * x[", "far(j) * x[");
    let crowd = |name: &str, work: &str, default: &str| {
        let body = format!(
            "double a[36];\n#pragma unroll\nfor (int j = 0; j < 36; ++j) a[j] = x[(i + j * {work}) % n];\n__syncthreads();\n\
             #pragma unroll\nfor (int j = 0; j < 36; ++j) y[i] += a[j] * a[j * 7 % 36];"
        );
        let crowded = named(name, work, "", ARGS).replace("{64, 128}", "1024").replace("block = 128", default);
        crowded.replace(&format!("if (i < n) for (int j = 0; j < {work}; ++j) y[i] += j * x[(i + j) % n];"), &body)
    };
    let crowded = crowd("crowded", "W4", "block = 1024");
    let capped = crowd("capped", "W5", "block = 1024, regs = 80").replace("regs({0})", "regs(80)");
    let tile = "__shared__ float tile[12000]; tile[threadIdx.x] = i; __syncthreads(); if (i < n) y[i] = tile[i % 128]; if (i < n)";
    let shared = named("shared", "W6", "", &format!("shared(200000) {ARGS}")).replace("if (i < n)", tile);
    // By architecture, the compilers that plain nvcc runs.
    let mut of_plain = HashMap::new();
    // What they are, the source, the GPU, the architecture, what is said, and how many sets of macros are compiled of kernels that turn
    // out to have no baseline: without a GPU the baseline comes first, alone.
    for (what, source, recorded, architecture, said, in_vain) in [
        (
            "an instance that the file does not make, a default that is not the source's, and baselines that cannot be built alone, \
             of more registers than there are, of a cap that is too high, and of more shared memory than there is",
            [instance, other, elsewhere, crowded, capped, shared].concat(),
            None,
            "-arch=sm_90",
            &[
                "`instance` has no instance <",
                "other: not tuned: its baseline (block=128 W2=1) differs from the source",
                "elsewhere: not tuned: its baseline (block=128 W3=1) cannot be built or launched: it needs `far` of another file",
                "crowded: not tuned: its baseline (block=1024 W4=1) cannot be built or launched: no block of it fits on a multiprocessor: 72 registers for each of 1024 threads",
                "capped: not tuned: its baseline (block=1024 regs=80 W5=1) cannot be built or launched: no block of it fits on a multiprocessor: under the cap of 80 that `default` gives, each of its 1024 threads has 80 registers",
                "shared: not tuned: its baseline (block=128 W6=1) cannot be built or launched: no block of it fits on a multiprocessor: its shared memory, static and dynamic, is more than the 232448 bytes that a block can have",
            ][..],
            0,
        ),
        (
            "a baseline that crashes, buffers that no such GPU has room for, and a kernel without a workload",
            named("crashes", "W1", "", ARGS)
                + &named("large", "W2", "", &ARGS.replace("16", "18"))
                + &named("idle", "W3", "", "").replace("threads(n)", "threads(65536)"),
            Some(recording(r#", "memory_bytes": 1500000, "free_bytes": 1400000"#, &format!("{crash}, {runs}"))),
            "-arch=sm_90",
            &[
                "crashes: not timed: the baseline cannot be measured: crashed on the GPU: CUDA_ERROR_ILLEGAL_ADDRESS",
                "buffers of 2 MiB exceed the 1 MiB of NVIDIA H200: use smaller ones; `large` is not timed",
            ],
            1,
        ),
        (
            "a GPU that runs none of the code",
            kernel("", ARGS),
            Some(recording("", runs)),
            "-gencode=arch=compute_80,code=sm_80",
            &["k: not timed, the model chooses: the NVIDIA H200 (sm_90) runs no machine code of this call"],
            0,
        ),
    ] {
        let mut watched = Watched::new(&source, recorded.as_deref());
        watched.architecture = architecture;
        let cold = watched.build();
        for said in said {
            assert!(cold.said.iter().any(|line| line.contains(said)), "{said}: {cold:?}");
        }
        let warm = watched.build();
        assert_eq!(warm.said, cold.said, "{what}");
        let of_plain = *of_plain.entry(architecture).or_insert_with(|| watched.plain());
        assert_eq!(
            (warm.preprocessed, warm.on_gpu),
            (of_plain + DRY_RUNS, 0),
            "{what}: nothing is looked at again: {warm:?}"
        );

        // The kernels and all that they depend on stay, one line further down.
        let text = watched.project.read("k.cu");
        watched.project.write("k.cu", &format!("\n{text}\nint another() {{ return 1; }}\n"));
        let known = watched.build();
        let words = |took: &Took| -> Vec<String> {
            let word = |line: &String| line.split_once("): ").map_or(line.clone(), |(_, message)| message.to_owned());
            took.said.iter().map(word).collect()
        };
        assert_eq!(words(&known), words(&cold), "{what}");
        assert_eq!(known.on_gpu, 0, "{what}: {known:?}");
        // Without a baseline the other value of a kernel's macro is not compiled again; what the model chose is compared under each set
        // of macros that it chose from.
        assert!(known.preprocessed + in_vain <= cold.preprocessed, "{what}: {known:?} after {cold:?}");
    }
}

#[test]
fn passing_refusals_are_not_cached() {
    let entry = |kernel: &str, what: &str| format!(r#"{{"kernel": "_Z{}{kernel}iPKfPf", {what}}}"#, kernel.len());
    let hangs = entry("hangs", r#""refused": {"hung": {"limit_s": 1.0}}"#);
    let lacks = entry("lacks", r#""refused": {"out_of_memory": {"bytes": 7}}"#);
    let broken = r#"{"refused": {"faulted": {"error": "CUDA_ERROR_ECC_UNCORRECTABLE"}}}"#;
    let small = ARGS.replace("16", "12");
    // What they are, the source, the GPU, and of each kernel what is said and the baseline that is tried: what there is no room for
    // never is, not even ahead of the other variants' code.
    let refusals = [
        (
            "a GPU that is full, a baseline that took too long, and memory that was lacking",
            named("large", "W1", "", ARGS) + &named("hangs", "W2", "", &small) + &named("lacks", "W3", "", &small),
            recording(r#", "memory_bytes": 150000000, "free_bytes": 140000"#, &format!("{hangs}, {lacks}")),
            &[
                ("0 free MiB of NVIDIA H200: use smaller ones; `large` is not timed", None),
                ("hangs: not timed: the baseline cannot be measured: did not end", Some("block=128 W2=1")),
                ("lacks: not timed: the baseline cannot be measured: its buffers", Some("block=128 W3=1")),
            ][..],
        ),
        (
            "a process that died",
            kernel("", ARGS),
            recording("", r#"{"fault": "die"}"#),
            &[("k: not timed: the baseline cannot be measured: the measuring process died", Some("block=128 WORK=1"))],
        ),
        (
            "a broken GPU",
            kernel("", ARGS),
            recording("", broken),
            &[("k: not timed: the baseline cannot be measured: crashed", Some("block=128 WORK=1"))],
        ),
        (
            "a process that does not start",
            kernel("", ARGS),
            recording("", "").replace(r#""log":"#, r#""start": "die", "log":"#),
            &[("nothing is timed, the model chooses: the measuring process", None)],
        ),
    ];
    for (what, source, recorded, kernels) in cases(&refusals, 2) {
        let watched = Watched::new(source, Some(recorded));
        let tried = || -> Vec<String> {
            let log = watched.project.read("log");
            let mut baselines: Vec<String> =
                log.lines().filter_map(|line| line.strip_prefix("baseline ")).map(str::to_owned).collect();
            baselines.sort();
            // One may have been tried while the kernel before it was on the GPU.
            baselines.dedup();
            baselines
        };
        let first = watched.build();
        for (said, _) in *kernels {
            assert!(first.said.iter().any(|line| line.contains(said)), "{said}: {first:?}");
        }
        let expected: Vec<&str> = kernels.iter().filter_map(|&(_, tried)| tried).collect();
        assert_eq!(tried(), expected, "{what}");
        let again = watched.build();
        assert_eq!(again.preprocessed, first.preprocessed, "{what}: {again:?}");
        assert_eq!(tried(), expected, "{what}");
    }
}

#[test]
fn error_in_a_comment_is_reported_before_other_kernels_are_timed() {
    let entries = r#"{"label": "WORK=2", "time_us": 5.0}, {"time_us": 10.0}"#;
    let other = "//@tune threads(n) block({2048}) args(n = 1 << 16, z = zeros[n])\n__global__ void other(int n, float *z) { z[0] = n; }\n";
    let watched = Watched::new(&(kernel("", ARGS) + other), Some(&recording("", entries)));
    let arguments = compile("k.cu", "k.o");
    let mut build = watched.project.nvtune(&arguments);
    let ran = run(build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"));
    let said = "k.cu(10): error: no block here can be launched: a block has at most 1024 threads";
    assert_eq!(ran.stderr.lines().next().map(|line| line.starts_with(said)), Some(true), "{}", ran.stderr);
    assert_eq!(ran.code, Some(2));
    assert!(!watched.project.path("log").exists() && !watched.project.path("k.o").exists());
}
