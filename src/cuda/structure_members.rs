//! The numbers in a structure that is passed by value, by the text of its definition.

use super::declarations::without_arguments;
use super::element::Scalar;
use super::host_evaluation::Evaluation;
use super::host_program::{HostProgram, Structure};
use super::types::{Type, vector_fields};
use std::ops::Range;

/// The most levels of nested structures. A structure in text that does not compile may hold itself.
const DEEPEST: usize = 8;

/// The most numbers of one structure, because every configuration holds the value of each.
const MOST: usize = 64;

/// A number in a public field of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructureMember {
    /// `size.x`, `extent[1]`.
    pub path: String,
    /// In bytes from the beginning of the structure.
    pub offset: usize,
    pub scalar: Scalar,
}

/// An element of an array as expressions spell it: the array and the index; `None` of another name.
pub fn array_element(name: &str) -> Option<(&str, u64)> {
    let (array, index) = name.strip_suffix(']')?.rsplit_once('[')?;
    Some((array, index.parse().ok()?))
}

impl StructureMember {
    /// The array that it is an element of.
    pub fn array(&self) -> Option<&str> {
        array_element(&self.path).map(|(array, _)| array)
    }

    /// Whether it agrees with the compiler's offset and type of its field, or of the array that it is
    /// an element of.
    pub fn is_at(&self, offset: u64, kind: &str) -> bool {
        let (element, index) = match array_element(&self.path) {
            Some((_, index)) => (kind.strip_suffix(']').and_then(|kind| Some(kind.split_once('[')?.0)), index),
            None => (Some(kind), 0),
        };
        let is_same = element.is_some_and(|element| Type::parse_type(element) == Type::Scalar(self.scalar));
        is_same && offset + index * self.scalar.size() as u64 == self.offset as u64
    }

    /// The range of its bytes in the structure.
    pub fn bytes(&self) -> Range<usize> {
        self.offset..self.offset + self.scalar.size()
    }
}

impl HostProgram {
    /// The numbers in a type, as the first file sees it. `bytes` is the type's size: if the text gives
    /// it another one, there are none.
    pub fn structure_members(&self, kind: &str, bytes: usize) -> Vec<StructureMember> {
        let evaluation = Evaluation::new(self);
        let mut found = Vec::new();
        if evaluation.size_of(kind, 0) == i64::try_from(bytes).ok()
            && evaluation.add_members(kind, (0, String::new()), DEEPEST, &mut found).is_some()
        {
            found
        } else {
            Vec::new()
        }
    }

    /// The structure of a name, if the files define only one.
    fn only_structure(&self, name: &str) -> Option<&Structure> {
        let [structure] = self.structures.get(name.rsplit("::").next()?)?.as_slice() else { return None };
        let scopes = name.strip_suffix(&structure.name)?;
        (!structure.is_local && (scopes.is_empty() || scopes.ends_with("::"))).then_some(structure)
    }
}

