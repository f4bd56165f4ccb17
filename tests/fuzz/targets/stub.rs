//! Bytes as the stub file that cicc makes -> its kernels, and the file with a dispatch in each.
//!
//! Invariant: no panic; a stub with a problem stays as it is, so that a file of problems is the file.

use nvtune::emit::{Dispatch, LaunchText, LaunchesByAddress, StubChange, StubText, Winner, rewrite_stubs};
use nvtune::workload::entries;

pub fn run(bytes: &[u8]) {
    let file = String::from_utf8_lossy(bytes);
    let launch =
        LaunchText { block: [64, 1, 1], grid: ["1LL".into(), "1LL".into(), "1LL".into()], shared: "0LL".into() };
    let stubs: Vec<StubText> = entries(&file)
        .into_iter()
        .take(8)
        .map(|entry| {
            let winner = Winner {
                capability: 90,
                entry: format!("{}__nvtune_1", entry.symbol),
                launch: launch.clone(),
                conditions: Vec::new(),
                carveout: None,
                coarsening: 4,
                is_clustered: false,
            };
            let dispatch = Dispatch {
                baseline: launch.clone(),
                winners: vec![winner],
                accepts_winner_launches: false,
                reshapes: true,
            };
            let stub = entry.mangled.clone().unwrap_or_else(|| entry.symbol.clone());
            StubText { source: "a.cu".into(), stub, symbol: entry.symbol, change: StubChange::Dispatch(dispatch) }
        })
        .collect();
    let rewritten =
        rewrite_stubs(&file, &stubs.iter().collect::<Vec<_>>(), LaunchesByAddress::new(file.as_bytes()).as_ref());
    assert_eq!(rewritten.problems.len(), stubs.len());
    if rewritten.problems.iter().all(Option::is_some) {
        assert_eq!(rewritten.text, file);
    }
}
