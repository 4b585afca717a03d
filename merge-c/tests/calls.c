/* Calls every function of the library, and compares the results with simple loops. */
#include "check.h"

#include <math.h>
#include <pthread.h>

enum { N = 3000, SIZE = 24 };

static gmerge_engine *engine;

/* Elements, in the order of the test: the key as a number, and the index before the sort. */
typedef struct {
    double key;
    size_t index;
} element;

static int before(const void *a, const void *b) {
    const element *x = (const element *)a, *y = (const element *)b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void put(gmerge_type type, void *keys, size_t i, int number) {
    switch (type) {
    case GMERGE_U8: ((uint8_t *)keys)[i] = (uint8_t)number; break;
    case GMERGE_U16: ((uint16_t *)keys)[i] = (uint16_t)number; break;
    case GMERGE_U32: ((uint32_t *)keys)[i] = (uint32_t)number; break;
    case GMERGE_U64: ((uint64_t *)keys)[i] = (uint64_t)number; break;
    case GMERGE_I8: ((int8_t *)keys)[i] = (int8_t)(number - 64); break;
    case GMERGE_I16: ((int16_t *)keys)[i] = (int16_t)(number - 64); break;
    case GMERGE_I32: ((int32_t *)keys)[i] = number - 64; break;
    case GMERGE_I64: ((int64_t *)keys)[i] = number - 64; break;
    case GMERGE_F32: ((float *)keys)[i] = (float)(number - 64); break;
    case GMERGE_F64: ((double *)keys)[i] = number - 64; break;
    /* The number and zeros, least significant byte first. */
    case GMERGE_U128:
    case GMERGE_I128:
        memset((char *)keys + 16 * i, 0, 16);
        memcpy((char *)keys + 16 * i, &number, sizeof number);
        break;
    /* Positive floats of 2 bytes have the order of their bits. */
    case GMERGE_F16: ((uint16_t *)keys)[i] = (uint16_t)number; break;
    }
}

static const size_t widths[] = {1, 2, 4, 8, 16, 1, 2, 4, 8, 16, 2, 4, 8};

/* Fills elements with random keys. The first bytes of a value are its index, if it has more than one byte. */
static void make(gmerge_type type, size_t value_size, size_t count, char *keys, char *values, element *all) {
    for (size_t i = 0; i < count; i++) {
        int number = rand() % 120;
        put(type, keys, i, number);
        all[i].key = number;
        all[i].index = i;
        uint16_t index = (uint16_t)i;
        memset(values + value_size * i, 0x5a, value_size);
        memcpy(values + value_size * i, &index, value_size < 2 ? value_size : 2);
    }
}

static void check_elements(gmerge_type type, size_t value_size, size_t count, char *keys, char *values, element *all) {
    for (size_t i = 0; i < count; i++) {
        char key[16];
        put(type, key, 0, (int)fabs(all[i].key));
        CHECK(memcmp(key, keys + widths[type] * i, widths[type]) == 0);
        uint16_t index = (uint16_t)all[i].index;
        CHECK(memcmp(&index, values + value_size * i, value_size < 2 ? value_size : 2) == 0);
        for (size_t byte = 2; byte < value_size; byte++)
            CHECK(values[value_size * i + byte] == 0x5a);
    }
}

static void sorts(gmerge_type type, gmerge_order order, size_t value_size) {
    static char keys[16 * N], values[SIZE * N], first[16 * N], of_first[SIZE * N];
    static element all[N];
    gmerge_format format = {type, order, value_size};
    size_t count = (size_t)rand() % N, k = count / 3;
    make(type, value_size, count, keys, values, all);
    gmerge_input input = {keys, values, count};
    gmerge_output elements = {keys, values, count}, top = {first, of_first, k};
    if (order & GMERGE_DESCENDING)
        for (size_t i = 0; i < count; i++)
            all[i].key = -all[i].key;
    qsort(all, count, sizeof *all, before);

    static uint32_t indices[N];
    OK(gmerge_argsort(engine, format, input, indices, 4));
    for (size_t i = 0; i < count; i++)
        CHECK(indices[i] == all[i].index);
    static uint32_t least[N];
    static uint64_t sorted[N];
    least[k] = 77;
    OK(gmerge_top_k_indices(engine, format, input, least, 4, k));
    CHECK(memcmp(least, indices, 4 * k) == 0 && least[k] == 77);
    OK(gmerge_top_k_indices(engine, format, input, sorted, 8, count));
    for (size_t i = 0; i < count; i++)
        CHECK(sorted[i] == indices[i]);
    OK(gmerge_top_k(engine, format, input, top));
    check_elements(type, value_size, k, first, of_first, all);
    OK(gmerge_sort(engine, format, elements));
    check_elements(type, value_size, count, keys, values, all);

    size_t kinds = 0, found = 99;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || all[i].key != all[i - 1].key)
            all[kinds++] = all[i];
    static uint64_t lengths[N];
    gmerge_output unique = {first, NULL, N};
    OK(gmerge_unique(engine, format, input, unique, lengths, &found));
    CHECK(found == kinds);
    uint64_t sum = 0;
    for (size_t i = 0; i < found; i++)
        sum += lengths[i];
    CHECK(sum == count);
    OK(gmerge_sort_unique(engine, format, elements, &found));
    CHECK(found == kinds);
    check_elements(type, value_size, kinds, keys, values, all);
}

