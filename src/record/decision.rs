//! The decision for a kernel, and the three files that hold it.
//!
//! A record has the whole [`Decision`]: every configuration with its variant, score, Pareto
//! membership and timing. A lock file has what builds the winner again ([`LockEntry`]). The cache
//! has both with all inputs of the decision ([`CacheEntry`]): a kernel is not tuned again if
//! something else of its source changes.

use super::cache::Cache;
use super::digest::digest;
use super::fingerprint::Fingerprint;
use crate::diag::MessageCode;
use crate::gpu::{Conditions, Device, deserialize_optional_name};
use crate::launch::{Configuration, Dim3, FrontEndOptions, GridLimit, Launch, LoadCacheOperator, Math};
use crate::measure::Timing;
use crate::model::{Score, Terms};
use crate::search::Provenance;
use crate::settings::Strategy;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Display;

/// Version of the record's format; it rises when a reader of an older one would misread a newer
/// one.
pub const FORMAT: u32 = 1;

/// All decisions for one source file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of nvtune.
    pub nvtune: String,
    /// The source as nvcc was given it.
    pub source: String,
    /// The folder that the compile ran in, and what nvcc was called with: `nvtune lock
    /// --update` tunes by them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    pub kernels: Vec<Decision>,
}

/// The decision for one kernel and architecture.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Decision {
    /// The kernel's name in header and lock.
    pub name: String,
    /// Its symbol in the PTX.
    pub symbol: String,
    /// `sm_90`.
    pub architecture: String,
    /// What it was timed on; absent where nothing was timed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<Device>,
    /// How the GPU was meanwhile; absent where nothing is known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Conditions>,
    pub strategy: Strategy,
    pub provenance: Provenance,
    /// Indices into `configurations`.
    pub baseline: usize,
    pub winner: usize,
    /// Time of the baseline over time of the winner: timed in paired rounds, or predicted.
    pub speedup: f64,
    /// Whether the winner was seen to give the right results on problems that its grid does not
    /// divide.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub surplus: bool,
    /// For which grids the winner runs, if it makes recorded launches with others slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid_limit: Option<GridLimit>,
    /// Whether something was missing that another build may have: what was decided is not kept.
    #[serde(skip)]
    pub provisional: bool,
    /// Why nothing was timed on the GPU at hand, where the same inputs will meet the same
    /// again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untimed: Option<Untimed>,
    /// What a build in mode `measure` lacked to time anything, in the words of its summary
    /// line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    /// How closely the results of a winner with math options agree with the baseline's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<String>,
    /// Macros no value of which changes the kernel or its launch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused: Vec<String>,
    /// Configurations of the space, and how many of them the search timed.
    pub points: usize,
    pub timed: usize,
    /// How many of these a search before it timed, which was interrupted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resumed: usize,
    pub seconds: Seconds,
    /// Points that may not be chosen whatever their times are, by reason: the most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<HeldPoints>,
    /// What the user should know: refused candidates, why nothing was timed, ...
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What a lock file says of it; absent where not even its PTX was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<LockEntry>,
    /// Why the lock file's entry was not used; absent where it was, and where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<Stale>,
    pub variants: Vec<RecordedVariant>,
    pub configurations: Vec<RecordedConfiguration>,
}

/// What keeps a kernel from being timed, in the words of the build that found out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Untimed {
    /// The baseline cannot run on its workload: it stays, whatever else the space has.
    Baseline(String),
    /// The GPU runs nothing of the code.
    Code(String),
    /// The GPU has no room for the workload, whoever else uses it.
    Memory(String),
}

/// Points that may not be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldPoints {
    /// With the remedy, where there is one.
    pub reason: String,
    pub points: usize,
    /// Others like them may be chosen: there is nothing to do for the user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quiet: bool,
}

/// The share of the points besides the baseline that may not be chosen from which on a build
/// says why.
const MOST: f64 = 0.6;

/// The most points of a space that a record has all of: a hundred thousand would take a hundred
/// megabytes.
const MOST_RECORDED: usize = 10_000;

/// The end of the note of a record that does not have all points.
const RECORDED: &str = "are recorded, the fastest by their times or by the model";

