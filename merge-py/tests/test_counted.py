"""Elements whose number only a GPU knows, against numpy, with CuPy's arrays. Without a GPU, on an emulated one:

PYTHONPATH=merge-py/tests/emulated scripts/emulated-gpu python -m pytest merge-py/tests/test_counted.py
"""

import os
import time

import gmerge
import numpy as np
import pytest
from gmerge import Counted

cupy = pytest.importorskip("cupy")
if not cupy.is_available():
    pytest.skip("no GPU", allow_module_level=True)

# The types with kernels, of which int32 is that of int16.
TYPES = ["int16", "uint32", "int64", "uint64", "float32", "float64"]


@pytest.fixture
def rng():
    seed = int(os.environ.get("GMERGE_SEED") or time.time_ns() % 2**32)
    print(f"GMERGE_SEED={seed}")
    return np.random.default_rng(seed)


def make(rng, type, length, few=True):
    x = rng.integers(0, 50 if few else 2**15, length).astype(type)
    if x.dtype.kind == "f":
        x -= 20
        x[rng.random(length) < 0.1] = -0.0
    return x


def with_nans(rng, x):
    if x.dtype.kind == "f":
        x[rng.random(len(x)) < 0.1] = np.nan
    return x


def numbers(rng, most):
    """Numbers of elements in arrays of `most`. The last one counts as the length."""
    return [0, min(1, most), int(rng.integers(0, most + 1)), most, most + 7]


def counted(x, number, type="int64"):
    return Counted(cupy.asarray(x), cupy.asarray(np.array([number], type)))


def call(function, *arrays, **arguments):
    """Calls a function, which must not wait. Only the emulated GPU's arrays count waits."""
    waits = getattr(cupy, "waits", 0)
    result = getattr(gmerge, function)(*arrays, **arguments)
    assert getattr(cupy, "waits", 0) == waits, function
    return result


def found(result):
    """The elements that count."""
    return result.array.get()[: int(result.count.get()[0])]


def expect(result, expected):
    assert isinstance(result, Counted)
    number, result = int(result.count.get()[0]), found(result)
    assert number == len(expected) or number > len(result) == len(expected)
    assert result.dtype == expected.dtype
    assert np.array_equal(result, expected, equal_nan=expected.dtype.kind == "f"), (result, expected)


def descending(x):
    """Sorted from the greatest on, with NaNs last."""
    return -np.sort(-x) if x.dtype.kind == "f" else np.sort(x)[::-1]


@pytest.mark.parametrize("type", TYPES)
def test_sorts(rng, type):
    for most in (1, 30, 2500):
        for n in numbers(rng, most):
            x = with_nans(rng, make(rng, type, most))
            of, first = counted(x, n, "uint64"), x[:n]
            expect(call("sort", of), np.sort(first))
            expect(call("sort", of, descending=True), descending(first))
            order = call("argsort", of)
            expect(order, np.argsort(first, kind="stable"))
            assert np.array_equal(np.sort(order.array.get()), np.arange(most)), "all indices are a permutation"
            out = cupy.asarray(x.copy())
            result = call("sort", Counted(out, of.count), out=out)
            assert result.array is out
            expect(result, np.sort(first))
            for value_type in ("int32", "float64", "int16"):
                values = rng.integers(0, 2**15, most).astype(value_type)
                keys, moved = call("sort_pairs", of, cupy.asarray(values))
                expect(keys, np.sort(first))
                expect(Counted(moved, keys.count), values[:n][np.argsort(first, kind="stable")])


@pytest.mark.parametrize("type", TYPES)
def test_the_first_and_bounds(rng, type):
    for most, k in ((1, 1), (30, 0), (2500, 100)):
        for n in [*numbers(rng, most), k]:
            x = with_nans(rng, make(rng, type, most))
            of, first = counted(x, n), x[:n]
            for largest in (False, True):
                ordered = descending(first) if largest else np.sort(first)
                expect(call("topk", of, k, largest=largest), ordered[:k])
            expect(call("argtopk", of, k, largest=False), np.argsort(first, kind="stable")[:k])
            m = int(rng.integers(0, most + 1))
            needles = make(rng, type, most)
            for side in ("left", "right"):
                expected = np.searchsorted(np.sort(first), needles, side)
                sorted = call("sort", of)
                expect(call("searchsorted", sorted, counted(needles, m), side=side), expected[:m])
                result = call("searchsorted", sorted, cupy.asarray(needles), side=side)
                assert np.array_equal(result.get(), expected)
                all = cupy.asarray(np.sort(x))
                expected = np.searchsorted(np.sort(x), needles, side)
                expect(call("searchsorted", all, counted(needles, m), side=side), expected[:m])


