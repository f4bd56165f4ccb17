//! Numbers of clauses: positive extents, register caps, percentages.

use super::parser::Cursor;
use crate::diag::Span;
use crate::diag::{Diagnostic, MessageCode};

pub(crate) fn positive(cursor: &Cursor<'_>, (value, span): (i64, Span), what: &str) -> Result<u32, Diagnostic> {
    match u32::try_from(value) {
        Ok(value) if value > 0 => Ok(value),
        _ if value <= 0 => {
            let range = range_meant(cursor, span);
            Err(cursor.source.error(
                MessageCode::OutOfRange,
                span,
                format!("{what} must be 1 or more, not {value}{range}"),
            ))
        }
        _ => Err(cursor.source.error(MessageCode::OutOfRange, span, format!("{what} of {value} is too large"))),
    }
}

pub(crate) fn cap(cursor: &Cursor<'_>, (value, span): (i64, Span)) -> Result<u32, Diagnostic> {
    match u32::try_from(value) {
        Ok(cap @ (0 | 16..=255)) => Ok(cap),
        _ => {
            let range = range_meant(cursor, span);
            Err(cursor.source.error(
                MessageCode::OutOfRange,
                span,
                format!("a register cap is 0 (none) or 16 to 255, not {value}{range}"),
            ))
        }
    }
}

pub(crate) fn percent(cursor: &Cursor<'_>, (value, span): (i64, Span)) -> Result<Option<u8>, Diagnostic> {
    match u8::try_from(value) {
        Ok(percent @ 0..=100) => Ok(Some(percent)),
        _ if value == -1 => Ok(None),
        _ => {
            let message = format!("a carve-out is 0 to 100 percent, or -1 (what the driver chooses), not {value}");
            Err(cursor.source.error(MessageCode::OutOfRange, span, message))
        }
    }
}

/// The most copies of a loop's body that `unroll` makes: with more a body of a few instructions
/// no longer fits the instruction cache.
const MOST_COPIES: u32 = 64;

pub(crate) fn factor(cursor: &Cursor<'_>, (value, span): (i64, Span)) -> Result<u32, Diagnostic> {
    match u32::try_from(value) {
        Ok(factor @ 1..=MOST_COPIES) => Ok(factor),
        _ => {
            let range = range_meant(cursor, span);
            let message = format!("a loop is unrolled by 1 (not at all) to {MOST_COPIES}, not {value}{range}");
            Err(cursor.source.error(MessageCode::OutOfRange, span, message))
        }
    }
}

/// What to write where `64-1024` is a difference below 0 and was meant as a range.
fn range_meant(cursor: &Cursor<'_>, span: Span) -> String {
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let bounds = cursor.source.slice(span).split_once('-').map(|(low, high)| (low.trim(), high.trim()));
    match bounds.filter(|(low, high)| is_number(low) && is_number(high)) {
        Some((low, high)) => format!(": a range is written {low}:{high}"),
        None => String::new(),
    }
}
