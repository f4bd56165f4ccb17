//! The headers compile without a warning.

use super::*;

/// Compilers, standards, and whether they compile C++.
const HOST: [(&str, &[&str], bool); 4] = [
    ("gcc", &["c11", "c17", "gnu17"], false),
    ("clang", &["c11", "c17"], false),
    ("g++", &["c++11", "c++14", "c++17", "c++20"], true),
    ("clang++", &["c++11", "c++14", "c++17", "c++20"], true),
];

/// Sources that include all headers: without CUDA, with its headers before, and with them between.
fn texts() -> Vec<(&'static str, String)> {
    vec![("alone", includes("", "")), ("after", includes(RUNTIME_API, "")), ("between", includes("", RUNTIME_API))]
}

const RUNTIME_API: &str = "#include <cuda_runtime_api.h>\n";

/// Writes a source of a name; C wants a declaration in it.
fn write(folder: &Path, name: &str, ending: &str, text: &str) -> PathBuf {
    let path = folder.join(format!("{name}.{ending}"));
    std::fs::write(&path, format!("{text}int {}_;\n", name.replace('-', "_"))).expect("written");
    path
}

/// Checks the syntax of sources under a compiler and standard, with all warnings as errors.
fn check_syntax((compiler, standard, is_cxx): (&str, &str, bool), texts: &[(&str, String)]) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in texts {
        let mut command = Command::new(compiler);
        command.args(STRICT).arg(format!("-std={standard}")).arg("-isystem").arg(include_folder());
        command.arg("-I").arg(self::folder()).arg("-fsyntax-only");
        run(command.arg(write(folder.path(), name, if is_cxx { "cpp" } else { "c" }, text)));
    }
}

/// Compilers that are on this machine, with each standard.
fn host_compilers() -> Vec<(&'static str, &'static str, bool)> {
    let is_here = |(compiler, ..): &&(&str, _, _)| {
        let is_here = which::which(compiler).is_ok();
        if !is_here {
            eprintln!("no {compiler} here: not tried");
        }
        is_here
    };
    let present = HOST.iter().filter(is_here);
    present.flat_map(|&(compiler, standards, is_cxx)| standards.iter().map(move |s| (compiler, *s, is_cxx))).collect()
}

#[test]
#[ignore = "long: in the full run"]
fn headers_together_compile_without_warning_under_every_host_standard() {
    host_compilers().into_par_iter().for_each(|compiler| check_syntax(compiler, &texts()));
}

#[test]
fn each_header_alone_compiles_without_warning() {
    let texts = STEMS.map(|stem| (stem, format!("{RUNTIME_API}#include \"{stem}.tune.h\"\n")));
    let mut compilers = host_compilers();
    // The first standard of each.
    compilers.dedup_by_key(|(compiler, ..)| *compiler);
    compilers.into_par_iter().for_each(|compiler| check_syntax(compiler, &texts));
}

/// The full run compiles under every standard and with all of CUDA's headers.
#[test]
fn headers_together_compile_without_warning_under_nvcc() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = write(folder.path(), "alone", "cu", &includes("", ""));
    let standards: &[&str] = if is_full() { &["c++11", "c++14", "c++17", "c++20"] } else { &["c++11", "c++20"] };
    standards.par_iter().for_each(|standard| {
        let mut command = Command::new(nvcc());
        command.args(["-arch=sm_90", "-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror"]);
        // Its own code is not pedantic, and newer releases warn of older standards.
        command.args(["-Wno-deprecated-gpu-targets", "-c", "-o", "/dev/null"]).arg(format!("-std={standard}"));
        if !is_full() {
            command.arg("-I").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/mini"));
        }
        run(command.arg("-I").arg(self::folder()).arg(&source));
    });
}
