//! Decisions by timing, with a measuring process that answers from recorded timings: all of it is real but the driver.

use super::project::{CAPS_WIN, Project, Ran, compile, run, succeed};

/// Tunes `source` with these recorded entries for a device of compute capability 9.0.
fn tuned(project: &Project, source: &str, entries: &str) -> Ran {
    project.write(
        "recorded.json",
        &format!(r#"{{"device": {{"name": "NVIDIA H200", "compute_capability": 90}}, "entries": [{entries}]}}"#),
    );
    let object = source.replace(".cu", ".o");
    run(project.nvtune(&compile(source, &object)).env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"))
}

/// The same, where nothing is to be warned of; the header must have these lines.
fn tuned_to(project: &Project, source: &str, entries: &str, lines: &[&str]) {
    let ran = tuned(project, source, entries);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let header = project.read(&source.replace(".cu", ".tune.h"));
    for line in lines {
        assert!(header.contains(line), "{line}: {header}");
    }
}

#[test]
fn the_fastest_candidate_wins_and_the_header_says_that_it_was_measured() {
    let project = Project::new(&["saxpy.cu"]);
    let ran = tuned(
        &project,
        "saxpy.cu",
        r#"{"label": "block=512", "time_us": 8.0, "spread": 0.02}, {"time_us": 10.0, "spread": 0.02}"#,
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("nvtune: saxpy: block=512 (1.2"), "{}", ran.stderr);
    let header = project.read("saxpy.tune.h");
    for line in [
        "#define SAXPY_BLOCK_X 512",
        "#define SAXPY_PROVENANCE \"measured\"",
        "#define SAXPY_GPU \"NVIDIA H200, sm_90\"",
        "static dim3 grid(int n)",
    ] {
        assert!(header.contains(line), "{line}: {header}");
    }
    let record = project.record("saxpy.tune.json");
    let kernel = &record["kernels"][0];
    assert_eq!(kernel["provenance"], "measured");
    let winner = kernel["winner"].as_u64().expect("an index") as usize;
    let timing = &kernel["configurations"][winner]["timing"];
    let paired = timing["paired_us"].as_f64().expect("the winner met the baseline in paired rounds");
    assert!((7.8..8.2).contains(&paired), "{timing}");
    let timed = kernel["configurations"].as_array().expect("a list").iter().filter(|row| row["timing"].is_object());
    assert!(timed.count() as u64 >= kernel["timed"].as_u64().expect("a count"));
}

/// A kernel that calls what another kernel of its file has put into tables of functions.
const VIRTUAL: &str = "\
struct Shape { __device__ virtual float hit(float x) const = 0; };
struct Ball : Shape {
    float radius;
    __device__ Ball(float r) : radius(r) {}
    __device__ float hit(float x) const override { return sqrtf(fabsf(radius * radius - x * x)); }
};
struct List : Shape {
    Shape **all;
    int count;
    __device__ List(Shape **shapes, int n) : all(shapes), count(n) {}
    __device__ float hit(float x) const override {
        float least = 1e30f;
        for (int k = 0; k < count; ++k) least = fminf(least, all[k]->hit(x));
        return least;
    }
};
__global__ void make(Shape **all, Shape **list) {
    all[0] = new Ball(1.0f);
    *list = new List(all, 1);
}
//@tune threads(n) block(128) regs({0, 24, 32}) default(block = 128)
//@tune args(n = 1 << 16, char shape = zeros[64], x = random[n])
__global__ void hits(int n, const Shape *shape, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i], b = a * a, c = a * b, d = b * c, e = c * d, f = d * e, sum = 0.0f;
    for (int k = 0; k < 8; ++k) {
        sum += shape->hit(a) + shape->hit(b) + shape->hit(c) + shape->hit(d) + shape->hit(e) + shape->hit(f);
        a += b; b += c; c += d; d += e; e += f; f += sum;
    }
    x[i] = sum + a + b + c + d + e + f;
}
";

#[test]
fn what_is_called_by_an_address_is_timed_as_it_is_built() {
    let project = Project::new(&[]);
    project.write("virtual.cu", VIRTUAL);
    let entries = r#"{"label": "regs=24", "time_us": 8.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    let ran = tuned(&project, "virtual.cu", entries);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("nvtune: hits: block=128 regs=24 (1.2"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
}

#[test]
fn what_is_faster_with_cold_caches_alone_does_not_win() {
    // The time with warm caches of the fastest, whose gain is 2.5%, and of the default: why it is refused.
    for (fastest, warm, reason) in [
        (9.75, [6.0, 5.0], "with warm caches it takes 1.20 times as long as the default"),
        (
            9.75,
            [5.0, 4.96],
            "with warm caches it takes 1.008 times as long as the default, too much for a gain of 2.6%",
        ),
    ] {
        let project = Project::new(&["saxpy.cu"]);
        let [its, default] = warm;
        let recorded = format!(
            r#"{{"label": "block=512", "time_us": {fastest}, "warm_us": {its}}},
            {{"label": "block=64", "time_us": 9.85, "warm_us": 4.8}},
            {{"time_us": 10.0, "warm_us": {default}}}"#
        );
        let ran = tuned(&project, "saxpy.cu", &recorded);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("nvtune: saxpy: block=64 (1.0"), "{}", ran.stderr);
        let record = project.record("saxpy.tune.json");
        let kernel = &record["kernels"][0];
        let notes = kernel["notes"].as_array().expect("a list");
        let note = format!("the fastest is refused: block=512: {reason}");
        assert!(notes.iter().any(|known| *known == note), "{notes:?}");
        let winner = kernel["winner"].as_u64().expect("an index") as usize;
        let warm = kernel["configurations"][winner]["timing"]["warm_us"].as_f64();
        let warm = warm.expect("it was timed with warm caches");
        assert!((4.7..4.9).contains(&warm), "{warm}");
    }
}

