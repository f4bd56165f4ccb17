//! What a kernel is launched on: its arguments, its buffers, and what is compared afterwards.
//!
//! Annotation + parameter types + configuration -> [`Workload`]. Contents of buffers are a pure function of
//! (buffer, index), so that the measuring process, a second seed and a model that runs a few threads all see the same data.

pub mod alias;
mod bind;
mod buffer;
pub mod contents;
mod declared;
pub mod entry;
mod floating;
mod formula;
mod instance;
pub mod layout;
mod mangled;
mod npy;
mod types;
mod variable;

pub use alias::Spelled;
pub use bind::{bind, default_tolerance};
pub use buffer::{Argument, Buffer, Check, Element, FileBytes, Fill, Scalar, Symbol, Workload};
pub use declared::{may_be_structure, points_to_arrays, takes_no_value};
pub use entry::{Entry, entries, find};
pub use floating::floating;
pub use formula::{Formula, INDEX};
pub(crate) use instance::arguments as instance_arguments;
pub use layout::{Field, Layout};
pub use types::{Type, vector_fields};
pub use variable::Variable;
