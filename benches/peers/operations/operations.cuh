// Common parts of the programs in this folder: the table, and the inputs of tests/examples/gpu_test.
//
// A row equals gpu_test's row for the same operation on the same keys, with the name of the peer at the end. Its
// columns are the operation, the type, the number of keys, milliseconds (median of nine), and the fraction of copy
// bandwidth. The fraction compares the bytes that the operation reads and writes with a copy in the same run.
#pragma once
#include "../common.cuh"

inline constexpr int REPEATS = 9;

// Kinds of sorted keys: the name, and the number of distinct keys among n keys.
struct Kinds { const char *name; uint64_t different; };
inline std::vector<Kinds> kinds_of_sets(size_t n) { return {{"all different", ~0ull}, {"of n / 2", n / 2}, {"of 1000", 1000}}; }

template <class K> constexpr const char *name_of() { return sizeof(K) == 1 ? "u8" : sizeof(K) == 2 ? "u16" : sizeof(K) == 4 ? "u32" : sizeof(K) == 8 ? "u64" : "u128"; }

template <class K> struct Table {
  double copied; // bytes read and written in a millisecond

  explicit Table(size_t n) {
    Dev<K> from(n), to(n); from.random(1);
    double bytes = 2.0 * n * sizeof(K);
    Timing t = time_it({}, [&] { CHECK(cudaMemcpyAsync(to.p, from.p, n * sizeof(K), cudaMemcpyDeviceToDevice)); }, REPEATS);
    copied = bytes / t.median;
    row("copy", "", n, t, bytes, "cudaMemcpyAsync");
  }

  // `values` is empty for keys alone, or the type of the values after a plus sign.
  void row(const std::string &operation, const char *values, size_t n, Timing t, double bytes, const char *peer) const {
    std::string type = std::string(name_of<K>()) + values;
    printf("%-44s %-8s %10zu %10.4f %8.3f  %s\n", operation.c_str(), type.c_str(), n, t.median, bytes / t.median / copied, peer);
    fflush(stdout);
  }
};

// Runs a program's rows for n keys of u32, and n / 2 keys of u64. The argument is the binary logarithm of n.
template <class Rows> static int run(int argc, char **argv, Rows rows) {
  cudaDeviceProp p; CHECK(cudaGetDeviceProperties(&p, 0));
  fprintf(stderr, "%s, CUB %d\n", p.name, CUB_VERSION);
  size_t n = size_t(1) << (argc > 1 ? atoi(argv[1]) : 28);
  rows(uint32_t(), n); rows(uint64_t(), n / 2);
  CHECK(cudaDeviceSynchronize());
  return 0;
}

// Times a function of CUB. A first call without memory returns the bytes of temporary storage.
template <class Call> static Timing time_cub(Call call) {
  size_t bytes = 0; CHECK(call(nullptr, bytes)); Dev<char> memory(bytes);
  return time_it({}, [&] { CHECK(call(memory.p, bytes)); }, REPEATS);
}

// Memory for the allocations of one call of Thrust, so that no row includes the time of cudaMalloc.
struct Arena {
  typedef char value_type;
  Dev<char> memory{size_t(4) << 30}; size_t used = 0;
  char *allocate(std::ptrdiff_t bytes) {
    char *at = memory.p + used; used += (bytes + 255) / 256 * 256;
    if (used > memory.n) { fprintf(stderr, "Thrust needs more than %zu bytes\n", memory.n); exit(1); }
    return at;
  }
  void deallocate(char *, size_t) {}
};

// Times a function of Thrust, which gets the whole arena.
template <class Call> static Timing time_thrust(Arena &arena, Call call) {
  return time_it({}, [&] { arena.used = 0; call(); }, REPEATS);
}

template <class K> __global__ void fill_kinds(K *p, size_t n, uint64_t seed, uint64_t different) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) p[i] = (K)mix(mix(i ^ (seed << 40)) % different);
}

// Sets `p` to n / 2 keys of seed 1 and n / 2 keys of seed 2, unsorted: the two sides of a set operation.
template <class K> static void fill_sides(K *p, size_t n, uint64_t different) {
  for (uint64_t seed : {1, 2}) fill_kinds<<<1024, 256>>>(p + (seed - 1) * (n / 2), n / 2, seed, different);
  CHECK(cudaGetLastError());
}

// Ends the program if the result of a peer is wrong.
inline void expect(bool right, const std::string &operation, const char *what) {
  if (!right) { fprintf(stderr, "%s: %s\n", operation.c_str(), what); exit(1); }
}

// The number that `launch` adds to a counter on the GPU.
template <class Launch> static unsigned long long counted(Launch launch) {
  Dev<unsigned long long> count(1); CHECK(cudaMemset(count.p, 0, sizeof(unsigned long long)));
  launch(count.p); CHECK(cudaGetLastError());
  unsigned long long result; CHECK(cudaMemcpy(&result, count.p, sizeof result, cudaMemcpyDeviceToHost));
  return result;
}

// Counts keys that are less than their predecessor, except at the marked beginnings of segments.
template <class K> __global__ void count_descents(const K *p, size_t n, const uint8_t *begins, unsigned long long *count) {
  for (size_t i = 1 + blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
    if (p[i] < p[i - 1] && !(begins && begins[i])) atomicAdd(count, 1);
}

template <class K> static bool is_sorted(const K *p, size_t n, const uint8_t *begins = nullptr) {
  return counted([&](unsigned long long *count) { count_descents<<<1024, 256>>>(p, n, begins, count); }) == 0;
}

template <class T> __global__ void add_up(const T *p, size_t n, bool mixed, unsigned long long *sum) {
  unsigned long long of_thread = 0;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) of_thread += mixed ? mix(p[i]) : (uint64_t)p[i];
  atomicAdd(sum, of_thread);
}

// The sum of all numbers, modulo 2^64, and a fingerprint. Arrays with the same keys in any order have equal
// fingerprints.
template <class T> static uint64_t sum(const T *p, size_t n) { return counted([&](unsigned long long *sum) { add_up<<<1024, 256>>>(p, n, false, sum); }); }
template <class T> static uint64_t fingerprint(const T *p, size_t n) { return counted([&](unsigned long long *sum) { add_up<<<1024, 256>>>(p, n, true, sum); }); }
