//! A call of nvcc: handed over where nothing is marked, else tuned and then built by nvcc itself.

use crate::comment::Annotation;
use crate::console::{Console, FATAL, exit_code};
use crate::emit::{Header, HeaderKernel, Ticket, TicketKernel};
use crate::marked_source::MarkedSource;
use crate::nvcc::{Dryrun, Invocation, Overlay, RealNvcc};
use crate::record::{FORMAT, Record, write_if_changed};
use crate::settings::{Mode, Settings};
use crate::tune::{self, Tuned, Tuner};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// Runs as nvcc with `arguments` (without argv[0]); `name` is what nvtune was called by, or the compiler named in
/// `nvtune /path/nvcc ...`. Comes back only where nvcc was not given the process.
pub fn run(arguments: &[OsString], name: Option<&OsStr>) -> u8 {
    let (settings, problems) = Settings::new(|name| std::env::var_os(name));
    let console = Console::new(settings.strict);
    let nvcc = match RealNvcc::find(name, |name| std::env::var_os(name)) {
        Ok(nvcc) => nvcc,
        Err(error) => {
            console.fatal(&error.to_string());
            return FATAL;
        }
    };
    if settings.mode == Mode::Off {
        return hand_over(&nvcc, arguments, &console);
    }
    let flags = |name: &str| std::env::var_os(name);
    let (prepend, append) = (flags("NVCC_PREPEND_FLAGS"), flags("NVCC_APPEND_FLAGS"));
    // What nvtune cannot read, nvcc has the better message for.
    let Ok(invocation) = Invocation::new(arguments, prepend.as_deref(), append.as_deref()) else {
        return hand_over(&nvcc, arguments, &console);
    };
    let marked = MarkedSource::of(&invocation);
    if marked.is_empty() {
        return hand_over(&nvcc, arguments, &console);
    }
    for problem in problems {
        console.warning(&problem);
    }
    let mut build = Build { console: &console, settings: &settings, nvcc: &nvcc, invocation: &invocation };
    build.run(marked)
}

/// Gives the process to nvcc: no parent stays.
fn hand_over(nvcc: &RealNvcc, arguments: &[OsString], console: &Console) -> u8 {
    let error = Command::new(&nvcc.path).args(arguments).exec();
    console.fatal(&format!("cannot start '{}': {error}", nvcc.path.display()));
    FATAL
}

/// A compile with marked sources.
struct Build<'a> {
    console: &'a Console,
    settings: &'a Settings,
    nvcc: &'a RealNvcc,
    invocation: &'a Invocation,
}

/// A marked source with its annotations and, later, what was decided.
struct Tuning {
    source: MarkedSource,
    annotations: Vec<Annotation>,
    /// The newest that machine code is made for; empty where there is none.
    architecture: String,
    tuned: Vec<Tuned>,
}

