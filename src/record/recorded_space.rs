//! A whole space as it was timed on a GPU: `kernels/results/GPU/KERNEL.json.gz`, and back.
//!
//! One gzip stream of one JSON object. Besides every configuration with its time and check
//! result it holds what a model looks at (the PTX, the machine code of every variant, the
//! workloads), so that another version of the model can be judged without a GPU or a toolkit.
//! `kernels/results/README.md` documents each field. Invariant: a file appears whole or
//! not at all; one of a newer format is refused by its version.

use super::decision::{RecordedVariant, Seconds};
use super::file::write_if_changed;
use crate::gpu::Device;
use crate::launch::{Configuration, Launch, Math};
use crate::measure::{Plan, Reason};
use crate::sass::code_digest;
use crate::workload::Workload;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use lzma_rust2::{LzmaOptions, LzmaReader, LzmaWriter};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::Path;
use thiserror::Error;

/// Version of the format; it rises when a reader of an older one would misread a newer one.
pub const SPACE_FORMAT: u32 = 1;

/// What the names of the files end with.
pub const SPACE_EXTENSION: &str = ".json.gz";

/// The check result of a configuration whose results agree with the baseline's.
pub const CHECKED: &str = "ok";

/// More than any record unpacks to; what unpacks to more is none.
const UNPACKED_LIMIT: u64 = 1 << 30;

/// The variants of a kernel are alike over more bytes than gzip looks back: of the 2.2 MB of
/// the tiled matrix multiplication's 85 gzip makes 220 KB, LZMA by this preset (its usual one)
/// 119 KB.
const LZMA_PRESET: u32 = 6;
/// What reading such a stream may take.
const LZMA_MEMORY_KB: u32 = 64 << 10;

/// Why a file is no recorded space.
#[derive(Debug, Error)]
pub enum SpaceError {
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    #[error("is no recorded space: {0}")]
    Json(#[from] serde_json::Error),
    #[error("is of format {0}, and this nvtune reads format {SPACE_FORMAT}")]
    Format(u32),
    #[error("its `code` is broken: {0}")]
    Code(String),
    /// What [`RecordedSpace::problems`] found.
    #[error("{0}")]
    Inconsistent(String),
}

/// A space with its times.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordedSpace {
    /// [`SPACE_FORMAT`].
    pub format: u32,
    /// Version of nvtune.
    pub nvtune: String,
    /// The kernel's name.
    pub kernel: String,
    /// The source as nvtune was given it, and the SHA-256 of its bytes.
    pub source: String,
    pub source_digest: String,
    /// The command that recorded it.
    pub command: Vec<String>,
    /// What nvcc was given besides the source.
    pub options: Vec<String>,
    /// When timing ended, as `2026-11-21T08:00:00Z`.
    pub date: String,
    /// Release of the toolkit: `13.0, V13.0.88`.
    pub toolkit: String,
    /// What ptxas made code for: `sm_90`.
    pub architecture: String,
    pub device: Device,
    /// What nvidia-smi says of it; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<DeviceState>,
    /// How each configuration was timed.
    pub plan: Plan,
    pub seconds: Seconds,
    pub size: SpaceSize,
    /// How well times repeat; absent where they were taken once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeatability: Option<Repeatability>,
    /// Index of the baseline in `configurations`.
    pub baseline: usize,
    pub sources: Vec<SpaceSource>,
    pub variants: Vec<SpaceVariant>,
    pub workloads: Vec<SpaceWorkload>,
    pub configurations: Vec<SpaceConfiguration>,
    /// Base64 of an LZMA stream (`.lzma`): the PTX of all sources, the cubins of all variants,
    /// the files of all workloads, one after the other in the order of these lists; each
    /// says its length in bytes.
    pub code: String,
}

/// The driver and clocks of a GPU, as nvidia-smi gives them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceState {
    /// `580.159.04`
    pub driver: String,
    /// Highest clocks, and those right after timing, in MHz.
    pub max_sm_mhz: f64,
    pub max_memory_mhz: f64,
    pub sm_mhz: f64,
    pub memory_mhz: f64,
    pub power_limit_w: f64,
}

/// How large the space is, and how much of it the record has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpaceSize {
    /// Configurations of the space, and its points: those that can be launched, of the ones
    /// with equal machine code and launch one only.
    pub configurations: usize,
    pub points: usize,
    /// Present where only a sample of the points is recorded and timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
}

/// A sample of a space: the baseline, the strategies' candidates, and the rest drawn evenly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub points: usize,
    pub seed: u64,
}

/// How far two runs in processes of their own differ: |second / first - 1| over the points
/// timed in both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repeatability {
    pub points: usize,
    pub median: f64,
    /// Nine tenths of the points differ by less.
    pub p90: f64,
}

