//! Arguments and buffers of a launch.

use super::formula::Formula;
use super::random::Random;
use crate::cuda::{Element, TextureArray, TextureObject};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// Contents from a file: the elements one after the other as the device has them, shared by all
/// who hold the buffer. They are sent to the measuring process apart from the workload (see
/// [`Workload::attach`]).
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct FileBytes {
    /// A vector, so that what was read or received is shared without a copy of it.
    #[serde(skip)]
    file: Arc<Vec<u8>>,
    /// Where the elements are.
    #[serde(skip)]
    place: Range<usize>,
    /// Where addresses stand among them, by rising bytes: the byte, and the buffer of the
    /// workload whose address is added to the number there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pointers: Vec<(u64, usize)>,
}

impl FileBytes {
    /// The bytes of `file` from `start` on.
    pub fn new(file: Arc<Vec<u8>>, start: usize) -> FileBytes {
        let place = start..file.len().max(start);
        FileBytes { file, place, pointers: Vec::new() }
    }

    /// A part of what was read or received; `None` where it is shorter.
    pub fn part(file: &Arc<Vec<u8>>, place: Range<usize>) -> Option<FileBytes> {
        file.get(place.clone())?;
        Some(FileBytes { file: Arc::clone(file), place, pointers: Vec::new() })
    }

    /// A part of a recording: where addresses stand, by rising bytes, the number there is the
    /// byte in the buffer that they point into.
    pub fn recorded(file: Arc<Vec<u8>>, place: Range<usize>, pointers: Vec<(u64, usize)>) -> FileBytes {
        FileBytes { file, place, pointers }
    }

    /// The elements.
    pub fn bytes(&self) -> &[u8] {
        self.file.get(self.place.clone()).unwrap_or_default()
    }

    /// Whether the elements are the same.
    pub fn bytes_equal(&self, other: &FileBytes) -> bool {
        Arc::ptr_eq(&self.file, &other.file) && self.place == other.place || self.bytes() == other.bytes()
    }

    /// Where addresses stand, by rising bytes, and of which buffers.
    pub fn pointers(&self) -> &[(u64, usize)] {
        &self.pointers
    }

    /// The buffer whose address is added to the eight bytes there.
    pub fn pointer_at(&self, byte: u64) -> Option<usize> {
        let found = self.pointers.binary_search_by_key(&byte, |(at, _)| *at).ok()?;
        self.pointers.get(found).map(|(_, buffer)| *buffer)
    }
}

impl PartialEq for FileBytes {
    fn eq(&self, other: &FileBytes) -> bool {
        self.pointers == other.pointers && self.bytes_equal(other)
    }
}

impl AsRef<[u8]> for FileBytes {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

/// Files may be long.
impl std::fmt::Debug for FileBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.bytes().len())
    }
}

/// The contents of a buffer before the launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Fill {
    /// Written by the kernel only: filled with a pattern that no kernel is likely to produce
    /// (`out[n]`); see [`contents`](super::contents).
    Poison,
    /// The same pattern, in memory of a recording that the kernel only writes, if at all.
    Overwritten,
    /// `zeros[n]`
    Zeros,
    /// `iota[n]`: 0, 1, 2, ... over the scalars of all elements; integers wrap around.
    Iota,
    /// `fill(v)[n]`
    Constant(f64),
    /// `random[n]` (0 to 1 for floating types, 0 to 255 for integers, to 127 for signed bytes,
    /// to 1 for `bool`) and `random(lo, hi)[n]`, uniform. `hi` is included for integers
    /// only.
    Random { lo: f64, hi: f64 },
    /// `file("x.bin")[n]`
    File(FileBytes),
    /// `{34, 5, 4}[n]`: the bits of the first scalars; those beyond them are 0.
    Table(Vec<u64>),
    /// `each(index * 32)[n]`: the formula's value at each scalar, converted as C does (integers
    /// wrap around).
    Each(Formula),
}

