//! Sources -> their kernels' whole spaces, timed and recorded: the truth that models and strategies are judged by.
//!
//! In: sources with tuning comments, a GPU. Out: a [`RecordedSpace`](nvtune::record::RecordedSpace) for each kernel under
//! `results/GPU/`. Invariant: a kernel that fails leaves the others' files; what is recorded already is not timed again.

mod campaign;
mod date;
mod facts;
mod recorded;
mod timed;

pub use campaign::{Campaign, run};
