//! The text of a C type -> what a workload can give it.

use super::element::{Element, Scalar};

/// The type of a kernel's parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Scalar(Scalar),
    Pointer {
        element: Element,
        is_const: bool,
    },
    /// Anything else, as text: a struct by value, a pointer to a pointer, a texture reference.
    Other(String),
}

/// Names of scalar types. `long` has 64 bits, as on every 64-bit system but Windows. A `bool`
/// is a byte.
const SCALARS: [(&str, Scalar); 54] = [
    ("bool", Scalar::U8),
    ("_Bool", Scalar::U8),
    ("char", Scalar::I8),
    ("signed char", Scalar::I8),
    ("int8_t", Scalar::I8),
    ("unsigned char", Scalar::U8),
    ("char8_t", Scalar::U8),
    ("uint8_t", Scalar::U8),
    ("std::byte", Scalar::U8),
    ("short", Scalar::I16),
    ("short int", Scalar::I16),
    ("signed short", Scalar::I16),
    ("int16_t", Scalar::I16),
    ("unsigned short", Scalar::U16),
    ("unsigned short int", Scalar::U16),
    ("ushort", Scalar::U16),
    ("char16_t", Scalar::U16),
    ("uint16_t", Scalar::U16),
    ("int", Scalar::I32),
    ("signed", Scalar::I32),
    ("signed int", Scalar::I32),
    ("wchar_t", Scalar::I32),
    ("int32_t", Scalar::I32),
    ("unsigned", Scalar::U32),
    ("unsigned int", Scalar::U32),
    ("uint", Scalar::U32),
    ("char32_t", Scalar::U32),
    ("uint32_t", Scalar::U32),
    ("long", Scalar::I64),
    ("long int", Scalar::I64),
    ("signed long", Scalar::I64),
    ("long long", Scalar::I64),
    ("long long int", Scalar::I64),
    ("signed long long", Scalar::I64),
    ("int64_t", Scalar::I64),
    ("ptrdiff_t", Scalar::I64),
    ("ssize_t", Scalar::I64),
    ("intptr_t", Scalar::I64),
    ("unsigned long", Scalar::U64),
    ("unsigned long int", Scalar::U64),
    ("ulong", Scalar::U64),
    ("unsigned long long", Scalar::U64),
    ("unsigned long long int", Scalar::U64),
    ("uint64_t", Scalar::U64),
    ("size_t", Scalar::U64),
    ("uintptr_t", Scalar::U64),
    ("__half", Scalar::F16),
    ("half", Scalar::F16),
    ("_Float16", Scalar::F16),
    ("__nv_bfloat16", Scalar::Bf16),
    ("nv_bfloat16", Scalar::Bf16),
    ("float", Scalar::F32),
    ("double", Scalar::F64),
    ("signed long int", Scalar::I64),
];

/// Stems of CUDA's vector types (`vector_types.h`): a number of lanes from 1 to 4 follows.
const VECTORS: [(&str, Scalar); 12] = [
    ("char", Scalar::I8),
    ("uchar", Scalar::U8),
    ("short", Scalar::I16),
    ("ushort", Scalar::U16),
    ("int", Scalar::I32),
    ("uint", Scalar::U32),
    ("long", Scalar::I64),
    ("ulong", Scalar::U64),
    ("longlong", Scalar::I64),
    ("ulonglong", Scalar::U64),
    ("float", Scalar::F32),
    ("double", Scalar::F64),
];

/// Vectors of half precision.
const PACKED: [(&str, Scalar); 4] = [
    ("__half2", Scalar::F16),
    ("half2", Scalar::F16),
    ("__nv_bfloat162", Scalar::Bf16),
    ("nv_bfloat162", Scalar::Bf16),
];

impl Type {
    /// What a variable of this type, or an array of it, is made of.
    pub fn element(text: &str) -> Option<Element> {
        element_named(&strip_qualifiers(text).1)
    }

    /// Returns the type that a text spells.
    pub fn parse_type(text: &str) -> Type {
        let other = || Type::Other(text.trim().to_string());
        let (_, base) = strip_qualifiers(text);
        match base.strip_suffix('*') {
            None => scalar_named(&base).map_or_else(other, Type::Scalar),
            Some(target) => {
                let (is_const, target) = strip_qualifiers(target);
                let element = match target.as_str() {
                    // What is behind it is counted in bytes.
                    "void" => Some(Element { scalar: Scalar::U8, lanes: 1 }),
                    target => element_named(target).or_else(|| array_element(target)),
                };
                element.map_or_else(other, |element| Type::Pointer { element, is_const })
            }
        }
    }
}

