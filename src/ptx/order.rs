//! The instructions of a body in an order in which each stands behind all that are surely
//! executed before it.
//!
//! Compilers place blocks by how often they expect them to run, so that a block may stand above
//! the one that it always follows. Reverse postorder of the control flow puts what dominates
//! first (Aho et al., "Compilers", 2nd edition, section 9.6.6).

use super::module::{Body, Instruction, Operand, Statement};
use super::opcode::Mnemonic;
use std::collections::HashMap;

impl Body {
    /// The instructions, those that dominate others first; what is never reached comes last, in
    /// the order of the text.
    pub fn dominators_first(&self) -> Vec<&Instruction> {
        let mut instructions = Vec::new();
        let mut labels = HashMap::new();
        for statement in &self.statements {
            match statement {
                Statement::Label(label) => drop(labels.insert(&*label.name, instructions.len())),
                Statement::Instruction(instruction) => instructions.push(instruction),
                _ => {}
            }
        }
        let mut found = vec![false; instructions.len()];
        let mut left = Vec::new();
        let mut path = Vec::from_iter(found.first_mut().map(|first| {
            *first = true;
            (0, successors_of(&instructions, &labels, 0))
        }));
        while let Some((at, following)) = path.last_mut() {
            match following.pop() {
                Some(to) if found.get(to) == Some(&false) => {
                    found[to] = true;
                    path.push((to, successors_of(&instructions, &labels, to)));
                }
                Some(_) => {}
                None => {
                    left.push(*at);
                    path.pop();
                }
            }
        }
        let unreached = (0..instructions.len()).filter(|&at| !found[at]);
        left.iter().rev().copied().chain(unreached).map(|at| instructions[at]).collect()
    }
}

/// What may be executed next, what is further down in the text first.
fn successors_of(instructions: &[&Instruction], labels: &HashMap<&str, usize>, at: usize) -> Vec<usize> {
    let instruction = instructions[at];
    let mnemonic = instruction.opcode.mnemonic;
    let targets = instruction.operands.iter().filter_map(|operand| match operand {
        Operand::Name(name) if mnemonic == Mnemonic::Bra => labels.get(&**name).copied(),
        _ => None,
    });
    let falls = instruction.guard.is_some() || !matches!(mnemonic, Mnemonic::Bra | Mnemonic::Ret | Mnemonic::Exit);
    targets.chain(falls.then_some(at + 1)).collect()
}
