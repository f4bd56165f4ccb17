//! One recorded launch in a file: its index -> shape, arguments, and where memory is kept.
//!
//! The file begins with `nvtrec3\n`. The contents of variables and buffers follow, each filled
//! up to 8 bytes, then the index, and at the end three words: the place of the index, a
//! checksum of all before it, and `nvtrecE\n`. All numbers are 64-bit and little-endian
//! (`src/emit/capture_runtime.h` and `src/emit/capture_textures.h` write them).

use crate::cuda::{Element, Sampling, TextureArray, TextureMemory, TextureObject};
use crate::launch::Dim3;
use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use thiserror::Error;

const BEGINNING: &[u8; 8] = b"nvtrec3\n";
const END: &[u8; 8] = b"nvtrecE\n";

/// Bytes of the words at the end.
const TRAILER: u64 = 24;

/// The longest index that is believed: 4096 buffers, 65536 addresses, and arguments.
const MOST_INDEX: u64 = 4 << 20;

/// What holds an address: numbers of buffers and variables begin there.
const BUFFERS: u64 = 1 << 32;
const VARIABLES: u64 = 1 << 33;

/// Why a file is no recording.
#[derive(Debug, Error)]
pub enum RecordingError {
    #[error("cannot be read: {0}")]
    Unreadable(#[from] std::io::Error),
    #[error("is not whole, or no recording")]
    NotWhole,
    #[error("has an index that contradicts itself")]
    Damaged,
}

/// What an argument is, as the launch stub knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    Signed,
    Unsigned,
    Float,
    Pointer,
    /// The handle of a texture object.
    Texture,
    /// The handle of a surface object.
    Surface,
    /// A structure, an enumeration, a type of 16 bits and fewer.
    Other,
}

/// One argument of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedArgument {
    pub kind: ArgumentKind,
    pub bytes: Vec<u8>,
}

/// A word that held an address: at which byte of its holder, and to which byte of which buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedPointer {
    pub holder: Holder,
    pub offset: u64,
    pub buffer: usize,
    pub target: u64,
}

/// What holds an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    Argument(usize),
    Buffer(usize),
    Variable(usize),
}

/// A launch as its file has it, without the contents of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedLaunch {
    pub grid: Dim3,
    pub block: Dim3,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    pub arguments: Vec<RecordedArgument>,
    /// Where in the file the contents of each buffer are.
    pub buffers: Vec<Range<u64>>,
    pub pointers: Vec<RecordedPointer>,
    /// Number, symbol in the PTX, and place of the contents.
    pub variables: Vec<(usize, String, Range<u64>)>,
    /// CUDA arrays, whose contents are buffers.
    pub arrays: Vec<TextureArray>,
    /// What the handles among the arguments stand for; nothing where such a handle is 0.
    pub textures: Vec<TextureObject>,
    /// The kernel with its template arguments, as in `k<float, 4>`; empty where it is no template.
    pub instance: String,
    /// Of the whole file before it.
    pub checksum: u64,
}

/// The whole number in at most 8 bytes.
pub(super) fn integer(bytes: &[u8], is_signed: bool) -> Option<i64> {
    let mut word = [0; 8];
    word.get_mut(..bytes.len())?.copy_from_slice(bytes);
    let bits = u64::from_le_bytes(word);
    let unused = 64 - 8 * u32::try_from(bytes.len()).ok()?.max(1);
    if is_signed { Some((bits << unused) as i64 >> unused) } else { i64::try_from(bits).ok() }
}

impl RecordedArgument {
    /// The value of a whole number.
    pub fn integer(&self) -> Option<i64> {
        match self.kind {
            ArgumentKind::Signed => integer(&self.bytes, true),
            ArgumentKind::Unsigned => integer(&self.bytes, false),
            ArgumentKind::Float
            | ArgumentKind::Pointer
            | ArgumentKind::Texture
            | ArgumentKind::Surface
            | ArgumentKind::Other => None,
        }
    }

