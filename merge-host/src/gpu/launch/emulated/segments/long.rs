//! Divisions of long segments of keys alone, and of 4-byte keys with values.

use super::*;
use crate::key_order::KeyOrder;
use kernels_gpu::kernels::sort::segments::long::long_tile;

/// Keys of a unit, for 4-byte keys with values of type `V`, or `()`.
const fn unit<V>() -> usize {
    long_tile(4, size_of::<V>()).keys()
}

/// The ways to move values of type `V` with the keys.
fn ways<V>() -> &'static [With] {
    if size_of::<V>() == 0 { &[With::Nothing] } else { &[With::Values, With::Indices] }
}

/// Sorts segments of the given lengths by offsets, for several kinds of keys: alone, or with values of type `V` and
/// with indices.
fn check_lengths<V: Word>(lengths: &[usize], kinds: &[Keys]) {
    for &with in ways::<V>() {
        for &keys in kinds {
            sort::<u32, V>(keys, lengths, By::Offsets, with);
        }
    }
}

/// [`check_lengths`], and the same lengths with keys that are encoded.
fn check_lengths_and_types<V: Word>(lengths: &[usize], kinds: &[Keys]) {
    check_lengths::<V>(lengths, kinds);
    sort::<i32, V>(Keys::Any, lengths, By::Offsets, ways::<V>()[0]);
    sort::<f32, V>(Keys::Any, lengths, By::Offsets, ways::<V>()[0]);
}

#[test]
fn segments_around_the_bounds_of_their_classes() {
    fn all<V: Word>() {
        for bound in [MAX_MIDDLE, unit::<V>(), 2 * unit::<V>(), 3 * unit::<V>()] {
            check_lengths::<V>(&[bound - 1, 0, bound, bound + 1], &[Keys::Few]);
        }
    }
    with_all_values!(all());
}

#[test]
fn long_segments_beside_short_middle_and_empty_ones() {
    fn all<V: Word>() {
        let ((slots, tiles), unit) = (tiles::<u32, V>(), unit::<V>());
        check_lengths_and_types::<V>(
            &[3, 2 * unit + 7, 0, 0, 9, slots + 1, unit + 1, 1, MAX_MIDDLE + 1, 5],
            &[Keys::Any],
        );
        check_lengths::<V>(
            &[tiles.keys - 1, tiles.overhang + 2, unit + tiles.keys, tiles.keys, unit + 1, unit + 2],
            &[Keys::Any],
        );
    }
    with_all_values!(all());
}

/// More units than a part has, so that units take the places of earlier ones, and more parts than one thread reads at
/// once.
#[test]
fn segments_of_many_units() {
    fn all<V: Word>() {
        let lengths = [MAX_MIDDLE + 1, 16 * unit::<V>() + 5, 1, 8 * unit::<V>(), 8 * unit::<V>() + 1];
        sort::<u32, V>(Keys::Few, &lengths, By::Offsets, with::<V>(0));
        // Keys alone have no parts. Values of 8 bytes have parts like values of 4 bytes.
        if size_of::<V>() == 4 {
            sort::<u32, V>(Keys::Any, &[64 * unit::<V>() + 1], By::Offsets, with::<V>(2));
        }
    }
    with_all_values!(all());
}

/// Keys with equal first digits are divided by further digits until they differ, in the lists of either level.
#[test]
fn keys_are_divided_until_they_differ() {
    fn all<K: TestKey, V: Word>() {
        let mut random = StdRng::seed_from_u64(fresh_seed());
        for digits in 0..=size_of::<K>() as u32 {
            // All cases for unsigned keys, and some for other keys, which differ in how they are encoded.
            if K::coding() != kernels_gpu::key::Coding::NONE && random.random_bool(0.6) {
                continue;
            }
            let bits = 8 * size_of::<K>() as u32 - 8 * digits;
            let alike: u64 = random.random();
            let random_below: u64 = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
            let lengths = [MAX_MIDDLE + 1 + digits as usize, 5, 2 * MAX_MIDDLE + 300];
            let mut key = || {
                let bits = Word::from_register(alike & !random_below | random.random::<u64>() & random_below);
                <K as kernels_gpu::key::Key>::from_ordered(bits)
            };
            let input: Vec<K> = (0..lengths.iter().sum()).map(|_| key()).collect();
            let seed = random.random();
            check_keys::<K, V>(&input, &lengths, By::Offsets, with::<V>(seed), seed);
        }
    }
    fn alone<K: TestKey>() {
        all::<K, ()>();
    }
    for_all_types!(alone());
    all::<u32, u32>();
    all::<u32, u64>();
    all::<i32, u32>();
}

