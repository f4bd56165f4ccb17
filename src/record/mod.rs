//! What was decided, and what was timed, as data: the record beside the object, the recorded space of a kernel.

mod decision;
mod file;
mod space;

pub use decision::{Decision, FORMAT, Record, RecordedConfiguration, RecordedTiming, RecordedVariant, Seconds};
pub use file::write_if_changed;
pub use space::{
    CHECKED, DeviceState, Parts, PointTime, RecordedSpace, Repeatability, SPACE_EXTENSION, SPACE_FORMAT, Sample,
    SpaceConfiguration, SpaceError, SpaceSize, SpaceSource, SpaceVariant, SpaceWorkload,
};
