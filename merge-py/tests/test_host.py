"""The functions with numpy arrays, against numpy."""

import itertools
import os
import signal
import threading

import gmerge
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

NUMBERS = ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]
OTHERS = ["?", ">i4", ">f8", ">u2", "M8[s]", "m8[ns]", ">M8[D]", "c8", "c16"]
FEW = [0, 1, 2, 3, 10, 100, 1000]


def bits(array):
    """The bytes of an array, as far as they are compared: all NaNs of converted types are one."""
    array = np.ascontiguousarray(array)
    return array.dtype, array.shape, array.tobytes()


def make(dtype, shape, seed, few=False):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    if dtype.kind == "c":
        x = np.empty(count, dtype)
        x.real, x.imag = (make(f"f{dtype.itemsize // 2}", count, seed + i, few) for i in (0, 1))
        return x.reshape(shape)
    if dtype.kind == "b":
        return (rng.random(shape) < 0.5).astype(dtype)
    if dtype.kind == "f":
        x = rng.integers(-4, 4, count).astype("f8") if few else rng.standard_normal(count)
        x = x.astype(dtype)
        special = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf]).astype(dtype)
        mask = rng.random(count) < 0.2
        x[mask] = rng.choice(special, mask.sum())
        return x.reshape(shape)
    size = dtype.itemsize
    x = rng.integers(0, 5 if few else 256, (count, size), dtype="u1")
    if few:
        x[:, 1:] = 0
    x = x.view(f"u{size}").reshape(shape).view(dtype.newbyteorder("<"))
    if dtype.kind in "mM":
        x = x.astype(dtype)
        x[rng.random(shape) < 0.1] = np.datetime64("NaT") if dtype.kind == "M" else np.timedelta64("NaT")
    return x.astype(dtype)


@pytest.mark.parametrize("engine", ["auto", "cpu"])
@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("dtype", NUMBERS + OTHERS)
def test_sort_and_argsort_are_those_of_numpy(dtype, few, engine):
    for seed, n in enumerate(FEW + [70_000]):
        x = make(dtype, n, seed, few)
        order = np.argsort(x, kind="stable")
        found = gmerge.argsort(x, engine=engine)
        assert found.dtype == np.int64 and np.array_equal(found, order), (dtype, n, seed)
        assert bits(gmerge.sort(x, engine=engine)) == bits(x[order]), (dtype, n, seed)
        keys, values = gmerge.sort_pairs(x, np.arange(n, dtype="u2"), engine=engine)
        assert bits(keys) == bits(x[order]) and np.array_equal(values, order.astype("u2"))


@pytest.mark.parametrize("dtype", NUMBERS + ["M8[s]", "c16"])
@pytest.mark.parametrize("shape", [(3, 5), (7, 1, 4), (1, 9), (4, 0), (0, 4), (5, 300), (300, 5)])
def test_every_axis_strides_and_out(dtype, shape):
    x = make(dtype, shape, 7, True)
    for axis in [None, *range(-len(shape), len(shape))]:
        for y in (x, x.swapaxes(0, -1).copy().swapaxes(0, -1), np.repeat(x, 2, axis=0)[::2], x[::-1]):
            order = np.argsort(y, axis=axis, kind="stable")
            expected = np.take_along_axis(y.ravel() if axis is None else y, order, -1 if axis is None else axis)
            assert np.array_equal(gmerge.argsort(y, axis=axis), order)
            assert bits(gmerge.sort(y, axis=axis)) == bits(expected)
            if axis is not None:
                out = np.empty_like(y)
                assert gmerge.sort(y, axis=axis, out=out) is out and bits(out) == bits(expected)
                z = y.copy()
                assert gmerge.sort(z, axis=axis, out=z) is z and bits(z) == bits(expected)
                k = min(2, y.shape[axis])
                first = np.take(gmerge.argsort(y, axis=axis, descending=True), range(k), axis)
                assert np.array_equal(gmerge.argtopk(y, k, axis=axis), first)
                assert bits(gmerge.topk(y, k, axis=axis)) == bits(np.take_along_axis(y, first, axis))


