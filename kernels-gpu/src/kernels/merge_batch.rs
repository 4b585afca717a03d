//! Batch merge of pairs of any fixed length, several to a tile.
//!
//! ```text
//!   block      pairs g … g + P - 1, the number that fits a tile
//!   shared     │ P runs of A │ P runs of B │          contiguous ranges of both, however short the runs
//!   thread     VT keys of the output, from anywhere in a pair on into the next ones
//! ```
//!
//! Any `d` works: a thread begins at its own diagonal, in the pair of its first key.

use crate::block::indexed_merge::{self, Cursors, Parts};
use crate::elements::{Arrays, Elements};
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use core::hint::{assert_unchecked, select_unpredictable};
use cuda_std::prelude::*;

/// Pairs of a block, for tiles of `tile_keys` keys. `d` is not 0 and at most `tile_keys`.
pub const fn pairs_per_block(tile_keys: usize, d: usize) -> usize {
    tile_keys / d
}

/// The pairs of a block in A, B and C.
#[derive(Clone, Copy)]
struct Block {
    /// Its first pair.
    first: usize,
    /// Number of its pairs.
    pairs: usize,
    a_len: usize,
    b_len: usize,
}

impl Block {
    /// # Safety
    /// `d` is not 0.
    #[inline(always)]
    unsafe fn new(pairs: usize, pairs_per_block: usize, d: usize, a_len: usize) -> Self {
        // SAFETY: the caller ensures `d != 0`. The assumption removes the code of a panic for divisions by `d`.
        unsafe { assert_unchecked(d != 0) };
        let first = thread::block_idx_x() as usize * pairs_per_block;
        Self { first, pairs: pairs.saturating_sub(first).min(pairs_per_block), a_len, b_len: d - a_len }
    }

    /// # Safety
    /// `a` and `b` hold all runs.
    #[inline(always)]
    unsafe fn parts<B: Word, V: Word>(self, a: Elements<B, V>, b: Elements<B, V>) -> Parts<B, V> {
        let at = |from: Elements<B, V>, len: usize| {
            // SAFETY: `first + pairs` is at most the number of all pairs, or `pairs` is 0. `from` has `len` elements
            // for each pair, as the caller ensures, so that it contains the `pairs * len` elements from `first * len`
            // on.
            unsafe { from.from(self.first * len).source(self.pairs * len) }
        };
        Parts { a: at(a, self.a_len), b: at(b, self.b_len) }
    }

    /// # Safety
    /// `c` has capacity for all runs.
    #[inline(always)]
    unsafe fn output<B: Word, V: Word>(self, c: Elements<B, V>) -> Arrays<B, V> {
        let d = self.a_len + self.b_len;
        // SAFETY: `first + pairs` is at most the number of all pairs, or `pairs` is 0. `c` has `d` elements for each
        // pair, so that it contains the `pairs * d` elements from `first * d` on. The pairs of two blocks do not
        // overlap.
        unsafe { c.from(self.first * d).arrays(self.pairs * d) }
    }

    /// The cursors of a thread that merges from key `begin` of the merged tile on; the tile has `a_count` keys of A.
    /// Also a function that moves the cursors to the next pair before step `i`, if the current pair is merged.
    ///
    /// # Safety
    /// `d` is not 0.
    #[inline(always)]
    #[track_caller]
    unsafe fn start<B: Bits>(
        self,
        tile: Shared<B>,
        a_count: u32,
        begin: u32,
    ) -> (Cursors, impl FnMut(u32, &mut Cursors)) {
        let (a_len, b_len) = (self.a_len as u32, self.b_len as u32);
        let d = a_len + b_len;
        // SAFETY: the caller ensures that `d`, the sum of `a_len` and `b_len`, is not 0.
        unsafe { assert_unchecked(d != 0) };
        let pair = (begin / d).min((self.pairs as u32).saturating_sub(1));
        let start = Cursors {
            a: pair * a_len,
            b: a_count + pair * b_len,
            a_end: (pair + 1) * a_len,
            b_end: a_count + (pair + 1) * b_len,
        };
        let mut end = (pair + 1) * d - begin;
        let next_pair = move |i, cursors: &mut Cursors| {
            let merged = i == end;
            end += select_unpredictable(merged, d, 0);
            cursors.a_end += select_unpredictable(merged, a_len, 0);
            cursors.b_end += select_unpredictable(merged, b_len, 0);
        };
        (start.after(begin - pair * d, tile), next_pair)
    }
}

/// Kernel: merges `pairs` pairs of runs with their values, as `coding` orders their keys, [`pairs_per_block`] to a
/// block. `a` has `pairs * a_len` elements, `b` has `pairs * (d - a_len)`, and `c` has capacity for `pairs * d`.
/// Stable: of equal keys, the keys of `a` go first.
///
/// # Safety
/// Each run in `a` and `b` is ascending. The arrays have the lengths above, in global memory, and `c` overlaps neither
/// `a` nor `b`. `1 <= d <= NT * VT`, and `a_len <= d`. Blocks have `NT` threads, one block for each [`pairs_per_block`]
/// pairs, with [`indexed_merge::shared_bytes`] of dynamic shared memory.
#[kernel(
    u32 = <u32, (), { ROW.indexed.of(4, 0).threads }, { ROW.indexed.of(4, 0).items_per_thread }>,
    u64 = <u64, (), { ROW.indexed.of(8, 0).threads }, { ROW.indexed.of(8, 0).items_per_thread }>,
    u32v4 = <u32, u32, { ROW.indexed.of(4, 4).threads }, { ROW.indexed.of(4, 4).items_per_thread }>,
    u32v8 = <u32, u64, { ROW.indexed.of(4, 8).threads }, { ROW.indexed.of(4, 8).items_per_thread }>,
    u64v4 = <u64, u32, { ROW.indexed.of(8, 4).threads }, { ROW.indexed.of(8, 4).items_per_thread }>,
    u64v8 = <u64, u64, { ROW.indexed.of(8, 8).threads }, { ROW.indexed.of(8, 8).items_per_thread }>,
)]
pub unsafe fn merge_batch<B: Bits, V: Word, const NT: usize, const VT: usize>(
    a: Elements<B, V>,
    b: Elements<B, V>,
    c: Elements<B, V>,
    pairs: usize,
    d: usize,
    a_len: usize,
    coding: Coding<B>,
) {
    // SAFETY: this kernel requires `1 <= d`.
    let block = unsafe { Block::new(pairs, pairs_per_block(NT * VT, d), d, a_len) };
    // SAFETY: `a`, `b` and `c` hold `pairs` runs of `a_len`, `d - a_len` and `d` elements, as this kernel requires, and
    // the launch has `indexed_merge::shared_bytes`. A block has at most `pairs_per_block * d <= NT * VT` keys, and `d`
    // is not 0.
    unsafe {
        let (parts, to) = (block.parts(a, b), block.output(c));
        indexed_merge::merge_tile::<B, V, _, NT, VT>(parts, to, coding, |tile, begin| {
            block.start(tile, parts.a.len() as u32, begin)
        });
    }
}