impl RecordedConfiguration {
    /// What is measured comes first, by time; then what the model promises most of, then what
    /// it predicts to be fastest.
    pub fn compare(&self, other: &Self) -> Ordering {
        let rank = |Self { timing, promised, score, .. }: &Self| match (timing, promised, score) {
            (Some(timing), _, _) => (0, timing.median_us),
            (None, Some(gain), _) => (1, -gain),
            (None, None, Some(score)) => (2, score.predicted_us),
            (None, None, None) => (3, 0.0),
        };
        let (own, its) = (rank(self), rank(other));
        own.0.cmp(&its.0).then(own.1.total_cmp(&its.1))
    }
}

impl Decision {
    /// Takes the baseline, because the winner cannot be used.
    pub fn keep_baseline(&mut self) {
        self.winner = self.baseline;
        self.provenance = Provenance::Baseline;
        self.speedup = 1.0;
        self.surplus = false;
        self.grid_limit = None;
    }

    /// Leaves out the configurations that are neither baseline nor winner, nor wanted.
    pub fn retain(&mut self, is_wanted: impl Fn(&RecordedConfiguration) -> bool) {
        let wanted: Vec<bool> = self.configurations.iter().map(is_wanted).collect();
        self.retain_rows(&wanted);
    }

    fn retain_rows(&mut self, wanted: &[bool]) {
        let (baseline, winner, all) = (self.baseline, self.winner, std::mem::take(&mut self.configurations));
        for (index, configuration) in all.into_iter().enumerate() {
            if index == baseline {
                self.baseline = self.configurations.len();
            }
            if index == winner {
                self.winner = self.configurations.len();
            }
            if index == baseline || index == winner || wanted.get(index) == Some(&true) {
                self.configurations.push(configuration);
            }
        }
    }

    /// Leaves out of a large space what nobody would look up: the slowest points.
    pub fn thin(&mut self) {
        self.thin_to(MOST_RECORDED);
    }

    /// Leaves out the slowest points beyond this number.
    pub fn thin_to(&mut self, most: usize) {
        if self.configurations.len() <= most {
            return;
        }
        let mut order: Vec<usize> = (0..self.configurations.len()).collect();
        // Of equals the first.
        order.sort_by(|&a, &b| self.configurations[a].compare(&self.configurations[b]));
        let mut wanted = vec![false; order.len()];
        order.into_iter().take(most).for_each(|index| wanted[index] = true);
        self.retain_rows(&wanted);
        let (left, points) = (self.configurations.len(), self.points);
        self.notes.retain(|note| !note.ends_with(RECORDED));
        self.notes.push(format!("{left} of {points} points {RECORDED}"));
    }

    /// Adds a note. The code becomes a part of its text, so that every build and report that
    /// prints the note has it.
    pub fn note(&mut self, code: MessageCode, note: impl Display) {
        self.notes.push(code.tag(note));
    }

    /// Tells whether there is a note of this code.
    pub fn has_note(&self, code: MessageCode) -> bool {
        let end = code.tag("");
        self.notes.iter().any(|note| note.ends_with(&end))
    }

    /// A sentence for each reason for which points may not be chosen.
    pub fn all_held(&self) -> impl Iterator<Item = String> {
        self.held.iter().map(|held| self.sentence(held))
    }

    /// Where most of the points may not be chosen, the same for the reasons of at least a
    /// quarter of these.
    pub fn held_back(&self) -> impl Iterator<Item = String> {
        let loud = self.held.iter().filter(|held| !held.quiet);
        let total: usize = loud.clone().map(|held| held.points).sum();
        let is_much = total > 0 && total as f64 >= MOST * self.points.saturating_sub(1) as f64;
        loud.filter(move |held| is_much && 4 * held.points >= total).map(|held| self.sentence(held))
    }

    fn sentence(&self, HeldPoints { reason, points, .. }: &HeldPoints) -> String {
        MessageCode::PointsNotAllowed.tag(format!("{points} of {} points may not be chosen: {reason}", self.points))
    }
}

/// Where the time of a decision went, in seconds of wall clock.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Seconds {
    /// Front end and ptxas for all variants.
    pub compile: f64,
    /// Profiles and scores.
    pub model: f64,
    /// The GPU, its process included.
    pub measure: f64,
    /// Of that, waiting for a GPU that another nvtune measured on.
    #[serde(default)]
    pub waited: f64,
}

