//! Builds amid what a user may have: odd names, other toolkits, strict compilers, a full disk. None that plain nvcc passes breaks.

use super::project::{Project, Ran, nvcc, run, succeed};
use crate::support::full::cases;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A project for whose kernel a macro's other value wins.
fn project() -> Project {
    let project = Project::new(&["kernel.cu"]);
    let device = r#"{"name": "NVIDIA H200", "compute_capability": 90, "driver": 13000}"#;
    let entries = r#"{"label": "TILE=2", "time_us": 5.0}, {"time_us": 10.0, "spread": 0.01}"#;
    project.write("recorded.json", &format!(r#"{{"device": {device}, "entries": [{entries}]}}"#));
    project
}

/// A build of the source into a folder that it makes.
fn build(project: &Project, folder: &OsStr, options: &[&str]) -> Command {
    let folder = Path::new(folder);
    std::fs::create_dir_all(project.path("").join(folder)).expect("a folder");
    let mut arguments: Vec<OsString> = ["-arch=sm_90", "-c", "kernel.cu", "-o"].map(OsString::from).into();
    arguments.push(folder.join("kernel.o").into());
    arguments.extend(options.iter().map(OsString::from));
    let mut build = project.nvtune(&arguments);
    build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json");
    build
}

/// Whether the winner was built, and nothing else was said.
fn is_tuned(ran: &Ran) -> bool {
    ran.stderr.starts_with("nvtune: k: block=256 TILE=2 ") && ran.stderr.lines().count() == 1
}

#[test]
#[ignore = "long: in the full run"]
fn object_in_a_folder_of_any_name_is_tuned() {
    let project = project();
    for folder in [&b"it's"[..], b"a\"b", b"not \xff UTF-8"] {
        let folder = OsStr::from_bytes(folder);
        let ran = succeed(&mut build(&project, folder, &[]));
        assert!(is_tuned(&ran), "{}: {}", folder.display(), ran.stderr);
        assert!(project.path("").join(folder).join("kernel.tune.h").is_file(), "{}", folder.display());
    }
}

#[test]
fn temporary_folder_of_any_name_reaches_no_shell() {
    let project = project();
    for name in cases(&["x;touch ran;y", "it's", "a b"], 1) {
        let folder = project.path(name);
        std::fs::create_dir(&folder).expect("a folder");
        for linked_later in ["-rdc=true", "-rdc=false"] {
            let ran = succeed(build(&project, OsStr::new("out"), &[linked_later]).env("TMPDIR", &folder));
            assert!(is_tuned(&ran) && !project.path("ran").exists(), "{name} {linked_later}: {}", ran.stderr);
        }
    }
}

/// Makes a toolkit of links with this profile in a folder of the project; returns its nvcc.
pub fn toolkit_with(project: &Project, name: &str, profile: &str) -> PathBuf {
    let root = nvcc().parent().and_then(Path::parent).expect("a toolkit").to_path_buf();
    let bin = project.path(name).join("bin");
    std::fs::create_dir_all(&bin).expect("a folder");
    for (from, to) in [(&root, &project.path(name)), (&root.join("bin"), &bin)] {
        for entry in std::fs::read_dir(from).expect("a folder") {
            let name = entry.expect("readable").file_name();
            if name != "bin" && name != "nvcc.profile" {
                symlink(from.join(&name), to.join(&name)).expect("linked");
            }
        }
    }
    std::fs::write(bin.join("nvcc.profile"), profile).expect("written");
    bin.join("nvcc")
}

/// The real toolkit's profile.
pub fn profile() -> String {
    std::fs::read_to_string(nvcc().with_file_name("nvcc.profile")).expect("it has one")
}

#[test]
fn toolkit_with_another_profile_is_overlaid() {
    let profile = profile();
    let without_cicc = profile.lines().filter(|line| !line.starts_with("CICC_PATH")).collect::<Vec<_>>().join("\n");
    let project = project();
    for (kit, profile) in [
        ("older", without_cicc.replace("$(CICC_PATH)", "$(TOP)/nvvm/bin")),
        ("here", profile.replace("-I$(TOP)/", "-I$(_HERE_)/../")),
    ] {
        let own = toolkit_with(&project, kit, &profile);
        let ran = succeed(build(&project, OsStr::new(kit), &["-MD"]).env("NVTUNE_NVCC", own));
        assert!(is_tuned(&ran), "{kit}: {}", ran.stderr);
        let dependencies = project.read(&format!("{kit}/kernel.d"));
        assert!(!dependencies.contains("nvtune-"), "a file that is gone: {kit}: {dependencies}");
    }
}

#[test]
fn header_is_quiet_under_strict_warnings() {
    let project = project();
    let ran = succeed(&mut build(&project, OsStr::new("o"), &["-Xcompiler", "-Werror=aggregate-return"]));
    assert!(is_tuned(&ran), "{}", ran.stderr);
}

/// Returns the option by which the host compiler runs a line of shell before each call of the assembler.
fn assembler_behind(project: &Project, line: &str) -> String {
    let tools = project.path("bin/tools");
    std::fs::create_dir_all(&tools).expect("a folder");
    let assembler = which::which("as").expect("an assembler");
    let script = format!("#!/bin/sh\n{line}\nexec '{}' \"$@\"\n", assembler.display());
    std::fs::write(tools.join("as"), script).expect("written");
    std::fs::set_permissions(tools.join("as"), PermissionsExt::from_mode(0o755)).expect("executable");
    format!("-B{}", tools.display())
}

#[test]
fn build_that_fails_with_a_header_passes_without() {
    let project = project();
    // As where the disk has no room for both, the assembler writes no object beside a header.
    let own_assembler = assembler_behind(&project, "test -e o/kernel.tune.h && exit 1");
    for mode in ["measure", "locked"] {
        let mut build = build(&project, OsStr::new("o"), &["-Xcompiler", &own_assembler]);
        let ran = succeed(build.env("NVTUNE", mode).env("NVTUNE_CACHE_SIZE", "0"));
        let message = "nvtune warning : neither header nor tuned result is used: nvcc fails with it";
        assert_eq!(ran.stderr.matches(message).count(), 1, "{mode}: {}", ran.stderr);
        let left = [".o", ".tune.h", ".tune.json"].map(|end| project.path(&format!("o/kernel{end}")).exists());
        assert_eq!(left, [true, false, false], "{mode}");
        std::fs::remove_file(project.path("o/kernel.o")).expect("removed");
    }
}

#[test]
fn pipe_in_place_of_a_header_or_record_is_left() {
    for name in ["o/kernel.tune.h", "o/kernel.tune.json"] {
        let project = project();
        std::fs::create_dir(project.path("o")).expect("a folder");
        project.tool_of_host("mkfifo", &[name]);
        let build = build(&project, OsStr::new("o"), &[]);
        let mut within = Command::new("timeout");
        within.args(["60", "env"]).current_dir(project.path(""));
        within.envs(build.get_envs().filter_map(|(name, value)| Some((name, value?))));
        within.arg(build.get_program()).args(build.get_args());
        let ran = run(&mut within);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains(&format!("'{name}' was not written by nvtune")), "{name}: {}", ran.stderr);
    }
}

/// `ulimit -u` counts the threads of a user, and root is not bound by it: the builds run as a user who has no other process.
#[test]
fn build_passes_with_as_few_processes_as_nvcc_needs() {
    const NOBODY: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];
    let project = project();
    std::fs::set_permissions(project.path(""), std::fs::Permissions::from_mode(0o777)).expect("a mode");
    let as_nobody = |limit: u32, build: &Command| {
        let mut command = Command::new("setpriv");
        command.args(NOBODY).args(["sh", "-c", "ulimit -u $1 && shift && exec \"$@\"", "sh", &limit.to_string()]);
        command.arg(build.get_program()).args(build.get_args()).current_dir(project.path(""));
        for (name, value) in build.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        run(command.env("NVTUNE_CACHE_SIZE", "0").env("TMPDIR", project.path("")))
    };
    let mut plain = project.nvtune(&["-arch=sm_90", "-c", "kernel.cu", "-o", "plain.o"]);
    plain.env("NVTUNE", "off");
    let mut tuned = project.nvtune(&["-arch=sm_90", "-c", "kernel.cu", "-o", "tuned.o"]);
    tuned.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json");
    // Only root may become another user, who may not reach a folder of root's.
    if as_nobody(200, &plain).code != Some(0) {
        return;
    }
    for limit in [5, 7] {
        if as_nobody(limit, &plain).code == Some(0) {
            let ran = as_nobody(limit, &tuned);
            assert_eq!(ran.code, Some(0), "{limit} processes: {}", ran.stderr);
        }
    }
}

