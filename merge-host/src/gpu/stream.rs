//! Streams and events: the order of work on a GPU.

use super::Gpu;
use super::failure::OrFailure;
use crate::Error;
use cust::event::EventFlags;
use cust::stream::Stream as Handle;
use cust::sys::CUstream;
use std::ffi::c_void;
use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A CUDA stream: a queue of work on one GPU, which is done in order.
///
/// A stream makes arrays, which belong to it. The methods that sort and merge put their work on the stream and return
/// before it is done. Later work on the stream sees the result, and
/// [`DeviceArray::download`](crate::DeviceArray::download) waits for it.
///
/// No use of this type and of its arrays is undefined behaviour:
///
/// - An array of another stream is an error, [`Error::OtherStream`], so two streams never use one array at the same
///   time. [`DeviceArray::move_to`](crate::DeviceArray::move_to) moves an array to another stream, in order with its
///   work.
/// - An array that is dropped, for instance a workspace, is freed after the work of its stream.
/// - An array of another GPU is an error, [`Error::OtherGpu`].
/// - Streams and arrays keep the GPU's context and kernels alive, and arrays keep their stream alive. They may be
///   dropped in any order.
///
/// A clone is the same stream. CUDA's legacy default stream waits for these streams, and these wait for it.
///
/// # Threads
///
/// Several threads may use one stream. If two threads call it at the same time, their work is put on it in an
/// unspecified order. The two calls share no array that either one writes, because such an array is borrowed mutably.
///
/// # Misuse that is an error, or harmless
///
/// ```
/// use merge_host::{Error, Gpu, SortOrder, workspace};
///
/// # fn main() -> Result<(), Error> {
/// let gpu = match Gpu::new(0) {
///     Ok(gpu) => gpu,
///     Err(error) => return Ok(println!("not run: {error}")),
/// };
/// let (one, other) = (gpu.stream()?, gpu.stream()?);
/// let mut keys = one.upload(&(0..100_000u32).rev().collect::<Vec<_>>())?;
/// let mut memory = other.zeroed(workspace::sort::<u32, ()>(keys.len()))?;
/// // Arrays of two streams in one call.
/// let refused = one.sort(SortOrder::Ascending, &mut keys, &mut memory);
/// assert_eq!(refused, Err(Error::OtherStream { what: "workspace" }));
/// memory.move_to(&one)?;
/// one.sort(SortOrder::Ascending, &mut keys, &mut memory)?;
/// // A workspace that is dropped while the GPU uses it, and a GPU and a stream that are dropped before their array.
/// drop((memory, gpu, one, other));
/// assert!(keys.download()?.is_sorted());
/// # Ok(())
/// # }
/// ```
///
/// # Misuse that does not compile
///
/// An array cannot be the input and the output of one call:
///
/// ```compile_fail,E0502
/// # fn misuse(stream: merge_host::Stream) -> Result<(), merge_host::Error> {
/// let (mut a, b) = (stream.upload(&[1u32, 3])?, stream.upload(&[2u32, 4])?);
/// let mut workspace = stream.zeroed(0)?;
/// stream.merge(merge_host::MergeKernel::Auto, &a, &b, &mut a, &mut workspace)
/// # }
/// ```
///
/// A workspace cannot be used after it has been dropped. (Dropping it while the GPU uses it is no error: the drop
/// waits.)
///
/// ```compile_fail,E0382
/// # fn misuse(stream: merge_host::Stream) -> Result<(), merge_host::Error> {
/// let mut keys = stream.upload(&[3u32, 1, 2])?;
/// let mut workspace = stream.zeroed(1 << 20)?;
/// drop(workspace);
/// stream.sort(merge_host::SortOrder::Ascending, &mut keys, &mut workspace)
/// # }
/// ```
///
/// Two threads cannot use one array at the same time if either one writes it:
///
/// ```compile_fail,E0499
/// # use merge_host::SortOrder;
/// # fn misuse(stream: merge_host::Stream) -> Result<(), merge_host::Error> {
/// let mut keys = stream.upload(&[3u32, 1, 2])?;
/// let mut sort = || stream.sort(SortOrder::Ascending, &mut keys, &mut stream.zeroed(0)?);
/// let mut again = || stream.sort(SortOrder::Ascending, &mut keys, &mut stream.zeroed(0)?);
/// std::thread::scope(|scope| {
///     scope.spawn(&mut sort);
///     scope.spawn(&mut again);
/// });
/// # Ok(())
/// # }
/// ```
///
/// An array given by its address, which nothing keeps valid, needs an `unsafe` block:
///
/// ```compile_fail,E0133
/// # fn misuse(stream: merge_host::Stream) -> Result<(), merge_host::Error> {
/// let keys = merge_host::DeviceArray::<u32>::from_address(&stream, 0x7f00_0000_0000, 1000)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Stream {
    shared: Arc<Shared>,
}

/// State shared by the clones of a stream.
struct Shared {
    stream: ManuallyDrop<Handle>,
    /// Whether another library owns the stream and destroys it.
    is_borrowed: bool,
    /// A second stream beside this one, for launches that need not wait for each other. It is never shared: two streams
    /// that shared it would wait for each other, and their graphs could not both capture it.
    side: OnceLock<Handle>,
    gpu: Gpu,
}

