//! A dependency file as nvcc writes it -> the same with other names of some files, or without
//! them.
//!
//! Invariant: what is between two names that stay is as it was.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// What becomes of a file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renamed {
    Kept,
    /// Another name, which stands once among the files and once among the targets of `-MP`.
    To(PathBuf),
    Removed,
}

/// Returns the text with each file's name as `rename` says.
pub fn renamed(text: &[u8], rename: impl Fn(&Path) -> Renamed) -> Vec<u8> {
    let mut made = Vec::with_capacity(text.len());
    let mut given = HashSet::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (space, after) = rest.split_at(blank_length(rest));
        let (word, after) = after.split_at(word_length(after));
        rest = after;
        // The targets of -MP have their colon without a space.
        let (name, colon) = word.strip_suffix(b":").map_or((word, &b""[..]), |name| (name, b":"));
        match rename(&path(name)) {
            _ if name.is_empty() => made.extend([space, word].concat()),
            Renamed::Kept => made.extend([space, word].concat()),
            Renamed::To(other) => {
                let named = [&escaped(&other), colon].concat();
                if given.insert(named.clone()) {
                    made.extend([space, &named].concat());
                }
            }
            Renamed::Removed => {}
        }
    }
    made
}

/// Returns how many bytes of white space and of line ends, also escaped ones, a text begins
/// with.
fn blank_length(text: &[u8]) -> usize {
    let is_blank = |at: usize| text[at].is_ascii_whitespace() || text[at..].starts_with(b"\\\n");
    (0..text.len()).find(|&at| !is_blank(at)).unwrap_or(text.len())
}

fn word_length(text: &[u8]) -> usize {
    let ends = |at: usize| {
        let is_escaped = at > 0 && text[at - 1] == b'\\';
        text[at..].starts_with(b"\\\n") || text[at].is_ascii_whitespace() && !is_escaped
    };
    (0..text.len()).find(|&at| ends(at)).unwrap_or(text.len())
}

/// nvcc escapes blanks, and nothing else.
fn path(name: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(name.len());
    for (at, &byte) in name.iter().enumerate() {
        if !(byte == b'\\' && name.get(at + 1) == Some(&b' ')) {
            bytes.push(byte);
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

fn escaped(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes().iter();
    bytes.flat_map(|&byte| if byte == b' ' { vec![b'\\', b' '] } else { vec![byte] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_or_removed_wherever_they_stand() {
        let text = "k.o : a\\ b/k.cu \\\n    /t/k.tune.h \\\n    /usr/x.h \\\n    /t/two.tune.h\n\n/t/k.tune.h:\n\n/usr/x.h:\n\n/t/two.tune.h:\n";
        let rename = |path: &Path| match path.to_str() {
            Some("/t/k.tune.h") => Renamed::To("o u/k.tune.h".into()),
            Some("/t/two.tune.h") => Renamed::Removed,
            _ => Renamed::Kept,
        };
        let expected = "k.o : a\\ b/k.cu \\\n    o\\ u/k.tune.h \\\n    /usr/x.h\n\no\\ u/k.tune.h:\n\n/usr/x.h:\n";
        assert_eq!(String::from_utf8_lossy(&renamed(text.as_bytes(), rename)), expected);
        assert_eq!(renamed(text.as_bytes(), |_| Renamed::Kept), text.as_bytes());
        let both = |path: &Path| if path.ends_with("x.h") { Renamed::Kept } else { Renamed::To("k.h".into()) };
        let text = "/t/k.h : ./k.h \\\n /usr/x.h \\\n k.h\n./k.h:\n/usr/x.h:\nk.h:\n";
        assert_eq!(String::from_utf8_lossy(&renamed(text.as_bytes(), both)), "k.h : \\\n /usr/x.h\nk.h:\n/usr/x.h:\n");
    }
}
