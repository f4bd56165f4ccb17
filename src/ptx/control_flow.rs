//! The control flow of a body, by instruction.

use super::module::{Body, Instruction, Operand, Statement};
use super::opcode::Mnemonic;
use super::postdominators;
use std::collections::HashMap;

/// Which instructions of a body may follow which.
pub struct ControlFlow<'a> {
    /// In the order of the text.
    pub instructions: Vec<&'a Instruction>,
    /// For each instruction those that may be executed next, what follows in the text last. The
    /// end of the body has the number of instructions.
    pub successors: Vec<Vec<usize>>,
}

impl<'a> ControlFlow<'a> {
    /// Follows the branches of a body; those of a table (`brx`) are not followed.
    pub fn new(body: &'a Body) -> Self {
        let mut instructions = Vec::new();
        let mut labels = HashMap::new();
        for statement in &body.statements {
            match statement {
                Statement::Label(label) => drop(labels.insert(&*label.name, instructions.len())),
                Statement::Instruction(instruction) => instructions.push(instruction),
                _ => {}
            }
        }
        let end = instructions.len();
        let successors = |(at, instruction): (usize, &&Instruction)| {
            let is_branch = instruction.opcode.mnemonic == Mnemonic::Bra;
            let targets = instruction.operands.iter().filter_map(|operand| match operand {
                Operand::Name(name) if is_branch => labels.get(&**name).copied(),
                _ => None,
            });
            let falls = instruction.guard.is_some() || !is_branch && !instruction.leaves();
            targets.chain(instruction.leaves().then_some(end)).chain(falls.then_some(at + 1)).collect()
        };
        let successors = instructions.iter().enumerate().map(successors).collect();
        Self { instructions, successors }
    }

    /// For each instruction the nearest other one, or the end, that all ways from it pass; none
    /// where no way leads to the end.
    pub fn immediate_postdominators(&self) -> Vec<Option<usize>> {
        postdominators::immediate_postdominators(&self.successors)
    }
}

#[cfg(test)]
mod tests {
    use super::ControlFlow;
    use crate::ptx::Module;

    #[test]
    fn postdominators_are_where_all_ways_meet() {
        let text = ".version 9.0\n.target sm_90\n.address_size 64\n.entry k()\n{\n\
                    @%p1 ret;\n@%p2 bra $B;\n$A: add.s32 %r1, %r1, 1;\n@%p3 bra $A;\nbra $C;\n$B: @%p4 trap;\n\
                    $C: add.s32 %r2, %r2, 1;\nret;\n$D: bra $D;\n}\n";
        let module = Module::parse(text).expect("it is PTX");
        let flow = ControlFlow::new(module.functions[0].body.as_ref().expect("a body"));
        let end = flow.instructions.len();
        let after = [end, end, 3, 4, 6, end, 7, end].map(Some);
        assert_eq!(flow.immediate_postdominators(), [&after[..], &[None]].concat());
    }
}
