//! The `nvtune` binary: everything is in the library.
//!
//! `main` is C's own. Rust's would ignore SIGPIPE, open closed standard streams and install
//! handlers before anything else; the nvcc that this process may become must find none of that,
//! and no time spent on it.
#![no_main]

#[unsafe(no_mangle)]
pub extern "C" fn main() -> std::ffi::c_int {
    nvtune::process::set_own_program();
    let code = nvtune::run(std::env::args_os().collect());
    // Not a return: this is what empties Rust's buffer of standard output.
    std::process::exit(code.into())
}
