//! The benchmark suite in `kernels/`: every folder is complete; its programs build by nvcc and by nvtune, and answer.
//!
//! The quick run builds [`REPRESENTATIVES`], the full run all programs. No GPU is used.

use super::support::full::is_full;
use super::support::toolkit::{nvcc, run};
use nvtune::comment::{Annotation, annotations};
use nvtune::diag::{Source, render};
use nvtune::space::{Limits, Space};
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Programs that the quick run builds: one with dynamic shared memory and register caps, one with a macro axis.
const REPRESENTATIVES: [&str; 2] = ["nbody", "scattered"];

fn kernels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels")
}

fn source(name: &str) -> PathBuf {
    kernels().join(name).join(format!("{name}.cu"))
}

/// Returns the programs of the suite: the folders of `kernels/` that have `NAME/NAME.cu`.
pub fn programs() -> Vec<String> {
    let folders = fs::read_dir(kernels()).expect("kernels/ is there").map(|entry| entry.expect("kernels/ can be read"));
    let names = folders.map(|entry| entry.file_name().into_string().expect("folders of kernels/ have plain names"));
    let mut names: Vec<String> = names.filter(|name| source(name).exists()).collect();
    names.sort();
    assert!(names.len() >= 42, "{}", names.len());
    names
}

/// Returns the one tuning comment of a program.
fn annotation(name: &str) -> Annotation {
    let text = fs::read_to_string(source(name)).expect("NAME.cu");
    let mut comments = annotations(&Source::new(format!("{name}.cu"), text.as_bytes()))
        .unwrap_or_else(|problems| panic!("{}", render(&problems)));
    assert_eq!(comments.len(), 1, "{name} should have one tuning comment");
    comments.remove(0)
}

#[test]
fn readme_of_every_program_has_title_and_sections() {
    for name in programs() {
        let readme = fs::read_to_string(kernels().join(&name).join("README.md")).expect("README.md");
        assert!(readme.starts_with(&format!("# {name}\n")), "{name}/README.md has another title");
        for section in ["- Method:", "- Found before:", "- Varies:"] {
            assert!(readme.contains(section), "{name}/README.md lacks {section}");
        }
    }
}

#[test]
fn source_of_every_program_uses_its_header_and_the_common_functions() {
    for name in programs() {
        let text = fs::read_to_string(source(&name)).expect("NAME.cu");
        assert!(text.contains(&format!("__has_include(\"{name}.tune.h\")")), "{name} does not ask for its header");
        for word in ["bench::parse(", "bench::finish("] {
            assert!(text.contains(word), "{name} lacks {word}...): see kernels/common/bench.h");
        }
    }
}

#[test]
fn comment_of_every_program_has_workload_and_default() {
    for name in programs() {
        let annotation = annotation(&name);
        assert_eq!(annotation.name, name, "the kernel is called as its folder is");
        assert!(annotation.has_workload(), "{name}: the comment lacks args");
        let default = annotation.clauses.places.iter().any(|(clause, _)| clause == "default");
        assert!(default, "{name}: the comment lacks the authors' default");
    }
}

#[test]
fn space_of_every_program_has_several_configurations() {
    programs().par_iter().for_each(|name| {
        let space = Space::new(&annotation(name), &Limits::default())
            .unwrap_or_else(|problems| panic!("{}", render(&problems)));
        let points = space.iter().filter(|configuration| configuration.cap == 0).count();
        assert!(points > 1 || space.caps().len() > 1, "{name}: nothing varies");
    });
}

/// Runs the suite's Makefile with warnings as errors, as a user's build would.
fn make(compiler: &Path, out: &Path, more: &[&str], programs: &[String]) -> Output {
    let root = nvcc().parent().and_then(Path::parent).expect("a toolkit").to_owned();
    // A toolkit put together from packages may keep its libraries where nvcc does not look.
    let is_packaged = !root.join("lib64").exists() && root.join("lib/libcudart_static.a").exists();
    let libraries = if is_packaged { format!("-L{}", root.join("lib").display()) } else { String::new() };
    let flags = "-O3 -arch=sm_90 -Werror all-warnings -Xcompiler -Wall,-Wextra,-Werror";
    let mut make = Command::new("make");
    // The make that runs the tests has variables and jobs of its own.
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").env_remove("MFLAGS");
    make.env("NVTUNE", "static").env("NVTUNE_STRICT", "1").env("NVTUNE_CACHE_SIZE", "0").env("NVTUNE_NVCC", nvcc());
    make.arg("-j2").arg("-C").arg(kernels()).args(more);
    make.arg(format!("NVCC={}", compiler.display())).arg(format!("NVCCFLAGS={flags}"));
    make.arg(format!("LDFLAGS={libraries}")).arg(format!("OUT={}", out.display()));
    make.args(programs.iter().map(|program| out.join(program)));
    make.output().expect("make starts")
}

