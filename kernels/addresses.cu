// How the time of a launch depends on the addresses of its buffers, with warm caches and with cold ones.
//
// Out: for each of 12 places of the buffers and three kernels, the microseconds of the first block shape and the ratios of four
// others to it, with warm caches and, behind the bar, with cold ones. Medians of seven launches. The kernels are those of PolyBench's
// gemm, of find_index in Rodinia's particle filter, and a stencil whose data is larger than the L2 cache.
//
//     nvcc -O3 -std=c++17 -arch=sm_90 addresses.cu -o addresses && ./addresses
#include <algorithm>
#include <cstdio>
#include <cuda_runtime.h>
#include <vector>

constexpr int N = 512, PARTICLES = 10000, SIDE = 4096;

__global__ void gemm(int ni, int nj, int nk, float alpha, float beta, float *a, float *b, float *c)
{
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < ni && j < nj) {
        c[i * N + j] *= beta;
        for (int k = 0; k < nk; k++) c[i * N + j] += alpha * a[i * N + k] * b[k * N + j];
    }
}

__global__ void find_index(double *x, double *y, double *cdf, double *u, double *xj, double *yj, int n)
{
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i >= n) return;
    int index = n - 1;
    for (int at = 0; at < n; at++)
        if (cdf[at] >= u[i]) {
            index = at;
            break;
        }
    xj[i] = x[index];
    yj[i] = y[index];
}

__global__ void stencil(const float *a, float *b, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && y > 0 && x < n - 1 && y < n - 1)
        b[y * n + x] = 0.2f * (a[y * n + x] + a[y * n + x - 1] + a[y * n + x + 1] + a[(y - 1) * n + x] + a[(y + 1) * n + x]);
}

static char *flush;
constexpr size_t FLUSH_BYTES = 256 << 20;

template <class Launch> float microseconds(bool cold, Launch launch)
{
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    std::vector<float> times;
    for (int run = 0; run < 10; run++) {
        if (cold) cudaMemsetAsync(flush, run, FLUSH_BYTES);
        cudaEventRecord(begin);
        launch();
        cudaEventRecord(end);
        cudaEventSynchronize(end);
        float ms;
        cudaEventElapsedTime(&ms, begin, end);
        if (run >= 3) times.push_back(1000 * ms);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

// Prints a line: `launch(x, y)` launches blocks of x by y threads.
template <class Launch> void line(const char *place, const char *kernel, const std::vector<dim3> &blocks, Launch launch)
{
    printf("%-8s %-10s", place, kernel);
    for (bool cold : {false, true}) {
        float first = 0;
        for (dim3 block : blocks) {
            float us = microseconds(cold, [&] { launch(block); });
            if (first == 0) printf("%s%6.1f us", cold ? " | " : "", first = us);
            else printf(" %.3f", us / first);
        }
    }
    printf("\n");
}

int main()
{
    cudaMalloc(&flush, FLUSH_BYTES);
    std::vector<float> values(N * N);
    for (size_t i = 0; i < values.size(); i++) values[i] = i % 511 / 512.f;
    std::vector<double> cdf(PARTICLES), u(PARTICLES);
    for (int i = 0; i < PARTICLES; i++) cdf[i] = (i + 1.0) / PARTICLES, u[i] = (i + 0.5) / PARTICLES;

    for (int place = 0; place < 12; place++) {
        // One after the other, 32 MiB apart, or one after the other from an odd page on; each time in memory of its own.
        const char *kinds[] = {"packed", "apart", "shifted"};
        const char *kind = kinds[place % 3];
        size_t apart = place % 3 == 1 ? 32 << 20 : 1 << 20, from = place % 3 == 2 ? 4096 * (37 * place % 512) : 0;
        char *memory, *buffers[6];
        cudaMalloc(&memory, 512 << 20);
        for (int i = 0; i < 6; i++) buffers[i] = memory + from + i * apart;
        for (int i = 0; i < 3; i++) cudaMemcpy(buffers[i], values.data(), N * N * sizeof(float), cudaMemcpyHostToDevice);

        float *a = (float *)buffers[0], *b = (float *)buffers[1], *c = (float *)buffers[2];
        line(kind, "gemm", {{32, 8}, {16, 4}, {16, 8}, {16, 32}, {64, 4}}, [&](dim3 block) {
            gemm<<<dim3(N / block.x, N / block.y), block>>>(N, N, N, 1.f, 1e-9f, a, b, c);
        });

        cudaMemcpy(buffers[2], cdf.data(), PARTICLES * sizeof(double), cudaMemcpyHostToDevice);
        cudaMemcpy(buffers[3], u.data(), PARTICLES * sizeof(double), cudaMemcpyHostToDevice);
        double *d[6];
        for (int i = 0; i < 6; i++) d[i] = (double *)buffers[i];
        line("", "find_index", {{512}, {32}, {64}, {128}, {256}}, [&](dim3 block) {
            find_index<<<(PARTICLES + block.x - 1) / block.x, block>>>(d[0], d[1], d[2], d[3], d[4], d[5], PARTICLES);
        });

        float *grid = (float *)(memory + from);
        line("", "stencil", {{32, 8}, {32, 4}, {64, 4}, {128, 1}, {256, 1}}, [&](dim3 block) {
            stencil<<<dim3(SIDE / block.x, SIDE / block.y), block>>>(grid, grid + SIDE * SIDE, SIDE);
        });
    }
    cudaError_t error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(error));
    return error != cudaSuccess;
}
