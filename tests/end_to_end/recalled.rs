//! Launches reshaped by results of earlier builds: from the cache and from the lock file they are what they were when tuned.

use super::project::{Project, Ran, compile, run, succeed};
use super::remap::{SMALL_BLOCKS_WIN, launches, short, tuned};
use super::results::nvtune;

/// A build from the lock file alone.
fn locked(project: &Project, arguments: &[String]) -> Ran {
    succeed(project.nvtune(arguments).env("NVTUNE", "locked").env("NVTUNE_CACHE_SIZE", "0"))
}

fn count(ran: &Ran, words: &str) -> usize {
    ran.stderr.lines().filter(|line| line.contains(words)).count()
}

#[test]
#[ignore = "long: in the full run"]
fn cached_and_locked_kernels_keep_their_reshaped_launches() {
    let project = Project::new(&["remap.cu", "elsewhere.cu"]);
    let arguments = compile("remap.cu", "remap.o");
    succeed(&mut project.plain(&compile("elsewhere.cu", "elsewhere.o")));
    let said = || {
        let said = launches(&project, &["remap.o", "elsewhere.o"], &[]);
        std::fs::remove_file(project.path("remap.o")).expect("it was built");
        said.lines().map(short).collect::<String>()
    };
    let cold = tuned(&project, &arguments, SMALL_BLOCKS_WIN);
    let kernels = count(&cold, "points timed");
    assert!(cold.code == Some(0) && kernels > 3, "{}", cold.stderr);
    let reshaped = said();
    assert!(reshaped.contains("block 64 1 1"), "{reshaped}");
    let warm = tuned(&project, &arguments, SMALL_BLOCKS_WIN);
    assert_eq!(count(&warm, "; from the cache"), kernels, "{}", warm.stderr);
    assert_eq!(said(), reshaped, "the whole call is known");

    succeed(&mut nvtune(&project, &["lock"]));
    let from_lock = locked(&project, &arguments);
    assert_eq!(count(&from_lock, "over the baseline, locked"), kernels, "{}", from_lock.stderr);
    assert_eq!(said(), reshaped, "locked");

    std::fs::remove_file(project.path("nvtune.lock")).expect("removed");
    project.write("remap.cu", &format!("{}\nint another() {{ return 1; }}\n", project.read("remap.cu")));
    let known = tuned(&project, &arguments, SMALL_BLOCKS_WIN);
    assert_eq!(count(&known, "; from the cache"), kernels, "{}", known.stderr);
    assert_eq!(said(), reshaped, "each kernel is known");
}

#[test]
fn changed_system_header_is_read_again() {
    let project = Project::new(&[]);
    project.write("factor.h", "#define FACTOR 1\n");
    project.write(
        "k.cu",
        "#include <factor.h>\n\
         //@tune threads(n) block({64, 256}) regs({0}) default(block = 256)\n\
         //@tune args(n = 1 << 12, x = out[n])\n\
         __global__ void k(int n, float *x) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = FACTOR * i; }\n",
    );
    let mut arguments = compile("k.cu", "k.o");
    arguments.push(format!("-I{}", project.path("").display()));
    assert_eq!(count(&tuned(&project, &arguments, SMALL_BLOCKS_WIN), "points timed"), 1);
    assert_eq!(count(&tuned(&project, &arguments, SMALL_BLOCKS_WIN), "from the cache"), 1, "nothing changed");

    project.write("factor.h", "#define FACTOR 2\n");
    let changed = tuned(&project, &arguments, SMALL_BLOCKS_WIN);
    assert_eq!(count(&changed, "points timed"), 1, "{}", changed.stderr);
}

#[test]
fn result_depends_on_the_launch_path() {
    let project = Project::new(&[]);
    let kernel = "//@tune threads(n) block({64, 256}) regs({0}) default(block = 256)\n\
         //@tune args(n = 1 << 12, x = out[n])\n\
         __global__ void k(int n, float *x) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = 1; }\n";
    project.write("k.cu", kernel);
    let arguments = compile("k.cu", "k.o");
    let cold = tuned(&project, &arguments, SMALL_BLOCKS_WIN);
    assert!(count(&cold, "points timed") == 1, "{}", cold.stderr);
    succeed(&mut nvtune(&project, &["lock"]));
    assert!(project.read("nvtune.lock").contains("\"launches\": \"entries\""), "{}", project.read("nvtune.lock"));

    project.write("k.cu", &kernel.replacen("default(block = 256)", "default(block = 256)\n//@tune launch(header)", 1));
    let ran = run(project.nvtune(&arguments).env("NVTUNE", "locked"));
    let stale = "is stale and not used: another is its tuning comment and the way to its launches (`in place`, locked with `entries`)";
    assert!(ran.code == Some(0) && ran.stderr.contains(stale), "{}", ran.stderr);
    assert_eq!(count(&ran, "from the cache"), 0, "{}", ran.stderr);
    let again = tuned(&project, &arguments, SMALL_BLOCKS_WIN);
    assert!(count(&again, "points timed") == 1, "{}", again.stderr);
}

