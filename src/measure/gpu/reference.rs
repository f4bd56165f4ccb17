//! What the baseline left in its buffers, and whether a candidate left the same.
//!
//! What always holds: that a candidate's results differ is said by the host alone, which names the first that does; the device only
//! says that they agree, by the same rule, so that no buffer has to be brought to the host for that.

use super::super::Reason;
use super::super::bench::Halt;
use super::super::compare::{Bounds, Tolerance, compare, magnitude, median_magnitude, sample};
use super::super::protocol::Job;
use super::driver::{Context, Memory, Stream};
use super::faulted;
use super::pool::{Pool, Slab};
use crate::space::Launch;
use crate::workload::{Buffer, Workload};
use std::borrow::Cow;
use std::cell::OnceCell;

/// What the baseline left behind.
pub(super) struct Reference {
    variant: usize,
    launch: Launch,
    workload: usize,
    /// For each buffer of its workload, what it wrote; `None` where it wrote nothing.
    results: Vec<Option<Written>>,
}

/// The contents that the baseline gave a buffer.
struct Written {
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

/// On the device, where it has room for them.
enum Expected {
    Device(Memory),
    Host(Vec<u8>),
}

impl Expected {
    fn of(context: &Context, slab: &Slab) -> Result<Expected, Halt> {
        match Memory::allocate(context, slab.live.bytes()) {
            Ok(memory) => {
                memory.copy_from(&slab.live, Stream::DEFAULT).map_err(faulted)?;
                Ok(Expected::Device(memory))
            }
            Err(_) => whole(&slab.live).map(Expected::Host),
        }
    }

    fn bytes(&self) -> Result<Cow<'_, [u8]>, Halt> {
        match self {
            Expected::Device(memory) => whole(memory).map(Cow::Owned),
            Expected::Host(bytes) => Ok(Cow::Borrowed(bytes)),
        }
    }
}

impl Reference {
    /// Keeps what `job`, the baseline, has left in its buffers: of each that it wrote, `changed` has the digest.
    pub fn of(
        context: &Context,
        pool: &Pool,
        job: &Job,
        workload: &Workload,
        places: &[usize],
        changed: &[Option<u64>],
    ) -> Result<Reference, Halt> {
        let mut results = Vec::with_capacity(places.len());
        for (index, (changed, place)) in changed.iter().zip(places).enumerate() {
            let Some(digest) = *changed else {
                results.push(None);
                continue;
            };
            let compared = match (tolerance(workload, index), pool.slabs.get(*place)) {
                (Some(tolerance), Some(slab)) => {
                    Some(Compared { expected: Expected::of(context, slab)?, tolerance, bounds: OnceCell::new() })
                }
                _ => None,
            };
            results.push(Some(Written { digest, compared }));
        }
        Ok(Reference { variant: job.variant, launch: job.launch, workload: job.workload, results })
    }

    /// Whether it is of this baseline.
    pub fn is_of(&self, job: &Job) -> bool {
        (self.variant, self.launch, self.workload) == (job.variant, job.launch, job.workload)
    }

    /// The number of its workload.
    pub fn workload(&self) -> usize {
        self.workload
    }

    /// Which of the buffers it wrote.
    pub fn written(&self) -> Vec<bool> {
        self.results.iter().map(Option::is_some).collect()
    }

