//! One run of nvcc from the overlay toolkit: kernels, stubs -> nvcc's exit status, or what it
//! did not build as it was timed.
//!
//! nvcc may be started before they are known ([`StartedBuild`]): it then reads the source and
//! splits it while that is tuned, and waits for the plan before it compiles device code.

use super::overlay::Overlay;
use super::plan_folder;
use super::plan_folder::PlanFolder;
use super::programs::Programs;
use crate::emit::{BuildPlan, Part, PlannedKernel, ShimOutcome, StubText};
use crate::process;
use crate::process::Permit;
use rustix::fs::{MemfdFlags, memfd_create};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::io::{Read, Seek, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often it is looked whether a started nvcc waits for its plan.
const PAUSE: Duration = Duration::from_millis(5);

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

/// Runs nvcc with a build plan for the shims.
///
/// # Errors
/// Where nvcc cannot be started so; the text is for the user.
pub fn build(programs: &Programs, arguments: &[OsString], plan: &BuildPlan) -> Result<Built, String> {
    let wants_cicc = !plan.stubs.is_empty() || !plan.cicc_outputs.is_empty();
    let mut call = OverlaidCall::new(programs, wants_cicc)?;
    call.decide(plan)?;
    let mut nvcc = call.start(arguments, Stdio::inherit())?;
    call.end(&mut nvcc, plan)
}

/// An nvcc that runs while its source is tuned. Its messages are kept until it has ended: they
/// follow nvtune's own, and the line of progress stays whole. If this is dropped before
/// [`finish`](Self::finish), nvcc fails, and its messages are dropped.
pub struct StartedBuild {
    call: OverlaidCall,
    /// What nvcc writes to standard error; in memory, for a full disk is one of its messages.
    messages: File,
    /// `None` once it has ended.
    nvcc: Option<Child>,
    /// Tells the thread that holds the permit for nvcc's first steps to drop it.
    is_decided: Arc<AtomicBool>,
    permit_holder: Option<JoinHandle<()>>,
}

impl StartedBuild {
    /// Starts nvcc. It has the permit until it waits for the plan. `None` where it cannot be
    /// started so: [`build`] starts it later.
    pub fn new(programs: &Programs, arguments: &[OsString], permit: Permit) -> Option<Self> {
        let mut call = OverlaidCall::new(programs, true).ok()?;
        call.folder.announce_plan().ok()?;
        let messages = File::from(memfd_create("nvcc-messages", MemfdFlags::CLOEXEC).ok()?);
        let nvcc = call.start(arguments, messages.try_clone().ok()?.into()).ok()?;
        let is_decided = Arc::new(AtomicBool::new(false));
        let (folder, process, is_over) = (call.folder.path().to_path_buf(), nvcc.id(), Arc::clone(&is_decided));
        let hold_permit = move || {
            let is_at_work = || !plan_folder::is_awaited(&folder) && process::is_running(process);
            while !is_over.load(Ordering::Relaxed) && is_at_work() {
                std::thread::sleep(PAUSE);
            }
            drop(permit);
        };
        // Where there is no thread for it, nvcc is one tool more than there should be.
        let permit_holder = std::thread::Builder::new().name("permit".to_owned()).spawn(hold_permit).ok();
        Some(Self { call, messages, nvcc: Some(nvcc), is_decided, permit_holder })
    }

    /// Has nvcc go on with the build plan, waits for its end and prints its messages.
    ///
    /// # Errors
    /// Where it cannot be given the plan.
    pub fn finish(mut self, plan: &BuildPlan) -> Result<Built, String> {
        self.is_decided.store(true, Ordering::Relaxed);
        self.call.decide(plan)?;
        let Some(mut nvcc) = self.nvcc.take() else { return Err("nvcc has ended".to_owned()) };
        let built = self.call.end(&mut nvcc, plan);
        let mut messages = Vec::new();
        if self.messages.rewind().is_ok() && self.messages.read_to_end(&mut messages).is_ok() {
            // A closed standard error does not make the build fail.
            let _ = io::stderr().write_all(&messages);
        }
        built
    }
}

impl Drop for StartedBuild {
    fn drop(&mut self) {
        self.is_decided.store(true, Ordering::Relaxed);
        self.call.folder.release();
        if let Some(mut nvcc) = self.nvcc.take() {
            let _ = process::wait_for_builder(&mut nvcc);
        }
        // A token of make's that is not given back by then is lost.
        if let Some(holder) = self.permit_holder.take() {
            let _ = holder.join();
        }
    }
}

/// The overlay toolkit, and what it shares with nvtune.
struct OverlaidCall {
    overlay: Overlay,
    folder: PlanFolder,
    nvcc: PathBuf,
}

impl OverlaidCall {
    fn new(Programs { bin, cicc }: &Programs, wants_cicc: bool) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|error| format!("cannot find nvtune's own program: {error}"))?;
        let cicc = cicc.as_deref().filter(|_| wants_cicc);
        let overlay = Overlay::new(bin, cicc, &own).map_err(|error| error.to_string())?;
        let folder = PlanFolder::new().map_err(|error| format!("cannot make a temporary folder: {error}"))?;
        Ok(Self { overlay, folder, nvcc: bin.join("nvcc") })
    }

    fn start(&self, arguments: &[OsString], messages: Stdio) -> Result<Child, String> {
        let mut nvcc = Command::new(&self.nvcc);
        nvcc.arg0(self.overlay.nvcc()).args(arguments).stderr(messages).env(plan_folder::VARIABLE, self.folder.path());
        process::start_builder(&mut nvcc).map_err(|error| format!("cannot start nvcc: {error}"))
    }

    fn decide(&mut self, plan: &BuildPlan) -> Result<(), String> {
        self.folder.decide(plan).map_err(|error| format!("cannot write the build plan: {error}"))
    }

    /// Waits for nvcc's end and compares what it built with the plan.
    fn end(&self, nvcc: &mut Child, plan: &BuildPlan) -> Result<Built, String> {
        let status = process::wait_for_builder(nvcc).map_err(|error| format!("cannot wait for nvcc: {error}"))?;
        let outcomes = self.folder.outcomes().map_err(|error| format!("cannot read the shim's answers: {error}"))?;
        let wrong: Vec<Wrong> = outcomes
            .iter()
            .filter_map(|ShimOutcome { source, symbol, problem, .. }| {
                Some(Wrong { source: source.clone(), symbol: symbol.clone(), problem: problem.clone()? })
            })
            .collect();
        if !wrong.is_empty() {
            return Ok(Built::Differs(wrong));
        }
        let wrong = if status.success() { not_done(plan, &outcomes) } else { Vec::new() };
        Ok(if wrong.is_empty() { Built::Done(status) } else { Built::Differs(wrong) })
    }
}

