//! Streams and events: the order of work on a GPU.

use super::Gpu;
use super::failure::OrFailure;
use crate::Error;
use cust::event::EventFlags;
use cust::stream::{Stream as Handle, StreamWaitEventFlags};
use std::ffi::c_void;
use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::sync::Arc;
use std::time::Duration;

/// A CUDA stream: work on one GPU, which is done in the order in which it is put there.
///
/// Arrays are made by a stream and belong to it. The methods that sort and merge put their work on the stream and
/// return before it is done. Later work on the stream finds its result, and
/// [`DeviceArray::download`](crate::DeviceArray::download) waits for it.
///
/// No use of this type, and of the arrays, is undefined behaviour:
///
/// - An array of another stream is an error, [`Error::OtherStream`], so that two streams never use one array at the same time.
///   [`DeviceArray::move_to`](crate::DeviceArray::move_to) moves an array to another stream, in order with its work.
/// - An array that is dropped, for instance a workspace, is freed after the work of its stream.
/// - An array of another GPU is an error, [`Error::OtherGpu`].
/// - Streams and arrays keep the GPU's context and kernels, and arrays keep their stream. They may be dropped in any order.
///
/// A clone is the same stream. CUDA's legacy default stream waits for these streams, and these wait for it.
///
/// # Threads
///
/// Several threads may use one stream. The work of two calls at the same time is put on it in an unspecified order. The
/// two calls share no array that either of them writes, because such an array is borrowed mutably.
///
/// # Misuse that is an error, or harmless
///
/// ```
/// use merge_host::{Error, Gpu};
///
/// # fn main() -> Result<(), Error> {
/// let gpu = match Gpu::new(0) {
///     Ok(gpu) => gpu,
///     Err(error) => return Ok(println!("not run: {error}")),
/// };
/// let (one, other) = (gpu.stream()?, gpu.stream()?);
/// let mut keys = one.upload(&(0..100_000u32).rev().collect::<Vec<_>>())?;
/// let mut workspace = other.zeroed(Gpu::sort_workspace_bytes::<u32>(keys.len()))?;
/// // Arrays of two streams in one call.
/// assert_eq!(one.sort(&mut keys, &mut workspace), Err(Error::OtherStream { what: "workspace" }));
/// workspace.move_to(&one)?;
/// one.sort(&mut keys, &mut workspace)?;
/// // A workspace that is dropped while the GPU uses it, and a GPU and a stream that are dropped before their array.
/// drop((workspace, gpu, one, other));
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
/// A workspace cannot be used after it has been dropped. (To drop it while the GPU uses it is no error: that waits.)
///
/// ```compile_fail,E0382
/// # fn misuse(stream: merge_host::Stream) -> Result<(), merge_host::Error> {
/// let mut keys = stream.upload(&[3u32, 1, 2])?;
/// let mut workspace = stream.zeroed(1 << 20)?;
/// drop(workspace);
/// stream.sort(&mut keys, &mut workspace)
/// # }
/// ```
///
/// Two threads cannot use one array at the same time if one of them writes it:
///
/// ```compile_fail,E0499
/// # fn misuse(stream: merge_host::Stream) -> Result<(), merge_host::Error> {
/// let mut keys = stream.upload(&[3u32, 1, 2])?;
/// let mut sort = || stream.sort(&mut keys, &mut stream.zeroed(0)?);
/// let mut again = || stream.sort(&mut keys, &mut stream.zeroed(0)?);
/// std::thread::scope(|scope| {
///     scope.spawn(&mut sort);
///     scope.spawn(&mut again);
/// });
/// # Ok(())
/// # }
/// ```
///
/// Addresses, which nothing keeps valid, are for `unsafe` functions:
///
/// ```compile_fail,E0133
/// # fn misuse(gpu: merge_host::Gpu, one: merge_host::Stream, other: merge_host::Stream) -> Result<(), merge_host::Error> {
/// use merge_host::{SortKernel, SortOrder};
/// let (keys, workspace) = (one.upload(&[3u32, 1, 2])?, one.zeroed::<u8>(0)?);
/// gpu.sort_raw(SortKernel::Auto, SortOrder::Ascending, keys.raw(), workspace.raw(), other.handle())
/// # }
/// ```
#[derive(Clone)]
pub struct Stream {
    shared: Arc<Shared>,
}

/// What the clones of a stream share.
struct Shared {
    stream: ManuallyDrop<Handle>,
    gpu: Gpu,
}

