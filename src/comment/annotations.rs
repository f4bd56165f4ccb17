//! A source -> the tuning comments in it, each with its kernel.
//!
//! A tuning comment begins its line; it is one `/*@tune ... */` or as many `//@tune` lines as
//! stand before the next code. Either every comment of the file is good, or all that is wrong
//! with all of them is reported.

use super::alternatives::{Conditions, clashes};
use super::annotation::{
    Annotation, Clauses, Given, GivenField, GivenSymbol, GivenTable, GivenValue, Grid, MacroAxis, Power, Spanned,
};
use super::block_of_macros;
use super::clause::clauses;
use super::constants::Constants;
use super::expression::{Expr, Located};
use super::lexer::{Token, TokenKind, tokens};
use super::marker::{is_marked, opening};
use super::named_constants;
use super::parsed::Parsed;
use super::parsed::RawGiven;
use super::parsed::RawInstance;
use super::symbol_clause;
use super::template_clause;
use super::template_parameters;
use super::value::{Fault, Value};
use crate::cuda::Kernel;
use crate::cuda::kernel::find_kernel;
use crate::cuda::tokens::{CxxKind, CxxToken, cxx_tokens};
use crate::cuda::{Type, may_be_structure, points_to_arrays, takes_no_value, vector_fields};
use crate::diag::{Diagnostic, MessageCode, suggestion};
use crate::diag::{Source, Span};
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// The tuning comments of a source in order, also of kernels that `#if` may leave out (see
/// [`without_alternatives`](super::alternatives::without_alternatives)).
///
/// # Errors
/// Everything that is wrong with them, in no promised order (see
/// [`render`](crate::diag::render)).
pub fn annotations(source: &Source) -> Result<Vec<Annotation>, Vec<Diagnostic>> {
    annotations_among(source, &Vec::new)
}

