//! Sorts of segments, against the standard library's stable sort of each.

mod bins;
mod long;
mod numbers;

use crate::common::*;
use cuda_std::Word;
use kernels_gpu::kernels::sort::segments::Tiles;
use kernels_gpu::kernels::sort::segments::middle_runs::MAX_MIDDLE;
use kernels_gpu::kernels::sort::segments::sort_rows::MAX_ROW;
use kernels_gpu::kernels::sort::segments::sort_short_segments::MAX_SHORT;
use kernels_gpu::kernels::sort::segments::sort_wide_rows::has_wide_rows;
use kernels_gpu::tuning::ROW;
use merge_host::launches::Address;
use merge_host::launches::emulated::{Device, address};
use merge_host::launches::segments::{Bounds, SortSegments, divided_at, units_at};
use rand::Rng;
use rand::rngs::StdRng;

/// How the kernels find segments.
#[derive(Clone, Copy, Debug)]
enum By {
    Offsets,
    Length(usize),
}

/// A sort that has run.
struct Sorted {
    device: Device,
    /// The address of the number of units of long segments.
    units: Address,
    /// The address of the number of segments that were divided, if any may be.
    divided: Option<Address>,
}

impl Sorted {
    /// The number of units of long segments.
    fn units(&self) -> u32 {
        self.device.words(self.units, 1)[0]
    }

    /// The number of segments that were divided.
    fn divided(&self) -> usize {
        self.divided.map_or(0, |at| self.device.words(at, 1)[0] as usize)
    }
}

/// Sorts segments of the given lengths, of random keys, on a new device, and compares.
fn sort<K: TestKey, V: Word>(keys: Keys, lengths: &[usize], by: By, with: With) -> Sorted {
    let seed = fresh_seed();
    check_keys::<K, V>(&keys.random(lengths.iter().sum(), seed), lengths, by, with, seed)
}

/// Sorts segments of the given lengths on a new device, in either order, and compares.
fn check_keys<K: TestKey, V: Word>(input: &[K], lengths: &[usize], by: By, with: With, seed: u64) -> Sorted {
    let device = Device::new(seed);
    let workspace = check_on::<K, V>(&device, None, input, lengths, by, with, seed);
    let (n, value_bytes) = (input.len(), size_of::<V>());
    let longest = if let By::Length(length) = by { length.min(n) } else { n };
    let at = |offset: usize| workspace + offset as Address;
    let divided = (longest > MAX_MIDDLE).then(|| at(divided_at::<K::OnGpu>(n, value_bytes)));
    Sorted { units: at(units_at::<K::OnGpu>(n, value_bytes)), divided, device }
}

/// Sorts segments of the given lengths on `device`, in a new workspace or in the given one. Returns the workspace.
fn check_on<K: TestKey, V: Word>(
    device: &Device,
    workspace: Option<Address>,
    input: &[K],
    lengths: &[usize],
    by: By,
    with: With,
    seed: u64,
) -> Address {
    let (n, order, offsets) = (input.len(), order_of(seed), offsets_of(lengths));
    let pairs = Pairs::<K, V>::with(device, input, with);
    let bounds = match by {
        By::Offsets => Bounds::of_offsets(address(device.array(&offsets)), lengths.len(), n),
        By::Length(length) => Bounds::of_length(length, n),
    };
    let sort =
        SortSegments { coding: order.coding::<K>().into(), at: pairs.arrays(), bounds, indexes: with == With::Indices };
    let workspace = match workspace {
        Some(workspace) => {
            device.run_in(&sort, workspace);
            workspace
        }
        None => device.run(&sort),
    };
    let what = || format!("{n} keys in {} segments, {by:?}, {order:?}, {with:?}", lengths.len());
    pairs.check(device, input, &sorted_segments(input, order, &offsets), &what);
    workspace
}

/// The tiles for keys `K` with values `V`.
fn tiles<K, V>() -> (usize, Tiles) {
    let slots = ROW.sort_segments.of(size_of::<K>(), size_of::<V>()).keys();
    (slots, Tiles::of(slots))
}

