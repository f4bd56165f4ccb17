//! Host code -> whether the launches of a kernel hang on a macro.
//!
//! What a launch hangs on is followed from its arguments: names to what is assigned to them in the same function, or to what a file
//! defines them as; functions to their bodies; parameters to the calls of their function. Without a preprocessor or types that is a
//! guess, which goes wrong in one direction where names have two meanings; so a launch that names nothing of the macro is surely told.

use super::cxx::CxxKind;
use super::host_code::{File, HostCode};
use super::macros;
use std::collections::HashSet;

/// Calls that take a kernel and launch nothing.
const ASKING: [&str; 6] = [
    "cudaFuncSetAttribute",
    "cudaFuncGetAttributes",
    "cudaFuncSetCacheConfig",
    "cudaOccupancyMaxPotentialBlockSize",
    "cudaOccupancyMaxPotentialBlockSizeVariableSMem",
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
];

/// Where a name is used: the file, the function around it where there is one, and its text.
type Used<'a> = (usize, Option<(usize, usize)>, &'a str);

impl HostCode {
    /// Whether host code launches the kernel, and each launch that it writes hangs on the macro.
    pub fn launches_follow(&self, kernel: &str, name: &str) -> bool {
        let mut launches = self.launch_sites(kernel).peekable();
        launches.peek().is_some() && launches.all(|(file, from, to)| self.hangs_on(file, from, to, name))
    }

    /// The first place where a file that the source includes defines the macro, or its host code uses it: other sources may include the
    /// file, and know of no value but its own.
    pub fn shared_use_of(&self, name: &str) -> Option<String> {
        self.files.iter().skip(1).find_map(|file| {
            let source = &file.source;
            let definition = macros::macros(source).into_iter().find(|(defined, _)| source.slice(*defined) == name);
            let place = definition.map(|(defined, _)| defined.start).or_else(|| file.host_use(name))?;
            Some(format!("{}({})", source.path, source.line(place)))
        })
    }

    /// The other kernels whose own code has the macro, and of which not every launch, or none at all, hangs on it.
    pub fn others_with(&self, kernel: &str, name: &str) -> Vec<&str> {
        let kernels = self.files.iter().flat_map(|file| {
            let has = move |&&(begin, end): &&(usize, usize)| {
                file.is_kernel(begin) && (begin..end).any(|at| file.text(at) == name)
            };
            file.functions.iter().filter(has).map(|&(begin, _)| file.text(begin))
        });
        kernels.filter(|&other| other != kernel && !self.launches_follow(other, name)).collect()
    }

    /// The arguments of each launch of the kernel, and of each call that it is handed to, as tokens of a file.
    fn launch_sites<'a>(&'a self, kernel: &'a str) -> impl Iterator<Item = (usize, usize, usize)> + 'a {
        self.files.iter().enumerate().flat_map(move |(number, file)| {
            let named = (0..file.tokens.len()).filter(move |&at| file.text(at) == kernel && !file.device[at]);
            named.filter_map(move |at| {
                let (from, to) = match file.launch_mark(at) {
                    Some(mark) => (mark + 3, file.end_of_launch(mark + 3)?),
                    None => file.handed_to(at)?,
                };
                Some((number, from, to))
            })
        })
    }

