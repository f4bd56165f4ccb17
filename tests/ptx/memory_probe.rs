//! Probes: which kernels have one, that ptxas takes all of them, and that they find what the kernels access.

use crate::support::toolkit::{Headers, nvcc, program, set_headers};
use expect_test::expect;
use nvtune::analysis::{MemoryProbe, ProbeRow};
use nvtune::cuda::{Element, Scalar};
use nvtune::launch::Launch;
use nvtune::ptx::{Module, isolate_entry};
use nvtune::sim::{LaunchViolation, Limits, find_violations, written_by_thread};
use nvtune::workload::{Argument, Buffer, Fill, Workload};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// A kernel whose parameters are in registers before this code: two pointers and a number.
fn kernel(body: &str) -> String {
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.global .align 8 .u64 total;\n.const .align 4 .b8 table[64];\n\
         .extern .shared .align 16 .b8 tile[];\n.extern .func f ();\n\
         .extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);\n\
         .visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n, .param .align 8 .b8 view[16])\n{{\n.reg .pred %p<9>;\n\
         .reg .b16 %h<9>;\n.reg .b32 %r<99>;\n.reg .f32 %f<9>;\n.reg .b64 %rd<99>;\n\
         ld.param.u64 %rd1, [x];\nld.param.u64 %rd2, [y];\nld.param.u32 %r1, [n];\nmov.u32 %r2, %tid.x;\nmul.wide.u32 %rd3, %r2, 4;\n\
         {body}\nret;\n}}\n"
    )
}

/// The pointers of a probe's rows, or why there is none.
fn described(text: &str, symbol: &str) -> String {
    let module = Module::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let parameters = &module.entry(symbol).expect("the kernel").parameters;
    let row = |ProbeRow { pointers, is_watched, is_written }: &ProbeRow| {
        let names = pointers.iter().map(|pointer| {
            let name = parameters[pointer.parameter].name.rsplit("param_").next().unwrap_or_default();
            if pointer.offset > 0 { format!("{name}+{}", pointer.offset) } else { name.to_owned() }
        });
        let names = names.collect::<Vec<_>>().join("|");
        format!("{names}{}{}", if *is_watched { " watched" } else { "" }, if *is_written { " written" } else { "" })
    };
    match MemoryProbe::new(text, &module, symbol) {
        Ok(probe) => probe.rows.iter().map(row).collect::<Vec<_>>().join(", "),
        Err(problem) => problem.to_string(),
    }
}

/// Has ptxas compile a probe.
fn assemble(folder: &Path, ptx: &str) {
    let file = folder.join("probe.ptx");
    std::fs::write(&file, ptx).expect("written");
    let mut ptxas = Command::new(program("ptxas"));
    let ran = ptxas.args(["-arch=sm_90", "-o"]).arg(folder.join("probe.cubin")).arg(&file).output().expect("it starts");
    assert!(ran.status.success(), "{}\n{ptx}", String::from_utf8_lossy(&ran.stderr));
}

