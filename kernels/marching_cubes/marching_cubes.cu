// The triangles of a surface of constant value in a sampled volume: those of each active cube, by its case in the table
// of marching cubes. A grid-stride loop over the active cubes, which have been found and counted before.
#include "../common/bench.h"

#if __has_include("marching_cubes.tune.h")
#include "marching_cubes.tune.h"
#endif

// Where the vertices of a cube are: 0 made when a triangle needs them, 1 all twelve in shared memory.
#ifndef VERTICES
#define VERTICES 1
#endif

// Corner c of a cube is at (c & 1, c >> 1 & 1, c >> 2) from its first point. Edge e runs along axis e / 4 from the
// corner that has e & 1 for the next axis and e >> 1 & 1 for the one after.
__host__ __device__ inline int first_corner(int edge) {
    const int axis = edge / 4;
    return (edge & 1) << (axis + 1) % 3 | (edge >> 1 & 1) << (axis + 2) % 3;
}

// The place of the surface on an edge, from the edge's first point, given the values at both ends.
__device__ inline float3 crossing(int edge, float low, float high, float level) {
    const int corner = first_corner(edge), axis = edge / 4;
    const float part = __saturatef((level - low) / (high - low));
    return make_float3((corner & 1) + (axis == 0 ? part : 0.0f), (corner >> 1 & 1) + (axis == 1 ? part : 0.0f),
                       (corner >> 2) + (axis == 2 ? part : 0.0f));
}

// Tables and volume are random: each cube has one to three triangles of any edges. Active cubes come in runs of eight.
// Twelve vertices take 144 bytes of shared memory a thread.
/*@tune
    define(VERTICES = {0, 1}) grid({264, 528, 1056, 2112, 4224}) block({32, 64, 96, 128, 192, 256, 384, 512})
    shared(VERTICES * 144 * block.x) require(VERTICES * 144 * block.x <= 48 << 10) regs(auto)
    args(points = 256, count = 2500000, level = 0.5f, active = each(index / 8 * 52 + index % 8)[count],
         start = each(3 * index)[count], triangles = random(1, 3)[256], edges = random(0, 11)[256 * 15],
         volume = random[points * points * points], position = out[9 * count], normal = out[3 * count])
    check(position, normal, rtol = 1e-4, atol = 1e-4)
    default(block = 32, grid = 4224, VERTICES = 1)
*/
__global__ void marching_cubes(int points, int count, float level, const int *__restrict__ active,
                               const int *__restrict__ start, const unsigned char *__restrict__ triangles,
                               const unsigned char *__restrict__ edges, const float *__restrict__ volume,
                               float4 *__restrict__ position, float4 *__restrict__ normal) {
    // Neighbouring threads have neighbouring words; a thread reads its own only.
    extern __shared__ float vertices[];
    const int stride = gridDim.x * blockDim.x, side = points - 1;
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < count; k += stride) {
        const int cube = active[k];
        const int x = cube % side, y = cube / side % side, z = cube / side / side;
        const float *const base = volume + (z * points + y) * points + x;
        float value[8];
        int code = 0;
#pragma unroll
        for (int c = 0; c < 8; ++c) {
            value[c] = base[((c >> 2) * points + (c >> 1 & 1)) * points + (c & 1)];
            if (value[c] > level) code |= 1 << c;
        }
        if (VERTICES) {
#pragma unroll
            for (int e = 0; e < 12; ++e) {
                const int low = first_corner(e);
                const float3 at = crossing(e, value[low], value[low | 1 << e / 4], level);
                vertices[3 * e * blockDim.x + threadIdx.x] = at.x;
                vertices[(3 * e + 1) * blockDim.x + threadIdx.x] = at.y;
                vertices[(3 * e + 2) * blockDim.x + threadIdx.x] = at.z;
            }
        }
        const int first = start[k], last = first + triangles[code];
        const unsigned char *edge = edges + 15 * code;
        for (int triangle = first; triangle < last; ++triangle) {
            float3 corner[3];
#pragma unroll
            for (int v = 0; v < 3; ++v) {
                const int e = *edge++;
                if (VERTICES) {
                    corner[v] = make_float3(vertices[3 * e * blockDim.x + threadIdx.x],
                                            vertices[(3 * e + 1) * blockDim.x + threadIdx.x],
                                            vertices[(3 * e + 2) * blockDim.x + threadIdx.x]);
                } else {
                    // The values once more, for registers cannot be indexed.
                    const int low = first_corner(e), high = low | 1 << e / 4;
                    corner[v] = crossing(e, base[((low >> 2) * points + (low >> 1 & 1)) * points + (low & 1)],
                                         base[((high >> 2) * points + (high >> 1 & 1)) * points + (high & 1)], level);
                }
                position[3 * triangle + v] = make_float4(x + corner[v].x, y + corner[v].y, z + corner[v].z, 1.0f);
            }
            // As long as twice the triangle's area: adding them up gives the normals of vertices.
            const float ax = corner[1].x - corner[0].x, ay = corner[1].y - corner[0].y, az = corner[1].z - corner[0].z;
            const float bx = corner[2].x - corner[0].x, by = corner[2].y - corner[0].y, bz = corner[2].z - corner[0].z;
            normal[triangle] = make_float4(ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx, 0.0f);
        }
    }
}

