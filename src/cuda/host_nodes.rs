//! Nodes of a syntax tree -> the names, arguments and types in them.

use super::tokens::is_word;
use tree_sitter::Node;

/// The most bytes of a name of a type or of what is assigned. Longer text is code.
pub(super) const LONGEST: usize = 400;

/// The arguments of a call.
pub(super) fn arguments(call: Node<'_>) -> Vec<Node<'_>> {
    call.child_by_field_name("arguments").map_or_else(Vec::new, elements)
}

/// The elements of a list, without comments.
pub(super) fn elements(list: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = list.walk();
    list.named_children(&mut cursor).filter(|node| node.kind() != "comment").collect()
}

/// The `<<<grid, block, ...>>>` of a call that is a launch.
pub(super) fn launch_shape(call: Node<'_>) -> Option<Node<'_>> {
    let mut cursor = call.walk();
    let is_call = call.kind() == "call_expression";
    call.children(&mut cursor).find(|child| is_call && child.kind() == "kernel_call_syntax")
}

/// The name that a call is by, without scopes, objects and template arguments.
pub(super) fn called_name<'t>(function: Node<'_>, text: &'t str) -> &'t str {
    let mut name = function;
    while let Some(inner) = name.child_by_field_name("name").or_else(|| name.child_by_field_name("field")) {
        name = inner;
    }
    &text[name.byte_range()]
}

/// The name that a declarator declares.
pub(super) fn declared<'t>(declarator: Node<'_>, text: &'t str) -> &'t str {
    let mut node = declarator;
    loop {
        let inner = node.child_by_field_name("declarator").or_else(|| node.child_by_field_name("name"));
        match inner.or_else(|| node.named_child(0).filter(|_| is_wrapper(node))) {
            Some(inner) => node = inner,
            None => return &text[node.byte_range()],
        }
    }
}

/// Whether a declarator has another one in it that is no field: `&x`, `(*x)`.
pub(super) fn is_wrapper(declarator: Node<'_>) -> bool {
    matches!(declarator.kind(), "reference_declarator" | "parenthesized_declarator")
}

/// The last name in an expression that stands for a variable: `d` of `(void **)&p->d`, `x` of
/// `&x[i]`.
pub(super) fn last_name(text: &str) -> &str {
    let text = text.trim_end();
    let mut end = text.len();
    // What is in brackets behind the name.
    while text[..end].ends_with(']') {
        let mut depth = 0;
        let open = text[..end].char_indices().rev().find(|&(_, c)| {
            depth += i32::from(c == ']') - i32::from(c == '[');
            depth == 0
        });
        match open {
            Some((at, _)) => end = text[..at].trim_end().len(),
            None => break,
        }
    }
    let head = text[..end].trim_end_matches([')', ' ']);
    let start = head.rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |at| at + 1);
    // A character may have several bytes.
    head.get(start..).unwrap_or("")
}

/// The variable whose address an expression is: `n` of `(void *)&n`.
pub(super) fn without_address<'t>(expression: Node<'t>, text: &str) -> Node<'t> {
    let mut node = expression;
    loop {
        let is_address = node.kind() == "pointer_expression" && text[node.byte_range()].starts_with('&');
        let inner = match node.kind() {
            "cast_expression" => node.child_by_field_name("value"),
            "pointer_expression" if is_address => node.child_by_field_name("argument"),
            "parenthesized_expression" => node.named_child(0),
            "call_expression" => arguments(node).first().copied(),
            _ => None,
        };
        match inner {
            Some(inner) => node = inner,
            None => return node,
        }
    }
}

/// The variable that an expression is a part of: `p` of `p->rows[i]`, `(*p).n` and `&p.n`.
pub(super) fn base_name(text: &str) -> &str {
    let head = text.trim_start_matches(|c| !is_word(c));
    head.split(|c| !is_word(c)).next().unwrap_or("")
}

/// Whether names that are declared in a node are known in it alone.
pub(super) fn is_scope(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "compound_statement"
            | "translation_unit"
            | "namespace_definition"
            | "for_statement"
            | "function_definition"
            | "declaration_list"
            | "field_declaration_list"
    )
}

/// The text of a type; the name of one that is defined in its place.
pub(super) fn type_text<'t>(kind: Node<'_>, text: &'t str) -> &'t str {
    let named = kind.child_by_field_name("name").filter(|_| kind.child_by_field_name("body").is_some());
    let whole = &text[named.unwrap_or(kind).byte_range()];
    if whole.len() > LONGEST { "" } else { whole }
}

#[cfg(test)]
mod tests {
    use super::{base_name, last_name};

    #[test]
    fn last_name_is_that_of_the_variable() {
        for (text, expected) in [
            ("d", "d"),
            ("&d_A", "d_A"),
            ("(void **)&p->data", "data"),
            ("(void**)&buffers[i + n[1]]", "buffers"),
            ("params.n", "n"),
            ("((float *)d_x)", "d_x"),
            ("", ""),
            ("]", ""),
            ("é", "é"),
        ] {
            assert_eq!(last_name(text), expected, "{text}");
        }
    }

    #[test]
    fn base_name_is_that_of_the_whole_variable() {
        for (text, expected) in
            [("n", "n"), ("p->rows[i]", "p"), ("(*p).n", "p"), ("&p.n", "p"), ("this->n", "this"), ("", ""), ("[", "")]
        {
            assert_eq!(base_name(text), expected, "{text}");
        }
    }
}
