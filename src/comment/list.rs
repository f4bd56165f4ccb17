//! Tokens -> lists of integers: `{a, b}`, `lo:hi:step`, `pow2(lo, hi)`, a lone value, and these
//! mixed in braces.
//!
//! A list is never empty, has no value twice, keeps its order, and has at most [`MAX_VALUES`]
//! values.

use super::lexer::{RANGE, TokenKind};
use super::parser::Cursor;
use crate::cuda::brackets::Depth;
use crate::diag::Span;
use crate::diag::{Diagnostic, MessageCode};
use std::collections::HashSet;

/// The most values that one list may have.
const MAX_VALUES: usize = 65_536;

impl Cursor<'_> {
    /// A whole item as list: `{a, lo:hi:step}`, `lo:hi`, `pow2(lo, hi)` or a lone value. Values
    /// keep their order; one that comes again is dropped. Each comes with its place.
    pub fn list(&mut self, what: &str) -> Result<Vec<(i64, Span)>, Diagnostic> {
        let whole = self.rest();
        let mut values = Vec::new();
        if self.peek_mark() == Some("{") {
            let inner = self.group("{", "}")?;
            self.finish()?;
            for mut item in inner.items() {
                item.range(what, &mut values)?;
            }
        } else {
            self.range(what, &mut values)?;
        }
        let mut seen = HashSet::new();
        values.retain(|(value, _)| seen.insert(*value));
        match values.is_empty() {
            true => Err(self.source.error(
                MessageCode::ListForm,
                whole,
                format!("this list is empty: {what} needs at least one value"),
            )),
            false => Ok(values),
        }
    }

    /// One element of a list, up to the end of its item.
    fn range(&mut self, what: &str, values: &mut Vec<(i64, Span)>) -> Result<(), Diagnostic> {
        let whole = self.rest();
        if self.peek_mark() == Some(".") || (self.peek_name() == Some("range") && self.second_mark() == Some("(")) {
            return Err(self.source.error(
                MessageCode::ListForm,
                whole,
                format!("`{}` is no value: {RANGE}", self.source.slice(whole)),
            ));
        }
        if self.peek_name() == Some("pow2") && self.second_mark() == Some("(") {
            self.next();
            let inner = self.group("(", ")")?;
            self.finish()?;
            let [mut lo, mut hi] = inner.items()[..] else {
                return Err(self.source.error(
                    MessageCode::ListForm,
                    whole,
                    "`pow2` takes two arguments: pow2(lo, hi)",
                ));
            };
            let ((lo, lo_span), (hi, _)) = (lo.last_integer(what)?, hi.last_integer(what)?);
            if lo < 1 {
                return Err(self.source.error(MessageCode::ListForm, lo_span, "`pow2` begins at 1 or more"));
            }
            if hi < lo {
                let message = format!("this range is empty: {lo} is above {hi}; write pow2({hi}, {lo})");
                return Err(self.source.error(MessageCode::ListForm, whole, message));
            }
            let powers = (0..63).map(|power| 1i64 << power).filter(|power| (lo..=hi).contains(power));
            let before = values.len();
            values.extend(powers.map(|power| (power, whole)));
            return match values.len() == before {
                true => Err(self.source.error(
                    MessageCode::ListForm,
                    whole,
                    format!("no power of two lies in {lo} to {hi}"),
                )),
                false => Ok(()),
            };
        }
        let (lo, lo_span) = self.integer(what)?;
        if !self.eat(":") {
            self.finish()?;
            values.push((lo, lo_span));
            return self.bound(values, whole);
        }
        let (hi, _) = self.integer(what)?;
        let step = if self.eat(":") { Some(self.integer("the step of a range")?) } else { None };
        self.finish()?;
        if hi < lo {
            return Err(self.source.error(
                MessageCode::ListForm,
                whole,
                format!("this range is empty: {lo} is above {hi}; write {hi}:{lo}"),
            ));
        }
        let step = match step {
            Some((step, span)) if step < 1 => {
                return Err(self.source.error(MessageCode::ListForm, span, "the step of a range must be 1 or more"));
            }
            Some((step, _)) => step,
            None => 1,
        };
        let count = (i128::from(hi) - i128::from(lo)) / i128::from(step) + 1;
        if count > MAX_VALUES as i128 {
            return Err(self.source.error(
                MessageCode::ListTooLong,
                whole,
                format!("this range has {count} values; at most {MAX_VALUES} are allowed: add a step, lo:hi:step"),
            ));
        }
        // The last step may lead beyond what 64 bits hold; none of the values does.
        values.extend((0..count as i64).map(|index| (lo.wrapping_add(index.wrapping_mul(step)), whole)));
        self.bound(values, whole)
    }

    fn bound(&self, values: &[(i64, Span)], whole: Span) -> Result<(), Diagnostic> {
        if values.len() > MAX_VALUES {
            return Err(self.source.error(
                MessageCode::ListTooLong,
                whole,
                format!("this list has more than {MAX_VALUES} values"),
            ));
        }
        Ok(())
    }

    fn last_integer(&mut self, what: &str) -> Result<(i64, Span), Diagnostic> {
        let found = self.integer(what)?;
        self.finish()?;
        Ok(found)
    }

    /// True where the item has the form of a list and not of an expression.
    pub fn looks_like_list(&self) -> bool {
        let mut depth = Depth::default();
        let mut choices = 0usize;
        for (at, token) in self.tokens.iter().enumerate() {
            match token.kind {
                TokenKind::Mark(mark) if depth.pass_token(mark) || !depth.is_outside() => {}
                TokenKind::Mark("?") => choices += 1,
                TokenKind::Mark(":") if choices > 0 => choices -= 1,
                // `Mode::A` is a name of the source.
                TokenKind::Mark(":") => {
                    return self.tokens.get(at + 1).is_none_or(|next| next.kind != TokenKind::Mark(":"));
                }
                _ => {}
            }
        }
        self.peek_mark() == Some("{") || (self.peek_name() == Some("pow2") && self.second_mark() == Some("("))
    }
}
