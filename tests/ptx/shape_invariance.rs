//! Random kernels in several shapes of equally many threads: if the analysis allows every shape, each thread stores the same in all.

use crate::support::full::random_cases;
use nvtune::analysis::shape_invariance;
use nvtune::cuda::{Element, Scalar};
use nvtune::launch::Launch;
use nvtune::ptx::Module;
use nvtune::sim::{Limits, written_by_thread};
use nvtune::workload::random::Random;
use nvtune::workload::{Argument, Buffer, Fill, Workload};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Threads in x, and the extents of the blocks that they are in.
const THREADS: u32 = 48;
const BLOCKS: [u32; 5] = [48, 24, 16, 3, 1];

/// Elements of the buffer, a power of two.
const ELEMENTS: u32 = 1024;

/// What every kernel knows: numbers of the launch, a parameter, the position of its thread and the number of all.
const NUMBERS: &str = "mov.u32 %r0, %tid.x;
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %nctaid.x;
ld.param.u32 %r4, [n];
mul.lo.s32 %r5, %r1, %r2;
add.s32 %r6, %r5, %r0;
mul.lo.s32 %r7, %r2, %r3;
";

/// A kernel of random arithmetic, and of stores in a loop with a random stride.
struct Kernel {
    random: Random,
    body: String,
    /// Registers that have been written.
    registers: u64,
}

impl Kernel {
    fn new(seed: u64) -> Self {
        let mut kernel = Self { random: Random::new(seed), body: NUMBERS.to_owned(), registers: 8 };
        for _ in 0..2 + kernel.below(7) {
            kernel.add_step();
        }
        kernel.add_stores();
        kernel
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.next_u64() % limit
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// A number that may depend on the shape, mostly one that does not.
    fn source(&mut self) -> String {
        match self.below(10) {
            0..2 => self.one_of(&[1, 2, 3, 4, 7, 64, -1, -5]).to_string(),
            2..6 => format!("%r{}", self.one_of(&[4, 6, 6, 7])),
            6 => format!("%r{}", self.below(8)),
            _ => self.recent(),
        }
    }

    /// One of the last registers.
    fn recent(&mut self) -> String {
        let back = self.below(3.min(self.registers - 7));
        format!("%r{}", self.registers - 1 - back)
    }

    fn add_step(&mut self) {
        let (a, b, c) = (self.source(), self.source(), self.source());
        let register = format!("%r{}", self.registers);
        let bits = self.below(5);
        let [wide, sum, half] = ["wide", "sum", "half"].map(|name| format!("%{name}{}", self.registers));
        let line = match self.below(16) {
            0..3 => format!("add.s32 {register}, {a}, {b};"),
            3..5 => format!("sub.s32 {register}, {a}, {b};"),
            5 => format!("mul.lo.s32 {register}, {a}, {b};"),
            6..8 => format!("mad.lo.s32 {register}, {a}, {b}, {c};"),
            8 => format!("shl.b32 {register}, {a}, {bits};"),
            9 => format!("not.b32 {register}, {a};"),
            10 => format!("neg.s32 {register}, {a};"),
            // In a wider register, of which either half counts.
            11..13 => {
                let sign = self.one_of(&["u", "s"]);
                let shift = self.one_of(&[0, 32]);
                format!(
                    "mul.wide.{sign}32 {wide}, {a}, {b};\nmad.wide.{sign}32 {sum}, {c}, 1, {wide};\nshr.u64 {half}, {sum}, {shift};\n\
                     cvt.u32.u64 {register}, {half};"
                )
            }
            13 => {
                let word = self.one_of(&["and.b32", "xor.b32", "min.u32", "max.s32", "shr.u32"]);
                format!("{word} {register}, {a}, {b};")
            }
            14 => format!("setp.lt.s32 %p1, {a}, {b};\nmov.u32 {register}, {c};\n@%p1 mov.u32 {register}, {bits};"),
            _ => format!("setp.lt.s32 %p1, {a}, {b};\nselp.b32 {register}, {a}, {c}, %p1;"),
        };
        self.registers += 1;
        let _ = writeln!(self.body, "{line}");
    }

    fn add_stores(&mut self) {
        let (place, value, stride, guard) = (self.source(), self.recent(), self.source(), self.source());
        let mask = ELEMENTS - 1;
        let _ = writeln!(
            self.body,
            "mov.u32 %place, {place};\nmov.u32 %round, 0;\n$L:\nand.b32 %index, %place, {mask};\nmul.wide.u32 %offset, %index, 4;\n\
             add.s64 %address, %out, %offset;\nsetp.ge.u32 %p2, {guard}, 2;\n@%p2 st.global.u32 [%address], {value};\n\
             add.s32 %place, %place, {stride};\nadd.s32 %round, %round, 1;\nsetp.lt.u32 %p3, %round, 3;\n@%p3 bra $L;"
        );
    }

    fn text(&self) -> String {
        format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 data, .param .u32 n)\n{{\n.reg .pred %p<4>;\n\
             .reg .b32 %r<32>;\n.reg .b32 %place, %round, %index;\n.reg .b64 %wide<32>, %sum<32>, %half<32>;\n.reg .b64 %out, %offset, %address;\n\
             ld.param.u64 %out, [data];\n{}ret;\n}}\n",
            self.body
        )
    }
}

fn workload(n: u32) -> Workload {
    let element = Element { scalar: Scalar::U32, lanes: 1 };
    let buffer = Buffer { name: "data".into(), element, count: ELEMENTS.into(), fill: Fill::Poison, seed: 0 };
    let arguments = vec![Argument::Buffer(0), Argument::Scalar(n.to_le_bytes().to_vec())];
    Workload { arguments, buffers: vec![buffer], ..Workload::default() }
}

/// What each thread stores, in the order of their positions.
fn stored(module: &Module, workload: &Workload, block: u32) -> Vec<BTreeMap<(usize, u64), u8>> {
    let launch =
        Launch { grid: [THREADS / block, 1, 1], block: [block, 1, 1], shared: 0, carveout: None, coarsening: None };
    let run = |position: u32| {
        let place = ([position / block, 0, 0], [position % block, 0, 0]);
        written_by_thread(module, "k", &launch, workload, place, &Limits::default()).expect("it runs")
    };
    (0..THREADS).map(run).collect()
}

#[test]
fn kernel_that_takes_every_shape_stores_the_same_in_each() {
    let cases = random_cases(25, 20_000);
    let (mut allowed, mut differing) = (0, 0);
    for seed in 0..u64::from(cases) {
        let kernel = Kernel::new(seed);
        let text = kernel.text();
        let module = Module::parse(&text).expect("PTX");
        let is_allowed = shape_invariance::is_all(&module, "k", [None, Some(1), Some(1)]);
        let workload = workload((seed % 50) as u32);
        let mut shapes = BLOCKS.map(|block| stored(&module, &workload, block)).into_iter();
        let first = shapes.next();
        let is_same = shapes.all(|stores| Some(stores) == first);
        assert!(is_same || !is_allowed, "seed {seed}\n{text}");
        allowed += u32::from(is_allowed && first.is_some_and(|stores| stores.iter().any(|store| !store.is_empty())));
        differing += u32::from(!is_same);
    }
    // Neither answer is an exception.
    assert!(allowed > cases / 10 && differing > cases / 10, "{allowed} and {differing} of {cases}");
}
