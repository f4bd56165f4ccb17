//! Compiling and measuring at once: the next kernel is compiled while one is on the GPU, and a budget bounds both.

use super::project::{Project, compile, run, succeed};
use super::tools::toolkit;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Two kernels; the second is launched in another block than its baseline's.
const TWO: &str = "\
//@tune threads(n) block({64, 128}) regs({0, 24}) default(block = 128) args(n = 1 << 12, x = random[n], y = out[n])
__global__ void first(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 2.0f;
}
//@tune threads(n) block({96, 256}) regs({0, 24}) default(block = 256) args(n = 1 << 12, x = random[n], y = out[n])
__global__ void second(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 3.0f;
}
void launch(int n, const float *x, float *y) { second<<<n / 512, 512>>>(n, x, y); }
";

/// A project of one source, with a folder for temporary files and recorded timings that say in `log` what they are asked.
fn project(name: &str, source: &str, entries: &str) -> Project {
    let project = Project::new(&[]);
    std::fs::create_dir(project.path("tmp")).expect("a folder");
    project.write(name, source);
    let device = r#"{"name": "NVIDIA H200", "compute_capability": 90, "driver": 13000, "sms": 132, "memory_bytes": 150000000000}"#;
    project.write("recorded.json", &format!(r#"{{"device": {device}, "log": "log", "entries": [{entries}]}}"#));
    project
}

fn build(project: &Project, source: &str) -> Command {
    let mut build = project.nvtune(&compile(source, &source.replace(".cu", ".o")));
    build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json").env("TMPDIR", project.path("tmp"));
    build
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Processes that were started with this folder for temporary files.
pub fn processes(temporary: &Path) -> usize {
    let mark = format!("TMPDIR={}", temporary.display());
    let entries = std::fs::read_dir("/proc").expect("Linux").flatten();
    let is_ours = |path: &Path| {
        std::fs::read(path.join("environ")).is_ok_and(|text| memchr::memmem::find(&text, mark.as_bytes()).is_some())
    };
    entries.filter(|entry| is_ours(&entry.path())).count()
}

#[test]
fn next_kernel_is_compiled_while_one_is_timed_and_a_signal_ends_both() {
    // The first kernel's launches take long: all of the second is compiled before it is decided.
    let project =
        project("two.cu", TWO, r#"{"kernel": "_Z5firstiPKfPf", "time_us": 100, "pause_ms": 100}, {"time_us": 100}"#);
    let mut command = build(&project, "two.cu");
    let reset = || {
        // SAFETY: no handler is installed; a shell's background ignores SIGINT.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
        Ok(())
    };
    // SAFETY: between fork and exec nothing but `signal` is called, which may be.
    let mut child = unsafe { command.stderr(Stdio::piped()).pre_exec(reset) }.spawn().expect("it starts");
    let wait = |what: &str, there: &dyn Fn() -> bool| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !there() {
            assert!(Instant::now() < deadline, "{what} does not come");
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    let log = || std::fs::read_to_string(project.path("log")).unwrap_or_default();
    let variants = || names(&project.path("bin/cache/v1/variants")).len();
    wait("timing", &|| !log().is_empty());
    let of_first = variants();
    wait("more machine code", &|| variants() > of_first);
    let second = ["block=96", "block=256"];
    assert!(second.iter().all(|block| !log().contains(block)), "the first is still under way: {}", log());
    // SAFETY: the child is not collected yet, so the number is its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let sent = Instant::now();
    child.wait().expect("it ends");
    assert!(sent.elapsed() < Duration::from_secs(5));
    // The measuring process ends when it sees that its caller is gone, which is a moment after.
    let ended = || processes(&project.path("tmp")) == 0;
    while !ended() {
        assert!(sent.elapsed() < Duration::from_secs(5), "a process is left");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(names(&project.path("tmp")), [""; 0]);
    assert_eq!(names(&project.path("bin/cache/v1/tmp")), [""; 0]);
}

const MACRO_SETS: &str = "\
//@tune threads(n) block({64, 128}) regs({0}) define(ITEMS = {1, 2, 4}) default(block = 128, ITEMS = 1)
//@tune args(n = 1 << 12, x = random[n], y = out[n])
#ifndef ITEMS
#define ITEMS 1
#endif
__global__ void scaled(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * ITEMS;
}
";

fn macro_sets_project() -> Project {
    project("scaled.cu", MACRO_SETS, r#"{"label": "block=64 ITEMS=4", "time_us": 50}, {"time_us": 100}"#)
}

/// The runner gives up where the three sets are not compiled before it lets the measuring process begin.
#[test]
fn macro_sets_are_compiled_while_the_measuring_process_starts() {
    let project = macro_sets_project();
    let compiled = format!("ls '{}'/*/*.stub.c | wc -l", project.path("tmp").display());
    let program = env!("CARGO_BIN_EXE_nvtune");
    let begin = format!("exec '{program}' measure --replay '{}'", project.path("recorded.json").display());
    let runner = project.script(
        "runner.sh",
        &format!("for i in $(seq 600); do\n[ \"$({compiled})\" -ge 3 ] && {begin}\nsleep 0.1\ndone\nexit 1"),
    );
    let mut build = build(&project, "scaled.cu");
    build.env_remove("NVTUNE_REPLAY").env("NVTUNE_RUNNER", runner).env("NVTUNE_WAIT", "90");
    let ran = succeed(&mut build);
    assert!(ran.stderr.contains("nvtune: scaled: block=64 ITEMS=4 (2.00x"), "{}", ran.stderr);
}

/// Each run of the preprocessor waits for the others to begin, or fails.
#[test]
fn source_is_preprocessed_for_all_macro_sets_at_once() {
    let project = macro_sets_project();
    std::fs::create_dir(project.path("host")).expect("a folder");
    let begun = project.path("begun").display().to_string();
    let script = format!(
        "\
case \"$*\" in
  *-dD*) name=definitions;;
  *-DITEMS=*) name=$(echo \"$*\" | sed 's/.*-DITEMS=\\(.\\).*/\\1/');;
  *) exec g++ \"$@\";;
esac
touch '{begun}'.$name
for i in $(seq 600); do
  [ \"$(ls '{begun}'.* | wc -l)\" -ge 4 ] && exec g++ \"$@\"
  sleep 0.1
done
exit 1"
    );
    let compiler = project.script("host/g++", &script);
    let mut words = compile("scaled.cu", "scaled.o");
    words.extend(["-ccbin".to_owned(), compiler]);
    // A locked build without a result has no use for any of them.
    let ran = succeed(project.nvtune(&words).env("NVTUNE", "locked"));
    assert!(!names(&project.path("")).iter().any(|name| name.starts_with("begun")), "{}", ran.stderr);
    let mut build = project.nvtune(&words);
    build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json").env("RAYON_NUM_THREADS", "5");
    let ran = succeed(build.env_remove("MAKEFLAGS"));
    assert!(ran.stderr.contains("nvtune: scaled: block=64 ITEMS=4 (2.00x"), "{}", ran.stderr);
}

#[test]
fn space_of_more_macro_sets_than_can_be_listed_is_an_error() {
    let many = MACRO_SETS.replace("ITEMS = {1, 2, 4}", "ITEMS = 1:3000:1, B = 1:3000:1, C = 1:3000:1");
    let project = project("scaled.cu", &many.replace("ITEMS = 1)", "ITEMS = 1, B = 1, C = 1)"), r#"{"time_us": 100}"#);
    let ran = run(&mut build(&project, "scaled.cu"));
    assert!(ran.code != Some(0) && ran.stderr.contains("[N0153]"), "{}", ran.stderr);
}

/// ptxas gives up under a cap where no variant without one is on the GPU before it ends.
#[test]
fn variants_without_caps_are_timed_while_others_are_compiled() {
    let source = "\
//@tune threads(n) block({64, 128, 256}) regs({0, 16, 24, 32}) default(block = 128)
//@tune args(n = 1 << 12, x = random[n], y = out[n])
__global__ void scaled(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * 2.0f;
}
";
    let slow = r#"{"time_us": 100}"#;
    for (entries, winner) in [
        (r#"{"label": "block=64", "time_us": 50}"#, "nvtune: scaled: block=64 (2.00x"),
        // What is refused early is not asked for again, and said.
        (
            r#"{"label": "block=64", "refused": {"faulted": {"error": "CUDA_ERROR_ILLEGAL_ADDRESS"}}}, {"label": "block=256", "time_us": 50}"#,
            "candidate refused: block=64",
        ),
    ] {
        let project = project("scaled.cu", source, &format!("{entries}, {slow}"));
        let log = project.path("log").display().to_string();
        let wait = format!(
            "\
for word in \"$@\"; do case \"$word\" in *.ptx) input=$word;; esac; done
grep -q maxnreg \"$input\" || exec \"$real\" \"$@\"
for i in $(seq 600); do
  grep -qs check '{log}' && exec \"$real\" \"$@\"
  sleep 0.1
done
exit 1"
        );
        let nvcc = toolkit(&project.path("kit"), "ptxas", &wait);
        let ran = succeed(build(&project, "scaled.cu").env("NVTUNE_NVCC", nvcc).env("RAYON_NUM_THREADS", "4"));
        assert!(ran.stderr.contains(winner), "{}", ran.stderr);
        let record = project.record("scaled.tune.json");
        let kernel = &record["kernels"][0];
        let rows = kernel["configurations"].as_array().expect("a list");
        let is_compiled = |row: &&serde_json::Value| row["variant"].is_u64() && row["exact_block"].is_null();
        assert_eq!(rows.iter().filter(is_compiled).count(), 3 * 4, "{kernel}");
        assert_eq!(kernel["provenance"], "measured");
        // Each is looked at once.
        let log = std::fs::read_to_string(log).expect("a log");
        let mut checked: Vec<&str> = log.lines().filter(|line| line.starts_with("check ")).collect();
        let count = checked.len();
        checked.sort_unstable();
        checked.dedup();
        assert_eq!(checked.len(), count, "{log}");
    }
}

#[test]
fn messages_come_in_the_order_of_the_kernels() {
    let crash = r#""refused": {"faulted": {"error": "CUDA_ERROR_ILLEGAL_ADDRESS"}}"#;
    let entries = format!(
        r#"{{"kernel": "_Z5firstiPKfPf", "label": "block=64", {crash}}}, {{"label": "block=96", "time_us": 50}}, {{"time_us": 100, "pause_ms": 1}}"#
    );
    let project = project("two.cu", TWO, &entries);
    let ran = succeed(&mut build(&project, "two.cu"));
    let place = |words: &str| ran.stderr.find(words).unwrap_or_else(|| panic!("{words}: {}", ran.stderr));
    let refused = place("nvtune warning : first: candidate refused: block=64");
    let launched = place("two.cu(11): warning: this launch of `second` has blocks of 512");
    let decided = [place("nvtune: first: block=128 (kept"), place("nvtune: second: block=96 (2.00x")];
    assert!(refused < launched && launched < decided[0] && decided[0] < decided[1], "{}", ran.stderr);
    // A build from the cache says it again.
    let again = succeed(&mut build(&project, "two.cu"));
    let warnings = |text: &str| text.lines().filter(|line| line.contains("warning")).collect::<Vec<_>>().join("\n");
    assert_eq!(warnings(&again.stderr), warnings(&ran.stderr));
}

/// More front ends than a machine of many cores compiles in a second, each with as many points as there are blocks.
const MANY: &str = "\
#ifndef WORK
#define WORK 1
#endif
//@tune define(WORK = 1:200) block(64:1024:64) regs({0}) default(block = 256, WORK = 1) strategy(es) launch(header)
//@tune threads(ceildiv(n, WORK)) args(n = 1 << 12, x = random[n], y = out[n])
__global__ void part(int n, const float *x, float *y) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * WORK;
    for (int k = 0; k < WORK; ++k)
        if (first + k < n) y[first + k] = x[first + k] * 2.0f;
}
";

#[test]
#[ignore = "long: in the full run"]
fn budget_bounds_compiling_and_timing_together() {
    let project = project(
        "part.cu",
        MANY,
        r#"{"label": "block=256 WORK=1", "time_us": 100, "pause_ms": 10}, {"time_us": 90, "pause_ms": 10}"#,
    );
    let ran = succeed(build(&project, "part.cu").env("NVTUNE_BUDGET", "2"));
    let record = project.record("part.tune.json");
    let kernel = &record["kernels"][0];
    let rows = kernel["configurations"].as_array().expect("a list");
    let cut = rows.iter().filter(|row| row["refused"] == "not compiled: half of the budget was over before its turn");
    let (cut, all) = (cut.count(), rows.len());
    assert_eq!(all, 200 * 16);
    assert!(cut > 0 && cut < all, "{cut}");
    let note = format!(
        "nvtune warning : part: {cut} of {all} points were not compiled in half of the budget of 2 s: a larger budget (NVTUNE_BUDGET, budget(...)) compiles more [N0044]\n"
    );
    assert!(ran.stderr.contains(&note), "{}", ran.stderr);
    // Of what was compiled a part was timed: a round of all would take longer than there was time.
    let timed = kernel["timed"].as_u64().expect("a count") as usize;
    assert!(timed > 1 && timed < all - cut && timed <= 150, "{timed} of {}", all - cut);
    assert_eq!(kernel["provenance"], "measured");
    // The sets that differ in one macro from the baseline's are all the same far: what was compiled is spread over them.
    let compiled: Vec<i64> =
        rows.iter().filter(|row| row["variant"].is_u64()).filter_map(|row| row["macros"]["WORK"].as_i64()).collect();
    assert!(compiled.contains(&1) && compiled.iter().any(|&work| work > 20), "{compiled:?}");
}
