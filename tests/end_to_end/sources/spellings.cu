// Launches of a kernel, and uses of its macro, in the many ways that programs write them. Each line of output is one launch.
#include <cstdio>

#ifndef PER
#define PER 1
#endif

//@tune define(PER = {1, 4}) block({128, 256}) regs({0}) threads(ceildiv(n, PER)) default(block = 256, PER = 1)
//@tune args(n = 1 << 20, x = random[n])
__global__ void scale(int n, float *x) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * PER;
    for (int k = 0; k < PER; ++k)
        if (first + k < n) x[first + k] *= 2;
}

// Another kernel that has the macro: it stays as it is.
__global__ void shift(int n, float *x) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * PER;
    for (int k = 0; k < PER; ++k)
        if (first + k < n) x[first + k] += 1;
}

#define BLOCKS(n) (((n) / PER + 255) / 256)
#define LAUNCH(kernel, grid, block, ...) kernel<<<grid, block>>>(__VA_ARGS__)
enum { THREADS = 256 };
constexpr int narrow = 192;

static int blocks(int n, int block) { return (n + block - 1) / block; }
static int tuned_elsewhere() { return narrow; }

template <class Kernel, class... Arguments> void start(Kernel kernel, int grid, int block, Arguments... arguments) {
    kernel<<<grid, block>>>(arguments...);
}

struct Runner {
    dim3 grid, block;
    void (*kernel)(int, float *);
    void operator()(int n, float *x) const { kernel<<<grid, block>>>(n, x); }
};

static void (*const table[])(int, float *) = {scale, shift};

extern "C" void of_c(int n, float *x, unsigned threads) { scale<<<blocks(n, threads), threads>>>(n, x); }

int main() {
    const int n = 10000;
    float *x = nullptr;
    cudaStream_t stream = reinterpret_cast<cudaStream_t>(7);
    const auto say = [](const char *what) { std::printf("-- %s\n", what); };

    say("numbers");
    scale<<<(n + 255) / 256, 256>>>(n, x);
    say("another block");
    scale<<<(n + 127) / 128, 128>>>(n, x);
    say("a block in two dimensions");
    scale<<<40, dim3(16, 16)>>>(n, x);
    say("a part of the problem");
    scale<<<(n / 2 + 255) / 256, 256>>>(n, x);
    say("a grid in three dimensions");
    scale<<<dim3(40, 1, 2), 256>>>(n, x);
    say("shared memory that the comment does not give");
    scale<<<40, 256, 64>>>(n, x);
    say("a stream");
    scale<<<blocks(n, 256), 256, 0, stream>>>(n, x);
    say("variables");
    dim3 grid(blocks(n, 256)), block;
    block.x = 256;
    scale<<<grid, block>>>(n, x);
    say("a variable that changes");
    for (int threads = 64; threads <= 256; threads *= 2) scale<<<blocks(n, threads), threads>>>(n, x);
    say("an enumerator");
    scale<<<blocks(n, THREADS), THREADS>>>(n, x);
    say("a constant of another function");
    scale<<<blocks(n, tuned_elsewhere()), tuned_elsewhere()>>>(n, x);
    say("a macro that launches");
    LAUNCH(scale, blocks(n, 256), 256, n, x);
    say("a macro with the axis");
    scale<<<BLOCKS(n), 256>>>(n, x);
    say("a least grid with the axis");
    scale<<<min(16, n / PER), 256>>>(n, x);
    say("a variable with the axis");
    const int per_block = 256 * PER;
    scale<<<(n + per_block - 1) / per_block, 256>>>(n, x);
    say("an alias");
    auto alias = scale;
    alias<<<blocks(n, 256), 256>>>(n, x);
    say("a reference, another block");
    auto &reference = scale;
    reference<<<blocks(n, 512), 512>>>(n, x);
    say("a table");
    for (auto kernel : table) kernel<<<blocks(n, 256), 256>>>(n, x);
    say("a choice of kernels");
    (n % 2 ? shift : scale)<<<blocks(n, 256), 256>>>(n, x);
    say("a function template");
    start(scale, blocks(n, 256), 256, n, x);
    start(scale, 7, 256, n, x);
    say("a function object");
    Runner{dim3(40), dim3(256), scale}(n, x);
    Runner{dim3(3), dim3(256), scale}(n, x);
    say("a lambda");
    [&](int threads) { scale<<<blocks(n, threads), threads>>>(n, x); }(256);
    say("a function of C");
    of_c(n, x, 256);
    of_c(n, x, 1024);
    say("an argument that is no part of the program's problem");
    scale<<<40, 256>>>(n / 2, x);
    say("nothing to do");
    scale<<<0, 256>>>(0, x);
    say("a single thread");
    scale<<<1, 256>>>(1, x);
    say("by address");
    int size = n;
    void *arguments[] = {&size, &x};
    cudaLaunchKernel(reinterpret_cast<const void *>(scale), dim3(40), dim3(256), arguments, 0, nullptr);
    say("by configuration");
    cudaLaunchConfig_t configuration = {};
    configuration.gridDim = dim3(40);
    configuration.blockDim = dim3(256);
    cudaLaunchKernelEx(&configuration, scale, n, x);
    say("another kernel with the macro");
    shift<<<blocks(n, 256), 256>>>(n, x);
    return 0;
}
