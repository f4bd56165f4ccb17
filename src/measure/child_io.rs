//! The caller's end of a measuring process: starts it, exchanges messages with it under time
//! limits, ends it.
//!
//! Invariant: no call here waits longer than its limit, and the process is ended and
//! collected when the link is dropped.

use super::protocol;
use super::protocol::{Frame, Reply, VERSION};
use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// How long to wait for the process to end after its standard input is closed, and after it was
/// killed.
const EXIT_GRACE: Duration = Duration::from_millis(500);
const KILL_GRACE: Duration = Duration::from_secs(5);

/// Maximum number of bytes of standard error that are kept for messages.
const MAX_STDERR_BYTES: usize = 2048;

/// Bytes that are written at a time.
const WRITE_CHUNK: usize = 1 << 20;

/// Maximum number of messages that wait to be read.
const MAX_QUEUED_REPLIES: usize = 1024;

/// Maximum number of lines before the protocol's first that are ignored: login shells print a
/// greeting.
const GREETING_LINES: usize = 100;

/// What was received from the process.
#[derive(Debug)]
pub(super) enum Incoming {
    Reply(Reply),
    /// The process is an nvtune with another version of the protocol; with its first line.
    Version(u32, String),
    /// The output is not of the protocol; with its beginning.
    NotProtocol(String),
    /// The process closed its output.
    Closed,
    /// Nothing was received within the limit.
    Timeout,
}

/// A running measuring process.
pub(super) struct ChildIo {
    child: Option<Child>,
    /// Queue of the writing thread, so that a process that does not read blocks nobody; `None`
    /// after its standard input was closed.
    requests: Option<mpsc::Sender<Frame>>,
    replies: mpsc::Receiver<Incoming>,
    /// Bytes that the process has read.
    bytes_taken: Arc<AtomicU64>,
    stderr_tail: Arc<Mutex<VecDeque<u8>>>,
    /// Since when it has sent only [`Reply::Working`].
    busy_since: Cell<Option<Instant>>,
}

impl ChildIo {
    /// Starts `command`; the error is that of starting it.
    pub fn start(mut command: Command) -> io::Result<ChildIo> {
        let mut child =
            crate::process::spawn_child(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (requests, to_write) = mpsc::channel::<Frame>();
        // Bounded: a process that says more than anybody reads waits.
        let (sender, replies) = mpsc::sync_channel(MAX_QUEUED_REPLIES);
        let (bytes_taken, stderr_tail) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(VecDeque::new())));
        // Made first: where a thread cannot be started, its drop ends the process.
        let child_io = ChildIo {
            child: Some(child),
            requests: Some(requests),
            replies,
            bytes_taken,
            stderr_tail,
            busy_since: Cell::new(None),
        };
        let thread = |work: Box<dyn FnOnce() + Send>| thread::Builder::new().spawn(work).map(drop);
        if let Some(stdin) = stdin {
            let bytes_taken = Arc::clone(&child_io.bytes_taken);
            thread(Box::new(move || write_all(stdin, to_write, &bytes_taken)))?;
        }
        if let Some(stdout) = stdout {
            thread(Box::new(move || {
                let mut stdout = BufReader::new(stdout);
                let last = read_replies(&mut stdout, &sender);
                // The receiver may be gone; nobody listens then.
                let _ = sender.send(last);
                let _ = io::copy(&mut stdout, &mut io::sink());
            }))?;
        }
        if let Some(stderr) = stderr {
            let stderr_tail = Arc::clone(&child_io.stderr_tail);
            thread(Box::new(move || keep_last(stderr, &stderr_tail)))?;
        }
        Ok(child_io)
    }

    /// Queues a frame. Nothing is reported here: a process that cannot take them
    /// shows in what it says.
    pub fn send(&self, frame: Frame) {
        if let Some(requests) = &self.requests {
            let _ = requests.send(frame);
        }
    }

    /// Bytes that the process has read so far: while they grow, it is only slow.
    pub fn bytes_taken(&self) -> u64 {
        self.bytes_taken.load(Ordering::Relaxed)
    }

    /// Waits for the next message, at most `limit`.
    pub fn receive(&self, limit: Duration) -> Incoming {
        match self.replies.recv_timeout(limit) {
            Ok(incoming) if self.is_busy_too_long(&incoming) => Incoming::Timeout,
            Ok(incoming) => incoming,
            Err(mpsc::RecvTimeoutError::Timeout) => Incoming::Timeout,
            Err(mpsc::RecvTimeoutError::Disconnected) => Incoming::Closed,
        }
    }

    /// Tells whether it has sent only [`Reply::Working`] for longer than a tool may take. That
    /// counts as a timeout.
    fn is_busy_too_long(&self, incoming: &Incoming) -> bool {
        if !matches!(incoming, Incoming::Reply(Reply::Working)) {
            self.busy_since.set(None);
            return false;
        }
        let since = self.busy_since.get().unwrap_or_else(Instant::now);
        self.busy_since.set(Some(since));
        since.elapsed() > crate::process::tool_patience()
    }

    /// Ends the process; returns its status and the end of its standard error.
    pub fn end(mut self) -> String {
        let status = self.stop();
        // Standard error is read in a thread; what the process wrote last may still be on its way.
        thread::sleep(Duration::from_millis(5));
        // One that a signal to nvtune ended, or to all processes of the terminal, tells nothing of
        // what it ran.
        crate::process::wait_where_interrupted();
        let kept = self.stderr_tail.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let how = status.map_or_else(|| "it does not end".to_owned(), |status| status.to_string());
        match text.trim() {
            "" => how,
            text => format!("{how}: {text}"),
        }
    }

    /// Closes the standard input of the process, which ends it, or kills it. Returns `None` if it
    /// does not end in time.
    fn stop(&mut self) -> Option<ExitStatus> {
        let mut child = self.child.take()?;
        // A runner may be a script: what it started ends with it.
        let tree = crate::process::Tree::of_child(&child);
        self.requests = None;
        if let Some(status) = wait(&mut child, EXIT_GRACE) {
            tree.kill_all();
            return Some(status);
        }
        tree.kill_all();
        // It may have ended just now, which is what is wanted.
        let _ = child.kill();
        let status = wait(&mut child, KILL_GRACE);
        if status.is_none() {
            // The driver is still taking down what it ran. It must be collected all the same.
            let _ = thread::Builder::new().spawn(move || child.wait());
        }
        status
    }
}

