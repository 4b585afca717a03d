//! Allocations in a GPU's memory.

use super::DeviceSlice;
use crate::error::CudaResult;
use crate::sys::{self, CUdeviceptr};
use std::ops::Deref;

/// An allocation in a GPU's memory. Dropping it frees the bytes, for which the context of the allocation has to be
/// current.
#[derive(Debug)]
pub struct DeviceBuffer(DeviceSlice);

impl DeviceBuffer {
    /// Allocates `len` bytes, with unspecified values, in the memory of the current context's GPU. The address is a
    /// multiple of 256; that of no bytes is 0.
    ///
    /// # Errors
    /// [`CudaError::OUT_OF_MEMORY`](crate::error::CudaError::OUT_OF_MEMORY) if there is too little memory, and other
    /// errors of the driver.
    pub fn uninitialized(len: usize) -> CudaResult<Self> {
        let mut address = 0;
        if len > 0 {
            // SAFETY: the driver writes one address, to `address`.
            unsafe { sys::cuMemAlloc_v2(&mut address, len) }.to_result()?;
        }
        Ok(Self(DeviceSlice::from_raw_parts(address, len)))
    }

    /// The allocation of `len` bytes at `address`.
    ///
    /// # Safety
    /// Dropping the result frees the allocation: nothing else does, or the result is never dropped.
    pub const unsafe fn from_raw_parts(address: CUdeviceptr, len: usize) -> Self {
        Self(DeviceSlice::from_raw_parts(address, len))
    }
}

impl Deref for DeviceBuffer {
    type Target = DeviceSlice;

    fn deref(&self) -> &DeviceSlice {
        &self.0
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if !self.is_empty() {
            // SAFETY: the bytes were allocated for this value, which alone frees them. Work that accesses them is
            // `unsafe`, and requires that they are allocated.
            let _ = unsafe { sys::cuMemFree_v2(self.address()) }.to_result();
        }
    }
}
