//! The starts of the runs of a pass, if a user's runs form groups and each group becomes one run. Runs get slots such
//! that no merge of `k` slots takes runs of two groups.
//!
//! ```text
//!   groups   │ 0     │ 1 │ 2         │                          each of any number of runs
//!   runs     │ 0 1 2 │ 3 │ 4 5 6 7 8 │
//!   merges   │ 0       │ 1       │ 2       │ 3       │ 4       │    k = 4
//!   slots    │ 0 1 2 – │ 3 – – – │ – – – – │ 4 5 6 7 │ 8 – – – │    others are empty runs, where the group ends
//! ```
//!
//! A group of `r` runs needs `r / k` merges, rounded up. Its first merge has number `f / k + g`, rounded down, where
//! `f` is the number of its first run and `g` its own number. So a group has the merges that it needs, or one more, and
//! no sum over earlier groups is necessary.
//!
//! With these offsets, a pass is a pass of [`many_runs`](super::many_runs), whose groups are these merges.

use crate::kernels::sort::runs::last_where;
use crate::key::Bits;
use cuda_std::prelude::*;

/// Threads of a block of [`pad_runs`].
pub const PAD_THREADS: u32 = 256;

/// Groups of the runs of an array, and the pass that merges the runs of each group.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PaddedRuns {
    /// Starts of the runs of the first pass, and the end: `runs + 1` nondecreasing offsets.
    pub offsets: *const usize,
    /// Number of runs of the first pass.
    pub runs: usize,
    /// Number of the first run of each group, and the number of runs: `count + 1` nondecreasing numbers from 0 to
    /// `runs`.
    pub groups: *const usize,
    /// Number of groups: 1 or more.
    pub count: usize,
    /// Binary logarithm of the number of runs of the first pass in one run of this pass.
    pub log_merged: u32,
    /// Binary logarithm of the number of runs of this pass that a merge takes. Together with `log_merged` at most 63.
    pub log_k: u32,
}

impl PaddedRuns {
    /// Each group as one run, however many runs it has. There is a slot for each group.
    pub const fn whole_groups(offsets: *const usize, runs: usize, groups: *const usize, count: usize) -> Self {
        Self { offsets, runs, groups, count, log_merged: usize::BITS - 1, log_k: 0 }
    }

    /// Number of merges of `k` runs in the pass.
    pub const fn merges(self) -> usize {
        (self.runs >> (self.log_merged + self.log_k)) + self.count
    }

    /// Number of slots for runs in the pass: `k` for each merge.
    pub const fn slots(self) -> usize {
        self.merges() << self.log_k
    }
}

/// Kernel: writes to `to` the start of each slot's run, and the end of all runs, with a thread for each offset. The
/// kernel is the same for all keys, and there is a copy in the module of each key type.
///
/// # Safety
/// The fields of `padded` meet their descriptions, in global memory. `to` has capacity for [`PaddedRuns::slots`]
/// offsets and one more, and overlaps none of `padded`. There is a thread for each offset.
#[kernel(u32 = <u32>, u64 = <u64>)]
pub unsafe fn pad_runs<B: Bits>(padded: PaddedRuns, to: *mut usize) {
    let slots = padded.slots();
    // SAFETY: the lengths are the requirements of this kernel. Only thread `s <= slots` writes offset `s`, below `slots
    // + 1`.
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
        // Number of the slot among the slots of the group.
        let i = slot - (first_merge(group) << padded.log_k);
        (groups.get(group) + (i << padded.log_merged)).min(groups.get(group + 1))
    };
    to.set(slot, offsets.get(run));
}
