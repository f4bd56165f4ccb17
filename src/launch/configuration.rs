//! One configuration: one value for each axis of a kernel's space.

use super::cache_operator::LoadCacheOperator;
use super::front_end_options::FrontEndOptions;
use super::math::Math;
use crate::gpu::WARP;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Names of the dimensions of a grid or block.
pub const DIMENSIONS: [&str; 3] = ["x", "y", "z"];

/// A grid or block shape: threads or blocks in x, y and z.
pub type Dim3 = [u32; 3];

/// One value for each axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Configuration {
    /// Threads of a block in x, y and z.
    pub block: Dim3,
    /// Register cap (`maxrregcount`) in registers a thread; 0 is "none given".
    pub cap: u32,
    /// The grid, where the grid itself is an axis (`grid({..})`); otherwise it follows from the
    /// block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<Dim3>,
    /// Values of the macro axes by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub macros: BTreeMap<String, i64>,
    /// The cache operator of global loads, where it is an axis (`cache(ca, cg)`) and one is
    /// given; without, loads are nvcc's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<LoadCacheOperator>,
    /// The preferred shared-memory carve-out in percent of what an SM has at most, where it is
    /// an axis (`carveout({0, 100})`) and one is given; without, the driver chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carveout: Option<u8>,
    /// The math options that the kernel is compiled with besides the build's, where they are an
    /// axis (`math(ftz)`).
    #[serde(default, skip_serializing_if = "Math::is_none")]
    pub math: Math,
    /// The factor by which innermost loops are unrolled (`#pragma unroll`), where it is an axis
    /// (`unroll(auto)`) and one is given; without, nvcc chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unroll: Option<u32>,
    /// Whether the code is compiled for exactly this block (`.reqntid`). No axis of a space:
    /// the fastest configurations are tried both ways.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact_block: bool,
    /// Whether registers are spilled to shared memory as far as there is room. No axis of a
    /// space, as `exact_block`, which it needs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared_spills: bool,
    /// How many blocks of the program's grid, in x, one block does the work of. No axis of a
    /// space, as `exact_block`, which it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coarsening: Option<u32>,
}

impl Configuration {
    /// Threads of one block.
    pub fn block_threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// A configuration with this block and none of what the other axes may give.
    pub fn of_block(block: Dim3) -> Self {
        Self {
            block,
            cap: 0,
            grid: None,
            macros: BTreeMap::new(),
            cache: None,
            carveout: None,
            math: Math::NONE,
            unroll: None,
            exact_block: false,
            shared_spills: false,
            coarsening: None,
        }
    }

    /// Whether one block does the work of several.
    pub fn is_coarsened(&self) -> bool {
        self.coarsening.is_some_and(|blocks| blocks > 1)
    }

    /// What the front end is run with for it.
    pub fn front_end(&self) -> FrontEndOptions {
        FrontEndOptions { macros: self.macros.clone(), math: self.math, unroll: self.unroll }
    }

    /// Tells whether the front end is run with the same for both.
    pub fn has_front_end_of(&self, other: &Self) -> bool {
        (&self.macros, self.math, self.unroll) == (&other.macros, other.math, other.unroll)
    }

    /// How far it is from what a program has: first how many values differ, then whether the
    /// block is one that nobody would write (its threads no power of two, or no whole
    /// warps), then how many times as large or as small that is.
    pub fn departure(&self, from: &Self) -> Departure {
        let differs = [
            self.block != from.block,
            self.cap != from.cap,
            self.grid != from.grid,
            self.cache != from.cache,
            self.carveout != from.carveout,
            self.math != from.math,
            self.unroll != from.unroll,
            self.exact_block != from.exact_block,
            self.shared_spills != from.shared_spills,
            self.coarsening != from.coarsening,
        ];
        let macros = self.macros.iter().filter(|(name, value)| from.macros.get(*name) != Some(value)).count();
        let values = differs.into_iter().filter(|differs| *differs).count() + macros;
        let [threads, before] = [self, from].map(|found| found.block_threads().max(1));
        let oddness = match threads {
            _ if self.block == from.block => 0,
            _ if !threads.is_multiple_of(WARP) => 2,
            _ => u8::from(!threads.is_power_of_two()),
        };
        // In hundredths of a doubling.
        let scale = (100.0 * (f64::from(threads) / f64::from(before)).log2().abs()) as u32;
        Departure { values, oddness, scale }
    }
}

