//! What the front end is run with besides the build's own options.

use super::math::Math;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Values of macros, and math options: configurations that have the same have the same PTX.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct FrontEndOptions {
    pub macros: BTreeMap<String, i64>,
    pub math: Math,
}

/// The form in files: the macros alone where there are no math options, as they were written
/// before there were any.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Macros(BTreeMap<String, i64>),
    Both { macros: BTreeMap<String, i64>, math: Math },
}

impl From<Stored> for FrontEndOptions {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Macros(macros) => Self::from(macros),
            Stored::Both { macros, math } => Self { macros, math },
        }
    }
}

impl From<FrontEndOptions> for Stored {
    fn from(FrontEndOptions { macros, math }: FrontEndOptions) -> Self {
        if math.is_none() { Self::Macros(macros) } else { Self::Both { macros, math } }
    }
}

impl From<BTreeMap<String, i64>> for FrontEndOptions {
    fn from(macros: BTreeMap<String, i64>) -> Self {
        Self { macros, math: Math::NONE }
    }
}

/// `-DTILE=16 -ftz=true`, as nvcc would be given them.
impl fmt::Display for FrontEndOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let macros = self.macros.iter().map(|(name, value)| format!("-D{name}={value}"));
        let math = self.math.options().map(|option| option.nvcc_option().to_owned());
        formatter.write_str(&macros.chain(math).collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::MathOption;

    #[test]
    fn options_without_math_are_stored_as_macros_alone() {
        let macros = FrontEndOptions::from(BTreeMap::from([("TILE".to_owned(), 16)]));
        let math = Math::from_iter([MathOption::FastDiv, MathOption::Ftz]);
        let both = FrontEndOptions { math, ..macros.clone() };
        for (options, text) in
            [(macros, r#"{"TILE":16}"#), (both, r#"{"macros":{"TILE":16},"math":["ftz","fast_div"]}"#)]
        {
            assert_eq!(serde_json::to_string(&options).unwrap(), text);
            assert_eq!(serde_json::from_str::<FrontEndOptions>(text).unwrap(), options);
        }
    }

    #[test]
    fn options_are_shown_as_nvcc_takes_them() {
        let options = FrontEndOptions {
            macros: BTreeMap::from([("TILE".to_owned(), 16)]),
            math: MathOption::ALL.into_iter().map(|(_, option)| option).collect(),
        };
        assert_eq!(options.to_string(), "-DTILE=16 -ftz=true -prec-div=false -prec-sqrt=false -fmad=true");
    }
}
