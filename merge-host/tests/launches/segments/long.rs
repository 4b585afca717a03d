//! Divisions of long segments.

use super::*;

/// Keys of a tile of a division, for 4-byte keys with values of type `V`, or `()`.
const fn tile<V>() -> usize {
    ROW.divide.of(4, size_of::<V>()).keys()
}

/// Sorts segments of the given lengths by offsets, for several kinds of keys: alone, or with values of type `V`, which
/// are indices for half of the seeds.
fn check_lengths<V: Word>(lengths: &[usize], kinds: &[Keys]) {
    for &keys in kinds {
        sort::<u32, V>(keys, lengths, By::Offsets, With::by::<V>(fresh_seed()));
    }
}

/// [`check_lengths`], and the same lengths with keys that are encoded.
fn check_lengths_and_types<V: Word>(lengths: &[usize], kinds: &[Keys]) {
    check_lengths::<V>(lengths, kinds);
    sort::<i32, V>(Keys::Any, lengths, By::Offsets, With::all::<V>()[0]);
    sort::<f32, V>(Keys::Any, lengths, By::Offsets, With::all::<V>()[0]);
}

#[test]
fn segments_around_the_bounds_of_their_classes() {
    fn all<V: Word>() {
        for bound in [MAX_MIDDLE, tile::<V>(), 2 * tile::<V>(), 3 * tile::<V>()] {
            check_lengths::<V>(&[bound - 1, 0, bound, bound + 1], &[Keys::Few]);
        }
    }
    with_all_values!(all());
}

#[test]
fn long_segments_beside_short_middle_and_empty_ones() {
    fn all<V: Word>() {
        let ((slots, tiles), tile) = (tiles::<u32, V>(), tile::<V>());
        check_lengths_and_types::<V>(
            &[3, 2 * tile + 7, 0, 0, 9, slots + 1, tile + 1, 1, MAX_MIDDLE + 1, 5],
            &[Keys::Any],
        );
        check_lengths::<V>(
            &[tiles.keys - 1, tiles.overhang + 2, tile + tiles.keys, tiles.keys, tile + 1, tile + 2],
            &[Keys::Any],
        );
    }
    with_all_values!(all());
}

/// More tiles than a part has, and more parts than lanes of the warp that sums them.
#[test]
fn segments_of_many_tiles() {
    fn all<V: Word>() {
        // Keys alone have no counts of parts. Values of 8 bytes have parts like values of 4 bytes.
        let (with, has_more) = (With::by::<V>(fresh_seed()), size_of::<V>() == 4);
        let lengths = [MAX_MIDDLE + 1, 16 * tile::<V>() + 5, 1, 8 * tile::<V>(), 8 * tile::<V>() + 1];
        sort::<u32, V>(Keys::Few, &lengths[..if has_more { 5 } else { 2 }], By::Offsets, with);
        // Many keys take long to emulate.
        if has_more && (tries_all() || rand::random_ratio(1, 4)) {
            sort::<u32, V>(Keys::Any, &[132 * tile::<V>() + 1], By::Offsets, with);
        }
    }
    with_all_values!(all());
}

/// Keys with equal first bits, of which a sample finds the range.
#[test]
fn keys_are_divided_until_they_differ() {
    fn all<K: TestKey, V: Word>() {
        let mut random = fresh_random();
        for digits in 0..=size_of::<K>() as u32 {
            if !takes_turn::<K>(digits as usize) {
                continue;
            }
            let bits = 8 * size_of::<K>() as u32 - 8 * digits;
            let alike: u64 = random.random();
            let random_below: u64 = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
            let lengths = [MAX_MIDDLE + 1 + digits as usize, 5, 2 * MAX_MIDDLE + 300];
            let mut key = || K::of_ordered(alike & !random_below | random.random::<u64>() & random_below);
            let input: Vec<K> = (0..lengths.iter().sum()).map(|_| key()).collect();
            let seed = random.random();
            check_keys::<K, V>(&input, &lengths, By::Offsets, With::by::<V>(seed), seed);
        }
    }
    fn alone<K: TestKey>() {
        all::<K, ()>();
    }
    for_all_types!(alone());
    all::<u32, u32>();
    all::<u32, u64>();
    all::<i32, u32>();
    all::<u64, u32>();
    all::<f64, u64>();
}

