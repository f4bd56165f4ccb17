//! The baseline's results, and their comparison with those of candidates.
//!
//! Invariant: results that lie on the device are compared there, by the rule of `compare.rs`, and
//! only the first number that differs is brought to the host; those that do not fit there are
//! compared by the host. What lies on the device is in reach of the kernels that are compared: it
//! counts only as long as it is what the baseline left.

use super::driver::{Context, DriverFault, Memory, PIECE, Stream};
use super::fault::faulted;
use super::pool::{BufferPool, Slab};
use crate::launch::Launch;
use crate::measure::bench::JobError;
use crate::measure::compare::{
    MAGNITUDE_SAMPLE, ResolvedTolerance, Tolerance, compare, difference, magnitude, median_magnitude, sample,
    tolerance_used,
};
use crate::measure::outcome::{Difference, Reason};
use crate::measure::protocol::Job;
use crate::measure::variables::{Observed, VariableResults};
use crate::workload::{Buffer, Workload};
use std::borrow::Cow;
use std::cell::OnceCell;

/// Divisor of the free device memory that gives how large a result kept on the device may be:
/// code, local memory and the buffers of other candidates have to fit there as well.
const DEVICE_SHARE: u64 = 4;

/// The results of the baseline.
pub(super) struct Reference {
    variant: usize,
    /// Its symbol: a variant may hold several kernels.
    kernel: String,
    launch: Launch,
    workload: usize,
    /// For each buffer of its workload, what it wrote; `None` where it wrote nothing.
    results: Vec<Option<WrittenBuffer>>,
    variables: VariableResults,
}

/// The contents that the baseline gave a buffer.
struct WrittenBuffer {
    digest: u64,
    /// For a buffer that is compared.
    compared: Option<ComparedBuffer>,
}

/// What a buffer is compared with.
struct ComparedBuffer {
    /// Guard included.
    expected: Expected,
    tolerance: Tolerance,
    /// The tolerance for this buffer, once it has been computed.
    resolved: OnceCell<ResolvedTolerance>,
}

enum Expected {
    Device(Memory),
    Host(Vec<u8>),
}

/// The outcome of a comparison.
pub(super) enum Comparison {
    /// With the share of the tolerance that the largest difference takes.
    Agrees(f64),
    Differs(Reason),
    /// The kernel overwrote the baseline's results that are kept on the device.
    ReferenceOverwritten(Reason),
}

impl Reference {
    /// Keeps what `job`, the baseline, has left in its buffers, `on_device` where there is
    /// room: of each that it wrote, `changed` has the digest.
    pub fn new(
        (context, pool): (&Context, &BufferPool),
        job: &Job,
        workload: &Workload,
        (places, changed): (&[usize], &[Option<u64>]),
        variables: VariableResults,
        on_device: bool,
        heartbeat: &mut dyn FnMut(),
    ) -> Result<Reference, JobError> {
        let mut results = Vec::with_capacity(places.len());
        for (index, (changed, place)) in changed.iter().zip(places).enumerate() {
            let Some(digest) = *changed else {
                results.push(None);
                continue;
            };
            let compared = match tolerance(workload, index) {
                Some(tolerance) => {
                    let slab = slab_at(pool, *place)?;
                    let expected = match on_device.then(|| copy(context, slab)).flatten() {
                        Some(memory) => Expected::Device(memory),
                        None => Expected::Host(read(&slab.live, 0, slab.live.bytes(), heartbeat)?),
                    };
                    Some(ComparedBuffer { expected, tolerance, resolved: OnceCell::new() })
                }
                None => None,
            };
            results.push(Some(WrittenBuffer { digest, compared }));
        }
        let kernel = job.kernel.clone();
        Ok(Reference { variant: job.variant, kernel, launch: job.launch, workload: job.workload, results, variables })
    }

    /// Whether it is of this baseline.
    pub fn is_of(&self, job: &Job) -> bool {
        (self.variant, &self.kernel, self.launch, self.workload) == (job.variant, &job.kernel, job.launch, job.workload)
    }

    /// The number of its workload.
    pub fn workload(&self) -> usize {
        self.workload
    }

    /// Which of the buffers it wrote.
    pub fn written(&self) -> Vec<bool> {
        self.results.iter().map(Option::is_some).collect()
    }

    /// Whether the baseline wrote a buffer or a variable that is compared.
    pub fn has_compared_results(&self) -> bool {
        self.variables.has_compared_results() || self.results.iter().flatten().any(|written| written.compared.is_some())
    }

