//! The first k keys of segments, against the standard library's stable sort of each.

use crate::common::*;
use cuda_std::Word;
use kernels_gpu::kernels::top_k::segments::{MAX_K, MAX_THREADS, MIN_THREADS, SLOTS, items_per_thread};
use merge_host::launches::emulated::{Device, address};
use merge_host::launches::segments::Bounds;
use merge_host::launches::top_k_segments::TopKSegments;
use merge_host::launches::{Arrays, KeyOrder};
use merge_host::{NanOrder, SortOrder};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// How the kernels find segments.
#[derive(Clone, Copy, Debug)]
enum By {
    Offsets,
    /// All segments but the last have this length.
    Length(usize),
}

/// A selection: its segments, how many elements of each, and with which values.
#[derive(Clone, Copy, Debug)]
struct Case<'a> {
    lengths: &'a [usize],
    by: By,
    k: usize,
    with: With,
    order: KeyOrder,
}

/// Fills the output before the selection. Slots of missing elements keep this.
const POISON: u64 = 0xdead_beef_dead_beef;

/// Selects from segments of `keys` on a new device, and compares.
fn check_case<K: TestKey, V: Word>(keys: &[K], case: Case<'_>, seed: u64) -> Device {
    let Case { lengths, by, k, with, order } = case;
    let (device, offsets) = (Device::new(seed), offsets_of(lengths));
    let from = Pairs::<K, V>::of(&device, keys, 0).arrays();
    let from = if with == With::Indices { Arrays { values: 0, ..from } } else { from };
    let len = k * lengths.len();
    let out_keys = device.array(&vec![K::from_register(POISON); len]);
    let out_values = device.array(&vec![V::from_register(POISON); if size_of::<V>() > 0 { len } else { 0 }]);
    let out =
        Arrays { keys: address(out_keys), values: address(out_values), len, value_bytes: size_of::<V>(), count: 0 };
    let bounds = match by {
        By::Offsets => Bounds::of_offsets(address(device.array(&offsets)), lengths.len(), keys.len()),
        By::Length(length) => Bounds::of_length(length, keys.len()),
    };
    device.run(&TopKSegments { coding: order.coding::<K>().into(), from, bounds, k, out });

    let sorted = sorted_segments(keys, order, &offsets);
    let (mut expected, mut expected_values) = (vec![], vec![]);
    for ends in offsets.windows(2) {
        let firsts = sorted[ends[0]..ends[1]].iter().take(k);
        let missing = k - firsts.len();
        for &index in firsts {
            expected.push(keys[index].to_register());
            let value = if with == With::Indices { index - ends[0] } else { 3 * index };
            expected_values.push(V::from_register(value as u64).to_register());
        }
        let poison = |poison: u64| std::iter::repeat_n(poison, missing);
        expected.extend(poison(K::from_register(POISON).to_register()));
        expected_values.extend(poison(V::from_register(POISON).to_register()));
    }
    let few = &lengths[..lengths.len().min(9)];
    let what = || format!("{} segments {few:?} of {}, seed {seed}", lengths.len(), <K as merge_host::Key>::NAME);
    assert!(raw_bits(&device.read(out_keys)) == expected, "keys: {}, {:?}", what(), Case { lengths: few, ..case });
    if size_of::<V>() > 0 {
        let found = raw_bits(&device.read(out_values));
        assert!(found == expected_values, "values: {}, {:?}", what(), Case { lengths: few, ..case });
    }
    device
}

/// Selects from segments of these lengths, in an order and with values by the seed.
fn check<K: TestKey, V: Word>(keys: Keys, lengths: &[usize], by: By, k: usize) -> Device {
    let seed = fresh_seed();
    let case = Case { lengths, by, k, with: With::by::<V>(seed), order: order_of(seed / 7) };
    check_case::<K, V>(&keys.random(lengths.iter().sum(), seed), case, seed)
}

/// `count` segments of one length.
fn check_rows<K: TestKey, V: Word>(keys: Keys, (count, length): (usize, usize), k: usize) -> Device {
    check::<K, V>(keys, &vec![length; count], By::Length(length), k)
}

const KINDS: [Keys; 6] = [Keys::Any, Keys::Few, Keys::Equal, Keys::Nested, Keys::Ascending, Keys::Descending];

#[test]
fn rows_around_the_sizes_of_blocks_and_tiles() {
    fn all<K: TestKey>() {
        let slots = SLOTS * MIN_THREADS;
        let tile = items_per_thread(size_of::<K>()) * MIN_THREADS;
        let mut case = StdRng::seed_from_u64(fresh_seed()).random_range(0..1000);
        for length in [1, 2, 8, 31, 32, 33, 63, 64, 65, slots - 1, slots, slots + 1, tile - 1, tile, tile + 1, 1000] {
            for k in [1, 2, 7, 31, 32, 33, 64, 65, length - 1, length, length + 1] {
                if k == 0 || k > length + 1 {
                    continue;
                }
                case += 1;
                with_values_in_turn!(case, check_rows::<K>(KINDS[case / 3 % KINDS.len()], (5, length), k));
            }
        }
    }
    all::<f32>();
    all::<i64>();
}

#[test]
fn every_type_of_keys() {
    fn all<K: TestKey>() {
        for (case, keys) in KINDS.into_iter().enumerate() {
            with_values_in_turn!(case, check_rows::<K>(keys, (3, 700), 40));
        }
    }
    for_all_types!(all());
}

#[test]
fn rows_of_several_tiles_of_the_largest_blocks() {
    fn all<K: TestKey>() {
        let tile = items_per_thread(size_of::<K>()) * MAX_THREADS;
        for (case, keys) in KINDS.into_iter().enumerate() {
            for (i, length) in [tile - 1, tile, tile + 1, 2 * tile + 77].into_iter().enumerate() {
                let k = [1, 64, 300, 1023, MAX_K - 1, MAX_K][(case + i) % 6];
                with_values_in_turn!(case + i, check_rows::<K>(keys, (2, length), k));
            }
        }
    }
    all::<u32>();
    all::<f64>();
}

