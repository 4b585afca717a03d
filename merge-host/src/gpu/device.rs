//! One GPU, and work on data that is in its memory.

use super::failure::{OrFailure, initialise};
use super::kernels::Kernels;
use super::launch::sort::{self, SortPlan};
use super::launch::{Arrays, align, batch, entries, merge};
use super::side::SideStreams;
use super::staging::Staging;
use super::{Address, zeroed};
use crate::index::check_index_range;
use crate::{BatchKernel, Error, GpuKey as Key, Index, MergeKernel, SortKernel, SortOrder};
use cust::context::{Context, CurrentContext};
use cust::device::{Device, DeviceAttribute};
use cust::error::CudaError;
use cust::memory::{DeviceBuffer, DeviceCopy, DeviceSlice};
use cust::stream::{Stream, StreamFlags};
use std::fmt;

/// One GPU, for data that is in its memory.
///
/// Arrays are `cust` device slices, work is put on a `cust` stream, and workspace is the caller's: no function here
/// waits for the GPU or allocates, except those that say so. Results are there when the stream has come so far; the
/// caller keeps arrays and workspace unchanged until then, and keeps arrays that are written apart from all others. A call
/// can be captured in a CUDA graph and replayed, once its kernels are loaded ([`prepare`](Self::prepare)).
/// Sorts of many keys put some of their work on a second stream, which waits for the caller's and is waited for by it: on the caller's
/// stream, and in a graph, that is one piece of work like any other.
///
/// ```no_run
/// use merge_host::Gpu;
///
/// let gpu = Gpu::new(0)?;
/// let stream = gpu.stream()?;
/// let mut keys = gpu.upload(&[3.5f32, -1.0, 2.0])?;
/// let mut workspace = gpu.buffer(Gpu::sort_workspace_bytes::<f32>(keys.len()))?;
/// gpu.sort(&mut keys, &mut workspace, &stream)?;
/// stream.synchronize().expect("the sort ends");
/// assert_eq!(gpu.download(&keys)?, [-1.0, 2.0, 3.5]);
/// # Ok::<(), merge_host::Error>(())
/// ```
pub struct Gpu {
    // Dropped first: modules are unloaded, and buffers freed, while their context still exists.
    pub(super) kernels: Kernels,
    pub(super) staging: Staging,
    pub(super) sides: SideStreams,
    pub(super) multiprocessors: usize,
    ordinal: usize,
    context: Context,
}

impl Gpu {
    /// The GPU of that ordinal, counted from 0.
    ///
    /// # Errors
    /// [`Error::NoDevice`] where there is no driver or no GPU, [`Error::DeviceOrdinal`] where there are not that many,
    /// and [`Error::Device`] where the driver fails.
    pub fn new(ordinal: usize) -> Result<Self, Error> {
        initialise()?;
        let count = Device::num_devices().or_failure("cuDeviceGetCount")? as usize;
        if count == 0 {
            return Err(Error::NoDevice { reason: "the driver shows none".to_owned() });
        }
        if ordinal >= count {
            return Err(Error::DeviceOrdinal { ordinal, count });
        }
        let device = Device::get_device(ordinal as u32).or_failure("cuDeviceGet")?;
        let context = Context::new(device).or_failure("cuDevicePrimaryCtxRetain")?;
        let multiprocessors =
            device.get_attribute(DeviceAttribute::MultiprocessorCount).or_failure("cuDeviceGetAttribute")? as usize;
        Ok(Self {
            kernels: Kernels::default(),
            staging: Staging::default(),
            sides: SideStreams::default(),
            multiprocessors,
            ordinal,
            context,
        })
    }

    /// The number of this GPU among those of the machine, counted from 0.
    pub fn ordinal(&self) -> usize {
        self.ordinal
    }

