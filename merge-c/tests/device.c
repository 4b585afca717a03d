/* Calls every function for arrays in a GPU's memory, directly and by a graph, and compares the results with those of an
 * engine of the CPU. Needs a GPU and the CUDA runtime:
 *
 *     cc device.c -lgmerge -lcudart
 */
#include "check.h"

#include <cuda_runtime_api.h>

#define CUDA(call) CHECK((call) == cudaSuccess)

enum { MOST = 200000 };

static unsigned checks;
static gmerge_engine *engine;
static gmerge_stream *stream;
static cudaStream_t handle;
static char *on_gpu, *memory;
static char keys[8 * MOST], values[8 * MOST], want[8 * MOST], want_values[8 * MOST], found[8 * MOST];
static const size_t most_bytes = (size_t)64 << 20;

/* The parts of `on_gpu`. */
static char *part(int i) { return on_gpu + (size_t)8 * MOST * (size_t)i; }

static gmerge_device_elements elements(int i, size_t count) {
    gmerge_device_elements result = {(uintptr_t)part(2 * i), (uintptr_t)part(2 * i + 1), count, 0};
    return result;
}

/* The number of some elements in the GPU's memory. */
static uint64_t *place_of(int i) { return (uint64_t *)(part(8) + 256) + i; }

/* Elements whose number is in the GPU's memory: as many as `number` there says. */
static gmerge_device_elements counted(int i, size_t most) {
    gmerge_device_elements result = elements(i, most);
    result.number = (uintptr_t)place_of(i);
    return result;
}

static void upload(int i, const void *from, size_t bytes) {
    CUDA(cudaMemcpyAsync(part(i), from, bytes, cudaMemcpyHostToDevice, handle));
}

static void check(int i, const void *expected, size_t bytes) {
    CUDA(cudaMemcpyAsync(found, part(i), bytes, cudaMemcpyDeviceToHost, handle));
    CUDA(cudaStreamSynchronize(handle));
    CHECK(memcmp(found, expected, bytes) == 0);
    checks++;
}

static gmerge_workspace workspace(size_t bytes) {
    CHECK(bytes <= most_bytes);
    gmerge_workspace result = {(uintptr_t)memory, bytes};
    CUDA(cudaMemsetAsync(memory, 0x5a, bytes, handle));
    return result;
}

static size_t width(gmerge_type type) { return type == GMERGE_U32 || type == GMERGE_I32 || type == GMERGE_F32 ? 4 : 8; }

static void make(gmerge_format format, size_t count) {
    for (size_t i = 0; i < count * width(format.key_type); i++)
        keys[i] = (char)rand();
    if (rand() % 2)
        for (size_t i = 0; i < count * width(format.key_type); i++)
            keys[i] &= 0x41;
    for (size_t i = 0; i < count; i++) {
        if (format.value_size == 4)
            ((uint32_t *)values)[i] = (uint32_t)i;
        else
            ((uint64_t *)values)[i] = i;
    }
}

/* Puts the work of `call` on the stream twice: directly, and by a graph for the same input. */
#define TWICE(prepare, call, checks_of_result)                                       \
    do {                                                                             \
        for (int by_graph = 0; by_graph < 2; by_graph++) {                           \
            cudaGraph_t graph;                                                       \
            cudaGraphExec_t executable;                                              \
            if (by_graph) {                                                          \
                CUDA(cudaStreamBeginCapture(handle, cudaStreamCaptureModeThreadLocal)); \
                OK(call);                                                            \
                CUDA(cudaStreamEndCapture(handle, &graph));                          \
                CUDA(cudaGraphInstantiateWithFlags(&executable, graph, 0));          \
                prepare;                                                             \
                CUDA(cudaGraphLaunch(executable, handle));                           \
                checks_of_result;                                                    \
                CUDA(cudaGraphExecDestroy(executable));                              \
                CUDA(cudaGraphDestroy(graph));                                       \
            } else {                                                                 \
                prepare;                                                             \
                OK(call);                                                            \
                checks_of_result;                                                    \
            }                                                                        \
        }                                                                            \
    } while (0)

