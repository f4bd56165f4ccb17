//! nvtune's own command line: everything that is not a call of nvcc.

mod arguments;
mod doctor;
mod manual;
mod report;
mod shims;

pub use arguments::{Arguments, command, man_page};
pub use manual::comments_page;

use crate::{bench, eval};
use arguments::Subcommand;
use clap::FromArgMatches;
use std::ffi::OsString;
use std::process::ExitCode;

/// Exit code of a usage error, as clap has it.
const USAGE: u8 = 2;

/// Runs a subcommand; `arguments` begin with the program's name.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let arguments_given: Vec<String> =
        arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let matches = arguments::command().try_get_matches_from(arguments);
    let arguments = match matches.and_then(|matches| Arguments::from_arg_matches(&matches)) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version end well; where even printing fails there is nobody left to tell.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
        }
    };
    let code = match arguments.subcommand {
        Subcommand::Report { records } => report::run(&records),
        Subcommand::Doctor => doctor::run(),
        Subcommand::Bench(options) => bench::run(&options.campaign(&arguments_given)),
        Subcommand::Eval { records } => eval::run(&records),
        Subcommand::Shims { folder } => shims::run(&folder),
        Subcommand::Measure { arguments } => return crate::measure::serve(&arguments),
        Subcommand::Man { folder } => arguments::write_man_pages(&folder),
    };
    ExitCode::from(code)
}
