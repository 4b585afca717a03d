//! Merges of two runs, of batches and of many runs, against the standard library's stable sort.

use super::super::{batch, merge};
use super::keys::*;
use super::*;
use crate::{BatchKernel, MergeKernel, NanOrder};
use kernels_gpu::textbook::merge_small;
use kernels_gpu::tuning;

/// Values that tell their origin: A or B.
fn values<V: Word>(first: usize, len: usize) -> Vec<V> {
    (first..first + len).map(|i| V::from_register(3 * i as u64)).collect()
}

/// Keys in the device's memory, with values unless `V` has no bytes.
#[derive(Clone, Copy)]
struct Pairs<K, V> {
    keys: Buffer<K>,
    values: Buffer<V>,
}

impl<K: TestKey, V: Word> Pairs<K, V> {
    /// A copy of `keys`, with values that count on from `first`.
    fn of(device: &Device, keys: &[K], first: usize) -> Self {
        let len = if size_of::<V>() > 0 { keys.len() } else { 0 };
        Self { keys: device.array(keys), values: device.array(&values::<V>(first, len)) }
    }

    fn uninit(device: &Device, len: usize) -> Self {
        Self { keys: device.uninit(len), values: device.uninit(if size_of::<V>() > 0 { len } else { 0 }) }
    }

    fn arrays(self) -> Arrays {
        let (keys, values) = (address(self.keys), address(self.values));
        Arrays { keys, values, len: self.keys.len(), value_bytes: size_of::<V>() }
    }

    /// Compares with the keys of `input` at the indices of each entry of `merged`, sorted, and with their values.
    fn check(self, device: &Device, input: &[K], merged: &[Vec<usize>], what: &str) {
        self.check_with(device, input, merged, NanOrder::Total, what);
    }

    /// [`check`](Self::check) with that order of NaNs.
    fn check_with(self, device: &Device, input: &[K], merged: &[Vec<usize>], nans: NanOrder, what: &str) {
        let what =
            || format!("{} {what}, values of {} bytes, seed {}", <K as crate::Key>::NAME, size_of::<V>(), device.seed);
        let mut from = Vec::with_capacity(input.len());
        for indices in merged {
            let mut indices = indices.clone();
            indices.sort_by(|&i, &j| input[i].compare_with(&input[j], nans));
            from.extend(indices);
        }
        let expected: Vec<K> = from.iter().map(|&i| input[i]).collect();
        assert!(raw_bits(&device.read(self.keys)) == raw_bits(&expected), "keys: {}", what());
        if size_of::<V>() > 0 {
            let expected: Vec<V> = from.iter().map(|&i| V::from_register(3 * i as u64)).collect();
            assert!(raw_bits(&device.read(self.values)) == raw_bits(&expected), "values: {}", what());
        }
    }
}

/// Keys in ascending runs of the given lengths.
fn in_runs<K: TestKey>(keys: Keys, lengths: &[usize], seed: u64) -> Vec<K> {
    in_runs_with(NanOrder::Total, keys, lengths, seed)
}

/// [`in_runs`] with that order of NaNs.
fn in_runs_with<K: TestKey>(nans: NanOrder, keys: Keys, lengths: &[usize], seed: u64) -> Vec<K> {
    let mut begin = 0;
    let mut keys: Vec<K> = keys.random(lengths.iter().sum(), seed);
    for length in lengths {
        keys[begin..begin + length].sort_by(|a, b| a.compare_with(b, nans));
        begin += length;
    }
    keys
}

/// Merges two runs of `m` and `n` keys by the given kernel.
fn check_merge<K: TestKey>(kernel: MergeKernel, keys: Keys, (m, n): (usize, usize)) -> Device {
    let seed = fresh_seed();
    let (device, nans) = (Device::new(seed), NanOrder::ALL[(seed % 3) as usize]);
    let input = in_runs_with::<K>(nans, keys, &[m, n], seed);
    let [a, b] = [&input[..m], &input[m..]].map(|keys| Pairs::<K, ()>::of(&device, keys, 0));
    let out = Pairs::<K, ()>::uninit(&device, m + n);
    let workspace = device.workspace(merge::workspace_bytes::<K>(kernel, m + n));
    let (queue, to) = (device.queue(), address(out.keys));
    // SAFETY: the arrays are as long as they are said to be, and the emulator checks accesses.
    let merged = with_nans!(nans, Ordered => unsafe {
        merge::merge::<Ordered<K>>(&queue, kernel, a.arrays(), b.arrays(), to, workspace)
    });
    merged.expect("all is launched");
    let what = format!("{keys:?}, {m} and {n} keys by {kernel:?}, NaNs {nans}");
    out.check_with(&device, &input, &[(0..m + n).collect()], nans, &what);
    device
}

