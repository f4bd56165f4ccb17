//! Resources, SASS, PTX profile, architecture tables -> score.
//!
//! [`Analysis::new`] looks at a variant once: its control flow, block frequencies and schedule. [`score`] then scores any block
//! shape of it in microseconds: occupancy, the metrics of Liang et al. and Ryoo et al., and a predicted time.

mod alike;
mod analysis;
pub mod architecture;
mod bottleneck;
mod caches;
mod conservation;
mod constants;
mod counts;
pub mod frequency;
pub mod latency;
pub mod liang;
pub mod occupancy;
pub mod profile;
mod replay;
mod reuse;
pub mod ryoo;
mod score;
mod terms;
mod time;

pub use analysis::{Analysis, Spills, Traffic, Work};
pub use architecture::{
    Architecture, MAX_REGISTERS, Machine, REGISTER_UNIT, REGISTERS, SUB_CORES, WARP, architecture_number, auto_caps,
};
pub use bottleneck::Bottleneck;
pub use occupancy::Limiter;
pub use profile::Profile;
pub use reuse::Reuse;
pub use score::{Inputs, Score, score};
pub use terms::{CORNER, Terms};
pub use time::Prediction;