#[test]
#[ignore = "long: in the full run"]
fn fat_build_locks_each_architecture_with_macros_of_its_own() {
    let project = Project::new(&[]);
    let source = "#ifndef WORK\n#define WORK 1\n#endif\n\
         //@tune define(WORK = {1, 4}) threads(n) block({256}) regs({0}) default(block = 256, WORK = 1)\n\
         //@tune args(n = 1 << 16, x = random[n], y = out[n])\n\
         __global__ void k(int n, const float *x, float *y) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         if (i >= n) return;\n\
         const int work = WORK;\n\
         float sum = 0;\n\
         #pragma unroll work\n\
         for (int k = 0; k < 64; ++k) sum += x[(i + 977 * k) % n];\n\
         y[i] = sum; }\n";
    project.write("k.cu", source);
    let options = ["-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90", "-objtemp"];
    let arguments: Vec<String> =
        ["-O3", "-c", "k.cu", "-o", "k.o"].iter().chain(&options).map(|&word| word.to_owned()).collect();
    let entries = r#"{"label": "WORK=4", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    let cold = tuned(&project, &arguments, entries);
    assert_eq!(cold.code, Some(0), "{}", cold.stderr);
    let object = project.bytes("k.o");
    succeed(&mut nvtune(&project, &["lock"]));
    let lock = project.read("nvtune.lock");
    assert!(lock.contains("k.cu: k, sm_80") && lock.matches("\"WORK\": 4").count() == 2, "{lock}");

    let from_lock = locked(&project, &arguments);
    assert_eq!(count(&from_lock, "warning"), 0, "{}", from_lock.stderr);
    assert!(project.bytes("k.o") == object, "locked: the object is another one: {}", from_lock.stderr);

    std::fs::remove_file(project.path("nvtune.lock")).expect("removed");
    project.write("k.cu", &format!("{source}int another() {{ return 1; }}\n"));
    let known = tuned(&project, &arguments, entries);
    assert_eq!(count(&known, " 0 of "), 0, "nothing is looked at anew: {}", known.stderr);
    assert!(count(&known, "; from the cache") > 0 && count(&known, "points timed") == 0, "{}", known.stderr);
}

#[test]
#[ignore = "long: in the full run"]
fn fat_build_locks_each_architecture() {
    let project = Project::new(&["fat.cu"]);
    let options = ["-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90"];
    let arguments: Vec<String> =
        ["-O3", "-c", "fat.cu", "-o", "fat.o"].iter().chain(&options).map(|&word| word.to_owned()).collect();
    let said = || {
        let said = launches(&project, &["fat.o"], &[("FAKE_CAPABILITIES", "80 90 90 80")]);
        std::fs::remove_file(project.path("fat.o")).expect("it was built");
        said
    };
    let entries = r#"{"label": "block=64 regs=24", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    let cold = tuned(&project, &arguments, entries);
    assert_eq!(cold.code, Some(0), "{}", cold.stderr);
    let reshaped = said();
    assert!(reshaped.contains("block 64 1 1") && reshaped.contains("block 256 1 1"), "{reshaped}");
    succeed(&mut nvtune(&project, &["lock"]));
    let lock = project.read("nvtune.lock");
    assert!(lock.contains("fat.cu: mixed, sm_80") && lock.contains("fat.cu: mixed, sm_90"), "{lock}");

    let from_lock = locked(&project, &arguments);
    assert_eq!(count(&from_lock, ", locked"), 2, "{}", from_lock.stderr);
    assert_eq!(said(), reshaped, "locked");

    std::fs::remove_file(project.path("nvtune.lock")).expect("removed");
    for what in ["the whole call is known", "each kernel is known"] {
        let known = tuned(&project, &arguments, entries);
        assert_eq!(count(&known, "; from the cache"), 2, "{what}: {}", known.stderr);
        assert_eq!(said(), reshaped, "{what}");
        project.write("fat.cu", &format!("{}\nint another() {{ return 1; }}\n", project.read("fat.cu")));
    }
}

