//! Copies between the host and the GPU's memory, by several threads at once, through page-locked buffers.
//!
//! A GPU reads page-locked memory by itself, several times as fast as one thread can fill it. Several threads therefore
//! fill staging buffers, two for each thread: while the GPU empties one buffer, the thread fills the other.
//!
//! ```text
//!   thread 0   block 0 ─► buffer ─► GPU      block 2 ─► buffer ─► GPU
//!              block 4 ─► buffer ─► GPU      …
//!   thread 1   block 1 ─► buffer ─► GPU      block 3 ─► buffer ─► GPU
//! ```
//!
//! The caller decides where a block comes from or goes to: a slice, or a file.
//!
//! All uploads go this way, small ones as well. `cuMemcpyHtoD` of pageable memory returns when the driver has read the
//! memory, which may be before the data has arrived. Only the default stream, and streams that wait for it, are ordered
//! after the rest of such a copy. A caller's stream may be another one, on which a kernel could read the old contents.
//! Here each copy is on a stream that the thread waits for, and its buffer is kept until then.

use super::Gpu;
use super::failure::OrFailure;
use crate::Error;
use crate::parallel::{self, Threads};
use crate::pool::processors;
use cust::memory::{DeviceSlice, LockedBuffer};
use cust::stream::Stream;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a block, and of a staging buffer.
pub(super) const BLOCK: usize = 2 << 20;
/// Most threads that copy: enough to saturate a bus.
const MOST_THREADS: usize = 16;
/// Fewest blocks for each thread: page-locking a thread's two buffers takes as long as copying four blocks.
const BLOCKS_PER_THREAD: usize = 4;

/// A page-locked staging buffer, and the stream of its copies.
struct Lane {
    buffer: LockedBuffer<u8>,
    stream: Stream,
}

/// The idle lanes. They are kept because page-locking memory takes long.
#[derive(Default)]
pub(super) struct Staging(Mutex<Vec<Lane>>);

impl Staging {
    fn idle(&self) -> MutexGuard<'_, Vec<Lane>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frees all idle lanes. Their context has to be current.
    pub(super) fn clear(&self) {
        self.idle().clear();
    }
}

/// One or two lanes in use. Dropping them returns them to `home`.
struct Lanes<'a> {
    in_use: Vec<Lane>,
    home: &'a Staging,
}

impl<'a> Lanes<'a> {
    /// Takes two lanes, or one lane if its buffer holds all `bytes` bytes.
    fn take(gpu: &'a Gpu, bytes: usize) -> Result<Self, Error> {
        gpu.make_current()?;
        let count = if bytes <= BLOCK { 1 } else { 2 };
        let mut lanes = Self { in_use: Vec::with_capacity(count), home: &gpu.shared.staging };
        while lanes.in_use.len() < count {
            let idle = lanes.home.idle().pop();
            lanes.in_use.push(idle.map_or_else(|| Lane::new(gpu), Ok)?);
        }
        Ok(lanes)
    }

    /// The lane for the thread's block number `turn`. Lanes alternate.
    fn lane(&mut self, turn: usize) -> &mut Lane {
        let count = self.in_use.len();
        &mut self.in_use[turn % count]
    }
}

impl Drop for Lanes<'_> {
    fn drop(&mut self) {
        // Also after an error: no copy may be under way when a buffer is used again.
        for lane in &self.in_use {
            let _ = lane.stream.synchronize();
        }
        self.home.idle().append(&mut self.in_use);
    }
}

impl Lane {
    fn new(gpu: &Gpu) -> Result<Self, Error> {
        gpu.make_current()?;
        let buffer = LockedBuffer::zeroed(BLOCK).or_failure("cuMemAllocHost")?;
        let stream = Stream::new(0).or_failure("cuStreamCreateWithPriority")?;
        Ok(Self { buffer, stream })
    }

    /// Waits until the GPU has finished with the buffer.
    fn wait(&self) -> Result<(), Error> {
        self.stream.synchronize().or_failure("a copy to or from the GPU")
    }
}

/// The blocks of an array of bytes. Threads take them one after the other.
struct Blocks {
    bytes: usize,
    next: AtomicUsize,
}

impl Blocks {
    /// Takes the next block, unless all blocks are taken or a thread has failed.
    fn take(&self) -> Option<Range<usize>> {
        let begin = self.next.fetch_add(BLOCK, Ordering::Relaxed);
        (begin < self.bytes).then(|| begin..self.bytes.min(begin + BLOCK))
    }

