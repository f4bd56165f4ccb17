//! cubin bytes -> resources and SASS.
//!
//! In go the bytes of one cubin (CUDA 12's ELF layout or CUDA 13's); out come its kernels: their [`Resources`], their machine
//! code, decoded by [`sass`] and cut into blocks and loops by [`flow`], and the PTX line of each instruction. Reading is pure:
//! any input gives a value or an [`Error`] that names the section and the offset, and memory stays bounded by the input's size.

mod code_digest;
pub mod control_flow;
mod elf;
mod error;
mod info;
pub mod instruction;
mod line_info;
mod opcode;
mod resources;

pub use code_digest::{CodeDigestError, code_digest};
pub use error::Error;
pub use line_info::Lines;
pub use opcode::{Class, Opcode, Pipe};
pub use resources::{Parameter, Resources};

/// Where ptxas keeps the PTX that the code was made of.
const PTX_TEXT: &str = ".nv_debug_ptx_txt";

/// The same cubin with zeros in place of the PTX that it carries, which is most of a small one; nothing here reads it.
pub fn without_ptx_text(bytes: &[u8]) -> Vec<u8> {
    let mut without = bytes.to_vec();
    let place = elf::File::parse(bytes).ok().and_then(|file| file.place(PTX_TEXT));
    if let Some(text) = place.and_then(|place| without.get_mut(place)) {
        text.fill(0);
    }
    without
}

/// A CUDA binary for one architecture.
#[derive(Clone, Debug)]
pub struct Cubin<'data> {
    architecture: u32,
    kernels: Vec<Kernel<'data>>,
}

/// A kernel (`__global__` function) of a cubin.
#[derive(Clone, Debug)]
pub struct Kernel<'data> {
    /// The mangled name.
    pub name: &'data str,
    /// Compute capability as two digits: 90 is 9.0.
    pub architecture: u32,
    pub resources: Resources,
    /// The machine code of its section: the kernel and the device functions that it calls there.
    pub code: &'data [u8],
    /// Device functions in the same section.
    pub functions: Vec<Function<'data>>,
    /// PTX lines, where the cubin was made with `-lineinfo`.
    pub lines: Lines,
    /// Targets of indirect branches, in bytes from the section's start.
    pub indirect: Vec<IndirectBranch>,
}

/// A device function that ptxas left as a function of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function<'data> {
    /// As ptxas names it: `$kernel$callee`, or `$__internal_0_$__cuda_...` for its own subroutines.
    pub name: &'data str,
    /// First instruction, in bytes from the section's start.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
}

/// A branch through a jump table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndirectBranch {
    /// The branch, in bytes from the section's start.
    pub offset: u32,
    /// Where it may go, in bytes from the section's start.
    pub targets: Vec<u32>,
}

impl<'data> Cubin<'data> {
    /// Reads a cubin.
    ///
    /// # Errors
    /// Where the bytes are not a 64-bit little-endian CUDA ELF file, where a table of it is cut short or points outside,
    /// and where the architecture is older than 7.0 (its instructions have another encoding).
    pub fn parse(bytes: &'data [u8]) -> Result<Self, Error> {
        let file = elf::File::parse(bytes)?;
        let kernels = resources::kernels(&file)?;
        Ok(Self { architecture: file.architecture(), kernels })
    }

    /// Compute capability as two digits: 90 is 9.0.
    pub fn architecture(&self) -> u32 {
        self.architecture
    }

    /// The kernels, in the order of the symbol table.
    pub fn kernels(&self) -> &[Kernel<'data>] {
        &self.kernels
    }

    /// The kernel with this (mangled) name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel<'data>> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }
}
