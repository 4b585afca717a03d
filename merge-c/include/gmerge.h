// Merges and sorts of arrays on an NVIDIA GPU or on all CPU cores.
//
//     #include <gmerge.h>
//
//     gmerge_engine *engine;
//     double keys[] = {3.5, -1.0, 2.0};
//     gmerge_format format = {GMERGE_F64, GMERGE_ASCENDING, 0};
//     gmerge_output elements = {keys, NULL, 3};
//     if (gmerge_engine_auto(&engine) != GMERGE_OK || gmerge_sort(engine, format, elements) != GMERGE_OK)
//         fprintf(stderr, "%s\n", gmerge_last_error());
//     gmerge_engine_free(engine);
//
// Every sort and every merge is stable: equal keys keep the order of the input. Keys are equal if their bits are.
//
// Lengths are the caller's promise. What can be checked is an error: arrays that are null, not aligned or longer than
// memory, and outputs that overlap another array, where numbers that a call writes and offsets count as arrays. Inputs
// may overlap each other. Values need no alignment, except those of gmerge_reduce_by_key. A call that returns
// GMERGE_INVALID_ARGUMENT has written nothing. After another error, outputs are unspecified, and the elements of a sort
// in place are in an unspecified order.
//
// All functions may be called by several threads at the same time, with the same engine, too. A child process after
// fork() does not use the library if its parent has. No call ends the program.

#ifndef GMERGE_H
#define GMERGE_H

// Made by cbindgen from merge-c/src. A test compares this file.

#include <stddef.h>
#include <stdint.h>

// An engine: what does the work. It may be used by several threads at the same time.
typedef struct gmerge_engine gmerge_engine;

// A GPU with the kernels of this library. It may be used by several threads at the same time.
typedef struct gmerge_gpu gmerge_gpu;

// A stream of the caller, with what this library needs for it. One thread at a time uses it.
typedef struct gmerge_stream gmerge_stream;

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

// Elements in a GPU's memory: `count` keys of 4 or 8 bytes, and a value for each if `format.value_size` is not 0. A
// value has 4 or 8 bytes. The type has no GMERGE_U128 and no other type without kernels.
typedef struct gmerge_device_elements {
  // The address of the keys.
  uint64_t keys;
  // The address of the values. Ignored if `format.value_size` is 0.
  uint64_t values;
  // The number of keys.
  size_t count;
  // 0, or the address of a `uint64_t` in the GPU's memory: the number of elements, of which `count` is the most. So
  // the host need not know it, and launches of a graph may find another number there. Only the first elements count
  // then, and those behind them are unspecified in elements that are sorted or written. A call writes the number of
  // a result. Only the functions that say so take such elements.
  uint64_t number;
} gmerge_device_elements;

// Memory of a GPU for a call. Its contents are unspecified afterwards, and later calls of the stream may use it.
typedef struct gmerge_workspace {
  // The address, a multiple of 16.
  uint64_t address;
  // The number of bytes, at least what the function for the call has said.
  size_t bytes;
} gmerge_workspace;

// Offsets of segments or runs in a GPU's memory. Launches of a graph may find other numbers there.
typedef struct gmerge_device_offsets {
  // The address of `count + 1` numbers of type `uint64_t`: 0 first, at most the number of keys last, and none is
  // less than the one before. Kernels do not check them. Keys behind the last offset are in no segment or run. They
  // are unspecified in elements that are sorted or written.
  uint64_t address;
  // The number of segments or runs.
  size_t count;
} gmerge_device_offsets;

// Elements in consecutive runs, in a GPU's memory.
typedef struct gmerge_device_runs {
  // The elements of all runs.
  struct gmerge_device_elements elements;
  // The offsets of the runs.
  struct gmerge_device_offsets offsets;
} gmerge_device_runs;

// A set operation on sorted arrays, which may have equal keys: a key that is m times in `a` and n times in `b`. Keys
// are equal if their bits are: -0.0 and 0.0 are two keys.
typedef uint32_t gmerge_set_operation;

