//! The data of one kernel for the header, as the tuner gives it.

use crate::launch::{Dim3, Math};
use crate::search::Provenance;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The data of one kernel for the header: its winner, its launch functions, how it was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeaderKernel {
    /// The kernel's name, or that of its `name` clause.
    pub name: String,
    /// The function of the source, with its template arguments: `axpy<float, 4>`.
    pub function: String,
    pub parameters: Vec<KernelParameter>,
    pub block: Dim3,
    /// The winner's block if the header gives the baseline's launches and the launch stub runs
    /// the winner instead.
    pub winner_block: Option<Dim3>,
    /// Register cap; 0 is none.
    pub cap: u32,
    /// The macro axes with their chosen values.
    pub macros: BTreeMap<String, i64>,
    /// The winner's math options besides the build's.
    #[serde(default)]
    pub math: Math,
    /// The factor by which the winner's innermost loops are unrolled.
    #[serde(default)]
    pub unroll: Option<u32>,
    /// The values that the source itself gives to the macro axes.
    pub source_macros: BTreeMap<String, i64>,
    /// Whether the winner replaces nvcc's kernel under its name, so that launches by the kernel's
    /// address run it too.
    pub is_in_place: bool,
    pub provenance: Provenance,
    /// The baseline's time over the winner's; meaningless for a baseline.
    pub speedup: f64,
    /// The GPU's name and architecture, `NVIDIA H200, sm_90`.
    pub gpu: String,
    /// Resident warps in percent of the most that an SM holds, rounded; `None` if the machine
    /// code was not read.
    pub occupancy: Option<u32>,
    /// Blocks of the grid in x, y and z.
    pub grid: HostFunction,
    /// Dynamic shared memory of a block in bytes.
    pub shared: HostFunction,
    /// The compute capability that this is for (`90`), and what is chosen on others.
    pub capability: u32,
    pub others: Vec<(u32, HeaderKernel)>,
    /// The launch on newer GPUs, which compile nvcc's PTX; `None` if it is the same.
    #[serde(default)]
    pub newer: Option<Box<HeaderKernel>>,
    /// Whether the kernel synchronizes its grid, so that it must be launched cooperatively.
    pub cooperative: bool,
    /// Preferred shared-memory carve-out in percent, -1 where the driver chooses; `None` if it is
    /// not an axis, and not in the header.
    pub carveout: Option<i32>,
}

/// A parameter of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelParameter {
    pub name: Option<String>,
    /// The declaration as written, with single blanks.
    pub declaration: String,
}

/// A host function over the scalar arguments that its clause names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFunction {
    pub parameters: Vec<HostParameter>,
    /// C expressions of the type `long long` or `double`: three for a grid, one for a size.
    pub values: Vec<String>,
    /// The values in the comment's language, for the reader: `ceildiv(n, 96)`.
    pub words: Vec<String>,
}

/// A parameter of a host function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostParameter {
    /// The type in C.
    pub kind: String,
    pub name: String,
    /// Index of the kernel's parameter, from 0, and the field of it (`.n`); empty for the
    /// parameter itself.
    pub argument: usize,
    pub field: String,
}

impl HeaderKernel {
    /// Replaces the launch by that of `other`; the block becomes the winner's.
    pub fn launch_as(&mut self, other: &Self) {
        self.winner_block = Some(self.block);
        self.block = other.block;
        self.grid.clone_from(&other.grid);
        self.shared.clone_from(&other.shared);
        self.carveout = other.carveout;
    }
}

/// A kernel with its names in the header.
pub(super) struct Section<'a> {
    pub kernel: &'a HeaderKernel,
    /// The structure in the namespace `nvtune`.
    pub type_name: String,
    /// The include guard of the kernel's part for C and C++; the other parts' begin with it.
    pub guard: String,
    /// Whether it has macros (see [`without_macros`](super::header::without_macros)).
    pub has_macros: bool,
}

/// `name` as the prefix of a macro name: in upper case, with `_` for every character that an
/// identifier cannot have.
pub fn macro_name(name: &str) -> String {
    name.chars()
        .map(|character| if character.is_ascii_alphanumeric() { character.to_ascii_uppercase() } else { '_' })
        .collect()
}
