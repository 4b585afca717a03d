//! Merges of the runs of an array into another one, against the standard library's stable sort.

use super::super::many_runs;
use super::keys::*;
use super::*;
use crate::key_order::KeyOrder;
use kernels_gpu::kernels::sort::merge_pass::many_runs::keys_of_tile;
use kernels_gpu::tuning;

/// Offsets of runs of the given lengths.
pub(super) fn offsets_of(lengths: &[usize]) -> Vec<usize> {
    let mut offsets = vec![0];
    offsets.extend(lengths.iter().scan(0, |end, length| {
        *end += length;
        Some(*end)
    }));
    offsets
}

/// Merges runs of `input` of the given lengths on a new device. Returns the device, and the keys and values that the
/// merge has written. Checks that input and offsets are unchanged.
fn merge<K: TestKey, V: Word>(input: &[K], lengths: &[usize], order: KeyOrder, seed: u64) -> (Device, Vec<K>, Vec<V>) {
    let (device, n, value_bytes) = (Device::new(seed), input.len(), size_of::<V>());
    let (keys, to, offsets) = (device.array(input), device.uninit::<K>(n), device.array(&offsets_of(lengths)));
    let values_of = if value_bytes > 0 { n } else { 0 };
    let values: Vec<V> = (0..values_of as u64).map(|i| V::from_register(3 * i)).collect();
    let (from_values, to_values) = (device.array(&values), device.uninit::<V>(values_of));
    let arrays = |keys, values| Arrays { keys: address(keys), values: address(values), len: n, value_bytes };
    let (from, out) = (arrays(keys, from_values), arrays(to, to_values));
    let workspace = device.workspace(many_runs::workspace_bytes::<K>(n, lengths.len(), value_bytes));
    let runs = (address(offsets), lengths.len());
    // SAFETY: the arrays are as long as they are said to be, and the emulator checks accesses.
    unsafe { many_runs::merge_many_runs::<K>(&device.queue(), order, from, runs, out, workspace) }
        .expect("the emulator launches all");
    assert!(raw_bits(&device.read(keys)) == raw_bits(input), "the keys were written");
    assert!(raw_bits(&device.read(from_values)) == raw_bits(&values), "the values were written");
    assert_eq!(device.read(offsets), offsets_of(lengths), "the offsets were written");
    let (merged, values) = (device.read(to), device.read(to_values));
    (device, merged, values)
}

/// Sorts each run of `input`, merges them on a new device, and compares.
fn check_keys<K: TestKey, V: Word>(mut input: Vec<K>, lengths: &[usize], seed: u64) -> Device {
    let order = order_of(seed);
    let compare = |a: &K, b: &K| a.compare_in(b, order);
    for ends in offsets_of(lengths).windows(2) {
        input[ends[0]..ends[1]].sort_by(compare);
    }
    let (device, merged, values) = merge::<K, V>(&input, lengths, order, seed);
    let mut expected: Vec<usize> = (0..input.len()).collect();
    expected.sort_by(|&i, &j| compare(&input[i], &input[j]));
    let what = || {
        let (name, count) = (<K as crate::Key>::NAME, lengths.len());
        format!("{} {name} in {count} runs, {order:?}, values of {} bytes, seed {seed}", input.len(), size_of::<V>())
    };
    let sorted: Vec<K> = expected.iter().map(|&i| input[i]).collect();
    assert!(raw_bits(&merged) == raw_bits(&sorted), "keys: {}", what());
    if size_of::<V>() > 0 {
        let expected = expected.into_iter().map(|i| 3 * i as u64);
        assert!(values.iter().map(|value| value.to_register()).eq(expected), "values: {}", what());
    }
    device
}

/// Merges random keys in runs of the given lengths, alone and with values of both widths.
fn check<K: TestKey>(keys: Keys, lengths: &[usize]) {
    fn one<K: TestKey, V: Word>(keys: Keys, lengths: &[usize]) {
        let seed = fresh_seed();
        check_keys::<K, V>(keys.random(lengths.iter().sum(), seed), lengths, seed);
    }
    one::<K, ()>(keys, lengths);
    one::<K, u32>(keys, lengths);
    one::<K, u64>(keys, lengths);
}

/// `count` lengths of about `n` keys together. Every fifth length is 0.
pub(super) fn any_lengths(count: usize, n: usize) -> Vec<usize> {
    let mut random = StdRng::seed_from_u64(fresh_seed());
    let length = |i| if i % 5 == 3 { 0 } else { random.random_range(0..=2 * n / count) };
    (0..count).map(length).collect()
}

