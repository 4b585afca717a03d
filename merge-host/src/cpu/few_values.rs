//! Sort of an array that has few distinct keys: counts the occurrences of each, then writes each that number of times.
//!
//! ```text
//!   keys     7 2 7 7 5 2 7     sampled: 2 5 7
//!   counts   2 1 4             each key is compared with all of the sample, without a branch
//!   keys     2 2 5 7 7 7 7
//!   values   scattered: a value goes to the next slot of its key
//! ```
//!
//! If the counts of a block do not add up to its length, a key is not in the sample, and another sort takes over.

use super::blocks::{copy, for_each_block_of_keys};
use super::memory;
use super::run::RunMut;
use super::scratch::Scratch;
use super::vector::wide;
use crate::key_order::KeyOrder;
use crate::parallel::{self, Threads};
use crate::{Error, Key, Word};
use std::mem::MaybeUninit;

/// The greatest number of distinct keys.
const MOST: usize = 16;
/// The number of sampled keys. If the first few differ from each other, most keys are distinct.
const SAMPLE: usize = 64;
const FIRST_SAMPLE: usize = 8;
/// The number of keys of a block, which is read once for each distinct key while it is in the cache. A key of 2 bytes
/// or more can count that far.
const BLOCK: usize = 1 << 8;
/// The least number of keys of a thread's part.
const PART: usize = 1 << 18;
/// The number of keys of a block that a thread writes.
const FILL_BLOCK: usize = 1 << 14;
/// The least number of keys that is worth a sample, and that of keys of 16 bytes.
const LEAST: usize = 1 << 8;
const LEAST_WIDE: usize = 1 << 12;

/// The distinct keys of an array.
pub(super) struct FewValues<B> {
    /// The first `count` are the encoded keys, ascending.
    values: [B; MOST],
    count: usize,
    /// The number of occurrences of each in each part of the array.
    counts: Vec<[usize; MOST]>,
    /// The number of keys of a part.
    part: usize,
}

/// Whether keys of type `K` with values of type `V` are worth a sample. A histogram of keys of 1 byte takes less time.
/// So do digits of keys of 16 bytes with values, because no vector instruction finds these keys.
pub(super) const fn can_sort<K, V>() -> bool {
    size_of::<K>() > 1 && (size_of::<K>() <= 8 || size_of::<V>() == 0)
}

