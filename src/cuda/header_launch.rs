//! Host code -> the launches of a kernel that surely know nothing of the header: their block is a number, and nothing of the header is
//! in their grid.
//!
//! What is not known for sure is taken to follow the header, as the source includes it.

use super::host_code::{File, HostCode};
use super::host_launch::{Declared, HostLaunch, LaunchedBlock};
use super::macros::Macro;
use super::tokens::CxxKind;
use std::collections::BTreeMap;

/// How many names are followed one after the other.
const DEPTH: usize = 8;

/// Types that are words of the language, or CUDA's for numbers.
const TYPES: [&str; 14] = [
    "bool",
    "char",
    "short",
    "int",
    "long",
    "float",
    "double",
    "signed",
    "unsigned",
    "half",
    "__half",
    "__nv_bfloat16",
    "true",
    "false",
];

/// What the header's macros of a kernel end in, as far as launches use them.
const ENDINGS: [&str; 4] = ["_BLOCK_", "_GRID_", "_SHARED", "_OCCUPANCY"];

/// What its functions of a kernel end in, in C.
const FUNCTIONS: [&str; 4] = ["_block", "_grid", "_shared", "_carveout"];

/// What the header calls a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderName {
    /// That of its structure and functions.
    pub name: String,
    /// What its macros begin with.
    pub prefix: String,
}

impl HostCode {
    /// The launches of the kernel that know nothing of the header, which calls the source's kernels by these names. Of a template's they
    /// are those of an instance, by the text of its arguments without blanks.
    pub fn beside_header(&self, kernel: &str, instance: Option<&str>, names: &[HeaderName]) -> Vec<HostLaunch> {
        let mut launches = self.launch_places(kernel, &BTreeMap::new());
        launches.retain(|(launch, file, mark)| {
            if instance.zip(file.concrete_arguments(*mark)).is_some_and(|(own, written)| own != written) {
                return false;
            }
            let grid = file.arguments(mark + 3, ">>>").first().copied();
            let is_literal = matches!(launch.block, LaunchedBlock::Is(_));
            is_literal && grid.is_some_and(|grid| !self.may_be_of_header(file, grid, names, DEPTH))
        });
        launches.into_iter().map(|(launch, ..)| launch).collect()
    }

    /// Whether the code has a word of the header's of one kernel, itself or in a macro.
    pub fn uses_header(&self, name: &HeaderName) -> bool {
        let names = std::slice::from_ref(name);
        self.files.iter().any(|file| {
            let mut all = 0..file.tokens.len();
            all.any(|at| file.is_of_header(at, names))
                || file
                    .macros
                    .iter()
                    .any(|of| has_header(of, name) || makes_header(of) && self.calls_for(file, of, name))
        })
    }

    /// Whether a macro is called for a kernel: with its name among the arguments, or in another macro that has that.
    fn calls_for(&self, file: &File, of: &Macro, name: &HeaderName) -> bool {
        let word = file.source.slice(of.name);
        let is_called = |file: &File| {
            file.places(word).iter().any(|&at| {
                let close = Some(at + 1).filter(|&open| file.text(open) == "(").and_then(|open| file.closing(open));
                close.is_some_and(|close| {
                    (at + 2..close).any(|at| [&name.name, &name.prefix].iter().any(|own| file.text(at) == own.as_str()))
                })
            })
        };
        let has_both = |other: &Macro| other.has(word) && (other.has(&name.name) || other.has(&name.prefix));
        self.files.iter().any(|file| is_called(file) || file.macros.iter().any(has_both))
    }

