//! The numbers that expressions compute with.
//!
//! Two values and an operator -> a value or a [`Fault`]. Integers have 64 bits and every
//! operation on them is checked: nothing wraps. As in C, an operation on an integer and a float
//! is done in floats, and integer division truncates.

use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// An integer or a float.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    Int(i64),
    Float(f64),
}

/// Why a value could not be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("division by zero")]
    DivisionByZero,
    #[error("the result of `{0}` does not fit in 64 bits")]
    Overflow(&'static str),
    #[error("`{0}` needs integers")]
    NotInteger(&'static str),
    #[error("a shift must be by 0 to 63 bits")]
    Shift,
    #[error("`{0}` has no finite value here")]
    NotFinite(&'static str),
    #[error("the operands of `ceildiv` must not be negative")]
    NegativeCeildiv,
    #[error("`{0}` has no value here")]
    NoValue(String),
}

/// An operator of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Unary {
    Negate,
    Not,
    Complement,
    /// Written as a call.
    Math(Math),
}

/// A function of one number, in doubles; only in `each(...)`, whose values go to no host code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Math {
    Sin,
    Cos,
    Sqrt,
    Exp,
    Log,
    Floor,
}

impl Math {
    pub const ALL: [Math; 6] = [Math::Sin, Math::Cos, Math::Sqrt, Math::Exp, Math::Log, Math::Floor];

    pub fn name(self) -> &'static str {
        match self {
            Math::Sin => "sin",
            Math::Cos => "cos",
            Math::Sqrt => "sqrt",
            Math::Exp => "exp",
            Math::Log => "log",
            Math::Floor => "floor",
        }
    }

    fn of(self, x: f64) -> f64 {
        match self {
            Math::Sin => x.sin(),
            Math::Cos => x.cos(),
            Math::Sqrt => x.sqrt(),
            Math::Exp => x.exp(),
            Math::Log => x.ln(),
            Math::Floor => x.floor(),
        }
    }
}

/// A result of doubles, which must be a number.
fn finite(name: &'static str, result: f64) -> Result<Value, Fault> {
    if result.is_finite() { Ok(Value::Float(result)) } else { Err(Fault::NotFinite(name)) }
}

/// An operator of two operands. `&&` and `||` look at the second only where they must.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Binary {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// A function of two arguments or (`min`, `max`) more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Function {
    Ceildiv,
    Min,
    Max,
    /// In doubles; only in `each(...)`.
    Pow,
}

impl Function {
    /// Those that every expression may call.
    pub const ALL: [Function; 3] = [Function::Ceildiv, Function::Min, Function::Max];

    pub fn name(self) -> &'static str {
        match self {
            Function::Ceildiv => "ceildiv",
            Function::Min => "min",
            Function::Max => "max",
            Function::Pow => "pow",
        }
    }

    /// The function of two values; `min` and `max` of more are folds of it.
    pub fn apply(self, a: Value, b: Value) -> Result<Value, Fault> {
        match self {
            Function::Ceildiv => ceildiv(a, b),
            Function::Pow => finite("pow", a.as_f64().powf(b.as_f64())),
            Function::Min => Ok(if compare(a, b) == Some(Ordering::Greater) { promote(b, a) } else { promote(a, b) }),
            Function::Max => Ok(if compare(a, b) == Some(Ordering::Less) { promote(b, a) } else { promote(a, b) }),
        }
    }
}

impl Unary {
    pub fn symbol(self) -> &'static str {
        match self {
            Unary::Negate => "-",
            Unary::Not => "!",
            Unary::Complement => "~",
            Unary::Math(function) => function.name(),
        }
    }

    pub fn apply(self, value: Value) -> Result<Value, Fault> {
        match (self, value) {
            (Unary::Negate, Value::Int(n)) => n.checked_neg().map(Value::Int).ok_or(Fault::Overflow("-")),
            (Unary::Negate, Value::Float(x)) => Ok(Value::Float(-x)),
            (Unary::Not, value) => Ok(Value::from(!value.is_true())),
            (Unary::Math(function), value) => finite(function.name(), function.of(value.as_f64())),
            (Unary::Complement, Value::Int(n)) => Ok(Value::Int(!n)),
            (Unary::Complement, Value::Float(_)) => Err(Fault::NotInteger("~")),
        }
    }
}

/// Operator, spelling and precedence (C's levels; a higher one binds tighter). Longer spellings
/// stand before their prefixes.
pub const BINARY: [(Binary, &str, u8); 18] = [
    (Binary::Or, "||", 1),
    (Binary::And, "&&", 2),
    (Binary::Equal, "==", 6),
    (Binary::NotEqual, "!=", 6),
    (Binary::LessEqual, "<=", 7),
    (Binary::GreaterEqual, ">=", 7),
    (Binary::ShiftLeft, "<<", 8),
    (Binary::ShiftRight, ">>", 8),
    (Binary::BitOr, "|", 3),
    (Binary::BitXor, "^", 4),
    (Binary::BitAnd, "&", 5),
    (Binary::Less, "<", 7),
    (Binary::Greater, ">", 7),
    (Binary::Add, "+", 9),
    (Binary::Subtract, "-", 9),
    (Binary::Multiply, "*", 10),
    (Binary::Divide, "/", 10),
    (Binary::Remainder, "%", 10),
];

