//! The buffers of workloads in device memory, kept from one job to the next.
//!
//! In: descriptions of buffers. Out: memory with their contents, and digests of it. Invariants: in
//! a guarded pool each buffer is followed by guard bytes, which its digest covers; the initial
//! contents can be restored.

use super::device_code::DeviceCode;
use super::driver::{Context, DriverFault, Memory, Result, Stream};
use super::texture::BoundTextures;
use crate::process::spawn_or_run;
use crate::workload::{Buffer, Fill, Workload, contents};

/// Guard bytes behind each buffer.
const GUARD: usize = 256;
const GUARD_BYTE: u8 = 0xb7;

/// Bytes that are made and uploaded at a time.
const CHUNK: usize = 32 << 20;

/// A buffer in device memory.
pub(super) struct Slab {
    pub buffer: Buffer,
    /// See [`Sampling::buffer_set`](crate::measure::bench::Sampling::buffer_set).
    buffer_set: u32,
    used: usize,
    /// The buffer and, where there is a guard, what fills it up to a multiple of 8 bytes, and
    /// the guard.
    pub live: Memory,
    /// The addresses that a recording has in it: at which byte, and which.
    addresses: Vec<(u64, u64)>,
    /// A copy of the contents before a launch, once it is known that kernels write the buffer.
    pristine: Option<Memory>,
    /// Digest of the contents before a launch.
    pub digest: u64,
}

impl Slab {
    /// Bytes of the buffer itself; what lies behind them is guard.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Tells whether the kernel may read it before writing it, so that its initial contents may
    /// affect the running time.
    pub fn is_read(&self) -> bool {
        !self.buffer.fill.is_only_written()
    }

    /// Restores the initial contents; does not wait. Does nothing for a buffer that no kernel
    /// writes.
    pub fn restore(&self, stream: Stream) -> Result<()> {
        match &self.pristine {
            Some(pristine) => self.live.copy_from(pristine, stream),
            None => Ok(()),
        }
    }
}

/// All buffers in device memory.
pub(super) struct BufferPool {
    /// Of workloads whose buffers are slabs.
    textures: Vec<BoundTextures>,
    pub slabs: Vec<Slab>,
    pub code: DeviceCode,
    /// Bytes of poison behind each buffer.
    guard: usize,
}

impl BufferPool {
    /// An empty pool; `guarded` where its buffers are to have a guard behind them.
    pub fn new(context: &Context, guarded: bool) -> Result<BufferPool> {
        let code = DeviceCode::load(context)?;
        Ok(BufferPool { textures: Vec::new(), slabs: Vec::new(), code, guard: if guarded { GUARD } else { 0 } })
    }

    /// Frees all of it.
    pub fn clear(&mut self) {
        self.textures.clear();
        self.slabs.clear();
    }

    /// Returns the indices of a workload's buffers and of its variables' contents, of one buffer set.
    /// Makes those that are missing, copies of those that are `written`, and the textures; the inner
    /// error is the driver's refusal of one, which breaks nothing.
    pub fn place_workload(
        &mut self,
        context: &Context,
        workload: &Workload,
        (written, buffer_set): (&[bool], u32),
        heartbeat: &mut dyn FnMut(),
    ) -> std::result::Result<Result<Vec<usize>>, DriverFault> {
        let places = self.get_or_create(context, (workload.all_buffers(), buffer_set), heartbeat)?;
        for (place, _) in places.iter().zip(written).filter(|(_, written)| **written) {
            self.keep_pristine_copy(context, *place, heartbeat)?;
        }
        match self.bind_textures(context, workload, &places) {
            Ok(()) => Ok(Ok(places)),
            Err(DriverFault::Other(error)) => Ok(Err(error)),
            Err(fault) => Err(fault),
        }
    }

    /// Makes the textures of a workload whose buffers are in these places, unless there are some.
    fn bind_textures(
        &mut self,
        context: &Context,
        workload: &Workload,
        places: &[usize],
    ) -> std::result::Result<(), DriverFault> {
        if !workload.textures.is_empty() && self.textures(workload, places).is_none() {
            let bound = BoundTextures::new(context, workload, places, |place| self.memory(place))?;
            self.textures.push(bound);
        }
        Ok(())
    }

    /// The textures of a workload, if it has some.
    pub fn textures(&self, workload: &Workload, places: &[usize]) -> Option<&BoundTextures> {
        self.textures.iter().find(|bound| bound.is_of(workload, places))
    }

    /// Restores the initial contents of the buffers that kernels write, and of their arrays; does
    /// not wait.
    pub fn restore(
        &self,
        workload: &Workload,
        places: &[usize],
        wanted: impl Fn(&Slab) -> bool,
        stream: Stream,
    ) -> Result<()> {
        for slab in places.iter().filter_map(|place| self.slabs.get(*place)).filter(|slab| wanted(slab)) {
            slab.restore(stream)?;
        }
        let is_wanted = |slab: &&Slab| wanted(slab) && slab.pristine.is_some();
        let written = |place: usize| self.slabs.get(place).filter(is_wanted).map(|slab| &slab.live);
        self.textures(workload, places).map_or(Ok(()), |textures| textures.fill(written, stream))
    }

