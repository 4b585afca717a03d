"""The arguments that all functions have, as the native part takes them."""

from __future__ import annotations

import operator

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


def index_of(name: str, value: object) -> int:
    """An argument that is an integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, expected an integer") from None


def format_of(descending: bool, nan: str, engine: str) -> int:
    """The order and the engine of a call."""
    if not isinstance(nan, str) or nan not in _NANS:
        raise ValueError(f"nan is {nan!r}, expected 'last', 'first' or 'total'")
    if not isinstance(engine, str) or engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}, expected 'auto', 'cpu' or 'gpu'")
    if isinstance(descending, str) or not hasattr(descending, "__bool__"):
        raise TypeError(f"descending is {descending!r}, expected True or False")
    return ORDERS[bool(descending), nan] | ENGINES[engine]
