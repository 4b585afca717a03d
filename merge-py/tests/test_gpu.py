"""Arrays in a GPU's memory, against torch and CuPy. `python test_gpu.py` runs all of it without pytest."""

import sys
import time
import traceback

import gmerge
import numpy as np

try:
    import pytest

    skip = pytest.mark.skipif("not _has_gpu()", reason="no torch with a GPU")
    pytestmark = skip
except ImportError:
    pytest = None


def _has_gpu():
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


if _has_gpu():
    import torch

    DTYPES = [
        torch.int8,
        torch.uint8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
        torch.bool,
    ]


def make(dtype, shape, seed, few=True):
    torch.manual_seed(seed)
    x = torch.randn(shape, device="cuda").mul(3 if few else 1e6)
    if few:
        x = x.round()
    if dtype.is_floating_point:
        x[torch.rand(shape, device="cuda") < 0.1] = float("nan")
        x[torch.rand(shape, device="cuda") < 0.1] = -0.0
        x = torch.where(torch.rand(shape, device="cuda") < 0.5, x, -x) if few else x
    return x.to(dtype)


def equal(a, b):
    assert a.shape == b.shape and a.dtype == b.dtype and a.device == b.device, (a.shape, b.shape, a.dtype, b.dtype)
    assert torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num())


def same(x):
    """NaNs of one kind: torch's sort orders NaNs by their bits."""
    return torch.where(x.isnan(), torch.nan, x) if x.dtype.is_floating_point else x


def test_sort_and_argsort():
    for dtype in DTYPES:
        for n in (0, 1, 2, 31, 1000, 100_003):
            for few in (True, False):
                x = same(make(dtype, n, n, few))
                expected = torch.sort(x, stable=True)
                equal(gmerge.sort(x), expected.values)
                assert torch.equal(gmerge.argsort(x), expected.indices), (dtype, n, few)
                values = torch.arange(n, device="cuda", dtype=torch.int32)
                for of in (values, values.long(), values.half(), values.view(-1, 1).expand(-1, 3)):
                    keys, moved = gmerge.sort_pairs(x, of)
                    equal(keys, expected.values)
                    assert torch.equal(moved, of[expected.indices])


def test_nans_of_both_signs_keep_their_order():
    for dtype in (torch.float16, torch.float32, torch.float64, torch.bfloat16):
        x = make(dtype, 50_000, 3)
        numbers = x.float().cpu().numpy()
        order = np.argsort(numbers, kind="stable")
        assert np.array_equal(gmerge.argsort(x).cpu().numpy(), order), dtype
        equal(gmerge.sort(x), x[torch.from_numpy(order).cuda()])


def test_axes_strides_and_out():
    for shape in ((3, 5), (1, 700), (700, 1), (4, 0), (20, 3, 50), (300, 300)):
        for dtype in (torch.int32, torch.float64, torch.float16):
            x = same(make(dtype, shape, 5))
            for axis in range(-len(shape), len(shape)):
                for y in (x, x.transpose(0, -1).contiguous().transpose(0, -1), x.repeat_interleave(2, 0)[::2]):
                    expected = torch.sort(y, dim=axis, stable=True)
                    equal(gmerge.sort(y, axis=axis), expected.values)
                    assert torch.equal(gmerge.argsort(y, axis=axis), expected.indices)
                    out = torch.empty_like(y)
                    assert gmerge.sort(y, axis=axis, out=out) is out
                    equal(out, expected.values)
                    out = y.clone()
                    assert gmerge.sort(out, axis=axis, out=out) is out
                    equal(out, expected.values)
                    down = torch.sort(
                        torch.where(y.isnan(), -torch.inf, y) if dtype.is_floating_point else y,
                        dim=axis,
                        descending=True,
                        stable=True,
                    )
                    assert torch.equal(gmerge.argsort(y, axis=axis, descending=True), down.indices)
                    k = min(2, y.shape[axis])
                    assert torch.equal(gmerge.argtopk(y, k, axis=axis), down.indices.narrow(axis, 0, k))