    /// Copies what the arrays of a workload hold into their buffers; does not wait.
    pub fn read_arrays(&self, workload: &Workload, places: &[usize]) -> Result<()> {
        self.textures(workload, places).map_or(Ok(()), |textures| textures.read_back(|place| self.memory(place)))
    }

    fn memory(&self, place: usize) -> Option<&Memory> {
        self.slabs.get(place).map(|slab| &slab.live)
    }

    /// Whether there is another buffer set than the first.
    pub fn has_other_sets(&self) -> bool {
        self.slabs.iter().any(|slab| slab.buffer_set > 0)
    }

    /// Frees all buffer sets but the first, and all textures.
    pub fn keep_first_set(&mut self) {
        self.textures.clear();
        self.slabs.retain(|slab| slab.buffer_set == 0);
    }

    /// Frees what none of `buffers` describes, all buffer sets but the first, and all textures.
    pub fn keep_only<'a>(&mut self, buffers: impl Iterator<Item = &'a Buffer> + Clone) {
        self.keep_first_set();
        self.slabs.retain(|slab| buffers.clone().any(|buffer| *buffer == slab.buffer));
    }

    /// Returns the indices of the slabs of `buffers` in their order, of one buffer set; creates those
    /// that are missing. Returns an error with the bytes wanted if they do not fit.
    fn get_or_create<'a>(
        &mut self,
        context: &Context,
        (buffers, buffer_set): (impl Iterator<Item = &'a Buffer>, u32),
        heartbeat: &mut dyn FnMut(),
    ) -> std::result::Result<Vec<usize>, DriverFault> {
        let before = self.slabs.len();
        let taken = self.place(context, buffers, buffer_set).and_then(|taken| {
            self.fill_new(before, &taken, heartbeat)?;
            Ok(taken)
        });
        if taken.is_err() {
            self.slabs.truncate(before);
        }
        taken
    }

    /// The slabs of `buffers` in their order; those that were missing have no contents yet.
    fn place<'a>(
        &mut self,
        context: &Context,
        buffers: impl Iterator<Item = &'a Buffer>,
        buffer_set: u32,
    ) -> std::result::Result<Vec<usize>, DriverFault> {
        let mut taken: Vec<usize> = Vec::new();
        for buffer in buffers {
            let is_for = |slab: &Slab| slab.buffer_set == buffer_set && slab.buffer == *buffer;
            // Two parameters may have equal buffers, which are still two.
            let known = (0..self.slabs.len()).find(|i| self.slabs.get(*i).is_some_and(is_for) && !taken.contains(i));
            let place = match known {
                Some(place) => place,
                None => {
                    let (live, addresses) = (allocate_buffer(context, buffer, self.guard)?, Vec::new());
                    let (used, buffer) = (buffer_size(buffer), buffer.clone());
                    self.slabs.push(Slab { digest: 0, used, buffer_set, buffer, live, addresses, pristine: None });
                    self.slabs.len() - 1
                }
            };
            taken.push(place);
        }
        Ok(taken)
    }

    /// Gives the slabs from `first` on their contents; `taken` are those of the workload, whose
    /// addresses recordings name by number.
    fn fill_new(&mut self, first: usize, taken: &[usize], heartbeat: &mut dyn FnMut()) -> Result<()> {
        let bases: Vec<u64> =
            taken.iter().map(|place| self.slabs.get(*place).map_or(0, |slab| slab.live.address())).collect();
        for place in first..self.slabs.len() {
            let Some(slab) = self.slabs.get_mut(place) else { continue };
            if let Fill::File(file) = &slab.buffer.fill {
                let address = |&(at, buffer): &(u64, usize)| {
                    let word = file.bytes().get(usize::try_from(at).ok()?..)?.first_chunk::<8>()?;
                    Some((at, u64::from_le_bytes(*word).wrapping_add(*bases.get(buffer)?)))
                };
                slab.addresses = file.pointers().iter().filter_map(address).collect();
            }
            let Some(slab) = self.slabs.get(place) else { continue };
            self.fill(slab, &slab.live, heartbeat)?;
            let digest = self.digests(&[place])?;
            if let (Some(slab), Some(digest)) = (self.slabs.get_mut(place), digest.first()) {
                slab.digest = *digest;
            }
        }
        Ok(())
    }

    /// Gives memory the initial contents of a slab: a copy of what another buffer set has, where
    /// there are no addresses in it.
    fn fill(&self, slab: &Slab, to: &Memory, heartbeat: &mut dyn FnMut()) -> Result<()> {
        let is_same = |other: &&Slab| other.buffer_set != slab.buffer_set && other.buffer == slab.buffer;
        match self.slabs.iter().find(is_same).filter(|_| slab.addresses.is_empty()) {
            Some(same) => to.copy_from(same.pristine.as_ref().unwrap_or(&same.live), Stream::DEFAULT),
            None => make(&self.code, slab, to, heartbeat),
        }
    }

    /// Keeps a copy of the initial contents of a buffer that kernels write.
    fn keep_pristine_copy(
        &mut self,
        context: &Context,
        place: usize,
        heartbeat: &mut dyn FnMut(),
    ) -> std::result::Result<(), DriverFault> {
        let Some(slab) = self.slabs.get(place).filter(|slab| slab.pristine.is_none()) else { return Ok(()) };
        let pristine = allocate_buffer(context, &slab.buffer, self.guard)?;
        self.fill(slab, &pristine, heartbeat)?;
        if let Some(slab) = self.slabs.get_mut(place) {
            slab.pristine = Some(pristine);
        }
        Ok(())
    }

    /// Restores the slabs that a stray write has changed, their copies included.
    pub fn repair(&mut self, places: &[usize], heartbeat: &mut dyn FnMut()) -> std::result::Result<(), DriverFault> {
        for &place in places {
            let Some(slab) = self.slabs.get(place) else {
                continue;
            };
            let memory = slab.pristine.as_ref().unwrap_or(&slab.live);
            if self.code.digests(&[memory])?.first() != Some(&slab.digest) {
                make(&self.code, slab, memory, heartbeat)?;
            }
            slab.restore(Stream::DEFAULT)?;
        }
        for textures in &self.textures {
            textures.fill(|place| self.memory(place), Stream::DEFAULT)?;
        }
        Ok(())
    }

    /// Digests of the present contents of the slabs, guards included; waits for what was
    /// launched.
    pub fn digests(&self, places: &[usize]) -> Result<Vec<u64>> {
        let memories: Vec<&Memory> =
            places.iter().filter_map(|place| self.slabs.get(*place)).map(|slab| &slab.live).collect();
        self.code.digests(&memories)
    }
}