    /// Makes the GPU's context the calling thread's current one, as functions of `cust` need it. The functions here do
    /// that by themselves.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub fn make_current(&self) -> Result<(), Error> {
        CurrentContext::set_current(&self.context).or_failure("cuCtxSetCurrent")
    }

    /// A new stream, which does not wait for the default stream.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub fn stream(&self) -> Result<Stream, Error> {
        self.make_current()?;
        Stream::new(StreamFlags::NON_BLOCKING, None).or_failure("cuStreamCreateWithPriority")
    }

    /// Loads all kernels for keys of type `K`, alone or with values, of arrays of any size. The driver compiles them now, so
    /// that later calls only launch. Without this a kernel is loaded by the first call that needs it, which must not happen
    /// while a stream is captured.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub fn prepare<K: Key>(&self) -> Result<(), Error> {
        self.load(&entries::<K>())
    }

    /// Bytes of the GPU's memory: free, and in all.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub fn memory(&self) -> Result<(u64, u64), Error> {
        self.make_current()?;
        let (free, total) = cust::memory::mem_get_info().or_failure("cuMemGetInfo")?;
        Ok((free as u64, total as u64))
    }

    /// Allocates an array of `len` elements, of unspecified values.
    ///
    /// # Errors
    /// [`Error::OutOfDeviceMemory`] where there is not enough memory, [`Error::Device`] where the driver fails.
    pub fn buffer<T: DeviceCopy + bytemuck::Pod>(&self, len: usize) -> Result<DeviceBuffer<T>, Error> {
        self.make_current()?;
        // SAFETY: every bit pattern is a value of a `Pod` type.
        match unsafe { DeviceBuffer::uninitialized(len) } {
            // The second is what `cust` makes of more bytes than 64 bits count.
            Err(CudaError::OutOfMemory | CudaError::InvalidMemoryAllocation) => {
                let needed = len.saturating_mul(size_of::<T>()) as u64;
                Err(Error::OutOfDeviceMemory { needed, free: self.memory()?.0 })
            }
            other => other.or_failure("cuMemAlloc"),
        }
    }

    /// Allocates an array and copies `from` into it. Waits until the copy has arrived, so that work on any stream may use it.
    ///
    /// # Errors
    /// As for [`buffer`](Self::buffer).
    pub fn upload<T: DeviceCopy + bytemuck::Pod>(&self, from: &[T]) -> Result<DeviceBuffer<T>, Error> {
        let to = self.buffer(from.len())?;
        self.copy_to_gpu(bytemuck::cast_slice(from), &to)?;
        Ok(to)
    }

    /// Copies an array into host memory. Waits for the copy, but not for other streams.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails, [`Error::OutOfHostMemory`] where there is not enough memory.
    pub fn download<T: DeviceCopy + bytemuck::Pod>(&self, from: &DeviceSlice<T>) -> Result<Vec<T>, Error> {
        let mut to = zeroed(from.len())?;
        self.copy_from_gpu(from, &mut to)?;
        Ok(to.into_vec())
    }

    /// Bytes of workspace for a sort of `n` keys by any kernel: the keys once more, and splits or counters (at most 1 %, or 24 KiB where that
    /// is more). `usize::MAX` if there are more keys than any GPU has memory for.
    pub fn sort_workspace_bytes<K: Key>(n: usize) -> usize {
        SortPlan::of::<K>(n, 0, false).workspace_bytes::<K>(n)
    }

    /// Bytes of workspace for a sort of `n` keys with values of type `V` by any kernel: both once more, and splits or counters.
    /// `usize::MAX` as for [`sort_workspace_bytes`](Self::sort_workspace_bytes).
    pub fn sort_pairs_workspace_bytes<K: Key, V>(n: usize) -> usize {
        SortPlan::of::<K>(n, const { value_bytes::<V>() }, false).workspace_bytes::<K>(n)
    }

    /// Bytes of workspace for an argsort of `n` keys with indices of type `I`: both once more, and splits or counters. `usize::MAX` as for
    /// [`sort_workspace_bytes`](Self::sort_workspace_bytes).
    pub fn argsort_workspace_bytes<K: Key, I: Index>(n: usize) -> usize {
        SortPlan::of::<K>(n, size_of::<I>(), true).workspace_bytes::<K>(n)
    }

    /// Bytes of workspace for a merge into `total` keys: splits, 8 bytes for each tile of some thousand keys, and none where
    /// one launch does it all.
    pub const fn merge_workspace_bytes<K: Key>(kernel: MergeKernel, total: usize) -> usize {
        merge::workspace_bytes::<K>(kernel, total)
    }

    /// Bytes of workspace for a merge into `total` keys with values: splits, 8 bytes for each tile of
    /// some thousand keys.
    pub const fn merge_pairs_workspace_bytes<K: Key>(total: usize) -> usize {
        merge::pairs_workspace_bytes::<K>(total)
    }

    /// Bytes of workspace for a ragged batch into `total` keys, with values or without: splits, 16 bytes for each
    /// tile of some thousand keys.
    pub const fn merge_ragged_workspace_bytes<K: Key>(total: usize) -> usize {
        batch::ragged_workspace_bytes::<K>(total)
    }

    /// Sorts `keys`, ascending in total order, as [`sort_with`](Self::sort_with) does.
    ///
    /// # Errors
    /// Those of [`sort_with`](Self::sort_with).
    pub fn sort<K: Key + DeviceCopy>(
        &self,
        keys: &mut DeviceSlice<K>,
        workspace: &mut DeviceSlice<u8>,
        stream: &Stream,
    ) -> Result<(), Error> {
        self.sort_with(SortOrder::Ascending, keys, workspace, stream)
    }

    /// Sorts `keys` in the total order of their type, or descending. O(n log n).
    ///
    /// # Errors
    /// [`Error::WorkspaceTooSmall`] if `workspace` has fewer than [`sort_workspace_bytes`](Self::sort_workspace_bytes),
    /// [`Error::Device`] where the driver fails.
    pub fn sort_with<K: Key + DeviceCopy>(
        &self,
        order: SortOrder,
        keys: &mut DeviceSlice<K>,
        workspace: &mut DeviceSlice<u8>,
        stream: &Stream,
    ) -> Result<(), Error> {
        self.sort_with_kernel(SortKernel::Auto, order, keys, workspace, stream)
    }

    /// As [`sort_with`](Self::sort_with), with the kernel named.
    ///
    /// # Errors
    /// Those of [`sort_with`](Self::sort_with).
    pub fn sort_with_kernel<K: Key + DeviceCopy>(
        &self,
        kernel: SortKernel,
        order: SortOrder,
        keys: &mut DeviceSlice<K>,
        workspace: &mut DeviceSlice<u8>,
        stream: &Stream,
    ) -> Result<(), Error> {
        let workspace = workspace_at(Self::sort_workspace_bytes::<K>(keys.len()), workspace)?;
        // SAFETY: the slices are in the GPU's memory, of these lengths; the caller keeps them so.
        unsafe { sort::sort::<K>(&self.queue(stream)?, (kernel, order), keys_at(keys), false, workspace) }
    }

    /// Sorts `keys` with as many `values` of 4 or 8 bytes, which is checked at compile time, in the total order
    /// of the keys' type or descending. Stable: equal keys stay in their order. O(n log n).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if there are not as many values as keys, [`Error::WorkspaceTooSmall`] if `workspace` has
    /// fewer than [`sort_pairs_workspace_bytes`](Self::sort_pairs_workspace_bytes), [`Error::Device`] where the driver
    /// fails.
    pub fn sort_pairs<K: Key + DeviceCopy, V: DeviceCopy>(
        &self,
        order: SortOrder,
        keys: &mut DeviceSlice<K>,
        values: &mut DeviceSlice<V>,
        workspace: &mut DeviceSlice<u8>,
        stream: &Stream,
    ) -> Result<(), Error> {
        self.sort_pairs_with_kernel(SortKernel::Auto, order, keys, values, workspace, stream)
    }

    /// As [`sort_pairs`](Self::sort_pairs), with the kernel named.
    ///
    /// # Errors
    /// Those of [`sort_pairs`](Self::sort_pairs).
    pub fn sort_pairs_with_kernel<K: Key + DeviceCopy, V: DeviceCopy>(
        &self,
        kernel: SortKernel,
        order: SortOrder,
        keys: &mut DeviceSlice<K>,
        values: &mut DeviceSlice<V>,
        workspace: &mut DeviceSlice<u8>,
        stream: &Stream,
    ) -> Result<(), Error> {
        let at = pairs_at("keys", keys, values)?;
        let workspace = workspace_at(Self::sort_pairs_workspace_bytes::<K, V>(keys.len()), workspace)?;
        // SAFETY: the slices are in the GPU's memory, of these lengths; the caller keeps them so.
        unsafe { sort::sort::<K>(&self.queue(stream)?, (kernel, order), at, false, workspace) }
    }

    /// Sorts `keys` in the total order of their type or descending, and sets `indices` to where each was before. Stable: equal keys
    /// stay in their order. What is in `indices` before is not read. O(n log n).
    ///
    /// # Errors
    /// [`Error::ValuesMismatch`] if there are not as many indices as keys, [`Error::TooManyKeys`] if there are more than 2^32 and
    /// the indices are `u32`, [`Error::WorkspaceTooSmall`] if `workspace` has fewer than
    /// [`argsort_workspace_bytes`](Self::argsort_workspace_bytes), [`Error::Device`] where the driver fails.
    pub fn argsort<K: Key + DeviceCopy, I: Index + DeviceCopy>(
        &self,
        order: SortOrder,
        keys: &mut DeviceSlice<K>,
        indices: &mut DeviceSlice<I>,
        workspace: &mut DeviceSlice<u8>,
        stream: &Stream,
    ) -> Result<(), Error> {
        self.argsort_with_kernel(SortKernel::Auto, order, keys, indices, workspace, stream)
    }

    /// As [`argsort`](Self::argsort), with the kernel named.
    ///
    /// # Errors
    /// Those of [`argsort`](Self::argsort).
    pub fn argsort_with_kernel<K: Key + DeviceCopy, I: Index + DeviceCopy>(
        &self,
        kernel: SortKernel,
        order: SortOrder,
        keys: &mut DeviceSlice<K>,
        indices: &mut DeviceSlice<I>,
        workspace: &mut DeviceSlice<u8>,
        stream: &Stream,
    ) -> Result<(), Error> {
        let at = pairs_at("keys", keys, indices)?;
        check_index_range::<I>(keys.len())?;
        let workspace = workspace_at(Self::argsort_workspace_bytes::<K, I>(keys.len()), workspace)?;
        // SAFETY: the slices are in the GPU's memory, of these lengths; the caller keeps them so.
        unsafe { sort::sort::<K>(&self.queue(stream)?, (kernel, order), at, true, workspace) }
    }

    /// Merges `a` and `b`, both ascending, into `out`. Stable: of equal keys, `a`'s go first.
    ///
    /// `out` has `a.len() + b.len()` keys and overlaps neither. If `a` or `b` is not ascending, `out` gets keys of both in
    /// an unspecified order.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `out` has another length, [`Error::Overlap`] if it overlaps `a` or `b`,
    /// [`Error::WorkspaceTooSmall`] if `workspace` has fewer than
    /// [`merge_workspace_bytes`](Self::merge_workspace_bytes), [`Error::Device`] where the driver fails.
    pub fn merge<K: Key + DeviceCopy>(
        &self,
        kernel: MergeKernel,
        a: &DeviceSlice<K>,
        b: &DeviceSlice<K>,
        out: &mut DeviceSlice<K>,
        workspace: &mut DeviceSlice<u8>,
        stream: &Stream,
    ) -> Result<(), Error> {
        let total = a.len() + b.len();
        crate::engine::check_length("out", total, out.len(), "|a| + |b|")?;
        check_apart("out", out, [("a", a), ("b", b)])?;
        let workspace = workspace_at(Self::merge_workspace_bytes::<K>(kernel, total), workspace)?;
        let (a, b) = (keys_at(a), keys_at(b));
        // SAFETY: the slices are in the GPU's memory, of these lengths, and apart; the caller keeps them so.
        unsafe { merge::merge::<K>(&self.queue(stream)?, kernel, a, b, address(out), workspace) }
    }

    /// Merges keys with values: the pairs of `a` and of `b`, both ascending by key, into `out`. Stable: of pairs with equal
    /// keys, `a`'s go first.
    ///
    /// Each argument is keys and as many values; values have 4 or 8 bytes, which is checked at compile time. `out` has
    /// `|a| + |b|` pairs and overlaps neither.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `out` has another number of keys, [`Error::ValuesMismatch`] if an argument has not as many
    /// values as keys, [`Error::Overlap`] if `out` overlaps `a` or `b`, [`Error::WorkspaceTooSmall`] if `workspace` has fewer
    /// than [`merge_pairs_workspace_bytes`](Self::merge_pairs_workspace_bytes), [`Error::Device`] where the driver fails.
    pub fn merge_pairs<K: Key + DeviceCopy, V: DeviceCopy>(
        &self,
        a: (&DeviceSlice<K>, &DeviceSlice<V>),
        b: (&DeviceSlice<K>, &DeviceSlice<V>),
        out: (&mut DeviceSlice<K>, &mut DeviceSlice<V>),
        workspace: &mut DeviceSlice<u8>,
        stream: &Stream,
    ) -> Result<(), Error> {
        let total = a.0.len() + b.0.len();
        crate::engine::check_length("out", total, out.0.len(), "|a| + |b|")?;
        let [a, b, out] = check_pairs(a, b, out)?;
        let workspace = workspace_at(Self::merge_pairs_workspace_bytes::<K>(total), workspace)?;
        // SAFETY: the slices are in the GPU's memory, of these lengths, and apart; the caller keeps them so.
        unsafe { merge::merge_pairs::<K>(&self.queue(stream)?, a, b, out, workspace) }
    }

    /// Merges many pairs of short runs: run `p` of `a` with run `p` of `b` into run `p` of `out`. Lengths are as in
    /// [`Engine::merge_batch`](crate::Engine::merge_batch). Needs no workspace.
    ///
    /// # Errors
    /// Those of [`Engine::merge_batch`](crate::Engine::merge_batch), and [`Error::Overlap`] if `out` overlaps `a` or `b`.
    pub fn merge_batch<K: Key + DeviceCopy>(
        &self,
        a: &DeviceSlice<K>,
        b: &DeviceSlice<K>,
        out: &mut DeviceSlice<K>,
        d: usize,
        a_len: usize,
        stream: &Stream,
    ) -> Result<(), Error> {
        self.merge_batch_with(BatchKernel::Auto, a, b, out, d, a_len, stream)
    }

    /// As [`merge_batch`](Self::merge_batch), with the kernel named.
    ///
    /// # Errors
    /// Those of [`merge_batch`](Self::merge_batch).
    #[allow(clippy::too_many_arguments)]
    pub fn merge_batch_with<K: Key + DeviceCopy>(
        &self,
        kernel: BatchKernel,
        a: &DeviceSlice<K>,
        b: &DeviceSlice<K>,
        out: &mut DeviceSlice<K>,
        d: usize,
        a_len: usize,
        stream: &Stream,
    ) -> Result<(), Error> {
        let problems = crate::engine::check_batch(a.len(), b.len(), out.len(), d, a_len)?;
        check_apart("out", out, [("a", a), ("b", b)])?;
        let (at, lengths) = ([address(a), address(b), address(out)], batch::Lengths { problems, d, a_len });
        // SAFETY: the slices are in the GPU's memory, of these lengths, and apart; the caller keeps them so.
        unsafe { batch::merge_batch::<K>(&self.queue(stream)?, kernel, at, lengths) }
    }

    /// As [`merge_batch`](Self::merge_batch), with a value for each key, as in [`merge_pairs`](Self::merge_pairs).
    ///
    /// # Errors
    /// Those of [`merge_batch`](Self::merge_batch), and [`Error::ValuesMismatch`] if there are not as many values as keys.
    pub fn merge_batch_pairs<K: Key + DeviceCopy, V: DeviceCopy>(
        &self,
        a: (&DeviceSlice<K>, &DeviceSlice<V>),
        b: (&DeviceSlice<K>, &DeviceSlice<V>),
        out: (&mut DeviceSlice<K>, &mut DeviceSlice<V>),
        d: usize,
        a_len: usize,
        stream: &Stream,
    ) -> Result<(), Error> {
        let problems = crate::engine::check_batch(a.0.len(), b.0.len(), out.0.len(), d, a_len)?;
        let arrays = check_pairs(a, b, out)?;
        // SAFETY: the slices are in the GPU's memory, of these lengths, and apart; the caller keeps them so.
        unsafe { batch::merge_batch_pairs::<K>(&self.queue(stream)?, arrays, batch::Lengths { problems, d, a_len }) }
    }

    /// Merges many pairs of runs of any lengths. Pair `p` is the keys `a_offsets[p] .. a_offsets[p + 1]` of `a` and those
    /// of `b` accordingly; in `out` it begins at `a_offsets[p] + b_offsets[p]`.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `out` has another number of keys, [`Error::OffsetsMismatch`] if the two sides have
    /// different numbers of offsets, [`Error::NoOffsets`] if they have none, [`Error::Overlap`] if `out` overlaps `a` or `b`,
    /// [`Error::WorkspaceTooSmall`] if `workspace` has fewer than
    /// [`merge_ragged_workspace_bytes`](Self::merge_ragged_workspace_bytes), [`Error::Device`] where the driver fails.
    ///
    /// # Safety
    /// Offsets are read on the GPU and not checked: each array ascends from 0 to the length of its keys.
    pub unsafe fn merge_ragged<K: Key + DeviceCopy>(
        &self,
        a: (&DeviceSlice<K>, &DeviceSlice<u64>),
        b: (&DeviceSlice<K>, &DeviceSlice<u64>),
        out: &mut DeviceSlice<K>,
        workspace: &mut DeviceSlice<u8>,
        stream: &Stream,
    ) -> Result<(), Error> {
        let total = a.0.len() + b.0.len();
        crate::engine::check_length("out", total, out.len(), "|a| + |b|")?;
        let problems = crate::engine::check_offset_counts(a.1.len(), b.1.len())?;
        check_apart("out", out, [("a", a.0), ("b", b.0)])?;
        let workspace = workspace_at(Self::merge_ragged_workspace_bytes::<K>(total), workspace)?;
        let (a, b) = ((keys_at(a.0), address(a.1)), (keys_at(b.0), address(b.1)));
        // SAFETY: the slices are in the GPU's memory, of these lengths, and apart; the caller keeps them so.
        unsafe { batch::merge_ragged::<K>(&self.queue(stream)?, a, b, problems, keys_at(out), workspace) }
    }

    /// As [`merge_ragged`](Self::merge_ragged), with a value for each key, as in [`merge_pairs`](Self::merge_pairs).
    ///
    /// # Errors
    /// Those of [`merge_ragged`](Self::merge_ragged), and [`Error::ValuesMismatch`] if there are not as many values as keys.
    ///
    /// # Safety
    /// As for [`merge_ragged`](Self::merge_ragged).
    pub unsafe fn merge_ragged_pairs<K: Key + DeviceCopy, V: DeviceCopy>(
        &self,
        a: (&DeviceSlice<K>, &DeviceSlice<V>, &DeviceSlice<u64>),
        b: (&DeviceSlice<K>, &DeviceSlice<V>, &DeviceSlice<u64>),
        out: (&mut DeviceSlice<K>, &mut DeviceSlice<V>),
        workspace: &mut DeviceSlice<u8>,
        stream: &Stream,
    ) -> Result<(), Error> {
        let total = a.0.len() + b.0.len();
        crate::engine::check_length("out", total, out.0.len(), "|a| + |b|")?;
        let problems = crate::engine::check_offset_counts(a.2.len(), b.2.len())?;
        let (a_offsets, b_offsets) = (address(a.2), address(b.2));
        let [a, b, out] = check_pairs((a.0, a.1), (b.0, b.1), out)?;
        let workspace = workspace_at(Self::merge_ragged_workspace_bytes::<K>(total), workspace)?;
        let (a, b) = ((a, a_offsets), (b, b_offsets));
        // SAFETY: the slices are in the GPU's memory, of these lengths, and apart; the caller keeps them so.
        unsafe { batch::merge_ragged::<K>(&self.queue(stream)?, a, b, problems, out, workspace) }
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ordinal, multiprocessors, .. } = self;
        f.debug_struct("Gpu")
            .field("ordinal", ordinal)
            .field("multiprocessors", multiprocessors)
            .finish_non_exhaustive()
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // The driver frees page-locked memory only where its context is current.
        if self.make_current().is_ok() {
            self.staging.clear();
        }
    }
}

