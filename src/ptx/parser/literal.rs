//! Numeric literals: text -> value, or nothing if it is none.

use crate::ptx::module::Operand;

/// Reads an integer literal: decimal, `0x`, `0b`, octal, with an optional `U`.
pub(super) fn parse_integer(text: &str) -> Option<u64> {
    let digits = text.strip_suffix(['U', 'u']).unwrap_or(text);
    let lower = digits.as_bytes().get(1).map(u8::to_ascii_lowercase);
    match (digits.as_bytes().first(), lower) {
        (Some(b'0'), Some(b'x')) => u64::from_str_radix(&digits[2..], 16).ok(),
        (Some(b'0'), Some(b'b')) => u64::from_str_radix(&digits[2..], 2).ok(),
        (Some(b'0'), Some(_)) => u64::from_str_radix(&digits[1..], 8).ok(),
        _ => digits.parse().ok(),
    }
}

/// Reads any numeric literal.
pub(super) fn parse_number(text: &str) -> Option<Operand> {
    let prefix = text.get(..2);
    match prefix {
        Some("0f" | "0F") => u32::from_str_radix(&text[2..], 16).ok().map(Operand::Float),
        Some("0d" | "0D") => u64::from_str_radix(&text[2..], 16).ok().map(Operand::Double),
        _ => match parse_integer(text) {
            Some(value) => Some(Operand::Integer(value)),
            None if text.contains(['.', 'e', 'E']) => text.parse::<f64>().ok().map(|v| Operand::Double(v.to_bits())),
            None => None,
        },
    }
}
