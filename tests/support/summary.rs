//! Outcomes of the long tests, which `make test-full` gathers in `tests/FULL.txt`.

use super::full::is_full;
use std::path::Path;

/// Writes the outcome of a long test to `build/test-full/NAME`; a quick run writes nothing.
pub fn keep(name: &str, text: &str) {
    if !is_full() {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("build/test-full");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join(name), format!("{}\n", text.trim_end())).expect("written");
}
