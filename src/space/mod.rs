//! Annotation -> configurations: what a tuning comment spans, enumerated lazily and under its constraints.

mod build;
mod configuration;
mod counted;
mod limits;
mod names;
mod shapes;
#[allow(clippy::module_inception)]
mod space;
mod walk;

pub use configuration::{Configuration, Departure, Dim3, Launch, shape};
pub use counted::Counted;
pub use limits::{Limits, MAX_BLOCK, MAX_BLOCK_THREADS, MAX_GRID};
pub use space::Space;