/// Whether segments of up to [`MAX_MIDDLE`] keys are each sorted by one block.
fn has_lists<K, V>() -> bool {
    size_of::<V>() == 0 || size_of::<K>() == 4
}

/// Sorts by offsets. Values are indices for some of the distributions. `has_longer` says whether some segments are too
/// long for the block of a tile: these have units, unless they are listed or divided.
fn check<K: TestKey, V: Word>(keys: Keys, lengths: &[usize], has_longer: bool) {
    let divided = lengths.iter().filter(|&&length| length > MAX_MIDDLE).count();
    let ways = With::all::<V>();
    let sorted = sort::<K, V>(keys, lengths, By::Offsets, ways[keys as usize % ways.len()]);
    if lengths.iter().any(|&length| length > 1) {
        assert_eq!(sorted.divided(), divided, "{lengths:?}");
        let has_units = sorted.units() > 0;
        assert!(if has_lists::<K, V>() { !has_units } else { has_units || !has_longer || divided > 0 }, "{lengths:?}");
    }
}

#[test]
fn short_segments_are_sorted_by_one_block_each() {
    fn all<K: TestKey, V: Word>() {
        let mut random = fresh_random();
        let (slots, tiles) = tiles::<K, V>();
        let mut up_to =
            |most: usize, count: usize| -> Vec<usize> { (0..count).map(|_| random.random_range(0..=most)).collect() };
        let lists = [
            vec![],
            vec![0; 10],
            vec![1],
            vec![0, 0, 5, 0, 0],
            up_to(9, 3000),
            up_to(100, 300),
            vec![slots],
            vec![1, slots - 1],
            vec![tiles.keys - 1, tiles.overhang + 1, 3],
            vec![tiles.keys, tiles.keys, 1],
        ];
        for lengths in lists {
            for keys in tried([Keys::Any, Keys::Few]) {
                check::<K, V>(keys, &lengths, false);
            }
        }
    }
    with_all_values!(all::<u32>());
    with_all_values!(all::<u64>());
    // Values move independently of the encoding of keys.
    all::<f32, ()>();
    all::<i32, ()>();
    all::<i64, ()>();
    all::<f64, ()>();
}

#[test]
fn segments_of_more_keys_than_a_block_of_tiles_holds() {
    fn all<K: TestKey, V: Word>() {
        let (slots, tiles) = tiles::<K, V>();
        let lists = [
            vec![slots + 1],
            vec![2 * slots],
            vec![tiles.keys - 1, tiles.overhang + 2],
            vec![3, 5 * slots + 7, 0, 0, 9, 2 * slots, 1],
            vec![tiles.keys + 5, slots + 1, slots - 1, 2 * tiles.keys],
        ];
        for lengths in lists {
            for keys in tried([Keys::Any, Keys::Few]) {
                check::<K, V>(keys, &lengths, true);
            }
        }
    }
    fn both<K: TestKey>() {
        with_all_values!(all::<K>());
    }
    both::<f32>();
    both::<u64>();
}

#[test]
fn one_long_segment_among_many_empty_ones() {
    fn all<K: TestKey, V: Word>() {
        let (slots, _) = tiles::<K, V>();
        let empty = vec![0; 6 * slots];
        let around = |long: &[usize]| [&empty[..], long, &empty[..]].concat();
        check::<K, V>(Keys::Any, &around(&[3 * slots]), true);
        // More segments in a tile than are listed one by one, with a few that are not empty.
        check::<K, V>(Keys::Any, &around(&[5, 0, 0, slots / 2, 1]), false);
        let sprinkled: Vec<usize> = (0..8 * slots).map(|i| usize::from(i % 9 == 0)).collect();
        check::<K, V>(Keys::Any, &[sprinkled, vec![100, 2 * slots]].concat(), true);
    }
    with_all_values!(all::<u32>());
    with_all_values!(all::<f64>());
}

