//! PTX of a kernel -> its instructions, if it consists of straight code, one loop, and `ret`.

use crate::ptx::opcode::Mnemonic;
use crate::ptx::{Instruction, Operand, Statement};
use std::collections::{HashMap, HashSet};

/// The instructions of a kernel that consists of straight code, one loop, and `ret`.
pub(super) struct SingleLoop<'a> {
    pub(super) instructions: Vec<&'a Instruction>,
    /// By label: the instruction behind it.
    pub(super) labels: HashMap<&'a str, usize>,
    /// The registers that inline assembly declares for itself.
    pub(super) inner_registers: HashSet<&'a str>,
    /// The loop: its first instruction, and the branch back to it.
    pub(super) first: usize,
    pub(super) last: usize,
    /// The first instruction of the loop's last part, which is executed once for each item.
    pub(super) latch: usize,
}

impl<'a> SingleLoop<'a> {
    pub(super) fn new(statements: &'a [Statement]) -> Option<Self> {
        let (mut instructions, mut labels, mut depth) = (Vec::new(), HashMap::new(), 0);
        let mut inner_registers = HashSet::new();
        for statement in statements {
            match statement {
                Statement::Open => depth += 1,
                Statement::Close => depth -= 1,
                // The compiler's names begin with `%`. Others come from inline assembly: they are
                // accepted in its own scopes alone, where they hide no register of another one.
                Statement::Registers(registers) if depth == 0 => {
                    if !registers.name.starts_with('%') {
                        return None;
                    }
                }
                Statement::Registers(registers) => {
                    if registers.name.starts_with('%') || registers.count.is_some() {
                        return None;
                    }
                    inner_registers.insert(&*registers.name);
                }
                Statement::Variable(_) => {}
                Statement::Label(label) => {
                    // The same label may stand in two scopes.
                    if labels.insert(&*label.name, instructions.len()).is_some() {
                        return None;
                    }
                }
                Statement::Targets { .. } | Statement::Prototype { .. } => return None,
                Statement::Instruction(instruction) => instructions.push(instruction),
            }
        }
        let target = |at: usize| branch_target(instructions[at], &labels);
        let branches = |range: std::ops::Range<usize>| range.filter_map(|at| Some((at, target(at)?)));
        let back = || branches(0..instructions.len()).filter(|(at, to)| to <= at);
        let (first, last) = (back().map(|(_, to)| to).min()?, back().map(|(at, _)| at).max()?);
        let [ret] = instructions.get(last + 1..)? else { return None };
        let is_loop = target(last) == Some(first) && instructions[last].guard.is_some();
        let is_end = ret.opcode.mnemonic == Mnemonic::Ret && ret.guard.is_none();
        let leaves_early = |(_, to): (usize, usize)| to == last + 1;
        let stays = |(_, to): (usize, usize)| to > first && to <= last;
        if !is_loop || !is_end || !branches(0..first).all(leaves_early) || !branches(first..last).all(stays) {
            return None;
        }
        let joins = branches(first..last).flat_map(|(at, to)| [at + 1, to]);
        let latch = joins.max().unwrap_or(first);
        Some(Self { instructions, labels, inner_registers, first, last, latch })
    }
}

pub(super) fn branch_target(instruction: &Instruction, labels: &HashMap<&str, usize>) -> Option<usize> {
    match instruction.operands.first() {
        Some(Operand::Name(name)) if instruction.opcode.mnemonic == Mnemonic::Bra => labels.get(&**name).copied(),
        _ => None,
    }
}
