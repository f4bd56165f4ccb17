//! A marked source on its way to a build: its annotations, and what was decided for them.

use super::marked_source;
use super::marked_source::{MarkedSource, compiled_kernels};
use crate::comment::{Annotation, are_conditional, choose_compiled_parameters, has_alternatives, without_alternatives};
use crate::diag::Diagnostic;
use crate::emit::{Header, HeaderKernel, StubText};
use crate::nvcc::{CiccOutputs, Dryrun, Invocation, Toolchain};
use crate::process;
use crate::process::ScopedWork;
use crate::record::{FORMAT, Record, read_regular};
use crate::search::Provenance;
use crate::tune;
use crate::tune::{Preprocessing, Tuned};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A marked source with its annotations and, later, what was decided.
pub struct Tuning {
    pub source: MarkedSource,
    pub annotations: Vec<Annotation>,
    /// The kernels that were left out, for they are not compiled: file, and line.
    pub left_out: BTreeSet<(String, u32)>,
    /// Whether something kept kernels from being looked at that another build may not meet.
    pub is_provisional: bool,
    /// The newest that machine code is made for; empty where there is none.
    pub architecture: String,
    pub tuned: Vec<Tuned>,
    /// The launch stubs that are to record launches.
    pub captures: Vec<StubText>,
    /// What cicc made for it.
    pub cicc_outputs: Vec<CiccOutputs>,
    /// The record's checksum, where it is known from the cache.
    pub record: Option<String>,
    /// Whether header and record of the build stay after it.
    pub keeps_results: bool,
}

impl Tuning {
    /// Of a source whose comments were read.
    pub fn new(source: MarkedSource, annotations: Vec<Annotation>) -> Self {
        Self {
            source,
            annotations,
            left_out: BTreeSet::new(),
            is_provisional: false,
            architecture: String::new(),
            tuned: Vec::new(),
            captures: Vec::new(),
            cicc_outputs: Vec::new(),
            record: None,
            keeps_results: true,
        }
    }

    /// Has the source preprocessed for the host and, at the same time, for `device`'s architecture
    /// as `plan` has it; returns what compiles it for that.
    ///
    /// # Errors
    /// Why it cannot be tuned.
    pub fn preprocess(
        &mut self,
        dryrun: &Dryrun,
        device: Option<u32>,
        plan: impl FnOnce(&Toolchain, &[Annotation]) -> Vec<Preprocessing>,
    ) -> Result<Toolchain, String> {
        let made = self.source.toolchain(dryrun, &self.annotations, device);
        let planned = made.as_ref().ok().map(|toolchain| (toolchain, plan(toolchain, &self.annotations)));
        let includes_header = self.source.includes_header;
        std::thread::scope(|scope| {
            let runs = planned.iter().flat_map(|(toolchain, runs)| runs.iter().map(move |run| || run.run(toolchain)));
            let ahead: Vec<_> = runs.map(|run| process::spawn_or_run(scope, run)).collect();
            self.source.preprocess(dryrun, &self.annotations);
            ahead.into_iter().for_each(ScopedWork::join);
        });
        if let Ok(toolchain) = &made {
            self.choose_parameters(toolchain);
        }
        match self.source.includes_header == includes_header {
            true => made,
            false => self.source.toolchain(dryrun, &self.annotations, device),
        }
    }

    /// Gives kernels with `#if` among their parameters those that are compiled.
    fn choose_parameters(&mut self, toolchain: &Toolchain) {
        let is_open = |of: &&mut Annotation| !of.kernel.alternatives.is_empty();
        let mut open = self.annotations.iter_mut().filter(is_open).peekable();
        // Where the source cannot be preprocessed, the compiler will say why.
        if open.peek().is_some()
            && let Ok(preprocessed) = toolchain.device_source()
        {
            let preprocessed = String::from_utf8_lossy(&preprocessed);
            open.for_each(|annotation| choose_compiled_parameters(annotation, &preprocessed));
        }
    }

    /// Leaves out what is not compiled of kernels of which `#if` lets one through, and where
    /// nothing else is compiled (`alone`) all that is not; tells whether there are such.
    ///
    /// # Errors
    /// Two kernels of one name that are both compiled.
    pub fn leave_out_uncompiled(&mut self, toolchain: &Toolchain, alone: bool) -> Result<bool, Vec<Diagnostic>> {
        let all: BTreeSet<(String, u32)> = self.annotations.iter().map(place).collect();
        if has_alternatives(&self.annotations) {
            let annotations = std::mem::take(&mut self.annotations);
            let is_compiled = compiled_kernels(toolchain);
            let is_compiled =
                |of: &Annotation| is_compiled.as_ref().is_some_and(|is_compiled| is_compiled(of, true) == Some(true));
            self.annotations = without_alternatives(annotations, is_compiled)?;
        }
        if alone {
            // Of what is not certain the header speaks: host code may.
            self.annotations = self.among(toolchain, |is_compiled| is_compiled != Some(false)).into_owned();
        }
        let kept: BTreeSet<(String, u32)> = self.annotations.iter().map(place).collect();
        self.left_out = all.difference(&kept).cloned().collect();
        Ok(!self.left_out.is_empty())
    }

    /// Leaves out the kernels that an earlier build of the same left out.
    pub fn leave_out(&mut self, kernels: &BTreeSet<(String, u32)>) {
        self.annotations.retain(|annotation| !kernels.contains(&place(annotation)));
        self.left_out.clone_from(kernels);
    }

