//! The line that a terminal shows while kernels are tuned.

use super::project::{Project, compile, succeed};
use std::process::Command;

/// What a build prints on a terminal: one of a kernel each of whose samples takes 0.1 s.
fn on_terminal(set: &[(&str, &str)]) -> Option<String> {
    by_shell_line(set, |build| build.to_owned())
}

/// The same where a shell runs what `line` makes of the build's words.
fn by_shell_line(set: &[(&str, &str)], shell_line: impl Fn(&str) -> String) -> Option<String> {
    let script = which::which("script").ok()?;
    let project = Project::new(&["saxpy.cu"]);
    let device = r#"{"name": "NVIDIA H200", "compute_capability": 90, "driver": 13000, "sms": 132}"#;
    let entries = r#"[{"block": [512, 1, 1], "time_us": 10.0, "pause_ms": 20}, {"time_us": 15.0, "pause_ms": 20}]"#;
    project.write("recorded.json", &format!(r#"{{"device": {device}, "entries": {entries}}}"#));
    let mut build = project.nvtune(&compile("saxpy.cu", "saxpy.o"));
    build.env("NVTUNE", "measure").env("NVTUNE_REPLAY", "recorded.json").env("TERM", "xterm");
    // Enough for the line to be shown, which it is after a second.
    build.env("NVTUNE_CANDIDATES", "8");
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "MAKEFLAGS"] {
        build.env_remove(name);
    }
    build.envs(set.iter().copied());
    let line = std::iter::once(build.get_program()).chain(build.get_args());
    let line: Vec<String> = line.map(|word| word.to_string_lossy().into_owned()).collect();
    let mut command = Command::new(script);
    command.args(["-qec", &shell_line(&line.join(" ")), "/dev/null"]).current_dir(project.path(""));
    for (name, value) in build.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let said = succeed(&mut command).stdout;
    assert!(said.contains("nvtune: saxpy: block="), "{said:?}");
    Some(said)
}

#[test]
fn terminal_shows_stage_count_and_best_in_one_line() {
    let Some(said) = on_terminal(&[("NO_COLOR", "1")]) else { return };
    let lines: Vec<&str> = said.split("\r\u{1b}[K").collect();
    assert!(lines.len() > 3, "{said:?}");
    // Each update is one line that the next one takes the place of.
    let updates = &lines[1..lines.len() - 1];
    assert!(updates.iter().all(|line| !line.contains('\n')), "{said:?}");
    assert!(
        updates.iter().any(|line| line.starts_with("nvtune: saxpy: ") && line.contains(" timed, best ")),
        "{said:?}"
    );
    assert!(updates.iter().all(|line| line.is_empty() || line.ends_with('\r')), "{said:?}");
    // The result stands alone in its line.
    assert!(lines[lines.len() - 1].starts_with("nvtune: saxpy: block="), "{said:?}");
}

#[test]
#[ignore = "long: in the full run"]
fn name_is_bold_where_colours_are_wanted() {
    let Some(said) = on_terminal(&[]) else { return };
    assert!(said.contains("nvtune: \u{1b}[1msaxpy\u{1b}[0m: "), "{said:?}");
}

#[test]
#[ignore = "long: in the full run"]
fn progress_is_off_under_make_s_and_by_the_variable() {
    // They wait for the samples most of the time.
    std::thread::scope(|threads| {
        for set in [("NVTUNE_PROGRESS", "0"), ("MAKEFLAGS", "s"), ("TERM", "dumb")] {
            threads.spawn(move || {
                let Some(said) = on_terminal(&[set]) else { return };
                assert!(!said.contains('\u{1b}'), "{set:?}: {said:?}");
            });
        }
    });
}

#[test]
#[ignore = "long: in the full run"]
fn progress_is_shown_under_make_and_not_next_to_other_jobs() {
    let make = |jobs: &str| {
        let rules = |build: &str| {
            format!(
                "printf 'all: saxpy.o other\\nsaxpy.o:\\n\\t@{build}\\nother:\\n\\t@sleep 2; echo made\\n' > Makefile && make {jobs}"
            )
        };
        by_shell_line(&[("NO_COLOR", "1")], rules)
    };
    if which::which("make").is_err() {
        return;
    }
    let (Some(alone), Some(parallel)) = (make(""), make("-j2")) else { return };
    assert!(alone.contains("\r\u{1b}[Knvtune: saxpy: "), "{alone:?}");
    assert!(!parallel.contains('\u{1b}') && parallel.contains("made\r\n"), "{parallel:?}");
}
