//! Keys of 1, 2 and 16 bytes on emulated GPUs, against the CPU engine and the standard library.

use super::{in_process, random};
use merge_host::{
    Bound, DeviceOffsets, Engine, Error, Gpu, GpuKey, GpuSortKey, Gpus, Key, MergeKernel, NanOrder, Segments,
    SetOperation, SortOptions, SortOrder, Stream, f16, workspace,
};
use rand::Rng;
use rand::rngs::StdRng;
use std::ops::Range;
use tests::distribution::key;

/// Keys of a few distributions.
fn keys<K: Key>(random: &mut StdRng, n: usize) -> Vec<K> {
    let few: Vec<u64> = (0..4).map(|_| random.random()).collect();
    let kind = random.random_range(0..4);
    (0..n)
        .map(|i| match kind {
            0 => key(few[0]),
            1 => key(few[random.random_range(0..4)]),
            2 if i % 20 > 0 => key(few[1]),
            _ => key(random.random()),
        })
        .collect()
}

/// Any options of a sort.
fn options(random: &mut StdRng) -> SortOptions {
    let order = [SortOrder::Ascending, SortOrder::Descending][random.random_range(0..2)];
    let nans = [NanOrder::Total, NanOrder::Last, NanOrder::First][random.random_range(0..3)];
    SortOptions::default().order(order).nans(nans)
}

/// The bits of keys: unlike floats, they compare equal for a NaN, and unequal for -0.0 and 0.0.
fn bits<K: Key>(keys: &[K]) -> Vec<u8> {
    bytemuck::cast_slice(keys).to_vec()
}

/// Sorts keys alone, with values, and with indices, on a stream.
fn check_sorts<K: GpuSortKey>(random: &mut StdRng, stream: &Stream, n: usize) {
    let (input, options): (Vec<K>, _) = (keys(random, n), options(random));
    let values: Vec<u64> = (0..n as u64).map(|i| i << 33 | i).collect();
    let (mut expected, mut moved) = (input.clone(), values.clone());
    Engine::cpu().sort_with(options, (&mut expected, &mut moved)).unwrap();
    let what = format!("{n} {} by {options:?}", K::NAME);

    let mut array = stream.upload(&input).unwrap();
    let mut memory = stream.zeroed(workspace::sort::<K, ()>(n)).unwrap();
    stream.sort(options, &mut array, &mut memory).unwrap();
    assert!(bits(&array.download().unwrap()) == bits(&expected), "{what}");

    let (mut array, mut of_array) = (stream.upload(&input).unwrap(), stream.upload(&values).unwrap());
    let mut memory = stream.zeroed(workspace::sort::<K, u64>(n)).unwrap();
    stream.sort(options, (&mut array, &mut of_array), &mut memory).unwrap();
    assert!(bits(&array.download().unwrap()) == bits(&expected), "{what}, with values");
    assert!(of_array.download().unwrap() == moved, "values of {what}");

    let narrow: Vec<u32> = (0..n as u32).rev().collect();
    let (mut array, mut of_array) = (stream.upload(&input).unwrap(), stream.upload(&narrow).unwrap());
    let mut memory = stream.zeroed(workspace::sort::<K, u32>(n)).unwrap();
    stream.sort(options, (&mut array, &mut of_array), &mut memory).unwrap();
    let expected_narrow: Vec<u32> = moved.iter().map(|value| narrow[*value as u32 as usize]).collect();
    assert!(of_array.download().unwrap() == expected_narrow, "values of 4 bytes of {what}");

    let (mut array, mut indices) = (stream.upload(&input).unwrap(), stream.zeroed::<u32>(n).unwrap());
    let mut memory = stream.zeroed(workspace::argsort::<K, u32>(n)).unwrap();
    stream.argsort(options, &mut array, &mut indices, &mut memory).unwrap();
    assert!(bits(&array.download().unwrap()) == bits(&expected), "argsort of {what}");
    let expected_indices: Vec<u32> = moved.iter().map(|value| *value as u32).collect();
    assert!(indices.download().unwrap() == expected_indices, "indices of {what}");

    let (mut array, mut indices) = (stream.upload(&input).unwrap(), stream.zeroed::<u64>(n).unwrap());
    let mut memory = stream.zeroed(workspace::argsort::<K, u64>(n)).unwrap();
    stream.argsort(options, &mut array, &mut indices, &mut memory).unwrap();
    let expected_indices: Vec<u64> = moved.iter().map(|value| u64::from(*value as u32)).collect();
    assert!(indices.download().unwrap() == expected_indices, "indices of 8 bytes of {what}");
}

