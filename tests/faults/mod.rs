//! Builds in which a system function fails in one of nvtune's own processes (`inject.c`): each ends as plain nvcc's would.
//!
//! Each call that a build makes of each function fails once, in a build of its own. Then: the exit code is 0, object and dependency
//! file are those of a clean build or plain nvcc's, header and record speak of it, nothing else is left, and the next build is a clean one.

mod kills;
mod panics;

use crate::support::full::is_full;
use crate::support::summary;
use crate::support::toolkit::{Headers, nvcc, set_headers};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// `NAMES` of `inject.c`, and what each may fail with.
const FUNCTIONS: [(&str, &[i32]); 14] = [
    ("open", &[libc::EMFILE, libc::EIO, libc::ENOSPC, libc::EACCES]),
    ("read", &[libc::EIO, libc::EINTR]),
    ("write", &[libc::ENOSPC, libc::EIO, libc::EINTR]),
    ("rename", &[libc::ENOSPC, libc::EIO]),
    ("unlink", &[libc::EIO]),
    ("mkdir", &[libc::ENOSPC, libc::EACCES]),
    ("symlink", &[libc::ENOSPC]),
    ("fork", &[libc::EAGAIN, libc::ENOMEM]),
    ("execve", &[libc::EAGAIN, libc::ENOMEM]),
    ("wait", &[libc::EINTR, libc::EIO]),
    ("pipe", &[libc::EMFILE]),
    ("mmap", &[libc::ENOMEM]),
    ("poll", &[libc::EINTR, libc::ENOMEM]),
    ("pthread_create", &[libc::EAGAIN]),
];

/// Environment variables for a part of the faults: those whose kind and text have this in them, and one in so many.
const PART: &str = "NVTUNE_TEST_FAULT";
const EVERY: &str = "NVTUNE_TEST_FAULT_EVERY";

/// Where these fail for good, nothing can be started, removed or waited for at all.
const NEEDED: [&str; 3] = ["execve", "unlink", "wait"];

/// The lines by which a source includes its header.
const INCLUDING: &str = "#if __has_include(\"k.tune.h\")\n#include \"k.tune.h\"\n#endif\n";

const MARKED: &str = r#"#ifndef PER
#define PER 1
#endif
//@tune define(PER = {1, 2}) block({64, 256}) threads(ceildiv(n, PER)) default(block = 256, PER = 1)
//@tune args(n = 1 << 22, x = random[n])
__global__ void k(int n, float *x) {
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * PER;
    for (int j = 0; j < PER; ++j) if (i + j < n) x[i + j] *= 2;
}
void run(int n, float *x) { k<<<(n + 255) / 256, 256>>>(n, x); }
"#;

/// A kind of build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    name: &'static str,
    source: &'static str,
    is_warm: bool,
}

const KINDS: [Kind; 3] = [
    Kind { name: "unmarked", source: "u.cu", is_warm: false },
    Kind { name: "marked, warm", source: "k.cu", is_warm: true },
    Kind { name: "marked, cold", source: "k.cu", is_warm: false },
];

/// A source without its header: nvcc is started while it is tuned.
const STARTED: Kind = Kind { name: "marked, cold, without header", source: "k.cu", is_warm: false };

/// What fails: the call of that number of a function, once or from then on.
#[derive(Clone, Copy, Debug)]
struct Fault {
    kind: Kind,
    function: usize,
    number: u32,
    is_lasting: bool,
    error: i32,
}

impl Fault {
    fn name(self) -> &'static str {
        FUNCTIONS[self.function].0
    }

    fn text(self) -> String {
        let plus = if self.is_lasting { "+" } else { "" };
        format!("{}:{}{plus}:{}", self.name(), self.number, self.error)
    }
}

/// A folder in which one build after another is made, with what they are compared with.
struct Place {
    folder: tempfile::TempDir,
    plain: Made,
    tuned: Made,
    unmarked: Made,
    header: String,
}

/// What nvcc makes of a source; empty where a file is not there.
#[derive(Debug, Default, PartialEq, Eq)]
struct Made {
    object: Vec<u8>,
    depfile: String,
}

