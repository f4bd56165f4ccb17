//! The strategies that choose candidates, by the names that settings and comments have for
//! them.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How candidates are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Exhaustive: every configuration.
    Es,
    /// Those with the highest RO; ties are measured (Liang et al., section IV).
    Ros,
    /// The Pareto-optimal ones in (T, C) within each value of total threads (Liang et al.,
    /// algorithm 1), and those that only what is predicted to be slower betters.
    Pos,
    /// POS, filtered by occupancy (Liang et al., section IV), ties in (T, C) thinned, and the
    /// configurations of least predicted time besides.
    Posf,
    /// In rounds: what hedges the prediction first, then what is expected to win by all timings so
    /// far (see `search::BayesianSearch`).
    #[default]
    Refit,
    /// The Pareto-optimal ones in efficiency and utilization of those that memory bandwidth
    /// does not bound, one for each cluster of equal metrics (Ryoo et al., section 5).
    Ryoo,
}

impl Strategy {
    /// Every strategy, by the name that `NVTUNE_STRATEGY` and `strategy(...)` use.
    pub const ALL: [(&'static str, Self); 6] = [
        ("refit", Self::Refit),
        ("es", Self::Es),
        ("ros", Self::Ros),
        ("pos", Self::Pos),
        ("posf", Self::Posf),
        ("ryoo", Self::Ryoo),
    ];

    /// Their names, as help and messages list them.
    pub const NAMES: &str = "refit, es, ros, pos, posf, ryoo";
}

impl fmt::Display for Strategy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, strategy)| strategy == self).map_or("", |(name, _)| name);
        formatter.write_str(name)
    }
}

impl FromStr for Strategy {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, strategy)| *strategy).ok_or(())
    }
}
