//! Kernels of one name, of which `#if` compiles one.

use super::project::{Project, run, succeed};

/// A kernel with its comment, for launches of this block alone; with a macro of which this is the clause, or none.
fn copier(name: &str, way: &str, block: u32, guard: &str) -> String {
    let factor = if way.is_empty() { "2" } else { "WAY" };
    format!(
        "{guard}\n//@tune threads(n) block({block}) regs({{0, 32}}) {way} args(n = 4096, x = random[n], y = out[n])\n\
         __global__ void {name}(int n, const float *x, float *y) {{ int i = blockIdx.x * {block} + threadIdx.x; if (i < n) y[i] = {factor} * x[i]; }}\n"
    )
}

const WAY: &str = "define(WAY = {1, 2}) default(WAY = 1)";
const FAST: &str = "#if defined FAST || __CUDA_ARCH__ >= 900";

/// The other alternative, without a comment.
const UNMARKED: &str = "#else\n__global__ void copy(int n, const float *x, float *y) { y[n] = x[n]; }\n#endif\n";

/// Alternatives of blocks of 64 and 128 under these conditions, of which that of this block is compiled.
fn alternatives(name: &str, way: &str, first: &str, second: &str, block: u32) -> String {
    format!(
        "{}{}#endif\nstatic_assert({}_BLOCK_X == {block}, \"of the other one\");\n",
        copier(name, way, 64, first),
        copier(name, way, 128, second),
        name.to_uppercase()
    )
}

#[test]
fn compiled_alternative_is_tuned_and_cached() {
    let project = Project::new(&[]);
    let include = "#include \"copy.tune.h\"\n";
    let slow = "#if defined FASTER || __CUDA_ARCH__ >= 900";
    let copy = alternatives("copy", WAY, FAST, "#else", 64);
    let several = [
        copy.clone(),
        alternatives("other", "", slow, "#else", 128),
        alternatives("apart", "", slow, "#endif\n#if !defined FASTER", 128),
    ];
    for (text, options, blocks) in [
        (several.concat(), &["-c", "-arch=sm_80", "-DFAST"][..], &[("copy", 64), ("other", 128), ("apart", 128)][..]),
        // No host code is compiled.
        (copy.clone(), &["-cubin", "-arch=sm_80", "-DFAST"], &[("copy", 64)]),
        // Each architecture has its own.
        (copy.clone(), &["-c", "-arch=sm_90"], &[("copy", 64)]),
        (copy, &["-c", "-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90"], &[("copy", 64)]),
    ] {
        project.write("copy.cu", &format!("{include}{text}"));
        for from_cache in [false, true] {
            let ran = succeed(&mut project.nvtune(&[&["copy.cu", "-o", "copy.o"], options].concat()));
            assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
            for (name, block) in blocks {
                let result = ran.stderr.lines().find(|line| line.starts_with(&format!("nvtune: {name}: ")));
                let told = result.is_some_and(|line| line.starts_with(&format!("nvtune: {name}: block={block} ")));
                assert!(told, "{options:?} {name}: {}", ran.stderr);
                assert!(!from_cache || result.is_some_and(|line| line.contains("from the cache")), "{}", ran.stderr);
            }
        }
    }
}

#[test]
fn unmarked_alternative_is_not_tuned() {
    let project = Project::new(&[]);
    project.write("copy.cu", &format!("{}{UNMARKED}", copier("copy", "", 64, "#ifdef FAST")));
    for (options, is_tuned) in [(&["-DFAST"][..], true), (&[], false)] {
        let ran = succeed(&mut project.nvtune(&[&["-cubin", "copy.cu", "-arch=sm_90"], options].concat()));
        assert_eq!(ran.stderr.starts_with("nvtune: copy: block=64 "), is_tuned, "{}", ran.stderr);
        assert!(is_tuned || ran.stderr.is_empty(), "{}", ran.stderr);
    }
}

#[test]
fn header_has_no_kernel_that_is_not_compiled() {
    let project = Project::new(&[]);
    let host =
        "#ifdef COPY_BLOCK_X\nstatic_assert(USES_HEADER, \"\");\n#else\nstatic_assert(!USES_HEADER, \"\");\n#endif\n";
    let include = "#if __has_include(\"copy.tune.h\")\n#include \"copy.tune.h\"\n#endif\n";
    project.write("copy.cu", &format!("{include}{}{UNMARKED}{host}", copier("copy", "", 64, "#ifdef FAST")));
    for (options, warm) in [("-DFAST", false), ("-DOTHER", false), ("-DOTHER", true), ("-DFAST", true)] {
        let uses = format!("-DUSES_HEADER={}", u8::from(options == "-DFAST"));
        let ran = run(&mut project.nvtune(&["-c", "copy.cu", "-arch=sm_90", options, &uses]));
        assert_eq!(ran.code, Some(0), "{options} {warm}: {}", ran.stderr);
    }
}

#[test]
fn alternative_files_and_kernels_in_macro_arguments_are_tuned() {
    let project = Project::new(&[]);
    project.write("fast.cuh", &format!("#pragma once\n{}", copier("copy", "", 64, "")));
    project.write(
        "slow.cuh",
        &format!(
            "#ifndef S\n#define S\n#define IN(...) namespace of {{ __VA_ARGS__ }}\nIN(\n{}\n)\n#endif\n",
            copier("copy", "", 128, "")
        ),
    );
    project.write("copy.cu", "#ifdef FAST\n#include \"fast.cuh\"\n#else\n#include \"slow.cuh\"\n#endif\n");
    for (option, block) in [("-DFAST", 64), ("-DSLOW", 128)] {
        let ran = succeed(&mut project.nvtune(&["-cubin", "copy.cu", "-arch=sm_90", option]));
        let told = format!("nvtune: copy: block={block} ");
        assert!(ran.stderr.starts_with(&told) && !ran.stderr.contains("warning"), "{option}: {}", ran.stderr);
    }
}

#[test]
fn two_compiled_kernels_of_one_name_are_an_error() {
    let project = Project::new(&[]);
    project.write("copy.cu", &alternatives("copy", WAY, FAST, "#endif\n#if 1", 64));
    let ran = run(&mut project.nvtune(&["-c", "copy.cu", "-arch=sm_90"]));
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("two tuned kernels of this file are called `copy`"), "{}", ran.stderr);
}
