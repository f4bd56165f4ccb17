//! What a reader takes of memory, against the size of what it reads.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// No reader may take more than this many times the size of its input,
const FACTOR: usize = 64;
/// or this, where the input is smaller than a message about it.
const LEAST: usize = 64 << 10;

pub struct Counting;

/// Bytes that a thread has allocated, and the most that it had. What another thread frees is taken from that one's.
#[derive(Clone, Copy)]
struct Taken {
    live: isize,
    peak: isize,
}

thread_local! {
    static TAKEN: Cell<Taken> = const { Cell::new(Taken { live: 0, peak: 0 }) };
}

/// Counts bytes on this thread; does nothing while the thread ends.
fn count(bytes: isize) {
    let _ = TAKEN.try_with(|taken| {
        let live = taken.get().live + bytes;
        taken.set(Taken { live, peak: taken.get().peak.max(live) });
    });
}

// SAFETY: everything is left to the system's allocator; what is counted is not looked at by it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        unsafe { System.dealloc(at, layout) }
    }
}

/// Runs a reader of `input` bytes on this thread; if it takes more than 64 times that at any time, it panics.
pub fn bounded(input: usize, read: impl FnOnce()) {
    let before = TAKEN.get().live;
    TAKEN.set(Taken { live: before, peak: before });
    read();
    let taken = (TAKEN.get().peak - before).unsigned_abs();
    assert!(taken <= (FACTOR * input).max(LEAST), "{taken} bytes for {input} of input");
}
