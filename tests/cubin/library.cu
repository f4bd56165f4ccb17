// Device-wide algorithms of CUB, which every toolkit has: large kernels of heavily templated code, 8 to 64 bits wide, in integers,
// single and double precision. Only their machine code is looked at.
#include <cub/cub.cuh>

template <typename Key, typename Value>
void sort(void *space, size_t &bytes, Key *keys, Value *values, int n) {
  cub::DeviceRadixSort::SortPairs(space, bytes, keys, keys + n, values, values + n, n);
  cub::DeviceRadixSort::SortKeysDescending(space, bytes, keys, keys + n, n);
}

template <typename T>
void others(void *space, size_t &bytes, T *in, T *out, int *counts, int n) {
  cub::DeviceReduce::Sum(space, bytes, in, out, n);
  cub::DeviceReduce::ArgMin(space, bytes, in, out, counts, n);
  cub::DeviceReduce::ReduceByKey(space, bytes, counts, counts + n, in, out, counts, cuda::std::plus<>{}, n);
  cub::DeviceScan::InclusiveSum(space, bytes, in, out, n);
  cub::DeviceSelect::Unique(space, bytes, in, out, counts, n);
  cub::DeviceMergeSort::SortKeys(space, bytes, in, n, cuda::std::less<>{});
}

void all(void *space, size_t &bytes, char *buffer, int *counts, int n) {
  sort(space, bytes, reinterpret_cast<unsigned *>(buffer), reinterpret_cast<double *>(buffer), n);
  sort(space, bytes, reinterpret_cast<unsigned char *>(buffer), reinterpret_cast<short *>(buffer), n);
  others(space, bytes, reinterpret_cast<float *>(buffer), reinterpret_cast<float *>(buffer), counts, n);
  others(space, bytes, reinterpret_cast<double *>(buffer), reinterpret_cast<double *>(buffer), counts, n);
  cub::DeviceHistogram::HistogramEven(space, bytes, reinterpret_cast<float *>(buffer), counts, 257, 0.0f, 1.0f, n);
}
