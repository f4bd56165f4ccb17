//! The variants of a kernel, compiled and scored: all of them, or in rounds (see [`screen`]) where nothing will be timed.

use super::failure::Problem;
use super::kernel_info::Subject;
use super::macro_screening;
use super::profiles::Known;
use super::scoring;
use super::scoring::Scored;
use super::scoring_input::Laid;
use super::variants::{First, FrontEnds, Macros, Variants, Written};
use crate::nvcc::Toolchain;
use crate::ptx::Edits;
use std::time::{Duration, Instant};

/// What is known of a space before anything is timed.
pub struct Explored {
    pub variants: Variants,
    pub scored: Scored,
    /// The sets of macros that were compiled, and how many the space has.
    pub sets: (usize, usize),
    /// Spent in the model; the rest is the compiler's tools.
    pub model: Duration,
}

/// How much of a space is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    Whole,
    Screened,
}

impl Effort {
    /// The sets of macros that are compiled whatever is found.
    pub fn first_round(self, sets: Vec<Macros>) -> Vec<Macros> {
        match self {
            Self::Whole => sets,
            Self::Screened => macro_screening::alone(&sets),
        }
    }
}

/// Who is shown what as it comes.
pub struct Shown<'a> {
    /// The baseline's code.
    pub first: First<'a>,
    /// The space of which the natural variants are compiled and scored, before the others are. `None`: all are compiled at once.
    pub natural: Option<&'a mut dyn FnMut(Scored)>,
}

/// Compiles and scores. Where a kernel `was_refused`, its baseline is compiled and
/// scored before the others.
pub fn explore(
    front_ends: &mut FrontEnds<'_>,
    toolchain: &Toolchain,
    subject: &mut Subject<'_>,
    (effort, was_refused): (Effort, bool),
    Shown { first, natural: shown }: Shown<'_>,
) -> Result<Explored, Problem> {
    let sets = subject.macro_sets();
    let all = Written { caps: subject.space.caps().to_vec(), operators: subject.space.cache_operators() };
    let mut seen = effort.first_round(sets.clone());
    let (mut variants, mut known, mut model) = (Variants::default(), Known::default(), Duration::ZERO);
    let mut round = |subject: &mut Subject<'_>, sets: &[Macros], written: &Written| {
        subject.learn(front_ends, toolchain, sets);
        variants.compile(front_ends, subject, sets, written, first);
        let start = Instant::now();
        let scored = scoring::score_again(Laid::new(subject, front_ends, &variants)?, &mut known);
        model += start.elapsed();
        Ok::<_, Problem>(scored?)
    };
    if was_refused {
        let baseline = subject.baseline();
        let alone = Written { caps: vec![baseline.cap], operators: vec![baseline.cache] };
        round(subject, &[baseline.macros], &alone)?;
    }
    let natural = all.natural(Edits::from(&subject.baseline()));
    let scored = if effort == Effort::Screened && sets.len() > 1 {
        let natural = natural.as_ref().unwrap_or(&all);
        let mut scored = round(subject, &seen, natural)?;
        let second = macro_screening::together(&sets, &seen, |macros| scored.least_time(macros));
        if !second.is_empty() {
            scored = round(subject, &second, natural)?;
            seen.extend(second);
        }
        let best = macro_screening::best(&seen, |macros| scored.least_time(macros));
        round(subject, &best, &all)?
    } else {
        if let Some((shown, natural)) = shown.zip(natural) {
            shown(round(subject, &seen, &natural)?);
        }
        round(subject, &seen, &all)?
    };
    Ok(Explored { variants, scored, sets: (seen.len(), sets.len()), model })
}
