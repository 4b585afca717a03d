//! Modules: compiled kernels in a context.

use crate::c_string;
use crate::error::CudaResult;
use crate::function::Function;
use crate::sys::{self, CUfunction, CUmodule};
use std::ffi::c_void;

/// Compiled kernels that have been loaded into a context. Dropping the module unloads them.
#[derive(Debug)]
pub struct Module(CUmodule);

impl Module {
    /// Loads PTX into the current context. The driver compiles it.
    ///
    /// # Errors
    /// The driver's, if it cannot compile the text.
    pub fn from_ptx(ptx: &str) -> CudaResult<Self> {
        let ptx = c_string(ptx)?;
        // SAFETY: `ptx` is a text that ends with a zero byte.
        unsafe { Self::load(ptx.as_ptr().cast()) }
    }

    /// Loads machine code (a cubin) into the current context.
    ///
    /// # Errors
    /// The driver's, for instance if the code is for another kind of GPU.
    ///
    /// # Safety
    /// `code` is a complete ELF file from NVIDIA's assembler. The driver does not know its length.
    pub unsafe fn from_cubin(code: &[u8]) -> CudaResult<Self> {
        // SAFETY: `code` is a complete file, by `# Safety`.
        unsafe { Self::load(code.as_ptr().cast()) }
    }

    /// Loads an image into the current context.
    ///
    /// # Safety
    /// `image` is a complete ELF file, or a text that ends with a zero byte.
    unsafe fn load(image: *const c_void) -> CudaResult<Self> {
        let mut module = CUmodule::NULL;
        // SAFETY: the driver writes one handle, to `module`, and reads an image whose end it finds, by `# Safety`.
        unsafe { sys::cuModuleLoadData(&mut module, image) }.to_result()?;
        Ok(Self(module))
    }

    /// The kernel with this name.
    ///
    /// # Errors
    /// The driver's, if the module does not have it.
    pub fn get_function(&self, name: &str) -> CudaResult<Function> {
        let (name, mut function) = (c_string(name)?, CUfunction::NULL);
        // SAFETY: the handle belongs to `self`, `name` ends with a zero byte, and the driver writes one handle, to
        // `function`.
        unsafe { sys::cuModuleGetFunction(&mut function, self.0, name.as_ptr()) }.to_result()?;
        Ok(Function(function))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: the handle is not used afterwards. A function of the module is used in `unsafe` calls only, which
        // require that the module is loaded.
        let _ = unsafe { sys::cuModuleUnload(self.0) }.to_result();
    }
}
