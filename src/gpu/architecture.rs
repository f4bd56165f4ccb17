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

type ArchitectureRow = (u32, u32, u32, u32, u32, u32, u32, u32, u32);

/// capability, threads and blocks of an SM, KB of shared memory of an SM and of a block, unit,
/// reserve, barriers for each block slot, KB of unified cache
#[rustfmt::skip]
const TABLE: &[ArchitectureRow] = &[
    ( 70, 2048, 32,  96,  96, 256,    0, 2, 128),
    ( 72, 2048, 32,  96,  96, 256,    0, 2, 128),
    ( 75, 1024, 16,  64,  64, 256,    0, 2,  96),
    ( 80, 2048, 32, 164, 163, 128, 1024, 2, 192),
    ( 86, 1536, 16, 100,  99, 128, 1024, 1, 128),
    ( 87, 1536, 16, 164, 163, 128, 1024, 1, 192),
    ( 88, 1536, 16, 100,  99, 128, 1024, 1, 128),
    ( 89, 1536, 24, 100,  99, 128, 1024, 1, 128),
    ( 90, 2048, 32, 228, 227, 128, 1024, 2, 256),
    (100, 2048, 32, 228, 227, 128, 1024, 2, 256),
    (103, 2048, 32, 228, 227, 128, 1024, 2, 256),
    (110, 1536, 24, 228, 227, 128, 1024, 1, 256),
    (120, 1536, 24, 100,  99, 128, 1024, 1, 128),
    (121, 1536, 24, 100,  99, 128, 1024, 1, 128),
];

/// KB of shared memory that an SM can be set to, of those up to its most (`cuda_occupancy.h`);
/// 7.x has others.
const CAPACITIES: &[u32] = &[0, 8, 16, 32, 64, 100, 132, 164, 196, 228];
const CAPACITIES_70: &[u32] = &[0, 8, 16, 32, 64, 96];
const CAPACITIES_75: &[u32] = &[32, 64];

impl Architecture {
    /// The architecture with this compute capability (90 is 9.0); none where it is not in the
    /// table.
    pub fn find(capability: u32) -> Option<Self> {
        TABLE.iter().find(|row| row.0 == capability).map(Self::from_row)
    }

    /// As [`Architecture::find`]; an unknown capability is taken for the nearest one below, or
    /// the oldest.
    pub fn nearest(capability: u32) -> Self {
        let row = TABLE.iter().rev().find(|row| row.0 <= capability).unwrap_or(&TABLE[0]);
        Self::from_row(row)
    }

    /// All architectures of the table.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(Self::from_row)
    }

    fn from_row(row: &ArchitectureRow) -> Self {
        let &(capability, max_threads, max_blocks, shared, shared_per_block, unit, reserved, barriers, cache) = row;
        Self {
            capability,
            max_threads,
            max_blocks,
            registers: REGISTERS,
            register_unit: REGISTER_UNIT,
            sub_cores: SUB_CORES,
            shared: shared * KB,
            shared_per_block: shared_per_block * KB,
            shared_unit: unit,
            shared_reserved: reserved,
            barriers: (capability >= 90).then_some(barriers * max_blocks),
            virtual_resources: (capability >= 100).then_some(128),
            unified_cache: cache * KB,
        }
    }

    /// The shared memory of an SM under a preferred carve-out, where no block needs more.
    pub fn preferred_shared(&self, percent: u8) -> u32 {
        self.shared_capacity(u64::from(self.shared) * u64::from(percent) / 100)
    }

    /// The least shared memory of at least this many bytes that an SM can be set to; the most,
    /// where there is none.
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

