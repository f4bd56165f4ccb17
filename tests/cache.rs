//! The cache under processes that are killed at any moment.

use crate::support::full::is_full;
use crate::support::summary;
use nvtune::record::Cache;
use nvtune::workload::random::Random;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The folder that a worker writes into; set for the processes that this test starts of itself.
const FOLDER: &str = "NVTUNE_TEST_CACHE";

/// Places that workers write: few, so that they meet.
const PLACES: u64 = 200;

/// A bound that is met all the time.
const LIMIT: u64 = 1 << 20;

fn place(number: u64) -> String {
    format!("kernels/{}/{number}", number % 50)
}

/// What belongs at a place: up to 40 KB that compress badly.
fn contents(number: u64) -> Vec<u8> {
    let mut random = Random::new(number);
    let length = 100 + random.next_u64() % 5000;
    (0..length).flat_map(|_| random.next_u64().to_le_bytes()).collect()
}

/// One of the processes: puts and gets for ever, and ends with 1 if what it gets is not what belongs there.
#[test]
fn worker() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let cache = Cache::new(Path::new(&folder), LIMIT);
    let mut random = Random::new(u64::from(std::process::id()) << 32 ^ Instant::now().elapsed().as_nanos() as u64);
    loop {
        let number = random.next_u64() % PLACES;
        if random.next_u64().is_multiple_of(2) {
            if let Err(problem) = cache.put(&place(number), &contents(number)) {
                eprintln!("{problem}");
                std::process::exit(1);
            }
        } else if cache.get(&place(number)).is_some_and(|found| found != contents(number)) {
            eprintln!("torn: {number}");
            std::process::exit(1);
        }
    }
}

struct Workers {
    folder: PathBuf,
    all: Vec<Child>,
}

impl Workers {
    fn start(&self) -> Child {
        let own = std::env::current_exe().expect("the test knows its path");
        let mut command = Command::new(own);
        command.args(["--exact", "cache::worker", "--nocapture"]).env(FOLDER, &self.folder);
        command.stdout(Stdio::null()).spawn().expect("it starts")
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for child in &mut self.all {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Processes that write into the cache at once, and for how long some are killed: NVTUNE_TEST_KILL_SECONDS, else ten minutes,
/// in the full run.
fn load() -> (u64, Duration) {
    if !is_full() {
        return (16, Duration::from_secs(2));
    }
    let seconds = std::env::var("NVTUNE_TEST_KILL_SECONDS").ok().and_then(|value| value.parse().ok());
    (64, Duration::from_secs(seconds.unwrap_or(600)))
}

#[test]
fn killed_writers_leave_no_torn_entry_and_no_unfinished_file() {
    if std::env::var_os(FOLDER).is_some() {
        return;
    }
    let (count, duration) = load();
    let folder = tempfile::tempdir().expect("a folder");
    let mut workers = Workers { folder: folder.path().to_path_buf(), all: Vec::new() };
    workers.all = (0..count).map(|_| workers.start()).collect();
    let (mut random, begin, mut killed, mut unfinished) = (Random::new(7), Instant::now(), 0_u64, 0_u64);
    let cache = Cache::new(folder.path(), LIMIT);
    while begin.elapsed() < duration || killed <= 10 {
        std::thread::sleep(Duration::from_millis(random.next_u64() % 20));
        let victim = (random.next_u64() % count) as usize;
        let ended = workers.all[victim].try_wait().expect("a child");
        assert_eq!(ended.map(|status| status.to_string()), None, "a worker ended by itself");
        workers.all[victim].kill().expect("killed");
        workers.all[victim].wait().expect("gone");
        killed += 1;
        if killed.is_multiple_of(50) {
            unfinished = unfinished.max(cache.contents().unfinished);
        }
        workers.all[victim] = workers.start();
    }
    for child in &mut workers.all {
        assert_eq!(child.try_wait().expect("a child").map(|status| status.to_string()), None);
    }
    drop(workers);
    // The next run: one write.
    cache.put(&place(0), &contents(0)).expect("written");
    let left = cache.contents();
    assert_eq!(left.unfinished, 0, "what killed processes left stays");
    assert!(left.entries > 0, "{killed} killed, {left:?}");
    for number in 0..PLACES {
        assert!(cache.get(&place(number)).is_none_or(|found| found == contents(number)), "entry {number} is torn");
    }
    cache.trim(LIMIT);
    assert!(cache.contents().bytes <= LIMIT, "{left:?}");
    let said = format!(
        "{count} processes on one cache for {} s: {killed} killed, {} entries, {} bytes, up to {unfinished} unfinished meanwhile",
        duration.as_secs(),
        left.entries,
        left.bytes
    );
    summary::keep("kills", &said);
}
