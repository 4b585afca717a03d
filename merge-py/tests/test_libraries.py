"""Arrays of other libraries in the memory of the host."""

import gmerge
import numpy as np
import pytest


def test_arrow():
    pa = pytest.importorskip("pyarrow")
    import pyarrow.compute as pc

    rng = np.random.default_rng(5)
    for type in (pa.int32(), pa.uint8(), pa.float64(), pa.float32(), pa.timestamp("ms"), pa.date32(), pa.bool_()):
        for nulls in (False, True):
            numbers = rng.integers(0, 2 if type == pa.bool_() else 50, 500)
            x = pa.array([None if nulls and n % 7 == 0 else n for n in numbers.tolist()], pa.int64())
            x = x.cast(pa.int32()).cast(type) if type == pa.date32() else x.cast(type)
            for array in (x, pa.chunked_array([x.slice(0, 100), x.slice(100)]), x.slice(3, 200)):
                order = pc.array_sort_indices(array)
                found = gmerge.argsort(array)
                assert found.type == pa.int64() and found.to_pylist() == order.to_pylist()
                sorted = gmerge.sort(array)
                assert sorted.type == type and sorted.to_pylist() == array.take(order).to_pylist()
            if not nulls:
                values, counts = gmerge.unique(x, return_counts=True)
                assert values.type == type and len(values) == len(x.unique()) and pc.sum(counts).as_py() == len(x)
    x = pa.array([2, -(2**63), 1], pa.timestamp("s", "UTC"))
    assert gmerge.sort(x).cast(pa.int64()).to_pylist() == [-(2**63), 1, 2] and gmerge.sort(x).type == x.type
    assert gmerge.searchsorted(pa.array([1, 2, 5]), 2) == 1
    assert gmerge.union(pa.array([1], pa.int8()), pa.array([1000])).to_pylist() == [1, 1000]
    assert gmerge.merge(np.array([1]), pa.array([2])).tolist() == [1, 2]
    keys, values = gmerge.sort_pairs(pa.array([2, 1]), pa.array([0, 5], pa.timestamp("us", "UTC")))
    assert keys.to_pylist() == [1, 2] and values.type == pa.timestamp("us", "UTC")
    with pytest.raises(TypeError, match="interval"):
        gmerge.sort(pa.array([(1, 2, 3)], pa.month_day_nano_interval()))
    with pytest.raises(TypeError, match="string"):
        gmerge.sort(pa.array(["b", "a"]))
    with pytest.raises(TypeError, match="nulls"):
        gmerge.unique(pa.array([1, None]))


def test_torch():
    torch = pytest.importorskip("torch")
    for dtype in (
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
    ):
        x = torch.randn(20, 300).mul(10).to(dtype)
        expected = torch.sort(x, dim=0, stable=True)
        assert torch.equal(gmerge.sort(x, axis=0), expected.values)
        found = gmerge.argsort(x, axis=0)
        assert found.dtype == torch.int64 and torch.equal(found, expected.indices)
        out = torch.empty_like(x)
        assert gmerge.sort(x, axis=0, out=out) is out and torch.equal(out, expected.values)
        assert torch.equal(gmerge.topk(x[0], 5), torch.sort(x[0], descending=True).values[:5])


def test_jax():
    jax = pytest.importorskip("jax")
    x = jax.numpy.array([3.0, 1.0, 2.0])
    sorted = gmerge.sort(x)
    assert isinstance(sorted, jax.Array) and sorted.tolist() == [1.0, 2.0, 3.0]
    assert gmerge.argsort(x).tolist() == [1, 2, 0]
    with pytest.raises(TypeError, match="JAX"):
        gmerge.sort(x, out=x)


class OnlyDlpack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **arguments):
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dlpack():
    assert gmerge.sort(OnlyDlpack(np.array([3, 1, 2]))).tolist() == [1, 2, 3]
