//! Bytes as a cubin -> kernels, instructions, flow and scores of the machine code.
//!
//! Invariant: no panic, never more memory than 64 times the input, and time that its size bounds.

use super::memory;
use nvtune::model::Analysis;
use nvtune::sass::Cubin;
use nvtune::sass::control_flow::Flow;
use nvtune::sass::instruction::decode_section;

pub fn run(bytes: &[u8]) {
    memory::bounded(bytes.len(), || read(bytes));
}

fn read(bytes: &[u8]) {
    let Ok(cubin) = Cubin::parse(bytes) else { return };
    for kernel in cubin.kernels() {
        let instructions = decode_section(kernel.code, kernel.architecture);
        let flow = Flow::new(kernel, &instructions);
        let order = flow.reverse_post_order();
        assert!(order.len() <= flow.blocks.len());
        let analysis = Analysis::new(kernel, None);
        assert!(analysis.cycles >= 0.0);
        let _ = kernel.placeless_code();
    }
}