def test_out_may_overlap():
    x = make("f4", 1000, 1)
    expected = np.sort(x[:900], kind="stable")
    gmerge.sort(x[:900], out=x[100:])
    assert bits(x[100:]) == bits(expected)


@pytest.mark.parametrize("nan", ["last", "first", "total"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "M8[s]", "i4"])
def test_orders(dtype, nan):
    for seed in range(20):
        x = make(dtype, 500, seed, True)
        is_nan = np.isnat(x) if x.dtype.kind == "M" else np.isnan(x)
        for descending in (False, True):
            found = x[gmerge.argsort(x, descending=descending, nan=nan)]
            assert bits(gmerge.sort(x, descending=descending, nan=nan)) == bits(found)
            if nan != "total":
                at = slice(500 - is_nan.sum(), None) if nan == "last" else slice(0, is_nan.sum())
                assert (np.isnat if x.dtype.kind == "M" else np.isnan)(found[at]).all()
                numbers = x[~is_nan]
                sign = numbers.astype("f8") if x.dtype.kind == "f" else numbers.astype("i8")
                order = np.argsort(-sign if descending else sign, kind="stable")
                rest = np.delete(found, np.arange(500)[at])
                assert bits(rest) == bits(numbers[order])


@pytest.mark.parametrize("dtype", NUMBERS + ["?", "M8[s]", ">i4", "c8"])
def test_unique_and_sets(dtype):
    for seed, n in enumerate([0, 1, 5, 100, 3000]):
        x, y = make(dtype, n, seed, True), make(dtype, n + 3, seed + 50, True)
        for parts in itertools.product((False, True), repeat=3):
            flags = dict(zip(("return_index", "return_inverse", "return_counts"), parts))
            found, expected = gmerge.unique(x, **flags), np.unique(x, **flags)
            if not any(parts):
                found, expected = (found,), (expected,)
            for a, b in zip(found, expected, strict=True):
                assert a.shape == b.shape and np.array_equal(a, b, equal_nan=a.dtype.kind in "fcmM"), flags
        if np.dtype(dtype).kind == "c":
            continue
        y[::7] = x[0] if n else y[0]
        for ours, theirs in (
            (gmerge.union, np.union1d),
            (gmerge.intersect, np.intersect1d),
            (gmerge.difference, np.setdiff1d),
        ):
            a, b = ours(x, y), theirs(x, y)
            if np.dtype(dtype).kind in "fmM" and ours is not gmerge.union:
                # numpy holds NaNs to be different there.
                a, b = (z[~(np.isnat(z) if z.dtype.kind in "mM" else np.isnan(z))] for z in (a, b))
            assert a.dtype == b.dtype.newbyteorder("=") and np.array_equal(a, b, equal_nan=a.dtype.kind in "fmM")


@pytest.mark.parametrize("dtype", NUMBERS + [">f4", "M8[s]", "c8"])
def test_merge(dtype):
    for seed, lengths in enumerate([(0,), (5,), (0, 3), (100, 50), (10, 0, 70, 3), (3000, 2000, 10)]):
        for descending in (False, True):
            arrays = [gmerge.sort(make(dtype, n, seed + i, True), descending=descending) for i, n in enumerate(lengths)]
            expected = gmerge.sort(np.concatenate(arrays), descending=descending)
            assert bits(gmerge.merge(*arrays, descending=descending)) == bits(expected)
            out = np.empty_like(expected)
            assert gmerge.merge(*arrays, descending=descending, out=out) is out and bits(out) == bits(expected)


@pytest.mark.parametrize("dtype", NUMBERS + [">i8", "M8[s]"])
def test_searchsorted(dtype):
    for seed, (n, m) in enumerate(itertools.product([0, 1, 100, 5000], [0, 1, 7, 900])):
        x, needles = np.sort(make(dtype, n, seed, True), kind="stable"), make(dtype, m, seed + 9, True)
        for side in ("left", "right"):
            found, expected = gmerge.searchsorted(x, needles, side=side), np.searchsorted(x, needles, side=side)
            assert np.array_equal(found, expected), (n, m, side)
    x = np.array([1, 3, 5])
    assert (
        gmerge.searchsorted(x, 3) == 1 and gmerge.searchsorted(x, 3.5) == 2 and np.ndim(gmerge.searchsorted(x, 3)) == 0
    )
    assert gmerge.searchsorted(np.array([5, 1, 3]), [[3, 4]], sorter=np.array([1, 2, 0])).tolist() == [[1, 2]]


