//! `nvtune init`: sources -> proposed tuning comments, as a diff or in the files.

use super::exit_status::{CommandFailure, exit_code};
use crate::cuda::HostProgram;
use crate::diag::print::bytes_to_output;
use crate::diag::{MessageCode, Source, render};
use crate::nvcc::{Invocation, SearchPaths, included_files, quoted_files};
use crate::proposal::{Basis, FileProposals, Proposal, insert_lines, propose, unified_diff};
use crate::record::{put_in_place, unfinished};
use crate::recording;
use crate::settings::Settings;
use crate::{say, say_on};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What `nvtune init` is to do.
pub struct InitOptions {
    pub files: Vec<PathBuf>,
    pub write: bool,
    /// Options for nvcc.
    pub arguments: Vec<OsString>,
}

/// Sources, then headers: a header is read as the first source that includes it has it.
const SOURCES: [&str; 5] = ["cu", "cpp", "cc", "cxx", "c"];
const HEADERS: [&str; 6] = ["cuh", "h", "hpp", "hxx", "inl", "inc"];

/// The most files of a folder that are read for launches, and the most bytes of one.
const MOST_FILES: usize = 256;
const MOST_BYTES: u64 = 2 << 20;

/// What came of all files.
#[derive(Default)]
struct Outcome {
    proposed: usize,
    refused: usize,
    has_failed: bool,
}

/// Runs it; the exit code is 1 where no kernel of the files gets a comment, or a file cannot be
/// read or written.
pub fn run(options: &InitOptions) -> u8 {
    exit_code(propose_all(options))
}

fn propose_all(options: &InitOptions) -> Result<u8, CommandFailure> {
    let invocation = Invocation::under(&options.arguments, |name| std::env::var_os(name))
        .map_err(|problem| CommandFailure::new(MessageCode::CommandFailed, problem.to_string()))?;
    let paths = invocation.search;
    // Headers of libraries have macros as well.
    let folders: Vec<String> = paths.quoted.iter().map(|folder| folder.to_string_lossy().into_owned()).collect();
    let mut outcome = Outcome::default();
    for (parent, files) in by_folder(&options.files) {
        let texts = texts_around(&parent, &files, &paths);
        let program = HostProgram::new(&texts, &folders, &paths.macros);
        for file in files {
            if exit_code(propose_for(&file, &program, &paths, options.write, &mut outcome).map(|()| 0)) != 0 {
                outcome.has_failed = true;
            }
        }
    }
    Ok(u8::from(outcome.has_failed || outcome.proposed == 0 && outcome.refused > 0))
}

/// The files by their folders, each once.
fn by_folder(files: &[PathBuf]) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
    let mut folders: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
    for file in files {
        let parent = file.parent().unwrap_or(Path::new("")).to_path_buf();
        folders.entry(parent).or_default().insert(file.clone());
    }
    folders
}

/// The files, the others of their folder and all that they include but for the toolkit's and the
/// system's headers: path and text.
fn texts_around(parent: &Path, files: &BTreeSet<PathBuf>, paths: &SearchPaths) -> Vec<(String, String)> {
    let here = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let rank = |path: &Path| {
        let extension = path.extension().and_then(OsStr::to_str).unwrap_or("");
        SOURCES.iter().chain(&HEADERS).position(|known| *known == extension)
    };
    let entries = std::fs::read_dir(here).into_iter().flatten().flatten();
    let names = entries.map(|entry| parent.join(entry.file_name()));
    let is_readable = |path: &PathBuf| path.metadata().is_ok_and(|data| data.is_file() && data.len() <= MOST_BYTES);
    let mut others: Vec<PathBuf> = names.filter(|path| rank(path).is_some() && !files.contains(path)).collect();
    others.retain(is_readable);
    others.sort();
    others.truncate(MOST_FILES);
    let roots: Vec<&Path> = files.iter().chain(&others).map(PathBuf::as_path).collect();
    // Headers of libraries have types as well.
    let found = included_files(&roots, &SearchPaths { angled: paths.quoted.clone(), ..paths.clone() });
    let mut texts: Vec<(String, String)> = Vec::new();
    for file in found {
        let source = Source::new(file.path.to_string_lossy(), &file.text);
        texts.push((source.path, source.text));
    }
    let is_header = |path: &str| rank(Path::new(path)).is_none_or(|rank| rank >= SOURCES.len());
    let is_asked = |path: &str| files.contains(Path::new(path));
    texts.sort_by_key(|(path, _)| (is_header(path), !is_asked(path)));
    texts
}