impl Build<'_> {
    fn run(&mut self, marked: Vec<MarkedSource>) -> u8 {
        let mut tunings = match self.annotate(marked) {
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
        let dryrun = match Dryrun::ask(&self.nvcc.path, &self.invocation.arguments) {
            Ok(dryrun) => dryrun,
            // nvcc itself says what is wrong with the call.
            Err(_) => return self.plain(),
        };
        for tuning in &mut tunings {
            tuning.architecture = newest_architecture(&dryrun, &tuning.source.path.to_string_lossy());
        }
        if self.invocation.device_debug {
            self.console.warning("not tuned: -G compiles device code without optimisation");
        } else if self.settings.mode != Mode::Locked {
            let mut tuner = Tuner::new(self.settings, self.console);
            for tuning in &mut tunings {
                self.tune(&dryrun, tuning, &mut tuner);
            }
        }
        match self.console.failure() {
            Some(code) => code,
            None => self.build(&dryrun, &folder, tunings),
        }
    }

    /// Reads the tuning comments of every marked file; all errors are printed before giving up.
    fn annotate(&self, marked: Vec<MarkedSource>) -> Result<Vec<Tuning>, u8> {
        let mut tunings = Vec::new();
        for source in marked {
            let (annotations, problems) = source.annotations(self.settings.files.as_deref());
            self.console.diagnostics(&problems);
            tunings.push(Tuning { source, annotations, architecture: String::new(), tuned: Vec::new() });
        }
        match self.console.failure() {
            Some(code) => Err(code),
            None => Ok(tunings),
        }
    }

    /// The folder for headers and records: it must be there before anything is written.
    fn header_folder(&self) -> Result<PathBuf, String> {
        if let Some(folder) = &self.settings.header_folder {
            std::fs::create_dir_all(folder)
                .map_err(|error| format!("cannot make NVTUNE_HEADER_DIR '{}': {error}", folder.display()))?;
            return Ok(folder.clone());
        }
        let folder = self.invocation.object_folder();
        if folder.is_dir() {
            return Ok(folder);
        }
        Err(format!("output folder '{}' does not exist; make it first", folder.display()))
    }

    /// Tunes the kernels of one source; what cannot be tuned is warned of and stays as nvcc builds it.
    fn tune(&self, dryrun: &Dryrun, tuning: &mut Tuning, tuner: &mut Tuner<'_>) {
        let source = tuning.source.path.to_string_lossy().into_owned();
        let toolchain = match tuning.source.toolchain(dryrun, &tuning.annotations, tuner.device_architecture()) {
            Ok(toolchain) => toolchain,
            Err(problem) => return self.console.warning(&format!("{source}: not tuned: {problem}")),
        };
        if self.several_sources() && !tuning.source.includes_header {
            self.leave_out_macro_axes(tuning);
        }
        tuning.tuned = tuner.tune(&toolchain, &tuning.annotations);
        for tuned in &tuning.tuned {
            self.console.summary(&tuned.summary());
        }
    }

    /// `-D` reaches every source of a call, and what the others call by that name is not nvtune's. There a macro axis comes
    /// through the header alone.
    fn several_sources(&self) -> bool {
        self.invocation.sources.len() + self.invocation.host_sources > 1
    }

    fn leave_out_macro_axes(&self, tuning: &mut Tuning) {
        tuning.annotations.retain(|annotation| {
            if !annotation.macros.is_empty() {
                self.console.warning(&format!(
                    "{}: not tuned: -D would set its macros for the other sources of this call too; include \"{}\" or compile {} by itself",
                    annotation.name,
                    Header::file_name(&tuning.source.stem),
                    tuning.source.file_name()
                ));
            }
            annotation.macros.is_empty()
        });
    }

    /// Writes headers and records and lets nvcc build with the winners.
    fn build(&self, dryrun: &Dryrun, folder: &Path, tunings: Vec<Tuning>) -> u8 {
        for tuning in &tunings {
            if let Err(problem) = self.write_results(folder, tuning) {
                return self.fall_back(folder, tunings, &problem);
            }
        }
        let options = self.extra_options(folder, &tunings);
        let kernels: Vec<TicketKernel> =
            tunings.iter().flat_map(|tuning| &tuning.tuned).filter_map(Tuned::ticket).collect();
        if kernels.is_empty() {
            return self.exec(&options);
        }
        match self.build_with_ticket(dryrun, &options, kernels) {
            Ok(Built::Done(status)) => self.end(status),
            Ok(Built::Differs(problem)) => self.fall_back(folder, tunings, &problem),
            Err(problem) => self.fall_back(folder, tunings, &problem),
        }
    }

    fn build_with_ticket(
        &self,
        dryrun: &Dryrun,
        options: &[OsString],
        kernels: Vec<TicketKernel>,
    ) -> Result<Built, String> {
        let bin = real_bin(dryrun, self.nvcc);
        let own = std::env::current_exe().map_err(|error| format!("cannot find nvtune's own program: {error}"))?;
        let overlay = Overlay::new(&bin, &own).map_err(|error| error.to_string())?;
        let folder = tempfile::Builder::new().prefix("nvtune-").tempdir();
        let folder = folder.map_err(|error| format!("cannot make a temporary folder: {error}"))?;
        let answers = folder.path().join("answers");
        let ticket_file = folder.path().join("ticket.json");
        let ticket = Ticket { answers: answers.clone(), kernels };
        std::fs::create_dir(&answers)
            .and_then(|()| std::fs::write(&ticket_file, serde_json::to_vec(&ticket)?))
            .map_err(|error| format!("cannot write the ticket: {error}"))?;
        let status = Command::new(bin.join("nvcc"))
            .arg0(overlay.nvcc())
            .args(&self.invocation.arguments)
            .args(options)
            .env(Ticket::VARIABLE, &ticket_file)
            .status()
            .map_err(|error| format!("cannot start nvcc: {error}"))?;
        let outcomes =
            Ticket::outcomes(&answers).map_err(|error| format!("cannot read the shim's answers: {error}"))?;
        if let Some(outcome) = outcomes.iter().find(|outcome| outcome.problem.is_some()) {
            let problem = outcome.problem.as_deref().unwrap_or_default();
            return Ok(Built::Differs(format!("{}: {problem}", outcome.symbol)));
        }
        let compared = |kernel: &TicketKernel| outcomes.iter().any(|outcome| outcome.symbol == kernel.symbol);
        if status.success()
            && let Some(kernel) = ticket.kernels.iter().find(|kernel| !compared(kernel))
        {
            return Ok(Built::Differs(format!("{}: nvcc did not assemble it", kernel.symbol)));
        }
        Ok(Built::Done(status))
    }

    /// Builds with baselines, and says so in headers and records too: the object must be one that plain nvcc would make.
    fn fall_back(&self, folder: &Path, mut tunings: Vec<Tuning>, problem: &str) -> u8 {
        self.console.warning(&format!("the tuned result is not used: {problem}"));
        if let Some(code) = self.console.failure() {
            return code;
        }
        for tuning in &mut tunings {
            tuning.tuned.iter_mut().for_each(|tuned| tuned.fall_back(problem));
            match self.write_results(folder, tuning) {
                Err(other) if other != problem => self.console.warning(&other),
                _ => {}
            }
        }
        self.exec(&self.extra_options(folder, &tunings))
    }

    fn write_results(&self, folder: &Path, tuning: &Tuning) -> Result<(), String> {
        let mut kernels = tuning.header_kernels();
        if kernels.is_empty() {
            return Ok(());
        }
        if self.several_sources() {
            // Without -D the source's own default may come first; the machine code will tell, and the build must not fail.
            kernels.iter_mut().for_each(|kernel| kernel.pins_macros = false);
        }
        let text = Header { source: tuning.source.file_name(), kernels }.text();
        write_if_changed(&folder.join(Header::file_name(&tuning.source.stem)), text.as_bytes())?;
        if tuning.tuned.is_empty() {
            return Ok(());
        }
        let record = Record {
            format: FORMAT,
            nvtune: env!("CARGO_PKG_VERSION").to_owned(),
            source: tuning.source.path.to_string_lossy().into_owned(),
            kernels: tuning.tuned.iter().map(|tuned| tuned.decision.clone()).collect(),
        };
        let text = serde_json::to_vec_pretty(&record).map_err(|error| format!("cannot write the record: {error}"))?;
        write_if_changed(&folder.join(format!("{}.tune.json", tuning.source.stem)), &text)
    }

    /// What the final build is given besides the user's own arguments.
    fn extra_options(&self, folder: &Path, tunings: &[Tuning]) -> Vec<OsString> {
        let mut options = include_options(folder, tunings);
        if !self.several_sources() {
            // A quoted include finds a header that a build into the source's own folder left before it looks in `folder`: its
            // grids would be for other macros than the code. The include guard makes it empty once the right one is read.
            let included = tunings.iter().filter(|tuning| tuning.needs_header());
            let headers = included.map(|tuning| folder.join(Header::file_name(&tuning.source.stem)));
            // One that could not be written was warned of.
            for header in headers.filter(|header| header.is_file()) {
                options.extend(["-include".into(), header.into_os_string()]);
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
        if !self.console.has_deferred() {
            return hand_over(self.nvcc, &arguments, self.console);
        }
        match Command::new(&self.nvcc.path).args(&arguments).status() {
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
        }
        self.console.failure().unwrap_or_else(|| exit_code(status))
    }

    fn plain(&self) -> u8 {
        self.exec(&[])
    }
}

enum Built {
    Done(ExitStatus),
    /// The code is not what was timed.
    Differs(String),
}

impl Tuning {
    /// Whether there is a header and the source includes it.
    fn needs_header(&self) -> bool {
        self.source.includes_header && !self.annotations.is_empty()
    }

    /// What the header says: the winners and, for a source that includes it, the baselines of kernels that were not tuned.
    fn header_kernels(&self) -> Vec<HeaderKernel> {
        let tuned = self.tuned.iter().map(Tuned::header);
        if !self.source.includes_header {
            return tuned.collect();
        }
        let is_tuned = |annotation: &Annotation| self.tuned.iter().any(|tuned| tuned.decision.name == annotation.name);
        let left: Vec<Annotation> =
            self.annotations.iter().filter(|annotation| !is_tuned(annotation)).cloned().collect();
        let mut baselines = tune::baseline_headers(&left, &self.architecture);
        if !self.tuned.is_empty() {
            // A kernel may have been left alone because its macros are not nvtune's to set.
            baselines.iter_mut().for_each(|kernel| kernel.macros.clear());
        }
        tuned.chain(baselines).collect()
    }
}

/// The newest architecture that a source is compiled for; empty where no machine code is made.
fn newest_architecture(dryrun: &Dryrun, source: &str) -> String {
    let architectures = dryrun.pipelines().into_iter().filter(|pipeline| pipeline.source == source);
    let newest = architectures.map(|pipeline| pipeline.architecture).max_by_key(|name| tune::architecture_number(name));
    newest.unwrap_or_default()
}

/// The folder that nvcc takes for its own; for a script that starts another nvcc, the other one's.
fn real_bin(dryrun: &Dryrun, nvcc: &RealNvcc) -> PathBuf {
    let here = dryrun.variable("_HERE_").map(PathBuf::from).filter(|here| here.join("nvcc.profile").is_file());
    here.and_then(|here| std::path::absolute(here).ok())
        .or_else(|| nvcc.path.parent().map(Path::to_path_buf))
        .unwrap_or_default()
}

/// The header's folder is on the include path where a source includes the header.
fn include_options(folder: &Path, tunings: &[Tuning]) -> Vec<OsString> {
    if tunings.iter().any(Tuning::needs_header) { vec!["-I".into(), folder.as_os_str().to_owned()] } else { Vec::new() }
}
