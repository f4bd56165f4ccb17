//! The condition of a GPU during measurements: clocks, temperature, reasons for throttling.

use serde::{Deserialize, Serialize};

/// The condition of a GPU at one moment, from NVML. Zero stands for an unknown value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Condition {
    /// Clocks of multiprocessors and memory in MHz.
    pub sm_mhz: u32,
    pub memory_mhz: u32,
    /// In degrees Celsius.
    pub temperature_c: u32,
    /// Why the clocks are lower than they could be: NVML's reasons that come and go by
    /// themselves (see `nvml.rs`).
    pub throttled: Vec<String>,
}

/// The conditions over all rounds of a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// Lowest and highest clock of the multiprocessors, and of the memory, in MHz.
    pub sm_mhz: (u32, u32),
    pub memory_mhz: (u32, u32),
    /// Highest temperature in degrees Celsius.
    pub temperature_c: u32,
    /// Every reason for lower clocks that occurred.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub throttled: Vec<String>,
    /// Rounds that count, and those that were repeated because the GPU was throttled.
    pub rounds: u32,
    pub repeated: u32,
    /// Rounds that count although the GPU was throttled, because it did not stop being so.
    pub doubtful: u32,
}

impl Conditions {
    /// Adds the state at the end of a round, and whether the round counts.
    pub fn add_round(&mut self, condition: &Condition, counts: bool) {
        widen_range(&mut self.sm_mhz, condition.sm_mhz);
        widen_range(&mut self.memory_mhz, condition.memory_mhz);
        self.temperature_c = self.temperature_c.max(condition.temperature_c);
        for reason in &condition.throttled {
            if !self.throttled.contains(reason) {
                self.throttled.push(reason.clone());
            }
        }
        match counts {
            true => self.rounds += 1,
            false => self.repeated += 1,
        }
        self.doubtful += u32::from(counts && !condition.throttled.is_empty());
    }

    /// Joins the conditions of two GPUs.
    pub fn joined_with(mut self, other: Conditions) -> Conditions {
        for (range, with) in [(&mut self.sm_mhz, other.sm_mhz), (&mut self.memory_mhz, other.memory_mhz)] {
            [with.0, with.1].into_iter().for_each(|value| widen_range(range, value));
        }
        self.temperature_c = self.temperature_c.max(other.temperature_c);
        let new: Vec<String> = other.throttled.into_iter().filter(|reason| !self.throttled.contains(reason)).collect();
        self.throttled.extend(new);
        self.rounds += other.rounds;
        self.repeated += other.repeated;
        self.doubtful += other.doubtful;
        self
    }

    /// Whether anything but zeros is known.
    pub fn is_known(&self) -> bool {
        self.sm_mhz.1 > 0 || self.temperature_c > 0 || !self.throttled.is_empty()
    }
}

/// Extends a range to include a value; 0 is not a value.
fn widen_range(range: &mut (u32, u32), value: u32) {
    if value > 0 {
        let low = if range.0 == 0 { value } else { range.0.min(value) };
        *range = (low, range.1.max(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_summed_up() {
        let at = |sm_mhz, temperature_c, throttled: &[&str]| Condition {
            sm_mhz,
            temperature_c,
            throttled: throttled.iter().map(|&reason| reason.to_owned()).collect(),
            ..Condition::default()
        };
        let mut all = Conditions::default();
        assert!(!all.is_known());
        all.add_round(&at(1980, 50, &[]), true);
        all.add_round(&at(1200, 80, &["hardware thermal slowdown"]), false);
        all.add_round(&at(1400, 79, &["power cap", "hardware thermal slowdown"]), true);
        all.add_round(&at(0, 0, &[]), true);
        let expected = Conditions {
            sm_mhz: (1200, 1980),
            temperature_c: 80,
            throttled: vec!["hardware thermal slowdown".to_owned(), "power cap".to_owned()],
            rounds: 3,
            repeated: 1,
            doubtful: 1,
            ..Conditions::default()
        };
        assert_eq!(all, expected);
        assert!(all.is_known());
        let mut doubled = expected.clone().joined_with(Conditions { sm_mhz: (1000, 1100), ..Conditions::default() });
        assert_eq!((doubled.sm_mhz, doubled.rounds, doubled.throttled.len()), ((1000, 1980), 3, 2));
        doubled = Conditions::default().joined_with(expected.clone());
        assert_eq!(doubled, expected);
    }
}
