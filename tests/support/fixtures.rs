//! The files of `tests/fixtures/`: PTX, cubins and what NVIDIA's tools print of them.
//!
//! [`all`] is the table of all fixtures. `tests/fixtures.rs` makes them anew and compares.

use super::toolkit::{self, program};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rayon::prelude::*;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Architectures of which the readers of machine code see every source in [`DECODED`].
pub const ARCHITECTURES: [u32; 7] = [75, 80, 86, 89, 90, 100, 120];

/// Architectures of CUDA 13.0 with the encodings of others. Only `shared.cu` is compiled for them.
const SIMILAR_ARCHITECTURES: [u32; 5] = [87, 88, 103, 110, 121];

/// Sources in `tests/cubin/` whose machine code is decoded, with options of ptxas.
const DECODED: [(&str, &[&str]); 5] =
    [("loops", &[]), ("shared", &[]), ("double", &[]), ("tensor", &[]), ("local", &["-maxrregcount=32"])];

/// Sources in `tests/ptx/` that are read as PTX for sm_90.
const PTX_SOURCES: [&str; 12] = [
    "arithmetic",
    "blackscholes",
    "caps",
    "control",
    "histogram",
    "loads",
    "matmul",
    "nbody",
    "neighbours",
    "reduction",
    "saxpy",
    "together",
];

/// Builds of `tests/cubin/structures.cu`: words of a structure, words of one access, words that are stored.
pub const STRUCTURES: [[u64; 3]; 11] = [
    [4, 4, 4],
    [8, 4, 8],
    [16, 4, 16],
    [32, 4, 32],
    [4, 1, 4],
    [8, 1, 8],
    [12, 1, 12],
    [16, 1, 16],
    [36, 4, 24],
    [8, 1, 1],
    [64, 1, 1],
];

/// One file of `tests/fixtures/` and how it is made.
pub struct Fixture {
    /// The path below `tests/fixtures/`.
    pub path: String,
    recipe: Recipe,
}

enum Recipe {
    /// `nvcc -ptx OPTIONS SOURCE`; the source's path is below `tests/`.
    Ptx { source: String, options: Vec<String> },
    /// `ptxas -lineinfo OPTIONS PTX`; the path is that of another fixture, or below `tests/`.
    Cubin { ptx: String, options: Vec<String> },
    /// `nvdisasm -c -hex -gp CUBIN`.
    Listing { cubin: String },
    /// `cuobjdump -res-usage CUBIN`.
    Usage { cubin: String },
}

/// Returns the path of the fixture that holds a cubin.
fn cubin_path(name: &str) -> String {
    format!("{name}.cubin.gz")
}

/// Returns the name of a build of `structures.cu`.
pub fn structures([words, at_once, stored]: [u64; 3]) -> String {
    format!("structures/sm_90.words_{words}.at_once_{at_once}.stored_{stored}")
}

/// The table under construction.
#[derive(Default)]
struct Table(Vec<Fixture>);

impl Table {
    fn add(&mut self, path: String, recipe: Recipe) {
        self.0.push(Fixture { path, recipe });
    }

    /// Adds `NAME.ptx`, where the name begins with `STEM/`.
    fn ptx(&mut self, folder: &str, name: &str, architecture: u32, options: &[&str]) {
        let stem = name.split('/').next().expect("a folder");
        let mut all = vec![format!("-arch=sm_{architecture}"), "-std=c++14".to_owned()];
        all.extend(options.iter().map(|option| (*option).to_owned()));
        let recipe = Recipe::Ptx { source: format!("{folder}/{stem}.cu"), options: all };
        self.add(format!("{name}.ptx"), recipe);
    }

    /// Adds `NAME.cubin.gz`.
    fn cubin(&mut self, ptx: &str, name: &str, architecture: u32, options: &[&str]) {
        let mut all = vec![format!("-arch=sm_{architecture}")];
        all.extend(options.iter().map(|option| (*option).to_owned()));
        self.add(cubin_path(name), Recipe::Cubin { ptx: ptx.to_owned(), options: all });
    }

    fn listing(&mut self, name: &str) {
        self.add(format!("{name}.nvdisasm.gz"), Recipe::Listing { cubin: cubin_path(name) });
    }

    fn usage(&mut self, name: &str) {
        self.add(format!("{name}.res-usage"), Recipe::Usage { cubin: cubin_path(name) });
    }
}

impl Fixture {
    /// Returns the step in which the fixture is made: PTX, then cubins, then what is printed of them.
    fn step(&self) -> usize {
        match self.recipe {
            Recipe::Ptx { .. } => 0,
            Recipe::Cubin { .. } => 1,
            Recipe::Listing { .. } | Recipe::Usage { .. } => 2,
        }
    }
}

