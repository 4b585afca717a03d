//! Ranges of a GPU's memory.

use crate::context::ContextHandle;
use crate::error::CudaResult;
use crate::stream::Stream;
use crate::sys::{self, CUdeviceptr, CUresult};
use std::ops::{Bound, RangeBounds};

/// A range of bytes in a GPU's memory. It only names the bytes: nothing keeps them allocated, so all functions that
/// access them are `unsafe`. These functions put the access on a stream and return before it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSlice {
    address: CUdeviceptr,
    len: usize,
}

impl DeviceSlice {
    /// The `len` bytes at `address`.
    pub const fn from_raw_parts(address: CUdeviceptr, len: usize) -> Self {
        Self { address, len }
    }

    /// The address of the first byte.
    pub const fn address(&self) -> CUdeviceptr {
        self.address
    }

    /// The number of bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The part with these indices of bytes.
    ///
    /// # Panics
    /// If the part is not in the range.
    pub fn index(&self, part: impl RangeBounds<usize>) -> Self {
        let begin = match part.start_bound() {
            Bound::Included(begin) => *begin,
            Bound::Excluded(before) => *before + 1,
            Bound::Unbounded => 0,
        };
        let end = match part.end_bound() {
            Bound::Included(last) => *last + 1,
            Bound::Excluded(end) => *end,
            Bound::Unbounded => self.len,
        };
        assert!(begin <= end && end <= self.len, "bytes {begin} to {end} of {}", self.len);
        Self { address: self.address + begin as CUdeviceptr, len: end - begin }
    }

    /// Sets all bytes to `value`.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// The bytes are memory of the GPU, and nothing else uses them, until `stream` has come to the end of this work.
    pub unsafe fn set_8_async(&self, value: u8, stream: &Stream) -> CudaResult<()> {
        // SAFETY: the `len` bytes are as `# Safety` says.
        self.unless_empty(|| unsafe { sys::cuMemsetD8Async(self.address, value, self.len, stream.as_raw()) })
    }

    /// Sets all words of 4 bytes to `value`.
    ///
    /// # Errors
    /// The driver's, if the address is no multiple of 4.
    ///
    /// # Panics
    /// If the number of bytes is no multiple of 4.
    ///
    /// # Safety
    /// That of [`set_8_async`](Self::set_8_async).
    pub unsafe fn set_32_async(&self, value: u32, stream: &Stream) -> CudaResult<()> {
        assert!(self.len.is_multiple_of(4), "{} bytes are no words", self.len);
        // SAFETY: the `len / 4` words are as `# Safety` says.
        self.unless_empty(|| unsafe { sys::cuMemsetD32Async(self.address, value, self.len / 4, stream.as_raw()) })
    }

    /// Copies `from`, a range of the same length in the memory of the same GPU.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Panics
    /// If the lengths differ.
    ///
    /// # Safety
    /// Until `stream` has come to the end of this work: both ranges are memory of the GPU and do not overlap, nothing
    /// else uses this one, and nothing else writes `from`.
    pub unsafe fn async_copy_from(&self, from: Self, stream: &Stream) -> CudaResult<()> {
        self.check_len(from.len);
        let from = from.address;
        // SAFETY: the `len` bytes of both ranges are as `# Safety` says.
        self.unless_empty(|| unsafe { sys::cuMemcpyDtoDAsync_v2(self.address, from, self.len, stream.as_raw()) })
    }

    /// Copies `from`, a range of the same length in the memory of another GPU. The contexts of the two are `here` and
    /// `there`.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Panics
    /// If the lengths differ.
    ///
    /// # Safety
    /// Until `stream` has come to the end of this work: both contexts exist, each range is memory of its context's GPU,
    /// nothing else uses this one, and nothing else writes `from`.
    pub unsafe fn async_copy_from_peer(
        &self,
        here: ContextHandle,
        from: Self,
        there: ContextHandle,
        stream: &Stream,
    ) -> CudaResult<()> {
        self.check_len(from.len);
        let (to, from, stream) = (self.address, from.address, stream.as_raw());
        self.unless_empty(|| {
            // SAFETY: the contexts and the `len` bytes of both ranges are as `# Safety` says.
            unsafe { sys::cuMemcpyPeerAsync(to, here.as_raw(), from, there.as_raw(), self.len, stream) }
        })
    }

    /// Copies `from`, a slice of the same length in the host's memory.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Panics
    /// If the lengths differ.
    ///
    /// # Safety
    /// Until `stream` has come to the end of this work: the range is memory of the GPU that nothing else uses, and
    /// `from` is neither written nor freed.
    pub unsafe fn async_copy_from_host(&self, from: &[u8], stream: &Stream) -> CudaResult<()> {
        self.check_len(from.len());
        let from = from.as_ptr().cast();
        // SAFETY: the `len` bytes on both sides are as `# Safety` says.
        self.unless_empty(|| unsafe { sys::cuMemcpyHtoDAsync_v2(self.address, from, self.len, stream.as_raw()) })
    }

    /// Copies the range to `to`, a slice of the same length in the host's memory.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Panics
    /// If the lengths differ.
    ///
    /// # Safety
    /// Until `stream` has come to the end of this work: the range is memory of the GPU that nothing else writes, and
    /// `to` is neither used nor freed.
    pub unsafe fn async_copy_to_host(&self, to: &mut [u8], stream: &Stream) -> CudaResult<()> {
        self.check_len(to.len());
        let to = to.as_mut_ptr().cast();
        // SAFETY: the `len` bytes on both sides are as `# Safety` says.
        self.unless_empty(|| unsafe { sys::cuMemcpyDtoHAsync_v2(to, self.address, self.len, stream.as_raw()) })
    }

    fn check_len(&self, other: usize) {
        assert_eq!(self.len, other, "the two sides of a copy differ in length");
    }

    /// Makes a call of the driver if there are bytes. The driver refuses some calls for none.
    fn unless_empty(&self, call: impl FnOnce() -> CUresult) -> CudaResult<()> {
        if self.is_empty() { Ok(()) } else { call().to_result() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_where_its_indices_say() {
        let all = DeviceSlice::from_raw_parts(1000, 10);
        assert_eq!(all.index(..), all);
        assert_eq!(all.index(3..), DeviceSlice::from_raw_parts(1003, 7));
        assert_eq!(all.index(..=3), DeviceSlice::from_raw_parts(1000, 4));
        assert_eq!(all.index(2..4).index(1..2), DeviceSlice::from_raw_parts(1003, 1));
        assert!(all.index(10..).is_empty());
    }

    #[test]
    #[should_panic(expected = "bytes 3 to 11 of 10")]
    fn a_part_beyond_the_end_is_refused() {
        DeviceSlice::from_raw_parts(1000, 10).index(3..11);
    }
}
