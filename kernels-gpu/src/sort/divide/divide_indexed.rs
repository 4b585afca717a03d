//! The last step of a division of keys with their indices, and values: they go the ways of the keys.
//!
//! ```text
//!   tile       │ 3 1 0 3 2 0 1 3 │     each thread keeps the slots that its keys have gone to,
//!   places     │ . . . . . . . . │     and notes where the keys of its slots have gone
//!   values     │ a b c d e f g h │     then indices and values go to the same slots, and to the same places
//! ```
//!
//! Keys that are all equal are divided by their indices.

use super::digits::Digits;
use super::divide::{self, BATCH, MoveTile, Tile, TileMemory, Ways, add_alike, each_tile, is_here, load, move_keys};
use super::workspace::{Arrays, Elements, Job, Workspace};
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Bytes of dynamic shared memory for tiles of that many keys, where keys and values have up to `bytes` bytes.
pub const fn shared_bytes(tile: usize, bytes: usize) -> u32 {
    divide::shared_bytes(tile, bytes) + (tile * size_of::<u32>()) as u32
}

/// Kernel: as [`divide`](super::divide::divide), for keys that come with their indices, which this notes at the first level, and with
/// values if `VALUES`.
///
/// # Safety
/// As for `divide`, for all arrays of `from` and `to`, with [`shared_bytes`]. There are no values unless `VALUES`.
#[kernel(
    u32v0 = <u32, u32, false, { ROW.divide_4v0.threads }, { ROW.divide_4v0.items_per_thread }> within (ROW.divide_4v0.threads, BLOCKS),
    u64v0 = <u64, u32, false, { ROW.divide_8v.threads }, { ROW.divide_8v.items_per_thread }> within (ROW.divide_8v.threads, BLOCKS),
    u32v4 = <u32, u32, true, { ROW.divide_4v4.threads }, { ROW.divide_4v4.items_per_thread }> within (ROW.divide_4v4.threads, BLOCKS),
    u64v4 = <u64, u32, true, { ROW.divide_8v.threads }, { ROW.divide_8v.items_per_thread }> within (ROW.divide_8v.threads, BLOCKS),
    u32v8 = <u32, u64, true, { ROW.divide_4v8.threads }, { ROW.divide_4v8.items_per_thread }> within (ROW.divide_4v8.threads, BLOCKS),
    u64v8 = <u64, u64, true, { ROW.divide_8v.threads }, { ROW.divide_8v.items_per_thread }> within (ROW.divide_8v.threads, BLOCKS),
)]
pub unsafe fn divide_indexed<B: Bits, V: Word, const VALUES: bool, const NT: usize, const VT: usize>(
    job: Job,
    from: Elements<B, V>,
    to: Elements<B, V>,
    level: u32,
    coding: Coding<B>,
) {
    // SAFETY: the caller's promise.
    let (workspace, from, to) =
        unsafe { (Workspace::new(&job), from.arrays(job.n, level > 0, VALUES), to.arrays(job.n, true, VALUES)) };
    let bytes = const { if VALUES && size_of::<V>() > size_of::<B>() { size_of::<V>() } else { size_of::<B>() } };
    // SAFETY: the caller's promise; barriers divide the accesses.
    let (memory, places) = unsafe {
        let slots = const { (NT * VT) as u32 };
        let places_at = const { divide::shared_bytes(NT * VT, 0) } + slots * bytes as u32;
        (TileMemory::<B>::at_start(NT * VT, bytes), Shared::<u32>::dynamic(places_at, slots))
    };
    let work = WithIndices::<B, V, VALUES, NT, VT> { from, to, level, coding, memory, places };
    each_tile(workspace, level, (NT * VT) as u32, &work);
}

/// Blocks of a multiprocessor.
const BLOCKS: usize = 2;

/// The move of a tile's keys with their indices, and their values if `VALUES`.
struct WithIndices<B, V, const VALUES: bool, const NT: usize, const VT: usize> {
    from: Arrays<B, V>,
    to: Arrays<B, V>,
    level: u32,
    coding: Coding<B>,
    memory: TileMemory<B>,
    places: Shared<u32>,
}

