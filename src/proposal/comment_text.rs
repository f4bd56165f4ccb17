//! A kernel, its launches in the text -> the lines of its tuning comment.

use super::arguments::{Arguments, LaunchedParameter, arguments, integer_text, numbers, threads};
use super::proposed::Basis;
use crate::comment::Expr;
use crate::cuda::{EvaluatedLaunch, HostProgram, Kernel, ListedKernel, ParameterKind};
use crate::diag::{Source, Span};
use crate::launch::Dim3;
use crate::recording::{InferredGrid, KnownLaunch, infer_grid};
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

/// The columns of a comment's lines.
const COLUMNS: usize = 100;

/// The lines of a kernel's comment, without indentation.
///
/// # Errors
/// Why it gets none.
pub(super) fn proposed_lines(
    source: &Source,
    program: &HostProgram,
    listed: &ListedKernel,
    is_recorded: bool,
) -> Result<(Vec<String>, Basis), String> {
    let kernel = &listed.kernel;
    let instance = instance(program, kernel)?;
    if is_recorded {
        let clauses = [instance, Some("block(auto)".to_owned()), Some("regs(auto)".to_owned())];
        return Ok((tune_lines(&clauses.into_iter().flatten().collect::<Vec<_>>()), Basis::Recording));
    }
    let parameters = parameters(source, program, kernel)?;
    let launches = launches(source, program, kernel, &parameters)?;
    let launch = &launches[0];
    let Some((grid, block)) = launch_shape(launch) else {
        return Err(format!("the grid of its launch in line {} of '{}' is not found", launch.line, launch.path));
    };
    let given = arguments(source, program, listed, &parameters, launch);
    let (is_complete, reason) = match &given {
        Ok(given) => (!given.values.is_empty(), "it has no parameters".to_owned()),
        Err(reason) => (false, reason.clone()),
    };
    let of = |launch: &EvaluatedLaunch| {
        let (grid, block) = launch_shape(launch)?;
        // 0 and 1 give too many grids by chance.
        let arguments = if is_complete { numbers(&parameters, launch) } else { Vec::new() };
        let arguments = arguments.into_iter().filter(|(_, value)| *value > 1).collect();
        Some(KnownLaunch { grid, block, arguments })
    };
    let alike = launches.iter().filter(|other| other.block == launch.block && other.assumed.is_empty());
    let own = if launch.assumed.is_empty() { None } else { Some(launch) };
    let mut known: Vec<KnownLaunch> = own.into_iter().chain(alike).filter_map(of).collect();
    let variation = launch.variation.as_deref().filter(|other| other.block == launch.block);
    match variation.and_then(of) {
        // No argument gives this grid.
        Some(other) if other.grid == grid && known.len() == 1 => known.iter_mut().for_each(|one| one.arguments.clear()),
        Some(other) => known.insert(1.min(known.len()), other),
        None => {}
    }
    let mut clauses = vec![inferred_text(&known, grid, block)];
    clauses.extend([instance, Some("block(auto)".to_owned()), Some("regs(auto)".to_owned())].into_iter().flatten());
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
    if launch.is_grid_assumed {
        guesses.push(format!("the grid ({})", block_text(grid)));
    }
    if launch.is_cooperative {
        clauses.push("launch(cooperative)".to_owned());
    }
    guesses.extend(launch.assumed.iter().map(|(name, value)| format!("{name} = {value}")));
    let mut lines = Vec::new();
    if let Ok(Arguments { values, guesses: of_values }) = given
        && is_complete
    {
        guesses.extend(of_values);
        lines.extend(guess_lines(&guesses));
        lines.extend(tune_lines(&clauses));
        lines.extend(list_lines("args(", &values));
        return Ok((lines, Basis::Workload));
    }
    lines.extend(guess_lines(&guesses));
    lines.extend(remark_lines(&format!(
        "No workload: {reason}. To record one, remove threads(...) or grid(...), and build with NVTUNE=capture."
    )));
    lines.extend(tune_lines(&clauses));
    let is_unknown = parameters.iter().any(|parameter| parameter.kind.is_unknown());
    Ok((lines, if is_unknown { Basis::UnknownType } else { Basis::Launch }))
}

/// The `template` clause of a template, by its first launch.
fn instance(program: &HostProgram, kernel: &Kernel) -> Result<Option<String>, String> {
    Ok(template_arguments(program, kernel)?.map(|arguments| format!("template({})", arguments.join(", "))))
}

