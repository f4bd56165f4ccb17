//! `nvtune init`: comments that are proposed for kernels from the code around them, without a GPU and without nvcc.

use expect_test::{Expect, expect};
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

const SAXPY: &str = "\
__global__ void saxpy(int n, float a, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

int main() {
    const int n = 1 << 20;
    float *x, *y;
    cudaMalloc(&x, n * sizeof(float));
    cudaMalloc(&y, n * sizeof(float));
    saxpy<<<(n + 255) / 256, 256>>>(n, 2.0f, x, y);
}
";

/// What a run gave: exit code, standard output, standard error.
type Ran = (i32, String, String);

/// Runs `nvtune init` in a folder in which no nvcc is found.
fn init(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nvtune"));
    command.arg("init").args(arguments).current_dir(folder).env_clear().env("PATH", "/nowhere");
    let ran = command.output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (ran.status.code().expect("it ends by itself"), text(&ran.stdout), text(&ran.stderr))
}

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    files.iter().for_each(|(name, text)| std::fs::write(folder.path().join(name), text).expect("written"));
    folder
}

/// The added lines of the diff for one file, then what is said.
fn added(text: &str) -> String {
    let folder = folder(&[("a.cu", text)]);
    let (_, diff, said) = init(folder.path(), &["a.cu"]);
    let lines = diff.lines().filter(|line| line.starts_with('+') && !line.starts_with("+++"));
    lines.map(|line| format!("{}\n", &line[1..])).chain([said]).collect()
}

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&added(text));
}

