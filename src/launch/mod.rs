//! One configuration of a kernel and the launch that it gives: values, no code.

mod cache_operator;
mod configuration;

pub use cache_operator::CacheOperator;
pub use configuration::{Configuration, DIMENSIONS, Departure, Dim3, Launch, shape};
