//! `nvtune lock`: the records that builds left -> the lock file, or what of it is stale.

use super::exit_status::CommandFailure;
use super::jobs;
use super::jobs::{BuildJob, Workers};
use super::records;
use crate::diag::MessageCode;
use crate::diag::console::warn;
use crate::driver::marked_source;
use crate::put;
use crate::record::{FORMAT, LOCK_FILE, Lock, LockEntry, LockError, Record, Stale, lock};
use crate::search::Provenance;
use crate::settings::{Settings, Trust};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// What `nvtune lock` is to do.
pub struct LockOptions {
    pub records: Vec<PathBuf>,
    pub check: bool,
    pub update: bool,
    pub lock: Option<PathBuf>,
    pub workers: Workers,
}

/// Runs it; the exit code is 1 where something is stale or missing (`--check`), or could not be
/// done.
pub fn run(options: &LockOptions) -> u8 {
    super::exit_status::exit_code(write_lock(options))
}

fn write_lock(options: &LockOptions) -> Result<u8, CommandFailure> {
    let path = place(options.lock.as_deref())?;
    let mut file = read(&path)?;
    let mut results = Results::default();
    for found in find_records(&options.records)? {
        match read_record(&found) {
            Ok(record) => results.add(&record, &path),
            Err(problem) => {
                return Err(CommandFailure::new(
                    MessageCode::RecordNotRead,
                    format!("'{}': {problem}", found.display()),
                ));
            }
        }
    }
    if options.check {
        return Ok(check_lock(&file, &results));
    }
    let mut failed = false;
    if options.update {
        let stale: BTreeSet<&str> = results.problems(&file).into_iter().map(|(key, _)| key).collect();
        let jobs: Vec<BuildJob> = results
            .jobs
            .iter()
            .filter(|job| {
                job.keys.iter().any(|key| stale.contains(key.as_str()))
                    || results.unlocked(&file).any(|(source, _)| source == job.source)
            })
            .map(|job| job.build.clone())
            .collect();
        let (records, code) = jobs::run(jobs, &options.workers, Trust::Timed);
        failed = code != 0;
        for record in &records {
            results.add(record, &path);
        }
    }
    let changed = merge(&mut file, &results);
    file.write(&path).map_err(CommandFailure::with(MessageCode::CommandFailed))?;
    put!("{}: entries: {}; new or changed: {changed}", path.display(), file.entries.len());
    Ok(u8::from(failed))
}

/// The lock file to write: the named one, that of the environment, the nearest above the
/// current folder, else one in it.
pub fn place(named: Option<&Path>) -> Result<PathBuf, CommandFailure> {
    let here = current_folder()?;
    let (settings, _) = Settings::new(|name| std::env::var_os(name));
    let named = named.map(Path::to_path_buf).or(settings.lock);
    // A file in the current folder stands for it.
    let found = lock::of_source(named.as_deref(), &here.join(LOCK_FILE));
    Ok(found.unwrap_or_else(|| here.join(LOCK_FILE)))
}

pub fn current_folder() -> Result<PathBuf, CommandFailure> {
    let unknown =
        |error| CommandFailure::new(MessageCode::CommandFailed, format!("cannot tell the current folder: {error}"));
    std::env::current_dir().map_err(unknown)
}

