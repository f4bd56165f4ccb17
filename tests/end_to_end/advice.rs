//! Warnings of what is legal in a tuning comment but surely meant otherwise, through the whole program.

use super::project::{Project, run, succeed};
use expect_test::expect_file;

/// Name, options and source of each case: what is said of all of them is in `advice.txt`.
const CASES: &[(&str, &[&str], &str)] = &[
    (
        "fixed",
        &[],
        "// The block is 128 wherever the source says it: blockDim is never read.\n\
         //@tune grid(n / 128) block({64, 128, 256}) default(block = 128) regs({0})\n\
         //@tune args(n = 1 << 16, x = random[n], y = out[n])\n\
         __global__ void fixed(int n, const float *x, float *y) {\n\
         \x20   const int i = blockIdx.x * 128 + threadIdx.x;\n\
         \x20   if (i < n) y[i] = x[i];\n}\n",
    ),
    (
        "half",
        &[],
        "//@tune threads(n / 2) block({128, 256}) regs({0})\n\
         //@tune args(n = 1 << 16, x = random[n], y = out[n])\n\
         __global__ void half(int n, const float *x, float *y) {\n\
         \x20   const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20   if (i < n) y[i] = x[i];\n}\n",
    ),
    (
        "bounded",
        &["-maxrregcount=32"],
        "//@tune threads(n) block({128, 256}) regs({0, 32, 64})\n\
         //@tune args(n = 1 << 16, x = random[n], y = out[n])\n\
         __global__ void __launch_bounds__(256, 8) bounded(int n, const float *x, float *y) {\n\
         \x20   const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20   if (i < n) y[i] = x[i];\n}\n\
         //@tune threads(n) block({128, 256}) regs({0, 32, 64})\n\
         //@tune args(n = 1 << 16, x = random[n], y = out[n])\n\
         __global__ void free(int n, const float *x, float *y) {\n\
         \x20   const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20   if (i < n) y[i] = x[i];\n}\n",
    ),
    (
        "nothing",
        &[],
        "struct Work { float *data; int sizes[4]; };\n\
         //@tune threads(2^16) block({128, 256}) regs({0})\n\
         //@tune args(n = 1 << 16, limit = 0, p = {data = random[n]})\n\
         __global__ void nothing(int n, int limit, Work p) {\n\
         \x20   const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20   if (i < limit) p.data[i] += 1;\n\
         \x20   if (i < p.sizes[0]) p.data[i] *= 2;\n}\n",
    ),
    (
        "small",
        &[],
        "struct Rows { const float *first; };\n\
         //@tune threads(n) block({128, 256}) regs({0})\n\
         //@tune args(n = 1 << 16, r = {first = random[n]}, x = random[n - 1], y = out[1024])\n\
         __global__ void small(int n, Rows r, const float *x, float *y) {\n\
         \x20   const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20   if (i < n) y[i] = x[i] + r.first[i - 1];\n}\n\
         // The rim is left out, and what is not known is not told of.\n\
         //@tune threads(n) block({128, 256}) regs({0})\n\
         //@tune args(n = 1 << 16, at = random(0, n - 1)[n], x = random[n], y = out[n])\n\
         __global__ void large(int n, const int *at, const float *x, float *y) {\n\
         \x20   __shared__ int s[256];\n\
         \x20   const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         \x20   s[threadIdx.x] = i < n ? at[i] : 0;\n\
         \x20   __syncthreads();\n\
         \x20   if (i > 0 && i < n - 1) y[i] = x[i - 1] + x[i + 1] + x[s[threadIdx.x ^ 1]];\n}\n",
    ),
];

#[test]
fn what_is_surely_meant_otherwise_is_warned_of() {
    let mut shown = String::new();
    for (name, options, text) in CASES {
        let project = Project::new(&[]);
        let file = format!("{name}.cu");
        project.write(&file, text);
        let mut arguments = vec!["-O3", "-arch=sm_90", "-c", &file, "-DA=1"];
        arguments.extend_from_slice(options);
        let ran = succeed(&mut project.nvtune(&arguments));
        let said: String = ran
            .stderr
            .lines()
            .filter(|line| !line.starts_with("nvtune: "))
            .fold(String::new(), |text, line| text + line + "\n");
        shown.push_str(&format!("======== {file} {}\n{said}", options.join(" ")));
        let strict = run(project.nvtune(&arguments).env("NVTUNE_STRICT", "1"));
        assert_ne!(strict.code, Some(0), "{name}: {}", strict.stderr);
    }
    expect_file!["advice.txt"].assert_eq(&shown);
}

/// A space that nobody could walk is an error of the comment, before anything is compiled for it.
#[test]
fn a_space_beyond_all_bounds_is_refused() {
    let project = Project::new(&[]);
    project.write(
        "large.cu",
        "//@tune threads(n) block(1:1024) regs({0}) define(A = 1:2000)\n//@tune args(n = 1 << 16, y = out[n])\n\
         __global__ void large(int n, float *y) {\n    if (threadIdx.x < n) y[threadIdx.x] = A;\n}\n",
    );
    let ran = run(&mut project.nvtune(&["-arch=sm_90", "-c", "large.cu"]));
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.starts_with("large.cu(1): error: this space has more than 1000000 configurations"),
        "{}",
        ran.stderr
    );
    assert_eq!(project.files(), ["large.cu"]);
}

/// The sources of these tests mean what they say, as those of the suite do (tests/suite.rs): tuned under `NVTUNE_STRICT`, nothing is
/// said but results.
#[test]
fn nothing_is_said_of_good_comments() {
    let sources = ["saxpy.cu", "tiled.cu", "two.cu"];
    let project = Project::new(&sources).with_cuda_headers();
    for source in sources {
        let arguments = ["-O3", "-arch=sm_90", "-c", source, "-o", "out.o"];
        let ran = succeed(project.nvtune(&arguments).env("NVTUNE_STRICT", "1"));
        assert!(ran.stderr.lines().all(|line| line.starts_with("nvtune: ")), "{source}: {}", ran.stderr);
    }
}
