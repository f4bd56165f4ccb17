//! C++ source -> its tokens, as far as finding kernels needs it.
//!
//! Strings, raw strings, characters, comments and preprocessor lines are recognized, so that
//! nothing inside them looks like code. Nothing is refused: what is never closed goes to the
//! end of the text.

use crate::diag::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CxxKind {
    Name,
    /// A number, string or character.
    Literal,
    /// One character, or `::`.
    Mark,
    /// `alone`: only blanks stand before it on its line.
    Comment {
        alone: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CxxToken {
    pub kind: CxxKind,
    pub span: Span,
}

/// The tokens of a text in order.
pub(crate) fn cxx_tokens(text: &str) -> Vec<CxxToken> {
    let bytes = text.as_bytes();
    // A token has about five characters, blanks included.
    let mut tokens = Vec::with_capacity(text.len() / 5);
    let mut at = 0;
    // Whether only blanks have been seen on this line.
    let mut fresh = true;
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        let (kind, end) = match byte {
            b'\n' => {
                fresh = true;
                at += 1;
                continue;
            }
            b' ' | b'\t' | b'\r' | b'\x0b' | b'\x0c' | b'\\' => {
                at += 1;
                continue;
            }
            b'/' if next == Some(b'/') => (CxxKind::Comment { alone: fresh }, line_end(bytes, at)),
            b'/' if next == Some(b'*') => (CxxKind::Comment { alone: fresh }, block_end(bytes, at)),
            b'#' if fresh => {
                at = directive_end(bytes, at);
                continue;
            }
            b'"' => (CxxKind::Literal, quoted_end(bytes, at, b'"')),
            b'\'' => (CxxKind::Literal, quoted_end(bytes, at, b'\'')),
            b'0'..=b'9' => (CxxKind::Literal, number_end(bytes, at)),
            _ if is_name(byte) => {
                let end = name_end(bytes, at);
                match (&bytes[at..end], bytes.get(end)) {
                    (b"R" | b"LR" | b"uR" | b"UR" | b"u8R", Some(b'"')) => (CxxKind::Literal, raw_end(bytes, end)),
                    _ => (CxxKind::Name, end),
                }
            }
            b':' if next == Some(b':') => (CxxKind::Mark, at + 2),
            _ => (CxxKind::Mark, at + 1),
        };
        let end = end.clamp(at + 1, bytes.len());
        tokens.push(CxxToken { kind, span: Span { start: at, end } });
        // A comment over several lines leaves only its own end before what follows it.
        let blank = matches!(kind, CxxKind::Comment { alone: true });
        fresh = fresh && blank;
        at = end;
    }
    tokens
}

/// The dimension that the words behind `threadIdx` and the like name: 1 of `.` and `y`.
pub(crate) fn member_dimension(point: &str, member: &str) -> Option<usize> {
    let dimension = ["x", "y", "z"].iter().position(|dimension| *dimension == member);
    dimension.filter(|_| point == ".")
}

/// Returns whether a character may be part of a name.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Splits a line that is a preprocessor directive into its word and what follows. The word of a
/// line marker is empty.
pub(crate) fn split_directive(line: &str) -> Option<(&str, &str)> {
    let text = line.trim_start().strip_prefix('#')?.trim_start();
    Some(text.split_at(text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len())))
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn name_end(bytes: &[u8], at: usize) -> usize {
    at + bytes[at..].iter().take_while(|&&byte| is_name(byte)).count()
}

/// A number with its digit separators: `1'000`.
fn number_end(bytes: &[u8], at: usize) -> usize {
    let mut end = name_end(bytes, at);
    while let (Some(b'\'' | b'.'), Some(true)) = (bytes.get(end), bytes.get(end + 1).map(|&byte| is_name(byte))) {
        end = name_end(bytes, end + 1);
    }
    end
}

/// The end of a `//` comment; a backslash at the end of a line continues it.
fn line_end(bytes: &[u8], at: usize) -> usize {
    let mut from = at;
    loop {
        let Some(length) = bytes[from..].iter().position(|&byte| byte == b'\n') else {
            return bytes.len();
        };
        let end = from + length;
        let line = bytes[at..end].strip_suffix(b"\r").unwrap_or(&bytes[at..end]);
        if !line.ends_with(b"\\") {
            return end;
        }
        from = end + 1;
    }
}

fn block_end(bytes: &[u8], at: usize) -> usize {
    let from = (at + 2).min(bytes.len());
    bytes[from..].windows(2).position(|pair| pair == b"*/").map_or(bytes.len(), |length| from + length + 2)
}

/// The end of a preprocessor line with its continuations; block comments in it may go over
/// lines.
pub(crate) fn directive_end(bytes: &[u8], at: usize) -> usize {
    let mut at = at;
    while let Some(&byte) = bytes.get(at) {
        at = match (byte, bytes.get(at + 1)) {
            (b'\n', _) => return at,
            (b'\\', Some(b'\r')) => at + 3,
            (b'\\', Some(_)) => at + 2,
            (b'/', Some(b'*')) => block_end(bytes, at),
            (b'/', Some(b'/')) => line_end(bytes, at),
            (b'"', _) => quoted_end(bytes, at, b'"'),
            _ => at + 1,
        };
    }
    bytes.len()
}

/// The end of a string or character; it never goes over the end of its line.
fn quoted_end(bytes: &[u8], at: usize, quote: u8) -> usize {
    let mut end = at + 1;
    while let Some(&byte) = bytes.get(end) {
        match byte {
            b'\\' => end += 2,
            b'\n' => return end,
            _ if byte == quote => return end + 1,
            _ => end += 1,
        }
    }
    bytes.len()
}

/// The end of a raw string whose `"` is at `at`.
fn raw_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at + 1..];
    let Some(length) = rest.iter().take(17).position(|&byte| byte == b'(') else {
        return quoted_end(bytes, at, b'"');
    };
    let closing = [b")", &rest[..length], b"\""].concat();
    let body = at + 1 + length;
    bytes[body..]
        .windows(closing.len())
        .position(|window| window == closing)
        .map_or(bytes.len(), |found| body + found + closing.len())
}
