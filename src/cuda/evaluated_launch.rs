//! The launches of a kernel in host code -> shape, values and sizes of buffers, as far as the
//! text tells, with what was assumed for the rest.

use super::host_evaluation::{Evaluation, Scope};
use super::host_nodes::{arguments, declared, launch_shape};
use super::host_number::Number;
use super::host_program::{Definition, FilePlace, HostProgram, ParameterLaunch, launched_name};
use super::host_types::angle_arguments;
use super::launch_argument::LaunchArgument;
use super::launch_parts::{Caller, LaunchPart, LaunchParts, LaunchPlace};
use super::parameter_kind::ParameterKind;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// A launch in host code with its values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EvaluatedLaunch {
    pub path: String,
    pub line: u32,
    pub block: Option<[i64; 3]>,
    /// Whether an extent of the block is assumed.
    pub is_block_assumed: bool,
    pub grid: Option<[i64; 3]>,
    /// Whether the grid is not known at all, and is one of many blocks.
    pub is_grid_assumed: bool,
    /// Bytes of dynamic shared memory; `None` if they are not known.
    pub shared: Option<i64>,
    pub is_cooperative: bool,
    pub arguments: Vec<LaunchArgument>,
    /// Template arguments as text; `None` for one that is not known.
    pub template_arguments: Vec<Option<String>>,
    /// The type of each argument in the text; `None` for one that is not known.
    pub argument_types: Vec<Option<String>>,
    /// Names that have no value in the text, with what they are taken for.
    pub assumed: Vec<(String, i64)>,
    /// The launch with other numbers in the place of each literal that arguments come from: it
    /// tells equal numbers of one launch apart.
    pub variation: Option<Box<EvaluatedLaunch>>,
}

/// A block that is not known: threads in one dimension, and in several.
const ASSUMED_BLOCK: [i64; 2] = [256, 16];

/// The blocks of a grid that is not known.
const ASSUMED_GRID: i64 = 1024;

/// How far numbers of a variation are apart: whole tiles and blocks of usual sizes.
const VARIED_BY: i64 = 1024;

/// Dynamic shared memory of a block that needs no leave (all GPUs).
const MOST_SHARED: i64 = 48 << 10;

/// Threads of a block (all GPUs).
const MOST_THREADS: i64 = 1024;

/// The most bytes of the name of a kernel that a pointer is given.
const LONGEST_NAME: usize = 120;

/// Of a kernel that has no namesake.
pub const ANY_COUNT: ArgumentCounts = 0..=usize::MAX;

/// The most launches of a kernel that are looked at.
const MOST_LAUNCHES: usize = 16;

/// The numbers of arguments that a kernel takes.
pub type ArgumentCounts = RangeInclusive<usize>;

impl HostProgram {
    /// Whether device code launches a kernel.
    pub fn is_launched_by_device(&self, kernel: &str) -> bool {
        let places = self.launches.get(kernel).into_iter().flatten();
        places.into_iter().any(|place| self.is_in_device_code(place))
    }

    /// The launches of a kernel with these parameters, by as many arguments. Numbers that the
    /// text does not tell are `assumption`.
    pub fn evaluated_launches(
        &self,
        kernel: &str,
        counts: &ArgumentCounts,
        parameters: &[ParameterKind],
        assumption: i64,
    ) -> Vec<EvaluatedLaunch> {
        let places = self.host_launches(kernel, counts);
        places.into_iter().filter_map(|place| self.evaluated(place, parameters, assumption)).collect()
    }

