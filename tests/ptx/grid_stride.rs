//! Kernels as nvcc compiles them: which are proved to do the same in grids of any size, and what the proof asks for.

use crate::support::full::cases;
use crate::support::toolkit::{Headers, architectures, nvcc, set_headers};
use nvtune::analysis::grid_stride::GridStride;
use nvtune::analysis::{grid_stride, unrolled_loop};
use nvtune::ptx::{Module, isolate_entry};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The PTX of a source in this repository.
pub(super) fn compiled_text(source: &str, architecture: u32) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(nvcc());
    command.arg(format!("-arch=compute_{architecture}")).args(["-ptx", "-o", "kernels.ptx"]);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(source)).current_dir(folder.path());
    set_headers(&mut command, Headers::Small);
    let ran = command.output().expect("it starts");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    std::fs::read_to_string(folder.path().join("kernels.ptx")).expect("read")
}

fn compiled(source: &str, architecture: u32) -> Module {
    Module::parse(&compiled_text(source, architecture)).expect("PTX")
}

/// By name of the kernel.
fn judged(architecture: u32) -> BTreeMap<String, Option<GridStride>> {
    let module = compiled("tests/ptx/grid_stride.cu", architecture);
    let kernels = module.functions.iter().filter(|function| function.entry);
    kernels.map(|kernel| (kernel.name.to_string(), grid_stride::find(&module, &kernel.name))).collect()
}

#[test]
fn grid_stride_loop_is_told_from_what_looks_like_one() {
    let mut architectures = architectures();
    architectures.sort_unstable_by_key(|architecture| (*architecture != 90, *architecture));
    for architecture in cases(&architectures, 1) {
        for (name, found) in judged(*architecture) {
            assert_eq!(found.is_some(), name.starts_with("same"), "{name}, compute_{architecture}: {found:?}");
        }
    }
}

#[test]
fn code_that_may_be_unrolled_has_nothing_that_the_proof_refuses() {
    let module = compiled("tests/ptx/grid_stride.cu", 90);
    let kernels = module.functions.iter().filter(|function| function.entry);
    let found: BTreeMap<&str, bool> =
        kernels.map(|kernel| (&*kernel.name, unrolled_loop::may_be_unrolled(&module, &kernel.name))).collect();
    assert!(found["unrolled"] && found["same_rows"], "{found:?}");
    assert!(!found["other_atomic"] && !found["other_shared"] && !found["other_one_item"], "{found:?}");
}

#[test]
fn proof_asks_for_the_range_of_the_index_and_for_memory_of_its_own() {
    let judged = judged(90);
    let found = |name: &str| judged[name].clone().expect("proved");
    let stride = |index_limit, bound, must_not_alias: &[usize]| GridStride {
        index_limit,
        bound,
        must_not_alias: must_not_alias.iter().copied().collect(),
    };
    assert_eq!(found("same_scaled"), stride(Some(i64::from(i32::MAX)), Some(0), &[]));
    assert_eq!(found("same_unsigned"), stride(Some(i64::from(u32::MAX)), Some(0), &[]));
    assert_eq!(found("same_wide"), stride(None, Some(0), &[]));
    assert_eq!(found("same_bounded"), stride(Some(i64::from(i32::MAX)), None, &[]));
    // Memory that is read and could be what is written.
    assert_eq!(found("same_copied"), stride(Some(i64::from(i32::MAX)), Some(0), &[2]));
    assert_eq!(found("same_two"), stride(Some(i64::from(i32::MAX)), Some(0), &[1, 2]));
    assert_eq!(found("same_variable"), stride(Some(i64::from(i32::MAX)), Some(0), &[1]));
}

#[test]
fn bound_that_the_compiler_loads_again_for_each_item_is_the_same() {
    let module = compiled("kernels/particles/particles.cu", 90);
    let kernel = module.functions.iter().find(|function| function.entry).expect("a kernel");
    // `n`, and what is written: three arrays, each by itself.
    let expected = GridStride {
        index_limit: Some(i64::from(i32::MAX)),
        bound: Some(1),
        must_not_alias: [12, 13, 14].into_iter().collect(),
    };
    assert_eq!(grid_stride::find(&module, &kernel.name), Some(expected));
}

#[test]
fn registers_that_are_copies_of_each_other_are_no_index() {
    let text = isolate_entry(&compiled_text("tests/ptx/grid_stride.cu", 90), "same_alone").expect("the kernel");
    let (start, rest) = text.split_once("\tadd.s32 \t").expect("the sum");
    let (sum, rest) = rest.split_once(", ").expect("its operands");
    for copies in ["mov.u32 %copy, %copy;", "mov.u32 %other, %copy;\nmov.u32 %copy, %other;"] {
        let added = rest.replacen(sum, "%copy", 1);
        let text = format!("{start}{copies}\nadd.s32 {sum}, {added}");
        let text = text.replacen("\t.reg .b32 ", "\t.reg .b32 %copy, %other;\n\t.reg .b32 ", 1);
        let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(grid_stride::find(&module, "same_alone"), None, "{text}");
    }
}
