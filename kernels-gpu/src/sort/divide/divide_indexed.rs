//! The last step of a division of keys with their indices, and values: they go the ways of the keys.
//!
//! ```text
//!   keys       │ c a b a │     to slots of shared memory, by their digits,
//!   indices    │ 0 1 2 3 │     and indices and values to the same slots of theirs,
//!   values     │ . . . . │     by asynchronous copies; then all to the same places
//! ```
//!
//! Keys that are all equal are divided by their indices.

use super::divide::add_alike;
use super::parts::{Part, Parts};
use super::sectors::{self, Along, PartMemory, move_part, sector};
use super::workspace::{Arrays, Elements, Job, Workspace};
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Bytes of dynamic shared memory for tiles of so many threads, with so many keys each, of which up to so many stay from one tile to the next:
/// keys of `key_bytes` bytes with values of `value_bytes`, or 0.
pub const fn shared_bytes(tile: (usize, usize, usize), key_bytes: usize, value_bytes: usize) -> u32 {
    sectors::shared_bytes(tile, key_bytes + size_of::<u32>() + value_bytes)
}

/// Kernel: as [`divide`](super::divide::divide), for keys that come with their indices, which this notes at the first level, and with
/// values if `VALUES`.
///
/// # Safety
/// As for `divide`, for all arrays of `from` and `to`, with [`shared_bytes`]. There are no values unless `VALUES`.
#[kernel(
    u32v0 = <u32, u32, false, { ROW.divide_4v0.threads }, { ROW.divide_4v0.items_per_thread }, { ROW.divide_4v0.left }> within (ROW.divide_4v0.threads, ROW.divide_4v0.blocks),
    u64v0 = <u64, u32, false, { ROW.divide_8v0.threads }, { ROW.divide_8v0.items_per_thread }, { ROW.divide_8v0.left }> within (ROW.divide_8v0.threads, ROW.divide_8v0.blocks),
    u32v4 = <u32, u32, true, { ROW.divide_4v4.threads }, { ROW.divide_4v4.items_per_thread }, { ROW.divide_4v4.left }> within (ROW.divide_4v4.threads, ROW.divide_4v4.blocks),
    u64v4 = <u64, u32, true, { ROW.divide_8v4.threads }, { ROW.divide_8v4.items_per_thread }, { ROW.divide_8v4.left }> within (ROW.divide_8v4.threads, ROW.divide_8v4.blocks),
    u32v8 = <u32, u64, true, { ROW.divide_4v8.threads }, { ROW.divide_4v8.items_per_thread }, { ROW.divide_4v8.left }> within (ROW.divide_4v8.threads, ROW.divide_4v8.blocks),
    u64v8 = <u64, u64, true, { ROW.divide_8v8.threads }, { ROW.divide_8v8.items_per_thread }, { ROW.divide_8v8.left }> within (ROW.divide_8v8.threads, ROW.divide_8v8.blocks),
)]
pub unsafe fn divide_indexed<
    B: Bits,
    V: Word,
    const VALUES: bool,
    const NT: usize,
    const VT: usize,
    const LEFT: usize,
>(
    job: Job,
    from: Elements<B, V>,
    to: Elements<B, V>,
    level: u32,
    coding: Coding<B>,
) {
    // SAFETY: the caller's promise.
    let (workspace, from, to) =
        unsafe { (Workspace::new(&job), from.arrays(job.n, level > 0, VALUES), to.arrays(job.n, true, VALUES)) };
    // SAFETY: the caller's promise; barriers divide the accesses.
    let (memory, indices, values) = unsafe {
        let memory = PartMemory::<B, LEFT>::at_start::<NT, VT>();
        let keys_end = PartMemory::<B, LEFT>::end::<NT, VT>();
        let values = Slots::<V>::at(keys_end, if VALUES { NT * VT } else { 0 }, if VALUES { LEFT } else { 0 });
        (memory, Slots::<u32>::at(values.end, NT * VT, LEFT), values)
    };
    let along = IndicesAndValues::<V, VALUES> {
        from: (from.indices, from.values),
        to: (to.indices, to.values),
        first_level: level == 0,
        indices,
        values,
    };
    for part in Parts::<B>::of(&job, workspace, level, const { sector(LEFT) }) {
        // SAFETY: all threads of the block are here.
        unsafe {
            if part.number::<B>().is_index {
                move_equal_keys::<B, V, VALUES, NT, VT, LEFT>(part, from, level, coding, memory, indices.all, to);
            } else {
                move_part::<B, NT, VT, LEFT>(part, from.keys, coding, memory, to.keys, &along);
            }
        }
    }
}

/// Shared memory for what goes along with keys: in their slots, and with those that are left.
#[derive(Clone, Copy)]
struct Slots<T> {
    all: Shared<T>,
    left: Shared<T>,
    /// Where it ends, in bytes.
    end: u32,
}

