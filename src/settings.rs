//! What the environment says: nvtune's own options (`NVTUNE_*`), read once and checked.

use crate::search::Strategy;
use std::ffi::OsString;
use std::path::PathBuf;

/// How far nvtune goes for a marked kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every call is handed to nvcc.
    Off,
    /// Baselines only (until a lock file says otherwise).
    Locked,
    /// The model's choice.
    Static,
    /// Candidates are timed where there is a GPU; else as `Static`.
    Measure,
}

/// The settings of one run.
#[derive(Clone, Debug)]
pub struct Settings {
    pub mode: Mode,
    pub strategy: Strategy,
    /// Seconds of GPU time for one kernel.
    pub budget: f64,
    /// Folder for the headers; beside the object where unset.
    pub header_folder: Option<PathBuf>,
    /// Folder outside the sources' own that buffers may be read from.
    pub files: Option<PathBuf>,
    /// Warnings are errors.
    pub strict: bool,
}

/// One environment variable, for the help and the man page.
pub struct Variable {
    pub name: &'static str,
    pub values: &'static str,
    pub meaning: &'static str,
    pub default: &'static str,
}

/// Every variable that nvtune reads.
pub const VARIABLES: [Variable; 9] = [
    Variable {
        name: "NVTUNE",
        values: "off, locked, static, measure",
        meaning: "off: hand every call to nvcc; locked: baselines only; static: the model chooses; measure: time candidates on the GPU, or choose by the model where there is none",
        default: "measure",
    },
    Variable {
        name: "NVTUNE_NVCC",
        values: "path",
        meaning: "the real nvcc",
        default: "the first on PATH that is not nvtune, then CUDA_HOME, CUDA_PATH, /usr/local/cuda, /opt/cuda",
    },
    Variable {
        name: "NVTUNE_STRATEGY",
        values: Strategy::NAMES,
        meaning: "which configurations are timed",
        default: "refit",
    },
    Variable { name: "NVTUNE_BUDGET", values: "seconds", meaning: "GPU time for one kernel", default: "30" },
    Variable {
        name: "NVTUNE_RUNNER",
        values: "command",
        meaning: "put before the measuring process, such as 'ssh gpu01'; it must carry standard input and output",
        default: "none",
    },
    Variable {
        name: "NVTUNE_REPLAY",
        values: "file",
        meaning: "recorded timings that answer in place of a GPU, for tests of builds",
        default: "none",
    },
    Variable {
        name: "NVTUNE_HEADER_DIR",
        values: "folder",
        meaning: "where headers and records go",
        default: "beside the object file",
    },
    Variable {
        name: "NVTUNE_FILES",
        values: "folder",
        meaning: "where file(\"x.bin\") may read besides the source's own folder",
        default: "nowhere else",
    },
    Variable { name: "NVTUNE_STRICT", values: "1", meaning: "nvtune's warnings are errors", default: "unset" },
];

const DEFAULT_BUDGET: f64 = 30.0;

const MODES: [(&str, Mode); 4] =
    [("off", Mode::Off), ("locked", Mode::Locked), ("static", Mode::Static), ("measure", Mode::Measure)];

impl Settings {
    /// Reads the variables; what is wrong with them comes back as text, and the default is used.
    pub fn new(environment: impl Fn(&str) -> Option<OsString>) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let mode = parsed(&environment, &mut problems, "NVTUNE", "off, locked, static or measure", |text| {
            MODES.iter().find(|(name, _)| *name == text).map(|(_, mode)| *mode)
        });
        let expected = format!("one of {}", Strategy::NAMES);
        let strategy = parsed(&environment, &mut problems, "NVTUNE_STRATEGY", &expected, |text| text.parse().ok());
        let budget = parsed(&environment, &mut problems, "NVTUNE_BUDGET", "a number of seconds above 0", |text| {
            text.parse::<f64>().ok().filter(|seconds| seconds.is_finite() && *seconds > 0.0)
        });
        let settings = Self {
            mode: mode.unwrap_or(Mode::Measure),
            strategy: strategy.unwrap_or(Strategy::DEFAULT),
            budget: budget.unwrap_or(DEFAULT_BUDGET),
            header_folder: set(&environment, "NVTUNE_HEADER_DIR").map(PathBuf::from),
            files: set(&environment, "NVTUNE_FILES").map(PathBuf::from),
            strict: set(&environment, "NVTUNE_STRICT").is_some_and(|value| value != "0"),
        };
        (settings, problems)
    }
}

/// The value of a variable that is set and not empty.
fn set(environment: &impl Fn(&str) -> Option<OsString>, name: &str) -> Option<OsString> {
    environment(name).filter(|value| !value.is_empty())
}

/// Reads one variable; a value that `parse` does not take becomes a problem.
fn parsed<T>(
    environment: &impl Fn(&str) -> Option<OsString>,
    problems: &mut Vec<String>,
    name: &str,
    expected: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Option<T> {
    let value = set(environment, name)?.to_string_lossy().into_owned();
    let found = parse(&value);
    if found.is_none() {
        problems.push(format!("{name}='{value}' is not understood; expected {expected}"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> (Settings, Vec<String>) {
        Settings::new(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value)))
    }

    #[test]
    fn values_are_read_and_bad_ones_are_named() {
        let (settings, problems) = read(&[("NVTUNE", "static"), ("NVTUNE_STRATEGY", "pos"), ("NVTUNE_BUDGET", "2.5")]);
        assert_eq!((settings.mode, settings.strategy, settings.budget), (Mode::Static, Strategy::Pos, 2.5));
        assert_eq!(problems, [""; 0]);
        let (settings, problems) = read(&[("NVTUNE", "on"), ("NVTUNE_STRATEGY", "best"), ("NVTUNE_BUDGET", "-1")]);
        assert_eq!((settings.mode, settings.strategy, settings.budget), (Mode::Measure, Strategy::Refit, 30.0));
        assert_eq!(
            problems,
            [
                "NVTUNE='on' is not understood; expected off, locked, static or measure",
                "NVTUNE_STRATEGY='best' is not understood; expected one of refit, es, ros, pos, posf, ryoo",
                "NVTUNE_BUDGET='-1' is not understood; expected a number of seconds above 0",
            ]
        );
    }
}
