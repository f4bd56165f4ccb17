//! The protocol between the caller and the measuring process, over two byte streams.
//!
//! The measuring process speaks first: a line with the protocol's version (see [`hello`]), so
//! that another version, or anything else that a broken runner prints, is recognized at once.
//! After it both sides send frames: the length of a JSON text and of a payload (both
//! little-endian 32-bit), the text, the payload, a line feed. Runners such as srun pass on whole
//! lines only. Nothing else is shared, so the two may run on different machines.

use super::candidate::{Caches, Plan};
use super::outcome::{Reason, one_line};
use crate::gpu::{Condition, Device};
use crate::launch::Launch;
use crate::workload::Workload;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// The version of the protocol. It rises with every change of `Request` or `Reply`, and of
/// what they carry: the two sides must have the same.
pub const VERSION: u32 = 13;

/// What the first line begins with.
const NAME: &str = "nvtune-measure ";

/// First line from the measuring process: the version of the protocol and, for messages, of the
/// program.
pub(crate) fn hello(version: u32) -> String {
    format!("{NAME}{version} (nvtune {})", env!("CARGO_PKG_VERSION"))
}

/// The version of the protocol that a line says; `None` where it is no first line of a
/// measuring process.
pub(crate) fn greeted(line: &str) -> Option<u32> {
    line.strip_prefix(NAME)?.split_whitespace().next()?.parse().ok()
}

/// Longest JSON text and longest payload that are believed.
const TEXT_LIMIT: u32 = 64 << 20;
const PAYLOAD_LIMIT: u32 = 2 << 30;

/// From the caller. Variants, contents and workloads are numbered from 0 in the order sent, until
/// a [`Request::Rest`]. Numbers of variants and workloads also begin anew when another GPU is
/// claimed than before a [`Request::Pause`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// A GPU is needed for what follows, and nobody else is to measure on it meanwhile. It may
    /// be waited for this many seconds.
    Claim {
        wait_s: f64,
    },
    /// The GPU is not needed for now: others may have it. All that was sent is forgotten.
    Rest,
    /// The same for a moment: what the GPU was given stays there.
    Pause,
    /// Machine code, in the payload.
    Variant,
    /// The contents of a buffer, in the payload.
    Contents,
    /// With the numbers of the contents of those of its buffers that come from files, in the
    /// order of [`Workload::all_buffers`].
    Workload {
        workload: Workload,
        contents: Vec<usize>,
    },
    /// The baseline of what will be timed: where a GPU is free just now, it is run for its
    /// results, and nothing but these and its buffers stays there. Whether that was done or
    /// not, or the baseline failed, is the next request's to find out.
    Ahead {
        baseline: Job,
    },
    /// The first job is the baseline.
    Time {
        jobs: Vec<Job>,
        plan: Plan,
    },
    Duel {
        jobs: Vec<Job>,
        rounds: Rounds,
    },
}

/// The rounds of a duel: how many, with what in the caches before each sample, and the seed of
/// the order within them.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Rounds {
    pub count: u32,
    pub caches: Caches,
    pub seed: u64,
}

/// A candidate of a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The caller's number for it, which replies repeat.
    pub slot: u32,
    pub label: String,
    pub kernel: String,
    pub launch: Launch,
    /// Its blocks wait for each other: it is launched so that all of them are resident at once,
    /// or not at all.
    pub cooperative: bool,
    /// Nothing but equal results in a compared buffer or variable proves that it works.
    pub needs_comparison: bool,
    /// Numbers of the variant and the workload.
    pub variant: usize,
    pub workload: usize,
    /// Its results were found right before: the process died of another candidate since, or it
    /// is the baseline once more.
    pub checked: bool,
}

