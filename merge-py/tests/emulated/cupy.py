"""As much of CuPy as `gmerge` uses, on an emulated GPU: `scripts/emulated-gpu` puts the driver in place. Arrays lie in
the driver's memory, and numpy does the work on copies of them. `waits` counts how often the host has read a number.
"""

import contextlib
import ctypes
import types

import numpy as np

waits = 0
# Unspecified elements may be anything.
np.seterr(all="ignore")
_driver = ctypes.CDLL("libcuda.so.1")
_context, _stream = ctypes.c_void_p(), ctypes.c_void_p()
_random = np.random.default_rng(1)
# Memory that no array has any more, and copies from the host, which queued work may use.
_unused: list = []
_sources: list = []


def _call(name, *arguments):
    status = getattr(_driver, name)(*arguments)
    if status:
        raise RuntimeError(f"{name} returns {status}")


_call("cuInit", 0)
_call("cuDevicePrimaryCtxRetain", ctypes.byref(_context), 0)
_call("cuCtxSetCurrent", _context)
_call("cuStreamCreate", ctypes.byref(_stream), 1)


def _pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


def _synchronize():
    _call("cuStreamSynchronize", _stream)
    _sources.clear()
    while _unused:
        _call("cuMemFree_v2", _unused.pop())


class ndarray:
    def __init__(self, content):
        content = np.array(content, order="C")
        self.shape, self.dtype, self.ndim, self.size = content.shape, content.dtype, content.ndim, content.size
        self.device, self.flags = types.SimpleNamespace(id=0), content.flags
        self._address, self._bytes = ctypes.c_uint64(), ctypes.c_size_t(content.nbytes)
        if content.nbytes:
            _call("cuMemAlloc_v2", ctypes.byref(self._address), self._bytes)
            self._set(content)

    def __del__(self):
        if self._address.value:
            _unused.append(self._address)

    def _set(self, content):
        _sources.append(content)
        _call("cuMemcpyHtoDAsync_v2", self._address, _pointer(content), self._bytes, _stream)

    @property
    def data(self):
        return types.SimpleNamespace(ptr=self._address.value)

    @property
    def __cuda_array_interface__(self):
        return {"data": (self._address.value, False), "shape": self.shape, "typestr": self.dtype.str, "version": 3}

    def get(self):
        content = np.empty(self.shape, self.dtype)
        if content.nbytes:
            _call("cuMemcpyDtoHAsync_v2", _pointer(content), self._address, self._bytes, _stream)
        _synchronize()
        return content

    def __len__(self):
        return self.shape[0]

    def __setitem__(self, at, value):
        content = self.get()
        content[_of_host(at)] = _of_host(value)
        if content.nbytes:
            self._set(content)

    def __add__(self, other):
        total = self.get() + _of_host(other)
        if self.dtype == np.float32:
            # The only NaN that a GPU's addition gives.
            total[np.isnan(total)] = np.array(0x7FFFFFFF, "uint32").view("float32")
        return ndarray(total)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *a, **b: ndarray(getattr(self.get(), name)(*map(_of_host, a), **b))


def _operator(name):
    return lambda self, *others: ndarray(getattr(self.get(), name)(*map(_of_host, others)))


def _number(kind):
    def read(self):
        global waits
        waits += 1
        return kind(self.get())

    return read


for _name in ("sub", "mod", "eq", "lt", "getitem"):
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))
for _kind in (int, bool):
    setattr(ndarray, f"__{_kind.__name__}__", _number(_kind))


def _of_host(x):
    if isinstance(x, (list, tuple)):
        return type(x)(map(_of_host, x))
    return x.get() if isinstance(x, ndarray) else x


def __getattr__(name):
    if name.startswith("_"):
        raise AttributeError(name)
    return lambda *a, **b: ndarray(getattr(np, name)(*map(_of_host, a), **b))


def is_available():
    return True


def asarray(x):
    if isinstance(x, ndarray):
        return x
    interface = getattr(x, "__cuda_array_interface__", None)
    if interface is None:
        return ndarray(x)
    copy = ndarray(np.zeros(interface["shape"], interface["typestr"]))
    _call("cuMemcpyDtoDAsync_v2", copy._address, ctypes.c_uint64(interface["data"][0]), copy._bytes, _stream)
    return copy


def empty(shape, dtype):
    """Memory with contents that no result has by chance."""
    of = np.empty(shape, dtype)
    return ndarray(np.frombuffer(_random.bytes(of.nbytes), of.dtype).reshape(of.shape))


def result_type(*arrays):
    return np.result_type(*(x.dtype for x in arrays))


class _Device(contextlib.nullcontext):
    def __init__(self, ordinal=0):
        super().__init__()
        self.id = ordinal


cuda = types.SimpleNamespace(Device=_Device, get_current_stream=lambda: types.SimpleNamespace(ptr=_stream.value))
