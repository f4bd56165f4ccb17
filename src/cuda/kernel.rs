//! C++ tokens after a tuning comment -> the `__global__` function that follows it.
//!
//! No C++ parser: what is needed is the function's name, the names of its parameters and
//! whether it is a template or has launch bounds. Types come from the compiler later (see
//! `workload::entry`).

use super::block_reads::names_block_size;
use super::brackets;
use super::brackets::Depth;
use super::conditionals;
use super::macros;
use super::parameter_list::{ParameterList, best_list, declared_name, defined_parameters, is_type_word};
use super::tokens::{CxxKind, CxxToken, member_dimension};
use crate::diag::Diagnostic;
use crate::diag::{MessageCode, Source, Span};

/// Tells whether a declaration is of a parameter pack (`T ... x`), and not of one parameter whose
/// type has a pack's arguments (`Tuple < T ... > x`).
fn is_pack(declaration: &str) -> bool {
    declaration
        .split_once(PACK)
        .is_some_and(|(before, _)| before.matches(['<', '(']).count() == before.matches(['>', ')']).count())
}

/// The dots of a parameter pack in a declaration with even blanks.
const PACK: &str = ". . .";

/// A kernel as its source declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    pub name: String,
    /// The place of the name.
    pub span: Span,
    /// 1-based line of the name.
    pub line: u32,
    /// Names of the parameters in order; `None` for one without a name.
    pub parameters: Vec<Option<String>>,
    /// Their declarations as written, with even blanks.
    pub declarations: Vec<String>,
    /// All lists that the branches of `#if` make of the parameters; empty where none stands
    /// among them.
    pub alternatives: Vec<ParameterList>,
    /// The word `template` of a template.
    pub template: Option<Span>,
    /// The template's parameters in order, as far as they are known; `None` for a template,
    /// and for one without a name.
    pub template_parameters: Vec<Option<TemplateParameter>>,
    /// The namespaces around it, from the outermost, without those that have no name.
    pub namespaces: Vec<String>,
    /// What stands between the angle brackets behind the name of an explicit specialization
    /// (`template <> ... k<float>(...)`).
    pub arguments: Option<Span>,
    /// Whether its body waits for the whole grid, as far as its words tell
    /// (`this_grid().sync()`): what a header goes by where the kernel is not compiled.
    pub waits_for_grid: bool,
    /// Whether its body names `gridDim` other than as the pitch of a block's number
    /// (`blockIdx.y * gridDim.x`), as grid-stride loops do.
    pub may_take_any_grid: bool,
    /// Whether its body names `blockIdx` and never the size of the block, as `blockDim` or by a
    /// cooperative group: what a block works on has a size that does not depend on its threads.
    pub has_fixed_tile: bool,
    /// The dimensions of `threadIdx` and `blockDim` that its body names. All of them if it names
    /// one as a whole, or none at all: then what it calls may read any.
    pub named_dimensions: [bool; 3],
}

impl Kernel {
    /// Puts the parameters that an instance with this many template arguments has in place of a
    /// parameter pack. A pack of one keeps its name.
    pub(crate) fn expand_pack(&mut self, arguments: usize) {
        let (Some(at), Some(length)) = (
            self.declarations.iter().position(|declaration| is_pack(declaration)),
            arguments.checked_sub(self.template_parameters.len()),
        ) else {
            return;
        };
        if length != 1 {
            let kind = self.declarations[at].split(PACK).next().unwrap_or_default().trim_end().to_owned();
            self.parameters.splice(at..=at, std::iter::repeat_n(None, length));
            self.declarations.splice(at..=at, std::iter::repeat_n(kind, length));
        }
    }

    /// Whether a parameter stands for any number of them.
    pub(crate) fn has_pack(&self) -> bool {
        self.declarations.iter().any(|declaration| is_pack(declaration))
    }

    /// Keeps the parameters if they fit. Otherwise takes those that do, of all that `#if` makes,
    /// unless these differ in their names.
    pub(crate) fn choose_parameters(&mut self, fits: impl Fn(&ParameterList) -> bool) {
        let own = ParameterList { names: self.parameters.clone(), declarations: self.declarations.clone() };
        let mut fitting = self.alternatives.iter().filter(|list| fits(list));
        if let (false, Some(first)) = (fits(&own), fitting.next())
            && fitting.all(|other| other.names == first.names)
        {
            (self.parameters, self.declarations) = (first.names.clone(), first.declarations.clone());
        }
    }