impl Seconds {
    /// All of it.
    pub fn total(&self) -> f64 {
        self.compile + self.model + self.measure
    }
}

/// One variant: distinct machine code.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordedVariant {
    pub macros: BTreeMap<String, i64>,
    /// The register caps that gave this code.
    pub caps: Vec<u32>,
    /// The cache operator of global loads that gave this code; absent where nvcc's own loads
    /// did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<LoadCacheOperator>,
    /// The math options that gave this code; absent where the build's own did.
    #[serde(default, skip_serializing_if = "Math::is_none")]
    pub math: Math,
    /// The factor of loops that gave this code; absent where nvcc's own choice did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unroll: Option<u32>,
    /// The block that the code is compiled for alone; absent where it is right for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact_block: Option<Dim3>,
    /// Whether its registers are spilled to shared memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared_spills: bool,
    /// Whether its blocks do the work of several.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub coarsened: bool,
    pub digest: String,
    pub registers: u32,
    /// Static shared memory of a block, and stack of a thread, in bytes.
    pub static_shared: u32,
    pub stack: u32,
    /// Local loads and stores in the code.
    pub spills: u32,
}

/// One configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordedConfiguration {
    #[serde(flatten)]
    pub configuration: Configuration,
    pub launch: Launch,
    /// Index into the variants; absent where the compiler refused the macros.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<usize>,
    /// Absent where there is no variant or a block of it cannot be resident.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<Score>,
    /// Optimal in (T, C) within its number of threads (Liang et al., algorithm 1).
    pub pareto: bool,
    /// Sent to the GPU by the strategy, where there is one.
    pub candidate: bool,
    /// The gain over the baseline that the model promises, as [`crate::search::list_promises`],
    /// where it alone chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promised: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<RecordedTiming>,
    /// The parts of the predicted time; for the winner and the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Terms>,
    /// Why it must not be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Times of one configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordedTiming {
    /// Median in microseconds.
    pub median_us: f64,
    /// Interquartile range over the median.
    pub spread: f64,
    pub samples: usize,
    /// Median of the paired rounds with the baseline, for finalists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paired_us: Option<f64>,
    /// The same with warm caches, for the baseline and those that might have won.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_us: Option<f64>,
    /// See [`Timing`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance_used: Option<f64>,
    /// Of a search that was interrupted; scaled by the baseline's times then and now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub earlier: bool,
    /// Its place in the order in which the search timed configurations; 1 is the baseline.
    /// Absent for code of exactly one block, which is timed after the search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<usize>,
}

