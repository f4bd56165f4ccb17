namespace __nvtune_capture {
/* This is C++98 without headers, because it stands in the user's translation unit: the system's functions have names of
   their own here. */
extern "C" {
int __nvtune_open(const char *, int, ...) __asm__("open");
int __nvtune_close(int) __asm__("close");
int __nvtune_flock(int, int) __asm__("flock");
int __nvtune_ftruncate(int, long) __asm__("ftruncate");
int __nvtune_rename(const char *, const char *) __asm__("rename");
int __nvtune_access(const char *, int) __asm__("access");
int __nvtune_mkdir(const char *, unsigned) __asm__("mkdir");
int __nvtune_getpid() __asm__("getpid");
int __nvtune_sched_yield() __asm__("sched_yield");
int __nvtune_usleep(unsigned) __asm__("usleep");
long __nvtune_write(int, const void *, unsigned long) __asm__("write");
char *__nvtune_getenv(const char *) __asm__("getenv");
void *__nvtune_malloc(unsigned long) __asm__("malloc");
void __nvtune_free(void *) __asm__("free");
void *__nvtune_mmap(void *, unsigned long, int, int, int, long) __asm__("mmap");
}

typedef unsigned long long word;

enum { MOST_KINDS = 32, MOST_BUFFERS = 4096, MOST_POINTERS = 1 << 16, MOST_QUESTIONS = 1 << 16, PIECE = 16 << 20 };

/* The first launches of a kind. All after them are a kind of their own, for what a program iterates on has other contents
   than what it begins with: before it iterates, there may be a launch to warm up and one to check. */
enum { EARLY = 3 };

/* Bytes up to which allocations are recorded whole: less is not worth a probe, which takes a compile. */
enum { SMALL = 16 << 20 };

/* Parts of allocations begin and end where an allocation may. */
enum { PART = 256 };

/* How often a launch that is timed is looked at, every 100 us: for about ten seconds. One that waits for what the program
   does after it would never end. */
enum { MOST_LOOKS = 100000, LOOK_US = 100 };

/* Words of the file of counters: counts, kinds, and the nanoseconds of a launch of each kind. */
enum { KIND_WORDS = MOST_KINDS + 1, TIME_WORDS = KIND_WORDS + MOST_KINDS };

/* One argument of a launch. `type` is `i`, `u` or `f` (a number), `p` (a pointer), `t` or `o` (a texture or surface object)
   or `s` (anything else). */
struct Argument {
  const void *bytes;
  word size;
  char type;
};

/* A variable of the module, by its host address. */
struct Variable {
  const char *symbol;
  const void *address;
  word size;
};

/* A pointer in the arguments, and the row of a probe's table that accesses through it are in. */
struct ProbePointer {
  int row, argument;
  word offset;
};

/* A row of a probe's table. It counts only if no row that is written overlaps one that is watched. */
struct ProbeRow {
  bool is_watched, is_written;
};

/* A kernel that takes the arguments of another and finds out which memory that one accesses: its PTX, for code of this
   architecture. Its table has the lowest address and the end for each row. */
struct Probe {
  const char *code;
  int architecture, row_count, pointer_count;
  const ProbeRow *rows;
  const ProbePointer *pointers;
};

/* A handle of a texture or surface object: in which argument, and at which byte. */
struct Handle {
  int argument;
  word offset;
  bool is_texture;
};

/* What is known of one kernel; zero at the start of the program. `counts` has one counter for each kind of launch, and
   one for all that are not distinguished. */
struct Kernel {
  const char *folder, *name, *instance;
  const Probe *probe;
  const Handle *handles;
  int handle_count;
  /* What looks like an address in memory is one only if the kernel loads addresses: numbers in a list may look like it. */
  bool loads_addresses;
  int lock, kinds;
  word keys[MOST_KINDS];
  int is_done[MOST_KINDS];
  word *counts;
  word own_counts[MOST_KINDS + 1];
  word bytes;
  int is_untimed;
};

/* The shape of a launch. */
struct Shape {
  word value[7];
};

template <class T> static inline char type_of(T *const *) { return 'p'; }
static inline char type_of(const void *) { return 's'; }
static inline char type_of(const bool *) { return 'u'; }
static inline char type_of(const char *) { return static_cast<char>(-1) < 0 ? 'i' : 'u'; }
static inline char type_of(const signed char *) { return 'i'; }
static inline char type_of(const unsigned char *) { return 'u'; }
static inline char type_of(const short *) { return 'i'; }
static inline char type_of(const unsigned short *) { return 'u'; }
static inline char type_of(const int *) { return 'i'; }
static inline char type_of(const unsigned *) { return 'u'; }
static inline char type_of(const long *) { return 'i'; }
static inline char type_of(const unsigned long *) { return 'u'; }
static inline char type_of(const long long *) { return 'i'; }
static inline char type_of(const unsigned long long *) { return 'u'; }
static inline char type_of(const float *) { return 'f'; }
static inline char type_of(const double *) { return 'f'; }

static inline word word_at(const void *bytes, word offset) {
  word value;
  __builtin_memcpy(&value, static_cast<const char *>(bytes) + offset, sizeof value);
  return value;
}

static inline void mix(word &digest, word value) { digest = (digest ^ value) * 1099511628211ULL; }

/* Returns whether a word of an argument may be an address. */
static inline bool may_be_address(const Argument &argument, word value) {
  return argument.type != 'i' && argument.type != 'f' && value >> 32 != 0 && value >> 48 == 0;
}

/* Returns whether a word of an argument is the handle of a texture or surface object. */
static bool is_handle(const Kernel &kernel, int argument, word offset) {
  for (int i = 0; i < kernel.handle_count; ++i)
    if (kernel.handles[i].argument == argument && kernel.handles[i].offset == offset) return true;
  return false;
}

/* Returns what tells one kind of launch from another: shape and arguments, all but addresses and handles. */
static word kind_of(const Kernel &kernel, const Shape &shape, const Argument *arguments, int count) {
  word digest = 14695981039346656037ULL;
  for (int i = 0; i < 7; ++i) mix(digest, shape.value[i]);
  for (int i = 0; i < count; ++i) {
    if (arguments[i].type == 'p') continue;
    word at = 0;
    for (; at + 8 <= arguments[i].size; at += 8) {
      const word value = word_at(arguments[i].bytes, at);
      mix(digest, may_be_address(arguments[i], value) || is_handle(kernel, i, at) ? 0 : value);
    }
    for (; at < arguments[i].size; ++at) mix(digest, static_cast<const unsigned char *>(arguments[i].bytes)[at]);
  }
  return digest;
}

/* Returns the kind of those launches of a kind that come after its early ones. */
static word later_of(word kind) {
  mix(kind, EARLY);
  return kind;
}

/* A path under construction. */
struct Path {
  char text[4096];
  unsigned long length;
  Path() : length(0) { text[0] = 0; }
  Path &add(const char *more) {
    for (; *more && length + 1 < sizeof text; ++more) text[length++] = *more;
    text[length] = 0;
    return *this;
  }
  Path &add(word value, unsigned base) {
    char digits[24];
    int count = 0;
    do digits[count++] = "0123456789abcdef"[value % base];
    while (value /= base);
    while (count > 0 && length + 1 < sizeof text) text[length++] = digits[--count];
    text[length] = 0;
    return *this;
  }
};

static Path folder_of(const Kernel &kernel) {
  Path path;
  const char *chosen = __nvtune_getenv("NVTUNE_CAPTURE_DIR");
  if (chosen && *chosen) {
    __nvtune_mkdir(path.add(chosen).text, 0777);
    const char *stem = kernel.folder;
    for (const char *at = kernel.folder; *at; ++at)
      if (*at == '/') stem = at + 1;
    path.add("/").add(stem);
  } else {
    path.add(kernel.folder);
  }
  __nvtune_mkdir(path.text, 0777);
  __nvtune_mkdir(path.add("/").add(kernel.name).text, 0777);
  return path.add("/");
}

/* A file that is being written in pieces of whole words, with a checksum of all that was; what is no whole word is filled
   up by `pad`. */
struct Writer {
  int file;
  word bytes, checksum, tail;
  bool has_failed;
  void put(const void *data, word size) {
    word at = 0;
    for (; at + 8 <= size; at += 8) mix(checksum, word_at(data, at));
    for (tail = 0; at < size; ++at)
      tail |= static_cast<word>(static_cast<const unsigned char *>(data)[at]) << (8 * (at % 8));
    write_all(data, size);
  }
  void put(word value) { put(&value, sizeof value); }
  void pad() {
    static const char zeros[8] = {0};
    if (bytes % 8 == 0) return;
    mix(checksum, tail);
    write_all(zeros, 8 - bytes % 8);
  }
  void write_all(const void *data, word size) {
    bytes += size;
    for (word at = 0; at < size && !has_failed;) {
      const long written = __nvtune_write(file, static_cast<const char *>(data) + at, size - at);
      if (written > 0) at += static_cast<word>(written);
      else has_failed = true;
    }
  }
};

/* An allocation of the device, a part of one or a CUDA array, and where its contents are in the file. */
struct Buffer {
  word address, size, place;
};

/* The address of an array's buffer: that of no memory. */
static const word NO_ADDRESS = 1ULL << 63;

/* A word that holds an address: in which argument (0 and more), buffer (2^32 and more) or variable (2^33 and more), at
   which byte, and to which byte of which buffer. */
struct Pointer {
  word holder, offset, buffer, target;
};

/* The beginning of a line that says how many bytes a launch needs, and how many it may. */
static const char *const TOO_LARGE = "bytes";

typedef int (*AddressRange)(word *, ::size_t *, word);
typedef int (*LoadModule)(void **, const void *);
typedef int (*UnloadModule)(void *);
typedef int (*FindFunction)(void **, void *, const char *);
typedef int (*FindVariable)(word *, ::size_t *, void *, const char *);
typedef int (*LaunchFunction)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                              void **);

