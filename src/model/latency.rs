//! Compute capability -> [`Latencies`] (cycles until a result can be read) and [`Throughput`]
//! (results of an SM in a cycle).
//!
//! Only operations of variable latency have a latency here: ptxas has encoded the fixed ones in
//! the instructions as stall counts. Cells that were not measured repeat the nearest
//! architecture's; expect 30 % of error there.
//!
//! Sources of latencies. 7.0: Jokeren/GPA's `GPUArchitecture.cpp`. 7.5, atomics: lanl/PPT's ISA
//! files. 8.0: Abdelkhalik et al. 2022 (as in PPT-GPU). 8.6: Huerta et al., MICRO 2025, table
//! 2. 8.9, 9.0, 10.0, 12.0: Luo et al. 2025 (arXiv 2501.12084), Jarmusch et al. 2025, and
//! markdewing/AI_kernels `latency/README.md` (GH200 40/281/690, 4090 40/296/636, B200
//! 40/295/860, 5090 44/360/936 for L1/L2/DRAM); device memory of 9.0, and how waits grow with
//! what is waited for, on an H200: `kernels/results/h200/latency.txt`. Throughputs: "Arithmetic
//! Instructions" of NVIDIA's CUDA C++ programming and best-practices guides.

use super::calibration::Calibration;
use crate::sass::Pipe;

/// Cycles until the result of an uncontended operation can be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latencies {
    /// Reciprocal, root, exponential, logarithm, sine.
    pub special: f64,
    pub bit_count: f64,
    pub convert: f64,
    pub double: f64,
    pub tensor: f64,
    pub shuffle: f64,
    pub reduce: f64,
    pub shared: f64,
    pub l1: f64,
    pub l2: f64,
    pub dram: f64,
    pub constant: f64,
    pub shared_atomic: f64,
    pub global_atomic: f64,
    pub texture: f64,
    pub system_register: f64,
    pub fence: f64,
}

/// One row of [`LATENCIES`], where the columns have their names.
const fn latencies(
    [
        special,
        bit_count,
        convert,
        double,
        tensor,
        shuffle,
        reduce,
        shared,
        l1,
        l2,
        dram,
        constant,
        shared_atomic,
        global_atomic,
        texture,
        system_register,
        fence,
    ]: [f64; 17],
) -> Latencies {
    Latencies {
        special,
        bit_count,
        convert,
        double,
        tensor,
        shuffle,
        reduce,
        shared,
        l1,
        l2,
        dram,
        constant,
        shared_atomic,
        global_atomic,
        texture,
        system_register,
        fence,
    }
}

/// By ascending compute capability; [`latencies`] names the columns.
#[rustfmt::skip]
const LATENCIES: &[(u32, Latencies)] = &[
    ( 70, latencies([14., 10., 14.,  8., 33.,  22., 60., 19., 33., 207., 430., 27.,  60., 245.,  90., 25., 205.])),
    ( 75, latencies([15., 15., 15., 50., 33.,  23., 60., 19., 32., 210., 340., 26.,  60., 245.,  90., 25., 205.])),
    ( 80, latencies([20., 12., 14.,  8., 33.,  23., 60., 23., 33., 230., 420., 26.,  60., 245.,  90., 25., 205.])),
    ( 86, latencies([18., 12., 12., 54., 33.,  24., 60., 24., 32., 220., 470., 26.,  60., 260.,  90., 25., 205.])),
    ( 89, latencies([18., 15., 12., 54., 33.,  25., 60., 28., 36., 280., 600., 28.,  60., 300., 100., 25., 205.])),
    ( 90, latencies([18., 14., 12.,  8., 33.,  24., 44., 29., 40., 281., 745., 26.,  50., 300., 110., 25., 240.])),
    (100, latencies([18., 18., 14.,  8., 33.,  24., 44., 29., 40., 298., 830., 26.,  40., 320., 120., 25., 267.])),
    (103, latencies([18., 18., 14., 64., 33.,  24., 44., 29., 40., 298., 830., 26.,  40., 320., 120., 25., 267.])),
    (110, latencies([18., 18., 14., 64., 33.,  26., 44., 28., 41., 267., 912., 26.,  34., 268., 120., 25., 267.])),
    (120, latencies([18., 15., 14., 64., 33.,  24., 44., 30., 44., 359., 900., 26.,  40., 360., 130., 25., 260.])),
];

/// Sectors of a line: the table's latency of device memory is that of one line.
const LINE_SECTORS: f64 = 4.0;

impl Latencies {
    /// Returns the cycles until device memory has delivered this many sectors, and the extra
    /// cycles for twice as many.
    pub(super) fn dram_cycles(&self, sectors: f64, calibration: &Calibration) -> (f64, f64) {
        let doubling = self.dram * calibration.dram_doubling;
        (self.dram + doubling * (sectors / LINE_SECTORS).log2(), doubling)
    }

    /// Returns the cycles until the level-2 cache has delivered the sectors of `lines`,
    /// and the extra cycles for twice as many.
    pub(super) fn l2_cycles(&self, lines: f64, calibration: &Calibration) -> (f64, f64) {
        let doubling = self.l2 * calibration.l2_doubling;
        (self.l2 + doubling * lines.log2(), doubling)
    }

    /// Those of an architecture; an unknown one has those of the nearest lower one, or of the
    /// oldest.
    pub fn for_capability(capability: u32) -> Self {
        LATENCIES.iter().rev().find(|(known, _)| *known <= capability).unwrap_or(&LATENCIES[0]).1
    }
}

