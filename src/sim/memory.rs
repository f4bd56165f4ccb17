//! Memory as a thread sees it: the workload's data, read lazily, under what the thread itself
//! has written.
//!
//! Generic addresses: each buffer of the workload and the module's variables have a region of
//! 2^40 bytes; shared, local, constant and parameter memory are windows above them. Nothing of
//! a buffer is ever materialised.

use super::address_map::AddressMap;
use super::arithmetic::mask_bits;
use super::program::{Image, PlacedVariable};
use super::program::{MemoryAccess, Window};
use crate::workload::{Buffer, Fill, Symbol, contents};

/// Bytes between the regions of global memory; the region of buffer `i` begins at `(i + 1) <<
/// REGION_BITS`.
const REGION_BITS: u32 = 40;
/// Region of the module's own `.global` variables.
pub(crate) const MODULE_REGION: u64 = 0xf000;
/// Generic address of byte 0 of each window.
pub(crate) const MODULE_BASE: u64 = MODULE_REGION << REGION_BITS;
pub(crate) const SHARED_BASE: u64 = 0x1 << 60;
pub(crate) const LOCAL_BASE: u64 = 0x2 << 60;
pub(crate) const CONST_BASE: u64 = 0x3 << 60;
pub(crate) const PARAM_BASE: u64 = 0x4 << 60;
/// "Addresses" of functions; function `i` is at `FUNCTION_BASE + 16 * i`.
pub(crate) const FUNCTION_BASE: u64 = 0x5 << 60;
/// Bytes of one window; offsets beyond are another space or nonsense.
const WINDOW: u64 = 1 << 32;

/// Where a generic address points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryPlace {
    Global(u64),
    Shared(u64),
    Local(u64),
    Const(u64),
    Param(u64),
}

/// Returns the place of a generic address.
pub(crate) fn place_of(address: u64) -> MemoryPlace {
    let offset = address & (WINDOW - 1);
    match address >> 32 << 32 {
        SHARED_BASE => MemoryPlace::Shared(offset),
        LOCAL_BASE => MemoryPlace::Local(offset),
        CONST_BASE => MemoryPlace::Const(offset),
        PARAM_BASE => MemoryPlace::Param(offset),
        _ => MemoryPlace::Global(address),
    }
}

/// Returns the place that an instruction accesses from this base address, by the window
/// that it names.
pub(crate) fn accessed_place(memory: &MemoryAccess, base: u64) -> MemoryPlace {
    let address = base.wrapping_add(memory.offset as u64);
    match memory.window {
        Window::Generic => place_of(address),
        Window::Global => MemoryPlace::Global(address),
        Window::Shared => MemoryPlace::Shared(mask_bits(address, 32)),
        Window::Local => MemoryPlace::Local(address),
        Window::Const => MemoryPlace::Const(address),
        Window::Param => MemoryPlace::Param(address),
    }
}

/// Device address of the first byte of buffer `index`.
pub(crate) fn buffer_base(index: usize) -> u64 {
    (index as u64 + 1) << REGION_BITS
}

/// The buffer and the byte in it that a global address points to, if it lies in a buffer's
/// region.
pub(crate) fn in_buffer(address: u64) -> Option<(usize, u64)> {
    let index = region_of(address).checked_sub(1)?;
    let offset = address & ((1 << REGION_BITS) - 1);
    (index + 1 < MODULE_REGION).then_some((index as usize, offset))
}

/// Returns the buffer that an address in or near it was derived from, and the byte offset, which
/// is negative before the buffer. The gap between two buffers is divided in half.
pub(crate) fn in_region(address: u64) -> Option<(usize, i64)> {
    let half = 1 << (REGION_BITS - 1);
    let index = region_of(address.checked_add(half)?).checked_sub(1).filter(|index| index + 1 < MODULE_REGION)?;
    Some((index as usize, address.wrapping_sub(buffer_base(index as usize)) as i64))
}

/// Returns the region of a global address: the buffer's number plus one, or the module's.
pub(crate) fn region_of(address: u64) -> u64 {
    address >> REGION_BITS
}

/// Eight bytes of an overlay.
#[derive(Clone, Copy, Default)]
struct OverlayWord {
    bits: u64,
    /// Bytes that were written, one bit each.
    written: u8,
    /// Bytes whose value is not known.
    unknown: u8,
}

/// Bytes that a thread has written, sparsely.
#[derive(Default)]
pub(crate) struct Overlay {
    words: AddressMap<OverlayWord>,
}

impl Overlay {
    pub fn write_bits(&mut self, address: u64, size: u32, bits: u64, unknown: bool) {
        let shift = (address & 7) as u32;
        let first = size.min(8 - shift);
        self.write_word(address >> 3, shift, first, bits, unknown);
        if first < size {
            self.write_word((address >> 3).wrapping_add(1), 0, size - first, bits >> (8 * first), unknown);
        }
    }

    /// Lists the bytes that were written and are known, by address.
    pub fn known_bytes(&self) -> impl Iterator<Item = (u64, u8)> {
        self.words.iter().flat_map(|(&index, &word)| {
            (0..8u32).filter_map(move |byte| {
                let known = word.written >> byte & 1 != 0 && word.unknown >> byte & 1 == 0;
                known.then_some((index << 3 | u64::from(byte), (word.bits >> (8 * byte)) as u8))
            })
        })
    }

