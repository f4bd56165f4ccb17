//! Single instructions: opcode, modifiers and operands -> [`ProgramStep`].

use super::{Decoder, Names, Target};
use crate::ptx::{ASSERTION, AccessKind, Initial, Instruction, MemorySpace, Mnemonic, Operand, Scalar, StateSpace};
use crate::sim::operation;
use crate::sim::operation::{Alu, Combine, Compare, Mode, bit_count, is_float};
use crate::sim::program::blank_step;
use crate::sim::program::{
    Callee, Collective, MemoryAccess, Operation, ParameterLocation, ProgramStep, Reduction, RoutineCall, Shuffle, Slot,
    Update, Vote, Window,
};

impl<'m> Decoder<'m> {
    pub(super) fn decode_step(&mut self, instruction: &'m Instruction, names: &mut Names<'m>) -> ProgramStep {
        let mut step = match self.decode_operation(instruction, names) {
            Some(step) => step,
            None => self.opaque_step(instruction, None, names),
        };
        step.line = instruction.line;
        if let Some(guard) = &instruction.guard {
            step.guard = self.register_slot(&guard.register, names).map_or(0, |(slot, ..)| slot);
            step.negated = guard.negated;
        }
        step
    }

    /// An instruction whose destination (its first operand, if registers) becomes unknown.
    fn opaque_step(
        &mut self,
        i: &'m Instruction,
        space: Option<(MemorySpace, AccessKind, u32)>,
        names: &Names<'m>,
    ) -> ProgramStep {
        let mut targets = Vec::new();
        if let Some(first) = i.operands.first() {
            self.add_destinations(first, names, &mut targets);
        }
        let (list, count) = self.push_list(&targets);
        blank_step(Operation::Opaque { list, count, space }, i.line)
    }

    fn add_destinations(&mut self, operand: &Operand, names: &Names<'m>, into: &mut Vec<Slot>) {
        match operand {
            Operand::Name(name) => {
                if let Some((slot, _, lanes)) = self.register_slot(name, names) {
                    into.extend(slot..slot + u32::from(lanes));
                }
            }
            Operand::Vector(list) | Operand::Group(list) => {
                list.iter().for_each(|item| self.add_destinations(item, names, into));
            }
            Operand::Pair(first, second) => {
                self.add_destinations(first, names, into);
                self.add_destinations(second, names, into);
            }
            _ => {}
        }
    }

    fn target_slot(&mut self, operand: &Operand, names: &Names<'m>) -> Option<Slot> {
        match operand {
            Operand::Name(name) => self.register_slot(name, names).map(|(slot, ..)| slot),
            Operand::Sink => Some(0),
            Operand::Pair(first, _) => self.target_slot(first, names),
            _ => None,
        }
    }

