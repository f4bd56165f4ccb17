//! What is read of a CUDA source: kernels, parameters and their types, launches, macros.
//!
//! Text in, facts out. An unknown form is no fact; nothing here is an error of the user's.

mod active_code;
mod block_reads;
pub mod brackets;
mod conditionals;
pub mod declarations;
mod element;
mod evaluated_launch;
mod host_callers;
mod host_definitions;
mod host_evaluation;
mod host_extents;
mod host_index;
mod host_launches;
mod host_nodes;
mod host_number;
mod host_program;
mod host_types;
mod integer_literal;
mod joined_names;
pub mod kernel;
mod kernel_list;
mod launch_argument;
pub mod line_markers;
mod loops;
mod macro_statements;
pub mod macros;
mod parameter_kind;
mod parameter_list;
pub mod preprocessed;
mod structure_members;
pub mod template_instance;
mod template_use;
mod texture;
pub mod tokens;
mod types;

pub use declarations::{may_be_structure, points_to_arrays, takes_no_value};
pub use element::{Element, Scalar};
pub use evaluated_launch::{ANY_COUNT, ArgumentCounts, EvaluatedLaunch};
pub use host_launches::{HostCode, HostLaunch};
pub use host_number::Number;
pub use host_program::HostProgram;
pub use joined_names::JoinedNames;
pub use kernel::{Kernel, TemplateParameter};
pub use kernel_list::{ListedKernel, kernels_of};
pub use launch_argument::{BufferBytes, LaunchArgument};
pub use loops::{KernelLoop, innermost_loops, with_unroll_pragmas};
pub use parameter_kind::ParameterKind;
pub use preprocessed::{CompiledFile, Side, compiled_files, compiled_text, left_out};
pub use structure_members::{StructureMember, array_element};
pub use template_instance::Spelled;
pub(crate) use template_instance::template_arguments as instance_arguments;
pub use template_use::may_be_used;
pub use texture::{HandlePlace, OpaqueHandle, Sampling, TextureArray, TextureMemory, TextureObject};
pub use types::{Type, vector_fields};
