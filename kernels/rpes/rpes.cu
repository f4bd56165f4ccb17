// Two-electron repulsion integrals (ps|ps) by Rys quadrature with two roots, summed over the ket pairs with a density:
// the Coulomb contribution to each bra pair. Ket pairs pass through shared memory in tiles as large as the block.
#include "../common/bench.h"

#if __has_include("rpes.tune.h")
#include "rpes.tune.h"
#endif

// Terms of the series between two looks at whether it has converged.
#ifndef UNROLL
#define UNROLL 1
#endif

// The integrals of t^(2k) exp(-argument t^2) over t from 0 to 1, for k = 0 to 3: moments of the Rys polynomials.
__device__ inline void moments(float argument, float moment[4]) {
    const float decay = expf(-argument);
    if (argument < 16.0f) {
        // The series of the last, which all the others follow from without cancellation.
        float term = 1.0f / 7.0f, sum = term, odd = 7.0f;
        for (int i = 0; i < 64; i += UNROLL) {
#pragma unroll
            for (int k = 0; k < UNROLL; ++k) {
                odd += 2.0f;
                term *= __fdividef(2.0f * argument, odd);
                sum += term;
            }
            if (term < 1e-8f * sum) break;
        }
        moment[3] = decay * sum;
        moment[2] = (2.0f * argument * moment[3] + decay) * (1.0f / 5.0f);
        moment[1] = (2.0f * argument * moment[2] + decay) * (1.0f / 3.0f);
        moment[0] = 2.0f * argument * moment[1] + decay;
    } else {
        // The tail beyond t = 1 is below 2e-8 of the whole.
        const float half = 0.5f / argument;
        moment[0] = 0.88622692545f * rsqrtf(argument);
        moment[1] = (moment[0] - decay) * half;
        moment[2] = (3.0f * moment[1] - decay) * half;
        moment[3] = (5.0f * moment[2] - decay) * half;
    }
}

