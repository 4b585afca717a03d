// What NVIDIA's libraries CUB and Thrust, a batch kernel written as the course asks for it, and a plain device copy do on
// the same work as this project, on keys made in the same way. Each row is one JSON object on standard output.
//
//   nvcc -O3 -std=c++17 -arch=sm_90 peers.cu -o peers && ./peers [part of an op's name]
//
// A row: {"op", "type", "n", "dist", "ms" (median), "min_ms", "gbs" (each input and output byte once / time), "gkeys"}
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

static void row(const char *op, const char *type, size_t n, const char *dist, Timing t, double bytes) {
  printf("{\"op\":\"%s\",\"type\":\"%s\",\"n\":%zu,\"dist\":\"%s\",\"ms\":%.5f,\"min_ms\":%.5f,\"gbs\":%.1f,\"gkeys\":%.3f}\n",
         op, type, n, dist, t.median, t.min, bytes / t.median / 1e6, n / t.median / 1e6);
  fflush(stdout);
}

template <class K> __global__ void fill_random(K *p, size_t n, uint64_t seed, uint64_t mask) {
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x) {
    uint64_t z = seed + i * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull; z = (z ^ (z >> 27)) * 0x94d049bb133111ebull; z ^= z >> 31;
    if constexpr (std::is_floating_point_v<K>) p[i] = (K)(z >> 11) * (K)(1.0 / 9007199254740992.0);
    else p[i] = (K)(z & mask);
  }
}

template <class K> struct Dev {
  K *p = nullptr; size_t n;
  explicit Dev(size_t n) : n(n) { CHECK(cudaMalloc(&p, std::max<size_t>(n, 1) * sizeof(K))); }
  ~Dev() { cudaFree(p); }
  void random(uint64_t seed, uint64_t mask = ~0ull) { fill_random<<<1024, 256>>>(p, n, seed, mask); CHECK(cudaGetLastError()); }
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

template <class K> static void sort_rows(const char *type, size_t n, const char *dist, uint64_t mask) {
  Dev<K> in(n), a(n), b(n); in.random(1, mask);
  if (!strcmp(dist, "sorted")) sort_in_place(in.p, n);
  int reps = n > (1u << 28) ? 5 : 11;
  auto reset = [&] { CHECK(cudaMemcpyAsync(a.p, in.p, n * sizeof(K), cudaMemcpyDeviceToDevice)); };
  if (wanted("cub_merge_sort_keys")) {
    size_t bytes = 0; CHECK(cub::DeviceMergeSort::StableSortKeys(nullptr, bytes, a.p, (int64_t)n, Less())); Dev<char> tmp(bytes);
    row("cub_merge_sort_keys", type, n, dist, time_it(reset, [&] { CHECK(cub::DeviceMergeSort::StableSortKeys(tmp.p, bytes, a.p, (int64_t)n, Less())); }, reps), 2.0 * n * sizeof(K));
  }
  if (wanted("cub_radix_sort_keys")) {
    size_t bytes = 0; CHECK(cub::DeviceRadixSort::SortKeys(nullptr, bytes, a.p, b.p, n)); Dev<char> tmp(bytes);
    row("cub_radix_sort_keys", type, n, dist, time_it(reset, [&] { CHECK(cub::DeviceRadixSort::SortKeys(tmp.p, bytes, a.p, b.p, n)); }, reps), 2.0 * n * sizeof(K));
  }
  Dev<uint32_t> vin(n), va(n), vb(n); vin.random(9);
  auto resetv = [&] { reset(); CHECK(cudaMemcpyAsync(va.p, vin.p, n * 4, cudaMemcpyDeviceToDevice)); };
  if (wanted("cub_merge_sort_pairs")) {
    size_t bytes = 0; CHECK(cub::DeviceMergeSort::StableSortPairs(nullptr, bytes, a.p, va.p, (int64_t)n, Less())); Dev<char> tmp(bytes);
    row("cub_merge_sort_pairs", type, n, dist, time_it(resetv, [&] { CHECK(cub::DeviceMergeSort::StableSortPairs(tmp.p, bytes, a.p, va.p, (int64_t)n, Less())); }, reps), 2.0 * n * (sizeof(K) + 4));
  }
  if (wanted("cub_radix_sort_pairs")) {
    size_t bytes = 0; CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, a.p, b.p, va.p, vb.p, n)); Dev<char> tmp(bytes);
    row("cub_radix_sort_pairs", type, n, dist, time_it(resetv, [&] { CHECK(cub::DeviceRadixSort::SortPairs(tmp.p, bytes, a.p, b.p, va.p, vb.p, n)); }, reps), 2.0 * n * (sizeof(K) + 4));
  }
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
  if (argc > 1) g_filter = argv[1];
  cudaDeviceProp p; CHECK(cudaGetDeviceProperties(&p, 0));
  fprintf(stderr, "%s, CUB %d\n", p.name, CUB_VERSION);
  copy_rows();
  for (int lg : {10, 14, 16, 18, 20, 22, 24, 26, 28, 30}) merge_rows<uint32_t>("u32", size_t(1) << lg, "uniform", ~0ull);
  merge_rows<uint32_t>("u32", size_t(1) << 28, "dups16", 15);
  for (int lg : {20, 24, 28}) { merge_rows<uint64_t>("u64", size_t(1) << lg, "uniform", ~0ull); merge_rows<float>("f32", size_t(1) << lg, "uniform", ~0ull); }
  for (int lg : {10, 14, 16, 18, 20, 22, 24, 26, 28, 30}) sort_rows<uint32_t>("u32", size_t(1) << lg, "uniform", ~0ull);
  sort_rows<uint32_t>("u32", size_t(1) << 28, "dups16", 15); sort_rows<uint32_t>("u32", size_t(1) << 28, "sorted", ~0ull);
  for (int lg : {20, 24, 28}) { sort_rows<uint64_t>("u64", size_t(1) << lg, "uniform", ~0ull); sort_rows<float>("f32", size_t(1) << lg, "uniform", ~0ull); }
  sort_rows<uint64_t>("u64", size_t(1) << 28, "sorted", ~0ull);
  for (int d = 4; d <= 1024; d *= 2) batch_rows(d);
  for (int d : {4, 16, 64, 256, 1024}) segmented_rows(d);
  return 0;
}
