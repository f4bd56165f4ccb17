//! nvtune as its users see it: in nvcc's place, measuring from recorded timings, and by its own command line.

mod alternatives;
mod cases;
mod cli;
mod dispatch;
mod environments;
mod explain;
mod headers;
mod interrupted;
mod launches;
mod macros;
mod math;
mod measured;
mod modes;
mod options;
mod outputs;
mod overlap;
mod passthrough;
mod progress;
mod project;
mod recalled;
mod refused;
mod remap;
mod report;
mod results;
mod tools;
mod trusted;
