//! The interpreter of PTX. It runs a [`Warp`](warp::Warp): lanes that execute a step together.
//!
//! A block is some of its warps, 32 lanes each, whose exchanged values are exact ([`block`]). A
//! thread alone is a warp of one lane, which knows nothing of others ([`thread`]). What an
//! instruction does is written once, for any number of lanes; what differs is the
//! [`Policy`](warp::Policy): what is known of threads that are not run, and what is observed.
//!
//! Every value carries whether it is known. A branch on an unknown value makes the outcome
//! inexact. It follows the replacement (zero, or the thread's own value), but at most
//! [`MAX_SAME_DIRECTION`](warp::MAX_SAME_DIRECTION) times the same way.

mod block;
mod calls;
mod collective;
mod context;
mod lanes;
mod race_watch;
mod registers;
mod state;
mod storage;
mod thread;
mod warp;

pub(super) use block::{BlockAllowance, BlockOutcome, WarpOutcome, run_block};
pub(super) use context::{LaunchContext, ThreadPosition};
pub use thread::LaunchViolation;
pub(super) use thread::{ThreadAllowance, ThreadOutcome, run_thread};
