//! What is read of a CUDA source: kernels, parameters and their types, launches, macros.
//!
//! Text in, facts out. An unknown form is no fact; nothing here is an error of the user's.

pub mod brackets;
mod conditionals;
pub mod declarations;
mod derived_macros;
mod element;
mod header_launch;
mod host_code;
mod host_launch;
pub mod kernel;
mod launch_flow;
mod launch_sites;
mod launch_text;
pub mod line_markers;
pub mod macros;
pub mod preprocessed;
pub mod template_instance;
pub mod tokens;
mod types;
mod without_stub;

pub use declarations::{may_be_structure, points_to_arrays, takes_no_value};
pub use element::{Element, Scalar};
pub use header_launch::HeaderName;
pub use host_code::HostCode;
pub use host_launch::{HostLaunch, LaunchedBlock};
pub use kernel::{Kernel, TemplateParameter};
pub use preprocessed::{CompiledFile, Side, compiled_files, compiled_text, left_out};
pub use template_instance::Spelled;
pub(crate) use template_instance::arguments as instance_arguments;
pub use types::{Type, vector_fields};
