//! Host code -> the launches of a kernel that it writes with `<<<...>>>`, and the blocks that they have where the text tells.
//!
//! What is told is certain as far as a reader without a preprocessor can be: a literal, a `dim3` of such, or the one value that a name
//! in scope is declared with and that nothing assigns anew. All else is not told.

use super::brackets::Depth;
use super::host_code::{File, HostCode};
use super::launch_sites::ASKING;
use super::macros::definitions;
use super::tokens::CxxKind;
use crate::diag::{Source, Span};
use crate::launch::Dim3;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How many names and literals a block may be made of.
const MOST: usize = 200;

/// A launch in host code.
#[derive(Clone, Debug)]
pub struct HostLaunch {
    pub source: Arc<Source>,
    /// The kernel's name in it.
    pub span: Span,
    pub block: LaunchedBlock,
}

/// The block of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchedBlock {
    Is(Dim3),
    /// A parameter of the function that launches: its callers tell.
    Given,
    Unknown,
}

impl HostCode {
    /// The launches of the kernel in host code, in the order of the text.
    pub fn launches(&self, kernel: &str) -> Vec<HostLaunch> {
        self.launch_places(kernel, &BTreeMap::new()).into_iter().map(|(launch, ..)| launch).collect()
    }

    /// The block of all launches of the kernel under these values of macros, where all that host code does with the kernel is to launch it
    /// with `<<<...>>>`, in blocks that the text tells.
    pub fn launched_block(&self, kernel: &str, macros: &BTreeMap<String, i64>) -> Option<Dim3> {
        let is_launched = |file: &File| {
            let mut places = file.places(kernel).iter().filter(|&&at| !file.device[at]);
            places.all(|&at| file.launch_mark(at).is_some()) && !file.macros.iter().any(|of| of.has(kernel))
        };
        let launches = self.launch_places(kernel, macros);
        let LaunchedBlock::Is(block) = launches.first()?.0.block else { return None };
        let is_it = |(launch, ..): &(HostLaunch, &File, usize)| launch.block == LaunchedBlock::Is(block);
        (launches.iter().all(is_it) && self.files.iter().all(is_launched)).then_some(block)
    }

    /// The first launch that may be of the kernel and have dynamic shared memory: `a.cu(12)`. A kernel that is handed on, or given another
    /// name, may be launched by any launch of what is no kernel's name, and by a macro.
    pub fn launch_with_shared(&self, kernel: &str) -> Option<String> {
        let launches = self.launch_places(kernel, &BTreeMap::new());
        let direct = launches.iter().find(|(_, file, mark)| file.has_shared(*mark));
        if let Some((launch, ..)) = direct {
            return Some(format!("{}({})", launch.source.path, launch.source.line(launch.span.start)));
        }
        let is_handed_on = |file: &File| {
            let mut others = file.places(kernel).iter().filter(|&&at| !file.device[at] && !file.is_asked_about(at));
            others.any(|&at| file.launch_mark(at).is_none()) || file.macros.iter().any(|of| of.has(kernel))
        };
        if !self.files.iter().any(is_handed_on) {
            return None;
        }
        self.files.iter().find_map(|file| {
            let is_kernel = |word: &str| self.files.iter().any(|file| file.defines_kernel(word));
            let is_host_name = |&at: &usize| !file.device[at] && file.tokens[at].kind == CxxKind::Name;
            let launches =
                (0..file.tokens.len()).filter(is_host_name).filter_map(|at| Some((at, file.launch_mark(at)?)));
            let mut with_shared = launches.filter(|(_, mark)| file.has_shared(*mark)).map(|(at, _)| at);
            let indirect = with_shared.find(|&at| !is_kernel(file.text(at)));
            let place = indirect.map(|at| file.tokens[at].span.start).or_else(|| file.macro_with_shared())?;
            Some(format!("{}({})", file.source.path, file.source.line(place)))
        })
    }

