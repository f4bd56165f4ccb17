//! A call of nvcc from argv to objects: handed over where nothing is marked, else tuned and
//! then built by nvcc itself.
//!
//! [`run`] and `Build::compile` are the table of contents: `decisions.rs` chooses winners,
//! `final_build.rs` builds with them, and `outputs.rs` writes headers and records.

use super::build::{Build, hand_over};
use super::call_cache::CallLookup;
use super::marked_source;
use super::marked_source::{MarkedSource, MarkedSources};
use super::tuning::Tuning;
use crate::diag::console::Console;
use crate::diag::{FATAL, MessageCode};
use crate::emit::Header;
use crate::nvcc::{Dryrun, Invocation, LaunchedCall, MarkedFile, NotFound, RealNvcc, STARTED_WRAPPERS, on_path};
use crate::process;
use crate::put;
use crate::record::result_store::Results;
use crate::record::{Record, WrittenFiles};
use crate::settings::{KernelSelection, Mode, Settings, Trust, is_off, unknown_variables};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Runs as nvcc; the call's nvcc is what nvtune was called by, or the compiler named in `nvtune
/// /path/nvcc ...`. Comes back only where nvcc was not given the process.
pub fn run(LaunchedCall { launcher, nvcc: name, arguments }: LaunchedCall<'_>) -> u8 {
    let environment = |name: &str| std::env::var_os(name);
    let mut nvcc = match RealNvcc::find(Some(name), environment) {
        Ok(nvcc) => nvcc,
        Err(error) => {
            Console::new(false).fatal(MessageCode::NvccNotFound, error);
            return FATAL;
        }
    };
    nvcc.launcher = launcher.map(|launcher| on_path(launcher).unwrap_or_else(|| launcher.into()));
    if let Some(passed) = nvcc.started_wrappers(std::env::var_os(STARTED_WRAPPERS)) {
        // SAFETY: this process has no other thread yet.
        unsafe { std::env::set_var(STARTED_WRAPPERS, passed) };
    }
    // Nothing is done before this that a call without marked sources has no need of.
    let invocation = Invocation::under(arguments, environment);
    if is_off(environment) {
        let reads_header = invocation.is_ok_and(|invocation| marked_source::reads_header(&invocation));
        let without_header = reads_header.then(|| OsString::from(format!("-D{}", Header::OFF)));
        let arguments: Vec<OsString> = arguments.iter().cloned().chain(without_header).collect();
        return hand_over(&nvcc, &arguments, &Console::new(false));
    }
    let selection = match KernelSelection::new(environment) {
        Ok(selection) => selection,
        Err(problem) => {
            Console::new(false).fatal(MessageCode::InvalidSetting, problem);
            return FATAL;
        }
    };
    let found = invocation.map(|invocation| (MarkedSource::find(&invocation, &selection), invocation));
    let (found, invocation) = match found {
        Ok((found, invocation)) if !found.marked.is_empty() => (found, invocation),
        // What nvtune cannot read, nvcc has the better message for.
        found => {
            let console = Console::new(false);
            if let Ok((MarkedSources { nearly, unmarked, .. }, _)) = found {
                nearly.iter().for_each(|file| console.diagnostics(&file.near_misses()));
                if !selection.is_all() || Settings::new(environment).0.mode == Mode::Capture {
                    console.diagnostics(&unmarked);
                }
            }
            return hand_over(&nvcc, arguments, &console);
        }
    };
    let started = process::process_start();
    let (settings, problems) = Settings::new(environment);
    let console = Console::new(settings.strict);
    process::ignore_broken_pipes();
    process::prepare_jobs();
    process::watch_signals();
    problems.iter().for_each(|problem| console.warning(MessageCode::InvalidSetting, problem));
    let unknown = unknown_variables(std::env::vars_os());
    unknown.iter().for_each(|problem| console.warning(MessageCode::UnknownVariable, problem));
    let results = Results::new(&settings);
    let build = Build {
        console: &console,
        settings: &settings,
        nvcc: &nvcc,
        invocation: &invocation,
        started,
        results: &results,
        written: WrittenFiles::default(),
    };
    build.set_fallback(&[]);
    let MarkedSources { marked, nearly, unmarked } = found;
    let files: BTreeMap<&Path, &MarkedFile> =
        marked.iter().flat_map(|source| &source.files).chain(&nearly).map(|file| (file.path.as_path(), file)).collect();
    files.values().for_each(|file| console.diagnostics(&file.near_misses()));
    // Of all kernels, only a recording says which matter.
    if !selection.is_all() || settings.mode == Mode::Capture {
        console.diagnostics(&unmarked);
    }
    let code = build.compile(marked).unwrap_or_else(|code| code);
    console.print_end();
    code
}

