//! The tuning-comment language: what is refused, with the exact message, and what is accepted, with what it means.
//!
//! The tables below are sources; `tests/comments/*.txt` hold what must come out. `UPDATE_EXPECT=1` writes them anew.

use super::support::full::is_full;
use expect_test::expect_file;
use nvtune::comment::{
    Annotation, GivenFill, GivenSymbol, GivenTable, GivenValue, TemplateArgument, annotations, is_marked,
};
use nvtune::diag::{Source, render};
use nvtune::space::{Limits, Space};

/// The kernel that most cases stand above.
const SAXPY: &str = "__global__ void saxpy(int n, float a, const float *x, float *y) {}\n";
/// What most cases need besides the clause that they are about.
const REST: &str = "//@tune block(256) threads(n)\n";

/// Sources that are refused. `<k>` stands for `SAXPY`, `<c>` for `REST`.
const REFUSED: &[&str] = &[
    // Clauses.
    "//@tune bock(256) threads(n)\n<k>",
    "//@tune frobnicate(1) block(32) threads(n)\n<k>",
    "//@tune block(256) threads(n)\n//@tune block(128)\n<k>",
    "<c>//@tune maxrregcount(32) __launch_bounds__(256, 2) blockDim(256) gridDim(64) smem(48) unroll(4) tolerance(1) __MAXNREG__(4)\n<k>",
    "//@tune cahce(ca, cg) carve({0, 50}) trips(3)\n<c><k>",
    "//@tune block threads(n)\n<k>",
    "//@tune block(256 threads(n)\n<k>",
    "//@tune block() threads(n)\n<k>",
    "//@tune 256 threads(n)\n<c><k>",
    "//@tune block({32, 64) threads(n)\n<k>",
    "//@tune block(256) @ threads(n)\n<k>",
    "//@tune name(\"saxpy) block(256) threads(n)\n<k>",
    "<c>//@tune symbol(x, 4 = 5, x = rand[4], ns:y = 4, y = zeros[1], y = zeros[2], float[4] z = 1, a = )\n<k>",
    // Kernels.
    "<c>int main() { return 0; }\n",
    "<c>",
    "<c>static __device__ float f(float x);\n__global__ void g(int n) {}\n",
    "<c>template <typename T> __global__ void k(T *x) {}\n",
    "//@tune block(256) threads(n) args(n = 1)\n//@tune args(a = 1, x = out[1], y = out[1])\n<k>",
    "<c>//@tune template(float)\n<k>",
    "<c>//@tune template(float) template()\ntemplate <typename T> __global__ void k(T *n) {}\n",
    "<c>//@tune template(float,) template(N + 1) template(float)\ntemplate <typename T> __global__ void k(T n) {}\n",
    "<c>//@tune template(float) template(float) name(k)\ntemplate <typename T> __global__ void k(T n) {}\n",
    "<c>//@tune template(4) template(N) define(N = {1, 2})\ntemplate <int N> __global__ void k(int n) {}\n",
    "//@tune template(Kind::Even) block(64) threads(N) shared(M)\ntemplate <auto N, int M = 2> __global__ void k(int n) {}\n",
    "//@tune template(4, float) block(64) threads(T) args(n = Ns, x = zeros[4])\ntemplate <int M, typename T, int... Ns> __global__ void k(int n, T *x) {}\n",
    // Sizes.
    "//@tune template(ns::Op) template(float) block(64) threads(n * sizeof(T) + sizeof(N))\ntemplate <typename T, int N = 1> __global__ void k(T n) {}\n",
    "//@tune template(4) block(64) threads(n) shared(sizeof(T) * N)\ntemplate <int N, typename T> __global__ void k(T n) {}\n",
    "//@tune block({sizeof(T)}) threads(n)\n<k>",
    "//@tune block(64) threads(n * sizeof(T))\n<k>",
    // What may be none or several hides where the parameters behind it are.
    "//@tune template(float, 3, 4) block(64) threads(N)\ntemplate <TYPE_AND_COUNT, int N> __global__ void k(T n) {}\n",
    "//@tune template(3, 4) block(64) threads(A + N)\ntemplate <int A,\n#ifdef LONG\nint B,\n#endif\nint N> __global__ void k(int n) {}\n",
    "//@tune template(2, 3, 4) block(64) threads(A + N)\ntemplate <int A, int... B, int N> __global__ void k(int (&n)[N]) {}\n",
    "<c>//@tune template(double) template(float, 2)\ntemplate <> __global__ void k<float>(int n, float *x) {}\n",
    "<c>template <> __global__ void k(half2 *x, int n) {}\n",
    "<c>template <> __global__ void k<float, >(int n) {}\n",
    "<c>template <> __global__ void k<float, 'ab'>(int n) {}\n",
    "<c>__global__ void saxpy(int n);\n",
    "<c>template __global__ void k<float>(int, float *);\n",
    "<c>#define KERNEL __device__\nKERNEL void f(int n) {}\n",
    "<c>MAKE_KERNEL(f, float)\n",
    "//@tune block(256) threads(n)\nnamespace a {\n//@tune regs(auto)\nint x;\n__global__ void f(int n) {}\n}\n",
    // Lists and blocks.
    "//@tune block({}) threads(n)\n<k>",
    "//@tune block({64, 0}) threads(n)\n<k>",
    "//@tune block(-32) threads(n)\n<k>",
    "//@tune block(64:32) threads(n)\n<k>",
    "//@tune block(32:64:0) threads(n)\n<k>",
    "//@tune block(1:1000000) threads(n)\n<k>",
    "//@tune block(32.5) threads(n)\n<k>",
    "//@tune block(n) threads(n)\n<k>",
    "# define BLK threads()\n//@tune block(BLK) regs({0, BLK}) threads(n)\n<k>",
    "const int TILE = tile(); enum Kind : int { FIRST = f(), SECOND }; constexpr int rows{1, 2}; int other = 3;\n//@tune block(128) grid(TILE, FIRST, rows) require(SECOND, other, Kind)\n<k>",
    "constexpr auto TILE = 32.5;\n<c>//@tune regs(TILE)\n<k>",
    // Of a header, or with another meaning here and there.
    "<c>//@tune args(n = 1)\n__global__ void f(int n, SHARED_ARGS) {}",
    "#define ARGS int m\n#define ARGS int k\n<c>//@tune args(n = 1)\n__global__ void f(int n, ARGS) {}",
    "#define BLK 128\n#define BLK 64\n//@tune block(128) grid(BLK, BL)\n<k>",
    "//@tune define(TILE = {8, 16}) block(TILE, block.x) threads(n)\n<k>",
    "//@tune block(pow2(33, 60), pow2(0, 4), pow2(8)) threads(n)\n<k>",
    "//@tune block({32}, {32}, {64}) threads(n)\n<k>",
    "//@tune block(2048) threads(n)\n<k>",
    "//@tune block(1, 2, 3, 4) threads(n)\n<k>",
    "//@tune block(32, {4, 8}) threads(n) default(block = 32x8, grid = (32, 8))\n<k>",
    "//@tune block(64..1024) threads(n) regs(16...255:8) define(A = 1..B, B = {1, ..., 4}, C = range(1, 4), D = {1, 2, ...}) shared(..)\n<k>",
    "//@tune block(auto, 4) threads(n)\n<k>",
    "<c>//@tune regs({0, 8, 300})\n<k>",
    "<c>//@tune regs({0}, {32})\n<k>",
    "<c>//@tune define(TILE = {8, 16.0}, = 4, UNROLL, min = {1, 2})\n<k>",
    "<c>//@tune define(TILE = {8, 16}, TILE = {1})\n<k>",
    "<c>//@tune define(n = {8, 16})\n<k>",
    "<c>//@tune define(N = {8, 16}) template(N)\ntemplate <int N> __global__ void k(int n) {}\n",
    // The launch.
    "//@tune block(256) args(n = 1)\n<k>",
    "//@tune threads(n) args(n = 1)\n<k>",
    "//@tune threads(n) grid(4) block(256)\n<k>",
    "//@tune threads({1, 2}) block(256)\n<k>",
    "//@tune threads(m) block(256)\n<k>",
    "//@tune threads(blocks.x) block(256)\n<k>",
    "//@tune threads(x) block(256)\n//@tune args(n = 4, a = 1, x = zeros[n], y = out[n])\n<k>",
    "//@tune threads(n) block(256) shared(block.w * 4, 2)\n<k>",
    "//@tune threads(n) block(256) shared(block.w * 4)\n<k>",
    "//@tune threads(n) block(256) shared(sizeof(flot) * block.x)\n<k>",
    "//@tune threads(n) block(256) shared(block.x * 1024)\n<k>",
    "//@tune threads(n / 3.0) block(256)\n//@tune args(n = 4, a = 1, x = zeros[n], y = out[n])\n<k>",
    "//@tune threads(n - 8) block(256)\n//@tune args(n = 4, a = 1, x = zeros[n], y = out[n])\n<k>",
    "//@tune grid(1, n) block(256)\n//@tune args(n = 70000, a = 1, x = zeros[n], y = out[n])\n<k>",
    "//@tune threads(n) block(256)\n//@tune args(n = 4, y = out[n])\n__global__ void k(int n, const float (*rows)[4], float *y) {}\n",
    // Expressions.
    "<c>//@tune require(block.x = 256)\n<k>",
    "<c>//@tune require(block.x == )\n<k>",
    "<c>//@tune require(block.x % 0 == 0)\n<k>",
    "<c>//@tune require(1 << 64, 0x7fffffffffffffff + 1 > 0, 2.0 % 3)\n<k>",
    "<c>//@tune require(block.x > 0 block.x)\n<k>",
    "<c>//@tune require(cieldiv(block.x, 2), sqrt(2), min(1), ceildiv(1, 2, 3))\n<k>",
    "<c>//@tune require(99999999999999999999, 0x, 12ab, 1e999)\n<k>",
    "<c>//@tune require(n > 4)\n<k>",
    "<c>//@tune require(((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1)))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))))\n<k>",
    // The workload.
    "<c>//@tune args(n = 1 << 20, a = 2.0f, x = random[n])\n<k>",
    "<c>//@tune args(n = 4, b = 2.0f, xx = random[n], y = out[n])\n<k>",
    "<c>//@tune template(4, float) args(n = 4, N = 4, T = 1, TILE = 8) define(TILE = {8, 16})\ntemplate <int N, typename T> __global__ void k(int n) {}\n",
    "<c>//@tune args(n = 4, n = 5, a, x = random, y = rand[n])\n<k>",
    "<c>//@tune args(n = 4, a = 1, x = random(1)[n], y = random()[n])\n<k>",
    "<c>//@tune args(n = 4, a = 1, x = file(x.bin)[n], y = fill[n])\n<k>",
    "<c>//@tune args(n = file, a = file[n], x = file(\"x\", 2), y = file(\"\"))\n<k>",
    "<c>//@tune args(n = {1, 2}, a = 1, x = out(3)[n], y = zeros[n] + 1)\n<k>",
    "<c>//@tune args(n = m, a = n, x = zeros[n], y = zeros[n])\n<k>",
    "//@tune block(256) threads(n)\n//@tune args(n = grid.x, a = 1, x = zeros[n], y = zeros[n])\n<k>",
    "<c>//@tune args(a = n, n = a, x = zeros[n], y = zeros[n])\n<k>",
    "//@tune block(256) threads(n) args(n = 4, p = 1)\n__global__ void f(int n, int) {}\n",
    "<c>//@tune check(z, rtol = -1, tol = 2, y, y)\n<k>",
    "<c>//@tune check(rtol = 1e-5)\n<k>",
    "<c>//@tune check(none, y)\n<k>",
    "<c>//@tune args(n = 4, a = 1, x = zeros[n], y = out[n]) check(n)\n<k>",
    "<c>//@tune args(n = {x = 1, x = 2}, a = {x}, x = {y = {z = rand[1]}}, y = {1 = 2})\n<k>",
    "<c>//@tune args(n = {a={a={a={a={a={a={a={a={a={a=1}}}}}}}}}}, a = 1, x = 0, y = 0)\n<k>",
    "//@tune block(256) threads(n) args(n = {x = 4}, a = 1, x = {p = out[4]}, y = zeros[x.p + n + y.z])\n<k>",
    "<c>//@tune args(n = {m = 4}, a = 1, x = {p = out[4]}, y = 0) check(x.p, x, n.m, x.q, x.)\n<k>",
    // The baseline.
    "//@tune block({128, 256}) threads(n) default(block = 192)\n<k>",
    "//@tune block({32, 4}) threads(n) default(block = {32, 4})\n<k>",
    "//@tune block({16, 16}) threads(n) default(block = {16, 16})\n<k>",
    "//@tune block({128, 256}) threads(n) default(block = 2048)\n<k>",
    "//@tune block({16, 32}, {8}) threads(n) default(block = {16, 16}, block.x = 4)\n<k>",
    "<c>//@tune regs({0, 32}) default(regs = 48)\n<k>",
    "<c>//@tune define(TILE = {8, 16}) default(TILE = 4)\n<k>",
    "<c>//@tune define(TILE = {8, 16}) default(TILL = 8)\n<k>",
    "//@tune grid({132, 264}) block(256) default(grid = 100)\n<k>",
    "//@tune block({64, 256}) threads(n) define(TILE = {8, 16})\n//@tune default(block = 256, TILE = 8) require(TILE * TILE == block.size)\n<k>",
    "//@tune block({64, 256}) threads(n) require(block.x < 64)\n<k>",
    "//@tune block(256) threads(n) default(block.w = 3, block = {1, 2, 3, 4}, regs = 1.5)\n<k>",
    // The rest.
    "<c>//@tune strategy(poss) budget(0) launch(remote) name(a b)\n<k>",
    "<c>//@tune budget(soon) strategy(fast)\n<k>",
    "<c><k><c>__global__ void saxpy(int n) {}\n",
    // One mistake, one error.
    "/*@tune block(256) threads(n)\n   args(n = 4, a = 1, x = zeros[n], y = out[n])\n<k>int main() { return 0; }\n",
    "/*@tune block(256) threads(n)\n__global__ void k(int n, char c = '\\'') { if (n) return; } /* another */\n<c><k>",
    "/*@tune",
    "<c>//@tune args(1 << 20, 2.0f, random[n], random(0, 1)[n])\n<k>",
    "<c>//@tune args(n = 4, -1, x = zeros[n], out[n])\n<k>",
    "<c>//@tune args({1, 2}, n = 4, a = 1)\n<k>",
    "//@tune block(256) threads(n)\n//@tune args(n = 1.5, a = 1, x = zeros[4], y = out[4])\n<k>",
    "<c>//@tune args(n = ceildiv(m, 2) * a, a = 0.25, x = zeros[4], y = out[4])\n__global__ void k(int n, float a, int m, float *x, float *y) {}\n",
    "//@tune block(256) threads(n * 2)\n//@tune args(n = m / 2.0, m = 3, x = out[4])\n__global__ void k(unsigned n, int m, float *x) {}\n",
    "<c>//@tune args(n = 3'000'000'000, a = 1, x = zeros[4], y = out[4])\n<k>",
    "//@tune block(256) threads(n) \\\n<k>int x;\n",
    "//@tune block=256 threads(n)\n<k>",
    "//@tune block[256] threads(n)\n<k>",
    "//@tune block 256 threads(n)\n<k>",
    "//@tune block(256) threads n regs(auto)\n<k>",
    "//@tune tune this kernel: block(256) threads(n)\n<k>",
    "<c>//@tune args(n = 4 a = 1, x = zeros[n], y = out[n])\n<k>",
    "<c>//@tune args(m = 4, a = 1, x = zeros[4], y = out[4])\n<k>",
    "<c>//@tune args(n = 4, a = 1, x = “zeros”[4], y = out[4])\n<k>",
    "<c>//@tune define(8, 16)\n<k>",
    "<c>template <typename T>\n//@tune template(float) regz(auto)\n__global__ void k(int n, T *x) {}\n",
    // Places.
    "\t/*@tune\n\t * block(256)\n\t * threds(n)\n\t */\n<k>",
    "//@tune block(256) /* größe */ thread(n)\n<k>",
];

