//! Elements whose number only the GPU knows. A graph has several calls of a stream, and the standard library the
//! expected results.

use super::streams::captured;
use super::{in_process, random};
use merge_host::{
    Bound, Counted, DeviceArray, DeviceOffsets, Error, Gpu, GpuKey, GpuSortKey, Key, MergeKernel, Reduction, Segments,
    SetOperation, SortKernel, SortOptions, SortOrder, Stream, workspace,
};
use rand::Rng;
use rand::rngs::StdRng;
use tests::distribution::key;

/// Numbers of keys in arrays of `most`.
fn numbers(random: &mut StdRng, most: usize) -> [usize; 4] {
    [most, 0, random.random_range(0..=most), 1]
}

/// The first of equal neighbours, sorted and merged with other keys, all with values: the keys, their values, and how
/// many keys are behind them.
fn chain<K: GpuKey>(random: &mut StdRng, stream: &Stream, most: usize) {
    let zeroed = |n| (stream.zeroed::<K>(n).unwrap(), stream.zeroed::<u32>(n).unwrap());
    let number = || stream.zeroed::<u64>(1).unwrap();
    let ((mut keys, mut values), (mut others, mut of_others)) = (zeroed(most), zeroed(most / 2));
    let (mut n, mut of_heads, mut m, mut total) = (number(), number(), number(), number());
    let ((mut heads, mut head_values), (mut out, mut out_values)) = (zeroed(most), zeroed(most + most / 2));
    let bytes = [
        workspace::groups::<K>(most),
        workspace::sort::<K, u32>(most),
        workspace::merge::<K, u32>(MergeKernel::MergePath, out.len()),
    ];
    let mut memory = stream.zeroed(bytes.into_iter().max().unwrap()).unwrap();
    let work = captured(stream, || {
        let from = Counted((&keys, &values), &n);
        stream.unique(from, (&mut heads, &mut head_values), &mut of_heads, &mut memory)?;
        let sorted = Counted((&mut heads, &mut head_values), &of_heads);
        stream.sort(SortOrder::Ascending, sorted, &mut memory)?;
        let (a, b) = (Counted((&heads, &head_values), &of_heads), Counted((&others, &of_others), &m));
        stream.merge(MergeKernel::Auto, a, b, Counted((&mut out, &mut out_values), &mut total), &mut memory)
    });
    for n_now in numbers(random, most) {
        let m_now = random.random_range(0..=most / 2);
        let mut draw =
            |n: usize| -> Vec<K> { (0..n).map(|_| key(u64::from(random.random_range(0..9u8)) << 28)).collect() };
        let (from, mut side) = (draw(most), draw(most / 2));
        side[..m_now].sort_by_key(|key| Key::to_ordered(*key));
        keys.upload(&from).unwrap();
        values.upload(&(0..most as u32).collect::<Vec<_>>()).unwrap();
        others.upload(&side).unwrap();
        of_others.upload(&vec![u32::MAX; most / 2]).unwrap();
        n.upload(&[n_now as u64]).unwrap();
        m.upload(&[m_now as u64]).unwrap();
        work.repeat();
        let mut expected: Vec<(K, u32)> = from[..n_now].iter().copied().zip(0..).collect();
        expected.dedup_by_key(|(key, _)| Key::to_ordered(*key));
        assert_eq!(of_heads.download().unwrap(), [expected.len() as u64]);
        expected.extend(side[..m_now].iter().map(|key| (*key, u32::MAX)));
        expected.sort_by_key(|(key, _)| Key::to_ordered(*key));
        assert_eq!(total.download().unwrap(), [expected.len() as u64], "{n_now} and {m_now} {}", K::NAME);
        let found: Vec<_> = out.download().unwrap().into_iter().zip(out_values.download().unwrap()).collect();
        let bits =
            |pairs: &[(K, u32)]| pairs.iter().map(|(key, value)| (Key::to_ordered(*key), *value)).collect::<Vec<_>>();
        assert!(bits(&found[..expected.len()]) == bits(&expected), "{n_now} and {m_now} {}", K::NAME);
    }
}

#[test]
fn unique_keys_are_sorted_and_merged_in_one_graph() {
    in_process("counted::unique_keys_are_sorted_and_merged_in_one_graph", "devices=1", || {
        let (mut random, gpu) = (random(), Gpu::new(0).unwrap());
        let stream = gpu.stream().unwrap();
        gpu.prepare::<u32>().unwrap();
        gpu.prepare::<f64>().unwrap();
        gpu.prepare::<u16>().unwrap();
        for most in [2, 3000, 20_000] {
            chain::<u32>(&mut random, &stream, most);
            chain::<f64>(&mut random, &stream, most);
            chain::<u16>(&mut random, &stream, most);
        }
    });
}

