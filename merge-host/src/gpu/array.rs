//! Arrays in a GPU's memory.

use super::failure::OrFailure;
use super::{Stream, zeroed};
use crate::Error;
use crate::engine::{check_length, check_offsets};
use bytemuck::{Pod, cast_slice};
use cust::memory::{AsyncCopyDestination, DeviceBuffer, DevicePointer};
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
    /// Whether the memory is another library's, which frees it.
    is_borrowed: bool,
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

    /// An array of whatever is in the memory, which is written next.
    pub(super) fn unspecified<T: Pod>(&self, len: usize) -> Result<DeviceArray<T>, Error> {
        let _entered = self.gpu().enter()?;
        let bytes = len.checked_mul(size_of::<T>());
        let memory = match bytes {
            Some(bytes) => self.gpu().buffer(bytes)?,
            None => return Err(Error::OutOfDeviceMemory { needed: u64::MAX, free: self.gpu().memory()?.0 }),
        };
        Ok(DeviceArray {
            memory: ManuallyDrop::new(memory),
            is_borrowed: false,
            len,
            stream: self.clone(),
            elements: PhantomData,
        })
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

    /// The address of the first element (a `CUdeviceptr`), for other libraries. It is valid as long as the array lives,
    /// and 0 if the array has no bytes. An array that this library has allocated begins at a multiple of 256.
    pub fn address(&self) -> u64 {
        self.memory.as_device_ptr().as_raw()
    }

    /// Moves the array to another stream of the same GPU. Later work of that stream waits for what is on the array's
    /// stream now. Does not wait on the host.
    ///
    /// # Errors
    /// [`Error::OtherGpu`] if `stream` is of another GPU, [`Error::Device`] where the driver fails. The array stays
    /// where it is then.
    pub fn move_to(&mut self, stream: &Stream) -> Result<(), Error> {
        self.stream.check_gpu("the array", stream)?;
        if !self.stream.is(stream) {
            stream.wait_for(&self.stream)?;
            self.stream = stream.clone();
        }
        Ok(())
    }
}

impl<T: Pod> DeviceArray<T> {
    /// An array of another library, by the address of its first element and its number of elements. The address of an
    /// empty array may be 0.
    ///
    /// The memory is not freed when the result is dropped, and the drop waits for nothing.
    ///
    /// | library | address |
    /// | --- | --- |
    /// | cudarc | `slice.device_ptr(&stream).0` |
    /// | PyTorch | `tensor.data_ptr()`; the tensor is contiguous |
    /// | CuPy | `array.data.ptr` |
    /// | RAPIDS | `column.head()` (C++) |
    ///
    /// # Errors
    /// [`Error::BadAddress`] if there are elements and the address is 0 or not aligned to them.
    ///
    /// # Safety
    /// - **Memory**: the GPU of `stream` can access it, it holds `len` elements, and it is not freed before `stream` has
    ///   completed the work on the array. PyTorch gives the memory of a tensor to later work on the tensor's stream:
    ///   call `tensor.record_stream` for another one. All this holds for a stream that the array is [moved](Self::move_to)
    ///   to, too.
    /// - **Accesses**: from a call that takes the array until `stream` has completed the work of that call, nothing else
    ///   writes the elements, and nothing else reads them if the call writes them. Work that is put on the same stream
    ///   before the call or after its return is in order with it. Other work needs an event or a wait.
    /// - **Graphs**: of a call that is captured, all of this holds for each launch of the graph.
    pub unsafe fn from_address(stream: &Stream, address: u64, len: usize) -> Result<Self, Error> {
        if len > 0 && (address == 0 || !address.is_multiple_of(align_of::<T>() as u64)) {
            return Err(Error::BadAddress { what: "the array", address, align: align_of::<T>() });
        }
        let bytes = len.saturating_mul(size_of::<T>());
        // SAFETY: the caller has `len` elements at `address`. The buffer is never dropped, so it frees nothing.
        let memory = unsafe { DeviceBuffer::from_raw_parts(DevicePointer::from_raw(address), bytes) };
        let memory = ManuallyDrop::new(memory);
        Ok(Self { memory, is_borrowed: true, len, stream: stream.clone(), elements: PhantomData })
    }

