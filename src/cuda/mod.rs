//! What is read of a CUDA source: kernels, parameters and their types, launches, macros.
//!
//! Text in, facts out. An unknown form is no fact; nothing here is an error of the user's.

pub mod brackets;
mod conditionals;
pub mod declarations;
mod element;
mod host_launches;
pub mod kernel;
pub mod line_markers;
pub mod macros;
pub mod preprocessed;
pub mod template_instance;
mod template_use;
pub mod tokens;
mod types;

pub use declarations::{may_be_structure, points_to_arrays, takes_no_value};
pub use element::{Element, Scalar};
pub use host_launches::{HostCode, HostLaunch};
pub use kernel::{Kernel, TemplateParameter};
pub use preprocessed::{CompiledFile, Side, compiled_files, compiled_text, left_out};
pub use template_instance::Spelled;
pub(crate) use template_instance::template_arguments as instance_arguments;
pub use template_use::may_be_used;
pub use types::{Type, vector_fields};