/// The first `k` of the first keys with values, and the bounds of needles in these keys, sorted.
fn selection<K: GpuKey>(random: &mut StdRng, stream: &Stream, most: usize, k: usize) {
    let number = || stream.zeroed::<u64>(1).unwrap();
    let (mut n, mut m, mut selected) = (number(), number(), number());
    let (mut keys, mut sorted) = (stream.zeroed::<K>(most).unwrap(), stream.zeroed::<K>(most).unwrap());
    let values = stream.upload(&(0..most as u32).collect::<Vec<_>>()).unwrap();
    let (mut out, mut out_values) = (stream.zeroed::<K>(k).unwrap(), stream.zeroed::<u32>(k).unwrap());
    let (mut needles, mut bounds) = (stream.zeroed::<K>(most / 2).unwrap(), stream.zeroed::<u32>(most / 2).unwrap());
    let bytes =
        [workspace::top_k::<K, u32>(most, k), workspace::sort::<K, ()>(most), workspace::bounds::<K>(most + most / 2)];
    let mut memory = stream.zeroed(bytes.into_iter().max().unwrap()).unwrap();
    let work = captured(stream, || {
        let to = Counted((&mut out, &mut out_values), &mut selected);
        stream.top_k(SortOrder::Ascending, Counted((&keys, &values), &n), to, &mut memory)?;
        sorted.copy_from(&keys)?;
        stream.sort(SortOrder::Ascending, Counted(&mut sorted, &n), &mut memory)?;
        stream.bounds(Bound::Lower, Counted(&needles, &m), Counted(&sorted, &n), &mut bounds, &mut memory)
    });
    for n_now in numbers(random, most).into_iter().chain([k - 1, k, most + 1]) {
        let m_now = random.random_range(0..=most / 2);
        let mut draw =
            |n: usize| -> Vec<K> { (0..n).map(|_| key(u64::from(random.random_range(0..99u8)) << 28)).collect() };
        let (from, mut side) = (draw(most), draw(most / 2));
        side[..m_now].sort_by_key(|key| Key::to_ordered(*key));
        keys.upload(&from).unwrap();
        needles.upload(&side).unwrap();
        n.upload(&[n_now as u64]).unwrap();
        m.upload(&[m_now as u64]).unwrap();
        work.repeat();
        let mut expected: Vec<_> =
            from[..n_now.min(most)].iter().map(|key| Key::to_ordered(*key)).zip(0u32..).collect();
        expected.sort();
        let of_keys: Vec<_> = expected.iter().map(|(key, _)| *key).collect();
        expected.truncate(k);
        let what = format!("first {k} of {n_now} of {most} {}", K::NAME);
        assert_eq!(selected.download().unwrap(), [expected.len() as u64], "{what}");
        let found = out.download().unwrap().into_iter().map(Key::to_ordered).zip(out_values.download().unwrap());
        assert!(found.take(expected.len()).eq(expected), "{what}");
        let expected = side[..m_now].iter().map(|key| of_keys.partition_point(|k| *k < Key::to_ordered(*key)) as u32);
        assert!(bounds.download().unwrap().into_iter().take(m_now).eq(expected), "{m_now} needles, {what}");
    }
}

#[test]
fn first_keys_are_selected_and_needles_found_in_one_graph() {
    in_process("counted::first_keys_are_selected_and_needles_found_in_one_graph", "devices=1", || {
        let (mut random, gpu) = (random(), Gpu::new(0).unwrap());
        let stream = gpu.stream().unwrap();
        gpu.prepare::<u32>().unwrap();
        gpu.prepare::<f64>().unwrap();
        gpu.prepare::<i16>().unwrap();
        for (most, k) in [(2, 1), (3000, 7), (20_000, 9000)] {
            selection::<u32>(&mut random, &stream, most, k);
            selection::<f64>(&mut random, &stream, most, k);
            selection::<i16>(&mut random, &stream, most, k);
        }
    });
}