    /// Copies `from`, an array of the same stream with as many elements, into this one. Does not wait for the copy.
    /// O(n).
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the lengths differ, [`Error::OtherStream`] or [`Error::OtherGpu`] if `from` is of
    /// another stream, [`Error::Device`] where the driver fails.
    pub fn copy_from(&mut self, from: &Self) -> Result<(), Error> {
        check_length("from", self.len, from.len, "the length of the array")?;
        self.stream.check_owns("from", &from.stream)?;
        let _entered = self.stream.gpu().enter()?;
        // SAFETY: both arrays are freed after the work on their stream, which is the same.
        unsafe { from.memory.async_copy_to(&mut **self.memory, self.stream.inner()) }.or_failure("cuMemcpyDtoDAsync")
    }

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

    /// Copies `from`, of as many elements, while no work uses the array.
    fn copy_from_host(&mut self, from: &[T]) -> Result<(), Error> {
        let _entered = self.stream.gpu().enter()?;
        self.stream.gpu().copy_to_gpu(cast_slice(from), &self.memory)
    }
}

impl<T> fmt::Debug for DeviceArray<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceArray")
            .field("address", &format_args!("{:#x}", self.address()))
            .field("len", &self.len)
            .field("stream", &self.stream)
            .finish()
    }
}

impl<T> Drop for DeviceArray<T> {
    fn drop(&mut self) {
        if self.is_borrowed {
            return;
        }
        let freed = self.stream.gpu().enter();
        // All work on the array is on its stream. Where it is not known to have ended, for instance in a capture, the
        // memory is not freed.
        if freed.is_ok() && (self.memory.is_empty() || self.stream.synchronize().is_ok()) {
            // SAFETY: this is the only call, and the memory is not used afterwards: the work that uses it has ended.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

/// Offsets in a GPU's memory: of the runs of an array or of a ragged batch, of groups of runs, or of segments. They
/// begin with 0 and never decrease. The GPU reads them without checks, so they do not change.
#[derive(Debug)]
pub struct DeviceOffsets {
    offsets: DeviceArray<u64>,
    end: usize,
    longest: usize,
}

impl DeviceOffsets {
    /// Checks offsets and uploads them. Waits for the copy. O(n).
    ///
    /// # Errors
    /// [`Error::NoOffsets`] if there are none, [`Error::FirstOffset`] if the first is not 0,
    /// [`Error::DescendingOffsets`] if one is less than the one before it, and those of [`Stream::upload`].
    pub fn new(stream: &Stream, offsets: &[usize]) -> Result<Self, Error> {
        let end = *offsets.last().ok_or(Error::NoOffsets)?;
        check_offsets("the array", offsets, end)?;
        let longest = offsets.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
        Ok(Self { offsets: stream.upload::<u64>(cast_slice(offsets))?, end, longest })
    }

    /// Offsets that are in a GPU's memory already, of which the last is `end`. No two neighbours differ by more than
    /// `longest`, which may be `usize::MAX`: where it is small, launches that only long runs need are left out.
    ///
    /// A caller that knows only how many runs there are at most, for instance when a graph is captured, has further
    /// ones begin and end with the last key.
    ///
    /// # Errors
    /// [`Error::NoOffsets`] if there are none, [`Error::LastOffset`] if there is one only, which is 0, and `end` is
    /// not.
    ///
    /// # Safety
    /// Whenever the GPU reads the offsets, they begin with 0, never decrease, end with `end`, and no two neighbours
    /// differ by more than `longest`.
    pub unsafe fn from_array(offsets: DeviceArray<u64>, end: usize, longest: usize) -> Result<Self, Error> {
        if offsets.is_empty() {
            return Err(Error::NoOffsets);
        }
        if offsets.len() == 1 && end > 0 {
            return Err(Error::LastOffset { what: "the array", found: 0, expected: end });
        }
        Ok(Self { offsets, end, longest: longest.min(end) })
    }

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

    /// Moves the offsets to another stream, as [`DeviceArray::move_to`] does.
    ///
    /// # Errors
    /// Those of [`DeviceArray::move_to`].
    pub fn move_to(&mut self, stream: &Stream) -> Result<(), Error> {
        self.offsets.move_to(stream)
    }

    pub(super) fn array(&self) -> &DeviceArray<u64> {
        &self.offsets
    }
}
