//! `.nv.info` bytes -> attributes: the type-length-value records in which ptxas describes a
//! kernel.
//!
//! Each record is a format byte, an attribute byte and 16 bits, which are the value itself or
//! the length of the payload that follows. Attributes that are not known are skipped by their
//! length.

use super::error::SassError;

/// How a record carries its value.
const NO_VALUE: u8 = 1;
const BYTE_VALUE: u8 = 2;
const HALF_VALUE: u8 = 3;
const SIZED_VALUE: u8 = 4;

/// What an attribute says.
///
/// Codes: the EIATTR names that `cuobjdump -elf` prints, observed on ptxas 12.8 and 13.0
/// output; they agree with CuAssembler's `CuNVInfo.py` and denvdis's `eiattrs.inc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attribute {
    /// `.maxntid`: three words.
    MaxThreads,
    /// Base offset and size of the parameters in constant bank 0.
    ParameterBank,
    /// `.reqntid`: three words.
    RequiredThreads,
    /// Symbol and stack bytes of one function.
    FrameSize,
    /// Symbol and stack bytes over the call graph.
    MinStackSize,
    /// One parameter, its size in 14 bits.
    Parameter,
    /// One parameter, its size in a word.
    LargeParameter,
    /// Bytes of all parameters.
    ParameterBytes,
    /// The register cap that ptxas obeyed, 255 for none.
    RegisterCap,
    /// Symbol and registers of one function.
    Registers,
    /// Branches through tables: offset, 0, count, targets.
    IndirectTargets,
    /// `.reqnctapercluster`: three words.
    ClusterShape,
    /// `.maxclusterrank`: one word.
    ClusterRank,
    /// Virtual resources taken at a block's start (compute capability 10 and later).
    VirtualResources,
    /// Named barriers: the highest number used, plus one.
    Barriers,
}

/// Attribute codes.
const CODES: &[(u8, Attribute)] = &[
    (0x05, Attribute::MaxThreads),
    (0x0a, Attribute::ParameterBank),
    (0x10, Attribute::RequiredThreads),
    (0x11, Attribute::FrameSize),
    (0x12, Attribute::MinStackSize),
    (0x17, Attribute::Parameter),
    (0x19, Attribute::ParameterBytes),
    (0x1b, Attribute::RegisterCap),
    (0x2f, Attribute::Registers),
    (0x34, Attribute::IndirectTargets),
    (0x3d, Attribute::ClusterShape),
    (0x3f, Attribute::ClusterRank),
    (0x45, Attribute::LargeParameter),
    (0x4a, Attribute::VirtualResources),
    (0x4c, Attribute::Barriers),
];

/// One record.
#[derive(Clone, Copy, Debug)]
pub(super) struct InfoRecord<'data> {
    pub attribute: Attribute,
    /// Where the record begins in its section.
    pub offset: u64,
    /// The 16-bit value of a record without payload.
    pub value: u16,
    pub payload: &'data [u8],
}

impl InfoRecord<'_> {
    /// The little-endian word with this index in the payload.
    pub(super) fn word(&self, section: &str, index: usize) -> Result<u32, SassError> {
        self.words().nth(index).ok_or_else(|| {
            SassError::at(section, self.offset, format!("{:?} needs {} words of payload", self.attribute, index + 1))
        })
    }

    /// The payload as little-endian words.
    pub(super) fn words(&self) -> impl Iterator<Item = u32> + '_ {
        self.payload.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
    }

    /// Three words: a block or cluster shape.
    pub(super) fn shape(&self, section: &str) -> Result<[u32; 3], SassError> {
        Ok([self.word(section, 0)?, self.word(section, 1)?, self.word(section, 2)?])
    }
}

/// Reads the known records of an `.nv.info` section.
///
/// # Errors
/// Where a record reaches beyond the end, or has a format that is not known (its length then is
/// not either).
pub(super) fn read_records<'data>(section: &str, data: &'data [u8]) -> Result<Vec<InfoRecord<'data>>, SassError> {
    let mut records = Vec::new();
    let mut rest = data;
    while !rest.is_empty() {
        let offset = (data.len() - rest.len()) as u64;
        let cut = || SassError::at(section, offset, "the record reaches beyond the end");
        let (head, tail) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
        let [format, code, low, high] = *head;
        let value = u16::from_le_bytes([low, high]);
        let (payload, tail) = match format {
            NO_VALUE | BYTE_VALUE | HALF_VALUE => (&[][..], tail),
            SIZED_VALUE => tail.split_at_checked(usize::from(value)).ok_or_else(cut)?,
            _ => {
                return Err(SassError::at(section, offset, format!("unknown record format {format}")));
            }
        };
        rest = tail;
        if let Some(&(_, attribute)) = CODES.iter().find(|(known, _)| *known == code) {
            records.push(InfoRecord { attribute, offset, value, payload });
        }
    }
    Ok(records)
}
