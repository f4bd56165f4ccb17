//! What several test modules share.

pub mod cubins;
pub mod disassembly;
pub mod full;
pub mod ptx;
pub mod resource_usage;
pub mod summary;
pub mod toolkit;
