//! The layers of `src/`: a module uses only modules below it, and files of one module do not use each other in circles.
//!
//! Every path in the code counts, in `use` declarations and elsewhere; comments and strings do not. Tests inside `src/` are
//! bound by the layers and free of the rule on circles.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The modules of `src/`, lowest layer first. `ARCHITECTURE.md` says what each holds.
const LAYERS: [&str; 24] = [
    "diag",
    "process",
    "settings",
    "gpu",
    "launch",
    "ptx",
    "sass",
    "cuda",
    "comment",
    "space",
    "workload",
    "sim",
    "analysis",
    "model",
    "search",
    "measure",
    "emit",
    "record",
    "recording",
    "proposal",
    "nvcc",
    "tune",
    "driver",
    "cli",
];

/// Modules whose files form no circles.
const ACYCLIC: [&str; 22] = [
    "diag",
    "process",
    "settings",
    "gpu",
    "launch",
    "ptx",
    "sass",
    "comment",
    "space",
    "workload",
    "sim",
    "analysis",
    "model",
    "search",
    "measure",
    "emit",
    "record",
    "recording",
    "proposal",
    "nvcc",
    "driver",
    "cli",
];

/// A file of the crate: its path below `src/`, its module path and its code without comments and strings.
struct File {
    path: String,
    module: Vec<String>,
    code: String,
}

impl File {
    fn new(path: &str, text: &str) -> Self {
        let stem = path.trim_end_matches(".rs");
        let mut module: Vec<String> = stem.split('/').map(str::to_owned).collect();
        if matches!(module.last().map(String::as_str), Some("mod" | "lib" | "main")) {
            module.pop();
        }
        Self { path: path.to_owned(), module, code: without_comments_and_strings(text) }
    }

    /// Resolves `crate::a::b`, `super::b` and `self::b` to paths from the crate's root, with the line of each.
    fn paths(&self, code: &str) -> Vec<(usize, Vec<String>)> {
        let mut found = Vec::new();
        for keyword in ["crate", "super", "self"] {
            for (at, _) in code.match_indices(keyword) {
                let before = code[..at].chars().next_back().unwrap_or(' ');
                let is_start = !(before.is_alphanumeric() || "_:$.".contains(before));
                if is_start && code[at + keyword.len()..].starts_with("::") {
                    let line = code[..at].matches('\n').count() + 1;
                    let inner = inline_modules(code, at);
                    let base = [self.module.clone(), inner].concat();
                    let paths = expand(&code[at..]);
                    found.extend(paths.into_iter().filter_map(|path| Some((line, absolute(&base, path)?))));
                }
            }
        }
        found
    }
}

/// Names of the inline modules (`mod tests { ... }`) around a place.
fn inline_modules(code: &str, at: usize) -> Vec<String> {
    let mut open: Vec<Option<String>> = Vec::new();
    let mut words: Vec<&str> = Vec::new();
    for (index, c) in code[..at].char_indices() {
        match c {
            '{' => {
                let statement = code[..index].rsplit([';', '{', '}']).next().unwrap_or_default();
                words.clear();
                words.extend(statement.split_whitespace());
                let name = words.iter().rposition(|word| *word == "mod").and_then(|mod_at| words.get(mod_at + 1));
                open.push(name.map(|name| (*name).to_owned()));
            }
            '}' => drop(open.pop()),
            _ => {}
        }
    }
    open.into_iter().flatten().collect()
}

/// Expands the path at the start of a text: `crate::{a, b::{c, d}}` is `crate::a`, `crate::b::c` and `crate::b::d`.
fn expand(text: &str) -> Vec<Vec<String>> {
    let mut prefix = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        prefix.push(rest[..end].to_owned());
        let Some(next) = rest[end..].strip_prefix("::") else { return vec![prefix] };
        if !next.starts_with('{') {
            rest = next;
            continue;
        }
        let mut depth = 0;
        let close = next.char_indices().find_map(|(at, c)| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            (depth == 0).then_some(at)
        });
        let inner = &next[1..close.unwrap_or(next.len())];
        let mut items = Vec::new();
        let (mut depth, mut from) = (0, 0);
        for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
            depth += i32::from(c == '{') - i32::from(c == '}');
            if c == ',' && depth == 0 {
                items.push(inner[from..at].trim());
                from = at + 1;
            }
        }
        let items = items.into_iter().filter(|item| !item.is_empty());
        return items.flat_map(expand).map(|tail| [prefix.clone(), tail].concat()).collect();
    }
}

/// Makes a path absolute, as seen from a module; the first name below the crate's root comes first.
fn absolute(base: &[String], mut path: Vec<String>) -> Option<Vec<String>> {
    path.retain(|name| !name.is_empty());
    match path.first().map(String::as_str) {
        Some("crate") => Some(path.split_off(1)),
        Some("self") => Some([base.to_vec(), path.split_off(1)].concat()),
        _ => {
            let ups = path.iter().take_while(|name| *name == "super").count();
            let kept = base.len().checked_sub(ups)?;
            Some([base[..kept].to_vec(), path.split_off(ups)].concat())
        }
    }
}