#[test]
fn addresses_of_arguments_and_of_constant_memory_are_probed() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = "add.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\n";
    for (body, rows) in [
        (format!("{own}ld.global.f32 %f1, [%rd4];\nst.global.f32 [%rd5+4], %f1;"), "x, y written"),
        (format!("{own}ld.global.v4.u32 {{%r3, %r4, %r5, %r6}}, [%rd4];\nred.global.add.u32 [%rd4], 1;"), "x written"),
        (format!("{own}cp.async.ca.shared.global [tile], [%rd4], 16;\ncp.async.wait_all;"), "x"),
        // Accesses to other memory.
        (format!("{own}ld.u32 %r3, [%rd4];\nst.shared.u32 [tile], %r3;\nld.const.u32 %r4, [table];\nst.global.u64 [total], %rd4;"), "x"),
        (format!("{own}mov.u64 %rd6, tile;\ncvta.shared.u64 %rd7, %rd6;\nst.u32 [%rd7], %r2;\nst.u32 [%rd4], %r2;"), "x written"),
        // A structure, either of two pointers, and an address in halves.
        ("ld.param.u64 %rd4, [view+8];\ncvta.to.global.u64 %rd5, %rd4;\nst.global.u32 [%rd5+-4], %r2;".into(), "view+8 written"),
        (format!("{own}setp.eq.s32 %p1, %r1, 0;\nselp.b64 %rd6, %rd4, %rd5, %p1;\nst.global.u32 [%rd6], %r2;"), "x|y written"),
        // What is loaded decides where the kernel accesses memory.
        (format!("{own}ld.global.nc.s32 %r3, [%rd4];\nmul.wide.s32 %rd6, %r3, 4;\nadd.s64 %rd7, %rd2, %rd6;\nld.global.f32 %f1, [%rd7];"), "x, y"),
        (format!("{own}ld.global.s32 %r3, [%rd4];\nmul.wide.s32 %rd6, %r3, 4;\nadd.s64 %rd7, %rd2, %rd6;\nst.global.f32 [%rd7], %f1;"), "x watched, y written"),
        (format!("{own}ld.global.u32 %r3, [%rd4];\nsetp.eq.s32 %p1, %r3, 0;\n@%p1 st.global.u32 [%rd5], %r3;"), "x watched, y written"),
        (format!("{own}ld.global.nc.u32 %r3, [%rd4];\nsetp.eq.s32 %p1, %r3, 0;\n@%p1 bra $L;\nst.global.u32 [%rd5], %r3;\n$L:"), "x, y written"),
        // What is loaded decides over nothing but results, threads meet, and sums are carried.
        (format!("{own}$L: ld.shared.u32 %r3, [tile];\nsetp.eq.s32 %p1, %r3, 0;\n@%p1 bra $L;\nbar.sync 0;\nst.global.u32 [%rd5], %r3;"), "y written"),
        (format!("{own}ld.volatile.global.u32 %r3, [%rd4];\nsetp.eq.s32 %p1, %r3, 0;\n@%p1 trap;"), "x"),
        (format!("{own}setp.ge.s32 %p1, %r2, %r1;\n@%p1 ret;\nst.global.u32 [%rd5], %r2;"), "y written"),
        (format!("{own}setp.ge.s32 %p1, %r2, %r1;\n@%p1 bra $L;\n{{ call.uni __assertfail, (%rd1, %rd1, %r1, %rd1, %rd1); }}\n$L: st.global.u32 [%rd5], %r2;"), "y written"),
        ("mov.b64 {%r3, %r4}, %rd1;\nadd.cc.u32 %r5, %r3, %r2;\naddc.u32 %r6, %r4, 0;\ncvt.u64.u32 %rd4, %r5;\nadd.s64 %rd5, %rd2, %rd4;\nst.global.u8 [%rd5], %h1;".into(), "y written"),
        // Two branches that join before a scope of inline assembly.
        (format!("{own}ld.shared.u32 %r3, [tile];\nsetp.eq.s32 %p1, %r3, 0;\n@%p1 bra $L;\nadd.s32 %r3, %r3, 1;\n$L: {{ .reg .b32 t; mov.b32 t, %laneid; mul.wide.u32 %rd6, t, 4; }}\nadd.s64 %rd7, %rd1, %rd6;\nst.global.u32 [%rd7], %r3;"), "x written"),
    ] {
        let text = kernel(&body);
        assert_eq!(described(&text, "k"), rows, "{body}");
        let probe = MemoryProbe::new(&text, &Module::parse(&text).expect("PTX"), "k").expect("a probe");
        assemble(folder.path(), &probe.ptx);
    }
}

