//! A kernel, its launches in the text -> the lines of its tuning comment.

use super::arguments::{Arguments, LaunchedParameter, arguments, integer_text, numbers, threads};
use super::instance::{instance, is_of_instance, template_arguments};
use super::proposed::Basis;
use super::subject::{Subject, no_launch};
use crate::comment::{Binary, Expr, Node};
use crate::cuda::{EvaluatedLaunch, Kernel, ParameterKind, takes_no_value};
use crate::diag::Span;
use crate::launch::Dim3;
use crate::recording::{InferredGrid, KernelHints, KnownLaunch, infer_grid};
use crate::space::{Limits, MAX_GRID};

/// What names without a value are taken for, the first that gives a launch of bounded size: one
/// name may be the size of a problem of one dimension.
const ASSUMPTIONS: [i64; 5] = [1 << 20, 1024, 256, 64, 16];

/// The most bytes of all buffers with assumed sizes.
const MOST_BYTES: i64 = 1 << 29;

/// The most threads of a launch of assumed size.
const MOST_THREADS: i64 = 1 << 26;

/// Dynamic shared memory for each thread up to which it is taken for a multiple of the block.
const MOST_SHARED_OF_THREAD: i64 = 128;

/// What is before the values of a list.
const INDENT: usize = 13;

/// The columns of a comment's lines.
const COLUMNS: usize = 100;

/// The lines of a kernel's comment, without indentation.
///
/// # Errors
/// Why it gets none.
pub(super) fn proposed_lines(subject: &Subject<'_>, is_recorded: bool) -> Result<(Vec<String>, Basis), String> {
    let Subject { source, program, listed, .. } = *subject;
    let reads = program.reads_block(&source.path, listed.body.clone());
    if is_recorded {
        let block = reads[0].then(|| "block(auto)".to_owned());
        let clauses: Vec<String> = block.into_iter().chain(["regs(auto)".to_owned()]).collect();
        return Ok((tune_lines(&clauses), Basis::Recording));
    }
    let instance = instance(subject)?;
    let mut parameters = parameters(subject)?;
    let launches = launches(subject, &parameters)?;
    let launch = &launches[0];
    let no_grid = || {
        let remedy = "write //@tune block(auto), and build with NVTUNE=capture";
        format!("the grid of its launch in line {} of '{}' is not found: {remedy}", launch.line, launch.path)
    };
    let (_, block) = launch_shape(launch).filter(|_| !launch.is_grid_assumed).ok_or_else(no_grid)?;
    let given = arguments(source, program, listed, &parameters, launch);
    let (values, reason) = match given {
        Ok(given) if !given.values.is_empty() => (Some(given), String::new()),
        Ok(_) => (None, "it has no parameters".to_owned()),
        Err(reason) => (None, reason),
    };
    // Without a workload a structure has no value.
    if values.is_none() {
        parameters.iter_mut().for_each(|parameter| parameter.fields.clear());
    }
    // Numbers that nothing varies give a grid by chance.
    let may_name = values.is_some() || launch.variation.is_some() && may_lack_values(&listed.kernel);
    let hints = KernelHints { has_fixed_tile: listed.kernel.has_fixed_tile, may_take_any_grid: false };
    let (shape, sizes) = grid_clause(&parameters, &launches, may_name, &hints);
    let is_named = numbers(&parameters, launch).iter().any(|(name, _)| has_word(&shape.text, name));
    // A guess that no argument gives is the grid of no launch.
    if values.is_none() && !is_named && !launch.assumed.is_empty() {
        return Err(no_grid());
    }
    let mut clauses = vec![shape.text];
    clauses.extend(instance);
    let unread: Vec<usize> = (0..shape.dimensions).filter(|&at| !reads[at]).collect();
    let fixed = unread.iter().find(|&&at| at == 0 || block[at] > 1).map(|&at| EXTENTS[at]);
    match fixed {
        None => {
            clauses.push("block(auto)".to_owned());
            let conditions: Vec<String> = unread.iter().map(|&at| format!("block.{} == 1", EXTENTS[at])).collect();
            clauses.extend((!conditions.is_empty()).then(|| format!("require({})", conditions.join(" && "))));
        }
        Some(extent) if launch.is_block_assumed => {
            return Err(format!("it does not read blockDim.{extent}, and the block of its launch is not found"));
        }
        Some(_) => {}
    }
    clauses.push("regs(auto)".to_owned());
    let mut guesses: Vec<String> = Vec::new();
    match launch.shared {
        Some(0) => {}
        Some(bytes) => clauses.push(shared_text(bytes, block)),
        None => guesses.push("dynamic shared memory (none)".to_owned()),
    }
    if launch.is_block_assumed {
        guesses.push(format!("the block ({})", block_text(block)));
    } else {
        clauses.push(format!("default(block = {})", block_text(block)));
    }
    if launch.is_cooperative {
        clauses.push("launch(cooperative)".to_owned());
    }
    guesses.extend(launch.assumed.iter().map(|(name, value)| format!("{name} = {value}")));
    let fixed = fixed.map(|extent| format!("One block: it does not read blockDim.{extent}."));
    let mut lines = Vec::new();
    if let Some(Arguments { values, guesses: of_values }) = values {
        guesses.extend(of_values);
        lines.extend(guess_lines(&guesses));
        lines.extend(fixed.iter().flat_map(|text| remark_lines(text)));
        lines.extend(tune_lines(&clauses));
        lines.extend(list_lines("args(", &values));
        return Ok((lines, Basis::Workload));
    }
    lines.extend(guess_lines(&guesses));
    lines.extend(fixed.iter().flat_map(|text| remark_lines(text)));
    let clause = if sizes.is_empty() { "threads(...) or grid(...)" } else { "args(...)" };
    let remedy = format!("To record one, remove {clause}, and build with NVTUNE=capture.");
    lines.extend(remark_lines(&format!("No workload: {reason}. {remedy}")));
    lines.extend(tune_lines(&clauses));
    if !sizes.is_empty() {
        lines.extend(list_lines("args(", &sizes));
    }
    let is_unknown = parameters.iter().any(|parameter| parameter.kind.is_unknown());
    Ok((lines, if is_unknown { Basis::UnknownType } else { Basis::Launch }))
}