#[test]
fn keys_that_fill_the_buffer_again_and_again() {
    // Each tile has keys before all earlier ones. At times they are equal within a tile.
    let seed = fresh_seed();
    let tile = items_per_thread(4) * MAX_THREADS;
    for (shift, k) in [(0, 1000), (13, 1000), (13, MAX_K), (6, 700)] {
        let keys: Vec<u32> = (0..5 * tile as u32).map(|i| !i >> shift).collect();
        let order = KeyOrder { direction: SortOrder::Ascending, nans: NanOrder::Total };
        let (lengths, by) = ([keys.len()], By::Length(keys.len()));
        let case = Case { lengths: &lengths, by, k, with: With::Indices, order };
        check_case::<u32, u32>(&keys, case, seed);
    }
}

#[test]
fn keys_of_late_tiles_just_below_the_bound() {
    // The first tile's keys are the bound. The second tile lowers it no further.
    let seed = fresh_seed();
    let tile = items_per_thread(4) * MAX_THREADS;
    let mut keys = [vec![10u32; tile], vec![20; tile], vec![10; tile]].concat();
    for i in [0, 77, tile - 1] {
        keys[2 * tile + i] = 9;
    }
    let order = KeyOrder { direction: SortOrder::Ascending, nans: NanOrder::Total };
    for k in [2, 3, 64, 600] {
        let (lengths, by) = ([keys.len()], By::Offsets);
        check_case::<u32, u64>(&keys, Case { lengths: &lengths, by, k, with: With::Indices, order }, seed);
    }
}

#[test]
fn keys_with_one_far_from_the_others() {
    // All others are in one bin of the range.
    let seed = fresh_seed();
    for (far, order) in [(0, SortOrder::Ascending), (u64::MAX, SortOrder::Descending)] {
        let mut keys: Vec<u64> = Keys::Any.random::<u64>(6000, seed).iter().map(|key| (1 << 40) + key % 5000).collect();
        keys[2000] = far;
        let order = KeyOrder { direction: order, nans: NanOrder::Total };
        for k in [70, 500, 1500] {
            let case = Case { lengths: &[6000], by: By::Offsets, k, with: With::Indices, order };
            check_case::<u64, u32>(&keys, case, seed);
        }
    }
}

#[test]
fn segments_of_any_lengths() {
    fn all<K: TestKey>() {
        let mut random = fresh_random();
        let mut up_to =
            |most: usize, count: usize| -> Vec<usize> { (0..count).map(|_| random.random_range(0..=most)).collect() };
        let lists = [
            vec![],
            vec![0; 10],
            vec![0, 0, 5, 0, 1],
            up_to(9, 300),
            up_to(100, 100),
            up_to(3000, 20),
            [vec![0; 50], vec![7000], vec![0; 50], vec![3]].concat(),
        ];
        for (case, lengths) in lists.iter().enumerate() {
            for (i, k) in [1, 8, 50, 900].into_iter().enumerate() {
                with_values_in_turn!(case + i, check::<K>(KINDS[(case + i) % 4], lengths, By::Offsets, k));
            }
        }
    }
    all::<f32>();
    all::<u64>();
}

#[test]
fn the_last_row_may_be_shorter() {
    for (n, length, k) in [(1001, 100, 7), (1001, 100, 100), (20, 64, 30), (3005, 1000, 5)] {
        let lengths: Vec<usize> = (0..n).step_by(length).map(|begin| length.min(n - begin)).collect();
        check::<i32, u32>(Keys::Few, &lengths, By::Length(length), k);
        check::<i64, ()>(Keys::Any, &lengths, By::Length(length), k);
    }
}

#[test]
fn few_segments_are_divided_into_parts() {
    let selects = |device: &Device| device.launched().iter().filter(|(kernel, _)| *kernel == "select_segments").count();
    let long = 40_000;
    for (case, keys) in KINDS.into_iter().enumerate() {
        let k = [1, 50, 64, 500][case % 4];
        // The emulator decides at random that the device has room for a single block.
        let device = check_rows::<u32, u32>(keys, (1, long), k);
        assert!((1..=2).contains(&selects(&device)));
        check_rows::<f64, ()>(keys, (2, long), k);
        // Parts of long segments only.
        check::<f32, u64>(keys, &[0, 17, long, 5], By::Offsets, k);
    }
}

#[test]
fn many_of_each_segment_are_sorted() {
    let k = MAX_K + 1;
    for (case, keys) in [Keys::Any, Keys::Few].into_iter().enumerate() {
        with_values_in_turn!(case, check_rows::<u32>(keys, (3, 5000), k));
        with_values_in_turn!(case + 1, check_rows::<u32>(keys, (3, 2500), 2500));
        let device = check::<u64, u32>(keys, &[0, 3000, 17, 9], By::Offsets, k);
        assert!(device.kernels().contains("copy_firsts"));
    }
}

#[test]
fn floats_that_are_no_numbers_and_both_zeros() {
    let seed = fresh_seed();
    let keys = odd_floats(3000, &mut StdRng::seed_from_u64(seed));
    for direction in [SortOrder::Ascending, SortOrder::Descending] {
        for nans in [NanOrder::Total, NanOrder::Last, NanOrder::First] {
            let order = KeyOrder { direction, nans };
            let case = Case { lengths: &[1000; 3], by: By::Length(1000), k: 300, with: With::Indices, order };
            check_case::<f32, u32>(&keys, case, seed);
        }
    }
}
