//! The `nvtune-eval` binary: everything is in the library.

fn main() -> std::process::ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    nvtune_eval::run(&arguments)
}
