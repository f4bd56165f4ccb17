// A kernel that calls what another kernel of its file has put into tables of functions.
struct Shape { __device__ virtual float hit(float x) const = 0; };
struct Ball : Shape {
    float radius;
    __device__ Ball(float r) : radius(r) {}
    __device__ float hit(float x) const override { return sqrtf(fabsf(radius * radius - x * x)); }
};
struct List : Shape {
    Shape **all;
    int count;
    __device__ List(Shape **shapes, int n) : all(shapes), count(n) {}
    __device__ float hit(float x) const override {
        float least = 1e30f;
        for (int k = 0; k < count; ++k) least = fminf(least, all[k]->hit(x));
        return least;
    }
};
__global__ void make(Shape **all, Shape **list) {
    all[0] = new Ball(1.0f);
    *list = new List(all, 1);
}
//@tune threads(n) block(128) regs({0, 24, 32}) default(block = 128)
//@tune args(n = 1 << 16, char shape = zeros[64], x = random[n])
__global__ void hits(int n, const Shape *shape, float *x) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a = x[i], b = a * a, c = a * b, d = b * c, e = c * d, f = d * e, sum = 0.0f;
    for (int k = 0; k < 8; ++k) {
        sum += shape->hit(a) + shape->hit(b) + shape->hit(c) + shape->hit(d) + shape->hit(e) + shape->hit(f);
        a += b; b += c; c += d; d += e; e += f; f += sum;
    }
    x[i] = sum + a + b + c + d + e + f;
}

//# build measured
//# args -O3 -arch=sm_90 -c
//# times {"label": "regs=24", "time_us": 8.0, "spread": 0.01}, {"time_us": 10.0, "spread": 0.01}
//#| nvtune: hits: block=128 regs=24 (1.2*x over the baseline, measured*
