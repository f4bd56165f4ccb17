//! The stand-in for CUDA's headers, `tests/support/mini/`.

use super::project::{Project, succeed};

/// Together these use most of what the stand-in declares.
const SOURCES: [&str; 5] = ["two.cu", "rows.cu", "remap.cu", "symbols.cu", "builtins.cu"];

/// PTX and cubin of each source.
fn modules(project: &Project) -> Vec<[Vec<u8>; 2]> {
    let compile = |source: &str| {
        succeed(&mut project.plain(&["-O3", "-arch=sm_90", "-cubin", "--keep", source]));
        ["ptx", "cubin"].map(|extension| project.bytes(&source.replace("cu", extension)))
    };
    SOURCES.map(compile).into()
}

#[test]
#[ignore = "long: in the full run"]
fn small_headers_give_the_ptx_and_cubins_of_cudas_own() {
    // In one folder, for the names of hidden kernels depend on it.
    let project = Project::new(&SOURCES);
    let small = modules(&project);
    let cuda = modules(&project.with_cuda_headers());
    for ((source, small), cuda) in SOURCES.iter().zip(small).zip(cuda) {
        assert!(small == cuda, "{source}");
    }
}