    /// The value of a floating number.
    pub fn float(&self) -> Option<f64> {
        match (self.kind, self.bytes.as_slice()) {
            (ArgumentKind::Float, &[a, b, c, d]) => Some(f64::from(f32::from_le_bytes([a, b, c, d]))),
            (ArgumentKind::Float, bytes) => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
            _ => None,
        }
    }
}

impl RecordedLaunch {
    /// Threads of the whole launch.
    pub fn threads(&self) -> u64 {
        self.grid.iter().chain(&self.block).fold(1, |product: u64, extent| product.saturating_mul(u64::from(*extent)))
    }

    /// Reads the index of a recording.
    ///
    /// # Errors
    /// Where the file is not whole, or its index names what the file does not have.
    pub fn read(file: &mut (impl Read + Seek)) -> Result<RecordedLaunch, RecordingError> {
        let length = file.seek(SeekFrom::End(0))?;
        let trailer_at = length.checked_sub(TRAILER).ok_or(RecordingError::NotWhole)?;
        let mut beginning = [0; 8];
        file.seek(SeekFrom::Start(0))?;
        file.read_exact(&mut beginning)?;
        file.seek(SeekFrom::Start(trailer_at))?;
        let mut trailer = [0; TRAILER as usize];
        file.read_exact(&mut trailer)?;
        if beginning != *BEGINNING || !trailer.ends_with(END) {
            return Err(RecordingError::NotWhole);
        }
        let mut words = Words { bytes: &trailer };
        let (index_at, checksum) = (words.word()?, words.word()?);
        let bytes = trailer_at.checked_sub(index_at).filter(|bytes| *bytes <= MOST_INDEX && index_at >= 8);
        let mut index = vec![0; bytes.ok_or(RecordingError::Damaged)? as usize];
        file.seek(SeekFrom::Start(index_at))?;
        file.read_exact(&mut index)?;
        parse_index(&index, index_at, checksum)
    }

    /// Whether the bytes of the file are those that were written.
    pub fn is_intact(&self, file: &[u8]) -> bool {
        let Some(checked) = file.len().checked_sub(16).and_then(|end| file.get(..end)) else { return false };
        // Each piece was filled up to whole words.
        let mut digest: u64 = 0;
        for word in checked.chunks_exact(8) {
            let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
            digest = (digest ^ word).wrapping_mul(PRIME);
        }
        digest == self.checksum && checked.len() % 8 == 0
    }
}

/// The prime of the 64-bit FNV-1a hash.
const PRIME: u64 = 1_099_511_628_211;

/// The words of an index that are still to be read.
struct Words<'a> {
    bytes: &'a [u8],
}

impl<'a> Words<'a> {
    fn word(&mut self) -> Result<u64, RecordingError> {
        let (word, rest) = self.bytes.split_first_chunk::<8>().ok_or(RecordingError::Damaged)?;
        self.bytes = rest;
        Ok(u64::from_le_bytes(*word))
    }

    fn extent(&mut self) -> Result<u32, RecordingError> {
        u32::try_from(self.word()?).map_err(|_| RecordingError::Damaged)
    }

    fn number(&mut self) -> Result<usize, RecordingError> {
        usize::try_from(self.word()?).map_err(|_| RecordingError::Damaged)
    }

    /// The format and the channels of a texel.
    fn texel(&mut self) -> Result<Element, RecordingError> {
        let (format, channels) = (self.word()?, self.word()?);
        Element::texel(format, channels).ok_or(RecordingError::Damaged)
    }

    /// Reads a count, which must be 0 or `N`, and as many words.
    fn optional<const N: usize>(&mut self) -> Result<Option<[u64; N]>, RecordingError> {
        match self.number()? {
            0 => Ok(None),
            count if count == N => {
                let mut found = [0; N];
                for word in &mut found {
                    *word = self.word()?;
                }
                Ok(Some(found))
            }
            _ => Err(RecordingError::Damaged),
        }
    }

    /// A number of things, each of which takes at least a word.
    fn count(&mut self) -> Result<usize, RecordingError> {
        let count = self.number()?;
        if count > self.bytes.len() / 8 { Err(RecordingError::Damaged) } else { Ok(count) }
    }

