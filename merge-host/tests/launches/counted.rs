//! Sorts and merges of the first elements of arrays, whose number only the device knows. Groups of equal keys and sets
//! of such elements are tested beside the others, in `groups` and `sets`.

use crate::common::*;
use cuda_std::Word;
use cuda_std::emulator::Buffer;
use kernels_gpu::key::Width;
use kernels_gpu::tuning;
use merge_host::launches::emulated::{Device, address};
use merge_host::launches::merge::Merge;
use merge_host::launches::sort::Sort;
use merge_host::launches::{Arrays, KeyOrder, Thresholds};
use merge_host::{MergeKernel, SortKernel};
use std::collections::HashSet;

/// The first keys of an array and their values, as an operation gets them: more elements than the count says.
fn counted<K: TestKey, V: Word>(pairs: Pairs<K, V>, count: Buffer<u64>) -> Arrays {
    Arrays { count: address(count), ..pairs.arrays() }
}

/// Sorts the first `count` of `n` keys.
fn check_sort<K: TestKey, V: Word>(kernel: SortKernel, keys: Keys, n: usize, count: u64) -> HashSet<&'static str> {
    let seed = fresh_seed();
    let (device, order, with) = (Device::new(seed), order_of(seed), With::by::<V>(seed));
    let mut input = keys.random::<K>(n, seed);
    // Keys that are like the padding, which has to stay behind them.
    let coding = order.coding::<K>();
    let last = K::from_register(coding.decode(Width::MAX).to_register());
    input.iter_mut().step_by(7).for_each(|key| *key = last);
    let pairs = Pairs::<K, V>::with(&device, &input, with);
    let at = counted(pairs, device.array(&[count]));
    device.run(&Sort { kernel, coding: coding.into(), at, indexes: with == With::Indices });
    let first = input.len().min(count as usize);
    let expected = sorted_segments(&input[..first], order, &[0, first]);
    pairs.check(&device, &input, &expected, &|| format!("{keys:?}, {count} of {n} keys by {kernel:?} with {with:?}"));
    device.kernels()
}

#[test]
fn the_first_keys_are_sorted() {
    fn check<K: TestKey, V: Word>(case: usize) {
        let is_small = |n: usize| {
            n <= Thresholds::DEFAULT.one_block && tuning::sort_small(size_of::<K>(), size_of::<V>(), n).is_some()
        };
        for (i, n) in [1, 300, 2304, 2305, 1 << 13, (1 << 13) + 1, 20_000].into_iter().enumerate() {
            for (j, count) in [0, 1, n / 2, n - 1, n, n + 1, usize::MAX].into_iter().enumerate() {
                if !takes_turn::<K>(case + i + j) {
                    continue;
                }
                let (kernel, keys) = (SortKernel::ALL[(i + j) % 2], [Keys::Any, Keys::Few][j % 2]);
                let kernels = check_sort::<K, V>(kernel, keys, n, count as u64);
                let is_alone = kernels == HashSet::from(["sort_small"]);
                assert_eq!(is_alone, is_small(n) && kernel == SortKernel::Auto, "{n} keys by {kernel:?}: {kernels:?}");
                assert_eq!(is_alone, !kernels.contains("pad_keys"), "{kernels:?}");
            }
        }
    }
    fn all<K: TestKey>() {
        check::<K, ()>(0);
        check::<K, u32>(1);
        check::<K, u64>(2);
    }
    for_all_types!(all());
}

/// The padding is a value that half of the keys have.
#[test]
fn padded_keys_are_divided() {
    let n = Thresholds::DEFAULT.undivided[0] + 3000;
    let kernels = check_sort::<u32, ()>(SortKernel::Auto, Keys::Any, n, n as u64 / 2);
    assert!(kernels.contains("pad_keys"), "{kernels:?}");
    assert!(kernels.iter().any(|kernel| kernel.contains("divide")), "{kernels:?}");
}

/// Merges the first `m` and `n` keys of two arrays that have more, with or without values.
fn check_merge<K: TestKey, V: Word>(keys: Keys, [m, n]: [usize; 2], behind: [usize; 2], is_counted: [bool; 2]) {
    let seed = fresh_seed();
    let device = Device::new(seed);
    let input = keys.in_runs::<K>(&[m, n], KeyOrder::ASCENDING, seed);
    let run = |keys: &[K], first: usize, behind: usize, is_counted: bool| {
        let all = [keys, &Keys::Any.random::<K>(if is_counted { behind } else { 0 }, !seed)].concat();
        let pairs = Pairs::<K, V>::of(&device, &all, first);
        if is_counted { counted(pairs, device.array(&[keys.len() as u64])) } else { pairs.arrays() }
    };
    let a = run(&input[..m], 0, behind[0], is_counted[0]);
    let b = run(&input[m..], m, behind[1], is_counted[1]);
    let (out, total) = (Pairs::<K, V>::uninit(&device, a.len + b.len + 3), device.array(&[u64::MAX]));
    let (kernel, coding) = (MergeKernel::Auto, KeyOrder::ASCENDING.coding::<K>().into());
    device.run(&Merge { kernel, coding, a, b, out: counted(out, total) });
    let what = || format!("{keys:?}, {m} and {n} keys before {behind:?}, {is_counted:?}");
    assert_eq!(device.read(total), [(m + n) as u64], "{}, seed {seed}", what());
    let expected = sorted_segments(&input, KeyOrder::ASCENDING, &[0, m + n]);
    out.check(&device, &input, &expected, &what);
}

#[test]
fn the_first_keys_of_two_runs_are_merged() {
    fn check<K: TestKey, V: Word>(case: usize) {
        let tile = tuning::merge(size_of::<K>(), size_of::<V>()).keys();
        let lens = [[0, 0], [0, 1], [1, 0], [20, 30], [tile / 2, tile / 2], [tile, 0], [tile, 1], [2 * tile, tile - 1]];
        for (i, lens) in lens.into_iter().enumerate() {
            for (j, behind) in [[0, 0], [1, 0], [0, tile], [tile / 2, 3 * tile]].into_iter().enumerate() {
                if takes_turn::<K>(case + i + j) {
                    let is_counted = [[true, true], [true, false], [true, true], [false, true]][(i + j) % 4];
                    check_merge::<K, V>([Keys::Any, Keys::Few][i % 2], lens, behind, is_counted);
                }
            }
        }
    }
    fn all<K: TestKey>() {
        check::<K, ()>(0);
        check::<K, u32>(1);
        check::<K, u64>(2);
    }
    for_all_types!(all());
    // More tiles than a block of the partition has threads, of which many are empty.
    let tile = tuning::merge(4, 0).keys();
    check_merge::<u32, ()>(Keys::Any, [3 * tile, 10], [0, 150 * tile], [true, true]);
}
