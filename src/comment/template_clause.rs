//! The `template` clause: which instances of a template kernel are tuned.
//!
//! Each clause names one instance by its template arguments, types or integer expressions; the
//! arguments are compared with the instances that the compiler made, so a type stays text here.

use super::annotation::{Annotation, Instance, TemplateArgument};
use super::constants::Constants;
use super::expression::{Expr, Node};
use super::lexer::tokens;
use super::parsed::{Parsed, RawArgument, RawInstance};
use super::parser::Cursor;
use super::value::Fault;
use crate::cuda::Kernel;
use crate::cuda::brackets::Depth;
use crate::diag::Diagnostic;
use crate::diag::{Source, Span};
use std::collections::HashSet;

pub(super) fn template(
    parsed: &mut Parsed,
    cursor: Cursor<'_>,
    span: Span,
    _: &mut Vec<Diagnostic>,
) -> Result<(), Diagnostic> {
    parsed.instances.push(instance(&cursor, span)?);
    Ok(())
}

fn instance(cursor: &Cursor<'_>, span: Span) -> Result<RawInstance, Diagnostic> {
    let mut arguments = Vec::new();
    // As in C++, a comparison needs parentheses.
    for mut item in cursor.split(Depth::pass_template) {
        if item.is_empty() {
            return Err(item.expected("a template argument"));
        }
        // A comment may go over several lines, whose markers are not part of the type.
        arguments.push(RawArgument { text: item.spelled(), expression: item.whole_expression().ok() });
    }
    Ok(RawInstance { span, arguments })
}

/// Whether a kernel is declared with `template <>`.
pub(super) fn has_no_parameters(source: &Source, kernel: &Kernel) -> bool {
    let behind = kernel.template.and_then(|word| source.text.get(word.end..));
    let list = behind.and_then(|text| text.trim_start().strip_prefix('<'));
    list.is_some_and(|list| list.trim_start().starts_with('>'))
}

/// The instance that an explicit specialization is, by the arguments behind its name; `None`
/// where they hold what no clause can say.
pub(super) fn specialized(source: &Source, arguments: Span) -> Option<RawInstance> {
    let mut unreadable = Vec::new();
    let tokens = tokens(source, &[arguments], &mut unreadable);
    instance(&Cursor::new(source, &tokens, arguments), arguments).ok().filter(|_| unreadable.is_empty())
}

/// The instance with these arguments, as a compiler spells them; `None` where no clause can say
/// them. `place` is that of the kernel's name.
pub(super) fn instance_of(arguments: &str, place: Span) -> Option<Instance> {
    if arguments.trim().is_empty() {
        return Some(Instance { span: place, arguments: Vec::new(), is_recorded: true });
    }
    let text = Source::new("", arguments.as_bytes());
    let raw = specialized(&text, Span { start: 0, end: text.text.len() })?;
    let argument = |RawArgument { text, expression }: RawArgument| {
        let no_name = |name: &String| Err(Fault::NoValue(name.clone()));
        match expression.and_then(|expression| expression.evaluate(&no_name).ok()) {
            Some(value) => TemplateArgument::Value { text, expression: Expr { span: place, node: Node::Value(value) } },
            None => TemplateArgument::Text(text),
        }
    };
    let arguments = raw.arguments.into_iter().map(argument).collect();
    Some(Instance { span: place, arguments, is_recorded: true })
}

impl RawInstance {
    /// Whether the arguments begin with those of another: what a name leaves out, the types of
    /// the parameters tell.
    pub fn begins_with(&self, other: &RawInstance) -> bool {
        let texts = |instance: &RawInstance| -> Vec<String> {
            instance.arguments.iter().map(|argument| argument.text.clone()).collect()
        };
        texts(self).starts_with(&texts(other))
    }

    /// The instance with the names of macro axes understood, and those of the source's
    /// constants where the comment's expressions name (`asked`) the number that they are
    /// given for: of the others the compiler alone knows what they are.
    pub fn resolve(self, annotation: &Annotation, asked: &HashSet<String>, constants: &Constants<'_>) -> Instance {
        let macros = &annotation.clauses.macros;
        let mut parameters = annotation.kernel.template_parameters.iter();
        let mut arguments = Vec::new();
        for RawArgument { text, expression } in self.arguments {
            let parameter = parameters.next().and_then(Option::as_ref);
            let is_asked = parameter.is_some_and(|parameter| !parameter.is_type && asked.contains(&parameter.name));
            let mut is_known = true;
            let names = &mut |name: &String, _| is_known &= macros.iter().any(|axis| axis.name == *name);
            expression.iter().for_each(|expression| expression.names(names));
            arguments.push(match expression {
                Some(expression) if is_known => TemplateArgument::Value { text, expression },
                // A name with scopes is no expression of the comments' language.
                expression => {
                    let constant = || constants.argument(&text, expression.as_ref(), macros);
                    match is_asked.then(constant).flatten() {
                        Some(value) => TemplateArgument::Constant { text, value },
                        None => TemplateArgument::Text(text),
                    }
                }
            });
        }
        Instance { span: self.span, arguments, is_recorded: false }
    }
}
