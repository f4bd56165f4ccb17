__global__ void wrong(int n) { undeclared = n; }
