//! cubins -> resources, instructions, lines and flow, against NVIDIA's own tools.

use super::support;
use super::support::{cubins as toolkit, disassembly, resource_usage as usage};

use disassembly::Compared;
use expect_test::{Expect, expect};
use nvtune::model::Analysis;
use nvtune::sass::Class;
use nvtune::sass::control_flow::Flow;
use nvtune::sass::instruction::{Instruction, decode};
use nvtune::sass::{Cubin, Error, Kernel};
use proptest::prelude::*;
use std::fmt::Write as _;

const CUDA12_SM70: &[u8] = include_bytes!("cubin/cuda12.sm_70.cubin");
const CUDA12_SM90: &[u8] = include_bytes!("cubin/cuda12.sm_90.cubin");

/// Registers, stack, shared memory and parameters as cuobjdump prints them, for every architecture that the toolkit compiles for.
#[test]
fn resources_are_those_of_cuobjdump() {
    let mut kernels = 0;
    for cubin in toolkit::compiled().iter().chain(toolkit::compiled_for_the_others()) {
        let (seen, wrong) = usage::compare(&cubin.path, &cubin.bytes);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        kernels += seen;
    }
    assert!(kernels >= 100, "only {kernels} were compared");
}

/// What the sources declare: launch bounds, caps, barriers and parameters.
#[test]
fn declared_limits_and_parameters() {
    for cubin in toolkit::compiled() {
        let parsed = Cubin::parse(&cubin.bytes).unwrap();
        assert_eq!(parsed.architecture(), cubin.architecture);
        let resources = |name: &str| &parsed.kernel(name).expect(name).resources;
        match cubin.source {
            "shared" => {
                let gemm = resources("gemm");
                assert_eq!((gemm.max_threads, gemm.register_cap), (Some([256, 1, 1]), Some(128)));
                assert_eq!((gemm.barriers, gemm.static_shared), (1, 2 * 16 * 17 * 4));
                assert_eq!(resources("barriers").barriers, 6, "bar.sync 5 is the highest");
                assert_eq!(resources("barriers").static_shared, 256);
                assert_eq!(resources("reduce").max_threads, None);
                let parameters = resources("parameters");
                let places: Vec<_> = parameters.parameters.iter().map(|p| (p.ordinal, p.offset, p.size)).collect();
                assert_eq!(places, [(0, 0, 404), (1, 404, 1), (2, 408, 8), (3, 416, 8)]);
                assert_eq!(parameters.parameter_bytes, 424);
            }
            "local" => {
                assert_eq!(resources("pressure").register_cap, Some(32));
                assert!(resources("pressure").registers <= 32);
                assert!(resources("arrays").stack_frame >= 128, "32 floats");
            }
            _ => assert!(parsed.kernels().iter().all(|kernel| kernel.resources.register_cap.is_none())),
        }
    }
}

/// Every instruction of every kernel as nvdisasm prints it (see `cubin/disassembly.rs`).
#[test]
fn instructions_are_those_of_nvdisasm() {
    let mut all = Compared::default();
    for cubin in toolkit::compiled() {
        all.add(disassembly::compare(&cubin.path, &cubin.bytes));
    }
    all.assert_right();
    assert!(all.instructions > 10_000, "only {} were compared", all.instructions);
}

/// One line for each instruction: block, offset, PTX line, guard, mnemonic, stall, yield, scoreboards and waits.
fn listing(kernel: &Kernel) -> String {
    let instructions = decode(kernel.code, kernel.architecture);
    let flow = Flow::new(kernel, &instructions);
    let mut text = String::new();
    for (index, block) in flow.blocks.iter().enumerate() {
        let callee = block.callee.map_or(String::new(), |callee| format!(" calls {callee}"));
        writeln!(text, "block {index} depth {} -> {:?}{callee}", flow.depth(index), block.successors).unwrap();
        for instruction in &instructions[block.instructions.clone()] {
            let control = &instruction.control;
            let board = |board: Option<u8>| board.map_or("-".to_owned(), |board| board.to_string());
            writeln!(
                text,
                "  {:04x} line {} {} stall {}{} w{} r{} wait {:06b}",
                instruction.offset,
                kernel.lines.get(instruction.offset).map_or("-".to_owned(), |line| line.to_string()),
                instruction.opcode.mnemonic,
                control.stall,
                if control.yields { "y" } else { "" },
                board(control.write),
                board(control.read),
                control.wait
            )
            .unwrap();
        }
    }
    text
}

