//! The brackets of a text, by the texts of its tokens -> which of them belong together, and what lies between the commas outside of them.
//!
//! They are counted and not told apart: in code that a compiler passes, each is closed by its own kind. Whether `<` is one, the caller knows.

/// How many brackets are open.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Depth(usize);

impl Depth {
    /// Whether no bracket is open.
    pub fn is_outside(self) -> bool {
        self.0 == 0
    }

    /// Goes past a token; whether it is a bracket. One that closes nothing changes nothing.
    pub fn pass(&mut self, text: &str) -> bool {
        match text {
            "(" | "[" | "{" => self.0 += 1,
            ")" | "]" | "}" => self.0 = self.0.saturating_sub(1),
            _ => return false,
        }
        true
    }

    /// The same where `<` and `>` are brackets, too, those of templates.
    pub fn pass_template(&mut self, text: &str) -> bool {
        match text {
            "<" => self.0 += 1,
            ">" => self.0 = self.0.saturating_sub(1),
            _ => return self.pass(text),
        }
        true
    }
}

/// Whether a token closes a bracket that is not `>`.
pub(crate) fn closes(text: &str) -> bool {
    matches!(text, ")" | "]" | "}")
}

/// The first of `places`, which begin with a bracket of the kind `from`, where as many are past of the kind `to`. Forwards from one that
/// opens, or backwards from one that closes.
pub(crate) fn matching<'t>(
    places: impl IntoIterator<Item = usize>,
    text: impl Fn(usize) -> &'t str,
    from: &str,
    to: &str,
) -> Option<usize> {
    let mut depth = 0usize;
    for at in places {
        let word = text(at);
        if word == from {
            depth += 1;
        } else if depth == 0 {
            return None;
        } else if word == to {
            depth -= 1;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// The ranges between the commas, from `from` to before `to`, that are in no bracket, of which `pass` keeps count: one at least.
pub(crate) fn parts<'t>(
    from: usize,
    to: usize,
    text: impl Fn(usize) -> &'t str,
    pass: impl Fn(&mut Depth, &str) -> bool,
) -> Vec<(usize, usize)> {
    let (mut found, mut depth, mut begin) = (Vec::new(), Depth::default(), from);
    for at in from..to {
        if !pass(&mut depth, text(at)) && depth.is_outside() && text(at) == "," {
            found.push((begin, at));
            begin = at + 1;
        }
    }
    found.push((begin, to));
    found
}

#[cfg(test)]
mod tests {
    use super::{Depth, matching, parts};

    fn words(text: &str) -> Vec<&str> {
        text.split(' ').collect()
    }

    #[test]
    fn brackets_are_matched_from_either_side() {
        let code = words("f ( a , ( b ) , c [ ( d ) ] ) ; )");
        let text = |at: usize| code[at];
        assert_eq!(matching(1..code.len(), text, "(", ")"), Some(14));
        assert_eq!(matching((0..=14).rev(), text, ")", "("), Some(1));
        assert_eq!(matching(4..code.len(), text, "(", ")"), Some(6));
        assert_eq!(matching(1..14, text, "(", ")"), None, "what is not closed has no end");
        assert_eq!(matching(0..14, text, "(", ")"), None, "no bracket is there");
    }

    #[test]
    fn commas_within_brackets_part_nothing() {
        let code = words("a , f ( b , c ) , d < e , g >");
        let of = |pass: fn(&mut Depth, &str) -> bool| parts(0, code.len(), |at| code[at], pass);
        assert_eq!(of(Depth::pass_template), [(0, 1), (2, 8), (9, 15)]);
        assert_eq!(of(Depth::pass), [(0, 1), (2, 8), (9, 12), (13, 15)]);
        assert_eq!(parts(3, 3, |at| code[at], Depth::pass), [(3, 3)]);
    }
}
