//! nvtune's own command line: the man page, the report, the doctor, the shims.

use super::project::{Project, compile, nvcc, run, succeed};

fn nvtune() -> std::process::Command {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_nvtune"));
    command.env("NVTUNE_NVCC", nvcc()).env("NVTUNE", "static");
    command
}

#[test]
fn man_writes_every_page() {
    let folder = tempfile::tempdir().expect("a folder");
    succeed(nvtune().arg("man").arg(folder.path()));
    let mut written: Vec<(String, String)> = std::fs::read_dir(folder.path())
        .expect("readable")
        .map(|entry| entry.expect("readable").path())
        .map(|path| {
            (path.file_name().expect("a name").to_string_lossy().into(), std::fs::read_to_string(&path).expect("text"))
        })
        .collect();
    written.sort();
    let own = String::from_utf8(nvtune::cli::man_page().expect("made in memory")).expect("text");
    let mut expected: Vec<(String, String)> = nvtune::cli::pages().collect();
    expected.push(("nvtune.1".to_owned(), own));
    expected.sort();
    assert!(written == expected, "{:?}", written.iter().map(|(file, _)| file).collect::<Vec<_>>());
    assert_eq!(run(nvtune().arg("man").arg(folder.path().join("none"))).code, Some(1));
}

#[test]
fn groff_reads_every_page_without_a_warning() {
    let Ok(groff) = which::which("groff") else {
        eprintln!("no groff here: not tried");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    succeed(nvtune().arg("man").arg(folder.path()));
    for entry in std::fs::read_dir(folder.path()).expect("readable") {
        let path = entry.expect("readable").path();
        let ran = succeed(std::process::Command::new(&groff).args(["-man", "-Tutf8", "-z", "-ww"]).arg(&path));
        assert_eq!(ran.stderr, "", "{}", path.display());
    }
}

#[test]
fn usage_errors_end_with_2_and_help_with_0() {
    assert_eq!(run(nvtune().arg("reprot")).code, Some(2));
    assert_eq!(run(&mut nvtune()).code, Some(2));
    let help = succeed(nvtune().arg("--help"));
    for word in ["report", "doctor", "shims", "NVTUNE_STRATEGY", "posf", "ASP-DAC"] {
        assert!(help.stdout.contains(word), "{word}: {}", help.stdout);
    }
}

#[test]
fn closed_stdout_is_sigpipe_and_full_stdout_an_error() {
    let (reader, closed) = std::io::pipe().expect("a pipe");
    drop(reader);
    let ran = run(nvtune().arg("doctor").stdout(closed));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(128 + libc::SIGPIPE), ""));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let ran = run(nvtune().arg("doctor").stdout(full));
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.starts_with("nvtune fatal   : cannot write to standard output: No space left"),
        "{}",
        ran.stderr
    );
}