struct Array;
struct Texture;

/* One launch that is being recorded, of the kernel with this host function. `is_closed`: all memory that it accesses is
   known. `loads_addresses`: memory may hold addresses. */
struct Recording {
  AddressRange address_range;
  const void *function;
  Buffer *buffers;
  Pointer *pointers;
  word buffer_count, pointer_count, questions, bytes, most_bytes;
  const char *problem;
  bool is_closed;
  Array *arrays;
  Texture *textures;
  word array_count, texture_count;
  bool loads_addresses;
};

/* Of capture_textures.h. */
static void note_textures(const Kernel &, Recording &, const Argument *, int);
static void put_array(Recording &, Writer &, word, cudaStream_t);
static void put_textures(const Recording &, Writer &);

/* The headers of the toolkit are behind the preprocessor here: __NVTUNE_TOOLKIT stands for CUDART_VERSION. */
static void *driver_function(const char *name) {
  void *function = 0;
  cudaDriverEntryPointQueryResult found;
#if __NVTUNE_TOOLKIT >= 12050
  const cudaError_t error = cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found);
#elif __NVTUNE_TOOLKIT >= 12000
  const cudaError_t error = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#else
  const cudaError_t error = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault);
  found = cudaDriverEntryPointSuccess;
#endif
  return error == cudaSuccess && found == cudaDriverEntryPointSuccess ? function : 0;
}