impl<T: Word> Slots<T> {
    /// For tiles of `tile` keys, of which up to `left` stay, from byte `start` on.
    ///
    /// # Safety
    /// As for [`Shared::dynamic`].
    #[inline(always)]
    #[track_caller]
    unsafe fn at(start: u32, tile: usize, left: usize) -> Self {
        let (slots, left, bytes) = ((tile + left) as u32, left as u32, size_of::<T>() as u32);
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                all: Shared::dynamic(start, slots),
                left: Shared::dynamic(start + slots * bytes, left),
                end: start + (slots + left) * bytes,
            }
        }
    }

    /// Moves what is in `slots` to `places`.
    #[inline(always)]
    #[track_caller]
    fn leave<const N: usize>(self, to: GlobalMut<T>, slots: [u32; N], places: [u32; N]) {
        let moved = slots.map(|slot| self.all.get(slot));
        for i in 0..N {
            to.set(places[i] as usize, moved[i]);
        }
    }
}

/// Indices, and values if `VALUES`.
struct IndicesAndValues<V, const VALUES: bool> {
    from: (GlobalMut<u32>, GlobalMut<V>),
    to: (GlobalMut<u32>, GlobalMut<V>),
    /// Whether no indices are there yet.
    first_level: bool,
    indices: Slots<u32>,
    values: Slots<V>,
}

impl<V: Word, const VALUES: bool> Along for IndicesAndValues<V, VALUES> {
    #[inline(always)]
    #[track_caller]
    fn enter(&self, at: u32, slot: u32) {
        if self.first_level {
            self.indices.all.set(slot, at);
        } else {
            self.indices.all.copy_async_mut(slot, self.from.0, at as usize);
        }
        if VALUES {
            self.values.all.copy_async_mut(slot, self.from.1, at as usize);
        }
    }

    #[inline(always)]
    #[track_caller]
    fn enter_again(&self, i: u32, slot: u32) {
        self.indices.all.set(slot, self.indices.left.get(i));
        if VALUES {
            self.values.all.set(slot, self.values.left.get(i));
        }
    }

    #[inline(always)]
    fn wait(&self) {
        shared::wait_for_copies();
    }

    #[inline(always)]
    #[track_caller]
    fn leave<const N: usize>(&self, slots: [u32; N], places: [u32; N]) {
        self.indices.leave(self.to.0, slots, places);
        if VALUES {
            self.values.leave(self.to.1, slots, places);
        }
    }

    #[inline(always)]
    #[track_caller]
    fn keep(&self, slot: u32, i: u32) {
        self.indices.left.set(i, self.indices.all.get(slot));
        if VALUES {
            self.values.left.set(i, self.values.all.get(slot));
        }
    }
}

/// Moves the keys of a part of which most are equal, and what goes along with them, by their numbers, which are made of their indices.
/// These descend seldom, so that digits of neighbours are alike.
///
/// # Safety
/// All threads of the block make this call. Ends with a barrier.
#[inline(always)]
unsafe fn move_equal_keys<B: Bits, V: Word, const VALUES: bool, const NT: usize, const VT: usize, const LEFT: usize>(
    part: Part,
    from: Arrays<B, V>,
    level: u32,
    coding: Coding<B>,
    memory: PartMemory<B, LEFT>,
    origins: Shared<u32>,
    to: Arrays<B, V>,
) {
    let Part { begin, end, .. } = part;
    let (digits, number, room) = (part.digits::<B>(), part.number(), part.room());
    let thread = thread::thread_idx_x();
    let key = |at: u32| coding.encode(from.keys.get(at as usize));
    let index = |at: u32| if level > 0 { from.indices.get(at as usize) } else { at };
    let digit = |at: u32| digits.of(number.of(key(at), index(at)));
    let mut start = begin;
    while start < end {
        let tile = (end - start).min((NT * VT) as u32);
        let add = |i: u32| add_alike(memory.begins, digit(start + i), (i | (WARP_SIZE - 1)) < tile);
        memory.clear::<NT>(room.digits());
        thread::sync_threads();
        let mut i = thread;
        while i < tile {
            add(i);
            i += NT as u32;
        }
        thread::sync_threads();
        // SAFETY: the caller's promise.
        unsafe { memory.reserve_at_once::<NT>(room) };
        let mut i = thread;
        while i < tile {
            origins.set(add(i), start + i);
            i += NT as u32;
        }
        thread::sync_threads();
        let mut slot = thread;
        while slot < tile {
            let origin = origins.get(slot);
            let place = memory.distances.get(digit(origin)).wrapping_add(slot);
            let value = if VALUES { from.values.get(origin as usize) } else { V::from_register(0) };
            to.set(place, (key(origin), index(origin), value));
            slot += NT as u32;
        }
        thread::sync_threads();
        start += tile;
    }
}
