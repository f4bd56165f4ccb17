//! Tokens of one tuning comment -> its clauses.
//!
//! Each clause is read by the function next to its name in [`CLAUSES`]; a new clause is a line
//! there, a function, and a field of [`Clauses`](super::annotation::Clauses). An error in a clause, or in one item of it,
//! leaves the rest to be read, so that all errors of a comment are reported at once.

use super::annotation::{Block, Grid, Launching, MacroAxis, Regs, Spanned};
use super::default_clause;
use super::lexer::Token;
use super::other_tools;
use super::parser::Cursor;
use super::symbol_clause;
use super::template_clause;
use super::value::Value;
use super::workload_clause;
use crate::comment::numbers::{cap, factor, percent, positive};
use crate::comment::parsed::Parsed;
use crate::diag::diagnostic::nearest;
use crate::diag::{Diagnostic, MessageCode, suggestion};
use crate::diag::{Source, Span};
use crate::launch::{LoadCacheOperator, MathOption};
use crate::settings::Strategy;

type Reader = fn(&mut Parsed, Cursor<'_>, Span, &mut Vec<Diagnostic>) -> Result<(), Diagnostic>;

/// The clauses and what reads them.
const CLAUSES: [(&str, Reader); 22] = [
    ("block", block),
    ("regs", regs),
    ("cache", cache),
    ("carveout", carveout),
    ("math", math),
    ("unroll", unroll),
    ("spill", spill),
    ("define", define),
    ("threads", threads),
    ("grid", grid),
    ("shared", shared),
    ("require", require),
    ("default", default_clause::default),
    ("args", workload_clause::args),
    ("check", workload_clause::check),
    ("symbol", symbol_clause::symbol),
    ("template", template_clause::template),
    ("trips", trips),
    ("launch", launch),
    ("strategy", strategy),
    ("budget", budget),
    ("name", name),
];

/// Whether there is a clause of this name.
pub(super) fn is_clause(name: &str) -> bool {
    CLAUSES.iter().any(|(known, _)| *known == name)
}

/// Clauses that may be given several times.
const REPEATED: [&str; 1] = ["template"];

/// The most macro axes of one kernel.
const MAX_MACROS: usize = 32;

/// Reads all clauses.
pub(super) fn clauses(source: &Source, tokens: &[Token], comment: Span, problems: &mut Vec<Diagnostic>) -> Parsed {
    let mut parsed = Parsed::default();
    let end = tokens.last().map_or(comment, |last| Span { start: last.span.end, end: last.span.end });
    let mut cursor = Cursor::new(source, tokens, end);
    while !cursor.is_empty() {
        // Blanks, commas and semicolons separate clauses.
        if matches!(cursor.peek_mark(), Some("," | ";")) {
            cursor.next();
            continue;
        }
        if let Some(mark @ (")" | "]" | "}")) = cursor.peek_mark() {
            problems.push(source.error(
                MessageCode::ClauseForm,
                cursor.place(),
                format!("this `{mark}` closes nothing: remove it"),
            ));
            cursor.next();
            continue;
        }
        let (word, span) = match cursor.name("a clause, such as block(auto)") {
            Ok(found) => found,
            Err(problem) => {
                problems.push(problem);
                to_next_clause(&mut cursor);
                continue;
            }
        };
        let reader = CLAUSES.iter().find(|(known, _)| *known == word).map(|(_, reader)| reader);
        if reader.is_none() {
            let near = match other_tools::meant(word) {
                Some(remedy) => format!(": {remedy}"),
                None => suggestion(word, CLAUSES.iter().map(|(known, _)| *known)),
            };
            problems.push(source.error(MessageCode::UnknownClause, span, format!("unknown clause `{word}`{near}")));
        }
        if cursor.peek_mark() != Some("(") {
            if reader.is_some() {
                problems.push(source.error(
                    MessageCode::ClauseForm,
                    span,
                    format!("clause `{word}` needs its values in parentheses: {word}(...)"),
                ));
            }
            to_next_clause(&mut cursor);
            continue;
        }
        let open = cursor.place();
        let Ok(inner) = cursor.group("(", ")") else {
            problems.push(source.error(
                MessageCode::ClauseForm,
                open,
                format!("this `(` of clause `{word}` is not closed"),
            ));
            break;
        };
        let Some(reader) = reader else { continue };
        let first = parsed.clauses.places.iter().find(|(name, _)| name == word && !REPEATED.contains(&word));
        if let Some((_, first)) = first {
            let note = source.note(*first, "first given here");
            problems.push(
                source
                    .error(
                        MessageCode::GivenTwice,
                        span,
                        format!("clause `{word}` is given twice: put it all into one"),
                    )
                    .with(note),
            );
            parsed.clauses.places.push((word.to_string(), span));
            continue;
        }
        parsed.clauses.places.push((word.to_string(), span));
        if inner.is_empty() {
            problems.push(source.error(
                MessageCode::ClauseForm,
                span,
                format!("clause `{word}` is empty: give it a value, or remove it"),
            ));
            continue;
        }
        if let Err(problem) = reader(&mut parsed, inner, span, problems) {
            problems.push(problem);
        }
    }
    parsed
}

/// Passes over what is no clause up to what may be one: one message is enough.
fn to_next_clause(cursor: &mut Cursor<'_>) {
    let is_clause = |cursor: &Cursor<'_>| cursor.peek_name().is_some() && cursor.second_mark() == Some("(");
    while !cursor.is_empty() && !is_clause(cursor) {
        cursor.next();
    }
}

/// `items` one by one with `read`; at most `limit` of them.
fn dimensions<T>(
    cursor: Cursor<'_>,
    what: &str,
    problems: &mut Vec<Diagnostic>,
    mut read: impl FnMut(&mut Cursor<'_>, usize) -> Result<T, Diagnostic>,
) -> Result<Vec<T>, Diagnostic> {
    let items = cursor.items();
    if let Some(fourth) = items.get(3) {
        let listed = what.strip_prefix("a ").filter(|_| items.iter().all(Cursor::is_last));
        let remedy = listed.map(|clause| format!("; list the values of one as {clause}({{64, 128, 256, 512}})"));
        let code = if what == "a block" { MessageCode::BlockClause } else { MessageCode::GridClause };
        let message = format!("{what} has at most three dimensions{}", remedy.unwrap_or_default());
        return Err(fourth.source.error(code, fourth.place(), message));
    }
    let mut found = Vec::new();
    let count = items.len();
    for (dimension, mut item) in items.into_iter().enumerate() {
        match read(&mut item, dimension) {
            Ok(value) => found.push(value),
            Err(problem) => problems.push(problem),
        }
    }
    // Fewer than were written: an error has been reported, and what is left means something else.
    if found.len() == count { Ok(found) } else { Err(problems.pop().unwrap_or_else(|| cursor.expected(what))) }
}

fn is_lone(cursor: &Cursor<'_>, word: &str) -> bool {
    cursor.peek_name() == Some(word) && cursor.source.slice(cursor.rest()) == word
}

fn positive_list(cursor: &mut Cursor<'_>, what: &str) -> Result<Vec<u32>, Diagnostic> {
    let values = cursor.list(what)?;
    values.into_iter().map(|value| positive(cursor, value, what)).collect()
}

fn block(
    parsed: &mut Parsed,
    cursor: Cursor<'_>,
    span: Span,
    problems: &mut Vec<Diagnostic>,
) -> Result<(), Diagnostic> {
    let mut of_macros = Vec::new();
    let value = if is_lone(&cursor, "auto") {
        Block::Auto
    } else {
        Block::Lists(dimensions(cursor, "a block", problems, |item, dimension| {
            if is_lone(item, "auto") {
                return Err(item.source.error(
                    MessageCode::BlockClause,
                    item.place(),
                    "`auto` stands for all dimensions: write block(auto)",
                ));
            }
            let mut whole = *item;
            match whole.whole_expression() {
                Ok(expression) if expression.any_name(|_| true) => {
                    of_macros.push((dimension, expression));
                    Ok(Vec::new())
                }
                _ => positive_list(item, "a block dimension"),
            }
        })?)
    };
    parsed.block_of_macros = of_macros;
    parsed.clauses.block = Some(Spanned { value, span });
    Ok(())
}

fn regs(parsed: &mut Parsed, mut cursor: Cursor<'_>, _: Span, _: &mut Vec<Diagnostic>) -> Result<(), Diagnostic> {
    let value = if is_lone(&cursor, "auto") {
        Regs::Auto
    } else {
        if let Some(second) = cursor.items().get(1) {
            return Err(cursor.source.error(
                MessageCode::RegsClause,
                second.place(),
                "`regs` takes one list: regs({a, b, c})",
            ));
        }
        let values = cursor.list("a register cap")?;
        Regs::List(values.into_iter().map(|value| cap(&cursor, value)).collect::<Result<_, _>>()?)
    };
    parsed.clauses.regs = value;
    Ok(())
}

fn cache(parsed: &mut Parsed, cursor: Cursor<'_>, _: Span, problems: &mut Vec<Diagnostic>) -> Result<(), Diagnostic> {
    let mut operators = Vec::new();
    for mut item in cursor.items() {
        match operator(&mut item) {
            Ok(Some(operator)) if !operators.contains(&operator) => operators.push(operator),
            Ok(_) => {}
            Err(problem) => problems.push(problem),
        }
    }
    parsed.clauses.cache = Some(operators);
    Ok(())
}

/// The word for what is always tried, whether it is listed or not: no operator.
const NO_OPERATOR: &str = "none";

fn operator(item: &mut Cursor<'_>) -> Result<Option<LoadCacheOperator>, Diagnostic> {
    if item.looks_like_list() {
        return Err(item.source.error(
            MessageCode::CacheClause,
            item.place(),
            "`cache` takes words without braces: cache(ca, cg)",
        ));
    }
    if is_lone(item, "auto") {
        return Err(item.source.error(
            MessageCode::CacheClause,
            item.place(),
            "`cache` has no `auto`: name its operators, as in cache(ca, cg)",
        ));
    }
    let known: Vec<&str> = std::iter::once(NO_OPERATOR).chain(LoadCacheOperator::ALL.map(|(name, _)| name)).collect();
    Ok(word(item, "cache operator", &known)?.parse().ok())
}

fn carveout(parsed: &mut Parsed, mut cursor: Cursor<'_>, _: Span, _: &mut Vec<Diagnostic>) -> Result<(), Diagnostic> {
    if is_lone(&cursor, "auto") {
        let message = "`carveout` has no `auto`: list percentages, as in carveout({0, 50, 100})";
        return Err(cursor.source.error(MessageCode::CarveoutClause, cursor.place(), message));
    }
    if let Some(second) = cursor.items().get(1) {
        return Err(cursor.source.error(
            MessageCode::CarveoutClause,
            second.place(),
            "`carveout` takes one list: carveout({0, 50, 100})",
        ));
    }
    let values = cursor.list("a carve-out")?;
    let percents: Vec<Option<u8>> =
        values.into_iter().map(|value| percent(&cursor, value)).collect::<Result<_, _>>()?;
    parsed.clauses.carveout = Some(percents.into_iter().flatten().collect());
    Ok(())
}

fn math(parsed: &mut Parsed, cursor: Cursor<'_>, _: Span, problems: &mut Vec<Diagnostic>) -> Result<(), Diagnostic> {
    let known = MathOption::ALL.map(|(name, _)| name);
    let mut options: Vec<MathOption> = Vec::new();
    for mut item in cursor.items() {
        match word(&mut item, "math option", &known).map(str::parse) {
            Ok(Ok(option)) if !options.contains(&option) => options.push(option),
            Ok(_) => {}
            Err(problem) => problems.push(problem),
        }
    }
    parsed.clauses.math = Some(options);
    Ok(())
}

/// The factors of `unroll(auto)`.
const AUTO_FACTORS: [u32; 4] = [1, 2, 4, 8];

fn unroll(parsed: &mut Parsed, mut cursor: Cursor<'_>, span: Span, _: &mut Vec<Diagnostic>) -> Result<(), Diagnostic> {
    if is_lone(&cursor, "auto") {
        parsed.clauses.unroll = Some(Spanned { value: AUTO_FACTORS.to_vec(), span });
        return Ok(());
    }
    if let Some(second) = cursor.items().get(1) {
        return Err(cursor.source.error(
            MessageCode::UnrollClause,
            second.place(),
            "`unroll` takes one list: unroll({1, 2, 4, 8})",
        ));
    }
    let mut factors = Vec::new();
    for value in cursor.list("a factor")? {
        let factor = factor(&cursor, value)?;
        if !factors.contains(&factor) {
            factors.push(factor);
        }
    }
    parsed.clauses.unroll = Some(Spanned { value: factors, span });
    Ok(())
}

fn spill(parsed: &mut Parsed, cursor: Cursor<'_>, _: Span, problems: &mut Vec<Diagnostic>) -> Result<(), Diagnostic> {
    for mut item in cursor.items() {
        match word(&mut item, "memory for spills", &["shared"]) {
            Ok(_) => parsed.clauses.shared_spills = true,
            Err(problem) => problems.push(problem),
        }
    }
    Ok(())
}

fn define(parsed: &mut Parsed, cursor: Cursor<'_>, _: Span, problems: &mut Vec<Diagnostic>) -> Result<(), Diagnostic> {
    let mut has_nameless = false;
    for mut item in cursor.items() {
        if item.peek_name().is_none() && std::mem::replace(&mut has_nameless, true) {
            // The first one's message says it of all.
            continue;
        }
        match macro_axis(&mut item, &parsed.clauses.macros) {
            Ok(axis) if parsed.clauses.macros.len() < MAX_MACROS => parsed.clauses.macros.push(axis),
            Ok(axis) => {
                return Err(cursor.source.error(
                    MessageCode::DefineClause,
                    axis.span,
                    format!("a kernel has at most {MAX_MACROS} macro axes"),
                ));
            }
            Err(problem) => problems.push(problem),
        }
    }
    Ok(())
}

fn macro_axis(item: &mut Cursor<'_>, others: &[MacroAxis]) -> Result<MacroAxis, Diagnostic> {
    let (name, span) = item.name("the name of a macro")?;
    if let Some(first) = others.iter().find(|axis| axis.name == name) {
        let note = item.source.note(first.span, "first given here");
        return Err(item
            .source
            .error(MessageCode::GivenTwice, span, format!("macro `{name}` is given twice: remove one"))
            .with(note));
    }
    if let "block" | "grid" | "regs" | "cache" | "carveout" | "math" | "unroll" | "true" | "false" | "sizeof"
    | "ceildiv" | "min" | "max" = name
    {
        return Err(item.source.error(
            MessageCode::DefineClause,
            span,
            format!("a macro axis cannot be called `{name}`: the word has a meaning of its own"),
        ));
    }
    if !item.eat("=") {
        return Err(item.expected("`=` and a list of values"));
    }
    let values = item.list(&format!("macro `{name}`"))?;
    Ok(MacroAxis { name: name.to_string(), span, values: values.into_iter().map(|(value, _)| value).collect() })
}

fn threads(
    parsed: &mut Parsed,
    cursor: Cursor<'_>,
    span: Span,
    problems: &mut Vec<Diagnostic>,
) -> Result<(), Diagnostic> {
    let value = dimensions(cursor, "`threads`", problems, |item, _| {
        if item.looks_like_list() {
            return Err(item.source.error(
                MessageCode::ThreadsClause,
                item.place(),
                "`threads` takes expressions, not lists",
            ));
        }
        item.whole_expression()
    })?;
    parsed.clauses.threads = Some(Spanned { value, span });
    Ok(())
}

fn grid(parsed: &mut Parsed, cursor: Cursor<'_>, span: Span, problems: &mut Vec<Diagnostic>) -> Result<(), Diagnostic> {
    if is_lone(&cursor, "auto") {
        return Err(cursor.source.error(
            MessageCode::GridClause,
            cursor.place(),
            "`grid` has no `auto`: list its values, or write threads(...)",
        ));
    }
    let value = if cursor.items().iter().any(Cursor::looks_like_list) {
        Grid::Lists(dimensions(cursor, "a grid", problems, |item, _| positive_list(item, "a grid dimension"))?)
    } else {
        Grid::Expressions(dimensions(cursor, "a grid", problems, |item, _| item.whole_expression())?)
    };
    parsed.clauses.grid = Some(Spanned { value, span });
    Ok(())
}

fn shared(parsed: &mut Parsed, mut cursor: Cursor<'_>, _: Span, _: &mut Vec<Diagnostic>) -> Result<(), Diagnostic> {
    if let Some(second) = cursor.items().get(1) {
        return Err(cursor.source.error(
            MessageCode::SharedClause,
            second.place(),
            "`shared` takes one expression: bytes of a block",
        ));
    }
    if cursor.looks_like_list() {
        return Err(cursor.source.error(
            MessageCode::SharedClause,
            cursor.place(),
            "`shared` takes an expression, not a list",
        ));
    }
    parsed.clauses.shared = Some(cursor.whole_expression()?);
    Ok(())
}

fn require(parsed: &mut Parsed, cursor: Cursor<'_>, _: Span, problems: &mut Vec<Diagnostic>) -> Result<(), Diagnostic> {
    for mut item in cursor.items() {
        match item.whole_expression() {
            Ok(expression) => parsed.clauses.require.push(expression),
            // The commonest slip has a clear remedy.
            Err(problem) if cursor.source.slice(item.rest()).starts_with('=') => {
                let reversed =
                    [">", "<"].iter().find(|mark| cursor.source.slice(item.rest()).starts_with(&format!("={mark}")));
                let message = match reversed {
                    Some(mark) => format!("`={mark}` is no comparison: write `{mark}=`"),
                    None => "`=` is no comparison: write `==`".to_string(),
                };
                problems.push(Diagnostic { message, code: Some(MessageCode::NotExpected), ..problem })
            }
            Err(problem) => problems.push(problem),
        }
    }
    Ok(())
}

fn trips(parsed: &mut Parsed, cursor: Cursor<'_>, _: Span, problems: &mut Vec<Diagnostic>) -> Result<(), Diagnostic> {
    for mut item in cursor.items() {
        if item.looks_like_list() {
            let message = "`trips` takes a number for each depth of loops, not lists: trips(100, 8)";
            return Err(item.source.error(MessageCode::TripsClause, item.place(), message));
        }
        match item.whole_expression() {
            Ok(expression) => parsed.clauses.trips.push(expression),
            Err(problem) => problems.push(problem),
        }
    }
    Ok(())
}

/// One word of a closed set.
fn word<'a>(cursor: &mut Cursor<'a>, clause: &str, known: &[&str]) -> Result<&'a str, Diagnostic> {
    let list = known.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    let (found, span) = cursor.name(&format!("one of {list}"))?;
    cursor.finish()?;
    if known.contains(&found) {
        return Ok(found);
    }
    let near = match nearest(found, known.iter().copied()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => format!(": known are {list}"),
    };
    Err(cursor.source.error(MessageCode::UnknownWord, span, format!("unknown {clause} `{found}`{near}")))
}

