//! Resources, SASS, PTX profile, architecture tables -> score.
//!
//! [`Analysis::new`] analyses a variant's code once: its control flow, block frequencies and
//! schedule. [`score_configuration`] then scores any block shape of it within microseconds:
//! occupancy, the metrics of Liang et al. and Ryoo et al., and a predicted time.

mod access_defaults;
mod analysis;
mod block_frequency;
mod bottleneck;
mod breakdown;
mod caches;
mod calibration;
mod constant_cache;
pub mod latency;
pub mod liang;
pub mod occupancy;
mod reuse;
pub mod ryoo;
mod schedule_sim;
mod score;
mod time;

pub use analysis::{Analysis, Spills, Traffic, Work};
pub use bottleneck::Bottleneck;
pub use breakdown::Terms;
pub use calibration::{CALIBRATION, CONSTANTS, Calibration, Constant};
pub use occupancy::Limiter;
pub use reuse::Reuse;
pub use score::{Inputs, Score, score_configuration};
pub use time::Prediction;
