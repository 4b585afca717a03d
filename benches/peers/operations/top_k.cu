// The first k keys by cub::DeviceTopK, which CUB 3.0 does not have yet, and by a radix sort of all keys. This project's
// function sorts the k keys, but DeviceTopK does not. A row with a sort of the k keys has the names of both functions.
#include "operations.cuh"
#if __has_include(<cub/device/device_topk.cuh>)
#include <cub/device/device_topk.cuh>
#include <thrust/iterator/counting_iterator.h>
#define HAS_TOP_K
#endif

enum Values { UNIFORM_KEYS, ALL_EQUAL, OF_1000, NARROW };
static const char *const VALUES_NAMES[] = {"uniform", "all equal", "of 1000", "in a narrow range"};

template <class K> __global__ void fill_values(K *p, size_t n, Values values) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    uint64_t word = mix(i ^ (1ull << 40));
    p[i] = (K)(values == ALL_EQUAL ? 7 : values == OF_1000 ? mix(word % 1000) : values == NARROW ? 5000000000ull + word % 1000 : word);
  }
}

template <class K> static void rows(const Table<K> &table, size_t n, Values values) {
  Dev<K> keys(n), sorted(n);
  fill_values<<<1024, 256>>>(keys.p, n, values); CHECK(cudaGetLastError());
  for (bool greatest : {true, false}) {
    auto sort = [&](void *tmp, size_t &bytes, const K *from, K *to, size_t n) {
      return greatest ? cub::DeviceRadixSort::SortKeysDescending(tmp, bytes, from, to, n) : cub::DeviceRadixSort::SortKeys(tmp, bytes, from, to, n);
    };
    Timing of_all = time_cub([&](void *tmp, size_t &bytes) { return sort(tmp, bytes, keys.p, sorted.p, n); });
    for (size_t k : {size_t(16), size_t(1024), size_t(1) << 16}) {
      if (k > n) continue;
      std::string number = (greatest ? "greatest " : "least ") + std::to_string(k), name = number + ", " + VALUES_NAMES[values];
      double moved = double(n + k) * sizeof(K);
      table.row(name, "", n, of_all, moved, "cub::DeviceRadixSort of all");
#ifdef HAS_TOP_K
      Dev<K> out(k), in_order(k); Dev<uint32_t> indices(k);
      auto requirements = cuda::execution::require(cuda::execution::determinism::not_guaranteed, cuda::execution::output_ordering::unsorted);
      cuda::std::execution::env env{cuda::stream_ref{cudaStream_t{}}, requirements};
      auto top = [&](void *tmp, size_t &bytes) {
        return greatest ? cub::DeviceTopK::MaxKeys(tmp, bytes, keys.p, out.p, (int)n, (int)k, env) : cub::DeviceTopK::MinKeys(tmp, bytes, keys.p, out.p, (int)n, (int)k, env);
      };
      table.row(name, "", n, time_cub(top), moved, "cub::DeviceTopK");
      size_t most = 0; CHECK(sort(nullptr, most, out.p, in_order.p, k)); Dev<char> workspace(most);
      Timing both = time_cub([&](void *tmp, size_t &bytes) {
        cudaError_t error = top(tmp, bytes);
        return tmp && error == cudaSuccess ? sort(workspace.p, most, out.p, in_order.p, k) : error;
      });
      std::vector<K> found(k), expected(k);
      CHECK(cudaMemcpy(found.data(), in_order.p, k * sizeof(K), cudaMemcpyDeviceToHost)); CHECK(cudaMemcpy(expected.data(), sorted.p, k * sizeof(K), cudaMemcpyDeviceToHost));
      expect(found == expected, name, "not the first keys");
      table.row(name, "", n, both, moved, "cub::DeviceTopK and DeviceRadixSort of k");
      thrust::counting_iterator<uint32_t> index(0);
      Timing with = time_cub([&](void *tmp, size_t &bytes) {
        return greatest ? cub::DeviceTopK::MaxPairs(tmp, bytes, keys.p, out.p, index, indices.p, (int)n, (int)k, env) : cub::DeviceTopK::MinPairs(tmp, bytes, keys.p, out.p, index, indices.p, (int)n, (int)k, env);
      });
      table.row(number + ", indices, " + VALUES_NAMES[values], "", n, with, moved + 4.0 * k, "cub::DeviceTopK");
#endif
    }
  }
}

int main(int argc, char **argv) {
#ifndef HAS_TOP_K
  fprintf(stderr, "no rows of cub::DeviceTopK: CUB %d has no such function\n", CUB_VERSION);
#endif
  return run(argc, argv, [](auto key, size_t n) {
    Table<decltype(key)> table(n);
    for (Values values : {UNIFORM_KEYS, ALL_EQUAL, OF_1000, NARROW}) rows(table, n, values);
  });
}
