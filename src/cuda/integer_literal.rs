//! A C integer literal -> its value.

/// Reads a C integer literal.
pub(super) fn integer(text: &str) -> Option<i64> {
    let text = text.replace('\'', "");
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L', 'z', 'Z']);
    let lower = digits.to_ascii_lowercase();
    if let Some(hexadecimal) = lower.strip_prefix("0x") {
        return i64::from_str_radix(hexadecimal, 16).ok();
    }
    if let Some(binary) = lower.strip_prefix("0b") {
        return i64::from_str_radix(binary, 2).ok();
    }
    match digits.len() > 1 && digits.starts_with('0') {
        true => i64::from_str_radix(digits, 8).ok(),
        false => digits.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::integer;

    #[test]
    fn literals_of_every_base_are_read() {
        for (text, value) in [("0", 0), ("1'000u", 1000), ("0x10UL", 16), ("017", 15), ("0b11", 3), ("4096ull", 4096)] {
            assert_eq!(integer(text), Some(value), "{text}");
        }
        assert_eq!(["x", "", "1.5", "99999999999999999999"].map(integer), [None; 4]);
    }
}
