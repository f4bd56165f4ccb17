//! Reads brackets and commas: the tokens of code by their texts, and plain text by its
//! characters.
//!
//! A closing bracket is taken for the partner of any open one: in code that compiles, each is
//! closed by its own kind. The caller knows whether `<` is a bracket.

/// Counts the open brackets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Depth {
    round: usize,
    angle: usize,
}

impl Depth {
    /// Returns whether no bracket is open.
    pub fn is_outside(self) -> bool {
        self.round == 0 && self.angle == 0
    }

    /// Passes a token and returns whether it is a bracket. One that closes nothing changes
    /// nothing.
    pub fn pass_token(&mut self, text: &str) -> bool {
        match text {
            "(" | "[" | "{" => self.round += 1,
            ")" | "]" | "}" => self.round = self.round.saturating_sub(1),
            _ => return false,
        }
        true
    }

    /// Passes a token where `<` and `>` are brackets of templates too. Within other brackets
    /// they compare.
    pub fn pass_template(&mut self, text: &str) -> bool {
        match text {
            "<" | ">" | ">>" if self.round > 0 => {}
            "<" => self.angle += 1,
            ">" => self.angle = self.angle.saturating_sub(1),
            // A shift, unless two are open.
            ">>" if self.angle > 1 => self.angle -= 2,
            _ => return self.pass_token(text),
        }
        true
    }

    /// Takes each open `<` that is in no other bracket for closed; returns that no bracket was
    /// passed.
    pub fn close_angles(&mut self) -> bool {
        if self.round == 0 {
            self.angle = 0;
        }
        false
    }
}

/// Returns whether a token closes a bracket other than `<`.
pub(crate) fn closes_bracket(text: &str) -> bool {
    matches!(text, ")" | "]" | "}")
}

/// Returns the place of the bracket `to` that belongs to the bracket `from` at the first of
/// `places`. These go forwards from an opening bracket, or backwards from a closing one.
pub(crate) fn matching_bracket<'t>(
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

/// Returns the place of the bracket that closes the one at the first of `places`. `pass` says
/// what a bracket is.
pub(crate) fn closing_bracket<'t>(
    places: impl IntoIterator<Item = usize>,
    text: impl Fn(usize) -> &'t str,
    pass: impl Fn(&mut Depth, &str) -> bool,
) -> Option<usize> {
    let mut depth = Depth::default();
    places.into_iter().find(|&at| pass(&mut depth, text(at)) && depth.is_outside())
}

/// Returns the ranges between the commas outside brackets, of the tokens from `from` to before
/// `to`: at least one. `pass` says what a bracket is.
pub(crate) fn split_parts<'t>(
    from: usize,
    to: usize,
    text: impl Fn(usize) -> &'t str,
    mut pass: impl FnMut(&mut Depth, &str) -> bool,
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

/// Returns what stands between the bracket that a text begins with and the one that closes it.
pub(crate) fn text_inside<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    let end = matching_bracket(0..text.len(), |at| character_at(text, at), open, close)?;
    text.get(1..end)
}

/// Returns what stands between the parenthesis that a text begins with and the one that closes
/// it.
pub(crate) fn text_in_parentheses(text: &str) -> Option<&str> {
    text_inside(text, "(", ")")
}

/// Splits a text at the commas outside brackets, `<` among them, and trims the pieces.
pub(crate) fn split_at_commas(text: &str) -> Vec<&str> {
    let pieces = split_parts(0, text.len(), |at| character_at(text, at), Depth::pass_template);
    pieces.into_iter().map(|(from, to)| text[from..to].trim()).collect()
}

/// Returns the one-byte character at a place; nothing within others, which are no brackets.
fn character_at(text: &str, at: usize) -> &str {
    text.get(at..=at).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Depth, matching_bracket, split_at_commas, split_parts, text_inside};

    fn words(text: &str) -> Vec<&str> {
        text.split(' ').collect()
    }

    #[test]
    fn brackets_are_matched_from_either_side() {
        let code = words("f ( a , ( b ) , c [ ( d ) ] ) ; )");
        let text = |at: usize| code[at];
        assert_eq!(matching_bracket(1..code.len(), text, "(", ")"), Some(14));
        assert_eq!(matching_bracket((0..=14).rev(), text, ")", "("), Some(1));
        assert_eq!(matching_bracket(4..code.len(), text, "(", ")"), Some(6));
        assert_eq!(matching_bracket(1..14, text, "(", ")"), None, "what is not closed has no end");
        assert_eq!(matching_bracket(0..14, text, "(", ")"), None, "no bracket is there");
    }

    #[test]
    fn commas_within_brackets_part_nothing() {
        let code = words("a , f ( b , c ) , d < e , g >");
        let of = |pass: fn(&mut Depth, &str) -> bool| split_parts(0, code.len(), |at| code[at], pass);
        assert_eq!(of(Depth::pass_template), [(0, 1), (2, 8), (9, 15)]);
        assert_eq!(of(Depth::pass_token), [(0, 1), (2, 8), (9, 12), (13, 15)]);
        assert_eq!(split_parts(3, 3, |at| code[at], Depth::pass_token), [(3, 3)]);
    }

    #[test]
    fn texts_are_split_like_tokens() {
        assert_eq!(split_at_commas("a, f(b, c>d) ,\u{e9}<e, g>"), ["a", "f(b, c>d)", "\u{e9}<e, g>"]);
        assert_eq!(split_at_commas(""), [""]);
        assert_eq!(text_inside("(\u{e9} (b), [)]) c", "(", ")"), Some("\u{e9} (b), ["));
        assert_eq!(text_inside("<a<b>> c", "<", ">"), Some("a<b>"));
        for text in ["", "a(b)", "(a"] {
            assert_eq!(text_inside(text, "(", ")"), None, "{text}");
        }
    }
}
