//! What the environment says: nvtune's own options (`NVTUNE_*`), read once and checked.

mod kernel_selection;
mod strategy;

pub use kernel_selection::KernelSelection;
pub use strategy::Strategy;

use super::process;
use crate::diag::diagnostic::nearest;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How far nvtune goes for a marked kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Every call is handed to nvcc.
    Off,
    /// Lock file and cache, else the baseline.
    Locked,
    /// Lock file and cache, else the model's choice.
    Static,
    /// Lock file and cache; else candidates are timed where there is a GPU; else as `Static`.
    Measure,
    /// Nothing is tuned: the program records the launches of marked kernels.
    Capture,
}

/// Which results of earlier builds are taken for what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those of lock file and cache.
    All,
    /// The same without the lock file's predictions: `nvtune tune` on a machine that can do
    /// better.
    Timed,
    /// None.
    Nothing,
}

/// The settings of one run.
#[derive(Clone, Debug)]
pub struct Settings {
    pub mode: Mode,
    pub strategy: Strategy,
    /// Seconds for compiling and timing one kernel's variants.
    pub budget: f64,
    /// Configurations of one kernel that are timed at most.
    pub candidates: usize,
    /// Folder for the headers; next to the object where unset.
    pub header_folder: Option<PathBuf>,
    /// Whether dependency files name the header.
    pub header_in_depfile: bool,
    /// Where recordings are; next to the object where unset.
    pub captures: Option<PathBuf>,
    /// Kernels that count as marked without a comment.
    pub kernels: KernelSelection,
    /// Folder outside the sources' own that buffers may be read from.
    pub files: Option<PathBuf>,
    /// Folder of the cache; none where neither `NVTUNE_CACHE_DIR` nor a home is known, or the
    /// cache's size is 0.
    pub cache: Option<PathBuf>,
    /// Bytes that the cache may take.
    pub cache_bytes: u64,
    /// The lock file, where it is named.
    pub lock: Option<PathBuf>,
    pub trust: Trust,
    /// Winners are run under compute-sanitizer.
    pub sanitize: bool,
    /// Warnings are errors.
    pub strict: bool,
    /// A terminal shows what is being tuned.
    pub progress: bool,
    /// The command before the measuring process.
    pub runner: Option<OsString>,
    /// How long to wait for a GPU that others measure on.
    pub wait: Option<Duration>,
    /// A file of recorded timings that answers in place of a GPU.
    pub replay: Option<PathBuf>,
}

/// One environment variable, for the help and the man page.
pub struct Variable {
    pub name: &'static str,
    pub values: &'static str,
    pub meaning: &'static str,
    pub default: &'static str,
}

