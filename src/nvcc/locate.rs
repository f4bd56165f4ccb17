//! Where the real nvcc is: environment, launcher argument, PATH, then the usual places; never
//! nvtune itself.

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The compiler that nvtune stands in for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RealNvcc {
    /// An absolute path: nvcc finds its toolkit from the name it is called by.
    pub path: PathBuf,
    /// The program that the user has start it where nvtune has nothing to do, such as ccache.
    pub launcher: Option<PathBuf>,
}

/// No nvcc but nvtune's own links could be found.
#[derive(Debug, Error)]
pub enum NotFound {
    #[error("no nvcc found: set NVTUNE_NVCC to the path of NVIDIA's nvcc, or put its folder on PATH")]
    Nowhere,
    #[error("NVTUNE_NVCC names '{}', which {problem}", path.display())]
    Named { path: PathBuf, problem: &'static str },
    #[error("'{}' {problem}: correct the path, or set NVTUNE_NVCC to that of NVIDIA's nvcc", path.display())]
    Launched { path: PathBuf, problem: &'static str },
    #[error("nvtune and '{}' start each other: set NVTUNE_NVCC to the path of NVIDIA's nvcc", path.display())]
    Circle { path: PathBuf },
}

/// The link to the real nvcc that `nvtune shims` puts next to its own.
pub const REAL_NVCC: &str = "nvtune-real-nvcc";

/// Names the environment variable with the wrappers of nvcc that outer calls of nvtune have
/// started. A wrapper that searches PATH for the next nvcc, as a link to ccache does, may start
/// nvtune again.
pub const STARTED_WRAPPERS: &str = "NVTUNE_STARTED_WRAPPERS";

/// What is wrong with a program that is nvtune.
const IS_NVTUNE: &str = "is nvtune itself";

/// Where nvcc is installed when nothing else tells.
const USUAL_PLACES: [&str; 2] = ["/usr/local/cuda", "/opt/cuda"];

impl RealNvcc {
    /// Looks for nvcc: `NVTUNE_NVCC`; else `name`, what nvtune was called by or the compiler in
    /// `nvtune /path/nvcc ...`, where it is a path; else the first of that name on PATH,
    /// then the first `nvcc`; else `CUDA_HOME`, `CUDA_PATH` and the usual places.
    ///
    /// Where one of these is nvtune in a folder that `nvtune shims` made, the nvcc that the
    /// folder stands for is meant.
    pub fn find(name: Option<&OsStr>, environment: impl Fn(&str) -> Option<OsString>) -> Result<Self, NotFound> {
        let own = OwnIdentity::new();
        let set = |name: &str| environment(name).filter(|value| !value.is_empty());
        let passed: Vec<PathBuf> =
            set(STARTED_WRAPPERS).iter().flat_map(|paths| std::env::split_paths(paths)).collect();
        if let Some(named) = set("NVTUNE_NVCC") {
            let path = PathBuf::from(named);
            if is_one_of(&path, &passed) {
                return Err(NotFound::Circle { path });
            }
            return own.judge(&path).map_err(|problem| NotFound::Named { path, problem });
        }
        let called = name.filter(|name| name.as_encoded_bytes().contains(&b'/')).map(PathBuf::from);
        // Of several releases on PATH the one that is named.
        let names = name.and_then(|name| Path::new(name).file_name()).into_iter().chain([OsStr::new("nvcc")]);
        // An empty entry is the working folder.
        let path = set("PATH").unwrap_or_default();
        let on_path = names.flat_map(|name| programs(name, &path));
        let homes = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(set).map(PathBuf::from);
        let usual = USUAL_PLACES.iter().map(PathBuf::from);
        called
            .into_iter()
            .chain(on_path)
            .chain(homes.chain(usual).map(|home| home.join("bin/nvcc")))
            .filter_map(|path| own.judge(&path).or_else(|_| own.judge(&path.with_file_name(REAL_NVCC))).ok())
            .find(|found| !is_one_of(&found.path, &passed))
            .ok_or_else(|| match passed.into_iter().next() {
                Some(path) => NotFound::Circle { path },
                None => NotFound::Nowhere,
            })
    }

    /// Checks that the compiler in `nvtune /path/nvcc ...` is a program, where the call depends on
    /// it. It may be nvtune, which stands for the nvcc on PATH.
    pub fn check_launched(name: &OsStr, environment: impl Fn(&str) -> Option<OsString>) -> Result<(), NotFound> {
        let is_named = environment("NVTUNE_NVCC").is_some_and(|value| !value.is_empty());
        if is_named || !name.as_encoded_bytes().contains(&b'/') {
            return Ok(());
        }
        match OwnIdentity::new().judge(Path::new(name)) {
            Err(problem) if problem != IS_NVTUNE => Err(NotFound::Launched { path: name.into(), problem }),
            _ => Ok(()),
        }
    }

    /// Returns the value of [`STARTED_WRAPPERS`] for the program to start; `None` for a
    /// toolkit's own nvcc, which starts no other.
    pub fn started_wrappers(&self, before: Option<OsString>) -> Option<OsString> {
        let whole = self.path.canonicalize().unwrap_or_default();
        let is_own = [&self.path, &whole].iter().any(|path| path.with_file_name("nvcc.profile").is_file());
        let before = before.unwrap_or_default();
        let paths = std::env::split_paths(&before).filter(|path| !path.as_os_str().is_empty());
        // A path with a colon in it cannot be passed on.
        (!is_own).then(|| std::env::join_paths(paths.chain([self.path.clone()])).ok()).flatten()
    }

    /// What it says of its release: `13.0, V13.0.88`.
    pub fn release(&self) -> Option<String> {
        let output = std::process::Command::new(&self.path).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().find(|line| line.contains("release"))?;
        Some(line.rsplit_once("release ")?.1.to_owned())
    }
}

/// Returns the program that a word starts: a path, or the first of that name in the folders of
/// PATH.
pub fn on_path(word: &OsStr) -> Option<PathBuf> {
    which::which_in(word, std::env::var_os("PATH"), WORKING_FOLDER).ok()
}

/// Tells whether a program is nvtune, or a script that starts it.
pub fn is_nvtune(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| OwnIdentity::new().is_own(path, &metadata))
}

/// Returns the executable files of this name in the folders of `path`, in order.
fn programs(name: &OsStr, path: &OsStr) -> impl Iterator<Item = PathBuf> {
    which::which_in_all(name.to_owned(), Some(path), WORKING_FOLDER).into_iter().flatten()
}

/// The folder that relative entries of PATH belong to.
const WORKING_FOLDER: &str = ".";

/// Tells whether a program is one of these files.
fn is_one_of(path: &Path, passed: &[PathBuf]) -> bool {
    let file = |path: &Path| path.metadata().ok().map(|data| (data.dev(), data.ino()));
    let own = file(path);
    own.is_some() && passed.iter().any(|passed| file(passed) == own)
}

/// What tells nvtune from the real nvcc: the file's identity; for a copy, its bytes; for a
/// script, that it starts nvtune.
struct OwnIdentity {
    metadata: Option<Metadata>,
}

impl OwnIdentity {
    fn new() -> Self {
        Self { metadata: std::fs::metadata(OWN_PROGRAM).ok() }
    }

