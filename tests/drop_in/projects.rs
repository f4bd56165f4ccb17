//! Public projects that nobody here wrote, in the folder that NVTUNE_PROJECTS names: each `.cu` file is compiled by nvcc and by nvtune,
//! and exit code, messages and object are the same. Files that plain nvcc refuses must be refused alike.

use super::full;
use super::sandbox::{self, settled};
use std::collections::BTreeMap;
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
    refused_alike: usize,
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

#[test]
fn public_projects_compile_to_the_same_objects() {
    let Some(root) = std::env::var_os("NVTUNE_PROJECTS").filter(|_| full::wanted()).map(PathBuf::from) else { return };
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
        for _ in 0..2 {
            scope.spawn(|| {
                let folder = tempfile::tempdir().expect("a folder");
                std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_nvtune"), folder.path().join("nvcc")).expect("linked");
                while let Some((project, source)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let name = project.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    let counted = |count: &dyn Fn(&mut Outcome)| {
                        count(outcomes.lock().expect("no thread panics").entry(name.clone()).or_default());
                    };
                    if Instant::now() > deadline {
                        counted(&|outcome| outcome.not_reached += 1);
                        continue;
                    }
                    let words = arguments(project, source, &folder.path().join("x.o"));
                    let plain = compiled(&mut Command::new(sandbox::nvcc()), source, folder.path(), &words);
                    let mut nvtune = Command::new(folder.path().join("nvcc"));
                    let tuned = compiled(nvtune.env("NVTUNE_NVCC", sandbox::nvcc()), source, folder.path(), &words);
                    match (plain == tuned, plain.0) {
                        (true, Some(0)) => counted(&|outcome| outcome.same += 1),
                        (true, _) => counted(&|outcome| outcome.refused_alike += 1),
                        (false, _) => counted(&|outcome| outcome.differ.push(source.display().to_string())),
                    }
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().expect("no thread panicked");
    let line = |(name, outcome): (&String, &Outcome)| {
        let Outcome { same, refused_alike, not_reached, differ } = outcome;
        format!(
            "  {name}: {same} files the same to the byte, {refused_alike} that plain nvcc refuses too, {} differ, {not_reached} not reached in time\n",
            differ.len()
        )
    };
    full::keep(
        "projects",
        &format!(
            "public projects, every .cu file by nvcc and by nvtune:\n{}",
            outcomes.iter().map(line).collect::<String>()
        ),
    );
    let differ: Vec<&String> = outcomes.values().flat_map(|outcome| &outcome.differ).collect();
    assert!(differ.is_empty(), "{differ:?}");
}
