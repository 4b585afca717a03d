//! The last step of a division: keys go to the places of their digits.
//!
//! ```text
//!   tile       │ 3 1 0 3 2 0 1 3 │     the keys of each digit are counted, by atomic additions
//!   shared     │ 0 0 1 1 2 3 3 3 │     each key goes to a place of its digit, by another one
//!   to         … 0 0 … 1 1 … 2 … 3 3 3 …     neighbours go to neighbours, to room that a third one reserves
//! ```
//!
//! What belongs to the keys goes the same ways, one array after the other: through the same slots to the same places.

use super::DIGITS_CAPACITY;
use super::digits::Digits;
use super::workspace::{Elements, Job, Segment, Workspace};
use crate::block_scan::{BLOCK_WORDS, sum_before};
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Keys of a thread that are on their way at once.
const BATCH: usize = 8;

/// Words of shared memory besides the tile: those of a scan, and two for each digit.
const WORDS: u32 = BLOCK_WORDS + 2 * DIGITS_CAPACITY;

/// Bytes of dynamic shared memory for tiles of that many keys, where keys and values have up to `bytes` bytes.
pub const fn shared_bytes(tile: usize, bytes: usize) -> u32 {
    (tile * bytes) as u32 + WORDS * size_of::<u32>() as u32
}

/// The same for keys with their indices.
pub const fn shared_bytes_indexed(tile: usize, bytes: usize) -> u32 {
    shared_bytes(tile, bytes) + (tile * size_of::<u32>()) as u32
}

/// Kernel: moves the keys of each segment of `level` from `from` to `to`, to where `place_buckets` says.
///
/// # Safety
/// As for [`place_buckets`](super::place_buckets::place_buckets), which has been called before; `to` has capacity for all keys and
/// does not overlap `from`; tiles are of `NT * VT` keys, blocks of `NT` threads with [`shared_bytes`].
#[kernel(
    u32 = <u32, { ROW.divide_4.threads }, { ROW.divide_4.items_per_thread }> within (ROW.divide_4.threads, 3),
    u32many = <u32, { ROW.divide_many_4.threads }, { ROW.divide_many_4.items_per_thread }> within (ROW.divide_many_4.threads, 2),
    u64 = <u64, { ROW.divide_8.threads }, { ROW.divide_8.items_per_thread }> within (ROW.divide_8.threads, 3),
)]
pub unsafe fn divide<B: Bits, const NT: usize, const VT: usize>(
    job: Job,
    from: *mut B,
    to: *mut B,
    level: u32,
    coding: Coding<B>,
) {
    // SAFETY: the caller's promise.
    let Some(workspace) = (unsafe { Workspace::if_divided(&job) }) else { return };
    let n = job.n as usize;
    // SAFETY: the caller's promise.
    let (from, to) = unsafe { (GlobalMut::new(from, n), GlobalMut::new(to, n)) };
    // SAFETY: the caller's promise; barriers divide the accesses.
    let memory = unsafe { TileMemory::<B>::at_start(NT * VT, size_of::<B>()) };
    each_tile(workspace, level, NT * VT, |segment: Segment<B>, counters, first, len| {
        let from = from.slice(first as usize, len as usize);
        // SAFETY: all threads of the block are here.
        unsafe {
            if len == (NT * VT) as u32 {
                let load = || load::<B, NT, VT, true>(from, coding);
                move_keys::<B, NT, VT, true>(load, len, segment.digits, counters, memory, to, |_, _| ());
            } else {
                let load = || load::<B, NT, VT, false>(from, coding);
                move_keys::<B, NT, VT, false>(load, len, segment.digits, counters, memory, to, |_, _| ());
            }
        }
    });
}

/// Kernel: as [`divide`], for keys that come with their indices, which this notes at the first level, and with values if `VALUES`.
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
    let Some(workspace) = (unsafe { Workspace::if_divided(&job) }) else { return };
    // SAFETY: the caller's promise.
    let (from, to) = unsafe { (from.arrays(job.n, level > 0, VALUES), to.arrays(job.n, true, VALUES)) };
    let bytes = const { if VALUES && size_of::<V>() > size_of::<B>() { size_of::<V>() } else { size_of::<B>() } };
    // SAFETY: the caller's promise; barriers divide the accesses.
    let (memory, indices, values, places) = unsafe {
        let slots = const { (NT * VT) as u32 };
        let places = Shared::<u32>::dynamic(const { shared_bytes(NT * VT, 0) } + slots * bytes as u32, slots);
        (TileMemory::<B>::at_start(NT * VT, bytes), Shared::dynamic(0, slots), Shared::dynamic(0, slots), places)
    };
    each_tile(workspace, level, NT * VT, |Segment { number, digits, .. }, counters, first, len| {
        let index = |at: u32| if level > 0 { from.indices.get((first + at) as usize) } else { first + at };
        let key = |at: u32| coding.encode(from.keys.get((first + at) as usize));
        let value = |at: u32| from.values.get((first + at) as usize);
        let note = |slot, place| places.set(slot, place);
        // SAFETY: all threads of the block are here.
        unsafe {
            let slots = if number.is_index {
                let load = || each_row::<B, NT, VT>(len, |at| number.of(key(at), index(at)));
                // Numbers are left where keys will be: a thread overwrites what it has written.
                let slots = move_keys::<B, NT, VT, false>(load, len, digits, counters, memory, to.keys, note);
                carry::<B, NT, VT>(slots, len, key, memory.keys, places, to.keys);
                slots
            } else {
                let load = || each_row::<B, NT, VT>(len, key);
                move_keys::<B, NT, VT, false>(load, len, digits, counters, memory, to.keys, note)
            };
            carry::<u32, NT, VT>(slots, len, index, indices, places, to.indices);
            if VALUES {
                carry::<V, NT, VT>(slots, len, value, values, places, to.values);
            }
        }
    });
}