/// The groups of equal neighbours of the first keys are segments, which are sorted, and then runs, which are merged.
fn groups<K: GpuKey>(random: &mut StdRng, stream: &Stream, most: usize) {
    let (mut of, mut n) = (stream.zeroed::<u32>(most).unwrap(), stream.zeroed::<u64>(1).unwrap());
    let (mut heads, mut lengths, mut count) =
        (stream.zeroed(most).unwrap(), stream.zeroed(most).unwrap(), stream.zeroed(1).unwrap());
    let (mut keys, mut out) = (stream.zeroed::<K>(most).unwrap(), stream.zeroed::<K>(most).unwrap());
    let mut offsets = DeviceOffsets::empty(stream, most, most).unwrap();
    let bytes = [
        workspace::groups::<u32>(most),
        workspace::sort_segments::<K, ()>(most),
        workspace::merge_many::<K, ()>(most, most),
    ];
    let mut memory = stream.zeroed(bytes.into_iter().max().unwrap()).unwrap();
    let work = captured(stream, || {
        stream.run_lengths(Counted(&of, &n), (&mut heads, &mut lengths), &mut count, &mut memory)?;
        offsets.set(stream, Counted(&lengths, &count))?;
        stream.sort_segments(SortOrder::Ascending, &mut keys, Segments::Offsets(&offsets), &mut memory)?;
        stream.merge_many(SortOrder::Ascending, &keys, &offsets, &mut out, &mut memory)
    });
    for n_now in numbers(random, most) {
        let groups: Vec<u32> = (0..most).map(|_| u32::from(random.random_range(0..9u8) == 0)).collect();
        let mut expected: Vec<K> = (0..most).map(|_| key(random.random_range(0..=u64::MAX))).collect();
        of.upload(&groups).unwrap();
        n.upload(&[n_now as u64]).unwrap();
        keys.upload(&expected).unwrap();
        work.repeat();
        expected.truncate(n_now);
        let ordered = |key: &K| Key::to_ordered(*key);
        let mut begin = 0;
        for group in groups[..n_now].chunk_by(|a, b| a == b) {
            expected[begin..][..group.len()].sort_by_key(ordered);
            begin += group.len();
        }
        let is = |found: &DeviceArray<K>, expected: &[K]| {
            found.download().unwrap()[..n_now].iter().map(ordered).eq(expected.iter().map(ordered))
        };
        assert!(is(&keys, &expected), "segments of {n_now} of {most} {}", K::NAME);
        expected.sort_by_key(ordered);
        assert!(is(&out, &expected), "runs of {n_now} of {most} {}", K::NAME);
    }
}

#[test]
fn groups_are_segments_and_runs_in_one_graph() {
    in_process("counted::groups_are_segments_and_runs_in_one_graph", "devices=1", || {
        let (mut random, gpu) = (random(), Gpu::new(0).unwrap());
        let stream = gpu.stream().unwrap();
        gpu.prepare::<u32>().unwrap();
        gpu.prepare::<i64>().unwrap();
        gpu.prepare::<u8>().unwrap();
        for most in [2, 700, 5000] {
            groups::<u32>(&mut random, &stream, most);
            groups::<i64>(&mut random, &stream, most);
            groups::<u8>(&mut random, &stream, most);
        }
    });
}

