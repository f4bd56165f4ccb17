//! What the GPU does of its own for the measuring process: contents of buffers and comparisons, held against the host's.

use super::{buffer, candidate, outcomes, plan, start};
use nvtune::cuda::{Element, Scalar};
use nvtune::measure::compare::{Tolerance, compare};
use nvtune::measure::{Candidate, Measurer, Outcome, Plan, Process, Reason};
use nvtune::workload::contents::{encode, fill_bytes};
use nvtune::workload::{Argument, Buffer, Check, FileBytes, Fill, Workload};
use std::sync::Arc;

include!("cases.rs");

/// A launch that copies the words of `x` to `y`.
fn copies(x: Buffer, y: Buffer, check: Option<Check>) -> Candidate {
    let words = x.bytes().min(y.bytes()) / 4;
    let workload = Workload {
        arguments: vec![
            Argument::Scalar((words as i32).to_le_bytes().to_vec()),
            Argument::Scalar(0f32.to_le_bytes().to_vec()),
            Argument::Buffer(0),
            Argument::Buffer(1),
        ],
        buffers: vec![x, y],
        symbols: vec![],
        written: vec![],
        arrays: vec![],
        textures: vec![],
        checks: check.map(|check| vec![check]),
    };
    let mut candidate = candidate("copies", 256, &Arc::new(workload));
    candidate.launch.grid = [(words as u32).div_ceil(256), 1, 1];
    candidate
}

fn of_file(bytes: &[u8], element: Element) -> Buffer {
    let count = (bytes.len() / element.size()) as u64;
    Buffer { element, ..buffer("x", count, Fill::File(FileBytes::new(Arc::new(bytes.to_vec()), 0)), 0) }
}

fn written(name: &str, count: u64, element: Element) -> Buffer {
    Buffer { element, ..buffer(name, count, Fill::Poison, 0) }
}

/// What comes of each candidate, looked at once.
fn looked_at(process: &mut Process, baseline: &Candidate, candidates: &[Candidate]) -> Vec<Outcome> {
    process.time(baseline, candidates, &Plan { rounds: 1, ..plan() }).unwrap().candidates
}

pub fn contents_are_made_on_the_gpu_as_on_the_host() {
    let mut process = start();
    let mut number = 0;
    for scalar in Scalar::ALL {
        // And one that is left to the host.
        let unbounded = Fill::Random { lo: f64::MIN, hi: f64::MAX };
        let fills = fills(scalar).into_iter().chain(scalar.is_float().then_some(unbounded));
        for (fill, lanes) in fills.zip([1, 3, 4].into_iter().cycle()) {
            number += 1;
            let element = Element { scalar, lanes };
            let contents = Buffer { element, ..buffer("x", 40_000, fill, number) };
            let mut bytes = vec![0; contents.bytes() as usize];
            assert!(fill_bytes(&contents, 0..contents.count, &mut bytes));
            let word = Element { scalar: Scalar::U32, lanes: 1 };
            // Unlike all of these, so that the copy is seen.
            let onto = || Buffer { fill: Fill::Constant(77.0), ..written("y", contents.bytes() / 4, word) };
            let mut other = bytes.clone();
            other[bytes.len() - 1] ^= 1;
            let found = looked_at(
                &mut process,
                &copies(of_file(&bytes, element), onto(), None),
                &[copies(contents.clone(), onto(), None), copies(of_file(&other, element), onto(), None)],
            );
            assert!(matches!(found[0], Outcome::Timed(_)), "{contents:?}: {:?}", found[0]);
            let difference = compare("y", &word, Tolerance::for_scalar(word.scalar), &bytes, &other).unwrap();
            assert_eq!(found[1], Outcome::Refused(Reason::Differs(difference)), "{contents:?}");
        }
    }
    println!("{number} buffers");
}

