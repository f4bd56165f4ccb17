//! PTX -> whether a kernel's threads know nothing of their block but their position in the
//! grid.
//!
//! Where the whole kernel sees `blockIdx * blockDim + threadIdx` (and `gridDim * blockDim`, for
//! strides) and no other trace of the block, a launch of as many threads in blocks of another
//! shape does the same. What a register holds of the launch is followed as a polynomial in its
//! numbers, for compilers take such sums apart and put them together in another order. The
//! answer is yes only where that is certain: anything that works within a block or warp, or
//! that this does not follow, is a no. Functions that are called are judged as the kernel is:
//! what they are given is the same in every shape, or the answer is no.

use crate::ptx::Opcode;
use crate::ptx::opcode::{Class, Mnemonic, ProductPart};
use crate::ptx::{Body, Instruction, Module, Operand, Scalar, StateSpace};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A number of the launch in one dimension, or another that is the same however threads are in
/// blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Factor<'a> {
    Thread(u8),
    Block(u8),
    Extent(u8),
    Blocks(u8),
    /// Blocks times their extent.
    Threads(u8),
    /// The register of this name, which is written once.
    Register(&'a str),
}

/// A sum of products.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Polynomial<'a> {
    /// Coefficients by product.
    terms: BTreeMap<Vec<Factor<'a>>, i64>,
    /// Whether something is added that is the same however threads are in blocks.
    has_more: bool,
}

/// The extents of the block that are the same in every shape.
pub type Extents = [Option<u32>; 3];

/// Products that are followed in a register: addresses of a stencil have a dozen.
const MOST_TERMS: usize = 24;

/// What CUDA gives device code to call, which is the same for every thread.
const SYSTEM_CALLS: [&str; 4] = ["vprintf", "__assertfail", "malloc", "free"];

/// True where every launch with the same threads in each dimension does the same, however they
/// are in blocks of these extents.
pub fn is_all(module: &Module, symbol: &str, extents: Extents) -> bool {
    let Some(entry) = module.entry(symbol) else { return false };
    let bound = |name: &str| name == ".reqntid" || name.contains("cluster");
    if entry.directives.iter().any(|directive| bound(&directive.name)) {
        return false;
    }
    let Some(body) = &entry.body else { return false };
    // Each function that is called, once.
    let (mut pending, mut seen) = (vec![body], HashSet::new());
    while let Some(body) = pending.pop() {
        let Some(called) = called_functions(body, extents) else { return false };
        for name in called.into_iter().filter(|name| !SYSTEM_CALLS.contains(name)) {
            // A register that holds an address is no function, and one of another file has no body.
            match module.function(name).and_then(|function| function.body.as_ref()) {
                Some(body) if seen.insert(name) => pending.push(body),
                Some(_) => {}
                None => return false,
            }
        }
    }
    true
}

/// What the code calls; `None` where it could tell one block from another.
fn called_functions(body: &Body, extents: Extents) -> Option<Vec<&str>> {
    let mut writes: HashMap<&str, Writes> = HashMap::new();
    let instructions = body.dominators_first();
    for (index, instruction) in instructions.iter().enumerate() {
        for name in instruction.operands.first().into_iter().flat_map(written_names) {
            writes.entry(name).or_insert(Writes { first: index, count: 0 }).count += 1;
        }
    }
    let mut follower = Follower { extents, writes, held: HashMap::new() };
    let mut called = Vec::new();
    for (index, instruction) in instructions.into_iter().enumerate() {
        follower.follow_instruction(index, instruction)?;
        if instruction.is_call() {
            called.push(instruction.callee()?);
        }
    }
    Some(called)
}

/// The names in an operand that an instruction may write.
pub(super) fn written_names(operand: &Operand) -> Vec<&str> {
    match operand {
        Operand::Name(name) => vec![name],
        Operand::Vector(operands) => operands.iter().flat_map(written_names).collect(),
        Operand::Pair(a, b) => [written_names(a), written_names(b)].concat(),
        _ => Vec::new(),
    }
}

