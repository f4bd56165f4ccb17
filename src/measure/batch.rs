//! Turns candidates into jobs, which refer to machine code and workloads by number.
//!
//! Invariant: what several candidates share is sent once to each measuring process,
//! however many requests name it.

use super::candidate::Candidate;
use super::error::Error;
use super::protocol;
use super::protocol::{Job, Request};
use crate::workload::Workload;
use std::collections::HashMap;
use std::sync::Arc;

/// The machine code and the workloads that a measuring process knows by number.
#[derive(Default)]
pub(super) struct Catalog {
    variants: Vec<Arc<[u8]>>,
    workloads: Vec<Arc<Workload>>,
    variant_numbers: HashMap<Arc<[u8]>, usize>,
    /// How many of each were sent.
    sent: (usize, usize),
}

impl Catalog {
    /// Marks everything as not sent, for a new process.
    pub fn forget_sent(&mut self) {
        self.sent = (0, 0);
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
    pub fn frames(&mut self) -> Result<Vec<Vec<u8>>, Error> {
        let mut frames = Vec::new();
        for variant in self.variants.iter().skip(self.sent.0) {
            frames.push(encode_request(&Request::Variant, &[variant])?);
        }
        for workload in self.workloads.iter().skip(self.sent.1) {
            // JSON has no infinity: it would arrive as nothing, and be taken for nonsense there.
            let message = Request::Workload((**workload).clone());
            if protocol::read::<Request>(&mut encode_request(&message, &[])?.as_slice()).is_err() {
                let message = "a buffer's contents or tolerance is not a finite number";
                return Err(Error::Unsendable(message.to_owned()));
            }
            frames.push(encode_request(&message, &workload.detached())?);
        }
        self.sent = (self.variants.len(), self.workloads.len());
        Ok(frames)
    }
}

/// The bytes of a request with a payload in pieces.
pub(super) fn encode_request(request: &Request, payload: &[&[u8]]) -> Result<Vec<u8>, Error> {
    protocol::frame(request, payload).map_err(|error| Error::Unsendable(error.to_string()))
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