/// Replaces comments, strings and characters by blanks; lines stay where they are.
fn without_comments_and_strings(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let is_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        let raw = rest.strip_prefix('r').or_else(|| rest.strip_prefix("br")).filter(|_| !is_word);
        let hashes = raw.map_or(0, |raw| raw.len() - raw.trim_start_matches('#').len());
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if raw.is_some_and(|raw| raw[hashes..].starts_with('"')) {
            let open = rest.find('"').unwrap_or_default() + 1;
            let close = format!("\"{}", "#".repeat(hashes));
            rest[open..].find(&close).map_or(rest.len(), |end| open + end + close.len())
        } else if let Some(string) = rest.strip_prefix('"') {
            let mut escaped = false;
            let end = string.find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |end| end + 2)
        } else if let Some(escape) = rest.strip_prefix("'\\") {
            // `'\''` ends with the quote behind the one that is escaped.
            escape.find('\'').filter(|end| *end < 12).map_or(1, |end| if end == 0 { 4 } else { end + 3 })
        } else if rest.starts_with('\'') && rest.chars().nth(2) == Some('\'') {
            rest.char_indices().nth(3).map_or(rest.len(), |(end, _)| end)
        } else {
            0
        };
        if length == 0 {
            let c = rest.chars().next().unwrap_or_default();
            code.push(c);
            at += c.len_utf8();
        } else {
            code.extend(rest[..length].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            at += length;
        }
    }
    code
}

/// The uses of higher layers, one line for each.
fn upward_uses(files: &[File]) -> String {
    let layer = |name: &str| LAYERS.iter().position(|layer| *layer == name);
    let mut wrong = String::new();
    for file in files {
        let Some(own) = file.module.first().and_then(|name| layer(name)) else { continue };
        for (line, path) in file.paths(&file.code) {
            if let Some(used) = path.first().and_then(|name| layer(name)).filter(|used| *used > own) {
                let (from, to) = (LAYERS[own], LAYERS[used]);
                let _ = writeln!(wrong, "src/{}:{line}: `{from}` uses `{to}`, a higher layer", file.path);
            }
        }
    }
    wrong
}

