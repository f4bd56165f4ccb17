//! `nvtune tune --compile-commands FILE`: all marked kernels of a project -> the cache and one
//! lock file.

use super::exit_status::CommandFailure;
use super::jobs;
use super::jobs::{BuildJob, Workers};
use super::lock;
use crate::diag::MessageCode;
use crate::driver::marked_source;
use crate::measure::split;
use crate::nvcc::are_nvcc_arguments;
use crate::put;
use crate::settings::Trust;
use serde::Deserialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What `nvtune tune` is to do.
pub struct TuneOptions {
    pub commands: PathBuf,
    pub lock: Option<PathBuf>,
    pub workers: Workers,
    pub anew: bool,
}

/// An entry of a compilation database (Clang's "JSON Compilation Database Format
/// Specification").
#[derive(Debug, Deserialize)]
struct CompileCommand {
    directory: PathBuf,
    file: String,
    command: Option<String>,
    arguments: Option<Vec<String>>,
}

/// Runs it; the exit code is 1 where a source could not be tuned or the lock file not be
/// written.
pub fn run(options: &TuneOptions) -> u8 {
    super::exit_status::exit_code(tune_project(options))
}

fn tune_project(options: &TuneOptions) -> Result<u8, CommandFailure> {
    let path = lock::place(options.lock.as_deref())?;
    let mut file = lock::read(&path)?;
    let all = build_jobs(&options.commands).map_err(CommandFailure::with(MessageCode::DatabaseNotRead))?;
    let here = lock::current_folder()?;
    let is_marked =
        |job: &BuildJob| std::env::set_current_dir(&job.folder).is_ok() && marked_source::is_marked(&job.arguments);
    let marked: Vec<BuildJob> = all.into_iter().filter(is_marked).collect();
    let lost = |error| {
        CommandFailure::new(MessageCode::CommandFailed, format!("cannot go back to '{}': {error}", here.display()))
    };
    std::env::set_current_dir(&here).map_err(lost)?;
    if marked.is_empty() {
        let commands = options.commands.display();
        return Err(CommandFailure::new(
            MessageCode::NothingMarked,
            format!("no call of nvcc in '{commands}' compiles a marked kernel"),
        ));
    }
    let trust = if options.anew { Trust::Nothing } else { Trust::Timed };
    let (records, code) = jobs::run(marked, &options.workers, trust);
    let mut results = lock::Results::default();
    for record in &records {
        results.add(record, &path);
    }
    let changed = lock::merge(&mut file, &results);
    file.write(&path).map_err(CommandFailure::with(MessageCode::CommandFailed))?;
    put!("{}: entries: {}; new or changed: {changed}", path.display(), file.entries.len());
    Ok(code)
}

/// The calls of nvcc in a compilation database.
fn build_jobs(path: &Path) -> Result<Vec<BuildJob>, String> {
    let failed = |problem: String| format!("'{}': {problem}", path.display());
    let text = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let entries: Vec<CompileCommand> = serde_json::from_slice(&text).map_err(|error| failed(error.to_string()))?;
    let mut jobs = Vec::new();
    for CompileCommand { directory, file, command, arguments } in entries {
        let words = match (arguments, command) {
            (Some(words), _) => words,
            (None, Some(command)) => split(&command).map_err(|error| failed(format!("{file}: {error}")))?,
            (None, None) => continue,
        };
        let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        let Some((nvcc, arguments)) = call_of_nvcc(&words) else { continue };
        // Relative to the database, where it says so.
        let folder = path.parent().unwrap_or(Path::new("")).join(directory);
        let folder = std::path::absolute(folder).map_err(|error| failed(error.to_string()))?;
        jobs.push(BuildJob { folder, file, nvcc: nvcc.cloned(), arguments: arguments.to_vec() });
    }
    Ok(jobs)
}

/// Returns nvcc as a command names it, and its arguments. Launchers may precede it, and
/// `nvtune` may stand for it.
fn call_of_nvcc(words: &[OsString]) -> Option<(Option<&OsString>, &[OsString])> {
    let after = |program: &str| {
        let at = words.iter().position(|word| Path::new(word).file_name().is_some_and(|name| name == program))?;
        words[at..].split_first()
    };
    let named = after("nvcc").map(|(nvcc, arguments)| (Some(nvcc), arguments));
    let nameless = || after("nvtune").filter(|(_, words)| are_nvcc_arguments(words)).map(|(_, words)| (None, words));
    named.or_else(nameless)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_nvcc_are_read_with_what_stands_before_them_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("compile_commands.json");
        let text = r#"[
            {"directory": "/b", "file": "a.cu", "command": "ccache /opt/cuda/bin/nvcc -DX=\\\"y\\\" -c 'a b.cu' -o a.o", "output": "a.o"},
            {"directory": "sub", "file": "c.cu", "arguments": ["nvcc", "-c", "c.cu"]},
            {"directory": "/b", "file": "d.cpp", "command": "g++ -c d.cpp"},
            {"directory": "/b", "file": "e.cu"},
            {"directory": "/b", "file": "f.cu", "command": "/opt/bin/nvtune -c f.cu -o nvcc.o"},
            {"directory": "/b", "file": "g.cu", "command": "nvtune report g.cu"}
        ]"#;
        std::fs::write(&path, text).expect("written");
        let job = |folder: PathBuf, file: &str, words: &[&str]| {
            let mut words = words.iter().map(OsString::from);
            BuildJob { folder, file: file.to_owned(), nvcc: words.next(), arguments: words.collect() }
        };
        let expected = [
            job("/b".into(), "a.cu", &["/opt/cuda/bin/nvcc", r#"-DX="y""#, "-c", "a b.cu", "-o", "a.o"]),
            job(folder.path().join("sub"), "c.cu", &["nvcc", "-c", "c.cu"]),
            BuildJob { nvcc: None, ..job("/b".into(), "f.cu", &["nvtune", "-c", "f.cu", "-o", "nvcc.o"]) },
        ];
        assert_eq!(build_jobs(&path).expect("it is one"), expected);
        std::fs::write(&path, "{}").expect("written");
        assert!(build_jobs(&path).expect_err("no list").contains("compile_commands.json': invalid type: map"));
    }
}
