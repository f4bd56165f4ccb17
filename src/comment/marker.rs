//! Whether a file can hold a tuning comment at all.
//!
//! Bytes -> yes or no, in one pass, for it is asked on every compile. It never says no to a file that
//! [`annotations`](super::annotations) finds something in; it may say yes to one in which that finds nothing.

const MARKER: &[u8] = b"@tune";

/// True where `@tune` stands right after `//` or `/*`, blanks between them allowed.
pub fn is_marked(bytes: &[u8]) -> bool {
    // C++ has no use for `@`, so that it is rare in sources.
    for at in memchr::memchr_iter(b'@', bytes) {
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
