//@tune grid(2 * 66) block({64, 128}) regs({0, 32}) default(block = 128)
__global__ void resident() {}
