//! The folder of a source's recordings -> the launches of one kernel, how often each came, and
//! how long it took.

use super::file::RecordedLaunch;
use crate::comment::TemplateInstances;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The most recordings of one kernel that are looked at: as many as one program makes, of
/// several programs.
const MOST_LAUNCHES: usize = 512;

/// The most files of counters that are read: one for each process.
const MOST_COUNTERS: usize = 4096;

/// How many kinds of launch a program tells apart (`MOST_KINDS` in `src/emit/capture_runtime.h`).
const KINDS: usize = 32;

/// The recorded launches of one kernel.
#[derive(Clone, Debug, Default)]
pub struct RecordedKernel {
    pub launches: Vec<CountedLaunch>,
    /// Launches of which only the number is known.
    pub others: u64,
    /// How long all launches together took on the GPU; `None` if no launch was timed.
    pub gpu_time_us: Option<f64>,
    /// Why launches were not recorded, each reason once.
    pub left_out: Vec<LeftOut>,
    /// Files that are no recordings, with the reason.
    pub unusable: Vec<String>,
}

/// Why a launch was not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// Its kernel's recordings would have at least `needed` bytes with it, and may have `most`.
    TooLarge { needed: u64, most: u64 },
    /// In the words of the launch stub.
    Other(String),
}

impl LeftOut {
    /// Reads a line of a launch stub (`leave_out` in `src/emit/capture_runtime.h`).
    fn parse(line: &str) -> Self {
        let mut words = line.strip_prefix("bytes ").unwrap_or_default().split(' ').map(str::parse);
        match (words.next(), words.next(), words.next()) {
            (Some(Ok(needed)), Some(Ok(most)), None) => Self::TooLarge { needed, most },
            _ => Self::Other(line.to_owned()),
        }
    }
}

/// A recorded launch, its file, and how often launches of its kind came.
#[derive(Clone, Debug)]
pub struct CountedLaunch {
    pub launch: RecordedLaunch,
    pub count: u64,
    /// How long one of them took on the GPU; 0 if none was timed.
    pub nanoseconds: u64,
    /// Which of the kernel's launches is the first of this kind, where this is a later one.
    pub first: Option<usize>,
    pub path: PathBuf,
}

/// The first launch of a kind finds caches cold. If a later one does the same, the first takes at most
/// this many times as long, and 5 us. With cold caches a matrix product of PolyBench takes up to 1.24
/// times as long, and a search of Rodinia 1.26 times (H200, `kernels/results/h200/addresses.txt`).
const COLD_FACTOR: f64 = 1.5;
const COLD_NANOSECONDS: f64 = 5e3;

/// How many times as long as the first a later launch takes at most that does the same. One pair of
/// events scatters by some percent.
const NOISE: f64 = 1.1;

impl CountedLaunch {
    /// Whether a launch takes as long as the `first` of its kind, as far as is known.
    fn takes_as_long_as(&self, first: &CountedLaunch) -> bool {
        let [later, first] = [self, first].map(|counted| counted.nanoseconds as f64);
        later * first == 0.0 || later <= NOISE * first && first <= COLD_FACTOR * later + COLD_NANOSECONDS
    }
}

/// Returns the folder of the recordings of a source: next to its object, or in the folder that
/// `NVTUNE_CAPTURE_DIR` names.
pub fn folder(parent: &Path, stem: &OsStr) -> PathBuf {
    let mut name = stem.to_owned();
    name.push(".capture");
    parent.join(name)
}

/// Removes what earlier programs recorded: a new build records anew.
pub fn clear(folder: &Path) {
    let Ok(kernels) = std::fs::read_dir(folder) else { return };
    for kernel in kernels.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let Ok(files) = std::fs::read_dir(kernel.path()) else { continue };
        for file in files.flatten().map(|entry| entry.path()).filter(|path| is_own(path)) {
            // A file that cannot be removed is checked against the kernel's parameters when it is read.
            let _ = std::fs::remove_file(file);
        }
        let _ = std::fs::remove_dir(kernel.path());
    }
    let _ = std::fs::remove_dir(folder);
}

