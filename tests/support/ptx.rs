//! The PTX that nvcc makes of the sources in `tests/ptx/`.

use super::toolkit::run;
use std::path::Path;

/// The PTX of `tests/ptx/NAME.cu`, for sm_90 unless the options say otherwise.
pub fn ptx(name: &str, options: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = folder.path().join("out.ptx");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/ptx/{name}.cu"));
    // Of C++14 nvcc's compilers read a third less of the C++ library, which is most of what they do here.
    let mut arguments = vec!["-ptx", "-std=c++14"];
    if !options.contains(&"-arch") {
        arguments.push("-arch=sm_90");
    }
    arguments.extend_from_slice(options);
    let (source, output) = (source.to_string_lossy().into_owned(), output.to_string_lossy().into_owned());
    arguments.extend([source.as_str(), "-o", output.as_str()]);
    run("nvcc", &arguments);
    std::fs::read_to_string(output).expect("nvcc wrote PTX")
}