impl Drop for ChildIo {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Writes what is queued until the process or the queue is gone.
fn write_all(mut stdin: impl Write, queue: mpsc::Receiver<Frame>, bytes_taken: &AtomicU64) {
    for frame in queue {
        for part in frame.pieces().into_iter().flat_map(|piece| piece.chunks(WRITE_CHUNK)) {
            // A process that is gone shows at its other end.
            if stdin.write_all(part).and_then(|()| stdin.flush()).is_err() {
                return;
            }
            bytes_taken.fetch_add(part.len() as u64, Ordering::Relaxed);
        }
    }
}

/// Reads standard error to its end, and keeps the last of it.
fn keep_last(mut stderr: impl Read, stderr_tail: &Mutex<VecDeque<u8>>) {
    let mut bytes = [0; 1024];
    while let Ok(n @ 1..) = stderr.read(&mut bytes) {
        let mut kept = stderr_tail.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&bytes[..n]);
        let excess = kept.len().saturating_sub(MAX_STDERR_BYTES);
        kept.drain(..excess);
    }
}

/// Waits for the end of `child`, at most `limit`.
fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let begin = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if begin.elapsed() < limit => thread::sleep(pause),
            _ => return None,
        }
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// Forwards replies until the output ends; returns what ended it.
fn read_replies(stdout: &mut impl BufRead, sender: &mpsc::SyncSender<Incoming>) -> Incoming {
    let mut first = None;
    for _ in 0..GREETING_LINES {
        let mut line = Vec::new();
        let read = stdout.by_ref().take(4096).read_until(b'\n', &mut line);
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        match read {
            Ok(0) | Err(_) => return first.map_or(Incoming::Closed, Incoming::NotProtocol),
            Ok(_) if protocol::greeted(&line) == Some(VERSION) => {
                return loop {
                    match protocol::read(stdout) {
                        Ok(Some((reply, _))) => {
                            if sender.send(Incoming::Reply(reply)).is_err() {
                                break Incoming::Closed;
                            }
                        }
                        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                            break Incoming::NotProtocol(error.to_string());
                        }
                        Ok(None) | Err(_) => break Incoming::Closed,
                    }
                };
            }
            Ok(_) => match protocol::greeted(&line) {
                Some(version) => return Incoming::Version(version, line),
                None => {
                    first.get_or_insert(format!("\"{line}\""));
                }
            },
        }
    }
    Incoming::NotProtocol(first.unwrap_or_default())
}
