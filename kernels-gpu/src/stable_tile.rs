//! A tile of one or more pairs of runs, merged with a memory of where each key came from.
//!
//! ```text
//!   shared   │ runs of A, one behind the other │ runs of B, one behind the other │
//!              a → a_end                         b → b_end
//! ```
//!
//! This is the merge for keys with values, whose order among equal keys can be seen, and for many pairs in one tile.
//! When a pair is merged to its end both cursors stand at the beginning of the next: only the ends have to be moved.
//!
//! The number of threads is the launch's: a tile is `blockDim * VT` keys, or fewer.

use crate::diagonal::diagonal_search;
use crate::key::{Bits, Key};
use core::hint::select_unpredictable;
use cuda_std::prelude::*;

/// Bytes of dynamic shared memory for tiles of `threads * values` elements of at most `bytes` bytes. The merge reads on
/// where nothing is left, by as many keys as it has steps.
pub const fn shared_bytes(threads: usize, values: usize, bytes: usize) -> u32 {
    ((threads * values + values + 1) * bytes) as u32
}

/// Elements that the two parts of a tile have, and where they are.
#[derive(Clone, Copy)]
pub struct Parts<T> {
    /// The part that is from A.
    pub a: Global<T>,
    /// The part that is from B.
    pub b: Global<T>,
}

impl<T: Word> Parts<T> {
    /// Global to registers, strided: A's part, B's part, and `T`'s zero beyond.
    #[inline(always)]
    #[track_caller]
    fn to_registers<const VT: usize>(self) -> [T; VT] {
        let (thread, threads) = (thread::thread_idx_x() as usize, thread::block_dim_x() as usize);
        let (in_a, in_b) = (self.a.place(thread), self.b.place(thread.wrapping_sub(self.a.len())));
        let a_end = self.a.len() as i32 - thread as i32;
        let end = a_end + self.b.len() as i32;
        let mut elements = [T::from_register(0); VT];
        for i in 0..VT {
            let step = i * threads;
            if (step as i32) < a_end {
                elements[i] = in_a.get(step as isize);
            } else if (step as i32) < end {
                elements[i] = in_b.get(step as isize);
            }
        }
        elements
    }

    /// Elements of both parts.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.a.len() + self.b.len()
    }

    /// Whether there are none.
    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// Where a thread stands in the tile.
#[derive(Clone, Copy)]
pub struct Cursors {
    /// The next key of A.
    pub a: u32,
    /// The next key of B.
    pub b: u32,
    /// Where the pair's run of A ends.
    pub a_end: u32,
    /// Where the pair's run of B ends.
    pub b_end: u32,
}

impl Cursors {
    /// The cursors after the first `diagonal` keys of a pair whose runs begin at `a` and `b`.
    #[inline(always)]
    #[track_caller]
    pub fn at<B: Bits>(self, diagonal: u32, tile: Shared<B>) -> Self {
        let runs = (tile.slice(self.a, self.a_end - self.a), tile.slice(self.b, self.b_end - self.b));
        let a_taken = diagonal_search(diagonal, runs.0, runs.1);
        Self { a: self.a + a_taken, b: self.b + (diagonal - a_taken), ..self }
    }
}

/// Global to shared: the keys of a tile, A's part and B's part, with padding behind. All threads have to call this, and
/// a barrier has to follow.
#[inline(always)]
#[track_caller]
pub fn load_keys<K: Key, const VT: usize>(parts: Parts<K>, tile: Shared<K::Bits>) {
    let keys: [K; VT] = parts.to_registers();
    let (thread, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    for i in 0..VT {
        tile.set(thread + i as u32 * threads, keys[i].to_ordered());
    }
    let mut pad = thread;
    while pad <= VT as u32 {
        tile.set(threads * VT as u32 + pad, K::Bits::MAX);
        pad += threads;
    }
}

/// Shared to registers: the `VT` keys that follow the cursors in the merges of the tile's pairs, and the places in the tile
/// that they are from. Stable: of equal keys A's go first.
///
/// Before step `i`, `next_pair(i, cursors)` moves the ends if the pair is merged.
#[inline(always)]
#[track_caller]
pub fn merge_to_registers<B: Bits, const VT: usize>(
    tile: Shared<B>,
    mut cursors: Cursors,
    mut next_pair: impl FnMut(u32, &mut Cursors),
) -> ([B; VT], [u32; VT]) {
    let (mut a_key, mut b_key) = (tile.get(cursors.a), tile.get(cursors.b));
    let (mut keys, mut places) = ([B::MAX; VT], [0; VT]);
    for i in 0..VT {
        next_pair(i as u32, &mut cursors);
        let take_a = cursors.b >= cursors.b_end || (cursors.a < cursors.a_end && a_key <= b_key);
        keys[i] = select_unpredictable(take_a, a_key, b_key);
        places[i] = select_unpredictable(take_a, cursors.a, cursors.b);
        if i + 1 < VT {
            let next = places[i] + 1;
            let key = tile.get(next);
            a_key = select_unpredictable(take_a, key, a_key);
            b_key = select_unpredictable(take_a, b_key, key);
            cursors.a = select_unpredictable(take_a, next, cursors.a);
            cursors.b = select_unpredictable(take_a, cursors.b, next);
        }
    }
    (keys, places)
}

/// Registers to shared to global: the merged keys, from thread order to the places of `to`. All threads have to call
/// this, after a barrier.
#[inline(always)]
#[track_caller]
pub fn store_keys<K: Key, const VT: usize>(keys: [K::Bits; VT], tile: Shared<K::Bits>, to: GlobalMut<K>) {
    store(keys, tile, to, K::from_ordered);
}

/// Registers to shared to global: elements in thread order to the places of `to`.
#[inline(always)]
#[track_caller]
fn store<B: Word, T: Word, const VT: usize>(
    elements: [B; VT],
    tile: Shared<B>,
    to: GlobalMut<T>,
    convert: impl Fn(B) -> T,
) {
    let (thread, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    for i in 0..VT {
        tile.set(thread * VT as u32 + i as u32, elements[i]);
    }
    thread::sync_threads();
    for i in 0..VT {
        let at = thread + i as u32 * threads;
        if (at as usize) < to.len() {
            to.set(at as usize, convert(tile.get(at)));
        }
    }
}

/// Global to shared to registers to shared to global: each merged pair's value, from the place in the tile that its key
/// came from. All threads have to call this, after a barrier.
#[inline(always)]
#[track_caller]
pub fn move_values<V: Word, const VT: usize>(parts: Parts<V>, places: [u32; VT], tile: Shared<V>, to: GlobalMut<V>) {
    let (thread, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let loaded: [V; VT] = parts.to_registers();
    for i in 0..VT {
        tile.set(thread + i as u32 * threads, loaded[i]);
    }
    thread::sync_threads();
    let mut values = loaded;
    for i in 0..VT {
        // Where there are fewer keys than the tile holds, the last threads' places are not of keys.
        let here = (thread * VT as u32 + i as u32) < to.len() as u32;
        values[i] = tile.get(if here { places[i] } else { 0 });
    }
    thread::sync_threads();
    store(values, tile, to, |value| value);
}
