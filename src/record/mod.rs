//! What was decided, and what was timed, as data: the record beside the object, the lock file, the cache, the recorded space of a
//! kernel.

mod basis;
mod cache;
mod decision;
mod digest;
mod file;
mod journal;
mod kept;
pub mod lock;
mod pinned;
mod space;
mod stale;
mod writer;
mod written;

pub use basis::Basis;
pub use cache::{Cache, Contents};
pub use decision::{
    Decision, FORMAT, Held, Record, RecordedConfiguration, RecordedTiming, RecordedVariant, Seconds, Untimed,
};
pub use digest::{checksum, digest};
use file::{Replaced, write_if_changed};
pub use journal::{Found, Journal, Searched, Tried};
pub use kept::{ENGINE, Kept, Kind};
pub use lock::{LOCK_FILE, Lock, LockError};
pub use pinned::Pinned;
pub use space::{
    CHECKED, DeviceState, Parts, PointTime, RecordedSpace, Repeatability, SPACE_EXTENSION, SPACE_FORMAT, Sample,
    SpaceConfiguration, SpaceError, SpaceSize, SpaceSource, SpaceVariant, SpaceWorkload,
};
pub use stale::{Stale, WINNER_PTX};
pub use written::Written;
