//! The compiler's own steps for one source and architecture, run on demand.

use super::cicc_math;
use super::dry_run::{Dryrun, Pipeline, quoted};
use super::fatbin::{Loaded, Loads};
use super::module_id;
use super::tool_error::{Late, ToolError, elsewhere, io, lacks_resources};
use crate::cuda::line_markers::LineMarker;
use crate::cuda::{device_source, innermost_loops};
use crate::emit::CiccOutput;
use crate::launch::{FrontEndOptions, Math};
use crate::process;
use crate::process::{TemporaryFolder, Tool};
use crate::ptx;
use crate::record::{Cache, ENGINE, digest};
use crate::sass::code_digest;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// The largest share of a source that is compiled by itself as what its device code needs. The
/// whole is compiled too, so more of it would save little.
const MAX_DEVICE_CODE: f64 = 0.5;

/// The least bytes of a preprocessed source of which a part is compiled by itself: as many take cicc
/// as long as its start does (`kernels/results/device_code.txt`).
const MIN_SOURCE: usize = 150_000;

/// The largest number of a signal (signal(7)).
const LAST_SIGNAL: i32 = 64;

/// Runs the steps of one [`Pipeline`] with other macros, register caps and outputs.
#[derive(Debug)]
pub struct Toolchain {
    environment: Vec<(String, String)>,
    pub(super) pipeline: Pipeline,
    pub(super) folder: Arc<TemporaryFolder>,
    /// The module id that cicc is given while variants are made: it only reaches names of
    /// internal symbols, and the true one takes a run of cudafe++.
    pub(super) module_id: String,
    /// When the first tool was started.
    begin: OnceLock<Instant>,
    /// Options for the preprocessor that make the baseline's header visible to the source.
    header_options: Vec<OsString>,
    /// The number in the names of the next run's files: several runs are under way at once.
    pub(super) next: AtomicU32,
    /// The tool that did not end in time: no other is started after it.
    late: OnceLock<Late>,
    /// A tool could not do its work for a reason that is not the source's.
    is_disturbed: AtomicBool,
    /// Where machine code is kept that ptxas made before.
    kept: Option<Cache>,
    /// The preprocessed sources so far, by the macros that they were made under. Who makes one
    /// holds its lock.
    preprocessed: Mutex<HashMap<Preprocessed, Arc<Mutex<Option<PathBuf>>>>>,
    /// What cicc made so far that the final build may take.
    pub(super) cicc_outputs: Mutex<Vec<CiccOutput>>,
    /// Whether what device code needs does not compile, and the whole source does.
    pub(super) is_device_code_incomplete: AtomicBool,
    /// What the front end made of the whole source so far. Who makes it holds its lock.
    pub(super) whole: Mutex<HashMap<FrontEndOptions, Arc<OnceLock<FrontEndResult>>>>,
    /// What of the pipeline a GPU loads; `None` for one that no GPU at hand is asked about.
    pub loads: Option<Loads>,
}

/// What the front end makes of the source under one set of macros.
#[derive(Debug)]
pub struct FrontEnd {
    /// As [`Toolchain::source_digest`] gives it.
    pub source_digest: String,
    /// Bytes of the preprocessed source.
    pub source_bytes: usize,
    /// Bytes of it that cicc was given, without blank lines.
    pub parsed_bytes: usize,
    /// The files that it read, as the preprocessor names them; those of nvtune's own are left
    /// out.
    pub files: Vec<String>,
    pub ptx: Arc<str>,
    /// The host stubs that cicc writes: what the compiler says of every kernel's name and
    /// parameter types.
    pub stub: String,
    /// Whether cicc was given only what device code needs of the source.
    pub is_of_device_code: bool,
    /// Whether functions of other files may be linked to its code.
    pub is_relocatable: bool,
    /// By kernel: the PTX without other kernels.
    pub(super) isolated: Mutex<HashMap<String, Arc<OnceLock<Arc<str>>>>>,
}

