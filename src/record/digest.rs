//! Bytes -> a short name for them.

use sha2::{Digest, Sha256};

/// Half of a SHA-256 in hexadecimal digits: enough that no two differing inputs meet, and short
/// enough for a line of a file.
pub fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // The lengths keep ("ab", "c") and ("a", "bc") apart.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut text = format!("{:x}", hash.finalize());
    text.truncate(32);
    text
}

/// The whole SHA-256 of some bytes.
pub fn checksum(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}
