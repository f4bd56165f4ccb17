//! The device that candidates are timed on, as the driver describes it.

use serde::{Deserialize, Deserializer, Serialize};

/// A GPU. Zero stands for a value that the driver does not report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// As NVIDIA names it: `NVIDIA H200`.
    #[serde(deserialize_with = "deserialize_name")]
    pub name: String,
    /// `GPU-` and the UUID in groups of hexadecimal digits, as nvidia-smi writes it.
    pub uuid: String,
    /// Major times 10 plus minor: 90.
    pub compute_capability: u32,
    /// The CUDA version that the driver supports, major times 1000 plus minor times 10: 13000.
    pub driver: u32,
    /// Multiprocessors.
    pub sms: u32,
    /// Peak clock of the multiprocessors in kHz.
    pub clock_khz: u32,
    /// Peak clock of the memory in kHz.
    pub memory_clock_khz: u32,
    /// Width of the memory bus in bits.
    pub memory_bus_bits: u32,
    pub memory_bytes: u64,
    /// Of these, free when the measuring process began.
    pub free_bytes: u64,
    pub l2_bytes: u64,
    /// Peak of the memory in bytes a second: clock x 2 (double data rate) x width / 8.
    pub bandwidth: f64,
    /// Shared memory that a block may take without and with opting in, and that a
    /// multiprocessor has, in bytes.
    pub shared_per_block: u32,
    pub shared_per_block_optin: u32,
    pub shared_per_sm: u32,
    /// 32-bit registers of a multiprocessor.
    pub registers_per_sm: u32,
    pub threads_per_sm: u32,
    pub blocks_per_sm: u32,
    pub threads_per_block: u32,
}

/// Maximum number of characters of a GPU's name.
const MAX_NAME_LENGTH: usize = 80;

/// Replaces by `?` every character that no NVIDIA name has, so that the name is safe in a
/// header and on a terminal.
pub fn sanitized_name(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || " ._()+-,/".contains(letter);
    name.chars().take(MAX_NAME_LENGTH).map(|letter| if is_plain(letter) { letter } else { '?' }).collect()
}

/// Reads a GPU's name from a file or a runner, which may be another user's.
fn deserialize_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    String::deserialize(deserializer).map(|name| sanitized_name(&name))
}

/// Reads a GPU's name that may be absent.
pub fn deserialize_optional_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::<String>::deserialize(deserializer).map(|name| name.map(|name| sanitized_name(&name)))
}
