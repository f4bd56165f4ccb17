// Launches of all kinds that a recording tells apart, on memory of the host that the runtime takes for the device's.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" void fake_capturing(int is_capturing);
extern "C" void fake_endless();
extern "C" void fake_probe(const void *const *bounds, size_t words);

struct View {
    float *data;
    int width;
};
enum Border { ZERO, REPEAT };

__constant__ float weights[4] = {1, 2, 3, 4};
__device__ View target;

//@tune
__global__ void scaled(
#ifdef WITH_A_LIST_OF_WORK
    int *worklist,
#endif
    int n, float a, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] * weights[i % 4];
}

//@tune
__global__ void viewed(View view, const View *device, Border border, int height) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < view.width && y < height) view.data[y * view.width + x] += device->data[x] + target.data[x] + border;
}

//@tune
template <class T> __global__ void filled(unsigned long long n, T value, T *out) {
    const unsigned long long i = blockIdx.x * 1ULL * blockDim.x + threadIdx.x;
    if (i < n) out[i] = value;
}

namespace {
//@tune name(hidden)
__global__ void counted(int step, int *out) { out[threadIdx.x] = step; }
}  // namespace

int main(int count, char **arguments) {
    const int kind = count > 1 ? atoi(arguments[1]) : 0;
    static float *x, *y;
    cudaMalloc(&x, 4000);
    cudaMalloc(&y, 8000);
    for (int i = 0; i < 1000; ++i) x[i] = static_cast<float>(i);
    memset(y, 0, 8000);
    switch (kind) {
        case 0: {
            for (int i = 0; i < 3; ++i) scaled<<<4, 256>>>(1000, 0.5f, x, y);
            scaled<<<2, 256>>>(300, 0.5f, x, y + 100);
            View other = {x + 10, 32}, *device;
            cudaMalloc(&device, sizeof other);
            *device = other;
            cudaMemcpyToSymbol(target, &other, sizeof other);
            viewed<<<dim3(2, 4), dim3(16, 8)>>>(View{y, 32}, device, REPEAT, 30);
            filled<double><<<5, 128, 1024>>>(600, 2.5, reinterpret_cast<double *>(y));
            break;
        }
        case 1: /* More kinds than are told apart, by several threads. */
            for (int round = 0; round < 2; ++round) {
                auto launches = [](void *) -> void * {
                    for (int step = 0; step < 40; ++step) counted<<<1, 32>>>(step, reinterpret_cast<int *>(y));
                    return nullptr;
                };
                pthread_t threads[2];
                for (pthread_t &thread : threads) pthread_create(&thread, nullptr, launches, nullptr);
                for (pthread_t thread : threads) pthread_join(thread, nullptr);
            }
            break;
        case 2: /* A launch of a graph is counted, and recorded once it comes without. */
            fake_capturing(1);
            scaled<<<4, 256>>>(1000, 0.5f, x, y);
            fake_capturing(0);
            break;
        case 3: { /* Memory that the driver does not know. */
            static float unknown[1000];
            scaled<<<4, 256>>>(1000, 0.5f, unknown, y);
            break;
        }
        case 4: /* Launches that do not end. */
            fake_endless();
            scaled<<<4, 256>>>(1000, 0.5f, x, y);
            scaled<<<2, 256>>>(300, 0.5f, x, y);
            printf("error %d\n", static_cast<int>(cudaPeekAtLastError()));
            break;
        case 5:   /* Arrays in one allocation, of which a probe tells the parts. */
        case 6:   /* The same, and the probe cannot be loaded. */
        case 7:   /* It tells more than the allocation has. */
        case 8: { /* What `x` points at is not in its part. */
            char *slab;
            const size_t bytes = 17 << 20;
            cudaMalloc(&slab, bytes);
            memset(slab, 0, bytes);
            float *a = reinterpret_cast<float *>(slab + (1 << 20)), *b = reinterpret_cast<float *>(slab + (8 << 20));
            memcpy(a, x, 4000);
            const void *none = reinterpret_cast<const void *>(-1L);
            const void *apart[] = {a, a + 1000, none, nullptr}, *adjacent[] = {a, a + 1000, a + 1000, a + 1999};
            const void *beyond[] = {a, slab + bytes + 1, none, nullptr}, *behind[] = {a + 512, a + 1000, none, nullptr};
            fake_probe(kind == 7 ? beyond : kind == 8 ? behind : apart, kind == 6 ? 0 : 4);
            scaled<<<4, 256>>>(1000, 0.5f, a, b);
            if (kind == 5) {
                fake_probe(adjacent, 4);
                scaled<<<4, 256>>>(999, 0.5f, a, a + 1000);
                scaled<<<4, 256>>>(998, 0.5f, x, y); /* Too small for a probe. */
            }
            printf("error %d\n", static_cast<int>(cudaPeekAtLastError()));
            break;
        }
    }
    printf("%g %g\n", y[1], y[999]);
}