    fn decode_operation(&mut self, i: &'m Instruction, names: &mut Names<'m>) -> Option<ProgramStep> {
        use crate::ptx::Mnemonic::*;
        let mnemonic = i.opcode.mnemonic;
        let modifiers: Vec<&str> = i.opcode.modifiers().collect();
        let has = |word: &str| modifiers.contains(&word);
        let operand = |index: usize| i.operands.get(index);
        let simple = |operation| Some(blank_step(operation, i.line));
        match mnemonic {
            Bra => {
                let Operand::Name(label) = operand(0)? else {
                    return None;
                };
                simple(names.find_step(label).map_or(Operation::Exit, Operation::Branch))
            }
            Brx => self.branch_table(i, names),
            Call => self.decode_call(i, names),
            Ret => simple(Operation::Return),
            Exit => simple(Operation::Exit),
            Trap => {
                self.program.traps.push(self.program.steps.len() as u32);
                simple(Operation::Exit)
            }
            Bar | Barrier => self.decode_barrier(i, &modifiers, names),
            BarWarp | Shfl | Vote | Match | Redux | Activemask | Elect => self.decode_collective(i, &modifiers, names),
            Membar | Fence | BarrierCluster | Prefetch | Prefetchu | Brkpt | Nanosleep | Pmevent | Discard
            | Applypriority | Griddepcontrol | Setmaxnreg | Stackrestore => simple(Operation::Nothing),
            Ld | Ldu => self.decode_load(i, &modifiers, names),
            St | StAsync | StBulk => self.decode_store(i, &modifiers, names),
            Atom => self.decode_atomic(i, &modifiers, true, names),
            Red => self.decode_atomic(i, &modifiers, false, names),
            Cvta => {
                let window = parse_window(&modifiers);
                let operation = if has("to") { Operation::FromGeneric(window) } else { Operation::ToGeneric(window) };
                let kind = if has("u32") { Scalar::U32 } else { Scalar::U64 };
                let target = self.target_slot(operand(0)?, names)?;
                let source = self.source_slot(operand(1)?, kind, names)?;
                Some(ProgramStep { target, sources: [source, 0, 0, 0], ..blank_step(operation, i.line) })
            }
            Isspacep => {
                let target = self.target_slot(operand(0)?, names)?;
                let source = self.source_slot(operand(1)?, Scalar::B64, names)?;
                let operation = Operation::InSpace(parse_window(&modifiers));
                Some(ProgramStep { target, sources: [source, 0, 0, 0], ..blank_step(operation, i.line) })
            }
            Setp => self.set_predicate(i, &modifiers, names),
            Mov if matches!(operand(1), Some(Operand::Vector(_))) => {
                let kind = Scalar::from_name(modifiers.last()?)?;
                let list = self.operand_slots(operand(1)?, Scalar::B64, names)?;
                let width = bit_count(kind) / (list.len() as u32).max(1);
                let (list, count) = self.push_list(&list);
                let target = self.target_slot(operand(0)?, names)?;
                Some(ProgramStep { target, ..blank_step(Operation::Pack { list, count, width }, i.line) })
            }
            Mov if matches!(operand(0), Some(Operand::Vector(_))) => {
                let kind = Scalar::from_name(modifiers.last()?)?;
                let list = self.operand_slots(operand(0)?, kind, names)?;
                let width = bit_count(kind) / (list.len() as u32).max(1);
                let (list, count) = self.push_list(&list);
                let source = self.source_slot(operand(1)?, kind, names)?;
                let operation = Operation::Unpack { list, count, width };
                Some(ProgramStep { sources: [source, 0, 0, 0], ..blank_step(operation, i.line) })
            }
            Addc | Subc | Madc | Add | Sub | Mad if has("cc") || without_carry(mnemonic) != mnemonic => {
                let plain = without_carry(mnemonic);
                let (alu, kind) = operation::parse_arithmetic(plain, &modifiers)?;
                let operation = Operation::Carry { alu, kind, takes: plain != mnemonic, gives: has("cc") };
                self.decode_arithmetic(i, operation, kind, names)
            }
            Tex | Tld4 | Suld | Txq => {
                Some(self.opaque_step(i, Some((MemorySpace::Texture, AccessKind::Load, 4)), names))
            }
            Sust | Sured => Some(blank_step(
                Operation::Opaque { list: 0, count: 0, space: Some((MemorySpace::Texture, AccessKind::Store, 4)) },
                i.line,
            )),
            _ => {
                let (alu, kind) = operation::parse_arithmetic(mnemonic, &modifiers)?;
                if bit_count(kind) > 64 {
                    return None;
                }
                let mode = Mode::from_modifiers(&modifiers);
                self.decode_arithmetic(i, Operation::Alu { alu, kind, mode }, kind, names)
            }
        }
    }

    fn decode_arithmetic(
        &mut self,
        i: &'m Instruction,
        operation: Operation,
        kind: Scalar,
        names: &Names<'m>,
    ) -> Option<ProgramStep> {
        let target = self.target_slot(i.operands.first()?, names)?;
        if i.operands.len() > 5 {
            return None;
        }
        let source_kind = match operation {
            Operation::Alu { alu: Alu::Convert { from } | Alu::ConvertPair { from }, .. } => from,
            Operation::Alu { alu: Alu::MadWide | Alu::MulWide, .. } => Scalar::B64,
            _ => kind,
        };
        let mut sources = [0; 4];
        for (index, (slot, operand)) in sources.iter_mut().zip(&i.operands[1..]).enumerate() {
            let kind = match operation {
                // The predicate of a selection, the deciding operand of `slct`, amounts and
                // positions.
                Operation::Alu { alu: Alu::Select | Alu::SelectSign | Alu::Bfe | Alu::Bfi, .. } if index >= 2 => {
                    Scalar::B32
                }
                Operation::Alu { alu: Alu::ShiftLeft | Alu::ShiftRight | Alu::Bfe, .. } if index == 1 => Scalar::B32,
                _ => source_kind,
            };
            *slot = self.source_slot(operand, kind, names)?;
        }
        let event = matches!(operation, Operation::Alu { alu: Alu::Min | Alu::Max, kind, .. } if !is_float(kind));
        Some(ProgramStep { target, sources, event, ..blank_step(operation, i.line) })
    }

