//! Page-locked memory of the host.

use crate::error::{CudaError, CudaResult};
use crate::sys;
use bytemuck::Pod;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::slice;

/// A slice in page-locked memory, which GPUs access by themselves, at the address that it has on the host.
#[derive(Debug)]
pub struct LockedBuffer<T: Pod> {
    start: NonNull<T>,
    len: usize,
}

// SAFETY: the buffer owns its elements, like a `Box<[T]>`, and the driver frees the memory from any thread.
unsafe impl<T: Pod + Send> Send for LockedBuffer<T> {}
// SAFETY: a shared buffer only gives out shared references to its elements.
unsafe impl<T: Pod + Sync> Sync for LockedBuffer<T> {}

impl<T: Pod> LockedBuffer<T> {
    /// Allocates `len` zeros. A context has to be current.
    ///
    /// # Errors
    /// [`CudaError::OUT_OF_MEMORY`] if there is too little memory, and other errors of the driver.
    pub fn zeroed(len: usize) -> CudaResult<Self> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(CudaError::OUT_OF_MEMORY)?;
        if bytes == 0 {
            return Ok(Self { start: NonNull::dangling(), len });
        }
        let mut start = ptr::null_mut();
        // SAFETY: the driver writes one address, to `start`.
        unsafe { sys::cuMemAllocHost_v2(&mut start, bytes) }.to_result()?;
        let start = NonNull::new(start.cast::<T>()).ok_or(CudaError::OUT_OF_MEMORY)?;
        // SAFETY: the driver has allocated `len` elements at `start`, at the beginning of a page. Zeros are values of a
        // `Pod` type.
        unsafe { start.write_bytes(0, len) };
        Ok(Self { start, len })
    }
}

impl<T: Pod> Deref for LockedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: there are `len` values at `start`, or no bytes, and `&self` keeps them from being written.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Pod> DerefMut for LockedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: there are `len` values at `start`, or no bytes, and `&mut self` is the only access to them.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Pod> Drop for LockedBuffer<T> {
    fn drop(&mut self) {
        if size_of_val::<[T]>(self) > 0 {
            // SAFETY: `zeroed` has allocated the memory, and nothing uses it afterwards. Work that accesses it is
            // `unsafe`, and requires that it is allocated.
            let _ = unsafe { sys::cuMemFreeHost(self.start.as_ptr().cast()) }.to_result();
        }
    }
}
