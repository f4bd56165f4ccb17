//! Bytes as machine code -> instructions, flow and scores; the first byte chooses the architecture, and whether lines are known.
//!
//! Invariant: no panic, never more memory than 64 times the input, and time that its size bounds.

use super::memory;
use nvtune::model::Analysis;
use nvtune::sass::control_flow::Flow;
use nvtune::sass::instruction::decode_section;
use nvtune::sass::{CubinKernel, DeviceFunction, Lines, Resources};

const ARCHITECTURES: [u32; 8] = [70, 75, 80, 86, 89, 90, 100, 120];

pub fn run(bytes: &[u8]) {
    let Some((&first, code)) = bytes.split_first() else { return };
    memory::bounded(code.len(), || read(code, ARCHITECTURES[usize::from(first) % ARCHITECTURES.len()]));
}

fn read(code: &[u8], architecture: u32) {
    let half = code.len() as u32 / 32 * 16;
    let kernel = CubinKernel {
        name: "k",
        architecture,
        resources: Resources::default(),
        code,
        functions: vec![DeviceFunction { name: "$k$f", offset: half, size: half }],
        lines: Lines::default(),
        indirect: Vec::new(),
    };
    let instructions = decode_section(code, architecture);
    assert_eq!(instructions.len(), code.len() / 16);
    let flow = Flow::new(&kernel, &instructions);
    assert!(flow.reverse_post_order().len() == flow.blocks.len());
    for block in &flow.blocks {
        assert!(
            block.instructions.end <= instructions.len() && block.successors.iter().all(|&to| to < flow.blocks.len())
        );
    }
    drop((instructions, flow));
    let analysis = Analysis::new(&kernel, None);
    assert!(analysis.cycles >= 0.0);
}
