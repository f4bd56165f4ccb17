//! Source texts -> what their host code does with a name: whether it uses a macro, and how it launches a kernel.
//!
//! No C++ parser: a definition or declaration with `__global__`, or with `__device__` and no `__host__`, is device code, and the
//! rest is host code. So more counts as host code than is, never less.

use super::cxx::{CxxKind, CxxToken, cxx_tokens};
use super::diagnostic::Diagnostic;
use super::macros::{self, Macro};
use super::source::Source;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

/// The code of a source and of what it includes with quotes.
#[derive(Clone, Debug, Default)]
pub struct HostCode {
    pub(super) files: Vec<File>,
}

#[derive(Clone, Debug)]
pub(super) struct File {
    pub source: Arc<Source>,
    pub tokens: Vec<CxxToken>,
    /// By token: within device code.
    pub device: Vec<bool>,
    /// The macros that declare kernels, of all files.
    of_kernels: Arc<BTreeSet<String>>,
    /// The places of each name, in order, once one has been asked for.
    names: OnceLock<HashMap<Box<str>, Vec<usize>>>,
    /// By token: the brace that opens the block which it is in, once one has been asked for.
    blocks: OnceLock<Vec<Option<usize>>>,
    /// Functions with a body, each from its name to the end of that; none within another.
    pub functions: Vec<(usize, usize)>,
    pub macros: Vec<Macro>,
    /// The calls of launchers, and of the program's own functions that call one, in the order of the text.
    launchers: Vec<Call>,
    wrapped: Vec<Call>,
}

/// A call by which a kernel in its parentheses may be launched.
#[derive(Clone, Copy, Debug)]
struct Call {
    /// The token of the name.
    at: usize,
    /// That of the bracket which ends the call; `None` where there is no call.
    end: Option<usize>,
    launcher: &'static str,
    /// The place of the call that this one is an argument of, among all.
    outer: Option<usize>,
}

/// The innermost of these calls that `at` is within.
fn around(calls: &[Call], at: usize) -> Option<&Call> {
    let last = calls.partition_point(|call| call.at <= at).checked_sub(1);
    within(calls, last, at).and_then(|found| calls.get(found))
}

/// The place of the innermost call that `at` is within, of the one at `from` and those around it.
fn within(calls: &[Call], mut from: Option<usize>, at: usize) -> Option<usize> {
    while let Some(call) = from.and_then(|place| calls.get(place)) {
        if call.end.is_some_and(|end| at <= end) {
            return from;
        }
        from = call.outer;
    }
    None
}

/// Calls in the order of the text -> the same, each with the one around it.
fn nested(calls: impl Iterator<Item = Call>) -> Vec<Call> {
    let mut found: Vec<Call> = Vec::new();
    for call in calls {
        let outer = within(&found, found.len().checked_sub(1), call.at);
        found.push(Call { outer, ..call });
    }
    found
}

/// Functions of the runtime that take a kernel's address, for which there is no launch stub.
const LAUNCHERS: [&str; 8] = [
    "cudaLaunchKernel",
    "cudaLaunchKernelEx",
    "cudaLaunchKernelExC",
    "cudaLaunchCooperativeKernel",
    "cudaLaunchCooperativeKernelMultiDevice",
    "cudaGraphAddKernelNode",
    "cudaGraphAddNode",
    "cudaGraphKernelNodeSetParams",
];

/// Words behind which a parenthesis and a brace stand, and no function is defined.
pub(super) const CONTROL: [&str; 5] = ["if", "for", "while", "switch", "catch"];

/// Words between a function's parameters and its body.
pub(super) const SPECIFIERS: [&str; 6] = ["const", "noexcept", "override", "final", "mutable", "constexpr"];

impl HostCode {
    /// Reads the texts.
    pub fn new(sources: impl IntoIterator<Item = Arc<Source>>) -> Self {
        let sources: Vec<Arc<Source>> = sources.into_iter().collect();
        // A file may define what another one declares kernels by.
        let of_kernels: BTreeSet<String> =
            sources.iter().flat_map(|source| macros::of_kernels(source)).map(str::to_owned).collect();
        let of_kernels = Arc::new(of_kernels);
        let files = sources.into_iter().map(|source| {
            let mut tokens = cxx_tokens(&source.text);
            tokens.retain(|token| !matches!(token.kind, CxxKind::Comment { .. }));
            let device = device_code(&source, &tokens, &of_kernels);
            let macros = macros::described(&source);
            let (launchers, wrapped, functions) = (Vec::new(), Vec::new(), Vec::new());
            let (names, blocks) = (OnceLock::new(), OnceLock::new());
            let of_kernels = Arc::clone(&of_kernels);
            let mut file =
                File { source, tokens, device, of_kernels, names, blocks, functions, macros, launchers, wrapped };
            file.launchers = file.launchers();
            file.functions = file.functions();
            file
        });
        let mut files: Vec<File> = files.collect();
        let mut wrappers: HashMap<String, &'static str> = HashMap::new();
        for (name, launcher) in files.iter().flat_map(File::wrappers) {
            wrappers.entry(name.to_owned()).or_insert(launcher);
        }
        for file in &mut files {
            file.wrapped = file.wrapped(&wrappers);
        }
        Self { files }
    }

