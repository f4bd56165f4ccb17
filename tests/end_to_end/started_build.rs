//! The final nvcc starts while a source without header is tuned, and waits for the winners.

use super::environments::{profile, toolkit_with};
use super::overlap::processes;
use super::project::{CAPS_WIN, Project, Ran, nvcc, reproducible, run, succeed};
use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Host code of which cudafe++ has something to say.
const WARNED: &str = "void host_code() { int unused; return; unused = 1; }\n";

/// A line of each kernel of `two.cu`, and what nvcc says of [`WARNED`].
const SAID: [&str; 3] = ["nvtune: first: ", "nvtune: bounded: ", "two.cu(34): warning #550-D"];

/// `two.cu` and these lines, with recorded timings.
fn project(more: &str) -> Project {
    let project = Project::new(&["two.cu"]);
    project.write("two.cu", &(project.read("two.cu") + more));
    project.write("recorded.json", CAPS_WIN);
    project
}

/// A build on this many cores: with one, nvcc starts once all is tuned.
fn build(project: &Project, cores: u32, object: &str) -> Command {
    let mut build = project.nvtune(&reproducible("two.cu", object));
    build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json").env("NVTUNE_CACHE_SIZE", "0");
    build.env("RAYON_NUM_THREADS", cores.to_string()).env_remove("MAKEFLAGS");
    build
}

/// Where these texts are in what was said; each must be there once.
fn places(ran: &Ran, texts: &[&str]) -> Vec<usize> {
    texts.iter().for_each(|text| assert_eq!(ran.stderr.matches(text).count(), 1, "{text}: {}", ran.stderr));
    texts.iter().filter_map(|text| ran.stderr.find(text)).collect()
}

/// A toolkit whose cicc ends only once cudafe++ has been started: tuning needs what cicc makes. If
/// that takes longer than a minute, cicc fails.
fn toolkit_that_needs_both(project: &Project) -> PathBuf {
    let cicc = project.path("cicc-folder");
    let without_cicc: Vec<String> =
        profile().lines().filter(|line| !line.starts_with("CICC_PATH")).map(str::to_owned).collect();
    let profile = format!("{}\nCICC_PATH = {}\n", without_cicc.join("\n"), cicc.display());
    let own = toolkit_with(project, "toolkit", &profile);
    let real_root = nvcc().parent().and_then(Path::parent).expect("a toolkit").to_path_buf();
    std::fs::create_dir(&cicc).expect("a folder");
    symlink(real_root.join("nvvm/bin/cicc"), cicc.join("cicc")).expect("linked");
    let split = project.path("cicc-folder/split").display().to_string();
    let awaits = format!(
        "for turn in $(seq 600); do [ -e '{split}' ] && exec \"$REAL\" \"$@\"; sleep 0.1; done\necho alone >&2; exit 1\n"
    );
    replace_by_script(&cicc.join("cicc"), &awaits);
    replace_by_script(&own.with_file_name("cudafe++"), &format!("touch '{split}'\nexec \"$REAL\" \"$@\"\n"));
    own
}

/// Puts a script in the place of a link, with what the link leads to as `$REAL`.
fn replace_by_script(link: &Path, script: &str) {
    let real = link.read_link().expect("a link");
    std::fs::remove_file(link).expect("it was there");
    std::fs::write(link, format!("#!/bin/sh\nREAL='{}'\n{script}", real.display())).expect("written");
    set_permissions(link, Permissions::from_mode(0o755)).expect("executable");
}

#[test]
fn nvcc_splits_the_source_while_it_is_tuned() {
    let project = project(WARNED);
    let own = toolkit_that_needs_both(&project);
    let started = succeed(build(&project, 2, "two.o").env("NVTUNE_NVCC", own));
    assert!(places(&started, &SAID).is_sorted(), "what cudafe++ says is kept: {}", started.stderr);
    let object = project.bytes("two.o");
    let later = succeed(&mut build(&project, 1, "two.o"));
    assert!(places(&later, &SAID).is_sorted(), "{}", later.stderr);
    assert!(object == project.bytes("two.o"), "another object");
    assert_eq!(project.registers("two.o").iter().filter(|(_, registers)| *registers <= 24).count(), 1);
}

