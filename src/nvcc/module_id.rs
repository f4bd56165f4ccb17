//! The module id, which is part of the names of a module's internal symbols: cudafe++ makes it in
//! the final build, and what cicc made before has another one in its place.
//!
//! Invariant: text with a placeholder differs from that with the true id in nothing else. Mangled
//! names hold the lengths of their parts, so a placeholder takes the place of ids of its length
//! only.

use std::path::Path;

/// Stands where a true id has its digits: of eight characters, as these.
const DIGITS: &str = "nvtune00";

/// The id that cicc is given for a source before the true one is known. As nvcc 13.0 has them, ids
/// are `_HASH_LENGTH_NAME_HASH`: the name of the source with `_` for all but letters and digits, its
/// length, and two hashes, the second of which may be the name of a symbol.
pub fn placeholder(source: &str) -> String {
    let name = Path::new(source).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name: String = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    format!("_{DIGITS}_{}_{name}_{DIGITS}", name.len())
}

/// A text that was made under an id, as it would be under another; `None` where that cannot be
/// known.
pub fn renamed(text: String, made_under: &str, id: &str) -> Option<String> {
    if made_under == id || !text.contains(made_under) {
        return Some(text);
    }
    (made_under.len() == id.len()).then(|| text.replace(made_under, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholder_has_the_form_of_nvccs_ids() {
        // nvcc 13.0.88 on sources of these names.
        for (source, id) in [
            ("f1.cu", "_4b1deb4c_5_f1_cu_022fcf58"),
            ("sub/f10.cu", "_5950f186_6_f10_cu_e39c8e7c"),
            ("/some/where/fx-y.z+w.cu", "_69478eb2_11_fx_y_z_w_cu_8d745d77"),
        ] {
            let name = |id: &str| id[9..id.len() - 9].to_owned();
            assert_eq!((placeholder(source).len(), name(&placeholder(source))), (id.len(), name(id)), "{source}");
        }
    }

    #[test]
    fn only_an_id_of_the_same_length_is_put_in_its_place() {
        let text = || "_ZN14_INTERNAL_abcd3tagE".to_owned();
        assert_eq!(renamed(text(), "_abcd", "_efgh").as_deref(), Some("_ZN14_INTERNAL_efgh3tagE"));
        assert_eq!(renamed(text(), "_abcd", "_efghi"), None);
        assert_eq!(renamed(text(), "_other", "_efghi"), Some(text()));
    }
}
