//! PTX -> whether a kernel's threads know nothing of their block but their position in the grid.
//!
//! Where the whole kernel sees `blockIdx * blockDim + threadIdx` (and `gridDim * blockDim`, for strides) and no other trace of
//! the block, a launch of as many threads in blocks of another shape does the same. The answer is yes only where that is certain:
//! anything that works within a block or warp, or that this does not follow, is a no.

use crate::ptx::{Instruction, Module, Operand};
use std::collections::HashMap;

/// What a register holds of the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trace {
    Thread(u8),
    Block(u8),
    Extent(u8),
    Blocks(u8),
    /// `blockIdx * blockDim`
    Start(u8),
    /// A position or a stride in the grid: the same for every shape of the block.
    Free,
}

/// Opcodes, or beginnings of them, by which threads of a block or warp meet.
const MEETINGS: [&str; 19] = [
    "bar",
    "barrier",
    "shfl",
    "vote",
    "match",
    "redux",
    "activemask",
    "elect",
    "call",
    "brx",
    "wmma",
    "mma",
    "wgmma",
    "ldmatrix",
    "stmatrix",
    "mbarrier",
    "griddepcontrol",
    "setmaxnreg",
    "tcgen05",
];

/// True where every launch with the same threads in each dimension does the same, however they are in blocks.
pub fn is_all(module: &Module, symbol: &str) -> bool {
    let Some(entry) = module.entry(symbol) else { return false };
    let bound = |name: &str| name == ".reqntid" || name.contains("cluster");
    if entry.directives.iter().any(|directive| bound(&directive.name)) {
        return false;
    }
    let Some(body) = &entry.body else { return false };
    let mut traces: HashMap<&str, Trace> = HashMap::new();
    body.instructions().all(|instruction| follow(instruction, &mut traces))
}

/// Follows one instruction; false where it could tell one block from another.
fn follow<'a>(instruction: &'a Instruction, traces: &mut HashMap<&'a str, Trace>) -> bool {
    let opcode = &*instruction.opcode;
    let mut parts = opcode.split('.');
    let operation = parts.next().unwrap_or_default();
    if MEETINGS.contains(&operation) || parts.any(|part| part.starts_with("shared")) {
        return false;
    }
    let mut operands = instruction.operands.iter();
    let target = match operands.next() {
        Some(Operand::Name(name)) => Some(&**name),
        _ => None,
    };
    let sources: Vec<Source> = instruction.operands.iter().skip(1).map(|operand| source(operand, traces)).collect();
    let plain = |source: &Source| matches!(source, Source::Other | Source::Traced(Trace::Free));
    let first = instruction.operands.first().map_or(Source::Other, |operand| source(operand, traces));
    let guard = instruction.guard.as_ref().is_none_or(|guard| !traces.contains_key(&*guard.register));
    use Trace::{Block, Blocks, Extent, Free, Start, Thread};
    let made = match (operation, sources.as_slice()) {
        ("mov" | "cvt", [Source::Traced(trace)]) => Some(*trace),
        // A wider or narrower product is no product of these any more.
        ("mul", [Source::Traced(a), Source::Traced(b)]) if opcode.starts_with("mul.lo") => match (a, b) {
            (Block(i), Extent(j)) | (Extent(j), Block(i)) if i == j => Some(Start(*i)),
            (Blocks(i), Extent(j)) | (Extent(j), Blocks(i)) if i == j => Some(Free),
            (Free, Free) => None,
            _ => return false,
        },
        ("mad", [Source::Traced(a), Source::Traced(b), c]) if opcode.starts_with("mad.lo") => match (a, b, c) {
            (Block(i), Extent(j), Source::Traced(Thread(k))) | (Extent(j), Block(i), Source::Traced(Thread(k)))
                if i == j && j == k =>
            {
                Some(Free)
            }
            (Blocks(i), Extent(j), c) | (Extent(j), Blocks(i), c) if i == j && plain(c) => Some(Free),
            (Free, Free, c) if plain(c) => None,
            _ => return false,
        },
        ("add", [Source::Traced(a), Source::Traced(b)]) => match (a, b) {
            (Start(i), Thread(j)) | (Thread(j), Start(i)) if i == j => Some(Free),
            (Free, Free) => None,
            _ => return false,
        },
        _ => {
            if !sources.iter().all(plain) || !plain(&first) {
                return false;
            }
            None
        }
    };
    match (target, made) {
        // Only a register that holds the same at all times can be followed.
        (Some(target), Some(trace)) => guard && traces.insert(target, trace).is_none_or(|before| before == trace),
        (Some(target), None) => traces.get(target).is_none_or(|trace| *trace == Free),
        (None, made) => made.is_none(),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Traced(Trace),
    Other,
    /// Another special register, or a part of a launch in a place that is not followed.
    Unknown,
}

