//! Entries copied from PTX of `transplant.cu` under one macro value into that under another, assembled by ptxas.

use super::*;
use crate::support::full::cases;
use nvtune::ptx::{Destination, Transplant, TransplantError, edit_entries, insert_transplants};
use nvtune::sass::code_digest;
use std::collections::BTreeSet;
use std::sync::LazyLock;
use toolkit::Headers;

/// The value of the macro `TILE` in the host, and in the donor.
const TILES: [u32; 2] = [4, 8];

const NO_EDITS: Edits = Edits { cap: 0, cache: None, exact_block: None, shared_spills: false, coarsened: false };
const BOTH_EDITS: Edits =
    Edits { cap: 40, cache: Some(LoadCacheOperator::Cg), exact_block: None, shared_spills: false, coarsened: false };

/// Options of the front end, options of ptxas.
type Options = (&'static [&'static str], &'static [&'static str]);
const PLAIN: Options = (&[], &[]);
const RELOCATABLE: Options = (&["-rdc=true"], &["-c"]);
const LINES: Options = (&["-lineinfo"], &["-lineinfo"]);

/// PTX of the host and the donor.
static TEXTS: LazyLock<[String; 2]> = LazyLock::new(|| TILES.map(|tile| front_end(tile, PLAIN)));

/// Makes PTX of `transplant.cu`.
fn front_end(tile: u32, options: Options) -> String {
    front_end_of("tests/ptx/transplant.cu".as_ref(), tile, options)
}

fn front_end_of(source: &OsStr, tile: u32, (options, _): Options) -> String {
    let folder = tempfile::tempdir().unwrap();
    let ptx = folder.path().join("x.ptx");
    let mut nvcc = Command::new(toolkit::nvcc());
    toolkit::set_headers(&mut nvcc, Headers::Small);
    nvcc.args(["-ptx", "-arch=sm_90"]).arg(source).arg(format!("-DTILE={tile}")).args(options);
    assert!(nvcc.arg("-o").arg(&ptx).status().unwrap().success());
    fs::read_to_string(ptx).unwrap()
}

fn assemble(text: &str, (_, options): Options) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let [ptx, cubin] = ["x.ptx", "x.cubin"].map(|name| folder.path().join(name));
    fs::write(&ptx, text).unwrap();
    let mut arguments: Vec<&OsStr> = vec!["-arch=sm_90".as_ref(), ptx.as_os_str(), "-o".as_ref(), cubin.as_os_str()];
    arguments.extend(options.iter().map(OsStr::new));
    toolkit::run("ptxas", &arguments);
    fs::read(cubin).unwrap()
}

/// Finds the entry of this name, or else the one whose mangled name has it.
fn symbol(text: &str, name: &str) -> String {
    let module = Module::parse(text).unwrap();
    let names: Vec<&str> = module.functions.iter().filter(|function| function.entry).map(|f| &*f.name).collect();
    let entry = names.iter().find(|entry| **entry == name).or(names.iter().find(|entry| entry.contains(name)));
    (*entry.unwrap_or_else(|| panic!("no entry has {name}"))).to_owned()
}

fn transplant(
    host: &str,
    donor: &str,
    kernel: &str,
    edits: Edits,
    destination: Destination,
) -> Result<Transplant, TransplantError> {
    Transplant::new((host, &symbol(host, kernel)), (donor, &symbol(donor, kernel)), edits, destination)
}

/// Names that a text declares, without the suffix of copies.
fn declared(text: &str) -> BTreeSet<String> {
    let module = Module::parse(text).unwrap();
    let functions = module.functions.iter().map(|function| &*function.name);
    let names = functions.chain(module.variables.iter().map(|variable| &*variable.name));
    names.map(|name| name.split("__nvtune_").next().unwrap().to_owned()).collect()
}

/// Kernels whose code depends on nothing else of the text, with all that is declared with the copy.
const COPIED: &[(&str, &[&str])] = &[
    ("blends", &["$str$1"]),
    ("calls", &["_Z6scaledf"]),
    ("calls_same", &[]),
    ("calls_deep", &["_Z6scaledf"]),
    ("recurses", &["_Z3oddif", "_Z4evenif"]),
    ("constants", &[]),
    ("plays", &["_Z5readsi", "board"]),
    ("4sums", &["_Z6summedILi8EEfPKf"]),
    ("7unnamed", &["turned"]),
    // The prototype of `kept`, whose body comes after the host's entry.
    ("hidden", &["kept", "turned"]),
];

/// Kernels whose code depends on other functions or constants of the text, except in relocatable code.
const DEPENDENT: &[(&str, &[&str])] =
    &[("chooses", &["_Z6raisedf"]), ("jumps", &[]), ("static_constants", &["_ZZ16static_constantsE5local"])];

