//! What only the full run does, and where it leaves its summary for `make test-full`.

use std::path::Path;

/// Whether everything is to be tested, however long it takes.
pub fn wanted() -> bool {
    std::env::var_os("NVTUNE_TEST_FULL").is_some_and(|value| value == "1")
}

/// Leaves the outcome of one full test in `build/test-full/NAME`; a quick run leaves nothing.
pub fn keep(name: &str, text: &str) {
    if !wanted() {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("build/test-full");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join(name), format!("{}\n", text.trim_end())).expect("written");
}
