//! The parameters of a template in its tuning comment -> what an instance gives them.
//!
//! With `template(float, 4)` above `template <typename T, int N>`, `N` is 4 and `sizeof(T)` is
//! 4 in every expression of the comment, as they are in the kernel. Arguments that only the
//! compiler can evaluate leave the name of a number as it is; the space says so where it looks
//! names up. A `sizeof` without a value is said here: no other name begins so.

use super::annotation::{Annotation, Clauses, GivenFill, GivenValue, Grid, Instance, TemplateArgument};
use super::expression::{Expr, Node};
use super::parser;
use super::value::Value;
use crate::diag::Span;
use crate::diag::{Diagnostic, MessageCode};
use std::collections::HashSet;

/// The variable of `each`, which comes before a parameter of this name.
const INDEX: &str = "index";

/// Puts the arguments of an instance, which only a template has, in place of the names of its
/// template's parameters.
pub(super) fn give(annotation: &mut Annotation, instance: Option<&Instance>, problems: &mut Vec<Diagnostic>) {
    let known: Vec<(String, Expr)> = instance.map_or_else(Vec::new, |instance| known(annotation, instance));
    let mut unknown: Vec<(String, Span)> = Vec::new();
    for (expression, is_each) in expressions(annotation) {
        expression.replace(&|name: &String| {
            let found = known.iter().find(|(of, _)| of == name).filter(|_| !(is_each && name == INDEX));
            found.map(|(_, expression)| expression)
        });
        expression.names(&mut |name, span| {
            unknown.extend(parser::size_asked(name).map(|kind| (kind.to_owned(), span)));
        });
    }
    for (kind, span) in unknown {
        let problem = annotation.source.error(MessageCode::TemplateClause, span, no_size(annotation, instance, &kind));
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }
}

/// The names in the expressions of a comment.
pub(super) fn asked(annotation: &mut Annotation) -> HashSet<String> {
    let mut names = HashSet::new();
    for (expression, _) in expressions(annotation) {
        expression.names(&mut |name, _| _ = names.insert(name.clone()));
    }
    names
}

/// The names that have a value in an instance.
fn known(annotation: &Annotation, instance: &Instance) -> Vec<(String, Expr)> {
    let mut known = Vec::new();
    for (parameter, argument) in annotation.kernel.template_parameters.iter().zip(&instance.arguments) {
        let Some(parameter) = parameter else { continue };
        match argument {
            TemplateArgument::Value { expression, .. } => known.push((parameter.name.clone(), expression.clone())),
            TemplateArgument::Constant { value, .. } => {
                let expression = Expr { span: instance.span, node: Node::Value(Value::Int(*value)) };
                known.push((parameter.name.clone(), expression));
            }
            TemplateArgument::Text(text) => known.extend(parser::type_size(text).map(|size| {
                (parser::size_name(&parameter.name), Expr { span: instance.span, node: Node::Value(Value::Int(size)) })
            })),
        }
    }
    known
}

/// Why `sizeof` of a name is not known.
fn no_size(annotation: &Annotation, instance: Option<&Instance>, kind: &str) -> String {
    let parameters = &annotation.kernel.template_parameters;
    let is_it = |name: &str| name == kind;
    let at = parameters.iter().position(|parameter| parameter.as_ref().is_some_and(|of| of.is_type && is_it(&of.name)));
    match (at, instance.zip(at).map(|(instance, at)| instance.arguments.get(at))) {
        (_, Some(Some(argument))) => {
            let text = argument.text();
            format!("only the compiler knows the size of `{text}`, which `{kind}` is here: write it in bytes")
        }
        (Some(_), _) => format!(
            "`{kind}` is a template parameter without an argument: give it one in `template`, or write its size"
        ),
        (None, _) => parser::unknown_type(kind),
    }
}

/// The expressions of a comment, and whether each is one of `each(...)`.
fn expressions(annotation: &mut Annotation) -> Vec<(&mut Expr, bool)> {
    let Clauses { threads, grid, shared, require, trips, args, symbols, .. } = &mut annotation.clauses;
    let mut found: Vec<(&mut Expr, bool)> = Vec::new();
    let clauses = threads.iter_mut().flat_map(|threads| &mut threads.value);
    let grid = grid.iter_mut().flat_map(|grid| match &mut grid.value {
        Grid::Expressions(expressions) => expressions.as_mut_slice(),
        Grid::Lists(_) => &mut [],
    });
    found.extend(clauses.chain(grid).chain(shared).chain(require).chain(trips).map(|expression| (expression, false)));
    let args = args.iter_mut().flatten().map(|given| &mut given.value);
    args.chain(symbols.iter_mut().map(|given| &mut given.value)).for_each(|value| of_value(value, &mut found));
    found
}

fn of_value<'a>(given: &'a mut GivenValue, found: &mut Vec<(&'a mut Expr, bool)>) {
    match given {
        GivenValue::Scalar(expression) => found.push((expression, false)),
        GivenValue::Struct { fields, .. } => fields.iter_mut().for_each(|field| of_value(&mut field.value, found)),
        GivenValue::File(file) => found.extend(file.count.iter_mut().map(|count| (count, false))),
        GivenValue::Table(table) => {
            found.extend(table.values.iter_mut().chain(&mut table.count).map(|expression| (expression, false)));
        }
        GivenValue::Null(_) | GivenValue::Recorded { .. } => {}
        GivenValue::Buffer { fill, count, .. } => {
            found.push((count, false));
            match fill {
                GivenFill::Range(lo, hi) => found.extend([(lo, false), (hi, false)]),
                GivenFill::Constant(expression) => found.push((expression, false)),
                GivenFill::Each(expression) => found.push((expression, true)),
                GivenFill::Random | GivenFill::Zeros | GivenFill::Iota | GivenFill::Out => {}
            }
        }
    }
}