/// Every variable that nvtune reads.
pub const VARIABLES: [Variable; 21] = [
    Variable {
        name: "NVTUNE",
        values: "off, locked, static, measure, capture",
        meaning: "off: hand every call to nvcc; capture: build a program that records the launches of marked kernels, for the builds after it; locked: lock file and cache only, else the baseline; static: as locked, else the model chooses; measure: as locked, else time candidates on the GPU, or choose by the model where there is none",
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
    Variable {
        name: "NVTUNE_BUDGET",
        values: "seconds",
        meaning: "for one kernel: compiling its variants, in half of them at most, and timing them, a third kept for the paired rounds of the fastest",
        default: "30",
    },
    Variable {
        name: "NVTUNE_CANDIDATES",
        values: "number",
        meaning: "how many configurations of a kernel are timed at most, the baseline among them; up to as many that are refused do not count",
        default: "as many as the strategy sends",
    },
    Variable {
        name: "NVTUNE_RUNNER",
        values: "command",
        meaning: "put before the measuring process, such as 'ssh gpu01'; it must carry standard input and output",
        default: "none",
    },
    Variable {
        name: "NVTUNE_WAIT",
        values: "seconds",
        meaning: "how long to wait for a GPU that another nvtune measures on, or for a runner to start; the model chooses where that is not enough",
        default: "600",
    },
    Variable {
        name: "NVTUNE_PATIENCE",
        values: "seconds",
        meaning: "how long a tool of the compiler may take that nvtune runs to look at variants; what hangs is stopped, and its kernels are built as nvcc builds them",
        default: "900",
    },
    Variable {
        name: "NVTUNE_REPLAY",
        values: "file",
        meaning: "recorded timings that answer in place of a GPU, for tests of builds",
        default: "none",
    },
    Variable {
        name: "NVTUNE_CACHE_DIR",
        values: "folder",
        meaning: "where results are kept between builds",
        default: "$XDG_CACHE_HOME/nvtune, else ~/.cache/nvtune",
    },
    Variable {
        name: "NVTUNE_CACHE_SIZE",
        values: "bytes, with K, M or G",
        meaning: "how much the cache may take; 0: no cache",
        default: "1G",
    },
    Variable {
        name: "NVTUNE_LOCK",
        values: "path",
        meaning: "the lock file",
        default: "the nearest nvtune.lock above the source file",
    },
    Variable {
        name: "NVTUNE_HEADER_DIR",
        values: "folder",
        meaning: "where headers and records go",
        default: "next to the object file",
    },
    Variable {
        name: "NVTUNE_HEADER_IN_DEPFILE",
        values: "0, 1",
        meaning: "whether dependency files (-MD) name the header; 0: for a build that declares it as an output of the compile, as Ninja's `build k.o | k.tune.h: cu k.cu`",
        default: "1",
    },
    Variable {
        name: "NVTUNE_CAPTURE_DIR",
        values: "folder",
        meaning: "where programs built with NVTUNE=capture write recordings, and builds look for them",
        default: "next to the object file",
    },
    Variable {
        name: "NVTUNE_CAPTURE_BYTES",
        values: "bytes, with K, M or G",
        meaning: "how much a program built with NVTUNE=capture may record of each kernel",
        default: "1G",
    },
    Variable {
        name: "NVTUNE_KERNELS",
        values: "regular expression, all",
        meaning: "kernels that are treated as if `//@tune` stood above them: those whose whole name it matches; all: those with 1% or more of the recorded work. Of a template, each recorded instance",
        default: "none",
    },
    Variable {
        name: "NVTUNE_FILES",
        values: "folder",
        meaning: "where file(\"x.bin\") may read besides the source's own folder",
        default: "nowhere else",
    },
    Variable {
        name: "NVTUNE_SANITIZE",
        values: "1",
        meaning: "run each winner under compute-sanitizer's memcheck, and refuse it where that finds something",
        default: "unset",
    },
    Variable {
        name: "NVTUNE_PROGRESS",
        values: "0, 1",
        meaning: "whether a terminal shows a line while kernels are tuned; without a terminal and under `make -s` or `make -j` there is none",
        default: "1",
    },
    Variable { name: "NVTUNE_STRICT", values: "1", meaning: "nvtune's warnings are errors", default: "unset" },
];

const DEFAULT_BUDGET: f64 = 30.0;

const DEFAULT_CACHE_BYTES: u64 = 1 << 30;

const MODES: [(&str, Mode); 5] = [
    ("off", Mode::Off),
    ("locked", Mode::Locked),
    ("static", Mode::Static),
    ("measure", Mode::Measure),
    ("capture", Mode::Capture),
];

/// Whether every call is nvcc's; a call that is needs no more of the settings than this.
pub fn is_off(environment: impl Fn(&str) -> Option<OsString>) -> bool {
    environment("NVTUNE").is_some_and(|value| MODES.iter().any(|(name, mode)| *mode == Mode::Off && value == *name))
}

impl Settings {
    /// Reads the variables; what is wrong with them comes back as text, and the default is
    /// used.
    pub fn new(environment: impl Fn(&str) -> Option<OsString>) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let mode = parsed(&environment, &mut problems, "NVTUNE", "off, locked, static, measure or capture", |text| {
            MODES.iter().find(|(name, _)| *name == text).map(|(_, mode)| *mode)
        });
        let expected = format!("one of {}", Strategy::NAMES);
        let strategy = parsed(&environment, &mut problems, "NVTUNE_STRATEGY", &expected, |text| text.parse().ok());
        let budget = parsed(&environment, &mut problems, "NVTUNE_BUDGET", "a number of seconds above 0", |text| {
            text.parse::<f64>().ok().filter(|seconds| seconds.is_finite() && *seconds > 0.0)
        });
        let candidates = parsed(&environment, &mut problems, "NVTUNE_CANDIDATES", "a number above 1", |text| {
            text.parse::<usize>().ok().filter(|count| *count > 1)
        });
        let wait = parsed(&environment, &mut problems, "NVTUNE_WAIT", "a number of seconds", |text| {
            text.parse::<f64>().ok().filter(|seconds| (0.0..1e9).contains(seconds))
        });
        parsed(&environment, &mut problems, "NVTUNE_PATIENCE", "a number of seconds above 0", process::parse_seconds);
        let cache_bytes =
            parsed(&environment, &mut problems, "NVTUNE_CACHE_SIZE", "a number of bytes, such as 500M", bytes);
        let cache_bytes = cache_bytes.unwrap_or(DEFAULT_CACHE_BYTES);
        let kernels = KernelSelection::new(&environment).unwrap_or_else(|problem| {
            problems.push(problem);
            KernelSelection::Nothing
        });
        let settings = Self {
            cache: cache_folder(&environment).filter(|_| cache_bytes > 0),
            cache_bytes,
            lock: set(&environment, "NVTUNE_LOCK").map(PathBuf::from),
            trust: Trust::All,
            mode: mode.unwrap_or(Mode::Measure),
            strategy: strategy.unwrap_or_default(),
            budget: budget.unwrap_or(DEFAULT_BUDGET),
            candidates: candidates.unwrap_or(usize::MAX),
            header_folder: set(&environment, "NVTUNE_HEADER_DIR").map(PathBuf::from),
            header_in_depfile: set(&environment, "NVTUNE_HEADER_IN_DEPFILE").is_none_or(|value| value != "0"),
            captures: set(&environment, "NVTUNE_CAPTURE_DIR").map(PathBuf::from),
            kernels,
            files: set(&environment, "NVTUNE_FILES").map(PathBuf::from),
            sanitize: set(&environment, "NVTUNE_SANITIZE").is_some_and(|value| value != "0"),
            strict: set(&environment, "NVTUNE_STRICT").is_some_and(|value| value != "0"),
            progress: set(&environment, "NVTUNE_PROGRESS").is_none_or(|value| value != "0"),
            runner: set(&environment, "NVTUNE_RUNNER"),
            wait: wait.map(Duration::from_secs_f64),
            replay: set(&environment, "NVTUNE_REPLAY").map(PathBuf::from),
        };
        (settings, problems)
    }
}