static void merges(gmerge_type type, gmerge_order order, size_t value_size) {
    static char keys[16 * N], values[SIZE * N], merged[16 * N], moved[SIZE * N];
    static element all[N];
    gmerge_format format = {type, order, value_size};
    make(type, value_size, N, keys, values, all);
    /* Segments of which some are empty, each sorted by itself. */
    size_t offsets[6] = {0, 0, 0, 0, 0, N};
    for (int i = 1; i < 5; i++)
        offsets[i] = offsets[i - 1] + (size_t)rand() % (N / 4) * (i != 3);
    gmerge_output segments = {keys, values, N}, out = {merged, moved, N};
    OK(gmerge_sort_segments(engine, format, segments, offsets, 5));
    gmerge_input runs[5];
    for (int i = 0; i < 5; i++) {
        runs[i].keys = keys + widths[type] * offsets[i];
        runs[i].values = values + value_size * offsets[i];
        runs[i].count = offsets[i + 1] - offsets[i];
    }
    if (order & GMERGE_DESCENDING)
        for (size_t i = 0; i < N; i++)
            all[i].key = -all[i].key;
    qsort(all, N, sizeof *all, before);
    OK(gmerge_merge(engine, format, runs, 5, out));
    check_elements(type, value_size, N, merged, moved, all);

    /* Groups of the first two runs, of none, and of the other three. */
    size_t groups[4] = {0, 2, 2, 5};
    static char grouped[16 * N], of_grouped[SIZE * N];
    gmerge_runs from = {{keys, values, N}, offsets, 5};
    gmerge_output of_groups = {grouped, of_grouped, N};
    OK(gmerge_merge_groups(engine, format, from, groups, 3, of_groups));
    gmerge_output head = {merged, moved, offsets[2]};
    gmerge_output tail = {merged + widths[type] * offsets[2], moved + value_size * offsets[2], N - offsets[2]};
    OK(gmerge_merge(engine, format, runs, 2, head));
    OK(gmerge_merge(engine, format, runs + 2, 3, tail));
    CHECK(memcmp(grouped, merged, widths[type] * N) == 0 && memcmp(of_grouped, moved, value_size * N) == 0);

    /* The first run with the last, in a batch of one and an empty pair. */
    size_t m = runs[0].count, n = runs[4].count, of_a[3] = {0, m, m}, of_b[3] = {0, n, n}, count = 0;
    gmerge_runs a = {runs[0], of_a, 2}, b = {runs[4], of_b, 2};
    gmerge_output pair = {merged, moved, m + n};
    OK(gmerge_merge_pairs(engine, format, a, b, pair));
    static char two[16 * N], of_two[SIZE * N];
    gmerge_input both[2] = {runs[0], runs[4]};
    gmerge_output other = {two, of_two, m + n};
    OK(gmerge_merge(engine, format, both, 2, other));
    CHECK(memcmp(merged, two, widths[type] * (m + n)) == 0 && memcmp(moved, of_two, value_size * (m + n)) == 0);

    gmerge_output result = {two, NULL, N};
    OK(gmerge_set(engine, format, GMERGE_INTERSECTION, both[0], both[0], result, &count));
    CHECK(count == m && memcmp(two, runs[0].keys, widths[type] * m) == 0);
    OK(gmerge_set(engine, format, GMERGE_DIFFERENCE, both[0], both[0], result, &count));
    CHECK(count == 0);
    OK(gmerge_set(engine, format, GMERGE_SYMMETRIC_DIFFERENCE, both[0], both[1], result, &count));
    static uint64_t upper[N];
    OK(gmerge_bounds(engine, format, 1, both[1], both[1], upper, 8));
    for (size_t i = 0; i < n; i++)
        CHECK(upper[i] > i && (i == 0 || upper[i] >= upper[i - 1]));
}

