//! What the code of a kernel says of it, by its PTX: what it stores, what it waits for, which
//! shapes it allows.

mod address_flow;
mod address_slice;
pub mod flow_conservation;
pub mod grid_stride;
pub mod grid_sync;
mod item_value;
mod loaded_addresses;
pub mod memory_check;
mod memory_probe;
pub mod ptx_facts;
mod register_use;
pub mod shape_invariance;
mod shared_memory;
mod single_loop;
mod texture_handles;
pub mod unrolled_loop;
pub mod work_coverage;
pub mod written_only;
pub mod written_variables;

pub use address_slice::SliceProblem;
pub use loaded_addresses::may_load_addresses;
pub use memory_probe::{ENTRY as PROBE_ENTRY, MemoryProbe, PointerArgument, ProbeRow, TABLE as PROBE_TABLE};
pub use texture_handles::texture_handles;