#[test]
fn report_of_a_record_without_its_winner_says_so() {
    let project = Project::new(&["saxpy.cu"]);
    succeed(&mut project.nvtune(&compile("saxpy.cu", "saxpy.o")));
    for key in ["winner", "baseline"] {
        let mut record = project.record("saxpy.tune.json");
        record["kernels"][0][key] = 192.into();
        project.write("damaged.json", &record.to_string());
        let ran = run(nvtune().arg("report").arg(project.path("damaged.json")));
        assert_eq!(ran.code, Some(1), "{key}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("is no record of nvtune: winner or baseline of saxpy is not in it"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn report_shows_the_decision() {
    let project = Project::new(&["saxpy.cu"]);
    succeed(&mut project.nvtune(&["-O3", "-arch=sm_90", "-c", "saxpy.cu", "-o", "saxpy.o"]));
    let report = succeed(nvtune().arg("report").arg(project.path("saxpy.tune.json")));
    assert!(report.stdout.starts_with("saxpy (saxpy.cu, sm_90, no GPU): "), "{}", report.stdout);
    assert!(report.stdout.contains("192 points"), "{}", report.stdout);
    assert!(report.stdout.contains("block=256"), "{}", report.stdout);
    let last = report.stdout.lines().last().unwrap_or_default();
    assert!(last.starts_with("T: ") && last.contains("; C: ") && last.contains("ASP-DAC 2013"), "{last}");
    // What the model promises of its choice is what the build said of it, to the digit.
    let nbody = "//@tune regs(auto) threads(n) block({64, 128, 256}) default(block = 256) args(n = 1 << 14, p = random[n], a = out[n]) launch(remap)\n\
        __global__ void nbody(int n, const float4 *p, float3 *a) {\n\
        const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;\n\
        const float4 own = p[i]; float3 sum = {0, 0, 0};\n\
        for (int j = 0; j < n; ++j) { const float4 q = p[j]; const float x = q.x - own.x, y = q.y - own.y, z = q.z - own.z;\n\
        const float r = rsqrtf(x * x + y * y + z * z + 0.01f), s = q.w * r * r * r; sum.x += x * s; sum.y += y * s; sum.z += z * s; }\n\
        a[i] = sum; }\n";
    project.write("nbody.cu", nbody);
    let said = succeed(&mut project.nvtune(&["-O3", "-arch=sm_90", "-c", "nbody.cu", "-o", "nbody.o"])).stderr;
    let gain = said
        .split_once(" (")
        .and_then(|(_, rest)| rest.split_once("x over the baseline, predicted, for n a multiple of "));
    let gain = gain.unwrap_or_else(|| panic!("{said}")).0;
    let report = succeed(nvtune().arg("report").arg(project.path("nbody.tune.json"))).stdout;
    assert!(report.contains(&format!("no GPU): predicted, {gain}x over the baseline\n")), "{report}");
    assert!(report.contains("    time us  predicted  promised  regs "), "{report}");
    let promised = |mark: &str| {
        let row = report.lines().find(|line| line.ends_with(mark)).unwrap_or_else(|| panic!("{report}"));
        row.split_whitespace().nth(2).expect("a column").to_owned()
    };
    assert_eq!((promised("<- winner"), promised("<- baseline")), (format!("{gain}x"), "1.00x".to_owned()), "{report}");
    project.write("none.json", "{}");
    let none = run(nvtune().arg("report").arg(project.path("none.json")));
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.contains("is no record of nvtune"), "{}", none.stderr);
}

#[test]
fn doctor_names_the_compiler() {
    let report = succeed(nvtune().arg("doctor"));
    assert!(report.stdout.contains(&format!("nvcc    {}", nvcc().display())), "{}", report.stdout);
    assert!(report.stdout.contains("toolkit "), "{}", report.stdout);
}

#[test]
fn doctor_asks_the_gpu_that_a_build_would_use() {
    let project = Project::new(&[]);
    let device = r#"{"name": "NVIDIA A100", "compute_capability": 80, "driver": 13000, "sms": 108}"#;
    project.write("recorded.json", &format!(r#"{{"device": {device}, "entries": []}}"#));
    let gpu = |name: &str, value: &std::path::Path| {
        let said = succeed(nvtune().arg("doctor").env(name, value)).stdout;
        said.lines().find(|line| line.starts_with("gpu ")).map(str::to_owned).unwrap_or_default()
    };
    assert_eq!(gpu("NVTUNE_REPLAY", &project.path("recorded.json")), "gpu     NVIDIA A100, sm_80, 108 multiprocessors");
    let runner = gpu("NVTUNE_RUNNER", "false".as_ref());
    assert!(runner.starts_with("gpu     none is used: the measuring process `false nvtune measure` died"), "{runner}");
    // A variable that is set to nothing is none.
    let nothing = gpu("NVTUNE_REPLAY", "".as_ref());
    assert!(!nothing.contains("died"), "{nothing}");
}

#[test]
fn doctor_says_how_to_mend_what_is_missing() {
    let project = Project::new(&[]);
    let none = "{\"start\": \"no-device\", \"entries\": []}";
    project.write("none.json", none);
    let doctor = |changes: &dyn Fn(&mut std::process::Command)| {
        let mut command = nvtune();
        command.arg("doctor").current_dir(project.path("")).env("NVTUNE_REPLAY", project.path("none.json"));
        command.env("NVTUNE_CACHE_DIR", project.path("cache")).env("NVTUNE_CACHE_SIZE", "1G");
        command.env("COLUMNS", "500").env_remove("NVTUNE_LOCK");
        changes(&mut command);
        run(&mut command)
    };
    let whole = doctor(&|_| {});
    assert_eq!(whole.code, Some(0), "{}", whole.stdout);
    assert!(
        whole.stdout.contains("\n        to time on another machine: export NVTUNE_RUNNER='ssh HOST'"),
        "{}",
        whole.stdout
    );
    assert!(
        whole.stdout.contains("\nlock    no nvtune.lock here or above\n        to pin winners"),
        "{}",
        whole.stdout
    );
    let cache = format!("\ncache   {}: 0 entries, ", project.path("cache").display());
    assert!(whole.stdout.contains(&cache), "{}", whole.stdout);
    project.write("cache", "a file");
    project.write("nvtune.lock", "{");
    for (name, value, said, remedy) in [
        (
            "NVTUNE_NVCC",
            "/none",
            "nvcc    NVTUNE_NVCC names '/none', which does not exist [N0001]",
            "mend: export NVTUNE_NVCC=",
        ),
        ("NVTUNE_STRATEGY", "best", "problem NVTUNE_STRATEGY", "mend: unset NVTUNE_STRATEGY"),
        ("NVTUNE_BUGDET", "1", "problem NVTUNE_BUGDET is no variable", "mend: unset NVTUNE_BUGDET"),
        ("COLUMNS", "500", "cannot be written", "export NVTUNE_CACHE_DIR to another folder"),
        ("COLUMNS", "500", "lock    '", "mend: restore '"),
    ] {
        let ran = doctor(&|command| {
            command.env(name, value);
        });
        assert_eq!(ran.code, Some(1), "{}", ran.stdout);
        let (_, rest) = ran.stdout.split_once(said).unwrap_or_else(|| panic!("{said}: {}", ran.stdout));
        let next = rest.lines().nth(1).unwrap_or_default();
        assert!(next.starts_with("        ") && next.contains(remedy), "{said}: {}", ran.stdout);
    }
}

#[test]
fn doctor_tries_the_runner_and_names_nvtune_on_path() {
    let project = Project::new(&[]);
    project.write(
        "recorded.json",
        r#"{"device": {"name": "NVIDIA A100", "compute_capability": 80, "driver": 13000, "sms": 108}, "entries": []}"#,
    );
    // The runner starts the nvtune that it finds on PATH.
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_nvtune"), project.path("bin/nvtune")).expect("linked");
    let system = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([project.path("bin")].into_iter().chain(std::env::split_paths(&system)));
    let mut command = nvtune();
    command.arg("doctor").env("PATH", path.expect("no colons")).env("NVTUNE_REPLAY", project.path("recorded.json"));
    let said = succeed(command.env("NVTUNE_RUNNER", "env A=1").env("COLUMNS", "500")).stdout;
    assert!(said.contains("\nrunner  `env A=1` answers\n"), "{said}");
    assert!(said.contains(&format!("\nPATH    nvcc is nvtune: {}\n", project.path("bin/nvcc").display())), "{said}");
}

#[test]
fn completions_are_made_for_every_shell() {
    for (shell, said) in [("bash", "complete -F _nvtune"), ("zsh", "#compdef nvtune"), ("fish", "complete -c nvtune")] {
        let ran = succeed(nvtune().args(["completions", shell]));
        assert!(ran.stdout.contains(said), "{shell}: {}", ran.stdout);
    }
    if which::which("bash").is_ok() {
        let script = succeed(nvtune().args(["completions", "bash"])).stdout;
        let try_it = format!(
            "{script}\nCOMP_WORDS=(nvtune rep); COMP_CWORD=1; _nvtune nvtune rep nvtune; echo \"${{COMPREPLY[@]}}\""
        );
        assert_eq!(succeed(std::process::Command::new("bash").args(["-c", &try_it])).stdout, "report\n");
    }
}

#[test]
fn help_comments_prints_the_language() {
    let text = succeed(nvtune().args(["help", "comments"]).env("COLUMNS", "80")).stdout;
    for part in ["THE TUNING COMMENT", "    //@tune threads(n) block(64:1024:32) regs(auto)", "  carveout  ", "GRAMMAR"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("](") && !text.contains("```"), "{text}");
    assert!(succeed(nvtune().args(["help", "report"])).stdout.contains("--html"));
}

#[test]
#[ignore = "long: in the full run"]
fn script_in_shims_never_calls_itself() {
    let project = Project::new(&["saxpy.cu"]);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_nvtune"), project.path("bin/nvtune")).expect("linked");
    let shims = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("shims");
    let own_bin = project.path("tools");
    std::fs::create_dir(&own_bin).expect("a folder");
    std::os::unix::fs::symlink(project.path("bin/nvtune"), own_bin.join("nvtune")).expect("linked");
    let path = |real: &[std::path::PathBuf]| {
        let system = ["/usr/local/bin", "/usr/bin", "/bin"].map(std::path::PathBuf::from);
        std::env::join_paths([shims.clone(), own_bin.clone()].iter().chain(real).chain(&system)).expect("no colons")
    };
    let call = |path: std::ffi::OsString| {
        let mut command = std::process::Command::new(shims.join("nvcc"));
        command.args(["-O3", "-arch=sm_90", "-c", "saxpy.cu", "-o", "saxpy.o"]).current_dir(project.path(""));
        for name in ["NVTUNE_NVCC", "CUDA_HOME", "CUDA_PATH"] {
            command.env_remove(name);
        }
        command.env("PATH", path).env("NVTUNE", "static");
        command
    };
    let bin = nvcc().parent().expect("it is in a folder").to_path_buf();
    let ran = succeed(&mut call(path(&[bin])));
    assert!(ran.stderr.starts_with("nvtune: saxpy: "), "{}", ran.stderr);
}

#[test]
#[ignore = "long: in the full run"]
fn shims_are_a_toolkit_with_nvtune_as_nvcc() {
    let project = Project::new(&["saxpy.cu"]);
    succeed(nvtune().arg("shims").arg(project.path("cuda")));
    // The folder stands for its toolkit: neither NVTUNE_NVCC nor PATH is needed to find the real one.
    let mut command = std::process::Command::new(project.path("cuda/bin/nvcc"));
    command.args(["-O3", "-arch=sm_90", "-c", "saxpy.cu", "-o", "saxpy.o"]).current_dir(project.path(""));
    let ran = succeed(command.env_remove("NVTUNE_NVCC").env("NVTUNE", "static"));
    assert!(ran.stderr.starts_with("nvtune: saxpy: "), "{}", ran.stderr);
    let again = run(nvtune().arg("shims").arg(project.path("cuda")));
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("is not empty"), "{}", again.stderr);
}

#[test]
fn arguments_of_nvcc_alone_are_a_call_of_nvcc() {
    let project = Project::new(&["saxpy.cu"]);
    let call = |words: &[&str]| {
        let mut command = project.nvtune::<&str>(&[]);
        let mut bare = std::process::Command::new(env!("CARGO_BIN_EXE_nvtune"));
        for (name, value) in command.env("NVTUNE", "static").get_envs() {
            match value {
                Some(value) => bare.env(name, value),
                None => bare.env_remove(name),
            };
        }
        bare.args(words).current_dir(project.path(""));
        bare
    };
    let arguments = compile("saxpy.cu", "saxpy.o");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let ran = succeed(&mut call(&arguments));
    assert!(ran.stderr.starts_with("nvtune: saxpy: "), "{}", ran.stderr);
    assert!(project.path("saxpy.o").exists());
    // What nvcc has to say of an option is nvcc's.
    let unknown = run(&mut call(&["--frobnicate", "saxpy.cu"]));
    assert!(unknown.stderr.contains("nvcc fatal   : Unknown option '--frobnicate'"), "{}", unknown.stderr);
    // Without nvcc it is said what these words are.
    let mut without = call(&arguments);
    for name in ["NVTUNE_NVCC", "CUDA_HOME", "CUDA_PATH"] {
        without.env_remove(name);
    }
    let ran = run(without.env("PATH", project.path("none")));
    if !["/usr/local/cuda/bin/nvcc", "/opt/cuda/bin/nvcc"].iter().any(|path| std::path::Path::new(path).exists()) {
        assert_eq!(ran.code, Some(1));
        assert_eq!(
            ran.stderr,
            "nvtune fatal   : these are arguments of nvcc, but no nvcc is found: put nvcc on PATH, or set NVTUNE_NVCC [N0001]\n"
        );
    }
    // nvtune's own commands and options stay its own.
    assert!(succeed(nvtune().arg("--version")).stdout.starts_with("nvtune "));
    assert!(succeed(nvtune().arg("-h")).stdout.contains("Usage: nvtune"));
}

#[test]
fn help_names_the_man_pages_and_fits_the_terminal() {
    for columns in [80, 60] {
        for arguments in
            [&["--help"][..], &["-h"], &["report", "--help"], &["lock", "--help"], &["cache", "trim", "--help"]]
        {
            let help = succeed(nvtune().args(arguments).env("COLUMNS", columns.to_string())).stdout;
            let long = help.lines().find(|line| line.chars().count() > columns && line.trim().contains(' '));
            assert_eq!(long, None, "{arguments:?} in {columns} columns");
        }
    }
    let help = succeed(nvtune().arg("--help").env("COLUMNS", "80")).stdout;
    for page in ["nvtune-comments(7)", "nvtune-results(7)", "nvtune man DIR"] {
        assert!(help.contains(page), "{help}");
    }
    // A word that is broken is in no line as a whole.
    for variable in ["NVTUNE_HEADER_IN_DEPFILE", "compute-sanitizer's", "$XDG_CACHE_HOME/nvtune"] {
        assert!(help.contains(variable), "{help}");
    }
}

#[test]
fn man_page_refers_to_pages_that_exist_alone() {
    let page = String::from_utf8(nvtune::cli::man_page().expect("made in memory")).expect("text");
    let text = page.replace("\\-", "-").replace("\\fB", "").replace("\\fR", "");
    let words = text.split(|c: char| c.is_whitespace() || c == ',');
    let named = |word: &&str| word.starts_with("nvtune") && word.trim_end_matches([';', '.']).ends_with(')');
    let pages: Vec<&str> = words.filter(named).map(|word| word.trim_end_matches([';', '.'])).collect();
    assert!(pages.contains(&"nvtune-comments(7)") && pages.contains(&"nvtune-results(7)"), "{pages:?}");
    for page in pages {
        assert!(
            ["nvtune(1)", "nvtune-comments(7)", "nvtune-recipes(7)", "nvtune-results(7)"].contains(&page),
            "{page}"
        );
    }
    for command in ["nvtune report", "nvtune cache trim", "--compile-commands"] {
        assert!(text.contains(command), "{command}: {text}");
    }
}

#[test]
fn report_finds_the_records_of_folders_sources_and_objects() {
    let project = Project::new(&["saxpy.cu"]);
    project.write("plain.cu", "__global__ void k() {}\n");
    project.write("other.cu", &project.read("saxpy.cu"));
    std::fs::create_dir(project.path("out")).expect("a folder");
    std::fs::create_dir(project.path("empty")).expect("a folder");
    succeed(&mut project.nvtune(&compile("saxpy.cu", "out/saxpy.o")));
    let report = |place: &str| run(nvtune().arg("report").arg(place).current_dir(project.path("")));
    let of_record = succeed(nvtune().arg("report").arg(project.path("out/saxpy.tune.json"))).stdout;
    for place in [".", "out", "saxpy.cu", "out/saxpy.o", "out/saxpy.tune.h"] {
        let ran = report(place);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), of_record.as_str()), "{place}: {}", ran.stderr);
    }
    for (place, said) in [
        (
            "empty",
            "'empty' has no records (STEM.tune.json): build with nvtune first, or name the folder of the objects",
        ),
        (
            "other.cu",
            "'other.cu' has no record: build it with nvtune, then name other.tune.json or the folder that it is in",
        ),
        (
            "plain.cu",
            "'plain.cu' has no record (it has no tuning comment): build it with nvtune, then name plain.tune.json or the folder that it is in",
        ),
        ("none.cu", "'none.cu' is not there; a build writes a record, STEM.tune.json, next to its object"),
    ] {
        let ran = report(place);
        assert_eq!((ran.code, ran.stderr), (Some(1), format!("nvtune fatal   : {said} [N0219]\n")), "{place}");
    }
    // The lock takes the same places.
    let lock = |place: &str| run(nvtune().args(["lock", place]).current_dir(project.path("")));
    assert_eq!(lock("saxpy.cu").code, Some(0), "{}", lock("saxpy.cu").stderr);
    assert!(lock("empty").stderr.contains("'empty' has no records"), "{}", lock("empty").stderr);
}

