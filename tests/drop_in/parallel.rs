//! nvtune among other processes: signals, make's jobserver, several at once.

use super::forms::CAPS_WIN;
use super::sandbox::{self, SMALL_HEADERS};
use crate::support::full::is_full;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder with `bin/nvcc` (nvtune), `tmp`, `out` and a marked source with several sets of macros.
struct Place {
    folder: tempfile::TempDir,
}

/// Macro sets of a marked source: each is read by a front end of its own.
fn macro_sets() -> usize {
    if is_full() { 6 } else { 3 }
}

/// Returns a marked source with `sets` sets of macros, each with two register caps.
fn source(sets: usize) -> String {
    let values: Vec<String> = (1..=sets).map(|value| value.to_string()).collect();
    format!(
        "#if __has_include(\"part.tune.h\")\n#include \"part.tune.h\"\n#endif\n#ifndef WORK\n#define WORK 1\n#endif\n\
         //@tune define(WORK = {{{}}}) block({{128, 256}}) regs({{0, 24}})\n\
         //@tune threads(ceildiv(n, WORK)) default(block = 256, WORK = 1) strategy(es) args(n = 1 << 20, x = random[n], y = out[n])\n\
         __global__ void part(int n, const float *x, float *y) {{\n\
             const int first = (blockIdx.x * blockDim.x + threadIdx.x) * WORK;\n\
             for (int k = 0; k < WORK; ++k)\n        if (first + k < n) y[first + k] = x[first + k] * 2.0f;\n}}\n",
        values.join(", ")
    )
}

/// Makes a command one of this folder's own calls: its temporary files, the real nvcc and its headers.
fn set_environment<'a>(command: &'a mut Command, place: &Place) -> &'a mut Command {
    command.current_dir(place.folder.path()).env("TMPDIR", place.path("tmp")).env("NVTUNE_NVCC", sandbox::nvcc());
    command.env("NVTUNE", "static").env("RAYON_NUM_THREADS", "4").env("NVCC_PREPEND_FLAGS", SMALL_HEADERS);
    command.env("NVTUNE_CACHE_DIR", place.path("bin/cache"));
    command.env_remove("MAKEFLAGS").env_remove("MAKELEVEL")
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["bin", "tmp", "out"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        symlink(env!("CARGO_BIN_EXE_nvtune"), folder.path().join("bin/nvcc")).expect("linked");
        fs::write(folder.path().join("part.cu"), source(macro_sets())).expect("written");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn nvtune(&self) -> Command {
        let mut command = Command::new(self.path("bin/nvcc"));
        set_environment(&mut command, self);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn write_executable(&self, name: &str, script: &str) {
        fs::write(self.path(name), script).expect("written");
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).expect("executable");
    }

    /// Makes `bin/g++`, a host compiler that does not end where the shell condition holds, and then makes the file `held`.
    fn hold_host_compiler(&self, condition: &str) {
        self.write_executable(
            "bin/g++",
            &format!("#!/bin/sh\nif {condition}; then : >held; sleep 300; fi\nexec g++ \"$@\"\n"),
        );
    }

    fn temporary_files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("tmp")).expect("it is there").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Returns the command lines of the processes that a call here has started.
    fn processes(&self) -> Vec<String> {
        let mark = format!("TMPDIR={}", self.path("tmp").display());
        let entries = fs::read_dir("/proc").expect("Linux").flatten();
        let is_ours = |path: &Path| {
            fs::read(path.join("environ")).is_ok_and(|text| memchr::memmem::find(&text, mark.as_bytes()).is_some())
        };
        entries
            .filter(|entry| is_ours(&entry.path()))
            .map(|entry| fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default().replace('\0', " "))
            .collect()
    }
}