/// The instructions that write a register, and the place of the first of them among those of
/// [`Body::dominators_first`].
struct Writes {
    first: usize,
    count: usize,
}

struct Follower<'a> {
    extents: Extents,
    writes: HashMap<&'a str, Writes>,
    /// What registers hold of the launch; the others hold what is the same however threads are
    /// in blocks.
    held: HashMap<&'a str, Polynomial<'a>>,
}

impl<'a> Follower<'a> {
    /// Follows one instruction; `None` where it could tell one block from another.
    fn follow_instruction(&mut self, index: usize, instruction: &'a Instruction) -> Option<()> {
        let opcode = &instruction.opcode;
        if is_of_block(opcode) {
            return None;
        }
        // A guard is a comparison's result, and what is compared is the same in every shape.
        let (target, sources) = match instruction.operands.split_first() {
            Some((Operand::Name(target), sources)) => (&**target, sources),
            // Several are written: no sums.
            Some((Operand::Vector(_) | Operand::Pair(..), sources)) => ("", sources),
            _ => ("", &instruction.operands[..]),
        };
        if target.is_empty() {
            return sources.iter().all(|operand| self.is_same(index, operand)).then_some(());
        }
        let Some(made) = self.sum_of(index, opcode, sources)? else {
            return sources.iter().all(|source| self.is_same(index, source)).then_some(());
        };
        let is_written_once = self.writes.get(target).is_some_and(|writes| writes.count == 1);
        match is_written_once {
            true if made.is_of_the_launch() || made.as_constant().is_some() => {
                self.held.insert(target, made);
            }
            // Only a register that holds the same at all times can be followed.
            _ if !made.is_same(self) => return None,
            _ => {}
        }
        Some(())
    }

