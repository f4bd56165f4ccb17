//! The compiler's tools as nvtune runs them for itself: several at once, none on another's files, none for ever.

use super::project::{Project, compile, nvcc, run};
use crate::support::full::is_full;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A kernel whose PTX has a name from an anonymous namespace, which takes a run of cudafe++ for each set of macros.
const HIDDEN_NAMES: &str = "#ifndef WORK\n#define WORK 1\n#endif\n\
    namespace { __device__ int calls; }\n\
    //@tune define(WORK = {1, 2, 3, 4, 5, 6}) threads(n) block(256) regs({0}) default(block = 256, WORK = 1)\n\
    //@tune args(n = 1 << 12, x = random[n])\n\
    __global__ void k(int n, float *x) {\n\
    const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
    if (i == 0) ++calls;\n\
    if (i < n) for (int j = 0; j < WORK; ++j) x[i] += 2 * x[(i + j) % n];\n\
    }\n";

/// The toolkit with the script `before` in front of the tool `bin/TOOL`, whose words it has as `$@`; its nvcc.
pub fn toolkit(folder: &Path, tool: &str, before: &str) -> PathBuf {
    let real = nvcc().parent().and_then(Path::parent).expect("a toolkit").canonicalize().expect("it is there");
    let root = folder.join("toolkit");
    fs::create_dir_all(root.join("bin")).expect("a folder");
    for (from, to, but) in [(real.clone(), root.clone(), "bin"), (real.join("bin"), root.join("bin"), tool)] {
        for entry in fs::read_dir(from).expect("readable").flatten().filter(|entry| entry.file_name() != but) {
            symlink(entry.path(), to.join(entry.file_name())).expect("linked");
        }
    }
    let script = format!("#!/bin/sh\nreal='{}'\n{before}\n", real.join("bin").join(tool).display());
    let path = root.join("bin").join(tool);
    fs::write(&path, script).expect("written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    root.join("bin/nvcc")
}

#[test]
#[ignore = "long: in the full run"]
fn concurrent_tools_have_separate_files() {
    let project = Project::new(&[]);
    project.write("hidden.cu", HIDDEN_NAMES);
    let alone = "for word in \"$@\"; do case \"$word\" in *.ii) input=$word;; esac; done\n\
                 mkdir \"$input.busy\" || exit 1\nsleep 0.2\n\"$real\" \"$@\"\ncode=$?\nrmdir \"$input.busy\"\nexit $code";
    let nvcc = toolkit(&project.path("bin"), "cudafe++", alone);
    let mut build = project.nvtune(&compile("hidden.cu", "hidden.o"));
    let ran = run(build.env("NVTUNE_NVCC", nvcc).env("RAYON_NUM_THREADS", "6").env("NVTUNE_CACHE_SIZE", "0"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let record = project.record("hidden.tune.json");
    let refused = record["kernels"][0]["configurations"].as_array().expect("a list").iter();
    let refused: Vec<_> = refused.filter(|configuration| !configuration["refused"].is_null()).collect();
    assert!(refused.is_empty(), "{refused:?}");
}

#[test]
#[ignore = "long: in the full run"]
fn cudafe_runs_only_for_names_that_contain_the_module_id() {
    // Of nvtune's runs alone: nvcc runs the tool in any case.
    let logged = "case \"$*\" in */nvtune-*) echo run >> \"$LOGGED\";; esac\nexec \"$real\" \"$@\"";
    let unused = HIDDEN_NAMES.replace("if (i == 0) ++calls;\n", "");
    let kernel = unused.replace("//@tune define", "namespace {\n//@tune define") + "}\nauto address = &k;\n";
    // One run for each value of WORK, or none where nobody uses what the PTX has of that kind, as it does of many headers.
    for (text, runs) in [(HIDDEN_NAMES, 2), (&unused, 0), (&kernel, 2)] {
        let project = Project::new(&[]);
        project.write("hidden.cu", &text.replace("{1, 2, 3, 4, 5, 6}", "{1, 2}"));
        let nvcc = toolkit(&project.path("bin"), "cudafe++", logged);
        let mut build = project.nvtune(&compile("hidden.cu", "hidden.o"));
        let ran = run(build.env("NVTUNE_NVCC", nvcc).env("LOGGED", project.path("log")).env("NVTUNE_CACHE_SIZE", "0"));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!ran.stderr.contains("nvtune warning"), "{}", ran.stderr);
        let log = fs::read_to_string(project.path("log")).unwrap_or_default();
        assert_eq!(log.lines().count(), runs, "{text}");
    }
}

/// Processor time follows what is run: the front end for each set of macros, and ptxas. With CUDA's own headers nvcc takes as
/// long for each front end as for the host's side of the compile.
#[test]
#[ignore = "long: in the full run"]
fn search_without_a_gpu_compiles_few_variants() {
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let include = format!("-I{}", kernels.join("common").display());
    let logged = "case \"$*\" in */nvtune-*--entry*) echo run >> \"$LOGGED\";; esac\nexec \"$real\" \"$@\"";
    let kernels_and_counts = [("softmax", 4, 12), ("attention", 2, 12), ("gemm_wmma", 3, 16)];
    // The long ones in the full run.
    for (kernel, most_sets, most_runs) in kernels_and_counts.into_iter().take(if is_full() { 3 } else { 1 }) {
        let project = Project::new(&[]).with_cuda_headers();
        let nvcc = toolkit(&project.path("bin"), "ptxas", logged);
        let source = kernels.join(kernel).join(format!("{kernel}.cu"));
        let mut build = project.nvtune(&["-O3", "-arch=sm_90", &include, "-c", "-o", "kernel.o"]);
        build.arg(source).env("NVTUNE", "static").env("NVTUNE_NVCC", nvcc).env("NVTUNE_CACHE_SIZE", "0");
        let ran = run(build.env("LOGGED", project.path("log")));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let notes = project.record(&format!("{kernel}.tune.json"))["kernels"][0]["notes"].to_string();
        let (before, _) = notes.split_once(" sets of macros were compiled").expect("not all are compiled");
        let sets: usize = before.rsplit(['"', ' ']).nth(2).and_then(|word| word.parse().ok()).expect("a number");
        let runs = fs::read_to_string(project.path("log")).expect("a log").lines().count();
        assert!(sets <= most_sets && runs <= most_runs, "{kernel}: {sets} sets, {runs} runs of ptxas");
    }
}

#[test]
fn hanging_tool_stops_the_tuning_and_not_the_build() {
    // nvcc's own run of the tool, which works on files of nvcc's, must not hang: nvtune sets no time for that.
    let hang = "case \"$*\" in */nvtune-*) sleep 1000;; esac\nexec \"$real\" \"$@\"";
    for tool in ["ptxas", "cudafe++"] {
        let project = Project::new(&[]);
        // Few runs at once, so that those which do not hang end in time on a busy machine too.
        project.write("hidden.cu", &HIDDEN_NAMES.replace("{1, 2, 3, 4, 5, 6}", "{1, 2}"));
        let nvcc = toolkit(&project.path("bin"), tool, hang);
        let mut build = project.nvtune(&compile("hidden.cu", "hidden.o"));
        let begin = Instant::now();
        let ran = run(build.env("NVTUNE_NVCC", nvcc).env("NVTUNE_PATIENCE", "3").env("NVTUNE_CACHE_SIZE", "0"));
        assert!(begin.elapsed() < Duration::from_secs(300), "{tool}: {:?}", begin.elapsed());
        assert_eq!(ran.code, Some(0), "{tool}: {}", ran.stderr);
        let said = format!(
            "nvtune warning : k: not tuned: {tool} did not end within 3 s (NVTUNE_PATIENCE) and was stopped [N0060]\n"
        );
        assert_eq!(ran.stderr, said, "{tool}");
        assert!(project.path("hidden.o").exists(), "{tool}");
        assert!(!project.path("hidden.tune.json").exists(), "{tool}: no record of what was not decided");
    }
}

#[test]
fn warm_build_runs_the_toolkit_that_its_own_call_starts() {
    let project = Project::new(&["saxpy.cu"]);
    let script = |path: &str, text: String| {
        fs::write(project.path(path), text).expect("written");
        fs::set_permissions(project.path(path), fs::Permissions::from_mode(0o755)).expect("executable");
    };
    for name in ["a", "b"] {
        fs::create_dir_all(project.path(name)).expect("a folder");
        let log = project.path(&format!("{name}.log"));
        toolkit(&project.path(name), "ptxas", &format!("echo ran >> '{}'\nexec \"$real\" \"$@\"", log.display()));
    }
    script("nvcc", "#!/bin/sh\nexec \"$KIT/toolkit/bin/nvcc\" \"$@\"\n".to_owned());
    for (kit, other) in [("a", "b"), ("a", "b"), ("b", "a")] {
        for name in ["a.log", "b.log"] {
            let _ = fs::remove_file(project.path(name));
        }
        let mut nvtune = project.nvtune(&compile("saxpy.cu", "saxpy.o"));
        nvtune.env_remove("NVTUNE_CACHE_SIZE").env("NVTUNE_NVCC", project.path("nvcc")).env("KIT", project.path(kit));
        let ran = run(&mut nvtune);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let has_run = |name: &str| project.path(&format!("{name}.log")).exists();
        assert!(has_run(kit) && !has_run(other), "{kit}: {}", ran.stderr);
    }
}
