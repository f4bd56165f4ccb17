//! Host code -> whether the launches of a kernel hang on a macro.
//!
//! What a launch hangs on is followed from its arguments: names to what is assigned to them in the same function, or to what a file
//! defines them as; functions to their bodies; parameters to the calls of their function. Without a preprocessor or types that is a
//! guess, which goes wrong in one direction where names have two meanings; so a launch that names nothing of the macro is surely told.

use super::cxx::CxxKind;
use super::host_code::{CONTROL, File, HostCode, SPECIFIERS};
use super::macros;
use std::collections::{BTreeSet, HashSet};

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
        let launches = self.launch_sites(kernel);
        !launches.is_empty() && launches.into_iter().all(|(file, from, to)| self.hangs_on(file, from, to, name))
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
            let around: BTreeSet<(usize, usize)> =
                file.places(name).iter().filter_map(|&at| file.function(at)).collect();
            around.into_iter().filter(|&(begin, _)| file.is_kernel(begin)).map(|(begin, _)| file.text(begin))
        });
        kernels.filter(|&other| other != kernel && !self.launches_follow(other, name)).collect()
    }

    /// The arguments of each launch of the kernel, and of each call that it is handed to, as tokens of a file.
    fn launch_sites(&self, kernel: &str) -> Vec<(usize, usize, usize)> {
        let mut found = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            for &at in file.places(kernel).iter().filter(|&&at| !file.device[at]) {
                match file.site(at) {
                    Some((from, to)) => found.push((number, from, to)),
                    // `auto kernel = k<float>;`
                    None => {
                        let Some((alias, (begin, end))) = file.alias(at).zip(file.function(at)) else { continue };
                        let places = file.places(alias).iter().filter(|&&place| begin < place && place < end);
                        found.extend(places.filter_map(|&place| file.site(place)).map(|(from, to)| (number, from, to)));
                    }
                }
            }
        }
        found
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
            let places = file.places(name).iter().filter(|&&at| begin <= at && at <= end);
            let own: Vec<_> = places.filter_map(|&at| file.assigned(at)).map(|(from, to)| (number, from, to)).collect();
            // A parameter, its own or its template's, is what calls of the function give.
            if file.is_parameter(begin, name) {
                let called = file.text(begin);
                let calls = self.files.iter().enumerate().flat_map(|(number, file)| {
                    file.calls(called).into_iter().map(move |(from, to)| (number, from, to))
                });
                return own.into_iter().chain(calls).collect();
            }
            // What a lambda's is, its calls here give.
            let of_lambda = |&at: &usize| file.is_declared_at(at) && matches!(file.text(at + 1), "," | ")");
            if own.is_empty() && file.places(name).iter().filter(|&&at| begin < at && at <= end).any(of_lambda) {
                return vec![(number, file.body(begin), end)];
            }
            if !own.is_empty() {
                return own;
            }
        }
        // Of the file, or of another, or a member of a class: functions by their bodies, and what is assigned anywhere but to a variable of a
        // function's own.
        let mut found = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            for &at in file.places(name).iter().filter(|&&at| !file.device[at]) {
                match file.function(at) {
                    Some((begin, end)) if begin == at => found.push((number, file.body(begin), end)),
                    Some(_) if file.is_declared_at(at) => {}
                    _ => found.extend(file.assigned(at).map(|(from, to)| (number, from, to))),
                }
            }
        }
        found
    }

    /// Whether a macro's definition has the other's name, itself or by further macros.
    fn is_defined_by<'a>(&'a self, word: &'a str, name: &str, seen: &mut HashSet<&'a str>) -> bool {
        if !seen.insert(word) {
            return false;
        }
        let bodies = self.files.iter().filter_map(|file| file.definitions.get(word)).flatten();
        let mut words = bodies.flat_map(|body| body.split(|c: char| !(c.is_alphanumeric() || c == '_')));
        words.any(|word| word == name || !word.is_empty() && self.is_defined_by(word, name, seen))
    }
}

impl File {
    /// The end of a launch's arguments that begin at `start`, at its `>>>`.
    fn end_of_launch(&self, start: usize) -> Option<usize> {
        (start..self.tokens.len()).find(|&at| (at..at + 3).all(|at| self.text(at) == ">"))
    }

