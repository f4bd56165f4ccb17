//! Annotation -> configurations: what a tuning comment spans, enumerated lazily and under its constraints.

mod configuration;

pub use configuration::{Configuration, Dim3, Launch};
