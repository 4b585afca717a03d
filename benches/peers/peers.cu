// What NVIDIA's libraries CUB and Thrust, a batch kernel written as the course asks for it, and a plain device copy do on
// the same work as this project. Each row is one JSON object on standard output.
//
//   nvcc -O3 -std=c++17 -arch=sm_90 peers.cu -o peers && ./peers [part of an op's name]
//   ./peers --digest       prints the digests of the keys of the sorts, and needs no GPU
//
// A row: {"op", "type", "n", "dist", "ms" (median), "min_ms", "gbs" (each input and output byte once / time), "gkeys"}
// Those of sorts also have the "digest" of their keys, which are those of tests/src/distribution.rs, bit for bit.
#include <cub/cub.cuh>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/merge.h>
#include <algorithm>
#include <cstdio>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#define CHECK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
  fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); exit(1); } } while (0)

static const char *g_filter = "";
static bool wanted(const std::string &op) { return op.find(g_filter) != std::string::npos; }

struct Timing { float median, min; };

// Median and minimum of `reps` launches timed by events after three warm-ups. `before` restores inputs and is not timed.
static Timing time_it(const std::function<void()> &before, const std::function<void()> &f, int reps) {
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

static void row(const char *op, const char *type, size_t n, const char *dist, Timing t, double bytes, const char *more = "") {
  printf("{\"op\":\"%s\",\"type\":\"%s\",\"n\":%zu,\"dist\":\"%s\",\"ms\":%.5f,\"min_ms\":%.5f,\"gbs\":%.1f,\"gkeys\":%.3f%s}\n",
         op, type, n, dist, t.median, t.min, bytes / t.median / 1e6, n / t.median / 1e6, more);
  fflush(stdout);
}

// The keys, on the CPU and on a GPU: what tests/src/distribution.rs does, operation by operation.

enum Dist { UNIFORM, UNIT, NORMAL, AND2, AND3, AND4, ZIPF, DUPS16, EQUAL, SORTED, REVERSED, EIGHT_RUNS, NEARLY_SORTED };
static const char *const DIST_NAMES[] = {"uniform", "unit", "normal", "and2", "and3", "and4", "zipf", "dups16", "equal", "sorted", "reversed", "8-runs", "nearly-sorted"};
static const Dist OF_INTEGERS[] = {UNIFORM, AND2, AND3, AND4, ZIPF, DUPS16, EQUAL, SORTED, REVERSED, EIGHT_RUNS, NEARLY_SORTED};
static const Dist OF_FLOATS[] = {UNIT, NORMAL};

// SplitMix64 (Steele, Lea and Flood, 2014).
__host__ __device__ inline uint64_t random_word(uint64_t i, uint64_t seed) {
  uint64_t z = seed + i * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull; z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

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
      default: return (K)word(0);
    }
  }
}

// The sum of (2i + 1) times the bits of key i, of the first 2^16 keys.
static const size_t DIGEST_KEYS = 1 << 16;
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

// Of 2^16 and of 2^28 keys.
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
  // Makes the keys, compares the first with those that the CPU makes, and returns the end of a row: their digest.
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

static void copy_rows() {
  for (size_t mb : {16, 256, 2048, 8192}) {
    size_t n = (mb << 20) / 2; Dev<char> a(n), b(n); a.random(1);
    if (wanted("copy")) row("copy", "u8", n, "uniform", time_it({}, [&] { CHECK(cudaMemcpyAsync(b.p, a.p, n, cudaMemcpyDeviceToDevice)); }, 15), 2.0 * n);
  }
}

