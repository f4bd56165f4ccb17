//! `nvtune doctor`: what a build on this machine would use.

use crate::diag::MessageCode;
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
        Err(error) => put!("nvcc    {}", MessageCode::NvccNotFound.tag(error)),
    }
    let (settings, problems) = Settings::new(|name| std::env::var_os(name));
    let invalid = problems.into_iter().map(|problem| MessageCode::InvalidSetting.tag(problem));
    let unknown = unknown_variables(std::env::vars_os()).into_iter();
    let problems: Vec<String> =
        invalid.chain(unknown.map(|problem| MessageCode::UnknownVariable.tag(problem))).collect();
    match Options::new(&settings).and_then(Process::start) {
        Ok(process) => {
            let device = process.device();
            let (major, minor) = (device.driver / 1000, device.driver % 1000 / 10);
            put!("gpu     {}, sm_{}, {} multiprocessors", device.name, device.compute_capability, device.sms);
            put!("driver  CUDA {major}.{minor}");
        }
        Err(error) => put!("gpu     none is used: {}", error.code().tag(&error)),
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
