//! Public projects that nobody here wrote, in the folder that NVTUNE_PROJECTS names: each `.cu` file is compiled by nvcc and by nvtune,
//! and exit code, messages and object are the same. Files that plain nvcc refuses must be refused alike; the summary says why it does.

use super::sandbox::{self, settled};
use crate::support::full::is_full;
use crate::support::summary;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Folders, seen from any folder between a source and its project's root, in which projects keep what they include.
const INCLUDED: [&str; 8] = ["", "include", "inc", "common", "Common", "common/include", "utilities", "common/inc"];

/// What became of the files of one project.
#[derive(Default)]
struct Outcome {
    same: usize,
    /// What differs is what nvcc itself does not make twice alike.
    unsteady: usize,
    /// How many files nvcc refuses, by the first error that it gives.
    refused_alike: BTreeMap<String, usize>,
    not_reached: usize,
    differ: Vec<String>,
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension() == Some(OsStr::new("cu")) {
            found.push(path);
        }
    }
}

fn arguments(root: &Path, source: &Path, object: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["-arch=sm_90", "-w", "-objtemp", "-c"].map(OsString::from).to_vec();
    arguments.extend([source.into(), "-o".into(), object.into()]);
    for ancestor in source.ancestors().skip(1).take_while(|ancestor| ancestor.starts_with(root)) {
        for name in INCLUDED {
            let folder = ancestor.join(name);
            if folder.is_dir() {
                arguments.extend(["-I".into(), folder.into_os_string()]);
            }
        }
    }
    arguments
}

/// What a project's own build files would say, by what nvcc says without it: kernels that launch others, and a name that CUDA 13 has no more.
const REMEDIES: [(&str, &str); 2] = [
    ("separate compilation mode", "-rdc=true"),
    ("\"cudaThreadSynchronize\" is undefined", "-DcudaThreadSynchronize=cudaDeviceSynchronize"),
];

/// How often nvcc is asked whether it does something alike: names made of process ids come and go in objects.
const MOST_RUNS: usize = 4;

/// The first error of a compile without its place: `cublas_v2.h: No such file or directory`.
fn cause(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let of_line = |line: &str| {
        let (_, after) = line.split_once("error").or_else(|| line.split_once("fatal"))?;
        Some(after.trim_start().strip_prefix(':')?.trim().to_owned())
    };
    said.lines().find_map(of_line).unwrap_or_else(|| said.lines().next().unwrap_or("no message").to_owned())
}

/// The commit of a checkout, where it is one.
fn commit(project: &Path) -> Option<String> {
    let git = |words: &[&str]| {
        let output = Command::new("git").arg("-C").arg(project).args(words).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    // A folder that is no checkout may lie in one.
    git(&["rev-parse", "--show-prefix"]).filter(String::is_empty)?;
    git(&["rev-parse", "--short=12", "HEAD"])
}

/// Exit code, what it said, and the object.
type Seen = (Option<i32>, Vec<u8>, Vec<u8>);

fn compiled(command: &mut Command, source: &Path, folder: &Path, arguments: &[OsString]) -> Seen {
    let object = folder.join("x.o");
    let _ = fs::remove_file(&object);
    // What a compile leaves where it stands (.bc files, traces) stays out of the project.
    let output = command.args(arguments).current_dir(folder).env("TMPDIR", folder).env_remove("MAKEFLAGS").output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", source.display()));
    (output.status.code(), settled(output.stderr), fs::read(object).map(settled).unwrap_or_default())
}

/// In what two compiles differ: `code`, `messages`, or sections of the object.
fn differing(one: &Seen, other: &Seen) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if one.0 != other.0 {
        found.insert("code".to_owned());
    }
    if one.1 != other.1 {
        found.insert("messages".to_owned());
    }
    if one.2 != other.2 {
        let (one, other) = (sandbox::sections(&one.2), sandbox::sections(&other.2));
        // Names of sections hold process ids, too.
        if one.len() != other.len() || one == other {
            found.insert("object".to_owned());
        }
        let different = one.iter().zip(&other).enumerate().filter(|(_, (one, other))| one != other);
        found.extend(different.map(|(number, ((name, _), _))| format!("section {number} {name}")));
    }
    found
}

