//! The front end, for one source: gcc's preprocessor and cicc make PTX and launch stubs of it.
//!
//! What device code needs of the source takes a fraction of the time. Its code is not certain to be
//! that of the whole source: for the caller to compare ([`FrontEnd::is_of_device_code`]).

use super::cicc_math;
use super::cicc_output::CiccRun;
use super::dry_run::{DryrunStep, Pipeline};
use super::module_id;
use super::tool_error::{ToolError, io, refuses_text};
use super::toolchain::{
    FrontEnd, FrontEndResult, SourceForm, Toolchain, bytes, read, source_digest, without_blank_lines, write,
};
use crate::cuda::{innermost_loops, with_unroll_pragmas};
use crate::emit::CiccOutput;
use crate::launch::{FrontEndOptions, Math};
use crate::process::TemporaryFolder;
use crate::ptx;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

/// What cicc wrote.
struct Compiled {
    ptx: PathBuf,
    stub: PathBuf,
    /// Its command line.
    line: OsString,
    /// Its messages; `None` where they are not text, or it wrote to standard output.
    messages: Option<String>,
}

/// What cicc made while a source was tuned, and the folder of its files.
#[derive(Debug)]
pub struct CiccOutputs {
    pub outputs: Vec<CiccOutput>,
    _folder: Arc<TemporaryFolder>,
}

impl Toolchain {
    /// Runs the front end on what device code needs of the source with these options; on the whole
    /// source if that is not known, or does not compile.
    pub fn front_end_on_device_code(&self, options: &FrontEndOptions) -> FrontEndResult {
        if self.is_device_code_incomplete.load(Ordering::Relaxed) {
            return self.front_end_on_whole(options);
        }
        let Some(path) = self.device_code(&options.macros).map_err(Arc::new)? else {
            return self.front_end_on_whole(options);
        };
        match self.front_end_on(&path, options) {
            Err(ToolError::Failed { .. }) => {
                let whole = self.front_end_on_whole(options);
                self.is_device_code_incomplete.fetch_or(whole.is_ok(), Ordering::Relaxed);
                whole
            }
            made => made.map(Arc::new).map_err(Arc::new),
        }
    }

    /// Whether the front end was or is being run on the whole source with these options.
    pub fn has_begun_whole(&self, options: &FrontEndOptions) -> bool {
        self.whole.lock().unwrap_or_else(PoisonError::into_inner).contains_key(options)
    }