/// Builds programs and returns what the compiler printed.
fn build(compiler: &Path, out: &Path, programs: &[String]) -> String {
    let output = make(compiler, out, &[], programs);
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{printed}");
    printed
}

/// Runs a program and returns its status and all that it prints.
fn answer(program: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(program).args(arguments).output().expect("the program starts");
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&printed).into_owned())
}

/// Returns the names of a program's kernels.
fn kernel_names(program: &Path) -> BTreeSet<String> {
    let printed = run("cuobjdump", &["-res-usage".as_ref(), program.as_os_str()]);
    let names = printed.lines().filter_map(|line| line.trim().strip_prefix("Function ")?.strip_suffix(':'));
    names.map(str::to_owned).collect()
}

fn check_answers(folder: &Path, name: &str) {
    let (status, printed) = answer(&folder.join(name), &["--help"]);
    assert!(status == Some(0) && printed.contains(&format!("usage: {name}")), "{name} --help: {status:?} {printed}");
    let (status, printed) = answer(&folder.join(name), &["--size", "0"]);
    assert!(status == Some(2) && printed.contains("takes a number"), "{name} --size 0: {status:?} {printed}");
}

/// The quick run builds one program by plain nvcc.
#[test]
#[ignore = "long: in the full run"]
fn program_built_by_nvcc_answers_and_is_not_built_twice() {
    let folder = tempfile::tempdir().expect("a folder for outputs");
    let programs = if is_full() { programs() } else { vec!["saxpy".to_owned()] };
    build(&nvcc(), folder.path(), &programs);
    programs.iter().for_each(|name| check_answers(folder.path(), name));
    let again = make(&nvcc(), folder.path(), &["--question"], &programs);
    assert!(again.status.success(), "a second make would build again");
}

/// Compares answers and kernels with those of a plain build in the full run.
#[test]
#[ignore = "long: in the full run"]
fn program_built_by_nvtune_has_header_and_no_warning() {
    let folder = tempfile::tempdir().expect("a folder for outputs");
    // The other representative is built so by the book.
    let programs = if is_full() { programs() } else { vec![REPRESENTATIVES[1].to_owned()] };
    let tuned = folder.path().join("tuned");
    let shim = folder.path().join("nvcc");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_nvtune"), &shim).expect("a link");
    let printed = build(&shim, &tuned, &programs);
    assert!(!printed.contains("warning"), "{printed}");
    let mut lines: Vec<&str> = printed.lines().filter(|line| !line.contains(": note: ")).collect();
    lines.sort_unstable();
    assert_eq!(lines.len(), programs.len(), "one line for each program:\n{printed}");
    for (line, name) in lines.iter().zip(&programs) {
        assert!(line.starts_with(&format!("nvtune: {name}: ")), "{printed}");
        let header = fs::read_to_string(tuned.join(format!("{name}.tune.h"))).expect("a header");
        assert!(["predicted", "baseline"].iter().any(|word| header.contains(&format!("_PROVENANCE \"{word}\""))));
        check_answers(&tuned, name);
    }
    if is_full() {
        let plain = folder.path().join("plain");
        build(&nvcc(), &plain, &programs);
        programs.par_iter().for_each(|name| {
            let [plain, tuned] = [plain.join(name), tuned.join(name)];
            assert_eq!(answer(&plain, &["--help"]), answer(&tuned, &["--help"]), "{name}");
            let mut kernels = kernel_names(&tuned);
            kernels.retain(|kernel| !kernel.contains("__nvtune_"));
            assert_eq!(kernel_names(&plain), kernels, "{name}");
        });
    }
}

#[test]
fn makefile_lists_every_program() {
    let folder = tempfile::tempdir().expect("a folder for outputs");
    let output = make(Path::new("nvcc"), folder.path(), &["--dry-run", "all"], &[]);
    let printed = String::from_utf8_lossy(&output.stdout);
    for name in programs() {
        assert!(printed.contains(&format!(" {name}/{name}.cu ")), "{name} is not built:\n{printed}");
    }
    assert_eq!(printed.matches(" -MD -c ").count(), programs().len(), "{printed}");
}