    /// The first of the baseline's buffers that is compared and has no like among those of a candidate: buffers are compared by their
    /// place in the workload.
    pub fn incomparable<'a>(&self, own: &'a Workload, other: &Workload) -> Option<&'a Buffer> {
        let is_alike = |index: usize, buffer: &Buffer| {
            other.buffers.get(index).is_some_and(|b| b.element == buffer.element && b.count == buffer.count)
        };
        let compared = |result: &Option<Written>| result.as_ref().is_some_and(|written| written.compared.is_some());
        let mut buffers = own.buffers.iter().zip(&self.results).enumerate();
        buffers
            .find(|(index, (buffer, result))| compared(result) && !is_alike(*index, buffer))
            .map(|(_, (buffer, _))| buffer)
    }

    /// Makes room on the device.
    pub fn leave_device(&mut self) -> Result<(), Halt> {
        for compared in self.results.iter_mut().flatten().filter_map(|written| written.compared.as_mut()) {
            if let Expected::Device(memory) = &compared.expected {
                compared.expected = Expected::Host(whole(memory)?);
            }
        }
        Ok(())
    }

    /// Compares the buffers as they are now with what the baseline left.
    pub fn differs(
        &self,
        pool: &Pool,
        workload: &Workload,
        places: &[usize],
        alive: &mut dyn FnMut(),
    ) -> Result<Option<Reason>, Halt> {
        let digests = pool.digests(places).map_err(faulted)?;
        for (((buffer, place), digest), result) in workload.buffers.iter().zip(places).zip(digests).zip(&self.results) {
            let Some(slab) = pool.slabs.get(*place) else {
                continue;
            };
            let stray = || Reason::Stray { buffer: buffer.name.clone() };
            match result {
                None if digest != slab.digest => return Ok(Some(stray())),
                Some(Written { digest: expected, compared: Some(compared) }) if digest != *expected => {
                    alive();
                    if compared.agrees(pool, slab)? {
                        continue;
                    }
                    let (expected, got) = (compared.expected.bytes()?, whole(&slab.live)?);
                    let end = slab.used();
                    let (Some((expected, expected_guard)), Some((got, got_guard))) =
                        (expected.split_at_checked(end), got.split_at_checked(end))
                    else {
                        return Ok(Some(stray()));
                    };
                    alive();
                    let difference = compare(&buffer.name, &buffer.element, compared.tolerance, expected, got);
                    if let Some(difference) = difference {
                        return Ok(Some(Reason::Differs(difference)));
                    }
                    if expected_guard != got_guard {
                        return Ok(Some(stray()));
                    }
                }
                _ => {}
            }
        }
        Ok(None)
    }
}

impl Compared {
    /// Whether a slab holds what is expected, guard included, as far as the device can tell.
    fn agrees(&self, pool: &Pool, slab: &Slab) -> Result<bool, Halt> {
        let Expected::Device(expected) = &self.expected else { return Ok(false) };
        let (scalar, end) = (slab.buffer.element.scalar, slab.used());
        let bounds = match self.bounds.get() {
            Some(bounds) => *bounds,
            None => {
                let bounds = self.tolerance.bounds(self.magnitude(expected, slab)?);
                *self.bounds.get_or_init(|| bounds)
            }
        };
        if !pool.code.agree(expected, &slab.live, end / scalar.size(), scalar, bounds).map_err(faulted)? {
            return Ok(false);
        }
        let guard = |memory: &Memory| {
            let mut bytes = vec![0; memory.bytes().saturating_sub(end)];
            memory.read(end, &mut bytes).map(|()| bytes).map_err(faulted)
        };
        Ok(guard(expected)? == guard(&slab.live)?)
    }

    /// The magnitude that [`Tolerance::bounds`] wants.
    fn magnitude(&self, expected: &Memory, slab: &Slab) -> Result<f64, Halt> {
        if !self.tolerance.wants_magnitude() {
            return Ok(0.0);
        }
        let element = slab.buffer.element;
        let mut scalars = Vec::new();
        for index in sample(slab.used() / element.size().max(1)) {
            let mut bytes = vec![0; element.scalar.size()];
            expected.read(index * element.size(), &mut bytes).map_err(faulted)?;
            scalars.push(bytes);
        }
        match median_magnitude(element.scalar, scalars.iter()) {
            Some(magnitude) => Ok(magnitude),
            None => Ok(magnitude(&element, whole(expected)?.get(..slab.used()).unwrap_or_default())),
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

/// All that a memory holds.
fn whole(memory: &Memory) -> Result<Vec<u8>, Halt> {
    let mut bytes = vec![0; memory.bytes()];
    memory.read(0, &mut bytes).map_err(faulted)?;
    Ok(bytes)
}
