//! Reads the lines by which a preprocessor says of which file and line the text below them is.

use std::borrow::Cow;

/// A line marker: `# 12 "a b.h" 1 3 4` or `#line 12 "a b.h"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LineMarker<'t> {
    /// The number of the line below, from 1.
    pub line: u32,
    /// The path, or `<built-in>` or `<command-line>`.
    pub file: Cow<'t, str>,
    /// Whether the file is a system header.
    pub is_system: bool,
}

impl<'t> LineMarker<'t> {
    /// Reads a line; `None` if it is no marker.
    pub fn parse(line: &'t [u8]) -> Option<Self> {
        let rest = line.strip_prefix(b"# ").or_else(|| line.strip_prefix(b"#line "))?;
        let is_quote = |&byte: &u8| byte == b'"';
        let (open, close) = (rest.iter().position(is_quote)?, rest.iter().rposition(is_quote)?);
        let line = std::str::from_utf8(&rest[..open]).ok()?.trim_end().parse().ok()?;
        let mut file = String::from_utf8_lossy(rest.get(open + 1..close)?);
        if file.contains('\\') {
            file = file.replace("\\\"", "\"").replace("\\\\", "\\").into();
        }
        let is_system = rest[close + 1..].split(|&byte| byte == b' ').any(|flag| flag == b"3");
        Some(LineMarker { line, file, is_system })
    }
}