/// Digits of many keys, which are sorted alone, digits of few keys, which are sorted together, and empty digits.
#[test]
fn few_keys_between_digits_that_are_alone() {
    let mut random = StdRng::seed_from_u64(fresh_seed());
    let digits = [
        (0, 7),
        (1, 2048),
        (2, 2049),
        (3, 1),
        (9, 700),
        (10, 1500),
        (11, 4000),
        (12, 3),
        (13, MAX_MIDDLE),
        (200, MAX_MIDDLE + 1),
        (255, 1),
    ];
    let mut input = vec![];
    for (digit, count) in digits {
        // For some digits, all further digits except the last are equal.
        let mask = if digit % 2 == 0 { 0xff } else { 0xff_ffff };
        input.extend((0..count).map(|_| digit << 24 | random.random::<u32>() & mask));
    }
    for i in (1..input.len()).rev() {
        input.swap(i, random.random_range(0..=i));
    }
    for seed in [2, 3] {
        let lengths = [input.len() - 1, 1];
        check_keys::<u32, ()>(&input, &lengths, By::Offsets, With::Nothing, seed);
        check_keys::<u32, u32>(&input, &lengths, By::Offsets, With::Values, seed);
        check_keys::<u32, u64>(&input, &lengths, By::Offsets, With::Indices, seed);
    }
}

/// Digits of few keys, and digits of about as few, which are sorted together, at each level.
#[test]
fn digits_of_few_keys_and_about_as_many() {
    fn all<V: Word>(longest: &[usize]) {
        let mut random = StdRng::seed_from_u64(fresh_seed());
        for (i, &longest) in longest.iter().enumerate() {
            let shift = [24, 16, 8, 0][i % 4];
            let alike: u32 = random.random();
            let mut input = vec![];
            for digit in 0..256u32 {
                let count = match digit % 4 {
                    0 => longest,
                    1 if i % 2 == 0 => longest / 2,
                    1 => 0,
                    2 if i % 3 == 0 => longest / 2 - 1,
                    _ => longest / 2,
                };
                let above = if shift == 24 { 0 } else { alike & u32::MAX << (shift + 8) };
                let below = (1u32 << shift) - 1;
                input.extend((0..count).map(|_| above | digit << shift | random.random::<u32>() & below));
            }
            for i in (1..input.len()).rev() {
                input.swap(i, random.random_range(0..=i));
            }
            // A segment before this one makes it begin anywhere.
            let lengths = [random.random_range(1..2000), input.len()];
            input.splice(..0, (0..lengths[0] as u32).rev());
            let seed = random.random();
            check_keys::<u32, V>(&input, &lengths, By::Offsets, with::<V>(seed), seed);
        }
    }
    all::<()>(&[74, 97, 160, 321, 511, 512]);
    all::<u32>(&[97, 320]);
}

/// Enough tiles for several blocks to list segments.
#[test]
fn more_segments_than_one_block_lists() {
    fn all<V: Word>() {
        let ((slots, tiles), unit) = (tiles::<u32, V>(), unit::<V>());
        let longer = MAX_MIDDLE.max(unit) + 1;
        let many = 140 * tiles.keys / (slots + 1 + longer);
        let mut lengths: Vec<usize> = (0..many).flat_map(|_| [slots + 1, longer]).collect();
        // A segment that begins in the tiles of one block and goes on in the tiles of another.
        lengths.insert(many - many / 8, 9 * unit);
        sort::<u32, V>(Keys::Any, &lengths, By::Offsets, with::<V>(0));
    }
    with_all_values!(all());
}

#[test]
fn keys_of_one_digit_and_in_either_order() {
    fn all<V: Word>() {
        let lengths = [7, 2 * unit::<V>() + 1, 30, MAX_MIDDLE + 5, unit::<V>()];
        check_lengths_and_types::<V>(&lengths, &[Keys::Equal, Keys::Descending, Keys::Ascending, Keys::Cluster]);
    }
    with_all_values!(all());
}

#[test]
fn one_long_segment_of_equal_keys_among_many_empty_ones() {
    fn all<V: Word>() {
        let empty = vec![0; 30_000];
        for keys in [Keys::Equal, Keys::Few] {
            let lengths = [&empty[..], &[3 * unit::<V>() + 1], &empty].concat();
            sort::<u32, V>(keys, &lengths, By::Offsets, with::<V>(0));
        }
    }
    with_all_values!(all());
}