static void reductions(gmerge_type type, gmerge_order order) {
    static char keys[16 * N], values[8 * N], groups[16 * N];
    static element all[N];
    static double totals[N];
    size_t count = 0;
    gmerge_format format = {type, order, 8};
    make(type, 8, N, keys, values, all);
    for (size_t i = 0; i < N; i++) {
        double value = (double)all[i].index;
        memcpy(values + 8 * i, &value, 8);
    }
    gmerge_output elements = {keys, values, N}, out = {groups, totals, N};
    gmerge_input from = {keys, values, N};
    OK(gmerge_sort(engine, format, elements));
    const gmerge_reduction reductions[] = {GMERGE_SUM, GMERGE_MIN, GMERGE_MAX};
    for (int r = 0; r < 3; r++) {
        OK(gmerge_reduce_by_key(engine, format, reductions[r], GMERGE_F64, from, out, &count));
        size_t begin = 0;
        for (size_t group = 0; group < count; group++) {
            double expected = 0, first, value;
            size_t i = begin;
            memcpy(&first, values + 8 * begin, 8);
            for (; i < N && memcmp(keys + widths[type] * i, keys + widths[type] * begin, widths[type]) == 0; i++) {
                memcpy(&value, values + 8 * i, 8);
                /* The sort is stable, so that the values of a group ascend. */
                expected = r == 0 ? expected + value : r == 1 ? first : value;
            }
            CHECK(totals[group] == expected);
            CHECK(memcmp(groups + widths[type] * group, keys + widths[type] * begin, widths[type]) == 0);
            begin = i;
        }
        CHECK(begin == N);
    }
    REFUSED(gmerge_reduce_by_key(engine, format, 3, GMERGE_F64, from, out, &count), "reduction is 3");
    REFUSED(gmerge_reduce_by_key(engine, format, 0, GMERGE_F32, from, out, &count), "value_size is 8, expected 4");
    REFUSED(gmerge_reduce_by_key(engine, format, 0, GMERGE_U8, from, out, &count), "value_type is 0");
    out.count = 1;
    REFUSED(gmerge_reduce_by_key(engine, format, 0, GMERGE_F64, from, out, &count), "out.count is 1");
}

static void nans(void) {
    double keys[] = {2.0, (double)NAN, -1.0, -(double)NAN, 5.0}, sorted[] = {-1.0, 2.0, 5.0};
    gmerge_output elements = {keys, NULL, 5};
    gmerge_format last = {GMERGE_F64, GMERGE_NANS_LAST, 0};
    gmerge_format first = {GMERGE_F64, GMERGE_NANS_FIRST | GMERGE_DESCENDING, 0};
    OK(gmerge_sort(engine, last, elements));
    CHECK(memcmp(keys, sorted, sizeof sorted) == 0 && isnan(keys[3]) && isnan(keys[4]));
    double merged[10];
    gmerge_input runs[2] = {{keys, NULL, 5}, {keys, NULL, 5}};
    gmerge_output out = {merged, NULL, 10};
    OK(gmerge_merge(engine, last, runs, 2, out));
    CHECK(merged[0] == -1.0 && merged[5] == 5.0 && isnan(merged[6]) && isnan(merged[9]));
    OK(gmerge_sort(engine, first, elements));
    CHECK(isnan(keys[0]) && isnan(keys[1]) && keys[2] == 5.0 && keys[4] == -1.0);
    OK(gmerge_merge(engine, first, runs, 2, out));
    CHECK(isnan(merged[0]) && isnan(merged[3]) && merged[4] == 5.0 && merged[9] == -1.0);

    /* Two runs of one array, with a NaN that is neither the first nor the last key of the array. */
    double at_end[] = {1.0, 3.0, -(double)NAN, 2.0, 4.0}, others[] = {2.0, 6.0, 7.0};
    size_t offsets[] = {0, 3, 5}, of_others[] = {0, 2, 3}, groups[] = {0, 2};
    gmerge_runs two = {{at_end, NULL, 5}, offsets, 2}, with = {{others, NULL, 3}, of_others, 2};
    gmerge_output group = {merged, NULL, 5}, pairs = {merged, NULL, 8};
    OK(gmerge_merge_groups(engine, last, two, groups, 1, group));
    CHECK(merged[0] == 1.0 && merged[1] == 2.0 && merged[2] == 3.0 && merged[3] == 4.0 && isnan(merged[4]));
    OK(gmerge_merge_pairs(engine, last, two, with, pairs));
    CHECK(merged[2] == 3.0 && merged[3] == 6.0 && isnan(merged[4]) && merged[5] == 2.0 && merged[7] == 7.0);
    double at_start[] = {1.0, 2.0, 4.0, (double)NAN, 3.0};
    gmerge_format ascending = {GMERGE_F64, GMERGE_NANS_FIRST, 0};
    gmerge_runs behind = {{at_start, NULL, 5}, offsets, 2};
    OK(gmerge_merge_groups(engine, ascending, behind, groups, 1, group));
    CHECK(isnan(merged[0]) && merged[1] == 1.0 && merged[3] == 3.0 && merged[4] == 4.0);
}