impl FrontEnd {
    /// Returns the PTX without kernels other than `entry`, each line with its number. ptxas makes the
    /// same code of it as of the whole, in a fraction of the time. Where that is not certain it is
    /// the whole, unless the code is relocatable: of that ptxas assembles all that it is given,
    /// whatever `--entry` says.
    pub fn isolated_ptx(&self, entry: &str) -> Arc<str> {
        let made = {
            let mut known = self.isolated.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(entry.to_owned()).or_default())
        };
        let isolate = || {
            let is_certain = self.is_relocatable || ptx::calls_by_address(&self.ptx, entry).is_ok_and(|calls| !calls);
            let isolated = is_certain.then(|| ptx::isolate_entry(&self.ptx, entry).ok()).flatten();
            isolated.map_or_else(|| Arc::clone(&self.ptx), Arc::from)
        };
        Arc::clone(made.get_or_init(isolate))
    }
}

/// What the front end made, or why it made nothing.
pub type FrontEndResult = Result<Arc<FrontEnd>, Arc<ToolError>>;

/// What a preprocessed source was made under.
type Preprocessed = (BTreeMap<String, i64>, SourceForm);

/// What of a preprocessed source is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SourceForm {
    Plain,
    /// With its `#define` lines.
    WithDefines,
    /// What its device code needs; all of it, where that is not known.
    DeviceCode,
}

impl Toolchain {
    /// Prepares to run `pipeline`; its outputs go to a temporary folder that goes with this.
    pub fn new(dryrun: &Dryrun, pipeline: Pipeline) -> Result<Self, ToolError> {
        let folder = Arc::new(TemporaryFolder::new().map_err(io(&std::env::temp_dir()))?);
        Ok(Self {
            environment: dryrun.environment.clone(),
            module_id: module_id::placeholder(&pipeline.source),
            pipeline,
            folder,
            begin: OnceLock::new(),
            header_options: Vec::new(),
            next: AtomicU32::new(0),
            late: OnceLock::new(),
            is_disturbed: AtomicBool::new(false),
            kept: None,
            preprocessed: Mutex::default(),
            cicc_outputs: Mutex::default(),
            is_device_code_incomplete: AtomicBool::new(false),
            whole: Mutex::default(),
            loads: None,
        })
    }

    /// When the first tool was started for the source, which is now where none was.
    pub fn begin(&self) -> Instant {
        *self.begin.get_or_init(Instant::now)
    }

    /// Keeps machine code in `cache`, and takes from there what was made before.
    pub fn with_cache(self, cache: Option<Cache>) -> Self {
        Self { kept: cache, ..self }
    }

    /// Makes the header with this text visible to the source, at these places of the include
    /// path, instead of one that an earlier build left.
    pub fn provide_header(&mut self, places: &[PathBuf], text: &str) -> Result<(), ToolError> {
        let folder = self.folder.path().join("header");
        write_all(&folder, places, text)?;
        // By a name that needs no quotes.
        let path = self.folder.path().join("included.tune.h");
        write(&path, text)?;
        // A quoted include finds a stale header next to the source first; the include guard makes
        // that one empty.
        self.header_options = vec!["-I".into(), folder.into(), "-include".into(), path.into()];
        self.preprocessed = Mutex::default();
        self.whole = Mutex::default();
        Ok(())
    }