// A reduction of the values of equal keys.
typedef uint32_t gmerge_reduction;

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
  // `count + 1` offsets, from 0 to `elements.count`: one, which is 0, if there are no runs.
  const size_t *offsets;
  // The number of runs.
  size_t count;
} gmerge_runs;

// `uint8_t`
#define GMERGE_U8 0

// `uint16_t`
#define GMERGE_U16 1

// `uint32_t`
#define GMERGE_U32 2

// `uint64_t`
#define GMERGE_U64 3

// An unsigned number of 16 bytes in the byte order of the machine. Arrays need an alignment of 16.
#define GMERGE_U128 4

// `int8_t`
#define GMERGE_I8 5

// `int16_t`
#define GMERGE_I16 6

// `int32_t`
#define GMERGE_I32 7

// `int64_t`
#define GMERGE_I64 8

// A signed number of 16 bytes in the byte order of the machine. Arrays need an alignment of 16.
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

// All NaNs at the end of the array, in ascending and in descending order. In ascending order, positive NaNs precede
// negative ones. Integers are not affected.
#define GMERGE_NANS_LAST 2

// All NaNs at the beginning of the array, in ascending and in descending order. In ascending order, positive NaNs
// precede negative ones. Integers are not affected.
#define GMERGE_NANS_FIRST 4

// Each key max(m, n) times.
#define GMERGE_UNION 0

// Each key min(m, n) times.
#define GMERGE_INTERSECTION 1

// Each key m - n times, or not at all.
#define GMERGE_DIFFERENCE 2

// Each key |m - n| times.
#define GMERGE_SYMMETRIC_DIFFERENCE 3

// The sum. Integers are added modulo 2^32 or 2^64, and floats are rounded at each addition.
#define GMERGE_SUM 0

// The least value, in total order.
#define GMERGE_MIN 1

// The greatest value, in total order.
#define GMERGE_MAX 2

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

// The engine's threads cannot be started, or their number is not 1 to 4096.
#define GMERGE_NO_THREADS 5

// A defect of this library. The arrays may have changed.
#define GMERGE_INTERNAL_ERROR 6

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Opens the GPU with this number, counted from 0.
//
// # Safety
// `gpu` is null or valid for a write.
gmerge_status gmerge_gpu_open(size_t ordinal, struct gmerge_gpu **gpu);

// Loads the kernels for keys of a type, so that no later call does. Needed before a capture of a graph.
//
// # Safety
// `gpu` is null or a GPU.
gmerge_status gmerge_gpu_prepare(const struct gmerge_gpu *gpu, struct gmerge_format format);

// Frees a GPU. Does nothing if it is null. The kernels stay loaded until its streams are freed, too.
//
// # Safety
// `gpu` is null, or a GPU that has not been freed and that no call uses.
void gmerge_gpu_free(struct gmerge_gpu *gpu);

// Prepares a stream of the caller for this library: a `cudaStream_t` or `CUstream`, of the primary context, which the
// runtime and most libraries use. Null is the default stream. Call this once for a stream, and not for each call.
//
// # Safety
// `gpu` is null or a GPU. `stream` is null or valid for a write. `handle` is a stream of this GPU that is destroyed
// after `*stream` has been freed.
gmerge_status gmerge_stream_open(const struct gmerge_gpu *gpu, void *handle, struct gmerge_stream **stream);

// Frees what this library needs for a stream, which itself stays. Does nothing if `stream` is null.
//
// # Safety
// `stream` is null, or comes from `gmerge_stream_open`, has not been freed, and no call uses it. The work that calls
// have put on it is done, and no graph that has captured such work is launched again.
void gmerge_stream_free(struct gmerge_stream *stream);

// Writes to `bytes` the bytes of workspace of `gmerge_device_merge` into `count` elements. Needs no GPU.
//
// # Safety
// `bytes` is null or valid for a write.
gmerge_status gmerge_device_merge_bytes(struct gmerge_format format, size_t count, size_t *bytes);

