//! Groups of equal adjacent keys: unique keys, run lengths and reductions by key.
//!
//! ```text
//!   blocks   │ 1 1 2 2 │ 2 3 3 3 │ 3 3 3 3 │ 3 5 5 6 │
//!   heads    │ 1   2   │   3     │         │   5   6 │     counted first: a prefix sum gives each block its slots
//!   leading  │         │ 1       │ 4       │ 1       │     values before a block's first head: added in order
//! ```
//!
//! Blocks have a fixed length, so that the sum of floats does not depend on the number of threads.

use super::memory::out_of_memory;
use crate::{Error, Key, allocation, parallel};
use std::mem::MaybeUninit;
use std::ops::Range;

/// The number of keys of a block.
const BLOCK: usize = 1 << 16;

/// Replaces the contents of `out` by the first key of each group, and the contents of `totals` by the group's values,
/// combined in their order.
pub(crate) fn reduce<K: Key, V: Copy + Send + Sync>(
    keys: &[K],
    value: impl Fn(usize) -> V + Sync,
    combine: impl Fn(V, V) -> V + Sync,
    out: &mut Vec<K>,
    totals: &mut Vec<V>,
    threads: usize,
) -> Result<(), Error> {
    let is_head = |i: usize| i == 0 || keys[i].to_ordered() != keys[i - 1].to_ordered();
    let blocks = || (0..keys.len()).step_by(BLOCK).map(|begin| begin..keys.len().min(begin + BLOCK));
    let counts = parallel::try_map_on(threads, blocks(), |block| block.filter(|&i| is_head(i)).count())?;
    let total = counts.iter().sum();
    out.clear();
    allocation::handled(|| out.try_reserve_exact(total)).map_err(|_| out_of_memory::<K>(total))?;
    totals.clear();
    allocation::handled(|| totals.try_reserve_exact(total)).map_err(|_| out_of_memory::<V>(total))?;
    let mut slots = (&mut out.spare_capacity_mut()[..total], &mut totals.spare_capacity_mut()[..total]);
    let slots = counts.iter().map(|&count| {
        let of_keys = slots.0.split_off_mut(..count).expect("the counts add up to `total`");
        (of_keys, slots.1.split_off_mut(..count).expect("the counts add up to `total`"))
    });
    let leading = parallel::try_map_on(threads, blocks().zip(slots), |(block, slots)| {
        write_block(block, |i| is_head(i).then(|| keys[i]), &value, &combine, slots)
    })?;
    // SAFETY: both vectors have capacity for `total` elements. The blocks' slots are disjoint and cover the first
    // `total` slots of both. `write_block` has filled all slots of its block, or panicked.
    unsafe {
        out.set_len(total);
        totals.set_len(total);
    }
    let mut end = 0;
    for (count, leading) in counts.into_iter().zip(leading) {
        if let Some(value) = leading {
            // The first block begins with a head, so a leading value always belongs to an earlier group: `end >= 1`.
            totals[end - 1] = combine(totals[end - 1], value);
        }
        end += count;
    }
    Ok(())
}

/// Fills the slots of a block: the keys that `head` returns, and the totals of the groups up to the end of the block.
/// Returns the total of the values before the first head.
fn write_block<K, V: Copy>(
    block: Range<usize>,
    head: impl Fn(usize) -> Option<K>,
    value: impl Fn(usize) -> V,
    combine: impl Fn(V, V) -> V,
    (keys, totals): (&mut [MaybeUninit<K>], &mut [MaybeUninit<V>]),
) -> Option<V> {
    let (mut leading, mut own, mut begun) = (None, None, 0);
    for i in block {
        let value = value(i);
        if let Some(key) = head(i) {
            end_group(begun, own, &mut leading, totals);
            keys[begun].write(key);
            (own, begun) = (Some(value), begun + 1);
        } else {
            own = Some(own.map_or(value, |own| combine(own, value)));
        }
    }
    end_group(begun, own, &mut leading, totals);
    assert_eq!(begun, keys.len(), "there are as many heads as were counted");
    leading
}

/// Stores the total `own`: of the last of `begun` groups, or of the values before the first head if `begun` is 0.
fn end_group<V>(begun: usize, own: Option<V>, leading: &mut Option<V>, totals: &mut [MaybeUninit<V>]) {
    match (begun, own) {
        (0, own) => *leading = own,
        (_, Some(own)) => _ = totals[begun - 1].write(own),
        (_, None) => unreachable!("a group has a value"),
    }
}
