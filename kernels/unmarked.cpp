// The time that a program's kernels take on the GPU: preloaded into a program that is linked with the shared runtime.
//
// In: UNMARKED_TIMES, the file to write. Out: one line, microseconds of all kernels between two events and their number, when
// the program ends. A launch into a stream that is being captured is passed on and not counted.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

namespace {
// The events of more launches than these are not kept: a program's later launches repeat the earlier ones.
constexpr size_t MOST = 20000;
std::mutex mutex;
std::vector<std::pair<cudaEvent_t, cudaEvent_t>> launches;

void write_times() {
    const char *path = std::getenv("UNMARKED_TIMES");
    double total = 0;
    size_t count = 0;
    cudaDeviceSynchronize();
    for (auto &[begin, end] : launches) {
        float milliseconds = 0;
        if (cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess) total += milliseconds, ++count;
    }
    if (FILE *file = path ? std::fopen(path, "w") : nullptr) {
        std::fprintf(file, "%.1f %zu\n", total * 1e3, count);
        std::fclose(file);
    }
}

template <class Launch> cudaError_t timed(const void *kernel, cudaStream_t stream, Launch launch) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaStreamIsCapturing(stream, &status);
    // Its code is loaded now, and not between the events of its first launch. Errors of the program stay.
    cudaFuncAttributes attributes;
    if (status == cudaStreamCaptureStatusNone && cudaPeekAtLastError() == cudaSuccess &&
        cudaFuncGetAttributes(&attributes, kernel) != cudaSuccess)
        cudaGetLastError();
    std::pair<cudaEvent_t, cudaEvent_t> events;
    {
        std::lock_guard<std::mutex> lock(mutex);
        if (launches.empty()) std::atexit(write_times);
        const bool counted = status == cudaStreamCaptureStatusNone && launches.size() < MOST &&
                             cudaEventCreate(&events.first) == cudaSuccess && cudaEventCreate(&events.second) == cudaSuccess;
        if (!counted) return launch();
        launches.push_back(events);
    }
    cudaEventRecord(events.first, stream);
    const cudaError_t error = launch();
    cudaEventRecord(events.second, stream);
    return error;
}

template <class Function> Function next(const char *name) { return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name)); }
} // namespace

extern "C" cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) {
    static const auto launch = next<cudaError_t (*)(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t)>("__cudaLaunchKernel");
    return timed(kernel, stream, [&] { return launch(kernel, grid, block, arguments, shared, stream); });
}

extern "C" cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream) {
    static const auto launch = next<cudaError_t (*)(const void *, dim3, dim3, void **, size_t, cudaStream_t)>("cudaLaunchKernel");
    return timed(kernel, stream, [&] { return launch(kernel, grid, block, arguments, shared, stream); });
}

extern "C" cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *configuration, const void *kernel, void **arguments) {
    static const auto launch = next<cudaError_t (*)(const cudaLaunchConfig_t *, const void *, void **)>("cudaLaunchKernelExC");
    return timed(kernel, configuration->stream, [&] { return launch(configuration, kernel, arguments); });
}
