//! PTX of a kernel -> the instructions that its addresses in global memory depend on.
//!
//! The property: run alone, these instructions end if the kernel does, and load nothing that the
//! kernel does not load, because loads and branches depend on nothing but the arguments, the
//! numbers of the launch, and memory that does not change while the kernel runs
//! (`ld.global.nc`). And they compute every address that the kernel accesses through its
//! parameters. Addresses may also depend on memory that might change; they are right unless the
//! kernel's stores, by these addresses, overlap the loads. Whatever else an access depends on is
//! a [`SliceProblem`].
//!
//! Branches are kept by control dependence (Ferrante, Ottenstein and Warren, 1987): one that
//! decides over nothing in the slice is not in it.

use super::ptx_facts::access_width;
use super::shape_invariance::written_names;
use crate::ptx::opcode::{Class, Effect, Mnemonic, Semantics};
use crate::ptx::{
    ASSERTION, Body, ControlFlow, Instruction, Module, Operand, PtxFunction, Scalar, StateSpace, Statement,
};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Why the addresses of a kernel cannot be computed without running it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SliceProblem {
    #[error("the PTX has no such kernel")]
    NoEntry,
    #[error("it accesses no memory through its parameters")]
    NoAccess,
    #[error("line {line}: `{opcode}` may access any memory")]
    Access { line: u32, opcode: String },
    #[error("line {line}: no parameter is known to point at what `{opcode}` accesses")]
    Root { line: u32, opcode: String },
    #[error("line {line}: an access depends on the result of `{opcode}`")]
    Result { line: u32, opcode: String },
    #[error("line {line}: an access depends on `{name}`")]
    Name { line: u32, name: String },
    #[error("line {line}: `{opcode}` depends on memory that the kernel may change")]
    Changing { line: u32, opcode: String },
    #[error("line {line}: it is not known where `{opcode}` leads")]
    Flow { line: u32, opcode: String },
}

/// A pointer in the arguments: its parameter, and its byte in that.
pub type PointerPlace = (usize, u64);

/// An access to global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalAccess<'a> {
    /// The register with the address, and what is added to it.
    pub base: &'a str,
    pub offset: i64,
    pub bytes: u64,
    /// Its number in [`AddressSlice::rows`].
    pub row: usize,
}

/// Accesses through the same pointers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRow {
    /// The pointers in the arguments that one of them may go through.
    pub pointers: BTreeSet<PointerPlace>,
    /// Whether they are loads that addresses depend on, of memory that might change.
    pub is_watched: bool,
    pub is_written: bool,
}

/// What becomes of an instruction in the slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlicePart {
    /// It is executed.
    Kept,
    /// It has no effect on the slice.
    Dropped,
    /// A branch after which the slice goes on here, whichever way the kernel goes.
    Skip(usize),
}

/// The slice of a kernel.
pub struct AddressSlice<'a> {
    pub entry: &'a PtxFunction,
    pub body: &'a Body,
    pub flow: ControlFlow<'a>,
    /// By instruction.
    pub parts: Vec<SlicePart>,
    pub accesses: Vec<Option<GlobalAccess<'a>>>,
    pub rows: Vec<AccessRow>,
}

impl<'a> AddressSlice<'a> {
    /// Finds the slice of the kernel `symbol`.
    ///
    /// # Errors
    /// What its accesses depend on that is not known before it runs.
    pub fn new(module: &'a Module, symbol: &str) -> Result<Self, SliceProblem> {
        let entry = module.entry(symbol).filter(|_| module.address_size == 64).ok_or(SliceProblem::NoEntry)?;
        let body = entry.body.as_ref().ok_or(SliceProblem::NoEntry)?;
        let flow = ControlFlow::new(body);
        let origins = Origins::new(entry, body, &flow);
        let found: Vec<_> =
            flow.instructions.iter().map(|instruction| origins.access(instruction)).collect::<Result<_, _>>()?;
        let after = flow.immediate_postdominators();
        let mut needs = Needs::new(&origins, &flow, &after)?;
        for (at, access) in found.iter().enumerate() {
            if let Some((access, _)) = access {
                needs.add_name(flow.instructions[at], access.base)?;
                needs.add_guard(flow.instructions[at])?;
                needs.add_conditions(at);
            }
        }
        let is_needed = needs.follow()?;
        let is_watched = |at: usize| is_needed[at] && found[at].is_some() && !is_constant_load(flow.instructions[at]);
        check_changing(&flow, &is_needed, is_watched)?;
        let mut rows: Vec<AccessRow> = Vec::new();
        let mut accesses = Vec::new();
        for (at, instruction) in flow.instructions.iter().enumerate() {
            accesses.push(found[at].as_ref().map(|(access, pointers)| {
                let is_written = instruction.opcode.effect() != Effect::Read;
                let row = row_of(&mut rows, pointers, is_watched(at));
                rows[row].is_written |= is_written;
                GlobalAccess { row, ..*access }
            }));
        }
        if rows.is_empty() {
            return Err(SliceProblem::NoAccess);
        }
        let parts = slice_parts(&flow, &is_needed, &after)?;
        Ok(Self { entry, body, flow, parts, accesses, rows })
    }
}

