//! Whether a file can hold a tuning comment at all.
//!
//! Bytes -> yes or no, in one pass, for it is asked on every compile. It never says no to a
//! file that [`annotations`](super::annotations::annotations) finds something in; it may say
//! yes to one in which that finds nothing.
//!
//! No search of another crate here: those ask the processor first which instructions it has,
//! and in a virtual machine each such question is a trap. All of them took 0.1 ms, a tenth of
//! what a call may cost.

const MARKER: &[u8] = b"@tune";

/// What a file can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A tuning comment.
    Tuned,
    /// None, but what may have been meant as one (see
    /// [`near_misses`](super::misspelled::near_misses)).
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
        if nearly(&bytes[at..]).is_some() {
            found = Mark::Nearly;
        }
    }
    found
}

/// The length of `@tune` at the start of a text, misspelled or not, with blanks behind the `@`
/// or without.
pub(super) fn nearly(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(b"@")?;
    let blanks = count(rest, is_blank);
    Some(1 + blanks + misspelled_word(&rest[blanks..])?)
}

/// The length of `tune`, misspelled or not, that a pragma begins with; `rest` is what follows
/// `#pragma`.
pub fn tune_pragma(rest: &[u8]) -> Option<usize> {
    let start = count(rest, |byte| is_blank(byte) || *byte == b'@');
    let word = misspelled_word(&rest[start..]).filter(|_| start > 0)?;
    Some(start + word)
}

/// Other words for `tune`.
const OTHER_WORDS: [&[u8]; 3] = [b"nvtune", b"autotune", b"tuning"];

/// The length of the word at the start of a text, if it is `tune` in any case, with at most one
/// slip, or another word for it.
fn misspelled_word(text: &[u8]) -> Option<usize> {
    let length = count(text, is_identifier);
    let word = &text[..length];
    let is_meant =
        is_one_slip_away(word, &MARKER[1..]) || OTHER_WORDS.iter().any(|other| word.eq_ignore_ascii_case(other));
    is_meant.then_some(length)
}

/// Whether one insertion, deletion, substitution or swap of neighbours at most makes a word the
/// wanted one, in any case.
fn is_one_slip_away(word: &[u8], wanted: &[u8]) -> bool {
    let (short, long) = (word.len().min(wanted.len()), word.len().max(wanted.len()));
    if long - short > 1 {
        return false;
    }
    let same = |(a, b): &(&u8, &u8)| a.eq_ignore_ascii_case(b);
    let head = word.iter().zip(wanted).take_while(same).count();
    let tail = word.iter().rev().zip(wanted.iter().rev()).take_while(same).count().min(short - head);
    let is_swap = || {
        let (a, b) = (&word[head..word.len() - tail], &wanted[head..wanted.len() - tail]);
        matches!((a, b), ([a, b], [c, d]) if a.eq_ignore_ascii_case(d) && b.eq_ignore_ascii_case(c))
    };
    head + tail + 1 >= long || is_swap()
}

/// How many bytes at the start of a text are of a kind.
fn count(text: &[u8], is_kind: impl Fn(&u8) -> bool) -> usize {
    text.iter().take_while(|byte| is_kind(byte)).count()
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
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

/// The length of the opening (`//`, blanks, `@tune`) of a tuning comment, where `comment` is
/// one.
pub(super) fn opening(comment: &str) -> Option<usize> {
    let body = comment.strip_prefix("//").or_else(|| comment.strip_prefix("/*"))?;
    let blanks = body.len() - body.trim_start_matches([' ', '\t']).len();
    let rest = body.get(blanks..)?.strip_prefix("@tune")?;
    let ends = !rest.as_bytes().first().is_some_and(is_identifier);
    ends.then_some(2 + blanks + MARKER.len())
}

fn opens(head: &[u8]) -> bool {
    let blanks = head.iter().rev().take_while(|byte| is_blank(byte)).count();
    let head = &head[..head.len() - blanks];
    head.ends_with(b"//") || head.ends_with(b"/*")
}

fn is_identifier(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, is_marked, nearly, occurrences, opening, tune_pragma};

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

    #[test]
    fn misspelled_markers_are_one_slip_away() {
        for word in
            ["tune", "TUNE", "tunes", "tuned", "tun", "une", "tuen", "utne", "tine", "ttune", "nvtune", "Tuning"]
        {
            assert_eq!(nearly(format!("@{word} x").as_bytes()), Some(1 + word.len()), "{word}");
            assert_eq!(nearly(format!("@ {word}").as_bytes()), Some(2 + word.len()), "{word}");
            assert_eq!(tune_pragma(format!("\t@{word}(").as_bytes()), Some(2 + word.len()), "{word}");
        }
        for word in ["", "t", "tu", "param", "type", "time", "true", "note", "tuners", "toned", "etnu", "tune_all"] {
            assert_eq!(nearly(format!("@{word} x").as_bytes()), None, "{word}");
        }
    }
}
