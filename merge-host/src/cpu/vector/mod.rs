//! Sorts and merges of keys without values by vector instructions, where the processor has them.
//!
//! | file | contents |
//! | --- | --- |
//! | `lanes` | the operations on a vector |
//! | `avx2`, `avx512` | their implementations |
//! | `instructions` | sorts and merges, compiled for each instruction set |
//! | `coding` | encoding of keys as words, and decoding |
//! | `network` | sorts of a few vectors |
//! | `few` | sorts of few keys, by one network or two |
//! | `near` | sorts of words that fit a core's caches |
//! | `quicksort` | sorts of any number of words |
//! | `parallel` | sorts on several threads |
//! | `short` | sorts of many segments of very few keys |
//! | `merge` | merges of many short problems |
//! | `parts` | the parts of `near` and `quicksort` |
//!
//! Keys are encoded in place as words that the instructions compare, and decoded after the sort.

mod avx2;
mod avx512;
mod coding;
mod few;
mod instructions;
mod lanes;
mod merge;
mod near;
mod network;
mod parallel;
mod parts;
mod quicksort;
mod short;

use super::limit;
use super::merge_ragged::Problems;
use crate::key_order::inverts_bits;
use crate::{Key, SortOrder};
use avx2::{I64x4, U32x8};
use avx512::{U16x32, U32x16, U64x8};
use bytemuck::{Zeroable, cast_slice, cast_slice_mut};
use coding::Coding;
use few::Networks;
pub(super) use instructions::MOST_BYTES;
use instructions::{Instructions, with_instructions};
use lanes::{Lanes, Word};
use merge::Inputs;
use std::ops::{Range, RangeInclusive};
use std::sync::{LazyLock, OnceLock};

/// Vector instruction sets, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    None,
    Avx2,
    Avx512,
}

/// The level of the processor, or the limit of the environment if that is lower.
#[inline]
fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let most = limit::vectors().map_or(Level::Avx512, |value| [Level::None, Level::Avx2, Level::Avx512][value]);
        of_processor().min(most)
    })
}

/// The level of the processor.
fn of_processor() -> Level {
    let counts =
        is_x86_feature_detected!("popcnt") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2");
    match counts && is_x86_feature_detected!("avx2") {
        true if is_x86_feature_detected!("avx512f") => Level::Avx512,
        true => Level::Avx2,
        false => Level::None,
    }
}

/// Calls `work`, a loop that the compiler turns into vector instructions. They are those of AVX2 if the processor has
/// them.
#[inline(always)]
pub(crate) fn wide<R>(work: impl FnOnce() -> R) -> R {
    #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
    fn compiled<R>(work: impl FnOnce() -> R) -> R {
        work()
    }
    if level() >= Level::Avx2 {
        // SAFETY: every level from `Avx2` on has these target features: `of_processor` has asked for them.
        unsafe { compiled(work) }
    } else {
        work()
    }
}

/// Whether this processor sorts one number per pair by [`sort`] faster than it moves pairs by digits of their keys. On
/// Intel's cores a store to one of many places takes 2 to 3 times as long as on AMD's. AVX2 takes too long for numbers
/// of 8 bytes.
pub(super) fn is_faster_than_moving_pairs() -> bool {
    static IS_INTEL: LazyLock<bool> = LazyLock::new(|| {
        let vendor = std::arch::x86_64::__cpuid(0);
        [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes).concat() == b"GenuineIntel"
    });
    level() == Level::Avx512 && *IS_INTEL
}

/// With AVX2, radix passes beat vectors for more than `EVEN.0` and up to `EVEN.1` keys of 8 bytes if the digits of the
/// keys are even ([`digit::is_even`]).
const EVEN: (usize, usize) = (1 << 10, 1 << 19);

/// Two radix passes beat AVX-512 for more than `EVEN.0` keys of 8 bytes that differ in at most `NARROW_BITS` bits. Up
/// to `FEW_VALUES_BITS` bits, AVX-512 wins again: few distinct values take few divisions.
pub(super) const NARROW_BITS: u32 = 16;
const FEW_VALUES_BITS: u32 = 6;

/// Fewer keys than this are not divided among threads.
const KEYS_OF_THREADS: usize = 1 << 18;

/// On more than `FEW_THREADS` threads, keys of more than `BYTES_OF_MANY_THREADS` bytes are divided by digits first.
/// Each division of [`sort_on`] reads and writes all keys, and many threads share the throughput of the memory.
const FEW_THREADS: usize = 4;
const BYTES_OF_MANY_THREADS: usize = 1 << 29;