// A pair of functions: the sum of their exponents, their centre with the pair's factor in w, and the way from the p
// function to the centre. Three float4 a ket pair in shared memory.
/*@tune
    define(UNROLL = {1, 2, 4, 8}) threads(n) block(64:1024:64) shared(block.x * 48) regs(auto)
    args(n = 1 << 17, m = 128, bra_exponent = random(0.5, 2.0)[n], bra_centre = random(-2, 2)[n],
         bra_arm = random(-0.5, 0.5)[n], ket_exponent = random(0.5, 2.0)[m], ket_centre = random(-2, 2)[m],
         ket_arm = random(-0.5, 0.5)[m], density = random[m], coulomb = out[n])
    check(coulomb, rtol = 1e-3, atol = 1e-2)
    default(block = 128, UNROLL = 1)
*/
__global__ void rpes(int n, int m, const float *__restrict__ bra_exponent, const float4 *__restrict__ bra_centre,
                     const float4 *__restrict__ bra_arm, const float *__restrict__ ket_exponent,
                     const float4 *__restrict__ ket_centre, const float4 *__restrict__ ket_arm,
                     const float4 *__restrict__ density, float4 *__restrict__ coulomb) {
    extern __shared__ float4 tile[];
    float4 *const centres = tile, *const arms = tile + blockDim.x, *const densities = tile + 2 * blockDim.x;
    const int i = min(blockIdx.x * blockDim.x + threadIdx.x, n - 1);
    const float p = bra_exponent[i];
    const float4 centre = bra_centre[i], arm = bra_arm[i];
    float x = 0.0f, y = 0.0f, z = 0.0f;
    for (int first = 0; first < m; first += blockDim.x) {
        const int mine = first + threadIdx.x, here = min(blockDim.x, m - first);
        __syncthreads();
        if (mine < m) {
            centres[threadIdx.x] = ket_centre[mine];
            const float4 way = ket_arm[mine];
            arms[threadIdx.x] = make_float4(way.x, way.y, way.z, ket_exponent[mine]);
            densities[threadIdx.x] = density[mine];
        }
        __syncthreads();
        for (int k = 0; k < here; ++k) {
            const float4 other = centres[k], way = arms[k], weight = densities[k];
            const float q = way.w, inverse = 1.0f / (p + q);
            const float dx = other.x - centre.x, dy = other.y - centre.y, dz = other.z - centre.z;
            float f[4];
            moments(p * q * inverse * (dx * dx + dy * dy + dz * dz), f);
            // The polynomial x^2 - a x + b that is orthogonal to 1 and x has the roots, as squares.
            const float determinant = __fdividef(1.0f, f[0] * f[2] - f[1] * f[1]);
            const float a = 0.5f * (f[0] * f[3] - f[1] * f[2]) * determinant;
            const float b = (f[1] * f[3] - f[2] * f[2]) * determinant;
            const float apart = sqrtf(fmaxf(a * a - b, 0.0f));
            const float share = __fdividef(f[1] - (a - apart) * f[0], 2.0f * apart);
            // 2 pi^(5/2) and the factors of both pairs.
            const float factor = 34.986836655f * inverse * sqrtf(p + q) * centre.w * other.w * __fdividef(1.0f, p * q);
#pragma unroll
            for (int root = 0; root < 2; ++root) {
                const float square = (root == 0 ? a + apart : a - apart) * inverse;
                const float scale = factor * (root == 0 ? share : f[0] - share);
                const float to_bra = q * square, to_ket = p * square;
                const float ket = (way.x - to_ket * dx) * weight.x + (way.y - to_ket * dy) * weight.y +
                                  (way.z - to_ket * dz) * weight.z;
                x += scale * ((arm.x + to_bra * dx) * ket + 0.5f * square * weight.x);
                y += scale * ((arm.y + to_bra * dy) * ket + 0.5f * square * weight.y);
                z += scale * ((arm.z + to_bra * dz) * ket + 0.5f * square * weight.z);
            }
        }
    }
    if (blockIdx.x * blockDim.x + threadIdx.x < n) coulomb[i] = make_float4(x, y, z, 0.0f);
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef RPES_BLOCK_X
    shape.block = nvtune::rpes::block();
    shape.grid = nvtune::rpes::grid(n);
    shape.shared = nvtune::rpes::shared();
    shape.header = true;
#else
    shape.block = dim3(128);
    shape.grid = dim3((n + 127) / 128);
    shape.shared = 128 * 3 * sizeof(float4);
#endif
    return shape;
}

// Boys' functions F0 to F2 by the error function, or by their series where that cancels.
static void boys(double argument, double f[3]) {
    if (argument > 2.0) {
        f[0] = 0.5 * std::sqrt(3.14159265358979323846 / argument) * std::erf(std::sqrt(argument));
        for (int k = 0; k < 2; ++k) f[k + 1] = ((2 * k + 1) * f[k] - std::exp(-argument)) / (2.0 * argument);
        return;
    }
    for (int k = 0; k < 3; ++k) {
        f[k] = 0.0;
        double power = 1.0;
        for (int i = 0; i < 40; ++i) {
            f[k] += power / (2 * (k + i) + 1);
            power *= -argument / (i + 1);
        }
    }
}