/// Calls `each` for the tiles of `level` that are this block's: with the segment, its counters, the index of the tile's first key and
/// how many keys it has.
#[inline(always)]
#[track_caller]
fn each_tile<B: Bits>(
    workspace: Workspace,
    level: u32,
    tile: usize,
    mut each: impl FnMut(Segment<B>, GlobalMut<u32>, u32, u32),
) {
    let tiles = workspace.tiles(level);
    let mut t = thread::block_idx_x();
    while t < tiles {
        let segment = workspace.segment::<B>(workspace.segment_of_tile(t));
        let first = (t - segment.first_tile) * tile as u32;
        t += thread::grid_dim_x();
        if segment.skipped {
            continue;
        }
        let counters = workspace.counters(segment.counters, segment.digits.count());
        each(segment, counters, segment.start + first, (segment.len - first).min(tile as u32));
        if t < tiles {
            thread::sync_threads();
        }
    }
}

/// Shared memory of a tile.
#[derive(Clone, Copy)]
struct TileMemory<B> {
    keys: Shared<B>,
    scan: Shared<u32>,
    /// For each digit how many keys have it, and then the slot of the first.
    begins: Shared<u32>,
    /// For each digit how far its slots are from where the keys go.
    distances: Shared<u32>,
}

impl<B: Bits> TileMemory<B> {
    /// # Safety
    /// The launch has [`shared_bytes`] for tiles of `slots` keys of `bytes` bytes; barriers divide writing from reading.
    #[inline(always)]
    #[track_caller]
    unsafe fn at_start(slots: usize, bytes: usize) -> Self {
        let end = (slots * bytes) as u32;
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                keys: Shared::dynamic(0, slots as u32),
                scan: Shared::dynamic(end, BLOCK_WORDS),
                distances: Shared::dynamic(end + BLOCK_WORDS * 4, DIGITS_CAPACITY),
                begins: Shared::dynamic(end + (BLOCK_WORDS + DIGITS_CAPACITY) * 4, DIGITS_CAPACITY),
            }
        }
    }
}

/// Whether row `i` of `len` elements has one for this thread. All rows have if they are `FULL`.
#[inline(always)]
fn is_here<const NT: usize, const FULL: bool>(i: usize, len: u32) -> bool {
    FULL || thread::thread_idx_x() + ((i * NT) as u32) < len
}

/// Global to registers: the thread's keys, encoded.
#[inline(always)]
#[track_caller]
fn load<B: Bits, const NT: usize, const VT: usize, const FULL: bool>(from: GlobalMut<B>, coding: Coding<B>) -> [B; VT] {
    let mut own = [B::MIN; VT];
    for i in 0..VT {
        if is_here::<NT, FULL>(i, from.len() as u32) {
            own[i] = from.get(thread::thread_idx_x() as usize + i * NT);
        }
    }
    if coding != Coding::NONE {
        for key in &mut own {
            *key = coding.encode(*key);
        }
    }
    own
}

/// What `load` gives for this thread's elements of a tile of `len`.
#[inline(always)]
fn each_row<T: Word, const NT: usize, const VT: usize>(len: u32, load: impl Fn(u32) -> T) -> [T; VT] {
    let mut own = [T::from_register(0); VT];
    for i in 0..VT {
        if is_here::<NT, false>(i, len) {
            own[i] = load(thread::thread_idx_x() + (i * NT) as u32);
        }
    }
    own
}

/// The slots that a thread's keys have gone to, two in a word, of which the upper half of the array is not used.
#[derive(Clone, Copy)]
struct Slots<const VT: usize>([u32; VT]);

impl<const VT: usize> Slots<VT> {
    #[inline(always)]
    fn get(self, i: usize) -> u32 {
        if i % 2 == 0 { self.0[i / 2] & 0xffff } else { self.0[i / 2] >> 16 }
    }

