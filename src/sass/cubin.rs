//! A cubin: its architecture and its kernels.

use super::error::SassError;
use super::kernel::CubinKernel;
use super::{elf, resources};

/// Where ptxas keeps the PTX that the code was made of.
const PTX_TEXT: &str = ".nv_debug_ptx_txt";

/// The same cubin with zeros in place of the PTX that it carries, which is most of a small one;
/// nothing here reads it.
pub fn without_ptx_text(bytes: &[u8]) -> Vec<u8> {
    let mut without = bytes.to_vec();
    let place = elf::File::parse(bytes).ok().and_then(|file| file.section_place(PTX_TEXT));
    if let Some(text) = place.and_then(|place| without.get_mut(place)) {
        text.fill(0);
    }
    without
}

/// A CUDA binary for one architecture.
#[derive(Clone, Debug)]
pub struct Cubin<'data> {
    architecture: u32,
    kernels: Vec<CubinKernel<'data>>,
}

impl<'data> Cubin<'data> {
    /// Reads a cubin.
    ///
    /// # Errors
    /// Where the bytes are not a 64-bit little-endian CUDA ELF file, where a table of it is cut
    /// short or points outside, and where the architecture is older than 7.0 (its instructions
    /// have another encoding).
    pub fn parse(bytes: &'data [u8]) -> Result<Self, SassError> {
        let file = elf::File::parse(bytes)?;
        let kernels = resources::read_kernels(&file)?;
        Ok(Self { architecture: file.architecture(), kernels })
    }

    /// Compute capability as two digits: 90 is 9.0.
    pub fn architecture(&self) -> u32 {
        self.architecture
    }

    /// The kernels, in the order of the symbol table.
    pub fn kernels(&self) -> &[CubinKernel<'data>] {
        &self.kernels
    }

    /// The kernel with this (mangled) name.
    pub fn kernel(&self, name: &str) -> Option<&CubinKernel<'data>> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }
}