/// Returns the table of all fixtures.
pub fn all() -> Vec<Fixture> {
    let mut table = Table::default();
    for stem in PTX_SOURCES {
        table.ptx("ptx", &format!("{stem}/sm_90"), 90, &[]);
    }
    for stem in ["arithmetic", "control", "matmul"] {
        for architecture in [75, 100, 120] {
            table.ptx("ptx", &format!("{stem}/sm_{architecture}"), architecture, &[]);
        }
    }
    table.ptx("ptx", "control/sm_90.lineinfo", 90, &["-lineinfo"]);
    table.ptx("ptx", "relocatable/sm_90.rdc", 90, &["-rdc=true"]);

    for (stem, options) in DECODED {
        for architecture in ARCHITECTURES {
            let name = format!("{stem}/sm_{architecture}");
            table.ptx("cubin", &name, architecture, &["-lineinfo"]);
            table.cubin(&format!("{name}.ptx"), &name, architecture, options);
            table.listing(&name);
            table.usage(&name);
        }
    }
    for architecture in SIMILAR_ARCHITECTURES {
        let name = format!("shared/sm_{architecture}");
        table.ptx("cubin", &name, architecture, &["-lineinfo"]);
        table.cubin(&format!("{name}.ptx"), &name, architecture, &[]);
        table.usage(&name);
    }
    for architecture in ARCHITECTURES {
        table.ptx("cubin", &format!("calls/sm_{architecture}"), architecture, &[]);
        table.cubin("cubin/unrolled.ptx", &format!("unrolled/sm_{architecture}"), architecture, &[]);
    }

    table.ptx("cubin", "guarded/sm_90", 90, &["-lineinfo"]);
    table.cubin("guarded/sm_90.ptx", "guarded/sm_90", 90, &[]);
    table.ptx("cubin", "lookups/sm_90", 90, &["-lineinfo"]);
    for cap in [24, 28, 64] {
        let options = [format!("-maxrregcount={cap}")];
        table.cubin("lookups/sm_90.ptx", &format!("lookups/sm_90.cap_{cap}"), 90, &[&options[0]]);
    }
    for build in STRUCTURES {
        let name = structures(build);
        let [words, at_once, stored] = build;
        let macros = [format!("-DWORDS={words}"), format!("-DAT_ONCE={at_once}"), format!("-DSTORED={stored}")];
        let mut options = vec!["-lineinfo"];
        options.extend(macros.iter().map(String::as_str));
        table.ptx("cubin", &name, 90, &options);
        table.cubin(&format!("{name}.ptx"), &name, 90, &[]);
    }
    table.0
}

/// Returns the folder `tests/fixtures/`.
pub fn folder() -> PathBuf {
    tests().join("fixtures")
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Reads a fixture by its path, without compression.
pub fn read(path: &str) -> Vec<u8> {
    read_below(&folder(), path)
}

/// Reads a fixture in another folder than [`folder`].
pub fn read_below(folder: &Path, path: &str) -> Vec<u8> {
    let stored = fs::read(folder.join(path)).unwrap_or_else(|error| panic!("tests/fixtures/{path}: {error}"));
    if !path.ends_with(".gz") {
        return stored;
    }
    let mut bytes = Vec::new();
    GzDecoder::new(&stored[..])
        .read_to_end(&mut bytes)
        .unwrap_or_else(|error| panic!("tests/fixtures/{path}: {error}"));
    bytes
}

/// Writes a fixture, compressed if its name says so.
fn write(folder: &Path, path: &str, bytes: &[u8]) {
    let place = folder.join(path);
    fs::create_dir_all(place.parent().expect("a folder")).expect("a folder for fixtures");
    let stored = if path.ends_with(".gz") {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).expect("memory can be written");
        encoder.finish().expect("memory can be written")
    } else {
        bytes.to_vec()
    };
    fs::write(place, stored).expect("a fixture can be written");
}

fn text(path: &str) -> String {
    String::from_utf8(read(path)).unwrap_or_else(|error| panic!("tests/fixtures/{path}: {error}"))
}

/// Returns the PTX of a fixture: `caps/sm_90`.
pub fn ptx(name: &str) -> String {
    text(&format!("{name}.ptx"))
}

/// Returns the cubin of a fixture: `loops/sm_90`.
pub fn cubin(name: &str) -> Vec<u8> {
    read(&cubin_path(name))
}

/// Returns what nvdisasm printed of a cubin.
pub fn listing(name: &str) -> String {
    text(&format!("{name}.nvdisasm.gz"))
}

/// Returns what `cuobjdump -res-usage` printed of a cubin.
pub fn usage(name: &str) -> String {
    text(&format!("{name}.res-usage"))
}

