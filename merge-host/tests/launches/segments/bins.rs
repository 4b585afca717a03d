//! Segments that are sorted by bins, and segments that bins leave to merges.

use super::*;
use kernels_gpu::elements::Elements;
use kernels_gpu::kernels::sort::segments::middle::{
    BINNED, CLASSES, LISTS, MAX_BINNED, MIN_BINNED, MiddleSegments, class_keys, list_words,
};
use kernels_gpu::kernels::sort::segments::middle_runs::{WhichSegments, threads};
use kernels_gpu::kernels::sort::segments::sort_middle_by_bins::{self, BINS_THREADS, SortMiddleByBins};
use kernels_gpu::kernels::sort::segments::sort_middle_segments::{self, SortMiddleSegments};
use kernels_gpu::key::{Coding, Key};
use kernels_gpu::warp::sort_lanes::MINUS_ONE;
use merge_host::launches::{Queue, Shape};

impl Sorted {
    /// The number of segments of each list.
    fn listed(&self) -> Vec<u32> {
        self.device.words(self.units + size_of::<u32>() as Address, LISTS)
    }
}

/// `n` random keys with the same first `alike` bits.
fn alike_above<K: TestKey>(n: usize, alike: u32, random: &mut StdRng) -> Vec<K> {
    let below = (u32::MAX as u64 >> alike) as u32;
    let above = random.random::<u32>() & !below;
    (0..n).map(|_| K::of_ordered((above | random.random::<u32>() & below).into())).collect()
}

/// Whether keys of this type take the next of several similar cases. Unsigned keys take all cases. Other keys, which
/// differ in how they are encoded, take some.
fn takes_case<K: TestKey>(random: &mut StdRng) -> bool {
    K::coding() == Coding::NONE || random.random_bool(0.3)
}

/// Sorts segments of keys alone between offsets, and returns the number of segments of each list.
fn lists_of<K: TestKey>(input: &[K], lengths: &[usize], seed: u64) -> Vec<u32> {
    check_keys::<K, ()>(input, lengths, By::Offsets, With::Nothing, seed).listed()
}

/// Bins sort segments of even keys of the lengths for bins.
#[test]
fn even_keys_are_sorted_by_bins() {
    fn all<K: TestKey>() {
        let mut random = fresh_random();
        for alike in [0, 8, 16, 24] {
            if !takes_case::<K>(&mut random) {
                continue;
            }
            let lengths = [5, MIN_BINNED, MAX_BINNED + 1, 3 * MAX_BINNED, 0, MAX_BINNED, 3000];
            let input = alike_above::<K>(lengths.iter().sum(), alike, &mut random);
            let lists = lists_of(&input, &lengths, random.random());
            assert_eq!((lists[BINNED], lists[..CLASSES].iter().sum::<u32>()), (3, 1), "{lists:?}, {alike} bits alike");
        }
    }
    all::<u32>();
    all::<i32>();
    all::<f32>();
}

/// Keys of 8 bytes and keys with values are sorted by bins as well.
#[test]
fn wide_keys_and_values_are_sorted_by_bins_too() {
    fn check<K: TestKey, V: Word>(with: With, alike: u32) {
        let mut random = fresh_random();
        let lengths = [5, MAX_BINNED, 3 * MAX_BINNED, 0, MIN_BINNED + 1];
        let input = alike_above::<K>(lengths.iter().sum(), alike, &mut random);
        let lists = check_keys::<K, V>(&input, &lengths, By::Offsets, with, random.random()).listed();
        assert_eq!((lists[BINNED], lists[..CLASSES].iter().sum::<u32>()), (2, 0), "{lists:?}, {alike} bits alike");
    }
    check::<u64, ()>(With::Nothing, 0);
    check::<f64, ()>(With::Nothing, 16);
    check::<u32, u32>(With::Values, 0);
    check::<f32, u32>(With::Indices, 8);
    check::<i32, u64>(With::Values, 16);
}

