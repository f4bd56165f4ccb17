//! Reading PTX, editing register caps and cache operators (compared with ptxas), and its canonical text.

mod canonical;
mod coarsening;
mod edits;
mod grid_stride;
mod grid_stride_mutations;
mod interpreted;
mod memory_probe;
mod reading;
mod shape_invariance;
mod transplant;

use super::support::full::random_cases;
use super::support::{fixtures, toolkit};

use nvtune::launch::LoadCacheOperator;
use nvtune::ptx::cache::set_cache_operators;
use nvtune::ptx::directives::{set_register_cap, set_register_caps, set_required_block};
use nvtune::ptx::{
    Edits, Initial, Linkage, Module, Operand, PtxError, Scalar, StateSpace, Statement, calls_by_address, isolate_entry,
};
use nvtune::sass::Cubin;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::process::Command;

const EVERYTHING: &str = r#"
.version 9.0
.target sm_90a, debug
.address_size 64
.file 1 "a.cu"
.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.extern .shared .align 16 .b8 dynamic[];
.const .align 4 .f32 table[2][2] = {{0f3F800000}, {2.0, 0f40400000}};
.global .align 8 .u64 pointers[2] = {table+4, generic(dynamic)};
.visible .global .align 1 .b8 text[4] = {104, 105, 10};
.weak .func (.reg .b32 out) helper (.reg .b32 in) { mov.b32 out, in; ret; }
.visible .entry kernel(
    .param .align 8 .b8 pair[16],
    .param .u64 .ptr .global .align 16 data
)
.maxntid 128, 2, 1
.minnctapersm 3
.maxclusterrank 8
{
    .reg .pred %p<3>;
    .reg .v4 .f32 %v;
    .reg .b32 %r<10>;
    .reg .b64 %rd<4>;
    .local .align 4 .b8 depot[8];
    .loc 1 5 3, function_name $L__info_string0, inlined_at 1 10 3
    // begin inline asm
    { .reg .b32 t; mov.b32 t, %tid.x; add.s32 %r1, t, -3; }
    // end inline asm
    @!%p1 bra $L__BB0_2;
    ld.global.nc.L2::128B.v2.u32 {%r2, _}, [%rd1+-8];
    setp.lt.and.s32 %p1|%p2, %r1, 0x1F, !%p1;
    tex.2d.v4.f32.s32 {%v.x, %v.y, %v.z, %v.w}, [%rd2, {%r1, %r2}];
$L__BB0_2: mov.u64 %rd1, pointers+8; mov.f64 %rd2, 1.5e-3;
    { // callseq 0, 0
    .param .b32 retval0;
    call.uni (retval0), vprintf, (%rd1, %rd2);
    }
    table_0: .branchtargets $L__BB0_2, $L__BB0_3;
    brx.idx %r1, table_0;
$L__BB0_3:
    ret;
}
.section .debug_str { info_string0: .b8 95 .b8 0 }
"#;

/// PTX that is committed beside its source is what nvcc makes of it, but for the two lines that are lowered by hand; another release of
/// nvcc may make other text of the same kernels.
#[test]
fn committed_ptx_is_that_of_its_source() {
    for file in ["src/measure/gpu/device", "tests/gpu/kernels"] {
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join("made.ptx").to_string_lossy().into_owned();
        // From where the source is, for its name is in the text of an assertion.
        let (beside, name) = file.rsplit_once('/').unwrap();
        let mut nvcc = Command::new(toolkit::program("nvcc"));
        nvcc.args(["-ptx", "-arch=compute_75", "-o", &made, &format!("{name}.cu")]).current_dir(beside);
        assert!(nvcc.status().unwrap().success(), "{file}.cu");
        let (made, committed) = (fs::read_to_string(made).unwrap(), fs::read_to_string(format!("{file}.ptx")).unwrap());
        let release = |text: &str| text.lines().find(|line| line.contains(", release ")).map(str::to_owned);
        let same_release = release(&made) == release(&committed);
        let counts = |line: &&str| match same_release {
            true => !line.starts_with(".version") && !line.starts_with(".target"),
            false => line.starts_with(".visible .entry") || line.starts_with("\t.param"),
        };
        let [made, committed] = [&made, &committed].map(|text| text.lines().filter(counts).collect::<Vec<_>>());
        assert!(made.len() > 10);
        assert!(made == committed, "make {file}.ptx anew, as {file}.cu says");
    }
}
