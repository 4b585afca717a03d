"""Operations on arrays in a GPU's memory, with memory and the current stream of the library that the arrays belong to.

Nothing here waits for the GPU, except where the length of a result depends on the keys. A call with a `Counted`
argument does not wait for that either: its result has a count.
"""

from __future__ import annotations

import math
from typing import Any

from . import _native
from ._options import CPU, NANS_FIRST, NANS_LAST, Counted, array_of, check_values, count_of, each, first, flat, index_of

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
# How many of the first arrays of a call may be `Counted`. The last of them has the number of the result, unless the
# call finds another one.
_MAY_BE_COUNTED = {
    "sort": 1,
    "argsort": 1,
    "sort_pairs": 1,
    "topk": 1,
    "argtopk": 1,
    "merge": 2,
    "searchsorted": 2,
    "unique": 1,
    "set_operation": 2,
    "reduce_by_key": 1,
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
    if isinstance(out, Counted):
        raise TypeError("out is Counted, expected an array")
    with lib.scope():
        if name == "sort" and out is array_of(arrays[0]):
            arguments["in_place"] = True
        arrays = tuple(each(x, lib.check) for x in arrays)
        plain = tuple(map(array_of, arrays))
        is_counted = any(isinstance(x, Counted) for x in arrays)
        if is_counted:
            arguments["counts"] = _counts(lib, name, arrays, arguments)
        result = globals()["_" + name](lib, *plain, **arguments)
        result = _counted(result, arrays, arguments["counts"]) if is_counted else _trimmed(result)
        if out is None:
            return result
        found, given = array_of(result), out
        if found is not plain[0]:
            out = lib.check(out)
            if out.shape != found.shape or out.dtype != found.dtype:
                expected = f"{tuple(found.shape)} and {found.dtype}"
                raise ValueError(f"out has shape {tuple(out.shape)} and type {out.dtype}, expected {expected}")
            lib.copy_to(out, found)
        return Counted(given, result.count) if is_counted else given


def _counts(lib: Any, name: str, arrays: tuple, arguments: dict) -> tuple:
    """The numbers of elements of the first arrays, and `None` for all elements."""
    most = _MAY_BE_COUNTED.get(name, 0)
    if name == "merge" and len(arrays) != 2 or name == "unique" and any(arguments["parts"][:2]):
        most = 0
    counts = []
    for i, x in enumerate(arrays):
        count = None
        if isinstance(x, Counted):
            if i >= most:
                raise TypeError(f"array {i} is Counted, and this call needs a number that the host knows")
            flat(x.array, f"array {i}")
            count = x.count
        if count is not None:
            if math.prod(count.shape) != 1 or not _has_integers(lib, count):
                raise ValueError(f"count has type {count.dtype} and shape {tuple(count.shape)}, expected one integer")
            count = lib.cast(count.reshape(-1), "int64")
        counts.append(count)
    return tuple(counts[:most])


def _has_integers(lib: Any, x: Any) -> bool:
    return lib.name(x).lstrip("u").startswith("int")


def _counted(result: Any, arrays: tuple, counts: tuple) -> Any:
    """A result with the number of its elements, which belongs to the first of several arrays."""
    head, *rest = result if type(result) is tuple else (result,)
    if isinstance(head, Counted) or not isinstance(arrays[len(counts) - 1], Counted):
        return result
    head = Counted(head, counts[-1])
    return (head, *rest) if rest else head


def _trimmed(result: Any) -> Any:
    """A result without elements behind its number, for which this waits."""
    head = result[0] if type(result) is tuple else result
    if not isinstance(head, Counted):
        return result
    if head.count is None:
        return head.array
    found = int(head.count[0])
    return tuple(array_of(x)[:found] for x in result) if type(result) is tuple else head.array[:found]


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


def _canonical(lib: Any, x: Any, axis: int, format: int) -> tuple[Any, int]:
    """A copy of the keys in which equal floats have equal bits. In the total order, they have them already."""
    kind = _kind(lib, x)
    if not kind.startswith("float") or not format & (NANS_FIRST | NANS_LAST):
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


def _elements(lib: Any, keys: Any, values: Any = None, count: Any = None) -> tuple[int, int, int, int]:
    """The addresses of keys and values, the capacity, and the address of the number of elements, or 0 for all."""
    of_values, of_count = (0 if x is None else lib.address(x) for x in (values, count))
    return lib.address(keys), of_values, math.prod(keys.shape), of_count


def _number(lib: Any, length: int) -> Any:
    """The place for the number of elements of a result of at most this length. If the length is 0, it is 0 already."""
    return lib.empty(1, "int64") if length else lib.arange(1)


def _segments(lib: Any, rows: Any) -> tuple[Any, tuple | None]:
    """The offsets of the rows, and their address and number, or `None` for a single row."""
    length, size = rows.shape[-1], math.prod(rows.shape)
    if size == length:
        return None, None
    offsets = lib.arange(0, size + 1, length)
    return offsets, (lib.address(offsets), size // length)


def _sort(lib: Any, x: Any, *, axis: int | None, format: int, in_place: bool = False, counts: tuple = (None,)) -> Any:
    x, axis = _axis(x, axis)
    in_place = in_place and axis == x.ndim - 1 and lib.is_contiguous(x) and lib.name(x) in _CODES
    rows, code = _numbers(lib, x, axis) if not in_place else (x, _CODES[lib.name(x)])
    size = math.prod(rows.shape)
    if size:
        offsets, segments = _segments(lib, rows)
        operation = "sort_segments" if segments else "sort"
        memory, workspace = _memory(lib, operation, format | code, size)
        _stream(lib).sort(format | code, 0, _elements(lib, rows, None, *counts), workspace, segments)
    return x if in_place else lib.cast(lib.moved(rows, axis), lib.name(x))


def _order(
    lib: Any, rows: Any, format: int, offsets: Any = None, segments: tuple | None = None, count: Any = None
) -> Any:
    """Sorts rows or segments in place, and returns the indices of their keys in the whole array."""
    size = math.prod(rows.shape)
    # Half of the bytes take less time, with the conversion.
    index_size = 4 if size < 2**31 else 8
    indices = lib.empty(rows.shape, "int32" if index_size == 4 else "int64")
    if size:
        operation = "argsort_segments" if segments else "argsort"
        memory, workspace = _memory(lib, operation, format, size, index_size)
        elements = _elements(lib, rows, indices, count)
        _stream(lib).argsort(format, index_size, elements, workspace, segments)
    indices = lib.cast(indices, "int64")
    if count is None:
        return indices
    # Indices behind the count are those of their places, so that all of them are a permutation.
    places = lib.arange(size)
    return lib.where(places < count, indices, places)


def _argsort(lib: Any, x: Any, *, axis: int | None, format: int, counts: tuple = (None,)) -> Any:
    x, axis = _axis(x, axis)
    rows, code = _canonical(lib, x, axis, format)
    offsets, segments = _segments(lib, rows) if math.prod(rows.shape) else (None, None)
    indices = _order(lib, rows, format | code, offsets, segments, *counts)
    if segments:
        indices %= rows.shape[-1]
    return lib.moved(indices, axis)


def _sort_pairs(lib: Any, keys: Any, values: Any, *, axis: int | None, format: int, counts: tuple = (None,)) -> Any:
    if axis is None:
        keys, values = keys.reshape(-1), values.reshape(-1)
    keys, axis = _axis(keys, axis)
    are_rows = check_values(keys, values)
    size, value_size = math.prod(keys.shape), values.dtype.itemsize
    if are_rows or value_size not in (4, 8) or not size:
        order = _argsort(lib, keys, axis=axis, format=format, counts=counts)
        of_values = values[order] if are_rows else lib.take(values, order, axis)
        return lib.take(keys, order, axis), of_values
    rows, code = _canonical(lib, keys, axis, format)
    moved = lib.rows(values, axis, True)
    offsets, segments = _segments(lib, rows)
    operation = "sort_segments" if segments else "sort"
    memory, workspace = _memory(lib, operation, format | code, size, value_size)
    elements = _elements(lib, rows, moved, *counts)
    _stream(lib).sort(format | code, value_size, elements, workspace, segments)
    return lib.cast(lib.moved(rows, axis), lib.name(keys)), lib.moved(moved, axis)


def _topk(lib: Any, x: Any, *, k: Any, axis: int | None, format: int, counts: tuple = (None,)) -> Any:
    x, axis = _axis(x, axis)
    k = count_of(k, x.shape[axis])
    if x.ndim != 1:
        return first(_sort(lib, x, axis=axis, format=format), k, axis)
    keys, code = _numbers(lib, x, 0, copy=False)
    out, found = lib.empty(k, _kind(lib, x)), None if counts[0] is None else _number(lib, k)
    if k:
        memory, workspace = _memory(lib, "top_k", format | code, len(keys), 0, k)
        from_, to = _elements(lib, keys, None, *counts), _elements(lib, out, None, found)
        _stream(lib).top_k(format | code, 0, from_, to, workspace)
    return Counted(lib.cast(out, lib.name(x)), found)


def _argtopk(lib: Any, x: Any, *, k: Any, axis: int | None, format: int, counts: tuple = (None,)) -> Any:
    x, axis = _axis(x, axis)
    k = count_of(k, x.shape[axis])
    if x.ndim != 1:
        return first(_argsort(lib, x, axis=axis, format=format), k, axis)
    keys, code = _canonical(lib, x, 0, format)
    numbers, out, indices = lib.arange(len(keys)), lib.empty(k, _kind(lib, x)), lib.empty(k, "int64")
    found = None if counts[0] is None else _number(lib, k)
    if k:
        memory, workspace = _memory(lib, "top_k", format | code, len(keys), 8, k)
        from_, to = _elements(lib, keys, numbers, *counts), _elements(lib, out, indices, found)
        _stream(lib).top_k(format | code, 8, from_, to, workspace)
    return Counted(indices, found)


def _merge(lib: Any, *arrays: Any, format: int, counts: tuple = (None, None)) -> Any:
    if not arrays:
        raise ValueError("there are no arrays to merge")
    common = lib.common(*arrays)
    arrays = [lib.cast(flat(x, f"array {i}"), common) for i, x in enumerate(arrays)]
    kind = _kind(lib, arrays[0])
    is_float, knows_all = kind.startswith("float"), all(count is None for count in counts)
    if len(arrays) != 2 or is_float and knows_all:
        # Sorted floats of another library may have zeros of both signs in any order.
        return _sort(lib, lib.concatenate(arrays), axis=0, format=format)
    (a, code), (b, _) = (_canonical(lib, x, 0, format) if is_float else _numbers(lib, x, 0, copy=False) for x in arrays)
    out = lib.empty(len(a) + len(b), kind)
    found = None if knows_all else _number(lib, len(out))
    if len(out):
        memory, workspace = _memory(lib, "merge", format | code, len(out))
        parts = (_elements(lib, x, None, count) for x, count in zip((a, b, out), (*counts, found), strict=True))
        _stream(lib).merge(format | code, *parts, workspace)
    return Counted(lib.cast(out, common), found)


def _searchsorted(
    lib: Any, x1: Any, x2: Any, sorter: Any = None, *, is_upper: bool, format: int, counts: tuple = (None, None)
) -> Any:
    common = lib.common(flat(x1, "x1"), x2)
    if sorter is not None:
        if sorter.shape != x1.shape or not _has_integers(lib, sorter):
            expected = f"integers of shape {tuple(x1.shape)}"
            raise ValueError(f"sorter has type {sorter.dtype} and shape {tuple(sorter.shape)}, expected {expected}")
        x1 = x1[sorter]
    keys, code = _canonical(lib, lib.cast(x1, common), 0, format)
    needles, _ = _canonical(lib, lib.cast(x2, common).reshape(-1), 0, format)
    order = _order(lib, needles, format | code, count=counts[1])
    found = lib.empty(len(needles), "int64")
    bounds = lib.empty(len(needles), "int64")
    if len(needles):
        memory, workspace = _memory(lib, "bounds", format | code, len(keys) + len(needles))
        of_keys, of_needles = (_elements(lib, x, None, count) for x, count in zip((keys, needles), counts, strict=True))
        _stream(lib).bounds(format | code, of_needles, of_keys, (lib.address(found), is_upper), workspace)
    bounds[order] = found
    return bounds.reshape(x2.shape)


def _groups(lib: Any, keys: Any, format: int, count: Any) -> tuple[Any, Any, Any]:
    """The different keys of sorted ones and their numbers, with more slots than there are different keys, and how many
    there are."""
    size = len(keys)
    out, lengths, groups = lib.empty(size, lib.name(keys)), lib.empty(size, "int64"), _number(lib, size)
    if size:
        memory, workspace = _memory(lib, "groups", format, size)
        from_, to = _elements(lib, keys, None, count), _elements(lib, out, lengths)
        _stream(lib).run_lengths(format, from_, to, (lib.address(groups), workspace))
    return out, lengths, groups


def _different(lib: Any, keys: Any, format: int, count: Any) -> tuple[Any, Any]:
    """The different keys of sorted ones, with more slots than there are, and how many there are."""
    size = len(keys)
    out, groups = lib.empty(size, lib.name(keys)), _number(lib, size)
    if size:
        memory, workspace = _memory(lib, "groups", format, size)
        from_, to = _elements(lib, keys, None, count), _elements(lib, out)
        _stream(lib).unique(format, 0, from_, to, (lib.address(groups), workspace))
    return out, groups


def _unique(lib: Any, x: Any, *, parts: tuple[bool, bool, bool], format: int, counts: tuple = (None,)) -> Any:
    keys, code = _canonical(lib, x.reshape(-1), 0, format)
    format |= code
    indices = None
    if parts[0] or parts[1]:
        indices = _order(lib, keys, format)
    elif len(keys):
        memory, workspace = _memory(lib, "sort", format, len(keys))
        _stream(lib).sort(format, 0, _elements(lib, keys, None, *counts), workspace, None)
    if not any(parts):
        out, groups = _different(lib, keys, format, *counts)
        return Counted(lib.cast(out, lib.name(x)), groups)
    out, lengths, groups = _groups(lib, keys, format, *counts)
    values = lib.cast(out, lib.name(x))
    if indices is None:
        return Counted(values, groups), lengths
    found = int(groups[0])
    lengths = lengths[:found]
    result = [values[:found]]
    if parts[0]:
        result.append(indices[lengths.cumsum(0) - lengths])
    if parts[1]:
        inverse = lib.empty(len(keys), "int64")
        inverse[indices] = lib.repeat(lib.arange(found), lengths, len(keys))
        result.append(inverse)
    if parts[2]:
        result.append(lengths)
    return tuple(result)


def _set_operation(lib: Any, x1: Any, x2: Any, *, operation: int, format: int, counts: tuple = (None, None)) -> Any:
    common = lib.common(x1, x2)
    if operation == 2 and lib.name(x1) != lib.name(x2):
        raise TypeError(f"the arrays are of types {x1.dtype} and {x2.dtype}, expected one type")
    sets = [
        _unique(lib, lib.cast(x, common), parts=(False, False, False), format=format, counts=(count,))
        for x, count in zip((x1, x2), counts, strict=True)
    ]
    (a, code), (b, _) = (_numbers(lib, x.array, 0, copy=False) for x in sets)
    format |= code
    out = lib.empty(len(a) + len(b), lib.name(a))
    count = _number(lib, len(out))
    if len(out):
        memory, workspace = _memory(lib, "set_operation", format, len(out))
        from_ = tuple(_elements(lib, x, None, of.count) for x, of in zip((a, b), sets, strict=True))
        _stream(lib).set_operation(format, operation, from_, _elements(lib, out), (lib.address(count), workspace))
    return Counted(lib.cast(out, common), count)


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
        _stream(lib).sort(format | code, 0, _elements(lib, rows), workspace, segments)
    return lib.cast(rows, lib.name(x))


def _segmented_argsort(lib: Any, x: Any, offsets: Any, *, format: int) -> Any:
    rows, code = _canonical(lib, flat(x, "x"), 0, format)
    offsets, segments = _ends(lib, offsets, len(rows))
    return _order(lib, rows, format | code, offsets, segments)


def _reduce_by_key(lib: Any, keys: Any, values: Any, *, op: str, format: int, counts: tuple = (None,)) -> Any:
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
    keys_name, keys = lib.name(keys), lib.cast(keys.reshape(-1), _kind(lib, keys))
    sorted, moved = _sort_pairs(lib, keys, numbers, axis=0, format=format, counts=counts)
    size, value_size = len(sorted), moved.dtype.itemsize
    out, totals, groups = lib.empty(size, lib.name(sorted)), lib.empty(size, wide), _number(lib, size)
    if size:
        format |= _CODES[lib.name(sorted)]
        memory, workspace = _memory(lib, "groups", format, size)
        code = ("sum", "min", "max").index(op), _CODES[wide], value_size
        from_, to = _elements(lib, sorted, moved, *counts), _elements(lib, out, totals)
        _stream(lib).reduce_by_key(format, code, from_, to, (lib.address(groups), workspace))
    return Counted(lib.cast(out, keys_name), groups), lib.cast(totals, name)