/// Segments of one length that have not been divided: the shortest and the longest that bins sort.
#[test]
fn segments_of_one_length_with_values_by_bins() {
    fn check<K: TestKey, V: Word>(with: With) {
        for length in [MIN_BINNED, MAX_BINNED] {
            for keys in [Keys::Any, Keys::Few, Keys::Equal, Keys::Descending] {
                sort::<K, V>(keys, &[length, length, length / 2], By::Length(length), with);
            }
        }
    }
    check::<u32, u32>(With::Values);
    check::<f32, u64>(With::Indices);
    check::<f64, ()>(With::Nothing);
}

/// Keys in groups of a hundred with equal numbers, because other groups are far away. A group has too many keys to be
/// put in order.
#[test]
fn what_numbers_do_not_tell_apart_is_merged() {
    fn check<K: TestKey, V: Word>(with: With) {
        let mut random = fresh_random();
        let lengths = [MIN_BINNED + 500, 700, MAX_BINNED];
        let key = |i: usize| ((i % 40) as u64) << (8 * size_of::<K>() - 6) | random.random_range(0..500);
        let input: Vec<K> = (0..lengths.iter().sum()).map(key).map(K::of_ordered).collect();
        let lists = check_keys::<K, V>(&input, &lengths, By::Offsets, with, random.random()).listed();
        assert_eq!((lists[BINNED], lists[1]), (2, 1), "{lists:?}");
        assert_eq!(lists[..CLASSES].iter().sum::<u32>(), 2, "{lists:?}");
    }
    check::<u32, u32>(With::Values);
    check::<i32, u64>(With::Indices);
    check::<u64, ()>(With::Nothing);
}

/// Segments with the most and the fewest keys that bins take, and one fewer and one more.
#[test]
fn lengths_around_those_for_bins() {
    let lengths = [MIN_BINNED, MAX_BINNED, MAX_BINNED + 1, MAX_MIDDLE, MAX_MIDDLE + 1, MIN_BINNED - 1];
    let lists = sort::<u32, ()>(Keys::Any, &lengths, By::Offsets, With::Nothing).listed();
    assert_eq!(lists, [1, 0, 1, 0, 0, 1, 2]);
}

/// Keys that bins of equal width do not divide evenly: bins adapt to them.
#[test]
fn uneven_keys_are_sorted_by_bins_too() {
    let mut random = fresh_random();
    let lengths = [MAX_MIDDLE + 3, MIN_BINNED, MAX_BINNED, 2 * MAX_BINNED, 700];
    let n = lengths.iter().sum();
    for kind in [Keys::Nested, Keys::Few, Keys::Equal, Keys::Cluster, Keys::Ascending, Keys::Descending, Keys::Runs] {
        let seed = random.random();
        lists_of(&kind.random::<u32>(n, seed), &lengths, seed);
        if takes_case::<f32>(&mut random) {
            lists_of(&kind.random::<f32>(n, seed), &lengths, seed);
        }
    }
    // Nearly all keys are a few of 2^28 numbers. The others are spread over all numbers.
    for close in [1, 2, 300, 5000, 1 << 17] {
        let first = random.random_range(0..(1 << 28) - close);
        let mut key = |_| {
            if random.random_bool(0.99) { first + random.random_range(0..close) } else { random.random::<u32>() >> 4 }
        };
        let input: Vec<u32> = (0..n).map(&mut key).collect();
        lists_of(&input, &lengths, first as u64);
    }
    // Among other keys, floats with an order that only their bits define.
    let odd = [f32::NAN, -f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE / 2.0];
    let input: Vec<f32> = (0..n)
        .map(|_| if random.random_bool(0.2) { odd[random.random_range(0..odd.len())] } else { random.random() })
        .collect();
    for seed in [2, 3] {
        assert!(lists_of(&input, &lengths, seed)[BINNED] > 0);
    }
}