    /// The file of the preprocessed source, with these macros defined.
    pub(super) fn preprocessed(&self, macros: &BTreeMap<String, i64>, form: SourceForm) -> Result<PathBuf, ToolError> {
        let key = (macros.clone(), form);
        let made = Arc::clone(self.preprocessed.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
        let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = made.as_ref() {
            return Ok(path.clone());
        }
        let path = match form {
            SourceForm::Plain => self.preprocess(macros, &[])?,
            SourceForm::WithDefines => self.preprocess(macros, &["-dD".into()])?,
            SourceForm::DeviceCode => self.write_device_code(self.preprocessed(macros, SourceForm::Plain)?)?,
        };
        *made = Some(path.clone());
        Ok(path)
    }

    fn preprocess(&self, macros: &BTreeMap<String, i64>, options: &[OsString]) -> Result<PathBuf, ToolError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.path().join(format!("{number}.ii"));
        let step = &self.pipeline.preprocess;
        let extra = [&self.preprocessor_options(macros), options].concat();
        self.run("gcc -E", &step.rewritten(&[(step.option("-o").unwrap_or_default(), &path)], &extra))?;
        Ok(path)
    }

    /// Writes what device code needs of a preprocessed source; returns the file, or that of the
    /// source itself where it is not understood.
    fn write_device_code(&self, source: PathBuf) -> Result<PathBuf, ToolError> {
        let text = bytes(&source)?;
        if text.len() < MIN_SOURCE {
            return Ok(source);
        }
        let device_code = std::str::from_utf8(&text).ok().and_then(device_source);
        let is_short = |device_code: &String| {
            let bytes = without_blank_lines(device_code.as_bytes());
            bytes as f64 <= MAX_DEVICE_CODE * text.len() as f64
        };
        let Some(device_code) = device_code.filter(is_short) else { return Ok(source) };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.path().join(format!("{number}.ii"));
        write(&path, &device_code)?;
        Ok(path)
    }

    /// Whether a kernel of this name has loops that can be unrolled. A source that cannot be
    /// preprocessed is refused later.
    pub fn has_loops(&self, kernel: &str) -> bool {
        self.device_source().map_or(true, |source| innermost_loops(&source).iter().any(|found| found.kernel == kernel))
    }

