//! Profiles of real kernels, compared with counts and values that are worked out independently.

mod accesses;
mod control_flow;
mod counts;
mod errors;
mod sampling;
mod spaces;
mod values;

use super::support::fixtures;
use super::support::full::random_cases;

use nvtune::cuda::{Element, Scalar};
use nvtune::launch::Launch;
use nvtune::ptx::Module;
use nvtune::ptx::{AccessKind, MemorySpace};
use nvtune::sim::Profile;
use nvtune::sim::profile::{Access, VARIABLES};
use nvtune::sim::{Limits, SimError, find_violations, profile_entry, written_by_thread};
use nvtune::workload::{Argument, Buffer, Fill, Symbol, Workload, contents};
use proptest::prelude::*;

/// A kernel's PTX with a workload that grows argument by argument.
struct Case {
    text: String,
    module: Module,
    entry: String,
    workload: Workload,
}

impl Case {
    fn new(file: &str, kernel: &str) -> Self {
        let text = fixtures::ptx(&format!("{file}/sm_90"));
        let module = Module::parse(&text).expect("cicc's PTX parses");
        let entry = module.functions.iter().find(|f| f.entry && f.name.contains(kernel)).expect("the kernel");
        let entry = entry.name.to_string();
        Self { module, entry, text, workload: Workload::default() }
    }

    fn int(mut self, value: i32) -> Self {
        self.workload.arguments.push(Argument::Scalar(value.to_le_bytes().to_vec()));
        self
    }

    fn float(mut self, value: f32) -> Self {
        self.workload.arguments.push(Argument::Scalar(value.to_le_bytes().to_vec()));
        self
    }

    fn buffer(mut self, scalar: Scalar, lanes: u8, count: u64, fill: Fill) -> Self {
        let index = self.workload.buffers.len();
        self.workload.arguments.push(Argument::Buffer(index));
        let element = Element { scalar, lanes };
        self.workload.buffers.push(Buffer { name: format!("b{index}"), element, count, fill, seed: index as u64 });
        self
    }

    fn floats(self, count: u64) -> Self {
        self.buffer(Scalar::F32, 1, count, Fill::Random { lo: 0.0, hi: 1.0 })
    }

    fn profile(&self, grid: [u32; 3], block: [u32; 3], shared: u32) -> Profile {
        let launch = Launch { grid, block, shared, carveout: None, coarsening: None };
        profile_entry(&self.module, &self.entry, &launch, &self.workload, &Limits::default()).expect("a profile")
    }

    /// Lines of the entry whose instruction begins with `opcode`, with their counts.
    fn counts(&self, profile: &Profile, opcode: &str) -> Vec<f64> {
        self.lines(opcode).map(|line| profile.counts.get(&line).copied().unwrap_or(0.0)).collect()
    }

    fn total(&self, profile: &Profile, opcode: &str) -> f64 {
        self.counts(profile, opcode).iter().sum()
    }

    fn accesses(&self, profile: &Profile, opcode: &str) -> Vec<Access> {
        self.lines(opcode).filter_map(|line| profile.accesses.get(&line).copied()).collect()
    }

    fn lines(&self, opcode: &str) -> impl Iterator<Item = u32> {
        let function = self.module.entry(&self.entry).expect("the entry");
        let body = function.body.as_ref().expect("a body");
        body.instructions().filter(move |i| i.opcode.text().starts_with(opcode)).map(|i| i.line)
    }

    fn input(&self, buffer: usize, index: u64) -> Vec<u8> {
        let buffer = &self.workload.buffers[buffer];
        let mut bytes = vec![0; buffer.element.size()];
        assert!(contents::fill_bytes(buffer, index..index + 1, &mut bytes));
        bytes
    }

    /// `count` values of `size` bytes that thread `thread` writes to `buffer` from element `first` on.
    fn output(&self, thread: u32, buffer: usize, first: u64, count: u64, size: u64) -> Vec<Vec<u8>> {
        let launch = Launch { grid: [1, 1, 1], block: [64, 1, 1], shared: 0, carveout: None, coarsening: None };
        let place = ([0; 3], [thread, 0, 0]);
        let bytes =
            written_by_thread(&self.module, &self.entry, &launch, &self.workload, place, &Limits::default()).unwrap();
        let value = |i: u64| (0..size).map(|byte| bytes[&(buffer, (first + i) * size + byte)]).collect();
        (0..count).map(value).collect()
    }
}

fn u32_of(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().unwrap())
}

fn f32_of(bytes: &[u8]) -> f32 {
    f32::from_bits(u32_of(bytes))
}

fn f64_of(bytes: &[u8]) -> f64 {
    f64::from_le_bytes(bytes.try_into().unwrap())
}

/// A kernel written by hand: `body` between declarations that fit anything.
fn by_hand(body: &str) -> Case {
    let text = format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.shared .align 4 .b8 s[1024];\n\
         .entry k(.param .u64 a, .param .u32 n) {{\n.reg .pred %p<9>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<9>;\n\
         ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [n];\n{body}\n}}\n"
    );
    let module = Module::parse(&text).unwrap();
    Case { text, module, entry: "k".into(), workload: Workload::default() }
}

fn with_n(body: &str, n: i32) -> Case {
    by_hand(body).buffer(Scalar::U32, 1, 1 << 16, Fill::Iota).int(n)
}
