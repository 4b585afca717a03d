from collections.abc import Callable
from os import PathLike
from typing import Any, Generic, Literal, NamedTuple, TypeVar

# An array of a library, what numpy makes an array of, or `Counted`. Results are arrays of the library of the first
# argument, and `Counted` if one of the arguments is.
_Array = TypeVar("_Array")
_File = str | bytes | PathLike[str] | PathLike[bytes]
_Nan = Literal["last", "first", "total"]
_Engine = Literal["auto", "cpu", "gpu"]
_Progress = Callable[[int, int], object]

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
__version__: str

class Counted(NamedTuple, Generic[_Array]):
    array: _Array
    count: Any = None

def sort(
    x: _Array,
    /,
    *,
    axis: int | None = -1,
    descending: bool = False,
    stable: bool = True,
    out: Any = None,
    nan: _Nan = "last",
    engine: _Engine = "auto",
) -> _Array: ...
def argsort(
    x: _Array,
    /,
    *,
    axis: int | None = -1,
    descending: bool = False,
    stable: bool = True,
    nan: _Nan = "last",
    engine: _Engine = "auto",
) -> _Array: ...
def sort_pairs(
    keys: _Array,
    values: Any,
    /,
    *,
    axis: int | None = -1,
    descending: bool = False,
    stable: bool = True,
    nan: _Nan = "last",
    engine: _Engine = "auto",
) -> tuple[_Array, Any]: ...
def topk(
    x: _Array, k: int, /, *, axis: int | None = -1, largest: bool = True, nan: _Nan = "last", engine: _Engine = "auto"
) -> _Array: ...
def argtopk(
    x: _Array, k: int, /, *, axis: int | None = -1, largest: bool = True, nan: _Nan = "last", engine: _Engine = "auto"
) -> _Array: ...
def merge(
    *arrays: _Array, descending: bool = False, out: Any = None, nan: _Nan = "last", engine: _Engine = "auto"
) -> _Array | Any: ...
def searchsorted(
    x1: _Array,
    x2: Any,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Any = None,
    descending: bool = False,
    nan: _Nan = "last",
    engine: _Engine = "auto",
) -> Any: ...
def unique(
    x: _Array,
    /,
    *,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    engine: _Engine = "auto",
) -> Any: ...
def union(x1: _Array, x2: Any, /, *, engine: _Engine = "auto") -> _Array | Any: ...
def intersect(x1: _Array, x2: Any, /, *, engine: _Engine = "auto") -> _Array | Any: ...
def difference(x1: _Array, x2: Any, /, *, engine: _Engine = "auto") -> _Array | Any: ...
def segmented_sort(
    x: _Array, offsets: Any, /, *, descending: bool = False, nan: _Nan = "last", engine: _Engine = "auto"
) -> _Array: ...
def segmented_argsort(
    x: _Array, offsets: Any, /, *, descending: bool = False, nan: _Nan = "last", engine: _Engine = "auto"
) -> _Array: ...
def reduce_by_key(
    keys: _Array, values: Any, /, *, op: Literal["sum", "min", "max"] = "sum", engine: _Engine = "auto"
) -> tuple[_Array, Any]: ...
def sort_file(*inputs: _File, output: _File, progress: _Progress | None = None, **options: Any) -> None: ...
def merge_files(*inputs: _File, output: _File, progress: _Progress | None = None, **options: Any) -> None: ...
def check_file(input: _File, /, *, progress: _Progress | None = None, **options: Any) -> bool: ...
