//! What these tests share: a measuring process on a recording.

use nvtune::cuda::{Element, Scalar};
use nvtune::launch::Launch;
use nvtune::measure::{Candidate, Measurer, Options, Outcome, Plan, Process};
use nvtune::workload::{Argument, Buffer, Fill, Workload};
use std::path::PathBuf;
use std::sync::Arc;

/// A recording in a folder of its own, and the options that start a child on it.
pub struct Recorded {
    pub folder: tempfile::TempDir,
}

impl Recorded {
    pub fn new(recording: &str) -> Recorded {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("recording.json"), recording).unwrap();
        Recorded { folder }
    }

    pub fn options(&self) -> Options {
        Options {
            program: Some(PathBuf::from(env!("CARGO_BIN_EXE_nvtune"))),
            replay: Some(self.folder.path().join("recording.json")),
            ..Options::default()
        }
    }

    pub fn start(&self) -> Process {
        Process::start(self.options()).unwrap()
    }
}

pub fn workload() -> Arc<Workload> {
    Arc::new(Workload {
        arguments: vec![Argument::Scalar(vec![1, 0, 0, 0]), Argument::Buffer(0)],
        buffers: vec![Buffer {
            name: "y".to_owned(),
            element: Element { scalar: Scalar::F32, lanes: 1 },
            count: 1024,
            fill: Fill::Random { lo: 0.0, hi: 1.0 },
            seed: 1,
        }],
        ..Workload::default()
    })
}

/// A candidate of 128 threads, told apart by its label.
pub fn candidate(label: &str) -> Candidate {
    Candidate {
        id: 0,
        label: label.to_owned(),
        cubin: Arc::from(&b"\x7fELF"[..]),
        kernel: "saxpy".to_owned(),
        launch: Launch { grid: [8, 1, 1], block: [128, 1, 1], shared: 0, carveout: None, coarsening: None },
        cooperative: false,
        needs_comparison: false,
        workload: workload(),
    }
}

pub fn plan() -> Plan {
    Plan { rounds: 5, patience_s: 0.3, ..Plan::default() }
}

/// What came of each candidate, in short: the samples' number and median, or the reason.
pub fn time(process: &mut Process, labels: &[&str], plan: &Plan) -> Vec<String> {
    let candidates: Vec<_> = labels.iter().map(|label| candidate(label)).collect();
    let timings = process.time(&candidate("default"), &candidates, plan).unwrap();
    assert!(timings.baseline.samples_us.len() >= plan.rounds as usize);
    let short = |outcome: Outcome| match outcome {
        Outcome::Timed(timing) => {
            format!("{} x {:.1}", timing.samples_us.len(), timing.median_us)
        }
        Outcome::Refused(reason) => reason.to_string(),
        Outcome::Skipped => "skipped".to_owned(),
    };
    timings.candidates.into_iter().map(short).collect()
}
