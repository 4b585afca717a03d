"""A custom operator of PyTorch that sorts a tensor on its GPU, by libgmerge, on PyTorch's current stream.

    LD_LIBRARY_PATH=folder-of-libgmerge.so python3 torch_sort.py
"""
import ctypes

import torch

gmerge = ctypes.CDLL("libgmerge.so")
gmerge.gmerge_last_error.restype = ctypes.c_char_p
TYPES = {torch.int32: 7, torch.int64: 8, torch.float32: 11, torch.float64: 12}
DESCENDING, NANS_LAST = 1, 2


class Format(ctypes.Structure):
    _fields_ = [("key_type", ctypes.c_uint32), ("order", ctypes.c_uint32), ("value_size", ctypes.c_size_t)]


class Elements(ctypes.Structure):
    _fields_ = [("keys", ctypes.c_uint64), ("values", ctypes.c_uint64), ("count", ctypes.c_size_t)]


class Workspace(ctypes.Structure):
    _fields_ = [("address", ctypes.c_uint64), ("bytes", ctypes.c_size_t)]


def check(status):
    if status != 0:
        raise RuntimeError(gmerge.gmerge_last_error().decode())


gpus, streams = {}, {}


def stream_of(device):
    """This library's stream for PyTorch's current stream of a GPU, made once for each."""
    handle = torch.cuda.current_stream(device).cuda_stream
    if device not in gpus:
        gpus[device] = ctypes.c_void_p()
        check(gmerge.gmerge_gpu_open(ctypes.c_size_t(device), ctypes.byref(gpus[device])))
    if (device, handle) not in streams:
        streams[device, handle] = ctypes.c_void_p()
        result = ctypes.byref(streams[device, handle])
        check(gmerge.gmerge_stream_open(gpus[device], ctypes.c_void_p(handle), result))
    return streams[device, handle]


@torch.library.custom_op("gmerge::sort", mutates_args=())
def sort(keys: torch.Tensor, descending: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """The sorted keys, NaNs last, and the index of each. Stable."""
    out, n = keys.contiguous().clone(), keys.numel()
    indices = torch.empty(n, dtype=torch.int64, device=keys.device)
    order = Format(TYPES[keys.dtype], NANS_LAST | (DESCENDING if descending else 0), 0)
    needed, index = ctypes.c_size_t(), ctypes.c_size_t(8)
    check(gmerge.gmerge_device_argsort_bytes(order, ctypes.c_size_t(n), index, ctypes.byref(needed)))
    memory = torch.empty(needed.value, dtype=torch.uint8, device=keys.device)
    elements, workspace = Elements(out.data_ptr(), 0, n), Workspace(memory.data_ptr(), needed.value)
    check(gmerge.gmerge_device_argsort(
        stream_of(keys.device.index), order, elements, ctypes.c_uint64(indices.data_ptr()), index, workspace))
    return out, indices


@sort.register_fake
def _(keys, descending):
    return torch.empty_like(keys), torch.empty_like(keys, dtype=torch.int64)


if __name__ == "__main__":
    for dtype in TYPES:
        keys = torch.randn(1_000_000, device="cuda").mul(1000).to(dtype)
        if dtype.is_floating_point:
            keys[::1000] = float("nan")
        found, expected = sort(keys, False), torch.sort(keys, stable=True)
        assert torch.equal(found[1], expected.indices)
        assert torch.equal(keys[found[1]].nan_to_num(), found[0].nan_to_num())
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            found = torch.compile(sort, fullgraph=True)(keys, False) if dtype == torch.int64 else sort(keys, False)
        side.synchronize()
        assert torch.equal(found[1], expected.indices)
    print("tensors are sorted as by torch.sort")
