//! A call as a whole -> what an earlier call with the same inputs decided, without a process
//! started.
//!
//! In: the call, its settings and the texts of its marked files. Out: the winners of all its
//! kernels, or nothing. Invariant: a result is taken only where every file that the
//! front end read is as it was (by size and times, else by its digest), the same programs would
//! run, the lock file says the same of these kernels, and no other result for them came into
//! the cache. One thing is not seen: a new file that would now be found earlier on the include
//! path; the machine code is compared all the same.

use crate::diag::console::{Console, RecordedMessage};
use crate::nvcc::{Programs, on_path};
use crate::process;
use crate::record::result_store::Results;
use crate::record::{Cache, ENGINE, Kind, checksum, digest, read_regular};
use crate::settings::Settings;
use crate::tune::Tuned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What the compiler's tools read of the environment, besides PATH, by which the programs are
/// found that are compared anyway; and which kernels are marked by it.
const ENVIRONMENT: [&str; 11] = [
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "NVCC_CCBIN",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "SOURCE_DATE_EPOCH",
    "LC_ALL",
    "NVTUNE_KERNELS",
];

/// File systems may not tell two writes apart that are nearer than this: the times of so young
/// a file prove nothing.
const SETTLED: Duration = Duration::from_secs(2);

/// What was decided for a call, and what that depends on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// Where the toolkit's programs were, as nvcc itself took them: to be compared, not to be
    /// run.
    pub programs: Programs,
    /// What was said, to be said again.
    pub said: Vec<RecordedMessage>,
    /// What is to be said where nvcc has nothing to say.
    #[serde(default)]
    pub deferred: Vec<String>,
    pub sources: Vec<Winners>,
    files: Vec<SeenFile>,
    compilers: Vec<Program>,
    /// The results that the cache had for each kernel.
    known: Vec<Vec<String>>,
}

/// The decisions for one source.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Winners {
    pub architecture: String,
    /// Without the configurations that are neither baseline nor winner.
    pub tuned: Vec<Tuned>,
    /// Checksum of the record; absent where there is none.
    pub record: Option<String>,
    /// Whether the header is included, as the preprocessor has it.
    pub includes_header: bool,
    /// The kernels that were left out, for they are not compiled: file, and line.
    #[serde(default)]
    pub left_out: BTreeSet<(String, u32)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SeenFile {
    path: PathBuf,
    bytes: u64,
    /// Nanoseconds of the times of modification and of status; `None` while they prove nothing.
    times: Option<(i64, i64)>,
    checksum: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Program {
    /// A path, or a name to be found on PATH.
    word: String,
    path: PathBuf,
    bytes: u64,
    modified: i64,
}

impl Winners {
    /// The architectures that anything was decided for.
    fn architectures(&self) -> BTreeSet<&str> {
        let decided = self.tuned.iter().flat_map(Tuned::decisions).map(|decision| decision.architecture.as_str());
        decided.chain([self.architecture.as_str()]).collect()
    }
}

/// Looks one call of nvcc up in the cache.
pub struct CallLookup<'a> {
    cache: &'a Cache,
    results: &'a Results,
    console: &'a Console,
    place: String,
    /// The kernels of the call: comment, name.
    kernels: Vec<(String, String)>,
    begin: SystemTime,
    /// How many messages have nothing to do with the kernels.
    spoken: usize,
}

/// What a call is, for the key of its snapshot.
pub struct Call<'a> {
    pub nvcc: &'a Path,
    pub arguments: &'a [OsString],
    pub settings: &'a Settings,
    /// Each source with its text and those of what it includes with quotes.
    pub sources: Vec<(&'a Path, Vec<Vec<u8>>)>,
    /// Comment and name of each kernel, and the digest of the files of its workload.
    pub kernels: Vec<(String, String, Option<String>)>,
}

