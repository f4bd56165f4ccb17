//! The lock file: winners that a build takes as they are, in a form made to be committed and
//! merged.
//!
//! JSON with sorted keys, an entry for each source, kernel and architecture, one line for each
//! fact. The same entries give the same bytes. A file of a newer format, or one that is damaged
//! (by a merge that went wrong), gives an error with its place. An entry that cannot be used
//! leaves the others as they are.

use super::decision::LockEntry;
use super::file::{read_regular, write_if_changed};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use thiserror::Error;

/// The name that is looked for above a source.
pub const LOCK_FILE: &str = "nvtune.lock";

/// Version of the format that is written; all from 1 up to it are read.
pub const LOCK_FORMAT: u64 = 1;

/// The last key among the entries, so that every entry ends with a comma: two branches that add
/// one each then touch no common line.
const END: &str = "~";

/// Why a lock file cannot be used.
#[derive(Debug, Error)]
pub enum LockError {
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    #[error("is no lock file: {0}")]
    Json(#[from] serde_json::Error),
    #[error("is no lock file: it has no `format`")]
    NoFormat,
    #[error("is of format {0}, and this nvtune reads up to {LOCK_FORMAT}: use the nvtune that wrote it")]
    Newer(u64),
}

/// The entries of a lock file by key, as [`key`] makes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lock {
    pub entries: BTreeMap<String, LockEntry>,
    /// Why an entry cannot be used, by its key.
    pub problems: BTreeMap<String, String>,
}

/// The file as it is read: a key that is there twice is there twice.
#[derive(Deserialize)]
struct FileText {
    format: Option<Value>,
    #[serde(default)]
    kernels: Pairs,
}

/// The members of an object in their order.
#[derive(Default)]
struct Pairs(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Pairs;
            fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
                text.write_str("an object of entries")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// The key of an entry: `src/saxpy.cu: saxpy, sm_90`. `source` is relative to the lock file's
/// folder.
pub fn key(source: &str, kernel: &str, architecture: &str) -> String {
    format!("{source}: {kernel}, {architecture}")
}

/// The source, the kernel and the architecture that a key names.
pub fn parts(key: &str) -> Option<(&str, &str, &str)> {
    let (source, rest) = key.rsplit_once(": ")?;
    let (kernel, architecture) = rest.rsplit_once(", ")?;
    Some((source, kernel, architecture))
}

/// A source's path as a lock file in `folder` names it: relative, with `/`, without `.` and
/// `..` where they can be spared. Both are taken as they are written, links are not followed.
pub fn relative(source: &Path, folder: &Path) -> String {
    let (source, folder) = (plain(source), plain(folder));
    let common = source.components().zip(folder.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(common).map(|_| OsStr::new(".."));
    let down = source.components().skip(common).map(Component::as_os_str);
    let words: Vec<_> = up.chain(down).map(OsStr::to_string_lossy).collect();
    words.join("/")
}

/// The absolute path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// The lock file for a source: `named` (`NVTUNE_LOCK`), else the nearest above the source.
pub fn of_source(named: Option<&Path>, source: &Path) -> Option<PathBuf> {
    match named {
        Some(named) => Some(plain(named)),
        None => plain(source).ancestors().skip(1).map(|folder| folder.join(LOCK_FILE)).find(|path| path.is_file()),
    }
}

/// Tells whether a lock file above a source may decide how it is built. Its owner must be the
/// user, root, or the owner of the source, who decides that anyway.
pub fn is_trusted(path: &Path, source: &Path) -> bool {
    let owner = |path: &Path| path.metadata().map(|data| data.uid());
    let Ok(found) = owner(path) else { return true };
    found == 0 || found == rustix::process::geteuid().as_raw() || owner(source).is_ok_and(|owner| owner == found)
}

impl Lock {
    /// Reads a lock file.
    pub fn read(path: &Path) -> Result<Self, LockError> {
        Self::parse(&read_regular(path)?)
    }

    /// Reads the text of a lock file.
    pub fn parse(text: &[u8]) -> Result<Self, LockError> {
        let file: FileText = serde_json::from_slice(text)?;
        match file.format.as_ref().and_then(Value::as_u64) {
            None | Some(0) => return Err(LockError::NoFormat),
            Some(format) if format > LOCK_FORMAT => return Err(LockError::Newer(format)),
            Some(_) => {}
        }
        let mut lock = Self::default();
        for (key, value) in file.kernels.0.into_iter().filter(|(key, _)| *key != END) {
            if lock.problems.contains_key(&key) {
                continue;
            }
            // A merge that kept both does not say which one counts.
            if lock.entries.remove(&key).is_some() {
                lock.problems.insert(key, "it is there twice".to_owned());
                continue;
            }
            match LockEntry::deserialize(value) {
                Ok(entry) => drop(lock.entries.insert(key, entry)),
                Err(error) => drop(lock.problems.insert(key, error.to_string())),
            }
        }
        Ok(lock)
    }

    /// The text of the file.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        let mut kernels = Map::new();
        for (key, entry) in &self.entries {
            kernels.insert(key.clone(), serde_json::to_value(entry)?);
        }
        kernels.insert(END.to_owned(), Value::Null);
        let mut file = Map::new();
        file.insert("kernels".to_owned(), Value::Object(kernels));
        file.insert("format".to_owned(), LOCK_FORMAT.into());
        let mut text = String::new();
        write(&mut text, &Value::Object(file), 0);
        text.push('\n');
        Ok(text)
    }

    /// Writes the file, whole or not at all, and not where it says this already.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let text = self.text().map_err(|error| error.to_string())?;
        write_if_changed(path, text.as_bytes()).map(drop)
    }
}

