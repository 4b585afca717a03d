// Set operations on two sorted arrays, with values and without, by Thrust, and their merge by CUB.
#include "operations.cuh"
#include <cub/device/device_merge.cuh>
#include <thrust/execution_policy.h>
#include <thrust/set_operations.h>

template <class K> static void rows(const Table<K> &table, Arena &arena, size_t n, Kinds kinds) {
  size_t m = n / 2;
  Dev<K> sides(n), out(n); Dev<uint32_t> values(n), out_values(n);
  fill_sides(sides.p, n, kinds.different); values.random(3);
  K *a = sides.p, *b = a + m; uint32_t *av = values.p, *bv = av + m;
  sort_in_place(a, m); sort_in_place(b, m);
  auto with = thrust::cuda::par(arena);
  auto name = [&](const char *operation) { return std::string(operation) + ", " + kinds.name; };

  Timing merge = time_cub([&](void *tmp, size_t &bytes) { return cub::DeviceMerge::MergeKeys(tmp, bytes, a, (int64_t)m, b, (int64_t)m, out.p); });
  expect(is_sorted(out.p, n) && fingerprint(out.p, n) == fingerprint(sides.p, n), name("merge"), "not the merge");
  table.row(name("merge"), "", n, merge, 2.0 * n * sizeof(K), "cub::DeviceMerge");

  // The numbers of kept keys, by operation.
  auto keys = [&](const char *operation, const char *peer, auto call) {
    K *end = nullptr;
    Timing t = time_thrust(arena, [&] { end = call(); });
    size_t kept = end - out.p;
    expect(is_sorted(out.p, kept), name(operation), "not sorted");
    table.row(name(operation), "", n, t, double(n + kept) * sizeof(K), peer);
    return kept;
  };
  // Only the values of kept keys are read.
  auto pairs = [&](const char *operation, const char *peer, size_t kept, auto call) {
    size_t found = 0;
    Timing t = time_thrust(arena, [&] { found = call().first - out.p; });
    expect(found == kept && is_sorted(out.p, kept), name(operation), "other keys with values");
    table.row(name(operation), "+u32", n, t, double(n + kept) * sizeof(K) + 8.0 * kept, peer);
  };
#define OPERATION(kept, operation, function, ...) \
  size_t kept = keys(operation, "thrust::" #function, [&] { return thrust::function(with, a, a + m, b, b + m, out.p); }); \
  pairs(operation, "thrust::" #function "_by_key", kept, [&] { return thrust::function##_by_key(with, a, a + m, b, b + m, __VA_ARGS__, out.p, out_values.p); });
  OPERATION(of_union, "union", set_union, av, bv)
  OPERATION(of_intersection, "intersection", set_intersection, av)
  OPERATION(of_difference, "difference", set_difference, av, bv)
  OPERATION(of_symmetric, "symmetric-difference", set_symmetric_difference, av, bv)
#undef OPERATION
  bool add_up = of_union + of_intersection == n && of_difference + of_intersection == m && of_symmetric + 2 * of_intersection == n;
  expect(add_up, name("set operations"), "their counts do not add up");
}

int main(int argc, char **argv) {
  Arena arena;
  return run(argc, argv, [&](auto key, size_t n) {
    Table<decltype(key)> table(n);
    for (Kinds kinds : kinds_of_sets(n)) rows(table, arena, n, kinds);
  });
}