#[test]
fn diff_has_the_launch_and_every_argument() {
    let folder = folder(&[("a.cu", SAXPY)]);
    let (code, diff, said) = init(folder.path(), &["a.cu"]);
    expect![[r#"
        --- a/a.cu
        +++ b/a.cu
        @@ -1,3 +1,5 @@
        +//@tune threads(n) block(auto) regs(auto) default(block = 256)
        +//@tune args(n = 1 << 20, a = 2.0, x = random[n], y = random[n])
         __global__ void saxpy(int n, float a, const float *x, float *y) {
             const int i = blockIdx.x * blockDim.x + threadIdx.x;
             if (i < n) y[i] = a * x[i] + y[i];
    "#]]
    .assert_eq(&diff);
    assert_eq!((code, said.as_str()), (0, "nvtune: a.cu: proposed: 1; left out: 0; marked already: 0\n"));
    assert_eq!(std::fs::read_to_string(folder.path().join("a.cu")).expect("read"), SAXPY);
}

#[test]
fn equal_numbers_are_told_apart_by_what_the_launch_comes_from() {
    check(
        "#define ROWS 512\n#define COLUMNS 512\n\
         __global__ void add(int rows, int columns, float *a, float *row) { a[0] += row[0]; }\n\
         int main() { float *a, *row; cudaMalloc(&a, ROWS * COLUMNS * 4); cudaMalloc(&row, COLUMNS * sizeof(float));\n\
         add<<<dim3(COLUMNS / 32, ROWS / 8), dim3(32, 8)>>>(ROWS, COLUMNS, a, row); }\n",
        expect![[r#"
            // One block: it does not read blockDim.x.
            //@tune threads(columns, rows) regs(auto) default(block = {32, 8})
            //@tune args(rows = 512, columns = 512, a = random[rows * columns], row = random[columns])
            nvtune: a.cu: proposed: 1; left out: 0; marked already: 0
        "#]],
    );
}

#[test]
fn guesses_are_named_above_the_comment() {
    check(
        "__global__ void scale(int n, float a, float *x, float *y) { y[0] = a * x[0]; }\n\
         void run(float *x, float *y, int n, float a) { scale<<<(n + 127) / 128, 128>>>(n, a, x, y); }\n",
        expect![[r#"
            // Guesses of nvtune init: a = 1, n = 1024, size of x, size of y.
            // One block: it does not read blockDim.x.
            //@tune threads(n) regs(auto) default(block = 128)
            //@tune args(n = 1024, a = 1.0, x = random[n], y = out[n])
            nvtune: a.cu: proposed: 1; left out: 0; marked already: 0
        "#]],
    );
}

#[test]
fn template_takes_the_instance_that_is_launched() {
    check(
        "template <typename T, int TILE> __global__ void tiled(T *x, size_t n) { x[0] = n; }\n\
         template <typename T> __global__ void plain(T *x, T a) { x[0] = a; }\n\
         int main() { double *x; cudaMalloc(&x, 4096 * sizeof(double));\n\
         tiled<double, 8><<<64, 64, 64 * sizeof(double)>>>(x, 4096); plain<<<16, 256>>>(x, 2.5); }\n",
        expect![[r#"
            // One block: it does not read blockDim.x.
            //@tune threads(n) template(double, 8) regs(auto) shared(block.size * 8) default(block = 64)
            //@tune args(x = out[n], n = 4096)
            // One block: it does not read blockDim.x.
            //@tune threads(4096) template(double) regs(auto) default(block = 256)
            //@tune args(x = out[4096], a = 2.5)
            nvtune: a.cu: proposed: 2; left out: 0; marked already: 0
        "#]],
    );
}

#[test]
fn structures_and_typedefs_get_values() {
    check(
        "typedef float real;\n#define REAL real\nstruct Point { real x, y; };\nstruct Mixed { int a; double b; };\n\
         struct Sizes { int rows; float scale; };\n\
         __global__ void k(Sizes sizes, const Point *points, Mixed *mixed, REAL *out, float2 corner) { out[0] = 1; }\n\
         int main() { Sizes s; s.rows = 96; s.scale = 0.5f; Point *p; Mixed *m; REAL *o;\n\
         cudaMalloc(&p, 96 * sizeof(Point)); cudaMalloc(&m, 96 * sizeof(Mixed)); cudaMalloc(&o, sizeof(REAL) * 96);\n\
         k<<<3, 32>>>(s, p, m, o, make_float2(1, 2.5)); }\n",
        expect![[r#"
            // One block: it does not read blockDim.x.
            //@tune threads(96) regs(auto) default(block = 32)
            //@tune args(sizes = {rows = 96, scale = 0.5}, float points = random[192],
            //@tune      unsigned char mixed = zeros[1536], out = out[96], corner = {x = 1.0, y = 2.5})
            nvtune: a.cu: proposed: 1; left out: 0; marked already: 0
        "#]],
    );
}

/// A kernel with a parameter of type `M` and its launch, below the definition of the type.
fn kernel_of_structure(definition: &str) -> String {
    format!(
        "{definition}\n\
         __global__ void k(M a) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < a.n) a.p[i] = i; }}\n\
         int main() {{ M a; a.n = 1024; cudaMalloc(&a.p, 1024 * sizeof(float)); k<<<4, 256>>>(a); }}\n"
    )
}

#[test]
fn structure_is_named_by_typedef_or_using() {
    for definition in [
        "struct M { int n; float *p; };",
        "typedef struct Tag { int n; float *p; } M;",
        "typedef struct { int n; float *p; } M;",
        "typedef struct { int n; float *p; } M, *MP;",
        "typedef struct { int n; float *p; } *MP, M;",
        "using M = struct { int n; float *p; };",
        "using M = struct Tag { int n; float *p; };",
        "namespace s { typedef struct { int n; float *p; } M; } using namespace s;",
    ] {
        let lines = added(&kernel_of_structure(definition));
        assert!(lines.contains("//@tune args(a = {n = 1024, p = random["), "{definition}\n{lines}");
    }
}

#[test]
fn only_a_pointer_gets_a_buffer() {
    for definition in [
        "typedef union { int n; float *p; } M;",
        "union M { int n; float *p; };",
        "template <typename T> struct P { int n; T p; };\ntypedef P<float *> M;",
        "struct M { int n; float *p; struct { int n; float *p; } inner; };",
        "typedef float (*M)(float *);",
        "typedef struct { int n; float *p; } *M;",
    ] {
        let lines = added(&kernel_of_structure(definition));
        assert!(lines.contains("// No workload: ") && !lines.contains("args("), "{definition}\n{lines}");
    }
}

#[test]
fn size_of_a_union_is_that_of_its_largest_field() {
    check(
        "typedef union { float all[4]; float first; } M;\n\
         __global__ void k(M *a) { a[blockIdx.x * blockDim.x + threadIdx.x].first += 1; }\n\
         int main() { M *a; cudaMalloc(&a, 1024 * sizeof(M)); k<<<4, 256>>>(a); }\n",
        expect![[r#"
            //@tune threads(1024) block(auto) regs(auto) default(block = 256)
            //@tune args(float a = random[4096])
            nvtune: a.cu: proposed: 1; left out: 0; marked already: 0
        "#]],
    );
}

#[test]
fn field_has_one_value_that_gives_the_grid() {
    check(
        "struct Size { int w, h; };\nstruct M { Size size; int n; float *p; };\n\
         __global__ void k(M a) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < a.n) a.p[i] = i; }\n\
         void run(M a) { k<<<(a.n + 255) / 256, 256>>>(a); }\n\
         __global__ void l(M a) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < a.size.w) a.p[i] = i; }\n\
         void go(M a) { l<<<a.size.w / 256, 256>>>(a); }\n",
        expect![[r#"
            // Guesses of nvtune init: a.n = 1048576, a.size.w, a.size.h, size of a.p.
            //@tune threads(a.n) block(auto) regs(auto) default(block = 256)
            //@tune args(a = {size = {w = 1, h = 1}, n = 1 << 20, p = random[a.n]})
            // Guesses of nvtune init: a.size.w = 1048576, a.size.h, a.n, size of a.p.
            //@tune threads(a.size.w) block(auto) regs(auto) default(block = 256)
            //@tune args(a = {size = {w = 1 << 20, h = 1}, n = 1, p = random[a.size.w]})
            nvtune: a.cu: proposed: 2; left out: 0; marked already: 0
        "#]],
    );
}

#[test]
fn field_that_has_the_value_of_the_grid_by_chance_is_not_named() {
    let lines = added(
        "struct M { int mode; float *p; };\n\
         __global__ void k(M a, int n, int m) { a.p[blockIdx.x * blockDim.x + threadIdx.x] = a.mode; }\n\
         void run(M a, int n, int m) { a.mode = 2; k<<<(n - m - 1) / 64 + 1, 64>>>(a, n, m); }\n",
    );
    assert!(lines.contains("//@tune args(a = {mode = 2, ") && !lines.contains("(a.mode)"), "{lines}");
}

#[test]
fn template_argument_follows_from_a_cast() {
    for cast in
        ["(const float *)s", "(float *)(s)", "reinterpret_cast<const float *>(s)", "static_cast<float *>(s) + 1"]
    {
        let lines = added(&format!(
            "template <typename T> __global__ void scan(const T *src, int n) {{ if (src[blockDim.x]) return; }}\n\
             void op(const void *s, int n) {{ scan<<<(n + 255) / 256, 256>>>({cast}, n); }}\n"
        ));
        assert!(lines.contains(" template(float) "), "{cast}\n{lines}");
    }
}

#[test]
fn launches_of_an_explicit_specialization_are_its_own() {
    check(
        "template <typename T> __global__ void d(T *x, int n) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }\n\
         template <> __global__ void d<double>(double *x, int n) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 3; }\n\
         void run(float *x, double *y, int n) { d<<<(n + 255) / 256, 256>>>(x, n); d<double><<<(n + 127) / 128, 128>>>(y, n); }\n",
        expect![[r#"
            // Guesses of nvtune init: n = 1048576, size of x.
            //@tune threads(n) template(float) block(auto) regs(auto) default(block = 256)
            //@tune args(x = random[n], n = 1 << 20)
            // Guesses of nvtune init: n = 1048576, size of x.
            //@tune threads(n) block(auto) regs(auto) default(block = 128)
            //@tune args(x = random[n], n = 1 << 20)
            nvtune: a.cu: proposed: 2; left out: 0; marked already: 0
        "#]],
    );
}

#[test]
fn kernel_without_a_workload_gets_its_launch_and_the_reason() {
    check(
        "__global__ void blur(int w, cudaTextureObject_t image, float *y) { y[0] = w; }\n\
         int main() { float *y; cudaMalloc(&y, 4096); blur<<<dim3(4, 8), dim3(16, 16)>>>(64, texture, y); }\n",
        expect![[r#"
            // One block: it does not read blockDim.x.
            // No workload: `image` is of a type that takes no value. To record one, remove threads(...) or
            // grid(...), and build with NVTUNE=capture.
            //@tune threads(64, 128) regs(auto) default(block = {16, 16})
            nvtune: a.cu: proposed: 1; left out: 0; marked already: 0
        "#]],
    );
}

#[test]
fn kernel_that_gets_no_comment_gets_one_line_with_the_reason() {
    let text = "\
#if 0
__global__ void gone(int n) {}
#endif
__global__ void unlaunched(float *x) { x[0] = 1; }
__global__ void inner(float *x) { x[0] = 1; }
__global__ void outer(float *x) { inner<<<1, 32>>>(x); }
int f() { return 1; } __global__ void crowded(float *x) {}
template <int N> __global__ void open(float *x) {}
void run(float *x, int n) { crowded<<<1, 32>>>(x); open<<<1, 32>>>(x); }
";
    let folder = folder(&[("a.cu", text)]);
    let (code, diff, said) = init(folder.path(), &["a.cu"]);
    assert_eq!((code, diff.as_str()), (1, ""));
    expect![[r#"
        a.cu:2: gone: `#if` leaves it out: give the build's macros, as in -- -DNAME [N0235]
        a.cu:4: unlaunched: no launch of it is found in host code [N0235]
        a.cu:5: inner: only device code launches it [N0235]
        a.cu:6: outer: no launch of it is found in host code [N0235]
        a.cu:7: crowded: other code is on the line where its declaration begins [N0235]
        a.cu:8: open: its launches do not tell its template arguments `N`: write //@tune, and build with NVTUNE=capture [N0235]
        nvtune: a.cu: proposed: 0; left out: 6; marked already: 0
    "#]]
    .assert_eq(&said);
}

#[test]
fn launches_in_other_files_of_the_folder_count() {
    let folder = folder(&[
        ("k.cuh", "#pragma once\n__global__ void k(int n, float *x) { x[0] = n; }\n"),
        ("main.cpp", "#include \"run.h\"\nint main() { run(COUNT); }\n"),
        (
            "run.cu",
            "#include \"k.cuh\"\nvoid run(int n) { float *x; cudaMalloc(&x, 4 * n); k<<<n / 64, 64>>>(n, x); }\n",
        ),
        ("run.h", "#define COUNT 6400\nvoid run(int n);\n"),
    ]);
    let (code, diff, _) = init(folder.path(), &["k.cuh"]);
    assert!(code == 0 && diff.contains("+//@tune args(n = 6400, x = out[n])\n"), "{diff}");
}

#[test]
fn launches_of_a_namesake_in_another_file_do_not_count() {
    let folder = folder(&[
        (
            "one.cu",
            "static __global__ void k(int n, float *x) { x[blockDim.x] = n; }\n\
             void one(int n, float *x) { k<<<(n + 255) / 256, 256>>>(n, x); }\n",
        ),
        (
            "two.cu",
            "static __global__ void k(int n, float *x) { x[blockDim.x] = n; }\nvoid two(float *x) { k<<<1, 32>>>(0, x); }\n",
        ),
    ]);
    let (_, diff, _) = init(folder.path(), &["one.cu"]);
    assert!(diff.contains("+//@tune threads(n) block(auto) regs(auto) default(block = 256)\n"), "{diff}");
    let (_, diff, _) = init(folder.path(), &["two.cu"]);
    assert!(diff.contains("default(block = 32)\n"), "{diff}");
}

#[test]
fn write_keeps_line_endings_permissions_and_links() {
    let folder = folder(&[("a.cu", &SAXPY.replace('\n', "\r\n"))]);
    let path = folder.path().join("a.cu");
    std::fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("set");
    symlink("a.cu", folder.path().join("link.cu")).expect("linked");
    let (code, diff, said) = init(folder.path(), &["--write", "link.cu"]);
    assert_eq!((code, diff.as_str()), (0, ""));
    assert_eq!(said, "nvtune: link.cu: written: 1; left out: 0; marked already: 0\n");
    let written = std::fs::read_to_string(&path).expect("read");
    assert!(
        written.starts_with("//@tune threads(n) block(auto) regs(auto) default(block = 256)\r\n//@tune args("),
        "{written}"
    );
    assert_eq!(written.matches('\n').count(), written.matches("\r\n").count());
    assert_eq!(path.metadata().expect("there").mode() & 0o777, 0o640);
    assert!(folder.path().join("link.cu").is_symlink());
    assert_eq!(std::fs::read_dir(folder.path()).expect("read").count(), 2);
    // Once more there is nothing to do.
    let (code, diff, said) = init(folder.path(), &["--write", "a.cu"]);
    assert_eq!((code, diff.as_str()), (0, ""));
    assert_eq!(said, "nvtune: a.cu: written: 0; left out: 0; marked already: 1\n");
    assert_eq!(std::fs::read_to_string(&path).expect("read"), written);
}

#[test]
fn proposals_of_a_diff_apply() {
    if which::which("patch").is_err() {
        eprintln!("no patch here: not tried");
        return;
    }
    let text = format!(
        "{SAXPY}\n__global__ void other(float *x) {{ x[0] = 1; }}\nvoid run(float *x) {{ other<<<1, 32>>>(x); }}"
    );
    let folder = folder(&[("a.cu", &text), ("b.cu", &text)]);
    let (_, diff, _) = init(folder.path(), &["a.cu"]);
    std::fs::write(folder.path().join("diff"), diff).expect("written");
    let patched =
        Command::new("patch").args(["-p1", "-i", "diff"]).current_dir(folder.path()).status().expect("it starts");
    assert!(patched.success());
    init(folder.path(), &["--write", "b.cu"]);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("read");
    assert_eq!(read("a.cu"), read("b.cu"));
}

#[test]
fn wrong_comments_and_missing_files_are_errors() {
    let folder =
        folder(&[("a.cu", "//@tune bock(256)\n__global__ void k(int n) {}\n"), ("b.cu", "int x;\n"), ("c.cu", SAXPY)]);
    let (code, _, said) = init(folder.path(), &["a.cu"]);
    assert!(code == 1 && said.starts_with("a.cu(1): error: unknown clause `bock`"), "{said}");
    let (code, _, said) = init(folder.path(), &["gone.cu", "c.cu"]);
    assert!(code == 1 && said.contains("nvtune fatal   : 'gone.cu' cannot be read"), "{said}");
    assert!(said.contains("c.cu: proposed: 1"), "{said}");
    assert_eq!(init(folder.path(), &["b.cu"]).0, 0);
    assert_eq!(init(folder.path(), &[]).0, 2);
}

#[test]
fn options_of_the_build_say_where_types_are_and_what_is_compiled() {
    let folder = folder(&[(
        "a.cu",
        "#include \"types.h\"\n#include <unit.h>\n\
         #ifdef WIDE\n__global__ void wide(int n, float *x) { x[0] = n; }\n\
         void run(float *x) { wide<<<N / 64, 64>>>(N, x); }\n#endif\n\
         __global__ void force(int n, Grid::Box box, Unit *units) { units[0].a = n; }\n\
         void run(Grid::Box box, Unit *u) { force<<<(512 + 63) / 64, 64>>>(512, box, u); }\n",
    )]);
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("a folder");
        std::fs::write(path, text).expect("written");
    };
    write(
        "inc/types.h",
        "struct Other { struct Box { double *p; }; };\n\
         class Grid { public: struct Box { static const int n = 3; int sides; float h[9]; float2 low; }; };\n",
    );
    write("lib/unit.h", "struct Unit { float a, b; };\n");
    let (_, diff, said) = init(folder.path(), &["a.cu"]);
    assert!(diff.contains("+// No workload: the type of `box` is not found."), "{diff}");
    expect![[r#"
        a.cu:4: wide: `#if` leaves it out: give the build's macros, as in -- -DNAME [N0235]
        a.cu: 'types.h' is not found: say where headers are, as in nvtune init a.cu -- -I FOLDER [N0236]
        nvtune: a.cu: proposed: 1; left out: 1; marked already: 0
    "#]]
    .assert_eq(&said);
    let options = ["a.cu", "--", "-I", "inc", "-isystem", "lib", "-DWIDE", "-DN=2048", "-c", "a.cu"];
    let (code, diff, said) = init(folder.path(), &options);
    let lines: Vec<&str> = diff.lines().filter(|line| line.starts_with('+')).collect();
    expect![[r#"
        +++ b/a.cu
        +// Guesses of nvtune init: size of x.
        +// One block: it does not read blockDim.x.
        +//@tune threads(n) regs(auto) default(block = 64)
        +//@tune args(n = 2048, x = out[n])
        +// Guesses of nvtune init: box.sides, box.h = 0, box.low.x, box.low.y, size of units.
        +// One block: it does not read blockDim.x.
        +//@tune threads(n) regs(auto) default(block = 64)
        +//@tune args(n = 512, box = {sides = 1, low = {x = 1.0, y = 1.0}}, float units = random[1024])"#]]
    .assert_eq(&lines.join("\n"));
    assert_eq!((code, said.as_str()), (0, "nvtune: a.cu: proposed: 2; left out: 0; marked already: 0\n"));
}

#[test]
fn grid_without_a_workload_follows_the_argument_that_gives_it() {
    check(
        "__global__ void blur(int n, cudaTextureObject_t image, float *y) { y[blockIdx.x * blockDim.x] = n; }\n\
         void run(int atoms, float *y) { int blocks = (atoms - 1) / 128 + 1; blur<<<blocks, 128>>>(atoms, t, y); }\n\
         __global__ void sharpen(cudaTextureObject_t image, float *y) { y[blockIdx.x * blockDim.x] = 1; }\n\
         void go(int atoms, float *y) { sharpen<<<(atoms - 1) / 128 + 1, 128>>>(t, y); }\n",
        expect![[r#"
            // Guesses of nvtune init: atoms = 1048576.
            // No workload: `image` is of a type that takes no value. To record one, remove args(...), and build
            // with NVTUNE=capture.
            //@tune threads(n) block(auto) regs(auto) default(block = 128)
            //@tune args(n = 1 << 20)
            a.cu:3: sharpen: the grid of its launch in line 4 of 'a.cu' is not found: write //@tune block(auto), and build with NVTUNE=capture [N0235]
            nvtune: a.cu: proposed: 1; left out: 1; marked already: 0
        "#]],
    );
}

#[test]
fn long_products_of_arguments_give_a_grid() {
    check(
        "__global__ void k(int b, int t, int c, float *x) { x[blockIdx.x * blockDim.x] = 1; }\n\
         void run(int B, int T, int C, float *x) { int n = B * T * C; k<<<(n + 255) / 256, 256>>>(B, T, C, x); }\n",
        expect![[r#"
            // Guesses of nvtune init: B = 256, C = 256, T = 256, size of x.
            //@tune threads(b * t * c) block(auto) regs(auto) default(block = 256)
            //@tune args(b = 256, t = 256, c = 256, x = random[1 << 24])
            nvtune: a.cu: proposed: 1; left out: 0; marked already: 0
        "#]],
    );
}

#[test]
fn overloads_get_names_of_their_own() {
    check(
        "__global__ void copy(int n, const float *x, float *y) { y[blockIdx.x * blockDim.x] = x[0]; }\n\
         __global__ void copy(int n, const int *at, const float *x, float *y) { y[blockDim.x] = x[at[0]]; }\n\
         __global__ void copy(int n, int m, int *a, int *b, int *c) { a[blockDim.x] = 1; }\n\
         __global__ void move(float *x) { x[blockDim.x] = 1; }\n__global__ void move(int *x) { x[blockDim.x] = 1; }\n\
         int main() { float *x; int *at; cudaMalloc(&x, 4096); cudaMalloc(&at, 256);\n\
         copy<<<4, 256>>>(1024, x, x); copy<<<1, 64>>>(64, at, x, x); move<<<1, 64>>>(x); }\n",
        expect![[r#"
            //@tune threads(n) block(auto) regs(auto) default(block = 256)
            //@tune args(n = 1024, x = random[n], y = out[n])
            //@tune name(copy_2)
            //@tune threads(n) block(auto) regs(auto) default(block = 64)
            //@tune args(n = 64, at = random[n], x = random[1024], y = out[1024])
            a.cu:3: copy: no launch of this overload is found in host code [N0235]
            a.cu:4: move: its launches may be those of another kernel of its name [N0235]
            a.cu:5: move: its launches may be those of another kernel of its name [N0235]
            nvtune: a.cu: proposed: 2; left out: 3; marked already: 0
        "#]],
    );
}

#[test]
fn launch_that_a_condition_leaves_out_is_named() {
    check(
        "__global__ void k(int n, float *x) { x[blockDim.x] = n; }\n__global__ void j(float *x) { x[blockDim.x] = 1; }\n\
         void run(float *x) {\n#ifdef FAST\n    k<<<4, 64>>>(256, x);\n#else\n#if 0\n    j<float, (1 > 0)> <<<1, 2>>>(x);\n#endif\n#endif\n}\n",
        expect![[r#"
            a.cu:1: k: its launch in line 5 of 'a.cu' is left out by `#ifdef FAST`: give the build's macros, as in -- -DNAME [N0235]
            a.cu:2: j: its launch in line 8 of 'a.cu' is left out by `#if 0`: give the build's macros, as in -- -DNAME [N0235]
            nvtune: a.cu: proposed: 0; left out: 2; marked already: 0
        "#]],
    );
}

#[test]
fn kernel_that_does_not_read_its_block_keeps_it() {
    check(
        "__device__ int at() { return threadIdx.x; }\n\
         __global__ void tile(float *x) { x[blockIdx.x * 64 + at()] = 1; }\n\
         __global__ void flat(int w, int h, float *x) { x[blockIdx.y * w + blockIdx.x * blockDim.x + threadIdx.x] = 1; }\n\
         __global__ void any(float *x) { x[blockIdx.x * 64 + threadIdx.x] = 1; }\n\
         __global__ void rows(int w, int h, int d, float *x) {\n\
         x[(blockIdx.z * h + blockIdx.y) * w + blockIdx.x * blockDim.x + threadIdx.x] = 1; }\n\
         int main(int c, char **v) { float *x; cudaMalloc(&x, 16384); tile<<<16, 64>>>(x);\n\
         flat<<<dim3(2, 8), dim3(64, 1)>>>(128, 8, x); any<<<16, atoi(v[1])>>>(x);\n\
         rows<<<dim3(2, 8, 4), 64>>>(128, 8, 4, x); }\n",
        expect![[r#"
            // One block: it does not read blockDim.x.
            //@tune threads(1024) regs(auto) default(block = 64)
            //@tune args(x = random[4096])
            //@tune threads(w, h) block(auto) require(block.y == 1) regs(auto) default(block = 64)
            //@tune args(w = 128, h = 8, x = random[4096])
            //@tune threads(w, h, d) block(auto) require(block.y == 1 && block.z == 1) regs(auto)
            //@tune default(block = 64)
            //@tune args(w = 128, h = 8, d = 4, x = random[4096])
            a.cu:4: any: it does not read blockDim.x, and the block of its launch is not found [N0235]
            nvtune: a.cu: proposed: 3; left out: 1; marked already: 0
        "#]],
    );
}

#[test]
fn parameters_of_templates_around_a_launch_are_no_template_arguments() {
    check(
        "template <class T> __global__ void set(T *x) { x[blockIdx.x * blockDim.x] = 1; }\n\
         template <class T> __global__ void add(T *x) { x[blockIdx.x * blockDim.x] += 1; }\n\
         template <class T> void run(T *x) { set<<<4, 64>>>(x); }\n\
         template <class T> struct Adder { void go(T *x) { add<T><<<4, 64>>>(x); } };\n\
         int main() { double *x; cudaMalloc(&x, 2048); run(x); }\n",
        expect![[r#"
            //@tune threads(256) template(double) block(auto) regs(auto) default(block = 64)
            //@tune args(x = random[256])
            a.cu:2: add: its launches do not tell its template arguments `T`: write //@tune, and build with NVTUNE=capture [N0235]
            nvtune: a.cu: proposed: 1; left out: 1; marked already: 0
        "#]],
    );
}
