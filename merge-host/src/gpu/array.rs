//! Arrays in a GPU's memory.

use super::failure::OrFailure;
use super::{Stream, zeroed};
use crate::Error;
use crate::engine::{check_length, check_offsets};
use bytemuck::{Pod, cast_slice, cast_slice_mut};
use cust::memory::DeviceBuffer;
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;

/// An array in a GPU's memory that belongs to one [`Stream`].
///
/// All work on the array is put on its stream and done in that order. The array keeps its stream and its GPU alive.
/// Dropping the array waits for the work on the stream and then frees the memory.
///
/// The elements are plain data, such as numbers. Their bytes are copied unchanged.
pub struct DeviceArray<T> {
    memory: ManuallyDrop<DeviceBuffer>,
    /// Whether another library owns the memory and frees it.
    is_borrowed: bool,
    len: usize,
    stream: Stream,
    elements: PhantomData<T>,
}

impl Stream {
    /// Makes an array of zeros. Does not wait until they are written.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`] if there is not enough memory, [`Error::Device`] where the driver fails.
    pub fn zeroed<T: Pod>(&self, len: usize) -> Result<DeviceArray<T>, Error> {
        let array = self.unspecified::<T>(len)?;
        let _entered = self.gpu().enter()?;
        // SAFETY: `memory` is the array's own allocation, and the array's drop waits for this stream before it frees
        // the memory.
        unsafe { array.memory.set_8_async(0, self.inner()) }.or_failure("cuMemsetD8Async")?;
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

    /// An array with unspecified contents, which the caller writes next.
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

    /// The address of the first element (a `CUdeviceptr`), for other libraries. It is valid while the array lives, and
    /// 0 if the array has no bytes. An array that this library has allocated begins at a multiple of 256.
    pub fn address(&self) -> u64 {
        self.memory.address()
    }

    /// Moves the array to another stream of the same GPU. Later work of that stream waits for the work that is on the
    /// array's stream now. Does not wait on the host.
    ///
    /// # Errors
    /// [`Error::OtherGpu`] if `stream` is of another GPU, [`Error::Device`] where the driver fails. After an error the
    /// array stays on its stream.
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
    /// An array of another library, given by the address of its first element and its length. The address of an empty
    /// array may be 0.
    ///
    /// Dropping the result frees no memory and waits for nothing.
    ///
    /// | library | address |
    /// | --- | --- |
    /// | cudarc | `slice.device_ptr(&stream).0` |
    /// | PyTorch | `tensor.data_ptr()`; the tensor is contiguous |
    /// | CuPy | `array.data.ptr` |
    /// | RAPIDS | `column.head()` (C++) |
    ///
    /// # Errors
    /// [`Error::BadAddress`] if there are elements and the address is 0 or not aligned for `T`.
    ///
    /// # Safety
    /// - **Memory**: the GPU of `stream` can access it, it holds `len` elements, and it is freed only after `stream`
    ///   has completed the work on the array. PyTorch reuses a tensor's memory for later work on the tensor's stream:
    ///   call `tensor.record_stream` for any other stream. All this also holds for a stream that the array is
    ///   [moved](Self::move_to) to.
    /// - **Accesses**: from a call that takes the array until `stream` has completed the work of that call, nothing
    ///   else writes the elements. If the call writes them, nothing else reads them either. Work that is put on the
    ///   same stream before the call or after its return is in order with it. Other work needs an event or a wait.
    /// - **Graphs**: if a call is captured, these conditions hold for each launch of the graph.
    pub unsafe fn from_address(stream: &Stream, address: u64, len: usize) -> Result<Self, Error> {
        if len > 0 && (address == 0 || !address.is_multiple_of(align_of::<T>() as u64)) {
            return Err(Error::BadAddress { what: "the array", address, align: align_of::<T>() });
        }
        let bytes = len.saturating_mul(size_of::<T>());
        // SAFETY: `len` elements, `bytes` bytes in all, are at `address`, as `# Safety` requires. The buffer is in a
        // `ManuallyDrop` that `drop` skips if `is_borrowed`, so it frees nothing.
        let memory = unsafe { DeviceBuffer::from_raw_parts(address, bytes) };
        let memory = ManuallyDrop::new(memory);
        Ok(Self { memory, is_borrowed: true, len, stream: stream.clone(), elements: PhantomData })
    }

    /// Copies `from`, an array of the same stream and length, into this one. Does not wait for the copy. O(n).
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the lengths differ, [`Error::OtherStream`] or [`Error::OtherGpu`] if `from` is of
    /// another stream, [`Error::Device`] where the driver fails.
    pub fn copy_from(&mut self, from: &Self) -> Result<(), Error> {
        check_length("from", self.len, from.len, "the length of the array")?;
        self.stream.check_owns("from", &from.stream)?;
        let _entered = self.stream.gpu().enter()?;
        // SAFETY: `check_length` and `check_owns` have checked that both arrays have one length and one stream. An
        // array's memory is freed after the work on its stream.
        unsafe { self.memory.async_copy_from(**from.memory, self.stream.inner()) }.or_failure("cuMemcpyDtoDAsync")
    }

    /// Copies `from`, a slice of the same length, into the array. Waits for the work on the stream, and for the copy.
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

    /// [`download`](Self::download) into a slice of the same length.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the lengths differ, [`Error::Device`] where the driver or the work fails.
    pub fn download_to(&self, to: &mut [T]) -> Result<(), Error> {
        check_length("the slice", self.len, to.len(), "the length of the array")?;
        let _entered = self.stream.gpu().enter()?;
        self.stream.synchronize()?;
        self.stream.gpu().copy_from_gpu(&self.memory, cast_slice_mut(to))
    }

    /// Copies `from`, a slice of the same length. No work uses the array meanwhile.
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
        // All work on the array is on its stream. If that work is not known to have ended, for instance in a capture,
        // the memory is not freed.
        if freed.is_ok() && (self.memory.is_empty() || self.stream.synchronize().is_ok()) {
            // SAFETY: `drop` runs once and this is its only call. The memory is not used afterwards: it has no bytes,
            // or the work that uses it has ended.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

/// Offsets in a GPU's memory: of the runs of an array or of a ragged batch, of groups of runs, or of segments. They
/// begin with 0 and never decrease. Only [`set`](Self::set) changes them: kernels index with them unchecked.
#[derive(Debug)]
pub struct DeviceOffsets {
    offsets: DeviceArray<u64>,
    end: usize,
    longest: usize,
    /// Whether only the GPU knows where the last run ends.
    ends_early: bool,
}

impl DeviceOffsets {
    /// Checks offsets and uploads them. Waits for the copy. O(n).
    ///
    /// # Errors
    /// [`Error::NoOffsets`] if there are no offsets, [`Error::FirstOffset`] if the first is not 0,
    /// [`Error::DescendingOffsets`] if an offset is less than its predecessor, and the errors of [`Stream::upload`].
    pub fn new(stream: &Stream, offsets: &[usize]) -> Result<Self, Error> {
        let end = *offsets.last().ok_or(Error::NoOffsets)?;
        check_offsets("the array", offsets, end)?;
        let longest = offsets.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
        Ok(Self { offsets: stream.upload::<u64>(cast_slice(offsets))?, end, longest, ends_early: false })
    }

    /// Offsets of `runs` empty runs of an array of `end` keys. [`set`](Self::set) computes the offsets of runs whose
    /// lengths only the GPU knows.
    ///
    /// # Errors
    /// The errors of [`Stream::zeroed`].
    pub fn empty(stream: &Stream, runs: usize, end: usize) -> Result<Self, Error> {
        Ok(Self { offsets: stream.zeroed(runs.saturating_add(1))?, end, longest: end, ends_early: true })
    }

    /// Offsets that are in a GPU's memory already and end with at most `end`, the number of keys. No two neighbours
    /// differ by more than `longest`, which may be `usize::MAX`. A small `longest` leaves out launches that only long
    /// runs need.
    ///
    /// A caller may know only upper bounds for the numbers of keys and of runs, for instance when a graph is captured.
    /// It then sets the offsets of the unused runs to the end of the others, so that these runs are empty. Keys behind
    /// the last offset are in no run: they are unspecified after a sort, and so are the keys of a result at the same
    /// indices.
    ///
    /// # Errors
    /// [`Error::NoOffsets`] if there are no offsets, [`Error::LastOffset`] if there is a single offset, which is 0, and
    /// `end` is not 0.
    ///
    /// # Safety
    /// Whenever the GPU reads the offsets, they begin with 0, never decrease, end with at most `end`, and no two
    /// neighbours differ by more than `longest`. They end with `end` for merges of pairs of runs
    /// ([`Stream::merge_ragged`] and [`Stream::merge_ragged_by`]), and as offsets of groups of runs.
    pub unsafe fn from_array(offsets: DeviceArray<u64>, end: usize, longest: usize) -> Result<Self, Error> {
        if offsets.is_empty() {
            return Err(Error::NoOffsets);
        }
        if offsets.len() == 1 && end > 0 {
            return Err(Error::LastOffset { what: "the array", found: 0, expected: end });
        }
        Ok(Self { offsets, end, longest: longest.min(end), ends_early: false })
    }

    /// The number of offsets: one more than the number of runs, groups or segments.
    #[allow(clippy::len_without_is_empty, reason = "there is always an offset")]
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// The last offset: the number of keys in all runs, or of runs in all groups. At most that, if the offsets are not
    /// from [`new`](Self::new).
    pub fn end(&self) -> usize {
        self.end
    }

    /// An upper bound for the keys of a run or segment, or for the runs of a group. It is exact for offsets from
    /// [`new`](Self::new).
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Moves the offsets to another stream, as [`DeviceArray::move_to`] does.
    ///
    /// # Errors
    /// The errors of [`DeviceArray::move_to`].
    pub fn move_to(&mut self, stream: &Stream) -> Result<(), Error> {
        self.offsets.move_to(stream)
    }

    pub(super) fn array(&self) -> &DeviceArray<u64> {
        &self.offsets
    }

    /// Whether only the GPU knows where the last run ends.
    pub(super) fn ends_early(&self) -> bool {
        self.ends_early
    }

    pub(super) fn array_mut(&mut self) -> &mut DeviceArray<u64> {
        &mut self.offsets
    }
}
