//! Safe wrappers of the CUDA driver API: each handle is released when dropped, each result is
//! checked.
//!
//! The driver library is looked for at run time. A [`Context`] is made once and stays current
//! on the thread that made it; all other handles here are made after it, on that thread, and
//! cannot leave it.

use crate::gpu::Device;
use crate::launch::Launch;
use cudarc::driver::{DriverError, result, sys};
use std::ffi::{CString, c_void};
use std::marker::PhantomData;

pub(super) type Result<T> = std::result::Result<T, DriverError>;

/// CUDA's name of an error: `CUDA_ERROR_ILLEGAL_ADDRESS`.
pub(super) fn name(error: &DriverError) -> String {
    match error.error_name() {
        Ok(name) => name.to_string_lossy().into_owned(),
        Err(_) => format!("{:?}", error.0),
    }
}

/// The class of a driver error, by its consequences.
#[derive(Debug)]
pub(super) enum DriverFault {
    /// The context is no longer usable.
    Context(DriverError),
    /// The block takes more than the device has.
    Resources,
    /// The device does not hold all blocks of a cooperative launch at once.
    TooManyBlocks,
    /// Memory of this many bytes does not fit; 0 where the number is not known.
    OutOfMemory(u64),
    Other(DriverError),
}

impl From<DriverError> for DriverFault {
    fn from(error: DriverError) -> Self {
        use sys::CUresult::*;
        match error.0 {
            CUDA_ERROR_OUT_OF_MEMORY => DriverFault::OutOfMemory(0),
            CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => DriverFault::Resources,
            CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE => DriverFault::TooManyBlocks,
            CUDA_ERROR_ILLEGAL_ADDRESS
            | CUDA_ERROR_LAUNCH_TIMEOUT
            | CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUDA_ERROR_ASSERT
            | CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUDA_ERROR_MISALIGNED_ADDRESS
            | CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUDA_ERROR_INVALID_PC
            | CUDA_ERROR_LAUNCH_FAILED
            | CUDA_ERROR_ECC_UNCORRECTABLE
            | CUDA_ERROR_UNKNOWN => DriverFault::Context(error),
            _ => DriverFault::Other(error),
        }
    }
}

/// Describes the visible devices in the driver's order; makes no context. The error is a sentence
/// for the user.
pub(super) fn devices() -> std::result::Result<Vec<Device>, String> {
    // SAFETY: it only looks for the library; the driver's initializers have no precondition.
    if !unsafe { sys::is_culib_present() } {
        return Err("there is no CUDA driver (libcuda)".to_owned());
    }
    result::init().map_err(failed("the CUDA driver's start"))?;
    let count = result::device::get_count().map_err(failed("looking for a GPU"))?;
    let get = |index| describe(result::device::get(index)?);
    (0..count).map(|index| get(index).map_err(failed("asking for the GPU's properties"))).collect()
}

fn failed(what: &'static str) -> impl Fn(DriverError) -> String {
    move |error: DriverError| format!("{what} failed: {}", name(&error))
}

/// The primary context of a device, current on this thread.
pub(super) struct Context {
    pub device: Device,
    ordinal: sys::CUdevice,
    _here: PhantomData<*const ()>,
}

impl Context {
    /// Opens one of [`devices`] by its place. The error is a sentence for the user.
    pub fn open(index: usize) -> std::result::Result<Context, String> {
        let index = i32::try_from(index).map_err(|error| error.to_string())?;
        let ordinal = result::device::get(index).map_err(failed("looking for a GPU"))?;
        let device = describe(ordinal).map_err(failed("asking for the GPU's properties"))?;
        // SAFETY: `ordinal` is a device that the driver just gave; its primary context is kept
        // until this value is dropped.
        let context = unsafe { result::primary_ctx::retain(ordinal) }.map_err(failed("making a context on the GPU"))?;
        // SAFETY: `context` was just made and is not released.
        unsafe { result::ctx::set_current(context) }.map_err(failed("making a context on the GPU"))?;
        let mut context = Context { device, ordinal, _here: PhantomData };
        context.device.free_bytes = context.free_bytes();
        Ok(context)
    }

    /// Bytes of memory that are free now; 0 where the driver does not say.
    pub fn free_bytes(&self) -> u64 {
        result::mem_get_info().map_or(0, |(free, _)| free as u64)
    }

