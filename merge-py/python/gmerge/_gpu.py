"""Operations on arrays in a GPU's memory, with memory and the current stream of the library that the arrays belong to.

Nothing here waits for the GPU, except where the length of a result depends on the keys.
"""

from __future__ import annotations

import math
from typing import Any

from . import _native
from ._options import CPU, check_values, count_of, first, flat, index_of

_CODES = {"uint32": 2, "uint64": 3, "int32": 7, "int64": 8, "float32": 11, "float64": 12}
# Types without kernels are sorted as the type that has all of their numbers.
_WIDER = {
    "bool": "int32",
    "uint8": "int32",
    "int8": "int32",
    "uint16": "int32",
    "int16": "int32",
    "float16": "float32",
    "bfloat16": "float32",
}
_workspace = _native.Stream.workspace
_gpus: dict[int, Any] = {}
_streams: dict[tuple[int, int], Any] = {}


class Torch:
    """Tensors on one GPU."""

    names: dict[Any, str] = {}

    def __init__(self, device: Any) -> None:
        import torch

        self.torch = torch
        self.device = device
        self.ordinal = device.index
        if not self.names:
            self.names.update((getattr(torch, name), name) for name in (*_CODES, *_WIDER))

    def handle(self) -> int:
        return self.torch.cuda.current_stream(self.device).cuda_stream

    def scope(self) -> Any:
        return self.torch.cuda.device(self.device)

    def check(self, array: Any) -> Any:
        if not isinstance(array, self.torch.Tensor):
            return self.torch.as_tensor(array, device=self.device)
        if array.device != self.device:
            raise ValueError(f"one tensor is on the device {self.device}, and another one on {array.device}")
        return array.detach() if array.requires_grad else array

    def name(self, array: Any) -> str:
        return self.names.get(array.dtype) or str(array.dtype).removeprefix("torch.")

    def type(self, name: str) -> Any:
        return getattr(self.torch, name)

    def empty(self, shape: Any, name: str) -> Any:
        return self.torch.empty(shape, dtype=self.type(name), device=self.device)

    def arange(self, *bounds: int) -> Any:
        return self.torch.arange(*bounds, dtype=self.torch.int64, device=self.device)

    def cast(self, array: Any, name: str) -> Any:
        return array.to(self.type(name))

    def address(self, array: Any) -> int:
        return array.data_ptr()

    def rows(self, array: Any, axis: int, copy: bool) -> Any:
        moved = array if axis == array.ndim - 1 else array.movedim(axis, -1)
        return moved.clone(memory_format=self.torch.contiguous_format) if copy else moved.contiguous()

    def moved(self, array: Any, axis: int) -> Any:
        return array if axis == array.ndim - 1 else array.movedim(-1, axis)

    def is_nan(self, array: Any) -> Any:
        return self.torch.isnan(array)

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        return self.torch.where(condition, a, b)

    def concatenate(self, arrays: Any) -> Any:
        return self.torch.cat(arrays)

    def common(self, *arrays: Any) -> str:
        kinds = [array.dtype for array in arrays]
        common = kinds[0]
        for kind in kinds[1:]:
            common = self.torch.promote_types(common, kind)
        return str(common).removeprefix("torch.")

    def repeat(self, array: Any, counts: Any, total: int) -> Any:
        return self.torch.repeat_interleave(array, counts, output_size=total)

    def take(self, array: Any, order: Any, axis: int) -> Any:
        return self.torch.take_along_dim(array, order, axis)

    def is_contiguous(self, array: Any) -> bool:
        return array.is_contiguous()

    def copy_to(self, out: Any, result: Any) -> None:
        out.copy_(result)