impl Fill {
    /// Tells whether the kernel only writes the memory: what it holds before is a pattern.
    pub fn is_only_written(&self) -> bool {
        matches!(self, Fill::Poison | Fill::Overwritten)
    }
}

/// A buffer in device memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Buffer {
    /// The parameter that it is passed to.
    pub name: String,
    pub element: Element,
    /// Number of elements.
    pub count: u64,
    pub fill: Fill,
    /// Stream of the random numbers; distinct for each buffer of a workload.
    pub seed: u64,
}

/// One argument, in the order of the kernel's parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Argument {
    /// The bytes of a scalar in the device's (little-endian) layout.
    Scalar(Vec<u8>),
    /// The address of the buffer with this index in [`Workload::buffers`].
    Buffer(usize),
    /// The bytes of a structure, and where in them the addresses of which buffers go: (byte,
    /// index). An address is added to the number that stands there.
    Struct { bytes: Vec<u8>, buffers: Vec<(usize, usize)> },
}

impl Argument {
    /// Bytes of the argument.
    pub fn size(&self) -> usize {
        match self {
            Argument::Scalar(bytes) | Argument::Struct { bytes, .. } => bytes.len(),
            Argument::Buffer(_) => size_of::<u64>(),
        }
    }

    /// The buffers whose addresses it has.
    fn buffers(&self) -> impl Iterator<Item = usize> {
        let (own, held): (Option<usize>, &[(usize, usize)]) = match self {
            Argument::Scalar(_) => (None, &[]),
            Argument::Buffer(index) => (Some(*index), &[]),
            Argument::Struct { buffers, .. } => (None, buffers),
        };
        own.into_iter().chain(held.iter().map(|(_, index)| *index))
    }

    /// The bytes that the kernel is passed, for these addresses of buffers; `Err` with the
    /// index of a buffer without one.
    pub fn bytes(&self, address: impl Fn(usize) -> Option<u64>) -> Result<Vec<u8>, usize> {
        let of = |index: usize| address(index).map(u64::to_le_bytes).ok_or(index);
        match self {
            Argument::Scalar(bytes) => Ok(bytes.clone()),
            Argument::Buffer(index) => of(*index).map(|bytes| bytes.to_vec()),
            Argument::Struct { bytes, buffers } => {
                let mut bytes = bytes.clone();
                for &(at, index) in buffers {
                    let address = address(index).ok_or(index)?;
                    // What the structure has no room for is not passed.
                    if let Some(place) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<8>) {
                        *place = u64::from_le_bytes(*place).wrapping_add(address).to_le_bytes();
                    }
                }
                Ok(bytes)
            }
        }
    }
}

/// A buffer that is compared with the baseline's after the launch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Index in [`Workload::buffers`].
    pub buffer: usize,
    /// Accepted: |a - b| <= absolute + relative * |b|; 0 for integers.
    pub relative: f64,
    /// `None`: as the magnitude of the buffer's numbers has it.
    pub absolute: Option<f64>,
}

/// A `__constant__` or `__device__` variable with contents that are given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Symbol {
    /// Its name in PTX and cubin; code that does not use the variable does not have it.
    pub symbol: String,
    /// What it holds from its first byte on; where that is less than all of it, the rest is as
    /// it is initialised.
    pub contents: Buffer,
}

/// A `__device__` variable that the kernel may write. It is restored before each launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WrittenVariable {
    /// Its name in PTX and cubin.
    pub symbol: String,
    /// Its name in the source, for messages.
    pub name: String,
    /// What it is made of; bytes if that is not known.
    pub element: Element,
    /// How closely it must agree with the baseline's; `None` if it is not compared.
    pub check: Option<VariableCheck>,
}

/// How closely a variable must agree with the baseline's after the launch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariableCheck {
    /// As [`Check::relative`].
    pub relative: f64,
    /// As [`Check::absolute`].
    pub absolute: Option<f64>,
}

