// A driver and its management library of a GPU whose memory is the host's, of which this process sees one instance (MIG=1) or all.
// It has MEMORY bytes (80 GB where not given); allocations lie one behind the other, so that what is written beyond one lands in the next.
// It runs nvtune's own device code and the kernels below, whatever the code is that they are asked for in, and each takes 50 us.
// Code whose text names `total` has the variables `total` and `sums`, each module its own.
// Arrays have memory of their own, with a gap behind each row; kernels read textures by the number of a texel.
// In MIG mode cuDeviceGetUuid names the GPU and cuDeviceGetUuid_v2 the instance (CUDA Driver API); memory is the instance's.
#include "device_code.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <sys/mman.h>
#include <vector>

namespace {
const int NOT_FOUND = 500, INVALID_VALUE = 1, OUT_OF_MEMORY = 2;

bool is_instance() { return getenv("MIG") != nullptr; }
int gpu, instance; // their addresses are handles

size_t total()
{
    const char *memory = getenv("MEMORY");
    return memory ? strtoull(memory, nullptr, 10) : size_t(is_instance() ? 10 : 80) << 30;
}

// Addresses are not used again, so that memory is never in pieces too small.
struct Allocations {
    std::map<u64, size_t> sizes;
    size_t used = 0;
    u64 next = (u64)mmap(nullptr, size_t(1) << 40, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
};

Allocations &allocations()
{
    static Allocations made;
    return made;
}

size_t whole(size_t bytes) { return (bytes + 255) / 256 * 256; }

// (int n, float a, const unsigned *x, unsigned *y)
template <typename T> T argument(void **arguments, int index) { return *(T *)arguments[index]; }
int count(void **arguments) { return argument<int>(arguments, 0); }
unsigned *x(void **arguments) { return argument<unsigned *>(arguments, 2); }
unsigned *y(void **arguments) { return argument<unsigned *>(arguments, 3); }

void copies(void **arguments) { memcpy(y(arguments), x(arguments), 4 * (size_t)count(arguments)); }

// The next float.
void rounded(void **arguments)
{
    copies(arguments);
    for (int i = 0; i < count(arguments); ++i) ++y(arguments)[i];
}

void wrong(void **arguments)
{
    copies(arguments);
    y(arguments)[count(arguments) / 2] ^= 0x00400000;
}

void overruns(void **arguments)
{
    copies(arguments);
    y(arguments)[count(arguments)] = 1;
}

// Zeros over y and all that lies behind it.
void sprays(void **arguments)
{
    const u64 begin = (u64)y(arguments);
    memset((void *)begin, 0, allocations().next - begin);
}

// The variables of a loaded module, as its code initialises them.
struct Loaded {
    bool has_variables;
    u64 total = 100;
    float sums[4] = {1, 1, 1, 1};
};
Loaded *running; // the module of the kernel that is launched

void only_counts(void **) { running->total += 1000; }

void counts(void **arguments)
{
    copies(arguments);
    running->total += 1000;
    running->sums[1] *= 2;
}

void counts_rounded(void **arguments)
{
    counts(arguments);
    running->sums[1] *= 1.00001f;
}

void counts_too_far(void **arguments)
{
    counts(arguments);
    running->total += 1;
}

// CUDA_ARRAY3D_DESCRIPTOR: width, height, depth, format and channels, flags. Texels have four bytes.
struct Array {
    u64 words[5];
    std::vector<unsigned char> memory;
    size_t pitch() const { return (4 * words[0] + 63) / 64 * 64 + 64; }
};

// CUDA_RESOURCE_DESC
struct Object {
    u64 words[18];
    unsigned &texel(size_t i) const
    {
        if (words[0] == 2) return ((unsigned *)words[1])[i];
        if (words[0] == 3) return *(unsigned *)(words[1] + i / words[3] * words[5] + i % words[3] * 4);
        Array *array = (Array *)words[1];
        return *(unsigned *)&array->memory[i / array->words[0] * array->pitch() + i % array->words[0] * 4];
    }
};

// (int n, float a, texture x, unsigned *y)
void fetches(void **arguments)
{
    for (int i = 0; i < count(arguments); ++i) y(arguments)[i] = argument<Object *>(arguments, 2)->texel(i);
}

// The same, and changes what it reads.
void scribbles(void **arguments)
{
    fetches(arguments);
    argument<Object *>(arguments, 2)->texel(5) = 1;
}

// (int n, float a, const unsigned *x, surface y)
void draws(void **arguments)
{
    for (int i = 0; i < count(arguments); ++i) argument<Object *>(arguments, 3)->texel(i) = x(arguments)[i];
}

void draws_wrong(void **arguments)
{
    draws(arguments);
    argument<Object *>(arguments, 3)->texel(count(arguments) - 1) ^= 0x00400000;
}

void adds(void **arguments)
{
    for (int i = 0; i < count(arguments); ++i) argument<Object *>(arguments, 3)->texel(i) += 1 + x(arguments)[i] % 2;
}

void fill(void **a)
{
    nvtune_fill(argument<unsigned char *>(a, 0), argument<u64>(a, 1), argument<unsigned>(a, 2), argument<unsigned>(a, 3),
                argument<u64>(a, 4), argument<u64>(a, 5), argument<u64>(a, 6));
}

void digest(void **a) { nvtune_digest(argument<u64 *>(a, 0), argument<u64>(a, 1), argument<u64 *>(a, 2)); }

void compare(void **a)
{
    nvtune_compare(argument<unsigned char *>(a, 0), argument<unsigned char *>(a, 1), argument<u64>(a, 2), argument<unsigned>(a, 3),
                   argument<unsigned>(a, 4), argument<double>(a, 5), argument<double>(a, 6), argument<u64 *>(a, 7));
}

struct Kernel {
    const char *name;
    void (*run)(void **arguments);
};

const Kernel KERNELS[] = {
    {"nvtune_fill", fill},     {"nvtune_digest", digest}, {"nvtune_compare", compare},   {"copies", copies},
    {"rounded", rounded},      {"wrong", wrong},          {"overruns", overruns},        {"sprays", sprays},
    {"counts", counts},        {"only_counts", only_counts}, {"counts_rounded", counts_rounded}, {"counts_too_far", counts_too_far},
    {"fetches", fetches},      {"scribbles", scribbles},  {"draws", draws},              {"draws_wrong", draws_wrong},
    {"adds", adds},
};

// A kernel of a module.
struct Function {
    const Kernel *kernel;
    Loaded *loaded;
};
}

extern "C" {
int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetCount(int *devices) { *devices = 1; return 0; }
int cuDeviceGet(int *device, int) { *device = 0; return 0; }
int cuDeviceGetName(char *name, int length, int) { strncpy(name, "NVIDIA Stand-in", length); return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int)
{
    const std::map<int, int> values = {{1, 1024}, {8, 49152}, {75, 9}, {76, 0}, {97, 101376}};
    *value = values.count(attribute) ? values.at(attribute) : 16;
    return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int) { *bytes = total(); return 0; }
int cuDeviceGetUuid(char *uuid, int) { memset(uuid, 0x11, 16); return 0; }
int cuDeviceGetUuid_v2(char *uuid, int) { memset(uuid, is_instance() ? 0x22 : 0x11, 16); return 0; }
int cuDevicePrimaryCtxRetain(void **context, int) { *context = &gpu; return 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void *) { return 0; }
int cuCtxSynchronize() { return 0; }
int cuGetErrorName(int error, const char **name)
{
    *name = error == NOT_FOUND ? "CUDA_ERROR_NOT_FOUND" : error == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR_UNKNOWN";
    return 0;
}

int cuMemGetInfo_v2(size_t *free, size_t *all)
{
    *all = total();
    *free = total() - allocations().used;
    return 0;
}
int cuMemAlloc_v2(u64 *address, size_t bytes)
{
    Allocations &all = allocations();
    if (whole(bytes) > total() - all.used) return OUT_OF_MEMORY;
    *address = all.next;
    all.sizes[all.next] = whole(bytes);
    all.next += whole(bytes);
    all.used += whole(bytes);
    return 0;
}
int cuMemFree_v2(u64 address)
{
    Allocations &all = allocations();
    const auto found = all.sizes.find(address);
    if (found == all.sizes.end()) return INVALID_VALUE;
    // Whoever goes on to use it crashes.
    mprotect((void *)((address + 4095) / 4096 * 4096), found->second > 8192 ? found->second - 8192 : 0, PROT_NONE);
    all.used -= found->second;
    all.sizes.erase(found);
    return 0;
}
int cuMemsetD8Async(u64 to, unsigned char byte, size_t bytes, void *) { memset((void *)to, byte, bytes); return 0; }
int cuMemcpyHtoD_v2(u64 to, const void *from, size_t bytes) { memcpy((void *)to, from, bytes); return 0; }
int cuMemcpyDtoH_v2(void *to, u64 from, size_t bytes) { memcpy(to, (void *)from, bytes); return 0; }
int cuMemcpyDtoDAsync_v2(u64 to, u64 from, size_t bytes, void *) { memcpy((void *)to, (void *)from, bytes); return 0; }

int cuArray3DCreate_v2(Array **array, const u64 *words)
{
    if (!words[0]) return INVALID_VALUE;
    *array = new Array{{words[0], words[1], words[2], words[3], words[4]}, {}};
    (*array)->memory.resize((*array)->pitch() * std::max<u64>(words[1], 1) * std::max<u64>(words[2], 1));
    return 0;
}
int cuArrayDestroy(Array *array) { delete array; return 0; }
// CUDA_MEMCPY3D, from the device (2) to an array (3) or back.
int cuMemcpy3DAsync_v2(const u64 *words, void *)
{
    const bool is_into = unsigned(words[4]) == 2;
    Array *array = (Array *)words[is_into ? 18 : 7];
    unsigned char *memory = (unsigned char *)words[is_into ? 6 : 17];
    for (u64 row = 0; row < words[23] * words[24]; ++row) {
        unsigned char *own = &array->memory[row * array->pitch()], *other = memory + row * words[is_into ? 9 : 20];
        memcpy(is_into ? own : other, is_into ? other : own, words[22]);
    }
    return 0;
}
int cuSurfObjectCreate(Object **object, const u64 *resource)
{
    if (resource[0] != 0 || !(((Array *)resource[1])->words[4] & 2)) return INVALID_VALUE;
    *object = new Object;
    memcpy((*object)->words, resource, sizeof (*object)->words);
    return 0;
}
// The first three words of a description are the modes of addresses.
int cuTexObjectCreate(Object **object, const u64 *resource, const unsigned *description, const u64 *)
{
    if (description[0] > 3) return INVALID_VALUE;
    *object = new Object;
    memcpy((*object)->words, resource, sizeof (*object)->words);
    return 0;
}
int cuTexObjectDestroy(Object *object) { delete object; return 0; }
int cuSurfObjectDestroy(Object *object) { delete object; return 0; }

int cuModuleLoadData(Loaded **module, const void *image) { *module = new Loaded{strstr((const char *)image, "total") != nullptr}; return 0; }
int cuModuleUnload(Loaded *module) { delete module; return 0; }
int cuModuleGetFunction(const Function **function, Loaded *module, const char *name)
{
    for (const Kernel &kernel : KERNELS) {
        if (strcmp(kernel.name, name)) continue;
        *function = new Function{&kernel, module};
        return 0;
    }
    return NOT_FOUND;
}
int cuModuleGetGlobal_v2(u64 *address, size_t *bytes, Loaded *module, const char *name)
{
    const bool is_total = !strcmp(name, "total"), is_sums = !strcmp(name, "sums");
    if (!module->has_variables || (!is_total && !is_sums)) return NOT_FOUND;
    *address = is_total ? (u64)&module->total : (u64)module->sums;
    *bytes = is_total ? sizeof module->total : sizeof module->sums;
    return 0;
}
int cuFuncGetAttribute(int *value, int attribute, void *) { *value = attribute ? 0 : 1024; return 0; }
int cuFuncSetAttribute(void *, int, int) { return 0; }
int cuFuncGetParamInfo(void *, size_t index, size_t *offset, size_t *size)
{
    const size_t sizes[] = {4, 4, 8, 8};
    if (index >= 4) return INVALID_VALUE;
    *size = sizes[index];
    *offset = 4 * index;
    return 0;
}
int cuLaunchKernel(const Function *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **arguments, void **)
{
    running = function->loaded;
    function->kernel->run(arguments);
    return 0;
}

int cuEventCreate(void **event, unsigned) { *event = &gpu; return 0; }
int cuEventRecord(void *, void *) { return 0; }
int cuEventSynchronize(void *) { return 0; }
int cuEventElapsedTime(float *ms, void *, void *) { *ms = 0.05f; return 0; }
int cuEventDestroy_v2(void *) { return 0; }

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    if (!strcmp(uuid, "GPU-11111111-1111-1111-1111-111111111111")) *device = &gpu;
    else if (!strcmp(uuid, "MIG-22222222-2222-2222-2222-222222222222")) *device = &instance;
    else return 6; // NVML_ERROR_NOT_FOUND
    return 0;
}
struct Memory { unsigned version; unsigned long long total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(void *device, Memory *memory)
{
    *memory = device == &instance ? Memory{2, 10, 0, 9, 1} : Memory{2, 80, 0, 70, 10};
    return 0;
}
}