    /// Bytes that are filled up to whole words.
    fn piece(&mut self, length: u64) -> Result<&'a [u8], RecordingError> {
        let length = usize::try_from(length).map_err(|_| RecordingError::Damaged)?;
        let whole = length.checked_next_multiple_of(8).ok_or(RecordingError::Damaged)?;
        let (piece, rest) = self.bytes.split_at_checked(whole).ok_or(RecordingError::Damaged)?;
        self.bytes = rest;
        piece.get(..length).ok_or(RecordingError::Damaged)
    }
}

/// Finds the contents of variables by their numbers; of equal numbers the first counts.
pub(super) fn variable_places(variables: &[(usize, String, Range<u64>)]) -> HashMap<usize, &Range<u64>> {
    variables.iter().rev().map(|(number, _, place)| (*number, place)).collect()
}

fn parse_index(index: &[u8], end: u64, checksum: u64) -> Result<RecordedLaunch, RecordingError> {
    let mut words = Words { bytes: index };
    let mut dim3 = || -> Result<Dim3, RecordingError> { Ok([words.extent()?, words.extent()?, words.extent()?]) };
    let (grid, block) = (dim3()?, dim3()?);
    let shared = words.extent()?;
    let inside = |place: u64, size: u64| {
        let until = place.checked_add(size).filter(|until| *until <= end && place >= 8);
        until.map(|until| place..until).ok_or(RecordingError::Damaged)
    };
    let mut arguments = Vec::new();
    for _ in 0..words.count()? {
        let kind = match u8::try_from(words.word()?) {
            Ok(b'i') => ArgumentKind::Signed,
            Ok(b'u') => ArgumentKind::Unsigned,
            Ok(b'f') => ArgumentKind::Float,
            Ok(b'p') => ArgumentKind::Pointer,
            Ok(b't') => ArgumentKind::Texture,
            Ok(b'o') => ArgumentKind::Surface,
            Ok(b's') => ArgumentKind::Other,
            _ => return Err(RecordingError::Damaged),
        };
        let size = words.word()?;
        arguments.push(RecordedArgument { kind, bytes: words.piece(size)?.to_vec() });
    }
    let mut buffers = Vec::new();
    for _ in 0..words.count()? {
        let (size, place) = (words.word()?, words.word()?);
        buffers.push(inside(place, size)?);
    }
    let mut pointers = Vec::new();
    for _ in 0..words.count()? {
        let (holder, offset, buffer, target) = (words.word()?, words.word()?, words.word()?, words.word()?);
        let number = |holder: u64| usize::try_from(holder).map_err(|_| RecordingError::Damaged);
        let holder = match holder {
            VARIABLES.. => Holder::Variable(number(holder - VARIABLES)?),
            BUFFERS.. => Holder::Buffer(number(holder - BUFFERS)?),
            _ => Holder::Argument(number(holder)?),
        };
        let buffer = usize::try_from(buffer).map_err(|_| RecordingError::Damaged)?;
        let size = buffers.get(buffer).map(|place| place.end - place.start).ok_or(RecordingError::Damaged)?;
        let room = match holder {
            Holder::Argument(index) => arguments.get(index).map(|argument| argument.bytes.len() as u64),
            Holder::Buffer(index) => buffers.get(index).map(|place| place.end - place.start),
            Holder::Variable(_) => Some(u64::MAX),
        };
        if target >= size || offset.checked_add(8).is_none_or(|end| room.is_none_or(|room| end > room)) {
            return Err(RecordingError::Damaged);
        }
        pointers.push(RecordedPointer { holder, offset, buffer, target });
    }
    let mut variables = Vec::new();
    for _ in 0..words.count()? {
        let (number, size, place, length) = (words.word()?, words.word()?, words.word()?, words.word()?);
        let number = usize::try_from(number).map_err(|_| RecordingError::Damaged)?;
        let symbol = std::str::from_utf8(words.piece(length)?).map_err(|_| RecordingError::Damaged)?;
        variables.push((number, symbol.to_owned(), inside(place, size)?));
    }
    let length = words.word()?;
    let instance = std::str::from_utf8(words.piece(length)?).map_err(|_| RecordingError::Damaged)?.to_owned();
    let sizes: Vec<u64> = buffers.iter().map(|place| place.end - place.start).collect();
    let arrays = parse_arrays(&mut words, &sizes)?;
    let textures = parse_textures(&mut words, &arguments, &arrays, &sizes)?;
    let places = variable_places(&variables);
    let is_outside = |pointer: &RecordedPointer| match pointer.holder {
        Holder::Variable(number) => {
            places.get(&number).is_none_or(|place| pointer.offset + 8 > place.end - place.start)
        }
        Holder::Argument(_) | Holder::Buffer(_) => false,
    };
    if !words.bytes.is_empty() || pointers.iter().any(is_outside) {
        return Err(RecordingError::Damaged);
    }
    Ok(RecordedLaunch {
        grid,
        block,
        shared,
        arguments,
        buffers,
        pointers,
        variables,
        arrays,
        textures,
        instance,
        checksum,
    })
}

