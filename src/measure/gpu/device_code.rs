//! nvtune's own kernels (`device.cu`): they fill buffers, compute digests and compare buffers.
//!
//! In: device memory. Out: the same bits that [`contents`](crate::workload::contents) and
//! [`compare`](crate::measure::compare) give on the host, in a thousandth of the time and
//! without a copy of the buffer over the bus.

use super::driver::{Context, Function, Memory, Module, Result, Stream};
use crate::cuda::{Element, Scalar};
use crate::launch::Launch;
use crate::measure::compare::ResolvedTolerance;
use crate::workload::contents::Recipe;

pub(super) struct DeviceCode {
    fill: Function,
    digest: Function,
    compare: Function,
    /// Keeps the functions loaded.
    _module: Module,
    sums: Memory,
}

/// What a comparison finds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Differences {
    pub elements: u64,
    /// The position of the first scalar that differs, counted over the lanes of all elements;
    /// without a meaning where none does.
    pub first: u64,
    /// The largest difference of those that agree, as a share of what the tolerance allows.
    pub tolerance_used: f64,
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

    /// Fills the first `count` scalars of a buffer, as many as fit; does not wait. Returns false
    /// and does nothing if only the host can follow the recipe.
    pub fn fill(&self, to: &Memory, count: usize, scalar: Scalar, recipe: Recipe, seed: u64) -> Result<bool> {
        let Some((kind, a, b)) = numbers(recipe) else { return Ok(false) };
        let count = count.min(to.bytes() / scalar.size()) as u64;
        let mut arguments = [
            to.address().to_le_bytes().to_vec(),
            count.to_le_bytes().to_vec(),
            format(scalar).to_le_bytes().to_vec(),
            kind.to_le_bytes().to_vec(),
            a.to_le_bytes().to_vec(),
            b.to_le_bytes().to_vec(),
            seed.to_le_bytes().to_vec(),
        ];
        // SAFETY: device.cu takes these arguments: where to, how many scalars, of what format, and
        // what they are. The memory holds as many.
        unsafe { self.fill.launch(&grid_over(count), false, &mut arguments, Stream::DEFAULT) }?;
        Ok(true)
    }

    /// Digests of what these memories hold, up to a multiple of 8 bytes; waits for what was
    /// launched.
    pub fn digests(&self, memories: &[&Memory]) -> Result<Vec<u64>> {
        let mut digests = Vec::with_capacity(memories.len());
        for memories in memories.chunks(SUMS) {
            self.sums.set(0, Stream::DEFAULT)?;
            for (i, memory) in memories.iter().enumerate() {
                let words = (memory.bytes() / 8) as u64;
                let sum = self.sums.address() + 8 * i as u64;
                let mut arguments = [memory.address(), words, sum].map(|n| n.to_le_bytes().to_vec());
                // SAFETY: device.cu takes three arguments of 8 bytes: the words, their number, and
                // where the sum goes. Both memories hold as much.
                unsafe { self.digest.launch(&grid_over(words), false, &mut arguments, Stream::DEFAULT) }?;
            }
            digests.extend(self.sums(memories.len())?);
        }
        Ok(digests)
    }

    /// Compares the first `count` elements of `got` with those of `expected`, as far as both have
    /// them. Waits for what was launched.
    pub fn compare(
        &self,
        expected: &Memory,
        got: &Memory,
        count: usize,
        element: Element,
        tolerance: ResolvedTolerance,
    ) -> Result<Differences> {
        let size = element.size().max(1);
        let count = count.min(expected.bytes() / size).min(got.bytes() / size) as u64;
        self.sums.set(0, Stream::DEFAULT)?;
        let mut arguments = [
            expected.address().to_le_bytes().to_vec(),
            got.address().to_le_bytes().to_vec(),
            count.to_le_bytes().to_vec(),
            u32::from(element.lanes).to_le_bytes().to_vec(),
            format(element.scalar).to_le_bytes().to_vec(),
            tolerance.relative.to_le_bytes().to_vec(),
            tolerance.absolute.to_le_bytes().to_vec(),
            self.sums.address().to_le_bytes().to_vec(),
        ];
        // SAFETY: device.cu takes these arguments: both memories, which hold as many elements, the
        // scalars of one and their format, the bounds, and where the three numbers found go.
        unsafe { self.compare.launch(&grid_over(count), false, &mut arguments, Stream::DEFAULT) }?;
        let found = self.sums(3)?;
        let word = |index: usize| found.get(index).copied().unwrap_or_default();
        Ok(Differences { elements: word(0), first: !word(1), tolerance_used: f64::from_bits(word(2)) })
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

/// A recipe in `device.cu`: its kind and two numbers; `None` for one of the host alone.
fn numbers(recipe: Recipe) -> Option<(u32, u64, u64)> {
    match recipe {
        Recipe::Bits(bits) => Some((0, bits, 0)),
        Recipe::Iota => Some((1, 0, 0)),
        Recipe::Floats { lo, hi } => (hi - lo).is_finite().then(|| (2, lo.to_bits(), hi.to_bits())),
        Recipe::Integers { lo, span } => Some((3, lo, span)),
    }
}

/// A launch of threads that stride over this many numbers.
fn grid_over(count: u64) -> Launch {
    let blocks = count.div_ceil(THREADS.into()).clamp(1, MOST_BLOCKS.into()) as u32;
    Launch { grid: [blocks, 1, 1], block: [THREADS, 1, 1], shared: 0, carveout: None, coarsening: None }
}

#[cfg(test)]
mod tests {
    use super::{format, numbers};
    use crate::cuda::{Element, Scalar};
    use crate::measure::compare::{Tolerance, compare, tolerance_used};
    use crate::workload::contents::{encode, fill_bytes, recipe};
    use crate::workload::{Buffer, Fill};
    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};

    include!("../../../tests/gpu/cases.rs");

    /// `device.cu` as a program of the host (`tests/stubs/device.cpp`).
    fn on_host(folder: &Path) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stubs/device.cpp");
        let program = folder.join("device");
        let compiler = which::which("c++").or_else(|_| which::which("g++")).expect("nvcc's own host compiler");
        let options = ["-std=c++17", "-O1", "-ffp-contract=off", "-o"];
        let status = Command::new(compiler).args(options).args([&program, &source]).status().unwrap();
        assert!(status.success());
        program
    }

    fn output(program: &Path, words: &[String], input: &[u8]) -> Vec<u8> {
        let mut command = Command::new(program);
        let mut child = command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{words:?}");
        output.stdout
    }

    #[test]
    fn contents_are_those_of_the_host() {
        let folder = tempfile::tempdir().unwrap();
        let program = on_host(folder.path());
        for scalar in Scalar::ALL {
            for ((seed, fill), lanes) in (1..).zip(fills(scalar)).zip([1, 3, 4].into_iter().cycle()) {
                let element = Element { scalar, lanes };
                let buffer = Buffer { name: "x".into(), element, count: 70_001, fill, seed };
                let (kind, a, b) = numbers(recipe(&buffer).unwrap()).unwrap();
                let words = [format(scalar).into(), kind.into(), a, b, seed, u64::from(lanes) * buffer.count]
                    .map(|n: u64| n.to_string());
                let made = output(&program, &[&["fill".to_owned()], &words[..]].concat(), &[]);
                let mut expected = vec![0; buffer.bytes() as usize];
                assert!(fill_bytes(&buffer, 0..buffer.count, &mut expected));
                assert!(made == expected, "{buffer:?}");
            }
        }
        for (lo, hi) in [(f64::MIN, f64::MAX), (0.0, f64::INFINITY)] {
            let element = Element { scalar: Scalar::F64, lanes: 1 };
            let buffer = Buffer { name: "x".into(), element, count: 1, fill: Fill::Random { lo, hi }, seed: 1 };
            assert_eq!(recipe(&buffer).and_then(numbers), None, "the host's alone");
        }
    }

    #[test]
    fn verdicts_are_those_of_the_host() {
        let folder = tempfile::tempdir().unwrap();
        let program = on_host(folder.path());
        for scalar in [Scalar::F16, Scalar::Bf16, Scalar::F32, Scalar::F64] {
            for (relative, absolute) in [(0.01, 0.0), (0.01, 0.0015), (0.0, 0.25), (0.125, 0.125)] {
                let (mut expected, mut got) = (Vec::new(), Vec::new());
                for value in VALUES {
                    for bits in near(scalar, value, relative * value.abs() + absolute) {
                        expected.extend(&encode(scalar, value).to_le_bytes()[..scalar.size()]);
                        got.extend(&bits.to_le_bytes()[..scalar.size()]);
                    }
                }
                let tolerance = Tolerance { relative, absolute: Some(absolute) };
                let resolved = tolerance.resolve(0.0);
                let element = Element { scalar, lanes: 1 };
                let pairs = expected.chunks(scalar.size()).zip(got.chunks(scalar.size()));
                let agreeing = pairs.filter(|(a, b)| compare("y", &element, tolerance, a, b).is_none());
                let (a, b): (Vec<&[u8]>, Vec<&[u8]>) = agreeing.unzip();
                let (a, b) = (a.concat(), b.concat());
                let words = ["compare".to_owned(), format(scalar).to_string()];
                let numbers = [relative, absolute, (a.len() / scalar.size()) as f64, 1.0];
                let words = [&words[..], &numbers.map(|number: f64| number.to_string())].concat();
                let said = String::from_utf8(output(&program, &words, &[&a[..], &b].concat())).unwrap();
                let used = tolerance_used(&element, tolerance, &a, &b);
                assert!(used > 0.9 && used <= 1.0, "{used}");
                assert!(said.trim().ends_with(&format!(" {}", used.to_bits())), "{scalar:?} {tolerance:?}: {said}");

                for lanes in [1, 3] {
                    let element = Element { scalar, lanes };
                    let of_host = compare("y", &element, tolerance, &expected, &got).unwrap();
                    let first = of_host.index * u64::from(lanes) + u64::from(of_host.lane);
                    let count = expected.len() / element.size();
                    let words = ["compare".to_owned(), format(scalar).to_string()];
                    let numbers = [resolved.relative, resolved.absolute, count as f64, lanes.into()];
                    let words = [&words[..], &numbers.map(|number: f64| number.to_string())].concat();
                    let said = output(&program, &words, &[&expected[..], &got].concat());
                    let said = String::from_utf8(said).unwrap();
                    let found = format!("{} {first} ", of_host.count);
                    assert!(said.starts_with(&found), "{element:?} {tolerance:?}: {said}, not {found}");
                    assert!((count as u64 / 4..count as u64 + 1).contains(&of_host.count));
                }
            }
        }
    }
}