    fn set_predicate(&mut self, i: &'m Instruction, modifiers: &[&str], names: &Names<'m>) -> Option<ProgramStep> {
        let compare = modifiers.iter().find_map(|m| Compare::from_name(m))?;
        let kind = modifiers.iter().rev().find_map(|m| Scalar::from_name(m))?;
        let combine = modifiers.iter().find_map(|m| match *m {
            "and" => Some(Combine::And),
            "or" => Some(Combine::Or),
            "xor" => Some(Combine::Xor),
            _ => None,
        });
        let mut targets = Vec::new();
        self.add_destinations(i.operands.first()?, names, &mut targets);
        let target = self.target_slot(i.operands.first()?, names)?;
        let second = match i.operands.first() {
            Some(Operand::Pair(_, second)) => self.target_slot(second, names)?,
            _ => 0,
        };
        let a = self.source_slot(i.operands.get(1)?, kind, names)?;
        let b = self.source_slot(i.operands.get(2)?, kind, names)?;
        let (c, invert) = match i.operands.get(3) {
            Some(Operand::Not(inner)) => (self.source_slot(inner, Scalar::Pred, names)?, true),
            Some(operand) => (self.source_slot(operand, Scalar::Pred, names)?, false),
            None => (0, false),
        };
        let combine = if i.operands.len() > 3 { combine? } else { Combine::None };
        let operation = Operation::SetPredicate { compare, kind, combine, invert, second };
        Some(ProgramStep { target, sources: [a, b, c, 0], event: true, ..blank_step(operation, i.line) })
    }

    /// Base slot, offset and window of an address operand.
    fn decode_address(
        &mut self,
        operand: &'m Operand,
        mut place: Window,
        names: &Names<'m>,
    ) -> Option<(Slot, i64, Window)> {
        let Operand::Address { base, offset } = operand else {
            return None;
        };
        let Some(name) = base else {
            return Some((0, *offset, place));
        };
        if let Some((slot, ..)) = self.register_slot(name, names) {
            return Some((slot, *offset, place));
        }
        let (window, address, _) = self.variable_address(name, names)?;
        if place == Window::Generic {
            place = window;
        }
        Some((0, (address as i64).wrapping_add(*offset), place))
    }

    fn decode_memory(
        &mut self,
        address: &'m Operand,
        values: Option<&'m Operand>,
        modifiers: &[&str],
        names: &Names<'m>,
    ) -> Option<(MemoryAccess, Slot)> {
        let scalar = modifiers.iter().rev().find_map(|m| Scalar::from_name(m))?;
        if bit_count(scalar) > 64 {
            return None;
        }
        let (slot, offset, window) = self.decode_address(address, parse_window(modifiers), names)?;
        let slots = match values {
            Some(values) => self.operand_slots(values, scalar, names)?,
            None => Vec::new(),
        };
        let (list, count) = self.push_list(&slots);
        Some((MemoryAccess { window, scalar, list, count, offset }, slot))
    }

    fn decode_load(&mut self, i: &'m Instruction, modifiers: &[&str], names: &Names<'m>) -> Option<ProgramStep> {
        // A second operand of the address list is a cache policy.
        let (memory, base) = self.decode_memory(i.operands.get(1)?, i.operands.first(), modifiers, names)?;
        Some(ProgramStep { sources: [base, 0, 0, 0], ..blank_step(Operation::Load(memory), i.line) })
    }

    fn decode_store(&mut self, i: &'m Instruction, modifiers: &[&str], names: &Names<'m>) -> Option<ProgramStep> {
        let (memory, base) = self.decode_memory(i.operands.first()?, i.operands.get(1), modifiers, names)?;
        Some(ProgramStep { sources: [base, 0, 0, 0], ..blank_step(Operation::Store(memory), i.line) })
    }

    fn decode_atomic(
        &mut self,
        i: &'m Instruction,
        modifiers: &[&str],
        returns: bool,
        names: &Names<'m>,
    ) -> Option<ProgramStep> {
        let update = modifiers.iter().find_map(|m| parse_update(m))?;
        let first = usize::from(returns);
        let (memory, base) = self.decode_memory(i.operands.get(first)?, None, modifiers, names)?;
        let target = if returns { self.target_slot(i.operands.first()?, names)? } else { 0 };
        let a = self.source_slot(i.operands.get(first + 1)?, memory.scalar, names)?;
        let b = match i.operands.get(first + 2) {
            Some(operand) if update == Update::CompareSwap => self.source_slot(operand, memory.scalar, names)?,
            _ => 0,
        };
        Some(ProgramStep {
            target,
            sources: [base, a, b, 0],
            ..blank_step(Operation::Atomic { memory, update }, i.line)
        })
    }

