//! The names in a comment's expressions -> where their values are in a configuration, or what
//! is wrong with them.

use super::walk::AxisSet;
use crate::comment::{Annotation, Expr, UNTOLD, is_defined};
use crate::cuda::{TemplateParameter, Type, array_element};
use crate::diag::diagnostic::nearest;
use crate::diag::{Diagnostic, MessageCode, Span};
use std::collections::BTreeMap;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Slot {
        slot: usize,
        axes: AxisSet,
    },
    /// A parameter without a value: there is no `args` clause.
    Unbound,
    /// A parameter that is a buffer.
    Buffer,
    /// A parameter that is a structure.
    Struct,
    /// A field that is given a list.
    List,
    /// Not known yet at this point: the grid while it is being found, and an argument that
    /// depends on it.
    Later,
    /// An argument whose turn has not come: who needs it now is what it depends on.
    Circular,
    /// A macro, or something else that had an error of its own.
    Broken,
}

/// Why an expression has no slots.
pub(super) enum Refusal {
    Unbound(String, Span),
    Problem(Box<Diagnostic>),
    /// Reported elsewhere.
    Silent,
}

/// Returns the type of a parameter, as its declaration spells it.
pub(super) fn declared_type(annotation: &Annotation, parameter: &str) -> Option<Type> {
    let kernel = &annotation.kernel;
    let at = kernel.parameters.iter().position(|name| name.as_deref() == Some(parameter))?;
    Some(Type::parse_type(kernel.declarations.get(at)?.strip_suffix(parameter)?))
}

/// Returns the place of a name's value, and the axes that it depends on.
pub(super) fn resolve_name(
    annotation: &Annotation,
    names: &BTreeMap<String, Meaning>,
    name: &str,
    span: Span,
) -> Result<(usize, AxisSet), Refusal> {
    let problem = |code, message: String| Err(Refusal::Problem(Box::new(annotation.source.error(code, span, message))));
    match names.get(name) {
        Some(Meaning::Slot { slot, axes }) => Ok((*slot, *axes)),
        Some(Meaning::Unbound) => Err(Refusal::Unbound(name.to_string(), span)),
        Some(Meaning::Broken) => Err(Refusal::Silent),
        Some(Meaning::Buffer) => problem(
            MessageCode::NameWithoutValue,
            format!("`{name}` is a buffer and has no value in an expression: use scalar parameters and macros"),
        ),
        Some(Meaning::Struct) => problem(
            MessageCode::NameWithoutValue,
            format!(
                "`{name}` is a structure and has no value in an expression: name one of its fields, `{name}.field`"
            ),
        ),
        Some(Meaning::List) => problem(
            MessageCode::NameWithoutValue,
            format!("`{name}` is a list and has no value in an expression: name an element of an array, `{name}[0]`"),
        ),
        Some(Meaning::Later) if name.starts_with("grid.") => problem(
            MessageCode::NameWithoutValue,
            format!("`{name}` cannot be used here: the grid depends on this expression"),
        ),
        Some(Meaning::Later) => problem(
            MessageCode::NameWithoutValue,
            format!("`{name}` cannot be used here: it depends on the grid, and the grid on this expression"),
        ),
        Some(Meaning::Circular) => problem(
            MessageCode::NameWithoutValue,
            format!("`{name}` cannot be used here: it depends on this expression, so that neither has a value"),
        ),
        // A field of a structure that is not given: which fields there are, only the compiler knows.
        None if name.split_once('.').is_some_and(|(root, _)| {
            matches!(names.get(root), Some(Meaning::Unbound))
                && matches!(declared_type(annotation, root), Some(Type::Other(_)))
        }) =>
        {
            Err(Refusal::Unbound(name.to_string(), span))
        }
        None => {
            let usable = |meaning: &Meaning| matches!(meaning, Meaning::Slot { .. } | Meaning::Unbound);
            let known: Vec<&str> =
                names.iter().filter(|(_, meaning)| usable(meaning)).map(|(name, _)| name.as_str()).collect();
            if let Some(message) = template_parameter(annotation, name) {
                return problem(MessageCode::NameWithoutValue, message);
            }
            if is_defined(&annotation.source, name) {
                return problem(MessageCode::UnknownName, format!("unknown name `{name}`: {UNTOLD}"));
            }
            let near = match nearest(name, known.iter().copied()) {
                Some(near) => format!("; did you mean `{near}`?"),
                None => format!(": known are {}", list_names(&known)),
            };
            problem(MessageCode::UnknownName, format!("unknown name `{name}`{near}"))
        }
    }
}

/// Names as a message lists them: those of a shape as one.
fn list_names(known: &[&str]) -> String {
    let plain = known.iter().filter(|name| !name.contains('.')).copied();
    let shapes = ["block", "grid"].into_iter().filter_map(|shape| {
        let parts = known.iter().filter_map(|name| name.strip_prefix(shape)?.strip_prefix('.'));
        let parts = parts.collect::<Vec<_>>().join("/");
        (!parts.is_empty()).then(|| format!("{shape}.{parts}"))
    });
    let fields =
        known.iter().filter(|name| name.contains('.') && !name.starts_with("block.") && !name.starts_with("grid."));
    plain.map(str::to_owned).chain(fields.map(|name| (*name).to_owned())).chain(shapes).collect::<Vec<_>>().join(", ")
}

/// What to do about the name of a template's parameter whose argument is no number that the
/// comment gives.
fn template_parameter(annotation: &Annotation, name: &str) -> Option<String> {
    let parameters = &annotation.kernel.template_parameters;
    let is_it = |parameter: &TemplateParameter| parameter.name == name && !parameter.is_type;
    let at = parameters.iter().position(|parameter| parameter.as_ref().is_some_and(is_it))?;
    Some(match annotation.instance.as_ref()?.arguments.get(at) {
        Some(argument) => format!(
            "`{name}` is a template parameter, and the value of `{}` is not known here: write the number",
            argument.text()
        ),
        None => format!(
            "`{name}` is a template parameter without an argument: give it one in `template`, or write the number"
        ),
    })
}

/// What gives a parameter, or a field of one, a value: `add args(n = ...)`, `add args(rows = {n
/// = ...})`.
pub(super) fn given_by(name: &str) -> String {
    let (path, value) = array_element(name).map_or((name, "..."), |(array, _)| (array, "{...}"));
    let value = path.rsplit('.').fold(String::new(), |inner, part| match inner.is_empty() {
        true => format!("{part} = {value}"),
        false => format!("{part} = {{{inner}}}"),
    });
    format!("add args({value})")
}

/// The slots of an expression of a finished space, for values that are asked for later (counts
/// of buffers).
pub(super) fn compile_late(
    annotation: &Annotation,
    names: &BTreeMap<String, Meaning>,
    expression: &Expr,
) -> Result<Expr<usize>, Diagnostic> {
    expression
        .rename(&mut |name: &String, span| resolve_name(annotation, names, name, span).map(|(slot, _)| slot))
        .map_err(|refusal| match refusal {
            Refusal::Problem(problem) => *problem,
            Refusal::Unbound(name, span) => annotation.source.error(
                MessageCode::NameWithoutValue,
                span,
                format!("`{name}` has no value: {}", given_by(&name)),
            ),
            Refusal::Silent => annotation.source.error(
                MessageCode::NameWithoutValue,
                expression.span,
                "this expression uses a name that has no value",
            ),
        })
}
