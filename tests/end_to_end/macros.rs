//! Macro axes and constants of the source.

use super::project::{Project, Ran, compile, run, succeed};

#[test]
fn header_offers_the_macros_of_the_winner_and_host_code_sees_the_sources() {
    let project = Project::new(&["tiled.cu"]).with_cuda_headers_in_full_run();
    succeed(&mut project.nvtune(&compile("tiled.cu", "tiled.o")));
    let record = project.record("tiled.tune.json");
    let kernel = &record["kernels"][0];
    let winner = kernel["winner"].as_u64().expect("an index") as usize;
    let work = kernel["configurations"][winner]["macros"]["WORK"].as_i64().expect("a value");
    let header = project.read("tiled.tune.h");
    assert!(work > 1 && header.contains(&format!("#define TILED_WORK {work}\n")), "{header}");
    assert!(header.contains("#define WORK 1\n"), "{header}");
    let variants = kernel["variants"].as_array().expect("a list");
    assert_eq!(variants.len(), 4, "each value of WORK gives other code");
    // `work()` returns the source's own value.
    let assembly = project.tool_of_host("objdump", &["-d", "--no-show-raw-insn", "tiled.o"]);
    let body = assembly.split("<_Z4workv>:").nth(1).expect("the function is there");
    assert!(body.lines().take(6).any(|line| line.contains("$0x1,")), "{body}");
}

#[test]
fn macro_axis_is_tuned_next_to_a_source_that_has_a_macro_of_that_name() {
    let project = Project::new(&["part.cu"]);
    project.write("other.cu", "#define WORK 7\nint other() { return WORK; }\n");
    let ran = succeed(&mut project.nvtune(&["-arch=sm_90", "-c", "part.cu", "other.cu"]));
    assert!(ran.stderr.contains("nvtune: part: block=256 WORK=2 ("), "{}", ran.stderr);
    let assembly = project.tool_of_host("objdump", &["-d", "--no-show-raw-insn", "other.o"]);
    assert!(assembly.contains("$0x7,"), "{assembly}");
}

/// A source that names constants of a file that it includes.
struct Constants(Project);

impl Constants {
    fn new() -> Self {
        let project = Project::new(&["constants.cu"]);
        let limits =
            "#ifndef THREADS\n#define THREADS (4 * WARP)\n#endif\nenum { WARP = 32 };\n__constant__ float bias;\n";
        project.write("limits.h", limits);
        Self(project)
    }

    fn compiled(&self, options: &[&str]) -> Ran {
        run(self.0.nvtune(&compile("constants.cu", "constants.o")).args(options))
    }
}

#[test]
fn constants_of_included_files_stand_in_comments() {
    let ran = Constants::new().compiled(&[]);
    assert!(ran.code == Some(0) && ran.stderr.contains("nvtune: k: block=128"), "{}", ran.stderr);
}

#[test]
fn constant_that_the_build_changes_is_a_warning() {
    let ran = Constants::new().compiled(&["-DTHREADS=64"]);
    let said = "constants.cu(6): warning: `THREADS` differs in this build from 128 in the source: write the number; nvcc builds `k` as it is";
    assert!(ran.code == Some(0) && ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn result_depends_on_the_constants_that_a_comment_names() {
    let constants = Constants::new();
    constants.compiled(&[]);
    constants.0.write("limits.h", "enum { WARP = 32, THREADS = 2 * WARP };\n__constant__ float bias;\n");
    let ran = constants.compiled(&[]);
    assert!(ran.stderr.contains("nvtune: k: block=64 ") && !ran.stderr.contains("from the cache"), "{}", ran.stderr);
}
