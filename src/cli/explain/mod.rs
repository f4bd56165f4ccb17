//! `nvtune explain CODE`: the entry of a message. `nvtune explain FILE.cu[:KERNEL]`: what the
//! compiled kernels take and wait for, without a GPU.

mod code;
mod compiled;
mod explanation;
mod sarif;
mod source_lines;

use super::exit_status::{CommandFailure, exit_code};
use super::records;
use super::wrap::columns;
use crate::diag::MessageCode;
use crate::diag::console::Console;
use crate::driver::marked_source::{MarkedSource, read};
use crate::nvcc::RealNvcc;
use crate::process;
use crate::ptx::Module;
use crate::put_on;
use crate::record::{Record, read_regular};
use crate::sass::Cubin;
use crate::tune::BaselineRun;
use compiled::{CompiledSource, ExplainedCall};
use explanation::{Explanation, KernelView};
use rayon::prelude::*;
use source_lines::SourceLines;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The form of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    #[default]
    Text,
    Json,
    Sarif,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct ExplainOptions {
    /// A code, or a source with or without a kernel.
    pub subject: OsString,
    pub form: Form,
    /// For nvcc; empty for those of the source's record, if there is one.
    pub arguments: Vec<OsString>,
}

/// Explains a code or the kernels of a source.
pub fn run(options: &ExplainOptions) -> u8 {
    let text = options.subject.to_string_lossy();
    if code::is_code(&text) {
        return code::run(&text);
    }
    exit_code(explain(options).map(|()| 0))
}

fn explain(options: &ExplainOptions) -> Result<(), CommandFailure> {
    let (path, kernel) = split_place(&options.subject)?;
    let nvcc = RealNvcc::find(None, |name| std::env::var_os(name))
        .map_err(|error| CommandFailure::new(MessageCode::NvccNotFound, error.to_string()))?;
    let current = std::env::current_dir().unwrap_or_default();
    let (arguments, folder) = match recorded_decision(&path) {
        Some(record) if options.arguments.is_empty() => {
            (record.arguments.iter().map(OsString::from).collect(), PathBuf::from(record.folder))
        }
        _ => (options.arguments.clone(), current.clone()),
    };
    // The record's folder may be another one than the current one.
    let source = if folder == current { path.clone() } else { std::path::absolute(&path).unwrap_or(path.clone()) };
    let call = ExplainedCall::new(&nvcc, &source, &arguments)?;
    // The compiler makes the code while it is asked for the launches.
    let (runs, compiled) = std::thread::scope(|scope| {
        let compiling = process::spawn_or_run(scope, || CompiledSource::new(&nvcc, &call, &source, &folder));
        (baseline_runs(&call, &source), compiling.join())
    });
    let explanations = explanations(&call, &compiled?, runs, (&source, kernel.as_deref()))?;
    let failed = |error: serde_json::Error| CommandFailure::new(MessageCode::CommandFailed, error.to_string());
    let text = match options.form {
        Form::Text => explanations.iter().map(|explanation| explanation.text(columns())).collect(),
        Form::Json => serde_json::to_string_pretty(&explanations).map_err(failed)? + "\n",
        Form::Sarif => serde_json::to_string_pretty(&sarif::sarif(&explanations, &current)).map_err(failed)? + "\n",
    };
    put_on!("{text}");
    Ok(())
}

/// Splits `FILE.cu:KERNEL`; a file may have a colon in its name.
fn split_place(subject: &OsString) -> Result<(PathBuf, Option<String>), CommandFailure> {
    let whole = PathBuf::from(subject);
    if whole.is_file() {
        return Ok((whole, None));
    }
    let text = subject.to_string_lossy();
    if let Some((path, kernel)) = text.rsplit_once(".cu:").map(|(stem, kernel)| (format!("{stem}.cu"), kernel))
        && Path::new(&path).is_file()
    {
        return Ok((path.into(), Some(kernel.to_owned())));
    }
    let message = format!("'{text}' is neither a code, as in N0031, nor a source that is there, as in nbody.cu:nbody");
    Err(CommandFailure::new(MessageCode::WrongArgument, message))
}

