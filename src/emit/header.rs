//! Winners -> the text of `STEM.tune.h`: launch parameters as macros and functions for C and
//! C++.
//!
//! In: the data of each kernel ([`HeaderKernel`]). Out: the text, which depends on nothing else,
//! so that equal results give equal bytes. A section for each kernel comes first: its numbers in
//! a comment, its macros, and declarations of its functions. Definitions and helpers come last.
//! The part for any C or C++ file and the part that needs the types of CUDA's headers have
//! separate guards, so that the header may be included again after those. No line has more than
//! 120 columns, unless one word is longer.

use super::header_kernel::{HeaderKernel, Section, macro_name};
use super::header_text::{HEADER_END, Text};
use std::collections::BTreeSet;

/// The header of one source file.
#[derive(Clone, Debug)]
pub struct Header {
    /// The source's file name, for the comment at the top.
    pub source: String,
    pub kernels: Vec<HeaderKernel>,
}

/// Prefix of the names of the functions that expressions of the header call.
pub const HEADER_DETAIL_PREFIX: &str = "nvtune_detail_";

/// Names that a structure in the namespace `nvtune` cannot have: those of its own functions, and
/// keywords of C++ that `name(...)` allows.
const RESERVED: &str = " block grid shared carveout launch \
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await co_return \
    co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast else \
    enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr \
    operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof static static_assert \
    static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned using virtual void \
    volatile wchar_t while xor xor_eq ";

/// Returns the names among these whose macros would have the same names as those of another one.
/// Neither of the two gets macros, for no reader could tell whose they are.
pub fn without_macros<'a>(names: &[&'a str]) -> BTreeSet<&'a str> {
    let shares_macros =
        |name: &&&str| names.iter().any(|other| other != *name && macro_name(other) == macro_name(name));
    names.iter().filter(shares_macros).copied().collect()
}

/// The include guard of one kernel in the header of the source with this stem. There is none of
/// the whole header: two sources of one name in different folders may be used side by side. If
/// a second, older header of the same source is included, its kernels are skipped.
fn guard(stem: &str, kernel: &str) -> String {
    // FNV-1a (Fowler, Noll, Vo), 32 bits: it distinguishes names that are equal in upper case.
    let digest = |digest: u32, byte: u8| (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let digest = stem.bytes().chain([0]).chain(kernel.bytes()).fold(0x811c_9dc5_u32, digest);
    format!("NVTUNE_{}_{}_{digest:08X}", macro_name(stem), macro_name(kernel))
}

impl Header {
    /// The macro with which a header is empty, for builds without nvtune.
    pub const OFF: &str = "NVTUNE_OFF";

    /// Whether this is the text of a generated header.
    pub fn is_header(text: &[u8]) -> bool {
        text.starts_with(b"/* made by nvtune ")
    }

    /// The name of the macro that nvtune's builds define if the object has the winners that the
    /// header describes.
    pub fn tuned_macro(stem: &str) -> String {
        format!("NVTUNE_{}_TUNED", macro_name(stem))
    }

    /// The file name of the header of a source with this stem.
    pub fn file_name(stem: &str) -> String {
        format!("{stem}.tune.h")
    }

    /// Whether a file has the name of a generated header.
    pub fn is_header_name(path: &str) -> bool {
        path.ends_with(".tune.h")
    }

    /// Returns the whole text.
    pub fn text(&self) -> String {
        let stem = self.source.rsplit_once('.').map_or(self.source.as_str(), |(stem, _)| stem);
        let names: Vec<&str> = self.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        let without_macros = without_macros(&names);
        let axes: BTreeSet<&str> =
            self.kernels.iter().flat_map(|kernel| kernel.macros.keys().map(String::as_str)).collect();
        let tuned = Self::tuned_macro(stem);
        let sections: Vec<Section<'_>> = self
            .kernels
            .iter()
            .zip(type_names(&names))
            .map(|(kernel, type_name)| Section {
                kernel,
                type_name,
                guard: guard(stem, &kernel.name),
                has_macros: !without_macros.contains(kernel.name.as_str()),
            })
            .collect();
        let mut text = Text::default();
        text.begin(&self.source, Self::OFF);
        for section in &sections {
            text.section(section, &axes, &tuned);
        }
        text.definitions(&sections);
        text.line(format_args!("{HEADER_END}"));
        text.into_string()
    }
}

/// A name in the namespace `nvtune` for each kernel: its own, with `_` appended if that is
/// reserved.
fn type_names(names: &[&str]) -> Vec<String> {
    let is_reserved = |name: &str| RESERVED.split_whitespace().any(|word| word == name);
    let of = |name: &&str| {
        let mut free = (*name).to_owned();
        if is_reserved(name) {
            free.push('_');
            while names.contains(&free.as_str()) {
                free.push('_');
            }
        }
        free
    };
    names.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_differ_have_guards_that_differ() {
        assert_eq!(guard("my-file", "saxpy"), "NVTUNE_MY_FILE_SAXPY_E8DAD587");
        let names = [
            ("my_kernel", "k"),
            ("my-kernel", "k"),
            ("My_Kernel", "k"),
            ("my kernel", "k"),
            ("my", "kernel_k"),
            ("my_kernel", "K"),
        ];
        let guards: BTreeSet<String> = names.iter().map(|(stem, name)| guard(stem, name)).collect();
        assert_eq!(guards.len(), names.len(), "{guards:?}");
        let is_name =
            |guard: &String| guard.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
        assert!(guards.iter().all(is_name), "{guards:?}");
    }

    #[test]
    fn kernels_whose_macros_would_be_called_alike_have_none() {
        assert_eq!(without_macros(&["saxpy", "Saxpy", "scale"]), BTreeSet::from(["saxpy", "Saxpy"]));
        assert_eq!(without_macros(&["a_b", "a_c"]), BTreeSet::new());
    }

    #[test]
    fn structures_are_called_what_they_can_be_called() {
        assert_eq!(type_names(&["grid", "grid_", "int", "saxpy"]), ["grid__", "grid_", "int_", "saxpy"]);
    }
}