/// The greatest handle of a default stream (`CU_STREAM_PER_THREAD`). Default streams have no priority of their own.
const LAST_DEFAULT_STREAM: usize = 2;

// Streams, events and arrays are `Send` and `Sync` because their parts are: `cust` declares the driver's handles so,
// and `Gpu` has locks around its mutable state. Any thread may call the driver while the context is current. Every
// function here, drops included, ensures that by `Gpu::enter`.
const _: () = {
    const fn sent_and_shared<T: Send + Sync>() {}
    sent_and_shared::<Gpu>();
    sent_and_shared::<Stream>();
    sent_and_shared::<Event>();
    sent_and_shared::<crate::DeviceArray<u32>>();
    sent_and_shared::<crate::DeviceOffsets>();
};

impl Gpu {
    /// A new stream. Its arrays are in the memory of this GPU.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub fn stream(&self) -> Result<Stream, Error> {
        let _entered = self.enter()?;
        let stream = Handle::new(0).or_failure("cuStreamCreateWithPriority")?;
        Ok(self.stream_of(stream, false))
    }

    /// A stream of another library, given by its handle: a `CUstream`, or a `cudaStream_t` of CUDA's runtime, which is
    /// the same type. 0 is the legacy default stream.
    ///
    /// Dropping the result does not destroy the stream and waits for nothing.
    ///
    /// Call this once for a stream and keep the result. Two results for one handle are two streams: an array of one is
    /// [`Error::OtherStream`] to the other. Each also has a second stream of its own, for some of the work of long
    /// sorts.
    ///
    /// | library | handle |
    /// | --- | --- |
    /// | cudarc | `stream.cu_stream().cast()` |
    /// | PyTorch | `torch.cuda.current_stream().cuda_stream` |
    /// | CuPy | `cupy.cuda.get_current_stream().ptr` |
    /// | RAPIDS | `rmm::cuda_stream_view::value()` |
    ///
    /// # Safety
    /// - The stream is one of this GPU's primary context, which CUDA's runtime and most libraries use. It is destroyed
    ///   only after the result, its clones and its arrays have been dropped.
    /// - This `Gpu` or a clone of it, such as the one in the result, lives until the stream has completed the work that
    ///   is put on it. The last clone unloads the kernels when it is dropped.
    ///
    /// ```no_run
    /// use merge_host::{DeviceArray, Error, Gpu, SortOrder, workspace};
    /// use std::ffi::c_void;
    ///
    /// /// Queues the sort of `n` numbers at the address `keys` on `stream`.
    /// ///
    /// /// # Safety
    /// /// That of [`Gpu::stream_from_handle`] and, for both addresses, of [`DeviceArray::from_address`].
    /// unsafe fn sort(gpu: &Gpu, keys: u64, n: usize, memory: u64, stream: *mut c_void) -> Result<(), Error> {
    ///     // SAFETY: the `# Safety` section above lists the conditions of all three calls.
    ///     let (stream, mut keys, mut memory) = unsafe {
    ///         let stream = gpu.stream_from_handle(stream);
    ///         let keys = DeviceArray::<f32>::from_address(&stream, keys, n)?;
    ///         let memory = DeviceArray::from_address(&stream, memory, workspace::sort::<f32, ()>(n))?;
    ///         (stream, keys, memory)
    ///     };
    ///     stream.sort(SortOrder::Ascending, &mut keys, &mut memory)
    /// }
    /// ```
    pub unsafe fn stream_from_handle(&self, handle: *mut c_void) -> Stream {
        // SAFETY: the stream exists while the result is used, as `# Safety` requires. `is_borrowed` keeps the value
        // from being dropped.
        self.stream_of(unsafe { Handle::from_raw(CUstream(handle)) }, true)
    }

    fn stream_of(&self, stream: Handle, is_borrowed: bool) -> Stream {
        let stream = ManuallyDrop::new(stream);
        let shared = Shared { stream, is_borrowed, side: OnceLock::new(), gpu: self.clone() };
        Stream { shared: Arc::new(shared) }
    }
}

impl Stream {
    /// The GPU of this stream.
    pub fn gpu(&self) -> &Gpu {
        &self.shared.gpu
    }

    /// The handle of this stream (`CUstream`), for other libraries. It is valid while this stream, a clone of it or one
    /// of its arrays lives.
    ///
    /// Code that uses the handle is `unsafe`. It puts work on the arrays of this stream on this stream alone. A graph
    /// that was captured from this stream is launched on this stream, while the arrays live.
    pub fn handle(&self) -> *mut c_void {
        self.inner().as_raw().0
    }

