//! Scores, and timings so far -> candidates, winner. Pure functions.

mod pareto;
mod strategy;
mod winner;

pub use pareto::pareto_front;
pub use strategy::{Point, Strategy, candidates};
pub use winner::{Provenance, predicted_winner};
