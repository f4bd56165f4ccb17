//! Descriptions of CUDA arrays, textures and surfaces -> these in the device's memory.
//!
//! Invariants: the buffer of an array has exactly its bytes, so that no copy goes beyond either;
//! what a texture reads lies within its array or buffer.

use super::driver::{Context, DriverFault, Memory, Result, Stream};
use crate::cuda::{Element, Sampling, TextureArray, TextureMemory, TextureObject};
use crate::workload::Workload;
use cudarc::driver::{DriverError, sys};
use std::marker::PhantomData;
use std::ptr::{null, null_mut};

/// The arrays, textures and surfaces of a workload.
pub(super) struct BoundTextures {
    // In the order in which they are to be dropped.
    objects: Vec<Object>,
    arrays: Vec<DeviceArray>,
    /// What the objects were made from.
    textures: Vec<TextureObject>,
    /// The places of the workload's buffers in the pool.
    places: Vec<usize>,
}

/// A CUDA array.
struct DeviceArray {
    handle: sys::CUarray,
    description: TextureArray,
    _here: PhantomData<*const ()>,
}

/// A texture or surface object.
struct Object {
    handle: u64,
    is_texture: bool,
    _here: PhantomData<*const ()>,
}

/// Where a copy goes.
#[derive(Clone, Copy)]
enum Direction {
    ToArray,
    ToMemory,
}

impl BoundTextures {
    /// Creates the arrays and objects of a workload whose buffers are in these places, and fills
    /// the arrays from their buffers. `memory` gives the memory in a place.
    pub fn new<'m>(
        context: &Context,
        workload: &Workload,
        places: &[usize],
        memory: impl Fn(usize) -> Option<&'m Memory>,
    ) -> std::result::Result<BoundTextures, DriverFault> {
        let invalid = || DriverFault::Other(DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE));
        let sizes = workload.sizes();
        let mut bound = BoundTextures {
            objects: Vec::new(),
            arrays: Vec::new(),
            textures: workload.textures.clone(),
            places: places.to_vec(),
        };
        for array in &workload.arrays {
            let size = *sizes.get(array.buffer).filter(|size| array.has_bytes(**size)).ok_or_else(invalid)?;
            let made = DeviceArray::new(context, array).map_err(|error| match DriverFault::from(error) {
                DriverFault::OutOfMemory(_) => DriverFault::OutOfMemory(size),
                other => other,
            })?;
            bound.arrays.push(made);
        }
        for texture in &workload.textures {
            if !texture.memory.is_within(&workload.arrays, &sizes) {
                return Err(invalid());
            }
            let place = texture.memory.buffer(&workload.arrays).and_then(|buffer| places.get(buffer));
            let base = place.and_then(|place| memory(*place)).ok_or_else(invalid)?.address();
            let resource = resource(&texture.memory, &bound.arrays, base).ok_or_else(invalid)?;
            bound.objects.push(Object::new(context, &resource, texture.sampling.as_ref())?);
        }
        bound.fill(memory, Stream::DEFAULT)?;
        Ok(bound)
    }

    /// Whether they are those of a workload whose buffers are in these places.
    pub fn is_of(&self, workload: &Workload, places: &[usize]) -> bool {
        let arrays = self.arrays.iter().map(|array| &array.description);
        self.places == places && self.textures == workload.textures && arrays.eq(&workload.arrays)
    }

    /// Puts the handles into their arguments.
    pub fn put_handles(&self, arguments: &mut [Vec<u8>]) {
        for (TextureObject { argument, field, .. }, object) in self.textures.iter().zip(&self.objects) {
            let bytes = arguments.get_mut(*argument).zip(usize::try_from(*field).ok());
            let place = bytes.and_then(|(bytes, field)| bytes.get_mut(field..)?.first_chunk_mut::<8>());
            place.into_iter().for_each(|place| *place = object.handle.to_le_bytes());
        }
    }

    /// Copies into arrays what the memory of their buffers holds, where there is some; does not
    /// wait.
    pub fn fill<'m>(&self, memory: impl Fn(usize) -> Option<&'m Memory>, stream: Stream) -> Result<()> {
        self.copy(memory, Direction::ToArray, stream)
    }

    /// Copies what the arrays hold into the memory of their buffers; does not wait.
    pub fn read_back<'m>(&self, memory: impl Fn(usize) -> Option<&'m Memory>) -> Result<()> {
        self.copy(memory, Direction::ToMemory, Stream::DEFAULT)
    }

    fn copy<'m>(
        &self,
        memory: impl Fn(usize) -> Option<&'m Memory>,
        direction: Direction,
        stream: Stream,
    ) -> Result<()> {
        for array in &self.arrays {
            let place = self.places.get(array.description.buffer);
            if let Some(memory) = place.and_then(|place| memory(*place)) {
                array.copy(memory, direction, stream)?;
            }
        }
        Ok(())
    }
}

impl DeviceArray {
    fn new(_: &Context, description: &TextureArray) -> Result<DeviceArray> {
        let TextureArray { extent: [width, height, depth], texel, flags, .. } = *description;
        // `CUDA_ARRAY3D_DESCRIPTOR`
        let words = [width, height, depth, format_word(texel)?, flags.into()];
        const { assert!(size_of::<[u64; 5]>() == size_of::<sys::CUDA_ARRAY3D_DESCRIPTOR>()) };
        let mut handle = null_mut();
        // SAFETY: a context is current on this thread, as the borrowed one shows; the words have
        // the layout of the descriptor, and `handle` is a place for the handle.
        unsafe { sys::cuArray3DCreate_v2(&mut handle, words.as_ptr().cast()) }.result()?;
        Ok(DeviceArray { handle, description: description.clone(), _here: PhantomData })
    }

