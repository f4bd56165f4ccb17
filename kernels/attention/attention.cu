// Attention, forward: out = softmax(q k^T / 8) v for each head of 64 numbers, without ever storing the scores. LANES
// neighbouring threads share QUERIES queries, each with its part of the 64 numbers; keys and values pass through shared
// memory in tiles of KEYS.
#include "../common/bench.h"

#include <cfloat>

#if __has_include("attention.tune.h")
#include "attention.tune.h"
#endif

#ifndef LANES
#define LANES 4
#endif
#ifndef QUERIES
#define QUERIES 1
#endif
#ifndef KEYS
#define KEYS 32
#endif

constexpr int HEAD = 64;
// Vectors of four numbers in a thread's part; the threads of a query take them in turn.
constexpr int PART = HEAD / 4 / LANES;
// Scores that are at hand at a time; the running maximum is brought up to date once for all of them.
constexpr int CHUNK = 8;

static_assert(KEYS % CHUNK == 0, "a tile is made of whole chunks");

__device__ inline float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

/*@tune
    define(LANES = {2, 4, 8}, QUERIES = {1, 2}, KEYS = {16, 32, 64})
    block(64:512:64)
    grid(ceildiv(n, block.x / LANES * QUERIES), heads) regs(auto)
    args(n = 1024, heads = 64, q = random(-8, 8)[heads * n * 16], k = random(-1, 1)[heads * n * 16],
         v = random(-1, 1)[heads * n * 16], result = out[heads * n * 16])
    check(result, rtol = 1e-4, atol = 1e-5)
    default(block = 128, LANES = 4, QUERIES = 1, KEYS = 32)
*/
__global__ void attention(int n, int heads, const float4 *__restrict__ q, const float4 *__restrict__ k,
                          const float4 *__restrict__ v, float4 *__restrict__ result) {
    __shared__ float4 tile_k[KEYS][HEAD / 4];
    __shared__ float4 tile_v[KEYS][HEAD / 4];
    const std::size_t head = std::size_t(blockIdx.y) * n * (HEAD / 4);
    const int lane = threadIdx.x % LANES;
    const int groups = blockDim.x / LANES;
    const int first_query = blockIdx.x * groups * QUERIES + threadIdx.x / LANES;

    float4 query[QUERIES][PART], sum[QUERIES][PART];
    // The greatest score so far, and the sum of all weights relative to it.
    float greatest[QUERIES], weight[QUERIES];
#pragma unroll
    for (int r = 0; r < QUERIES; ++r) {
        // A query past the end does the work of the last one, and stores nothing.
        const int row = min(first_query + r * groups, n - 1);
        greatest[r] = -FLT_MAX;
        weight[r] = 0.0f;
#pragma unroll
        for (int p = 0; p < PART; ++p) {
            float4 part = q[head + row * (HEAD / 4) + p * LANES + lane];
            part.x *= 0.125f;
            part.y *= 0.125f;
            part.z *= 0.125f;
            part.w *= 0.125f;
            query[r][p] = part;
            sum[r][p] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
    }

    for (int first = 0; first < n; first += KEYS) {
        const int here = min(KEYS, n - first);
        for (int at = threadIdx.x; at < KEYS * (HEAD / 4); at += blockDim.x) {
            const float4 nothing = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            const bool inside = at < here * (HEAD / 4);
            const std::size_t from = head + std::size_t(first) * (HEAD / 4) + at;
            tile_k[at / (HEAD / 4)][at % (HEAD / 4)] = inside ? k[from] : nothing;
            tile_v[at / (HEAD / 4)][at % (HEAD / 4)] = inside ? v[from] : nothing;
        }
        __syncthreads();
        for (int start = 0; start < here; start += CHUNK) {
            float score[QUERIES][CHUNK];
#pragma unroll
            for (int j = 0; j < CHUNK; ++j) {
#pragma unroll
                for (int r = 0; r < QUERIES; ++r) score[r][j] = 0.0f;
#pragma unroll
                for (int p = 0; p < PART; ++p) {
                    const float4 key = tile_k[start + j][p * LANES + lane];
#pragma unroll
                    for (int r = 0; r < QUERIES; ++r) score[r][j] += dot(query[r][p], key);
                }
            }
#pragma unroll
            for (int r = 0; r < QUERIES; ++r) {
                float most = greatest[r];
#pragma unroll
                for (int j = 0; j < CHUNK; ++j) {
#pragma unroll
                    for (int apart = LANES / 2; apart > 0; apart /= 2) {
                        score[r][j] += __shfl_xor_sync(0xffffffffu, score[r][j], apart);
                    }
                    // A key past the end gets no weight.
                    if (start + j >= here) score[r][j] = -FLT_MAX;
                    most = fmaxf(most, score[r][j]);
                }
                const float shrink = __expf(greatest[r] - most);
                greatest[r] = most;
                weight[r] *= shrink;
#pragma unroll
                for (int p = 0; p < PART; ++p) {
                    sum[r][p].x *= shrink;
                    sum[r][p].y *= shrink;
                    sum[r][p].z *= shrink;
                    sum[r][p].w *= shrink;
                }
#pragma unroll
                for (int j = 0; j < CHUNK; ++j) {
                    score[r][j] = __expf(score[r][j] - most);
                    weight[r] += score[r][j];
                }
            }
#pragma unroll
            for (int j = 0; j < CHUNK; ++j) {
#pragma unroll
                for (int p = 0; p < PART; ++p) {
                    const float4 value = tile_v[start + j][p * LANES + lane];
#pragma unroll
                    for (int r = 0; r < QUERIES; ++r) {
                        sum[r][p].x += score[r][j] * value.x;
                        sum[r][p].y += score[r][j] * value.y;
                        sum[r][p].z += score[r][j] * value.z;
                        sum[r][p].w += score[r][j] * value.w;
                    }
                }
            }
        }
        __syncthreads();
    }

#pragma unroll
    for (int r = 0; r < QUERIES; ++r) {
        const int row = first_query + r * groups;
        if (row >= n) continue;
        const float scale = 1.0f / weight[r];
#pragma unroll
        for (int p = 0; p < PART; ++p) {
            const float4 part = sum[r][p];
            result[head + row * (HEAD / 4) + p * LANES + lane] =
                make_float4(part.x * scale, part.y * scale, part.z * scale, part.w * scale);
        }
    }
}

static bench::Shape shape(int n, int heads) {
    bench::Shape shape;
#ifdef ATTENTION_BLOCK_X
    shape.block = nvtune::attention::block();
    shape.grid = nvtune::attention::grid(n, heads);
    shape.shared = nvtune::attention::shared();
    shape.header = true;
#else
    constexpr int ROWS = 128 / LANES * QUERIES;
    shape.block = dim3(128);
    shape.grid = dim3((n + ROWS - 1) / ROWS, heads);
#endif
    return shape;
}

static std::vector<float4> quads(const std::vector<float> &values) {
    std::vector<float4> result(values.size() / 4);
    for (std::size_t at = 0; at < result.size(); ++at) {
        const float *four = &values[4 * at];
        result[at] = make_float4(four[0], four[1], four[2], four[3]);
    }
    return result;
}

int main(int argc, char **argv) {
    // The size is the length of the sequence.
    const bench::Options options = bench::parse(argc, argv, "attention", 1024, 1 << 16);
    const int n = options.size, heads = 64;
    const std::size_t elements = std::size_t(heads) * n * HEAD;
    const std::vector<float> q = bench::random(elements, options, 0, -8.0f, 8.0f);
    const std::vector<float> k = bench::random(elements, options, 1, -1.0f, 1.0f);
    const std::vector<float> v = bench::random(elements, options, 2, -1.0f, 1.0f);
    bench::Array<float4> device_q(quads(q)), device_k(quads(k)), device_v(quads(v)), device_result(elements / 4);

    const bench::Shape launch = shape(n, heads);
    return bench::finish(
        "attention", options, launch, attention, bench::Comparison(1e-4, 1e-5),
        [&] {
            attention<<<launch.grid, launch.block, launch.shared>>>(n, heads, device_q.data(), device_k.data(),
                                                                    device_v.data(), device_result.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float4> result = device_result.read();
            std::vector<double> weights(n);
            for (const std::size_t row :
                 bench::sample(std::size_t(heads) * n, std::max<std::size_t>(1, (std::size_t(1) << 19) / n))) {
                const float *keys = &k[row / n * n * HEAD], *values = &v[row / n * n * HEAD];
                double all = 0.0;
                for (int key = 0; key < n; ++key) {
                    double score = 0.0;
                    for (int d = 0; d < HEAD; ++d) score += double(q[row * HEAD + d]) * keys[key * HEAD + d];
                    weights[key] = std::exp(score / 8.0);
                    all += weights[key];
                }
                for (int d = 0; d < HEAD; ++d) {
                    double sum = 0.0;
                    for (int key = 0; key < n; ++key) sum += weights[key] * values[key * HEAD + d];
                    const float4 four = result[(row * HEAD + d) / 4];
                    const float got[4] = {four.x, four.y, four.z, four.w};
                    comparison.add("result", row * HEAD + d, got[d % 4], sum / all);
                }
            }
        });
}