/* Adds a buffer; returns its number, or MOST_BUFFERS if there are as many. */
static word add_buffer(Recording &recording, word address, word size) {
  if (recording.buffer_count == MOST_BUFFERS) {
    recording.problem = "it uses more than 4096 buffers";
    return MOST_BUFFERS;
  }
  const Buffer added = {address, size, 0};
  recording.bytes += size;
  recording.buffers[recording.buffer_count] = added;
  /* Those of the other arguments are counted before it is given up. */
  if (recording.bytes > recording.most_bytes) recording.problem = TOO_LARGE;
  return recording.buffer_count++;
}

/* Returns the number of the buffer that an address is in, or MOST_BUFFERS if it is in none. */
static word buffer_at(Recording &recording, word address) {
  for (word i = 0; i < recording.buffer_count; ++i)
    if (address - recording.buffers[i].address < recording.buffers[i].size) return i;
  word base = 0;
  ::size_t size = 0;
  if (recording.is_closed || recording.questions >= MOST_QUESTIONS) return MOST_BUFFERS;
  ++recording.questions;
  if (recording.address_range(&base, &size, address) != 0 || address - base >= size) return MOST_BUFFERS;
  return add_buffer(recording, base, size);
}

/* Notes the address that a word holds, if it holds one. */
static bool note_pointer(Recording &recording, word holder, word offset, word value) {
  const word buffer = buffer_at(recording, value);
  if (buffer == MOST_BUFFERS) return false;
  if (recording.pointer_count == MOST_POINTERS) {
    recording.problem = "its buffers hold more than 65536 addresses";
    return false;
  }
  const Pointer found = {holder, offset, buffer, value - recording.buffers[buffer].address};
  recording.pointers[recording.pointer_count++] = found;
  return true;
}

/* Runs a probe with the arguments of a launch, before that; returns whether its table is filled. It stores nothing
   else, and loads only what the launch will load. */
