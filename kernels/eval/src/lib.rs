//! What nvtune's developers judge it by: whole spaces, timed and recorded, and how good model and strategies are on them.
//!
//! [`record`] sends every configuration of a kernel's space to the GPU and writes one file. [`judge`] reads such files, scores them
//! by the code that a compile runs, and compares its choices with the recorded times. [`constants`]
//! shows what each constant of the model contributes to that. [`export`] writes them in the formats of other
//! tuners. Not shipped.

mod arguments;
pub mod constants;
pub mod export;
pub mod judge;
pub mod record;

use arguments::{Arguments, Subcommand};
use clap::Parser;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs one command; `arguments` begin with the program's name.
pub fn run(arguments: &[OsString]) -> ExitCode {
    let words: Vec<String> = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    match Arguments::parse_from(arguments).subcommand {
        Subcommand::Record(options) => record::run(&options.campaign(&words)).into(),
        Subcommand::Judge { records, instructions: false } => judge::run(&records).into(),
        Subcommand::Judge { records, instructions: true } => judge::run_instructions(&records).into(),
        Subcommand::Constants { records } => constants::run(&records).into(),
        Subcommand::Export { record, t1, t4 } => export::run(&record, t1, t4).into(),
        Subcommand::Measure { arguments } => nvtune::measure::serve(&arguments),
    }
}