#[test]
#[ignore = "long: in the full run"]
fn source_and_object_in_a_folder_with_a_backslash_are_tuned() {
    let project = project();
    std::fs::create_dir(project.path(r"a\b")).expect("a folder");
    std::fs::rename(project.path("kernel.cu"), project.path(r"a\b/k\t.cu")).expect("renamed");
    for (object, depfile) in [(r"a\b/k.o", r"a\b/k.d"), ("k.o", "k.d")] {
        let arguments = ["-arch=sm_90", "-MD", "-MP", "-c", r"a\b/k\t.cu", "-o", object];
        succeed(&mut project.plain(&arguments));
        let plain = project.read(depfile);
        let mut build = project.nvtune(&arguments);
        build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json");
        let ran = succeed(build.env("NVTUNE_HEADER_IN_DEPFILE", "0"));
        assert!(is_tuned(&ran), "{object}: {}", ran.stderr);
        assert_eq!(project.read(depfile), plain, "{object}");
    }
}

/// A name that a depfile gives to a file below `TMPDIR`, which goes with the build.
fn names_a_temporary_file(depfile: &str, folder: &Path) -> bool {
    depfile.contains(&*folder.join("nvtune-").to_string_lossy())
}

#[test]
fn depfile_that_is_a_link_stays_one() {
    let project = project();
    for (case, link) in [("symbolic", true), ("hard", false)] {
        std::fs::create_dir_all(project.path("deps")).expect("a folder");
        project.write("deps/k.d", "old\n");
        std::fs::set_permissions(project.path("deps/k.d"), PermissionsExt::from_mode(0o640)).expect("a mode");
        match link {
            true => symlink("deps/k.d", project.path("x.d")).expect("linked"),
            false => std::fs::hard_link(project.path("deps/k.d"), project.path("x.d")).expect("linked"),
        }
        let ran = succeed(&mut build(&project, OsStr::new("o"), &["-MD", "-MF", "x.d"]));
        assert!(is_tuned(&ran), "{case}: {}", ran.stderr);
        let data = project.path("x.d").symlink_metadata().expect("there");
        assert_eq!((data.is_symlink(), data.nlink()), (link, if link { 1 } else { 2 }), "{case}");
        let target = project.read("deps/k.d");
        assert!(target.contains("o/kernel.tune.h"), "{case}: {target}");
        assert!(!names_a_temporary_file(&target, &std::env::temp_dir()), "{case}: {target}");
        let mode = project.path("deps/k.d").metadata().expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "{case}");
        std::fs::remove_file(project.path("x.d")).expect("removed");
    }
}

