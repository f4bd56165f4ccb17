//! PTX -> whether a kernel does the same in a grid of any number of blocks.
//!
//! That is proved of one form, the grid-stride loop: a thread takes the items `position`,
//! `position + threads of the launch` and so on, below a bound that all threads share. The
//! proof is that
//!
//! - nothing is written outside that loop, and a thread leaves before it only if it has no item;
//! - what is done with an item depends on its number, on the arguments and on memory alone, and
//!   on nothing that the thread has kept of the item before;
//! - no item reads or writes what another one writes. So it makes no difference that one thread
//!   does some of the items in their order.
//!
//! The launch has one dimension: its block and its grid extend in x alone.

use super::item_value::{ItemValue, Shared, is_wide};
use super::register_use::{read_names, written_names};
use super::single_loop::{SingleLoop, branch_target};
use crate::ptx::opcode::{Class, Mnemonic, ProductPart, Semantics};
use crate::ptx::{Instruction, Module, Opcode, Operand, Parameter, Scalar, StateSpace};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What a grid-stride loop needs of a launch to be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridStride {
    /// The largest number that the loop's index can be; `None` for an index of 64 bits. The
    /// index goes beyond the bound by less than the threads of the launch.
    pub index_limit: Option<i64>,
    /// The parameter that is the bound; `None` for a bound that is computed.
    pub bound: Option<usize>,
    /// The parameters through which memory is written that would have to be apart from other
    /// memory that the kernel uses.
    pub must_not_alias: BTreeSet<usize>,
}

/// Finds out whether a kernel is a grid-stride loop and nothing else.
pub fn find(module: &Module, symbol: &str) -> Option<GridStride> {
    let entry = module.entry(symbol)?;
    let bound = |name: &str| name == ".reqntid" || name.contains("cluster");
    if entry.directives.iter().any(|directive| bound(&directive.name)) {
        return None;
    }
    let code = SingleLoop::new(&entry.body.as_ref()?.statements)?;
    let mut proof = Proof::new(&code, &entry.parameters);
    proof.follow_entry()?;
    proof.find_inductions()?;
    proof.check_bound()?;
    proof.follow_loop()?;
    proof.check_kept()?;
    proof.conclude()
}

/// Whether instructions of a class only compute registers from registers.
pub(super) fn is_computation(class: Class) -> bool {
    matches!(class, Class::Arithmetic | Class::Comparison | Class::Logic | Class::Move | Class::Conversion)
}

/// An access to memory that moves with the item.
#[derive(Clone, Copy, Debug)]
struct Access {
    scale: i64,
    begin: i64,
    end: i64,
}

struct Proof<'c, 'a> {
    code: &'c SingleLoop<'a>,
    parameters: &'a [Parameter],
    /// By register: the instructions that write it.
    writes: HashMap<&'a str, Vec<usize>>,
    values: HashMap<&'a str, ItemValue>,
    /// Whether what is followed is in the loop.
    is_in_loop: bool,
    /// Registers that go on from item to item, and where; what holds the number of the next one.
    inductions: HashMap<&'a str, usize>,
    next: BTreeSet<&'a str>,
    /// The number of an item is compared with it, as a number of this type.
    bound: Option<(Operand, Scalar)>,
    written: BTreeMap<usize, Vec<Access>>,
    read: BTreeMap<usize, Vec<Access>>,
    /// Parameters whose memory is read at the same or at an unknown place for each item.
    read_elsewhere: BTreeSet<usize>,
    /// Whether memory is read that no parameter points at.
    reads_variables: bool,
}

