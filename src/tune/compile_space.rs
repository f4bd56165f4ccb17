//! The variants of a kernel, compiled and scored: all of them, or a part (`macro_screening.rs`) if nothing will be timed.

use super::failure::Problem;
use super::kernel_info::Subject;
use super::macro_screening;
use super::macro_screening::{Affordable, Sizes};
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
    /// What the compile of the source bounds; that many kernels of it share the bound.
    Screened {
        kernels: usize,
    },
}

impl Effort {
    /// The sets of macros that are compiled whatever is found.
    pub fn first_round(self, sets: Vec<Macros>) -> Vec<Macros> {
        match self {
            Self::Whole => sets,
            Self::Screened { .. } => sets.into_iter().take(1).collect(),
        }
    }

    /// The part of a space that is compiled, by what the front end made of the baseline; `None`: all of it.
    fn affordable(self, subject: &Subject<'_>, front_ends: &FrontEnds<'_>) -> Option<Affordable> {
        let Self::Screened { kernels } = self else { return None };
        let front_end = front_ends.made(&Macros::new())?;
        let (source, ptx) = (front_end.source_bytes, front_end.ptx.len());
        let sizes = Sizes { source, ptx, kernel_ptx: subject.ptx_bytes, kernels };
        Some(Affordable::for_sizes(sizes))
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
    let affordable = effort.affordable(subject, front_ends);
    let seen = affordable.map_or(sets.clone(), |affordable| macro_screening::spread(&sets, affordable.macro_sets));
    let known = if affordable.is_some() { Known::bounded() } else { Known::default() };
    let (mut variants, mut known, mut model) = (Variants::default(), known, Duration::ZERO);
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
    let scored = if let Some(Affordable { assemblies, .. }) = affordable {
        let scored = round(subject, &seen, natural.as_ref().unwrap_or(&all))?;
        let best = macro_screening::best(&seen, |macros| scored.least_time(macros)).cloned();
        let caps = assemblies / all.operators.len().max(1);
        let caps = macro_screening::thinned(&all.caps, caps, subject.baseline().cap);
        round(subject, best.as_slice(), &Written { caps, ..all })?
    } else {
        if let Some((shown, natural)) = shown.zip(natural) {
            shown(round(subject, &seen, &natural)?);
        }
        round(subject, &seen, &all)?
    };
    Ok(Explored { variants, scored, sets: (seen.len(), sets.len()), model })
}