/// The same where other files are around the source, those that it includes and those that
/// include it: `around` reads them, and is asked where a comment names a constant that the
/// source does not define.
///
/// # Errors
/// As [`annotations`].
pub fn annotations_among(
    source: &Source,
    around: &dyn Fn() -> Vec<Source>,
) -> Result<Vec<Annotation>, Vec<Diagnostic>> {
    if !is_marked(source.text.as_bytes()) {
        return Ok(Vec::new());
    }
    let shared = Arc::new(source.clone());
    let code = cxx_tokens(&source.text);
    let constants = Constants::new(source, &code, around);
    let axes = axes(source, &code);
    let mut found: Vec<Annotation> = Vec::new();
    let mut problems = Vec::new();
    let conditions = OnceCell::new();
    let mut at = 0;
    while let Some(comment) = (at..code.len()).find(|&at| is_tuning(source, &code[at])) {
        let WholeComment { parts, code_start, next } = whole_comment(source, &code, comment);
        let end = (next..code.len()).find(|&at| is_tuning(source, &code[at])).unwrap_or(code.len());
        at = next;
        if let Some(problem) = too_long(source, &parts) {
            problems.push(problem);
            continue;
        }
        let known = Known { code: &code, constants: &constants, axes: &axes };
        for annotation in instances(&shared, &parts, known, code_start..end, &mut problems) {
            let conditions = || conditions.get_or_init(|| Conditions::new(&source.text));
            let may_part = |other: &Annotation| conditions().may_part(other.kernel.line, annotation.kernel.line);
            let mut clashing = found.iter().map(|other| (other, clashes(other, &annotation)));
            let surely = clashing.find(|(other, clashes)| !clashes.is_empty() && !may_part(other));
            problems.extend(surely.into_iter().flat_map(|(_, clashes)| clashes));
            found.push(annotation);
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

/// The parts of one tuning comment.
struct WholeComment {
    parts: Vec<Span>,
    /// The first code behind its first part, and behind its last.
    code_start: usize,
    next: usize,
}

/// Words that begin a kernel's declaration before `__global__`, and after which its comment may
/// go on.
const DECLARATION_STARTS: [&str; 6] = ["template", "extern", "static", "inline", "__global__", "__launch_bounds__"];

/// Collects the tuning comments from `comment` up to the next code, and those within the head
/// of the declaration that the code begins.
fn whole_comment(source: &Source, code: &[CxxToken], comment: usize) -> WholeComment {
    let text = |at: usize| source.slice(code[at].span);
    let is_comment = |at: &usize| matches!(code[*at].kind, CxxKind::Comment { .. });
    let (mut parts, mut code_start, mut at) = (Vec::new(), None, comment);
    loop {
        let next = (at..code.len()).find(|at| !is_comment(at)).unwrap_or(code.len());
        parts.extend((at..next).filter(|&at| is_tuning(source, &code[at])).map(|at| code[at].span));
        let first = *code_start.get_or_insert(next);
        let other = (next..code.len()).find(|&at| is_tuning(source, &code[at]));
        let begins = next < code.len() && DECLARATION_STARTS.contains(&text(first));
        let is_head = |other: &usize| (next..*other).all(|at| is_comment(&at) || !matches!(text(at), ";" | "{" | "}"));
        match other.filter(|other| begins && is_head(other)) {
            Some(other) => at = other,
            None => return WholeComment { parts, code_start: first, next },
        }
    }
}

/// Most bytes of one tuning comment. The longest of the suite has 700; each clause may take a
/// hundred times its text in memory.
const MOST_BYTES: usize = 64 << 10;

/// An error for a comment that is too long to be read.
fn too_long(source: &Source, parts: &[Span]) -> Option<Diagnostic> {
    let bytes: usize = parts.iter().map(|part| source.slice(*part).len()).sum();
    let message =
        || format!("the tuning comment has {bytes} bytes; the most is {MOST_BYTES}: write ranges or fewer clauses");
    let start = parts.first().filter(|_| bytes > MOST_BYTES)?;
    Some(source.error(MessageCode::CommentTooLong, body(source, *start), message()))
}

/// What is known of a whole file where one of its comments is read.
#[derive(Clone, Copy)]
struct Known<'a> {
    code: &'a [CxxToken],
    constants: &'a Constants<'a>,
    /// The macro axes of all its comments.
    axes: &'a HashSet<&'a str>,
}

/// The macro axes of all comments of a file.
fn axes<'a>(source: &'a Source, code: &[CxxToken]) -> HashSet<&'a str> {
    let comments = code.iter().filter(|token| is_tuning(source, token));
    let bodies: Vec<Span> = comments.map(|token| body(source, token.span)).collect();
    named_constants::axes(source, &tokens(source, &bodies, &mut Vec::new()))
}

fn is_tuning(source: &Source, token: &CxxToken) -> bool {
    token.kind == CxxKind::Comment { alone: true } && opening(source.slice(token.span)).is_some()
}

