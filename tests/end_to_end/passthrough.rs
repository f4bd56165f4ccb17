//! Calls that are plain nvcc's: nothing is printed, nothing is written, and errors are nvcc's own.

use super::project::{Project, compile, nvcc, reproducible, run, succeed};
use crate::support::toolkit::{Headers, set_headers};

#[test]
fn unmarked_source_gives_the_object_of_plain_nvcc() {
    let project = Project::new(&["plain.cu"]);
    succeed(&mut project.plain(&reproducible("plain.cu", "same.o")));
    let expected = project.bytes("same.o");
    std::fs::remove_file(project.path("same.o")).expect("removed");
    let before = project.files();
    let ran = succeed(&mut project.nvtune(&reproducible("plain.cu", "same.o")));
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert!(project.bytes("same.o") == expected, "the object differs from plain nvcc's");
    let mut after = project.files();
    after.retain(|name| name != "same.o");
    assert_eq!(after, before);
}

#[test]
fn misspelled_tuning_comment_is_a_warning() {
    let project = Project::new(&["plain.cu"]);
    let plain = project.read("plain.cu");
    project.write("near.cuh", "// A header.\n//@Tune block(auto)\n");
    project.write("plain.cu", &format!("#include \"near.cuh\"\n// @param tune it\n{plain}"));
    succeed(&mut project.plain(&reproducible("plain.cu", "same.o")));
    let expected = project.bytes("same.o");
    std::fs::remove_file(project.path("same.o")).expect("removed");
    let mut nvtune = project.nvtune(&reproducible("plain.cu", "same.o"));
    let ran = succeed(nvtune.env("NVTUNE_STRICT", "1"));
    let warning = "near.cuh(2): warning: this comment does nothing: a tuning comment begins with //@tune [N0108]\n  //@Tune block(auto)\n    ^~~~~\n\n";
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", warning));
    assert!(project.bytes("same.o") == expected, "the object differs from plain nvcc's");
    assert!(!project.files().iter().any(|name| name.contains(".tune.")));
}

