//! The cache: a folder of entries that any number of processes, also of other machines over
//! NFS, read and write at once.
//!
//! An entry is a file that appears whole by `rename` and carries its checksum: what is torn,
//! cut or changed on the disk is never used, and is removed. No lock is taken, so none can be
//! left behind. A process that is killed leaves at most a file in `tmp/`, which the next one
//! that writes removes. Entries are distinguished by their place, which is made of digests of what
//! they depend on; two writers of one place write the same thing. What another user could have
//! written is not read: entries decide what goes into an object.

use super::digest::checksum;
use super::writer_id::Writer;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The folder of this format's entries below the cache folder: another format gets another one.
const FORMAT: &str = "v1";

/// The first word of an entry.
const MAGIC: &str = "nvtune-cache";

/// A file in `tmp/` of a process that cannot be asked after (on another machine) is garbage
/// after this long; a write takes milliseconds.
const ABANDONED: Duration = Duration::from_secs(3600);

/// One of this many writes looks whether the bound is kept.
const TRIM_EVERY: u64 = 64;

/// Most bytes of an entry, as a file and unpacked. The largest, records of 100,000 points, take
/// a third of it; deflate makes up to 1,000 bytes of one.
const MOST_PACKED: u64 = 64 << 20;
const MOST_CONTENTS: u64 = 64 << 20;

/// How often a folder that vanishes under a write is made anew.
const ATTEMPTS: u32 = 1000;

/// Trimming goes on until this share of the bound is left.
const TRIM_TO: f64 = 0.8;

/// A cache folder.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
    /// Bytes that entries may take.
    limit: u64,
}

/// What is in a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    pub entries: u64,
    pub bytes: u64,
    /// Files that are no entries yet, or never will be.
    pub unfinished: u64,
}

impl Cache {
    /// The cache in `folder`, which need not exist yet.
    pub fn new(folder: &Path, limit: u64) -> Self {
        Self { root: folder.join(FORMAT), limit }
    }

