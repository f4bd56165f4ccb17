//! What a register of a grid-stride loop holds, as far as it is known: the sums and products of
//! positions, items and numbers that all threads share.

/// A number that is the same for all items and threads: an argument, if that is known, plus a
/// constant, if that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shared {
    pub(super) parameter: Option<usize>,
    pub(super) offset: Option<i64>,
}

/// What a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemValue {
    Shared(Shared),
    /// A multiple of the position, or of the item's number in the loop, and more.
    Place {
        scale: i64,
        more: Shared,
    },
    /// A multiple of the threads of the launch.
    Threads(i64),
    Thread,
    Block,
    Extent,
    Blocks,
    /// Block times extent.
    BlockStart,
    /// It depends on the item.
    OfItem,
    /// It depends on the launch in another way.
    OfLaunch,
}

impl ItemValue {
    pub(super) const fn constant(value: i64) -> Self {
        Self::Shared(Shared { parameter: None, offset: Some(value) })
    }

    pub(super) const POSITION: Self = Self::Place { scale: 1, more: Shared { parameter: None, offset: Some(0) } };

    pub(super) fn as_constant(self) -> Option<i64> {
        match self {
            Self::Shared(Shared { parameter: None, offset }) => offset,
            _ => None,
        }
    }

    /// The sum; `None` if it is not followed.
    pub(super) fn plus(self, other: Self) -> Option<Self> {
        let sum = |a: Shared, b: Shared| Shared {
            parameter: match (a.parameter, b.parameter) {
                (Some(_), Some(_)) => None,
                (a, b) => a.or(b),
            },
            offset: match (a.parameter, b.parameter) {
                (Some(_), Some(_)) => None,
                _ => a.offset.zip(b.offset).map(|(a, b)| a.wrapping_add(b)),
            },
        };
        Some(match (self, other) {
            (a, b) if b.as_constant() == Some(0) => a,
            (a, b) if a.as_constant() == Some(0) => b,
            (Self::BlockStart, Self::Thread) | (Self::Thread, Self::BlockStart) => Self::POSITION,
            (Self::Shared(a), Self::Shared(b)) => Self::Shared(sum(a, b)),
            (Self::Place { scale, more }, Self::Shared(b)) | (Self::Shared(b), Self::Place { scale, more }) => {
                Self::Place { scale, more: sum(more, b) }
            }
            _ => return None,
        })
    }

    /// The product; `None` if it is not followed.
    pub(super) fn times(self, other: Self) -> Option<Self> {
        Some(match (self, other) {
            (a, b) if b.as_constant() == Some(1) => a,
            (a, b) if a.as_constant() == Some(1) => b,
            (a, b) if a.as_constant() == Some(0) || b.as_constant() == Some(0) => Self::constant(0),
            (Self::Block, Self::Extent) | (Self::Extent, Self::Block) => Self::BlockStart,
            (Self::Blocks, Self::Extent) | (Self::Extent, Self::Blocks) => Self::Threads(1),
            (a, b) => match (a, b.as_constant(), a.as_constant(), b) {
                (Self::Place { scale, more }, Some(by), ..) | (_, _, Some(by), Self::Place { scale, more }) => {
                    let offset = more.offset.filter(|_| more.parameter.is_none()).and_then(|of| of.checked_mul(by));
                    Self::Place { scale: scale.checked_mul(by)?, more: Shared { parameter: None, offset } }
                }
                (Self::Threads(scale), Some(by), ..) | (_, _, Some(by), Self::Threads(scale)) => {
                    Self::Threads(scale.checked_mul(by)?)
                }
                _ => return None,
            },
        })
    }

    /// Whether it is the same number in a wider register: numbers of the launch, which has less
    /// than 2^31 threads, and the loop's index.
    pub(super) fn is_index(self) -> bool {
        match self {
            Self::Shared(_) | Self::OfItem | Self::OfLaunch => false,
            Self::Place { .. } => self == Self::POSITION,
            Self::Threads(scale) => scale == 1,
            Self::Thread | Self::Block | Self::Extent | Self::Blocks | Self::BlockStart => true,
        }
    }
}

/// Whether a product of 32 bits, widened, is that of the numbers.
pub(super) fn is_wide(a: ItemValue, b: ItemValue) -> bool {
    let is_small = |value: ItemValue| value.as_constant().is_some_and(|value| (0..1 << 31).contains(&value));
    (a.is_index() || is_small(a)) && (b.is_index() || is_small(b))
}
