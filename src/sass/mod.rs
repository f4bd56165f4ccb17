//! cubin bytes -> resources and SASS.
//!
//! In go the bytes of one cubin (CUDA 12's ELF layout or CUDA 13's); out come its kernels:
//! their [`Resources`], their machine code, decoded by [`instruction`] and cut into blocks and
//! loops by [`control_flow`], and the PTX line of each instruction. Reading is pure: any input
//! gives a value or an [`SassError`] that names the section and the offset, and memory stays
//! bounded by the input's size.

mod code_digest;
pub mod control_flow;
mod cubin;
mod elf;
mod error;
mod info;
pub mod instruction;
mod kernel;
mod line_info;
mod opcode;
mod resources;

pub use code_digest::{CodeDigestError, code_digest};
pub use cubin::{Cubin, without_ptx_text};
pub use error::SassError;
pub use kernel::{CubinKernel, DeviceFunction, IndirectBranch, Parameter, Resources};
pub use line_info::Lines;
pub use opcode::{Class, Opcode, Pipe};