    /// The most bytes that entries may take.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether nobody but this user or root can put entries here; also where nothing is there
    /// yet.
    fn is_own(&self) -> bool {
        let is_own = |path: &Path| match path.metadata() {
            Ok(data) => is_private(&data),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        self.root.parent().is_none_or(is_own) && is_own(&self.root)
    }

    /// The contents of the entry at `place` (a relative path); `None` where there is none that
    /// is whole. Its use is noted.
    pub fn get(&self, place: &str) -> Option<Vec<u8>> {
        let path = self.root.join(place);
        let bytes = read_own(&path).filter(|_| self.is_own())?;
        let Some(contents) = unpacked(&bytes) else {
            // Damaged: it would be read again and again. On a read-only disk it stays, and is not used
            // either.
            let _ = std::fs::remove_file(&path);
            return None;
        };
        // What is used last is removed last; who may not write loses nothing but that.
        let _ = std::fs::File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(contents)
    }

    /// Puts an entry at `place`, whole or not at all. The error is for the user.
    pub fn put(&self, place: &str, contents: &[u8]) -> Result<(), String> {
        let path = self.root.join(place);
        let failed = |error: std::io::Error| format!("cannot write into the cache '{}': {error}", self.root.display());
        let temporary = self.root.join("tmp");
        let writer = Writer::own();
        self.sweep(&writer);
        let unfinished = temporary.join(writer.file_name());
        let folder = path.parent().unwrap_or(&self.root);
        if contents.len() as u64 > MOST_CONTENTS {
            return Err(failed(std::io::Error::other(format!("an entry has more than {} MiB", MOST_CONTENTS >> 20))));
        }
        let bytes = packed(contents).map_err(failed)?;
        let write = || {
            let mut file = within(&temporary, || std::fs::File::create_new(&unfinished))?;
            file.write_all(&bytes)?;
            drop(file);
            within(folder, || std::fs::rename(&unfinished, &path))
        };
        write().map_err(|error| {
            let _ = std::fs::remove_file(&unfinished);
            failed(error)
        })?;
        if writer.serial().is_multiple_of(TRIM_EVERY) {
            self.trim(self.limit);
        }
        Ok(())
    }

    /// Removes the entry at `place`.
    pub fn remove(&self, place: &str) {
        // It may be gone already, or not be ours to remove.
        let _ = std::fs::remove_file(self.root.join(place));
    }

    /// The names of the entries in a folder of the cache, sorted.
    pub fn list(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Counts what is there.
    pub fn contents(&self) -> Contents {
        let mut contents = Contents::default();
        for file in self.files() {
            if file.unfinished {
                contents.unfinished += 1;
            } else {
                contents.entries += 1;
                contents.bytes += file.bytes;
            }
        }
        contents
    }

    /// Removes what was used longest ago where entries take more than `limit` bytes, and what
    /// dead processes left. Gives how many entries went.
    pub fn trim(&self, limit: u64) -> u64 {
        self.sweep(&Writer::own());
        let mut files: Vec<File> = self.files().into_iter().filter(|file| !file.unfinished).collect();
        let mut bytes: u64 = files.iter().map(|file| file.bytes).sum();
        if bytes <= limit {
            return 0;
        }
        files.sort_by_key(|file| file.used);
        let wanted = (limit as f64 * TRIM_TO) as u64;
        let mut removed = 0;
        for file in files {
            if bytes <= wanted {
                break;
            }
            if std::fs::remove_file(&file.path).is_ok() {
                removed += 1;
            }
            bytes -= file.bytes;
            // Goes only where it is empty.
            let _ = file.path.parent().map(std::fs::remove_dir);
        }
        removed
    }

    /// Removes every entry.
    pub fn clear(&self) -> std::io::Result<u64> {
        let entries = self.contents().entries;
        match std::fs::remove_dir_all(&self.root) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(entries),
        }
    }

    /// Removes the unfinished files of processes that are gone.
    fn sweep(&self, own: &Writer) {
        let temporary = self.root.join("tmp");
        for name in self.list("tmp") {
            let path = temporary.join(&name);
            let old = || file_age(&path).is_some_and(|age| age > ABANDONED);
            if own.is_dead(&name).unwrap_or_else(old) {
                let _ = std::fs::remove_file(path);
            }
        }
    }

    fn files(&self) -> Vec<File> {
        let (mut files, mut folders) = (Vec::new(), vec![self.root.clone()]);
        while let Some(folder) = folders.pop() {
            let unfinished = folder.ends_with("tmp");
            // What vanishes meanwhile was another process's to remove.
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let Ok(data) = entry.metadata() else { continue };
                if data.is_dir() {
                    folders.push(entry.path());
                } else {
                    let used = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                    files.push(File { path: entry.path(), bytes: data.len(), used, unfinished });
                }
            }
        }
        files
    }
}

