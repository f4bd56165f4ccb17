//! Compute capability -> the limits and rates of an SM, and of a whole GPU.
//!
//! The tables are data: what holds for every GPU of a capability ([`Architecture`]), and what
//! differs between GPUs ([`Machine`]: a nominal one for each capability, or what a device
//! reports).

use super::device::Device;

/// What an SM of one compute capability holds.
///
/// Sources: blocks, allocation units, barriers and virtual resources from `cuda_occupancy.h`
/// (CUDA 13.0); threads and shared memory from "Technical Specifications per Compute
/// Capability" of the CUDA C++ programming guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Architecture {
    /// Two digits: 90 is 9.0.
    pub capability: u32,
    /// Resident threads of an SM.
    pub max_threads: u32,
    /// Resident blocks of an SM.
    pub max_blocks: u32,
    /// Registers of an SM, and of a block at most.
    pub registers: u32,
    /// Unit in which a warp is given registers.
    pub register_unit: u32,
    /// Parts of an SM that have a scheduler and registers of their own.
    pub sub_cores: u32,
    /// Shared memory of an SM in bytes.
    pub shared: u32,
    /// The most shared memory that a block may ask for, in bytes.
    pub shared_per_block: u32,
    /// Unit in which shared memory is allocated, in bytes.
    pub shared_unit: u32,
    /// Shared memory that the driver reserves in each block, in bytes.
    pub shared_reserved: u32,
    /// Named barriers of an SM; no limit before compute capability 9.
    pub barriers: Option<u32>,
    /// Virtual resources of an SM; no limit before compute capability 10.
    pub virtual_resources: Option<u32>,
    /// Level-1 cache and shared memory together, in bytes.
    pub unified_cache: u32,
}

/// Threads of a warp.
pub const WARP: u32 = 32;
/// Schedulers of an SM, each with its own registers.
pub const SUB_CORES: u32 = 4;
/// Registers of an SM, which is also the limit of a block (7.0 and later).
pub const REGISTERS: u32 = 65_536;
/// Registers are allocated to a warp in units of this many.
pub const REGISTER_UNIT: u32 = 256;
/// Registers that an instruction can name.
pub const MAX_REGISTERS: u32 = 255;

const KB: u32 = 1024;

/// One row of [`TABLE`], where the columns have their names.
const fn row(
    [
        capability,
        max_threads,
        max_blocks,
        shared_kb,
        shared_per_block_kb,
        shared_unit,
        shared_reserved,
        barriers_per_block,
        unified_cache_kb,
    ]: [u32; 9],
) -> Architecture {
    Architecture {
        capability,
        max_threads,
        max_blocks,
        registers: REGISTERS,
        register_unit: REGISTER_UNIT,
        sub_cores: SUB_CORES,
        shared: shared_kb * KB,
        shared_per_block: shared_per_block_kb * KB,
        shared_unit,
        shared_reserved,
        barriers: if capability >= 90 { Some(barriers_per_block * max_blocks) } else { None },
        virtual_resources: if capability >= 100 { Some(128) } else { None },
        unified_cache: unified_cache_kb * KB,
    }
}

/// All architectures, by ascending capability; [`row`] names the columns.
#[rustfmt::skip]
const TABLE: &[Architecture] = &[
    row([ 70, 2048, 32,  96,  96, 256,    0, 2, 128]),
    row([ 72, 2048, 32,  96,  96, 256,    0, 2, 128]),
    row([ 75, 1024, 16,  64,  64, 256,    0, 2,  96]),
    row([ 80, 2048, 32, 164, 163, 128, 1024, 2, 192]),
    row([ 86, 1536, 16, 100,  99, 128, 1024, 1, 128]),
    row([ 87, 1536, 16, 164, 163, 128, 1024, 1, 192]),
    row([ 88, 1536, 16, 100,  99, 128, 1024, 1, 128]),
    row([ 89, 1536, 24, 100,  99, 128, 1024, 1, 128]),
    row([ 90, 2048, 32, 228, 227, 128, 1024, 2, 256]),
    row([100, 2048, 32, 228, 227, 128, 1024, 2, 256]),
    row([103, 2048, 32, 228, 227, 128, 1024, 2, 256]),
    row([110, 1536, 24, 228, 227, 128, 1024, 1, 256]),
    row([120, 1536, 24, 100,  99, 128, 1024, 1, 128]),
    row([121, 1536, 24, 100,  99, 128, 1024, 1, 128]),
];

