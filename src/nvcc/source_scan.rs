//! Which files of a compile carry tuning comments: the source itself and what it includes, but
//! for headers of the system.
//!
//! This runs at every compile, so it reads files once and looks at nothing but `#include`, what
//! that may name by a macro, and the marker.

use crate::comment::{Mark, mark, mark_selected, near_misses, occurrences, tune_pragma};
use crate::diag::diagnostic::nearest;
use crate::diag::{Diagnostic, Source};
use crate::record::read_regular;
use crate::settings::KernelSelection;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What a compile includes, and where that is looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchPaths {
    /// Searched for quoted includes, after the folder of the including file.
    pub quoted: Vec<PathBuf>,
    /// For includes with angle brackets, before the system's: none of a toolkit's.
    pub angled: Vec<PathBuf>,
    /// What is included before each source (`-include`).
    pub first: Vec<PathBuf>,
    /// The macros of the command line; one without a value is 1.
    pub macros: Vec<(String, String)>,
}

impl SearchPaths {
    /// The same for who is in another folder.
    pub fn seen_from(&mut self, folder: &Path) {
        let paths = self.quoted.iter_mut().chain(&mut self.angled).chain(&mut self.first);
        paths.for_each(|path| *path = folder.join(&*path));
    }
}

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

/// These files and what they include with quotes, in the order in which they are met.
pub fn quoted_files<'a>(from: impl IntoIterator<Item = &'a Path>, paths: &SearchPaths) -> Vec<MarkedFile> {
    let paths = SearchPaths { angled: Vec::new(), ..paths.clone() };
    let mut files = Vec::new();
    walk(from.into_iter().map(Path::to_path_buf).collect(), &paths, |file| {
        files.push(MarkedFile { path: file.path, text: file.text });
    });
    files
}

/// What is found in a source and what it includes, each in the order in which it is met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScannedFiles {
    pub marked: Vec<MarkedFile>,
    /// Kernels that are marked by no comment of their own: file, and line.
    pub selected: BTreeSet<(PathBuf, u32)>,
    /// Warnings of selected kernels that need a comment of their own.
    pub unmarked: Vec<Diagnostic>,
    /// Files that are not marked, with what may have been meant as a mark.
    pub nearly: Vec<MarkedFile>,
    /// What they include the header by that is asked for: its name, or a path that ends in
    /// that.
    pub header_includes: BTreeSet<String>,
    /// Files that ask by `__has_include` for a misspelled header of the source, with the name
    /// that they ask for.
    pub missing_headers: Vec<(MarkedFile, String)>,
}

/// A header that tells a toolkit's folder, which many builds name with `-I`.
const TOOLKIT: &str = "cuda_runtime.h";

/// Folders that a compiler takes for the system's, also where `-I` names them.
const SYSTEM_FOLDERS: [&str; 2] = ["/usr/include", "/usr/local/include"];

/// Sources and all that they include but for the system's headers, in the order in which they
/// are met.
pub fn included_files(sources: &[&Path], paths: &SearchPaths) -> Vec<MarkedFile> {
    let mut files = Vec::new();
    walk_included(sources, paths, |file| files.push(MarkedFile { path: file.path, text: file.text }));
    files
}

/// Looks for marks, for kernels that are selected, and for who includes the header
/// `header_name`.
pub fn marked_files(
    source: &Path,
    paths: &SearchPaths,
    header_name: &str,
    selection: &KernelSelection,
) -> ScannedFiles {
    let mut found = ScannedFiles::default();
    walk_included(&[source], paths, |Visited { path, text, directives, is_quoted }| {
        let Directives { includes, queries, has_tune_pragma } = directives;
        for name in queries.into_iter().filter(|name| is_misspelled(name, header_name)) {
            let folders = path.parent().into_iter().chain(paths.quoted.iter().map(PathBuf::as_path));
            if !folders.into_iter().any(|folder| is_made(&folder.join(&name))) {
                found.missing_headers.push((MarkedFile { path: path.clone(), text: text.clone() }, name));
            }
        }
        let names = includes.into_iter().filter_map(|include| match include {
            Include::Quoted(name) | Include::Angled(name) => Some(name),
            Include::Macro(_) => None,
        });
        let is_header = |name: &String| Path::new(name).file_name().is_some_and(|file| file == header_name);
        found.header_includes.extend(names.filter(is_header));
        // A library's kernels are not the project's.
        let selected = (!selection.is_nothing() && is_quoted)
            .then(|| mark_selected(&path.to_string_lossy(), &text, &|name| selection.selects(name)))
            .flatten();
        let text = match selected {
            Some(selected) => {
                found.selected.extend(selected.lines.into_iter().map(|line| (path.clone(), line)));
                found.unmarked.extend(selected.unmarked);
                selected.text
            }
            None => text,
        };
        match mark(&text) {
            Mark::Tuned => found.marked.push(MarkedFile { path, text }),
            // Others' headers have words of their own.
            Mark::Nearly if is_quoted => found.nearly.push(MarkedFile { path, text }),
            Mark::Nothing if is_quoted && has_tune_pragma => found.nearly.push(MarkedFile { path, text }),
            Mark::Nearly | Mark::Nothing => {}
        }
    });
    found
}

