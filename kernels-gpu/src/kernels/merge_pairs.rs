//! Merge of keys with values: the two-phase merge, with values that follow their keys.
//!
//! The splits are those of `path_big`, which reads keys only. A block merges its tile's keys and stores the
//! source index of each; the values are then gathered by these.

use crate::block::indexed_merge::{self, Cursors, Parts};
use crate::block::tile;
use crate::key::{Bits, Coding};
use crate::keys::{Keys, KeysMut};
use crate::textbook::co_rank::clamp_split;
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Kernel: merges the keys `a_keys` and `b_keys`, as `coding` orders them, into `c_keys`, and the values accordingly,
/// one block a tile, at the splits that [`path_big`](crate::kernels::merge_path::path_big) found.
///
/// # Safety
/// `a_keys` and `b_keys` are ascending arrays of `m` and `n` keys with as many values each, and `c_keys` and `c_values`
/// have capacity for `m + n`; `splits` are those of `path_big` for tiles of `NT * VT` keys. Blocks are of `NT` threads,
/// one for each tile, with [`indexed_merge::shared_bytes`] of dynamic shared memory. What is written overlaps nothing
/// that is read.
#[kernel(
    u32v4 = <u32, u32, { ROW.indexed.of(4, 0).threads }, { ROW.indexed.of(4, 0).items_per_thread }>,
    u64v4 = <u64, u32, { ROW.indexed.of(8, 0).threads }, { ROW.indexed.of(8, 0).items_per_thread }>,
    u32v8 = <u32, u64, { ROW.indexed.of(4, 0).threads }, { ROW.indexed.of(4, 0).items_per_thread }>,
    u64v8 = <u64, u64, { ROW.indexed.of(8, 0).threads }, { ROW.indexed.of(8, 0).items_per_thread }>,
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_pairs<B: Bits, V: Word, const NT: usize, const VT: usize>(
    a_keys: *const B,
    a_values: *const V,
    m: usize,
    b_keys: *const B,
    b_values: *const V,
    n: usize,
    c_keys: *mut B,
    c_values: *mut V,
    splits: *const usize,
    coding: Coding<B>,
) {
    // SAFETY: arrays of A, B and C have `m`, `n` and `m + n` elements, as the caller promises. A block writes its tile,
    // `t * NT * VT ..` and at most `NT * VT` elements, up to `m + n`; tiles do not overlap. The rest is the caller's
    // promise.
    unsafe {
        let a = (Keys::new(a_keys, m, coding), Global::new(a_values, m));
        let b = (Keys::new(b_keys, n, coding), Global::new(b_values, n));
        let c = (KeysMut::new(c_keys, m + n, coding), GlobalMut::new(c_values, m + n));
        merge_block::<B, V, NT, VT>(a, b, c, splits);
    }
}

/// Merges the block's tile of the keys and values of `a` and `b` to `c`, at the splits that were found for tiles of `NT
/// * VT` keys.
///
/// # Safety
/// `splits` has a split for each tile, and there is one block for each, of `NT` threads, which all make this call, with
/// [`indexed_merge::shared_bytes`] of dynamic shared memory.
#[inline(always)]
pub(super) unsafe fn merge_block<B: Bits, V: Word, const NT: usize, const VT: usize>(
    a: (Keys<B>, Global<V>),
    b: (Keys<B>, Global<V>),
    c: (KeysMut<B>, GlobalMut<V>),
    splits: *const usize,
) {
    let (m, total, tile_keys) = (a.0.len(), a.0.len() + b.0.len(), NT * VT);
    let (t, tiles) = (thread::block_idx_x() as usize, total.div_ceil(tile_keys));
    let k = t * tile_keys;
    let count = (total - k).min(tile_keys);
    // SAFETY: there is a split for each of `tiles` tiles; `t` and `t + 1` are read if they are below that: there is one
    // block for each tile.
    let splits = unsafe { Global::new(splits, tiles) };
    let a_curr = splits.get(t);
    let a_next = clamp_split(a_curr, if t + 1 < tiles { splits.get(t + 1) } else { m }, count);
    let (b_curr, b_next) = (k - a_curr, k + count - a_next);
    // A split is at least `k - n` and at most `min(k, m)`, and `clamp_split` keeps ends in order: `a_curr <= a_next <=
    // m`, `b_curr <= b_next <= n`.
    let (a_len, b_len) = (a_next - a_curr, b_next - b_curr);
    let keys = Parts { a: a.0.bits().slice(a_curr, a_len), b: b.0.bits().slice(b_curr, b_len) };
    let values = Parts { a: a.1.slice(a_curr, a_len), b: b.1.slice(b_curr, b_len) };
    let (to_keys, to_values, coding) = (c.0.slice(k, count), c.1.slice(k, count), a.0.coding());
    // SAFETY: the launch has `indexed_merge::shared_bytes` for `NT * VT` keys. Thread `t < NT` writes slots
    // `t + i * NT` and `t * VT + i`, `i < VT`: below `NT * VT`, each by one thread; the padding behind them has
    // `VT + 1` slots. Barriers come between loading and merging, between the merge's reads and the writes of merged
    // keys, and before these and the source indices are read.
    let (tile, sources) =
        unsafe { (indexed_merge::key_memory::<B, NT, VT>(), indexed_merge::source_memory::<B, NT, VT>()) };

    indexed_merge::put_keys::<_, NT, VT>(indexed_merge::load_keys::<B, NT, VT>(keys, coding), tile);
    thread::sync_threads();
    let a_count = keys.a.len() as u32;
    let first = thread::thread_idx_x() * VT as u32;
    let pair = Cursors { a: 0, b: a_count, a_end: a_count, b_end: count as u32 };
    // Threads behind the last key stay there.
    let cursors = pair.after(first.min(count as u32), tile);
    let mut merged = [B::MAX; VT];
    indexed_merge::merge(
        tile,
        cursors,
        VT as u32,
        |_, _| {},
        |i, key, source| {
            merged[i as usize] = key;
            sources.set(first + i, source as u16);
        },
    );
    thread::sync_threads();
    tile::store_blocked(merged, first, tile);
    thread::sync_threads();
    tile::shared_to_global::<B, NT, VT>(tile, to_keys);
    indexed_merge::gather_values::<V, NT, VT>(values, sources, to_values);
}
