//! Copies between the host and the GPU's memory, by several threads at once, through page-locked buffers.
//!
//! A GPU reads page-locked memory by itself, several times as fast as one thread can fill it. So several threads do, each
//! with two buffers: while the GPU empties one, the thread fills the other.
//!
//! ```text
//!   thread 0   piece 0 ─► buffer ─► GPU      piece 2 ─► buffer ─► GPU
//!              piece 4 ─► buffer ─► GPU      …
//!   thread 1   piece 1 ─► buffer ─► GPU      piece 3 ─► buffer ─► GPU
//! ```
//!
//! Where a piece comes from, or goes to, is the caller's business: a slice, or a file.

use super::Gpu;
use super::failure::OrFailure;
use crate::Error;
use cust::memory::{AsyncCopyDestination, DeviceBuffer, LockedBuffer};
use cust::stream::Stream;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a piece and of a buffer.
pub(super) const PIECE: usize = 2 << 20;
/// Threads that copy, at most: enough to fill a bus.
const MOST_THREADS: usize = 16;

/// A page-locked buffer, and the stream of the copies to and from it.
struct Lane {
    buffer: LockedBuffer<u8>,
    stream: Stream,
}

/// The lanes that nobody uses at the moment. Page-locking memory takes long, so they are kept.
#[derive(Default)]
pub(super) struct Staging(Mutex<Vec<Lane>>);

impl Staging {
    fn idle(&self) -> MutexGuard<'_, Vec<Lane>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees all lanes. Their context has to be current.
    pub(super) fn clear(&self) {
        self.idle().clear();
    }
}

/// Two lanes in use. They go back when they are dropped.
struct Lanes<'a> {
    two: Vec<Lane>,
    home: &'a Staging,
}

impl<'a> Lanes<'a> {
    fn take(gpu: &'a Gpu) -> Result<Self, Error> {
        gpu.make_current()?;
        let mut lanes = Self { two: Vec::new(), home: &gpu.staging };
        while lanes.two.len() < 2 {
            let idle = lanes.home.idle().pop();
            lanes.two.push(idle.map_or_else(|| Lane::new(gpu), Ok)?);
        }
        Ok(lanes)
    }
}

impl Drop for Lanes<'_> {
    fn drop(&mut self) {
        // Whatever went wrong, no copy may be under way when a buffer gets another user.
        for lane in &self.two {
            let _ = lane.stream.synchronize();
        }
        self.home.idle().append(&mut self.two);
    }
}

impl Lane {
    fn new(gpu: &Gpu) -> Result<Self, Error> {
        // SAFETY: nobody reads a buffer before it has been written to.
        let buffer = unsafe { LockedBuffer::uninitialized(PIECE) }.or_failure("cuMemAllocHost")?;
        Ok(Self { buffer, stream: gpu.stream()? })
    }

    /// Waits until the GPU is done with the buffer.
    fn wait(&self) -> Result<(), Error> {
        self.stream.synchronize().or_failure("a copy to or from the GPU")
    }
}

/// The pieces of an array of bytes, which the threads take one after the other.
struct Pieces {
    bytes: usize,
    next: AtomicUsize,
}

impl Pieces {
    /// Where the next piece is, if there is one and nobody has failed.
    fn take(&self) -> Option<Range<usize>> {
        let begin = self.next.fetch_add(PIECE, Ordering::Relaxed);
        (begin < self.bytes).then(|| begin..self.bytes.min(begin + PIECE))
    }

    /// Calls `work` on several threads, which share the pieces of `bytes` bytes. Gives the first error, after which no
    /// piece is begun.
    fn share<E: Send>(bytes: usize, work: impl Fn(&Self) -> Result<(), E> + Sync) -> Result<(), E> {
        let pieces = Self { bytes, next: AtomicUsize::new(0) };
        let threads = bytes.div_ceil(PIECE).min(rayon::current_num_threads()).min(MOST_THREADS);
        (0..threads).into_par_iter().with_max_len(1).try_for_each(|_| {
            let result = work(&pieces);
            if result.is_err() {
                pieces.next.store(bytes, Ordering::Relaxed);
            }
            result
        })
    }
}

impl Gpu {
    /// Fills `to` with what `read` gives: it is called by several threads at once, with the index of a byte and room for
    /// those from there on.
    pub(super) fn fill<E: From<Error> + Send>(
        &self,
        to: &mut DeviceBuffer<u8>,
        read: impl Fn(usize, &mut [u8]) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let to = &*to;
        Pieces::share(to.len(), |pieces| {
            let mut lanes = Lanes::take(self)?;
            for turn in 0.. {
                let Some(range) = pieces.take() else { break };
                let lane = &mut lanes.two[turn % 2];
                lane.wait()?;
                let part = &mut lane.buffer[..range.len()];
                read(range.start, part)?;
                // SAFETY: the buffer is left alone until the stream has been waited for; `to` lives until all threads are
                // done, and no other one has this piece of it.
                unsafe { to.index(range).async_copy_from(part, &lane.stream) }.or_failure("cuMemcpyHtoDAsync")?;
            }
            Ok(lanes.two.iter().try_for_each(Lane::wait)?)
        })
    }

    /// Hands what is in `from` to `write`: it is called by several threads at once, with the index of a byte and those
    /// from there on.
    pub(super) fn drain<E: From<Error> + Send>(
        &self,
        from: &DeviceBuffer<u8>,
        write: impl Fn(usize, &[u8]) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        Pieces::share(from.len(), |pieces| {
            let mut lanes = Lanes::take(self)?;
            let mut under_way: Option<Range<usize>> = None;
            for turn in 0.. {
                let next = pieces.take();
                if let Some(range) = next.clone() {
                    let lane = &mut lanes.two[turn % 2];
                    let part = &mut lane.buffer[..range.len()];
                    // SAFETY: the buffer is left alone until the stream has been waited for, and `from` is borrowed until
                    // all threads are done.
                    unsafe { from.index(range).async_copy_to(part, &lane.stream) }.or_failure("cuMemcpyDtoHAsync")?;
                }
                if let Some(range) = under_way {
                    let lane = &lanes.two[(turn + 1) % 2];
                    lane.wait()?;
                    write(range.start, &lane.buffer[..range.len()])?;
                }
                if next.is_none() {
                    break;
                }
                under_way = next;
            }
            Ok(())
        })
    }
}
