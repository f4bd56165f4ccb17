//! What nvdisasm prints of a cubin, against what `nvtune::sass` reads: every instruction's place, bits, guard, mnemonic, class,
//! registers, memory operand, branch target, reuse flags and PTX line.
//!
//! What is expected comes from the printed text alone. Classes are those of the mnemonics' groups in "Instruction Set Reference" of
//! NVIDIA's "CUDA Binary Utilities", and memory spaces and widths those that the suffixes name.

use nvtune::ptx::{AccessKind, MemorySpace};
use nvtune::sass::Class;
use nvtune::sass::instruction::{Instruction, decode_section};
use nvtune::sass::{Cubin, CubinKernel};
use std::collections::{BTreeMap, HashMap};

/// What came of comparing.
#[derive(Default)]
pub struct Compared {
    pub instructions: usize,
    pub targets: usize,
    pub wrong: Vec<Wrong>,
    /// Instructions by mnemonic.
    pub mnemonics: BTreeMap<String, usize>,
}

/// Something that differs.
pub struct Wrong {
    /// Mnemonic, and what of it.
    kind: String,
    /// Where, and how.
    line: String,
}

impl Compared {
    pub fn add(&mut self, other: Self) {
        self.instructions += other.instructions;
        self.targets += other.targets;
        self.wrong.extend(other.wrong);
        for (mnemonic, count) in other.mnemonics {
            *self.mnemonics.entry(mnemonic).or_default() += count;
        }
    }

    /// Fails with a few of each kind that differ.
    pub fn assert_right(&self) {
        let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for Wrong { kind, line } in &self.wrong {
            kinds.entry(kind).or_default().push(line);
        }
        let shown = kinds.iter().map(|(kind, lines)| {
            let few = lines.iter().take(3).map(|line| format!("    {line}\n")).collect::<String>();
            format!("{kind}: {}\n{few}", lines.len())
        });
        let shown: String = shown.collect();
        assert!(self.wrong.is_empty(), "{} of {} wrong:\n{shown}", self.wrong.len(), self.instructions);
    }
}

/// Compares all kernels of a cubin with the text that `nvdisasm -c -hex -gp` printed.
pub fn compare(cubin: &str, bytes: &[u8], printed: &str) -> Compared {
    let parsed = Cubin::parse(bytes).unwrap_or_else(|error| panic!("{cubin}: {error}"));
    let listing = Listing::read(printed);
    let mut compared = Compared::default();
    for kernel in parsed.kernels() {
        let theirs = &listing.sections[&format!(".text.{}", kernel.name)];
        let ours = decode_section(kernel.code, kernel.architecture);
        assert_eq!(ours.len(), theirs.instructions.len(), "{cubin}: {}", kernel.name);
        for (instruction, printed) in ours.iter().zip(&theirs.instructions) {
            compared.instructions += 1;
            let text = Text::new(&printed.text);
            *compared.mnemonics.entry(text.mnemonic.to_owned()).or_default() += 1;
            compared.targets += usize::from(text.label.is_some() && instruction.target.is_some());
            for reason in differences(kernel, instruction, printed, &text, &theirs.labels) {
                let name = kernel.name.get(..40).unwrap_or(kernel.name);
                let place = format!("{cubin} {name} {:#x}", instruction.offset);
                let kind = format!("{} {}", text.mnemonic, reason.split(" is ").next().unwrap_or(""));
                compared.wrong.push(Wrong { kind, line: format!("{place}: {reason}: {}", printed.text) });
            }
        }
    }
    compared
}

/// An instruction as it is printed, in parts.
struct Text<'a> {
    /// `P0`, `UP3`, `PT`, with `!` before where it is negated; empty without one.
    guard: &'a str,
    /// Mnemonic and modifiers.
    opcode: &'a str,
    mnemonic: &'a str,
    operands: Vec<&'a str>,
    label: Option<&'a str>,
}