/// Sorts the first keys of an array alone, and argsorts them.
fn check_sorts<K: GpuSortKey>(random: &mut StdRng, stream: &Stream, most: usize) {
    for n in numbers(random, most) {
        let different = [u64::MAX, 3][random.random_range(0..2)];
        let input: Vec<K> =
            (0..most).map(|_| key(random.random_range(0..=different).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        let order = [SortOrder::Ascending, SortOrder::Descending][random.random_range(0..2)];
        let options = SortOptions::from(order).kernel(SortKernel::ALL[random.random_range(0..2)]);
        let mut permutation: Vec<u32> = (0..n as u32).collect();
        let ordered = |i: &u32| Key::to_ordered(input[*i as usize]);
        match order {
            SortOrder::Ascending => permutation.sort_by_key(ordered),
            _ => permutation.sort_by_key(|i| std::cmp::Reverse(ordered(i))),
        }
        let expected: Vec<_> = permutation.iter().map(ordered).collect();
        let is_sorted = |keys: &DeviceArray<K>| {
            keys.download().unwrap()[..n].iter().map(|key| Key::to_ordered(*key)).collect::<Vec<_>>() == expected
        };
        let what = format!("{n} of {most} {} by {options:?}", K::NAME);
        let count = stream.upload(&[n as u64]).unwrap();
        let mut memory = stream.zeroed(workspace::sort::<K, ()>(most)).unwrap();
        let mut keys = stream.upload(&input).unwrap();
        stream.sort(options, Counted(&mut keys, &count), &mut memory).unwrap();
        assert!(is_sorted(&keys), "{what}");
        let (mut keys, mut indices) = (stream.upload(&input).unwrap(), stream.zeroed::<u32>(most).unwrap());
        let mut memory = stream.zeroed(workspace::argsort::<K, u32>(most)).unwrap();
        stream.argsort(options, Counted(&mut keys, &count), &mut indices, &mut memory).unwrap();
        assert!(is_sorted(&keys), "argsort of {what}");
        assert!(indices.download().unwrap()[..n] == permutation, "indices of {what}");
    }
}

#[test]
fn the_first_keys_of_all_widths_are_sorted() {
    in_process("counted::the_first_keys_of_all_widths_are_sorted", "devices=1", || {
        let (mut random, gpu) = (random(), Gpu::new(0).unwrap());
        let stream = gpu.stream().unwrap();
        for most in [1, 500, 10_001] {
            check_sorts::<u8>(&mut random, &stream, most);
            check_sorts::<i16>(&mut random, &stream, most);
            check_sorts::<f32>(&mut random, &stream, most);
            check_sorts::<i64>(&mut random, &stream, most);
            check_sorts::<u128>(&mut random, &stream, most);
        }
    });
}

#[test]
fn groups_and_sets_of_the_first_keys_are_those_of_fewer_keys() {
    in_process("counted::groups_and_sets_of_the_first_keys_are_those_of_fewer_keys", "devices=1", || {
        let gpu = Gpu::new(0).unwrap();
        let stream = gpu.stream().unwrap();
        let keys = stream.upload(&[1u16, 1, 4, 6, 6, 6, 6]).unwrap();
        let (five, values) = (stream.upload(&[5u64]).unwrap(), stream.upload(&[1u32, 2, 3, 4, 5, 6, 7]).unwrap());
        let (mut out, mut lengths, mut count) =
            (stream.zeroed::<u16>(7).unwrap(), stream.zeroed::<u64>(7).unwrap(), stream.zeroed::<u64>(1).unwrap());
        let bytes = workspace::groups::<u16>(7).max(workspace::set_operation::<u16>(14));
        let mut memory = stream.zeroed(bytes).unwrap();
        stream.run_lengths(Counted(&keys, &five), (&mut out, &mut lengths), &mut count, &mut memory).unwrap();
        assert_eq!((count.download().unwrap()[0], &lengths.download().unwrap()[..3]), (3, &[2, 1, 2][..]));
        let mut sums = stream.zeroed::<u32>(7).unwrap();
        let from = Counted((&keys, &values), &five);
        stream.reduce_by_key(Reduction::Sum, from, (&mut out, &mut sums), &mut count, &mut memory).unwrap();
        assert_eq!((count.download().unwrap()[0], &sums.download().unwrap()[..3]), (3, &[3, 3, 9][..]));
        let mut both = stream.zeroed::<u16>(14).unwrap();
        let (a, b) = (Counted(&keys, &five), &keys);
        stream.set_operation(SetOperation::Difference, b, a, &mut both, &mut count, &mut memory).unwrap();
        assert_eq!((count.download().unwrap()[0], &both.download().unwrap()[..2]), (2, &[6, 6][..]));
    });
}

#[test]
fn counts_of_other_lengths_and_kernels_without_counts_are_refused() {
    in_process("counted::counts_of_other_lengths_and_kernels_without_counts_are_refused", "devices=1", || {
        let gpu = Gpu::new(0).unwrap();
        let stream = gpu.stream().unwrap();
        let mut keys = stream.upload(&[2u32, 1]).unwrap();
        let (mut memory, two) = (stream.zeroed(1 << 20).unwrap(), stream.zeroed::<u64>(2).unwrap());
        let refused = stream.sort(SortOrder::Ascending, Counted(&mut keys, &two), &mut memory);
        assert!(matches!(refused, Err(Error::LengthMismatch { .. })), "{refused:?}");
        assert_eq!(keys.download().unwrap(), [2, 1]);
        let (one, mut total) = (stream.upload(&[1u64]).unwrap(), stream.zeroed::<u64>(1).unwrap());
        let (mut out, offsets) = (stream.zeroed::<u32>(4).unwrap(), DeviceOffsets::empty(&stream, 2, 2).unwrap());
        let refused = stream.merge_ragged((&keys, &offsets), (&keys, &offsets), &mut out, &mut memory);
        assert_eq!(refused, Err(Error::LengthsOnGpu { kernel: "merge_ragged" }));
        let mut out = stream.zeroed::<u32>(2).unwrap();
        let refused = stream.merge_many(SortOrder::Ascending, &keys, (&offsets, &offsets), &mut out, &mut memory);
        assert_eq!(refused, Err(Error::LengthsOnGpu { kernel: "merge_many" }));
        let mut out = stream.zeroed::<u32>(1).unwrap();
        let refused = stream.top_k(SortOrder::Ascending, Counted(&keys, &one), Counted(&mut out, None), &mut memory);
        assert_eq!(refused, Err(Error::NoCount { what: "out" }));
        for (kernel, len, expected) in [
            (MergeKernel::Tiled, 4, Error::LengthsOnGpu { kernel: "tiled" }),
            (MergeKernel::Auto, 3, Error::CapacityTooSmall { what: "out", needed: 4, found: 3 }),
        ] {
            let mut out = stream.zeroed::<u32>(len).unwrap();
            let (a, b) = (Counted(&keys, &one), &keys);
            let refused = stream.merge(kernel, a, b, Counted(&mut out, &mut total), &mut memory);
            assert_eq!(refused, Err(expected));
        }
    });
}
