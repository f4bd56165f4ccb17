//! What may go wrong on the way to a winner, with a measuring process that answers from recorded timings: no wrong variant wins,
//! the build passes, and the user is told.

use super::project::{Project, Ran, compile, run, succeed};
use std::process::Command;

/// A build of `saxpy.cu` on a recording with these entries.
fn build(project: &Project, entries: &str) -> Command {
    build_of(project, "saxpy.cu", entries)
}

/// A build of this source.
fn build_of(project: &Project, source: &str, entries: &str) -> Command {
    project.write(
        "recorded.json",
        &format!(r#"{{"device": {{"name": "NVIDIA H200", "compute_capability": 90}}, "entries": [{entries}]}}"#),
    );
    let mut command = project.nvtune(&compile(source, &source.replace(".cu", ".o")));
    command.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json");
    command
}

fn built(entries: &str) -> (Project, Ran) {
    let project = Project::new(&["saxpy.cu"]);
    let ran = succeed(&mut build(&project, entries));
    (project, ran)
}

#[test]
fn candidates_with_twelve_faults_are_named_and_do_not_win() {
    let differs = |got: &str| {
        format!(
            r#"{{"differs": {{"buffer": "y", "index": 7, "lane": 0, "expected": "2.0", "got": "{got}", "count": 1, "of": 8}}}}"#
        )
    };
    let faulted = |error: &str| format!(r#"{{"faulted": {{"error": "{error}"}}}}"#);
    // As the GPU's own tests (tests/gpu.rs) find them.
    let faults = [
        ("wrong result", differs("3.0"), "y[7] is 3.0, not 2.0"),
        ("race at one block size", differs("1.5"), "y[7] is 1.5"),
        ("out of bounds", faulted("CUDA_ERROR_ILLEGAL_ADDRESS"), "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("infinite loop", r#"{"hung": {"limit_s": 10.0}}"#.to_owned(), "did not end within 10 s"),
        ("trap", faulted("CUDA_ERROR_LAUNCH_FAILED"), "CUDA_ERROR_LAUNCH_FAILED"),
        (
            "too much shared memory",
            r#"{"too_many_resources": {"what": "300000 bytes of shared memory are more than the 232448 of the GPU"}}"#
                .to_owned(),
            "300000 bytes of shared memory",
        ),
        ("NaN", differs("NaN"), "y[7] is NaN"),
        ("untouched output", differs("-3.2e-12"), "y[7] is -3.2e-12"),
        ("depends on the block size", differs("64.0"), "y[7] is 64.0"),
        ("writes its input", r#"{"stray": {"buffer": "x"}}"#.to_owned(), "writes to `x`"),
        ("misaligned access", faulted("CUDA_ERROR_MISALIGNED_ADDRESS"), "CUDA_ERROR_MISALIGNED_ADDRESS"),
        ("device assert", faulted("CUDA_ERROR_ASSERT"), "CUDA_ERROR_ASSERT"),
    ];
    // A kernel for each.
    let project = Project::new(&[]);
    let kernel = |number: usize| {
        format!(
            "//@tune threads(n) block({{256, 512, 1024}}) regs({{0}}) default(block = 256)\n\
             //@tune args(n = 1 << 20, x = random[n], y = random[n])\n\
             __global__ void fault{number}(int n, const float *x, float *y) {{\n\
             const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] += x[i]; }}\n"
        )
    };
    project.write("faults.cu", &(0..faults.len()).map(kernel).collect::<String>());
    let entries = faults.iter().enumerate().map(|(number, (_, refused, _))| {
        // It would be the fastest by far; a slower one is right.
        let symbol = format!("_Z{}fault{number}iPKfPf", format!("fault{number}").len());
        format!(
            r#"{{"kernel": "{symbol}", "label": "block=512", "refused": {refused}, "time_us": 1.0}},
               {{"kernel": "{symbol}", "label": "block=1024", "time_us": 50.0}},
               {{"kernel": "{symbol}", "time_us": 100.0}}"#
        )
    });
    let ran = run(&mut build_of(&project, "faults.cu", &entries.collect::<Vec<_>>().join(",")));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(project.path("faults.o").is_file(), "an object was built");
    for (number, (fault, _, said)) in faults.iter().enumerate() {
        let warned = format!("nvtune warning : fault{number}: ");
        let warning = ran.stderr.lines().find(|line| line.starts_with(&warned)).unwrap_or_default();
        assert!(warning.contains("refused: block=512: ") && warning.contains(said), "{fault}: {}", ran.stderr);
        assert!(ran.stderr.contains(&format!("nvtune: fault{number}: block=1024 (2.00x")), "{fault}: {}", ran.stderr);
    }
}

#[test]
fn winner_that_fails_on_other_contents_gives_way_to_the_next() {
    let (project, ran) = built(
        r#"{"label": "block=512 seed=2", "refused": {"stray": {"buffer": "x"}}},
           {"label": "block=512", "time_us": 50.0}, {"label": "block=1024", "time_us": 60.0}, {"time_us": 100.0}"#,
    );
    let warning = "saxpy: the fastest is refused for other contents of the buffers: block=512: writes to `x`";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    assert!(ran.stderr.contains("nvtune: saxpy: block=1024 (1.67x"), "{}", ran.stderr);
    let record = project.record("saxpy.tune.json");
    let rows = record["kernels"][0]["configurations"].as_array().expect("a list");
    let refused: Vec<_> = rows.iter().filter(|row| row["refused"].is_string()).collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(refused[0]["launch"]["block"][0], 512);
}

/// A duel of two such kernels with the baseline takes longer than there is time for.
#[test]
fn long_kernel_that_is_refused_gives_way_to_one_that_there_was_no_time_for() {
    let (project, ran) = built(
        r#"{"label": "block=512 seed=2", "refused": {"stray": {"buffer": "x"}}},
           {"label": "block=512", "time_us": 500000.0}, {"label": "block=1024", "time_us": 600000.0},
           {"time_us": 1000000.0}"#,
    );
    let warning = "saxpy: the fastest is refused for other contents of the buffers: block=512: writes to `x`";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    assert!(ran.stderr.contains("nvtune: saxpy: block=1024 (1.67x"), "{}", ran.stderr);
    let record = project.record("saxpy.tune.json");
    let rows = record["kernels"][0]["configurations"].as_array().expect("a list");
    let paired = rows.iter().filter(|row| row["timing"]["paired_us"].is_number()).count();
    assert_eq!(paired, 3, "the baseline and one at a time: {rows:?}");
    assert!(rows.iter().all(|row| row["timing"]["warm_us"].is_null()), "{rows:?}");
}

#[test]
fn winner_stays_if_the_baseline_cannot_run_on_other_contents() {
    let (_, ran) = built(
        r#"{"label": "block=256 seed=2", "refused": {"faulted": {"error": "CUDA_ERROR_ASSERT"}}},
           {"label": "block=512", "time_us": 50.0}, {"time_us": 100.0}"#,
    );
    assert!(ran.stderr.contains("could not be compared for other contents"), "{}", ran.stderr);
    assert!(ran.stderr.contains("nvtune: saxpy: block=512 (2.00x"), "{}", ran.stderr);
}

/// A build of `saxpy.cu` on a GPU that another process measures on until the file is dropped.
fn on_a_busy_gpu() -> (Project, std::fs::File) {
    let project = Project::new(&["saxpy.cu"]);
    project.write("saxpy.cu", &project.read("saxpy.cu").replacen("//@tune", "//@tune launch(header)", 1));
    project.write(
        "recorded.json",
        r#"{"device": {"name": "NVIDIA H200", "compute_capability": 90, "uuid": "GPU-1"},
            "entries": [{"label": "block=512", "time_us": 50.0}, {"time_us": 100.0}]}"#,
    );
    // What another measurer does while it measures.
    let folder = project.path("run/nvtune");
    std::fs::create_dir_all(&folder).expect("made");
    let lock = std::fs::File::create(folder.join("GPU-1.lock")).expect("made");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("nobody else has it");
    (project, lock)
}

fn built_within(project: &Project, wait: &str) -> Ran {
    let mut build = project.nvtune(&["-arch=sm_90", "-cubin", "saxpy.cu"]);
    build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json");
    succeed(build.env("XDG_RUNTIME_DIR", project.path("run")).env("NVTUNE_WAIT", wait))
}

#[test]
fn build_on_a_busy_gpu_gives_up_after_the_wait_that_is_set() {
    let (project, _lock) = on_a_busy_gpu();
    let ran = built_within(&project, "1");
    let waits = "nvtune: waiting for the NVIDIA H200, which another nvtune measures on, at most 1 s [N0086]\n";
    assert!(ran.stderr.contains(waits), "{}", ran.stderr);
    let warning = "saxpy: not timed, the model chooses: others have measured on the NVIDIA H200 for 1 s";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    assert!(!project.read("saxpy.tune.h").contains("measured"));
}

#[test]
fn build_on_a_busy_gpu_goes_on_when_it_is_free() {
    let (project, lock) = on_a_busy_gpu();
    // The lock goes with its holder; the wait is in the record and took nothing from the budget.
    let holder = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_secs(3));
        drop(lock);
    });
    let ran = built_within(&project, "60");
    holder.join().expect("it sleeps only");
    assert!(ran.stderr.contains("nvtune: saxpy: block=512 (2.00x"), "{}", ran.stderr);
    let waited = project.record("saxpy.tune.json")["kernels"][0]["seconds"]["waited"].as_f64().expect("a number");
    assert!(waited < 3.5, "{waited}");
}

