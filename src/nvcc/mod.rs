//! Everything about being `nvcc`: argv and environment -> [`Invocation`], and the real nvcc
//! behind it.

mod cicc_math;
mod cicc_output;
mod depfile;
mod depfile_place;
mod dry_run;
mod fatbin;
pub mod final_build;
mod front_end;
mod invocation;
mod launcher;
mod locate;
mod module_id;
mod options;
mod output_file;
mod overlay;
mod overlay_links;
mod plan_folder;
mod programs;
pub mod shim_cicc;
pub mod shim_ptxas;
mod source_scan;
mod tool_error;
mod toolchain;
mod wrapper;

pub use depfile::{Renamed, renamed};
pub use dry_run::{Dryrun, DryrunError, DryrunStep, Pipeline};
pub use fatbin::{Loaded, Loads};
pub use front_end::CiccOutputs;
pub use invocation::{Invocation, InvocationError, Phase};
pub use launcher::{LaunchedCall, are_nvcc_arguments, is_nvcc_name, launched};
pub use locate::{NotFound, REAL_NVCC, RealNvcc, STARTED_WRAPPERS, is_nvtune, on_path};
pub use options::{Arity, NvccOption, list_value, list_values, lookup};
pub use output_file::Made;
pub use overlay::{Overlay, OverlayError};
pub use overlay_links::mirror;
pub use programs::{Programs, compilers};
pub use source_scan::{MarkedFile, ScannedFiles, SearchPaths, included_files, marked_files, quoted_files};
pub use tool_error::ToolError;
pub use toolchain::{FrontEnd, FrontEndResult, Toolchain};
pub use wrapper::wrapper_problem;