impl<B: Bits, V: Word, const VALUES: bool, const NT: usize, const VT: usize> MoveTile<B>
    for WithIndices<B, V, VALUES, NT, VT>
{
    #[inline(always)]
    #[track_caller]
    fn move_tile(&self, Tile { digits, number, counters, first, len }: Tile<B>) {
        let Self { from, to, level, coding, memory, places } = *self;
        let index = |at: u32| if level > 0 { from.indices.get((first + at) as usize) } else { first + at };
        let value = |at: u32| from.values.get((first + at) as usize);
        // SAFETY: all threads of the block are here; barriers divide the accesses.
        unsafe {
            if number.is_index {
                let key = |at: u32| coding.encode(from.keys.get((first + at) as usize));
                let set = |at: u32, place: u32| {
                    let value = if VALUES { value(at) } else { V::from_register(0) };
                    to.set(place, (key(at), index(at), value));
                };
                let number = |at| number.of(key(at), index(at));
                move_equal_keys::<B, NT>(number, set, len, digits, counters, memory, places);
                return;
            }
            let mut ways = Kept { slots: [0; VT], places };
            let keys = from.keys.slice(first as usize, len as usize);
            let load = || load::<B, NT, VT, false>(keys, coding);
            move_keys::<B, NT, VT, false>(load, len, digits, counters, memory, to.keys, &mut ways);
            let slots = const { (NT * VT) as u32 };
            let indices = Shared::<u32>::dynamic(0, slots);
            let send = |slot, at: u32| {
                if level > 0 {
                    indices.copy_async_mut(slot, from.indices, (first + at) as usize);
                } else {
                    indices.set(slot, first + at);
                }
            };
            carry::<u32, NT, VT>(&ways, len, send, indices, to.indices);
            if VALUES {
                let values = Shared::<V>::dynamic(0, slots);
                let send = |slot, at: u32| values.copy_async_mut(slot, from.values, (first + at) as usize);
                carry::<V, NT, VT>(&ways, len, send, values, to.values);
            }
        }
    }
}

/// The ways that the keys of a tile have gone.
struct Kept<const VT: usize> {
    /// Two in a word, so that the upper half of the array is not used.
    slots: [u32; VT],
    places: Shared<u32>,
}

impl<const VT: usize> Kept<VT> {
    #[inline(always)]
    fn slot(&self, i: usize) -> u32 {
        if i.is_multiple_of(2) { self.slots[i / 2] & 0xffff } else { self.slots[i / 2] >> 16 }
    }
}

impl<const VT: usize> Ways for Kept<VT> {
    #[inline(always)]
    fn to_slot(&mut self, i: usize, slot: u32) {
        self.slots[i / 2] |= if i.is_multiple_of(2) { slot } else { slot << 16 };
    }

    #[inline(always)]
    #[track_caller]
    fn to_place(&mut self, slot: u32, place: u32) {
        self.places.set(slot, place);
    }
}

/// Moves what belongs to the keys of a tile of `len`, and what `send` sends for each to its slot of `shared`.
///
/// # Safety
/// All threads of the block make this call.
#[inline(always)]
unsafe fn carry<T: Word, const NT: usize, const VT: usize>(
    ways: &Kept<VT>,
    len: u32,
    send: impl Fn(u32, u32),
    shared: Shared<T>,
    to: GlobalMut<T>,
) {
    let slot = |i: usize| thread::thread_idx_x() + (i * NT) as u32;
    // All have read what came before.
    thread::sync_threads();
    for i in 0..VT {
        if is_here::<NT, false>(i, len) {
            send(ways.slot(i), slot(i));
        }
    }
    shared::wait_for_copies();
    thread::sync_threads();
    // In batches, each of loads and then of stores: the compiler does not change their order, and they take long to arrive.
    for first in (0..VT).step_by(BATCH) {
        let rows = first..(first + BATCH).min(VT);
        let (mut moved, mut places) = ([T::from_register(0); BATCH], [0; BATCH]);
        for i in rows.clone() {
            if is_here::<NT, false>(i, len) {
                (moved[i - first], places[i - first]) = (shared.get(slot(i)), ways.places.get(slot(i)));
            }
        }
        for i in rows {
            if is_here::<NT, false>(i, len) {
                to.set(places[i - first] as usize, moved[i - first]);
            }
        }
    }
}

/// Moves the `len` keys of a tile, most of which are equal, by their numbers, which are made of their indices. These descend seldom, so
/// that digits of neighbours are alike. `set` moves what is at an index of the tile to a place.
///
/// # Safety
/// All threads of the block make this call.
#[inline(always)]
unsafe fn move_equal_keys<B: Bits, const NT: usize>(
    number: impl Fn(u32) -> B,
    set: impl Fn(u32, u32),
    len: u32,
    digits: Digits<B>,
    counters: GlobalMut<u32>,
    memory: TileMemory<B>,
    origins: Shared<u32>,
) {
    let thread = thread::thread_idx_x();
    let add = |at: u32| add_alike(memory.begins, digits.of(number(at)), (at | (WARP_SIZE - 1)) < len);
    memory.clear::<NT>(counters.len() as u32);
    thread::sync_threads();
    let mut at = thread;
    while at < len {
        add(at);
        at += NT as u32;
    }
    thread::sync_threads();
    // SAFETY: the caller's promise.
    let room = unsafe { memory.reserve::<NT>(counters) };
    let mut at = thread;
    while at < len {
        origins.set(add(at), at);
        at += NT as u32;
    }
    memory.settle(room, counters.len() as u32);
    thread::sync_threads();
    let mut slot = thread;
    while slot < len {
        let origin = origins.get(slot);
        set(origin, memory.distances.get(digits.of(number(origin))).wrapping_add(slot));
        slot += NT as u32;
    }
}
