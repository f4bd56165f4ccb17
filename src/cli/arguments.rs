//! The definitions of nvtune's own command line; `--help` and the man page are both made from them.

use crate::say;
use crate::settings::VARIABLES;
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A drop-in nvcc that tunes the kernels you mark with a comment.
///
/// Called as `nvcc` (a link of that name), or as `nvtune nvcc ARGS`, `nvtune /path/to/nvcc ARGS` or `nvtune ccache nvcc
/// ARGS` (the form of a compiler launcher), nvtune is nvcc: unmarked compiles are handed to the real one with exec. A kernel under a `//@tune`
/// comment is compiled in variants over register caps, block shapes and macros, each scored from its machine code; the
/// best are timed on the GPU where there is one; and nvcc builds the object with the winner, whose launch parameters
/// are in the header STEM.tune.h beside the object.
#[derive(Debug, Parser)]
#[command(name = "nvtune", version, arg_required_else_help = true, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub subcommand: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
pub enum Subcommand {
    /// Shows what was decided, and why, from the records that a build left (STEM.tune.json)
    Report {
        /// Record files
        #[arg(required = true, value_name = "RECORD")]
        records: Vec<PathBuf>,
    },
    /// Says which nvcc, GPU and driver would be used
    Doctor,
    /// Writes the winners that builds used into the lock file (nvtune.lock), from the records that they left beside their objects
    Lock(Lock),
    /// Tunes all marked kernels of a project, and writes the lock file; run again after a kill, it goes on where it was
    Tune(Tune),
    /// Says what is kept between builds, or removes it
    Cache {
        #[command(subcommand)]
        command: CacheCommand,
    },
    /// Makes a toolkit root whose bin/nvcc is nvtune and whose other entries are links to the real toolkit, for builds
    /// that take CUDA_HOME rather than a compiler
    Shims {
        /// The folder to make
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Times candidates for another nvtune, which speaks to it over standard input and output
    #[command(hide = true)]
    Measure {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Tunes the kernels of one call of nvcc for `nvtune tune`, and prints their records
    #[command(hide = true)]
    Decide {
        /// Whatever is known already
        #[arg(long)]
        anew: bool,
        #[arg(last = true, required = true)]
        call: Vec<OsString>,
    },
    /// Writes the man pages into a folder
    #[command(hide = true)]
    Man {
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// `nvtune cache`
#[derive(Debug, clap::Subcommand)]
pub enum CacheCommand {
    /// Says where the cache is and how much is in it
    Stats,
    /// Removes all of it
    Clear,
    /// Removes what was used longest ago until the rest is below the bound, and what killed processes left
    Trim {
        /// The bound in bytes, with K, M or G [default: NVTUNE_CACHE_SIZE]
        #[arg(long, value_name = "BYTES")]
        size: Option<String>,
    },
}

/// `nvtune lock`
#[derive(Debug, clap::Args)]
pub struct Lock {
    /// Records (STEM.tune.json), or folders of them
    #[arg(value_name = "RECORD", default_value = ".")]
    records: Vec<PathBuf>,
    /// Write nothing; say which entries are missing, stale (and what changed) or of kernels that are gone, and end with 1 if any is
    #[arg(long, conflicts_with = "update")]
    check: bool,
    /// Tune those first that are missing or stale
    #[arg(long)]
    update: bool,
    /// The lock file [default: NVTUNE_LOCK, else the nearest nvtune.lock at or above the current folder, else one there]
    #[arg(long, value_name = "PATH")]
    lock: Option<PathBuf>,
    #[command(flatten)]
    workers: Workers,
}

/// `nvtune tune`
#[derive(Debug, clap::Args)]
pub struct Tune {
    /// The compilation database that CMake, Bear or Ninja writes
    #[arg(long, value_name = "FILE", default_value = "compile_commands.json")]
    compile_commands: PathBuf,
    /// Tune what is known already too
    #[arg(long)]
    anew: bool,
    /// The lock file [default: NVTUNE_LOCK, else the nearest nvtune.lock at or above the current folder, else one there]
    #[arg(long, value_name = "PATH")]
    lock: Option<PathBuf>,
    #[command(flatten)]
    workers: Workers,
}

#[derive(Debug, clap::Args)]
struct Workers {
    /// Sources tuned at once [default: four for each GPU, but no more than there are cores; with a runner, one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Put before each measuring process, such as 'srun --gres=gpu:1' [default: NVTUNE_RUNNER]
    #[arg(long, value_name = "COMMAND")]
    runner: Option<String>,
}

impl From<Workers> for super::jobs::Workers {
    fn from(Workers { jobs, runner }: Workers) -> Self {
        Self { jobs: jobs.map(usize::from), runner }
    }
}

impl From<Lock> for super::lock::Options {
    fn from(Lock { records, check, update, lock, workers }: Lock) -> Self {
        Self { records, check, update, lock, workers: workers.into() }
    }
}

impl From<Tune> for super::tune::Options {
    fn from(Tune { compile_commands, anew, lock, workers }: Tune) -> Self {
        Self { commands: compile_commands, lock, workers: workers.into(), anew }
    }
}

/// How to read what `nvtune report` prints.
const REPORT: &str = "\
Report:
  A row is a configuration: its median time and the predicted one in microseconds, registers of a thread, occupancy (resident warps as a \
share of what an SM holds), and T and C, the metrics PO of Liang et al. (ASP-DAC 2013): threads that an SM has room for besides, and \
estimated cycles of one thread; less of both is better. Winner and baseline come first, then the fastest of the others.
  \"Nothing is surely faster\": no other configuration was faster than the baseline by 1% or more with 99% confidence, in 8 or more rounds in \
which both were timed; or, where nothing was timed, none is predicted to be faster by 5% or more over all that the model may be wrong about.
";

/// The command line with what both the help and the man page say of the environment.
pub fn command() -> clap::Command {
    let width = VARIABLES.iter().map(|variable| variable.name.len()).max().unwrap_or(0);
    let mut text = String::from("Environment:\n");
    for variable in &VARIABLES {
        text.push_str(&format!(
            "  {:width$}  {} [{}; default: {}]\n",
            variable.name, variable.meaning, variable.values, variable.default
        ));
    }
    let report = |command: clap::Command| command.after_help(REPORT);
    Arguments::command().mut_subcommand("report", report).after_long_help(format!("{text}\n{REPORT}")).after_help(text)
}

/// The man page `nvtune.1`.
pub fn man_page() -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command()).date("").render(&mut page)?;
    Ok(page)
}

pub(super) fn write_man_pages(folder: &Path) -> u8 {
    let made = man_page().and_then(|page| {
        std::fs::write(folder.join("nvtune.1"), page)?;
        super::manual::pages().try_for_each(|(file, text)| std::fs::write(folder.join(file), text))
    });
    match made {
        Ok(()) => 0,
        Err(error) => {
            say!("nvtune fatal   : cannot write the man pages into '{}': {error}", folder.display());
            1
        }
    }
}
