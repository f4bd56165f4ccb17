//! Bytes as what `nvcc --dryrun` prints -> its steps, and commands with other files in them.
//!
//! Invariant: no panic, never more memory than 64 times the input.

use super::memory;
use nvtune::nvcc::Dryrun;
use std::path::Path;

pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    memory::bounded(text.len(), || read(&text));
}

fn read(text: &str) {
    let dry_run = Dryrun::parse(text);
    let _ = dry_run.variable("PATH");
    assert!(dry_run.has_same_steps_as(&dry_run));
    for pipeline in dry_run.pipelines() {
        let _ = (pipeline.is_relocatable(), pipeline.has_host_code());
        for step in [&pipeline.cicc, &pipeline.ptxas] {
            let output = step.option("-o").unwrap_or_default();
            let _ = step.rewritten(&[(output, Path::new("/a b"))], &["--entry".into(), "k'".into()]);
            let _ = (step.program(), step.arguments().count());
        }
    }
}