#[test]
fn segments_of_one_length_need_no_offsets() {
    fn all<K: TestKey, V: Word>() {
        let (slots, tiles) = tiles::<K, V>();
        let with = if size_of::<V>() == 0 { With::Nothing } else { With::Values };
        let small = [1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 32, 33, 100, 256, 1000];
        for length in small.into_iter().chain([tiles.overhang + 1, tiles.overhang + 2, slots, slots + 1]) {
            let n = 2 * slots + slots / 3;
            let mut lengths = vec![length; n / length];
            lengths.extend(Some(n % length).filter(|&rest| rest > 0));
            let sorted = sort::<K, V>(Keys::Any, &lengths, By::Length(length), with);
            let (kernels, is_alone) = (sorted.device.kernels(), size_of::<V>() == 0);
            let has_lists = has_lists::<K, V>();
            let is_wide_row = has_lists && length > 1 && has_wide_rows(length);
            let is_row = is_alone && (2..=MAX_ROW).contains(&length) && !is_wide_row;
            let merges = !has_lists && length > slots;
            let is_middle = has_lists && length > MAX_SHORT && length <= MAX_MIDDLE;
            for (kernel, is_launched) in [
                ("merge_segments", merges),
                ("sort_rows", is_row),
                ("sort_wide_rows", is_wide_row),
                ("sort_middle_segments", is_middle),
                ("sort_segments", !has_lists && length > 1),
            ] {
                assert_eq!(kernels.contains(kernel), is_launched, "{kernel}: segments of {length} keys");
            }
        }
    }
    with_all_values!(all::<u32>());
    all::<f32, ()>();
    with_all_values!(all::<u64>());
}

/// Lengths around those at which a segment needs another network, another lane or another block.
fn edges() -> impl Iterator<Item = usize> {
    let powers = (6..=10).map(|exponent| 1 << exponent);
    powers.flat_map(|power: usize| [power - 1, power, power + 1]).chain(0..=40).chain([300, 320, 321, 600, 993, 1000])
}

#[test]
fn segments_at_the_edges_of_classes() {
    fn all<K: TestKey, V: Word>() {
        let mut random = fresh_random();
        for length in edges().filter(|&length| length > 1) {
            if !takes_turn::<K>(length) {
                continue;
            }
            let keys = [Keys::Any, Keys::Few, Keys::Equal, Keys::Descending][random.random_range(0..4)];
            // Some segments of a warp, some of the next, and a shorter last one.
            let mut lengths = vec![length; 5000usize.div_ceil(length)];
            lengths.extend(Some(random.random_range(0..length)).filter(|&rest| rest > 0));
            sort::<K, V>(keys, &lengths, By::Length(length), With::by::<V>(length as u64));
            let sorted = sort::<K, V>(keys, &lengths, By::Offsets, With::by::<V>(random.random()));
            assert!(sorted.device.kernels().contains("sort_short_segments"));
        }
        let mut all: Vec<usize> = edges().chain([0; 20]).collect();
        for keys in [Keys::Any, Keys::Few, Keys::Equal, Keys::Descending, Keys::Ascending] {
            for _ in 0..2 {
                shuffle(&mut all, &mut random);
                sort::<K, V>(keys, &all, By::Offsets, With::by::<V>(random.random()));
            }
        }
        // Tiles of one class after the other, with longer segments at the end.
        let mut many: Vec<usize> = edges().collect();
        many.sort_unstable();
        let longer = [&many[..], &[MAX_SHORT, MAX_SHORT + 1, 2000]].concat();
        for lengths in [many, longer] {
            sort::<K, V>(Keys::Any, &lengths, By::Offsets, With::by::<V>(random.random()));
        }
    }
    fn alone<K: TestKey>() {
        all::<K, ()>();
    }
    for_all_types!(alone());
    all::<u32, u32>();
    all::<u32, u64>();
    all::<f32, u32>();
    all::<i32, u64>();
}

