//! The definitions of nvtune's own command line; `--help` and the man page are both made from
//! them.

use super::report::Form;
use super::wrap::{columns, wrapped};
use crate::diag::MessageCode;
use crate::diag::console::fatal;
use crate::put_on;
use crate::settings::{VARIABLES, Variable};
use clap::{CommandFactory, Parser};
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A drop-in nvcc that tunes the kernels you mark with a comment.
///
/// Called as `nvcc` (a link of that name), or as `nvtune nvcc ARGS`, `nvtune /path/to/nvcc
/// ARGS` or `nvtune ccache nvcc ARGS` (the form of a compiler launcher), nvtune is nvcc, and so
/// it is with nvcc's arguments alone (`make NVCC=nvtune`): unmarked compiles are handed to the
/// real one with exec. A kernel under a `//@tune` comment is compiled in variants over register
/// caps, block shapes and macros, each scored from its machine code; the best are timed on the
/// GPU where there is one; and nvcc builds the object with the winner, whose launch parameters
/// are in the header STEM.tune.h next to the object.
#[derive(Debug, Parser)]
#[command(name = "nvtune", version, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub subcommand: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
pub enum Subcommand {
    /// Shows what was decided, and why, from the records that builds left (STEM.tune.json): the
    /// kernels of one record in detail, those of several in a table by gain
    Report(Report),
    /// Explains a message by its code, or the kernels of a source without a GPU: resources,
    /// occupancy, bottleneck, and lines with uncoalesced accesses and spills
    Explain(Explain),
    /// Proposes a tuning comment for every unmarked kernel of sources, from the launches around it
    /// and what programs recorded: prints a diff, or writes it
    Init(Init),
    /// Checks every part that a build uses (nvcc, toolkit, GPU, driver, runner, PATH, cache, lock
    /// file), and shows the command that mends what is missing
    Doctor,
    /// Writes the winners that builds used into the lock file (nvtune.lock), from the records
    /// that they left next to their objects
    Lock(Lock),
    /// Tunes all marked kernels of a project, and writes the lock file; run again after a kill,
    /// it goes on where it was
    Tune(Tune),
    /// Says what is kept between builds, or removes it
    Cache {
        #[command(subcommand)]
        command: CacheCommand,
    },
    /// Makes a toolkit root whose bin/nvcc is nvtune and whose other entries are links to the
    /// real toolkit, for builds that take CUDA_HOME rather than a compiler
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
    /// Prints the completions for a shell, to be read by it
    Completions {
        /// The shell
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Writes the man pages into a folder: nvtune(1), nvtune-comments(7), nvtune-recipes(7),
    /// nvtune-results(7)
    Man {
        /// The folder, which must exist
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
    /// Removes what was used longest ago until the rest is below the bound, and what killed
    /// processes left
    Trim {
        /// The bound in bytes, with K, M or G [default: NVTUNE_CACHE_SIZE]
        #[arg(long, value_name = "BYTES")]
        size: Option<String>,
    },
}

/// `nvtune report`
#[derive(Debug, clap::Args)]
pub struct Report {
    /// Records (STEM.tune.json), folders of them, or sources or objects that they belong to
    #[arg(value_name = "RECORD", default_value = ".")]
    records: Vec<PathBuf>,
    /// Show this kernel alone, in detail; may be given several times
    #[arg(long, value_name = "NAME")]
    kernel: Vec<String>,
    /// Print the table as a JSON array
    #[arg(long, group = "form")]
    json: bool,
    /// Print the table as CSV
    #[arg(long, group = "form")]
    csv: bool,
    /// Print the table in Markdown
    #[arg(long, group = "form")]
    markdown: bool,
    /// Write one self-contained page with plots of every kernel into this file
    #[arg(long, group = "form", value_name = "FILE")]
    html: Option<PathBuf>,
}

/// `nvtune explain`
#[derive(Debug, clap::Args)]
pub struct Explain {
    /// The code at the end of a message, such as N0031; or a source, or one kernel of it
    #[arg(value_name = "CODE|FILE.cu[:KERNEL]")]
    subject: OsString,
    /// Print what is known of the kernels as JSON
    #[arg(long, group = "form")]
    json: bool,
    /// Print the lines with problems as SARIF 2.1.0, for code hosts and editors
    #[arg(long, group = "form")]
    sarif: bool,
    /// Options for nvcc [default: those of the source's record, if there is one]
    #[arg(last = true, value_name = "OPTION")]
    arguments: Vec<OsString>,
}

/// `nvtune init`
#[derive(Debug, clap::Args)]
pub struct Init {
    /// Sources with kernels. Other sources of their folders are read as well, for launches
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Write the comments into the files rather than print a diff
    #[arg(long)]
    write: bool,
    /// Options for nvcc that say where headers are and which macros are defined
    #[arg(last = true, value_name = "OPTION")]
    arguments: Vec<OsString>,
}

/// `nvtune lock`
#[derive(Debug, clap::Args)]
pub struct Lock {
    /// Records (STEM.tune.json), folders of them, or sources or objects that they belong to
    #[arg(value_name = "RECORD", default_value = ".")]
    records: Vec<PathBuf>,
    /// Write nothing; say which entries are missing, stale (and what changed) or of kernels
    /// that are gone, and end with 1 if any is
    #[arg(long, conflicts_with = "update")]
    check: bool,
    /// Tune those first that are missing or stale
    #[arg(long)]
    update: bool,
    /// The lock file [default: NVTUNE_LOCK, else the nearest nvtune.lock at or above the
    /// current folder, else one there]
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
    /// The lock file [default: NVTUNE_LOCK, else the nearest nvtune.lock at or above the
    /// current folder, else one there]
    #[arg(long, value_name = "PATH")]
    lock: Option<PathBuf>,
    #[command(flatten)]
    workers: Workers,
}

#[derive(Debug, clap::Args)]
struct Workers {
    /// Sources tuned at once [default: four for each GPU, but no more than there are cores;
    /// with a runner, one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Put before each measuring process, such as 'srun --gres=gpu:1' [default: NVTUNE_RUNNER]
    #[arg(long, value_name = "COMMAND")]
    runner: Option<String>,
}

impl From<Report> for super::report::ReportOptions {
    fn from(Report { records, kernel, json, csv, markdown, html }: Report) -> Self {
        let forms = [(json, Form::Json), (csv, Form::Csv), (markdown, Form::Markdown)];
        let form = forms.into_iter().find(|(is_asked, _)| *is_asked).map(|(_, form)| form).unwrap_or_default();
        Self { places: records, kernels: kernel, form, html }
    }
}

impl From<Explain> for super::explain::ExplainOptions {
    fn from(Explain { subject, json, sarif, arguments }: Explain) -> Self {
        let form = match (json, sarif) {
            (true, _) => super::explain::Form::Json,
            (_, true) => super::explain::Form::Sarif,
            (false, false) => super::explain::Form::Text,
        };
        Self { subject, form, arguments }
    }
}

impl From<Init> for super::init::InitOptions {
    fn from(Init { files, write, arguments }: Init) -> Self {
        Self { files, write, arguments }
    }
}

impl From<Workers> for super::jobs::Workers {
    fn from(Workers { jobs, runner }: Workers) -> Self {
        Self { jobs: jobs.map(usize::from), runner }
    }
}

impl From<Lock> for super::lock::LockOptions {
    fn from(Lock { records, check, update, lock, workers }: Lock) -> Self {
        Self { records, check, update, lock, workers: workers.into() }
    }
}

impl From<Tune> for super::tune::TuneOptions {
    fn from(Tune { compile_commands, anew, lock, workers }: Tune) -> Self {
        Self { commands: compile_commands, lock, workers: workers.into(), anew }
    }
}

/// How to read what `nvtune report` prints, by paragraphs.
const REPORT: [&str; 2] = [
    "A row is a configuration: its median time and the predicted one in microseconds, registers of a thread, occupancy (resident warps as a \
share of what an SM holds), and T and C, the metrics PO of Liang et al. (ASP-DAC 2013): further threads that would fit on an SM, and \
estimated cycles of one thread; less of both is better. Winner and baseline come first, then the fastest of the others.",
    "\"No configuration is faster at 99% confidence\": none was faster than the baseline by 1% and 0.2 us or more with 99% confidence, in nine or more rounds in \
which both were timed. \"No configuration is predicted to be faster\": nothing was timed, and none is predicted to be faster by 5% or more over \
all that the model may be wrong about.",
];

/// The other man pages, and what each describes.
const PAGES: [(&str, &str); 3] = [
    ("nvtune-comments(7)", "the tuning comment: every clause, its forms and examples"),
    ("nvtune-results(7)", "what is kept between builds: header, record, lock file and cache"),
    ("nvtune-recipes(7)", "nvtune in Make, CMake, Meson, PyTorch, with ccache, in CI and on remote GPUs"),
];

/// Columns of the help where those of the terminal are not known, and at most.
const COLUMNS: usize = 100;

/// The command line with what the help says of environment, reports and man pages, for this
/// terminal.
pub fn command() -> clap::Command {
    let columns = columns().unwrap_or(COLUMNS).min(COLUMNS);
    let report = section("Report", &REPORT.map(|paragraph| ("", paragraph.to_owned())), columns);
    let environment = VARIABLES.each_ref().map(|variable| (variable.name, described(variable)));
    let environment = section("Environment", &environment, columns);
    let pages = section("Man pages", &PAGES.map(|(page, about)| (page, about.to_owned())), columns);
    let pages = format!(
        "{pages}  `nvtune man DIR` writes them, to be read by `man DIR/PAGE`.\n  `nvtune help comments` prints the language of tuning comments.\n"
    );
    let text = format!("{environment}\n{pages}");
    Arguments::command()
        .term_width(columns)
        .mut_subcommand("report", |command| command.after_help(report.clone()))
        .after_long_help(format!("{text}\n{report}"))
        .after_help(text)
}

/// Returns a titled list of names and their descriptions, in lines of at most `columns`.
fn section(title: &str, entries: &[(&str, String)], columns: usize) -> String {
    let width = entries.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let indent = if width == 0 { 2 } else { width + 4 };
    let line = |(name, text): &(&str, String)| {
        let line = if width == 0 { format!("  {text}\n") } else { format!("  {name:width$}  {text}\n") };
        wrapped(&line, indent, Some(columns))
    };
    format!("{title}:\n{}", entries.iter().map(line).collect::<String>())
}

fn described(variable: &Variable) -> String {
    format!("{} [{}; default: {}]", variable.meaning, variable.values, variable.default)
}

/// The man page `nvtune.1`.
pub fn man_page() -> std::io::Result<Vec<u8>> {
    let command = Arguments::command();
    let mut page = Vec::new();
    let man = clap_mangen::Man::new(command.clone()).date("");
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    let mut rest = Roff::new();
    rest.control("SH", ["SUBCOMMANDS"]);
    subcommands(&mut rest, "nvtune", &command);
    rest.control("SH", ["ENVIRONMENT"]);
    for variable in &VARIABLES {
        entry(&mut rest, vec![bold(variable.name)], &described(variable));
    }
    rest.control("SH", ["REPORT"]);
    for paragraph in REPORT {
        rest.control("PP", []);
        rest.text([roman(paragraph)]);
    }
    rest.control("SH", ["SEE ALSO"]);
    for (name, about) in PAGES {
        entry(&mut rest, vec![bold(name)], about);
    }
    rest.to_writer(&mut page)?;
    man.render_version_section(&mut page)?;
    Ok(page)
}

/// An entry of a list: what it is about, and the text.
fn entry(page: &mut Roff, title: Vec<Inline>, text: &str) {
    page.control("TP", []);
    page.text(title);
    page.text([roman(text)]);
}

/// The commands below a command with their arguments.
fn subcommands(page: &mut Roff, path: &str, command: &clap::Command) {
    let about = |text: Option<&clap::builder::StyledStr>| text.map(ToString::to_string).unwrap_or_default();
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        let path = format!("{path} {}", command.get_name());
        entry(page, vec![bold(&path)], &about(command.get_about()));
        page.control("RS", []);
        for argument in command.get_arguments() {
            let mut title = Vec::new();
            title.extend(argument.get_long().map(|long| bold(format!("--{long}"))));
            if argument.get_action().takes_values() {
                let names = argument.get_value_names().into_iter().flatten();
                title.extend(names.flat_map(|name| [roman(" "), italic(name.as_str())]));
            }
            // A blank before what stands alone would be taken for a line break.
            title.drain(..usize::from(title.first() == Some(&roman(" "))));
            entry(page, title, &about(argument.get_help()));
        }
        page.control("RE", []);
        subcommands(page, &path, command);
    }
}

/// Prints what a shell reads to complete nvtune's commands and options.
pub(super) fn print_completions(shell: clap_complete::Shell) -> u8 {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "nvtune", &mut text);
    put_on!("{}", String::from_utf8_lossy(&text));
    0
}

pub(super) fn write_man_pages(folder: &Path) -> u8 {
    let made = man_page().and_then(|page| {
        std::fs::write(folder.join("nvtune.1"), page)?;
        super::manual::pages().try_for_each(|(file, text)| std::fs::write(folder.join(file), text))
    });
    match made {
        Ok(()) => 0,
        Err(error) => {
            fatal(
                MessageCode::CommandFailed,
                format!("cannot write the man pages into '{}': {error}", folder.display()),
            );
            1
        }
    }
}