/// The template arguments of a kernel's first launch that tells them; `None` if it is no
/// template.
fn template_arguments(program: &HostProgram, kernel: &Kernel) -> Result<Option<Vec<String>>, String> {
    if kernel.template.is_none() || kernel.arguments.is_some() {
        return Ok(None);
    }
    let launches = program.evaluated_launches(&kernel.name, &[], 1);
    if launches.is_empty() {
        return Err(no_launch(program, &kernel.name));
    }
    let whole = launches.iter().find_map(|launch| {
        let arguments: Option<Vec<String>> = launch.template_arguments.iter().cloned().collect();
        arguments.filter(|arguments| !arguments.is_empty())
    });
    let deduced = || {
        let types = program.argument_types(&kernel.name);
        let of = |parameter: &Option<crate::cuda::TemplateParameter>| {
            let name = parameter.as_ref().filter(|parameter| parameter.is_type)?.name.as_str();
            let declared = kernel.declarations.iter().zip(&types);
            declared.into_iter().find_map(|(declaration, kind)| deduced_type(name, declaration, kind.as_deref()?))
        };
        let all: Option<Vec<String>> = kernel.template_parameters.iter().map(of).collect();
        all.filter(|all| !all.is_empty())
    };
    let missing = || {
        let names = kernel.template_parameters.iter().flatten().map(|parameter| format!("`{}`", parameter.name));
        let names: Vec<String> = names.collect();
        format!("its launches do not tell its template arguments {}", names.join(", "))
    };
    whole.or_else(deduced).map(Some).ok_or_else(missing)
}

/// What a type parameter is, by a parameter `T *x` and the type of its argument.
fn deduced_type(name: &str, declaration: &str, argument: &str) -> Option<String> {
    let words: Vec<&str> = declaration.split_whitespace().collect();
    let is_plain = words.contains(&name) && !declaration.contains(['<', '(', '&']);
    let stars = declaration.matches('*').count() + usize::from(declaration.contains('['));
    let stem = argument.trim().trim_end_matches(['*', ' ']);
    let pointed = argument.matches('*').count();
    (is_plain && stars == pointed && !stem.is_empty() && !stem.contains("auto")).then(|| stem.trim().to_owned())
}

/// The parameters with their types, in which names of the template's parameters are replaced.
fn parameters(source: &Source, program: &HostProgram, kernel: &Kernel) -> Result<Vec<LaunchedParameter>, String> {
    let given = template_arguments(program, kernel)?.unwrap_or_default();
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
        let kind = kind.join(" ");
        let kind_text = program.parameter_type(&source.path, &kind);
        Some(LaunchedParameter { name, kind: program.parameter_kind(&source.path, &kind), kind_text })
    };
    let all: Option<Vec<LaunchedParameter>> = kernel.parameters.iter().zip(&kernel.declarations).map(one).collect();
    all.ok_or_else(|| "one of its parameters has no name".to_owned())
}

/// The launches of a kernel, the one that is best known first. Where its own file launches it,
/// those alone: another file may have a kernel of the same name.
fn launches(
    source: &Source,
    program: &HostProgram,
    kernel: &Kernel,
    parameters: &[LaunchedParameter],
) -> Result<Vec<EvaluatedLaunch>, String> {
    let kinds: Vec<ParameterKind> = parameters.iter().map(|parameter| parameter.kind.clone()).collect();
    let mut last = Vec::new();
    for assumption in ASSUMPTIONS {
        let mut launches = program.evaluated_launches(&kernel.name, &kinds, assumption);
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
        let Some(first) = launches.first() else { return Err(no_launch(program, &kernel.name)) };
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

fn no_launch(program: &HostProgram, kernel: &str) -> String {
    match program.is_launched_by_device(kernel) {
        true => "only device code launches it".to_owned(),
        false => "no launch of it is found in host code".to_owned(),
    }
}

/// Grid and block of a launch that a GPU can do.
fn launch_shape(launch: &EvaluatedLaunch) -> Option<(Dim3, Dim3)> {
    let extents = |values: [i64; 3]| -> Option<Dim3> {
        let mut extents = [0; 3];
        for (extent, value) in extents.iter_mut().zip(values) {
            *extent = u32::try_from(value).ok().filter(|extent| *extent > 0)?;
        }
        Some(extents)
    };
    let (grid, block) = (extents(launch.grid?)?, extents(launch.block?)?);
    let fits = grid.iter().zip(MAX_GRID).all(|(extent, most)| *extent <= most);
    (fits && Limits::default().allows(block)).then_some((grid, block))
}

/// The `threads` or `grid` clause.
fn inferred_text(known: &[KnownLaunch], grid: Dim3, block: Dim3) -> String {
    let list = |expressions: &[Expr]| expressions.iter().map(written).collect::<Vec<_>>().join(", ");
    match infer_grid(known, Span { start: 0, end: 0 }) {
        Some(InferredGrid::Threads(threads)) => format!("threads({})", list(&threads)),
        Some(InferredGrid::Blocks(blocks)) => format!("grid({})", list(&blocks)),
        None => {
            let threads = grid.iter().zip(block).map(|(blocks, threads)| i64::from(*blocks) * i64::from(threads));
            let threads: Vec<String> = threads.map(integer_text).collect();
            format!("threads({})", threads.join(", "))
        }
    }
}

fn written(expression: &Expr) -> String {
    let text = expression.unparenthesized();
    text.parse().map_or(text, integer_text)
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
    wrap_clauses(&format!("//@tune {opening}"), "//@tune      ", closed.iter().map(String::as_str), " ")
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
