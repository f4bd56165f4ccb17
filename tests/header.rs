//! The header: a snapshot for each source in `tests/header/`, compiled by every compiler and standard, and run.
//!
//! `UPDATE_EXPECT=1` writes the snapshots `tests/header/*.tune.h` anew.

mod compilers;
mod functions;
mod launch;

use super::support::full::is_full;
use super::support::toolkit::{include_folder, nvcc};
use expect_test::expect_file;
use nvtune::comment::{Annotation, Expr, Node, annotations};
use nvtune::diag::{Source, Span};
use nvtune::emit::cxx_expression::Types;
use nvtune::emit::{Header, HeaderKernel};
use nvtune::search::Provenance;
use nvtune::space::{Limits, Space};
use nvtune::tune::header;
use rayon::prelude::*;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The stems of the sources in `tests/header/`.
const STEMS: [&str; 19] = [
    "one_dimension",
    "two_dimensions",
    "three_dimensions",
    "instances",
    "template_parameters",
    "spaces",
    "linkage",
    "overloads",
    "dynamic_shared",
    "macro-axes",
    "fat",
    "no_threads",
    "grid_axis",
    "cooperative",
    "expressions",
    "structures",
    "names",
    "large",
    "awkward_parameters",
];

/// A source with tuning comments. Directives follow them in lines that begin with `//#`:
///
/// - `type NAME: TYPE`: the type of a parameter or field that the comment names, as the compiler would report it.
/// - `also sm_80: block X Y Z`: another architecture of a fat build with its block; the first is sm_90.
struct Shape {
    stem: &'static str,
    source: String,
    types: Vec<(String, &'static str)>,
    others: Vec<(u32, [u32; 3])>,
}

impl Shape {
    fn read(stem: &'static str) -> Self {
        let path = folder().join(format!("{stem}.cu"));
        let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut shape = Self { stem, source, types: Vec::new(), others: Vec::new() };
        for line in shape.source.lines().filter_map(|line| line.strip_prefix("//# ")) {
            let (what, value) = line.split_once(": ").unwrap_or_else(|| panic!("{stem}.cu: {line}"));
            if let Some(name) = what.strip_prefix("type ") {
                let known = TYPES.iter().find(|known| **known == value);
                shape.types.push((name.to_owned(), known.unwrap_or_else(|| panic!("{stem}.cu: type {value}"))));
            } else if let (Some(architecture), Some(block)) =
                (what.strip_prefix("also sm_"), value.strip_prefix("block "))
            {
                let block: Vec<u32> = block.split(' ').map(|size| size.parse().expect("a size")).collect();
                shape.others.push((architecture.parse().expect("a number"), block.try_into().expect("three sizes")));
            } else {
                panic!("{stem}.cu: unknown directive {line}");
            }
        }
        shape
    }
}

/// Types that directives name.
const TYPES: [&str; 7] =
    ["float", "int", "long long", "unsigned char", "unsigned int", "unsigned long long", "unsigned short"];

/// A kernel of a source, with its space and its part of the header.
struct TunedKernel {
    annotation: Annotation,
    space: Space,
    header: HeaderKernel,
}

fn tuned_kernels(stem: &'static str) -> Vec<TunedKernel> {
    let shape = Shape::read(stem);
    let source = Source::new(format!("{}.cu", shape.stem), shape.source.as_bytes());
    let annotations = annotations(&source).unwrap_or_else(|problems| panic!("{}: {problems:?}", shape.stem));
    let types: Types = shape.types.iter().cloned().collect();
    let kernels = annotations.into_iter().map(|annotation| {
        let space = Space::new(&annotation, &Limits::default()).unwrap_or_else(|problems| panic!("{problems:?}"));
        let of = |block: Option<[u32; 3]>, capability: u32| {
            let mut configuration = space.baseline().clone();
            configuration.block = block.unwrap_or(configuration.block);
            let gpu = format!("NVIDIA H200, sm_{capability}");
            let told = header(&annotation, &types, &configuration, Provenance::Measured, &gpu);
            HeaderKernel { capability, occupancy: Some(75), speedup: 1.25, ..told }
        };
        let others = shape.others.iter().map(|&(capability, block)| (capability, of(Some(block), capability)));
        let header = HeaderKernel { others: others.collect(), ..of(None, 90) };
        TunedKernel { annotation, space, header }
    });
    kernels.collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/header")
}

#[test]
fn header_of_each_source_equals_snapshot() {
    for stem in STEMS {
        let kernels = tuned_kernels(stem).into_iter().map(|kernel| kernel.header).collect();
        let text = Header { source: format!("{stem}.cu"), kernels }.text();
        expect_file![folder().join(format!("{stem}.tune.h"))].assert_eq(&text);
        let too_long = text.lines().find(|line| line.chars().count() > 120);
        assert_eq!(too_long, None, "{stem}");
    }
}

#[test]
fn sections_of_kernels_come_before_all_definitions() {
    for stem in STEMS {
        let kernels: Vec<HeaderKernel> = tuned_kernels(stem).into_iter().map(|kernel| kernel.header).collect();
        let functions: Vec<String> = kernels.iter().map(|kernel| format!("\n * {}(", kernel.function)).collect();
        let text = Header { source: format!("{stem}.cu"), kernels }.text();
        let definitions = text.find("The rest defines").expect("a title");
        for function in functions {
            assert!(text.find(&function).is_some_and(|at| at < definitions), "{function} in {stem}");
        }
        assert!(!text[..definitions].contains("nvtune_detail_dim3("), "{stem}");
    }
}

/// Runs a program and returns its standard output; fails if it fails or prints an error.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.is_empty(),
        "{command:?}\n{}{said}",
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns includes of all headers, in order and in reverse. `first` comes before them, `second` between.
fn includes(first: &str, second: &str) -> String {
    let all = |stems: &mut dyn Iterator<Item = &str>| {
        stems.map(|stem| format!("#include \"{stem}.tune.h\"\n")).collect::<String>()
    };
    format!("{first}{}{second}{}", all(&mut STEMS.into_iter()), all(&mut STEMS.into_iter().rev()))
}

const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"];