/// Whether a type is const at its outermost level, and the type without qualifiers there and
/// class keys.
fn strip_qualifiers(text: &str) -> (bool, String) {
    const IGNORED: [&str; 8] =
        ["volatile", "__restrict__", "__restrict", "restrict", "struct", "class", "enum", "__grid_constant__"];
    let spaced = text.replace('*', " * ").replace('&', " & ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    // Qualifiers after the last `*` are the pointer's; without a `*` all are the type's.
    let last = words.iter().rposition(|&word| word == "*");
    let (target, outer) = match last {
        Some(at) => words.split_at(at + 1),
        None => (&words[..0], &words[..]),
    };
    let is_const = outer.contains(&"const");
    let kept = outer.iter().filter(|&&word| word != "const" && !IGNORED.contains(&word));
    let text: Vec<&str> = target.iter().chain(kept).copied().collect();
    (is_const, text.join(" ").trim_start_matches("::").to_string())
}

/// What an array (`float[4][8]`) is made of: a pointer to it is one to numbers that lie side by
/// side.
fn array_element(text: &str) -> Option<Element> {
    let (stem, extents) = text.split_once('[')?;
    element_named(stem.trim_end()).filter(|_| extents.ends_with(']'))
}

/// The fields of one of CUDA's vectors of several numbers; none of another type.
pub fn vector_fields(text: &str) -> &'static [&'static str] {
    match Type::element(text).map(|element| usize::from(element.lanes)) {
        Some(lanes @ 2..) => ["x", "y", "z", "w"].get(..lanes).unwrap_or_default(),
        _ => &[],
    }
}

fn scalar_named(name: &str) -> Option<Scalar> {
    let name = name.strip_prefix("std::").filter(|name| name.ends_with("_t")).unwrap_or(name);
    SCALARS.iter().find(|(known, _)| *known == name).map(|(_, scalar)| *scalar)
}

fn element_named(name: &str) -> Option<Element> {
    if name == "dim3" {
        return Some(Element { scalar: Scalar::U32, lanes: 3 });
    }
    if let Some(scalar) = scalar_named(name) {
        return Some(Element { scalar, lanes: 1 });
    }
    if let Some((_, scalar)) = PACKED.iter().find(|(known, _)| *known == name) {
        return Some(Element { scalar: *scalar, lanes: 2 });
    }
    // CUDA 13 has `double4_16a` and `double4_32a`, by alignment.
    let stem = name.strip_suffix("_16a").or_else(|| name.strip_suffix("_32a")).unwrap_or(name);
    let lanes = stem.bytes().last().filter(|byte| (b'1'..=b'4').contains(byte))? - b'0';
    let stem = &stem[..stem.len() - 1];
    VECTORS.iter().find(|(known, _)| *known == stem).map(|(_, scalar)| Element { scalar: *scalar, lanes })
}

#[cfg(test)]
mod tests {
    use super::Type;

    #[test]
    fn texts_become_types() {
        for (text, expected) in [
            ("float", "Scalar(F32)"),
            ("const int", "Scalar(I32)"),
            ("struct __half", "Scalar(F16)"),
            ("std::uint32_t", "Scalar(U32)"),
            ("unsigned long long", "Scalar(U64)"),
            ("const float *__restrict__", "Pointer { element: Element { scalar: F32, lanes: 1 }, is_const: true }"),
            ("float *const", "Pointer { element: Element { scalar: F32, lanes: 1 }, is_const: false }"),
            ("float const*", "Pointer { element: Element { scalar: F32, lanes: 1 }, is_const: true }"),
            ("const volatile int *", "Pointer { element: Element { scalar: I32, lanes: 1 }, is_const: true }"),
            ("struct ::float4 *", "Pointer { element: Element { scalar: F32, lanes: 4 }, is_const: false }"),
            ("ulonglong2 *", "Pointer { element: Element { scalar: U64, lanes: 2 }, is_const: false }"),
            ("double4_32a *", "Pointer { element: Element { scalar: F64, lanes: 4 }, is_const: false }"),
            ("const __nv_bfloat162 *", "Pointer { element: Element { scalar: Bf16, lanes: 2 }, is_const: true }"),
            ("const void *", "Pointer { element: Element { scalar: U8, lanes: 1 }, is_const: true }"),
            ("bool *", "Pointer { element: Element { scalar: U8, lanes: 1 }, is_const: false }"),
            ("float[4] *", "Pointer { element: Element { scalar: F32, lanes: 1 }, is_const: false }"),
            ("const double2[4][8] *", "Pointer { element: Element { scalar: F64, lanes: 2 }, is_const: true }"),
            ("float *[4] *", "Other(\"float *[4] *\")"),
            ("Cell[4] *", "Other(\"Cell[4] *\")"),
            ("float **", "Other(\"float **\")"),
            ("float[4] &", "Other(\"float[4] &\")"),
            ("struct Params", "Other(\"struct Params\")"),
            ("float4", "Other(\"float4\")"),
            ("void(int) *", "Other(\"void(int) *\")"),
            ("", "Other(\"\")"),
        ] {
            assert_eq!(format!("{:?}", Type::parse_type(text)), expected, "{text}");
        }
    }
}