// Merges the sorted elements `a` and `b` into `out`. Stable: of equal keys, those of `a` come first. If `a` or `b` has
// a number in the GPU's memory, `out` has a place for its number, too.
//
// # Safety
// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
gmerge_status gmerge_device_merge(const struct gmerge_stream *stream,
                                  struct gmerge_format format,
                                  struct gmerge_device_elements a,
                                  struct gmerge_device_elements b,
                                  struct gmerge_device_elements out,
                                  struct gmerge_workspace workspace);

// Writes to `bytes` the bytes of workspace of `gmerge_device_merge_many` for `count` elements in `runs` runs. Needs no
// GPU.
//
// # Safety
// `bytes` is null or valid for a write.
gmerge_status gmerge_device_merge_many_bytes(struct gmerge_format format, size_t count, size_t runs, size_t *bytes);

// Merges the sorted runs of `from` into `out`, which has room for all of them. Stable. At most 2^32 - 1 elements.
//
// # Safety
// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
gmerge_status gmerge_device_merge_many(const struct gmerge_stream *stream,
                                       struct gmerge_format format,
                                       struct gmerge_device_elements from,
                                       struct gmerge_device_offsets offsets,
                                       struct gmerge_device_elements out,
                                       struct gmerge_workspace workspace);

// Writes to `bytes` the bytes of workspace of `gmerge_device_merge_pairs` into `count` elements. Needs no GPU.
//
// # Safety
// `bytes` is null or valid for a write.
gmerge_status gmerge_device_merge_pairs_bytes(struct gmerge_format format, size_t count, size_t *bytes);

// Merges run `i` of `a` with run `i` of `b`, for all runs. Run `i` of `out` begins at the sum of both offsets. Stable:
// of equal keys, those of `a` come first. Offsets end with the number of elements.
//
// # Safety
// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
gmerge_status gmerge_device_merge_pairs(const struct gmerge_stream *stream,
                                        struct gmerge_format format,
                                        struct gmerge_device_runs a,
                                        struct gmerge_device_runs b,
                                        struct gmerge_device_elements out,
                                        struct gmerge_workspace workspace);

// Writes to `bytes` the bytes of workspace of `gmerge_device_merge_groups` for `count` elements in `runs` runs and
// `groups` groups. Needs no GPU.
//
// # Safety
// `bytes` is null or valid for a write.
gmerge_status gmerge_device_merge_groups_bytes(struct gmerge_format format,
                                               size_t count,
                                               size_t runs,
                                               size_t groups,
                                               size_t *bytes);

// Merges the runs of each group of `from` to the same indices of `out`. Group `i` has the runs with the numbers
// `groups[i]` to `groups[i + 1] - 1`. `groups` ends with the number of runs. Stable.
//
// # Safety
// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
gmerge_status gmerge_device_merge_groups(const struct gmerge_stream *stream,
                                         struct gmerge_format format,
                                         struct gmerge_device_runs from,
                                         struct gmerge_device_offsets groups,
                                         struct gmerge_device_elements out,
                                         struct gmerge_workspace workspace);

// Writes to `bytes` the bytes of workspace of `gmerge_device_sort` for `count` elements. Needs no GPU.
//
// # Safety
// `bytes` is null or valid for a write.
gmerge_status gmerge_device_sort_bytes(struct gmerge_format format, size_t count, size_t *bytes);

// Sorts `elements` in place, as `gmerge_sort` does. Every call of a stream puts work on it, allocates nothing, waits
// for nothing, and can be captured by a graph. The elements may have a number in the GPU's memory.
//
// # Safety
// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
gmerge_status gmerge_device_sort(const struct gmerge_stream *stream,
                                 struct gmerge_format format,
                                 struct gmerge_device_elements elements,
                                 struct gmerge_workspace workspace);

// Writes to `bytes` the bytes of workspace of `gmerge_device_argsort` for `count` keys. Needs no GPU.
//
// # Safety
// `bytes` is null or valid for a write.
gmerge_status gmerge_device_argsort_bytes(struct gmerge_format format, size_t count, size_t index_size, size_t *bytes);