fn address<T: DeviceCopy>(slice: &DeviceSlice<T>) -> Address {
    slice.as_device_ptr().as_raw()
}

/// Where in the workspace its first 16-byte boundary is, if there are `needed` bytes from there on.
fn workspace_at(needed: usize, workspace: &DeviceSlice<u8>) -> Result<Address, Error> {
    let start = address(workspace).next_multiple_of(align(1) as u64);
    let found = workspace.len().saturating_sub((start - address(workspace)) as usize);
    if found < needed { Err(Error::WorkspaceTooSmall { needed, found }) } else { Ok(start) }
}

/// Values that the kernels move are of 4 or 8 bytes, and aligned as numbers of that size are.
const fn value_bytes<V>() -> usize {
    assert!(size_of::<V>() == 4 || size_of::<V>() == 8, "values have 4 or 8 bytes");
    assert!(align_of::<V>() == size_of::<V>(), "values are aligned to their size");
    size_of::<V>()
}

/// Keys alone, where they are.
fn keys_at<K: DeviceCopy>(keys: &DeviceSlice<K>) -> Arrays {
    Arrays::keys(address(keys), keys.len())
}

/// Keys and values, where they are, if there is a value for each key.
fn pairs_at<K: DeviceCopy, V: DeviceCopy>(
    what: &'static str,
    keys: &DeviceSlice<K>,
    values: &DeviceSlice<V>,
) -> Result<Arrays, Error> {
    crate::engine::check_values(what, keys.len(), values.len())?;
    Ok(Arrays { values: address(values), value_bytes: const { value_bytes::<V>() }, ..keys_at(keys) })
}