/// The host compiler is stopped where it makes the object, the last step: what is there then is what a SIGKILL would leave.
#[test]
fn depfile_names_no_temporary_file_at_any_time() {
    let all = [&["-MD"][..], &["-MMD", "-MP", "--dependency-output=o/kernel.d"], &["-MD", "-MF", "o/kernel.d"]];
    for &options in cases(&all, 2) {
        let project = project();
        let own_assembler = assembler_behind(&project, "cat o/kernel.d >> seen 2>/dev/null");
        std::fs::create_dir(project.path("o")).expect("a folder");
        project.write("o/kernel.d", "old\n");
        let options = [options, &["-Xcompiler", &own_assembler]].concat();
        let ran = succeed(&mut build(&project, OsStr::new("o"), &options));
        assert!(is_tuned(&ran), "{options:?}: {}", ran.stderr);
        assert_eq!(project.read("seen"), "old\n", "{options:?}");
        let depfile = project.read("o/kernel.d");
        assert!(depfile.contains("o/kernel.tune.h"), "{options:?}: {depfile}");
        assert!(!names_a_temporary_file(&depfile, &std::env::temp_dir()), "{options:?}: {depfile}");
    }
}

#[test]
#[ignore = "long: in the full run"]
fn dry_run_that_fails_alone_is_one_warning_and_an_error_if_strict() {
    // What an nvcc does for a dry run, the seconds of patience, and what is said. Without a folder for it none is started.
    for (line, patience, said) in [
        (": >> dry", "900", "cannot start '"),
        ("exec sleep 60", "2", "nvcc --dryrun did not end within 2 s"),
        ("echo 'nvcc fatal   : no dry runs' >&2; exit 1", "900", "nvcc --dryrun fails: nvcc fatal   : no dry runs"),
        ("kill -KILL $$", "900", "nvcc --dryrun fails: no message"),
    ] {
        let project = project();
        let lines =
            format!("unset TMPDIR\ncase \" $* \" in *' --dryrun '*) {line};; esac\nexec '{}' \"$@\"", nvcc().display());
        let script = project.script("bin/real", &lines);
        let arguments = ["-arch=sm_90", "-c", "kernel.cu", "-o", "kernel.o", "-objtemp"];
        succeed(&mut project.plain(&arguments));
        let plain = project.bytes("kernel.o");
        for strict in [false, true] {
            let mut build = project.nvtune(&arguments);
            build.env("NVTUNE_NVCC", &script).env("NVTUNE_PATIENCE", patience);
            if line.starts_with(':') {
                build.env("TMPDIR", project.path("none"));
            }
            if strict {
                build.env("NVTUNE_STRICT", "1");
            }
            let ran = run(&mut build);
            assert_eq!(ran.code == Some(0), !strict, "{line}: {:?} {}", ran.code, ran.stderr);
            assert_eq!(ran.stderr.matches(said).count(), 1, "{line}: {}", ran.stderr);
            let (warnings, errors) = (ran.stderr.matches("nvtune warning"), ran.stderr.matches("nvtune error"));
            assert_eq!(
                (warnings.count(), errors.count() > 0),
                (usize::from(!strict), strict),
                "{line}: {}",
                ran.stderr
            );
            assert!(strict || project.bytes("kernel.o") == plain, "{line}: another object");
        }
        assert!(!project.path("dry").exists(), "a dry run is started");
    }
}

