//! One GPU: its context, what it has loaded, and the sizes of workspaces.

use super::context::Entered;
use super::failure::{OrFailure, initialise};
use super::kernels::Kernels;
use super::launch::sort::SortPlan;
use super::launch::{batch, bounds, entries, groups, merge, sets, top_k};
use super::raw::value_bytes;
use super::side::SideStreams;
use super::staging::Staging;
use crate::{Error, GpuKey as Key, Index, MergeKernel};
use cust::context::{Context, CurrentContext};
use cust::device::{Device, DeviceAttribute};
use cust::error::CudaError;
use cust::memory::{DeviceBuffer, DeviceCopy};
use cust::stream::{Stream, StreamFlags};
use std::sync::Arc;
use std::{fmt, mem};

/// One GPU, for data that is in its memory.
///
/// A clone is the same GPU. Its context and its kernels are kept until the last clone, stream and array are dropped.
///
/// There are two layers. Neither allocates memory or waits for the GPU where work is put on a stream.
///
/// - The **safe layer** owns its arrays. A [`Stream`](crate::Stream) makes each [`DeviceArray`](crate::DeviceArray), which belongs to
///   it, and has the methods that sort and merge. The work of a stream is done in order. [`Stream`](crate::Stream) says why no use of
///   it is undefined behaviour.
/// - The **[raw layer](#the-raw-layer)** is for arrays and streams of other libraries, such as cudarc, PyTorch or cuDF, and for CUDA
///   graphs. Its functions take addresses and handles ([`RawArray`](crate::RawArray)), have names that end in `_raw`, and are unsafe.
///
/// The safe layer:
///
/// ```no_run
/// use merge_host::Gpu;
///
/// let gpu = Gpu::new(0)?;
/// let stream = gpu.stream()?;
/// let mut keys = stream.upload(&[3.5f32, -1.0, 2.0])?;
/// let mut workspace = stream.zeroed(Gpu::sort_workspace_bytes::<f32>(keys.len()))?;
/// stream.sort(&mut keys, &mut workspace)?;
/// assert_eq!(keys.download()?, [-1.0, 2.0, 3.5]);
/// # Ok::<(), merge_host::Error>(())
/// ```
///
/// The raw layer. `keys` is the address of `n` numbers that another library owns, and `stream` its stream:
///
/// ```no_run
/// use merge_host::{Error, Gpu, RawArray, SortKernel, SortOrder};
/// use std::ffi::c_void;
///
/// /// Sorts `n` numbers at `keys`.
/// ///
/// /// # Safety
/// /// [That of the raw layer](Gpu#safety-of-the-raw-layer), of which `workspace` is an address and a number of bytes.
/// unsafe fn sort(gpu: &Gpu, keys: u64, n: usize, workspace: (u64, usize), stream: *mut c_void) -> Result<(), Error> {
///     let (keys, workspace) = (RawArray::<f32>::new(keys, n), RawArray::new(workspace.0, workspace.1));
///     // SAFETY: the caller's guarantees.
///     unsafe { gpu.sort_raw(SortKernel::Auto, SortOrder::Ascending, keys, workspace, stream) }
/// }
/// ```
#[derive(Clone)]
pub struct Gpu {
    pub(super) shared: Arc<Shared>,
}

/// What the clones of a [`Gpu`] share.
pub(super) struct Shared {
    pub(super) kernels: Kernels,
    pub(super) staging: Staging,
    pub(super) sides: SideStreams,
    pub(super) multiprocessors: usize,
    ordinal: usize,
    pub(super) context: Context,
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
        let shared = Shared {
            kernels: Kernels::default(),
            staging: Staging::default(),
            sides: SideStreams::default(),
            multiprocessors,
            ordinal,
            context,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The number of this GPU among those of the machine, counted from 0.
    pub fn ordinal(&self) -> usize {
        self.shared.ordinal
    }

    /// Makes the GPU's context, which is its primary context, the calling thread's current one, as the driver's
    /// functions need it. The functions of this library do that by themselves. Those of the two layers restore the
    /// context that was current before.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub fn make_current(&self) -> Result<(), Error> {
        CurrentContext::set_current(&self.shared.context).or_failure("cuCtxSetCurrent")
    }

    /// A new stream of the driver's, in `cust`'s type. It waits for the default stream: `cust` makes no others.
    pub(super) fn new_stream(&self) -> Result<Stream, Error> {
        self.make_current()?;
        Stream::new(StreamFlags::DEFAULT, None).or_failure("cuStreamCreateWithPriority")
    }

