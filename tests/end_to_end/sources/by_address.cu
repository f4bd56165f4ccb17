// Launches by address. Each line of output is one launch.
#include "by_address.h"

#include <cstdio>

struct Line {
    int n;
    float slope[3];
    Line(int n) : n(n), slope() {}
    Line(const Line &other) : n(other.n), slope() {}
};

//@tune block({64, 256}) regs({0}) threads(line.n) default(block = 256) template(float)
//@tune args(line = {n = 1 << 20}, from = random[1 << 20], x = random[1 << 20])
template <class T> __global__ void drawn(Line line, const T *__restrict__ from, T *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < line.n) x[i] = x[i] * line.slope[0];
}

namespace {
//@tune block({64, 256}) regs({0}) threads(n) default(block = 256)
//@tune args(n = 1 << 20, x = random[n])
__global__ void hidden(int n, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += 1;
}
}

__global__ void unmarked(int n, float *x) { x[n] = 1; }

static cudaLaunchAttribute attribute(int id) {
    cudaLaunchAttribute made = {};
    made.id = static_cast<cudaLaunchAttributeID>(id);
    return made;
}

int main() {
    const int n = 10000;
    float *x = nullptr;
    const auto say = [](const char *what) { std::printf("-- %s\n", what); };

    say("arguments by an array");
    int size = n;
    void *numbers[] = {&size, &x};
    cudaLaunchKernel(reinterpret_cast<const void *>(hidden), dim3(40), dim3(256), numbers, 0, nullptr);
    cudaLaunchKernel(hidden, dim3(40), dim3(256), numbers, 0, reinterpret_cast<cudaStream_t>(7));
    say("no arguments");
    cudaLaunchKernel(hidden, dim3(40), dim3(256), nullptr, 0, nullptr);
    say("another block");
    cudaLaunchKernel(hidden, dim3(79), dim3(128), numbers, 0, nullptr);
    say("a structure with a constructor");
    start(shape(n, 256), drawn<float>, Line(n), static_cast<const float *>(x), x);
    say("another instance, another kernel");
    start(shape(n, 256), drawn<double>, Line(n), static_cast<const double *>(nullptr), static_cast<double *>(nullptr));
    start(shape(n, 256), unmarked, n, x);
    say("another source");
    launch_others(n, x);
    for (int id : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14}) {
        std::printf("-- attribute %d\n", id);
        cudaLaunchAttribute attributes[] = {attribute(id)};
        if (id == 4) attributes[0].val.clusterDim = {1, 1, 1};
        cudaLaunchConfig_t configuration = shape(n, 256);
        configuration.attrs = attributes;
        configuration.numAttrs = 1;
        start(configuration, hidden, n, x);
        if (id == 2) attributes[0].val.cooperative = 1;
        if (id == 4) attributes[0].val.clusterDim = {2, 1, 1};
        if (id == 2 || id == 4) start(configuration, hidden, n, x);
    }
    say("by name afterwards");
    hidden<<<40, 256>>>(n, x);
    say("errors");
    cudaLaunchConfig_t failing = shape(n, 256);
    failing.stream = reinterpret_cast<cudaStream_t>(13);
    std::printf("returned %d\n", start(failing, hidden, n, x));
    std::printf("returned %d\n", start(shape(n, 256), hidden, n, x));
    std::printf("last %d\n", cudaGetLastError());
    std::printf("returned %d\n", start(shape(n, 256), hidden, n, x));
    return 0;
}