#[test]
fn source_that_nvcc_refuses_fails_as_with_nvcc() {
    for (what, more, said) in [
        ("host code", "int host_code() { return no_such_name; }\n", "error: identifier \"no_such_name\" is undefined"),
        (
            "for the host compiler",
            "#ifndef __CUDA_ARCH__\nstatic_assert(sizeof(int) == 5, \"size\");\n#endif\n",
            "size",
        ),
        (
            "device code",
            "__global__ void other() { no_such_name; }\n",
            "error: identifier \"no_such_name\" is undefined",
        ),
    ] {
        let project = project(more);
        let plain = run(&mut project.plain(&reproducible("two.cu", "plain.o")));
        let own = toolkit_that_needs_both(&project);
        let ran = run(build(&project, 2, "two.o").env("NVTUNE_NVCC", own));
        assert_eq!(ran.code, plain.code, "{what}: {}", ran.stderr);
        assert!(ran.code != Some(0) && plain.stderr.contains(said), "{what}: {}", ran.stderr);
        assert_eq!(ran.stderr.matches(&plain.stderr).count(), 1, "{what}: {}", ran.stderr);
        assert!(!project.files().iter().any(|name| name.starts_with("two.") && name != "two.cu"), "{what}");
    }
}

#[test]
fn strict_build_that_fails_ends_the_started_nvcc() {
    let project = project(WARNED);
    let own = toolkit_that_needs_both(&project);
    let mut build = build(&project, 2, "two.o");
    build.env("NVTUNE_REPLAY", "missing.json").env("NVTUNE_STRICT", "1");
    let ran = run(build.env("NVTUNE_NVCC", own));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("missing.json") && !ran.stderr.contains("warning #"), "{}", ran.stderr);
    assert!(project.path("cicc-folder/split").exists(), "it was not started");
    assert_eq!(project.files(), ["cicc-folder", "recorded.json", "toolkit", "two.cu"]);
}

#[test]
fn killed_nvtune_leaves_no_nvcc_that_builds() {
    let project = project("");
    project.write("recorded.json", &CAPS_WIN.replace("\"time_us\"", "\"pause_ms\": 2000, \"time_us\""));
    std::fs::create_dir(project.path("tmp")).expect("a folder");
    let own = toolkit_that_needs_both(&project);
    let mut build = build(&project, 2, "two.o");
    build.env("NVTUNE_NVCC", own).env("TMPDIR", project.path("tmp")).stderr(Stdio::null());
    let mut nvtune = build.spawn().expect("it starts");
    assert!(comes_true(|| project.path("cicc-folder/split").exists()));
    nvtune.kill().expect("it runs");
    nvtune.wait().expect("a child");
    assert!(comes_true(|| processes(&project.path("tmp")) == 0));
    assert!(!project.path("two.o").exists());
}

/// Asks until it is so, for a minute.
fn comes_true(is_so: impl Fn() -> bool) -> bool {
    (0..6000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        is_so()
    })
}

#[test]
fn shim_whose_nvtune_is_gone_builds_nothing() {
    let project = Project::new(&[]);
    let ended = project.path("ended");
    std::fs::create_dir(&ended).expect("a folder");
    project.write("ended/undecided", "");
    for tool in ["cicc", "ptxas"] {
        let shim = project.path(tool);
        symlink(env!("CARGO_BIN_EXE_nvtune"), &shim).expect("linked");
        // What it would run in place of the real one.
        for real in ["nvtune-real-cicc", "nvtune-real-ptxas"] {
            project.write(real, "#!/bin/sh\nexit 7\n");
            set_permissions(project.path(real), Permissions::from_mode(0o755)).expect("executable");
        }
        for (folder, code) in [(Some(&ended), 255), (Some(&project.path("removed")), 255), (None, 7)] {
            let mut command = Command::new(&shim);
            folder.into_iter().for_each(|folder| _ = command.env("NVTUNE_BUILD_PLAN", folder));
            assert_eq!(run(&mut command).code, Some(code), "{tool}, {folder:?}");
        }
    }
}