/// Gives signals their default effect: a shell ignores SIGINT for what it runs in the background.
fn with_default_signals(command: &mut Command) -> &mut Command {
    let reset = || {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            // SAFETY: no handler is installed.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: between fork and exec nothing but `signal` is called, which may be.
    unsafe { command.pre_exec(reset) }
}

/// What an earlier build left beside its object.
const EARLIER: &str = "/* made by nvtune 0.1.0 from an earlier source: do not edit */\n";

/// Waits until something is there.
fn wait_for(what: &str, mut there: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !there() {
        assert!(Instant::now() < deadline, "{what} does not come");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn send(signal: &str, child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-s", signal, &id]).status().expect("kill").success());
}

fn end(child: Child) -> Output {
    child.wait_with_output().expect("it ends")
}

fn files_below(folder: &Path, name: &str) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| {
        path.file_name().is_some_and(|file| file.to_string_lossy().ends_with(name))
            || path.is_dir() && files_below(&path, name)
    })
}

/// Signals that end nvtune, with their numbers: the first one in a quick run.
fn signals() -> &'static [(&'static str, i32)] {
    if is_full() { &[("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3)] } else { &[("INT", 2)] }
}

/// Sends a signal to a call, and checks that neither a process nor a file of it is left.
fn check_ended(place: &Place, child: Child, (signal, number): (&str, i32)) {
    send(signal, &child);
    let sent = Instant::now();
    let output = end(child);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let code = output.status.code().or(output.status.signal().map(|signal| 128 + signal));
    assert_eq!(code, Some(128 + number), "{signal}: {said}");
    assert!(sent.elapsed() < Duration::from_secs(10), "{signal}");
    assert_eq!(place.temporary_files(), [""; 0], "{signal}: {said}");
    // One that was being started when the signal came takes a moment to die.
    let ended = Instant::now();
    while !place.processes().is_empty() && ended.elapsed() < Duration::from_secs(1) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(place.processes(), [""; 0], "{signal}");
    let left = fs::read_dir(place.path("out")).expect("there").flatten().map(|entry| entry.file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["x.tune.h"], "{signal}: neither object nor record");
    assert_eq!(fs::read_to_string(place.path("out/x.tune.h")).expect("there"), EARLIER, "{signal}");
    assert!(!said.contains("warning"), "{signal}: {said}");
}

#[test]
fn signal_while_tuning_leaves_no_process_and_no_file() {
    for signal in signals() {
        let place = Place::new();
        fs::write(place.path("out/x.tune.h"), EARLIER).expect("written");
        let mut command = place.nvtune();
        command.args(["-arch=sm_90", "-c", "part.cu", "-o", "out/x.o"]);
        let child = with_default_signals(&mut command).spawn().expect("it starts");
        wait_for("a front end", || files_below(&place.path("tmp"), ".ii"));
        check_ended(&place, child, *signal);
    }
}

#[test]
fn signal_while_building_leaves_no_process_and_no_file() {
    let two = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/sources/two.cu");
    for signal in signals() {
        let place = Place::new();
        fs::copy(&two, place.path("x.cu")).expect("copied");
        fs::write(place.path("recorded.json"), CAPS_WIN).expect("written");
        fs::write(place.path("out/x.tune.h"), EARLIER).expect("written");
        // The last step of nvcc's own build.
        place.hold_host_compiler("case \"$*\" in *.cudafe1.cpp*) true;; *) false;; esac");
        let mut command = place.nvtune();
        command.envs([("NVTUNE", "measure"), ("NVTUNE_REPLAY", "recorded.json")]);
        command.args(["-arch=sm_90", "-ccbin", "bin/g++", "-c", "x.cu", "-o", "out/x.o"]);
        let child = with_default_signals(&mut command).spawn().expect("it starts");
        wait_for("the host compiler", || place.path("held").exists());
        check_ended(&place, child, *signal);
    }
}

/// Returns a source that includes its header, with one kernel of its name and `more` behind it.
fn including(stem: &str, more: &str) -> String {
    format!(
        "#if __has_include(\"{stem}.tune.h\")\n#include \"{stem}.tune.h\"\n#endif\n\
         //@tune threads(n) block({{128, 256}}) regs({{0}}) default(block = 256) args(n = 1 << 16, x = random[n], y = out[n])\n\
         __global__ void {stem}(int n, const float *x, float *y) {{\n\
             const int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) y[i] = 2 * x[i];\n}}\n{more}\n"
    )
}

/// A call with two sources, `whole.cu` and `half.cu`, of which the second is not built to its end.
struct TwoSources {
    place: Place,
    extension: &'static str,
}

impl TwoSources {
    /// `more` stands behind the kernel of the second source.
    fn new(extension: &'static str, more: &str) -> Self {
        let place = Place::new();
        for (stem, text) in [("whole", including("whole", "")), ("half", including("half", more))] {
            fs::write(place.path(&format!("{stem}.cu")), text).expect("written");
            fs::write(place.path(&format!("out/{stem}.tune.h")), EARLIER).expect("written");
        }
        Self { place, extension }
    }

    fn start(&self, option: &str) -> Child {
        let mut command = self.place.nvtune();
        command.args(["-arch=sm_90", "-ccbin", "bin/g++", option, "whole.cu", "half.cu", "-odir", "out"]);
        with_default_signals(&mut command).spawn().expect("it starts")
    }

    /// Checks that the first source has its object, header and record, and the second what it had before.
    fn check_left(&self, output: &Output, option: &str) {
        let out = |name: &str, extension: &str| self.place.path(&format!("out/{name}.{extension}"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && out("whole", self.extension).exists(), "{option}: {said}");
        assert!(!out("half", self.extension).exists(), "{option}: {said}");
        let header = |name: &str| fs::read_to_string(out(name, "tune.h")).expect("there");
        assert!(header("whole").contains("struct whole"), "{option}: {said}");
        assert!(out("whole", "tune.json").exists(), "{option}: {said}");
        assert_eq!(header("half"), EARLIER, "{option}: {said}");
        assert!(!out("half", "tune.json").exists(), "{option}: {said}");
    }
}

#[test]
fn signal_in_the_second_source_keeps_the_header_of_the_first() {
    let options = [("-c", "o"), ("-dc", "o"), ("-cubin", "cubin")];
    for (option, extension) in &options[..if is_full() { 3 } else { 1 }] {
        let sources = TwoSources::new(extension, "");
        let place = &sources.place;
        // Held where the first source's output is there.
        place.hold_host_compiler(&format!(
            "[ -e out/whole.{extension} ] && case \"$*\" in *half*) true;; *) false;; esac"
        ));
        let child = sources.start(option);
        wait_for("the second source", || place.path("held").exists());
        send("INT", &child);
        sources.check_left(&end(child), option);
        assert_eq!(place.processes(), [""; 0], "{option}");
    }
}

#[test]
fn error_in_the_second_source_keeps_the_header_of_the_first() {
    let fails = "#ifndef __CUDA_ARCH__\nstatic_assert(sizeof(int) == 3, \"on the host\");\n#endif";
    // Of cubins no host compiler is asked.
    for option in if is_full() { &["-c", "-dc"][..] } else { &["-c"] } {
        let sources = TwoSources::new("o", fails);
        sources.place.hold_host_compiler("false");
        let child = sources.start(option);
        sources.check_left(&end(child), option);
    }
}

#[test]
fn ignored_hangup_stays_ignored() {
    let place = Place::new();
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(place.path("bin/nvcc"));
    command.args(["-arch=sm_90", "-c", "part.cu", "-o", "out/x.o"]);
    let child = set_environment(&mut command, &place).stderr(Stdio::piped()).spawn().expect("it starts");
    wait_for("tuning", || files_below(&place.path("tmp"), ".ii"));
    send("HUP", &child);
    let output = end(child);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(place.temporary_files(), [""; 0]);
}

/// A toolkit whose compiling tools write `+` and `-` into a log when they begin and end.
struct LoggingToolkit {
    place: Place,
    nvcc: PathBuf,
}

impl LoggingToolkit {
    fn new() -> Self {
        let place = Place::new();
        let real =
            sandbox::nvcc().parent().and_then(Path::parent).expect("a toolkit").canonicalize().expect("it is there");
        let root = place.path("toolkit");
        fs::create_dir_all(root.join("bin")).expect("a folder");
        fs::create_dir_all(root.join("nvvm/bin")).expect("a folder");
        let link_all = |from: &Path, to: &Path, but: &[&str]| {
            for entry in fs::read_dir(from).expect("readable").flatten() {
                if !but.iter().any(|name| entry.file_name() == *name) {
                    symlink(entry.path(), to.join(entry.file_name())).expect("linked");
                }
            }
        };
        link_all(&real, &root, &["bin", "nvvm"]);
        link_all(&real.join("bin"), &root.join("bin"), &["ptxas"]);
        link_all(&real.join("nvvm"), &root.join("nvvm"), &["bin"]);
        link_all(&real.join("nvvm/bin"), &root.join("nvvm/bin"), &["cicc"]);
        for tool in ["bin/ptxas", "nvvm/bin/cicc"] {
            let script = format!(
                "#!/bin/sh\necho + >> '{0}'\n'{1}' \"$@\"\ncode=$?\necho - >> '{0}'\nexit $code\n",
                place.path("log").display(),
                real.join(tool).display()
            );
            place.write_executable(&format!("toolkit/{tool}"), &script);
        }
        Self { nvcc: root.join("bin/nvcc"), place }
    }

    /// Compiles the source of the place; returns what [`most_at_once`](Self::most_at_once) does.
    fn compile(&self, makeflags: &str) -> (usize, usize) {
        let mut command = self.place.nvtune();
        command.env("NVTUNE_NVCC", &self.nvcc).env("MAKEFLAGS", makeflags);
        let output = command.args(["-arch=sm_90", "-c", "part.cu", "-o", "out/x.o"]).output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.most_at_once()
    }

    /// Takes the log: the most tools that were at work at once, and how many there were in all.
    fn most_at_once(&self) -> (usize, usize) {
        let text = self.take_log();
        let (mut now, mut most, mut all) = (0usize, 0, 0);
        for line in text.lines() {
            if line == "+" {
                now += 1;
                all += 1;
            } else {
                now = now.saturating_sub(1);
            }
            most = most.max(now);
        }
        (most, all)
    }

    fn take_log(&self) -> String {
        let text = fs::read_to_string(self.place.path("log")).expect("the tools have run");
        fs::remove_file(self.place.path("log")).expect("removed");
        text
    }
}

#[test]
fn tools_run_at_once_without_make() {
    let (most, all) = LoggingToolkit::new().compile("");
    assert!(most > 1 && all > 2 * macro_sets(), "{most} of {all} at once: nothing to limit");
}

#[test]
fn one_tool_runs_at_a_time_where_the_jobserver_is_out_of_reach() {
    assert_eq!(LoggingToolkit::new().compile(" -j8 --jobserver-auth=77,78").0, 1);
}

#[test]
fn one_token_of_a_fifo_jobserver_allows_a_second_tool_and_is_given_back() {
    let toolkit = LoggingToolkit::new();
    let fifo = toolkit.place.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let mut held = fs::File::options().read(true).write(true).open(&fifo).expect("open");
    std::io::Write::write_all(&mut held, b"+").expect("written");
    let (most, _) = toolkit.compile(&format!(" -j2 --jobserver-auth=fifo:{}", fifo.display()));
    assert_eq!(most, 2);
    let mut token = [0];
    std::io::Read::read_exact(&mut held, &mut token).expect("the token is back");
    assert_eq!(&token, b"+");
}

/// GNU make's jobserver is a pipe up to 4.3; `+` hands it on.
#[test]
fn gnu_make_limits_the_tools_of_all_its_compiles() {
    let toolkit = LoggingToolkit::new();
    let place = &toolkit.place;
    // Each includes its own header: without it the macro's values may not be chosen, and are not compiled.
    for name in ["a", "b", "c"] {
        let source = source(macro_sets()).replace("part.tune.h", &format!("{name}.tune.h"));
        fs::write(place.path(&format!("{name}.cu")), source).expect("written");
    }
    fs::write(place.path("Makefile"), "all: a.o b.o c.o\n%.o: %.cu\n\t+bin/nvcc -arch=sm_90 -c $< -o $@\n")
        .expect("written");
    let mut make = Command::new("make");
    let output = set_environment(make.arg("-j3"), place).env("NVTUNE_NVCC", &toolkit.nvcc).output();
    let output = output.expect("make starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (most, all) = toolkit.most_at_once();
    assert!(most <= 3 && all > 6 * macro_sets(), "{most} of {all} at once");
}

#[test]
fn no_tool_runs_beside_a_timed_kernel_without_a_token() {
    let toolkit = LoggingToolkit::new();
    let place = &toolkit.place;
    let two = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/sources/two.cu");
    fs::copy(two, place.path("two.cu")).expect("copied");
    let device = r#"{"name": "NVIDIA H200", "compute_capability": 90}"#;
    let entries = r#"[{"time_us": 10.0, "pause_ms": 5}]"#;
    let log = place.path("log");
    let recording = format!(r#"{{"device": {device}, "log": "{}", "entries": {entries}}}"#, log.display());
    fs::write(place.path("recorded.json"), recording).expect("written");
    // Launches, and those of them that were timed while a tool ran.
    let timed = |makeflags: &str| {
        let mut command = place.nvtune();
        command.envs([("NVTUNE", "measure"), ("NVTUNE_REPLAY", "recorded.json"), ("NVTUNE_CACHE_SIZE", "0")]);
        command.env("NVTUNE_NVCC", &toolkit.nvcc).env("MAKEFLAGS", makeflags);
        let output = command.args(["-arch=sm_90", "-c", "two.cu", "-o", "out/x.o"]).output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (mut now, mut all, mut beside) = (0usize, 0, 0);
        for line in toolkit.take_log().lines() {
            match line {
                "+" => now += 1,
                "-" => now = now.saturating_sub(1),
                _ => {
                    all += 1;
                    beside += usize::from(now > 0);
                }
            }
        }
        (all, beside)
    };
    let (all, beside) = timed("");
    assert!(beside > 0 && beside < all, "{beside} of {all}: nothing runs at once");
    let (all, beside) = timed(" -j8 --jobserver-auth=77,78");
    assert!(all > 0 && beside == 0, "{beside} of {all}");
}

#[test]
fn compiles_of_one_source_at_once_leave_whole_objects_and_one_header() {
    let place = Place::new();
    fs::write(place.path("part.cu"), source(3)).expect("written");
    let count = if is_full() { 8 } else { 4 };
    let compile = |number: usize| {
        place
            .nvtune()
            .args(["-arch=sm_90", "-c", "part.cu", "-o", &format!("out/{number}.o")])
            .spawn()
            .expect("it starts")
    };
    let children: Vec<Child> = (0..count).map(compile).collect();
    for child in children {
        let output = end(child);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let mut left: Vec<String> = fs::read_dir(place.path("out"))
        .expect("there")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    left.sort();
    let mut expected: Vec<String> = (0..count).map(|number| format!("{number}.o")).collect();
    expected.extend(["part.tune.h".to_owned(), "part.tune.json".to_owned()]);
    assert_eq!(left, expected);
    assert_eq!(place.temporary_files(), [""; 0]);
}
