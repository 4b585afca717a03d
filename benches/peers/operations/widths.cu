// Sorts of keys of 1, 2 and 16 bytes by cub::DeviceRadixSort: alone, with values, and of indices, which are made first.
#include "operations.cuh"

typedef unsigned __int128 uint128_t;

enum Values { UNIFORM_KEYS, ALL_EQUAL, OF_16, MOSTLY_EQUAL };
static const char *const VALUES_NAMES[] = {"uniform", "all equal", "of 16", "mostly equal"};

// The words of a key of 16 bytes are in independent orders, as in gpu_test.
template <class K> __device__ K widened(uint64_t bits) {
  if constexpr (sizeof(K) == 16) return (K)bits << 64 | mix(bits ^ 1);
  else return (K)bits;
}

template <class K> __global__ void fill_values(K *p, size_t n, Values values) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    uint64_t word = mix(i ^ (1ull << 40));
    p[i] = widened<K>(values == ALL_EQUAL ? 7 : values == OF_16 ? mix(word % 16) : values == MOSTLY_EQUAL ? (word % 10 == 0 ? mix(word) : 7) : word);
  }
}

template <class K> static void rows(size_t n) {
  Table<K> table(n);
  Dev<K> keys(n), sorted(n);
  for (Values values : {UNIFORM_KEYS, ALL_EQUAL, OF_16, MOSTLY_EQUAL}) {
    fill_values<<<1024, 256>>>(keys.p, n, values); CHECK(cudaGetLastError());
    std::string name = std::string("sort, ") + VALUES_NAMES[values];
    auto sort = [&](void *tmp, size_t &bytes) { return cub::DeviceRadixSort::SortKeys(tmp, bytes, keys.p, sorted.p, n); };
    table.row(name, "", n, time_cub(sort), 2.0 * n * sizeof(K), "cub::DeviceRadixSort");
    if (values != UNIFORM_KEYS) continue;
    Dev<uint32_t> from(n), to(n);
    auto pairs = [&](void *tmp, size_t &bytes) { return cub::DeviceRadixSort::SortPairs(tmp, bytes, keys.p, sorted.p, from.p, to.p, n); };
    table.row(name, "+u32", n, time_cub(pairs), 2.0 * n * (sizeof(K) + 4), "cub::DeviceRadixSort");
    auto indices = [&](void *tmp, size_t &bytes) {
      if (tmp) fill<<<1024, 256>>>(from.p, n, SORTED);
      return pairs(tmp, bytes);
    };
    table.row("arg" + name, "+u32", n, time_cub(indices), n * (2.0 * sizeof(K) + 4), "cub::DeviceRadixSort");
  }
}

int main(int argc, char **argv) {
  cudaDeviceProp p; CHECK(cudaGetDeviceProperties(&p, 0));
  fprintf(stderr, "%s, CUB %d\n", p.name, CUB_VERSION);
  size_t n = size_t(1) << (argc > 1 ? atoi(argv[1]) : 28);
  rows<uint8_t>(n); rows<uint16_t>(n); rows<uint128_t>(n / 2);
  CHECK(cudaDeviceSynchronize());
  return 0;
}