impl Binary {
    pub fn symbol(self) -> &'static str {
        BINARY.iter().find(|(operator, ..)| *operator == self).map_or("", |(_, symbol, _)| symbol)
    }

    pub fn apply(self, a: Value, b: Value) -> Result<Value, Fault> {
        use Binary::*;
        match self {
            Or => return Ok(Value::from(a.is_true() || b.is_true())),
            And => return Ok(Value::from(a.is_true() && b.is_true())),
            Equal => return Ok(Value::from(compare(a, b) == Some(Ordering::Equal))),
            NotEqual => return Ok(Value::from(compare(a, b) != Some(Ordering::Equal))),
            Less => return Ok(Value::from(compare(a, b) == Some(Ordering::Less))),
            LessEqual => {
                return Ok(Value::from(matches!(compare(a, b), Some(Ordering::Less | Ordering::Equal))));
            }
            Greater => return Ok(Value::from(compare(a, b) == Some(Ordering::Greater))),
            GreaterEqual => {
                return Ok(Value::from(matches!(compare(a, b), Some(Ordering::Greater | Ordering::Equal))));
            }
            _ => {}
        }
        match (a, b) {
            (Value::Int(a), Value::Int(b)) => self.integers(a, b).map(Value::Int),
            _ => self.floats(a.as_f64(), b.as_f64()).map(Value::Float),
        }
    }

    fn integers(self, a: i64, b: i64) -> Result<i64, Fault> {
        let result = match self {
            Binary::Add => a.checked_add(b),
            Binary::Subtract => a.checked_sub(b),
            Binary::Multiply => a.checked_mul(b),
            Binary::Divide | Binary::Remainder if b == 0 => return Err(Fault::DivisionByZero),
            Binary::Divide => a.checked_div(b),
            Binary::Remainder => a.checked_rem(b),
            Binary::ShiftLeft | Binary::ShiftRight if !(0..64).contains(&b) => {
                return Err(Fault::Shift);
            }
            Binary::ShiftLeft => Some(a << b).filter(|shifted| shifted >> b == a),
            Binary::ShiftRight => Some(a >> b),
            Binary::BitOr => Some(a | b),
            Binary::BitXor => Some(a ^ b),
            // The comparisons and logical operators never come here.
            _ => Some(a & b),
        };
        result.ok_or(Fault::Overflow(self.symbol()))
    }

    fn floats(self, a: f64, b: f64) -> Result<f64, Fault> {
        match self {
            Binary::Add => Ok(a + b),
            Binary::Subtract => Ok(a - b),
            Binary::Multiply => Ok(a * b),
            Binary::Divide if b == 0.0 => Err(Fault::DivisionByZero),
            Binary::Divide => Ok(a / b),
            _ => Err(Fault::NotInteger(self.symbol())),
        }
    }
}

impl Value {
    pub fn is_true(self) -> bool {
        match self {
            Value::Int(n) => n != 0,
            Value::Float(x) => x != 0.0,
        }
    }

    pub fn as_f64(self) -> f64 {
        match self {
            Value::Int(n) => n as f64,
            Value::Float(x) => x,
        }
    }

    /// The integer, also of a float that is one (`1e6`).
    pub fn as_integer(self) -> Option<i64> {
        match self {
            Value::Int(n) => Some(n),
            // The bound is 2^63, which f64 has exactly.
            Value::Float(x) if x.fract() == 0.0 && (i64::MIN as f64..-(i64::MIN as f64)).contains(&x) => Some(x as i64),
            Value::Float(_) => None,
        }
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Value {
        Value::Int(i64::from(truth))
    }
}

/// As C++ would read it: a float always has a point or an exponent.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(n) => write!(f, "{n}"),
            Value::Float(x) => write!(f, "{x:?}"),
        }
    }
}

/// How two values compare; `None` where one is not a number.
fn compare(a: Value, b: Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(&b)),
        _ => a.as_f64().partial_cmp(&b.as_f64()),
    }
}

/// `chosen` in the type that an operation on both has.
fn promote(chosen: Value, other: Value) -> Value {
    match other {
        Value::Float(_) => Value::Float(chosen.as_f64()),
        Value::Int(_) => chosen,
    }
}

fn ceildiv(a: Value, b: Value) -> Result<Value, Fault> {
    let (Some(a), Some(b)) = (a.as_integer(), b.as_integer()) else {
        return Err(Fault::NotInteger("ceildiv"));
    };
    match (a, b) {
        (_, 0) => Err(Fault::DivisionByZero),
        (a, b) if a < 0 || b < 0 => Err(Fault::NegativeCeildiv),
        (a, b) => Ok(Value::Int(a / b + i64::from(a % b != 0))),
    }
}