    /// The launches of a kernel in host code: by its name, or by a pointer that is given it.
    fn host_launches(&self, kernel: &str, counts: &ArgumentCounts) -> Vec<LaunchPlace<'_>> {
        let is_it = |definition: &Definition| {
            let place = &definition.value;
            place.range.len() < LONGEST_NAME && launched_name(self.slice(place)) == kernel
        };
        let is_given = |name: &String| self.definitions.get(name).into_iter().flatten().any(is_it);
        let evaluation = Evaluation::new(self);
        // Pointers of other functions may have the same name.
        let is_by_it = |name: &str, place: &FilePlace| {
            evaluation.renew_steps();
            evaluation.nearest(name, name, &Scope::new(place)).into_iter().any(is_it)
        };
        let own = self.launches.get(kernel).into_iter().flatten();
        let mut pointers: Vec<(&String, &Vec<FilePlace>)> =
            self.launches.iter().filter(|(name, _)| *name != kernel && is_given(name)).collect();
        pointers.sort_by_key(|(name, _)| name.as_str());
        let places = pointers.into_iter().flat_map(|(name, places)| places.iter().map(move |place| (name, place)));
        let by_pointer = places.filter(|(name, place)| is_by_it(name, place)).map(|(_, place)| place);
        let direct = own.chain(by_pointer).map(|place| LaunchPlace { place, caller: None });
        let fits = |launch: &LaunchPlace<'_>| {
            let parts = if *counts == ANY_COUNT { None } else { self.parts(*launch) };
            parts.is_none_or(|parts| counts.contains(&parts.arguments.len()))
        };
        direct
            .chain(self.launches_by_parameter(kernel))
            .filter(|launch| !self.is_in_device_code(launch.place) && fits(launch))
            .take(MOST_LAUNCHES)
            .collect()
    }

    /// Finds the launches by a parameter of the function around them, one for each call that gives
    /// the function this kernel.
    fn launches_by_parameter(&self, kernel: &str) -> impl Iterator<Item = LaunchPlace<'_>> {
        let launches = self.parameter_launches.get_or_init(|| self.find_parameter_launches());
        launches.iter().flat_map(move |ParameterLaunch { place, function, parameter, .. }| {
            let gives_kernel = move |call: &&FilePlace| {
                let argument = self.node(call).and_then(|node| arguments(node).get(*parameter).copied());
                let name = argument.map_or("", |node| &self.files[call.file].text[node.byte_range()]);
                name.len() < LONGEST_NAME && launched_name(name) == kernel
            };
            // A file with a function of that name calls its own.
            let defines = |file: usize| self.functions.get(function).into_iter().flatten().any(|own| own.file == file);
            let is_of_function = move |call: &&FilePlace| call.file == place.file || !defines(call.file);
            let calls = self.calls.get(function).into_iter().flatten().filter(gives_kernel).filter(is_of_function);
            calls.map(move |call| LaunchPlace { place, caller: Some(Caller { call, argument: *parameter }) })
        })
    }

    /// Finds all launches by a parameter. If a function launches by name or by address, as the
    /// toolkit has it, the launches by name are enough.
    fn find_parameter_launches(&self) -> Vec<ParameterLaunch> {
        let mut names: Vec<&String> = self.launches.keys().collect();
        names.sort();
        let mut launches = Vec::new();
        for name in names {
            for place in &self.launches[name] {
                let parameter = Evaluation::new(self).parameter(name, &Scope::new(place));
                let Some((node, parameter)) = parameter else { continue };
                let text = &self.files[place.file].text;
                let function = node.child_by_field_name("declarator").map_or("", |node| declared(node, text));
                let is_by_name = self.node(place).is_some_and(|node| launch_shape(node).is_some());
                launches.push(ParameterLaunch {
                    place: place.clone(),
                    function: function.to_owned(),
                    parameter,
                    is_by_name,
                });
            }
        }
        let by_name = launches.iter().filter(|launch| launch.is_by_name);
        let functions: BTreeSet<String> = by_name.map(|launch| launch.function.clone()).collect();
        launches.retain(|launch| launch.is_by_name || !functions.contains(&launch.function));
        launches
    }

    fn is_in_device_code(&self, place: &FilePlace) -> bool {
        let Some(function) = self.function_around(place.file, place.range.start) else { return false };
        let Some(body) = function.child_by_field_name("body") else { return false };
        let head = self.slice(&FilePlace { file: place.file, range: function.start_byte()..body.start_byte() });
        head.contains("__global__") || head.contains("__device__") && !head.contains("__host__")
    }

    fn evaluated(
        &self,
        place: LaunchPlace<'_>,
        parameters: &[ParameterKind],
        assumption: i64,
    ) -> Option<EvaluatedLaunch> {
        let parts = self.parts(place)?;
        let (mut launch, varied) = self.evaluated_with(place, &parts, parameters, assumption, BTreeMap::new())?;
        if !varied.is_empty() {
            let other = self.evaluated_with(place, &parts, parameters, assumption, varied).map(|(launch, _)| launch);
            launch.variation = other.map(Box::new);
        }
        let evaluation = Evaluation::new(self).called_from(place.caller.map(|caller| caller.call));
        let kinds = parts.arguments.iter().map(|argument| {
            let text = &self.files.get(argument.place.file)?.text;
            evaluation.type_of_argument(argument.node, text, &Scope::new(argument.place))
        });
        launch.argument_types = kinds.collect();
        Some(launch)
    }

    /// Evaluates a launch in which some names have other values; returns other values for the
    /// names that its arguments come from.
    fn evaluated_with(
        &self,
        LaunchPlace { place, caller }: LaunchPlace<'_>,
        parts: &LaunchParts<'_>,
        parameters: &[ParameterKind],
        assumption: i64,
        replaced: BTreeMap<String, i64>,
    ) -> Option<(EvaluatedLaunch, BTreeMap<String, i64>)> {
        let caller = caller.map(|caller| caller.call);
        let text = &self.files.get(place.file)?.text;
        let evaluation = Evaluation::with(self, replaced).called_from(caller);
        let scope = Scope::new(place);
        let is_launched = |extents: &[i64; 3]| extents.iter().all(|extent| *extent > 0);
        let extents = |part: &LaunchPart<'_>| match part {
            LaunchPart::Expression(node) => evaluation.extents(*node, text, &scope),
            LaunchPart::Field(name) => evaluation.extents_of_text(name, &scope),
        };
        let shared_bytes = |part: &LaunchPart<'_>| match part {
            LaunchPart::Expression(node) => evaluation.value(*node, text, &scope).map(Number::as_integer),
            LaunchPart::Field(name) => evaluation.value_of_text(name, &scope).map(Number::as_integer),
        };
        let sure = extents(&parts.block).filter(is_launched);
        let is_block_assumed = sure.is_none();
        let block = sure.or_else(|| {
            let known = evaluation.assumed();
            ASSUMED_BLOCK.into_iter().find_map(|threads| {
                evaluation.keep_assumed(&known);
                evaluation.assume(Some(threads));
                let block = extents(&parts.block);
                block.filter(is_launched).filter(|block| block.iter().product::<i64>() <= MOST_THREADS)
            })
        });
        let block = block.or(Some([ASSUMED_BLOCK[0], 1, 1]));
        let of_block = evaluation.take_leaves();
        evaluation.assume(None);
        let shared = parts.shared.as_ref().map_or(Some(0), shared_bytes);
        evaluation.assume(Some(assumption));
        let shared = shared.or_else(|| {
            let known = evaluation.assumed();
            let bytes = parts.shared.as_ref().and_then(shared_bytes);
            let bytes = bytes.filter(|bytes| (0..=MOST_SHARED).contains(bytes));
            if bytes.is_none() {
                evaluation.keep_assumed(&known);
            }
            bytes
        });
        evaluation.take_leaves();
        let grid = extents(&parts.grid).filter(is_launched);
        evaluation.keep_grid_leaves();
        let is_grid_assumed = grid.is_none();
        let grid = grid.or(Some([ASSUMED_GRID, 1, 1]));
        let argument = |number: usize, kind: &ParameterKind| match parts.arguments.get(number) {
            Some(argument) => evaluation.argument(argument.node, kind, &Scope::new(argument.place), assumption),
            None => LaunchArgument::default(),
        };
        // Sizes of buffers come first: a number among them is a size.
        let mut varied = BTreeMap::new();
        let mut given: Vec<LaunchArgument> = vec![LaunchArgument::default(); parameters.len()];
        for wants_pointers in [true, false] {
            // What no text tells of buffers takes nothing away from numbers.
            evaluation.renew_steps();
            for (number, kind) in parameters.iter().enumerate() {
                if (*kind == ParameterKind::Pointer) == wants_pointers {
                    evaluation.take_leaves();
                    given[number] = argument(number, kind);
                    let leaves = evaluation.take_leaves();
                    let has_numbers = matches!(kind, ParameterKind::Scalar { .. } | ParameterKind::Structure(_));
                    varied.extend(leaves.into_iter().filter(|_| has_numbers));
                }
            }
        }
        evaluation.assume(None);
        let template = parts.template.as_deref().and_then(angle_arguments).unwrap_or_default();
        let named_at = Scope::new(caller.unwrap_or(place));
        let template_arguments =
            template.iter().map(|argument| evaluation.template_text(argument, &named_at)).collect();
        let (path, line) = self.source(caller.unwrap_or(place));
        varied.retain(|name, value| *value > 1 && !of_block.contains_key(name));
        let steps = (1..).map(|step| step * VARIED_BY);
        varied.values_mut().zip(steps).for_each(|(value, more)| *value = value.saturating_add(more));
        let launch = EvaluatedLaunch {
            path,
            line,
            block,
            is_block_assumed,
            grid,
            is_grid_assumed,
            shared,
            is_cooperative: parts.is_cooperative,
            arguments: given,
            template_arguments,
            argument_types: Vec::new(),
            assumed: evaluation.assumed(),
            variation: None,
        };
        Some((launch, varied))
    }
}

