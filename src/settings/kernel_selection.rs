//! `NVTUNE_KERNELS`: kernels that count as marked without a comment.

use regex::Regex;
use std::ffi::OsString;

/// The word for all kernels.
const ALL: &str = "all";

/// Which kernels without a comment are treated as if `//@tune` stood above them.
#[derive(Clone, Debug, Default)]
pub enum KernelSelection {
    #[default]
    Nothing,
    /// Those with a share of the recorded work.
    All,
    /// Those whose whole name this matches.
    Matching(Regex),
}

impl KernelSelection {
    /// Reads the variable.
    ///
    /// # Errors
    /// Why its value is not understood, for the user.
    pub fn new(environment: impl Fn(&str) -> Option<OsString>) -> Result<Self, String> {
        let Some(value) = environment("NVTUNE_KERNELS").filter(|value| !value.is_empty()) else {
            return Ok(Self::Nothing);
        };
        let text = value.to_string_lossy();
        if text == ALL {
            return Ok(Self::All);
        }
        // The error of the pattern by itself names what the user wrote.
        Regex::new(&text).and_then(|_| Regex::new(&format!("^(?:{text})$"))).map(Self::Matching).map_err(|error| {
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or_default().trim().trim_start_matches("error: ");
            format!("NVTUNE_KERNELS='{text}' is not understood: {reason}; expected 'all', or names: 'scale|fft_.*'")
        })
    }

    /// Whether a kernel of this name counts as marked.
    pub fn selects(&self, kernel: &str) -> bool {
        match self {
            Self::Nothing => false,
            Self::All => true,
            Self::Matching(pattern) => pattern.is_match(kernel),
        }
    }

    pub fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }

    pub fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }
}

#[cfg(test)]
mod tests {
    use super::KernelSelection;

    fn selection(value: &str) -> Result<KernelSelection, String> {
        KernelSelection::new(|name| (name == "NVTUNE_KERNELS").then(|| value.into()))
    }

    #[test]
    fn whole_names_are_matched() {
        for (value, name, is_selected) in [
            ("scale", "scale", true),
            ("scale", "scaled", false),
            ("scale|fft_.*", "fft_8", true),
            ("scale|fft_.*", "my_fft_8", false),
            ("a|b", "ab", false),
            ("all", "anything", true),
            ("all|x", "all", true),
            ("", "x", false),
        ] {
            assert_eq!(selection(value).map(|of| of.selects(name)), Ok(is_selected), "{value} {name}");
        }
        assert!(KernelSelection::new(|_| None).is_ok_and(|of| of.is_nothing()));
    }

    #[test]
    fn pattern_that_is_none_is_an_error_that_names_it() {
        assert_eq!(
            selection("fft_(").map(|_| ()).expect_err("refused"),
            "NVTUNE_KERNELS='fft_(' is not understood: unclosed group; expected 'all', or names: 'scale|fft_.*'"
        );
        assert!(selection("a)|(b").is_err());
    }
}