    /// Returns the first compared buffer of the baseline whose counterpart in a candidate's
    /// workload has another type or size. Buffers are matched by their index in the workload.
    pub fn first_incomparable<'a>(&self, own: &'a Workload, other: &Workload) -> Option<&'a Buffer> {
        let is_alike = |index: usize, buffer: &Buffer| {
            other.buffers.get(index).is_some_and(|b| b.element == buffer.element && b.count == buffer.count)
        };
        let is_compared =
            |result: &Option<WrittenBuffer>| result.as_ref().is_some_and(|written| written.compared.is_some());
        let mut buffers = own.buffers.iter().zip(&self.results).enumerate();
        let (_, (buffer, _)) =
            buffers.find(|(index, (buffer, result))| is_compared(result) && !is_alike(*index, buffer))?;
        Some(buffer)
    }

    /// Moves the results from the device to the host.
    pub fn move_to_host(&mut self, heartbeat: &mut dyn FnMut()) -> Result<(), JobError> {
        for compared in self.results.iter_mut().flatten().filter_map(|written| written.compared.as_mut()) {
            if let Expected::Device(memory) = &compared.expected {
                compared.expected = Expected::Host(read(memory, 0, memory.bytes(), heartbeat)?);
            }
        }
        Ok(())
    }

    /// Compares the buffers as they are now, and the variables as they were `observed`, with
    /// what the baseline left.
    pub fn compare(
        &self,
        pool: &BufferPool,
        workload: &Workload,
        places: &[usize],
        observed: &[Option<Observed>],
        heartbeat: &mut dyn FnMut(),
    ) -> Result<Comparison, JobError> {
        let stray = |buffer: &Buffer| Reason::Stray { buffer: buffer.name.clone() };
        if let Some(buffer) = self.overwritten(pool, workload)? {
            return Ok(Comparison::ReferenceOverwritten(stray(buffer)));
        }
        let digests = pool.digests(places).map_err(faulted)?;
        let mut tolerance_used = 0.0_f64;
        for (((buffer, place), digest), result) in workload.buffers.iter().zip(places).zip(digests).zip(&self.results) {
            let slab = slab_at(pool, *place)?;
            match result {
                None if digest != slab.digest => return Ok(Comparison::Differs(stray(buffer))),
                Some(WrittenBuffer { digest: expected, compared: Some(compared) }) if digest != *expected => {
                    heartbeat();
                    match compared.compare(pool, buffer, slab, heartbeat)? {
                        Ok(used) => tolerance_used = tolerance_used.max(used),
                        Err(difference) => return Ok(Comparison::Differs(Reason::Differs(difference))),
                    }
                    if !compared.guard_agrees(slab, heartbeat)? {
                        return Ok(Comparison::Differs(stray(buffer)));
                    }
                }
                _ => {}
            }
        }
        Ok(self
            .variables
            .refusal(&workload.written, observed)
            .map_or(Comparison::Agrees(tolerance_used), Comparison::Differs))
    }

    /// The first of the buffers whose results, as they lie on the device, are not what the
    /// baseline left.
    fn overwritten<'a>(&self, pool: &BufferPool, workload: &'a Workload) -> Result<Option<&'a Buffer>, JobError> {
        let mut kept: Vec<(&Buffer, u64, &Memory)> = Vec::new();
        for (buffer, written) in workload.buffers.iter().zip(&self.results) {
            if let Some(WrittenBuffer {
                digest,
                compared: Some(ComparedBuffer { expected: Expected::Device(memory), .. }),
            }) = written
            {
                kept.push((buffer, *digest, memory));
            }
        }
        let memories: Vec<&Memory> = kept.iter().map(|(_, _, memory)| *memory).collect();
        let digests = pool.code.digests(&memories).map_err(faulted)?;
        let is_spoiled = kept.iter().zip(digests).find(|((_, digest, _), now)| digest != now);
        Ok(is_spoiled.map(|((buffer, _, _), _)| *buffer))
    }
}

impl ComparedBuffer {
    /// Compares the numbers of a slab with what is expected: the share of the tolerance that they
    /// take, or how they differ.
    fn compare(
        &self,
        pool: &BufferPool,
        buffer: &Buffer,
        slab: &Slab,
        heartbeat: &mut dyn FnMut(),
    ) -> Result<Result<f64, Difference>, JobError> {
        let Expected::Device(expected) = &self.expected else {
            return self.compare_on_host(buffer, slab, heartbeat);
        };
        let element = &buffer.element;
        let resolved = match self.resolved.get() {
            Some(resolved) => *resolved,
            None => {
                let resolved = self.tolerance.resolve(self.magnitude(expected, slab, heartbeat)?);
                *self.resolved.get_or_init(|| resolved)
            }
        };
        let of = slab.used() / element.size().max(1);
        let found = match pool.code.compare(expected, &slab.live, of, *element, resolved) {
            Ok(found) => found,
            Err(error) => match DriverFault::from(error) {
                DriverFault::OutOfMemory(_) => return self.compare_on_host(buffer, slab, heartbeat),
                _ => return Err(faulted(error)),
            },
        };
        if found.elements == 0 {
            return Ok(Ok(found.tolerance_used));
        }
        let size = element.scalar.size();
        let start = usize::try_from(found.first).unwrap_or(usize::MAX).saturating_mul(size);
        let (wanted, got) = (read(expected, start, size, heartbeat)?, read(&slab.live, start, size, heartbeat)?);
        Ok(Err(difference(&buffer.name, element, (found.elements, of as u64), found.first, (&wanted, &got))))
    }