def test_the_rest():
    for dtype in (torch.int32, torch.int64, torch.float32, torch.float64, torch.int16):
        for n in (0, 1, 1000, 200_001):
            x = make(dtype, n, 9)
            host = x.cpu().numpy()
            if n:
                found = gmerge.unique(x, return_index=True, return_inverse=True, return_counts=True)
                expected = np.unique(host, return_index=True, return_inverse=True, return_counts=True)
                for a, b in zip(found, expected, strict=True):
                    assert np.array_equal(a.cpu().numpy(), b, equal_nan=b.dtype.kind == "f"), dtype
                k = min(n, 300)
                order = gmerge.argsort(x, descending=True)
                assert torch.equal(gmerge.argtopk(x, k), order[:k])
                equal(gmerge.topk(x, k), x[order[:k]])
            y = make(dtype, n // 2, 10)
            other = y.cpu().numpy()
            assert np.array_equal(gmerge.union(x, y).cpu().numpy(), np.union1d(host, other), equal_nan=True)
            sorted = gmerge.sort(x)
            for side in ("left", "right"):
                expected = np.searchsorted(np.sort(host), other, side=side)
                assert np.array_equal(gmerge.searchsorted(sorted, y, side=side).cpu().numpy(), expected)
            merged = gmerge.merge(sorted, gmerge.sort(y))
            equal(merged, torch.sort(same(torch.cat([x, y]))).values)
            if dtype in (torch.int32, torch.int64):
                keys, totals = gmerge.reduce_by_key(x, torch.ones_like(x))
                expected = np.unique(host, return_counts=True)
                assert np.array_equal(keys.cpu().numpy(), expected[0])
                assert totals.dtype == torch.int64 and np.array_equal(totals.cpu().numpy(), expected[1])
    x = make(torch.float32, 1000, 1)
    offsets = torch.tensor([0, 10, 10, 400, 1000], device="cuda")
    expected = gmerge.segmented_argsort(x.cpu(), offsets.cpu())
    assert torch.equal(gmerge.segmented_argsort(x, offsets).cpu(), expected)
    equal(gmerge.segmented_sort(x, offsets), x[expected.cuda()])
    for wrong in ([0, 5], [0, 700, 600, 1000]):
        try:
            gmerge.segmented_sort(x, torch.tensor(wrong, device="cuda"))
            raise AssertionError("wrong offsets are an error")
        except ValueError:
            pass


def test_no_call_waits_and_streams_are_in_order():
    x = torch.randint(0, 2**31, (1 << 20,), device="cuda", dtype=torch.int32)
    side = torch.cuda.Stream()
    expected = torch.sort(x).values
    for function in (gmerge.sort, gmerge.argsort, lambda y: gmerge.topk(y, 10), lambda y: gmerge.sort_pairs(y, y)):
        function(x)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        y = torch.zeros_like(x)
        torch.cuda._sleep(1_000_000_000)
        begin = time.perf_counter()
        y.copy_(x)
        found = gmerge.sort(y)
        y.zero_()
        gmerge.argsort(x), gmerge.topk(x, 10), gmerge.sort_pairs(x, x)
        took = time.perf_counter() - begin
        assert not side.query(), "the GPU is still busy"
    side.synchronize()
    assert torch.equal(found, expected) and took < 0.2, took


def test_a_graph():
    x = torch.randn(100_000, device="cuda")
    gmerge.sort(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        sorted = gmerge.sort(x)
    for _ in range(3):
        x.copy_(torch.randn_like(x))
        graph.replay()
        assert torch.equal(sorted, torch.sort(x).values)


def test_a_graph_of_counted_elements():
    x = torch.randint(0, 1000, (50_000,), device="cuda", dtype=torch.int32)
    other = torch.randint(0, 1000, (1000,), device="cuda", dtype=torch.int32).sort().values
    count = torch.zeros(1, device="cuda", dtype=torch.int64)

    def chain():
        down = gmerge.sort(gmerge.unique(gmerge.Counted(x, count)), descending=True)
        return gmerge.merge(gmerge.sort(down), other), gmerge.argsort(gmerge.Counted(x, count))

    chain()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        merged, order = chain()
    for n in (50_000, 0, 1, 20_000):
        count.fill_(n)
        graph.replay()
        expected = torch.cat([torch.unique(x[:n]), other]).sort().values
        assert torch.equal(merged.array[: int(merged.count)], expected)
        assert torch.equal(order.array[:n], torch.argsort(x[:n], stable=True))
    sorted = gmerge.sort(gmerge.Counted(x, torch.tensor([7], device="cuda", dtype=torch.uint64)))
    assert int(sorted.count) == 7 and torch.equal(sorted.array[:7], x[:7].sort().values)


def test_errors():
    x = torch.zeros(5, device="cuda")
    for call, kind in (
        (lambda: gmerge.sort(x, engine="cpu"), ValueError),
        (lambda: gmerge.sort(x.to(torch.complex64)), TypeError),
        (lambda: gmerge.merge(x, torch.zeros(5)), ValueError),
        (lambda: gmerge.sort(x, out=torch.zeros(4, device="cuda")), ValueError),
        (lambda: gmerge.sort(x, axis=1), IndexError),
        (lambda: gmerge.topk(x, 6), ValueError),
    ):
        try:
            call()
        except kind:
            continue
        raise AssertionError(kind)


def test_cupy():
    import cupy

    for name in ("int8", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "bool"):
        for shape in ((1000,), (30, 40)):
            x = cupy.asarray(np.random.default_rng(1).integers(0, 100, shape)).astype(name)
            host = x.get()
            for axis in range(len(shape)):
                assert np.array_equal(gmerge.sort(x, axis=axis).get(), np.sort(host, axis=axis))
                order = np.argsort(host, axis=axis, kind="stable")
                assert np.array_equal(gmerge.argsort(x, axis=axis).get(), order)
            found = gmerge.unique(x, return_index=True, return_inverse=True, return_counts=True)
            expected = np.unique(host.ravel(), return_index=True, return_inverse=True, return_counts=True)
            assert all(np.array_equal(a.get(), b) for a, b in zip(found, expected, strict=True))
    with cupy.cuda.Stream() as stream:
        y = cupy.random.random(100_000)
        sorted = gmerge.sort(y)
    stream.synchronize()
    assert np.array_equal(sorted.get(), np.sort(y.get()))


def test_jax_and_dlpack():
    import jax

    if jax.default_backend() != "gpu":
        return
    x = jax.random.normal(jax.random.PRNGKey(1), (1000,))
    sorted = gmerge.sort(x)
    assert isinstance(sorted, jax.Array) and np.array_equal(np.asarray(sorted), np.sort(np.asarray(x)))


if __name__ == "__main__":
    failed = 0
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            begin = time.perf_counter()
            try:
                test()
                print(f"{name}: ok, {time.perf_counter() - begin:.1f} s", flush=True)
            except Exception:
                failed += 1
                print(f"{name}: FAILED", flush=True)
                traceback.print_exc()
    sys.exit(failed)