static void all(gmerge_format format, size_t count) {
    size_t w = width(format.key_type), v = format.value_size, bytes, k = count / 5;
    gmerge_input input = {keys, values, count};
    gmerge_output output = {want, want_values, count};
    make(format, count);
    gmerge_workspace space;

#define BOTH(n) upload(0, keys, w * (n)); upload(1, values, v * (n))
    memcpy(want, keys, w * count);
    memcpy(want_values, values, v * count);
    OK(gmerge_sort(engine, format, output));
    OK(gmerge_device_sort_bytes(format, count, &bytes));
    space = workspace(bytes);
    TWICE(BOTH(count), gmerge_device_sort(stream, format, elements(0, count), space),
          check(0, want, w * count); check(1, want_values, v * count));

    OK(gmerge_device_argsort_bytes(format, count, 4, &bytes));
    space = workspace(bytes);
    static uint32_t indices[MOST];
    OK(gmerge_argsort(engine, format, input, indices, 4));
    TWICE(BOTH(count), gmerge_device_argsort(stream, format, elements(0, count), (uintptr_t)part(1), 4, space),
          check(0, want, w * count); check(1, indices, 4 * count));

    OK(gmerge_device_top_k_bytes(format, count, k, &bytes));
    space = workspace(bytes);
    TWICE(BOTH(count), gmerge_device_top_k(stream, format, elements(0, count), elements(1, k), space),
          check(2, want, w * k); check(3, want_values, v * k));

    /* Segments of any lengths, which are then runs. */
    uint64_t ends[8] = {0};
    for (int i = 1; i < 7; i++)
        ends[i] = ends[i - 1] + (i == 3 ? 0 : (uint64_t)rand() % (count / 6 + 1));
    ends[7] = count;
    upload(8, ends, sizeof ends);
    gmerge_device_offsets offsets = {(uintptr_t)part(8), 7};
    size_t of_host[8];
    for (int i = 0; i < 8; i++)
        of_host[i] = (size_t)ends[i];
    static char sorted[8 * MOST], of_sorted[8 * MOST];
    gmerge_output segments = {sorted, of_sorted, count};
    memcpy(sorted, keys, w * count);
    memcpy(of_sorted, values, v * count);
    OK(gmerge_sort_segments(engine, format, segments, of_host, 7));
    OK(gmerge_device_sort_segments_bytes(format, count, &bytes));
    space = workspace(bytes);
    TWICE(BOTH(count), gmerge_device_sort_segments(stream, format, elements(0, count), offsets, space),
          check(0, sorted, w * count); check(1, of_sorted, v * count));

    static uint64_t within[MOST];
    for (int i = 0; i < 7; i++) {
        gmerge_input segment = {keys + w * of_host[i], NULL, of_host[i + 1] - of_host[i]};
        OK(gmerge_argsort(engine, format, segment, within + of_host[i], 8));
        for (size_t j = of_host[i]; j < of_host[i + 1]; j++)
            within[j] += of_host[i];
    }
    OK(gmerge_device_argsort_segments_bytes(format, count, 8, &bytes));
    space = workspace(bytes);
    TWICE(BOTH(count),
          gmerge_device_argsort_segments(stream, format, elements(0, count), offsets, (uintptr_t)part(1), 8, space),
          check(0, sorted, w * count); check(1, within, 8 * count));

    gmerge_input runs[7];
    for (int i = 0; i < 7; i++) {
        gmerge_input run = {sorted + w * of_host[i], of_sorted + v * of_host[i], of_host[i + 1] - of_host[i]};
        runs[i] = run;
    }
    OK(gmerge_merge(engine, format, runs, 7, output));
    upload(0, sorted, w * count);
    upload(1, of_sorted, v * count);
    OK(gmerge_device_merge_many_bytes(format, count, 7, &bytes));
    space = workspace(bytes);
    TWICE((void)0, gmerge_device_merge_many(stream, format, elements(0, count), offsets, elements(1, count), space),
          check(2, want, w * count); check(3, want_values, v * count));

    /* Groups of the first three runs, of none, and of the others. */
    size_t groups[4] = {0, 3, 3, 7};
    uint64_t of_groups[4] = {0, 3, 3, 7};
    gmerge_runs all_runs = {{sorted, of_sorted, count}, of_host, 7};
    OK(gmerge_merge_groups(engine, format, all_runs, groups, 3, output));
    CUDA(cudaMemcpyAsync(part(8) + 128, of_groups, sizeof of_groups, cudaMemcpyHostToDevice, handle));
    gmerge_device_offsets on_gpu_groups = {(uintptr_t)part(8) + 128, 3};
    gmerge_device_runs device_runs = {elements(0, count), offsets};
    OK(gmerge_device_merge_groups_bytes(format, count, 7, 3, &bytes));
    space = workspace(bytes);
    TWICE((void)0, gmerge_device_merge_groups(stream, format, device_runs, on_gpu_groups, elements(1, count), space),
          check(2, want, w * count); check(3, want_values, v * count));

    /* Each run with itself. */
    gmerge_output doubled = {want, want_values, 2 * count};
    if (2 * count <= MOST) {
        OK(gmerge_merge_pairs(engine, format, all_runs, all_runs, doubled));
        OK(gmerge_device_merge_pairs_bytes(format, 2 * count, &bytes));
        space = workspace(bytes);
        TWICE((void)0,
              gmerge_device_merge_pairs(stream, format, device_runs, device_runs, elements(1, 2 * count), space),
              check(2, want, 2 * w * count); check(3, want_values, 2 * v * count));
    }

    /* The first run and the last. */
    size_t m = runs[0].count, n = runs[6].count;
    gmerge_input two[2] = {runs[0], runs[6]};
    gmerge_output merged = {want, want_values, m + n};
    OK(gmerge_merge(engine, format, two, 2, merged));
    upload(4, runs[6].keys, w * n);
    upload(5, runs[6].values, v * n);
    OK(gmerge_device_merge_bytes(format, m + n, &bytes));
    space = workspace(bytes);
    TWICE((void)0,
          gmerge_device_merge(stream, format, elements(0, m), elements(2, n), elements(1, m + n), space),
          check(2, want, w * (m + n)); check(3, want_values, v * (m + n)));
}

