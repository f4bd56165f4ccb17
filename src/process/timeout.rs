//! A tool that nvtune runs for what it says, and is stopped where it does not end: a build must
//! not depend on what it could do without.

use super::process_tree;
use super::process_tree::send_signal;
use super::signals::{spawn_child, wait_where_interrupted};
use super::tool::Tool;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Child, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long a tool may take where `NVTUNE_PATIENCE` does not say, in seconds: many times what
/// the slowest sources need.
pub const PATIENCE_S: f64 = 900.0;

/// How long the system may take to end what was killed.
const KILL_GRACE: Duration = Duration::from_secs(5);

/// How often a tool is looked at that has closed its outputs and not ended yet.
const PAUSE: Duration = Duration::from_millis(2);

/// The same where its outputs are open, on a system that cannot wait for its end.
const PAUSE_WITHOUT_END: Duration = Duration::from_millis(20);

/// Longest single wait: a lost wake-up costs no more.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long a tool's outputs are read after its end, where a program that it left behind holds
/// them. What the tool wrote itself is in the pipe by then.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Most bytes of one output. Tools write their results into files; a dry run of 1,000 sources
/// takes some 10 MiB.
const MOST_OUTPUT: usize = 64 << 20;

/// Returns how long a tool may take: `NVTUNE_PATIENCE`, else `PATIENCE_S`.
pub fn tool_patience() -> Duration {
    static FOUND: OnceLock<Duration> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let given = std::env::var("NVTUNE_PATIENCE").ok().and_then(|text| parse_seconds(&text));
        Duration::from_secs_f64(given.unwrap_or(PATIENCE_S))
    })
}

/// Reads a value of `NVTUNE_PATIENCE`.
pub fn parse_seconds(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0 && *seconds < 1e9)
}

