//! What a reader takes of memory, against the size of what it reads.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// No reader may take more than this many times the size of its input,
const FACTOR: usize = 64;
/// or this, where the input is smaller than a message about it.
const LEAST: usize = 64 << 10;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is left to the system's allocator; what is counted is not looked at by it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Runs a reader of `input` bytes; more memory than 64 times that, at any time, is a panic.
pub fn bounded(input: usize, read: impl FnOnce()) {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    read();
    let taken = PEAK.load(Relaxed) - before;
    assert!(taken <= (FACTOR * input).max(LEAST), "{taken} bytes for {input} of input");
}