#[test]
fn public_projects_compile_to_the_same_objects() {
    let Some(root) = std::env::var_os("NVTUNE_PROJECTS").filter(|_| is_full()).map(PathBuf::from) else { return };
    let limit = std::env::var("NVTUNE_PROJECTS_MINUTES").ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(60);
    let deadline = Instant::now() + Duration::from_secs(60 * limit);
    let mut all = Vec::new();
    for project in fs::read_dir(&root).expect("NVTUNE_PROJECTS names a folder").flatten().map(|entry| entry.path()) {
        let mut found = Vec::new();
        sources(&project, &mut found);
        all.extend(found.into_iter().map(|source| (project.clone(), source)));
    }
    assert!(!all.is_empty(), "no .cu file below {}", root.display());
    // Of each project some, should the time not do for all: in the order of a hash of the path.
    all.sort_by_key(|(_, source)| {
        source.as_os_str().as_encoded_bytes().iter().fold(17u32, |hash, &byte| hash.wrapping_mul(31) ^ u32::from(byte))
    });
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<BTreeMap<String, Outcome>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                let folder = tempfile::tempdir().expect("a folder");
                // A copy, so that the program stays the same over the hour that this takes.
                fs::copy(env!("CARGO_BIN_EXE_nvtune"), folder.path().join("nvcc")).expect("copied");
                while let Some((project, source)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let name = project.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    let counted = |count: &dyn Fn(&mut Outcome)| {
                        count(outcomes.lock().expect("no thread panics").entry(name.clone()).or_default());
                    };
                    if Instant::now() > deadline {
                        counted(&|outcome| outcome.not_reached += 1);
                        continue;
                    }
                    let mut words = arguments(project, source, &folder.path().join("x.o"));
                    let mut plain = compiled(&mut Command::new(sandbox::nvcc()), source, folder.path(), &words);
                    for (said, option) in REMEDIES {
                        if memchr::memmem::find(&plain.1, said.as_bytes()).is_some() {
                            words.push(option.into());
                            plain = compiled(&mut Command::new(sandbox::nvcc()), source, folder.path(), &words);
                        }
                    }
                    let mut nvtune = Command::new(folder.path().join("nvcc"));
                    let tuned = compiled(nvtune.env("NVTUNE_NVCC", sandbox::nvcc()), source, folder.path(), &words);
                    let same = plain == tuned;
                    let mut differ = differing(&plain, &tuned);
                    for _ in 0..MOST_RUNS {
                        if differ.is_empty() {
                            break;
                        }
                        let again = compiled(&mut Command::new(sandbox::nvcc()), source, folder.path(), &words);
                        let own = differing(&plain, &again);
                        differ.retain(|what| !own.contains(what));
                    }
                    match (plain.0, same, differ.is_empty()) {
                        (_, _, false) => counted(&|outcome| {
                            outcome.differ.push(format!("{}: {differ:?}", source.display()));
                        }),
                        (Some(0), true, _) => counted(&|outcome| outcome.same += 1),
                        (Some(0), false, _) => counted(&|outcome| outcome.unsteady += 1),
                        _ => counted(&|outcome| *outcome.refused_alike.entry(cause(&plain.1)).or_default() += 1),
                    }
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().expect("no thread panicked");
    let lines = |(name, outcome): (&String, &Outcome)| {
        let Outcome { same, unsteady, refused_alike, not_reached, differ } = outcome;
        let refused: usize = refused_alike.values().sum();
        let mut text = format!(
            "  {name}{}: {} files, {same} the same to the byte, {unsteady} in all that nvcc makes twice alike, {refused} that plain nvcc refuses too, {} differ, {not_reached} not reached in time\n",
            commit(&root.join(name)).map(|commit| format!(" ({commit})")).unwrap_or_default(),
            same + unsteady + refused + differ.len() + not_reached,
            differ.len(),
        );
        let mut causes = Vec::from_iter(refused_alike);
        causes.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (cause, count) in causes {
            text.push_str(&format!("    refused, {count}: {cause}\n"));
        }
        text
    };
    summary::keep(
        "projects",
        &format!(
            "public projects, every .cu file by nvcc and by nvtune (-c -arch=sm_90; -rdc=true where nvcc asks for it; cudaThreadSynchronize by its new name), with nvcc's first error of those that it refuses:\n{}",
            outcomes.iter().map(lines).collect::<String>()
        ),
    );
    let differ: Vec<&String> = outcomes.values().flat_map(|outcome| &outcome.differ).collect();
    assert!(differ.is_empty(), "{differ:?}");
}
