//! Options of nvcc that decide what is tuned, and how.

use super::project::{CAPS_WIN, Project, compile, run, succeed};

#[test]
fn fat_build_has_an_image_for_each_architecture() {
    let project = Project::new(&["saxpy.cu"]).with_cuda_headers_in_full_run();
    let two = ["-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=[sm_90,compute_90]"];
    let mut arguments: Vec<&str> = two.to_vec();
    arguments.extend(["-O3", "-c", "saxpy.cu", "-o", "saxpy.o", "-t", "2"]);
    succeed(&mut project.nvtune(&arguments));
    assert_eq!(project.record("saxpy.tune.json")["kernels"][0]["architecture"], "sm_90");
    let images = project.tool("cuobjdump", &["-lelf", "-lptx", "saxpy.o"]);
    for image in ["sm_80.cubin", "sm_90.cubin", "sm_90.ptx"] {
        assert!(images.contains(image), "{images}");
    }
}

#[test]
fn options_that_exclude_tuning_are_warned_of() {
    let project = Project::new(&["saxpy.cu"]);
    let cases: [(&[&str], &str); 3] = [
        (&["-G"], "-G compiles device code without optimisation"),
        (&["-dlto"], "this call makes no machine code of it"),
        (&["-arch=compute_90"], "this call makes no machine code of it"),
    ];
    for (options, reason) in cases {
        let mut arguments = vec!["-c", "saxpy.cu", "-o", "saxpy.o"];
        arguments.extend(options);
        let ran = succeed(&mut project.nvtune(&arguments));
        let lines: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("nvtune")).collect();
        assert!(matches!(lines.as_slice(), [line] if line.contains(reason)), "{options:?}: {}", ran.stderr);
        assert!(project.path("saxpy.o").is_file(), "{options:?}");
        let strict = run(project.nvtune(&arguments).env("NVTUNE_STRICT", "1"));
        assert_eq!(strict.code, Some(1), "{options:?}: {}", strict.stderr);
    }
}

#[test]
fn relocatable_kernel_is_tuned_if_it_needs_no_other_file() {
    let project = Project::new(&["apart.cu", "two.cu"]).with_cuda_headers();
    project.write("recorded.json", CAPS_WIN);
    let mut arguments = compile("apart.cu", "apart.o");
    arguments.push("-rdc=true".to_owned());
    let mut call = project.nvtune(&arguments);
    let ran = succeed(call.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"));
    for line in [
        "calls: not tuned: its baseline (block=128) cannot be built or launched: it needs `far` of another file",
        "nvtune: first: block=128 regs=24 (1.",
        "nvtune: bounded: block=128 regs=32 (1.",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {}", ran.stderr);
    }
    // That what was built is not what was timed would be one.
    assert_eq!(ran.stderr.matches("nvtune warning").count(), 1, "{}", ran.stderr);
}
