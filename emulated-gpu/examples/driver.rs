//! The functions of the CUDA driver on emulated GPUs that run the kernels of this repository. Tests load this library
//! in place of NVIDIA's, under the name `libcuda.so.1`.

use emulated_gpu as _;
use kernels_gpu as _;