int main(int argc, char **argv) {
    // Size: bra pairs.
    const bench::Options options = bench::parse(argc, argv, "rpes", 1 << 17, 1 << 24);
    const int n = options.size, m = 128;
    const auto vectors = [&](int count, int stream, float lo, float hi) {
        std::vector<float4> values(count);
        for (int i = 0; i < count; ++i) {
            // Factors, in w, are positive.
            values[i] = make_float4(bench::uniform(options.seed, stream, i, lo, hi),
                                    bench::uniform(options.seed, stream + 1, i, lo, hi),
                                    bench::uniform(options.seed, stream + 2, i, lo, hi),
                                    bench::uniform(options.seed, stream + 3, i, 0.1f, 1.0f));
        }
        return values;
    };
    const std::vector<float> bra_exponent = bench::random(n, options, 0, 0.5f, 2.0f);
    const std::vector<float> ket_exponent = bench::random(m, options, 1, 0.5f, 2.0f);
    const std::vector<float4> bra_centre = vectors(n, 4, -2.0f, 2.0f), bra_arm = vectors(n, 8, -0.5f, 0.5f);
    const std::vector<float4> ket_centre = vectors(m, 12, -2.0f, 2.0f), ket_arm = vectors(m, 16, -0.5f, 0.5f);
    const std::vector<float4> density = vectors(m, 20, 0.0f, 1.0f);
    bench::Array<float> device_bra_exponent(bra_exponent), device_ket_exponent(ket_exponent);
    bench::Array<float4> device_bra_centre(bra_centre), device_bra_arm(bra_arm);
    bench::Array<float4> device_ket_centre(ket_centre), device_ket_arm(ket_arm);
    bench::Array<float4> device_density(density), device_coulomb(n);

    const bench::Shape launch = shape(n);
    // The 128 contributions have different signs and are about 1 each.
    return bench::finish(
        "rpes", options, launch, rpes, bench::Comparison(1e-4, 1e-3),
        [&] {
            rpes<<<launch.grid, launch.block, launch.shared>>>(
                n, m, device_bra_exponent.data(), device_bra_centre.data(), device_bra_arm.data(),
                device_ket_exponent.data(), device_ket_centre.data(), device_ket_arm.data(), device_density.data(),
                device_coulomb.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float4> coulomb = device_coulomb.read();
            const auto vector = [](const float4 &value, double out[3]) {
                out[0] = value.x;
                out[1] = value.y;
                out[2] = value.z;
            };
            // The recurrences of Obara and Saika, without quadrature.
            for (const std::size_t i : bench::sample(n, std::size_t(1) << 14)) {
                const double p = bra_exponent[i];
                double at_p[3], pa[3], sum[3] = {};
                vector(bra_centre[i], at_p);
                vector(bra_arm[i], pa);
                for (int j = 0; j < m; ++j) {
                    const double q = ket_exponent[j];
                    double at_q[3], qc[3], weight[3], wp[3], wq[3], squared = 0.0, f[3];
                    vector(ket_centre[j], at_q);
                    vector(ket_arm[j], qc);
                    vector(density[j], weight);
                    for (int axis = 0; axis < 3; ++axis) {
                        const double w = (p * at_p[axis] + q * at_q[axis]) / (p + q);
                        wp[axis] = w - at_p[axis];
                        wq[axis] = w - at_q[axis];
                        squared += (at_p[axis] - at_q[axis]) * (at_p[axis] - at_q[axis]);
                    }
                    boys(p * q / (p + q) * squared, f);
                    const double factor = 2.0 * std::pow(3.14159265358979323846, 2.5) / (p * q * std::sqrt(p + q)) *
                                          bra_centre[i].w * ket_centre[j].w;
                    for (int r = 0; r < 3; ++r) {
                        const double ps[2] = {pa[r] * f[0] + wp[r] * f[1], pa[r] * f[1] + wp[r] * f[2]};
                        for (int c = 0; c < 3; ++c) {
                            const double same = r == c ? f[1] / (2.0 * (p + q)) : 0.0;
                            sum[r] += factor * weight[c] * (qc[c] * ps[0] + wq[c] * ps[1] + same);
                        }
                    }
                }
                comparison.add("coulomb.x", i, coulomb[i].x, sum[0]);
                comparison.add("coulomb.y", i, coulomb[i].y, sum[1]);
                comparison.add("coulomb.z", i, coulomb[i].z, sum[2]);
                comparison.add("coulomb.w", i, coulomb[i].w, 0.0);
            }
        });
}
