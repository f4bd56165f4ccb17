//! A tool that nvtune runs for what it says, and is stopped where it does not end: a build must not hang on what it could do without.

use super::process_tree;
use super::signals::{send, spawn, wait_where_interrupted};
use std::io::{self, Read};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};

/// How long a tool may take where `NVTUNE_PATIENCE` does not say, in seconds: many times what the slowest sources need.
pub const PATIENCE_S: f64 = 900.0;

/// How long the system may take to end what was killed.
const KILL_GRACE: Duration = Duration::from_secs(5);

/// How often a tool is looked at that has closed its outputs and not ended yet.
const PAUSE: Duration = Duration::from_millis(2);

/// How long a tool may take: `NVTUNE_PATIENCE`, else [`PATIENCE_S`].
pub fn patience() -> Duration {
    static FOUND: OnceLock<Duration> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let given = std::env::var("NVTUNE_PATIENCE").ok().and_then(|text| seconds(&text));
        Duration::from_secs_f64(given.unwrap_or(PATIENCE_S))
    })
}

/// A value of `NVTUNE_PATIENCE`.
pub fn seconds(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0 && *seconds < 1e9)
}

/// As [`Command::output`], with standard input empty; a tool that a signal ended is never heard of. `None` where it has not ended
/// within `limit`: it is killed then, with all that it started.
pub fn output(command: &mut Command, limit: Duration) -> io::Result<Option<Output>> {
    let deadline = Instant::now() + limit;
    let mut child = spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))?;
    let outputs = (read(child.stdout.take()), read(child.stderr.take()));
    let ended = ended(&mut child, &outputs, deadline);
    wait_where_interrupted();
    match ended? {
        Some(output) => Ok(Some(output)),
        None => kill(&mut child).map(|()| None),
    }
}

type Received = mpsc::Receiver<io::Result<Vec<u8>>>;

/// Reads to the end in a thread of its own: a full pipe would block the tool.
fn read(stream: Option<impl Read + Send + 'static>) -> Received {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stream.map_or(Ok(0), |mut stream| stream.read_to_end(&mut bytes));
        // Nobody waits for a tool that was killed.
        let _ = sender.send(read.map(|_| bytes));
    });
    receiver
}

fn ended(child: &mut Child, outputs: &(Received, Received), deadline: Instant) -> io::Result<Option<Output>> {
    let within = |received: &Received| received.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok();
    let (Some(stdout), Some(stderr)) = (within(&outputs.0), within(&outputs.1)) else { return Ok(None) };
    let (stdout, stderr) = (stdout?, stderr?);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(Output { status, stdout, stderr }));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Kills the tool and all that it started, and collects it.
fn kill(child: &mut Child) -> io::Result<()> {
    let deadline = Instant::now() + KILL_GRACE;
    while child.try_wait()?.is_none() && Instant::now() < deadline {
        // What it started would no longer be known as such once it is gone.
        process_tree::of(child.id()).into_iter().rev().for_each(|process| send(process, libc::SIGKILL));
        if process_tree::of(child.id()).is_empty() {
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
        output(Command::new("sh").args(["-c", text]), limit).expect("it starts")
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
