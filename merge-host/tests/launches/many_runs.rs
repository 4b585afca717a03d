//! Merges of the runs of an array into another one, against the standard library's stable sort.

use crate::common::*;
use cuda_std::Word;
use kernels_gpu::kernels::sort::merge_pass::many_runs::keys_of_tile;
use kernels_gpu::tuning;
use merge_host::launches::KeyOrder;
use merge_host::launches::emulated::{Device, address};
use merge_host::launches::many_runs::MergeMany;
use rand::Rng;

/// Merges runs of `input` of the given lengths on a new device. Checks that input and offsets are unchanged.
fn merge<K: TestKey, V: Word>(input: &[K], lengths: &[usize], order: KeyOrder, seed: u64) -> (Device, Pairs<K, V>) {
    let device = Device::new(seed);
    let (from, out) = (Pairs::<K, V>::of(&device, input, 0), Pairs::uninit(&device, input.len()));
    let offsets = device.array(&offsets_of(lengths));
    let runs = (address(offsets), lengths.len());
    device.run(&MergeMany {
        coding: order.coding::<K>().into(),
        from: from.arrays(),
        offsets: runs,
        out: out.arrays(),
    });
    let all: Vec<usize> = (0..input.len()).collect();
    from.check(&device, input, &all, &|| format!("input of a merge of {} runs", lengths.len()));
    assert_eq!(device.read(offsets), offsets_of(lengths), "the offsets were written");
    (device, out)
}

/// Sorts each run of `input`, merges them on a new device, and compares.
fn check_keys<K: TestKey, V: Word>(input: &[K], lengths: &[usize], seed: u64) -> Device {
    let order = order_of(seed);
    let input: Vec<K> = sorted_segments(input, order, &offsets_of(lengths)).into_iter().map(|i| input[i]).collect();
    let (device, out) = merge::<K, V>(&input, lengths, order, seed);
    let expected = sorted_segments(&input, order, &[0, input.len()]);
    out.check(&device, &input, &expected, &|| format!("{} keys in {} runs, {order:?}", input.len(), lengths.len()));
    device
}

/// Merges random keys in runs of the given lengths, with values of type `V`.
fn check_one<K: TestKey, V: Word>(keys: Keys, lengths: &[usize]) {
    let seed = fresh_seed();
    check_keys::<K, V>(&keys.random(lengths.iter().sum(), seed), lengths, seed);
}

/// Merges random keys in runs of the given lengths, alone and with values of both widths.
fn check<K: TestKey>(keys: Keys, lengths: &[usize]) {
    with_all_values!(check_one::<K>(keys, lengths));
}

/// `count` lengths of about `n` keys together. Every fifth length is 0.
pub fn any_lengths(count: usize, n: usize) -> Vec<usize> {
    let mut random = fresh_random();
    let length = |i| if i % 5 == 3 { 0 } else { random.random_range(0..=2 * n / count) };
    (0..count).map(length).collect()
}

#[test]
fn any_number_of_runs_of_any_lengths() {
    fn of<K: TestKey>(counts: &[usize]) {
        let tile = keys_of_tile(size_of::<K>(), 0, 2) as usize;
        check::<K>(Keys::Any, &[]);
        for (case, &count) in counts.iter().enumerate() {
            with_values_in_turn!(case, check_one::<K>(Keys::Any, &any_lengths(count, 3 * tile)));
            with_values_in_turn!(case + 1, check_one::<K>(Keys::Few, &any_lengths(count, tile)));
        }
    }
    for_all_types!(of(&[5]));
    of::<u32>(&[1, 2, 3, 4, 16, 31, 32, 33, 100, 1025]);
    of::<f64>(&[1, 2, 3, 4, 16, 31, 32, 33, 100]);
}

#[test]
fn lengths_around_those_of_tiles() {
    fn all<K: TestKey, V: Word>() {
        for k in [2u32, 4, 16] {
            let tile = match k {
                2 => tuning::merge(size_of::<K>(), size_of::<V>()).keys(),
                _ => keys_of_tile(size_of::<K>(), size_of::<V>(), k) as usize,
            };
            for total in [tile - 1, tile, tile + 1, 2 * tile] {
                // The first run has the remaining keys.
                let mut lengths = vec![total / 20; k as usize];
                lengths[0] = total - total / 20 * (k as usize - 1);
                check_one::<K, V>(Keys::Any, &lengths);
            }
        }
    }
    with_all_values!(all::<f32>());
    with_all_values!(all::<u64>());
}

