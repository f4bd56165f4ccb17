//! The module id, which is part of the names of a module's internal symbols. The final build has
//! one of nvcc's; what cicc made while the source was tuned has a placeholder.
//!
//! Invariant: text in which the id takes the placeholder's place differs in nothing else from what
//! cicc makes under the id. Mangled names hold the lengths of their parts, so only an id of the
//! same length can, and none in debug strings, which are numbers in PTX.

use std::path::Path;

/// Stands where a true id has its digits: of eight characters, as these.
const DIGITS: &str = "nvtune00";

/// The id that cicc is given for a source before the true one is known. As nvcc 13.0 has them, ids
/// are `_HASH_LENGTH_NAME_HASH`: the name of the source with `_` for all but letters and digits, its
/// length, and two hashes. In place of the second is the name of the first symbol if that is
/// shorter, and without a symbol the number of a process follows.
pub fn placeholder(source: &str) -> String {
    let name = Path::new(source).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name: String = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    format!("_{DIGITS}_{}_{name}_{DIGITS}", name.len())
}

/// A text that was made under an id, as it would be under another; `None` where that cannot be
/// known.
pub fn with_id(text: String, made_under: &str, id: &str) -> Option<String> {
    if made_under == id {
        return Some(text);
    }
    if memchr::memmem::find(&debug_strings(&text), made_under.as_bytes()).is_some() {
        return None;
    }
    if !text.contains(made_under) {
        return Some(text);
    }
    (made_under.len() == id.len()).then(|| text.replace(made_under, id))
}

/// The names of inlined functions in PTX with line numbers: a section of lists of their bytes.
fn debug_strings(ptx: &str) -> Vec<u8> {
    let section = ptx.split_once(".section\t.debug_str").map_or("", |(_, after)| after);
    let lists = section.lines().take_while(|line| *line != "\t}").filter_map(|line| line.strip_prefix(".b8 "));
    lists.flat_map(|list| list.split(',')).filter_map(|number| number.trim().parse().ok()).collect()
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
        assert_eq!(with_id(text(), "_abcd", "_efgh").as_deref(), Some("_ZN14_INTERNAL_efgh3tagE"));
        assert_eq!(with_id(text(), "_abcd", "_efghi"), None);
        assert_eq!(with_id(text(), "_other", "_efghi"), Some(text()));
        let inlined =
            |name: &str| format!("{}\n\t.section\t.debug_str\n\t{{\n$L__info_string0:\n{name}\n\t}}\n", text());
        assert_eq!(with_id(inlined(".b8 95,97,98\n.b8 99,100,0"), "_abcd", "_efgh"), None);
        assert!(with_id(inlined(".b8 95,97,98\n.b8 99,101,0"), "_abcd", "_efgh").is_some());
    }
}