fn launch(parsed: &mut Parsed, cursor: Cursor<'_>, _: Span, _: &mut Vec<Diagnostic>) -> Result<(), Diagnostic> {
    for mut item in cursor.items() {
        let place = item.place();
        let way = match word(&mut item, "way to launch", &["header", "remap", "cooperative"])? {
            "cooperative" => {
                parsed.clauses.cooperative = true;
                continue;
            }
            "remap" => Launching::Remap,
            _ => Launching::Header,
        };
        if parsed.clauses.launch.replace(way).is_some_and(|other| other != way) {
            return Err(cursor.source.error(
                MessageCode::LaunchClause,
                place,
                "launches go one way: remove `header` or `remap`",
            ));
        }
    }
    if parsed.clauses.cooperative && parsed.clauses.launch == Some(Launching::Remap) {
        let message = "a cooperative launch cannot be reshaped: remove `remap`, or write `header` in its place";
        return Err(cursor.source.error(MessageCode::LaunchClause, cursor.rest(), message));
    }
    Ok(())
}

fn strategy(parsed: &mut Parsed, mut cursor: Cursor<'_>, _: Span, _: &mut Vec<Diagnostic>) -> Result<(), Diagnostic> {
    parsed.clauses.strategy = Some(word(&mut cursor, "strategy", &Strategy::ALL.map(|(name, _)| name))?.to_string());
    Ok(())
}

