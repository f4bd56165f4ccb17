//! For which grids of the program a winner runs.

use super::Dim3;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The numbers of blocks of the baseline's grid for which a winner runs in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GridLimit {
    AtLeast(u64),
    AtMost(u64),
}

impl GridLimit {
    /// Returns the limit that keeps all grids of some numbers of blocks and none of others. `None`
    /// if there is no such limit.
    pub fn between(kept: &[u64], left_out: &[u64]) -> Option<Self> {
        let (least, most) = (*kept.iter().min()?, *kept.iter().max()?);
        if left_out.iter().all(|&blocks| blocks < least) {
            Some(Self::AtLeast(least))
        } else if left_out.iter().all(|&blocks| blocks > most) {
            Some(Self::AtMost(most))
        } else {
            None
        }
    }

    pub fn holds(self, blocks: u64) -> bool {
        match self {
            Self::AtLeast(least) => blocks >= least,
            Self::AtMost(most) => blocks <= most,
        }
    }
}

impl fmt::Display for GridLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "at least {least} blocks"),
            Self::AtMost(most) => write!(f, "at most {most} blocks"),
        }
    }
}

/// The number of blocks of a grid.
pub fn blocks(grid: Dim3) -> u64 {
    grid.iter().map(|&extent| u64::from(extent)).product()
}

#[cfg(test)]
mod tests {
    use super::GridLimit;

    #[test]
    fn limit_separates_grids_or_there_is_none() {
        for (kept, left_out, limit) in [
            (&[64, 512][..], &[8, 16][..], Some(GridLimit::AtLeast(64))),
            (&[64, 512], &[1024], Some(GridLimit::AtMost(512))),
            (&[64, 512], &[128], None),
            (&[64], &[64], None),
            (&[64], &[32, 128], None),
        ] {
            assert_eq!(GridLimit::between(kept, left_out), limit, "{kept:?} {left_out:?}");
            let limit = limit.map(|limit| (limit, kept.iter().all(|&of| limit.holds(of))));
            assert!(limit.is_none_or(|(limit, keeps)| keeps && !left_out.iter().any(|&of| limit.holds(of))));
        }
    }
}
