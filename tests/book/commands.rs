//! Every command whose output a page shows is run, and prints that.
//!
//! A block of `console` is a line `$ COMMAND` and what it prints, any number of times. The blocks of a page are run one after the other in
//! one folder. With UPDATE_EXPECT=1 the pages are changed instead.

use super::super::support::book::{assert_block, blocks, page, root};
use super::super::support::toolkit::nvcc;
use nvtune::record::RecordedSpace;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder in which the commands of a page are run.
struct Session {
    folder: tempfile::TempDir,
    environment: Vec<(&'static str, PathBuf)>,
}

impl Session {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("bin")).expect("a folder");
        std::fs::create_dir_all(folder.path().join("project")).expect("a folder");
        symlink(env!("CARGO_BIN_EXE_nvtune"), folder.path().join("bin/nvtune")).expect("linked");
        let environment = vec![
            ("NVTUNE_NVCC", nvcc()),
            ("NVTUNE_CACHE_DIR", folder.path().join("cache")),
            ("NVTUNE_CACHE_SIZE", PathBuf::from("1G")),
            // With C++17, CUDA's headers include half as much again.
            ("NVCC_PREPEND_FLAGS", PathBuf::from("-std=c++14")),
        ];
        Self { folder, environment }
    }

    fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn path(&self) -> std::ffi::OsString {
        let old = std::env::var_os("PATH").unwrap_or_default();
        let folders = [self.folder.path().join("bin"), nvcc().parent().expect("a folder").to_owned()];
        std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&old))).expect("no colons")
    }

    /// What a command prints, all of it, as it would be on a machine with the usual folders.
    fn output(&self, line: &str) -> String {
        let mut command = Command::new("bash");
        command.args(["-c", line]).current_dir(self.project()).env("PATH", self.path());
        for name in
            std::env::vars_os().map(|(name, _)| name).filter(|name| name.to_string_lossy().starts_with("NVTUNE"))
        {
            command.env_remove(name);
        }
        for name in ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "CUDA_VISIBLE_DEVICES", "MAKEFLAGS"] {
            command.env_remove(name);
        }
        command.envs(self.environment.iter().map(|(name, value)| (*name, value)));
        let Output { stdout, stderr, .. } = command.output().expect("bash starts");
        let text = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        let project = self.project().canonicalize().expect("it is there");
        let real = nvcc();
        text.lines()
            // Settings of the test, which a user does not have.
            .filter(|line| !line.starts_with("set     NVTUNE"))
            .map(|line| {
                let line =
                    line.replace(": as recorded", "").replace(&real.display().to_string(), "/usr/local/cuda/bin/nvcc");
                let line =
                    line.replace(&self.folder.path().join("cache").display().to_string(), "/home/you/.cache/nvtune");
                line.replace(&project.display().to_string(), "/home/you/nbody") + "\n"
            })
            .collect()
    }

    /// Runs the commands of a block; returns the block with what they print now.
    fn run(&self, block: &str) -> String {
        let mut commands: Vec<(&str, String)> = Vec::new();
        for line in block.lines() {
            match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(command), _) => commands.push((command, String::new())),
                (None, Some((_, shown))) => *shown += &format!("{line}\n"),
                (None, None) => panic!("a block begins with a command: {block}"),
            }
        }
        let run = |(command, shown): &(&str, String)| {
            let printed = self.output(command);
            let same = without_seconds(&printed) == without_seconds(shown);
            format!("$ {command}\n{}", if same { shown } else { &printed })
        };
        commands.iter().map(run).collect()
    }
}

/// The text without what each run has anew: seconds.
fn without_seconds(text: &str) -> String {
    let words = text.split_inclusive(char::is_whitespace).collect::<Vec<_>>();
    let mut kept = String::new();
    for (index, word) in words.iter().enumerate() {
        let is_count = word.trim_end().parse::<f64>().is_ok();
        let has_unit = words.get(index + 1).is_some_and(|next| matches!(next.trim_end_matches([',', '\n', ' ']), "s"));
        kept += if is_count && has_unit { "N " } else { word };
    }
    kept
}

fn assert_commands(path: &str, session: &Session) {
    let text = page(path);
    let blocks = blocks(&text, "console");
    assert!(!blocks.is_empty(), "{path}");
    for block in blocks {
        assert_block(path, block, &session.run(block));
    }
}

/// Puts the suite's N-body program into the folder, and its times on an H200 in place of a GPU.
fn with_h200(session: &mut Session) {
    let project = session.project();
    let kernels = root().join("kernels");
    std::fs::copy(kernels.join("nbody/nbody.cu"), project.join("nbody.cu")).expect("copied");
    symlink(kernels.join("common"), session.folder.path().join("common")).expect("linked");
    let replay = session.folder.path().join("h200.json");
    std::fs::write(&replay, recording(&kernels.join("results/h200/nbody.json.gz"))).expect("written");
    session.environment.push(("NVTUNE_REPLAY", replay));
}