/// Circles of files that use each other, one line for each.
fn circles(files: &[File], modules: &[&str]) -> String {
    let by_module: BTreeMap<&[String], usize> =
        files.iter().enumerate().map(|(index, file)| (&file.module[..], index)).collect();
    // What a module gives on (`pub use child::Name`) belongs to the file that defines it.
    let mut given_on: BTreeMap<(usize, String), Vec<String>> = BTreeMap::new();
    for (index, file) in files.iter().enumerate() {
        for statement in file.code.split(';').map(str::trim).filter(|statement| statement.starts_with("pub")) {
            let Some(tree) = statement.split_once(" use ").map(|(_, tree)| tree) else { continue };
            for path in expand(tree) {
                let name = path.last().cloned().unwrap_or_default();
                given_on.insert((index, name), [file.module.clone(), path].concat());
            }
        }
    }
    let target = |path: &[String]| {
        let mut path = path.to_vec();
        for _ in 0..4 {
            let length = (1..=path.len()).rev().find(|&length| by_module.contains_key(&path[..length]))?;
            let file = by_module[&path[..length]];
            match path.get(length).and_then(|name| given_on.get(&(file, name.clone()))) {
                Some(real) => path = real.clone(),
                None => return Some(file),
            }
        }
        None
    };
    let uses: Vec<BTreeSet<usize>> = files
        .iter()
        .enumerate()
        .map(|(index, file)| {
            let tests =
                file.code.find("#[cfg(test)]\nmod tests").or(file.code.find("#[cfg(test)]\npub(crate) mod tests"));
            let code = &file.code[..tests.unwrap_or(file.code.len())];
            let statements = code.split(';').filter(|statement| !statement.trim_start().starts_with("pub use"));
            let code: String = statements.map(|statement| format!("{statement};")).collect();
            let mut paths: Vec<Vec<String>> = file.paths(&code).into_iter().map(|(_, path)| path).collect();
            // Children by their names alone.
            for (start, _) in code.match_indices("::") {
                let name =
                    code[..start].rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
                let before = code[..start - name.len()].chars().next_back().unwrap_or(' ');
                let child = [file.module.clone(), vec![name.to_owned()]].concat();
                if !":$.".contains(before) && by_module.contains_key(&child[..]) {
                    paths.extend(
                        expand(&code[start - name.len()..])
                            .into_iter()
                            .map(|path| [file.module.clone(), path].concat()),
                    );
                }
            }
            paths.iter().filter_map(|path| target(path)).filter(|used| *used != index).collect()
        })
        .collect();
    let reaches = |from: usize, to: usize| {
        let (mut open, mut seen) = (vec![from], BTreeSet::new());
        while let Some(file) = open.pop() {
            for &next in &uses[file] {
                if next == to {
                    return true;
                }
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        false
    };
    let within = |file: usize| files[file].module.first().is_some_and(|name| modules.contains(&name.as_str()));
    let members: Vec<&str> =
        (0..files.len()).filter(|&file| within(file) && reaches(file, file)).map(|file| &*files[file].path).collect();
    members.iter().map(|path| format!("src/{path} uses itself by way of others\n")).collect()
}

fn sources() -> Vec<File> {
    fn add(folder: &Path, root: &Path, files: &mut Vec<File>) {
        let mut entries: Vec<PathBuf> =
            std::fs::read_dir(folder).expect("src/ is there").map(|entry| entry.expect("readable").path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                add(&path, root, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a source is text");
                let name = path.strip_prefix(root).expect("it is below").to_string_lossy().into_owned();
                files.push(File::new(&name, &text));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    add(&root, &root, &mut files);
    files
}

#[test]
fn modules_use_lower_layers_only() {
    assert_eq!(upward_uses(&sources()), "");
}

#[test]
fn every_module_is_a_layer() {
    let library = sources().into_iter().find(|file| file.path == "lib.rs").expect("the library");
    let declared = library.code.lines().filter_map(|line| line.split_once("mod ")?.1.strip_suffix(';'));
    let (declared, layers): (BTreeSet<&str>, BTreeSet<&str>) = (declared.collect(), LAYERS.into());
    assert_eq!(declared, layers);
}

#[test]
fn the_map_lists_the_layers_in_their_order() {
    let map = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).expect("the map");
    let rows = map.lines().filter_map(|line| line.strip_prefix("| `src/")?.split_once("/`").map(|(name, _)| name));
    assert_eq!(rows.collect::<Vec<_>>(), LAYERS);
}

#[test]
fn paths_of_the_map_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let map = std::fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the map");
    let is_path = |word: &&str| ["src/", "tests/", "kernels/", "shims/"].iter().any(|top| word.starts_with(top));
    let missing: Vec<&str> =
        map.split('`').skip(1).step_by(2).filter(is_path).filter(|path| !root.join(path).exists()).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn files_of_a_module_form_no_circles() {
    assert_eq!(circles(&sources(), &ACYCLIC), "");
}

#[test]
fn an_upward_use_is_found_in_every_form() {
    for code in [
        "use crate::tune::Tuner;",
        "pub(crate) use crate::{diag::Span, tune::Tuner};",
        "use super::super::tune;",
        "fn f() { crate::tune::run() }",
        "fn f(x: Option<crate::tune::Tuner>) {}",
        "mod inner { use super::super::super::tune::Tuner; }",
        "macro_rules! m { () => { 'c' } }\nuse crate::cuda::{\n    tokens::{self, Token},\n};\nuse crate::tune::Tuner;",
    ] {
        assert_ne!(upward_uses(&[File::new("ptx/parser.rs", code)]), "", "{code}");
    }
    for code in [
        "use crate::diag::Span;",
        "use super::module::Module;",
        "// crate::tune::Tuner\nfn f() { \"crate::tune::Tuner\"; r#\"crate::tune\"#; }",
        "mod tests { use super::*; use crate::gpu::{Device, WARP}; }",
        "/// [`crate::tune::Tuner`]\nfn f<'a>(x: &'a str) {}",
    ] {
        assert_eq!(upward_uses(&[File::new("ptx/parser.rs", code)]), "", "{code}");
    }
}

#[test]
fn a_circle_is_found_through_what_a_module_gives_on() {
    let circle = |a: &str, b: &str| {
        let files = [
            File::new("ptx/mod.rs", "mod a;\nmod b;\npub use a::A;\npub use b::B;"),
            File::new("ptx/a.rs", a),
            File::new("ptx/b.rs", b),
        ];
        circles(&files, &["ptx"])
    };
    let both = "src/ptx/a.rs uses itself by way of others\nsrc/ptx/b.rs uses itself by way of others\n";
    assert_eq!(circle("use super::b::B; pub struct A;", "use super::a::A; pub struct B;"), both);
    assert_eq!(circle("use super::B; pub struct A;", "fn f(a: crate::ptx::A) {} pub struct B;"), both);
    assert_eq!(circle("use super::b::B; pub struct A;", "pub struct B;"), "");
    assert_eq!(
        circle("use super::B; pub struct A;", "pub struct B;\n#[cfg(test)]\nmod tests { use super::super::A; }"),
        ""
    );
}