impl<B: Word> FewValues<B> {
    /// The distinct keys, or `None` if there are many.
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`] if there is no memory for the counts.
    pub fn of<K: Key<Bits = B>>(order: KeyOrder, keys: &[K], threads: usize) -> Result<Option<Self>, Error> {
        let Some((values, count)) = sampled(order, keys) else { return Ok(None) };
        let part = keys.len().div_ceil(threads).max(PART);
        let mut few = Self { values, count, counts: Vec::new(), part };
        let counts = parallel::try_map_on(threads, keys.chunks(part), |keys| few.count_all(order, keys))?;
        for counts in counts {
            let Some(counts) = counts else { return Ok(None) };
            memory::push(&mut few.counts, counts)?;
        }
        Ok(Some(few))
    }

    /// The occurrences of each value in `keys`, or `None` if there are other keys.
    fn count_all<K: Key<Bits = B>>(&self, order: KeyOrder, keys: &[K]) -> Option<[usize; MOST]> {
        wide(|| {
            let mut all = [0; MOST];
            for block in keys.chunks(BLOCK) {
                let mut found = 0;
                for (value, all) in self.values[..self.count].iter().zip(&mut all) {
                    let value: K = order.decode(*value);
                    // Keys are the same if and only if their bits are. A counter of the keys' width lets the compiler
                    // count in each lane of a vector.
                    let value: B = bytemuck::cast(value);
                    let count = count_equal::<B>(bytemuck::cast_slice(block), value);
                    *all += count;
                    found += count;
                }
                if found < block.len() {
                    return None;
                }
            }
            Some(all)
        })
    }

    /// Sorts the array that has these keys. Stable.
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`] if there is no scratch memory for the values. Nothing has been moved then.
    pub fn sort<K: Key<Bits = B>, V: Copy + Send + Sync>(
        &self,
        order: KeyOrder,
        RunMut { keys, values }: RunMut<K, V>,
        threads: usize,
    ) -> Result<(), Error> {
        if const { size_of::<V>() > 0 } {
            let mut sorted = Scratch::<V>::uninit(values.len())?;
            self.scatter(order, keys, |i| MaybeUninit::new(values[i]), &mut sorted, threads)?;
            // SAFETY: `scatter` has written a value to every slot of `sorted`, so that only values are copied.
            copy(&sorted, unsafe { memory::as_uninit_mut(values) }, threads);
        }
        self.fill(order, keys, threads);
        Ok(())
    }

    /// Writes the keys in order.
    fn fill<K: Key<Bits = B>>(&self, order: KeyOrder, keys: &mut [K], threads: usize) {
        let mut ends = [0; MOST];
        let mut end = 0;
        for (value, to) in ends.iter_mut().enumerate() {
            end += self.counts.iter().map(|counts| counts[value]).sum::<usize>();
            *to = end;
        }
        for_each_block_of_keys(keys, FILL_BLOCK, threads, |begin, mut block| {
            let mut at = begin;
            for (value, end) in self.values[..self.count].iter().zip(ends) {
                let (same, rest) = block.split_at_mut(end.saturating_sub(at).min(block.len()));
                same.fill(order.decode(*value));
                at += same.len();
                block = rest;
            }
        });
    }

    /// Writes `item(i)` for each key `i` to `to`, in the order of the keys. Items of equal keys keep their order.
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`] if there is no memory for lists. Nothing has been written then.
    pub fn scatter<K: Key<Bits = B>, T: Send>(
        &self,
        order: KeyOrder,
        keys: &[K],
        item: impl Fn(usize) -> T + Sync,
        to: &mut [T],
        threads: usize,
    ) -> Result<(), Error> {
        let mut parts = memory::collected(self.counts.iter().map(|_| std::array::from_fn(|_| <&mut [T]>::default())))?;
        let mut rest = to;
        for value in 0..self.count {
            for (slots, counts) in parts.iter_mut().zip(&self.counts) {
                (slots[value], rest) = rest.split_at_mut(counts[value]);
            }
        }
        let parts = keys.chunks(self.part).zip(parts).enumerate();
        parallel::try_for_each_on(Threads::OfPool(threads), parts, |(part, (keys, slots))| {
            self.scatter_part(order, keys, |i| item(part * self.part + i), slots);
            Ok(())
        })
    }

    /// [`scatter`](Self::scatter) of one part, to the slots of each value.
    fn scatter_part<K: Key<Bits = B>, T>(
        &self,
        order: KeyOrder,
        keys: &[K],
        item: impl Fn(usize) -> T,
        slots: [&mut [T]; MOST],
    ) {
        let mut slots = slots.map(|slots| slots.iter_mut());
        let values = self.values.map(|value| bytemuck::cast(order.decode::<K>(value)));
        let mut indices = [B::from_low(0); BLOCK];
        for (block, keys) in keys.chunks(BLOCK).enumerate() {
            wide(|| find(&values[..self.count], bytemuck::cast_slice(keys), &mut indices));
            for (i, index) in indices[..keys.len()].iter().enumerate() {
                if let Some(slot) = slots[index.low() % MOST].next() {
                    *slot = item(block * BLOCK + i);
                }
            }
        }
    }
}

/// The index of each key of a block among `values`. Keys are compared as they are, because some take long to encode.
#[inline(always)]
fn find<B: Word>(values: &[B], keys: &[B], indices: &mut [B; BLOCK]) {
    indices.fill(B::from_low(0));
    for (number, &value) in values.iter().enumerate().skip(1) {
        for (index, &key) in indices.iter_mut().zip(keys) {
            *index = index.plus(if key == value { B::from_low(number) } else { B::from_low(0) });
        }
    }
}

/// The number of keys of a block that equal `value`.
#[inline(always)]
fn count_equal<B: Word>(keys: &[B], value: B) -> usize {
    if const { size_of::<B>() == size_of::<[u64; 2]>() } {
        // Vector instructions compare words of 8 bytes.
        let (keys, [a, b]): (&[[u64; 2]], [u64; 2]) = (bytemuck::cast_slice(keys), bytemuck::cast(value));
        return keys.iter().fold(0, |count, key| count + usize::from((key[0] ^ a) | (key[1] ^ b) == 0));
    }
    keys.iter().fold(B::from_low(0), |count, key| count.plus(B::from_low(usize::from(*key == value)))).low()
}

/// The distinct encoded keys of a sample, ascending, and their number; or `None` if there are more than [`MOST`].
fn sampled<K: Key>(order: KeyOrder, keys: &[K]) -> Option<([K::Bits; MOST], usize)> {
    if keys.len() < const { if size_of::<K>() > size_of::<u64>() { LEAST_WIDE } else { LEAST } } {
        return None;
    }
    // The products of odd numbers and of the golden ratio's multiples spread over the array.
    let key = |i: usize| {
        let fraction = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        order.encode(keys[((u128::from(fraction) * keys.len() as u128) >> 64) as usize])
    };
    let first: [K::Bits; FIRST_SAMPLE] = std::array::from_fn(key);
    let is_first = |i: usize| first[..i].iter().all(|other| *other != first[i]);
    if (1..FIRST_SAMPLE).all(is_first) {
        return None;
    }
    let (mut values, mut count) = ([first[0]; MOST], 1);
    for bits in (1..SAMPLE).map(key) {
        let at = values[..count].partition_point(|value| value.to_ordered() < bits.to_ordered());
        if at < count && values[at] == bits {
            continue;
        }
        if count == MOST {
            return None;
        }
        values.copy_within(at..count, at + 1);
        values[at] = bits;
        count += 1;
    }
    Some((values, count))
}
