//! The memory of a recorded launch -> buffers, and variables with their contents.

use super::buffer::{Buffer, FileBytes, Fill, Symbol};
use crate::comment::{RecordedBuffer, RecordedMemory};
use std::sync::Arc;

/// The buffers and variables of a recorded launch.
pub(super) fn bind_memory(memory: &RecordedMemory) -> (Vec<Buffer>, Vec<Symbol>) {
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
    (memory.buffers.iter().map(contents).collect(), memory.variables.iter().map(symbol).collect())
}