/// What the names of nvtune's variables begin with, but for `NVTUNE` itself.
const PREFIX: &str = "NVTUNE_";

/// Beginnings of variables that nvtune sets for processes that it starts, and that its tests
/// and benchmarks read.
const INTERNAL: [&str; 8] = [
    "NVTUNE_STARTED_WRAPPERS",
    "NVTUNE_TEST_",
    "NVTUNE_BINARY",
    "NVTUNE_EVAL_BINARY",
    "NVTUNE_PROGRAM",
    "NVTUNE_PROJECTS",
    "NVTUNE_TOOLS",
    "NVTUNE_UPDATE_FIXTURES",
];

/// Returns a warning for each variable of nvtune's prefix that it does not read, in the order
/// of their names.
pub fn unknown_variables(environment: impl Iterator<Item = (OsString, OsString)>) -> Vec<String> {
    let names = environment.filter_map(|(name, _)| name.into_string().ok());
    let is_own = |name: &String| VARIABLES.iter().any(|variable| variable.name == name);
    let is_internal = |name: &String| INTERNAL.iter().any(|known| name.starts_with(known));
    let mut unknown: Vec<String> =
        names.filter(|name| name.starts_with(PREFIX) && !is_own(name) && !is_internal(name)).collect();
    unknown.sort();
    let known = VARIABLES.iter().filter_map(|variable| variable.name.strip_prefix(PREFIX));
    let warning = |name: String| match nearest(&name[PREFIX.len()..], known.clone()) {
        Some(near) => format!("{name} is no variable of nvtune and is ignored; did you mean {PREFIX}{near}?"),
        None => format!("{name} is no variable of nvtune and is ignored; `nvtune --help` lists them"),
    };
    unknown.into_iter().map(warning).collect()
}