    /// Copies the whole array from or to the beginning of `memory`. It is an error if `memory` is
    /// smaller than the array.
    fn copy(&self, memory: &Memory, direction: Direction, stream: Stream) -> Result<()> {
        if self.description.bytes() > memory.bytes() as u64 {
            return Err(DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE));
        }
        let (row, rows) = (self.description.row_bytes() as usize, self.description.rows() as usize);
        let (device, array) = (sys::CUmemorytype::CU_MEMORYTYPE_DEVICE, sys::CUmemorytype::CU_MEMORYTYPE_ARRAY);
        let (source, destination) = match direction {
            Direction::ToArray => (device, array),
            Direction::ToMemory => (array, device),
        };
        // Of each side the driver reads what its kind of memory has.
        let copy = sys::CUDA_MEMCPY3D {
            srcXInBytes: 0,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            srcMemoryType: source,
            srcHost: null(),
            srcDevice: memory.address(),
            srcArray: self.handle,
            reserved0: null_mut(),
            srcPitch: row,
            srcHeight: rows,
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstMemoryType: destination,
            dstHost: null_mut(),
            dstDevice: memory.address(),
            dstArray: self.handle,
            reserved1: null_mut(),
            dstPitch: row,
            dstHeight: rows,
            WidthInBytes: row,
            Height: rows,
            Depth: self.description.layers() as usize,
        };
        // SAFETY: array and memory exist, and have at least the bytes of the copy; a stream keeps
        // the order.
        unsafe { sys::cuMemcpy3DAsync_v2(&copy, stream.0) }.result()
    }
}

impl Drop for DeviceArray {
    fn drop(&mut self) {
        // SAFETY: the array is this value's alone. An error means that the context is gone, and the
        // array with it.
        let _ = unsafe { sys::cuArrayDestroy(self.handle) };
    }
}

impl Object {
    /// Creates a texture that is read by `sampling`, or a surface where that is `None`.
    fn new(_: &Context, resource: &[u64; 18], sampling: Option<&Sampling>) -> Result<Object> {
        let mut handle = 0;
        let Some(Sampling { descriptor, view }) = sampling else {
            // SAFETY: a context is current on this thread, as the borrowed one shows; the words
            // have the layout of the descriptor, whose array or memory exists, and `handle` is a
            // place for the handle.
            unsafe { sys::cuSurfObjectCreate(&mut handle, resource.as_ptr().cast()) }.result()?;
            return Ok(Object { handle, is_texture: false, _here: PhantomData });
        };
        let mut words = [0_u32; 26];
        words.iter_mut().zip(descriptor).for_each(|(word, own)| *word = *own);
        const { assert!(size_of::<[u32; 26]>() == size_of::<sys::CUDA_TEXTURE_DESC>()) };
        let mut view_words = [0_u64; 14];
        view_words.iter_mut().zip(view.iter().flatten()).for_each(|(word, own)| *word = *own);
        const { assert!(size_of::<[u64; 14]>() == size_of::<sys::CUDA_RESOURCE_VIEW_DESC>()) };
        let view = view.map_or(null(), |_| view_words.as_ptr());
        let (resource, words) = (resource.as_ptr().cast(), words.as_ptr().cast());
        // SAFETY: as above; all words have the layouts of the descriptors that the driver reads.
        unsafe { sys::cuTexObjectCreate(&mut handle, resource, words, view.cast()) }.result()?;
        Ok(Object { handle, is_texture: true, _here: PhantomData })
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: the object is this value's alone. An error means that the context is gone, and
        // the object with it.
        let _ = unsafe {
            match self.is_texture {
                true => sys::cuTexObjectDestroy(self.handle),
                false => sys::cuSurfObjectDestroy(self.handle),
            }
        };
    }
}

/// The words of `CUDA_RESOURCE_DESC`; `base` is the address of the buffer.
fn resource(memory: &TextureMemory, arrays: &[DeviceArray], base: u64) -> Option<[u64; 18]> {
    const { assert!(size_of::<[u64; 18]>() == size_of::<sys::CUDA_RESOURCE_DESC>()) };
    use sys::CUresourcetype as Kind;
    let (kind, fields) = match *memory {
        TextureMemory::Array(index) => (Kind::CU_RESOURCE_TYPE_ARRAY, [arrays.get(index)?.handle as u64, 0, 0, 0, 0]),
        TextureMemory::Linear { offset, bytes, texel, .. } => {
            (Kind::CU_RESOURCE_TYPE_LINEAR, [base + offset, format_word(texel).ok()?, bytes, 0, 0])
        }
        TextureMemory::Pitched { offset, width, height, pitch, texel, .. } => {
            (Kind::CU_RESOURCE_TYPE_PITCH2D, [base + offset, format_word(texel).ok()?, width, height, pitch])
        }
    };
    let mut words = [0; 18];
    words[0] = kind as u64;
    words[1..6].copy_from_slice(&fields);
    Some(words)
}

/// The word of a descriptor with the format and the number of channels.
fn format_word(texel: Element) -> Result<u64> {
    let format = texel.array_format().ok_or(DriverError(sys::CUresult::CUDA_ERROR_INVALID_VALUE))?;
    Ok(u64::from(format) | u64::from(texel.lanes) << 32)
}
