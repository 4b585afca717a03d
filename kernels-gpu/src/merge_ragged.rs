//! Batch merge of pairs of any lengths, in tiles that pay no heed to where pairs begin and end.
//!
//! ```text
//!   A          │ run 0   │ run 1 │     run 2        │        a_offsets[p] .. a_offsets[p + 1]
//!   B          │ run 0 │     run 1     │ run 2 │            b_offsets[p] .. b_offsets[p + 1]
//!   C          │ pair 0         │ pair 1        │ pair 2 │  from a_offsets[p] + b_offsets[p] on
//!   tiles      ├──────────┼──────────┼──────────┼────────┤
//! ```
//!
//! Pair after pair, what C takes from A is one stretch of A, and so for B. So a tile is again a part of A and a part of B,
//! with as many keys as any other tile; where it begins in a pair is searched as in any merge. Ten thousand pairs of
//! nothing or one of a billion keys make no difference.

use crate::co_rank::in_step;
use crate::diagonal::diagonal_search;
use crate::key::Key;
use crate::stable_tile::{Cursors, Parts, load_keys, merge_to_registers, move_values, store_keys};
use crate::tuning::STABLE_VALUES as VALUES;
use cuda_std::prelude::*;

/// Where the runs of each pair begin, and the last ones end.
#[derive(Clone, Copy)]
struct Offsets {
    a: Global<usize>,
    b: Global<usize>,
}

impl Offsets {
    /// # Safety
    /// Both arrays have `pairs + 1` ascending offsets.
    #[inline(always)]
    unsafe fn new(a: *const usize, b: *const usize, pairs: usize) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self { a: Global::new(a, pairs + 1), b: Global::new(b, pairs + 1) } }
    }

    /// Where pair `p` begins in C.
    #[inline(always)]
    fn start(self, p: usize) -> usize {
        self.a.get(p) + self.b.get(p)
    }

    /// The last of the pairs `low` to `high` that begins at `k` or before, which pair `low` does: the pair of key `k`, if
    /// there is one.
    #[inline(always)]
    fn pair_of(self, k: usize, low: usize, high: usize) -> usize {
        let (mut low, mut high) = (low, high);
        while low < high {
            let middle = high - (high - low) / 2;
            if self.start(middle) <= k {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        low
    }
}

/// Kernel: for each tile writes to `splits[2 t]` the pair that it begins in and to `splits[2 t + 1]` how many keys of A come
/// before it. One thread a tile.
///
/// # Safety
/// `a_offsets` and `b_offsets` have `pairs + 1` ascending offsets, the first 0, `pairs` is not 0, and `a` and `b` have as
/// many keys as the last ones say, in ascending runs; `splits` has room for `2 tiles`; `tiles` is the number of tiles of
/// `tile_keys` keys that C takes.
#[kernel(u32 = <u32>, i32 = <i32>, f32 = <f32>, u64 = <u64>, i64 = <i64>, f64 = <f64>)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn path_ragged<K: Key>(
    a: *const K,
    a_offsets: *const usize,
    b: *const K,
    b_offsets: *const usize,
    pairs: usize,
    splits: *mut usize,
    tiles: usize,
    tile_keys: usize,
) {
    // SAFETY: the caller's promise.
    let (offsets, splits) = unsafe { (Offsets::new(a_offsets, b_offsets, pairs), GlobalMut::new(splits, 2 * tiles)) };
    let t = thread::block_idx_x() as usize * thread::block_dim_x() as usize + thread::thread_idx_x() as usize;
    if t >= tiles {
        return;
    }
    let k = t * tile_keys;
    let p = offsets.pair_of(k, 0, pairs - 1);
    let run = |from: *const K, offsets: Global<usize>| {
        let (start, end) = (offsets.get(p), offsets.get(p + 1));
        // SAFETY: the caller's promise.
        unsafe { Global::new(from.wrapping_add(start), end - start) }
    };
    let taken = diagonal_search(k - offsets.start(p), run(a, offsets.a), run(b, offsets.b));
    splits.set(2 * t, p);
    splits.set(2 * t + 1, offsets.a.get(p) + taken);
}

