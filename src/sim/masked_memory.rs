//! A small memory with a mask of the bytes whose value is known: shared memory of a block, local
//! memory and parameters of a thread.

/// Maximum size in bytes; no launch has more.
const MAX_BYTES: u64 = 1 << 20;

#[derive(Default)]
pub(crate) struct MaskedMemory {
    size: usize,
    bytes: Vec<u8>,
    /// 1 where a byte was written with a known value.
    known: Vec<u8>,
}

impl MaskedMemory {
    /// A memory of this many bytes, none of them known.
    pub fn new(size: u64) -> Self {
        Self { size: size.min(MAX_BYTES) as usize, bytes: Vec::new(), known: Vec::new() }
    }

    fn byte_span(&self, at: u64, size: u32) -> Option<std::ops::Range<usize>> {
        let at = usize::try_from(at).ok()?;
        let end = at.checked_add(size as usize)?;
        (end <= self.bytes.len()).then_some(at..end)
    }

    /// Reads up to eight bytes, and whether any of them is unknown.
    pub fn read_bits(&self, at: u64, size: u32) -> (u64, bool) {
        let Some(span) = self.byte_span(at, size) else { return (0, true) };
        let bits = match self.bytes[span.clone()] {
            [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            ref other => other.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte)),
        };
        (bits, self.known[span].contains(&0))
    }

    /// Writes up to eight bytes; what lies outside is lost.
    pub fn write_bits(&mut self, at: u64, size: u32, bits: u64, unknown: bool) {
        if self.bytes.is_empty() {
            // Zeroed pages cost nothing until they are touched.
            self.bytes = vec![0; self.size];
            self.known = vec![0; self.size];
        }
        let Some(span) = self.byte_span(at, size) else { return };
        for (index, byte) in self.bytes[span.clone()].iter_mut().enumerate() {
            *byte = (bits >> (8 * index)) as u8;
        }
        self.known[span].fill(u8::from(!unknown));
    }
}
