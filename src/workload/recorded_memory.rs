//! The memory of a recorded launch -> buffers, variables with their contents, and what handles of
//! textures stand for.

use super::buffer::{Buffer, FileBytes, Fill, Symbol, Workload};
use crate::comment::{RecordedBuffer, RecordedMemory};
use std::sync::Arc;

/// The workload of a recorded launch without its arguments.
pub(super) fn bind_memory(memory: &RecordedMemory) -> Workload {
    let file = memory.file.clone().unwrap_or_default();
    let contents = |recorded: &RecordedBuffer| {
        let place = |byte: u64| usize::try_from(byte).unwrap_or(usize::MAX);
        let bytes = place(recorded.place.start)..place(recorded.place.end);
        let fill = FileBytes::recorded(Arc::clone(&file), bytes, recorded.pointers.clone());
        let RecordedBuffer { name, element, .. } = recorded;
        let count = (recorded.place.end - recorded.place.start) / element.size() as u64;
        Buffer { name: name.clone(), element: *element, count, fill: Fill::File(fill), seed: 0 }
    };
    let symbol = |recorded: &RecordedBuffer| Symbol { symbol: recorded.name.clone(), contents: contents(recorded) };
    Workload {
        buffers: memory.buffers.iter().map(contents).collect(),
        symbols: memory.variables.iter().map(symbol).collect(),
        arrays: memory.arrays.clone(),
        textures: memory.textures.clone(),
        ..Workload::default()
    }
}