/// Whether a file is one that a launch stub makes.
fn is_own(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str);
    matches!(extension, Some("launch" | "part" | "counters")) || path.file_name() == Some(OsStr::new("left_out"))
}

impl RecordedKernel {
    /// Reads what was recorded of a kernel; nothing where there is no such folder, or it is
    /// another user's.
    pub fn read(folder: &Path, kernel: &str) -> RecordedKernel {
        let folder = folder.join(kernel);
        let mut found = RecordedKernel::default();
        let Ok(entries) = std::fs::read_dir(&folder) else { return found };
        if !is_trusted(&folder) {
            found.unusable.push(format!("'{}' belongs to another user", folder.display()));
            return found;
        }
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| is_own(path)).collect();
        paths.sort();
        let of = |extension: &'static str| {
            paths.iter().filter(move |path| path.extension() == Some(OsStr::new(extension)) && is_trusted(path))
        };
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        let mut times: BTreeMap<u64, u64> = BTreeMap::new();
        for path in of("counters").take(MOST_COUNTERS) {
            let Some(counters) = read_counters(path) else { continue };
            for KindCounter { kind, count, nanoseconds } in counters.kinds {
                *counts.entry(kind).or_default() += count;
                if nanoseconds > 0 {
                    // Of several processes on one GPU, the others made it slower.
                    times.entry(kind).and_modify(|least| *least = nanoseconds.min(*least)).or_insert(nanoseconds);
                }
            }
            found.others = found.others.saturating_add(counters.others);
        }
        found.gpu_time_us = gpu_time_us(&counts, found.others, &times);
        let mut kinds = Vec::new();
        for path in of("launch").take(MOST_LAUNCHES) {
            match File::open(path).map_err(Into::into).and_then(|mut file| RecordedLaunch::read(&mut file)) {
                Ok(launch) => {
                    let kind =
                        path.file_stem().and_then(OsStr::to_str).and_then(|name| u64::from_str_radix(name, 16).ok());
                    let count = kind.and_then(|kind| counts.remove(&kind)).unwrap_or(1).max(1);
                    let nanoseconds = kind.and_then(|kind| times.get(&kind).copied()).unwrap_or_default();
                    found.launches.push(CountedLaunch { launch, count, nanoseconds, first: None, path: path.clone() });
                    kinds.push(kind);
                }
                Err(error) => found.unusable.push(format!("'{}' {error}", path.display())),
            }
        }
        // The early launch of a kind stands for all of it where no later one is recorded.
        for (index, kind) in kinds.iter().enumerate() {
            let Some(later) = kind.map(later_of) else { continue };
            if let Some(recorded) = kinds.iter().position(|kind| *kind == Some(later)) {
                found.launches[recorded].first = Some(index);
            }
            let counted = &mut found.launches[index];
            counted.count = counted.count.saturating_add(counts.remove(&later).unwrap_or_default());
        }
        found.others = counts.values().fold(found.others, |sum, count| sum.saturating_add(*count));
        let left_out = folder.join("left_out");
        if is_trusted(&left_out)
            && let Ok(text) = std::fs::read_to_string(&left_out)
        {
            for reason in text.lines().take(MOST_LAUNCHES).map(LeftOut::parse) {
                if !found.left_out.contains(&reason) {
                    found.left_out.push(reason);
                }
            }
        }
        found
    }

    /// Threads of all recorded launches: a measure of the kernel's work on any GPU.
    pub fn work(&self) -> u64 {
        let work = |counted: &CountedLaunch| counted.launch.threads().saturating_mul(counted.count);
        self.launches.iter().map(work).fold(0, u64::saturating_add)
    }

    /// The launch that stands for the kernel: of the kind with the most threads in all its launches,
    /// and of equal kinds the one that took longest, for a loop may do any work with as many threads.
    /// It is the first launch of that kind, unless a later one that stands for more takes another
    /// time. Where a later launch begins, memory often has its results already, of a launch before,
    /// and then nothing shows what a candidate writes.
    pub fn main_launch(&self) -> Option<&CountedLaunch> {
        let work = |counted: &CountedLaunch| {
            let of_all = |one: u64| one.saturating_mul(counted.count);
            (of_all(counted.launch.threads()), of_all(counted.nanoseconds))
        };
        let work_of_kind = |first: &&CountedLaunch| {
            let (threads, nanoseconds) = work(first);
            let later = self.sibling(first).map(work).unwrap_or_default();
            (threads.saturating_add(later.0), nanoseconds.saturating_add(later.1))
        };
        // Of equals the first.
        let firsts = self.launches.iter().filter(|counted| counted.first.is_none());
        let first = firsts.rev().max_by_key(work_of_kind)?;
        let later = self.sibling(first).filter(|later| work(later) > work(first) && !later.takes_as_long_as(first));
        Some(later.unwrap_or(first))
    }

    /// Returns the other recorded launch of the same kind.
    pub fn sibling(&self, launch: &CountedLaunch) -> Option<&CountedLaunch> {
        let is_later = |counted: &&CountedLaunch| {
            let first = counted.first.and_then(|first| self.launches.get(first));
            first.is_some_and(|first| std::ptr::eq(first, launch))
        };
        launch.first.and_then(|first| self.launches.get(first)).or_else(|| self.launches.iter().find(is_later))
    }
}

