//! Radix sort of one run on one thread.
//!
//! | run | method |
//! | --- | --- |
//! | in order, or all keys equal | nothing, or one copy |
//! | without values, where vectors are faster | `vector` |
//! | up to 128 keys, with values of up to 16 bytes | [`few_keys`], in less time than a histogram |
//! | pairs, keys of up to 8 bytes, of which over 16 bits differ | [`prefix_index`]; more than 2^18 are divided first |
//! | others that fit the cache | LSD passes: [`lsd`] |
//! | others | divided by the most significant differing digit (MSD); each bucket is a run again |
//!
//! Vectors sort numbers of wide keys in less time than passes move pairs on processors that write slowly to many
//! places. So they do on other processors if the pairs fit the cache and the digits of the keys are uneven. Each pair is
//! then moved once.
//!
//! LSD passes go over all keys from the least significant digit to the most significant. The digits begin at the most
//! significant differing bit, and their number suffices to distinguish most keys. If the result is not in order, keys
//! with equal digits are sorted by the remaining bits:
//!
//! ```text
//!   keys    27 15 11 26 12 38   ─ first digit ─►   15 11 12│27 26│38
//!                               ─ keys with the same first digit that are out of order ─►   11 12 15│26 27│38
//! ```
//!
//! Some ways to sort need a little memory in addition to the scratch memory. If there is none, another way is taken.

use super::buckets;
use super::digit::{self, Counts};
use super::few_keys;
use super::lsd;
use super::memory;
use super::prefix_index;
use super::run::RunMut;
use super::sort_pairs;
use super::vector;
use crate::key_order::KeyOrder;
use crate::sorted::first_unsorted_in_block;
use crate::{Key, SortOrder};

/// The number of values of a digit.
const RADIX: usize = 1 << 8;
/// The number of values of a wide digit. Two wide digits replace three others.
const WIDE_RADIX: usize = digit::WIDE_RADIX;
/// The greatest number of passes. Three digits distinguish the keys that fit the cache.
const MAX_PASSES: usize = 3;
/// The greatest number of keys that insertion sorts.
const INSERTION_KEYS: usize = 8;
/// The number of keys for each value of the most significant digit. A bucket of this size is worth passes of its own.
const KEYS_PER_BUCKET: usize = 1 << 10;
/// Bytes of keys and values that fit a core's caches together with the scratch memory.
const CACHED_BYTES: usize = 1 << 21;

/// For the bucket sort of pairs, where vectors sort numbers: the greatest number of buckets, the number of keys for
/// each bucket, and the number of keys to sample for the bounds of the buckets. A core's caches hold the lines that a
/// scatter to 32 buckets writes.
const EVEN_BUCKETS: usize = 1 << 5;
const KEYS_PER_EVEN_BUCKET: usize = 1 << 14;
const BUCKETS_SAMPLE: usize = 1 << 10;

type Digit = digit::Digit<RADIX>;
type Buckets = buckets::Buckets<{ 1 << 12 }>;
type WideDigit = digit::Digit<WIDE_RADIX>;

/// Scratch memory, reused from run to run.
pub(super) struct Workspace {
    prefix_index: prefix_index::Workspace,
    /// Whether vectors sort the numbers of pairs.
    by_vectors: bool,
}

impl Workspace {
    pub fn new() -> Self {
        let by_vectors = vector::is_faster_than_moving_pairs();
        Workspace { prefix_index: prefix_index::Workspace::default(), by_vectors }
    }
}

/// Sorts `run`. The result is in `scratch`, which has the same length, if `to_scratch`, and otherwise in `run`. The
/// contents of the other array are unspecified. If `may_differ` is given, keys differ only in these bits.
pub(super) fn sort<K: Key, V: Copy>(
    run: RunMut<K, V>,
    scratch: RunMut<K, V>,
    to_scratch: bool,
    may_differ: Option<K::Bits>,
    workspace: &mut Workspace,
) {
    if first_unsorted_in_block(run.keys).is_none() {
        at_result(run, scratch, to_scratch);
    } else {
        sort_unsorted(run, scratch, to_scratch, may_differ, workspace);
    }
}

