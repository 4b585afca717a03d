//! Middle segments of keys of 4 bytes with values, which are sorted by numbers that leave out lower bits of the keys.

use super::*;

/// `n` keys in random order, of which up to `most` at a time differ in nothing but their `lower_bits` bits, and in those of `lower_mask` only. Others differ in
/// all of their `bits` bits.
fn in_groups(n: usize, most: usize, bits: u32, (lower_bits, lower_mask): (u32, u32), random: &mut StdRng) -> Vec<u32> {
    let all = u32::MAX >> (u32::BITS - bits);
    // So that no bits are alike in all keys.
    let mut keys = vec![0, all];
    while keys.len() < n {
        let upper = (random.random::<u32>() & all) >> lower_bits << lower_bits;
        keys.extend((0..random.random_range(1..=most)).map(|_| upper | random.random::<u32>() & lower_mask));
    }
    keys.truncate(n);
    for i in (1..n).rev() {
        keys.swap(i, random.random_range(0..=i));
    }
    keys
}

/// How many keys are alike in what their numbers have of them: so few that they are put in order, and more.
#[test]
fn keys_that_differ_in_their_lower_bits() {
    fn all<V: Word>() {
        let mut random = StdRng::seed_from_u64(fresh_seed());
        for (n, groups) in [(1025, &[1, 2, 15, 16, 17, 1025][..]), (4097, &[2, 4000]), (MAX_MIDDLE, &[1, 9])] {
            for &most in groups {
                for lower_mask in [3, 0x7ff] {
                    let keys = in_groups(n, most, 32, (11, lower_mask), &mut random);
                    let seed = random.random();
                    let by = if seed % 3 == 0 { By::Length(n) } else { By::Offsets };
                    check_keys::<u32, V>(&keys, &[n], by, with::<V>(seed), seed);
                }
            }
        }
    }
    all::<u32>();
    all::<u64>();
}

/// The same of what is left of long segments after a division, in the scratch array.
#[test]
fn parts_of_long_segments_whose_keys_differ_in_their_lower_bits() {
    fn all<V: Word>() {
        let mut random = StdRng::seed_from_u64(fresh_seed());
        for most in [2, 16, 40, 3000] {
            let digits = (0..4).flat_map(|digit| {
                let keys = in_groups(4000, most, 24, (4, 0xf), &mut random);
                keys.into_iter().map(move |key| digit << 30 | key)
            });
            let mut keys: Vec<u32> = digits.collect();
            for i in (1..keys.len()).rev() {
                keys.swap(i, random.random_range(0..=i));
            }
            let seed = random.random();
            check_keys::<u32, V>(&keys, &[keys.len()], By::Offsets, with::<V>(seed), seed);
        }
    }
    all::<u32>();
    all::<u64>();
}