/// Checks that there is a value for each key and that `out` is apart from the others, and returns where all are.
fn check_pairs<K: DeviceCopy, V: DeviceCopy>(
    a: (&DeviceSlice<K>, &DeviceSlice<V>),
    b: (&DeviceSlice<K>, &DeviceSlice<V>),
    out: (&mut DeviceSlice<K>, &mut DeviceSlice<V>),
) -> Result<[Arrays; 3], Error> {
    let at = [pairs_at("a", a.0, a.1)?, pairs_at("b", b.0, b.1)?, pairs_at("out", out.0, out.1)?];
    check_apart("out", out.0, [("a", a.0), ("b", b.0)])?;
    check_apart("values of out", out.1, [("values of a", a.1), ("values of b", b.1)])?;
    Ok(at)
}

fn check_apart<K: DeviceCopy>(
    what: &'static str,
    written: &DeviceSlice<K>,
    read: [(&'static str, &DeviceSlice<K>); 2],
) -> Result<(), Error> {
    let range = |slice: &DeviceSlice<K>| (address(slice), address(slice) + (slice.len() * size_of::<K>()) as u64);
    let (start, end) = range(written);
    for (other, slice) in read {
        let (other_start, other_end) = range(slice);
        if start < other_end && other_start < end {
            return Err(Error::Overlap { what, other });
        }
    }
    Ok(())
}
