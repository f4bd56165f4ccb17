//! The `default` clause: the baseline, part by part.

use super::annotation::{Defaults, Spanned};
use super::numbers::{cap, percent, positive};
use super::parsed::Parsed;
use super::parser::Cursor;
use crate::diag::Span;
use crate::diag::{Diagnostic, MessageCode};
use crate::launch::Dim3;

pub(super) fn default(
    parsed: &mut Parsed,
    cursor: Cursor<'_>,
    span: Span,
    problems: &mut Vec<Diagnostic>,
) -> Result<(), Diagnostic> {
    parsed.clauses.default.span = Some(span);
    let mut seen: Vec<(String, Span)> = Vec::new();
    for mut item in cursor.items() {
        if let Err(problem) = default_item(&mut parsed.clauses.default, &mut item, &mut seen) {
            problems.push(problem);
        }
    }
    Ok(())
}

fn default_item(
    default: &mut Defaults,
    item: &mut Cursor<'_>,
    seen: &mut Vec<(String, Span)>,
) -> Result<(), Diagnostic> {
    let (name, mut span) = item.name("the name of an axis, as in default(block = 256)")?;
    let mut key = name.to_string();
    let mut part = None;
    if item.eat(".") {
        let (axis, place) = item.name("`x`, `y` or `z`")?;
        span = span.to(place);
        key = format!("{name}.{axis}");
        part = Some(match (name, axis) {
            ("block" | "grid", "x") => 0,
            ("block" | "grid", "y") => 1,
            ("block" | "grid", "z") => 2,
            _ => {
                return Err(item.source.error(
                    MessageCode::DefaultClause,
                    span,
                    format!("`{key}` is no axis: known are block.x, .y, .z and grid.x, .y, .z"),
                ));
            }
        });
    }
    let clash = |other: &str| {
        other == key
            || (other == name && part.is_some())
            || other.strip_prefix(name).is_some_and(|rest| part.is_none() && rest.starts_with('.'))
    };
    if let Some((_, first)) = seen.iter().find(|(other, _)| clash(other)) {
        let note = item.source.note(*first, "first given here");
        return Err(item
            .source
            .error(MessageCode::GivenTwice, span, format!("the default of `{key}` is given twice: remove one"))
            .with(note));
    }
    seen.push((key.clone(), span));
    if !item.eat("=") {
        return Err(item.expected(&format!("`=` and the default of `{key}`")));
    }
    match name {
        "block" => shape(item, part, span, &mut default.block, "a block dimension"),
        "grid" => shape(item, part, span, &mut default.grid, "a grid dimension"),
        _ => {
            if name == "cache" {
                let message =
                    "`cache` has no default: for another operator in the baseline, build with -Xptxas -dlcm=cg";
                return Err(item.source.error(MessageCode::DefaultClause, span, message));
            }
            if name == "math" {
                let message = "the baseline has the math options of the build: leave `math` out of `default`";
                return Err(item.source.error(MessageCode::DefaultClause, span, message));
            }
            if name == "unroll" {
                let message = "the baseline has the loops of the source: leave `unroll` out of `default`";
                return Err(item.source.error(MessageCode::DefaultClause, span, message));
            }
            let value = item.integer(&format!("the default of `{name}`"))?;
            item.finish()?;
            if name == "regs" {
                default.regs = Some(Spanned { value: cap(item, value)?, span: value.1 });
            } else if name == "carveout" {
                default.carveout = Some(Spanned { value: percent(item, value)?, span: value.1 });
            } else {
                default.macros.push((name.to_string(), Spanned { value: value.0, span }));
            }
            Ok(())
        }
    }
}

/// The value of `block`, `grid` or one part of them.
fn shape(
    item: &mut Cursor<'_>,
    part: Option<usize>,
    span: Span,
    into: &mut Option<Spanned<Dim3>>,
    what: &str,
) -> Result<(), Diagnostic> {
    let whole = item.rest();
    let mut extents: Dim3 = into.as_ref().map_or([1, 1, 1], |shape| shape.value);
    if let Some(part) = part {
        let value = item.integer(what)?;
        item.finish()?;
        extents[part] = positive(item, value, what)?;
        *into = Some(Spanned { value: extents, span });
        return Ok(());
    }
    let items = if item.peek_mark() == Some("{") {
        let inner = item.group("{", "}")?;
        item.finish()?;
        inner.items()
    } else {
        vec![*item]
    };
    if items.is_empty() || items.len() > 3 {
        return Err(item.source.error(
            MessageCode::DefaultClause,
            whole,
            "a shape has one to three dimensions, as in {16, 16}",
        ));
    }
    for (extent, mut item) in extents.iter_mut().zip(items) {
        let value = item.integer(what)?;
        item.finish()?;
        *extent = positive(&item, value, what)?;
    }
    *into = Some(Spanned { value: extents, span: whole });
    Ok(())
}
