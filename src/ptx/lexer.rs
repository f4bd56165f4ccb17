//! PTX text -> tokens with their bytes and lines.
//!
//! A word that begins with a dot ends before the next one (`.reg.b32` is two words); any other
//! word runs through dots and `::` (`ld.shared::cta.b32`, `%tid.x`). Comments, white space and
//! preprocessor lines (`#`) are no tokens.

use super::error::PtxError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Word,
    Number,
    Text,
    /// One character of punctuation.
    Mark(u8),
    End,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PtxToken {
    pub kind: TokenKind,
    pub start: usize,
    pub end: usize,
    pub line: u32,
}

pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    line: u32,
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%') || byte >= 0x80
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text, at: 0, line: 1 }
    }

    fn byte_at(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn skip_blank(&mut self) -> Result<(), PtxError> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b'\n' => {
                    self.line += 1;
                    self.at += 1;
                }
                // cicc writes no NUL, but file contents handed on by a driver may end with one.
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c | 0 => self.at += 1,
                b'/' if self.byte_at(1) == b'/' => self.skip_line(),
                b'#' => self.skip_line(),
                b'/' if self.byte_at(1) == b'*' => {
                    let line = self.line;
                    let rest = &self.text[self.at + 2..];
                    let Some(length) = rest.find("*/") else {
                        return Err(PtxError::Unterminated { line, what: "a comment" });
                    };
                    self.line += count_newlines(&rest.as_bytes()[..length]);
                    self.at += length + 4;
                }
                _ => break,
            }
        }
        Ok(())
    }

    fn skip_line(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
    }

    pub fn next_token(&mut self) -> Result<PtxToken, PtxError> {
        self.skip_blank()?;
        let (start, line) = (self.at, self.line);
        let bytes = self.text.as_bytes();
        let Some(&first) = bytes.get(start) else {
            return Ok(PtxToken { kind: TokenKind::End, start, end: start, line });
        };
        let kind = if first == b'.' && is_name(self.byte_at(1)) {
            self.at += 1;
            while is_name(self.byte_at(0)) {
                self.at += 1;
            }
            TokenKind::Word
        } else if first.is_ascii_digit() {
            self.skip_number();
            TokenKind::Number
        } else if is_name(first) {
            loop {
                if is_name(self.byte_at(0)) || (self.byte_at(0) == b'.' && is_name(self.byte_at(1))) {
                    self.at += 1;
                } else if self.byte_at(0) == b':' && self.byte_at(1) == b':' && is_name(self.byte_at(2)) {
                    self.at += 2;
                } else {
                    break;
                }
            }
            TokenKind::Word
        } else if first == b'"' {
            self.skip_string()?;
            TokenKind::Text
        } else {
            self.at += 1;
            TokenKind::Mark(first)
        };
        Ok(PtxToken { kind, start, end: self.at, line })
    }

    /// A number: letters belong to it (`0x1F`, `0f3F800000`, `7U`), as do a decimal point and
    /// an exponent's sign.
    fn skip_number(&mut self) {
        let start = self.at;
        let prefixed = self.byte_at(0) == b'0' && self.byte_at(1).is_ascii_alphabetic();
        loop {
            let byte = self.byte_at(0);
            let exponent = !prefixed
                && self.at > start
                && matches!(byte, b'+' | b'-')
                && matches!(self.text.as_bytes()[self.at - 1], b'e' | b'E')
                && self.byte_at(1).is_ascii_digit();
            let point = !prefixed && byte == b'.' && !self.byte_at(1).is_ascii_alphabetic();
            if byte.is_ascii_alphanumeric() || point || exponent {
                self.at += 1;
            } else {
                break;
            }
        }
    }

    fn skip_string(&mut self) -> Result<(), PtxError> {
        let line = self.line;
        self.at += 1;
        loop {
            match self.text.as_bytes().get(self.at) {
                None | Some(b'\n') => {
                    return Err(PtxError::Unterminated { line, what: "a string" });
                }
                Some(b'"') => break,
                Some(b'\\') if self.byte_at(1) == b'"' || self.byte_at(1) == b'\\' => self.at += 2,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        Ok(())
    }
}

fn count_newlines(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|&&b| b == b'\n').count() as u32
}
