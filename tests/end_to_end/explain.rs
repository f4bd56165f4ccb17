//! `nvtune explain FILE.cu`: what the compiled kernels take and wait for, as text, JSON and SARIF.

use super::project::{Project, compile, nvcc, run, succeed};
use expect_test::expect;
use std::process::Command;

/// A kernel that gathers with a stride, one that needs 48 values at once, and one with launch bounds.
const SOURCE: &str = "\
//@tune threads(n) block({64, 128}) regs({0}) default(block = 128)
//@tune args(n = 65536, x = random[n * 32], y = out[n])
__global__ void gather(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i * 32];
}

__global__ void many(const float *x, float *y) {
    float v[48];
#pragma unroll
    for (int k = 0; k < 48; ++k) v[k] = x[threadIdx.x + 32 * k];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 48; ++k) y[threadIdx.x + 32 * k] = v[47 - k] * v[k];
}

__global__ void __launch_bounds__(128) bounded(float *y) { y[threadIdx.x] = 1.0f; }
";

fn project() -> Project {
    let project = Project::new(&[]);
    project.write("some.cu", SOURCE);
    project
}

pub fn explain(project: &Project, arguments: &[&str]) -> Command {
    let mut command = project.nvtune::<&str>(&[]);
    let mut own = Command::new(env!("CARGO_BIN_EXE_nvtune"));
    for (name, value) in command.env("NVTUNE_NVCC", nvcc()).env("COLUMNS", "80").get_envs() {
        match value {
            Some(value) => own.env(name, value),
            None => own.env_remove(name),
        };
    }
    own.arg("explain").args(arguments).current_dir(project.path(""));
    own
}

