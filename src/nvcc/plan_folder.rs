//! The folder that nvtune shares with the shims of one final build: the build plan, and what
//! the shims report.
//!
//! nvcc may be started before the plan is known: the shims then wait for it.

use crate::emit::{BuildPlan, ShimOutcome};
use crate::process::TemporaryFolder;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The environment variable that names the folder to the shims.
pub const VARIABLE: &str = "NVTUNE_BUILD_PLAN";

/// Held by nvtune until the plan is written. A lock ends with its process: no shim waits for one
/// that is gone.
const UNDECIDED: &str = "undecided";
/// There once a shim waits.
const AWAITED: &str = "awaited";
const PLAN: &str = "plan.json";
const ANSWERS: &str = "answers";

/// nvtune's side. The folder goes when this is dropped.
#[derive(Debug)]
pub struct PlanFolder {
    folder: TemporaryFolder,
    undecided: Option<File>,
}

impl PlanFolder {
    /// Makes the folder.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn new() -> io::Result<Self> {
        let folder = TemporaryFolder::new()?;
        std::fs::create_dir(folder.path().join(ANSWERS))?;
        Ok(Self { folder, undecided: None })
    }

    /// Has the shims wait until there is a plan.
    ///
    /// # Errors
    /// Where files cannot be locked.
    pub fn announce_plan(&mut self) -> io::Result<()> {
        let undecided = File::create(self.path().join(UNDECIDED))?;
        flock(&undecided, FlockOperation::LockExclusive)?;
        self.undecided = Some(undecided);
        Ok(())
    }

    /// What [`VARIABLE`] is to be.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Lets the shims go on with this plan.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn decide(&mut self, plan: &BuildPlan) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(self.path())?;
        serde_json::to_writer(&mut file, plan)?;
        file.persist(self.path().join(PLAN)).map_err(|error| error.error)?;
        self.release();
        Ok(())
    }

    /// Lets the shims go on; without a plan they fail.
    pub fn release(&mut self) {
        if let Some(undecided) = self.undecided.take() {
            // Not by closing it alone: a child that is about to be started has the file, too.
            let _ = flock(&undecided, FlockOperation::Unlock);
        }
    }

    /// The outcomes that the shims have written.
    ///
    /// # Errors
    /// Where one cannot be read.
    pub fn outcomes(&self) -> io::Result<Vec<ShimOutcome>> {
        let mut outcomes = Vec::new();
        for entry in std::fs::read_dir(self.path().join(ANSWERS))? {
            let text = std::fs::read(entry?.path())?;
            outcomes.extend(serde_json::from_slice::<Vec<ShimOutcome>>(&text)?);
        }
        Ok(outcomes)
    }
}

/// Whether a shim waits for the plan in this folder, or waited.
pub fn is_awaited(folder: &Path) -> bool {
    folder.join(AWAITED).exists()
}

/// nvtune ended before it decided on a plan, or the plan cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPlan;

/// A shim's side: the plan that nvtune decided on.
#[derive(Debug)]
pub struct SharedPlan {
    folder: PathBuf,
    pub plan: BuildPlan,
}

impl SharedPlan {
    /// Waits for the plan that nvtune writes for this shim, and reads it. `None` if nvtune wants
    /// none: the shim then does what its program does.
    ///
    /// # Errors
    /// [`NoPlan`]: nobody would compare what is built now.
    pub fn wait() -> Result<Option<Self>, NoPlan> {
        let Some(folder) = std::env::var_os(VARIABLE).map(PathBuf::from) else { return Ok(None) };
        if let Ok(undecided) = File::open(folder.join(UNDECIDED)) {
            // Without it nvtune counts this nvcc as one that runs: no harm.
            let _ = File::create(folder.join(AWAITED));
            flock(&undecided, FlockOperation::LockShared).map_err(|_| NoPlan)?;
        }
        let text = std::fs::read(folder.join(PLAN)).map_err(|_| NoPlan)?;
        let plan = serde_json::from_slice(&text).map_err(|_| NoPlan)?;
        Ok(Some(Self { folder, plan }))
    }

    /// The folder, which goes with the build: a shim that a signal ends cannot remove its files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reports to nvtune.
    ///
    /// # Errors
    /// Where that cannot be written.
    pub fn answer(&self, outcomes: &[ShimOutcome]) -> io::Result<()> {
        if outcomes.is_empty() {
            return Ok(());
        }
        let mut file = tempfile::Builder::new().suffix(".json").tempfile_in(self.folder.join(ANSWERS))?;
        serde_json::to_writer(&mut file, outcomes)?;
        file.keep().map(drop).map_err(|error| error.error)
    }
}
