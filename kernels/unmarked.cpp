// The time that a program's kernels take on the GPU, by CUPTI's records: preloaded into any program that uses CUDA.
//
// In: UNMARKED_TIMES, the file to write. Out: one line for each kernel with its mangled name, launches, and nanoseconds of all of
// them, and how many CUPTI has no times of, when the program ends. What a launch costs the host is no part of them.
#include <cupti.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace {
constexpr size_t BUFFER_BYTES = 1 << 20;
struct Kernel {
    uint64_t launches = 0, nanoseconds = 0, untimed = 0;
};
std::mutex mutex;

std::map<std::string, Kernel> &kernels() {
    // Never destroyed: CUPTI may deliver records while the program ends.
    static auto &all = *new std::map<std::string, Kernel>;
    return all;
}

void write_times() {
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    const char *path = std::getenv("UNMARKED_TIMES");
    std::FILE *file = path ? std::fopen(path, "w") : nullptr;
    if (!file) return;
    std::lock_guard<std::mutex> lock(mutex);
    for (const auto &[name, kernel] : kernels())
        std::fprintf(file, "%s %ju %ju %ju\n", name.c_str(), uintmax_t{kernel.launches}, uintmax_t{kernel.nanoseconds}, uintmax_t{kernel.untimed});
    std::fclose(file);
}

void CUPTIAPI provide(uint8_t **buffer, size_t *bytes, size_t *most_records) {
    // The driver has begun by now, so that this comes before its own end.
    static const int registered = std::atexit(write_times);
    static_cast<void>(registered);
    *buffer = static_cast<uint8_t *>(std::aligned_alloc(8, BUFFER_BYTES));
    *bytes = *buffer ? BUFFER_BYTES : 0;
    *most_records = 0;
}

void CUPTIAPI take(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid_bytes) {
    std::lock_guard<std::mutex> lock(mutex);
    CUpti_Activity *record = nullptr;
    while (cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
        if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
        // The record of toolkit 13.
        const auto *launch = reinterpret_cast<const CUpti_ActivityKernel10 *>(record);
        Kernel &kernel = kernels()[launch->name ? launch->name : "?"];
        ++kernel.launches;
        if (launch->end > launch->start)
            kernel.nanoseconds += launch->end - launch->start;
        else
            ++kernel.untimed;
    }
    std::free(buffer);
}

// What is recorded of a context ends with it, as by cudaDeviceReset.
void CUPTIAPI flush(void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *) { cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED); }

[[gnu::constructor]] void begin() {
    CUpti_SubscriberHandle subscriber;
    if (cuptiSubscribe(&subscriber, flush, nullptr) == CUPTI_SUCCESS)
        cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
    cuptiActivityRegisterCallbacks(provide, take);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}
} // namespace
