//! A tile of one or more pairs of runs, merged with the source index of each key.
//!
//! ```text
//!   shared   │ runs of A, one behind the other │ runs of B, one behind the other │
//!              a → a_end                         b → b_end
//! ```
//!
//! This is the merge for keys with values, for which the order of equal keys is visible, and for many pairs in one
//! tile. After the last key of a pair, both cursors are at the start of the next pair, so that only the ends move.
//!
//! Values do not go through shared memory. Of 32 neighbours in the output, some are neighbours in A and the others in
//! B. A warp that gathers them reads two short ranges.

use super::tile;
use crate::elements::{Arrays, Source, has_values};
use crate::key::{Bits, Coding};
use crate::keys::KeysMut;
use crate::thread::diagonal::diagonal_search;
use core::hint::select_unpredictable;
use cuda_std::prelude::*;

/// Bytes of shared memory for the keys of a tile of `keys` keys, `items_per_thread` for each thread. The merge reads up
/// to one key per step behind the end. A multiple of 8.
pub const fn key_bytes<B>(keys: usize, items_per_thread: usize) -> u32 {
    ((keys + items_per_thread + 1) * size_of::<B>()).next_multiple_of(8) as u32
}

/// Bytes of dynamic shared memory for a tile of `keys` keys, `items_per_thread` for each thread, and their source
/// indices.
pub const fn shared_bytes<B>(keys: usize, items_per_thread: usize) -> u32 {
    key_bytes::<B>(keys, items_per_thread) + (keys * size_of::<u16>()) as u32
}

/// The keys of a tile, at the beginning of shared memory.
///
/// # Safety
/// The launch has [`key_bytes`] of dynamic shared memory for `NT * VT` keys.
#[inline(always)]
pub unsafe fn key_memory<B: Bits, const NT: usize, const VT: usize>() -> Shared<B> {
    // SAFETY: `NT * VT + VT + 1` keys are within the `key_bytes` of the launch, which are these rounded up to a
    // multiple of 8.
    unsafe { Shared::dynamic(0, (NT * VT + VT + 1) as u32) }
}

/// For each key of the merged tile, its index in the tile before the merge. Behind the tile's keys.
///
/// # Safety
/// The launch has [`shared_bytes`] of dynamic shared memory for `NT * VT` keys.
#[inline(always)]
pub unsafe fn source_memory<B: Bits, const NT: usize, const VT: usize>() -> Shared<u16> {
    // SAFETY: `key_bytes` is a multiple of 8. The `NT * VT` words of 2 bytes behind it are the rest of the
    // `shared_bytes` of the launch, so that they do not overlap the keys.
    unsafe { Shared::dynamic(key_bytes::<B>(NT * VT, VT), (NT * VT) as u32) }
}

/// The parts of a tile: from A and from B.
#[derive(Clone, Copy)]
pub struct Parts<B, V> {
    /// The part from A.
    pub a: Source<B, V>,
    /// The part from B.
    pub b: Source<B, V>,
}

impl<B: Word, V: Word> Parts<B, V> {
    /// Number of elements of both parts.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.a.len() + self.b.len()
    }
}

/// The position of a thread in the tile.
#[derive(Clone, Copy)]
pub struct Cursors {
    /// The next key of A.
    pub a: u32,
    /// The next key of B.
    pub b: u32,
    /// End of the pair's run of A.
    pub a_end: u32,
    /// End of the pair's run of B.
    pub b_end: u32,
}

impl Cursors {
    /// The beginning of a tile of one pair of runs.
    #[inline(always)]
    pub(crate) fn of_pair<B: Word, V: Word>(parts: Parts<B, V>) -> Self {
        let a_end = parts.a.len() as u32;
        Self { a: 0, b: a_end, a_end, b_end: parts.len() as u32 }
    }

    /// The cursors after the first `diagonal` keys of the pair. These cursors are at the pair's start.
    #[inline(always)]
    #[track_caller]
    pub fn after<B: Bits>(self, diagonal: u32, tile: Shared<B>) -> Self {
        let runs = (tile.slice(self.a, self.a_end - self.a), tile.slice(self.b, self.b_end - self.b));
        let a_taken = diagonal_search(diagonal, runs.0, runs.1);
        Self { a: self.a + a_taken, b: self.b + (diagonal - a_taken), ..self }
    }
}

/// Global to registers, strided: A's part, then B's, as `coding` encodes them, and the greatest key behind them.
#[inline(always)]
#[track_caller]
pub fn load_keys<B: Bits, V: Word, const NT: usize, const VT: usize>(parts: Parts<B, V>, coding: Coding<B>) -> [B; VT] {
    let (a, b) = (parts.a.keys, parts.b.keys);
    let thread = thread::thread_idx_x() as usize;
    let (in_a, in_b) = (a.place(thread), b.place(thread.wrapping_sub(a.len())));
    // Relative to the thread, so that the indices of its keys compare as constants.
    let a_end = a.len() as i32 - thread as i32;
    let end = a_end + b.len() as i32;
    let mut keys = [coding.decode(B::MAX); VT];
    if a.len() + b.len() == NT * VT {
        for i in 0..VT {
            let step = i * NT;
            keys[i] = if (step as i32) < a_end { in_a.get(step as isize) } else { in_b.get(step as isize) };
        }
    } else {
        for i in 0..VT {
            let step = i * NT;
            if (step as i32) < a_end {
                keys[i] = in_a.get(step as isize);
            } else if (step as i32) < end {
                keys[i] = in_b.get(step as isize);
            }
        }
    }
    coding.encode_all(&mut keys);
    keys
}