    /// Runs the front end on the whole source with these options, unless it was or is being run so.
    pub fn front_end_on_whole(&self, options: &FrontEndOptions) -> FrontEndResult {
        let made = {
            let mut known = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry(options.clone()).or_default())
        };
        let run = || {
            let source = self.preprocessed(&options.macros, SourceForm::Plain)?;
            self.front_end_on(&source, options)
        };
        made.get_or_init(|| run().map(Arc::new).map_err(Arc::new)).clone()
    }

    /// Runs the front end on a preprocessed source: the whole, or a part.
    fn front_end_on(&self, source: &Path, options: &FrontEndOptions) -> Result<FrontEnd, ToolError> {
        let front_end = self.front_end_under(source, options, &self.module_id)?;
        if !is_named_after(&self.module_id, &front_end.ptx) {
            return Ok(front_end);
        }
        // A kernel in an anonymous namespace, or what it uses of one, is named after the module id:
        // only the true one will do.
        let id = self.true_module_id(&options.macros)?;
        let with_id = |text: &str| module_id::with_id(text.to_owned(), &self.module_id, &id);
        match (with_id(&front_end.ptx), with_id(&front_end.stub)) {
            (Some(ptx), Some(stub)) => Ok(FrontEnd { ptx: ptx.into(), stub, ..front_end }),
            _ => self.front_end_under(source, options, &id),
        }
    }

    fn front_end_under(
        &self,
        source: &Path,
        options: &FrontEndOptions,
        module_id: &str,
    ) -> Result<FrontEnd, ToolError> {
        let whole = self.preprocessed(&options.macros, SourceForm::Plain)?;
        let is_of_device_code = source != whole;
        let given = bytes(source)?;
        let made = match options.unroll {
            Some(factor) => self.cicc_unrolled(&given, factor, module_id, options.math)?,
            None => self.cicc(source, module_id, options.math, &[])?,
        };
        if options.is_macros_alone() && !is_of_device_code {
            self.keep_output(&made);
        }
        let parsed_bytes = if is_of_device_code { without_blank_lines(&given) } else { given.len() };
        let text = if is_of_device_code { bytes(&whole)? } else { given };
        let (source_digest, files, source_bytes) = (source_digest(&text), self.files(&text), text.len());
        let (ptx, stub) = (read(&made.ptx)?, read(&made.stub)?);
        Ok(FrontEnd {
            source_digest,
            source_bytes,
            parsed_bytes,
            files,
            ptx: ptx.into(),
            stub,
            is_of_device_code,
            is_relocatable: self.pipeline.is_relocatable(),
            isolated: Mutex::default(),
        })
    }

    /// The file with what device code needs of the source, with these macros defined; `None` if
    /// that is not known.
    fn device_code(&self, macros: &BTreeMap<String, i64>) -> Result<Option<PathBuf>, ToolError> {
        let whole = self.preprocessed(macros, SourceForm::Plain)?;
        let path = self.preprocessed(macros, SourceForm::DeviceCode)?;
        Ok(Some(path).filter(|path| *path != whole))
    }

    /// The stub file of the source with `text` behind it: what the compiler says to a question
    /// of ours.
    pub fn ask(&self, macros: &BTreeMap<String, i64>, text: &str) -> Result<String, ToolError> {
        let source = self.preprocessed(macros, SourceForm::Plain)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let question = self.folder.path().join(format!("{number}.ii"));
        std::fs::copy(&source, &question).map_err(io(&question))?;
        append(&question, text)?;
        // Nobody wants the code: for link-time optimisation none is made yet, which is most of the
        // time that cicc takes.
        let asked = self.cicc(&question, &self.module_id, Math::NONE, &["-lto".into()]);
        let asked = match asked {
            // Without the option it would say the same.
            Err(ToolError::Failed { message, .. }) if !refuses_text(&message) => {
                self.cicc(&question, &self.module_id, Math::NONE, &[])
            }
            asked => asked,
        };
        let _ = std::fs::remove_file(question);
        read(&asked?.stub)
    }

    /// Notes what cicc made, if the final build may take it.
    fn keep_output(&self, made: &Compiled) {
        let (Some(step), Some(messages)) = (made.line.to_str().map(DryrunStep::new), &made.messages) else { return };
        let arguments: Vec<&str> = step.arguments().collect();
        // What cannot be read now is made again.
        let output =
            CiccRun::new(&arguments).and_then(|run| run.output(self.folder.path().as_os_str(), messages).ok()?);
        self.cicc_outputs.lock().unwrap_or_else(PoisonError::into_inner).extend(output);
    }

    /// What cicc made so far that the final build may take.
    pub fn cicc_outputs(&self) -> CiccOutputs {
        let outputs = self.cicc_outputs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        CiccOutputs { outputs, _folder: Arc::clone(&self.folder) }
    }

    /// Runs cicc on a preprocessed source, with these math options besides the build's.
    fn cicc(
        &self,
        preprocessed: &Path,
        module_id: &str,
        math: Math,
        extra: &[OsString],
    ) -> Result<Compiled, ToolError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let place = |extension: &str| self.folder.path().join(format!("{number}.{extension}"));
        let (ptx, stub, id) = (place("ptx"), place("stub.c"), place("module_id"));
        write(&id, module_id)?;
        let Pipeline { preprocess, cicc, .. } = &self.pipeline;
        let named = |option: &str| cicc.option(option).unwrap_or_default();
        let (host, device) = (place("c"), place("gpu"));
        let mut replacements: Vec<(&str, &Path)> = vec![
            (preprocess.option("-o").unwrap_or_default(), preprocessed),
            (named("-o"), &ptx),
            (named("--stub_file_name"), &stub),
            (named("--module_id_file_name"), &id),
            (named("--gen_c_file_name"), &host),
            (named("--gen_device_file_name"), &device),
        ];
        replacements.extend(cicc_math::replacements(math));
        let line = cicc.rewritten(&replacements, extra);
        let (stdout, messages) = self.run("cicc", &line)?;
        let messages = String::from_utf8(messages).ok().filter(|_| stdout.is_empty());
        Ok(Compiled { ptx, stub, line, messages })
    }

    /// Runs cicc on a preprocessed source whose kernels' innermost loops are unrolled.
    fn cicc_unrolled(&self, source: &[u8], factor: u32, module_id: &str, math: Math) -> Result<Compiled, ToolError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.path().join(format!("{number}.ii"));
        std::fs::write(&path, with_unroll_pragmas(source, &innermost_loops(source), factor)).map_err(io(&path))?;
        let compiled = self.cicc(&path, module_id, math, &[]);
        let _ = std::fs::remove_file(path);
        compiled
    }
}

/// Whether a function of this PTX has or uses a name that the module id is part of. Headers such
/// as `<cuda/std/ranges>` leave variables of that kind which nobody uses.
fn is_named_after(module_id: &str, ptx: &str) -> bool {
    ptx.contains(module_id)
        && ptx::Module::parse(ptx).map_or(true, |module| {
            module.functions.iter().any(|function| ptx[function.span.clone()].contains(module_id))
        })
}

fn append(path: &Path, text: &str) -> Result<(), ToolError> {
    std::fs::OpenOptions::new()
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(io(path))
}
