"""Sorts an array of JAX on its GPU, by libgmerge.

    LIBRARY=folder-of-libgmerge.so CUDA=folder-of-include-and-lib python3 jax_sort.py
"""
import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

here, library, cuda = Path(__file__).parent, os.environ["LIBRARY"], Path(os.environ.get("CUDA", "/usr/local/cuda"))
target = Path(tempfile.mkdtemp()) / "libjax_sort.so"
subprocess.run(
    ["c++", "-std=c++17", "-O1", "-shared", "-fPIC", here / "jax_sort.cc", "-o", target, f"-I{jax.ffi.include_dir()}",
     f"-I{here.parent / 'include'}", f"-I{cuda / 'include'}", f"-L{library}", f"-Wl,-rpath,{library}", "-lgmerge",
     f"-L{cuda / 'lib64'}", f"-Wl,-rpath,{cuda / 'lib64'}", "-lcudart"],
    check=True)
jax.ffi.register_ffi_target("gmerge_sort_f32", jax.ffi.pycapsule(ctypes.CDLL(target).gmerge_sort_f32), platform="CUDA")


def sort(keys):
    """The keys in ascending order, NaNs last."""
    return jax.ffi.ffi_call("gmerge_sort_f32", jax.ShapeDtypeStruct(keys.shape, keys.dtype))(keys)


keys = jax.random.normal(jax.random.key(0), (1_000_000,)).at[::1000].set(jnp.nan)
found = jax.jit(lambda keys: sort(keys * 2) / 2)(keys)
np.testing.assert_array_equal(found, jnp.sort(keys))
print("an array of JAX is sorted")
