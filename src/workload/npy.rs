//! The bytes of a `.npy` file -> the type of its elements and where they are.
//!
//! The format: NumPy enhancement proposal 1. Magic, version, length of a header, the header (a
//! Python dictionary as text), the elements. What is not plain little-endian numbers in C order
//! is refused with the reason.

use crate::cuda::Scalar;
use std::ops::Range;

/// An array in a `.npy` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    /// The elements' type as NumPy spells it (`<f4`).
    pub kind: String,
    /// Scalars in all.
    pub count: u64,
    /// Its bytes in the file.
    pub data: Range<usize>,
}

/// NumPy's names of the scalars; a bfloat16 has none, and is kept as 16 bits.
const KINDS: [(&str, &[Scalar]); 14] = [
    ("|b1", &[Scalar::U8]),
    ("|i1", &[Scalar::I8]),
    ("|u1", &[Scalar::U8]),
    ("<i2", &[Scalar::I16]),
    ("<u2", &[Scalar::U16, Scalar::Bf16]),
    ("<V2", &[Scalar::Bf16]),
    ("|V2", &[Scalar::Bf16]),
    ("<i4", &[Scalar::I32]),
    ("<u4", &[Scalar::U32]),
    ("<i8", &[Scalar::I64]),
    ("<u8", &[Scalar::U64]),
    ("<f2", &[Scalar::F16]),
    ("<f4", &[Scalar::F32]),
    ("<f8", &[Scalar::F64]),
];

/// What every such file begins with.
pub const MAGIC: &[u8] = b"\x93NUMPY";

impl Array {
    /// Reads the header; the error says what is wrong with the file.
    pub fn parse(file: &[u8]) -> Result<Array, String> {
        let broken = || "is no whole .npy file".to_owned();
        let rest = file.strip_prefix(MAGIC).ok_or_else(broken)?;
        let (version, rest) = rest.split_at_checked(2).ok_or_else(broken)?;
        // The length has two bytes in version 1 and four after it.
        let width = if version[0] == 1 { 2 } else { 4 };
        let (length, rest) = rest.split_at_checked(width).ok_or_else(broken)?;
        let length = length.iter().rev().fold(0usize, |sum, byte| sum << 8 | usize::from(*byte));
        let header = rest.get(..length).and_then(|header| std::str::from_utf8(header).ok()).ok_or_else(broken)?;
        let start = file.len() - rest.len() + length;

        let kind = after(header, "descr").and_then(quoted).ok_or("has elements that are no plain numbers")?;
        let shape = after(header, "shape").and_then(numbers).ok_or_else(broken)?;
        let fortran = after(header, "fortran_order").is_some_and(|text| text.starts_with("True"));
        if fortran && shape.iter().filter(|&&extent| extent > 1).count() > 1 {
            return Err("is in Fortran order; save it in C order".to_owned());
        }
        if kind.starts_with('>') {
            return Err(format!("has big-endian elements ({kind}); the GPU's are little-endian"));
        }
        let count = shape.iter().try_fold(1u64, |product, extent| product.checked_mul(*extent)).ok_or_else(broken)?;
        Ok(Array { kind: kind.to_owned(), count, data: start..file.len() })
    }

    /// Whether its elements can be read as scalars of this type.
    pub fn holds(&self, scalar: Scalar) -> bool {
        KINDS.iter().any(|(name, scalars)| *name == self.kind && scalars.contains(&scalar))
    }
}

/// What follows `'key':` in the header.
fn after<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let at = ['\'', '"'].into_iter().find_map(|quote| {
        let key = format!("{quote}{key}{quote}");
        Some(header.find(&key)? + key.len())
    })?;
    header.get(at..)?.trim_start().strip_prefix(':').map(str::trim_start)
}

fn quoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    text.get(1..)?.split(quote).next()
}

/// The numbers of a tuple.
fn numbers(text: &str) -> Option<Vec<u64>> {
    let inner = text.strip_prefix('(')?.split(')').next()?;
    inner.split(',').map(str::trim).filter(|part| !part.is_empty()).map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as NumPy writes it.
    fn npy(header: &str, data: &[u8]) -> Vec<u8> {
        let mut file = [MAGIC, &[1, 0]].concat();
        let header = format!("{header}\n");
        file.extend(u16::try_from(header.len()).unwrap_or(0).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(data);
        file
    }

    #[test]
    fn headers_are_read() {
        let file = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", &[0; 24]);
        let array = Array::parse(&file).expect("a good file");
        assert_eq!((array.kind.as_str(), array.count, array.data.len()), ("<f4", 6, 24));
        assert!(array.holds(Scalar::F32) && !array.holds(Scalar::I32));
        let one = npy("{'descr': '|u1', 'fortran_order': True, 'shape': (3,), }", &[0; 3]);
        assert_eq!(Array::parse(&one).map(|array| array.count), Ok(3));
        for (file, reason) in [
            (npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", &[]), "is in Fortran order"),
            (npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", &[]), "has big-endian elements (>f4)"),
            (npy("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,), }", &[]), "no plain numbers"),
            (npy("{'descr': '<f4', 'shape': (99999999999, 99999999999), }", &[]), "is no whole .npy file"),
            (b"x,y\n1,2\n".to_vec(), "is no whole .npy file"),
        ] {
            let error = Array::parse(&file).expect_err("a bad file");
            assert!(error.contains(reason), "{error}");
        }
        for length in 0..file.len() - 24 {
            assert!(Array::parse(&file[..length]).is_err(), "{length}");
        }
    }
}