impl<'a> CallLookup<'a> {
    /// `None` where there is no cache.
    pub fn new(call: &Call<'_>, results: &'a Results, console: &'a Console) -> Option<Self> {
        let cache = results.cache.as_ref()?;
        let Call { nvcc, arguments, settings, sources, kernels } = call;
        let mut parts: Vec<Vec<u8>> = vec![
            format!("{} {ENGINE} {:?}", env!("CARGO_PKG_VERSION"), settings.trust).into_bytes(),
            format!("{:?} {} {}", settings.mode, settings.strategy, settings.budget).into_bytes(),
            format!("{} {}", settings.candidates, settings.sanitize).into_bytes(),
            results.present.identity.clone().into_bytes(),
            std::env::current_dir().ok()?.into_os_string().as_bytes().to_vec(),
            format!("{:?} {:?}", program(&nvcc.to_string_lossy())?, settings.header_folder).into_bytes(),
        ];
        parts.extend(arguments.iter().map(|word| word.as_bytes().to_vec()));
        for name in ENVIRONMENT {
            let value = std::env::var_os(name).unwrap_or_default();
            parts.push([name.as_bytes(), b"=", value.as_bytes()].concat());
        }
        for (path, texts) in sources {
            parts.push(path.as_os_str().as_bytes().to_vec());
            parts.extend(texts.iter().cloned());
            parts.extend(locked_entries(results, console, path));
        }
        parts.extend(kernels.iter().map(|(comment, name, data)| format!("{name} {comment} {data:?}").into_bytes()));
        let place = format!("calls/{}", digest(parts.iter().map(Vec::as_slice)));
        let kernels = kernels.iter().map(|(comment, name, _)| (comment.clone(), name.clone())).collect();
        let spoken = console.said().len();
        Some(Self { cache, results, console, place, kernels, begin: SystemTime::now(), spoken })
    }

    /// The snapshot of an earlier call, if all is as it was.
    pub fn find(&self) -> Option<Snapshot> {
        let mut snapshot: Snapshot = serde_json::from_slice(&self.cache.get(&self.place)?).ok()?;
        let known = self.known(snapshot.sources.iter().flat_map(Winners::architectures));
        let same_programs = || snapshot.compilers.iter().all(|seen| program(&seen.word).as_ref() == Some(seen));
        // What was trimmed away is no reason to look again; what came is.
        let is_all_known = |(then, now): (&Vec<String>, &Vec<String>)| now.iter().all(|name| then.contains(name));
        if snapshot.known.len() != known.len()
            || !snapshot.known.iter().zip(&known).all(is_all_known)
            || !same_programs()
        {
            return None;
        }
        let mut is_refreshed = false;
        for file in &mut snapshot.files {
            let (bytes, times) = file_stat(&file.path)?;
            if bytes == file.bytes && times.is_some() && times == file.times {
                continue;
            }
            if checksum(&read_regular(&file.path).ok()?) != file.checksum {
                return None;
            }
            is_refreshed |= times.is_some();
            file.times = times;
        }
        if is_refreshed {
            // Next time the times alone will do.
            self.write(&snapshot);
        }
        Some(snapshot)
    }

    /// Keeps what was decided. ``files` are those that the front end read, `compilers` what it
    /// was made of; with each source's winners comes the text of its record.
    pub fn keep(
        &self,
        programs: Programs,
        sources: Vec<(Winners, Option<Vec<u8>>)>,
        files: impl IntoIterator<Item = PathBuf>,
        compilers: impl IntoIterator<Item = String>,
    ) {
        let files: Option<Vec<SeenFile>> = files.into_iter().map(|path| self.seen(path)).collect();
        let compilers: Option<Vec<Program>> = compilers.into_iter().map(|word| program(&word)).collect();
        let (Some(files), Some(compilers)) = (files, compilers) else { return };
        let mut winners = Vec::new();
        for (of_source, record) in sources {
            let record = record.map(|text| {
                let sum = checksum(&text);
                self.results.write(self.console, |cache| cache.put(&format!("records/{sum}"), &text));
                sum
            });
            let tuned = of_source.tuned.iter().map(Tuned::condensed).collect();
            winners.push(Winners { tuned, record, ..of_source });
        }
        if process::has_faulted() {
            // What was said of the fault is not to be said again.
            return;
        }
        let said = self.console.said().split_off(self.spoken);
        let known = self.known(winners.iter().flat_map(Winners::architectures));
        let deferred = self.console.deferred();
        self.write(&Snapshot { programs, said, deferred, sources: winners, files, compilers, known });
    }