// Sorts `keys` in place, and writes the index of each key before the sort to `indices`, as numbers of `index_size`
// bytes, 4 or 8. Values are ignored. The keys may have a number in the GPU's memory.
//
// # Safety
// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
gmerge_status gmerge_device_argsort(const struct gmerge_stream *stream,
                                    struct gmerge_format format,
                                    struct gmerge_device_elements keys,
                                    uint64_t indices,
                                    size_t index_size,
                                    struct gmerge_workspace workspace);

// Writes to `bytes` the bytes of workspace of `gmerge_device_sort_segments` for `count` elements. Needs no GPU.
//
// # Safety
// `bytes` is null or valid for a write.
gmerge_status gmerge_device_sort_segments_bytes(struct gmerge_format format, size_t count, size_t *bytes);

// Sorts each segment of `elements` by itself, in place.
//
// # Safety
// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
gmerge_status gmerge_device_sort_segments(const struct gmerge_stream *stream,
                                          struct gmerge_format format,
                                          struct gmerge_device_elements elements,
                                          struct gmerge_device_offsets offsets,
                                          struct gmerge_workspace workspace);

// Writes the offsets of runs or segments whose lengths are `offsets.count` numbers of type `uint64_t` at the address
// `lengths` to `offsets`, one behind another. `number` is 0, or the address of the number of lengths that count, a
// `uint64_t`: the runs behind them are empty. The parts of runs behind key `most`, the number of keys, are left out.
//
// # Safety
// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
gmerge_status gmerge_device_set_offsets(const struct gmerge_stream *stream,
                                        uint64_t lengths,
                                        uint64_t number,
                                        size_t most,
                                        struct gmerge_device_offsets offsets);

// Writes to `bytes` the bytes of workspace of `gmerge_device_top_k` for the first `k` of `count` elements. Needs no
// GPU.
//
// # Safety
// `bytes` is null or valid for a write.
gmerge_status gmerge_device_top_k_bytes(struct gmerge_format format, size_t count, size_t k, size_t *bytes);

// Writes to `out` the first `out.count` of the elements `from` in the order of `format`, sorted. If `from` has a
// number in the GPU's memory, `out` has a place for its number, too: all elements of `from` are taken if there are
// fewer.
//
// # Safety
// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
gmerge_status gmerge_device_top_k(const struct gmerge_stream *stream,
                                  struct gmerge_format format,
                                  struct gmerge_device_elements from,
                                  struct gmerge_device_elements out,
                                  struct gmerge_workspace workspace);

// Writes to `bytes` the bytes of workspace of `gmerge_device_argsort_segments` for `count` keys. Needs no GPU.
//
// # Safety
// `bytes` is null or valid for a write.
gmerge_status gmerge_device_argsort_segments_bytes(struct gmerge_format format,
                                                   size_t count,
                                                   size_t index_size,
                                                   size_t *bytes);

// Sorts each segment of `keys` by itself, in place, and writes the index of each key in the whole array before the
// sort to `indices`, as numbers of `index_size` bytes, 4 or 8. Values are ignored.
//
// # Safety
// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
gmerge_status gmerge_device_argsort_segments(const struct gmerge_stream *stream,
                                             struct gmerge_format format,
                                             struct gmerge_device_elements keys,
                                             struct gmerge_device_offsets offsets,
                                             uint64_t indices,
                                             size_t index_size,
                                             struct gmerge_workspace workspace);

// Writes to `bytes` the bytes of workspace of `gmerge_device_set` for `count` elements of both arrays. Needs no GPU.
//
// # Safety
// `bytes` is null or valid for a write.
gmerge_status gmerge_device_set_bytes(struct gmerge_format format, size_t count, size_t *bytes);

// Writes the elements of the sorted `a` and `b` that a set operation keeps to `out`, and their number to the
// `uint64_t` at the address `count` in the GPU's memory. Of two equal keys the key of `a` is kept, with its value.
// `out.count` is at least the number of elements that any `a` and `b` of these lengths could give. `a` and `b` may
// have a number in the GPU's memory.
//
// # Safety
// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
gmerge_status gmerge_device_set(const struct gmerge_stream *stream,
                                struct gmerge_format format,
                                gmerge_set_operation operation,
                                struct gmerge_device_elements a,
                                struct gmerge_device_elements b,
                                struct gmerge_device_elements out,
                                uint64_t count,
                                struct gmerge_workspace workspace);

