//! Host code -> the launches of a kernel, and whether all of them hang on a macro.
//!
//! A launch is found where the kernel's name is: before `<<<`, in the functions that it is handed to, behind another name that it is given,
//! in a macro. What each hangs on tells `launch_flow`. Where the name is kept in any other way, in a table or a structure or by a return,
//! launches are taken to be that nobody sees, and none is said to follow.

use super::host_code::HostCode;
use super::launch_flow::Verdict::{Follows, Not};
use super::launch_flow::{Arguments, DEEPEST, Flow, MOST, Place, Verdict, all};
use super::launch_text::{Called, Tokens};
use std::collections::{BTreeSet, HashSet};

/// Beginnings of the names of calls that take a kernel and launch nothing.
pub(crate) const ASKING: [&str; 6] = ["cudaFunc", "cudaOccupancy", "decltype", "sizeof", "typeid", "static_assert"];

/// Functions of the runtime that launch, each with the place of the argument that has the grid.
const GRIDS: [(&str, usize); 4] = [
    ("cudaLaunchKernel", 1),
    ("cudaLaunchCooperativeKernel", 1),
    ("cudaLaunchKernelEx", 0),
    ("cudaLaunchKernelExC", 0),
];

impl HostCode {
    /// Whether host code launches the kernel, and each launch that it writes hangs on the macro: the grid, where that `divides` the work.
    pub fn launches_follow(&self, kernel: &str, name: &str, divides: bool) -> bool {
        let mut flow = Flow::new(self, name, divides);
        let mut found = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            for &at in file.places(kernel).iter().filter(|&&at| !file.device[at]) {
                if !flow.is_hidden(number, at) {
                    found.extend(flow.launched(Place { file: number, frame: None }, at));
                }
            }
        }
        for word in self.macros_with(kernel, false, &HashSet::new()) {
            found.extend(flow.launched_by_macro(word));
        }
        !found.is_empty() && found.iter().all(|verdict| *verdict == Follows)
    }

    /// The first place where a file that the source includes defines the macro, or its host code uses it: other sources may include the
    /// file, and know of no value but its own.
    pub fn shared_use_of(&self, name: &str) -> Option<String> {
        self.files.iter().skip(1).find_map(|file| {
            let source = &file.source;
            let definition = file.macros.iter().find(|found| source.slice(found.name) == name);
            let place = definition.map(|found| found.name.start).or_else(|| file.host_use(name))?;
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
}

impl<'a> Flow<'a> {
    /// Whether the launches through the name of a kernel at `at` hang on it; `None` where that launches nothing.
    fn launched(&mut self, place: Place, at: usize) -> Option<Verdict> {
        let file = self.file(place);
        if let Some(mark) = file.launch_mark(at) {
            let grid = file.arguments(mark + 3, ">>>").first().copied().filter(|_| self.divides);
            let arguments = grid.or_else(|| Some((mark + 3, file.end_of_launch(mark + 3)?)))?;
            return Some(self.judge(place, arguments));
        }
        if file.is_other(at) {
            return None;
        }
        let mut calls = file.calls_around(at);
        let of_template = file.call_of_template_around(at);
        let is_inner = |call: &Called| calls.first().is_none_or(|first| first.name < call.name);
        if let Some(call) = of_template.filter(is_inner) {
            calls.insert(0, call);
        }
        match (calls.first(), calls.last()) {
            (Some(inner), Some(outer)) => self.launched_by_call(place, at, inner, outer),
            _ => self.launched_by_alias(place, at),
        }
    }

    /// The same for a kernel that is handed to a call, by what the function launches, where that is seen, else by any argument of the
    /// outermost call.
    fn launched_by_call(&mut self, place: Place, at: usize, inner: &Called, outer: &Called) -> Option<Verdict> {
        let file = self.file(place);
        let word = file.text(inner.name);
        if ASKING.iter().any(|begin| word.starts_with(begin)) {
            return None;
        }
        let given = file.given_to(inner);
        if self.divides {
            if let Some(verdict) = self.launched_within(place, at, inner, &given) {
                return Some(verdict);
            }
            let grid = GRIDS.iter().find(|(name, _)| *name == word).and_then(|&(_, number)| given.0.get(number));
            if let Some(&grid) = grid {
                return Some(self.judge(place, grid));
            }
        } else {
            return Some(self.call(place, outer));
        }
        let (own, of_template) = file.given_to(outer);
        Some(self.one_of(place, &own).max(self.one_of(place, &of_template)))
    }

    /// The same by the bodies of the functions that a call may run; `None` where none is seen to launch what it is handed.
    fn launched_within(&mut self, place: Place, at: usize, call: &Called, given: &Arguments) -> Option<Verdict> {
        let is_it = |range: &Tokens| range.0 <= at && at < range.1;
        let own = given.0.iter().position(is_it);
        let of_template = given.1.iter().position(is_it);
        let mut found = Vec::new();
        for callee in self.callees(place, call, given.0.len()) {
            let file = &self.code.files[callee.file];
            let parameter = own
                .and_then(|number| callee.parameters.get(number))
                .or_else(|| of_template.and_then(|number| callee.of_template.get(number)));
            let Some(name) = parameter.and_then(|&range| file.name_of_parameter(range)) else { continue };
            let inner = Place { file: callee.file, frame: self.frame(place, given, &callee) };
            for &at in file.places_within(name, callee.body) {
                found.extend(self.launched_deeper(inner, at));
            }
        }
        (!found.is_empty()).then(|| all(&found))
    }

    fn launched_deeper(&mut self, place: Place, at: usize) -> Option<Verdict> {
        if self.handed >= DEEPEST {
            return Some(Not);
        }
        self.handed += 1;
        self.count += 1;
        let found = if self.count > MOST { Some(Not) } else { self.launched(place, at) };
        self.handed -= 1;
        found
    }

    /// The same for a kernel that is handed to no call: by the launches through what it is called besides. Those of what is kept in any
    /// other way are not found.
    fn launched_by_alias(&mut self, place: Place, at: usize) -> Option<Verdict> {
        let file = self.file(place);
        let Some(alias) = file.alias(at) else { return file.is_kept(at).then_some(Not) };
        let Some(scope) = self.declaration(place.file, alias) else { return Some(Not) };
        let mut found = Vec::new();
        for &at in file.places_within(file.text(alias), (alias + 1, scope.1)) {
            if self.declaration(place.file, at) == Some(scope) && file.alias(at) != Some(alias) {
                found.extend(self.launched_deeper(place, at));
            }
        }
        (!found.is_empty()).then(|| all(&found))
    }

    /// Whether each use of a macro hangs on it that launches the kernel: `#define LAUNCH(n) k<<<BLOCKS(n), 256>>>(n)`.
    fn launched_by_macro(&mut self, word: &'a str) -> Vec<Verdict> {
        if self.following.contains(word) {
            return vec![Follows];
        }
        let mut found = Vec::new();
        for (number, file) in self.code.files.iter().enumerate() {
            let place = Place { file: number, frame: None };
            for &at in file.places(word).iter().filter(|&&at| !file.device[at]) {
                match file.called(at) {
                    Some(call) if file.launch_mark(at).is_none() => {
                        let (own, _) = file.given_to(&call);
                        found.push(self.one_of(place, &own));
                    }
                    _ => found.extend(self.launched(place, at)),
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;
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
            // What is lent to be written.
            (
                "void set(int &g, int n) { g = n / WORK; }\nvoid go(int n) { int g = n / WORK; set(g, n); k<<<g, 256>>>(n, x); }",
                true,
            ),
            ("void set(int &g) { g = 64; }\nvoid go(int n) { int g = n / WORK; set(g); k<<<g, 256>>>(n, x); }", false),
            (
                "int same(int &g) { return g; }\nvoid go(int n) { int g = n / WORK; same(g); k<<<g, 256>>>(n, x); }",
                true,
            ),
            ("void go(int n) { int g = n / WORK, h = n / 4; std::swap(g, h); k<<<g, 256>>>(n, x); }", false),
            ("void go(int n) { int g = n / WORK; int &r = g; r = n / 4; k<<<g, 256>>>(n, x); }", false),
            ("void go(int n) { int g = n / WORK; const int &r = g; k<<<r, 256>>>(n, x); }", true),
            ("void go(int n) { int g[] = {n / WORK, n / 4}; k<<<g[1], 256>>>(n, x); }", false),
            ("void go(int n) { int g[] = {n / WORK, 2 * n / WORK}; k<<<g[1], 256>>>(n, x); }", true),
            ("int padded(int n) { return n + WORK; }\nvoid go(int n) { k<<<n / 1024, 256>>>(n, x); }", false),
            (
                "void other(int n) { dim3 g(n / WORK); j<<<g, 256>>>(); }\nvoid go(int n) { dim3 g(n / 1024); k<<<g, 256>>>(n, x); }",
                false,
            ),
            ("void go(int n) { k<<<n / WORK, 256>>>(n, x); k<<<n / 4, 256>>>(n, x); }", false),
            ("void go(int n) { launch(k<float>, n / 4, 256, n, x); }\nstatic_assert(WORK < 64, \"\");", false),
            // Each call of a function, and what it hands to the grid.
            ("void run(int b) { k<<<b, 256>>>(n, x); }\nvoid go(int n) { run(n / 8192); run(n / WORK); }", false),
            ("void run(int b);\nvoid go(int n) { run(n / WORK); }\nvoid run(int b) { k<<<b, 256>>>(n, x); }", true),
            (
                "void run(int b) { k<<<b, 256>>>(n, x); }\nvoid go(int n) { run(n / WORK); m.def(\"run\", &run); }",
                false,
            ),
            ("void run(int b, int w = WORK) { k<<<b / w, 256>>>(n, x); }\nvoid go(int n) { run(n); run(2); }", true),
            (
                "template <class F> void run(F f, int b) { f<<<b, 256>>>(n, x); }\nvoid go(int n) { run(k<float>, n / 8192); run(k<float>, n / WORK); }",
                false,
            ),
            (
                "template <class F> void run(F f, int b) { f<<<b, 256>>>(n, x); }\nvoid go(int n) { run(j, n / 8192); run(k<float>, n / WORK); }",
                true,
            ),
            (
                "template <class F> void run(F f, int s, int b) { f<<<b, 256, s>>>(n, x); }\nvoid go(int n) { run(k<float>, WORK * 0, n / 8192); }",
                false,
            ),
            (
                "template <class F> void run(F f, int s, int b) { f<<<b, 256, s>>>(n, x); }\nvoid go(int n) { CHECK(run(k<float>, 0, n / WORK)); }",
                true,
            ),
            (
                "template <class F, class... A> void run(F f, int n, A... a) { const int b = n / 256; f<<<b, 256>>>(n, a...); }\nvoid go(int n) { run(k<float>, n, WORK); }",
                false,
            ),
            (
                "template <class F, class... A> void run(F f, int n, A &&...a) { cudaLaunchConfig_t c{}; c.gridDim = n; c.attrs = a; cudaLaunchKernelEx(&c, f, a...); }\nvoid go(int n) { run(k<float>, n / WORK, 3, x); }",
                true,
            ),
            (
                "template <class F> void run(F f, int n) { launch(std::forward<F>(f), n); }\ntemplate <class F> void launch(F f, int n) { f<<<n, 256>>>(n, x); }\nvoid go(int n) { run(k<float>, n / WORK); }",
                true,
            ),
            (
                "template <class F> void run(F f, int n) { launch(f, n, WORK); }\ntemplate <class F> void launch(F f, int n, int w) { f<<<n, 256, w>>>(n, x); }\nvoid go(int n) { run(k<float>, n / 4); }",
                false,
            ),
            (
                "void run(void (*f)(int, float *), int b) { f<<<b, 256>>>(n, x); }\nvoid go(int n) { run(k<float>, n / WORK); }",
                true,
            ),
            (
                "template <auto F> void run(int b) { F<<<b, 256>>>(n, x); }\nvoid go(int n) { run<k<float>>(n / WORK); }",
                true,
            ),
            (
                "template <auto F> void run(int b) { F<<<b, 256>>>(n, x); }\nvoid go(int n) { run<k<float>>(n / WORK); run<k<float>>(n / 8192); }",
                false,
            ),
            (
                "void go(int n) { auto run = [&](auto f, int b) { f<<<b, 256>>>(n, x); }; run(k<float>, n / WORK); }",
                true,
            ),
            (
                "void go(int n) { auto run = [&](auto f, int b) { f<<<b, 256>>>(n, x); }; run(k<float>, n / 4); run(j, n / WORK); }",
                false,
            ),
            ("void go(int n) { auto run = [&](int b) { k<<<b, 256>>>(n, x); }; run(n / WORK); run(n / 4); }", false),
            ("void go(int n) { [&](int b) { k<<<b, 256>>>(n, x); }(n / WORK); }", true),
            ("void go(int n) { cudaLaunchKernel((void *)k<float>, dim3(n / 4), 256, &WORK_, WORK, 0); }", false),
            (
                "void go(int n) { cudaLaunchConfig_t c = {0}; c.gridDim = n / 4; c.dynamicSmemBytes = WORK; cudaLaunchKernelEx(&c, k<float>, n, x); }",
                false,
            ),
            // Strings.
            (
                "#define STR_(x) #x\n#define STR(x) STR_(x)\nvoid go(int n) { launch(k<float>, \"WORK = \" STR(WORK), n / 4); }",
                false,
            ),
            (
                "#define STR_(x) #x\n#define STR(x) STR_(x)\n#define NAME STR(WORK)\nvoid go(int n) { launch(k<float>, NAME, n / 4); }",
                false,
            ),
            ("#define CHECK(x) check(x, #x)\nvoid go(int n) { CHECK(launch(k<float>, n / WORK)); }", true),
            // What cuts a grid off.
            ("void go(int n) { k<<<std::min(1024, n / WORK), 256>>>(n, x); }", false),
            ("void go(int n) { k<<<std::min<int>({n / WORK, 1024}), 256>>>(n, x); }", false),
            ("void go(int n) { int sm = 132, grid = MIN(sm * 2, n / WORK); k<<<grid, 256>>>(n, x); }", false),
            ("void go(int n) { k<<<std::min(n / WORK, m / WORK), 256>>>(n, x); }", true),
            ("void go(int n) { k<<<std::max(1, n / WORK), 256>>>(n, x); }", true),
            ("void go(int n) { k<<<std::clamp(n / WORK, 1, 65535), 256>>>(n, x); }", false),
            (
                "int low(int a, int b) { return a < b ? a : b; }\nvoid go(int n) { k<<<low(1024, n / WORK), 256>>>(n, x); }",
                false,
            ),
            (
                "int low(int a, int b) { if (a < b) return a; return b; }\nvoid go(int n) { k<<<low(1024, n / WORK), 256>>>(n, x); }",
                false,
            ),
            (
                "int per(int a, int b) { return (a + b - 1) / b; }\nvoid go(int n) { k<<<per(n, WORK), per(n, 4)>>>(n, x); }",
                true,
            ),
            (
                "void go(int n) { auto per = [](int a, int b) { return (a + b - 1) / b; }; int m = per(n, 4); k<<<per(n, WORK), m>>>(n, x); }",
                true,
            ),
            ("void go(int n) { int g = n / WORK; if (g > 1024) g = 1024; k<<<g, 256>>>(n, x); }", false),
            ("void go(int n) { int g = n / WORK; if (g < 1) { g = 1; } k<<<g, 256>>>(n, x); }", true),
            ("void go(int n) { int g = n / WORK; if (n < 1) g = 1; k<<<g, 256>>>(n, x); }", false),
            ("void go(int n) { int g = n / WORK; k<<<g < 1 ? 1 : g, 256>>>(n, x); }", true),
            ("void go(int n) { k<<<WORK > n ? 1 : 0, 256>>>(n, x); }", false),
            ("void go(int n) { k<<<WORK == 1 ? n / 256 : n / 8192, 256>>>(n, x); }", false),
            ("void go(int n) { int g = (n > 4 ? n / WORK : m / WORK); k<<<g, 256>>>(n, x); }", true),
            ("void go(int n) { k<<<dim3(n > 4 ? n / WORK : 4, 2), 256>>>(n, x); }", false),
            // All that a variable may be.
            ("void go(int n) { int g = n / WORK; g = 128; k<<<g, 256>>>(n, x); }", false),
            ("void go(int n) { int g = n / WORK; g += 3; g = (g + 7) / 8 * 8; k<<<g, 256>>>(n, x); }", true),
            ("void go(int n) { int g = n / 4; if (n > 5) g = n / WORK; k<<<g, 256>>>(n, x); }", false),
            ("void go(int n) { int g = 0; if (n > 5) g = n / WORK; else g = m / WORK; k<<<g, 256>>>(n, x); }", true),
            ("void go(int n) { int g = n / WORK; k<<<g, 256>>>(n, x); g = n / 4; j<<<g, 256>>>(n, x); }", true),
            ("void go(int n) { int g = n / WORK; for (;;) { k<<<g, 256>>>(n, x); g = n / 4; } }", false),
            ("void go(int n) { int per = 256; per *= WORK; k<<<n / per, 256>>>(n, x); }", true),
            ("void go(int n) { n = n / WORK; k<<<n, 256>>>(n, x); }", true),
            ("void go(int n) { dim3 g; g.x = n / WORK; g.y = m; k<<<g, 256>>>(n, x); }", true),
            ("void go(int n) { dim3 g(1, 1, 1); g.y = m; g.x = n / WORK; k<<<g, 256>>>(n, x); }", true),
            ("void go(int n) { dim3 g; g.x = n / 4; g.y = m; k<<<g, 256>>>(n, x); }", false),
            ("void go(int n) { dim3 g(n / WORK); g = dim3(n / 4); k<<<g, 256>>>(n, x); }", false),
            ("void go(int n) { Shape s; s.grid = n / 4; s.shared = WORK; k<<<s.grid, 256>>>(n, x); }", false),
            (
                "void run(Shape s) { k<<<s.grid, 256>>>(n, x); }\nvoid go(int n) { Shape s; s.grid = n / 4; s.shared = WORK; run(s); }",
                false,
            ),
            (
                "void run(Shape s) { k<<<s.grid, 256>>>(n, x); }\nvoid go(int n) { Shape s; s.grid = n / WORK; s.block = 256; run(s); }",
                true,
            ),
            (
                "Shape shape(int n) { Shape s; s.grid = n / WORK; s.block = 256; return s; }\nvoid go(int n) { auto s = shape(n); k<<<s.grid, s.block>>>(n, x); }",
                true,
            ),
            (
                "void go(int n) { int g = 0; cudaOccupancyMaxActiveBlocksPerMultiprocessor(&g, k<float>, 256, 0); k<<<g, 256>>>(n, x); }",
                false,
            ),
            (
                "void shape(dim3 &g, int n) { g.x = n / 4; }\nvoid go(int n) { dim3 g; shape(g, n * WORK); k<<<g, 256>>>(n, x); }",
                true,
            ),
            (
                "void shape(dim3 &g, int n, int w) { g.x = n / 4; }\nvoid go(int n) { dim3 g; shape(g, n, WORK); k<<<g, 256>>>(n, x); }",
                false,
            ),
            (
                "void shape(dim3 *g, int n) { g->x = n / WORK; }\nvoid go(int n) { dim3 g; shape(&g, n); k<<<g, 256>>>(n, x); }",
                true,
            ),
            // Which variable it is.
            ("void go(int n) { int b = WORK; { int b = n / 8192; k<<<b, 256>>>(n, x); } (void)b; }", false),
            ("void go(int n) { int b = n / WORK; { int b = n / 8192; j<<<b, 256>>>(); } k<<<b, 256>>>(n, x); }", true),
            ("void go(int n) { int b = WORK; { int a = 1, b = n / 8192; k<<<b, 256>>>(n, x); } }", false),
            ("void go(int b) { for (int b = 0; b < 4; ++b) { f(b); } k<<<b / WORK, 256>>>(n, x); }", true),
            ("void go(int n) { for (int b : {n / WORK, m / WORK}) k<<<b, 256>>>(n, x); }", true),
            ("int per = 8192;\nvoid set() { per = 256 * WORK; }\nvoid go(int n) { k<<<n / per, 256>>>(n, x); }", false),
            ("int per = 0;\nvoid set() { per = 256 * WORK; }\nvoid go(int n) { k<<<n / per, 256>>>(n, x); }", true),
            (
                "int per = 256 * WORK;\nvoid set() { int per = 4; per = 5; }\nvoid go(int n) { k<<<n / per, 256>>>(n, x); }",
                true,
            ),
            (
                "#ifdef A\n#define PER 4\n#else\n#define PER WORK\n#endif\nvoid go(int n) { k<<<n / PER, 256>>>(n, x); }",
                false,
            ),
            (
                "struct Run { int per_; Run(int w) : per_(w) {} void go(int n) { k<<<n / per_, 256>>>(n, x); } };\nvoid go() { Run run(WORK); run.go(3); }",
                true,
            ),
            (
                "struct Run { int per; void go(int n) { k<<<n / this->per, 256>>>(n, x); } void set() { this->per = WORK; } };",
                true,
            ),
            (
                "int blocks(int n) { if (n < 4) return 4; return n / WORK; }\nvoid go(int n) { k<<<blocks(n), 256>>>(n, x); }",
                false,
            ),
            (
                "int blocks(int n) { const int per = 256 * WORK; return (n + per - 1) / per; }\nvoid go(int n) { k<<<blocks(n), 256>>>(n, x); }",
                true,
            ),
            (
                "int blocks(int n) { int per = WORK; return (n + 8191) / 8192; }\nvoid go(int n) { k<<<blocks(n), 256>>>(n, x); }",
                false,
            ),
            (
                "int a(int n) { return b(n); }\nint b(int n) { return a(n); }\nvoid go(int n) { k<<<a(n), 256>>>(n, x); }",
                false,
            ),
            // Launches that are not seen.
            (
                "void (*table[])(int, float *) = {k<float>};\nvoid go(int n) { table[0]<<<n / 8192, 256>>>(n, x); k<<<n / WORK, 256>>>(n, x); }",
                false,
            ),
            (
                "void go(int n) { auto t = {k<float>, k<int>}; t[0]<<<n / 8192, 256>>>(n, x); k<<<n / WORK, 256>>>(n, x); }",
                false,
            ),
            (
                "auto pick() { return k<float>; }\nvoid go(int n) { pick()<<<n / 4, 256>>>(n, x); k<<<n / WORK, 256>>>(n, x); }",
                false,
            ),
            ("void go(int n) { p.func = (void *)k<float>; k<<<n / WORK, 256>>>(n, x); }", false),
            ("auto run = k<float>;\nvoid go(int n) { run<<<n / 4, 256>>>(n, x); k<<<n / WORK, 256>>>(n, x); }", false),
            ("#define K k<float>\nvoid go(int n) { K<<<n / 4, 256>>>(n, x); }", false),
            ("#define K k<float>\nvoid go(int n) { K<<<n / WORK, 256>>>(n, x); }", true),
            ("void go(int n) { void (*run)(int, float *) = k<float>; run<<<n / WORK, 256>>>(n, x); }", true),
            ("void go(int n) { void (*run)(int, float *) = &k<float>; run<<<n / 4, 256>>>(n, x); }", false),
            (
                "void go(int n) { k<<<n / WORK, 256>>>(n, x); cudaFuncAttributes a; cudaFuncGetAttributes(&a, k<float>); }",
                true,
            ),
            (
                "void go(int n) { k<<<n / WORK, 256>>>(n, x); }\nfloat add(float k) { float c = k; return f(k, 3); }",
                true,
            ),
            // Idioms.
            (
                "void go(int n) { const dim3 g = {static_cast<unsigned>((n + WORK - 1) / WORK)}; k<<<g, 256>>>(n, x); }",
                true,
            ),
            (
                "struct K { static constexpr int per = 256 * WORK; };\nvoid go(int n) { k<<<n / K::per, 256>>>(n, x); }",
                true,
            ),
            (
                "template <int W> struct K { enum { per = 256 * W }; };\nvoid go(int n) { k<<<n / K<WORK>::per, 256>>>(n, x); }",
                true,
            ),
            ("void go(int n) { const int g = [&] { return n / WORK; }(); k<<<g, 256>>>(n, x); }", true),
            (
                "void go(int n) { int b = n / WORK; k<<<b, 256>>>(n, x); while (b > 1) { int m = b; b = (b + WORK) / WORK; k<<<b, 256>>>(m, x); } }",
                true,
            ),
            (
                "void go(int n) { dim3 g; if (n > 4) { g = dim3(n / WORK); } else { g = dim3(m / WORK, 2); } k<<<g, 256>>>(n, x); }",
                true,
            ),
            ("void go(int n) { Shape s{n, 256 * WORK}; k<<<s.blocks(), s.threads>>>(n, x); }", true),
            ("void ns::run(int b) { k<<<b, 256>>>(n, x); }\nvoid go(int n) { ns::run(n / WORK); }", true),
            (
                "void ns::run(int b) { k<<<b, 256>>>(n, x); }\nvoid go(int n) { ns::run(n / 4); ns::run(n / WORK); }",
                false,
            ),
            (
                "void go(int n) { size_t left = n; for (; left > 0; left -= m) { const int g = left / WORK; k<<<g, 256>>>(n, x); } }",
                true,
            ),
            ("void go(int n) { each(n / WORK, [&](int b) { k<<<b, 256>>>(n, x); }); }", true),
            (
                "auto shape(int n) { return std::make_pair(dim3(n / WORK), 256); }\nvoid go(int n) { auto s = shape(n); k<<<s.first, s.second>>>(n, x); }",
                true,
            ),
            (
                "void go(int n) { if (n > 4) { k<<<n / WORK, 256>>>(n, x); } else return launch(k<float>, m / WORK); }",
                true,
            ),
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

    /// Looking at all of a function for each of its launches would not end.
    #[test]
    fn a_function_of_ten_thousand_launches_is_judged_in_a_moment() {
        let helpers = "int blocks(int n, int per) { return n / per; }\ntemplate <class F> void run(F f, int b) { f<<<b, 256>>>(n, x); }\n";
        for launch in [
            "k<<<n / per, 256>>>(n, x);",
            "run(k<float>, n / per);",
            "launch(k<float>, blocks(n, per));",
            "{ int g = blocks(n, per); k<<<g, 256>>>(n, x); }",
            "per = per * 2; k<<<n / per, 256>>>(n, x);",
        ] {
            let text = format!("{helpers}void go(int n) {{ int per = WORK; {} }}", launch.repeat(10_000));
            assert!(code(&[&text]).launches_follow("k", "WORK", true), "{launch}");
        }
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