/// The times of a recorded space as a recording for NVTUNE_REPLAY.
fn recording(path: &Path) -> String {
    let space = RecordedSpace::read(path).expect("a recorded space");
    let json = serde_json::to_value(&space).expect("it is JSON");
    let configurations = json["configurations"].as_array().expect("a list");
    let timed = |configuration: &serde_json::Value| {
        let same = |other: &&serde_json::Value| {
            other["variant"] == configuration["variant"]
                && other["launch"] == configuration["launch"]
                && other["time"].is_object()
        };
        let time = &configurations.iter().find(same)?["time"];
        let cap = configuration["cap"].as_u64()?;
        let label = if cap == 0 { String::new() } else { format!("regs={cap}") };
        // Without its spread: how often a point is sampled depends on the machine, and no median should.
        Some(serde_json::json!({"block": configuration["block"], "label": label, "time_us": time["median_us"]}))
    };
    // Those with a cap first: an entry without a label answers for every cap.
    let (mut capped, uncapped): (Vec<_>, Vec<_>) =
        configurations.iter().filter_map(timed).partition(|entry| entry["label"] != "");
    capped.extend(uncapped);
    let device =
        serde_json::json!({"name": json["device"]["name"], "compute_capability": 90, "driver": 13000, "sms": 132});
    serde_json::json!({"device": device, "entries": capped}).to_string()
}

#[test]
#[ignore = "long: in the full run"]
fn first_screen_shows_the_line_of_the_n_body_program() {
    let mut session = Session::new();
    with_h200(&mut session);
    assert_commands("README.md", &session);
}

#[test]
#[ignore = "long: in the full run"]
fn report_page_shows_the_report_of_the_n_body_program() {
    let mut session = Session::new();
    with_h200(&mut session);
    assert_commands("docs/report.md", &session);
}

/// The program of the quick start in a folder, on a machine without a GPU.
fn quick_start() -> Session {
    let mut session = Session::new();
    // No GPU, whatever the machine has.
    let none = session.folder.path().join("none.json");
    std::fs::write(&none, "{\"start\": \"no-device\", \"entries\": []}").expect("written");
    session.environment.push(("NVTUNE_REPLAY", none));
    let text = page("docs/quick-start.md");
    let sources = blocks(&text, "cuda");
    assert_eq!(sources.len(), 1);
    std::fs::write(session.project().join("nbody.cu"), sources[0]).expect("written");
    session
}

/// Builds the program of the quick start by the build file and the commands of a recipe, those before its first section.
fn assert_recipe_builds(recipe: &str, kind: &str, build_file: &str, program: &str) {
    let session = quick_start();
    let text = page(recipe);
    let (first, _) = text.split_once("\n## ").expect("a section");
    // The last block of a section ends with it.
    let first = format!("{first}\n");
    std::fs::write(session.project().join(build_file), blocks(&first, kind)[0]).expect("written");
    let commands = blocks(&first, "sh");
    assert!(!commands.is_empty(), "{recipe}");
    for command in commands {
        let object = "find . -name 'nbody*.o' -delete";
        let said = session.output(&format!("set -e\nexport HOME=\"$PWD/..\"\n{object}\n{command}test -x {program}"));
        assert!(
            said.contains("nvtune: nbody: block=256 regs=72 (1.63x over the baseline, predicted)"),
            "{command}{said}"
        );
        assert!(session.project().join(program).is_file(), "{command}{said}");
    }
}

#[test]
#[ignore = "long: in the full run"]
fn make_recipe_builds_the_program_of_the_quick_start() {
    assert_recipe_builds("docs/recipes/make.md", "make", "Makefile", "nbody");
}

#[test]
fn cmake_recipe_builds_the_program_of_the_quick_start() {
    if which::which("cmake").is_ok() {
        assert_recipe_builds("docs/recipes/cmake.md", "cmake", "CMakeLists.txt", "build/nbody");
    }
}

#[test]
fn quick_start_prints_what_it_shows() {
    assert_commands("docs/quick-start.md", &quick_start());
}

#[test]
fn complete_example_builds_with_nvcc_and_with_nvtune() {
    let session = Session::new();
    let text = page("README.md");
    let complete = blocks(&text, "cuda").into_iter().find(|block| block.contains("void run(")).expect("the example");
    std::fs::write(session.project().join("saxpy.cu"), complete).expect("written");
    let build = |line: &str| {
        let said =
            session.output(&format!("{line} -Werror all-warnings -arch=sm_90 -c saxpy.cu -o saxpy.o && echo built"));
        assert!(said.starts_with("built\n"), "{said}");
        said
    };
    let real = nvcc();
    assert_eq!(build(&real.display().to_string()), "built\n");
    assert!(!session.project().join("saxpy.tune.h").exists());
    let said = build("NVTUNE=static nvtune nvcc");
    assert!(said.contains("nvtune: saxpy: "), "{said}");
    assert!(session.project().join("saxpy.tune.h").exists());
    // By the header that is there now, too.
    assert_eq!(build(&real.display().to_string()), "built\n");
}
