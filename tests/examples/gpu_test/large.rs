//! Operations on more than 2^32 keys. Formulas give the expected results, and no other engine computes them.

use super::Test;
use super::table::keys_of;
use merge_host::{Bound, DeviceOffsets, Error, Segments, SetOperation, SortOrder, parallel, workspace};

/// A number of keys that does not fit in 32 bits.
const MANY: usize = (1 << 32) + 5;

/// The number of occurrences of key v in A and in B, by v % 8: in one array only, in both equally often, and in one
/// more often.
const IN_A: [usize; 8] = [2, 0, 1, 3, 0, 2, 0, 1];
const IN_B: [usize; 8] = [0, 3, 1, 0, 2, 1, 1, 0];

/// Sorted keys. The number of occurrences of key v depends on v % 8.
struct Periodic {
    /// The keys below 8.
    period: Vec<u32>,
    counts: [usize; 8],
}

impl Periodic {
    fn new(counts: [usize; 8]) -> Self {
        let period = (0..8).flat_map(|v| vec![v; counts[v as usize]]).collect();
        Self { period, counts }
    }

    fn key(&self, i: usize) -> u32 {
        let len = self.period.len();
        (8 * (i / len)) as u32 + self.period[i % len]
    }

    /// The keys below 8 `periods`.
    fn keys(&self, periods: usize) -> Vec<u32> {
        keys_of(periods * self.period.len(), |i| self.key(i as usize).into())
    }

    /// The number of keys less than `v`.
    fn less_than(&self, v: usize) -> usize {
        v / 8 * self.period.len() + self.counts[..v % 8].iter().sum::<usize>()
    }
}

/// The number of occurrences of keys in the result, by the definition of the operation.
fn counts(operation: SetOperation) -> [usize; 8] {
    std::array::from_fn(|v| {
        let (a, b) = (IN_A[v], IN_B[v]);
        match operation {
            SetOperation::Union => a.max(b),
            SetOperation::Intersection => a.min(b),
            SetOperation::Difference => a.saturating_sub(b),
            SetOperation::SymmetricDifference => a.abs_diff(b),
        }
    })
}

/// Segments of an array of `n` keys, with lengths that repeat. The keys of a segment are the multiples of a number,
/// shuffled.
struct Repeated {
    lengths: Vec<usize>,
    n: usize,
}

impl Repeated {
    /// The begin of the segment of key `i`, and its length.
    fn segment(&self, i: usize) -> (usize, usize) {
        let all: usize = self.lengths.iter().sum();
        let mut start = i / all * all;
        let mut lengths = self.lengths.iter();
        loop {
            let length = *lengths.next().expect("the key is before the last one ends");
            if i < start + length {
                return (start, length.min(self.n - start));
            }
            start += length;
        }
    }

    /// Key `j` of a sorted segment of `len` keys.
    fn sorted(j: usize, len: usize) -> u32 {
        j as u32 * (u32::MAX / len as u32)
    }

    fn key(&self, i: usize) -> u32 {
        /// A prime number, which is coprime to all smaller lengths.
        const PRIME: usize = 2_654_435_761;
        let (start, len) = self.segment(i);
        Self::sorted((i - start) * PRIME % len, len)
    }

    /// The offsets of the segments, with the end of the last segment.
    fn offsets(&self) -> Vec<usize> {
        let ends = self.lengths.iter().cycle().scan(0, |end, length| {
            *end += length;
            Some(*end)
        });
        [0].into_iter().chain(ends.take_while(|&end| end < self.n)).chain([self.n]).collect()
    }
}

/// Whether `found` has `n` elements, and each equals `expected` of its index.
fn agrees<T: PartialEq + Sync>(found: &[T], n: usize, expected: impl Fn(usize) -> T + Sync) -> bool {
    const BLOCK: usize = 1 << 20;
    let differs = |(block, found): (usize, &[T])| {
        let wrong = found.iter().zip(block * BLOCK..).any(|(x, i)| *x != expected(i));
        wrong.then_some(())
    };
    found.len() == n && parallel::find_first(found.chunks(BLOCK).enumerate(), differs).is_none()
}

