//! A call of nvcc: handed over where nothing is marked, else tuned and then built by nvcc itself.

mod outputs;

use super::call_cache::{Call, Snapshot, Warm, Winners};
use super::marked_source;
use super::marked_source::MarkedSource;
use super::tuning::Tuning;
use crate::diag::console::Console;
use crate::diag::{FATAL, exit_code};
use crate::emit::{Header, StubText, TicketKernel};
use crate::gpu::architecture_number;
use crate::nvcc::Toolchain;
use crate::nvcc::final_build;
use crate::nvcc::final_build::{Built, Wrong};
use crate::nvcc::{
    Dryrun, DryrunError, Invocation, MarkedFile, Phase, Programs, RealNvcc, compilers, list_value, quoted_files,
};
use crate::process;
use crate::put;
use crate::record::result_store::Results;
use crate::record::{Record, Written};
use crate::settings::{Mode, Settings, Trust, is_off};
use crate::tune;
use crate::tune::{Tuned, Tuner};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::SystemTime;

/// Runs as nvcc with `arguments` (without argv[0]); `name` is what nvtune was called by, or the compiler named in
/// `nvtune /path/nvcc ...`. Comes back only where nvcc was not given the process.
pub fn run(arguments: &[OsString], name: Option<&OsStr>) -> u8 {
    let environment = |name: &str| std::env::var_os(name);
    let nvcc = match RealNvcc::find(name, environment) {
        Ok(nvcc) => nvcc,
        Err(error) => {
            Console::new(false).fatal(&error.to_string());
            return FATAL;
        }
    };
    // Nothing is done before this that a call without marked sources has no need of.
    let (invocation, marked, nearly) = match found(arguments, environment) {
        Some((invocation, marked, nearly)) if !marked.is_empty() => (invocation, marked, nearly),
        unmarked => {
            let console = Console::new(false);
            let nearly = unmarked.iter().flat_map(|(_, _, nearly)| nearly);
            nearly.for_each(|file| console.diagnostics(&file.near_misses()));
            return hand_over(&nvcc, arguments, &console);
        }
    };
    let started = process::began();
    let (settings, problems) = Settings::new(environment);
    let console = Console::new(settings.strict);
    process::ignore_broken_pipes();
    process::prepare_jobs();
    process::watch();
    for problem in problems {
        console.warning(&problem);
    }
    let results = Results::new(&settings);
    let mut build = Build {
        console: &console,
        settings: &settings,
        nvcc: &nvcc,
        invocation: &invocation,
        started,
        results: &results,
        written: Written::default(),
    };
    let files: BTreeMap<&Path, &MarkedFile> =
        marked.iter().flat_map(|source| &source.files).chain(&nearly).map(|file| (file.path.as_path(), file)).collect();
    files.values().for_each(|file| console.diagnostics(&file.near_misses()));
    build.run(marked)
}

/// Tunes the kernels of a call of nvcc (the words of `call`, the first being nvcc) without building anything, and prints the records
/// of its sources. `anew`: whatever is known already. Gives the exit code.
pub fn decide(call: &[OsString], anew: bool) -> u8 {
    let (mut settings, problems) = Settings::new(|name| std::env::var_os(name));
    settings.trust = if anew { Trust::Nothing } else { Trust::Timed };
    if matches!(settings.mode, Mode::Off | Mode::Locked) {
        settings.mode = Mode::Measure;
    }
    let console = Console::new(settings.strict);
    process::ignore_broken_pipes();
    process::prepare_jobs();
    process::watch();
    problems.iter().for_each(|problem| console.warning(problem));
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
            started: process::began(),
            results: &results,
            written: Written::default(),
        };
        build.decide()
    };
    let text = decided().and_then(|records| serde_json::to_string(&records).map_err(|error| error.to_string()));
    match text {
        Ok(text) => put!("{text}"),
        Err(problem) => console.fatal(&problem),
    }
    console.failure().unwrap_or(0)
}

