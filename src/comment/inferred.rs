//! Clauses that a recording gave a comment, as text -> the same clauses once more, where the
//! recording is not at hand: in a build from a lock file.
//!
//! The text gives the launch, and the numbers among the arguments, for the launch follows from
//! them. It gives no workload: a kernel that it is read for cannot be timed.

use super::annotation::{
    Annotation, Block, Clauses, Given, GivenField, GivenTable, GivenValue, Grid, Inferred, RecordedMember, Spanned,
};
use super::clause::clauses;
use super::expression::{Expr, Node};
use super::lexer::tokens;
use super::parsed::Parsed;
use super::value::Value;
use crate::cuda::array_element;
use crate::diag::{Source, Span};
use crate::launch::Dim3;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The longest text that is read.
const MOST_BYTES: usize = 16 << 10;

/// Writes the clauses for grid, shared memory, default block and numbers that `after`
/// has and `before` has not.
pub fn inferred_text(before: &Clauses, after: &Clauses) -> String {
    let list = |expressions: &[Expr]| expressions.iter().map(Expr::unparenthesized).collect::<Vec<_>>().join(", ");
    let mut text = String::new();
    if let (None, Some(threads)) = (&before.threads, &after.threads) {
        let _ = write!(text, "threads({}) ", list(&threads.value));
    }
    if let (None, Some(Grid::Expressions(blocks))) = (&before.grid, after.grid.as_ref().map(|grid| &grid.value)) {
        let _ = write!(text, "grid({}) ", list(blocks));
    }
    if let (None, Some(shared)) = (&before.shared, &after.shared) {
        let _ = write!(text, "shared({}) ", shared.unparenthesized());
    }
    if let (None, Some(block)) = (&before.default.block, &after.default.block) {
        let [x, y, z]: Dim3 = block.value;
        let _ = write!(text, "default(block = {{{x}, {y}, {z}}}) ");
    }
    let used = after.launch_names();
    let number = |given: &Given| {
        let value = match &given.value {
            // A parameter without a name has a blank in it.
            _ if given.name.contains(' ') => None,
            GivenValue::Scalar(expression) => number_text(expression),
            GivenValue::Recorded { members, .. } => structure_text(&given.name, members, &used),
            _ => None,
        };
        Some(format!("{} = {}", given.name, value?))
    };
    let numbers: Vec<String> = after.args.iter().flatten().filter_map(number).collect();
    if before.args.is_none() && !numbers.is_empty() {
        let _ = write!(text, "args({})", numbers.join(", "));
    }
    text.trim_end().to_owned()
}

fn number_text(expression: &Expr) -> Option<String> {
    match expression.node {
        Node::Value(Value::Int(value)) => Some(value.to_string()),
        Node::Value(Value::Float(value)) => value.is_finite().then(|| format!("{value:?}")),
        _ => None,
    }
}

/// The numbers of a structure that expressions use, as a comment gives them.
fn structure_text(name: &str, members: &[RecordedMember], launch_names: &BTreeSet<&str>) -> Option<String> {
    // A list has the elements before the one that is used, too.
    let is_listed = |path: &str| {
        let mut paths = launch_names.iter().filter_map(|used| used.strip_prefix(name)?.strip_prefix('.'));
        paths.any(|used_path| match (array_element(used_path), array_element(path)) {
            (Some((array, last)), Some((other, index))) => array == other && index <= last,
            _ => used_path == path,
        })
    };
    let listed = members.iter().filter(|of| is_listed(&of.member.path)).map(|of| match &of.value {
        GivenValue::Scalar(value) => Some((of.member.path.as_str(), number_text(value)?)),
        _ => None,
    });
    let listed: Vec<(&str, String)> = listed.collect::<Option<_>>()?;
    (!listed.is_empty()).then(|| braced(&listed))
}

