//! The last step of a division of keys with their indices, and values: they go the ways of the keys.
//!
//! ```text
//!   tile       │ 3 1 0 3 2 0 1 3 │     keys go to shared memory in the order of their digits, as those alone do
//!   origins    │ 2 5 1 6 4 0 3 7 │     and so does where each was in the tile
//!   values     │ a b c d e f g h │     values stay in order: each is read where its key was, and goes where that goes
//! ```
//!
//! Keys that are all equal are divided by their indices: the numbers made of these go the ways of keys, and the keys go along.

use super::digits::{Digits, Number};
use super::divide::{
    Along, BATCH, MoveTile, Tile, TileMemory, add_alike, each_tile, is_here, load, move_keys, shared_bytes,
};
use super::workspace::{Arrays, Elements, Job, Workspace};
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Bytes of dynamic shared memory for tiles of that many keys of `key_bytes` bytes, with values of `value_bytes` bytes or 0.
pub const fn shared_bytes_indexed(tile: usize, key_bytes: usize, value_bytes: usize) -> u32 {
    let carried = (size_of::<u32>() + size_of::<u16>() + value_bytes) * tile;
    shared_bytes(tile, key_bytes).next_multiple_of(8) + carried as u32
}

/// Kernel: as [`divide`](super::divide::divide), for keys that come with their indices, which this notes at the first level, and with values if `VALUES`.
///
/// # Safety
/// As for `divide`, for all arrays of `from` and `to`, with [`shared_bytes_indexed`]. There are no values unless `VALUES`.
#[kernel(
    u32v0 = <u32, u32, false, { ROW.divide_indexed_4.threads }, { ROW.divide_indexed_4.items_per_thread }> within (ROW.divide_indexed_4.threads, 2),
    u64v0 = <u64, u32, false, { ROW.divide_indexed_8.threads }, { ROW.divide_indexed_8.items_per_thread }> within (ROW.divide_indexed_8.threads, 2),
    u32v4 = <u32, u32, true, { ROW.divide_indexed_4.threads }, { ROW.divide_indexed_4.items_per_thread }> within (ROW.divide_indexed_4.threads, 2),
    u64v4 = <u64, u32, true, { ROW.divide_indexed_8.threads }, { ROW.divide_indexed_8.items_per_thread }> within (ROW.divide_indexed_8.threads, 2),
    u32v8 = <u32, u64, true, { ROW.divide_indexed_4.threads }, { ROW.divide_indexed_4.items_per_thread }> within (ROW.divide_indexed_4.threads, 2),
    u64v8 = <u64, u64, true, { ROW.divide_indexed_8.threads }, { ROW.divide_indexed_8.items_per_thread }> within (ROW.divide_indexed_8.threads, 2),
)]
pub unsafe fn divide_indexed<B: Bits, V: Word, const VALUES: bool, const NT: usize, const VT: usize>(
    job: Job,
    from: Elements<B, V>,
    to: Elements<B, V>,
    level: u32,
    coding: Coding<B>,
) {
    // SAFETY: the caller's promise.
    let workspace = unsafe { Workspace::new(&job) };
    // SAFETY: the caller's promise.
    let (from, to) = unsafe { (from.arrays(job.n, level > 0, VALUES), to.arrays(job.n, true, VALUES)) };
    // SAFETY: the caller's promise; barriers divide the accesses.
    let (memory, values, indices, origins) = unsafe {
        let slots = const { (NT * VT) as u32 };
        let values_at = const { shared_bytes(NT * VT, size_of::<B>()).next_multiple_of(8) };
        let indices_at = values_at + if VALUES { slots * size_of::<V>() as u32 } else { 0 };
        let memory = TileMemory::<B>::at_start(NT * VT, size_of::<B>());
        let values = Shared::<V>::dynamic(values_at, if VALUES { slots } else { 0 });
        (
            memory,
            values,
            Shared::<u32>::dynamic(indices_at, slots),
            Shared::<u16>::dynamic(indices_at + slots * 4, slots),
        )
    };
    let work = WithIndices::<B, V, VALUES, NT, VT> { from, to, level, coding, memory, values, indices, origins };
    each_tile(workspace, level, (NT * VT) as u32, &work);
}

/// The move of a tile's keys with their indices, and their values if `VALUES`.
struct WithIndices<B, V, const VALUES: bool, const NT: usize, const VT: usize> {
    from: Arrays<B, V>,
    to: Arrays<B, V>,
    level: u32,
    coding: Coding<B>,
    memory: TileMemory<B>,
    values: Shared<V>,
    indices: Shared<u32>,
    /// For each slot where in the tile its key was.
    origins: Shared<u16>,
}

impl<B: Bits, V: Word, const VALUES: bool, const NT: usize, const VT: usize> MoveTile<B>
    for WithIndices<B, V, VALUES, NT, VT>
{
    #[inline(always)]
    #[track_caller]
    fn move_tile(&self, Tile { digits, number, counters, first, len }: Tile<B>) {
        let Self { from, to, level, coding, memory, values, indices, origins } = *self;
        let thread = thread::thread_idx_x();
        // What goes with the keys is on its way to shared memory meanwhile.
        for i in 0..VT {
            let slot = thread + (i * NT) as u32;
            if slot < len {
                if level > 0 {
                    indices.copy_async_mut(slot, from.indices, (first + slot) as usize);
                }
                if VALUES {
                    values.copy_async_mut(slot, from.values, (first + slot) as usize);
                }
            }
        }
        let keys = from.keys.slice(first as usize, len as usize);
        let first = if level > 0 { None } else { Some(first) };
        let carried = Carried::<B, V, VALUES> { keys, coding, indices, first, values, origins, to };
        // SAFETY: all threads of the block are here.
        unsafe {
            if number.is_index {
                move_equal_keys::<B, V, VALUES, NT>(carried, len, (number, digits), counters, memory);
            } else if len == (NT * VT) as u32 {
                let load = || load::<B, NT, VT, true>(keys, coding);
                move_keys::<B, NT, VT, true>(load, len, digits, counters, memory, to.keys, carried);
            } else {
                let load = || load::<B, NT, VT, false>(keys, coding);
                move_keys::<B, NT, VT, false>(load, len, digits, counters, memory, to.keys, carried);
            }
        }
    }
}