impl<'c, 'a> Proof<'c, 'a> {
    fn new(code: &'c SingleLoop<'a>, parameters: &'a [Parameter]) -> Self {
        let mut writes: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, instruction) in code.instructions.iter().enumerate() {
            for name in written_names(instruction) {
                writes.entry(name).or_default().push(index);
            }
        }
        Self {
            code,
            parameters,
            writes,
            values: HashMap::new(),
            is_in_loop: false,
            inductions: HashMap::new(),
            next: BTreeSet::new(),
            bound: None,
            written: BTreeMap::new(),
            read: BTreeMap::new(),
            read_elsewhere: BTreeSet::new(),
            reads_variables: false,
        }
    }

    /// The writes of a register before the loop, and in it.
    fn writes_of(&self, name: &str) -> (&[usize], &[usize]) {
        let all = self.writes.get(name).map_or(&[][..], Vec::as_slice);
        all.split_at(all.partition_point(|at| *at < self.code.first))
    }

    /// Follows what is executed before the loop; `None` if it writes memory, or if a thread with
    /// an item could leave.
    fn follow_entry(&mut self) -> Option<()> {
        for index in 0..self.code.first {
            let instruction = self.code.instructions[index];
            if instruction.opcode.mnemonic == Mnemonic::Bra {
                self.follow_exit(instruction)?;
                continue;
            }
            if instruction.guard.is_some() || instruction.opcode.class() == Class::Store {
                return None;
            }
            let value = self.result(instruction)?;
            for name in written_names(instruction) {
                let is_single = self.writes_of(name).0.len() == 1;
                self.values.insert(name, if is_single { value } else { ItemValue::OfLaunch });
            }
        }
        Some(())
    }

    /// A thread leaves if all do, or if its position is not below the bound.
    fn follow_exit(&mut self, branch: &Instruction) -> Option<()> {
        let guard = branch.guard.as_ref()?;
        if matches!(self.value(&guard.register), ItemValue::Shared(_)) {
            return Some(());
        }
        let (writes, _) = self.writes_of(&guard.register);
        let test = self.code.instructions[*writes.first().filter(|_| writes.len() == 1)?];
        let (index, bound, kind) = comparison_below(test, !guard.negated)?;
        let Operand::Name(index) = index else { return None };
        let is_position = self.value(index) == ItemValue::POSITION;
        (is_position && self.bound.replace((bound.clone(), kind)).is_none()).then_some(())
    }

    /// Finds the registers that go on by a multiple of the threads from item to item.
    fn find_inductions(&mut self) -> Option<()> {
        let names: Vec<&'a str> = self.writes.keys().copied().collect();
        for name in names {
            let (&[_], &[at]) = self.writes_of(name) else { continue };
            let Some(&ItemValue::Place { scale, .. }) = self.values.get(name) else { continue };
            let update = self.code.instructions[at];
            let mut added = at;
            if let (Mnemonic::Mov, Some(Operand::Name(from))) = (update.opcode.mnemonic, update.operands.get(1)) {
                let (&[], &[sum]) = self.writes_of(from) else { return None };
                added = sum;
                self.next.insert(from);
            }
            let sum = self.code.instructions[added];
            let is_by_threads = |operand: &Operand| match operand {
                Operand::Name(name) => {
                    self.value(name) == ItemValue::Threads(scale) && self.writes_of(name).1.is_empty()
                }
                _ => false,
            };
            let [_, a, b] = sum.operands.as_slice() else { return None };
            let is_own = |operand: &Operand| matches!(operand, Operand::Name(own) if self.original(own, added) == name);
            let is_sum = sum.opcode.mnemonic == Mnemonic::Add
                && sum.opcode.modifiers().count() == 1
                && (is_own(a) && is_by_threads(b) || is_own(b) && is_by_threads(a));
            let is_once = [at, added].into_iter().all(|at| at >= self.code.latch && added <= at);
            if !is_sum || !is_once || update.guard.is_some() || sum.guard.is_some() {
                return None;
            }
            self.inductions.insert(name, at);
        }
        Some(())
    }

    /// The register that one is a copy of in the loop, by instructions before this one, each of
    /// which copies what the one before it has copied for the same item.
    fn original<'n>(&'n self, mut name: &'n str, mut before: usize) -> &'n str {
        while let (&[], &[at]) = self.writes_of(name) {
            let instruction = self.code.instructions[at];
            let Some(Operand::Name(from)) = instruction.operands.get(1).filter(|_| at < before) else { break };
            let is_move = instruction.opcode.mnemonic == Mnemonic::Mov;
            match self.widened(from) {
                Some(narrow) if is_conversion(instruction, &[(Scalar::U32, Scalar::U64)]) => name = narrow,
                _ if is_move => name = from,
                _ => break,
            }
            before = at;
        }
        name
    }

    /// The register of 32 bits that a register of 64 has its number from.
    fn widened(&self, name: &str) -> Option<&'a str> {
        let &[at] = self.writes.get(name)?.as_slice() else { return None };
        let instruction = self.code.instructions[at];
        let is_wider = is_conversion(instruction, &[(Scalar::U64, Scalar::U32), (Scalar::S64, Scalar::S32)]);
        match instruction.operands.get(1) {
            Some(Operand::Name(from)) if is_wider && instruction.guard.is_none() => Some(from),
            _ => None,
        }
    }

    /// Checks that the loop goes on as long as the next item is below the bound.
    fn check_bound(&self) -> Option<()> {
        let branch = self.code.instructions[self.code.last];
        let guard = branch.guard.as_ref()?;
        let (_, &[at]) = self.writes_of(&guard.register) else { return None };
        let test = self.code.instructions[at];
        let (Operand::Name(index), bound, kind) = comparison_below(test, guard.negated)? else { return None };
        let (first_bound, first_kind) = self.bound.as_ref()?;
        let is_next = match self.inductions.get(&**index) {
            Some(updated) => *updated < at && self.values.get(&**index) == Some(&ItemValue::POSITION),
            // It is the sum that an index, and no address, is given.
            None => self.next.contains(&**index) && self.is_next_index(index),
        };
        let is_kept = |operand: &Operand| match operand {
            Operand::Name(name) => {
                self.writes_of(name).1.is_empty() && matches!(self.value(name), ItemValue::Shared(_))
            }
            Operand::Integer(_) => true,
            _ => false,
        };
        // The compiler may load the same argument again in the loop.
        let is_loaded_again =
            || self.loaded_parameter(bound).is_some_and(|loaded| self.loaded_parameter(first_bound) == Some(loaded));
        let is_same = kind == *first_kind && (bound == first_bound && is_kept(bound) || is_loaded_again());
        (at >= self.code.latch && test.guard.is_none() && is_next && is_same).then_some(())
    }

    /// The parameter that a register holds the whole of, wherever it is loaded.
    fn loaded_parameter(&self, operand: &Operand) -> Option<usize> {
        let Operand::Name(name) = operand else { return None };
        let &[at] = self.writes.get(&**name)?.as_slice() else { return None };
        let instruction = self.code.instructions[at];
        let is_load = instruction.opcode.mnemonic == Mnemonic::Ld && instruction.guard.is_none();
        is_load.then(|| self.parameter_value(instruction)).flatten()?.parameter
    }

    /// Whether a register is copied to the index, and not to an address that goes on with it.
    fn is_next_index(&self, name: &str) -> bool {
        self.inductions.iter().any(|(induction, at)| {
            let copied = self.code.instructions[*at].operands.get(1);
            matches!(copied, Some(Operand::Name(from)) if &**from == name)
                && self.values.get(induction) == Some(&ItemValue::POSITION)
        })
    }

    /// Follows the loop; `None` if an item could tell who does it.
    fn follow_loop(&mut self) -> Option<()> {
        self.is_in_loop = true;
        let (writes, inductions, first) = (&self.writes, &self.inductions, self.code.first);
        let is_kept = |name: &str| inductions.contains_key(name) || writes[name].iter().all(|at| *at < first);
        self.values.retain(|name, _| is_kept(name));
        for index in self.code.first..self.code.last {
            let instruction = self.code.instructions[index];
            let is_test = index >= self.code.latch
                && self.code.instructions[self.code.last]
                    .guard
                    .as_ref()
                    .is_some_and(|guard| written_names(instruction).contains(&&*guard.register));
            let updates = written_names(instruction)
                .iter()
                .any(|name| self.inductions.contains_key(name) || self.next.contains(name));
            if is_test || updates {
                continue;
            }
            // What follows an update would be of the next item.
            let reads = read_names(instruction);
            if reads.iter().any(|name| self.inductions.get(name).is_some_and(|updated| *updated < index)) {
                return None;
            }
            if !reads.iter().all(|name| self.is_of_item(name)) {
                return None;
            }
            let value = match instruction.opcode.mnemonic {
                Mnemonic::Bra => continue,
                _ => self.result(instruction)?,
            };
            for name in written_names(instruction) {
                let is_single = self.writes.get(name).is_some_and(|writes| writes.len() == 1);
                let is_followed = is_single && instruction.guard.is_none();
                self.values.insert(name, if is_followed { value } else { ItemValue::OfItem });
            }
        }
        Some(())
    }

    /// Whether what a name holds in the loop is the item's or shared by all.
    fn is_of_item(&self, name: &str) -> bool {
        if self.next.contains(name) {
            return false;
        }
        match self.value(name) {
            ItemValue::Shared(_) => true,
            // What is kept of the position before the loop tells the thread.
            ItemValue::Place { .. } => !self.writes_of(name).1.is_empty(),
            ItemValue::OfItem => true,
            _ => false,
        }
    }

    /// What a name holds: a register that is written further down is the item's.
    fn value(&self, name: &str) -> ItemValue {
        if let Some(value) = self.values.get(name) {
            return *value;
        }
        if self.writes.contains_key(name) {
            return if self.is_in_loop { ItemValue::OfItem } else { ItemValue::OfLaunch };
        }
        match name {
            "%tid.x" => ItemValue::Thread,
            "%ctaid.x" => ItemValue::Block,
            "%ntid.x" => ItemValue::Extent,
            "%nctaid.x" => ItemValue::Blocks,
            "%tid.y" | "%tid.z" | "%ctaid.y" | "%ctaid.z" => ItemValue::constant(0),
            "%ntid.y" | "%ntid.z" | "%nctaid.y" | "%nctaid.z" => ItemValue::constant(1),
            _ if self.is_variable(name) => ItemValue::Shared(Shared::default()),
            _ => ItemValue::OfLaunch,
        }
    }

    /// Whether a name is a variable's, which stands for its address, and not a register's.
    fn is_variable(&self, name: &str) -> bool {
        !name.starts_with('%') && !self.code.inner_registers.contains(name)
    }

    fn operand_value(&self, operand: &Operand) -> ItemValue {
        match operand {
            Operand::Integer(value) => ItemValue::constant(value.cast_signed()),
            Operand::Name(name) => self.value(name),
            _ => self.joined(&operand.names()),
        }
    }

    /// What is computed of these: shared by all, of the item, or of the launch.
    fn joined(&self, names: &[&str]) -> ItemValue {
        let mut joined = ItemValue::Shared(Shared::default());
        for name in names {
            match self.value(name) {
                ItemValue::Shared(_) => {}
                ItemValue::OfItem | ItemValue::Place { .. } if self.is_in_loop => joined = ItemValue::OfItem,
                _ => return ItemValue::OfLaunch,
            }
        }
        joined
    }

    /// What an instruction gives; `None` for one that may do more than compute, or that accesses
    /// memory in a way that is not followed.
    fn result(&mut self, instruction: &Instruction) -> Option<ItemValue> {
        let opcode = &instruction.opcode;
        match (opcode.class(), opcode.mnemonic) {
            // The carry is a register without a name.
            (_, Mnemonic::Addc | Mnemonic::Subc | Mnemonic::Madc) => None,
            (Class::Load, Mnemonic::Ld) => self.load(instruction),
            (Class::Store, Mnemonic::St) => self.store(instruction),
            (class, _) if is_computation(class) => {
                let sources = instruction.operands.get(1..)?;
                let names: Vec<&str> = sources.iter().flat_map(Operand::names).collect();
                let is_single = matches!(instruction.operands.first(), Some(Operand::Name(_)));
                let sum = is_single.then(|| self.sum(opcode, sources)).flatten();
                Some(sum.unwrap_or_else(|| self.joined(&names)))
            }
            _ => None,
        }
    }

    /// The result of integer arithmetic that is followed.
    fn sum(&self, opcode: &Opcode, sources: &[Operand]) -> Option<ItemValue> {
        use Mnemonic::{Add, Cvt, Cvta, Mad, Mov, Mul, Shl};
        use Scalar::{B32, B64, S32, S64, U32, U64};
        let types: Vec<Scalar> = opcode.types().collect();
        let values: Vec<ItemValue> = sources.iter().map(|source| self.operand_value(source)).collect();
        if opcode.mnemonic == Cvta {
            return opcode.spaces().all(|space| space == StateSpace::Global).then(|| values.first().copied())?;
        }
        if opcode.modifiers().count() != types.len() + usize::from(opcode.part().is_some()) {
            return None;
        }
        let is_number = |value: &ItemValue| matches!(value.as_constant(), Some(0 | 1));
        let is_launch =
            |value: &ItemValue| value.is_index() && !matches!(value, ItemValue::Place { .. }) || is_number(value);
        match (opcode.mnemonic, opcode.part(), &types[..], &values[..]) {
            (Mov, None, [U32 | B32 | S32 | U64 | B64 | S64], [a]) => Some(*a),
            (Cvt, None, [U64, U32] | [S64, S32], [a]) if a.is_index() || is_number(a) => Some(*a),
            (Cvt, None, [U32, U64], [a]) if a.is_index() && !self.is_in_loop => Some(*a),
            (Cvt, None, [U32, U64], _) => match sources {
                [Operand::Name(wide)] => self.widened(wide).map(|narrow| self.value(narrow)),
                _ => None,
            },
            // Sums in 32 bits may wrap, but for those that are no more than the launch's threads.
            (Add, None, [S32 | U32], [a, b]) if is_launch(a) && is_launch(b) => a.plus(*b),
            (Add, None, [S64 | U64], [a, b]) => a.plus(*b),
            (Shl, None, [B64], [a, b]) => {
                a.times(ItemValue::constant(1 << b.as_constant().filter(|bits| (0..32).contains(bits))?))
            }
            (Mul, Some(ProductPart::Low), [S32 | U32], [a, b]) if is_launch(a) && is_launch(b) => a.times(*b),
            (Mul, Some(ProductPart::Low), [S64 | U64], [a, b]) => a.times(*b),
            (Mad, Some(ProductPart::Low), [S32 | U32], [a, b, c]) if [a, b, c].into_iter().all(is_launch) => {
                a.times(*b)?.plus(*c)
            }
            (Mad, Some(ProductPart::Low), [S64 | U64], [a, b, c]) => a.times(*b)?.plus(*c),
            (Mul, Some(ProductPart::Wide), [S32 | U32], [a, b]) if is_wide(*a, *b) => a.times(*b),
            (Mad, Some(ProductPart::Wide), [S32 | U32], [a, b, c]) if is_wide(*a, *b) => a.times(*b)?.plus(*c),
            _ => None,
        }
    }

    /// The memory that an instruction accesses.
    fn accessed(&self, opcode: &Opcode, address: &Operand) -> Option<(ItemValue, i64, i64)> {
        let Operand::Address { base: Some(base), offset } = address else { return None };
        let is_weak = matches!(opcode.semantics(), None | Some(Semantics::Weak));
        let lanes = opcode.modifiers().find_map(|part| part.strip_prefix('v')?.parse().ok()).unwrap_or(1);
        let bytes = i64::from(opcode.types().next_back()?.size()) * lanes;
        is_weak.then(|| (self.value(base), *offset, bytes))
    }

    fn load(&mut self, instruction: &Instruction) -> Option<ItemValue> {
        let (opcode, address) = (&instruction.opcode, instruction.operands.get(1)?);
        let space = opcode.spaces().next()?;
        if space == StateSpace::Param {
            return self.parameter_value(instruction).map(ItemValue::Shared);
        }
        let loaded = match self.joined(&address.names()) {
            ItemValue::Shared(_) => ItemValue::Shared(Shared::default()),
            ItemValue::OfItem => ItemValue::OfItem,
            _ => return None,
        };
        // Memory that nobody writes meanwhile, by the program's or the compiler's word.
        let is_constant = space == StateSpace::Const || opcode.modifiers().any(|part| part == "nc");
        if is_constant {
            return Some(loaded);
        }
        let (value, offset, bytes) = self.accessed(opcode, address).filter(|_| space == StateSpace::Global)?;
        match value {
            ItemValue::Place { scale, more: Shared { parameter: Some(parameter), offset: Some(begin) } } => {
                let begin = begin.checked_add(offset)?;
                let access = Access { scale, begin, end: begin.checked_add(bytes)? };
                self.read.entry(parameter).or_default().push(access);
            }
            ItemValue::Place { more: Shared { parameter: Some(parameter), .. }, .. }
            | ItemValue::Shared(Shared { parameter: Some(parameter), .. }) => {
                self.read_elsewhere.insert(parameter);
            }
            ItemValue::Shared(_) if address.names().iter().all(|name| self.is_variable(name)) => {
                self.reads_variables = true;
            }
            _ => return None,
        }
        Some(loaded)
    }

    /// What an instruction loads of the parameters; `None` if it loads other memory.
    fn parameter_value(&self, instruction: &Instruction) -> Option<Shared> {
        let Operand::Address { base: Some(name), offset } = instruction.operands.get(1)? else { return None };
        if instruction.opcode.spaces().next() != Some(StateSpace::Param) {
            return None;
        }
        let parameter = self.parameters.iter().position(|parameter| parameter.name == *name)?;
        let bytes = u64::from(instruction.opcode.types().next_back()?.size());
        let is_single = matches!(instruction.operands.first(), Some(Operand::Name(_)));
        let is_whole = is_single && *offset == 0 && self.parameters[parameter].size == bytes;
        let whole = Shared { parameter: Some(parameter), offset: Some(0) };
        Some(if is_whole { whole } else { Shared::default() })
    }

    fn store(&mut self, instruction: &Instruction) -> Option<ItemValue> {
        let (opcode, address) = (&instruction.opcode, instruction.operands.first()?);
        let (value, offset, bytes) = self.accessed(opcode, address)?;
        let is_global = opcode.spaces().eq([StateSpace::Global]);
        let more = match value {
            ItemValue::Place { scale, more: Shared { parameter: Some(parameter), offset: Some(begin) } }
                if is_global =>
            {
                (scale, parameter, begin.checked_add(offset)?)
            }
            _ => return None,
        };
        let (scale, parameter, begin) = more;
        let access = Access { scale, begin, end: begin.checked_add(bytes)? };
        self.written.entry(parameter).or_default().push(access);
        Some(ItemValue::OfItem)
    }

    /// Checks that an item reads no register before it has written it: `None` if something may be
    /// kept of the item before.
    fn check_kept(&self) -> Option<()> {
        let SingleLoop { instructions, first, last, .. } = self.code;
        let written = instructions[*first..*last].iter().flat_map(|instruction| written_names(instruction));
        let names: BTreeSet<&str> = written.filter(|name| !self.inductions.contains_key(name)).collect();
        let numbers: HashMap<&str, usize> = names.iter().enumerate().map(|(number, name)| (*name, number)).collect();
        let words = names.len().div_ceil(64);
        // By instruction: the registers that are written on every way to it; none yet where no way
        // was found.
        let mut before: Vec<Option<Vec<u64>>> = vec![None; last - first + 1];
        before[0] = Some(vec![0; words]);
        let mut pending = vec![*first];
        while let Some(at) = pending.pop() {
            let instruction = instructions[at];
            let mut after = before[at - first].clone()?;
            if instruction.guard.is_none() {
                for number in written_names(instruction).iter().filter_map(|name| numbers.get(name)) {
                    after[number / 64] |= 1 << (number % 64);
                }
            }
            let falls = instruction.opcode.mnemonic != Mnemonic::Bra || instruction.guard.is_some();
            let target = branch_target(instruction, &self.code.labels);
            let following = target.into_iter().chain(falls.then_some(at + 1));
            for to in following.filter(|to| to > first && to <= last) {
                let known = &mut before[to - first];
                let merged = match known {
                    Some(known) => known.iter().zip(&after).map(|(a, b)| a & b).collect(),
                    None => after.clone(),
                };
                if known.as_ref() != Some(&merged) {
                    *known = Some(merged);
                    pending.push(to);
                }
            }
        }
        let is_written = |at: usize, name: &str| {
            let Some(number) = numbers.get(name) else { return true };
            // What is never executed reads nothing.
            before[at - first].as_ref().is_none_or(|known| known[number / 64] >> (number % 64) & 1 == 1)
        };
        let all = (*first..=*last).all(|at| read_names(instructions[at]).iter().all(|name| is_written(at, name)));
        all.then_some(())
    }

    /// Checks that no item accesses what another writes.
    fn conclude(&self) -> Option<GridStride> {
        for (parameter, written) in &self.written {
            if self.read_elsewhere.contains(parameter) {
                return None;
            }
            let accesses = || written.iter().chain(self.read.get(parameter).into_iter().flatten());
            let (begin, end) = (accesses().map(|of| of.begin).min()?, accesses().map(|of| of.end).max()?);
            let scale = written.first()?.scale;
            if accesses().any(|of| of.scale != scale) || scale <= 0 || end.checked_sub(begin)? > scale {
                return None;
            }
        }
        let is_other = |parameter: &&usize| !self.written.contains_key(parameter);
        let reads_others = self.reads_variables || self.read.keys().chain(&self.read_elsewhere).any(|of| is_other(&of));
        let has_several = self.written.len() > 1 || reads_others;
        let must_not_alias = if has_several { self.written.keys().copied().collect() } else { BTreeSet::new() };
        let (bound, kind) = self.bound.as_ref()?;
        let index_limit = match kind {
            Scalar::S32 => Some(i64::from(i32::MAX)),
            Scalar::U32 => Some(i64::from(u32::MAX)),
            Scalar::S64 | Scalar::U64 => None,
            _ => return None,
        };
        let bound = match self.operand_value(bound) {
            ItemValue::Shared(Shared { parameter, offset: Some(0) }) => parameter,
            _ => None,
        };
        Some(GridStride { index_limit, bound, must_not_alias })
    }
}

/// Whether an instruction converts one of these types (what it gives, what it takes).
fn is_conversion(instruction: &Instruction, pairs: &[(Scalar, Scalar)]) -> bool {
    let types: Vec<Scalar> = instruction.opcode.types().collect();
    instruction.opcode.mnemonic == Mnemonic::Cvt && pairs.iter().any(|(to, from)| types == [*to, *from])
}

/// Reads a comparison as `index < bound`, where `negated` asks for its opposite; the type is that
/// of both.
fn comparison_below(test: &Instruction, negated: bool) -> Option<(&Operand, &Operand, Scalar)> {
    let [_, a, b] = test.operands.as_slice() else { return None };
    let parts: Vec<&str> = test.opcode.modifiers().collect();
    let &[relation, kind] = parts.as_slice() else { return None };
    let kind = Scalar::from_name(kind).filter(|_| test.opcode.mnemonic == Mnemonic::Setp)?;
    match (relation, negated) {
        ("lt" | "lo", false) | ("ge" | "hs", true) => Some((a, b, kind)),
        ("gt" | "hi", false) | ("le" | "ls", true) => Some((b, a, kind)),
        _ => None,
    }
}