/// Sorts segments of `length` keys by bins, and segments that bins leave by merges. Returns the number of segments
/// left.
fn sort_of_length<K: TestKey>(input: &[K], length: usize, descending: bool) -> u32 {
    let (device, n) = (Device::new(fresh_seed()), input.len());
    let coding = Coding::<<K as Key>::Bits>::of::<K>(descending);
    let (array, counts, list) = (device.array(input), device.array(&[0; LISTS]), device.uninit(list_words(n)));
    let at = Elements { keys: address(array) as *mut <K as Key>::Bits, values: std::ptr::null_mut::<()>() };
    let middle = MiddleSegments { counts: counts.as_mut_ptr(), list: list.as_mut_ptr(), n: n as u32 };
    let which = WhichSegments { n, length: length as u32, list: BINNED as u32, middle };
    let shared_bytes = sort_middle_by_bins::shared_bytes(4, 0);
    let shape = Shape { blocks: 3, threads: BINS_THREADS as u32, shared_bytes };
    let sort = SortMiddleByBins { at, which, coding };
    let queue: &dyn Queue = &device.queue();
    // SAFETY: the arrays have the lengths that the kernel is told, and the emulator checks accesses.
    unsafe { queue.launch("u32", shape, &sort) }.expect("the emulator launches all");
    let left = device.read(counts);
    for class in 0..CLASSES {
        let threads = threads(class_keys(class));
        let shared_bytes = sort_middle_segments::shared_bytes(4, 0, threads);
        let shape = Shape { blocks: 2, threads: threads as u32, shared_bytes };
        let which = WhichSegments { length: 0, list: class as u32, ..which };
        let sort = SortMiddleSegments { at, which, coding, minus_one: MINUS_ONE };
        // SAFETY: the arrays have the lengths that the kernel is told, and the emulator checks accesses.
        unsafe { queue.launch("u32", shape, &sort) }.expect("the emulator launches all");
    }
    let mut expected = input.to_vec();
    for segment in expected.chunks_mut(length) {
        segment.sort_by(|a, b| if descending { b.compare(a) } else { a.compare(b) });
    }
    assert!(raw_bits(&device.read(array)) == raw_bits(&expected), "{n} keys in segments of {length}");
    left.iter().sum()
}

/// Segments that have not been divided, as a launch for one length sorts them.
#[test]
fn segments_of_one_length_by_bins() {
    fn all<K: TestKey>() {
        let mut random = fresh_random();
        for length in [1, 2, 1000, 2559, 2560, 2561, 4607, MAX_BINNED] {
            for keys in [Keys::Any, Keys::Few, Keys::Equal, Keys::Descending] {
                if !takes_case::<K>(&mut random) {
                    continue;
                }
                let input = keys.random::<K>(3 * length + length / 2, fresh_seed());
                sort_of_length(&input, length, length % 2 == 1);
            }
        }
    }
    all::<u32>();
    all::<i32>();
    all::<f32>();
}

/// Pairs of neighbouring numbers with many keys each, over the whole range. The places of some neighbours are equal in
/// all bits of a place.
#[test]
fn what_bins_do_not_sort_is_merged() {
    const LENGTH: usize = 3000;
    let mut random = fresh_random();
    let mut segment = || {
        let firsts: [u32; LENGTH / 100] = std::array::from_fn(|_| random.random_range(1..u32::MAX - 1));
        let key = |i| firsts[i / 100] + i as u32 % 2;
        (0..LENGTH).map(|i| if i < 2 { [0, u32::MAX][i] } else { key(i) }).collect::<Vec<u32>>()
    };
    let mut input = || (0..50).flat_map(|_| segment()).collect::<Vec<u32>>();
    // The places of one in some 4000 pairs are equal.
    assert!((0..50).any(|_| sort_of_length(&input(), LENGTH, false) > 0), "bins sort all");
}
