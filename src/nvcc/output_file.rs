//! The file that nvcc makes of one source, and whether it was made to its end.
//!
//! In: a call and its sources, before nvcc runs. Out, after nvcc failed or was stopped: which
//! of the files are whole. Invariant: a file that is as it was, or ends before what its
//! own tables speak of, is not whole.

use super::invocation::Invocation;
use object::LittleEndian as LE;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// First word of a fat binary; behind it are its version and the size of this header (16 bits
/// each), then that of the rest (64 bits).
const FAT_BINARY: u32 = 0xba55_ed50;

/// A file that a build is to make of one source, and what was there before.
#[derive(Clone, Debug)]
pub struct Made {
    path: PathBuf,
    before: Option<Stamp>,
}

/// Tells a file from one that is written in its place: file, size, times of modification and of
/// status.
type Stamp = (u64, u64, [i64; 4]);

impl Made {
    /// The file that a call makes of a source; `None` where it has none of its own, as where
    /// all are linked.
    pub fn of(invocation: &Invocation, source: &Path) -> Option<Self> {
        let path = invocation.made_of(source)?;
        Some(Self { before: stamp(&path), path })
    }

    /// Whether it was made since, to its end.
    pub fn is_whole(&self) -> bool {
        let now = stamp(&self.path);
        now.is_some() && now != self.before && std::fs::read(&self.path).is_ok_and(|bytes| is_complete(&bytes))
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let data = path.metadata().ok()?;
    Some((data.ino(), data.len(), [data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec()]))
}

/// Whether these are all bytes of an object, a cubin or a fat binary. The tables at the end of
/// an ELF file are written last.
fn is_complete(bytes: &[u8]) -> bool {
    let elf = || {
        let header = FileHeader64::<LE>::parse(bytes).ok()?;
        let sections = header.sections(LE, bytes).ok()?;
        Some(!sections.is_empty() && sections.iter().all(|section| section.data(LE, bytes).is_ok()))
    };
    let fat_binary = || {
        let magic = u32::from_le_bytes(*bytes.first_chunk()?);
        let header = u16::from_le_bytes(*bytes.get(6..)?.first_chunk()?);
        let rest = u64::from_le_bytes(*bytes.get(8..)?.first_chunk()?);
        Some(magic == FAT_BINARY && bytes.len() as u64 >= rest.saturating_add(header.into()))
    };
    elf().or_else(fat_binary).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_short_is_not_complete() {
        let object = std::fs::read(std::env::current_exe().expect("it runs")).expect("it is there");
        let mut fat_binary = [&FAT_BINARY.to_le_bytes()[..], &[1, 0, 16, 0], &8_u64.to_le_bytes(), &[7; 8]].concat();
        for whole in [&object, &fat_binary] {
            assert!(is_complete(whole));
            for left in [whole.len() - 1, whole.len() / 2, 20, 1, 0] {
                assert!(!is_complete(&whole[..left]), "{left} of {}", whole.len());
            }
        }
        fat_binary[0] = 0;
        assert!(!is_complete(&fat_binary));
        assert!(!is_complete(&vec![0; 1000]));
    }

    #[test]
    fn what_is_as_it_was_was_not_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let object = folder.path().join("a.o");
        let words = ["-c".into(), "a.cu".into(), "-o".into(), object.clone().into_os_string()];
        let invocation = Invocation::new(&words, None, None).expect("no option files are named");
        let made = || Made::of(&invocation, Path::new("a.cu")).expect("it has one");
        let copy = || std::fs::copy(std::env::current_exe().expect("it runs"), &object).expect("copied");
        let new = made();
        assert!(!new.is_whole());
        copy();
        assert!(new.is_whole());
        let old = made();
        assert!(!old.is_whole());
        std::fs::remove_file(&object).expect("removed");
        assert!(!old.is_whole());
        copy();
        assert!(old.is_whole());
    }
}
