// The vector F^H d of an MRI reconstruction: for each voxel x the sum over all samples of d exp(2 pi i k x), a complex
// number d turned by the phase of its frequency k there. Samples pass through shared memory.
#include "../common/bench.h"

#if __has_include("mri_fhd.tune.h")
#include "mri_fhd.tune.h"
#endif

// By how much the loop over samples is unrolled.
#ifndef UNROLL
#define UNROLL 4
#endif
// Samples that are in shared memory at a time.
#ifndef SAMPLES
#define SAMPLES 512
#endif

// The preprocessor leaves macros in pragmas alone.
constexpr int UNROLLED = UNROLL;

/*@tune
    define(UNROLL = {1, 2, 4, 8}, SAMPLES = {32, 64, 128, 256, 512, 1024})
    threads(voxels) block(64:512:64) regs({0, 24, 32})
    args(voxels = 1 << 18, samples = 2048, x = random(-1, 1)[voxels], y = random(-1, 1)[voxels],
         z = random(-1, 1)[voxels], sample = random(-16, 16)[samples],
         sample_imaginary = random(-1, 1)[samples], real = out[voxels], imaginary = out[voxels])
    check(real, imaginary, rtol = 1e-4, atol = 1e-1)
    default(block = 256, UNROLL = 4, SAMPLES = 512)
*/
__global__ void mri_fhd(int voxels, int samples, const float *x, const float *y, const float *z, const float4 *sample,
                        const float *sample_imaginary, float *real, float *imaginary) {
    // Frequency in x, y and z, the real part of the sample in w.
    __shared__ float4 tile[SAMPLES];
    __shared__ float tile_imaginary[SAMPLES];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float at_x = 0.0f, at_y = 0.0f, at_z = 0.0f;
    if (i < voxels) {
        at_x = x[i];
        at_y = y[i];
        at_z = z[i];
    }
    float sum_real = 0.0f, sum_imaginary = 0.0f;
    for (int first = 0; first < samples; first += SAMPLES) {
        const int count = min(SAMPLES, samples - first);
        for (int k = threadIdx.x; k < count; k += blockDim.x) {
            tile[k] = sample[first + k];
            tile_imaginary[k] = sample_imaginary[first + k];
        }
        __syncthreads();
#pragma unroll UNROLLED
        for (int k = 0; k < count; ++k) {
            const float4 one = tile[k];
            const float turns = one.x * at_x + one.y * at_y + one.z * at_z;
            // Of the turns only the fraction counts; so small, the fast functions are accurate.
            const float phase = 6.2831853f * (turns - rintf(turns));
            const float cosine = __cosf(phase), sine = __sinf(phase);
            const float one_imaginary = tile_imaginary[k];
            sum_real += one.w * cosine - one_imaginary * sine;
            sum_imaginary += one_imaginary * cosine + one.w * sine;
        }
        __syncthreads();
    }
    if (i < voxels) {
        real[i] = sum_real;
        imaginary[i] = sum_imaginary;
    }
}

static bench::Shape shape(int voxels) {
    bench::Shape shape;
#ifdef MRI_FHD_BLOCK_X
    shape.block = nvtune::mri_fhd::block();
    shape.grid = nvtune::mri_fhd::grid(voxels);
    shape.shared = nvtune::mri_fhd::shared();
    shape.header = true;
#else
    shape.block = dim3(256);
    shape.grid = dim3((voxels + 255) / 256);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // The size is the number of voxels.
    const bench::Options options = bench::parse(argc, argv, "mri_fhd", 1 << 18, 1 << 26);
    const int voxels = options.size, samples = 2048;
    const std::vector<float> x = bench::random(voxels, options, 0, -1.0f, 1.0f);
    const std::vector<float> y = bench::random(voxels, options, 1, -1.0f, 1.0f);
    const std::vector<float> z = bench::random(voxels, options, 2, -1.0f, 1.0f);
    std::vector<float4> sample(samples);
    for (int k = 0; k < samples; ++k) {
        sample[k] = make_float4(bench::uniform(options.seed, 3, k, -16.0f, 16.0f),
                                bench::uniform(options.seed, 4, k, -16.0f, 16.0f),
                                bench::uniform(options.seed, 5, k, -16.0f, 16.0f),
                                bench::uniform(options.seed, 6, k, -1.0f, 1.0f));
    }
    const std::vector<float> sample_imaginary = bench::random(samples, options, 7, -1.0f, 1.0f);
    bench::Array<float> device_x(x), device_y(y), device_z(z), device_real(voxels), device_imaginary(voxels);
    bench::Array<float4> device_sample(sample);
    bench::Array<float> device_sample_imaginary(sample_imaginary);

    const bench::Shape launch = shape(voxels);
    // A phase of up to 48 turns has an error of 1e-5; terms cancel, so the error is a share of their number.
    return bench::finish(
        "mri_fhd", options, launch, mri_fhd, bench::Comparison(1e-4, 1e-5 * samples),
        [&] {
            mri_fhd<<<launch.grid, launch.block, launch.shared>>>(
                voxels, samples, device_x.data(), device_y.data(), device_z.data(), device_sample.data(),
                device_sample_imaginary.data(), device_real.data(), device_imaginary.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float> real = device_real.read(), imaginary = device_imaginary.read();
            const double turn = 2.0 * std::acos(-1.0);
            for (const std::size_t i : bench::sample(voxels, 4096)) {
                double sum_real = 0.0, sum_imaginary = 0.0;
                for (int k = 0; k < samples; ++k) {
                    const float4 &one = sample[k];
                    const double phase = turn * (double(one.x) * x[i] + double(one.y) * y[i] + double(one.z) * z[i]);
                    sum_real += one.w * std::cos(phase) - sample_imaginary[k] * std::sin(phase);
                    sum_imaginary += one.w * std::sin(phase) + sample_imaginary[k] * std::cos(phase);
                }
                comparison.add("real", i, real[i], sum_real);
                comparison.add("imaginary", i, imaginary[i], sum_imaginary);
            }
        });
}
