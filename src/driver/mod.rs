//! One call of nvcc, from argv to the object.
//!
//! In: argv and the environment. Out: what nvcc would make, with the winners of marked kernels
//! in it. [`pipeline`] has the steps in their order.

mod build;
mod call_cache;
mod decisions;
mod depfile;
mod final_build;
mod include_folder;
pub mod marked_source;
mod outputs;
pub mod pipeline;
mod recordings;
mod template_instances;
mod tuning;
