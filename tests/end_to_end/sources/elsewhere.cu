// Another translation unit that launches a kernel of remap.cu.
__global__ void plain(int n, const float *x, float *y);

void elsewhere(int n, const float *x, float *y) { plain<<<n / 256, 256>>>(n, x, y); }