/// Multiply-adds of one warp-wide tensor instruction (16 x 8 x 16).
const TENSOR_STEP_MULTIPLY_ADDS: f64 = 2048.0;
/// A warp's share of an asynchronous tensor instruction (64 x 128 x 16 for four warps), in
/// multiples of that.
pub const ASYNC_TENSOR_STEPS: f64 = 16.0;

/// Results (of a thread) that an SM's pipes give in a cycle; for the tensor pipe, multiply-adds
/// of 16-bit floats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    by_pipe: [f64; Pipe::COUNT],
}

/// One row of [`THROUGHPUTS`], where the columns have their names.
const fn throughput(
    [alu, fma, integer_multiply, half, double, tensor, special, memory, texture, uniform, control]: [f64; Pipe::COUNT],
) -> Throughput {
    let mut by_pipe = [0.0; Pipe::COUNT];
    by_pipe[Pipe::Alu as usize] = alu;
    by_pipe[Pipe::Fma as usize] = fma;
    by_pipe[Pipe::IntegerMultiply as usize] = integer_multiply;
    by_pipe[Pipe::Half as usize] = half;
    by_pipe[Pipe::Double as usize] = double;
    by_pipe[Pipe::Tensor as usize] = tensor;
    by_pipe[Pipe::Special as usize] = special;
    by_pipe[Pipe::Memory as usize] = memory;
    by_pipe[Pipe::Texture as usize] = texture;
    by_pipe[Pipe::Uniform as usize] = uniform;
    by_pipe[Pipe::Control as usize] = control;
    Throughput { by_pipe }
}

/// By ascending compute capability; [`throughput`] names the columns.
///
/// Double precision at 2 a cycle is the consumer chips' rate. Compute capability 12 adds integers
/// at 128 and does logic at 64 a cycle; 96 stands for their mix. Memory instructions: 1 every 2
/// cycles on 8.6 (Huerta et al.) and its like, 1 a cycle elsewhere. A uniform or control
/// instruction counts as half an ALU's rate or better: 64.
#[rustfmt::skip]
const THROUGHPUTS: &[(u32, Throughput)] = &[
    ( 70, throughput([64.,  64., 64., 64., 32.,  512., 16., 32., 16., 64., 64.])),
    ( 75, throughput([64.,  64., 64., 64.,  2.,  512., 16., 32., 16., 64., 64.])),
    ( 80, throughput([64.,  64., 64., 128., 32., 1024., 16., 32., 16., 64., 64.])),
    ( 86, throughput([64., 128., 64., 128.,  2.,  512., 16., 16., 16., 64., 64.])),
    ( 89, throughput([64., 128., 64., 64.,  2.,  512., 16., 16., 16., 64., 64.])),
    ( 90, throughput([64., 128., 64., 128., 64., 2048., 16., 32., 16., 64., 64.])),
    (100, throughput([64., 128., 64., 128., 64., 4096., 16., 32., 16., 64., 64.])),
    (103, throughput([64., 128., 64., 128.,  2., 4096., 16., 32., 16., 64., 64.])),
    (110, throughput([64., 128., 64., 128.,  2., 2048., 16., 32., 16., 64., 64.])),
    (120, throughput([96., 128., 64., 64.,  2.,  512., 16., 16., 16., 64., 64.])),
];

impl Throughput {
    /// That of an architecture; an unknown one has that of the nearest lower one, or of the
    /// oldest.
    pub fn for_capability(capability: u32) -> Self {
        THROUGHPUTS.iter().rev().find(|(known, _)| *known <= capability).unwrap_or(&THROUGHPUTS[0]).1
    }

    /// Returns for how many cycles a warp's instruction keeps its pipe busy, averaged
    /// over an SM's four sub-cores. An instruction of the tensor pipe counts as a 16 x 8
    /// x 16 multiply.
    pub fn pipe_interval(&self, pipe: Pipe) -> f64 {
        let of_warp = if pipe == Pipe::Tensor { TENSOR_STEP_MULTIPLY_ADDS } else { 32.0 };
        of_warp / self.by_pipe[pipe as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::calibration::CALIBRATION;
    use super::*;

    #[test]
    fn waits_for_several_lines_are_as_long_as_on_an_h200() {
        let known = Latencies::for_capability(90);
        // Lines that a warp waits for at once, from device memory, and cycles (`latency.txt`, one
        // warp of each SM).
        for (lines, cycles) in [(1.0, 765.5), (4.0, 986.1), (8.0, 1136.6), (16.0, 1346.2)] {
            let (wait, _) = known.dram_cycles(lines * LINE_SECTORS, &CALIBRATION);
            assert!((wait / cycles - 1.0).abs() < 0.1, "{lines}: {wait:.0} for {cycles}");
        }
        // Lone lanes, from either; some 40 cycles of a step are none of the load's.
        for (lanes, near, far) in [(1.0, 320.3, 531.1), (4.0, 341.9, 618.7), (32.0, 406.2, 1207.6)] {
            let ((l2, _), (dram, _)) = (known.l2_cycles(lanes, &CALIBRATION), known.dram_cycles(lanes, &CALIBRATION));
            assert!((l2 / (near - 40.0) - 1.0).abs() < 0.1, "{lanes}: {l2:.0} for {near}");
            assert!((dram / (far - 40.0) - 1.0).abs() < 0.3, "{lanes}: {dram:.0} for {far}");
        }
    }
}
