//! nvtune as its users see it: in nvcc's place, measuring from recorded timings, and by its own command line.

mod cli;
mod measured;
mod nvcc;
mod project;
