//! Sort of keys of which there are more than their type has values: count how often each value occurs, and write them
//! all down.
//!
//! ```text
//!   keys    2 0 1 2 0 1 1      each thread counts a part
//!   counts  2 3 2              added up
//!   keys    0 0 1 1 1 2 2      each thread writes pieces
//! ```
//!
//! Equal keys have equal bits, so that it makes no difference which of them is written where.

use super::{for_each_piece_of_keys, memory};
use crate::key::sealed::Bits;
use crate::{Error, Key, SortOrder};
use rayon::prelude::*;

/// The most bits of a key whose values are counted.
const MOST_BITS: u32 = 16;
/// Keys that a thread writes at once.
const PIECE: usize = 1 << 14;
/// Keys to count for each value that make it worth a thread to have counts of its own, which are to be added up then.
const KEYS_A_VALUE: usize = 4;

/// How often each value occurs, in the order of ordered bits.
type Counts = Box<[usize]>;

/// Whether so many keys are best sorted here.
pub(super) fn can_sort<K: Key>(keys: usize) -> bool {
    K::Bits::COUNT <= MOST_BITS && keys >= values::<K>()
}

/// Sorts `keys`, as many as [`can_sort`] is for. If `threads` is more than 1, this thread belongs to the pool to use.
pub(super) fn sort<K: Key>(order: SortOrder, keys: &mut [K], threads: usize) -> Result<(), Error> {
    let part = keys.len().div_ceil(threads).max(KEYS_A_VALUE * values::<K>());
    let mut ends = if part < keys.len() {
        keys.par_chunks(part).map(|part| counts(order, part)).try_reduce_with(sum).expect("there are keys")
    } else {
        counts(order, keys)
    }?;
    let mut end = 0;
    for count in &mut ends {
        end += *count;
        *count = end;
    }
    for_each_piece_of_keys(keys, PIECE, threads, |mut begin, mut piece| {
        let mut value = ends.partition_point(|&end| end <= begin);
        while !piece.is_empty() {
            let (same, rest) = piece.split_at_mut(piece.len().min(ends[value] - begin));
            same.fill(order.applied_to(K::from_ordered(K::Bits::from_low(value))));
            (begin, piece, value) = (begin + same.len(), rest, value + 1);
        }
    });
    Ok(())
}

/// How many values a key may have.
fn values<K: Key>() -> usize {
    1 << K::Bits::COUNT
}

fn counts<K: Key>(order: SortOrder, keys: &[K]) -> Result<Counts, Error> {
    let mut counts: Counts = memory::zeroed(values::<K>())?;
    for key in keys {
        counts[order.applied_to(*key).to_ordered().low()] += 1;
    }
    Ok(counts)
}

fn sum(mut left: Counts, right: Counts) -> Result<Counts, Error> {
    left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
    Ok(left)
}
