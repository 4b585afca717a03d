// Merges and sorts of arrays on an NVIDIA GPU or on all CPU cores.
//
//     #include <gmerge.h>
//
//     gmerge_engine *engine;
//     double keys[] = {3.5, -1.0, 2.0};
//     gmerge_format format = {GMERGE_F64, GMERGE_ASCENDING, 0};
//     gmerge_output elements = {keys, NULL, 3};
//     if (gmerge_engine_auto(&engine) != GMERGE_OK || gmerge_sort(engine, format, elements) != GMERGE_OK)
//         fprintf(stderr, "%s\\n", gmerge_last_error());
//     gmerge_engine_free(engine);
//
// Every sort and every merge is stable: equal keys keep the order of the input. A call with a wrong argument writes
// nothing. Arrays that are null, not aligned or longer than memory, and outputs that overlap another array, are errors.
// All functions may be called by several threads at the same time, with the same engine, too. No call ends the program.

#ifndef GMERGE_H
#define GMERGE_H

// Made by cbindgen from merge-c/src. A test compares this file.

#include <stddef.h>
#include <stdint.h>

// An engine: what does the work. It may be used by several threads at the same time.
typedef struct gmerge_engine gmerge_engine;

// The result of a call. `gmerge_last_error` describes a result other than `GMERGE_OK`.
typedef int32_t gmerge_status;

// The type of keys.
typedef uint32_t gmerge_type;

// The order of keys: a sum of the constants below. 0 is ascending, with floats in IEEE 754's total order: negative
// NaNs first, other NaNs last, and -0.0 before 0.0.
typedef uint32_t gmerge_order;

// What the arrays of a call have.
typedef struct gmerge_format {
  // The type of the keys.
  gmerge_type key_type;
  // The order of the keys. Runs of a merge, and arrays of other operations on sorted arrays, have this order.
  gmerge_order order;
  // Bytes of a value, or 0 for keys without values. Values of 4 and of 8 bytes that have the alignment of a number
  // of that size take the least time.
  size_t value_size;
} gmerge_format;

// Elements that a call reads: `count` keys, and a value for each if `format.value_size` is not 0.
typedef struct gmerge_input {
  // The keys, with the alignment of their type. May be null if `count` is 0.
  const void *keys;
  // The values. Ignored if `format.value_size` is 0.
  const void *values;
  // The number of keys.
  size_t count;
} gmerge_input;

// Elements that a call writes: `count` keys, and a value for each if `format.value_size` is not 0.
typedef struct gmerge_output {
  // The keys, with the alignment of their type. May be null if `count` is 0.
  void *keys;
  // The values. Ignored if `format.value_size` is 0.
  void *values;
  // The number of keys.
  size_t count;
} gmerge_output;

// Elements in consecutive runs: run `i` has the elements with the indices `offsets[i]` to `offsets[i + 1] - 1`.
typedef struct gmerge_runs {
  // The elements of all runs.
  struct gmerge_input elements;
  // `count + 1` offsets, from 0 to `elements.count`.
  const size_t *offsets;
  // The number of runs.
  size_t count;
} gmerge_runs;

// A set operation on sorted arrays, which may have equal keys: a key that is m times in `a` and n times in `b`.
typedef uint32_t gmerge_set_operation;

// `uint8_t`
#define GMERGE_U8 0

// `uint16_t`
#define GMERGE_U16 1

// `uint32_t`
#define GMERGE_U32 2

// `uint64_t`
#define GMERGE_U64 3

// An unsigned number of 16 bytes in the byte order of the machine.
#define GMERGE_U128 4

// `int8_t`
#define GMERGE_I8 5

// `int16_t`
#define GMERGE_I16 6

// `int32_t`
#define GMERGE_I32 7

// `int64_t`
#define GMERGE_I64 8

// A signed number of 16 bytes in the byte order of the machine.
#define GMERGE_I128 9

// An IEEE 754 number of 2 bytes.
#define GMERGE_F16 10

// `float`
#define GMERGE_F32 11

// `double`
#define GMERGE_F64 12

// Ascending, in total order.
#define GMERGE_ASCENDING 0

// Descending.
#define GMERGE_DESCENDING 1

// All NaNs at the end of the array, in ascending and in descending order.
#define GMERGE_NANS_LAST 2

// All NaNs at the beginning of the array, in ascending and in descending order.
#define GMERGE_NANS_FIRST 4

// Each key max(m, n) times.
#define GMERGE_UNION 0

// Each key min(m, n) times.
#define GMERGE_INTERSECTION 1

// Each key m - n times, or not at all.
#define GMERGE_DIFFERENCE 2

// Each key |m - n| times.
#define GMERGE_SYMMETRIC_DIFFERENCE 3

// The call has done its work.
#define GMERGE_OK 0

// An argument is wrong. Nothing has been written.
#define GMERGE_INVALID_ARGUMENT 1

// There is not enough memory on the host or on the GPU.
#define GMERGE_OUT_OF_MEMORY 2

// There is no GPU, no driver, or no kernel for the type of the keys.
#define GMERGE_NO_GPU 3

// A call of the CUDA driver failed.
#define GMERGE_DEVICE_ERROR 4

// The system refuses to start threads.
#define GMERGE_NO_THREADS 5

// A defect of this library.
#define GMERGE_INTERNAL_ERROR 6

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes an engine that chooses the CPU or GPU 0 for each call. It opens the CUDA driver at the first call that is
// worth a GPU, and uses the CPU if there is none.
//
// # Safety
// `engine` is null or valid for a write.
gmerge_status gmerge_engine_auto(struct gmerge_engine **engine);

