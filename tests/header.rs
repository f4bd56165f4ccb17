//! The header: a snapshot for each shape of kernel (`tests/header/*.tune.h`; `UPDATE_EXPECT=1` writes them anew), each compiled by
//! every compiler and standard that is there, and what its functions give against the space that the tuner launches from.

use super::support::toolkit::nvcc;
use expect_test::expect_file;
use nvtune::comment::{Annotation, Expr, Node, annotations};
use nvtune::diag::{Source, Span};
use nvtune::emit::cxx_expression::Types;
use nvtune::emit::{Header, HeaderKernel};
use nvtune::search::Provenance;
use nvtune::space::{Limits, Space};
use nvtune::tune::header;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A source with tuning comments.
struct Shape {
    /// The stem of its file.
    stem: &'static str,
    source: &'static str,
    /// The types of parameters and fields that the comment names, as the compiler would tell them.
    types: &'static [(&'static str, &'static str)],
    /// The other architectures of a fat build with their blocks; the first is 9.0.
    others: &'static [(u32, [u32; 3])],
}

const SHAPES: &[Shape] = &[
    Shape {
        stem: "one_dimension",
        source: "//@tune threads(n) block({96, 256}) default(block = 96)\n//@tune args(n = 1000, a = 2.0f, x = random[n])\n\
                 __global__ void saxpy(int n, float a, float *x) {}\n",
        types: &[("n", "int")],
        others: &[],
    },
    Shape {
        stem: "two_dimensions",
        source: "//@tune threads(w, h) block({32, 8}, {4, 8}) default(block = {32, 4})\n//@tune args(w = 1921, h = 1080, x = random[w * h])\n\
                 __global__ void blur(float *x, unsigned w, unsigned h) {}\n",
        types: &[("w", "unsigned int"), ("h", "unsigned int")],
        others: &[],
    },
    Shape {
        stem: "three_dimensions",
        source: "//@tune threads(N, N / 2, N % 7) block({8, 16}, {4, 8}, {2, 4}) default(block = {8, 4, 2})\n//@tune args(N = 129, M = 4, x = zeros[N])\n\
                 //@tune shared(M * block.size)\n__global__ void wave(long N, long M, float *x) {}\n",
        types: &[("N", "long long"), ("M", "long long")],
        others: &[],
    },
    Shape {
        stem: "instances",
        source: "//@tune threads(n) block({64, 128}) default(block = 128) template(float, 4) template(double, 2)\n//@tune args(n = 4099, a = 2, x = random[n])\n\
                 template <typename T, int M> __global__ void axpy(int n, T a, T *x) {}\n",
        types: &[("n", "int")],
        others: &[],
    },
    Shape {
        stem: "template_parameters",
        source: "//@tune threads(ceildiv(n, M)) shared(M * block.x) block({64, 128}) default(block = 128) template(float, 4) template(float, 2)\n\
                 //@tune args(n = 4099, x = random[n]) name(each)\ntemplate <typename T, int M> __global__ void scale(int n, T *x) {}\n\
                 //@tune threads(ceildiv(n, M)) block({64, 128}) default(block = 128) define(W = {2, 4}) template(W + 1)\n\
                 //@tune args(n = 4099, x = random[n])\ntemplate <int M> __global__ void wide(int n, float *x) {}\n",
        types: &[("n", "int")],
        others: &[],
    },
    Shape {
        stem: "spaces",
        source: "namespace a { namespace b {\n//@tune threads(n) block({64, 128}) default(block = 128)\n//@tune args(n = 65535, x = random[n])\n\
                 __global__ void scale(unsigned short n, float *x) {}\n} }\n",
        types: &[("n", "unsigned short")],
        others: &[],
    },
    Shape {
        stem: "linkage",
        source: "//@tune threads(n) block({64, 128}) default(block = 128)\n//@tune args(n = 1 << 20, x = random[n])\n\
                 extern \"C\" __global__ void c_linkage(unsigned long long n, float *x) {}\n",
        types: &[("n", "unsigned long long")],
        others: &[],
    },
    Shape {
        stem: "overloads",
        source: "//@tune name(add_int) threads(n) block({64, 128}) default(block = 128)\n//@tune args(n = 1000, x = iota[n])\n\
                 __global__ void add(int n, int *x) {}\n\
                 //@tune name(add_float) threads(n) block({64, 128}) default(block = 64)\n//@tune args(n = 1000, x = random[n])\n\
                 __global__ void add(int n, float *x) {}\n",
        types: &[("n", "int")],
        others: &[],
    },
    Shape {
        stem: "dynamic_shared",
        source: "//@tune threads(n) block({64, 128}) default(block = 128) shared((block.x + 2 * radius) * 4)\n\
                 //@tune args(n = 1000, radius = 3, x = random[n])\n__global__ void stencil(int n, int radius, float *x) {}\n",
        types: &[("n", "int"), ("radius", "int")],
        others: &[],
    },
    Shape {
        stem: "macro-axes",
        source: "//@tune define(TILE = {16, 32}, TILED_BLOCK_SIZE = {64, 128}) block({64, 128}) threads(ceildiv(n, TILE))\n\
                 //@tune default(block = 128, TILE = 16, TILED_BLOCK_SIZE = 64) require(TILE > 0)\n//@tune args(n = 1001, x = random[n])\n\
                 __global__ void tiled(int n, float *x) {}\n",
        types: &[("n", "int")],
        others: &[],
    },
    Shape {
        stem: "fat",
        source: "//@tune threads(n) block({32, 64, 256}) default(block = 64) shared(block.x * m)\n//@tune args(n = 1000, m = 8, x = random[n])\n\
                 __global__ void mixed(int n, int m, float *x) {}\n\
                 //@tune threads(n) block({32, 64, 256}) default(block = 64)\n//@tune args(n = 1000, x = random[n])\n\
                 __global__ void mixed_too(int n, float *x) {}\n",
        types: &[("n", "int"), ("m", "int")],
        others: &[(80, [256, 1, 1]), (120, [32, 1, 1])],
    },
    Shape {
        stem: "no_threads",
        source: "//@tune grid(2 * 66) block({64, 128}) regs({0, 32}) default(block = 128)\n__global__ void resident() {}\n",
        types: &[],
        others: &[],
    },
    Shape {
        stem: "grid_axis",
        source: "//@tune grid({132, 264}) block({64, 128}) default(block = 128, grid = 264) shared(grid.x * 4) carveout({-1, 50})\n\
                 //@tune args(n = 1000, x = random[n])\n__global__ void strided(int n, float *x) {}\n",
        types: &[],
        others: &[],
    },
    Shape {
        stem: "cooperative",
        source: "//@tune grid({132, 264}) block({64, 128}) default(block = 128, grid = 264)\n//@tune args(n = 1000, x = random[n])\n\
                 __global__ void waiting(int n, float *x) { auto grid = cooperative_groups::this_grid(); grid.sync(); }\n\
                 //@tune grid({132, 264}) block({64, 128}) default(block = 128, grid = 264) launch(cooperative)\n//@tune args(n = 1000, x = random[n])\n\
                 __global__ void spinning(int n, float *x) {}\n",
        types: &[],
        others: &[],
    },
    Shape {
        stem: "expressions",
        source: "//@tune grid(max(1, min(n * 1.5, 6e4)) , n > 0 && !(m == 3) ? (1 << 10) / m : ~n, (n & 7) != 0 || m % n)\n\
                 //@tune block({64, 128}) default(block = 128) args(n = 1000, m = 5, f = 2.5, x = random[n])\n\
                 //@tune shared(max(block.x, m) * sizeof(float) + min(f, 2) * 8)\n\
                 __global__ void computed(int n, unsigned char m, float f, float *x) {}\n",
        types: &[("n", "int"), ("m", "unsigned char"), ("f", "float")],
        others: &[],
    },
    Shape {
        stem: "structures",
        source: "struct Plan { int n; struct { long rows; } inner; };\n\
                 //@tune threads(plan.n, plan.inner.rows * plan_n) block({64, 128}, 1) default(block = 128)\n\
                 //@tune args(plan = { n = 1000, inner = { rows = 7 } }, plan_n = 3, x = random[plan.n])\n\
                 __global__ void planned(Plan plan, int plan_n, float *x) {}\n",
        types: &[("plan.n", "int"), ("plan.inner.rows", "long long"), ("plan_n", "int")],
        others: &[],
    },
    Shape {
        stem: "names",
        source: "//@tune threads(n) block({64, 128}) default(block = 128) args(n = 1000, x = random[n])\n__global__ void grid(int n, float *x) {}\n\
                 //@tune threads(n) block({64, 128}) default(block = 64) args(n = 1000, x = random[n])\n__global__ void step(int n, float *x) {}\n\
                 //@tune threads(n) block({64, 128}) default(block = 128) args(n = 1000, x = random[n])\n__global__ void Step(int n, float *x) {}\n\
                 //@tune threads(grid) block({64, 128}) default(block = 128) args(grid = 1000, x = random[grid]) name(class)\n__global__ void detail(int grid, float *x) {}\n",
        types: &[("n", "int"), ("grid", "int")],
        others: &[],
    },
    Shape {
        stem: "large",
        source: "//@tune threads(n * (1 << 20) * (1 << 12)) block({64, 128}) default(block = 128)\n//@tune args(n = 1, x = random[n])\n\
                 __global__ void huge(int n, float *x) {}\n",
        types: &[("n", "int")],
        others: &[],
    },
];