/// Proposes comments for one file, and prints or writes them.
fn propose_for(
    path: &Path,
    program: &HostProgram,
    paths: &SearchPaths,
    is_to_write: bool,
    outcome: &mut Outcome,
) -> Result<(), CommandFailure> {
    let name = path.display();
    let failed = |problem: String| CommandFailure::new(MessageCode::CommandFailed, problem);
    let bytes = std::fs::read(path).map_err(|error| failed(format!("'{name}' cannot be read: {error}")))?;
    let source = Source::new(path.to_string_lossy(), &bytes);
    let around = || -> Vec<Source> {
        let files = quoted_files([path], paths);
        files.into_iter().map(|file| Source::new(file.path.to_string_lossy(), &file.text)).collect()
    };
    let recordings = recording_folder(path);
    // Kernels, and templates of which an instance is recorded.
    let mut recorded: BTreeSet<String> = BTreeSet::new();
    for (name, kernel) in recording::kernels(&recordings) {
        let instances = kernel.launches.iter().filter_map(|counted| counted.launch.instance.split_once('<'));
        recorded.extend(instances.map(|(template, _)| template.to_owned()));
        recorded.extend((!kernel.launches.is_empty()).then_some(name));
    }
    let found = match propose(&source, program, &around, &|kernel| recorded.contains(kernel)) {
        Ok(found) => found,
        Err(problems) => {
            say_on!("{}", render(&problems));
            outcome.has_failed = true;
            return Ok(());
        }
    };
    let FileProposals { proposals, refusals, marked } = &found;
    for refusal in refusals {
        let line = format!("{name}:{}: {}: {}", refusal.line, refusal.kernel, refusal.reason);
        say!("{}", MessageCode::NotProposed.tag(line));
    }
    outcome.proposed += proposals.len();
    outcome.refused += refusals.len();
    let all: Vec<&Proposal> = proposals.iter().collect();
    if !all.is_empty() && is_to_write {
        replace_file(path, &bytes, &insert_lines(&bytes, &all)).map_err(failed)?;
    } else if !all.is_empty() {
        bytes_to_output(&unified_diff(&source.path, &bytes, &all));
    }
    let missing = program.missing_files(&source.path);
    if let Some(first) = missing.iter().find(|name| !is_of_toolkit(name))
        && proposals.iter().any(|proposal| proposal.basis == Basis::UnknownType)
    {
        let line =
            format!("{name}: '{first}' is not found: say where headers are, as in nvtune init {name} -- -I FOLDER");
        say!("{}", MessageCode::HeaderMissing.tag(line));
    }
    let verb = if is_to_write { "written" } else { "proposed" };
    say!("nvtune: {name}: {verb}: {}; left out: {}; marked already: {marked}", all.len(), refusals.len());
    Ok(())
}

/// Whether a header is one of the toolkit's, whose types take no value.
fn is_of_toolkit(header: &str) -> bool {
    const OWN: [&str; 15] = [
        "cuda",
        "cub/",
        "cublas",
        "cufft",
        "cufile",
        "cuComplex.h",
        "cudnn",
        "cupti",
        "curand",
        "cusolver",
        "cusparse",
        "cutensor",
        "cute/",
        "cutlass",
        "device_",
    ];
    OWN.iter().any(|own| header.starts_with(own))
}

/// Returns the folder of a source's recordings: next to an object in the source's folder, or in
/// the folder that the environment names.
fn recording_folder(path: &Path) -> PathBuf {
    let (settings, _) = Settings::new(|name| std::env::var_os(name));
    let parent = settings.captures.or(settings.header_folder);
    let parent = parent.unwrap_or_else(|| path.parent().unwrap_or(Path::new("")).to_path_buf());
    recording::folder(&parent, path.file_stem().unwrap_or_default())
}

/// Puts a text in the place of a file, whole or not at all.
fn replace_file(path: &Path, before: &[u8], after: &[u8]) -> Result<(), String> {
    let name = path.display();
    let failed = |error: std::io::Error| format!("'{name}' cannot be written: {error}");
    // A link is kept.
    let target = path.canonicalize().map_err(failed)?;
    let data = target.metadata().map_err(failed)?;
    let file = unfinished(&target, after, Some(data.permissions())).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    let now = target.metadata().map_err(failed)?;
    if now.ino() != data.ino() || std::fs::read(&target).map_err(failed)? != before {
        return Err(format!("'{name}' has changed since it was read, and is left as it is: run nvtune init again"));
    }
    put_in_place(file, &target).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::{is_of_toolkit, replace_file};

    #[test]
    fn headers_of_the_toolkit_are_known_by_name() {
        for (header, expected) in
            [("cuda_fp16.h", true), ("curand_kernel.h", true), ("cube.h", false), ("curve.h", false)]
        {
            assert_eq!(is_of_toolkit(header), expected, "{header}");
        }
    }

    #[test]
    fn file_that_changed_meanwhile_is_left_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.cu");
        std::fs::write(&path, "changed").expect("written");
        let problem = replace_file(&path, b"before", b"after").expect_err("refused");
        assert!(problem.contains("has changed since it was read"), "{problem}");
        assert_eq!(std::fs::read(&path).expect("read"), b"changed");
        assert_eq!(std::fs::read_dir(folder.path()).expect("read").count(), 1);
        assert_eq!(replace_file(&path, b"changed", b"after"), Ok(()));
        assert_eq!(std::fs::read(&path).expect("read"), b"after");
    }
}