fn source(operand: &Operand, traces: &HashMap<&str, Trace>) -> Source {
    let held = |name: &str| match traces.get(name) {
        None | Some(Trace::Free) => Source::Other,
        Some(_) => Source::Unknown,
    };
    let all = |operands: &[Operand]| {
        let known = operands
            .iter()
            .all(|operand| matches!(source(operand, traces), Source::Other | Source::Traced(Trace::Free)));
        if known { Source::Other } else { Source::Unknown }
    };
    match operand {
        Operand::Name(name) => match traces.get(&**name) {
            Some(trace) => Source::Traced(*trace),
            None => special(name),
        },
        Operand::Displaced(name, _) | Operand::Address { base: Some(name), .. } => held(name),
        Operand::Vector(operands) | Operand::Group(operands) | Operand::Brackets(operands) => all(operands),
        Operand::Not(operand) | Operand::Minus(operand) => match source(operand, traces) {
            Source::Traced(Trace::Free) | Source::Other => Source::Other,
            _ => Source::Unknown,
        },
        _ => Source::Other,
    }
}

/// A special register; ordinary registers end in a number, as cicc names them, and labels have no `%`.
fn special(name: &str) -> Source {
    let Some(rest) = name.strip_prefix('%') else { return Source::Other };
    if let Some((register, dimension)) = rest.split_once('.') {
        let dimension = match dimension {
            "x" => 0,
            "y" => 1,
            "z" => 2,
            _ => return Source::Unknown,
        };
        return match register {
            "tid" => Source::Traced(Trace::Thread(dimension)),
            "ctaid" => Source::Traced(Trace::Block(dimension)),
            "ntid" => Source::Traced(Trace::Extent(dimension)),
            "nctaid" => Source::Traced(Trace::Blocks(dimension)),
            _ => Source::Unknown,
        };
    }
    let ordinary = ["r", "rd", "rs", "rc", "rq", "f", "fd", "p", "h", "hh", "b"];
    let stem = rest.trim_end_matches(|c: char| c.is_ascii_digit());
    if stem.len() < rest.len() && ordinary.contains(&stem) || matches!(rest, "SP" | "SPL") {
        Source::Other
    } else {
        Source::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(body: &str) -> bool {
        let text = format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 k_param_0)\n{{\n.reg .pred %p<4>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<8>;\n.shared .align 4 .b8 tile[64];\n{body}\nret;\n}}\n"
        );
        is_all(&Module::parse(&text).expect("PTX"), "k")
    }

    #[test]
    fn a_kernel_of_positions_is_told_from_one_that_knows_its_block() {
        let position =
            "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.s32 %r4, %r1, %r2, %r3;\n";
        let stride =
            "mov.u32 %r5, %nctaid.x;\nmul.lo.s32 %r6, %r2, %r5;\nadd.s32 %r7, %r4, %r6;\nsetp.lt.s32 %p1, %r7, 9;\n";
        let with = |text: &str| format!("{position}{text}");
        for (body, expected) in [
            (with(""), true),
            (with("setp.ge.s32 %p1, %r4, 9;\n@%p1 bra $L;\nmul.wide.s32 %rd1, %r4, 4;\n$L:"), true),
            (with(stride), true),
            ("mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmul.lo.s32 %r4, %r1, %r2;\nmov.u32 %r3, %tid.x;\nadd.s32 %r5, %r4, %r3;\n".into(), true),
            // What only a block knows.
            (with("setp.eq.s32 %p1, %r3, 0;"), false),
            (with("add.s32 %r5, %r1, 1;"), false),
            (with("shl.b32 %r5, %r2, 2;"), false),
            (with("bar.sync 0;"), false),
            (with("st.shared.u32 [tile], %r4;"), false),
            (with("mov.u32 %r5, %laneid;"), false),
            (with("st.global.u32 [%rd1], %r3;"), false),
            // Another dimension's extent; 256 where the block's extent should be; a 64-bit product that may overflow otherwise.
            ("mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.y;\nmov.u32 %r3, %tid.x;\nmad.lo.s32 %r4, %r1, %r2, %r3;\n".into(), false),
            ("mov.u32 %r1, %ctaid.x;\nshl.b32 %r2, %r1, 8;\nmov.u32 %r3, %tid.x;\nor.b32 %r4, %r2, %r3;\n".into(), false),
            (with("mul.wide.u32 %rd1, %r1, %r2;"), false),
        ] {
            assert_eq!(judged(&body), expected, "{body}");
        }
    }
}
