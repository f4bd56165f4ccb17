// A program whose launches of 256 threads a block run a winner with blocks of 64. It checks results and shapes by itself.
#include <cstdio>
#include <vector>

//@tune threads(n) block({64, 256}) regs({0}) default(block = 256)
//@tune args(n = 1 << 22, x = random[n], y = out[n], shape = out[6]) check(y)
__global__ void scale(int n, const float *x, float *y, unsigned *shape) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[(blockIdx.z * gridDim.y + blockIdx.y) * n + i] = 2 * x[i];
    if (i == 0 && blockIdx.y == 0 && blockIdx.z == 0) {
        shape[0] = gridDim.x, shape[1] = gridDim.y, shape[2] = gridDim.z;
        shape[3] = blockDim.x, shape[4] = blockDim.y, shape[5] = blockDim.z;
    }
}

void elsewhere(int blocks, int n, const float *x, float *y, unsigned *shape, cudaStream_t stream);

// Enough blocks of 64 that a quarter of them fills a GPU.
static const int N = 5000 * 256 + 17, LAYERS = 6;
#ifdef COARSENED
static const unsigned CAPTURED_BLOCK = 256;
#else
static const unsigned CAPTURED_BLOCK = 64;
#endif
static float *x, *y;
static unsigned *shape;
static int failed;

// Whether `layers` layers of y are right and the shape is this one; a layer that was not launched is as it was.
static void expect(const char *name, int layers, const std::vector<unsigned> &wanted) {
    std::vector<float> result(static_cast<size_t>(N) * LAYERS);
    std::vector<unsigned> got(6);
    const cudaError_t error = cudaDeviceSynchronize();
    cudaMemcpy(result.data(), y, result.size() * sizeof(float), cudaMemcpyDeviceToHost);
    cudaMemcpy(got.data(), shape, got.size() * sizeof(unsigned), cudaMemcpyDeviceToHost);
    size_t wrong = 0;
    for (size_t i = 0; i < result.size(); ++i) {
        const float right = static_cast<int>(i / N) < layers ? 2.0f * static_cast<float>(i % N % 1024) : 0.0f;
        wrong += result[i] != right;
    }
    const bool well = error == cudaSuccess && wrong == 0 && got == wanted;
    failed += !well;
    std::printf("%s %s: grid %u %u %u block %u %u %u, %zu wrong, %s\n", well ? "ok" : "FAILED", name, got[0], got[1], got[2],
                got[3], got[4], got[5], wrong, cudaGetErrorString(error));
    cudaMemset(y, 0, result.size() * sizeof(float));
    cudaMemset(shape, 0, got.size() * sizeof(unsigned));
}

int main() {
    std::vector<float> host(N);
    for (int i = 0; i < N; ++i) host[i] = static_cast<float>(i % 1024);
    cudaMalloc(&x, N * sizeof(float));
    cudaMalloc(&y, static_cast<size_t>(N) * LAYERS * sizeof(float));
    cudaMalloc(&shape, 6 * sizeof(unsigned));
    cudaMemcpy(x, host.data(), N * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemset(y, 0, static_cast<size_t>(N) * LAYERS * sizeof(float));
    cudaMemset(shape, 0, 6 * sizeof(unsigned));
    const unsigned blocks = (N + 255) / 256;
    cudaStream_t stream;
    cudaStreamCreate(&stream);

    scale<<<blocks, 256>>>(N, x, y, shape);
    expect("the baseline's block", 1, {(N + 63) / 64, 1, 1, 64, 1, 1});
    scale<<<(N + 127) / 128, 128>>>(N, x, y, shape);
    expect("another block", 1, {(N + 127) / 128, 1, 1, 128, 1, 1});
    scale<<<dim3(blocks, 2, 3), 256, 0, stream>>>(N, x, y, shape);
    expect("a grid of three dimensions", 6, {blocks, 2, 3, 256, 1, 1});

    // What a launch that is left alone gives is what CUDA says to it.
    scale<<<0, 128>>>(N, x, y, shape);
    const cudaError_t left = cudaGetLastError();
    scale<<<0, 256>>>(N, x, y, shape);
    const cudaError_t empty = cudaGetLastError();
    const bool same = empty == left && left != cudaSuccess;
    failed += !same;
    std::printf("%s a launch of no blocks: %s\n", same ? "ok" : "FAILED", cudaGetErrorString(empty));
    expect("nothing after it", 0, {0, 0, 0, 0, 0, 0});

    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    scale<<<blocks, 256, 0, stream>>>(N, x, y, shape);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    expect("before the graph is launched", 0, {0, 0, 0, 0, 0, 0});
    cudaGraphLaunch(executable, stream);
    expect("a captured launch", 1, {(N + CAPTURED_BLOCK - 1) / CAPTURED_BLOCK, 1, 1, CAPTURED_BLOCK, 1, 1});

    elsewhere(blocks, N, x, y, shape, stream);
    expect("a launch of another translation unit", 1, {(N + 63) / 64, 1, 1, 64, 1, 1});

    int devices = 0;
    cudaGetDeviceCount(&devices);
    for (int device = 1; device < devices; ++device) {
        cudaSetDevice(device);
        cudaMalloc(&x, N * sizeof(float));
        cudaMalloc(&y, static_cast<size_t>(N) * LAYERS * sizeof(float));
        cudaMalloc(&shape, 6 * sizeof(unsigned));
        cudaMemcpy(x, host.data(), N * sizeof(float), cudaMemcpyHostToDevice);
        cudaMemset(y, 0, static_cast<size_t>(N) * LAYERS * sizeof(float));
        scale<<<blocks, 256>>>(N, x, y, shape);
        expect("another device", 1, {(N + 63) / 64, 1, 1, 64, 1, 1});
    }
    return failed;
}
