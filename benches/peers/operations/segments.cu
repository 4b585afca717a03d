// Sorts of segments by CUB: of equal length, with offsets from an array or computed, of mixed lengths, and nearly all
// empty.
#include "operations.cuh"
#include <cub/device/device_segmented_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

// Only segments of at least this many keys are also sorted by DeviceSegmentedRadixSort, which uses a block for each
// segment.
static const size_t LONG = 4096;

struct End {
  size_t length, n;
  __host__ __device__ int operator()(int i) const { size_t end = i * length; return int(end < n ? end : n); }
};

__global__ void mark(const int *begins, size_t segments, size_t n, uint8_t *marks) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < segments; i += (size_t)gridDim.x * blockDim.x)
    if (begins[i] < n) marks[begins[i]] = 1;
}

template <class K> struct Segments {
  const Table<K> &table;
  Dev<K> in, out; Dev<uint8_t> marks;

  Segments(const Table<K> &table, size_t n) : table(table), in(n), out(n), marks(n) { in.keys(UNIFORM); }

  // Sorts the first `n` keys, and checks the result. `ends` are the ends of the segments in `offsets`.
  template <class Ends> void row(const std::string &name, size_t n, const std::vector<int> &offsets, const Dev<int> &array, Ends ends, bool radix = false) {
    int segments = int(offsets.size()) - 1;
    auto check = [&](const char *peer) {
      CHECK(cudaMemset(marks.p, 0, n));
      mark<<<1024, 256>>>(array.p, segments, n, marks.p); CHECK(cudaGetLastError());
      expect(is_sorted(out.p, n, marks.p) && fingerprint(out.p, n) == fingerprint(in.p, n), name, peer);
    };
    // The few offsets do not count as moved bytes, only the keys.
    double moved = 2.0 * n * sizeof(K);
    CHECK(cudaMemset(out.p, 0, n * sizeof(K)));
    Timing t = time_cub([&](void *tmp, size_t &bytes) { return cub::DeviceSegmentedSort::SortKeys(tmp, bytes, in.p, out.p, (int64_t)n, (int64_t)segments, ends, ends + 1); });
    check("not sorted by DeviceSegmentedSort");
    table.row(name, "", n, t, moved, "cub::DeviceSegmentedSort");
    if (!radix) return;
    CHECK(cudaMemset(out.p, 0, n * sizeof(K)));
    t = time_cub([&](void *tmp, size_t &bytes) { return cub::DeviceSegmentedRadixSort::SortKeys(tmp, bytes, in.p, out.p, (int)n, segments, ends, ends + 1); });
    check("not sorted by DeviceSegmentedRadixSort");
    table.row(name, "", n, t, moved, "cub::DeviceSegmentedRadixSort");
  }

  void of_offsets(const std::string &name, size_t n, const std::vector<int> &offsets, bool radix = false) {
    Dev<int> array(offsets.size());
    CHECK(cudaMemcpy(array.p, offsets.data(), offsets.size() * sizeof(int), cudaMemcpyHostToDevice));
    row(name, n, offsets, array, (const int *)array.p, radix);
  }

  void of_length(size_t length, size_t n) {
    std::vector<int> offsets;
    for (size_t begin = 0; begin < n; begin += length) offsets.push_back((int)begin);
    offsets.push_back((int)n);
    std::string name = "segments of " + std::to_string(length);
    {
      Dev<int> array(offsets.size());
      CHECK(cudaMemcpy(array.p, offsets.data(), offsets.size() * sizeof(int), cudaMemcpyHostToDevice));
      row(name, n, offsets, array, thrust::make_transform_iterator(thrust::make_counting_iterator(0), End{length, n}));
    }
    of_offsets(name + ", offsets", n, offsets, length >= LONG);
  }
};

// Lengths from 2^0 to 2^20, with equally likely exponents, until their sum is `n`.
static std::vector<int> mixed_offsets(size_t n) {
  std::vector<int> offsets{0};
  uint64_t state = 1;
  for (size_t end = 0; end < n;) {
    state += 0x9e3779b97f4a7c15ull; end += size_t(1) << (mix(state) % 21);
    offsets.push_back((int)std::min(end, n));
  }
  return offsets;
}

int main(int argc, char **argv) {
  return run(argc, argv, [](auto key, size_t n) {
    Table<decltype(key)> table(n);
    Segments<decltype(key)> segments(table, n);
    for (size_t length : {1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5, 1 << 6, 1 << 7, 1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 16, 1 << 20, 1 << 24}) segments.of_length(length, n);
    segments.of_offsets("segments of 2^(0…20)", n, mixed_offsets(n));
    std::vector<int> empty(1000001, 1000); std::fill(empty.begin(), empty.begin() + 500000, 0);
    segments.of_offsets("a million empty segments", 1000, empty);
  });
}
