// Template arguments under other names than the compiler's: an alias, a macro, a constant, an enumerator.
#define STEP 4

namespace {
using real = float;
constexpr int WIDTH = 2;

//@tune template(real, WIDTH * STEP) threads(ceildiv(n, N)) block({64, 128}) default(block = 128) regs({0})
//@tune args(n = 1 << 12, x = random[n], y = out[n])
template <typename T, int N>
__global__ void twice(int n, const T *x, T *y) {
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * N;
    for (int k = 0; k < N; ++k)
        if (first + k < n) y[first + k] = x[first + k] * 2;
}
}  // namespace

namespace ns {
typedef real element;
enum Mode { ADD, SCALE };

//@tune template(element, SCALE) threads(n) block({64, 128}) default(block = 128) regs({0})
//@tune args(n = 1 << 12, x = random[n], y = out[n])
template <typename T, Mode M>
__global__ void apply(int n, const T *x, T *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = M == SCALE ? x[i] * 3 : x[i] + 3;
}
}  // namespace ns

enum class Kind { Even, Odd };

//@tune template(Kind::Odd) threads(n * K) block({64, 128}) default(block = 128) regs({0})
//@tune args(n = 1 << 12, x = random[n], y = out[n])
template <Kind K>
__global__ void pick(int n, const float *x, float *y) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i % 2 == (K == Kind::Odd)) y[i] = x[i];
}

void launch(int n, const float *x, float *y) {
    twice<float, 8><<<n, 128>>>(n, x, y);
    twice<float, 4><<<n, 128>>>(n, x, y);
    ns::apply<float, ns::ADD><<<n, 128>>>(n, x, y);
    ns::apply<float, ns::SCALE><<<n, 128>>>(n, x, y);
    pick<Kind::Odd><<<n, 128>>>(n, x, y);
}
