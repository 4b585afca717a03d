//! Counting sort, for more keys than their type has values: counts the occurrences of each value, and writes the value
//! that number of times.
//!
//! ```text
//!   keys    2 0 1 2 0 1 1      each thread builds a histogram of a part
//!   counts  2 3 2              added up
//!   keys    0 0│1 1 1│2 2      each thread writes the keys of some values
//! ```
//!
//! Equal keys have equal bits, so a stable sort gives the same result.

use super::scratch::Scratch;
use super::{memory, vector};
use crate::key::sealed::Bits;
use crate::key_order::KeyOrder;
use crate::{Error, Key, parallel};
use std::ops::Range;

/// The greatest width of a key that counting sort takes, in bits.
const MAX_BITS: u32 = 16;
/// The number of blocks of values.
const BLOCKS: usize = 1 << 6;
/// The least number of keys per value that is worth a histogram of a thread's own, which must be added to the others.
const KEYS_PER_VALUE: usize = 4;
/// The number of histograms of a thread for keys of 1 byte.
const LANES: usize = 4;
/// The number of parts of the keys of 2 bytes that are counted in turn. An odd number, because the runs of an array are
/// often a power of two, and parts that begin with a run would have the same values at the same time.
const PARTS: usize = 5;
/// The number of values that are skipped at once if no key has them. It divides the number of values of a block.
const GROUP: usize = 4;
/// The number of keys that are written at once: most values occur only a few times.
const WRITTEN: usize = 16;

/// A histogram: the number of occurrences of each value, in the order of ordered bits.
type Counts = Scratch<u32>;

/// Whether [`sort`] ever sorts keys of this type.
pub(super) const fn supports<K>() -> bool {
    size_of::<K>() * u8::BITS as usize <= MAX_BITS as usize
}

/// Whether this is the fastest way to sort `keys` keys.
pub(super) fn can_sort<K: Key>(keys: usize) -> bool {
    match K::Bits::COUNT {
        0..=8 if vector::has_vectors::<K>() => keys > vector::MOST_BYTES,
        0..=8 => keys >= 2 * values::<K>(),
        9..=MAX_BITS if vector::has_vectors::<K>() => keys >= 2 * values::<K>(),
        9..=MAX_BITS => keys >= values::<K>() / 4,
        _ => false,
    }
}

/// Sorts `keys`. [`can_sort`] is true for their number.
pub(super) fn sort<K: Key>(order: KeyOrder, keys: &mut [K], threads: usize) -> Result<(), Error> {
    let part = keys.len().div_ceil(threads).max(KEYS_PER_VALUE * values::<K>()).min(u32::MAX as usize);
    if part >= keys.len() {
        let mut of_bytes = [0; 1 << 8];
        let counts =
            if const { K::Bits::COUNT <= 8 } { &mut of_bytes[..] } else { &mut *Counts::zeroed(values::<K>())? };
        count(order, keys, counts);
        fill(order, keys, 0..values::<K>(), |value| counts[value] as usize);
        return Ok(());
    }
    let of_parts = parallel::try_map_on(threads, keys.chunks(part), |part| {
        let mut counts = Counts::zeroed(values::<K>())?;
        count(order, part, &mut counts);
        Ok::<_, Error>(counts)
    })?;
    let mut parts = memory::reserved(of_parts.len())?;
    for counts in of_parts {
        memory::push(&mut parts, counts?)?;
    }
    let count = |value: usize| parts.iter().map(|counts| counts[value] as usize).sum::<usize>();
    let block = values::<K>() / BLOCKS;
    let (mut blocks, mut rest) = (memory::reserved(BLOCKS)?, keys);
    for first in (0..values::<K>()).step_by(block) {
        let keys;
        (keys, rest) = rest.split_at_mut((first..first + block).map(count).sum());
        memory::push(&mut blocks, (first, keys))?;
    }
    parallel::for_each_on(threads, blocks, |(first, keys)| fill(order, keys, first..first + block, count));
    Ok(())
}

/// Writes each of `values` as often as `count` says. The counts add up to the number of keys.
fn fill<K: Key>(order: KeyOrder, keys: &mut [K], values: Range<usize>, count: impl Fn(usize) -> usize) {
    let mut at = 0;
    for first in values.step_by(GROUP) {
        let counts: [usize; GROUP] = std::array::from_fn(|i| count(first + i));
        if counts == [0; GROUP] {
            continue;
        }
        for (value, count) in (first..).zip(counts) {
            let key = order.decode(K::Bits::from_low(value));
            // A small count decides no branch: `WRITTEN` keys are written, and the next value overwrites the surplus.
            match keys.get_mut(at..at + WRITTEN) {
                Some(few) if count <= WRITTEN => few.fill(key),
                _ => keys[at..at + count].fill(key),
            }
            at += count;
        }
    }
}

/// The number of values of a key.
fn values<K: Key>() -> usize {
    1 << K::Bits::COUNT
}

/// Adds the histogram of `keys` to `counts`.
fn count<K: Key>(order: KeyOrder, keys: &[K], counts: &mut [u32]) {
    let value = |key: K| order.encode(key).low();
    let rest = if const { K::Bits::COUNT <= 8 } {
        // Increments of the same counter wait for each other, so adjacent keys use different histograms.
        let mut lanes = [[0u32; 1 << 8]; LANES];
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
        // Adjacent keys may be equal, so the keys of several parts are counted in turn.
        let part = keys.len() / PARTS;
        let (parts, rest) = keys.split_at(part * PARTS);
        for i in 0..part {
            for begin in 0..PARTS {
                counts[value(parts[begin * part + i])] += 1;
            }
        }
        rest
    };
    for key in rest {
        counts[value(*key)] += 1;
    }
}
