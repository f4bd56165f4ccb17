// Launches that are written for one block, of every kind of kernel that has a launch stub.
struct Sizes {
    int n, words;
};

//@tune threads(n) block({64, 192, 256}) regs({0}) default(block = 256)
//@tune args(n = 1 << 16, x = random[n], y = out[n])
__global__ void plain(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}

namespace ns {
//@tune template(float) threads(n) block({64, 256}) regs({0}) default(block = 256)
//@tune args(n = 1 << 16, x = random[n], y = out[n])
template <class T>
__global__ void generic(int n, const T *x, T *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 3 * x[i];
}
}  // namespace ns

//@tune threads(n) block({64, 256}) regs({0}) default(block = 256)
//@tune args(n = 1 << 16, x = random[n], y = out[n])
extern "C" __global__ void unmangled(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 4 * x[i];
}

namespace {
//@tune threads(w, h) block({16, 32}, {8, 16}) regs({0}) default(block = {16, 16}) require(block.size == 256)
//@tune args(w = 256, h = 100, x = random[w * h], y = out[w * h])
__global__ void hidden(int w, int h, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i < w && j < h) y[j * w + i] = 5 * x[j * w + i];
}
}  // namespace

//@tune threads(sizes.n) block({64, 256}) regs({0}) default(block = 256) shared(max(block.x, 1) * sizes.words * 4 / 1)
//@tune args(sizes = {n = 1 << 16, words = 2}, x = random[sizes.n], y = out[sizes.n])
__global__ void staged(Sizes sizes, const float *x, float *y) {
    extern __shared__ float stage[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    stage[threadIdx.x] = i < sizes.n ? x[i] : 0;
    __syncthreads();
    if (i < sizes.n) y[i] = stage[threadIdx.x ^ 1];
}

void elsewhere(int n, const float *x, float *y);

int main() {
    const int n = 1 << 16;
    const float *x = nullptr;
    float *y = nullptr;
    cudaStream_t stream = reinterpret_cast<cudaStream_t>(7);
    plain<<<n / 256, 256>>>(n, x, y);
    plain<<<dim3(2, 3, 4), 256, 0, stream>>>(n, x, y);
    plain<<<n / 128, 128>>>(n, x, y);
    plain<<<n / 256, dim3(16, 16)>>>(n, x, y);
    plain<<<n / 256, 256, 1024>>>(n, x, y);
    plain<<<0, 256>>>(n, x, y);
    plain<<<2147483647, 256>>>(n, x, y);
    ns::generic<<<n / 256, 256>>>(n, x, y);
    ns::generic<<<4, 256>>>(n, static_cast<const double *>(nullptr), static_cast<double *>(nullptr));
    unmangled<<<n / 256, 256>>>(n, x, y);
    hidden<<<dim3(16, 7), dim3(16, 16)>>>(256, 100, x, y);
    staged<<<n / 256, 256, 256 * 3 * 4>>>(Sizes{n, 3}, x, y);
    staged<<<n / 256, 256, 64>>>(Sizes{n, 3}, x, y);
    elsewhere(n, x, y);
    return 0;
}
