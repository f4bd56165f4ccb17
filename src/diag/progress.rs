//! The line that a terminal shows while kernels are tuned, rewritten in place.
//!
//! Goes in: what the stages of tuning report. Comes out: one write for each update, at most ten
//! in a second, and none in the first second. Nothing is shown unless [`enable`] says so.

use super::print::{clear_line, show_line};
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A build that takes less shows no line.
const FIRST: Duration = Duration::from_secs(1);

/// Least time between two updates: more than a person reads, and too much for a terminal behind
/// ssh.
const BETWEEN: Duration = Duration::from_millis(100);

/// Columns if those of the terminal are not known.
const COLUMNS: usize = 80;

static SHOWN: Mutex<Display> = Mutex::new(Display { style: None, kernels: Vec::new(), drawn: None });

/// How the line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Style {
    columns: usize,
    coloured: bool,
}

struct Display {
    /// `None`: nothing is shown.
    style: Option<Style>,
    kernels: Vec<KernelProgress>,
    drawn: Option<Instant>,
}

/// A kernel that is being tuned.
#[derive(Clone, Debug)]
struct KernelProgress {
    name: String,
    begin: Instant,
    budget: Duration,
    stage: Stage,
}

/// What is done with a kernel, and how far that is.
#[derive(Clone, Debug, PartialEq)]
enum Stage {
    Compiling { variants: usize },
    Timing { timed: usize, best: Option<Best> },
    FinalRounds { best: Option<Best> },
}

/// The fastest configuration so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// Time of the baseline over its time.
    pub gain: f64,
    pub configuration: String,
}

/// Shows progress from now on, if it is wanted and standard error is a terminal that can rewrite
/// a line.
pub fn enable(is_wanted: bool) {
    let error = std::io::stderr();
    let environment = |name: &str| std::env::var(name).unwrap_or_default();
    let make = environment("MAKEFLAGS");
    let is_alone = !is_silent_make(&make) && !is_parallel_make(&make);
    let is_shown = is_wanted && error.is_terminal() && environment("TERM") != "dumb" && is_alone;
    let columns = rustix::termios::tcgetwinsize(&error).map_or(0, |size| usize::from(size.ws_col));
    let columns = if columns == 0 { COLUMNS } else { columns };
    let style = is_shown.then(|| Style { columns, coloured: is_coloured(environment, true) });
    lock(|display| display.style = style);
}

/// Tells whether colours are wanted (no-color.org, bixense.com/clicolors).
pub fn is_coloured(environment: impl Fn(&str) -> String, is_terminal: bool) -> bool {
    let is_set = |name: &str| !matches!(environment(name).as_str(), "" | "0");
    match () {
        () if !environment("NO_COLOR").is_empty() => false,
        () if is_set("CLICOLOR_FORCE") => true,
        () => is_terminal && environment("CLICOLOR") != "0" && environment("TERM") != "dumb",
    }
}

/// Whether make was called with `-s`. Its single letters are the first word of `MAKEFLAGS`.
fn is_silent_make(flags: &str) -> bool {
    let first = flags.split(' ').next().unwrap_or_default();
    let letters = first.strip_prefix('-').unwrap_or(first);
    letters.chars().all(|c| c.is_ascii_alphabetic()) && letters.contains('s')
}

/// Whether make was called with `-j`: other programs write to the terminal meanwhile, and their
/// lines would cover a part of this one.
fn is_parallel_make(flags: &str) -> bool {
    flags.split(' ').any(|flag| flag.starts_with("--jobserver-"))
}

/// Begins with a kernel that may take `budget_s` seconds.
pub fn begin(name: &str, budget_s: f64) {
    let budget = Duration::try_from_secs_f64(budget_s).unwrap_or(Duration::MAX);
    lock(|display| {
        if display.style.is_some() {
            let stage = Stage::Compiling { variants: 0 };
            display.kernels.push(KernelProgress { name: name.to_owned(), begin: Instant::now(), budget, stage });
            display.update();
        }
    });
}

/// One more variant of a kernel is compiled.
pub fn compiled(name: &str) {
    change_kernel(name, |kernel| {
        if let Stage::Compiling { variants } = &mut kernel.stage {
            *variants += 1;
        }
    });
}

/// Says how many configurations of a kernel are timed; `best` is the fastest of them.
pub fn timed(name: &str, timed: usize, best: Option<Best>) {
    change_kernel(name, |kernel| kernel.stage = Stage::Timing { timed, best });
}

/// The fastest configurations of a kernel meet the baseline.
pub fn final_rounds(name: &str) {
    change_kernel(name, |kernel| {
        let best = if let Stage::Timing { best, .. } = &mut kernel.stage { best.take() } else { None };
        kernel.stage = Stage::FinalRounds { best };
    });
}

/// Ends with a kernel. The line goes when no other kernel is being tuned.
pub fn end(name: &str) {
    lock(|display| {
        display.kernels.retain(|kernel| kernel.name != name);
        if display.kernels.is_empty() && display.drawn.take().is_some() {
            clear_line();
        }
    });
}

fn change_kernel(name: &str, change: impl FnOnce(&mut KernelProgress)) {
    lock(|display| {
        if let Some(kernel) = display.kernels.iter_mut().find(|kernel| kernel.name == name) {
            change(kernel);
            display.update();
        }
    });
}

fn lock(work: impl FnOnce(&mut Display)) {
    work(&mut SHOWN.lock().unwrap_or_else(PoisonError::into_inner));
}