#[test]
fn report_breaks_lines_between_words() {
    let project = Project::new(&["saxpy.cu"]);
    succeed(&mut project.nvtune(&compile("saxpy.cu", "saxpy.o")));
    let report = |columns: &str| {
        succeed(nvtune().arg("report").arg(project.path("saxpy.tune.json")).env("COLUMNS", columns)).stdout
    };
    let whole = succeed(nvtune().arg("report").arg(project.path("saxpy.tune.json")).env_remove("COLUMNS")).stdout;
    for columns in [80, 50] {
        let narrow = report(&columns.to_string());
        assert!(narrow.lines().all(|line| line.chars().count() <= columns), "{narrow}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&narrow), words(&whole));
    }
}

#[test]
fn cache_stats_are_in_units_that_a_person_reads() {
    let project = Project::new(&["saxpy.cu"]);
    succeed(&mut project.nvtune(&compile("saxpy.cu", "saxpy.o")));
    let stats = succeed(
        nvtune()
            .args(["cache", "stats"])
            .env("NVTUNE_CACHE_DIR", project.path("bin/cache"))
            .env("NVTUNE_CACHE_SIZE", "1G"),
    );
    let size = stats.stdout.lines().find(|line| line.starts_with("size ")).unwrap_or_default();
    assert!(size.ends_with("KiB of 1.0 GiB"), "{}", stats.stdout);
}