#[test]
fn odd_floats_stay_exact_in_both_orders() {
    let (odd, mut random) =
        ([f32::NAN, -f32::NAN, 0.0, -0.0, f32::INFINITY, f32::MAX, 1.5], StdRng::seed_from_u64(fresh_seed()));
    let lengths = [100, 5, MAX_MIDDLE + 50, 0, 2 * unit::<()>() + 155];
    let n = lengths.iter().sum();
    let input: Vec<f32> = (0..n).map(|_| odd[random.random_range(0..odd.len())]).collect();
    for seed in [2, 3] {
        check_keys::<f32, ()>(&input, &lengths, By::Offsets, With::Nothing, seed);
        check_keys::<f32, u32>(&input, &lengths, By::Offsets, With::Indices, seed);
        check_keys::<f32, u64>(&input, &lengths, By::Offsets, With::Values, seed);
    }
}

#[test]
fn segments_of_one_length_are_divided_without_offsets() {
    fn all<V: Word>() {
        let unit = unit::<V>();
        for length in [MAX_MIDDLE + 1, 2 * unit, 2 * unit + 1, 3 * unit] {
            let lengths = [length, length, length / 2];
            let sorted = sort::<u32, V>(Keys::Few, &lengths, By::Length(length), with::<V>(length as u64));
            let kernels = sorted.device.kernels();
            assert!(kernels.contains("divide_long_segments"), "segments of {length} keys");
            assert!(!kernels.contains("merge_segments"), "segments of {length} keys");
        }
    }
    with_all_values!(all());
}

/// Of long segments of one length, only the last one may be short. Tiles before it have no block that looks for short
/// segments.
#[test]
fn the_last_segment_of_one_length_is_short() {
    fn all<V: Word>() {
        let ((slots, tiles), mut random) = (tiles::<u32, V>(), StdRng::seed_from_u64(fresh_seed()));
        for rest in [0, 1, 700, tiles.overhang + 1, slots, slots + 1] {
            let length = MAX_MIDDLE + random.random_range(1..tiles.keys);
            let mut lengths = vec![length; 3];
            lengths.extend(Some(rest).filter(|&rest| rest > 0));
            let sorted = sort::<u32, V>(Keys::Any, &lengths, By::Length(length), with::<V>(rest as u64));
            let has_short = (1..=slots).contains(&rest);
            assert_eq!(sorted.device.kernels().contains("sort_short_segments"), has_short, "{rest} keys are left");
        }
    }
    with_all_values!(all());
}

/// Sorts repeatedly in one workspace, with the leftovers of the sort before, for other segments of the same keys.
#[test]
fn a_workspace_may_have_anything_in_it() {
    fn all<V: Word>() {
        let (seed, unit, value_bytes) = (fresh_seed(), unit::<V>(), size_of::<V>());
        let n = 8 * unit;
        let device = Device::new(seed);
        let workspace = device.workspace(segments::workspace_bytes::<u32>(n, value_bytes));
        for lengths in [vec![n], vec![3, 2 * unit, 3 * unit + 1, MAX_MIDDLE], vec![unit + 1; 7], vec![n - 1]] {
            let mut offsets = vec![0];
            lengths.iter().for_each(|length| offsets.push(offsets[offsets.len() - 1] + length));
            offsets.push(n);
            let input = Keys::Few.random::<u32>(n, seed);
            let (at, bounds) = (device.array(&input), address(device.array(&offsets)));
            let bounds = Bounds::of_offsets(bounds, offsets.len() - 1, n);
            let values = device.uninit::<V>(if value_bytes == 0 { 0 } else { n });
            let arrays = Arrays { keys: address(at), values: address(values), len: n, value_bytes };
            // SAFETY: the arrays are as long as they are said to be, and the emulator checks accesses.
            unsafe {
                let (queue, order) = (device.queue(), KeyOrder::ASCENDING);
                segments::sort_segments::<u32>(&queue, order, arrays, bounds, value_bytes > 0, workspace)
            }
            .expect("the emulator launches all");
            let mut expected: Vec<usize> = (0..n).collect();
            offsets.windows(2).for_each(|ends| expected[ends[0]..ends[1]].sort_by_key(|&i| input[i]));
            let what = || format!("segments of {lengths:?} keys, values of {value_bytes} bytes, seed {seed}");
            assert!(device.read(at).into_iter().eq(expected.iter().map(|&i| input[i])), "{}", what());
            if value_bytes > 0 {
                let found = device.read(values).into_iter().map(|value| value.to_register() as usize);
                assert!(found.eq(expected), "{}", what());
            }
        }
    }
    with_all_values!(all());
}
