//! A small memory with a mask of the bytes whose value is known: shared memory of a block, local
//! memory and parameters of a thread.

/// Maximum size in bytes; no launch has more.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

pub(crate) struct MaskedMemory {
    size: usize,
    bytes: Vec<u8>,
    /// The epoch in which a byte was last written, 0 if its value is not known.
    epochs: Vec<u8>,
    /// The current epoch; bytes of earlier ones are not known any longer.
    epoch: u8,
}

impl MaskedMemory {
    /// A memory of this many bytes, none of them known.
    pub fn new(size: u64) -> Self {
        Self { size: size.min(MAX_BYTES) as usize, bytes: Vec::new(), epochs: Vec::new(), epoch: 1 }
    }

    fn byte_span(&self, at: u64, size: u32) -> Option<std::ops::Range<usize>> {
        let at = usize::try_from(at).ok()?;
        let end = at.checked_add(size as usize)?;
        (end <= self.bytes.len()).then_some(at..end)
    }

    /// Marks everything written so far as possibly overwritten by other threads.
    pub fn mark_overwritable(&mut self) {
        self.epoch = self.epoch.checked_add(1).unwrap_or_else(|| {
            self.epochs.fill(0);
            1
        });
    }

    /// Reads up to eight bytes, and whether any of them is unknown.
    pub fn read_bits(&self, at: u64, size: u32) -> (u64, bool) {
        let Some(span) = self.byte_span(at, size) else { return (0, true) };
        let bits = match self.bytes[span.clone()] {
            [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            ref other => other.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte)),
        };
        (bits, self.epochs[span].iter().any(|&epoch| epoch != self.epoch))
    }

    /// Writes up to eight bytes; what lies outside is lost.
    pub fn write_bits(&mut self, at: u64, size: u32, bits: u64, unknown: bool) {
        if self.bytes.is_empty() {
            // Zeroed pages cost nothing until they are touched.
            self.bytes = vec![0; self.size];
            self.epochs = vec![0; self.size];
        }
        let Some(span) = self.byte_span(at, size) else { return };
        for (byte, given) in self.bytes[span.clone()].iter_mut().zip(bits.to_le_bytes()) {
            *byte = given;
        }
        self.epochs[span].fill(if unknown { 0 } else { self.epoch });
    }
}
