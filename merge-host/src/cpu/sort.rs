//! Merge sort: each thread sorts a run, then pairs of runs are merged along the merge path until one is left.
//!
//! ```text
//!   keys     ├── run ──┼── run ──┼── run ──┼── run ──┤    sorted by one thread each
//!   scratch  ├───────────────────┼───────────────────┤    merged by all
//!   keys     ├───────────────────────────────────────┤    merged by all
//! ```
//!
//! A descending sort is an ascending one of mirrored keys, of which the greatest comes first. Many keys of 1 or 2 bytes
//! are counted instead.

use super::run::RunMut;
use super::{counting, for_each_piece_of_keys, leaf, memory, merge_path, radix};
use crate::sorted::first_unsorted_in_block;
use crate::{Error, Key, SortOrder};
use bytemuck::Zeroable;
use rayon::prelude::*;

/// Below this, a comparison sort beats counting digits, and needs no scratch memory.
const SMALL: usize = 1 << 10;
/// Keys that a thread mirrors at once.
const PIECE: usize = 1 << 14;

/// Sorts `keys`. If `threads` is more than 1, this thread belongs to the pool to use.
pub(super) fn sort_keys<K: Key>(order: SortOrder, keys: &mut [K], threads: usize) -> Result<(), Error> {
    if counting::can_sort::<K>(keys.len()) {
        return counting::sort(order, keys, threads);
    }
    if keys.len() <= SMALL {
        // Equal keys have equal bits, so that nobody can tell a stable sort of keys from another.
        in_order(order, keys, 1, |keys| leaf::sort_keys(keys, &mut [K::Bits::zeroed(); SMALL]));
        return Ok(());
    }
    // Zeroed memory comes from the system untouched: each thread maps the part that it writes to first.
    let mut scratch = memory::zeroed(keys.len())?;
    in_order(order, keys, threads, |keys| sort(RunMut::of_keys(keys), RunMut::of_keys(&mut scratch), threads));
    Ok(())
}

/// Calls `sort` with `keys` such that it is to sort them ascending.
pub(super) fn in_order<K: Key>(order: SortOrder, keys: &mut [K], threads: usize, sort: impl FnOnce(&mut [K])) {
    let apply = |keys: &mut [K]| {
        if order != SortOrder::Ascending {
            for_each_piece_of_keys(keys, PIECE, threads, |_, keys| {
                keys.iter_mut().for_each(|key| *key = order.applied_to(*key));
            });
        }
    };
    apply(keys);
    sort(keys);
    apply(keys);
}

/// Sorts `run`, ascending and stable. `scratch` is as long. If `threads` is more than 1, this thread belongs to the pool
/// to use.
pub(super) fn sort<K: Key, V: Copy + Send + Sync>(mut run: RunMut<K, V>, mut scratch: RunMut<K, V>, threads: usize) {
    // Ends early unless the keys are sorted, or nearly.
    if first_unsorted_in_block(run.keys).is_none() {
        return;
    }
    if threads == 1 {
        return radix::sort(run, scratch, false);
    }

    // Every pass of merges moves the keys to the other memory, and the last one is to end where they were.
    let mut length = run.keys.len().div_ceil(threads);
    let runs = run.keys.len().div_ceil(length);
    let passes = runs.next_power_of_two().ilog2();
    let start_in_scratch = passes % 2 == 1;
    let pairs = run.par_chunks(length).zip(scratch.par_chunks(length));
    pairs.for_each(|(run, scratch)| radix::sort(run, scratch, start_in_scratch));

    let (mut from, mut to) = if start_in_scratch { (scratch, run) } else { (run, scratch) };
    while length < from.keys.len() {
        let pairs = from.par_chunks(2 * length).zip(to.par_chunks(2 * length));
        pairs.for_each(|(from, to)| {
            // The last pair may have a shorter second run, or none.
            let middle = length.min(from.keys.len());
            let (a, b) = from.split_at(middle);
            merge_path::merge(a.as_run(), b.as_run(), to, threads);
        });
        length *= 2;
        (from, to) = (to, from);
    }
}
