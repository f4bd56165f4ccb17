//! What a kernel is launched on: its arguments, its buffers, and what is compared afterwards.
//!
//! Annotation + parameter types + configuration -> [`Workload`]. Contents of buffers are a pure
//! function of (buffer, index), so that the measuring process, a second seed and a model that
//! runs a few threads all see the same data.

mod bind;
mod buffer;
mod checks;
pub mod contents;
mod demangle;
pub mod entry;
mod floating;
mod formula;
pub mod layout;
mod npy;
pub mod random;
mod recorded_memory;
mod structure;
pub mod template_args;
mod variable;

/// What the fuzz targets (tests/fuzz) reach of the private readers.
#[doc(hidden)]
pub mod fuzzed {
    use super::npy::Array;
    use crate::cuda::Scalar;

    /// Reads the header of a `.npy` file.
    pub fn npy(bytes: &[u8]) {
        if let Ok(array) = Array::parse(bytes) {
            assert!(array.data.end <= bytes.len());
            let _ = array.holds(Scalar::F32);
        }
    }
}

pub use bind::bind;
pub use buffer::{Argument, Buffer, Check, FileBytes, Fill, Symbol, VariableCheck, Workload, WrittenVariable};
pub use checks::{default_relative_tolerance, variable_check};
pub use demangle::demangled_name;
pub use entry::{Entry, TemplateFit, entries, find, has_instance, template_fit};
pub use floating::floating;
pub use formula::{Formula, INDEX};
pub use structure::{Field, Layout};
pub use variable::Variable;
