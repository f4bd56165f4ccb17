//! A folder in which one call runs, and all that can be seen of it afterwards.
//!
//! Two calls in the same sandbox see the same paths, the same environment and the same files, so what differs afterwards is the
//! compiler's doing. Process ids in names of temporary files and times of steps are the only things put aside.

pub use crate::support::toolkit::nvcc;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Option that puts the small stand-ins for CUDA's headers before the real ones: nvcc's compilers read a fifth as much.
pub const SMALL_HEADERS: &str = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/tests/support/mini");

/// Folders for a call: `work`, where it runs, and `tmp`, its TMPDIR; `bin/nvcc` is nvtune.
pub struct Sandbox {
    folder: tempfile::TempDir,
    fixture: PathBuf,
}

/// All that a call leaves to be seen.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    /// Every file below `work` and `tmp` with its permissions and contents.
    pub files: BTreeMap<String, (u32, Vec<u8>)>,
}

/// One call.
#[derive(Clone, Debug, Default)]
pub struct Call {
    pub arguments: Vec<OsString>,
    pub environment: Vec<(String, String)>,
    /// A file of the fixture that is its standard input.
    pub stdin: Option<String>,
}

impl Sandbox {
    /// `fixture` is a folder whose contents each call finds in its working folder.
    pub fn new(fixture: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("sandbox").tempdir().expect("a folder");
        fs::create_dir(folder.path().join("bin")).expect("a folder");
        symlink(env!("CARGO_BIN_EXE_nvtune"), folder.path().join("bin/nvcc")).expect("linked");
        Self { folder, fixture: fixture.to_path_buf() }
    }

    /// The folder that calls run in.
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub fn plain(&self, call: &Call) -> Seen {
        self.see(call, &mut Command::new(nvcc()))
    }

    pub fn nvtune(&self, call: &Call) -> Seen {
        let mut command = Command::new(self.folder.path().join("bin/nvcc"));
        self.see(call, command.env("NVTUNE_NVCC", nvcc()))
    }

    fn see(&self, call: &Call, command: &mut Command) -> Seen {
        let (work, temporary) = (self.folder.path().join("work"), self.folder.path().join("tmp"));
        for folder in [&work, &temporary] {
            if folder.exists() {
                fs::remove_dir_all(folder).expect("removed");
            }
            fs::create_dir(folder).expect("a folder");
        }
        copy(&self.fixture, &work);
        let stdin =
            call.stdin.as_ref().map_or(Stdio::null(), |name| fs::File::open(work.join(name)).expect(name).into());
        for name in ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "MAKEFLAGS", "NVTUNE"] {
            command.env_remove(name);
        }
        command.args(&call.arguments).current_dir(&work).env("TMPDIR", &temporary).stdin(stdin);
        command.envs(call.environment.iter().map(|(name, value)| (name, value)));
        let output = command.output().expect("it starts");
        let mut files = BTreeMap::new();
        for folder in ["work", "tmp"] {
            list(self.folder.path(), Path::new(folder), &mut files);
        }
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&settled(bytes)).into_owned();
        Seen { code: output.status.code(), stdout: text(output.stdout), stderr: text(timeless(output.stderr)), files }
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("the fixture").map(|entry| entry.expect("readable")) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            fs::create_dir(&target).expect("a folder");
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("copied");
        }
    }
}

fn list(root: &Path, folder: &Path, files: &mut BTreeMap<String, (u32, Vec<u8>)>) {
    for entry in fs::read_dir(root.join(folder)).expect("readable").map(|entry| entry.expect("readable")) {
        let name = folder.join(entry.file_name());
        let path = entry.path();
        let data = fs::symlink_metadata(&path).expect("it is there");
        let mut shown =
            String::from_utf8_lossy(&settled(name.to_string_lossy().into_owned().into_bytes())).into_owned();
        // cicc leaves this one behind where it fails, with a name of chance: `out.o-4a8ce1..lgenfe.bc`.
        if shown.ends_with("..lgenfe.bc") {
            shown.truncate(shown.rfind('-').unwrap_or(shown.len()));
        }
        if data.is_dir() {
            files.insert(shown, (data.mode(), Vec::new()));
            list(root, &name, files);
        } else {
            // A table of times, or a trace: that it is there must do.
            let timed = path.extension().is_some_and(|extension| extension == "csv" || extension == "json");
            let bytes = if timed { Vec::new() } else { settled(fs::read(&path).unwrap_or_default()) };
            for (section, contents) in sections(&bytes) {
                files.insert(format!("{shown} {section}"), (data.mode(), contents));
            }
            files.insert(shown, (data.mode(), bytes));
        }
    }
}

/// The sections of an object file, each by itself, so that it shows which of them differs.
pub fn sections(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    use object::{Object, ObjectSection};
    let Ok(file) = object::File::parse(bytes) else { return Vec::new() };
    let section = |section: object::Section<'_, '_>| {
        (section.name().unwrap_or_default().to_owned(), section.data().unwrap_or_default().to_vec())
    };
    file.sections().map(section).collect()
}

/// nvcc names its temporary files after its process, `tmpxft_0000abcd_00000000-6_a.ptx`, and those that keep a step's output
/// under `-t` after a number of chance, `tmpxft_0000abcd_00000000-6_7a31_stdout`.
pub fn settled(mut bytes: Vec<u8>) -> Vec<u8> {
    const NAME: &[u8] = b"tmpxft_";
    let mut from = 0;
    while let Some(at) = memchr::memmem::find(&bytes[from..], NAME) {
        from += at + NAME.len();
        for byte in bytes[from..].iter_mut().take_while(|byte| byte.is_ascii_hexdigit()) {
            *byte = b'0';
        }
        let end =
            bytes[from..].iter().position(|byte| b" \n\"".contains(byte)).map_or(bytes.len(), |length| from + length);
        let chance = [&b"_stdout"[..], b"_stderr"].iter().find_map(|suffix| bytes[from..end].strip_suffix(*suffix));
        if let Some(start) = chance.and_then(|name| memchr::memrchr(b'_', name)) {
            bytes.drain(from + start + 1..end - b"_stdout".len());
        }
    }
    bytes
}

/// ptxas tells how long it took.
fn timeless(bytes: Vec<u8>) -> Vec<u8> {
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.split_inclusive('\n').map(|line| match line.split_once("Compile time = ") {
        Some((head, tail)) => format!("{head}Compile time{}", &tail[tail.find(" ms").unwrap_or(0)..]),
        None => line.to_owned(),
    });
    lines.collect::<String>().into_bytes()
}
