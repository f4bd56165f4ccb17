//! Launches reshaped by results of earlier builds: from the cache and from the lock file they are what they were when tuned.

use super::launches::{DIVIDED, GUARD};
use super::project::{Project, Ran, compile, run, succeed};
use super::remap::{SMALL_BLOCKS_WIN, launches, short, tuned};
use super::results::nvtune;

/// A build from the lock file alone.
fn locked(project: &Project, arguments: &[String]) -> Ran {
    succeed(project.nvtune(arguments).env("NVTUNE", "locked").env("NVTUNE_CACHE_SIZE", "0"))
}

fn count(ran: &Ran, words: &str) -> usize {
    ran.stderr.lines().filter(|line| line.contains(words)).count()
}

#[test]
fn cached_and_locked_kernels_keep_their_reshaped_launches() {
    let project = Project::new(&["remap.cu", "elsewhere.cu", "cudart.cpp"]);
    let arguments = compile("remap.cu", "remap.o");
    succeed(&mut project.plain(&compile("elsewhere.cu", "elsewhere.o")));
    let said = || {
        let said = launches(&project, &["remap.o", "elsewhere.o"], &[]);
        std::fs::remove_file(project.path("remap.o")).expect("it was built");
        said.lines().map(short).collect::<String>()
    };
    let cold = tuned(&project, &arguments, SMALL_BLOCKS_WIN);
    let kernels = count(&cold, "points timed");
    assert!(cold.code == Some(0) && kernels > 3, "{}", cold.stderr);
    let reshaped = said();
    assert!(reshaped.contains("block 64 1 1"), "{reshaped}");
    let warm = tuned(&project, &arguments, SMALL_BLOCKS_WIN);
    assert_eq!(count(&warm, "; from the cache"), kernels, "{}", warm.stderr);
    assert_eq!(said(), reshaped, "the whole call is known");

    succeed(&mut nvtune(&project, &["lock"]));
    let from_lock = locked(&project, &arguments);
    assert_eq!(count(&from_lock, "over the baseline, locked"), kernels, "{}", from_lock.stderr);
    assert_eq!(said(), reshaped, "locked");

    std::fs::remove_file(project.path("nvtune.lock")).expect("removed");
    project.write("remap.cu", &format!("{}\nint another() {{ return 1; }}\n", project.read("remap.cu")));
    let known = tuned(&project, &arguments, SMALL_BLOCKS_WIN);
    assert_eq!(count(&known, "; from the cache"), kernels, "{}", known.stderr);
    assert_eq!(said(), reshaped, "each kernel is known");
}

#[test]
fn changed_system_header_is_read_again() {
    let project = Project::new(&[]);
    project.write("factor.h", "#define FACTOR 1\n");
    project.write(
        "k.cu",
        "#include <factor.h>\n\
         //@tune threads(n) block({64, 256}) regs({0}) default(block = 256)\n\
         //@tune args(n = 1 << 12, x = out[n])\n\
         __global__ void k(int n, float *x) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = FACTOR * i; }\n",
    );
    let mut arguments = compile("k.cu", "k.o");
    arguments.push(format!("-I{}", project.path("").display()));
    assert_eq!(count(&tuned(&project, &arguments, SMALL_BLOCKS_WIN), "points timed"), 1);
    assert_eq!(count(&tuned(&project, &arguments, SMALL_BLOCKS_WIN), "from the cache"), 1, "nothing changed");

    project.write("factor.h", "#define FACTOR 2\n");
    let changed = tuned(&project, &arguments, SMALL_BLOCKS_WIN);
    assert_eq!(count(&changed, "points timed"), 1, "{}", changed.stderr);
}

#[test]
fn result_depends_on_the_launch_path() {
    let project = Project::new(&[]);
    let kernel = "//@tune threads(n) block({64, 256}) regs({0}) default(block = 256)\n\
         //@tune args(n = 1 << 12, x = out[n])\n\
         __global__ void k(int n, float *x) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = 1; }\n";
    project.write("k.cu", kernel);
    let arguments = compile("k.cu", "k.o");
    let cold = tuned(&project, &arguments, SMALL_BLOCKS_WIN);
    assert!(count(&cold, "points timed") == 1, "{}", cold.stderr);
    succeed(&mut nvtune(&project, &["lock"]));
    assert!(project.read("nvtune.lock").contains("\"launches\": \"remap\""), "{}", project.read("nvtune.lock"));

    project.write("k.cu", &format!("#if __has_include(\"k.tune.h\")\n#include \"k.tune.h\"\n#endif\n{kernel}"));
    let ran = run(project.nvtune(&arguments).env("NVTUNE", "locked"));
    let stale = "is stale and not used: another is the way to its launches (`header`, locked with `remap`)";
    assert!(ran.code == Some(0) && ran.stderr.contains(stale), "{}", ran.stderr);
    assert_eq!(count(&ran, "from the cache"), 0, "{}", ran.stderr);
    let again = tuned(&project, &arguments, SMALL_BLOCKS_WIN);
    assert!(count(&again, "points timed") == 1, "{}", again.stderr);
}

