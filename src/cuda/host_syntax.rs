//! Host code -> its syntax tree, in which what the grammar does not know reads as something that
//! it does.
//!
//! Invariant: every node has the place that it has in the text.

use super::macro_statements::with_semicolons;
use std::borrow::Cow;
use tree_sitter::{Node, Parser, Tree};

/// Parses the text of a file.
pub fn parse_host_code(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_cuda::LANGUAGE.into()).ok()?;
    parser.parse(with_parentheses(&with_semicolons(text)).as_bytes(), None)
}

/// The extents of a launch that are given in bare braces, as in `<<<grid, {128, 1, 1}>>>`: the
/// grammar takes them for an expression in parentheses.
pub fn braced_extents<'t>(text: &str, node: Node<'t>) -> Option<Vec<Node<'t>>> {
    let is_braced = node.kind() == "parenthesized_expression" && text[node.start_byte()..].starts_with('{');
    let mut extents = Vec::new();
    let mut rest = node.named_child(0).filter(|_| is_braced)?;
    while rest.kind() == "comma_expression" {
        extents.push(rest.child_by_field_name("left")?);
        rest = rest.child_by_field_name("right")?;
    }
    extents.push(rest);
    Some(extents)
}

/// Returns the text with parentheses in place of the bare braces around an argument of `<<<>>>`.
fn with_parentheses(text: &str) -> Cow<'_, str> {
    let mut bytes = Cow::Borrowed(text.as_bytes());
    for (launch, _) in text.match_indices("<<<") {
        let braces = bare_braces(&text.as_bytes()[launch + 3..]);
        for (open, close) in braces {
            bytes.to_mut()[launch + 3 + open] = b'(';
            bytes.to_mut()[launch + 3 + close] = b')';
        }
    }
    match bytes {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(bytes) => String::from_utf8(bytes).map_or(Cow::Borrowed(text), Cow::Owned),
    }
}

/// Returns the places of the braces that an argument begins and ends with, before the `>>>`.
fn bare_braces(code: &[u8]) -> Vec<(usize, usize)> {
    let (mut found, mut opened) = (Vec::new(), Vec::new());
    let mut begins = true;
    for (place, &byte) in code.iter().enumerate() {
        match byte {
            b'(' | b'[' => opened.push(None),
            b'{' => opened.push(begins.then_some(place)),
            b')' | b']' | b'}' => match opened.pop() {
                Some(open) => found.extend(open.filter(|_| byte == b'}').map(|open| (open, place))),
                None => break,
            },
            b';' => break,
            // The next launch: no text is looked at twice.
            b'<' if code[place..].starts_with(b"<<<") => break,
            b'>' if opened.is_empty() && code[place..].starts_with(b">>>") => return found,
            _ => {}
        }
        begins = opened.is_empty() && (byte == b',' || begins && byte.is_ascii_whitespace());
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_braces_of_launches_become_parentheses() {
        for (code, expected) in [
            ("k<<<g, {128, 1, 1}>>>(x);", "k<<<g, (128, 1, 1)>>>(x);"),
            ("k<<< {n, f({m})},\n {8}, 0>>>({1});", "k<<< (n, f({m})),\n (8), 0>>>({1});"),
            ("k<<<dim3{4, 4}, b>>>(x);", "k<<<dim3{4, 4}, b>>>(x);"),
            ("k<<<f(a, {1}), b>>>(x);", "k<<<f(a, {1}), b>>>(x);"),
            ("cout <<< {a; b} >>>", "cout <<< {a; b} >>>"),
            ("k<<<g, {128", "k<<<g, {128"),
            ("k<<<{1 q<<<{2}, b>>>(x);", "k<<<{1 q<<<(2), b>>>(x);"),
        ] {
            assert_eq!(with_parentheses(code), expected);
        }
    }
}
