//! The control flow of a body, by instruction.

use super::module::{Body, Instruction, Operand, Statement};
use super::opcode::Mnemonic;
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
        const NONE: usize = usize::MAX;
        let end = self.instructions.len();
        let order = self.post_order_from_end();
        let mut position = vec![0; end + 1];
        order.iter().enumerate().for_each(|(number, &at)| position[at] = number);
        // The iteration of Cooper, Harvey and Kennedy on the graph backwards.
        let mut found = vec![NONE; end + 1];
        found[end] = end;
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for &at in order.iter().rev().filter(|&&at| at != end) {
                let known = self.successors[at].iter().copied().filter(|&next| found[next] != NONE);
                let common = |mut a: usize, mut b: usize| {
                    while a != b {
                        let nearer = if position[a] < position[b] { &mut a } else { &mut b };
                        *nearer = found[*nearer];
                    }
                    a
                };
                let new = known.reduce(common).unwrap_or(NONE);
                has_changed |= std::mem::replace(&mut found[at], new) != new;
            }
        }
        found[..end].iter().map(|&after| Some(after).filter(|&after| after != NONE)).collect()
    }

    /// What leads to the end, and the end, each behind all that a search backwards finds from it.
    fn post_order_from_end(&self) -> Vec<usize> {
        let end = self.instructions.len();
        let mut predecessors = vec![Vec::new(); end + 1];
        for (at, next) in self.successors.iter().enumerate() {
            next.iter().for_each(|&next| predecessors[next].push(at));
        }
        let mut order = Vec::with_capacity(end + 1);
        let mut is_seen = vec![false; end + 1];
        is_seen[end] = true;
        let mut path = vec![(end, 0)];
        while let Some((at, step)) = path.last_mut() {
            match predecessors[*at].get(*step) {
                Some(&before) => {
                    *step += 1;
                    if !std::mem::replace(&mut is_seen[before], true) {
                        path.push((before, 0));
                    }
                }
                None => {
                    order.push(*at);
                    path.pop();
                }
            }
        }
        order
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