/// Numbers by path as nested braces: `{extent = {x = 1, y = 2}, counts = {3, 4}}`.
fn braced(numbers: &[(&str, String)]) -> String {
    let end_of_name = |path: &str| path.find(['.', '[']).unwrap_or(path.len());
    let of_one_field = numbers.chunk_by(|(one, _), (other, _)| one[..end_of_name(one)] == other[..end_of_name(other)]);
    let fields = of_one_field.map(|numbers| {
        let (path, value) = &numbers[0];
        let (name, rest) = path.split_at(end_of_name(path));
        let inner: Vec<(&str, String)> =
            numbers.iter().filter_map(|(path, value)| Some((path.get(name.len() + 1..)?, value.clone()))).collect();
        match rest.chars().next() {
            None => format!("{name} = {value}"),
            Some('[') => {
                format!("{name} = {{{}}}", inner.into_iter().map(|(_, value)| value).collect::<Vec<_>>().join(", "))
            }
            Some(_) => format!("{name} = {}", braced(&inner)),
        }
    });
    format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
}

/// A number, or a structure of numbers, with its place; `None` for anything else.
fn numbers_at(value: GivenValue, span: Span) -> Option<GivenValue> {
    Some(match value {
        GivenValue::Scalar(value) => GivenValue::Scalar(value.at(span)),
        GivenValue::Table(GivenTable { values, count: None, .. }) => {
            let values = values.into_iter().map(|value| value.at(span)).collect();
            GivenValue::Table(GivenTable { span, values, count: None })
        }
        GivenValue::Struct { fields, .. } => {
            let at = |field: GivenField| Some(GivenField { span, value: numbers_at(field.value, span)?, ..field });
            GivenValue::Struct { span, fields: fields.into_iter().map(at).collect::<Option<_>>()? }
        }
        _ => return None,
    })
}

/// Gives an annotation the clauses of such a text, as far as it has none of its own; false where
/// the text is none.
pub fn give_inferred(annotation: &mut Annotation, inferred: Inferred) -> bool {
    let source = Source::new("inferred", inferred.text.as_bytes());
    let whole = Span { start: 0, end: inferred.text.len() };
    let mut problems = Vec::new();
    let found = tokens(&source, &[whole], &mut problems);
    let Parsed { clauses: given, args, .. } = clauses(&source, &found, Span { start: 0, end: 0 }, &mut problems);
    if inferred.text.len() > MOST_BYTES || !problems.is_empty() {
        return false;
    }
    let span = annotation.comment;
    let own = &mut annotation.clauses;
    if own.threads.is_none() && own.grid.is_none() {
        let all = |expressions: Vec<Expr>| expressions.into_iter().map(|expression| expression.at(span)).collect();
        own.threads = given.threads.map(|threads| Spanned { value: all(threads.value), span });
        own.grid = given.grid.and_then(|grid| match grid.value {
            Grid::Expressions(blocks) => Some(Spanned { value: Grid::Expressions(all(blocks)), span }),
            Grid::Lists(_) => None,
        });
    }
    own.shared = own.shared.take().or(given.shared.map(|shared| shared.at(span)));
    own.block = own.block.take().or(Some(Spanned { value: Block::Auto, span }));
    let default = given.default.block.map(|block| Spanned { value: block.value, span });
    own.default.block = own.default.block.take().or(default);
    // Those that the locked build had, at least.
    annotation.kernel.choose_parameters(|list| args.iter().flatten().all(|given| list.has(&given.name)));
    let parameters = &annotation.kernel.parameters;
    let args = args.into_iter().flatten().filter_map(|given| {
        let parameter = parameters.iter().position(|name| name.as_ref() == Some(&given.name))?;
        // A list alone is a buffer.
        let value = given.value.filter(|value| !matches!(value, GivenValue::Table(_)))?;
        Some(Given { name: given.name, span, parameter, element: None, value: numbers_at(value, span)? })
    });
    own.args = Some(args.collect());
    annotation.inferred = Some(inferred);
    true
}

/// Gives a kernel with `#if` among its parameters those that are compiled: `preprocessed` is what
/// the preprocessor made of its source. What the comment says, or a recording has, stays.
pub fn choose_compiled_parameters(annotation: &mut Annotation, preprocessed: &str) {
    let clauses = &mut annotation.clauses;
    if clauses.recorded.is_some() || clauses.args.is_some() && annotation.inferred.is_none() {
        return;
    }
    annotation.kernel.choose_compiled_parameters(preprocessed);
    let parameters = &annotation.kernel.parameters;
    if let Some(args) = &mut clauses.args {
        args.retain_mut(|given| {
            let place = parameters.iter().position(|name| name.as_ref() == Some(&given.name));
            given.parameter = place.unwrap_or_default();
            place.is_some()
        });
    }
}