/// What decides between vectors and radix passes: functions that are called only if their result matters.
pub(super) struct Digits<N, E> {
    /// Whether keys differ in a number of bits in the range, and neighbours in half of these bits.
    pub are_narrow: N,
    /// Whether the keys have even digits.
    pub are_even: E,
}

/// Whether [`sort_on`] supports keys of this type on this processor, and is usually the fastest way to sort `keys` keys
/// on `threads` threads.
pub(super) fn can_sort_on<K: Key>(
    threads: usize,
    keys: usize,
    digits: Digits<impl FnOnce(RangeInclusive<u32>) -> bool, impl FnOnce() -> bool>,
) -> bool {
    let is_enough = threads == 1 || keys >= KEYS_OF_THREADS;
    let is_little = threads <= FEW_THREADS || size_of::<K>() * keys <= BYTES_OF_MANY_THREADS;
    is_enough && is_little && can_sort::<K>(keys, digits)
}

/// Whether [`sort`] supports keys of this type on this processor, and is usually the fastest way to sort `keys` keys.
pub(super) fn can_sort<K: Key>(
    keys: usize,
    Digits { are_narrow, are_even }: Digits<impl FnOnce(RangeInclusive<u32>) -> bool, impl FnOnce() -> bool>,
) -> bool {
    let narrow = if level() == Level::Avx2 { 0 } else { FEW_VALUES_BITS + 1 }..=NARROW_BITS;
    let is_narrow = || keys > EVEN.0 && are_narrow(narrow);
    let is_even = || level() == Level::Avx2 && keys > EVEN.0 && keys <= EVEN.1 && are_even();
    has_lanes::<K>() && (size_of::<K>() == 4 || !is_even() && !is_narrow())
}

/// Whether [`sort`] sorts keys of this type by vectors: of 1 byte, up to [`MOST_BYTES`].
#[inline]
pub(super) fn has_vectors<K: Key>() -> bool {
    has_lanes::<K>() || has_narrow_lanes::<K>()
}

/// The greatest number of keys that one network or two sort; 0 if the processor has no vectors for keys of this type.
pub(super) fn most_of_networks<K: Key>() -> usize {
    match size_of::<K>() {
        1 if has_narrow_lanes::<K>() => MOST_BYTES,
        2 if has_narrow_lanes::<K>() => U16x32::MOST,
        _ => shape::<K>(level())[1],
    }
}

/// Whether the processor has vectors for all functions of this module, with keys of this type.
#[inline]
fn has_lanes<K: Key>() -> bool {
    lanes::<K>(level()) > 0
}