/// Objects over several lines with sorted keys, all else on one.
fn write(text: &mut String, value: &Value, depth: usize) {
    let Value::Object(object) = value else {
        text.push_str(&value.to_string());
        return;
    };
    let mut keys: Vec<&String> = object.keys().collect();
    keys.sort();
    text.push('{');
    for (index, key) in keys.iter().enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        text.push_str(&" ".repeat(2 * (depth + 1)));
        text.push_str(&Value::from(key.as_str()).to_string());
        text.push_str(": ");
        write(text, &object[*key], depth + 1);
    }
    text.push('\n');
    text.push_str(&" ".repeat(2 * depth));
    text.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{Configuration, GridLimit, Math, MathOption};
    use crate::record::fingerprint::Fingerprint;
    use crate::search::Provenance;
    use expect_test::expect;

    fn entry(cap: u32) -> LockEntry {
        LockEntry {
            basis: Fingerprint {
                inferred: None,
                instance: None,
                comment: "c0".into(),
                data: None,
                flags: "-arch=sm_90 -m64".into(),
                ptx: "b1".into(),
                toolkit: "13.0.88".into(),
                launches: "entries".into(),
            },
            winner: Configuration {
                cap,
                macros: BTreeMap::from([("TILE".to_owned(), 16)]),
                math: Math::from_iter([MathOption::Ftz, MathOption::FastDiv]),
                ..Configuration::of_block([32, 8, 1])
            },
            code: Some("a2".into()),
            occupancy: Some(75),
            surplus: true,
            grid_limit: Some(GridLimit::AtLeast(512)),
            winner_ptx: Some("b2".into()),
            gpu: Some("NVIDIA H200".into()),
            driver: Some(13000),
            provenance: Provenance::Measured,
            speedup: 1.25,
            points: 192,
            timed: 35,
            nvtune: "0.1.0".into(),
        }
    }

    #[test]
    fn one_line_a_fact_and_back() {
        let lock = Lock {
            entries: BTreeMap::from([(key("src/tiled.cu", "tiled", "sm_90"), entry(64))]),
            problems: BTreeMap::new(),
        };
        let text = lock.text().expect("it is plain data");
        expect![[r#"
            {
              "format": 1,
              "kernels": {
                "src/tiled.cu: tiled, sm_90": {
                  "block": [32,8,1],
                  "cap": 64,
                  "code": "a2",
                  "comment": "c0",
                  "driver": 13000,
                  "flags": "-arch=sm_90 -m64",
                  "gpu": "NVIDIA H200",
                  "grid_limit": {
                    "at_least": 512
                  },
                  "launches": "entries",
                  "macros": {
                    "TILE": 16
                  },
                  "math": ["ftz","fast_div"],
                  "nvtune": "0.1.0",
                  "occupancy": 75,
                  "points": 192,
                  "provenance": "measured",
                  "ptx": "b1",
                  "speedup": 1.25,
                  "surplus": true,
                  "timed": 35,
                  "toolkit": "13.0.88",
                  "winner_ptx": "b2"
                },
                "~": null
              }
            }
        "#]]
        .assert_eq(&text);
        assert_eq!(Lock::parse(text.as_bytes()).expect("its own text"), lock);
    }

    #[test]
    fn what_is_no_lock_file_is_said() {
        for (text, said) in [
            ("", "is no lock file: EOF"),
            ("{\n<<<<<<< ours\n", "is no lock file: key must be a string at line 2"),
            ("{}", "is no lock file: it has no `format`"),
            (r#"{"format": 2}"#, "is of format 2, and this nvtune reads up to 1"),
        ] {
            let problem = Lock::parse(text.as_bytes()).expect_err(text).to_string();
            assert!(problem.starts_with(said), "{text}: {problem}");
        }
    }

    #[test]
    fn entry_that_cannot_be_used_leaves_the_others() {
        let good = serde_json::to_string(&entry(64)).expect("plain data");
        let text = format!(
            r#"{{"format": 1, "kernels": {{"a": {good}, "b": {{}}, "c": {good}, "d": {good}, "c": {good}, "~": null}}}}"#
        );
        let lock = Lock::parse(text.as_bytes()).expect("a lock file");
        assert_eq!(lock.entries.keys().collect::<Vec<_>>(), ["a", "d"]);
        let problems: Vec<String> = lock.problems.iter().map(|(key, why)| format!("{key}: {why}")).collect();
        assert_eq!(problems, ["b: missing field `provenance`", "c: it is there twice"]);
    }

    #[test]
    fn sources_are_named_from_the_locks_folder() {
        for (source, folder, expected) in [
            ("/p/src/a.cu", "/p", "src/a.cu"),
            ("/p/src/../b/./a.cu", "/p/", "b/a.cu"),
            ("/q/a.cu", "/p/sub", "../../q/a.cu"),
        ] {
            assert_eq!(relative(Path::new(source), Path::new(folder)), expected);
        }
        let name = key("a: b.cu", "k_float_16", "sm_90a");
        assert_eq!(parts(&name), Some(("a: b.cu", "k_float_16", "sm_90a")));
    }

    #[test]
    fn git_merges_entries_of_two_branches() {
        let folder = tempfile::tempdir().expect("a folder");
        let git = |arguments: &[&str]| {
            let options = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "init.defaultBranch=one"];
            let mut command = std::process::Command::new("git");
            let done = command.args(options).args(arguments).current_dir(folder.path()).output().expect("git starts");
            assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stdout));
        };
        let path = folder.path().join(LOCK_FILE);
        let with = |names: &[&str]| {
            let entries = names.iter().map(|name| (key("a.cu", name, "sm_90"), entry(0)));
            let lock = Lock { entries: entries.collect(), problems: BTreeMap::new() };
            lock.write(&path).expect("written");
            lock
        };
        git(&["init", "-q"]);
        with(&["b"]);
        git(&["add", "."]);
        git(&["commit", "-qm", "1"]);
        git(&["checkout", "-qb", "two"]);
        with(&["b", "c"]);
        git(&["commit", "-qam", "2"]);
        git(&["checkout", "-q", "one"]);
        with(&["a", "b"]);
        git(&["commit", "-qam", "3"]);
        git(&["merge", "-q", "--no-edit", "two"]);
        let merged = Lock::read(&path).expect("merged");
        assert_eq!(merged, with(&["a", "b", "c"]));
    }
}
