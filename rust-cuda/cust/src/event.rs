//! Events: points in the work of streams.

use crate::error::CudaResult;
use crate::stream::Stream;
use crate::sys::{self, CUevent};
use std::ffi::c_uint;

/// A point in the work of a stream, once it has been recorded. Dropping it does not wait.
#[derive(Debug)]
pub struct Event(CUevent);

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventFlags(c_uint);

impl EventFlags {
    /// The event has a time.
    pub const DEFAULT: Self = Self(0);
    /// The event has no time, and costs less.
    pub const DISABLE_TIMING: Self = Self(2);
}

impl Event {
    /// An event of the current context.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(flags: EventFlags) -> CudaResult<Self> {
        let mut event = CUevent::NULL;
        // SAFETY: the driver writes one handle, to `event`.
        unsafe { sys::cuEventCreate(&mut event, flags.0) }.to_result()?;
        Ok(Self(event))
    }

    /// Sets the event to the end of the work that is on `stream` now.
    ///
    /// # Errors
    /// The driver's, if the stream and the event are of different contexts.
    pub fn record(&self, stream: &Stream) -> CudaResult<()> {
        // SAFETY: both handles belong to values that live during the call.
        unsafe { sys::cuEventRecord(self.0, stream.as_raw()) }.to_result()
    }

    /// Waits until the work before the event is done. Returns at once if the event has not been recorded.
    ///
    /// # Errors
    /// The driver's, also if some of the work has failed.
    pub fn synchronize(&self) -> CudaResult<()> {
        // SAFETY: the handle belongs to `self`, which lives during the call.
        unsafe { sys::cuEventSynchronize(self.0) }.to_result()
    }

    /// Milliseconds from `start` to this event, both of which have happened and have a time.
    ///
    /// # Errors
    /// The driver's, if one of the events has not happened or has no time.
    pub fn elapsed_time_f32(&self, start: &Self) -> CudaResult<f32> {
        let mut milliseconds = 0.0;
        // SAFETY: both handles belong to values that live during the call. The driver writes one number, to
        // `milliseconds`.
        unsafe { sys::cuEventElapsedTime(&mut milliseconds, start.0, self.0) }.to_result()?;
        Ok(milliseconds)
    }

    /// The driver's handle, which is valid while this value lives.
    pub fn as_raw(&self) -> CUevent {
        self.0
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: the handle is not used afterwards. The driver keeps what it needs until the event has happened.
        let _ = unsafe { sys::cuEventDestroy_v2(self.0) }.to_result();
    }
}
