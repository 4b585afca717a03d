"""Arrays of other libraries: which library an array belongs to, and how it gets results."""

from __future__ import annotations

from typing import Any

from ._options import Counted, array_of, each


def library_of(arrays: tuple) -> Any:
    """The library of the first array that belongs to one. Lists and numbers belong to none."""
    for array in map(array_of, arrays):
        root = type(array).__module__.partition(".")[0]
        if root == "numpy":
            return _Numpy()
        if root == "torch":
            return _Torch(array)
        if root == "cupy":
            return _Cupy()
        if root == "pyarrow":
            return _Arrow()
        if root in ("jax", "jaxlib"):
            return _Jax(array)
        if _is_on_gpu(array):
            return _Foreign()
    return _Numpy()


def _is_on_gpu(array: Any) -> bool:
    if hasattr(array, "__cuda_array_interface__"):
        return True
    # 2 and 13 are the numbers of CUDA's memory and of its managed memory in DLPack.
    return hasattr(array, "__dlpack_device__") and array.__dlpack_device__()[0] in (2, 13)


def _map(result: Any, back: Any) -> Any:
    return tuple(each(x, back) for x in result) if type(result) is tuple else each(result, back)


class _Numpy:
    """numpy's arrays, and what numpy makes arrays of."""

    def call(self, name: str, arrays: tuple, arguments: dict) -> Any:
        import gmerge

        from . import _host

        gmerge._with_numpy()
        return getattr(_host, name)(*map(self.array, arrays), **arguments)

    @staticmethod
    def array(array: Any) -> Any:
        import numpy as np

        if isinstance(array, np.ma.MaskedArray):
            raise TypeError("an array is masked: sort its elements, for example array.compressed()")
        if array is None:
            raise TypeError("an array is None")
        if isinstance(array, Counted):
            raise TypeError("an array is Counted, and not in a GPU's memory")
        if type(array).__module__.partition(".")[0] != "numpy" and _is_on_gpu(array):
            raise TypeError(f"an array of type {type(array).__name__} is in a GPU's memory, and another one is not")
        if hasattr(array, "__dlpack__") and not hasattr(array, "__array__"):
            return np.from_dlpack(array)
        return np.asarray(array)


class _Host(_Numpy):
    """Arrays of a library in the memory of the host, by numpy arrays of the same memory."""

    def to(self, array: Any) -> Any:
        return self.array(array)

    def back(self, result: Any) -> Any:
        return result

    def call(self, name: str, arrays: tuple, arguments: dict) -> Any:
        out = arguments.get("out")
        if out is None:
            return _map(super().call(name, tuple(map(self.to, arrays)), arguments), self.back)
        super().call(name, tuple(map(self.to, arrays)), arguments | {"out": self.to(out)})
        return out


class _Torch:
    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def call(self, name: str, arrays: tuple, arguments: dict) -> Any:
        kind = self.tensor.device.type
        if kind == "cuda":
            from . import _gpu

            return _gpu.call(_gpu.Torch(self.tensor.device), name, arrays, arguments)
        if kind != "cpu":
            raise TypeError(f"a tensor is on the device {self.tensor.device}, expected a CPU or a CUDA device")
        return _TorchOnHost(self.tensor).call(name, arrays, arguments)


class _TorchOnHost(_Host):
    def __init__(self, tensor: Any) -> None:
        import torch

        self.torch = torch
        self.is_bfloat16 = tensor.dtype == torch.bfloat16

    def to(self, array: Any) -> Any:
        if not isinstance(array, self.torch.Tensor):
            return array
        if array.device.type != "cpu":
            raise TypeError(f"one tensor is on the CPU, and another one on the device {array.device}")
        array = array.detach().resolve_conj().resolve_neg()
        # numpy has no such type. Every number of it is one of 4 bytes.
        return (array.float() if array.dtype == self.torch.bfloat16 else array).numpy()

    def back(self, result: Any) -> Any:
        result = self.torch.as_tensor(result)
        return result.bfloat16() if self.is_bfloat16 and result.dtype == self.torch.float32 else result

    def call(self, name: str, arrays: tuple, arguments: dict) -> Any:
        out = arguments.get("out")
        if out is None or not self.is_bfloat16:
            return super().call(name, arrays, arguments)
        return out.copy_(super().call(name, arrays, arguments | {"out": None}))


class _Jax(_Host):
    def __init__(self, array: Any) -> None:
        self.array_of_jax = array

    def call(self, name: str, arrays: tuple, arguments: dict) -> Any:
        if arguments.get("out") is not None:
            raise TypeError("arrays of JAX cannot be changed, so out is not supported")
        if _is_on_gpu(self.array_of_jax):
            return _Foreign(self.back_from_gpu).call(name, arrays, arguments)
        return super().call(name, arrays, arguments)

    def back(self, result: Any) -> Any:
        import jax.numpy

        return jax.numpy.asarray(result)

    def back_from_gpu(self, result: Any) -> Any:
        import jax.numpy

        return jax.numpy.from_dlpack(result)