/// Whether the processor has vectors for keys of this type, of 1 or 2 bytes.
#[inline]
fn has_narrow_lanes<K: Key>() -> bool {
    static HAS: LazyLock<bool> =
        LazyLock::new(|| is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vbmi2"));
    let is_narrow = const { size_of::<K>() <= 2 && inverts_bits::<K>() };
    is_narrow && level() == Level::Avx512 && *HAS
}

/// Sorts keys of a type with [`has_vectors`].
///
/// # Panics
/// Panics if there are more than [`MOST_BYTES`] keys of 1 byte.
pub(super) fn sort<K: Key>(order: SortOrder, keys: &mut [K]) {
    assert!(has_vectors::<K>());
    // SAFETY: `level` is at most the level of the processor. By the assertion, it has vectors for `K`.
    unsafe { sort_at((level(), quicksort::steps(keys.len())), order, keys) }
}

/// The greatest number of keys of a segment that [`sort_short`] sorts; 0 if the processor has no vectors for keys of
/// this type.
pub(super) fn short<K: Key>() -> usize {
    short_at::<K>(level())
}

/// [`short`] for the instructions of `level`.
fn short_at<K: Key>(level: Level) -> usize {
    short::MOST_ROWS * lanes::<K>(level)
}

/// The number of keys of a vector of `level`; 0 if there are no vectors for keys of this type.
#[inline]
fn lanes<K: Key>(level: Level) -> usize {
    shape::<K>(level)[0]
}

/// The number of keys of a vector of `level`, and the greatest number of keys that networks sort; 0 if there are no
/// vectors for keys of this type. Keys are encoded by inverting bits.
#[inline]
fn shape<K: Key>(level: Level) -> [usize; 2] {
    if !inverts_bits::<K>() {
        return [0; 2];
    }
    match (size_of::<K>(), level) {
        (4, Level::Avx512) => [U32x16::LANES, U32x16::MOST],
        (4, Level::Avx2) => [U32x8::LANES, U32x8::MOST],
        (8, Level::Avx512) => [U64x8::LANES, U64x8::MOST],
        (8, Level::Avx2) => [I64x4::LANES, I64x4::MOST],
        _ => [0; 2],
    }
}

/// Sorts each segment of `keys`, from an offset to the next, that has up to [`short`] keys. Longer segments stay
/// unchanged. `offsets[0]` is the offset of the first key. Returns whether there are no longer segments.
pub(super) fn sort_short<K: Key>(keys: &mut [K], offsets: &[usize]) -> bool {
    assert!(
        offsets.is_sorted()
            && offsets.last().zip(offsets.first()).is_some_and(|(end, begin)| end - begin == keys.len())
    );
    // SAFETY: `level` is at most the level of the processor, and `has_lanes` excludes `Level::None` and other key
    // sizes than 4 and 8 bytes. By the assertion, the offsets do not descend, and `keys.len()` is the last offset less
    // the first.
    has_lanes::<K>() && unsafe { sort_short_at(level(), keys, offsets) }
}

/// [`sort_short`] by the instructions of `level`.
///
/// # Safety
/// The processor has the instructions of `level`, which has vectors for `K`. The offsets do not descend, and
/// `keys.len()` is the last offset less the first.
unsafe fn sort_short_at<K: Key>(level: Level, keys: &mut [K], offsets: &[usize]) -> bool {
    let words = keys.as_mut_ptr();
    // SAFETY: the processor has the instructions, and `K` has 4 or 8 bytes: the size of the words that the macro
    // chooses for it. So `words` points to `keys.len()` words, and `keys.len()` is the last offset less the first.
    unsafe {
        with_instructions!(level, K, set => {
            set.sort_short(words.cast(), offsets, coding::<K, _>(level, SortOrder::Ascending))
        })
    }
}

/// The greatest number of keys of a problem that [`merge_short`] merges; 0 if the processor has no vectors for keys of
/// this type.
pub(super) fn most_merged<K: Key>() -> usize {
    most_merged_at::<K>(level())
}

/// [`most_merged`] for the instructions of `level`.
fn most_merged_at<K: Key>(level: Level) -> usize {
    merge::MOST_ROWS * lanes::<K>(level)
}

/// Merges the problems with the numbers `numbers` that have up to [`most_merged`] keys, from `a` and `b` to `out`,
/// where problems are adjacent. The keys of longer problems in `out` are unspecified afterwards. Returns whether there
/// are no longer problems.
pub(super) fn merge_short<K: Key>(a: &[K], b: &[K], out: &mut [K], numbers: Range<usize>, problems: Problems) -> bool {
    // SAFETY: `level` is at most the level of the processor, and `has_lanes` excludes `Level::None` and other key
    // sizes than 4 and 8 bytes.
    has_lanes::<K>() && unsafe { merge_short_at(level(), a, b, out, numbers, problems) }
}

/// [`merge_short`] by the instructions of `level`.
///
/// # Safety
/// The processor has the instructions of `level`, which has vectors for `K`.
unsafe fn merge_short_at<K: Key>(
    level: Level,
    a: &[K],
    b: &[K],
    out: &mut [K],
    numbers: Range<usize>,
    problems: Problems,
) -> bool {
    // SAFETY: the processor has the instructions of `level`, the only condition of the macro's `new`.
    unsafe {
        with_instructions!(level, K, set => {
            let inputs = Inputs { a: cast_slice(a), b: cast_slice(b), numbers, problems };
            set.merge_short(inputs, cast_slice_mut(out), coding::<K, _>(level, SortOrder::Ascending))
        })
    }
}

/// The encoding of keys of type `K` as words that the instructions of `level` compare. `W` has the size of `K`.
#[inline]
fn coding<K: Key, W: Word>(level: Level, order: SortOrder) -> Coding<W> {
    // Instructions of AVX2 compare 8 bytes as signed numbers only.
    let is_signed = size_of::<K>() == 8 && level == Level::Avx2;
    let all = !K::Bits::zeroed();
    let flip = if is_signed { !(all >> 1) } else { K::Bits::zeroed() };
    let flip = if order == SortOrder::Descending { flip ^ all } else { flip };
    let encoded = |bits: K::Bits| bytemuck::cast::<_, K>(bits).to_ordered() ^ flip;
    // All keys of one sign are encoded by flipping the same bits. Either both signs flip the most significant bit, or
    // neither does.
    let encode: [K::Bits; 2] = [encoded(K::Bits::zeroed()), encoded(all) ^ all];
    let swaps_signs = encode[0] > all >> 1;
    let decode = if swaps_signs { [encode[1], encode[0]] } else { encode };
    // One by one, because a vector of both loads slowly just after each was stored.
    let cast = |[clear, set]: [K::Bits; 2]| [bytemuck::cast(clear), bytemuck::cast(set)];
    Coding { encode: cast(encode), decode: cast(decode) }
}

/// [`sort`] by the instructions of `level`, dividing keys up to `steps` times.
///
/// # Safety
/// The processor has the instructions of `level`, which has vectors for `K`. With keys of 1 or 2 bytes,
/// [`has_narrow_lanes`] is true.
#[inline]
unsafe fn sort_at<K: Key>((level, steps): (Level, u32), order: SortOrder, keys: &mut [K]) {
    if const { size_of::<K>() == 1 } {
        // SAFETY: `has_narrow_lanes` has asked for the instructions.
        return unsafe { instructions::sort_bytes(cast_slice_mut(keys), coding::<K, _>(level, order)) };
    }
    if const { size_of::<K>() == 2 } {
        // SAFETY: `has_narrow_lanes` has asked for the instructions.
        return unsafe { instructions::sort_2_bytes(cast_slice_mut(keys), steps, coding::<K, _>(level, order)) };
    }
    // SAFETY: the processor has the instructions of `level`, the only condition of the macro's `new`.
    unsafe {
        with_instructions!(level, K, set => set.sort(cast_slice_mut(keys), steps, coding::<K, _>(level, order)));
    }
}

/// Sorts keys of a type with [`has_lanes`] on `threads` threads of the calling thread's pool.
pub(super) fn sort_on<K: Key>(order: SortOrder, keys: &mut [K], threads: usize) {
    if threads == 1 {
        return sort(order, keys);
    }
    assert!(has_lanes::<K>());
    // SAFETY: `level` is at most the level of the processor. The assertion excludes `Level::None` and keys of other
    // sizes than 4 and 8 bytes.
    unsafe { sort_on_at(level(), order, keys, threads) }
}

/// [`sort_on`] by the instructions of `level`.
///
/// # Safety
/// The processor has the instructions of `level`, which has vectors for `K`.
unsafe fn sort_on_at<K: Key>(level: Level, order: SortOrder, keys: &mut [K], threads: usize) {
    // SAFETY: the processor has the instructions of `level`, the only condition of the macro's `new`.
    unsafe {
        with_instructions!(level, K, set => {
            set.sort_on(cast_slice_mut(keys), threads, coding::<K, _>(level, order))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::avx512::U8x32;
    use super::lanes::Divide;
    use super::*;
    use crate::cpu::fresh_seed;
    use crate::cpu::merge_ragged::Offsets;
    use rand::rngs::StdRng;
    use rand::seq::SliceRandom;
    use rand::{Rng, SeedableRng};

    /// The levels of this processor above `Level::None`.
    fn levels() -> impl Iterator<Item = Level> {
        [Level::Avx2, Level::Avx512].into_iter().filter(|&level| level <= of_processor())
    }

    fn check<K: Key>(keys: &[K], what: &str) {
        let mut expected = keys.to_vec();
        expected.sort_by_key(|key| key.to_ordered());
        let has_vectors = |&level: &Level| lanes::<K>(level) > 0 || level == Level::Avx512 && has_narrow_lanes::<K>();
        for level in levels().filter(has_vectors) {
            for steps in [quicksort::steps(keys.len()), 1, 0] {
                let mut sorted = keys.to_vec();
                // SAFETY: `levels` returns only levels of this processor, and the filter those with vectors for `K`.
                unsafe { sort_at((level, steps), SortOrder::Ascending, &mut sorted) };
                let same = sorted.iter().zip(&expected).all(|(a, b)| a.to_ordered() == b.to_ordered());
                assert!(same, "{what}, {level:?}, {} of {}", keys.len(), K::NAME);
                sorted.copy_from_slice(keys);
                // SAFETY: `levels` returns only levels of this processor, and the filter those with vectors for `K`.
                unsafe { sort_at((level, steps), SortOrder::Descending, &mut sorted) };
                let same = sorted.iter().rev().zip(&expected).all(|(a, b)| a.to_ordered() == b.to_ordered());
                assert!(same, "{what}, descending, {level:?}, {} of {}", keys.len(), K::NAME);
            }
        }
    }

    fn check_all<K: Key>(random: &mut StdRng, seed: u64) {
        if levels().next().is_none() {
            return;
        }
        // All lengths that networks sort with AVX2, and for AVX-512 the lengths around whole rows of the second half.
        let lengths = (0..130).chain([
            145, 161, 193, 240, 255, 256, 257, 272, 273, 289, 321, 385, 500, 511, 512, 513, 767, 1023, 1024, 1025,
        ]);
        let lengths = lengths.chain([1000, 4095, 4096, 10_000, 70_000]);
        for len in lengths.filter(|len| size_of::<K>() > 1 || *len <= MOST_BYTES) {
            let mut any =
                |_| K::from_ordered(bytemuck::pod_read_unaligned(&random.random::<[u8; 16]>()[..size_of::<K>()]));
            let keys: Vec<K> = (0..len).map(&mut any).collect();
            check(&keys, &format!("random, seed {seed}"));
            let few = [0, 1, 2, 3, 4].map(&mut any);
            let of_few: Vec<K> = (0..len).map(|i| few[i * i % 5]).collect();
            check(&of_few, &format!("of five values, seed {seed}"));
            let mut sorted = keys;
            sorted.sort_by_key(|key| key.to_ordered());
            check(&sorted, &format!("sorted, seed {seed}"));
            sorted.reverse();
            check(&sorted, &format!("reversed, seed {seed}"));
            for bits in [K::Bits::zeroed(), !K::Bits::zeroed(), !K::Bits::zeroed() >> 1] {
                check(&vec![K::from_ordered(bits); len], "all equal");
                // The greatest word also fills rows that are not full.
                let mut half = vec![K::from_ordered(bits); len];
                half[len / 2..].copy_from_slice(&sorted[len / 2..]);
                half.shuffle(random);
                check(&half, &format!("half of them equal, seed {seed}"));
                let mut any =
                    |_| K::from_ordered(bytemuck::pod_read_unaligned(&random.random::<[u8; 16]>()[..size_of::<K>()]));
                sorted.iter_mut().for_each(|key| *key = any(0));
            }
        }
    }

    #[test]
    fn every_instruction_set_sorts() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        check_all::<u8>(&mut random, seed);
        check_all::<i8>(&mut random, seed);
        check_all::<u16>(&mut random, seed);
        check_all::<i16>(&mut random, seed);
        check_all::<u32>(&mut random, seed);
        check_all::<i32>(&mut random, seed);
        check_all::<f32>(&mut random, seed);
        check_all::<u64>(&mut random, seed);
        check_all::<i64>(&mut random, seed);
        check_all::<f64>(&mut random, seed);
    }

    fn check_short<K: Key>(random: &mut StdRng, seed: u64) {
        for greatest in [1, 4, 8, 9, 17, 40, 80, 150] {
            let lengths: Vec<usize> = (0..1000).map(|_| random.random_range(0..=greatest)).collect();
            let offsets: Vec<usize> = lengths
                .iter()
                .scan(3, |end, len| {
                    let begin = *end;
                    *end += len;
                    Some(begin)
                })
                .chain([3 + lengths.iter().sum::<usize>()])
                .collect();
            let keys: Vec<K> = (0..offsets[1000] - 3)
                .map(|_| K::from_ordered(bytemuck::pod_read_unaligned(&random.random::<[u8; 16]>()[..size_of::<K>()])))
                .collect();
            for level in levels() {
                let most = short_at::<K>(level);
                let (mut sorted, mut expected) = (keys.clone(), keys.clone());
                // SAFETY: `levels` returns only levels of this processor, `K` has 4 or 8 bytes, and the offsets are the
                // bounds of the keys' segments.
                let are_all = unsafe { sort_short_at(level, &mut sorted, &offsets) };
                assert_eq!(are_all, lengths.iter().all(|&len| len <= most));
                for ends in offsets.windows(2).filter(|ends| ends[1] - ends[0] <= most) {
                    expected[ends[0] - 3..ends[1] - 3].sort_by_key(|key| key.to_ordered());
                }
                let same = sorted.iter().zip(&expected).all(|(a, b)| a.to_ordered() == b.to_ordered());
                assert!(same, "up to {greatest}, {level:?}, {}, seed {seed}", K::NAME);
            }
        }
    }

    fn check_on_threads<K: Key>(random: &mut StdRng, seed: u64) {
        // Long enough that the parts of two threads are divided at least twice.
        let len = random.random_range(400_000..500_000);
        let any = |random: &mut StdRng| {
            K::from_ordered(bytemuck::pod_read_unaligned(&random.random::<[u8; 16]>()[..size_of::<K>()]))
        };
        let keys: Vec<K> = (0..len).map(|_| any(random)).collect();
        let of_few: Vec<K> = (0..len).map(|i| keys[i * i % 7]).collect();
        let mut most_equal = keys.clone();
        most_equal[..len / 4 * 3].fill(keys[0]);
        most_equal.shuffle(random);
        let mut in_order = keys.clone();
        in_order.sort_by_key(|key| key.to_ordered());
        let greatest = vec![K::from_ordered(!K::Bits::zeroed()); len];
        for keys in [keys, of_few, most_equal, in_order, greatest] {
            let mut expected: Vec<K::Bits> = keys.iter().map(|key| key.to_ordered()).collect();
            expected.sort_unstable();
            for (level, threads, order) in
                levels().flat_map(|level| [(level, 2, SortOrder::Ascending), (level, 5, SortOrder::Descending)])
            {
                let mut sorted = keys.clone();
                // SAFETY: `levels` returns only levels of this processor, and `K` has 4 or 8 bytes.
                unsafe { sort_on_at(level, order, &mut sorted, threads) };
                if order == SortOrder::Descending {
                    sorted.reverse();
                }
                let same = sorted.iter().map(|key| key.to_ordered()).eq(expected.iter().copied());
                assert!(same, "{len} of {}, {level:?}, {threads} threads, seed {seed}", K::NAME);
            }
        }
    }

    #[test]
    fn every_instruction_set_sorts_on_several_threads() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        check_on_threads::<u32>(&mut random, seed);
        check_on_threads::<f32>(&mut random, seed);
        check_on_threads::<i64>(&mut random, seed);
        check_on_threads::<f64>(&mut random, seed);
    }

    #[test]
    fn every_instruction_set_sorts_short_segments() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        check_short::<u32>(&mut random, seed);
        check_short::<f32>(&mut random, seed);
        check_short::<u64>(&mut random, seed);
        check_short::<i64>(&mut random, seed);
        check_short::<f64>(&mut random, seed);
    }

    /// Merges problems, each with the given numbers of keys in `a` and `b`, and compares each with the standard
    /// library. Problems that are not sorted or too long are not compared.
    fn check_merges<K: Key>(
        level: Level,
        lengths: &[[usize; 2]],
        draw: &mut impl FnMut() -> K,
        has_unsorted: bool,
        seed: u64,
    ) {
        const MARGIN: usize = 70;
        let (mut inputs, mut offsets) = ([Vec::new(), Vec::new()], [vec![0], vec![0]]);
        for (p, lengths) in lengths.iter().enumerate() {
            for ((input, offsets), &len) in inputs.iter_mut().zip(&mut offsets).zip(lengths) {
                let first = input.len();
                input.extend((0..len).map(|_| draw()));
                if !has_unsorted || p % 3 > 0 {
                    input[first..].sort_by_key(|key| key.to_ordered());
                }
                offsets.push(input.len());
            }
        }
        let [a, b] = &inputs;
        let offsets = Offsets { a: &offsets[0], b: &offsets[1] };
        let untouched = draw();
        let mut out = vec![untouched; a.len() + b.len() + 2 * MARGIN];
        let end = out.len() - MARGIN;
        // SAFETY: `levels` returns only levels of this processor, and `K` has 4 or 8 bytes.
        let are_all =
            unsafe { merge_short_at(level, a, b, &mut out[MARGIN..end], 0..lengths.len(), Problems::At(offsets)) };
        let most = most_merged_at::<K>(level);
        assert_eq!(are_all, lengths.iter().all(|[m, n]| m + n <= most));
        let of = |keys: &[K]| keys.iter().map(|key| key.to_ordered()).collect::<Vec<_>>();
        let mut at = MARGIN;
        for (p, &[m, n]) in lengths.iter().enumerate() {
            let mut expected = of(&[&a[offsets.a[p]..][..m], &b[offsets.b[p]..][..n]].concat());
            expected.sort();
            let is_checked = m + n <= most && (!has_unsorted || p % 3 > 0);
            let same = !is_checked || of(&out[at..][..m + n]) == expected;
            assert!(same, "{m} and {n} of {}, {level:?}, seed {seed}", K::NAME);
            at += m + n;
        }
        let is_margin = |keys: &[K]| keys.iter().all(|key| key.to_ordered() == untouched.to_ordered());
        assert!(is_margin(&out[..MARGIN]) && is_margin(&out[end..]), "{lengths:?} of {}, {level:?}", K::NAME);
    }

    /// Merges problems of all lengths at which the code takes another branch, one by one and together.
    fn check_all_merges<K: Key>(special: &[K], random: &mut StdRng, seed: u64) {
        let mut source = random.clone();
        let mut draw = || match source.random_range(0..2 * special.len()) {
            i if i < special.len() => special[i],
            _ => K::from_ordered(bytemuck::pod_read_unaligned(&source.random::<[u8; 16]>()[..size_of::<K>()])),
        };
        for level in levels() {
            let most = most_merged_at::<K>(level);
            let edges = [0, 1, 2, 4, 8, 16, 32, 64, most / 2, most].into_iter();
            let mut edges: Vec<usize> = edges.flat_map(|len| len.saturating_sub(1)..=len + 1).collect();
            edges.sort();
            edges.dedup();
            let mut lengths: Vec<[usize; 2]> = edges.iter().flat_map(|&m| edges.iter().map(move |&n| [m, n])).collect();
            lengths.extend(edges.iter().flat_map(|&m| edges.iter().map(move |&sum| [m.min(sum), sum - m.min(sum)])));
            for lengths in lengths.chunks(1) {
                check_merges::<K>(level, lengths, &mut draw, false, seed);
            }
            lengths.shuffle(random);
            check_merges::<K>(level, &lengths, &mut draw, false, seed);
            check_merges::<K>(level, &lengths, &mut draw, true, seed);
            for greatest in [1, 2, 5, 9, 33] {
                let mut length = |_| [random.random_range(0..=greatest), random.random_range(0..=greatest)];
                let lengths: Vec<[usize; 2]> = (0..1000).map(&mut length).collect();
                check_merges::<K>(level, &lengths, &mut draw, false, seed);
                // Problems of one length.
                let lengths = vec![length(0); 100];
                check_merges::<K>(level, &lengths, &mut draw, true, seed);
            }
        }
    }

    #[test]
    fn every_instruction_set_merges_short_problems() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        check_all_merges::<u32>(&[0, u32::MAX, 7], &mut random, seed);
        check_all_merges::<i32>(&[0, i32::MIN, i32::MAX, -1], &mut random, seed);
        let nan = f32::NAN;
        check_all_merges::<f32>(&[0.0, -0.0, nan, -nan, f32::INFINITY, f32::NEG_INFINITY], &mut random, seed);
        check_all_merges::<u64>(&[0, u64::MAX, 7], &mut random, seed);
        check_all_merges::<i64>(&[0, i64::MIN, i64::MAX, -1], &mut random, seed);
        let nan = f64::NAN;
        check_all_merges::<f64>(&[0.0, -0.0, nan, -nan, f64::INFINITY, f64::NEG_INFINITY], &mut random, seed);
    }

    #[test]
    fn problems_that_exceed_their_arrays_are_refused() {
        let merged = |level, lengths: [usize; 3], ends: [usize; 2]| {
            let (a, b, mut out) = (vec![0u32; lengths[0]], vec![0; lengths[1]], vec![0; lengths[2]]);
            let problems = Problems::OfLengths(ends);
            // SAFETY: `levels` returns only levels of this processor, and the keys have 4 or 8 bytes.
            std::panic::catch_unwind(move || unsafe { merge_short_at(level, &a, &b, &mut out, 0..1, problems) })
        };
        for level in levels() {
            assert!(merged(level, [3, 4, 7], [3, 4]).is_ok());
            assert!(merged(level, [3, 4, 6], [3, 4]).is_err());
            assert!(merged(level, [3, 4, 7], [4, 3]).is_err());
            assert!(merged(level, [3, 4, 7], [2, 5]).is_err());
            assert!(merged(level, [3, 4, 7], [usize::MAX, 1]).is_err());
        }
    }

    #[test]
    fn keys_made_for_bad_pivots_are_sorted() {
        for len in [1000u32, 100_000] {
            let pipes: Vec<u32> = (0..len).map(|i| i.min(len - i)).collect();
            check(&pipes, "organ pipes");
            let mut killer: Vec<u64> = (0..u64::from(len)).collect();
            for i in (0..killer.len()).rev() {
                killer.swap(i, i / 2);
            }
            check(&killer, "swapped with the middle");
        }
    }

    /// Compares each operation of [`Lanes`] with its documentation.
    fn check_verbs<L: Lanes<Word: std::fmt::Debug>>(word: impl Fn(u64) -> L::Word, random: &mut StdRng) {
        let n = L::LANES;
        let mut draw = || -> Vec<L::Word> { (0..n).map(|_| word(random.random_range(0..1 << 34) << 30)).collect() };
        let (a, b) = (draw(), draw());
        let words = |row: L| {
            let mut words = vec![word(0); n];
            // SAFETY: the caller has checked that the processor has the instruction set, and `words` has `n = LANES`
            // words.
            unsafe { row.store(words.as_mut_ptr()) };
            words
        };
        let lanes = |of: &dyn Fn(usize) -> L::Word| (0..n).map(of).collect::<Vec<_>>();
        // SAFETY: the caller has checked that the processor has the instruction set. `a`, `b` and every buffer below
        // have all words that the operation accesses.
        unsafe {
            let (x, y) = (L::load(a.as_ptr()), L::load(b.as_ptr()));
            assert_eq!(words(x), a);
            assert_eq!(words(L::splat(b[0])), lanes(&|_| b[0]));
            let (lesser, greater) = x.exchange(y);
            assert_eq!(words(lesser), lanes(&|i| a[i].min(b[i])));
            assert_eq!(words(greater), lanes(&|i| a[i].max(b[i])));
            for bits in 1..n {
                assert_eq!(words(x.flipped(bits)), lanes(&|i| a[i ^ bits]));
            }
            for bit in (0..n.ilog2()).map(|i| 1 << i) {
                assert_eq!(words(x.blended(y, bit)), lanes(&|i| if i & bit == 0 { a[i] } else { b[i] }));
                let of_order = |i: usize| if i & bit == 0 { a[i].min(b[i]) } else { a[i].max(b[i]) };
                assert_eq!(words(x.ordered(y, bit)), lanes(&of_order));
            }
            for (coded, word) in words(x.coded([L::splat(b[0]), L::splat(b[1])])).into_iter().zip(&a) {
                let [coded, word, clear, set] = [&coded, word, &b[0], &b[1]].map(bytemuck::bytes_of);
                let is_set = word[word.len() - 1] >= 0x80;
                let flips = if is_set { set } else { clear };
                assert!(coded.iter().zip(word).zip(flips).all(|((coded, word), flip)| *coded == word ^ flip));
            }
            for count in -1..=n as isize + 1 {
                let first = L::load_first(a.as_ptr(), count, y);
                assert_eq!(words(first), lanes(&|i| if (i as isize) < count { a[i] } else { b[i] }));
                for store in [L::store_first, L::store_only_first] {
                    let mut stored = b.clone();
                    store(x, stored.as_mut_ptr(), count);
                    assert_eq!(stored, lanes(&|i| if (i as isize) < count { a[i] } else { b[i] }));
                }
            }
        }
    }

    /// Compares divisions by each of some words with the documentation of [`Divide`].
    fn check_divisions<L: Divide<Word: std::fmt::Debug>>(word: impl Fn(u64) -> L::Word, random: &mut StdRng) {
        let mut draw = || word(random.random_range(0..1 << 34) << 30);
        let a: Vec<L::Word> = (0..L::LANES).map(|_| draw()).collect();
        let others: Vec<L::Word> = (0..L::LANES).map(|_| draw()).collect();
        a.iter().chain(&others).for_each(|&pivot| check_division::<L>(&a, pivot));
    }

    /// Compares the divisions of the row `a` with the documentation of [`Divide`]. The processor has the instruction
    /// set.
    fn check_division<L: Divide<Word: std::fmt::Debug>>(a: &[L::Word], pivot: L::Word) {
        let n = L::LANES;
        // SAFETY: the caller has checked that the processor has the instruction set. Every array has `n = LANES` words.
        unsafe {
            let x = L::load(a.as_ptr());
            let (mut below, mut above) = (vec![pivot; n], vec![pivot; n]);
            let less = x.divide(L::splat(pivot), below.as_mut_ptr(), above.as_mut_ptr().add(n));
            let expected: Vec<_> = a.iter().copied().filter(|&word| word < pivot).collect();
            assert_eq!(below[..less], expected);
            let expected: Vec<_> = a.iter().copied().filter(|&word| word >= pivot).collect();
            assert_eq!(above[less..], expected);
            for count in 0..=n {
                let (mut below, mut above) = (vec![pivot; n], vec![pivot; n]);
                let less = x.divide_first(count, L::splat(pivot), below.as_mut_ptr(), above.as_mut_ptr().add(n));
                let (low, mut high): (Vec<_>, Vec<_>) = a[..count].iter().partition(|&&word| word < pivot);
                assert_eq!(less, low.len());
                let mut found = above[n - high.len()..].to_vec();
                high.sort();
                found.sort();
                assert_eq!((&below[..less], found), (&low[..], high));
                assert!(below[count..].iter().chain(&above[..n - count]).all(|&word| word == pivot));
            }
        }
    }

    #[test]
    fn verbs_do_what_they_say() {
        let mut random = StdRng::seed_from_u64(fresh_seed());
        for level in levels() {
            match level {
                Level::Avx512 => {
                    check_verbs::<U32x16>(|word| (word >> 32) as u32, &mut random);
                    check_divisions::<U32x16>(|word| (word >> 32) as u32, &mut random);
                    check_verbs::<U64x8>(|word| word, &mut random);
                    check_divisions::<U64x8>(|word| word, &mut random);
                }
                _ => {
                    check_verbs::<U32x8>(|word| (word >> 32) as u32, &mut random);
                    check_divisions::<U32x8>(|word| (word >> 32) as u32, &mut random);
                    check_verbs::<I64x4>(|word| word as i64, &mut random);
                    check_divisions::<I64x4>(|word| word as i64, &mut random);
                }
            }
        }
        if has_narrow_lanes::<u16>() {
            check_verbs::<U8x32>(|word| (word >> 56) as u8, &mut random);
            check_verbs::<U16x32>(|word| (word >> 48) as u16, &mut random);
            check_divisions::<U16x32>(|word| (word >> 48) as u16, &mut random);
        }
    }
}
