//! Measuring without a GPU: the child answers from recorded timings, everything else is what runs with one.

mod driver;
mod gpus;
mod mig;
mod process;
mod recorded;
mod results;
mod runner;
mod textures;
