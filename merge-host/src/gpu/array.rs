//! Arrays in a GPU's memory.

use super::failure::OrFailure;
use super::{RawArray, Stream, zeroed};
use crate::Error;
use crate::engine::{check_last_group, check_length, check_offsets};
use bytemuck::{Pod, cast_slice};
use cust::memory::{AsyncCopyDestination, DeviceBuffer};
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

/// An array in a GPU's memory, which belongs to one [`Stream`].
///
/// All work on the array is put on its stream and done in that order. The array keeps its stream and its GPU. When it
/// is dropped, its memory is freed after the work on the stream, which the drop waits for.
///
/// The elements are plain data, such as numbers. Their bytes are copied as they are.
pub struct DeviceArray<T> {
    memory: ManuallyDrop<DeviceBuffer<u8>>,
    len: usize,
    stream: Stream,
    elements: PhantomData<T>,
}

impl Stream {
    /// Makes an array of zeros. Does not wait for them to be written.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`] if there is not enough memory, [`Error::Device`] where the driver fails.
    pub fn zeroed<T: Pod>(&self, len: usize) -> Result<DeviceArray<T>, Error> {
        let array = self.unspecified::<T>(len)?;
        if !array.memory.is_empty() {
            let _entered = self.gpu().enter()?;
            // SAFETY: the memory is that of the array, which is freed after the work on its stream.
            unsafe { array.memory.index(..).set_8_async(0, self.inner()) }.or_failure("cuMemsetD8Async")?;
        }
        Ok(array)
    }

    /// Makes an array and copies `from` into it. Waits for the copy. O(n).
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`] if there is not enough memory, [`Error::Device`] where the driver fails.
    pub fn upload<T: Pod>(&self, from: &[T]) -> Result<DeviceArray<T>, Error> {
        let mut array = self.unspecified(from.len())?;
        array.copy_from_host(from)?;
        Ok(array)
    }

    /// Checks offsets and uploads them, for [`merge_many`](Self::merge_many),
    /// [`merge_many_ragged`](Self::merge_many_ragged), [`merge_ragged`](Self::merge_ragged) and
    /// [`sort_segments`](Self::sort_segments). Waits for the copy. O(n).
    ///
    /// # Errors
    /// [`Error::NoOffsets`] if there are none, [`Error::FirstOffset`] if the first is not 0,
    /// [`Error::DescendingOffsets`] if one is less than the one before it, and those of [`upload`](Self::upload).
    pub fn upload_offsets(&self, offsets: &[usize]) -> Result<DeviceOffsets, Error> {
        let end = *offsets.last().ok_or(Error::NoOffsets)?;
        check_offsets("the array", offsets, end)?;
        let longest = offsets.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
        Ok(DeviceOffsets { offsets: self.upload::<u64>(cast_slice(offsets))?, end, longest })
    }

    /// Copies `from` to `to`, which has as many elements. Does not wait for the copy.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the lengths differ, [`Error::OtherStream`] or [`Error::OtherGpu`] if an array does
    /// not belong to this stream, [`Error::Device`] where the driver fails.
    pub fn copy<T: Pod>(&self, from: &DeviceArray<T>, to: &mut DeviceArray<T>) -> Result<(), Error> {
        check_length("to", from.len, to.len, "|from|")?;
        self.owned("from", from)?;
        self.owned("to", to)?;
        let _entered = self.gpu().enter()?;
        // SAFETY: both arrays are freed after the work on their stream, which is this one.
        unsafe { from.memory.async_copy_to(&mut **to.memory, self.inner()) }.or_failure("cuMemcpyDtoDAsync")
    }

    /// An array of whatever is in the memory, which is written next.
    pub(super) fn unspecified<T: Pod>(&self, len: usize) -> Result<DeviceArray<T>, Error> {
        let _entered = self.gpu().enter()?;
        let bytes = len.checked_mul(size_of::<T>());
        let memory = match bytes {
            Some(bytes) => self.gpu().buffer(bytes)?,
            None => return Err(Error::OutOfDeviceMemory { needed: u64::MAX, free: self.gpu().memory()?.0 }),
        };
        Ok(DeviceArray { memory: ManuallyDrop::new(memory), len, stream: self.clone(), elements: PhantomData })
    }

    /// Where the argument `what` is, if it belongs to this stream.
    pub(super) fn owned<T>(&self, what: &'static str, array: &DeviceArray<T>) -> Result<RawArray<T>, Error> {
        if array.stream.is(self) {
            return Ok(array.raw());
        }
        array.check_gpu(what, self)?;
        Err(Error::OtherStream { what })
    }
}

impl<T> DeviceArray<T> {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The stream that the array belongs to.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The address and the length, for the [raw layer](crate::Gpu#the-raw-layer) and for other libraries. The address,
    /// a multiple of 256, is valid as long as the array lives, and 0 if the array has no bytes.
    pub fn raw(&self) -> RawArray<T> {
        RawArray::new(self.memory.as_device_ptr().as_raw(), self.len)
    }

    /// Moves the array to another stream of the same GPU. Later work of that stream waits for what is on the array's
    /// stream now. Does not wait on the host.
    ///
    /// # Errors
    /// [`Error::OtherGpu`] if `stream` is of another GPU, [`Error::Device`] where the driver fails. The array stays
    /// where it is then.
    pub fn move_to(&mut self, stream: &Stream) -> Result<(), Error> {
        self.check_gpu("the array", stream)?;
        if !self.stream.is(stream) {
            stream.wait_for(&self.stream)?;
            self.stream = stream.clone();
        }
        Ok(())
    }

    /// An error that names the array `what` if `stream` is of another GPU.
    fn check_gpu(&self, what: &'static str, stream: &Stream) -> Result<(), Error> {
        let (found, expected) = (self.stream.gpu().ordinal(), stream.gpu().ordinal());
        if found == expected { Ok(()) } else { Err(Error::OtherGpu { what, found, expected }) }
    }
}

impl<T: Pod> DeviceArray<T> {
    /// Copies `from` into the array, which has as many elements. Waits for the work on the stream, and for the copy.
    /// O(n).
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the lengths differ, [`Error::Device`] where the driver fails.
    pub fn upload(&mut self, from: &[T]) -> Result<(), Error> {
        check_length("the slice", self.len, from.len(), "the length of the array")?;
        self.stream.synchronize()?;
        self.copy_from_host(from)
    }

    /// Copies the array into host memory, after the work on the stream. Waits for both. O(n).
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`] if there is not enough memory, [`Error::Device`] where the driver or the work fails.
    pub fn download(&self) -> Result<Vec<T>, Error> {
        let mut to = zeroed(self.len)?;
        self.download_to(&mut to)?;
        Ok(to.into_vec())
    }

    /// [`download`](Self::download) into a slice of as many elements.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the lengths differ, [`Error::Device`] where the driver or the work fails.
    pub fn download_to(&self, to: &mut [T]) -> Result<(), Error> {
        check_length("the slice", self.len, to.len(), "the length of the array")?;
        let _entered = self.stream.gpu().enter()?;
        self.stream.synchronize()?;
        self.stream.gpu().copy_from_gpu(&self.memory, to)
    }

    /// Copies the first `count` elements, of which there are as many, into host memory, after the work on the stream.
    pub(super) fn first(&self, count: usize) -> Result<Vec<T>, Error> {
        let mut to = zeroed(count)?;
        let _entered = self.stream.gpu().enter()?;
        self.stream.synchronize()?;
        self.stream.gpu().copy_from_gpu(&self.memory.index(..count * size_of::<T>()), &mut to)?;
        Ok(to.into_vec())
    }

    /// Copies `from`, of as many elements, while no work uses the array.
    fn copy_from_host(&mut self, from: &[T]) -> Result<(), Error> {
        let _entered = self.stream.gpu().enter()?;
        self.stream.gpu().copy_to_gpu(cast_slice(from), &self.memory)
    }
}

