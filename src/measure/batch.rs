//! Turns candidates into jobs, which refer to machine code and workloads by number.
//!
//! Invariant: what several candidates share is sent once to each measuring process,
//! however many requests name it.

use super::candidate::Candidate;
use super::error::Error;
use super::protocol;
use super::protocol::{Frame, Job, Request};
use crate::workload::{FileBytes, Workload};
use std::collections::HashMap;
use std::sync::Arc;

/// The machine code, the contents of buffers and the workloads that a measuring process knows by
/// number.
#[derive(Default)]
pub(super) struct Catalog {
    variants: Vec<Arc<[u8]>>,
    contents: Vec<FileBytes>,
    workloads: Vec<Arc<Workload>>,
    variant_numbers: HashMap<Arc<[u8]>, usize>,
    sent: Sent,
}

/// How many of each were sent.
#[derive(Default)]
struct Sent {
    variants: usize,
    contents: usize,
    workloads: usize,
}

impl Catalog {
    /// Marks everything as not sent, for a new process.
    pub fn forget_sent(&mut self) {
        self.sent = Sent::default();
    }

    /// Marks what a GPU is given as not sent, for another GPU of the same process.
    pub fn forget_loaded(&mut self) {
        self.sent = Sent { contents: self.sent.contents, ..Sent::default() };
    }

    fn variant(&mut self, cubin: &Arc<[u8]>) -> usize {
        let variants = &mut self.variants;
        *self.variant_numbers.entry(Arc::clone(cubin)).or_insert_with(|| {
            variants.push(Arc::clone(cubin));
            variants.len() - 1
        })
    }

    fn workload(&mut self, workload: &Arc<Workload>) -> usize {
        let same = |known: &Arc<Workload>| Arc::ptr_eq(known, workload) || **known == **workload;
        self.workloads.iter().position(same).unwrap_or_else(|| {
            self.workloads.push(Arc::clone(workload));
            self.workloads.len() - 1
        })
    }

    /// Returns the frames of everything that was not sent yet, and marks it as sent.
    pub fn frames(&mut self) -> Result<Vec<Frame>, Error> {
        let mut workloads = Vec::new();
        for workload in self.workloads.get(self.sent.workloads..).unwrap_or_default() {
            let contents = workload.files().map(|bytes| number_of(&mut self.contents, bytes)).collect();
            let frame = encode_request(&Request::Workload { workload: (**workload).clone(), contents })?;
            // JSON has no infinity: it would arrive as nothing, and be taken for nonsense there.
            if protocol::read::<Request>(&mut frame.pieces().concat().as_slice()).is_err() {
                let message = "a buffer's contents or tolerance is not a finite number";
                return Err(Error::Unsendable(message.to_owned()));
            }
            workloads.push(frame);
        }
        let with_payload = |request: &Request, payload: protocol::Payload| {
            Frame::with_payload(request, payload).map_err(|error| Error::Unsendable(error.to_string()))
        };
        let mut frames = Vec::new();
        for variant in self.variants.iter().skip(self.sent.variants) {
            frames.push(with_payload(&Request::Variant, Box::new(Arc::clone(variant)))?);
        }
        for contents in self.contents.iter().skip(self.sent.contents) {
            frames.push(with_payload(&Request::Contents, Box::new(contents.clone()))?);
        }
        frames.extend(workloads);
        self.sent =
            Sent { variants: self.variants.len(), contents: self.contents.len(), workloads: self.workloads.len() };
        Ok(frames)
    }
}

/// The number of a buffer's contents among those that are known: several workloads may have the
/// same.
fn number_of(known: &mut Vec<FileBytes>, bytes: &FileBytes) -> usize {
    known.iter().position(|known| known.bytes_equal(bytes)).unwrap_or_else(|| {
        known.push(bytes.clone());
        known.len() - 1
    })
}

/// The frame of a request without a payload.
pub(super) fn encode_request(request: &Request) -> Result<Frame, Error> {
    Frame::of(request).map_err(|error| Error::Unsendable(error.to_string()))
}

/// The jobs of a request.
pub(super) struct Batch {
    pub jobs: Vec<Job>,
}

impl Batch {
    /// A job for each candidate; its slot is its place in their order.
    pub fn new<'a>(catalog: &mut Catalog, candidates: impl IntoIterator<Item = &'a Candidate>) -> Batch {
        let job = |(slot, candidate): (usize, &Candidate)| Job {
            slot: slot as u32,
            label: candidate.label.clone(),
            kernel: candidate.kernel.clone(),
            launch: candidate.launch,
            cooperative: candidate.cooperative,
            needs_comparison: candidate.needs_comparison,
            variant: catalog.variant(&candidate.cubin),
            workload: catalog.workload(&candidate.workload),
            checked: false,
        };
        Batch { jobs: candidates.into_iter().enumerate().map(job).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::{Element, Scalar};
    use crate::workload::{Argument, Buffer, Fill};

    #[test]
    fn contents_that_workloads_share_are_sent_once_to_a_process() {
        let of_file = |bytes: &[u8]| Buffer {
            name: "x".to_owned(),
            element: Element { scalar: Scalar::U8, lanes: 1 },
            count: bytes.len() as u64,
            fill: Fill::File(FileBytes::new(Arc::new(bytes.to_vec()), 0)),
            seed: 1,
        };
        let workload = |argument: i32, files: &[&[u8]]| {
            let arguments = vec![Argument::Scalar(argument.to_le_bytes().to_vec())];
            let buffers = files.iter().map(|bytes| of_file(bytes)).collect();
            Arc::new(Workload { arguments, buffers, ..Workload::default() })
        };
        let mut catalog = Catalog::default();
        let sent = |catalog: &mut Catalog, workloads: &[Arc<Workload>]| {
            workloads.iter().for_each(|workload| {
                catalog.workload(workload);
            });
            let mut said = Vec::new();
            for frame in catalog.frames().unwrap() {
                let bytes = frame.pieces().concat();
                let (request, payload) = protocol::read::<Request>(&mut bytes.as_slice()).unwrap().unwrap();
                said.push(match request {
                    Request::Contents => format!("contents {payload:?}"),
                    Request::Workload { contents, .. } => format!("workload of {contents:?}"),
                    other => format!("{other:?}"),
                });
            }
            said
        };
        let (a, b): (&[u8], &[u8]) = (&[1; 4], &[2; 4]);
        let first = sent(&mut catalog, &[workload(1, &[a, b])]);
        assert_eq!(first, ["contents [1, 1, 1, 1]", "contents [2, 2, 2, 2]", "workload of [0, 1]"]);
        assert_eq!(sent(&mut catalog, &[workload(1, &[a, b]), workload(2, &[b, a])]), ["workload of [1, 0]"]);
        catalog.forget_loaded();
        assert_eq!(sent(&mut catalog, &[]), ["workload of [0, 1]", "workload of [1, 0]"]);
        catalog.forget_sent();
        let again = sent(&mut catalog, &[]);
        assert_eq!((&again[..2], again.len()), (&first[..2], 4));
    }
}
