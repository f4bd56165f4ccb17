//! What a PTX module consists of.
//!
//! Names are kept as they are written; scopes are kept as statements, so that a reader can
//! resolve names that inline assembly declares again in an inner scope.

use super::opcode::{Mnemonic, Opcode};
use super::types::{Scalar, StateSpace};
use std::ops::Range;

/// A parsed PTX module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// `.version`, as (major, minor).
    pub version: (u32, u32),
    /// `.target`: the architecture first (`sm_90`), then options.
    pub target: Vec<Box<str>>,
    /// `.address_size` in bits; 64 where it is not given.
    pub address_size: u32,
    /// Module-scope variables, in the order of the text.
    pub variables: Vec<PtxVariable>,
    /// Functions with and without bodies, in the order of the text. A prototype and its
    /// definition are two entries.
    pub functions: Vec<PtxFunction>,
}

/// A variable of memory: at module scope, in a function, or a parameter of a call sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct PtxVariable {
    pub name: Box<str>,
    pub space: StateSpace,
    pub scalar: Scalar,
    /// Scalars in one element (2 and 4 for `.v2` and `.v4`).
    pub lanes: u8,
    /// Alignment in bytes, given or natural.
    pub align: u32,
    /// Size in bytes; 0 for an array of unknown extent (`extern __shared__ float x[]`).
    pub size: u64,
    pub linkage: Linkage,
    /// Values given in the text by byte offset; other bytes are zero. `None` where nothing is
    /// given.
    pub initial: Option<Vec<(u64, Initial)>>,
    pub line: u32,
    /// Bytes of the declaration, from its linkage to the semicolon. Variables of one
    /// declaration share them.
    pub span: Range<usize>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Linkage {
    #[default]
    Internal,
    Visible,
    Extern,
    Weak,
    Common,
}

/// One value of an initialiser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Initial {
    /// Bits of the value in the variable's type.
    Bits(u64),
    /// The address of a variable or function plus a number of bytes.
    Address { name: Box<str>, offset: i64 },
}

/// A kernel or device function.
#[derive(Clone, Debug, PartialEq)]
pub struct PtxFunction {
    pub name: Box<str>,
    /// `.entry` (a kernel) rather than `.func`.
    pub entry: bool,
    pub linkage: Linkage,
    /// Return parameters of a `.func`.
    pub returns: Vec<Parameter>,
    pub parameters: Vec<Parameter>,
    /// Byte of the parenthesis that closes the parameters, where there are parentheses.
    pub parameters_end: Option<usize>,
    /// Performance directives between the parameters and the body.
    pub directives: Vec<Directive>,
    /// `None` for a prototype.
    pub body: Option<Body>,
    pub line: u32,
    /// Bytes of the text, from its linkage to the closing brace or the semicolon.
    pub span: Range<usize>,
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    pub name: Box<str>,
    /// Passed in a register (`.reg`), not in parameter space.
    pub register: bool,
    pub scalar: Scalar,
    pub align: u32,
    /// Size in bytes.
    pub size: u64,
    /// Declared with `.ptr`.
    pub pointer: bool,
}

/// A performance directive (`.maxntid 256, 1, 1`).
#[derive(Clone, Debug, PartialEq)]
pub struct Directive {
    /// With its dot.
    pub name: Box<str>,
    pub values: Vec<u64>,
    /// Bytes of the text, from the dot to the last value.
    pub span: Range<usize>,
    pub line: u32,
}

/// The body of a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Body {
    pub statements: Vec<Statement>,
    /// Byte of the opening brace in the text.
    pub open: usize,
}

impl Body {
    /// The instructions in the order of the text.
    pub fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.statements.iter().filter_map(|statement| match statement {
            Statement::Instruction(instruction) => Some(instruction),
            _ => None,
        })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `{` of an inner scope.
    Open,
    /// `}` of an inner scope.
    Close,
    Registers(Registers),
    Variable(PtxVariable),
    Label(Label),
    /// `label: .branchtargets a, b;` or `label: .calltargets a, b;`
    Targets {
        label: Box<str>,
        targets: Vec<Box<str>>,
    },
    /// `label: .callprototype ...;`: the type of an indirect call.
    Prototype {
        label: Box<str>,
        returns: Vec<Parameter>,
        parameters: Vec<Parameter>,
    },
    Instruction(Instruction),
}

