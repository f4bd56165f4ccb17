//! Texture and surface objects as a launch has them: the memory behind each, and how it is read.
//!
//! Numbers of formats, flags and modes are the driver's (`cuda.h`).

use super::element::{Element, Scalar};
use serde::{Deserialize, Serialize};

/// `CUDA_ARRAY3D_LAYERED`, `_SURFACE_LDST`, `_CUBEMAP` and `_TEXTURE_GATHER`.
const ARRAY_FLAGS: u32 = 0x0f;

/// What a handle stands for that means something only in the process that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum OpaqueHandle {
    Texture,
    Surface,
}

/// Where among its arguments a launch has a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HandlePlace {
    pub argument: usize,
    /// In a structure the byte where its field begins.
    pub offset: u64,
    pub kind: OpaqueHandle,
}

impl OpaqueHandle {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            OpaqueHandle::Texture => "texture",
            OpaqueHandle::Surface => "surface",
        }
    }
}

/// A CUDA array. A buffer has its contents: texel by texel, row by row, layer by layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextureArray {
    /// Index of the buffer.
    pub buffer: usize,
    /// Width, height and depth (or layers) in texels; 0 for a dimension that it does not have.
    pub extent: [u64; 3],
    pub texel: Element,
    pub flags: u32,
}

/// The memory that a texture or surface object reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TextureMemory {
    /// The array with this index.
    Array(usize),
    /// Bytes of a buffer, from byte `offset` on.
    Linear { buffer: usize, offset: u64, bytes: u64, texel: Element },
    /// Rows of texels in a buffer, each `pitch` bytes after the one before.
    Pitched { buffer: usize, offset: u64, width: u64, height: u64, pitch: u64, texel: Element },
}

/// How a texture is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampling {
    /// The words of `CUDA_TEXTURE_DESC` without the reserved ones at its end.
    pub descriptor: [u32; 14],
    /// The words of 64 bits of `CUDA_RESOURCE_VIEW_DESC`, without the reserved ones.
    pub view: Option<[u64; 6]>,
}

/// A texture or surface object that a launch is passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextureObject {
    /// The argument that has its handle, and the byte in that.
    pub argument: usize,
    pub field: u64,
    pub memory: TextureMemory,
    /// `None` for a surface.
    pub sampling: Option<Sampling>,
}

impl TextureArray {
    /// Rows of a layer.
    pub fn rows(&self) -> u64 {
        self.extent[1].max(1)
    }

    /// Layers, or planes of a volume.
    pub fn layers(&self) -> u64 {
        self.extent[2].max(1)
    }

    /// Bytes of a row; saturates.
    pub fn row_bytes(&self) -> u64 {
        self.extent[0].saturating_mul(self.texel.size() as u64)
    }

    /// Bytes of its contents; saturates.
    pub fn bytes(&self) -> u64 {
        self.row_bytes().saturating_mul(self.rows()).saturating_mul(self.layers())
    }

    /// Whether a buffer of this many bytes has its contents, and it is an array of memory alone.
    pub fn has_bytes(&self, bytes: u64) -> bool {
        self.bytes() == bytes && self.flags & !ARRAY_FLAGS == 0
    }
}

impl TextureMemory {
    /// Index of the buffer that it lies in.
    pub fn buffer(&self, arrays: &[TextureArray]) -> Option<usize> {
        match self {
            TextureMemory::Array(array) => arrays.get(*array).map(|array| array.buffer),
            TextureMemory::Linear { buffer, .. } | TextureMemory::Pitched { buffer, .. } => Some(*buffer),
        }
    }

    /// The type of its texels.
    pub fn texel(&self, arrays: &[TextureArray]) -> Option<Element> {
        match self {
            TextureMemory::Array(array) => arrays.get(*array).map(|array| array.texel),
            TextureMemory::Linear { texel, .. } | TextureMemory::Pitched { texel, .. } => Some(*texel),
        }
    }

    /// Whether it is a known array, or lies within its buffer. `sizes` are the bytes of buffers.
    pub fn is_within(&self, arrays: &[TextureArray], sizes: &[u64]) -> bool {
        let (buffer, offset, bytes) = match *self {
            TextureMemory::Array(array) => return array < arrays.len(),
            TextureMemory::Linear { buffer, offset, bytes, .. } => (buffer, offset, Some(bytes)),
            TextureMemory::Pitched { buffer, offset, width, height, pitch, texel } => {
                let row = width.checked_mul(texel.size() as u64).filter(|row| *row <= pitch);
                let rows = height.checked_sub(1).and_then(|above| above.checked_mul(pitch));
                (buffer, offset, row.zip(rows).and_then(|(row, rows)| rows.checked_add(row)))
            }
        };
        let end = bytes.and_then(|bytes| offset.checked_add(bytes));
        end.zip(sizes.get(buffer)).is_some_and(|(end, size)| end <= *size)
    }
}

/// Scalars of texels with their `CUarray_format`.
const FORMATS: [(Scalar, u32); 8] = [
    (Scalar::U8, 0x01),
    (Scalar::U16, 0x02),
    (Scalar::U32, 0x03),
    (Scalar::I8, 0x08),
    (Scalar::I16, 0x09),
    (Scalar::I32, 0x0a),
    (Scalar::F16, 0x10),
    (Scalar::F32, 0x20),
];

impl Element {
    /// The texel of a `CUarray_format` with this many channels.
    pub fn texel(format: u64, channels: u64) -> Option<Element> {
        let (scalar, _) = FORMATS.into_iter().find(|(_, number)| u64::from(*number) == format)?;
        let lanes = u8::try_from(channels).ok().filter(|lanes| matches!(lanes, 1 | 2 | 4))?;
        Some(Element { scalar, lanes })
    }

    /// Its `CUarray_format`, if it may be a texel.
    pub fn array_format(self) -> Option<u32> {
        FORMATS.into_iter().find(|(scalar, _)| *scalar == self.scalar).map(|(_, number)| number)
    }
}