/// What the name of a header of nvtune's ends with.
const HEADER_END: &str = ".tune.h";

/// Tells whether a name is that of the header with a slip in it.
fn is_misspelled(name: &str, header: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    let stems = name.strip_suffix(HEADER_END).zip(header.strip_suffix(HEADER_END));
    stems.is_some_and(|(name, header)| name != header && nearest(name, [header]).is_some())
}

/// Tells whether a header of nvtune's is there, or a source is that it is made of.
fn is_made(header: &Path) -> bool {
    let stem = header.to_string_lossy().into_owned();
    let stem = stem.strip_suffix(HEADER_END).unwrap_or(&stem);
    header.is_file() || SOURCE_EXTENSIONS.iter().any(|extension| Path::new(&format!("{stem}.{extension}")).is_file())
}

/// Extensions of sources that may hold kernels.
const SOURCE_EXTENSIONS: [&str; 5] = ["cu", "cpp", "cc", "cxx", "c"];

/// What an `#include` names.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Include {
    Quoted(String),
    Angled(String),
    Macro(String),
}

impl Include {
    /// Reads what stands behind `#include`, or in the place of a macro there.
    fn parse(text: &[u8]) -> Option<Self> {
        let until = |end: u8| {
            let line = text.get(1..)?;
            let length = line.iter().position(|&byte| byte == end || byte == b'\n')?;
            (line[length] == end).then(|| std::str::from_utf8(&line[..length]).ok())?.map(str::to_owned)
        };
        match text.first()? {
            b'"' => until(b'"').map(Self::Quoted),
            b'<' => until(b'>').map(Self::Angled),
            _ => identifier(text).map(|name| Self::Macro(name.to_owned())),
        }
    }
}

/// A file, its directives, and whether only quotes led to it.
struct Visited {
    path: PathBuf,
    text: Vec<u8>,
    directives: Directives,
    is_quoted: bool,
}

/// The preprocessor's lines of a file, as far as they matter here.
#[derive(Debug, Default, PartialEq, Eq)]
struct Directives {
    includes: Vec<Include>,
    /// What `__has_include` asks for.
    queries: Vec<String>,
    /// Whether a pragma may be meant as a tuning comment.
    has_tune_pragma: bool,
}

/// Visits sources and what they include, but for the system's headers.
fn walk_included(sources: &[&Path], paths: &SearchPaths, visit: impl FnMut(Visited)) {
    let is_own = |folder: &&PathBuf| {
        !SYSTEM_FOLDERS.iter().any(|other| *folder == Path::new(other)) && !folder.join(TOOLKIT).is_file()
    };
    let paths = SearchPaths { angled: paths.angled.iter().filter(is_own).cloned().collect(), ..paths.clone() };
    let first = paths.first.iter().filter_map(|name| {
        let mut places = std::iter::once(name.clone()).chain(paths.quoted.iter().map(|folder| folder.join(name)));
        places.find(|place| place.is_file())
    });
    // The last is the first to be read.
    let mut from: Vec<PathBuf> = first.chain(sources.iter().map(|path| path.to_path_buf())).collect();
    from.reverse();
    walk(from, &paths, visit);
}

/// Visits files and what they include; the last of `from` first.
fn walk(from: Vec<PathBuf>, paths: &SearchPaths, mut visit: impl FnMut(Visited)) {
    let mut seen = BTreeSet::new();
    let mut pending: Vec<(PathBuf, Metadata, bool)> =
        from.into_iter().filter_map(regular).map(|(path, data)| (path, data, true)).collect();
    let mut macros: BTreeMap<String, Include> = BTreeMap::new();
    for (name, value) in &paths.macros {
        macros.extend(Include::parse(value.as_bytes()).map(|include| (name.clone(), include)));
    }
    // Who includes what by a macro that is not known yet.
    let mut unknown: Vec<(PathBuf, String, bool)> = Vec::new();
    loop {
        while let Some((path, data, is_quoted)) = pending.pop() {
            let folder = path.parent().unwrap_or(Path::new(""));
            // By identity: a file that includes `x/../itself` has another path each time. Of two links in
            // different folders each includes what is next to it.
            let identity = |data: &Metadata| (data.dev(), data.ino());
            if !seen.insert((identity(&data), Path::new(".").join(folder).metadata().ok().as_ref().map(identity))) {
                continue;
            }
            // A file that cannot be read is nvcc's to complain about.
            let Ok(text) = read_regular(&path) else { continue };
            let directives = directives(&text, &mut macros);
            for include in &directives.includes {
                match include {
                    Include::Macro(name) => unknown.push((folder.to_path_buf(), name.clone(), is_quoted)),
                    include => pending.extend(included(folder, include, paths, is_quoted)),
                }
            }
            visit(Visited { path, text, directives, is_quoted });
        }
        let (known, rest): (Vec<_>, Vec<_>) = unknown.into_iter().partition(|(_, name, _)| macros.contains_key(name));
        unknown = rest;
        pending.extend(
            known.iter().filter_map(|(folder, name, is_quoted)| included(folder, macros.get(name)?, paths, *is_quoted)),
        );
        if pending.is_empty() {
            break;
        }
    }
}