impl Test {
    /// Set operations, unique keys, run lengths and bounds.
    pub(super) fn check_large_sets(&mut self) {
        // Enough periods, so that the number of keys in the union does not fit in 32 bits.
        let union = Periodic::new(counts(SetOperation::Union));
        let periods = MANY.div_ceil(union.period.len());
        let (a, b) = (Periodic::new(IN_A).keys(periods), Periodic::new(IN_B).keys(periods));
        for operation in SetOperation::ALL {
            let mut out = Vec::new();
            let result = self.gpu.set_operation(operation, &a, &b, &mut out).map(|_| {
                let expected = Periodic::new(counts(operation));
                agrees(&out, periods * expected.period.len(), |i| expected.key(i))
            });
            self.expect_large(&format!("{operation} of {} and {} keys", a.len(), b.len()), result);
        }
        drop((a, b));

        let keys = union.keys(periods);
        let mut out = Vec::new();
        let result = self.gpu.unique(&keys, &mut out).map(|_| agrees(&out, 8 * periods, |i| i as u32));
        self.expect_large(&format!("unique keys of {}", keys.len()), result);

        // Needles with every remainder modulo 8, also beyond the last key.
        let needles: Vec<u32> = (0..8 * periods + 1000).step_by(37).map(|v| v as u32).collect();
        let mut bounds = vec![u64::MAX; needles.len()];
        let bound = |v: usize| union.less_than(v).min(keys.len()) as u64;
        let result = self.gpu.bounds(Bound::Lower, &needles, &keys, &mut bounds);
        let result = result.map(|_| agrees(&bounds, needles.len(), |i| bound(37 * i)));
        self.expect_large(&format!("lower bounds in {} keys", keys.len()), result);
        let result = self.gpu.bounds(Bound::Upper, &needles, &keys, &mut bounds);
        let result = result.map(|_| agrees(&bounds, needles.len(), |i| bound(37 * i + 1)));
        self.expect_large(&format!("upper bounds in {} keys", keys.len()), result);
        drop(keys);

        // A group with a length that does not fit in 32 bits, between two other groups.
        let keys: Vec<u32> = keys_of(MANY, |i| if i < 2 { 3 } else { 7 + u64::from(i as usize + 2 >= MANY) });
        let (mut out, mut lengths) = (Vec::new(), Vec::new());
        let result = self.gpu.run_lengths(&keys, (&mut out, &mut lengths));
        let result = result.map(|_| out == [3, 7, 8] && lengths == [2, MANY as u64 - 4, 2]);
        self.expect_large(&format!("run lengths of {MANY} keys"), result);
    }

    /// The first keys with their indices, some beyond 2^32.
    pub(super) fn check_large_top_k(&mut self) {
        const K: usize = 1000;
        // Each number occurs once, because the factor is odd. The greatest number occurs again at the end.
        let keys: Vec<u32> = keys_of(MANY, |i| if i < 1 << 32 { i.wrapping_mul(0x9e37_79b9) } else { u32::MAX.into() });
        let again = MANY - (1 << 32);
        for order in [SortOrder::Ascending, SortOrder::Descending] {
            let found = (|| {
                let stream = self.device().stream()?;
                let (from, mut out, mut indices) = (stream.upload(&keys)?, stream.zeroed(K)?, stream.zeroed::<u64>(K)?);
                let mut workspace = stream.zeroed(workspace::top_k::<u32, u64>(MANY, K))?;
                stream.top_k(order, &from, (&mut out, &mut indices), &mut workspace)?;
                Ok::<(Vec<u32>, Vec<u64>), Error>((out.download()?, indices.download()?))
            })();
            let result = found.map(|(out, indices)| {
                let expected = |i: usize| match order {
                    SortOrder::Ascending => i as u32,
                    SortOrder::Descending => u32::MAX - i.saturating_sub(again) as u32,
                };
                let is_there = indices.iter().zip(&out).all(|(i, key)| keys.get(*i as usize) == Some(key));
                let is_stable = (1..K).all(|i| out[i - 1] != out[i] || indices[i - 1] < indices[i]);
                agrees(&out, K, expected) && is_there && is_stable
            });
            self.expect_large(&format!("first {K} of {MANY} keys, {order:?}"), result);
        }
    }

    /// Sorts of segments with the most keys for indices of 32 bits, and with more keys.
    pub(super) fn check_large_segments(&mut self) {
        for n in [u32::MAX as usize, MANY] {
            for lengths in [vec![1 << 20], vec![5000], vec![0, 3, 700, 5000, 1, 20_000, 64, 3 << 20]] {
                let segments = Repeated { lengths, n };
                let what = format!("segments of {:?} of {n} keys", segments.lengths);
                let stream = self.device().stream().expect("the device makes streams");
                let found = (|| {
                    let mut keys = stream.upload(&keys_of::<u32>(n, |i| segments.key(i as usize).into()))?;
                    let mut workspace = stream.zeroed(workspace::sort_segments::<u32, ()>(n))?;
                    if let [length] = segments.lengths[..] {
                        let segments = Segments::Length(length);
                        stream.sort_segments(SortOrder::Ascending, &mut keys, segments, &mut workspace)?;
                    } else {
                        let offsets = DeviceOffsets::new(&stream, &segments.offsets())?;
                        let segments = Segments::Offsets(&offsets);
                        stream.sort_segments(SortOrder::Ascending, &mut keys, segments, &mut workspace)?;
                    }
                    keys.download()
                })();
                let result = found.map(|found| {
                    agrees(&found, n, |i| {
                        let (start, len) = segments.segment(i);
                        Repeated::sorted(i - start, len)
                    })
                });
                self.expect_large(&what, result);
            }
        }
    }

    /// Counts a check, unless the GPU has too little memory for it.
    fn expect_large(&mut self, what: &str, result: Result<bool, Error>) {
        match result {
            Err(error @ Error::OutOfDeviceMemory { .. }) => println!("skipped: {what}: {error}"),
            other => self.expect(|| what.to_owned(), other.map(|right| vec![u32::from(right)]), &[1]),
        }
        self.report(what);
    }
}
