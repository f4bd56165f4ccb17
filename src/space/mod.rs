//! Annotation -> configurations: what a tuning comment spans, enumerated lazily and under its
//! constraints.

mod advice;
mod baseline;
mod build;
mod constraint_failure;
mod grid_factors;
mod limits;
mod names;
pub mod shapes;
#[allow(clippy::module_inception, reason = "the module spans spaces, the file holds the type")]
mod space;
mod walk;

pub use advice::{Facts, LaunchBounds, Overrun, give_advice};
pub use grid_factors::GridFactors;
pub use limits::{Limits, MAX_BLOCK, MAX_BLOCK_THREADS, MAX_GRID};
pub use space::Space;
