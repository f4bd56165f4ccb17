//! Bytes as a command line of nvcc, a word a line -> what it compiles.
//!
//! Invariant: no panic, never more memory than 64 times the arguments. Words that name option files are left out.

use super::memory;
use nvtune::nvcc::Invocation;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

pub fn run(bytes: &[u8]) {
    let mut words: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
    words.retain(|word| !word.windows(3).any(|part| part == b"opt"));
    let is_file =
        |word: &&[u8]| word.starts_with(b"@") || word.starts_with(b"-optf") || word.starts_with(b"--options-f");
    words.retain(|word| !is_file(word));
    let words: Vec<OsString> = words.into_iter().map(|word| OsStr::from_bytes(word).to_owned()).collect();
    // An argument is a pointer and a string with its end, also where it is empty.
    let size = words.iter().map(|word| size_of::<usize>() + word.len() + 1).sum();
    memory::bounded(size, || read(&words));
}

fn read(words: &[OsString]) {
    let (first, rest) = words.split_first().map_or((None, words), |(first, rest)| (Some(first), rest));
    let Ok(invocation) = Invocation::new(rest, first.map(OsString::as_os_str), None) else { return };
    let _ = invocation.object_folder();
    for source in &invocation.sources {
        let _ = invocation.made_of(source);
    }
}