/// Those of the full run, or the first of them.
fn some_copied() -> &'static [(&'static str, &'static [&'static str])] {
    cases(COPIED, 3)
}

/// Copies kernels into one text, and compares their code and that of the host's kernels with what they were.
fn compare_all(options: Options, kernels: &[(&str, &[&str])]) {
    let [host, donor] = &TILES.map(|tile| front_end(tile, options));
    let mut transplants = Vec::new();
    let mut compared = Vec::new();
    let before = assemble(host, options);
    for &(kernel, _) in kernels {
        for edits in [NO_EDITS, BOTH_EDITS] {
            let donor_symbol = symbol(donor, kernel);
            let transplant = transplant(host, donor, kernel, edits, Destination::Added).unwrap();
            let edited = edit_entries(donor, &[(&donor_symbol, edits)]).unwrap();
            // Relocatable code of an entry depends on whether its text has other functions.
            let text = if options == RELOCATABLE {
                edited.into_owned()
            } else {
                isolate_entry(&edited, &donor_symbol).unwrap()
            };
            compared.push((digest(&assemble(&text, options), &donor_symbol), transplant.name.clone()));
            transplants.push((symbol(host, kernel), transplant));
        }
    }
    for kernel in Cubin::parse(&before).unwrap().kernels() {
        compared.push((digest(&before, kernel.name), kernel.name.to_owned()));
    }
    let places: Vec<_> = transplants.iter().map(|(symbol, transplant)| (&**symbol, transplant)).collect();
    let after = assemble(&insert_transplants(host, &places).unwrap(), options);
    let other: Vec<&String> =
        compared.iter().filter(|(code, name)| *code != digest(&after, name)).map(|(_, name)| name).collect();
    assert!(other.is_empty(), "{other:?}");
    assert_eq!(compared.len(), Cubin::parse(&after).unwrap().kernels().len());
}

fn digest(cubin: &[u8], name: &str) -> String {
    code_digest(cubin, name).unwrap()
}

#[test]
fn copies_have_code_of_donor() {
    compare_all(PLAIN, COPIED);
}

#[test]
fn copies_with_lines_have_code_of_donor() {
    compare_all(LINES, some_copied());
}

#[test]
#[ignore = "long: in the full run"]
fn relocatable_copies_have_code_of_donor() {
    compare_all(RELOCATABLE, &[some_copied(), DEPENDENT].concat());
}

/// A header's kernel, of which each object that includes it has a copy.
const WEAK: &str = "
template <int N> __device__ __noinline__ float half_of(float x) { return x / 2 + N; }
template <int N> __global__ void fills(int n, float *y) {
    __shared__ float tile[N * 32];
    tile[threadIdx.x] = y[n];
    __syncthreads();
    y[n] = half_of<N>(tile[n & 31]);
}
template __global__ void fills<TILE>(int, float *);
";

#[test]
fn weak_copies_of_two_objects_are_linked_as_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("weak.cu"), WEAK).unwrap();
    let [host, donor] = &TILES.map(|tile| front_end_of(path("weak.cu").as_os_str(), tile, RELOCATABLE));
    let copy = transplant(host, donor, "fills", NO_EDITS, Destination::Added).unwrap();
    let text = insert_transplants(host, &[(&symbol(host, "fills"), &copy)]).unwrap();
    let objects = ["a.cubin", "b.cubin"].map(path);
    objects.iter().for_each(|object| fs::write(object, assemble(&text, RELOCATABLE)).unwrap());
    let linked = path("linked.cubin");
    toolkit::run(
        "nvlink",
        &["--arch=sm_90".as_ref(), objects[0].as_os_str(), objects[1].as_os_str(), "-o".as_ref(), linked.as_os_str()],
    );
    let linked = fs::read(linked).unwrap();
    let kernels = Cubin::parse(&linked).unwrap();
    assert_eq!(kernels.kernels().len(), 2);
    // The tile of the copy is twice that of the host's kernel.
    let shared = |name: &str| kernels.kernel(name).unwrap().resources.static_shared;
    assert_eq!(shared(&copy.name) - shared(&symbol(host, "fills")), 4 * 4 * 32);
}

