//! Resources, SASS, PTX profile, architecture tables -> score.

pub mod profile;
