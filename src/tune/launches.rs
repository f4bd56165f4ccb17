//! The launches that a marked source writes itself, against what its comment takes for them and what was chosen: warnings with places.

use super::Tuner;
use super::kernel_info::Subject;
use super::launch_path::Way;
use super::surroundings::Surroundings;
use crate::comment::{Annotation, Grid};
use crate::cuda::{HostLaunch, LaunchedBlock};
use crate::diag::Diagnostic;
use crate::launch::{Configuration, Dim3, shape};
use crate::record::{Decision, RecordedConfiguration};

/// The warning where the blocks that the source launches are known, and none of them is the baseline's.
pub fn beside_the_baseline(subject: &Subject<'_>, around: &Surroundings) -> Option<Diagnostic> {
    if around.includes_header && subject.reach.way == Way::Header {
        return None;
    }
    let annotation = subject.annotation;
    let launches = around.host.launches(&annotation.kernel.name);
    let baseline = subject.space.baseline();
    let blocks: Option<Vec<Dim3>> = launches.iter().map(known).collect();
    let first = launches.first()?;
    let block = *blocks.filter(|blocks| !blocks.contains(&baseline.block))?.first()?;
    let is_listed = subject.space.iter().any(|configuration| configuration.block == block);
    let remedy = match (is_listed, annotation.clauses.default.block.is_some()) {
        (true, true) => format!("write default(block = {})", written(block)),
        (true, false) => format!("add default(block = {})", written(block)),
        (false, _) => format!("write default(block = {}), and add that block to `block`", written(block)),
    };
    let message = format!(
        "this launch of `{}` has blocks of {}, and the baseline, which stands for what the program launches, has {}: {remedy}",
        annotation.name,
        shape(block),
        shape(baseline.block)
    );
    let warning = first.source.warning(first.span, message);
    Some(match &annotation.clauses.default.block {
        Some(given) => warning.with(annotation.source.note(given.span, "the baseline is given here")),
        None => warning,
    })
}

/// A warning for each launch of the source that cannot be what was chosen: the comment says that launches are the header's, and
/// the source does not include it.
///
/// Another file may, and launch as it says; so these are warnings, and launches in a block that callers give are left out.
pub fn beside_the_header(subject: &Subject<'_>, around: &Surroundings, chosen: &Configuration) -> Vec<Diagnostic> {
    let (annotation, baseline) = (subject.annotation, subject.space.baseline());
    let same = chosen.block == baseline.block && chosen.grid == baseline.grid && chosen.macros == baseline.macros;
    if subject.reach.way != Way::Header || same {
        return Vec::new();
    }
    let name = &annotation.name;
    let launches = match around.includes_header {
        true => around.beside_header(annotation),
        false => around.host.launches(&annotation.kernel.name),
    };
    let is_beside = |launch: &HostLaunch| match launch.block {
        LaunchedBlock::Given => false,
        LaunchedBlock::Unknown => true,
        LaunchedBlock::Is(block) => {
            block != chosen.block || chosen.grid != baseline.grid || is_divided_otherwise(subject, around, chosen)
        }
    };
    let otherwise =
        if annotation.clauses.cooperative { "" } else { ", or write launch(remap) in place of launch(header)" };
    let harm = if chosen.macros == baseline.macros { "" } else { ", so that its results may be wrong" };
    let warning = |launch: &HostLaunch| {
        let own = match launch.block {
            LaunchedBlock::Is(block) => format!("has blocks of {}", shape(block)),
            LaunchedBlock::Given | LaunchedBlock::Unknown => "does not follow the header".to_owned(),
        };
        let include = match around.includes_header {
            true => String::new(),
            false => format!("include \"{}\" and ", around.header),
        };
        let message = format!(
            "`{name}` is tuned to {chosen}, and this launch of it {own}{harm}: {include}launch as nvtune::{name} says{otherwise}"
        );
        launch.source.warning(launch.span, message)
    };
    launches.iter().filter(|launch| is_beside(launch)).map(warning).collect()
}

/// A warning for each launch that knows nothing of the header, where the source includes that and launches the kernel by it besides.
fn beside_others(annotation: &Annotation, around: &Surroundings) -> Vec<Diagnostic> {
    let name = &annotation.name;
    if annotation.clauses.launch.is_some() || !around.includes_header || !around.uses_header(annotation) {
        return Vec::new();
    }
    let message = format!(
        "this launch of `{name}` knows nothing of the header, by which others are made, so that `{name}` can only be what it would be without one: launch as nvtune::{name} says"
    );
    let warning = |launch: &HostLaunch| launch.source.warning(launch.span, message.clone());
    around.beside_header(annotation).iter().map(warning).collect()
}

