//! What the baseline left in its buffers and variables, and whether a candidate left the same.
//!
//! Invariant: the device can only find that all numbers of a buffer agree, by the rule of
//! `compare.rs`; then the buffer stays where it is. Otherwise the host compares, and names the
//! first number that differs. What lies on the device is in reach of the
//! kernels that are compared: it counts only as long as it is what the baseline left.

use super::driver::{Context, DriverFault, Memory, PIECE, Stream};
use super::fault::faulted;
use super::pool::{Pool, Slab};
use crate::launch::Launch;
use crate::measure::bench::Halt;
use crate::measure::compare::{Bounds, SAMPLE, Tolerance, compare, magnitude, median_magnitude, sample};
use crate::measure::outcome::Reason;
use crate::measure::protocol::Job;
use crate::measure::variables::{Observed, VariableResults};
use crate::workload::{Buffer, Workload};
use std::borrow::Cow;
use std::cell::OnceCell;

/// Results stay on the device where they take no more than this share of the memory that is
/// free: code, local memory and the buffers of other candidates have to fit there as well.
const DEVICE_SHARE: u64 = 4;

/// What the baseline left behind.
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
    compared: Option<Compared>,
}

/// What a buffer is compared with.
struct Compared {
    /// Guard included.
    expected: Expected,
    tolerance: Tolerance,
    /// What that comes to, once it has been asked for.
    bounds: OnceCell<Bounds>,
}

enum Expected {
    Device(Memory),
    Host(Vec<u8>),
}

/// What a comparison came to.
pub(super) enum Verdict {
    Agrees,
    Differs(Reason),
    /// The baseline's results themselves were written over since they were compared with last.
    Spoiled(Reason),
}

impl Reference {
    /// Keeps what `job`, the baseline, has left in its buffers, `on_device` where there is
    /// room: of each that it wrote, `changed` has the digest.
    pub fn of(
        (context, pool): (&Context, &Pool),
        job: &Job,
        workload: &Workload,
        (places, changed): (&[usize], &[Option<u64>]),
        variables: VariableResults,
        on_device: bool,
        alive: &mut dyn FnMut(),
    ) -> Result<Reference, Halt> {
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
                        None => Expected::Host(read(&slab.live, 0, slab.live.bytes(), alive)?),
                    };
                    Some(Compared { expected, tolerance, bounds: OnceCell::new() })
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
    pub fn compares(&self) -> bool {
        self.variables.compares() || self.results.iter().flatten().any(|written| written.compared.is_some())
    }