#[test]
fn copy_in_place_has_code_of_donor() {
    let [host, donor] = &*TEXTS;
    for kernel in ["blends", "hidden", "4sums"] {
        let (host_symbol, donor_symbol) = (symbol(host, kernel), symbol(donor, kernel));
        let transplant = transplant(host, donor, kernel, NO_EDITS, Destination::InPlace).unwrap();
        assert_eq!(transplant.name, host_symbol);
        let [before, after, expected] =
            [host, &insert_transplants(host, &[(&host_symbol, &transplant)]).unwrap(), donor]
                .map(|text| assemble(text, PLAIN));
        assert_eq!(digest(&after, &host_symbol), digest(&expected, &donor_symbol), "{kernel}");
        for other in Cubin::parse(&before).unwrap().kernels().iter().filter(|other| other.name != host_symbol) {
            assert_eq!(digest(&after, other.name), digest(&before, other.name), "{kernel}: {}", other.name);
        }
    }
}

#[test]
fn only_what_differs_is_copied() {
    let [host, donor] = &*TEXTS;
    for (kernel, names) in COPIED.iter().chain(DEPENDENT) {
        let transplant = transplant(host, donor, kernel, NO_EDITS, Destination::Added).unwrap();
        let mut declared = declared(&transplant.text);
        assert!(declared.remove(&symbol(host, kernel)), "{kernel}");
        let is_same = declared.iter().zip(*names).all(|(declared, name)| declared.contains(name));
        assert!(is_same && declared.len() == names.len(), "{kernel}: {declared:?}");
    }
}

#[test]
fn copy_of_same_text_shares_everything() {
    let [host, _] = &*TEXTS;
    for kernel in ["blends", "calls", "recurses", "jumps", "looks_up", "static_variable", "7unnamed"] {
        let transplant = transplant(host, host, kernel, BOTH_EDITS, Destination::Added).unwrap();
        let entry = &Module::parse(&transplant.text).unwrap();
        let entry = entry.entry(&transplant.name).unwrap();
        assert!(entry.directives.iter().any(|directive| &*directive.name == ".maxnreg"), "{kernel}");
        let bodies = Module::parse(&transplant.text).unwrap().functions.iter().filter(|f| f.body.is_some()).count();
        assert_eq!((bodies, transplant.text.contains(" = {")), (1, false), "{kernel}");
    }
}

#[test]
fn what_the_program_has_once_is_refused() {
    let [host, donor] = &*TEXTS;
    for (kernel, expected) in [
        ("looks_up", "`table` is declared differently (size or initial value) under these macros"),
        ("jumps_changed", "`changed` is declared differently (size or initial value) under these macros"),
        (
            "static_variable",
            "`_ZZ15static_variableE5local` is declared differently (size or initial value) under these macros",
        ),
        ("takes", "`takes` and `takes` take different parameters"),
    ] {
        let refused = transplant(host, donor, kernel, NO_EDITS, Destination::Added).unwrap_err();
        assert_eq!(refused.to_string(), expected);
    }
}

#[test]
fn names_of_copies_depend_on_all_copied_text() {
    let [host, donor] = &*TEXTS;
    let name = |donor: &str, edits| transplant(host, donor, "calls", edits, Destination::Added).unwrap().name;
    // Another constant of a function that the kernel calls.
    let other = donor.replace("0f3F000000", "0f3F000001");
    let names = [name(donor, NO_EDITS), name(donor, BOTH_EDITS), name(host, NO_EDITS), name(&other, NO_EDITS)];
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
    assert_eq!(name(donor, NO_EDITS), names[0]);
    let digits = names[0].strip_prefix("calls__nvtune_").unwrap();
    assert!(digits.len() == 8 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()), "{digits}");
}

#[test]
fn copy_of_one_name_is_inserted_once() {
    let [host, donor] = &*TEXTS;
    let copy = transplant(host, donor, "calls", NO_EDITS, Destination::Added).unwrap();
    let once = insert_transplants(host, &[("calls", &copy)]).unwrap();
    assert_eq!(once, insert_transplants(host, &[("calls", &copy), ("calls", &copy)]).unwrap());
}

const CUT_HEAD: &str = ".version 8.0\n.target sm_90\n.address_size 64\n";

/// Copies `k` of one short text into another, whose `k` is empty, under the suffix `_N`.
fn copied(host: &str, donor: &str) -> Result<String, String> {
    let host = format!("{CUT_HEAD}{host}\n.entry k() {{ ret; }}\n");
    let donor = format!("{CUT_HEAD}{donor}");
    let copy = Transplant::new((&host, "k"), (&donor, "k"), NO_EDITS, Destination::Added);
    let copy = copy.map_err(|error| error.to_string())?;
    Ok(copy.text.replace(copy.name.strip_prefix('k').unwrap(), "_N"))
}