#[cfg(test)]
mod tests {
    use super::{ANY_COUNT, EvaluatedLaunch, HostProgram, ParameterKind};
    use crate::cuda::Number;

    /// The first launch of `k(int n, float *x)`.
    fn launch(files: &[(&str, &str)]) -> EvaluatedLaunch {
        let files: Vec<(String, String)> =
            files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        let kinds = [ParameterKind::Scalar { is_float: false }, ParameterKind::Pointer];
        HostProgram::new(&files, &[], &[]).evaluated_launches("k", &ANY_COUNT, &kinds, 1024).swap_remove(0)
    }

    type Extents = Option<[i64; 3]>;

    /// Grid, block, `n`, bytes of `x`.
    fn values(text: &str) -> (Extents, Extents, Option<Number>, Option<i64>) {
        let launch = launch(&[("a.cu", text)]);
        let [n, x] = &launch.arguments[..] else { panic!("two arguments") };
        (launch.grid, launch.block, n.value, x.buffer.map(|buffer| buffer.bytes))
    }

    #[test]
    fn values_come_from_what_stands_around_a_launch() {
        for text in [
            "int main() { int n = 1000; float *x; cudaMalloc(&x, n * sizeof(float)); k<<<(n + 255) / 256, 256>>>(n, x); }",
            "#define N 1000\n#define UP(a, b) (((a) + (b) - 1) / (b))\nint main() { float *x; CHECK(cudaMalloc((void **)&x, sizeof(float) * N));\n\
             dim3 g(UP(N, 256)), b(256); k<<<g, b>>>(N, x); }",
            "static int up(int a, int b) { return a % b != 0 ? a / b + 1 : a / b; }\n\
             void run(float *data, int m) { dim3 b = dim3(256, 1); dim3 g; g.x = up(m, b.x); k<<<g, b>>>(m, data); }\n\
             int main() { float *d; cudaMalloc(&d, 4000); run(d, 1000); }",
            "const int SIZE = 1000; float *x;\nvoid make() { x = (float *)malloc(SIZE * sizeof *x); }\n\
             int main() { k<<<ceil(SIZE / 256.0f), 256>>>(SIZE, x + 0); }",
            "template <typename T, int B> void run(int n) { T *x; cudaMallocManaged(&x, n * sizeof(T)); k<<<(n + B - 1) / B, B>>>(n, x); }\n\
             int main() { run<float, 256>(1000); }",
            "struct P { int n; float *x; };\nint main() { P p; p.n = 1000; cudaMalloc(&p.x, sizeof(float) * p.n); k<<<4, 256>>>(p.n, p.x); }",
            "#if defined(SMALL)\n#define N 8\n#else\n#define N 1000\n#endif\nint main() { thrust::device_vector<float> v(N); k<<<N / 256 + 1, 256>>>(N, thrust::raw_pointer_cast(v.data())); }",
            "int main() { int n = 1000; float *x; cudaMalloc(&x, 4 * n); void *args[] = {&n, (void *)&x}; cudaLaunchKernel((void *)k, dim3(4), dim3(256), args, 0, 0); }",
            "int main() { int n = 1000; float *x; cudaMalloc(&x, 4 * n); cudaLaunchConfig_t config = {0};\n\
             config.gridDim = (n + 255) / 256; config.blockDim = 256; cudaLaunchKernelEx(&config, k, n, x); }",
            "int main() { float *x; cudaMalloc(&x, 4000); cudaLaunchConfig_t config = {.blockDim = 256, .gridDim = dim3(4)};\n\
             cudaLaunchKernelEx(&config, k, 1000, x); }",
            "int main() { int n = 1000; float *x; cudaMalloc(&x, 4 * n); cudaLaunchConfig_t config{dim3(4), dim3(256), 0, 0};\n\
             void *args[] = {&n, &x}; cudaLaunchKernelExC(&config, (void *)k, args); }",
            "void run(dim3 grid, dim3 block, int n, float *x) { cudaLaunchConfig_t config{}; config.gridDim = grid;\n\
             config.blockDim = block; cudaLaunchKernelEx(&config, k, n, x); }\n\
             int main() { float *x; cudaMalloc(&x, 4000); run(dim3(4), dim3(256), 1000, x); }",
            "template <class K, class... A> void go(K kernel, dim3 grid, A &&...args) { kernel<<<grid, 256>>>(std::forward<A>(args)...); }\n\
             void j(int); int main() { float *x; cudaMalloc(&x, 4000); go(j, dim3(9), 7); go(k, dim3(4), 1000, x); }",
            "struct P { dim3 grid; int threads; };\n\
             void go(void (*kernel)(int, float *), const P &p, int n, float *x) { kernel<<<p.grid, p.threads>>>(n, x); }\n\
             int main() { float *x; cudaMalloc(&x, 4000); const P p = {dim3(4), 256}; go(k, p, 1000, x); }",
            "int main() { float *x; cudaMalloc(&x, 4000); auto kernel = k<float>; kernel<<<4, 256>>>(1000, x); }",
            "int main() { float *x = new float[1000]; void (*kernel)(int, float *) = &k; kernel<<<4, 256>>>(1000, x); }",
        ] {
            let expected = (Some([4, 1, 1]), Some([256, 1, 1]), Some(Number::Int(1000)), Some(4000));
            assert_eq!(values(text), expected, "{text}");
        }
    }

