//! The cache's entry for one kernel: a decision with all that it hangs on, so that whatever else of a source changes, the kernel is
//! not tuned again.

use super::cache::Cache;
use super::decision::Decision;
use super::digest::digest;
use super::pinned::Pinned;
use crate::settings::Strategy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Rises when the same inputs would be decided otherwise: a change of the model, of a strategy, of how candidates are timed.
pub const ENGINE: u32 = 35;

/// A decision in the cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kept {
    pub pinned: Pinned,
    /// Digest of the kernel's PTX under each set of macros that was compiled, as in [`super::fingerprint::Basis::ptx`].
    pub sets: Vec<(BTreeMap<String, i64>, String)>,
    /// What the machine could time on, as [`crate::measure::Present`] names it.
    pub present: String,
    pub strategy: Strategy,
    /// Seconds that were allowed.
    pub budget: f64,
    /// Configurations that were timed at most, and whether the winner was run under compute-sanitizer.
    pub candidates: usize,
    pub sanitize: bool,
    /// What code the object holds, of which a GPU loads one.
    pub images: String,
    /// The values of the macro axes, where they were not to be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<BTreeMap<String, i64>>,
    /// [`ENGINE`], of the nvtune that decided.
    pub engine: u32,
    pub decision: Decision,
    /// Why macros and launches stay as they are, in words that name places: each source has its own.
    #[serde(default)]
    pub reasons: BTreeMap<String, String>,
}

impl Kept {
    /// Says the same of a source that has these reasons for it.
    pub fn retell(&mut self, reasons: &BTreeMap<String, String>) {
        let now: BTreeMap<&str, &String> =
            self.reasons.iter().filter_map(|(of, then)| Some((then.as_str(), reasons.get(of)?))).collect();
        let held = self.decision.held.iter_mut().map(|held| &mut held.reason);
        let refused = self.decision.configurations.iter_mut().filter_map(|of| of.refused.as_mut());
        for told in held.chain(refused) {
            if let Some(&reason) = now.get(told.as_str()) {
                told.clone_from(reason);
            }
        }
        for note in &mut self.decision.notes {
            if let Some((head, reason)) = now.iter().find_map(|(then, &now)| Some((note.strip_suffix(then)?, now))) {
                *note = format!("{head}{reason}");
            }
        }
    }
}

/// What kept decisions are looked up by before the compiler is asked for anything.
#[derive(Clone, Copy, Debug)]
pub struct Kind<'a> {
    /// The clauses of the comment, blanks made even.
    pub comment: &'a str,
    pub kernel: &'a str,
    pub architecture: &'a str,
}

/// In a kernel's folder: that it could not be tuned.
const REFUSED: &str = "refused";

impl Kind<'_> {
    /// The folder of the kernel's decisions.
    fn folder(&self) -> String {
        let parts = [self.comment, self.kernel, self.architecture].map(str::as_bytes);
        format!("kernels/{}", digest(parts))
    }

    /// Whether decisions are kept for such a kernel.
    pub fn is_decided(&self, cache: &Cache) -> bool {
        self.names(cache).iter().any(|name| name != REFUSED)
    }

    /// Whether such a kernel could not be tuned when it was looked at.
    pub fn is_refused(&self, cache: &Cache) -> bool {
        self.names(cache).iter().any(|name| name == REFUSED)
    }

    /// Notes that such a kernel could not be tuned. Why is not kept: it is soon found again where nothing else is looked at before, and
    /// then it is true, and in the words of the source as it is.
    pub fn refuse(&self, cache: &Cache) -> Result<(), String> {
        if self.is_refused(cache) { Ok(()) } else { cache.put(&format!("{}/{REFUSED}", self.folder()), b"") }
    }

    /// The names of what is kept for such a kernel.
    pub fn names(&self, cache: &Cache) -> Vec<String> {
        cache.list(&self.folder())
    }

    /// The decisions that are kept for such a kernel, in the order of their names.
    pub fn kept(&self, cache: &Cache) -> Vec<Kept> {
        let folder = self.folder();
        let places = self.names(cache).into_iter().map(|name| format!("{folder}/{name}"));
        // Of another version of nvtune a decision may have another shape.
        places.filter_map(|place| serde_json::from_slice(&cache.get(&place)?).ok()).collect()
    }

    /// Keeps a decision. What it hangs on is in the name, so that a second one for the same takes its place.
    pub fn keep(&self, cache: &Cache, kept: &Kept) -> Result<(), String> {
        let asked = (kept.strategy, kept.budget, kept.candidates, kept.sanitize, kept.engine);
        let hangs_on = (&kept.pinned.basis, &kept.sets, &kept.present, &kept.images, &kept.given, asked);
        let failed = |error: serde_json::Error| format!("cannot keep a decision: {error}");
        let name = digest([&serde_json::to_vec(&hangs_on).map_err(failed)?[..]]);
        cache.put(&format!("{}/{name}", self.folder()), &serde_json::to_vec(kept).map_err(failed)?)
    }
}