/// The other operations on a stream, each with a workspace of exactly the documented bytes.
fn check_operations<K: GpuKey>(random: &mut StdRng, stream: &Stream, n: usize) {
    let cpu = Engine::cpu();
    let m = random.random_range(0..=n);
    let (mut a, mut b): (Vec<K>, Vec<K>) = (keys(random, m), keys(random, n - m));
    let unsorted = [a.clone(), b.clone()].concat();
    cpu.sort(&mut a).unwrap();
    cpu.sort(&mut b).unwrap();
    let what = format!("{m} and {} {}", n - m, K::NAME);
    let (of_a, of_b) = (stream.upload(&a).unwrap(), stream.upload(&b).unwrap());

    let (mut expected, mut out) = (unsorted.clone(), stream.zeroed::<K>(n).unwrap());
    cpu.merge(&a, &b, &mut expected).unwrap();
    let mut memory = stream.zeroed(workspace::merge::<K, ()>(MergeKernel::Auto, n)).unwrap();
    stream.merge(MergeKernel::Auto, &of_a, &of_b, &mut out, &mut memory).unwrap();
    assert!(bits(&out.download().unwrap()) == bits(&expected), "merge of {what}");

    let mut count = stream.zeroed(1).unwrap();
    let mut memory = stream.zeroed(workspace::groups::<K>(n)).unwrap();
    let mut firsts = stream.zeroed::<K>(n + 3).unwrap();
    stream.unique(&out, &mut firsts, &mut count, &mut memory).unwrap();
    let mut unique = Vec::new();
    cpu.unique(&expected, &mut unique).unwrap();
    assert_eq!(count.download().unwrap(), [unique.len() as u64], "unique of {what}");
    assert!(bits(&firsts.download().unwrap()[..unique.len()]) == bits(&unique), "unique of {what}");

    let mut both = Vec::new();
    cpu.set_operation(SetOperation::Intersection, &a, &b, &mut both).unwrap();
    let mut memory = stream.zeroed(workspace::set_operation::<K>(n)).unwrap();
    stream.set_operation(SetOperation::Intersection, &of_a, &of_b, &mut firsts, &mut count, &mut memory).unwrap();
    assert_eq!(count.download().unwrap(), [both.len() as u64], "intersection of {what}");
    assert!(bits(&firsts.download().unwrap()[..both.len()]) == bits(&both), "intersection of {what}");

    let (k, from, options) = (random.random_range(0..=n), stream.upload(&unsorted).unwrap(), options(random));
    let (mut first, mut expected) = (stream.zeroed::<K>(k).unwrap(), unsorted[..k].to_vec());
    cpu.top_k(options, &unsorted, &mut expected).unwrap();
    let mut memory = stream.zeroed(workspace::top_k::<K, ()>(n, k)).unwrap();
    stream.top_k(options, &from, &mut first, &mut memory).unwrap();
    assert!(bits(&first.download().unwrap()) == bits(&expected), "top {k} of {what}");

    let mut found = stream.zeroed::<u32>(m).unwrap();
    let mut expected = vec![0u32; m];
    cpu.bounds(Bound::Upper, &a, &b, &mut expected).unwrap();
    let mut memory = stream.zeroed(workspace::bounds::<K>(n)).unwrap();
    stream.bounds(Bound::Upper, &of_a, &of_b, &mut found, &mut memory).unwrap();
    assert!(found.download().unwrap() == expected, "bounds of {what}");

    check_bits(random, stream, &unsorted);
    let offsets = [0, m / 2, m, n];
    let (mut array, mut expected) = (from, unsorted);
    cpu.sort_segments(options, &mut expected, &offsets).unwrap();
    let at = DeviceOffsets::new(stream, &offsets).unwrap();
    let mut memory = stream.zeroed(workspace::sort_segments::<K, ()>(n)).unwrap();
    stream.sort_segments(options, &mut array, Segments::Offsets(&at), &mut memory).unwrap();
    assert!(bits(&array.download().unwrap()) == bits(&expected), "segments of {what}");

    let k = 5;
    let mut selected = stream.upload(&vec![key::<K>(0x5555_5555_5555_5555); 3 * k]).unwrap();
    let mut expected = selected.download().unwrap();
    let input = array.download().unwrap();
    cpu.top_k_segments(SortOrder::Descending, &input, &offsets, k, &mut expected).unwrap();
    let mut memory = stream.zeroed(workspace::top_k_segments::<K, ()>(n, 3, k)).unwrap();
    let segments = Segments::Offsets(&at);
    stream.top_k_segments(SortOrder::Descending, &array, segments, k, &mut selected, &mut memory).unwrap();
    assert!(bits(&selected.download().unwrap()) == bits(&expected), "first keys of the segments of {what}");
}

