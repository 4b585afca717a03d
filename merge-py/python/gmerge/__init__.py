"""Sorts and merges of arrays where they are: numpy arrays and other arrays in the memory of the host on all CPU cores
or on a GPU, and arrays of torch, CuPy and JAX in the memory of a GPU on that GPU.

    >>> import gmerge, numpy as np
    >>> gmerge.sort(np.array([3.0, 1.0, 2.0]))
    array([1., 2., 3.])

Functions have these arguments in common:

- `axis`: the axis to sort along, by default the last one; `None` sorts the flattened array.
- `descending`: from the greatest to the least.
- `stable`: accepted, as in the array API. Every sort is stable, also with `descending`.
- `nan`: where NaNs and NaTs go: `"last"` as in numpy, `"first"`, or `"total"` for IEEE 754's total order, where
  negative NaNs are first, positive ones last, and -0.0 precedes 0.0. In the other orders, -0.0 and 0.0 are equal, and
  so are all NaNs.
- `out`: an array for the result, which may be an argument.
- `engine`: `"auto"`, `"cpu"` or `"gpu"`. With `"auto"`, arrays of the host are sorted by the CPU or by the first GPU,
  whichever is expected to take less time with both copies. Arrays of a GPU are always sorted there.

Results are arrays of the caller's library, on the caller's device. Work on a GPU is put on the library's current
stream. `Counted` stands for elements whose number only the GPU knows.
"""

from __future__ import annotations

import os as _os

from . import _native
from ._options import FLOATS as _FLOATS, OPTIONS as _OPTIONS, Counted, format_of as _format_of

__all__ = [
    "Counted",
    "argsort",
    "argtopk",
    "check_file",
    "difference",
    "intersect",
    "merge",
    "merge_files",
    "reduce_by_key",
    "searchsorted",
    "segmented_argsort",
    "segmented_sort",
    "sort",
    "sort_file",
    "sort_pairs",
    "topk",
    "union",
    "unique",
]
__version__ = "0.1.0"

if hasattr(_os, "register_at_fork"):
    # Threads of this library do not exist in a process that fork() has made, so it gets others.
    _os.register_at_fork(after_in_child=_native.forget_engines)

# The type of numpy's arrays, the formats of its types, and the functions for them, after the first call with such an
# array. To import numpy takes longer than everything else.
_ndarray: object = ()
_functions = None
_formats: dict[object, int] = {}


def _with_numpy() -> None:
    global _ndarray, _functions
    from . import _host

    _formats.update(_host.FORMATS)
    _ndarray = _host.np.ndarray
    _functions = _host


def _call(name: str, arrays: tuple, /, **arguments):
    """Calls a function for the library that an array belongs to."""
    if _functions is not None and all(type(x) is _ndarray for x in arrays):
        return getattr(_functions, name)(*arrays, **arguments)
    from ._libraries import library_of

    return library_of(arrays).call(name, arrays, arguments)


def sort(
    x,
    /,
    *,
    axis: int | None = -1,
    descending: bool = False,
    stable: bool = True,
    out=None,
    nan: str = "last",
    engine: str = "auto",
):
    """Returns a sorted copy of `x`, or writes it to `out`, which is `x` itself to sort in place.

    As `numpy.sort(x, axis, kind="stable")`; for bits of equal floats on a GPU see the documentation.
    """
    # The short way of most calls: one row of numbers of a numpy array.
    if type(x) is _ndarray and out is None and axis == -1 and x.ndim == 1:
        try:
            format = _formats.get(x.dtype, -1) | _OPTIONS.get((descending, nan, engine), -1)
        except TypeError:  # an argument that is not hashable
            format = -1
        if format >= 0:
            sorted = x.copy()
            if format & 0xFF < _FLOATS:
                _native.sort(format, sorted)
            else:
                _native.sort(format, sorted, None, x if x.flags.carray else x.copy())
            return sorted
    return _call("sort", (x,), axis=axis, format=_format_of(descending, nan, engine), out=out)


def argsort(
    x,
    /,
    *,
    axis: int | None = -1,
    descending: bool = False,
    stable: bool = True,
    nan: str = "last",
    engine: str = "auto",
):
    """Returns the indices that sort `x`, of type int64: `numpy.argsort(x, axis, kind="stable")`."""
    if type(x) is _ndarray and axis == -1 and x.ndim == 1:
        try:
            format = _formats.get(x.dtype, -1) | _OPTIONS.get((descending, nan, engine), -1)
        except TypeError:  # an argument that is not hashable
            format = -1
        if format >= 0:
            indices = _functions.np.empty(x.shape, "i8")
            _native.argsort(format, x if x.flags.carray else x.copy(), indices)
            return indices
    return _call("argsort", (x,), axis=axis, format=_format_of(descending, nan, engine))


def sort_pairs(
    keys,
    values,
    /,
    *,
    axis: int | None = -1,
    descending: bool = False,
    stable: bool = True,
    nan: str = "last",
    engine: str = "auto",
):
    """Returns sorted copies of `keys` and `values`, in the order of the keys.

    Values have the shape of the keys. Values of one-dimensional keys may have further dimensions.
    """
    return _call("sort_pairs", (keys, values), axis=axis, format=_format_of(descending, nan, engine))


