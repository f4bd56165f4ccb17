//! Host code -> whether the launches of a kernel hang on a macro.
//!
//! What a launch hangs on is followed from its arguments: names to what is assigned to them in the same function, or to what a file
//! defines them as; functions to their bodies; parameters to the calls of their function. Without a preprocessor or types that is a
//! guess: it errs where a name has two meanings, and where a number of blocks hangs on the macro in another way than its grid should.

use super::cxx::CxxKind;
use super::host_code::{CONTROL, File, HostCode, SPECIFIERS};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Beginnings of the names of calls that take a kernel and launch nothing.
const ASKING: [&str; 2] = ["cudaFunc", "cudaOccupancy"];

/// Where a name is used: the file, the function around it where there is one, and its text.
type Used<'a> = (usize, Option<(usize, usize)>, &'a str);

/// A parameter by its place.
#[derive(Clone, Copy)]
enum Parameter {
    Own(usize),
    OfTemplate(usize),
}

impl HostCode {
    /// Whether host code launches the kernel, and each launch that it writes hangs on the macro: the grid, where that `divides` the work.
    pub fn launches_follow(&self, kernel: &str, name: &str, divides: bool) -> bool {
        let launches = self.launch_sites(kernel, divides);
        let (launching, following) = (self.macros_of(kernel), self.macros_of(name));
        let hangs_on = |(file, from, to): (usize, usize, usize)| self.hangs_on(file, from, to, name, &following);
        // `#define LAUNCH(n) k<<<BLOCKS(n), 256>>>(n)`
        let of_macro = |word: &&str| {
            let mut calls = self
                .files
                .iter()
                .enumerate()
                .flat_map(|(number, file)| file.calls(word).into_iter().map(move |(from, to)| (number, from, to)));
            following.contains(word) || calls.all(hangs_on)
        };
        !(launches.is_empty() && launching.is_empty())
            && launches.into_iter().all(hangs_on)
            && launching.iter().all(of_macro)
    }

    /// The macros whose definitions have a name, themselves or by further macros.
    fn macros_of<'a>(&'a self, name: &'a str) -> HashSet<&'a str> {
        let mut by_word: HashMap<&str, Vec<&str>> = HashMap::new();
        for file in &self.files {
            for (defined, words) in &file.macros {
                for word in words {
                    by_word.entry(word).or_default().push(file.source.slice(*defined));
                }
            }
        }
        let (mut found, mut pending) = (HashSet::new(), vec![name]);
        while let Some(word) = pending.pop() {
            let of_word = by_word.remove(word).unwrap_or_default();
            pending.extend(of_word.into_iter().filter(|defined| found.insert(*defined)));
        }
        found
    }

