//! Batch merge of pairs of any fixed length, several to a tile.
//!
//! ```text
//!   block      pairs g … g + P - 1: as many as fill it best
//!   shared     │ P runs of A │ P runs of B │          whole stretches of both, however short the runs
//!   thread     VT keys of the output, from anywhere in a pair on into the next ones
//! ```
//!
//! Nothing is tied to `d`: a thread begins at its own diagonal of the pair that its first key is in.

use crate::key::Key;
use crate::stable_tile::{Cursors, Parts, load_keys, merge_to_registers, move_values, store_keys};
use crate::tuning::STABLE_VALUES as VALUES;
use core::hint::assert_unchecked;
use cuda_std::prelude::*;

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
        // SAFETY: the caller's promise. Without it divisions by `d` would bring in the code of a panic.
        unsafe { assert_unchecked(d != 0) };
        let first = thread::block_idx_x() as usize * pairs_per_block;
        Self { first, pairs: pairs.saturating_sub(first).min(pairs_per_block), a_len, b_len: d - a_len }
    }

    /// # Safety
    /// `a` and `b` hold all runs.
    #[inline(always)]
    unsafe fn parts<T: Word>(self, a: *const T, b: *const T) -> Parts<T> {
        let at = |from: *const T, len: usize| {
            // SAFETY: the caller's promise: the block's runs are within.
            unsafe { Global::new(from.wrapping_add(self.first * len), self.pairs * len) }
        };
        Parts { a: at(a, self.a_len), b: at(b, self.b_len) }
    }

    /// # Safety
    /// `c` has room for all runs.
    #[inline(always)]
    unsafe fn output<T: Word>(self, c: *mut T) -> GlobalMut<T> {
        let d = self.a_len + self.b_len;
        // SAFETY: the caller's promise: the block's runs are within.
        unsafe { GlobalMut::new(c.wrapping_add(self.first * d), self.pairs * d) }
    }

    /// Merges the tile's keys and stores them; returns the places that they came from.
    #[inline(always)]
    fn merge<K: Key, const VT: usize>(self, keys: Parts<K>, tile: Shared<K::Bits>, to: GlobalMut<K>) -> [u32; VT] {
        load_keys::<K, VT>(keys, tile);
        thread::sync_threads();
        let (a_len, b_len, a_count) = (self.a_len as u32, self.b_len as u32, keys.a.len() as u32);
        let d = a_len + b_len;
        // SAFETY: `new`'s caller promised it.
        unsafe { assert_unchecked(d != 0) };
        // Threads behind the last pair stay at its end.
        let place = (thread::thread_idx_x() * VT as u32).min(to.len() as u32);
        let pair = (place / d).min((self.pairs as u32).saturating_sub(1));
        let start = Cursors {
            a: pair * a_len,
            b: a_count + pair * b_len,
            a_end: (pair + 1) * a_len,
            b_end: a_count + (pair + 1) * b_len,
        };
        let mut end = (pair + 1) * d - place;
        let (merged, places) = merge_to_registers(tile, start.at(place - pair * d, tile), |i, cursors| {
            if i == end {
                end += d;
                cursors.a_end += a_len;
                cursors.b_end += b_len;
            }
        });
        thread::sync_threads();
        store_keys::<K, VT>(merged, tile, to);
        places
    }
}

/// Kernel: merges `pairs` pairs of runs, `pairs_per_block` to a block. `a` has `pairs * a_len` keys, `b` has
/// `pairs * (d - a_len)`, `c` has room for `pairs * d`.
///
/// # Safety
/// Each run in `a` and `b` is ascending; the arrays have the lengths above, in global memory; `1 <= d` and `a_len <= d`.
/// A block has at least `pairs_per_block * d / VT` threads and [`shared_bytes`](crate::stable_tile::shared_bytes) of dynamic
/// shared memory for them.
#[kernel(
    u32 = <u32, VALUES>, i32 = <i32, VALUES>, f32 = <f32, VALUES>,
    u64 = <u64, VALUES>, i64 = <i64, VALUES>, f64 = <f64, VALUES>,
)]
pub unsafe fn merge_batch<K: Key, const VT: usize>(
    a: *const K,
    b: *const K,
    c: *mut K,
    pairs: usize,
    pairs_per_block: usize,
    d: usize,
    a_len: usize,
) {
    // SAFETY: the caller's promise.
    let block = unsafe { Block::new(pairs, pairs_per_block, d, a_len) };
    // SAFETY: the caller's promise; barriers divide writing from reading.
    let (keys, to, tile) = unsafe {
        let slots = thread::block_dim_x() * VT as u32 + VT as u32 + 1;
        (block.parts(a, b), block.output(c), Shared::<K::Bits>::dynamic(0, slots))
    };
    block.merge::<K, VT>(keys, tile, to);
}

/// Kernel: as [`merge_batch`], with a value for each key.
///
/// # Safety
/// As for [`merge_batch`], with as many values as keys in each array, and shared memory for the wider of the two.
#[kernel(
    u32v4 = <u32, u32, VALUES>, i32v4 = <i32, u32, VALUES>, f32v4 = <f32, u32, VALUES>,
    u64v4 = <u64, u32, VALUES>, i64v4 = <i64, u32, VALUES>, f64v4 = <f64, u32, VALUES>,
    u32v8 = <u32, u64, VALUES>, i32v8 = <i32, u64, VALUES>, f32v8 = <f32, u64, VALUES>,
    u64v8 = <u64, u64, VALUES>, i64v8 = <i64, u64, VALUES>, f64v8 = <f64, u64, VALUES>,
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_batch_pairs<K: Key, V: Word, const VT: usize>(
    a_keys: *const K,
    a_values: *const V,
    b_keys: *const K,
    b_values: *const V,
    c_keys: *mut K,
    c_values: *mut V,
    pairs: usize,
    pairs_per_block: usize,
    d: usize,
    a_len: usize,
) {
    // SAFETY: the caller's promise.
    let block = unsafe { Block::new(pairs, pairs_per_block, d, a_len) };
    // SAFETY: the caller's promise; barriers divide writing from reading, and keys from values.
    let (keys, values, tile, value_tile) = unsafe {
        let slots = thread::block_dim_x() * VT as u32 + VT as u32 + 1;
        let tiles = (Shared::<K::Bits>::dynamic(0, slots), Shared::<V>::dynamic(0, slots));
        (block.parts(a_keys, b_keys), block.parts(a_values, b_values), tiles.0, tiles.1)
    };
    // SAFETY: the caller's promise.
    let (to_keys, to_values) = unsafe { (block.output(c_keys), block.output(c_values)) };
    let places: [u32; VT] = block.merge(keys, tile, to_keys);
    thread::sync_threads();
    move_values(values, places, value_tile, to_values);
}