/// The record of a source, which has the options of its build.
fn recorded_decision(source: &Path) -> Option<Record> {
    let path = records::of_place(source).ok()?.into_iter().next()?;
    let record: Record = serde_json::from_slice(&read_regular(&path).ok()?).ok()?;
    (!record.folder.is_empty() && Path::new(&record.folder).is_dir()).then_some(record)
}

fn explanations(
    call: &ExplainedCall,
    compiled: &CompiledSource,
    runs: Result<Vec<BaselineRun>, String>,
    (source, kernel): (&Path, Option<&str>),
) -> Result<Vec<Explanation>, CommandFailure> {
    let failed = |problem: String| CommandFailure::new(MessageCode::CommandFailed, problem);
    let module = Module::parse(&compiled.ptx).map_err(|error| failed(format!("cannot read nvcc's PTX: {error}")))?;
    let cubin = Cubin::parse(&compiled.cubin).map_err(|error| failed(format!("cannot read nvcc's code: {error}")))?;
    let lines = SourceLines::new(&compiled.ptx, &source.to_string_lossy());
    let is_meant = |symbol: &str| kernel.is_none_or(|kernel| is_named(symbol, kernel));
    let explanations: Vec<Explanation> = cubin
        .kernels()
        .par_iter()
        .filter(|kernel| is_meant(kernel.name))
        .map(|kernel| {
            let run = match &runs {
                Ok(runs) => runs
                    .iter()
                    .find(|run| run.symbol == kernel.name)
                    .ok_or_else(|| "no tuning comment names it, so that no launch is known".to_owned()),
                Err(problem) => Err(problem.clone()),
            };
            Explanation::new(kernel, &KernelView { call, module: &module, lines: &lines, run })
        })
        .collect();
    if explanations.is_empty() {
        let names: Vec<String> =
            cubin.kernels().iter().map(|kernel| crate::workload::demangled_name(kernel.name)).collect();
        let message = match kernel {
            Some(kernel) if !names.is_empty() => {
                format!("'{}' has no kernel '{kernel}'; it has {}", source.display(), names.join(", "))
            }
            _ => format!("'{}' has no kernel", source.display()),
        };
        return Err(CommandFailure::new(MessageCode::WrongArgument, message));
    }
    Ok(explanations)
}

/// Whether a kernel is meant by a name: its symbol, or its name with or without scopes and
/// parameters.
fn is_named(symbol: &str, name: &str) -> bool {
    let whole = crate::workload::demangled_name(symbol);
    let head = whole.split(['(', '<']).next().unwrap_or(&whole);
    let last = head.rsplit("::").next().unwrap_or(head);
    // The return type of a template's instance comes before its name.
    let last = last.rsplit(' ').next().unwrap_or(last);
    [symbol, whole.as_str(), head, last].contains(&name)
}

/// The launches of the kernels that have a comment; the error is why they are not known.
fn baseline_runs(call: &ExplainedCall, source: &Path) -> Result<Vec<BaselineRun>, String> {
    let settings = compiled::settings();
    let console = Console::new(false);
    let object = crate::process::TemporaryFolder::new().map_err(|error| error.to_string())?;
    let mut arguments = call.options.clone();
    arguments.extend(["-c".into(), "-o".into(), object.path().join("k.o").into(), source.into()]);
    let unread = || "its comment cannot be read".to_owned();
    let invocation = read(&arguments).ok_or_else(unread)?;
    let Some(marked) = MarkedSource::of(&invocation).pop() else { return Ok(Vec::new()) };
    console.compiling(&marked.name());
    let (mut annotations, problems) = marked.annotations(settings.files.as_deref());
    annotations.retain(|annotation| !annotation.is_for_all_instances());
    console.diagnostics(&problems);
    if !problems.is_empty() {
        return Err(unread());
    }
    let toolchain = marked.toolchain(&call.dryrun, &annotations, None)?;
    Ok(BaselineRun::for_kernels(&settings, &console, &toolchain, &annotations))
}