pub fn results_are_compared_on_the_gpu_as_on_the_host() {
    const COUNT: u64 = 6000;
    const FIRST: usize = 5001;
    const PART: usize = 7;
    let mut process = start();
    let (mut agreed, mut differed, mut turn) = (0, 0, 0);
    for (scalar, lanes) in [(Scalar::F16, 4), (Scalar::Bf16, 2), (Scalar::F32, 3), (Scalar::F64, 1)] {
        let element = Element { scalar, lanes };
        let (size, elements) = (scalar.size(), COUNT / u64::from(lanes));
        let put = |bytes: &mut [u8], index: usize, bits: u64| {
            bytes[index * size..(index + 1) * size].copy_from_slice(&bits.to_le_bytes()[..size]);
        };
        let around = Buffer { element, ..buffer("x", elements, Fill::Random { lo: -3.0, hi: 3.0 }, 7) };
        let mut expected = vec![0; around.bytes() as usize];
        assert!(fill_bytes(&around, 0..elements, &mut expected));
        for (index, value) in VALUES.into_iter().enumerate() {
            put(&mut expected, FIRST + index, encode(scalar, value));
        }
        for (relative, absolute) in [(0.01, Some(0.0)), (0.01, None), (0.0, Some(0.25)), (0.125, Some(0.125))] {
            let tolerance = Tolerance { relative, absolute };
            let near = |value: f64| near(scalar, value, relative * value.abs() + absolute.unwrap_or(0.0015));
            let deviations = VALUES
                .into_iter()
                .enumerate()
                .flat_map(|(index, value)| near(value).into_iter().map(move |bits| (index, bits)));
            // A part of them, another one with each tolerance, for each takes a launch: the host tries all.
            turn += 1;
            let others: Vec<Vec<u8>> = deviations
                .skip(turn % PART)
                .step_by(PART)
                .map(|(index, bits)| {
                    let mut other = expected.clone();
                    put(&mut other, FIRST + index, bits);
                    other
                })
                .collect();
            let copied = |bytes: &[u8]| {
                let check = Check { buffer: 1, relative, absolute };
                copies(of_file(bytes, element), written("y", elements, element), Some(check))
            };
            let candidates: Vec<Candidate> = others.iter().map(|other| copied(other)).collect();
            let found = looked_at(&mut process, &copied(&expected), &candidates);
            for (other, found) in others.iter().zip(found) {
                match compare("y", &element, tolerance, &expected, other) {
                    None => {
                        assert!(matches!(found, Outcome::Timed(_)), "{scalar:?} {tolerance:?}: {found:?}");
                        agreed += 1;
                    }
                    Some(difference) => {
                        assert_eq!(found, Outcome::Refused(Reason::Differs(difference)), "{scalar:?} {tolerance:?}");
                        differed += 1;
                    }
                }
            }
        }
    }
    println!("{agreed} that agree, {differed} that differ");
    assert!(agreed > 200 && differed > 200);
}

pub fn results_that_do_not_fit_beside_a_candidate_go_to_the_host() {
    let mut process = start();
    let element = Element { scalar: Scalar::F32, lanes: 1 };
    // Three quarters of what is free, which is not there twice.
    let copied = |part: f64, value: f64| {
        let count = (part * process.device().free_bytes as f64) as u64 / 4;
        copies(buffer("x", count, Fill::Constant(value), 0), written("y", 1 << 26, element), None)
    };
    let candidates = [copied(0.7, 1.0 + f64::from(f32::EPSILON)), copied(0.72, 1.1), copied(0.71, 1.0)];
    let baseline = copied(0.75, 1.0);
    let timings = process.time(&baseline, &candidates, &Plan { rounds: 1, ..plan() }).unwrap();
    let outcomes = outcomes(&timings);
    println!("{outcomes:#?}");
    assert_eq!((outcomes[0].as_str(), outcomes[2].as_str()), ("timed", "timed"));
    assert!(outcomes[1].starts_with("67108864 of 67108864 elements of `y` differ"), "{}", outcomes[1]);
}