/// [`sort`] without the check whether `run` is sorted.
fn sort_unsorted<K: Key, V: Copy>(
    mut run: RunMut<K, V>,
    mut scratch: RunMut<K, V>,
    to_scratch: bool,
    may_differ: Option<K::Bits>,
    workspace: &mut Workspace,
) {
    let Some(first) = run.keys.first() else { return };
    let keys = run.keys.len();
    let is_cached = keys * (size_of::<K>() + size_of::<V>()) <= CACHED_BYTES;
    // A scan for the differing bits takes a fifth of a pass. Without the scan some passes may move nothing, and such a
    // pass costs a scan, too.
    let differing = may_differ.filter(|_| is_cached).unwrap_or_else(|| digit::differing(*first, &*run.keys));
    let bits = digit::significant(differing).min(digit::distinguishing_bits(keys));
    let passes = Digit::in_bits(bits).min(MAX_PASSES);
    // One pass or two sort narrow keys in less time than vectors sort numbers.
    let has_vectors = prefix_index::can_sort::<K, V>() && digit::significant(differing) > vector::NARROW_BITS;
    let by_vectors = workspace.by_vectors && has_vectors;
    // Passes by a few digits leave many keys of uneven digits to be sorted again.
    let leaves_many = || is_cached && !digit::is_even(run.keys);
    let are_narrow = |range| digit::are_narrow(run.keys, differing, range);
    let digits = vector::Digits { are_narrow, are_even: || digit::is_even(run.keys) };
    if passes == 0 {
        at_result(run, scratch, to_scratch);
    } else if const { size_of::<V>() == 0 } && vector::can_sort::<K>(keys, digits) {
        vector::sort(SortOrder::Ascending, at_result(run, scratch, to_scratch).keys);
    } else if const { size_of::<V>() <= sort_pairs::MAX_MOVED_VALUE } && few_keys::can_sort::<V>(keys) {
        few_keys::sort(KeyOrder::ASCENDING, at_result(run, scratch, to_scratch));
    } else if const { prefix_index::supports::<K, V>() }
        && has_vectors
        && prefix_index::KEYS.contains(&keys)
        && (by_vectors || leaves_many())
        && workspace.prefix_index.has_memory(keys)
    {
        let sorted = scratch.part(0..keys);
        let last = prefix_index::sort(run.as_run(), sorted, differing, &mut workspace.prefix_index);
        if !to_scratch {
            run.copy_from(scratch.as_run());
        }
        let (sorted, scratch) = if to_scratch { (scratch, run) } else { (run, scratch) };
        sort_after(last, sorted, scratch, workspace);
    } else if const { prefix_index::supports::<K, V>() }
        && by_vectors
        && keys > *prefix_index::KEYS.end()
        && bucket_sort(&mut run, &mut scratch, to_scratch, differing, workspace)
    {
        // The buckets are sorted.
    } else if is_cached && passes == MAX_PASSES && bits <= 2 * WIDE_RADIX.ilog2() && digit::is_even(run.keys) {
        lsd_sort::<_, _, WIDE_RADIX>(run, scratch, to_scratch, WideDigit::last_of(2, differing), 2, workspace);
    } else if is_cached {
        lsd_sort(run, scratch, to_scratch, Digit::last_of(passes, differing), passes, workspace);
    } else {
        msd_sort(run, scratch, to_scratch, Digit::first(differing, keys / KEYS_PER_BUCKET), workspace);
    }
}

/// The elements of `run` where the result belongs: copied to `scratch` if `to_scratch`, and otherwise in `run`.
fn at_result<'a, K: Copy, V: Copy>(
    run: RunMut<'a, K, V>,
    mut scratch: RunMut<'a, K, V>,
    to_scratch: bool,
) -> RunMut<'a, K, V> {
    if !to_scratch {
        return run;
    }
    scratch.copy_from(run.as_run());
    scratch
}

