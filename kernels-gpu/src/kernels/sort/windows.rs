//! The sort of keys that are out of order only within half a window: each window is sorted, and then the halves of
//! neighbouring windows are merged.
//!
//! ```text
//!   sort_windows    │  a  │     b     │     c     │  d  │     windows: the first one has half the length
//!   merge_windows   │     │     │     │     │     │     │     halves of windows …
//!                   │  a ∪ b's    │ b's ∪ c's │ c's ∪ d   │     … two by two
//! ```
//!
//! By the zero-one principle, it suffices that this sorts keys that are 0 or 1. From the first 1 to the last 0, there
//! are at most half a window of keys. If they lie in one window, its sort puts them in order. Otherwise they lie around
//! the border between two windows, and the merge of the halves at this border does.
//!
//! Other keys are not in order afterwards. [`detect_runs`](super::detect_runs::detect_runs) finds that out, and another
//! sort continues. Equal keys stay in order, with their values.
//!
//! A window that bins do not sort is not written. All keys then stay where they are.

use super::detect_runs::Detection;
use super::divide::sort_buckets::{self, sort_bucket};
use super::merge_pass::merge_runs::merge_tile;
use super::merge_pass::tile_keys;
use super::payload::beside::Beside;
use super::payload::nothing::Nothing;
use super::payload::{Payload, is_of_host};
use super::runs::Runs;
use crate::block::shared_memory;
use crate::elements::Elements;
use crate::key::{Bits, Coding};
use crate::tuning::{ROW, Tile};
use cuda_std::prelude::*;

pub use super::divide::sort_buckets::shared_bytes as sort_shared_bytes;
pub use super::payload::merge_runs_bytes as merge_shared_bytes;

/// The shape of blocks that sort windows of keys of `key_bytes` bytes with values of `value_bytes` bytes, or 0.
pub const fn sort_shape(key_bytes: usize, value_bytes: usize) -> Tile {
    ROW.sort_buckets.of(key_bytes, value_bytes)
}

/// The shape of blocks that merge the halves of windows.
pub const fn merge_shape(key_bytes: usize, value_bytes: usize) -> Tile {
    ROW.merge_windows.of(key_bytes, value_bytes)
}

/// Whether there are kernels for keys of `key_bytes` bytes with values of `value_bytes` bytes, or 0.
pub const fn is_compiled(key_bytes: usize, value_bytes: usize) -> bool {
    ROW.merge_windows.get(key_bytes, value_bytes).is_some()
}

/// Keys of a window: the keys of a block of [`sort_windows`].
pub const WINDOW: usize = sort_shape(4, 0).keys();

/// Number of times that bins are made finer. Another sort is faster than a second time.
const FINER: u32 = 1;

/// Kernel: sorts each window of `from` to the same indices of `to`, as `encode` encodes the keys. The first window has
/// half the length. Nothing is done unless `choose_digits` has stored in `order` that windows are to be sorted. If bins
/// do not sort a window, `order` says so afterwards.
///
/// # Safety
/// `from` and `to` have `n` elements, in global memory, and do not overlap. `order` has [`DETECTION_WORDS`]
/// words. Blocks have `NT` threads, with [`sort_shared_bytes`] for `NT` threads and `VT` keys.
///
/// [`DETECTION_WORDS`]: super::detect_runs::DETECTION_WORDS
#[kernel(
    u32 = <u32, (), { sort_shape(4, 0).threads }, { sort_shape(4, 0).items_per_thread }>
        within (sort_shape(4, 0).threads, 3),
    u32v4 = <u32, u32, { sort_shape(4, 4).threads }, { sort_shape(4, 4).items_per_thread }>
        within (sort_shape(4, 4).threads, 2),
)]
pub unsafe fn sort_windows<B: Bits, V: Word, const NT: usize, const VT: usize>(
    from: Elements<B, V>,
    to: Elements<B, V>,
    n: usize,
    encode: Coding<B>,
    order: *mut u32,
) {
    const { assert!(NT * VT == WINDOW && WINDOW.is_multiple_of(2), "a block sorts a window") };
    const { shared_memory::check(sort_buckets::Memory::<B, V>::bytes(NT, VT)) };
    // SAFETY: `order` has `DETECTION_WORDS` words. Threads read one that no launch writes at the same time, and raise
    // another one, which they do not read.
    let detection = unsafe { Detection::new(order) };
    if !detection.has_windows() {
        return;
    }
    // SAFETY: the launch has `sort_shared_bytes` for `NT` threads with `VT` keys. Barriers of `sort_bucket` come
    // between writing and reading, and another barrier before the next window.
    let memory = unsafe { sort_buckets::Memory::<B, V>::at_start(NT, VT) };
    // SAFETY: `from` and `to` have `n` elements. Windows do not overlap, and one block takes each.
    let (from, to) = unsafe { (from.arrays(n), to.arrays(n)) };
    let mut window = thread::block_idx_x() as usize;
    // The last key of a window lies half a window behind a multiple of its length.
    while (window * WINDOW).saturating_sub(WINDOW / 2) < n {
        let start = (window * WINDOW).saturating_sub(WINDOW / 2);
        let len = (window * WINDOW + WINDOW / 2).min(n) - start;
        let codings = (encode, Coding::NONE);
        // SAFETY: `window` is the same for all threads, so that all `NT` threads of the block make the call. A window
        // has at most `NT * VT` elements, and a barrier comes before the next use of `memory`.
        let is_sorted = unsafe {
            let (from, to) = (from.slice(start, len), || to.slice(start, len));
            sort_bucket::<B, V, NT, VT, VT, true, FINER>(from, to, codings, memory)
        };
        if !is_sorted && thread::thread_idx_x() == 0 {
            detection.give_up_windows();
        }
        thread::sync_threads();
        window += thread::grid_dim_x() as usize;
    }
}