    /// Where host code uses the macro `name`, itself or in another macro: `a.cu(12)`.
    pub fn use_of(&self, name: &str) -> Option<String> {
        self.files.iter().find_map(|file| {
            let place = file.host_use(name)?;
            Some(format!("{}({})", file.source.path, file.source.line(place)))
        })
    }

    /// Whether code or a directive has this name, outside comments.
    pub fn names(&self, name: &str) -> bool {
        self.files.iter().any(|File { source, tokens, .. }| {
            let is_it = |token: &CxxToken| token.kind == CxxKind::Name && source.slice(token.span) == name;
            let in_directive = |line: &str| {
                let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
                line.trim_start().starts_with('#') && words.any(|word| word == name)
            };
            tokens.iter().any(is_it) || source.text.replace("\\\n", "  ").lines().any(in_directive)
        })
    }

    /// The first launch of the kernel that does not go through its launch stub, where none does: `a.cu(12)`.
    pub fn bypass(&self, kernel: &str) -> Option<String> {
        let first = self.unreached(kernel).into_iter().next().filter(|_| self.launches(kernel).is_empty())?;
        Some(format!("{}({})", first.path, first.line))
    }

    /// A warning for each launch of the kernel that does not go through its launch stub.
    pub fn unreached(&self, kernel: &str) -> Vec<Diagnostic> {
        self.files.iter().flat_map(|file| file.unreached(kernel)).collect()
    }
}