/// Lengths at which a segment needs another run of a warp, or another block.
#[test]
fn middle_segments_at_the_edges_of_runs() {
    fn all<K: TestKey, V: Word>() {
        let mut random = fresh_random();
        let mut edges: Vec<usize> = [1, 2, 3, 4, 5, 7, 8]
            .into_iter()
            .flat_map(|runs| [runs * MAX_SHORT - 1, runs * MAX_SHORT, runs * MAX_SHORT + 1])
            .filter(|&length| length > MAX_SHORT && length <= MAX_MIDDLE)
            .chain([1500, 3210])
            .collect();
        edges.retain(|&length| takes_turn::<K>(length));
        for &length in &edges {
            let keys = [Keys::Any, Keys::Few, Keys::Equal, Keys::Descending][random.random_range(0..4)];
            let lengths = [length, length, random.random_range(1..length)];
            let sorted = sort::<K, V>(keys, &lengths, By::Length(length), With::by::<V>(length as u64));
            let kernels = sorted.device.kernels();
            assert!(!kernels.contains("sort_short_segments"), "segments of {length} keys");
            assert!(
                kernels.iter().any(|kernel| kernel.starts_with("sort_middle_segments")),
                "segments of {length} keys"
            );
        }
        let mut all: Vec<usize> = edges.into_iter().chain([0, 3, 0, 700, 1024, 17, 0]).collect();
        for keys in [Keys::Any, Keys::Few, Keys::Descending] {
            shuffle(&mut all, &mut random);
            sort::<K, V>(keys, &all, By::Offsets, With::by::<V>(random.random()));
        }
    }
    fn alone<K: TestKey>() {
        all::<K, ()>();
    }
    for_all_types!(alone());
    all::<u32, u32>();
    all::<u32, u64>();
    all::<f32, u32>();
    all::<f32, u64>();
}

/// Segments that only the first kernel sorts, and tiles that have longer ones as well.
#[test]
fn segments_of_few_keys_and_longer_ones() {
    fn all<K: TestKey>() {
        let mut random = fresh_random();
        let (slots, _) = tiles::<K, ()>();
        for (most, sum) in
            [(3, slots), (20, 2 * slots), (70, 2 * slots), (300, 3 * slots), (1025, 4 * slots), (3000, 5 * slots)]
        {
            let (mut lengths, mut left) = (vec![], sum);
            while left > 0 {
                lengths.push(random.random_range(0..=most).min(left));
                left -= lengths[lengths.len() - 1];
            }
            for keys in tried([Keys::Any, Keys::Few]) {
                sort::<K, ()>(keys, &lengths, By::Offsets, With::Nothing);
            }
        }
    }
    for_all_types!(all());
}

/// Keys with an order that only their bits define: NaNs of both signs, zeros of both signs, and infinities.
#[test]
fn all_equal_keys_and_odd_floats_stay_exact() {
    fn all<V: Word>() {
        let (slots, _) = tiles::<f32, V>();
        for keys in [Keys::Equal, Keys::Ascending] {
            check::<f32, V>(keys, &[7, 0, 2 * slots + 1, 30, slots], true);
        }
        let mut random = fresh_random();
        let input = odd_floats(3 * slots, &mut random);
        let lengths = [100, 5, slots + 50, 0, 2 * slots - 155];
        let with = if size_of::<V>() == 0 { With::Nothing } else { With::Values };
        check_keys::<f32, V>(&input, &lengths, By::Offsets, with, random.random());
        for length in [3, 8, 30, 64, 100, 1024, 1025, 2500] {
            let lengths = vec![length; input.len() / length];
            let input = &input[..length * lengths.len()];
            check_keys::<f32, V>(input, &lengths, By::Offsets, with, random.random());
            check_keys::<f32, V>(input, &lengths, By::Length(length), with, random.random());
        }
    }
    all::<()>();
    all::<u32>();
    all::<u64>();
}