/// Machine code of one source for one architecture.
pub struct Compiled {
    /// The stem of the source in `tests/cubin/`.
    pub source: &'static str,
    pub architecture: u32,
    /// The name of the fixture.
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Returns the sources in [`DECODED`] for all of [`ARCHITECTURES`].
pub fn decoded() -> Vec<Compiled> {
    let builds = ARCHITECTURES.iter().flat_map(|&architecture| DECODED.map(|(source, _)| (source, architecture)));
    builds.map(|(source, architecture)| compiled(source, architecture)).collect()
}

/// Returns `shared.cu` for the architectures that [`decoded`] leaves out.
pub fn similar() -> Vec<Compiled> {
    SIMILAR_ARCHITECTURES.map(|architecture| compiled("shared", architecture)).into()
}

fn compiled(source: &'static str, architecture: u32) -> Compiled {
    let name = format!("{source}/sm_{architecture}");
    let bytes = cubin(&name);
    Compiled { source, architecture, name, bytes }
}

/// The file with the versions of the tools that made the fixtures.
pub const VERSIONS: &str = "versions.txt";

/// Returns the versions of the tools that make fixtures, one a line.
pub fn versions() -> String {
    let version = |name: &str| {
        let printed = toolkit::run(name, &["--version"]);
        let version = printed.lines().find_map(|line| line.split_once(", V")).expect("a version").1.to_owned();
        format!("{name} {version}\n")
    };
    ["nvcc", "ptxas", "nvdisasm", "cuobjdump"].map(version).concat()
}

/// Makes fixtures in a folder by the tools of the toolkit, and those first that others are made of.
pub fn make_all(fixtures: &[Fixture], folder: &Path) {
    for step in 0..=2 {
        fixtures.par_iter().filter(|fixture| fixture.step() == step).for_each(|fixture| make(fixture, folder));
    }
    fs::write(folder.join(VERSIONS), versions()).expect("the versions can be written");
}

fn make(fixture: &Fixture, folder: &Path) {
    let scratch = tempfile::tempdir().expect("a folder");
    let output = scratch.path().join("output");
    let unpacked = |path: &str| {
        let place = scratch.path().join("input.cubin");
        fs::write(&place, read_below(folder, path)).expect("written");
        place
    };
    let bytes = match &fixture.recipe {
        Recipe::Ptx { source, options } => {
            let mut nvcc = Command::new(toolkit::nvcc());
            nvcc.arg("-ptx").args(options).arg(in_fixed_folder(source)).arg("-o").arg(&output);
            finish(&mut nvcc);
            without_folders(&fs::read_to_string(&output).expect("nvcc wrote PTX")).into_bytes()
        }
        Recipe::Cubin { ptx, options } => {
            let input = if tests().join(ptx).exists() { tests().join(ptx) } else { folder.join(ptx) };
            let mut ptxas = Command::new(program("ptxas"));
            ptxas.arg("-lineinfo").args(options).arg(input).arg("-o").arg(&output);
            finish(&mut ptxas);
            fs::read(&output).expect("ptxas wrote a cubin")
        }
        Recipe::Listing { cubin } => nvdisasm(&unpacked(cubin)).into_bytes(),
        Recipe::Usage { cubin } => resource_usage(&unpacked(cubin)).into_bytes(),
    };
    write(folder, &fixture.path, &bytes);
}

/// Copies a source to a path that is the same in every checkout: `__FILE__` and the module's identity depend on it.
fn in_fixed_folder(source: &str) -> PathBuf {
    let place = Path::new("/tmp/nvtune-fixtures").join(source);
    let folder = place.parent().expect("a folder");
    fs::create_dir_all(folder).expect("a folder for sources");
    let copy = tempfile::NamedTempFile::new_in(folder).expect("a file");
    fs::copy(tests().join(source), copy.path()).expect("copied");
    copy.persist(&place).expect("renamed");
    place
}

/// Returns what nvdisasm prints of a cubin: text, encodings and PTX lines.
pub fn nvdisasm(cubin: &Path) -> String {
    toolkit::run("nvdisasm", &["-c".as_ref(), "-hex".as_ref(), "-gp".as_ref(), cubin.as_os_str()])
}

/// Returns what cuobjdump prints of the resources of a cubin's kernels.
pub fn resource_usage(cubin: &Path) -> String {
    toolkit::run("cuobjdump", &["-res-usage".as_ref(), cubin.as_os_str()])
}

fn finish(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Removes the folders of the files that `.file` directives name, because they differ by checkout.
fn without_folders(ptx: &str) -> String {
    let line = |line: &str| match line.strip_prefix("\t.file\t").and_then(|rest| rest.split_once('"')) {
        Some((number, path)) => format!("\t.file\t{number}\"{}\n", path.rsplit('/').next().expect("a name")),
        None => format!("{line}\n"),
    };
    ptx.lines().map(line).collect()
}