static bench::Shape shape() {
    bench::Shape shape;
#ifdef MARCHING_CUBES_BLOCK_X
    shape.block = nvtune::marching_cubes::block();
    shape.grid = nvtune::marching_cubes::grid();
    shape.shared = nvtune::marching_cubes::shared();
    shape.header = true;
#else
    shape.block = dim3(32);
    shape.grid = dim3(4224);
    shape.shared = VERTICES * 144 * 32;
#endif
    return shape;
}

// The triangles of a case, as edges. On each face the surface runs from the edge where a way about it enters the body
// to the one where it leaves, so that two inner corners across a face stay apart; the lines of all faces make loops.
static std::vector<unsigned char> surface(int code) {
    int next[12];
    std::fill(next, next + 12, -1);
    for (int face = 0; face < 6; ++face) {
        const int axis = face / 2, b = 1 << (axis + 1) % 3, c = 1 << (axis + 2) % 3, plane = face % 2 << axis;
        // Counterclockwise, seen from outside.
        int corner[4] = {plane, plane | b, plane | b | c, plane | c};
        if (face % 2 == 0) std::swap(corner[1], corner[3]);
        const auto inside = [&](int k) { return (code >> corner[k % 4] & 1) != 0; };
        const auto edge = [&](int k) {
            const int low = std::min(corner[k % 4], corner[(k + 1) % 4]);
            for (int e = 0; e < 12; ++e) {
                if (first_corner(e) == low && (low | 1 << e / 4) == (corner[k % 4] | corner[(k + 1) % 4])) return e;
            }
            return -1;
        };
        for (int enter = 0; enter < 4; ++enter) {
            if (inside(enter) || !inside(enter + 1)) continue;
            int leave = enter + 1;
            while (inside(leave + 1)) ++leave;
            next[edge(enter)] = edge(leave);
        }
    }
    std::vector<unsigned char> list;
    for (int first = 0; first < 12; ++first) {
        int at = next[first];
        if (at < 0) continue;
        next[first] = -1;
        while (next[at] >= 0) {
            const int after = next[at];
            next[at] = -1;
            if (after == first) break;
            for (const int e : {first, at, after}) list.push_back(static_cast<unsigned char>(e));
            at = after;
        }
    }
    return list;
}

