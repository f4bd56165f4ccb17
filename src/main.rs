//! The `nvtune` binary: everything is in the library.

fn main() -> std::process::ExitCode {
    nvtune::run(std::env::args_os().collect())
}
