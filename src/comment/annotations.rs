//! A source -> the tuning comments in it, each with its kernel.
//!
//! A tuning comment begins its line; it is one `/*@tune ... */` or as many `//@tune` lines as
//! stand before the next code. Either every comment of the file is good, or all that is wrong
//! with all of them is reported.

use super::alternatives::{Conditions, clashes};
use super::annotation::{Annotation, Block, Clauses, GivenSymbol, MacroAxis, Power, Spanned};
use super::block_of_macros;
use super::clause::clauses;
use super::constants::Constants;
use super::given_arguments::{assign_arguments, checked_buffers};
use super::lexer::{Token, TokenKind, tokens};
use super::marker::{is_marked, opening};
use super::named_constants;
use super::parsed::Parsed;
use super::parsed::RawInstance;
use super::symbol_clause;
use super::template_clause;
use super::template_parameters;
use super::value::Value;
use crate::cuda::Kernel;
use crate::cuda::enclosing_namespaces::enclosing_namespaces;
use crate::cuda::kernel::find_kernel;
use crate::cuda::tokens::{CxxKind, CxxToken, cxx_tokens};
use crate::diag::{Diagnostic, MessageCode, suggestion};
use crate::diag::{Source, Span};
use std::cell::OnceCell;
use std::collections::HashSet;
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
        (Some(_), None) if !template_clause::has_no_parameters(source, &annotation.kernel) => return vec![annotation],
        // A specialization whose arguments follow from its parameters.
        (Some(_), None) => {
            let message = format!("`{name}` is a specialization: say of which instance, as in template(float, 16)");
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
    for (index, raw) in instances.into_iter().enumerate() {
        let instance = raw.resolve(&annotation, &asked, known.constants);
        let mut annotation = annotation.clone();
        template_parameters::give(&mut annotation, Some(&instance), problems);
        annotation.text = without_other_instances(&annotation.text, index);
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
    let before_comment = code.partition_point(|token| token.span.start < first.start);
    // Which parameters there are depends on the names that the comment gives values, and what other
    // names are on the parameters.
    let named = clauses(source, &tokens, marker, &mut Vec::new());
    let given: Vec<&str> = named.args.iter().flatten().map(|given| given.name.as_str()).collect();
    let kernel = find_kernel(source, &code[..before_comment], &code[range], &given, &|| constants.around(), marker);
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
    let mut kernel = kernel.map_err(|problem| problems.push(problem)).ok()?;
    kernel.namespaces = enclosing_namespaces(source, &code[..before_comment]);
    let text = tokens.iter().map(|token| source.slice(token.span)).collect::<Vec<_>>().join(" ");
    if sound {
        absences(source, marker, &parsed, &kernel, problems);
        infer_macro_defaults(&mut parsed.clauses, known.constants);
    }
    let instances = std::mem::take(&mut parsed.instances);
    let named = parsed.name.is_some();
    let annotation = assemble(source, marker, text, parsed, kernel, problems);
    Some((Annotation { powers: powers(source, &tokens), constants, ..annotation }, instances, named))
}

/// A comment's text, its tokens between blanks, without the `template` clauses but one: what is
/// chosen for an instance stays where others come and go.
fn without_other_instances(text: &str, own: usize) -> String {
    let (mut kept, mut clauses, mut depth, mut is_other) = (Vec::new(), 0, 0usize, false);
    for word in text.split(' ') {
        if depth == 0 {
            let is_template = word == "template";
            is_other = is_template && clauses != own || is_other && word == "(";
            clauses += usize::from(is_template);
        }
        if !is_other {
            kept.push(word);
        }
        match word {
            "(" => depth += 1,
            ")" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    kept.join(" ")
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
/// clause is not also absent. A comment without `args` leaves all to what the program records.
fn absences(source: &Source, comment: Span, parsed: &Parsed, kernel: &Kernel, problems: &mut Vec<Diagnostic>) {
    let Parsed { clauses, args, .. } = parsed;
    if args.is_some() && clauses.threads.is_none() && clauses.grid.is_none() {
        let message = format!("the grid of `{}` is not known: add threads(...) or grid(...)", kernel.name);
        problems.push(source.error(MessageCode::GridUnknown, comment, message));
    }
    if args.is_some() && clauses.block.is_none() && clauses.default.block.is_none() {
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
    if args.is_none() && clauses.block.is_none() && clauses.default.block.is_none() {
        clauses.block = Some(Spanned { value: Block::Auto, span: comment });
    }
    clauses.args = args.map(|given| assign_arguments(source, comment, (&clauses, &kernel), given, problems));
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
        inferred: None,
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

#[cfg(test)]
mod tests {
    use super::annotations;
    use crate::cuda::Kernel;
    use crate::diag::Source;

    /// A marked kernel with this body.
    fn kernel_of(body: &str) -> Kernel {
        let text = format!("//@tune threads(n) block(auto)\n__global__ void k(int n, float *x) {{ {body} }}\n");
        let found = annotations(&Source::new("k.cu".to_owned(), text.as_bytes()));
        found.unwrap_or_else(|problems| panic!("{problems:?}")).swap_remove(0).kernel
    }

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
            assert_eq!(kernel_of(body).waits_for_grid, waits, "{body}");
        }
    }

    #[test]
    fn a_kernel_may_take_any_grid_unless_that_is_only_the_pitch_of_its_blocks() {
        for (body, takes_any) in [
            ("for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] = 0;", true),
            ("for (int row = blockIdx.x; row < n; row += gridDim.x) x[row] = 0;", true),
            ("x[blockIdx.y * gridDim.x + blockIdx.x] = 0;", false),
            ("x[(blockIdx.x + gridDim.x * blockIdx.y) * blockDim.x + threadIdx.x] = 0;", false),
            (
                "const int of = blockIdx.y * gridDim.x + blockIdx.x, step = gridDim.x * gridDim.y; x[of + step] = 0;",
                true,
            ),
            ("x[blockIdx.x * gridDim.x + threadIdx.x] = 0;", true),
            ("x[blockIdx.x] = 0;", false),
            ("gridDim", true),
        ] {
            assert_eq!(kernel_of(body).may_take_any_grid, takes_any, "{body}");
        }
    }

    #[test]
    fn a_tile_is_fixed_where_a_kernel_numbers_blocks_and_names_no_block_size() {
        for (body, is_fixed) in [
            ("for (int i = threadIdx.x; i < 4096; i += 128) x[blockIdx.x * 4096 + i] = 0;", true),
            ("x[blockIdx.x * blockDim.x + threadIdx.x] = 0;", false),
            ("x[own_index()] = 0;", false),
            (
                "auto tile = cg::tiled_partition<32>(cg::this_thread_block()); x[blockIdx.x * 8 + tile.meta_group_rank()] = 0;",
                false,
            ),
        ] {
            assert_eq!(kernel_of(body).has_fixed_tile, is_fixed, "{body}");
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

    #[test]
    fn text_of_an_instance_has_its_own_template_clause_alone() {
        let text = "threads ( n ) template ( Pair < int , ( 2 ) > ) block ( 64 ) template ( float ) regs ( auto )";
        for (own, expected) in [
            (0, "threads ( n ) template ( Pair < int , ( 2 ) > ) block ( 64 ) regs ( auto )"),
            (1, "threads ( n ) block ( 64 ) template ( float ) regs ( auto )"),
        ] {
            assert_eq!(super::without_other_instances(text, own), expected);
        }
    }
}
