//! Searches that are ended before they are decided: what they found is kept, and the next compile goes on from there.

use super::project::{Project, Ran, compile, run, succeed};
use super::results::nvtune;
use crate::support::full::cases;
use nvtune::record::{Cache, Journal, PointOutcome, Tried};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// One kernel of 64 points.
const SOURCE: &str = "\
//@tune threads(n) block({32, 64, 96, 128, 192, 256, 384, 512}) regs({0, 16, 24, 32, 40, 48, 64, 255}) default(block = 256)
//@tune args(n = 1 << 12, x = random[n], y = out[n])
__global__ void mix(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float s[16];
    for (int k = 0; k < 16; ++k) s[k] = x[(i + k) % n];
    for (int round = 0; round < 8; ++round)
        for (int k = 0; k < 16; ++k) s[k] = s[k] * s[(k + 5) % 16] + s[(k + 1) % 16];
    float sum = 0;
    for (int k = 0; k < 16; ++k) sum += s[k];
    if (i < n) y[i] = sum;
}
";

/// Blocks of 96 under a cap of 40 win, and those of 512 crash; each launch takes so many milliseconds. On the second GPU all takes `other` times as long.
fn recording(pause_ms: u32, other: f64) -> String {
    let entries = |gpu: &str, factor: f64| {
        let time = |label: &str, us: f64| {
            let us = us * factor;
            format!(r#"{{"gpu": "{gpu}", {label} "time_us": {us}, "spread": 0.01, "pause_ms": {pause_ms}}}"#)
        };
        let crash = format!(
            r#"{{"gpu": "{gpu}", "label": "block=512", "refused": {{"faulted": {{"error": "CUDA_ERROR_ILLEGAL_ADDRESS"}}}}}}"#
        );
        [crash, time(r#""label": "block=96 regs=40","#, 80.0), time(r#""label": "block=32","#, 250.0), time("", 100.0)]
            .join(",\n")
    };
    format!(
        r#"{{"device": {{"name": "NVIDIA H200", "compute_capability": 90, "driver": 13000, "sms": 132}},
            "gpus": ["GPU-1", "GPU-2"], "log": "log", "entries": [{}, {}]}}"#,
        entries("GPU-1", 1.0),
        entries("GPU-2", other)
    )
}

fn project(pause_ms: u32, other: f64) -> Project {
    let project = Project::new(&[]);
    project.write("mix.cu", SOURCE);
    project.write("recorded.json", &recording(pause_ms, other));
    std::fs::create_dir_all(project.path("run/nvtune")).expect("a folder");
    project
}

fn build(project: &Project) -> Command {
    let mut build = project.nvtune(&compile("mix.cu", "mix.o"));
    build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json").env("XDG_RUNTIME_DIR", project.path("run"));
    project.write("log", "");
    build
}

/// The candidates that a measuring process looked at for the first time.
fn checked(project: &Project) -> BTreeSet<String> {
    project.read("log").lines().filter_map(|line| line.strip_prefix("check ")).map(str::to_owned).collect()
}

/// What is kept of searches under way.
fn searches(project: &Project) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(project.path("bin/cache/v1/searches")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// What is kept of the points of searches under way.
fn kept(project: &Project) -> Vec<Tried> {
    let cache = Cache::new(&project.path("bin/cache"), u64::MAX);
    let read = |path: PathBuf| Journal::read(&cache, &format!("searches/{}", path.file_name()?.display()));
    searches(project).into_iter().filter_map(read).flat_map(|journal| journal.tried).collect()
}

/// Ends a build by a signal once its search has times to keep; gives its exit code and what it said. Ctrl-C is for all processes of
/// a terminal, also those that measure.
fn interrupted(project: &Project, signal: i32) -> (i32, String) {
    ended(project, build(project), signal, signal == libc::SIGINT)
}

/// Starts a command in a process group of its own, as a shell does.
fn start(mut command: Command) -> Child {
    let reset = || {
        for signal in [libc::SIGINT, libc::SIGTERM] {
            // SAFETY: no handler is installed; a shell's background ignores SIGINT.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: between fork and exec nothing but `signal` is called, which may be.
    let command = unsafe { command.stderr(Stdio::piped()).process_group(0).pre_exec(reset) };
    command.spawn().expect("it starts")
}

/// The end of a process, by a signal or not, and what it said.
fn end(child: Child) -> (i32, String) {
    let output = child.wait_with_output().expect("it ends");
    let code = output.status.code().or(output.status.signal().map(|signal| 128 + signal));
    (code.expect("one of them"), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Starts a command and ends it so.
fn ended(project: &Project, command: Command, signal: i32, is_for_all: bool) -> (i32, String) {
    let child = start(command);
    let deadline = Instant::now() + Duration::from_secs(60);
    // A refusal is written down at once, times are some moments later.
    while !kept(project).iter().any(|tried| matches!(tried.found, PointOutcome::Timed(_))) {
        assert!(Instant::now() < deadline, "no time is kept");
        std::thread::sleep(Duration::from_millis(2));
    }
    // SAFETY: the child is not collected yet, so the number is its own.
    unsafe { libc::kill(if is_for_all { -(child.id() as i32) } else { child.id() as i32 }, signal) };
    let ended = end(child);
    assert!(!project.path("mix.o").exists());
    ended
}

fn summary(ran: &Ran) -> &str {
    ran.stderr.lines().find(|line| line.starts_with("nvtune: mix: ")).unwrap_or_default()
}

/// The configuration and how it was chosen, without its gain, which differs by the noise of the rounds.
fn winner(ran: &Ran) -> String {
    let found = summary(ran).split(';').next().unwrap_or_default();
    let (configuration, chosen) = found.split_once(" (").unwrap_or_default();
    format!("{configuration},{}", chosen.split_once(',').unwrap_or_default().1)
}

/// Of the record: how many points an earlier search found out, and how many of them have a time of it.
fn resumed(project: &Project) -> (u64, usize) {
    let record = project.record("mix.tune.json");
    let kernel = &record["kernels"][0];
    let rows = kernel["configurations"].as_array().expect("a list");
    let earlier = rows.iter().filter(|row| row["timing"]["earlier"] == true).count();
    (kernel["resumed"].as_u64().unwrap_or(0), earlier)
}

#[test]
fn resumed_search_keeps_earlier_times_and_finds_the_same_winner() {
    let whole = project(0, 1.0);
    let ran = succeed(&mut build(&whole));
    let (expected, all) = (winner(&ran), checked(&whole));
    assert_eq!(expected, "nvtune: mix: block=96 regs=40, measured)", "{}", ran.stderr);
    assert!(searches(&whole).is_empty(), "what is decided is not under way");

    let signals = [(libc::SIGINT, 130), (libc::SIGKILL, 137), (libc::SIGTERM, 143)];
    for &(signal, code) in cases(&signals, 1) {
        let project = project(3, 1.0);
        let (ended, said) = interrupted(&project, signal);
        assert_eq!(ended, code, "{said}");
        let before = checked(&project);
        let refused = kept(&project).into_iter().filter(|tried| matches!(tried.found, PointOutcome::Refused(_)));
        let refused: BTreeSet<_> = refused.map(|tried| tried.configuration.to_string()).collect();
        if signal != libc::SIGKILL {
            let kept = said.strip_prefix("nvtune: mix: interrupted; what is known of ");
            let kept = kept.unwrap_or_else(|| panic!("{said}"));
            assert!(kept.ends_with(" points is kept, the next compile goes on from there [N0008]\n"), "{said}");
        }
        let stats = succeed(&mut nvtune(&project, &["cache", "stats"])).stdout;
        assert!(stats.contains("searches   1 interrupted\n"), "{stats}");

        let ran = succeed(&mut build(&project));
        assert_eq!(winner(&ran), expected, "{}", ran.stderr);
        let now = checked(&project);
        let (resumed, earlier) = resumed(&project);
        assert!(resumed > 0 && earlier > 0, "{}", ran.stderr);
        assert!(now.len() < all.len(), "{now:?} after {before:?}");
        assert!(!before.is_subset(&now), "{now:?} after {before:?}");
        assert!(refused.is_disjoint(&now), "{now:?} after {refused:?}");
        assert!(
            summary(&ran).contains(&format!(" points timed ({resumed} before an interruption), ")),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("candidate refused: block=512"), "{}", ran.stderr);
        assert!(searches(&project).is_empty(), "what is decided is not under way");
        // Nothing of it is left to the build after.
        let again = succeed(&mut build(&project));
        assert!(again.stderr.contains("; from the cache") && checked(&project).is_empty(), "{}", again.stderr);
    }
}

#[test]
#[ignore = "long: in the full run"]
fn torn_journal_and_journal_of_a_slower_gpu_are_not_used() {
    // The second GPU is 2% slower, which is noise, or 20%, which is not; or the file is damaged.
    for (what, other, is_torn, is_used) in
        [("noise", 1.02, false, true), ("another state", 1.2, false, false), ("torn", 1.0, true, false)]
    {
        let project = project(3, other);
        interrupted(&project, libc::SIGTERM);
        let before = checked(&project);
        if is_torn {
            let path = &searches(&project)[0];
            let mut bytes = std::fs::read(path).expect("it is there");
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x20;
            std::fs::write(path, bytes).expect("written");
        }
        // Who has the first GPU leaves the second.
        let lock = std::fs::File::create(project.path("run/nvtune/GPU-1.lock")).expect("made");
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("nobody else has it");
        let ran = run(build(&project).env("NVTUNE_WAIT", "5"));
        assert_eq!(ran.code, Some(0), "{what}: {}", ran.stderr);
        let (resumed, earlier) = resumed(&project);
        assert_eq!(earlier > 0, is_used, "{what}: {}", ran.stderr);
        // A crash is a crash in any state; what is torn tells nothing.
        assert!(resumed == 0 || !is_torn, "{what}: {}", ran.stderr);
        assert_eq!(resumed > 0, summary(&ran).contains(" before an interruption)"), "{what}: {}", ran.stderr);
        assert_eq!(winner(&ran), "nvtune: mix: block=96 regs=40, measured)", "{what}: {}", ran.stderr);
        let timed: BTreeSet<_> = before.into_iter().filter(|label| !label.contains("block=512")).collect();
        assert_eq!(timed.is_subset(&checked(&project)), !is_used, "{what}");
    }
}

/// What nvtune itself lets tools write goes with it, whatever is under way.
#[test]
fn ended_build_leaves_no_temporary_files() {
    let project = project(0, 1.0);
    let hangs = |mark: &str| format!("touch '{}'; exec sleep 100", project.path(mark).display());
    // Of the final build alone, whose PTX is edited for the winner's register cap.
    let of_shim = format!("case \"$*\" in *--entry*) ;; *) {} ;; esac\nexec \"$real\" \"$@\"", hangs("assembling"));
    let nvcc = super::tools::toolkit(&project.path("bin"), "ptxas", &of_shim);
    let sanitizer = format!("#!/bin/sh\n{}\n", hangs("sanitizing"));
    std::fs::create_dir(project.path("tools")).expect("a folder");
    project.write("tools/compute-sanitizer", &sanitizer);
    let tool = project.path("tools/compute-sanitizer");
    std::fs::set_permissions(tool, PermissionsExt::from_mode(0o755)).expect("executable");
    for (mark, sanitize) in [("sanitizing", "1"), ("assembling", "0")] {
        let temporary = project.path(&format!("tmp-{mark}"));
        std::fs::create_dir(&temporary).expect("a folder");
        let mut command = build(&project);
        let path = format!("{}:/usr/bin:/bin", project.path("tools").display());
        command.env("TMPDIR", &temporary).env("NVTUNE_NVCC", &nvcc).env("NVTUNE_SANITIZE", sanitize).env("PATH", path);
        let child = start(command);
        let deadline = Instant::now() + Duration::from_secs(60);
        while !project.path(mark).exists() {
            assert!(Instant::now() < deadline, "{mark} does not begin");
            std::thread::sleep(Duration::from_millis(5));
        }
        // SAFETY: the child is not collected yet, so the number is its own.
        unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
        let (code, said) = end(child);
        assert_eq!(code, 128 + libc::SIGTERM, "{said}");
        let left: Vec<_> =
            std::fs::read_dir(&temporary).expect("it is there").flatten().map(|entry| entry.path()).collect();
        // nvcc's own stay where it is ended like this.
        let own: Vec<_> = left.iter().filter(|path| path.to_string_lossy().contains("nvtune")).collect();
        assert!(own.is_empty(), "{mark}: {own:?}");
    }
}

#[test]
#[ignore = "long: in the full run"]
fn interrupted_tune_of_a_project_is_resumed() {
    for (signal, is_for_all) in [(libc::SIGINT, true), (libc::SIGTERM, false)] {
        let project = project(3, 1.0);
        std::fs::create_dir(project.path("tmp")).expect("a folder");
        let database = serde_json::json!([{
            "directory": project.path(""), "file": "mix.cu",
            "arguments": [project.path("bin/nvcc"), "-arch=sm_90", "-c", "mix.cu", "-o", "mix.o"],
        }]);
        project.write("compile_commands.json", &database.to_string());
        let tune = || {
            let mut tune = nvtune(&project, &["tune", "--compile-commands", "compile_commands.json"]);
            tune.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json").env("TMPDIR", project.path("tmp"));
            tune.env("XDG_RUNTIME_DIR", project.path("run"));
            project.write("log", "");
            tune
        };
        let (code, said) = ended(&project, tune(), signal, is_for_all);
        assert_eq!(code, 128 + signal, "{said}");
        let words =
            "nvtune: interrupted; what was decided and timed is kept, the same command goes on from there [N0008]\n";
        assert!(said.ends_with(words), "{said}");
        let left = std::fs::read_dir(project.path("tmp")).expect("it is there").count();
        assert_eq!(left, 0, "temporary folders stay");
        assert!(!project.path("nvtune.lock").exists());

        let ran = succeed(&mut tune());
        assert!(
            // The replayed times scatter, and how many rounds there are depends on when it was interrupted.
            ["1.24x", "1.25x", "1.26x"]
                .iter()
                .any(|gain| ran.stderr.contains(&format!("nvtune: mix: block=96 regs=40 ({gain}"))),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains(" before an interruption), "), "{}", ran.stderr);
        assert!(project.read("nvtune.lock").contains("mix.cu: mix, sm_90"), "{}", project.read("nvtune.lock"));
    }
}

/// Keeps a core busy.
struct Busy(Child);

impl Busy {
    fn core(core: usize) -> Self {
        let words = ["-c", &core.to_string(), "sh", "-c", "while :; do :; done"];
        Self(Command::new("taskset").args(words).spawn().expect("it starts"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).expect("it ends");
    }
}

#[test]
#[ignore = "long: in the full run"]
fn tool_that_ctrl_c_ended_first_is_an_interruption_and_no_failure() {
    // A compiler that ends by a signal for all processes, while the threads that look after signals only run where nobody else wants
    // to, on a core that several want.
    let _busy = [Busy::core(0), Busy::core(0)];
    let project = project(0, 1.0);
    let interrupting = "#!/bin/sh\nfor process in $PPID $(cut -d' ' -f4 /proc/$PPID/stat); do\n\
        for task in /proc/$process/task/*; do\n\
        read name < $task/comm\n\
        test \"$name\" = signals && chrt -i -p 0 ${task##*/} && taskset -cp 0 ${task##*/} >> slowed\n\
        done\ndone\nkill -INT 0\n";
    project.write("bin/interrupting", interrupting);
    std::fs::set_permissions(project.path("bin/interrupting"), PermissionsExt::from_mode(0o755)).expect("executable");
    let database = serde_json::json!([{
        "directory": project.path(""), "file": "mix.cu", "arguments": ["nvcc", "-arch=sm_90", "-c", "mix.cu", "-o", "mix.o"],
    }]);
    project.write("compile_commands.json", &database.to_string());
    let kept = "nvtune: interrupted; what was decided and timed is kept, the same command goes on from there [N0008]\n";
    for is_project in [false, true] {
        let tune = || nvtune(&project, &["tune", "--compile-commands", "compile_commands.json"]);
        let (mut command, words) = if is_project { (tune(), kept) } else { (build(&project), "") };
        command.env("NVTUNE", "measure").env("NVTUNE_NVCC", project.path("bin/interrupting"));
        assert_eq!(end(start(command)), (128 + libc::SIGINT, words.to_owned()));
        assert!(!project.path("nvtune.lock").exists());
    }
    // Two lines for each such thread: a build has one, a worker and its parent one each.
    assert_eq!(project.read("slowed").lines().count(), 2 * 3, "{}", project.read("slowed"));
}

#[test]
#[ignore = "long: in the full run"]
fn object_of_a_build_that_a_signal_ends_has_its_dependency_file() {
    let project = project(0, 1.0);
    let header = "#if __has_include(\"mix.tune.h\")\n#include \"mix.tune.h\"\n#endif\n";
    project.write("mix.cu", &format!("{header}{}", project.read("mix.cu")));
    // The last tool of nvcc's waits for the signal, is ended by none, and the object is there then.
    let compiler = "#!/bin/sh\ntrap '' TERM\ng++ \"$@\" || exit\n\
        case \"$*\" in *.cudafe1.cpp*) : > built; while ! test -e signalled; do sleep 0.01; done; sleep 0.2;; esac\nexit 0\n";
    std::fs::create_dir(project.path("bin/host")).expect("a folder");
    project.write("bin/host/g++", compiler);
    std::fs::set_permissions(project.path("bin/host/g++"), PermissionsExt::from_mode(0o755)).expect("executable");
    let arguments =
        ["-arch=sm_90", "-c", "mix.cu", "-o", "mix.o", "-objtemp", "-MD", "-MF", "mix.d", "-ccbin", "bin/host/g++"];
    let results = || ["mix.o", "mix.d", "mix.tune.h"].map(|name| std::fs::read(project.path(name)).ok());
    project.write("signalled", "");
    succeed(&mut project.nvtune(&arguments));
    let expected = results();
    for name in ["mix.o", "mix.d", "mix.tune.h", "built", "signalled"] {
        std::fs::remove_file(project.path(name)).expect("it was made");
    }
    let child = start(project.nvtune(&arguments));
    let deadline = Instant::now() + Duration::from_secs(60);
    while !project.path("built").exists() {
        assert!(Instant::now() < deadline, "nothing is built");
        std::thread::sleep(Duration::from_millis(2));
    }
    // SAFETY: the child is not collected yet, so the number is its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    project.write("signalled", "");
    let (code, said) = end(child);
    assert_eq!(code, 128 + libc::SIGTERM, "{said}");
    assert!(results() == expected, "{:?}", results().map(|file| file.is_some()));
}