    /// Waits for all that was launched.
    pub fn synchronize(&self) -> Result<()> {
        result::ctx::synchronize()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained once, and what was made in it is gone. An error means that it is
        // gone as well.
        let _ = unsafe { result::primary_ctx::release(self.ordinal) };
    }
}

/// Where work is queued: in order within each.
#[derive(Clone, Copy)]
pub(super) struct Stream(pub(super) sys::CUstream);

impl Stream {
    pub const DEFAULT: Stream = Stream(std::ptr::null_mut());
}

/// What the driver says of a device. What it does not know stays 0.
fn describe(ordinal: sys::CUdevice) -> Result<Device> {
    use sys::CUdevice_attribute_enum as A;
    let get = |attribute| {
        // SAFETY: `ordinal` is a device that the driver gave.
        let value = unsafe { result::device::get_attribute(ordinal, attribute) };
        value.map_or(0, |value| u32::try_from(value).unwrap_or(0))
    };
    let mut version = 0;
    // SAFETY: `version` is a place for the one integer that is written.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result()?;
    let (clock, width) =
        (get(A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE), get(A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH));
    Ok(Device {
        name: result::device::get_name(ordinal)?,
        // Instances of a divided GPU are the same device to it: they share its clocks, and some its
        // memory, so that one is to wait for the other.
        uuid: uuid("GPU", result::device::get_uuid(ordinal)?),
        compute_capability: 10 * get(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
            + get(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        driver: u32::try_from(version).unwrap_or(0),
        sms: get(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        clock_khz: get(A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        memory_clock_khz: clock,
        memory_bus_bits: width,
        // SAFETY: `ordinal` is a device that the driver gave.
        memory_bytes: unsafe { result::device::total_mem(ordinal) }? as u64,
        // Known once there is a context.
        free_bytes: 0,
        l2_bytes: get(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE).into(),
        bandwidth: f64::from(clock) * 1e3 * 2.0 * f64::from(width) / 8.0,
        shared_per_block: get(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
        shared_per_block_optin: get(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
        shared_per_sm: get(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        registers_per_sm: get(A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
        threads_per_sm: get(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
        blocks_per_sm: get(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
        threads_per_block: get(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
    })
}

/// The first driver, as it numbers itself, that tells the instances of a divided GPU apart.
const NAMES_INSTANCES: i32 = 11_040;

/// The UUID of the instance of a divided GPU (MIG) that a device is, as NVIDIA's tools write
/// it; `None` where it is a whole GPU. Of an instance `cuDeviceGetUuid` names the GPU and
/// `cuDeviceGetUuid_v2` the instance (CUDA Driver API, Device Management).
pub(super) fn instance(index: i32) -> Option<String> {
    let mut version = 0;
    // SAFETY: `version` is a place for the one integer that is written.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().ok().filter(|()| version >= NAMES_INSTANCES)?;
    let ordinal = result::device::get(index).ok()?;
    let whole = result::device::get_uuid(ordinal).ok()?;
    let mut instance = whole;
    // SAFETY: `ordinal` is a device that the driver gave, and `instance` a place for the UUID that
    // is written.
    unsafe { sys::cuDeviceGetUuid_v2(&mut instance, ordinal) }.result().ok()?;
    (instance.bytes != whole.bytes).then(|| uuid("MIG", instance))
}

/// A UUID as NVIDIA's tools write it.
fn uuid(kind: &str, uuid: sys::CUuuid) -> String {
    let hex: String = uuid.bytes.iter().map(|byte| format!("{:02x}", *byte as u8)).collect();
    let group = |range: std::ops::Range<usize>| hex.get(range).unwrap_or_default();
    format!("{kind}-{}-{}-{}-{}-{}", group(0..8), group(8..12), group(12..16), group(16..20), group(20..32))
}

/// Device memory. All operations are in order on the default stream.
pub(super) struct Memory {
    address: sys::CUdeviceptr,
    bytes: usize,
    _here: PhantomData<*const ()>,
}

impl Memory {
    /// At least one byte is allocated, so that every memory has an address of its own.
    pub fn allocate(_: &Context, bytes: usize) -> Result<Memory> {
        // SAFETY: a context is current on this thread, as the borrowed one shows.
        let address = unsafe { result::malloc_sync(bytes.max(1)) }?;
        Ok(Memory { address, bytes, _here: PhantomData })
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Fills all of it with one byte; does not wait.
    pub fn set(&self, byte: u8, stream: Stream) -> Result<()> {
        // SAFETY: the range is this allocation's.
        unsafe { result::memset_d8_async(self.address, byte, self.bytes, stream.0) }
    }

    /// Copies `bytes` to `offset`, as many as fit; waits.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        let room = self.bytes.saturating_sub(offset);
        let bytes = bytes.get(..room).unwrap_or(bytes);
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: `offset` and the length, cut to the room behind it, lie within this allocation.
        unsafe { result::memcpy_htod_sync(self.address + offset as u64, bytes) }
    }

    /// Copies what lies at `offset` into all of `bytes`, or as much as there is; waits.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<()> {
        let length = bytes.len().min(self.bytes.saturating_sub(offset));
        if length == 0 {
            return Ok(());
        }
        // SAFETY: `offset` and the length lie within this allocation, and the destination is a
        // slice of that length.
        unsafe { result::memcpy_dtoh_sync(&mut bytes[..length], self.address + offset as u64) }
    }

    /// Copies the contents of `other`, as much as fits; does not wait.
    pub fn copy_from(&self, other: &Memory, stream: Stream) -> Result<()> {
        let length = self.bytes.min(other.bytes);
        // SAFETY: the length is within both allocations, which do not overlap, and a stream keeps
        // the order.
        unsafe { result::memcpy_dtod_async(self.address, other.address, length, stream.0) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the allocation is this value's alone. An error means that the context is gone,
        // and the memory with it.
        let _ = unsafe { result::free_sync(self.address) };
    }
}

/// Loaded machine code (or PTX, which the driver compiles).
pub(super) struct Module {
    handle: sys::CUmodule,
}

impl Module {
    pub fn load(_: &Context, image: &[u8]) -> Result<Module> {
        // The driver takes a pointer alone: it finds the end of a cubin from its ELF header and
        // that of PTX from a zero.
        if image.starts_with(b"\x7fELF") && !whole_elf(image) {
            return Err(DriverError(sys::CUresult::CUDA_ERROR_INVALID_IMAGE));
        }
        let mut terminated = image.to_vec();
        terminated.push(0);
        // SAFETY: the image is text that ends in a zero, or an ELF file whose header tables lie
        // within it.
        let handle = unsafe { result::module::load_data(terminated.as_ptr().cast()) }?;
        Ok(Module { handle })
    }

    /// A variable by its symbol; `None` where this code does not have it. It must not outlive
    /// the module.
    pub fn global(&self, symbol: &str) -> Result<Option<Global>> {
        let not_found = DriverError(sys::CUresult::CUDA_ERROR_NOT_FOUND);
        let symbol = CString::new(symbol).map_err(|_| not_found)?;
        // SAFETY: the module is loaded.
        match unsafe { result::module::get_global(self.handle, symbol) } {
            Ok((address, bytes)) => Ok(Some(Global { address, bytes })),
            Err(error) if error == not_found => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A kernel by its symbol. It must not outlive the module.
    pub fn function(&self, symbol: &str) -> Result<Function> {
        let not_found = DriverError(sys::CUresult::CUDA_ERROR_NOT_FOUND);
        let symbol = CString::new(symbol).map_err(|_| not_found)?;
        // SAFETY: the module is loaded.
        let handle = unsafe { result::module::get_function(self.handle, symbol) }?;
        Ok(Function { handle })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: the module is this value's alone. An error means that the context is gone, and
        // the module with it.
        let _ = unsafe { result::module::unload(self.handle) };
    }
}

/// Bytes that are brought to the host at a time.
pub(super) const PIECE: usize = 256 << 20;

/// A variable of a loaded module.
#[derive(Clone, Copy)]
pub(super) struct Global {
    address: sys::CUdeviceptr,
    bytes: usize,
}

impl Global {
    /// Copies the first `length` bytes of `memory`, as many as fit; does not wait.
    pub fn copy_from(&self, memory: &Memory, length: usize, stream: Stream) -> Result<()> {
        let length = length.min(memory.bytes).min(self.bytes);
        // SAFETY: the length is within the variable and the allocation, and a stream keeps the
        // order.
        unsafe { result::memcpy_dtod_async(self.address, memory.address, length, stream.0) }
    }

    /// Reads all of it; waits.
    pub fn read(&self, heartbeat: &mut dyn FnMut()) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.bytes];
        for (number, piece) in bytes.chunks_mut(PIECE).enumerate() {
            heartbeat();
            // SAFETY: the piece lies within the variable, and the destination is a slice of its
            // length.
            unsafe { result::memcpy_dtoh_sync(piece, self.address + (number * PIECE) as u64) }?;
        }
        Ok(bytes)
    }
}

/// Whether the tables of a 64-bit ELF file, and all that they point at, lie within the file.
fn whole_elf(image: &[u8]) -> bool {
    use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
    type Header = object::elf::FileHeader64<object::LittleEndian>;
    let whole = || -> object::read::Result<bool> {
        let header = Header::parse(image)?;
        let endian = header.endian()?;
        let sections = header.section_headers(endian, image)?;
        let segments = header.program_headers(endian, image)?;
        Ok(sections.iter().all(|s| s.data(endian, image).is_ok())
            && segments.iter().all(|s| s.data(endian, image).is_ok()))
    };
    whole().unwrap_or(false)
}

/// A kernel of a loaded module.
#[derive(Clone, Copy)]
pub(super) struct Function {
    handle: sys::CUfunction,
}

impl Function {
    pub fn attribute(&self, attribute: sys::CUfunction_attribute_enum) -> Result<u32> {
        // SAFETY: the module of the function is loaded.
        let value = unsafe { result::function::get_function_attribute(self.handle, attribute) }?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// Lets blocks have this many bytes of dynamic shared memory, where that is more than the
    /// 48 KiB that need no asking.
    pub fn allow_shared(&self, bytes: u32) -> Result<()> {
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        self.set(sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes)
    }

    /// Prefers this many percent of an SM's shared memory for launches from now on; `None` leaves
    /// it to the driver.
    pub fn prefer_carveout(&self, percent: Option<u8>) -> Result<()> {
        let percent = percent.map_or(-1, i32::from);
        self.set(sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, percent)
    }

    fn set(&self, attribute: sys::CUfunction_attribute_enum, value: i32) -> Result<()> {
        // SAFETY: the module of the function is loaded.
        unsafe { result::function::set_function_attribute(self.handle, attribute, value) }
    }

    /// Sizes of the parameters in bytes. `None` where the driver (before CUDA 12.4) cannot
    /// tell.
    pub fn parameters(&self, context: &Context) -> Result<Option<Vec<usize>>> {
        if context.device.driver < 12040 {
            return Ok(None);
        }
        let mut sizes = Vec::new();
        loop {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: the module of the function is loaded, and both places take what is written.
            let status = unsafe { sys::cuFuncGetParamInfo(self.handle, sizes.len(), &mut offset, &mut size) };
            match status.result() {
                Ok(()) => sizes.push(size),
                Err(DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE)) => {
                    return Ok(Some(sizes));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Launches, `cooperative` with all blocks at once; does not wait.
    ///
    /// # Safety
    /// There is one argument for each parameter, of its size, but for the blocks of the grid that
    /// coarsened code takes, which are added here. (What the kernel then does to
    /// memory is the kernel's: it is kept from this process's own memory by the device, and
    /// what it does to device memory is checked by digest.)
    pub unsafe fn launch(
        &self,
        of: &Launch,
        cooperative: bool,
        arguments: &mut [Vec<u8>],
        stream: Stream,
    ) -> Result<()> {
        let mut pointers: Vec<*mut c_void> = arguments.iter_mut().map(|bytes| bytes.as_mut_ptr().cast()).collect();
        let mut blocks = of.grid[0].to_ne_bytes();
        pointers.extend(of.is_coarsened().then(|| blocks.as_mut_ptr().cast()));
        let launch = if cooperative { result::launch_cooperative_kernel } else { result::launch_kernel };
        // SAFETY: the module is loaded; the driver copies the arguments before it returns, and the
        // caller vouches for them.
        unsafe { launch(self.handle, of.launched_grid().into(), of.block.into(), of.shared, stream.0, &mut pointers) }
    }
}

/// A point in a stream that the device puts a time to.
pub(super) struct Event {
    handle: sys::CUevent,
}

impl Event {
    pub fn new(_: &Context) -> Result<Event> {
        let handle = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)?;
        Ok(Event { handle })
    }

    pub fn record(&self) -> Result<()> {
        // SAFETY: the event exists; the default stream always does.
        unsafe { result::event::record(self.handle, std::ptr::null_mut()) }
    }

    /// Makes recording it a step of the graph that is captured.
    fn capture(&self, stream: Stream) -> Result<()> {
        let external = sys::CUevent_record_flags_enum::CU_EVENT_RECORD_EXTERNAL as u32;
        // SAFETY: event and stream exist.
        unsafe { sys::cuEventRecordWithFlags(self.handle, stream.0, external) }.result()
    }

    /// Waits for this event and gives the microseconds since `start`.
    pub fn since(&self, start: &Event) -> Result<f64> {
        // SAFETY: both events exist and were recorded.
        let milliseconds = unsafe {
            result::event::synchronize(self.handle)?;
            result::event::elapsed(start.handle, self.handle)?
        };
        Ok(f64::from(milliseconds) * 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the event is this value's alone. An error means that the context is gone, and the
        // event with it.
        let _ = unsafe { result::event::destroy(self.handle) };
    }
}

/// Work that is queued as a whole, with several timed parts.
pub(super) struct Graph {
    handle: sys::CUgraphExec,
    /// Start and end of each part.
    events: Vec<(Event, Event)>,
}

impl Graph {
    /// Whether the driver can put events into graphs.
    pub fn can(context: &Context) -> bool {
        context.device.driver >= 11010
    }

    /// A graph of this many parts, one after the other: each is what `before` queues, untimed,
    /// and what `timed` queues.
    pub fn capture(
        context: &Context,
        parts: usize,
        mut before: impl FnMut(Stream) -> Result<()>,
        mut timed: impl FnMut(Stream) -> Result<()>,
    ) -> Result<Graph> {
        let made: Result<Vec<_>> = (0..parts).map(|_| Ok((Event::new(context)?, Event::new(context)?))).collect();
        let events = made?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)?;
        let relaxed = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream was just made.
        let begun = unsafe { result::stream::begin_capture(stream, relaxed) };
        let captured = begun.and_then(|()| {
            let queued = events.iter().try_for_each(|(start, stop)| {
                before(Stream(stream))?;
                start.capture(Stream(stream))?;
                timed(Stream(stream))?;
                stop.capture(Stream(stream))
            });
            // SAFETY: a capture was begun on this stream; it must be ended whatever came of it.
            let graph = unsafe { result::stream::end_capture(stream) };
            queued.and(graph)
        });
        // SAFETY: the stream is not used again.
        let _ = unsafe { result::stream::destroy(stream) };
        let graph = captured?;
        // SAFETY: the graph was just captured; the executable one does not need it.
        let handle = unsafe {
            let handle = result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0));
            let _ = result::graph::destroy(graph);
            handle?
        };
        Ok(Graph { handle, events })
    }

    /// Runs it on the default stream and waits; the microseconds of each part.
    pub fn run(&self) -> Result<Vec<f64>> {
        // SAFETY: the graph is instantiated, and all that it was captured from outlives it, as its
        // owner sees to.
        unsafe { result::graph::launch(self.handle, std::ptr::null_mut()) }?;
        result::ctx::synchronize()?;
        self.events.iter().map(|(start, stop)| stop.since(start)).collect()
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the graph is this value's alone. An error means that the context is gone, and the
        // graph with it.
        let _ = unsafe { result::graph::exec_destroy(self.handle) };
    }
}

#[cfg(test)]
mod tests {
    use super::whole_elf;

    /// The header of a cubin (CUDA 13.0, sm_90) with its tables moved: an ELF file of no
    /// segments and one empty section.
    fn cubin(section_offset: u64, section_size: u64) -> Vec<u8> {
        let mut file = b"\x7fELF\x02\x01\x01\x41\x08\0\0\0\0\0\0\0\x02\0\xbe\0\x01\0\0\0".to_vec();
        file.extend([0; 16]);
        file.extend(64u64.to_le_bytes());
        file.extend([2, 90, 0, 6]);
        file.extend([64u16, 56, 0, 64, 1, 0].iter().flat_map(|n| n.to_le_bytes()));
        file.extend([0, 0, 0, 0, 1, 0, 0, 0]);
        file.extend([0; 16]);
        file.extend(section_offset.to_le_bytes());
        file.extend(section_size.to_le_bytes());
        file.extend([0; 24]);
        file
    }

    #[test]
    fn a_cubin_that_points_past_its_end_is_not_given_to_the_driver() {
        assert!(whole_elf(&cubin(0, 128)));
        assert!(!whole_elf(&cubin(0, 129)));
        assert!(!whole_elf(&cubin(u64::MAX, 8)));
        let whole = cubin(0, 128);
        for length in 0..whole.len() {
            assert!(!whole_elf(&whole[..length]), "{length} bytes");
        }
    }
}