/// From the measuring process.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The first frame: there are this many GPUs of this model.
    Ready(Device, usize),
    /// The first and only frame: there is none.
    NoDevice(#[serde(deserialize_with = "one_line")] String),
    /// Still alive, and busy with something other than a kernel.
    Working,
    /// Others measure on the GPUs.
    Waiting,
    /// This GPU is the caller's until it rests.
    Claimed(Device),
    /// The wait was over before a GPU was free.
    Busy,
    /// About to launch this candidate; if nothing follows, it is to blame.
    Running(u32),
    /// The candidate's results agree with the baseline's; microseconds of that first launch, and
    /// the share of the tolerance that the largest difference takes, where that is known.
    Checked(u32, f64, Option<f64>),
    /// Microseconds of one launch.
    Sample(u32, f64),
    /// The end of a round: how the GPU was, and whether the samples since the round before
    /// count.
    Round(Condition, bool),
    Refused(u32, Reason),
    /// The candidate took the device's context with it; the process ends after this.
    Faulted(u32, Reason),
    /// The request could not be served, for a reason that is no candidate's fault.
    Failed(#[serde(deserialize_with = "one_line")] String),
    /// The request is served.
    Done,
}

/// One message as it is sent. The payload is shared with whoever has it, for it may be as large
/// as the memory of a GPU.
pub(crate) struct Frame {
    /// The two lengths and the text.
    head: Vec<u8>,
    payload: Payload,
}

/// What is sent next to the text of a message.
pub(crate) type Payload = Box<dyn AsRef<[u8]> + Send>;

impl Frame {
    /// A message without a payload.
    pub fn of(message: &impl Serialize) -> io::Result<Frame> {
        Frame::with_payload(message, Box::new([]))
    }

    pub fn with_payload(message: &impl Serialize, payload: Payload) -> io::Result<Frame> {
        let text = serde_json::to_vec(message)?;
        let length = |bytes: &[u8], most: u32, what: &str| {
            let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= most);
            length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("{what} too long")))
        };
        let mut head = length(&text, TEXT_LIMIT, "message")?.to_le_bytes().to_vec();
        head.extend(length((*payload).as_ref(), PAYLOAD_LIMIT, "machine code or file")?.to_le_bytes());
        head.extend(text);
        Ok(Frame { head, payload })
    }

    /// Its bytes, one piece after the other.
    pub fn pieces(&self) -> [&[u8]; 3] {
        [&self.head, (*self.payload).as_ref(), b"\n"]
    }

    /// Writes it and flushes.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        self.pieces().into_iter().try_for_each(|piece| out.write_all(piece))?;
        out.flush()
    }
}

/// Writes a message without a payload and flushes.
pub(crate) fn write(out: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    Frame::of(message)?.write(out)
}