int main(int argc, char **argv) {
    // Size: cubes of an edge of the volume. Triangles are below 5 * 512^3 < 2^30, and far fewer here.
    const bench::Options options = bench::parse(argc, argv, "marching_cubes", 255, 512);
    const int side = options.size, points = side + 1;
    const float level = 0.01f;
    // A gyroid of period 32: its surface is everywhere in the volume. The first cube is active.
    std::vector<float> sine(points), cosine(points), volume(std::size_t(points) * points * points);
    for (int at = 0; at < points; ++at) {
        sine[at] = static_cast<float>(std::sin(at * (3.14159265358979323846 / 16.0)));
        cosine[at] = static_cast<float>(std::cos(at * (3.14159265358979323846 / 16.0)));
    }
    for (std::size_t at = 0; at < volume.size(); ++at) {
        const std::size_t x = at % points, y = at / points % points, z = at / points / points;
        volume[at] = sine[x] * cosine[y] + sine[y] * cosine[z] + sine[z] * cosine[x];
    }
    const auto value = [&](int cube, int corner) {
        const std::size_t x = cube % side + (corner & 1), y = cube / side % side + (corner >> 1 & 1),
                          z = cube / side / side + (corner >> 2);
        return volume[(z * points + y) * points + x];
    };
    const auto code = [&](int cube) {
        int bits = 0;
        for (int corner = 0; corner < 8; ++corner) bits |= (value(cube, corner) > level) << corner;
        return bits;
    };
    std::vector<unsigned char> triangles(256), edges(256 * 15, 0);
    for (int at = 0; at < 256; ++at) {
        const std::vector<unsigned char> list = surface(at);
        triangles[at] = static_cast<unsigned char>(list.size() / 3);
        std::copy(list.begin(), list.end(), edges.begin() + 15 * at);
    }
    std::vector<int> active, start;
    int total = 0;
    for (int cube = 0; cube < side * side * side; ++cube) {
        const int here = triangles[code(cube)];
        if (here == 0) continue;
        active.push_back(cube);
        start.push_back(total);
        total += here;
    }
    const int count = static_cast<int>(active.size());
    bench::Array<int> device_active(active), device_start(start);
    bench::Array<unsigned char> device_triangles(triangles), device_edges(edges);
    bench::Array<float> device_volume(volume);
    bench::Array<float4> device_position(3 * std::size_t(total)), device_normal(total);

    const bench::Shape launch = shape();
    return bench::finish(
        "marching_cubes", options, launch, marching_cubes, bench::Comparison(1e-6, 1e-5),
        [&] {
            marching_cubes<<<launch.grid, launch.block, launch.shared>>>(
                points, count, level, device_active.data(), device_start.data(), device_triangles.data(),
                device_edges.data(), device_volume.data(), device_position.data(), device_normal.data());
        },
        [&](bench::Comparison &comparison) {
            const std::vector<float4> position = device_position.read(), normal = device_normal.read();
            for (const std::size_t k : bench::sample(count, std::size_t(1) << 18)) {
                const int cube = active[k], bits = code(cube);
                for (int t = 0; t < triangles[bits]; ++t) {
                    double corner[3][3], side_a[3], side_b[3];
                    for (int v = 0; v < 3; ++v) {
                        const int e = edges[15 * bits + 3 * t + v], axis = e / 4, low = first_corner(e);
                        const double a = value(cube, low), b = value(cube, low | 1 << axis);
                        const double origin[3] = {double(cube % side), double(cube / side % side),
                                                  double(cube / side / side)};
                        for (int at = 0; at < 3; ++at) corner[v][at] = origin[at] + (low >> at & 1);
                        corner[v][axis] += (level - a) / (b - a);
                        const std::size_t index = 3 * (std::size_t(start[k]) + t) + v;
                        comparison.add("position.x", index, position[index].x, corner[v][0]);
                        comparison.add("position.y", index, position[index].y, corner[v][1]);
                        comparison.add("position.z", index, position[index].z, corner[v][2]);
                        comparison.add("position.w", index, position[index].w, 1.0);
                    }
                    for (int at = 0; at < 3; ++at) {
                        side_a[at] = corner[1][at] - corner[0][at];
                        side_b[at] = corner[2][at] - corner[0][at];
                    }
                    const std::size_t index = std::size_t(start[k]) + t;
                    comparison.add("normal.x", index, normal[index].x, side_a[1] * side_b[2] - side_a[2] * side_b[1]);
                    comparison.add("normal.y", index, normal[index].y, side_a[2] * side_b[0] - side_a[0] * side_b[2]);
                    comparison.add("normal.z", index, normal[index].z, side_a[0] * side_b[1] - side_a[1] * side_b[0]);
                    comparison.add("normal.w", index, normal[index].w, 0.0);
                }
            }
        });
}
