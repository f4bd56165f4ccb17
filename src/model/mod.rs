//! Resources, SASS, PTX profile, architecture tables -> score.

pub mod frequency;
pub mod profile;