/// The names of dimensions.
const EXTENTS: [&str; 3] = ["x", "y", "z"];

/// A `threads` or `grid` clause, and in how many dimensions `block(auto)` varies with it.
struct GridClause {
    text: String,
    dimensions: usize,
}

/// The clause that gives the grid of the first launch, and the values of the arguments in it.
fn grid_clause(
    parameters: &[LaunchedParameter],
    launches: &[EvaluatedLaunch],
    may_name: bool,
    hints: &KernelHints,
) -> (GridClause, Vec<String>) {
    let launch = &launches[0];
    let of = |launch: &EvaluatedLaunch| {
        // Other numbers may give a grid that no GPU launches.
        let (grid, block) = extents(launch.grid?).zip(extents(launch.block?))?;
        // 0 and 1 give too many grids by chance.
        let arguments = if may_name { numbers(parameters, launch) } else { Vec::new() };
        let arguments = arguments.into_iter().filter(|(_, value)| *value > 1).collect();
        Some(KnownLaunch { grid, block, arguments, members: Vec::new() })
    };
    let alike = launches.iter().filter(|other| other.block == launch.block && other.assumed.is_empty());
    let own = if launch.assumed.is_empty() { None } else { Some(launch) };
    let mut known: Vec<KnownLaunch> = own.into_iter().chain(alike).filter_map(of).collect();
    let (grid, block) = launch_shape(launch).unwrap_or(([1; 3], [1; 3]));
    let variation = launch.variation.as_deref().filter(|other| other.block == launch.block);
    match variation.and_then(of) {
        // No argument gives this grid.
        Some(other) if other.grid == grid && known.len() == 1 => known.iter_mut().for_each(|one| one.arguments.clear()),
        Some(other) => known.insert(1.min(known.len()), other),
        None => {}
    }
    let clause = inferred_text(&known, hints, (grid, block));
    let given = numbers(parameters, launch).into_iter().filter(|(name, _)| has_word(&clause.text, name));
    let sizes = given.map(|(name, value)| format!("{name} = {}", integer_text(value))).collect();
    (clause, sizes)
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'))).any(|own| own == word)
}

/// Whether `args` may give numbers alone, of which the launch follows.
fn may_lack_values(kernel: &Kernel) -> bool {
    kernel.declarations.iter().any(|declaration| declaration.contains(['*', '[']) || takes_no_value(declaration))
}