    /// Whether tokens, or the definitions of the names in them, use the header. Of names alone of which nothing is known the answer is yes.
    fn may_be_of_header(&self, file: &File, range: (usize, usize), names: &[HeaderName], depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return true };
        let (from, to) = range;
        // A name, or the way to a member: in an expression an unknown name is a number of elements, here it is the grid.
        let is_path = (from..to).all(|at| {
            file.tokens.get(at).is_some_and(|token| token.kind == CxxKind::Name)
                || matches!(file.text(at), "." | "-" | ">" | "::" | "*")
        });
        let is_name = |at: &usize| file.tokens.get(*at).is_some_and(|token| token.kind == CxxKind::Name);
        (from..to).filter(is_name).any(|at| {
            if file.is_of_header(at, names) {
                return true;
            }
            if file.text(at + 1) == "(" {
                return self.comes_of_header(file.text(at), names);
            }
            match file.declared(at) {
                Some(Declared::Parameter) => is_path,
                // Assigned to more than once.
                Some(Declared::Value(from, to)) if from == to => is_path,
                Some(Declared::Value(from, to)) => self.may_be_of_header(file, (from, to), names, depth),
                Some(Declared::Extents(at)) => {
                    let given = file.arguments(at, ")");
                    given.into_iter().any(|range| self.may_be_of_header(file, range, names, depth))
                }
                None if self.comes_of_header(file.text(at), names) => true,
                None => is_path && self.defined(file.text(at)).is_none(),
            }
        })
    }

    /// Whether a macro or a function that host code defines has something of the header.
    fn comes_of_header(&self, word: &str, names: &[HeaderName]) -> bool {
        self.files.iter().any(|file| {
            let mut macros = file.macros.iter().filter(|of| file.source.slice(of.name) == word);
            let mut functions =
                file.places(word).iter().filter_map(|&at| file.function(at).filter(|&(begin, _)| begin == at));
            let is_of = |word: &String| word == "nvtune" || word.starts_with("nvtune_") || is_macro(word, names);
            macros.any(|of| of.words.iter().any(is_of))
                || functions.any(|(begin, end)| (begin..end).any(|at| file.is_of_header(at, names)))
        })
    }
}

impl File {
    /// The template arguments before a `<<<` without blanks, where they are numbers and types of the language alone.
    fn concrete_arguments(&self, mark: usize) -> Option<String> {
        let close = mark.checked_sub(1).filter(|&close| self.text(close) == ">")?;
        let open = (0..close)
            .rev()
            .take_while(|&at| !matches!(self.text(at), ";" | "{" | "}"))
            .find(|&at| self.text(at) == "<")?;
        let is_concrete = |at: usize| {
            let word = self.text(at);
            TYPES.contains(&word) || word == "," || self.tokens[at].kind == CxxKind::Literal
        };
        (open + 1..close).all(is_concrete).then(|| (open + 1..close).map(|at| self.text(at)).collect())
    }

    /// Whether the name at `at` is the header's: `nvtune::saxpy`, `nvtune_saxpy_grid_x`, `SAXPY_BLOCK_X`, and `saxpy::` behind a `using`.
    fn is_of_header(&self, at: usize, names: &[HeaderName]) -> bool {
        let word = self.text(at);
        let is_named = |word: &str| names.iter().any(|of| of.name == word);
        word == "nvtune" && self.text(at + 1) == "::" && is_named(self.text(at + 2))
            || is_named(word) && self.text(at + 1) == "::"
            || word.strip_prefix("nvtune_").is_some_and(|rest| names.iter().any(|of| is_function(rest, &of.name)))
            || is_macro(word, names)
    }
}

/// Whether a macro has a word of the header's of one kernel.
fn has_header(of: &Macro, name: &HeaderName) -> bool {
    let is_word = |word: &String| {
        is_macro(word, std::slice::from_ref(name))
            || word.strip_prefix("nvtune_").is_some_and(|rest| is_function(rest, &name.name))
    };
    of.words.iter().any(is_word) || of.words.windows(2).any(|pair| pair[0] == "nvtune" && pair[1] == name.name)
}

/// Whether a macro makes a word of the header's of what it is given: `nvtune::KERNEL::grid`, `KERNEL##_BLOCK_X`.
fn makes_header(of: &Macro) -> bool {
    let is_given = |word: &String| of.parameters.contains(word);
    let is_pasted = |word: &String| word == "nvtune_" || ENDINGS.iter().any(|ending| word.starts_with(ending));
    of.words.windows(2).any(|pair| pair[0] == "nvtune" && is_given(&pair[1]))
        || of.words.iter().any(is_given) && of.words.iter().any(is_pasted)
}

