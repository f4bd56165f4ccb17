//! Why a build did not use the entry that a lock file had for a kernel.
//!
//! In: what the build found, with the whole compiler at hand. Out: the same words for who looks
//! at its record alone (`nvtune lock --check`), as long as the entry is the one that the build
//! met.

use super::decision::{LockEntry, Stale};
use super::digest::digest;

impl Stale {
    /// What a build found of an entry; `None` where nothing speaks against it.
    pub fn new(entry: &LockEntry, changes: Vec<String>) -> Option<Self> {
        (!changes.is_empty()).then(|| Self { entry: named(entry), changes })
    }

    /// What the entry `then` says that is another thing in what a later build noted, which is
    /// all that can be known without a compiler.
    pub fn between(then: &LockEntry, now: &LockEntry) -> Option<Self> {
        let mut changes = then.basis.changes(&now.basis);
        if changes.is_empty() && then.winner.front_end() == now.winner.front_end() && then.winner_ptx != now.winner_ptx
        {
            changes.push(WINNER_PTX.to_owned());
        }
        Self::new(then, changes)
    }

    /// Whether this is about an entry as it stands.
    pub fn is_about(&self, entry: &LockEntry) -> bool {
        self.entry == named(entry)
    }

    /// In words, to stand behind "is stale: ".
    pub fn reason(&self) -> String {
        format!("another is {}", self.changes.join(" and "))
    }
}

/// That the winner's code is not what it was, in words.
pub const WINNER_PTX: &str = "its code (PTX) under the winner's options";

fn named(entry: &LockEntry) -> String {
    // Plain data always has a text.
    digest([serde_json::to_vec(entry).unwrap_or_default().as_slice()])
}
