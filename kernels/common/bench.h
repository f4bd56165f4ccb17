// What every program of the suite does around its kernel: options, errors of CUDA, inputs, timing, comparison.
//
// In: the program's command line and its launch, as a function. Out: a median time, a verdict, one line each on stdout
// (and one line of JSON with --json). Always holds: the same seed gives the same inputs, and each sample is one launch
// between two events after warm-up launches; the L2 cache is left as the launch before left it.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace bench {

// ---- errors ----------------------------------------------------------------------------------------------------

inline void require(cudaError_t result, const char *what) {
    if (result == cudaSuccess) return;
    std::fprintf(stderr, "error: %s: %s (%s)\n", what, cudaGetErrorString(result), cudaGetErrorName(result));
    std::exit(2);
}

#define BENCH_CUDA(call) ::bench::require((call), #call)

// ---- options ---------------------------------------------------------------------------------------------------

struct Options {
    int size;
    std::uint64_t seed = 1;
    int repetitions = 50;
    bool check = false;
    bool json = false;
};

[[noreturn]] inline void usage(const char *program, int size, int status) {
    std::fprintf(status == 0 ? stdout : stderr,
                 "usage: %s [--size N] [--seed S] [--repetitions R] [--check] [--json]\n"
                 "  --size N         problem size (default %d)\n"
                 "  --seed S         seed of the inputs (default 1)\n"
                 "  --repetitions R  timed launches, the median counts (default 50)\n"
                 "  --check          compare with a reference on the CPU; exit status 1 when it differs\n"
                 "  --json           one line of JSON besides\n",
                 program, size);
    std::exit(status);
}

inline long long number(const char *option, const char *text, long long least, long long most) {
    char *end = nullptr;
    errno = 0;
    const long long value = text ? std::strtoll(text, &end, 10) : 0;
    if (!text || end == text || *end != '\0' || errno == ERANGE || value < least || value > most) {
        std::fprintf(stderr, "error: %s takes a number from %lld to %lld\n", option, least, most);
        std::exit(2);
    }
    return value;
}

// Reads the command line; `most` is the greatest size that the kernel's index arithmetic and memory allow.
inline Options parse(int argc, char **argv, const char *program, int size, int most) {
    Options options;
    options.size = size;
    for (int at = 1; at < argc; ++at) {
        const char *word = argv[at];
        const char *next = at + 1 < argc ? argv[at + 1] : nullptr;
        if (std::strcmp(word, "--size") == 0) {
            options.size = static_cast<int>(number(word, next, 1, most));
            ++at;
        } else if (std::strcmp(word, "--seed") == 0) {
            options.seed = static_cast<std::uint64_t>(number(word, next, 0, INT64_MAX));
            ++at;
        } else if (std::strcmp(word, "--repetitions") == 0) {
            options.repetitions = static_cast<int>(number(word, next, 1, 1000000));
            ++at;
        } else if (std::strcmp(word, "--check") == 0) {
            options.check = true;
        } else if (std::strcmp(word, "--json") == 0) {
            options.json = true;
        } else {
            const bool asked = std::strcmp(word, "--help") == 0 || std::strcmp(word, "-h") == 0;
            if (!asked) std::fprintf(stderr, "error: unknown option %s\n", word);
            usage(program, size, asked ? 0 : 2);
        }
    }
    return options;
}

// ---- inputs ----------------------------------------------------------------------------------------------------

// Uniform in [lo, hi): a hash of (seed, stream, index), so that any element can be had without the ones before it
// (the finalizer of SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
inline float uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index, float lo, float hi) {
    std::uint64_t z = (seed * 31 + stream) * 0x9e3779b97f4a7c15u + index * 0xd1342543de82ef95u + 1;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return lo + (hi - lo) * (static_cast<float>(z >> 40) * 0x1p-24f);
}

inline std::vector<float> random(std::size_t count, const Options &options, std::uint64_t stream, float lo, float hi) {
    std::vector<float> values(count);
    for (std::size_t at = 0; at < count; ++at) values[at] = uniform(options.seed, stream, at, lo, hi);
    return values;
}

// Integers from lo to hi, both included; hi - lo is below 2^24.
template <typename T>
std::vector<T> integers(std::size_t count, const Options &options, std::uint64_t stream, int lo, int hi) {
    std::vector<T> values(count);
    for (std::size_t at = 0; at < count; ++at) {
        const float share = uniform(options.seed, stream, at, 0.0f, 1.0f);
        values[at] = static_cast<T>(lo + static_cast<int>(share * static_cast<float>(hi - lo + 1)));
    }
    return values;
}