    fn judge(&self, path: &Path) -> Result<RealNvcc, &'static str> {
        let Ok(metadata) = path.metadata() else { return Err("does not exist") };
        if !metadata.is_file() {
            return Err("is not a file");
        }
        if metadata.mode() & 0o111 == 0 {
            return Err("is not executable");
        }
        if self.is_own(path, &metadata) {
            return Err(IS_NVTUNE);
        }
        // The link of `nvtune shims` names the real place, which nvcc must be called by.
        let linked = path.file_name().filter(|name| *name == REAL_NVCC).and_then(|_| path.read_link().ok());
        let path = std::path::absolute(linked.as_deref().unwrap_or(path)).map_err(|_| "has no absolute path")?;
        Ok(RealNvcc { path, launcher: None })
    }

    fn is_own(&self, path: &Path, metadata: &Metadata) -> bool {
        let Some(own) = &self.metadata else { return false };
        if (own.dev(), own.ino()) == (metadata.dev(), metadata.ino()) {
            return true;
        }
        if metadata.len() <= LONGEST_SCRIPT && starts_nvtune(path) {
            return true;
        }
        // A copy has the same length; only then are the bytes worth reading.
        own.len() == metadata.len()
            && matches!((std::fs::read(OWN_PROGRAM), std::fs::read(path)), (Ok(a), Ok(b)) if a == b)
    }
}