/// Whether the comment's launch hangs on a macro that was chosen other than the baseline's, and that host code does not use.
fn is_divided_otherwise(subject: &Subject<'_>, around: &Surroundings, chosen: &Configuration) -> bool {
    let annotation = subject.annotation;
    let baseline = subject.space.baseline();
    let changed = |name: &str| {
        chosen.macros.get(name).is_some_and(|value| baseline.macros.get(name) != Some(value))
            && around.host.use_of(name).is_none()
    };
    let grid = annotation.clauses.grid.iter().flat_map(|grid| match &grid.value {
        Grid::Expressions(expressions) => expressions.as_slice(),
        Grid::Lists(_) => &[],
    });
    let threads = annotation.clauses.threads.iter().flat_map(|threads| &threads.value);
    grid.chain(threads).chain(&annotation.clauses.shared).any(|expression| {
        let mut hangs = false;
        expression.names(&mut |name, _| hangs |= changed(name));
        hangs
    })
}

fn known(launch: &HostLaunch) -> Option<Dim3> {
    match launch.block {
        LaunchedBlock::Is(block) => Some(block),
        LaunchedBlock::Given | LaunchedBlock::Unknown => None,
    }
}

/// A block as the `default` clause has it.
fn written(block: Dim3) -> String {
    match block {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("{{{x}, {y}}}"),
        [x, y, z] => format!("{{{x}, {y}, {z}}}"),
    }
}

/// Warns of launches in the source itself that know nothing of what was chosen.
pub fn warn_of_launches(tuner: &Tuner<'_>, subject: &Subject<'_>, chosen: &Configuration) {
    if let Some(around) = tuner.surroundings().filter(|_| subject.kept.is_none()) {
        tuner.console.diagnostics(&beside_the_header(subject, around, chosen));
        tuner.console.diagnostics(&beside_others(subject.annotation, around));
        if is_reshaped(subject, chosen) {
            tuner.console.diagnostics(&around.host.unreached(&subject.annotation.kernel.name));
        }
    }
}

/// Whether the launches that the program makes become others in the object.
fn is_reshaped(subject: &Subject<'_>, chosen: &Configuration) -> bool {
    let (space, reach) = (&subject.space, &subject.reach);
    let made = reach.launch(space, chosen).ok().map(|made| (made.grid, made.block, made.shared));
    let before = space.launch(&reach.prepared(space, chosen)).ok().map(|made| (made.grid, made.block, made.shared));
    matches!(reach.way, Way::Remap { .. }) && made != before
}

/// Says what surely keeps candidates from running that divide the work by other values of macros than the program's launches do, where
/// all such were refused on the GPU.
pub fn unaware(tuner: &Tuner<'_>, subject: &Subject<'_>, decision: &Decision) -> Option<String> {
    let mut reason = None;
    for RecordedConfiguration { configuration, candidate, timing, refused, .. } in &decision.configurations {
        if (*candidate && refused.is_some() || timing.is_some())
            && let Some(found) = subject.reach.unaware(&subject.space, configuration)
        {
            if timing.is_some() {
                return None;
            }
            reason.get_or_insert(found);
        }
    }
    let (reason, annotation) = (reason?, subject.annotation);
    let message = format!("candidates of `{}` were refused: {reason}", annotation.name);
    tuner.console.diagnostics(&[annotation.source.warning(annotation.place("define"), message)]);
    Some(reason)
}

/// How the note begins that says why launches are not reshaped.
pub const LAUNCHES_STAY: &str = "its launches stay as they are: ";

/// Says what keeps a kernel's launches from being reshaped.
pub fn reach_notes(tuner: &Tuner<'_>, subject: &Subject<'_>) -> Vec<String> {
    let annotation = subject.annotation;
    match &subject.reach.way {
        Way::Header | Way::Remap { .. } => Vec::new(),
        Way::Pinned(reason) => {
            let baseline = subject.space.baseline();
            if subject.space.iter().all(|other| other.block == baseline.block && other.grid == baseline.grid) {
                return Vec::new();
            }
            let note = format!("{LAUNCHES_STAY}{reason}");
            if annotation.clauses.launch.is_some() && subject.kept.is_none() {
                tuner.console.diagnostics(&[annotation
                    .source
                    .warning(annotation.place("launch"), format!("`{}`: {note}", annotation.name))]);
            }
            vec![note]
        }
    }
}
