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
pub const VARIABLES: [Variable; 7] = [
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
        values: "es, ros, pos, posf, ryoo",
        meaning: "which configurations are timed",
        default: "posf",
    },
    Variable {
        name: "NVTUNE_BUDGET",
        values: "seconds",
        meaning: "GPU time for one kernel",
        default: "30",
    },
    Variable {
        name: "NVTUNE_RUNNER",
        values: "command",
        meaning: "put before the measuring process, such as 'ssh gpu01'; it must carry standard input and output",
        default: "none",
    },
    Variable {
        name: "NVTUNE_HEADER_DIR",
        values: "folder",
        meaning: "where headers and records go",
        default: "beside the object file",
    },
    Variable {
        name: "NVTUNE_STRICT",
        values: "1",
        meaning: "nvtune's warnings are errors",
        default: "unset",
    },
];

const DEFAULT_BUDGET: f64 = 30.0;

impl Settings {
    /// Reads the variables; what is wrong with them comes back as text, and the default is used.
    pub fn new(environment: impl Fn(&str) -> Option<OsString>) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let text = |name: &str| {
            environment(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty())
        };
        let mut read = |name: &str, parse: &dyn Fn(&str) -> bool, expected: &str| {
            if let Some(value) = text(name)
                && !parse(&value)
            {
                problems.push(format!("{name}='{value}' is not understood; expected {expected}"));
            }
        };
        let mode = std::cell::Cell::new(Mode::Measure);
        read(
            "NVTUNE",
            &|value| {
                let found = match value {
                    "off" => Mode::Off,
                    "locked" => Mode::Locked,
                    "static" => Mode::Static,
                    "measure" => Mode::Measure,
                    _ => return false,
                };
                mode.set(found);
                true
            },
            "off, locked, static or measure",
        );
        let strategy = std::cell::Cell::new(Strategy::Posf);
        read(
            "NVTUNE_STRATEGY",
            &|value| value.parse().map(|found| strategy.set(found)).is_ok(),
            "es, ros, pos, posf or ryoo",
        );
        let budget = std::cell::Cell::new(DEFAULT_BUDGET);
        read(
            "NVTUNE_BUDGET",
            &|value| {
                let seconds = value.parse::<f64>().ok().filter(|seconds| seconds.is_finite() && *seconds > 0.0);
                seconds.map(|seconds| budget.set(seconds)).is_some()
            },
            "a number of seconds above 0",
        );
        let settings = Self {
            mode: mode.get(),
            strategy: strategy.get(),
            budget: budget.get(),
            header_folder: environment("NVTUNE_HEADER_DIR").filter(|value| !value.is_empty()).map(PathBuf::from),
            strict: text("NVTUNE_STRICT").is_some_and(|value| value != "0"),
        };
        (settings, problems)
    }
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
        assert_eq!((settings.mode, settings.strategy, settings.budget), (Mode::Measure, Strategy::Posf, 30.0));
        assert_eq!(
            problems,
            [
                "NVTUNE='on' is not understood; expected off, locked, static or measure",
                "NVTUNE_STRATEGY='best' is not understood; expected es, ros, pos, posf or ryoo",
                "NVTUNE_BUDGET='-1' is not understood; expected a number of seconds above 0",
            ]
        );
    }
}
