//! Source texts -> their tokens, which of them are host code, and whether that uses a macro.
//!
//! No C++ parser: a definition or declaration with `__global__`, or with `__device__` and no `__host__`, is device code, and the
//! rest is host code. So more counts as host code than is, never less.

use super::brackets::matching;
use super::macros;
use super::macros::Macro;
use super::tokens::{CxxKind, CxxToken, cxx_tokens};
use super::without_stub::Call;
use crate::diag::Source;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

/// The code of a source and of what it includes with quotes.
#[derive(Clone, Debug, Default)]
pub struct HostCode {
    pub(crate) files: Vec<File>,
}

#[derive(Clone, Debug)]
pub(crate) struct File {
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
    pub launchers: Vec<Call>,
    pub wrapped: Vec<Call>,
}

/// Words behind which a parenthesis and a brace stand, and no function is defined.
pub(crate) const CONTROL: [&str; 5] = ["if", "for", "while", "switch", "catch"];

/// Words between a function's parameters and its body.
pub(crate) const SPECIFIERS: [&str; 6] = ["const", "noexcept", "override", "final", "mutable", "constexpr"];

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

    /// The last token before the body at `open` that is neither a specifier nor of `-> type`.
    pub fn signature(&self, open: usize) -> Option<usize> {
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
    pub fn opening(&self, close: usize, opens: &str, closes: &str) -> Option<usize> {
        matching((0..=close).rev(), |at| self.text(at), closes, opens)
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
}
