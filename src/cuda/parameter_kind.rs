//! The type of a parameter, as the sources spell it out -> what a launch gives it.

use super::declarations::{opaque_handle, without_arguments};
use super::host_evaluation::Evaluation;
use super::host_program::HostProgram;
use super::types::Type;

/// What a parameter takes.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterKind {
    Scalar {
        is_float: bool,
    },
    Pointer,
    /// A structure with its fields: names and types.
    Structure(Vec<(String, ParameterKind)>),
    /// A field that is an array of numbers.
    Array,
    /// A reference, a pointer to pointers, a texture, a union.
    Other,
    /// A type that no text explains.
    Unknown,
}

impl ParameterKind {
    /// Whether no text explains the type, or that of a field.
    pub fn is_unknown(&self) -> bool {
        match self {
            Self::Unknown => true,
            Self::Structure(fields) => fields.iter().any(|(_, kind)| kind.is_unknown()),
            Self::Scalar { .. } | Self::Pointer | Self::Array | Self::Other => false,
        }
    }
}

impl HostProgram {
    /// What a parameter of this type takes; names of types are resolved in a file.
    pub fn parameter_kind(&self, path: &str, kind: &str) -> ParameterKind {
        self.kind_of(path, kind, 3)
    }

    fn kind_of(&self, path: &str, kind: &str, depth: usize) -> ParameterKind {
        let text = self.parameter_type(path, kind);
        match Type::parse_type(&text) {
            Type::Scalar(scalar) => return ParameterKind::Scalar { is_float: scalar.is_float() },
            Type::Pointer { .. } => return ParameterKind::Pointer,
            // Behind a brace are fields of a structure without a name.
            Type::Other(_) if text.contains(['&', '(', '{']) || opaque_handle(&text).is_some() => {
                return ParameterKind::Other;
            }
            Type::Other(_) if text.contains('[') => {
                let is_of_numbers = text.split('[').next().is_some_and(|stem| Type::element(stem.trim()).is_some());
                return if is_of_numbers { ParameterKind::Array } else { ParameterKind::Other };
            }
            Type::Other(_) => {}
        }
        let stem = text.replace("const", "");
        match without_arguments(&stem).matches('*').count() {
            0 => {}
            1 => return ParameterKind::Pointer,
            _ => return ParameterKind::Other,
        }
        let file = self.files.iter().position(|file| file.path == path).unwrap_or(0);
        let fields: Vec<(String, String)> = match Type::element(&stem) {
            Some(element) => {
                let names = ["x", "y", "z", "w"].into_iter().take(element.lanes.into());
                names.map(|name| (name.to_owned(), element.scalar.name().to_owned())).collect()
            }
            None => match self.structure(file, &stem) {
                Some(structure) if structure.is_union => return ParameterKind::Other,
                Some(structure) if depth > 0 && !structure.fields.is_empty() => {
                    structure.fields.iter().map(|field| (field.name.clone(), field.kind.clone())).collect()
                }
                _ => return ParameterKind::Unknown,
            },
        };
        let kinds = fields.into_iter().map(|(name, kind)| {
            let kind = self.kind_of(path, &kind, depth.saturating_sub(1));
            (name, kind)
        });
        ParameterKind::Structure(kinds.collect())
    }

    /// A type without names that stand for others, as seen from a file.
    pub fn parameter_type(&self, path: &str, kind: &str) -> String {
        let file = self.files.iter().position(|file| file.path == path).unwrap_or(0);
        self.resolved_type(file, kind, &[])
    }

    /// The numbers that a structure is made of, if they are all of one type: it, and their number.
    pub fn structure_element(&self, path: &str, kind: &str) -> Option<(String, i64)> {
        let file = self.files.iter().position(|file| file.path == path)?;
        let evaluation = Evaluation::new(self);
        let kind = self.resolved_type(file, kind, &[]).replace("const", "");
        let size = evaluation.size_of(&kind, file)?;
        let structure = self.structure(file, &kind)?;
        let mut scalars = structure.fields.iter().map(|field| {
            let text = self.resolved_type(file, &field.kind, &[]);
            let stem = text.split('[').next().unwrap_or("").trim().to_owned();
            Type::element(&stem).map(|element| element.scalar)
        });
        let first = scalars.next()??;
        scalars.all(|other| other == Some(first)).then(|| (first.name().to_owned(), size / first.size() as i64))
    }

    /// The type of a structure's field, as seen from a file.
    pub fn field_type(&self, path: &str, kind: &str, field: &str) -> Option<String> {
        let kind = self.parameter_type(path, kind).replace("const", "");
        let file = self.files.iter().position(|file| file.path == path)?;
        let structure = self.structure(file, &kind)?;
        let own = structure.fields.iter().find(|own| own.name == field)?;
        Some(self.parameter_type(path, &own.kind))
    }

    /// Bytes of a type, as seen from a file.
    pub fn size_of_type(&self, path: &str, kind: &str) -> Option<i64> {
        let file = self.files.iter().position(|file| file.path == path)?;
        Evaluation::new(self).size_of(kind, file)
    }
}