/// Reads one frame; `None` where the stream ends between frames. What is no frame is an error
/// of kind `InvalidData`.
pub(crate) fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<(T, Vec<u8>)>> {
    let mut head = [0; 8];
    let mut filled = 0;
    while filled < head.len() {
        match from.read(&mut head[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let [a, b, c, d, e, f, g, h] = head;
    let (text, payload) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
    if text > TEXT_LIMIT || payload > PAYLOAD_LIMIT {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("\"{}\"", head.escape_ascii())));
    }
    let text = exactly(from, text)?;
    let payload = exactly(from, payload)?;
    if exactly(from, 1)? != b"\n" {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message without a line feed after it"));
    }
    let message = serde_json::from_slice(&text).map_err(|error| {
        let start = text.get(..80).unwrap_or(&text);
        io::Error::new(io::ErrorKind::InvalidData, format!("\"{}\" ({error})", start.escape_ascii()))
    })?;
    Ok(Some((message, payload)))
}

/// Reads `length` bytes, growing the buffer only as they arrive (the length may be nonsense).
fn exactly(from: &mut impl Read, length: u32) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(length.into()).read_to_end(&mut bytes)?;
    if bytes.len() < length as usize {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_the_stream() {
        let reason = Reason::Stray { buffer: "x".to_owned() };
        let messages = [
            Reply::Ready(Device { name: "NVIDIA H200".to_owned(), bandwidth: 4.8e12, ..Device::default() }, 2),
            Reply::NoDevice("none".to_owned()),
            Reply::Sample(3, 0.1 + 0.2),
            Reply::Refused(4, reason),
            Reply::Done,
        ];
        let payloads = [vec![], vec![0, 255, 10], vec![1; 100_000], vec![], vec![7]];
        let mut stream = Vec::new();
        for (message, payload) in messages.iter().zip(&payloads) {
            Frame::with_payload(message, Box::new(payload.clone())).unwrap().write(&mut stream).unwrap();
        }
        let mut from = stream.as_slice();
        for (message, payload) in messages.iter().zip(&payloads) {
            let (got, bytes) = read::<Reply>(&mut from).unwrap().unwrap();
            assert_eq!((&got, &bytes), (message, payload));
        }
        assert!(read::<Reply>(&mut from).unwrap().is_none());
    }

    #[test]
    fn texts_of_the_other_side_forge_no_line() {
        let forged = "x\nnvtune: k: block=1\r\u{1b}[2K";
        let difference = serde_json::json!({"buffer": forged, "index": 0, "lane": 0, "expected": forged, "got": forged, "count": 1, "of": 1});
        for message in [
            serde_json::json!({"NoDevice": forged}),
            serde_json::json!({"Failed": forged}),
            serde_json::json!({"Refused": [1, {"faulted": {"error": forged}}]}),
            serde_json::json!({"Refused": [1, {"differs": difference}]}),
            serde_json::json!({"Refused": [1, {"stray": {"buffer": forged}}]}),
            serde_json::json!({"Faulted": [1, {"launch_failed": {"stage": forged, "error": forged}}]}),
            serde_json::json!({"Faulted": [1, {"too_many_resources": {"what": forged}}]}),
            serde_json::json!({"Faulted": [1, {"died": {"how": forged}}]}),
        ] {
            let bytes = Frame::of(&message).unwrap().pieces().concat();
            let (reply, _) = read::<Reply>(&mut bytes.as_slice()).unwrap().unwrap();
            let text = format!("{reply:?}");
            assert!(text.contains("nvtune: k") && !text.contains("\\n") && !text.contains("\\u"), "{text}");
        }
    }

    #[test]
    fn a_job_says_how_it_is_launched() {
        for cooperative in [false, true] {
            let launch =
                Launch { grid: [132, 1, 1], block: [256, 1, 1], shared: 1024, carveout: Some(50), coarsening: None };
            let (label, kernel) = ("block=256".to_owned(), "k".to_owned());
            let baseline = Job {
                slot: 0,
                label,
                kernel,
                launch,
                cooperative,
                needs_comparison: !cooperative,
                variant: 1,
                workload: 2,
                checked: true,
            };
            let bytes = Frame::of(&Request::Ahead { baseline: baseline.clone() }).unwrap().pieces().concat();
            let Some((Request::Ahead { baseline: got }, _)) = read(&mut bytes.as_slice()).unwrap() else {
                panic!("another request")
            };
            assert_eq!(format!("{got:?}"), format!("{baseline:?}"));
        }
    }

    #[test]
    fn nonsense_is_an_error() {
        let whole = Frame::with_payload(&Reply::Sample(1, 2.0), Box::new([1, 2, 3])).unwrap().pieces().concat();
        for length in 1..whole.len() {
            let error = read::<Reply>(&mut &whole[..length]).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{length} bytes");
        }
        for (bytes, expected) in [
            (&b"Last login: Mon"[..], "\"Last log\""),
            (b"\x02\0\0\0\0\0\0\0[]\n", "\"[]\" (expected value at line 1 column 1)"),
            (b"\x02\0\0\0\0\0\0\0[]3", "a message without a line feed after it"),
        ] {
            let error = read::<Reply>(&mut &*bytes).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