// Writes to `bytes` the bytes of workspace of `gmerge_device_unique` for `count` elements. Needs no GPU.
//
// # Safety
// `bytes` is null or valid for a write.
gmerge_status gmerge_device_unique_bytes(struct gmerge_format format, size_t count, size_t *bytes);

// Writes the first element of each group of equal keys of the sorted `from` to `out`, which has the length of `from`.
// Writes the number of groups to the `uint64_t` at the address `count` in the GPU's memory. `from` may have a number
// there, too.
//
// # Safety
// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
gmerge_status gmerge_device_unique(const struct gmerge_stream *stream,
                                   struct gmerge_format format,
                                   struct gmerge_device_elements from,
                                   struct gmerge_device_elements out,
                                   uint64_t count,
                                   struct gmerge_workspace workspace);

// Writes the first key of each group of equal keys of the sorted `from` to the keys of `out`, and the number of its
// keys to the values, which are numbers of type `uint64_t`. All else is as for `gmerge_device_unique`, with its
// workspace. Values of `from` are ignored.
//
// # Safety
// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
gmerge_status gmerge_device_run_lengths(const struct gmerge_stream *stream,
                                        struct gmerge_format format,
                                        struct gmerge_device_elements from,
                                        struct gmerge_device_elements out,
                                        uint64_t count,
                                        struct gmerge_workspace workspace);

// Writes the first key of each group of equal keys of the sorted `from` to `out`, with the reduction of the group's
// values. `value_type` is their type, as for `gmerge_reduce_by_key`. All else is as for `gmerge_device_unique`, with
// its workspace.
//
// # Safety
// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
gmerge_status gmerge_device_reduce_by_key(const struct gmerge_stream *stream,
                                          struct gmerge_format format,
                                          gmerge_reduction reduction,
                                          gmerge_type value_type,
                                          struct gmerge_device_elements from,
                                          struct gmerge_device_elements out,
                                          uint64_t count,
                                          struct gmerge_workspace workspace);

// Writes to `bytes` the bytes of workspace of `gmerge_device_bounds` for `count` needles and keys together. Needs no
// GPU.
//
// # Safety
// `bytes` is null or valid for a write.
gmerge_status gmerge_device_bounds_bytes(struct gmerge_format format, size_t count, size_t *bytes);

// Writes to `bounds` the number of `keys` that are less than each of the `needles`, or less or equal if `is_upper` is
// not 0, as numbers of `index_size` bytes, 4 or 8. Both are sorted. Values are ignored. Both may have a number in the
// GPU's memory; the bounds of the first needles are written then.
//
// # Safety
// `stream` is null or a stream. The arrays are in memory that its GPU can access, and have the lengths that their
// structs say. Nothing else uses them until the stream has done the work, at each launch of a graph.
gmerge_status gmerge_device_bounds(const struct gmerge_stream *stream,
                                   struct gmerge_format format,
                                   int32_t is_upper,
                                   struct gmerge_device_elements needles,
                                   struct gmerge_device_elements keys,
                                   uint64_t bounds,
                                   size_t index_size,
                                   struct gmerge_workspace workspace);

// Makes an engine that chooses the CPU or GPU 0 for each call. It opens the CUDA driver at the first call that is
// worth a GPU, and uses the CPU if there is none. If the call fails, `*engine` is null, as for all functions that make
// something.
//
// # Safety
// `engine` is null or valid for a write.
gmerge_status gmerge_engine_auto(struct gmerge_engine **engine);

// Makes an engine that uses the CPU, with this number of threads, at most 4096, or with one thread for each core if it
// is 0.
//
// # Safety
// `engine` is null or valid for a write.
gmerge_status gmerge_engine_cpu(size_t threads, struct gmerge_engine **engine);