/// The parameters with their types, in which names of the template's parameters are replaced.
fn parameters(subject: &Subject<'_>) -> Result<Vec<LaunchedParameter>, String> {
    let Subject { source, program, .. } = subject;
    let kernel = &subject.listed.kernel;
    let given = template_arguments(subject)?.unwrap_or_default();
    let names = kernel.template_parameters.iter().map(|of| of.as_ref().map_or("", |of| of.name.as_str()));
    let instance: Vec<(&str, &String)> = names.zip(&given).collect();
    let one = |(name, declaration): (&Option<String>, &String)| {
        let name = name.clone()?;
        let before_default = declaration.split(" = ").next().unwrap_or(declaration);
        let (head, array) = before_default.split_once('[').unwrap_or((before_default, ""));
        let kind = head.trim_end().strip_suffix(name.as_str()).unwrap_or(head);
        let kind = if array.is_empty() { kind.to_owned() } else { format!("{kind} *") };
        let kind: Vec<&str> = kind
            .split_whitespace()
            .map(|word| instance.iter().find(|(own, _)| *own == word).map_or(word, |(_, argument)| argument))
            .collect();
        Some(LaunchedParameter::new(program, &source.path, name, &kind.join(" ")))
    };
    let all: Option<Vec<LaunchedParameter>> = kernel.parameters.iter().zip(&kernel.declarations).map(one).collect();
    all.ok_or_else(|| "one of its parameters has no name".to_owned())
}

/// The launches of a kernel, the one that is best known first. Where its own file launches it,
/// those alone: another file may have a kernel of the same name.
fn launches(subject: &Subject<'_>, parameters: &[LaunchedParameter]) -> Result<Vec<EvaluatedLaunch>, String> {
    let Subject { source, program, listed, counts, .. } = subject;
    let kernel = &listed.kernel;
    let kinds: Vec<ParameterKind> = parameters.iter().map(|parameter| parameter.kind.clone()).collect();
    let mut last = Vec::new();
    for assumption in ASSUMPTIONS {
        let mut launches = program.evaluated_launches(&kernel.name, counts, &kinds, assumption);
        launches.retain(|launch| is_of_instance(subject, launch));
        if launches.iter().any(|launch| launch.path == source.path) {
            launches.retain(|launch| launch.path == source.path);
        }
        let unknown = |launch: &EvaluatedLaunch| {
            let open = kinds.iter().zip(&launch.arguments).filter(|(kind, argument)| match kind {
                ParameterKind::Pointer => argument.buffer.is_none() && !argument.is_null,
                _ => false,
            });
            launch.assumed.len() + open.count() + usize::from(launch.is_block_assumed)
        };
        launches.sort_by_key(|launch| {
            let is_unknown = launch_shape(launch).is_none() || launch.is_grid_assumed;
            (is_unknown, unknown(launch), std::cmp::Reverse(threads(launch)))
        });
        let Some(first) = launches.first() else { return Err(no_launch(subject)) };
        let bytes = first.arguments.iter().filter_map(|argument| argument.buffer);
        let bytes = bytes.fold(0_i64, |sum, buffer| sum.saturating_add(buffer.bytes));
        // Several names that are multiplied are no size each.
        let is_shape = launch_shape(first).is_some() && !first.is_grid_assumed;
        let is_bounded = first.assumed.is_empty() || is_shape && bytes <= MOST_BYTES && threads(first) <= MOST_THREADS;
        let is_usual = assumption <= 1024 || first.assumed.len() <= 1;
        last = launches;
        if is_bounded && is_usual {
            break;
        }
    }
    Ok(last)
}

fn extents(values: [i64; 3]) -> Option<Dim3> {
    let mut extents = [0; 3];
    for (extent, value) in extents.iter_mut().zip(values) {
        *extent = u32::try_from(value).ok().filter(|extent| *extent > 0)?;
    }
    Some(extents)
}

/// Grid and block of a launch that a GPU can do.
fn launch_shape(launch: &EvaluatedLaunch) -> Option<(Dim3, Dim3)> {
    let (grid, block) = (extents(launch.grid?)?, extents(launch.block?)?);
    let fits = grid.iter().zip(MAX_GRID).all(|(extent, most)| *extent <= most);
    (fits && Limits::default().allows(block)).then_some((grid, block))
}

