//! nvtune gives its process to another program, which must not see that nvtune was there.

use super::broken_pipes::{ignore_broken_pipes, restore_broken_pipes};
use super::signals::adopt_orphans;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// Errors of `execv` that are for a moment: the system is short of memory or processes.
const PASSING: [i32; 4] = [libc::EAGAIN, libc::ENOMEM, libc::EINTR, libc::EMFILE];

/// How often `execv` is tried, and how long to wait in between.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// Becomes `program`, called with `arguments`; `argv[0]` is its path. Comes back only where that
/// fails.
///
/// `execv` itself and not `Command::exec`, which would empty the signal mask and reset SIGPIPE,
/// and copy the environment.
pub fn hand_over(program: &Path, arguments: &[OsString]) -> io::Error {
    let texts = std::iter::once(program.as_os_str()).chain(arguments.iter().map(OsString::as_os_str)).map(text_of_word);
    let texts: Vec<CString> = match texts.collect() {
        Ok(texts) => texts,
        Err(error) => return error,
    };
    let mut pointers: Vec<*const libc::c_char> = texts.iter().map(|text| text.as_ptr()).collect();
    pointers.push(std::ptr::null());
    restore_broken_pipes();
    adopt_orphans(false);
    let mut error = execute_texts(&pointers);
    for _ in 1..ATTEMPTS {
        if !error.raw_os_error().is_some_and(|code| PASSING.contains(&code)) {
            break;
        }
        std::thread::sleep(PAUSE);
        error = execute_texts(&pointers);
    }
    ignore_broken_pipes();
    error
}

/// Calls `execv` with texts that a null pointer ends; returns why it failed.
fn execute_texts(texts: &[*const libc::c_char]) -> io::Error {
    // SAFETY: the pointers are to NUL-terminated texts that outlive the call, and a null pointer
    // ends them.
    unsafe { libc::execv(texts[0], texts.as_ptr()) };
    io::Error::last_os_error()
}

fn text_of_word(word: &OsStr) -> io::Result<CString> {
    Ok(CString::new(word.as_bytes())?)
}