    /// The annotations of the kernels that are compiled for an architecture, as far as `#if`
    /// and what is included say. One that is left out may have another of its name in its
    /// place, which nobody marked.
    pub fn compiled(&self, toolchain: &Toolchain) -> Cow<'_, [Annotation]> {
        self.among(toolchain, |is_compiled| is_compiled == Some(true))
    }

    /// The annotations of the kernels of which it is wanted that they are compiled, are not, or
    /// that it is unknown.
    fn among(&self, toolchain: &Toolchain, is_wanted: impl Fn(Option<bool>) -> bool) -> Cow<'_, [Annotation]> {
        let are_conditional = are_conditional(&self.annotations);
        let (all, own) = (|| Cow::Borrowed(self.annotations.as_slice()), self.source.name());
        if !are_conditional.contains(&true) && self.annotations.iter().all(|of| of.source.path == own) {
            return all();
        }
        // Where the source cannot be preprocessed, the compiler will say why.
        let Some(is_compiled) = compiled_kernels(toolchain) else { return all() };
        let kernels = self.annotations.iter().zip(are_conditional);
        kernels
            .filter(|(of, is_conditional)| is_wanted(is_compiled(of, *is_conditional)))
            .map(|(of, _)| of.clone())
            .collect()
    }

    /// Whether the same inputs would have it decided so again: nothing was only for now, and
    /// what could be timed (`can_time`: there is a GPU for it) was, or is refused for good.
    pub fn is_final(&self, can_time: bool) -> bool {
        let is_final = |tuned: &Tuned| {
            let decision = &tuned.decision;
            let has_workload = |of: &Annotation| of.name == decision.name && of.has_workload();
            let wants_time = can_time && self.annotations.iter().any(has_workload);
            let pinned = decision.pinned.as_ref();
            let timed = !wants_time
                || decision.untimed.is_some()
                || decision.provenance == Provenance::Locked
                || pinned.is_some_and(|found| found.is_measured());
            timed && !decision.provisional
        };
        !self.is_provisional && self.tuned.iter().all(is_final)
    }

    /// Whether the object holds a winner.
    pub fn has_winners(&self) -> bool {
        self.tuned.iter().any(|tuned| tuned.planned_kernels().next().is_some())
    }

    /// Whether the source includes its header. One that speaks of no kernel stands in place of
    /// what an earlier build left.
    pub fn needs_header(&self) -> bool {
        self.source.includes_header && !(self.annotations.is_empty() && self.left_out.is_empty())
    }

    /// Whether a header belongs to it: something was decided, or the source includes one.
    pub fn has_results(&self) -> bool {
        !self.tuned.is_empty() || self.needs_header()
    }

    /// The text of its header.
    pub fn header_text(&self) -> String {
        Header { source: self.source.file_name(), kernels: self.header_kernels() }.text()
    }

    /// Header and record in this folder.
    pub fn results_in(&self, folder: &Path) -> (PathBuf, PathBuf) {
        let stem = &self.source.stem;
        (folder.join(Header::file_name(stem)), folder.join(format!("{stem}.tune.json")))
    }

    /// The header in this folder, where the compile reads it.
    pub fn header_in(&self, folder: &Path) -> Option<PathBuf> {
        self.needs_header().then(|| self.results_in(folder).0)
    }

    /// Returns both paths if the record belongs to another existing object: its object, then
    /// the call's. With `shares_folder`, all records are in one folder, not next to their
    /// objects.
    pub fn object_of_others(&self, record: &Path, call: &Invocation, shares_folder: bool) -> Option<(String, String)> {
        let present: Record = serde_json::from_slice(&read_regular(record).ok()?).ok()?;
        let arguments: Vec<OsString> = present.arguments.iter().map(OsString::from).collect();
        let whole = |folder: &Path, path: &Path| folder.join(path).canonicalize().ok();
        let other = marked_source::read(&arguments)?.product_of(Path::new(&present.source));
        let own = call.product_of(&self.source.path);
        let its = whole(Path::new(&present.folder), &other)?;
        // A record next to its object that names one in another folder came there with a copy of it all.
        let is_here = shares_folder || its.parent() == whole(Path::new(""), record)?.parent();
        let differs = whole(Path::new(""), &own).is_none_or(|own| own != its);
        (differs && is_here).then(|| (other.display().to_string(), own.display().to_string()))
    }

    /// What the header says: the winners and, for a source that includes it, the baselines of
    /// kernels that were not tuned.
    fn header_kernels(&self) -> Vec<HeaderKernel> {
        let tuned = self.tuned.iter().map(Tuned::header);
        if !self.source.includes_header {
            return tuned.collect();
        }
        let is_tuned = |annotation: &Annotation| self.tuned.iter().any(|tuned| tuned.decision.name == annotation.name);
        let left: Vec<Annotation> =
            self.annotations.iter().filter(|annotation| !is_tuned(annotation)).cloned().collect();
        let baselines = tune::baseline_headers(&left, &self.architecture);
        tuned.chain(baselines).collect()
    }

    /// The record of a call of nvcc with these arguments.
    pub fn record(&self, arguments: &[OsString]) -> Record {
        Record {
            format: FORMAT,
            nvtune: env!("CARGO_PKG_VERSION").to_owned(),
            source: self.source.path.to_string_lossy().into_owned(),
            folder: std::env::current_dir().map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default(),
            arguments: arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            kernels: self.tuned.iter().flat_map(Tuned::decisions).cloned().collect(),
        }
    }
}

/// Where a kernel is: file, and line.
fn place(annotation: &Annotation) -> (String, u32) {
    (annotation.source.path.clone(), annotation.kernel.line)
}
