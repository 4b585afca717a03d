//! Bounds by a merge, at the splits of `path_big`.

use crate::block::indexed_merge::{self, Cursors, Parts};
use crate::key::{Bits, Coding};
use crate::textbook::co_rank::clamp_split;
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Kernel: writes, for each needle, the number of keys that precede it in the merge of `a` and `b` in the order of
/// `coding`. One block per tile, at the splits of [`path_big`](crate::kernels::merge_path::path_big).
///
/// If `lower` is not 0, the needles are `a`, which precede equal keys. Otherwise they are `b`, which follow equal keys.
///
/// # Safety
/// `a` and `b` are ascending arrays of `m` and `n` keys. `bounds` has one number per needle, wide enough for the number
/// of keys. `splits` is the result of `path_big` for tiles of `NT * VT` keys. There is one block per tile, of `NT`
/// threads, with [`indexed_merge::shared_bytes`] of dynamic shared memory. `bounds` does not overlap an input array.
#[kernel(
    u32v4 = <u32, u32, { ROW.indexed.of(4, 0).threads }, { ROW.indexed.of(4, 0).items_per_thread }>,
    u32v8 = <u32, u64, { ROW.indexed.of(4, 0).threads }, { ROW.indexed.of(4, 0).items_per_thread }>,
    u64v4 = <u64, u32, { ROW.indexed.of(8, 0).threads }, { ROW.indexed.of(8, 0).items_per_thread }>,
    u64v8 = <u64, u64, { ROW.indexed.of(8, 0).threads }, { ROW.indexed.of(8, 0).items_per_thread }>,
)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn merge_bounds<B: Bits, I: Bits, const NT: usize, const VT: usize>(
    a: *const B,
    m: usize,
    b: *const B,
    n: usize,
    bounds: *mut I,
    splits: *const usize,
    lower: u32,
    coding: Coding<B>,
) {
    let (total, tile_keys) = (m + n, NT * VT);
    let (t, tiles) = (thread::block_idx_x() as usize, total.div_ceil(tile_keys));
    let k = t * tile_keys;
    let count = (total - k).min(tile_keys);
    // SAFETY: `path_big` has written a split for each of the `tiles` tiles. There is one block per tile, so that
    // `t < tiles`, and `t + 1` is read only if it is below `tiles`.
    let splits = unsafe { Global::new(splits, tiles) };
    let a_first = splits.get(t);
    let a_count = clamp_split(a_first, if t + 1 < tiles { splits.get(t + 1) } else { m }, count) - a_first;
    let (b_first, b_count) = (k - a_first, count - a_count);
    // SAFETY: the caller passes `m` keys at `a`, `n` at `b` and one bound per needle. A split is from `k - n` to
    // `min(k, m)`, and `clamp_split` keeps the ends in order. A block writes the bounds of its own needles only.
    let (parts, bounds) = unsafe {
        (
            Parts { a: Global::new(a, m).slice(a_first, a_count), b: Global::new(b, n).slice(b_first, b_count) },
            if lower != 0 {
                GlobalMut::new(bounds, m).slice(a_first, a_count)
            } else {
                GlobalMut::new(bounds, n).slice(b_first, b_count)
            },
        )
    };
    // SAFETY: the launch has `indexed_merge::shared_bytes` for `NT * VT` keys. Thread `t < NT` writes slots
    // `t + i * NT` of the tile for `i < VT`, before a barrier. It then writes the slots of `before` that belong to the
    // needles of its own part of the merge; a barrier comes before the reads.
    let (tile, before) =
        unsafe { (indexed_merge::key_memory::<B, NT, VT>(), indexed_merge::source_memory::<B, NT, VT>()) };
    indexed_merge::put_keys::<_, NT, VT>(indexed_merge::load_keys::<B, NT, VT>(parts, coding), tile);
    thread::sync_threads();
    let (a_end, end) = (a_count as u32, count as u32);
    let first = thread::thread_idx_x() * VT as u32;
    let cursors = Cursors { a: 0, b: a_end, a_end, b_end: end }.after(first.min(end), tile);
    indexed_merge::merge(
        tile,
        cursors,
        VT as u32,
        |_, _| {},
        |i, _, source| {
            let (rank, of_a) = (first + i, source < a_end);
            if rank < end && of_a == (lower != 0) {
                let needle = if of_a { source } else { source - a_end };
                before.set(needle, (rank - needle) as u16);
            }
        },
    );
    thread::sync_threads();
    let others = if lower != 0 { b_first } else { a_first };
    for i in 0..VT {
        let needle = thread::thread_idx_x() as usize + i * NT;
        if needle < bounds.len() {
            bounds.set(needle, I::from_register((others + before.get(needle as u32) as usize) as u64));
        }
    }
}
