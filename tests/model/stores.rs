//! Stores of structures, compared with times of an H200 (`kernels/results/h200/stores.txt`).

use super::*;

/// Returns cubin and PTX of `structures.cu`, whose structures are stored whole.
fn structures(words: u64, at_once: u64) -> (Vec<u8>, String) {
    stored(words, at_once, words)
}

/// Returns cubin and PTX of `structures.cu`, of whose structures the first `stored` words are written.
fn stored(words: u64, at_once: u64, stored: u64) -> (Vec<u8>, String) {
    let name = fixtures::structures([words, at_once, stored]);
    (fixtures::cubin(&name), fixtures::ptx(&name))
}

/// What a kernel of `structures.cu` takes on an H200 by the model, in microseconds, with buffers of so many floats; and what it was taken to move.
fn predicted_us(
    (cubin, ptx): &(Vec<u8>, String),
    kernel: &str,
    (grid, block): (u32, u32),
    (names, floats): (&[&str], u64),
    scalars: &[u32],
) -> (f64, Vec<Traffic>) {
    let element = Element { scalar: Scalar::F32, lanes: 1 };
    let buffer = |name: &&str| Buffer { name: name.to_string(), element, count: floats, fill: Fill::Zeros, seed: 0 };
    let buffers: Vec<Buffer> = names.iter().map(buffer).collect();
    let mut arguments: Vec<Argument> = (0..buffers.len()).map(Argument::Buffer).collect();
    arguments.extend(scalars.iter().map(|scalar| Argument::Scalar(scalar.to_le_bytes().to_vec())));
    let bytes = vec![floats * 4; buffers.len()];
    let workload = Workload { arguments, buffers, ..Workload::default() };
    let launch = Launch { grid: [grid, 1, 1], block: [block, 1, 1], shared: 0, carveout: None, coarsening: None };
    let module = Module::parse(ptx).unwrap();
    let profile = sim::profile_entry(&module, kernel, &launch, &workload, &sim::Limits::default()).unwrap();
    let cubin = Cubin::parse(cubin).unwrap();
    let found = cubin.kernels().iter().find(|of| of.name == kernel).unwrap();
    let analysis = Analysis::new(found, Some(&profile));
    let machine = Machine::flagship_of(architecture(90));
    let inputs = Inputs { machine: &machine, kernel: &analysis, launch: &launch, buffers: Some(&bytes) };
    (score_configuration(&inputs).predicted_us, analysis.traffic)
}

/// Sectors that are written in parts cost the more, the more is written between (results/h200/stores.txt, columns 8 and 64 of stores alone).
#[test]
#[ignore = "long: in the full run"]
fn partial_sectors_cost_more_with_more_warps() {
    let floats = 1 << 27;
    for (words, measured) in [(4, 126.0 / 122.2), (8, 308.8 / 305.8), (16, 517.6 / 372.4), (32, 936.0 / 582.0)] {
        let code = structures(words, 4);
        let number = (floats / words) as u32;
        let predicted =
            [8, 64].map(|warps| predicted_us(&code, "store", (264, warps * 16), (&["out"], floats), &[number]).0);
        let ratio = predicted[1] / predicted[0];
        assert!((0.75..1.25).contains(&(ratio / measured)), "{words} words: {predicted:?} us, {ratio} for {measured}");
    }
}

/// Sectors that are never whole cost what an H200 takes to fetch the rest of them (results/h200/stores.txt, column 8).
#[test]
fn sectors_never_written_whole_are_fetched() {
    // Words of a structure, of a store, and those that are stored; structures, and the microseconds.
    for (words, at_once, part, number, measured) in
        [(36, 4, 24, 2_500_000, 516.1), (8, 1, 1, 1 << 22, 73.5), (64, 1, 1, 1 << 22, 245.3)]
    {
        let code = stored(words, at_once, part);
        let floats = words * u64::from(number);
        let (predicted, traffic) = predicted_us(&code, "store", (264, 128), (&["out"], floats), &[number]);
        assert!(
            (0.6..1.3).contains(&(predicted / measured)),
            "{part} of {words} words by {at_once}: {predicted} us for {measured}, {traffic:?}"
        );
    }
}

/// Words of a structure that are stored one after another cost what an H200 takes for them (results/h200/stores.txt, column g64).
#[test]
fn partial_sectors_cost_more_than_whole_ones() {
    let floats = 1 << 26;
    // Words of a structure, words of a store, and the microseconds.
    for (words, at_once, measured) in
        [(4, 4, 130.4), (4, 1, 129.3), (8, 4, 148.5), (16, 4, 198.9), (8, 1, 457.9), (12, 1, 542.4), (16, 1, 739.7)]
    {
        let blocks = (floats / words / 128) as u32;
        let code = structures(words, at_once);
        let (predicted, traffic) = predicted_us(&code, "copy", (blocks, 128), (&["in", "out"], floats), &[]);
        assert!(
            (0.65..1.35).contains(&(predicted / measured)),
            "{words} words by {at_once}: {predicted} us for {measured}, {traffic:?}"
        );
    }
}