/* Operations on two sorted arrays, the first third of the elements and the rest. */
static void sorted_arrays(gmerge_format format, size_t count) {
    size_t w = width(format.key_type), v = format.value_size, bytes, found_count = 0, half = count / 3;
    gmerge_workspace space;
    make(format, count);
    gmerge_output a = {keys, values, half}, b = {keys + w * half, values + v * half, count - half};
    gmerge_input of_a = {a.keys, a.values, a.count}, of_b = {b.keys, b.values, b.count};
    OK(gmerge_sort(engine, format, a));
    OK(gmerge_sort(engine, format, b));
    upload(0, a.keys, w * half);
    upload(1, a.values, v * half);
    upload(2, b.keys, w * b.count);
    upload(3, b.values, v * b.count);
    uint64_t number = 0;
    uint64_t *at = (uint64_t *)part(8);

    gmerge_output out = {want, NULL, count};
    for (gmerge_set_operation operation = GMERGE_UNION; operation <= GMERGE_SYMMETRIC_DIFFERENCE; operation++) {
        OK(gmerge_set(engine, format, operation, of_a, of_b, out, &found_count));
        OK(gmerge_device_set_bytes(format, count, &bytes));
        space = workspace(bytes);
        TWICE((void)0,
              gmerge_device_set(stream, format, operation, elements(0, half), elements(1, b.count), elements(2, count),
                                (uintptr_t)at, space),
              number = found_count; check(8, &number, 8); check(4, want, w * found_count));
    }

    static uint64_t lengths[MOST];
    OK(gmerge_unique(engine, format, of_b, out, lengths, &found_count));
    number = found_count;
    OK(gmerge_device_unique_bytes(format, b.count, &bytes));
    space = workspace(bytes);
    TWICE((void)0,
          gmerge_device_unique(stream, format, elements(1, b.count), elements(2, b.count), (uintptr_t)at, space),
          check(8, &number, 8); check(4, want, w * found_count));
    TWICE((void)0,
          gmerge_device_run_lengths(stream, format, elements(1, b.count), elements(2, b.count), (uintptr_t)at, space),
          check(8, &number, 8); check(4, want, w * found_count); check(5, lengths, 8 * found_count));
    if (v > 0) {
        gmerge_output totals = {want, want_values, count};
        gmerge_type type = v == 4 ? GMERGE_I32 : GMERGE_U64;
        OK(gmerge_reduce_by_key(engine, format, GMERGE_MAX, type, of_b, totals, &found_count));
        TWICE((void)0,
              gmerge_device_reduce_by_key(stream, format, GMERGE_MAX, type, elements(1, b.count), elements(2, b.count),
                                          (uintptr_t)at, space),
              check(8, &number, 8); check(4, want, w * found_count); check(5, want_values, v * found_count));
    }
    for (int is_upper = 0; is_upper < 2; is_upper++) {
        OK(gmerge_bounds(engine, format, is_upper, of_a, of_b, want, 4));
        OK(gmerge_device_bounds_bytes(format, count, &bytes));
        space = workspace(bytes);
        TWICE((void)0,
              gmerge_device_bounds(stream, format, is_upper, elements(0, half), elements(1, b.count),
                                   (uintptr_t)part(4), 4, space),
              check(4, want, 4 * half));
    }
}

