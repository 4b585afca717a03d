"""Operations on numpy arrays."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import numpy as np

from . import _native
from ._options import DESCENDING, NANS_FIRST, NANS_LAST, check_values, count_of, first, flat, index_of

try:
    from numpy.lib.array_utils import normalize_axis_index
except ImportError:  # before numpy 2
    from numpy.core.multiarray import normalize_axis_index

# The types of keys of the native part.
FORMATS = {
    np.dtype(name): code
    for name, code in dict(
        uint8=0, uint16=1, uint32=2, uint64=3, int8=5, int16=6, int32=7, int64=8, float16=10, float32=11, float64=12
    ).items()
}
# The types of values of `reduce_by_key`.
_NUMBERS = {np.dtype(name): FORMATS[np.dtype(name)] for name in ("u4", "i4", "f4", "u8", "i8", "f8")}
_FLOATS = {np.dtype(name) for name in ("f2", "f4", "f8")}
# Added to the bits of a date, this gives numbers in the order of dates with NaT as the last one.
_NAT_LAST = np.uint64(2**63 - 1)


class Keys(NamedTuple):
    """Keys of a type of the native part, with the format and what gives them their own type again."""

    array: np.ndarray
    format: int
    back: Callable[[np.ndarray], np.ndarray]


def _same(array: np.ndarray) -> np.ndarray:
    return array


def _keys(x: np.ndarray, format: int) -> Keys:
    """The keys of an array as numbers of the native part, without a copy if possible."""
    dtype = x.dtype
    code = FORMATS.get(dtype)
    if code is not None:
        return Keys(x, format | code, _same)
    if dtype.kind in "iuf" and (native := dtype.newbyteorder("=")) in FORMATS:
        return Keys(x.astype(native), format | FORMATS[native], lambda array: array.astype(dtype))
    if dtype.kind == "b":
        return Keys(x.view(np.uint8), format | 0, lambda array: array.view(dtype))
    if dtype.kind in "mM":
        native = dtype.newbyteorder("=")
        nat_is_greatest = bool(format & NANS_LAST) != bool(format & DESCENDING)
        if not format & (NANS_LAST | NANS_FIRST) or not nat_is_greatest:
            numbers = x.astype(native, copy=False).view(np.int64)
            return Keys(numbers, format | 8, lambda array: array.view(native).astype(dtype, copy=False))
        numbers = x.astype(native, copy=False).view(np.uint64) + _NAT_LAST
        return Keys(numbers, format | 3, lambda array: (array - _NAT_LAST).view(native).astype(dtype, copy=False))
    if dtype.name == "bfloat16":
        # The upper half of a float of 4 bytes. A conversion would change NaNs.
        wide = (x.view(np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
        narrow = lambda array: (array.view(np.uint32) >> np.uint32(16)).astype(np.uint16).view(dtype)  # noqa: E731
        return Keys(wide, format | 11, narrow)
    raise TypeError(f"arrays of type {dtype} cannot be sorted here")


def _rows(array: np.ndarray, axis: int, copy: bool) -> np.ndarray:
    """The array with `axis` as its last one, contiguous and aligned."""
    if array.ndim == 1:
        return array.copy() if copy or not (array.flags.c_contiguous and array.flags.aligned) else array
    moved = np.moveaxis(array, axis, -1)
    if copy:
        return np.array(moved, order="C", copy=True, subok=False)
    return np.require(moved, requirements="CA")


def _offsets(rows: np.ndarray) -> np.ndarray | None:
    """The offsets of the rows, or `None` for a single one."""
    if rows.ndim == 1:
        return None
    length = rows.shape[-1]
    if rows.size == length or rows.size == 0:
        return None
    return np.arange(0, rows.size + 1, length, dtype=np.uint64)


def _axis(x: np.ndarray, axis: int | None) -> tuple[np.ndarray, int]:
    if axis is None:
        return x.reshape(-1), 0
    return x, normalize_axis_index(index_of("axis", axis), x.ndim)


def _is_complex(x: np.ndarray) -> bool:
    if x.dtype.kind == "c" and x.dtype.itemsize > 16:
        raise TypeError(f"arrays of type {x.dtype} cannot be sorted here")
    return x.dtype.kind == "c"


def _check_out(out: Any, shape: tuple, dtype: np.dtype) -> None:
    if out is None:
        return
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        raise TypeError(f"out is of type {type(out).__name__}, expected a numpy array")
    if out.shape != shape or out.dtype != dtype:
        raise ValueError(f"out has shape {out.shape} and type {out.dtype}, expected {shape} and {dtype}")
    if not out.flags.writeable:
        raise ValueError("out is read-only")


def _to_out(result: np.ndarray, out: Any) -> np.ndarray:
    if out is None:
        return result
    out[...] = result
    return out


def sort(x: np.ndarray, *, axis: int | None, format: int, out: Any = None) -> np.ndarray:
    x, axis = _axis(x, axis)
    _check_out(out, x.shape, x.dtype)
    if _is_complex(x):
        return _to_out(np.take_along_axis(x, argsort(x, axis=axis, format=format), axis), out)
    keys = _keys(x, format)
    if out is x and keys.array is x and x.ndim == 1 and x.flags.c_contiguous and x.flags.writeable and x.flags.aligned:
        # In place: without a copy, equal floats have the order of their bits.
        _native.sort(keys.format, x)
        return x
    sorted = _rows(keys.array, axis, copy=True)
    if sorted.size:
        original = _rows(keys.array, axis, copy=False) if sorted.dtype in _FLOATS else None
        _native.sort(keys.format, sorted, None, original, _offsets(sorted))
    return _to_out(np.moveaxis(keys.back(sorted), -1, axis), out)


def argsort(x: np.ndarray, *, axis: int | None, format: int) -> np.ndarray:
    x, axis = _axis(x, axis)
    if _is_complex(x):
        # By real parts, and equal ones by imaginary parts. Before that, numpy compares which parts are NaN.
        keys = [(x.imag, format), (x.real, format)]
        if format & (NANS_LAST | NANS_FIRST) and np.isnan(x).any():
            parts = np.isnan(x.real) * np.uint8(2) + np.isnan(x.imag)
            keys.append((parts, format & ~DESCENDING if format & NANS_LAST else format | DESCENDING))
        order = None
        for key, format in keys:
            key = key if order is None else np.take_along_axis(key, order, axis)
            next = argsort(key, axis=axis, format=format)
            order = next if order is None else np.take_along_axis(order, next, axis)
        return order
    keys = _keys(x, format)
    rows = _rows(keys.array, axis, copy=False)
    indices = np.empty(rows.shape, np.int64)
    if rows.size:
        _native.argsort(keys.format, rows, indices, _offsets(rows))
    return indices if x.ndim == 1 else np.moveaxis(indices, -1, axis)


def sort_pairs(keys: np.ndarray, values: np.ndarray, *, axis: int, format: int) -> tuple[np.ndarray, np.ndarray]:
    if axis is None:
        keys, values = keys.reshape(-1), values.reshape(-1)
    keys, axis = _axis(keys, axis)
    are_rows = check_values(keys, values)
    if not _is_complex(keys) and not values.dtype.hasobject and values.nbytes:
        numbers = _keys(keys, format)
        sorted = _rows(numbers.array, axis, copy=True)
        moved = np.array(values if are_rows else np.moveaxis(values, axis, -1), order="C", copy=True, subok=False)
        bytes = moved.reshape(-1).view(np.uint8)
        if not _native.sort(numbers.format, sorted, bytes, None, _offsets(sorted)):
            moved = moved if are_rows else np.moveaxis(moved, -1, axis)
            return np.moveaxis(numbers.back(sorted), -1, axis), moved
    order = argsort(keys, axis=axis, format=format)
    of_values = values[order] if are_rows else np.take_along_axis(values, order, axis)
    return np.take_along_axis(keys, order, axis), of_values


def topk(x: np.ndarray, *, k: Any, axis: int | None, format: int) -> np.ndarray:
    x, axis = _axis(x, axis)
    k = count_of(k, x.shape[axis])
    if x.ndim == 1 and not _is_complex(x):
        keys = _keys(x, format)
        out = np.empty(k, keys.array.dtype)
        if not _native.top_k(keys.format, _rows(keys.array, 0, copy=False), out):
            return keys.back(out)
        return x[argsort(x, axis=0, format=format)[:k]]
    return first(sort(x, axis=axis, format=format), k, axis).copy()


def argtopk(x: np.ndarray, *, k: Any, axis: int | None, format: int) -> np.ndarray:
    x, axis = _axis(x, axis)
    k = count_of(k, x.shape[axis])
    if x.ndim == 1 and not _is_complex(x):
        keys = _keys(x, format)
        out = np.empty(k, np.int64)
        if not _native.top_k_indices(keys.format, _rows(keys.array, 0, copy=False), out):
            return out
    return first(argsort(x, axis=axis, format=format), k, axis).copy()


def merge(*arrays: np.ndarray, format: int, out: Any = None) -> np.ndarray:
    if not arrays:
        raise ValueError("there are no arrays to merge")
    dtype = _common(*arrays)
    arrays = tuple(flat(x, f"array {i}").astype(dtype, copy=False) for i, x in enumerate(arrays))
    _check_out(out, (sum(map(len, arrays)),), dtype)
    if dtype.kind != "c":
        runs = [_keys(x, format) for x in arrays]
        contiguous = [_rows(run.array, 0, copy=False) for run in runs]
        if not _native.have_ties(runs[0].format, contiguous):
            merged = np.empty(sum(map(len, contiguous)), contiguous[0].dtype)
            _native.merge(runs[0].format, contiguous, merged)
            return _to_out(runs[0].back(merged), out)
    return sort(np.concatenate(arrays), axis=0, format=format, out=out)


def _common(*arrays: np.ndarray) -> np.dtype:
    """The type that has the elements of all arrays."""
    if len({x.dtype.kind in "mM" and x.dtype.kind for x in arrays}) > 1:
        raise TypeError(f"there is no common type of {' and '.join(str(x.dtype) for x in arrays)}")
    try:
        return np.result_type(*(x.dtype for x in arrays))
    except TypeError:
        raise TypeError(f"there is no common type of {' and '.join(str(x.dtype) for x in arrays)}") from None


def _ordered(x1: np.ndarray, sorter: np.ndarray | None) -> np.ndarray:
    """`x1` in the order of `sorter`."""
    if sorter is None:
        return x1
    if sorter.dtype.kind not in "iu" or sorter.shape != x1.shape:
        expected = f"integers of shape {x1.shape}"
        raise ValueError(f"sorter has type {sorter.dtype} and shape {sorter.shape}, expected {expected}")
    return x1[sorter]


def searchsorted(
    x1: np.ndarray, x2: np.ndarray, sorter: np.ndarray | None = None, *, is_upper: bool, format: int
) -> Any:
    dtype = _common(x1, x2)
    x1, x2 = _ordered(flat(x1, "x1"), sorter), x2.astype(dtype, copy=False)
    keys, needles = _keys(x1.astype(dtype, copy=False), format), _keys(x2.reshape(-1), format)
    order = argsort(needles.array, axis=0, format=format) if needles.array.size > 1 else slice(None)
    sorted = np.array(needles.array[order], order="C", copy=True)
    found = np.empty(sorted.size, np.int64)
    _native.bounds(keys.format, _rows(keys.array, 0, copy=False), sorted, found, is_upper)
    bounds = np.empty_like(found)
    bounds[order] = found
    return bounds.reshape(x2.shape)[()]


def _canonical(x: np.ndarray, format: int) -> Keys:
    """A copy of the keys of a flattened array, in which equal keys have equal bits."""
    keys = _keys(x.reshape(-1), format)
    array = np.array(keys.array, order="C", copy=True)
    if array.dtype in _FLOATS:
        array += array.dtype.type(0)
        array[np.isnan(array)] = np.nan
    return keys._replace(array=array)


def _sorted(x: np.ndarray, values: np.ndarray | None, format: int) -> Keys:
    """A sorted copy of a flattened array, in which equal keys have equal bits. Values are sorted with it."""
    keys = _keys(x.reshape(-1), format)
    keys = keys._replace(array=np.array(keys.array, order="C", copy=True))
    original = values.copy() if values is not None and keys.array.dtype in _FLOATS else None
    if keys.array.size and _native.sort(keys.format, keys.array, values):
        # Rare: zeros of both signs, or several NaNs.
        keys = _canonical(x, format)
        if values is not None:
            values[...] = original
        _native.sort(keys.format, keys.array, values)
    return keys


def unique(x: np.ndarray, *, parts: tuple[bool, bool, bool], format: int) -> Any:
    if x.dtype.kind == "c":
        return _unique_complex(x.reshape(-1), parts, format)
    indices = np.arange(x.size) if parts[0] or parts[1] else None
    keys = _sorted(x, None if indices is None else indices.view(np.uint8), format)
    if not any(parts):
        return keys.back(_shortened(keys.array, _native.sort_unique(keys.format, keys.array)))
    out, counts = np.empty_like(keys.array), np.empty(keys.array.size, np.int64)
    groups = _native.unique(keys.format, keys.array, out, counts)
    return _with_parts(keys.back(_shortened(out, groups)), indices, _shortened(counts, groups), parts)


def _shortened(array: np.ndarray, count: int) -> np.ndarray:
    """The first elements, in memory of their own if most of the array is not needed."""
    return array[:count] if 2 * count > array.size else array[:count].copy()


def _with_parts(
    values: np.ndarray, indices: np.ndarray | None, counts: np.ndarray, parts: tuple[bool, bool, bool]
) -> Any:
    """The values of `unique` with its other results. `indices` sort the array."""
    result = [values]
    if parts[0]:
        result.append(indices[np.cumsum(counts) - counts])
    if parts[1]:
        inverse = np.empty_like(indices)
        inverse[indices] = np.repeat(np.arange(counts.size), counts)
        result.append(inverse)
    if parts[2]:
        result.append(counts)
    return tuple(result) if len(result) > 1 else values


def _unique_complex(x: np.ndarray, parts: tuple[bool, bool, bool], format: int) -> Any:
    indices = argsort(x, axis=0, format=format)
    sorted = x[indices]
    differs = (sorted[1:] != sorted[:-1]) & ~(np.isnan(sorted[1:]) & np.isnan(sorted[:-1]))
    begins = np.flatnonzero(np.concatenate([np.ones(min(x.size, 1), bool), differs]))
    counts = np.diff(np.append(begins, x.size))
    return _with_parts(sorted[begins], indices, counts, parts)


def set_operation(x1: np.ndarray, x2: np.ndarray, *, operation: int, format: int) -> np.ndarray:
    dtype = _common(x1, x2)
    if operation == 2 and x1.dtype != x2.dtype:
        # The result has the type of `x1`, which the common type may round.
        return np.setdiff1d(x1, x2)
    sets = []
    for x in (x1, x2):
        keys = _canonical(x.astype(dtype, copy=False), format)
        sets.append(keys._replace(array=keys.array[: _native.sort_unique(keys.format, keys.array)]))
    a, b = sets
    out = np.empty(a.array.size + (b.array.size if operation == 0 else 0), a.array.dtype)
    return a.back(out[: _native.set_operation(a.format, operation, a.array, b.array, out)].copy())


def _ends(offsets: np.ndarray) -> np.ndarray:
    if offsets.dtype.kind not in "iu":
        raise TypeError(f"offsets are of type {offsets.dtype}, expected integers")
    if offsets.ndim != 1 or not offsets.size:
        raise ValueError(f"offsets have shape {offsets.shape}, expected one dimension of at least one number")
    if offsets.dtype.kind == "i" and offsets.min() < 0:
        raise ValueError(f"an offset is {offsets.min()}, expected 0 or more")
    return np.require(offsets, np.uint64, "CA")


def segmented_sort(x: np.ndarray, offsets: np.ndarray, *, format: int) -> np.ndarray:
    keys = _keys(flat(x, "x"), format)
    sorted = _rows(keys.array, 0, copy=True)
    _native.sort(keys.format, sorted, None, _rows(keys.array, 0, copy=False), _ends(offsets))
    return keys.back(sorted)


def segmented_argsort(x: np.ndarray, offsets: np.ndarray, *, format: int) -> np.ndarray:
    keys, ends = _keys(flat(x, "x"), format), _ends(offsets)
    indices = np.empty(x.size, np.int64)
    _native.argsort(keys.format, _rows(keys.array, 0, copy=False), indices, ends)
    ends = ends.astype(np.int64)
    return indices + np.repeat(ends[:-1], np.diff(ends))


def reduce_by_key(keys: np.ndarray, values: np.ndarray, *, op: str, format: int) -> tuple[np.ndarray, np.ndarray]:
    if keys.shape != values.shape:
        raise ValueError(f"values have shape {values.shape}, expected that of the keys, {keys.shape}")
    dtype = values.dtype
    if op == "sum" and dtype.kind in "iub":
        dtype = np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
    if dtype.kind not in "iufb" or dtype.itemsize > 8:
        raise TypeError(f"values of type {dtype} cannot be reduced here")
    wide = dtype.newbyteorder("=")
    if wide not in _NUMBERS:
        wide = np.dtype({"u": np.uint32, "f": np.float32}.get(dtype.kind, np.int32))
    numbers = np.array(values.reshape(-1), wide, order="C", copy=True)
    if wide.kind == "f":
        # As in numpy, the result is NaN if a value is. Of these NaNs, one precedes and one follows all numbers.
        numbers[np.isnan(numbers)] = -np.nan if op == "min" else np.nan
    sorted = _sorted(keys, numbers.view(np.uint8), format)
    out, totals = np.empty_like(sorted.array), np.empty_like(numbers)
    code = ("sum", "min", "max").index(op), _NUMBERS[wide], wide.itemsize
    groups = _native.reduce_by_key(sorted.format, code, (sorted.array, numbers), (out, totals))
    return sorted.back(_shortened(out, groups)), _shortened(totals, groups).astype(dtype, copy=False)
