//! `nvtune report [PLACE...]`: records -> a table of all kernels, one kernel in detail, or data.

mod detail;
mod export;
mod gpu_time;
mod page;
mod reading;
mod rows;
mod table;

use super::exit_status::{CommandFailure, exit_code};
use super::wrap::columns;
use crate::diag::MessageCode;
use crate::diag::console::fatal;
use crate::put_on;
use crate::record::Decision;
use gpu_time::GpuTimes;
use reading::{ReadRecord, Records};
use rows::{Row, sort_by_gain};
use std::path::{Path, PathBuf};

/// The form of the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Details of the kernels of one record, else a table.
    #[default]
    Text,
    Json,
    Csv,
    Markdown,
}

/// What is asked for.
#[derive(Clone, Debug)]
pub struct ReportOptions {
    pub places: Vec<PathBuf>,
    /// Names of the kernels that are meant; empty for all.
    pub kernels: Vec<String>,
    pub form: Form,
    /// The file that the page goes to, in place of standard output.
    pub html: Option<PathBuf>,
}

/// Prints the report. A place without a record is an error; the others are printed all the same.
pub fn run(options: &ReportOptions) -> u8 {
    let records = Records::read(&options.places);
    for (place, problem) in &records.problems {
        fatal(MessageCode::RecordNotRead, format!("'{}' {problem}", place.display()));
    }
    let printed = print(options, &records).map(|()| u8::from(!records.problems.is_empty()));
    exit_code(printed)
}

fn print(options: &ReportOptions, records: &Records) -> Result<(), CommandFailure> {
    let is_meant = |decision: &Decision| options.kernels.is_empty() || options.kernels.contains(&decision.name);
    let mut all: Vec<(&ReadRecord, &Decision)> =
        records.decisions().filter(|(_, decision)| is_meant(decision)).collect();
    if let Some(missing) = options.kernels.iter().find(|name| !all.iter().any(|(_, decision)| decision.name == **name))
    {
        return Err(CommandFailure::new(MessageCode::WrongArgument, format!("no record has a kernel '{missing}'")));
    }
    let times = GpuTimes::read(&records.read);
    let row = |(read, decision): &(&ReadRecord, &Decision)| Row::new(read, decision, &times);
    let details: Vec<_> = all.iter().map(|kernel| (row(kernel), kernel.1)).collect();
    sort_by_gain(&mut all);
    let rows: Vec<Row> = all.iter().map(row).collect();
    if let Some(path) = &options.html {
        return write_page(path, &page::page(&rows, &all));
    }
    let failed = |error: serde_json::Error| CommandFailure::new(MessageCode::CommandFailed, error.to_string());
    let text = match options.form {
        Form::Json => export::json(&rows).map_err(failed)?,
        Form::Csv => export::csv(&rows).map_err(failed)?,
        Form::Markdown => table::markdown(&rows),
        Form::Text if records.read.len() < 2 || !options.kernels.is_empty() => detail::details(&details, columns()),
        Form::Text if rows.is_empty() => String::new(),
        Form::Text => table::table(&rows, columns()),
    };
    put_on!("{text}");
    Ok(())
}

fn write_page(path: &Path, page: &str) -> Result<(), CommandFailure> {
    let failed = |error: std::io::Error| {
        CommandFailure::new(MessageCode::CommandFailed, format!("cannot write '{}': {error}", path.display()))
    };
    std::fs::write(path, page).map_err(failed)
}
