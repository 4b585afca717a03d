//! Short and middle segments of 4-byte keys with values. They are sorted by numbers that leave out lower bits of the
//! keys.

use super::*;

/// `n` keys in random order, in groups of up to `most` keys. Keys of a group differ only in their `lower_bits` lower
/// bits, and there only in the bits of `lower_mask`. Keys of different groups differ in all of their `bits` bits.
fn in_groups(n: usize, most: usize, bits: u32, (lower_bits, lower_mask): (u32, u32), random: &mut StdRng) -> Vec<u32> {
    let all = u32::MAX >> (u32::BITS - bits);
    // These two keys have no bits in common.
    let mut keys = vec![0, all];
    while keys.len() < n {
        let upper = (random.random::<u32>() & all) >> lower_bits << lower_bits;
        keys.extend((0..random.random_range(1..=most)).map(|_| upper | random.random::<u32>() & lower_mask));
    }
    keys.truncate(n);
    shuffle(&mut keys, random);
    keys
}

/// Bits of an index below `n`. This many bits of keys are left out if keys differ in all bits.
fn index_bits(n: usize) -> u32 {
    usize::BITS - (n - 1).leading_zeros()
}

/// Sorts segments of `n` keys, and a shorter last one, by offsets and by their length.
fn check_all<V: Word>(keys: &[u32], n: usize, random: &mut StdRng) {
    let mut lengths = vec![n; keys.len() / n];
    lengths.extend(Some(keys.len() % n).filter(|&rest| rest > 0));
    for by in [By::Length(n), By::Offsets] {
        let seed = random.random();
        check_keys::<u32, V>(keys, &lengths, by, With::by::<V>(seed), seed);
    }
    // The same bits as floats, some NaN, in one of the two ways.
    let (by, seed) = (if random.random() { By::Length(n) } else { By::Offsets }, random.random());
    let floats: Vec<f32> = keys.iter().map(|&bits| f32::of_ordered(bits.into())).collect();
    check_keys::<f32, V>(&floats, &lengths, by, With::by::<V>(seed), seed);
}

/// Groups of keys with equal numbers: few enough to be put in order, and more.
#[test]
fn keys_that_differ_in_their_lower_bits() {
    fn all<V: Word>() {
        let mut random = fresh_random();
        let rows = [17, 32, 33, 63, 64, 100, 128, 256, 257, 300, 512, 600, 1000, 1023, 1024];
        let rows = rows.map(|n| (n, &[1, 2, 15, 16, 17, 40, 1024][..]));
        let middle = [(1025, &[1, 2, 15, 16, 17, 1025][..]), (4097, &[2, 4000]), (MAX_MIDDLE, &[1, 9])];
        for (n, groups) in rows.into_iter().chain(middle) {
            // Some segments of a warp, and some of the next warp.
            let segments = if n > MAX_SHORT { 1 } else { 2500 / n };
            for &most in tried(groups) {
                for lower_mask in [3, 0x7ff] {
                    // Values of 8 bytes differ only in how they are moved, so some of the cases are enough.
                    if size_of::<V>() == 8 && random.random_bool(0.7) {
                        continue;
                    }
                    let lower_bits = index_bits(n);
                    let mut keys: Vec<u32> = (0..segments)
                        .flat_map(|_| {
                            in_groups(n, most, 32, (lower_bits, lower_mask & ((1 << lower_bits) - 1)), &mut random)
                        })
                        .collect();
                    if n <= MAX_SHORT {
                        keys.truncate(keys.len() - random.random_range(0..n / 2));
                    }
                    check_all::<V>(&keys, n, &mut random);
                }
            }
        }
    }
    all::<u32>();
    all::<u64>();
}

/// All keys of a segment have equal upper bits, or each half of the keys has. The segments of a warp differ in all
/// bits.
#[test]
fn keys_that_are_close_together_in_segments_that_are_not() {
    fn all<V: Word>() {
        let mut random = fresh_random();
        for n in [20, 32, 64, 100, 256, 500, 1024] {
            let lower = (1 << index_bits(n)) - 1;
            for clusters in [1, 2] {
                let keys: Vec<u32> = (0..2200)
                    .map(|i| {
                        let of_segment = if clusters == 1 { i / n % 2 } else { random.random_range(0..2) };
                        ((of_segment as u32 * 0xffff_ffff) & !lower) | random.random::<u32>() & lower
                    })
                    .collect();
                check_all::<V>(&keys, n, &mut random);
            }
        }
    }
    all::<u32>();
    all::<u64>();
}

/// The greatest keys of a segment and the least of the next one have equal upper bits. No key of one segment is less
/// than all keys of the other.
#[test]
fn groups_of_keys_end_where_segments_do() {
    fn all<V: Word>() {
        let mut random = fresh_random();
        let middle = 1_u32 << 31;
        for n in [17, 32, 40, 64, 96, 256, 512] {
            let lower = (1 << index_bits(n)) - 1;
            let mut keys: Vec<u32> = (0..2200)
                .map(|i| {
                    let (key, is_above) = (random.random::<u32>() % middle, i / n % 2 == 1);
                    match i % n {
                        0..3 => middle | key & lower,
                        _ if is_above => middle | lower | key,
                        _ => key & !lower,
                    }
                })
                .collect();
            (keys[3], keys[n + 3]) = (0, u32::MAX);
            check_all::<V>(&keys, n, &mut random);
        }
    }
    all::<u32>();
    all::<u64>();
}
