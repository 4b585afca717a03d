"""The arguments that all functions have, as the native part takes them."""

from __future__ import annotations

_NANS = {"last": 2, "first": 4, "total": 0}
# In bits 8 to 15 of a format.
ORDERS = {(bool(d), nan): (d | bits) << 8 for d in (0, 1) for nan, bits in _NANS.items()}
# In bits 16 to 23.
ENGINES = {"auto": 0, "cpu": 1 << 16, "gpu": 2 << 16}
DESCENDING = 1 << 8
NANS_LAST = 2 << 8
NANS_FIRST = 4 << 8
CPU = ENGINES["cpu"]


def format_of(descending: bool, nan: str, engine: str) -> int:
    """The order and the engine of a call."""
    if nan not in _NANS:
        raise ValueError(f"nan is {nan!r}, expected 'last', 'first' or 'total'")
    if engine not in ENGINES:
        raise ValueError(f"engine is {engine!r}, expected 'auto', 'cpu' or 'gpu'")
    return ORDERS[bool(descending), nan] | ENGINES[engine]
