//! Host code -> the same with a `;` behind each macro that is a statement without one, such as
//! `CHECK_LAUNCH` on a line of its own. Otherwise the parser takes the macro for a type, and the
//! launch that follows for a declaration.
//!
//! Invariant: the text keeps its length, so that byte offsets hold in both.

use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// The beginning of a statement, a macro, and the first letter of the next statement. The macro is a
/// name in capitals, with or without arguments. It stands on a line of its own, or in front of a
/// launch. Group 1 or 2 is the first byte of white space behind it.
static MACRO: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let gap = r"(?:\s|//[^\n]*\n|/\*(?s:.*?)\*/)";
    let call = r"[A-Z_][A-Z0-9_]{2,}(?:[ \t]*\([^;{}]*?\))?";
    let launch = r"[A-Za-z_][\w:]*\s*(?:<[^;{}]*>)?\s*<<<";
    Regex::new(&format!(r"[;{{}}]{gap}*?(?:\n[ \t]*{call}([ \t\r\n]){gap}*[A-Za-z_]|{call}([ \t]){gap}*{launch})")).ok()
});

/// Returns the text to be parsed.
pub fn with_semicolons(text: &str) -> Cow<'_, str> {
    let Some(expression) = &*MACRO else { return Cow::Borrowed(text) };
    let groups = expression.captures_iter(text).filter_map(|found| found.get(1).or_else(|| found.get(2)));
    let places: Vec<usize> = groups.map(|group| group.start()).collect();
    if places.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut separated = String::with_capacity(text.len());
    let mut begin = 0;
    for place in places {
        separated.push_str(&text[begin..place]);
        separated.push(';');
        // The white space is one byte long.
        begin = place + 1;
    }
    separated.push_str(&text[begin..]);
    Cow::Owned(separated)
}