class Cupy:
    """CuPy's arrays on the current GPU."""

    def __init__(self) -> None:
        import cupy

        self.cupy = cupy
        self.ordinal = cupy.cuda.Device().id

    def handle(self) -> int:
        return self.cupy.cuda.get_current_stream().ptr

    def scope(self) -> Any:
        return self.cupy.cuda.Device(self.ordinal)

    def check(self, array: Any) -> Any:
        array = self.cupy.asarray(array)
        if array.device.id != self.ordinal:
            raise ValueError(f"an array is on GPU {array.device.id}, and the current GPU is {self.ordinal}")
        return array

    def name(self, array: Any) -> str:
        return array.dtype.name

    def empty(self, shape: Any, name: str) -> Any:
        return self.cupy.empty(shape, name)

    def arange(self, *bounds: int) -> Any:
        return self.cupy.arange(*bounds, dtype="int64")

    def cast(self, array: Any, name: str) -> Any:
        return array.astype(name, copy=False)

    def address(self, array: Any) -> int:
        return array.data.ptr

    def rows(self, array: Any, axis: int, copy: bool) -> Any:
        moved = self.cupy.moveaxis(array, axis, -1)
        return moved.copy(order="C") if copy else self.cupy.ascontiguousarray(moved)

    def moved(self, array: Any, axis: int) -> Any:
        return self.cupy.moveaxis(array, -1, axis)

    def is_nan(self, array: Any) -> Any:
        return self.cupy.isnan(array)

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        return self.cupy.where(condition, a, b)

    def concatenate(self, arrays: Any) -> Any:
        return self.cupy.concatenate(arrays)

    def common(self, *arrays: Any) -> str:
        return self.cupy.result_type(*arrays).name

    def repeat(self, array: Any, counts: Any, total: int) -> Any:
        # The group of an element is the number of groups that end before it or at it.
        ends = self.cupy.cumsum(counts)
        return array[self.cupy.searchsorted(ends, self.arange(total), side="right")]

    def take(self, array: Any, order: Any, axis: int) -> Any:
        return self.cupy.take_along_axis(array, order, axis)

    def is_contiguous(self, array: Any) -> bool:
        return array.flags.c_contiguous

    def copy_to(self, out: Any, result: Any) -> None:
        out[...] = result


def call(lib: Any, name: str, arrays: tuple, arguments: dict) -> Any:
    """Calls a function of this module with arrays of a library."""
    if arguments["format"] & CPU:
        raise ValueError("the arrays are in a GPU's memory, and engine is 'cpu'")
    arguments["format"] &= 0xFFFF
    out = arguments.pop("out", None)
    with lib.scope():
        if name == "sort" and out is arrays[0]:
            arguments["in_place"] = True
        arrays = tuple(map(lib.check, arrays))
        result = globals()["_" + name](lib, *arrays, **arguments)
        if out is None or result is arrays[0]:
            return result if out is None else out
        given, out = out, lib.check(out)
        if out.shape != result.shape or out.dtype != result.dtype:
            expected = f"{tuple(result.shape)} and {result.dtype}"
            raise ValueError(f"out has shape {tuple(out.shape)} and type {out.dtype}, expected {expected}")
        lib.copy_to(out, result)
        return given


def _stream(lib: Any) -> Any:
    """What the native part needs for the library's current stream."""
    key = lib.ordinal, lib.handle()
    stream = _streams.get(key)
    if stream is None:
        if lib.ordinal not in _gpus:
            _gpus[lib.ordinal] = _native.Gpu(lib.ordinal)
        stream = _streams.setdefault(key, _gpus[lib.ordinal].stream(key[1]))
    return stream


def _axis(x: Any, axis: int | None) -> tuple[Any, int]:
    if axis is None:
        return x.reshape(-1), 0
    axis = index_of("axis", axis)
    if not -x.ndim <= axis < x.ndim:
        raise IndexError(f"axis is {axis}, and the array has {x.ndim} dimensions")
    return x, axis % x.ndim