/// Runs as nvcc for `nvtune /path/nvcc ...`, which must be there: another nvcc is not what was
/// asked for.
pub fn run_launched(call: LaunchedCall<'_>) -> u8 {
    if let Err(error) = RealNvcc::check_launched(call.nvcc, |name| std::env::var_os(name)) {
        Console::new(false).fatal(MessageCode::NvccNotFound, error);
        return FATAL;
    }
    run(call)
}

/// Runs as the nvcc that is found where `nvtune` was called with nvcc's arguments alone, as by
/// `make NVCC=nvtune`.
pub fn run_without_name(arguments: &[OsString]) -> u8 {
    let name = OsStr::new("nvcc");
    if let Err(NotFound::Nowhere) = RealNvcc::find(Some(name), |name| std::env::var_os(name)) {
        Console::new(false).fatal(
            MessageCode::NvccNotFound,
            "these are arguments of nvcc, but no nvcc is found: put nvcc on PATH, or set NVTUNE_NVCC",
        );
        return FATAL;
    }
    run(LaunchedCall { launcher: None, nvcc: name, arguments })
}

/// Tunes the kernels of a call of nvcc (the words of `call`, the first being nvcc) without
/// building anything, and prints the records of its sources. `anew`: whatever is known already.
/// Gives the exit code.
pub fn decide(call: &[OsString], anew: bool) -> u8 {
    let (mut settings, problems) = Settings::new(|name| std::env::var_os(name));
    settings.trust = if anew { Trust::Nothing } else { Trust::Timed };
    if matches!(settings.mode, Mode::Off | Mode::Locked | Mode::Capture) {
        settings.mode = Mode::Measure;
    }
    let console = Console::new(settings.strict);
    process::ignore_broken_pipes();
    process::prepare_jobs();
    process::watch_signals();
    problems.iter().for_each(|problem| console.warning(MessageCode::InvalidSetting, problem));
    let results = Results::new(&settings);
    let decided = || -> Result<Vec<Record>, String> {
        let (name, arguments) = call.split_first().ok_or("no call of nvcc is given")?;
        let nvcc = RealNvcc::find(Some(name), |name| std::env::var_os(name)).map_err(|error| error.to_string())?;
        let invocation = marked_source::read(arguments).ok_or("the call of nvcc cannot be understood")?;
        let build = Build {
            console: &console,
            settings: &settings,
            nvcc: &nvcc,
            invocation: &invocation,
            started: process::process_start(),
            results: &results,
            written: WrittenFiles::default(),
        };
        build.decide()
    };
    let text = decided().and_then(|records| serde_json::to_string(&records).map_err(|error| error.to_string()));
    console.print_end();
    match text {
        Ok(text) => put!("{text}"),
        Err(problem) => console.fatal(MessageCode::CallNotRead, problem),
    }
    console.failure().unwrap_or(0)
}