    #[test]
    fn headers_and_other_sources_count() {
        let launch = launch(&[
            ("d/main.cpp", "#include \"sizes.h\"\nvoid run(int n);\nint main() { run(ROWS); }"),
            (
                "d/k.cu",
                "#define THREADS 64\nvoid run(int n) { float *x; cudaMalloc(&x, n); k<<<n / THREADS, THREADS>>>(n, x); }",
            ),
            ("d/sizes.h", "#pragma once\n#define ROWS 640"),
        ]);
        assert_eq!((launch.grid, launch.arguments[0].value), (Some([10, 1, 1]), Some(Number::Int(640))));
    }

    #[test]
    fn names_without_a_value_are_assumed_and_listed() {
        let text = "int main(int c, char **v) { int n = atoi(v[1]); float *x; cudaMalloc(&x, 4 * n); k<<<n / 64, 64>>>(n, x); }";
        let launch = launch(&[("a.cu", text)]);
        assert_eq!(launch.assumed, [("atoi(v[1])".to_owned(), 1024)]);
        assert_eq!((launch.grid, launch.is_block_assumed), (Some([16, 1, 1]), false));
    }

    #[test]
    fn extents_in_bare_braces_are_those_of_a_dim3() {
        for (launched, grid, block) in [
            ("k<<<{20, 2}, {64, 1, 1}>>>(640, x)", [20, 2, 1], [64, 1, 1]),
            ("k<<<{(n + 63) / 64u}, { 64 }>>>(n, x)", [10, 1, 1], [64, 1, 1]),
        ] {
            let launch = launch(&[("a.cu", &format!("void f(float *x) {{ const int n = 640; {launched}; }}"))]);
            assert_eq!((launch.grid, launch.block), (Some(grid), Some(block)), "{launched}");
        }
    }

