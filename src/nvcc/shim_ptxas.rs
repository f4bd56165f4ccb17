//! The `ptxas` of the overlay toolkit: runs the real ptxas on a copy of the PTX that nvcc hands
//! it with the winners' entries in it, and compares the machine code with what was timed.

use super::plan_folder::{NoPlan, SharedPlan};
use crate::diag::{MessageCode, console, exit_code};
use crate::emit::{BuildPlan, Part, PlannedKernel, ShimOutcome};
use crate::process;
use crate::ptx;
use crate::ptx::Transplant;
use crate::sass::code_digest;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name under which the overlay holds the real ptxas.
pub const REAL_PTXAS: &str = "nvtune-real-ptxas";

/// Exit code of the shim where the code is not that of the variant that was chosen; ptxas
/// itself ends with 255 on an error.
const MISMATCH: u8 = 255;

/// Runs as ptxas; `arguments` begin with the name it was called by. Returns the exit code.
pub fn run(arguments: &[OsString]) -> u8 {
    let own_path = arguments.first().map(PathBuf::from).unwrap_or_default();
    let options = arguments.get(1..).unwrap_or_default();
    let mut ptxas = Command::new(real_ptxas(&own_path));
    // ptxas begins its messages with the name it is called by, and build logs are searched for
    // `ptxas info`.
    ptxas.arg0("ptxas");
    let shared = match SharedPlan::wait() {
        Ok(Some(shared)) => shared,
        Ok(None) => return cannot_start("ptxas", &ptxas.args(options).exec()),
        Err(NoPlan) => return MISMATCH,
    };
    let call = Call::new(options);
    let kernels = call.kernels(&shared.plan);
    let edited = call.edit(shared.folder(), &kernels);
    let (edited, problem) = match edited {
        Ok(edited) => (edited, None),
        Err(problem) => (None, Some(problem)),
    };
    // The file itself stays: what is embedded of it runs on other GPUs, where the winner was never
    // tried.
    let options = options.iter().map(|option| match (&edited, &call.input) {
        (Some(edited), Some(input)) if option == input.as_os_str() => edited.as_os_str(),
        _ => option.as_os_str(),
    });
    ptxas.args(options);
    let outcome = |kernel: &PlannedKernel, problem: Option<String>| ShimOutcome {
        part: Part::Code,
        source: kernel.source.clone(),
        architecture: kernel.architecture.clone(),
        symbol: kernel.symbol.clone(),
        problem,
    };
    let outcomes: Vec<ShimOutcome> = match process::run_tool(&mut ptxas) {
        Ok(status) if !status.success() => return exit_code(status),
        Ok(_) => {
            let problem = |kernel: &PlannedKernel| problem.clone().or_else(|| call.compare(kernel).err());
            kernels.iter().map(|kernel| outcome(kernel, problem(kernel))).collect()
        }
        Err(error) if kernels.is_empty() => return cannot_start("ptxas", &error),
        Err(error) => {
            let problem = format!("ptxas cannot be started: {error}");
            kernels.iter().map(|kernel| outcome(kernel, Some(problem.clone()))).collect()
        }
    };
    let wrong = outcomes.iter().any(|outcome| outcome.problem.is_some());
    match shared.answer(&outcomes) {
        Ok(()) if !wrong => 0,
        // Without an outcome nvtune takes the kernel for one that was not compared, and builds
        // again without a plan.
        _ => MISMATCH,
    }
}

/// What a call of ptxas is about.
struct Call {
    architecture: String,
    input: Option<PathBuf>,
    output: Option<PathBuf>,
}

impl Call {
    fn new(options: &[OsString]) -> Self {
        let mut call = Self { architecture: String::new(), input: None, output: None };
        let mut rest = options.iter();
        while let Some(option) = rest.next() {
            let bytes = option.as_bytes();
            if let Some(value) = bytes.strip_prefix(b"-arch=").or(bytes.strip_prefix(b"--gpu-name=")) {
                call.architecture = String::from_utf8_lossy(value).into_owned();
            } else if option == "-arch" || option == "--gpu-name" {
                call.architecture = rest.next().map(|value| value.to_string_lossy().into_owned()).unwrap_or_default();
            } else if option == "-o" || option == "--output-file" {
                call.output = rest.next().map(PathBuf::from);
            } else if Path::new(option).extension() == Some(OsStr::new("ptx")) && !bytes.starts_with(b"-") {
                call.input = Some(PathBuf::from(option));
            }
        }
        call
    }

