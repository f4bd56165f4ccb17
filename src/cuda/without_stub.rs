//! Host code -> the launches of a kernel that go by no launch stub: those of the runtime's functions, of what calls one, and of device code.

use super::host_code::{File, HostCode};
use super::tokens::CxxKind;
use crate::diag::Diagnostic;
use std::collections::HashMap;

/// A call by which a kernel in its parentheses may be launched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
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

impl HostCode {
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
    pub fn launchers(&self) -> Vec<Call> {
        let call = |at: usize| {
            let launcher = LAUNCHERS.into_iter().find(|launcher| *launcher == self.text(at))?;
            let end = self.given(at).and_then(|open| self.closing(open));
            Some(Call { at, end, launcher, outer: None })
        };
        nested((0..self.tokens.len()).filter_map(call))
    }

    /// The calls of the program's own functions and constructors, given by name with the launchers that they call.
    pub fn wrapped(&self, wrappers: &HashMap<String, &'static str>) -> Vec<Call> {
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

    /// The program's own functions that call a launcher, each with that: a kernel that is handed to one may be launched by it. A function is
    /// the outermost that the launcher is in; besides it there are the lambdas with a name.
    pub fn wrappers(&self) -> Vec<(&str, &'static str)> {
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

    /// The name that the lambda whose body begins at `open` is given: `auto run = [&](auto f) {`.
    fn lambda(&self, open: usize) -> Option<&str> {
        let last = self.signature(open)?;
        let captured = self.opening(last, "(", ")").map_or(Some(last), |begin| begin.checked_sub(1))?;
        let name = self.opening(captured, "[", "]")?.checked_sub(2)?;
        let is_named = self.text(name + 1) == "=" && self.tokens[name].kind == CxxKind::Name;
        is_named.then(|| self.text(name))
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

    /// Whether the name stands as `&name`, `(void *)name` or the value of a `func` field.
    fn is_address(&self, at: usize) -> bool {
        match self.text(at.wrapping_sub(1)) {
            "&" => true,
            ")" => at > 1 && self.text(at - 2) == "*",
            "=" => at > 1 && self.text(at - 2) == "func",
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;
    use std::sync::Arc;

    /// Looking from each launch back to the beginning of the text would not end.
    #[test]
    fn a_text_of_a_hundred_thousand_launches_is_read_once() {
        let launches: String = (0..100_000)
            .map(|n| format!("void go{n}() {{ cudaLaunchKernel((void *)k{n}, 1, 2, a, 0, 0); }}\n"))
            .collect();
        let host = HostCode::new([Arc::new(Source::new("a.cu", launches.as_bytes()))]);
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