/// Finds the row of an access, or adds it.
fn row_of(rows: &mut Vec<AccessRow>, pointers: &BTreeSet<PointerPlace>, is_watched: bool) -> usize {
    let is_same = |row: &AccessRow| row.pointers == *pointers && row.is_watched == is_watched;
    rows.iter().position(is_same).unwrap_or_else(|| {
        rows.push(AccessRow { pointers: pointers.clone(), is_watched, is_written: false });
        rows.len() - 1
    })
}

/// Says of each instruction what becomes of it.
fn slice_parts(
    flow: &ControlFlow<'_>,
    is_needed: &[bool],
    after: &[Option<usize>],
) -> Result<Vec<SlicePart>, SliceProblem> {
    let part = |(at, instruction): (usize, &&Instruction)| {
        let is_branch = flow.successors[at].len() > 1;
        let is_jump = flow.successors[at] != [at + 1];
        match (is_needed[at] || is_jump && !is_branch, is_branch, after[at]) {
            (true, ..) => Ok(SlicePart::Kept),
            (false, true, Some(next)) => Ok(SlicePart::Skip(next)),
            (false, true, None) => Err(flow_problem(instruction)),
            (false, false, _) => Ok(SlicePart::Dropped),
        }
    };
    flow.instructions.iter().enumerate().map(part).collect()
}

fn flow_problem(instruction: &Instruction) -> SliceProblem {
    SliceProblem::Flow { line: instruction.line, opcode: instruction.opcode.text().to_owned() }
}

fn access_problem(instruction: &Instruction) -> SliceProblem {
    SliceProblem::Access { line: instruction.line, opcode: instruction.opcode.text().to_owned() }
}

/// Special registers that are the same in every kernel of a launch's shape.
const NUMBERS: [&str; 6] = ["%tid.", "%ntid.", "%ctaid.", "%nctaid.", "%laneid", "%lanemask_"];

/// Pairs of an instruction and a branch over it that are looked at. They take 128 MB.
const MOST_CONDITIONS: usize = 1 << 24;

/// The pseudo register of `add.cc` and `addc`.
const CARRY: &str = "%cc";

/// Where registers have their values from.
struct Origins<'a> {
    entry: &'a PtxFunction,
    instructions: Vec<&'a Instruction>,
    /// Bits by register or, for `%r<5>`, by the name of all.
    registers: HashMap<&'a str, u32>,
    /// The instructions that write a register.
    writers: HashMap<&'a str, Vec<usize>>,
}

/// What an address may be made of.
#[derive(Default)]
struct AddressParts {
    pointers: BTreeSet<PointerPlace>,
    /// Whether it may be that of a variable, or of a parameter itself.
    has_variable: bool,
    /// Whether it may be anything.
    has_other: bool,
}