    /// The first of the baseline's buffers that is compared and has no like among those of a
    /// candidate: buffers are compared by their place in the workload.
    pub fn incomparable<'a>(&self, own: &'a Workload, other: &Workload) -> Option<&'a Buffer> {
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

    /// Makes room on the device.
    pub fn leave_device(&mut self, alive: &mut dyn FnMut()) -> Result<(), Halt> {
        for compared in self.results.iter_mut().flatten().filter_map(|written| written.compared.as_mut()) {
            if let Expected::Device(memory) = &compared.expected {
                compared.expected = Expected::Host(read(memory, 0, memory.bytes(), alive)?);
            }
        }
        Ok(())
    }

    /// Compares the buffers as they are now, and the variables as they were `observed`, with
    /// what the baseline left.
    pub fn compare(
        &self,
        pool: &Pool,
        workload: &Workload,
        places: &[usize],
        observed: &[Option<Observed>],
        alive: &mut dyn FnMut(),
    ) -> Result<Verdict, Halt> {
        let stray = |buffer: &Buffer| Reason::Stray { buffer: buffer.name.clone() };
        if let Some(buffer) = self.spoiled(pool, workload)? {
            return Ok(Verdict::Spoiled(stray(buffer)));
        }
        let digests = pool.digests(places).map_err(faulted)?;
        for (((buffer, place), digest), result) in workload.buffers.iter().zip(places).zip(digests).zip(&self.results) {
            let slab = slab_at(pool, *place)?;
            match result {
                None if digest != slab.digest => return Ok(Verdict::Differs(stray(buffer))),
                Some(WrittenBuffer { digest: expected, compared: Some(compared) }) if digest != *expected => {
                    alive();
                    if !compared.agrees_on_device(pool, slab, alive)? {
                        let end = slab.used();
                        let (expected, got) =
                            (compared.expected.read(0, end, alive)?, read(&slab.live, 0, end, alive)?);
                        let difference = compare(&buffer.name, &buffer.element, compared.tolerance, &expected, &got);
                        if let Some(difference) = difference {
                            return Ok(Verdict::Differs(Reason::Differs(difference)));
                        }
                    }
                    if !compared.guard_agrees(slab, alive)? {
                        return Ok(Verdict::Differs(stray(buffer)));
                    }
                }
                _ => {}
            }
        }
        Ok(self.variables.refusal(&workload.written, observed).map_or(Verdict::Agrees, Verdict::Differs))
    }

    /// The first of the buffers whose results, as they lie on the device, are not what the
    /// baseline left.
    fn spoiled<'a>(&self, pool: &Pool, workload: &'a Workload) -> Result<Option<&'a Buffer>, Halt> {
        let mut kept: Vec<(&Buffer, u64, &Memory)> = Vec::new();
        for (buffer, written) in workload.buffers.iter().zip(&self.results) {
            if let Some(WrittenBuffer { digest, compared: Some(Compared { expected: Expected::Device(memory), .. }) }) =
                written
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

impl Compared {
    /// Whether the numbers of a slab are close enough to what is expected, as far as the device
    /// can tell.
    fn agrees_on_device(&self, pool: &Pool, slab: &Slab, alive: &mut dyn FnMut()) -> Result<bool, Halt> {
        let Expected::Device(expected) = &self.expected else { return Ok(false) };
        let scalar = slab.buffer.element.scalar;
        let bounds = match self.bounds.get() {
            Some(bounds) => *bounds,
            None => {
                let bounds = self.tolerance.bounds(self.magnitude(expected, slab, alive)?);
                *self.bounds.get_or_init(|| bounds)
            }
        };
        match pool.code.agree(expected, &slab.live, slab.used() / scalar.size(), scalar, bounds) {
            Ok(agree) => Ok(agree),
            Err(error) => match DriverFault::from(error) {
                DriverFault::OutOfMemory(_) => Ok(false),
                _ => Err(faulted(error)),
            },
        }
    }

    /// The magnitude that [`Tolerance::bounds`] wants.
    fn magnitude(&self, expected: &Memory, slab: &Slab, alive: &mut dyn FnMut()) -> Result<f64, Halt> {
        if !self.tolerance.wants_magnitude() {
            return Ok(0.0);
        }
        let element = slab.buffer.element;
        let count = slab.used() / element.size().max(1);
        if count > SAMPLE {
            let mut scalars = Vec::with_capacity(SAMPLE);
            for index in sample(count) {
                scalars.push(read(expected, index * element.size(), element.scalar.size(), &mut || {})?);
            }
            alive();
            if let Some(magnitude) = median_magnitude(element.scalar, scalars.iter()) {
                return Ok(magnitude);
            }
        }
        Ok(magnitude(&element, &read(expected, 0, slab.used(), alive)?))
    }

    /// Whether what lies behind a slab is as the baseline left it.
    fn guard_agrees(&self, slab: &Slab, alive: &mut dyn FnMut()) -> Result<bool, Halt> {
        let (end, length) = (slab.used(), slab.live.bytes().saturating_sub(slab.used()));
        Ok(*self.expected.read(end, length, alive)? == *read(&slab.live, end, length, alive)?)
    }
}

impl Expected {
    /// At most `length` bytes, from byte `from` on.
    fn read(&self, from: usize, length: usize, alive: &mut dyn FnMut()) -> Result<Cow<'_, [u8]>, Halt> {
        match self {
            Expected::Device(memory) => read(memory, from, length, alive).map(Cow::Owned),
            Expected::Host(bytes) => {
                let bytes = bytes.get(from..).unwrap_or_default();
                Ok(Cow::Borrowed(bytes.get(..length).unwrap_or(bytes)))
            }
        }
    }
}

/// How closely the results of a buffer must agree; `None` where they are not compared.
fn tolerance(workload: &Workload, index: usize) -> Option<Tolerance> {
    let own = Tolerance::default_for(workload.buffers.get(index)?.element.scalar);
    match &workload.checks {
        None => Some(own),
        Some(checks) => {
            let check = checks.iter().find(|check| check.buffer == index)?;
            Some(Tolerance { relative: check.relative, absolute: check.absolute })
        }
    }
}

fn slab_at(pool: &Pool, place: usize) -> Result<&Slab, Halt> {
    pool.slabs.get(place).ok_or_else(|| Halt::Failed("a buffer was lost".to_owned()))
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
fn read(memory: &Memory, from: usize, length: usize, alive: &mut dyn FnMut()) -> Result<Vec<u8>, Halt> {
    let mut bytes = vec![0; length.min(memory.bytes().saturating_sub(from))];
    for (number, piece) in bytes.chunks_mut(PIECE).enumerate() {
        alive();
        memory.read(from + number * PIECE, piece).map_err(faulted)?;
    }
    Ok(bytes)
}
