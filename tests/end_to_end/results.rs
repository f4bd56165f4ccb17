//! Results that last: the cache and the lock file, through real compiles.

use super::project::{CAPS_WIN, Project, Ran, compile, nvcc, reproducible, run, succeed};
use crate::support::full::cases;
use std::path::Path;
use std::process::Command;

/// A GPU on which this block is faster than all others.
pub fn gpu(name: &str, block: u32) -> String {
    format!(
        r#"{{"device": {{"name": "{name}", "compute_capability": 90, "driver": 13000}},
            "entries": [{{"label": "block={block}", "time_us": 8.0, "spread": 0.01}}, {{"time_us": 10.0, "spread": 0.01}}]}}"#
    )
}

/// A build of `two.cu` on the GPU of [`CAPS_WIN`].
fn two(project: &Project) -> Ran {
    project.write("recorded.json", CAPS_WIN);
    let mut build = project.nvtune(&reproducible("two.cu", "two.o"));
    succeed(build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"))
}

/// nvtune's own command in a project's folder.
pub fn nvtune(project: &Project, arguments: &[&str]) -> Command {
    let mut command = project.nvtune::<&str>(&[]);
    let mut own = Command::new(env!("CARGO_BIN_EXE_nvtune"));
    own.args(arguments).current_dir(project.path(""));
    for (name, value) in command.env_remove("NVTUNE").get_envs() {
        match value {
            Some(value) => own.env(name, value),
            None => own.env_remove(name),
        };
    }
    own
}

type Lines<'a> = Vec<(&'a str, &'a str)>;

/// Which kernels a build tuned, and which it took from the cache.
fn told<'a>(ran: &'a Ran) -> (Vec<&'a str>, Vec<&'a str>) {
    let lines = ran.stderr.lines().filter_map(|line| line.strip_prefix("nvtune: ")?.split_once(": "));
    let lines = lines.filter(|(_, rest)| !rest.starts_with("note: "));
    let (kept, tuned): (Lines<'a>, Lines<'a>) = lines.partition(|(_, rest)| rest.contains("; from the cache"));
    let names = |lines: &[(&'a str, &'a str)]| lines.iter().map(|(name, _)| *name).collect();
    (names(&tuned), names(&kept))
}

/// Writes a script that notes that it was called and then runs `program`.
pub fn noting(project: &Project, name: &str, program: &Path) {
    let notes = project.path("notes");
    project.script(name, &format!("echo {name} >> '{}'\nexec '{}' \"$@\"", notes.display(), program.display()));
}