impl File {
    pub fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| self.source.slice(token.span))
    }

    /// Whether a word declares a kernel.
    pub fn declares_kernel(&self, word: &str) -> bool {
        word == "__global__" || self.of_kernels.contains(word)
    }

    /// The places of a name among the tokens, in order.
    pub fn places(&self, name: &str) -> &[usize] {
        let names = self.names.get_or_init(|| {
            let mut names: HashMap<Box<str>, Vec<usize>> = HashMap::new();
            for at in (0..self.tokens.len()).filter(|&at| self.tokens[at].kind == CxxKind::Name) {
                names.entry(self.text(at).into()).or_default().push(at);
            }
            names
        });
        names.get(name).map_or(&[], Vec::as_slice)
    }

    /// The brace that opens the block which the token is in.
    pub fn block(&self, at: usize) -> Option<usize> {
        let blocks = self.blocks.get_or_init(|| {
            let mut open = Vec::new();
            let of_token = |at: usize| {
                if self.text(at) == "}" {
                    open.pop();
                }
                let block = open.last().copied();
                if self.text(at) == "{" {
                    open.push(at);
                }
                block
            };
            (0..self.tokens.len()).map(of_token).collect()
        });
        blocks.get(at).copied().flatten()
    }

    /// The first place where its host code, or another macro, has this name.
    pub fn host_use(&self, name: &str) -> Option<usize> {
        let host = self.places(name).iter().find(|&&at| !self.device[at]).map(|&at| self.tokens[at].span.start);
        host.or_else(|| {
            let mut macros = self.macros.iter();
            let has =
                |found: &&Macro| self.source.slice(found.name) != name && found.words.iter().any(|word| word == name);
            macros.find(has).map(|found| found.name.start)
        })
    }

    fn launchers(&self) -> Vec<Call> {
        let call = |at: usize| {
            let launcher = LAUNCHERS.into_iter().find(|launcher| *launcher == self.text(at))?;
            let end = self.given(at).and_then(|open| self.closing(open));
            Some(Call { at, end, launcher, outer: None })
        };
        nested((0..self.tokens.len()).filter_map(call))
    }

    /// The calls of the program's own functions and constructors, given by name with the launchers that they call.
    fn wrapped(&self, wrappers: &HashMap<String, &'static str>) -> Vec<Call> {
        let call = |at: usize| {
            let launcher = wrappers.get(self.text(at))?;
            // `Run run(k)` declares a variable, and calls a constructor.
            let open = match self.variable(at) {
                Some(variable) => variable + 1,
                None => self.given(at).filter(|_| !self.is_declared(at))?,
            };
            Some(Call { at, end: Some(self.closing(open)?), launcher, outer: None })
        };
        nested((0..self.tokens.len()).filter(|_| !wrappers.is_empty()).filter_map(call))
    }

    /// What opens the arguments of the function or constructor named at `at`, behind those of its template, or of the one that it is itself
    /// an argument of, as in `make_unique<Run>(k)`.
    pub fn given(&self, at: usize) -> Option<usize> {
        let open = match self.text(at + 1) {
            "<" => self.closing(at + 1)? + 1,
            ">" => at + 2,
            _ => at + 1,
        };
        matches!(self.text(open), "(" | "{").then_some(open)
    }

    /// The variable of the class named at `at` that is made with arguments there.
    pub fn variable(&self, at: usize) -> Option<usize> {
        let name = if self.text(at + 1) == "<" { self.closing(at + 1)? + 1 } else { at + 1 };
        let is_name = self.tokens.get(name).is_some_and(|token| token.kind == CxxKind::Name);
        // `struct Run final {`
        let is_name = is_name && !SPECIFIERS.contains(&self.text(name));
        (is_name && matches!(self.text(name + 1), "(" | "{")).then_some(name)
    }

    /// The program's own functions that call a launcher, each with that: a kernel that is handed to one may be launched by it. A function is
    /// the outermost that the launcher is in; besides it there are the lambdas with a name.
    fn wrappers(&self) -> Vec<(&str, &'static str)> {
        let (mut found, mut open) = (Vec::new(), Vec::new());
        let mut calls = self.launchers.iter().filter(|call| !self.device[call.at]).peekable();
        for at in 0..self.tokens.len() {
            match self.text(at) {
                "{" => open.push(at),
                "}" => {
                    open.pop();
                }
                _ => {}
            }
            if let Some(call) = calls.next_if(|call| call.at == at) {
                let function = open.iter().find_map(|&open| self.defined(open)).map(|name| self.text(name));
                let lambdas = open.iter().filter_map(|&open| self.lambda(open));
                found.extend(function.into_iter().chain(lambdas).map(|name| (name, call.launcher)));
            }
            if calls.peek().is_none() {
                break;
            }
        }
        found
    }

    fn unreached(&self, kernel: &str) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for at in 0..self.tokens.len() {
            let word = self.text(at);
            if word != kernel || matches!(self.text(at.wrapping_sub(1)), "." | ">" if self.is_member(at)) {
                continue;
            }
            let says = |how: &str| {
                format!(
                    "this launch of `{kernel}` is not reshaped: launch(remap) reaches <<<...>>> launches of host code only, not {how}"
                )
            };
            let message = match around(&self.launchers, at) {
                _ if self.device[at] && self.launch_mark(at).is_some() => says("those of device code"),
                _ if self.device[at] => continue,
                Some(call) => says(call.launcher),
                None if self.launch_mark(at).is_some() => continue,
                None => match around(&self.wrapped, at).filter(|_| !self.is_typed(at)) {
                    Some(call) => format!(
                        "this launch of `{kernel}` may not be reshaped: launch(remap) reaches <<<...>>> launches of host code only, and `{}` calls {}",
                        self.text(call.at),
                        call.launcher
                    ),
                    None if !self.launchers.is_empty() && self.is_address(at) => says("a kernel's address"),
                    None => continue,
                },
            };
            found.push(self.source.warning(self.tokens[at].span, message));
        }
        found
    }

    /// The place of the name of the function whose body begins at `open`.
    pub fn defined(&self, open: usize) -> Option<usize> {
        let mut last = self.signature(open)?;
        loop {
            let (begin, is_brace) = match self.opening(last, "(", ")") {
                Some(begin) => (begin, false),
                None => (self.opening(last, "{", "}")?, true),
            };
            let name = begin.checked_sub(1).filter(|&name| self.tokens[name].kind == CxxKind::Name)?;
            last = match name.checked_sub(1).map_or("", |before| self.text(before)) {
                // What a constructor initializes stands between its parameters and its body.
                "," => name.checked_sub(2)?,
                ":" => self.signature(name - 1)?,
                _ => return Some(name).filter(|&name| !is_brace && !CONTROL.contains(&self.text(name))),
            };
        }
    }

    /// The name that the lambda whose body begins at `open` is given: `auto run = [&](auto f) {`.
    fn lambda(&self, open: usize) -> Option<&str> {
        let last = self.signature(open)?;
        let captured = self.opening(last, "(", ")").map_or(Some(last), |begin| begin.checked_sub(1))?;
        let name = self.opening(captured, "[", "]")?.checked_sub(2)?;
        let is_named = self.text(name + 1) == "=" && self.tokens[name].kind == CxxKind::Name;
        is_named.then(|| self.text(name))
    }

    /// The last token before the body at `open` that is neither a specifier nor of `-> type`.
    fn signature(&self, open: usize) -> Option<usize> {
        let plain = |end: usize| (0..end).rev().find(|&at| !SPECIFIERS.contains(&self.text(at)));
        let last = plain(open)?;
        let mut depth = 0usize;
        for at in (1..=last).rev() {
            match self.text(at) {
                ")" => depth += 1,
                "(" if depth > 0 => depth -= 1,
                "(" | ";" | "{" | "}" => break,
                ">" if depth == 0 && self.text(at - 1) == "-" => return plain(at - 1),
                _ => {}
            }
        }
        Some(last)
    }

    /// The bracket that opens what the one at `close` closes.
    fn opening(&self, close: usize, opens: &str, closes: &str) -> Option<usize> {
        let mut depth = 0usize;
        for at in (0..=close).rev() {
            match self.text(at) {
                word if word == closes => depth += 1,
                word if word == opens => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return (at < close).then_some(at);
            }
        }
        None
    }

    /// Whether the function named at `at` is declared there: its type stands before its name.
    fn is_declared(&self, mut at: usize) -> bool {
        while at > 1 && self.text(at - 1) == "::" && self.tokens[at - 2].kind == CxxKind::Name {
            at -= 2;
        }
        let before = at.wrapping_sub(1);
        let is_name = self.tokens.get(before).is_some_and(|token| token.kind == CxxKind::Name);
        matches!(self.text(before), "*" | "&" | ">") && !self.is_member(at)
            || is_name && !matches!(self.text(before), "return" | "else" | "do" | "new" | "throw")
    }

    /// Whether the name at `at` stands behind another, which is its type.
    fn is_typed(&self, at: usize) -> bool {
        at.checked_sub(1).is_some_and(|before| self.tokens[before].kind == CxxKind::Name)
    }

    /// Whether the name at `at` is a member of something.
    pub fn is_member(&self, at: usize) -> bool {
        let before = |count: usize| at.checked_sub(count).map_or("", |at| self.text(at));
        before(1) == "." || before(1) == ">" && before(2) == "-"
    }

    /// Where `<<<` follows the name, behind template arguments perhaps.
    pub fn launch_mark(&self, at: usize) -> Option<usize> {
        let is_launch = |at: usize| (at..at + 3).all(|at| self.text(at) == "<");
        if is_launch(at + 1) {
            return Some(at + 1);
        }
        if self.text(at + 1) != "<" {
            return None;
        }
        let mut depth = 0usize;
        for next in at + 1..self.tokens.len() {
            match self.text(next) {
                "<" => depth += 1,
                ">" => depth = depth.saturating_sub(1),
                ";" | "{" => return None,
                _ => {}
            }
            if depth == 0 {
                return is_launch(next + 1).then_some(next + 1);
            }
        }
        None
    }

    /// Whether the name stands as `&name`, `(void *)name` or the value of a `func` field.
    fn is_address(&self, at: usize) -> bool {
        match self.text(at.wrapping_sub(1)) {
            "&" => true,
            ")" => at > 1 && self.text(at - 2) == "*",
            "=" => at > 1 && self.text(at - 2) == "func",
            _ => false,
        }
    }

    /// The index of the bracket that closes the one at `open`: a parenthesis, a brace or, of a template, an angle bracket.
    pub fn closing(&self, open: usize) -> Option<usize> {
        let (opens, closes) = match self.text(open) {
            "(" => ("(", ")"),
            "{" => ("{", "}"),
            "<" => ("<", ">"),
            _ => return None,
        };
        let (mut depth, mut at) = (0usize, open);
        while at < self.tokens.len() {
            match self.text(at) {
                word if word == opens => depth += 1,
                word if word == closes => depth -= 1,
                // What a parenthesis compares opens and closes nothing, and what ends here was a comparison, too.
                "(" if opens == "<" => at = self.closing(at)?,
                ";" | "{" | "}" if opens == "<" => return None,
                _ => {}
            }
            if depth == 0 {
                return Some(at);
            }
            at += 1;
        }
        None
    }
}

