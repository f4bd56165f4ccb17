//! The outcome of a candidate: its timing, or why it was refused, with messages for the user.

use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// The timing of the baseline and the outcome of each candidate, in the order given.
#[derive(Clone, Debug, PartialEq)]
pub struct Timings {
    pub baseline: Timing,
    pub candidates: Vec<Outcome>,
}

/// The outcome of one candidate.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Timed(Timing),
    /// It must not be used.
    Refused(Reason),
    /// The budget was used up before its turn came.
    Skipped,
}

/// Times of one candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// Microseconds of each launch, in the order taken; never empty.
    pub samples_us: Vec<f64>,
    pub median_us: f64,
    /// Interquartile range over the median; 0 for fewer than four samples.
    pub spread: f64,
    /// The largest difference of a number in a buffer from the baseline's, as a share of what the
    /// tolerance allows it; 0 where all are equal. `None` for the baseline, and where it is not
    /// known.
    pub tolerance_used: Option<f64>,
}

impl Timing {
    /// `None` where there is no sample.
    pub fn new(samples_us: Vec<f64>) -> Option<Timing> {
        let mut sorted = samples_us.clone();
        sorted.sort_by(f64::total_cmp);
        let median_us = quantile(&sorted, 0.5)?;
        let spread = match (quantile(&sorted, 0.25), quantile(&sorted, 0.75)) {
            (Some(low), Some(high)) if sorted.len() >= 4 && median_us > 0.0 => (high - low) / median_us,
            _ => 0.0,
        };
        Some(Timing { samples_us, median_us, spread, tolerance_used: None })
    }
}

/// The quantile `q` of sorted values, interpolated between neighbours; `None` where there are
/// none.
pub(crate) fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let place = q * sorted.len().checked_sub(1)? as f64;
    let low = *sorted.get(place.floor() as usize)?;
    let high = *sorted.get(place.ceil() as usize)?;
    Some(low + (high - low) * place.fract())
}

/// Reads a text of the other side without line breaks: each line that nvtune prints is its own.
pub(super) fn one_line<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    Ok(text.replace(|letter: char| letter.is_control(), " "))
}

/// Why a candidate was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Its results are not the baseline's.
    Differs(Difference),
    /// It is the baseline, and its results change from run to run.
    Unsteady(Difference),
    /// It wrote to a buffer that the baseline only reads, or past the end of one.
    Stray {
        #[serde(deserialize_with = "one_line")]
        buffer: String,
    },
    /// Its workload gives a buffer that is compared another shape than the baseline's.
    Incomparable {
        #[serde(deserialize_with = "one_line")]
        buffer: String,
    },
    /// Nothing proves that it gives the baseline's results: the baseline writes no buffer or
    /// variable that is compared.
    Uncompared,
    /// The driver would not load or launch it; `error` is CUDA's name.
    LaunchFailed {
        #[serde(deserialize_with = "one_line")]
        stage: String,
        #[serde(deserialize_with = "one_line")]
        error: String,
    },
    /// The block takes more than the device has.
    TooManyResources {
        #[serde(deserialize_with = "one_line")]
        what: String,
    },
    /// It crashed on the device; `error` is CUDA's name.
    Faulted {
        #[serde(deserialize_with = "one_line")]
        error: String,
    },
    /// It did not end within this many seconds.
    Hung { limit_s: f64 },
    /// The measuring process died while it ran.
    Died {
        #[serde(deserialize_with = "one_line")]
        how: String,
    },
    /// Its buffers do not fit.
    OutOfMemory { bytes: u64 },
}

/// Errors of CUDA that a kernel or its launch brings about and that it will bring about again
/// (CUDA Driver API, `CUresult`). Others may be the machine's: memory that somebody else has, a
/// time limit, hardware that fails.
const OWN_ERRORS: [&str; 15] = [
    "CUDA_ERROR_ASSERT",
    "CUDA_ERROR_HARDWARE_STACK_ERROR",
    "CUDA_ERROR_ILLEGAL_ADDRESS",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    "CUDA_ERROR_INVALID_ADDRESS_SPACE",
    "CUDA_ERROR_INVALID_IMAGE",
    "CUDA_ERROR_INVALID_PC",
    "CUDA_ERROR_INVALID_PTX",
    "CUDA_ERROR_INVALID_VALUE",
    "CUDA_ERROR_LAUNCH_FAILED",
    "CUDA_ERROR_MISALIGNED_ADDRESS",
    "CUDA_ERROR_NOT_FOUND",
    "CUDA_ERROR_NO_BINARY_FOR_GPU",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
];

impl Reason {
    /// Whether the same code on the same workload would be refused so on such a GPU again.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Differs(_)
            | Self::Unsteady(_)
            | Self::Stray { .. }
            | Self::Incomparable { .. }
            | Self::Uncompared
            | Self::TooManyResources { .. } => true,
            Self::LaunchFailed { error, .. } | Self::Faulted { error } => OWN_ERRORS.contains(&error.as_str()),
            Self::Hung { .. } | Self::Died { .. } | Self::OutOfMemory { .. } => false,
        }
    }
}

/// The first place where results differ from the baseline's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    #[serde(deserialize_with = "one_line")]
    pub buffer: String,
    /// Element, from 0.
    pub index: u64,
    /// The scalar within a vector element, from 0.
    pub lane: u8,
    /// The baseline's value there, and the candidate's.
    #[serde(deserialize_with = "one_line")]
    pub expected: String,
    #[serde(deserialize_with = "one_line")]
    pub got: String,
    /// Number of elements that differ.
    pub count: u64,
    /// Number of elements of the buffer.
    pub of: u64,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Differs(difference) => difference.fmt(f),
            Reason::Unsteady(Difference { buffer, index, expected, got, count, of, .. }) => write!(
                f,
                "its results change from run to run: {count} of {of} elements of `{buffer}`, {buffer}[{index}] is {expected}, then {got}; `check(...)` can name what is to be compared"
            ),
            Reason::Stray { buffer } => {
                write!(f, "writes to `{buffer}` where the baseline leaves it alone (an index out of bounds?)")
            }
            Reason::Incomparable { buffer } => {
                write!(f, "`{buffer}` has another size or type than the baseline's, so the results cannot be compared")
            }
            Reason::Uncompared => f.write_str(
                "nothing proves that it works: the baseline writes no compared buffer or variable on this workload (args)",
            ),
            Reason::LaunchFailed { stage, error } => write!(f, "{stage} failed: {error}"),
            Reason::TooManyResources { what } => f.write_str(what),
            Reason::Faulted { error } => write!(f, "crashed on the GPU: {error}"),
            Reason::Hung { limit_s } => write!(f, "did not end within {limit_s} s"),
            Reason::Died { how } => {
                write!(f, "the measuring process died while it ran: {how}")
            }
            Reason::OutOfMemory { bytes } => {
                write!(f, "its buffers ({bytes} bytes) do not fit into the GPU's memory")
            }
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { buffer, index, lane, expected, got, count, of } = self;
        let lane = match lane {
            0 => String::new(),
            n => format!(", lane {n}"),
        };
        write!(
            f,
            "{count} of {of} elements of `{buffer}` differ from the baseline's: {buffer}[{index}]{lane} is {got}, not {expected}"
        )
    }
}
