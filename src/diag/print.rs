//! Lines on standard error and standard output, which may be closed or full: Rust's own macros
//! would end the process then, in the middle of a build, with what it has begun left behind.

use super::escape::printable;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Prints a line on standard error. Where that cannot be written to, all else goes on: a build
/// is not broken for what is said of it.
#[macro_export]
macro_rules! say {
    ($($what:tt)*) => { $crate::diag::print::to_error(format_args!("{}\n", format_args!($($what)*))) };
}

/// Prints on standard error as [`say`] does, without ending the line.
#[macro_export]
macro_rules! say_on {
    ($($what:tt)*) => { $crate::diag::print::to_error(format_args!($($what)*)) };
}

/// Prints a line of a command's answer on standard output. Where that cannot be written to, the
/// command is over.
#[macro_export]
macro_rules! put {
    ($($what:tt)*) => { $crate::diag::print::to_output(format_args!("{}\n", format_args!($($what)*))) };
}

/// Prints on standard output as [`put`] does, without ending the line.
#[macro_export]
macro_rules! put_on {
    ($($what:tt)*) => { $crate::diag::print::to_output(format_args!($($what)*)) };
}

/// See [`say`].
pub fn to_error(text: Arguments<'_>) {
    // In one piece, so that lines of processes side by side do not mix. Nobody could be informed
    // that this failed.
    let text = text.to_string();
    let cleared = if HAS_LINE.swap(false, Ordering::Relaxed) { CLEAR } else { "" };
    let _ = io::stderr().write_all(format!("{cleared}{}", printable(&text)).as_bytes());
}

/// Clears the line of a terminal.
const CLEAR: &str = "\r\x1b[K";

/// Whether a line stands on the terminal that the next message takes the place of.
static HAS_LINE: AtomicBool = AtomicBool::new(false);

/// Puts a line of progress in place of the one before. The cursor returns to its start: what
/// another program writes covers it.
pub fn show_line(text: &str) {
    HAS_LINE.store(true, Ordering::Relaxed);
    let _ = io::stderr().write_all(format!("{CLEAR}{text}\r").as_bytes());
}

/// Clears the line of a terminal on standard error.
pub fn clear_line() {
    HAS_LINE.store(false, Ordering::Relaxed);
    let _ = io::stderr().write_all(CLEAR.as_bytes());
}

/// See [`put`].
pub fn to_output(text: Arguments<'_>) {
    write_to_output(printable(&text.to_string()).as_bytes());
}

/// Prints what another program reads, such as a diff, on standard output: the bytes as they are,
/// but on a terminal as [`put`] does.
pub fn bytes_to_output(bytes: &[u8]) {
    match io::stdout().is_terminal() {
        true => to_output(format_args!("{}", String::from_utf8_lossy(bytes))),
        false => write_to_output(bytes),
    }
}

fn write_to_output(bytes: &[u8]) {
    let mut output = io::stdout();
    let Err(error) = output.write_all(bytes).and_then(|()| output.flush()) else { return };
    // A reader that has seen enough (`nvtune report ... | head`) is none of the user's troubles.
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(128 + libc::SIGPIPE);
    }
    super::console::fatal(super::MessageCode::OutputClosed, format!("cannot write to standard output: {error}"));
    std::process::exit(super::exit_code::FATAL.into());
}