/// KB of shared memory that an SM can be configured with (`cuda_occupancy.h`), as far as they do
/// not exceed [`Architecture::shared`]; 7.x has its own.
const CAPACITIES: &[u32] = &[0, 8, 16, 32, 64, 100, 132, 164, 196, 228];
const CAPACITIES_70: &[u32] = &[0, 8, 16, 32, 64, 96];
const CAPACITIES_75: &[u32] = &[32, 64];

impl Architecture {
    /// The architecture with this compute capability (90 is 9.0); none where it is not in the
    /// table.
    pub fn find(capability: u32) -> Option<Self> {
        TABLE.iter().find(|known| known.capability == capability).copied()
    }

    /// As [`Architecture::find`]; for an unknown capability the nearest lower one, or the oldest.
    pub fn nearest(capability: u32) -> Self {
        *TABLE.iter().rev().find(|known| known.capability <= capability).unwrap_or(&TABLE[0])
    }

    /// All architectures of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().copied()
    }

    /// The shared memory of an SM under a preferred carve-out, if no block needs more.
    pub fn preferred_shared(&self, percent: u8) -> u32 {
        self.shared_capacity(u64::from(self.shared) * u64::from(percent) / 100)
    }

    /// The smallest shared memory of at least this many bytes that an SM can be configured with;
    /// if there is none, the largest.
    pub fn shared_capacity(&self, bytes: u64) -> u32 {
        let capacities = match self.capability {
            75 => CAPACITIES_75,
            ..80 => CAPACITIES_70,
            _ => CAPACITIES,
        };
        let capacities = capacities.iter().map(|&capacity| capacity * KB);
        capacities.filter(|&capacity| u64::from(capacity) >= bytes).fold(self.shared, u32::min)
    }

    /// Resident warps of an SM.
    pub fn max_warps(&self) -> u32 {
        self.max_threads / WARP
    }
}

/// The register caps that `regs(auto)` means: 0 (no cap), then for each number of warps of a
/// sub-core, from the most to one, the largest cap with which it holds them, in the hardware's
/// unit of 8 registers a thread; ascending.
pub fn auto_caps(architecture: &Architecture) -> Vec<u32> {
    let lane_registers = REGISTERS / SUB_CORES / WARP;
    let unit = REGISTER_UNIT / WARP;
    let most = architecture.max_warps() / SUB_CORES;
    let mut caps = vec![0];
    caps.extend((1..=most).rev().map(|warps| (lane_registers / warps / unit * unit).min(MAX_REGISTERS)));
    caps.dedup();
    caps
}

/// The properties of a GPU on which predicted times depend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    pub architecture: Architecture,
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Clock of the SMs in GHz.
    pub clock_ghz: f64,
    /// Bandwidth that a copy reaches, in GB/s; about nine tenths of the data sheet's.
    pub bandwidth_gbs: f64,
    /// Level-2 cache in bytes.
    pub l2_bytes: u64,
}

/// Share of the data sheet's bandwidth that a copy achieves (4.3 of 4.8 TB/s measured on an
/// H200).
const ACHIEVED_BANDWIDTH_SHARE: f64 = 0.9;

/// The vendor's flagship of one architecture, as its data sheet describes it.
struct Flagship {
    capability: u32,
    sms: u32,
    /// Boost clock of the SMs.
    clock_ghz: f64,
    /// Bandwidth of device memory.
    bandwidth_gbs: f64,
    /// Level-2 cache.
    l2_mb: u64,
}

/// One row of [`FLAGSHIPS`], where the columns have their names.
const fn flagship(capability: u32, _name: &str, sms: u32, clock_ghz: f64, bandwidth_gbs: f64, l2_mb: u64) -> Flagship {
    Flagship { capability, sms, clock_ghz, bandwidth_gbs, l2_mb }
}