/// Whether this is a script that starts nvtune (`shims/nvcc`, or a user's own): it is passed over.
/// One that is not seen to be is noticed when it calls nvtune again ([`STARTED_WRAPPERS`]).
fn starts_nvtune(path: &Path) -> bool {
    let mut start = Vec::with_capacity(SCRIPT_START as usize);
    let read = std::fs::File::open(path).and_then(|file| file.take(SCRIPT_START).read_to_end(&mut start));
    read.is_ok() && start.starts_with(b"#!") && String::from_utf8_lossy(&start).lines().any(names_nvtune)
}

/// Whether a line of a script has nvtune as the last part of a path, outside of a comment. A folder
/// that has nvtune in its name says nothing of what is started.
fn names_nvtune(line: &str) -> bool {
    let goes_on = |byte: Option<&u8>, marks: &[u8]| {
        byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || marks.contains(byte))
    };
    let code = if line.trim_start().starts_with('#') { "" } else { line.split(" #").next().unwrap_or_default() };
    let bytes = code.as_bytes();
    code.match_indices("nvtune").any(|(at, name)| {
        let before = at.checked_sub(1).and_then(|before| bytes.get(before));
        let end = at + name.len();
        let path = code[..end].rsplit([' ', '\t', '"', '\'', '=', ':']).next().unwrap_or_default();
        !goes_on(before, b".") && !goes_on(bytes.get(end), b"-./:") && !Path::new(path).is_dir()
    })
}

/// The program that this process runs, however it was called.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// What is longer is no script, and need not be opened.
const LONGEST_SCRIPT: u64 = 1 << 16;

