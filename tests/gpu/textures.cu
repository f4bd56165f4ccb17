// A program whose kernels read textures and write surfaces: a filtered array, linear memory by a handle in a structure, layers, and a
// surface that a kernel adds to.
#include <cmath>
#include <cstdio>
#include <vector>

//@tune
__global__ void resampled(int w, int h, cudaTextureObject_t image, float *out) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) out[y * w + x] = tex2D<float>(image, (x + 1.0f) / w, (y + 0.5f) / h);
}

struct Table {
    float factor;
    cudaTextureObject_t values;
};

//@tune
__global__ void looked_up(int n, Table table, const int *index, float *out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = table.factor * tex1Dfetch<float>(table.values, index[i]);
}

//@tune
__global__ void marked(int w, int h, cudaTextureObject_t layers, cudaSurfaceObject_t marks) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    for (int layer = 0; layer < 2; ++layer)
        surf2DLayeredwrite(2 * tex2DLayered<float>(layers, x + 0.5f, y + 0.5f, layer), marks, x * sizeof(float), y, layer);
}

//@tune
__global__ void summed(int w, int h, cudaSurfaceObject_t sums) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < w && y < h) surf2Dwrite(surf2Dread<float>(sums, x * sizeof(float), y) + x, sums, x * sizeof(float), y);
}

const int W = 2048, H = 1024, N = W * H;

static cudaArray_t array(int layers, unsigned flags, const std::vector<float> &values) {
    cudaArray_t made;
    const cudaChannelFormatDesc texel = cudaCreateChannelDesc<float>();
    cudaMalloc3DArray(&made, &texel, make_cudaExtent(W, H, layers > 1 ? layers : 0), flags);
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(const_cast<float *>(values.data()), W * sizeof(float), W, H);
    copy.dstArray = made;
    copy.extent = make_cudaExtent(W, H, layers);
    copy.kind = cudaMemcpyHostToDevice;
    cudaMemcpy3D(&copy);
    return made;
}

static std::vector<float> contents(cudaArray_t of, int layers) {
    std::vector<float> values(size_t(N) * layers);
    cudaMemcpy3DParms copy = {};
    copy.srcArray = of;
    copy.dstPtr = make_cudaPitchedPtr(values.data(), W * sizeof(float), W, H);
    copy.extent = make_cudaExtent(W, H, layers);
    copy.kind = cudaMemcpyDeviceToHost;
    cudaMemcpy3D(&copy);
    return values;
}

static cudaResourceDesc resource(cudaArray_t of) {
    cudaResourceDesc described = {};
    described.resType = cudaResourceTypeArray;
    described.res.array.array = of;
    return described;
}

static cudaTextureObject_t texture(const cudaResourceDesc &of, bool is_filtered) {
    cudaTextureDesc described = {};
    for (cudaTextureAddressMode &mode : described.addressMode) mode = cudaAddressModeClamp;
    described.filterMode = is_filtered ? cudaFilterModeLinear : cudaFilterModePoint;
    described.normalizedCoords = is_filtered;
    cudaTextureObject_t made = 0;
    cudaCreateTextureObject(&made, &of, &described, nullptr);
    return made;
}

static cudaSurfaceObject_t surface(cudaArray_t of) {
    const cudaResourceDesc described = resource(of);
    cudaSurfaceObject_t made = 0;
    cudaCreateSurfaceObject(&made, &described);
    return made;
}

static int differing(const std::vector<float> &got, const std::vector<float> &expected) {
    int wrong = 0;
    for (size_t i = 0; i < got.size(); ++i) wrong += !(std::fabs(got[i] - expected[i]) <= 1e-3f);
    return wrong;
}

int main() {
    std::vector<float> values(2 * N), half(N), looked(N), doubled(2 * N), sums(N), got(N);
    std::vector<int> index(N);
    for (int i = 0; i < 2 * N; ++i) {
        values[i] = float(i % 1000) / 8;
        doubled[i] = 2 * values[i];
    }
    for (int i = 0; i < N; ++i) {
        const int x = i % W;
        half[i] = (values[i] + values[x + 1 < W ? i + 1 : i]) / 2;
        index[i] = int(i * 7919ll % N);
        looked[i] = 2 * values[index[i]];
        sums[i] = values[i] + 3 * x;
    }
    float *out, *table;
    int *places;
    cudaMalloc(&out, N * sizeof(float));
    cudaMalloc(&table, N * sizeof(float));
    cudaMalloc(&places, N * sizeof(int));
    cudaMemcpy(table, values.data(), N * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(places, index.data(), N * sizeof(int), cudaMemcpyHostToDevice);
    const cudaArray_t image = array(1, 0, values), layers = array(2, cudaArrayLayered, values);
    const cudaArray_t marks = array(2, cudaArrayLayered | cudaArraySurfaceLoadStore, std::vector<float>(2 * N));
    const cudaArray_t totals = array(1, cudaArraySurfaceLoadStore, values);
    cudaResourceDesc linear = {};
    linear.resType = cudaResourceTypeLinear;
    linear.res.linear.devPtr = table;
    linear.res.linear.desc = cudaCreateChannelDesc<float>();
    linear.res.linear.sizeInBytes = N * sizeof(float);
    const dim3 block(16, 16), grid(W / 16, H / 16);
    int wrong = 0;
    for (int i = 0; i < 3; ++i) resampled<<<grid, block>>>(W, H, texture(resource(image), true), out);
    cudaMemcpy(got.data(), out, N * sizeof(float), cudaMemcpyDeviceToHost);
    wrong += differing(got, half);
    for (int i = 0; i < 3; ++i) looked_up<<<N / 256, 256>>>(N, Table{2, texture(linear, false)}, places, out);
    cudaMemcpy(got.data(), out, N * sizeof(float), cudaMemcpyDeviceToHost);
    wrong += differing(got, looked);
    for (int i = 0; i < 3; ++i) marked<<<grid, block>>>(W, H, texture(resource(layers), false), surface(marks));
    wrong += differing(contents(marks, 2), doubled);
    for (int i = 0; i < 3; ++i) summed<<<grid, block>>>(W, H, surface(totals));
    wrong += differing(contents(totals, 1), sums);
    std::printf("%d wrong, %s\n", wrong, cudaGetErrorString(cudaGetLastError()));
    return wrong != 0;
}