/// The file that an include means, unless it is the system's.
fn included(
    folder: &Path,
    include: &Include,
    paths: &SearchPaths,
    is_quoted: bool,
) -> Option<(PathBuf, Metadata, bool)> {
    let find = |mut folders: &mut dyn Iterator<Item = &Path>, name: &String| {
        (&mut folders).map(|folder| folder.join(name)).find_map(regular)
    };
    let (found, is_quoted) = match include {
        Include::Quoted(name) => {
            let folders = &mut std::iter::once(folder).chain(paths.quoted.iter().map(PathBuf::as_path));
            (find(folders, name), is_quoted)
        }
        Include::Angled(name) => (find(&mut paths.angled.iter().map(PathBuf::as_path), name), false),
        Include::Macro(_) => return None,
    };
    found.map(|(path, data)| (path, data, is_quoted))
}

/// A file with what it is; none where it is a folder, or a pipe, whose contents are there but
/// once.
fn regular(path: PathBuf) -> Option<(PathBuf, Metadata)> {
    let data = std::fs::metadata(&path).ok()?;
    data.is_file().then_some((path, data))
}

/// Reads the directives of a file; macros that are defined to what `#include` may name go into
/// `macros`.
fn directives(text: &[u8], macros: &mut BTreeMap<String, Include>) -> Directives {
    let is_blank = |byte: &&u8| byte.is_ascii_whitespace() && **byte != b'\n';
    let mut found = Directives::default();
    for position in occurrences(text, b'#') {
        // The first thing on its line.
        if text[..position].iter().rev().find(|byte| !is_blank(byte)).is_some_and(|&byte| byte != b'\n') {
            continue;
        }
        let after = text[position + 1..].trim_ascii_start();
        let behind = |word: &[u8]| {
            let rest = after.strip_prefix(word)?;
            let is_whole = !rest.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
            is_whole.then(|| &rest[rest.iter().take_while(is_blank).count()..])
        };
        if let Some(named) = behind(b"include").or_else(|| behind(b"import")) {
            found.includes.extend(Include::parse(named));
        } else if let Some(definition) = behind(b"define")
            && let Some(name) = identifier(definition)
            && let value = &definition[name.len()..]
            && let value = &value[value.iter().take_while(is_blank).count()..]
            && matches!(value.first(), Some(b'"' | b'<'))
        {
            macros.extend(Include::parse(value).map(|include| (name.to_owned(), include)));
        } else if let Some(condition) = behind(b"if").or_else(|| behind(b"elif")) {
            found.queries.extend(query(condition));
        } else if after.starts_with(b"pragma") {
            found.has_tune_pragma |= tune_pragma(&after[b"pragma".len()..]).is_some();
        }
    }
    found
}

/// Returns what the first `__has_include` of a condition asks for.
fn query(condition: &[u8]) -> Option<String> {
    const WORD: &[u8] = b"__has_include";
    let line = &condition[..condition.iter().position(|&byte| byte == b'\n').unwrap_or(condition.len())];
    let start = occurrences(line, b'_').find(|&at| line[at..].starts_with(WORD))? + WORD.len();
    let named = line[start..].trim_ascii_start().strip_prefix(b"(")?.trim_ascii_start();
    match Include::parse(named)? {
        Include::Quoted(name) | Include::Angled(name) => Some(name),
        Include::Macro(_) => None,
    }
}