// An array in device memory, freed with its owner. Outputs start as NaN, so that an element that was never written
// fails the comparison.
template <typename T> class Array {
  public:
    explicit Array(std::size_t count) : count_(count) {
        BENCH_CUDA(cudaMalloc(&data_, count * sizeof(T)));
        BENCH_CUDA(cudaMemset(data_, 0xff, count * sizeof(T)));
    }
    explicit Array(const std::vector<T> &values) : Array(values.size()) { write(values); }
    Array(const Array &) = delete;
    Array &operator=(const Array &) = delete;
    ~Array() { cudaFree(data_); }

    T *data() const { return data_; }
    void write(const std::vector<T> &values) {
        BENCH_CUDA(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
    }
    std::vector<T> read() const {
        std::vector<T> values(count_);
        BENCH_CUDA(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
        return values;
    }

  private:
    std::size_t count_;
    T *data_ = nullptr;
};

// ---- comparison ------------------------------------------------------------------------------------------------

// Which of `count` results to check when only `most` of them can be had from the CPU: all, or every stride-th of
// them with the first and the last. The stride is odd, so that no power of two in the layout repeats with it.
inline std::vector<std::size_t> sample(std::size_t count, std::size_t most) {
    const std::size_t stride = count <= most ? 1 : (count / most) | 1;
    std::vector<std::size_t> chosen;
    for (std::size_t at = 0; at < count; at += stride) chosen.push_back(at);
    if (chosen.back() != count - 1) chosen.push_back(count - 1);
    return chosen;
}

// Accepts |got - expected| <= absolute + relative * |expected|, for every pair it is given; NaN is never accepted.
class Comparison {
  public:
    Comparison(double relative, double absolute) : relative_(relative), absolute_(absolute) {}

    void add(const char *what, std::size_t index, double got, double expected) {
        ++compared_;
        if (std::fabs(got - expected) <= absolute_ + relative_ * std::fabs(expected)) return;
        if (++wrong_ <= 5) std::fprintf(stderr, "%s[%zu]: got %.9g, expected %.9g\n", what, index, got, expected);
    }
    bool ok() const { return compared_ > 0 && wrong_ == 0; }
    std::size_t compared() const { return compared_; }
    std::size_t wrong() const { return wrong_; }

  private:
    double relative_;
    double absolute_;
    std::size_t compared_ = 0;
    std::size_t wrong_ = 0;
};

// ---- timing ----------------------------------------------------------------------------------------------------

// Runs `launch` once and waits for it, so that a kernel that cannot start or crashes ends the program here.
template <typename Launch> void run(Launch launch) {
    launch();
    BENCH_CUDA(cudaGetLastError());
    BENCH_CUDA(cudaDeviceSynchronize());
}

// Times of single launches in microseconds, sorted.
template <typename Launch> std::vector<double> time(const Options &options, Launch launch) {
    const int warm_up = 5;
    cudaEvent_t start, stop;
    BENCH_CUDA(cudaEventCreate(&start));
    BENCH_CUDA(cudaEventCreate(&stop));
    std::vector<double> times;
    for (int at = -warm_up; at < options.repetitions; ++at) {
        BENCH_CUDA(cudaEventRecord(start));
        launch();
        BENCH_CUDA(cudaEventRecord(stop));
        BENCH_CUDA(cudaGetLastError());
        BENCH_CUDA(cudaEventSynchronize(stop));
        float milliseconds = 0;
        BENCH_CUDA(cudaEventElapsedTime(&milliseconds, start, stop));
        if (at >= 0) times.push_back(1e3 * static_cast<double>(milliseconds));
    }
    BENCH_CUDA(cudaEventDestroy(start));
    BENCH_CUDA(cudaEventDestroy(stop));
    std::sort(times.begin(), times.end());
    return times;
}

inline double median(const std::vector<double> &sorted) {
    const std::size_t half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : 0.5 * (sorted[half - 1] + sorted[half]);
}

// ---- the whole run ---------------------------------------------------------------------------------------------

// The launch that the program makes, for its report.
struct Shape {
    dim3 grid;
    dim3 block;
    std::size_t shared = 0;
    // Whether the shape comes from a header of the build rather than from the program's own constants.
    bool header = false;
};

// The end of every main: launches once and checks (with --check), then times, then prints. `verify` fills a Comparison
// after the first launch, whose inputs nothing has touched before. Gives the exit status.
template <typename Kernel, typename Launch, typename Verify>
int finish(const char *program, const Options &options, const Shape &shape, Kernel *kernel, Comparison comparison,
           Launch launch, Verify verify) {
    run(launch);
    if (options.check) verify(comparison);
    const std::vector<double> times = time(options, launch);

    cudaFuncAttributes attributes;
    BENCH_CUDA(cudaFuncGetAttributes(&attributes, kernel));
    const char *verdict = !options.check ? "skipped" : comparison.ok() ? "ok" : "FAILED";
    std::printf("launch grid %ux%ux%u block %ux%ux%u shared %zu registers %d from %s\n", shape.grid.x, shape.grid.y,
                shape.grid.z, shape.block.x, shape.block.y, shape.block.z, shape.shared, attributes.numRegs,
                shape.header ? "header" : "defaults");
    std::printf("time_us %.3f min %.3f max %.3f repetitions %d\n", median(times), times.front(), times.back(),
                options.repetitions);
    if (options.check) {
        std::printf("check %s (%zu of %zu differ)\n", verdict, comparison.wrong(), comparison.compared());
    }
    if (options.json) {
        std::printf("{\"program\": \"%s\", \"size\": %d, \"seed\": %llu, \"repetitions\": %d, "
                    "\"grid\": [%u, %u, %u], \"block\": [%u, %u, %u], \"shared\": %zu, \"registers\": %d, "
                    "\"local_bytes\": %zu, \"header\": %s, "
                    "\"time_us\": {\"median\": %.3f, \"min\": %.3f, \"max\": %.3f}, \"check\": \"%s\"}\n",
                    program, options.size, static_cast<unsigned long long>(options.seed), options.repetitions,
                    shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x, shape.block.y, shape.block.z,
                    shape.shared, attributes.numRegs, attributes.localSizeBytes, shape.header ? "true" : "false",
                    median(times), times.front(), times.back(), verdict);
    }
    return options.check && !comparison.ok() ? 1 : 0;
}

} // namespace bench
