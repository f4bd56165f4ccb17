//! Numbers of host code: literals, conversions and operators as C has them.

use super::integer_literal::integer;

/// A number of host code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        }
    }

    /// The number as C converts it to an integer.
    pub fn as_integer(self) -> i64 {
        match self {
            Number::Int(value) => value,
            Number::Float(value) => value as i64,
        }
    }
}

/// Reads a number as C writes it.
pub(super) fn parse_literal(text: &str) -> Option<Number> {
    if let Some(value) = integer(text) {
        return Some(Number::Int(value));
    }
    let is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    let digits = text.trim_end_matches(['f', 'F', 'l', 'L']).replace('\'', "");
    digits.parse().ok().filter(|value: &f64| !is_hexadecimal && value.is_finite()).map(Number::Float)
}

/// Applies an operator of C.
pub(super) fn apply_binary(operator: &str, left: Number, right: Number) -> Option<Number> {
    let truth = |value: bool| Some(Number::Int(i64::from(value)));
    let (a, b) = (left.as_f64(), right.as_f64());
    match operator {
        "&&" => return truth(a != 0.0 && b != 0.0),
        "||" => return truth(a != 0.0 || b != 0.0),
        "==" => return truth(a == b),
        "!=" => return truth(a != b),
        "<" => return truth(a < b),
        ">" => return truth(a > b),
        "<=" => return truth(a <= b),
        ">=" => return truth(a >= b),
        _ => {}
    }
    let (Number::Int(left), Number::Int(right)) = (left, right) else {
        let value = match operator {
            "+" => a + b,
            "-" => a - b,
            "*" => a * b,
            "/" => a / b,
            _ => return None,
        };
        return value.is_finite().then_some(Number::Float(value));
    };
    let shift = u32::try_from(right).ok();
    let value = match operator {
        "+" => left.checked_add(right),
        "-" => left.checked_sub(right),
        "*" => left.checked_mul(right),
        "/" => left.checked_div(right),
        "%" => left.checked_rem(right),
        "<<" => left.checked_shl(shift?).filter(|value| value >> right == left),
        ">>" => left.checked_shr(shift?),
        "&" => Some(left & right),
        "|" => Some(left | right),
        "^" => Some(left ^ right),
        _ => None,
    };
    value.map(Number::Int)
}