/// The launch that candidates are timed on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    pub arguments: Vec<Argument>,
    pub buffers: Vec<Buffer>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub symbols: Vec<Symbol>,
    /// CUDA arrays, whose contents are buffers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrays: Vec<TextureArray>,
    /// Texture and surface objects, whose handles take the place of their arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub textures: Vec<TextureObject>,
    /// The variables that the kernel may write, under these macros or the baseline's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub written: Vec<WrittenVariable>,
    /// What is compared; `None`: every buffer that the baseline wrote, to
    /// [`default_relative_tolerance`](super::default_relative_tolerance).
    pub checks: Option<Vec<Check>>,
}

impl Buffer {
    /// Bytes of the whole buffer; saturates (a bound workload never does).
    pub fn bytes(&self) -> u64 {
        self.count.saturating_mul(self.element.size() as u64)
    }

    /// The buffers whose addresses its contents hold.
    fn pointers(&self) -> impl Iterator<Item = usize> {
        let held = match &self.fill {
            Fill::File(bytes) => bytes.pointers(),
            _ => &[],
        };
        held.iter().map(|(_, buffer)| *buffer)
    }
}

impl Workload {
    /// Bytes of each buffer.
    pub fn sizes(&self) -> Vec<u64> {
        self.buffers.iter().map(Buffer::bytes).collect()
    }

    /// Gives every buffer another stream of random numbers. 0 is what a workload is bound with;
    /// any other base gives a second set of inputs to check results on.
    pub fn reseed(&mut self, base: u64) {
        let symbols = self.symbols.iter_mut().map(|symbol| &mut symbol.contents);
        for (position, buffer) in self.buffers.iter_mut().chain(symbols).enumerate() {
            buffer.seed = stream(base, position as u64);
        }
    }

    /// Gives the buffers that the kernel only writes a pattern. `only_written` says for each
    /// parameter whether it does no more with what it points at, or with the array of a surface.
    ///
    /// A recording has what lay there at the launch. Often these are the results already, of the
    /// same launch a moment before; then nothing would show what a candidate writes.
    pub fn overwrite_outputs(&mut self, only_written: &[bool]) {
        let (mut written, mut read) = (BTreeSet::new(), BTreeSet::new());
        let is_only_written = |argument: usize| only_written.get(argument).is_some_and(|known| *known);
        for (index, argument) in self.arguments.iter().enumerate() {
            if is_only_written(index) { &mut written } else { &mut read }.extend(argument.buffers());
        }
        for TextureObject { argument, memory, .. } in &self.textures {
            if is_only_written(*argument) { &mut written } else { &mut read }.extend(memory.buffer(&self.arrays));
        }
        read.extend(self.all_buffers().flat_map(Buffer::pointers));
        for index in written.difference(&read) {
            if let Some(buffer) = self.buffers.get_mut(*index) {
                buffer.fill = Fill::Overwritten;
            }
        }
    }

    /// The buffers, and after them the contents of the variables.
    pub fn all_buffers(&self) -> impl Iterator<Item = &Buffer> + Clone {
        self.buffers.iter().chain(self.symbols.iter().map(|symbol| &symbol.contents))
    }

    /// The contents of the buffers that come from files, in the order of
    /// [`Workload::all_buffers`].
    pub fn files(&self) -> impl Iterator<Item = &FileBytes> {
        self.all_buffers().filter_map(|buffer| match &buffer.fill {
            Fill::File(bytes) => Some(bytes),
            _ => None,
        })
    }

    /// Gives the buffers that come from files their contents back: `next` those of the next one,
    /// which takes this many bytes. False where there are none.
    pub fn attach(&mut self, mut next: impl FnMut(usize) -> Option<FileBytes>) -> bool {
        let symbols = self.symbols.iter_mut().map(|symbol| &mut symbol.contents);
        for buffer in self.buffers.iter_mut().chain(symbols) {
            let length = usize::try_from(buffer.bytes()).unwrap_or(usize::MAX);
            if let Fill::File(bytes) = &mut buffer.fill {
                let Some(contents) = next(length) else { return false };
                *bytes = FileBytes { pointers: std::mem::take(&mut bytes.pointers), ..contents };
            }
        }
        true
    }