/// As [`Command::output`], with standard input empty; a tool that a signal ended is never heard
/// of. `None` where it has not ended within `limit`: it is killed then, with all that it
/// started.
///
/// Both pipes are read on this thread, until the tool has ended: another program that still
/// holds them is not waited for.
///
/// # Errors
/// Where the tool cannot be started or heard, or writes more than `MOST_OUTPUT`: then it is
/// killed.
pub fn output_within(tool: &mut Tool, limit: Duration) -> io::Result<Option<Output>> {
    let deadline = Instant::now() + limit;
    // This thread, whose end the tool would not outlive, waits for it.
    let command = tool.ending_with_parent();
    let mut child = spawn_child(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let heard = read_output(&mut child, deadline);
    wait_where_interrupted();
    if !matches!(heard, Ok(Some(_))) {
        kill_tool(&mut child)?;
    }
    heard
}

fn read_output(child: &mut Child, deadline: Instant) -> io::Result<Option<Output>> {
    let mut pipes = [Pipe::new(child.stdout.take()), Pipe::new(child.stderr.take())];
    let end = PidFd::new(child);
    let mut ended: Option<(ExitStatus, Instant)> = None;
    let mut was_heard = true;
    loop {
        let is_closed = pipes.iter().all(|pipe| pipe.file.is_none());
        if ended.is_none() {
            ended = child.try_wait()?.map(|status| (status, Instant::now()));
        }
        let now = Instant::now();
        match ended {
            Some((status, since)) if is_closed || !was_heard && now >= since + LAST_WORDS || now >= deadline => {
                let [stdout, stderr] = pipes.map(|pipe| pipe.bytes);
                return Ok(Some(Output { status, stdout, stderr }));
            }
            None if now >= deadline => return Ok(None),
            _ => {}
        }
        let pause = match ended {
            Some((_, since)) => (since + LAST_WORDS).saturating_duration_since(now),
            None if end.is_some() => deadline.saturating_duration_since(now).min(LONGEST_PAUSE),
            None if is_closed => PAUSE,
            None => PAUSE_WITHOUT_END,
        };
        let end = end.as_ref().filter(|_| ended.is_none());
        was_heard = read_what_is_there(&mut pipes, end, pause)?;
    }
}

/// What a tool writes to one of its outputs.
struct Pipe {
    /// `None` once it is closed.
    file: Option<File>,
    bytes: Vec<u8>,
}

impl Pipe {
    fn new(stream: Option<impl Into<OwnedFd>>) -> Self {
        Self { file: stream.map(|stream| File::from(stream.into())), bytes: Vec::new() }
    }

    fn read_available(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut part = [0; 1 << 16];
        match file.read(&mut part) {
            Ok(0) => self.file = None,
            Ok(count) => self.bytes.extend_from_slice(part.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if self.bytes.len() > MOST_OUTPUT {
            return Err(io::Error::other(format!("it writes more than {} MiB", MOST_OUTPUT >> 20)));
        }
        Ok(())
    }
}

/// A descriptor by which the end of a process can be waited for.
struct PidFd(OwnedFd);

impl PidFd {
    /// `None` where the system has none (before Linux 5.3).
    fn new(child: &Child) -> Option<Self> {
        let process = libc::pid_t::try_from(child.id()).ok()?;
        // SAFETY: the call takes two numbers, and gives a descriptor that nothing else owns, or -1.
        let file = unsafe { libc::syscall(libc::SYS_pidfd_open, process, 0) };
        let file = i32::try_from(file).ok().filter(|&file| file >= 0)?;
        // SAFETY: as above.
        Some(Self(unsafe { OwnedFd::from_raw_fd(file) }))
    }
}

/// Waits until a pipe has something or the process has ended, at most `pause`; reads once of
/// each pipe that has, and tells whether one had.
fn read_what_is_there(pipes: &mut [Pipe; 2], end: Option<&PidFd>, pause: Duration) -> io::Result<bool> {
    let files = pipes.iter().map(|pipe| pipe.file.as_ref().map(AsRawFd::as_raw_fd));
    let files = files.chain([end.map(|end| end.0.as_raw_fd())]);
    // A negative number is passed over.
    let mut asked: Vec<libc::pollfd> =
        files.map(|file| libc::pollfd { fd: file.unwrap_or(-1), events: libc::POLLIN, revents: 0 }).collect();
    let milliseconds = i32::try_from(pause.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
    // SAFETY: the pointer and the number are those of a living array.
    if unsafe { libc::poll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, milliseconds) } < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::Interrupted { Ok(true) } else { Err(error) };
    }
    let mut had_something = false;
    for (pipe, answer) in pipes.iter_mut().zip(&asked) {
        if answer.revents != 0 {
            had_something = true;
            pipe.read_available()?;
        }
    }
    Ok(had_something)
}

/// Kills the tool and all that it started, and collects it.
fn kill_tool(child: &mut Child) -> io::Result<()> {
    let deadline = Instant::now() + KILL_GRACE;
    while child.try_wait()?.is_none() && Instant::now() < deadline {
        // What it started would no longer be known as such once it is gone.
        process_tree::descendants_of(child.id())
            .into_iter()
            .rev()
            .for_each(|process| send_signal(process, libc::SIGKILL));
        if process_tree::descendants_of(child.id()).is_empty() {
            child.kill()?;
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str, limit: Duration) -> Option<Output> {
        output_within(&mut Tool::shell(text.as_ref()), limit).expect("it starts")
    }

    #[test]
    fn program_left_behind_does_not_hold_up_its_tool() {
        let begin = Instant::now();
        let heard = shell("sleep 20 & echo $!; exit 3", Duration::from_secs(60)).expect("it ended");
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
        assert_eq!(heard.status.code(), Some(3));
        let process: u32 = String::from_utf8_lossy(&heard.stdout).trim().parse().expect("its number");
        send_signal(process, libc::SIGKILL);
    }

    #[test]
    fn tool_that_writes_without_end_is_stopped() {
        let heard = output_within(&mut Tool::shell("yes".as_ref()), Duration::from_secs(60));
        assert_eq!(heard.expect_err("too much").to_string(), "it writes more than 64 MiB");
    }

    #[test]
    fn what_ends_in_time_is_heard_and_what_does_not_is_stopped_with_all_that_it_started() {
        let long = Duration::from_secs(60);
        let heard = shell("echo out; echo err >&2; head -c 200000 /dev/zero; exit 3", long).expect("it ended");
        assert_eq!(
            (heard.status.code(), heard.stdout.len(), heard.stderr.as_slice()),
            (Some(3), 200_004, &b"err\n"[..])
        );
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("process");
        for text in ["sleep 1000 & echo $! > FILE; wait", "exec > FILE 2>&1; sleep 1000 & echo $!; wait"] {
            let text = text.replace("FILE", &place.to_string_lossy());
            assert!(shell(&text, Duration::from_millis(500)).is_none(), "{text}");
            let process = std::fs::read_to_string(&place).expect("it was started");
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.trim())).unwrap_or_default();
            // One whose parent is gone waits as a zombie for whoever collects it.
            assert!(stat.is_empty() || stat.contains(") Z "), "{text}: {stat}");
        }
    }
}