/// The lock file's entries; none where it is not there yet.
pub fn read(path: &Path) -> Result<Lock, CommandFailure> {
    match Lock::read(path) {
        Ok(file) => match file.problems.first_key_value() {
            Some((key, why)) => Err(CommandFailure::new(
                MessageCode::LockEntry,
                format!("'{}': entry `{key}` cannot be read: {why}; remove it, and it is made again", path.display()),
            )),
            None => Ok(file),
        },
        Err(LockError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => Ok(Lock::default()),
        Err(error) => Err(CommandFailure::new(MessageCode::LockNotRead, format!("'{}' {error}", path.display()))),
    }
}

/// The records of these places, the oldest first, so that the newest has the last word.
fn find_records(places: &[PathBuf]) -> Result<Vec<PathBuf>, CommandFailure> {
    let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
    for place in places {
        let unread =
            |problem| CommandFailure::new(MessageCode::RecordNotRead, format!("'{}' {problem}", place.display()));
        let records = records::of_place(place).map_err(unread)?;
        let modified =
            |path: &PathBuf| path.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        found.extend(records.into_iter().map(|path| (modified(&path), path)));
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

fn read_record(path: &Path) -> Result<Record, String> {
    let unread = |error: std::io::Error| format!("cannot be read: {error}");
    let mut file = std::fs::File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(unread)?;
    let data = file.metadata().map_err(unread)?;
    // Its arguments are those of a compile that may be run again.
    if ![0, rustix::process::geteuid().as_raw()].contains(&data.uid()) {
        return Err("belongs to another user".to_owned());
    }
    if !data.is_file() {
        return Err("is no file".to_owned());
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(unread)?;
    let record: Record = serde_json::from_slice(&bytes).map_err(|error| format!("is no record of nvtune: {error}"))?;
    if record.format > FORMAT {
        return Err(format!("is of format {}, and this nvtune reads up to {FORMAT}", record.format));
    }
    Ok(record)
}

/// What records say, for one lock file.
#[derive(Default)]
pub struct Results {
    /// The newest of each kernel and architecture. One that nothing is known of says what a
    /// lock would have to depend on, no more.
    now: BTreeMap<String, LockEntry>,
    /// What their builds had against the entries that they met.
    stale: BTreeMap<String, Stale>,
    /// The kernels that the sources have, by the source as the lock names it.
    kernels: BTreeMap<String, BTreeSet<String>>,
    jobs: Vec<RecordedJob>,
}

/// The call that made a record.
struct RecordedJob {
    build: BuildJob,
    /// The source as the lock names it.
    source: String,
    /// The entries of what the record has decided.
    keys: Vec<String>,
}

impl Results {
    /// Adds what a record says.
    pub fn add(&mut self, record: &Record, lock: &Path) {
        let folder = lock.parent().unwrap_or(Path::new("/"));
        let source = lock::relative(&Path::new(&record.folder).join(&record.source), folder);
        let names = marked_source::kernel_names(Path::new(&record.folder), &record.arguments, &record.source);
        let known = record.kernels.iter().map(|decision| decision.name.clone());
        let all = self.kernels.entry(source.clone()).or_default();
        all.extend(names.unwrap_or_default());
        all.extend(known);
        let mut keys = Vec::new();
        for decision in &record.kernels {
            let key = lock::key(&source, &decision.name, &decision.architecture);
            if let Some(pinned) = &decision.pinned {
                if let Some(earlier) = self.now.get(&key).filter(|earlier| earlier.basis.flags != pinned.basis.flags) {
                    let (before, now) = (&earlier.basis.flags, &pinned.basis.flags);
                    let message =
                        format!("{key} was built with `{before}` and with `{now}`: the entry is for the latter");
                    warn(MessageCode::BuiltTwice, message);
                }
                self.now.insert(key.clone(), pinned.clone());
                self.stale.remove(&key);
                self.stale.extend(decision.stale.clone().map(|stale| (key.clone(), stale)));
            }
            keys.push(key);
        }
        let arguments = record.arguments.iter().map(Into::into).collect();
        let (folder, file) = (PathBuf::from(&record.folder), record.source.clone());
        self.jobs.push(RecordedJob { build: BuildJob { folder, file, nvcc: None, arguments }, source, keys });
    }

    /// Keys whose entry is not there, or not what it should be, with what is wrong.
    fn problems<'a>(&'a self, file: &'a Lock) -> Vec<(&'a str, String)> {
        let mut problems = Vec::new();
        for (key, now) in &self.now {
            match file.entries.get(key) {
                None => problems.push((key.as_str(), MessageCode::NotLocked.tag("is not locked"))),
                Some(entry) => {
                    let met = self.stale.get(key).filter(|stale| stale.is_about(entry)).cloned();
                    let stale = met.or_else(|| Stale::between(entry, now));
                    problems.extend(stale.map(|stale| {
                        (key.as_str(), MessageCode::EntryStale.tag(format!("is stale: {}", stale.reason())))
                    }));
                }
            }
        }
        let not_locked = |source: &str| MessageCode::NotLocked.tag(format!("({source}) is not locked"));
        problems.extend(self.unlocked(file).map(|(source, name)| (name, not_locked(source))));
        problems
            .extend(self.orphans(file).map(|key| (key, MessageCode::EntryOrphaned.tag("is of a kernel that is gone"))));
        problems
    }

    /// Kernels without a decision and without an entry: source and name.
    fn unlocked<'a>(&'a self, file: &'a Lock) -> impl Iterator<Item = (&'a str, &'a str)> {
        let all = self.kernels.iter().flat_map(|(source, names)| names.iter().map(move |name| (source, name)));
        let is_known = |source: &String, name: &String| {
            let of = |key: &String| lock::parts(key).is_some_and(|(of, kernel, _)| of == source && kernel == name);
            self.now.keys().any(of) || file.entries.keys().any(of)
        };
        all.filter(move |(source, name)| !is_known(source, name)).map(|(source, name)| (source.as_str(), name.as_str()))
    }

    /// Entries of kernels that the sources no longer have.
    fn orphans<'a>(&'a self, file: &'a Lock) -> impl Iterator<Item = &'a str> {
        file.entries.keys().map(String::as_str).filter(|key| {
            let Some((source, kernel, _)) = lock::parts(key) else { return true };
            self.kernels.get(source).is_some_and(|names| !names.contains(kernel))
        })
    }
}

fn check_lock(file: &Lock, results: &Results) -> u8 {
    let problems = results.problems(file);
    for (key, problem) in &problems {
        put!("{key} {problem}");
    }
    if problems.is_empty() {
        put!("{} entries, all as built", file.entries.len());
    }
    u8::from(!problems.is_empty())
}

/// Puts the results into the lock, takes out what is gone, and gives the number of entries that
/// changed.
pub fn merge(file: &mut Lock, results: &Results) -> usize {
    let gone: Vec<String> = results.orphans(file).map(str::to_owned).collect();
    for key in &gone {
        file.entries.remove(key);
    }
    let mut changed = gone.len();
    for (key, now) in &results.now {
        // A baseline because nothing was known pins nothing.
        if now.provenance == Provenance::Baseline && now.points == 0 {
            continue;
        }
        if file.entries.get(key) != Some(now) {
            file.entries.insert(key.clone(), now.clone());
            changed += 1;
        }
    }
    changed
}