/// A kernel of a shape: what the header says of it, and the space that it is of.
struct Known {
    annotation: Annotation,
    space: Space,
    header: HeaderKernel,
}

fn known(shape: &Shape) -> Vec<Known> {
    let source = Source::new(format!("{}.cu", shape.stem), shape.source.as_bytes());
    let annotations = annotations(&source).unwrap_or_else(|problems| panic!("{}: {problems:?}", shape.stem));
    let types: Types = shape.types.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
    let known = annotations.into_iter().map(|annotation| {
        let space = Space::new(&annotation, &Limits::default()).unwrap_or_else(|problems| panic!("{problems:?}"));
        let of = |block: Option<[u32; 3]>, capability: u32| {
            let mut configuration = space.baseline().clone();
            configuration.block = block.unwrap_or(configuration.block);
            let gpu = format!("NVIDIA H200, sm_{capability}");
            let told = header(&annotation, &types, &configuration, Provenance::Measured, &gpu);
            HeaderKernel { capability, occupancy: Some(75), ..told }
        };
        let others = shape.others.iter().map(|&(capability, block)| (capability, of(Some(block), capability)));
        let header = HeaderKernel { others: others.collect(), ..of(None, 90) };
        Known { annotation, space, header }
    });
    known.collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/header")
}

