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
