//! Batch merge of pairs of any fixed length, several to a tile.
//!
//! ```text
//!   block      pairs g … g + P - 1: as many as fill it best
//!   shared     │ P runs of A │ P runs of B │          whole stretches of both, however short the runs
//!   thread     VT keys of the output, from anywhere in a pair on into the next ones
//! ```
//!
//! Nothing is tied to `d`: a thread begins at its own diagonal of the pair that its first key is in.

use crate::block::indexed_merge::{self, Cursors, Parts};
use crate::block::tile;
use crate::key::{Bits, Coding};
use crate::keys::KeysMut;
use crate::tuning::ROW;
use core::hint::{assert_unchecked, select_unpredictable};
use cuda_std::prelude::*;

/// Pairs of a block, for tiles of `tile_keys` keys. `d` is not 0 and at most `tile_keys`.
pub const fn pairs_per_block(tile_keys: usize, d: usize) -> usize {
    tile_keys / d
}

/// Where a block's pairs are in A, B and C.
#[derive(Clone, Copy)]
struct Block {
    /// Its first pair.
    first: usize,
    /// How many it has.
    pairs: usize,
    a_len: usize,
    b_len: usize,
}

impl Block {
    /// # Safety
    /// `d` is not 0.
    #[inline(always)]
    unsafe fn new(pairs: usize, pairs_per_block: usize, d: usize, a_len: usize) -> Self {
        // SAFETY: the caller promises `d != 0`. Without this divisions by `d` would bring in the code of a panic.
        unsafe { assert_unchecked(d != 0) };
        let first = thread::block_idx_x() as usize * pairs_per_block;
        Self { first, pairs: pairs.saturating_sub(first).min(pairs_per_block), a_len, b_len: d - a_len }
    }

    /// # Safety
    /// `a` and `b` hold all runs.
    #[inline(always)]
    unsafe fn parts<T: Word>(self, a: *const T, b: *const T) -> Parts<T> {
        let at = |from: *const T, len: usize| {
            // SAFETY: `first + pairs` is at most the number of all pairs, or `pairs` is 0. So the `pairs * len`
            // elements from `first * len` on are within `from`, which has `len` for each of all pairs, as the caller
            // promises.
            unsafe { Global::new(from.wrapping_add(self.first * len), self.pairs * len) }
        };
        Parts { a: at(a, self.a_len), b: at(b, self.b_len) }
    }

    /// # Safety
    /// `c` has capacity for all runs.
    #[inline(always)]
    unsafe fn output<T: Word>(self, c: *mut T) -> GlobalMut<T> {
        let d = self.a_len + self.b_len;
        // SAFETY: as in `parts`: the `pairs * d` elements from `first * d` on are within `c`, which has `d` for each of
        // all pairs. The pairs of two blocks do not overlap.
        unsafe { GlobalMut::new(c.wrapping_add(self.first * d), self.pairs * d) }
    }

    /// Merges the tile's keys and stores them, calling `emit` with each key's index in the output and its source index.
    #[inline(always)]
    fn merge<B: Bits, const NT: usize, const VT: usize>(
        self,
        keys: Parts<B>,
        tile: Shared<B>,
        to: KeysMut<B>,
        emit: impl Fn(u32, u32),
    ) {
        indexed_merge::put_keys::<_, NT, VT>(indexed_merge::load_keys::<B, NT, VT>(keys, to.coding()), tile);
        thread::sync_threads();
        let (a_len, b_len, a_count) = (self.a_len as u32, self.b_len as u32, keys.a.len() as u32);
        let d = a_len + b_len;
        // SAFETY: `d` is the sum of `a_len` and `d - a_len`, and `new`'s caller promised that it is not 0.
        unsafe { assert_unchecked(d != 0) };
        // Threads behind the last key stay there.
        let first = thread::thread_idx_x() * VT as u32;
        let begin = first.min(to.len() as u32);
        let pair = (begin / d).min((self.pairs as u32).saturating_sub(1));
        let start = Cursors {
            a: pair * a_len,
            b: a_count + pair * b_len,
            a_end: (pair + 1) * a_len,
            b_end: a_count + (pair + 1) * b_len,
        };
        let mut end = (pair + 1) * d - begin;
        let mut merged = [B::MAX; VT];
        let next_pair = |i, cursors: &mut Cursors| {
            let merged = i == end;
            end += select_unpredictable(merged, d, 0);
            cursors.a_end += select_unpredictable(merged, a_len, 0);
            cursors.b_end += select_unpredictable(merged, b_len, 0);
        };
        indexed_merge::merge(tile, start.after(begin - pair * d, tile), VT as u32, next_pair, |i, key, from| {
            merged[i as usize] = key;
            emit(first + i, from);
        });
        thread::sync_threads();
        tile::store_blocked(merged, first, tile);
        thread::sync_threads();
        tile::shared_to_global::<B, NT, VT>(tile, to);
    }
}

