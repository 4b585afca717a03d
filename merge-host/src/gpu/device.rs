//! One GPU, and work on data that is in its memory.

use super::failure::{OrFailure, initialise};
use super::kernels::{Kernels, Shape, arguments};
use crate::{Error, Key, MAX_BATCH_LENGTH, MergeKernel};
use cust::context::{Context, CurrentContext};
use cust::device::{Device, DeviceAttribute};
use cust::error::CudaError;
use cust::memory::{CopyDestination, DeviceBuffer, DeviceCopy, DeviceSlice};
use cust::stream::{Stream, StreamFlags};
use kernels_gpu::{merge_batch, merge_circular, merge_small, merge_tiled, tile, tuning};
use std::ffi::c_void;

/// Threads of a block where the kernel leaves the choice.
const THREADS: u32 = 256;

/// Keys of a tile of the book's tiled and circular merges.
const BOOK_TILE: u32 = 2048;

/// One GPU, for data that is in its memory.
///
/// Arrays are `cust` device slices, work is put on a `cust` stream, and workspace is the caller's: no function here
/// waits for the GPU or allocates, except those that say so. Results are there when the stream has come so far; the
/// caller keeps arrays and workspace unchanged until then, and keeps arrays that are written apart from all others.
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
    // Dropped first: modules are unloaded while their context still exists.
    kernels: Kernels,
    multiprocessors: usize,
    ordinal: usize,
    context: Context,
}

