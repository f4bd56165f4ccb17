//! Builds that a signal ends at any moment: nothing torn, no process left after a second, and the next build is right.

use super::{KINDS, Place};
use crate::support::full::is_full;
use crate::support::summary;
use nvtune::workload::random::Random;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SIGNALS: [(&str, i32); 6] = [
    ("KILL", libc::SIGKILL),
    ("TERM", libc::SIGTERM),
    ("INT", libc::SIGINT),
    ("HUP", libc::SIGHUP),
    ("PIPE", libc::SIGPIPE),
    ("QUIT", libc::SIGQUIT),
];

/// Builds of `make -j4`, each with an object of its own.
const OBJECTS: [&str; 4] = ["a.o", "b.o", "c.o", "d.o"];

/// Longest time before a signal comes: most builds are over by then.
const LONGEST_MS: u64 = 1200;

/// How long what was started may still be there after the signal.
const LEAVE: Duration = Duration::from_secs(1);

/// Starts a build as the leader of a process group; signals are as in a terminal.
fn start(command: &mut Command) -> Child {
    let reset = || {
        for (_, signal) in SIGNALS {
            // SAFETY: no handler is installed.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    command.process_group(0).stderr(Stdio::null());
    // SAFETY: between fork and exec nothing but `signal` is called, which may be.
    unsafe { command.pre_exec(reset).spawn().expect("it starts") }
}

/// The command lines of the processes that have this folder's TMPDIR.
fn processes(place: &Place) -> Vec<String> {
    let mark = format!("TMPDIR={}\0", place.path("tmp").display());
    let entries = std::fs::read_dir("/proc").expect("Linux").flatten();
    let is_its = |path: PathBuf| {
        std::fs::read(path.join("environ")).is_ok_and(|text| memchr::memmem::find(&text, mark.as_bytes()).is_some())
    };
    let line = |path: PathBuf| std::fs::read_to_string(path.join("cmdline")).unwrap_or_default().replace('\0', " ");
    entries.map(|entry| entry.path()).filter(|path| is_its(path.clone())).map(line).collect()
}

fn makefile() -> String {
    let rules = OBJECTS.map(|object| {
        format!(
            "out/{object}: k.cu\n\tmkdir -p out/{object}.d\n\tNVTUNE_HEADER_DIR=out/{object}.d bin/nvcc -arch=sm_90 -c k.cu -o $@ -objtemp \
             -MD -MF out/{object}.d/k.d\n"
        )
    });
    format!("all: {}\n{}", OBJECTS.map(|object| format!("out/{object}")).join(" "), rules.concat())
}

/// A dependency file that is neither whole nor absent; nvcc writes that of a plain build, which may be torn.
fn torn_depfile(place: &Place) -> Option<String> {
    let is_whole = |(path, expected): &(String, String)| {
        std::fs::read_to_string(place.path(path)).map_or(true, |text| text == *expected)
    };
    let alone = ("out/k.d".to_owned(), place.tuned.depfile.clone());
    let of_make = OBJECTS.map(|object| {
        let header = format!("out/{object}.d/k.tune.h");
        let expected =
            place.tuned.depfile.replace("out/k.tune.h", &header).replace("out/k.o", &format!("out/{object}"));
        (format!("out/{object}.d/k.d"), expected)
    });
    of_make.into_iter().chain([alone]).find(|depfile| !is_whole(depfile)).map(|(path, _)| path)
}

/// What is wrong with what a killed build left.
fn problem(place: &Place, is_alone: bool) -> Option<String> {
    let deadline = Instant::now() + LEAVE;
    while !processes(place).is_empty() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    let left = processes(place);
    if !left.is_empty() {
        return Some(format!("left running: {left:?}"));
    }
    let header = std::fs::read_to_string(place.path("out/k.tune.h")).unwrap_or_default();
    if is_alone && !header.is_empty() && !header.trim_end().ends_with("#endif") {
        return Some(format!("a torn header: {header}"));
    }
    if let Some(path) = torn_depfile(place) {
        return Some(format!("a torn dependency file: {:?}", std::fs::read_to_string(place.path(&path))));
    }
    let mut next = place.command(&place.path("bin/nvcc"), KINDS[1]);
    let next = next.output().expect("it starts");
    let said = String::from_utf8_lossy(&next.stderr);
    (!next.status.success() || place.made() != place.tuned || said.contains("nvtune warning"))
        .then(|| format!("the next build: {said}"))
}

#[test]
#[ignore = "long: in the full run"]
fn killed_builds_leave_nothing_torn_and_no_process() {
    summary::keep("kills-of-builds", &check_killed(true, if is_full() { 500 } else { 3 }));
}

#[test]
#[ignore = "long: in the full run"]
fn killed_started_builds_leave_nothing_torn_and_no_process() {
    check_killed(false, if is_full() { 200 } else { 3 });
}

/// Kills builds of a source with its header, or without: then nvcc is started while it is tuned.
/// Returns a summary.
fn check_killed(has_header: bool, usual: usize) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let place = Place::new(&super::library(folder.path()), has_header);
    std::fs::write(place.path("Makefile"), makefile()).expect("written");
    let count = std::env::var("NVTUNE_TEST_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual);
    let (mut random, mut problems, mut ended) = (Random::new(11), Vec::new(), 0);
    for number in 0..count {
        let (name, signal) = SIGNALS[number % SIGNALS.len()];
        let form = ["cold", "warm", "make -j4"][(number + number / SIGNALS.len()) % 3];
        place.clear(KINDS[if form == "warm" { 1 } else { 2 }]);
        let mut command = place.command(&place.path("bin/nvcc"), KINDS[1]);
        if form == "make -j4" {
            let mut make = Command::new("make");
            make.args(["-j4", "--silent"]).current_dir(place.path("."));
            make.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
            make.env_remove("MAKEFLAGS").stdout(Stdio::null());
            command = make;
        }
        let mut child = start(&mut command);
        std::thread::sleep(Duration::from_millis(random.next_u64() % LONGEST_MS));
        // SAFETY: the group is that of a child that nobody has waited for.
        unsafe { libc::kill(-(child.id() as i32), signal) };
        let status = child.wait().expect("a child");
        ended += u32::from(!status.success());
        if let Some(problem) = problem(&place, form != "make -j4") {
            problems.push(format!("{number}, {form}, {name}: {problem}"));
            eprintln!("{}", problems[problems.len() - 1]);
        }
    }
    let text = format!("{count} builds got a signal, {ended} of them ended by it, {} problems\n", problems.len());
    assert!(problems.is_empty(), "{text}{}", problems.join("\n"));
    text
}