/// A block's tile.
#[derive(Clone, Copy)]
struct Tile {
    offsets: Offsets,
    /// The pairs that it begins and ends in.
    first: usize,
    last: usize,
    /// What it takes of A: `a_curr .. a_next`, and of B.
    a_curr: usize,
    a_next: usize,
    b_curr: usize,
    b_next: usize,
}

impl Tile {
    /// # Safety
    /// As for [`merge_ragged`].
    #[inline(always)]
    unsafe fn new(offsets: Offsets, pairs: usize, splits: *const usize, total: usize, tile_keys: usize) -> Self {
        let (t, tiles) = (thread::block_idx_x() as usize, total.div_ceil(tile_keys));
        // SAFETY: the caller's promise.
        let splits = unsafe { Global::new(splits, 2 * tiles) };
        let k = t * tile_keys;
        let count = (total - k).min(tile_keys);
        let (first, a_curr) = (splits.get(2 * t), splits.get(2 * t + 1));
        let (last, a_next) = if t + 1 < tiles {
            (splits.get(2 * t + 2), splits.get(2 * t + 3))
        } else {
            (pairs - 1, offsets.a.get(pairs))
        };
        let a_next = in_step(a_curr, a_next, count);
        Self { offsets, first, last, a_curr, a_next, b_curr: k - a_curr, b_next: k + count - a_next }
    }

    /// # Safety
    /// `a` and `b` hold all runs.
    #[inline(always)]
    unsafe fn parts<T: Word>(self, a: *const T, b: *const T) -> Parts<T> {
        // SAFETY: the caller's promise.
        unsafe {
            Parts {
                a: Global::new(a.wrapping_add(self.a_curr), self.a_next - self.a_curr),
                b: Global::new(b.wrapping_add(self.b_curr), self.b_next - self.b_curr),
            }
        }
    }

    /// # Safety
    /// `c` has room for all runs.
    #[inline(always)]
    unsafe fn output<T: Word>(self, c: *mut T) -> GlobalMut<T> {
        let (start, end) = (self.a_curr + self.b_curr, self.a_next + self.b_next);
        // SAFETY: the caller's promise.
        unsafe { GlobalMut::new(c.wrapping_add(start), end - start) }
    }

    /// The part of pair `p` that is in the tile, with the cursors at its beginning.
    #[inline(always)]
    fn pair(self, p: usize) -> Cursors {
        let a_count = (self.a_next - self.a_curr) as u32;
        let within = |at: usize, low: usize, high: usize| (at.max(low).min(high) - low) as u32;
        let (a, b) = (self.offsets.a, self.offsets.b);
        Cursors {
            a: within(a.get(p), self.a_curr, self.a_next),
            a_end: within(a.get(p + 1), self.a_curr, self.a_next),
            b: a_count + within(b.get(p), self.b_curr, self.b_next),
            b_end: a_count + within(b.get(p + 1), self.b_curr, self.b_next),
        }
    }

    /// Merges the tile's keys and stores them; returns the places that they came from.
    #[inline(always)]
    fn merge<K: Key, const VT: usize>(self, keys: Parts<K>, tile: Shared<K::Bits>, to: GlobalMut<K>) -> [u32; VT] {
        load_keys::<K, VT>(keys, tile);
        thread::sync_threads();
        let k = self.a_curr + self.b_curr;
        let a_count = keys.a.len() as u32;
        // Threads behind the last key stay there.
        let place = (thread::thread_idx_x() * VT as u32).min(to.len() as u32);
        let mut p = self.offsets.pair_of(k + place as usize, self.first, self.last);
        let start = self.pair(p);
        // Keys of the tile before a cursor: its place in A, and its place in B behind A.
        let before = start.a + start.b - a_count;
        let mut end = start.a_end + start.b_end - a_count - place;
        let (merged, places) = merge_to_registers(tile, start.at(place - before, tile), |i, cursors| {
            if i == end && p < self.last {
                p += 1;
                let mut next = self.pair(p);
                if next.a_end + next.b_end - a_count - place == i {
                    // An empty pair, and maybe thousands.
                    p = self.offsets.pair_of(k + (place + i) as usize, p, self.last);
                    next = self.pair(p);
                }
                (cursors.a_end, cursors.b_end) = (next.a_end, next.b_end);
                end = next.a_end + next.b_end - a_count - place;
            }
        });
        thread::sync_threads();
        store_keys::<K, VT>(merged, tile, to);
        places
    }
}

