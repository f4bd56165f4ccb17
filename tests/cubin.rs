//! Reading cubins: resources, instructions, lines and control flow, compared with NVIDIA's tools.

use super::support::full::{is_full, random_cases};
use super::support::{disassembly, fixtures, resource_usage, toolkit};

use disassembly::Compared;
use expect_test::expect;
use nvtune::model::Analysis;
use nvtune::sass::Class;
use nvtune::sass::control_flow::Flow;
use nvtune::sass::instruction::{Instruction, decode_section};
use nvtune::sass::{Cubin, CubinKernel, Resources, SassError};
use proptest::prelude::*;
use std::fmt::Write as _;
use std::path::PathBuf;

const CUDA12_SM70: &[u8] = include_bytes!("cubin/cuda12.sm_70.cubin");
const CUDA12_SM90: &[u8] = include_bytes!("cubin/cuda12.sm_90.cubin");

/// Compares registers, stack, shared memory and parameters with what cuobjdump printed when the fixtures were made.
#[test]
fn resources_equal_recorded_cuobjdump_for_every_architecture() {
    let mut kernels = 0;
    for cubin in fixtures::decoded().iter().chain(&fixtures::similar()) {
        let (seen, wrong) = resource_usage::compare(&cubin.name, &cubin.bytes, &fixtures::usage(&cubin.name));
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        kernels += seen;
    }
    assert!(kernels >= 100, "only {kernels} were compared");
}

/// Compares every instruction with what nvdisasm printed when the fixtures were made (see `support/disassembly.rs`).
#[test]
fn instructions_equal_recorded_nvdisasm_for_every_architecture() {
    let mut all = Compared::default();
    for cubin in fixtures::decoded() {
        all.add(disassembly::compare(&cubin.name, &cubin.bytes, &fixtures::listing(&cubin.name)));
    }
    all.assert_right();
    assert!(all.instructions > 10_000, "only {} were compared", all.instructions);
}

/// Writes a fixture's cubin where NVIDIA's tools can read it.
fn unpacked(name: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fixture.cubin");
    std::fs::write(&path, fixtures::cubin(name)).unwrap();
    (folder, path)
}

#[test]
fn resources_equal_cuobjdump_of_toolkit() {
    let (_folder, path) = unpacked("shared/sm_90");
    let printed = fixtures::resource_usage(&path);
    let (kernels, wrong) = resource_usage::compare("shared/sm_90", &fixtures::cubin("shared/sm_90"), &printed);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(kernels >= 4, "only {kernels} were compared");
}

#[test]
fn instructions_equal_nvdisasm_of_toolkit() {
    let (_folder, path) = unpacked("tensor/sm_90");
    let printed = fixtures::nvdisasm(&path);
    let compared = disassembly::compare("tensor/sm_90", &fixtures::cubin("tensor/sm_90"), &printed);
    compared.assert_right();
    assert!(compared.instructions > 100, "only {} were compared", compared.instructions);
}

/// Calls a check with the cubin of one source for each architecture.
fn for_each_architecture(source: &str, check: impl Fn(&Cubin)) {
    let cubins: Vec<_> = fixtures::decoded().into_iter().filter(|cubin| cubin.source == source).collect();
    assert_eq!(cubins.len(), fixtures::ARCHITECTURES.len());
    for cubin in cubins {
        let parsed = Cubin::parse(&cubin.bytes).unwrap();
        assert_eq!(parsed.architecture(), cubin.architecture);
        check(&parsed);
    }
}

fn resources<'a>(cubin: &'a Cubin, kernel: &str) -> &'a Resources {
    &cubin.kernel(kernel).expect(kernel).resources
}

#[test]
fn launch_bounds_give_thread_limit_and_register_cap() {
    for_each_architecture("shared", |cubin| {
        let gemm = resources(cubin, "gemm");
        assert_eq!((gemm.max_threads, gemm.register_cap), (Some([256, 1, 1]), Some(128)));
        assert_eq!(resources(cubin, "reduce").max_threads, None);
    });
}

#[test]
fn barriers_are_counted_to_highest_number() {
    for_each_architecture("shared", |cubin| {
        assert_eq!(resources(cubin, "gemm").barriers, 1);
        assert_eq!(resources(cubin, "barriers").barriers, 6, "bar.sync 5 is the highest");
    });
}

#[test]
fn static_shared_memory_is_that_of_declarations() {
    for_each_architecture("shared", |cubin| {
        assert_eq!(resources(cubin, "gemm").static_shared, 2 * 16 * 17 * 4);
        assert_eq!(resources(cubin, "barriers").static_shared, 256);
    });
}