// Streams, events and arrays are `Send` and `Sync` because their parts are: `cust` declares its streams, events and
// buffers so, and `Gpu` has locks around what it changes. The driver's functions may be called by any thread on which
// the context is current, which every function here ensures by `Gpu::enter`, those that drop included.
const _: () = {
    const fn sent_and_shared<T: Send + Sync>() {}
    sent_and_shared::<Gpu>();
    sent_and_shared::<Stream>();
    sent_and_shared::<Event>();
    sent_and_shared::<crate::DeviceArray<u32>>();
    sent_and_shared::<crate::DeviceOffsets>();
};

impl Gpu {
    /// A new stream, whose arrays are in the memory of this GPU.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub fn stream(&self) -> Result<Stream, Error> {
        let _entered = self.enter()?;
        let stream = ManuallyDrop::new(self.new_stream()?);
        Ok(Stream { shared: Arc::new(Shared { stream, gpu: self.clone() }) })
    }
}

impl Stream {
    /// The GPU of this stream.
    pub fn gpu(&self) -> &Gpu {
        &self.shared.gpu
    }

    /// The handle of this stream (`CUstream`), for the [raw layer](Gpu#the-raw-layer) and for other libraries. It is
    /// valid as long as this stream, a clone of it or one of its arrays lives.
    ///
    /// What uses the handle is `unsafe`, and has to leave the arrays of this stream as the calls of this library find
    /// them: work on these arrays is on this stream, and a graph that is captured from it is launched only while its
    /// arrays live, on this stream.
    pub fn handle(&self) -> *mut c_void {
        self.inner().as_inner().cast()
    }

    /// Waits until all work on this stream is done.
    ///
    /// # Errors
    /// [`Error::Device`] if some of the work has failed.
    pub fn synchronize(&self) -> Result<(), Error> {
        let _entered = self.gpu().enter()?;
        self.inner().synchronize().or_failure("cuStreamSynchronize")
    }

    /// An event that can be recorded on this stream.
    ///
    /// # Errors
    /// [`Error::Device`] where the driver fails.
    pub fn event(&self) -> Result<Event, Error> {
        self.event_with(EventFlags::DEFAULT)
    }

    fn event_with(&self, flags: EventFlags) -> Result<Event, Error> {
        let _entered = self.gpu().enter()?;
        let event = ManuallyDrop::new(cust::event::Event::new(flags).or_failure("cuEventCreate")?);
        Ok(Event { event, stream: self.clone() })
    }

    /// Lets later work of this stream wait for what is on `other` now.
    pub(super) fn wait_for(&self, other: &Self) -> Result<(), Error> {
        let _entered = self.gpu().enter()?;
        let now = cust::event::Event::new(EventFlags::DISABLE_TIMING).or_failure("cuEventCreate")?;
        now.record(other.inner()).or_failure("cuEventRecord")?;
        self.inner().wait_event(now, StreamWaitEventFlags::DEFAULT).or_failure("cuStreamWaitEvent")
    }

    /// Whether both are the same stream.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    pub(super) fn inner(&self) -> &Handle {
        &self.shared.stream
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
            self.stream.synchronize().or_failure("cuStreamSynchronize")?;
            // SAFETY: this is the only call, and the stream is not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.stream) };
            drop(entered);
            Ok(())
        });
        if ended.is_err() {
            // Work may still be under way, for instance in a capture: the kernels stay loaded.
            mem::forget(self.gpu.clone());
        }
    }
}

/// A point of a stream: the end of the work that was on it when the event was recorded.
///
/// ```no_run
/// # fn main() -> Result<(), merge_host::Error> {
/// let stream = merge_host::Gpu::new(0)?.stream()?;
/// let (start, end) = (stream.event()?, stream.event()?);
/// let mut keys = stream.upload(&[3u32, 1, 2])?;
/// let mut workspace = stream.zeroed(merge_host::Gpu::sort_workspace_bytes::<u32>(keys.len()))?;
/// start.record()?;
/// stream.sort(&mut keys, &mut workspace)?;
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

    /// The time from `start` to this event on the GPU, with a resolution of about 0.5 µs. Waits for this event. 0 if
    /// `start` is later.
    ///
    /// # Errors
    /// [`Error::Device`] if an event has not been recorded, if the two are of different GPUs, or if some of the work
    /// has failed.
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
            // SAFETY: this is the only call, and the event is not used afterwards. The driver keeps what it needs of an
            // event until the event has happened.
            unsafe { ManuallyDrop::drop(&mut self.event) };
        }
    }
}