#[test]
#[ignore = "long: in the full run"]
fn build_passes_if_nvtune_is_replaced_or_removed_during_it() {
    let project = project();
    let arguments = ["-arch=sm_90", "-c", "kernel.cu", "-o", "kernel.o", "-objtemp"];
    succeed(&mut project.plain(&arguments));
    let plain = project.bytes("kernel.o");
    let own = toolkit_with(&project, "kit", &profile());
    let tuned = || {
        let mut build = project.nvtune(&arguments);
        build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json").env("NVTUNE_CACHE_SIZE", "0");
        succeed(build.env("NVTUNE_NVCC", &own))
    };
    let ran = tuned();
    assert!(is_tuned(&ran), "{}", ran.stderr);
    let winners = project.bytes("kernel.o");
    // nvcc runs this before it assembles. What takes nvtune's place fails whatever it is called for.
    std::fs::remove_file(project.path("kit/bin/cudafe++")).expect("a link");
    for line in ["mv -f bin/other bin/nvcc", "cp bin/other bin/next && mv bin/next bin/nvcc", "rm -f bin/nvcc"] {
        let real = nvcc().with_file_name("cudafe++");
        let tool = format!("#!/bin/sh\n: > ran\n{line}\nexec '{}' \"$@\"\n", real.display());
        for (name, text) in [("bin/other", "#!/bin/sh\nexit 1\n"), ("kit/bin/cudafe++", &tool)] {
            project.write(name, text);
            std::fs::set_permissions(project.path(name), PermissionsExt::from_mode(0o755)).expect("executable");
        }
        let _ = std::fs::remove_file(project.path("bin/nvcc"));
        std::fs::copy(env!("CARGO_BIN_EXE_nvtune"), project.path("bin/nvcc")).expect("copied");
        let ran = tuned();
        std::fs::remove_file(project.path("ran")).expect("something takes its place");
        let object = project.bytes("kernel.o");
        assert!(object == winners || object == plain, "{line}: another object: {}", ran.stderr);
        assert_eq!(ran.stderr.contains("nvtune warning"), object == plain, "{line}: {}", ran.stderr);
    }
}

/// Only root may have another view of the machine's files.
#[test]
fn build_without_proc_passes_as_plain_nvcc_does() {
    let project = project();
    let arguments = ["-arch=sm_90", "-c", "kernel.cu", "-o", "kernel.o", "-objtemp"];
    let without_proc = |build: &Command| {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh"]);
        command.arg(build.get_program()).args(build.get_args()).current_dir(project.path(""));
        for (name, value) in build.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.output().ok()
    };
    if !without_proc(&project.plain(&arguments)).is_some_and(|ended| ended.status.success()) {
        return;
    }
    let plain = project.bytes("kernel.o");
    for mode in ["off", "measure"] {
        std::fs::remove_file(project.path("kernel.o")).expect("removed");
        let mut build = project.nvtune(&arguments);
        build.env("NVTUNE", mode).env("NVTUNE_REPLAY", "recorded.json").env("NVTUNE_CACHE_SIZE", "0");
        let ended = without_proc(&build).expect("it starts");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{mode}: {:?} {said}", ended.status);
        let is_plain = project.bytes("kernel.o") == plain;
        assert!(is_plain || mode == "measure", "{mode}: another object");
        assert!(is_plain || said.contains("(2.00x"), "{mode}: {said}");
    }
}
