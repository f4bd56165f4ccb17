//! The processes that descend from one: what a signal must reach that only its ancestor was
//! sent.

/// Lists the living descendants of `ancestor`, children before their own children. The
/// list is empty if the system does not report them (no `/proc`). A process of another
/// session (a daemon such as a compiler cache's) is not followed.
pub fn descendants_of(ancestor: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    let session = own_session();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Ok(text) = std::fs::read(entry.path().join("stat")) else { continue };
        let stat = Stat::parse_stat(&text).filter(|stat| stat.session == session);
        parents.extend(stat.map(|stat| (process, stat.parent)));
    }
    let mut found = vec![ancestor];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        let children = parents.iter().filter(|(_, of)| *of == parent).map(|(process, _)| *process);
        let new: Vec<u32> = children.filter(|process| !found.contains(process)).collect();
        found.extend(new);
        next += 1;
    }
    found.remove(0);
    found
}

/// The number of the own session as `/proc` says it: 0 in a container whose session was begun
/// outside its PID namespace.
fn own_session() -> i32 {
    // SAFETY: the call touches no memory. That of rustix takes 0 for impossible.
    unsafe { libc::getsid(0) }
}

/// What a child has started, as it was at one time.
pub struct Tree(Vec<u32>);

impl Tree {
    pub fn of_child(child: &std::process::Child) -> Self {
        Self(descendants_of(child.id()))
    }

    /// Kills what is left of it.
    pub fn kill_all(&self) {
        let left = self.0.iter().filter(|process| is_running(**process));
        left.for_each(|process| send_signal(*process, libc::SIGKILL));
    }
}

/// Sends a signal to a process; one that is gone is an error that says nothing new.
pub fn send_signal(process: u32, signal: i32) {
    if let Ok(process) = libc::pid_t::try_from(process) {
        // SAFETY: a signal to another process touches no memory.
        unsafe { libc::kill(process, signal) };
    }
}

/// Whether a process is there and has not ended.
pub fn is_running(process: u32) -> bool {
    std::fs::read(format!("/proc/{process}/stat")).is_ok_and(|text| Stat::parse_stat(&text).is_some())
}

/// What `/proc/PID/stat` tells of a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    session: i32,
}

impl Stat {
    /// Reads the text; the name in it is in brackets and may hold anything. A dead process that
    /// waits to be collected is none of ours to care for.
    fn parse_stat(text: &[u8]) -> Option<Self> {
        let end = memchr::memrchr(b')', text)?;
        let mut words = std::str::from_utf8(&text[end + 1..]).ok()?.split_ascii_whitespace();
        let state = words.next()?;
        let parent = words.next()?.parse().ok()?;
        let session = words.nth(1)?.parse().ok()?;
        (state != "Z").then_some(Self { parent, session })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn children_are_found_and_daemons_are_not() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 60 & setsid sleep 60 & echo; wait"]).stdout(Stdio::piped());
        let mut child = shell.spawn().expect("a shell");
        std::io::Read::read(child.stdout.as_mut().expect("a pipe"), &mut [0]).expect("it has started both");
        // The daemon has its own session once `setsid` has run.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while descendants_of(child.id()).len() > 1 && std::time::Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let found = Tree::of_child(&child);
        let daemon = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).expect("its children");
        let daemon = daemon.split_ascii_whitespace().filter_map(|process| process.parse().ok());
        daemon.for_each(|process| send_signal(process, libc::SIGKILL));
        child.wait().expect("it ends");
        assert_eq!(found.0.len(), 1, "{:?}", found.0);
    }

    /// As in a container whose first process was started from outside.
    #[test]
    fn children_are_found_in_a_session_of_another_pid_namespace() {
        const NAMESPACE: [&str; 3] = ["--pid", "--fork", "--mount-proc"];
        const AS_ROOT: [&str; 2] = ["--user", "--map-root-user"];
        let unshared = |program: &str, arguments: &[&str]| {
            let mut command = Command::new("unshare");
            if !rustix::process::geteuid().is_root() {
                command.args(AS_ROOT);
            }
            command.args(NAMESPACE).arg(program).args(arguments).output()
        };
        // A system may forbid namespaces; then there is no such session either.
        if unshared("true", &[]).is_ok_and(|ran| ran.status.success()) {
            let program = std::env::current_exe().expect("a path");
            let test = "process::process_tree::tests::children_are_found_and_daemons_are_not";
            let ran = unshared(&program.to_string_lossy(), &["--exact", test]).expect("it starts");
            let text = String::from_utf8_lossy(&ran.stdout);
            assert!(ran.status.success() && text.contains("1 passed"), "{text}");
        }
    }

    #[test]
    fn parent_and_session_stand_behind_the_name_whatever_that_is() {
        for (text, found) in [
            ("12 (sh) S 7 12 11 0", Some(Stat { parent: 7, session: 11 })),
            ("12 (a) b) (c) R 8 1 9", Some(Stat { parent: 8, session: 9 })),
            ("12 (sh) Z 7 12 12", None),
            ("12 (sh) S 7", None),
            ("12 (sh", None),
            ("", None),
        ] {
            assert_eq!(Stat::parse_stat(text.as_bytes()), found, "{text}");
        }
    }
}
