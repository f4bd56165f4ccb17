//! `nvtune doctor`: what a build on this machine would use, part by part, and the command that
//! mends what is missing.

use super::wrap::{columns, wrapped};
use crate::diag::{MessageCode, in_units};
use crate::gpu::Device;
use crate::measure::{Error, Measurer, Options, Process};
use crate::nvcc::{RealNvcc, is_nvtune, on_path};
use crate::put_on;
use crate::record::lock::{is_trusted, of_source};
use crate::record::{Cache, LOCK_FILE, Lock};
use crate::settings::{Settings, VARIABLES, unknown_variables};
use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Blanks before what belongs to the line above: a remedy, or the rest of a long line.
const INDENT: usize = 8;

/// What was found of one part.
#[derive(Debug)]
struct Finding {
    part: &'static str,
    text: String,
    /// The commands that mend it, or that would give more, each with what it is for.
    remedies: Vec<String>,
    /// Whether a build cannot go on, or loses its results.
    fails: bool,
}

impl Finding {
    fn good(part: &'static str, text: impl Into<String>) -> Self {
        Self { part, text: text.into(), remedies: Vec::new(), fails: false }
    }

    fn bad(part: &'static str, text: impl Into<String>) -> Self {
        Self { fails: true, ..Self::good(part, text) }
    }

    /// Adds what to do about it.
    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedies.push(remedy.into());
        self
    }

    fn line(&self) -> String {
        let remedies: String = self.remedies.iter().map(|remedy| format!("{:INDENT$}{remedy}\n", "")).collect();
        format!("{:7} {}\n{remedies}", self.part, self.text)
    }
}

/// Prints what is found; the exit code tells whether a build could go on, and keep its results.
pub fn run() -> u8 {
    let (settings, problems) = Settings::new(|name| std::env::var_os(name));
    let nvcc = RealNvcc::find(None, |name| std::env::var_os(name));
    let mut findings = vec![own_program()];
    match &nvcc {
        Ok(nvcc) => findings.extend(check_toolkit(nvcc)),
        Err(error) => findings.push(
            Finding::bad("nvcc", MessageCode::NvccNotFound.tag(error))
                .remedy("mend: export NVTUNE_NVCC=/usr/local/cuda/bin/nvcc, or the path of yours"),
        ),
    }
    findings.extend(check_gpu(&settings, nvcc.as_ref().ok().and_then(RealNvcc::release)));
    findings.push(first_nvcc());
    findings.push(check_cache(&settings));
    findings.push(check_lock(&settings));
    findings.extend(check_variables());
    let invalid = problems.into_iter().map(|problem| MessageCode::InvalidSetting.tag(problem));
    let unknown = unknown_variables(std::env::vars_os()).into_iter();
    let problems = invalid.chain(unknown.map(|problem| MessageCode::UnknownVariable.tag(problem)));
    findings.extend(problems.map(|problem| {
        let name =
            problem.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).find(|word| word.starts_with("NVTUNE"));
        let remedy = format!("mend: unset {}", name.unwrap_or("NVTUNE"));
        Finding::bad("problem", problem).remedy(remedy)
    }));
    let text: String = findings.iter().map(Finding::line).collect();
    put_on!("{}", wrapped(&text, INDENT, columns()));
    u8::from(findings.iter().any(|finding| finding.fails))
}

fn own_program() -> Finding {
    Finding::good("nvtune", env!("CARGO_PKG_VERSION"))
}