static bool run_probe(const Probe &probe, const Recording &recording, const Shape &shape, const Argument *arguments, int count,
                      cudaStream_t stream, word *table) {
  cudaFuncAttributes attributes;
  if (cudaFuncGetAttributes(&attributes, recording.function) != cudaSuccess || attributes.ptxVersion != probe.architecture)
    return false;
  const LoadModule load = reinterpret_cast<LoadModule>(driver_function("cuModuleLoadData"));
  const UnloadModule unload = reinterpret_cast<UnloadModule>(driver_function("cuModuleUnload"));
  const FindFunction find_function = reinterpret_cast<FindFunction>(driver_function("cuModuleGetFunction"));
  const FindVariable find_variable = reinterpret_cast<FindVariable>(driver_function("cuModuleGetGlobal"));
  const LaunchFunction launch = reinterpret_cast<LaunchFunction>(driver_function("cuLaunchKernel"));
  void **given = static_cast<void **>(__nvtune_malloc((static_cast<word>(count) + 1) * sizeof(void *)));
  void *module = 0, *function = 0;
  word place = 0;
  ::size_t size = 0;
  bool has_run = false;
  if (load && unload && find_function && find_variable && launch && given && load(&module, probe.code) == 0) {
    for (int i = 0; i < count; ++i) given[i] = const_cast<void *>(arguments[i].bytes);
    const word *const extents = shape.value;
    has_run = find_function(&function, module, "nvtune_probe") == 0 &&
              find_variable(&place, &size, module, "nvtune_table") == 0 &&
              size == static_cast<word>(probe.row_count) * 2 * sizeof(word) &&
              launch(function, static_cast<unsigned>(extents[0]), static_cast<unsigned>(extents[1]),
                     static_cast<unsigned>(extents[2]), static_cast<unsigned>(extents[3]), static_cast<unsigned>(extents[4]),
                     static_cast<unsigned>(extents[5]), 0, stream, given, 0) == 0 &&
              cudaMemcpyAsync(table, reinterpret_cast<const void *>(place), size, cudaMemcpyDefault, stream) == cudaSuccess &&
              cudaStreamSynchronize(stream) == cudaSuccess;
    unload(module);
  }
  __nvtune_free(given);
  return has_run;
}

/* Bytes of memory that belong to one allocation. */
struct Part {
  word allocation, begin, end;
};

/* Adds bytes of an allocation to a sorted list, widened to where a part may begin and end. */
static void add_part(const Recording &recording, Part *parts, word &count, Part added) {
  const Buffer &whole = recording.buffers[added.allocation];
  const word end = whole.address + whole.size;
  added.begin &= ~static_cast<word>(PART - 1);
  if (added.begin < whole.address) added.begin = whole.address;
  added.end = (added.end + PART - 1) & ~static_cast<word>(PART - 1);
  if (added.end > end) added.end = end;
  word at = count++;
  for (; at > 0 && parts[at - 1].begin > added.begin; --at) parts[at] = parts[at - 1];
  parts[at] = added;
}

/* Returns whether a launch may write what its accesses depend on. */
static bool writes_watched(const Probe &probe, const word *table) {
  for (int a = 0; a < probe.row_count; ++a)
    for (int b = 0; b < probe.row_count; ++b)
      if (probe.rows[a].is_watched && probe.rows[b].is_written && table[2 * a] < table[2 * b + 1] &&
          table[2 * b] < table[2 * a + 1])
        return true;
  return false;
}

/* Lists the parts that a launch accesses or points at; returns whether all of them are known. What is accessed through a
   pointer is in one part with what that points at. */
static bool list_parts(const Recording &recording, const Probe &probe, const word *table, Part *parts, word &count) {
  for (word i = 0; i < recording.pointer_count; ++i) {
    const Pointer &pointer = recording.pointers[i];
    const word address = recording.buffers[pointer.buffer].address + pointer.target;
    const Part part = {pointer.buffer, address, address + 1};
    add_part(recording, parts, count, part);
  }
  for (int row = 0; row < probe.row_count; ++row) {
    Part part = {0, table[2 * row], table[2 * row + 1]};
    if (part.begin >= part.end) continue;
    const Buffer *whole = recording.buffers;
    for (; part.allocation < recording.buffer_count && part.begin - whole->address >= whole->size; ++whole) ++part.allocation;
    if (part.allocation == recording.buffer_count || part.end - whole->address > whole->size) return false;
    bool is_known = false;
    for (int i = 0; i < probe.pointer_count; ++i) {
      const ProbePointer &through = probe.pointers[i];
      for (word at = 0; at < recording.pointer_count; ++at) {
        const Pointer &pointer = recording.pointers[at];
        if (through.row != row || pointer.holder != static_cast<word>(through.argument) || pointer.offset != through.offset ||
            pointer.buffer != part.allocation)
          continue;
        const word address = whole->address + pointer.target;
        if (address < part.begin) part.begin = address;
        if (address >= part.end) part.end = address + 1;
        is_known = true;
      }
    }
    if (!is_known) return false;
    add_part(recording, parts, count, part);
  }
  word merged = 0;
  for (word i = 0; i < count; ++i) {
    Part *last = merged > 0 ? &parts[merged - 1] : 0;
    if (!last || last->allocation != parts[i].allocation || parts[i].begin > last->end) parts[merged++] = parts[i];
    else if (parts[i].end > last->end) last->end = parts[i].end;
  }
  count = merged;
  return merged <= MOST_BUFFERS;
}