// Makes an engine that uses the GPU with this number, counted from 0. Every call uses this GPU or fails.
//
// # Safety
// `engine` is null or valid for a write.
gmerge_status gmerge_engine_gpu(size_t ordinal, struct gmerge_engine **engine);

// Makes an engine that uses the `count` GPUs with these numbers, counted from 0, or all GPUs if `count` is 0. Each GPU
// does a part of every sort and merge. Results do not depend on the number of GPUs or on their order.
//
// # Safety
// `ordinals` is null or has `count` elements. `engine` is null or valid for a write.
gmerge_status gmerge_engine_gpus(const size_t *ordinals, size_t count, struct gmerge_engine **engine);

// Frees an engine. Does nothing if it is null.
//
// # Safety
// `engine` is null, or comes from a function of this library, has not been freed, and no call uses it.
void gmerge_engine_free(struct gmerge_engine *engine);

// Returns the memory that sorts on the CPU have kept for later calls to the system: up to 64 MiB in the whole
// process.
void gmerge_release_memory(void);

// Merges `count` sorted runs into `out`, which has the number of elements of all runs. Stable: of equal keys, those of
// an earlier run come first. If a run is not sorted, the result is unspecified.
//
// # Safety
// `engine` is null or an engine. `runs` is null or has `count` elements. Each array is null or has the `count`
// elements of its run.
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

// Merges the runs of each group of `from` to the same indices of `out`. Group `i` has the runs with the numbers
// `groups[i]` to `groups[i + 1] - 1`, so there are `group_count + 1` numbers, from 0 to `from.count`. Stable.
//
// # Safety
// As for `gmerge_merge_pairs`; `groups` is null or has `group_count + 1` elements.
gmerge_status gmerge_merge_groups(const struct gmerge_engine *engine,
                                  struct gmerge_format format,
                                  struct gmerge_runs from,
                                  const size_t *groups,
                                  size_t group_count,
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

// Writes to `out` the first `out.count` of the elements `from` in the order of `format`, sorted. `out.count` is at
// most `from.count`.
//
// # Safety
// `engine` is null or an engine. The arrays are null or have `count` elements.
gmerge_status gmerge_top_k(const struct gmerge_engine *engine,
                           struct gmerge_format format,
                           struct gmerge_input from,
                           struct gmerge_output out);

// Writes to `indices` the indices of the first `k` of `keys` in the order of `format`, sorted. These are the first `k`
// indices that `gmerge_argsort` writes. An index has `index_size` bytes, 4 or 8. `k` is at most `keys.count`. Values
// are ignored.
//
// # Safety
// `engine` is null or an engine. The keys are null or have `keys.count` elements, and `indices` is null or has `k`.
gmerge_status gmerge_top_k_indices(const struct gmerge_engine *engine,
                                   struct gmerge_format format,
                                   struct gmerge_input keys,
                                   void *indices,
                                   size_t index_size,
                                   size_t k);

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

// Writes the first key of each group of equal keys of the sorted `from` to `out`, with the reduction of the group's
// values, and the number of groups to `count`. `value_type` is the type of the values: GMERGE_U32, GMERGE_I32,
// GMERGE_F32, GMERGE_U64, GMERGE_I64 or GMERGE_F64; `format.value_size` is its size. `out.count` is the number of
// groups that `out` has room for.
//
// # Safety
// `engine` is null or an engine. The arrays are null or have `count` elements. `count` is null or valid for a write.
gmerge_status gmerge_reduce_by_key(const struct gmerge_engine *engine,
                                   struct gmerge_format format,
                                   gmerge_reduction reduction,
                                   gmerge_type value_type,
                                   struct gmerge_input from,
                                   struct gmerge_output out,
                                   size_t *count);

// Writes to `bounds` the number of `keys` that come before each of the `needles`, or before or equal to it if
// `is_upper` is not 0. Both are sorted in the order of `format`. A bound has `index_size` bytes, 4 or 8, and there is
// one for each needle. Values are ignored.
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
// found. Empty if no call has failed. A call that succeeds does not change it. It is valid until the next call of this
// thread that fails.
const char *gmerge_last_error(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* GMERGE_H */
