//! Bounds by a merge, at the splits of `path_big`.

use crate::block::indexed_merge::{self, Cursors};
use crate::kernels::merge_path::{Tile, TwoRuns};
use crate::key::{Bits, Coding};
use crate::tuning::ROW;
use cuda_std::prelude::*;

/// Kernel: writes, for each needle, the number of keys that precede it in the merge of both runs in the order of
/// `coding`. One block per tile, at the splits of [`path_big`](crate::kernels::merge_path::path_big).
///
/// If `lower` is not 0, the needles are A, which precede equal keys. Otherwise they are B, which follow equal keys.
///
/// # Safety
/// The runs are two ascending arrays. `bounds` has capacity for a number per needle, of a type that can hold
/// the number of keys, and does not overlap the input arrays. `splits` is the result of `path_big` for tiles of `NT *
/// VT` keys. Blocks have `NT` threads, one block per tile, with [`indexed_merge::shared_bytes`] of dynamic shared
/// memory.
#[kernel(
    u32v4 = <u32, u32, { ROW.indexed.of(4, 0).threads }, { ROW.indexed.of(4, 0).items_per_thread }>,
    u32v8 = <u32, u64, { ROW.indexed.of(4, 0).threads }, { ROW.indexed.of(4, 0).items_per_thread }>,
    u64v4 = <u64, u32, { ROW.indexed.of(8, 0).threads }, { ROW.indexed.of(8, 0).items_per_thread }>,
    u64v8 = <u64, u64, { ROW.indexed.of(8, 0).threads }, { ROW.indexed.of(8, 0).items_per_thread }>,
)]
pub unsafe fn merge_bounds<B: Bits, I: Bits, const NT: usize, const VT: usize>(
    runs: TwoRuns<B, ()>,
    bounds: *mut I,
    splits: *const usize,
    lower: u32,
    coding: Coding<B>,
) {
    let needles = if lower != 0 { runs.a_len } else { runs.len - runs.a_len };
    // SAFETY: `path_big` has written the splits, and there is a block for each tile. `bounds` has `needles` numbers. A
    // block writes only the bounds of the needles in its own part of the merge.
    let (tile_of_block, bounds) =
        unsafe { (Tile::of_block::<true>(runs, splits, NT * VT), GlobalMut::new(bounds, needles)) };
    let Some(Tile { parts, a_first, b_first }) = tile_of_block else { return };
    let bounds = if lower != 0 { bounds.slice(a_first, parts.a.len()) } else { bounds.slice(b_first, parts.b.len()) };
    // SAFETY: the launch has `indexed_merge::shared_bytes` for `NT * VT` keys. Thread `t < NT` writes slots
    // `t + i * NT` of the tile for `i < VT`, before a barrier. It then writes the slots of `before` that belong to the
    // needles of its own part of the merge; a barrier comes before the reads.
    let (tile, before) =
        unsafe { (indexed_merge::key_memory::<B, NT, VT>(), indexed_merge::source_memory::<B, NT, VT>()) };
    indexed_merge::put_keys::<_, NT, VT>(indexed_merge::load_keys::<B, (), NT, VT>(parts, coding), tile);
    thread::sync_threads();
    let pair = Cursors::of_pair(parts);
    let (a_end, end) = (pair.a_end, pair.b_end);
    let first = thread::thread_idx_x() * VT as u32;
    let cursors = pair.after(first.min(end), tile);
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
