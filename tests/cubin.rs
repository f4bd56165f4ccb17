//! cubins -> resources, instructions, lines and flow, against NVIDIA's own tools.

#[path = "cubin/toolkit.rs"]
mod toolkit;

use expect_test::{Expect, expect};
use nvtune::cubin::flow::Flow;
use nvtune::cubin::sass::{Class, Instruction, Kind, decode};
use nvtune::cubin::{Cubin, Error, Kernel};
use nvtune::model::Analysis;
use proptest::prelude::*;
use std::collections::HashMap;
use std::fmt::Write as _;

const CUDA12_SM70: &[u8] = include_bytes!("cubin/cuda12.sm_70.cubin");
const CUDA12_SM90: &[u8] = include_bytes!("cubin/cuda12.sm_90.cubin");

/// Registers, stack and shared memory, as `cuobjdump -res-usage` prints them.
#[test]
fn resources_are_those_of_cuobjdump() {
    for cubin in toolkit::compiled() {
        let text = toolkit::run("cuobjdump", &["-res-usage".as_ref(), cubin.path.as_os_str()]);
        let mut name = "";
        let mut seen = 0;
        let parsed = Cubin::parse(&cubin.bytes).unwrap();
        for line in text.lines() {
            if let Some(function) = line.trim().strip_prefix("Function ") {
                name = function.trim_end_matches(':');
            } else if line.trim_start().starts_with("REG:") {
                let field = |key: &str| -> u32 {
                    let value = line.split_whitespace().find_map(|word| word.strip_prefix(key)).expect(key);
                    value.parse().expect(value)
                };
                let resources = &parsed.kernel(name).expect(name).resources;
                // cuobjdump counts the driver's 1 KiB from sm_90 on, where the kernel has shared memory at all.
                let reserve = if cubin.architecture >= 90 { 1024 } else { 0 };
                let ours = (resources.registers, resources.stack_frame, resources.static_shared);
                let theirs = (field("REG:"), field("STACK:"), field("SHARED:").saturating_sub(reserve));
                assert_eq!(ours, theirs, "{} {} for sm_{}", cubin.source, name, cubin.architecture);
                seen += 1;
            }
        }
        assert_eq!(seen, parsed.kernels().len(), "{text}");
    }
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

/// Every instruction of every kernel: mnemonic, guard, branch target and access width as nvdisasm prints them, and its PTX line.
#[test]
fn instructions_are_those_of_nvdisasm() {
    let mut compared = 0;
    let mut wrong = Vec::new();
    for cubin in toolkit::compiled() {
        let parsed = Cubin::parse(&cubin.bytes).unwrap();
        let text = toolkit::run("nvdisasm", &["-c".as_ref(), "-gp".as_ref(), cubin.path.as_os_str()]);
        let listing = Listing::read(&text);
        for kernel in parsed.kernels() {
            let theirs = &listing.sections[&format!(".text.{}", kernel.name)];
            let ours = decode(kernel.code, kernel.architecture);
            assert_eq!(ours.len(), theirs.instructions.len(), "{}", kernel.name);
            for (instruction, printed) in ours.iter().zip(&theirs.instructions) {
                compared += 1;
                if let Err(reason) = compare(kernel, instruction, printed, &theirs.labels) {
                    let place = format!("sm_{} {} {:#x}", cubin.architecture, kernel.name, instruction.offset);
                    wrong.push(format!("{place}: {reason}: {}", printed.text));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 10_000 || toolkit::bin().is_none(), "only {compared} instructions were compared");
}

fn compare(kernel: &Kernel, ours: &Instruction, theirs: &Printed, labels: &HashMap<String, u32>) -> Result<(), String> {
    let check = |what: &str, ours: String, theirs: String| {
        if ours == theirs { Ok(()) } else { Err(format!("{what} is {ours}, not {theirs}")) }
    };
    check("offset", format!("{:#x}", ours.offset), format!("{:#x}", theirs.offset))?;
    let mut words = theirs.text.split_whitespace().peekable();
    let guard = words.next_if(|word| word.starts_with('@')).unwrap_or("");
    let expected = match (ours.guard.predicate, ours.guard.negated) {
        (7, false) => String::new(),
        (7, true) => "PT".to_owned(),
        (predicate, _) => format!("P{predicate}"),
    };
    let sign = if ours.guard.negated { "@!" } else { "@" };
    if guard.starts_with("@UP") || guard.starts_with("@!UP") {
        check("guard", expected.replace('P', "UP"), guard.trim_start_matches(['@', '!']).to_owned())?;
    } else if !expected.is_empty() || !guard.is_empty() {
        check("guard", format!("{sign}{expected}"), guard.to_owned())?;
    }
    let opcode = words.next().unwrap_or("").trim_end_matches(';');
    // Opcodes that nvdisasm gives another name on some architectures, or by their modifiers.
    let mnemonic = match opcode.split('.').next().unwrap_or("") {
        "REDG" if ours.opcode.mnemonic == "RED" => "RED",
        "CGAERRBAR" => "ERRBAR",
        "UCGABAR_ARV" | "UCGABAR_WAIT" => "UCGABAR",
        other => other,
    };
    check("mnemonic", ours.opcode.mnemonic.to_owned(), mnemonic.to_owned())?;
    if let Some(label) = theirs.text.split("`(").nth(1).and_then(|rest| rest.split(')').next())
        && matches!(ours.opcode.class, Class::Branch | Class::Call | Class::Converge)
    {
        let theirs = labels.get(label).copied();
        check("target", format!("{:x?}", ours.target), format!("{theirs:x?}"))?;
    }
    if let Some(memory) = ours.memory
        && matches!(memory.kind, Kind::Load | Kind::Store)
        && !matches!(mnemonic, "LDSM" | "LDC" | "LDCU" | "LDGSTS")
    {
        let width = match opcode {
            _ if opcode.contains(".U8") || opcode.contains(".S8") => 1,
            _ if opcode.contains(".U16") || opcode.contains(".S16") => 2,
            _ if opcode.contains(".256") => 32,
            _ if opcode.contains(".128") => 16,
            _ if opcode.contains(".64") => 8,
            _ => 4,
        };
        check("width", memory.width.to_string(), width.to_string())?;
    }
    check("PTX line", format!("{:?}", kernel.lines.get(ours.offset)), format!("{:?}", theirs.line))
}

/// nvdisasm's output by section.
#[derive(Default)]
struct Listing {
    sections: HashMap<String, Section>,
}

#[derive(Default)]
struct Section {
    instructions: Vec<Printed>,
    labels: HashMap<String, u32>,
}

struct Printed {
    offset: u32,
    text: String,
    line: Option<u32>,
}

impl Listing {
    fn read(text: &str) -> Self {
        let mut listing = Self::default();
        let mut name = String::new();
        let mut pending: Vec<String> = Vec::new();
        let mut line = None;
        for row in text.lines() {
            let row = row.trim();
            if let Some(rest) = row.strip_prefix(".section\t") {
                name = rest.trim().split(',').next().unwrap_or("").to_owned();
                line = None;
                continue;
            }
            let section = listing.sections.entry(name.clone()).or_default();
            if let Some(rest) = row.strip_prefix("//## File ") {
                line = rest.split("line ").nth(1).and_then(|n| n.split_whitespace().next()?.parse().ok());
            } else if let Some(rest) = row.strip_prefix("/*") {
                let Some((offset, text)) = rest.split_once("*/") else {
                    continue;
                };
                let Ok(offset) = u32::from_str_radix(offset, 16) else {
                    continue;
                };
                section.labels.extend(pending.drain(..).map(|label| (label, offset)));
                section.instructions.push(Printed { offset, text: text.trim().to_owned(), line });
            } else if let Some(label) = row.strip_suffix(':') {
                pending.push(label.to_owned());
            }
        }
        listing
    }
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
