// Launches of kernels whose stubs choose among entries. dispatch.rs says what each winner is, runtime.cpp runs nothing.
extern "C" {
void fake_case(const char *title);
void fake_device(int device);
void fake_devices(int devices);
void fake_error(cudaError_t error);
void fake_reset();
void fake_threads(void (*launches)());
}

struct Size {
    int unused, n;
};

template <class T>
__global__ void reshaped(Size size, T *x) { x[0] = static_cast<T>(size.n); }
extern "C" __global__ void by_header(int n, float *x) { x[0] = n; }
namespace {
__global__ void either(int n, float *x) { x[0] = n; }
}
static __global__ void staged(int n, float *x) { x[0] = n; }
__global__ void tall(int n, float *x) { x[0] = n; }
__global__ void argumentless() {}
__global__ void flat(int n, float *x) { x[0] = n; }

static float *const x = nullptr;

static void staged_from_a_thread() {
    fake_device(5);
    for (int i = 0; i < 500; ++i) staged<<<10, 256, 1024>>>(16 * 1024, x);
}

static void reshape() {
    fake_case("baseline's, first and again");
    reshaped<<<4, 256>>>(Size{0, 1024}, x);
    reshaped<<<5, 256>>>(Size{0, 1028}, x);
    fake_case("other block");
    reshaped<<<4, dim3(128, 2)>>>(Size{0, 1024}, x);
    fake_case("other grid, part of the grid");
    reshaped<<<dim3(4, 2), 256>>>(Size{0, 1024}, x);
    reshaped<<<2, 256>>>(Size{0, 1024}, x);
    fake_case("other shared memory");
    reshaped<<<4, 256, 4>>>(Size{0, 1024}, x);
    fake_case("condition does not hold");
    reshaped<<<4, 256>>>(Size{0, 1023}, x);
    fake_case("stream");
    reshaped<<<4, 256, 0, reinterpret_cast<cudaStream_t>(7)>>>(Size{0, 1024}, x);
    fake_case("winner's own shape is no launch for it");
    reshaped<<<1, dim3(128, 2)>>>(Size{0, 1024}, x);
    fake_case("instance without a dispatch");
    reshaped<<<4, 256>>>(Size{0, 1024}, static_cast<double *>(nullptr));
    fake_case("no arguments");
    argumentless<<<1, 256>>>();
    fake_case("winner's grid within and beyond the limits, and of no block");
    tall<<<dim3(1, 4096), 256>>>(65535, x);
    tall<<<dim3(1, 4096), 256>>>(65536, x);
    tall<<<dim3(1, 0), 256>>>(0, x);

    fake_case("no launch at all");
    flat<<<0, 256>>>(255, x);

    fake_device(1);
    fake_case("device of 8.0, first and again");
    reshaped<<<4, 256>>>(Size{0, 1023}, x);
    reshaped<<<4, 256>>>(Size{0, 1023}, x);
    fake_device(2);
    fake_case("device of 7.5");
    reshaped<<<4, 256>>>(Size{0, 1024}, x);
    fake_device(64);
    fake_case("device 64");
    reshaped<<<4, 256>>>(Size{0, 1024}, x);
}

static void launch_by_header() {
    fake_device(0);
    fake_case("winner's own launch by the header, whatever the conditions");
    by_header<<<16, 64, 256>>>(1024, x);
    by_header<<<2, 64, 256>>>(100, x);
    fake_case("winner's block in another grid, with other shared memory");
    by_header<<<15, 64, 256>>>(1024, x);
    by_header<<<16, 64>>>(1024, x);
    fake_case("baseline's is no launch for the winner");
    by_header<<<4, 256>>>(1024, x);
    fake_case("winner's own launch where the baseline's is one, too");
    either<<<8, 128>>>(1024, x);
    either<<<4, 256>>>(1024, x);
    fake_case("the same where the condition does not hold");
    either<<<8, 128>>>(1023, x);
    either<<<4, 256>>>(1023, x);
    fake_device(1);
    fake_case("launch by the header on a device without a winner");
    by_header<<<16, 64, 256>>>(1024, x);
}

