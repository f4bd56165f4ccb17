//! The benchmark suite in `kernels/`: every folder is complete, and builds through nvtune, with the header of that build.
//!
//! In: the folders of `kernels/` and an nvcc (`NVTUNE_NVCC`, else `.toolkit/bin/nvcc`, else the one on PATH).
//! Always holds: no GPU is used; what is legal but surely meant otherwise, and every warning of the compiler, is an error.

use super::support::toolkit::nvcc;
use nvtune::comment::annotations;
use nvtune::diag::{Source, render};
use nvtune::space::{Limits, Space};
use rayon::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels")
}

fn source(name: &str) -> PathBuf {
    kernels().join(name).join(format!("{name}.cu"))
}

/// The suite: every folder of `kernels/` but those that programs share.
fn suite() -> Vec<String> {
    let folders = fs::read_dir(kernels()).expect("kernels/ is there").map(|entry| entry.expect("kernels/ can be read"));
    let mut names: Vec<String> = folders
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().expect("folders of kernels/ have plain names"))
        .filter(|name| !["common", "results", "__pycache__"].contains(&name.as_str()))
        .collect();
    names.sort();
    assert!(names.len() >= 38, "{}", names.len());
    names
}

#[test]
fn every_folder_is_a_complete_benchmark() {
    for name in suite() {
        let text = fs::read_to_string(source(&name)).expect("NAME.cu");
        let readme = fs::read_to_string(kernels().join(&name).join("README.md")).expect("README.md");
        assert!(readme.starts_with(&format!("# {name}\n")), "{name}/README.md has another title");
        for section in ["- Method:", "- Found before:", "- Varies:"] {
            assert!(readme.contains(section), "{name}/README.md lacks {section}");
        }
        assert!(text.contains(&format!("__has_include(\"{name}.tune.h\")")), "{name} does not ask for its header");
        for word in ["bench::parse(", "bench::finish("] {
            assert!(text.contains(word), "{name} lacks {word}...): see kernels/common/bench.h");
        }
        let path = source(&name);
        let found = annotations(&Source::new(path.to_string_lossy(), text.as_bytes()))
            .unwrap_or_else(|problems| panic!("{}", render(&problems)));
        let [annotation] = &found[..] else { panic!("{name} should have one tuning comment") };
        assert_eq!(annotation.name, name, "the kernel is called as its folder is");
        assert!(annotation.has_workload(), "{name}: the comment lacks args");
        let default = annotation.clauses.places.iter().any(|(clause, _)| clause == "default");
        assert!(default, "{name}: the comment lacks the authors' default");
        let space =
            Space::new(annotation, &Limits::default()).unwrap_or_else(|problems| panic!("{}", render(&problems)));
        let points = space.iter().filter(|configuration| configuration.cap == 0).count();
        assert!(points > 1 || space.caps().len() > 1, "{name}: nothing varies");
    }
}

#[test]
fn nvtune_builds_every_benchmark() {
    suite().par_iter().for_each(|name| {
        let folder = tempfile::tempdir().expect("a folder for outputs");
        let output = Command::new(env!("CARGO_BIN_EXE_nvtune"))
            .args([
                "nvcc",
                "-O3",
                "-arch=sm_90",
                "-Werror",
                "all-warnings",
                "-Xcompiler",
                "-Wall,-Wextra,-Werror",
                "-c",
            ])
            .arg(source(name))
            .arg("-o")
            .arg(folder.path().join("program.o"))
            .env("NVTUNE", "static")
            .env("NVTUNE_STRICT", "1")
            .env("NVTUNE_CACHE_SIZE", "0")
            .env("NVTUNE_NVCC", nvcc())
            .output()
            .expect("nvtune starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}:\n{said}");
        assert!(said.starts_with(&format!("nvtune: {name}: ")) && said.lines().count() == 1, "{said}");
        let header = fs::read_to_string(folder.path().join(format!("{name}.tune.h"))).expect("a header");
        assert!(["predicted", "baseline"].iter().any(|word| header.contains(&format!("_PROVENANCE \"{word}\""))));
        assert!(fs::metadata(folder.path().join("program.o")).expect("an object").len() > 0);
    });
}