/// Bytes of a buffer that was allocated.
pub(super) fn buffer_size(buffer: &Buffer) -> usize {
    buffer.count as usize * buffer.element.size()
}

/// Memory for a buffer and a guard of this many bytes; without one it ends where the buffer ends.
fn allocate_buffer(context: &Context, buffer: &Buffer, guard: usize) -> std::result::Result<Memory, DriverFault> {
    let size = buffer.element.size() as u64;
    let wanted = buffer.count.saturating_mul(size);
    let bytes = usize::try_from(wanted)
        .ok()
        .and_then(|bytes| if guard == 0 { Some(bytes) } else { bytes.checked_next_multiple_of(8)?.checked_add(guard) })
        .ok_or(DriverFault::OutOfMemory(wanted))?;
    Memory::allocate(context, bytes).map_err(|error| match DriverFault::from(error) {
        DriverFault::OutOfMemory(_) => DriverFault::OutOfMemory(wanted),
        other => other,
    })
}

/// Makes the contents of a slab, and the guard behind it: where they follow a recipe, on the
/// device.
fn make(code: &DeviceCode, slab: &Slab, to: &Memory, heartbeat: &mut dyn FnMut()) -> Result<()> {
    let buffer = &slab.buffer;
    to.set(GUARD_BYTE, Stream::DEFAULT)?;
    let scalars = usize::try_from(buffer.count).unwrap_or(usize::MAX).saturating_mul(buffer.element.lanes.into());
    match contents::recipe(buffer) {
        Some(recipe) if code.fill(to, scalars, buffer.element.scalar, recipe, buffer.seed)? => Ok(()),
        _ => upload_slab(slab, to, heartbeat),
    }
}

/// Makes the contents of a slab, by several threads, and uploads them.
fn upload_slab(slab: &Slab, to: &Memory, heartbeat: &mut dyn FnMut()) -> Result<()> {
    let buffer = &slab.buffer;
    let size = buffer.element.size().max(1);
    let total = usize::try_from(buffer.count).unwrap_or(usize::MAX);
    let elements = (CHUNK / size).max(1);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(16));
    let mut bytes = vec![0; elements.min(total) * size];
    for first in (0..total).step_by(elements) {
        heartbeat();
        let count = elements.min(total - first);
        let bytes = bytes.get_mut(..count * size).unwrap_or_default();
        let share = count.div_ceil(threads).max(4096);
        std::thread::scope(|scope| {
            for (i, part) in bytes.chunks_mut(share * size).enumerate() {
                spawn_or_run(scope, move || {
                    let from = (first + i * share) as u64;
                    contents::fill_bytes(buffer, from..from + (part.len() / size) as u64, part);
                });
            }
        });
        put_addresses(&slab.addresses, first * size, bytes);
        to.write(first * size, bytes)?;
    }
    Ok(())
}

/// Puts the addresses of a slab into a piece of its contents that begins at byte `first`.
fn put_addresses(addresses: &[(u64, u64)], first: usize, piece: &mut [u8]) {
    let (first, end) = (first as u64, (first + piece.len()) as u64);
    let from = addresses.partition_point(|(at, _)| at + 8 <= first);
    for (at, address) in addresses.iter().skip(from).take_while(|(at, _)| *at < end) {
        for (byte, value) in (*at..).zip(address.to_le_bytes()) {
            let place = byte.checked_sub(first).and_then(|at| piece.get_mut(usize::try_from(at).ok()?));
            place.into_iter().for_each(|place| *place = value);
        }
    }
}