    /// The first place where a file that the source includes defines the macro, or its host code uses it: other sources may include the
    /// file, and know of no value but its own.
    pub fn shared_use_of(&self, name: &str) -> Option<String> {
        self.files.iter().skip(1).find_map(|file| {
            let source = &file.source;
            let definition = file.macros.iter().find(|(defined, _)| source.slice(*defined) == name);
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
        kernels.filter(|&other| other != kernel && !self.launches_follow(other, name, true)).collect()
    }

    /// The arguments of each launch of the kernel, and of each call that it is handed to, as tokens of a file.
    fn launch_sites(&self, kernel: &str, of_grid: bool) -> Vec<(usize, usize, usize)> {
        let mut found = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            for &at in file.places(kernel).iter().filter(|&&at| !file.device[at] && !file.is_other(at)) {
                match file.site(at, of_grid) {
                    Some((from, to)) => found.push((number, from, to)),
                    // `auto kernel = k<float>;`
                    None => {
                        let Some((alias, (begin, end))) = file.alias(at).zip(file.function(at)) else { continue };
                        let places = file.places(alias).iter().filter(|&&place| begin < place && place < end);
                        found.extend(
                            places.filter_map(|&place| file.site(place, of_grid)).map(|(from, to)| (number, from, to)),
                        );
                    }
                }
            }
        }
        found
    }

    /// Whether tokens hang on the macro, which these macros hang on.
    fn hangs_on(&self, file: usize, from: usize, to: usize, name: &str, following: &HashSet<&str>) -> bool {
        let (mut seen, mut outside): (HashSet<Used<'_>>, HashSet<&str>) = (HashSet::new(), HashSet::new());
        let mut pending: Vec<(usize, usize, usize)> = vec![(file, from, to)];
        while let Some((number, from, to)) = pending.pop() {
            let Some(file) = self.files.get(number) else { continue };
            let function = file.function(from);
            for at in (from..to).filter(|&at| file.tokens.get(at).is_some_and(|token| token.kind == CxxKind::Name)) {
                let word = file.text(at);
                if word == name || following.contains(word) {
                    return true;
                }
                if seen.insert((number, function, word)) {
                    match function.and_then(|function| self.values(number, function, word)) {
                        Some(values) => pending.extend(values),
                        None if outside.insert(word) => pending.extend(self.values_outside(word)),
                        None => {}
                    }
                }
            }
        }
        false
    }

    /// The tokens that a name in a function has its value from there; `None` where nothing there tells.
    fn values(&self, number: usize, (begin, end): (usize, usize), name: &str) -> Option<Vec<(usize, usize, usize)>> {
        let file = self.files.get(number)?;
        let all = file.places(name);
        let places = &all[all.partition_point(|&at| at < begin)..all.partition_point(|&at| at <= end)];
        let here = |(from, to): (usize, usize)| (number, from, to);
        let own: Vec<_> = places.iter().filter_map(|&at| file.assigned(at)).map(here).collect();
        // A parameter, its own or its template's, is what calls of the function give there.
        if let Some(parameter) = file.parameter(begin, name) {
            let called = file.text(begin);
            let calls = self.files.iter().enumerate().flat_map(|(number, file)| {
                file.passed(called, parameter).into_iter().map(move |(from, to)| (number, from, to))
            });
            return Some(own.into_iter().chain(calls).collect());
        }
        if !own.is_empty() {
            return Some(own);
        }
        // `dim3 grid; shape(grid, n);`
        let handed = |&at: &usize| {
            let is_argument =
                at > 0 && matches!(file.text(at - 1), "(" | ",") && matches!(file.text(at + 1), "," | ")");
            if is_argument { file.handed_to(at) } else { None }
        };
        let declared = |behind: &[&str]| {
            places.iter().any(|&at| at > begin && file.is_declaration(at) && behind.contains(&file.text(at + 1)))
        };
        if declared(&[";"]) {
            return Some(places.iter().filter_map(handed).map(here).collect());
        }
        // What a lambda's is, its calls here give.
        declared(&[",", ")"]).then(|| vec![here((file.body(begin), end))])
    }

    /// The tokens that a name has its value from that no function tells: of the file, or of another, or a member of a class. Functions by
    /// their bodies, and what is assigned anywhere but to a variable of a function's own.
    fn values_outside(&self, name: &str) -> Vec<(usize, usize, usize)> {
        let mut found = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            for &at in file.places(name).iter().filter(|&&at| !file.device[at]) {
                match file.function(at) {
                    Some((begin, end)) if begin == at => found.push((number, file.body(begin), end)),
                    Some(_) if file.is_declaration(at) => {}
                    _ => found.extend(file.assigned(at).map(|(from, to)| (number, from, to))),
                }
            }
        }
        found
    }
}

impl File {
    /// The end of a launch's arguments that begin at `start`, at its `>>>`.
    fn end_of_launch(&self, start: usize) -> Option<usize> {
        (start..self.tokens.len()).find(|&at| (at..at + 3).all(|at| self.text(at) == ">"))
    }

    /// The arguments of the launch of what is named at `at`, or the grid alone, or the outermost call that it is handed to.
    fn site(&self, at: usize, of_grid: bool) -> Option<(usize, usize)> {
        let Some(mark) = self.launch_mark(at) else { return self.handed_to(at) };
        let grid = self.arguments(mark + 3, ">>>").first().copied().filter(|_| of_grid);
        grid.or_else(|| Some((mark + 3, self.end_of_launch(mark + 3)?)))
    }

