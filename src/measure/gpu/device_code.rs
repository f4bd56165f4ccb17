//! The device code of nvtune itself (`device.cu`): what buffers hold before a launch, digests, and whether two buffers agree.
//!
//! In: device memory. Out: the same bits that [`contents`](crate::workload::contents) and [`compare`](super::super::compare) give on the
//! host, in a thousandth of the time and without a copy of the buffer over the bus.

use super::super::compare::Bounds;
use super::driver::{Context, Function, Memory, Module, Result, Stream};
use crate::space::Launch;
use crate::workload::Scalar;
use crate::workload::contents::Recipe;

pub(super) struct DeviceCode {
    fill: Function,
    digest: Function,
    compare: Function,
    /// Keeps the functions loaded.
    _module: Module,
    sums: Memory,
}

/// Sums that one read-back holds.
const SUMS: usize = 256;

const THREADS: u32 = 256;
const MOST_BLOCKS: u32 = 1024;

impl DeviceCode {
    pub fn load(context: &Context) -> Result<DeviceCode> {
        let module = Module::load(context, include_bytes!("device.ptx"))?;
        Ok(DeviceCode {
            fill: module.function("nvtune_fill")?,
            digest: module.function("nvtune_digest")?,
            compare: module.function("nvtune_compare")?,
            _module: module,
            sums: Memory::allocate(context, SUMS * size_of::<u64>())?,
        })
    }

    /// Makes the first `count` scalars of a buffer of this seed, as many as fit; does not wait. False, with nothing done, where the
    /// recipe is one for the host.
    pub fn fill(&self, to: &Memory, count: usize, scalar: Scalar, recipe: Recipe, seed: u64) -> Result<bool> {
        let (kind, a, b) = match recipe {
            Recipe::Bits(bits) => (0, bits, 0),
            Recipe::Iota => (1, 0, 0),
            Recipe::Floats { lo, hi } if (hi - lo).is_finite() => (2, lo.to_bits(), hi.to_bits()),
            Recipe::Floats { .. } => return Ok(false),
            Recipe::Integers { lo, span } => (3, lo, span),
        };
        let count = count.min(to.bytes() / scalar.size()) as u64;
        let mut arguments = [
            to.address().to_le_bytes().to_vec(),
            count.to_le_bytes().to_vec(),
            format(scalar).to_le_bytes().to_vec(),
            u32::to_le_bytes(kind).to_vec(),
            a.to_le_bytes().to_vec(),
            b.to_le_bytes().to_vec(),
            seed.to_le_bytes().to_vec(),
        ];
        // SAFETY: device.cu takes these arguments: where to, how many scalars, of what format, and what they are. The memory holds
        // as many.
        unsafe { self.fill.launch(&grid_over(count), false, &mut arguments, Stream::DEFAULT) }?;
        Ok(true)
    }

    /// Digests of what these memories hold, up to a multiple of 8 bytes; waits for what was launched.
    pub fn digests(&self, memories: &[&Memory]) -> Result<Vec<u64>> {
        let mut digests = Vec::with_capacity(memories.len());
        for memories in memories.chunks(SUMS) {
            self.sums.set(0, Stream::DEFAULT)?;
            for (i, memory) in memories.iter().enumerate() {
                let words = (memory.bytes() / 8) as u64;
                let sum = self.sums.address() + 8 * i as u64;
                let mut arguments = [memory.address(), words, sum].map(|n| n.to_le_bytes().to_vec());
                // SAFETY: device.cu takes three arguments of 8 bytes: the words, their number, and where the sum goes. Both
                // memories hold as much.
                unsafe { self.digest.launch(&grid_over(words), false, &mut arguments, Stream::DEFAULT) }?;
            }
            digests.extend(self.sums(memories.len())?);
        }
        Ok(digests)
    }

    /// Whether the first `count` floats of `got` are as close to those of `expected` as `bounds` allow. Both hold as many, else they
    /// do not agree; waits for what was launched.
    pub fn agree(&self, expected: &Memory, got: &Memory, count: usize, scalar: Scalar, bounds: Bounds) -> Result<bool> {
        let bytes = count.saturating_mul(scalar.size());
        if !scalar.is_float() || bytes > expected.bytes() || bytes > got.bytes() {
            return Ok(false);
        }
        self.sums.set(0, Stream::DEFAULT)?;
        let count = count as u64;
        let mut arguments = [
            expected.address().to_le_bytes().to_vec(),
            got.address().to_le_bytes().to_vec(),
            count.to_le_bytes().to_vec(),
            format(scalar).to_le_bytes().to_vec(),
            bounds.relative.to_le_bytes().to_vec(),
            bounds.absolute.to_le_bytes().to_vec(),
            self.sums.address().to_le_bytes().to_vec(),
        ];
        // SAFETY: device.cu takes these arguments: both memories, which hold as many scalars, their format, the bounds, and where the
        // number of those that differ goes.
        unsafe { self.compare.launch(&grid_over(count), false, &mut arguments, Stream::DEFAULT) }?;
        Ok(self.sums(1)?.first() == Some(&0))
    }

    fn sums(&self, count: usize) -> Result<Vec<u64>> {
        let mut bytes = vec![0; count * size_of::<u64>()];
        self.sums.read(0, &mut bytes)?;
        Ok(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }
}

/// The number of a scalar type in `device.cu`.
fn format(scalar: Scalar) -> u32 {
    match scalar {
        Scalar::I8 | Scalar::U8 => 0,
        Scalar::I16 | Scalar::U16 => 1,
        Scalar::I32 | Scalar::U32 => 2,
        Scalar::I64 | Scalar::U64 => 3,
        Scalar::F16 => 4,
        Scalar::Bf16 => 5,
        Scalar::F32 => 6,
        Scalar::F64 => 7,
    }
}

/// A launch of threads that stride over so many numbers.
fn grid_over(count: u64) -> Launch {
    let blocks = count.div_ceil(THREADS.into()).clamp(1, MOST_BLOCKS.into()) as u32;
    Launch { grid: [blocks, 1, 1], block: [THREADS, 1, 1], shared: 0, carveout: None }
}