    /// The kernels of the plan that this call assembles.
    fn kernels<'a>(&self, plan: &'a BuildPlan) -> Vec<&'a PlannedKernel> {
        let text = self.input.as_deref().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        let Ok(module) = ptx::Module::parse(&text) else { return Vec::new() };
        let sources = self.sources(&plan.sources);
        let is_of = |source: &String| sources.is_empty() || sources.contains(&source.as_str());
        let is_here = |kernel: &&PlannedKernel| {
            kernel.architecture == self.architecture
                && module.entry(&kernel.symbol).is_some()
                && kernel.source.as_ref().is_none_or(is_of)
        };
        plan.kernels.iter().filter(is_here).collect()
    }

    /// Those sources that the PTX is called after:
    /// `tmpxft_000065b0_00000000-7_STEM.compute_90.ptx`, `STEM.ptx` with `--keep`,
    /// `OBJECT_SOURCE.ptx` with `-objtemp`. Of `b.cu` and `a_b.cu` it is the longer one. None
    /// where nvcc names its files otherwise.
    fn sources<'a>(&self, all: &'a [String]) -> Vec<&'a str> {
        let input = self.input.as_deref().and_then(Path::file_stem).map(OsStr::to_string_lossy).unwrap_or_default();
        let named = input.rsplit_once(".compute_").map_or(&*input, |(named, _)| named);
        let is_called =
            |text: &str| named.strip_suffix(text).is_some_and(|head| head.is_empty() || head.ends_with('_'));
        let length = |source: &str| {
            let (whole, stem) = (Path::new(source).file_name(), Path::new(source).file_stem());
            let texts = [whole, stem].into_iter().flatten().map(OsStr::to_string_lossy);
            texts.filter(|text| is_called(text)).map(|text| text.len()).max().unwrap_or(0)
        };
        // Whether it is with its extension says nothing.
        let stem = |source: &str| Path::new(source).file_stem().map_or(0, OsStr::len);
        let called: Vec<&str> = all.iter().map(String::as_str).filter(|source| length(source) > 0).collect();
        let longest = called.iter().map(|source| stem(source)).max().unwrap_or(0);
        called.into_iter().filter(|source| stem(source) == longest).collect()
    }

    /// Writes the PTX with the winners' entries into a file of its own in `folder`; `None` where
    /// there are none.
    fn edit(&self, folder: &Path, kernels: &[&PlannedKernel]) -> Result<Option<tempfile::TempPath>, String> {
        let Some(path) = self.input.as_deref().filter(|_| !kernels.is_empty()) else { return Ok(None) };
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let entries: Vec<(&str, &Transplant)> =
            kernels.iter().map(|kernel| (kernel.symbol.as_str(), &kernel.entry)).collect();
        let text = ptx::insert_transplants(&text, &entries).map_err(|error| error.to_string())?;
        let file = tempfile::Builder::new().suffix(".ptx").tempfile_in(folder);
        let mut file = file.map_err(|error| error.to_string())?;
        std::io::Write::write_all(&mut file, text.as_bytes()).map_err(|error| error.to_string())?;
        Ok(Some(file.into_temp_path()))
    }

    /// Ship what was timed: the code of the winner in the cubin must be that of the plan, and
    /// nvcc's kernel must be as it was.
    fn compare(&self, kernel: &PlannedKernel) -> Result<(), String> {
        let path = self.output.as_deref().ok_or("ptxas was given no output")?;
        let cubin = std::fs::read(path).map_err(|error| error.to_string())?;
        let digest = |entry: &str| code_digest(&cubin, entry).map_err(|error| error.to_string());
        if digest(&kernel.entry.name)? != kernel.digest {
            return Err("the object lacks the machine code of the chosen variant".to_owned());
        }
        match &kernel.baseline_digest {
            Some(expected) if digest(&kernel.symbol)? != *expected => {
                Err("nvcc's own machine code of it is another in the object".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// The real ptxas next to the shim; nvcc calls the shim by a path or through the PATH that it
/// sets.
fn real_ptxas(own_path: &Path) -> PathBuf {
    let neighbour = own_path.with_file_name(REAL_PTXAS);
    if own_path.components().count() > 1 { neighbour } else { PathBuf::from(REAL_PTXAS) }
}

pub(super) fn cannot_start(program: &str, error: &std::io::Error) -> u8 {
    console::error(MessageCode::CannotStart, format!("cannot start {program}: {error}"));
    1
}