def _kind(lib: Any, x: Any) -> str:
    """The type as which an array is sorted."""
    name = lib.name(x)
    name = _WIDER.get(name, name)
    if name not in _CODES:
        raise TypeError(f"arrays of type {x.dtype} cannot be sorted on a GPU")
    return name


def _numbers(lib: Any, x: Any, axis: int, copy: bool = True) -> tuple[Any, int]:
    """The keys as numbers with kernels, with `axis` as the last one, and their type for the native part."""
    kind = _kind(lib, x)
    if lib.name(x) != kind:
        x, copy = lib.cast(x, kind), False
    return lib.rows(x, axis, copy), _CODES[kind]


def _canonical(lib: Any, x: Any, axis: int) -> tuple[Any, int]:
    """A copy of the keys in which equal floats have equal bits."""
    kind = _kind(lib, x)
    if not kind.startswith("float"):
        return _numbers(lib, x, axis)
    # -0.0 + 0.0 is 0.0. A GPU's sum of 4 bytes that is NaN is always the same NaN.
    numbers = lib.rows(lib.cast(x, kind) + 0.0, axis, False)
    if kind == "float64":
        numbers = lib.where(lib.is_nan(numbers), math.nan, numbers)
    return numbers, _CODES[kind]


def _memory(lib: Any, operation: str, format: int, count: int, value_size: int = 0, k: int = 0) -> tuple[Any, tuple]:
    """Workspace, and its address and size."""
    bytes = _workspace(operation, format, count, value_size, k)
    memory = lib.empty(bytes + 16, "uint8")
    address = lib.address(memory)
    return memory, (-(-address // 16) * 16, bytes)


def _segments(lib: Any, rows: Any) -> tuple[Any, tuple | None]:
    """The offsets of the rows, and their address and number, or `None` for a single row."""
    length, size = rows.shape[-1], math.prod(rows.shape)
    if size == length:
        return None, None
    offsets = lib.arange(0, size + 1, length)
    return offsets, (lib.address(offsets), size // length)


def _sort(lib: Any, x: Any, *, axis: int | None, format: int, in_place: bool = False) -> Any:
    x, axis = _axis(x, axis)
    in_place = in_place and axis == x.ndim - 1 and lib.is_contiguous(x) and lib.name(x) in _CODES
    rows, code = _numbers(lib, x, axis) if not in_place else (x, _CODES[lib.name(x)])
    size = math.prod(rows.shape)
    if size:
        offsets, segments = _segments(lib, rows)
        operation = "sort_segments" if segments else "sort"
        memory, workspace = _memory(lib, operation, format | code, size)
        _stream(lib).sort(format | code, 0, (lib.address(rows), 0, size), workspace, segments)
    return x if in_place else lib.cast(lib.moved(rows, axis), lib.name(x))


def _order(lib: Any, rows: Any, format: int, offsets: Any, segments: tuple | None) -> Any:
    """Sorts rows or segments in place, and returns the indices of their keys in the whole array."""
    size = math.prod(rows.shape)
    # Half of the bytes take less time, with the conversion.
    index_size = 4 if size < 2**31 else 8
    indices = lib.empty(rows.shape, "int32" if index_size == 4 else "int64")
    if size:
        operation = "argsort_segments" if segments else "argsort"
        memory, workspace = _memory(lib, operation, format, size, index_size)
        elements = lib.address(rows), lib.address(indices), size
        _stream(lib).argsort(format, index_size, elements, workspace, segments)
    return lib.cast(indices, "int64")


def _argsort(lib: Any, x: Any, *, axis: int | None, format: int) -> Any:
    x, axis = _axis(x, axis)
    rows, code = _canonical(lib, x, axis)
    offsets, segments = _segments(lib, rows) if math.prod(rows.shape) else (None, None)
    indices = _order(lib, rows, format | code, offsets, segments)
    if segments:
        indices %= rows.shape[-1]
    return lib.moved(indices, axis)


def _sort_pairs(lib: Any, keys: Any, values: Any, *, axis: int, format: int) -> Any:
    if axis is None:
        keys, values = keys.reshape(-1), values.reshape(-1)
    keys, axis = _axis(keys, axis)
    are_rows = check_values(keys, values)
    size, value_size = math.prod(keys.shape), values.dtype.itemsize
    if are_rows or value_size not in (4, 8) or not size:
        order = _argsort(lib, keys, axis=axis, format=format)
        of_values = values[order] if are_rows else lib.take(values, order, axis)
        return lib.take(keys, order, axis), of_values
    rows, code = _canonical(lib, keys, axis)
    moved = lib.rows(values, axis, True)
    offsets, segments = _segments(lib, rows)
    operation = "sort_segments" if segments else "sort"
    memory, workspace = _memory(lib, operation, format | code, size, value_size)
    elements = lib.address(rows), lib.address(moved), size
    _stream(lib).sort(format | code, value_size, elements, workspace, segments)
    return lib.cast(lib.moved(rows, axis), lib.name(keys)), lib.moved(moved, axis)


def _topk(lib: Any, x: Any, *, k: Any, axis: int | None, format: int) -> Any:
    x, axis = _axis(x, axis)
    k = count_of(k, x.shape[axis])
    if x.ndim != 1:
        return first(_sort(lib, x, axis=axis, format=format), k, axis)
    keys, code = _numbers(lib, x, 0, copy=False)
    out = lib.empty(k, _kind(lib, x))
    if k:
        memory, workspace = _memory(lib, "top_k", format | code, len(keys), 0, k)
        from_, to = (lib.address(keys), 0, len(keys)), (lib.address(out), 0, k)
        _stream(lib).top_k(format | code, 0, from_, to, workspace)
    return lib.cast(out, lib.name(x))


def _argtopk(lib: Any, x: Any, *, k: Any, axis: int | None, format: int) -> Any:
    x, axis = _axis(x, axis)
    k = count_of(k, x.shape[axis])
    if x.ndim != 1:
        return first(_argsort(lib, x, axis=axis, format=format), k, axis)
    keys, code = _canonical(lib, x, 0)
    numbers, out, indices = lib.arange(len(keys)), lib.empty(k, _kind(lib, x)), lib.empty(k, "int64")
    if k:
        memory, workspace = _memory(lib, "top_k", format | code, len(keys), 8, k)
        from_ = lib.address(keys), lib.address(numbers), len(keys)
        _stream(lib).top_k(format | code, 8, from_, (lib.address(out), lib.address(indices), k), workspace)
    return indices


def _merge(lib: Any, *arrays: Any, format: int) -> Any:
    if not arrays:
        raise ValueError("there are no arrays to merge")
    common = lib.common(*arrays)
    arrays = [lib.cast(flat(x, f"array {i}"), common) for i, x in enumerate(arrays)]
    kind = _kind(lib, arrays[0])
    if len(arrays) != 2 or kind.startswith("float"):
        # Sorted floats of another library may have zeros of both signs in any order.
        return _sort(lib, lib.concatenate(arrays), axis=0, format=format)
    (a, code), (b, _) = (_numbers(lib, x, 0, copy=False) for x in arrays)
    out = lib.empty(len(a) + len(b), kind)
    if len(out):
        memory, workspace = _memory(lib, "merge", format | code, len(out))
        parts = [(lib.address(x), 0, len(x)) for x in (a, b, out)]
        _stream(lib).merge(format | code, *parts, workspace)
    return lib.cast(out, common)


def _searchsorted(lib: Any, x1: Any, x2: Any, sorter: Any = None, *, is_upper: bool, format: int) -> Any:
    common = lib.common(flat(x1, "x1"), x2)
    if sorter is not None:
        if sorter.shape != x1.shape or not lib.name(sorter).lstrip("u").startswith("int"):
            expected = f"integers of shape {tuple(x1.shape)}"
            raise ValueError(f"sorter has type {sorter.dtype} and shape {tuple(sorter.shape)}, expected {expected}")
        x1 = x1[sorter]
    keys, code = _canonical(lib, lib.cast(x1, common), 0)
    needles, _ = _canonical(lib, lib.cast(x2, common).reshape(-1), 0)
    order = _order(lib, needles, format | code, None, None)
    found = lib.empty(len(needles), "int64")
    bounds = lib.empty(len(needles), "int64")
    if len(needles):
        memory, workspace = _memory(lib, "bounds", format | code, len(keys) + len(needles))
        of_needles, of_keys = (lib.address(needles), 0, len(needles)), (lib.address(keys), 0, len(keys))
        _stream(lib).bounds(format | code, of_needles, of_keys, (lib.address(found), is_upper), workspace)
    bounds[order] = found
    return bounds.reshape(x2.shape)


def _groups(lib: Any, keys: Any, format: int) -> tuple[Any, Any, int]:
    """The different keys of sorted ones and their numbers, with more slots than there are different keys."""
    size = len(keys)
    out, counts, groups = lib.empty(size, lib.name(keys)), lib.empty(size, "int64"), lib.empty(1, "int64")
    if not size:
        return out, counts, 0
    memory, workspace = _memory(lib, "groups", format, size)
    from_, to = (lib.address(keys), 0, size), (lib.address(out), lib.address(counts), size)
    _stream(lib).run_lengths(format, from_, to, (lib.address(groups), workspace))
    return out, counts, int(groups[0])


def _different(lib: Any, keys: Any, format: int) -> Any:
    """The different keys of sorted ones."""
    size = len(keys)
    out, groups = lib.empty(size, lib.name(keys)), lib.empty(1, "int64")
    if not size:
        return out
    memory, workspace = _memory(lib, "groups", format, size)
    from_, to = (lib.address(keys), 0, size), (lib.address(out), 0, size)
    _stream(lib).unique(format, 0, from_, to, (lib.address(groups), workspace))
    return out[: int(groups[0])]


def _unique(lib: Any, x: Any, *, parts: tuple[bool, bool, bool], format: int) -> Any:
    keys, code = _canonical(lib, x.reshape(-1), 0)
    format |= code
    indices = None
    if parts[0] or parts[1]:
        indices = _order(lib, keys, format, None, None)
    elif len(keys):
        memory, workspace = _memory(lib, "sort", format, len(keys))
        _stream(lib).sort(format, 0, (lib.address(keys), 0, len(keys)), workspace, None)
    if not any(parts):
        return lib.cast(_different(lib, keys, format), lib.name(x))
    out, counts, groups = _groups(lib, keys, format)
    counts = counts[:groups]
    values = lib.cast(out[:groups], lib.name(x))
    result = [values]
    if parts[0]:
        result.append(indices[counts.cumsum(0) - counts])
    if parts[1]:
        inverse = lib.empty(len(keys), "int64")
        inverse[indices] = lib.repeat(lib.arange(groups), counts, len(keys))
        result.append(inverse)
    if parts[2]:
        result.append(counts)
    return tuple(result)


def _set_operation(lib: Any, x1: Any, x2: Any, *, operation: int, format: int) -> Any:
    common = lib.common(x1, x2)
    if operation == 2 and lib.name(x1) != lib.name(x2):
        raise TypeError(f"the arrays are of types {x1.dtype} and {x2.dtype}, expected one type")
    a, b = (_unique(lib, lib.cast(x, common), parts=(False, False, False), format=format) for x in (x1, x2))
    (a, code), (b, _) = _numbers(lib, a, 0, copy=False), _numbers(lib, b, 0, copy=False)
    format |= code
    out, count = lib.empty(len(a) + len(b), lib.name(a)), lib.empty(1, "int64")
    if not len(out):
        return lib.cast(out, common)
    memory, workspace = _memory(lib, "set_operation", format, len(out))
    from_ = tuple((lib.address(x), 0, len(x)) for x in (a, b))
    to = lib.address(out), 0, len(out)
    _stream(lib).set_operation(format, operation, from_, to, (lib.address(count), workspace))
    return lib.cast(out[: int(count[0])], common)


def _ends(lib: Any, offsets: Any, size: int) -> tuple[Any, tuple]:
    """Offsets as the native part takes them. Kernels do not check them, so this does, which waits for the GPU."""
    if lib.name(offsets) not in ("int32", "int64", "uint32", "uint64", "int16", "uint16", "int8", "uint8"):
        raise TypeError(f"offsets are of type {offsets.dtype}, expected integers")
    if offsets.ndim != 1 or not len(offsets):
        raise ValueError(f"offsets have shape {tuple(offsets.shape)}, expected one dimension of at least one number")
    offsets = lib.rows(lib.cast(offsets, "int64"), 0, False)
    if int(offsets[0]) != 0 or int(offsets[-1]) != size or bool((offsets[1:] < offsets[:-1]).any()):
        raise ValueError(f"offsets begin with 0, do not decrease, and end with the number of keys, {size}")
    return offsets, (lib.address(offsets), len(offsets) - 1)


def _segmented_sort(lib: Any, x: Any, offsets: Any, *, format: int) -> Any:
    rows, code = _numbers(lib, flat(x, "x"), 0)
    offsets, segments = _ends(lib, offsets, len(rows))
    if len(rows):
        memory, workspace = _memory(lib, "sort_segments", format | code, len(rows))
        _stream(lib).sort(format | code, 0, (lib.address(rows), 0, len(rows)), workspace, segments)
    return lib.cast(rows, lib.name(x))


def _segmented_argsort(lib: Any, x: Any, offsets: Any, *, format: int) -> Any:
    rows, code = _canonical(lib, flat(x, "x"), 0)
    offsets, segments = _ends(lib, offsets, len(rows))
    return _order(lib, rows, format | code, offsets, segments)


def _reduce_by_key(lib: Any, keys: Any, values: Any, *, op: str, format: int) -> Any:
    if keys.shape != values.shape:
        raise ValueError(f"values have shape {tuple(values.shape)}, expected that of the keys, {tuple(keys.shape)}")
    name = lib.name(values)
    if op == "sum" and not (name.startswith("float") or name == "bfloat16"):
        name = "uint64" if name.startswith("uint") else "int64"
    wide = _WIDER.get(name, name)
    if wide not in _CODES:
        raise TypeError(f"values of type {values.dtype} cannot be reduced on a GPU")
    numbers = lib.rows(lib.cast(values.reshape(-1), wide), 0, False)
    if wide.startswith("float"):
        # As in numpy, the result is NaN if a value is. Of these NaNs, one precedes and one follows all numbers.
        numbers = lib.where(lib.is_nan(numbers), -math.nan if op == "min" else math.nan, numbers)
    sorted, moved = _sort_pairs(lib, lib.cast(keys.reshape(-1), _kind(lib, keys)), numbers, axis=0, format=format)
    size, value_size = len(sorted), moved.dtype.itemsize
    out, totals, groups = lib.empty(size, lib.name(sorted)), lib.empty(size, wide), lib.empty(1, "int64")
    if not size:
        return lib.cast(out, lib.name(keys)), lib.cast(totals, name)
    format |= _CODES[lib.name(sorted)]
    memory, workspace = _memory(lib, "groups", format, size)
    code = ("sum", "min", "max").index(op), _CODES[wide], value_size
    from_, to = (lib.address(sorted), lib.address(moved), size), (lib.address(out), lib.address(totals), size)
    _stream(lib).reduce_by_key(format, code, from_, to, (lib.address(groups), workspace))
    found = int(groups[0])
    return lib.cast(out[:found], lib.name(keys)), lib.cast(totals[:found], name)