class _Cupy:
    def call(self, name: str, arrays: tuple, arguments: dict) -> Any:
        import cupy

        from . import _gpu

        arrays = tuple(x if isinstance(x, (int, float)) else each(x, cupy.asarray) for x in arrays)
        return _gpu.call(_gpu.Cupy(), name, arrays, arguments)


class _Foreign:
    """Arrays in a GPU's memory of a library that this package does not know: by CuPy or torch."""

    def __init__(self, back: Any = lambda result: result) -> None:
        self.back = back

    def call(self, name: str, arrays: tuple, arguments: dict) -> Any:
        for library, lib in (("cupy", _Cupy), ("torch", _Torch)):
            try:
                module = __import__(library)
            except ImportError:
                continue

            def known(x: Any, module: Any = module) -> Any:
                return module.from_dlpack(x) if hasattr(x, "__dlpack__") else module.asarray(x)

            arrays = tuple(each(x, known) for x in arrays)
            library = lib(array_of(arrays[0])) if library == "torch" else lib()
            return _map(library.call(name, arrays, arguments), self.back)
        kind = next(type(x).__name__ for x in map(array_of, arrays) if _is_on_gpu(x))
        raise TypeError(
            f"an array of type {kind} is in a GPU's memory: this needs CuPy or torch, and neither is installed"
        )


class _Arrow(_Host):
    """Arrow arrays. Nulls are last in every order, and keep their order."""

    def call(self, name: str, arrays: tuple, arguments: dict) -> Any:
        import numpy as np
        import pyarrow as pa

        if arguments.pop("out", None) is not None:
            raise TypeError("Arrow arrays cannot be changed, so out is not supported")
        arrays = tuple(x.combine_chunks() if isinstance(x, pa.ChunkedArray) else x for x in arrays)
        nulls = sum(x.null_count for x in arrays if isinstance(x, pa.Array))
        if nulls and name not in ("sort", "argsort"):
            raise TypeError(f"an Arrow array has {nulls} nulls, which only sort and argsort take")
        kinds = {x.type for x in arrays if isinstance(x, pa.Array)}
        if nulls:
            return self.with_nulls(name, arrays[0], nulls, arguments)
        if len(kinds) > 1 and name != "sort_pairs" and any(map(pa.types.is_temporal, kinds)):
            raise TypeError(f"there is no common type of {' and '.join(map(str, kinds))}")
        result = super().call(name, tuple(map(self.numbers, arrays)), arguments)
        if name in ("argsort", "argtopk", "searchsorted", "segmented_argsort"):
            return pa.array(result) if np.ndim(result) else int(result)
        # Keys have the common type, and values that move with keys keep theirs.
        types = [arrays[0].type] if len(kinds) == 1 or name == "sort_pairs" else [None]
        types += [getattr(arrays[1], "type", None)] if name == "sort_pairs" else []
        if not isinstance(result, tuple):
            return self.arrow(result, types[0])
        return tuple(self.arrow(x, types[i] if i < len(types) else None) for i, x in enumerate(result))

    def with_nulls(self, name: str, array: Any, nulls: int, arguments: dict) -> Any:
        import numpy as np
        import pyarrow as pa

        result = _Numpy.call(self, name, (self.numbers(array.drop_null()),), arguments)
        if name == "sort":
            return pa.concat_arrays([self.arrow(result, array.type), pa.nulls(nulls, array.type)])
        is_valid = array.is_valid().to_numpy(zero_copy_only=False)
        return pa.array(np.concatenate([is_valid.nonzero()[0][result], (~is_valid).nonzero()[0]]))

    @staticmethod
    def numbers(array: Any) -> Any:
        import pyarrow as pa

        if not type(array).__module__.startswith("pyarrow"):
            return array
        if isinstance(array, pa.Scalar):
            return array.as_py()
        kind = getattr(array, "type", None)
        is_date = isinstance(array, pa.Array) and pa.types.is_temporal(kind) and not pa.types.is_interval(kind)
        if is_date:
            return array.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_numpy()
        if not isinstance(array, pa.Array) or not (
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
        ):
            raise TypeError(f"Arrow data of type {kind or type(array).__name__} cannot be sorted here")
        return array.to_numpy(zero_copy_only=False)

    @staticmethod
    def arrow(array: Any, kind: Any) -> Any:
        import pyarrow as pa

        result = pa.array(array)
        if kind is None or result.type == kind:
            return result
        return result.view(kind) if pa.types.is_temporal(kind) else result.cast(kind)
