//! nvtune's own command line: everything that is not a call of nvcc.

mod arguments;
mod cache;
mod doctor;
mod exit_status;
mod explain;
mod init;
mod jobs;
mod language;
mod lock;
mod manual;
mod records;
mod report;
mod shims;
mod tune;
mod wrap;

pub use arguments::{Arguments, command, man_page};
pub use manual::pages;

use crate::nvcc::is_nvcc_name;
use arguments::Subcommand;
use clap::FromArgMatches;
use exit_status::USAGE;
use std::ffi::OsString;
use std::process::ExitCode;

/// Whether these words begin with the name of a subcommand.
pub fn begins_with_command(words: &[OsString]) -> bool {
    // The usual word is none, and is answered without the whole definition of the command line.
    words
        .first()
        .is_some_and(|word| !is_nvcc_name(word) && (word == "help" || command().find_subcommand(word).is_some()))
}

/// Runs a subcommand; `arguments` begin with the program's name.
pub fn run(arguments: &[OsString]) -> u8 {
    if language::is_asked(arguments.get(1..).unwrap_or_default()) {
        return language::run();
    }
    let matches = arguments::command().try_get_matches_from(arguments);
    let arguments = match matches.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version end well; where even printing fails there is nobody left to tell.
            let _ = error.print();
            return if error.use_stderr() { USAGE } else { 0 };
        }
    };
    match arguments.subcommand {
        Subcommand::Report(options) => report::run(&options.into()),
        Subcommand::Explain(options) => explain::run(&options.into()),
        Subcommand::Init(options) => init::run(&options.into()),
        Subcommand::Doctor => doctor::run(),
        Subcommand::Cache { command } => cache::run(&command),
        Subcommand::Lock(options) => lock::run(&options.into()),
        Subcommand::Tune(options) => tune::run(&options.into()),
        Subcommand::Decide { anew, call } => crate::driver::pipeline::decide(&call, anew),
        Subcommand::Shims { folder } => shims::run(&folder),
        Subcommand::Measure { arguments } => {
            if crate::measure::serve(&arguments) == ExitCode::SUCCESS {
                0
            } else {
                USAGE
            }
        }
        Subcommand::Completions { shell } => arguments::print_completions(shell),
        Subcommand::Man { folder } => arguments::write_man_pages(&folder),
    }
}
