//! Math options of the front end, each of which gives up accuracy for speed.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An option of nvcc that lets the front end make faster and less accurate arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MathOption {
    /// `-ftz=true`: denormal numbers of single precision count as zero.
    Ftz,
    /// `-prec-div=false`: approximate division in single precision.
    FastDiv,
    /// `-prec-sqrt=false`: approximate square root in single precision.
    FastSqrt,
    /// `-fmad=true`: a product and a sum become one operation with one rounding.
    Fmad,
}

impl MathOption {
    /// Every option by its name in a comment.
    pub const ALL: [(&'static str, Self); 4] =
        [("ftz", Self::Ftz), ("fast_div", Self::FastDiv), ("fast_sqrt", Self::FastSqrt), ("fmad", Self::Fmad)];

    /// The option of nvcc that is the same for the whole source.
    pub fn nvcc_option(self) -> &'static str {
        match self {
            Self::Ftz => "-ftz=true",
            Self::FastDiv => "-prec-div=false",
            Self::FastSqrt => "-prec-sqrt=false",
            Self::Fmad => "-fmad=true",
        }
    }
}

impl fmt::Display for MathOption {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, option)| option == self).map_or("", |(name, _)| name);
        formatter.write_str(name)
    }
}

impl FromStr for MathOption {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, option)| *option).ok_or(())
    }
}

/// A set of math options, besides those of the build.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Vec<MathOption>", into = "Vec<MathOption>")]
pub struct Math(u8);

impl Math {
    /// No option: the kernel has the build's own.
    pub const NONE: Self = Self(0);

    /// True for the empty set.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// True if the set has this option.
    pub fn contains(self, option: MathOption) -> bool {
        self.0 >> option as u8 & 1 == 1
    }

    /// Lists the options in a fixed order.
    pub fn options(self) -> impl Iterator<Item = MathOption> {
        MathOption::ALL.into_iter().map(|(_, option)| option).filter(move |option| self.contains(*option))
    }
}

impl FromIterator<MathOption> for Math {
    fn from_iter<I: IntoIterator<Item = MathOption>>(options: I) -> Self {
        Self(options.into_iter().fold(0, |set, option| set | 1 << option as u8))
    }
}

impl From<Vec<MathOption>> for Math {
    fn from(options: Vec<MathOption>) -> Self {
        options.into_iter().collect()
    }
}

impl From<Math> for Vec<MathOption> {
    fn from(math: Math) -> Self {
        math.options().collect()
    }
}

/// `ftz+fast_div`; nothing for the empty set.
impl fmt::Display for Math {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.options().map(|option| option.to_string()).collect();
        formatter.write_str(&names.join("+"))
    }
}