fn source(case: &str) -> Source {
    Source::new("a.cu", case.replace("<k>", SAXPY).replace("<c>", REST).as_bytes())
}

/// What a user would be shown; empty for a good source.
fn problems(source: &Source) -> String {
    match annotations(source) {
        Err(problems) => render(&problems),
        Ok(found) => found
            .iter()
            .filter_map(|annotation| Space::new(annotation, &Limits::default()).err())
            .map(|problems| render(&problems))
            .collect(),
    }
}

#[test]
fn refused_comments_have_reasons() {
    let mut shown = String::new();
    for case in REFUSED {
        let source = source(case);
        let problems = problems(&source);
        assert!(problems.contains(": error: "), "accepted: {case}");
        shown.push_str(&format!("======== {}\n{problems}", case.trim_end().replace('\n', "\n         ")));
    }
    expect_file!["comments/refused.txt"].assert_eq(&shown);
}

/// Sources that are accepted, with the same abbreviations.
const ACCEPTED: &[&str] = &[
    "#define BLK 128\nconstexpr int ROWS = 4, ITEMS{ROWS / 2}; enum class Mode { A, B = 7 }; namespace ns { const int K = 3; }\n//@tune block({BLK / 2, BLK}, ROWS:8) default(block = {BLK, ROWS}) grid(ceildiv(n, BLK * ITEMS), ns::K) shared(BLK * sizeof(int)) require(n > ROWS ? ITEMS : ROWS)\n//@tune args(n = Mode::B, a = ITEMS, x = each(index % BLK)[n * ROWS], y = fill(K)[ITEMS]) check(y)\n<k>",
    "#define KERNEL extern \"C\" __global__ void\n<c>KERNEL __launch_bounds__(256) f(int n, float *x) {}\n",
    "<c>#define KERNEL __global__\nKERNEL void f(int n) {}\n",
    "#define n 5\nenum { index = 9, x = 4, TILE = 8, out, nullptr_ };\n<c>//@tune define(TILE = {8, 16}) require(TILE > 4) args(n = 2, a = 1, x = each(index)[n], y = out[n])\n<k>",
    "<c>//@tune args(n = 'a', a = '\\n', x = random('0', '9')[n], y = fill('\\'')[1'000])\n<k>",
    "<c><k>",
    "//@tune threads(n) block(64:1024:32) regs(auto)\n//@tune args(n = 1 << 24, a = 2.0f, x = random[n], y = random[n])\n<k>",
    "/*@tune threads(n)\n   block(auto) */\n<k>",
    "/*@tune\n * threads(n)\n * block(auto)\n * args(n = 2\n *   * 8,\n *   a = 1, x = zeros[n], y = out[n])\n */\n<k>",
    "// @tune block(256) // the usual\n\n// An ordinary comment.\n//@tune threads(n)\n\n[[maybe_unused]]\n<k>",
    "<c>extern \"C\" {\nstatic\n__global__\n__launch_bounds__(256, 2)\nvoid\nf(int n)\n{\n}\n}\n",
    "template <typename T>\n__launch_bounds__(256)\n<c>//@tune template(float)\n__global__ void k(T *n) {}\n",
    "int x;\nextern \"C\" __global__\n<c>void k(int n) {}\n",
    "//@tune block(256)\ntemplate <typename T>\n//@tune threads(n)\n// An ordinary comment.\n//@tune template(float)\n__global__ void k(int n, T *x) {}\n",
    "//@tune block(256)\ntemplate <typename T, int N = (2 > 1)>\n//@tune threads(n)\n__launch_bounds__(256)\n//@tune template(float)\n__global__ void k(int n, T *x) {}\n<c><k>",
    "//@tune block(256)\nextern \"C\" __global__\n/*@tune threads(n) */\nvoid k(int n) {}\n",
    "<c>extern \"C\" __global__ __attribute__((used)) void __launch_bounds__(BLOCK) f(int n) noexcept {}\n",
    "<c>namespace a { namespace {\n__global__ void f(int n, ns::Map<int, std::pair<int, float>> m, float (&tile)[4], void (*call)(int, int), const Foo) {}\n}}\n",
    "<c>__global__ void f(const float *__restrict__ const x, float y[], float z[4][5], unsigned n = sizeof(int), const int, unsigned, Foo *) {}\n",
    "<c>__global__ void f(const __grid_constant__ struct Params p, long long int n, std::size_t, std::size_t m, int /* count */ k) {}\n",
    "//@tune block(256) threads(1024)\n__global__ void f(void) {}\n",
    "<c>__global__ void f(\n#if A\n  int n\n#else\n  int n, int m\n#endif\n) {}\n",
    "const char *s = \"//@tune bock(1)\";\nint x; //@tune bock(2)\nconst char *r = R\"x(\n//@tune bock(3)\n)x\"; /* \n//@tune bock(4)\n*/\n#define M \\\n  //@tune bock(5)\nint c = '\"'; int big = 1'000'000;\n<c><k>",
    "//@tuned bock(1)\n///@tune bock(2)\n<c><k>",
    "//@tune threads(w, h) block({16,32,64},{1,2,4,8})\n__global__ void mm(int w, int h, const float *a) {}\n",
    "//@tune threads(w, h) block(auto)\n__global__ void mm(int w, int h, const float *a) {}\n",
    "//@tune threads(w, h, d) block(auto) default(block = {8, 8, 8})\n__global__ void mm(int w, int h, int d) {}\n",
    "//@tune grid({132, 264, 1056}) block(pow2(32, 1024)) args(n = 1 << 20, a = 1, x = iota[n], y = fill(1.5)[n]) check(x, y, rtol = 1e-5, atol = 0)\n<k>",
    "//@tune grid(ceildiv(n, block.x * 4)) block({128, 256}) args(n = 1e6, a = 1e-3, x = random(-1, 1)[n], y = out[n * 2]) check(none)\n<k>",
    "//@tune threads(TILE, TILE) block({8,16,32},{8,16,32}) define(TILE = {8,16,32}, UNROLL = {1,2,4})\n//@tune require(TILE * TILE == block.x * block.y)\n<k>",
    "//@tune threads(n) block({64, 256}) define(TILE = {8, 16}) default(block = 256) require(TILE * TILE == block.size)\n<k>",
    "//@tune threads(n) default(block = {16, 16}, regs = 32) regs(16:255)\n<k>",
    "//@tune threads(n) default(block.x = 32, block.y = 4)\n<k>",
    "//@tune threads(n) block({96, 32:64:16, 32}) regs({64, 32})\n<k>",
    "<c>//@tune name(axpy) strategy(pos) budget(2.5) launch(remap)\n<k>",
    "<c>//@tune launch(cooperative)\n<k>",
    "<c>//@tune shared(block.x * sizeof(float) * (n > 0 ? 2 : 1))\n<k>",
    "//@tune grid(4) block(256) args(n = grid.y * 0x10 + 020 - 0b11, a = max(1, 2, 3.5), x = 0, y = out[block.size * grid.x])\n__global__ void saxpy(int n, float a, float *x, float *y) {}\n",
    "//@tune grid(4) block(256) args(a = grid.x, b = a << 2, c = !b && (~b | 1) ^ 3, d = -b % 7 >= 1 || b != 2)\n__global__ void f(int a, int b, bool c, bool d) {}\n",
    "<c><k>//@tune name(two) threads(n) block(64) define(T = {1,2})\n__global__ void saxpy(int n) {}\n",
    "//@tune block(256) threads(n)\r\n__global__ void saxpy(int n) {}\r\n",
    "<c>//@tune template(float) template(const View<float, 4> *, -1) template( unsigned\n//@tune  char)\ntemplate <typename T, int N> __global__ void k(T n) {}\n",
    "<c>//@tune template(ns::Op<T>, 2 * (N > 1 ? N : 8), true) name(op) define(N = {1, 2})\ntemplate <typename T, int M, bool B>\n__global__ void k(int n, T *x) {}\n",
    "__constant__ int c[4];\n//@tune template(float, 4) template(double, 2, false) block({64, 128}) grid(ceildiv(n, N * block.x)) shared(N * 8) require(block.x > N)\n//@tune trips(N, 3) args(n = N << 20, range = {x = N}, x = each(N + index)[n * N], y = {N, 1}[N], z = random(-N, N)[n], q = fill(N)[n])\n//@tune symbol(c = fill(N)[N])\ntemplate <typename T, int N = std::max<int>(1, (2 > 1)), bool B = true, class U = Pair<T, 3>, int... Ns>\n__global__ void k(int n, int2 range, T *x, T *y, T *z, T *q) {}\n",
    "//@tune template(float, true, 3) block(64) threads(B + N)\ntemplate <typename T, bool B = sizeof(T) < 8, int N = 1 << 2>\n__global__ void k(int n, T *x) {}\n",
    "//@tune template(float) template(const float4 *) template(unsigned char, 2) block(64) threads(n * sizeof(T)) shared(block.x * sizeof(T) + sizeof(double))\n//@tune args(n = sizeof(T), x = each(index + sizeof(T))[n])\ntemplate <class T, int N = 1> __global__ void k(int n, T *x) {}\n",
    "#define BLOCK 256\nnamespace ns { constexpr int ITEMS = BLOCK / 64; }\nenum class Mode { Off, On = 7 };\nstruct real;\n//@tune template(BLOCK, ns::ITEMS, Mode::On, real, ITEMS * 2 + BLOCK, -ITEMS) block(64) threads(ceildiv(n, N * M + K * (L - P)))\ntemplate <int N, int M, Mode K, class T, int L, int P> __global__ void k(int n) {}\n",
    "//@tune template(M, -1) define(M = {1, 2}) block(64) threads(N * n + index) args(n = 2, x = each(index - N)[N])\ntemplate <unsigned N, int index>\n__global__ void k(int n, int *x) {}\n",
    "<c>template <> __global__ void k<__half, ns::Op<(4 > 2), int>, 2>(int n, __half *x) {}\n",
    "<c>//@tune template(float *, true)\ntemplate <> __global__ void __launch_bounds__(N > 1 ? 256 : 128) k<float *>(int n, float *x) {}\n",
    "<c>//@tune template(half2)\ntemplate<> __global__ void k(half2 *x, int n) {}\n",
    "<c>//@tune template(half2)\ntemplate<> __global__ void k<>(half2 *x, int n) {}\n",
    "<c>//@tune define(N = {1, 2})\ntemplate <> __global__ void k<2 * N>(int n) {}\n",
    "<c>template <> __global__ void k<float (*)(int), sizeof(int), 1 << 3, decltype(1.0)>(int n, float *x) {}\n",
    "__constant__ float a = 1, b[2], c; __constant__ Pair<int, int> d, e;\n<c>//@tune symbol(a = 1, b = {1, 2}, c = 3, e = zeros[2])\n__global__ void k(int n) {}\n",
    "__constant__ int a, *b;\n<c>//@tune symbol(a = 1, b = 2)\n__global__ void k(int n) {}\n",
    "//@tune block(256) threads(n) args(n = 1, t = {m = 2}, x = out[n])\n__global__ void k(\n#if A // (\n T t,\n#endif\n float *x,\n#ifdef B\n int m\n# else\n int n\n#endif\n) {}\n",
    "//@tune block(256) threads(m) args(m = 1, x = out[m])\n__global__ void k(\n#if A\n T t,\n#endif\n float *x,\n#ifdef B\n int m\n# else\n int n\n#endif\n) {}\n",
    "//@tune block(256) threads(256)\n__global__ void k(int n\n#if A\n#if B\n, int m\n#elif C\n, int o, int p\n#else\n#endif\n#endif\n) {}\n",
    "static __constant__ __align__(16) const float4 a[4]; namespace ns { __device__ ns::Half b = 0; }\n<c>//@tune symbol(a = random[4],\n//@tune b = zeros[2 * 2], unsigned char ns::c = 5, elsewhere = iota[8])\n__global__ void k(int n) {}\n",
    "//@tune block(256) threads(p.n, p.inner.m) args(p = {n = 4, inner = {m = p.n * 2, data = random[p.inner.m]}}) check(p.inner.data, rtol = 0.5)\n__global__ void k(Plan p) {}\n",
    "<c>//@tune args(n = 4, a = 1, x = file(\"data/x.bin\")[n * 2], y = file(\"y.npy\"))\n<k>",
    "#define SHARED int n, /* of all */ const float *x, \\\n  Pair<int, 2> pair // here too\n# define PLAIN\n//@tune block(256) threads(n) args(n = 4, x = zeros[n], pair = {}, y = out[n])\n__global__ void k(SHARED, float *y) {}\n",
    "int x;\n",
];