#[test]
fn probe_is_refused_with_its_reason() {
    let own = "add.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\n";
    let at = |value: &str| {
        format!("{own}{value}\nmul.wide.s32 %rd6, %r3, 4;\nadd.s64 %rd7, %rd2, %rd6;\nst.global.f32 [%rd7], %f1;")
    };
    let mut problems = String::new();
    for body in [
        "".to_owned(),
        at("ld.shared.u32 %r3, [tile];"),
        at("ld.const.u32 %r3, [table];"),
        at("ld.volatile.global.u32 %r3, [%rd4];"),
        at("atom.global.add.u32 %r3, [%rd4], 1;"),
        at("shfl.sync.idx.b32 %r3, %r1, 0, 31, -1;"),
        at("mov.u32 %r3, %clock;"),
        at("ld.param.f32 %f2, [n];\nmul.f32 %f3, %f2, %f2;\ncvt.rzi.s32.f32 %r3, %f3;"),
        // Loads and branches by memory that may change.
        format!(
            "{own}ld.global.u32 %r3, [%rd4];\nsetp.eq.s32 %p1, %r3, 0;\n@%p1 bra $L;\nst.global.u32 [%rd5], %r3;\n$L:"
        ),
        at(
            "ld.global.u32 %r4, [%rd4];\nmul.wide.s32 %rd8, %r4, 4;\nadd.s64 %rd9, %rd2, %rd8;\nld.global.nc.u32 %r3, [%rd9];",
        ),
        at("$L: ld.global.u32 %r3, [%rd4];\nsetp.eq.s32 %p1, %r3, 0;\n@%p1 bra $L;\n@%p1 st.global.u32 [%rd4], %r3;"),
        // Pointers in memory, and those of no parameter.
        "ld.global.nc.u64 %rd4, [%rd1];\nst.global.u32 [%rd4], %r1;".to_owned(),
        "mov.u64 %rd4, total;\nsetp.eq.s32 %p1, %r1, 0;\nselp.b64 %rd5, %rd4, %rd1, %p1;\nst.global.u32 [%rd5], %r1;"
            .to_owned(),
        "mov.b64 %rd4, {%r1, %r2};\nst.global.u32 [%rd4], %r1;".to_owned(),
        // What accesses more than is known, or continues somewhere else.
        format!("{own}call.uni f, ();\nst.global.u32 [%rd5], %r1;"),
        format!("{own}cp.async.bulk.global.shared::cta.bulk_group [%rd4], [tile], %r1;"),
        format!(
            "{own}wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {{%r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10}}, [%rd4], %r1;"
        ),
        format!("{own}tex.1d.v4.u32.s32 {{%r3, %r4, %r5, %r6}}, [%rd1, {{%r2}}];\nst.global.u32 [%rd5], %r1;"),
        format!("{own}frobnicate.b32 %r3, %r4;\nst.global.u32 [%rd5], %r1;"),
        format!("{own}T: .branchtargets $A, $B;\nbrx.idx %r2, T;\n$A: st.global.u32 [%rd5], %r1;\n$B:"),
    ] {
        let _ = writeln!(problems, "{}", described(&kernel(&body), "k"));
    }
    expect![[r#"
        it accesses no memory through its parameters
        line 23: an access depends on the result of `ld.shared.u32`
        line 23: an access depends on the result of `ld.const.u32`
        line 23: an access depends on the result of `ld.volatile.global.u32`
        line 23: an access depends on the result of `atom.global.add.u32`
        line 23: an access depends on the result of `shfl.sync.idx.b32`
        line 23: an access depends on `%clock`
        line 24: an access depends on the result of `mul.f32`
        line 25: `bra` depends on memory that the kernel may change
        line 26: `ld.global.nc.u32` depends on memory that the kernel may change
        line 25: `bra` depends on memory that the kernel may change
        line 22: no parameter is known to point at what `st.global.u32` accesses
        line 21: an access depends on `total`
        line 22: no parameter is known to point at what `st.global.u32` accesses
        line 23: `call.uni` may access any memory
        line 23: `cp.async.bulk.global.shared::cta.bulk_group` may access any memory
        line 23: `wmma.load.a.sync.aligned.row.m16n16k16.global.f16` may access any memory
        line 23: `tex.1d.v4.u32.s32` may access any memory
        line 23: `frobnicate.b32` may access any memory
        line 24: it is not known where `brx.idx` leads
    "#]]
    .assert_eq(&problems);
}

#[test]
fn ptxas_accepts_the_probe_of_every_fixture() {
    let folder = tempfile::tempdir().expect("a folder");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut sources: Vec<_> =
        std::fs::read_dir(fixtures).expect("fixtures").flatten().map(|entry| entry.path()).collect();
    sources.sort();
    let (mut probes, mut refused) = (0, String::new());
    for text in sources.iter().filter_map(|source| std::fs::read_to_string(source.join("sm_90.ptx")).ok()) {
        let module = Module::parse(&text).expect("PTX");
        for entry in module.functions.iter().filter(|function| function.entry) {
            match MemoryProbe::new(&text, &module, &entry.name) {
                Ok(probe) => {
                    assemble(folder.path(), &probe.ptx);
                    probes += 1;
                }
                Err(problem) => drop(writeln!(refused, "{}: {problem}", entry.name)),
            }
        }
    }
    expect![[r#"
        _Z6tracesiPKfPf: line 105: `call.uni` may access any memory
        _Z7assertsiPKfPf: line 239: `bra` depends on memory that the kernel may change
        _Z6printsiPKfPf: line 376: `call.uni` may access any memory
        _Z9allocatesiPPf: line 452: `call.uni` may access any memory
        _Z6choosePKjPf: line 133: `bra` depends on memory that the kernel may change
        _Z4gcdsPKiS0_Pi: line 446: `call.uni` may access any memory
        calls: line 278: `call.uni` may access any memory
        generic: line 157: an access depends on `_ZZ7genericE4tile`
        calls: line 283: `call.uni` may access any memory
        cases: line 445: an access depends on the result of `atom.global.cas.b32`
        tensor: line 79: `wmma.load.b.sync.aligned.col.m16n16k16.global.f16` may access any memory
        textures: line 294: `tex.2d.v4.f32.f32` may access any memory
        _Z5probejPKjS0_Pj: line 71: an access depends on the result of `vote.sync.ballot.b32`
        _Z6sortedPKjPj: line 226: an access depends on the result of `ld.shared.u32`
    "#]]
    .assert_eq(&refused);
    expect!["36"].assert_eq(&probes.to_string());
}

/// Threads of the launches in which probes are compared with their kernels.
const GRID: u32 = 4;
const BLOCK: u32 = 64;

fn launch() -> Launch {
    Launch { grid: [GRID, 1, 1], block: [BLOCK, 1, 1], shared: 0, carveout: None, coarsening: None }
}

/// All threads: block, and place in it.
fn threads() -> Vec<([u32; 3], [u32; 3])> {
    (0..GRID * BLOCK).map(|at| ([at / BLOCK, 0, 0], [at % BLOCK, 0, 0])).collect()
}

/// The arguments of `memory_probe.cu`'s kernels, with buffers of these bytes.
fn workload(bytes: [u64; 3]) -> Workload {
    let buffer = |name: &str, scalar: Scalar, bytes: u64, fill: Fill| Buffer {
        name: name.into(),
        element: Element { scalar, lanes: 1 },
        count: bytes / 4,
        fill,
        seed: 0,
    };
    let number = |value: i32| Argument::Scalar(value.to_le_bytes().to_vec());
    let arguments = vec![number(200), number(3), Argument::Buffer(0), Argument::Buffer(1), Argument::Buffer(2)];
    let buffers = vec![
        buffer("index", Scalar::I32, bytes[0], Fill::Iota),
        buffer("x", Scalar::F32, bytes[1], Fill::Iota),
        buffer("y", Scalar::F32, bytes[2], Fill::Poison),
    ];
    Workload { arguments, buffers, ..Workload::default() }
}

/// The first byte and the end of what a probe finds, by buffer, as its threads do in the interpreter. There its table is a
/// buffer, and each thread has it to itself.
fn found_bytes(probe: &MemoryProbe) -> BTreeMap<u64, (u64, u64)> {
    let text = probe.ptx.replace("[nvtune_table+", "[%nvtune_t+");
    let text = text.replacen("[8])\n.maxntid", "[8], .param .u64 table)\n.maxntid", 1);
    let text = text.replacen("\n{\n", "\n{\n.reg .b64 %nvtune_t;\nld.param.u64 %nvtune_t, [table];\n", 1);
    let text = text.replace("@%nvtune_p red.global.min.u64", "st.global.u64");
    let text = text.replace("@%nvtune_p red.global.max.u64", "st.global.u64");
    let module = Module::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut workload = workload([1024, 4096, 4096]);
    let element = Element { scalar: Scalar::U64, lanes: 1 };
    let count = 2 * probe.rows.len() as u64;
    workload.buffers.push(Buffer { name: "table".into(), element, count, fill: Fill::Zeros, seed: 0 });
    workload.arguments.push(Argument::Buffer(3));
    let mut found: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for place in threads() {
        let written = written_by_thread(&module, "nvtune_probe", &launch(), &workload, place, &Limits::default());
        let written = written.expect("it runs");
        let word = |at: u64| u64::from_le_bytes(std::array::from_fn(|byte| written[&(3, 8 * at + byte as u64)]));
        for row in (0..count / 2).filter(|row| word(2 * row) < word(2 * row + 1)) {
            // Each buffer has a region of 2^40 bytes.
            let (begin, end) = (word(2 * row), word(2 * row + 1));
            let bytes = found.entry((begin >> 40) - 1).or_insert((u64::MAX, 0));
            let offset = |address: u64| address & ((1 << 40) - 1);
            *bytes = (bytes.0.min(offset(begin)), bytes.1.max(offset(end)));
        }
    }
    found
}

#[test]
fn probe_finds_what_its_kernel_accesses() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(nvcc());
    command.args(["-arch=compute_90", "-ptx", "-o", "kernels.ptx"]).current_dir(folder.path());
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ptx/memory_probe.cu"));
    set_headers(&mut command, Headers::Small);
    let ran = command.output().expect("it starts");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let all = std::fs::read_to_string(folder.path().join("kernels.ptx")).expect("read");
    for (name, index, x, y) in [
        ("strided", None, (0, 800), (8, 2400)),
        ("vectors", None, (48, 848), (0, 200)),
        ("gathered", Some((0, 800)), (0, 800), (12, 812)),
        ("columns", None, (0, 2400), (0, 800)),
        ("tiled", None, (0, 1024), (0, 800)),
    ] {
        let symbol = format!("_Z{}{name}iiPKiPKfPf", name.len());
        let text = isolate_entry(&all, &symbol).expect("the kernel");
        let module = Module::parse(&text).expect("PTX");
        let probe = MemoryProbe::new(&text, &module, &symbol).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        let expected: BTreeMap<u64, (u64, u64)> =
            index.map(|bytes| (0, bytes)).into_iter().chain([(1, x), (2, y)]).collect();
        assert_eq!(found_bytes(&probe), expected, "{name}");
        // The kernel itself needs that much, and no more.
        let bytes = [index.map_or(1024, |bytes| bytes.1), x.1, y.1];
        let violations = |bytes: [u64; 3]| {
            find_violations(&module, &symbol, &launch(), &workload(bytes), &threads(), 100_000).expect("it runs")
        };
        assert_eq!(violations(bytes), [], "{name}");
        // What follows a loop over other threads' data is not certain in the interpreter.
        for buffer in 1..if name == "tiled" { 2 } else { 3 } {
            let mut less = bytes;
            less[buffer] -= 4;
            let is_beyond = |violation: &LaunchViolation| matches!(violation, LaunchViolation::Buffer { index, .. } if *index == buffer);
            assert!(violations(less).iter().any(is_beyond), "{name}: buffer {buffer}");
        }
    }
}