template <class K> static void merge_rows(const char *type, size_t n, const char *dist, uint64_t mask) {
  size_t m = n / 2; Dev<K> a(m), b(n - m), c(n);
  a.random(1, mask); b.random(2, mask); sort_in_place(a.p, m); sort_in_place(b.p, n - m);
  int reps = n > (1u << 28) ? 9 : 21;
  if (wanted("cub_merge_keys")) {
    size_t bytes = 0; CHECK(cub::DeviceMerge::MergeKeys(nullptr, bytes, a.p, (int64_t)m, b.p, (int64_t)(n - m), c.p)); Dev<char> tmp(bytes);
    row("cub_merge_keys", type, n, dist, time_it({}, [&] { CHECK(cub::DeviceMerge::MergeKeys(tmp.p, bytes, a.p, (int64_t)m, b.p, (int64_t)(n - m), c.p)); }, reps), 2.0 * n * sizeof(K));
  }
  if (wanted("thrust_merge_keys"))
    row("thrust_merge_keys", type, n, dist, time_it({}, [&] { thrust::merge(thrust::device, a.p, a.p + m, b.p, b.p + (n - m), c.p); }, reps), 2.0 * n * sizeof(K));
  if (wanted("cub_merge_pairs")) {
    Dev<uint32_t> va(m), vb(n - m), vc(n); va.random(3); vb.random(4); size_t bytes = 0;
    CHECK(cub::DeviceMerge::MergePairs(nullptr, bytes, a.p, va.p, (int64_t)m, b.p, vb.p, (int64_t)(n - m), c.p, vc.p)); Dev<char> tmp(bytes);
    row("cub_merge_pairs", type, n, dist, time_it({}, [&] { CHECK(cub::DeviceMerge::MergePairs(tmp.p, bytes, a.p, va.p, (int64_t)m, b.p, vb.p, (int64_t)(n - m), c.p, vc.p)); }, reps), 2.0 * n * (sizeof(K) + 4));
  }
}

struct Less { template <class T> __device__ bool operator()(const T &a, const T &b) const { return a < b; } };

template <class K> static void sort_rows(const char *type, size_t n, Dist dist) {
  Dev<K> in(n), a(n), b(n); std::string more = in.keys(dist);
  int reps = n > (1u << 28) ? 5 : 11;
  auto reset = [&] { CHECK(cudaMemcpyAsync(a.p, in.p, n * sizeof(K), cudaMemcpyDeviceToDevice)); };
  auto line = [&](const char *op, Timing t) { row(op, type, n, DIST_NAMES[dist], t, 2.0 * n * sizeof(K), more.c_str()); };
  if (wanted("cub_merge_sort_keys")) {
    size_t bytes = 0; CHECK(cub::DeviceMergeSort::StableSortKeys(nullptr, bytes, a.p, (int64_t)n, Less())); Dev<char> tmp(bytes);
    line("cub_merge_sort_keys", time_it(reset, [&] { CHECK(cub::DeviceMergeSort::StableSortKeys(tmp.p, bytes, a.p, (int64_t)n, Less())); }, reps));
  }
  if (wanted("cub_radix_sort_keys")) {
    size_t bytes = 0; CHECK(cub::DeviceRadixSort::SortKeys(nullptr, bytes, a.p, b.p, n)); Dev<char> tmp(bytes);
    line("cub_radix_sort_keys", time_it(reset, [&] { CHECK(cub::DeviceRadixSort::SortKeys(tmp.p, bytes, a.p, b.p, n)); }, reps));
  }
}

// Keys whose values are their indices.
template <class K, class V> static void sort_pairs_rows(const char *type, size_t n, Dist dist = UNIFORM) {
  Dev<K> in(n), a(n), b(n); Dev<V> vin(n), va(n), vb(n); std::string more = in.keys(dist); vin.keys(SORTED);
  int reps = n > (1u << 28) ? 5 : 11;
  auto reset = [&] {
    CHECK(cudaMemcpyAsync(a.p, in.p, n * sizeof(K), cudaMemcpyDeviceToDevice)); CHECK(cudaMemcpyAsync(va.p, vin.p, n * sizeof(V), cudaMemcpyDeviceToDevice));
  };
  auto line = [&](const char *op, Timing t) { row(op, type, n, DIST_NAMES[dist], t, 2.0 * n * (sizeof(K) + sizeof(V)), more.c_str()); };
  if (wanted("cub_merge_sort_pairs")) {
    size_t bytes = 0; CHECK(cub::DeviceMergeSort::StableSortPairs(nullptr, bytes, a.p, va.p, (int64_t)n, Less())); Dev<char> tmp(bytes);
    line("cub_merge_sort_pairs", time_it(reset, [&] { CHECK(cub::DeviceMergeSort::StableSortPairs(tmp.p, bytes, a.p, va.p, (int64_t)n, Less())); }, reps));
  }
  if (wanted("cub_radix_sort_pairs")) {
    size_t bytes = 0; CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, a.p, b.p, va.p, vb.p, n)); Dev<char> tmp(bytes);
    line("cub_radix_sort_pairs", time_it(reset, [&] { CHECK(cub::DeviceRadixSort::SortPairs(tmp.p, bytes, a.p, b.p, va.p, vb.p, n)); }, reps));
  }
}