/// What of the plan no shim reports.
fn not_done(plan: &BuildPlan, outcomes: &[ShimOutcome]) -> Vec<Wrong> {
    let is_done = |part: Part, source: Option<&str>, symbol: &str, architecture: &str| {
        let is = |outcome: &ShimOutcome| {
            outcome.part == part
                && outcome.source.as_deref() == source
                && outcome.symbol == symbol
                && outcome.architecture == architecture
        };
        outcomes.iter().any(is)
    };
    let missing = |source: Option<&str>, symbol: &str, problem: &str| Wrong {
        source: source.map(str::to_owned),
        symbol: symbol.to_owned(),
        problem: problem.to_owned(),
    };
    let without_code = plan.kernels.iter().filter_map(|PlannedKernel { source, symbol, architecture, .. }| {
        let source = source.as_deref();
        let is_done = is_done(Part::Code, source, symbol, architecture);
        (!is_done).then(|| missing(source, symbol, "nvcc did not assemble it"))
    });
    let without_stub = plan.stubs.iter().filter_map(|StubText { source, stub, .. }| {
        let is_done = is_done(Part::Stub, Some(source), stub, "");
        (!is_done).then(|| missing(Some(source), stub, "nvcc made no launch stub for it"))
    });
    without_code.chain(without_stub).collect()
}