#[test]
fn any_number_of_runs_of_any_lengths() {
    fn of<K: TestKey>(counts: &[usize]) {
        let tile = keys_of_tile(size_of::<K>(), 0, 2) as usize;
        check::<K>(Keys::Any, &[]);
        for &count in counts {
            check::<K>(Keys::Any, &any_lengths(count, 3 * tile));
            check::<K>(Keys::Few, &any_lengths(count, tile));
            check::<K>(Keys::Ends, &any_lengths(count, tile));
        }
    }
    for_all_types!(of(&[2, 5, 33]));
    of::<u32>(&[1, 3, 4, 16, 31, 32, 100, 1025]);
    of::<f64>(&[1, 3, 4, 16, 31, 32, 100]);
}

#[test]
fn lengths_around_those_of_tiles() {
    fn all<K: TestKey>() {
        for value_bytes in [0, 4, 8] {
            for k in [2u32, 4, 16] {
                let tile = match (k, value_bytes) {
                    (2, _) => tuning::merge(size_of::<K>(), value_bytes).keys(),
                    _ => keys_of_tile(size_of::<K>(), value_bytes, k) as usize,
                };
                for total in [tile - 1, tile, tile + 1, 2 * tile] {
                    // The first run has the remaining keys.
                    let mut lengths = vec![total / 20; k as usize];
                    lengths[0] = total - total / 20 * (k as usize - 1);
                    check::<K>(Keys::Any, &lengths);
                }
            }
        }
    }
    all::<f32>();
    all::<u64>();
}

#[test]
fn empty_runs_and_one_long_run_among_them() {
    fn all<K: TestKey>() {
        let long = 2 * keys_of_tile(size_of::<K>(), 0, 2) as usize + 5;
        for count in [1, 2, 31, 33, 1025] {
            check::<K>(Keys::Any, &vec![0; count]);
            for at in [0, count / 2, count - 1] {
                let mut lengths = vec![0; count];
                lengths[at] = long;
                check::<K>(Keys::Any, &lengths);
                // And a run of a single key.
                lengths[(at + 7) % count] += 1;
                check::<K>(Keys::Few, &lengths);
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
        for count in [1, 2, 3, 7, 32, 50] {
            check::<K>(Keys::Equal, &any_lengths(count, 2 * tile));
        }
    }
    for_all_types!(all());
}

/// Keys with an order that only their bits define: NaNs of both signs, zeros of both signs, and infinities.
#[test]
fn odd_floats_stay_exact() {
    fn all<V: Word>() {
        let odd = [f32::NAN, -f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, 1.5];
        for count in [2, 5, 20, 40] {
            let seed = fresh_seed();
            let mut random = StdRng::seed_from_u64(seed);
            let lengths = any_lengths(count, 20_000);
            let input = (0..lengths.iter().sum()).map(|_| odd[random.random_range(0..odd.len())]).collect();
            check_keys::<f32, V>(input, &lengths, seed);
        }
    }
    all::<()>();
    all::<u32>();
    all::<u64>();
}

/// Runs that do not overlap, in the order of their keys and in the opposite one: a tile has segments of one or two
/// runs.
#[test]
fn runs_that_do_not_overlap() {
    fn all<K: TestKey, V: Word>() {
        for count in [2, 6, 32, 70] {
            let seed = fresh_seed();
            let lengths = any_lengths(count, 30_000);
            let mut input = Keys::Any.random::<K>(lengths.iter().sum(), seed);
            input.sort_by(K::compare);
            check_keys::<K, V>(input.clone(), &lengths, seed);
            check_keys::<K, V>(input.clone(), &lengths, seed ^ 1);
        }
    }
    all::<u32, ()>();
    all::<u64, u32>();
    all::<f32, u32>();
}

/// One pass reads each key where the user has it, and writes it to its place in `out`.
#[test]
fn up_to_32_runs_are_merged_without_a_copy() {
    for (count, launches) in [(1, 2), (2, 2), (4, 2), (32, 2), (33, 4), (1024, 4), (1025, 6)] {
        let seed = fresh_seed();
        let lengths = vec![40; count];
        let device = check_keys::<u32, ()>(Keys::Any.random(40 * count, seed), &lengths, seed);
        assert_eq!(device.launched.borrow().len(), launches, "{count} runs");
        assert_eq!(device.kernels().contains("merge_two_runs"), count <= 2, "{count} runs");
    }
}

/// The content of `out` is then unspecified, but all accesses are inside the arrays, and each key of `out` is written.
#[test]
fn runs_that_are_not_sorted_do_no_harm() {
    fn all<K: TestKey, V: Word>() {
        for (keys, count) in [(Keys::Any, 2), (Keys::Descending, 9), (Keys::Any, 32), (Keys::Few, 32), (Keys::Any, 40)]
        {
            let seed = fresh_seed();
            let lengths = any_lengths(count, 60_000);
            let input = keys.random::<K>(lengths.iter().sum(), seed);
            let (_, merged, _) = merge::<K, V>(&input, &lengths, KeyOrder::ASCENDING, seed);
            assert_eq!(merged.len(), input.len());
        }
    }
    all::<u32, ()>();
    all::<f64, ()>();
    all::<u32, u32>();
    all::<u32, u64>();
    all::<u64, u64>();
}