fn check(actual: &str, expected: &Expect) {
    expected.assert_eq(actual);
}

/// A kernel is the same code whether or not others are assembled with it, though the slots of the addresses that it uses differ.
#[test]
fn code_is_the_same_beside_other_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cubin/calls.cu");
    for architecture in toolkit::ARCHITECTURES.iter() {
        let option = format!("-arch=sm_{architecture}");
        let (ptx, whole, alone) = (place("calls.ptx"), place("whole.cubin"), place("alone.cubin"));
        support::toolkit::run("nvcc", &[&option, "-ptx", source, "-o", &ptx]);
        support::toolkit::run("ptxas", &[&option, &ptx, "-o", &whole]);
        let bytes = std::fs::read(&whole).unwrap();
        let whole = Cubin::parse(&bytes).unwrap();
        assert_eq!(whole.kernels().len(), 4);
        for kernel in whole.kernels() {
            support::toolkit::run("ptxas", &[&option, "--entry", kernel.name, &ptx, "-o", &alone]);
            let bytes = std::fs::read(&alone).unwrap();
            let alone = Cubin::parse(&bytes).unwrap();
            let alone = alone.kernel(kernel.name).unwrap();
            assert!(kernel.placeless_code() == alone.placeless_code(), "{} on sm_{architecture}", kernel.name);
        }
    }
}

/// CUDA 12's layout: resources from where it keeps them, and the code that nvdisasm 13 no longer reads.
#[test]
fn cuda_12_layout() {
    for (bytes, architecture, registers) in [(CUDA12_SM70, 70, 10), (CUDA12_SM90, 90, 12)] {
        let cubin = Cubin::parse(bytes).unwrap();
        assert_eq!(cubin.architecture(), architecture);
        let [kernel] = cubin.kernels() else { panic!("one kernel") };
        let resources = &kernel.resources;
        // As `ptxas -v` printed when it made them.
        let of_block = (resources.static_shared, resources.barriers, resources.stack_frame);
        assert_eq!((kernel.name, resources.registers, of_block), ("total", registers, (512, 1, 0)));
        assert_eq!(resources.max_threads, Some([128, 1, 1]));
        let places: Vec<_> = resources.parameters.iter().map(|p| (p.offset, p.size)).collect();
        assert_eq!(places, [(0, 4), (8, 8), (16, 8)]);
        assert_eq!(kernel.functions.iter().map(|f| f.name).collect::<Vec<_>>(), ["$total$twice"]);
    }
}

