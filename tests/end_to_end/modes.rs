//! What `NVTUNE` means, in every combination of lock file, cache and GPU: the table of nvtune-results(7), cell by cell.

use crate::project::{Project, succeed};
use crate::results::{gpu, nvtune};
use std::path::Path;
use std::process::Command;

/// The blocks that win on the GPU of the lock file, on another one, and on this machine's.
const LOCKED: u32 = 512;
const OTHER: u32 = 128;
const HERE: u32 = 1024;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Lock {
    None,
    Fresh,
    Stale,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Cached {
    Nothing,
    OfOtherGpu,
    OfThisGpu,
}

/// What a cell must give: the provenance and the block; no block where the model chooses, and nothing at all for plain nvcc.
fn expected(mode: &str, lock: Lock, cached: Cached, has_gpu: bool) -> Option<(&'static str, Option<u32>)> {
    let times = mode == "measure" && has_gpu;
    Some(match (mode, lock, cached) {
        ("off", ..) => return None,
        (_, Lock::Fresh, _) => ("locked", Some(LOCKED)),
        (_, _, Cached::OfThisGpu) => ("measured", Some(HERE)),
        (_, _, Cached::OfOtherGpu) if !times => ("measured", Some(OTHER)),
        _ if times => ("measured", Some(HERE)),
        ("locked", ..) => ("baseline", Some(256)),
        _ => ("predicted or baseline", None),
    })
}

#[test]
fn every_mode_does_as_the_table_says() {
    let project = Project::new(&["saxpy.cu"]);
    for (name, model, block) in
        [("lock", "NVIDIA H100", LOCKED), ("other", "NVIDIA A100", OTHER), ("here", "NVIDIA H200", HERE)]
    {
        project.write(&format!("{name}.json"), &gpu(model, block));
        let cache = project.path(&format!("bin/{name}"));
        let ran = succeed(
            build(&project, name)
                .env("NVTUNE", "measure")
                .env("NVTUNE_CACHE_DIR", cache)
                .env("NVTUNE_REPLAY", project.path(&format!("{name}.json"))),
        );
        assert!(ran.stderr.contains(&format!("nvtune: saxpy: block={block} (1.2")), "{}", ran.stderr);
    }
    succeed(&mut nvtune(&project, &["lock", "--lock", "fresh.lock", "lock"]));
    let fresh = project.read("fresh.lock");
    let start = fresh.find("\"ptx\": \"").expect("it has a digest") + 8;
    project.write("stale.lock", &format!("{}0000{}", &fresh[..start], &fresh[start + 4..]));

    let mut cells = Vec::new();
    for mode in ["off", "locked", "static", "measure"] {
        for lock in [Lock::None, Lock::Fresh, Lock::Stale] {
            for cached in [Cached::Nothing, Cached::OfOtherGpu, Cached::OfThisGpu] {
                cells.extend([false, true].map(|has_gpu| (mode, lock, cached, has_gpu)));
            }
        }
    }
    let workers = 3;
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (project, cells) = (&project, &cells);
            scope.spawn(move || {
                for (number, &(mode, lock, cached, has_gpu)) in cells.iter().enumerate().skip(worker).step_by(workers) {
                    cell(project, number, mode, lock, cached, has_gpu);
                }
            });
        }
    });
}

/// A compile to machine code alone into a folder of its own.
fn build(project: &Project, folder: &str) -> Command {
    std::fs::create_dir(project.path(folder)).expect("a folder");
    let output = format!("{folder}/saxpy.cubin");
    project.nvtune(&["-O3", "-arch=sm_90", "-cubin", "saxpy.cu", "-o", &output])
}

fn cell(project: &Project, number: usize, mode: &str, lock: Lock, cached: Cached, has_gpu: bool) {
    let what = format!("NVTUNE={mode}, lock {lock:?}, cache {cached:?}, GPU {has_gpu}");
    let folder = format!("cell{number}");
    let cache = project.path(&format!("bin/cache{number}"));
    match cached {
        Cached::Nothing => {}
        Cached::OfOtherGpu => copy(&project.path("bin/other"), &cache),
        Cached::OfThisGpu => copy(&project.path("bin/here"), &cache),
    }
    let mut build = build(project, &folder);
    build.env("NVTUNE", mode).env("NVTUNE_CACHE_DIR", &cache).env("CUDA_VISIBLE_DEVICES", "");
    match lock {
        Lock::None => {}
        Lock::Fresh => drop(build.env("NVTUNE_LOCK", project.path("fresh.lock"))),
        Lock::Stale => drop(build.env("NVTUNE_LOCK", project.path("stale.lock"))),
    }
    if has_gpu {
        build.env("NVTUNE_REPLAY", project.path("here.json"));
    }
    let ran = succeed(&mut build);
    assert_eq!(
        ran.stderr.contains("is stale and not used: another is its code (PTX)"),
        mode != "off" && lock == Lock::Stale,
        "{what}: {}",
        ran.stderr
    );
    assert_eq!(
        ran.stderr
            .contains("saxpy is not locked: there is no nvtune.lock above 'saxpy.cu': it is built as nvcc builds it"),
        mode == "locked" && lock == Lock::None && cached == Cached::Nothing,
        "{what}: {}",
        ran.stderr
    );
    let header = std::fs::read_to_string(project.path(&folder).join("saxpy.tune.h")).ok();
    let Some((provenance, block)) = expected(mode, lock, cached, has_gpu) else {
        assert!(header.is_none() && ran.stderr.is_empty(), "{what}: {}", ran.stderr);
        return;
    };
    let header = header.unwrap_or_else(|| panic!("{what}: no header: {}", ran.stderr));
    let value = |name: &str| {
        header.lines().find_map(|line| line.strip_prefix(&format!("#define SAXPY_{name} "))).unwrap_or_default()
    };
    let found = value("PROVENANCE").trim_matches('"');
    assert!(provenance.split(" or ").any(|word| word == found), "{what}: {found}, not {provenance}: {}", ran.stderr);
    // Without an entry a warning says it.
    let is_unknown = mode == "locked" && lock == Lock::Stale && found == "baseline";
    assert_eq!(
        ran.stderr.ends_with("nvtune: saxpy: block=256 (kept: nothing is known of it as it is)\n"),
        is_unknown,
        "{what}: {}",
        ran.stderr
    );
    if let Some(block) = block {
        assert_eq!(value("BLOCK_X"), block.to_string(), "{what}");
    }
    // Nothing is timed where the result is known.
    let times = mode == "measure" && has_gpu && lock != Lock::Fresh && cached != Cached::OfThisGpu;
    assert_eq!(ran.stderr.contains("points timed") && !ran.stderr.contains(" 0 of "), times, "{what}: {}", ran.stderr);
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("it is there") {
        let path = entry.expect("readable").path();
        let target = to.join(path.file_name().expect("it has one"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            std::fs::copy(&path, &target).expect("copied");
        }
    }
}
