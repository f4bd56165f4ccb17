
// Each thread has a result of its own: another grid gives others.
//@tune
__global__ void partial(int n, const float *__restrict__ x, float *__restrict__ y) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int i = first; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    y[first] = sum;
}

// nvcc makes several loops of this one.
//@tune
__global__ void added(int n, const float *__restrict__ x, float *__restrict__ y) {
    const int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) y[i] = x[i] + y[i];
}

// Memory that may overlap.
//@tune
__global__ void copied(int n, const float *x, float *y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = x[i];
}

// A number of threads by the user's word.
//@tune threads(4096)
__global__ void counted(int n, float *y) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = 1;
}

int main() {
    float *x[5];
    for (float *&data : x) cudaMalloc(&data, 4 << 15);
    black_scholes<<<528, 256>>>(1 << 15, 0.03f, 0.25f, x[0], x[1], x[2], x[3], x[4]);
    partial<<<16, 256>>>(1 << 15, x[0], x[1]);
    added<<<16, 256>>>(1 << 15, x[0], x[1]);
    copied<<<16, 256>>>(1 << 15, x[0], x[1]);
    counted<<<16, 256>>>(1 << 15, x[0]);
}
