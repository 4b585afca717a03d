// Times of NVIDIA's libraries CUB and Thrust, of a batch kernel as the course asks for it, and of a plain device copy,
// on the same work as this project. Each row is one JSON object on standard output.
//
//   nvcc -O3 -std=c++17 -arch=sm_90 peers.cu -o peers && ./peers [part of an op's name]
//   ./peers --digest       prints the digests of the keys of the sorts, and needs no GPU
//
// A row: {"op", "type", "n", "dist", "ms" (median), "min_ms", "gbs" (each input and output byte once / time), "gkeys"}.
// Rows of sorts also have the "digest" of their keys. The keys equal the keys of tests/src/distribution.rs, bit for
// bit.
#include "common.cuh"
#include <cub/cub.cuh>
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/merge.h>

static const char *g_filter = "";
static bool wanted(const std::string &op) { return op.find(g_filter) != std::string::npos; }

static void row(const char *op, const char *type, size_t n, const char *dist, Timing t, double bytes, const char *more = "") {
  printf("{\"op\":\"%s\",\"type\":\"%s\",\"n\":%zu,\"dist\":\"%s\",\"ms\":%.5f,\"min_ms\":%.5f,\"gbs\":%.1f,\"gkeys\":%.3f%s}\n",
         op, type, n, dist, t.median, t.min, bytes / t.median / 1e6, n / t.median / 1e6, more);
  fflush(stdout);
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

// Sorts of keys with their indices as values.
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

// An argsort of uniform keys with indices of type u32: the indices are made, and sorted as values. Both steps are
// timed.
template <class K> static void argsort_rows(const char *type, size_t n) {
  if (!wanted("cub_radix_argsort")) return;
  Dev<K> in(n), b(n); Dev<uint32_t> va(n), vb(n); std::string more = in.keys(UNIFORM);
  size_t bytes = 0; CHECK(cub::DeviceRadixSort::SortPairs(nullptr, bytes, in.p, b.p, va.p, vb.p, n)); Dev<char> tmp(bytes);
  row("cub_radix_argsort", type, n, "uniform", time_it({}, [&] {
    fill<<<1024, 256>>>(va.p, n, SORTED);
    CHECK(cub::DeviceRadixSort::SortPairs(tmp.p, bytes, in.p, b.p, va.p, vb.p, n));
  }, n > (1u << 28) ? 5 : 11), 1.0 * n * (sizeof(K) + 4), more.c_str());
}

// The batch merge of the course, one thread per output element, as in its question 5: tidx = threadIdx % d, one
// diagonal binary search per thread, arrays read directly from global memory.
template <class K> __global__ void merge_small_batch(const K *a, const K *b, K *c, int la, int d, size_t batches) {
  int tidx = threadIdx.x % d, qt = (threadIdx.x - tidx) / d; size_t g = qt + blockIdx.x * (size_t)(blockDim.x / d);
  if (g >= batches) return;
  const K *A = a + g * la; int lb = d - la; const K *B = b + g * lb;
  int lo = max(0, tidx - lb), hi = min(tidx, la);
  while (lo < hi) { int mid = (lo + hi) / 2; if (A[mid] <= B[tidx - mid - 1]) lo = mid + 1; else hi = mid; }
  int i = lo, j = tidx - lo;
  c[g * d + tidx] = (i < la && (j >= lb || A[i] <= B[j])) ? A[i] : B[j];
}

// `n / len` ascending runs of `len` random keys each, and the remaining keys.
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