#[test]
fn parameters_have_offsets_and_sizes_of_declarations() {
    for_each_architecture("shared", |cubin| {
        let found = resources(cubin, "parameters");
        let places: Vec<_> = found.parameters.iter().map(|p| (p.ordinal, p.offset, p.size)).collect();
        assert_eq!(places, [(0, 0, 404), (1, 404, 1), (2, 408, 8), (3, 416, 8)]);
        assert_eq!(found.parameter_bytes, 424);
    });
}

#[test]
fn cap_of_command_line_limits_registers() {
    for_each_architecture("local", |cubin| {
        assert_eq!(resources(cubin, "pressure").register_cap, Some(32));
        assert!(resources(cubin, "pressure").registers <= 32);
    });
}

#[test]
fn local_array_is_in_stack_frame() {
    for_each_architecture("local", |cubin| assert!(resources(cubin, "arrays").stack_frame >= 128, "32 floats"));
}

#[test]
fn kernel_without_bounds_has_no_cap() {
    for source in ["loops", "double", "tensor"] {
        for_each_architecture(source, |cubin| {
            assert!(cubin.kernels().iter().all(|kernel| kernel.resources.register_cap.is_none()));
        });
    }
}

/// Returns one line for each instruction: block, offset, PTX line, guard, mnemonic, stall, yield, scoreboards and waits.
fn listing(kernel: &CubinKernel) -> String {
    let instructions = decode_section(kernel.code, kernel.architecture);
    let flow = Flow::new(kernel, &instructions);
    let mut text = String::new();
    for (index, block) in flow.blocks.iter().enumerate() {
        let callee = block.callee.map_or(String::new(), |callee| format!(" calls {callee}"));
        writeln!(text, "block {index} depth {} -> {:?}{callee}", flow.loop_depth(index), block.successors).unwrap();
        for instruction in &instructions[block.instructions.clone()] {
            let control = &instruction.control;
            let board = |board: Option<u8>| board.map_or("-".to_owned(), |board| board.to_string());
            writeln!(
                text,
                "  {:04x} line {} {} stall {}{} w{} r{} wait {:06b}",
                instruction.offset,
                kernel.lines.line_at(instruction.offset).map_or("-".to_owned(), |line| line.to_string()),
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

/// Assembles each kernel of `calls.cu` alone and with the others: the code is equal but for the slots of addresses.
#[test]
fn entry_alone_has_code_of_entry_beside_others() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    for architecture in fixtures::ARCHITECTURES.iter().filter(|&&architecture| is_full() || architecture == 90) {
        let option = format!("-arch=sm_{architecture}");
        let ptx = fixtures::folder().join(format!("calls/sm_{architecture}.ptx")).to_string_lossy().into_owned();
        let (whole, alone) = (place("whole.cubin"), place("alone.cubin"));
        toolkit::run("ptxas", &[&option, &ptx, "-o", &whole]);
        let bytes = std::fs::read(&whole).unwrap();
        let whole = Cubin::parse(&bytes).unwrap();
        assert_eq!(whole.kernels().len(), 4);
        for kernel in whole.kernels() {
            toolkit::run("ptxas", &[&option, "--entry", kernel.name, &ptx, "-o", &alone]);
            let bytes = std::fs::read(&alone).unwrap();
            let alone = Cubin::parse(&bytes).unwrap();
            let alone = alone.kernel(kernel.name).unwrap();
            assert!(kernel.placeless_code() == alone.placeless_code(), "{} on sm_{architecture}", kernel.name);
        }
    }
}

/// CUDA 12 keeps resources elsewhere, and nvdisasm 13 no longer reads code for sm_70.
#[test]
fn cubin_of_cuda_12_has_resources_and_functions() {
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

/// Blocks, loop, call and control bits, checked by hand against the encodings that `nvdisasm -hex` prints.
#[test]
fn flow_and_control_bits_of_cuda_12_for_sm_90() {
    let cubin = Cubin::parse(CUDA12_SM90).unwrap();
    expect![[r#"
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
    "#]]
    .assert_eq(&listing(&cubin.kernels()[0]));
}

/// As above, for the architecture that nvdisasm 13 no longer reads.
#[test]
fn flow_and_control_bits_of_cuda_12_for_sm_70() {
    let cubin = Cubin::parse(CUDA12_SM70).unwrap();
    expect![[r#"
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
    "#]]
    .assert_eq(&listing(&cubin.kernels()[0]));
}

/// Calls a check with the flow of every kernel of every fixture, its instructions and its name for messages.
fn for_each_flow(check: impl Fn(&CubinKernel, &Flow, &[Instruction], &str)) {
    for cubin in fixtures::decoded() {
        let parsed = Cubin::parse(&cubin.bytes).unwrap();
        for kernel in parsed.kernels() {
            let instructions = decode_section(kernel.code, kernel.architecture);
            let flow = Flow::new(kernel, &instructions);
            check(kernel, &flow, &instructions, &format!("{} for sm_{}", kernel.name, cubin.architecture));
        }
    }
}

#[test]
fn loops_are_nested_as_in_source() {
    for_each_flow(|kernel, flow, _, place| {
        let deepest = (0..flow.blocks.len()).map(|block| flow.loop_depth(block)).max().unwrap_or(0);
        match kernel.name {
            "saxpy" | "halves" | "parameters" | "barriers" => assert_eq!(deepest, 0, "{place}"),
            "calls" | "collatz" | "gemm" | "reduce" | "pressure" => assert!(deepest >= 1, "{place}"),
            "nest" => assert_eq!(deepest, 2, "{place}"),
            _ => {}
        }
    });
}

#[test]
fn called_function_is_an_entry_of_flow() {
    for_each_flow(|kernel, flow, _, place| {
        if kernel.name == "calls" {
            assert_eq!(flow.entries.len(), 2, "{place}: the kernel and the function that it calls");
        }
    });
}

#[test]
fn indirect_branch_has_targets_of_switch() {
    for_each_flow(|kernel, _, _, place| {
        if kernel.name == "cases" && !kernel.indirect.is_empty() {
            let targets: usize = kernel.indirect.iter().map(|branch| branch.targets.len()).sum();
            assert!(targets >= 8, "{place}");
        }
    });
}

#[test]
fn blocks_hold_no_padding() {
    for_each_flow(|_, flow, instructions, place| {
        let is_padding = |i: &Instruction| i.opcode.class == Class::Branch && i.target == Some(i.offset);
        let mut executed = flow.blocks.iter().flat_map(|block| &instructions[block.instructions.clone()]);
        assert!(!executed.any(is_padding), "{place}");
    });
}

#[test]
fn every_block_is_reached() {
    for_each_flow(|_, flow, _, place| {
        for (index, block) in flow.blocks.iter().enumerate() {
            assert!(flow.entries.contains(&index) || !block.predecessors.is_empty(), "{place}: block {index}");
        }
    });
}

#[test]
fn cubin_of_architecture_with_other_encoding_is_refused() {
    let mut pascal = CUDA12_SM70.to_vec();
    pascal[0x30] = 61;
    assert_eq!(Cubin::parse(&pascal).unwrap_err(), SassError::Architecture(61));
}

#[test]
fn elf_file_of_host_is_refused() {
    let mut x86 = CUDA12_SM70.to_vec();
    x86[0x12] = 62;
    let reason = Cubin::parse(&x86).unwrap_err().to_string();
    assert_eq!(reason, "not a cubin: the ELF file is not for a CUDA device");
}

#[test]
fn text_is_refused_as_cubin() {
    assert_eq!(Cubin::parse(b"//").unwrap_err().to_string(), "not a cubin: no 64-bit ELF header");
}

/// Reads all that can be read of the bytes, up to the analysis.
fn read_all(bytes: &[u8]) {
    if let Ok(cubin) = Cubin::parse(bytes) {
        for kernel in cubin.kernels() {
            let analysis = Analysis::new(kernel, None);
            assert!(analysis.cycles >= 0.0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(random_cases(64, 512)) })]

    /// Any bytes, any truncation and any flipped bits give a value or an error.
    #[test]
    fn damaged_cubin_is_read_or_refused(
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

/// Flips one bit of every third byte of a cubin of CUDA 13; the quick run takes one of 16 of those bytes.
#[test]
fn cubin_with_single_flipped_bit_is_read_or_refused() {
    let mut damaged = fixtures::cubin("shared/sm_90");
    let step = if is_full() { 3 } else { 3 * 16 };
    for place in (0..damaged.len()).step_by(step) {
        // 48 is a multiple of 8: the bit must not depend on the place alone.
        let bit = 1 << ((place / step + place) % 8);
        damaged[place] ^= bit;
        read_all(&damaged);
        damaged[place] ^= bit;
    }
}