    /// Calls `work` on several of `threads`, which share the blocks of `bytes` bytes. Returns the first error. After an
    /// error no further block is begun.
    fn share<E: Send>(bytes: usize, threads: Threads, work: impl Fn(&Self) -> Result<(), E> + Sync) -> Result<(), E> {
        let blocks = Self { bytes, next: AtomicUsize::new(0) };
        let most = bytes.div_ceil(BLOCK * BLOCKS_PER_THREAD).min(processors()).min(MOST_THREADS);
        parallel::try_for_each_on(threads, 0..most, |_| {
            let result = work(&blocks);
            if result.is_err() {
                blocks.next.store(bytes, Ordering::Relaxed);
            }
            result
        })
    }
}

impl Gpu {
    /// Fills `to` with the bytes that `read` supplies. Several of `threads` call `read` at once, with the index of a
    /// byte and a buffer for the bytes from there on. Returns when all bytes have arrived.
    pub(super) fn fill<E: From<Error> + Send>(
        &self,
        to: &DeviceSlice,
        threads: Threads,
        read: impl Fn(usize, &mut [u8]) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        Blocks::share(to.len(), threads, |blocks| {
            let mut lanes = Lanes::take(self, to.len())?;
            for turn in 0.. {
                let Some(range) = blocks.take() else { break };
                let lane = lanes.lane(turn);
                lane.wait()?;
                let part = &mut lane.buffer[..range.len()];
                read(range.start, part)?;
                // SAFETY: the buffer is not touched until `wait` or the drop of `Lanes` has waited for the lane's
                // stream. `to` is borrowed until all threads are done, and no other thread has this block.
                unsafe { to.index(range).async_copy_from_host(part, &lane.stream) }.or_failure("cuMemcpyHtoDAsync")?;
            }
            Ok(lanes.in_use.iter().try_for_each(Lane::wait)?)
        })
    }

    /// Passes the contents of `from` to `write`. Several of `threads` call `write` at once, with the index of a byte
    /// and the bytes from there on.
    pub(super) fn drain<E: From<Error> + Send>(
        &self,
        from: &DeviceSlice,
        threads: Threads,
        write: impl Fn(usize, &[u8]) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        Blocks::share(from.len(), threads, |blocks| {
            let mut lanes = Lanes::take(self, from.len())?;
            // The block under way, and its turn, which gives its lane.
            let mut under_way: Option<(Range<usize>, usize)> = None;
            for turn in 0.. {
                let next = blocks.take();
                if let Some(range) = next.clone() {
                    let lane = lanes.lane(turn);
                    let part = &mut lane.buffer[..range.len()];
                    // SAFETY: the buffer is not touched until `wait` or the drop of `Lanes` has waited for the lane's
                    // stream. `from` is borrowed until all threads are done.
                    unsafe { from.index(range).async_copy_to_host(part, &lane.stream) }
                        .or_failure("cuMemcpyDtoHAsync")?;
                }
                if let Some((range, turn)) = under_way {
                    let lane = lanes.lane(turn);
                    lane.wait()?;
                    write(range.start, &lane.buffer[..range.len()])?;
                }
                let Some(range) = next else { break };
                under_way = Some((range, turn));
            }
            Ok(())
        })
    }

    /// Copies `from` to `to`, which has the same number of bytes. Returns when all bytes have arrived.
    pub(super) fn copy_to_gpu(&self, from: &[u8], to: &DeviceSlice) -> Result<(), Error> {
        self.fill(to, Threads::OfPool(usize::MAX), |begin, part| {
            part.copy_from_slice(&from[begin..][..part.len()]);
            Ok(())
        })
    }

    /// Copies `from` to `to`, which has the same number of bytes.
    pub(super) fn copy_from_gpu(&self, from: &DeviceSlice, to: &mut [u8]) -> Result<(), Error> {
        let parts: Vec<_> = to.chunks_mut(BLOCK).map(Mutex::new).collect();
        self.drain(from, Threads::OfPool(usize::MAX), |begin, part| {
            parts[begin / BLOCK].lock().unwrap_or_else(PoisonError::into_inner).copy_from_slice(part);
            Ok(())
        })
    }
}
