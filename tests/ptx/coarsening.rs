//! Kernels whose blocks do the work of several: the text, which kernels are refused, ptxas, and what launches write.

use super::edits::assemble;
use super::grid_stride::compiled_text;
use super::interpreted::written;
use crate::support::full::cases;
use crate::support::toolkit::architectures;
use expect_test::expect;
use nvtune::launch::Launch;
use nvtune::ptx::coarsening::coarsen;
use nvtune::ptx::{Module, PtxError};

const HEAD: &str = ".version 9.0\n.target sm_90\n.address_size 64\n";

#[test]
fn body_becomes_a_loop_over_blocks_and_keeps_its_lines() {
    let text = format!(
        "{HEAD}.visible .entry k(\n.param .u64 k_param_0\n)\n.maxntid 64\n{{\n.reg .pred %p<2>;\n.reg .b32 %r<4>;\nmov.u32 %r1, %ctaid.x;\n\
         setp.lt.u32 %p1, %r1, %nctaid.x;\n@%p1 ret;\nmov.u32 %r2, %ctaid.y;\nret;\n}}\n"
    );
    let coarsened = coarsen(&text, "k").unwrap();
    assert_eq!(coarsened.lines().count(), text.lines().count());
    expect![[r#"
        .visible .entry k(
        .param .u64 k_param_0
        , .param .u32 nvtune_blocks)
        .maxntid 64
        { .reg .b32 %nvtune_block, %nvtune_blocks, %nvtune_step; .reg .pred %nvtune_more; ld.param.u32 %nvtune_blocks, [nvtune_blocks]; mov.u32 %nvtune_block, %ctaid.x; mov.u32 %nvtune_step, %nctaid.x; nvtune_begin: 
        .reg .pred %p<2>;
        .reg .b32 %r<4>;
        mov.u32 %r1, %nvtune_block;
        setp.lt.u32 %p1, %r1, %nvtune_blocks;
        @%p1 bra nvtune_next;
        mov.u32 %r2, %ctaid.y;
        bra nvtune_next;
         nvtune_next: add.u32 %nvtune_block, %nvtune_block, %nvtune_step; setp.lt.u32 %nvtune_more, %nvtune_block, %nvtune_blocks; @%nvtune_more bra nvtune_begin; ret; }
    "#]].assert_eq(coarsened.strip_prefix(HEAD).unwrap());
    for (before, after) in [
        (".entry k() { ret; }", ".entry k(.param .u32 nvtune_blocks) { "),
        (".entry k { ret; }", ".entry k (.param .u32 nvtune_blocks) { "),
        (".entry k .maxntid 8 { ret; }", ".entry k (.param .u32 nvtune_blocks) .maxntid 8 { "),
    ] {
        let coarsened = coarsen(&format!("{HEAD}{before}"), "k").unwrap();
        assert!(coarsened.strip_prefix(HEAD).unwrap().starts_with(after), "{coarsened}");
        assert_eq!(Module::parse(&coarsened).unwrap().entry("k").unwrap().parameters.len(), 1);
    }
}

#[test]
fn code_that_needs_other_blocks_or_threads_is_refused() {
    for (code, is_coarsened) in [
        ("mov.u32 %r1, %laneid; red.global.add.u32 [%rd1], %r1; ld.global.nc.f32 %f1, [%rd1];", true),
        ("{ .reg .pred p; setp.eq.s32 p, %r1, 0; @p ret; }", true),
        ("ts: .branchtargets first, second; first: brx.idx %r1, ts; second:", true),
        ("ld.global.cs.u32 %r1, [%rd1];", true),
        ("ld.global.cg.u32 %r1, [%rd1];", false),
        ("ld.global.cv.u32 %r1, [%rd1];", false),
        ("cvta.shared.u64 %rd1, 0;", false),
        ("ld.volatile.global.u32 %r1, [%rd1];", false),
        ("ld.acquire.gpu.u32 %r1, [%rd1];", false),
        ("st.release.gpu.u32 [%rd1], %r1;", false),
        ("atom.global.add.u32 %r1, [%rd1], 1;", false),
        ("red.shared.add.u32 [%r2], 1;", false),
        ("ld.shared.u32 %r1, [%r2];", false),
        ("mov.u64 %rd1, tile;", false),
        ("mov.u64 %rd1, own;", false),
        ("bar.sync 0;", false),
        ("membar.gl;", false),
        ("shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1;", false),
        ("activemask.b32 %r1;", false),
        ("mov.u32 %r1, %smid;", false),
        ("mov.u32 %r1, %clock;", false),
        ("mov.u32 %r1, %dynamic_smem_size;", false),
        ("mov.v4.u32 {%r1, %r2, %r3, %r4}, %ctaid;", false),
        ("call.uni f;", false),
        ("exit;", true),
        ("trap;", true),
    ] {
        let text = format!(
            "{HEAD}.extern .shared .align 16 .b8 tile[];\n.func f() {{ ret; }}\n.entry k() {{\n.shared .b32 own; .reg .b32 %r<9>; .reg .b64 %rd<9>; \
             .reg .f32 %f<9>; .reg .pred %p<9>;\n{code}\nret;\n}}\n"
        );
        let refused = Err(PtxError::DependentBlocks { name: "k".into() });
        let coarsened = coarsen(&text, "k");
        assert!(if is_coarsened { coarsened.is_ok() } else { coarsened == refused }, "{code}: {coarsened:?}");
    }
    // A variable that the parameter would hide.
    let named = format!("{HEAD}.global .u32 nvtune_blocks;\n.entry k() {{ ret; }}\n");
    assert!(coarsen(&named, "k").is_err());
    let clustered = format!("{HEAD}.entry k() .explicitcluster .reqnctapercluster 2, 1, 1 {{ ret; }}\n");
    assert!(coarsen(&clustered, "k").is_err());
    assert_eq!(coarsen(&clustered, "other"), Err(PtxError::NoEntry { name: "other".into() }));
}

#[test]
fn coarsened_kernel_writes_what_the_kernel_writes() {
    let mut architectures = architectures();
    architectures.sort_unstable_by_key(|architecture| (*architecture != 90, *architecture));
    for architecture in cases(&architectures, 1) {
        let text = compiled_text("tests/ptx/grid_stride.cu", *architecture);
        let module = Module::parse(&text).expect("PTX");
        let mut coarsened = 0;
        for kernel in module.functions.iter().filter(|function| function.entry) {
            let Ok(text) = coarsen(&text, &kernel.name) else { continue };
            // `assemble` is for compute capability 9.0.
            if *architecture <= 90 {
                assemble(&text, &["--entry", &kernel.name]);
            }
            let module_of_several = Module::parse(&text).expect("PTX");
            let launch = Launch { grid: [7, 1, 1], block: [4, 1, 1], shared: 0, carveout: None, coarsening: None };
            let expected = written(&module, &kernel.name, &launch);
            // What races writes another thing each time.
            let races = [
                "other_assembly",
                "other_behind",
                "other_bins",
                "other_bound",
                "other_neighbour",
                "other_one",
                "other_overlap",
            ];
            for blocks in [2, 3, 7, 16].into_iter().filter(|_| !races.contains(&&*kernel.name)) {
                let launch = Launch { coarsening: Some(blocks), ..launch };
                assert_eq!(written(&module_of_several, &kernel.name, &launch), expected, "{}, {blocks}", kernel.name);
            }
            coarsened += usize::from(expected.is_some());
        }
        assert!(coarsened > 25, "{coarsened}");
    }
}
