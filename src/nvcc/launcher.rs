//! The words behind `nvtune` -> the nvcc that they start, where they start one: `nvcc -c a.cu`,
//! `ccache nvcc-13 -c a.cu`, `./wrapper -c a.cu`.

use super::locate::on_path;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

/// A call of nvcc as somebody else's launcher has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchedCall<'a> {
    /// What starts nvcc: `ccache`.
    pub launcher: Option<&'a OsStr>,
    /// A path, or a name to be found on PATH.
    pub nvcc: &'a OsStr,
    pub arguments: &'a [OsString],
}

/// Whether a program is called as nvcc is, one of several releases too: `nvcc-13`, `nvcc.real`.
pub fn is_nvcc_name(program: &OsStr) -> bool {
    Path::new(program).file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"nvcc"))
}

/// The call of nvcc that these words are; `None` where they are none.
pub fn launched(words: &[OsString]) -> Option<LaunchedCall<'_>> {
    let (first, rest) = words.split_first()?;
    let direct = LaunchedCall { launcher: None, nvcc: first, arguments: rest };
    if is_nvcc_name(first) {
        return Some(direct);
    }
    match rest.split_first() {
        Some((nvcc, arguments)) if is_nvcc_name(nvcc) => Some(LaunchedCall { launcher: Some(first), nvcc, arguments }),
        _ => says_it_is_nvcc(first).then_some(direct),
    }
}

/// Options of nvtune's own command line, which nvcc has too.
const SHARED_OPTIONS: [&str; 4] = ["-h", "--help", "-V", "--version"];

/// Extensions of files that nvcc compiles or links (nvcc's manual, "Supported Input File
/// Suffixes").
const INPUT_EXTENSIONS: [&str; 14] =
    ["cu", "c", "cc", "cxx", "cpp", "ptx", "cubin", "fatbin", "o", "obj", "a", "lib", "res", "so"];

/// Tells whether words are arguments of nvcc without its name, as those of `make NVCC=nvtune`:
/// `-c a.cu -o a.o`, `a.o b.o`.
pub fn are_nvcc_arguments(words: &[OsString]) -> bool {
    let Some(first) = words.first() else { return false };
    let extension = Path::new(first).extension();
    match first.as_encoded_bytes().starts_with(b"-") {
        true => !SHARED_OPTIONS.iter().any(|option| first == option),
        false => INPUT_EXTENSIONS.iter().any(|known| extension == Some(OsStr::new(known))),
    }
}

/// Asks a program, such as a script with a name of its own, what it is.
fn says_it_is_nvcc(program: &OsStr) -> bool {
    if program.as_encoded_bytes().starts_with(b"-") {
        return false;
    }
    let Some(path) = on_path(program) else { return false };
    let asked = Command::new(path).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    asked.is_ok_and(|said| memchr::memmem::find(&said.stdout, b"Cuda compiler driver").is_some())
}

#[cfg(test)]
mod tests {
    use super::are_nvcc_arguments;
    use std::ffi::OsString;

    #[test]
    fn arguments_of_nvcc_begin_with_an_option_or_an_input_file() {
        for (line, expected) in [
            ("-c k.cu -o k.o", true),
            ("k.cu -o k", true),
            ("-O3 -arch=sm_90 -dlink a.o b.o", true),
            ("build/a.o -o app", true),
            ("-o nvcc_test k.cu", true),
            ("--dryrun k.cu --help", true),
            ("--help", false),
            ("-V", false),
            ("reprot k.cu", false),
            ("k.tune.json", false),
            ("", false),
        ] {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            assert_eq!(are_nvcc_arguments(&words), expected, "{line}");
        }
    }
}
