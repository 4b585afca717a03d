//! Divisions of long segments of keys alone.

use super::*;
use kernels_gpu::kernels::sort::segments::long::long_tile;

/// Keys of a unit of keys of 4 bytes.
const UNIT: usize = long_tile(4).keys();

/// Sorts segments of these lengths by offsets, of keys of several kinds and types, and says by which kernels.
fn check_lengths(lengths: &[usize], kinds: &[Keys]) {
    for &keys in kinds {
        sort::<u32, ()>(keys, lengths, By::Offsets, With::Nothing);
    }
    sort::<i32, ()>(Keys::Any, lengths, By::Offsets, With::Nothing);
    sort::<f32, ()>(Keys::Any, lengths, By::Offsets, With::Nothing);
}

#[test]
fn segments_around_the_bounds_of_their_classes() {
    for bound in [MAX_MIDDLE, UNIT, 2 * UNIT, 3 * UNIT] {
        check_lengths(&[bound - 1, 0, bound, bound + 1], &[Keys::Few]);
    }
}

#[test]
fn long_segments_beside_short_middle_and_empty_ones() {
    let (slots, tiles) = tiles::<u32, ()>();
    check_lengths(&[3, 2 * UNIT + 7, 0, 0, 9, slots + 1, UNIT + 1, 1, MAX_MIDDLE + 1, 5], &[Keys::Any]);
    check_lengths(
        &[tiles.keys - 1, tiles.overhang + 2, UNIT + tiles.keys, tiles.keys, UNIT + 1, UNIT + 2],
        &[Keys::Any],
    );
}

/// Keys that are alike in their first digits, so that they are divided by as many as that takes, in the lists of either level.
#[test]
fn keys_are_divided_until_they_differ() {
    fn all<K: TestKey>() {
        let mut random = StdRng::seed_from_u64(fresh_seed());
        for digits in 0..=size_of::<K>() as u32 {
            let bits = 8 * size_of::<K>() as u32 - 8 * digits;
            let alike: u64 = random.random();
            let random_below: u64 = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
            let lengths = [MAX_MIDDLE + 1 + digits as usize, 5, 2 * MAX_MIDDLE + 300];
            let mut key = || {
                let bits = Word::from_register(alike & !random_below | random.random::<u64>() & random_below);
                <K as kernels_gpu::key::Key>::from_ordered(bits)
            };
            let input: Vec<K> = (0..lengths.iter().sum()).map(|_| key()).collect();
            check_keys::<K, ()>(&input, &lengths, By::Offsets, With::Nothing, random.random());
        }
    }
    for_all_types!(all());
}

/// Digits of many keys, which are alone, beside digits of few, which are sorted together, and digits of none.
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
        // All other digits but the last are alike, for some.
        let mask = if digit % 2 == 0 { 0xff } else { 0xff_ffff };
        input.extend((0..count).map(|_| digit << 24 | random.random::<u32>() & mask));
    }
    for i in (1..input.len()).rev() {
        input.swap(i, random.random_range(0..=i));
    }
    for seed in [2, 3] {
        check_keys::<u32, ()>(&input, &[input.len() - 1, 1], By::Offsets, With::Nothing, seed);
    }
}

/// So many tiles that several blocks list segments.
#[test]
fn more_segments_than_one_block_lists() {
    let (slots, tiles) = tiles::<u32, ()>();
    let many = 140 * tiles.keys / (slots + 1 + UNIT + 1);
    let mut lengths: Vec<usize> = (0..many).flat_map(|_| [slots + 1, UNIT + 1]).collect();
    // One that begins in the tiles of one block and goes on in those of another.
    lengths.insert(many - many / 8, 9 * UNIT);
    sort::<u32, ()>(Keys::Any, &lengths, By::Offsets, With::Nothing);
}

#[test]
fn keys_of_one_digit_and_in_either_order() {
    let lengths = [7, 2 * UNIT + 1, 30, MAX_MIDDLE + 5, UNIT];
    check_lengths(&lengths, &[Keys::Equal, Keys::Descending, Keys::Ascending, Keys::Cluster]);
}

#[test]
fn odd_floats_stay_exact_in_both_orders() {
    let (odd, mut random) =
        ([f32::NAN, -f32::NAN, 0.0, -0.0, f32::INFINITY, f32::MAX, 1.5], StdRng::seed_from_u64(fresh_seed()));
    let lengths = [100, 5, MAX_MIDDLE + 50, 0, 2 * UNIT + 155];
    let n = lengths.iter().sum();
    let input: Vec<f32> = (0..n).map(|_| odd[random.random_range(0..odd.len())]).collect();
    for seed in [2, 3] {
        check_keys::<f32, ()>(&input, &lengths, By::Offsets, With::Nothing, seed);
    }
}

#[test]
fn segments_of_one_length_are_divided_without_offsets() {
    for length in [MAX_MIDDLE + 1, 2 * UNIT, 2 * UNIT + 1, 3 * UNIT] {
        let lengths = [length, length, length / 2];
        let sorted = sort::<u32, ()>(Keys::Any, &lengths, By::Length(length), With::Nothing);
        let kernels = sorted.device.kernels();
        assert!(kernels.contains("divide_long_segments"), "segments of {length} keys");
        assert!(!kernels.contains("merge_segments"), "segments of {length} keys");
    }
}

/// Sorts repeatedly in one workspace, which has what the sort before has left, for other segments of the same keys.
#[test]
fn a_workspace_may_have_anything_in_it() {
    let (seed, n) = (fresh_seed(), 8 * UNIT);
    let device = Device::new(seed);
    let workspace = device.workspace(segments::workspace_bytes::<u32>(n, 0));
    for lengths in [vec![n], vec![3, 2 * UNIT, 3 * UNIT + 1, MAX_MIDDLE], vec![UNIT + 1; 7], vec![n - 1]] {
        let mut offsets = vec![0];
        lengths.iter().for_each(|length| offsets.push(offsets[offsets.len() - 1] + length));
        offsets.push(n);
        let input = Keys::Any.random::<u32>(n, seed);
        let (at, bounds) = (device.array(&input), address(device.array(&offsets)));
        let bounds = Bounds::of_offsets(bounds, offsets.len() - 1, n);
        let arrays = Arrays { keys: address(at), values: address(device.uninit::<()>(0)), len: n, value_bytes: 0 };
        // SAFETY: the arrays are as long as they are said to be, and the emulator checks accesses.
        unsafe {
            segments::sort_segments::<u32>(&device.queue(), SortOrder::Ascending, arrays, bounds, false, workspace)
        }
        .expect("the emulator launches all");
        let mut expected = input;
        offsets.windows(2).for_each(|ends| expected[ends[0]..ends[1]].sort_unstable());
        assert!(device.read(at) == expected, "segments of {lengths:?} keys, seed {seed}");
    }
}