/// The kernels that a folder has recordings of, or the reason that there are none, by name.
pub fn kernels(folder: &Path) -> BTreeMap<String, RecordedKernel> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.map(|name| (name.clone(), RecordedKernel::read(folder, &name))).collect()
}

/// The instances of templates that are recorded in a folder.
pub fn instances(folder: &Path) -> TemplateInstances {
    let mut found = TemplateInstances::default();
    for (name, kernel) in kernels(folder) {
        kernel.launches.iter().for_each(|counted| found.add(&name, &counted.launch.instance));
    }
    found
}

/// The work of all kernels that are recorded in the folders of one place.
pub fn total_work(parent: &Path) -> u64 {
    all_kernels(parent).map(|kernel| kernel.work()).fold(0, u64::saturating_add)
}

/// The time on the GPU of all kernels that are recorded in the folders of one place, as far as
/// they were timed.
pub fn total_gpu_time_us(parent: &Path) -> f64 {
    all_kernels(parent).filter_map(|kernel| kernel.gpu_time_us).sum()
}

/// Reads every kernel that is recorded in the folders of one place.
fn all_kernels(parent: &Path) -> impl Iterator<Item = RecordedKernel> {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = entries.filter(|path| path.extension() == Some(OsStr::new("capture")));
    folders.flat_map(|folder| kernels(&folder).into_values())
}

/// Returns how long all launches of a kernel took. Those that were not timed count as the mean of
/// the others.
fn gpu_time_us(counts: &BTreeMap<u64, u64>, others: u64, times: &BTreeMap<u64, u64>) -> Option<f64> {
    let timed = times.iter().map(|(kind, nanoseconds)| (counts[kind] as f64, *nanoseconds as f64 / 1e3));
    let (launches, total) =
        timed.fold((0.0, 0.0), |(launches, total), (count, time)| (launches + count, total + count * time));
    let all = counts.values().fold(others as f64, |sum, count| sum + *count as f64);
    (launches > 0.0).then(|| total * all / launches)
}

/// The kind of the launches after the early ones of a kind (`later_of` in
/// `src/emit/capture_runtime.h`).
fn later_of(kind: u64) -> u64 {
    const EARLY: u64 = 3;
    (kind ^ EARLY).wrapping_mul(1_099_511_628_211)
}

/// Whether a folder, or a regular file, is the user's own or root's.
fn is_trusted(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    std::fs::metadata(path).is_ok_and(|data| (data.is_file() || data.is_dir()) && [0, own].contains(&data.uid()))
}