    /// Number of operations of all formulas that contents are computed by.
    pub fn formula_steps(&self) -> usize {
        let steps = self.all_buffers().map(|buffer| match &buffer.fill {
            Fill::Each(formula) => formula.steps(),
            _ => 0,
        });
        steps.sum()
    }

    /// Bytes of all buffers and variables; saturates.
    pub fn bytes(&self) -> u64 {
        self.all_buffers().map(Buffer::bytes).fold(0, u64::saturating_add)
    }
}

/// The seed of the buffer at a position, for a workload's base.
pub(crate) fn stream(base: u64, position: u64) -> u64 {
    Random::number_at(Random::number_at(base, 0).wrapping_add(position), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::{Scalar, TextureMemory};

    /// A workload with these arguments and four recorded buffers, the last of which holds the
    /// address of the third.
    fn recorded(arguments: Vec<Argument>) -> Workload {
        let buffer = |pointers: Vec<(u64, usize)>| Buffer {
            name: String::new(),
            element: Element { scalar: Scalar::F32, lanes: 1 },
            count: 4,
            fill: Fill::File(FileBytes::recorded(vec![0; 16].into(), 0..16, pointers)),
            seed: 0,
        };
        let buffers = vec![buffer(vec![]), buffer(vec![]), buffer(vec![]), buffer(vec![(8, 2)])];
        Workload { arguments, buffers, ..Workload::default() }
    }

    #[test]
    fn only_what_nothing_reads_is_overwritten() {
        let inside = |buffer| Argument::Struct { bytes: vec![8, 0, 0, 0, 0, 0, 0, 0], buffers: vec![(0, buffer)] };
        for (what, arguments, only_written, expected) in [
            ("an input and an output", vec![Argument::Buffer(0), Argument::Buffer(1)], vec![false, true], vec![1]),
            ("parts of one allocation, one is read", vec![inside(1), Argument::Buffer(1)], vec![false, true], vec![]),
            (
                "parts of one allocation, both are written",
                vec![inside(1), Argument::Buffer(1)],
                vec![true, true],
                vec![1],
            ),
            ("an address in another buffer, too", vec![Argument::Buffer(2)], vec![true], vec![]),
            ("nothing is known of the parameter", vec![Argument::Buffer(0)], vec![], vec![]),
            ("no buffer", vec![Argument::Scalar(vec![0; 4])], vec![true], vec![]),
        ] {
            let mut workload = recorded(arguments);
            workload.overwrite_outputs(&only_written);
            let is_overwritten = |index: &usize| workload.buffers[*index].fill == Fill::Overwritten;
            assert_eq!((0..4).filter(is_overwritten).collect::<Vec<_>>(), expected, "{what}");
        }
    }

    #[test]
    fn array_is_overwritten_if_all_its_surfaces_are_only_written() {
        let texel = Element { scalar: Scalar::F32, lanes: 1 };
        let object = |argument| TextureObject { argument, field: 0, memory: TextureMemory::Array(0), sampling: None };
        for (only_written, expected) in [([true, true], true), ([true, false], false), ([false, false], false)] {
            let mut workload = recorded(vec![Argument::Scalar(vec![0; 8]), Argument::Scalar(vec![0; 8])]);
            workload.arrays = vec![TextureArray { buffer: 1, extent: [2, 2, 0], texel, flags: 2 }];
            workload.textures = vec![object(0), object(1)];
            workload.overwrite_outputs(&only_written);
            assert_eq!(workload.buffers[1].fill == Fill::Overwritten, expected, "{only_written:?}");
        }
    }
}