/// The real nvcc, its release, and the tools that nvtune starts itself.
fn check_toolkit(nvcc: &RealNvcc) -> Vec<Finding> {
    let mut findings = vec![Finding::good("nvcc", nvcc.path.display().to_string())];
    findings.push(match nvcc.release() {
        Some(release) => Finding::good("toolkit", release),
        None => Finding::bad("toolkit", "unknown: nvcc --version says nothing")
            .remedy(format!("look: {} --version", nvcc.path.display())),
    });
    let bin = nvcc.path.parent().unwrap_or(Path::new("/"));
    let tools = [("ptxas", bin.join("ptxas")), ("cicc", bin.join("../nvvm/bin/cicc"))];
    // A wrapper, or a package that splits the toolkit, has them elsewhere; nvcc alone knows where.
    if bin.join("nvcc.profile").is_file() {
        for (name, path) in tools.iter().filter(|(_, path)| !path.is_file()) {
            let text = format!("{name} is missing: '{}' is not there", path.display());
            findings.push(
                Finding::bad("toolkit", text)
                    .remedy("mend: install the toolkit's compiler (packages cuda-nvcc, cuda-nvvm)"),
            );
        }
    }
    findings
}

/// The GPU and its driver, by the measuring process of a build: behind the runner, if one is set.
fn check_gpu(settings: &Settings, release: Option<String>) -> Vec<Finding> {
    let runner = settings.runner.as_ref().map(|runner| runner.to_string_lossy().into_owned());
    match Options::new(settings).and_then(Process::start) {
        Ok(process) => {
            let device = process.device();
            let text = format!("{}, sm_{}, {} multiprocessors", device.name, device.compute_capability, device.sms);
            let runner = runner.map(|runner| Finding::good("runner", format!("`{runner}` answers")));
            [Finding::good("gpu", text), check_driver(device, release.as_deref())].into_iter().chain(runner).collect()
        }
        Err(error) => {
            let finding = Finding::good("gpu", format!("none is used: {}", error.code().tag(&error)));
            let remedy = match (&error, &runner) {
                (Error::NoDevice(_), None) => {
                    "to time on another machine: export NVTUNE_RUNNER='ssh HOST'; look: nvidia-smi -L".to_owned()
                }
                (Error::Busy { .. }, _) => "look: nvidia-smi".to_owned(),
                (_, Some(runner)) => format!("look: {runner} nvtune doctor"),
                (_, None) => "look: nvidia-smi -L".to_owned(),
            };
            vec![finding.remedy(remedy)]
        }
    }
}

/// The driver, which must be of the toolkit's major release at least.
fn check_driver(device: &Device, release: Option<&str>) -> Finding {
    let (major, minor) = (device.driver / 1000, device.driver % 1000 / 10);
    let text = format!("CUDA {major}.{minor}");
    let toolkit: Option<u32> = release.and_then(|release| release.split('.').next()?.trim().parse().ok());
    match toolkit.filter(|&toolkit| device.driver > 0 && toolkit > major) {
        Some(toolkit) => Finding::bad("driver", format!("{text}: older than the toolkit, whose code it cannot load"))
            .remedy(format!("mend: install a driver for CUDA {toolkit}, or the package cuda-compat-{toolkit}-0")),
        None => Finding::good("driver", text),
    }
}

/// What a build finds that calls `nvcc`.
fn first_nvcc() -> Finding {
    let shims = "for builds that call nvcc: nvtune shims ~/cuda-tuned, then export PATH=~/cuda-tuned/bin:$PATH";
    match on_path(OsStr::new("nvcc")) {
        Some(path) if is_nvtune(&path) => Finding::good("PATH", format!("nvcc is nvtune: {}", path.display())),
        Some(_) => Finding::good("PATH", "nvcc is NVIDIA's: builds call nvtune by `nvtune nvcc`").remedy(shims),
        None => Finding::good("PATH", "has no nvcc: builds call nvtune by `nvtune nvcc`").remedy(shims),
    }
}

