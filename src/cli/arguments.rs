//! The definitions of nvtune's own command line; `--help` and the man page are both made from them.

use crate::settings::VARIABLES;
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A drop-in nvcc that tunes the kernels you mark with a comment.
///
/// Called as `nvcc` (a link of that name), or as `nvtune nvcc ARGS` or `nvtune /path/to/nvcc ARGS` (the form of a
/// compiler launcher), nvtune is nvcc: unmarked compiles are handed to the real one with exec. A kernel under a `//@tune`
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
    /// Compiles as `nvcc ARGS` would, then times the whole space of each marked kernel, so that the record says how far
    /// the winner is from the best
    Bench {
        /// The compiler (`nvcc`, or a path) and its arguments
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "NVCC ARGS")]
        call: Vec<OsString>,
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
    /// Writes the man pages into a folder
    #[command(hide = true)]
    Man {
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

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
    Arguments::command().after_long_help(text.clone()).after_help(text)
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
        std::fs::write(folder.join("nvtune-comments.7"), super::comments_page())
    });
    match made {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("nvtune fatal   : cannot write the man pages into '{}': {error}", folder.display());
            1
        }
    }
}
