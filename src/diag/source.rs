//! A source file as text, and places in it.
//!
//! Goes in: the bytes of a file. Comes out: text (bytes that are not UTF-8 are replaced) and,
//! for any span of it, the line, column and text that a message shows. Spans are byte ranges of
//! the text and always lie on character borders.

use super::code::MessageCode;
use super::diagnostic::Diagnostic;
use super::diagnostic::Severity;

/// A source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path as messages print it.
    pub path: String,
    pub text: String,
}

/// A range of bytes of [`Source::text`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    /// The span from the start of `self` to the end of `other`.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl Source {
    /// The source with these bytes; `path` is printed as it is given. A byte order mark is none
    /// of the text.
    pub fn new(path: impl Into<String>, bytes: &[u8]) -> Source {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        Source { path: path.into(), text: String::from_utf8_lossy(bytes).into_owned() }
    }

    /// The text of a span; empty where the span is not of this source.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start..span.end).unwrap_or("")
    }

    /// The 1-based line of a byte position.
    pub fn line(&self, position: usize) -> u32 {
        let head = self.text.as_bytes().get(..position).unwrap_or(self.text.as_bytes());
        let breaks = head.iter().filter(|&&byte| byte == b'\n').count();
        u32::try_from(breaks).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// An error at a place of this source.
    pub fn error(&self, code: MessageCode, span: Span, message: impl Into<String>) -> Diagnostic {
        self.diagnostic(Severity::Error, Some(code), span, message)
    }

    /// A warning at a place of this source.
    pub fn warning(&self, code: MessageCode, span: Span, message: impl Into<String>) -> Diagnostic {
        self.diagnostic(Severity::Warning, Some(code), span, message)
    }

    /// Makes a note that belongs to a diagnostic, whose code is its own.
    pub fn note(&self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.diagnostic(Severity::Note, None, span, message)
    }

    /// Makes a note that is printed by itself.
    pub fn remark(&self, code: MessageCode, span: Span, message: impl Into<String>) -> Diagnostic {
        self.diagnostic(Severity::Note, Some(code), span, message)
    }

    fn diagnostic(
        &self,
        severity: Severity,
        code: Option<MessageCode>,
        span: Span,
        message: impl Into<String>,
    ) -> Diagnostic {
        let start = self.text.get(..span.start).map_or(0, |head| head.rfind('\n').map_or(0, |at| at + 1));
        let rest = self.text.get(start..).unwrap_or("");
        let line = rest.split('\n').next().unwrap_or("").trim_end_matches('\r');
        let before = self.text.get(start..span.start).unwrap_or("").chars().count();
        let stop = span.end.min(start + line.len()).max(span.start);
        let length = self.text.get(span.start..stop).unwrap_or("").chars().count().max(1);
        Diagnostic {
            path: self.path.clone(),
            line: self.line(span.start),
            column: before as u32 + 1,
            length: length as u32,
            text: line.to_string(),
            severity,
            code,
            message: message.into(),
            notes: Vec::new(),
        }
    }
}