/// Sorts by some bits on a stream.
fn check_bits<K: GpuKey>(random: &mut StdRng, stream: &Stream, input: &[K]) {
    let begin = random.random_range(0..=8 * size_of::<K>() as u32);
    let end = random.random_range(begin..=8 * size_of::<K>() as u32);
    check_range(random, stream, input, begin..end);
}

/// Sorts by a range of bits on a stream.
fn check_range<K: GpuKey>(random: &mut StdRng, stream: &Stream, input: &[K], range: Range<u32>) {
    let (cpu, options, n) = (Engine::cpu(), options(random), input.len());
    let what = format!("{n} {} by bits {range:?}, {options:?}", K::NAME);
    let values: Vec<u32> = (0..n as u32).map(|i| i ^ 0xaaaa).collect();
    let (mut expected, mut moved) = (input.to_vec(), values.clone());
    cpu.sort_by_bits(options, range.clone(), (&mut expected, &mut moved)).unwrap();

    let mut array = stream.upload(input).unwrap();
    let mut memory = stream.zeroed(workspace::sort_by_bits::<K, ()>(n)).unwrap();
    stream.sort_by_bits(options, range.clone(), &mut array, &mut memory).unwrap();
    assert!(bits(&array.download().unwrap()) == bits(&expected), "{what}");

    let (mut array, mut of_array) = (stream.upload(input).unwrap(), stream.upload(&values).unwrap());
    let mut memory = stream.zeroed(workspace::sort_by_bits::<K, u32>(n)).unwrap();
    stream.sort_by_bits(options, range.clone(), (&mut array, &mut of_array), &mut memory).unwrap();
    assert!(bits(&array.download().unwrap()) == bits(&expected), "{what}, with values");
    assert!(of_array.download().unwrap() == moved, "values of {what}");

    let (mut array, mut indices) = (stream.upload(input).unwrap(), stream.zeroed::<u64>(n).unwrap());
    let mut memory = stream.zeroed(workspace::sort_by_bits::<K, u64>(n)).unwrap();
    stream.argsort_by_bits(options, range, &mut array, &mut indices, &mut memory).unwrap();
    assert!(bits(&array.download().unwrap()) == bits(&expected), "argsort of {what}");
    let expected: Vec<u64> = moved.iter().map(|value| u64::from(value ^ 0xaaaa)).collect();
    assert!(indices.download().unwrap() == expected, "indices of {what}");
}

#[test]
fn arrays_are_sorted_by_some_bits_on_a_stream() {
    in_process("widths::arrays_are_sorted_by_some_bits_on_a_stream", "devices=1", || {
        let (mut random, gpu) = (random(), Gpu::new(0).unwrap());
        let stream = gpu.stream().unwrap();
        for n in [0, 1, 300, 3001] {
            for _ in 0..3 {
                let input = keys::<u32>(&mut random, n);
                check_bits(&mut random, &stream, &input);
                let input = keys::<f64>(&mut random, n);
                check_bits(&mut random, &stream, &input);
                let input = keys::<i8>(&mut random, n);
                check_bits(&mut random, &stream, &input);
            }
        }
        // Several tiles, with one pass and with two.
        for bits in [0, 7, 16] {
            let (of_4, of_8) = (keys::<i32>(&mut random, 33_001), keys::<u64>(&mut random, 34_001));
            check_range(&mut random, &stream, &of_4, 9..9 + bits);
            check_range(&mut random, &stream, &of_8, 40..40 + bits);
        }
        let (mut array, mut memory) = (stream.upload(&[2u8, 1]).unwrap(), stream.zeroed(1 << 20).unwrap());
        let refused = stream.sort_by_bits(SortOrder::Ascending, 0..9, &mut array, &mut memory);
        assert_eq!(refused, Err(Error::BitRange { begin: 0, end: 9, bits: 8 }));
        assert_eq!(array.download().unwrap(), [2, 1]);
    });
}