/* Replaces the allocations that the arguments point into by the parts that the launch accesses, if they are large and the
   kernel has a probe. */
static void keep_accessed(const Kernel &kernel, Recording &recording, const Shape &shape, const Argument *arguments, int count,
                          cudaStream_t stream) {
  const bool is_large = recording.problem ? recording.problem == TOO_LARGE : recording.bytes > SMALL;
  if (!kernel.probe || !is_large || recording.texture_count > 0) return;
  const word rows = static_cast<word>(kernel.probe->row_count);
  word *table = static_cast<word *>(__nvtune_malloc(rows * 2 * sizeof(word)));
  Part *parts = static_cast<Part *>(__nvtune_malloc((recording.pointer_count + rows) * sizeof(Part)));
  word part_count = 0;
  if (table && parts && run_probe(*kernel.probe, recording, shape, arguments, count, stream, table) &&
      !writes_watched(*kernel.probe, table) && list_parts(recording, *kernel.probe, table, parts, part_count)) {
    for (word i = 0; i < recording.pointer_count; ++i) {
      Pointer &pointer = recording.pointers[i];
      const word address = recording.buffers[pointer.buffer].address + pointer.target;
      pointer.buffer = 0;
      while (address - parts[pointer.buffer].begin >= parts[pointer.buffer].end - parts[pointer.buffer].begin) ++pointer.buffer;
      pointer.target = address - parts[pointer.buffer].begin;
    }
    recording.bytes = 0;
    recording.buffer_count = part_count;
    for (word i = 0; i < part_count; ++i) {
      const Buffer part = {parts[i].begin, parts[i].end - parts[i].begin, 0};
      recording.buffers[i] = part;
      recording.bytes += part.size;
    }
    recording.problem = recording.bytes > recording.most_bytes ? TOO_LARGE : 0;
    recording.is_closed = true;
  }
  __nvtune_free(table);
  __nvtune_free(parts);
}

/* Writes a part of the device's memory as the launch would find it. */
static void put_memory(Recording &recording, Writer &writer, void *piece, word holder, word address, word size,
                       cudaStream_t stream) {
  const bool has_near = recording.buffer_count > 0 && recording.buffers[0].address != NO_ADDRESS;
  const word near = has_near ? recording.buffers[0].address : address;
  for (word at = 0; at < size && !writer.has_failed && !recording.problem; at += PIECE) {
    const word part = size - at < PIECE ? size - at : static_cast<word>(PIECE);
    if (cudaMemcpyAsync(piece, reinterpret_cast<const void *>(address + at), part, cudaMemcpyDefault, stream) != cudaSuccess ||
        cudaStreamSynchronize(stream) != cudaSuccess) {
      recording.problem = "its memory cannot be read";
      return;
    }
    /* Addresses of one program are near each other. */
    for (word in = 0; in + 8 <= part && recording.loads_addresses; in += 8) {
      const word value = word_at(piece, in);
      if (value >> 32 != 0 && value >> 48 == 0 && (value - near + (1ULL << 42)) >> 43 == 0)
        note_pointer(recording, holder, at + in, value);
    }
    writer.put(piece, part);
  }
  writer.pad();
}

static word most_bytes() {
  const char *text = __nvtune_getenv("NVTUNE_CAPTURE_BYTES");
  word value = 0;
  for (; text && *text >= '0' && *text <= '9'; ++text) value = value * 10 + static_cast<word>(*text - '0');
  if (text && *text == 'K') value <<= 10;
  if (text && *text == 'M') value <<= 20;
  if (text && *text == 'G') value <<= 30;
  return value ? value : 1ULL << 30;
}

static void put_text(Writer &writer, const char *text) {
  word length = 0;
  while (text[length]) ++length;
  writer.put(length);
  writer.put(text, length);
  writer.pad();
}