/// Gives the process to nvcc: no parent stays.
fn hand_over(nvcc: &RealNvcc, arguments: &[OsString], console: &Console) -> u8 {
    let error = process::hand_over(&nvcc.path, arguments);
    console.fatal(&format!("cannot start '{}': {error}", nvcc.path.display()));
    FATAL
}

/// The call, where nvtune is on and understands it, its sources that are marked, and the files that may have been meant to be.
fn found(
    arguments: &[OsString],
    environment: impl Fn(&str) -> Option<OsString>,
) -> Option<(Invocation, Vec<MarkedSource>, Vec<MarkedFile>)> {
    if is_off(&environment) {
        return None;
    }
    // What nvtune cannot read, nvcc has the better message for.
    let invocation = Invocation::under(arguments, environment).ok()?;
    let (marked, nearly) = MarkedSource::found(&invocation);
    Some((invocation, marked, nearly))
}

/// A compile with marked sources.
struct Build<'a> {
    console: &'a Console,
    settings: &'a Settings,
    nvcc: &'a RealNvcc,
    invocation: &'a Invocation,
    started: SystemTime,
    results: &'a Results,
    /// What was written for this build.
    written: Written,
}

impl Build<'_> {
    fn run(&mut self, marked: Vec<MarkedSource>) -> u8 {
        let tunings = match self.annotate(marked) {
            Ok(tunings) => tunings,
            Err(code) => return code,
        };
        if tunings.iter().all(|tuning| tuning.annotations.is_empty()) {
            return self.plain();
        }
        // `-o /dev/null` asks whether a source compiles: nothing of the result stays, and no header belongs in /dev.
        if self.invocation.output.as_deref().is_some_and(|output| output.exists() && !output.is_file()) {
            return self.plain();
        }
        let folder = match self.header_folder() {
            Ok(folder) => folder,
            Err(problem) => {
                self.console.fatal(&problem);
                return FATAL;
            }
        };
        let warm =
            Warm::new(&self.call(&tunings), self.results, self.console).filter(|_| !self.invocation.device_debug);
        if let Some(snapshot) = warm.as_ref().and_then(Warm::find) {
            return self.build_known(&snapshot, &folder, tunings, warm.as_ref());
        }
        self.tune_and_build(&folder, tunings, warm.as_ref())
    }

    fn tune_and_build(&self, folder: &Path, mut tunings: Vec<Tuning>, warm: Option<&Warm<'_>>) -> u8 {
        let dryrun = match Dryrun::ask(&self.nvcc.path, &self.invocation.arguments) {
            Ok(dryrun) => dryrun,
            Err(late @ DryrunError::Late(_)) => {
                self.console.warning(&format!("not tuned: {late}"));
                return self.console.failure().unwrap_or_else(|| self.plain());
            }
            // nvcc itself says what is wrong with the call.
            Err(_) => return self.plain(),
        };
        for tuning in &mut tunings {
            tuning.architecture = tuning.source.newest_architecture(&dryrun);
        }
        if let Some(reason) = self.untunable() {
            self.warn_untunable(&tunings, &reason);
        } else {
            let mut tuner = Tuner::new(self.settings, self.console).with_results(self.results);
            for tuning in &mut tunings {
                self.tune(&dryrun, tuning, &mut tuner);
            }
            if let Some(warm) = warm {
                self.keep(warm, &dryrun, &tunings, &tuner);
            }
        }
        match self.console.failure() {
            Some(code) => code,
            None => self.build(&Programs::new(&dryrun, self.nvcc), folder, tunings, warm),
        }
    }

    /// Why no source of the call can be tuned.
    fn untunable(&self) -> Option<String> {
        match self.invocation.phase {
            Phase::Assembly(option) => Some(format!("{option} makes no machine code")),
            _ if self.invocation.device_debug => Some("-G compiles device code without optimisation".to_owned()),
            _ => None,
        }
    }

    fn warn_untunable(&self, tunings: &[Tuning], reason: &str) {
        for tuning in tunings {
            self.console.warning(&format!("{}: not tuned: {reason}", tuning.source.path.display()));
        }
    }

    /// Tunes and builds nothing: the records of the marked sources.
    fn decide(&self) -> Result<Vec<Record>, String> {
        let unread = |_| "its tuning comments cannot be read".to_owned();
        let mut tunings = self.annotate(MarkedSource::of(self.invocation)).map_err(unread)?;
        if let Some(reason) = self.untunable() {
            self.warn_untunable(&tunings, &reason);
            return Ok(Vec::new());
        }
        let dryrun = Dryrun::ask(&self.nvcc.path, &self.invocation.arguments).map_err(|error| error.to_string())?;
        let mut tuner = Tuner::new(self.settings, self.console).with_results(self.results);
        for tuning in &mut tunings {
            self.tune(&dryrun, tuning, &mut tuner);
        }
        Ok(tunings.iter().map(|tuning| tuning.record(&self.invocation.arguments)).collect())
    }

    /// What the look-up of the whole call hangs on.
    fn call<'b>(&'b self, tunings: &'b [Tuning]) -> Call<'b> {
        let kernels = tunings.iter().flat_map(|tuning| &tuning.annotations);
        let kernels = kernels.map(|found| (found.text.clone(), found.name.clone(), tune::workload_data(found)));
        // Host code too, which the compiler's device side may not read: launches and macros hang on it.
        // But not the headers that come out of the call itself.
        let is_made = |path: &Path| tunings.iter().any(|tuning| tuning.source.is_own_header(path));
        let texts = |tuning: &Tuning| {
            let files = quoted_files(&tuning.source.path, &self.invocation.include_paths);
            files.into_iter().filter(|file| !is_made(&file.path)).map(|file| file.text).collect()
        };
        Call {
            nvcc: &self.nvcc.path,
            arguments: &self.invocation.arguments,
            settings: self.settings,
            sources: tunings.iter().map(|tuning| (tuning.source.path.as_path(), texts(tuning))).collect(),
            kernels: kernels.collect(),
        }
    }

    /// Builds with what an earlier call decided.
    fn build_known(&self, snapshot: &Snapshot, folder: &Path, mut tunings: Vec<Tuning>, warm: Option<&Warm<'_>>) -> u8 {
        self.console.repeat(&snapshot.said);
        snapshot.deferred.iter().for_each(|message| self.console.warn_if_the_build_passes(message.clone()));
        for (tuning, winners) in tunings.iter_mut().zip(&snapshot.sources) {
            tuning.architecture.clone_from(&winners.architecture);
            tuning.tuned.clone_from(&winners.tuned);
            tuning.record.clone_from(&winners.record);
            tuning.source.includes_header = winners.includes_header;
            tuning.leave_out(&winners.left_out);
            for line in tuning.tuned.iter().flat_map(Tuned::summaries) {
                self.console.summary(&line);
            }
        }
        match self.console.failure() {
            Some(code) => code,
            None => self.build(&snapshot.programs, folder, tunings, warm),
        }
    }

    /// Keeps what was decided, unless a part of it was only for now: a tool that was stopped, a GPU that failed.
    fn keep(&self, warm: &Warm<'_>, dryrun: &Dryrun, tunings: &[Tuning], tuner: &Tuner<'_>) {
        let can_time = self.settings.mode == Mode::Measure && self.results.present.is_there();
        let is_final = |tuning: &Tuning| tuning.is_final(can_time);
        if self.console.failure().is_some() || tuner.lacks_some() || !tunings.iter().all(is_final) {
            return;
        }
        let is_header =
            |name: &&String| tunings.iter().any(|tuning| tuning.source.is_own_header(Path::new(name.as_str())));
        let files = tuner.files().filter(|name| !is_header(name)).map(PathBuf::from);
        let sources = tunings.iter().map(|tuning| {
            let record = self.record(tuning).filter(|_| !tuning.tuned.is_empty());
            let (architecture, tuned) = (tuning.architecture.clone(), tuning.tuned.clone());
            let (includes_header, left_out) = (tuning.source.includes_header, tuning.left_out.clone());
            (Winners { architecture, tuned, record: None, includes_header, left_out }, record)
        });
        let programs = Programs::new(dryrun, self.nvcc);
        let compilers = compilers(dryrun, &programs.bin);
        warm.keep(programs, sources.collect(), files, compilers);
    }

    /// Reads the tuning comments of every marked file; all errors are printed before giving up.
    fn annotate(&self, marked: Vec<MarkedSource>) -> Result<Vec<Tuning>, u8> {
        let mut tunings = Vec::new();
        for source in marked {
            self.console.compiling(&source.name());
            let (annotations, problems) = source.annotations(self.settings.files.as_deref());
            self.console.diagnostics(&problems);
            self.console.diagnostics(&source.without_macros(&annotations));
            tunings.push(Tuning::new(source, annotations));
        }
        match self.console.failure() {
            Some(code) => Err(code),
            None => Ok(tunings),
        }
    }

    /// Tunes the kernels of one source; what cannot be tuned is warned of and stays as nvcc builds it.
    fn tune(&self, dryrun: &Dryrun, tuning: &mut Tuning, tuner: &mut Tuner<'_>) {
        let source = tuning.source.name();
        self.console.compiling(&source);
        if tuning.source.is_fat(dryrun) {
            // Which of the architectures is tuned hangs on the GPU.
            tuner.start();
        }
        tuning.source.preprocess(dryrun, &tuning.annotations);
        let device = tuner.device_architecture();
        let mut made = tuning.source.toolchain(dryrun, &tuning.annotations, device);
        if let Ok(toolchain) = &made {
            match tuning.leave_out_uncompiled(toolchain, !tuning.source.is_fat(dryrun)) {
                // The header is that of the kernels that are left.
                Ok(true) => made = tuning.source.toolchain(dryrun, &tuning.annotations, device),
                Ok(false) => {}
                Err(problems) => return self.console.diagnostics(&problems),
            }
        }
        let toolchain = match made {
            Ok(toolchain) => toolchain.with_cache(self.results.cache.clone()),
            Err(problem) => {
                tuning.is_provisional = true;
                return self.console.warning(&format!("{source}: not tuned: {problem}"));
            }
        };
        if self.several_sources() && !tuning.source.includes_header {
            self.leave_out_macro_axes(tuning);
        }
        let annotations = tuning.compiled(&toolchain).into_owned();
        let around = tuning.source.surroundings(dryrun, &annotations);
        tuning.tuned = tuner.tune(&toolchain, &annotations, around);
        self.tune_others(dryrun, tuning, &toolchain, tuner);
        for line in tuning.tuned.iter().flat_map(Tuned::summaries) {
            self.console.summary(&line);
        }
    }

    /// Decides for the other architectures of a fat build: what nothing is decided for stays as nvcc builds it there.
    fn tune_others(&self, dryrun: &Dryrun, tuning: &mut Tuning, chosen: &Toolchain, tuner: &mut Tuner<'_>) {
        if tuning.tuned.is_empty() {
            return;
        }
        for toolchain in tuning.source.other_toolchains(dryrun, &tuning.annotations, chosen) {
            let toolchain = match toolchain {
                Ok(toolchain) => toolchain.with_cache(self.results.cache.clone()),
                Err(problem) => {
                    tuning.is_provisional = true;
                    self.console.warning(&format!("{}: not tuned: {problem}", tuning.source.path.display()));
                    continue;
                }
            };
            let annotations = tuning.compiled(&toolchain);
            let around = tuning.source.surroundings(dryrun, &annotations);
            let others = tuner.tune_beside(&toolchain, &annotations, around, &tuning.tuned);
            let capability = architecture_number(toolchain.architecture());
            for tuned in &mut tuning.tuned {
                let left = others.iter().all(|other| other.decision.name != tuned.decision.name);
                let untuned: Vec<u32> = capability.into_iter().filter(|_| left).collect();
                tuned.stand_beside(&others, &untuned);
            }
        }
    }

    /// `-D` reaches every source of a call, and what the others call by that name is not nvtune's. There a macro axis comes
    /// through the header alone.
    fn several_sources(&self) -> bool {
        self.invocation.sources.len() + self.invocation.host_sources > 1
    }

    fn leave_out_macro_axes(&self, tuning: &mut Tuning) {
        tuning.annotations.retain(|annotation| {
            if !annotation.clauses.macros.is_empty() {
                self.console.warning(&format!(
                    "{}: not tuned: -D would set its macros for the other sources of this call too; include \"{}\" or compile {} by itself",
                    annotation.name,
                    Header::file_name(&tuning.source.stem),
                    tuning.source.file_name()
                ));
            }
            annotation.clauses.macros.is_empty()
        });
    }

    /// Writes headers and records and lets nvcc build with the winners.
    fn build(&self, programs: &Programs, folder: &Path, mut tunings: Vec<Tuning>, warm: Option<&Warm<'_>>) -> u8 {
        self.written.take_turns(tunings.iter().filter_map(|tuning| tuning.header_in(folder)));
        let wrong = match self.attempt(programs, folder, &tunings, warm) {
            Attempt::Ended(code) => {
                // What refused a kernel may be what nvcc stumbles over, too: a disk that is full.
                if code != 0 && self.console.has_deferred() {
                    warm.iter().for_each(|warm| warm.forget());
                }
                return code;
            }
            Attempt::Failed(problem) => return self.fall_back(folder, tunings, &problem),
            Attempt::Differs(wrong) => wrong,
        };
        if let Some(warm) = warm {
            warm.forget();
        }
        // The others may still be what was timed. Where they are not (macros reach them all), or once more one is not, nothing is used.
        for Wrong { source, symbol, problem } in &wrong {
            let is_its = |tuning: &&mut Tuning| source.as_deref().is_none_or(|source| tuning.source.is_named(source));
            let kernels = tunings.iter_mut().filter(is_its).flat_map(|tuning| &mut tuning.tuned);
            for tuned in kernels.filter(|tuned| tuned.is_built_as(symbol)) {
                self.console.warning(&format!("{}: the tuned result is not used: {problem}", tuned.decision.name));
                tuned.fall_back(problem);
            }
        }
        if let Some(code) = self.console.failure() {
            return self.take_back_all(code);
        }
        let problem = match self.attempt(programs, folder, &tunings, None) {
            Attempt::Ended(code) => return code,
            Attempt::Failed(problem) => problem,
            Attempt::Differs(wrong) => {
                let problems = wrong.iter().map(|Wrong { symbol, problem, .. }| format!("{symbol}: {problem}"));
                problems.collect::<Vec<_>>().join(", ")
            }
        };
        self.fall_back(folder, tunings, &problem)
    }

    /// Writes headers and records and lets nvcc build with what is decided.
    fn attempt(&self, programs: &Programs, folder: &Path, tunings: &[Tuning], warm: Option<&Warm<'_>>) -> Attempt {
        // A signal from here to the end of the build leaves nothing that speaks of an object that is not there, or not whole.
        let written = self.written.clone();
        process::set_undo(Some(Box::new(move || written.restore())));
        self.keep_beside_what_is_made(tunings);
        for tuning in tunings {
            if let Err(problem) = process::uninterrupted(|| self.write_results(folder, tuning, warm)) {
                return Attempt::Failed(problem);
            }
        }
        let options = self.extra_options(folder, tunings);
        let kernels = tunings.iter().flat_map(|tuning| {
            let source = self.several_sources().then(|| tuning.source.name());
            tuning
                .tuned
                .iter()
                .flat_map(Tuned::tickets)
                .map(move |kernel| TicketKernel { source: source.clone(), ..kernel })
        });
        let kernels: Vec<TicketKernel> = kernels.collect();
        let stubs: Vec<StubText> = tunings.iter().flat_map(|tuning| &tuning.tuned).filter_map(Tuned::stub).collect();
        if kernels.is_empty() {
            return Attempt::Ended(self.exec(&options));
        }
        let sources = match self.several_sources() {
            true => self.invocation.sources.iter().map(|source| source.to_string_lossy().into_owned()).collect(),
            false => Vec::new(),
        };
        match final_build::build(programs, &self.invocation.arguments, &options, (sources, kernels, stubs)) {
            Ok(Built::Done(status)) => Attempt::Ended(self.end(status)),
            Ok(Built::Differs(wrong)) => Attempt::Differs(wrong),
            Err(problem) => Attempt::Failed(problem),
        }
    }

    /// Builds with baselines, and says so in headers and records too: the object must be one that plain nvcc would make.
    fn fall_back(&self, folder: &Path, mut tunings: Vec<Tuning>, problem: &str) -> u8 {
        self.console.warning(&format!("the tuned result is not used: {problem}"));
        if let Some(code) = self.console.failure() {
            return self.take_back_all(code);
        }
        for tuning in &mut tunings {
            tuning.tuned.iter_mut().for_each(|tuned| tuned.fall_back(problem));
        }
        self.keep_beside_what_is_made(&tunings);
        for tuning in &tunings {
            match self.write_results(folder, tuning, None) {
                Err(other) if other != problem => self.console.warning(&other),
                _ => {}
            }
        }
        self.exec(&self.extra_options(folder, &tunings))
    }

    /// What the final build is given besides the user's own arguments.
    fn extra_options(&self, folder: &Path, tunings: &[Tuning]) -> Vec<OsString> {
        let mut options = Vec::new();
        if tunings.iter().any(Tuning::needs_header) {
            options.extend(["-I".into(), list_value(folder.as_os_str())]);
        }
        if !self.several_sources() {
            // A quoted include finds a header that a build into the source's own folder left before it looks in `folder`: its
            // grids would be for other macros than the code. The include guard makes it empty once the right one is read.
            // One that could not be written was warned of.
            let headers = tunings.iter().filter_map(|tuning| tuning.header_in(folder));
            for header in headers.filter(|header| header.is_file()) {
                options.extend(["-include".into(), list_value(header.as_os_str())]);
            }
            for tuned in tunings.iter().flat_map(|tuning| &tuning.tuned) {
                options.extend(tuned.macros().map(|(name, value)| OsString::from(format!("-D{name}={value}"))));
            }
        }
        options
    }

    fn exec(&self, options: &[OsString]) -> u8 {
        let mut arguments = self.invocation.arguments.clone();
        arguments.extend_from_slice(options);
        if !self.console.has_deferred() && self.written.is_empty() {
            return hand_over(self.nvcc, &arguments, self.console);
        }
        match process::status(Command::new(&self.nvcc.path).args(&arguments)) {
            Ok(status) => self.end(status),
            Err(error) => {
                self.console.fatal(&format!("cannot start '{}': {error}", self.nvcc.path.display()));
                FATAL
            }
        }
    }

    /// The exit code after nvcc, once what only a passed build is told of is said.
    fn end(&self, status: ExitStatus) -> u8 {
        if status.success() {
            self.console.print_deferred();
        } else {
            self.restore_files();
        }
        self.console.failure().unwrap_or_else(|| exit_code(status))
    }

    fn plain(&self) -> u8 {
        self.exec(&[])
    }
}

/// What became of a build with winners.
enum Attempt {
    /// With this exit code.
    Ended(u8),
    Differs(Vec<Wrong>),
    /// Nothing could be built with winners.
    Failed(String),
}
