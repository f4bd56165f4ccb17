//! Which files of a compile carry tuning comments: the source itself and what it includes with quotes.
//!
//! This runs at every compile, so it reads files once and looks at nothing but `#include "..."` and the marker.

use crate::comment::{Mark, mark, near_misses, occurrences};
use crate::diag::{Diagnostic, Source};
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

impl MarkedFile {
    /// Warnings for what was surely meant as a tuning comment.
    pub fn near_misses(&self) -> Vec<Diagnostic> {
        near_misses(&Source::new(self.path.to_string_lossy(), &self.text))
    }
}

/// The source and what it includes with quotes, in the order in which they are met.
pub fn quoted_files(source: &Path, include_paths: &[PathBuf]) -> Vec<MarkedFile> {
    let mut files = Vec::new();
    walk(source, include_paths, |path, text, _| files.push(MarkedFile { path, text }));
    files
}

/// What is found in `source` and its quoted includes, each in the order in which it is met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub marked: Vec<MarkedFile>,
    /// Files that are not marked, with what may have been meant as a mark.
    pub nearly: Vec<MarkedFile>,
    /// What they include the header by that is asked for: its name, or a path that ends in that.
    pub header_includes: BTreeSet<String>,
}

/// Looks for marks and for who includes the header `header_name`.
pub fn marked_files(source: &Path, include_paths: &[PathBuf], header_name: &str) -> Found {
    let mut found = Found::default();
    walk(source, include_paths, |path, text, names| {
        let is_header = |name: &&String| Path::new(name).file_name().is_some_and(|file| file == header_name);
        found.header_includes.extend(names.iter().filter(is_header).cloned());
        match mark(&text) {
            Mark::Tuned => found.marked.push(MarkedFile { path, text }),
            Mark::Nearly => found.nearly.push(MarkedFile { path, text }),
            Mark::Nothing => {}
        }
    });
    found
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
        let nearly = write(
            "inc/loop.cuh",
            "//@Tune\n#include \"loop.cuh\"\n#include \"../inc/loop.cuh\"\n#include \"./loop.cuh\"\n",
        );
        let source = write(
            "main.cu",
            "# include \"kernel.cu\"\n#include \"loop.cuh\"\n#include <vector>\n#include \"main.tune.h\"\n",
        );
        let paths = |files: &[MarkedFile]| files.iter().map(|file| file.path.clone()).collect::<Vec<_>>();
        let found = marked_files(&source, &[folder.path().join("inc")], "main.tune.h");
        assert_eq!((paths(&found.marked), paths(&found.nearly)), (vec![kernel], vec![nearly]));
        let header_includes = BTreeSet::from(["main.tune.h".to_owned()]);
        assert_eq!(found.header_includes, header_includes);
        assert_eq!(marked_files(&source, &[], "main.tune.h"), Found { header_includes, ..Found::default() });
    }
}