#[test]
fn two_runs_are_merged_by_every_kernel() {
    fn check<K: TestKey>() {
        let small = merge_small::MAX_KEYS;
        for kernel in MergeKernel::ALL {
            let tile = match kernel {
                MergeKernel::Auto => tuning::fused(size_of::<K>()).keys(),
                MergeKernel::MergePath => tuning::merge(size_of::<K>(), 0).keys(),
                MergeKernel::Basic | MergeKernel::Tiled | MergeKernel::Circular => 2048,
            };
            let around = [small, tile, 3 * tile].into_iter().flat_map(|total| [total - 1, total, total + 1]);
            for total in [0, 1, 2].into_iter().chain(around) {
                for (keys, m) in [
                    (Keys::Any, total / 3),
                    (Keys::Few, total / 2),
                    (Keys::Ends, total / 2),
                    (Keys::Any, total),
                    (Keys::Any, 0),
                ] {
                    let device = check_merge::<K>(kernel, keys, (m, total - m));
                    let expected = match kernel {
                        _ if total == 0 => HashSet::new(),
                        MergeKernel::Auto if total <= small => HashSet::from(["merge_small"]),
                        MergeKernel::Auto => HashSet::from(["merge_fused"]),
                        MergeKernel::MergePath => HashSet::from(["path_big", "merge_big"]),
                        MergeKernel::Basic => HashSet::from(["merge_basic"]),
                        MergeKernel::Tiled => HashSet::from(["merge_tiled"]),
                        MergeKernel::Circular => HashSet::from(["merge_circular"]),
                    };
                    assert_eq!(device.kernels(), expected);
                }
            }
        }
    }
    for_all_types!(check());
}

#[test]
fn two_runs_with_values_are_merged() {
    fn check<K: TestKey, V: Word>() {
        let tile = tuning::indexed(size_of::<K>()).keys();
        for total in [0, 1, 2, tile - 1, tile, tile + 1, 3 * tile + 1] {
            for (keys, m) in [(Keys::Any, total / 3), (Keys::Few, total / 2), (Keys::Equal, total - total / 3)] {
                let seed = fresh_seed();
                let device = Device::new(seed);
                let input = in_runs::<K>(keys, &[m, total - m], seed);
                let (a, b) = (Pairs::<K, V>::of(&device, &input[..m], 0), Pairs::<K, V>::of(&device, &input[m..], m));
                let out = Pairs::<K, V>::uninit(&device, total);
                let workspace = device.workspace(merge::pairs_workspace_bytes::<K>(total));
                let queue = device.queue();
                // SAFETY: the arrays are as long as they are said to be, and the emulator checks accesses.
                unsafe { merge::merge_pairs::<K>(&queue, a.arrays(), b.arrays(), out.arrays(), workspace) }
                    .expect("all is launched");
                out.check(&device, &input, &[(0..total).collect()], &format!("{keys:?}, {m} of {total} keys"));
            }
        }
    }
    for_all_types!(both_values());
    fn both_values<K: TestKey>() {
        check::<K, u32>();
        check::<K, u64>();
    }
}

/// The keys of a batch: all keys of A, then all keys of B. Also the number of keys of A, and the indices of each
/// problem's keys.
fn batch_of<K: TestKey>(keys: Keys, lengths: &[(usize, usize)], seed: u64) -> (Vec<K>, usize, Vec<Vec<usize>>) {
    let all: Vec<usize> = lengths.iter().map(|&(a, _)| a).chain(lengths.iter().map(|&(_, b)| b)).collect();
    let of_a = lengths.iter().map(|&(a, _)| a).sum();
    let (mut a, mut b) = (0, of_a);
    let problems = lengths.iter().map(|&(m, n)| {
        let indices = (a..a + m).chain(b..b + n).collect();
        (a, b) = (a + m, b + n);
        indices
    });
    let problems = problems.collect();
    (in_runs(keys, &all, seed), of_a, problems)
}

