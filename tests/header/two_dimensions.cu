//@tune threads(w, h) block({32, 8}, {4, 8}) default(block = {32, 4})
//@tune args(w = 1921, h = 1080, x = random[w * h])
__global__ void blur(float *x, unsigned w, unsigned h) {}
//# type w: unsigned int
//# type h: unsigned int
