//! Bytes as a lock file -> its entries, and these as text again.
//!
//! Invariant: no panic; what is written is read as the same; never more memory than 64 times the input.

use super::memory;
use nvtune::record::{Lock, lock};

pub fn run(bytes: &[u8]) {
    memory::bounded(bytes.len(), || read(bytes));
}

fn read(bytes: &[u8]) {
    let Ok(found) = Lock::parse(bytes) else { return };
    for key in found.entries.keys() {
        let _ = lock::parts(key);
    }
    let text = found.text().expect("plain data");
    let again = Lock::parse(text.as_bytes()).expect("its own text");
    assert_eq!(again.text().expect("plain data"), text);
}