#[test]
fn buffers_that_the_gpu_has_no_room_for_are_said_so_and_the_model_chooses() {
    let project = Project::new(&["saxpy.cu"]);
    let recorded = r#"{"device": {"name": "NVIDIA H200", "compute_capability": 90, "free_bytes": 2000000},
        "entries": [{"time_us": 10.0}]}"#;
    project.write("recorded.json", recorded);
    let mut build = project.nvtune(&compile("saxpy.cu", "saxpy.o"));
    let ran = run(build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let warning = "warning: these buffers take 8 MiB, and the NVIDIA H200 has 1 MiB free: make them smaller; `saxpy` is not timed";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    assert!(!project.read("saxpy.tune.h").contains("measured"));
}

#[test]
fn two_kernels_of_one_file_have_caps_of_their_own() {
    let project = Project::new(&["two.cu"]).with_cuda_headers();
    succeed(&mut project.plain(&compile("two.cu", "plain.o")));
    let plain = project.registers("plain.o");
    project.write("recorded.json", CAPS_WIN);
    let mut nvtune = project.nvtune(&compile("two.cu", "two.o"));
    let ran = succeed(nvtune.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"));
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let tuned = project.registers("two.o");
    let of = |all: &[(String, u32)], name: &str| {
        all.iter().find(|(symbol, _)| symbol.contains(name)).map(|(_, registers)| *registers).expect("it is there")
    };
    assert!(of(&plain, "first") > 24 && of(&plain, "bounded") > 32, "the caps mean nothing here: {plain:?}");
    assert!(of(&tuned, "first") <= 24, "{tuned:?}");
    // It has launch bounds, for which ptxas ignores --maxrregcount in silence.
    assert!((25..=32).contains(&of(&tuned, "bounded")), "{tuned:?}");
    assert_eq!(of(&tuned, "unmarked"), of(&plain, "unmarked"), "an unmarked kernel is as it was");
}

#[test]
fn kernels_of_one_name_in_two_sources_of_a_call_are_each_built_as_they_were_timed() {
    let project = Project::new(&["two.cu"]);
    let text = project.read("two.cu");
    let (shared, kernels) = text.split_once("//@tune").expect("marked");
    let first = kernels.split("//@tune threads").next().expect("one");
    // The same name, with internal linkage, and another body and problem each.
    for (name, size, body) in
        [("a.cu", "1 << 16", "mixed(x, i)"), ("a_b.cu", "1 << 14", "mixed(x, i) + mixed(x, i + 1)")]
    {
        let kernel = first.replace("1 << 16", size).replace("regs({0, 24})", "regs({0, 24, 32})");
        let kernel = kernel.replace("mixed(x, i)", body).replace("__global__", "static __global__");
        let launch =
            "void NAME(int n, float *x) { first<<<n / 128, 128>>>(n, x, x); }".replace("NAME", &name.replace('.', "_"));
        project.write(name, &format!("{shared}//@tune{kernel}\n{launch}\n"));
    }
    let entries = r#"{"grid": [512, 1, 1], "label": "regs=24", "time_us": 8.0, "spread": 0.01},
        {"grid": [128, 1, 1], "label": "regs=32", "time_us": 8.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#;
    let device = r#"{"name": "NVIDIA H200", "compute_capability": 90}"#;
    project.write("recorded.json", &format!(r#"{{"device": {device}, "entries": [{entries}]}}"#));
    // What nvcc calls its files hangs on these.
    for options in [
        &["-arch=sm_90"][..],
        &["-arch=sm_90", "--keep"],
        &["-arch=sm_90", "-objtemp"],
        &["-gencode=arch=compute_90,code=sm_90", "-gencode=arch=compute_80,code=sm_80"],
    ] {
        let arguments = options.iter().chain(&["-O3", "-c", "a.cu", "a_b.cu"]).collect::<Vec<_>>();
        let mut nvtune = project.nvtune(&arguments);
        let ran = succeed(nvtune.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"));
        assert!(!ran.stderr.contains("warning"), "{options:?}: {}", ran.stderr);
        let has = |object: &str, registers: std::ops::RangeInclusive<u32>| {
            project.registers(object).iter().any(|(_, count)| registers.contains(count))
        };
        assert!(has("a.o", 1..=24) && has("a_b.o", 25..=32), "{options:?}: {}", ran.stderr);
    }
}

/// The SASS of a kernel of an object.
fn sass(project: &Project, object: &str, kernel: &str) -> String {
    let all = project.tool("cuobjdump", &["-sass", object]);
    let code = all.split("Function : ").find(|part| part.lines().next().is_some_and(|name| name.contains(kernel)));
    let code = code.unwrap_or_else(|| panic!("{object} has no {kernel}: {all}"));
    // What follows the last kernel speaks of the options; how wide the columns are, of the widest instruction of the file.
    let code = code.split("Fatbin").next().unwrap_or_default();
    code.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_winners_loads_are_in_the_object_and_its_carve_out_in_the_header() {
    let project = Project::new(&["cached.cu"]);
    let ran = tuned(
        &project,
        "cached.cu",
        r#"{"label": "block=128 cache=cg carveout=50", "time_us": 8.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}"#,
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("nvtune: folded: block=128 cache=cg carveout=50 (1.25x"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("warning"), "{}", ran.stderr);
    let header = project.read("cached.tune.h");
    for line in ["#define FOLDED_CARVEOUT 50\n", "static int carveout() { return 50; }\n"] {
        assert_eq!(header.matches(line).count(), 1, "{line}: {header}");
    }
    for word in ["_CARVEOUT ", "int carveout()"] {
        assert_eq!(header.matches(word).count(), 1, "a kernel without the axis has none: {header}");
    }
    let record = project.record("cached.tune.json");
    let kernel = &record["kernels"][0];
    let configurations = kernel["configurations"].as_array().expect("a list");
    assert_eq!(configurations.len(), 2 * 3 * 3);
    let winner = &configurations[kernel["winner"].as_u64().expect("an index") as usize];
    assert_eq!((&winner["cache"], &winner["carveout"]), (&"cg".into(), &50.into()));
    let caches: Vec<_> =
        kernel["variants"].as_array().expect("a list").iter().map(|variant| &variant["cache"]).collect();
    assert_eq!(caches, [&serde_json::Value::Null, &"ca".into(), &"cg".into()]);

    // The code of a file of this kernel alone under the option, and of the other kernel as nvcc makes it.
    succeed(&mut project.plain(&compile("cached.cu", "plain.o")));
    let mut option = compile("cached.cu", "option.o");
    option.extend(["-Xptxas", "-dlcm=cg"].map(str::to_owned));
    succeed(&mut project.plain(&option));
    let folded = sass(&project, "cached.o", "folded");
    assert!(folded.contains("LDG.E.STRONG.GPU"), "{folded}");
    assert_eq!(folded, sass(&project, "option.o", "folded"));
    assert_ne!(folded, sass(&project, "plain.o", "folded"));
    assert_eq!(sass(&project, "cached.o", "plain"), sass(&project, "plain.o", "plain"));
}

#[test]
fn loads_that_stay_nvccs_own_and_a_carve_out_that_stays_the_drivers() {
    let project = Project::new(&["cached.cu"]);
    let ran = tuned(&project, "cached.cu", r#"{"time_us": 10.0, "spread": 0.01}"#);
    assert!(ran.stderr.starts_with("nvtune: folded: block=256 (kept: "), "{}", ran.stderr);
    assert!(project.read("cached.tune.h").contains("#define FOLDED_CARVEOUT -1\n"));
    succeed(&mut project.plain(&compile("cached.cu", "plain.o")));
    assert_eq!(sass(&project, "cached.o", "folded"), sass(&project, "plain.o", "folded"));
    // Without a GPU the model, which knows nothing of caches, does not guess.
    let ran = succeed(&mut project.nvtune(&compile("cached.cu", "static.o")));
    assert!(!ran.stderr.contains("cache=") && !ran.stderr.contains("carveout="), "{}", ran.stderr);
}

#[test]
fn ptxas_speaks_under_its_own_name() {
    let project = Project::new(&["two.cu"]);
    project.write("recorded.json", CAPS_WIN);
    let mut arguments = compile("two.cu", "two.o");
    arguments.extend(["-Xptxas", "-v"].map(str::to_owned));
    let mut nvtune = project.nvtune(&arguments);
    let ran = succeed(nvtune.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"));
    // Each of three kernels, from the final build alone.
    let lines = ran.stderr.lines().filter(|line| line.starts_with("ptxas info    : Used "));
    assert_eq!(lines.count(), 3, "{}", ran.stderr);
    assert!(!ran.stderr.contains("nvtune-real-ptxas"), "{}", ran.stderr);
}

#[test]
fn in_doubt_the_baseline_stays() {
    for entries in [
        r#"{"time_us": 10.0, "spread": 0.05}"#,
        r#"{"label": "block=256", "time_us": 10.0, "spread": 0.05}, {"time_us": 9.99, "spread": 0.05}"#,
        r#"{"label": "block=256", "time_us": 10.0}, {"time_us": 12.0}"#,
    ] {
        let project = Project::new(&["saxpy.cu"]);
        let ran = tuned(&project, "saxpy.cu", entries);
        assert!(ran.stderr.starts_with("nvtune: saxpy: block=256 (kept: "), "{entries}: {}", ran.stderr);
        assert!(project.read("saxpy.tune.h").contains("#define SAXPY_PROVENANCE \"baseline\""));
    }
}

#[test]
fn candidates_that_fail_are_out_and_named_and_the_build_passes() {
    let cases = [
        (
            r#"{"label": "block=512", "refused": {"faulted": {"error": "CUDA_ERROR_ILLEGAL_ADDRESS"}}}"#,
            "ILLEGAL_ADDRESS",
        ),
        (r#"{"label": "block=512", "fault": "die"}"#, "died while it ran"),
        (r#"{"label": "block=512", "fault": "garbage"}"#, "block=512"),
    ];
    for (entry, word) in cases {
        let project = Project::new(&["saxpy.cu"]);
        let entries =
            format!(r#"{entry}, {{"label": "block=1024", "time_us": 5.0}}, {{"time_us": 10.0, "spread": 0.01}}"#);
        let ran = tuned(&project, "saxpy.cu", &entries);
        assert_eq!(ran.code, Some(0), "{entry}: {}", ran.stderr);
        let warning = ran.stderr.lines().find(|line| line.starts_with("nvtune warning")).unwrap_or_default();
        assert!(warning.contains("candidate refused: block=512") && warning.contains(word), "{entry}: {}", ran.stderr);
        assert!(ran.stderr.contains("nvtune: saxpy: block=1024 (2.00x"), "{entry}: {}", ran.stderr);
        assert!(project.path("saxpy.o").is_file(), "{entry}");
    }
}

#[test]
fn a_measuring_process_that_fails_leaves_the_models_choice() {
    let project = Project::new(&["saxpy.cu"]);
    for (start, warned) in [("no-device", false), ("die", true), ("garbage", true), ("version", true)] {
        project.write("recorded.json", &format!(r#"{{"start": "{start}", "entries": []}}"#));
        let mut nvtune = project.nvtune(&compile("saxpy.cu", "saxpy.o"));
        let ran = succeed(nvtune.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"));
        assert_eq!(ran.stderr.contains("nvtune warning"), warned, "{start}: {}", ran.stderr);
        assert!(!project.read("saxpy.tune.h").contains("measured"), "{start}");
    }
    let runner = project
        .nvtune(&compile("saxpy.cu", "saxpy.o"))
        .env("NVTUNE", "measure")
        .env("NVTUNE_RUNNER", "/nowhere/ssh gpu")
        .output();
    let runner = runner.expect("it starts");
    assert!(runner.status.success());
    assert!(String::from_utf8_lossy(&runner.stderr).contains("/nowhere/ssh"));
}

#[test]
fn a_baseline_that_cannot_run_on_its_workload_stays() {
    let project = Project::new(&["tiled.cu"]);
    let crash = r#"{"refused": {"faulted": {"error": "CUDA_ERROR_ILLEGAL_ADDRESS"}}}"#;
    let ran = tuned(&project, "tiled.cu", crash);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("not timed: the baseline cannot be measured"), "{}", ran.stderr);
    assert!(ran.stderr.contains("nvtune: tiled: block=256 WORK=1 (kept: "), "{}", ran.stderr);
}

#[test]
fn a_header_that_another_build_left_beside_the_source_is_not_used() {
    let project = Project::new(&["tiled.cu"]);
    std::fs::create_dir(project.path("out")).expect("a folder");
    // The disassembled grid function divides by WORK.
    let grid = |object: &str| {
        let text = project.tool_of_host("objdump", &["-d", "--no-show-raw-insn", object]);
        text.split("nvtune_tiled_gridi>:").nth(1).unwrap_or_default().lines().take(12).collect::<String>()
    };
    for (work, object) in [(8, "tiled.o"), (2, "out/tiled.o")] {
        project.write(
            "recorded.json",
            &format!(
                r#"{{"device": {{"name": "NVIDIA H200", "compute_capability": 90}},
                    "entries": [{{"label": "WORK={work} block=256", "time_us": 5.0}}, {{"time_us": 10.0}}]}}"#
            ),
        );
        // Without -O, for the host compiler would inline the grid function.
        let mut nvtune = project.nvtune(&["-arch=sm_90", "-c", "tiled.cu", "-o", object]);
        let ran = succeed(nvtune.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json"));
        assert!(ran.stderr.contains(&format!("block=256 WORK={work} (2.00x")), "{}", ran.stderr);
        assert!(grid(object).contains(&format!("$0x{work},%esi")), "{object}: {}", grid(object));
    }
}

#[test]
fn instances_of_a_template_are_tuned_each_on_its_own() {
    let project = Project::new(&["instances.cu"]).with_cuda_headers();
    tuned_to(
        &project,
        "instances.cu",
        r#"{"kernel": "_ZN2ns5scaleIfEEviT_PKS1_PS1_", "label": "block=64", "time_us": 5.0},
           {"kernel": "_Z5applyIN2ns5TwiceIfEELi8EEviPKfPf", "label": "block=64 WORK=4", "time_us": 5.0},
           {"time_us": 10.0}"#,
        &[
            "#define SCALE_FLOAT_BLOCK_X 64",
            "#define SCALE_FLOAT_PROVENANCE \"measured\"",
            "struct scale_float {",
            "#define SCALE_DOUBLE_BLOCK_X 256",
            "#define SCALE_DOUBLE_PROVENANCE \"baseline\"",
            "#define APPLY_TWICE_FLOAT_WORK_2_BLOCK_X 64",
            "#define WORK 4",
        ],
    );
    // The winner's code is in the object, under the name that its macro gives it.
    let record = project.record("instances.tune.json");
    assert_eq!(record["kernels"][2]["symbol"], "_Z5applyIN2ns5TwiceIfEELi8EEviPKfPf");
    assert!(project.registers("instances.o").iter().any(|(symbol, _)| symbol.contains("5TwiceIfEELi8E")));
}

/// Aliases, enumerators, constants and macros of the source are what the compiler says they are, before C++17 too.
#[test]
fn arguments_of_a_template_are_named_as_the_source_names_them() {
    let project = Project::new(&["aliases.cu"]);
    let all = [
        "twice_real_WIDTH_STEP 5twiceIfLi8EEE",
        "apply_element_SCALE 5applyIfLNS_4ModeE1EEE",
        "pick_Kind_Odd 4pickIL4Kind1EE",
    ];
    for (standard, known) in [("-std=c++17", 3), ("-std=c++11", 2)] {
        let mut call = compile("aliases.cu", "aliases.o");
        call.push(standard.to_owned());
        let ran = succeed(&mut project.nvtune(&call));
        let record = project.record("aliases.tune.json");
        let tuned = record["kernels"].as_array().expect("kernels");
        assert_eq!(tuned.len(), known, "{standard}: {}", ran.stderr);
        for (tuned, expected) in tuned.iter().zip(all) {
            let (name, symbol) = expected.split_once(' ').expect("two words");
            assert_eq!(tuned["name"], name, "{standard}");
            assert!(tuned["symbol"].as_str().is_some_and(|mangled| mangled.contains(symbol)), "{standard}: {tuned}");
        }
    }
}

/// A specialization is a kernel of its own, with parameters that have names of their own, beside the template's other instances.
#[test]
fn specializations_of_a_template_are_tuned_as_the_instances_that_they_are() {
    tuned_to(
        &Project::new(&["specialized.cu"]).with_cuda_headers(),
        "specialized.cu",
        r#"{"kernel": "_Z5shiftI6__halfEvPT_i", "label": "block=64", "time_us": 5.0},
           {"kernel": "_Z5shiftIdEvPT_i", "label": "block=128", "time_us": 5.0},
           {"time_us": 10.0}"#,
        &["#define SHIFT_FLOAT_BLOCK_X 256", "#define SHIFT___HALF_BLOCK_X 64", "#define SHIFT_DOUBLE_BLOCK_X 128"],
    );
}

/// Two comments may come to one kernel: its launches are reshaped once.
#[test]
fn what_is_tuned_by_one_comment_is_not_tuned_by_another() {
    let clauses = "threads(n) block({64, 256}) regs({0}) default(block = 256) args(n = 1 << 12, x = random[n])";
    let body = "const int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) x[i] += 1;";
    let source = format!(
        "//@tune template(double) name(first) {clauses}\ntemplate <typename T>\n__global__ void k(T *x, int n) {{\n    {body}\n}}\n\
         //@tune {clauses}\ntemplate <>\n__global__ void k<double>(double *x, int n) {{\n    {body}\n}}\n\
         void all(double *x, int n) {{ k<<<(n + 255) / 256, 256>>>(x, n); }}\n"
    );
    let project = Project::new(&[]);
    project.write("twice.cu", &source);
    let ran = tuned(&project, "twice.cu", r#"{"label": "block=64", "time_us": 5.0}, {"time_us": 10.0}"#);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("nvtune: first: block=64 (2.00x"), "{}", ran.stderr);
    let said = "k_double: not tuned: the comment above the kernel at line 3 tunes this instance already: remove one of the two";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert_eq!(project.record("twice.tune.json")["kernels"].as_array().map(Vec::len), Some(1));
}

#[test]
fn an_instance_that_the_file_does_not_make_is_named_with_those_that_it_makes() {
    let project = Project::new(&["instances.cu"]);
    let text = project.read("instances.cu").replace("template(double)", "template(half)");
    project.write("instances.cu", &text);
    let ran = succeed(&mut project.nvtune(&compile("instances.cu", "instances.o")));
    let warning = "instances.cu(8): warning: `scale` has no instance <half>: this file makes <double>, <float>; it is not tuned\n";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    assert!(project.read("instances.tune.h").contains("struct scale_float {"));
    // Values are written as a source writes them.
    for (wanted, shown) in [("false, 7", "false, 7"), ("true, WORK * 2", "true, 2"), ("Kind::Odd, 1", "Kind::Odd, 1")] {
        project.write(
            "values.cu",
            &format!(
                "enum class Kind {{ Even, Odd }};\nnamespace ns {{ template <class T, int N> struct Op {{}}; }}\n\
                 //@tune template({wanted}) define(WORK = {{1, 2}}) threads(n) block({{64, 256}}) default(block = 256, WORK = 1)\n\
                 //@tune args(n = 1 << 12, x = out[n])\n\
                 template <bool B, unsigned N, class T = void, Kind K = Kind::Even>\n\
                 __global__ void set(int n, float *x) {{ if (blockIdx.x * blockDim.x + threadIdx.x < n) x[0] = B + N; }}\n\
                 template __global__ void set<true, 7>(int, float *);\n\
                 template __global__ void set<false, 3, ns::Op<char, -4> *, Kind::Odd>(int, float *);\n"
            ),
        );
        let ran = succeed(&mut project.nvtune(&compile("values.cu", "values.o")));
        let made = "this file makes <false, 3, ns::Op<char, -4> *, (Kind)1>, <true, 7, void, (Kind)0>";
        let warning = format!("values.cu(3): warning: `set` has no instance <{shown}>: {made}; it is not tuned\n");
        assert!(ran.stderr.contains(&warning), "{wanted}: {}", ran.stderr);
    }
}

#[test]
fn variables_are_given_contents_by_name() {
    let project = Project::new(&["symbols.cu"]);
    let ran = tuned(&project, "symbols.cu", r#"{"label": "block=64", "time_us": 5.0}, {"time_us": 10.0}"#);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("nvtune: lookup: block=64 (2.00x"), "{}", ran.stderr);
    let text = project.read("symbols.cu");
    for (from, to, message) in [
        ("table = random[64]", "table = random[65]", "error: variable `table` has 1024 bytes, and is given 1040"),
        (
            "table = random[64]",
            "tables = random[64]",
            "warning: the compilation has no variable `tables`; `lookup` is not tuned",
        ),
        (
            "static __device__ double scale",
            "static __device__ decltype(0.0) scale",
            "error: the type of `scale` is not declared in this file",
        ),
    ] {
        project.write("symbols.cu", &text.replace(from, to));
        let ran = tuned(&project, "symbols.cu", r#"{"time_us": 10.0}"#);
        assert!(ran.stderr.contains(message), "{to}: {}", ran.stderr);
    }
    // The model reads them too: the loop takes as many steps as the variable says.
    let cycles = |steps: &str| {
        project.write("symbols.cu", &text.replace("steps = 24", steps));
        succeed(&mut project.nvtune(&compile("symbols.cu", "symbols.o")));
        let record = project.record("symbols.tune.json");
        record["kernels"][0]["configurations"][0]["score"]["c"].as_f64().expect("a number")
    };
    let (few, many) = (cycles("steps = 10"), cycles("steps = 1000"));
    assert!(many > 20.0 * few, "{few} {many}");
}

const TEXTURED: &str = "\
//@tune threads(n) block(64) args(n = 64, t = 0, y = out[n])
__global__ void sampled(int n, cudaTextureObject_t t, float *y) { y[threadIdx.x] = t; }
";

const ARRAYED: &str = "\
struct Four { float v[4]; };
//@tune threads(n) block(64) args(n = 64, p = {v = {1, 2, 3, 4, 5}}, y = out[n])
__global__ void spread(int n, Four p, float *y) { y[threadIdx.x] = p.v[threadIdx.x % 4]; }
";

#[test]
fn structures_are_given_field_by_field() {
    let project = Project::new(&["structs.cu"]);
    let ran = tuned(&project, "structs.cu", r#"{"label": "block=64", "time_us": 5.0}, {"time_us": 10.0}"#);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("nvtune: apply: block=64 (2.00x"), "{}", ran.stderr);
    let header = project.read("structs.tune.h");
    assert!(header.contains("static dim3 grid(unsigned long long plan_n)"), "{header}");
    let text = project.read("structs.cu");
    for (from, to, message) in [
        (
            "skip = 3",
            "skipped = 3",
            "structs.cu(24): error: class \"<unnamed>::Plan::<unnamed>\" has no member \"skipped\"",
        ),
        ("skip = 3", "skip = 1 << 15", "`plan.inner.skip` is of type `short` and cannot be 32768"),
        ("a = {x = 1.5f, y = 2}", "a = 4", "`a` is of type `float2`: give its fields, as in a = {x = 1, y = 1}"),
        (text.as_str(), ARRAYED, "`p.v` is of type `float[4]`, and is given 5 elements"),
        (text.as_str(), TEXTURED, "`t` is a texture, which a comment cannot describe"),
    ] {
        project.write("structs.cu", &text.replace(from, to));
        let ran = tuned(&project, "structs.cu", r#"{"time_us": 10.0}"#);
        assert!(ran.stderr.contains(message), "{to}: {}", ran.stderr);
    }
    // The model reads them too.
    let cycles = |skip: &str| {
        project.write("structs.cu", &text.replace("skip = 3", skip));
        succeed(&mut project.nvtune(&compile("structs.cu", "structs.o")));
        let record = project.record("structs.tune.json");
        record["kernels"][0]["configurations"][0]["score"]["c"].as_f64().expect("a number")
    };
    let (few, many) = (cycles("skip = 10"), cycles("skip = 1000"));
    assert!(many > few + 3000.0, "{few} {many}");
}

#[test]
fn buffers_come_from_files_of_the_sources_folder() {
    let project = Project::new(&["files.cu"]);
    std::fs::create_dir(project.path("data")).expect("a folder");
    let rows = |steps: i32| {
        let bytes: Vec<u8> = (0..1 << 10).flat_map(|_| steps.to_le_bytes()).collect();
        std::fs::write(project.path("data/rows.bin"), bytes).expect("written");
    };
    let npy = |kind: &str, count: usize| {
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({count},), }}\n");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(vec![0; 4 * count]);
        std::fs::write(project.path("data/x.npy"), file).expect("written");
    };
    let entries = r#"{"label": "block=64", "time_us": 5.0}, {"time_us": 10.0}"#;
    npy("<f4", 1 << 10);
    let mut cycles = Vec::new();
    for steps in [10, 1000] {
        rows(steps);
        let ran = tuned(&project, "files.cu", entries);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.starts_with("nvtune: sum: block=64 (2.00x"), "{}", ran.stderr);
        let record = project.record("files.tune.json");
        cycles.push(record["kernels"][0]["configurations"][0]["score"]["c"].as_f64().expect("a number"));
    }
    assert!(cycles[1] > 20.0 * cycles[0], "{cycles:?}");

    // A file that is not as it should be leaves the kernel as nvcc builds it.
    let warned = |message: &str| {
        let ran = tuned(&project, "files.cu", entries);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("files.cu(3): warning: {message}")), "{}", ran.stderr);
        assert!(project.path("files.o").is_file());
    };
    npy("<f8", 1 << 9);
    warned("'data/x.npy' has elements of type <f8, `x` is of type `const float *`; `sum` is not tuned");
    npy("<f4", 1 << 9);
    warned("'data/x.npy' has 512 elements of 4 bytes, and not 1024; `sum` is not tuned");
    std::fs::write(project.path("data/rows.bin"), [1, 2, 3]).expect("written");
    npy("<f4", 1 << 10);
    warned("'data/rows.bin' has 3 bytes of data, which are no elements of 4 bytes; `sum` is not tuned");
    std::fs::remove_file(project.path("data/rows.bin")).expect("removed");
    warned("'data/rows.bin' cannot be read: No such file or directory (os error 2); `sum` is not tuned");
    project.write("files.cu", &project.read("files.cu").replace("data/rows.bin", "/etc/passwd"));
    warned("'/etc/passwd' is not below the source's own folder; NVTUNE_FILES can name a folder to read from");
}