def test_segments():
    for seed in range(20):
        x = make("f4", 1000, seed, True)
        cuts = np.sort(np.random.default_rng(seed).integers(0, 1001, 30))
        offsets = np.concatenate([[0], cuts, [1000]])
        order = gmerge.segmented_argsort(x, offsets)
        expected = np.concatenate([a + np.argsort(x[a:b], kind="stable") for a, b in itertools.pairwise(offsets)])
        assert np.array_equal(order, expected) and bits(gmerge.segmented_sort(x, offsets)) == bits(x[expected])
    for wrong in ([0, 5], [1, 1000], [0, 700, 600, 1000], [0, 2000, 1000], []):
        with pytest.raises((ValueError, TypeError)):
            gmerge.segmented_sort(x, np.array(wrong))
        with pytest.raises((ValueError, TypeError)):
            gmerge.segmented_argsort(x, np.array(wrong))


@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", ">i4"])
def test_reduce_by_key(dtype):
    for n in (0, 1, 10, 5000):
        keys, values = make("i2", n, 3, True), np.abs(make(dtype, n, 4, True))
        if values.dtype.kind == "f":
            values = np.nan_to_num(values, posinf=3).astype(dtype)
        for op, reduce in (("sum", np.sum), ("min", np.min), ("max", np.max)):
            found, totals = gmerge.reduce_by_key(keys, values, op=op)
            expected = np.unique(keys)
            assert np.array_equal(found, expected)
            each = [reduce(values[keys == key]) for key in expected]
            if dtype == "f2" and op == "sum":
                continue  # numpy adds numbers of 4 bytes, too, but in another order
            assert totals.dtype == (np.array(each).dtype.newbyteorder("=") if n else totals.dtype) or dtype[0] == ">"
            assert np.allclose(totals, each)


def test_pairs_of_all_values():
    keys = make("i4", 500, 1, True)
    order = np.argsort(keys, kind="stable")
    for values in (
        np.arange(500),
        np.arange(500).astype("S13"),
        np.arange(500).astype(object),
        make("c16", 500, 2),
        np.zeros(500, "V0"),
        np.arange(500).astype("M8[s]"),
        np.arange(1500).reshape(500, 3),
        np.arange(1000)[::2],
        np.arange(500).astype("U5"),
        np.arange(500, dtype=">i8"),
    ):
        found = gmerge.sort_pairs(keys, values)[1]
        assert found.dtype == values.dtype and np.array_equal(found, values[order], equal_nan=values.dtype.kind == "c")
    two = make("f4", (20, 30), 3, True)
    order = np.argsort(two, axis=0, kind="stable")
    found = gmerge.sort_pairs(two, np.arange(600).reshape(20, 30), axis=0)
    assert np.array_equal(found[1], np.take_along_axis(np.arange(600).reshape(20, 30), order, 0))
    with pytest.raises(ValueError, match="values have shape"):
        gmerge.sort_pairs(keys, np.arange(3))


def test_bfloat16():
    x = make("f4", 3000, 1, True).astype(ml_dtypes.bfloat16)
    order = np.argsort(x.astype("f4"), kind="stable")
    assert np.array_equal(gmerge.argsort(x), order)
    assert np.array_equal(gmerge.sort(x).astype("f4"), x[order].astype("f4"), equal_nan=True)


@pytest.mark.parametrize(
    "dtype", ["O", "S3", "U2", "V4", np.dtype([("a", "i4")])] + (["g"] if np.dtype("g").itemsize > 8 else [])
)
def test_types_that_cannot_be_sorted(dtype):
    x = np.zeros(5, dtype)
    for function in (gmerge.sort, gmerge.argsort, gmerge.unique):
        with pytest.raises(TypeError, match="cannot be sorted"):
            function(x)