    /// The same, by the host.
    fn compare_on_host(
        &self,
        buffer: &Buffer,
        slab: &Slab,
        heartbeat: &mut dyn FnMut(),
    ) -> Result<Result<f64, Difference>, JobError> {
        let end = slab.used();
        let (expected, got) = (self.expected.read(0, end, heartbeat)?, read(&slab.live, 0, end, heartbeat)?);
        Ok(match compare(&buffer.name, &buffer.element, self.tolerance, &expected, &got) {
            Some(difference) => Err(difference),
            None => Ok(tolerance_used(&buffer.element, self.tolerance, &expected, &got)),
        })
    }

    /// The magnitude that [`Tolerance::resolve`] wants.
    fn magnitude(&self, expected: &Memory, slab: &Slab, heartbeat: &mut dyn FnMut()) -> Result<f64, JobError> {
        if !self.tolerance.needs_magnitude() {
            return Ok(0.0);
        }
        let element = slab.buffer.element;
        let count = slab.used() / element.size().max(1);
        if count > MAGNITUDE_SAMPLE {
            let mut scalars = Vec::with_capacity(MAGNITUDE_SAMPLE);
            for index in sample(count) {
                scalars.push(read(expected, index * element.size(), element.scalar.size(), &mut || {})?);
            }
            heartbeat();
            if let Some(magnitude) = median_magnitude(element.scalar, scalars.iter()) {
                return Ok(magnitude);
            }
        }
        Ok(magnitude(&element, &read(expected, 0, slab.used(), heartbeat)?))
    }

    /// Whether what lies behind a slab is as the baseline left it.
    fn guard_agrees(&self, slab: &Slab, heartbeat: &mut dyn FnMut()) -> Result<bool, JobError> {
        let (end, length) = (slab.used(), slab.live.bytes().saturating_sub(slab.used()));
        Ok(*self.expected.read(end, length, heartbeat)? == *read(&slab.live, end, length, heartbeat)?)
    }
}

impl Expected {
    /// At most `length` bytes, from byte `from` on.
    fn read(&self, from: usize, length: usize, heartbeat: &mut dyn FnMut()) -> Result<Cow<'_, [u8]>, JobError> {
        match self {
            Expected::Device(memory) => read(memory, from, length, heartbeat).map(Cow::Owned),
            Expected::Host(bytes) => {
                let bytes = bytes.get(from..).unwrap_or_default();
                Ok(Cow::Borrowed(bytes.get(..length).unwrap_or(bytes)))
            }
        }
    }
}

/// How closely the results of a buffer must agree; `None` where they are not compared.
fn tolerance(workload: &Workload, index: usize) -> Option<Tolerance> {
    let own = Tolerance::for_scalar(workload.buffers.get(index)?.element.scalar);
    match &workload.checks {
        None => Some(own),
        Some(checks) => {
            let check = checks.iter().find(|check| check.buffer == index)?;
            Some(Tolerance { relative: check.relative, absolute: check.absolute })
        }
    }
}

fn slab_at(pool: &BufferPool, place: usize) -> Result<&Slab, JobError> {
    pool.slabs.get(place).ok_or_else(|| JobError::Failed("a buffer was lost".to_owned()))
}

/// A copy of a slab on the device; `None` where there is no room for it. (A context that is
/// broken is so for what comes next, too.)
fn copy(context: &Context, slab: &Slab) -> Option<Memory> {
    let bytes = slab.live.bytes();
    if bytes as u64 > context.free_bytes() / DEVICE_SHARE {
        return None;
    }
    let memory = Memory::allocate(context, bytes).ok()?;
    memory.copy_from(&slab.live, Stream::DEFAULT).ok()?;
    Some(memory)
}

/// At most `length` bytes of a memory, from byte `from` on.
fn read(memory: &Memory, from: usize, length: usize, heartbeat: &mut dyn FnMut()) -> Result<Vec<u8>, JobError> {
    let mut bytes = vec![0; length.min(memory.bytes().saturating_sub(from))];
    for (number, piece) in bytes.chunks_mut(PIECE).enumerate() {
        heartbeat();
        memory.read(from + number * PIECE, piece).map_err(faulted)?;
    }
    Ok(bytes)
}