    /// Whether the name at `at` is a member's, or is called as a function that is no kernel.
    fn is_other(&self, at: usize) -> bool {
        if self.launch_mark(at).is_some() {
            return false;
        }
        let behind =
            if self.text(at + 1) == "<" { self.closing(at + 1).map_or(at + 1, |close| close + 1) } else { at + 1 };
        self.is_member(at) || self.text(behind) == "("
    }

    /// The name before the template arguments that end at `close`.
    fn template_of(&self, close: usize) -> Option<usize> {
        let mut depth = 0usize;
        let open = (0..=close).rev().find(|&at| {
            match self.text(at) {
                ">" => depth += 1,
                "<" => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        })?;
        open.checked_sub(1)
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
            let named = if self.text(called) == ">" { self.template_of(called)? } else { called };
            let is_called = self.tokens[named].kind == CxxKind::Name && !self.text(named).ends_with("_cast");
            (is_called && !CONTROL.contains(&self.text(named))).then_some(called)
        });
        let innermost = calls.next()?;
        if ASKING.iter().any(|begin| self.text(innermost).starts_with(begin)) {
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

    /// The functions with a body, each from its name to the end of that; none within another.
    pub fn functions(&self) -> Vec<(usize, usize)> {
        let (mut found, mut at) = (Vec::new(), 0);
        while at < self.tokens.len() {
            let function = (self.text(at) == "{").then(|| Some((self.defined(at)?, self.closing(at)?))).flatten();
            if let Some((name, end)) = function {
                found.push((name, end));
                at = end;
            }
            at += 1;
        }
        found
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
        let mut words = (0..begin).rev().map(|at| self.text(at)).take_while(|word| !matches!(*word, ";" | "}" | "{"));
        words.any(|word| self.declares_kernel(word))
    }

    /// The bracket that opens the parameters of the function whose name is at `begin`.
    fn parameters(&self, begin: usize) -> Option<usize> {
        (begin..self.tokens.len()).find(|&at| self.text(at) == "(")
    }

    /// Where the body begins of the function whose name is at `begin`.
    fn body(&self, begin: usize) -> usize {
        let close = self.parameters(begin).and_then(|open| self.closing(open)).unwrap_or(begin);
        (close..self.tokens.len()).find(|&at| self.text(at) == "{").unwrap_or(close)
    }

    /// Which parameter of the function whose name is at `begin` has this name, or of its template.
    fn parameter(&self, begin: usize, name: &str) -> Option<Parameter> {
        let at_name = |&(from, to): &(usize, usize)| {
            let value = (from..to).find(|&at| self.text(at) == "=").unwrap_or(to);
            value.checked_sub(1).is_some_and(|last| last >= from && self.text(last) == name)
        };
        let own = self.arguments(self.parameters(begin)? + 1, ")");
        if let Some(number) = own.iter().position(at_name) {
            return Some(Parameter::Own(number));
        }
        let declaration = (0..begin).rev().take_while(|&at| !matches!(self.text(at), ";" | "}" | "{")).last()?;
        let is_template = self.text(declaration) == "template" && self.text(declaration + 1) == "<";
        let parameters = if is_template { self.of_template(declaration + 1) } else { Vec::new() };
        parameters.iter().position(at_name).map(Parameter::OfTemplate)
    }

    /// The ranges between commas of the template arguments or parameters that begin at `open`.
    fn of_template(&self, open: usize) -> Vec<(usize, usize)> {
        let close = self.closing(open).unwrap_or(open);
        let (mut found, mut depth, mut from) = (Vec::new(), 0usize, open + 1);
        for at in open + 1..close {
            match self.text(at) {
                "(" | "{" | "[" | "<" => depth += 1,
                ")" | "}" | "]" | ">" => depth = depth.saturating_sub(1),
                "," if depth == 0 => {
                    found.push((from, at));
                    from = at + 1;
                }
                _ => {}
            }
        }
        found.push((from, close));
        found
    }

    /// What calls of a function give a parameter: the argument at its place, or all of them where there is none, as for one with a default
    /// or one that the others tell.
    fn passed(&self, name: &str, parameter: Parameter) -> Vec<(usize, usize)> {
        let of_call = |(from, to): (usize, usize)| {
            let is_template = self.text(from) == "<";
            let open = if is_template { self.closing(from).map_or(from, |close| close + 1) } else { from };
            let (given, number) = match parameter {
                Parameter::Own(number) => (self.arguments(open + 1, ")"), number),
                Parameter::OfTemplate(number) => {
                    (if is_template { self.of_template(from) } else { Vec::new() }, number)
                }
            };
            given.get(number).copied().filter(|(from, to)| from < to).unwrap_or((from, to))
        };
        self.calls(name).into_iter().map(of_call).collect()
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
            "(" | "{" => self.is_declaration(at) || matches!(before, ":" | ","),
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
            (
                "void shape(dim3 &g, int n) { g = dim3(n / WORK); }\nvoid go(int n) { dim3 g; shape(g, n / WORK); k<<<g, 256>>>(n, x); }",
                true,
            ),
            ("#define LAUNCH(n) k<<<(n) / (256 * WORK), 256>>>(n, x)\nvoid go(int n) { LAUNCH(n); }", true),
            ("#define LAUNCH(blocks) k<<<blocks, 256>>>(n, x)\nvoid go(int n) { LAUNCH(n / WORK); }", true),
            ("#define PER \\\r\n    (256 * WORK)\nvoid go(int n) { k<<<n / PER, 256>>>(n, x); }", true),
            ("void go(int n) { cudaLaunchKernel(reinterpret_cast<const void *>(&k<float>), n / WORK, 256, a); }", true),
            (
                "void go(int n) { cudaFuncSetAttribute(reinterpret_cast<const void *>(k<float>), a, 1); k<<<n / WORK, 256>>>(n, x); }",
                true,
            ),
            ("void go(int n) { k<<<n / WORK, 256>>>(n, x); print(s.k, p->k); check(cpu::k(n)); }", true),
            // A launch that knows nothing of it.
            ("#define PER 4096 // 256 * WORK\nvoid go(int n) { k<<<n / PER, 256>>>(n, x); }", false),
            (
                "#define LAUNCH(blocks) k<<<blocks, 256>>>(n, x)\nvoid go(int n) { LAUNCH(n / 4); }\nint w = WORK;",
                false,
            ),
            ("void go(int n) { k<<<n / WORK, 256>>>(n, x); auto run = k<float>; run<<<n / 4, 256>>>(n, x); }", false),
            ("void go(int n) { k<<<n / 4, 256, WORK * sizeof(float)>>>(n, x); }", false),
            ("void run(int n, int w) { k<<<n / 4, 256>>>(n, x, w); }\nvoid go(int n) { run(n, WORK); }", false),
            ("template <int W> void run(int n) { k<<<n / 4, 256>>>(n, x); }\nvoid go(int n) { run<WORK>(n); }", false),
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
            assert_eq!(code(&[text]).launches_follow("k", "WORK", true), expected, "{text}");
        }
        let of_block = "void go(int n) { k<<<n / 4, 256, WORK * sizeof(float)>>>(n, x); }";
        assert!(code(&[of_block]).launches_follow("k", "WORK", false));
        let launches = "void go(int n) { k<<<n / per(), 256>>>(n, x); }";
        assert!(code(&[launches, "inline int per() { return 256 * WORK; }"]).launches_follow("k", "WORK", true));
    }

    #[test]
    fn other_kernels_with_a_macro_are_told() {
        for (text, expected) in [
            ("__global__ void j() { f(WORK); }\nvoid go(int n) { j<<<n / 4, 256>>>(); }", &["j"][..]),
            ("static __global__ void __launch_bounds__(256) j() { f(WORK); }", &["j"]),
            ("__global__ void j() { f(WORK); }\nvoid go(int n) { j<<<n / WORK, 256>>>(); }", &[]),
            ("KERNEL j() { f(WORK); }\nvoid go(int n) { j<<<n / 4, 256>>>(); }", &["j"]),
            ("__global__ void j() { f(4); }\n__device__ int d() { return WORK; }\nint h() { return WORK; }", &[]),
        ] {
            let header = "#define KERNEL static __global__ void\n";
            assert_eq!(code(&[text, header]).others_with("k", "WORK"), expected, "{text}");
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
