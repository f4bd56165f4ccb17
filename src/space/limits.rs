//! What a configuration may be at most, whatever the comment says.

use crate::launch::{Dim3, Math};

/// Threads of a block, in all and by dimension, and blocks of a grid by dimension (CUDA C++
/// Programming Guide, "Technical Specifications per Compute Capability": the same on all that
/// CUDA still knows).
pub const MAX_BLOCK_THREADS: u32 = 1024;
pub const MAX_BLOCK: Dim3 = [1024, 1024, 64];
pub const MAX_GRID: Dim3 = [2_147_483_647, 65_535, 65_535];

/// Limits of the device and of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Threads of a block.
    pub max_threads_per_block: u32,
    /// Threads of a block in x, y and z.
    pub max_block: Dim3,
    /// Blocks of a grid in x, y and z.
    pub max_grid: Dim3,
    /// The register caps that `regs(auto)` stands for.
    pub auto_caps: Vec<u32>,
    /// Threads of a block that the kernel's launch bounds allow, where it has some.
    pub max_threads: Option<u32>,
    /// Bytes of dynamic shared memory that a block may have.
    pub max_dynamic_shared: u32,
    /// The math options that the build has for all kernels: they are no values of `math`.
    pub build_math: Math,
    /// Whether the kernel has loops for `unroll`: without, that axis has no values.
    pub has_loops: bool,
}

impl Default for Limits {
    /// What every GPU has, with 48 KiB of shared memory and caps that span the allocation steps
    /// of registers.
    fn default() -> Limits {
        Limits {
            max_threads_per_block: MAX_BLOCK_THREADS,
            max_block: MAX_BLOCK,
            max_grid: MAX_GRID,
            auto_caps: vec![0, 24, 32, 40, 48, 64, 80, 96, 128, 168, 255],
            max_threads: None,
            max_dynamic_shared: 48 * 1024,
            build_math: Math::NONE,
            has_loops: true,
        }
    }
}

impl Limits {
    /// What a block may be, as messages say it.
    pub fn block_rule(&self) -> String {
        let most = self.max_threads.map_or(self.max_threads_per_block, |bound| bound.min(self.max_threads_per_block));
        let [x, y, z] = self.max_block;
        format!("a block has at most {most} threads, {x} x {y} x {z}")
    }

    /// True for a block shape that can be launched.
    pub fn allows(&self, block: Dim3) -> bool {
        let threads: u64 = block.iter().map(|&extent| u64::from(extent)).product();
        let most = self.max_threads.map_or(self.max_threads_per_block, |bound| bound.min(self.max_threads_per_block));
        block.iter().zip(self.max_block).all(|(&extent, most)| (1..=most).contains(&extent))
            && threads <= u64::from(most)
    }
}