/// Whether a word is a kernel's name with the end of one of the header's functions in C (`saxpy_block`, `saxpy_grid_x`).
fn is_function(word: &str, kernel: &str) -> bool {
    let is_end = |rest: &str| {
        FUNCTIONS.iter().any(|end| rest.strip_prefix(end).is_some_and(|rest| rest.is_empty() || rest.starts_with('_')))
    };
    word.strip_prefix(kernel).is_some_and(is_end)
}

/// Whether a word is a macro of the header's.
fn is_macro(word: &str, names: &[HeaderName]) -> bool {
    let is_of = |of: &HeaderName| {
        word.strip_prefix(&of.prefix).is_some_and(|rest| ENDINGS.iter().any(|ending| rest.starts_with(ending)))
    };
    names.iter().any(is_of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;
    use std::sync::Arc;

    #[test]
    fn launches_with_numbers_alone_are_beside_the_header() {
        let name = |name: &str| HeaderName { name: name.to_owned(), prefix: name.to_uppercase() };
        let names = ["k", "k_float"].map(name);
        for (text, expected) in [
            ("void go(int n) { k<<<n / 256, 256>>>(n); }", 1),
            ("#define BLOCK 256\nvoid go(int n) { int g = n / BLOCK; dim3 b(BLOCK); k<float><<<g, b>>>(n); }", 1),
            ("int up(int n) { return n / 256; }\nvoid go(int n) { k<<<up(n), 256>>>(n); }", 1),
            ("void go(int n) { dim3 g(n / 16, n / 16); dim3 b(16, 16); k<<<g, b>>>(n); k<<<n, K_BLOCK_X>>>(n); }", 1),
            // Some part is the header's.
            ("void go(int n) { k<<<nvtune::k::grid(n), nvtune::k::block()>>>(n); }", 0),
            ("using namespace nvtune;\nvoid go(int n) { k<<<k::grid(n), k::block()>>>(n); }", 0),
            ("void go(int n) { k<<<(n + K_BLOCK_SIZE - 1) / K_BLOCK_SIZE, K_BLOCK_SIZE>>>(n); }", 0),
            ("void go(int n) { k<float><<<nvtune_k_float_grid_x(n), 256>>>(n); }", 0),
            ("void go(int n) { dim3 g = nvtune::k::grid(n); k<<<g, 256>>>(n); }", 0),
            ("#define BLOCKS K_GRID_X\nvoid go(int n) { k<<<BLOCKS, 256>>>(n); }", 0),
            ("dim3 blocks(int n) { return nvtune::k::grid(n); }\nvoid go(int n) { k<<<blocks(n), 256>>>(n); }", 0),
            ("void go(int n, cudaStream_t s) { k<<<n / 256, 256, 0, s>>>(n); }\nvoid other() { int n = 1; n = 2; }", 1),
            (
                "void go(int n) { k<<<std::max(1, n / 256), 256>>>(n); k<float><<<n / 256, 256>>>(n); k<double><<<n / 256, 256>>>(n); }",
                2,
            ),
            // Not known.
            ("void go(int n, C &c) { k<<<c.grid, 256>>>(n); k<<<this->grid_, 256>>>(n); }", 0),
            ("void go(int n) { auto [b] = make(); k<<<b, 256>>>(n); with([&](auto g) { k<<<g.x, 256>>>(n); }); }", 0),
            ("void go(int blocks, dim3 b) { k<<<blocks, 256>>>(n); k<<<1, b>>>(n); }", 0),
            ("void go(int n) { int g = 1; g = up(n); k<<<g, 256>>>(n); launch(k, n / 256, 256, n); }", 0),
            ("void go(int n) { const auto b = shape(n); k<<<n / 256, b>>>(n); }", 0),
        ] {
            let host = HostCode::new([Arc::new(Source::new("a.cu", text.as_bytes()))]);
            assert_eq!(host.beside_header("k", Some("float"), &names).len(), expected, "{text}");
        }
        let uses = |text: &str| HostCode::new([Arc::new(Source::new("a.cu", text.as_bytes()))]).uses_header(&names[0]);
        assert!(uses("int b = K_BLOCK_X;") && uses("#define B K_BLOCK_X\n") && uses("auto b = nvtune::k::block();"));
        assert!(!uses("int b = nvtune::other::block().x + K_SIZE;") && !uses("// K_BLOCK_X\n"));
    }
}