/// What the front end made under one set of options.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SpaceSource {
    pub macros: BTreeMap<String, i64>,
    #[serde(default, skip_serializing_if = "Math::is_none")]
    pub math: Math,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unroll: Option<u32>,
    /// The kernel's name in the PTX.
    pub symbol: String,
    /// Bytes of PTX; 0 where the front end failed.
    pub bytes: usize,
}

/// A variant with its machine code.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SpaceVariant {
    #[serde(flatten)]
    pub variant: RecordedVariant,
    /// The kernel's name in the cubin.
    pub symbol: String,
    /// Bytes of the cubin.
    pub bytes: usize,
}

/// A workload that configurations were timed on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SpaceWorkload {
    pub workload: Workload,
    /// Bytes of its buffers' files.
    pub bytes: usize,
}

/// One configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SpaceConfiguration {
    #[serde(flatten)]
    pub configuration: Configuration,
    pub launch: Launch,
    /// Index into `sources`.
    pub source: usize,
    /// Index into `workloads`.
    pub workload: usize,
    /// Iterations that the comment gives for loops.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trips: Vec<f64>,
    /// Index into `variants`; absent where the compiler refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<usize>,
    /// Why it is no point of the space: the compiler's words, or that it cannot be launched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infeasible: Option<String>,
    /// `ok`, or how its results or its launch failed. Of configurations with equal machine code
    /// and launch only the first has this and a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
    /// The kind of failure that `check` puts into words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Reason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<PointTime>,
}

/// The times of one point.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointTime {
    /// Microseconds.
    pub median_us: f64,
    /// Interquartile range over the median; 0 for fewer than four samples.
    pub spread: f64,
    pub samples: usize,
    /// Median of another run in a process of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub again_us: Option<f64>,
    /// Mean of many samples, where samples scatter so much that a median of a few is chance:
    /// launches of `scattered` on an H200 take 163 us or 185 to 200, either about as often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_us: Option<f64>,
}

impl PointTime {
    /// The best estimate: the mean where medians are none, else that of both runs where there
    /// are two.
    pub fn us(&self) -> f64 {
        if let Some(mean) = self.mean_us {
            return mean;
        }
        self.again_us.map_or(self.median_us, |again| (self.median_us + again) / 2.0)
    }
}

/// PTX, cubins and files of a record, in the order of its lists.
pub struct Parts {
    pub ptx: Vec<Option<String>>,
    pub cubins: Vec<Vec<u8>>,
    pub files: Vec<Vec<u8>>,
}