// An argsort with indices of type u32, of uniform keys: the indices are made, and sorted as values. Both are in the time.
template <class K> static void argsort_rows(const char *type, size_t n) {
  if (!wanted("cub_radix_argsort")) return;
  Dev<K> in(n), b(n); Dev<uint32_t> va(n), vb(n); std::string more = in.keys(UNIFORM);
  size_t bytes = 0; CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, in.p, b.p, va.p, vb.p, n)); Dev<char> tmp(bytes);
  row("cub_radix_argsort", type, n, "uniform", time_it({}, [&] {
    fill<<<1024, 256>>>(va.p, n, SORTED);
    CHECK(cub::DeviceRadixSort::SortPairs(tmp.p, bytes, in.p, b.p, va.p, vb.p, n));
  }, n > (1u << 28) ? 5 : 11), 1.0 * n * (sizeof(K) + 4), more.c_str());
}

// The course text's batch merge, one thread per output element, as its question 5 lays it out:
// tidx = threadIdx % d, one diagonal binary search per thread, arrays read straight from global memory.
template <class K> __global__ void merge_small_batch(const K *a, const K *b, K *c, int la, int d, size_t batches) {
  int tidx = threadIdx.x % d, qt = (threadIdx.x - tidx) / d; size_t g = qt + blockIdx.x * (size_t)(blockDim.x / d);
  if (g >= batches) return;
  const K *A = a + g * la; int lb = d - la; const K *B = b + g * lb;
  int lo = max(0, tidx - lb), hi = min(tidx, la);
  while (lo < hi) { int mid = (lo + hi) / 2; if (A[mid] <= B[tidx - mid - 1]) lo = mid + 1; else hi = mid; }
  int i = lo, j = tidx - lo;
  c[g * d + tidx] = (i < la && (j >= lb || A[i] <= B[j])) ? A[i] : B[j];
}

// `n / len` runs of `len` random keys each, every one ascending, and what is left over.
static void fill_runs(uint32_t *p, size_t n, int len, uint64_t seed) {
  Dev<uint32_t> in(n); in.random(seed);
  int runs = (int)(n / len); std::vector<int> off(runs + 1); for (int i = 0; i <= runs; ++i) off[i] = i * len;
  Dev<int> o(runs + 1); CHECK(cudaMemcpy(o.p, off.data(), off.size() * 4, cudaMemcpyHostToDevice));
  size_t bytes = 0; CHECK(cub::DeviceSegmentedSort::SortKeys(nullptr, bytes, in.p, p, (int)n, runs, o.p, o.p + 1)); Dev<char> tmp(bytes);
  CHECK(cub::DeviceSegmentedSort::SortKeys(tmp.p, bytes, in.p, p, (int)n, runs, o.p, o.p + 1)); CHECK(cudaDeviceSynchronize());
}

static void batch_rows(int d) {
  typedef uint32_t K; size_t total = size_t(1) << 28, batches = total / d; int la = d / 2;
  Dev<K> a(total / 2), b(total / 2), c(total);
  fill_runs(a.p, total / 2, la, 1); fill_runs(b.p, total / 2, d - la, 2);
  char type[32]; snprintf(type, sizeof type, "u32_d%d", d);
  if (wanted("course_batch_merge")) {
    int threads = d * std::max(1, 256 / d); unsigned blocks = (unsigned)((batches + threads / d - 1) / (threads / d));
    row("course_batch_merge", type, total, "uniform", time_it({}, [&] { merge_small_batch<<<blocks, threads>>>(a.p, b.p, c.p, la, d, batches); }, 9), 2.0 * total * sizeof(K));
  }
}