/// Sorts by the digit `last` and the `passes - 1` digits before it, and then by the bits after `last`.
fn lsd_sort<K: Key, V: Copy, const RADIX: usize>(
    mut run: RunMut<K, V>,
    mut scratch: RunMut<K, V>,
    to_scratch: bool,
    last: digit::Digit<RADIX>,
    passes: usize,
    workspace: &mut Workspace,
) {
    let keys = run.keys.len();
    let (from, to) = (run.part(0..keys), scratch.part(0..keys));
    match passes {
        1 => lsd::sort::<K, V, RADIX, 1>(from, to, to_scratch, last),
        2 => lsd::sort::<K, V, RADIX, 2>(from, to, to_scratch, last),
        _ => lsd::sort::<K, V, RADIX, MAX_PASSES>(from, to, to_scratch, last),
    }
    let (sorted, scratch) = if to_scratch { (scratch, run) } else { (run, scratch) };
    sort_after(last, sorted, scratch, workspace);
}

/// Sorts keys by the bits after `digit`. They are sorted up to its end.
fn sort_after<K: Key, V: Copy, const RADIX: usize>(
    digit: digit::Digit<RADIX>,
    mut run: RunMut<K, V>,
    mut scratch: RunMut<K, V>,
    workspace: &mut Workspace,
) {
    if digit.ends_key() {
        return;
    }
    // Keys with the same prefix are neighbours.
    let mut end = 0;
    while let Some(unsorted) = first_unsorted_in_block(&run.keys[end..]) {
        let unsorted = end + unsorted;
        let has_prefix = |key: &&K| digit.prefix(**key) == digit.prefix(run.keys[unsorted]);
        let begin = unsorted - run.keys[..unsorted].iter().rev().take_while(has_prefix).count();
        end = unsorted + run.keys[unsorted..].iter().take_while(has_prefix).count();
        if end - begin > INSERTION_KEYS {
            sort_unsorted(run.part(begin..end), scratch.part(begin..end), false, None, workspace);
        } else {
            insertion_sort(run.part(begin..end));
        }
    }
}

/// Sorts a few keys by insertion.
fn insertion_sort<K: Key, V: Copy>(run: RunMut<K, V>) {
    for i in 1..run.keys.len() {
        for i in (1..=i).rev() {
            if run.keys[i - 1].to_ordered() <= run.keys[i].to_ordered() {
                break;
            }
            run.keys.swap(i - 1, i);
            run.values.swap(i - 1, i);
        }
    }
}

/// Divides the keys by `digit`, and sorts each bucket by the bits after the digit.
fn msd_sort<K: Key, V: Copy>(
    run: RunMut<K, V>,
    scratch: RunMut<K, V>,
    to_scratch: bool,
    digit: Digit,
    workspace: &mut Workspace,
) {
    let mut counts = [0; RADIX];
    digit.count(run.keys, &mut counts);
    sort_buckets(run, scratch, to_scratch, |key| digit.of(key), &mut counts, Some(digit.bits_after()), workspace);
}

/// Divides the keys into buckets of about the same number of keys, and sorts each bucket. Keys differ only in the bits
/// `differing`. Returns `false`, and has moved nothing, if many keys are equal or if there is no memory for a sample.
fn bucket_sort<K: Key, V: Copy>(
    run: &mut RunMut<K, V>,
    scratch: &mut RunMut<K, V>,
    to_scratch: bool,
    differing: K::Bits,
    workspace: &mut Workspace,
) -> bool {
    let keys = run.keys.len();
    let count = (keys / KEYS_PER_EVEN_BUCKET).clamp(2, EVEN_BUCKETS);
    let sample = run.keys.iter().step_by(keys.div_ceil(BUCKETS_SAMPLE)).copied();
    let Ok(sample) = memory::collected(sample) else { return false };
    // A digit of a key takes half the time of a lookup of its bucket.
    let digit = Digit::first(differing, count);
    let mut counts = [0; RADIX];
    digit.count(&sample, &mut counts);
    if counts.iter().all(|in_sample| *in_sample <= 2 * sample.len() / digit.values()) {
        msd_sort(run.part(0..keys), scratch.part(0..keys), to_scratch, digit, workspace);
        return true;
    }
    let sample = sample.into_iter().map(|key| digit::word(KeyOrder::ASCENDING, key));
    let Ok(mut sample) = memory::collected(sample) else { return false };
    sample.sort_unstable();
    let Ok(buckets) = Buckets::new(&sample, count) else { return false };
    let bucket_of = |key| usize::from(buckets.of(digit::word(KeyOrder::ASCENDING, key))) & (EVEN_BUCKETS - 1);
    let mut counts = [0; EVEN_BUCKETS];
    run.keys.iter().for_each(|key| counts[bucket_of(*key)] += 1);
    if counts.iter().any(|count| *count > keys / 2) {
        return false;
    }
    sort_buckets(run.part(0..keys), scratch.part(0..keys), to_scratch, bucket_of, &mut counts, None, workspace);
    true
}

