//! The command line of `nvtune-eval`.

use crate::record::Campaign;
use clap::Parser;
use std::ffi::OsString;
use std::path::PathBuf;

/// Records whole spaces of marked kernels on a GPU, and judges nvtune's model and strategies by them.
#[derive(Debug, Parser)]
#[command(name = "nvtune-eval", version, arg_required_else_help = true, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub subcommand: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
pub enum Subcommand {
    /// Times the whole space of each marked kernel of these sources on the GPU, and writes a record for each
    Record(Record),
    /// Judges the model and the strategies by records, without a GPU: how far from the best of the space each strategy's winner
    /// is and how much it times, and how well the model orders the space
    Judge {
        /// Print, in place of the tables, how many instructions the model says that each baseline executes: a line of JSON for each
        #[arg(long)]
        instructions: bool,
        /// Records, or folders of them
        #[arg(value_name = "RECORD", default_value = "kernels/results")]
        records: Vec<PathBuf>,
    },
    /// Sets each constant of the model to the value with which its term vanishes, and shows what the model alone loses by that on
    /// the recorded spaces
    Constants {
        /// Records, or folders of them
        #[arg(value_name = "RECORD", default_value = "kernels/results")]
        records: Vec<PathBuf>,
    },
    /// Writes a record in the formats that other tuners share: T1, the tuning problem, and T4, the results
    #[command(group = clap::ArgGroup::new("format").required(true).multiple(true))]
    Export {
        /// A record
        #[arg(value_name = "RECORD")]
        record: PathBuf,
        /// Write parameters, conditions, launch and arguments into this file
        #[arg(long, value_name = "FILE", group = "format")]
        t1: Option<PathBuf>,
        /// Write the time and validity of every configuration into this file, in milliseconds
        #[arg(long, value_name = "FILE", group = "format")]
        t4: Option<PathBuf>,
    },
    /// Times candidates for `record`, which speaks to it over standard input and output
    #[command(hide = true)]
    Measure {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
}

/// `nvtune-eval record`
#[derive(Debug, clap::Args)]
pub struct Record {
    /// CUDA sources with tuning comments
    #[arg(required = true, value_name = "SOURCE.cu")]
    sources: Vec<PathBuf>,
    /// Folder for the records: KERNEL.json.gz in a folder for each GPU; what is there already is not timed again
    #[arg(long, value_name = "DIR", default_value = "kernels/results")]
    results: PathBuf,
    /// Seconds of GPU time for each kernel; a second run, which shows how well times repeat, may take half as many again
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    budget: f64,
    /// Seconds after which no further kernel is begun
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    limit: Option<f64>,
    /// Points of a space that are timed at most; of a larger one a sample is, drawn from a fixed seed
    #[arg(long, value_name = "POINTS", default_value_t = 5000)]
    most: usize,
    /// Points that are timed a second time, in a process of its own
    #[arg(long, value_name = "POINTS", default_value_t = 200)]
    repeat: usize,
    /// Time what is recorded already too
    #[arg(long)]
    force: bool,
    /// Options for nvcc [default: -O3 and -arch= of the GPU]
    #[arg(last = true, value_name = "NVCC OPTIONS")]
    options: Vec<OsString>,
}

impl Record {
    /// What is to be timed. `words` are the command line, for the records.
    pub fn campaign(self, words: &[String]) -> Campaign {
        let Self { sources, results, budget, limit, most, repeat, force, options } = self;
        let command = std::iter::once("nvtune-eval".to_owned()).chain(words.iter().cloned()).collect();
        Campaign { sources, options, results, budget_s: budget, limit_s: limit, most, repeat, force, command }
    }
}

/// A number of seconds above 0.
fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|seconds| seconds.is_finite() && *seconds > 0.0);
    number.ok_or_else(|| "it must be a number of seconds above 0".to_owned())
}