static void put_number(int i, uint64_t number) {
    CUDA(cudaMemcpyAsync(place_of(i), &number, sizeof number, cudaMemcpyHostToDevice, handle));
    CUDA(cudaStreamSynchronize(handle));
}

static void check_number(int i, uint64_t expected) {
    uint64_t number = 0;
    CUDA(cudaMemcpyAsync(&number, place_of(i), sizeof number, cudaMemcpyDeviceToHost, handle));
    CUDA(cudaStreamSynchronize(handle));
    CHECK(number == expected);
    checks++;
}

/* The first `count` of more elements, by a number in the GPU's memory. */
static void counted_arrays(gmerge_format format, size_t count, size_t most) {
    size_t w = width(format.key_type), v = format.value_size, bytes, k = most / 5, first = k < count ? k : count;
    make(format, most);
    gmerge_input input = {keys, values, count};
    gmerge_workspace space;

    gmerge_output selected = {want, want_values, first};
    OK(gmerge_top_k(engine, format, input, selected));
    OK(gmerge_device_top_k_bytes(format, most, k, &bytes));
    space = workspace(bytes);
    BOTH(most);
    put_number(0, count);
    TWICE(put_number(1, 0), gmerge_device_top_k(stream, format, counted(0, most), counted(1, k), space),
          check_number(1, first); check(2, want, w * first); check(3, want_values, v * first));

    static uint32_t indices[MOST];
    OK(gmerge_argsort(engine, format, input, indices, 4));
    OK(gmerge_device_argsort_bytes(format, most, 4, &bytes));
    space = workspace(bytes);
    TWICE(BOTH(most), gmerge_device_argsort(stream, format, counted(0, most), (uintptr_t)part(1), 4, space),
          check(1, indices, 4 * count));

    gmerge_output sorted = {keys, values, count};
    BOTH(most);
    char *all_keys = want, *all_values = want_values;
    memcpy(all_keys, keys, w * most);
    memcpy(all_values, values, v * most);
    OK(gmerge_sort(engine, format, sorted));
    OK(gmerge_device_sort_bytes(format, most, &bytes));
    space = workspace(bytes);
    TWICE(upload(0, all_keys, w * most); upload(1, all_values, v * most),
          gmerge_device_sort(stream, format, counted(0, most), space),
          check(0, keys, w * count); check(1, values, v * count));

    /* The sorted elements with themselves. */
    gmerge_input twice[2] = {input, input};
    gmerge_output merged = {want, want_values, 2 * count};
    if (2 * most <= MOST) {
        OK(gmerge_merge(engine, format, twice, 2, merged));
        OK(gmerge_device_merge_bytes(format, 2 * most, &bytes));
        space = workspace(bytes);
        TWICE(put_number(1, 0),
              gmerge_device_merge(stream, format, counted(0, most), counted(0, most), counted(1, 2 * most), space),
              check_number(1, 2 * count); check(2, want, 2 * w * count); check(3, want_values, 2 * v * count));
    }

    OK(gmerge_bounds(engine, format, 1, input, input, want, 4));
    OK(gmerge_device_bounds_bytes(format, 2 * most, &bytes));
    space = workspace(bytes);
    TWICE((void)0,
          gmerge_device_bounds(stream, format, 1, counted(0, most), counted(0, most), (uintptr_t)part(4), 4, space),
          check(4, want, 4 * count));

    /* The lengths of groups of equal keys, and the offsets of these groups. */
    static uint64_t lengths[MOST], ends[MOST + 1];
    size_t groups;
    gmerge_output out = {want, NULL, count};
    OK(gmerge_unique(engine, format, input, out, lengths, &groups));
    OK(gmerge_device_unique_bytes(format, most, &bytes));
    space = workspace(bytes);
    TWICE((void)0,
          gmerge_device_run_lengths(stream, format, counted(0, most), elements(1, most), (uintptr_t)place_of(1), space),
          check_number(1, groups); check(2, want, w * groups); check(3, lengths, 8 * groups));
    for (size_t i = 0; i < most; i++)
        ends[i + 1] = ends[i] + (i < groups ? lengths[i] : 0);
    gmerge_device_offsets offsets = {(uintptr_t)part(4), most};
    if (most < MOST)
        TWICE((void)0,
              gmerge_device_set_offsets(stream, (uintptr_t)part(3), (uintptr_t)place_of(1), most, offsets),
              check(4, ends, 8 * (most + 1)));
}