#[test]
fn cached_build_starts_only_the_final_compiler_and_gives_the_same_bytes() {
    let project = Project::new(&["two.cu"]).with_cuda_headers_in_full_run();
    // The header that the first build leaves beside the source is no reason to look again.
    let including =
        format!("#if __has_include(\"two.tune.h\")\n#include \"two.tune.h\"\n#endif\n{}", project.read("two.cu"));
    project.write("two.cu", &including);
    std::fs::create_dir(project.path("tools")).expect("a folder");
    noting(&project, "tools/gcc", &which::which("gcc").expect("a host compiler"));
    // A wrapper is not asked for the final build: nvtune starts the nvcc behind it, from the overlay. But it alone knows which that is.
    noting(&project, "tools/nvcc", &nvcc());
    project.write("recorded.json", CAPS_WIN);
    let path = std::env::var("PATH").expect("there is one");
    let build = || {
        project.write("notes", "");
        let mut build = project.nvtune(&reproducible("two.cu", "two.o"));
        build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json");
        build.env("NVTUNE_NVCC", project.path("tools/nvcc"));
        build.env("PATH", format!("{}:{path}", project.path("tools").display()));
        let ran = succeed(&mut build);
        let notes = project.read("notes");
        let count = |name: &str| notes.lines().filter(|line| *line == name).count();
        (ran, count("tools/nvcc"), count("tools/gcc"))
    };
    let (ran, asked, preprocessed) = build();
    assert_eq!(told(&ran), (vec!["first", "bounded"], vec![]), "{}", ran.stderr);
    assert!(asked == 2 && preprocessed > 0);
    let outputs = ["two.o", "two.tune.h", "two.tune.json"];
    let cold = outputs.map(|name| project.bytes(name));
    // What a build of plain nvcc starts.
    let mut plain = project.plain(&reproducible("two.cu", "plain.o"));
    project.write("notes", "");
    succeed(plain.env("PATH", format!("{}:{path}", project.path("tools").display())));
    let of_plain = project.read("notes").lines().count();
    project.write("notes", "");
    let mut asked = project.plain(&[&["--dryrun".to_owned()][..], &reproducible("two.cu", "plain.o")].concat());
    succeed(asked.env("PATH", format!("{}:{path}", project.path("tools").display())));
    let of_dry_run = project.read("notes").lines().count();

    for are_left in [true, false] {
        if !are_left {
            outputs.iter().for_each(|name| std::fs::remove_file(project.path(name)).expect("removed"));
        }
        let (ran, asked, preprocessed) = build();
        assert_eq!(told(&ran), (vec![], vec!["first", "bounded"]), "{}", ran.stderr);
        // The wrapper is asked for its steps and its variables, and the nvcc behind it whether it would do the same.
        assert_eq!((asked, preprocessed), (2, 2 * of_dry_run + of_plain), "outputs left: {are_left}");
    }
    for (name, cold) in outputs.iter().zip(cold) {
        assert!(project.bytes(name) == cold, "{name} is another one");
    }
    // Without a wrapper nothing is asked.
    for is_cached in [false, true] {
        project.write("notes", "");
        let mut build = project.nvtune(&reproducible("two.cu", "two.o"));
        build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json");
        build.env("PATH", format!("{}:{path}", project.path("tools").display()));
        let ran = succeed(&mut build);
        let notes = project.read("notes").lines().count();
        assert_eq!(notes == of_plain, is_cached, "{notes} {of_plain}: {}", ran.stderr);
    }
}

