//! TODOC

mod call_cache;
pub mod marked_source;
pub mod pipeline;
mod tuning;
