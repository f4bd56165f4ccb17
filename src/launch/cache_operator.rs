//! Cache operators of loads.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A cache operator of loads ("PTX ISA", 9.7.9.1, Cache Operators), as `ptxas -dlcm` takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadCacheOperator {
    /// Cache at all levels.
    Ca,
    /// Cache in L2 and below, not in L1.
    Cg,
    /// Streaming: likely to be used once, evicted first.
    Cs,
    /// Last use.
    Lu,
    /// Do not cache: fetch again.
    Cv,
}

impl LoadCacheOperator {
    /// Every operator by its name.
    pub const ALL: [(&'static str, Self); 5] =
        [("ca", Self::Ca), ("cg", Self::Cg), ("cs", Self::Cs), ("lu", Self::Lu), ("cv", Self::Cv)];
}

impl fmt::Display for LoadCacheOperator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, operator)| operator == self).map_or("", |(name, _)| name);
        formatter.write_str(name)
    }
}

impl FromStr for LoadCacheOperator {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, operator)| *operator).ok_or(())
    }
}