/// Kernel: merges pairs of any lengths, one block a tile, at the splits that [`path_ragged`] found.
///
/// # Safety
/// `a_offsets` and `b_offsets` have `pairs + 1` ascending offsets, the first 0, `pairs` is not 0, and `a` and `b` have as
/// many keys as the last ones say, in ascending runs; `c` has room for `total`, their sum; `splits` are those of
/// `path_ragged` for tiles of `blockDim * VT` keys. One block for each tile, with
/// [`shared_bytes`](crate::stable_tile::shared_bytes) of dynamic shared memory.
#[kernel(
    u32 = <u32, VALUES>, i32 = <i32, VALUES>, f32 = <f32, VALUES>,
    u64 = <u64, VALUES>, i64 = <i64, VALUES>, f64 = <f64, VALUES>,
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_ragged<K: Key, const VT: usize>(
    a: *const K,
    a_offsets: *const usize,
    b: *const K,
    b_offsets: *const usize,
    pairs: usize,
    c: *mut K,
    total: usize,
    splits: *const usize,
) {
    let tile_keys = thread::block_dim_x() as usize * VT;
    // SAFETY: the caller's promise; barriers divide writing from reading.
    let (tile, memory) = unsafe {
        let offsets = Offsets::new(a_offsets, b_offsets, pairs);
        (
            Tile::new(offsets, pairs, splits, total, tile_keys),
            Shared::<K::Bits>::dynamic(0, (tile_keys + VT + 1) as u32),
        )
    };
    // SAFETY: the caller's promise.
    let (keys, to) = unsafe { (tile.parts(a, b), tile.output(c)) };
    tile.merge::<K, VT>(keys, memory, to);
}

/// Kernel: as [`merge_ragged`], with a value for each key.
///
/// # Safety
/// As for [`merge_ragged`], with as many values as keys in each array, and shared memory for the wider of the two.
#[kernel(
    u32v4 = <u32, u32, VALUES>, i32v4 = <i32, u32, VALUES>, f32v4 = <f32, u32, VALUES>,
    u64v4 = <u64, u32, VALUES>, i64v4 = <i64, u32, VALUES>, f64v4 = <f64, u32, VALUES>,
    u32v8 = <u32, u64, VALUES>, i32v8 = <i32, u64, VALUES>, f32v8 = <f32, u64, VALUES>,
    u64v8 = <u64, u64, VALUES>, i64v8 = <i64, u64, VALUES>, f64v8 = <f64, u64, VALUES>,
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_ragged_pairs<K: Key, V: Word, const VT: usize>(
    a_keys: *const K,
    a_values: *const V,
    a_offsets: *const usize,
    b_keys: *const K,
    b_values: *const V,
    b_offsets: *const usize,
    pairs: usize,
    c_keys: *mut K,
    c_values: *mut V,
    total: usize,
    splits: *const usize,
) {
    let tile_keys = thread::block_dim_x() as usize * VT;
    let slots = (tile_keys + VT + 1) as u32;
    // SAFETY: the caller's promise; barriers divide writing from reading, and keys from values.
    let (tile, memory, value_memory) = unsafe {
        let offsets = Offsets::new(a_offsets, b_offsets, pairs);
        (
            Tile::new(offsets, pairs, splits, total, tile_keys),
            Shared::<K::Bits>::dynamic(0, slots),
            Shared::<V>::dynamic(0, slots),
        )
    };
    // SAFETY: the caller's promise.
    let (keys, values, to_keys, to_values) = unsafe {
        (tile.parts(a_keys, b_keys), tile.parts(a_values, b_values), tile.output(c_keys), tile.output(c_values))
    };
    let places: [u32; VT] = tile.merge(keys, memory, to_keys);
    thread::sync_threads();
    move_values(values, places, value_memory, to_values);
}
