//! Sorts, merges, selections and bounds of the first elements of arrays. Only the device knows their number. Groups of
//! equal keys and sets of such elements are tested beside the others, in `groups` and `sets`.

use crate::common::*;
use cuda_std::Word;
use cuda_std::emulator::Buffer;
use kernels_gpu::kernels::top_k::CHUNK_UNIT;
use kernels_gpu::key::Width;
use kernels_gpu::tuning;
use merge_host::launches::bounds::Bounds;
use merge_host::launches::emulated::{Device, address};
use merge_host::launches::merge::Merge;
use merge_host::launches::sort::Sort;
use merge_host::launches::top_k::TopK;
use merge_host::launches::{Arrays, KeyOrder, Thresholds};
use merge_host::{MergeKernel, SortKernel, SortOrder};
use rand::Rng;
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
    device.run(&Sort::new(kernel, coding.into(), at, with == With::Indices));
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

/// Selects the first `k` of the first `count` of `n` keys, in both orders.
fn check_top_k<K: TestKey, V: Word>(keys: Keys, n: usize, k: usize, count: usize) {
    for direction in [SortOrder::Ascending, SortOrder::Descending] {
        let seed = fresh_seed();
        let (device, with) = (Device::new(seed), With::by::<V>(seed));
        let order = KeyOrder { direction, ..order_of(seed) };
        let input = keys.random::<K>(n, seed);
        let from = counted(Pairs::<K, V>::of(&device, &input, 0), device.array(&[count as u64]));
        // A counted sort moves the values behind the first ones, too.
        let (out, selected) = (Pairs::<K, V>::of(&device, &vec![K::of_ordered(1); k], 0), device.array(&[u64::MAX]));
        let (from, out) = match with {
            With::Indices => (Arrays { values: 0, ..from }, out.of_indices()),
            With::Nothing | With::Values => (from, out),
        };
        device.run(&TopK { coding: order.coding::<K>().into(), from, out: counted(out, selected) });
        let first = n.min(count);
        let expected = &sorted_segments(&input[..first], order, &[0, first])[..k.min(first)];
        let what = || format!("first {k} of {count} of {n} keys, {keys:?}, {order:?} with {with:?}");
        assert_eq!(device.read(selected), [expected.len() as u64], "{}, seed {seed}", what());
        out.check(&device, &input, expected, &what);
    }
}

#[test]
fn the_first_k_of_the_first_keys_are_selected() {
    fn check<K: TestKey, V: Word>(case: usize) {
        let (mut random, kinds) = (fresh_random(), [Keys::Any, Keys::Few, Keys::Nested, Keys::Equal]);
        for (i, n) in [1, 100, CHUNK_UNIT + 1, 2 * CHUNK_UNIT + 77].into_iter().enumerate() {
            for (j, k) in [0, 1, n.min(7), n / 3, n - 1, n].into_iter().enumerate() {
                for (l, count) in [0, 1, k.max(1) - 1, k, k + 1, n - 1, n, n + 1, usize::MAX].into_iter().enumerate() {
                    // Many keys take long to emulate.
                    if takes_turn::<K>(case + i + j + l) && (n <= 100 || random.random_range(0..9) == 0) {
                        check_top_k::<K, V>(kinds[(i + j + l) % 4], n, k, count);
                    }
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
    // So many keys that candidates are gathered in one reading, if the host knows their number.
    for count in [0, 1000, 9 * CHUNK_UNIT] {
        check_top_k::<u32, u32>(Keys::Any, 9 * CHUNK_UNIT + 1234, 1000, count);
        // So many selected keys that their sort pads.
        check_top_k::<f64, u64>(Keys::Few, 2 * CHUNK_UNIT, CHUNK_UNIT + 3, count);
    }
}

/// Finds the bounds of the first `m` needles in the first `n` keys of arrays that have more.
fn check_bounds<K: TestKey, I: Word>(keys: Keys, [m, n]: [usize; 2], behind: [usize; 2], is_counted: [bool; 2]) {
    for lower in [true, false] {
        let seed = fresh_seed();
        let device = Device::new(seed);
        // Needles and keys of the same values.
        let drawn = keys.random::<K>((m + n).max(1), seed);
        let side = |i: usize, len: usize| {
            let mut sorted: Vec<K> = (0..len).map(|j| drawn[(3 * j + i) % drawn.len()]).collect();
            sorted.sort_by(K::compare);
            let more = Keys::Any.random::<K>(if is_counted[i] { behind[i] } else { 0 }, !seed);
            let pairs = Pairs::<K, ()>::of(&device, &[&sorted[..], &more].concat(), 0);
            let at = if is_counted[i] { counted(pairs, device.array(&[len as u64])) } else { pairs.arrays() };
            (sorted, at)
        };
        let ((needles, of_needles), (keys, of_keys)) = (side(0, m), side(1, n));
        // Bounds behind the first ones are kept.
        let found = device.array(&vec![I::from_register(77); of_needles.len]);
        let (coding, bounds) = (KeyOrder::ASCENDING.coding::<K>().into(), (address(found), size_of::<I>()));
        device.run(&Bounds { coding, lower, needles: of_needles, keys: of_keys, bounds });
        let bound = |needle: &K| {
            keys.partition_point(|key| if lower { key.compare(needle).is_lt() } else { key.compare(needle).is_le() })
        };
        let mut expected: Vec<u64> = needles.iter().map(|needle| bound(needle) as u64).collect();
        expected.resize(of_needles.len, 77);
        let what = format!("{m} needles in {n} keys before {behind:?}, {is_counted:?}, lower: {lower}, seed {seed}");
        assert!(raw_bits(&device.read(found)) == expected, "{} {what}", <K as merge_host::Key>::NAME);
    }
}

#[test]
fn bounds_of_the_first_needles_in_the_first_keys_are_found() {
    fn all<K: TestKey>() {
        let (tile, mut case) = (tuning::indexed(size_of::<K>()).keys(), 0..);
        // The last lengths are searched one by one.
        let lens =
            [[0, 0], [0, 1], [1, 0], [20, 30], [tile / 2, tile / 2], [tile, 1], [1, 2 * tile], [20, 640], [3, 0]];
        for (i, lens) in lens.into_iter().enumerate() {
            for behind in [[0, 0], [1, 0], [0, tile], [tile / 2, 3 * tile], [5, 100]] {
                for check in [check_bounds::<K, u32>, check_bounds::<K, u64>] {
                    if case.next().is_some_and(takes_turn::<K>) {
                        check(
                            [Keys::Any, Keys::Few][i % 2],
                            lens,
                            behind,
                            [[true, true], [true, false], [false, true]][i % 3],
                        );
                    }
                }
            }
        }
    }
    for_all_types!(all());
}