fn kind(argument: &TemplateArgument) -> String {
    match argument {
        TemplateArgument::Text(text) => format!("type {text}"),
        TemplateArgument::Value { expression, .. } => format!("value {expression}"),
        TemplateArgument::Constant { text, value } => format!("constant {text} of {value}"),
    }
}

fn listed(GivenTable { values, count, .. }: &GivenTable) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    format!("{} of {}", values.join("; "), count.as_ref().map_or("as many".to_owned(), ToString::to_string))
}

/// What an annotation and its space say, in short.
fn summary(annotation: &Annotation) -> String {
    let kernel = &annotation.kernel;
    let parameters: Vec<&str> = kernel.parameters.iter().map(|name| name.as_deref().unwrap_or("-")).collect();
    let mut text =
        format!("{} = {}({}) at line {}\n", annotation.name, kernel.name, parameters.join(", "), kernel.line,);
    if let Some(instance) = &annotation.instance {
        text.push_str(&format!("  {instance:}: {:?}\n", instance.arguments.iter().map(kind).collect::<Vec<_>>()));
    }
    let space = match Space::new(annotation, &Limits::default()) {
        Ok(space) => space,
        Err(problems) => return text + &render(&problems),
    };
    let baseline = space.baseline();
    text.push_str(&format!(
        "  {} configurations, {} macro sets, baseline block {:?} cap {} grid {:?} macros {:?}\n",
        space.len(),
        space.macro_sets().len(),
        baseline.block,
        baseline.cap,
        baseline.grid,
        baseline.macros
    ));
    match space.launch(baseline) {
        Ok(launch) => {
            text.push_str(&format!("  launch {:?} x {:?}, {} bytes\n", launch.grid, launch.block, launch.shared))
        }
        Err(problem) => text.push_str(&format!("  no launch: {}\n", problem.message)),
    }
    for (path, value) in annotation.values() {
        let value = match value {
            GivenValue::Struct { fields, .. } => format!("{} fields", fields.len()),
            GivenValue::Null(_) => "nullptr".to_owned(),
            GivenValue::Recorded { .. } => "recorded".to_owned(),
            GivenValue::File(file) => {
                format!("file {} of {}", file.path, file.count.as_ref().map_or("all".to_owned(), ToString::to_string))
            }
            GivenValue::Scalar(expression) => match space.evaluate(baseline, expression) {
                Ok(value) => format!("{expression} = {value}"),
                Err(problem) => problem.message,
            },
            GivenValue::Table(table) => listed(table),
            GivenValue::Buffer { fill, count, .. } => {
                format!("{} of {count}", contents(fill))
            }
        };
        text.push_str(&format!("  {path}: {value}\n"));
    }
    for GivenSymbol { name, element, value, .. } in &annotation.clauses.symbols {
        let element = element.as_deref().unwrap_or("unknown");
        let value = match value {
            GivenValue::Scalar(expression) => expression.to_string(),
            GivenValue::Struct { .. } => "a structure".to_owned(),
            GivenValue::Null(_) => "nullptr".to_owned(),
            GivenValue::Recorded { .. } => "recorded".to_owned(),
            GivenValue::File(file) => format!("file {}", file.path),
            GivenValue::Table(table) => listed(table),
            GivenValue::Buffer { fill, count, .. } => format!("{} of {count}", contents(fill)),
        };
        text.push_str(&format!("  {element} {name}: {value}\n"));
    }
    if let Some(check) = &annotation.clauses.check {
        let names: Vec<&str> = check.buffers.iter().map(|buffer| buffer.value.as_str()).collect();
        text.push_str(&format!("  check {names:?} {:?} {:?}\n", check.relative, check.absolute));
    }
    let chosen = (
        &annotation.clauses.strategy,
        annotation.clauses.budget,
        annotation.clauses.launch,
        annotation.clauses.cooperative,
    );
    text.push_str(&format!("  {chosen:?}\n"));
    text
}

