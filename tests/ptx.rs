//! Reading PTX, writing register caps and cache operators into it (against the real ptxas), and its canonical text.

use super::support::full::random_cases;
use super::support::{fixtures, toolkit};

use nvtune::cubin::Cubin;
use nvtune::ptx::cache::set_cache_operators;
use nvtune::ptx::directives::{set_register_cap, set_register_caps};
use nvtune::ptx::{
    CacheOperator, Edits, Error, Initial, Linkage, Module, Operand, Scalar, Space, Statement, alone, calls_by_address,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::process::Command;

/// Assembles PTX for sm_90 and returns registers and machine code of each kernel.
fn assemble(text: &str, options: &[&str]) -> BTreeMap<String, (u32, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let ptx = folder.path().join("x.ptx").to_string_lossy().into_owned();
    let cubin = folder.path().join("x.cubin").to_string_lossy().into_owned();
    fs::write(&ptx, text).unwrap();
    let mut arguments = vec!["-arch=sm_90"];
    arguments.extend_from_slice(options);
    arguments.extend([ptx.as_str(), "-o", cubin.as_str()]);
    toolkit::run("ptxas", &arguments);
    let bytes = fs::read(&cubin).unwrap();
    let cubin = Cubin::parse(&bytes).unwrap();
    let kernels = cubin.kernels().iter();
    kernels.map(|kernel| (kernel.name.to_owned(), (kernel.resources.registers, kernel.code.to_vec()))).collect()
}

#[test]
fn a_cap_in_the_text_is_obeyed_whatever_the_launch_bounds() {
    let text = fixtures::ptx("caps/sm_90");
    for entry in ["plain", "bounded", "sized"] {
        let free = assemble(&text, &["--entry", entry])[entry].0;
        assert!(free > 40, "{entry}: {free}");
        for cap in [32, 40, 128] {
            let capped = set_register_cap(&text, entry, cap).unwrap();
            let (registers, _) = assemble(&capped, &["--entry", entry])[entry];
            assert!(registers <= cap, "{entry}: {registers} > {cap}");
            assert!(cap <= free || registers > free, "{entry}: a cap of {cap} is also a target, {registers} used");
        }
    }
}

#[test]
fn the_directive_gives_the_code_that_the_option_gives() {
    let text = fixtures::ptx("caps/sm_90");
    for cap in [24, 40, 96, 255] {
        let by_option = assemble(&text, &["--entry", "plain", "--maxrregcount", &cap.to_string()]);
        let by_directive = assemble(&set_register_cap(&text, "plain", cap).unwrap(), &["--entry", "plain"]);
        assert!(!by_option["plain"].1.is_empty());
        assert_eq!(by_option, by_directive, "cap {cap}");
    }
    // Why the option is not enough: it is ignored where there are launch bounds.
    let ignored = assemble(&text, &["--entry", "sized", "--maxrregcount", "32"]);
    assert!(ignored["sized"].0 > 32);
}

#[test]
fn kernels_of_one_file_get_caps_of_their_own() {
    let text = fixtures::ptx("caps/sm_90");
    let capped = set_register_caps(&text, &[("plain", 32), ("bounded", 48)]).unwrap();
    let kernels = assemble(&capped, &[]);
    let untouched = assemble(&text, &[]);
    assert!(kernels["plain"].0 <= 32 && (33..=48).contains(&kernels["bounded"].0), "{kernels:?}");
    assert_eq!(kernels["sized"], untouched["sized"]);
}

#[test]
fn an_operator_in_the_text_gives_the_code_that_the_option_gives() {
    let text = fixtures::ptx("loads/sm_90");
    for (name, operator) in CacheOperator::ALL {
        for entry in ["plain", "restricted", "generic", "said"] {
            let by_option = assemble(&text, &["--entry", entry, &format!("-dlcm={name}")]);
            let by_operator = assemble(&set_cache_operators(&text, &[(entry, operator)]).unwrap(), &["--entry", entry]);
            assert!(!by_option[entry].1.is_empty());
            assert_eq!(by_option, by_operator, "{entry} {name}");
        }
    }
    // Why `ca` is not what nvcc does by itself.
    let none = assemble(&text, &["--entry", "plain"]);
    assert_ne!(
        none,
        assemble(&set_cache_operators(&text, &[("plain", CacheOperator::Ca)]).unwrap(), &["--entry", "plain"])
    );
    // The option reaches what a kernel calls, and so what other kernels call; the operator does not.
    let edited = set_cache_operators(&text, &[("calls", CacheOperator::Cg)]).unwrap();
    let (before, after) = (text.lines(), edited.lines());
    let changed: Vec<&str> = before.zip(after).filter(|(a, b)| a != b).map(|(_, b)| b.trim()).collect();
    assert!(matches!(changed[..], [one] if one.starts_with("ld.global.cg.f32")), "{changed:?}");
}

#[test]
fn kernels_of_one_file_get_operators_and_caps_of_their_own() {
    let text = fixtures::ptx("loads/sm_90");
    let cg = Edits { cap: 0, cache: Some(CacheOperator::Cg) };
    let both = Edits { cap: 32, cache: Some(CacheOperator::Cs) };
    let edited = assemble(&nvtune::ptx::edited(&text, &[("plain", cg), ("generic", both)]).unwrap(), &[]);
    let untouched = assemble(&text, &[]);
    assert_eq!(edited["plain"], assemble(&text, &["--entry", "plain", "-dlcm=cg"])["plain"]);
    assert_eq!(
        edited["generic"],
        assemble(&text, &["--entry", "generic", "-dlcm=cs", "--maxrregcount", "32"])["generic"]
    );
    for entry in ["restricted", "said", "calls"] {
        assert_eq!(edited[entry], untouched[entry], "{entry}");
    }
    assert_eq!(nvtune::ptx::edited(&text, &[("plain", Edits::default())]).unwrap(), text);
    let other = set_cache_operators(&text, &[("other", CacheOperator::Cg)]);
    assert_eq!(other, Err(Error::NoEntry { name: "other".into() }));
    // Of two the last counts.
    let twice = set_cache_operators(&text, &[("plain", CacheOperator::Cs), ("plain", CacheOperator::Cg)]).unwrap();
    assert_eq!(twice, set_cache_operators(&text, &[("plain", CacheOperator::Cg)]).unwrap());
}

#[test]
fn only_the_directives_change_and_no_line_moves() {
    let head = ".version 8.0\n.target sm_90\n.address_size 64\n";
    let cases = [
        (".entry k(.param .u64 a)\n{ ret; }", ".entry k(.param .u64 a)\n.maxnreg 64 { ret; }"),
        (".entry k(){ ret; }", ".entry k() .maxnreg 64 { ret; }"),
        (".entry k()\n.maxntid 256, 1, 1\n{ ret; }", ".entry k()\n.maxntid 256, 1, 1\n.maxnreg 64 { ret; }"),
        (
            ".entry k()\n.maxntid 256, 1, 1\n.minnctapersm 4\n.maxnreg 32\n{ ret; }",
            ".entry k()\n.maxntid 256, 1, 1\n.maxnreg 64\n\n{ ret; }",
        ),
        (
            ".entry k() // .maxnreg 8 {\n.maxnreg 8 // was\n{ ret; }",
            ".entry k() // .maxnreg 8 {\n.maxnreg 64 // was\n{ ret; }",
        ),
        (".entry k();\n.entry k() .maxnreg\n8 { ret; }", ".entry k();\n.entry k() .maxnreg 64\n { ret; }"),
    ];
    for (before, after) in cases {
        let edited = set_register_cap(&format!("{head}{before}"), "k", 64).unwrap();
        assert_eq!(edited, format!("{head}{after}"));
        let lines = |text: &str| -> Vec<u32> {
            let module = Module::parse(text).unwrap();
            module
                .functions
                .iter()
                .filter_map(|f| f.body.as_ref())
                .flat_map(|b| b.instructions())
                .map(|i| i.line)
                .collect()
        };
        assert_eq!(lines(&edited), lines(&format!("{head}{before}")));
    }
    let text = format!("{head}.entry k() {{ ret; }}");
    assert_eq!(set_register_cap(&text, "other", 64), Err(Error::NoEntry { name: "other".into() }));
    assert_eq!(set_register_cap(&text, "k", 0), Err(Error::Cap { cap: 0 }));
    assert_eq!(set_register_cap(&text, "k", 256), Err(Error::Cap { cap: 256 }));
}

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

#[test]
fn a_module_is_read_whole() {
    let module = Module::parse(EVERYTHING).unwrap();
    assert_eq!((module.version, &*module.target[0], module.address_size), ((9, 0), "sm_90a", 64));
    let table = module.variable("table").unwrap();
    assert_eq!((table.space, table.size, table.align), (Space::Const, 16, 4));
    // The second row begins at byte 8 though the first gives one value of two.
    let values = table.initial.as_ref().unwrap();
    assert_eq!(
        values[..],
        [(0, Initial::Bits(0x3f80_0000)), (8, Initial::Bits(0x4000_0000)), (12, Initial::Bits(0x4040_0000))]
    );
    let pointers = module.variable("pointers").unwrap();
    assert_eq!(pointers.initial.as_ref().unwrap()[0].1, Initial::Address { name: "table".into(), offset: 4 });
    assert_eq!(
        (module.variable("dynamic").unwrap().size, module.variable("text").unwrap().linkage),
        (0, Linkage::Visible)
    );

    let entry = module.entry("kernel").unwrap();
    let pair = &entry.parameters[0];
    assert_eq!((&*pair.name, pair.scalar, pair.align, pair.size), ("pair", Scalar::B8, 8, 16));
    assert!(entry.parameters[1].pointer);
    let directives: Vec<(&str, &[u64])> = entry.directives.iter().map(|d| (&*d.name, &d.values[..])).collect();
    assert_eq!(directives, [(".maxntid", &[128, 2, 1][..]), (".minnctapersm", &[3]), (".maxclusterrank", &[8])]);
    assert_eq!(&EVERYTHING[entry.directives[0].span.clone()], ".maxntid 128, 2, 1");

    let body = entry.body.as_ref().unwrap();
    let lines: Vec<(u32, &str)> = body.instructions().map(|i| (i.line, &*i.opcode)).collect();
    let line_of = |text: &str| EVERYTHING.lines().position(|l| l.contains(text)).unwrap() as u32 + 1;
    assert!(lines.contains(&(line_of("ld.global.nc"), "ld.global.nc.L2::128B.v2.u32")), "{lines:?}");
    let load = body.instructions().find(|i| i.opcode.starts_with("ld.global")).unwrap();
    assert_eq!(load.operands[0], Operand::Vector(vec![Operand::Name("%r2".into()), Operand::Sink]));
    assert_eq!(load.operands[1], Operand::Address { base: Some("%rd1".into()), offset: -8 });
    let guarded = body.instructions().find(|i| i.guard.is_some()).unwrap();
    assert_eq!((&*guarded.opcode, guarded.guard.as_ref().unwrap().negated), ("bra", true));
    assert!(body.statements.iter().any(|s| matches!(s, Statement::Targets { targets, .. } if targets.len() == 2)));
    let externals = module.functions.iter().filter(|f| f.body.is_none()).count();
    assert_eq!((externals, module.functions.len()), (1, 3));
}

#[test]
fn what_the_compilers_of_other_architectures_write_is_read() {
    // From sm_100 on nvcc has another front end, with pragmas between instructions and `.ptr` parameters.
    for architecture in ["sm_75", "sm_100", "sm_120"] {
        for file in ["matmul", "control", "arithmetic"] {
            let text = fixtures::ptx(&format!("{file}/{architecture}"));
            let module = Module::parse(&text).unwrap();
            assert_eq!(&*module.target[0], architecture);
            for entry in module.functions.iter().filter(|f| f.entry) {
                assert!(module.canonical(&entry.name).unwrap().contains("\nret\n"), "{}", entry.name);
            }
        }
    }
}

#[test]
fn malformed_text_is_an_error_with_its_line() {
    let cases = [
        (".version 9.0\n.entry k(\n.param .u32 a", "PTX line 3: expected `,` or `)`, found `end of text`"),
        (".entry k()\n{\n  mov.u32 %r1 %r2;\n}", "PTX line 3: expected `,` or `;`, found `%r2`"),
        (".entry k()\n{\n  add.s32 %r1, 12x4;\n}", "PTX line 3: malformed number `12x4`"),
        ("hello", "PTX line 1: expected a directive, found `hello`"),
        ("\n/* never", "PTX line 2: the text ends inside a comment"),
        (".global .u32 x = {1, 2", "PTX line 1: expected `,` or `}`, found `end of text`"),
    ];
    for (text, message) in cases {
        assert_eq!(Module::parse(text).unwrap_err().to_string(), message, "{text}");
    }
}

/// Compares each entry of relocatable code, alone, with the same entry among the others.
///
/// `ptxas --entry` does not leave out the other entries of such code.
fn compare_entries_alone(text: &str, ptxas_options: &[&str], names_all_functions: bool) {
    let module = Module::parse(text).unwrap();
    let together = assemble(text, ptxas_options);
    let mut entries = 0;
    for entry in module.functions.iter().filter(|function| function.entry) {
        let left = alone(text, &entry.name).unwrap();
        assert_eq!(left.lines().count(), text.lines().count());
        let lines = |text: &str| {
            let body = Module::parse(text).unwrap().entry(&entry.name).unwrap().body.clone().unwrap();
            body.instructions().map(|instruction| (instruction.line, instruction.opcode.clone())).collect::<Vec<_>>()
        };
        assert_eq!(lines(&left), lines(text), "{}", entry.name);
        assert_eq!(assemble(&left, ptxas_options)[&*entry.name], together[&*entry.name], "{}", entry.name);
        let calls_out = &*entry.name == "calls_out" || names_all_functions;
        let left = Module::parse(&left).unwrap();
        assert_eq!(left.function("_Z9elsewheref").is_some(), calls_out, "{}", entry.name);
        entries += 1;
    }
    assert_eq!(entries, 4);
    assert_eq!(alone(text, "none"), Err(Error::NoEntry { name: "none".to_owned() }));
}

#[test]
fn relocatable_entry_alone_has_code_of_entry_among_others() {
    compare_entries_alone(&fixtures::ptx("relocatable/sm_90.rdc"), &["-c"], false);
}

/// Debug information names every function, and the folder of the source: its PTX is no fixture.
#[test]
fn relocatable_entry_alone_with_debug_information_has_code_of_entry_among_others() {
    let folder = tempfile::tempdir().unwrap();
    let ptx = folder.path().join("debug.ptx");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ptx/relocatable.cu");
    let options = ["-ptx", "-std=c++14", "-arch=sm_90", "-rdc=true", "-G", source, "-o"].map(OsStr::new);
    toolkit::run("nvcc", &[&options[..], &[ptx.as_os_str()]].concat());
    compare_entries_alone(&fs::read_to_string(ptx).unwrap(), &["-c", "-g"], true);
}

#[test]
fn calls_by_address_are_those_of_the_entry_and_of_what_it_calls() {
    let text = "\
.version 9.0
.target sm_90
.address_size 64
.func leaf() { ret; }
.func by_address(.param .b64 f) {
.reg .b64 %rd<2>;
ld.param.b64 %rd1, [f];
prototype_0 : .callprototype () _ ();
call %rd1, (), prototype_0;
ret; }
.global .u64 table[1] = { by_address };
.visible .entry direct() { call leaf, (); ret; }
.visible .entry branches(.param .u32 n) {
.reg .b32 %r<2>;
ld.param.u32 %r1, [n];
to: .branchtargets end;
brx.idx %r1, to;
end: ret; }
.visible .entry indirect() {
.reg .b64 %rd<2>;
mov.b64 %rd1, leaf;
{ .param .b64 p; st.param.b64 [p], %rd1; call by_address, (p); }
ret; }
.visible .entry listed() {
.reg .b64 %rd<2>;
mov.b64 %rd1, leaf;
to: .calltargets leaf;
call %rd1, (), to;
ret; }
";
    for (entry, expected) in [("direct", false), ("branches", false), ("indirect", true), ("listed", true)] {
        assert_eq!(calls_by_address(text, entry), Ok(expected), "{entry}");
    }
    assert_eq!(calls_by_address(text, "none"), Err(Error::NoEntry { name: "none".to_owned() }));
}

#[test]
fn canonical_text_forgets_names_and_places_but_nothing_else() {
    let text = fixtures::ptx("control/sm_90");
    let with_lines = fixtures::ptx("control/sm_90.lineinfo");
    let module = Module::parse(&text).unwrap();
    let entry = module.functions.iter().find(|f| f.entry && f.name.contains("gcds")).unwrap().name.to_string();
    let canonical = module.canonical(&entry).unwrap();
    assert!(!canonical.contains("gcd") && !canonical.contains("%r") && canonical.contains("rem.s32"), "{canonical}");
    assert_eq!(Module::parse(&with_lines).unwrap().canonical(&entry).unwrap(), canonical);

    let renamed =
        text.replace("%r", "%q").replace("$L__BB", "$M__").replace("_Z4gcdsPKiS0_Pi", "other").replace("_Z3gcdii", "f");
    let renamed = format!("{}// moved\n\n.global .u32 unused;\n{}", "", renamed);
    assert_eq!(Module::parse(&renamed).unwrap().canonical("other").unwrap(), canonical);

    // What changes code changes the text: an operand, a called function, a directive, an initial value that is used.
    let rem = text.replace("rem.s32", "rem.u32");
    assert_ne!(Module::parse(&rem).unwrap().canonical(&entry).unwrap(), canonical);
    let capped = set_register_cap(&text, &entry, 32).unwrap();
    assert_ne!(Module::parse(&capped).unwrap().canonical(&entry).unwrap(), canonical);
    let with = |value: &str| {
        let text = EVERYTHING.replace("0f40400000", value);
        Module::parse(&text).unwrap().canonical("kernel").unwrap()
    };
    assert_ne!(with("0f40400000"), with("0f40400001"));
    assert!(with("0f40400000").contains("vprintf"), "what is linked keeps its name");
    assert_eq!(module.canonical("none"), None);
}

#[test]
fn a_megabyte_is_read_quickly() {
    let one = fixtures::ptx("caps/sm_90");
    let body = &one[one.find(".visible").unwrap()..];
    let mut text = one[..one.find(".visible").unwrap()].to_owned();
    while text.len() < 1 << 20 {
        text.push_str(body);
    }
    let start = std::time::Instant::now();
    let module = Module::parse(&text).unwrap();
    let elapsed = start.elapsed();
    assert!(module.functions.len() > 3);
    // 50 ms is the aim of an optimised build; tests run unoptimised and beside others.
    assert!(elapsed.as_millis() < 1000, "{elapsed:?}");
    eprintln!("{} bytes in {elapsed:?}", text.len());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(random_cases(64, 300)) })]
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*") {
        let _ = Module::parse(&text);
    }

    #[test]
    fn no_mutation_makes_the_parser_panic(at in 0usize..EVERYTHING.len(), length in 0usize..40, with in "[{}()\\[\\];,.:@!|+\\-\"/*0-9a-f%$ \\n]{0,6}") {
        let end = (at + length).min(EVERYTHING.len());
        let text = format!("{}{}{}", &EVERYTHING[..at], with, &EVERYTHING[end..]);
        if let Ok(module) = Module::parse(&text) {
            let _ = module.canonical("kernel");
            let _ = set_register_cap(&text, "kernel", 40);
            if let Ok(edited) = set_cache_operators(&text, &[("kernel", CacheOperator::Cs)]) {
                Module::parse(&edited).expect("what was read can be read with operators");
            }
        }
    }
}

/// PTX that is committed beside its source is what nvcc makes of it, but for the two lines that are lowered by hand; another release of
/// nvcc may make other text of the same kernels.
#[test]
fn committed_ptx_is_of_its_source() {
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
