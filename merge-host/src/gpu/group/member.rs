//! One GPU of a group.

use crate::Error;
use crate::gpu::failure::OrFailure;
use crate::gpu::launch::exchange::{Member, Searches, search_words};
use crate::gpu::launch::{OnStream, Queue};
use crate::gpu::{Address, Gpu, Stream};
use cust::context::{Context, CurrentContext};
use cust::error::CudaError;
use cust::event::{Event, EventFlags};
use cust::memory::{DeviceSlice, LockedBuffer};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A GPU, a stream for its arrays, and a second stream for copies from other GPUs.
pub(super) struct GroupMember {
    pub(super) stream: Stream,
    pub(super) copies: Stream,
    searches: Mutex<LockedBuffer<u64>>,
}

impl Drop for GroupMember {
    fn drop(&mut self) {
        // The driver frees page-locked memory only while its context exists and is current.
        if let (Ok(_entered), Ok(none)) = (self.gpu().enter(), LockedBuffer::zeroed(0)) {
            self.searches = Mutex::new(none);
        }
    }
}

impl GroupMember {
    /// A member of a group of `members`.
    pub(super) fn new(gpu: Gpu, members: usize) -> Result<Self, Error> {
        let (stream, copies) = (gpu.stream()?, gpu.stream()?);
        let entered = gpu.enter()?;
        let searches = LockedBuffer::zeroed(search_words(members)).or_failure("cuMemAllocHost")?;
        drop(entered);
        Ok(Self { stream, copies, searches: Mutex::new(searches) })
    }

    fn gpu(&self) -> &Gpu {
        self.stream.gpu()
    }

    fn context(&self) -> &Context {
        &self.gpu().shared.context
    }

    /// Lets this GPU read the memory of the others directly, where it can. Otherwise the driver copies through host
    /// memory.
    pub(super) fn reach(&self, others: &[Self]) -> Result<(), Error> {
        let _entered = self.gpu().enter()?;
        for other in others {
            let (here, there) = (self.context().device(), other.context().device());
            if here == there || !here.can_access_peer(there).or_failure("cuDeviceCanAccessPeer")? {
                continue;
            }
            match CurrentContext::enable_peer_access(other.context()) {
                // Another group or another library has enabled it before.
                Err(CudaError::PEER_ACCESS_ALREADY_ENABLED) => {}
                // A GPU can reach a limited number of peers. Copies from further ones go through host memory.
                Err(CudaError::TOO_MANY_PEERS) => {}
                enabled => enabled.or_failure("cuCtxEnablePeerAccess")?,
            }
        }
        Ok(())
    }

    /// Makes later work of `stream`, one of this member's streams, wait for an event of any member.
    fn let_wait(&self, stream: &Stream, event: Event) -> Result<(), Error> {
        let _entered = self.gpu().enter()?;
        stream.inner().wait_event(&event).or_failure("cuStreamWaitEvent")
    }

    /// The end of the work that is on `stream`, one of this member's streams, now.
    fn end_of(&self, stream: &Stream) -> Result<Event, Error> {
        let _entered = self.gpu().enter()?;
        let event = Event::new(EventFlags::DISABLE_TIMING).or_failure("cuEventCreate")?;
        event.record(stream.inner()).or_failure("cuEventRecord")?;
        Ok(event)
    }
}

impl Member for GroupMember {
    type Event = Event;

    fn with_queue(&self, work: impl FnOnce(&dyn Queue) -> Result<(), Error>) -> Result<(), Error> {
        let _entered = self.gpu().enter()?;
        work(&OnStream::new(&self.stream))
    }

    unsafe fn copy(&self, other: &Self, from: Address, to: Address, bytes: usize) -> Result<(), Error> {
        let _entered = self.gpu().enter()?;
        let [to, from] = [to, from].map(|address| DeviceSlice::from_raw_parts(address, bytes));
        let (here, there) = (self.context().handle(), other.context().handle());
        // SAFETY: `from` is in the memory of `other` and `to` in this member's, and nothing else uses them, as
        // `Member::copy` requires. Both members keep their contexts alive.
        unsafe { to.async_copy_from_peer(here, from, there, self.copies.inner()) }.or_failure("cuMemcpyPeerAsync")
    }

    fn copied(&self) -> Result<Event, Error> {
        self.end_of(&self.copies)
    }

    fn launched(&self) -> Result<Event, Error> {
        self.end_of(&self.stream)
    }

    fn launch_after(&self, event: Event) -> Result<(), Error> {
        self.let_wait(&self.stream, event)
    }

    fn copy_after(&self, event: Event) -> Result<(), Error> {
        self.let_wait(&self.copies, event)
    }

    type Searches<'a> = InUse<'a>;

    fn searches(&self) -> InUse<'_> {
        InUse(self.searches.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn wait(&self) -> Result<(), Error> {
        self.stream.synchronize()
    }
}

/// Page-locked memory for searches, in use.
pub(super) struct InUse<'a>(MutexGuard<'a, LockedBuffer<u64>>);

impl Searches for InUse<'_> {
    fn address(&self) -> Address {
        // The driver maps page-locked memory for all GPUs, at its address on the host.
        self.0.as_ptr() as Address
    }

    fn write(&mut self, words: &[u64]) {
        self.0[..words.len()].copy_from_slice(words);
    }

    fn read(&self, words: &mut [u64]) {
        words.copy_from_slice(&self.0[..words.len()]);
    }
}
