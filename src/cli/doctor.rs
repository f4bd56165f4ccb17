//! `nvtune doctor`: what a build on this machine would use.

use crate::measure::{Measurer, Options, Process};
use crate::nvcc::RealNvcc;
use crate::put;
use crate::settings::{Settings, VARIABLES, unknown_variables};

/// Prints what is found; the exit code tells whether a build could go on.
pub fn run() -> u8 {
    put!("nvtune  {}", env!("CARGO_PKG_VERSION"));
    let nvcc = RealNvcc::find(None, |name| std::env::var_os(name));
    match &nvcc {
        Ok(nvcc) => {
            put!("nvcc    {}", nvcc.path.display());
            put!("toolkit {}", nvcc.release().unwrap_or_else(|| "unknown: nvcc --version says nothing".to_owned()));
        }
        Err(error) => put!("nvcc    {error}"),
    }
    let (settings, mut problems) = Settings::new(|name| std::env::var_os(name));
    problems.extend(unknown_variables(std::env::vars_os()));
    match Options::new(&settings).and_then(Process::start) {
        Ok(process) => {
            let device = process.device();
            let (major, minor) = (device.driver / 1000, device.driver % 1000 / 10);
            put!("gpu     {}, sm_{}, {} multiprocessors", device.name, device.compute_capability, device.sms);
            put!("driver  CUDA {major}.{minor}");
        }
        Err(error) => put!("gpu     none is used: {error}"),
    }
    for variable in &VARIABLES {
        if let Some(value) = std::env::var_os(variable.name) {
            put!("{}={}", variable.name, value.to_string_lossy());
        }
    }
    for problem in &problems {
        put!("problem {problem}");
    }
    u8::from(nvcc.is_err() || !problems.is_empty())
}