#[test]
fn each_shape_of_kernel_has_its_header() {
    for shape in SHAPES {
        let kernels = known(shape).into_iter().map(|known| known.header).collect();
        let text = Header { source: format!("{}.cu", shape.stem), kernels }.text();
        expect_file![folder().join(format!("{}.tune.h", shape.stem))].assert_eq(&text);
    }
}

/// The folder of CUDA's headers.
fn cuda() -> PathBuf {
    nvcc().parent().and_then(Path::parent).expect("a toolkit").join("include")
}

/// Runs a program; gives what it printed, and panics where it fails.
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.is_empty(),
        "{command:?}\n{}{said}",
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// All headers side by side, each twice and in an order of its own: `first` comes before them, `second` between.
fn includes(first: &str, second: &str) -> String {
    let all = |shapes: &mut dyn Iterator<Item = &Shape>| {
        shapes.map(|shape| format!("#include \"{}.tune.h\"\n", shape.stem)).collect::<String>()
    };
    format!("{first}{}{second}{}", all(&mut SHAPES.iter()), all(&mut SHAPES.iter().rev()))
}

const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"];

/// Compilers, standards, and whether they compile C++.
const HOST: [(&str, &[&str], bool); 4] = [
    ("gcc", &["c11", "c17", "gnu17"], false),
    ("clang", &["c11", "c17"], false),
    ("g++", &["c++11", "c++14", "c++17", "c++20"], true),
    ("clang++", &["c++11", "c++14", "c++17", "c++20"], true),
];

