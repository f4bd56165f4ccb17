//! Whether a file can hold a tuning comment at all.
//!
//! Bytes -> yes or no, in one pass, for it is asked on every compile. It never says no to a file that
//! [`annotations`](super::annotations::annotations) finds something in; it may say yes to one in which that finds nothing.
//!
//! No search of another crate here: those ask the processor first which instructions it has, and in a virtual machine each such
//! question is a trap. All of them took 0.1 ms, a tenth of what a call may cost.

const MARKER: &[u8] = b"@tune";

/// What a file can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A tuning comment.
    Tuned,
    /// None, but what may have been meant as one (see [`near_misses`](super::misspelled::near_misses)).
    Nearly,
    Nothing,
}

/// True where `@tune` stands right after `//` or `/*`, blanks between them allowed.
pub fn is_marked(bytes: &[u8]) -> bool {
    mark(bytes) == Mark::Tuned
}

/// The same, and whether it is all but there.
pub fn mark(bytes: &[u8]) -> Mark {
    let mut found = Mark::Nothing;
    // C++ has no use for `@`, so that it is rare in sources.
    for at in occurrences(bytes, b'@') {
        if bytes[at..].starts_with(MARKER)
            && !bytes.get(at + MARKER.len()).is_some_and(is_identifier)
            && opens(&bytes[..at])
        {
            return Mark::Tuned;
        }
        // Files full of `@param` are common: one byte tells most of it.
        if matches!(bytes.get(at + 1), Some(b't' | b'T' | b' ' | b'\t')) && nearly(&bytes[at..]).is_some() {
            found = Mark::Nearly;
        }
    }
    found
}

/// The length of `@tune` at the start of a text, in capitals or not, with blanks behind the `@` or without.
pub(super) fn nearly(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(b"@")?;
    let rest = &rest[rest.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count()..];
    let (word, rest) = rest.split_at_checked(MARKER.len() - 1)?;
    let is_it = word.eq_ignore_ascii_case(&MARKER[1..]) && !rest.first().is_some_and(is_identifier);
    is_it.then_some(text.len() - rest.len())
}

/// Where `wanted` stands in `text`, for a byte that is rare there.
pub fn occurrences(text: &[u8], wanted: u8) -> impl Iterator<Item = usize> {
    // Without an early end of the inner loop, the compiler compares many bytes at once.
    let holds = move |block: &[u8]| block.iter().fold(false, |found, &byte| found | (byte == wanted));
    let blocks = text.chunks(BLOCK).enumerate().filter(move |(_, block)| holds(block));
    blocks.flat_map(move |(number, block)| {
        let places = block.iter().enumerate().filter(move |(_, byte)| **byte == wanted);
        places.map(move |(place, _)| number * BLOCK + place)
    })
}

/// How many bytes are looked at as one.
const BLOCK: usize = 256;

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
    use super::{BLOCK, is_marked, occurrences, opening};

    #[test]
    fn bytes_are_found_wherever_they_stand() {
        for places in [&[][..], &[0], &[BLOCK - 1], &[BLOCK, BLOCK + 1, 2 * BLOCK], &[3 * BLOCK + 6]] {
            let mut text = vec![b'x'; 3 * BLOCK + 7];
            places.iter().for_each(|&place| text[place] = b'#');
            assert_eq!(occurrences(&text, b'#').collect::<Vec<_>>(), places);
        }
    }

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