#[test]
#[ignore = "long: in the full run"]
fn gpu_conditions_are_recorded_and_throttling_is_a_warning() {
    let project = Project::new(&["saxpy.cu"]);
    let recording = |conditions: &str| {
        format!(
            r#"{{"device": {{"name": "NVIDIA H200", "compute_capability": 90}}, "conditions": [{conditions}],
                "entries": [{{"label": "block=512", "time_us": 50.0}}, {{"time_us": 100.0}}]}}"#
        )
    };
    let built = |conditions: &str| {
        project.write("recorded.json", &recording(conditions));
        let mut build = project.nvtune(&compile("saxpy.cu", "saxpy.o"));
        succeed(build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"))
    };
    let ran = built(r#"{"sm_mhz": 1980, "memory_mhz": 3201, "temperature_c": 41}"#);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let conditions = &project.record("saxpy.tune.json")["kernels"][0]["conditions"];
    assert_eq!(conditions["sm_mhz"], serde_json::json!([1980, 1980]));
    assert_eq!((&conditions["temperature_c"], &conditions["repeated"]), (&41.into(), &0.into()));
    let ran = built(r#"{"sm_mhz": 1200, "throttled": ["power cap"]}"#);
    assert!(ran.stderr.contains("saxpy: the GPU was throttled in "), "{}", ran.stderr);
    assert!(ran.stderr.contains("rounds (power cap)"), "{}", ran.stderr);
}

/// A runner that is a pipe as ssh is: nothing but the two streams, another folder, an empty environment; it breaks after so many
/// bytes of what the measuring process says (none: never).
fn ssh_like(project: &Project, breaks: Option<usize>) -> String {
    let program = env!("CARGO_BIN_EXE_nvtune");
    let recording = project.path("recorded.json");
    let cut = breaks.map_or(String::new(), |bytes| format!("| {{ dd bs=1 count={bytes} 2>/dev/null; kill -9 $$; }}"));
    let script = format!(
        "#!/bin/sh\ncd /\necho 'Welcome to gpu01!'\nshift\nshift\nenv -i {program} \"$@\" --replay {} {cut}\n",
        recording.display()
    );
    project.write("ssh.sh", &script);
    format!("/bin/sh '{}' gpu01", project.path("ssh.sh").display())
}

#[test]
#[ignore = "long: in the full run"]
fn runner_that_breaks_at_any_byte_is_a_warning_at_most() {
    let project = Project::new(&["saxpy.cu"]);
    let entries = r#"{"label": "block=512", "time_us": 50.0}, {"time_us": 100.0}"#;
    let through = |breaks: Option<usize>| {
        let runner = ssh_like(&project, breaks);
        let mut command = build(&project, entries);
        command.env_remove("NVTUNE_REPLAY").env("NVTUNE_RUNNER", runner).env("NVTUNE_WAIT", "1");
        let ran = run(&mut command);
        assert_eq!(ran.code, Some(0), "{breaks:?}: {}", ran.stderr);
        std::fs::remove_file(project.path("saxpy.o")).expect("an object was built");
        ran.stderr
    };
    let whole = through(None);
    assert!(whole.contains("nvtune: saxpy: block=512 (2.00x") && !whole.contains("warning"), "{whole}");
    for bytes in [0, 20, 600, 1500, 2500, 5000, 9000, 14_000] {
        let said = through(Some(bytes));
        let won = said.contains("nvtune: saxpy: block=512 (2.00x");
        assert!(won || said.contains("nvtune warning : "), "{bytes}: {said}");
    }
}

#[test]
fn device_name_from_a_runner_puts_no_code_into_the_object() {
    let project = Project::new(&["saxpy.cu"]);
    for evil in [
        r#"x*/\n__attribute__((constructor)) static void evil(void) { __builtin_trap(); }\n#define U_"#,
        r#"\"); __builtin_trap(); (\"evil"#,
        r#"evil\\\r\n#error evil\n??/\u2028\u0000"#,
        r#"R\"(evil)\" %s%n $(touch evil) `touch evil`"#,
    ] {
        let entries = r#"{"label": "block=512", "time_us": 50.0}, {"time_us": 100.0}"#;
        let mut command = build(&project, entries);
        project.write("recorded.json", &project.read("recorded.json").replace("NVIDIA H200", evil));
        let runner = ssh_like(&project, None);
        command.env_remove("NVTUNE_REPLAY").env("NVTUNE_RUNNER", runner).env("NVTUNE_CACHE_SIZE", "0");
        let ran = run(&mut command);
        assert_eq!(ran.code, Some(0), "{evil}: {}", ran.stderr);
        assert!(ran.stderr.contains("nvtune: saxpy: block=512 (2.00x"), "{evil}: {}", ran.stderr);
        assert!(!ran.stderr.contains(['\r', '\0']), "{evil}: {:?}", ran.stderr);
        let header = project.read("saxpy.tune.h");
        // Words of the comment at the top, which ends where it should, and the value of one macro.
        let lines: Vec<&str> = header.lines().filter(|line| line.contains("evil")).collect();
        assert!(lines.len() <= 2 && header.matches("*/").count() == header.matches("/*").count(), "{evil}: {header}");
        for line in lines {
            let value = line.split_once("_GPU ").map(|(_, value)| value.trim());
            let inner = value.and_then(|value| value.strip_prefix('"')?.strip_suffix('"'));
            let is_value = inner.is_some_and(|inner| !inner.contains(['"', '\\']));
            assert!(is_value || line.starts_with(" * "), "{evil}: {header}");
        }
        // What runs before `main` of a program of it.
        let stub = project.tool_of_host("nm", &["-C", "saxpy.o"]);
        assert!(!stub.contains("evil") && !project.path("evil").exists(), "{evil}: {stub}");
    }
}

#[test]
fn winner_that_the_sanitizer_refuses_gives_way_to_the_next() {
    let project = Project::new(&["saxpy.cu"]);
    let entries =
        r#"{"label": "block=512", "time_us": 50.0}, {"label": "block=1024", "time_us": 60.0}, {"time_us": 100.0}"#;
    let sanitized = || {
        let path = format!("{}:/usr/bin:/bin", project.path("tools").display());
        succeed(build(&project, entries).env("NVTUNE_SANITIZE", "1").env("PATH", path)).stderr
    };
    let without = sanitized();
    assert!(without.contains("its winner is not sanitized: there is no compute-sanitizer on PATH"), "{without}");
    assert!(without.contains("nvtune: saxpy: block=512 (2.00x"), "{without}");
    // In the tool's place: it finds something the first time only.
    std::fs::create_dir(project.path("tools")).expect("made");
    let tool = "#!/bin/sh\necho '========= COMPUTE-SANITIZER' > $8\nif [ -e $0.found ]; then echo '========= ERROR SUMMARY: 0 errors' >> $8\nelse touch $0.found; echo '========= Invalid __global__ write of size 4 bytes' >> $8; fi\nshift 8\nexec \"$@\"\n";
    project.write("tools/compute-sanitizer", tool);
    let path = project.path("tools/compute-sanitizer");
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
    let said = sanitized();
    let warning = "refused by compute-sanitizer: block=512: Invalid __global__ write of size 4 bytes";
    assert!(said.contains(warning), "{said}");
    assert!(said.contains("nvtune: saxpy: block=1024 (1.67x"), "{said}");
    let kept = sanitized();
    assert!(kept.contains("nvtune: saxpy: block=1024 (1.67x over the baseline, measured); from the cache"), "{kept}");
    std::fs::remove_dir_all(project.path("bin/cache")).expect("removed");
    let said = sanitized();
    assert!(said.contains("nvtune: saxpy: block=512 (2.00x") && !said.contains("warning"), "{said}");
}

#[test]
#[ignore = "long: in the full run"]
fn only_code_that_the_gpu_can_load_is_timed() {
    let project = Project::new(&["saxpy.cu"]);
    let entries = r#"{"label": "block=512", "time_us": 50.0}, {"time_us": 100.0}"#;
    let built = |options: &[&str]| {
        build(&project, entries);
        let mut arguments: Vec<&str> = vec!["-O3", "-c", "saxpy.cu", "-o", "saxpy.o"];
        arguments.extend(options);
        let mut nvtune = project.nvtune(&arguments);
        succeed(nvtune.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json")).stderr
    };
    let said = built(&["-arch=sm_90a"]);
    assert!(said.contains("nvtune: saxpy: block=512 (2.00x over the baseline, measured)"), "{said}");
    assert!(!said.contains("warning"), "{said}");
    let said = built(&["-arch=sm_80"]);
    let note = "saxpy: timed as compiled by the driver: this call makes no machine code for the NVIDIA H200 (sm_90)";
    assert!(said.contains(note) && said.contains("block=512 (2.00x over the baseline, measured)"), "{said}");
    for options in [["-gencode", "arch=compute_80,code=sm_80"], ["-gencode", "arch=compute_100,code=sm_100"]] {
        let said = built(&options);
        let note = "saxpy: not timed, the model chooses: the NVIDIA H200 (sm_90) runs no machine code of this call";
        assert!(said.contains(note) && !said.contains("measured"), "{said}");
    }
    // Of several the one that is loaded.
    let said = built(&[
        "-gencode",
        "arch=compute_80,code=sm_80",
        "-gencode",
        "arch=compute_90,code=sm_90",
        "-gencode",
        "arch=compute_120,code=[sm_120,compute_120]",
    ]);
    assert!(said.contains("block=512 (2.00x over the baseline, measured)"), "{said}");
    assert!(project.read("saxpy.tune.h").contains("\"NVIDIA H200, sm_90\""));
}

#[test]
fn measuring_process_that_works_for_ever_is_given_up() {
    let project = Project::new(&["saxpy.cu"]);
    let entries =
        r#"{"label": "block=512", "fault": "work"}, {"label": "block=1024", "time_us": 50.0}, {"time_us": 100.0}"#;
    let begin = std::time::Instant::now();
    let ran = run(build(&project, entries).env("NVTUNE_PATIENCE", "2"));
    assert!(begin.elapsed() < std::time::Duration::from_secs(60), "{:?}", begin.elapsed());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("block=512: ") && ran.stderr.contains("saxpy: block=1024 (2.00x"), "{}", ran.stderr);
}

#[test]
#[ignore = "long: in the full run"]
fn measuring_process_that_sends_samples_for_ever_is_given_up() {
    let project = Project::new(&["saxpy.cu"]);
    let entries = r#"{"label": "block=512", "fault": "samples"}, {"time_us": 100.0}"#;
    let begin = std::time::Instant::now();
    let ran = run(build(&project, entries).env("NVTUNE_PATIENCE", "2").env("NVTUNE_BUDGET", "5"));
    assert!(begin.elapsed() < std::time::Duration::from_secs(60), "{:?}", begin.elapsed());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("saxpy: not timed, the model chooses: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("messages without an end"), "{}", ran.stderr);
}

#[test]
fn times_that_cannot_be_are_not_believed() {
    let (_, ran) = built(
        r#"{"label": "block=512", "time_us": 0.000005}, {"label": "block=1024", "time_us": 50.0}, {"time_us": 100.0}"#,
    );
    assert!(ran.stderr.contains("is faster than any configuration can be"), "{}", ran.stderr);
    assert!(ran.stderr.contains("saxpy: block=1024 (2.00x"), "{}", ran.stderr);
}