    /// Takes the parameters that are compiled: `preprocessed` is what the preprocessor made of the
    /// source. Declarations count, or where a macro stands in them the names alone.
    pub(crate) fn choose_compiled_parameters(&mut self, preprocessed: &str) {
        if self.alternatives.is_empty() {
            return;
        }
        let compiled = defined_parameters(preprocessed, &self.name);
        let is_same = |list: &ParameterList| compiled.iter().any(|own| own.declarations == list.declarations);
        match self.alternatives.iter().any(is_same) {
            true => self.choose_parameters(is_same),
            false => self.choose_parameters(|list| compiled.iter().any(|own| own.names == list.names)),
        }
    }
}

/// A parameter of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateParameter {
    pub name: String,
    /// Not a number. One that a concept constrains (`std::integral T`) looks like a number.
    pub is_type: bool,
}

/// The kernel that begins in `tokens`, the code after the tuning comment at `comment`; no
/// tuning comment is in them. `before` is the code above the comment, which may begin the
/// declaration already (`template <typename T>`). `given` are the parameters that have a value.
/// `around` are the files around the source, which may define a macro that stands for
/// `__global__`.
pub(crate) fn find_kernel<'a>(
    source: &'a Source,
    before: &[CxxToken],
    tokens: &[CxxToken],
    given: &[&str],
    around: &dyn Fn() -> &'a [Source],
    comment: Span,
) -> Result<Kernel, Diagnostic> {
    let is_code = |token: &&CxxToken| !matches!(token.kind, CxxKind::Comment { .. });
    let begun = before.iter().rev().filter(is_code);
    let mut code: Vec<CxxToken> =
        begun.take_while(|token| !matches!(source.slice(token.span), ";" | "{" | "}")).copied().collect();
    code.reverse();
    let begun_code = code.len();
    code.extend(tokens.iter().filter(is_code));
    let text = |at: usize| code.get(at).map_or("", |token| source.slice(token.span));
    let nothing = || {
        let mut message = "no `__global__` function follows this comment: put it directly above one".to_owned();
        // `MAKE(name, ...)` begins no declaration of C++.
        if let [name, bracket, ..] = &code[begun_code..]
            && name.kind == CxxKind::Name
            && source.slice(bracket.span) == "("
            && !is_attribute(source.slice(name.span))
            && source.slice(name.span) != "static_assert"
        {
            let word = source.slice(name.span);
            message += &format!(" (expand `{word}`)");
        }
        source.error(MessageCode::NoKernel, comment, message)
    };
    let declaration = 0..(0..code.len()).find(|&at| matches!(text(at), ";" | "}")).unwrap_or(code.len());
    let start = declaration.clone().find(|&at| text(at) == "__global__").or_else(|| {
        let sources = || std::iter::once(source).chain(around());
        let names: Vec<&str> = sources().flat_map(macros::of_kernels).collect();
        declaration.clone().find(|&at| names.contains(&text(at)))
    });
    let Some(start) = start else {
        return Err(nothing());
    };

    let mut template = (0..start).find(|&at| text(at) == "template");
    // What stands between angle brackets that were passed last.
    let mut angles = None;
    let mut at = start + 1;
    while at < code.len() {
        match text(at) {
            ";" | "}" | "{" => break,
            "template" => template = template.or(Some(at)),
            // Only what specializes or instantiates a template has arguments behind its name.
            "<" if template.is_some_and(|at| text(at + 1) != "<" || text(at + 2) == ">") => {
                if let Some(close) = closing_angle(&code, source, at) {
                    angles = Some((at, close));
                    at = close;
                }
            }
            "(" => {
                let Some(close) = closing_index(&code, source, at) else {
                    break;
                };
                let arguments = angles.filter(|(_, close)| close + 1 == at).map(|(open, _)| open);
                let named = arguments.unwrap_or(at).wrapping_sub(1);
                let is_name = code.get(named).is_some_and(|token| token.kind == CxxKind::Name);
                let ends = !matches!(code.get(close + 1).map(|token| token.kind), Some(CxxKind::Name))
                    || text(close + 1) == "noexcept";
                if !is_name || !ends || is_attribute(text(named)) {
                    at = close + 1;
                    continue;
                }
                let name = code[named];
                if text(close + 1) == ";" {
                    let message =
                        format!("this declares `{}`; put the tuning comment above its definition", text(named));
                    return Err(source.error(MessageCode::NoKernel, name.span, message));
                }
                let lists = conditionals::token_lists(source, &code[at..=close]);
                let alternatives: Vec<ParameterList> =
                    lists.iter().map(|tokens| ParameterList::read(source, tokens)).collect();
                let ParameterList { names: parameters, declarations } = best_list(&alternatives, given);
                return Ok(Kernel {
                    name: text(named).to_string(),
                    span: name.span,
                    line: source.line(name.span.start),
                    parameters,
                    declarations,
                    alternatives: if alternatives.len() > 1 { alternatives } else { Vec::new() },
                    template: template.map(|at| code[at].span),
                    template_parameters: template.map_or_else(Vec::new, |at| template_parameters(&code, source, at)),
                    namespaces: Vec::new(),
                    // `k<>` leaves all of them to the types of the parameters.
                    arguments: arguments
                        .filter(|open| open + 2 < at)
                        .map(|open| code[open + 1].span.to(code[at - 2].span)),
                    waits_for_grid: waits_for_grid(&code[close..], source),
                    may_take_any_grid: may_take_any_grid(&code[close..], source),
                    has_fixed_tile: has_fixed_tile(&code[close..], source),
                    named_dimensions: named_dimensions(&code[close..], source),
                });
            }
            _ => {}
        }
        at += 1;
    }
    Err(nothing())
}