static void refusals(void) {
    uint32_t keys[8] = {3, 1, 2, 0, 0, 0, 0, 0}, before[8];
    memcpy(before, keys, sizeof keys);
    size_t count = 7, offsets[2] = {0, 9};
    gmerge_format format = {GMERGE_U32, GMERGE_ASCENDING, 0}, with = {GMERGE_U32, GMERGE_ASCENDING, 4};
    gmerge_format no_type = {77, 0, 0}, no_order = {GMERGE_U32, 6, 0};
    gmerge_output none = {NULL, NULL, 3}, some = {keys, NULL, 3}, odd = {(char *)keys + 1, NULL, 3};
    gmerge_output huge = {keys, NULL, SIZE_MAX / 2}, empty = {NULL, NULL, 0}, half = {keys + 2, NULL, 4};
    gmerge_input from = {keys, NULL, 4}, nothing = {NULL, NULL, 0}, missing = {NULL, NULL, 2};
    REFUSED(gmerge_sort(NULL, format, some), "engine is null");
    REFUSED(gmerge_sort(engine, no_type, some), "key_type is 77");
    REFUSED(gmerge_sort(engine, no_order, some), "order is 6");
    REFUSED(gmerge_sort(engine, format, none), "elements.keys is null");
    REFUSED(gmerge_sort(engine, format, odd), "expected a multiple of 4");
    REFUSED(gmerge_sort(engine, format, huge), "more than memory can have");
    REFUSED(gmerge_sort(engine, with, some), "elements.values is null");
    REFUSED(gmerge_argsort(engine, format, from, keys, 4), "indices overlaps keys.keys");
    REFUSED(gmerge_argsort(engine, format, from, keys + 4, 3), "index_size is 3");
    REFUSED(gmerge_top_k_indices(engine, format, from, keys + 3, 4, 2), "indices overlaps keys.keys");
    REFUSED(gmerge_top_k_indices(engine, format, from, NULL, 4, 2), "indices is null");
    REFUSED(gmerge_top_k_indices(engine, format, from, keys + 4, 2, 2), "index_size is 2");
    REFUSED(gmerge_top_k_indices(engine, format, nothing, keys + 4, 4, 3), "k is 3, expected at most 0");
    REFUSED(gmerge_top_k_indices(engine, format, from, keys + 4, 8, SIZE_MAX / 4), "more than memory can have");
    REFUSED(gmerge_top_k(engine, format, from, half), "out.keys overlaps from.keys");
    REFUSED(gmerge_merge(engine, format, NULL, 2, some), "runs is null");
    REFUSED(gmerge_merge(engine, format, &missing, 1, some), "runs[0].keys is null");
    REFUSED(gmerge_merge(engine, format, &nothing, 1, some), "out has 3 keys");
    REFUSED(gmerge_sort_segments(engine, format, some, offsets, 1), "the last offset");
    REFUSED(gmerge_sort_segments(engine, format, some, NULL, 1), "offsets is null");
    REFUSED(gmerge_set(engine, format, 9, from, nothing, some, &count), "operation is 9");
    gmerge_output one = {keys + 4, NULL, 1};
    REFUSED(gmerge_set(engine, format, GMERGE_UNION, from, nothing, one, &count), "out.count is 1");
    REFUSED(gmerge_unique(engine, format, from, one, NULL, NULL), "count is null");
    REFUSED(gmerge_bounds(engine, format, 0, from, from, keys + 1, 4), "overlaps bounds");
    REFUSED(gmerge_engine_cpu(0, NULL), "engine is null");
    size_t in_place[8] = {0, 4, 8, 3, 2, 1, 9, 7};
    gmerge_format wide = {GMERGE_U64, GMERGE_DESCENDING, 0}, pairs = {GMERGE_U64, 0, 8};
    gmerge_output own = {in_place, NULL, 8};
    REFUSED(gmerge_sort_segments(engine, wide, own, in_place, 2), "overlaps offsets");
    uint64_t others[8] = {8, 7, 6, 5, 4, 3, 2, 1};
    gmerge_output with_own = {others, in_place, 8};
    REFUSED(gmerge_sort_segments(engine, pairs, with_own, in_place, 2), "elements.values overlaps offsets");
    REFUSED(gmerge_sort_segments(engine, wide, own, offsets, SIZE_MAX), "more than memory can have");
    REFUSED(gmerge_merge(engine, format, &from, SIZE_MAX, some), "more than memory can have");
    gmerge_output ten = {others, NULL, 8};
    gmerge_input four = {in_place, NULL, 4};
    REFUSED(gmerge_set(engine, wide, GMERGE_UNION, four, four, ten, (size_t *)others), "out.keys overlaps count");
    REFUSED(gmerge_sort_unique(engine, wide, ten, (size_t *)(others + 1)), "elements.keys overlaps count");
    REFUSED(gmerge_sort_unique(engine, wide, ten, (size_t *)((char *)in_place + 1)), "expected a multiple of 8");
    REFUSED(gmerge_unique(engine, wide, four, ten, others, &count), "lengths overlaps out.keys");
    for (int i = 0; i < 8; i++)
        CHECK(others[i] == (uint64_t)(8 - i));
    CHECK(in_place[1] == 4 && in_place[2] == 8);
    REFUSED(gmerge_sort(engine, with, some), "expected 3 elements of 4 bytes");
    gmerge_engine *other;
    CHECK(gmerge_engine_cpu(1000000, &other) != GMERGE_OK && other == NULL);
    CHECK(gmerge_engine_gpu(1000, &other) == GMERGE_NO_GPU && other == NULL);
    const size_t twice[] = {0, 0}, absent[] = {1000, 1001};
    REFUSED(gmerge_engine_gpus(twice, 2, &other), "twice");
    REFUSED(gmerge_engine_gpus(NULL, 2, &other), "ordinals is null");
    REFUSED(gmerge_engine_gpus(twice, 2, NULL), "engine is null");
    CHECK(gmerge_engine_gpus(absent, 2, &other) == GMERGE_NO_GPU && other == NULL);
    gmerge_engine_free(NULL);
    OK(gmerge_sort(engine, format, empty));
    OK(gmerge_merge(engine, format, NULL, 0, empty));
    CHECK(memcmp(before, keys, sizeof keys) == 0 && count == 7);
}

