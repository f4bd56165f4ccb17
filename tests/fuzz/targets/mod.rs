//! What is fuzzed: one function for each reader of text or bytes that nvtune did not write.
//!
//! In: any bytes. Invariant: none panics, and where the reader's memory is bounded, it stays below `memory::bounded`.

mod cache_entry;
mod comment;
mod cubin;
mod dry_run;
mod host_code;
mod lock;
pub mod memory;
mod npy;
mod options;
mod protocol;
mod ptx;
mod record;
mod recording;
mod sass;
mod stub;

/// A target's name, and what it does with bytes.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("cache_entry", cache_entry::run),
    ("comment", comment::run),
    ("cubin", cubin::run),
    ("dry_run", dry_run::run),
    ("host_code", host_code::run),
    ("lock", lock::run),
    ("npy", npy::run),
    ("options", options::run),
    ("protocol", protocol::run),
    ("ptx", ptx::run),
    ("record", record::run),
    ("recording", recording::run),
    ("sass", sass::run),
    ("stub", stub::run),
];