fn budget(parsed: &mut Parsed, mut cursor: Cursor<'_>, _: Span, _: &mut Vec<Diagnostic>) -> Result<(), Diagnostic> {
    let expression = cursor.whole_expression()?;
    let value: Value = cursor.constant(&expression, "a budget")?;
    let seconds = value.as_f64();
    if !(seconds.is_finite() && seconds > 0.0) {
        return Err(cursor.source.error(
            MessageCode::BudgetClause,
            expression.span,
            format!("a budget is a number of seconds above 0, not {value}"),
        ));
    }
    parsed.clauses.budget = Some(seconds);
    Ok(())
}

fn name(parsed: &mut Parsed, mut cursor: Cursor<'_>, _: Span, _: &mut Vec<Diagnostic>) -> Result<(), Diagnostic> {
    const RULE: &str = "a name is one word of letters, digits and `_`: it becomes part of macros";
    let (name, span) = cursor.name("a name as C++ has them")?;
    cursor.finish().map_err(|problem| Diagnostic {
        message: RULE.to_string(),
        code: Some(MessageCode::NameClause),
        ..problem
    })?;
    if !name.is_ascii() {
        return Err(cursor.source.error(MessageCode::NameClause, span, RULE));
    }
    parsed.name = Some(Spanned { value: name.to_string(), span });
    Ok(())
}
