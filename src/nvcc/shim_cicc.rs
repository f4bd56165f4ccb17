//! The `cicc` of the overlay toolkit: runs the real one, unless its output is known, and writes
//! dispatches into the stub file.

use super::cicc_output::CiccRun;
use super::plan_folder::{NoPlan, SharedPlan};
use super::shim_ptxas::cannot_start;
use crate::diag::exit_code;
use crate::emit::{LaunchesByAddress, Part, ShimOutcome, StubText, rewrite_stubs};
use crate::process;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// The name under which the overlay holds the real cicc.
pub const REAL_CICC: &str = "nvtune-real-cicc";

/// Exit code of the shim where a stub cannot be rewritten: nvtune builds again without a
/// plan.
const NOT_WRITTEN: u8 = 255;

/// Runs as cicc; `arguments` begin with the path it was called by. Returns the exit code.
pub fn run(arguments: &[OsString]) -> u8 {
    let neighbour = arguments.first().map(PathBuf::from).unwrap_or_default().with_file_name(REAL_CICC);
    // By its own path: what cicc looks for next to itself is there.
    let real = neighbour.read_link().unwrap_or(neighbour);
    let options = arguments.get(1..).unwrap_or_default();
    let mut cicc = Command::new(real);
    cicc.args(options);
    let shared = match SharedPlan::wait() {
        Ok(Some(shared)) => shared,
        Ok(None) => return cannot_start("cicc", &cicc.exec()),
        Err(NoPlan) => return NOT_WRITTEN,
    };
    let source = option(options, "--orig_src_file_name").unwrap_or_default().to_string_lossy();
    let stubs: Vec<&StubText> = shared.plan.stubs.iter().filter(|stub| stub.source == source).collect();
    let file = option(options, "--stub_file_name").filter(|_| !stubs.is_empty());
    // What is half written for a fault is written again.
    let known = CiccRun::new(options).and_then(|run| run.write_known(&shared.plan.cicc_outputs).ok()?);
    let ran = match known {
        Some(messages) => {
            // Nor does cicc fail where nobody hears it.
            let _ = std::io::stderr().write_all(messages.as_bytes());
            Ok(ExitStatus::default())
        }
        None => process::run_tool(&mut cicc),
    };
    let problems = match (ran, file) {
        (Ok(status), _) if !status.success() => return exit_code(status),
        (Ok(_), None) => return 0,
        (Ok(_), Some(file)) => rewrite(Path::new(file), &stubs).map_err(|error| format!("cannot be written: {error}")),
        (Err(error), None) => return cannot_start("cicc", &error),
        (Err(error), Some(_)) => Err(format!("cannot be made: cicc cannot be started: {error}")),
    };
    let outcomes = outcomes(problems, &stubs);
    match shared.answer(&outcomes) {
        Ok(()) if outcomes.iter().all(|outcome| outcome.problem.is_none()) => 0,
        _ => NOT_WRITTEN,
    }
}

/// Returns an outcome for each stub: the problems one by one, or one of all.
fn outcomes(problems: Result<Vec<Option<String>>, String>, stubs: &[&StubText]) -> Vec<ShimOutcome> {
    let problems = problems.unwrap_or_else(|problem| vec![Some(format!("its launch stub {problem}")); stubs.len()]);
    let outcome = |(stub, problem): (&&StubText, Option<String>)| ShimOutcome {
        part: Part::Stub,
        source: Some(stub.source.clone()),
        architecture: String::new(),
        symbol: stub.stub.clone(),
        problem,
    };
    stubs.iter().zip(problems).map(outcome).collect()
}

/// Rewrites the stub file, and calls in the host code that includes it. Returns the problem of
/// each stub that has one.
fn rewrite(file: &Path, stubs: &[&StubText]) -> std::io::Result<Vec<Option<String>>> {
    let text = std::fs::read_to_string(file)?;
    let host_code = file.to_str().and_then(|name| name.strip_suffix(".stub.c")).map(|stem| format!("{stem}.cpp"));
    // cudafe++ runs before cicc, which needs the module's id from it.
    let by_address = match &host_code {
        Some(name) if Path::new(name).exists() => LaunchesByAddress::new(&std::fs::read(name)?),
        _ => None,
    };
    let rewritten = rewrite_stubs(&text, stubs, by_address.as_ref());
    if let (Some(name), Some(by_address)) = (&host_code, by_address)
        && rewritten.text != text
    {
        write(Path::new(name), &by_address.host_code)?;
    }
    write(file, rewritten.text.as_bytes())?;
    Ok(rewritten.problems)
}

fn write(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text)?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// The value of an option, given as the next word or after `=`.
fn option<'a>(options: &'a [OsString], name: &str) -> Option<&'a OsStr> {
    options.iter().enumerate().find_map(|(index, word)| {
        if word == name {
            return options.get(index + 1).map(OsString::as_os_str);
        }
        let value = word.as_bytes().strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(OsStr::from_bytes(value))
    })
}