#[test]
fn every_compiler_takes_it_without_a_word() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = "#include <cuda_runtime_api.h>\n";
    let mut texts = vec![
        // Without CUDA, with its headers before, and with them between.
        ("alone", includes("", "")),
        ("after", includes(runtime, "")),
        ("between", includes("", runtime)),
    ];
    let each = SHAPES.iter().map(|shape| (shape.stem, format!("{runtime}#include \"{}.tune.h\"\n", shape.stem)));
    texts.extend(each);
    for (name, text) in &texts {
        for ending in ["c", "cpp", "cu"] {
            std::fs::write(
                folder.path().join(format!("{name}.{ending}")),
                format!("{text}int {}_;\n", name.replace('-', "_")),
            )
            .expect("written");
        }
    }
    let mut jobs: Vec<Command> = Vec::new();
    for (compiler, standards, is_cxx) in HOST {
        if which::which(compiler).is_err() {
            eprintln!("no {compiler} here: not tried");
            continue;
        }
        for (number, standard) in standards.iter().enumerate() {
            // One by one under the first standard alone.
            for (name, _) in &texts[..if number == 0 { texts.len() } else { 3 }] {
                let mut command = Command::new(compiler);
                command.args(STRICT).arg(format!("-std={standard}")).arg("-isystem").arg(cuda());
                command.arg("-I").arg(self::folder()).arg("-fsyntax-only");
                command.arg(folder.path().join(format!("{name}.{}", if is_cxx { "cpp" } else { "c" })));
                jobs.push(command);
            }
        }
    }
    for standard in ["c++11", "c++14", "c++17", "c++20"] {
        let mut command = Command::new(nvcc());
        command.args(["-arch=sm_90", "-Werror", "all-warnings", "-Xcompiler", "-Wall,-Wextra,-Werror"]);
        // Its own code is not pedantic, and newer releases warn of older standards.
        command.args(["-Wno-deprecated-gpu-targets", "-c", "-o", "/dev/null"]).arg(format!("-std={standard}"));
        command.arg("-I").arg(self::folder()).arg(folder.path().join("alone.cu"));
        jobs.push(command);
    }
    let jobs = std::sync::Mutex::new(jobs);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(mut job) = jobs.lock().expect("no one panicked").pop() else { break };
                    done(&mut job);
                }
            });
        }
    });
}

/// What a launch on the workload of the comment must be: `name: block, grid, shared`.
fn expected(known: &Known) -> String {
    let launch = known.space.launch(known.space.baseline()).expect("it can be launched");
    let line = |[x, y, z]: [u32; 3]| format!("{x} {y} {z}");
    format!("{}: {}, {}, {}\n", known.annotation.name, line(launch.block), line(launch.grid), launch.shared)
}

