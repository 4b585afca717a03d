//! One GPU: its context, its loaded kernels and its staging buffers.

use super::context::Entered;
use super::failure::{OrFailure, initialise};
use super::kernels::Kernels;
use super::launch::Entry;
use super::operation::Record;
use super::staging::Staging;
use crate::{Error, GpuKey as Key};
use cust::context::{Context, CurrentContext};
use cust::device::{Device, DeviceAttribute};
use cust::error::CudaError;
use cust::memory::DeviceBuffer;
use std::sync::Arc;
use std::{fmt, mem};

/// One GPU, for data that is in its memory.
///
/// A clone is the same GPU. Its context and its kernels are kept until the last clone, stream and array are dropped.
///
/// A [`Stream`](crate::Stream) of the GPU makes arrays in its memory, which belong to the stream, and has the methods
/// that sort and merge them. These methods do not allocate memory and do not wait. [`Stream`](crate::Stream) says why
/// no use of it is undefined behaviour.
///
/// Streams and arrays of other libraries, such as cudarc, PyTorch or cuDF, enter through the unsafe functions
/// [`stream_from_handle`](Self::stream_from_handle) and
/// [`DeviceArray::from_address`](crate::DeviceArray::from_address). The same methods then work on them.
///
/// ```no_run
/// use merge_host::{Gpu, SortOrder, workspace};
///
/// let gpu = Gpu::new(0)?;
/// let stream = gpu.stream()?;
/// let mut keys = stream.upload(&[3.5f32, -1.0, 2.0])?;
/// let mut memory = stream.zeroed(workspace::sort::<f32, ()>(keys.len()))?;
/// stream.sort(SortOrder::Ascending, &mut keys, &mut memory)?;
/// assert_eq!(keys.download()?, [-1.0, 2.0, 3.5]);
/// # Ok::<(), merge_host::Error>(())
/// ```
#[derive(Clone)]
pub struct Gpu {
    pub(super) shared: Arc<Shared>,
}

/// State shared by the clones of a [`Gpu`].
pub(super) struct Shared {
    pub(super) kernels: Kernels,
    pub(super) staging: Staging,
    pub(super) multiprocessors: usize,
    ordinal: usize,
    pub(super) context: Context,
}

impl Gpu {
    /// Opens the GPU with this ordinal, counted from 0.
    ///
    /// # Errors
    /// [`Error::NoDevice`] if there is no driver or no GPU, [`Error::DeviceOrdinal`] if there is no GPU with this
    /// ordinal, and [`Error::Device`] where the driver fails.
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
        // A thread frees a buffer only while a context is current.
        CurrentContext::set_current(context.handle()).or_failure("cuCtxSetCurrent")?;
        let multiprocessors =
            device.get_attribute(DeviceAttribute::MultiprocessorCount).or_failure("cuDeviceGetAttribute")? as usize;
        let shared =
            Shared { kernels: Kernels::default(), staging: Staging::default(), multiprocessors, ordinal, context };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The ordinal of this GPU on the machine, counted from 0.
    pub fn ordinal(&self) -> usize {
        self.shared.ordinal
    }

    /// Makes the GPU's primary context current on the calling thread, as functions of the driver require. Functions of
    /// this library do so by themselves. Streams and arrays restore the context that was current before.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub fn make_current(&self) -> Result<(), Error> {
        CurrentContext::set_current(self.shared.context.handle()).or_failure("cuCtxSetCurrent")
    }

    /// Loads all kernels for keys of type `K`, with and without values, for arrays of any size. The driver compiles
    /// them now, so later calls only launch. Otherwise the first call that needs a kernel loads it, which must not
    /// happen while a stream is captured.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub fn prepare<K: Key>(&self) -> Result<(), Error> {
        let _entered = self.enter()?;
        let record = Record::new(self.shared.multiprocessors);
        record.add_all(K::gpu_coding().into())?;
        self.load(record.entries())
    }

    /// Loads these entry points, so that the driver does not compile their modules at the first launch.
    pub(super) fn load(&self, entries: impl IntoIterator<Item = Entry>) -> Result<(), Error> {
        self.make_current()?;
        entries.into_iter().try_for_each(|(kernel, suffix)| self.shared.kernels.load(kernel, &suffix))
    }

    /// Free and total bytes of the GPU's memory.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub fn memory(&self) -> Result<(u64, u64), Error> {
        let _entered = self.enter()?;
        let (free, total) = cust::memory::mem_get_info().or_failure("cuMemGetInfo")?;
        Ok((free as u64, total as u64))
    }

    /// Allocates `bytes` bytes with unspecified values.
    pub(super) fn buffer(&self, bytes: usize) -> Result<DeviceBuffer, Error> {
        self.make_current()?;
        match DeviceBuffer::uninitialized(bytes) {
            Err(CudaError::OUT_OF_MEMORY) => {
                Err(Error::OutOfDeviceMemory { needed: bytes as u64, free: self.memory()?.0 })
            }
            other => other.or_failure("cuMemAlloc"),
        }
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
        // The driver unloads modules and frees page-locked memory only where their context is current.
        if let Ok(_entered) = Entered::new(&self.context) {
            drop(mem::take(&mut self.kernels));
            self.staging.clear();
        }
    }
}
