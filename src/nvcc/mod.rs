//! Everything about being `nvcc`: argv and environment -> [`Invocation`], and the real nvcc behind it.

mod dryrun;
mod invocation;
mod marked;
mod mirror;
mod option;
mod overlay;
mod real;
pub mod shim;

pub use dryrun::{Dryrun, DryrunError, Pipeline, Step};
pub use invocation::{Invocation, InvocationError, Phase};
pub use marked::{MarkedFile, marked_files};
pub use mirror::mirror;
pub use option::{Arity, NvccOption, lookup};
pub use overlay::{Overlay, OverlayError};
pub use real::{NotFound, REAL_NVCC, RealNvcc};