    #[test]
    fn choice_that_a_caller_makes_is_a_guess() {
        let text = "void run(int n, float *x) { k<<<n / 64, 64>>>(n, x); }\n\
                    int main(int c, char **v) { float *x; cudaMalloc(&x, 4 * 640); run(c > 1 ? atoi(v[1]) : 640, x); }";
        let launch = launch(&[("a.cu", text)]);
        assert_eq!((launch.assumed, launch.grid), (vec![("n".to_owned(), 640)], Some([10, 1, 1])));
    }

    #[test]
    fn choice_in_the_launch_itself_is_a_guess() {
        for (launched, grid, assumed) in [
            ("k<<<c > 1 ? 10 : 20, 64>>>(640, x)", 10, &[("c>1?10:20", 10)][..]),
            ("k<<<10, 64>>>(c > 1 ? 320 : 640, x)", 10, &[("c>1?320:640", 320)]),
            ("k<<<dim3(c > 1 ? 10 : 20), 64>>>(640, x)", 10, &[("c>1?10:20", 10)]),
            ("k<<<is_the_name_of_the_condition_long(c, v) ? 10 : 20, 64>>>(640, x)", 10, &[("a choice by ?:", 10)]),
            // What is chosen makes no difference, or is known.
            ("k<<<c > 1 ? 10 : 10, 64>>>(640, x)", 10, &[]),
            ("k<<<640 > 1 ? 10 : 20, 64>>>(640, x)", 10, &[]),
        ] {
            let text = format!("int main(int c, char **v) {{ float *x; cudaMalloc(&x, 4 * 640); {launched}; }}");
            let launch = launch(&[("a.cu", &text)]);
            let assumed: Vec<(String, i64)> = assumed.iter().map(|(name, value)| (name.to_string(), *value)).collect();
            assert_eq!((launch.grid, launch.assumed), (Some([grid, 1, 1]), assumed), "{launched}");
        }
    }

