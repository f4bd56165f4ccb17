//! A parameter of a host function, or a member of one -> what the callers of the function give it.

use super::host_evaluation::{Evaluation, Scope};
use super::host_nodes::{arguments, base_name, declared, elements};
use super::host_program::FilePlace;
use super::tokens::is_word;
use tree_sitter::Node;

/// The most callers of a function that are looked at.
const MOST_CALLERS: usize = 16;

impl<'p> Evaluation<'p> {
    /// The function around a place and the number of its parameter of a name.
    pub(super) fn parameter(&self, name: &str, scope: &Scope) -> Option<(Node<'p>, usize)> {
        let function = self.program.function_around(scope.file, scope.at)?;
        let text = &self.program.files.get(scope.file)?.text;
        let number = parameter_names(function, text).iter().position(|own| own == name)?;
        Some((function, number))
    }

    /// What callers give a parameter of the function around a place, if anything has it.
    pub(super) fn of_parameter<T>(
        &self,
        name: &str,
        scope: &Scope,
        read: &dyn Fn(&FilePlace, &Scope) -> Option<T>,
    ) -> Option<T> {
        let (function, number) = self.parameter(name, scope)?;
        let text = &self.program.files.get(scope.file)?.text;
        let own_name = function.child_by_field_name("declarator").map(|node| declared(node, text))?;
        let most = if has_pack(function) { usize::MAX } else { parameter_names(function, text).len() };
        let all: Vec<&FilePlace> = self.program.calls.get(own_name).into_iter().flatten().collect();
        // Another file may have a function of the same name.
        let is_own = all.iter().any(|call| call.file == scope.file);
        let is_of_file = |call: &&&FilePlace| !is_own || call.file == scope.file;
        let calls: Vec<&FilePlace> = match self.caller().filter(|caller| all.contains(caller)) {
            Some(caller) => vec![caller],
            None => all.iter().filter(is_of_file).copied().take(MOST_CALLERS).collect(),
        };
        calls.into_iter().find_map(|call| {
            self.step()?;
            let given = arguments(self.program.node(call)?);
            let argument = *given.get(number).filter(|_| given.len() <= most)?;
            // A call by itself leads nowhere.
            if call.file == scope.file && function.byte_range().contains(&call.range.start) {
                return None;
            }
            let place = FilePlace { file: call.file, range: argument.byte_range() };
            read(&place, &scope.moved(&place)?)
        })
    }

    /// What a member of a parameter, as `p->n`, is by the names that it has where callers are, as
    /// `sizes.n`.
    pub(super) fn of_member<T>(
        &self,
        whole: &str,
        scope: &Scope,
        read: &dyn Fn(&str, &Scope) -> Option<T>,
    ) -> Option<T> {
        let object = base_name(whole);
        let member = whole.strip_prefix(object).filter(|member| !member.is_empty())?;
        self.of_parameter(object, scope, &|place, scope| read(&member_of(self.program.slice(place), member)?, scope))
    }
}

impl Evaluation<'_> {
    /// Finds the value of a member, such as `p.n`, in the list that its structure is initialized
    /// with: `P p = {1, 2}`, `P p(1, 2)` or `P p = P(1, 2)`, with a value for each field.
    pub(super) fn listed_member(&self, whole: &str, scope: &Scope) -> Option<FilePlace> {
        let object = base_name(whole);
        let member = whole.strip_prefix(object)?.strip_prefix('.')?;
        let kind = self.declared_type(object, scope)?;
        let kind = kind.trim().trim_start_matches("const ").trim_start_matches("struct ").trim();
        let fields = &self.program.structure(scope.file, kind)?.fields;
        let number = fields.iter().position(|field| field.name == member)?;
        let definition = self.nearest(object, object, scope).into_iter().next()?;
        let node = self.program.node(&definition.value)?;
        let list = match node.kind() {
            "initializer_list" | "argument_list" | "parameter_list" => node,
            _ => node.child_by_field_name("arguments").or_else(|| node.child_by_field_name("value"))?,
        };
        let given = elements(list);
        let value = given.get(number).filter(|_| given.len() == fields.len())?;
        Some(FilePlace { file: definition.value.file, range: value.byte_range() })
    }
}

/// The member of an argument: `s.n` for `->n` of `&s`; `None` of what is no variable.
fn member_of(argument: &str, member: &str) -> Option<String> {
    let argument: String = argument.split_whitespace().collect();
    let field = || member.strip_prefix("->").or(member.strip_prefix('.'));
    let (object, member) = match (argument.strip_prefix('&'), argument.strip_prefix('*')) {
        (Some(object), _) => (object, format!(".{}", field().filter(|_| member.starts_with('-'))?)),
        (_, Some(object)) => (object, format!("->{}", field().filter(|_| member.starts_with('.'))?)),
        (None, None) => (argument.as_str(), member.to_owned()),
    };
    let is_variable = |text: &str| {
        text.starts_with(|c: char| is_word(c) && !c.is_ascii_digit())
            && text.replace("->", ".").chars().all(|c| is_word(c) || matches!(c, '.' | ':' | '[' | ']'))
    };
    is_variable(object).then(|| format!("{object}{member}"))
}

/// Lists the parameters of a function in order.
fn parameters(function: Node<'_>) -> Vec<Node<'_>> {
    let mut declarator = function.child_by_field_name("declarator");
    while let Some(node) = declarator.filter(|node| node.kind() != "function_declarator") {
        declarator = node.child_by_field_name("declarator").or_else(|| node.named_child(0));
    }
    let Some(list) = declarator.and_then(|node| node.child_by_field_name("parameters")) else { return Vec::new() };
    let mut cursor = list.walk();
    list.named_children(&mut cursor).filter(|node| node.kind().ends_with("parameter_declaration")).collect()
}

/// The names of a function's parameters in order.
pub(super) fn parameter_names(function: Node<'_>, text: &str) -> Vec<String> {
    let name = |node: Node<'_>| {
        let declarator = node.child_by_field_name("declarator");
        declarator.map_or("", |declarator| declared(declarator, text).trim_start_matches(['.', ' '])).to_owned()
    };
    parameters(function).into_iter().map(name).collect()
}

/// Returns whether the last parameter of a function takes any number of arguments.
pub(super) fn has_pack(function: Node<'_>) -> bool {
    parameters(function).last().is_some_and(|last| last.kind().starts_with("variadic"))
}

#[cfg(test)]
mod tests {
    use super::member_of;

    #[test]
    fn member_of_an_argument_has_the_name_at_the_caller() {
        for (argument, member, expected) in [
            ("s", ".n", Some("s.n")),
            ("& s", "->n", Some("s.n")),
            ("p", "->n", Some("p->n")),
            ("*p", ".n", Some("p->n")),
            ("this->sizes[1]", ".n", Some("this->sizes[1].n")),
            ("&s", ".n", None),
            ("make(3)", ".n", None),
            ("a - b", ".n", None),
            ("", ".n", None),
        ] {
            assert_eq!(member_of(argument, member).as_deref(), expected, "{argument} {member}");
        }
    }
}