    /// Whether host code has the kernel's name otherwise than to declare it or to ask for its attributes: it may be launched there.
    pub fn launches_somewhere(&self, kernel: &str) -> bool {
        let of_macros = |file: &File| file.macros.iter().any(|of| of.has(kernel));
        let is_used = |file: &File, at: usize| !file.device[at] && !file.is_asked_about(at);
        self.files.iter().any(|file| file.places(kernel).iter().any(|&at| is_used(file, at)) || of_macros(file))
    }

    /// The launches, each with its file and the token of its `<<<`, under these values of macros.
    pub(crate) fn launch_places(
        &self,
        kernel: &str,
        macros: &BTreeMap<String, i64>,
    ) -> Vec<(HostLaunch, &File, usize)> {
        let mut found = Vec::new();
        for file in &self.files {
            let named = file.places(kernel).iter().copied().filter(|&at| !file.device[at]);
            for (at, mark) in named.filter_map(|at| Some((at, file.launch_mark(at)?))) {
                let (source, span) = (Arc::clone(&file.source), file.tokens[at].span);
                let blocks = Blocks { code: self, macros, left: Cell::new(MOST) };
                found.push((HostLaunch { source, span, block: blocks.block(file, mark + 3) }, file, mark));
            }
        }
        found
    }

    /// The value of a macro that is defined once, and that no command line can define otherwise.
    pub(crate) fn defined(&self, name: &str) -> Option<u32> {
        let mut value = None;
        for line in self.files.iter().flat_map(|file| file.source.text.lines()) {
            let Some(directive) = line.trim_start().strip_prefix('#') else { continue };
            let mut words = directive.split_whitespace();
            // A `#` alone is a directive, too.
            match (words.next().unwrap_or_default(), words.next()) {
                ("define", Some(defined)) if defined == name => {
                    let (text, rest) = (words.next()?, words.next());
                    let is_over = rest.is_none_or(|rest| rest.starts_with("//") || rest.starts_with("/*"));
                    if value.is_some() || !is_over {
                        return None;
                    }
                    value = Some(integer(text.trim_start_matches('(').trim_end_matches(')'))?);
                }
                (word, Some(_)) if word != "define" && has_word(directive, name) => return None,
                _ => {}
            }
        }
        value
    }
}

/// What blocks are written as -> what they are, under some values of macros.
struct Blocks<'a> {
    code: &'a HostCode,
    macros: &'a BTreeMap<String, i64>,
    /// How many names and literals may still be looked at: each name of a chain may stand for several of the next.
    left: Cell<usize>,
}

impl Blocks<'_> {
    /// The block of the launch whose arguments begin at `start`.
    fn block(&self, file: &File, start: usize) -> LaunchedBlock {
        match file.arguments(start, ">>>").get(1) {
            Some(&(from, to)) => self.shape(file, from, to),
            None => LaunchedBlock::Unknown,
        }
    }

    /// The value of the tokens from `from` to before `to` as a shape.
    fn shape(&self, file: &File, from: usize, to: usize) -> LaunchedBlock {
        let opens = |at: usize| matches!(file.text(at), "(" | "{");
        if file.text(from) == "dim3" && opens(from + 1) {
            return self.extents(file, from + 2);
        }
        if to == from + 1 && file.tokens[from].kind == CxxKind::Name {
            return match file.declared(from) {
                Some(Declared::Parameter) => LaunchedBlock::Given,
                Some(Declared::Extents(at)) => self.extents(file, at),
                Some(Declared::Value(start, end)) if self.left.get() > 0 => {
                    self.left.set(self.left.get() - 1);
                    self.shape(file, start, end)
                }
                Some(Declared::Value(..)) => LaunchedBlock::Unknown,
                None => self.number(file, from).map_or(LaunchedBlock::Unknown, |x| LaunchedBlock::Is([x, 1, 1])),
            };
        }
        self.product(file, from, to).map_or(LaunchedBlock::Unknown, |x| LaunchedBlock::Is([x, 1, 1]))
    }

    /// The shape of a `dim3` whose first extent begins at `start`.
    fn extents(&self, file: &File, start: usize) -> LaunchedBlock {
        let mut block = [1; 3];
        let given = file.arguments(start, file.closing_mark(start));
        if given.is_empty() || given.len() > 3 {
            return LaunchedBlock::Unknown;
        }
        for (extent, (from, to)) in block.iter_mut().zip(given) {
            match self.product(file, from, to) {
                Some(value) => *extent = value,
                None => return LaunchedBlock::Unknown,
            }
        }
        LaunchedBlock::Is(block)
    }

    /// `256`, `WARPS * 32`
    fn product(&self, file: &File, from: usize, to: usize) -> Option<u32> {
        let mut value = 1u32;
        for at in from..to {
            match (at - from) % 2 {
                0 => value = value.checked_mul(self.number(file, at)?)?,
                _ if file.text(at) != "*" => return None,
                _ => {}
            }
        }
        ((to - from) % 2 == 1).then_some(value)
    }

    fn number(&self, file: &File, at: usize) -> Option<u32> {
        self.left.set(self.left.get().checked_sub(1)?);
        let text = file.text(at);
        match file.tokens.get(at)?.kind {
            CxxKind::Literal => integer(text),
            CxxKind::Name => match file.declared(at) {
                Some(Declared::Value(start, end)) => self.product(file, start, end),
                Some(_) => None,
                None => {
                    self.macros.get(text).map_or_else(|| self.code.defined(text), |value| u32::try_from(*value).ok())
                }
            },
            _ => None,
        }
    }
}

