// Launches with texture and surface objects that the runtime makes.
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long long word;

extern "C" word fake_array(word width, word height, word depth, unsigned format, unsigned channels, unsigned flags,
                           const void *contents);
extern "C" word fake_object(int is_texture, word type, word place, word format_and_channels, word a, word b, word c, int has_view);

//@tune
__global__ void resampled(int w, int h, cudaTextureObject_t image, const cudaTextureObject_t table, cudaSurfaceObject_t marks,
                          float *out) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    out[y * w + x] = tex2D<float>(image, (x + 0.5f) / w, (y + 0.5f) / h) + tex1Dfetch<float>(table, x);
    surf2DLayeredwrite(static_cast<unsigned char>(x), marks, x, y, 1);
}

struct Image {
    int width;
    cudaTextureObject_t texture;
};

//@tune
__global__ void held(Image image, float *out) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < image.width) out[x] = tex1Dfetch<float>(image.texture, x);
}

//@tune
__global__ void listed(int n, const cudaTextureObject_t *images, float *out) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n) out[x] = tex1Dfetch<float>(images[x % 2], x);
}

__constant__ cudaTextureObject_t image_of_all;

//@tune
__global__ void stored(int n, float *out) {
    const int x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < n) out[x] = tex1Dfetch<float>(image_of_all, x);
}

int main(int count, char **arguments) {
    const int kind = count > 1 ? atoi(arguments[1]) : 0;
    enum { ARRAY, MIPMAPPED, LINEAR, PITCHED };
    const unsigned FLOAT = 0x20, BYTE = 0x01;
    const word float1 = FLOAT | 1ULL << 32;
    float texels[32], *table, *out;
    unsigned char marks[30];
    for (int i = 0; i < 32; ++i) texels[i] = 0.5f * i;
    for (int i = 0; i < 30; ++i) marks[i] = 100 + i;
    cudaMalloc(&table, 4096);
    cudaMalloc(&out, 128);
    for (int i = 0; i < 1024; ++i) table[i] = i;
    const word pixels = fake_array(8, 4, 0, FLOAT, 1, 0, texels), layers = fake_array(5, 3, 2, BYTE, 1, 3, marks);
    word image = fake_object(1, ARRAY, pixels, 0, 0, 0, 0, 0);
    const word surface = fake_object(0, ARRAY, layers, 0, 0, 0, 0, 0);
    word linear = fake_object(1, LINEAR, reinterpret_cast<word>(table) + 512, float1, 256, 0, 0, 0);
    switch (kind) {
        case 1: /* Rows of memory, a view of an array, and one array twice. */
            linear = fake_object(1, PITCHED, reinterpret_cast<word>(table) + 512, float1, 6, 3, 512, 0);
            image = fake_object(1, ARRAY, layers, 0, 0, 0, 0, 1);
            break;
        case 2: image = fake_object(1, MIPMAPPED, pixels, 0, 0, 0, 0, 0); break;
        case 3: image = 77; break; /* Unknown to the driver. */
        case 4: image = 0; break;
        case 5: /* A sparse array. */
            image = fake_object(1, ARRAY, fake_array(8, 4, 0, FLOAT, 1, 0x40, texels), 0, 0, 0, 0, 0);
            break;
        case 6: image = fake_object(1, ARRAY, fake_array(8, 4, 0, 0xb0, 1, 0, texels), 0, 0, 0, 0, 0); break;
        case 8: { /* Handles in a structure, in memory and in a variable. */
            word *images;
            cudaMalloc(&images, 2 * sizeof *images);
            images[0] = images[1] = linear;
            for (int i = 0; i < 3; ++i)
                held<<<1, 32>>>(Image{32, fake_object(1, LINEAR, reinterpret_cast<word>(table) + 512, float1, 256, 0, 0, 0)}, out);
            listed<<<1, 32>>>(32, images, out);
            stored<<<1, 32>>>(32, out);
            break;
        }
        case 7: linear = fake_object(1, LINEAR, reinterpret_cast<word>(texels), float1, 32, 0, 0, 0); break;
    }
    for (int i = 0; i < 3; ++i) {
        /* A handle of the same object is no other kind of launch. */
        if (kind == 0) image = fake_object(1, ARRAY, pixels, 0, 0, 0, 0, 0);
        resampled<<<dim3(1, 2), dim3(8, 2)>>>(8, 4, image, linear, surface, out);
    }
    printf("error %d\n", static_cast<int>(cudaPeekAtLastError()));
}