#[test]
fn batches_are_merged_by_every_kernel_and_with_values() {
    fn check<K: TestKey, V: Word>(kernel: BatchKernel, keys: Keys, lengths: batch::Lengths) {
        let seed = fresh_seed();
        let device = Device::new(seed);
        let batch::Lengths { problems, d, a_len } = lengths;
        let (input, of_a, merged) = batch_of::<K>(keys, &vec![(a_len, d - a_len); problems], seed);
        let (a, b) = (Pairs::<K, V>::of(&device, &input[..of_a], 0), Pairs::<K, V>::of(&device, &input[of_a..], of_a));
        let (out, queue) = (Pairs::<K, V>::uninit(&device, input.len()), device.queue());
        // SAFETY: the arrays are as long as they are said to be, and the emulator checks accesses.
        let queued = unsafe {
            if size_of::<V>() > 0 {
                batch::merge_batch_pairs::<K>(&queue, [a, b, out].map(Pairs::arrays), lengths)
            } else {
                batch::merge_batch::<K>(&queue, kernel, [a, b, out].map(|array| address(array.keys)), lengths)
            }
        };
        queued.expect("all is launched");
        out.check(&device, &input, &merged, &format!("{keys:?}, {problems} problems of {a_len} of {d} by {kernel:?}"));
    }
    fn all<K: TestKey>() {
        for (problems, d) in [(0, 10), (1, 1), (1, 1024), (7, 1000), (100, 2), (33, 255), (10, 257), (1000, 13)] {
            for a_len in [0, d / 2, d] {
                let lengths = batch::Lengths { problems, d, a_len };
                for kernel in BatchKernel::ALL {
                    check::<K, ()>(kernel, Keys::Any, lengths);
                }
                check::<K, u32>(BatchKernel::Auto, Keys::Few, lengths);
                check::<K, u64>(BatchKernel::Auto, Keys::Any, lengths);
            }
        }
    }
    for_all_types!(all());
}

#[test]
fn batches_of_any_lengths_are_merged() {
    fn check<K: TestKey, V: Word>(keys: Keys, lengths: &[(usize, usize)], what: &str) {
        let seed = fresh_seed();
        let device = Device::new(seed);
        let (input, of_a, merged) = batch_of::<K>(keys, lengths, seed);
        let (a, b) = (Pairs::<K, V>::of(&device, &input[..of_a], 0), Pairs::<K, V>::of(&device, &input[of_a..], of_a));
        let offsets = |length: fn(&(usize, usize)) -> usize| {
            let ends = lengths.iter().scan(0, |end, lengths| {
                *end += length(lengths);
                Some(*end)
            });
            address(device.array(&std::iter::once(0).chain(ends).collect::<Vec<usize>>()))
        };
        let (a_offsets, b_offsets) = (offsets(|lengths| lengths.0), offsets(|lengths| lengths.1));
        let out = Pairs::<K, V>::uninit(&device, input.len());
        let workspace = device.workspace(batch::ragged_workspace_bytes::<K>(input.len()));
        let (queue, a, b) = (device.queue(), (a.arrays(), a_offsets), (b.arrays(), b_offsets));
        // SAFETY: the arrays are as long as they are said to be, and the emulator checks accesses.
        unsafe { batch::merge_ragged::<K>(&queue, a, b, lengths.len(), out.arrays(), workspace) }
            .expect("all is launched");
        out.check(&device, &input, &merged, &format!("{keys:?}, {what}"));
    }
    fn all<K: TestKey>() {
        let mut random = StdRng::seed_from_u64(fresh_seed());
        let tile = tuning::ragged(size_of::<K>()).keys();
        let mut length = |most: usize| random.random_range(0..=most);
        let any: Vec<(usize, usize)> = (0..300).map(|_| (length(40), length(40))).collect();
        let batches = [
            ("none", vec![]),
            ("empty ones", vec![(0, 0); 10]),
            ("one tile less a key", vec![(tile / 2, tile - tile / 2 - 1)]),
            ("one tile", vec![(1, tile - 1)]),
            ("one tile and a key", vec![(tile, 1)]),
            ("a long one among short ones", vec![(3, 4), (2 * tile, tile), (0, 0), (5, 0)]),
            ("any lengths", any),
        ];
        for (what, lengths) in batches {
            for keys in [Keys::Any, Keys::Few] {
                check::<K, ()>(keys, &lengths, what);
                check::<K, u32>(keys, &lengths, what);
                check::<K, u64>(keys, &lengths, what);
            }
        }
    }
    for_all_types!(all());
}

#[test]
fn runs_are_merged_two_by_two() {
    fn check<K: TestKey, V: Word>(keys: Keys, lengths: &[usize]) {
        let seed = fresh_seed();
        let input = in_runs::<K>(keys, lengths, seed);
        let (n, what) = (input.len(), format!("{keys:?}, {} runs", lengths.len()));
        let device = Device::new(seed);
        let (from, to) = (Pairs::<K, V>::of(&device, &input, 0), Pairs::<K, V>::uninit(&device, n));
        device.run::<K>(&merge::MergeTree { lengths, from: from.arrays(), to: to.arrays() });
        let ends_in_to = merge::MergeTree::ends_in_to(lengths.len());
        if ends_in_to { to } else { from }.check(&device, &input, &[(0..n).collect()], &what);
    }
    fn all<K: TestKey>() {
        for lengths in
            [vec![100], vec![1, 5000], vec![3000; 5], vec![700; 32], vec![400; 33], vec![9, 8000, 1, 1, 7000]]
        {
            check::<K, ()>(Keys::Any, &lengths);
            check::<K, u32>(Keys::Few, &lengths);
            check::<K, u64>(Keys::Any, &lengths);
        }
    }
    for_all_types!(all());
}