struct Ran {
    code: Option<i32>,
    stderr: String,
    counts: Vec<u32>,
}

impl Place {
    fn new(library: &Path, has_header: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["bin", "out", "tmp"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        symlink(env!("CARGO_BIN_EXE_nvtune"), folder.path().join("bin/nvcc")).expect("linked");
        symlink(library, folder.path().join("bin/inject.so")).expect("linked");
        let marked = format!("{}{MARKED}", if has_header { INCLUDING } else { "" });
        std::fs::write(folder.path().join("k.cu"), &marked).expect("written");
        std::fs::write(folder.path().join("u.cu"), marked.replace("//@tune", "//")).expect("written");
        let (plain, tuned, unmarked) = Default::default();
        let mut place = Self { folder, plain, tuned, unmarked, header: String::new() };
        let [unmarked, _, marked] = KINDS;
        place.unmarked = place.built(place.command(&nvcc(), unmarked));
        place.plain = place.built(place.command(&nvcc(), marked));
        place.tuned = place.built(place.command(&place.path("bin/nvcc"), marked));
        place.header = std::fs::read_to_string(place.path("out/k.tune.h")).expect("written");
        assert_ne!(place.plain.object, place.tuned.object, "there is a winner");
        assert_eq!(place.tuned.depfile.contains(" out/k.tune.h"), has_header, "{}", place.tuned.depfile);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, program: &Path, kind: Kind) -> Command {
        let mut command = Command::new(program);
        command.args(["-arch=sm_90", "-c", kind.source, "-o", "out/k.o", "-objtemp", "-MD", "-MF", "out/k.d"]);
        command.current_dir(self.folder.path()).env("TMPDIR", self.path("tmp")).env("NVTUNE_NVCC", nvcc());
        command.env("NVTUNE", "static").env("NVTUNE_CACHE_DIR", self.path("cache")).env("RAYON_NUM_THREADS", "2");
        command
            .env_remove("MAKEFLAGS")
            .env_remove("NVTUNE_STRICT")
            .env_remove("NVTUNE_CACHE_SIZE")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        set_headers(&mut command, Headers::Small);
        command
    }

    fn built(&self, mut command: Command) -> Made {
        let output = command.output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.made()
    }

    /// What the last build made.
    fn made(&self) -> Made {
        let read = |name: &str| std::fs::read(self.path(name)).unwrap_or_default();
        Made { object: read("out/k.o"), depfile: String::from_utf8_lossy(&read("out/k.d")).into_owned() }
    }

    /// Removes what a build made; the cache, too, before a cold one.
    fn clear(&self, kind: Kind) {
        for folder in ["out", "tmp"].map(|name| self.path(name)) {
            for name in names(&folder) {
                let _ = std::fs::remove_dir_all(folder.join(&name));
                let _ = std::fs::remove_file(folder.join(&name));
            }
        }
        if !kind.is_warm {
            let _ = std::fs::remove_dir_all(self.path("cache"));
        } else if !self.path("cache").exists() {
            self.built(self.command(&self.path("bin/nvcc"), kind));
            self.clear(kind);
        }
    }

    fn clear_temporary(&self) {
        for name in names(&self.path("tmp")).iter().filter(|name| name.starts_with("nvtune-")) {
            std::fs::remove_dir_all(self.path("tmp").join(name)).expect("removed");
        }
    }

    /// Builds with nvtune while the fault is on, or counts its calls.
    fn run(&self, kind: Kind, fault: Option<Fault>) -> Ran {
        let counts = self.path("counts");
        std::fs::write(&counts, [0; 4096]).expect("written");
        let mut command = self.command(&self.path("bin/nvcc"), kind);
        command.env("LD_PRELOAD", self.path("bin/inject.so")).env("FAULT_COUNTS", &counts);
        command.env("FAULT_PROGRAM", Path::new(env!("CARGO_BIN_EXE_nvtune")).canonicalize().expect("it is there"));
        command.envs(fault.map(|fault| ("FAULT", fault.text())));
        let said = self.path("said");
        command.stderr(std::fs::File::create(&said).expect("made"));
        let mut child = command.spawn().expect("it starts");
        let begin = Instant::now();
        let status = loop {
            match child.try_wait().expect("a child") {
                Some(status) => break status.code(),
                None if begin.elapsed() > Duration::from_secs(60) => {
                    child.kill().expect("killed");
                    child.wait().expect("gone");
                    break None;
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        };
        let stderr = String::from_utf8_lossy(&std::fs::read(&said).expect("there")).into_owned();
        let counts = std::fs::read(&counts).expect("there");
        let counts = counts.chunks_exact(4).take(FUNCTIONS.len());
        let counts = counts.map(|bytes| u32::from_ne_bytes(bytes.try_into().expect("four bytes"))).collect();
        Ran { code: status, stderr, counts }
    }

    /// What is wrong after a build with a fault.
    fn problem(&self, fault: Fault, ran: &Ran) -> Option<String> {
        if ran.code != Some(0) {
            return Some(format!("exit code {:?}", ran.code));
        }
        let Made { object, depfile } = self.made();
        let (is_marked, is_tuned) = (fault.kind.source == "k.cu", object == self.tuned.object);
        let plain = if is_marked { &self.plain } else { &self.unmarked };
        if !is_tuned && object != plain.object {
            return Some("another object".to_owned());
        }
        // A header of baselines is among the files that the source includes, as one of winners is.
        if is_tuned && depfile != self.tuned.depfile
            || depfile != plain.depfile && !(is_marked && depfile == self.tuned.depfile)
        {
            return Some(format!("another dependency file: {depfile:?}"));
        }
        let header = std::fs::read_to_string(self.path("out/k.tune.h")).ok();
        match &header {
            Some(header) if is_tuned && *header != self.header => return Some("another header".to_owned()),
            Some(header) if !is_tuned && !header.contains("\"baseline\"") => {
                return Some("a header of winners that are not there".to_owned());
            }
            None if is_tuned => return Some("no header".to_owned()),
            _ => {}
        }
        // A folder that cannot be opened any more cannot be emptied: the next build sweeps it.
        if fault.is_lasting && fault.name() == "open" {
            self.clear_temporary();
        }
        let others = |name: &String| !["k.o", "k.d", "k.tune.h", "k.tune.json"].contains(&name.as_str());
        let left: Vec<String> =
            names(&self.path("out")).into_iter().filter(others).chain(names(&self.path("tmp"))).collect();
        if !left.is_empty() {
            return Some(format!("left behind: {left:?}"));
        }
        // What failed may be the writing of the warning, or the reading of the source: then nothing is known to be marked.
        let is_silent = !ran.stderr.contains("nvtune warning");
        if is_marked && !is_tuned && is_silent && !["write", "read", "open"].contains(&fault.name()) {
            return Some("not a word".to_owned());
        }
        self.next_problem(fault)
    }

    /// What is wrong with the next build.
    fn next_problem(&self, fault: Fault) -> Option<String> {
        if fault.kind.source != "k.cu" {
            return None;
        }
        let next = self.run(fault.kind, None);
        let is_silent = !next.stderr.contains("nvtune warning") && !next.stderr.contains("nvtune error");
        let is_clean = next.code == Some(0) && self.made() == self.tuned && is_silent;
        (!is_clean).then(|| format!("the next build: {:?} {}", next.code, next.stderr.trim()))
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Compiles `inject.c`.
fn library(folder: &Path) -> PathBuf {
    let (source, library) =
        (Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults/inject.c"), folder.join("inject.so"));
    let mut compiler = Command::new("cc");
    let status =
        compiler.args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"]).arg(&library).arg(source).arg("-ldl");
    assert!(status.status().expect("a C compiler").success());
    library
}

/// All faults of a kind of build: each call once, and each function for good from the first call on and from the middle.
fn faults(place: &Place, kind: Kind) -> Vec<Fault> {
    place.clear(kind);
    let counted = place.run(kind, None);
    assert_eq!(counted.code, Some(0), "{}", counted.stderr);
    let mut faults = Vec::new();
    for (function, (name, errors)) in FUNCTIONS.iter().enumerate() {
        let calls = counted.counts[function];
        let fault = |number: u32, is_lasting, error| Fault { kind, function, number, is_lasting, error };
        for number in 0..calls {
            // In few builds each call has each error.
            let wanted = if calls < 20 { errors.len() } else { 1 };
            let all = (0..wanted).map(|shift| errors[(number as usize + shift) % errors.len()]);
            faults.extend(all.map(|error| fault(number, false, error)));
        }
        let lasting = errors.iter().filter(|&&error| !NEEDED.contains(name) && error != libc::EINTR && calls > 0);
        faults.extend(lasting.flat_map(|&error| [0, calls / 2].map(|number| fault(number, true, error))));
    }
    faults
}

#[test]
fn build_with_failing_system_call_is_that_of_nvcc() {
    let (text, fired) = check_builds(true, &KINDS);
    summary::keep("faults", &text);
    let is_whole = is_full() && std::env::var(PART).is_err() && std::env::var(EVERY).is_err();
    assert!(!is_whole || fired >= 1000, "{text}");
}

#[test]
#[ignore = "long: in the full run"]
fn started_build_with_failing_system_call_is_that_of_nvcc() {
    check_builds(false, &[STARTED]);
}

/// Builds with each fault, or with some of them; returns a summary, and how many faults came.
fn check_builds(has_header: bool, kinds: &[Kind]) -> (String, usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let library = library(folder.path());
    let first = Place::new(&library, has_header);
    let mut all: Vec<Fault> = kinds.iter().flat_map(|&kind| faults(&first, kind)).collect();
    let is_part = std::env::var(PART).is_ok();
    if let Ok(part) = std::env::var(PART) {
        all.retain(|fault| format!("{} {}", fault.kind.name, fault.text()).contains(&part));
    }
    let every = std::env::var(EVERY).ok().and_then(|text| text.parse().ok());
    let every = every.unwrap_or(if is_full() || is_part { 1 } else { 800 });
    let mut number = 0;
    all.retain(|fault| {
        number += 1;
        number % every == 0 || fault.name() == "pthread_create" && fault.is_lasting
    });
    let (next, fired, problems) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
    let outcomes = Mutex::new(BTreeMap::<&str, usize>::new());
    std::thread::scope(|scope| {
        for worker in 0..std::thread::available_parallelism().map_or(1, usize::from).min(8) {
            let (first, library, all, next) = (&first, &library, &all, &next);
            let (fired, outcomes, problems) = (&fired, &outcomes, &problems);
            scope.spawn(move || {
                let own = (worker > 0).then(|| Place::new(library, has_header));
                let place = own.as_ref().unwrap_or(first);
                while let Some(&fault) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    place.clear(fault.kind);
                    let ran = place.run(fault.kind, Some(fault));
                    if ran.counts[fault.function] > fault.number {
                        fired.fetch_add(1, Ordering::Relaxed);
                        *outcomes.lock().expect("no panic").entry(fault.kind.name).or_default() += 1;
                    }
                    if let Some(problem) = place.problem(fault, &ran) {
                        let text = format!("{} {}: {problem}\n{}", fault.kind.name, fault.text(), ran.stderr.trim());
                        eprintln!("{text}");
                        problems.lock().expect("no panic").push(text);
                        // What a cold build left may be wrong for good.
                        let _ = std::fs::remove_dir_all(place.path("cache"));
                    }
                }
            });
        }
    });
    let (mut problems, fired) = (problems.into_inner().expect("no panic"), fired.into_inner());
    problems.sort();
    let mut text = format!("{fired} injected faults in {} builds, {} problems\n", all.len(), problems.len());
    for (kind, count) in outcomes.into_inner().expect("no panic") {
        let _ = writeln!(text, "{kind}: {count}");
    }
    assert!(problems.is_empty(), "{text}{}", problems.join("\n"));
    (text, fired)
}
