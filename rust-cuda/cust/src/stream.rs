//! Streams: queues of work on a GPU.

use crate::error::CudaResult;
use crate::event::Event;
use crate::sys::{self, CUstream};

/// A queue of work on one GPU, which is done in order. CUDA's legacy default stream waits for it, and it waits for
/// that one.
#[derive(Debug)]
pub struct Stream(CUstream);

impl Stream {
    /// A stream of the current context. Priority 0 is the usual one, and lower numbers are higher priorities.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(priority: i32) -> CudaResult<Self> {
        let mut stream = CUstream::NULL;
        // SAFETY: the driver writes one handle, to `stream`. Flags of 0 are those of the usual kind of stream.
        unsafe { sys::cuStreamCreateWithPriority(&mut stream, 0, priority) }.to_result()?;
        Ok(Self(stream))
    }

    /// The stream with this handle.
    ///
    /// # Safety
    /// The stream exists for as long as the result is used. Dropping the result destroys it: for a stream with another
    /// owner, the result is never dropped.
    pub const unsafe fn from_raw(stream: CUstream) -> Self {
        Self(stream)
    }

    /// The driver's handle, which is valid while this value lives.
    pub fn as_raw(&self) -> CUstream {
        self.0
    }

    /// The priority.
    ///
    /// # Errors
    /// The driver's.
    pub fn get_priority(&self) -> CudaResult<i32> {
        let mut priority = 0;
        // SAFETY: the handle belongs to `self`. The driver writes one number, to `priority`.
        unsafe { sys::cuStreamGetPriority(self.0, &mut priority) }.to_result()?;
        Ok(priority)
    }

    /// Makes later work of this stream wait for `event`.
    ///
    /// # Errors
    /// The driver's.
    pub fn wait_event(&self, event: &Event) -> CudaResult<()> {
        // SAFETY: both handles belong to values that live during the call. The driver keeps what it needs of the event.
        // Flags of 0 are the usual wait.
        unsafe { sys::cuStreamWaitEvent(self.0, event.as_raw(), 0) }.to_result()
    }

    /// Waits until all work on the stream is done.
    ///
    /// # Errors
    /// The driver's, also if some of the work has failed.
    pub fn synchronize(&self) -> CudaResult<()> {
        // SAFETY: the handle belongs to `self`, which lives during the call.
        unsafe { sys::cuStreamSynchronize(self.0) }.to_result()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the handle is not used afterwards. The driver destroys the stream when its work is done.
        let _ = unsafe { sys::cuStreamDestroy_v2(self.0) }.to_result();
    }
}