static void put_index(const Kernel &kernel, Recording &recording, Writer &writer, const Shape &shape, const Argument *arguments, int count,
                      const Variable *variables, int variable_count, const word *variable_places) {
  const word index = writer.bytes;
  for (int i = 0; i < 7; ++i) writer.put(shape.value[i]);
  writer.put(static_cast<word>(count));
  for (int i = 0; i < count; ++i) {
    writer.put(static_cast<word>(arguments[i].type));
    writer.put(arguments[i].size);
    writer.put(arguments[i].bytes, arguments[i].size);
    writer.pad();
  }
  writer.put(recording.buffer_count);
  for (word i = 0; i < recording.buffer_count; ++i) {
    writer.put(recording.buffers[i].size);
    writer.put(recording.buffers[i].place);
  }
  writer.put(recording.pointer_count);
  writer.put(recording.pointers, recording.pointer_count * sizeof(Pointer));
  word known = 0;
  for (int i = 0; i < variable_count; ++i) known += variable_places[i] != 0;
  writer.put(known);
  for (int i = 0; i < variable_count; ++i) {
    if (variable_places[i] == 0) continue;
    writer.put(static_cast<word>(i));
    writer.put(variables[i].size);
    writer.put(variable_places[i]);
    put_text(writer, variables[i].symbol);
  }
  put_text(writer, kernel.instance);
  put_textures(recording, writer);
  writer.put(index);
  writer.put(writer.checksum);
  writer.put("nvtrecE\n", 8);
}

/* Records one launch into a file that is whole or not there. */
static void record(Kernel &kernel, Recording &recording, const char *folder, word kind, const Shape &shape,
                   const Argument *arguments, int count, const Variable *variables, int variable_count,
                   cudaStream_t stream) {
  Path path, part;
  path.add(folder).add(kind, 16).add(".launch");
  part.add(folder).add(kind, 16).add(".part");
  enum { READ_WRITE = 2, CREATE = 0100, CLOSE_ON_EXEC = 02000000, EXCLUSIVE = 2, NO_WAIT = 4 };
  /* Another process of the program may have recorded it, or be about to. */
  if (__nvtune_access(path.text, 0) == 0) return;
  Writer writer = {__nvtune_open(part.text, READ_WRITE | CREATE | CLOSE_ON_EXEC, 0666), 0, 0, 0, false};
  if (writer.file < 0) return;
  if (__nvtune_flock(writer.file, EXCLUSIVE | NO_WAIT) == 0 && __nvtune_ftruncate(writer.file, 0) == 0 &&
      __nvtune_access(path.text, 0) != 0) {
    void *piece = __nvtune_malloc(PIECE);
    word *places = static_cast<word *>(__nvtune_malloc((static_cast<word>(variable_count) + 1) * sizeof(word)));
    if (!piece || !places) recording.problem = "there is no memory for it";
    writer.put("nvtrec3\n", 8);
    for (int i = 0; i < count; ++i) {
      if (arguments[i].type == 'i' || arguments[i].type == 'f') continue;
      for (word at = 0; at + 8 <= arguments[i].size; at += 8) {
        const word value = word_at(arguments[i].bytes, at);
        if (may_be_address(arguments[i], value) && !is_handle(kernel, i, at))
          note_pointer(recording, static_cast<word>(i), at, value);
      }
    }
    note_textures(kernel, recording, arguments, count);
    keep_accessed(kernel, recording, shape, arguments, count, stream);
    for (int i = 0; i < variable_count && !recording.problem; ++i) {
      void *address = 0;
      places[i] = 0;
      if (variables[i].size > PIECE * 4ULL || cudaGetSymbolAddress(&address, variables[i].address) != cudaSuccess) continue;
      places[i] = writer.bytes;
      put_memory(recording, writer, piece, (2ULL << 32) + static_cast<word>(i), reinterpret_cast<word>(address),
                 variables[i].size, stream);
    }
    for (word i = 0; i < recording.buffer_count && !recording.problem; ++i) {
      recording.buffers[i].place = writer.bytes;
      const Buffer buffer = recording.buffers[i];
      if (buffer.address == NO_ADDRESS) put_array(recording, writer, i, stream);
      else put_memory(recording, writer, piece, (1ULL << 32) + i, buffer.address, buffer.size, stream);
    }
    if (!recording.problem) put_index(kernel, recording, writer, shape, arguments, count, variables, variable_count, places);
    if (writer.has_failed && !recording.problem) recording.problem = "its file cannot be written";
    if (!recording.problem && __nvtune_rename(part.text, path.text) == 0) kernel.bytes += writer.bytes;
    else __nvtune_ftruncate(writer.file, 0);
    __nvtune_free(piece);
    __nvtune_free(places);
  }
  __nvtune_close(writer.file);
}

/* Says in a file why a launch was not recorded. `needed` are the bytes that its kernel's recordings would have, with it. */
static void leave_out(const char *folder, const char *problem, word needed, word most) {
  Path path, line;
  path.add(folder).add("left_out");
  line.add(problem);
  if (problem == TOO_LARGE) line.add(" ").add(needed, 10).add(" ").add(most, 10);
  line.add("\n");
  const int file = __nvtune_open(path.text, 1 | 0100 | 02000 | 02000000, 0666);
  if (file < 0) return;
  if (__nvtune_write(file, line.text, line.length) < 0) { /* Nobody is there to hear of it. */
  }
  __nvtune_close(file);
}