    fn decode_barrier(&mut self, i: &'m Instruction, modifiers: &[&str], names: &Names<'m>) -> Option<ProgramStep> {
        let has = |word: &str| modifiers.contains(&word);
        let reduction = match () {
            () if !has("red") => None,
            () if has("popc") => Some(Reduction::Count),
            () if has("and") => Some(Reduction::All),
            () => Some(Reduction::Any),
        };
        let mut operands = i.operands.as_slice();
        let (mut target, mut predicate, mut invert) = (0, 0, false);
        if reduction.is_some() {
            let ([first, rest @ ..], [.., last]) = (operands, operands) else { return None };
            target = self.target_slot(first, names)?;
            (predicate, invert) = self.decode_inverted(last, names)?;
            operands = rest.get(..rest.len().checked_sub(1)?)?;
        }
        let number = |decoder: &mut Self, operand: Option<&'m Operand>| match operand {
            Some(operand) => decoder.source_slot(operand, Scalar::U32, names),
            None => Some(0),
        };
        let sources = [number(self, operands.first())?, number(self, operands.get(1))?, predicate, 0];
        let operation = Operation::Barrier { waits: !has("arrive"), reduction, invert };
        Some(ProgramStep { target, sources, ..blank_step(operation, i.line) })
    }

    /// A predicate that may have a `!` before it.
    fn decode_inverted(&mut self, operand: &'m Operand, names: &Names<'m>) -> Option<(Slot, bool)> {
        match operand {
            Operand::Not(inner) => Some((self.source_slot(inner, Scalar::Pred, names)?, true)),
            operand => Some((self.source_slot(operand, Scalar::Pred, names)?, false)),
        }
    }

    fn decode_collective(&mut self, i: &'m Instruction, modifiers: &[&str], names: &Names<'m>) -> Option<ProgramStep> {
        let has = |word: &str| modifiers.contains(&word);
        let kind = modifiers.iter().rev().find_map(|m| Scalar::from_name(m)).unwrap_or(Scalar::B32);
        let collective = match i.opcode.mnemonic {
            Mnemonic::Shfl => Collective::Shuffle(match () {
                () if has("up") => Shuffle::Up,
                () if has("down") => Shuffle::Down,
                () if has("bfly") => Shuffle::Butterfly,
                () if has("idx") => Shuffle::Index,
                () => return None,
            }),
            Mnemonic::Vote => Collective::Vote(match () {
                () if has("all") => Vote::All,
                () if has("any") => Vote::Any,
                () if has("uni") => Vote::Uniform,
                () if has("ballot") => Vote::Ballot,
                () => return None,
            }),
            Mnemonic::Match => Collective::Match { all: has("all"), width: bit_count(kind) },
            Mnemonic::Redux if !is_float(kind) => {
                Collective::Reduce { update: modifiers.iter().find_map(|m| parse_update(m))?, kind }
            }
            Mnemonic::Activemask => Collective::Active,
            Mnemonic::Elect => Collective::Elect,
            Mnemonic::BarWarp => Collective::SyncWarp,
            _ => return None,
        };
        let operands = i.operands.as_slice();
        let (result, operands) = match (collective, operands) {
            (Collective::SyncWarp, _) => (None, operands),
            (_, [result, rest @ ..]) => (Some(result), rest),
            _ => return None,
        };
        let target = result.map_or(Some(0), |result| self.target_slot(result, names))?;
        let second = match result {
            Some(Operand::Pair(_, second)) => self.target_slot(second, names)?,
            _ => 0,
        };
        // Without `.sync` whoever is there takes part.
        let (operands, mask) = match operands {
            [rest @ .., mask] if has("sync") => (rest, self.source_slot(mask, Scalar::B32, names)?),
            operands => (operands, self.slot_of_constant(0xffff_ffff)),
        };
        let mut sources = [0, 0, 0, mask];
        let mut invert = false;
        for (index, (source, operand)) in sources.iter_mut().zip(operands).take(3).enumerate() {
            (*source, invert) = match collective {
                Collective::Vote(_) => self.decode_inverted(operand, names)?,
                _ => (self.source_slot(operand, if index == 0 { kind } else { Scalar::B32 }, names)?, false),
            };
        }
        let operation = Operation::Collective { collective, second, invert };
        Some(ProgramStep { target, sources, ..blank_step(operation, i.line) })
    }

    fn branch_table(&mut self, i: &'m Instruction, names: &Names<'m>) -> Option<ProgramStep> {
        let source = self.source_slot(i.operands.first()?, Scalar::U32, names)?;
        let Operand::Name(label) = i.operands.get(1)? else {
            return None;
        };
        let Some(Target::Table(table)) = names.find_label(label) else {
            return None;
        };
        let targets: Option<Vec<u32>> = table.iter().map(|name| names.find_step(name)).collect();
        let (list, count) = self.push_list(&targets?);
        Some(ProgramStep { sources: [source, 0, 0, 0], ..blank_step(Operation::BranchTable { list, count }, i.line) })
    }

    fn decode_call(&mut self, i: &'m Instruction, names: &Names<'m>) -> Option<ProgramStep> {
        let mut operands = i.operands.iter().peekable();
        let results = match operands.peek() {
            Some(Operand::Group(list)) => {
                operands.next();
                list.as_slice()
            }
            _ => &[],
        };
        let Operand::Name(name) = operands.next()? else {
            return None;
        };
        let arguments = match operands.next() {
            Some(Operand::Group(list)) => list.as_slice(),
            _ => &[],
        };
        let callee = match self.register_slot(name, names) {
            Some((slot, ..)) => {
                // Whatever an indirect call may reach has to be decoded.
                if names.function == 0 {
                    self.number_addressable();
                }
                Callee::Indirect(slot)
            }
            None => match self.function_index(name) {
                Some(function) => Callee::Function(function),
                None if &**name == ASSERTION => Callee::Assertion,
                None => Callee::Unknown,
            },
        };
        let mut passing = |list: &'m [Operand]| -> Vec<ParameterLocation> {
            list.iter()
                .map(|operand| {
                    if let Operand::Name(name) = operand
                        && let Some((Window::Param, address, size)) = self.variable_address(name, names)
                    {
                        return ParameterLocation::Param(address, size);
                    }
                    ParameterLocation::Slot(self.source_slot(operand, Scalar::B64, names).unwrap_or(0))
                })
                .collect()
        };
        let (results, arguments) = (passing(results), passing(arguments));
        self.program.calls.push(RoutineCall { callee, results, arguments });
        let index = self.program.calls.len() as u32 - 1;
        Some(blank_step(Operation::Call(index), i.line))
    }

    /// Functions named in initialisers already have numbers; nothing else can be reached
    /// through a register but what a `mov` names, and decoding that gives it a number too.
    fn number_addressable(&mut self) {
        for variable in &self.module.variables {
            for (_, value) in variable.initial.iter().flatten() {
                if let Initial::Address { name, .. } = value
                    && !self.symbols.contains_key(&**name)
                {
                    self.function_index(name);
                }
            }
        }
    }
}

