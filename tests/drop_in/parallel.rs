//! nvtune among other processes: signals, make's jobserver, several at once.

use super::forms::CAPS_WIN;
use super::{full, sandbox};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder with `bin/nvcc` (nvtune), `tmp` and a marked source with several sets of macros.
struct Place {
    folder: tempfile::TempDir,
}

/// What takes a front end for each of as many `sets` of macros.
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

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["bin", "tmp", "out"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        symlink(env!("CARGO_BIN_EXE_nvtune"), folder.path().join("bin/nvcc")).expect("linked");
        fs::write(folder.path().join("part.cu"), source(6)).expect("written");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn nvtune(&self) -> Command {
        let mut command = Command::new(self.path("bin/nvcc"));
        command.current_dir(self.folder.path()).env("TMPDIR", self.path("tmp")).env("NVTUNE_NVCC", sandbox::nvcc());
        command.env("NVTUNE", "static").env_remove("MAKEFLAGS").env("RAYON_NUM_THREADS", "4");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn temporary_files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("tmp")).expect("it is there").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Processes that were started by a call here.
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

/// Signals end the process, also where the tests run in the background of a shell, which ignores SIGINT there.
fn with_default_signals(command: &mut Command) -> &mut Command {
    let reset = || {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
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

#[test]
fn a_signal_ends_all_and_leaves_nothing() {
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        for phase in ["tuning", "building"] {
            let place = Place::new();
            // The host compiler is long at this one, so that nvcc is caught while it builds.
            let two = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/sources/two.cu");
            let two = fs::read_to_string(two).expect("it is there");
            let slow = format!(
                "#include <regex>\nbool f(const char *s) {{ return std::regex_match(s, std::regex(\"a*\")); }}\n{two}"
            );
            fs::write(place.path("slow.cu"), slow).expect("written");
            fs::write(place.path("recorded.json"), CAPS_WIN).expect("written");
            fs::write(place.path("out/slow.tune.h"), EARLIER).expect("written");
            let source = if phase == "tuning" { "part.cu" } else { "slow.cu" };
            let mut command = place.nvtune();
            if phase == "building" {
                command.envs([("NVTUNE", "measure"), ("NVTUNE_REPLAY", "recorded.json")]);
            }
            command.args(["-arch=sm_90", "-c", source, "-o", "out/x.o"]);
            let child = with_default_signals(&mut command).spawn().expect("it starts");
            let wanted = if phase == "tuning" { ".ii" } else { ".cudafe1.cpp" };
            wait_for(wanted, || files_below(&place.path("tmp"), wanted));
            let id = child.id().to_string();
            assert!(Command::new("kill").args(["-s", signal, &id]).status().expect("kill").success());
            let sent = Instant::now();
            let output = end(child);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let code = output.status.code().or(output.status.signal().map(|signal| 128 + signal));
            assert_eq!(code, Some(128 + number), "{signal} while {phase}: {said}");
            assert!(sent.elapsed() < Duration::from_secs(10), "{signal} while {phase}");
            assert_eq!(place.temporary_files(), [""; 0], "{signal} while {phase}: {said}");
            assert_eq!(place.processes(), [""; 0], "{signal} while {phase}");
            let left = fs::read_dir(place.path("out")).expect("there").flatten().map(|entry| entry.file_name());
            assert_eq!(left.collect::<Vec<_>>(), ["slow.tune.h"], "{signal} while {phase}: neither object nor header");
            let header = fs::read_to_string(place.path("out/slow.tune.h")).expect("there");
            assert_eq!(header, EARLIER, "{signal} while {phase}");
            assert!(!said.contains("warning"), "{signal} while {phase}: {said}");
        }
        if !full::wanted() {
            break;
        }
    }
}

/// A source that includes its header, with one kernel of this name.
fn including(stem: &str, before: &str, behind: &str) -> String {
    format!(
        "#if __has_include(\"{stem}.tune.h\")\n#include \"{stem}.tune.h\"\n#endif\n{before}\n\
         //@tune threads(n) block({{128, 256}}) regs({{0}}) default(block = 256) args(n = 1 << 16, x = random[n], y = out[n])\n\
         __global__ void {stem}(int n, const float *x, float *y) {{\n\
             const int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) y[i] = 2 * x[i];\n}}\n{behind}\n"
    )
}

#[test]
fn what_is_beside_an_object_that_is_whole_stays_where_another_source_of_the_call_is_not_built() {
    let regex = "#include <regex>\nbool f(const char *s) { return std::regex_match(s, std::regex(\"a*\")); }";
    let fails = "#ifndef __CUDA_ARCH__\nstatic_assert(sizeof(int) == 3, \"on the host\");\n#endif";
    for (how, before, behind) in [("a signal", regex, ""), ("an error", "", fails)] {
        for (option, extension) in [("-c", "o"), ("-dc", "o"), ("-cubin", "cubin")] {
            // Of cubins no host compiler is asked.
            if option == "-cubin" && how == "an error" {
                continue;
            }
            let what = format!("{how}, {option}");
            let place = Place::new();
            for (name, text) in [("whole", including("whole", "", "")), ("half", including("half", before, behind))] {
                fs::write(place.path(&format!("{name}.cu")), text).expect("written");
                fs::write(place.path(&format!("out/{name}.tune.h")), EARLIER).expect("written");
            }
            let mut command = place.nvtune();
            command.args(["-arch=sm_90", option, "whole.cu", "half.cu", "-odir", "out"]);
            let child = with_default_signals(&mut command).spawn().expect("it starts");
            let object = place.path(&format!("out/whole.{extension}"));
            if how == "a signal" {
                wait_for("the object", || object.exists());
                // What is under way for the second source.
                wait_for("the second", || {
                    files_below(&place.path("tmp"), "half.cpp1.ii") || files_below(&place.path("tmp"), "half.cpp4.ii")
                });
                let id = child.id().to_string();
                assert!(Command::new("kill").args(["-s", "INT", &id]).status().expect("kill").success());
            }
            let output = end(child);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!output.status.success() && object.exists(), "{what}: {said}");
            assert!(!place.path(&format!("out/half.{extension}")).exists(), "{what}: {said}");
            let read = |name: &str| fs::read_to_string(place.path(&format!("out/{name}.tune.h"))).expect("there");
            assert!(read("whole").contains("struct whole"), "{what}: {said}");
            assert!(place.path("out/whole.tune.json").exists(), "{what}: {said}");
            assert_eq!(read("half"), EARLIER, "{what}: {said}");
            assert!(!place.path("out/half.tune.json").exists(), "{what}: {said}");
        }
    }
}

#[test]
fn an_ignored_hangup_stays_ignored() {
    let place = Place::new();
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(place.path("bin/nvcc"));
    command.args(["-arch=sm_90", "-c", "part.cu", "-o", "out/x.o"]).current_dir(place.path(""));
    command.env("TMPDIR", place.path("tmp")).env("NVTUNE_NVCC", sandbox::nvcc()).env("NVTUNE", "static");
    let child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    wait_for("tuning", || files_below(&place.path("tmp"), ".ii"));
    assert!(Command::new("kill").args(["-s", "HUP", &child.id().to_string()]).status().expect("kill").success());
    let output = end(child);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(place.temporary_files(), [""; 0]);
}

/// A toolkit whose compiling tools write `+` and `-` into a log when they begin and end.
fn logging_toolkit(folder: &Path) -> PathBuf {
    let real = sandbox::nvcc().parent().and_then(Path::parent).expect("a toolkit").canonicalize().expect("it is there");
    let root = folder.join("toolkit");
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
    for (tool, at) in [("ptxas", "bin/ptxas"), ("cicc", "nvvm/bin/cicc")] {
        let log = folder.join("log");
        let script = format!(
            "#!/bin/sh\necho + >> '{0}'\n'{1}' \"$@\"\ncode=$?\necho - >> '{0}'\nexit $code\n",
            log.display(),
            real.join(at).display()
        );
        let path = root.join(at);
        fs::write(&path, script).unwrap_or_else(|error| panic!("{tool}: {error}"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    }
    root.join("bin/nvcc")
}

/// The most tools that were at work at once, and how many there were in all.
fn most_at_once(folder: &Path) -> (usize, usize) {
    let text = fs::read_to_string(folder.join("log")).expect("the tools have run");
    let _ = fs::remove_file(folder.join("log"));
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

#[test]
fn no_more_tools_than_tokens_run_under_make() {
    let place = Place::new();
    let nvcc = logging_toolkit(&place.path(""));
    let compile = |makeflags: &str| {
        let mut command = place.nvtune();
        command.env("NVTUNE_NVCC", &nvcc).env("MAKEFLAGS", makeflags);
        let output = command.args(["-arch=sm_90", "-c", "part.cu", "-o", "out/x.o"]).output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        most_at_once(&place.path(""))
    };
    // Without make, and with one that keeps its tokens to itself.
    let (free, all) = compile("");
    assert!(free > 1 && all > 12, "{free} of {all} at once: nothing to limit");
    assert_eq!(compile(" -j8 --jobserver-auth=77,78").0, 1);
    // One token besides the own one, and it is given back.
    let fifo = place.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    let mut held = fs::File::options().read(true).write(true).open(&fifo).expect("open");
    std::io::Write::write_all(&mut held, b"+").expect("written");
    let (most, _) = compile(&format!(" -j2 --jobserver-auth=fifo:{}", fifo.display()));
    assert_eq!(most, 2);
    let mut token = [0];
    std::io::Read::read_exact(&mut held, &mut token).expect("the token is back");
    assert_eq!(&token, b"+");
    // GNU make itself, whose jobserver is a pipe up to 4.3; `+` hands it on.
    // Each includes its own header: without it the macro's values may not be chosen, and are not compiled.
    for name in ["a", "b", "c"] {
        let source = source(6).replace("part.tune.h", &format!("{name}.tune.h"));
        fs::write(place.path(&format!("{name}.cu")), source).expect("written");
    }
    fs::write(place.path("Makefile"), "all: a.o b.o c.o\n%.o: %.cu\n\t+bin/nvcc -arch=sm_90 -c $< -o $@\n")
        .expect("written");
    let mut make = Command::new("make");
    make.args(["-j3"]).current_dir(place.path("")).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    make.env("TMPDIR", place.path("tmp"))
        .env("NVTUNE_NVCC", &nvcc)
        .env("NVTUNE", "static")
        .env("RAYON_NUM_THREADS", "4");
    let output = make.output().expect("make starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (most, all) = most_at_once(&place.path(""));
    assert!(most <= 3 && all > 36, "{most} of {all} at once");
}

#[test]
fn a_kernel_on_the_gpu_takes_a_token_from_the_tools_of_the_next() {
    let place = Place::new();
    let nvcc = logging_toolkit(&place.path(""));
    let two = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/sources/two.cu");
    fs::copy(two, place.path("two.cu")).expect("copied");
    let log = place.path("log");
    let device = r#"{"name": "NVIDIA H200", "compute_capability": 90}"#;
    let entries = r#"[{"time_us": 10.0, "pause_ms": 5}]"#;
    let recording = format!(r#"{{"device": {device}, "log": "{}", "entries": {entries}}}"#, log.display());
    fs::write(place.path("recorded.json"), recording).expect("written");
    // Launches, and those of them that were timed while a tool ran.
    let timed = |makeflags: &str| {
        let mut command = place.nvtune();
        command.envs([("NVTUNE", "measure"), ("NVTUNE_REPLAY", "recorded.json"), ("NVTUNE_CACHE_SIZE", "0")]);
        command.env("NVTUNE_NVCC", &nvcc).env("MAKEFLAGS", makeflags);
        let output = command.args(["-arch=sm_90", "-c", "two.cu", "-o", "out/x.o"]).output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = fs::read_to_string(&log).expect("the tools have run");
        fs::remove_file(&log).expect("removed");
        let (mut now, mut all, mut beside) = (0usize, 0, 0);
        for line in text.lines() {
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
fn any_number_of_compiles_of_one_source_at_once() {
    let place = Place::new();
    fs::write(place.path("part.cu"), source(3)).expect("written");
    let count = if full::wanted() { 8 } else { 4 };
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
