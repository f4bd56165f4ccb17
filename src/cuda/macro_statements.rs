//! Host code -> the same with a `;` behind each statement that is a macro without one, as in
//! `CHECK_LAUNCH` on a line of its own: without it the parser takes the macro for the type of what
//! follows, and a launch behind it for a declaration.
//!
//! Invariant: the text keeps its length, so that a place in one is the same place in the other.

use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// A macro is a name in capitals that begins a statement, with or without arguments, and the next
/// word begins another statement: on another line, or a launch. What stands between is white space
/// and comments; its first byte is the group.
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
        // White space of one byte.
        begin = place + 1;
    }
    separated.push_str(&text[begin..]);
    Cow::Owned(separated)
}