impl RecordedSpace {
    /// Reads a file and checks that it is consistent.
    pub fn read(path: &Path) -> Result<Self, SpaceError> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let mut text = Vec::new();
        GzDecoder::new(std::fs::File::open(path)?).take(UNPACKED_LIMIT).read_to_end(&mut text)?;
        let Version { format } = serde_json::from_slice(&text)?;
        if format != SPACE_FORMAT {
            return Err(SpaceError::Format(format));
        }
        let space: Self = serde_json::from_slice(&text)?;
        match space.problems().into_iter().next() {
            Some(problem) => Err(SpaceError::Inconsistent(problem)),
            None => Ok(space),
        }
    }

    /// Writes the file, whole or not at all, and gives its bytes.
    pub fn write(&self, path: &Path) -> Result<usize, String> {
        let text = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        let packed = packed(&text).map_err(|error| error.to_string())?;
        write_if_changed(path, &packed)?;
        Ok(packed.len())
    }

    /// Whether every point of it has a time or was refused.
    pub fn is_complete(&self) -> bool {
        self.points().all(|index| self.configurations[index].check.is_some())
    }

    /// Of the configurations with equal machine code and launch the first (the baseline before
    /// all): the points.
    pub fn points(&self) -> impl Iterator<Item = usize> + '_ {
        let mut seen = std::collections::HashSet::new();
        let order = std::iter::once(self.baseline).chain(0..self.configurations.len());
        order.filter(move |&index| {
            let configuration = &self.configurations[index];
            let variant = configuration.variant.filter(|_| configuration.infeasible.is_none());
            variant.is_some_and(|variant| seen.insert((variant, configuration.launch)))
        })
    }

    /// Unpacks PTX, cubins and files.
    pub fn parts(&self) -> Result<Parts, SpaceError> {
        let broken = |error: &dyn std::fmt::Display| SpaceError::Code(error.to_string());
        let packed = BASE64.decode(&self.code).map_err(|error| broken(&error))?;
        let reader = LzmaReader::new_mem_limit(packed.as_slice(), LZMA_MEMORY_KB, None);
        let mut code = Vec::new();
        reader.and_then(|reader| reader.take(UNPACKED_LIMIT).read_to_end(&mut code)).map_err(|error| broken(&error))?;
        let mut rest = code.as_slice();
        let mut take = |bytes: usize| {
            let (part, after) = rest.split_at_checked(bytes).ok_or_else(|| broken(&"it is too short"))?;
            rest = after;
            Ok::<_, SpaceError>(part.to_vec())
        };
        let mut ptx = Vec::with_capacity(self.sources.len());
        for source in &self.sources {
            let text = String::from_utf8(take(source.bytes)?).map_err(|error| broken(&error))?;
            ptx.push((!text.is_empty()).then_some(text));
        }
        let cubins = self.variants.iter().map(|variant| take(variant.bytes)).collect::<Result<_, _>>()?;
        let files = self.workloads.iter().map(|workload| take(workload.bytes)).collect::<Result<_, _>>()?;
        if !rest.is_empty() {
            return Err(broken(&"it is too long"));
        }
        Ok(Parts { ptx, cubins, files })
    }

    /// Packs PTX, cubins and files, in the order of the lists.
    pub fn pack_code<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> std::io::Result<String> {
        let all: Vec<u8> = parts.into_iter().flatten().copied().collect();
        let options = LzmaOptions::with_preset(LZMA_PRESET);
        let mut writer = LzmaWriter::new_use_header(Vec::new(), &options, Some(all.len() as u64))?;
        writer.write_all(&all)?;
        Ok(BASE64.encode(writer.finish()?))
    }

    /// What is wrong with it, in words; empty for a record that can be used. Does not look into
    /// `code`.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut must = |holds: bool, problem: &str| {
            if !holds {
                problems.push(problem.to_owned());
            }
        };
        let words = [&self.nvtune, &self.kernel, &self.source, &self.date, &self.toolkit, &self.architecture];
        must(words.iter().all(|word| !word.is_empty()) && !self.command.is_empty(), "a fact about the run is missing");
        must(self.source_digest.len() == 64, "`source_digest` is no SHA-256");
        must(!self.device.name.is_empty() && self.device.compute_capability > 0, "the device is not named");
        let share = |value: f64| value.is_finite() && value >= 0.0;
        must(
            self.repeatability.is_none_or(|found| share(found.median) && share(found.p90) && found.points > 0),
            "`repeatability` is no share",
        );
        let Some(baseline) = self.configurations.get(self.baseline) else {
            must(false, "there is no baseline");
            return problems;
        };
        must(baseline.time.is_some(), "the baseline has no time");
        let mut seen = std::collections::HashSet::new();
        for (index, found) in self.configurations.iter().enumerate() {
            let mut must = |holds: bool, problem: &str| {
                if !holds {
                    problems.push(format!("configuration {index} ({}): {problem}", found.configuration));
                }
            };
            must(seen.insert(&found.configuration), "is there twice");
            must(found.source < self.sources.len(), "its source does not exist");
            must(found.workload < self.workloads.len(), "its workload does not exist");
            must(found.variant.is_none_or(|variant| variant < self.variants.len()), "its variant does not exist");
            must(found.variant.is_some() || found.infeasible.is_some(), "it has neither a variant nor a reason");
            must(found.infeasible.is_none() || found.check.is_none(), "it ran but cannot be launched");
            must(
                found.refused.as_ref().is_none_or(|reason| found.check == Some(reason.to_string())),
                "its check and its refusal disagree",
            );
            must(found.time.is_some() == (found.check.as_deref() == Some(CHECKED)), "its time and its check disagree");
            let us = |value: f64| value.is_finite() && value > 0.0;
            must(
                found.time.is_none_or(|time| {
                    us(time.median_us)
                        && time.again_us.is_none_or(us)
                        && time.mean_us.is_none_or(us)
                        && share(time.spread)
                        && time.samples > 0
                }),
                "its time is no time",
            );
        }
        if problems.is_empty() {
            let points = self.points().count();
            let expected = self.size.sample.map_or(self.size.points, |sample| sample.points);
            let enough = self.size.configurations >= self.configurations.len() && self.size.points >= points;
            if points != expected || !enough {
                problems.push(format!("it has {points} points, and not {expected}"));
            }
        }
        problems
    }

    /// What is wrong with `code`: every variant must be the machine code that its digest names.
    pub fn code_problems(&self) -> Vec<String> {
        let parts = match self.parts() {
            Ok(parts) => parts,
            Err(error) => return vec![error.to_string()],
        };
        let mut problems = Vec::new();
        for (index, (variant, cubin)) in self.variants.iter().zip(&parts.cubins).enumerate() {
            match code_digest(cubin, &variant.symbol) {
                Ok(digest) if digest == variant.variant.digest => {}
                Ok(_) => problems.push(format!("variant {index} is other code than its digest says")),
                Err(error) => problems.push(format!("variant {index}: {error}")),
            }
        }
        problems
    }
}

/// A gzip stream without a date, the same for the same bytes.
fn packed(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}
