//! TODOC

mod configuration;

pub use configuration::{Configuration, Departure, Dim3, Launch, shape};