/// The address of an array in the GPU's memory.
type Address = u64;

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
        Ok(Self { kernels: Kernels::default(), multiprocessors, ordinal, context })
    }

    /// The number that this GPU was asked for by.
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
            Err(CudaError::OutOfMemory) => {
                Err(Error::OutOfDeviceMemory { needed: (len * size_of::<T>()) as u64, free: self.memory()?.0 })
            }
            other => other.or_failure("cuMemAlloc"),
        }
    }

    /// Allocates an array and copies `from` into it. Waits for the copy.
    ///
    /// # Errors
    /// As for [`buffer`](Self::buffer).
    pub fn upload<T: DeviceCopy + bytemuck::Pod>(&self, from: &[T]) -> Result<DeviceBuffer<T>, Error> {
        let mut buffer = self.buffer(from.len())?;
        buffer.copy_from(from).or_failure("cuMemcpyHtoD")?;
        Ok(buffer)
    }

    /// Copies an array into host memory. Waits for the copy, but not for other streams.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub fn download<T: DeviceCopy + bytemuck::Pod>(&self, from: &DeviceSlice<T>) -> Result<Vec<T>, Error> {
        self.make_current()?;
        let mut to = vec![T::zeroed(); from.len()];
        from.copy_to(&mut to).or_failure("cuMemcpyDtoH")?;
        Ok(to)
    }

    /// Bytes of workspace for a sort of `n` keys: room for the keys once more, and for splits (8 bytes a tile of some
    /// thousand keys).
    pub const fn sort_workspace_bytes<K: Key>(n: usize) -> usize {
        let tile_keys = tuning::sort(size_of::<K>()).keys();
        if n <= tile_keys { 0 } else { align(n * size_of::<K>()) + n.div_ceil(tile_keys) * size_of::<usize>() }
    }

    /// Bytes of workspace for a merge into `total` keys: splits, 8 bytes a tile of some thousand keys.
    pub const fn merge_workspace_bytes<K: Key>(kernel: MergeKernel, total: usize) -> usize {
        match kernel {
            MergeKernel::Basic | MergeKernel::Tiled | MergeKernel::Circular => 0,
            MergeKernel::Auto if total <= merge_small::MAX_KEYS => 0,
            MergeKernel::Auto | MergeKernel::MergePath => {
                total.div_ceil(tuning::merge(size_of::<K>()).keys()) * size_of::<usize>()
            }
        }
    }

    /// Sorts `keys`, ascending in total order. Stable.
    ///
    /// # Errors
    /// [`Error::WorkspaceTooSmall`] if `workspace` has fewer than [`sort_workspace_bytes`](Self::sort_workspace_bytes),
    /// [`Error::Device`] where the driver fails.
    pub fn sort<K: Key + DeviceCopy>(
        &self,
        keys: &mut DeviceSlice<K>,
        workspace: &mut DeviceSlice<u8>,
        stream: &Stream,
    ) -> Result<(), Error> {
        check_workspace(Self::sort_workspace_bytes::<K>(keys.len()), workspace)?;
        // SAFETY: the slices are in the GPU's memory, of these lengths; the caller keeps them so.
        unsafe { self.sort_at::<K>(address(keys), keys.len(), address(workspace), stream) }
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
        check_workspace(Self::merge_workspace_bytes::<K>(kernel, total), workspace)?;
        let (a, b) = ((address(a), a.len()), (address(b), b.len()));
        // SAFETY: the slices are in the GPU's memory, of these lengths, and apart; the caller keeps them so.
        unsafe { self.merge_at::<K>(kernel, a, b, address(out), address(workspace), stream) }
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
        let pairs = crate::engine::check_batch(a.len(), b.len(), out.len(), d, a_len)?;
        check_apart("out", out, [("a", a), ("b", b)])?;
        // SAFETY: the slices are in the GPU's memory, of these lengths, and apart; the caller keeps them so.
        unsafe { self.merge_batch_at::<K>(address(a), address(b), address(out), pairs, d, a_len, stream) }
    }

    /// Loads what a sort or a merge launches, so that it is not compiled when time counts.
    pub(super) fn load<K: Key>(&self, kernels: &[&'static str]) -> Result<(), Error> {
        self.make_current()?;
        kernels.iter().try_for_each(|kernel| self.kernels.load(kernel, K::NAME))
    }

    /// [`sort`](Self::sort) of `n` keys at an address.
    ///
    /// # Safety
    /// `keys` and `workspace` are in this GPU's memory, have `n` keys and
    /// [`sort_workspace_bytes`](Self::sort_workspace_bytes), and nothing else uses them until the stream has come so far.
    pub(super) unsafe fn sort_at<K: Key>(
        &self,
        keys: Address,
        n: usize,
        workspace: Address,
        stream: &Stream,
    ) -> Result<(), Error> {
        self.make_current()?;
        let shape = tuning::sort(size_of::<K>());
        let (tile_keys, tiles) = (shape.keys(), n.div_ceil(shape.keys()));
        let tile_shape =
            Shape { blocks: tiles, threads: shape.threads as u32, shared_bytes: tile::shared_bytes::<K>(tile_keys) };
        let path_shape = Shape { blocks: tiles.div_ceil(THREADS as usize), threads: THREADS, shared_bytes: 0 };
        let launch = |kernel, shape, arguments: &[*mut c_void]| {
            // SAFETY: the arguments below are those of the kernels; the caller's promise for the arrays.
            unsafe { self.kernels.launch(kernel, K::NAME, shape, arguments, stream) }
        };

        let scratch: Address = workspace;
        let splits: Address = workspace + align(n * size_of::<K>()) as u64;
        // Passes alternate between the two arrays and have to end in `keys`.
        let passes = tiles.max(1).next_power_of_two().trailing_zeros();
        let (mut from, mut to) = if passes.is_multiple_of(2) { (keys, scratch) } else { (scratch, keys) };
        launch("block_sort", tile_shape, &arguments![keys, from, n])?;
        let mut run = tile_keys;
        while run < n {
            launch("path_runs", path_shape, &arguments![from, n, run, splits, tiles, tile_keys])?;
            launch("merge_runs", tile_shape, &arguments![from, n, run, to, splits])?;
            std::mem::swap(&mut from, &mut to);
            run *= 2;
        }
        Ok(())
    }

    /// [`merge`](Self::merge) of arrays at addresses, each with its length.
    ///
    /// # Safety
    /// The arrays are in this GPU's memory, of those lengths, `out` of their sum, `workspace` of
    /// [`merge_workspace_bytes`](Self::merge_workspace_bytes); `out` overlaps none; and nothing writes them, or uses
    /// `out` and `workspace`, until the stream has come so far.
    pub(super) unsafe fn merge_at<K: Key>(
        &self,
        kernel: MergeKernel,
        (a, m): (Address, usize),
        (b, n): (Address, usize),
        out: Address,
        workspace: Address,
        stream: &Stream,
    ) -> Result<(), Error> {
        self.make_current()?;
        let total = m + n;
        if total == 0 {
            return Ok(());
        }
        let launch = |kernel, shape, arguments: &[*mut c_void]| {
            // SAFETY: the arguments below are those of the kernels; the caller's promise for the arrays.
            unsafe { self.kernels.launch(kernel, K::NAME, shape, arguments, stream) }
        };
        match kernel {
            MergeKernel::Basic => {
                // Enough threads to fill the GPU, and then longer pieces.
                let blocks = total.div_ceil(16 * THREADS as usize).min(32 * self.multiprocessors);
                let shape = Shape { blocks, threads: THREADS, shared_bytes: 0 };
                launch("merge_basic", shape, &arguments![a, m, b, n, out])
            }
            MergeKernel::Tiled | MergeKernel::Circular => {
                let (name, shared_bytes) = match kernel {
                    MergeKernel::Tiled => ("merge_tiled", merge_tiled::shared_bytes::<K>(BOOK_TILE)),
                    _ => ("merge_circular", merge_circular::shared_bytes::<K>(BOOK_TILE)),
                };
                let blocks = total.div_ceil(BOOK_TILE as usize).min(8 * self.multiprocessors);
                let shape = Shape { blocks, threads: THREADS, shared_bytes };
                let tile_size = BOOK_TILE;
                launch(name, shape, &arguments![a, m, b, n, out, tile_size])
            }
            MergeKernel::Auto if total <= merge_small::MAX_KEYS => {
                let threads = (total as u32).next_multiple_of(32);
                let shape = Shape { blocks: 1, threads, shared_bytes: merge_small::shared_bytes::<K>(total as u32) };
                launch("merge_small", shape, &arguments![a, m, b, n, out])
            }
            MergeKernel::Auto | MergeKernel::MergePath => {
                let shape = tuning::merge(size_of::<K>());
                let (tile_keys, tiles, splits) = (shape.keys(), total.div_ceil(shape.keys()), workspace);
                let path_shape = Shape { blocks: tiles.div_ceil(THREADS as usize), threads: THREADS, shared_bytes: 0 };
                let tile_shape = Shape {
                    blocks: tiles,
                    threads: shape.threads as u32,
                    shared_bytes: tile::shared_bytes::<K>(tile_keys),
                };
                launch("path_big", path_shape, &arguments![a, m, b, n, splits, tiles, tile_keys])?;
                launch("merge_big", tile_shape, &arguments![a, m, b, n, out, splits])
            }
        }
    }

    /// [`merge_batch`](Self::merge_batch) of arrays at addresses.
    ///
    /// # Safety
    /// The arrays are in this GPU's memory and hold `pairs` runs of `a_len`, `d - a_len` and `d` keys, `1 <= d <= 1024`;
    /// `out` overlaps no other; and nothing writes them, or uses `out`, until the stream has come so far.
    #[allow(clippy::too_many_arguments)]
    pub(super) unsafe fn merge_batch_at<K: Key>(
        &self,
        a: Address,
        b: Address,
        out: Address,
        pairs: usize,
        d: usize,
        a_len: usize,
        stream: &Stream,
    ) -> Result<(), Error> {
        const { assert!(MAX_BATCH_LENGTH == merge_batch::MAX_D as usize) };
        self.make_current()?;
        let (d, a_len) = (d as u32, a_len as u32);
        // A multiple of d: about as many threads as elsewhere, or one pair where that is longer.
        let threads = (THREADS / d).max(1) * d;
        let blocks = pairs.div_ceil((threads / d) as usize);
        let shape = Shape { blocks, threads, shared_bytes: merge_batch::shared_bytes::<K>(threads) };
        let arguments = arguments![a, b, out, pairs, d, a_len];
        // SAFETY: the arguments are those of the kernel; the caller's promise for the arrays.
        unsafe { self.kernels.launch("merge_small_batch", K::NAME, shape, &arguments, stream) }
    }
}

/// The next multiple of the alignment that any element needs.
const fn align(bytes: usize) -> usize {
    bytes.next_multiple_of(16)
}

fn address<T: DeviceCopy>(slice: &DeviceSlice<T>) -> Address {
    slice.as_device_ptr().as_raw()
}

fn check_workspace(needed: usize, workspace: &DeviceSlice<u8>) -> Result<(), Error> {
    if workspace.len() < needed {
        return Err(Error::WorkspaceTooSmall { needed, found: workspace.len() });
    }
    Ok(())
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
