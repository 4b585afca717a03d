"""Arguments: as the native part takes them, and the checks that arrays of the host and of a GPU share."""

from __future__ import annotations

import operator
from collections import namedtuple

_NANS = {"last": 2, "first": 4, "total": 0}
# In bits 8 to 15 of a format.
ORDERS = {(bool(d), nan): (d | bits) << 8 for d in (0, 1) for nan, bits in _NANS.items()}
# In bits 16 to 23.
ENGINES = {"auto": 0, "cpu": 1 << 16, "gpu": 2 << 16}
OPTIONS = {(*order, engine): ORDERS[order] | ENGINES[engine] for order in ORDERS for engine in ENGINES}
# The first type of floats, in bits 0 to 7.
FLOATS = 10
DESCENDING = 1 << 8
NANS_LAST = 2 << 8
NANS_FIRST = 4 << 8
CPU = ENGINES["cpu"]


class Counted(namedtuple("Counted", ("array", "count"), defaults=(None,))):
    """The first elements of a one-dimensional array in a GPU's memory. Their number `count` is there, too: an array of
    one integer. A number above the length of the array counts as the length, and `None` stands for all elements.

    Functions that take such an argument return such results, and do not wait for the GPU. Elements of a result behind
    its number are unspecified. `result.array[: int(result.count)]` waits for the GPU.
    """

    __slots__ = ()


def array_of(x):
    """An array without its count."""
    return x.array if isinstance(x, Counted) else x


def each(x, change):
    """Applies a function to an array, or to the arrays of a `Counted`."""
    if not isinstance(x, Counted):
        return change(x)
    return Counted(change(x.array), None if x.count is None else change(x.count))


def index_of(name: str, value: object) -> int:
    """An argument that is an integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, expected an integer") from None


def count_of(k: object, length: int) -> int:
    """The argument `k` for `length` elements."""
    k = index_of("k", k)
    if not 0 <= k <= length:
        raise ValueError(f"k is {k}, expected 0 to {length}, the number of elements along the axis")
    return k


def first(array, k: int, axis: int):
    """The first elements along an axis."""
    return array[(slice(None),) * axis + (slice(0, k),)]


def flat(x, what: str):
    """An array that has one dimension."""
    if x.ndim != 1:
        raise ValueError(f"{what} has {x.ndim} dimensions, expected 1")
    return x


def check_values(keys, values) -> bool:
    """Whether values of one-dimensional keys have further dimensions. Other values have the shape of the keys."""
    are_rows = keys.ndim == 1 and values.ndim > 1
    if (values.shape[:1] if are_rows else values.shape) != keys.shape:
        raise ValueError(f"values have shape {tuple(values.shape)}, expected that of the keys, {tuple(keys.shape)}")
    return are_rows


def format_of(descending: bool, nan: str, engine: str) -> int:
    """The order and the engine of a call."""
    if not isinstance(nan, str) or nan not in _NANS:
        raise ValueError(f"nan is {nan!r}, expected 'last', 'first' or 'total'")
    if not isinstance(engine, str) or engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}, expected 'auto', 'cpu' or 'gpu'")
    if isinstance(descending, str) or not hasattr(descending, "__bool__"):
        raise TypeError(f"descending is {descending!r}, expected True or False")
    return ORDERS[bool(descending), nan] | ENGINES[engine]
