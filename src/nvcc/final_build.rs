//! One run of nvcc from the overlay toolkit: kernels, stubs -> nvcc's exit status, or what it
//! did not build as it was timed.

use super::overlay::Overlay;
use super::programs::Programs;
use crate::emit::{BuildPlan, CiccOutput, Part, PlannedKernel, ShimOutcome, StubText};
use crate::process;
use crate::process::TemporaryFolder;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};

/// What came of it.
pub enum Built {
    Done(ExitStatus),
    /// Not what was timed.
    Differs(Vec<Wrong>),
}

/// A kernel that is not built as it was timed.
pub struct Wrong {
    /// Where it is, if the call has several sources.
    pub source: Option<String>,
    /// That of its code or of its launch stub.
    pub symbol: String,
    pub problem: String,
}

/// Runs nvcc with a build plan for the shims; `sources` are those of the call, where it has
/// several.
///
/// # Errors
/// Where nvcc cannot be started so; the text is for the user.
pub fn build(
    Programs { bin, cicc }: &Programs,
    arguments: &[OsString],
    (sources, kernels, stubs): (Vec<String>, Vec<PlannedKernel>, Vec<StubText>),
    cicc_outputs: Vec<CiccOutput>,
) -> Result<Built, String> {
    let own = std::env::current_exe().map_err(|error| format!("cannot find nvtune's own program: {error}"))?;
    let cicc = cicc.as_deref().filter(|_| !stubs.is_empty() || !cicc_outputs.is_empty());
    let overlay = Overlay::new(bin, cicc, &own).map_err(|error| error.to_string())?;
    let folder = TemporaryFolder::new().map_err(|error| format!("cannot make a temporary folder: {error}"))?;
    let answers = folder.path().join("answers");
    let plan_file = folder.path().join("plan.json");
    let plan = BuildPlan { answers: answers.clone(), sources, kernels, stubs, cicc_outputs };
    std::fs::create_dir(&answers)
        .and_then(|()| std::fs::write(&plan_file, serde_json::to_vec(&plan)?))
        .map_err(|error| format!("cannot write the build plan: {error}"))?;
    let mut nvcc = Command::new(bin.join("nvcc"));
    nvcc.arg0(overlay.nvcc()).args(arguments);
    let status = process::wait_for_status(nvcc.env(BuildPlan::VARIABLE, &plan_file))
        .map_err(|error| format!("cannot start nvcc: {error}"))?;
    let outcomes = BuildPlan::outcomes(&answers).map_err(|error| format!("cannot read the shim's answers: {error}"))?;
    let wrong: Vec<Wrong> = outcomes
        .iter()
        .filter_map(|ShimOutcome { source, symbol, problem, .. }| {
            Some(Wrong { source: source.clone(), symbol: symbol.clone(), problem: problem.clone()? })
        })
        .collect();
    if !wrong.is_empty() {
        return Ok(Built::Differs(wrong));
    }
    let done = |part: Part, source: Option<&str>, symbol: &str, architecture: &str| {
        let is = |outcome: &ShimOutcome| {
            outcome.part == part
                && outcome.source.as_deref() == source
                && outcome.symbol == symbol
                && outcome.architecture == architecture
        };
        outcomes.iter().any(is)
    };
    if status.success() {
        let missing = |source: Option<&str>, symbol: &str, problem: &str| Wrong {
            source: source.map(str::to_owned),
            symbol: symbol.to_owned(),
            problem: problem.to_owned(),
        };
        let without_code = plan.kernels.iter().filter_map(|PlannedKernel { source, symbol, architecture, .. }| {
            let source = source.as_deref();
            let is_done = done(Part::Code, source, symbol, architecture);
            (!is_done).then(|| missing(source, symbol, "nvcc did not assemble it"))
        });
        let without_stub = plan.stubs.iter().filter_map(|StubText { source, stub, .. }| {
            let is_done = done(Part::Stub, Some(source), stub, "");
            (!is_done).then(|| missing(Some(source), stub, "nvcc made no launch stub for it"))
        });
        let wrong: Vec<Wrong> = without_code.chain(without_stub).collect();
        if !wrong.is_empty() {
            return Ok(Built::Differs(wrong));
        }
    }
    Ok(Built::Done(status))
}
