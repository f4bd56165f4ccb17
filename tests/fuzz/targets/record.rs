//! Bytes as a record -> its decisions, thinned and sorted as reports have them.
//!
//! Invariant: no panic, never more memory than 64 times the input.

use super::memory;
use nvtune::record::Record;

pub fn run(bytes: &[u8]) {
    memory::bounded(bytes.len(), || read(bytes));
}

fn read(bytes: &[u8]) {
    let Ok(record) = serde_json::from_slice::<Record>(bytes) else { return };
    for mut decision in record.kernels {
        let mut rows: Vec<_> = decision.configurations.iter().collect();
        rows.sort_by(|a, b| a.compare(b));
        let _ = (decision.all_held().count(), decision.held_back().count());
        decision.thin();
        decision.retain(|row| row.candidate);
    }
}
