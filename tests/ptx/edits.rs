//! Register caps and cache operators written into PTX, and entries cut out of it.

use super::*;
use crate::support::full::cases;

/// Assembles PTX for sm_90 and returns registers and machine code of each kernel.
pub(super) fn assemble(text: &str, options: &[&str]) -> BTreeMap<String, (u32, Vec<u8>)> {
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

const HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

#[test]
#[ignore = "long: in the full run"]
fn cap_directive_overrides_launch_bounds() {
    let text = fixtures::ptx("caps/sm_90");
    for &entry in cases(&["bounded", "sized", "plain"], 2) {
        let free = assemble(&text, &["--entry", entry])[entry].0;
        assert!(free > 40, "{entry}: {free}");
        for &cap in cases(&[32, 128, 40], 2) {
            let capped = set_register_cap(&text, entry, cap).unwrap();
            let (registers, _) = assemble(&capped, &["--entry", entry])[entry];
            assert!(registers <= cap, "{entry}: {registers} > {cap}");
            assert!(cap <= free || registers > free, "{entry}: a cap of {cap} is also a target, {registers} used");
        }
    }
}

#[test]
fn cap_directive_gives_code_of_option() {
    let text = fixtures::ptx("caps/sm_90");
    for &cap in cases(&[24, 96, 40, 255], 2) {
        let by_option = assemble(&text, &["--entry", "plain", "--maxrregcount", &cap.to_string()]);
        let by_directive = assemble(&set_register_cap(&text, "plain", cap).unwrap(), &["--entry", "plain"]);
        assert!(!by_option["plain"].1.is_empty());
        assert_eq!(by_option, by_directive, "cap {cap}");
    }
}

/// This is why the directive is written: ptxas ignores the option where a kernel has launch bounds.
#[test]
fn cap_option_is_ignored_for_kernel_with_launch_bounds() {
    let text = fixtures::ptx("caps/sm_90");
    let ignored = assemble(&text, &["--entry", "sized", "--maxrregcount", "32"]);
    assert!(ignored["sized"].0 > 32);
}

#[test]
#[ignore = "long: in the full run"]
fn kernels_of_one_file_have_caps_of_their_own() {
    let text = fixtures::ptx("caps/sm_90");
    let capped = set_register_caps(&text, &[("plain", 32), ("bounded", 48)]).unwrap();
    let kernels = assemble(&capped, &[]);
    let untouched = assemble(&text, &[]);
    assert!(kernels["plain"].0 <= 32 && (33..=48).contains(&kernels["bounded"].0), "{kernels:?}");
    assert_eq!(kernels["sized"], untouched["sized"]);
}

#[test]
fn cache_operator_gives_code_of_option() {
    let text = fixtures::ptx("loads/sm_90");
    for (name, operator) in LoadCacheOperator::ALL {
        for entry in ["plain", "restricted", "generic", "said"] {
            let by_option = assemble(&text, &["--entry", entry, &format!("-dlcm={name}")]);
            let by_operator = assemble(&set_cache_operators(&text, &[(entry, operator)]).unwrap(), &["--entry", entry]);
            assert!(!by_option[entry].1.is_empty());
            assert_eq!(by_option, by_operator, "{entry} {name}");
        }
    }
}

#[test]
fn cache_operator_ca_is_not_the_default() {
    let text = fixtures::ptx("loads/sm_90");
    let none = assemble(&text, &["--entry", "plain"]);
    assert_ne!(
        none,
        assemble(&set_cache_operators(&text, &[("plain", LoadCacheOperator::Ca)]).unwrap(), &["--entry", "plain"])
    );
}

/// The option reaches the functions that a kernel calls, which other kernels call too.
#[test]
fn cache_operator_does_not_reach_called_functions() {
    let text = fixtures::ptx("loads/sm_90");
    let edited = set_cache_operators(&text, &[("calls", LoadCacheOperator::Cg)]).unwrap();
    let (before, after) = (text.lines(), edited.lines());
    let changed: Vec<&str> = before.zip(after).filter(|(a, b)| a != b).map(|(_, b)| b.trim()).collect();
    assert!(matches!(changed[..], [one] if one.starts_with("ld.global.cg.f32")), "{changed:?}");
}

#[test]
fn kernels_of_one_file_have_operators_and_caps_of_their_own() {
    let text = fixtures::ptx("loads/sm_90");
    let cg = Edits { cache: Some(LoadCacheOperator::Cg), ..Edits::default() };
    let both = Edits { cap: 32, cache: Some(LoadCacheOperator::Cs), ..Edits::default() };
    let edited = assemble(&nvtune::ptx::edit_entries(&text, &[("plain", cg), ("generic", both)]).unwrap(), &[]);
    let untouched = assemble(&text, &[]);
    assert_eq!(edited["plain"], assemble(&text, &["--entry", "plain", "-dlcm=cg"])["plain"]);
    assert_eq!(
        edited["generic"],
        assemble(&text, &["--entry", "generic", "-dlcm=cs", "--maxrregcount", "32"])["generic"]
    );
    for entry in ["restricted", "said", "calls"] {
        assert_eq!(edited[entry], untouched[entry], "{entry}");
    }
}

#[test]
fn pragma_for_shared_spills_begins_the_body() {
    let text =
        ".version 9.0\n.target sm_90\n.address_size 64\n.entry j(){ ret; }\n.entry k()\n.reqntid 32\n{\n ret; }\n";
    let edits = Edits { shared_spills: true, ..Edits::default() };
    let edited = nvtune::ptx::edit_entries(text, &[("k", edits)]).unwrap();
    assert_eq!(edited, text.replace("32\n{", "32\n{ .pragma \"enable_smem_spilling\";"));
}

#[test]
fn edits_without_change_keep_text() {
    let text = fixtures::ptx("loads/sm_90");
    assert_eq!(nvtune::ptx::edit_entries(&text, &[("plain", Edits::default())]).unwrap(), text);
}

#[test]
fn cache_operator_of_missing_entry_is_error() {
    let text = fixtures::ptx("loads/sm_90");
    let other = set_cache_operators(&text, &[("other", LoadCacheOperator::Cg)]);
    assert_eq!(other, Err(PtxError::NoEntry { name: "other".into() }));
}

#[test]
fn last_of_two_cache_operators_counts() {
    let text = fixtures::ptx("loads/sm_90");
    let twice =
        set_cache_operators(&text, &[("plain", LoadCacheOperator::Cs), ("plain", LoadCacheOperator::Cg)]).unwrap();
    assert_eq!(twice, set_cache_operators(&text, &[("plain", LoadCacheOperator::Cg)]).unwrap());
}

#[test]
fn cap_changes_directives_only_and_keeps_lines() {
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
        let edited = set_register_cap(&format!("{HEAD}{before}"), "k", 64).unwrap();
        assert_eq!(edited, format!("{HEAD}{after}"));
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
        assert_eq!(lines(&edited), lines(&format!("{HEAD}{before}")));
    }
}