    fn write_word(&mut self, index: u64, shift: u32, size: u32, bits: u64, unknown: bool) {
        let word = self.words.entry(index).or_default();
        let bytes = ((1u16 << size) - 1) as u8;
        let field = (if size == 8 { u64::MAX } else { (1 << (8 * size)) - 1 }) << (8 * shift);
        word.bits = word.bits & !field | (bits << (8 * shift)) & field;
        word.written |= bytes << shift;
        word.unknown = word.unknown & !(bytes << shift) | if unknown { bytes << shift } else { 0 };
    }

    /// Puts what was written over the bits that lie below; gives the bits, whether all of them
    /// were written, and whether any that were written are unknown.
    pub fn read_over(&self, address: u64, size: u32, below: u64) -> (u64, bool, bool) {
        if self.words.is_empty() {
            return (below, false, false);
        }
        let shift = (address & 7) as u32;
        let first = size.min(8 - shift);
        let (mut bits, mut whole, mut unknown) = self.read_word(address >> 3, shift, first, below);
        if first < size {
            let rest = self.read_word((address >> 3).wrapping_add(1), 0, size - first, below >> (8 * first));
            bits |= rest.0 << (8 * first);
            whole &= rest.1;
            unknown |= rest.2;
        }
        (bits, whole, unknown)
    }

    fn read_word(&self, index: u64, shift: u32, size: u32, below: u64) -> (u64, bool, bool) {
        let field = if size == 8 { u64::MAX } else { (1 << (8 * size)) - 1 };
        let Some(word) = self.words.get(&index) else {
            return (below & field, false, false);
        };
        let bytes = ((1u16 << size) - 1) as u8;
        let written = word.written >> shift & bytes;
        let unknown = word.unknown >> shift & written;
        let mut bits = below & field;
        let mut take = 0u64;
        for byte in 0..size {
            if written >> byte & 1 != 0 {
                take |= 0xff << (8 * byte);
            }
        }
        bits = bits & !take | word.bits >> (8 * shift) & take;
        (bits, written == bytes, unknown != 0)
    }
}

/// The contents that the workload gives to a variable.
pub(crate) struct GivenContents<'w> {
    constant: bool,
    offset: u64,
    size: u64,
    contents: &'w Buffer,
}

/// Returns the contents that the workload gives to the variables of a module.
pub(crate) fn given_variables<'w>(variables: &[PlacedVariable], symbols: &'w [Symbol]) -> Vec<GivenContents<'w>> {
    let found = symbols.iter().filter_map(|symbol| {
        let PlacedVariable { constant, offset, size, .. } =
            variables.iter().find(|placed| *placed.name == *symbol.symbol)?;
        let size = symbol.contents.bytes().min(*size);
        Some(GivenContents { constant: *constant, offset: *offset, size, contents: &symbol.contents })
    });
    found.collect()
}

/// Memory before the launch.
pub(crate) struct Initial<'w> {
    pub buffers: &'w [Buffer],
    pub given: &'w [GivenContents<'w>],
    pub globals: &'w Image,
    pub constants: &'w Image,
}

impl Initial<'_> {
    /// Reads bits of global memory, and whether they are unknown (out of bounds, or never
    /// given).
    pub fn read_global(&self, address: u64, size: u32) -> (u64, bool) {
        let region = region_of(address);
        if region == MODULE_REGION {
            let offset = address - MODULE_BASE;
            return self.read_given(false, offset, size).unwrap_or_else(|| self.globals.read_bits(offset, size));
        }
        let Some(buffer) = region.checked_sub(1).and_then(|index| self.buffers.get(index as usize)) else {
            return (0, true);
        };
        bits_of(buffer, address & ((1 << REGION_BITS) - 1), size)
    }

    pub fn read_constant(&self, offset: u64, size: u32) -> (u64, bool) {
        self.read_given(true, offset, size).unwrap_or_else(|| self.constants.read_bits(offset, size))
    }

    /// What the workload says of a variable's bytes.
    fn read_given(&self, constant: bool, offset: u64, size: u32) -> Option<(u64, bool)> {
        let end = offset.checked_add(u64::from(size))?;
        let inside = |given: &&GivenContents<'_>| {
            given.constant == constant && given.offset <= offset && end <= given.offset.saturating_add(given.size)
        };
        let given = self.given.iter().find(inside)?;
        Some(bits_of(given.contents, offset - given.offset, size))
    }
}

/// Bits of a buffer's contents and whether they are unknown (out of bounds).
fn bits_of(buffer: &Buffer, offset: u64, size: u32) -> (u64, bool) {
    let element = buffer.element.size() as u64;
    let total = buffer.count.saturating_mul(element);
    if element == 0 || offset.checked_add(u64::from(size)).is_none_or(|end| end > total) {
        return (0, true);
    }
    let first = offset / element;
    let last = (offset + u64::from(size) - 1) / element;
    // An element has at most 32 bytes (double4) and a scalar access at most 8, so two elements are
    // enough.
    let mut bytes = [0u8; 64];
    let needed = ((last - first + 1) * element) as usize;
    let Some(window) = bytes.get_mut(..needed) else { return (0, true) };
    contents::fill_bytes(buffer, first..last + 1, window);
    let at = (offset - first * element) as usize;
    let bits: u64 = (0..size as usize).fold(0, |bits, i| bits | u64::from(bytes[at + i]) << (8 * i));
    let target = match &buffer.fill {
        Fill::File(file) if size == 8 => file.pointer_at(offset),
        _ => None,
    };
    (target.map_or(bits, |target| bits.wrapping_add(buffer_base(target))), false)
}
