//! Arguments and buffers of a launch.

use serde::{Deserialize, Serialize};

/// A scalar type of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scalar {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

/// What a buffer is made of: `lanes` scalars (4 for `float4`) in `size` bytes (16 for `float3` aligned types included).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Element {
    pub scalar: Scalar,
    pub lanes: u8,
}

/// The contents of a buffer before the launch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Fill {
    /// Written by the kernel only: filled with a pattern that no kernel is likely to produce (`out[n]`).
    Poison,
    /// `zeros[n]`
    Zeros,
    /// `iota[n]`: 0, 1, 2, ...
    Iota,
    /// `fill(v)[n]`
    Constant(f64),
    /// `random[n]` (0 to 1 for floating types, 0 to 255 for integers) and `random(lo, hi)[n]`, uniform.
    Random { lo: f64, hi: f64 },
}

/// A buffer in device memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Buffer {
    /// The parameter that it is passed to.
    pub name: String,
    pub element: Element,
    /// Number of elements.
    pub count: u64,
    pub fill: Fill,
    /// Stream of the random numbers; distinct for each buffer of a workload.
    pub seed: u64,
}

/// One argument, in the order of the kernel's parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Argument {
    /// The bytes of a scalar in the device's (little-endian) layout.
    Scalar(Vec<u8>),
    /// The address of the buffer with this index in [`Workload::buffers`].
    Buffer(usize),
}

/// A buffer that is compared with the baseline's after the launch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Index in [`Workload::buffers`].
    pub buffer: usize,
    /// Accepted: |a - b| <= absolute + relative * |b|. Both are 0 for integers.
    pub relative: f64,
    pub absolute: f64,
}

/// The launch that candidates are timed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    pub arguments: Vec<Argument>,
    pub buffers: Vec<Buffer>,
    /// What is compared; `None`: every buffer that the baseline wrote, integers exactly, floats to 1e-4.
    pub checks: Option<Vec<Check>>,
}