#[test]
fn empty_runs_and_one_long_run_among_them() {
    fn all<K: TestKey>() {
        let long = 2 * keys_of_tile(size_of::<K>(), 0, 2) as usize + 5;
        for (i, count) in [1, 2, 31, 33, 1025].into_iter().enumerate() {
            check::<K>(Keys::Any, &vec![0; count]);
            for (j, at) in [0, count / 2, count - 1].into_iter().enumerate() {
                let mut lengths = vec![0; count];
                lengths[at] = long;
                with_values_in_turn!(i + j, check_one::<K>(Keys::Any, &lengths));
                // And a run of a single key.
                lengths[(at + 7) % count] += 1;
                with_values_in_turn!(i + j + 1, check_one::<K>(Keys::Few, &lengths));
            }
        }
        // Groups of a pass that end where a tile does, and empty groups between them.
        let tile = keys_of_tile(size_of::<K>(), 0, 8) as usize;
        let mut lengths = vec![0; 100];
        (lengths[3], lengths[12], lengths[13], lengths[90]) = (tile, tile - 1, 1, 2 * tile);
        check::<K>(Keys::Any, &lengths);
    }
    all::<i32>();
    all::<f64>();
}

#[test]
fn equal_keys_stay_in_the_order_of_their_runs() {
    fn all<K: TestKey>() {
        let tile = keys_of_tile(size_of::<K>(), 0, 2) as usize;
        for (case, count) in [1, 2, 3, 7, 32, 50].into_iter().enumerate() {
            if takes_turn::<K>(case) {
                check::<K>(Keys::Equal, &any_lengths(count, 2 * tile));
            }
        }
    }
    for_all_types!(all());
}

#[test]
fn odd_floats_stay_exact() {
    fn all<V: Word>() {
        for count in [2, 5, 20, 40] {
            let lengths = any_lengths(count, 20_000);
            let input = odd_floats(lengths.iter().sum(), &mut fresh_random());
            check_keys::<f32, V>(&input, &lengths, fresh_seed());
        }
    }
    with_all_values!(all());
}

/// Runs that do not overlap, in the order of their keys and in the opposite one: a tile has segments of one or two
/// runs.
#[test]
fn runs_that_do_not_overlap() {
    fn all<K: TestKey, V: Word>() {
        for count in [2, 6, 32, 70] {
            let (seed, lengths) = (fresh_seed(), any_lengths(count, 30_000));
            let input = Keys::Any.in_runs::<K>(&[lengths.iter().sum()], KeyOrder::ASCENDING, seed);
            check_keys::<K, V>(&input, &lengths, seed);
            check_keys::<K, V>(&input, &lengths, seed ^ 1);
        }
    }
    all::<u32, ()>();
    all::<u64, u32>();
    all::<f32, u32>();
}

/// One pass reads each key where the user has it, and writes it to its place in `out`.
#[test]
fn up_to_32_runs_are_merged_without_a_copy() {
    // A single run is not merged: the only copy.
    for (count, launches) in [(1, 0), (2, 2), (4, 2), (32, 2), (33, 4), (1024, 4), (1025, 6)] {
        let seed = fresh_seed();
        let device = check_keys::<u32, ()>(&Keys::Any.random(40 * count, seed), &vec![40; count], seed);
        assert_eq!(device.launched().len(), launches, "{count} runs");
        assert_eq!(device.kernels().contains("merge_big"), count == 2, "{count} runs");
    }
}

/// The content of `out` is then unspecified, but all accesses are inside the arrays, and each key of `out` is written.
#[test]
fn runs_that_are_not_sorted_do_no_harm() {
    fn all<K: TestKey, V: Word>() {
        for (keys, count) in [(Keys::Any, 2), (Keys::Descending, 9), (Keys::Any, 32), (Keys::Few, 32), (Keys::Any, 40)]
        {
            let (seed, lengths) = (fresh_seed(), any_lengths(count, 60_000));
            let input = keys.random::<K>(lengths.iter().sum(), seed);
            let (device, out) = merge::<K, V>(&input, &lengths, KeyOrder::ASCENDING, seed);
            // Uninitialised elements would be reported.
            assert_eq!(device.read(out.keys).len(), input.len());
            device.read(out.values);
        }
    }
    all::<u32, ()>();
    all::<f64, ()>();
    all::<u32, u32>();
    all::<u32, u64>();
    all::<u64, u64>();
}