/// How much of a script is looked at.
const SCRIPT_START: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn tool(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::create_dir_all(folder).expect("a folder");
        std::fs::write(&path, "#!/bin/sh\n").expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
        path
    }

    #[test]
    fn the_first_nvcc_that_is_not_nvtune_is_found() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let own = std::env::current_exe().expect("the test knows its path");
        let (links, copies, real) = (folder.path().join("l"), folder.path().join("c"), folder.path().join("r"));
        std::fs::create_dir_all(&links).expect("a folder");
        std::fs::create_dir_all(&copies).expect("a folder");
        symlink(&own, links.join("nvcc")).expect("linked");
        std::fs::copy(&own, copies.join("nvcc")).expect("copied");
        let nvcc = tool(&real, "nvcc");
        let path = std::env::join_paths([&links, &copies, &real]).expect("no colons");
        let found = RealNvcc::find(None, |name| (name == "PATH").then(|| path.clone()));
        assert_eq!(found.expect("the third entry is real").path, nvcc);
    }

    #[test]
    fn script_is_nvtune_if_it_starts_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (wrapper, checkout) = (tool(folder.path(), "nvcc"), folder.path().join("nvtune"));
        std::fs::create_dir(&checkout).expect("a folder");
        for (line, expected) in [
            ("exec nvtune nvcc \"$@\"", true),
            ("exec /opt/tools/nvtune \"$@\"", true),
            ("'/opt/nvtune/bin/nvtune' \"$@\"", true),
            ("${TUNER:-nvtune} nvcc \"$@\"; exit $?", true),
            ("# nvtune finds this one\nexec /opt/cuda/bin/nvcc \"$@\"", false),
            ("echo \"$@\" >>/data/nvtune-trial/log; exec /opt/cuda/bin/nvcc \"$@\"", false),
            ("cd /home/me/nvtune/build && exec /opt/cuda/bin/nvcc \"$@\"", false),
            ("exec /opt/cuda/bin/nvcc \"$@\" 2>/var/log/old.nvtune", false),
            ("exec /opt/cuda/bin/nvcc \"$@\" # not nvtune", false),
            ("PATH=/opt/nvtune:$PATH exec /opt/cuda/bin/nvcc \"$@\"", false),
            (&*format!("cd {} && exec /opt/cuda/bin/nvcc \"$@\"", checkout.display()), false),
            ("exec /opt/cuda/bin/nvcc \"$@\"", false),
        ] {
            std::fs::write(&wrapper, format!("#!/bin/sh\n{line}\n")).expect("written");
            assert_eq!(is_nvtune(&wrapper), expected, "{line}");
        }
    }

    #[test]
    fn path_entry_without_executable_nvcc_is_passed_over() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [empty, plain, real] = ["e", "p", "r"].map(|name| folder.path().join(name));
        std::fs::create_dir_all(empty.join("nvcc")).expect("a folder");
        std::fs::create_dir_all(&plain).expect("a folder");
        std::fs::write(plain.join("nvcc"), "no program").expect("written");
        let (nvcc, release) = (tool(&real, "nvcc"), tool(&real, "nvcc-13"));
        let path = std::env::join_paths([&folder.path().join("none"), &empty, &plain, &real]).expect("no colons");
        let find = |name: &str| RealNvcc::find(Some(name.as_ref()), |name| (name == "PATH").then(|| path.clone()));
        assert_eq!(find("nvcc").expect("the last entry has one").path, nvcc);
        assert_eq!(find("nvcc-13").expect("the last entry has one").path, release);
        assert_eq!(find("nvcc-12").expect("else the first nvcc").path, nvcc);
    }

    #[test]
    fn what_came_back_to_nvtune_is_passed_over() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (wrapper, nvcc) = (tool(&folder.path().join("w"), "nvcc"), tool(&folder.path().join("r"), "nvcc"));
        std::fs::write(nvcc.with_file_name("nvcc.profile"), "").expect("written");
        let path = std::env::join_paths([folder.path().join("w"), folder.path().join("r")]).expect("no colons");
        let find = |passed: Option<OsString>| {
            RealNvcc::find(None, |name| match name {
                "PATH" => Some(path.clone()),
                STARTED_WRAPPERS => passed.clone(),
                _ => None,
            })
        };
        let first = find(None).expect("the first entry");
        assert_eq!(first.path, wrapper);
        let passed = first.started_wrappers(None);
        let second = find(passed.clone()).expect("the second entry");
        assert_eq!((&second.path, second.started_wrappers(passed.clone())), (&nvcc, None));
        std::fs::remove_file(&nvcc).expect("removed");
        let said = find(passed).expect_err("there is no other").to_string();
        assert_eq!(
            said,
            format!(
                "nvtune and '{}' start each other: set NVTUNE_NVCC to the path of NVIDIA's nvcc",
                wrapper.display()
            )
        );
    }

    #[test]
    fn what_is_named_is_used_or_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let nvcc = tool(folder.path(), "nvcc");
        let named = |value: &Path| {
            let value = value.as_os_str().to_owned();
            RealNvcc::find(None, move |name| (name == "NVTUNE_NVCC").then(|| value.clone()))
        };
        assert_eq!(named(&nvcc).expect("it is there").path, nvcc);
        let own = std::env::current_exe().expect("the test knows its path");
        assert!(named(&own).expect_err("it is nvtune").to_string().ends_with("is nvtune itself"));
        let missing = folder.path().join("none");
        assert!(named(&missing).expect_err("it is missing").to_string().ends_with("does not exist"));
        let launcher = RealNvcc::find(Some(nvcc.as_os_str()), |_| None);
        assert_eq!(launcher.expect("it is there").path, nvcc);
    }
}
