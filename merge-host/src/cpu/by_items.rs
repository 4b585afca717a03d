//! Sort of one run on one thread, by numbers that take less room than keys and values.
//!
//! An item is the first bits of a key that tell it from others, followed by the place that the key comes from. Only items
//! go through the passes. Then each key is moved once, with its value, to where it belongs:
//!
//! ```text
//!   run      27a 15b 11c 26d 12e 38f
//!   items    2|0 1|1 1|2 2|3 1|4 3|5   ─ sort ─►   1|1 1|2 1|4 2|0 2|3 3|5
//!   sorted   15b 11c 12e 27a 26d 38f
//! ```
//!
//! Items stay in the cache with all memory that they are moved to. The run is read, what is sorted is written, both once
//! and from one end to the other, so that both may come from memory.

use super::digit;
use super::leaf;
use super::radix;
use super::run::{Run, RunMut};
use crate::Key;
use crate::key::sealed::Bits;
use std::ops::RangeInclusive;

/// Values of a digit. Items are a single list, so that there may be more than for keys with values.
const VALUES: usize = 1 << 10;
/// Digits that tell as many keys apart as there are at most.
const DIGITS: usize = 2;
/// How many keys are worth all values of the digits, and fit the cache: their items take 1 MiB at most.
const KEYS: RangeInclusive<usize> = 1 << 12..=1 << 16;
/// Keys that are looked at before their values are asked for.
const PIECE: usize = 8;

type Item = u64;
pub(super) type Digit = digit::Digit<VALUES>;

/// Memory for the items of one run after another.
#[derive(Default)]
pub(super) struct Items {
    items: Vec<Item>,
    scratch: Vec<Item>,
}

/// Whether so many keys with values of that type are best sorted by items.
pub(super) fn can_sort<K, V>(keys: usize) -> bool {
    KEYS.contains(&keys) && size_of::<K>() + size_of::<V>() >= size_of::<Item>()
}

/// Sorts `run`, which [`can_sort`] is for, up to the end of the digit that it returns. It ends in `sorted`. `differing`
/// are the bits that may not be the same in all keys.
pub(super) fn sort<K: Key, V: Copy>(
    run: Run<K, V>,
    mut sorted: RunMut<K, V>,
    differing: K::Bits,
    memory: &mut Items,
) -> Digit {
    let last = Digit::last_of(DIGITS, differing);
    let place_bits = leaf::place_bits(run.keys.len());
    let Items { items, scratch } = memory;
    items.clear();
    for (piece, keys) in run.keys.chunks(PIECE).enumerate() {
        let first = piece * PIECE;
        prefetch(&run.values[first..]);
        let item = |(place, key): (usize, &K)| ((last.up_to_here(*key).low() << place_bits) | place) as Item;
        items.extend((first..).zip(keys).map(item));
    }
    scratch.resize(items.len(), 0);
    let by = Digit::after(place_bits);
    radix::pass_by_pass::<_, _, VALUES, DIGITS>(RunMut::of_keys(items), RunMut::of_keys(scratch), false, by);
    sorted.gather(run, items.iter().map(|item| *item as usize & ((1 << place_bits) - 1)));
    last
}

/// Has the processor bring the first of `values` to the cache.
fn prefetch<V>(values: &[V]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: this reads nothing that the program can see, of whatever address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(values.as_ptr().cast())
    }
}

#[cfg(test)]
mod tests {
    use super::super::radix::{self, Workspace};
    use super::super::run::RunMut;
    use super::*;
    use proptest::prelude::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use std::fmt::Debug;

    /// Sorts as many keys to other memory, each with its place, and compares with the standard library's stable sort.
    fn check<K: Key + Debug, V: Copy + PartialEq + Debug>(
        length: usize,
        key: impl FnMut(usize) -> K,
        value: impl Fn(usize) -> V,
        workspace: &mut Workspace<K>,
    ) {
        let mut keys: Vec<K> = (0..length).map(key).collect();
        let mut values: Vec<V> = (0..length).map(&value).collect();
        let mut want: Vec<usize> = (0..length).collect();
        want.sort_by_key(|place| keys[*place].to_ordered());
        let want_keys: Vec<_> = want.iter().map(|place| keys[*place].to_ordered()).collect();
        let (mut sorted_keys, mut sorted_values) = (vec![keys[0]; length], vec![value(length); length]);
        let run = RunMut::new((&mut keys, &mut values));
        radix::sort(run, RunMut::new((&mut sorted_keys, &mut sorted_values)), true, None, workspace);
        assert!(sorted_keys.iter().map(|key| key.to_ordered()).eq(want_keys), "{length} keys");
        assert!(sorted_values.iter().copied().eq(want.into_iter().map(value)), "values of {length} keys");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2))]
        #[test]
        fn keys_of_all_kinds_keep_their_values(seed: u64) {
            let mut random = StdRng::seed_from_u64(seed);
            let mut next = || random.random::<u64>();
            let (mut of_u64, mut of_f32, mut of_u128) = (Workspace::new(), Workspace::new(), Workspace::new());
            for length in [4095, 4096, 4097, 10_000, 65_535, 65_536, 65_537] {
                // So many neighbouring bits are random, and the others the same in all keys.
                for (bits, shift) in [(64, 0), (1, 63), (3, 20), (19, 0), (20, 7), (21, 0), (44, 20)] {
                    let mask = u64::MAX >> (64 - bits) << shift;
                    check(length, |_| next() & mask | 5 << 40, |i| i as u64, &mut of_u64);
                }
                // The first bits tell few of them apart.
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
