//! Races of warps in shared memory: a kernel whose baseline has one is not tuned, and no block in
//! which warps race is chosen.

use super::project::{Project, compile, run};

const TUNED: &str = "threads(n) regs({0}) launch(header) args(n = 1 << 16, x = random[n], y = out[n])";

/// What CUDA's headers define, which the tests' sources do not include.
const MACROS: &str = "#define WARP_BARRIER asm volatile(\"bar.warp.sync 0xffffffff;\" ::: \"memory\")\n\
    #define FENCE asm volatile(\"membar.cta;\" ::: \"memory\")\n\
    #define STORE(to, value) asm volatile(\"st.f32 [%0], %1;\" :: \"l\"(&to), \"f\"(value) : \"memory\")\n\
    #define LOAD(value, from) asm volatile(\"ld.f32 %0, [%1];\" : \"=f\"(value) : \"l\"(&from) : \"memory\")\n\
    #define EXCHANGE(was, word, value) asm volatile(\"atom.exch.b32 %0, [%1], %2;\" : \"=r\"(was) : \"l\"(&word), \"r\"(value) : \"memory\")\n\
    #define COUNT(count) asm volatile(\"red.add.u32 [%0], 1;\" :: \"l\"(&count) : \"memory\")\n";

/// A kernel by what follows its name, and its comment besides [`TUNED`]; what is said of it, or must
/// not be said.
struct Case {
    name: &'static str,
    comment: &'static str,
    body: &'static str,
    says: Result<&'static str, &'static str>,
}

const CASES: &[Case] = &[
    Case {
        name: "no_barrier",
        comment: "block({32, 128, 256}) default(block = 256)",
        body: "__shared__ float s[256]; s[threadIdx.x] = x[i];\n\
            if (threadIdx.x == 0) { float sum = 0; for (int k = 0; k < blockDim.x; ++k) sum += s[k]; y[i] = sum; }",
        says: Ok("not tuned: its warps race on `s` in shared memory: put a barrier between them [N0070]"),
    },
    Case {
        name: "no_second_barrier",
        comment: "block({32, 64, 256}) default(block = 64)",
        body: "__shared__ float s[32]; float sum = 0;\n\
            for (int k = 0; k < 3; ++k) { if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = x[i] * k; __syncthreads();\n\
            for (int w = 0; w < blockDim.x / 32; ++w) sum += s[w]; }\n\
            y[i] = sum;",
        says: Ok("not tuned: its warps race on `s`"),
    },
    Case {
        name: "one_warp",
        comment: "block({32, 64, 128}) default(block = 32)",
        body: "__shared__ float s[128]; s[threadIdx.x] = x[i]; WARP_BARRIER; y[i] = s[blockDim.x - 1 - threadIdx.x];",
        says: Ok("2 of 3 points may not be chosen: warps of such a block race on `s` in shared memory"),
    },
    Case {
        name: "one_warp_of_dynamic",
        comment: "block({32, 64, 128}) default(block = 32) shared(4 * block.x)",
        body: "extern __shared__ float all[]; all[threadIdx.x] = x[i]; WARP_BARRIER; y[i] = all[blockDim.x - 1 - threadIdx.x];",
        says: Ok("2 of 3 points may not be chosen: warps of such a block race on shared memory"),
    },
    Case {
        name: "same_value",
        comment: "block({32, 64, 128}) default(block = 64)",
        body: "__shared__ float s; s = n; __syncthreads(); y[i] = s;",
        says: Err("race"),
    },
    Case {
        name: "atomics",
        comment: "block({32, 64, 128}) default(block = 64)",
        body: "__shared__ int count; if (threadIdx.x == 0) count = 0; __syncthreads();\n\
            if (x[i] > 0.5f) COUNT(count); if (threadIdx.x == 32) count = 5; y[i] = count;",
        says: Err("race"),
    },
    Case {
        name: "both_barriers",
        comment: "block({32, 64, 256}) default(block = 64)",
        body: "__shared__ float s[32]; float sum = 0;\n\
            for (int k = 0; k < 3; ++k) { if (threadIdx.x % 32 == 0) s[threadIdx.x / 32] = x[i] * k; __syncthreads();\n\
            for (int w = 0; w < blockDim.x / 32; ++w) sum += s[w]; __syncthreads(); }\n\
            y[i] = sum;",
        says: Err("race"),
    },
    Case {
        name: "own_value",
        comment: "block({32, 64, 128}) default(block = 64)",
        body: "__shared__ float s; STORE(s, 2.0f * n); float v; LOAD(v, s); y[i] = v * x[i];",
        says: Err("race"),
    },
    // A barrier of some warps, flags that a warp waits for, and a lock: what these order is not known.
    Case {
        name: "named_barrier",
        comment: "block({64, 128}) default(block = 128)",
        body: "__shared__ float s[128]; s[threadIdx.x] = x[i];\n\
            asm volatile(\"bar.sync %0, 64;\" :: \"r\"(1 + threadIdx.x / 64) : \"memory\");\n\
            y[i] = s[threadIdx.x ^ 32];",
        says: Err("race"),
    },
    Case {
        name: "flag",
        comment: "block({64, 128}) default(block = 64)",
        body: "__shared__ float s; __shared__ volatile int done; if (threadIdx.x == 0) done = 0; __syncthreads();\n\
            if (threadIdx.x == 0) { s = x[i]; FENCE; done = 1; }\n\
            while (!done) { } FENCE; y[i] = s;",
        says: Err("race"),
    },
    Case {
        name: "flag_without_fence",
        comment: "block({64, 128}) default(block = 64)",
        body: "__shared__ float s; __shared__ volatile int done; if (threadIdx.x == 0) done = 0; __syncthreads();\n\
            if (threadIdx.x == 0) { STORE(s, x[i]); done = 1; }\n\
            while (!done) { } float v; LOAD(v, s); y[i] = v;",
        says: Err("race"),
    },
    Case {
        name: "lock",
        comment: "block({64, 128}) default(block = 64)",
        body: "__shared__ float s; __shared__ unsigned held; if (threadIdx.x == 0) { held = 0; s = 0; } __syncthreads();\n\
            if (threadIdx.x % 32 == 0) { unsigned was; do { EXCHANGE(was, held, 1); } while (was);\n\
            float v; LOAD(v, s); STORE(s, v + x[i]); EXCHANGE(was, held, 0); }\n\
            __syncthreads(); y[i] = s;",
        says: Err("race"),
    },
];

#[test]
fn warps_that_race_are_found() {
    let project = Project::new(&[]);
    let kernel = |Case { name, comment, body, .. }: &Case| {
        format!(
            "//@tune {TUNED} {comment}\n__global__ void {name}(int n, const float *x, float *y) {{\n\
             const int i = blockIdx.x * blockDim.x + threadIdx.x; {body} }}\n"
        )
    };
    project.write("races.cu", &CASES.iter().map(kernel).fold(MACROS.to_owned(), |all, kernel| all + &kernel));
    let ran = run(project.nvtune(&compile("races.cu", "races.o")).env("NVTUNE", "static"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for Case { name, says, .. } in CASES {
        let lines = ran.stderr.lines().filter(|line| line.contains(&format!(": {name}: ")));
        let said = lines.fold(String::new(), |all, line| all + line + "\n");
        assert!(!said.is_empty(), "`{name}` is not named: {}", ran.stderr);
        match says {
            Ok(words) => assert!(said.contains(words), "`{name}`: {said}"),
            Err(words) => assert!(!said.contains(words), "`{name}`: {said}"),
        }
    }
}
