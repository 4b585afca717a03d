//! Sort by digits, on one thread or on all.
//!
//! A descending sort is an ascending one of mirrored keys, of which the greatest comes first:
//!
//! ```text
//!   keys  3 1 2   ─ mirror ─►  -3 -1 -2   ─ sort ─►  -3 -2 -1   ─ mirror ─►  3 2 1
//! ```
//!
//! Many keys of 1 or 2 bytes are counted instead. A few keys of any type are compared.

use super::radix::Workspace;
use super::run::RunMut;
use super::{counting, for_each_piece_of_keys, leaf, memory, parallel_radix, radix};
use crate::{Error, Key, SortOrder};
use bytemuck::Zeroable;

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
pub(super) fn sort<K: Key, V: Copy + Send + Sync>(run: RunMut<K, V>, scratch: RunMut<K, V>, threads: usize) {
    if threads == 1 {
        radix::sort(run, scratch, false, None, &mut Workspace::new());
    } else {
        parallel_radix::sort(run, scratch, threads);
    }
}