#[test]
fn lock_entry_whose_winner_is_no_longer_allowed_is_stale() {
    // An nvtune that knew nothing of launches which do not follow a macro locked what it found fastest: blocks for one element a thread,
    // of which the program, whose blocks do four, launches too few; and for eight, of which the blocks beyond write what is not theirs.
    let kernels = [("few", "FEW", 1, GUARD), ("many", "MANY", 8, "")];
    let kernel = |(name, per, _, guard): (&str, &str, u32, &str)| {
        let text = DIVIDED.replace("SIZE", "1 << 20").replace("GUARD", guard).replace("{1, 2, 4, 8, 16}", "{1, 4, 8}");
        text.replace("divided", name).replace("PER", per)
    };
    let source = kernels.map(kernel).concat();
    let arguments = compile("k.cu", "k.o");
    // The lock file where these values of the macros are the baselines'.
    let locked_by = |values: [u32; 2]| -> serde_json::Value {
        let project = Project::new(&[]);
        let mut text = source.clone();
        let mut entries = String::new();
        for ((_, per, ..), value) in kernels.iter().zip(values) {
            text = text.replace(&format!("#define {per} 4"), &format!("#define {per} {value}"));
            text = text.replace(&format!("{per} = 4)"), &format!("{per} = {value})"));
            entries += &format!(r#"{{"label": "block=128 {per}={value}", "time_us": 5.0}}, "#);
        }
        project.write("k.cu", &text);
        let ran = tuned(&project, &arguments, &(entries + r#"{"time_us": 10.0}"#));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        succeed(&mut nvtune(&project, &["lock"]));
        serde_json::from_str(&project.read("nvtune.lock")).expect("JSON")
    };
    let (mut lock, other) = (locked_by([4, 4]), locked_by(kernels.map(|(.., value, _)| value)));
    for (name, per, value, _) in kernels {
        let key = format!("k.cu: {name}, sm_90");
        let (entry, other) = (&mut lock["kernels"][&key], &other["kernels"][&key]);
        assert_eq!((&entry["macros"][per], &other["macros"][per]), (&4.into(), &value.into()));
        entry["winner_ptx"] = other["ptx"].clone();
        for fact in ["macros", "code", "block", "cap"] {
            entry[fact] = other[fact].clone();
        }
    }
    let project = Project::new(&[]);
    project.write("k.cu", &source);
    project.write("nvtune.lock", &lock.to_string());
    let ran = locked(&project, &arguments);
    let header = project.read("k.tune.h");
    let mut stale = String::new();
    for (name, per, value, _) in kernels {
        let reason = format!(
            "another is what may be chosen, and block=128 {per}={value} is not: the grid that the program launches knows nothing of {per}: \
             launch by the macro, or include the header and launch by it"
        );
        let said = format!(
            "{name}: its entry in nvtune.lock is stale and not used: {reason}; `nvtune lock --update` measures it again"
        );
        assert!(ran.stderr.contains(&said), "{}", ran.stderr);
        assert!(header.contains(&format!("#define {}_PROVENANCE \"baseline\"", name.to_uppercase())), "{header}");
        stale += &format!("k.cu: {name}, sm_90 is stale: {reason}\n");
    }
    let checked = run(&mut nvtune(&project, &["lock", "--check"]));
    assert_eq!((checked.code, checked.stdout), (Some(1), stale), "{}", checked.stderr);
    // Where launches follow it, it is as good as ever.
    project.write("k.cu", &format!("#if __has_include(\"k.tune.h\")\n#include \"k.tune.h\"\n#endif\n{source}"));
    let header = project.read("nvtune.lock").replace("\"launches\":\"remap\"", "\"launches\":\"header\"");
    project.write("nvtune.lock", &header);
    let ran = locked(&project, &arguments);
    assert_eq!(count(&ran, "over the baseline, locked"), kernels.len(), "{}", ran.stderr);
    // What the build before had against the entry as it was is not held against another one.
    assert_eq!(succeed(&mut nvtune(&project, &["lock", "--check"])).stdout, "2 entries, all as built\n");
}

#[test]
fn fat_build_locks_each_architecture_with_the_same_macros() {
    let project = Project::new(&[]);
    let source = "#ifndef WORK\n#define WORK 1\n#endif\n\
         //@tune define(WORK = {1, 4}) threads(n) block({256}) regs({0}) default(block = 256, WORK = 1)\n\
         //@tune args(n = 1 << 16, x = random[n], y = out[n])\n\
         __global__ void k(int n, const float *x, float *y) {\n\
         const int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
         if (i >= n) return;\n\
         const int work = WORK;\n\
         float sum = 0;\n\
         #pragma unroll work\n\
         for (int k = 0; k < 64; ++k) sum += x[(i + 977 * k) % n];\n\
         y[i] = sum; }\n";
    project.write("k.cu", source);
    let options = ["-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90", "-objtemp"];
    let arguments: Vec<String> =
        ["-O3", "-c", "k.cu", "-o", "k.o"].iter().chain(&options).map(|&word| word.to_owned()).collect();
    let entries = r#"{"label": "WORK=4", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    let cold = tuned(&project, &arguments, entries);
    assert_eq!(cold.code, Some(0), "{}", cold.stderr);
    let object = project.bytes("k.o");
    succeed(&mut nvtune(&project, &["lock"]));
    let lock = project.read("nvtune.lock");
    assert!(lock.contains("k.cu: k, sm_80") && lock.matches("\"WORK\": 4").count() == 2, "{lock}");

    let from_lock = locked(&project, &arguments);
    assert_eq!(count(&from_lock, "warning"), 0, "{}", from_lock.stderr);
    assert!(project.bytes("k.o") == object, "locked: the object is another one: {}", from_lock.stderr);

    // The other value is locked for one of the two.
    let at = lock.find("k.cu: k, sm_90").expect("it is locked");
    project.write("nvtune.lock", &format!("{}{}", &lock[..at], lock[at..].replacen("\"WORK\": 4", "\"WORK\": 1", 1)));
    let other = locked(&project, &arguments);
    let stale = "k: its entry in nvtune.lock is stale and not used: another is the value of its macros, which are those of another architecture's winner";
    assert!(other.stderr.contains(stale), "{}", other.stderr);

    std::fs::remove_file(project.path("nvtune.lock")).expect("removed");
    project.write("k.cu", &format!("{source}int another() {{ return 1; }}\n"));
    let known = tuned(&project, &arguments, entries);
    assert_eq!(count(&known, " 0 of "), 0, "nothing is looked at anew: {}", known.stderr);
    assert!(count(&known, "; from the cache") > 0 && count(&known, "points timed") == 0, "{}", known.stderr);
}

#[test]
fn fat_build_locks_each_architecture() {
    let project = Project::new(&["fat.cu", "cudart.cpp"]);
    let options = ["-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90"];
    let arguments: Vec<String> =
        ["-O3", "-c", "fat.cu", "-o", "fat.o"].iter().chain(&options).map(|&word| word.to_owned()).collect();
    let said = || {
        let said = launches(&project, &["fat.o"], &[("FAKE_CAPABILITIES", "80 90 90 80")]);
        std::fs::remove_file(project.path("fat.o")).expect("it was built");
        said
    };
    let entries = r#"{"label": "block=64 regs=24", "time_us": 5.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    let cold = tuned(&project, &arguments, entries);
    assert_eq!(cold.code, Some(0), "{}", cold.stderr);
    let reshaped = said();
    assert!(reshaped.contains("block 64 1 1") && reshaped.contains("block 256 1 1"), "{reshaped}");
    succeed(&mut nvtune(&project, &["lock"]));
    let lock = project.read("nvtune.lock");
    assert!(lock.contains("fat.cu: mixed, sm_80") && lock.contains("fat.cu: mixed, sm_90"), "{lock}");

    let from_lock = locked(&project, &arguments);
    assert_eq!(count(&from_lock, ", locked"), 2, "{}", from_lock.stderr);
    assert_eq!(said(), reshaped, "locked");

    std::fs::remove_file(project.path("nvtune.lock")).expect("removed");
    for what in ["the whole call is known", "each kernel is known"] {
        let known = tuned(&project, &arguments, entries);
        assert_eq!(count(&known, "; from the cache"), 2, "{what}: {}", known.stderr);
        assert_eq!(said(), reshaped, "{what}");
        project.write("fat.cu", &format!("{}\nint another() {{ return 1; }}\n", project.read("fat.cu")));
    }
}
