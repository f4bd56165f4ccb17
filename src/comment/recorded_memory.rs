//! The memory of a recorded launch, which a tuning comment takes from a recording.

use crate::cuda::{Element, TextureArray, TextureObject};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// The memory of a recorded launch.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedMemory {
    /// The recording.
    pub path: PathBuf,
    /// Its checksum, which stands for its contents.
    pub checksum: u64,
    /// The whole file; absent until somebody who may read files has done so.
    pub file: Option<Arc<Vec<u8>>>,
    pub buffers: Vec<RecordedBuffer>,
    /// By symbol.
    pub variables: Vec<RecordedBuffer>,
    /// CUDA arrays, by their buffers.
    pub arrays: Vec<TextureArray>,
    /// What the handles among the arguments stand for.
    pub textures: Vec<TextureObject>,
}

/// A buffer or a variable of a recorded launch.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedBuffer {
    /// The first parameter that points at it, or the variable's symbol.
    pub name: String,
    /// What it is made of, as far as the parameters tell; else bytes.
    pub element: Element,
    /// Where the contents are in the file.
    pub place: Range<u64>,
    /// Addresses in it, by rising bytes: at which byte, and of which buffer. The file has the
    /// byte in that buffer in their place.
    pub pointers: Vec<(u64, usize)>,
}