/// The body that begins in `code`.
fn body<'c>(code: &'c [CxxToken], source: &Source) -> Option<&'c [CxxToken]> {
    let open = code.iter().position(|token| source.slice(token.span) == "{")?;
    Some(&code[open..closing_index(code, source, open).unwrap_or(code.len())])
}

/// The dimensions of the block that the body that begins in `code` names (see [`Kernel`]).
fn named_dimensions(code: &[CxxToken], source: &Source) -> [bool; 3] {
    let Some(body) = body(code, source) else { return [true; 3] };
    let text = |at: usize| body.get(at).map_or("", |token| source.slice(token.span));
    let mut named = [false; 3];
    for at in (0..body.len()).filter(|&at| matches!(text(at), "threadIdx" | "blockDim")) {
        match member_dimension(text(at + 1), text(at + 2)) {
            Some(dimension) => named[dimension] = true,
            None => return [true; 3],
        }
    }
    if named.contains(&true) { named } else { [true; 3] }
}

/// Whether the body that begins in `code` may be of a kernel for any grid (see [`Kernel`]).
fn may_take_any_grid(code: &[CxxToken], source: &Source) -> bool {
    let Some(body) = body(code, source) else { return false };
    let text = |at: Option<usize>| at.and_then(|at| body.get(at)).map_or("", |token| source.slice(token.span));
    let is_pitch = |at: usize| {
        // The number of the block in another dimension.
        let is_other = |block: Option<usize>| {
            text(block) == "blockIdx" && text(block.map(|block| block + 2)) != text(Some(at + 2))
        };
        // `blockIdx.y * gridDim.x`, `gridDim.x * blockIdx.y`
        text(at.checked_sub(1)) == "*" && is_other(at.checked_sub(4))
            || text(Some(at + 3)) == "*" && is_other(Some(at + 4))
    };
    (0..body.len()).any(|at| text(Some(at)) == "gridDim" && !is_pitch(at))
}

/// Whether a block of the kernel whose body begins in `code` has a tile of a fixed size (see
/// [`Kernel`]).
fn has_fixed_tile(code: &[CxxToken], source: &Source) -> bool {
    let Some(body) = body(code, source) else { return false };
    let has_word = |is_it: fn(&str) -> bool| body.iter().any(|token| is_it(source.slice(token.span)));
    has_word(|word| word == "blockIdx") && !has_word(names_block_size)
}

/// Whether the body that begins in `code` calls a barrier of `cooperative_groups::this_grid()`,
/// itself or by a name for it.
fn waits_for_grid(code: &[CxxToken], source: &Source) -> bool {
    let Some(body) = body(code, source) else { return false };
    let text = |at: usize| body.get(at).map_or("", |token| source.slice(token.span));
    // A name is the grid's if the statement that brings it says so.
    let is_grid = |name: &str| {
        let mut statement = (0..body.len()).skip_while(|&at| text(at) != name).take_while(|&at| text(at) != ";");
        statement.any(|at| text(at) == "this_grid")
    };
    (2..body.len()).any(|at| match text(at) {
        "sync" | "barrier_arrive" | "barrier_wait" if text(at - 1) == "." => match text(at - 2) {
            ")" => at >= 4 && text(at - 4) == "this_grid",
            name => is_grid(name),
        },
        // `cg::sync(grid)`
        "sync" if text(at + 1) == "(" => {
            let end = closing_index(body, source, at + 1).unwrap_or(body.len());
            (at + 2..end).any(|at| is_grid(text(at)))
        }
        _ => false,
    })
}

/// Words whose parenthesis is an attribute's even when nothing but a bracket follows it.
fn is_attribute(word: &str) -> bool {
    matches!(word, "__launch_bounds__" | "__maxnreg__")
        || matches!(
            word,
            "__attribute__" | "__cluster_dims__" | "__block_size__" | "__declspec" | "alignas" | "__align__"
        )
}

