//! Macro axes and constants of the source.

use super::project::{Project, Ran, compile, run, succeed};

#[test]
fn macro_axis_reaches_host_code_and_the_header() {
    let project = Project::new(&["tiled.cu"]).with_cuda_headers();
    succeed(&mut project.nvtune(&compile("tiled.cu", "tiled.o")));
    let record = project.record("tiled.tune.json");
    let kernel = &record["kernels"][0];
    let winner = kernel["winner"].as_u64().expect("an index") as usize;
    let work = kernel["configurations"][winner]["macros"]["WORK"].as_i64().expect("a value");
    assert!(project.read("tiled.tune.h").contains(&format!("#define WORK {work}\n")));
    let variants = kernel["variants"].as_array().expect("a list");
    assert_eq!(variants.len(), 4, "each value of WORK gives other code");
    // The value is in the host code, too: `work()` returns it.
    let assembly = project.tool_of_host("objdump", &["-d", "--no-show-raw-insn", "tiled.o"]);
    let body = assembly.split("<_Z4workv>:").nth(1).expect("the function is there");
    assert!(body.lines().take(6).any(|line| line.contains(&format!("${work:#x}"))), "{body}");
}

const BOTH: [&str; 4] = ["-arch=sm_90", "-c", "part.cu", "other.cu"];

/// `part.cu`, with a macro axis, next to a source that has a macro of that name.
fn with_another_source() -> Project {
    let project = Project::new(&["part.cu"]);
    project.write("other.cu", "#define WORK 7\nint other() { return WORK; }\n");
    project
}

#[test]
fn macro_axis_without_the_header_is_not_tuned_in_a_call_of_two_sources() {
    let project = with_another_source();
    let ran = succeed(&mut project.nvtune(&BOTH));
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let reason = "-D would set its macros for the other sources of this call too; include \"part.tune.h\"";
    assert!(matches!(lines.as_slice(), [line] if line.contains(reason)), "{}", ran.stderr);
}

#[test]
fn macro_that_the_source_defines_before_the_header_keeps_its_default() {
    let project = with_another_source();
    // What is built is not what was scored.
    project.write("part.cu", &project.read("part.cu").replacen("#endif\n", "#endif\n#include \"part.tune.h\"\n", 1));
    let ran = succeed(&mut project.nvtune(&BOTH));
    assert!(ran.stderr.contains("the tuned result is not used"), "{}", ran.stderr);
    let (header, record) = (project.read("part.tune.h"), project.record("part.tune.json"));
    assert!(header.contains("#define WORK 1\n") && header.contains("PROVENANCE \"baseline\""), "{header}");
    let kernel = &record["kernels"][0];
    assert_eq!((&kernel["provenance"], &kernel["winner"]), (&"baseline".into(), &kernel["baseline"]));
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
    let said = "constants.cu(6): warning: `THREADS` is another number in this build than 128, which the source defines it as: write the number; `k` is not tuned";
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
