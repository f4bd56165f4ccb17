//@tune grid(max(1, min(n * 1.5, 6e4)) , n > 0 && !(m == 3) ? (1 << 10) / m : ~n, (n & 7) != 0 || m % n)
//@tune block({64, 128}) default(block = 128) args(n = 1000, m = 5, f = 2.5, x = random[n])
//@tune shared(max(block.x, m) * sizeof(float) + min(f, 2) * 8)
__global__ void computed(int n, unsigned char m, float f, float *x) {}
//# type n: int
//# type m: unsigned char
//# type f: float
