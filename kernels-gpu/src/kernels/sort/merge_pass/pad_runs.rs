//! Where the runs of a pass begin if a user's runs form groups, each of which becomes one run: slots for runs such that
//! no merge of `k` of them takes runs of two groups.
//!
//! ```text
//!   groups   │ 0     │ 1 │ 2         │                          each of any number of runs
//!   runs     │ 0 1 2 │ 3 │ 4 5 6 7 8 │
//!   merges   │ 0       │ 1       │ 2       │ 3       │ 4       │    k = 4
//!   slots    │ 0 1 2 – │ 3 – – – │ – – – – │ 4 5 6 7 │ 8 – – – │    others are empty runs, where the group ends
//! ```
//!
//! A group of `r` runs needs `r / k` merges, rounded up. Its first one is number `f / k + g`, rounded down, where `f`
//! is the number of its first run and `g` its own number. So a group has as many merges as it needs, or one more, and
//! nothing has to be added up over the groups before it.
//!
//! With these offsets a pass is one of [`many_runs`](super::many_runs), whose groups of runs are these merges.

use crate::kernels::sort::runs::last_where;
use crate::key::Bits;
use cuda_std::prelude::*;

/// Threads of a block of [`pad_runs`].
pub const PAD_THREADS: u32 = 256;

/// Groups of the runs of an array, and the pass that is to merge runs of each group.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PaddedRuns {
    /// Where the runs of the first pass begin, and after the last one the end: `runs + 1` offsets that never decrease.
    pub offsets: *const usize,
    /// How many runs the first pass has.
    pub runs: usize,
    /// Which run each group begins with, and after the last one the number of runs: `count + 1` numbers that never
    /// decrease, from 0 to `runs`.
    pub groups: *const usize,
    /// How many groups there are: 1 or more.
    pub count: usize,
    /// How many runs of the first pass are one run of this pass: its binary logarithm.
    pub log_merged: u32,
    /// How many runs of this pass a merge takes: its binary logarithm. Together with `log_merged` at most 63.
    pub log_k: u32,
}

impl PaddedRuns {
    /// Each group as one run, however many runs it has. There are as many slots as groups.
    pub const fn whole_groups(offsets: *const usize, runs: usize, groups: *const usize, count: usize) -> Self {
        Self { offsets, runs, groups, count, log_merged: usize::BITS - 1, log_k: 0 }
    }

    /// How many merges of `k` runs the pass has in all.
    pub const fn merges(self) -> usize {
        (self.runs >> (self.log_merged + self.log_k)) + self.count
    }

    /// How many slots for runs the pass has: `k` for each merge.
    pub const fn slots(self) -> usize {
        self.merges() << self.log_k
    }
}

/// Kernel: writes to `to` where the run of each slot begins, and after the last one the end of all runs. One thread for
/// each of these offsets. It is the same for all keys, and in the module of their type.
///
/// # Safety
/// `padded` is as its fields are described, in global memory, and `to`, which overlaps none of it, has capacity for
/// [`PaddedRuns::slots`] offsets and one more. There is a thread for each.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn pad_runs<B: Bits>(padded: PaddedRuns, to: *mut usize) {
    let slots = padded.slots();
    // SAFETY: the caller promises these lengths, and thread `s <= slots` alone writes offset `s`.
    let (offsets, groups, to) = unsafe {
        (
            Global::new(padded.offsets, padded.runs + 1),
            Global::new(padded.groups, padded.count + 1),
            GlobalMut::new(to, slots + 1),
        )
    };
    let slot = thread::block_idx_x() as usize * thread::block_dim_x() as usize + thread::thread_idx_x() as usize;
    if slot > slots {
        return;
    }
    let run = if slot == slots {
        padded.runs
    } else {
        let merge = slot >> padded.log_k;
        let first_merge = |group: usize| (groups.get(group) >> (padded.log_merged + padded.log_k)) + group;
        let group = last_where(padded.count, |group| first_merge(group) <= merge);
        // The number of the slot among those of the group.
        let i = slot - (first_merge(group) << padded.log_k);
        (groups.get(group) + (i << padded.log_merged)).min(groups.get(group + 1))
    };
    to.set(slot, offsets.get(run));
}
