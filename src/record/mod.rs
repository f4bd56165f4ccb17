//! What was decided, and what was timed, as data: the record next to the object, the lock file,
//! the cache, the recorded space of a kernel.

mod cache;
mod decision;
mod digest;
mod file;
mod fingerprint;
mod journal;
pub mod lock;
mod output_journal;
mod recorded_space;
pub mod result_store;
mod staleness;
mod writer_id;

/// What the fuzz targets (tests/fuzz) reach of the private readers.
#[doc(hidden)]
pub mod fuzzed {
    use super::CacheEntry;

    /// Reads a file of the cache, and what is in it as a decision.
    pub fn cache_entry(bytes: &[u8]) {
        let contents = super::cache::unpacked(bytes);
        let _ = serde_json::from_slice::<CacheEntry>(contents.as_deref().unwrap_or(bytes));
    }
}

pub use cache::{Cache, Contents};
pub use decision::{
    CacheEntry, Decision, ENGINE, FORMAT, HeldPoints, Kind, LockEntry, Record, RecordedConfiguration, RecordedTiming,
    RecordedVariant, Seconds, Stale, Untimed,
};
pub use digest::{checksum, digest};
pub use file::{folder, put_in_place, read_regular, unfinished};
pub use fingerprint::Fingerprint;
pub use journal::{Journal, PointOutcome, Searched, Tried};
pub use lock::{LOCK_FILE, Lock, LockError};
pub use output_journal::{Baseline, WrittenFiles};
pub use recorded_space::{
    CHECKED, DeviceState, Parts, PointTime, RecordedSpace, Repeatability, SPACE_EXTENSION, SPACE_FORMAT, Sample,
    SpaceConfiguration, SpaceError, SpaceSize, SpaceSource, SpaceVariant, SpaceWorkload,
};
pub use staleness::WINNER_PTX;
