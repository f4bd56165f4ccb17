//! PTX -> what a function does with an address that it has in registers.
//!
//! The property: every use of the address is reported, as an access to memory or as an escape.
//! An escape is where it leaves the registers: into memory, a call or a result. A comparison of
//! the address is no use.

use crate::ptx::opcode::{Class, Mnemonic};
use crate::ptx::{Body, Instruction, Operand, StateSpace};
use std::collections::{HashMap, HashSet};

/// What an instruction does with the address.
#[derive(Clone, Copy, Debug)]
pub enum AddressUse<'a> {
    /// Accesses memory there, or asks a cache to.
    Access(&'a Instruction),
    /// Calls a function with it.
    Call(&'a Instruction),
    /// Stores it, or returns it.
    Escape,
}

/// Returns whether the code has a use that `matches`, of an address that these names (registers
/// or variables) hold at first.
pub fn any_use<'a>(body: &'a Body, names: &[&'a str], matches: impl Fn(AddressUse<'a>) -> bool) -> bool {
    let mut flow = AddressFlow { holders: names.iter().copied().collect(), parameters: HashMap::new(), matches };
    if !body.instructions().any(|instruction| instruction.operands.iter().any(|operand| flow.holds(operand))) {
        return false;
    }
    loop {
        let before = flow.holders.len();
        if body.instructions().any(|instruction| flow.has_use(instruction)) {
            return true;
        }
        if flow.holders.len() == before {
            // What is stored into a parameter that no call takes is returned.
            return flow.parameters.values().any(|&has_address| has_address) && (flow.matches)(AddressUse::Escape);
        }
    }
}

/// Where the address is, as far as the code was followed.
struct AddressFlow<'a, F> {
    /// The names that may hold it.
    holders: HashSet<&'a str>,
    /// Parameters of calls: whether they were given the address, and await their call.
    parameters: HashMap<&'a str, bool>,
    matches: F,
}

impl<'a, F: Fn(AddressUse<'a>) -> bool> AddressFlow<'a, F> {
    fn holds(&self, operand: &Operand) -> bool {
        operand.names().iter().any(|name| self.holders.contains(name))
    }

    /// Follows one instruction; true if it has a use that matches.
    fn has_use(&mut self, instruction: &'a Instruction) -> bool {
        let (class, mnemonic) = (instruction.opcode.class(), instruction.opcode.mnemonic);
        if mnemonic == Mnemonic::Call {
            return self.is_given_to(instruction) && (self.matches)(AddressUse::Call(instruction));
        }
        let is_address = |operand: &&Operand| matches!(operand, Operand::Address { .. } | Operand::Brackets(_));
        let (addresses, values): (Vec<&Operand>, Vec<&Operand>) = instruction.operands.iter().partition(is_address);
        if addresses.iter().any(|operand| self.holds(operand)) && (self.matches)(AddressUse::Access(instruction)) {
            return true;
        }
        let has_result =
            !matches!(class, Class::Store | Class::Reduction | Class::AsyncCopy) && mnemonic != Mnemonic::Ret;
        let given = values.get(usize::from(has_result)..).unwrap_or_default();
        let is_given = given.iter().any(|operand| self.holds(operand));
        if class == Class::Store
            && instruction.opcode.spaces().any(|space| space == StateSpace::Param)
            && let Some(name) = addresses.iter().flat_map(|operand| operand.names()).next()
        {
            *self.parameters.entry(name).or_default() |= is_given;
            return false;
        }
        // True or false, or a place to go to, is no address.
        if !is_given || matches!(mnemonic, Mnemonic::Setp | Mnemonic::Set | Mnemonic::Bra) {
            return false;
        }
        if !has_result || class == Class::Atomic {
            return (self.matches)(AddressUse::Escape);
        }
        self.holders.extend(values.first().into_iter().flat_map(|result| result.names()));
        false
    }

    /// Returns whether a call is given the address; its parameters are free for the next one.
    fn is_given_to(&mut self, call: &'a Instruction) -> bool {
        let mut is_given = false;
        for name in call.operands.iter().flat_map(Operand::names) {
            is_given |= self.holders.contains(name);
            is_given |= self.parameters.remove(name).unwrap_or(false);
        }
        is_given
    }
}