    /// Returns the result of integer arithmetic: `None` if it is not followed, `Some(None)` for
    /// other instructions.
    fn sum_of(&self, index: usize, opcode: &Opcode, sources: &'a [Operand]) -> Option<Option<Polynomial<'a>>> {
        use crate::ptx::Scalar::{B32, B64, S32, S64, U32, U64};
        use Mnemonic::{Add, Cvt, Mad, Mov, Mul, Neg, Not, Shl, Sub};
        let types: Vec<Scalar> = opcode.types().collect();
        let has_others = opcode.modifiers().count() != types.len() + usize::from(opcode.part().is_some());
        if has_others || !matches!(opcode.mnemonic, Mov | Cvt | Neg | Not | Add | Sub | Shl | Mul | Mad) {
            return Some(None);
        }
        let values: Vec<_> = sources.iter().map(|source| self.value_of(index, source)).collect::<Option<_>>()?;
        Some(Some(match (opcode.mnemonic, opcode.part(), &types[..], &values[..]) {
            (Mov, None, [U32 | B32 | U64 | B64], [a]) | (Cvt, None, [U32, U64], [a]) => a.clone(),
            (Cvt, None, [U64, U32] | [S64, S32], [a]) if a.is_small() => a.clone(),
            (Neg, None, [S32 | S64], [a]) => a.times_other(&Polynomial::constant(-1), self)?,
            // As compilers count the iterations of a loop that begins behind the position: -1 - a.
            (Not, None, [B32 | B64], [a]) => Polynomial::constant(-1).plus_signed(a, -1, self)?,
            (Add, None, [S32 | U32 | S64 | U64], [a, b]) => a.plus_signed(b, 1, self)?,
            (Sub, None, [S32 | U32 | S64 | U64], [a, b]) => a.plus_signed(b, -1, self)?,
            (Shl, None, [B32 | B64], [a, b]) if b.as_constant().is_some_and(|bits| (0..32).contains(&bits)) => {
                a.times_other(&Polynomial::constant(1 << b.as_constant()?), self)?
            }
            (Mul, Some(ProductPart::Low), [S32 | U32 | S64 | U64], [a, b]) => a.times_other(b, self)?,
            (Mad, Some(ProductPart::Low), [S32 | U32 | S64 | U64], [a, b, c]) => {
                a.times_other(b, self)?.plus_signed(c, 1, self)?
            }
            (Mul, Some(ProductPart::Wide), [S32 | U32], [a, b]) if a.is_small() && b.is_small() => {
                a.times_other(b, self)?
            }
            (Mad, Some(ProductPart::Wide), [S32 | U32], [a, b, c]) if a.is_small() && b.is_small() => {
                a.times_other(b, self)?.plus_signed(c, 1, self)?
            }
            _ => return Some(None),
        }))
    }

    /// What an operand of arithmetic holds; `None` for what is not followed.
    fn value_of(&self, index: usize, operand: &'a Operand) -> Option<Polynomial<'a>> {
        match operand {
            Operand::Integer(value) => Some(Polynomial::constant(value.cast_signed())),
            Operand::Name(name) => self.value_of_name(index, name),
            _ => self.is_same(index, operand).then(Polynomial::unknown),
        }
    }

    /// What a name holds; `None` for a special register that is not followed, and for a
    /// register that is first written by what comes later.
    fn value_of_name(&self, index: usize, name: &'a str) -> Option<Polynomial<'a>> {
        if let Some(held) = self.held.get(name) {
            return Some(held.clone());
        }
        if let Some(Writes { first, count }) = self.writes.get(name) {
            // An instruction that reads what it writes has read what one before it wrote.
            return (*first < index).then(|| match count {
                1 => Polynomial::from_factor(Factor::Register(name)),
                _ => Polynomial::unknown(),
            });
        }
        let Some((register, dimension)) = name.strip_prefix('%').map(|rest| rest.split_once('.').unwrap_or((rest, "")))
        else {
            return Some(Polynomial::unknown());
        };
        let dimension = match dimension {
            "x" => 0,
            "y" => 1,
            "z" => 2,
            _ => return matches!(register, "SP" | "SPL").then(Polynomial::unknown),
        };
        let extent = self.extents[usize::from(dimension)];
        Some(match (register, extent) {
            ("tid", Some(1)) => Polynomial::constant(0),
            ("tid", _) => Polynomial::from_factor(Factor::Thread(dimension)),
            ("ctaid", _) => Polynomial::from_factor(Factor::Block(dimension)),
            ("ntid", Some(extent)) => Polynomial::constant(extent.into()),
            ("ntid", None) => Polynomial::from_factor(Factor::Extent(dimension)),
            ("nctaid", _) => Polynomial::from_factor(Factor::Blocks(dimension)),
            _ => return None,
        })
    }

    /// Whether an operand is the same however threads are in blocks.
    fn is_same(&self, index: usize, operand: &'a Operand) -> bool {
        let named = |name: &'a str| self.value_of_name(index, name).is_some_and(|held| held.is_same(self));
        match operand {
            Operand::Name(name) | Operand::Displaced(name, _) | Operand::Address { base: Some(name), .. } => {
                named(name)
            }
            Operand::Vector(operands) | Operand::Group(operands) | Operand::Brackets(operands) => {
                operands.iter().all(|operand| self.is_same(index, operand))
            }
            Operand::Not(operand) | Operand::Minus(operand) => self.is_same(index, operand),
            _ => true,
        }
    }
}

/// Tells whether an instruction may depend on the block: its threads meet there, it uses shared
/// memory, or it is unknown.
fn is_of_block(opcode: &Opcode) -> bool {
    matches!(opcode.class(), Class::Barrier | Class::AsyncBarrier | Class::Warp | Class::Matrix | Class::Unknown)
        || matches!(opcode.mnemonic, Mnemonic::Brx | Mnemonic::Setmaxnreg)
        || opcode.spaces().any(|space| space == StateSpace::Shared)
        || has_block_scope(opcode)
}

/// Tells whether an instruction orders memory within a block or a cluster only. In another
/// shape its threads may be in two.
pub fn has_block_scope(opcode: &Opcode) -> bool {
    opcode.modifiers().any(|part| matches!(part, "cta" | "cluster"))
        && opcode.spaces().all(|space| space != StateSpace::Shared)
}

impl<'a> Polynomial<'a> {
    fn constant(value: i64) -> Self {
        Self { terms: BTreeMap::from([(Vec::new(), value)]), has_more: false }
    }

    fn from_factor(factor: Factor<'a>) -> Self {
        Self { terms: BTreeMap::from([(vec![factor], 1)]), has_more: false }
    }

    /// Something that is the same however threads are in blocks.
    fn unknown() -> Self {
        Self { terms: BTreeMap::new(), has_more: true }
    }

    fn as_constant(&self) -> Option<i64> {
        match self.terms.iter().next() {
            Some((factors, value)) if factors.is_empty() && self.terms.len() == 1 && !self.has_more => Some(*value),
            _ => None,
        }
    }

    /// Whether a number of the launch is in it.
    fn is_of_the_launch(&self) -> bool {
        self.terms.keys().flatten().any(|factor| !matches!(factor, Factor::Register(_)))
    }

    /// Whether it is the same in a wider register: a constant, or no more than all threads of
    /// the launch.
    fn is_small(&self) -> bool {
        let is_small = |(factors, coefficient): (&Vec<Factor<'_>>, &i64)| {
            let is_number = |factor: &Factor<'_>| !matches!(factor, Factor::Register(_));
            *coefficient == 1 && !factors.is_empty() && factors.iter().all(is_number)
        };
        match self.as_constant() {
            Some(value) => i32::try_from(value).is_ok_and(|value| value >= 0),
            None => !self.has_more && self.terms.iter().all(is_small),
        }
    }

    /// Whether it is the same however threads are in blocks: `blockIdx * blockDim` comes with
    /// `threadIdx`, as often.
    fn is_same(&self, follower: &Follower<'_>) -> bool {
        let mut positions: BTreeMap<(u8, Vec<Factor<'_>>), i64> = BTreeMap::new();
        for (factors, coefficient) in &self.terms {
            let (mut varying, mut others) = (Vec::new(), Vec::new());
            for factor in factors {
                match *factor {
                    Factor::Thread(at) | Factor::Block(at) | Factor::Extent(at) | Factor::Blocks(at)
                        if follower.extents[usize::from(at)].is_none() =>
                    {
                        varying.push(*factor);
                    }
                    factor => others.push(factor),
                }
            }
            match varying[..] {
                [] => {}
                [Factor::Thread(at)] => *positions.entry((at, others)).or_default() += coefficient,
                [Factor::Block(at), Factor::Extent(by)] if at == by => {
                    *positions.entry((at, others)).or_default() -= coefficient;
                }
                _ => return false,
            }
        }
        positions.values().all(|surplus| *surplus == 0)
    }

    fn plus_signed(&self, other: &Self, sign: i64, follower: &Follower<'_>) -> Option<Self> {
        let mut sum = self.clone();
        for (factors, coefficient) in &other.terms {
            let term = sum.terms.entry(factors.clone()).or_default();
            *term = term.wrapping_add(coefficient.wrapping_mul(sign));
        }
        sum.has_more |= other.has_more;
        sum.within_bounds(follower)
    }

    /// The product; `None` where it is not followed.
    fn times_other(&self, other: &Self, follower: &Follower<'_>) -> Option<Self> {
        let (is_same, is_other_same) = (self.is_same(follower), other.is_same(follower));
        if !is_same && other.has_more || !is_other_same && self.has_more {
            return None;
        }
        let mut product = Self { terms: BTreeMap::new(), has_more: self.has_more || other.has_more };
        for (a, by) in &self.terms {
            for (b, times) in &other.terms {
                let mut factors = [&a[..], &b[..]].concat();
                factors.sort_unstable();
                merge_factors(&mut factors);
                let term = product.terms.entry(factors).or_default();
                *term = term.wrapping_add(by.wrapping_mul(*times));
            }
        }
        // A position times a position, as in the square of a distance, has terms that tell nothing
        // one by one.
        if is_same && is_other_same && !product.is_same(follower) {
            return Some(Self::unknown());
        }
        product.within_bounds(follower)
    }

    /// Without what is nothing; too much of it is not followed further.
    fn within_bounds(mut self, follower: &Follower<'_>) -> Option<Self> {
        self.terms.retain(|_, coefficient| *coefficient != 0);
        if self.terms.is_empty() && !self.has_more {
            return Some(Self::constant(0));
        }
        if self.terms.len() <= MOST_TERMS {
            return Some(self);
        }
        self.is_same(follower).then(Self::unknown)
    }
}

/// Blocks and their extent make the threads of a dimension.
fn merge_factors(factors: &mut Vec<Factor<'_>>) {
    for at in 0..3 {
        let place = |factors: &[Factor<'_>], wanted| factors.iter().position(|factor| *factor == wanted);
        while let (Some(blocks), Some(extent)) =
            (place(factors, Factor::Blocks(at)), place(factors, Factor::Extent(at)))
        {
            factors.remove(blocks.max(extent));
            factors.remove(blocks.min(extent));
            factors.push(Factor::Threads(at));
            factors.sort_unstable();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(body: &str, extents: Extents) -> bool {
        judged_with("", body, extents)
    }

    /// With these functions before the kernel.
    fn judged_with(functions: &str, body: &str, extents: Extents) -> bool {
        let text = format!(
            ".version 9.0\n.target sm_90\n.address_size 64\n{functions}\n.visible .entry k(.param .u64 k_param_0)\n{{\n.reg .pred %p<4>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<8>;\n.shared .align 4 .b8 tile[64];\n{body}\nret;\n}}\n"
        );
        is_all(&Module::parse(&text).expect("PTX"), "k", extents)
    }

    #[test]
    fn a_kernel_of_positions_is_told_from_one_that_knows_its_block() {
        let numbers =
            "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nld.param.u32 %r9, [k_param_0];\n";
        let with = |text: &str| format!("{numbers}mad.lo.s32 %r4, %r1, %r2, %r3;\n{text}");
        let with_memory = |text: &str| with(&format!("ld.param.u64 %rd1, [k_param_0];\n{text}"));
        // The position in parts, of which `%r7` is the block's.
        let apart = |text: &str| format!("{numbers}mul.lo.s32 %r7, %r1, %r2;\n{text}\nsetp.ge.s32 %p1, %r8, 9;");
        let rows = [
            (with(""), true),
            (with("setp.ge.s32 %p1, %r4, 9;\n@%p1 bra $L;\nmul.wide.s32 %rd1, %r4, 4;\n$L:"), true),
            (with("mov.u32 %r5, %nctaid.x;\nmul.lo.s32 %r6, %r2, %r5;\nadd.s32 %r7, %r4, %r6;\nsetp.lt.s32 %p1, %r7, 9;"), true),
            (with("mul.wide.s32 %rd1, %r4, 8;\nld.global.v2.u32 {%r5, %r6}, [%rd1];\nsetp.eq.s32 %p1|%p2, %r5, %r6;"), true),
            (with("mul.wide.u32 %rd1, %r3, 8;\nld.global.v2.u32 {%r5, %r6}, [%rd1];"), false),
            (apart("add.s32 %r8, %r7, %r3;"), true),
            (apart("add.s32 %r5, %r3, %r9;\nadd.s32 %r8, %r5, %r7;"), true),
            (apart("shl.b32 %r5, %r3, 2;\nmul.lo.s32 %r6, %r7, 4;\nsub.s32 %r10, %r5, %r9;\nadd.s32 %r8, %r10, %r6;"), true),
            (apart("mul.lo.s32 %r5, %r3, %r9;\nmad.lo.s32 %r8, %r7, %r9, %r5;"), true),
            (apart("not.b32 %r5, %r7;\nadd.s32 %r6, %r5, %r9;\nsub.s32 %r8, %r6, %r3;"), true),
            (apart("not.b32 %r5, %r7;\nadd.s32 %r8, %r5, %r9;"), false),
            (apart("mul.wide.u32 %rd1, %r1, %r2;\ncvt.u64.u32 %rd2, %r3;\nadd.s64 %rd3, %rd1, %rd2;\ncvt.u32.u64 %r8, %rd3;"), true),
            // The square of a distance, and what is no more than the block's part of one.
            (apart("sub.s32 %r5, %r9, %r7;\nsub.s32 %r6, %r5, %r3;\nneg.s32 %r10, %r6;\nmul.lo.s32 %r8, %r6, %r10;"), true),
            (with("mad.lo.s32 %r8, %r4, %r4, %r9;\nsetp.ge.s32 %p1, %r8, 9;"), true),
            (apart("mul.lo.s32 %r8, %r7, %r7;"), false),
            (apart("sub.s32 %r5, %r9, %r7;\nmul.lo.s32 %r8, %r5, %r3;"), false),
            // A wait is for whole other grids, and what may begin then waits in its turn for all of
            // this one.
            (with("griddepcontrol.launch_dependents;\ngriddepcontrol.wait;"), true),
            // What only a block knows.
            (with("setp.eq.s32 %p1, %r3, 0;"), false),
            (with("add.s32 %r5, %r1, 1;\nst.global.u32 [%rd1], %r5;"), false),
            (with("shl.b32 %r5, %r2, 2;\nst.global.u32 [%rd1], %r5;"), false),
            (with("bar.sync 0;"), false),
            (with("st.shared.u32 [tile], %r4;"), false),
            (with("mov.u32 %r5, %laneid;"), false),
            (with("st.global.u32 [%rd1], %r3;"), false),
            (with("mov.u32 %r5, %nctaid.x;\nsetp.lt.s32 %p1, %r5, 9;"), false),
            (apart("shl.b32 %r5, %r3, 2;\nshl.b32 %r6, %r7, 3;\nadd.s32 %r8, %r5, %r6;"), false),
            (apart("mul.lo.s32 %r5, %r3, %r9;\nadd.s32 %r8, %r7, %r5;"), false),
            // A sum that has wrapped before it is widened has another one for each block.
            (apart("add.s32 %r5, %r3, %r9;\ncvt.u64.u32 %rd1, %r5;\ncvt.u64.u32 %rd2, %r7;\nadd.s64 %rd3, %rd1, %rd2;\ncvt.u32.u64 %r8, %rd3;"), false),
            // Memory that is in order within a block or a cluster only.
            (with("fence.acq_rel.cta;"), false),
            (with("membar.cta;"), false),
            (with("fence.acq_rel.cluster;"), false),
            (with_memory("ld.acquire.cta.global.u32 %r5, [%rd1];"), false),
            (with_memory("st.release.cta.global.u32 [%rd1], %r4;"), false),
            (with_memory("atom.global.cta.add.u32 %r5, [%rd1], %r4;"), false),
            (with_memory("red.relaxed.cta.global.add.u32 [%rd1], %r4;"), false),
            (with_memory("fence.acq_rel.gpu;\natom.global.gpu.add.u32 %r5, [%rd1], %r4;"), true),
            (with_memory("ld.acquire.gpu.global.u32 %r5, [%rd1];"), true),
            // What is not known, and where the thread runs.
            (with("frobnicate.b32 %r5, %r4;"), false),
            (with("mov.u32 %r5, %smid;"), false),
            // Another dimension's extent; 256 where the block's extent should be.
            ("mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.y;\nmov.u32 %r3, %tid.x;\nmad.lo.s32 %r4, %r1, %r2, %r3;\nsetp.lt.s32 %p1, %r4, 9;".into(), false),
            ("mov.u32 %r1, %ctaid.x;\nshl.b32 %r2, %r1, 8;\nmov.u32 %r3, %tid.x;\nor.b32 %r4, %r2, %r3;".into(), false),
            // A register that holds now one thing, now another, and one that is read before it is
            // written.
            (apart("mov.u32 %r5, 0;\n@%p2 mov.u32 %r5, %r3;\nadd.s32 %r8, %r5, %r7;"), false),
            (apart("$L:\nadd.s32 %r8, %r5, 1;\nmov.u32 %r5, %r3;\n@%p2 bra $L;"), false),
            // Blocks that the compiler has placed above those that they follow.
            (apart("bra.uni $A;\n$B:\nadd.s32 %r8, %r5, %r7;\nbra.uni $C;\n$A:\nadd.s32 %r5, %r3, %r9;\nbra.uni $B;\n$C:"), true),
            (apart("bra.uni $A;\n$B:\nadd.s32 %r8, %r5, %r9;\nbra.uni $C;\n$A:\nadd.s32 %r5, %r3, %r9;\nbra.uni $B;\n$C:"), false),
        ];
        for (body, expected) in rows {
            assert_eq!(judged(&body, [None; 3]), expected, "{body}");
        }
    }

    #[test]
    fn what_is_called_is_judged_like_the_kernel() {
        let position =
            "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\nmad.lo.s32 %r4, %r1, %r2, %r3;\n";
        let calls = |given: &str, callee: &str| {
            format!(
                "{position}{{ .param .b32 given;\n.param .b32 result;\nst.param.b32 [given], {given};\ncall.uni (result), {callee}, (given);\nld.param.b32 %r5, [result]; }}"
            )
        };
        let function = |name: &str, body: &str| {
            format!(
                ".func (.param .b32 result) {name}(.param .b32 given)\n{{\n.reg .b32 %r<8>;\nld.param.b32 %r1, [given];\n{body}\nst.param.b32 [result], %r1;\nret;\n}}\n"
            )
        };
        let nested = "{ .param .b32 given;\n.param .b32 result;\nst.param.b32 [given], %r1;\ncall.uni (result), inner, (given); }";
        for (functions, callee, given, expected) in [
            (function("sine", "add.s32 %r1, %r1, 1;"), "sine", "%r4", true),
            (function("sine", "add.s32 %r1, %r1, 1;"), "sine", "%r3", false),
            (function("lane", "mov.u32 %r1, %laneid;"), "lane", "%r4", false),
            (function("thread", "mov.u32 %r1, %tid.x;\nst.global.u32 [%r2], %r1;"), "thread", "%r4", false),
            (function("meet", "bar.sync 0;"), "meet", "%r4", false),
            (function("inner", "") + &function("outer", nested), "outer", "%r4", true),
            (function("inner", "bar.sync 0;") + &function("outer", nested), "outer", "%r4", false),
            (function("inner", nested), "inner", "%r4", true),
            (".extern .func (.param .b32 result) vprintf(.param .b32 given);".into(), "vprintf", "%r4", true),
            (".extern .func (.param .b32 result) far(.param .b32 given);".into(), "far", "%r4", false),
            (String::new(), "%rd1", "%r4", false),
        ] {
            assert_eq!(
                judged_with(&functions, &calls(given, callee), [None; 3]),
                expected,
                "{functions} {callee} {given}"
            );
        }
    }

    #[test]
    fn a_dimension_in_which_no_block_differs_may_be_known() {
        let rank = "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ctaid.y;\nmov.u32 %r3, %nctaid.x;\nmad.lo.s32 %r4, %r2, %r3, %r1;\n\
                    mov.u32 %r5, %ntid.x;\nmov.u32 %r6, %ntid.y;\nmul.lo.s32 %r7, %r5, %r6;\nmov.u32 %r8, %tid.x;\n\
                    mov.u32 %r9, %tid.y;\nmad.lo.s32 %r10, %r9, %r5, %r8;\nmul.wide.u32 %rd1, %r4, %r7;\n\
                    cvt.u64.u32 %rd2, %r10;\nadd.s64 %rd3, %rd1, %rd2;\nsetp.ge.u64 %p1, %rd3, 9;";
        let rows =
            "mov.u32 %r1, %ctaid.y;\nmov.u32 %r2, %tid.y;\nmad.lo.s32 %r3, %r1, 7, %r2;\nsetp.ge.u32 %p1, %r3, 9;";
        for (body, extents, expected) in [
            // `cooperative_groups::this_grid().thread_rank()`
            (rank, [None, Some(1), Some(1)], true),
            (rank, [None, Some(2), Some(1)], false),
            (rank, [None; 3], false),
            (rows, [None, Some(4), Some(1)], true),
            (rows, [None; 3], false),
        ] {
            assert_eq!(judged(body, extents), expected, "{extents:?} {body}");
        }
    }
}