/// The indices of a tile's keys, and their values if `VALUES`.
#[derive(Clone, Copy)]
struct Carried<B, V, const VALUES: bool> {
    keys: GlobalMut<B>,
    coding: Coding<B>,
    indices: Shared<u32>,
    /// The index of the first key, if there are no others yet.
    first: Option<u32>,
    values: Shared<V>,
    /// For each slot where in the tile its key was.
    origins: Shared<u16>,
    to: Arrays<B, V>,
}

impl<B: Bits, V: Word, const VALUES: bool> Carried<B, V, VALUES> {
    #[inline(always)]
    #[track_caller]
    fn key(self, at: u32) -> B {
        self.coding.encode(self.keys.get(at as usize))
    }

    #[inline(always)]
    #[track_caller]
    fn index(self, at: u32) -> u32 {
        match self.first {
            Some(first) => first + at,
            None => self.indices.get(at),
        }
    }
}

impl<B: Bits, V: Word, const VALUES: bool> Along for Carried<B, V, VALUES> {
    #[inline(always)]
    #[track_caller]
    fn note(self, slot: u32, origin: u32) {
        self.origins.set(slot, origin as u16);
    }

    #[inline(always)]
    fn arrive(self) {
        shared::wait_for_copies();
    }

    #[inline(always)]
    #[track_caller]
    fn follow<const NT: usize, const VT: usize, const FULL: bool>(self, first: usize, len: u32, places: [u32; BATCH]) {
        let mut origins = [0; BATCH];
        for i in first..(first + BATCH).min(VT) {
            if is_here::<NT, FULL>(i, len) {
                origins[i - first] = self.origins.get(thread::thread_idx_x() + (i * NT) as u32) as u32;
            }
        }
        move_rows::<u32, NT, VT, FULL>(first, len, origins, places, |at| self.index(at), self.to.indices);
        if VALUES {
            move_rows::<V, NT, VT, FULL>(first, len, origins, places, |at| self.values.get(at), self.to.values);
        }
    }
}

/// Moves what belongs to the keys of this thread's slots from row `first` on: what `load` gives for where they were in the tile, to their
/// places.
#[inline(always)]
#[track_caller]
fn move_rows<T: Word, const NT: usize, const VT: usize, const FULL: bool>(
    first: usize,
    len: u32,
    origins: [u32; BATCH],
    places: [u32; BATCH],
    load: impl Fn(u32) -> T,
    to: GlobalMut<T>,
) {
    let rows = first..(first + BATCH).min(VT);
    let mut moved = [T::from_register(0); BATCH];
    for i in rows.clone() {
        if is_here::<NT, FULL>(i, len) {
            moved[i - first] = load(origins[i - first]);
        }
    }
    for i in rows {
        if is_here::<NT, FULL>(i, len) {
            to.set(places[i - first] as usize, moved[i - first]);
        }
    }
}

/// Moves the `len` keys of a tile, most of which are equal, by the numbers made of their indices. These descend seldom, so that digits of
/// neighbours are alike.
///
/// # Safety
/// All threads of the block make this call.
#[inline(always)]
unsafe fn move_equal_keys<B: Bits, V: Word, const VALUES: bool, const NT: usize>(
    carried: Carried<B, V, VALUES>,
    len: u32,
    (number, digits): (Number<B>, Digits<B>),
    counters: GlobalMut<u32>,
    memory: TileMemory<B>,
) {
    let thread = thread::thread_idx_x();
    let is_whole_warp = |at: u32| (at | (WARP_SIZE - 1)) < len;
    memory.clear::<NT>(counters.len() as u32);
    shared::wait_for_copies();
    thread::sync_threads();
    let mut at = thread;
    while at < len {
        add_alike(memory.begins, digits.of(number.of(carried.key(at), carried.index(at))), is_whole_warp(at));
        at += NT as u32;
    }
    thread::sync_threads();
    // SAFETY: the caller's promise.
    let room = unsafe { memory.reserve::<NT>(counters) };
    let mut at = thread;
    while at < len {
        let number = number.of(carried.key(at), carried.index(at));
        let slot = add_alike(memory.begins, digits.of(number), is_whole_warp(at));
        memory.keys.set(slot, number);
        carried.note(slot, at);
        at += NT as u32;
    }
    memory.settle(room, counters.len() as u32);
    thread::sync_threads();
    let mut slot = thread;
    while slot < len {
        let place = memory.distances.get(digits.of(memory.keys.get(slot))).wrapping_add(slot) as usize;
        let origin = carried.origins.get(slot) as u32;
        let value = if VALUES { carried.values.get(origin) } else { V::from_register(0) };
        carried.to.set(place as u32, (carried.key(origin), carried.index(origin), value));
        slot += NT as u32;
    }
}