/// Enough tiles for several blocks to list segments.
#[test]
fn more_segments_than_one_block_lists() {
    fn all<V: Word>() {
        let ((slots, tiles), tile) = (tiles::<u32, V>(), tile::<V>());
        let longer = MAX_MIDDLE.max(tile) + 1;
        let many = 140 * tiles.keys / (slots + 1 + longer);
        let mut lengths: Vec<usize> = (0..many).flat_map(|_| [slots + 1, longer]).collect();
        // A segment that begins in the tiles of one block and goes on in the tiles of another.
        lengths.insert(many - many / 8, 9 * tile);
        sort::<u32, V>(Keys::Any, &lengths, By::Offsets, With::by::<V>(0));
    }
    with_all_values!(all());
}

#[test]
fn keys_of_one_digit_and_in_either_order() {
    fn all<V: Word>() {
        let lengths = [7, 2 * tile::<V>() + 1, 30, MAX_MIDDLE + 5, tile::<V>()];
        check_lengths_and_types::<V>(&lengths, &[Keys::Equal, Keys::Descending, Keys::Ascending, Keys::Cluster]);
    }
    with_all_values!(all());
}

#[test]
fn one_long_segment_of_equal_keys_among_many_empty_ones() {
    fn all<V: Word>() {
        let empty = vec![0; 30_000];
        for keys in [Keys::Equal, Keys::Few] {
            let lengths = [&empty[..], &[3 * tile::<V>() + 1], &empty].concat();
            sort::<u32, V>(keys, &lengths, By::Offsets, With::by::<V>(0));
        }
    }
    with_all_values!(all());
}

#[test]
fn odd_floats_stay_exact_in_both_orders() {
    let lengths = [100, 5, MAX_MIDDLE + 50, 0, 2 * tile::<()>() + 155];
    let input = odd_floats(lengths.iter().sum(), &mut fresh_random());
    for seed in [2, 3] {
        check_keys::<f32, ()>(&input, &lengths, By::Offsets, With::Nothing, seed);
        check_keys::<f32, u32>(&input, &lengths, By::Offsets, With::Indices, seed);
        check_keys::<f32, u64>(&input, &lengths, By::Offsets, With::Values, seed);
    }
}