impl<T> fmt::Debug for DeviceArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceArray").field("array", &self.raw()).field("stream", &self.stream).finish()
    }
}

impl<T> Drop for DeviceArray<T> {
    fn drop(&mut self) {
        let freed = self.stream.gpu().enter();
        // All work on the array is on its stream. Where it is not known to have ended, for instance in a capture, the
        // memory is not freed.
        if freed.is_ok() && (self.memory.is_empty() || self.stream.synchronize().is_ok()) {
            // SAFETY: this is the only call, and the memory is not used afterwards: the work that uses it has ended.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

/// The offsets of the runs of an array or of a ragged batch, of groups of runs, or of segments, in a GPU's memory. They
/// have been checked: they begin with 0 and never decrease.
///
/// [`Stream::upload_offsets`] makes them. They do not change, because the GPU reads them without checks.
#[derive(Debug)]
pub struct DeviceOffsets {
    offsets: DeviceArray<u64>,
    end: usize,
    longest: usize,
}

impl DeviceOffsets {
    /// The number of offsets, which is one more than that of the runs, groups or segments.
    #[allow(clippy::len_without_is_empty, reason = "there is always an offset")]
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// The last offset: the number of keys in all runs, or of runs in all groups.
    pub fn end(&self) -> usize {
        self.end
    }

    /// The number of keys of the longest run or segment, or of runs of the group that has most.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// [`DeviceArray::move_to`].
    ///
    /// # Errors
    /// Those of [`DeviceArray::move_to`].
    pub fn move_to(&mut self, stream: &Stream) -> Result<(), Error> {
        self.offsets.move_to(stream)
    }

    /// Where the offsets are, if they belong to `stream` and are those of `keys` keys, which are the argument `what`.
    pub(super) fn checked(
        &self,
        stream: &Stream,
        (offsets, what): (&'static str, &'static str),
        keys: usize,
    ) -> Result<RawArray<u64>, Error> {
        if self.end != keys {
            return Err(Error::LastOffset { what, found: self.end, expected: keys });
        }
        stream.owned(offsets, &self.offsets)
    }

    /// Where the offsets are, if they belong to `stream` and are those of groups of `runs` runs.
    pub(super) fn checked_groups(&self, stream: &Stream, runs: usize) -> Result<RawArray<u64>, Error> {
        check_last_group(self.end, runs)?;
        stream.owned("groups", &self.offsets)
    }
}
