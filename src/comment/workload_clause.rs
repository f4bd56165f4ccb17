//! The clauses that make the workload: `args` and `check`.

use super::annotation::{CheckClause, GivenField, GivenFile, GivenFill, GivenTable, GivenValue, Spanned};
use super::expression::Expr;
use super::lexer::TokenKind;
use super::parsed::Parsed;
use super::parser::Cursor;
use super::value::Value;
use crate::comment::parsed::RawGiven;
use crate::diag::Span;
use crate::diag::{Diagnostic, MessageCode, suggestion};

/// How deep structures may nest.
const MAX_DEPTH: usize = 8;

const FILE_FORM: &str = "`file` is written file(\"x.bin\") or file(\"x.npy\")[n]";

/// What buffers can be filled with.
const FILLS: [&str; 7] = ["random", "zeros", "iota", "fill", "out", "file", "each"];

/// The null pointer, in C++ and in C.
const NULL: [&str; 2] = ["nullptr", "NULL"];

pub(super) fn args(
    parsed: &mut Parsed,
    cursor: Cursor<'_>,
    _: Span,
    problems: &mut Vec<Diagnostic>,
) -> Result<(), Diagnostic> {
    if let Some(item) = cursor.items().iter().find(|item| has_no_name(item)) {
        // The others may well be of the same kind: one message says it.
        let message = "this value has no name: args(...) gives each parameter by its name, as in args(n = 1024)";
        return Err(item.source.error(MessageCode::ArgsClause, item.rest(), message));
    }
    let mut given: Vec<RawGiven> = Vec::new();
    for mut item in cursor.items() {
        let element = element(&mut item);
        let (name, span) = match item.name("the name of a parameter") {
            Ok(found) => found,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        if let Some(first) = given.iter().find(|other| other.name == name) {
            let note = item.source.note(first.span, "first given here");
            problems.push(
                item.source
                    .error(MessageCode::GivenTwice, span, format!("parameter `{name}` is given twice: remove one"))
                    .with(note),
            );
            continue;
        }
        let value = match item.eat("=") {
            true => value(&mut item),
            false => Err(item.expected("`=` and a value")),
        };
        let value = value.map_err(|problem| problems.push(problem)).ok();
        given.push(RawGiven { name: name.to_string(), span, element, value });
    }
    parsed.args = Some(given);
    Ok(())
}

/// Tells whether an item of `args` is a value alone.
fn has_no_name(item: &Cursor<'_>) -> bool {
    let second = item.second_mark();
    let is_value = match item.tokens.first().map(|token| token.kind) {
        None => false,
        Some(TokenKind::Name) => second.is_some_and(|mark| mark != "=") && item.peek_name() != Some("struct"),
        Some(TokenKind::Mark(mark)) => matches!(mark, "{" | "(" | "-" | "!" | "~"),
        Some(_) => second != Some("="),
    };
    is_value && item.tokens.iter().all(|token| token.kind != TokenKind::Mark("="))
}

/// The type before a parameter's or a field's name, `float` in `float points = random[2 * n]`:
/// names only, the last of which is the parameter's.
fn element(item: &mut Cursor<'_>) -> Option<String> {
    let names = item.tokens.iter().take_while(|token| token.kind == TokenKind::Name).count();
    let equals = item.tokens.get(names).is_some_and(|token| token.kind == TokenKind::Mark("="));
    let (kind, rest) = item.tokens.split_at_checked(names.checked_sub(1).filter(|&words| words > 0 && equals)?)?;
    let spelled = Cursor::new(item.source, kind, item.place()).spelled();
    item.tokens = rest;
    Some(spelled)
}

/// `random(lo, hi)[n]` and its like, or an expression.
pub(super) fn value(item: &mut Cursor<'_>) -> Result<GivenValue, Diagnostic> {
    nested_value(item, 0)
}

fn nested_value(item: &mut Cursor<'_>, depth: usize) -> Result<GivenValue, Diagnostic> {
    let whole = item.rest();
    if is_structure(item) {
        return structure(item, depth);
    }
    if item.peek_mark() == Some("{") {
        return table(item);
    }
    if item.looks_like_list() {
        return Err(item.source.error(
            MessageCode::ArgsClause,
            whole,
            "an argument has one value, not a list: only macros, block, grid and register caps vary",
        ));
    }
    let Some(name) = item.peek_name() else {
        return Ok(GivenValue::Scalar(item.whole_expression()?));
    };
    if NULL.contains(&name) && item.is_last() {
        return Ok(GivenValue::Null(whole));
    }
    let bracket = item.second_mark() == Some("[");
    let is_fill = FILLS.contains(&name) && (bracket || item.second_mark() == Some("("));
    if !is_fill && !bracket && !calls_then_brackets(item) {
        if FILLS.contains(&name) && item.is_last() {
            let message = match name {
                "file" => FILE_FORM.to_owned(),
                _ => format!("`{name}` needs a number of elements: {name}[n]"),
            };
            return Err(item.source.error(MessageCode::BufferContents, whole, message));
        }
        return Ok(GivenValue::Scalar(item.whole_expression()?));
    }
    let fill_span = item.place();
    item.next();
    if name == "file" {
        return file(item, fill_span);
    }
    let parameters = if item.peek_mark() == Some("(") { Some(item.group("(", ")")?) } else { None };
    let expressions = |expected: usize, form: &str| -> Result<Vec<Expr>, Diagnostic> {
        let items = parameters.map(|inner| inner.items()).unwrap_or_default();
        if items.len() != expected {
            return Err(item.source.error(
                MessageCode::BufferContents,
                fill_span,
                format!("`{name}` is written {form}"),
            ));
        }
        items.into_iter().map(|mut item| item.whole_expression()).collect()
    };
    let fill = match name {
        "random" if parameters.is_none() => GivenFill::Random,
        "random" => {
            let bounds = expressions(2, "random[n] or random(lo, hi)[n]")?;
            let [lo, hi] = <[Expr; 2]>::try_from(bounds).map_err(|_| item.expected("two bounds"))?;
            GivenFill::Range(lo, hi)
        }
        "zeros" => expressions(0, "zeros[n]").map(|_| GivenFill::Zeros)?,
        "iota" => expressions(0, "iota[n]").map(|_| GivenFill::Iota)?,
        "out" => expressions(0, "out[n]").map(|_| GivenFill::Out)?,
        "fill" => {
            let value = expressions(1, "fill(value)[n]")?.pop().ok_or_else(|| item.expected("a value"))?;
            GivenFill::Constant(value)
        }
        "each" => match parameters.map(|inner| inner.items()).as_deref_mut() {
            Some([formula]) => {
                formula.in_each = true;
                GivenFill::Each(formula.whole_expression()?)
            }
            _ => {
                let message = "`each` is written each(expression)[n], where `index` is the number of the element";
                return Err(item.source.error(MessageCode::BufferContents, fill_span, message));
            }
        },
        _ => {
            return Err(item.source.error(
                MessageCode::BufferContents,
                fill_span,
                format!("unknown contents `{name}`{}", suggestion(name, FILLS)),
            ));
        }
    };
    if item.is_empty() {
        return Err(item.expected("`[` and the number of elements"));
    }
    let mut inner = item.group("[", "]")?;
    let count: Expr = inner.whole_expression()?;
    item.finish()?;
    Ok(GivenValue::Buffer { fill, fill_span, count })
}

/// `("x.bin")[n]`, the count being left out for all that the file has.
fn file(item: &mut Cursor<'_>, span: Span) -> Result<GivenValue, Diagnostic> {
    let form = || item.source.error(MessageCode::FileForm, span, FILE_FORM);
    if item.peek_mark() != Some("(") {
        return Err(form());
    }
    let mut ahead = *item;
    let inner = ahead.group("(", ")")?;
    let [token] = inner.tokens else { return Err(form()) };
    let path = inner.text(token).trim_matches('"');
    if token.kind != TokenKind::Text || path.is_empty() {
        return Err(form());
    }
    let mut count = None;
    if !ahead.is_empty() {
        count = Some(ahead.group("[", "]")?.whole_expression()?);
        ahead.finish()?;
    }
    Ok(GivenValue::File(GivenFile { path: path.to_owned(), span, count, bytes: None }))
}

/// `{1, 2, 3}`, `[n]` behind it for a buffer that goes on with zeros; `{}` is a structure of
/// which no field is given.
fn table(item: &mut Cursor<'_>) -> Result<GivenValue, Diagnostic> {
    let span = item.rest();
    let inner = item.group("{", "}")?;
    if inner.is_empty() && item.is_empty() {
        return Ok(GivenValue::Struct { span, fields: Vec::new() });
    }
    if inner.is_empty() {
        let message = "these braces are empty: write a buffer as {1, 2, 3}, or a structure as {field = value}";
        return Err(item.source.error(MessageCode::StructureForm, span, message));
    }
    if let Some(braced) = inner.items().into_iter().find(|value| value.peek_mark() == Some("{")) {
        let message = "a list has no braces within: write its numbers as they lie in memory, as in {1, 0, 0, 1}";
        return Err(item.source.error(MessageCode::StructureForm, braced.place(), message));
    }
    if let Some(equals) = inner.tokens.iter().find(|token| token.kind == TokenKind::Mark("=")) {
        let message = "a structure is written {field = value, field = {field = value}}, each field by its name alone";
        return Err(item.source.error(MessageCode::StructureForm, equals.span, message));
    }
    let values = inner.items().into_iter().map(|mut value| value.whole_expression()).collect::<Result<_, _>>()?;
    let mut count = None;
    if item.peek_mark() == Some("[") {
        count = Some(item.group("[", "]")?.whole_expression()?);
    }
    item.finish()?;
    Ok(GivenValue::Table(GivenTable { span, values, count }))
}

/// True for `{name = ...` and `{float name = ...`.
fn is_structure(item: &Cursor<'_>) -> bool {
    let mut ahead = *item;
    if !ahead.eat("{") {
        return false;
    }
    element(&mut ahead);
    ahead.peek_name().is_some() && ahead.second_mark() == Some("=")
}

/// `{name = value, ...}`
fn structure(item: &mut Cursor<'_>, depth: usize) -> Result<GivenValue, Diagnostic> {
    let span = item.rest();
    if depth == MAX_DEPTH {
        return Err(item.source.error(MessageCode::StructureForm, item.place(), "this structure is nested too deeply"));
    }
    let inner = item.group("{", "}")?;
    item.finish()?;
    let mut fields: Vec<GivenField> = Vec::new();
    for mut item in inner.items() {
        let element = element(&mut item);
        let (name, span) = item.name("the name of a field")?;
        if let Some(first) = fields.iter().find(|other| other.name == name) {
            let note = item.source.note(first.span, "first given here");
            return Err(item
                .source
                .error(MessageCode::GivenTwice, span, format!("field `{name}` is given twice"))
                .with(note));
        }
        if !item.eat("=") {
            return Err(item.expected("`=` and a value"));
        }
        let value = nested_value(&mut item, depth + 1)?;
        fields.push(GivenField { name: name.to_string(), span, element, value });
    }
    Ok(GivenValue::Struct { span, fields })
}

/// True for `name(...)[...`: a buffer whose contents are misspelt.
fn calls_then_brackets(item: &Cursor<'_>) -> bool {
    let mut ahead = *item;
    ahead.next();
    ahead.peek_mark() == Some("(") && ahead.group("(", ")").is_ok() && ahead.peek_mark() == Some("[")
}

fn number(item: &mut Cursor<'_>, what: &str) -> Result<f64, Diagnostic> {
    let expression = item.whole_expression()?;
    let value: Value = item.constant(&expression, what)?;
    Ok(value.as_f64())
}

pub(super) fn check(
    parsed: &mut Parsed,
    cursor: Cursor<'_>,
    _: Span,
    problems: &mut Vec<Diagnostic>,
) -> Result<(), Diagnostic> {
    let mut check = CheckClause { buffers: Vec::new(), relative: None, absolute: None };
    let items = cursor.items();
    let none = items.iter().find(|item| item.peek_name() == Some("none")).map(Cursor::place);
    if let Some(place) = none {
        if items.len() > 1 {
            return Err(cursor.source.error(MessageCode::CheckClause, place, "`none` stands alone: check(none)"));
        }
        parsed.clauses.check = Some(check);
        return Ok(());
    }
    for mut item in items {
        if let Err(problem) = check_item(&mut check, &mut item) {
            problems.push(problem);
        }
    }
    if check.buffers.is_empty() && (check.relative.is_some() || check.absolute.is_some()) {
        return Err(cursor.source.error(
            MessageCode::CheckClause,
            cursor.place(),
            "`check` needs the name of a buffer: check(y, rtol = 1e-5)",
        ));
    }
    parsed.clauses.check = Some(check);
    Ok(())
}

fn check_item(check: &mut CheckClause, item: &mut Cursor<'_>) -> Result<(), Diagnostic> {
    let (name, mut span) = item.name("the name of a buffer, `rtol` or `atol`")?;
    let mut name = name.to_string();
    while item.eat(".") {
        let (field, place) = item.name("the name of a field")?;
        name = format!("{name}.{field}");
        span = span.to(place);
    }
    if !item.eat("=") {
        item.finish()?;
        if let "rtol" | "atol" = name.as_str() {
            return Err(item.expected(&format!("`=` and a tolerance after `{name}`")));
        }
        if let Some(first) = check.buffers.iter().find(|buffer| buffer.value == name) {
            let note = item.source.note(first.span, "first given here");
            return Err(item
                .source
                .error(MessageCode::GivenTwice, span, format!("`{name}` is given twice: remove one"))
                .with(note));
        }
        check.buffers.push(Spanned { value: name, span });
        return Ok(());
    }
    let slot = match name.as_str() {
        "rtol" => &mut check.relative,
        "atol" => &mut check.absolute,
        _ => {
            let near = suggestion(&name, ["rtol", "atol"]);
            return Err(item.source.error(MessageCode::CheckClause, span, format!("unknown tolerance `{name}`{near}")));
        }
    };
    let place = item.rest();
    let tolerance = number(item, &format!("`{name}`"))?;
    if !(tolerance.is_finite() && tolerance >= 0.0) {
        return Err(item.source.error(
            MessageCode::CheckClause,
            place,
            format!("`{name}` is a tolerance, which is a number of 0 or more"),
        ));
    }
    if slot.replace(tolerance).is_some() {
        return Err(item.source.error(MessageCode::GivenTwice, span, format!("`{name}` is given twice: remove one")));
    }
    Ok(())
}