impl<'a> Text<'a> {
    fn new(text: &'a str) -> Self {
        let text = text.trim_end_matches([';', ' ']);
        let (guard, rest) = match text.strip_prefix('@') {
            Some(rest) => rest.split_once(' ').unwrap_or((rest, "")),
            None => ("", text),
        };
        let (opcode, operands) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
        let label = operands.split("`(").nth(1).and_then(|rest| rest.split(')').next());
        let operands = operands.split(',').map(str::trim).filter(|operand| !operand.is_empty()).collect();
        Self { guard, opcode, mnemonic: opcode.split('.').next().unwrap_or(""), operands, label }
    }

    fn has(&self, modifier: &str) -> bool {
        self.opcode.split('.').skip(1).any(|part| part == modifier)
    }
}

fn differences(
    kernel: &CubinKernel,
    ours: &Instruction,
    printed: &Printed,
    text: &Text,
    labels: &HashMap<String, u32>,
) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |what: &str, ours: String, theirs: String| {
        if ours != theirs {
            found.push(format!("{what} is {ours}, not {theirs}"));
        }
    };
    check("offset", format!("{:#x}", ours.offset), format!("{:#x}", printed.offset));
    let at = ours.offset as usize;
    let code = kernel.code.get(at..at + 16).and_then(|bytes| bytes.try_into().ok()).map(u128::from_le_bytes);
    check("code", format!("{code:x?}"), format!("{:x?}", Some(printed.code)));

    let negated = if ours.guard.negated { "!" } else { "" };
    let guard = match ours.guard.predicate {
        7 if ours.guard.negated => "!PT".to_owned(),
        7 => String::new(),
        predicate => format!("{negated}P{predicate}"),
    };
    check("guard", guard, text.guard.replace("UP", "P"));
    check("mnemonic", ours.opcode.mnemonic.to_owned(), plain(text.mnemonic, ours.opcode.mnemonic).to_owned());
    check("class", format!("{:?}", Some(ours.opcode.class)), format!("{:?}", class_of(text)));
    check("memory", format!("{:?}", ours.memory.map(|m| (m.space, m.kind, m.width))), format!("{:?}", memory_of(text)));
    // The label of a return or of an indirect branch is what its register is relative to; others only compute with it.
    let is_direct = !matches!(ours.opcode.class, Class::Return | Class::IndirectBranch);
    let is_direct = is_direct && !["MOV", "LEPC"].contains(&text.mnemonic);
    let target = text.label.filter(|_| is_direct).and_then(|label| labels.get(label)).copied();
    check("target", format!("{:x?}", ours.target), format!("{target:x?}"));
    if let Some(problem) = registers(ours, text) {
        check("registers", format!("{:?}", ours.registers), problem);
    }
    // The bits that are not printed: what -hex shows of them, by their places in it.
    let high = (printed.code >> 64) as u64;
    let field = |low: u32, count: u32| (high >> (low - 64)) & ((1 << count) - 1);
    let control = ours.control;
    let board = |board: Option<u8>| u64::from(board.unwrap_or(7));
    let of_ours = [u64::from(control.stall), u64::from(!control.yields), board(control.write), board(control.read)];
    check(
        "control",
        format!("{of_ours:?}"),
        format!("{:?}", [field(105, 4), field(109, 1), field(110, 3), field(113, 3)]),
    );
    check("wait", control.wait.to_string(), field(116, 6).to_string());
    if text.mnemonic == "DEPBAR"
        && let [board, count, ..] = text.operands[..]
    {
        let number = |text: &str| u8::from_str_radix(text.trim_start_matches("SB").trim_start_matches("0x"), 16).ok();
        check("partial wait", format!("{:?}", ours.partial_wait), format!("{:?}", number(board).zip(number(count))));
    }
    check("PTX line", format!("{:?}", kernel.lines.line_at(ours.offset)), format!("{:?}", printed.line));
    found
}

/// One name for opcodes that nvdisasm gives another one on some architectures, or by their modifiers.
fn plain<'a>(printed: &'a str, ours: &str) -> &'a str {
    match printed {
        "REDG" if ours == "RED" => "RED",
        "CGAERRBAR" => "ERRBAR",
        "UCGABAR_ARV" | "UCGABAR_WAIT" => "UCGABAR",
        "UTCQMMA" | "UTCIMMA" if ours == "UTCHMMA" => "UTCHMMA",
        other => other,
    }
}

