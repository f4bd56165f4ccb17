//! Lines on standard error and standard output, which may be closed or full: Rust's own macros would end the process then, in the
//! middle of a build, with what it has begun left behind.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};

/// Prints a line on standard error. Where that cannot be written to, all else goes on: a build is not broken for what is said of it.
#[macro_export]
macro_rules! say {
    ($($what:tt)*) => { $crate::diag::print::to_error(format_args!("{}\n", format_args!($($what)*))) };
}

/// Prints on standard error as [`say`] does, without ending the line.
#[macro_export]
macro_rules! say_on {
    ($($what:tt)*) => { $crate::diag::print::to_error(format_args!($($what)*)) };
}

/// Prints a line of a command's answer on standard output. Where that cannot be written to, the command is over.
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
    // In one piece, so that lines of processes side by side do not mix. There is nobody to be told that this failed.
    let _ = io::stderr().write_all(text.to_string().as_bytes());
}

/// See [`put`].
pub fn to_output(text: Arguments<'_>) {
    let mut output = io::stdout();
    let Err(error) = output.write_fmt(text).and_then(|()| output.flush()) else { return };
    // A reader that has seen enough (`nvtune report ... | head`) is none of the user's troubles.
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(128 + libc::SIGPIPE);
    }
    say!("nvtune fatal   : cannot write to standard output: {error}");
    std::process::exit(super::exit_code::FATAL.into());
}
