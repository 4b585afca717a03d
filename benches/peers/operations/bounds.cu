// Bounds of sorted needles in a sorted array, by Thrust.
#include "operations.cuh"
#include <thrust/binary_search.h>
#include <thrust/execution_policy.h>

// Counts wrong bounds: the key before a bound must precede the bound, and the key at the bound must not.
template <class K> __global__ void count_wrong(const K *needles, const K *keys, const uint32_t *bounds, size_t m, bool upper, unsigned long long *count) {
  auto before = [&](K key, K needle) { return upper ? key <= needle : key < needle; };
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < m; i += (size_t)gridDim.x * blockDim.x) {
    size_t bound = bounds[i];
    bool right = bound <= m && (bound == 0 || before(keys[bound - 1], needles[i])) && (bound == m || !before(keys[bound], needles[i]));
    if (!right) atomicAdd(count, 1);
  }
}

template <class K> static void rows(const Table<K> &table, Arena &arena, size_t n, Kinds kinds) {
  size_t m = n / 2;
  Dev<K> sides(n); Dev<uint32_t> bounds(m);
  fill_sides(sides.p, n, kinds.different);
  K *needles = sides.p, *keys = needles + m;
  sort_in_place(needles, m); sort_in_place(keys, m);
  auto with = thrust::cuda::par(arena);
  auto row = [&](bool upper, const char *operation, const char *peer, auto call) {
    std::string name = std::string(operation) + ", " + kinds.name;
    Timing t = time_thrust(arena, call);
    bool right = counted([&](unsigned long long *count) { count_wrong<<<1024, 256>>>(needles, keys, bounds.p, m, upper, count); }) == 0;
    expect(right, name, "not the bounds");
    table.row(name, "", n, t, double(n) * sizeof(K) + 4.0 * m, peer);
  };
  row(false, "lower bounds", "thrust::lower_bound", [&] { thrust::lower_bound(with, keys, keys + m, needles, needles + m, bounds.p); });
  row(true, "upper bounds", "thrust::upper_bound", [&] { thrust::upper_bound(with, keys, keys + m, needles, needles + m, bounds.p); });
}

int main(int argc, char **argv) {
  Arena arena;
  return run(argc, argv, [&](auto key, size_t n) {
    Table<decltype(key)> table(n);
    for (Kinds kinds : kinds_of_sets(n)) rows(table, arena, n, kinds);
  });
}
