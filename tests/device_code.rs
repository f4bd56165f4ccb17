//! What device code needs of a source, compiled alone, gives the PTX of the whole source.

use super::suite::programs;
use super::support::full::cases;
use super::support::{summary, toolkit};
use nvtune::launch::FrontEndOptions;
use nvtune::nvcc::{Dryrun, FrontEnd, FrontEndResult, Toolchain};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Returns what the front end made, and how long it took.
fn timed(front_end: impl FnOnce() -> FrontEndResult) -> (Arc<FrontEnd>, Duration) {
    let start = Instant::now();
    let made = front_end().unwrap_or_else(|error| panic!("{error}"));
    (made, start.elapsed())
}

#[test]
fn suite_has_the_same_ptx_by_its_device_code_alone() {
    let (mut whole_s, mut alone_s) = (0.0, 0.0);
    let programs = programs();
    let tried = cases(&programs, 2);
    for name in tried {
        let source = format!("{}/kernels/{name}/{name}.cu", env!("CARGO_MANIFEST_DIR"));
        let arguments = ["-O3", "-arch=sm_90", "-c", &source].map(Into::into);
        let dryrun = Dryrun::ask(&toolkit::nvcc(), &arguments).expect("nvcc lists its steps");
        let pipeline = dryrun.pipelines().into_iter().next().expect("it compiles for a device");
        let toolchain = Toolchain::new(&dryrun, pipeline).expect("a folder");
        toolchain.device_source().expect("the source is preprocessed");
        let options = FrontEndOptions::default();
        let (whole, of_whole) = timed(|| toolchain.front_end_on_whole(&options));
        let (alone, of_alone) = timed(|| toolchain.front_end_on_device_code(&options));
        assert!(alone.is_of_device_code && !whole.is_of_device_code, "{name}: not understood");
        assert!(alone.ptx == whole.ptx, "{name}: other PTX");
        assert_eq!((&alone.source_digest, &alone.files), (&whole.source_digest, &whole.files), "{name}");
        whole_s += of_whole.as_secs_f64();
        alone_s += of_alone.as_secs_f64();
    }
    let count = tried.len();
    summary::keep(
        "device code",
        &format!(
            "device code of {count} programs, compiled alone: same PTX; {alone_s:.1} s in place of {whole_s:.1} s"
        ),
    );
}