/// By ascending capability; [`flagship`] names the columns.
///
/// Sources: NVIDIA's data sheets and architecture white papers of the GPUs named; the H200's row
/// was measured.
#[rustfmt::skip]
const FLAGSHIPS: &[Flagship] = &[
    flagship( 70, "Tesla V100 SXM2",      80, 1.53,  900.0,   6),
    flagship( 72, "Jetson AGX Xavier",     8, 1.38,  137.0,   1),
    flagship( 75, "GeForce RTX 2080 Ti",  68, 1.55,  616.0,   6),
    flagship( 80, "A100 SXM 80 GB",      108, 1.41, 2039.0,  40),
    flagship( 86, "GeForce RTX 3090",     82, 1.70,  936.0,   6),
    flagship( 87, "Jetson AGX Orin",      16, 1.30,  205.0,   4),
    flagship( 88, "Jetson AGX Orin",      16, 1.30,  205.0,   4),
    flagship( 89, "GeForce RTX 4090",    128, 2.52, 1008.0,  72),
    flagship( 90, "H200 SXM",            132, 1.98, 4800.0,  60),
    flagship(100, "B200",                148, 1.97, 8000.0, 126),
    flagship(103, "B300",                148, 1.92, 8000.0, 126),
    flagship(110, "Jetson AGX Thor",      20, 1.57,  273.0,  32),
    flagship(120, "GeForce RTX 5090",    170, 2.41, 1792.0,  96),
    flagship(121, "GB10 (DGX Spark)",     48, 2.42,  273.0,  24),
];

impl Machine {
    /// A GPU as its driver describes it; what the driver does not report is the flagship's.
    pub fn from_device(architecture: Architecture, device: &Device) -> Self {
        let nominal = Self::flagship_of(architecture);
        let reported = |value: f64, otherwise: f64| if value > 0.0 { value } else { otherwise };
        Self {
            architecture,
            sms: if device.sms > 0 { device.sms } else { nominal.sms },
            clock_ghz: reported(f64::from(device.clock_khz) / 1e6, nominal.clock_ghz),
            bandwidth_gbs: reported(device.bandwidth / 1e9 * ACHIEVED_BANDWIDTH_SHARE, nominal.bandwidth_gbs),
            l2_bytes: if device.l2_bytes > 0 { device.l2_bytes } else { nominal.l2_bytes },
        }
    }

    /// The vendor's flagship GPU of an architecture, for predictions without a GPU.
    pub fn flagship_of(architecture: Architecture) -> Self {
        let capability = architecture.capability;
        let known = FLAGSHIPS.iter().rev().find(|known| known.capability <= capability).unwrap_or(&FLAGSHIPS[0]);
        Self {
            architecture,
            sms: known.sms,
            clock_ghz: known.clock_ghz,
            bandwidth_gbs: known.bandwidth_gbs * ACHIEVED_BANDWIDTH_SHARE,
            l2_bytes: known.l2_mb << 20,
        }
    }
}

/// The number in `sm_90`, `sm_90a`, `compute_90`.
pub fn architecture_number(name: &str) -> Option<u32> {
    let digits = name.rsplit('_').next()?;
    digits.trim_end_matches(|character: char| character.is_ascii_alphabetic()).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{Architecture, Machine};
    use crate::gpu::Device;

    #[test]
    fn machine_takes_what_the_driver_tells_and_else_the_flagship() {
        let architecture = Architecture::nearest(90);
        let nominal = Machine::flagship_of(architecture);
        let reported = Device { sms: 7, l2_bytes: 12345, ..Device::default() };
        let machine = Machine::from_device(architecture, &reported);
        assert_eq!((machine.sms, machine.l2_bytes, machine.clock_ghz), (7, 12345, nominal.clock_ghz));
        let machine = Machine::from_device(architecture, &Device::default());
        assert_eq!((machine.sms, machine.l2_bytes), (nominal.sms, nominal.l2_bytes));
    }
}
