// Groups of equal keys in a sorted array, by CUB: unique keys, alone and with values, run lengths, reductions by key.
#include "operations.cuh"
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_select.cuh>
#include <cuda/functional>

template <class K> static void rows(const Table<K> &table, size_t n, Kinds kinds) {
  Dev<K> keys(n), out(n); Dev<uint32_t> values(n), totals(n); Dev<uint64_t> lengths(n), count(1);
  fill_sides(keys.p, n, kinds.different); sort_in_place(keys.p, n); values.random(3);
  auto name = [&](const char *operation) { return std::string(operation) + ", " + kinds.name; };
  auto groups = [&] { uint64_t groups; CHECK(cudaMemcpy(&groups, count.p, sizeof groups, cudaMemcpyDeviceToHost)); return size_t(groups); };

  Timing t = time_cub([&](void *tmp, size_t &bytes) { return cub::DeviceSelect::Unique(tmp, bytes, keys.p, out.p, count.p, (int64_t)n); });
  size_t g = groups();
  expect(is_sorted(out.p, g), name("unique"), "not sorted");
  table.row(name("unique"), "", n, t, double(n + g) * sizeof(K), "cub::DeviceSelect::Unique");

  // Only the values of the first keys of groups are read.
  t = time_cub([&](void *tmp, size_t &bytes) { return cub::DeviceSelect::UniqueByKey(tmp, bytes, keys.p, values.p, out.p, totals.p, count.p, (int)n); });
  expect(groups() == g, name("unique"), "another number of groups with values");
  table.row(name("unique"), "+u32", n, t, double(n + g) * sizeof(K) + 8.0 * g, "cub::DeviceSelect::UniqueByKey");

  t = time_cub([&](void *tmp, size_t &bytes) { return cub::DeviceRunLengthEncode::Encode(tmp, bytes, keys.p, out.p, lengths.p, count.p, (int)n); });
  expect(groups() == g && sum(lengths.p, g) == n, name("run lengths"), "do not add up");
  table.row(name("run lengths"), "", n, t, double(n + g) * sizeof(K) + 8.0 * g, "cub::DeviceRunLengthEncode");

  double moved = double(n + g) * (sizeof(K) + 4);
  t = time_cub([&](void *tmp, size_t &bytes) { return cub::DeviceReduce::ReduceByKey(tmp, bytes, keys.p, out.p, values.p, totals.p, count.p, cuda::std::plus<>(), (int)n); });
  // Both sums are modulo 2^32, like the sum of a group.
  expect(groups() == g && uint32_t(sum(totals.p, g)) == uint32_t(sum(values.p, n)), name("sum by key"), "do not add up");
  table.row(name("sum by key"), "+u32", n, t, moved, "cub::DeviceReduce::ReduceByKey");

  t = time_cub([&](void *tmp, size_t &bytes) { return cub::DeviceReduce::ReduceByKey(tmp, bytes, keys.p, out.p, values.p, totals.p, count.p, cuda::minimum<>(), (int)n); });
  expect(groups() == g && is_sorted(out.p, g), name("min by key"), "other groups");
  table.row(name("min by key"), "+u32", n, t, moved, "cub::DeviceReduce::ReduceByKey");
}

int main(int argc, char **argv) {
  return run(argc, argv, [](auto key, size_t n) {
    Table<decltype(key)> table(n);
    for (Kinds kinds : kinds_of_sets(n)) rows(table, n, kinds);
  });
}