impl From<&Timing> for RecordedTiming {
    fn from(timing: &Timing) -> Self {
        let (median_us, spread, samples) = (timing.median_us, timing.spread, timing.samples_us.len());
        let tolerance_used = timing.tolerance_used;
        Self { median_us, spread, samples, paired_us: None, warm_us: None, tolerance_used, earlier: false, order: None }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The winner of one kernel for one architecture, and all that it takes to build it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LockEntry {
    #[serde(flatten)]
    pub basis: Fingerprint,
    #[serde(flatten)]
    pub winner: Configuration,
    /// Digest of the winner's machine code, for comparison with what is built from the entry.
    /// Absent for a baseline, which is built as nvcc builds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Resident warps in percent of an SM's maximum, for the header; absent if the code is
    /// unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub occupancy: Option<u32>,
    /// Whether the winner bears threads beyond the baseline's, as [`Decision::surplus`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub surplus: bool,
    /// As [`Decision::grid_limit`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid_limit: Option<GridLimit>,
    /// As `ptx` of the basis, under the winner's macros, math options and factor of loops; absent where they are
    /// the baseline's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub winner_ptx: Option<String>,
    /// The GPU that it was timed on; absent for a prediction.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "deserialize_optional_name")]
    pub gpu: Option<String>,
    /// The CUDA version of that GPU's driver: 1000 times major plus 10 times minor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<u32>,
    /// How it was chosen; never `locked`.
    pub provenance: Provenance,
    /// Time of the baseline over time of the winner, to three decimals.
    pub speedup: f64,
    /// Configurations of the space, and how many of them the search timed.
    #[serde(default)]
    pub points: usize,
    #[serde(default)]
    pub timed: usize,
    /// The version of nvtune that chose it.
    #[serde(default)]
    pub nvtune: String,
}

impl LockEntry {
    /// Whether it was timed on a GPU, not chosen or kept by the model alone.
    pub fn is_measured(&self) -> bool {
        self.gpu.is_some()
    }
}

/// Version of the model, the strategies and the timing: it rises when the same inputs may be
/// decided differently.
pub const ENGINE: u32 = 46;

/// A decision in the cache, with its inputs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CacheEntry {
    pub pinned: LockEntry,
    /// Digest of the kernel's PTX under each compiled set of macros, as in [`Fingerprint::ptx`].
    pub sets: Vec<(FrontEndOptions, String)>,
    /// The GPUs of the machine, as [`crate::measure::GpuInventory`] names them.
    pub present: String,
    pub strategy: Strategy,
    /// Seconds for compiling and timing.
    pub budget: f64,
    /// Maximum number of configurations to time.
    pub candidates: usize,
    /// Whether the winner is run under compute-sanitizer.
    pub sanitize: bool,
    /// The kinds of code in the object, of which a GPU loads one.
    pub images: String,
    /// [`ENGINE`] of the nvtune that decided.
    pub engine: u32,
    pub decision: Decision,
}

/// Key of a kernel's decisions in the cache, known before anything is compiled.
#[derive(Clone, Copy, Debug)]
pub struct Kind<'a> {
    /// The clauses of the comment with single blanks.
    pub comment: &'a str,
    pub kernel: &'a str,
    pub architecture: &'a str,
}

/// Name of the file that notes a kernel as not tunable.
const REFUSED: &str = "refused";

impl Kind<'_> {
    /// Returns the folder of the kernel's decisions.
    fn folder(&self) -> String {
        let parts = [self.comment, self.kernel, self.architecture].map(str::as_bytes);
        format!("kernels/{}", digest(parts))
    }

    /// Whether the cache has decisions for such a kernel.
    pub fn is_decided(&self, cache: &Cache) -> bool {
        self.names(cache).iter().any(|name| name != REFUSED)
    }

    /// Whether such a kernel is noted as not tunable.
    pub fn is_refused(&self, cache: &Cache) -> bool {
        self.names(cache).iter().any(|name| name == REFUSED)
    }

    /// Notes that such a kernel cannot be tuned. The next build finds the reason again, in the
    /// words of the source at that time.
    pub fn refuse(&self, cache: &Cache) -> Result<(), String> {
        if self.is_refused(cache) { Ok(()) } else { cache.put(&format!("{}/{REFUSED}", self.folder()), b"") }
    }

    /// Returns the names of the kernel's files.
    pub fn names(&self, cache: &Cache) -> Vec<String> {
        cache.list(&self.folder())
    }

    /// Returns the kernel's decisions in the order of their names.
    pub fn kept(&self, cache: &Cache) -> Vec<CacheEntry> {
        let folder = self.folder();
        let places = self.names(cache).into_iter().map(|name| format!("{folder}/{name}"));
        // Another version of nvtune may have another format.
        places.filter_map(|place| serde_json::from_slice(&cache.get(&place)?).ok()).collect()
    }

    /// Writes a decision. Its name is a digest of its inputs, so that it replaces an earlier
    /// one for the same inputs.
    pub fn keep(&self, cache: &Cache, kept: &CacheEntry) -> Result<(), String> {
        let asked = (kept.strategy, kept.budget, kept.candidates, kept.sanitize, kept.engine);
        let inputs = (&kept.pinned.basis, &kept.sets, &kept.present, &kept.images, asked);
        let failed = |error: serde_json::Error| format!("cannot keep a decision: {error}");
        let name = digest([&serde_json::to_vec(&inputs).map_err(failed)?[..]]);
        cache.put(&format!("{}/{name}", self.folder()), &serde_json::to_vec(kept).map_err(failed)?)
    }
}

/// What speaks against an entry of a lock file; see `staleness.rs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stale {
    /// Digest of the entry.
    pub(super) entry: String,
    /// What is another thing now; not empty.
    pub(super) changes: Vec<String>,
}
