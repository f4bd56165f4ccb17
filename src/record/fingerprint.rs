//! What a winner depends on, as facts that can be compared and named.
//!
//! In: digests and words that the tuner drew up for one kernel. Out: what changed between two
//! of them. A basis says nothing of names, comments, line numbers or the rest of the file:
//! these may change.

use serde::{Deserialize, Serialize};

/// What the winner of one kernel and architecture depends on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Digest of the tuning comment, its blanks made even.
    pub comment: String,
    /// Digest of the files that the comment's buffers come from; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// The clauses that a recording gave the comment, as text; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inferred: Option<String>,
    /// Which instance of a template a recording was of, as in `k<float, 4>`, for builds without
    /// the recording; says nothing of what changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The options of ptxas, without the names of files.
    pub flags: String,
    /// Digest of the kernel's PTX under the baseline's macros, without names and line numbers,
    /// and of its parameters' types.
    pub ptx: String,
    /// The toolkit that wrote the PTX: `13.0.88`.
    pub toolkit: String,
    /// How launches select the winner: `entries`, `header`, `in place` or `pinned`.
    #[serde(default)]
    pub launches: String,
}

impl Fingerprint {
    /// What is another thing `now`, in words for a warning; empty where all of it still fits.
    pub fn changes(&self, now: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        if self.comment != now.comment {
            changes.push("its tuning comment".to_owned());
        }
        if self.data != now.data {
            changes.push("the files of its workload".to_owned());
        }
        if self.inferred != now.inferred {
            changes.push("what its recording gives the comment".to_owned());
        }
        if self.flags != now.flags {
            changes.push(format!("the options of ptxas (`{}`, locked with `{}`)", now.flags, self.flags));
        }
        if self.launches != now.launches {
            changes.push(format!("the way to its launches (`{}`, locked with `{}`)", now.launches, self.launches));
        }
        if self.toolkit != now.toolkit {
            changes.push(format!("the toolkit ({}, locked with {})", now.toolkit, self.toolkit));
        } else if self.ptx != now.ptx {
            changes.push("its code (PTX)".to_owned());
        }
        changes
    }
}