static void *sort_many(void *argument) {
    unsigned random = *(unsigned *)argument;
    for (int round = 0; round < 100; round++) {
        uint64_t keys[500];
        for (int i = 0; i < 500; i++)
            keys[i] = random = random * 1664525u + 1013904223u;
        gmerge_format format = {GMERGE_U64, GMERGE_ASCENDING, 0};
        gmerge_output elements = {keys, NULL, 500}, wrong = {NULL, NULL, random % 7 + 1};
        OK(gmerge_sort(engine, format, elements));
        for (int i = 1; i < 500; i++)
            CHECK(keys[i - 1] <= keys[i]);
        /* The message is the one of this thread. */
        char expected[40];
        snprintf(expected, sizeof expected, "expected %u elements", (unsigned)wrong.count);
        REFUSED(gmerge_sort(engine, format, wrong), expected);
    }
    return NULL;
}

int main(int argc, char **argv) {
    seed = argc > 1 ? (unsigned)atoi(argv[1]) : (unsigned)(size_t)&argc * 2654435761u;
    srand(seed);
    OK(gmerge_engine_auto(&engine));
    const size_t sizes[] = {0, 4, 8, 1, 3, 16, SIZE};
    const gmerge_order orders[] = {0, 1, 2, 3, 4, 5};
    for (gmerge_type type = GMERGE_U8; type <= GMERGE_F64; type++)
        for (int order = 0; order < 6; order++) {
            reductions(type, orders[order]);
            for (int size = 0; size < 7; size++) {
                sorts(type, orders[order], sizes[size]);
                merges(type, orders[order], sizes[size]);
            }
        }
    nans();
    refusals();
    pthread_t threads[8];
    unsigned seeds[8];
    for (int i = 0; i < 8; i++) {
        seeds[i] = (unsigned)rand();
        CHECK(pthread_create(&threads[i], NULL, sort_many, &seeds[i]) == 0);
    }
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    gmerge_engine_free(engine);
    gmerge_release_memory();
    printf("all calls are right\n");
    return 0;
}