/// `.reg .b32 %r<5>;` (count 5: `%r0` to `%r4`) or `.reg .b32 x;` (no count).
#[derive(Clone, Debug, PartialEq)]
pub struct Registers {
    pub name: Box<str>,
    pub count: Option<u32>,
    pub scalar: Scalar,
    /// Scalars in one register (`.v2`, `.v4`).
    pub lanes: u8,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    pub name: Box<str>,
    pub line: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// 1-based line of the opcode.
    pub line: u32,
    /// Bytes of the text, from the opcode to the semicolon.
    pub span: Range<usize>,
    pub guard: Option<Guard>,
    pub opcode: Opcode,
    pub operands: Vec<Operand>,
}

/// What device code calls where an `assert` does not hold.
pub const ASSERTION: &str = "__assertfail";

impl Instruction {
    /// Whether the thread leaves the function here, if the guard holds.
    pub fn leaves(&self) -> bool {
        matches!(self.opcode.mnemonic, Mnemonic::Ret | Mnemonic::Exit | Mnemonic::Trap)
            || self.is_call() && self.callee() == Some(ASSERTION)
    }

    pub fn is_call(&self) -> bool {
        self.opcode.mnemonic == Mnemonic::Call
    }

    /// The target of a `call`: a function, or the register that holds its address.
    pub fn callee(&self) -> Option<&str> {
        // Results stand before it in parentheses.
        self.operands.iter().find_map(|operand| match operand {
            Operand::Name(name) => Some(&**name),
            _ => None,
        })
    }
}

/// `@p` or `@!p`.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    pub register: Box<str>,
    pub negated: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register, label, variable, parameter or function.
    Name(Box<str>),
    /// `variable+4`
    Displaced(Box<str>, i64),
    /// An integer, in two's complement.
    Integer(u64),
    /// Bits of an f32 (`0f3F800000`).
    Float(u32),
    /// Bits of an f64 (`0d3FF0000000000000`, or a decimal number).
    Double(u64),
    /// `[base+offset]`; with no base an absolute address.
    Address { base: Option<Box<str>>, offset: i64 },
    /// `[texture, {coordinates}]` and other bracketed lists.
    Brackets(Vec<Operand>),
    /// `{a, b}`
    Vector(Vec<Operand>),
    /// `(a, b)`: arguments or results of a call.
    Group(Vec<Operand>),
    /// `!p`
    Not(Box<Operand>),
    /// `-x`
    Minus(Box<Operand>),
    /// `p|q`
    Pair(Box<Operand>, Box<Operand>),
    /// `_`
    Sink,
}

impl Operand {
    /// Lists the registers, variables, labels and functions that the operand names.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Name(name) | Self::Displaced(name, _) | Self::Address { base: Some(name), .. } => vec![name],
            Self::Brackets(inner) | Self::Vector(inner) | Self::Group(inner) => {
                inner.iter().flat_map(Self::names).collect()
            }
            Self::Not(inner) | Self::Minus(inner) => inner.names(),
            Self::Pair(first, second) => [first.names(), second.names()].concat(),
            Self::Address { base: None, .. } | Self::Integer(_) | Self::Float(_) | Self::Double(_) | Self::Sink => {
                Vec::new()
            }
        }
    }
}

impl Module {
    /// The kernel called `name` that has a body.
    pub fn entry(&self, name: &str) -> Option<&PtxFunction> {
        self.functions.iter().find(|f| f.entry && &*f.name == name && f.body.is_some())
    }

    /// The instructions that the kernel called `name` may run: its own, and those of all functions.
    pub fn instructions_of(&self, name: &str) -> impl Iterator<Item = &Instruction> {
        let run = self.functions.iter().filter(move |function| !function.entry || *function.name == *name);
        run.filter_map(|function| function.body.as_ref()).flat_map(Body::instructions)
    }

    /// The function called `name`, its definition before its prototypes.
    pub fn function(&self, name: &str) -> Option<&PtxFunction> {
        let mut named = self.functions.iter().filter(|f| &*f.name == name);
        let first = named.clone().next();
        named.find(|f| f.body.is_some()).or(first)
    }

    /// The module-scope variable called `name`, its definition before its declarations.
    pub fn variable(&self, name: &str) -> Option<&PtxVariable> {
        let mut named = self.variables.iter().filter(|v| &*v.name == name);
        let first = named.clone().next();
        named.find(|v| v.linkage != Linkage::Extern).or(first)
    }
}