impl<'a> Origins<'a> {
    fn new(entry: &'a PtxFunction, body: &'a Body, flow: &ControlFlow<'a>) -> Self {
        let mut registers: HashMap<&str, u32> = HashMap::new();
        for statement in &body.statements {
            if let Statement::Registers(declared) = statement {
                let bits = if declared.scalar == Scalar::Pred { 1 } else { declared.scalar.size() * 8 };
                // A name may be declared again in an inner scope.
                let known = registers.entry(&declared.name).or_default();
                *known = bits.max(*known);
            }
        }
        let mut writers: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, instruction) in flow.instructions.iter().enumerate() {
            let has_result =
                !matches!(instruction.opcode.class(), Class::Store | Class::Reduction | Class::ControlFlow);
            let results = instruction.operands.first().filter(|_| has_result).map(written_names).unwrap_or_default();
            let carry = gives_carry(instruction).then_some(CARRY);
            results.into_iter().chain(carry).for_each(|name| writers.entry(name).or_default().push(at));
        }
        Self { entry, instructions: flow.instructions.clone(), registers, writers }
    }

    /// Bits of a register; none if the name is something else.
    fn register_bits(&self, name: &str) -> Option<u32> {
        let family = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
        self.registers.get(name).or_else(|| self.registers.get(family)).copied()
    }

    fn parameter(&self, name: &str) -> Option<usize> {
        self.entry.parameters.iter().position(|parameter| *parameter.name == *name)
    }

    /// The access of an instruction to memory that the arguments lead to, and the pointers that
    /// it goes through.
    fn access(
        &self,
        instruction: &'a Instruction,
    ) -> Result<Option<(GlobalAccess<'a>, BTreeSet<PointerPlace>)>, SliceProblem> {
        let Some((operand, bytes)) = accessed_operand(instruction)? else { return Ok(None) };
        let root_problem =
            || SliceProblem::Root { line: instruction.line, opcode: instruction.opcode.text().to_owned() };
        let Some(Operand::Address { base: Some(base), offset }) = operand else { return Err(root_problem()) };
        // A variable, or a parameter.
        if self.register_bits(base).is_none() {
            return Ok(None);
        }
        let parts = self.address_parts(base);
        match (parts.has_other, parts.pointers.is_empty(), parts.has_variable) {
            (false, true, true) => Ok(None),
            (false, false, _) => Ok(Some((GlobalAccess { base, offset: *offset, bytes, row: 0 }, parts.pointers))),
            _ => Err(root_problem()),
        }
    }

    /// Follows the sums that end in an address; factors are no addresses.
    fn address_parts(&self, base: &'a str) -> AddressParts {
        let mut parts = AddressParts::default();
        let (mut pending, mut seen) = (vec![base], HashSet::from([base]));
        while let Some(name) = pending.pop() {
            for &at in self.writers.get(name).into_iter().flatten() {
                for operand in self.summands(self.instructions[at], &mut parts) {
                    match operand {
                        Operand::Integer(_) => {}
                        Operand::Name(name) => match self.register_bits(name) {
                            Some(64) if seen.insert(name) => pending.push(name),
                            Some(_) => {}
                            None => parts.has_variable = true,
                        },
                        Operand::Displaced(..) => parts.has_variable = true,
                        _ => parts.has_other = true,
                    }
                }
            }
        }
        parts
    }

    /// The operands of an instruction that its result is a sum of; notes the pointer that it loads.
    fn summands(&self, instruction: &'a Instruction, parts: &mut AddressParts) -> &'a [Operand] {
        use Mnemonic::{Add, And, Cvt, Cvta, Div, Ld, Mad, Max, Min, Mov, Mul, Or, Rem, Selp, Shl, Shr, Sub, Xor};
        let sources = instruction.operands.get(1..).unwrap_or_default();
        let opcode = &instruction.opcode;
        match opcode.mnemonic {
            // From the window of a block or a thread.
            Cvta if opcode.modifiers().next() != Some("to")
                && opcode.spaces().all(|space| space != StateSpace::Global) =>
            {
                parts.has_variable = true;
                &[]
            }
            Mov | Cvt | Cvta | Add | Sub | Min | Max | And | Or | Xor | Selp => sources,
            Mad => sources.get(2..).unwrap_or_default(),
            Mul | Shl | Shr | Div | Rem => &[],
            Ld if opcode.spaces().eq([StateSpace::Param]) && opcode.types().all(|kind| kind.size() == 8) => {
                match sources {
                    [Operand::Address { base: Some(base), offset }] => {
                        let place = self.parameter(base).zip(u64::try_from(*offset).ok());
                        parts.has_other |= place.is_none();
                        parts.pointers.extend(place);
                    }
                    _ => parts.has_other = true,
                }
                &[]
            }
            _ => {
                parts.has_other = true;
                &[]
            }
        }
    }
}

