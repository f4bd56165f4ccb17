//! Which files of a compile carry tuning comments: the source itself and what it includes with quotes.
//!
//! This runs at every compile, so it reads files once and looks at nothing but `#include "..."` and the marker.

use crate::comment::{is_marked, occurrences};
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file with at least one tuning comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkedFile {
    /// The path as a compiler would print it.
    pub path: PathBuf,
    pub text: Vec<u8>,
}

/// The source and what it includes with quotes, in the order in which they are met.
pub fn quoted_files(source: &Path, include_paths: &[PathBuf]) -> Vec<MarkedFile> {
    let mut files = Vec::new();
    walk(source, include_paths, |path, text, _| files.push(MarkedFile { path, text }));
    files
}

/// The marked files among `source` and its quoted includes, in the order in which they are met, and whether one of
/// them includes the header `header_name`.
pub fn marked_files(source: &Path, include_paths: &[PathBuf], header_name: &str) -> (Vec<MarkedFile>, bool) {
    let mut marked = Vec::new();
    let mut includes_header = false;
    walk(source, include_paths, |path, text, names| {
        includes_header |= names.iter().any(|name| Path::new(name).file_name().is_some_and(|file| file == header_name));
        if is_marked(&text) {
            marked.push(MarkedFile { path, text });
        }
    });
    (marked, includes_header)
}

/// Visits each file with its path, its text and what it includes.
fn walk(source: &Path, include_paths: &[PathBuf], mut visit: impl FnMut(PathBuf, Vec<u8>, Vec<String>)) {
    let mut seen = BTreeSet::new();
    let mut pending = Vec::from_iter(regular(source.to_path_buf()));
    while let Some((path, data)) = pending.pop() {
        // By identity: a file that includes `x/../itself` has another path each time.
        if !seen.insert((data.dev(), data.ino())) {
            continue;
        }
        // A file that cannot be read is nvcc's to complain about.
        let Ok(text) = std::fs::read(&path) else { continue };
        let folder = path.parent().unwrap_or(Path::new(""));
        let names: Vec<String> = quoted_includes(&text).map(str::to_owned).collect();
        for name in &names {
            let mut candidates = std::iter::once(folder)
                .chain(include_paths.iter().map(PathBuf::as_path))
                .map(|folder| folder.join(name));
            pending.extend(candidates.find_map(regular));
        }
        visit(path, text, names);
    }
}

/// A file with what it is; none where it is a folder, or a pipe, whose contents are there but once.
fn regular(path: PathBuf) -> Option<(PathBuf, Metadata)> {
    let data = std::fs::metadata(&path).ok()?;
    data.is_file().then_some((path, data))
}

/// The names in `#include "name"` directives.
fn quoted_includes(text: &[u8]) -> impl Iterator<Item = &str> {
    let is_blank = |byte: &&u8| byte.is_ascii_whitespace() && **byte != b'\n';
    occurrences(text, b'#').filter_map(move |position| {
        // The first thing on its line.
        if text[..position].iter().rev().find(|byte| !is_blank(byte)).is_some_and(|&byte| byte != b'\n') {
            return None;
        }
        let after = &text[position + 1..];
        let after = &after[after.iter().take_while(is_blank).count()..];
        let name = after.strip_prefix(b"include")?.trim_ascii_start().strip_prefix(b"\"")?;
        let end = name.iter().position(|&byte| byte == b'"' || byte == b'\n')?;
        (name.get(end) == Some(&b'"')).then(|| std::str::from_utf8(&name[..end]).ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_found_through_quoted_includes() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
            std::fs::write(&path, text).expect("written");
            path
        };
        let kernel = write("inc/kernel.cu", "//@tune block(auto)\n__global__ void k() {}\n");
        write("inc/loop.cuh", "#include \"loop.cuh\"\n#include \"../inc/loop.cuh\"\n#include \"./loop.cuh\"\n");
        let source = write(
            "main.cu",
            "# include \"kernel.cu\"\n#include \"loop.cuh\"\n#include <vector>\n#include \"main.tune.h\"\n",
        );
        let (marked, includes_header) = marked_files(&source, &[folder.path().join("inc")], "main.tune.h");
        assert_eq!(marked.iter().map(|file| &file.path).collect::<Vec<_>>(), [&kernel]);
        assert!(includes_header);
        assert_eq!(marked_files(&source, &[], "main.tune.h"), (vec![], true));
    }
}
