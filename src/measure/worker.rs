//! The measuring process: reads requests from standard input, writes replies to standard output.
//!
//! Invariant: standard output carries nothing but the protocol (what a kernel prints
//! goes to standard error), and the process ends at once, whatever runs, when its standard
//! input does: nobody has to kill it.

use super::gpus::Gpus;
use super::options::UNGUARDED;
use super::protocol;
use super::protocol::{Reply, Request};
use super::replay::{Fault, Recording, Start, break_down};
use super::schedule;
use super::schedule::ScheduleState;
use crate::diag::MessageCode;
use crate::say;
use crate::workload::FileBytes;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::{Arc, mpsc};

/// Runs `nvtune measure`; `arguments` are those after it: `--unguarded` for buffers without a
/// guard behind them, `--replay FILE` to answer from recorded timings.
pub fn serve(arguments: &[OsString]) -> ExitCode {
    let unguarded = arguments.first().is_some_and(|option| option == UNGUARDED);
    let arguments = arguments.get(usize::from(unguarded)..).unwrap_or_default();
    let recording = match arguments {
        [] => None,
        [option, path] if option == "--replay" => match Recording::read(Path::new(path)) {
            Ok(recording) => Some(recording),
            Err(message) => return report_fault(&message),
        },
        _ => return report_fault("usage: nvtune measure [--unguarded] [--replay FILE]"),
    };
    if io::stdin().is_terminal() {
        return report_fault("this command is started by nvtune itself, to time kernels in a process of their own");
    }
    let mut stdout = match take_stdout() {
        Ok(stdout) => stdout,
        Err(error) => return report_fault(&format!("standard output: {error}")),
    };
    let requests = match read_requests() {
        Ok(requests) => requests,
        Err(error) => return report_fault(&format!("a thread cannot be started: {error}")),
    };
    let start = recording.as_ref().map_or(Start::Ready, |r| r.start);
    match start {
        Start::Ready | Start::NoDevice => {}
        Start::Die => break_down(Fault::Die, &mut stdout),
        Start::Hang => break_down(Fault::Hang, &mut stdout),
        Start::Garbage => break_down(Fault::Garbage, &mut stdout),
        Start::Version => write_line(&mut stdout, "nvtune-measure 1"),
        Start::Banner => write_line(&mut stdout, "Welcome to gpu01!"),
    }
    write_line(&mut stdout, &protocol::hello(protocol::VERSION));

    let gpus = match recording {
        Some(_) if start == Start::NoDevice => Err("as recorded".to_owned()),
        Some(recording) => match stdout.try_clone() {
            Ok(spoiled) => Ok(Gpus::recorded(Rc::new(recording), spoiled)),
            Err(error) => return report_fault(&format!("standard output: {error}")),
        },
        None => Gpus::visible(!unguarded),
    };
    match gpus {
        Ok(gpus) => {
            let (device, count) = gpus.first();
            send_reply(&mut stdout, Reply::Ready(device, count));
            answer_requests(gpus, &requests, &mut stdout);
            // A context that faulted, or one of a driver that is unloading, may hang where it is
            // taken down in order.
            exit_now(0);
        }
        Err(reason) => send_reply(&mut stdout, Reply::NoDevice(reason)),
    }
    ExitCode::SUCCESS
}