/// Blocks, the loop, the call and the control bits, checked by hand against the encodings that nvdisasm -hex prints.
#[test]
fn flow_and_control_bits() {
    let cubin = Cubin::parse(CUDA12_SM90).unwrap();
    check(
        &listing(&cubin.kernels()[0]),
        &expect![[r#"
        block 0 depth 0 -> [1, 3]
          0000 line 18 LDC stall 1 w0 r- wait 000000
          0010 line 29 S2R stall 1 w1 r- wait 000000
          0020 line 34 ULDC stall 1 w- r- wait 000000
          0030 line 18 ULDC stall 1 w- r- wait 000000
          0040 line 30 ULDC stall 1 w- r- wait 000000
          0050 line 30 BSSY stall 1 w- r- wait 000000
          0060 line 32 IMAD stall 1 w- r- wait 000000
          0070 line 34 ISETP stall 13y w- r- wait 000010
          0080 line 35 BRA stall 5 w- r- wait 000000
        block 1 depth 0 -> [2]
          0090 line 37 LDC stall 1 w1 r- wait 000000
          00a0 line 32 IMAD stall 7y w- r- wait 000000
        block 2 depth 1 -> [2, 3]
          00b0 line 37 IMAD stall 6y w- r- wait 000010
          00c0 line 38 LDG stall 1 w2 r- wait 000000
          00d0 line 40 IADD3 stall 4y w- r- wait 000000
          00e0 line 34 ISETP stall 1 w- r- wait 000000
          00f0 line 39 FADD stall 12y w- r- wait 000100
          0100 line 35 BRA stall 5 w- r- wait 000000
        block 3 depth 0 -> [4] calls 5
          0110 line 46 BSYNC stall 5 w- r- wait 000000
          0120 line 47 MOV stall 7y w- r- wait 000000
          0130 line 47 CALL stall 5 w- r- wait 000001
        block 4 depth 0 -> []
          0140 line 50 S2UR stall 1 w0 r- wait 000000
          0150 line 50 UMOV stall 1 w- r- wait 000000
          0160 line 55 IADD3 stall 1 w- r- wait 000000
          0170 line 50 ULEA stall 6y w- r- wait 000001
          0180 line 52 LEA stall 2 w- r- wait 000000
          0190 line 57 LEA stall 2 w- r- wait 000000
          01a0 line 60 LDC stall 1 w0 r- wait 000000
          01b0 line 53 STS stall 7 w- r- wait 000000
          01c0 line 54 BAR stall 1 w- r- wait 000000
          01d0 line 60 IMAD stall 5y w- r- wait 000001
          01e0 line 58 LDS stall 4 w0 r- wait 000000
          01f0 line 61 STG stall 1 w- r- wait 000001
          0200 line 62 EXIT stall 5 w- r- wait 000000
        block 5 depth 0 -> []
          0210 line 11 IMAD stall 2 w- r- wait 000000
          0220 line 11 FADD stall 2 w- r- wait 000000
          0230 line 13 RET stall 5 w- r- wait 000000
    "#]],
    );
    let cubin = Cubin::parse(CUDA12_SM70).unwrap();
    check(
        &listing(&cubin.kernels()[0]),
        &expect![[r#"
        block 0 depth 0 -> [1, 3]
          0000 line 18 IMAD stall 2 w- r- wait 000000
          0010 line 18 SHFL stall 1 w- r- wait 000000
          0020 line 29 S2R stall 1 w0 r- wait 000000
          0030 line 32 BMOV stall 1 w- r- wait 000000
          0040 line 32 BSSY stall 1 w- r- wait 000000
          0050 line 32 IMAD stall 1 w- r- wait 000000
          0060 line 34 ISETP stall 12y w- r- wait 000001
          0070 line 35 BRA stall 5 w- r- wait 000000
        block 1 depth 0 -> [2]
          0080 line 32 MOV stall 2 w- r- wait 000000
        block 2 depth 1 -> [2, 3]
          0090 line 37 IMAD stall 4y w- r- wait 000000
          00a0 line 37 IMAD stall 8y w- r- wait 000000
          00b0 line 38 LDG stall 1 w2 r- wait 000000
          00c0 line 40 IADD3 stall 4y w- r- wait 000000
          00d0 line 34 ISETP stall 1 w- r- wait 000000
          00e0 line 39 FADD stall 11y w- r- wait 000100
          00f0 line 35 BRA stall 5 w- r- wait 000000
        block 3 depth 0 -> [4] calls 5
          0100 line 46 BSYNC stall 5 w- r- wait 000000
          0110 line 47 MOV stall 4y w- r- wait 000000
          0120 line 47 CALL stall 5 w- r- wait 000000
        block 4 depth 0 -> []
          0130 line 55 IADD3 stall 2 w- r- wait 000000
          0140 line 51 SHF stall 2 w- r- wait 000000
          0150 line 60 MOV stall 1 w- r- wait 000000
          0160 line 58 IMAD stall 4y w- r- wait 000000
          0170 line 60 IMAD stall 1 w- r- wait 000000
          0180 line 53 STS stall 4 w- r- wait 000000
          0190 line 54 NOP stall 1 w- r- wait 000000
          01a0 line 54 BAR stall 5 w- r- wait 000000
          01b0 line 58 LDS stall 4 w0 r- wait 000000
          01c0 line 61 STG stall 1 w- r- wait 000001
          01d0 line 62 EXIT stall 5 w- r- wait 000000
        block 5 depth 0 -> []
          01e0 line 8 SHFL stall 1 w- r- wait 000000
          01f0 line 11 MOV stall 1 w- r- wait 000000
          0200 line 11 FADD stall 5y w- r- wait 000000
          0210 line 13 RET stall 5 w- r- wait 000000
    "#]],
    );
}

/// The loops of the sources are found, and nested as they are.
#[test]
fn loops_of_the_sources() {
    for cubin in toolkit::compiled() {
        let parsed = Cubin::parse(&cubin.bytes).unwrap();
        for kernel in parsed.kernels() {
            let instructions = decode(kernel.code, kernel.architecture);
            let flow = Flow::new(kernel, &instructions);
            let deepest = (0..flow.blocks.len()).map(|block| flow.depth(block)).max().unwrap_or(0);
            let place = format!("{} for sm_{}", kernel.name, cubin.architecture);
            match kernel.name {
                "saxpy" | "halves" | "parameters" | "barriers" => assert_eq!(deepest, 0, "{place}"),
                "nest" | "calls" => assert!(deepest >= 1, "{place}"),
                "collatz" | "gemm" | "reduce" | "pressure" => assert!(deepest >= 1, "{place}"),
                _ => {}
            }
            if kernel.name == "nest" {
                assert_eq!(deepest, 2, "{place}");
            }
            if kernel.name == "calls" {
                assert_eq!(flow.entries.len(), 2, "{place}: the kernel and the function that it calls");
            }
            if kernel.name == "cases" && !kernel.indirect.is_empty() {
                let targets: usize = kernel.indirect.iter().map(|branch| branch.targets.len()).sum();
                assert!(targets >= 8, "{place}");
            }
            // Nothing that is executed is padding, and every block is reached.
            let padding = |i: &Instruction| i.opcode.class == Class::Branch && i.target == Some(i.offset);
            let mut executed = flow.blocks.iter().flat_map(|block| &instructions[block.instructions.clone()]);
            assert!(!executed.any(padding), "{place}");
            for (index, block) in flow.blocks.iter().enumerate() {
                assert!(flow.entries.contains(&index) || !block.predecessors.is_empty(), "{place}: block {index}");
            }
        }
    }
}

/// What is not a cubin, or one for an architecture with another encoding, is refused with the reason.
#[test]
fn refusals() {
    let mut pascal = CUDA12_SM70.to_vec();
    pascal[0x30] = 61;
    assert_eq!(Cubin::parse(&pascal).unwrap_err(), Error::Architecture(61));
    let mut x86 = CUDA12_SM70.to_vec();
    x86[0x12] = 62;
    let reason = Cubin::parse(&x86).unwrap_err().to_string();
    assert_eq!(reason, "not a cubin: the ELF file is not for a CUDA device");
    assert_eq!(Cubin::parse(b"//").unwrap_err().to_string(), "not a cubin: no 64-bit ELF header");
}

/// Reads whatever can be read of the bytes, to its score.
fn read_all(bytes: &[u8]) {
    if let Ok(cubin) = Cubin::parse(bytes) {
        for kernel in cubin.kernels() {
            let analysis = Analysis::new(kernel, None);
            assert!(analysis.cycles >= 0.0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    /// Any bytes, any truncation and any flipped bits give a value or an error.
    #[test]
    fn damaged_cubins_do_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..512),
        length in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8u32), 1..12),
    ) {
        read_all(&bytes);
        for cubin in [CUDA12_SM70, CUDA12_SM90] {
            read_all(&cubin[..length.index(cubin.len())]);
            let mut damaged = cubin.to_vec();
            for (place, bit) in &flips {
                let place = place.index(damaged.len());
                damaged[place] ^= 1 << bit;
            }
            read_all(&damaged);
        }
    }
}

/// Every single bit of the headers and tables of a cubin of CUDA 13, flipped.
#[test]
fn single_flipped_bits_do_no_harm() {
    let Some(cubin) = toolkit::compiled().iter().find(|c| c.source == "shared" && c.architecture == 90) else {
        return;
    };
    let mut damaged = cubin.bytes.clone();
    for place in (0..damaged.len()).step_by(3) {
        let bit = 1 << (place % 8);
        damaged[place] ^= bit;
        read_all(&damaged);
        damaged[place] ^= bit;
    }
}