impl Build<'_> {
    /// Takes the marked sources of a call from their comments to objects. Returns the exit
    /// code, as an error where the call ends before the final build.
    fn compile(&self, marked: Vec<MarkedSource>) -> Result<u8, u8> {
        let mut tunings = self.annotate(marked)?;
        if self.builds_as_nvcc(&tunings) {
            return Ok(self.plain());
        }
        self.set_fallback(&tunings);
        let folder = self.header_folder()?;
        if self.settings.mode == Mode::Capture {
            let programs = self.capture(&mut tunings)?;
            self.console.failure().map_or(Ok(()), Err)?;
            return Ok(self.build((&programs, None), &folder, tunings, None));
        }
        let warm = self.warm(&tunings);
        let found = warm.as_ref().and_then(CallLookup::find);
        let (programs, started) = match found.and_then(|snapshot| Some((self.programs(&snapshot)?, snapshot))) {
            Some((programs, snapshot)) => {
                self.recall(snapshot, &mut tunings);
                (programs, None)
            }
            None => self.tune(&mut tunings, warm.as_ref())?,
        };
        self.console.failure().map_or(Ok(()), Err)?;
        Ok(self.build((&programs, started), &folder, tunings, warm.as_ref()))
    }

    /// Reads the tuning comments of every marked file; all errors are printed before giving up.
    fn annotate(&self, marked: Vec<MarkedSource>) -> Result<Vec<Tuning>, u8> {
        let mut tunings = Vec::new();
        for mut source in marked {
            self.console.compiling(&source.name());
            let (mut annotations, mut problems) = self.annotations(&source);
            if !problems.is_empty()
                && let Ok(dryrun) = Dryrun::ask(&self.nvcc.path, &self.invocation.arguments)
                && source.leave_out_uncompiled(&dryrun)
            {
                (annotations, problems) = self.annotations(&source);
            }
            source.leave_out_unused(&mut annotations);
            // What makes no machine code that could be tuned needs no recording.
            if self.settings.mode != Mode::Capture && self.untunable().is_none() {
                if problems.is_empty()
                    && self.may_lack_recordings(&source, &annotations)
                    && let Ok(dryrun) = Dryrun::ask(&self.nvcc.path, &self.invocation.arguments)
                    && source.leave_out_uncompiled(&dryrun)
                {
                    (annotations, problems) = self.annotations(&source);
                    source.leave_out_unused(&mut annotations);
                }
                self.apply_recordings(&source, &mut annotations);
            }
            self.console.diagnostics(&problems);
            self.console.diagnostics(&source.without_macros(&annotations));
            self.console.diagnostics(&source.misspelled_headers());
            tunings.push(Tuning::new(source, annotations));
        }
        match self.console.failure() {
            Some(code) => Err(code),
            None => Ok(tunings),
        }
    }

    /// Tells whether nvcc alone does what the call asks: no kernel is left to tune, or nothing
    /// of the result stays.
    fn builds_as_nvcc(&self, tunings: &[Tuning]) -> bool {
        // `-o /dev/null` asks whether a source compiles, and no header belongs in /dev.
        let is_device = |output: &Path| output.exists() && !output.is_file();
        tunings.iter().all(|tuning| tuning.annotations.is_empty())
            || self.invocation.output.as_deref().is_some_and(is_device)
    }

    /// Tunes and builds nothing; returns the records of the marked sources.
    fn decide(&self) -> Result<Vec<Record>, String> {
        let unread = |_| "its tuning comments cannot be read".to_owned();
        let mut tunings =
            self.annotate(MarkedSource::find(self.invocation, &self.settings.kernels).marked).map_err(unread)?;
        let dryrun = Dryrun::ask(&self.nvcc.path, &self.invocation.arguments).map_err(|error| error.to_string())?;
        if self.warn_untunable(&tunings, &dryrun) {
            return Ok(Vec::new());
        }
        self.tune_all(&dryrun, &mut tunings);
        Ok(tunings.iter().map(|tuning| tuning.record(&self.invocation.arguments)).collect())
    }
}
