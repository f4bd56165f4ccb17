//! TODOC

pub mod flow_conservation;
pub mod grid_sync;
pub mod memory_check;
pub mod ptx_facts;
pub mod shape_invariance;
pub mod work_coverage;
