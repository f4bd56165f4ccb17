//! Winners -> the text of `STEM.tune.h`: launch parameters as macros and functions for C and
//! C++.
//!
//! In: what the header says of each kernel ([`HeaderKernel`]). Out: the text, which depends on
//! nothing else, so that equal results give equal bytes. A section for each kernel comes first:
//! its numbers in a comment, its macros, and declarations of its functions. Definitions and
//! helpers come last. A part for any C or C++ file and a part that takes the types of CUDA's
//! headers have guards of their own, so the header may be included again after those. No line
//! has more than 120 columns, unless one word is longer.

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

/// How the names of the functions begin that expressions of the header call.
pub const HEADER_DETAIL: &str = "nvtune_detail_";

/// What a structure in the namespace `nvtune` cannot be called: its own functions, and words of
/// C++ that `name(...)` allows.
const RESERVED: &str = " block grid shared carveout launch \
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class co_await co_return \
    co_yield compl concept const const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast else \
    enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr \
    operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof static static_assert \
    static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned using virtual void \
    volatile wchar_t while xor xor_eq ";

/// The names among these whose macros would be called as those of another: neither of them gets
/// macros, for no reader could tell whose they are.
pub fn without_macros<'a>(names: &[&'a str]) -> BTreeSet<&'a str> {
    let shares = |name: &&&str| names.iter().any(|other| other != *name && macro_name(other) == macro_name(name));
    names.iter().filter(shares).copied().collect()
}

/// The guard of one kernel in the header of a stem. Not one of the whole header: two sources of
/// one name in different folders may be used side by side. Of one source an old header in
/// another folder may be found, too: it has nothing new to say of its kernels.
fn guard(stem: &str, kernel: &str) -> String {
    // FNV-1a (Fowler, Noll, Vo), 32 bits, of what the names in upper case do not tell apart.
    let digest = |digest: u32, byte: u8| (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let digest = stem.bytes().chain([0]).chain(kernel.bytes()).fold(0x811c_9dc5_u32, digest);
    format!("NVTUNE_{}_{}_{digest:08X}", macro_name(stem), macro_name(kernel))
}

impl Header {
    /// The macro that leaves nothing of a header, for builds without nvtune's doing.
    pub const OFF: &str = "NVTUNE_OFF";

    /// Whether this is the text of a header.
    pub fn is_one(text: &[u8]) -> bool {
        text.starts_with(b"/* made by nvtune ")
    }

    /// Names the macro that nvtune's builds define where the object has the winners that the
    /// header speaks of.
    pub fn tuned_macro(stem: &str) -> String {
        format!("NVTUNE_{}_TUNED", macro_name(stem))
    }

    /// The file name of the header of a source with this stem.
    pub fn file_name(stem: &str) -> String {
        format!("{stem}.tune.h")
    }

    /// Whether a file has the name of such a header.
    pub fn is_named(path: &str) -> bool {
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

/// A name in the namespace `nvtune` for each kernel: its own, with `_` behind it where that
/// cannot be.
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