/// Returns the index of the bracket that closes the one at `open`.
fn closing_index(code: &[CxxToken], source: &Source, open: usize) -> Option<usize> {
    brackets::closing_bracket(open..code.len(), |at| source.slice(code[at].span), Depth::pass_token)
}

/// The index of the `>` that closes the `<` at `open`; none where there is no `<`, or nothing
/// closes it.
fn closing_angle(code: &[CxxToken], source: &Source, open: usize) -> Option<usize> {
    let text = |at: usize| code.get(at).map_or("", |token| source.slice(token.span));
    if text(open) != "<" {
        return None;
    }
    let (mut depth, mut at) = (1usize, open + 1);
    while at < code.len() {
        match text(at) {
            // In a bracket they compare.
            "(" | "[" | "{" => at = closing_index(code, source, at)?,
            // A shift: no argument begins with `<`.
            "<" if text(at + 1) == "<" => at += 1,
            // What has arguments has a name: `sizeof(T) < 8` compares.
            "<" if code[at - 1].kind != CxxKind::Name => {}
            "<" => depth += 1,
            ">" => depth -= 1,
            ";" | "}" => return None,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// The parameters behind the word `template`; none if they are unknown, nor behind what
/// may be none or several: a macro, a pack, an `#if`.
fn template_parameters(code: &[CxxToken], source: &Source, template: usize) -> Vec<Option<TemplateParameter>> {
    let text = |at: usize| code.get(at).map_or("", |token| source.slice(token.span));
    let open = template + 1;
    let Some(close) = closing_angle(code, source, open) else { return Vec::new() };
    let mut commas = vec![open];
    let mut at = open + 1;
    while at < close {
        match text(at) {
            "(" | "[" | "{" => at = closing_index(code, source, at).unwrap_or(close),
            "<" if text(at + 1) == "<" => at += 1,
            "<" if code[at - 1].kind == CxxKind::Name => at = closing_angle(code, source, at).unwrap_or(close),
            "," => commas.push(at),
            _ => {}
        }
        at += 1;
    }
    commas.push(close);
    let counts_one = |&(from, to): &(usize, usize)| {
        let is_pack = (from..to).any(|at| text(at) == "." && text(at + 1) == ".");
        // A type without a name, or a macro that stands for whole parameters.
        let is_open = matches!(code[from..to], [alone] if alone.kind == CxxKind::Name && !is_type_word(text(from)));
        !is_pack && !is_open && !conditionals::is_among(source, &code[from - 1..=to])
    };
    let pieces = commas.windows(2).map(|pair| (pair[0] + 1, pair[1]));
    let one = |(from, to)| match (text(from), text(from + 2)) {
        ("template", _) => None,
        ("typename" | "class", after) if from + 2 <= to && (from + 2 == to || after == "=") => {
            Some(TemplateParameter { name: text(from + 1).to_owned(), is_type: true })
        }
        _ => declared_name(source, &code[from..to]).map(|name| TemplateParameter { name, is_type: false }),
    };
    pieces.take_while(counts_one).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::kernels_of;

    #[test]
    fn parameters_under_if_are_those_of_the_preprocessed_source() {
        let text =
            "__global__ void k(\n#if A\n T t,\n#endif\n float *x,\n#ifdef B\n int m\n#else\n int n\n#endif\n) {}\n";
        for (preprocessed, expected) in [
            ("__attribute__((global)) void k(\n float *x,\n int n\n) {}", "x, n"),
            ("void k(T t, float *x, int m) {} void g() { k(1, 2, 3); }", "t, x, m"),
            ("void k(float *x, int m); void other_k(int a) {} void k(float *x, int m)\n{}", "x, m"),
            ("void k(float *x, N m) {}", "x, m"),
            // What fits none of the lists, or several with other names, changes nothing.
            ("void g() { if (k(float *x, int m)) {} }", "t, x, m"),
            ("void k(int a) {}", "t, x, m"),
            ("void k(float *x, int n) {} namespace b { void k(float *x, int m) {} }", "t, x, m"),
            ("void k(", "t, x, m"),
            ("", "t, x, m"),
        ] {
            let source = Source::new("k.cu", text.as_bytes());
            let mut kernel = kernels_of(&source).remove(0).kernel;
            kernel.choose_compiled_parameters(preprocessed);
            let names: Vec<&str> = kernel.parameters.iter().flatten().map(String::as_str).collect();
            assert_eq!(names.join(", "), expected, "{preprocessed}");
            assert_eq!(kernel.declarations.len(), kernel.parameters.len());
        }
    }
}