/// Kernel: merges the halves of neighbouring windows of `from` to `to`, as `decode` decodes the keys. Nothing is done
/// unless [`sort_windows`] has sorted all windows.
///
/// # Safety
/// `from` and `to` have `n` elements, in global memory, and do not overlap. [`sort_windows`] has written `from`, and
/// `order` has [`DETECTION_WORDS`] words. Blocks have `NT` threads, with [`merge_shared_bytes`] for `NT * VT` keys.
///
/// [`DETECTION_WORDS`]: super::detect_runs::DETECTION_WORDS
#[kernel(
    u32 = <u32, (), Nothing, { merge_shape(4, 0).threads }, { merge_shape(4, 0).items_per_thread }>
        within (merge_shape(4, 0).threads, 6),
    u32v4 = <u32, u32, Beside, { merge_shape(4, 4).threads }, { merge_shape(4, 4).items_per_thread }>
        within (merge_shape(4, 4).threads, 4),
)]
pub unsafe fn merge_windows<B: Bits, V: Word, P: Payload<B, V, NT, VT>, const NT: usize, const VT: usize>(
    from: Elements<B, V>,
    to: Elements<B, V>,
    n: usize,
    decode: Coding<B>,
    order: *mut u32,
) {
    const { assert!(is_of_host::<B, V, P, NT, VT>(), "the host launches with memory for another payload") };
    const { assert!(tile_keys(NT * VT, VT, 2, 0) as usize >= WINDOW, "a tile has slots for two halves") };
    // SAFETY: `order` has `DETECTION_WORDS` words, which this launch only reads.
    if !unsafe { Detection::new(order) }.has_sorted_windows() {
        return;
    }
    // SAFETY: half a window has 1 to 2^32 - 1 keys, 2 is a power of two of at most `MAX_RUNS`, and a tile has keys.
    let runs = unsafe { Runs::new_unchecked(n, WINDOW / 2, 2, WINDOW as u32, 0) };
    // SAFETY: `from` and `to` have `n` elements and do not overlap. A block writes only its own tiles. There are no
    // splits, because a tile holds both halves.
    let (from, to, splits) = unsafe { (from.source(n), to.arrays(n), Global::new(core::ptr::null(), 0)) };
    let mut tile = thread::block_idx_x() as usize;
    while tile * WINDOW < n {
        // SAFETY: `tile` is the same for all threads, so that all `NT` threads of the block make the call. The launch
        // has `merge_shared_bytes` for `NT * VT` keys, and a barrier comes before the next tile.
        unsafe { merge_tile::<B, V, P, NT, VT>(runs, tile, from, to, splits, Coding::NONE, decode) };
        thread::sync_threads();
        tile += thread::grid_dim_x() as usize;
    }
}