def test_wrong_arguments():
    x = np.arange(5)
    for wrong in (
        dict(nan="middle"),
        dict(engine="tpu"),
        dict(axis=1),
        dict(out=np.empty(4, int)),
        dict(out=np.empty(5, "f4")),
        dict(axis=-2),
    ):
        with pytest.raises((ValueError, IndexError)):
            gmerge.sort(x, **wrong)
    with pytest.raises(Exception):
        gmerge.sort(np.array(5))
    with pytest.raises(ValueError):
        gmerge.topk(x, 6)
    with pytest.raises(ValueError):
        gmerge.topk(x, -1)
    frozen = np.arange(5)[::-1].copy()
    frozen.flags.writeable = False
    assert gmerge.sort(frozen).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError):
        gmerge.sort(frozen, out=frozen)
    assert frozen.tolist() == [4, 3, 2, 1, 0]


def test_lists_and_scalars():
    assert gmerge.sort([3, 1, 2]).tolist() == [1, 2, 3]
    assert gmerge.argsort((3.0, 1.0)).tolist() == [1, 0]
    assert gmerge.sort(bytearray(b"hello")).tobytes() == b"ehllo"


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(width=32), max_size=300), st.booleans())
def test_any_floats(numbers, descending):
    x = np.array(numbers, "f4")
    order = gmerge.argsort(x, descending=descending)
    if not descending:
        assert np.array_equal(order, np.argsort(x, kind="stable"))
    assert bits(gmerge.sort(x, descending=descending)) == bits(x[order])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_shape_and_axis(data):
    shape = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    dtype = data.draw(st.sampled_from(NUMBERS + OTHERS))
    x = make(dtype, shape, data.draw(st.integers(0, 1000)), True)
    x = x[tuple(slice(None, None, data.draw(st.sampled_from([1, 2, -1]))) for _ in shape)]
    assert np.array_equal(gmerge.argsort(x, axis=axis), np.argsort(x, axis=axis, kind="stable"))
    assert bits(gmerge.sort(x, axis=axis)) == bits(np.sort(x, axis=axis, kind="stable"))


def test_unaligned_and_memory_maps(tmp_path):
    raw = np.zeros(4001, "u1")
    x = raw[1:].view("f4")
    x[:] = make("f4", 1000, 5)
    assert not x.flags.aligned
    assert bits(gmerge.sort(x)) == bits(np.sort(x.copy(), kind="stable"))
    assert np.array_equal(gmerge.argsort(x), np.argsort(x.copy(), kind="stable"))
    file = np.memmap(tmp_path / "keys", "i4", "w+", shape=1000)
    file[:] = np.arange(1000)[::-1]
    gmerge.sort(file, out=file)
    assert np.array_equal(file, np.arange(1000))