fn has_word(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

/// How a name in scope is declared; places of tokens.
pub(crate) enum Declared {
    Parameter,
    /// `dim3 name(`: where the first extent begins.
    Extents(usize),
    /// `type name = `: from, and to before.
    Value(usize, usize),
}

impl File {
    /// Whether the launch with this `<<<` has dynamic shared memory, as far as its text tells.
    fn has_shared(&self, mark: usize) -> bool {
        let third = self.arguments(mark + 3, ">>>").get(2).copied();
        third.is_some_and(|(from, to)| to != from + 1 || integer(self.text(from)) != Some(0))
    }

    /// Whether a kernel of this name is declared.
    fn defines_kernel(&self, name: &str) -> bool {
        let declares = |&at: &usize| {
            let before = (0..at).rev().map(|at| self.text(at)).take_while(|word| !matches!(*word, ";" | "{" | "}"));
            self.device[at] && self.text(at + 1) == "(" && before.into_iter().any(|word| self.declares_kernel(word))
        };
        self.places(name).iter().any(declares)
    }

    /// Where a macro begins that makes launches with dynamic shared memory.
    fn macro_with_shared(&self) -> Option<usize> {
        let has_shared = |body: &str| {
            let arguments = body.split_once("<<<").and_then(|(_, rest)| Some(rest.split_once(">>>")?.0));
            let third = arguments.and_then(|arguments| arguments.split(',').nth(2)).map(str::trim);
            third.is_some_and(|third| integer(third) != Some(0))
        };
        let found = definitions(&self.source.text).into_iter().find(|(_, body)| has_shared(self.source.slice(*body)));
        found.map(|(name, _)| name.start)
    }

    /// Whether the name at `at` is an argument of a call that launches nothing, as `cudaFuncSetAttribute`.
    pub(crate) fn is_asked_about(&self, at: usize) -> bool {
        let begin =
            self.tokens[..at].iter().rposition(|token| matches!(self.source.slice(token.span), ";" | "{" | "}"));
        (begin.map_or(0, |begin| begin + 1)..at).any(|call| {
            ASKING.iter().any(|begin| self.text(call).starts_with(begin))
                && self.given(call).and_then(|open| self.closing(open)).is_some_and(|close| close > at)
        })
    }

    /// The declaration of the name at `at` in the scopes around it, where nothing else in the file assigns to such a name.
    pub(crate) fn declared(&self, at: usize) -> Option<Declared> {
        let places = self.places(self.text(at));
        let before = &places[..places.partition_point(|&place| place < at)];
        let is_in_scope = |place: usize| self.block(place).is_none_or(|open| self.is_within(at, open));
        let declaration =
            before.iter().rev().copied().find(|&place| self.is_declaration(place) && is_in_scope(place))?;
        // Parameters stand before the brace of their function.
        let function = self.function(declaration).or_else(|| self.function(at));
        let is_near = |place: usize| function.is_none_or(|(begin, end)| (begin..=end).contains(&place));
        let is_changed = |&place: &usize| {
            place != declaration && is_near(place) && !self.is_declaration(place) && self.is_assigned(place)
        };
        match self.text(declaration + 1) {
            "," | ")" => Some(Declared::Parameter),
            // What follows cannot be told; nor is a name told that is not found here.
            _ if places.iter().any(is_changed) => Some(Declared::Value(declaration, declaration)),
            "(" | "{" if self.text(declaration - 1) == "dim3" => Some(Declared::Extents(declaration + 2)),
            "=" => {
                let mut round = 0usize;
                let end = (declaration + 2..self.tokens.len()).find(|&place| {
                    let over = matches!(self.text(place), ";") || round == 0 && self.text(place) == ",";
                    match self.text(place) {
                        "(" | "{" => round += 1,
                        ")" | "}" => round = round.saturating_sub(1),
                        _ => {}
                    }
                    over
                })?;
                let is_of_itself = (declaration + 2..end).contains(&at);
                Some(Declared::Value(declaration + 2, if is_of_itself { declaration + 2 } else { end }))
            }
            _ => Some(Declared::Value(declaration, declaration)),
        }
    }

    /// Whether the token is in the block that a brace opens.
    fn is_within(&self, at: usize, open: usize) -> bool {
        std::iter::successors(self.block(at), |&block| self.block(block)).any(|block| block == open)
    }

    /// Whether the name at `at` stands behind a type.
    pub fn is_declaration(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else { return false };
        let is_type = self.tokens[before].kind == CxxKind::Name
            && !matches!(
                self.text(before),
                "return" | "else" | "case" | "goto" | "throw" | "new" | "delete" | "sizeof"
            );
        // `const dim3 &block`
        let is_reference = self.text(before) == "&" && before > 0 && self.tokens[before - 1].kind == CxxKind::Name;
        let ends = matches!(self.text(at + 1), "=" | "(" | "{" | "," | ")" | ";" | "[" | ":");
        (is_type || is_reference) && ends && !(self.text(at + 1) == "=" && self.text(at + 2) == "=")
    }

    /// Whether the variable named at `at`, or a member of it, is written there, or may be through its address.
    fn is_assigned(&self, at: usize) -> bool {
        let next = if self.text(at + 1) == "." { at + 3 } else { at + 1 };
        let mark = |at: usize| self.text(at);
        let is_equals = mark(next) == "=" && mark(next + 1) != "=";
        let is_compound = matches!(mark(next), "+" | "-" | "*" | "/" | "%" | "&" | "|" | "^") && mark(next + 1) == "=";
        let is_shift = matches!(mark(next), "<" | ">") && mark(next + 1) == mark(next) && mark(next + 2) == "=";
        let is_stepped = matches!(mark(next), "+" | "-") && mark(next + 1) == mark(next);
        let before = |back: usize| at.checked_sub(back).map_or("", mark);
        let is_stepped_before = matches!(before(1), "+" | "-") && before(2) == before(1);
        let is_address = before(1) == "&" && matches!(before(2), "(" | "," | "=");
        let is_read = before(1) == ">" && before(2) == ">";
        is_equals || is_compound || is_shift || is_stepped || is_stepped_before || is_address || is_read
    }

    /// The ranges of tokens between commas from `start` to `end`, which is one mark or three of the same; none where it is not found.
    pub fn arguments(&self, start: usize, end: &str) -> Vec<(usize, usize)> {
        let (mut found, mut depth, mut from) = (Vec::new(), Depth::default(), start);
        let ends = |at: usize| match end {
            ">>>" => (at..at + 3).all(|at| self.text(at) == ">"),
            end => self.text(at) == end,
        };
        for at in start..self.tokens.len() {
            let over = depth.is_outside() && ends(at);
            if over || depth.is_outside() && self.text(at) == "," {
                found.push((from, at));
                from = at + 1;
            }
            if over {
                return found;
            }
            if self.text(at) == ";" {
                return Vec::new();
            }
            depth.pass(self.text(at));
        }
        Vec::new()
    }

    /// What closes the parenthesis or brace before `start`.
    fn closing_mark(&self, start: usize) -> &'static str {
        if start > 0 && self.text(start - 1) == "{" { "}" } else { ")" }
    }
}