    /// The text of a record by its checksum.
    pub fn record(&self, sum: &str) -> Option<Vec<u8>> {
        // The text is what the name says, and the name is no path.
        let is_name = sum.len() == 64 && sum.bytes().all(|digit| digit.is_ascii_hexdigit());
        let text = is_name.then(|| self.cache.get(&format!("records/{sum}")))??;
        (checksum(&text) == sum).then_some(text)
    }

    /// Forgets what was kept for this call.
    pub fn forget(&self) {
        self.cache.remove(&self.place);
    }

    fn write(&self, snapshot: &Snapshot) {
        let Ok(text) = serde_json::to_vec(snapshot) else { return };
        self.results.write(self.console, |cache| cache.put(&self.place, &text));
    }

    /// The names of the results that the cache has for each kernel and architecture.
    fn known<'b>(&self, architectures: impl Iterator<Item = &'b str>) -> Vec<Vec<String>> {
        let each = architectures.flat_map(|architecture| {
            self.kernels.iter().map(move |(comment, kernel)| Kind { comment, kernel, architecture })
        });
        each.map(|kind| kind.names(self.cache)).collect()
    }

    /// A file as it is; `None` where it changed while it was being compiled, or is gone.
    fn seen(&self, path: PathBuf) -> Option<SeenFile> {
        let modified = path.metadata().ok()?.modified().ok()?;
        if modified > self.begin {
            return None;
        }
        let (bytes, times) = file_stat(&path)?;
        Some(SeenFile { bytes, times, checksum: checksum(&read_regular(&path).ok()?), path })
    }
}

/// Size and times of a file; no times where they are too young to prove that it is as it was.
fn file_stat(path: &Path) -> Option<(u64, Option<(i64, i64)>)> {
    let data = path.metadata().ok()?;
    let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    let times = (nanoseconds(data.mtime(), data.mtime_nsec()), nanoseconds(data.ctime(), data.ctime_nsec()));
    let now = SystemTime::now().checked_sub(SETTLED)?.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos();
    let settled = i128::from(times.0.max(times.1)) < i128::try_from(now).ok()?;
    Some((data.len(), settled.then_some(times)))
}

/// A program as it would be found now.
fn program(word: &str) -> Option<Program> {
    let path = if word.contains('/') { PathBuf::from(word) } else { on_path(OsStr::new(word))? };
    let data = path.metadata().ok()?;
    let modified = data.mtime().saturating_mul(1_000_000_000).saturating_add(data.mtime_nsec());
    Some(Program { word: word.to_owned(), bytes: data.len(), modified, path })
}

/// What the lock file says of the kernels of a source.
fn locked_entries(results: &Results, console: &Console, source: &Path) -> Vec<Vec<u8>> {
    let Some(file) = results.lock(source, console) else { return Vec::new() };
    let folder = file.path.parent().unwrap_or(Path::new("/"));
    let prefix = format!("{}: ", crate::record::lock::relative(source, folder));
    let entries = file.lock.entries.iter().filter(|(key, _)| key.starts_with(&prefix));
    let name = file.name().into_bytes();
    entries.map(|(key, entry)| format!("{key} {entry:?}").into_bytes()).chain([name]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn young_times_prove_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.h");
        std::fs::write(&path, "x").expect("written");
        assert_eq!(file_stat(&path), Some((1, None)));
        assert!(matches!(file_stat(Path::new("/bin/sh")), Some((_, Some(_)))));
        assert_eq!(file_stat(&folder.path().join("none")), None);
    }
}
