//! What the front end is run with besides the build's own options.

use super::math::Math;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Values of macros, math options and the factor of loops: configurations that have the same
/// have the same PTX.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct FrontEndOptions {
    pub macros: BTreeMap<String, i64>,
    pub math: Math,
    /// Innermost loops of kernels that have no pragma are unrolled by it.
    pub unroll: Option<u32>,
}

impl FrontEndOptions {
    /// True if there is nothing besides macros.
    pub fn is_macros_alone(&self) -> bool {
        self.math.is_none() && self.unroll.is_none()
    }
}

/// The form in files: the macros alone where there is nothing else, as they were written before
/// there was anything else.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Macros(BTreeMap<String, i64>),
    All {
        macros: BTreeMap<String, i64>,
        #[serde(default, skip_serializing_if = "Math::is_none")]
        math: Math,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unroll: Option<u32>,
    },
}

impl From<Stored> for FrontEndOptions {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Macros(macros) => Self::from(macros),
            Stored::All { macros, math, unroll } => Self { macros, math, unroll },
        }
    }
}

impl From<FrontEndOptions> for Stored {
    fn from(options: FrontEndOptions) -> Self {
        let is_macros_alone = options.is_macros_alone();
        let FrontEndOptions { macros, math, unroll } = options;
        if is_macros_alone { Self::Macros(macros) } else { Self::All { macros, math, unroll } }
    }
}

impl From<BTreeMap<String, i64>> for FrontEndOptions {
    fn from(macros: BTreeMap<String, i64>) -> Self {
        Self { macros, math: Math::NONE, unroll: None }
    }
}

/// `-DTILE=16 -ftz=true`, as nvcc would be given them, and `unroll=4`.
impl fmt::Display for FrontEndOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let macros = self.macros.iter().map(|(name, value)| format!("-D{name}={value}"));
        let math = self.math.options().map(|option| option.nvcc_option().to_owned());
        let unroll = self.unroll.map(|factor| format!("unroll={factor}"));
        formatter.write_str(&macros.chain(math).chain(unroll).collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::MathOption;

    #[test]
    fn options_without_others_are_stored_as_macros_alone() {
        let macros = FrontEndOptions::from(BTreeMap::from([("TILE".to_owned(), 16)]));
        let math = Math::from_iter([MathOption::FastDiv, MathOption::Ftz]);
        let both = FrontEndOptions { math, ..macros.clone() };
        let unrolled = FrontEndOptions { unroll: Some(4), ..macros.clone() };
        for (options, text) in [
            (macros, r#"{"TILE":16}"#),
            (both, r#"{"macros":{"TILE":16},"math":["ftz","fast_div"]}"#),
            (unrolled, r#"{"macros":{"TILE":16},"unroll":4}"#),
        ] {
            assert_eq!(serde_json::to_string(&options).unwrap(), text);
            assert_eq!(serde_json::from_str::<FrontEndOptions>(text).unwrap(), options);
        }
    }

    #[test]
    fn options_are_shown_as_nvcc_takes_them() {
        let options = FrontEndOptions {
            macros: BTreeMap::from([("TILE".to_owned(), 16)]),
            math: MathOption::ALL.into_iter().map(|(_, option)| option).collect(),
            unroll: Some(4),
        };
        assert_eq!(options.to_string(), "-DTILE=16 -ftz=true -prec-div=false -prec-sqrt=false -fmad=true unroll=4");
    }
}