/// The values that the workload gives to the parameters of a function.
fn values(known: &Known, parameters: &[nvtune::emit::HostParameter]) -> String {
    let value = |parameter: &nvtune::emit::HostParameter| {
        let name = known.annotation.kernel.parameters[parameter.argument].as_deref().expect("named");
        let node = Node::Name(format!("{name}{}", parameter.field));
        let expression = Expr { span: Span { start: 0, end: 0 }, node };
        known.space.evaluate(known.space.baseline(), &expression).expect("it has a value").to_string()
    };
    parameters.iter().map(value).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_functions_give_what_the_tuner_launches() {
    // `large` is told below: no launch can be like that. A kernel without a workload has no launch.
    let shapes = SHAPES.iter().filter(|shape| !["large", "no_threads"].contains(&shape.stem));
    let all: Vec<Known> = shapes.flat_map(known).collect();
    let wanted: String = all.iter().map(expected).collect();
    let (mut c, mut cxx) = (String::new(), String::new());
    let names: Vec<String> = all.iter().map(|known| known.annotation.name.clone()).collect();
    for (known, name) in all.iter().zip(&names) {
        let (grid, shared) =
            (values(known, &known.header.grid.parameters), values(known, &known.header.shared.parameters));
        let _ = writeln!(
            c,
            "  print(\"{name}\", nvtune_{name}_block(), nvtune_{name}_grid({grid}), nvtune_{name}_shared({shared}));"
        );
        let place = if ["grid", "class"].contains(&name.as_str()) { format!("{name}_") } else { name.clone() };
        let _ = writeln!(
            cxx,
            "  print(\"{name}\", plain(nvtune::{place}::block()), plain(nvtune::{place}::grid({grid})), nvtune::{place}::shared({shared}));"
        );
    }
    let print = "#include <stdio.h>\nstatic void print(const char *name, nvtune_dim3 block, nvtune_dim3 grid, size_t shared) {\n\
                 printf(\"%s: %u %u %u, %u %u %u, %zu\\n\", name, block.x, block.y, block.z, grid.x, grid.y, grid.z, shared);\n}\n";
    let plain = "static nvtune_dim3 plain(dim3 of) { nvtune_dim3 made = {of.x, of.y, of.z}; return made; }\n";
    let large = "  print(\"huge\", nvtune_huge_block(), nvtune_huge_grid(1024), 0);\n  print(\"none\", nvtune_huge_block(), nvtune_huge_grid(-1), 0);\n";
    let capable = "#define NVTUNE_CAPABILITY capability\nstatic int capability;\n";
    let fat = "  for (capability = 75; capability < 130; capability += 15) print(\"fat\", nvtune_mixed_block(), nvtune_mixed_grid(1000), nvtune_mixed_shared(8));\n";
    let programs = [
        ("c.c", "gcc", format!("{}{print}int main(void) {{\n{c}{large}  return 0;\n}}\n", includes("", ""))),
        ("cxx.cpp", "g++", format!("{}{print}int main() {{\n{c}{large}}}\n", includes("", ""))),
        (
            "types.cpp",
            "g++",
            format!(
                "{}{print}{plain}int main() {{\n{cxx}{large}}}\n",
                includes("", "#define NVTUNE_CAPABILITY 90\n#include <vector_types.h>\n")
            ),
        ),
        ("fat.c", "gcc", format!("{capable}{}{print}int main(void) {{\n{fat}  return 0;\n}}\n", includes("", ""))),
        (
            "fat.cpp",
            "g++",
            format!(
                "{capable}{}{print}int main() {{\n{}}}\n",
                includes("", "#include <vector_types.h>\n"),
                fat.replace("nvtune_mixed_", "nvtune::mixed::").replace(
                    "print(\"fat\", nvtune::mixed::block(), nvtune::mixed::grid(1000)",
                    "print(\"fat\", plain(nvtune::mixed::block()), plain(nvtune::mixed::grid(1000))"
                )
            ),
        ),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    for (file, compiler, text) in programs {
        let text = if file == "fat.cpp" { text.replace("int main", &format!("{plain}int main")) } else { text };
        std::fs::write(folder.path().join(file), text).expect("written");
        let program = folder.path().join(format!("{file}.out"));
        let mut compile = Command::new(compiler);
        compile
            .arg("-I")
            .arg(self::folder())
            .arg("-I")
            .arg(cuda())
            .arg(folder.path().join(file))
            .arg("-o")
            .arg(&program);
        done(&mut compile);
        let said = done(&mut Command::new(&program));
        if file.starts_with("fat") {
            let of = |block: u32, blocks: u32| format!("fat: {block} 1 1, {blocks} 1 1, {}\n", block * 8);
            assert_eq!(said, [of(256, 4), of(64, 16), of(64, 16), of(32, 32)].concat(), "{file}");
        } else {
            // More blocks than any GPU takes stay too many, and fewer than none are none: both fail at the launch.
            let large = "huge: 128 1 1, 4294967295 1 1, 0\nnone: 128 1 1, 0 1 1, 0\n";
            assert_eq!(said, format!("{wanted}{large}"), "{file}");
        }
    }
}

/// The CUDA runtime as far as `launch` needs it: it says what it is asked for.
const RUNTIME: &str = r#"
#include <cuda_runtime_api.h>
#include <stdio.h>
static int most = 49152;
extern "C" cudaError_t CUDARTAPI cudaGetDevice(int *device) { *device = 0; return cudaSuccess; }
extern "C" cudaError_t CUDARTAPI cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 8 : 0;
  return cudaSuccess;
}
extern "C" cudaError_t CUDARTAPI cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *) {
  attributes->maxDynamicSharedSizeBytes = most;
  return cudaSuccess;
}
extern "C" cudaError_t CUDARTAPI cudaFuncSetAttribute(const void *, cudaFuncAttribute attribute, int value) {
  printf("attribute %d = %d\n", attribute, value);
  if (value > 232448) return cudaErrorInvalidValue;
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) most = value;
  return cudaSuccess;
}
extern "C" cudaError_t CUDARTAPI cudaLaunchKernelExC(const cudaLaunchConfig_t *c, const void *, void **arguments) {
  printf("grid %u %u %u block %u %u %u shared %zu stream %p attributes %u", c->gridDim.x, c->gridDim.y, c->gridDim.z,
         c->blockDim.x, c->blockDim.y, c->blockDim.z, c->dynamicSmemBytes, static_cast<void *>(c->stream), c->numAttrs);
  if (arguments && arguments[0]) printf(" first %d", *static_cast<const int *>(arguments[0]));
  printf("\n");
  return c->gridDim.x == 0 ? cudaErrorInvalidConfiguration : cudaSuccess;
}
"#;