    /// The module id as cudafe++ computes it.
    pub(super) fn true_module_id(&self, macros: &BTreeMap<String, i64>) -> Result<String, ToolError> {
        let [host, cudafe] = self.pipeline.module_id.as_slice() else {
            return Err(ToolError::Failed {
                program: "cudafe++".into(),
                message: "it is not among nvcc's steps".into(),
            });
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let place = |name: &str| self.folder.path().join(format!("{number}.{name}"));
        let (preprocessed, id) = (place("host.ii"), place("module_id"));
        let source = host.option("-o").unwrap_or_default();
        self.run("gcc -E", &host.rewritten(&[(source, &preprocessed)], &self.preprocessor_options(macros)))?;
        let named = |option: &str| cudafe.option(option).unwrap_or_default();
        let line = cudafe.rewritten(
            &[
                (source, &preprocessed),
                (named("--module_id_file_name"), &id),
                (named("--gen_c_file_name"), &place("host.cpp")),
            ],
            &[],
        );
        self.run("cudafe++", &line)?;
        read(&id)
    }

    /// Returns the source as it is preprocessed for the host, with the header of this text at
    /// places of its include path; `None` where host code is not compiled.
    pub fn host_source(&self, places: &[PathBuf], text: &str) -> Result<Option<Vec<u8>>, ToolError> {
        let [step, _] = self.pipeline.module_id.as_slice() else { return Ok(None) };
        let folder = self.folder.path().join("host");
        let preprocessed = folder.join("source.ii");
        write_all(&folder, places, text)?;
        let line = step.rewritten(
            &[(step.option("-o").unwrap_or_default(), &preprocessed)],
            &["-I".into(), folder.clone().into()],
        );
        self.run("gcc -E", &line)?;
        bytes(&preprocessed).map(Some)
    }

    /// Tells whether the code is to be linked later.
    pub fn is_relocatable(&self) -> bool {
        self.pipeline.is_relocatable()
    }

    /// The digest of the source as the front end sees it under these macros: preprocessed,
    /// without line markers and blank lines.
    pub fn source_digest(&self, macros: &BTreeMap<String, i64>) -> Result<String, ToolError> {
        Ok(source_digest(&self.source_under(macros)?))
    }

    /// The preprocessed source.
    pub fn device_source(&self) -> Result<Vec<u8>, ToolError> {
        self.source_under(&BTreeMap::new())
    }

    /// The preprocessed source, with these macros defined.
    pub fn source_under(&self, macros: &BTreeMap<String, i64>) -> Result<Vec<u8>, ToolError> {
        bytes(&self.preprocessed(macros, SourceForm::Plain)?)
    }

    /// The preprocessed source with its `#define` lines, with these macros defined.
    pub fn definitions(&self, macros: &BTreeMap<String, i64>) -> Result<String, ToolError> {
        // A source need not be UTF-8; names and line markers are.
        Ok(String::from_utf8_lossy(&bytes(&self.preprocessed(macros, SourceForm::WithDefines)?)?).into_owned())
    }

    fn preprocessor_options(&self, macros: &BTreeMap<String, i64>) -> Vec<OsString> {
        let mut options = self.header_options.clone();
        options.extend(macros.iter().map(|(name, value)| OsString::from(format!("-D{name}={value}"))));
        options
    }

    /// Assembles one entry of `ptx`, which is [isolated](FrontEnd::isolated_ptx), with these edits (none: as the source and the command line
    /// have it). Gives what a GPU can load, and the digest of what ptxas wrote, which for
    /// relocatable code is not yet linked: that is what the final build is compared by.
    ///
    /// `-lineinfo` leaves the code as it is and adds the table from its instructions to lines
    /// of the PTX.
    pub fn assemble(&self, ptx: &str, entry: &str, edits: ptx::Edits) -> Result<(Vec<u8>, String), ToolError> {
        let ptx = ptx::edit_entries(ptx, &[(entry, edits)])?;
        let Some(cache) = &self.kept else { return self.run_assembler(&ptx, entry) };
        // The text names the release of the toolkit that made it.
        let asked = format!("{} {ENGINE} {}", env!("CARGO_PKG_VERSION"), self.assembler_options());
        let place = format!("variants/{}", digest([asked.as_bytes(), entry.as_bytes(), ptx.as_bytes()]));
        if let Some((cubin, code)) = cache.get(&place).and_then(|entry| unpacked(&entry)) {
            return Ok((cubin, code));
        }
        let (cubin, code) = self.run_assembler(&ptx, entry)?;
        // Nothing depends on it; that the cache cannot be written is said where results are.
        let _ = cache.put(&place, &[code.as_bytes(), b"\n", &cubin].concat());
        Ok((cubin, code))
    }

    fn run_assembler(&self, ptx: &str, entry: &str) -> Result<(Vec<u8>, String), ToolError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let place = |extension: &str| self.folder.path().join(format!("{number}.{extension}"));
        let (input, output) = (place("ptx"), place("cubin"));
        write(&input, ptx)?;
        let Pipeline { cicc, ptxas, .. } = &self.pipeline;
        let replacements = [
            (cicc.option("-o").unwrap_or_default(), input.as_path()),
            (ptxas.option("-o").unwrap_or_default(), output.as_path()),
        ];
        let mut extra: Vec<OsString> = match ptx::calls_by_address(ptx, entry)? {
            true => Vec::new(),
            false => vec!["--entry".into(), entry.into()],
        };
        if !["--generate-line-info", "-lineinfo"].iter().any(|option| ptxas.has(option)) {
            extra.push("-lineinfo".into());
        }
        self.run("ptxas", &ptxas.rewritten(&replacements, &extra))?;
        let read = |path: &Path| std::fs::read(path).map_err(io(path));
        let mut cubin = read(&output)?;
        let digest = code_digest(&cubin, entry)?;
        if self.pipeline.is_relocatable() {
            // Linking fills in places and leaves the instructions; a kernel that calls another
            // file's functions cannot be linked alone.
            let linked = place("linked.cubin");
            let mut line = OsString::from(format!("nvlink --arch={} ", self.pipeline.architecture));
            line.push(quoted(output.as_os_str()));
            line.push(" -o ");
            line.push(quoted(linked.as_os_str()));
            self.run("nvlink", &line).map_err(elsewhere)?;
            cubin = read(&linked)?;
            let _ = std::fs::remove_file(linked);
        }
        for used in [input, output] {
            // Thousands of variants would fill the temporary folder; a file that stays is removed
            // with the folder.
            let _ = std::fs::remove_file(used);
        }
        Ok((cubin, digest))
    }

