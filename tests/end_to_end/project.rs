//! What the end-to-end tests share: the real toolkit, a folder to build in, nvtune under the name of nvcc.

use crate::support::full::is_full;
use crate::support::record_schema::assert_records_in;
pub use crate::support::toolkit::nvcc;
use crate::support::toolkit::{Headers, set_headers};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};

/// Both kernels of `two.cu` are faster with their caps.
pub const CAPS_WIN: &str = r#"{
    "device": {"name": "NVIDIA H200", "compute_capability": 90, "driver": 13000, "sms": 132},
    "entries": [
        {"kernel": "_Z5firstiPKfPf", "label": "regs=24", "time_us": 10.0, "spread": 0.01},
        {"kernel": "_Z7boundediPKfPf", "label": "regs=32", "time_us": 10.0, "spread": 0.01},
        {"time_us": 15.0, "spread": 0.01}
    ]
}"#;

/// The arguments of a compile for sm_90. Without `-O`, which is for host code alone and costs a fifth of a compile.
pub fn compile(source: &str, output: &str) -> Vec<String> {
    ["-arch=sm_90", "-c", source, "-o", output].map(str::to_owned).into()
}

/// The same with temporary files of fixed names: otherwise two compiles differ in a few bytes.
pub fn reproducible(source: &str, output: &str) -> Vec<String> {
    let mut arguments = compile(source, output);
    arguments.push("-objtemp".to_owned());
    arguments
}

/// A folder of sources, with `bin/nvcc` a link to nvtune.
pub struct Project {
    folder: tempfile::TempDir,
    headers: Headers,
    /// By the bytes of objects, what cuobjdump prints of their code.
    listings: Mutex<BTreeMap<Vec<u8>, Arc<str>>>,
}

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Project {
    /// Copies `tests/end_to_end/sources/NAME` for each name into a new folder.
    pub fn new(sources: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("bin")).expect("a folder");
        symlink(env!("CARGO_BIN_EXE_nvtune"), folder.path().join("bin/nvcc")).expect("linked");
        for name in sources {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/sources").join(name);
            std::fs::copy(&from, folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        Self { folder, headers: Headers::Small, listings: Mutex::default() }
    }

    /// Builds with CUDA's own headers: for what the small ones lack, and where headers are what is asked about.
    pub fn with_cuda_headers(mut self) -> Self {
        self.headers = Headers::Cuda;
        self
    }

    /// Builds with CUDA's own headers in the full run: one test of each feature.
    pub fn with_cuda_headers_in_full_run(self) -> Self {
        if is_full() { self.with_cuda_headers() } else { self }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    /// Writes a shell script that can be run; returns its path.
    pub fn script(&self, name: &str, lines: &str) -> String {
        self.write(name, &format!("#!/bin/sh\n{lines}\n"));
        std::fs::set_permissions(self.path(name), PermissionsExt::from_mode(0o755)).expect("executable");
        self.path(name).display().to_string()
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Names of the files in the folder, sorted; `bin` is left out.
    pub fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("it is there");
        let names = entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name != "bin").collect();
        names.sort();
        names
    }

    /// nvtune, called as nvcc, without a GPU whatever the machine has.
    pub fn nvtune<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(self.path("bin/nvcc"));
        command.args(arguments).current_dir(self.folder.path()).env("NVTUNE_NVCC", nvcc());
        for variable in [
            "NVTUNE_REPLAY",
            "NVTUNE_STRATEGY",
            "NVTUNE_BUDGET",
            "NVTUNE_RUNNER",
            "NVTUNE_WAIT",
            "NVTUNE_CANDIDATES",
            "NVTUNE_SANITIZE",
            "NVTUNE_HEADER_DIR",
            "NVTUNE_HEADER_IN_DEPFILE",
            "NVTUNE_STRICT",
            "NVTUNE_FILES",
            "NVTUNE_LOCK",
            "NVTUNE_CACHE_SIZE",
            "CUDA_VISIBLE_DEVICES",
        ] {
            command.env_remove(variable);
        }
        command.env("NVTUNE", "static").env("NVTUNE_CACHE_DIR", self.path("bin/cache"));
        set_headers(&mut command, self.headers);
        command
    }

    /// The real nvcc in the same folder.
    pub fn plain<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(nvcc());
        command.args(arguments).current_dir(self.folder.path());
        set_headers(&mut command, self.headers);
        command
    }

    /// A tool of the toolkit.
    pub fn tool(&self, name: &str, arguments: &[&str]) -> String {
        let path = nvcc().with_file_name(name);
        let ran = run(Command::new(path).args(arguments).current_dir(self.folder.path()));
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
        ran.stdout
    }

    /// The code of an object, as cuobjdump prints it: in a second, so once for each object.
    pub fn listing(&self, object: &str) -> Arc<str> {
        let list = || self.tool("cuobjdump", &["-sass", object]).into();
        Arc::clone(self.listings.lock().expect("no panic").entry(self.bytes(object)).or_insert_with(list))
    }

    /// A tool of this machine.
    pub fn tool_of_host(&self, name: &str, arguments: &[&str]) -> String {
        succeed(Command::new(name).args(arguments).current_dir(self.folder.path())).stdout
    }

    /// Registers of each kernel of an object, by name, as cuobjdump reads them.
    pub fn registers(&self, object: &str) -> Vec<(String, u32)> {
        let text = self.tool("cuobjdump", &["-res-usage", object]);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let functions = lines.windows(2).filter_map(|pair| {
            let name = pair[0].strip_prefix("Function ")?.trim_end_matches(':');
            let registers = pair[1].strip_prefix("REG:")?.split_whitespace().next()?;
            Some((name.to_owned(), registers.parse().ok()?))
        });
        functions.collect()
    }

    /// The record of a source.
    pub fn record(&self, name: &str) -> serde_json::Value {
        serde_json::from_str(&self.read(name)).expect("the record is JSON")
    }
}

/// Every record that a test makes is one by its schema.
impl Drop for Project {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_records_in(self.folder.path());
        }
    }
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Ran {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    Ran {
        code: status.code(),
        stdout: String::from_utf8_lossy(&stdout).into_owned(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// Runs a command that must end well.
pub fn succeed(command: &mut Command) -> Ran {
    let ran = run(command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran
}