/// An integer literal.
fn integer(text: &str) -> Option<u32> {
    let digits = text.replace('\'', "");
    let digits = digits.trim_end_matches(['u', 'U', 'l', 'L']);
    match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok(),
        None if digits.len() > 1 && digits.starts_with('0') => None,
        None => digits.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(text: &str) -> Vec<LaunchedBlock> {
        let text = format!("__global__ void k(float *x) {{ x[0] = 1; }}\n{text}\n");
        let code = HostCode::new([Arc::new(Source::new("a.cu", text.as_bytes()))]);
        code.launches("k").into_iter().map(|launch| launch.block).collect()
    }

    #[test]
    fn a_block_is_told_where_the_text_leaves_no_doubt() {
        use LaunchedBlock::{Given, Is, Unknown};
        for (text, expected) in [
            ("void f() { k<<<(n + 255) / 256, 256>>>(x); }", Is([256, 1, 1])),
            ("void f() { k<float, 2><<<dim3(n / 16, n / 16), dim3(16, 16), 0, s>>>(x); }", Is([16, 16, 1])),
            ("void f() { ns::k<<<grid(n, 3), dim3{8u, 4, 2}>>>(x); }", Is([8, 4, 2])),
            ("void f() { const dim3 b(16, 4, 4); k<<<dim3(n / b.x), b>>>(x); }", Is([16, 4, 4])),
            ("void f() { dim3 b = dim3(32, 8); k<<<g, b>>>(x); }", Is([32, 8, 1])),
            ("constexpr int W = 4;\nvoid f() { int b = W * 32; k<<<g, b>>>(x); }", Is([128, 1, 1])),
            ("#define BLOCK (192) // threads\nvoid f() { k<<<g, BLOCK>>>(x); }", Is([192, 1, 1])),
            ("#define S 8\nvoid f() { k<<<g, dim3(S, S)>>>(x); }", Is([8, 8, 1])),
            ("void f(dim3 g, dim3 b) { k<<<g, b>>>(x); }", Given),
            ("void f(const dim3 &b, int n) { k<<<n, b>>>(x); }", Given),
            // What may be something else.
            ("#ifndef BLOCK\n#define BLOCK 192\n#endif\nvoid f() { k<<<g, BLOCK>>>(x); }", Unknown),
            ("void f() { dim3 b(16, 16); b.y = 4; k<<<g, b>>>(x); }", Unknown),
            ("void f() { for (int b = 64; b <= 1024; b *= 2) k<<<g, b>>>(x); }", Unknown),
            ("void f() { int b = 0; occupancy(&b); k<<<g, b>>>(x); }", Unknown),
            ("void f() { int b = n > 3 ? 64 : 128; k<<<g, b>>>(x); }", Unknown),
            ("void f() { int b = b; k<<<g, b>>>(x); }", Unknown),
            ("void f() { int b = 2 * b; k<<<g, dim3(b)>>>(x); }", Unknown),
            ("void h() { dim3 b(16, 16); }\nvoid f() { k<<<g, b>>>(x); }", Unknown),
            ("void f() { k<<<g, nvtune::k::block()>>>(x); }", Unknown),
            ("void f() { k<<<g, n / 4>>>(x); }", Unknown),
        ] {
            assert_eq!(blocks(text), [expected], "{text}");
        }
        assert_eq!(blocks("void f() { k<<<1, 2>>>(x); j<<<1, 3>>>(x); k<<<1, 4>>>(x); }").len(), 2);
        assert_eq!(blocks("__global__ void parent() { k<<<1, 2>>>(x); }"), []);
    }
}