def test_threads():
    x = make("f8", 200_000, 8)
    expected = bits(np.sort(x, kind="stable"))
    found = []
    threads = [threading.Thread(target=lambda: found.append(bits(gmerge.sort(x)) == expected)) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert found == [True] * 8


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork():
    x = make("f8", 300_000, 9)

    def everything():
        keys, order = gmerge.sort(x), gmerge.argsort(x)
        pairs = gmerge.sort_pairs(x, np.arange(x.size).astype("S9"))
        found = gmerge.merge(keys, keys, keys), gmerge.searchsorted(keys, x), *gmerge.unique(x, return_counts=True)
        return [bits(y) for y in (keys, order, *pairs, *found, *gmerge.reduce_by_key(order % 100, order))]

    expected = everything()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            right = everything() == expected and bits(gmerge.sort(x, engine="cpu")) == expected[0]
            try:
                gmerge.sort(x, engine="gpu")
                right = False
            except RuntimeError as error:
                right = right and "fork" in str(error)
        finally:
            os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_calls_keep_no_memory():
    import resource
    import sys

    x = make("f4", 1000, 1)
    before_count = sys.getrefcount(x)
    for rounds in range(2):
        for _ in range(5000):
            gmerge.sort(x), gmerge.argsort(x), gmerge.unique(x, return_index=True)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        if rounds:
            assert used - first < 2000, "10,000 calls keep less than 2 MB"
        first = used
    assert sys.getrefcount(x) == before_count


def test_no_gpu_is_an_error_for_the_engine_gpu_only():
    x = np.arange(10)[::-1]
    try:
        assert gmerge.sort(x, engine="gpu").tolist() == list(range(10))
    except RuntimeError as error:
        assert "driver" in str(error) or "GPU" in str(error)


def test_the_first_elements_cut_a_group_of_equal_ones():
    for seed in range(300):
        x = make("f4", 30, seed, True)
        for largest in (False, True):
            order = gmerge.argsort(x, descending=largest)
            for k in (0, 1, 3, 10, 29, 30):
                assert np.array_equal(gmerge.argtopk(x, k, largest=largest), order[:k])
                assert bits(gmerge.topk(x, k, largest=largest)) == bits(x[order[:k]])


def test_nans_propagate_in_reductions():
    for nan in (np.nan, -np.nan):
        for op in ("sum", "min", "max"):
            assert np.isnan(gmerge.reduce_by_key([1, 1, 2], np.array([5.0, nan, 1.0]), op=op)[1]).tolist() == [
                True,
                False,
            ]


def test_what_is_refused_with_one_line():
    x, masked = np.arange(5), np.ma.array([3, 1, 2], mask=[0, 1, 0])
    for call, kind, says in (
        (lambda: gmerge.sort(masked), TypeError, "masked"),
        (lambda: gmerge.sort(x[:3], out=masked), TypeError, "out is of type MaskedArray"),
        (lambda: gmerge.topk(x, 1.5), TypeError, "k is 1.5"),
        (lambda: gmerge.sort(x, axis="x"), TypeError, "axis is 'x'"),
        (lambda: gmerge.sort(x, nan=[]), ValueError, "nan is"),
        (lambda: gmerge.sort(x, engine=[]), ValueError, "engine is"),
        (lambda: gmerge.sort(x, descending="no"), TypeError, "descending is 'no'"),
        (lambda: gmerge.searchsorted(x, 1, sorter=[0]), ValueError, "sorter has"),
        (lambda: gmerge.searchsorted(x, 1, sorter=[True] * 5), ValueError, "sorter has"),
        (lambda: gmerge.segmented_sort(x, [0, -1, 5]), ValueError, "-1"),
        (lambda: gmerge.merge(x, np.array(5)), ValueError, "array 1"),
        (lambda: gmerge.union(x.astype("M8[s]"), x.astype("m8[s]")), TypeError, "no common type"),
        (lambda: gmerge.sort(None), TypeError, "None"),
        (lambda: gmerge.sort(np.zeros(3, "G")), TypeError, str(np.dtype("G"))),
    ):
        with pytest.raises(kind, match=says):
            call()


def test_numbers_are_searched_in_the_common_type():
    assert gmerge.searchsorted(np.array([1, 5, 200], "u1"), 300) == 3
    assert gmerge.searchsorted(np.array([0.1, 0.2], "f4"), 0.1, side="right") == np.searchsorted(
        np.array([0.1, 0.2], "f4"), 0.1, side="right"
    )
    assert gmerge.searchsorted([3, 1, 2], [2], sorter=[1, 2, 0]).tolist() == [1]
    assert gmerge.difference(np.array([2**53 + 1]), np.array([5], "u8")).tolist() == [2**53 + 1]


def test_empty_and_unaligned():
    empty = np.zeros(17, "u1")[1:17].view("f8")[:0]
    assert gmerge.sort(empty).size == 0 and gmerge.argsort(empty).size == 0
    offsets = np.zeros(17, "u1")[1:17].view("u8")
    offsets[:] = [0, 3]
    assert gmerge.segmented_sort(np.array([3, 1, 2]), offsets).tolist() == [1, 2, 3]
