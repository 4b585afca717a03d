//! Finding out that there is nothing to sort.
//!
//! ```text
//!   block_sort   is the tile in order?              a look at its first keys says no for most; else all are looked at
//!   look_across  is each tile's end in order?       a look at the keys on both sides of every boundary
//!   split_runs, merge_runs
//!                if nobody has found a disorder, the passes end at once, and the last one decodes the keys
//! ```
//!
//! Whoever finds a disorder raises a flag in global memory, which is lowered before the sort.

use crate::key::Bits;
use crate::sort::select::from_lane;
use cuda_std::prelude::*;
use cuda_std::warp::{FULL_MASK, WARP_SIZE, ballot};

/// Where a disorder is noted: one word, or none at all, which counts as disorder.
#[derive(Clone, Copy)]
pub(super) struct Disorder(Option<GlobalMut<u32>>);

impl Disorder {
    /// # Safety
    /// `flag` is null or of a word in global memory that kernels in flight write by this type alone.
    #[inline(always)]
    pub(super) unsafe fn new(flag: *mut u32) -> Self {
        // SAFETY: the caller's promise.
        Self((!flag.is_null()).then(|| unsafe { GlobalMut::new(flag, 1) }))
    }

    /// Whether it is looked for at all.
    #[inline(always)]
    pub(super) fn is_watched(self) -> bool {
        self.0.is_some()
    }

    #[inline(always)]
    #[track_caller]
    pub(super) fn raise(self) {
        if let Some(flag) = self.0 {
            flag.raise(0);
        }
    }

    /// Whether there is none, as far as launches before this one have looked.
    #[inline(always)]
    #[track_caller]
    pub(super) fn is_absent(self) -> bool {
        self.0.is_some_and(|flag| flag.get(0) == 0)
    }
}

/// Kernel: looks at the keys on both sides of each boundary between runs of `run` keys, and makes the word at `disorder` 1
/// where they are out of order. One thread a boundary.
///
/// # Safety
/// `keys` has `n` keys, in global memory, and `disorder` is a word there.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn look_across<B: Bits>(keys: *const B, n: usize, run: usize, disorder: *mut u32) {
    // SAFETY: the caller's promise.
    let (keys, disorder) = unsafe { (Global::new(keys, n), Disorder::new(disorder)) };
    let boundary = (thread::index_1d() as usize + 1) * run;
    if boundary < n && keys.get(boundary) < keys.get(boundary - 1) {
        disorder.raise();
    }
}

/// Words of shared memory for [`is_sorted`] in blocks of `threads` threads.
pub(super) const fn vote_words(threads: usize) -> u32 {
    threads as u32 / WARP_SIZE
}

/// Whether all threads of the block vote yes. All call this, and the votes' memory is not used for other things.
#[inline(always)]
#[track_caller]
fn all_agree<const NT: usize>(yes: bool, votes: Shared<u32>) -> bool {
    // SAFETY: all threads of the block come here.
    let warp_agrees = unsafe { ballot(FULL_MASK, yes) } == FULL_MASK;
    let thread = thread::thread_idx_x();
    if thread.is_multiple_of(WARP_SIZE) {
        votes.set(thread / WARP_SIZE, u32::from(warp_agrees));
    }
    thread::sync_threads();
    let mut agreed = 1;
    for warp in 0..vote_words(NT) {
        agreed &= votes.get(warp);
    }
    // Before the next vote.
    thread::sync_threads();
    agreed == 1
}

/// Whether the tile whose keys the threads hold, strided, is sorted. If so, `tile` holds it.
///
/// The block has `NT` threads, whole warps, which all call this.
#[inline(always)]
#[track_caller]
pub(super) fn is_sorted<B: Bits, const NT: usize, const VT: usize>(
    keys: [B; VT],
    tile: Shared<B>,
    votes: Shared<u32>,
) -> bool {
    let (thread, lane) = (thread::thread_idx_x(), warp::lane_id());
    // SAFETY: all threads of the block come here.
    let next = unsafe { from_lane(keys[0], (lane + 1) % WARP_SIZE) };
    if !all_agree::<NT>(lane == WARP_SIZE - 1 || keys[0] <= next, votes) {
        return false;
    }
    crate::tile::registers_strided::<_, NT, VT>(keys, tile);
    thread::sync_threads();
    let first = thread * VT as u32;
    let (mut sorted, mut previous) = (true, tile.get(first.saturating_sub(1)));
    for i in 0..VT as u32 {
        let key = tile.get(first + i);
        sorted &= previous <= key;
        previous = key;
    }
    all_agree::<NT>(sorted, votes)
}