#[test]
#[ignore = "long: in the full run"]
fn only_kernels_whose_code_or_comment_changed_are_tuned_again() {
    let project = Project::new(&["two.cu"]);
    let original = project.read("two.cu");
    project.write("recorded.json", CAPS_WIN);
    // Register caps need no launch stubs.
    let two = || {
        let mut build = project.nvtune(&["-O3", "-arch=sm_90", "-cubin", "two.cu", "-o", "two.cubin"]);
        succeed(build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"))
    };
    let both = (vec!["first", "bounded"], vec![]);
    assert_eq!(told(&two()), both);
    let edits: [(&str, &str, &str, &[&str]); 6] = [
        ("host code", "struct Sums", "static int host() { return 1; }\nint use() { return host(); }\nstruct Sums", &[]),
        (
            "comments and blanks",
            "//@tune threads(n) block(128)",
            "// A kernel.\n\n//@tune  threads( n )\n//@tune block(128)",
            &[],
        ),
        (
            "an unmarked kernel",
            "y[i] = mixed(x, i);\n}\n",
            "y[i] = mixed(x, i);\n}\n__global__ void other(int *p) { *p = 1; }\n",
            &[],
        ),
        ("one kernel", "mixed(x, i + 3)", "mixed(x, i + 4)", &["bounded"]),
        ("one comment", "regs({0, 24})", "regs({0, 24, 40})", &["first"]),
        ("what both call", "(k + 5) % 16", "(k + 6) % 16", &["first", "bounded"]),
    ];
    for (what, from, to, expected) in edits {
        assert!(original.contains(from), "{what}");
        project.write("two.cu", &original.replacen(from, to, 1));
        let ran = two();
        assert_eq!(told(&ran).0, expected, "{what}: {}", ran.stderr);
        assert!(!ran.stderr.contains("warning"), "{what}: {}", ran.stderr);
    }
    project.write("two.cu", &original);
    assert_eq!(told(&two()).0, [""; 0], "the first result is there still");
}

#[test]
fn cached_result_depends_on_included_files_and_ptxas_options() {
    let project = Project::new(&[]);
    project.write("factor.h", "#define FACTOR 2.0f\n");
    let source = "#include \"factor.h\"\n//@tune threads(n) block({128, 256}) regs({0}) args(n = 1 << 16, x = random[n])\n\
        __global__ void scale(int n, float *x) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= FACTOR; }\n";
    project.write("scale.cu", source);
    let build = |options: &[&str]| {
        let mut arguments = compile("scale.cu", "scale.cubin");
        arguments.retain(|word| word != "-c");
        arguments.extend(["-cubin"].iter().chain(options).map(|word| (*word).to_owned()));
        let ran = succeed(&mut project.nvtune(&arguments));
        told(&ran).0.len()
    };
    assert_eq!((build(&[]), build(&[])), (1, 0));
    project.write("factor.h", "#define FACTOR 3.0f\n");
    assert_eq!((build(&[]), build(&[])), (1, 0));
    // The same code for the device.
    project.write("factor.h", "#define FACTOR (1.0f + 2.0f)  // three\n");
    assert_eq!(build(&[]), 0);
    assert_eq!((build(&["-Xptxas", "-O2"]), build(&["-Xptxas", "-O2"])), (1, 0));
    assert_eq!(build(&["-DUNUSED=1"]), 0);
}

#[test]
#[ignore = "long: in the full run"]
fn a_cache_that_is_damaged_or_cannot_be_written_breaks_no_build() {
    let project = Project::new(&["two.cu"]);
    two(&project);
    let mut folders = vec![project.path("bin/cache")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("it is there") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let mut bytes = std::fs::read(&path).expect("an entry");
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x20;
            std::fs::write(&path, bytes).expect("written");
        }
    }
    let ran = two(&project);
    assert_eq!(told(&ran), (vec!["first", "bounded"], vec![]), "{}", ran.stderr);
    assert_eq!(told(&two(&project)).1, ["first", "bounded"]);

    project.write("file", "");
    let mut build = project.nvtune(&compile("two.cu", "two.o"));
    let ran = succeed(build.env("NVTUNE_CACHE_DIR", project.path("file")));
    let warnings: Vec<_> = ran.stderr.lines().filter(|line| line.starts_with("nvtune warning")).collect();
    assert!(matches!(warnings[..], [warning] if warning.contains("cannot write into the cache")), "{}", ran.stderr);
}

/// The files in folders of this name below a folder, with their times of modification.
fn files_below(folder: &Path, name: &str) -> Vec<(std::path::PathBuf, std::time::SystemTime)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("readable")) {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path, name));
        } else if folder.ends_with(name) {
            found.push((path, entry.metadata().and_then(|data| data.modified()).expect("dated")));
        }
    }
    found.sort();
    found
}