    /// Sets slot `i`, which is 0 before.
    #[inline(always)]
    fn set(&mut self, i: usize, slot: u32) {
        self.0[i / 2] |= if i % 2 == 0 { slot } else { slot << 16 };
    }
}

/// Moves the `len` keys of a tile, of which `load` gives this thread's, to the places of their digits. Gives the slots through which they
/// went, and `note` gets the place of what was in each slot of this thread.
///
/// # Safety
/// All threads of the block make this call.
#[inline(always)]
unsafe fn move_keys<B: Bits, const NT: usize, const VT: usize, const FULL: bool>(
    load: impl FnOnce() -> [B; VT],
    len: u32,
    digits: Digits<B>,
    counters: GlobalMut<u32>,
    TileMemory { keys, scan, begins, distances }: TileMemory<B>,
    to: GlobalMut<B>,
    note: impl Fn(u32, u32),
) -> Slots<VT> {
    let (thread, count) = (thread::thread_idx_x(), counters.len() as u32);
    let is_here = |i: usize| is_here::<NT, FULL>(i, len);
    let mut digit = thread;
    while digit < count {
        begins.set(digit, 0);
        digit += NT as u32;
    }
    let mut own = load();
    thread::sync_threads();
    for i in 0..VT {
        if is_here(i) {
            begins.fetch_add(digits.of(own[i]), 1);
        }
    }
    thread::sync_threads();

    let (mut first, mut before) = (0, 0);
    while first < count {
        let digit = first + thread;
        let of_digit = if digit < count { begins.get(digit) } else { 0 };
        // SAFETY: the caller's promise.
        let (sum, all) = unsafe { sum_before(of_digit, scan) };
        if digit < count {
            let begin = before + sum;
            begins.set(digit, begin);
            if of_digit > 0 {
                distances.set(digit, counters.fetch_add(digit as usize, of_digit).wrapping_sub(begin));
            }
        }
        before += all;
        first += NT as u32;
        thread::sync_threads();
    }

    // In batches, each of loads and then of stores: the compiler does not change their order, and they take long to arrive.
    let digits = digits.again();
    let mut all_slots = Slots([0; VT]);
    for first in (0..VT).step_by(BATCH) {
        let rows = first..(first + BATCH).min(VT);
        let mut slots = [0; BATCH];
        for i in rows.clone() {
            slots[i - first] = if is_here(i) { begins.fetch_add(digits.of(own[i]), 1) } else { 0 };
        }
        for i in rows {
            if is_here(i) {
                keys.set(slots[i - first], own[i]);
            }
            all_slots.set(i, slots[i - first]);
        }
    }
    thread::sync_threads();
    for i in 0..VT {
        if is_here(i) {
            own[i] = keys.get(thread + (i * NT) as u32);
        }
    }
    for first in (0..VT).step_by(BATCH) {
        let rows = first..(first + BATCH).min(VT);
        let mut places = [0; BATCH];
        for i in rows.clone() {
            let distance = if is_here(i) { distances.get(digits.of(own[i])) } else { 0 };
            places[i - first] = distance.wrapping_add(thread + (i * NT) as u32);
        }
        for i in rows {
            if is_here(i) {
                to.set(places[i - first] as usize, own[i]);
                note(thread + (i * NT) as u32, places[i - first]);
            }
        }
    }
    all_slots
}

/// Moves what belongs to the keys of a tile the same ways: what `load` gives for each, through the same slots of `shared`, which they do
/// not use any more, to the same `places`.
///
/// # Safety
/// All threads of the block make this call.
#[inline(always)]
unsafe fn carry<T: Word, const NT: usize, const VT: usize>(
    slots: Slots<VT>,
    len: u32,
    load: impl Fn(u32) -> T,
    shared: Shared<T>,
    places: Shared<u32>,
    to: GlobalMut<T>,
) {
    let own = each_row::<T, NT, VT>(len, load);
    // All have read what came before.
    thread::sync_threads();
    for i in 0..VT {
        if is_here::<NT, false>(i, len) {
            shared.set(slots.get(i), own[i]);
        }
    }
    thread::sync_threads();
    // In batches, as above.
    for first in (0..VT).step_by(BATCH) {
        let rows = first..(first + BATCH).min(VT);
        let (mut moved, mut to_places) = ([T::from_register(0); BATCH], [0; BATCH]);
        for i in rows.clone() {
            if is_here::<NT, false>(i, len) {
                let slot = thread::thread_idx_x() + (i * NT) as u32;
                (moved[i - first], to_places[i - first]) = (shared.get(slot), places.get(slot));
            }
        }
        for i in rows {
            if is_here::<NT, false>(i, len) {
                to.set(to_places[i - first] as usize, moved[i - first]);
            }
        }
    }
}