/// Kernel: merges `pairs` pairs of runs, as `coding` orders their keys, [`pairs_per_block`] to a block. `a` has `pairs
/// * a_len` keys, `b` has `pairs * (d - a_len)`, `c` has capacity for `pairs * d`.
///
/// # Safety
/// Each run in `a` and `b` is ascending; the arrays have the lengths above, in global memory; `1 <= d <= NT * VT` and
/// `a_len <= d`. Blocks are of `NT` threads, as many as the pairs take, with [`indexed_merge::shared_bytes`] of dynamic
/// shared memory. `c` overlaps neither `a` nor `b`.
#[kernel(
    u32 = <u32, { ROW.indexed.of(4, 0).threads }, { ROW.indexed.of(4, 0).items_per_thread }>,
    u64 = <u64, { ROW.indexed.of(8, 0).threads }, { ROW.indexed.of(8, 0).items_per_thread }>,
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_batch<B: Bits, const NT: usize, const VT: usize>(
    a: *const B,
    b: *const B,
    c: *mut B,
    pairs: usize,
    d: usize,
    a_len: usize,
    coding: Coding<B>,
) {
    // SAFETY: the caller promises `1 <= d`, and `a_len <= d`.
    let block = unsafe { Block::new(pairs, pairs_per_block(NT * VT, d), d, a_len) };
    // SAFETY: `a`, `b` and `c` hold `pairs` runs of `a_len`, `d - a_len` and `d`, as the caller promises, and the
    // launch has `indexed_merge::shared_bytes`, which contain the keys. A block has `pairs_per_block * d <= NT * VT`
    // keys. In `merge`, barriers come between loading and merging, between the merge's reads and the writes of merged
    // keys, and before these are read.
    let (keys, to, tile) = unsafe { (block.parts(a, b), block.output(c), indexed_merge::key_memory::<B, NT, VT>()) };
    block.merge::<B, NT, VT>(keys, tile, KeysMut::at(to, coding), |_, _| {});
}

/// Kernel: as [`merge_batch`], with a value for each key.
///
/// # Safety
/// As for [`merge_batch`], with as many values as keys in each array.
#[kernel(
    u32v4 = <u32, u32, { ROW.indexed.of(4, 0).threads }, { ROW.indexed.of(4, 0).items_per_thread }>,
    u64v4 = <u64, u32, { ROW.indexed.of(8, 0).threads }, { ROW.indexed.of(8, 0).items_per_thread }>,
    u32v8 = <u32, u64, { ROW.indexed.of(4, 0).threads }, { ROW.indexed.of(4, 0).items_per_thread }>,
    u64v8 = <u64, u64, { ROW.indexed.of(8, 0).threads }, { ROW.indexed.of(8, 0).items_per_thread }>,
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_batch_pairs<B: Bits, V: Word, const NT: usize, const VT: usize>(
    a_keys: *const B,
    a_values: *const V,
    b_keys: *const B,
    b_values: *const V,
    c_keys: *mut B,
    c_values: *mut V,
    pairs: usize,
    d: usize,
    a_len: usize,
    coding: Coding<B>,
) {
    // SAFETY: the caller promises `1 <= d`, and `a_len <= d`.
    let block = unsafe { Block::new(pairs, pairs_per_block(NT * VT, d), d, a_len) };
    // SAFETY: as in `merge_batch`, with values in arrays of the same lengths. Source indices are behind the keys;
    // thread `t` writes those at `t * VT + i`, `i < VT`, below `NT * VT`, and barriers of `merge` come before they are
    // read.
    let (keys, values, to_keys, to_values, tile, sources) = unsafe {
        (
            block.parts(a_keys, b_keys),
            block.parts(a_values, b_values),
            block.output(c_keys),
            block.output(c_values),
            indexed_merge::key_memory::<B, NT, VT>(),
            indexed_merge::source_memory::<B, NT, VT>(),
        )
    };
    block.merge::<B, NT, VT>(keys, tile, KeysMut::at(to_keys, coding), |at, from| sources.set(at, from as u16));
    indexed_merge::gather_values::<V, NT, VT>(values, sources, to_values);
}
