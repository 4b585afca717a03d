//! Functions: the kernels of a module.

use crate::error::{CudaError, CudaResult};
use crate::stream::Stream;
use crate::sys::{self, CUfunction};
use std::ffi::{c_int, c_void};
use std::ptr;

/// A kernel of a [`Module`](crate::module::Module). The value does not keep the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Function(pub(crate) CUfunction);

/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`
const MAX_DYNAMIC_SHARED_BYTES: c_int = 8;

impl Function {
    /// Allows blocks to have `bytes` bytes of dynamic shared memory.
    ///
    /// # Errors
    /// The driver's, if the GPU has less.
    ///
    /// # Safety
    /// The module of the function is loaded.
    pub unsafe fn set_max_dynamic_shared_bytes(self, bytes: u32) -> CudaResult<()> {
        let bytes = c_int::try_from(bytes).map_err(|_| CudaError::INVALID_VALUE)?;
        // SAFETY: the function exists, by `# Safety`, and the call takes no pointer.
        unsafe { sys::cuFuncSetAttribute(self.0, MAX_DYNAMIC_SHARED_BYTES, bytes) }.to_result()
    }

    /// Puts a launch on `stream`: `blocks` blocks of `threads` threads in one dimension, with `shared_bytes` bytes of
    /// dynamic shared memory each. The driver copies the arguments, which `parameters` point at, before the call
    /// returns.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// The module of the function is loaded until the launch has ended. `parameters` has a pointer to a value of each
    /// of the function's parameters. The values meet the requirements of the kernel until the launch has ended.
    pub unsafe fn launch(
        self,
        blocks: u32,
        threads: u32,
        shared_bytes: u32,
        stream: &Stream,
        parameters: &[*mut c_void],
    ) -> CudaResult<()> {
        let (stream, parameters, extra) = (stream.as_raw(), parameters.as_ptr().cast_mut(), ptr::null_mut());
        // SAFETY: function, parameters and memory are as `# Safety` says. The driver only reads the parameters. The
        // stream's handle belongs to a value that lives during the call.
        unsafe { sys::cuLaunchKernel(self.0, blocks, 1, 1, threads, 1, 1, shared_bytes, stream, parameters, extra) }
            .to_result()
    }
}
