//! A pass of the sort: every group of K neighbouring runs is merged into one.
//!
//! ```text
//!   from     │ run 0   │ run 1   │ run 2   │ run 3   │        split_runs divides each run among the tiles
//!               ░░         ░░░       ░          ░░           the segments of one tile
//!   shared   │░░→ ←░░░│░→ ←░░│                               side by side: pairs, each with its ends together
//!            │░░░░░→      ←░░░│                              a round merges every pair, log2 K rounds merge all
//!            │░░░░░░░░│
//!   to       │ … tile … │
//! ```
//!
//! So K runs become one for the price of one pass over global memory; the rounds are in shared memory.
//!
//! | file | idea |
//! | --- | --- |
//! | [`split_runs`] | the splits of each tile |
//! | [`merge_runs`] | one block merges the segments of one tile |
//! | `plan` | the layout of the segments in shared memory |
//! | `load` | segments from global to shared memory |
//! | `rounds` | segments merged in shared memory |
//! | [`many_runs`] | a pass over a user's runs or detected ones, of any lengths and in any number |
//! | [`pad_runs`] | the runs of a pass that merges each group of a user's runs by itself |
//!
//! How segments are loaded, merged and stored depends on their [payload](crate::kernels::sort::payload).

pub(super) mod load;
pub mod many_runs;
pub mod merge_runs;
pub mod pad_runs;
pub(super) mod plan;
pub(super) mod rounds;
pub mod split_runs;

use crate::kernels::sort::runs::{MAX_RUNS, Runs};
use crate::tuning::{ROW, Tile};

/// Blocks on a multiprocessor, limited by shared memory. More registers for each thread would leave fewer blocks.
pub const MIN_BLOCKS_PER_SM: usize = 3;

/// Whether a block may be given several tiles, one after another, of keys of `key_bytes` bytes with values of
/// `value_bytes` bytes, or 0. With other widths the loop would spill registers on GPUs of compute capability 8.0.
pub const fn takes_several(key_bytes: usize, value_bytes: usize) -> bool {
    value_bytes == 0 || key_bytes + value_bytes == 8
}

/// Keys of a tile with `slots` slots in shared memory. Each of `k / 2` pairs of siblings may leave up to
/// `items_per_thread - 1` slots empty. There may be `rank_tolerance` more keys at both ends. The result is a multiple
/// of 32, so that tiles without tolerance begin at whole lines of memory.
pub const fn tile_keys(slots: usize, items_per_thread: usize, k: u32, rank_tolerance: u32) -> u32 {
    ((slots - k as usize / 2 * (items_per_thread - 1) - 2 * rank_tolerance as usize) / 32 * 32) as u32
}

/// The runs of `n` keys in tiles of shape `shape`, `k` of them merged at a time.
///
/// # Panics
/// If [`Runs::new`] panics, for example because tiles of that shape are too small for `k` runs and `rank_tolerance`.
pub const fn runs_in_tiles(n: usize, run: usize, k: u32, shape: Tile, rank_tolerance: u32) -> Runs {
    Runs::new(n, run, k, tile_keys(shape.keys(), shape.items_per_thread, k, rank_tolerance), rank_tolerance)
}

/// Whether tiles of that shape have more keys than the tolerance at both ends, even in a pass that merges [`MAX_RUNS`].
const fn has_slots(shape: Tile, rank_tolerance: u32) -> bool {
    tile_keys(shape.keys(), shape.items_per_thread, MAX_RUNS, rank_tolerance) > 2 * rank_tolerance
}

const _: () = {
    let (of_many, of_few) = (ROW.rank_tolerance, ROW.small_rank_tolerance);
    let tolerated = [
        (ROW.merge_runs.of(4, 0), of_many),
        (ROW.merge_runs.of(8, 0), of_many),
        (ROW.merge_runs_small.of(4, 0), of_few),
        (ROW.merge_runs_small.of(8, 0), of_few),
        (ROW.merge_runs.of(4, 4), of_few),
        (ROW.merge_runs.of(4, 8), of_few),
        (ROW.merge_runs.of(8, 4), of_few),
        (ROW.merge_runs.of(8, 8), of_few),
    ];
    let mut i = 0;
    while i < tolerated.len() {
        assert!(has_slots(tolerated[i].0, tolerated[i].1), "a tile has slots for the most runs and the tolerance");
        i += 1;
    }
};