/// For each token whether it is in device code.
fn device_code(source: &Source, tokens: &[CxxToken], of_kernels: &BTreeSet<String>) -> Vec<bool> {
    let text = |at: usize| tokens.get(at).map_or("", |token: &CxxToken| source.slice(token.span));
    let mut device = vec![false; tokens.len()];
    let mut at = 0;
    while at < tokens.len() {
        if !matches!(text(at), "__global__" | "__device__") && !of_kernels.contains(text(at)) {
            at += 1;
            continue;
        }
        let (mut end, mut round, mut braces, mut host) = (at, 0usize, 0usize, false);
        // `__host__` may stand on either side.
        let mut before = at;
        while before > 0 && !matches!(text(before - 1), ";" | "}" | "{" | ">") {
            before -= 1;
            host |= text(before) == "__host__";
        }
        while end < tokens.len() {
            match text(end) {
                "__host__" if braces == 0 && round == 0 => host = true,
                "(" => round += 1,
                ")" => round = round.saturating_sub(1),
                "{" => braces += 1,
                "}" => {
                    braces = braces.saturating_sub(1);
                    if braces == 0 {
                        break;
                    }
                }
                ";" if braces == 0 && round == 0 => break,
                _ => {}
            }
            end += 1;
        }
        let end = end.min(tokens.len() - 1);
        if !host {
            device[at..=end].fill(true);
        }
        at = end + 1;
    }
    device
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> HostCode {
        HostCode::new([Arc::new(Source::new("a.cu", text.as_bytes()))])
    }

    #[test]
    fn a_macro_of_device_code_alone_is_none_of_the_hosts() {
        let device = "#ifndef WORK\n#define WORK 2\n#endif\nstatic __device__ float f(float x) { return x * WORK; }\n\
                      template <class T>\n__global__ void k(T *x) { for (int i = 0; i < WORK; ++i) { x[i] = f(1); } }\n";
        assert_eq!(code(device).use_of("WORK"), None);
        for (host, line) in [
            ("void go() { k<<<n / WORK, 256>>>(x); }\n", 7),
            ("#define BLOCKS(n) ((n) / \\\n    WORK)\n", 7),
            ("__host__ __device__ int per() { return WORK; }\n", 7),
            ("__device__ __host__ int per() { return WORK; }\n", 7),
        ] {
            let found = code(&format!("{device}{host}")).use_of("WORK");
            assert_eq!(found, Some(format!("a.cu({line})")), "{host}");
        }
        assert_eq!(code("// WORK\nconst char *s = \"WORK\"; int WORKER;\n#define WORKERS 3\n").use_of("WORK"), None);
    }

    /// Looking from each launch back to the beginning of the text would not end.
    #[test]
    fn a_text_of_a_hundred_thousand_launches_is_read_once() {
        let launches: String = (0..100_000)
            .map(|n| format!("void go{n}() {{ cudaLaunchKernel((void *)k{n}, 1, 2, a, 0, 0); }}\n"))
            .collect();
        let host = code(&launches);
        for kernel in ["k0", "k50000", "k99999"] {
            assert_eq!(host.unreached(kernel).len(), 1, "{kernel}");
        }
    }

    #[test]
    fn launches_without_a_stub_are_told_with_their_places() {
        let cases = [
            ("void go() { k<<<1, 256>>>(x); ns::k<float><<<1, 2>>>(x); }", None),
            ("void go() { cudaFuncSetAttribute(k, a, 1); other.k(3); }", None),
            ("void go() { cudaLaunchKernel((void *)k, 1, 2, args, 0, 0); k<<<1, 2>>>(x); }", Some("cudaLaunchKernel")),
            ("void go() { cudaLaunchKernelEx(&config, k<float>, x); }", Some("cudaLaunchKernelEx")),
            ("void go() { cudaLaunchCooperativeKernel(k, 1, 2, args); }", Some("cudaLaunchCooperativeKernel")),
            ("void go() { p.func = (void *)k; cudaGraphAddKernelNode(&n, g, 0, 0, &p); }", Some("a kernel's address")),
            ("__global__ void parent() { k<<<1, 256>>>(x); }", Some("those of device code")),
            // Functions of the program's own, in the source and in what it includes.
            ("void go() { enqueue(stream, k<float>, x); }", Some("and `enqueue` calls cudaLaunchKernelExC")),
            ("void go() { queue->enqueue(stream, k<float>, x); }", Some("and `enqueue` calls cudaLaunchKernelExC")),
            (
                "template <class F> void run(F f) { if (pdl) { cudaLaunchKernelEx(&c, f); } f<<<1, 2>>>(); }\nvoid go() { run(k); }",
                Some("and `run` calls cudaLaunchKernelEx"),
            ),
            (
                "template <class F> auto run(F f) -> cudaError_t { return cudaLaunchKernelEx(&c, f); }\nvoid go() { run(k); }",
                Some("and `run` calls cudaLaunchKernelEx"),
            ),
            (
                "void go() { auto run = [&](auto f) mutable -> int { for (;;) { cudaLaunchKernelEx(&c, f); } };\nrun(k); }",
                Some("and `run` calls cudaLaunchKernelEx"),
            ),
            (
                "auto run = [] { cudaLaunchKernelEx(&c, f); };\nvoid go() { run(k); }",
                Some("and `run` calls cudaLaunchKernelEx"),
            ),
            (
                "template <class F> void run(F f, decltype(p->x) y) { cudaLaunchKernelEx(&c, f); }\nvoid go() { run(k); }",
                Some("and `run` calls cudaLaunchKernelEx"),
            ),
            // One call among the arguments of another.
            (
                "template <class F> void run(int n, F f) { cudaLaunchKernelEx(&c, f, size(n)); }\nvoid go() { run(run(1, 0), k); }",
                Some("and `run` calls cudaLaunchKernelEx"),
            ),
            (
                "template <int N, class F> void run(F f) { cudaLaunchKernelEx(&c, f); }\nvoid go() { run<(N > 2)>(k); }",
                Some("and `run` calls cudaLaunchKernelEx"),
            ),
            // Constructors.
            (
                "template <class F> struct Run { Run(F f, int n) : n_(n), f_{f} { cudaLaunchKernelEx(&c, f); } };\nvoid go() { static Run<F> run(k, 1); }",
                Some("and `Run` calls cudaLaunchKernelEx"),
            ),
            (
                "struct Run { Run(F f) noexcept : Base(f) { cudaLaunchKernelEx(&c, f); } };\nvoid go() { Run run{k}; }",
                Some("and `Run` calls cudaLaunchKernelEx"),
            ),
            (
                "Run::Run(F f) { cudaLaunchKernelEx(&c, f); }\nvoid go() { auto run = new Run(k); }",
                Some("and `Run` calls cudaLaunchKernelEx"),
            ),
            (
                "Run::~Run() { cudaLaunchKernelEx(&c, f); }\nvoid go() { auto run = std::make_unique<Run>(k); }",
                Some("and `Run` calls cudaLaunchKernelEx"),
            ),
            ("struct Run final { Run() { cudaLaunchKernelEx(&c, 0); }\nvoid go() { set(k); } };", None),
            ("struct Run { Run(F k) { cudaLaunchKernelEx(&c, k_); } };", None),
            ("Run::Run(F f) : f_(f) { cudaLaunchKernelEx(&c, f); }\nvoid go() { f_(k); }", None),
            (
                "Run::Run(F f) { cudaLaunchKernelEx(&c, f); }\nvoid go() { Run run(3); use(k); if (a < Run && b > (k)) {} }",
                None,
            ),
            ("void go() { p->use(k); if (a->b) { cudaLaunchKernelEx(&c, f); } }", None),
            ("template <class F> void run(F k) { [&] { cudaLaunchKernelEx(&c, 0); }(); }", None),
            ("void other() { cudaLaunchKernelEx(&c, f); }\nvoid go() { run(k); other(); k<<<1, 2>>>(other()); }", None),
        ];
        let header = "struct Queue { template <class F> void enqueue(cudaStream_t s, F f) const {\nfor (;;) { cudaLaunchKernelExC(&c, f, 0); } } };\n";
        for (text, expected) in cases {
            let source = format!("__global__ void k(float *x) {{ x[0] = 1; }}\n{text}\n");
            let read = |path: &str, text: &str| Arc::new(Source::new(path, text.as_bytes()));
            let found = HostCode::new([read("a.cu", &source), read("queue.h", header)]).unreached("k");
            assert_eq!(found.len(), usize::from(expected.is_some()), "{text}: {found:?}");
            for warning in found {
                assert!(warning.message.ends_with(expected.unwrap_or_default()), "{text}: {}", warning.message);
                assert_eq!(warning.line as usize, 1 + text.lines().count());
            }
        }
    }
}
