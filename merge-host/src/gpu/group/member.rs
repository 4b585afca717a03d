//! One GPU of a group.

use crate::Error;
use crate::gpu::failure::{OrFailure, succeeded};
use crate::gpu::launch::OnStream;
use crate::gpu::launch::exchange::Member;
use crate::gpu::{Address, Gpu, Stream};
use cust::event::{Event, EventFlags};
use cust::stream::StreamWaitEventFlags;
use cust::sys;
use std::ffi::c_int;

/// A GPU, a stream for its arrays, and another one for copies from other GPUs.
pub(super) struct GroupMember {
    pub(super) stream: Stream,
    pub(super) copies: Stream,
}

impl GroupMember {
    pub(super) fn new(gpu: Gpu) -> Result<Self, Error> {
        Ok(Self { stream: gpu.stream()?, copies: gpu.stream()? })
    }

    fn gpu(&self) -> &Gpu {
        self.stream.gpu()
    }

    fn context(&self) -> sys::CUcontext {
        self.gpu().shared.context.as_raw()
    }

    /// Lets this GPU read the memory of the others directly, where it can. Where it cannot, the driver copies through host memory.
    pub(super) fn reach(&self, others: &[Self]) -> Result<(), Error> {
        let _entered = self.gpu().enter()?;
        for other in others {
            let (here, there) = (self.gpu().ordinal() as c_int, other.gpu().ordinal() as c_int);
            let mut can = 0;
            if here == there {
                continue;
            }
            // SAFETY: the driver writes one number.
            succeeded("cuDeviceCanAccessPeer", unsafe { sys::cuDeviceCanAccessPeer(&mut can, here, there) })?;
            if can == 0 {
                continue;
            }
            // SAFETY: both contexts live, and this one is current.
            match unsafe { sys::cuCtxEnablePeerAccess(other.context(), 0) } {
                // Another group, or another library, has done so.
                sys::cudaError_enum::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => {}
                // There are only so many GPUs that one may reach; copies go through host memory then.
                sys::cudaError_enum::CUDA_ERROR_TOO_MANY_PEERS => {}
                code => succeeded("cuCtxEnablePeerAccess", code)?,
            }
        }
        Ok(())
    }

    /// Lets later work of `stream`, one of this member, wait for an event of any member.
    fn wait(&self, stream: &Stream, event: Event) -> Result<(), Error> {
        let _entered = self.gpu().enter()?;
        stream.inner().wait_event(event, StreamWaitEventFlags::DEFAULT).or_failure("cuStreamWaitEvent")
    }

    /// The end of what is on `stream`, one of this member, now.
    fn end_of(&self, stream: &Stream) -> Result<Event, Error> {
        let _entered = self.gpu().enter()?;
        let event = Event::new(EventFlags::DISABLE_TIMING).or_failure("cuEventCreate")?;
        event.record(stream.inner()).or_failure("cuEventRecord")?;
        Ok(event)
    }
}

impl Member for GroupMember {
    type Queue<'a> = OnStream<'a>;
    type Event = Event;

    fn with_queue<T>(&self, work: impl FnOnce(&OnStream<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let _entered = self.gpu().enter()?;
        work(&self.gpu().on_stream(self.stream.inner()))
    }

    unsafe fn copy(&self, other: &Self, from: Address, to: Address, bytes: usize) -> Result<(), Error> {
        let _entered = self.gpu().enter()?;
        let stream = self.copies.inner().as_inner();
        // SAFETY: the caller's promise; both contexts live.
        let code = unsafe { sys::cuMemcpyPeerAsync(to, self.context(), from, other.context(), bytes, stream) };
        succeeded("cuMemcpyPeerAsync", code)
    }

    fn copied(&self) -> Result<Event, Error> {
        self.end_of(&self.copies)
    }

    fn launched(&self) -> Result<Event, Error> {
        self.end_of(&self.stream)
    }

    fn launch_after(&self, event: Event) -> Result<(), Error> {
        self.wait(&self.stream, event)
    }

    fn copy_after(&self, event: Event) -> Result<(), Error> {
        self.wait(&self.copies, event)
    }

    unsafe fn write(&self, to: Address, words: &[u64]) -> Result<(), Error> {
        let _entered = self.gpu().enter()?;
        let stream = self.stream.inner().as_inner();
        // SAFETY: the caller's promise for the words. Memory of the host that is not page-locked has been read when the call returns.
        let code = unsafe { sys::cuMemcpyHtoDAsync_v2(to, words.as_ptr().cast(), size_of_val(words), stream) };
        succeeded("cuMemcpyHtoDAsync", code)
    }

    unsafe fn read(&self, from: Address, words: &mut [u64]) -> Result<(), Error> {
        let _entered = self.gpu().enter()?;
        let stream = self.stream.inner().as_inner();
        // SAFETY: as above, and the stream is waited for before the words are used.
        let code = unsafe { sys::cuMemcpyDtoHAsync_v2(words.as_mut_ptr().cast(), from, size_of_val(words), stream) };
        let waited = self.stream.synchronize();
        succeeded("cuMemcpyDtoHAsync", code)?;
        waited
    }
}