fn check_cache(settings: &Settings) -> Finding {
    let Some(folder) = &settings.cache else {
        return Finding::good("cache", "none: every build tunes again")
            .remedy("to have one: unset NVTUNE_CACHE_SIZE, and set HOME or NVTUNE_CACHE_DIR");
    };
    let shown = folder.display();
    let own = rustix::process::geteuid().as_raw();
    if let Some(owner) = nearest_existing(folder).and_then(|path| path.metadata().ok()).map(|data| data.uid())
        && owner != own
        && own != 0
    {
        return Finding::bad("cache", format!("'{shown}' belongs to user {owner}, and you are {own}"))
            .remedy(format!("mend: sudo chown -R {own} '{shown}', or export NVTUNE_CACHE_DIR=~/.cache/nvtune"));
    }
    if let Err(problem) = is_writable(folder) {
        return Finding::bad("cache", format!("'{shown}' cannot be written: {problem}"))
            .remedy(format!("mend: chmod u+rwx '{shown}', or export NVTUNE_CACHE_DIR to another folder"));
    }
    let cache = Cache::new(folder, settings.cache_bytes);
    let contents = cache.contents();
    let size = format!("{} of {}", in_units(contents.bytes), in_units(cache.limit()));
    Finding::good("cache", format!("{shown}: {} entries, {size}", contents.entries))
}

/// The folder, or the nearest one above it that is there.
fn nearest_existing(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().find(|path| path.exists()).map(Path::to_path_buf)
}

/// Tries to make a file; a folder that is not there yet is tried by the one above.
fn is_writable(folder: &Path) -> Result<(), String> {
    let place = nearest_existing(folder).ok_or("no folder above it is there")?;
    tempfile::Builder::new().prefix(".nvtune-").tempfile_in(place).map(drop).map_err(|error| error.kind().to_string())
}

/// The lock file of sources in this folder.
fn check_lock(settings: &Settings) -> Finding {
    let place = Path::new(".").join("source.cu");
    let Some(path) = of_source(settings.lock.as_deref(), &place) else {
        return Finding::good("lock", format!("no {LOCK_FILE} here or above"))
            .remedy("to pin winners once a build has found them: nvtune lock");
    };
    let shown = path.display();
    if settings.lock.is_none() && !is_trusted(&path, Path::new(".")) {
        return Finding::bad(
            "lock",
            MessageCode::LockForeign.tag(format!("'{shown}' belongs to another user and is not used")),
        )
        .remedy(format!("mend: sudo chown $USER '{shown}', or export NVTUNE_LOCK='{shown}'"));
    }
    match Lock::read(&path) {
        Ok(lock) if lock.problems.is_empty() => {
            Finding::good("lock", format!("{shown}: {} entries", lock.entries.len()))
                .remedy("to compare it with the last build: nvtune lock --check")
        }
        Ok(lock) => {
            let text = format!("'{shown}': {} entries cannot be used", lock.problems.len());
            Finding::bad("lock", MessageCode::LockEntry.tag(text)).remedy("mend: nvtune lock --update")
        }
        Err(error) => Finding::bad("lock", MessageCode::LockNotRead.tag(format!("'{shown}': {error}")))
            .remedy(format!("mend: restore '{shown}', or remove it and build, then nvtune lock")),
    }
}

/// The variables of nvtune that are set.
fn check_variables() -> Vec<Finding> {
    let set = VARIABLES.iter().filter_map(|variable| Some((variable.name, std::env::var_os(variable.name)?)));
    set.map(|(name, value)| Finding::good("set", format!("{name}={}", value.to_string_lossy()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(driver: u32) -> Device {
        Device { driver, ..Device::default() }
    }

    #[test]
    fn driver_older_than_the_toolkit_fails_with_a_remedy() {
        let old = check_driver(&device(12040), Some("13.0, V13.0.88"));
        assert!(old.fails && old.line().contains("mend: install a driver for CUDA 13"), "{old:?}");
        for (version, release) in [(13000, "13.2"), (13020, "12.4"), (0, "13.0")] {
            assert!(!check_driver(&device(version), Some(release)).fails, "{version} {release}");
        }
        assert!(!check_driver(&device(12040), None).fails);
    }

    #[test]
    fn folder_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(is_writable(&folder.path().join("not/yet")), Ok(()));
        let file = folder.path().join("file");
        std::fs::write(&file, "").expect("written");
        assert!(is_writable(&file).is_err());
    }
}
