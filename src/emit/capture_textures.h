namespace __nvtune_capture {
/* Texture and surface objects of a launch: what the driver says of them, and the contents of CUDA arrays. The driver's
   structures are words here, in their layout of cuda.h (CUDA 13.0; the same since 5.0). */

enum { OF_ARRAY, OF_MIPMAPPED_ARRAY, OF_LINEAR_MEMORY, OF_PITCHED_MEMORY };
enum { RESOURCE_WORDS = 18, SAMPLING_WORDS = 7, SAMPLING_DESCRIPTOR = 13, VIEW_WORDS = 6, VIEW_DESCRIPTOR = 14 };
enum { ARRAY_DESCRIPTOR = 5, COPY_WORDS = 25, HOST_MEMORY = 1, ARRAY_MEMORY = 3 };

/* CUDA_ARRAY3D_LAYERED, _SURFACE_LDST, _CUBEMAP and _TEXTURE_GATHER; CUDA_ARRAY3D_COLOR_ATTACHMENT, which is about graphics. */
enum { KEPT_FLAGS = 0x0f, IGNORED_FLAGS = 0x20 };

/* A CUDA array, and its words in the index. */
enum { ARRAY_BUFFER, ARRAY_WIDTH, ARRAY_HEIGHT, ARRAY_DEPTH, ARRAY_FORMAT, ARRAY_CHANNELS, ARRAY_FLAGS, ARRAY_WORDS };
struct Array {
  void *handle;
  word index[ARRAY_WORDS];
};

/* A texture or surface object, and its words in the index. Those of the texture and the view descriptor that are reserved
   are not among them. */
enum { OBJECT_ARGUMENT, OBJECT_FIELD, OBJECT_TYPE, OBJECT_MEMORY, OBJECT_OFFSET, OBJECT_FORMAT, OBJECT_CHANNELS,
       OBJECT_WIDTH, OBJECT_HEIGHT, OBJECT_PITCH, OBJECT_WORDS };
struct Texture {
  word index[OBJECT_WORDS];
  bool is_sampled, has_view;
  word sampling[SAMPLING_DESCRIPTOR], view[VIEW_DESCRIPTOR];
};

typedef int (*DescribeObject)(void *, word);
typedef int (*DescribeArray)(void *, void *);
typedef int (*CopyMemory)(const void *, cudaStream_t);

static inline word low(word both) { return both & 0xffffffffULL; }
static inline word at_least_one(word extent) { return extent == 0 ? 1 : extent; }

/* Returns the bytes of a texel, or 0 if it is none that is recorded (CUarray_format, channels). */
static word texel_bytes(word format, word channels) {
  if (channels != 1 && channels != 2 && channels != 4) return 0;
  switch (format) {
    case 0x01: case 0x08: return channels;
    case 0x02: case 0x09: case 0x10: return 2 * channels;
    case 0x03: case 0x0a: case 0x20: return 4 * channels;
    default: return 0;
  }
}

/* Returns whether the driver describes an object. */
static bool describe(const char *function, void *descriptor, word object) {
  const DescribeObject ask = reinterpret_cast<DescribeObject>(driver_function(function));
  return ask && ask(descriptor, object) == 0;
}

/* Returns the number of an array, which may have been met before. */
static word note_array(Recording &recording, void *handle) {
  word number = 0;
  for (; number < recording.array_count; ++number)
    if (recording.arrays[number].handle == handle) return number;
  word descriptor[ARRAY_DESCRIPTOR] = {0};
  const DescribeArray ask = reinterpret_cast<DescribeArray>(driver_function("cuArray3DGetDescriptor"));
  if (!ask || ask(descriptor, handle) != 0) {
    recording.problem = "the driver does not describe its array";
    return number;
  }
  const Array array = {handle,
                       {recording.buffer_count, descriptor[0], descriptor[1], descriptor[2], low(descriptor[3]),
                        descriptor[3] >> 32, low(descriptor[4]) & KEPT_FLAGS}};
  const word texel = texel_bytes(array.index[ARRAY_FORMAT], array.index[ARRAY_CHANNELS]);
  if (texel == 0 || (low(descriptor[4]) & ~static_cast<word>(KEPT_FLAGS | IGNORED_FLAGS)) != 0) {
    recording.problem = "it has an array of a kind that is not recorded";
    return number;
  }
  const word size = descriptor[0] * at_least_one(descriptor[1]) * at_least_one(descriptor[2]) * texel;
  if (add_buffer(recording, NO_ADDRESS, size) != MOST_BUFFERS) recording.arrays[recording.array_count++] = array;
  return number;
}

/* Notes an object by its handle. */
static void note_texture(Recording &recording, const Handle &handle, word object) {
  const bool is_sampled = handle.is_texture;
  const char *const unknown = "the driver does not describe its texture or surface";
  word resource[RESOURCE_WORDS] = {0};
  Texture texture = {{static_cast<word>(handle.argument), handle.offset}, is_sampled, false, {0}, {0}};
  if (!describe(is_sampled ? "cuTexObjectGetResourceDesc" : "cuSurfObjectGetResourceDesc", resource, object) ||
      (is_sampled && !describe("cuTexObjectGetTextureDesc", texture.sampling, object))) {
    recording.problem = unknown;
    return;
  }
  word *const index = texture.index;
  index[OBJECT_TYPE] = low(resource[0]);
  if (index[OBJECT_TYPE] == OF_MIPMAPPED_ARRAY) {
    recording.problem = "it has a mipmapped array";
  } else if (index[OBJECT_TYPE] == OF_ARRAY) {
    /* Without a view this is an error of the driver's. A view has a width. */
    texture.has_view = is_sampled && describe("cuTexObjectGetResourceViewDesc", texture.view, object) && texture.view[1] != 0;
    index[OBJECT_MEMORY] = note_array(recording, reinterpret_cast<void *>(resource[1]));
  } else {
    index[OBJECT_FORMAT] = low(resource[2]);
    index[OBJECT_CHANNELS] = resource[2] >> 32;
    index[OBJECT_WIDTH] = resource[3];
    if (index[OBJECT_TYPE] == OF_PITCHED_MEMORY) {
      index[OBJECT_HEIGHT] = resource[4];
      index[OBJECT_PITCH] = resource[5];
    }
    index[OBJECT_MEMORY] = buffer_at(recording, resource[1]);
    if (index[OBJECT_MEMORY] == MOST_BUFFERS) {
      recording.problem = "its texture is of memory that the driver does not know";
      return;
    }
    index[OBJECT_OFFSET] = resource[1] - recording.buffers[index[OBJECT_MEMORY]].address;
    if (texel_bytes(index[OBJECT_FORMAT], index[OBJECT_CHANNELS]) == 0)
      recording.problem = "it has texels of a format that is not recorded";
  }
  recording.textures[recording.texture_count++] = texture;
}

/* Notes the texture and surface objects of a launch and the memory behind them. No handle is 0: such a one is passed as it
   is. */
static void note_textures(const Kernel &kernel, Recording &recording, const Argument *arguments, int count) {
  const word most = static_cast<word>(kernel.handle_count);
  if (most == 0) return;
  recording.arrays = static_cast<Array *>(__nvtune_malloc(most * sizeof(Array)));
  recording.textures = static_cast<Texture *>(__nvtune_malloc(most * sizeof(Texture)));
  if (!recording.arrays || !recording.textures) recording.problem = "there is no memory for it";
  for (int i = 0; i < kernel.handle_count && (!recording.problem || recording.problem == TOO_LARGE); ++i) {
    const Handle &handle = kernel.handles[i];
    if (handle.argument >= count || handle.offset + 8 > arguments[handle.argument].size) continue;
    const word object = word_at(arguments[handle.argument].bytes, handle.offset);
    if (object != 0) note_texture(recording, handle, object);
  }
}

/* Writes the contents of the array that a buffer stands for: texel by texel, row by row, layer by layer. */
static void put_array(Recording &recording, Writer &writer, word buffer, cudaStream_t stream) {
  const Array *array = recording.arrays;
  while (array->index[ARRAY_BUFFER] != buffer) ++array;
  const word size = recording.buffers[buffer].size;
  void *contents = __nvtune_malloc(size);
  const CopyMemory copy_memory = reinterpret_cast<CopyMemory>(driver_function("cuMemcpy3DAsync"));
  word copy[COPY_WORDS] = {0};
  copy[4] = ARRAY_MEMORY;
  copy[7] = reinterpret_cast<word>(array->handle);
  copy[15] = HOST_MEMORY;
  copy[16] = reinterpret_cast<word>(contents);
  copy[20] = copy[22] = array->index[ARRAY_WIDTH] * texel_bytes(array->index[ARRAY_FORMAT], array->index[ARRAY_CHANNELS]);
  copy[21] = copy[23] = at_least_one(array->index[ARRAY_HEIGHT]);
  copy[24] = at_least_one(array->index[ARRAY_DEPTH]);
  if (!contents) recording.problem = "there is no memory for it";
  else if (!copy_memory || copy_memory(copy, stream) != 0 || cudaStreamSynchronize(stream) != cudaSuccess)
    recording.problem = "its array cannot be read";
  else writer.put(contents, size);
  writer.pad();
  __nvtune_free(contents);
}

static void put_textures(const Recording &recording, Writer &writer) {
  writer.put(recording.array_count);
  for (word i = 0; i < recording.array_count; ++i)
    writer.put(recording.arrays[i].index, sizeof recording.arrays[i].index);
  writer.put(recording.texture_count);
  for (word i = 0; i < recording.texture_count; ++i) {
    const Texture &texture = recording.textures[i];
    writer.put(texture.index, sizeof texture.index);
    writer.put(static_cast<word>(texture.is_sampled ? SAMPLING_WORDS : 0));
    if (texture.is_sampled) writer.put(texture.sampling, SAMPLING_WORDS * sizeof(word));
    writer.put(static_cast<word>(texture.has_view ? VIEW_WORDS : 0));
    if (texture.has_view) writer.put(texture.view, VIEW_WORDS * sizeof(word));
  }
}
}
