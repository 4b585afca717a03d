//! Division of keys into buckets of about the same number of keys, for any distribution.
//!
//! ```text
//!   sample     2 3 3 4 5 6 12 40
//!   intervals  ├──┼──┼──┼──┼──┼──┼──┼──┤   of equal width, many of them
//!   buckets    ├0 ┼1 ┼ 2   …        3  ┤   some intervals each, with about as much of the sample
//! ```
//!
//! The interval of a key takes a subtraction and a shift, and a table gives the bucket of the interval.

use super::memory;

/// A function from words to buckets. A bucket is a range of the `INTERVALS` intervals; `INTERVALS` is a power of two.
pub(super) struct Buckets<const INTERVALS: usize> {
    count: usize,
    /// The least and the greatest word of the sample. Lesser words belong to the first bucket, and greater words to the
    /// last.
    bounds: [u64; 2],
    /// The number of bits of a word's distance from the least word that follow the bits of the interval.
    shift: u32,
    /// The bucket of each interval, ascending.
    of_interval: Box<[u16; INTERVALS]>,
}

impl<const INTERVALS: usize> Buckets<INTERVALS> {
    /// Up to `count` buckets, at most 2^16, for words distributed like `sample`, which ascends.
    ///
    /// # Errors
    /// [`Error::OutOfHostMemory`](crate::Error::OutOfHostMemory) if there is no memory for the intervals.
    pub fn new(sample: &[u64], count: usize) -> Result<Self, crate::Error> {
        const { assert!(INTERVALS.is_power_of_two()) };
        let bounds = [sample.first(), sample.last()].map(|word| word.copied().unwrap_or(0));
        let span = bounds[1] - bounds[0];
        let shift = (u64::BITS - span.leading_zeros()).saturating_sub(INTERVALS.ilog2());
        let of_interval = memory::zeroed(INTERVALS)?.try_into().expect("there are as many as were asked for");
        let mut buckets = Self { count, bounds, shift, of_interval };
        // An interval's bucket depends on the number of sampled words before the interval, limited to the last one.
        let mut before = 0;
        for interval in 0..INTERVALS {
            let last = sample.len().saturating_sub(1);
            buckets.of_interval[interval] = (before.min(last) * count / sample.len().max(1)) as u16;
            before += sample[before..].iter().take_while(|word| buckets.interval(**word) == interval).count();
        }
        Ok(buckets)
    }

    /// The number of buckets.
    pub fn count(&self) -> usize {
        self.count
    }

    #[inline(always)]
    fn interval(&self, word: u64) -> usize {
        // The mask changes nothing. It shows the compiler that the interval is a valid index.
        ((word.max(self.bounds[0]).min(self.bounds[1]) - self.bounds[0]) >> self.shift) as usize & (INTERVALS - 1)
    }

    /// The bucket of a word.
    #[inline(always)]
    pub fn of(&self, word: u64) -> u16 {
        self.of_interval[self.interval(word)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::fresh_seed;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    #[test]
    fn buckets_ascend_and_have_about_as_many_keys() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        let mut sample: Vec<u64> = (0..100_000).map(|_| random.random::<u64>() >> 7).collect();
        sample.sort_unstable();
        let buckets = Buckets::<{ 1 << 14 }>::new(&sample, 100).unwrap();
        assert_eq!((buckets.of(0), buckets.of(u64::MAX)), (0, 99));
        assert!(sample.is_sorted_by_key(|word| buckets.of(*word)));
        for bucket in 0..100 {
            let count = sample.iter().filter(|word| buckets.of(**word) == bucket).count();
            assert!((900..1100).contains(&count), "{count} of 1000 keys in bucket {bucket}, seed {seed}");
        }
    }
}
