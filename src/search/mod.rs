//! Scores, and timings so far -> candidates, winner. Pure functions.

mod pareto;
mod strategy;
mod winner;

pub use pareto::pareto_front;
pub use strategy::{Point, Strategy, candidates, po_pareto_set};
pub use winner::{Provenance, predicted_winner};
