//! The program that libFuzzer drives; the variable NVTUNE_FUZZ_TARGET names the target.
#![no_main]

mod targets;

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

#[global_allocator]
static COUNTING: targets::memory::Counting = targets::memory::Counting;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let wanted = std::env::var("NVTUNE_FUZZ_TARGET").expect("NVTUNE_FUZZ_TARGET");
    targets::TARGETS.iter().find(|(name, _)| *name == wanted).expect("the name of a target").1
});

fuzz_target!(|bytes: &[u8]| TARGET(bytes));
