//! The instructions of a body in an order in which each stands behind all that are surely
//! executed before it.
//!
//! Compilers place blocks by how often they expect them to run, so that a block may stand above
//! the one that it always follows. Reverse postorder of the control flow puts what dominates
//! first (Aho et al., "Compilers", 2nd edition, section 9.6.6).

use super::control_flow::ControlFlow;
use super::module::{Body, Instruction};

impl Body {
    /// The instructions, those that dominate others first; what is never reached comes last, in
    /// the order of the text.
    pub fn dominators_first(&self) -> Vec<&Instruction> {
        let ControlFlow { instructions, mut successors } = ControlFlow::new(self);
        let mut found = vec![false; instructions.len()];
        let mut left = Vec::new();
        let mut path = Vec::from_iter(found.first_mut().map(|first| {
            *first = true;
            0
        }));
        while let Some(&at) = path.last() {
            match successors[at].pop() {
                Some(to) if found.get(to) == Some(&false) => {
                    found[to] = true;
                    path.push(to);
                }
                Some(_) => {}
                None => {
                    left.push(at);
                    path.pop();
                }
            }
        }
        let unreached = (0..instructions.len()).filter(|&at| !found[at]);
        left.iter().rev().copied().chain(unreached).map(|at| instructions[at]).collect()
    }
}
