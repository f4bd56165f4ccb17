//! Scores, and timings so far -> candidates, winner. Pure functions.

mod few;
mod gaussian_process;
mod pareto;
mod point;
mod prior;
mod problem;
mod refit;
mod strategies;
mod winner;

pub use pareto::pareto_front;
pub use point::Point;
pub use refit::Refit;
pub use strategies::{Search, choose_candidates, po_pareto_set};
pub use winner::{Promise, Provenance, list_promises, predicted_winner};
