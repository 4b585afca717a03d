//! The sort, in three ways.
//!
//! Tiles are sorted, and then merged, up to 32 neighbouring runs at a time until one is left:
//!
//! ```text
//!   block_sort         │ tile │ tile │ tile │ tile │ tile │     each tile sorted on its own
//!   merge_runs         │    run                    │ run  │     passes: K runs become one
//!                      │    run                           │     (split_runs finds the splits of all tiles)
//! ```
//!
//! Or keys, with values or without, are [divided](divide) by their leading digits, and then buckets are sorted. That is
//! faster for many keys that are spread evenly and form no runs:
//!
//! ```text
//!   divide             │ 0…            │ 1…         │ 2…   │     keys go to the segments of their digits
//!                      │00│01…│02…     │10…│11…     │20…   │     and once more
//!   sort_buckets       │  │   │        │   │        │      │     each bucket sorted on its own
//! ```
//!
//! Or keys of 4 bytes that are too skewed for that are sorted by [all of their bits](radix), the last ones first:
//!
//! ```text
//!   sort_by_radix      │ …0 │ …0 │ …1 │ …1 │ …2 │ …2 │     four stable sweeps, each by 8 bits
//! ```
//!
//! Keys that are nearly in their places are sorted by overlapping [`windows`].
//!
//! The [`segments`] of an array are sorted each on its own by tiles whose merges end where segments do, and by passes
//! over long ones.
//!
//! Values may move with the keys. The kernels of all three ways are the same for keys with and without values. In the
//! first way, a [`payload`] holds the differences.
//!
//! A pass, a division or a sweep reads one buffer and writes the other. Keys are ordered bits in between: the first
//! kernel encodes them and the last one decodes them, so that kernels are compiled for two widths, and not for types
//! and directions.

pub mod block_sort;
pub mod detect_runs;
pub mod divide;
pub mod indices;
pub mod merge_pass;
pub mod payload;
pub mod radix;
pub mod runs;
pub mod segments;
pub mod sort_small;
mod tasks;
pub mod tile_in_order;
pub mod windows;

use crate::key::Bits;
use cuda_std::prelude::*;
use cuda_std::warp::WARP_SIZE;

/// Whether `threads` threads are whole warps, and a block may have them: at most 32 warps. A scan and the packing of
/// keys have words for 32 warps.
const fn is_whole_warps(threads: usize) -> bool {
    threads > 0 && threads.is_multiple_of(WARP_SIZE as usize) && threads <= 1024
}

/// Calls `each` for each of the `keys`. Each of the `NT` threads of the block has its own keys.
#[inline(always)]
#[track_caller]
fn for_each_key<B: Bits, const NT: usize>(keys: GlobalMut<B>, each: impl Fn(B) + Copy) {
    let at = for_each_batch::<B, NT, 8>(keys, thread::thread_idx_x(), each);
    for_each_batch::<B, NT, 1>(keys, at, each);
}

/// Calls `each` for `BATCH` of the thread's keys at a time, from index `at` on, while a whole batch is left. Returns
/// the index of the thread's next key.
///
/// All loads of a batch come before all calls: the compiler does not change their order.
#[inline(always)]
#[track_caller]
fn for_each_batch<B: Bits, const NT: usize, const BATCH: usize>(
    keys: GlobalMut<B>,
    mut at: u32,
    each: impl Fn(B),
) -> u32 {
    while at + const { ((BATCH - 1) * NT) as u32 } < keys.len() as u32 {
        let mut own = [B::MIN; BATCH];
        for i in 0..BATCH {
            own[i] = keys.get(at as usize + i * NT);
        }
        for i in 0..BATCH {
            each(own[i]);
        }
        at += const { (BATCH * NT) as u32 };
    }
    at
}