/// Reads CUDA arrays, each of which has exactly the bytes of its buffer.
fn parse_arrays(words: &mut Words<'_>, sizes: &[u64]) -> Result<Vec<TextureArray>, RecordingError> {
    let mut arrays = Vec::new();
    for _ in 0..words.count()? {
        let (buffer, extent) = (words.number()?, [words.word()?, words.word()?, words.word()?]);
        let array = TextureArray { buffer, extent, texel: words.texel()?, flags: words.extent()? };
        if !sizes.get(buffer).is_some_and(|size| array.has_bytes(*size)) {
            return Err(RecordingError::Damaged);
        }
        arrays.push(array);
    }
    Ok(arrays)
}

/// Reads texture and surface objects, by rising places of their handles.
fn parse_textures(
    words: &mut Words<'_>,
    arguments: &[RecordedArgument],
    arrays: &[TextureArray],
    sizes: &[u64],
) -> Result<Vec<TextureObject>, RecordingError> {
    let mut textures: Vec<TextureObject> = Vec::new();
    for _ in 0..words.count()? {
        let (argument, field) = (words.number()?, words.word()?);
        let memory = parse_memory(words)?;
        let (descriptor, view) = (words.optional::<7>()?, words.optional::<6>()?);
        let halves = |words: [u64; 7]| {
            std::array::from_fn(|at| u32::try_from(words[at / 2] >> (32 * (at % 2)) & 0xffff_ffff).unwrap_or_default())
        };
        let sampling = descriptor.map(|words| Sampling { descriptor: halves(words), view });
        let expected = if sampling.is_some() { ArgumentKind::Texture } else { ArgumentKind::Surface };
        let has_handle = |own: &RecordedArgument| match own.kind {
            ArgumentKind::Other => field.checked_add(8).is_some_and(|end| end <= own.bytes.len() as u64),
            kind => kind == expected && own.bytes.len() == 8 && field == 0,
        };
        let is_handle = arguments.get(argument).is_some_and(has_handle);
        let rises = textures.last().is_none_or(|last| (last.argument, last.field) < (argument, field));
        let has_place = sampling.is_some() || view.is_none() && matches!(memory, TextureMemory::Array(_));
        if !is_handle || !rises || !has_place || !memory.is_within(arrays, sizes) {
            return Err(RecordingError::Damaged);
        }
        textures.push(TextureObject { argument, field, memory, sampling });
    }
    Ok(textures)
}

/// Reads the memory of a texture: its kind as the driver numbers it (`CUresourcetype`), and
/// numbers that depend on the kind.
fn parse_memory(words: &mut Words<'_>) -> Result<TextureMemory, RecordingError> {
    let (kind, index, offset) = (words.word()?, words.number()?, words.word()?);
    if kind == 0 {
        for _ in 0..5 {
            words.word()?;
        }
        return Ok(TextureMemory::Array(index));
    }
    let (texel, width, height, pitch) = (words.texel()?, words.word()?, words.word()?, words.word()?);
    match kind {
        2 => Ok(TextureMemory::Linear { buffer: index, offset, bytes: width, texel }),
        3 => Ok(TextureMemory::Pitched { buffer: index, offset, width, height, pitch, texel }),
        _ => Err(RecordingError::Damaged),
    }
}