    /// Whether tokens hang on the macro.
    fn hangs_on(&self, file: usize, from: usize, to: usize, name: &str) -> bool {
        let mut seen: HashSet<Used<'_>> = HashSet::new();
        let mut pending: Vec<(usize, usize, usize)> = vec![(file, from, to)];
        while let Some((number, from, to)) = pending.pop() {
            let Some(file) = self.files.get(number) else { continue };
            let function = file.function(from);
            for at in (from..to).filter(|&at| file.tokens.get(at).is_some_and(|token| token.kind == CxxKind::Name)) {
                let word = file.text(at);
                if word == name {
                    return true;
                }
                if seen.insert((number, function, word)) {
                    pending.extend(self.values(number, function, word));
                    if self.is_defined_by(word, name, &mut HashSet::new()) {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// The tokens that a name in a function has its value from.
    fn values(&self, number: usize, function: Option<(usize, usize)>, name: &str) -> Vec<(usize, usize, usize)> {
        let Some(file) = self.files.get(number) else { return Vec::new() };
        if let Some((begin, end)) = function {
            let assigned = file.assigned(begin, end, name);
            let own: Vec<_> = assigned.into_iter().map(|(from, to)| (number, from, to)).collect();
            // A parameter is what calls of the function give.
            let is_parameter = (begin..file.body(begin)).any(|at| file.text(at) == name);
            if is_parameter {
                let called = file.text(begin);
                let calls = self.files.iter().enumerate().flat_map(|(number, file)| {
                    file.calls(called).into_iter().map(move |(from, to)| (number, from, to))
                });
                return own.into_iter().chain(calls).collect();
            }
            if !own.is_empty() {
                return own;
            }
        }
        // Of the file, or of another: functions by their bodies.
        let mut found = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            for &(begin, end) in &file.functions {
                if file.text(begin) == name && !file.device[begin] {
                    found.push((number, file.body(begin), end));
                }
            }
            found.extend(file.assigned_outside(name).into_iter().map(|(from, to)| (number, from, to)));
        }
        found
    }

    /// Whether a macro's definition has the other's name, itself or by further macros.
    fn is_defined_by<'a>(&'a self, word: &'a str, name: &str, seen: &mut HashSet<&'a str>) -> bool {
        if !seen.insert(word) {
            return false;
        }
        let bodies = self.files.iter().flat_map(|file| &file.definitions).filter(|(defined, _)| defined == word);
        let words: Vec<&str> =
            bodies.flat_map(|(_, body)| body.split(|c: char| !(c.is_alphanumeric() || c == '_'))).collect();
        words.iter().any(|&word| word == name || !word.is_empty() && self.is_defined_by(word, name, seen))
    }
}

impl File {
    /// The end of a launch's arguments that begin at `start`, at its `>>>`.
    fn end_of_launch(&self, start: usize) -> Option<usize> {
        (start..self.tokens.len()).find(|&at| (at..at + 3).all(|at| self.text(at) == ">"))
    }

    /// The statement of the call that the kernel named at `at` is handed to; none where it is only asked about.
    fn handed_to(&self, at: usize) -> Option<(usize, usize)> {
        let mut depth = 0usize;
        let open = (0..at).rev().find(|&place| {
            let is_open = depth == 0 && matches!(self.text(place), "(" | "{");
            match self.text(place) {
                ")" | "}" => depth += 1,
                "(" | "{" => depth = depth.saturating_sub(1),
                _ => {}
            }
            is_open || depth == 0 && self.text(place) == ";"
        });
        let called = open.filter(|&open| open > 0 && self.text(open) == "(")? - 1;
        if ASKING.contains(&self.text(called)) || !self.is_called(called) {
            return None;
        }
        Some((called, self.closing(called + 1)?))
    }

    /// Whether the name, or the template's instance, that stands before a bracket can be called.
    fn is_called(&self, at: usize) -> bool {
        self.text(at) == ">" || self.tokens.get(at).is_some_and(|token| token.kind == CxxKind::Name)
    }

    /// The function that a token is in, from its name to the end of its body.
    fn function(&self, at: usize) -> Option<(usize, usize)> {
        let last = self.functions.partition_point(|&(begin, _)| begin <= at).checked_sub(1)?;
        self.functions.get(last).copied().filter(|&(_, end)| at <= end)
    }

    /// Whether the function whose name is at `begin` is a kernel.
    fn is_kernel(&self, begin: usize) -> bool {
        let words = (0..begin).rev().map(|at| self.text(at)).take_while(|word| !matches!(*word, ";" | "}" | "{"));
        let of_kernels = macros::of_kernels(&self.source);
        self.device[begin] && words.into_iter().any(|word| word == "__global__" || of_kernels.contains(&word))
    }

    /// Where the body begins of the function whose name is at `begin`.
    fn body(&self, begin: usize) -> usize {
        let parameters = (begin..self.tokens.len()).find(|&at| self.text(at) == "(");
        let close = parameters.and_then(|open| self.closing(open)).unwrap_or(begin);
        (close..self.tokens.len()).find(|&at| self.text(at) == "{").unwrap_or(close)
    }

    /// What is assigned to a name, or to a part of it, between two tokens: `per = 2 * w;`, `dim3 grid(a, b);`, `c.gridDim = g;`.
    fn assigned(&self, begin: usize, end: usize, name: &str) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        for at in (begin..=end).filter(|&at| self.text(at) == name) {
            let mut next = at + 1;
            loop {
                next = match self.text(next) {
                    "." => next + 2,
                    "-" if self.text(next + 1) == ">" => next + 3,
                    "[" => self.square(next) + 1,
                    _ => break,
                };
            }
            let is_typed =
                at > 0 && (self.tokens[at - 1].kind == CxxKind::Name || matches!(self.text(at - 1), ">" | "&"));
            let is_value = match self.text(next) {
                "=" => self.text(next + 1) != "=",
                "(" | "{" => is_typed && self.text(at - 1) != "return",
                "+" | "-" | "*" | "/" | "%" | "|" => self.text(next + 1) == "=",
                _ => false,
            };
            if is_value {
                found.push((next, self.end_of_value(next)));
            }
            // `f(&blocks, per)`
            let is_address = at > 1 && self.text(at - 1) == "&" && matches!(self.text(at - 2), "(" | ",");
            if is_address && let Some(call) = self.handed_to(at) {
                found.push(call);
            }
        }
        found
    }

    /// The same outside all functions.
    fn assigned_outside(&self, name: &str) -> Vec<(usize, usize)> {
        let (mut found, mut from) = (Vec::new(), 0);
        for &(begin, end) in self.functions.iter().chain(std::iter::once(&(self.tokens.len(), self.tokens.len()))) {
            if let Some(last) = begin.checked_sub(1).filter(|&last| last >= from && last < self.tokens.len()) {
                found.extend(self.assigned(from, last, name));
            }
            from = end + 1;
        }
        found
    }

    /// The arguments of each call of a function, those of its template included.
    fn calls(&self, name: &str) -> Vec<(usize, usize)> {
        let is_own = |at: usize| self.functions.iter().any(|&(begin, _)| begin == at);
        let named = (0..self.tokens.len()).filter(|&at| self.text(at) == name && !is_own(at) && !self.device[at]);
        let call = |at: usize| {
            let open = if self.text(at + 1) == "<" { self.closing(at + 1)? + 1 } else { at + 1 };
            (self.text(open) == "(").then(|| self.closing(open)).flatten().map(|close| (at + 1, close))
        };
        named.filter_map(call).collect()
    }

    /// Where a value ends that begins at `from`: at the comma or semicolon behind it, or the bracket around it.
    fn end_of_value(&self, from: usize) -> usize {
        let mut depth = 0usize;
        for at in from..self.tokens.len() {
            match self.text(at) {
                "(" | "{" | "[" => depth += 1,
                ")" | "}" | "]" if depth == 0 => return at,
                ")" | "}" | "]" => depth -= 1,
                ";" => return at,
                "," if depth == 0 => return at,
                _ => {}
            }
        }
        self.tokens.len()
    }

    /// The bracket that closes the square one at `open`.
    fn square(&self, open: usize) -> usize {
        let mut depth = 0usize;
        let close = (open..self.tokens.len()).find(|&at| {
            match self.text(at) {
                "[" => depth += 1,
                "]" => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        });
        close.unwrap_or(open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comment::Source;
    use std::sync::Arc;

    fn code(texts: &[&str]) -> HostCode {
        let kernel = "#ifndef WORK\n#define WORK 4\n#endif\ntemplate <class T> __global__ void k(int n, T *x) { x[0] = WORK; }\n";
        let source = |(number, text): (usize, &&str)| {
            let text = if number == 0 { format!("{kernel}{text}\n") } else { (*text).to_owned() };
            Arc::new(Source::new(format!("{number}.cu"), text.as_bytes()))
        };
        HostCode::new(texts.iter().enumerate().map(source))
    }

    #[test]
    fn launches_follow_a_macro_where_their_arguments_come_from_it() {
        for (text, expected) in [
            ("void go(int n) { k<<<n / (256 * WORK), 256>>>(n, x); }", true),
            ("void go(int n) { k<float><<<dim3(n / WORK), 256>>>(n, x); }", true),
            ("void go(int n) { int per = 256 * WORK; dim3 g((n + per - 1) / per); k<<<g, 256>>>(n, x); }", true),
            ("void go(int n) { dim3 g; g.x = n / WORK; k<<<g, 256>>>(n, x); }", true),
            ("#define PER (256 * WORK)\nvoid go(int n) { k<<<n / PER, 256>>>(n, x); }", true),
            ("#define BLOCKS(n) ((n) / \\\n    WORK)\nvoid go(int n) { k<<<BLOCKS(n), 256>>>(n, x); }", true),
            ("constexpr int PER = 256 * WORK;\nvoid go(int n) { k<<<n / PER, 256>>>(n, x); }", true),
            ("enum { PER = 256 * WORK };\nvoid go(int n) { k<<<n / PER, 256>>>(n, x); }", true),
            ("int blocks(int n) { return n / WORK; }\nvoid go(int n) { k<<<blocks(n), 256>>>(n, x); }", true),
            ("struct Run { int per = WORK; void go(int n) { k<<<n / per, 256>>>(n, x); } };", true),
            ("void run(int blocks) { k<<<blocks, 256>>>(n, x); }\nvoid go(int n) { run(n / WORK); }", true),
            (
                "template <int PER> void run(int n) { k<<<n / PER, 256>>>(n, x); }\nvoid go(int n) { run<WORK>(n); }",
                true,
            ),
            ("void go(int n) { launch(k<float>, n / WORK, 256, n, x); }", true),
            (
                "void go(int n) { cudaLaunchConfig_t c = {}; c.gridDim = n / WORK; cudaLaunchKernelEx(&c, k<float>, n, x); }",
                true,
            ),
            (
                "template <class F> void run(F f, int n) { f<<<n / WORK, 256>>>(n, x); }\nvoid go(int n) { run(k<float>, n); }",
                true,
            ),
            ("void go(int n) { int g; size(&g, n, WORK); k<<<g, 256>>>(n, x); }", true),
            // A launch that knows nothing of it.
            ("void go(int n) { k<<<(n + 1023) / 1024, 256>>>(n, x); }", false),
            ("int padded(int n) { return n + WORK; }\nvoid go(int n) { k<<<n / 1024, 256>>>(n, x); }", false),
            (
                "void other(int n) { dim3 g(n / WORK); j<<<g, 256>>>(); }\nvoid go(int n) { dim3 g(n / 1024); k<<<g, 256>>>(n, x); }",
                false,
            ),
            ("void go(int n) { k<<<n / WORK, 256>>>(n, x); k<<<n / 4, 256>>>(n, x); }", false),
            ("void go(int n) { launch(k<float>, n / 4, 256, n, x); }\nstatic_assert(WORK < 64, \"\");", false),
            // None at all.
            ("static_assert(WORK < 64, \"\");", false),
            ("void go(int n) { cudaFuncSetAttribute(k<float>, a, WORK); }", false),
            ("void go(int n) { cudaFuncSetAttribute(k<float>, a, 1); k<<<n / WORK, 256>>>(n, x); }", true),
        ] {
            assert_eq!(code(&[text]).launches_follow("k", "WORK"), expected, "{text}");
        }
        let launches = "void go(int n) { k<<<n / per(), 256>>>(n, x); }";
        assert!(code(&[launches, "inline int per() { return 256 * WORK; }"]).launches_follow("k", "WORK"));
    }

    #[test]
    fn other_kernels_with_a_macro_are_told() {
        for (text, expected) in [
            ("__global__ void j() { f(WORK); }\nvoid go(int n) { j<<<n / 4, 256>>>(); }", &["j"][..]),
            ("static __global__ void __launch_bounds__(256) j() { f(WORK); }", &["j"]),
            ("__global__ void j() { f(WORK); }\nvoid go(int n) { j<<<n / WORK, 256>>>(); }", &[]),
            ("__global__ void j() { f(4); }\n__device__ int d() { return WORK; }\nint h() { return WORK; }", &[]),
        ] {
            assert_eq!(code(&[text]).others_with("k", "WORK"), expected, "{text}");
        }
    }

    #[test]
    fn what_other_sources_may_include_is_told() {
        for (header, expected) in [
            ("#ifndef WORK\n#define WORK 4\n#endif\n", Some("1.cu(2)")),
            ("inline int per() { return WORK; }\n", Some("1.cu(1)")),
            ("struct Tile { float v[WORK]; };\n", Some("1.cu(1)")),
            ("__device__ inline int per() { return WORK; }\n", None),
            ("", None),
        ] {
            assert_eq!(code(&["", header]).shared_use_of("WORK").as_deref(), expected, "{header}");
        }
    }
}