    /// The math options that the build has for all kernels.
    pub fn math(&self) -> Math {
        cicc_math::build_math(&self.pipeline.cicc)
    }

    /// The register cap of the command line (`-maxrregcount`).
    pub fn register_cap(&self) -> Option<u32> {
        let ptxas = &self.pipeline.ptxas;
        ["-maxrregcount", "--maxrregcount"].iter().find_map(|option| ptxas.option(option)?.parse().ok())
    }

    /// The source as nvcc names it.
    pub fn source(&self) -> &str {
        &self.pipeline.source
    }

    /// The options of ptxas, without the names of files.
    pub fn assembler_options(&self) -> String {
        let Pipeline { cicc, ptxas, .. } = &self.pipeline;
        let files = [cicc.option("-o"), ptxas.option("-o"), Some("-o")];
        // With -t, what the steps print is led into files: the last words of the line.
        let words = ptxas.arguments().take_while(|word| !word.starts_with('>'));
        words.filter(|word| !files.contains(&Some(*word))).collect::<Vec<_>>().join(" ")
    }

    /// The files in the line markers of a preprocessed text.
    pub(super) fn files(&self, preprocessed: &[u8]) -> Vec<String> {
        let own = self.folder.path().to_string_lossy();
        let mut files: Vec<String> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for LineMarker { file, .. } in preprocessed.split(|&byte| byte == b'\n').filter_map(LineMarker::parse) {
            // `<built-in>` and `<command-line>` are no files.
            let is_file = !file.starts_with('<') && !file.starts_with(&*own) && !file.ends_with('/');
            if is_file && seen.insert(file.clone()) {
                files.push(file.into_owned());
            }
        }
        files
    }

    /// A word that changes with what GPUs would load.
    pub fn images(&self) -> String {
        self.loads.as_ref().map(Loads::words).unwrap_or_default()
    }

    /// What of the pipeline a GPU of compute capability `device` loads.
    pub fn loaded(&self, device: Option<u32>) -> Loaded {
        match (&self.loads, device) {
            (Some(loads), Some(device)) => loads.by(device),
            _ => Loaded::Nothing,
        }
    }

    /// The architecture that the pipeline compiles for, as ptxas names it (`sm_90`).
    pub fn architecture(&self) -> &str {
        &self.pipeline.architecture
    }

    /// The tool that did not end in time, after which nothing is known of any kernel of the
    /// source.
    pub fn late(&self) -> Option<&Late> {
        self.late.get()
    }

    /// Whether a tool was stopped or killed, or could not be started: what is not known for
    /// that may be known next time.
    pub fn is_disturbed(&self) -> bool {
        self.late.get().is_some() || self.is_disturbed.load(Ordering::Relaxed)
    }