static void ready() {
    fake_device(3);
    fake_case("entry is not in the image, first and again");
    reshaped<<<4, 256>>>(Size{0, 1024}, x);
    reshaped<<<4, 256>>>(Size{0, 1024}, x);
    by_header<<<16, 64, 256>>>(1024, x);
    fake_device(4);
    fake_case("memory is short at first");
    reshaped<<<4, 256>>>(Size{0, 1024}, x);
    reshaped<<<4, 256>>>(Size{0, 1024}, x);
    fake_device(6);
    fake_error(cudaErrorInvalidConfiguration);
    fake_case("error is pending, then not");
    reshaped<<<4, 256>>>(Size{0, 1024}, x);
    fake_error(cudaSuccess);
    reshaped<<<4, 256>>>(Size{0, 1024}, x);
    fake_error(cudaErrorInvalidConfiguration);
    reshaped<<<4, 256>>>(Size{0, 1024}, x);
    fake_error(cudaSuccess);
    fake_device(9);
    fake_error(cudaErrorInvalidConfiguration);
    fake_case("error is pending, and the launch is the winner's own, or the baseline's");
    either<<<8, 128>>>(1024, x);
    either<<<4, 256>>>(1024, x);
    by_header<<<16, 64, 256>>>(1024, x);
    fake_error(cudaSuccess);
    fake_device(6);
    fake_case("winner's blocks are too large for its registers");
    staged<<<10, 256, 1024>>>(64, x);
}

static void attributes() {
    fake_device(0);
    fake_case("shared memory of 16, 48, 64 KiB, then 64 and 16 again, then more than there is");
    const int kibs[] = {16, 48, 64, 64, 16, 228};
    for (int kib : kibs) staged<<<10, 256, 1024>>>(kib * 256, x);
    fake_case("device is reset: its attributes are lost");
    fake_reset();
    staged<<<10, 256, 1024>>>(16 * 1024, x);
    staged<<<10, 256, 1024>>>(16 * 1024, x);
    fake_error(cudaErrorInvalidValue);
    fake_case("the same where an error is pending");
    staged<<<10, 256, 1024>>>(16 * 1024, x);
    fake_error(cudaSuccess);
    fake_device(7);
    fake_case("attributes of the kernel are the winner's");
    cudaFuncSetAttribute(tall, cudaFuncAttributePreferredSharedMemoryCarveout, 25);
    cudaFuncSetAttribute(tall, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    tall<<<dim3(1, 1), 256>>>(16, x);
    fake_case("the winner's carve-out goes first");
    cudaFuncSetAttribute(staged, cudaFuncAttributePreferredSharedMemoryCarveout, 25);
    staged<<<10, 256, 1024>>>(64, x);
    fake_case("clusters of another size");
    cudaFuncSetAttribute(argumentless, cudaFuncAttributeRequiredClusterWidth, 2);
    argumentless<<<1, 256>>>();
    fake_case("shared memory cannot be raised");
    fake_device(8);
    staged<<<10, 256, 1024>>>(16 * 1024, x);
    fake_device(0);
    fake_devices(1);
    fake_case("one device only, first and again");
    flat<<<1, 256>>>(256, x);
    flat<<<1, 256>>>(256, x);
    fake_case("the same in a stream that is captured");
    flat<<<1, 256, 0, reinterpret_cast<cudaStream_t>(8)>>>(511, x);
    fake_case("enough blocks that one may do the work of three");
    flat<<<1, 256>>>(511, x);
    fake_devices(65);
    fake_case("two threads at once");
    fake_threads(staged_from_a_thread);
}

int main() {
    reshape();
    launch_by_header();
    ready();
    attributes();
    fake_case(nullptr);
    return 0;
}
