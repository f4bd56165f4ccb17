//! What launches of small kernels write, by the interpreter.

use nvtune::cuda::{Element, Scalar};
use nvtune::launch::Launch;
use nvtune::ptx::{Module, Parameter};
use nvtune::sim::{Limits, executed_lines, written_by_thread};
use nvtune::workload::{Argument, Buffer, Fill, Workload};
use std::collections::BTreeMap;

/// What every argument is that is no pointer.
const ITEMS: u32 = 23;

/// Elements of each buffer, more than any kernel here accesses.
const ELEMENTS: u64 = 256;

/// Instructions that a thread may execute: with all items it needs less than a thousand.
const INSTRUCTIONS: u64 = 5_000;

/// Buffers of small numbers for pointers, and numbers near that of the items for the others.
fn workload(parameters: &[Parameter]) -> Workload {
    let mut workload = Workload::default();
    for parameter in parameters {
        let argument = if parameter.pointer {
            let element = Element { scalar: Scalar::U32, lanes: 1 };
            let (name, seed) = (parameter.name.to_string(), workload.buffers.len() as u64);
            let fill = Fill::Random { lo: 0.0, hi: f64::from(ITEMS) };
            workload.buffers.push(Buffer { name, element, count: ELEMENTS, fill, seed });
            Argument::Buffer(workload.buffers.len() - 1)
        } else {
            let bytes = u64::from(ITEMS).to_le_bytes();
            Argument::Scalar(bytes[..parameter.size as usize].to_vec())
        };
        workload.arguments.push(argument);
    }
    workload
}

/// What the threads of a launch write, each alone: known bytes by (buffer, byte). `None` if a thread does not end, or if what it
/// does is unknown to the interpreter.
pub fn written(module: &Module, symbol: &str, launch: &Launch) -> Option<BTreeMap<(usize, u64), u8>> {
    let mut workload = workload(&module.entry(symbol)?.parameters);
    if launch.is_coarsened() {
        *workload.arguments.last_mut()? = Argument::Scalar(launch.grid[0].to_le_bytes().to_vec());
    }
    let launch = Launch { grid: launch.launched_grid(), coarsening: None, ..*launch };
    let threads = launch.block_threads();
    let places: Vec<_> = (0..launch.grid[0] * threads).map(|at| ([at / threads, 0, 0], [at % threads, 0, 0])).collect();
    let lines = executed_lines(module, symbol, &launch, &workload, &places, INSTRUCTIONS).expect("it runs");
    if lines.iter().any(Option::is_none) {
        return None;
    }
    let limits = Limits { instructions: INSTRUCTIONS, ..Limits::default() };
    let of_thread =
        |place: &_| written_by_thread(module, symbol, &launch, &workload, *place, &limits).expect("it runs");
    Some(places.iter().flat_map(of_thread).collect())
}