/// The operand with the address that an instruction accesses in global memory, and how many
/// bytes there.
fn accessed_operand(instruction: &Instruction) -> Result<Option<(Option<&Operand>, u64)>, SliceProblem> {
    let opcode = &instruction.opcode;
    let mut addresses =
        instruction.operands.iter().filter(|operand| matches!(operand, Operand::Address { .. } | Operand::Brackets(_)));
    let is_global = opcode.spaces().any(|space| space == StateSpace::Global);
    let is_generic = opcode.spaces().next().is_none();
    match (opcode.class(), opcode.mnemonic) {
        (Class::Load | Class::Store | Class::Atomic | Class::Reduction, _) => {
            let bytes = access_width(opcode).ok_or_else(|| access_problem(instruction))?;
            Ok((bytes > 0).then(|| (addresses.next(), bytes)))
        }
        (Class::AsyncCopy, Mnemonic::CpAsync) if is_global => match instruction.operands.get(2) {
            Some(Operand::Integer(bytes)) => Ok(Some((addresses.nth(1), *bytes))),
            _ => Err(access_problem(instruction)),
        },
        (Class::AsyncCopy, _) if is_global => Err(access_problem(instruction)),
        (Class::Multimem | Class::Texture | Class::Surface | Class::Unknown, _)
        | (_, Mnemonic::Discard | Mnemonic::Tensormap) => Err(access_problem(instruction)),
        (_, Mnemonic::WmmaLoad | Mnemonic::WmmaStore) if is_global || is_generic => Err(access_problem(instruction)),
        (_, Mnemonic::Call) if instruction.callee() != Some(ASSERTION) => Err(access_problem(instruction)),
        (_, Mnemonic::Brx) => Err(flow_problem(instruction)),
        _ => Ok(None),
    }
}

/// Collects what accesses depend on.
struct Needs<'s, 'a> {
    origins: &'s Origins<'a>,
    /// By instruction: the branches that decide whether it is executed.
    conditions: Vec<Vec<usize>>,
    is_needed: Vec<bool>,
    pending: Vec<usize>,
    names: HashSet<&'a str>,
}

impl<'s, 'a> Needs<'s, 'a> {
    fn new(origins: &'s Origins<'a>, flow: &ControlFlow<'a>, after: &[Option<usize>]) -> Result<Self, SliceProblem> {
        let count = flow.instructions.len();
        let (mut conditions, mut total) = (vec![Vec::new(); count], 0);
        for (branch, successors) in flow.successors.iter().enumerate().filter(|(_, next)| next.len() > 1) {
            for &next in successors {
                let mut at = Some(next);
                while let Some(passed) = at.filter(|&at| at < count && Some(at) != after[branch]) {
                    conditions[passed].push(branch);
                    total += 1;
                    at = after[passed];
                }
            }
            if total > MOST_CONDITIONS {
                return Err(flow_problem(flow.instructions[branch]));
            }
        }
        Ok(Self { origins, conditions, is_needed: vec![false; count], pending: Vec::new(), names: HashSet::new() })
    }

    fn add_instruction(&mut self, at: usize) {
        if !std::mem::replace(&mut self.is_needed[at], true) {
            self.pending.push(at);
        }
    }

    /// Adds the branches that decide whether an instruction is executed.
    fn add_conditions(&mut self, at: usize) {
        for branch in std::mem::take(&mut self.conditions[at]) {
            self.add_instruction(branch);
        }
    }

    fn add_guard(&mut self, instruction: &'a Instruction) -> Result<(), SliceProblem> {
        instruction.guard.iter().try_for_each(|guard| self.add_name(instruction, &guard.register))
    }

    /// Adds what a name in an instruction stands for.
    fn add_name(&mut self, instruction: &Instruction, name: &'a str) -> Result<(), SliceProblem> {
        let is_register = name == CARRY || self.origins.register_bits(name).is_some();
        let is_number = NUMBERS.iter().any(|number| name.starts_with(number));
        if !is_register && !is_number && self.origins.parameter(name).is_none() {
            return Err(SliceProblem::Name { line: instruction.line, name: name.to_owned() });
        }
        if self.names.insert(name) {
            let origins = self.origins;
            origins.writers.get(name).into_iter().flatten().for_each(|&at| self.add_instruction(at));
        }
        Ok(())
    }