#[test]
fn misspelled_tuning_comment_is_a_warning_once_where_code_is_made() {
    let project = Project::new(&["plain.cu", "saxpy.cu"]);
    project.write("near.cuh", "// A header.\n//@Tune block(auto)\n");
    let plain = project.read("plain.cu");
    project.write("plain.cu", &format!("#include \"near.cuh\"\n{plain}"));
    let saxpy = project.read("saxpy.cu");
    project.write("saxpy.cu", &format!("#include \"near.cuh\"\n{saxpy}"));
    for (arguments, mode, count) in [
        (&["-arch=sm_90", "-c", "saxpy.cu", "-o", "saxpy.o"][..], "static", 1),
        (&["-arch=sm_90", "-c", "saxpy.cu", "plain.cu"], "static", 1),
        (&["-arch=sm_90", "-c", "plain.cu", "-o", "plain.o"], "off", 0),
        (&["-E", "plain.cu", "-o", "plain.ii"], "static", 0),
    ] {
        let ran = succeed(project.nvtune(arguments).env("NVTUNE", mode));
        assert_eq!(ran.stderr.matches("this comment does nothing").count(), count, "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn calls_without_tuning_print_and_write_nothing() {
    let project = Project::new(&["saxpy.cu"]);
    let cases: [(&[&str], &str); 3] = [
        (&["-O3", "-arch=sm_90", "-c", "saxpy.cu", "-o", "saxpy.o"], "off"),
        (&["-E", "saxpy.cu", "-o", "saxpy.ii"], "static"),
        (&["--dryrun", "-c", "saxpy.cu"], "static"),
    ];
    for (arguments, mode) in cases {
        let ran = succeed(project.nvtune(arguments).env("NVTUNE", mode));
        assert!(!ran.stderr.contains("nvtune"), "{arguments:?}: {}", ran.stderr);
        assert!(!project.files().iter().any(|name| name.contains(".tune.")), "{arguments:?}");
    }
}

#[test]
fn pipe_of_options_is_left_to_nvcc() {
    let project = Project::new(&["saxpy.cu"]);
    project.tool_of_host("mkfifo", &["options"]);
    let fifo = project.path("options");
    let writer = std::thread::spawn(move || std::fs::write(fifo, "-DOPTION=1\n"));
    succeed(&mut project.nvtune(&["-arch=sm_90", "-optf", "options", "-c", "saxpy.cu", "-o", "saxpy.o"]));
    writer.join().expect("no panic").expect("read once");
}

#[test]
fn source_that_makes_no_instance_of_a_header_runs_nothing_but_nvcc() {
    let project = Project::new(&["kernel.cu"]);
    let kernel = project.read("kernel.cu").replace("//@tune", "//@tune template(float)");
    let kernel = kernel.replace("__global__", "template <typename T>\n__global__").replace("REAL *x", "T *x");
    let kernel = kernel.lines().skip(4).take_while(|line| *line != "}").collect::<Vec<_>>().join("\n") + "\n}\n";
    project.write("k.cuh", &format!("#pragma once\n#ifndef TILE\n#define TILE 1\n#endif\n{kernel}"));
    let launch = "void run(int n, float *x) { KERNEL<float><<<n / 256, 256>>>(n, x); }\n";
    for (text, option, is_used) in [
        ("int other() { return 1; }\n".to_owned(), "-DOTHER=1", false),
        ("#define JOIN(a, b) a##b\nint JOIN(oth, er)() { return 1; }\n".to_owned(), "-DOTHER=1", false),
        (launch.replace("KERNEL", "k"), "-DOTHER=1", true),
        (launch.to_owned(), "-DKERNEL=k", true),
    ] {
        project.write("main.cu", &format!("#include \"k.cuh\"\n{text}"));
        project.tool_of_host("rm", &["-rf", "bin/cache"]);
        let arguments = [compile("main.cu", "main.o"), vec![option.to_owned()]].concat();
        let ran = succeed(project.nvtune(&arguments).env("NVTUNE_STRICT", "1"));
        assert_eq!(ran.stderr.contains("nvtune: k_float: "), is_used, "{text}: {}", ran.stderr);
        assert_eq!(ran.stderr.is_empty(), !is_used, "{text}: {}", ran.stderr);
        // What was compiled or decided would be kept.
        assert_eq!(project.path("bin/cache").exists(), is_used, "{text}");
    }
}

#[test]
fn kernel_launched_in_its_header_alone_starts_nothing_but_nvcc() {
    let project = Project::new(&["kernel.cu"]);
    let kernel = project.read("kernel.cu").replace("//@tune", "//@tune template(float)");
    let kernel = kernel.replace("__global__", "template <typename T>\n__global__").replace("REAL *x", "T *x");
    let kernel = kernel.lines().skip(4).take_while(|line| *line != "}").collect::<Vec<_>>().join("\n") + "\n}\n";
    let run = "template <typename T>\nvoid run(int n, T *x) {\n    k<T><<<n / 256, 256>>>(n, x);\n}\n";
    project.write("k.cuh", &format!("#pragma once\n#ifndef TILE\n#define TILE 1\n#endif\n{kernel}{run}"));
    // A script in nvcc's place counts what is started.
    project.script("bin/real", &format!("echo started >> starts\nexec '{}' \"$@\"", nvcc().display()));
    for (text, is_used) in [
        ("int other() { return 1; }\n", false),
        ("void f(int n, float *x) { run(n, x); }\n", true),
        ("template <typename T> void again(int n, T *x) { run(n, x); }\n", false),
    ] {
        project.write("main.cu", &format!("#include \"k.cuh\"\n{text}"));
        project.tool_of_host("rm", &["-rf", "bin/cache", "starts"]);
        let mut build = project.nvtune(&compile("main.cu", "main.o"));
        let ran = succeed(build.env("NVTUNE_NVCC", project.path("bin/real")));
        assert_eq!(ran.stderr.contains("nvtune: k_float: "), is_used, "{text}: {}", ran.stderr);
        assert_eq!(project.path("bin/cache").exists(), is_used, "{text}");
        assert_eq!(project.read("starts").lines().count() > 1, is_used, "{text}");
    }
}

#[test]
fn kernel_of_a_file_that_is_included_in_any_way_is_tuned() {
    let project = Project::new(&["saxpy.cu"]);
    std::fs::create_dir(project.path("inc")).expect("a folder");
    std::fs::rename(project.path("saxpy.cu"), project.path("inc/saxpy.cuh")).expect("renamed");
    for (text, options, cpath) in [
        ("#include <saxpy.cuh>\n", &["-Iinc"][..], ""),
        ("#import <saxpy.cuh>\n", &["-Iinc"], ""),
        ("#include <saxpy.cuh>\n", &[], "inc"),
        ("#include \"saxpy.cuh\"\n", &["-Xcompiler", "-iquote,inc"], ""),
        ("#define SAXPY <saxpy.cuh>\n#include SAXPY\n", &["-Iinc"], ""),
        ("int other;\n", &["-include", "inc/saxpy.cuh"], ""),
    ] {
        project.write("main.cu", text);
        let arguments = [compile("main.cu", "main.o"), options.iter().map(|&word| word.to_owned()).collect()].concat();
        let mut build = project.nvtune(&arguments);
        if !cpath.is_empty() {
            build.env("CPATH", cpath);
        }
        let ran = succeed(&mut build);
        assert!(ran.stderr.starts_with("nvtune: saxpy: "), "{text}{options:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.matches("nvtune").count(), 1, "{text}{options:?}: {}", ran.stderr);
    }
    // Nothing of the system's is looked at.
    project.write("main.cu", "#include <saxpy.cuh>\n");
    let ran =
        succeed(&mut project.nvtune(&[compile("main.cu", "main.o"), vec!["-isystem".into(), "inc".into()]].concat()));
    assert_eq!(ran.stderr, "");
}

#[test]
fn file_that_gives_its_reader_nothing_stops_no_build() {
    let project = Project::new(&[]);
    // The first is a regular file for all who ask, and has whoever reads it wait for the kernel's next message.
    for name in ["/proc/kmsg", "/dev/tty", "/dev/zero"] {
        project.write("main.cu", &format!("#if 0\n#include \"{name}\"\n#endif\nint other;\n"));
        assert_eq!(succeed(&mut project.nvtune(&compile("main.cu", "main.o"))).stderr, "", "{name}");
    }
}

#[test]
fn launcher_form_runs_the_nvcc_it_names() {
    let project = Project::new(&["plain.cu"]);
    let nvtune = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nvtune"));
        command.current_dir(project.path("")).env_remove("NVTUNE_NVCC");
        set_headers(&mut command, Headers::Small);
        command
    };
    succeed(nvtune().arg(nvcc()).args(compile("plain.cu", "path.o")));
    assert!(project.path("path.o").is_file());
    succeed(nvtune().arg("nvcc").args(compile("plain.cu", "name.o")).env("NVTUNE_NVCC", nvcc()));
    assert!(project.path("name.o").is_file());
    let version = succeed(nvtune().arg(nvcc()).arg("--version"));
    assert!(version.stdout.contains("Cuda compiler driver"), "{}", version.stdout);
}

#[test]
fn launcher_form_takes_any_program_that_is_nvcc() {
    use std::os::unix::fs::symlink;
    let project = Project::new(&["plain.cu"]);
    let real = nvcc();
    project.script("bin/nvcc-13", &format!("exec '{}' \"$@\"", real.display()));
    project.script("wrapper", "exec nvcc-13 \"$@\"");
    project.script("bin/launcher", "echo launched; exec \"$@\"");
    project.script("other", "echo other");
    symlink(env!("CARGO_BIN_EXE_nvtune"), project.path("nvcc-13")).expect("linked");
    let path = format!("{}:{}", project.path("bin").display(), std::env::var("PATH").expect("it is set"));
    let version = |words: &[&str]| {
        let mut command = std::process::Command::new(words[0]);
        command.args(&words[1..]).arg("--version").current_dir(project.path("")).env("PATH", &path);
        run(command.env_remove("NVTUNE_NVCC"))
    };
    let nvtune = env!("CARGO_BIN_EXE_nvtune");
    let link = project.path("nvcc-13");
    for (words, first) in [
        (&[nvtune, "nvcc-13"][..], "nvcc: NVIDIA"),
        (&[nvtune, "bin/nvcc-13"], "nvcc: NVIDIA"),
        (&[nvtune, "./wrapper"], "nvcc: NVIDIA"),
        (&[nvtune, "launcher", "nvcc-13"], "launched"),
        (&[nvtune, "launcher", "bin/nvcc-13"], "launched"),
        (&[link.to_str().expect("a plain name")], "nvcc: NVIDIA"),
    ] {
        let ran = version(words);
        assert_eq!(ran.code, Some(0), "{words:?}: {}", ran.stderr);
        assert!(
            ran.stdout.starts_with(first) && ran.stdout.contains("Cuda compiler driver"),
            "{words:?}: {}",
            ran.stdout
        );
    }
    for words in [&[nvtune, "./other"][..], &[nvtune, "none"]] {
        let ran = version(words);
        assert!(ran.stderr.contains("unrecognized subcommand"), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn missing_nvcc_is_an_error() {
    let project = Project::new(&["plain.cu"]);
    let missing = run(project.nvtune(&compile("plain.cu", "a.o")).env("NVTUNE_NVCC", "/nowhere/nvcc"));
    assert_eq!(missing.code, Some(1));
    assert_eq!(missing.stderr, "nvtune fatal   : NVTUNE_NVCC names '/nowhere/nvcc', which does not exist [N0001]\n");
}

#[test]
fn missing_nvcc_behind_nvtune_is_not_replaced_by_another() {
    let project = Project::new(&["plain.cu"]);
    let real = nvcc();
    let path = real.parent().expect("it has a folder");
    for (words, named) in
        [(&["/nowhere/nvcc"][..], "/nowhere/nvcc"), (&["env", "./nvcc-13"], "./nvcc-13"), (&["./nvcc"], "./nvcc")]
    {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nvtune"));
        command.args(words).args(compile("plain.cu", "a.o")).current_dir(project.path("")).env("PATH", path);
        let missing = run(command.env_remove("NVTUNE_NVCC"));
        assert_eq!(missing.code, Some(1), "{words:?}");
        let expected = format!(
            "nvtune fatal   : '{named}' does not exist: correct the path, or set NVTUNE_NVCC to that of NVIDIA's nvcc [N0001]\n"
        );
        assert_eq!(missing.stderr, expected, "{words:?}");
        assert!(!project.path("a.o").exists(), "{words:?}");
    }
}

#[test]
fn missing_output_folder_is_an_error() {
    let project = Project::new(&["saxpy.cu"]);
    let folder = run(&mut project.nvtune(&compile("saxpy.cu", "nowhere/a.o")));
    assert_eq!(folder.code, Some(1));
    assert_eq!(folder.stderr, "nvtune fatal   : output folder 'nowhere' does not exist; make it first [N0200]\n");
}

#[test]
fn unknown_strategy_is_a_warning() {
    let project = Project::new(&["saxpy.cu"]);
    let setting = succeed(project.nvtune(&compile("saxpy.cu", "a.o")).env("NVTUNE_STRATEGY", "best"));
    let first = setting.stderr.lines().next();
    assert_eq!(
        first,
        Some(
            "nvtune warning : NVTUNE_STRATEGY='best' is not understood; expected one of refit, es, ros, pos, posf, ryoo [N0003]"
        )
    );
}

#[test]
fn errors_in_arguments_are_those_of_plain_nvcc() {
    let project = Project::new(&["saxpy.cu"]);
    let cases: [&[&str]; 3] =
        [&["-c", "saxpy.cu", "-o"], &["-c", "saxpy.cu", "-I"], &["-c", "saxpy.cu", "-arch=sm_12", "-o", "saxpy.o"]];
    for arguments in cases {
        let ran = run(&mut project.nvtune(arguments));
        let plain = run(&mut project.plain(arguments));
        assert_eq!((ran.code, &ran.stderr), (plain.code, &plain.stderr), "{arguments:?}");
        assert_ne!(ran.code, Some(0), "{arguments:?}");
        assert_eq!(project.files(), ["saxpy.cu"], "{arguments:?}");
    }
}

#[test]
fn errors_in_the_source_are_those_of_plain_nvcc() {
    let project = Project::new(&[]).with_cuda_headers();
    let kernel = "//@tune threads(n) block(auto) args(n = 1024, x = out[n])\n__global__ void k(int n, float *x) { undeclared; }\n";
    project.write("wrong.cu", kernel);
    let ran = run(&mut project.nvtune(&compile("wrong.cu", "wrong.o")));
    let plain = run(&mut project.plain(&compile("wrong.cu", "wrong.o")));
    assert_eq!((ran.code, &ran.stderr), (plain.code, &plain.stderr));
    assert_eq!(project.files(), ["wrong.cu"]);
}