#[test]
fn keys_of_all_widths_are_sorted_on_a_stream() {
    in_process("widths::keys_of_all_widths_are_sorted_on_a_stream", "devices=1", || {
        let (mut random, gpu) = (random(), Gpu::new(0).unwrap());
        let stream = gpu.stream().unwrap();
        for n in [0, 1, 2, 9, 1000, 4099] {
            check_sorts::<u8>(&mut random, &stream, n);
            check_sorts::<i8>(&mut random, &stream, n);
            check_sorts::<u16>(&mut random, &stream, n);
            check_sorts::<i16>(&mut random, &stream, n);
            check_sorts::<f16>(&mut random, &stream, n);
            check_sorts::<u128>(&mut random, &stream, n);
            check_sorts::<i128>(&mut random, &stream, n);
        }
        // Several tiles.
        check_sorts::<f16>(&mut random, &stream, 40_001);
        check_sorts::<u8>(&mut random, &stream, 40_003);
    });
}

#[test]
fn operations_on_narrow_keys_need_the_documented_workspace() {
    in_process("widths::operations_on_narrow_keys_need_the_documented_workspace", "devices=1", || {
        let (mut random, gpu) = (random(), Gpu::new(0).unwrap());
        let stream = gpu.stream().unwrap();
        for n in [0, 1, 7, 300, 3001] {
            check_operations::<u8>(&mut random, &stream, n);
            check_operations::<f16>(&mut random, &stream, n);
            check_operations::<u16>(&mut random, &stream, n);
        }
    });
}

/// Keys of 16 bytes whose high words or low words are equal, through an engine of one GPU and of three.
#[test]
fn wide_keys_of_slices_are_sorted_on_gpus() {
    in_process("widths::wide_keys_of_slices_are_sorted_on_gpus", "devices=3", || {
        let mut random = random();
        for engine in [Engine::gpu(0).unwrap(), Engine::gpu(Gpus::All).unwrap()] {
            for mask in [u128::MAX, u64::MAX.into(), u128::MAX << 64, 1 | 1 << 64 | 1 << 127] {
                let n = random.random_range(2000..3000);
                let input: Vec<u128> = (0..n).map(|_| random.random::<u128>() & mask).collect();
                let mut indices: Vec<usize> = (0..n).collect();
                indices.sort_by_key(|&i| input[i]);
                let expected: Vec<u128> = indices.iter().map(|&i| input[i]).collect();
                let mut keys = input.clone();
                engine.sort(&mut keys).unwrap();
                assert!(keys == expected, "{engine:?}, {mask:x}");
                let mut found = vec![0u32; n];
                engine.argsort(SortOrder::Ascending, &input, &mut found).unwrap();
                assert!(found.iter().zip(&indices).all(|(a, b)| *a as usize == *b), "{engine:?}, {mask:x}");
                let (mut keys, mut names) = (input.clone(), (0..n).map(|i| [i as u16; 3]).collect::<Vec<_>>());
                engine.sort_with(SortOrder::Ascending, (&mut keys, &mut names)).unwrap();
                assert!(keys == expected && names.iter().zip(&indices).all(|(a, b)| a[0] as usize == *b));
                let mut signed: Vec<i128> = input.iter().map(|key| *key as i128).collect();
                engine.sort_with(SortOrder::Descending, &mut signed).unwrap();
                assert!(signed.is_sorted_by(|a, b| a >= b), "{engine:?}, {mask:x}");
                let (mut keys, count) = (input.clone(), {
                    let mut all = expected.clone();
                    all.dedup();
                    all
                });
                let (left, _) = engine.sort_unique(SortOrder::Ascending, &mut keys).unwrap();
                assert!(keys[..left] == count, "{engine:?}, {mask:x}");
            }
        }
    });
}