impl Evaluation<'_> {
    /// Adds the numbers in a type that stands at an offset under a path; `None` if that is not known.
    fn add_members(
        &self,
        kind: &str,
        (offset, path): (i64, String),
        depth: usize,
        found: &mut Vec<StructureMember>,
    ) -> Option<()> {
        let text = self.program.resolved_type(0, kind, &[]);
        if found.len() >= MOST || without_arguments(&text).contains('*') {
            return Some(());
        }
        let mut add = |offset: i64, path: String, scalar| {
            found.push(StructureMember { path, offset: usize::try_from(offset).ok()?, scalar });
            Some(())
        };
        if let Some((stem, extent)) = text.split_once('[') {
            // Comments have lists of numbers alone, and no lists of lists.
            let Type::Scalar(scalar) = Type::parse_type(stem) else { return Some(()) };
            let count = if extent.contains('[') { 0 } else { self.array_extent(extent, 0)? };
            return (0..count.min(MOST as i64)).try_for_each(|index| {
                add(offset.checked_add(index * scalar.size() as i64)?, format!("{path}[{index}]"), scalar)
            });
        }
        if let Type::Scalar(scalar) = Type::parse_type(&text) {
            return add(offset, path, scalar);
        }
        let within = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        if let Some(element) = Type::element(text.trim()) {
            let lanes = vector_fields(text.trim()).iter().zip(0_i64..);
            return lanes.into_iter().try_for_each(|(name, lane)| {
                add(offset + lane * element.scalar.size() as i64, within(name), element.scalar)
            });
        }
        let name = text.replace("const", "");
        if self.program.enumeration(&name).is_some() {
            return Some(());
        }
        let structure = self.program.only_structure(name.trim())?;
        let places = self.field_places(structure, 0, depth.checked_sub(1)?)?;
        for (field, place) in structure.fields.iter().zip(places) {
            if self.program.macro_of(0, &field.name).is_some() {
                return None;
            }
            if field.is_public {
                let start = offset.checked_add(place.start)?;
                self.add_members(&field.kind, (start, within(&field.name)), depth - 1, found)?;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(definition: &str, kind: &str, bytes: usize) -> String {
        let program = HostProgram::new(&[("a.cu".to_owned(), definition.to_owned())], &[], &[]);
        let members = program.structure_members(kind, bytes);
        let of = |member: &StructureMember| format!("{} {} {}", member.path, member.offset, member.scalar.name());
        members.iter().map(of).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn members_are_where_the_compiler_has_them() {
        for (definition, kind, bytes, expected) in [
            ("", "dim3", 12, "x 0 unsigned int, y 4 unsigned int, z 8 unsigned int"),
            ("", "const float2", 8, "x 0 float, y 4 float"),
            (
                "struct P { char c; int n; double d; const float *x; long m; };",
                "P",
                32,
                "c 0 signed char, n 4 int, d 8 double, m 24 long long",
            ),
            (
                "typedef struct { int size[2]; } S; struct P { S s; int3 at; };",
                "const P",
                20,
                "s.size[0] 0 int, s.size[1] 4 int, at.x 8 int, at.y 12 int, at.z 16 int",
            ),
            (
                "#define N 2\nstruct P { short a[N], table[3][4]; int n; };",
                "P",
                32,
                "a[0] 0 short, a[1] 2 short, n 28 int",
            ),
            (
                "union U { int n; float x; }; struct P { U u; int m; };",
                "struct P",
                8,
                "u.n 0 int, u.x 0 float, m 4 int",
            ),
            ("class P { int hidden; public: int n; protected: int m; };", "P", 12, "n 4 int"),
            ("class P { public: int n; float *data() const; P &operator=(const P &); void f(); };", "P", 4, "n 0 int"),
            ("namespace a { struct P { int n; }; }", "a::P", 4, "n 0 int"),
            (
                "enum Mode { A }; enum class Small : unsigned char { B }; struct P { Mode m; Small s[3]; short n; };",
                "P",
                12,
                "n 8 short",
            ),
            ("struct Q { struct P { int n; }; };", "Q::P", 4, "n 0 int"),
            ("struct P {\n#if A\nint a;\n#endif\nint n; };", "P", 4, "n 0 int"),
            // The text does not tell which structure it is.
            ("namespace a { struct P { int n; }; }\nnamespace b { struct P { int m; }; }", "P", 4, ""),
            ("struct Q { struct P { int n; }; };", "P", 4, ""),
            ("void f() { struct P { int n; }; }", "P", 4, ""),
            ("#define width width_\nstruct P { int width; };", "P", 4, ""),
            ("struct P { union { int a; float b; }; int width; double d; };", "P", 16, ""),
            ("struct P { int &n; int m; };", "P", 8, ""),
            // The text does not tell the layout.
            ("struct P : Q { int n; };", "P", 8, ""),
            ("struct P { virtual void f(); int n; };", "P", 16, ""),
            ("struct P { int a : 3; int n; };", "P", 8, ""),
            ("struct __align__(16) P { int n; };", "P", 16, ""),
            ("struct alignas(16) P { int n; };", "P", 16, ""),
            ("struct P { Unknown q; int n; };", "P", 8, ""),
            ("struct P { char c; int n; };", "P", 5, ""),
            ("", "Missing", 4, ""),
        ] {
            assert_eq!(members(definition, kind, bytes), expected, "{definition}");
        }
    }
}