/// Serves requests until the bench is no longer usable.
fn answer_requests(mut gpus: Gpus, requests: &mpsc::Receiver<(Request, Vec<u8>)>, stdout: &mut File) {
    let (mut variants, mut contents, mut workloads) = (Vec::new(), Vec::new(), Vec::new());
    // How many of these a bench was given ahead, which may not be the one that is claimed in the
    // end.
    let mut ahead: Option<(u64, usize, usize)> = None;
    let mut state = ScheduleState::default();
    // A context takes a while to make: the caller compiles meanwhile.
    gpus.prepare();
    // The other side hangs up by ending standard input, which ends the process (see `listen`).
    while let Ok((request, payload)) = requests.recv() {
        let mut send = |reply| send_reply(stdout, reply);
        let served = match request {
            Request::Variant => {
                variants.push(payload);
                continue;
            }
            Request::Contents => {
                contents.push(Arc::new(payload));
                continue;
            }
            Request::Workload { mut workload, contents: numbers } => {
                let mut files = numbers.into_iter().map(|number| contents.get(number));
                if !workload.attach(|length| FileBytes::part(files.next()??, 0..length)) {
                    return send(Reply::Failed("a workload came without its files".to_owned()));
                }
                workloads.push(workload);
                continue;
            }
            Request::Claim { wait_s } => {
                match gpus.claim(wait_s, &mut send) {
                    Ok(Some(device)) => send(Reply::Claimed(device)),
                    Ok(None) => send(Reply::Busy),
                    Err(problem) => return send(Reply::Failed(problem)),
                }
                continue;
            }
            Request::Rest => {
                variants.clear();
                contents.clear();
                workloads.clear();
                ahead = None;
                gpus.release_gpu();
                continue;
            }
            Request::Pause => {
                gpus.pause();
                continue;
            }
            Request::Ahead { baseline } => {
                // A GPU that is claimed will be given all of it by the next request.
                let served = match gpus.claim_briefly().filter(|_| ahead.is_none()) {
                    Some(bench) => {
                        bench.load(variants.clone(), workloads.clone());
                        let served = schedule::prepare_baseline(bench, &baseline, &mut state, &mut send);
                        ahead = Some((gpus.opened(), variants.len(), workloads.len()));
                        served
                    }
                    None => Ok(()),
                };
                gpus.release_borrowed();
                if served.is_ok() {
                    send(Reply::Done);
                }
                served
            }
            Request::Time { .. } | Request::Duel { .. } => {
                if let Some((bench, of_variants, of_workloads)) = ahead.take()
                    && bench == gpus.opened()
                {
                    variants.drain(..of_variants);
                    workloads.drain(..of_workloads);
                }
                let Some(bench) = gpus.claimed() else {
                    return send(Reply::Failed("no GPU was claimed".to_owned()));
                };
                bench.load(std::mem::take(&mut variants), std::mem::take(&mut workloads));
                match request {
                    Request::Time { jobs, plan } => schedule::time(bench, &jobs, &plan, &mut state, &mut send),
                    Request::Duel { jobs, rounds } => {
                        schedule::time_paired(bench, &jobs, rounds, &mut state, &mut send)
                    }
                    _ => Ok(()),
                }
            }
        };
        if served.is_err() {
            return;
        }
    }
}

/// Reads requests in a thread of their own, so that the end of standard input is seen while a
/// kernel runs.
fn read_requests() -> io::Result<mpsc::Receiver<(Request, Vec<u8>)>> {
    let (sender, requests) = mpsc::channel();
    std::thread::Builder::new().spawn(move || {
        let mut stdin = BufReader::new(io::stdin().lock());
        loop {
            match protocol::read(&mut stdin) {
                Ok(Some(request)) => {
                    if sender.send(request).is_err() {
                        return;
                    }
                }
                Ok(None) => exit_now(0),
                Err(error) => {
                    report_fault(&format!("standard input is no request: {error}"));
                    exit_now(2)
                }
            }
        }
    })?;
    Ok(requests)
}

/// Sends a reply. Where nobody listens any more there is nothing left to do.
fn send_reply(stdout: &mut File, reply: Reply) {
    if protocol::write(stdout, &reply).is_err() {
        exit_now(0);
    }
}

fn write_line(stdout: &mut File, line: &str) {
    if writeln!(stdout, "{line}").and_then(|()| stdout.flush()).is_err() {
        exit_now(0);
    }
}

fn report_fault(message: &str) -> ExitCode {
    say!("nvtune measure: {}", MessageCode::RequestNotRead.tag(message));
    ExitCode::from(2)
}

/// The stream to the caller, and standard output turned over to standard error: `printf` in a
/// kernel writes to it.
fn take_stdout() -> io::Result<File> {
    let ours = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let (from, to) = (io::stderr().as_raw_fd(), io::stdout().as_raw_fd());
    // SAFETY: both are the process's standard streams, which stay open; POSIX's dup2 touches
    // nothing else.
    if unsafe { libc::dup2(from, to) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(ours)
}

/// Ends the process without running what the driver registered for its end, which may wait for
/// a kernel that never ends.
fn exit_now(code: i32) -> ! {
    // SAFETY: _exit of the C library takes any code, and no destructor of ours has to run: all
    // state is this process's.
    unsafe { libc::_exit(code) }
}