impl Display {
    /// Writes the line, unless that was done a moment ago.
    fn update(&mut self) {
        let Some(style) = self.style else { return };
        let is_young = self.kernels.iter().all(|kernel| kernel.begin.elapsed() < FIRST);
        if is_young || self.drawn.is_some_and(|drawn| drawn.elapsed() < BETWEEN) {
            return;
        }
        self.drawn = Some(Instant::now());
        show_line(&progress_line(&self.kernels, style, Instant::now()));
    }
}

/// The line: the kernels that are being tuned, one next to the other.
fn progress_line(kernels: &[KernelProgress], style: Style, now: Instant) -> String {
    let mut line = String::new();
    let mut left = style.columns.saturating_sub(1);
    for (index, kernel) in kernels.iter().enumerate() {
        let separator = if index == 0 { "nvtune: " } else { " | " };
        for (text, is_name) in [(separator, false), (&kernel.name, true), (&kernel.state(now), false)] {
            let text: String = text.chars().filter(|c| !c.is_control()).take(left).collect();
            left -= text.chars().count();
            if is_name && style.coloured { line += &format!("\x1b[1m{text}\x1b[0m") } else { line += &text }
        }
    }
    line
}

impl KernelProgress {
    /// `: 12 timed, best 1.31x (block=256 regs=56), 24 s left`
    fn state(&self, now: Instant) -> String {
        let best = |best: &Option<Best>| match best {
            Some(Best { gain, configuration }) => format!(", best {gain:.2}x ({configuration})"),
            None => String::new(),
        };
        let text = match &self.stage {
            Stage::Compiling { variants: 1 } => "compiling, 1 variant".to_owned(),
            Stage::Compiling { variants } => format!("compiling, {variants} variants"),
            Stage::Timing { timed, best: found } => format!("{timed} timed{}", best(found)),
            Stage::FinalRounds { best: found } => format!("final rounds{}", best(found)),
        };
        let left = self.budget.saturating_sub(now.saturating_duration_since(self.begin)).as_secs_f64().ceil();
        // More than a day is no bound.
        let left = if left < 86_400.0 { format!(", {left:.0} s left") } else { String::new() };
        format!(": {text}{left}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str, stage: Stage, begin: Instant) -> KernelProgress {
        KernelProgress { name: name.to_owned(), begin, budget: Duration::from_secs(30), stage }
    }

    #[test]
    fn line_has_stage_count_best_and_time_left() {
        let begin = Instant::now();
        let best = Some(Best { gain: 1.314, configuration: "block=256 regs=56".to_owned() });
        let kernels = [
            kernel("nbody", Stage::Timing { timed: 12, best: best.clone() }, begin),
            kernel("saxpy", Stage::Compiling { variants: 1 }, begin),
        ];
        let style = Style { columns: 200, coloured: false };
        assert_eq!(
            progress_line(&kernels, style, begin + Duration::from_secs(6)),
            "nvtune: nbody: 12 timed, best 1.31x (block=256 regs=56), 24 s left | saxpy: compiling, 1 variant, 24 s left"
        );
        let late = progress_line(
            &[kernel("k", Stage::FinalRounds { best: None }, begin)],
            style,
            begin + Duration::from_secs(99),
        );
        assert_eq!(late, "nvtune: k: final rounds, 0 s left");
        let coloured = progress_line(&kernels[1..], Style { columns: 200, coloured: true }, begin);
        assert_eq!(coloured, "nvtune: \x1b[1msaxpy\x1b[0m: compiling, 1 variant, 30 s left");
    }

    #[test]
    fn line_is_shorter_than_the_terminal_is_wide() {
        let begin = Instant::now();
        let kernels = [kernel("a_kernel_of_a_long_name", Stage::Compiling { variants: 9 }, begin)];
        for columns in [0, 1, 10, 30] {
            let line = progress_line(&kernels, Style { columns, coloured: false }, begin);
            assert_eq!(line.chars().count(), columns.saturating_sub(1), "{line}");
        }
    }

    #[test]
    fn make_s_is_silent_and_other_flags_are_not() {
        for (flags, is_silent) in [
            ("s", true),
            ("ks -j8 --jobserver-auth=3,4", true),
            ("-s", true),
            ("", false),
            (" -j8 --jobserver-auth=3,4", false),
            ("k -- CFLAGS=s", false),
            ("--no-print-directory", false),
        ] {
            assert_eq!(is_silent_make(flags), is_silent, "{flags}");
        }
    }

    #[test]
    fn make_with_jobs_is_parallel() {
        for (flags, is_parallel) in [
            (" -j8 --jobserver-auth=fifo:/tmp/GMfifo1", true),
            ("k -j --jobserver-fds=3,4 -- CFLAGS=-O3", true),
            ("", false),
            ("k -- CFLAGS=-O3", false),
        ] {
            assert_eq!(is_parallel_make(flags), is_parallel, "{flags}");
        }
    }

    #[test]
    fn colours_follow_the_environment() {
        let with = |set: &'static [(&str, &str)], is_terminal: bool| {
            let value = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            is_coloured(move |name| value(name).unwrap_or_default(), is_terminal)
        };
        assert!(with(&[], true) && !with(&[], false));
        assert!(!with(&[("NO_COLOR", "1")], true));
        assert!(with(&[("CLICOLOR_FORCE", "1")], false) && !with(&[("CLICOLOR_FORCE", "0")], false));
        assert!(!with(&[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], true));
        assert!(!with(&[("CLICOLOR", "0")], true) && !with(&[("TERM", "dumb")], true));
    }
}
