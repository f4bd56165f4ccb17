//! How the measuring process is started: the settings -> a command, and how long to wait for
//! it.

use super::error::Error;
use super::runner::{RunnerError, split};
use crate::diag::MessageCode;
use crate::settings::Settings;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// How the child is started.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Words put before the command (`ssh gpu01`). With a runner the command is `nvtune`, found
    /// by it; else this executable.
    pub runner: Vec<String>,
    /// In place of that command.
    pub program: Option<PathBuf>,
    /// A file of recorded timings to answer from, instead of a GPU.
    pub replay: Option<PathBuf>,
    /// Without a guard behind buffers: what looks for accesses beyond an allocation itself
    /// would take the guard for the buffer's.
    pub unguarded: bool,
    /// How long it may take to be ready: by default 30 s, and behind a runner, which may queue
    /// for a GPU, as long as `wait`.
    pub start_limit: Option<Duration>,
    /// How long it may say nothing while no kernel runs: by default a minute.
    pub silence: Option<Duration>,
    /// How long to wait for a GPU that others measure on: 10 minutes by default.
    pub wait: Option<Duration>,
    /// Gets what the user should know about waiting.
    pub notice: Option<fn(&str)>,
}

/// The word of `nvtune measure` for [`Options::unguarded`].
pub(super) const UNGUARDED: &str = "--unguarded";

/// How long a GPU is waited for where nothing is said.
const WAIT: Duration = Duration::from_secs(600);

impl Options {
    /// What the settings say.
    ///
    /// # Errors
    /// `NVTUNE_RUNNER` is no command.
    pub fn new(settings: &Settings) -> Result<Options, Error> {
        let runner = match &settings.runner {
            Some(text) => split(text.to_str().ok_or(RunnerError::NotText)?)?,
            None => Vec::new(),
        };
        Ok(Options { runner, replay: settings.replay.clone(), wait: settings.wait, ..Options::default() })
    }

    pub(super) fn command(&self) -> Result<Command, Error> {
        let program = match (&self.program, self.runner.is_empty()) {
            (Some(program), _) => program.clone(),
            (None, false) => PathBuf::from("nvtune"),
            (None, true) => std::env::current_exe()
                .map_err(|source| Error::Start { command: "nvtune measure".to_owned(), source })?,
        };
        let mut command = match self.runner.split_first() {
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
            None => {
                let mut command = Command::new(program);
                // This executable may be called `nvcc`, and would be one.
                std::os::unix::process::CommandExt::arg0(&mut command, "nvtune");
                command
            }
        };
        command.arg("measure");
        if self.unguarded {
            command.arg(UNGUARDED);
        }
        if let Some(path) = &self.replay {
            command.arg("--replay").arg(path);
        }
        Ok(command)
    }

    pub(super) fn start_limit(&self) -> Duration {
        let usual = if self.runner.is_empty() { Duration::from_secs(30) } else { self.wait() };
        self.start_limit.unwrap_or(usual)
    }

    pub(super) fn wait(&self) -> Duration {
        self.wait.unwrap_or(WAIT)
    }

    pub(super) fn silence(&self) -> Duration {
        self.silence.unwrap_or(Duration::from_secs(60))
    }

    pub(super) fn say(&self, code: MessageCode, message: &str) {
        if let Some(notice) = self.notice {
            notice(&code.tag(message));
        }
    }
}