    /// Waits until all work on this stream is done.
    ///
    /// # Errors
    /// [`Error::Device`] if some of the work has failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        let _entered = self.gpu().enter()?;
        self.inner().synchronize().or_failure("cuStreamSynchronize")
    }

    /// Makes later work of this stream wait for the work that is on `other` now.
    pub(super) fn wait_for(&self, other: &Self) -> Result<(), Error> {
        let _entered = self.gpu().enter()?;
        let now = cust::event::Event::new(EventFlags::DISABLE_TIMING).or_failure("cuEventCreate")?;
        now.record(other.inner()).or_failure("cuEventRecord")?;
        self.inner().wait_event(&now).or_failure("cuStreamWaitEvent")
    }

    /// Whether both are the same stream.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// An error that names the argument `what` if its stream `of` is another one.
    pub(super) fn check_owns(&self, what: &'static str, of: &Self) -> Result<(), Error> {
        if of.is(self) {
            return Ok(());
        }
        of.check_gpu(what, self)?;
        Err(Error::OtherStream { what })
    }

    /// An error that names the argument `what`, which is on this stream, if `other` is on another GPU.
    pub(super) fn check_gpu(&self, what: &'static str, other: &Self) -> Result<(), Error> {
        let (found, expected) = (self.gpu().ordinal(), other.gpu().ordinal());
        if found == expected { Ok(()) } else { Err(Error::OtherGpu { what, found, expected }) }
    }

    pub(super) fn inner(&self) -> &Handle {
        &self.shared.stream
    }

    /// The second stream beside this one, of the same priority. The context of both has to be current.
    pub(super) fn side(&self) -> Result<&Handle, Error> {
        if let Some(side) = self.shared.side.get() {
            return Ok(side);
        }
        let is_default = self.handle() as usize <= LAST_DEFAULT_STREAM;
        let priority = if is_default { 0 } else { self.inner().get_priority().or_failure("cuStreamGetPriority")? };
        let side = Handle::new(priority).or_failure("cuStreamCreateWithPriority")?;
        Ok(self.shared.side.get_or_init(|| side))
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("gpu", self.gpu()).field("handle", &self.handle()).finish()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let ended = self.gpu.enter().and_then(|entered| {
            // The driver destroys a stream when its work is done.
            drop(self.side.take());
            if !self.is_borrowed {
                self.stream.synchronize().or_failure("cuStreamSynchronize")?;
                // SAFETY: `drop` runs once and this is its only call. The stream is not used afterwards.
                unsafe { ManuallyDrop::drop(&mut self.stream) };
            }
            drop(entered);
            Ok(())
        });
        if ended.is_err() {
            // Work may still be under way, for instance in a capture, so the kernels stay loaded.
            mem::forget(self.gpu.clone());
        }
    }
}

/// A point in a stream: the end of the work that was on it when the event was recorded.
///
/// ```no_run
/// # fn main() -> Result<(), merge_host::Error> {
/// let stream = merge_host::Gpu::new(0)?.stream()?;
/// let (start, end) = (merge_host::Event::new(&stream)?, merge_host::Event::new(&stream)?);
/// let mut keys = stream.upload(&[3u32, 1, 2])?;
/// let mut workspace = stream.zeroed(merge_host::workspace::sort::<u32, ()>(keys.len()))?;
/// start.record()?;
/// stream.sort(merge_host::SortOrder::Ascending, &mut keys, &mut workspace)?;
/// end.record()?;
/// println!("the GPU sorted for {:?}", end.elapsed_since(&start)?);
/// # Ok(())
/// # }
/// ```
pub struct Event {
    event: ManuallyDrop<cust::event::Event>,
    stream: Stream,
}

impl Event {
    /// An event that can be recorded on `stream`.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub fn new(stream: &Stream) -> Result<Self, Error> {
        let _entered = stream.gpu().enter()?;
        let event = ManuallyDrop::new(cust::event::Event::new(EventFlags::DEFAULT).or_failure("cuEventCreate")?);
        Ok(Self { event, stream: stream.clone() })
    }

    /// Sets the event to the end of the work that is on its stream now.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub fn record(&self) -> Result<(), Error> {
        let _entered = self.stream.gpu().enter()?;
        self.event.record(self.stream.inner()).or_failure("cuEventRecord")
    }

    /// Waits until the work is done. Returns at once if the event has not been recorded.
    ///
    /// # Errors
    /// [`Error::Device`] if some of the work has failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        let _entered = self.stream.gpu().enter()?;
        self.event.synchronize().or_failure("cuEventSynchronize")
    }

    /// The time on the GPU from `start` to this event, with a resolution of about 0.5 µs; 0 if `start` is later. Waits
    /// for this event.
    ///
    /// # Errors
    /// [`Error::Device`] if an event has not been recorded, if the two events are on different GPUs, or if some of the
    /// work has failed.
    pub fn elapsed_since(&self, start: &Self) -> Result<Duration, Error> {
        let _entered = self.stream.gpu().enter()?;
        self.event.synchronize().or_failure("cuEventSynchronize")?;
        let ms = self.event.elapsed_time_f32(&start.event).or_failure("cuEventElapsedTime")?;
        Ok(Duration::from_secs_f64(f64::from(ms.max(0.0)) / 1e3))
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("stream", &self.stream).finish()
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(_entered) = self.stream.gpu().enter() {
            // SAFETY: `drop` runs once and this is its only call. The event is not used afterwards. The driver keeps
            // the state that it needs until the event has happened.
            unsafe { ManuallyDrop::drop(&mut self.event) };
        }
    }
}
