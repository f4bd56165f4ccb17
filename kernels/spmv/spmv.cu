// y = A x for a sparse matrix A in compressed rows. LANES neighbouring threads share a row, and add up what each has of
// it.
#include "../common/bench.h"

#if __has_include("spmv.tune.h")
#include "spmv.tune.h"
#endif

#ifndef LANES
#define LANES 1
#endif
#ifndef UNROLL
#define UNROLL 1
#endif

/*@tune
    define(LANES = {1, 2, 4, 8, 16, 32}, UNROLL = {1, 2, 4})
    block({64, 128, 256, 512, 1024}) threads(rows * LANES) regs(auto)
    args(rows = 1 << 20, entries = 24 * rows,
         row_start = each(8 * index + index / 2 * 8 + index / 8 * 64 + index / 64 * 256)[rows + 1],
         column = each((index / 24 + (index * 40503 >> 4) % 65536) % rows)[entries],
         value = random[entries], x = random[rows], y = out[rows])
    check(y, rtol = 1e-4)
    default(block = 256, LANES = 1, UNROLL = 1)
*/
__global__ void spmv(int rows, int entries, const int *__restrict__ row_start, const int *__restrict__ column,
                     const float *__restrict__ value, const float *__restrict__ x, float *__restrict__ y) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = thread / LANES, lane = thread % LANES;
    // A thread past the end has an empty row, but takes part in the exchange.
    const int end = row < rows ? row_start[row + 1] : 0;
    float sum = 0.0f;
    // Not the macro itself: a pragma does not expand it.
    constexpr int TIMES = UNROLL;
#pragma unroll TIMES
    for (int at = row < rows ? row_start[row] + lane : 0; at < end; at += LANES) sum += value[at] * x[column[at]];
#pragma unroll
    for (int apart = LANES / 2; apart > 0; apart /= 2) sum += __shfl_down_sync(0xffffffffu, sum, apart, LANES);
    if (lane == 0 && row < rows) y[row] = sum;
}

static bench::Shape shape(int rows) {
    bench::Shape shape;
#ifdef SPMV_BLOCK_X
    shape.block = nvtune::spmv::block();
    shape.grid = nvtune::spmv::grid(rows);
    shape.shared = nvtune::spmv::shared();
    shape.header = true;
#else
    shape.block = dim3(256);
    shape.grid = dim3((rows * LANES + 255) / 256);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // The size is the number of rows, with 24 entries each on average, so that they number less than 2^29.
    const bench::Options options = bench::parse(argc, argv, "spmv", 1 << 20, 1 << 24);
    const int rows = options.size;
    // Of 64 rows, half have 8 entries, three in eight 16, seven 80, and one 336.
    std::vector<int> row_start(1, 0);
    for (int row = 1; row <= rows; ++row) {
        const int length = 8 + (row % 2 == 0 ? 8 : 0) + (row % 8 == 0 ? 64 : 0) + (row % 64 == 0 ? 256 : 0);
        row_start.push_back(row_start.back() + length);
    }
    const int entries = row_start.back();
    // Columns lie within some ten thousand of the diagonal, and wrap around at the end.
    std::vector<int> column(entries);
    for (int row = 0; row < rows; ++row) {
        for (int at = row_start[row]; at < row_start[row + 1]; ++at) {
            column[at] = (row + static_cast<int>(bench::uniform(options.seed, 0, at, 0.0f, 65536.0f))) % rows;
        }
    }
    const std::vector<float> value = bench::random(entries, options, 1, 0.0f, 1.0f);
    const std::vector<float> x = bench::random(rows, options, 2, 0.0f, 1.0f);
    bench::Array<int> device_row_start(row_start), device_column(column);
    bench::Array<float> device_value(value), device_x(x), device_y(rows);

    const bench::Shape launch = shape(rows);
    return bench::finish(
        "spmv", options, launch, spmv, bench::Comparison(1e-4, 0.0),
        [&] {
            spmv<<<launch.grid, launch.block, launch.shared>>>(rows, entries, device_row_start.data(),
                                                               device_column.data(), device_value.data(),
                                                               device_x.data(), device_y.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float> y = device_y.read();
            for (int row = 0; row < rows; ++row) {
                double sum = 0.0;
                for (int at = row_start[row]; at < row_start[row + 1]; ++at) sum += double(value[at]) * x[column[at]];
                comparison.add("y", row, y[row], sum);
            }
        });
}