/// The value of a variable that is set and not empty.
fn set(environment: &impl Fn(&str) -> Option<OsString>, name: &str) -> Option<OsString> {
    environment(name).filter(|value| !value.is_empty())
}

/// Where the cache is (XDG Base Directory Specification: a relative path does not count).
fn cache_folder(environment: &impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| set(environment, name).map(PathBuf::from).filter(|path| path.is_absolute());
    let named = set(environment, "NVTUNE_CACHE_DIR").map(PathBuf::from);
    let shared = || absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    named.or_else(|| Some(shared()?.join("nvtune")))
}

/// A number of bytes: `500M`.
pub fn bytes(text: &str) -> Option<u64> {
    let units = [("K", 10), ("M", 20), ("G", 30)];
    let (digits, shift) =
        units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift))).unwrap_or((text, 0));
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// At least these bytes, as [`bytes`] reads them: `2G` for 1.3 GiB.
pub fn bytes_setting(bytes: u64) -> String {
    let units = [("G", 30), ("M", 20), ("K", 10)];
    let unit = units.into_iter().find(|(_, shift)| bytes > 1 << shift);
    unit.map_or_else(|| "1K".to_owned(), |(unit, shift)| format!("{}{unit}", bytes.div_ceil(1 << shift)))
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

    #[test]
    fn setting_of_bytes_has_room_for_them() {
        for (needed, setting) in
            [(12, "1K"), (12_000, "12K"), (1 << 20, "1024K"), ((1 << 30) + (300 << 20), "2G"), (2 << 30, "2G")]
        {
            assert_eq!(bytes_setting(needed), setting);
            assert!(bytes(setting) >= Some(needed));
        }
    }

    #[test]
    fn the_cache_is_where_the_environment_says() {
        let none: Option<&str> = None;
        for (pairs, folder, size) in [
            (&[][..], none, 1 << 30),
            (&[("HOME", "/h")], Some("/h/.cache/nvtune"), 1 << 30),
            (&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")], Some("/x/nvtune"), 1 << 30),
            (&[("HOME", "/h"), ("XDG_CACHE_HOME", "x")], Some("/h/.cache/nvtune"), 1 << 30),
            (&[("NVTUNE_CACHE_DIR", "c"), ("NVTUNE_CACHE_SIZE", "20M")], Some("c"), 20 << 20),
            (&[("HOME", "/h"), ("NVTUNE_CACHE_SIZE", "0")], None, 0),
        ] {
            let (settings, problems) = read(pairs);
            assert_eq!((settings.cache, settings.cache_bytes), (folder.map(PathBuf::from), size), "{pairs:?}");
            assert_eq!(problems, [""; 0]);
        }
        let (_, problems) = read(&[("NVTUNE_CACHE_SIZE", "much")]);
        assert_eq!(problems, ["NVTUNE_CACHE_SIZE='much' is not understood; expected a number of bytes, such as 500M"]);
    }

    #[test]
    fn unknown_variables_are_named_with_the_nearest_known_one() {
        let unknown =
            |names: &[&str]| unknown_variables(names.iter().map(|name| (OsString::from(name), OsString::from("1"))));
        for (name, said) in [
            ("NVTUNE_STRCIT", "did you mean NVTUNE_STRICT?"),
            ("NVTUNE_BUGDET", "did you mean NVTUNE_BUDGET?"),
            ("NVTUNE_CACHE", "did you mean NVTUNE_CACHE_DIR?"),
            ("NVTUNE_FROBNICATE", "`nvtune --help` lists them"),
        ] {
            assert_eq!(unknown(&[name]), [format!("{name} is no variable of nvtune and is ignored; {said}")]);
        }
        let known: Vec<&str> = VARIABLES.iter().map(|variable| variable.name).collect();
        assert_eq!(unknown(&known), [""; 0]);
        assert_eq!(unknown(&["NVTUNED", "PATH", "NVTUNE_STARTED_WRAPPERS", "NVTUNE_TEST_FULL"]), [""; 0]);
    }

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
                "NVTUNE='on' is not understood; expected off, locked, static, measure or capture",
                "NVTUNE_STRATEGY='best' is not understood; expected one of refit, es, ros, pos, posf, ryoo",
                "NVTUNE_BUDGET='-1' is not understood; expected a number of seconds above 0",
            ]
        );
    }
}
