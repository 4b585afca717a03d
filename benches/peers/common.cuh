// Common parts of the programs in this folder: errors, times by events, and keys.
#pragma once
#include <cub/device/device_radix_sort.cuh>
#include <cuda_runtime.h>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#define CHECK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
  fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

struct Timing { float median, min; };

// Median and minimum of `reps` launches, timed by events after three warm-ups. `before` restores inputs and is not
// timed.
inline Timing time_it(const std::function<void()> &before, const std::function<void()> &f, int reps) {
  cudaEvent_t a, b; CHECK(cudaEventCreate(&a)); CHECK(cudaEventCreate(&b));
  std::vector<float> t;
  for (int i = 0; i < reps + 3; ++i) {
    if (before) before();
    CHECK(cudaEventRecord(a)); f(); CHECK(cudaEventRecord(b)); CHECK(cudaEventSynchronize(b));
    float ms; CHECK(cudaEventElapsedTime(&ms, a, b)); if (i >= 3) t.push_back(ms);
  }
  CHECK(cudaGetLastError());
  std::sort(t.begin(), t.end());
  return {t[t.size() / 2], t[0]};
}

// The keys, on the CPU and on a GPU, by the same operations as in tests/src/distribution.rs.

enum Dist { UNIFORM, UNIT, NORMAL, AND2, AND3, AND4, ZIPF, DUPS16, EQUAL, SORTED, REVERSED, EIGHT_RUNS, NEARLY_SORTED, DISPLACED };
inline constexpr const char *DIST_NAMES[] = {"uniform", "unit", "normal", "and2", "and3", "and4", "zipf", "dups16", "equal", "sorted", "reversed", "8-runs", "nearly-sorted", "displaced"};
inline constexpr Dist OF_INTEGERS[] = {UNIFORM, AND2, AND3, AND4, ZIPF, DUPS16, EQUAL, SORTED, REVERSED, EIGHT_RUNS, NEARLY_SORTED, DISPLACED};
inline constexpr Dist OF_FLOATS[] = {UNIT, NORMAL};

// SplitMix64 (Steele, Lea and Flood, 2014): its output function, and word i.
__host__ __device__ inline uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull; z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}
__host__ __device__ inline uint64_t random_word(uint64_t i, uint64_t seed) { return mix(seed + i * 0x9e3779b97f4a7c15ull); }

// A float from 0 to 1.
template <class K> __host__ __device__ inline K unit(uint64_t word) {
  if constexpr (sizeof(K) == 4) return (K)(word >> 40) / (K)(1ull << 24);
  else return (K)(word >> 11) / (K)(1ull << 53);
}

// Key i of n.
template <class K> __host__ __device__ inline K key_of(Dist dist, uint64_t i, uint64_t n) {
  auto word = [i](int index) { return random_word(i, 7 + index); };
  if constexpr (std::is_floating_point_v<K>) {
    if (dist == UNIT) return unit<K>(word(0));
    int64_t sum = -(6ll << 52);
    for (int index = 0; index < 12; ++index) sum += (int64_t)(word(index) >> 12);
    return (K)sum / (K)(1ull << 52);
  } else {
    uint64_t power;
    switch (dist) {
      case AND2: return (K)(word(0) & word(1));
      case AND3: return (K)(word(0) & word(1) & word(2));
      case AND4: return (K)(word(0) & word(1) & word(2) & word(3));
      case ZIPF: power = 1ull << (word(0) % 28); return (K)(power | (word(1) & (power - 1)));
      case DUPS16: return (K)(word(0) & 15);
      case EQUAL: return (K)7;
      case SORTED: return (K)i;
      case REVERSED: return (K)(n - 1 - i);
      case EIGHT_RUNS: return (K)(i % ((n + 7) / 8) * 8);
      case NEARLY_SORTED: return (K)(i % 1000 == 0 ? word(0) : i);
      case DISPLACED: return (K)(i + word(0) % 1000);
      default: return (K)word(0);
    }
  }
}

// The sum of (2i + 1) times the bits of key i, over the first 2^16 keys.
inline constexpr size_t DIGEST_KEYS = 1 << 16;
template <class K> static uint64_t digest(const std::vector<K> &keys) {
  uint64_t sum = 0;
  for (size_t i = 0; i < keys.size(); ++i) { uint64_t bits = 0; memcpy(&bits, &keys[i], sizeof(K)); sum += bits * (2 * i + 1); }
  return sum;
}

template <class K> static uint64_t digest_of(Dist dist, size_t n) {
  std::vector<K> keys(std::min(n, DIGEST_KEYS));
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = key_of<K>(dist, i, n);
  return digest(keys);
}

// Prints the digests of 2^16 and of 2^28 keys.
template <class K> static void print_digests(const char *type, Dist dist) {
  printf("%s %-13s %016llx %016llx\n", type, DIST_NAMES[dist], (unsigned long long)digest_of<K>(dist, DIGEST_KEYS), (unsigned long long)digest_of<K>(dist, size_t(1) << 28));
}

template <class K> __global__ void fill_random(K *p, size_t n, uint64_t seed, uint64_t mask) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    if constexpr (std::is_floating_point_v<K>) p[i] = unit<K>(random_word(i, seed));
    else p[i] = (K)(random_word(i, seed) & mask);
  }
}

template <class K> __global__ void fill(K *p, size_t n, Dist dist) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) p[i] = key_of<K>(dist, i, n);
}

template <class K> struct Dev {
  K *p = nullptr; size_t n;
  explicit Dev(size_t n) : n(n) { CHECK(cudaMalloc(&p, std::max<size_t>(n, 1) * sizeof(K))); }
  ~Dev() { cudaFree(p); }
  void random(uint64_t seed, uint64_t mask = ~0ull) { fill_random<<<1024, 256>>>(p, n, seed, mask); CHECK(cudaGetLastError()); }
  // Makes the keys, compares the first keys with the CPU's keys, and returns the end of a row with the digest.
  std::string keys(Dist dist) {
    fill<<<1024, 256>>>(p, n, dist); CHECK(cudaGetLastError());
    std::vector<K> first(std::min(n, DIGEST_KEYS));
    CHECK(cudaMemcpy(first.data(), p, first.size() * sizeof(K), cudaMemcpyDeviceToHost));
    if (digest(first) != digest_of<K>(dist, n)) { fprintf(stderr, "the GPU makes other keys than the CPU: %s\n", DIST_NAMES[dist]); exit(1); }
    char more[40]; snprintf(more, sizeof more, ",\"digest\":\"%016llx\"", (unsigned long long)digest(first));
    return more;
  }
};

template <class K> static void sort_in_place(K *p, size_t n) {
  Dev<K> out(n); size_t bytes = 0;
  CHECK(cub::DeviceRadixSort::SortKeys(nullptr, bytes, p, out.p, n));
  Dev<char> tmp(bytes);
  CHECK(cub::DeviceRadixSort::SortKeys(tmp.p, bytes, p, out.p, n));
  CHECK(cudaMemcpy(p, out.p, n * sizeof(K), cudaMemcpyDeviceToDevice));
}