@pytest.mark.parametrize("type", TYPES)
def test_merges_and_sets(rng, type):
    for most in (1, 40, 1500):
        for n in numbers(rng, most):
            a, b, m = make(rng, type, most), make(rng, type, most // 2), int(rng.integers(0, most // 2 + 1))
            for of_a, a_first in ((counted(a, n), a[:n]), (cupy.asarray(a), a)):
                of_b, b_first = counted(b, m), b[:m]
                expect(call("union", of_a, of_b), np.union1d(a_first, b_first))
                expect(call("intersect", of_a, of_b), np.intersect1d(a_first, b_first))
                expect(call("difference", of_a, of_b), np.setdiff1d(a_first, b_first))
                expect(call("difference", of_b, of_a), np.setdiff1d(b_first, a_first))
            a_sorted, b_sorted = np.sort(with_nans(rng, a[:n])), np.sort(b[:m])
            a[:n], b[:m] = a_sorted, b_sorted
            of_a, of_b = counted(a, n), counted(b, m)
            result = call("merge", of_a, of_b)
            expect(result, np.sort(np.concatenate([a_sorted, b_sorted])))
            zeros = found(result)[found(result) == 0]
            assert not np.signbit(zeros).any(), "a merge of floats gives equal ones equal bits"
            expect(call("merge", cupy.asarray(b_sorted), of_a), np.sort(np.concatenate([b_sorted, a_sorted])))
            a[:n], b[:m] = descending(a_sorted), descending(b_sorted)
            expected = descending(np.concatenate([a_sorted, b_sorted]))
            out = cupy.asarray(np.zeros(len(a) + len(b), type))
            result = call("merge", counted(a, n), counted(b, m), descending=True, out=out)
            assert result.array is out
            expect(result, expected)


@pytest.mark.parametrize("type", TYPES)
def test_groups(rng, type):
    for most in (1, 40, 1500):
        for n in numbers(rng, most):
            x, values = make(rng, type, most), rng.integers(-99, 99, most)
            for of, first in ((counted(x, n), x[:n]), (Counted(cupy.asarray(x)), x)):
                expect(call("unique", of), np.unique(first))
                heads, lengths = call("unique", of, return_counts=True)
                expected, inverse, expected_lengths = np.unique(first, return_inverse=True, return_counts=True)
                expect(heads, expected)
                expect(Counted(lengths, heads.count), expected_lengths)
                for op, function, start in (("sum", np.add, 0), ("min", np.minimum, 100), ("max", np.maximum, -100)):
                    keys, totals = call("reduce_by_key", of, cupy.asarray(values), op=op)
                    expected_totals = np.full(len(expected), start)
                    function.at(expected_totals, inverse, values[: len(first)])
                    expect(keys, expected)
                    expect(Counted(totals, keys.count), expected_totals)


def test_a_chain_does_not_wait(rng):
    for type in TYPES:
        for most in (1, 300, 4000):
            for n in numbers(rng, most):
                x, other = make(rng, type, most, few=most < 1000), descending(make(rng, type, most // 2))
                heads = call("unique", counted(x, n))
                down = call("sort", heads, descending=True)
                merged = call("merge", down, cupy.asarray(other), descending=True)
                smallest = call("topk", merged, min(3, most), largest=False)
                expected = np.concatenate([np.unique(x[:n]), other])
                expect(merged, descending(expected))
                expect(smallest, np.sort(expected)[: min(3, most)])


def test_the_most_frequent_keys(rng):
    for n in numbers(rng, 1000):
        x = make(rng, "int32", 1000)
        keys, counts = call("unique", counted(x, n), return_counts=True)
        counts, keys = call("sort_pairs", Counted(counts, keys.count), keys.array, descending=True)
        expected_keys, expected = np.unique(x[:n], return_counts=True)
        order = np.argsort(-expected, kind="stable")
        expect(counts, expected[order])
        expect(Counted(keys, counts.count), expected_keys[order])


def test_no_count_stands_for_all_elements(rng):
    x, y = make(rng, "int32", 100), np.sort(make(rng, "int32", 10))
    all = Counted(cupy.asarray(x))
    for result in (call("sort", all), call("merge", call("sort", all), cupy.asarray(y))):
        assert result.count is None
    assert np.array_equal(result.array.get(), np.sort(np.concatenate([x, y])))
    assert np.array_equal(call("topk", all, 5).array.get(), np.sort(x)[::-1][:5])
    assert np.array_equal(call("argsort", all).array.get(), np.argsort(x, kind="stable"))
    nothing = Counted(cupy.asarray(x[:0]))
    expect(call("unique", nothing), x[:0])
    expect(call("union", nothing, nothing), x[:0])


@pytest.mark.parametrize("type", TYPES)
def test_calls_without_counts(rng, type):
    for most in (0, 1, 40, 1500):
        x, y, values = make(rng, type, most), make(rng, type, most // 2), rng.integers(-99, 99, most)
        of_x, of_y, k = cupy.asarray(x), cupy.asarray(y), most // 3
        heads, inverse = np.unique(x, return_inverse=True)
        totals = np.zeros(len(heads), "int64")
        np.add.at(totals, inverse, values)
        for result, expected in (
            (gmerge.merge(gmerge.sort(of_x), gmerge.sort(of_y)), [np.sort(np.concatenate([x, y]))]),
            (gmerge.topk(of_x, k), [descending(x)[:k]]),
            (gmerge.argtopk(of_x, k, largest=False), [np.argsort(x, kind="stable")[:k]]),
            (gmerge.unique(of_x), [heads]),
            (gmerge.unique(of_x, return_counts=True), np.unique(x, return_counts=True)),
            (
                gmerge.unique(of_x, return_index=True, return_inverse=True, return_counts=True),
                np.unique(x, return_index=True, return_inverse=True, return_counts=True),
            ),
            (gmerge.union(of_x, of_y), [np.union1d(x, y)]),
            (gmerge.intersect(of_x, of_y), [np.intersect1d(x, y)]),
            (gmerge.reduce_by_key(of_x, cupy.asarray(values)), [heads, totals]),
        ):
            result = result if isinstance(result, tuple) else (result,)
            for a, b in zip(result, expected, strict=True):
                assert a.dtype == b.dtype and np.array_equal(a.get(), b), (a.get(), b)


class Foreign:
    """An array of a library that the package does not know."""

    def __init__(self, array):
        self.array = array

    @property
    def __cuda_array_interface__(self):
        return self.array.__cuda_array_interface__


def test_counts_of_no_dimension_and_foreign_arrays(rng):
    x = make(rng, "int32", 100)
    expect(call("sort", Counted(cupy.asarray(x), cupy.asarray(np.array(60, "int32")))), np.sort(x[:60]))
    of = counted(x, 30)
    expect(call("unique", Counted(Foreign(of.array), Foreign(of.count))), np.unique(x[:30]))
    keys, values = call("sort_pairs", Counted(Foreign(of.array)), Foreign(of.array))
    assert keys.count is None and np.array_equal(keys.array.get(), np.sort(x))
    assert np.array_equal(values.get(), np.sort(x))


def test_the_total_order(rng):
    x = rng.permutation(np.array([0.0, -0.0, np.nan, -np.nan, 1, -1, np.inf, -np.inf] * 20, "float32"))
    bits = x.view("int32")
    order = np.argsort(np.where(bits < 0, bits ^ 0x7FFFFFFF, bits), kind="stable")
    of = cupy.asarray(x)
    assert np.array_equal(gmerge.argsort(of, nan="total").get(), order)
    keys, values = gmerge.sort_pairs(of, cupy.asarray(np.arange(len(x))), nan="total")
    assert np.array_equal(values.get(), order) and np.array_equal(keys.get().view("int32"), bits[order])
    a, b = (call("sort", counted(part, 30), nan="total") for part in (x, x[60:]))
    both = np.concatenate([x[:30], x[60:90]]).view("int32")
    both = both[np.argsort(np.where(both < 0, both ^ 0x7FFFFFFF, both), kind="stable")]
    assert np.array_equal(found(call("merge", a, b, nan="total")).view("int32"), both)


def test_errors():
    x = np.arange(6, dtype="int32")
    of, plain = counted(x, 3), cupy.asarray(x)
    knows = "is Counted, and this call needs a number that the host knows"
    for message, function, arrays, arguments in (
        (f"array 0 {knows}", "segmented_sort", (of, cupy.asarray(np.array([0, 6]))), {}),
        (f"array 0 {knows}", "segmented_argsort", (of, cupy.asarray(np.array([0, 6]))), {}),
        (f"array 0 {knows}", "unique", (of,), {"return_index": True}),
        (f"array 0 {knows}", "unique", (of,), {"return_inverse": True}),
        (f"array 2 {knows}", "merge", (plain, plain, of), {}),
        (f"array 0 {knows}", "merge", (of,), {}),
        (f"array 1 {knows}", "sort_pairs", (plain, of), {}),
        (f"array 1 {knows}", "reduce_by_key", (of, of), {}),
        (f"array 2 {knows}", "searchsorted", (of, plain), {"sorter": of}),
        ("out is Counted", "sort", (of,), {"out": of}),
        ("array 0 has 2 dimensions, expected 1", "sort", (counted(x.reshape(2, 3), 1),), {}),
        ("shape \\(2,\\), expected one integer", "sort", (Counted(plain, cupy.asarray(x[:2])),), {}),
        ("type float64 and shape \\(1,\\), expected one integer", "sort", (counted(x, 3, "float64"),), {}),
        ("Counted, and not in a GPU's memory", "sort", (Counted(x, np.array([3])),), {}),
        ("engine is 'cpu'", "sort", (of,), {"engine": "cpu"}),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            getattr(gmerge, function)(*arrays, **arguments)
