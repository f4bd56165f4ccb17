//! cubins -> resources, instructions, lines and flow, against NVIDIA's own tools.

#[path = "cubin/toolkit.rs"]
mod toolkit;

use nvtune::cubin::sass::{Class, Instruction, Kind, decode};
use nvtune::cubin::{Cubin, Kernel};
use std::collections::HashMap;

const CUDA12_SM70: &[u8] = include_bytes!("cubin/cuda12.sm_70.cubin");
const CUDA12_SM90: &[u8] = include_bytes!("cubin/cuda12.sm_90.cubin");

/// Registers, stack and shared memory, as `cuobjdump -res-usage` prints them.
#[test]
fn resources_are_those_of_cuobjdump() {
    for cubin in toolkit::compiled() {
        let text = toolkit::run(
            "cuobjdump",
            &["-res-usage".as_ref(), cubin.path.as_os_str()],
        );
        let mut name = "";
        let mut seen = 0;
        let parsed = Cubin::parse(&cubin.bytes).unwrap();
        for line in text.lines() {
            if let Some(function) = line.trim().strip_prefix("Function ") {
                name = function.trim_end_matches(':');
            } else if line.trim_start().starts_with("REG:") {
                let field = |key: &str| -> u32 {
                    let value = line
                        .split_whitespace()
                        .find_map(|word| word.strip_prefix(key))
                        .expect(key);
                    value.parse().expect(value)
                };
                let resources = &parsed.kernel(name).expect(name).resources;
                // cuobjdump counts the driver's 1 KiB from sm_90 on, where the kernel has shared memory at all.
                let reserve = if cubin.architecture >= 90 { 1024 } else { 0 };
                let ours = (
                    resources.registers,
                    resources.stack_frame,
                    resources.static_shared,
                );
                let theirs = (
                    field("REG:"),
                    field("STACK:"),
                    field("SHARED:").saturating_sub(reserve),
                );
                assert_eq!(
                    ours, theirs,
                    "{} {} for sm_{}",
                    cubin.source, name, cubin.architecture
                );
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
                assert_eq!(
                    (gemm.max_threads, gemm.register_cap),
                    (Some([256, 1, 1]), Some(128))
                );
                assert_eq!((gemm.barriers, gemm.static_shared), (1, 2 * 16 * 17 * 4));
                assert_eq!(
                    resources("barriers").barriers,
                    6,
                    "bar.sync 5 is the highest"
                );
                assert_eq!(resources("barriers").static_shared, 256);
                assert_eq!(resources("reduce").max_threads, None);
                let parameters = resources("parameters");
                let places: Vec<_> = parameters
                    .parameters
                    .iter()
                    .map(|p| (p.ordinal, p.offset, p.size))
                    .collect();
                assert_eq!(places, [(0, 0, 404), (1, 404, 1), (2, 408, 8), (3, 416, 8)]);
                assert_eq!(parameters.parameter_bytes, 424);
            }
            "local" => {
                assert_eq!(resources("pressure").register_cap, Some(32));
                assert!(resources("pressure").registers <= 32);
                assert!(resources("arrays").stack_frame >= 128, "32 floats");
            }
            _ => assert!(
                parsed
                    .kernels()
                    .iter()
                    .all(|kernel| kernel.resources.register_cap.is_none())
            ),
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
        let text = toolkit::run(
            "nvdisasm",
            &["-c".as_ref(), "-gp".as_ref(), cubin.path.as_os_str()],
        );
        let listing = Listing::read(&text);
        for kernel in parsed.kernels() {
            let theirs = &listing.sections[&format!(".text.{}", kernel.name)];
            let ours = decode(kernel.code, kernel.architecture);
            assert_eq!(ours.len(), theirs.instructions.len(), "{}", kernel.name);
            for (instruction, printed) in ours.iter().zip(&theirs.instructions) {
                compared += 1;
                if let Err(reason) = compare(kernel, instruction, printed, &theirs.labels) {
                    let place = format!(
                        "sm_{} {} {:#x}",
                        cubin.architecture, kernel.name, instruction.offset
                    );
                    wrong.push(format!("{place}: {reason}: {}", printed.text));
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {compared} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(
        compared > 10_000 || toolkit::bin().is_none(),
        "only {compared} instructions were compared"
    );
}

fn compare(
    kernel: &Kernel,
    ours: &Instruction,
    theirs: &Printed,
    labels: &HashMap<String, u32>,
) -> Result<(), String> {
    let check = |what: &str, ours: String, theirs: String| {
        if ours == theirs {
            Ok(())
        } else {
            Err(format!("{what} is {ours}, not {theirs}"))
        }
    };
    check(
        "offset",
        format!("{:#x}", ours.offset),
        format!("{:#x}", theirs.offset),
    )?;
    let mut words = theirs.text.split_whitespace().peekable();
    let guard = words.next_if(|word| word.starts_with('@')).unwrap_or("");
    let expected = match (ours.guard.predicate, ours.guard.negated) {
        (7, false) => String::new(),
        (7, true) => "PT".to_owned(),
        (predicate, _) => format!("P{predicate}"),
    };
    let sign = if ours.guard.negated { "@!" } else { "@" };
    if guard.starts_with("@UP") || guard.starts_with("@!UP") {
        check(
            "guard",
            expected.replace('P', "UP"),
            guard.trim_start_matches(['@', '!']).to_owned(),
        )?;
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
    check(
        "mnemonic",
        ours.opcode.mnemonic.to_owned(),
        mnemonic.to_owned(),
    )?;
    if let Some(label) = theirs
        .text
        .split("`(")
        .nth(1)
        .and_then(|rest| rest.split(')').next())
        && matches!(
            ours.opcode.class,
            Class::Branch | Class::Call | Class::Converge
        )
    {
        let theirs = labels.get(label).copied();
        check(
            "target",
            format!("{:x?}", ours.target),
            format!("{theirs:x?}"),
        )?;
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
    check(
        "PTX line",
        format!("{:?}", kernel.lines.get(ours.offset)),
        format!("{:?}", theirs.line),
    )
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
                line = rest
                    .split("line ")
                    .nth(1)
                    .and_then(|n| n.split_whitespace().next()?.parse().ok());
            } else if let Some(rest) = row.strip_prefix("/*") {
                let Some((offset, text)) = rest.split_once("*/") else {
                    continue;
                };
                let Ok(offset) = u32::from_str_radix(offset, 16) else {
                    continue;
                };
                section
                    .labels
                    .extend(pending.drain(..).map(|label| (label, offset)));
                section.instructions.push(Printed {
                    offset,
                    text: text.trim().to_owned(),
                    line,
                });
            } else if let Some(label) = row.strip_suffix(':') {
                pending.push(label.to_owned());
            }
        }
        listing
    }
}
