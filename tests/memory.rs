//! Memory of the readers of cubins, machine code and PTX: at most 64 times their input, whatever it is.

use super::fuzzing::targets::memory as allocation;
use crate::support::full::{cases, is_full};
use nvtune::launch::Launch;
use nvtune::model::Analysis;
use nvtune::ptx::Module;
use nvtune::sass::control_flow::Flow;
use nvtune::sass::instruction::decode_section;
use nvtune::sass::{Cubin, CubinKernel, Lines, Resources};
use nvtune::sim::{Limits, profile_entry};
use nvtune::workload::Workload;

#[global_allocator]
static COUNTING: allocation::Counting = allocation::Counting;

const CUDA12_SM70: &[u8] = include_bytes!("cubin/cuda12.sm_70.cubin");
const CUDA12_SM90: &[u8] = include_bytes!("cubin/cuda12.sm_90.cubin");

fn kernel(code: &[u8]) -> CubinKernel<'_> {
    CubinKernel {
        name: "k",
        architecture: 80,
        resources: Resources::default(),
        code,
        functions: Vec::new(),
        lines: Lines::default(),
        indirect: Vec::new(),
    }
}

fn read_code(code: &[u8]) -> usize {
    let kernel = kernel(code);
    let mut loops = 0;
    allocation::bounded(code.len(), || {
        let instructions = decode_section(code, kernel.architecture);
        loops = Flow::new(&kernel, &instructions).loops.len();
        drop(instructions);
        assert!(Analysis::new(&kernel, None).cycles >= 0.0);
    });
    loops
}

fn read_cubin(bytes: &[u8]) {
    allocation::bounded(bytes.len(), || {
        let Ok(cubin) = Cubin::parse(bytes) else { return };
        for kernel in cubin.kernels() {
            assert!(Analysis::new(kernel, None).cycles >= 0.0);
        }
    });
}

/// `@P0 BRA` at instruction `at` to instruction `to`.
fn branch(at: usize, to: usize) -> u128 {
    let distance = (to as i64 - at as i64 - 1) * 4;
    let target = (distance as u64 & ((1 << 48) - 1)) as u128;
    0x947 | target << 34 | 7 << 87 | 1 << 105
}

const EXIT: u128 = 0x794d | 7 << 87;
const NOP: u128 = 0x7918;

fn bytes(words: &[u128]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// `count` loops, each in the one before.
fn nested(count: usize) -> Vec<u8> {
    let mut words = vec![NOP; count];
    words.extend((0..count).map(|inner| branch(count + inner, count - 1 - inner)));
    words.push(EXIT);
    bytes(&words)
}

/// Every instruction may go to every other one's place: `count` branches in a pattern without structure.
fn tangled(count: usize) -> Vec<u8> {
    let words: Vec<u128> = (0..count).map(|at| branch(at, at * 7919 % count)).chain([EXIT]).collect();
    bytes(&words)
}

/// Reads a kernel's PTX and runs it: a thread's memory is that of the registers that are named, not of those that are declared.
fn read_ptx(body: &str) {
    let text = format!(".version 8.0\n.target sm_90\n.entry k()\n{{\n{body}\nret;\n}}\n");
    let launch = Launch { grid: [4, 1, 1], block: [64, 1, 1], shared: 0, carveout: None, coarsening: None };
    allocation::bounded(text.len().max(1 << 16), || {
        let module = Module::parse(&text).expect("PTX");
        let limits = Limits { instructions: 1000, ..Limits::default() };
        assert!(profile_entry(&module, "k", &launch, &Workload::default(), &limits).is_ok());
    });
}

#[test]
fn nested_loops_are_all_found() {
    assert_eq!(read_code(&nested(8)), 8);
}

#[test]
fn machine_code_takes_bounded_memory() {
    for &count in cases(&[100, 1000, 4000], 2) {
        read_code(&nested(count));
        read_code(&tangled(count));
        read_code(&bytes(&vec![branch(0, 0); count]));
        read_code(&bytes(&vec![EXIT; count]));
    }
}

#[test]
fn declared_registers_take_bounded_memory() {
    read_ptx(".reg .b32 %r<1000000>;\nmov.u32 %r999999, %tid.x; add.u32 %r1, %r999999, 1;");
    read_ptx(&".reg .v4 .f64 %v<4294967295>;\n".repeat(100));
}

/// Replaces every word of a cubin, one at a time, by values that change offsets, sizes and counts.
#[test]
fn damaged_cubin_takes_bounded_memory() {
    for bytes in [CUDA12_SM70, CUDA12_SM90] {
        read_cubin(bytes);
        for place in (0..bytes.len() - 4).step_by(if is_full() { 4 } else { 16 }) {
            for value in [0, 0x40, 0x10_0000, u32::MAX] {
                let mut changed = bytes.to_vec();
                changed[place..place + 4].copy_from_slice(&value.to_le_bytes());
                read_cubin(&changed);
            }
        }
    }
}