#[test]
fn names_are_changed_where_they_are_of_the_module() {
    let f = ".func f() { ret; }";
    for (host, donor, expected) in [
        // Not where a parameter, register, variable or label of the function has the name.
        (
            "",
            ".shared .b32 s; .entry k() { .reg .b32 r; ld.shared.b32 r, [s]; { .reg .b32 s; mov.b32 s, r; } st.shared.b32 [s], r; }",
            ".shared .b32 s_N;\n.entry k_N() { .reg .b32 r; ld.shared.b32 r, [s_N]; { .reg .b32 s; mov.b32 s, r; } st.shared.b32 [s_N], r; }\n",
        ),
        (
            "",
            ".shared .b32 s1; .entry k() { { .reg .b32 s<3>; mov.b32 s2, s1; } .reg .b32 s; mov.b32 s, s1; }",
            ".shared .b32 s1_N;\n.entry k_N() { { .reg .b32 s<3>; mov.b32 s2, s1; } .reg .b32 s; mov.b32 s, s1_N; }\n",
        ),
        (
            "",
            ".shared .b32 s; .entry k() { bra s; { bra s; s: ret; } s: mov.b32 r, s; }",
            ".entry k_N() { bra s; { bra s; s: ret; } s: mov.b32 r, s; }\n",
        ),
        (
            "",
            ".shared .b32 ret, s; .entry k() { @ret ret; st.shared.b32 [ret], 1; // ret s\n }",
            ".shared .b32 ret_N, s_N;\n.entry k_N() { @ret ret; st.shared.b32 [ret_N], 1; // ret s\n }\n",
        ),
        (
            "",
            ".func f(.param .b32 k) { ld.param.b32 r, [k]; } .entry k() { call f, (1); }",
            ".func f_N(.param .b32 k) \n;\n.func f_N(.param .b32 k) { ld.param.b32 r, [k]; }\n.entry k_N() { call f_N, (1); }\n",
        ),
        // Functions that are named before their bodies; what the host has after the entry.
        (
            "",
            ".weak .func f(); .weak .func g() { call f; } .weak .func f() { call g; } .entry k() { call f; }",
            ".weak .func g_N() \n;\n.weak .func f_N() \n;\n.weak .func g_N() { call f_N; }\n.weak .func f_N() { call g_N; }\n.entry k_N() { call f_N; }\n",
        ),
        (f, ".func f() { ret; } .entry k() { call f; }", ".entry k_N() { call f; }\n"),
        // What the host lacks of other files keeps its name.
        ("", ".extern .func f(); .entry k() { call f; }", ".extern .func f();\n.entry k_N() { call f; }\n"),
        // Numbers of labels through the whole text do not count, nor do lines.
        (
            ".func f() { .loc 1 2 3\n bra $L__BB0_1; $L__BB0_1: ret; }",
            ".func f() { .loc 1 8 3\n bra $L__BB7_1; $L__BB7_1: ret; } .entry k() { call f; .loc 1 9 1\n ret; }",
            ".entry k_N() { call f; .loc 1 9 1\n ret; }\n",
        ),
        // Lines of other files go.
        (".file 1 \"a.cu\"", ".file 1 \"b.cu\"\n.entry k() { .loc 1 9 1\n ret; }", ".entry k_N() { \n ret; }\n"),
    ] {
        assert_eq!(copied(host, donor).as_deref(), Ok(expected), "{donor}");
    }
}

#[test]
fn what_cannot_be_renamed_is_refused() {
    for (host, donor, expected) in [
        ("", ".global .b32 g; .entry k() { ld.global.b32 r, [g]; }", "`g` is declared differently"),
        (".extern .func f();", ".func f(.param .b32 a); .entry k() { call f; }", "defined elsewhere"),
        ("", ".func f(); .entry k() { call f; }", "defined elsewhere"),
        ("", ".entry other() { ret; } .entry k() { mov.b64 r, other; }", "device code launches `other`"),
        ("", ".entry other() { ret; }", "the PTX has no entry `k`"),
        ("", ".entry k() { ret; } .target sm_90, debug", "the PTX is for another version"),
        (".target debug", ".target debug .entry k() { ret; }", "debug information (-G)"),
    ] {
        let refused = copied(host, donor).unwrap_err();
        assert!(refused.contains(expected), "{donor}: {refused}");
    }
}

#[test]
fn cut_text_is_never_a_panic() {
    let whole = EVERYTHING.replace(".target sm_90a, debug", ".target sm_90a");
    for end in (0..whole.len()).step_by(3).filter(|&end| whole.is_char_boundary(end)) {
        for (host, donor) in [(&whole[..end], &*whole), (&*whole, &whole[..end])] {
            if let Ok(copy) = Transplant::new((host, "kernel"), (donor, "kernel"), BOTH_EDITS, Destination::Added) {
                Module::parse(&insert_transplants(host, &[("kernel", &copy)]).unwrap()).unwrap();
            }
        }
    }
}
