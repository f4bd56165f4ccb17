//! Scores, and timings so far -> candidates, winner. Pure functions.

mod few;
mod gaussian;
mod hedge;
mod pareto;
mod refit;
mod strategy;
mod task;
mod winner;

pub use pareto::pareto_front;
pub use refit::Refit;
pub use strategy::{Point, Search, Strategy, candidates, po_pareto_set};
pub use winner::{Promise, Provenance, predicted_winner, promises};