/// The contents of a buffer, with expressions as they are read.
fn contents(fill: &GivenFill) -> String {
    match fill {
        GivenFill::Range(lo, hi) => format!("Range({lo}, {hi})"),
        GivenFill::Constant(value) => format!("Constant({value})"),
        other => format!("{other:?}"),
    }
}

#[test]
fn accepted_comments_have_values_of_their_text() {
    let mut shown = String::new();
    for case in ACCEPTED {
        let source = source(case);
        let found = annotations(&source).unwrap_or_else(|problems| panic!("{case}\n{}", render(&problems)));
        assert!(found.is_empty() || is_marked(source.text.as_bytes()));
        shown.push_str(&format!("======== {}\n", case.trim_end().replace('\r', "").replace('\n', "\n         ")));
        shown.extend(found.iter().map(summary));
    }
    expect_file!["comments/accepted.txt"].assert_eq(&shown);
}

/// Every beginning of every case, and every case with one character gone: an answer, never a panic.
#[test]
fn damaged_source_is_read_or_refused() {
    let mut answers = 0;
    let step = if is_full() { 1 } else { 12 };
    for case in REFUSED.iter().chain(ACCEPTED) {
        let text = source(case).text;
        for (at, c) in text.char_indices().step_by(step) {
            for damaged in [text[..at].to_string(), format!("{}{}", &text[..at], &text[at + c.len_utf8()..])] {
                let source = Source::new("a.cu", damaged.as_bytes());
                let shown = problems(&source);
                assert!(shown.is_empty() || shown.contains("a.cu("), "{shown}");
                answers += 1;
            }
        }
    }
    assert!(answers > 10_000 / step);
}

#[test]
fn long_comments_and_many_messages_are_bounded() {
    let with =
        |clauses: &str| Source::new("a.cu", format!("//@tune {clauses}\n__global__ void k(int n) {{}}\n").as_bytes());
    let shown = problems(&with(&"require(n > 1) ".repeat(20_000)));
    assert!(shown.contains("the tuning comment has 300008 bytes; the most is 65536"), "{}", shown.len());
    assert!(shown.ends_with("1 error detected in the compilation of \"a.cu\".\n") && shown.lines().count() == 5);
    let wrong = if is_full() { 5_000 } else { 1_000 };
    let shown = problems(&with(&"wrong(1) ".repeat(wrong)));
    let end = format!("{} more messages are not shown.\n{wrong} errors detected in the compilation", wrong - 100);
    let count = shown.matches(": error:").count();
    assert!(shown.contains(&end) && count == 100, "{count} {}", &shown[shown.len() - 200..]);
}