    #[test]
    fn value_of_a_variable_that_changes_is_marked_or_unknown() {
        let known = [("n", 640)];
        let guess = [("n", 1024)];
        for (before, expected, assumed) in [
            // What surely holds, or is computed.
            ("int n = 3; n = 640;", 640, &[][..]),
            ("int n = 600; n += 39; n++;", 640, &[]),
            ("int n = 640; if (c) n = 640;", 640, &[]),
            ("int n = 640; if (c) { n = 128; k2(n); }", 640, &known),
            ("int n = 0; if (c) n = 640;", 640, &known),
            ("int n; if (c) n = 640; else n = 128;", 128, &[("n", 128)]),
            // A default that the command line may change.
            ("int n = 640; if (c > 1) n = atoi(v[1]);", 640, &known),
            ("int n = c > 1 ? atoi(v[1]) : 640;", 640, &known),
            ("int n = 640; scanf(\"%d\", &n);", 1024, &guess),
            ("int n = 640; if (c) read(v, &n);", 640, &known),
            ("int n = 640; cutGetCmdLineArgumenti(c, v, \"n\", &n);", 1024, &guess),
            ("int n = 640; cuMemAlloc(&n, 4);", 640, &[]),
            ("int n = 640; cinfo.w >> n;", 640, &[]),
            // Sums of what is not known.
            ("int n = 0; for (int i = 0; i < c; i++) n += sizes[i];", 1024, &guess),
            ("int n = 0; while (next()) { ++n; }", 1024, &guess),
            ("int n = 0; n = atoi(v[1]);", 1024, &[("atoi(v[1])", 1024)]),
            ("int n = 1; for (int i = 0; i < c; i++) n *= sizes[i];", 1024, &guess),
            ("int n = sizes[c - 1];", 1024, &[("sizes[c-1]", 1024)]),
            ("int n; std::cin >> n;", 1024, &guess),
        ] {
            let text = format!(
                "int main(int c, char **v) {{ {before} float *x; cudaMalloc(&x, 4 * n); k<<<n / 64, 64>>>(n, x); }}"
            );
            let launch = launch(&[("a.cu", &text)]);
            let assumed: Vec<(String, i64)> = assumed.iter().map(|(name, value)| (name.to_string(), *value)).collect();
            let sizes =
                [launch.arguments[0].value, launch.arguments[1].buffer.map(|buffer| Number::Int(buffer.bytes / 4))];
            assert_eq!((sizes, &launch.assumed), ([Some(Number::Int(expected)); 2], &assumed), "{before}");
            assert_eq!(launch.grid, Some([expected / 64, 1, 1]), "{before}");
        }
    }

