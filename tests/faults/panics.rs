//! A panic in the process of a build: what is half done is undone, and plain nvcc follows.

use nvtune::process::{self, Fallback, TemporaryFolder};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of a process that panics; set for those that the test starts of itself. `STRICT` is set where warnings are errors.
const FOLDER: &str = "NVTUNE_TEST_PANIC";
const STRICT: &str = "NVTUNE_TEST_PANIC_STRICT";

/// One of the processes: has a temporary folder and a tool that runs, and panics in a thread beside it.
#[test]
fn process_that_panics() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    process::set_fallback(Some(Fallback {
        nvcc: "/bin/echo".into(),
        arguments: vec!["plain".into()],
        undo: Box::new(move || std::fs::write(folder.join("undone"), "").expect("written")),
        strict: std::env::var_os(STRICT).map(|_| 1),
    }));
    let _temporary = TemporaryFolder::new().expect("a folder");
    let mut tool = process::spawn_child(Command::new("sleep").arg("1000")).expect("it starts");
    process::uninterrupted(|| {
        std::thread::scope(|scope| {
            scope.spawn(|| panic!("on purpose,\nin two lines"));
        });
    });
    tool.wait().expect("it ends");
}

/// Number of processes that have `folder` for their TMPDIR.
fn running(folder: &Path) -> usize {
    let mark = format!("TMPDIR={}", folder.display());
    let processes = std::fs::read_dir("/proc").expect("Linux").flatten();
    let is_its = |path: PathBuf| {
        std::fs::read(path.join("environ")).is_ok_and(|text| memchr::memmem::find(&text, mark.as_bytes()).is_some())
    };
    processes.filter(|entry| is_its(entry.path())).count()
}

#[test]
fn panic_undoes_and_hands_over_to_nvcc() {
    for (strict, code, follows) in [(None, 0, true), (Some("1"), 1, false)] {
        let folder = tempfile::tempdir().expect("a folder");
        let temporary = folder.path().join("tmp");
        std::fs::create_dir(&temporary).expect("a folder");
        let mut command = Command::new(std::env::current_exe().expect("the test knows its path"));
        command.args(["--exact", "faults::panics::process_that_panics", "--nocapture"]);
        command.env(FOLDER, folder.path()).env("TMPDIR", &temporary).envs(strict.map(|strict| (STRICT, strict)));
        let output = command.output().expect("it starts");
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert_eq!(stdout.lines().any(|line| line == "plain"), follows, "{stdout}");
        assert!(stderr.contains("on purpose, in two lines") && stderr.lines().count() == 1, "{stderr}");
        assert!(folder.path().join("undone").exists());
        assert_eq!(std::fs::read_dir(&temporary).expect("there").count(), 0, "a temporary folder stays");
        assert_eq!(running(&temporary), 0, "the tool stays");
    }
}
