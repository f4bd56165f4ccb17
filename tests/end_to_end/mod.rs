//! nvtune as its users see it: in nvcc's place, measuring from recorded timings, and by its own command line.

mod advice;
mod bench;
mod cli;
mod headers;
mod interrupted;
mod launches;
mod measured;
mod modes;
mod nvcc;
mod overlap;
mod project;
mod recalled;
mod refused;
mod remap;
mod results;
mod tools;
mod trusted;
