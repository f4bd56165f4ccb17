//! The cache's entry for a search under way: what was timed and refused so far, so that a
//! compile that was ended goes on from there.
//!
//! In: what a search found, point by point. Out: the same in another process, where all that it
//! depends on is as it was. Invariant: a journal is facts about points, not about a
//! strategy or a budget, so whoever searches the same space may go on from it; it goes when a
//! decision takes its place.

use super::cache::Cache;
use super::decision::ENGINE;
use super::decision::RecordedTiming;
use super::digest::digest;
use super::fingerprint::Fingerprint;
use crate::gpu::Device;
use crate::launch::Configuration;
use crate::measure::PROTOCOL_VERSION;
use serde::{Deserialize, Serialize};

/// The folder of the cache that journals are in.
const FOLDER: &str = "searches";

/// What a search has found so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    /// Median of the baseline in microseconds under the conditions that all times here were
    /// taken under, or are scaled to; absent while none was.
    pub baseline_us: Option<f64>,
    pub tried: Vec<Tried>,
}

/// A point that was sent to the GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    pub configuration: Configuration,
    /// Digest of its machine code, launch and workload.
    pub identity: String,
    pub found: PointOutcome,
}

/// What came of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PointOutcome {
    Timed(RecordedTiming),
    /// Why it must not be used.
    Refused(String),
}

/// What the times of a search depend on, besides the code of each point.
#[derive(Clone, Copy, Debug)]
pub struct Searched<'a> {
    pub kernel: &'a str,
    pub architecture: &'a str,
    pub basis: &'a Fingerprint,
    /// Of the baseline, as [`Tried::identity`]: results are compared with its results.
    pub baseline: &'a str,
    /// What the machine could time on, as [`crate::measure::GpuInventory`] names it, and what is
    /// timed on.
    pub present: &'a str,
    pub device: &'a Device,
    /// What code the object holds, of which a GPU loads one.
    pub images: &'a str,
}

impl Searched<'_> {
    /// The place of the journal in a cache; the error is for the user.
    pub fn place(&self) -> Result<String, String> {
        // Which GPU of a model it was, and what was free of its memory, is no matter: times are scaled
        // by the baseline's.
        let device = Device { uuid: String::new(), free_bytes: 0, ..self.device.clone() };
        let depends_on = (self.basis, self.baseline, self.present, device, self.images, ENGINE, PROTOCOL_VERSION);
        let depends_on = serde_json::to_vec(&(self.kernel, self.architecture, depends_on)).map_err(failed)?;
        Ok(format!("{FOLDER}/{}", digest([&depends_on[..]])))
    }
}

fn failed(error: serde_json::Error) -> String {
    format!("cannot keep a search under way: {error}")
}

impl Journal {
    /// The journal at a place; `None` where there is none that is whole. What is no time in it
    /// is left out.
    pub fn read(cache: &Cache, place: &str) -> Option<Self> {
        let mut journal: Self = serde_json::from_slice(&cache.get(place)?).ok()?;
        let is_time = |us: f64| us.is_finite() && us > 0.0;
        journal.baseline_us = journal.baseline_us.filter(|us| is_time(*us));
        let has_unit = journal.baseline_us.is_some();
        journal.tried.retain(|tried| match &tried.found {
            PointOutcome::Timed(timing) => has_unit && is_time(timing.median_us),
            PointOutcome::Refused(_) => true,
        });
        Some(journal)
    }

    /// Writes it, whole or not at all.
    pub fn write(&self, cache: &Cache, place: &str) -> Result<(), String> {
        cache.put(place, &serde_json::to_vec(self).map_err(failed)?)
    }

    /// How many searches a cache has that did not come to their end.
    pub fn count(cache: &Cache) -> usize {
        cache.list(FOLDER).len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(block: u32, found: PointOutcome) -> Tried {
        let configuration =
            Configuration { macros: [("WORK".to_owned(), 2)].into(), ..Configuration::of_block([block, 1, 1]) };
        Tried { configuration, identity: format!("code {block}"), found }
    }

    fn timed(median_us: f64) -> PointOutcome {
        PointOutcome::Timed(RecordedTiming {
            median_us,
            spread: 0.01,
            samples: 9,
            paired_us: None,
            warm_us: None,
            tolerance_used: None,
            earlier: false,
            order: None,
        })
    }

    #[test]
    fn what_was_found_comes_back_and_what_is_no_time_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = Cache::new(folder.path(), 1 << 20);
        let whole = Journal {
            baseline_us: Some(10.0),
            tried: vec![tried(64, timed(8.0)), tried(128, PointOutcome::Refused("it crashed".to_owned()))],
        };
        whole.write(&cache, "searches/a").expect("written");
        assert_eq!(Journal::read(&cache, "searches/a"), Some(whole.clone()));
        assert_eq!(Journal::count(&cache), 1);
        // Without the baseline's time the others are in no unit; a refusal needs none.
        let unit = Journal { baseline_us: None, ..whole.clone() };
        unit.write(&cache, "searches/b").expect("written");
        let read = Journal::read(&cache, "searches/b").expect("it is there");
        assert_eq!(read.tried, whole.tried[1..]);
        let negative = Journal { tried: vec![tried(64, timed(-1.0))], ..whole };
        negative.write(&cache, "searches/c").expect("written");
        assert_eq!(Journal::read(&cache, "searches/c").expect("it is there").tried, []);
    }

    #[test]
    fn a_place_depends_on_model_and_driver_and_not_on_which_gpu_it_is() {
        let basis = Fingerprint { comment: "c".to_owned(), ..Fingerprint::default() };
        let place = |device: &Device, present: &str, baseline: &str| {
            let (kernel, architecture, images) = ("k", "sm_90", "cubin");
            let searched = Searched { kernel, architecture, basis: &basis, baseline, present, device, images };
            searched.place().expect("it is text")
        };
        let device = Device { name: "NVIDIA H200".to_owned(), driver: 13000, ..Device::default() };
        let own = place(&device, "p", "b");
        let same = Device { uuid: "GPU-2".to_owned(), free_bytes: 7, ..device.clone() };
        assert_eq!(place(&same, "p", "b"), own);
        assert_ne!(place(&Device { driver: 13010, ..device.clone() }, "p", "b"), own);
        assert_ne!(place(&Device { name: "NVIDIA H100".to_owned(), ..device.clone() }, "p", "b"), own);
        assert_ne!(place(&device, "q", "b"), own);
        assert_ne!(place(&device, "p", "c"), own);
    }
}