#[rustfmt::skip]
const CLASSES: &[(Class, &[&str])] = &[
    // Integer, logic, comparison, predicate and movement instructions, and conversions that are not made by special functions.
    (Class::Alu, &[
        "BMSK", "IABS", "IADD", "IADD3", "IMNMX", "ISETP", "LEA", "LOP3", "SGXT", "SHF", "VABSDIFF", "VABSDIFF4", "VIADD", "VIADDMNMX",
        "VIMNMX", "VIMNMX3", "VHMNMX", "HMNMX2", "FMNMX", "FMNMX3", "FSEL", "FSET", "FSETP", "MOV", "PRMT", "SEL", "PLOP3", "P2R", "R2P", "CS2R", "VOTE",
        "ELECT", "R2UR", "I2FP", "F2FP", "F2IP", "I2I", "I2IP", "CSMTEST",
    ]),
    (Class::Fma, &["FADD", "FFMA", "FMUL", "FSWZADD", "IMAD", "IDP", "IDP4A", "FADD2", "FFMA2", "FMUL2", "FHADD", "FHFMA"]),
    (Class::Half, &["HADD2", "HFMA2", "HMUL2", "HSET2", "HSETP2"]),
    (Class::Double, &["DADD", "DFMA", "DMUL", "DSETP"]),
    (Class::Tensor, &["HMMA", "IMMA", "BMMA", "DMMA", "QMMA", "OMMA"]),
    (Class::AsyncTensor, &["HGMMA", "IGMMA", "BGMMA", "QGMMA", "UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCOMMA", "UTCMXQMMA"]),
    (Class::Special, &["MUFU", "FCHK"]),
    (Class::Convert, &["F2F", "F2I", "I2F", "FRND"]),
    (Class::BitCount, &["BREV", "FLO", "POPC"]),
    (Class::Shuffle, &["SHFL", "MOVM"]),
    (Class::Reduce, &["REDUX", "CREDUX"]),
    (Class::Uniform, &[
        "UBMSK", "UBREV", "UFLO", "UIADD3", "UIMAD", "UISETP", "ULDC", "ULEA", "ULOP3", "UMOV", "UP2UR", "UPLOP3", "UPOPC", "UPRMT",
        "UR2UP", "USEL", "USGXT", "USHF", "VOTEU", "UIABS", "UIMNMX", "UVIADD", "UVIMNMX", "UCLEA", "UFADD", "UFFMA", "UFMUL", "UFMNMX",
        "UFSEL", "UFSET", "UFSETP", "UI2F", "UI2FP", "UI2I", "UI2IP", "UF2FP", "UF2IP", "CS2UR", "UVIRTCOUNT", "UF2F", "UF2I", "UFRND",
    ]),
    (Class::Load(MemorySpace::Global), &["LD", "LDG"]),
    (Class::Load(MemorySpace::Shared), &["LDS", "LDSM", "LDTRAM"]),
    (Class::Load(MemorySpace::Local), &["LDL"]),
    (Class::Load(MemorySpace::Constant), &["LDC", "LDCU"]),
    (Class::Load(MemorySpace::Texture), &["TEX", "TLD", "TLD4", "TMML", "TXD", "TXQ", "SULD", "FOOTPRINT"]),
    (Class::Store(MemorySpace::Global), &["ST", "STG"]),
    (Class::Store(MemorySpace::Shared), &["STS", "STSM", "STAS"]),
    (Class::Store(MemorySpace::Local), &["STL"]),
    (Class::Store(MemorySpace::Texture), &["SUST"]),
    (Class::Atomic(MemorySpace::Global), &["ATOM", "ATOMG", "RED", "REDG", "SUATOM", "SURED"]),
    (Class::Atomic(MemorySpace::Shared), &["ATOMS", "REDAS", "SYNCS"]),
    (Class::AsyncCopy, &["LDGSTS"]),
    (Class::AsyncGroup, &["LDGDEPBAR"]),
    (Class::PartialWait, &["DEPBAR"]),
    (Class::Barrier, &["BAR", "UCGABAR_ARV", "UCGABAR_WAIT"]),
    (Class::Fence, &["MEMBAR", "FENCE"]),
    (Class::SystemRegister, &["S2R", "S2UR", "B2R"]),
    (Class::Branch, &["BRA", "JMP"]),
    (Class::IndirectBranch, &["BRX", "BRXU", "JMX", "JMXU"]),
    (Class::Call, &["CALL"]),
    (Class::Return, &["RET", "RTT"]),
    (Class::Exit, &["EXIT", "KILL"]),
    (Class::Converge, &["BSSY"]),
    (Class::Control, &[
        "BSYNC", "BREAK", "BMOV", "BPT", "WARPSYNC", "YIELD", "NANOSLEEP", "ENDCOLLECTIVE", "PREEXIT", "ACQBULK", "WARPGROUP",
        "WARPGROUPSET", "LEPC", "ULEPC", "RPCMOV", "ACQSHMINIT", "USETMAXREG",
    ]),
    (Class::Nop, &["NOP"]),
    (Class::Other, &[
        "CCTL", "CCTLL", "CCTLT", "ERRBAR", "CGAERRBAR", "QSPC", "PMTRIG", "ARRIVES", "UTMALDG", "UTMASTG", "UTMAREDG", "UTMACMDFLUSH", "UTMAPF",
        "UTMACCTL", "UBLKCP", "UBLKRED", "UBLKPF", "UTCATOMSWS", "UTCBAR", "UTCCP", "UTCSHIFT", "LDT", "LDTM", "STT", "STTM",
        "UMEMSETS", "UGETNEXTWORKID", "USETSHMSZ",
    ]),
];