/// See [`Configuration::departure`]; less is more conventional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Departure {
    values: usize,
    oddness: u8,
    scale: u32,
}

/// How a kernel is launched under one configuration and workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Launch {
    /// Blocks of the program's grid in x, y and z.
    pub grid: Dim3,
    /// Threads of a block in x, y and z.
    pub block: Dim3,
    /// Dynamic shared memory of a block in bytes.
    pub shared: u32,
    /// Preferred shared-memory carve-out in percent; none leaves it to the driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carveout: Option<u8>,
    /// How many blocks of `grid`, in x, one block does the work of; none is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coarsening: Option<u32>,
}

impl Launch {
    /// Threads of one block; the most that the type holds where there are more.
    pub fn block_threads(&self) -> u32 {
        self.block.iter().fold(1, |all, &extent| all.saturating_mul(extent))
    }

    /// Whether one block does the work of several. The kernel has one more parameter then, of 32
    /// bits: the blocks of `grid` in x.
    pub fn is_coarsened(&self) -> bool {
        self.coarsening.is_some_and(|blocks| blocks > 1)
    }

    /// The grid that is launched.
    pub fn launched_grid(&self) -> Dim3 {
        let [x, y, z] = self.grid;
        [x.div_ceil(self.coarsening.unwrap_or(1).max(1)), y, z]
    }

    /// Blocks of the grid.
    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }

    /// Warps of all blocks, partial ones included.
    pub fn warps(&self) -> u64 {
        u64::from(self.block_threads().div_ceil(32)) * self.blocks()
    }

    /// Threads of the whole grid.
    pub fn threads(&self) -> u64 {
        self.blocks() * u64::from(self.block_threads())
    }
}

/// `block=32x8 reqntid regs=64 cache=cg carveout=50 math=ftz unroll=4 spill=shared coarsen=4 TILE=16`;
/// without a cap no `regs`, and so on; a grid only where it is an axis.
impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block={}", shape(self.block))?;
        if let Some(grid) = self.grid {
            write!(f, " grid={}", shape(grid))?;
        }
        if self.exact_block {
            f.write_str(" reqntid")?;
        }
        if self.cap != 0 {
            write!(f, " regs={}", self.cap)?;
        }
        if let Some(operator) = self.cache {
            write!(f, " cache={operator}")?;
        }
        if let Some(percent) = self.carveout {
            write!(f, " carveout={percent}")?;
        }
        if !self.math.is_none() {
            write!(f, " math={}", self.math)?;
        }
        if let Some(factor) = self.unroll {
            write!(f, " unroll={factor}")?;
        }
        if self.shared_spills {
            f.write_str(" spill=shared")?;
        }
        if let Some(blocks) = self.coarsening {
            write!(f, " coarsen={blocks}")?;
        }
        self.macros.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

/// `32x8` for [32, 8, 1]: trailing ones add nothing.
pub fn shape([x, y, z]: Dim3) -> String {
    match (y, z) {
        (1, 1) => x.to_string(),
        (_, 1) => format!("{x}x{y}"),
        _ => format!("{x}x{y}x{z}"),
    }
}

#[cfg(test)]
mod tests {
    use super::Configuration;
    use crate::launch::{LoadCacheOperator, Math, MathOption};
    use std::collections::BTreeMap;

    #[test]
    fn departure_counts_each_value_that_differs() {
        let macros = BTreeMap::from([("TILE".to_owned(), 16)]);
        let from = Configuration { macros, ..Configuration::of_block([256, 1, 1]) };
        let differing = [
            Configuration { block: [128, 1, 1], ..from.clone() },
            Configuration { cap: 32, ..from.clone() },
            Configuration { grid: Some([8, 1, 1]), ..from.clone() },
            Configuration { macros: BTreeMap::from([("TILE".to_owned(), 8)]), ..from.clone() },
            Configuration { cache: Some(LoadCacheOperator::Cg), ..from.clone() },
            Configuration { carveout: Some(50), ..from.clone() },
            Configuration { math: Math::from_iter([MathOption::Ftz]), ..from.clone() },
            Configuration { unroll: Some(4), ..from.clone() },
            Configuration { exact_block: true, ..from.clone() },
            Configuration { shared_spills: true, ..from.clone() },
            Configuration { coarsening: Some(4), ..from.clone() },
        ];
        assert_eq!(from.departure(&from).values, 0);
        for configuration in differing {
            assert_eq!(configuration.departure(&from).values, 1, "{configuration}");
        }
    }
}
