//! What was decided, as data: the record beside the object.

mod decision;

pub use decision::{Decision, FORMAT, Record, RecordedConfiguration, RecordedTiming, RecordedVariant, Seconds, Truth};