#[test]
fn kernel_whose_code_differs_from_the_lock_gets_its_baseline_alone() {
    let project = Project::new(&["two.cu"]);
    two(&project);
    succeed(&mut nvtune(&project, &["lock"]));
    // The entry of `bounded`, the first one, promises other code than its compiler makes.
    let lock = project.read("nvtune.lock");
    let at = lock.find("\"code\": \"").expect("it has a digest") + 9;
    project.write("nvtune.lock", &format!("{}0000{}", &lock[..at], &lock[at + 4..]));
    let mut build = project.nvtune(&reproducible("two.cu", "two.o"));
    let ran = succeed(build.env("NVTUNE", "locked").env("NVTUNE_CACHE_SIZE", "0"));
    let said = "nvtune warning : bounded: the tuned result is not used: the object lacks the machine code of the chosen variant [N0050]\n";
    assert_eq!(ran.stderr.matches("warning").count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    let header = project.read("two.tune.h");
    for line in ["#define FIRST_PROVENANCE \"locked\"\n", "#define BOUNDED_PROVENANCE \"baseline\"\n"] {
        assert!(header.contains(line), "{line}: {header}");
    }
}

#[test]
#[ignore = "long: in the full run"]
fn cached_machine_code_is_not_compiled_again() {
    let project = Project::new(&["two.cu"]);
    let build = |strategy: &str, budget: &str| {
        project.write("recorded.json", CAPS_WIN);
        let mut build = project.nvtune(&reproducible("two.cu", "two.o"));
        build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json").env("NVTUNE_STRATEGY", strategy);
        build.env("NVTUNE_BUDGET", budget);
        (succeed(&mut build), project.bytes("two.o"))
    };
    let (ran, first) = build("refit", "30");
    assert_eq!(told(&ran), (vec!["first", "bounded"], vec![]), "{}", ran.stderr);
    let kept = files_below(&project.path("bin/cache"), "variants");
    assert!(kept.len() > 2, "{kept:?}");
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(86_400);
    for (path, _) in &kept {
        std::fs::File::options().append(true).open(path).and_then(|file| file.set_modified(long_ago)).expect("dated");
    }
    // Another strategy decides anew; all code is there, each piece is used, and none is added.
    let (ran, again) = build("es", "30");
    assert_eq!(told(&ran), (vec!["first", "bounded"], vec![]), "{}", ran.stderr);
    let now = files_below(&project.path("bin/cache"), "variants");
    let paths = |all: &[(std::path::PathBuf, std::time::SystemTime)]| -> Vec<_> {
        all.iter().map(|(path, _)| path.clone()).collect()
    };
    assert_eq!(paths(&now), paths(&kept));
    assert!(now.iter().all(|(_, used)| *used > long_ago), "{now:?}");
    assert!(again == first, "the same winner, and the same object");
    // What is damaged is made again.
    for (path, _) in &kept {
        std::fs::write(path, "no entry").expect("written");
    }
    let (ran, again) = build("es", "20");
    assert!(!ran.stderr.contains("warning") && again == first, "{}", ran.stderr);
}

#[test]
fn cache_command_counts_trims_and_clears() {
    let project = Project::new(&["two.cu"]);
    two(&project);
    let stats = succeed(&mut nvtune(&project, &["cache", "stats"])).stdout;
    // Two kernels, the call, its record; and the machine code that was looked at.
    let entries = 4 + files_below(&project.path("bin/cache"), "variants").len();
    assert!(stats.contains(&format!("entries    {entries}\n")) && stats.contains("unfinished 0\n"), "{stats}");
    assert_eq!(succeed(&mut nvtune(&project, &["cache", "trim"])).stdout, "removed 0 entries\n");
    assert_eq!(
        succeed(&mut nvtune(&project, &["cache", "trim", "--size", "0"])).stdout,
        format!("removed {entries} entries\n")
    );
    assert_eq!(succeed(&mut nvtune(&project, &["cache", "clear"])).stdout, "removed 0 entries\n");
    assert_eq!(run(nvtune(&project, &["cache", "trim", "--size", "x"]).env_remove("HOME")).code, Some(2));
    assert_eq!(run(nvtune(&project, &["cache", "stats"]).env("NVTUNE_CACHE_SIZE", "0")).code, Some(1));
}

#[test]
#[ignore = "long: in the full run"]
fn locked_build_without_a_gpu_gives_the_same_bytes() {
    let project = Project::new(&["two.cu"]).with_cuda_headers_in_full_run();
    two(&project);
    let timed = project.bytes("two.o");
    let ran = succeed(&mut nvtune(&project, &["lock"]));
    assert!(ran.stdout.ends_with("nvtune.lock: entries: 2; new or changed: 2\n"), "{}", ran.stdout);
    let lock = project.read("nvtune.lock");
    assert!(succeed(&mut nvtune(&project, &["lock"])).stdout.ends_with("; new or changed: 0\n"));
    assert!(succeed(&mut nvtune(&project, &["lock", "--check"])).stdout.starts_with("2 entries"));

    let farm = Project::new(&["two.cu"]).with_cuda_headers_in_full_run();
    farm.write("nvtune.lock", &lock);
    for mode in ["locked", "static", "measure"] {
        let mut build = farm.nvtune(&reproducible("two.cu", "two.o"));
        let ran = succeed(build.env("NVTUNE", mode).env("CUDA_VISIBLE_DEVICES", ""));
        assert!(
            ran.stderr.contains("nvtune: first: block=128 regs=24 (1.") && !ran.stderr.contains("warning"),
            "{}",
            ran.stderr
        );
        assert_eq!(ran.stderr.matches("x over the baseline, locked)\n").count(), 2, "{mode}: {}", ran.stderr);
        assert!(farm.bytes("two.o") == timed, "{mode}: the object is another one");
    }
    let header = farm.read("two.tune.h");
    assert!(
        header.contains("#define FIRST_PROVENANCE \"locked\"\n#define FIRST_GPU \"NVIDIA H200, sm_90\"\n"),
        "{header}"
    );
    assert!(succeed(&mut nvtune(&farm, &["lock", "--check"])).stdout.starts_with("2 entries"));

    // Another model of GPU changes nothing but a word.
    farm.write("recorded.json", &gpu("NVIDIA A100", 128));
    let mut build = farm.nvtune(&reproducible("two.cu", "two.o"));
    let ran = succeed(build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"));
    assert!(
        ran.stderr.contains(", locked; timed on NVIDIA H200; this machine has NVIDIA A100 [N0045])"),
        "{}",
        ran.stderr
    );
    assert!(farm.bytes("two.o") == timed);
}

#[test]
fn stale_lock_entry_is_not_used_and_names_what_changed() {
    let project = Project::new(&["two.cu"]);
    two(&project);
    succeed(&mut nvtune(&project, &["lock"]));
    let (original, lock) = (project.read("two.cu"), project.read("nvtune.lock"));
    let build = |options: &[&str]| {
        let mut arguments = compile("two.cu", "two.o");
        arguments.extend(options.iter().map(|word| (*word).to_owned()));
        succeed(project.nvtune(&arguments).env("NVTUNE", "locked").env("NVTUNE_CACHE_SIZE", "0"))
    };
    let changes: [(&str, &str, &str, &[&str], &str); 4] = [
        (
            "mixed(x, i + 3)",
            "mixed(x, i + 4)",
            "",
            &[],
            "bounded: its entry in nvtune.lock is stale and not used: another is its code (PTX); ",
        ),
        (
            "regs({0, 24})",
            "regs({0, 24, 40})",
            "",
            &[],
            "first: its entry in nvtune.lock is stale and not used: another is its tuning comment; ",
        ),
        (
            "struct",
            "struct",
            "",
            &["-Xptxas", "-O2"],
            "another is the options of ptxas (`-arch=sm_90 -m64 -O2`, locked with `-arch=sm_90 -m64`)",
        ),
        ("struct", "struct", "\"toolkit\": \"12.9.1\"", &[], "another is the toolkit (13.0."),
    ];
    for (from, to, toolkit, options, said) in cases(&changes, 2) {
        project.write("two.cu", &original.replacen(from, to, 1));
        let version = lock.split("\"toolkit\": ").nth(1).and_then(|rest| rest.split('"').nth(1)).expect("it is named");
        if !toolkit.is_empty() {
            project.write("nvtune.lock", &lock.replace(&format!("\"toolkit\": \"{version}\""), toolkit));
        }
        let ran = build(options);
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
        let checked = run(&mut nvtune(&project, &["lock", "--check"]));
        assert_eq!(checked.code, Some(1), "{said}: {}", checked.stdout);
        assert!(
            checked.stdout.contains("two.cu: ") && checked.stdout.contains("is stale: another is "),
            "{}",
            checked.stdout
        );
        project.write("nvtune.lock", &lock);
    }
    // A kernel that is not there any more, and one that is not there yet.
    project.write("two.cu", &original.replace("void first", "void premier"));
    let said = build(&[]).stderr;
    assert!(said.contains("nvtune: bounded: ") && !said.contains("first"), "{said}");
    let checked = run(&mut nvtune(&project, &["lock", "--check"]));
    for line in
        ["premier (two.cu) is not locked [N0214]\n", "two.cu: first, sm_90 is of a kernel that is gone [N0215]\n"]
    {
        assert!(checked.stdout.contains(line), "{line}: {}", checked.stdout);
    }
    project.write("nvtune.lock", "{\n<<<<<<< one\n");
    assert!(build(&[]).stderr.contains("nvtune.lock' is no lock file: key must be a string at line 2"));
}

#[test]
fn lock_update_tunes_a_kernel_without_an_entry() {
    let project = Project::new(&["two.cu"]);
    two(&project);
    succeed(&mut nvtune(&project, &["lock"]));
    let lock = project.read("nvtune.lock");
    let (before, entry) = lock.split_once("    \"two.cu: bounded, sm_90\"").expect("it has an entry");
    let after = entry.split_once("    },\n").expect("it ends").1;
    project.write("nvtune.lock", &format!("{before}{after}"));
    let build = || {
        let mut build = project.nvtune(&compile("two.cu", "two.o"));
        succeed(build.env("NVTUNE", "locked").env("NVTUNE_CACHE_SIZE", "0")).stderr
    };
    assert_eq!(build().matches("bounded is not in nvtune.lock").count(), 1);
    let checked = run(&mut nvtune(&project, &["lock", "--check"]));
    assert_eq!((checked.stdout.as_str(), checked.code), ("bounded (two.cu) is not locked [N0214]\n", Some(1)));
    let ran = succeed(nvtune(&project, &["lock", "--update"]).env("NVTUNE_REPLAY", "recorded.json"));
    assert!(ran.stdout.ends_with("entries: 2; new or changed: 1\n"), "{} {}", ran.stdout, ran.stderr);
    assert_eq!(build().matches(", locked)\n").count(), 2);
}

#[test]
#[ignore = "long: in the full run"]
fn lock_update_times_only_stale_entries() {
    let project = Project::new(&["two.cu"]);
    two(&project);
    succeed(&mut nvtune(&project, &["lock"]));
    let before = project.read("nvtune.lock");
    project.write("two.cu", &project.read("two.cu").replacen("mixed(x, i + 3)", "mixed(x, i + 4)", 1));
    let mut build = project.nvtune(&compile("two.cu", "two.o"));
    assert!(succeed(build.env("NVTUNE", "locked")).stderr.contains("bounded: its entry in nvtune.lock is stale"));
    let mut update = nvtune(&project, &["lock", "--update"]);
    let ran = succeed(update.env("NVTUNE_REPLAY", "recorded.json"));
    assert!(ran.stdout.ends_with("entries: 2; new or changed: 1\n"), "{} {}", ran.stdout, ran.stderr);
    let after = project.read("nvtune.lock");
    let of =
        |text: &str, kernel: &str| text.split(kernel).nth(1).and_then(|rest| rest.split('}').next()).map(str::to_owned);
    assert_eq!(of(&before, "two.cu: first, "), of(&after, "two.cu: first, "));
    assert_ne!(of(&before, "two.cu: bounded, "), of(&after, "two.cu: bounded, "));
    let mut build = project.nvtune(&compile("two.cu", "two.o"));
    let ran = succeed(build.env("NVTUNE", "locked"));
    assert_eq!(ran.stderr.matches(", locked)\n").count(), 2, "{}", ran.stderr);
}

#[test]
fn lock_update_refuses_a_record_of_another_user() {
    let project = Project::new(&["two.cu"]);
    two(&project);
    succeed(&mut nvtune(&project, &["lock"]));
    let before = project.read("nvtune.lock");
    project.write("two.cu", &project.read("two.cu").replacen("mixed(x, i + 3)", "mixed(x, i + 4)", 1));
    // Only root can give a file away.
    if std::os::unix::fs::chown(project.path("two.tune.json"), Some(65_534), None).is_err() {
        return;
    }
    for arguments in [&["lock"][..], &["lock", "--update"], &["lock", "--check"]] {
        let ran = run(nvtune(&project, arguments).env("NVTUNE_REPLAY", "recorded.json"));
        assert_ne!(ran.code, Some(0), "{arguments:?}: {} {}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("two.tune.json': belongs to another user"), "{arguments:?}: {}", ran.stderr);
        assert_eq!(project.read("nvtune.lock"), before, "{arguments:?}");
    }
}

#[test]
#[ignore = "long: in the full run"]
fn second_tune_of_a_project_comes_from_the_cache() {
    let project = Project::new(&["two.cu", "cached.cu", "plain.cu"]);
    project.write("recorded.json", CAPS_WIN);
    let folder = project.path("");
    let entry = |source: &str| {
        format!(
            r#"{{"directory": "{}", "file": "{source}", "command": "nvcc -O3 -arch=sm_90 -c {source} -o {source}.o"}}"#,
            folder.display()
        )
    };
    let entries = ["two.cu", "cached.cu", "plain.cu"].map(entry).join(",");
    project.write("compile_commands.json", &format!("[{entries}]"));
    let tune = || {
        let mut tune = nvtune(&project, &["tune", "--jobs", "2"]);
        succeed(tune.env("NVTUNE_REPLAY", "recorded.json"))
    };
    let ran = tune();
    assert!(ran.stderr.contains("[2/2] ") && ran.stderr.contains("2 sources in "), "{}", ran.stderr);
    let lock = project.read("nvtune.lock");
    assert_eq!(lock.matches(".cu: ").count() as u64, ran.stderr.matches(" points timed, ").count() as u64, "{lock}");
    assert!(!project.path("two.o").exists() && !project.path("two.tune.h").exists(), "nothing is built");
    std::fs::remove_file(project.path("nvtune.lock")).expect("removed");
    let again = tune();
    assert!(!again.stderr.contains(" points timed, ") && again.stderr.contains("; from the cache"), "{}", again.stderr);
    assert_eq!(project.read("nvtune.lock"), lock);
    let mut build = project.nvtune(&compile("two.cu", "two.o"));
    let ran = succeed(build.env("NVTUNE", "locked").env("NVTUNE_CACHE_SIZE", "0"));
    assert!(ran.stderr.contains("nvtune: first: block=128 regs=24 (1."), "{}", ran.stderr);
}

#[test]
#[ignore = "long: in the full run"]
fn report_of_a_locked_build_has_the_times_that_the_cache_knows() {
    let project = Project::new(&["two.cu"]);
    project.write("recorded.json", CAPS_WIN);
    let entry = format!(
        r#"[{{"directory": "{}", "file": "two.cu", "command": "nvcc -O3 -arch=sm_90 -c two.cu -o two.o"}}]"#,
        project.path("").display()
    );
    project.write("compile_commands.json", &entry);
    succeed(nvtune(&project, &["tune"]).env("NVTUNE_REPLAY", "recorded.json"));
    let report = |cache_size: &str| {
        let mut build = project.nvtune(&compile("two.cu", "two.o"));
        let ran = succeed(build.env("NVTUNE", "locked").env("NVTUNE_CACHE_SIZE", cache_size));
        assert!(ran.stderr.contains(", locked"), "{}", ran.stderr);
        succeed(&mut nvtune(&project, &["report", "two.cu"])).stdout
    };
    // Without the cache there is nothing to show but what is locked: no row of dashes.
    let alone = report("0");
    assert!(alone.contains("\n  winner    block=128 regs=24\n  baseline  block=") && !alone.contains(" - "), "{alone}");
    assert!(
        alone.contains("  a lock file has neither times nor scores; `nvtune tune --anew` times all again"),
        "{alone}"
    );
    let known = report("1G");
    let row = |mark: &str| known.lines().find(|line| line.ends_with(mark)).unwrap_or_else(|| panic!("{known}"));
    for mark in [" <- winner", " <- baseline"] {
        let time = row(mark).split_whitespace().next().unwrap_or_default();
        assert!(time.parse::<f64>().is_ok(), "{known}");
    }
    assert!(known.starts_with("first (two.cu, sm_90, ") && known.contains("): locked, "), "{known}");
}

#[test]
fn project_does_not_tune_a_debug_build() {
    let project = Project::new(&["two.cu"]);
    let folder = project.path("");
    let entry = format!(
        r#"[{{"directory": "{}", "file": "two.cu", "command": "nvcc -G -arch=sm_90 -c two.cu -o two.o"}}]"#,
        folder.display()
    );
    project.write("compile_commands.json", &entry);
    let refused = "two.cu: not tuned: -G compiles device code without optimisation";
    let ran = succeed(&mut nvtune(&project, &["tune"]));
    assert!(ran.stderr.contains(refused), "{}", ran.stderr);
    assert!(!project.path("nvtune.lock").exists() || !project.read("nvtune.lock").contains("two.cu"));
    let ran = succeed(&mut project.nvtune(&["-G", "-arch=sm_90", "-c", "two.cu", "-o", "two.o"]));
    assert!(ran.stderr.contains(refused), "{}", ran.stderr);
}

#[test]
fn project_without_marked_kernels_is_an_error_with_the_places_searched() {
    let project = Project::new(&["saxpy.cu"]);
    let call = |include: &str| {
        project.write("a.cu", &format!("#include {include}\n"));
        let entry = serde_json::json!([{
            "directory": project.path(""), "file": "a.cu", "arguments": ["nvcc", "-arch=sm_90", "-isystem", ".", "-c", "a.cu", "-o", "a.o"],
        }]);
        project.write("compile_commands.json", &entry.to_string());
        run(nvtune(&project, &["tune"]).env("NVTUNE_REPLAY", "none"))
    };
    let ran = call("<saxpy.cu>");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("compiles a marked kernel"), "{}", ran.stderr);
    let ran = call("\"saxpy.cu\"");
    assert!(!ran.stderr.contains("compiles a marked kernel"), "{}", ran.stderr);
}

#[test]
fn the_same_lock_gives_the_same_bytes_whatever_the_build() {
    let project = Project::new(&["two.cu"]);
    two(&project);
    let expected = project.bytes("two.o");
    succeed(&mut nvtune(&project, &["lock"]));
    let builds: u32 = if std::env::var_os("NVTUNE_TEST_FULL").is_some() { 100 } else { 4 };
    let one = |number: u32| {
        // A checkout of its own.
        let folder = project.path(&format!("checkout{number}"));
        std::fs::create_dir_all(folder.join("tmp")).expect("a folder");
        for name in ["two.cu", "nvtune.lock"] {
            std::fs::copy(project.path(name), folder.join(name)).expect("copied");
        }
        let mut arguments = reproducible("two.cu", "two.o");
        arguments.extend(["-t".to_owned(), (1 + number % 4).to_string()]);
        let mut build = project.nvtune(&arguments);
        let mode = ["locked", "static"][number as usize % 2];
        build.current_dir(&folder).env("TMPDIR", folder.join("tmp")).env("NVTUNE", mode);
        let ran = succeed(build.env("NVTUNE_CACHE_SIZE", if number.is_multiple_of(3) { "0" } else { "1G" }));
        assert_eq!(ran.stderr.matches(", locked)\n").count(), 2, "{}", ran.stderr);
        let object = std::fs::read(folder.join("two.o")).expect("an object");
        assert!(object == expected, "build {number} gives another object");
        let left = std::fs::read_dir(folder.join("tmp")).expect("it is there").count();
        assert_eq!(left, 0, "build {number} leaves files in TMPDIR");
    };
    let one = &one;
    std::thread::scope(|scope| {
        let spawn = |worker| scope.spawn(move || (worker..builds).step_by(2).for_each(one));
        let workers: Vec<_> = (0..2).map(spawn).collect();
        workers.into_iter().for_each(|worker| worker.join().expect("every build is the same"));
    });
}