/// The `threads` or `grid` clause of known launches.
fn inferred_text(known: &[KnownLaunch], hints: &KernelHints, (grid, block): (Dim3, Dim3)) -> GridClause {
    let clause = |name: &str, extents: &[String], dimensions| GridClause {
        text: format!("{name}({})", extents.join(", ")),
        dimensions,
    };
    let texts = |expressions: &[Expr]| expressions.iter().map(written).collect::<Vec<_>>();
    match infer_grid(known, hints, Span { start: 0, end: 0 }) {
        Some(InferredGrid::Threads(threads)) => clause("threads", &texts(&threads), threads.len()),
        Some(InferredGrid::Blocks(blocks)) => {
            let dimensions = 3 - block.iter().rev().take_while(|extent| **extent == 1).count();
            clause("grid", &texts(&blocks), dimensions.max(1))
        }
        None => {
            let threads = grid.iter().zip(block).map(|(blocks, threads)| i64::from(*blocks) * i64::from(threads));
            let threads: Vec<String> = threads.map(integer_text).collect();
            clause("threads", &threads, threads.len())
        }
    }
}

fn written(expression: &Expr) -> String {
    let factors = factors(expression).filter(|factors| factors.len() > 1);
    let text = factors.map_or_else(|| expression.unparenthesized(), |factors| factors.join(" * "));
    text.parse().map_or(text, integer_text)
}

/// The names and numbers that a product is of, which needs no parentheses; `None` if it is of
/// other expressions.
fn factors(expression: &Expr) -> Option<Vec<String>> {
    match &expression.node {
        Node::Binary(Binary::Multiply, _, left, right) => Some([factors(left)?, factors(right)?].concat()),
        Node::Value(_) | Node::Name(_) => Some(vec![expression.to_string()]),
        _ => None,
    }
}

/// Dynamic shared memory: in proportion to the block if it is a small multiple of it.
fn shared_text(bytes: i64, block: Dim3) -> String {
    let threads = block.iter().map(|&extent| i64::from(extent)).product::<i64>().max(1);
    match bytes / threads {
        of_thread if bytes % threads == 0 && of_thread <= MOST_SHARED_OF_THREAD => {
            format!("shared(block.size * {of_thread})")
        }
        _ => format!("shared({})", integer_text(bytes)),
    }
}

fn block_text(block: Dim3) -> String {
    match block {
        [x, 1, 1] => x.to_string(),
        [x, y, 1] => format!("{{{x}, {y}}}"),
        [x, y, z] => format!("{{{x}, {y}, {z}}}"),
    }
}

/// Clauses as `//@tune` lines.
fn tune_lines(clauses: &[String]) -> Vec<String> {
    wrap_clauses("//@tune ", "//@tune ", clauses.iter().map(String::as_str), " ")
}

/// A clause with a list over as many lines as it takes.
fn list_lines(opening: &str, values: &[String]) -> Vec<String> {
    let last = values.len().saturating_sub(1);
    let closed: Vec<String> = values
        .iter()
        .enumerate()
        .map(|(at, value)| if at == last { format!("{value})") } else { format!("{value},") })
        .collect();
    // Of a structure that is longer than a line the fields are on several.
    let parts = closed.iter().flat_map(|value| match value.chars().count() + INDENT > COLUMNS {
        true => value.split_inclusive(", ").map(str::trim_end).collect(),
        false => vec![value.as_str()],
    });
    wrap_clauses(&format!("//@tune {opening}"), "//@tune      ", parts, " ")
}

/// The remark that lists what is a guess.
fn guess_lines(guesses: &[String]) -> Vec<String> {
    if guesses.is_empty() {
        return Vec::new();
    }
    remark_lines(&format!("Guesses of nvtune init: {}.", guesses.join(", ")))
}

/// A remark over as many lines as it takes, which is no part of the tuning comment.
fn remark_lines(text: &str) -> Vec<String> {
    wrap_clauses("// ", "// ", text.split(' '), " ")
}

/// Fills lines with parts; the first begins with `first`, the others with `next`.
fn wrap_clauses<'t>(first: &str, next: &str, parts: impl Iterator<Item = &'t str>, between: &str) -> Vec<String> {
    let mut lines = vec![first.to_owned()];
    let mut is_empty = true;
    for part in parts {
        let Some(line) = lines.last_mut() else { break };
        if is_empty {
            line.push_str(part);
        } else if line.chars().count() + between.len() + part.chars().count() <= COLUMNS {
            line.push_str(between);
            line.push_str(part);
        } else {
            lines.push(format!("{next}{part}"));
        }
        is_empty = false;
    }
    lines
}