/* Maps the counters of this process from a file, so that they outlive it however it ends: one for each kind of launch,
   one for the rest, after them the kinds, and the times of these. */
static word *map_counts(const char *folder) {
  for (word attempt = 0; attempt < 64; ++attempt) {
    Path path;
    path.add(folder).add(static_cast<word>(__nvtune_getpid()), 10).add("-").add(attempt, 10).add(".counters");
    const int file = __nvtune_open(path.text, 2 | 0100 | 0200 | 02000000, 0666);
    if (file < 0) continue;
    void *mapped = reinterpret_cast<void *>(-1L);
    if (__nvtune_ftruncate(file, 4096) == 0) mapped = __nvtune_mmap(0, 4096, 3, 1, file, 0);
    __nvtune_close(file);
    if (mapped == reinterpret_cast<void *>(-1L)) return 0;
    return static_cast<word *>(mapped);
  }
  return 0;
}

/* Calls that a capture of another thread does not allow are of no harm to it, for they are about other streams. */
struct Uncaptured {
  cudaStreamCaptureMode mode;
  Uncaptured() : mode(cudaStreamCaptureModeRelaxed) { cudaThreadExchangeStreamCaptureMode(&mode); }
  ~Uncaptured() { cudaThreadExchangeStreamCaptureMode(&mode); }
};

/* Times the launch that the stub makes between `begin` and its own end, if that was called. */
struct Timing {
  Kernel *kernel;
  word *nanoseconds;
  cudaEvent_t first, last;
  cudaStream_t stream;
  Timing() : kernel(0), nanoseconds(0), first(0), last(0), stream(0) {}
  /* The code is loaded before, for that takes longer than many a kernel. */
  void begin(Kernel &launched, word *time, const void *function, cudaStream_t on) {
    const Uncaptured uncaptured;
    cudaFuncAttributes attributes;
    if (cudaFuncGetAttributes(&attributes, function) != cudaSuccess || cudaEventCreate(&first) != cudaSuccess) return;
    if (cudaEventCreate(&last) != cudaSuccess || cudaEventRecord(first, on) != cudaSuccess) return;
    kernel = &launched;
    nanoseconds = time;
    stream = on;
  }
  ~Timing() {
    if (!first) return;
    const Uncaptured uncaptured;
    /* An error of the launch is the program's to see. */
    if (kernel && cudaPeekAtLastError() == cudaSuccess) {
      end();
      static_cast<void>(cudaGetLastError());
    }
    cudaEventDestroy(first);
    if (last) cudaEventDestroy(last);
  }
  void end() {
    if (cudaEventRecord(last, stream) != cudaSuccess) return;
    cudaError_t error = cudaEventQuery(last);
    for (int look = 0; look < MOST_LOOKS && error == cudaErrorNotReady; ++look) {
      __nvtune_usleep(LOOK_US);
      error = cudaEventQuery(last);
    }
    float milliseconds = 0;
    if (error == cudaErrorNotReady) __atomic_store_n(&kernel->is_untimed, 1, __ATOMIC_RELAXED);
    else if (error == cudaSuccess && cudaEventElapsedTime(&milliseconds, first, last) == cudaSuccess && milliseconds > 0)
      __atomic_store_n(nanoseconds, static_cast<word>(milliseconds * 1e6 + 0.5), __ATOMIC_RELAXED);
  }

private:
  Timing(const Timing &);
  Timing &operator=(const Timing &);
};

/* Returns the place of a kind among the first `kinds`; `kinds` if it is none of them. */
static inline int index_of(const Kernel &kernel, int kinds, word kind) {
  int at = 0;
  while (at < kinds && kernel.keys[at] != kind) ++at;
  return at;
}

/* Counts a launch of a kind that is new, records it, and has it timed. One after the early ones of a kind, `is_later`,
   leaves room for other kinds. Without it the early one stands for all, so that no reason is given. */
