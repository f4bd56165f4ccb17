//! What nvtune is among other processes: how it ends, what it starts, what it leaves behind.
//!
//! Always holds: a call that is nvcc's alone ([`hand_over`]) inherits nvtune's own signals, files and environment untouched;
//! what one build alone may use at a time goes by turns ([`Turn`]); after a signal no child goes on and no temporary folder stays;
//! no more tools run at once than make allows; no tool that nvtune runs for its own purposes is waited for without end.

mod began;
mod descendants;
mod hand_over;
mod interrupt;
mod jobs;
mod patience;
mod temporary;
mod turn;

pub use began::began;
pub use hand_over::{hand_over, ignore_broken_pipes};
pub use interrupt::{set_last_words, set_undo, spawn, status, uninterrupted, wait_where_interrupted, watch, worker};
pub use jobs::{Permit, permit, permit_beside, prepare as prepare_jobs};
pub use patience::{output, patience, seconds};
pub use temporary::Temporary;
pub use turn::Turn;