fn class_of(text: &Text) -> Option<Class> {
    match text.mnemonic {
        "MATCH" if text.has("ANY") => Some(Class::Match),
        "MATCH" => Some(Class::Reduce),
        mnemonic => CLASSES.iter().find(|(_, mnemonics)| mnemonics.contains(&mnemonic)).map(|&(class, _)| class),
    }
}

/// MemorySpace, kind and bytes of a thread, from the mnemonic and its suffixes.
fn memory_of(text: &Text) -> Option<(MemorySpace, AccessKind, u32)> {
    let (space, kind) = match class_of(text)? {
        Class::Load(space) => (space, AccessKind::Load),
        Class::Store(space) => (space, AccessKind::Store),
        Class::Atomic(space) => (space, AccessKind::Atomic),
        Class::AsyncCopy => (MemorySpace::Global, AccessKind::Load),
        _ => return None,
    };
    let width = match text.mnemonic {
        "LDSM" | "STSM" if text.has("4") => 16,
        "LDSM" | "STSM" if text.has("2") => 8,
        "LDSM" | "STSM" => 4,
        // Barrier objects have 8 bytes.
        "SYNCS" => 8,
        _ if text.has("U8") || text.has("S8") => 1,
        _ if text.has("U16") || text.has("S16") => 2,
        _ if kind == AccessKind::Atomic && text.has("CAS") && text.has("128") => 16,
        _ if text.has("256") || text.has("ENL2") => 32,
        _ if text.has("128") => 16,
        _ if text.has("64") || text.has("U64") || text.has("S64") || text.has("F64") => 8,
        _ => 4,
    };
    Some((space, kind, width))
}