/// The annotations that these comments make for the kernel in a range of `code`: one, or one
/// for each instance of a template.
fn instances(
    source: &Arc<Source>,
    parts: &[Span],
    known: Known<'_>,
    range: Range<usize>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<Annotation> {
    let before = problems.len();
    let Some((mut annotation, mut instances, named)) = annotation(source, parts, known, range, problems) else {
        return Vec::new();
    };
    let Kernel { name, template, arguments, .. } = &annotation.kernel;
    if let Some(arguments) = *arguments
        && let Some(own) = template_clause::specialized(source, arguments)
    {
        match instances.iter().find(|instance| !instance.begins_with(&own)) {
            Some(other) => {
                let message = format!(
                    "this is the specialization `{name}<{}>` and no other instance: remove this clause",
                    source.slice(arguments)
                );
                problems.push(source.error(MessageCode::TemplateClause, other.span, message));
            }
            None if instances.is_empty() => instances.push(own),
            None => {}
        }
    }
    match (template, instances.first()) {
        (None, None) => {
            template_parameters::give(&mut annotation, None, problems);
            return vec![annotation];
        }
        // The clause may be there, with an error.
        (Some(_), None) if problems.len() > before => {}
        (Some(_), None) => {
            let message = format!("`{name}` is a template: say which instance to tune, as in template(float, 16)");
            problems.push(source.error(MessageCode::TemplateClause, annotation.kernel.span, message));
        }
        (None, Some(first)) => {
            problems.push(source.error(MessageCode::TemplateClause, first.span, format!("`{name}` is no template")))
        }
        (Some(_), Some(_)) => {}
    }
    let several = instances.len() > 1;
    let mut found = Vec::new();
    let asked = template_parameters::asked(&mut annotation);
    for raw in instances {
        let instance = raw.resolve(&annotation, &asked, known.constants);
        let mut annotation = annotation.clone();
        template_parameters::give(&mut annotation, Some(&instance), problems);
        if several || !named {
            annotation.name.push_str(&instance.suffix());
            annotation.name_span = instance.span;
        }
        annotation.instance = Some(instance);
        found.push(annotation);
    }
    found
}

/// The annotation that these comments make for the kernel in a range of `code`, with its
/// instances and whether it has a `name` clause; `None` after a problem that leaves none.
fn annotation(
    source: &Arc<Source>,
    parts: &[Span],
    known: Known<'_>,
    range: Range<usize>,
    problems: &mut Vec<Diagnostic>,
) -> Option<(Annotation, Vec<RawInstance>, bool)> {
    let Known { code, constants, axes } = known;
    let first = *parts.first()?;
    let marker = Span { start: first.start, end: first.start + opening(source.slice(first)).unwrap_or(2) };
    if let Some(problem) = parts.iter().find_map(|part| unclosed(source, *part)) {
        problems.push(problem);
        return None;
    }
    let bodies: Vec<Span> = parts.iter().map(|part| body(source, *part)).collect();
    let tokens = tokens(source, &bodies, problems);
    let before = code.partition_point(|token| token.span.start < first.start);
    // Which parameters there are depends on the names that the comment gives values, and what other
    // names are on the parameters.
    let named = clauses(source, &tokens, marker, &mut Vec::new());
    let given: Vec<&str> = named.args.iter().flatten().map(|given| given.name.as_str()).collect();
    let kernel = find_kernel(source, &code[..before], &code[range], &given, &|| constants.around(), marker);
    let (tokens, constants) = match &kernel {
        Ok(kernel) => named_constants::given(source, &tokens, kernel, axes, constants),
        Err(_) => (tokens, Vec::new()),
    };
    let before = problems.len();
    let mut parsed = clauses(source, &tokens, marker, problems);
    block_of_macros::resolve(source, &mut parsed, problems);
    let sound = problems.len() == before;
    let mut untyped: Vec<&mut GivenSymbol> =
        parsed.clauses.symbols.iter_mut().filter(|symbol| symbol.element.is_none()).collect();
    declared(source, code, &mut untyped);
    if !untyped.is_empty() {
        known.constants.around().iter().for_each(|other| declared(other, &cxx_tokens(&other.text), &mut untyped));
    }
    let kernel = kernel.map_err(|problem| problems.push(problem)).ok()?;
    let text = tokens.iter().map(|token| source.slice(token.span)).collect::<Vec<_>>().join(" ");
    if tokens.is_empty() {
        problems.push(source.error(
            MessageCode::CommentEmpty,
            marker,
            "this tuning comment has no clauses: it needs a block and a grid, such as block(auto) threads(n)",
        ));
        return None;
    }
    if sound {
        absences(source, marker, &parsed.clauses, &kernel, problems);
        infer_macro_defaults(&mut parsed.clauses, known.constants);
    }
    let instances = std::mem::take(&mut parsed.instances);
    let named = parsed.name.is_some();
    let annotation = assemble(source, marker, text, parsed, kernel, problems);
    Some((Annotation { powers: powers(source, &tokens), constants, ..annotation }, instances, named))
}

/// Takes the value that the source gives a macro axis for its default, if the comment gives
/// none and the axis has it.
fn infer_macro_defaults(clauses: &mut Clauses, constants: &Constants<'_>) {
    let given: Vec<String> = clauses.default.macros.iter().map(|(name, _)| name.clone()).collect();
    for axis in clauses.macros.iter().filter(|axis| !given.contains(&axis.name)) {
        let value = constants.named(&axis.name, &|_| false).filter(|value| axis.values.contains(value));
        clauses.default.macros.extend(value.map(|value| (axis.name.clone(), Spanned { value, span: axis.span })));
    }
}

/// Gives variables that are declared in a file the types of their elements, and takes them from
/// those that have none yet.
fn declared(source: &Source, code: &[CxxToken], untyped: &mut Vec<&mut GivenSymbol>) {
    untyped.retain_mut(|symbol| {
        symbol.element = symbol_clause::declared_element(source, code, &symbol.name);
        symbol.element.is_none()
    });
}

/// Decimal integers around a `^`; who writes one of them in another base means bits.
fn powers(source: &Source, tokens: &[Token]) -> Vec<Power> {
    let decimal = |token: &Token| match token.kind {
        TokenKind::Number(Value::Int(value)) => {
            source.slice(token.span).bytes().all(|byte| byte.is_ascii_digit() || byte == b'\'').then_some(value)
        }
        _ => None,
    };
    let power = |window: &[Token]| match window {
        [base, operator, exponent] if operator.kind == TokenKind::Mark("^") => {
            Some(Power { span: base.span.to(exponent.span), base: decimal(base)?, exponent: decimal(exponent)? })
        }
        _ => None,
    };
    tokens.windows(3).filter_map(power).collect()
}

/// What a comment says, without its opening and closing.
fn body(source: &Source, span: Span) -> Span {
    let comment = source.slice(span);
    let start = span.start + opening(comment).unwrap_or(2);
    let end = if comment.starts_with("/*") && comment.ends_with("*/") { span.end - 2 } else { span.end };
    Span { start, end: end.max(start) }
}

/// Returns an error for a comment that swallows its kernel: its `*/` is missing, or its line
/// goes on over the next one.
fn unclosed(source: &Source, comment: Span) -> Option<Diagnostic> {
    let (text, own) = (source.slice(comment), body(source, comment));
    let is_kernel = |token: &Token| token.kind == TokenKind::Name && source.slice(token.span) == "__global__";
    let swallows = || tokens(source, &[own], &mut Vec::new()).iter().any(is_kernel);
    let is_block = text.starts_with("/*");
    let message = match is_block {
        true => "this comment is not closed before the kernel: write `*/` behind its last clause",
        false => "this comment goes on over the kernel: remove the `\\` at the end of its line",
    };
    let is_open = is_block && (text.len() < 4 || !text.ends_with("*/"));
    (is_open || swallows())
        .then(|| source.error(MessageCode::CommentNotClosed, Span { start: comment.start, end: own.start }, message))
}

/// What is missing or names nothing. Only asked where each clause was read well: a misspelt
/// clause is not also absent.
fn absences(source: &Source, comment: Span, clauses: &Clauses, kernel: &Kernel, problems: &mut Vec<Diagnostic>) {
    if clauses.threads.is_none() && clauses.grid.is_none() {
        let message = format!("the grid of `{}` is not known: add threads(...) or grid(...)", kernel.name);
        problems.push(source.error(MessageCode::GridUnknown, comment, message));
    }
    if clauses.block.is_none() && clauses.default.block.is_none() {
        let message = format!(
            "the block of `{}` is not known: add block(...), or default(block = ...) to keep it fixed",
            kernel.name
        );
        problems.push(source.error(MessageCode::BlockUnknown, comment, message));
    }
    if let Some(default) = &clauses.default.carveout
        && clauses.carveout.is_none()
    {
        let message = "`carveout` is no axis of this kernel: add carveout({...}), or remove this default";
        problems.push(source.error(MessageCode::DefaultClause, default.span, message));
    }
    for (name, value) in &clauses.default.macros {
        let axes = clauses.macros.iter().map(|axis| axis.name.as_str());
        if axes.clone().all(|axis| axis != name) {
            let near = suggestion(name, axes.chain(["block", "regs", "grid", "carveout"]));
            problems.push(source.error(
                MessageCode::DefaultClause,
                value.span,
                format!("`{name}` is no axis of this kernel{near}"),
            ));
        }
    }
}

/// Checks what the clauses mean together and for this kernel.
fn assemble(
    source: &Arc<Source>,
    comment: Span,
    text: String,
    Parsed { mut clauses, args, name, .. }: Parsed,
    kernel: Kernel,
    problems: &mut Vec<Diagnostic>,
) -> Annotation {
    problems.extend(grid_given_twice(source, &clauses));
    axis_names(source, &clauses.macros, &kernel, problems);
    clauses.args = args.map(|given| arguments(source, comment, (&clauses, &kernel), given, problems));
    checked_buffers(source, &clauses, &kernel, problems);
    let name = name.unwrap_or_else(|| Spanned { value: kernel.name.clone(), span: kernel.span });
    Annotation {
        source: Arc::clone(source),
        comment,
        text,
        name: name.value,
        name_span: name.span,
        kernel,
        instance: None,
        clauses,
        powers: Vec::new(),
        constants: Vec::new(),
    }
}

fn grid_given_twice(source: &Source, clauses: &Clauses) -> Option<Diagnostic> {
    let (threads, grid) = clauses.place("threads").zip(clauses.place("grid"))?;
    let note = source.note(threads.min(grid), "the other is here");
    Some(
        source
            .error(MessageCode::GivenTwice, threads.max(grid), "`threads` and `grid` both give the grid: remove one")
            .with(note),
    )
}

/// Macros that would replace a parameter of the kernel or of its template.
fn axis_names(source: &Source, macros: &[MacroAxis], kernel: &Kernel, problems: &mut Vec<Diagnostic>) {
    for axis in macros {
        if kernel.parameters.iter().flatten().any(|name| *name == axis.name) {
            let message =
                format!("macro `{}` has the name of a parameter of `{}`: rename one of them", axis.name, kernel.name);
            problems.push(source.error(MessageCode::MacroNameClash, axis.span, message));
        }
        if kernel.template_parameters.iter().flatten().any(|parameter| parameter.name == axis.name) {
            let message = format!(
                "macro `{0}` has the name of a template parameter of `{1}`: rename it, and give it in template(...)",
                axis.name, kernel.name
            );
            problems.push(source.error(MessageCode::MacroNameClash, axis.span, message));
        }
    }
}

/// The values of the `args` clause, each with its parameter.
fn arguments(
    source: &Source,
    comment: Span,
    (clauses, kernel): (&Clauses, &Kernel),
    given: Vec<RawGiven>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<Given> {
    let place = clauses.place("args").unwrap_or(comment);
    // What a clause that was refused for being the second one gives is not missing.
    let whole = clauses.places.iter().filter(|(name, _)| name == "args").count() < 2;
    // What takes no value cannot be given, and then nothing can be timed: the rest tells the
    // launch.
    let cannot_time = kernel.declarations.iter().any(|declaration| takes_no_value(declaration));
    // A value that is wrong, or whose name is, may be that of the one that seems to have none.
    let is_parameter = |own: &RawGiven| kernel.parameters.iter().flatten().any(|known| *known == own.name);
    let is_sound = given.iter().all(|own| {
        own.value.is_some()
            && (is_parameter(own) || has_its_value_elsewhere(kernel, &clauses.macros, &own.name).is_some())
    });
    if whole && !cannot_time && !tells_the_launch_alone(kernel, &given) {
        problems.extend(
            without_value(kernel, &given, is_sound)
                .into_iter()
                .map(|message| source.error(MessageCode::ParameterMissing, place, message)),
        );
    }
    let of_launch = names_of_launch(clauses, &given);
    let of_launch = given.iter().filter(|own| of_launch.contains(own.name.as_str()));
    problems.extend(of_launch.filter_map(|own| beyond_its_type(source, kernel, own, &given)));
    let mut values = Vec::new();
    for RawGiven { name, span, element, value } in given {
        let Some(parameter) = kernel.parameters.iter().position(|known| known.as_deref() == Some(&name)) else {
            let why = has_its_value_elsewhere(kernel, &clauses.macros, &name)
                .map_or_else(|| suggestion(&name, names(kernel)), |why| format!(": {why}"));
            problems.push(source.error(
                MessageCode::UnknownParameter,
                span,
                format!("`{}` has no parameter `{name}`{why}", kernel.name),
            ));
            continue;
        };
        let Some(value) = value.map(|value| listed_fields(kernel, parameter, &name, value)) else { continue };
        if let GivenValue::Table(table) = &value
            && declares_scalar(kernel, parameter, &name)
        {
            problems.push(source.error(MessageCode::ArgsClause, table.span, format!("`{name}` {ONE_VALUE}")));
        }
        values.push(Given { name, span, parameter, element, value });
    }
    values
}

/// Collects the arguments that the launch, and what else is evaluated for it, follows from.
fn names_of_launch<'a>(clauses: &'a Clauses, given: &'a [RawGiven]) -> BTreeSet<&'a str> {
    let grid = clauses.grid.iter().flat_map(|grid| match &grid.value {
        Grid::Expressions(expressions) => expressions.as_slice(),
        Grid::Lists(_) => &[],
    });
    let threads = clauses.threads.iter().flat_map(|threads| &threads.value);
    let others = clauses.shared.iter().chain(&clauses.require).chain(&clauses.trips);
    let mut pending: Vec<&Expr> = threads.chain(grid).chain(others).collect();
    let mut names = BTreeSet::new();
    while let Some(expression) = pending.pop() {
        expression.names(&mut |name, _| {
            let given = given.iter().find(|given| given.name == *name);
            if names.insert(name.as_str())
                && let Some(GivenValue::Scalar(expression)) = given.and_then(|given| given.value.as_ref())
            {
                pending.push(expression);
            }
        });
    }
    names
}

/// Returns an error for a constant that an integer parameter cannot hold. The launch that
/// follows from it is not to blame.
fn beyond_its_type(source: &Source, kernel: &Kernel, own: &RawGiven, all: &[RawGiven]) -> Option<Diagnostic> {
    let Some(GivenValue::Scalar(expression)) = &own.value else { return None };
    let parameter = kernel.parameters.iter().position(|known| known.as_deref() == Some(&own.name))?;
    let kind = kernel.declarations.get(parameter)?.strip_suffix(own.name.as_str())?.trim();
    let Type::Scalar(scalar) = Type::parse_type(kind) else { return None };
    let (least, most) = scalar.integer_bounds()?;
    let value = constant(expression, all, 0).ok()?;
    let fits = value.as_integer().is_some_and(|integer| (least..=most).contains(&i128::from(integer)));
    let name = &own.name;
    let message = || match value.as_integer() {
        Some(_) => format!("`{name}` is of type `{kind}` and cannot be {value}: it holds {least} to {most}"),
        None => format!("`{name}` is of type `{kind}` and cannot be {value}: give a whole number"),
    };
    (!fits).then(|| source.error(MessageCode::WrongType, expression.span, message()))
}

/// How far arguments that follow from each other are looked through.
const MOST_STEPS: usize = 16;

/// The value of an expression over arguments that are constants.
fn constant(expression: &Expr, all: &[RawGiven], step: usize) -> Result<Value, Located> {
    expression.evaluate(&|name: &String| {
        let given = all.iter().find(|given| given.name == *name).filter(|_| step < MOST_STEPS);
        match given.and_then(|given| given.value.as_ref()) {
            Some(GivenValue::Scalar(expression)) => constant(expression, all, step + 1).map_err(|error| error.fault),
            _ => Err(Fault::NoValue(name.clone())),
        }
    })
}

/// Checks that what the `check` clause names is a buffer.
fn checked_buffers(source: &Source, clauses: &Clauses, kernel: &Kernel, problems: &mut Vec<Diagnostic>) {
    for buffer in clauses.check.iter().flat_map(|check| &check.buffers) {
        let name = &buffer.value;
        let mut found = None;
        for given in clauses.args.iter().flatten() {
            given.value.visit(given.name.clone(), &mut |path, value| {
                if path == *name {
                    found = Some(value);
                }
            });
        }
        let message = match found {
            Some(GivenValue::Buffer { .. } | GivenValue::File(_) | GivenValue::Table(_)) => continue,
            Some(GivenValue::Scalar(_) | GivenValue::Null(_) | GivenValue::Struct { .. }) => {
                format!("`{name}` is no buffer and cannot be checked: name a buffer of args(...)")
            }
            None if names(kernel).any(|known| known == name) => continue,
            None => format!("`{}` has no parameter `{name}`{}", kernel.name, suggestion(name, names(kernel))),
        };
        problems.push(source.error(MessageCode::CheckedBuffer, buffer.span, message));
    }
}

/// The names of the kernel's parameters.
fn names(kernel: &Kernel) -> impl Iterator<Item = &str> + Clone {
    kernel.parameters.iter().flatten().map(String::as_str)
}

/// Where a name that is no parameter of the kernel gets its value, if it is one that has one.
fn has_its_value_elsewhere(kernel: &Kernel, macros: &[MacroAxis], name: &str) -> Option<&'static str> {
    if kernel.template_parameters.iter().flatten().any(|parameter| parameter.name == name) {
        return Some(
            "it is one of the template, whose arguments stand in `template`, as in template(float, 4); remove it here",
        );
    }
    let is_axis = macros.iter().any(|axis| axis.name == name);
    is_axis.then_some("it is a macro of `define`, whose baseline stands in `default`; remove it here")
}

/// Whether nothing but numbers is given to a kernel that works on buffers: they say how it is
/// launched, and on what is left open.
fn tells_the_launch_alone(kernel: &Kernel, given: &[RawGiven]) -> bool {
    let is_given = |name: &String| given.iter().any(|given| given.name == *name);
    let declared = kernel.parameters.iter().zip(&kernel.declarations);
    let mut missing = declared.filter(|(name, _)| !name.as_ref().is_some_and(is_given));
    let mut numbers = true;
    for value in given.iter().flat_map(|given| &given.value) {
        value.visit(String::new(), &mut |_, value| {
            numbers &= matches!(value, GivenValue::Scalar(_) | GivenValue::Struct { .. });
        });
    }
    numbers && missing.any(|(_, declaration)| declaration.contains(['*', '[']))
}

/// What is wrong where parameters have no value. Unless the values are sound, only nameless
/// parameters are certainly without one.
fn without_value(kernel: &Kernel, given: &[RawGiven], is_sound: bool) -> Vec<String> {
    let is_given = |name: &String| given.iter().any(|given| given.name == *name);
    let named = || kernel.parameters.iter().enumerate().filter_map(|(at, name)| Some((at, name.as_ref()?)));
    let missing: Vec<&String> = named().map(|(_, name)| name).filter(|name| !is_given(name)).collect();
    let missing = match missing[..] {
        [] => None,
        [name] => {
            let at = named().find(|(_, other)| *other == name).map(|(at, _)| at);
            let declaration = at.and_then(|at| kernel.declarations.get(at));
            let how = match declaration {
                Some(text) if may_be_structure(text) => {
                    format!("; a structure takes its fields, as in `{name} = {{x = 1}}`, and `{{}}` for all 0")
                }
                Some(text) if points_to_arrays(text) => {
                    format!("; a pointer to arrays takes their numbers, as in `{name} = random[4 * 1024]`")
                }
                _ => String::new(),
            };
            Some(format!("parameter `{name}` of `{}` has no value: add `{name} = ...` to args(...){how}", kernel.name))
        }
        [ref first @ .., last] => {
            let first: Vec<String> = first.iter().map(|name| format!("`{name}`")).collect();
            let names = format!("{} and `{last}`", first.join(", "));
            Some(format!("parameters {names} of `{}` have no value: add them to args(...)", kernel.name))
        }
    };
    let declared = kernel.parameters.iter().zip(&kernel.declarations);
    let nameless = (1..).zip(declared).filter(|(_, (name, _))| name.is_none()).map(|(number, (_, declaration))| {
        let remedy = match is_like_a_macro(declaration) {
            true => format!("where `{declaration}` is a macro, write out what it stands for"),
            false => "name it, so that args(...) can give it a value".to_owned(),
        };
        format!("parameter {number} of `{}` has no name: {remedy}", kernel.name)
    });
    missing.filter(|_| is_sound).into_iter().chain(nameless).collect()
}

/// Whether a declaration is one word, in capitals as macros are.
fn is_like_a_macro(declaration: &str) -> bool {
    let is_capital = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    declaration.len() > 1 && declaration.chars().all(is_capital)
}

/// Why a list is no value of a scalar.
pub const ONE_VALUE: &str =
    "takes one value, not a list: what varies is a macro, the block, the grid or the register cap";

/// The value of a parameter, where that is one of CUDA's vectors by its declaration with its
/// fields by name: `{1, 2}` gives them in order.
fn listed_fields(kernel: &Kernel, parameter: usize, name: &str, value: GivenValue) -> GivenValue {
    let declaration = kernel.declarations.get(parameter).and_then(|declaration| declaration.strip_suffix(name));
    let fields = declaration.map(vector_fields).unwrap_or_default();
    match value {
        GivenValue::Table(GivenTable { span, values, count: None }) if values.len() <= fields.len() => {
            let field = |(name, value): (&&str, Expr)| GivenField {
                name: (*name).to_owned(),
                span: value.span,
                element: None,
                value: GivenValue::Scalar(value),
            };
            GivenValue::Struct { span, fields: fields.iter().zip(values).map(field).collect() }
        }
        value => value,
    }
}

/// Whether a parameter is a number by its declaration alone, whose types may have names that
/// only the compiler knows.
fn declares_scalar(kernel: &Kernel, parameter: usize, name: &str) -> bool {
    let declaration = kernel.declarations.get(parameter).and_then(|declaration| declaration.strip_suffix(name));
    declaration.is_some_and(|kind| matches!(Type::parse_type(kind), Type::Scalar(_)))
}

#[cfg(test)]
mod tests {
    use super::annotations;
    use crate::diag::Source;

    #[test]
    fn a_wait_for_the_whole_grid_is_seen_in_the_words_of_the_body() {
        for (body, waits) in [
            ("cg::this_grid().sync();", true),
            ("auto grid = cg::this_grid(); grid.sync();", true),
            ("const cg::grid_group g(cooperative_groups::this_grid()); if (n) { cg::sync(g); }", true),
            ("cg::sync(cg::this_grid());", true),
            ("auto g = this_grid(); auto token = g.barrier_arrive(); g.barrier_wait(token);", true),
            (
                "auto grid = cg::this_grid(); auto block = cg::this_thread_block(); block.sync(); x[grid.thread_rank()] = 0;",
                false,
            ),
            ("cg::this_thread_block().sync(); // this_grid().sync()", false),
            ("} __device__ void other() { this_grid().sync();", false),
            ("sync(", false),
            (".sync", false),
            ("", false),
        ] {
            let text = format!(
                "//@tune threads(n) block({{64, 128}}) default(block = 64)\n__global__ void k(int n, float *x) {{ {body} }}\n"
            );
            let found = annotations(&Source::new("k.cu".to_owned(), text.as_bytes()));
            let found = found.unwrap_or_else(|problems| panic!("{problems:?}"));
            assert_eq!(found[0].kernel.waits_for_grid, waits, "{body}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_code_before_the_first_comment() {
        for mark in ["", "\u{feff}"] {
            let text = format!("{mark}//@tune threads(n) block(auto)\n__global__ void k(int n) {{}}\n");
            let source = Source::new("a.cu", text.as_bytes());
            let found = annotations(&source).unwrap_or_else(|problems| panic!("{problems:?}"));
            assert_eq!((found.len(), source.text.starts_with("//@")), (1, true));
        }
    }
}
