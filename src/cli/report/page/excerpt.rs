//! A record's source -> the lines of a kernel, with its tuning comment.

use crate::comment::annotations;
use crate::diag::Source;
use crate::record::{Record, read_regular};
use std::path::Path;

/// Lines of an excerpt, at most. They bound the page's size.
const MOST_LINES: usize = 120;

/// Characters of a line, at most.
const MOST_CHARACTERS: usize = 240;

/// Lines of a kernel and its comment.
#[derive(Debug, PartialEq)]
pub struct Excerpt {
    /// The number of the first line.
    pub first: u32,
    pub lines: Vec<String>,
    /// How many of them, from the first, are the comment.
    pub comment: usize,
}

/// Returns the lines of a kernel, from its comment to the end of its body.
///
/// # Errors
/// Why there are none, as the rest of a sentence about the source.
pub fn excerpt(record: &Record, kernel: &str) -> Result<Excerpt, &'static str> {
    let path = Path::new(&record.folder).join(&record.source);
    let bytes = read_regular(&path).map_err(|_| "is not there any more")?;
    from_source(&Source::new(record.source.clone(), &bytes), kernel)
}

fn from_source(source: &Source, kernel: &str) -> Result<Excerpt, &'static str> {
    let annotations = annotations(source).map_err(|_| "has changed since")?;
    let own = annotations.iter().find(|annotation| annotation.name == kernel);
    let annotation = own.or_else(|| annotations.iter().find(|annotation| annotation.may_be_named(kernel)));
    let annotation = annotation.ok_or("does not have its comment")?;
    let from = source.line(annotation.comment.start);
    let to = source.line(end_of_body(&source.text, annotation.kernel.span.end));
    let lines = source.text.lines().skip(from as usize - 1).take((to - from) as usize + 1);
    let lines = lines.take(MOST_LINES).map(|line| line.chars().take(MOST_CHARACTERS).collect());
    let start = annotation.kernel.template.unwrap_or(annotation.kernel.span).start;
    Ok(Excerpt { first: from, lines: lines.collect(), comment: (source.line(start) - from) as usize })
}

/// Returns the place of the brace that closes the body; the end of the declaration if there is none.
fn end_of_body(text: &str, from: usize) -> usize {
    let mut depth = 0usize;
    for (at, character) in text[from..].char_indices() {
        match character {
            ';' if depth == 0 => return from + at,
            '{' => depth += 1,
            '}' if depth <= 1 => return from + at,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "int a;\n//@tune threads(n)\n//@tune block({64, 128})\n__global__ void k(int n) {\n  if (n) { }\n}\nint b;\n";

    #[test]
    fn excerpt_is_comment_and_body() {
        let excerpt = from_source(&Source::new("a.cu", TEXT.as_bytes()), "k").expect("it has the kernel");
        assert_eq!((excerpt.first, excerpt.comment, excerpt.lines.len()), (2, 2, 5));
        assert_eq!(excerpt.lines[4], "}");
    }

    #[test]
    fn other_kernels_have_no_excerpt() {
        let source = Source::new("a.cu", TEXT.as_bytes());
        assert_eq!(from_source(&source, "other"), Err("does not have its comment"));
        assert_eq!(from_source(&Source::new("a.cu", b"//@tune blok(1)\n"), "k"), Err("has changed since"));
    }
}