    /// Follows all that was added; returns by instruction whether it is needed.
    fn follow(mut self) -> Result<Vec<bool>, SliceProblem> {
        while let Some(at) = self.pending.pop() {
            let instruction = self.origins.instructions[at];
            self.add_conditions(at);
            self.add_guard(instruction)?;
            if instruction.opcode.mnemonic == Mnemonic::Bra || instruction.leaves() {
                continue;
            }
            if !has_foreseeable_result(instruction) {
                return Err(SliceProblem::Result {
                    line: instruction.line,
                    opcode: instruction.opcode.text().to_owned(),
                });
            }
            for name in instruction.operands.iter().skip(1).flat_map(Operand::names) {
                self.add_name(instruction, name)?;
            }
            if takes_carry(instruction) {
                self.add_name(instruction, CARRY)?;
            }
        }
        Ok(self.is_needed)
    }
}

/// Refuses loads and branches of the slice that depend on loads of memory that might change.
fn check_changing(
    flow: &ControlFlow<'_>,
    is_needed: &[bool],
    is_watched: impl Fn(usize) -> bool,
) -> Result<(), SliceProblem> {
    let needed = || flow.instructions.iter().enumerate().filter(|(at, _)| is_needed[*at]);
    let mut changing: HashSet<&str> = HashSet::new();
    let mut count = usize::MAX;
    while std::mem::replace(&mut count, changing.len()) != changing.len() {
        for (at, instruction) in needed() {
            let is_jump = instruction.opcode.mnemonic == Mnemonic::Bra || instruction.leaves();
            let mut sources = instruction.operands.iter().skip(1).flat_map(Operand::names);
            let guard = instruction.guard.as_ref().map(|guard| &*guard.register);
            let is_carried = takes_carry(instruction) && changing.contains(CARRY);
            let depends = guard.is_some_and(|name| changing.contains(name))
                || is_carried
                || !is_jump && sources.any(|name| changing.contains(name));
            if depends && (is_jump || instruction.opcode.class() == Class::Load) {
                let (line, opcode) = (instruction.line, instruction.opcode.text().to_owned());
                return Err(SliceProblem::Changing { line, opcode });
            }
            if depends || is_watched(at) {
                changing.extend(instruction.operands.first().map(written_names).unwrap_or_default());
                changing.extend(gives_carry(instruction).then_some(CARRY));
            }
        }
    }
    Ok(())
}

fn takes_carry(instruction: &Instruction) -> bool {
    matches!(instruction.opcode.mnemonic, Mnemonic::Addc | Mnemonic::Subc | Mnemonic::Madc)
}

fn gives_carry(instruction: &Instruction) -> bool {
    instruction.opcode.modifiers().any(|part| part == "cc")
}

/// Tells whether an instruction loads what stays the same while the kernel runs.
fn is_constant_load(instruction: &Instruction) -> bool {
    let opcode = &instruction.opcode;
    let is_read_only = || opcode.spaces().eq([StateSpace::Global]) && opcode.modifiers().any(|part| part == "nc");
    opcode.class() == Class::Load && (opcode.spaces().eq([StateSpace::Param]) || is_read_only())
}

/// Tells whether an instruction gives the same in every kernel with the same operands, as long as
/// memory is the same. ptxas may contract floating-point arithmetic differently.
fn has_foreseeable_result(instruction: &Instruction) -> bool {
    use crate::ptx::Scalar::{Bf16, Bf16x2, F16, F16x2, F32, F32x2, F64};
    let opcode = &instruction.opcode;
    let is_float = |kind: Scalar| matches!(kind, F16 | F16x2 | Bf16 | Bf16x2 | F32 | F32x2 | F64);
    match opcode.class() {
        Class::Arithmetic => !opcode.types().any(is_float),
        Class::Comparison | Class::Logic | Class::Move | Class::Conversion => true,
        // A load with an order waits for another thread.
        Class::Load => {
            let is_weak = opcode.semantics().is_none_or(|semantics| semantics == Semantics::Weak);
            is_constant_load(instruction) || is_weak && opcode.spaces().all(|space| space == StateSpace::Global)
        }
        _ => false,
    }
}