def topk(x, k: int, /, *, axis: int | None = -1, largest: bool = True, nan: str = "last", engine: str = "auto"):
    """Returns the `k` largest elements from the largest on, or the `k` smallest ones from the smallest on."""
    return _call("topk", (x,), k=k, axis=axis, format=_format_of(largest, nan, engine))


def argtopk(x, k: int, /, *, axis: int | None = -1, largest: bool = True, nan: str = "last", engine: str = "auto"):
    """Returns the indices of the elements that `topk` returns. Of equal elements, those with the least indices."""
    return _call("argtopk", (x,), k=k, axis=axis, format=_format_of(largest, nan, engine))


def merge(*arrays, descending: bool = False, out=None, nan: str = "last", engine: str = "auto"):
    """Returns one sorted array of the elements of sorted, one-dimensional arrays.

    Of equal elements, those of an earlier array come first. If an array is not sorted, the order is unspecified.
    """
    return _call("merge", arrays, format=_format_of(descending, nan, engine), out=out)


def searchsorted(
    x1, x2, /, *, side: str = "left", sorter=None, descending: bool = False, nan: str = "last", engine: str = "auto"
):
    """Returns for each element of `x2` the index in the sorted `x1` before which it keeps `x1` sorted:
    `numpy.searchsorted(x1, x2, side, sorter)`.
    """
    if side not in ("left", "right"):
        raise ValueError(f"side is {side!r}, expected 'left' or 'right'")
    arrays = (x1, x2) if sorter is None else (x1, x2, sorter)
    return _call("searchsorted", arrays, is_upper=side == "right", format=_format_of(descending, nan, engine))


def unique(
    x, /, *, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, engine: str = "auto"
):
    """Returns the different elements, sorted, and what else is asked for: the index of the first occurrence of each,
    the index of its value for each element of the flattened `x`, and the numbers of occurrences. As `numpy.unique`.
    """
    parts = (return_index, return_inverse, return_counts)
    return _call("unique", (x,), parts=parts, format=_format_of(False, "last", engine))


def union(x1, x2, /, *, engine: str = "auto"):
    """Returns the different elements of both arrays, sorted: `numpy.union1d`."""
    return _call("set_operation", (x1, x2), operation=0, format=_format_of(False, "last", engine))


def intersect(x1, x2, /, *, engine: str = "auto"):
    """Returns the different elements that are in both arrays, sorted: `numpy.intersect1d`."""
    return _call("set_operation", (x1, x2), operation=1, format=_format_of(False, "last", engine))


def difference(x1, x2, /, *, engine: str = "auto"):
    """Returns the different elements of `x1` that are not in `x2`, sorted: `numpy.setdiff1d`."""
    return _call("set_operation", (x1, x2), operation=2, format=_format_of(False, "last", engine))


def segmented_sort(x, offsets, /, *, descending: bool = False, nan: str = "last", engine: str = "auto"):
    """Returns a copy of the one-dimensional `x` in which each segment is sorted by itself.

    Segment `i` is `x[offsets[i]:offsets[i + 1]]`. The offsets begin with 0, do not decrease and end with `len(x)`.
    """
    return _call("segmented_sort", (x, offsets), format=_format_of(descending, nan, engine))


def segmented_argsort(x, offsets, /, *, descending: bool = False, nan: str = "last", engine: str = "auto"):
    """Returns the indices in `x` that sort each segment: `x[indices]` is `segmented_sort(x, offsets)`."""
    return _call("segmented_argsort", (x, offsets), format=_format_of(descending, nan, engine))


def reduce_by_key(keys, values, /, *, op: str = "sum", engine: str = "auto"):
    """Returns the different keys, sorted, and for each the `"sum"`, `"min"` or `"max"` of its values.

    Sums of integers have 64 bits, as those of numpy. The order in which floats are added is unspecified.
    """
    if op not in ("sum", "min", "max"):
        raise ValueError(f"op is {op!r}, expected 'sum', 'min' or 'max'")
    return _call("reduce_by_key", (keys, values), op=op, format=_format_of(False, "last", engine))


def sort_file(*inputs, output, progress=None, **options) -> None:
    """Sorts files of binary numbers, as if they were one: the program's `gmerge sort INPUT... -o OUTPUT`.

    Further flags of the program are keyword arguments: `sort_file("a.f32", output="b.f32", reverse=True, memory="8G")`
    is `gmerge sort a.f32 -o b.f32 --reverse --memory 8G`. `progress` is called some ten times a second with the bytes
    that have been read and written, and with those that are expected to be. An exception of it ends the program, which
    leaves the old output.
    """
    from ._files import run

    run("sort", inputs, output, progress, options)


def merge_files(*inputs, output, progress=None, **options) -> None:
    """Merges sorted files: `gmerge merge INPUT... -o OUTPUT`, with arguments as for `sort_file`."""
    from ._files import run

    run("merge", inputs, output, progress, options)


def check_file(input, /, *, progress=None, **options) -> bool:
    """Whether a file is sorted: `gmerge check INPUT`, with arguments as for `sort_file`."""
    from ._files import run

    return run("check", (input,), None, progress, options)
