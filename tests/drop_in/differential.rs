//! nvcc and nvtune side by side: exit code, output, files and their bytes are the same.

use super::lines::{self, Kind, Line};
use super::sandbox;
use super::sandbox::{SMALL_HEADERS, Sandbox, Seen};
use crate::support::full::is_full;
use crate::support::summary;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How often nvcc is asked whether it does something alike.
const MOST_RUNS: usize = 4;

/// In a quick run, one of this many generated lines.
const SAMPLE: usize = 60;

/// The sources that calls are given, with objects to link and a folder.
fn fixture() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/drop_in/sources");
    for entry in std::fs::read_dir(sources).expect("the sources").map(|entry| entry.expect("readable")) {
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).expect("copied");
    }
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    let plain = std::fs::read_to_string(folder.path().join("plain.cu")).expect("it is there");
    // Names that trip over quoting, splitting and suffixes.
    for name in ["a b.cu", "c,d.cu", "UPPER.CU", "kernel.cuh", "plain.cpp", "-dash.cu", "no_suffix", "dollar$HOME.cu"] {
        write(name, &plain);
    }
    write("flags.rsp", "-DFLAG=1 -I . -O2\n");
    write("nested.rsp", "-optf flags.rsp -DNESTED='a b'\n");
    write("endless.rsp", "-optf endless.rsp\n");
    write("objects.rsp", "-c plain.cu\n");
    for name in ["sub", "out dir", "out"] {
        std::fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    if is_full() {
        for arguments in [["-c", "plain.cu", "-o", "plain.o"], ["-dc", "rdc.cu", "-o", "rdc.o"]] {
            let made = std::process::Command::new(sandbox::nvcc())
                .args(arguments)
                .arg("-objtemp")
                .current_dir(folder.path())
                .status();
            assert!(made.expect("nvcc starts").success(), "{arguments:?}");
        }
    }
    folder
}

#[test]
fn call_without_tuning_comment_is_the_same_as_nvccs() {
    let mut all = lines::generated();
    let written = lines::written();
    if is_full() {
        all.extend(written);
    } else {
        all = all.into_iter().step_by(SAMPLE).collect();
        all.extend(written.into_iter().filter(|line| QUICK.contains(&line.text.as_str())));
        for text in QUICK {
            assert!(all.iter().any(|line| line.text == text), "{text} is not in lines.txt");
        }
    }
    let mut seen = HashSet::new();
    all.retain(|line| seen.insert(line.text.clone()));
    if !is_full() {
        all.iter_mut().filter(|line| line.text != WITH_CUDA_HEADERS).for_each(set_small_headers);
    }
    let fixture = fixture();
    let next = AtomicUsize::new(0);
    let (differences, codes) = (Mutex::new(Vec::new()), Mutex::new((0, 0)));
    let unsteady = Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let sandbox = Sandbox::new(fixture.path());
                while let Some(line) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (plain, tuned) = (sandbox.plain(&line.call), sandbox.nvtune(&line.call));
                    let mut codes = codes.lock().expect("no thread panics");
                    if plain.code == Some(0) {
                        codes.0 += 1
                    } else {
                        codes.1 += 1
                    }
                    let mut found = differing(line, &plain, tuned);
                    // Most of what differs then is what nvcc does not do twice alike either (-G, the order of -t, times).
                    for _ in 0..MOST_RUNS {
                        if found.is_empty() {
                            break;
                        }
                        let own =
                            differing(&Line { kind: Kind::Same, ..line.clone() }, &plain, sandbox.plain(&line.call));
                        let before = found.len();
                        found.retain(|what, _| !own.contains_key(what));
                        if found.len() < before {
                            unsteady.lock().expect("no thread panics").insert(line.text.clone());
                        }
                    }
                    if !found.is_empty() {
                        let said: Vec<String> = found.into_values().collect();
                        differences.lock().expect("no thread panics").push(format!(
                            "{}\n{}",
                            line.text,
                            said.join("\n")
                        ));
                    }
                }
            });
        }
    });
    let differences = differences.into_inner().expect("no thread panicked");
    let (passed, refused) = codes.into_inner().expect("no thread panicked");
    let unsteady = unsteady.into_inner().expect("no thread panicked");
    summary::keep(
        "differential",
        &format!(
            "differential: {} command lines ({passed} that nvcc accepts, {refused} that it refuses), {} differ; in {} nvcc itself does \
             not do something twice alike, which is put aside: {}",
            all.len(),
            differences.len(),
            unsteady.len(),
            unsteady.into_iter().collect::<Vec<_>>().join(" | ")
        ),
    );
    assert!(
        differences.is_empty(),
        "{} of {} calls differ:\n\n{}",
        differences.len(),
        all.len(),
        differences.join("\n")
    );
}