#[test]
fn required_block_replaces_bounds_and_keeps_lines() {
    let cases = [
        (".entry k(){ ret; }", ".entry k() .reqntid 32, 8, 1 { ret; }"),
        (
            ".entry k()\n.maxntid 256\n.minnctapersm 2\n{ ret; }",
            ".entry k()\n.reqntid 32, 8, 1\n.minnctapersm 2\n{ ret; }",
        ),
        (".entry k()\n.maxntid\n256 .maxnreg 8\n{ ret; }", ".entry k()\n.reqntid 32, 8, 1\n .maxnreg 8\n{ ret; }"),
        (".entry k()\n.reqntid 256, 1, 1\n{ ret; }", ".entry k()\n.reqntid 32, 8, 1\n{ ret; }"),
        (
            ".entry k() {\n.reg .b32 %a, %b;\nmov.u32 %a, %ntid.x;\nmov.u32 %b, %tid.y; }",
            ".entry k() .reqntid 32, 8, 1 {\n.reg .b32 %a, %b;\nmov.u32 %a, 32;\nmov.u32 %b, %tid.y; }",
        ),
    ];
    for (before, after) in cases {
        let edited = set_required_block(&format!("{HEAD}{before}"), "k", [32, 8, 1]).unwrap();
        assert_eq!(edited, format!("{HEAD}{after}"));
    }
    let text = format!("{HEAD}.entry k() {{ ret; }}");
    let missing = set_required_block(&text, "other", [1, 1, 1]);
    assert_eq!(missing, Err(PtxError::NoEntry { name: "other".into() }));
}

#[test]
fn cap_of_missing_entry_is_error() {
    let text = format!("{HEAD}.entry k() {{ ret; }}");
    assert_eq!(set_register_cap(&text, "other", 64), Err(PtxError::NoEntry { name: "other".into() }));
}

#[test]
fn cap_out_of_range_is_error() {
    let text = format!("{HEAD}.entry k() {{ ret; }}");
    assert_eq!(set_register_cap(&text, "k", 0), Err(PtxError::Cap { cap: 0 }));
    assert_eq!(set_register_cap(&text, "k", 256), Err(PtxError::Cap { cap: 256 }));
}

/// Compares each entry of relocatable code, alone, with the same entry among the others.
///
/// `ptxas --entry` does not leave out the other entries of such code.
fn compare_entries_alone(text: &str, ptxas_options: &[&str], names_all_functions: bool) {
    let module = Module::parse(text).unwrap();
    let together = assemble(text, ptxas_options);
    let mut entries = 0;
    for entry in module.functions.iter().filter(|function| function.entry) {
        let left = isolate_entry(text, &entry.name).unwrap();
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
    assert_eq!(isolate_entry(text, "none"), Err(PtxError::NoEntry { name: "none".to_owned() }));
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