/// The identifier that a text begins with.
fn identifier(text: &[u8]) -> Option<&str> {
    let length = text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
    std::str::from_utf8(&text[..length]).ok().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a file below a folder, and returns its path.
    fn write(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        std::fs::write(&path, text).expect("written");
        path
    }

    #[test]
    fn comments_are_found_through_quoted_includes() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, text: &str| write(&folder, name, text);
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
        let quoted = SearchPaths { quoted: vec![folder.path().join("inc")], ..SearchPaths::default() };
        let found = marked_files(&source, &quoted, "main.tune.h", &KernelSelection::Nothing);
        assert_eq!((paths(&found.marked), paths(&found.nearly)), (vec![kernel], vec![nearly]));
        let header_includes = BTreeSet::from(["main.tune.h".to_owned()]);
        assert_eq!(found.header_includes, header_includes);
        let none = SearchPaths::default();
        assert_eq!(
            marked_files(&source, &none, "main.tune.h", &KernelSelection::Nothing),
            ScannedFiles { header_includes, ..ScannedFiles::default() }
        );
    }

    #[test]
    fn pragma_that_means_a_tuning_comment_is_nearly_a_mark() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (text, is_nearly) in [
            ("#pragma tune block(auto)\n", true),
            (" # pragma nvtune\n", true),
            ("#pragma once\n#pragma unroll 4\n", false),
            ("int x; #pragma tune\n", false),
        ] {
            let source = write(&folder, "a.cu", text);
            let found = marked_files(&source, &SearchPaths::default(), "a.tune.h", &KernelSelection::Nothing);
            assert_eq!((found.marked.len(), found.nearly.len()), (0, usize::from(is_nearly)), "{text}");
        }
    }

    #[test]
    fn header_asked_for_by_a_misspelled_name_is_missing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        write(&folder, "saxpy2.cu", "");
        write(&folder, "inc/saxpy3.tune.h", "");
        let paths = SearchPaths { quoted: vec![folder.path().join("inc")], ..SearchPaths::default() };
        for (text, missing) in [
            ("#if __has_include(\"saxpy.tune.h\")\n", None),
            ("#if __has_include(\"out/saxpy.tune.h\")\n", None),
            ("#if defined X && __has_include( \"sxapy.tune.h\" )\n", Some("sxapy.tune.h")),
            ("#ifdef X\n#elif __has_include(<out/saxpi.tune.h>)\n", Some("out/saxpi.tune.h")),
            ("#if __has_include(\"saxpy2.tune.h\")\n", None),
            ("#if __has_include(\"saxpy3.tune.h\")\n", None),
            ("#if __has_include(\"other.tune.h\")\n", None),
            ("#if __has_include(\"sxapy.h\")\n", None),
        ] {
            let source = write(&folder, "saxpy.cu", text);
            let found = marked_files(&source, &paths, "saxpy.tune.h", &KernelSelection::Nothing).missing_headers;
            let names: Vec<&str> = found.iter().map(|(_, name)| name.as_str()).collect();
            assert_eq!(names, Vec::from_iter(missing), "{text}");
        }
    }

    #[test]
    fn each_way_to_include_a_file_is_followed_but_the_systems() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let write = |name: &str, text: &str| write(&folder, name, text);
        let kernel = write("inc/kernel.cuh", "//@tune block(auto)\n__global__ void k() {}\n");
        write("other/by.h", "#include \"neighbour.h\"\n");
        write("other/neighbour.h", "");
        write("links/neighbour.h", "#include <kernel.cuh>\n");
        std::fs::hard_link(folder.path().join("other/by.h"), folder.path().join("links/by.h")).expect("linked");
        let inc = || vec![folder.path().join("inc")];
        let value = |value: &str| vec![("NAME".to_owned(), value.to_owned())];
        let base = SearchPaths { angled: inc(), ..SearchPaths::default() };
        for (text, paths, is_found) in [
            ("#include <kernel.cuh>\n", base.clone(), true),
            ("#import <kernel.cuh>\n", base.clone(), true),
            ("#include <kernel.cuh>\n", SearchPaths { quoted: inc(), ..SearchPaths::default() }, false),
            ("#include NAME\n#define NAME <kernel.cuh>\n", base.clone(), true),
            ("#include NAME\n", SearchPaths { macros: value("<kernel.cuh>"), ..base.clone() }, true),
            ("#include NAME\n", SearchPaths { macros: value("3"), ..base.clone() }, false),
            ("", SearchPaths { quoted: inc(), first: vec!["kernel.cuh".into()], ..SearchPaths::default() }, true),
            ("#include \"other/by.h\"\n#include \"links/by.h\"\n", base.clone(), true),
            ("#include_next <kernel.cuh>\n#included <kernel.cuh>\n", base.clone(), false),
        ] {
            let source = write("main.cu", text);
            let found = marked_files(&source, &paths, "main.tune.h", &KernelSelection::Nothing).marked;
            let found: Vec<PathBuf> = found.into_iter().map(|file| file.path).collect();
            assert_eq!(found, Vec::from_iter(is_found.then(|| kernel.clone())), "{text}");
        }
    }
}