/// The line that has CUDA's own headers in a quick run, too.
const WITH_CUDA_HEADERS: &str = "-c plain.cu -objtemp -o out.o";

fn set_small_headers(line: &mut Line) {
    let environment = &mut line.call.environment;
    if environment.iter().all(|(name, _)| name != "NVCC_PREPEND_FLAGS") {
        environment.push(("NVCC_PREPEND_FLAGS".to_owned(), SMALL_HEADERS.to_owned()));
    }
}

/// The written lines of the quick run: each stands for a group of `lines.txt`.
const QUICK: [&str; 12] = [
    "--version",
    "-v __cmake_determine_cuda",
    "-c plain.cu -objtemp -o out.o",
    "-MD -MT out.o -MF out.d -x cu -c plain.cpp -objtemp -o out.o",
    "-x cu -c - -objtemp -o out.o <plain.cu",
    "-c broken.cu -objtemp -o out.o",
    "NVCC_PREPEND_FLAGS=-DA='x y' NVCC_APPEND_FLAGS=-lineinfo --dryrun -c plain.cu",
    "-E plain.cu",
    "-M plain.cu",
    "--dryrun -optf nested.rsp -c plain.cu",
    "NVTUNE=off -c marked.cu -objtemp -o out.o",
    "one-line -dlto -c marked.cu -objtemp -o out.o",
];

/// What differs, by what it is, with words for it.
fn differing(line: &Line, plain: &Seen, mut tuned: Seen) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    if line.kind == Kind::OneLine {
        let is_own = |line: &&str| line.starts_with("nvtune");
        let own = tuned.stderr.lines().filter(is_own).count();
        if own != 1 {
            found.insert("own lines".to_owned(), format!("  {own} lines of nvtune's own, not one"));
        }
        tuned.stderr = tuned.stderr.split_inclusive('\n').filter(|line| !is_own(line)).collect();
    }
    if plain.code != tuned.code {
        found.insert("code".to_owned(), format!("  exit code {:?}, not {:?}", tuned.code, plain.code));
    }
    for (what, plain, tuned) in [("stdout", &plain.stdout, &tuned.stdout), ("stderr", &plain.stderr, &tuned.stderr)] {
        if plain != tuned && !(line.is_threaded() && sorted(plain) == sorted(tuned)) {
            let mut pairs = plain.lines().zip(tuned.lines());
            let first = pairs.find(|(plain, tuned)| plain != tuned);
            let (expected, got) = first.unwrap_or(("(another number of lines)", tuned.lines().last().unwrap_or("")));
            found.insert(what.to_owned(), format!("  {what}: expected {expected}\n          got      {got}"));
        }
    }
    for name in plain.files.keys().chain(tuned.files.keys()) {
        let said = match (plain.files.get(name), tuned.files.get(name)) {
            (Some(plain), Some(tuned)) if plain == tuned => continue,
            (Some(_), Some(_)) => "has other bytes or permissions",
            (Some(_), None) => "is missing",
            (None, _) => "is nvtune's own",
        };
        found.insert(name.clone(), format!("  {name} {said}"));
    }
    found
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}
