//! Whether a file can hold a tuning comment at all.
//!
//! Bytes -> yes or no, in one pass, for it is asked on every compile. It never says no to a file that
//! [`annotations`](super::annotations) finds something in; it may say yes to one in which that finds nothing.

const MARKER: &[u8] = b"@tune";

/// True where `@tune` stands right after `//` or `/*`, blanks between them allowed.
pub fn is_marked(bytes: &[u8]) -> bool {
    let mut from = 0;
    while let Some(at) = find_at_sign(bytes, from) {
        from = at + 1;
        if bytes[at..].starts_with(MARKER)
            && !bytes.get(at + MARKER.len()).is_some_and(is_identifier)
            && opens(&bytes[..at])
        {
            return true;
        }
    }
    false
}

/// The length of the opening (`//`, blanks, `@tune`) of a tuning comment, where `comment` is one.
pub(super) fn opening(comment: &str) -> Option<usize> {
    let body = comment.strip_prefix("//").or_else(|| comment.strip_prefix("/*"))?;
    let blanks = body.len() - body.trim_start_matches([' ', '\t']).len();
    let rest = body.get(blanks..)?.strip_prefix("@tune")?;
    let ends = !rest.as_bytes().first().is_some_and(is_identifier);
    ends.then_some(2 + blanks + MARKER.len())
}

fn opens(head: &[u8]) -> bool {
    let blanks = head.iter().rev().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    let head = &head[..head.len() - blanks];
    head.ends_with(b"//") || head.ends_with(b"/*")
}

fn is_identifier(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

/// The position of the next `@`, eight bytes at a time: C++ has no use for it, so that it is rare in sources.
fn find_at_sign(bytes: &[u8], from: usize) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = ONES << 7;
    let rest = bytes.get(from..)?;
    let mut chunks = rest.chunks_exact(8);
    let mut done = 0;
    for chunk in &mut chunks {
        let word = chunk.iter().fold(0u64, |word, &byte| (word << 8) | u64::from(byte)) ^ (ONES * u64::from(b'@'));
        if word.wrapping_sub(ONES) & !word & HIGHS != 0 {
            break;
        }
        done += 8;
    }
    rest[done..].iter().position(|&byte| byte == b'@').map(|at| from + done + at)
}

#[cfg(test)]
mod tests {
    use super::{is_marked, opening};

    #[test]
    fn markers_follow_a_comment_opening() {
        for (text, marked) in [
            ("//@tune block(auto)", true),
            ("// \t@tune", true),
            ("int x; /* @tune regs(auto) */", true),
            ("/*@tune*/", true),
            ("@tune", false),
            ("\"@tune\"", false),
            ("//@tuned", false),
            ("// see @tune", false),
            ("//@ //@tune", true),
            ("", false),
        ] {
            for blanks in 0..9 {
                let text = format!("{}{text}", "\n".repeat(blanks));
                assert_eq!(is_marked(text.as_bytes()), marked, "{text:?}");
            }
        }
        assert_eq!(opening("// @tune x"), Some(8));
        assert_eq!(opening("/// @tune x"), None);
    }
}
