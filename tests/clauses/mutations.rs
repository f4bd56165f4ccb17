//! Mutations of real comments: each is read, or refused with a place.

use super::*;
use crate::support::full::random_cases;
use proptest::prelude::*;

/// Pieces that mutations put in: those that the language is made of, and what is none of it.
const PIECES: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "=",
    "==",
    "*/",
    "/*",
    "//",
    "//@tune ",
    "\n",
    " ",
    "\"",
    "'",
    "\\",
    ";",
    ".",
    "0",
    "1",
    "-1",
    "64",
    "9223372036854775807",
    "1e308",
    "0x",
    "n",
    "x",
    "block.x",
    "block.size",
    "grid.x",
    "auto",
    "none",
    "pow2(1, 64)",
    "1:65536",
    "1:65536:3",
    "ceildiv(",
    "min(",
    "sizeof(float)",
    "random[",
    "fill(2)[",
    "?",
    "<<",
    "&&",
    "%",
    "__global__ ",
    "template <int N> ",
    "int z, ",
    "é",
    "\u{0}",
    "\u{feff}",
];

/// Comments as they are written: those of the suite and of this table.
fn real() -> Vec<String> {
    let suite = ["saxpy", "nbody", "matmul_naive", "matmul_tiled", "black_scholes"];
    let file = |name: &str| format!("{}/kernels/{name}/{name}.cu", env!("CARGO_MANIFEST_DIR"));
    let mut all: Vec<String> =
        suite.iter().map(|name| std::fs::read_to_string(file(name)).expect("the suite is there")).collect();
    // The comment and the kernel's head are enough.
    all.iter_mut().for_each(|text| {
        let start = text.find("@tune").map_or(0, |at| at - 2);
        let end = text[start..].find('{').map_or(text.len(), |_| (start + 900).min(text.len()));
        *text = text.chars().skip(text[..start].chars().count()).take(end - start).collect();
    });
    all.extend(CLAUSES.iter().flat_map(|clause| clause.accepted).map(|case| source(case).text));
    all
}

/// Where, how many characters go, and which piece comes.
type Mutation = (prop::sample::Index, usize, prop::sample::Index);

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        rng_seed: prop::test_runner::RngSeed::Fixed(13),
        ..ProptestConfig::with_cases(random_cases(3_000, 80_000))
    })]

    /// Whatever is done to a real comment, it is read or refused with a place, in bounded time; the same each time.
    #[test]
    fn mutated_comment_is_read_or_refused(
        which in any::<prop::sample::Index>(),
        mutations in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, any::<prop::sample::Index>()), 1..5),
    ) {
        let mut text: Vec<char> = REAL.with(|real| which.get(real).chars().collect());
        for (at, length, piece) in &mutations {
            let (at, length, piece): &(_, _, _) = &(at, length, piece);
            mutate(&mut text, &(**at, **length, **piece));
        }
        let text: String = text.into_iter().collect();
        let source = Source::new("a.cu", text.as_bytes());
        match read(&source) {
            Err(problems) => prop_assert!(problems.contains("a.cu(") && problems.contains(": error: "), "{}", problems),
            Ok(spaces) => for (_, space) in spaces {
                prop_assert!(space.contains(space.baseline()));
                if space.check_size().is_ok() {
                    for configuration in space.iter().take(20) {
                        prop_assert!(space.contains(&configuration));
                        let _ = space.launch(&configuration);
                    }
                }
            },
        }
    }
}

thread_local! {
    static REAL: Vec<String> = real();
}

fn mutate(text: &mut Vec<char>, (at, length, piece): &Mutation) {
    let at = at.index(text.len() + 1);
    let end = (at + length).min(text.len());
    text.splice(at..end, piece.get(PIECES).chars());
}