/// Registers to shared, strided: the keys that [`load_keys`] has loaded, and the greatest key behind the tile.
#[inline(always)]
#[track_caller]
pub fn put_keys<B: Bits, const NT: usize, const VT: usize>(keys: [B; VT], tile: Shared<B>) {
    tile::store_striped::<B, NT, VT>(keys, tile);
    let thread = thread::thread_idx_x();
    if thread <= VT as u32 {
        tile.set((NT * VT) as u32 + thread, B::MAX);
    }
}

/// Merges `steps` keys from the cursors on, and calls `emit` with number, key and source index. Stable: of equal keys,
/// the keys of A go first.
///
/// Before step `i`, `next_pair(i, cursors)` moves the ends if the pair is merged. If `steps` is a constant, the loop is
/// unrolled, and an array that `emit` fills by number stays in registers.
#[inline(always)]
#[track_caller]
pub fn merge<B: Bits>(
    tile: Shared<B>,
    mut cursors: Cursors,
    steps: u32,
    mut next_pair: impl FnMut(u32, &mut Cursors),
    mut emit: impl FnMut(u32, B, u32),
) {
    let (mut a_key, mut b_key) = (tile.get(cursors.a), tile.get(cursors.b));
    for i in 0..steps {
        next_pair(i, &mut cursors);
        let take_a = cursors.b >= cursors.b_end || (cursors.a < cursors.a_end && a_key <= b_key);
        let source = select_unpredictable(take_a, cursors.a, cursors.b);
        emit(i, select_unpredictable(take_a, a_key, b_key), source);
        if i + 1 < steps {
            let key = tile.get(source + 1);
            a_key = select_unpredictable(take_a, key, a_key);
            b_key = select_unpredictable(take_a, b_key, key);
            cursors.a = select_unpredictable(take_a, source + 1, cursors.a);
            cursors.b = select_unpredictable(take_a, cursors.b, source + 1);
        }
    }
}

/// Merges a tile of one or more pairs of runs to `to`, which has `parts.len()` elements. Keys are in the order of
/// `coding`.
///
/// `start` receives the tile's keys in shared memory and a rank in the merged tile. It returns the cursors at that
/// rank, and the function that [`merge`] calls before each step.
///
/// # Safety
/// All `NT` threads of the block make this call. The launch has [`shared_bytes`] of dynamic shared memory for `NT * VT`
/// keys, or [`key_bytes`] if there are no values. `parts` have at most `NT * VT` elements.
#[inline(always)]
#[track_caller]
pub unsafe fn merge_tile<B: Bits, V: Word, N: FnMut(u32, &mut Cursors), const NT: usize, const VT: usize>(
    parts: Parts<B, V>,
    to: Arrays<B, V>,
    coding: Coding<B>,
    start: impl FnOnce(Shared<B>, u32) -> (Cursors, N),
) {
    // SAFETY: the caller ensures the memory. Thread `t < NT` writes slots `t + i * NT` and `t * VT + i`, `i < VT`:
    // below `NT * VT`, each by one thread. The padding behind them has `VT + 1` slots, one for each thread `t <= VT`.
    // One barrier separates loading and merging, and another the merge's reads and the writes of merged keys. A third
    // comes before the reads of merged keys and source indices. Without values, no source index is accessed.
    let (tile, sources) = unsafe { (key_memory::<B, NT, VT>(), source_memory::<B, NT, VT>()) };
    put_keys::<_, NT, VT>(load_keys::<B, V, NT, VT>(parts, coding), tile);
    thread::sync_threads();
    let first = thread::thread_idx_x() * VT as u32;
    // Threads behind the last key stay there.
    let (cursors, next_pair) = start(tile, first.min(to.len() as u32));
    let mut merged = [B::MAX; VT];
    merge(tile, cursors, VT as u32, next_pair, |i, key, source| {
        merged[i as usize] = key;
        if has_values::<V>() {
            sources.set(first + i, source as u16);
        }
    });
    thread::sync_threads();
    tile::store_blocked(merged, first, tile);
    thread::sync_threads();
    tile::shared_to_global::<B, NT, VT>(tile, KeysMut::at(to.keys, coding));
    if has_values::<V>() {
        gather_values::<B, V, NT, VT>(parts, sources, to.values);
    }
}

/// Global to global, strided: each merged key's value, from its key's source index.
#[inline(always)]
#[track_caller]
pub fn gather_values<B: Word, V: Word, const NT: usize, const VT: usize>(
    parts: Parts<B, V>,
    sources: Shared<u16>,
    to: GlobalMut<V>,
) {
    let (thread, count) = (thread::thread_idx_x() as usize, to.len());
    let (a, b) = (parts.a.values, parts.b.values);
    let a_len = a.len() as u32;
    // All loads first, so that they are in flight together.
    let mut values = [V::from_register(0); VT];
    for i in 0..VT {
        let at = thread + i * NT;
        if count == NT * VT || at < count {
            let source = sources.get(at as u32) as u32;
            values[i] = if source < a_len { a.get(source as usize) } else { b.get((source - a_len) as usize) };
        }
    }
    for i in 0..VT {
        let at = thread + i * NT;
        if count == NT * VT || at < count {
            to.set(at, values[i]);
        }
    }
}
