//! The two runs of the tests: quick (`make test`) and full (`make test-full`).

/// Returns whether `NVTUNE_TEST_FULL=1` asks for the full run.
pub fn is_full() -> bool {
    std::env::var_os("NVTUNE_TEST_FULL").is_some_and(|value| value == "1")
}

/// Returns all cases in the full run, and the first `quick` of them in the quick run.
pub fn cases<T>(all: &[T], quick: usize) -> &[T] {
    if is_full() { all } else { &all[..quick] }
}

/// Returns how many random cases a property test tries.
pub fn random_cases(quick: u32, full: u32) -> u32 {
    if is_full() { full } else { quick }
}
