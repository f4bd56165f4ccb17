//! The layout of a structure, as far as a comment asks.

use std::collections::BTreeMap;

/// A structure, as far as the comment asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of all of it.
    pub bytes: u64,
    /// By path (`inner.x`); that of an enumeration itself is empty.
    pub fields: BTreeMap<String, Field>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// In bytes from the beginning of the structure.
    pub offset: u64,
    /// The type as text, without typedefs; of an enumeration that which it is kept in.
    pub kind: String,
}