/// Scatters the keys of `run` to buckets in `scratch`, and sorts each bucket as [`sort`] does. `counts` is the
/// histogram of the buckets.
fn sort_buckets<K: Key, V: Copy, const RADIX: usize>(
    mut run: RunMut<K, V>,
    mut scratch: RunMut<K, V>,
    to_scratch: bool,
    bucket_of: impl Fn(K) -> usize,
    counts: &mut Counts<RADIX>,
    may_differ: Option<K::Bits>,
    workspace: &mut Workspace,
) {
    lsd::scatter(run.as_run(), &mut scratch, bucket_of, counts);
    let mut begin = 0;
    for end in counts {
        let count = *end - begin;
        begin = *end;
        let (bucket, scratch_of_bucket);
        (scratch_of_bucket, run) = run.split_at(count);
        (bucket, scratch) = scratch.split_at(count);
        sort_unsorted(bucket, scratch_of_bucket, !to_scratch, may_differ, workspace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use std::fmt::Debug;

    /// Sorts `length` keys with values into other memory, and compares with the standard library's stable sort.
    fn check<K: Key + Debug, V: Copy + PartialEq + Debug>(
        length: usize,
        key: impl FnMut(usize) -> K,
        value: impl Fn(usize) -> V,
        workspace: &mut Workspace,
    ) {
        let mut keys: Vec<K> = (0..length).map(key).collect();
        let mut values: Vec<V> = (0..length).map(&value).collect();
        let mut want: Vec<usize> = (0..length).collect();
        want.sort_by_key(|index| keys[*index].to_ordered());
        let want_keys: Vec<_> = want.iter().map(|index| keys[*index].to_ordered()).collect();
        let (mut sorted_keys, mut sorted_values) = (vec![keys[0]; length], vec![value(length); length]);
        let run = RunMut::new((&mut keys, &mut values));
        sort(run, RunMut::new((&mut sorted_keys, &mut sorted_values)), true, None, workspace);
        assert!(sorted_keys.iter().map(|key| key.to_ordered()).eq(want_keys), "{length} keys");
        assert!(sorted_values.iter().copied().eq(want.into_iter().map(value)), "values of {length} keys");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2))]
        #[test]
        fn keys_of_all_kinds_keep_their_values(seed: u64) {
            for by_vectors in [false, true] {
                let mut random = StdRng::seed_from_u64(seed);
                let mut next = || random.random::<u64>();
                let (mut of_u64, mut of_f32, mut of_u128) = (Workspace::new(), Workspace::new(), Workspace::new());
                (of_u64.by_vectors, of_f32.by_vectors, of_u128.by_vectors) = (by_vectors, by_vectors, by_vectors);
                for length in [4095, 4096, 4097, 10_000, 65_535, 65_536, 65_537, 300_000] {
                    // `bits` adjacent bits are random, and the others are the same in all keys.
                    for (bits, shift) in [(64, 0), (1, 63), (3, 20), (19, 0), (20, 7), (21, 0), (44, 20)] {
                        let mask = u64::MAX >> (64 - bits) << shift;
                        check(length, |_| next() & mask | 5 << 40, |i| i as u64, &mut of_u64);
                    }
                    // The leading bits distinguish only a few keys.
                    check(length, |_| (next() % 7) << 60 | next() >> 50, |i| i as u32, &mut of_u64);
                    check(length, |i| (i / 100) as u64, |i| [i as u8; 3], &mut of_u64);
                    check(length, |_| next(), |_| (), &mut of_u64);
                    check(length, |_| f32::from_bits(next() as u32), |i| i as u32, &mut of_f32);
                    let special = [0.0, -0.0, f32::NAN, -f32::NAN];
                    check(length, |_| special[next() as usize % 4], |i| i as u64, &mut of_f32);
                    check(length, |_| u128::from(next()) << (next() % 64), |i| i as u64, &mut of_u128);
                }
            }
        }
    }
}