#[test]
fn segments_of_one_length_are_divided_without_offsets() {
    fn all<V: Word>() {
        let tile = tile::<V>();
        for length in [MAX_MIDDLE + 1, 2 * tile, 2 * tile + 1, 3 * tile] {
            let lengths = [length, length, length / 2];
            let sorted = sort::<u32, V>(Keys::Few, &lengths, By::Length(length), With::by::<V>(length as u64));
            let kernels = sorted.device.kernels();
            assert!(kernels.contains("divide"), "segments of {length} keys");
            assert!(!kernels.contains("sort_middle_segments") || length / 2 > MAX_SHORT, "segments of {length} keys");
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
        let ((slots, tiles), mut random) = (tiles::<u32, V>(), fresh_random());
        for rest in [0, 1, 700, tiles.overhang + 1, slots, slots + 1] {
            let length = MAX_MIDDLE + random.random_range(1..tiles.keys);
            let mut lengths = vec![length; 3];
            lengths.extend(Some(rest).filter(|&rest| rest > 0));
            let sorted = sort::<u32, V>(Keys::Any, &lengths, By::Length(length), With::by::<V>(rest as u64));
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
        let (seed, tile) = (fresh_seed(), tile::<V>());
        let n = 8 * tile;
        let (device, mut workspace, with) = (Device::new(seed), None, With::all::<V>()[With::all::<V>().len() - 1]);
        for mut lengths in [vec![n], vec![3, 2 * tile, 3 * tile + 1, MAX_MIDDLE], vec![tile + 1; 7], vec![n - 1]] {
            lengths.push(n - lengths.iter().sum::<usize>());
            let input = Keys::Few.random::<u32>(n, seed);
            workspace = Some(check_on::<u32, V>(&device, workspace, &input, &lengths, By::Offsets, with, seed));
        }
    }
    all::<()>();
    all::<u32>();
}

/// Draws the ordered bits of a key.
type Draw = dyn FnMut(&mut StdRng) -> u64;

/// Keys that no single look at a sample divides evenly, in segments of several lengths: each level looks again.
#[test]
fn skewed_keys_take_more_levels() {
    fn all<K: TestKey, V: Word>() {
        let mut random = fresh_random();
        // Of small and of large keys of 4 bytes, 3/4, 2/4 and 1/4 have equal bits up to the first, second and third
        // level. In the first segment, each of these parts is longer than a middle segment.
        let lengths = [40_000, 3, MAX_MIDDLE + 1, 0, 20_000];
        let n = lengths.iter().sum();
        let width = 8 * size_of::<K>() as u32;
        let of_bits = |bits: u64| <K as kernels_gpu::key::Key>::from_ordered(Word::from_register(bits));
        // Many small keys, many large ones, few values far apart, and random words ANDed.
        let mut kinds: [Box<Draw>; 4] = [
            Box::new(move |random| random.random::<u64>() >> (64 - width) >> random.random_range(0..width)),
            Box::new(move |random| !(random.random::<u64>() >> (64 - width) >> random.random_range(0..width))),
            Box::new(move |random| random.random_range(0..4) << (width - 2) | random.random_range(0..4)),
            Box::new(|random| random.random::<u64>() & random.random::<u64>() & random.random::<u64>()),
        ];
        for draw in tried(&mut kinds) {
            let input: Vec<K> = (0..n).map(|_| of_bits(draw(&mut random) & (u64::MAX >> (64 - width)))).collect();
            let seed = random.random();
            check_keys::<K, V>(&input, &lengths, By::Offsets, With::by::<V>(seed), seed);
        }
        let seed = random.random();
        check_keys::<K, V>(&Keys::Nested.random::<K>(n, seed), &lengths, By::Offsets, With::by::<V>(seed), seed);
    }
    all::<u32, ()>();
    all::<f32, ()>();
    all::<u64, ()>();
    all::<i32, u32>();
    all::<u64, u64>();
}

/// Floats from 0 to 1 have even values and uneven bits.
#[test]
fn floats_are_divided_along_their_values() {
    fn all<V: Word>() {
        let mut random = fresh_random();
        let lengths = [50_000, 7, 2 * MAX_MIDDLE];
        for seed in tried([2, 3]) {
            let input: Vec<f32> = (0..lengths.iter().sum()).map(|_| random.random()).collect();
            check_keys::<f32, V>(&input, &lengths, By::Offsets, With::by::<V>(seed), seed);
            let input: Vec<f64> = (0..lengths.iter().sum()).map(|_| random.random::<f64>() - 0.5).collect();
            check_keys::<f64, V>(&input, &lengths, By::Offsets, With::by::<V>(seed), seed);
        }
    }
    with_all_values!(all());
}

/// 8-byte keys with values: runs of up to 9216 keys are merged, and longer segments divided.
#[test]
fn wide_keys_with_values_are_divided() {
    fn all<K: TestKey, V: Word>() {
        let tile = ROW.divide.of(8, size_of::<V>()).keys();
        for (lengths, divided) in [
            (vec![MAX_MIDDLE, 0, MAX_MIDDLE + 1, 3, 5 * tile + 1, 5000, 1], 2),
            (vec![0, 3 * tile, 3 * tile + 1, 900, 4000, 0], 2),
        ] {
            for keys in tried([Keys::Any, Keys::Few, Keys::Equal]) {
                let sorted = sort::<K, V>(keys, &lengths, By::Offsets, With::by::<V>(fresh_seed()));
                assert_eq!(sorted.divided(), divided);
                assert!(sorted.units() > 0);
            }
        }
        let sorted =
            sort::<K, V>(Keys::Any, &[3 * tile, 3 * tile, 100], By::Length(3 * tile), With::by::<V>(fresh_seed()));
        assert_eq!(sorted.divided(), 2);
        assert_eq!(sorted.units(), 0);
    }
    all::<u64, u32>();
    all::<f64, u64>();
}