    /// The arguments of the launch of what is named at `at`, or of the outermost call that it is handed to.
    fn site(&self, at: usize) -> Option<(usize, usize)> {
        match self.launch_mark(at) {
            Some(mark) => Some((mark + 3, self.end_of_launch(mark + 3)?)),
            None => self.handed_to(at),
        }
    }

    /// The tokens before `at` that its statement begins with, from the nearest to the farthest; those in brackets that are closed before
    /// it are left out.
    fn statement_before(&self, at: usize) -> Vec<usize> {
        let (mut found, mut depth) = (Vec::new(), 0usize);
        for place in (0..at).rev() {
            let word = self.text(place);
            let is_closed = depth > 0;
            match word {
                ")" | "]" => depth += 1,
                "(" | "[" => depth = depth.saturating_sub(1),
                ";" | "}" if depth == 0 => break,
                "{" if depth == 0 => {
                    let before = place.checked_sub(1).map_or("", |before| self.text(before));
                    // The body of a function or of a statement; else it is a list.
                    if matches!(before, ")" | ";" | "{" | "}" | "else" | "do" | "try" | "")
                        || SPECIFIERS.contains(&before)
                    {
                        break;
                    }
                }
                _ => {}
            }
            if !is_closed && depth == 0 {
                found.push(place);
            }
        }
        found
    }

    /// The outermost call that the kernel named at `at` is handed to; none where it is only asked about.
    fn handed_to(&self, at: usize) -> Option<(usize, usize)> {
        let before = self.statement_before(at);
        let mut calls = before.into_iter().filter(|&open| self.text(open) == "(").filter_map(|open| {
            let called = open.checked_sub(1)?;
            let is_called = self.text(called) == ">" || self.tokens[called].kind == CxxKind::Name;
            (is_called && !CONTROL.contains(&self.text(called))).then_some(called)
        });
        let innermost = calls.next()?;
        if ASKING.contains(&self.text(innermost)) {
            return None;
        }
        let outermost = calls.last().unwrap_or(innermost);
        Some((outermost, self.closing(outermost + 1)?))
    }

    /// What the kernel named at `at` is called besides, where it is assigned to something.
    fn alias(&self, at: usize) -> Option<&str> {
        let equals = self.statement_before(at).into_iter().find(|&place| self.text(place) == "=")?;
        let name = equals.checked_sub(1).filter(|&name| self.tokens[name].kind == CxxKind::Name)?;
        Some(self.text(name))
    }

    /// The function that a token is in, from its name to the end of its body.
    fn function(&self, at: usize) -> Option<(usize, usize)> {
        let last = self.functions.partition_point(|&(begin, _)| begin <= at).checked_sub(1)?;
        self.functions.get(last).copied().filter(|&(_, end)| at <= end)
    }

    /// Whether the function whose name is at `begin` is a kernel.
    fn is_kernel(&self, begin: usize) -> bool {
        if !self.device[begin] {
            return false;
        }
        let words = (0..begin).rev().map(|at| self.text(at)).take_while(|word| !matches!(*word, ";" | "}" | "{"));
        let of_kernels = macros::of_kernels(&self.source);
        words.into_iter().any(|word| word == "__global__" || of_kernels.contains(&word))
    }

    /// Where the body begins of the function whose name is at `begin`.
    fn body(&self, begin: usize) -> usize {
        let parameters = (begin..self.tokens.len()).find(|&at| self.text(at) == "(");
        let close = parameters.and_then(|open| self.closing(open)).unwrap_or(begin);
        (close..self.tokens.len()).find(|&at| self.text(at) == "{").unwrap_or(close)
    }

    /// Whether the function whose name is at `begin` has a parameter of this name, or its template has.
    fn is_parameter(&self, begin: usize, name: &str) -> bool {
        let body = self.body(begin);
        let of_template =
            (0..begin).rev().take_while(|&at| !matches!(self.text(at), ";" | "}" | "{")).last().unwrap_or(begin);
        let from = if self.text(of_template) == "template" { of_template } else { begin };
        self.places(name).iter().any(|&at| from < at && at < body && at != begin)
    }