__attribute__((cold)) static void meet(Kernel &kernel, word kind, bool is_later, const Shape &shape,
                                       const Argument *arguments, int count, const Variable *variables, int variable_count,
                                       cudaStream_t stream, const void *function, Timing &timing) {
  while (__atomic_exchange_n(&kernel.lock, 1, __ATOMIC_ACQUIRE)) __nvtune_sched_yield();
  const Path folder = folder_of(kernel);
  if (!kernel.counts) {
    kernel.counts = map_counts(folder.text);
    if (!kernel.counts) kernel.counts = kernel.own_counts;
  }
  int at = index_of(kernel, kernel.kinds, kind);
  if (at == kernel.kinds && at < MOST_KINDS) {
    kernel.keys[at] = kind;
    if (kernel.counts != kernel.own_counts) kernel.counts[KIND_WORDS + at] = kind;
    __atomic_store_n(&kernel.kinds, at + 1, __ATOMIC_RELEASE);
  }
  __atomic_fetch_add(&kernel.counts[at], 1, __ATOMIC_RELAXED);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const bool may_ask = at < MOST_KINDS && !kernel.is_done[at] && cudaPeekAtLastError() == cudaSuccess;
  if (may_ask && cudaStreamIsCapturing(stream, &status) == cudaSuccess && status == cudaStreamCaptureStatusNone) {
    const Uncaptured uncaptured;
    const word most = most_bytes();
    const word left = most > kernel.bytes ? most - kernel.bytes : 0;
    Recording recording = {reinterpret_cast<AddressRange>(driver_function("cuMemGetAddressRange")), function, 0, 0, 0, 0, 0, 0,
                           is_later ? left / 2 : left, 0, false, 0, 0, 0, 0, kernel.loads_addresses};
    recording.buffers = static_cast<Buffer *>(__nvtune_malloc(MOST_BUFFERS * sizeof(Buffer)));
    recording.pointers = static_cast<Pointer *>(__nvtune_malloc(MOST_POINTERS * sizeof(Pointer)));
    if (!recording.address_range) recording.problem = "the driver does not tell the sizes of buffers";
    else if (!recording.buffers || !recording.pointers) recording.problem = "there is no memory for it";
    else record(kernel, recording, folder.text, kind, shape, arguments, count, variables, variable_count, stream);
    if (recording.problem && !is_later) leave_out(folder.text, recording.problem, kernel.bytes + recording.bytes, most);
    __nvtune_free(recording.buffers);
    __nvtune_free(recording.pointers);
    __nvtune_free(recording.arrays);
    __nvtune_free(recording.textures);
    if (kernel.counts != kernel.own_counts && !__atomic_load_n(&kernel.is_untimed, __ATOMIC_RELAXED))
      timing.begin(kernel, &kernel.counts[TIME_WORDS + at], function, stream);
    __atomic_store_n(&kernel.is_done[at], 1, __ATOMIC_RELEASE);
  }
  if (may_ask) static_cast<void>(cudaGetLastError()); /* There was no error of the program's. */
  __atomic_store_n(&kernel.lock, 0, __ATOMIC_RELEASE);
}

/* Counts the launch that the program pushed or called, and records and times the first of its kind, and the first after
   its early ones; then pushes it again. */
static void launch(Kernel &kernel, const Argument *arguments, int count, const Variable *variables, int variable_count,
                   const void *function, Timing &timing) {
  ::dim3 grid, block;
  ::size_t shared = 0;
  void *stream = 0;
#ifdef __NVTUNE_BY_ADDRESS
  const __nvtune_detail::Call *const call = __nvtune_call;
  if (call) {
    grid = call->grid;
    block = call->block;
    shared = call->shared;
    stream = call->stream;
  } else
#endif
  if (__cudaPopCallConfiguration(&grid, &block, &shared, &stream) != cudaSuccess) return;
  const Shape shape = {{grid.x, grid.y, grid.z, block.x, block.y, block.z, shared}};
  word kind = kind_of(kernel, shape, arguments, count);
  const int kinds = __atomic_load_n(&kernel.kinds, __ATOMIC_ACQUIRE);
  int at = index_of(kernel, kinds, kind);
  bool is_later = false;
  /* Only if the early one was recorded, and the kernel does not wait for what the program does after its launches. */
  if (at < kinds && __atomic_load_n(&kernel.is_done[at], __ATOMIC_ACQUIRE) &&
      !__atomic_load_n(&kernel.is_untimed, __ATOMIC_RELAXED) &&
      __atomic_load_n(&kernel.counts[at], __ATOMIC_RELAXED) >= EARLY) {
    const int later = index_of(kernel, kinds, later_of(kind));
    is_later = later < MOST_KINDS;
    if (is_later) {
      kind = later_of(kind);
      at = later;
    }
  }
  if (at == MOST_KINDS || (at < kinds && __atomic_load_n(&kernel.is_done[at], __ATOMIC_ACQUIRE)))
    __atomic_fetch_add(&kernel.counts[at], 1, __ATOMIC_RELAXED);
  else
    meet(kernel, kind, is_later, shape, arguments, count, variables, variable_count, static_cast<struct CUstream_st *>(stream),
         function, timing);
#ifdef __NVTUNE_BY_ADDRESS
  if (call) return;
#endif
  static_cast<void>(__cudaPushCallConfiguration(grid, block, shared, static_cast<struct CUstream_st *>(stream)));
}
}