/// The counters of one process.
pub(super) struct Counters {
    pub kinds: Vec<KindCounter>,
    /// Launches that were not distinguished.
    pub others: u64,
}

/// A kind of launch, how often it came, and how long one took (0: not timed).
pub(super) struct KindCounter {
    pub kind: u64,
    pub count: u64,
    pub nanoseconds: u64,
}

fn read_counters(path: &Path) -> Option<Counters> {
    counters(&crate::record::read_regular(path).ok()?)
}

/// Reads the bytes of a file of counters: a count for each kind and one for all others, the
/// kinds, and their times.
pub(super) fn counters(bytes: &[u8]) -> Option<Counters> {
    let word = |index: usize| {
        let bytes = bytes.get(index * 8..index * 8 + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let counter = |index: usize| {
        let (kind, nanoseconds) = (word(KINDS + 1 + index)?, word(2 * KINDS + 1 + index)?);
        Some(KindCounter { kind, count: word(index)?, nanoseconds })
    };
    let kinds: Option<Vec<KindCounter>> = (0..KINDS).map(counter).collect();
    let is_used = |counter: &KindCounter| counter.kind != 0 && counter.count != 0;
    Some(Counters { kinds: kinds?.into_iter().filter(is_used).collect(), others: word(KINDS)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launch_that_stands_for_a_kernel_has_the_most_threads_and_then_the_longest_time() {
        const KIND: (u32, u64, u64, Option<usize>) = (64, 20, 90_000, None);
        for (launches, expected) in [
            // Blocks, how often, nanoseconds, and which one is the first of the kind.
            (&[(64, 20, 2_000, None), KIND, (64, 20, 3_000, None)][..], 1),
            (&[KIND, (128, 20, 2_000, None)], 1),
            (&[KIND, (64, 41, 2_000, None)], 1),
            (&[(64, 20, 0, None), (64, 20, 0, None)], 0),
            // A later launch that takes as long as the first, or less for the caches that are warm then.
            (&[(64, 3, 90_000, None), (64, 500, 91_000, Some(0))], 0),
            (&[(64, 3, 90_000, None), (64, 500, 60_000, Some(0))], 0),
            (&[(64, 3, 6_000, None), (64, 500, 2_000, Some(0))], 0),
            // One that does more or less than the first.
            (&[(64, 3, 90_000, None), (64, 500, 120_000, Some(0))], 1),
            (&[(64, 3, 90_000, None), (64, 500, 50_000, Some(0))], 1),
            // Nothing is known of it.
            (&[(64, 3, 0, None), (64, 500, 90_000, Some(0))], 0),
            // Another kind has more work than both, or less.
            (&[(64, 3, 90_000, None), (64, 10, 90_000, Some(0)), KIND], 2),
            (&[(64, 12, 90_000, None), (64, 3, 90_000, None), (64, 10, 90_000, Some(1))], 1),
            // The later one stands for less.
            (&[(64, 3, 90_000, None), (64, 1, 120_000, Some(0))], 0),
        ] {
            let launch = |&(blocks, count, nanoseconds, first): &(u32, u64, u64, Option<usize>)| CountedLaunch {
                launch: RecordedLaunch {
                    grid: [blocks, 1, 1],
                    block: [256, 1, 1],
                    shared: 0,
                    arguments: Vec::new(),
                    buffers: Vec::new(),
                    pointers: Vec::new(),
                    variables: Vec::new(),
                    arrays: Vec::new(),
                    textures: Vec::new(),
                    instance: String::new(),
                    checksum: 0,
                },
                count,
                nanoseconds,
                first,
                path: PathBuf::new(),
            };
            let recorded = RecordedKernel { launches: launches.iter().map(launch).collect(), ..Default::default() };
            let main = recorded.main_launch().expect("one of them");
            assert!(std::ptr::eq(main, &recorded.launches[expected]), "{launches:?}");
        }
    }
}
