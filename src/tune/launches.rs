//! Compares the launches in a marked source with its comment, and warns where they disagree.

use super::kernel_info::KernelInfo;
use super::launch_path::{LAUNCHES_STAY, WinnerPlacement};
use super::surroundings::Surroundings;
use super::{Tuner, header_functions};
use crate::comment::{Annotation, Spanned};
use crate::cuda::HostCode;
use crate::diag::{Diagnostic, MessageCode};
use crate::launch::{Dim3, shape};
use std::collections::BTreeSet;

/// Returns a warning if the block of every launch in the source is known and none is the
/// baseline's.
pub fn warn_other_block(info: &KernelInfo<'_>, around: &Surroundings) -> Option<Diagnostic> {
    if around.includes_header {
        return None;
    }
    let annotation = info.annotation;
    let launches = around.host.launches_of(&annotation.kernel.name);
    let baseline = info.space.baseline();
    let blocks: Option<Vec<Dim3>> = launches.iter().map(|launch| launch.block).collect();
    let first = launches.first()?;
    let block = *blocks.filter(|blocks| !blocks.contains(&baseline.block))?.first()?;
    let is_listed = info.space.iter().any(|configuration| configuration.block == block);
    let remedy = match (is_listed, annotation.clauses.default.block.is_some()) {
        (true, true) => format!("write default(block = {})", written(block)),
        (true, false) => format!("add default(block = {})", written(block)),
        (false, _) => format!("write default(block = {}), and add that block to `block`", written(block)),
    };
    let message = format!(
        "this launch of `{}` has blocks of {}, but the baseline has {}: {remedy}",
        annotation.name,
        shape(block),
        shape(baseline.block)
    );
    let warning = first.source.warning(MessageCode::OtherBlockLaunched, first.span, message);
    Some(match &annotation.clauses.default.block {
        Some(given) => warning.with(annotation.source.note(given.span, "the baseline is given here")),
        None => warning,
    })
}

/// A block as the `default` clause has it.
fn written(block: Dim3) -> String {
    match block {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("{{{x}, {y}}}"),
        [x, y, z] => format!("{{{x}, {y}, {z}}}"),
    }
}

/// Takes the block of the launches in the source for the default, if the comment gives none,
/// all launches agree and the space has it.
pub fn infer_default_block(annotation: &mut Annotation, host: &HostCode) {
    let blocks: Option<BTreeSet<Dim3>> =
        host.launches_of(&annotation.kernel.name).into_iter().map(|launch| launch.block).collect();
    let Some(block) = blocks.filter(|blocks| blocks.len() == 1).and_then(|blocks| blocks.into_iter().next()) else {
        return;
    };
    let mut with_default = annotation.clone();
    with_default.clauses.default.block = Some(Spanned { value: block, span: annotation.place("block") });
    if header_functions::space(&with_default, "").is_ok() {
        *annotation = with_default;
    }
}

/// Returns the note where the source launches a kernel without its launch stub: such a launch
/// runs the kernel that nvcc made.
pub fn without_stub(info: &KernelInfo<'_>, around: &Surroundings) -> Option<Diagnostic> {
    let (source, span) = around.host.without_stub(&info.annotation.kernel.name)?;
    matches!(info.launch_path.placement, WinnerPlacement::Entries { .. }).then(|| {
        let name = &info.annotation.name;
        source.remark(
            MessageCode::LaunchWithoutStub,
            span,
            format!(
                "this launch of `{name}` runs nvcc's own code: it reaches no launch stub, which selects the winner"
            ),
        )
    })
}

/// Returns notes on why a kernel can have no winner.
pub fn pinned_notes(tuner: &Tuner<'_>, info: &KernelInfo<'_>) -> Vec<String> {
    let annotation = info.annotation;
    let Some(reason) = info.launch_path.pinned().filter(|_| info.space.len() > 1) else { return Vec::new() };
    let note = format!("{LAUNCHES_STAY}{reason}");
    if annotation.clauses.launch.is_some() && !tuner.is_other_architecture {
        let message = format!("`{}`: {note}", annotation.name);
        tuner.console.diagnostics(&[annotation.source.warning(
            MessageCode::LaunchesKept,
            annotation.place("launch"),
            message,
        )]);
    }
    vec![MessageCode::LaunchesKept.tag(note)]
}
