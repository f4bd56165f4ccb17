//! Bytes as a source file -> its annotations, their spaces, and the first configurations of each.
//!
//! Invariant: no panic; every message has a place in the file; what is enumerated is in the space.

use nvtune::comment::{annotations, is_marked};
use nvtune::diag::{Source, render};
use nvtune::space::{Limits, Space};

pub fn run(bytes: &[u8]) {
    let marked = is_marked(bytes);
    let source = Source::new("a.cu", bytes);
    match annotations(&source) {
        Err(problems) => assert!(marked && render(&problems).contains("a.cu(")),
        Ok(found) => {
            assert!(marked || found.is_empty());
            for annotation in &found {
                match Space::new(annotation, &Limits::default()) {
                    Err(problems) => assert!(render(&problems).contains("a.cu(")),
                    Ok(space) => walk(&space),
                }
            }
        }
    }
}

fn walk(space: &Space) {
    assert!(space.contains(space.baseline()));
    // A space that can be enumerated in bounded time.
    if space.check_size().is_err() {
        return;
    }
    for configuration in space.iter().take(100) {
        assert!(space.contains(&configuration));
        let _ = space.launch(&configuration);
        for given in space.annotation().clauses.args.iter().flatten() {
            if let nvtune::comment::GivenValue::Scalar(expression) = &given.value {
                let _ = space.evaluate(&configuration, expression);
            }
        }
    }
}
