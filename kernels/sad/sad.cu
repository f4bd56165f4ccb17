// Sums of absolute differences for motion estimation: each 4 x 4 block of a frame against a reference frame, displaced
// by every vector of a square search area.
#include "../common/bench.h"

#if __has_include("sad.tune.h")
#include "sad.tune.h"
#endif

// Neighbouring displacements that a thread compares.
#ifndef TILE
#define TILE 1
#endif
// By how much its three loops are unrolled: over those displacements, over rows and over columns of the block.
#ifndef UNROLL_TILE
#define UNROLL_TILE 1
#endif
#ifndef UNROLL_ROWS
#define UNROLL_ROWS 4
#endif
#ifndef UNROLL_COLUMNS
#define UNROLL_COLUMNS 4
#endif

// The preprocessor leaves macros in pragmas alone.
constexpr int UNROLLED_TILE = UNROLL_TILE, UNROLLED_ROWS = UNROLL_ROWS, UNROLLED_COLUMNS = UNROLL_COLUMNS;

// Pixels of a block's side, and displacements in each direction: from -SEARCH / 2 to SEARCH / 2 - 1.
constexpr int SIDE = 4, SEARCH = 32;

static_assert(SEARCH % TILE == 0, "a thread's displacements are of one row");

// The frame has n x n blocks. The reference frame has SEARCH / 2 pixels more on each side, so that every displacement
// is inside. Sums are in the order of the blocks, then of the displacements, both row by row.
/*@tune
    define(TILE = {1, 2, 4, 8}, UNROLL_TILE = {1, 2, 4, 8}, UNROLL_ROWS = {1, 2, 4}, UNROLL_COLUMNS = {1, 2, 4})
    require(UNROLL_TILE == 1 || UNROLL_TILE == TILE)
    threads(n * n * (32 * 32 / TILE)) block(32:384:32) regs({0, 32})
    args(n = 160, frame = random[16 * n * n], reference = random[(4 * n + 32) * (4 * n + 32)],
         sums = out[n * n * 32 * 32])
    default(block = 128, TILE = 1, UNROLL_TILE = 1, UNROLL_ROWS = 4, UNROLL_COLUMNS = 4)
*/
__global__ void sad(int n, const unsigned char *__restrict__ frame, const unsigned char *__restrict__ reference,
                    unsigned short *__restrict__ sums) {
    constexpr int TILES = SEARCH / TILE; // of a row of displacements
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int block = i / (SEARCH * TILES);
    if (block >= n * n) return;
    const int down = i / TILES % SEARCH, right = i % TILES * TILE;
    const int top = block / n * SIDE, left = block % n * SIDE;
    const int width = n * SIDE, reference_width = width + SEARCH;
    const unsigned char *pixels = frame + top * width + left;
    const unsigned char *displaced = reference + (top + down) * reference_width + left + right;
    unsigned short *out = sums + block * (SEARCH * SEARCH) + down * SEARCH + right;
#pragma unroll UNROLLED_TILE
    for (int t = 0; t < TILE; ++t) {
        int sum = 0;
#pragma unroll UNROLLED_ROWS
        for (int y = 0; y < SIDE; ++y) {
#pragma unroll UNROLLED_COLUMNS
            for (int x = 0; x < SIDE; ++x) {
                sum += abs(pixels[y * width + x] - displaced[y * reference_width + x + t]);
            }
        }
        out[t] = static_cast<unsigned short>(sum);
    }
}

static bench::Shape shape(int n) {
    bench::Shape shape;
#ifdef SAD_BLOCK_X
    shape.block = nvtune::sad::block();
    shape.grid = nvtune::sad::grid(n);
    shape.shared = nvtune::sad::shared();
    shape.header = true;
#else
    shape.block = dim3(128);
    shape.grid = dim3((n * n * (SEARCH * SEARCH / TILE) + 127) / 128);
#endif
    return shape;
}

int main(int argc, char **argv) {
    // The size is the number of blocks in a row and in a column. There are at most 2^30 sums.
    const bench::Options options = bench::parse(argc, argv, "sad", 160, 1024);
    const int n = options.size, width = n * SIDE, reference_width = width + SEARCH;
    const std::vector<unsigned char> frame =
        bench::integers<unsigned char>(std::size_t(width) * width, options, 0, 0, 255);
    const std::vector<unsigned char> reference =
        bench::integers<unsigned char>(std::size_t(reference_width) * reference_width, options, 1, 0, 255);
    bench::Array<unsigned char> device_frame(frame), device_reference(reference);
    bench::Array<unsigned short> device_sums(std::size_t(n) * n * SEARCH * SEARCH);

    const bench::Shape launch = shape(n);
    return bench::finish(
        "sad", options, launch, sad, bench::Comparison(0.0, 0.0),
        [&] {
            sad<<<launch.grid, launch.block, launch.shared>>>(n, device_frame.data(), device_reference.data(),
                                                              device_sums.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<unsigned short> sums = device_sums.read();
            for (const std::size_t at : bench::sample(sums.size(), std::size_t(1) << 22)) {
                const int block = static_cast<int>(at / (SEARCH * SEARCH));
                const int vector = static_cast<int>(at % (SEARCH * SEARCH));
                int sum = 0;
                for (int pixel = 0; pixel < SIDE * SIDE; ++pixel) {
                    const int row = block / n * SIDE + pixel / SIDE, column = block % n * SIDE + pixel % SIDE;
                    // The reference's first pixel is SEARCH / 2 above and left of the frame's, as is the first vector.
                    const int other_row = row + vector / SEARCH, other_column = column + vector % SEARCH;
                    sum += std::abs(int(frame[std::size_t(row) * width + column]) -
                                    int(reference[std::size_t(other_row) * reference_width + other_column]));
                }
                comparison.add("sums", at, sums[at], sum);
            }
        });
}