/// What the printed general registers are, where ours are others.
fn registers(ours: &Instruction, text: &Text) -> Option<String> {
    let named = |operand: &str| -> Vec<(u8, bool)> {
        // The bars of an absolute value stand before a suffix.
        let operand = operand.replace('|', "");
        let words = operand.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
        words
            .filter_map(|word| {
                let mut parts = word.split('.');
                let number = parts.next()?.strip_prefix('R')?;
                let number = if number == "Z" { 255 } else { number.parse().ok()? };
                Some((number, parts.any(|part| part == "reuse")))
            })
            .collect()
    };
    let operands: Vec<Vec<(u8, bool)>> = text.operands.iter().map(|operand| named(operand)).collect();
    let found = ours.registers;
    let is_whole = |at: usize| text.operands[at].starts_with('R') && operands[at].len() == 1;
    let writes = !matches!(
        ours.opcode.class,
        Class::Store(_)
            | Class::Branch
            | Class::IndirectBranch
            | Class::Call
            | Class::Return
            | Class::Barrier
            | Class::Other
    );
    // Predicates are all that comparisons write.
    let writes =
        writes && !text.mnemonic.contains("SETP") && !["R2P", "FCHK", "WARPSYNC", "NANOSLEEP"].contains(&text.mnemonic);
    // Predicates and the like may come before the register that is written.
    let written = (0..operands.len()).find(|&at| is_whole(at)).filter(|_| writes);
    let first_is_written = written.is_some_and(|at| text.operands[..at].iter().all(|o| o.contains('P')));
    // Textures print the second half of what they write first.
    let halves = usize::from(["TEX", "TLD", "TLD4", "TXD"].contains(&text.mnemonic));
    let results = written.filter(|_| first_is_written).map(|at| at..=at + halves);
    if let Some(results) = &results {
        let destination = operands.get(*results.end()).and_then(|of| of.first()).map(|(number, _)| *number);
        if destination != Some(found.destination) {
            return Some(format!("destination {destination:?}"));
        }
    }
    let is_result = |at: &usize| results.as_ref().is_some_and(|results| results.contains(at));
    let read = operands.iter().enumerate().filter(|(at, _)| !is_result(at));
    let read: Vec<(u8, bool)> = read.flat_map(|(_, of)| of.iter().copied()).collect();
    // An asynchronous copy has the shared address where others have what they write; scaled matrix products have five operands.
    let is_known = |number: &u8| match text.mnemonic {
        "OMMA" | "QMMA" => true,
        "LDGSTS" if found.destination == *number => true,
        _ => found.sources.contains(number),
    };
    let missing = read.iter().find(|(number, _)| *number != 255 && !is_known(number));
    if let Some((number, _)) = missing {
        return Some(format!("source {number} too"));
    }
    let reused = read.iter().filter(|(_, reused)| *reused).count() as u32;
    // Without registers the bits mean something else, and so they do in textures; the further operands of scaled products have
    // flags elsewhere.
    let is_told = halves == 0 && !["OMMA", "QMMA"].contains(&text.mnemonic) && !read.is_empty();
    (is_told && reused != found.reuse.count_ones()).then(|| format!("{reused} reused"))
}

/// nvdisasm's output by section.
#[derive(Default)]
pub struct Listing {
    pub sections: HashMap<String, Section>,
}

#[derive(Default)]
pub struct Section {
    pub instructions: Vec<Printed>,
    pub labels: HashMap<String, u32>,
}

pub struct Printed {
    pub offset: u32,
    pub text: String,
    pub code: u128,
    pub line: Option<u32>,
}

impl Listing {
    pub fn read(text: &str) -> Self {
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
            } else if let Some(word) = row.strip_prefix("/* 0x").and_then(|rest| rest.strip_suffix(" */")) {
                // The upper half of the instruction before.
                let last = section.instructions.last_mut().expect("an instruction before its second half");
                last.code |= u128::from(u64::from_str_radix(word, 16).expect("a number")) << 64;
            } else if let Some(rest) = row.strip_prefix("/*") {
                let Some((Ok(offset), text)) =
                    rest.split_once("*/").map(|(offset, text)| (u32::from_str_radix(offset, 16), text))
                else {
                    continue;
                };
                section.labels.extend(pending.drain(..).map(|label| (label, offset)));
                let (text, word) = text.rsplit_once("/* 0x").expect("the code after the text");
                let word = word.trim_end_matches([' ', '*', '/']);
                let code = u128::from(u64::from_str_radix(word, 16).expect("a number"));
                section.instructions.push(Printed { offset, text: text.trim().to_owned(), code, line });
            } else if let Some(label) = row.strip_suffix(':') {
                pending.push(label.to_owned());
            }
        }
        listing
    }
}