static void refusals(void) {
    gmerge_format format = {GMERGE_U32, 0, 0}, narrow = {GMERGE_U8, 0, 0}, odd = {GMERGE_U32, 0, 3};
    gmerge_workspace none = {0, 0}, some = {(uintptr_t)memory, 1 << 20};
    gmerge_device_elements nothing = {0, 0, 5, 0}, misaligned = {(uintptr_t)part(0) + 2, 0, 5, 0};
    gmerge_device_offsets offsets = {(uintptr_t)part(8), 1};
    size_t bytes;
    REFUSED(gmerge_device_sort_bytes(narrow, 5, &bytes), "for which there are kernels");
    REFUSED(gmerge_device_sort_bytes(odd, 5, &bytes), "value_size is 3");
    REFUSED(gmerge_device_sort_bytes(format, 5, NULL), "bytes is null");
    REFUSED(gmerge_device_sort(NULL, format, elements(0, 5), some), "stream is null");
    REFUSED(gmerge_device_sort(stream, format, elements(0, MOST), none), "are needed");
    REFUSED(gmerge_device_sort(stream, format, nothing, some), "address 0x0");
    REFUSED(gmerge_device_sort(stream, format, misaligned, some), "expected a multiple of 4");
    REFUSED(gmerge_device_merge(stream, format, elements(0, 5), elements(1, 5), elements(0, 10), some), "overlaps");
    REFUSED(gmerge_device_merge(stream, format, elements(0, 5), elements(1, 5), elements(2, 9), some), "expected 10");
    REFUSED(gmerge_device_merge(stream, format, counted(0, 5), elements(1, 5), elements(2, 10), some),
            "no count for out");
    REFUSED(gmerge_device_sort_segments(stream, format, counted(0, 5), offsets, some), "cannot have");
}

int main(int argc, char **argv) {
    seed = argc > 1 ? (unsigned)atoi(argv[1]) : (unsigned)(size_t)&argc * 2654435761u;
    srand(seed);
    gmerge_gpu *gpu;
    CUDA(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking));
    OK(gmerge_engine_cpu(0, &engine));
    OK(gmerge_gpu_open(0, &gpu));
    OK(gmerge_stream_open(gpu, handle, &stream));
    CUDA(cudaMalloc((void **)&on_gpu, (size_t)9 * 8 * MOST));
    CUDA(cudaMalloc((void **)&memory, most_bytes));
    const gmerge_type types[] = {GMERGE_U32, GMERGE_I32, GMERGE_F32, GMERGE_U64, GMERGE_I64, GMERGE_F64};
    const size_t sizes[] = {0, 4, 8};
    for (int type = 0; type < 6; type++) {
        gmerge_format format = {types[type], 0, 0};
        OK(gmerge_gpu_prepare(gpu, format));
        for (gmerge_order order = 0; order < 6; order++)
            for (int size = 0; size < 3; size++) {
                format.order = order;
                format.value_size = sizes[size];
                const size_t counts[] = {100, (size_t)rand() % 3000 + 20, (size_t)rand() % (MOST - 20) + 20};
                for (int i = 0; i < 3; i++) {
                    all(format, counts[i]);
                    sorted_arrays(format, counts[i]);
                    counted_arrays(format, (size_t)rand() % (counts[i] + 1), counts[i]);
                }
            }
    }
    refusals();
    gmerge_stream_free(stream);
    gmerge_gpu_free(gpu);
    gmerge_engine_free(engine);
    CUDA(cudaStreamDestroy(handle));
    printf("%u checks, none wrong\n", checks);
    return 0;
}
