//! What several test modules share.

pub mod book;
pub mod disassembly;
pub mod fixtures;
pub mod full;
pub mod json_schema;
pub mod record_schema;
pub mod resource_usage;
pub mod summary;
pub mod toolkit;