/// The bytes of a file that only this user or root can have written; of anything else nothing
/// is read. A FIFO is not waited for.
fn read_own(path: &Path) -> Option<Vec<u8>> {
    let flags = libc::O_NONBLOCK | libc::O_NOFOLLOW;
    let file = std::fs::File::options().read(true).custom_flags(flags).open(path).ok()?;
    let data = file.metadata().ok()?;
    if !data.is_file() || !is_private(&data) || data.len() > MOST_PACKED {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MOST_PACKED).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Tells whether only this user or root can write the file.
fn is_private(data: &std::fs::Metadata) -> bool {
    (data.uid() == 0 || data.uid() == rustix::process::geteuid().as_raw()) && data.mode() & 0o022 == 0
}

/// Makes the folder where it is not there, and does in it what needs it. Another process may
/// trim the empty folder away at any moment: also between what `create_dir_all` tries (mkdir
/// says that it exists) and what it looks at then (it is no folder).
fn within<T>(folder: &Path, mut act: impl FnMut() -> std::io::Result<T>) -> std::io::Result<T> {
    use std::io::ErrorKind::{AlreadyExists, NotFound};
    let mut attempts = 1..ATTEMPTS;
    loop {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        match made.and_then(|()| act()) {
            Err(error) if matches!(error.kind(), NotFound | AlreadyExists) && attempts.next().is_some() => {}
            done => return done,
        }
    }
}

struct File {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
    unfinished: bool,
}

fn file_age(path: &Path) -> Option<Duration> {
    let modified = path.metadata().ok()?.modified().ok()?;
    SystemTime::now().duration_since(modified).ok()
}

/// A line with length and checksum, then the contents, compressed.
fn packed(contents: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(contents)?;
    let body = encoder.finish()?;
    let mut bytes = format!("{MAGIC} {} {}\n", body.len(), checksum(&body)).into_bytes();
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

/// The contents of an entry; `None` where a byte of it is not as it was written.
pub(super) fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    let end = bytes.iter().take(256).position(|&byte| byte == b'\n')?;
    let (line, body) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]);
    let mut words = line.split(' ');
    let intact = words.next() == Some(MAGIC)
        && words.next()?.parse() == Ok(body.len())
        && words.next() == Some(checksum(body).as_str())
        && words.next().is_none();
    let mut contents = Vec::new();
    let is_read = intact && GzDecoder::new(body).take(MOST_CONTENTS + 1).read_to_end(&mut contents).is_ok();
    (is_read && contents.len() as u64 <= MOST_CONTENTS).then_some(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(limit: u64) -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::new(folder.path(), limit);
        (folder, cache)
    }

    #[test]
    fn what_was_put_comes_back_and_whatever_was_damaged_does_not() {
        let (_folder, cache) = cache(1 << 20);
        let text = b"a result".repeat(50);
        assert_eq!(cache.get("kernels/a/b"), None);
        cache.put("kernels/a/b", &text).expect("written");
        assert_eq!(cache.get("kernels/a/b").as_deref(), Some(&text[..]));
        let path = cache.root.join("kernels/a/b");
        let whole = std::fs::read(&path).expect("it is there");
        let damages: [fn(&mut Vec<u8>); 5] = [
            |bytes| bytes.truncate(bytes.len() - 1),
            |bytes| bytes.clear(),
            |bytes| *bytes.last_mut().expect("not empty") ^= 1,
            |bytes| bytes[MAGIC.len() + 1] ^= 1,
            |bytes| bytes.push(0),
        ];
        for (number, damage) in damages.iter().enumerate() {
            let mut bytes = whole.clone();
            damage(&mut bytes);
            std::fs::write(&path, &bytes).expect("written");
            assert_eq!(cache.get("kernels/a/b"), None, "damage {number}");
            assert!(!path.exists(), "damage {number} stays");
        }
    }

    #[test]
    fn the_bound_is_kept_by_removing_what_was_used_longest_ago() {
        let (_folder, cache) = cache(u64::MAX);
        // Bytes that do not shrink.
        let mut state = 1_u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        for number in 0..10 {
            let contents: Vec<u8> = (0..1000).map(|_| noise()).collect();
            cache.put(&format!("kernels/{number}/x"), &contents).expect("written");
            let file = std::fs::File::options().append(true).open(cache.root.join(format!("kernels/{number}/x")));
            let used = SystemTime::now() - Duration::from_secs(1000 - number);
            file.and_then(|file| file.set_modified(used)).expect("its time is set");
        }
        assert!(cache.get("kernels/0/x").is_some(), "its use is noted");
        let before = cache.contents();
        assert_eq!((before.entries, before.unfinished), (10, 0));
        assert_eq!(cache.trim(before.bytes), 0);
        assert_eq!(cache.trim(before.bytes / 2), 6);
        let left: Vec<String> = cache.list("kernels");
        assert_eq!(left, ["0", "7", "8", "9"]);
        assert_eq!(cache.clear().expect("removed"), 4);
        assert_eq!(cache.contents(), Contents::default());
        assert_eq!(cache.clear().expect("nothing to remove"), 0);
    }

    #[test]
    fn what_others_could_have_written_is_not_read_and_nothing_hangs_or_swells() {
        let (folder, cache) = cache(1 << 30);
        cache.put("kernels/a/b", b"x").expect("written");
        let path = cache.root.join("kernels/a/b");
        let whole = std::fs::read(&path).expect("there");
        let set_mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("set");
        };
        assert_eq!(std::fs::metadata(&cache.root).expect("there").mode() & 0o777, 0o700);
        for (place, mode, is_read) in [(&path, 0o666, false), (&path, 0o644, true), (&cache.root, 0o777, false)] {
            set_mode(place, mode);
            assert_eq!(cache.get("kernels/a/b").is_some(), is_read, "{} {mode:o}", place.display());
        }
        set_mode(&cache.root, 0o700);
        set_mode(folder.path(), 0o770);
        assert_eq!(cache.get("kernels/a/b"), None);
        set_mode(folder.path(), 0o700);
        std::fs::rename(&path, cache.root.join("elsewhere")).expect("moved");
        std::os::unix::fs::symlink(cache.root.join("elsewhere"), &path).expect("linked");
        assert_eq!(cache.get("kernels/a/b"), None, "a link");
        std::fs::remove_file(&path).expect("removed");
        let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo");
        assert!(made.success() && cache.get("kernels/a/b").is_none(), "a FIFO");
        std::fs::remove_file(&path).expect("removed");
        let swollen = packed(&vec![0; (MOST_CONTENTS + 1) as usize]).expect("packed");
        assert!(swollen.len() < 1 << 20 && unpacked(&swollen).is_none());
        assert_eq!(unpacked(&whole).as_deref(), Some(&b"x"[..]));
        assert!(cache.put("kernels/a/b", &vec![0; (MOST_CONTENTS + 1) as usize]).is_err());
    }

    #[test]
    fn what_the_dead_left_is_swept_and_what_the_living_write_is_not() {
        let (_folder, cache) = cache(1 << 20);
        cache.put("kernels/a/b", b"x").expect("written");
        let temporary = cache.root.join("tmp");
        let own = Writer::own();
        let mut child = std::process::Command::new("true").spawn().expect("it starts");
        let dead = own.file_name_of(child.id(), 1);
        child.wait().expect("it ends");
        let (alive, elsewhere) = (own.file_name(), format!("{}-7-1-0", "f".repeat(12)));
        for name in [&dead, &alive, &elsewhere] {
            std::fs::write(temporary.join(name), "half").expect("written");
        }
        cache.put("kernels/a/c", b"y").expect("written");
        let mut expected = [alive, elsewhere.clone()];
        expected.sort();
        assert_eq!(cache.list("tmp"), expected);
        let file = std::fs::File::options().append(true).open(temporary.join(&elsewhere));
        let long_ago = SystemTime::now() - 2 * ABANDONED;
        file.and_then(|file| file.set_modified(long_ago)).expect("its time is set");
        cache.put("kernels/a/c", b"y").expect("written");
        assert!(!temporary.join(elsewhere).exists());
    }

    #[test]
    fn a_folder_that_is_trimmed_away_again_and_again_is_written_into() {
        let (_folder, cache) = cache(1 << 20);
        let ended = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for folder in ["kernels/a", "kernels", "tmp"] {
                let (folder, ended) = (cache.root.join(folder), &ended);
                scope.spawn(move || {
                    while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                        let _ = std::fs::remove_dir(&folder);
                        std::thread::sleep(Duration::from_micros(50));
                    }
                });
            }
            let puts: Vec<Result<(), String>> = (0..2000)
                .map(|_| {
                    let put = cache.put("kernels/a/b", b"x");
                    cache.remove("kernels/a/b");
                    put
                })
                .collect();
            ended.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(puts.into_iter().find(Result::is_err), None);
        });
    }

    #[test]
    fn a_cache_that_cannot_be_written_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("file");
        std::fs::write(&place, "").expect("written");
        let cache = Cache::new(&place, 1 << 20);
        let problem = cache.put("kernels/a/b", b"x").expect_err("its folder is a file");
        assert!(problem.starts_with("cannot write into the cache '"), "{problem}");
        assert_eq!((cache.get("kernels/a/b"), cache.contents()), (None, Contents::default()));
    }
}
