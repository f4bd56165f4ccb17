//! The GPUs of this machine, as far as they can be known without opening one.

use super::replay::Recording;
use crate::settings::Settings;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

/// The GPUs that the measuring process would find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuInventory {
    /// Text that identifies the models and the driver; empty if there is no GPU.
    pub identity: String,
    /// Their models, where they can be known: not those behind a runner.
    pub models: BTreeSet<String>,
}

impl GpuInventory {
    /// Looks at settings and environment, and at what NVIDIA's kernel module shows below `proc`
    /// (`/proc/driver/nvidia`).
    pub fn detect(settings: &Settings, environment: impl Fn(&str) -> Option<OsString>, proc: &Path) -> Self {
        if let Some(replay) = &settings.replay {
            return Self::of_recording(replay);
        }
        if let Some(runner) = &settings.runner {
            return Self { identity: format!("runner {}", runner.to_string_lossy()), models: BTreeSet::new() };
        }
        if visible(environment).is_some_and(|names| names.is_empty()) {
            return Self::default();
        }
        let entries = std::fs::read_dir(proc.join("gpus")).into_iter().flatten().flatten();
        let texts = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("information")).ok());
        let models: BTreeSet<String> = texts.filter_map(|text| value(&text, "Model")).collect();
        if models.is_empty() {
            return Self::default();
        }
        let version = std::fs::read_to_string(proc.join("version")).unwrap_or_default();
        let version = version.lines().next().and_then(driver).unwrap_or_default();
        let names = models.iter().cloned().collect::<Vec<_>>().join(", ");
        Self { identity: format!("{names}; driver {version}"), models }
    }

    /// Tells whether there is a GPU to time on.
    pub fn has_gpu(&self) -> bool {
        !self.identity.is_empty()
    }

    fn of_recording(path: &Path) -> Self {
        let Ok(bytes) = std::fs::read(path) else { return Self::default() };
        let recording = Recording::read(path).ok();
        if recording.as_ref().is_some_and(Recording::has_no_device) {
            return Self::default();
        }
        let name = recording.map(|recording| recording.device.name).filter(|name| !name.is_empty());
        Self { identity: format!("replay {:x}", Sha256::digest(bytes)), models: name.into_iter().collect() }
    }
}

/// The GPUs that CUDA_VISIBLE_DEVICES names, up to the first that is none, as -1; `None` where
/// it is not set and all are visible (CUDA C++ Programming Guide, "CUDA Environment
/// Variables").
pub fn visible(environment: impl Fn(&str) -> Option<OsString>) -> Option<Vec<String>> {
    let names = environment("CUDA_VISIBLE_DEVICES")?;
    let names = names.to_string_lossy().split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>();
    Some(names.into_iter().take_while(|name| !name.is_empty() && !name.starts_with('-')).collect())
}

/// The value of a line `NAME: value`.
fn value(text: &str, name: &str) -> Option<String> {
    let found = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))?.trim();
    (!found.is_empty()).then(|| found.to_owned())
}

/// The driver's version in `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue
/// ...`: the first word that begins with a digit and has a point.
fn driver(line: &str) -> Option<String> {
    let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    line.split_whitespace().find(is_version).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_gpus_are_read_from_proc() {
        let proc = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = proc.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
            std::fs::write(path, text).expect("written");
        };
        let detect = |pairs: &[(&str, &str)]| {
            let find = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
            GpuInventory::detect(&Settings::new(find).0, find, proc.path())
        };
        assert_eq!(detect(&[]), GpuInventory::default());
        write(
            "version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\nGCC version: 12\n",
        );
        for bus in ["0000:01:00.0", "0000:02:00.0"] {
            write(&format!("gpus/{bus}/information"), "Model: \t\t NVIDIA H200\nIRQ:   \t\t 94\nGPU UUID: \t GPU-1\n");
        }
        let models = BTreeSet::from(["NVIDIA H200".to_owned()]);
        let found = GpuInventory { identity: "NVIDIA H200; driver 580.159.04".to_owned(), models };
        assert_eq!(detect(&[]), found);
        assert_eq!(detect(&[("CUDA_VISIBLE_DEVICES", "1")]), found);
        assert_eq!(detect(&[("CUDA_VISIBLE_DEVICES", "GPU-1, -1")]), found);
        for hidden in ["", "-1", "-1,0"] {
            assert_eq!(detect(&[("CUDA_VISIBLE_DEVICES", hidden)]), GpuInventory::default(), "{hidden}");
        }
        assert_eq!(detect(&[("NVTUNE_RUNNER", "ssh gpu01")]).identity, "runner ssh gpu01");
        write("recorded.json", r#"{"device": {"name": "NVIDIA A100"}, "entries": []}"#);
        let replay = proc.path().join("recorded.json");
        let recorded = detect(&[("NVTUNE_REPLAY", replay.to_str().expect("text"))]);
        assert!(recorded.identity.starts_with("replay "), "{recorded:?}");
        assert_eq!(recorded.models, BTreeSet::from(["NVIDIA A100".to_owned()]));
        write("recorded.json", r#"{"start": "no-device", "entries": []}"#);
        assert_eq!(detect(&[("NVTUNE_REPLAY", replay.to_str().expect("text"))]), GpuInventory::default());
    }
}