    /// Whether the name at `at` stands behind a type, and so is declared there.
    fn is_declared_at(&self, at: usize) -> bool {
        let is_name = |at: usize| self.tokens.get(at).is_some_and(|token| token.kind == CxxKind::Name);
        let Some(before) = at.checked_sub(1) else { return false };
        let further = before.checked_sub(1);
        match self.text(before) {
            "return" => false,
            // `const dim3 &grid`, and neither `f(&grid)` nor `this->grid`.
            "&" => further.is_some_and(|further| is_name(further) || self.text(further) == ">"),
            ">" => further.is_none_or(|further| self.text(further) != "-"),
            _ => is_name(before),
        }
    }

    /// What is assigned to the name at `at`, or to a part of it: `per = 2 * w;`, `dim3 grid(a, b);`, `c.gridDim = g;`, `: per(w)`.
    fn assigned(&self, at: usize) -> Option<(usize, usize)> {
        let mut next = at + 1;
        loop {
            next = match self.text(next) {
                "." => next + 2,
                "-" if self.text(next + 1) == ">" => next + 3,
                "[" => self.square(next) + 1,
                _ => break,
            };
        }
        // `f(&blocks, per)`
        if at > 1 && self.text(at - 1) == "&" && matches!(self.text(at - 2), "(" | ",") {
            return self.handed_to(at);
        }
        // `auto [grid, block] = shape(n);`
        if matches!(self.text(next), "," | "]") {
            let is_listed = |&at: &usize| {
                self.text(at) == "," || self.tokens.get(at).is_some_and(|token| token.kind == CxxKind::Name)
            };
            let close = (next..self.tokens.len()).find(|at| !is_listed(at)).filter(|&close| self.text(close) == "]")?;
            return (self.text(close + 1) == "=").then(|| (close + 1, self.end_of_value(close + 1)));
        }
        let before = at.checked_sub(1).map_or("", |before| self.text(before));
        let is_value = match self.text(next) {
            "=" => self.text(next + 1) != "=",
            // Of a variable, or of a member that a constructor makes.
            "(" | "{" => self.is_declared_at(at) || matches!(before, ":" | ","),
            "+" | "-" | "*" | "/" | "%" | "|" => self.text(next + 1) == "=",
            _ => false,
        };
        is_value.then(|| (next, self.end_of_value(next)))
    }

    /// The arguments of each call of a function, those of its template included.
    fn calls(&self, name: &str) -> Vec<(usize, usize)> {
        let is_own = |at: usize| self.function(at).is_some_and(|(begin, _)| begin == at);
        let named = self.places(name).iter().copied().filter(|&at| !is_own(at) && !self.device[at]);
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
            ("template <int PER> void run() { k<<<n / PER, 256>>>(n, x); }\nvoid go(int n) { run<WORK>(); }", true),
            (
                "struct Run { int per_; Run(int w) : per_(w * WORK) {} void go(int n) { k<<<n / per_, 256>>>(n, x); } };",
                true,
            ),
            ("void Run::set() { per_ = WORK; }\nvoid Run::go(int n) { k<<<n / per_, 256>>>(n, x); }", true),
            (
                "void go(int n) { auto run = k<float>; cudaFuncSetAttribute(run, a, 1); run<<<n / WORK, 256>>>(n, x); }",
                true,
            ),
            ("void go(int n) { auto run = n > 3 ? k<float> : k<double>; CHECK(launch(run, n / WORK)); }", true),
            ("void go(int n) { CHECK(launch(wrap(k<float>), n / WORK)); }", true),
            ("void go(int n) { if (launch({k<float>, 3}, n / WORK)) { return; } }", true),
            ("void go(int n) { auto f = [&](int per) { k<<<n / per, 256>>>(n, x); }; f(WORK); }", true),
            ("void go(int n) { const auto [g, b] = shape(n, WORK); k<<<g, b>>>(n, x); }", true),
            // A launch that knows nothing of it.
            ("void go(int n) { auto run = k<float>; run<<<n / 4, 256>>>(n, x); }\nint w = WORK;", false),
            ("void go(int n) { CHECK(cudaFuncSetAttribute(k<float>, a, WORK)); k<<<n / 4, 256>>>(n, x); }", false),
            ("void set() { int per_ = WORK; }\nvoid go(int n) { k<<<n / per_, 256>>>(n, x); }", false),
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