// Makes an engine that uses the CPU, with this number of threads, or with one thread for each core if it is 0.
//
// # Safety
// `engine` is null or valid for a write.
gmerge_status gmerge_engine_cpu(size_t threads, struct gmerge_engine **engine);

// Makes an engine that uses the GPU with this number, counted from 0. Every call uses this GPU or fails.
//
// # Safety
// `engine` is null or valid for a write.
gmerge_status gmerge_engine_gpu(size_t ordinal, struct gmerge_engine **engine);

// Frees an engine. Does nothing if it is null.
//
// # Safety
// `engine` is null, or comes from a function of this library, has not been freed, and no call uses it.
void gmerge_engine_free(struct gmerge_engine *engine);

// Merges `count` sorted runs into `out`, which has room for all elements. Stable: of equal keys, those of an earlier
// run come first. If a run is not sorted, the result is unspecified.
//
// # Safety
// `engine` is null or an engine, `runs` is null or has `count` elements, and all arrays are null or have as many
// elements as their `count` says.
gmerge_status gmerge_merge(const struct gmerge_engine *engine,
                           struct gmerge_format format,
                           const struct gmerge_input *runs,
                           size_t count,
                           struct gmerge_output out);

// Merges run `i` of `a` with run `i` of `b`, for all runs. Run `i` of `out` begins at the sum of both offsets. Stable:
// of equal keys, those of `a` come first.
//
// # Safety
// As for `gmerge_merge`; the offsets are null or have `count + 1` elements.
gmerge_status gmerge_merge_pairs(const struct gmerge_engine *engine,
                                 struct gmerge_format format,
                                 struct gmerge_runs a,
                                 struct gmerge_runs b,
                                 struct gmerge_output out);

// Sorts `elements` in place. Stable: equal keys keep their order.
//
// # Safety
// `engine` is null or an engine. The arrays of `elements` are null or have `elements.count` elements.
gmerge_status gmerge_sort(const struct gmerge_engine *engine,
                          struct gmerge_format format,
                          struct gmerge_output elements);

// Sorts each segment of `elements` by itself, in place. Stable. Segment `i` has the elements with the indices
// `offsets[i]` to `offsets[i + 1] - 1`, so there are `segments + 1` offsets, from 0 to `elements.count`.
//
// # Safety
// As for `gmerge_sort`; `offsets` is null or has `segments + 1` elements.
gmerge_status gmerge_sort_segments(const struct gmerge_engine *engine,
                                   struct gmerge_format format,
                                   struct gmerge_output elements,
                                   const size_t *offsets,
                                   size_t segments);

// Sorts `elements` in place, keeps the first of equal keys with its value, and writes the number of elements that are
// left to `count`. The elements behind them are unspecified.
//
// # Safety
// As for `gmerge_sort`; `count` is null or valid for a write.
gmerge_status gmerge_sort_unique(const struct gmerge_engine *engine,
                                 struct gmerge_format format,
                                 struct gmerge_output elements,
                                 size_t *count);

// Writes to `indices` the permutation that sorts `keys`, which do not change. Stable. An index has `index_size` bytes,
// 4 or 8, and there is one for each key. Values are ignored.
//
// # Safety
// `engine` is null or an engine. The arrays are null or have `keys.count` elements.
gmerge_status gmerge_argsort(const struct gmerge_engine *engine,
                             struct gmerge_format format,
                             struct gmerge_input keys,
                             void *indices,
                             size_t index_size);

// Writes to `out` the first `out.count` of the elements `from` in the order of `format`, sorted.
//
// # Safety
// `engine` is null or an engine. The arrays are null or have `count` elements.
gmerge_status gmerge_top_k(const struct gmerge_engine *engine,
                           struct gmerge_format format,
                           struct gmerge_input from,
                           struct gmerge_output out);

// Writes the result of a set operation on the sorted keys of `a` and `b` to `out`, and its number of keys to `count`.
// `out.count` is the number of keys that `out` has room for. Values are ignored.
//
// # Safety
// `engine` is null or an engine. The arrays are null or have `count` elements. `count` is null or valid for a write.
gmerge_status gmerge_set(const struct gmerge_engine *engine,
                         struct gmerge_format format,
                         gmerge_set_operation operation,
                         struct gmerge_input a,
                         struct gmerge_input b,
                         struct gmerge_output out,
                         size_t *count);

// Writes the first key of each group of equal keys of the sorted `from` to `out`, the number of its keys to `lengths`
// unless that is null, and the number of groups to `count`. `out.count` is the number of groups that `out` and
// `lengths` have room for. Values are ignored.
//
// # Safety
// `engine` is null or an engine. The arrays are null or have `count` elements, and `lengths` has `out.count`. `count`
// is null or valid for a write.
gmerge_status gmerge_unique(const struct gmerge_engine *engine,
                            struct gmerge_format format,
                            struct gmerge_input from,
                            struct gmerge_output out,
                            uint64_t *lengths,
                            size_t *count);

// Writes to `bounds` the number of `keys` that are less than each of the `needles`, or less or equal if `is_upper` is
// not 0. Both are sorted. A bound has `index_size` bytes, 4 or 8, and there is one for each needle.
//
// # Safety
// `engine` is null or an engine. The arrays are null or have `count` elements, and `bounds` has `needles.count`.
gmerge_status gmerge_bounds(const struct gmerge_engine *engine,
                            struct gmerge_format format,
                            int32_t is_upper,
                            struct gmerge_input needles,
                            struct gmerge_input keys,
                            void *bounds,
                            size_t index_size);

// The message of the last call of this thread that failed: which argument is wrong, what was expected and what was
// found. Empty if no call has failed. It is valid until the thread's next call of this library.
const char *gmerge_last_error(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* GMERGE_H */
