// A driver and its management library of a GPU, of which this process sees one instance (MIG=1) or all: no more than what is asked
// before a context is made. In MIG mode cuDeviceGetUuid names the GPU and cuDeviceGetUuid_v2 the instance (CUDA Driver API); memory is the
// instance's.
#include <cstdlib>
#include <cstring>

namespace {
bool is_instance() { return std::getenv("MIG") != nullptr; }
int gpu, instance; // their addresses are handles
}

extern "C" {
int cuInit(unsigned) { return 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int) { *device = 0; return 0; }
int cuDeviceGetName(char *name, int length, int) { std::strncpy(name, "NVIDIA Stand-in", length); return 0; }
int cuDeviceGetAttribute(int *value, int, int) { *value = 16; return 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int) { *bytes = size_t(is_instance() ? 10 : 80) << 30; return 0; }
int cuDeviceGetUuid(char *uuid, int) { std::memset(uuid, 0x11, 16); return 0; }
int cuDeviceGetUuid_v2(char *uuid, int) { std::memset(uuid, is_instance() ? 0x22 : 0x11, 16); return 0; }
int cuDevicePrimaryCtxRetain(void **, int) { return 999; }
int cuGetErrorName(int, const char **name) { *name = "CUDA_ERROR_UNKNOWN"; return 0; }

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    if (!std::strcmp(uuid, "GPU-11111111-1111-1111-1111-111111111111")) *device = &gpu;
    else if (!std::strcmp(uuid, "MIG-22222222-2222-2222-2222-222222222222")) *device = &instance;
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