    /// Runs a step; returns what it wrote to standard output and to standard error.
    pub(super) fn run(&self, program: &str, line: &std::ffi::OsStr) -> Result<(Vec<u8>, Vec<u8>), ToolError> {
        // One that hangs may hang for each of a thousand variants.
        if let Some(late) = self.late.get() {
            return Err(late.clone().into());
        }
        self.begin();
        let mut tool = Tool::shell(line);
        // What a tool that is killed leaves behind goes with the folder.
        tool.command.env("TMPDIR", self.folder.path());
        tool.command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let _permit = process::wait_for_permit();
        let limit = process::tool_patience();
        let output = process::output_within(&mut tool, limit).map_err(|source| {
            self.is_disturbed.store(true, Ordering::Relaxed);
            ToolError::Start { program: program.to_owned(), source }
        })?;
        let Some(output) = output else {
            let late = Late { program: program.to_owned(), limit };
            return Err(self.late.get_or_init(|| late).clone().into());
        };
        if output.status.success() {
            return Ok((output.stdout, output.stderr));
        }
        // The shell says by 128 and more that a signal ended the tool.
        if output.status.code().is_none_or(|code| (128..=128 + LAST_SIGNAL).contains(&code)) {
            self.is_disturbed.store(true, Ordering::Relaxed);
        }
        let mut message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        if lacks_resources(&message) {
            self.is_disturbed.store(true, Ordering::Relaxed);
        }
        if message.is_empty() {
            message = output.status.to_string();
        }
        Err(ToolError::Failed { program: program.to_owned(), message })
    }
}

/// A kept variant: its cubin and the digest of its code.
fn unpacked(entry: &[u8]) -> Option<(Vec<u8>, String)> {
    let end = memchr::memchr(b'\n', entry)?;
    let code = String::from_utf8(entry[..end].to_vec()).ok()?;
    Some((entry[end + 1..].to_vec(), code))
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), ToolError> {
    std::fs::write(path, text).map_err(io(path))
}

/// Bytes of the lines of a text that are not blank.
pub(super) fn without_blank_lines(text: &[u8]) -> usize {
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    lines.filter(|line| !line.trim_ascii().is_empty()).map(<[u8]>::len).sum()
}

pub(super) fn source_digest(preprocessed: &[u8]) -> String {
    let mut digest = Sha256::new();
    for line in preprocessed.split(|&byte| byte == b'\n') {
        if LineMarker::parse(line).is_none() && !line.trim_ascii().is_empty() {
            digest.update(line);
            digest.update(b"\n");
        }
    }
    format!("{:x}", digest.finalize())
}

/// Writes a text at all of these places below a folder.
fn write_all(folder: &Path, places: &[PathBuf], text: &str) -> Result<(), ToolError> {
    for place in places {
        let path = folder.join(place);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(io(parent))?;
        write(&path, text)?;
    }
    Ok(())
}

pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, ToolError> {
    std::fs::read(path).map_err(io(path))
}

pub(super) fn read(path: &Path) -> Result<String, ToolError> {
    std::fs::read_to_string(path).map_err(io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isolated_ptx_has_one_kernel_unless_it_calls_by_address() {
        let kernels = ".visible .entry a()\n{\nret;\n}\n.visible .entry b()\n{\nret;\n}\n";
        let by_address = ".func f() { ret; }\n.visible .entry c() {\n.reg .b64 %rd<2>;\nmov.b64 %rd1, f;\n\
             to: .calltargets f;\ncall %rd1, to;\nret; }\n";
        let ptx = format!(".version 9.0\n.target sm_90\n.address_size 64\n{kernels}{by_address}");
        let made = FrontEnd {
            source_digest: String::new(),
            source_bytes: 0,
            parsed_bytes: 0,
            files: Vec::new(),
            ptx: Arc::from(ptx.as_str()),
            stub: String::new(),
            is_of_device_code: false,
            is_relocatable: false,
            isolated: Mutex::default(),
        };
        let alone = made.isolated_ptx("b");
        let line_of_kernel = |text: &str| text.lines().position(|line| line.contains(".entry b"));
        assert!(!alone.contains(".entry a") && !alone.contains(".entry c"), "{alone}");
        assert_eq!(line_of_kernel(&alone), line_of_kernel(&ptx));
        assert_eq!(*made.isolated_ptx("c"), *ptx);
        let relocatable = FrontEnd { is_relocatable: true, isolated: Mutex::default(), ..made };
        assert!(!relocatable.isolated_ptx("c").contains(".entry a"));
    }
}
