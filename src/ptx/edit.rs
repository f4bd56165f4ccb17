//! What is written into an entry's PTX before ptxas sees it: the part of a configuration that
//! is neither macro nor launch.
//!
//! Variants that are timed and the winner that is built go through the same function, so that
//! both are edited alike.

use super::cache::set_cache_operators;
use super::coarsening::coarsen;
use super::directives::{allow_shared_spills, set_register_caps, set_required_block};
use super::error::PtxError;
use crate::launch::{Configuration, Dim3, LoadCacheOperator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Changes of one entry; none is what nvcc itself compiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Edits {
    /// Register cap; 0 leaves the entry's own directives.
    pub cap: u32,
    /// Cache operator of its global loads; `None` leaves them as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<LoadCacheOperator>,
    /// The only block that the code is right for; `None` leaves the entry's own directives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact_block: Option<Dim3>,
    /// Whether its registers may be spilled to shared memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared_spills: bool,
    /// Whether its blocks do the work of several.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub coarsened: bool,
}

impl From<&Configuration> for Edits {
    fn from(configuration: &Configuration) -> Self {
        Self {
            cap: configuration.cap,
            cache: configuration.cache,
            exact_block: configuration.exact_block.then_some(configuration.block),
            shared_spills: configuration.shared_spills,
            coarsened: configuration.is_coarsened(),
        }
    }
}

impl Edits {
    /// Tells whether code with these edits belongs to the first round of a search, which is
    /// compiled before the rest: no register cap or the baseline's, and its cache operator.
    pub fn is_compiled_first(&self, baseline: Edits) -> bool {
        (self.cap == 0 || self.cap == baseline.cap) && self.cache == baseline.cache
    }

    /// True where nothing is changed.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Returns the text with these entries edited.
///
/// # Errors
/// As [`set_register_caps`], [`set_required_block`], [`coarsen`], [`allow_shared_spills`] and
/// [`set_cache_operators`].
pub fn edit_entries<'a>(text: &'a str, entries: &[(&str, Edits)]) -> Result<Cow<'a, str>, PtxError> {
    let mut text = Cow::Borrowed(text);
    let caps: Vec<(&str, u32)> =
        entries.iter().filter(|(_, edits)| edits.cap != 0).map(|(entry, edits)| (*entry, edits.cap)).collect();
    if !caps.is_empty() {
        text = Cow::Owned(set_register_caps(&text, &caps)?);
    }
    for (entry, edits) in entries {
        if let Some(block) = edits.exact_block {
            text = Cow::Owned(set_required_block(&text, entry, block)?);
        }
        if edits.coarsened {
            text = Cow::Owned(coarsen(&text, entry)?);
        }
        if edits.shared_spills {
            text = Cow::Owned(allow_shared_spills(&text, entry)?);
        }
    }
    let operators: Vec<_> = entries.iter().filter_map(|(entry, edits)| Some((*entry, edits.cache?))).collect();
    if !operators.is_empty() {
        text = Cow::Owned(set_cache_operators(&text, &operators)?);
    }
    Ok(text)
}