#[test]
fn marked_kernel_has_its_launch_bottleneck_and_uncoalesced_lines() {
    let text = succeed(&mut explain(&project(), &["some.cu:gather", "--", "-arch=sm_90"])).stdout;
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    expect![[r#"
        gather (sm_90)
          resources   10 registers, 0 bytes of shared memory, 0 bytes of stack, 0
                      barriers
          launch      block 128, grid 512: the baseline of its comment
          occupancy   100%: 16 blocks on an SM, limited by the warps of an SM
          bottleneck  global memory bandwidth; predicted to take 4.21 us
          mix         memory 47%, integer multiplication 18%, branches 12%, integer and
                      logic 12%, uniform 12% (of what the average warp executes)
          local       0 loads and 0 stores of local memory
          some.cu(5): uncoalesced load: a warp touches 32 sectors of 32 bytes, and its
            bytes fill 4 [uncoalesced]
    "#]]
    .assert_eq(&text);
}

#[test]
fn spills_and_void_caps_have_their_lines() {
    let project = project();
    let arguments = ["some.cu", "--", "-arch=sm_90", "-maxrregcount=24"];
    let text = succeed(&mut explain(&project, &arguments)).stdout;
    expect![[r#"
        bounded (sm_90)
          resources   10 registers, 0 bytes of shared memory, 0 bytes of stack, 0
                      barriers
          launch      not known; blocks of 128 are assumed
          occupancy   100%: 16 blocks on an SM, limited by the warps of an SM
          mix         memory 50%, branches 12%, half precision 12%, integer
                      multiplication 12%, uniform 12% (of the code)
          local       0 loads and 0 stores of local memory
          unknown     coalescing: no tuning comment names it, so that no launch is known
          some.cu(17): -maxrregcount=24 has no effect: the kernel has launch bounds, and
            takes 10 registers [void-register-cap]
        many (sm_90)
          resources   24 registers, 0 bytes of shared memory, 32 bytes of stack, 1
                      barriers
          launch      not known; blocks of 256 are assumed
          occupancy   100%: 8 blocks on an SM, limited by the warps of an SM
          mix         memory 80%, single precision 16%, integer multiplication 1%,
                      branches 1%, integer and logic 1%, uniform 1% (of the code)
          local       8 loads and 8 stores of local memory
          unknown     coalescing: no tuning comment names it, so that no launch is known
          some.cu(11): spilled registers: 1 loads and 3 stores in the code [spill]
          some.cu(14): spilled registers: 7 loads and 5 stores in the code [spill]
        gather (sm_90)
          resources   10 registers, 0 bytes of shared memory, 0 bytes of stack, 0
                      barriers
          launch      block 128, grid 512: the baseline of its comment
          occupancy   100%: 16 blocks on an SM, limited by the warps of an SM
          bottleneck  global memory bandwidth; predicted to take 4.21 us
          mix         memory 47%, integer multiplication 18%, branches 12%, integer and
                      logic 12%, uniform 12% (of what the average warp executes)
          local       0 loads and 0 stores of local memory
          some.cu(5): uncoalesced load: a warp touches 32 sectors of 32 bytes, and its
            bytes fill 4 [uncoalesced]
    "#]]
    .assert_eq(&text);
}

#[test]
fn options_are_those_of_the_record() {
    let project = project();
    let mut build = project.nvtune(&compile("some.cu", "some.o"));
    succeed(build.arg("-maxrregcount=24"));
    let of_record = succeed(&mut explain(&project, &["some.cu:bounded"])).stdout;
    assert!(of_record.starts_with("bounded (sm_90)\n"), "{of_record}");
    assert!(of_record.contains("-maxrregcount=24 has no effect"), "{of_record}");
}

#[test]
fn newest_of_several_architectures_is_explained() {
    let project = project();
    let arguments =
        ["some.cu:bounded", "--", "-gencode=arch=compute_80,code=sm_80", "-gencode", "arch=compute_90,code=sm_90"];
    let text = succeed(&mut explain(&project, &arguments)).stdout;
    assert!(text.starts_with("bounded (sm_90)\n"), "{text}");
}

#[test]
fn findings_are_json_and_sarif() {
    let project = project();
    let options = ["--", "-arch=sm_90", "-maxrregcount=24"];
    let parsed = |form: &str| -> serde_json::Value {
        let text = succeed(&mut explain(&project, &[&["some.cu", form][..], &options].concat())).stdout;
        serde_json::from_str(&text).expect("it is JSON")
    };
    let kernels = parsed("--json");
    assert_eq!(kernels.as_array().map(Vec::len), Some(3));
    let log = parsed("--sarif");
    assert_eq!((&log["version"], &log["runs"][0]["tool"]["driver"]["name"]), (&"2.1.0".into(), &"nvtune".into()));
    let results = log["runs"][0]["results"].as_array().expect("a list");
    let place = |result: &serde_json::Value| {
        let location = &result["locations"][0]["physicalLocation"];
        let rule = result["ruleId"].as_str().expect("text").to_owned();
        (rule, location["artifactLocation"]["uri"].clone(), location["region"]["startLine"].clone())
    };
    let gather = ("uncoalesced".to_owned(), "some.cu".into(), 5.into());
    assert!(results.iter().map(place).any(|place| place == gather), "{log}");
    for result in results {
        let index = result["ruleIndex"].as_u64().expect("a number") as usize;
        assert_eq!(log["runs"][0]["tool"]["driver"]["rules"][index]["id"], result["ruleId"]);
    }
}

#[test]
fn what_is_no_code_and_no_kernel_is_refused() {
    let project = project();
    project.write("broken.cu", "__global__ void k() { x }\n");
    for (subject, said) in [
        ("some.cu:other", "'some.cu' has no kernel 'other'; it has "),
        ("none.cu", "'none.cu' is neither a code, as in N0031, nor a source that is there"),
        ("broken.cu", "nvcc does not compile 'broken.cu':\n"),
        ("N9999", "no message has the code 'N9999'"),
    ] {
        let ran = run(&mut explain(&project, &[subject]));
        assert_eq!(ran.code, Some(1), "{subject}");
        assert!(ran.stderr.contains(said), "{subject}: {}", ran.stderr);
    }
}