    #[test]
    fn guess_of_a_name_is_not_the_value_of_its_namesake() {
        let text = "void run(int n, int size) { k<<<size / 64, 64>>>(n, nullptr); }\n\
                    int main(int c, char **v) { int n = 640; if (c) n = atoi(v[1]); run(8, n); }";
        let launch = launch(&[("a.cu", text)]);
        assert_eq!((launch.grid, launch.arguments[0].value), (Some([10, 1, 1]), Some(Number::Int(8))));
        assert_eq!(launch.assumed, [("n".to_owned(), 640)]);
    }

    #[test]
    fn first_launch_of_a_loop_has_the_values_before_its_update() {
        let launch =
            launch(&[("a.cu", "void f(float *x) { for (int n = 64; n <= 512; n *= 2) k<<<n / 32, 32>>>(n, x); }")]);
        assert_eq!((launch.grid, launch.assumed.len()), (Some([2, 1, 1]), 0));
    }

    #[test]
    fn block_of_several_unknown_extents_fits() {
        for text in [
            "void run(int bx, int by) { dim3 block(bx, by); dim3 grid(4, 8); k<<<grid, block>>>(1, nullptr); }",
            "void run(int bx, int by) { dim3 block(bx, by), grid(4, 8); k<<<grid, block>>>(1, nullptr); }",
            "void run(int bx, int by) { dim3 block; block.x = bx; block.y = by; k<<<dim3(4, 8), block>>>(1, nullptr); }",
        ] {
            let launch = launch(&[("a.cu", text)]);
            let shape = (launch.grid, launch.block, launch.is_block_assumed);
            assert_eq!(shape, (Some([4, 8, 1]), Some([16, 16, 1]), true), "{text}");
        }
    }

    #[test]
    fn caller_in_the_same_file_counts() {
        let launch = launch(&[
            ("b.cu", "int main() { run(8, 3, nullptr); }"),
            (
                "a.cu",
                "void run(int m, int n, float *x) { k<<<n / 64, 64>>>(n, x); }\nint main() { run(3, 640, nullptr); }",
            ),
        ]);
        assert_eq!((launch.grid, launch.arguments[0].value), (Some([10, 1, 1]), Some(Number::Int(640))));
    }

    #[test]
    fn variation_tells_equal_numbers_apart() {
        let text = "#define W 512\n#define H 512\nint main() { float *x; cudaMalloc(&x, 4 * W * W); k<<<H / 64, 64>>>(H, x); }";
        let launch = launch(&[("a.cu", text)]);
        let other = launch.variation.expect("another launch");
        assert_eq!((other.grid, other.arguments[0].value), (Some([24, 1, 1]), Some(Number::Int(1536))));
        assert_eq!(other.arguments[1].buffer.map(|buffer| buffer.bytes), Some(4 * 512 * 512));
    }

    #[test]
    fn unknown_shapes_are_marked() {
        let launch = launch(&[("a.cu", "void run(dim3 g, dim3 b) { k<<<g, b>>>(1, nullptr); }")]);
        assert_eq!((launch.is_block_assumed, launch.is_grid_assumed, launch.arguments[1].is_null), (true, true, true));
    }
}
