"""Arrays of other libraries: which library an array belongs to, and how it gets results."""

from __future__ import annotations

from typing import Any


def library_of(arrays: tuple) -> Any:
    """The library of the first array that belongs to one, or numpy."""
    for array in arrays:
        root = type(array).__module__.partition(".")[0]
        if root == "torch":
            return _Torch(array)
        if root == "cupy":
            return _Cupy()
        if root == "pyarrow":
            return _Arrow()
        if root in ("jax", "jaxlib"):
            return _Jax(array)
        if root != "numpy" and _is_on_gpu(array):
            return _Foreign()
    return _Numpy()


def _is_on_gpu(array: Any) -> bool:
    if hasattr(array, "__cuda_array_interface__"):
        return True
    # 2 and 13 are the numbers of CUDA's memory and of its managed memory in DLPack.
    return hasattr(array, "__dlpack_device__") and array.__dlpack_device__()[0] in (2, 13)


def _map(result: Any, back: Any) -> Any:
    return tuple(map(back, result)) if isinstance(result, tuple) else back(result)


class _Numpy:
    """numpy's arrays, and what numpy makes arrays of."""

    def call(self, name: str, arrays: tuple, arguments: dict) -> Any:
        import gmerge

        from . import _host

        gmerge._with_numpy()
        # The type of a Python number depends on the array that it is searched in.
        keep = name == "searchsorted" and isinstance(arrays[1], (bool, int, float, complex))
        numbers = arrays[1:] if keep else ()
        return getattr(_host, name)(*map(self.array, arrays[: len(arrays) - keep]), *numbers, **arguments)

    @staticmethod
    def array(array: Any) -> Any:
        import numpy as np

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

        arrays = tuple(x if isinstance(x, (int, float)) else cupy.asarray(x) for x in arrays)
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
            arrays = tuple(module.from_dlpack(x) if hasattr(x, "__dlpack__") else module.asarray(x) for x in arrays)
            library = lib(arrays[0]) if library == "torch" else lib()
            return _map(library.call(name, arrays, arguments), self.back)
        kind = type(arrays[0]).__name__
        raise TypeError(
            f"an array of type {kind} is in a GPU's memory: this needs CuPy or torch, and neither is installed"
        )


class _Arrow(_Host):
    """Arrow arrays. Nulls are last in every order, and keep their order."""

    def call(self, name: str, arrays: tuple, arguments: dict) -> Any:
        import pyarrow as pa

        if arguments.pop("out", None) is not None:
            raise TypeError("Arrow arrays cannot be changed, so out is not supported")
        arrays = tuple(x.combine_chunks() if isinstance(x, pa.ChunkedArray) else x for x in arrays)
        nulls = sum(x.null_count for x in arrays if isinstance(x, pa.Array))
        if not nulls or name not in ("sort", "argsort"):
            if nulls:
                raise TypeError(f"an Arrow array has {nulls} nulls, which only sort and argsort take")
            type = arrays[0].type
            numbers = super().call(name, tuple(map(self.numbers, arrays)), arguments)
            returns_indices = name in ("argsort", "argtopk", "searchsorted", "segmented_argsort")
            if returns_indices:
                return _map(numbers, pa.array)
            if isinstance(numbers, tuple):
                return (self.arrow(numbers[0], type), *map(pa.array, numbers[1:]))
            return self.arrow(numbers, type)
        (array,) = arrays
        is_valid = array.is_valid().to_numpy(zero_copy_only=False)
        valid = is_valid.nonzero()[0]
        numbers = self.numbers(array.drop_null())
        if name == "sort":
            sorted = self.arrow(super().call(name, (numbers,), arguments), array.type)
            return pa.concat_arrays([sorted, pa.nulls(nulls, array.type)])
        import numpy as np

        order = valid[super().call(name, (numbers,), arguments)]
        return pa.array(np.concatenate([order, (~is_valid).nonzero()[0]]))

    @staticmethod
    def numbers(array: Any) -> Any:
        import pyarrow as pa

        if not isinstance(array, pa.Array):
            return array
        kind = array.type
        if not (
            pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_temporal(kind)
        ):
            raise TypeError(f"Arrow arrays of type {kind} cannot be sorted here")
        return array.to_numpy(zero_copy_only=False)

    @staticmethod
    def arrow(array: Any, type: Any) -> Any:
        import pyarrow as pa

        return pa.array(array).cast(type)
