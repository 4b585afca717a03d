//! Counting sort, for more keys than their type has values: counts the occurrences of each value, and writes the value
//! that number of times.
//!
//! ```text
//!   keys    2 0 1 2 0 1 1      each thread builds a histogram of a part
//!   counts  2 3 2              added up
//!   keys    0 0 1 1 1 2 2      each thread writes blocks
//! ```
//!
//! Equal keys have equal bits, so a stable sort gives the same result.

use super::blocks::for_each_block_of_keys;
use super::memory;
use crate::key::sealed::Bits;
use crate::key_order::KeyOrder;
use crate::{Error, Key, parallel};

/// The greatest width of a key that counting sort takes, in bits.
const MAX_BITS: u32 = 16;
/// The number of keys of a block that a thread writes.
const BLOCK: usize = 1 << 14;
/// The least number of keys per value that is worth a histogram of a thread's own, which must be added to the others.
const KEYS_PER_VALUE: usize = 4;

/// The number of histograms of a thread for keys of 1 byte.
const LANES: usize = 4;

/// A histogram: the number of occurrences of each value, in the order of ordered bits.
type Counts = Box<[usize]>;

/// Whether this is the fastest way to sort `keys` keys.
pub(super) fn can_sort<K: Key>(keys: usize) -> bool {
    K::Bits::COUNT <= MAX_BITS && keys >= values::<K>()
}

/// Sorts `keys`. [`can_sort`] is true for their number.
pub(super) fn sort<K: Key>(order: KeyOrder, keys: &mut [K], threads: usize) -> Result<(), Error> {
    let part = keys.len().div_ceil(threads).max(KEYS_PER_VALUE * values::<K>());
    let mut ends = if part < keys.len() {
        let counts = parallel::try_map_on(threads, keys.chunks(part), |part| counts(order, part))?;
        counts.into_iter().reduce(|all, part| sum(all?, part?)).expect("there are keys")
    } else {
        counts(order, keys)
    }?;
    let mut end = 0;
    for count in &mut ends {
        end += *count;
        *count = end;
    }
    for_each_block_of_keys(keys, BLOCK, threads, |mut begin, mut block| {
        let mut value = ends.partition_point(|&end| end <= begin);
        while !block.is_empty() {
            let (same, rest) = block.split_at_mut(block.len().min(ends[value] - begin));
            same.fill(order.decode(K::Bits::from_low(value)));
            (begin, block, value) = (begin + same.len(), rest, value + 1);
        }
    });
    Ok(())
}

/// The number of values of a key.
fn values<K: Key>() -> usize {
    1 << K::Bits::COUNT
}

fn counts<K: Key>(order: KeyOrder, keys: &[K]) -> Result<Counts, Error> {
    let mut counts: Counts = memory::zeroed(values::<K>())?;
    let value = |key: K| order.encode(key).low();
    let rest = if K::Bits::COUNT <= 8 {
        // Increments of the same counter wait for each other, so adjacent keys use different histograms.
        let mut lanes = [[0usize; 1 << 8]; LANES];
        let mut rows = keys.chunks_exact(LANES);
        for row in &mut rows {
            for lane in 0..LANES {
                lanes[lane][value(row[lane])] += 1;
            }
        }
        for lane in &lanes {
            counts.iter_mut().zip(lane).for_each(|(count, of_lane)| *count += of_lane);
        }
        rows.remainder()
    } else {
        keys
    };
    for key in rest {
        counts[value(*key)] += 1;
    }
    Ok(counts)
}

fn sum(mut left: Counts, right: Counts) -> Result<Counts, Error> {
    left.iter_mut().zip(right).for_each(|(left, right)| *left += right);
    Ok(left)
}