static void segmented_rows(int d) {
  typedef uint32_t K; size_t total = size_t(1) << 27, batches = total / d; Dev<K> in(total), out(total); in.random(5);
  if (!wanted("cub_segmented_sort")) return;
  std::vector<int> off(batches + 1); for (size_t i = 0; i <= batches; ++i) off[i] = (int)(i * d);
  Dev<int> o(batches + 1); CHECK(cudaMemcpy(o.p, off.data(), off.size() * 4, cudaMemcpyHostToDevice));
  size_t bytes = 0; CHECK(cub::DeviceSegmentedSort::SortKeys(nullptr, bytes, in.p, out.p, (int)total, (int)batches, o.p, o.p + 1)); Dev<char> tmp(bytes);
  char type[32]; snprintf(type, sizeof type, "u32_d%d", d);
  row("cub_segmented_sort", type, total, "uniform", time_it({}, [&] { CHECK(cub::DeviceSegmentedSort::SortKeys(tmp.p, bytes, in.p, out.p, (int)total, (int)batches, o.p, o.p + 1)); }, 7), 2.0 * total * sizeof(K));
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "--digest")) {
    for (Dist dist : OF_INTEGERS) { print_digests<uint32_t>("u32", dist); print_digests<uint64_t>("u64", dist); }
    for (Dist dist : OF_FLOATS) { print_digests<float>("f32", dist); print_digests<double>("f64", dist); }
    return 0;
  }
  if (argc > 1) g_filter = argv[1];
  cudaDeviceProp p; CHECK(cudaGetDeviceProperties(&p, 0));
  fprintf(stderr, "%s, CUB %d\n", p.name, CUB_VERSION);
  copy_rows();
  for (int lg : {10, 14, 16, 18, 20, 22, 24, 26, 28, 30}) merge_rows<uint32_t>("u32", size_t(1) << lg, "uniform", ~0ull);
  merge_rows<uint32_t>("u32", size_t(1) << 28, "dups16", 15);
  for (int lg : {20, 24, 28}) { merge_rows<uint64_t>("u64", size_t(1) << lg, "uniform", ~0ull); merge_rows<float>("f32", size_t(1) << lg, "uniform", ~0ull); }
  for (int lg : {10, 14, 16, 18, 20, 22, 24, 26, 28, 30}) {
    size_t n = size_t(1) << lg;
    sort_rows<uint32_t>("u32", n, UNIFORM); sort_pairs_rows<uint32_t, uint32_t>("u32+u32", n); argsort_rows<uint32_t>("u32", n);
  }
  for (int lg : {20, 24, 28}) {
    size_t n = size_t(1) << lg;
    sort_rows<uint64_t>("u64", n, UNIFORM); sort_pairs_rows<uint64_t, uint32_t>("u64+u32", n); sort_pairs_rows<uint64_t, uint64_t>("u64+u64", n);
    argsort_rows<uint64_t>("u64", n);
    sort_rows<float>("f32", n, UNIT); sort_rows<double>("f64", n, UNIT);
  }
  for (int lg : {20, 24, 28}) for (Dist dist : OF_INTEGERS) if (dist != UNIFORM) {
    sort_rows<uint32_t>("u32", size_t(1) << lg, dist); sort_pairs_rows<uint32_t, uint32_t>("u32+u32", size_t(1) << lg, dist);
  }
  size_t n = size_t(1) << 28;
  for (Dist dist : OF_INTEGERS) if (dist != UNIFORM) sort_rows<uint64_t>("u64", n, dist);
  sort_rows<float>("f32", n, NORMAL); sort_rows<double>("f64", n, NORMAL);
  for (int d = 4; d <= 1024; d *= 2) batch_rows(d);
  for (int d : {4, 16, 64, 256, 1024}) segmented_rows(d);
  return 0;
}
