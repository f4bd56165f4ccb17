//! A source and nvcc's options -> its PTX and machine code with line tables.

use crate::cli::exit_status::CommandFailure;
use crate::diag::MessageCode;
use crate::nvcc::{Arity, Dryrun, RealNvcc, lookup};
use crate::process::TemporaryFolder;
use crate::settings::Settings;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How nvcc is called for a source.
pub struct ExplainedCall {
    /// nvcc's steps for the source.
    pub dryrun: Dryrun,
    /// The options without those that say what is made and where.
    pub options: Vec<OsString>,
}

/// What nvcc made of a source.
pub struct CompiledSource {
    pub ptx: String,
    pub cubin: Vec<u8>,
}

/// Options whose output is not wanted here: what is made, and where it goes.
const LEFT_OUT: [&str; 25] = [
    "--cuda",
    "--cubin",
    "--fatbin",
    "--ptx",
    "--optix-ir",
    "--ltoir",
    "--preprocess",
    "--generate-dependencies",
    "--generate-nonsystem-dependencies",
    "--generate-dependencies-with-compile",
    "--generate-nonsystem-dependencies-with-compile",
    "--dependency-output",
    "--generate-dependency-targets",
    "--compile",
    "--device-c",
    "--device-w",
    "--device-link",
    "--link",
    "--lib",
    "--run",
    "--output-file",
    "--output-directory",
    "--library",
    "--keep",
    "--keep-dir",
];

/// Options that name architectures.
const ARCHITECTURES: [&str; 3] = ["--gpu-architecture", "--gpu-code", "--generate-code"];

impl ExplainedCall {
    /// Asks nvcc for its steps. Of several architectures, the newest is compiled.
    ///
    /// # Errors
    /// What nvcc says.
    pub fn new(nvcc: &RealNvcc, source: &Path, arguments: &[OsString]) -> Result<Self, CommandFailure> {
        let made = temporary_folder()?;
        let mut options = without_options(arguments, &LEFT_OUT, source);
        let dry = [options.clone(), to_arguments(&["-c", "-o"]), vec![made.path().join("k.o").into(), source.into()]]
            .concat();
        let dryrun = Dryrun::ask(&nvcc.path, &dry)
            .map_err(|error| failed(format!("nvcc does not take these options: {error}")))?;
        let architectures: Vec<String> = dryrun.pipelines().into_iter().map(|pipeline| pipeline.architecture).collect();
        if architectures.len() > 1
            && let Some(newest) = architectures.iter().max_by_key(|name| crate::gpu::architecture_number(name))
        {
            options = without_options(&options, &ARCHITECTURES, source);
            options.push(format!("-arch={newest}").into());
        }
        Ok(Self { dryrun, options })
    }

    /// Returns the register cap of the options.
    pub fn register_cap(&self) -> Option<u32> {
        let mut cap = None;
        let mut words = self.options.iter();
        while let Some(word) = words.next() {
            if let Some((option, value)) = word.to_str().and_then(lookup)
                && option.long == "--maxrregcount"
            {
                cap = value.or_else(|| words.next()?.to_str()).and_then(|value| value.parse().ok()).or(cap);
            }
        }
        cap
    }
}

impl CompiledSource {
    /// Compiles a source with `-lineinfo`, which leaves the code as it is.
    ///
    /// # Errors
    /// What nvcc says.
    pub fn new(nvcc: &RealNvcc, call: &ExplainedCall, source: &Path, folder: &Path) -> Result<Self, CommandFailure> {
        let made = temporary_folder()?;
        let cubin = made.path().join("k.cubin");
        let output = Command::new(&nvcc.path)
            .args(&call.options)
            .args(["-lineinfo", "-cubin", "-keep", "-keep-dir"])
            .arg(made.path())
            .arg("-o")
            .arg(&cubin)
            .arg(source)
            .current_dir(folder)
            .output()
            .map_err(|error| failed(format!("cannot start '{}': {error}", nvcc.path.display())))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(failed(format!("nvcc does not compile '{}':\n{}", source.display(), said.trim_end())));
        }
        let read = |path: &Path| std::fs::read(path).map_err(|error| failed(format!("nvcc left no code: {error}")));
        let ptx = ptx_in(made.path()).ok_or_else(|| failed("nvcc left no PTX".to_owned()))?;
        Ok(Self { ptx: String::from_utf8_lossy(&read(&ptx)?).into_owned(), cubin: read(&cubin)? })
    }
}

fn failed(problem: String) -> CommandFailure {
    CommandFailure::new(MessageCode::CommandFailed, problem)
}

fn temporary_folder() -> Result<TemporaryFolder, CommandFailure> {
    TemporaryFolder::new().map_err(|error| failed(format!("cannot make a temporary folder: {error}")))
}

fn to_arguments(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

/// The arguments without these options, and without inputs.
fn without_options(arguments: &[OsString], options: &[&str], source: &Path) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match word.to_str().and_then(lookup) {
            Some((option, value)) => {
                let next = (option.arity != Arity::Flag && value.is_none()).then(|| rest.next()).flatten();
                if !options.contains(&option.long) {
                    kept.push(word.clone());
                    kept.extend(next.cloned());
                }
            }
            None if is_input(word, source) => {}
            None => kept.push(word.clone()),
        }
    }
    kept
}

/// Whether a word is a file to compile or link.
fn is_input(word: &OsStr, source: &Path) -> bool {
    let extensions = ["cu", "cuh", "c", "cc", "cpp", "cxx", "o", "a", "so", "obj", "lib"];
    let path = Path::new(word);
    let is_known = path.extension().and_then(OsStr::to_str).is_some_and(|extension| extensions.contains(&extension));
    path == source || is_known && !word.as_encoded_bytes().starts_with(b"-")
}

fn ptx_in(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    entries.into_iter().find(|path| path.extension() == Some(OsStr::new("ptx")))
}

/// Returns the settings of a look at a kernel that times nothing.
pub fn settings() -> Settings {
    let (settings, _) = Settings::new(|name| std::env::var_os(name));
    Settings { mode: crate::settings::Mode::Static, strict: false, ..settings }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_build_are_kept_without_what_it_makes() {
        let arguments = to_arguments(&[
            "-O3",
            "-c",
            "a.cu",
            "-o",
            "a.o",
            "-MD",
            "-MF",
            "a.d",
            "-Iinc",
            "-I",
            "x",
            "-arch=sm_90",
            "-DA",
            "b.o",
        ]);
        let kept = without_options(&arguments, &LEFT_OUT, Path::new("a.cu"));
        assert_eq!(kept, to_arguments(&["-O3", "-Iinc", "-I", "x", "-arch=sm_90", "-DA"]));
        assert_eq!(
            without_options(&kept, &ARCHITECTURES, Path::new("a.cu")),
            to_arguments(&["-O3", "-Iinc", "-I", "x", "-DA"])
        );
    }

    #[test]
    fn left_out_options_are_nvccs() {
        for name in LEFT_OUT.iter().chain(&ARCHITECTURES) {
            assert_eq!(lookup(name).map(|(option, _)| option.long), Some(*name));
        }
    }
}
