//! One configuration of a kernel, what the front end is run with for it, and the launch that it
//! gives: values, no code.

mod cache_operator;
mod configuration;
mod front_end_options;
mod grid_limit;
mod math;

pub use cache_operator::LoadCacheOperator;
pub use configuration::{Configuration, DIMENSIONS, Departure, Dim3, Launch, shape};
pub use front_end_options::FrontEndOptions;
pub use grid_limit::{GridLimit, blocks};
pub use math::{Math, MathOption};