fn parse_update(modifier: &str) -> Option<Update> {
    Some(match modifier {
        "add" => Update::Add,
        "min" => Update::Min,
        "max" => Update::Max,
        "and" => Update::And,
        "or" => Update::Or,
        "xor" => Update::Xor,
        "exch" => Update::Exchange,
        "cas" => Update::CompareSwap,
        "inc" => Update::Increment,
        "dec" => Update::Decrement,
        _ => return None,
    })
}

fn parse_window(modifiers: &[&str]) -> Window {
    match modifiers.iter().find_map(|modifier| StateSpace::from_modifier(modifier)) {
        Some(StateSpace::Global) => Window::Global,
        Some(StateSpace::Shared) => Window::Shared,
        Some(StateSpace::Local) => Window::Local,
        Some(StateSpace::Const) => Window::Const,
        Some(StateSpace::Param) => Window::Param,
        Some(StateSpace::Texture) | None => Window::Generic,
    }
}

/// Returns the operation of `addc`, `subc` or `madc` without the carry; another mnemonic as it
/// is.
fn without_carry(mnemonic: Mnemonic) -> Mnemonic {
    match mnemonic {
        Mnemonic::Addc => Mnemonic::Add,
        Mnemonic::Subc => Mnemonic::Sub,
        Mnemonic::Madc => Mnemonic::Mad,
        other => other,
    }
}
