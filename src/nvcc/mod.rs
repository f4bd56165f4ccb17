//! Everything about being `nvcc`: argv and environment -> [`Invocation`], and the real nvcc behind it.

pub mod cicc;
mod dryrun;
mod images;
mod invocation;
mod made;
mod marked;
mod mirror;
mod option;
mod overlay;
mod programs;
mod real;
pub mod shim;
pub mod ticketed;

pub use dryrun::{Dryrun, DryrunError, Pipeline, Step};
pub use images::{Loaded, Loads};
pub use invocation::{Invocation, InvocationError, Phase};
pub use made::Made;
pub use marked::{Found, MarkedFile, marked_files, quoted_files};
pub use mirror::mirror;
pub use option::{Arity, NvccOption, list_value, list_values, lookup};
pub use overlay::{Overlay, OverlayError};
pub use programs::{Programs, compilers};
pub use real::{NotFound, REAL_NVCC, RealNvcc};