#[test]
fn launch_launches_the_winner() {
    let program = r#"
struct Plan { int n; struct { long rows; } inner; };
void saxpy(int, float, float *) {}
void stencil(int, int, float *) {}
void mixed(const int, int, float *) {}
void strided(int, float *) {}
void planned(const Plan, int, float *) {}
void waiting(int, float *) {}
template <class T, int M> void axpy(int, T, T *) {}
int main() {
  const Plan plan = {1000, {7}};
  const cudaStream_t stream = reinterpret_cast<cudaStream_t>(16);
  // Arguments are converted as in any call: the kernel takes an int and a float.
  printf("%d\n", nvtune::saxpy::launch(saxpy, stream, 1000LL, 2, nullptr));
  printf("%d\n", nvtune::saxpy::launch(&saxpy, 0, 0, 2, nullptr));
  printf("%d\n", nvtune::stencil::launch(stencil, 0, 1000, 3, nullptr));
  printf("%d\n", nvtune::stencil::launch(stencil, 0, 1000, 10000, nullptr));
  printf("%d\n", nvtune::stencil::launch(stencil, 0, 1000, 100000, nullptr));
  printf("%d\n", nvtune::strided::launch(strided, 0, 1000, nullptr));
  printf("%d\n", nvtune::planned::launch(planned, 0, plan, 3, nullptr));
  printf("%d\n", nvtune::waiting::launch(waiting, 0, 1000, nullptr));
  printf("%d\n", nvtune::axpy_float_4::launch(axpy<float, 4>, 0, 1000, 1, nullptr));
  printf("%d\n", nvtune::mixed::launch(mixed, 0, 1000, 8, nullptr));
}
"#;
    let folder = tempfile::tempdir().expect("a folder");
    let mut said = Vec::new();
    for (compiler, standard) in [("g++", "c++11"), ("clang++", "c++20")] {
        if which::which(compiler).is_err() {
            eprintln!("no {compiler} here: not tried");
            continue;
        }
        let (source, out) = (folder.path().join("launch.cpp"), folder.path().join("launch"));
        std::fs::write(&source, format!("{RUNTIME}{}{program}", includes("", ""))).expect("written");
        let mut compile = Command::new(compiler);
        compile.args(STRICT).arg(format!("-std={standard}")).arg("-isystem").arg(cuda());
        done(compile.arg("-I").arg(self::folder()).arg(&source).arg("-o").arg(&out));
        said.push(done(&mut Command::new(&out)));
    }
    expect_test::expect![[r#"
        grid 11 1 1 block 96 1 1 shared 0 stream 0x10 attributes 0 first 1000
        0
        grid 0 1 1 block 96 1 1 shared 0 stream (nil) attributes 0 first 0
        9
        grid 8 1 1 block 128 1 1 shared 536 stream (nil) attributes 0 first 1000
        0
        attribute 8 = 80512
        grid 8 1 1 block 128 1 1 shared 80512 stream (nil) attributes 0 first 1000
        0
        attribute 8 = 800512
        1
        grid 264 1 1 block 128 1 1 shared 1056 stream (nil) attributes 0 first 1000
        0
        grid 8 21 1 block 128 1 1 shared 0 stream (nil) attributes 0 first 1000
        0
        grid 264 1 1 block 128 1 1 shared 0 stream (nil) attributes 1 first 1000
        0
        grid 8 1 1 block 128 1 1 shared 0 stream (nil) attributes 0 first 1000
        0
        grid 4 1 1 block 256 1 1 shared 2048 stream (nil) attributes 0 first 1000
        0
    "#]]
    .assert_eq(&said[0]);
    assert!(said.iter().all(|other| *other == said[0]), "{said:?}");
}

#[test]
fn two_headers_of_kernels_of_one_name_are_told_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let same = |stem: &str, block: u32| {
        let source = format!(
            "//@tune threads(n) block({{64, 128}}) default(block = {block}) args(n = 1000, x = random[n])\n__global__ void scale(int n, float *x) {{}}\n"
        );
        let annotations = annotations(&Source::new(format!("{stem}.cu"), source.as_bytes())).expect("a good comment");
        let space = Space::new(&annotations[0], &Limits::default()).expect("a space");
        let kernels = vec![header(&annotations[0], &Types::new(), space.baseline(), Provenance::Measured, "sm_90")];
        let text = Header { source: format!("{stem}.cu"), kernels }.text();
        std::fs::write(folder.path().join(Header::file_name(stem)), text).expect("written");
        let part = format!(
            "#include <vector_types.h>\n#include \"{stem}.tune.h\"\nunsigned {stem}() {{ return nvtune::scale::block().x; }}\n"
        );
        std::fs::write(folder.path().join(format!("{stem}.cpp")), part).expect("written");
    };
    same("a", 64);
    same("b", 128);
    let at = |name: &str| folder.path().join(name);
    // In two translation units each keeps its own, without optimization too, where nothing is inlined.
    std::fs::write(
        at("main.cpp"),
        "unsigned a();\nunsigned b();\nint main() { return a() == 64 && b() == 128 ? 0 : 1; }\n",
    )
    .expect("written");
    let mut compile = Command::new("g++");
    compile.arg("-O0").arg("-I").arg(cuda()).args([at("a.cpp"), at("b.cpp"), at("main.cpp")]).arg("-o").arg(at("main"));
    done(&mut compile);
    done(&mut Command::new(at("main")));
    // In one there is no telling which is meant.
    std::fs::write(at("both.c"), "#include \"a.tune.h\"\n#include \"b.tune.h\"\n").expect("written");
    let output = Command::new("gcc").args(["-fsyntax-only"]).arg(at("both.c")).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = "two headers of nvtune have a kernel scale: add name(...) to the tuning comment of one of them";
    assert!(!output.status.success() && said.contains(expected), "{said}");
}