    /// Loads all kernels for keys of type `K`, alone or with values, of arrays of any size. The driver compiles them
    /// now, so that later calls only launch. Without this a kernel is loaded by the first call that needs it, which
    /// must not happen while a stream is captured.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub fn prepare<K: Key>(&self) -> Result<(), Error> {
        let _entered = self.enter()?;
        self.load(&entries::<K>())
    }

    /// Bytes of the GPU's memory: free, and in all.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub fn memory(&self) -> Result<(u64, u64), Error> {
        let _entered = self.enter()?;
        let (free, total) = cust::memory::mem_get_info().or_failure("cuMemGetInfo")?;
        Ok((free as u64, total as u64))
    }

    /// Allocates an array of `len` elements, of unspecified values.
    pub(super) fn buffer<T: DeviceCopy + bytemuck::Pod>(&self, len: usize) -> Result<DeviceBuffer<T>, Error> {
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

    /// Allocates an array and copies `from` into it. Waits until the copy has arrived, so that work on any stream may
    /// use it.
    pub(super) fn upload<T: DeviceCopy + bytemuck::Pod>(&self, from: &[T]) -> Result<DeviceBuffer<T>, Error> {
        let to = self.buffer(from.len())?;
        self.copy_to_gpu(bytemuck::cast_slice(from), &to)?;
        Ok(to)
    }

    /// Bytes of workspace for a sort of `n` keys by any kernel: the keys once more, and splits or counters (at most 1
    /// %, or 24 KiB where that is more). `usize::MAX` if there are more keys than any GPU has memory for.
    pub fn sort_workspace_bytes<K: Key>(n: usize) -> usize {
        SortPlan::of::<K>(n, 0, false).workspace_bytes::<K>(n)
    }

    /// Bytes of workspace for a sort of `n` keys with values of type `V` by any kernel: both once more, and splits or
    /// counters. `usize::MAX` as for [`sort_workspace_bytes`](Self::sort_workspace_bytes).
    pub fn sort_pairs_workspace_bytes<K: Key, V>(n: usize) -> usize {
        SortPlan::of::<K>(n, const { value_bytes::<V>() }, false).workspace_bytes::<K>(n)
    }

    /// Bytes of workspace for an argsort of `n` keys with indices of type `I`: both once more, and splits or counters.
    /// `usize::MAX` as for [`sort_workspace_bytes`](Self::sort_workspace_bytes).
    pub fn argsort_workspace_bytes<K: Key, I: Index>(n: usize) -> usize {
        SortPlan::of::<K>(n, size_of::<I>(), true).workspace_bytes::<K>(n)
    }

    /// Bytes of workspace for the first `k` of `n` keys: an eighth of the keys once more, up to 8 MiB of counts, and
    /// those of a sort of `k` keys.
    pub fn top_k_workspace_bytes<K: Key>(n: usize, k: usize) -> usize {
        top_k::workspace_bytes::<K>(n, k, 0)
    }

    /// Bytes of workspace for the first `k` of `n` keys with values of type `V`, or with their indices: an eighth of
    /// both once more, up to 8 MiB of counts, and those of a sort of `k` keys with values.
    pub fn top_k_pairs_workspace_bytes<K: Key, V>(n: usize, k: usize) -> usize {
        top_k::workspace_bytes::<K>(n, k, const { value_bytes::<V>() })
    }

    /// Bytes of workspace for a merge into `total` keys: splits, 8 bytes for each tile of some thousand keys, and none
    /// where one launch does it all.
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

    /// Bytes of workspace for a set operation on `total` keys of both arrays, with values or without: 16 bytes for each
    /// tile of some thousand keys.
    pub const fn set_operation_workspace_bytes<K: Key>(total: usize) -> usize {
        sets::workspace_bytes::<K>(total)
    }

    /// Bytes of workspace for unique keys, run lengths and reductions by key, of `n` keys with any values: 24 bytes for
    /// each tile of some thousand keys.
    pub const fn groups_workspace_bytes<K: Key>(n: usize) -> usize {
        groups::workspace_bytes::<K>(n)
    }

    /// Bytes of workspace for bounds of `total` needles and keys: 8 bytes for each tile of some thousand.
    pub const fn bounds_workspace_bytes<K: Key>(total: usize) -> usize {
        bounds::workspace_bytes::<K>(total)
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gpu")
            .field("ordinal", &self.ordinal())
            .field("multiprocessors", &self.shared.multiprocessors)
            .finish_non_exhaustive()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The driver unloads modules, destroys streams and frees page-locked memory only where their context is
        // current.
        if let Ok(_entered) = Entered::new(&self.context) {
            drop((mem::take(&mut self.kernels), mem::take(&mut self.sides)));
            self.staging.clear();
        }
    }
}
