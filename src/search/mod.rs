//! Scores, and timings so far -> candidates, winner. Pure functions.

mod bayesian;
mod gaussian_process;
mod pareto;
mod point;
mod posterior;
mod prior;
mod problem;
mod strategies;
mod winner;

pub use pareto::pareto_front;
pub use point::Point;
pub use strategies::{Search, choose_candidates, po_pareto_set};
pub use winner::{Promise, Provenance, list_promises, predicted_winner};
