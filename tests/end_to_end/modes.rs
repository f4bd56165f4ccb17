//! What `NVTUNE` means, in every combination of lock file, cache and GPU: the table of nvtune-results(7), cell by cell.

use super::project::{Project, succeed};
use super::results::{gpu, nvtune};
use crate::support::full::is_full;
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

/// What a cell must give where nvtune is not off: the provenance and the block; no block where the model chooses.
fn expected(mode: &str, lock: Lock, cached: Cached, has_gpu: bool) -> (&'static str, Option<u32>) {
    let times = mode == "measure" && has_gpu;
    match (mode, lock, cached) {
        (_, Lock::Fresh, _) => ("locked", Some(LOCKED)),
        (_, _, Cached::OfThisGpu) => ("measured", Some(HERE)),
        (_, _, Cached::OfOtherGpu) if !times => ("measured", Some(OTHER)),
        _ if times => ("measured", Some(HERE)),
        ("locked", ..) => ("baseline", Some(256)),
        _ => ("predicted or baseline", None),
    }
}

/// A kernel of the source, of its own name: what the lock file and the cache have of it. The lock file is only there for some builds.
struct Known {
    kernel: String,
    lock: Lock,
    cached: Cached,
}

#[test]
fn each_mode_uses_lock_cache_and_gpu_as_documented() {
    let project = Project::new(&["saxpy.cu"]);
    let text = project
        .read("saxpy.cu")
        .replace("block(64:1024:64) regs(auto)", "block({128, 256, 512, 1024}) regs({0}) launch(header)");
    let (head, saxpy) = text.split_once("//@tune").expect("it is marked");
    // The kernels of these, in one source: cells that differ in what is known of a kernel alone are of one build.
    let source = |kernels: &[&Known]| {
        let of_name = |known: &&Known| {
            let own = saxpy.replace("saxpy", &known.kernel).replace("SAXPY", &known.kernel.to_uppercase());
            format!("//@tune{}", own.replace("void launch(", &format!("void launch_{}(", known.kernel)))
        };
        format!("{head}{}", kernels.iter().map(of_name).collect::<String>())
    };
    let mut all = Vec::new();
    for lock in [Lock::Fresh, Lock::Stale] {
        for cached in [Cached::Nothing, Cached::OfOtherGpu, Cached::OfThisGpu] {
            all.push(Known { kernel: format!("{lock:?}{cached:?}").to_lowercase(), lock, cached });
        }
    }
    // The lock file is of times of all kernels; those that the cache knows are timed into the one that each build gets a copy of.
    for (name, model, block, cached) in [
        ("lock", "NVIDIA H100", LOCKED, None),
        ("other", "NVIDIA A100", OTHER, Some(Cached::OfOtherGpu)),
        ("here", "NVIDIA H200", HERE, Some(Cached::OfThisGpu)),
    ] {
        project.write(&format!("{name}.json"), &gpu(model, block));
        let timed: Vec<&Known> =
            all.iter().filter(|known| cached.is_none_or(|cached| known.cached == cached)).collect();
        project.write("saxpy.cu", &source(&timed));
        let mut build = build(&project, name);
        if cached.is_some() {
            build.env("NVTUNE_CACHE_DIR", project.path("bin/known"));
        }
        build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", project.path(&format!("{name}.json")));
        let ran = succeed(&mut build);
        for Known { kernel, .. } in timed {
            assert!(ran.stderr.contains(&format!("nvtune: {kernel}: block={block} (1.2")), "{}", ran.stderr);
        }
    }
    project.write("saxpy.cu", &source(&all.iter().collect::<Vec<_>>()));
    succeed(&mut nvtune(&project, &["lock", "--lock", "nvtune.locked", "lock"]));
    let mut lock: serde_json::Value = serde_json::from_str(&project.read("nvtune.locked")).expect("JSON");
    for Known { kernel, .. } in all.iter().filter(|known| known.lock == Lock::Stale) {
        let digest = &mut lock["kernels"][format!("saxpy.cu: {kernel}, sm_90")]["ptx"];
        let other = format!("0000{}", &digest.as_str().expect("it has a digest")[4..]);
        *digest = other.into();
    }
    project.write("nvtune.locked", &lock.to_string());

    let mut builds = Vec::new();
    for mode in ["off", "locked", "static", "measure"] {
        for is_locked in [false, true] {
            builds.extend([false, true].map(|has_gpu| (mode, is_locked, has_gpu)));
        }
    }
    if !is_full() {
        builds = builds.into_iter().skip(1).step_by(3).collect();
    }
    let workers = 2;
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (project, builds, all) = (&project, &builds, &all);
            scope.spawn(move || {
                for (number, &(mode, is_locked, has_gpu)) in builds.iter().enumerate().skip(worker).step_by(workers) {
                    cells(project, number, all, mode, is_locked, has_gpu);
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

/// A build, which is a cell for each of its kernels.
fn cells(project: &Project, number: usize, all: &[Known], mode: &str, is_locked: bool, has_gpu: bool) {
    let folder = format!("build{number}");
    let cache = project.path(&format!("bin/cache{number}"));
    copy(&project.path("bin/known"), &cache);
    let mut build = build(project, &folder);
    build.env("NVTUNE", mode).env("NVTUNE_CACHE_DIR", &cache).env("CUDA_VISIBLE_DEVICES", "");
    if is_locked {
        build.env("NVTUNE_LOCK", project.path("nvtune.locked"));
    }
    if has_gpu {
        build.env("NVTUNE_REPLAY", project.path("here.json"));
    }
    let ran = succeed(&mut build);
    let header = std::fs::read_to_string(project.path(&folder).join("saxpy.tune.h")).ok();
    if mode == "off" {
        assert!(header.is_none() && ran.stderr.is_empty(), "NVTUNE={mode}: {}", ran.stderr);
        return;
    }
    let header = header.unwrap_or_else(|| panic!("NVTUNE={mode}: no header: {}", ran.stderr));
    for known in all {
        let lock = if is_locked { known.lock } else { Lock::None };
        cell(&ran.stderr, &header, &known.kernel, mode, lock, known.cached, has_gpu);
    }
}

fn cell(said: &str, header: &str, kernel: &str, mode: &str, lock: Lock, cached: Cached, has_gpu: bool) {
    let what = format!("{kernel}: NVTUNE={mode}, lock {lock:?}, cache {cached:?}, GPU {has_gpu}: {said}");
    let is_said = |words: &str| said.contains(&format!(" {kernel}{words}"));
    let is_stale = said.lines().any(|line| {
        line.contains(&format!(" {kernel}: its entry"))
            && line.contains("is stale and not used: another is its code (PTX)")
    });
    assert_eq!(is_stale, lock == Lock::Stale, "{what}");
    assert_eq!(
        is_said(" is not locked: there is no nvtune.lock above 'saxpy.cu': nvcc builds it"),
        mode == "locked" && lock == Lock::None && cached == Cached::Nothing,
        "{what}"
    );
    let (provenance, block) = expected(mode, lock, cached, has_gpu);
    let name = kernel.to_uppercase();
    let value = |fact: &str| {
        header.lines().find_map(|line| line.strip_prefix(&format!("#define {name}_{fact} "))).unwrap_or_default()
    };
    let found = value("PROVENANCE").trim_matches('"');
    assert!(provenance.split(" or ").any(|word| word == found), "{found}, not {provenance}: {what}");
    // Without an entry a warning says it.
    let is_unknown = mode == "locked" && lock == Lock::Stale && found == "baseline";
    let result = said.lines().find(|line| line.starts_with(&format!("nvtune: {kernel}: "))).unwrap_or_default();
    assert_eq!(
        result == format!("nvtune: {kernel}: block=256 (kept: no result is known) [N0034]"),
        is_unknown,
        "{what}"
    );
    if let Some(block) = block {
        assert_eq!(value("BLOCK_X"), block.to_string(), "{what}");
    }
    // Nothing is timed where the result is known.
    let times = mode == "measure" && has_gpu && lock != Lock::Fresh && cached != Cached::OfThisGpu;
    assert_eq!(result.contains("points timed") && !result.contains(" 0 of "), times, "{what}");
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