/// A project whose lock file has a measured winner.
fn locked_project() -> Project {
    let project = Project::new(&["saxpy.cu"]);
    let wins = r#"{"label": "block=512", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    assert_eq!(tuned(&project, &compile("saxpy.cu", "saxpy.o"), wins).code, Some(0));
    succeed(&mut nvtune(&project, &["lock"]));
    project
}

#[test]
fn lock_file_of_others_puts_no_code_into_the_header() {
    let project = locked_project();
    let evil = "x*/\\n__attribute__((constructor)) static void evil(void) { __builtin_trap(); }\\n#define U_";
    project.write("nvtune.lock", &project.read("nvtune.lock").replace("NVIDIA H200", evil));
    let ran = locked(&project, &compile("saxpy.cu", "saxpy.o"));
    assert_eq!(count(&ran, "over the baseline, locked"), 1, "{}", ran.stderr);
    let header = project.read("saxpy.tune.h");
    let line = header.lines().find(|line| line.contains("SAXPY_GPU")).unwrap_or_default();
    assert!(line.contains("\"x?/?__attribute__") && line.ends_with('"'), "{line}");
    // The macro's value and words of the comment, which does not end there.
    let lines: Vec<&str> = header.lines().filter(|line| line.contains("evil")).collect();
    assert_eq!(lines.len(), 2, "{header}");
    assert!(lines[0].starts_with(" *   ") && lines[0].contains("x?/?__attribute__"), "{header}");
    assert_eq!(lines[1], line);
}

#[test]
fn lock_file_counts_if_the_user_or_root_or_the_sources_owner_owns_it() {
    let project = locked_project();
    // Only root can give a file away.
    if std::os::unix::fs::chown(project.path("nvtune.lock"), Some(65_534), None).is_err() {
        return;
    }
    let ran = locked(&project, &compile("saxpy.cu", "saxpy.o"));
    assert!(ran.stderr.contains("nvtune.lock' belongs to another user and is not used"), "{}", ran.stderr);
    let named = project.path("nvtune.lock");
    let mut build = project.nvtune(&compile("saxpy.cu", "saxpy.o"));
    let ran = succeed(build.env("NVTUNE", "locked").env("NVTUNE_CACHE_SIZE", "0").env("NVTUNE_LOCK", named));
    assert_eq!(count(&ran, "over the baseline, locked"), 1, "{}", ran.stderr);
    std::os::unix::fs::chown(project.path("saxpy.cu"), Some(65_534), None).expect("given away");
    let ran = locked(&project, &compile("saxpy.cu", "saxpy.o"));
    assert_eq!(count(&ran, "over the baseline, locked"), 1, "{}", ran.stderr);
}

#[test]
#[ignore = "long: in the full run"]
fn kernel_of_a_header_is_not_tuned_again_after_another_source() {
    let project = Project::new(&["saxpy.cu"]);
    std::fs::rename(project.path("saxpy.cu"), project.path("saxpy.cuh")).expect("renamed");
    let saxpy = project.read("saxpy.cuh").replace("a * x[i]", "SCALE * x[i]");
    project.write("saxpy.cuh", &saxpy);
    let device = r#"{"name": "NVIDIA H200", "compute_capability": 90, "driver": 13000}"#;
    let entries = r#"{"label": "block=64", "time_us": 5.0}, {"time_us": 10.0, "spread": 0.01}"#;
    project.write("recorded.json", &format!(r#"{{"device": {device}, "entries": [{entries}]}}"#));
    for (source, scale) in [("a", "a"), ("b", "2 * a")] {
        project.write(&format!("{source}.cu"), &format!("#define SCALE ({scale})\n#include \"saxpy.cuh\"\n"));
    }
    for (source, is_known) in [("a", false), ("b", false), ("a", true), ("b", true)] {
        let mut build = project.nvtune(&compile(&format!("{source}.cu"), &format!("{source}.o")));
        let ran = succeed(build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"));
        assert_eq!(ran.stderr.contains("from the cache"), is_known, "{source}: {}", ran.stderr);
    }
}