/// The register caps that `regs(auto)` means: none given (0), then for each number of warps
/// that a sub-core may hold the largest cap that lets it, in the hardware's unit of 8 registers
/// a thread; ascending.
pub fn auto_caps(architecture: &Architecture) -> Vec<u32> {
    let lane_registers = REGISTERS / SUB_CORES / WARP;
    let unit = REGISTER_UNIT / WARP;
    let most = architecture.max_warps() / SUB_CORES;
    let mut caps = vec![0];
    caps.extend((1..=most).rev().map(|warps| (lane_registers / warps / unit * unit).min(MAX_REGISTERS)));
    caps.dedup();
    caps
}

/// A GPU, as far as predicted times depend on it.
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

/// What a copy reaches of the bandwidth in the data sheet (4.3 of 4.8 TB/s measured on an
/// H200).
const REACHED: f64 = 0.9;

/// capability, name, SMs, GHz (boost), GB/s (data sheet), MB of level-2 cache
///
/// Sources: NVIDIA's data sheets and architecture white papers of the GPUs named; the H200's row
/// was measured.
#[rustfmt::skip]
const NOMINAL: &[(u32, &str, u32, f64, f64, u64)] = &[
    ( 70, "Tesla V100 SXM2",      80, 1.53,  900.0,   6),
    ( 72, "Jetson AGX Xavier",     8, 1.38,  137.0,   1),
    ( 75, "GeForce RTX 2080 Ti",  68, 1.55,  616.0,   6),
    ( 80, "A100 SXM 80 GB",      108, 1.41, 2039.0,  40),
    ( 86, "GeForce RTX 3090",     82, 1.70,  936.0,   6),
    ( 87, "Jetson AGX Orin",      16, 1.30,  205.0,   4),
    ( 88, "Jetson AGX Orin",      16, 1.30,  205.0,   4),
    ( 89, "GeForce RTX 4090",    128, 2.52, 1008.0,  72),
    ( 90, "H200 SXM",            132, 1.98, 4800.0,  60),
    (100, "B200",                148, 1.97, 8000.0, 126),
    (103, "B300",                148, 1.92, 8000.0, 126),
    (110, "Jetson AGX Thor",      20, 1.57,  273.0,  32),
    (120, "GeForce RTX 5090",    170, 2.41, 1792.0,  96),
    (121, "GB10 (DGX Spark)",     48, 2.42,  273.0,  24),
];

impl Machine {
    /// A GPU as its driver describes it; what the driver would not tell is the flagship's.
    pub fn of_device(architecture: Architecture, device: &Device) -> Self {
        let nominal = Self::with_nominal_clocks(architecture);
        let reported = |value: f64, otherwise: f64| if value > 0.0 { value } else { otherwise };
        Self {
            architecture,
            sms: if device.sms > 0 { device.sms } else { nominal.sms },
            clock_ghz: reported(f64::from(device.clock_khz) / 1e6, nominal.clock_ghz),
            bandwidth_gbs: reported(device.bandwidth / 1e9 * REACHED, nominal.bandwidth_gbs),
            l2_bytes: if device.l2_bytes > 0 { device.l2_bytes } else { nominal.l2_bytes },
        }
    }

    /// Returns the vendor's flagship of an architecture, for predictions without a GPU.
    pub fn with_nominal_clocks(architecture: Architecture) -> Self {
        let row = NOMINAL.iter().rev().find(|row| row.0 <= architecture.capability).unwrap_or(&NOMINAL[0]);
        let &(_, _, sms, clock_ghz, bandwidth, l2) = row;
        Self { architecture, sms, clock_ghz, bandwidth_gbs: bandwidth * REACHED, l2_bytes: l2 << 20 }
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
        let nominal = Machine::with_nominal_clocks(architecture);
        let reported = Device { sms: 7, l2_bytes: 12345, ..Device::default() };
        let machine = Machine::of_device(architecture, &reported);
        assert_eq!((machine.sms, machine.l2_bytes, machine.clock_ghz), (7, 12345, nominal.clock_ghz));
        let machine = Machine::of_device(architecture, &Device::default());
        assert_eq!((machine.sms, machine.l2_bytes), (nominal.sms, nominal.l2_bytes));
    }
}
