//! The kernels of the dividing sort, in the emulator, against the standard library's stable sort. Blocks and buckets
//! are so small that few keys take every path, and the kernels are told to divide regardless of the sample.
//!
//! Whole sorts, with the launches of a GPU, are tested in `merge-host/tests/launches/sort.rs`.

use crate::common::{self, *};
use cuda_std::emulator::{Buffer, Emulator, Fault};
use cuda_std::{GlobalMut, Word};
use kernels_gpu::elements::Elements;
use kernels_gpu::kernels::sort::detect_runs::{DETECTION_SHARED_BYTES, DETECTION_WORDS, detect_runs};
use kernels_gpu::kernels::sort::divide::choose_digits::{
    CHOOSE_SHARED_BYTES, CHOOSE_THREADS, LevelParameters, choose_digits,
};
use kernels_gpu::kernels::sort::divide::count_digits::{COUNT_SHARED_BYTES, COUNT_THREADS, count_digits};
use kernels_gpu::kernels::sort::divide::count_twice::{TWICE_SHARED_BYTES, count_twice};
use kernels_gpu::kernels::sort::divide::divide::{self, divide};
use kernels_gpu::kernels::sort::divide::once::{
    self, COUNT_ONCE_SHARED_BYTES, TileSort, count_once, divide_once, sort_once,
};
use kernels_gpu::kernels::sort::divide::place_buckets::{
    PLACE_SHARED_BYTES, PLACE_THREADS, own_digits_capacity, place_buckets,
};
use kernels_gpu::kernels::sort::divide::place_parts::{PARTS_THREADS, place_parts};
use kernels_gpu::kernels::sort::divide::sort_buckets::{self, sort_buckets};
use kernels_gpu::kernels::sort::divide::sort_rest::{self, sort_rest};
use kernels_gpu::kernels::sort::divide::workspace::{HEAD_WORDS, Job, Layout, MOST_ROUNDS, Plan, RESTS};
use kernels_gpu::kernels::sort::runs::MAX_RUNS;
use kernels_gpu::key::{Bits, Coding};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Threads of all blocks that divide and sort, and their keys per thread in a tile and in a bucket.
const NT: usize = 32;
const TILE_VT: usize = 6;
const VT: usize = 7;
const TILE: usize = NT * TILE_VT;
/// Tiles per part, in plans with several tiles per part.
const TILES: u32 = 3;
const BUCKET: usize = NT * VT;
/// Keys per thread in a long bucket.
const LONG_VT: usize = 15;
/// Keys per thread in a bucket that is at most half full, and in such a long bucket.
const FEW: usize = 5;
const LONG_FEW: usize = 7;

/// Index of the word that is 1 if keys are divided, among the words of `detect_runs`.
const DIVIDED: usize = 3;

/// Sorted keys and six counts: rests, failures, digits to count twice, digits not to count twice, long buckets, and
/// tasks of the quicksort.
type Sorted<K> = (Vec<K>, [u32; 6]);

/// A sorted array and, for each key, its original index.
type SortedWithOrigins<K> = (Sorted<K>, Vec<u64>);

/// The plan for `n` keys: number of divisions, tiles per part, and whether equal keys stay in order.
fn plan(n: usize, levels: u32, tiles: u32, in_order: bool) -> Plan {
    Plan {
        n: n as u32,
        levels,
        tile: TILE as u32,
        tiles,
        bucket: BUCKET as u32,
        long: 0,
        in_order: u32::from(in_order),
        twice: u32::from(!in_order),
        listed: 0,
        window: 0,
    }
}

/// Draws key `i` of an array.
type Draw = fn(&mut StdRng, u32) -> u32;

/// The steps of a division that move no keys, launched as on the host.
fn choose_and_place<B: Bits>(
    emulator: &mut Emulator,
    job: Job,
    (sampled, keys): (*mut B, *mut B),
    level: u32,
    coding: Coding<B>,
    (single, divides): (u32, u32),
    random: u64,
) -> Result<(), Fault> {
    let decodes = u32::from(coding != Coding::NONE);
    let coding = if level == 0 { coding } else { Coding::NONE };
    // SAFETY: `job` describes the lists of a plan for `n` keys, and both arrays have `n` keys. The launches here and
    // below have the documented shapes and shared memory. The emulator reports every access outside of the buffers.
    emulator.launch("choose_digits", 1 + level.min(1), CHOOSE_THREADS, CHOOSE_SHARED_BYTES, || unsafe {
        let level = LevelParameters { number: level, single, cleared: 0, always_divides: divides, random };
        choose_digits(job, sampled, coding, level)
    })?;
    if level == 0 && job.plan.twice != 0 {
        // SAFETY: `keys` has the `n` keys of `job`; the launch has `TWICE_SHARED_BYTES`.
        emulator.launch("count_twice", 2, NT as u32, TWICE_SHARED_BYTES, || unsafe {
            count_twice::<_, NT>(job, keys, coding)
        })?;
    }
    // SAFETY: `keys` has the `n` keys of `job`; the launch has `COUNT_SHARED_BYTES`.
    emulator.launch("count_digits", 3, NT as u32, COUNT_SHARED_BYTES, || unsafe {
        count_digits::<_, NT>(job, keys, level, coding)
    })?;
    if job.plan.in_order != 0 {
        // SAFETY: `job` has the lists that `count_digits` has written; the launch has blocks of `PARTS_THREADS`.
        emulator.launch("place_parts", 3, PARTS_THREADS, 0, || unsafe { place_parts::<B>(job, level) })?;
    }
    // SAFETY: `job` has the lists that the kernels before have written; the launch has `PLACE_SHARED_BYTES`.
    emulator.launch("place_buckets", 1 + level.min(1), PLACE_THREADS, PLACE_SHARED_BYTES, || unsafe {
        place_buckets::<B>(job, level, decodes)
    })
}

/// The sort of few keys with one division, launched as on the host. If keys are not divided, tiles go to the other
/// side.
fn sort_in_three_launches<B: Bits>(
    emulator: &mut Emulator,
    job: Job,
    words: Buffer<u32>,
    [from, to]: [*mut B; 2],
    coding: Coding<B>,
    divides: u32,
    random: u64,
) -> Result<(), Fault> {
    let (first, count) = job.at.once(&job.plan);
    let words = words.as_mut_ptr();
    // SAFETY: the lists have `first + count` words, and the launch is one thread.
    emulator.launch("clear", 1, 1, 0, || unsafe {
        let words = GlobalMut::new(words, first + count);
        (first..first + count).for_each(|word| words.set(word, 0));
    })?;
    // SAFETY: `job` describes lists that are cleared, and both sides have its `n` keys. The launch has the documented
    // shape and shared memory.
    emulator.launch("count_once", 2, COUNT_THREADS as u32, COUNT_ONCE_SHARED_BYTES, || unsafe {
        count_once(job, from, coding, random, divides)
    })?;
    let (blocks, shared_bytes) = (job.plan.parts(job.plan.n) + 1, once::shared_bytes(TILE, size_of::<B>()));
    let decodes = u32::from(coding != Coding::NONE);
    // SAFETY: both sides have the `n` keys of `job`, which `count_once` has counted. The launch has one block per part
    // and one more, with the shared memory of a tile.
    emulator.launch("divide_once", blocks, NT as u32, shared_bytes, || unsafe {
        divide_once::<_, NT, TILE_VT, { own_digits_capacity(NT) }>(job, from, to, coding, decodes)
    })?;
    // SAFETY: both sides have the `n` keys of `job`, which `divide_once` has divided. The launch has the shared memory
    // of a bucket of `NT * VT` keys.
    emulator.launch("sort_once", 4, NT as u32, once::sort_shared_bytes(NT, VT, size_of::<B>()), || unsafe {
        let tiles = TileSort { to, decode: Coding::NONE, merges: 1 };
        sort_once::<_, NT, VT, FEW>(job, from, to, coding, tiles, random)
    })
}

/// The lists of a division, and the words of `detect_runs`.
fn lists(emulator: &mut Emulator, plan: Plan) -> [Buffer<u32>; 2] {
    let mut words = vec![u32::MAX; Layout::of(&plan).words as usize];
    words[HEAD_WORDS..][..Layout::cleared(&plan)].fill(0);
    [emulator.buffer(&words), emulator.buffer(&[0u32; DETECTION_WORDS])]
}

/// The sort as launched on the host, with the numbers of rests and failures. `None` if the kernels have left the keys
/// to the merge passes. These then get the keys unchanged.
fn run<K: TestKey>(
    seed: u64,
    keys: &[K],
    descending: bool,
    levels: u32,
    single: (u32, u32),
) -> Result<Option<Sorted<K>>, Fault>
where
    K::Bits: Bits,
{
    run_sampled(seed, keys, keys, descending, levels, single)
}

/// Like [`run`], with the digits of the first level chosen by other keys.
fn run_sampled<K: TestKey>(
    seed: u64,
    sampled: &[K],
    keys: &[K],
    descending: bool,
    levels: u32,
    single: (u32, u32),
) -> Result<Option<Sorted<K>>, Fault>
where
    K::Bits: Bits,
{
    let (n, input) = (keys.len(), keys);
    let mut emulator = Emulator::new(seed);
    let bits = |keys: &[K]| -> Vec<K::Bits> { keys.iter().map(|key| key.to_raw()).collect() };
    let (sampled, keys) = (emulator.buffer(&bits(sampled)), emulator.buffer(&bits(keys)));
    let scratch = emulator.uninit::<K::Bits>(n);
    let has_long = size_of::<K>() == 4 && levels > 2;
    let plan = Plan { long: if has_long { (NT * LONG_VT) as u32 } else { 0 }, ..plan(n, levels, 1, false) };
    let [words, found] = lists(&mut emulator, plan);
    let coding = Coding::<K::Bits>::of::<K>(descending);
    let random = StdRng::seed_from_u64(seed).random();
    let job = Job::new(words.as_mut_ptr(), found.as_mut_ptr(), plan);
    let sides = [keys.as_mut_ptr(), scratch.as_mut_ptr()];
    if levels == 1 {
        sort_in_three_launches(&mut emulator, job, words, sides, coding, single.1, random)?;
    } else {
        let sides = [keys, scratch].map(keys_alone);
        sort_in_levels(&mut emulator, job, sampled.as_mut_ptr(), sides, false, coding, single, random)?;
    }
    let words = emulator.read(words)?;
    let left = [0, 1, 2, 3, 4, 5].map(|i| words[RESTS + i]);
    let sorted: Vec<K> = emulator.read(keys)?.into_iter().map(|bits: K::Bits| K::from_raw(bits)).collect();
    let [_, many, _, divided, ..] = emulator.read(found)?[..] else { panic!("there are six words") };
    if divided == 0 {
        assert!(self::bits(&sorted) == self::bits(input), "keys have been moved");
        if many == 0 {
            assert!(input.is_sorted_by_key(|key| coding.encode(key.to_raw())));
        } else if levels == 1 {
            let mut tiles: Vec<K::Bits> =
                self::bits(input).into_iter().map(|bits| coding.encode(Word::from_register(bits))).collect();
            tiles.chunks_mut(BUCKET).for_each(<[_]>::sort);
            assert!(emulator.read(scratch)? == tiles, "tiles are not sorted");
        }
        return Ok(None);
    }
    Ok(Some((sorted, left)))
}

/// The sort with several divisions, launched as on the host.
#[allow(clippy::too_many_arguments)]
fn sort_in_levels<B: Bits, V: Word>(
    emulator: &mut Emulator,
    job: Job,
    sampled: *mut B,
    sides: [Elements<B, V>; 2],
    indexes: bool,
    coding: Coding<B>,
    single: (u32, u32),
    random: u64,
) -> Result<(), Fault> {
    let (key_bytes, value_bytes) = (size_of::<B>(), size_of::<V>());
    for level in 0..job.plan.levels {
        let (from, to) = (sides[level as usize % 2], sides[1 - level as usize % 2]);
        let sampled = if level == 0 { sampled } else { from.keys };
        choose_and_place(emulator, job, (sampled, from.keys), level, coding, single, random)?;
        let coding = if level == 0 { coding } else { Coding::NONE };
        let shared_bytes = divide::shared_bytes(NT, TILE_VT, key_bytes, value_bytes);
        // SAFETY: both sides have the `n` elements of `job`, which the kernels before have counted and placed. The
        // launch has the shared memory of a tile.
        emulator.launch("divide", 5, NT as u32, shared_bytes, || unsafe {
            divide::<_, _, NT, TILE_VT>(job, from, to, level, coding, u32::from(indexes))
        })?;
    }
    let [at, scratch] = sides;
    let shared_bytes = sort_buckets::shared_bytes(NT, VT, key_bytes, value_bytes);
    // SAFETY: both sides have the `n` elements of `job`, divided into buckets. The launch has the shared memory of a
    // bucket of `NT * VT` keys.
    emulator.launch("sort_buckets", 4, NT as u32, shared_bytes, || unsafe {
        sort_buckets::<_, _, NT, VT, FEW, false>(job, at, scratch, coding)
    })?;
    if job.plan.long > 0 {
        let shared_bytes = sort_buckets::shared_bytes(NT, LONG_VT, key_bytes, value_bytes);
        // SAFETY: both sides have the `n` elements of `job`, divided into buckets. The launch has the shared memory of
        // a bucket of `NT * LONG_VT` keys.
        emulator.launch("sort_buckets of long ones", 2, NT as u32, shared_bytes, || unsafe {
            sort_buckets::<_, _, NT, LONG_VT, LONG_FEW, true>(job, at, scratch, coding)
        })?;
    }
    let shared_bytes = sort_rest::shared_bytes(NT * VT, key_bytes, value_bytes > 0);
    // SAFETY: both sides have the `n` elements of `job`, divided and sorted except for the rests. The launch has the
    // shared memory of `NT * VT` keys.
    emulator.launch("sort_rest", 2, NT as u32, shared_bytes, || unsafe {
        sort_rest::<_, _, NT, VT>(job, at, scratch, coding)
    })
}

/// Like [`run`], for keys with values `V`, which are the keys' indices if `indexes`. Returns sorted keys with their
/// original indices.
fn run_with_values<K: TestKey, V: Word>(
    seed: u64,
    keys: &[K],
    indexes: bool,
    levels: u32,
    single: (u32, u32),
) -> Result<Option<SortedWithOrigins<K>>, Fault>
where
    K::Bits: Bits,
{
    let (n, descending) = (keys.len(), seed % 2 == 1);
    let mut emulator = Emulator::new(seed);
    let bits: Vec<K::Bits> = keys.iter().map(|key| key.to_raw()).collect();
    let values: Vec<V> = (0..n as u64).map(|i| V::from_register(i * 3)).collect();
    let (keys, scratch) = (emulator.buffer(&bits), emulator.uninit::<K::Bits>(n));
    let values = if indexes { emulator.uninit::<V>(n) } else { emulator.buffer(&values) };
    let values_scratch = emulator.uninit::<V>(n);
    let tiles = if seed.is_multiple_of(3) { 1 } else { TILES };
    let plan = plan(n, levels, tiles, true);
    let [words, found] = lists(&mut emulator, plan);
    let coding = Coding::<K::Bits>::of::<K>(descending);
    let random = StdRng::seed_from_u64(seed).random();
    let job = Job::new(words.as_mut_ptr(), found.as_mut_ptr(), plan);
    let sides = [elements_from(keys, values, 0), elements_from(scratch, values_scratch, 0)];
    sort_in_levels(&mut emulator, job, keys.as_mut_ptr(), sides, indexes, coding, single, random)?;
    if emulator.read(found)?[DIVIDED] == 0 {
        return Ok(None);
    }
    let words = emulator.read(words)?;
    let left = [0, 1, 2, 3, 4, 5].map(|i| words[RESTS + i]);
    let sorted: Vec<K> = emulator.read(keys)?.into_iter().map(|bits: K::Bits| K::from_raw(bits)).collect();
    let of_index = if indexes { 1 } else { 3 };
    let from = emulator.read(values)?.into_iter().map(|value| value.to_register() / of_index).collect();
    Ok(Some(((sorted, left), from)))
}

/// Sorts and compares. Returns the numbers of rests and failures, or `None` if keys are not divided.
fn check<K: TestKey>(keys: &[K], seed: u64, levels: u32, single: u32, what: &str) -> Option<[u32; 2]>
where
    K::Bits: Bits,
{
    let descending = seed % 2 == 1;
    let (sorted, left) = run(seed, keys, descending, levels, (single, 1))
        .unwrap_or_else(|fault| panic!("{what}, n = {}, levels = {levels}, seed {seed}: {fault}", keys.len()))?;
    let mut expected = common::sorted(keys.to_vec());
    if descending {
        expected.reverse();
    }
    assert!(bits(&sorted) == bits(&expected), "{what}, n = {}, levels = {levels}, seed {seed}", keys.len());
    Some([left[0], left[1]])
}

/// Sorts with values, or with indices if `indexes`, and compares with a stable sort. Returns the same as [`check`].
fn check_with_values<K: TestKey, V: Word>(
    keys: &[K],
    indexes: bool,
    seed: u64,
    levels: u32,
    single: u32,
    what: &str,
) -> Option<[u32; 2]>
where
    K::Bits: Bits,
{
    let what = || {
        let bytes = size_of::<V>();
        format!("{what}, values of {bytes}, indices: {indexes}, n = {}, levels = {levels}, seed {seed}", keys.len())
    };
    let ((sorted, left), from) = run_with_values::<K, V>(seed, keys, indexes, levels, (single, 1))
        .unwrap_or_else(|fault| panic!("{}: {fault}", what()))?;
    let mut expected: Vec<u64> = (0..keys.len() as u64).collect();
    let coding = Coding::<K::Bits>::of::<K>(seed % 2 == 1);
    expected.sort_by_key(|&i| coding.encode(keys[i as usize].to_raw()));
    assert!(from == expected, "{}", what());
    let expected: Vec<K> = expected.into_iter().map(|i| keys[i as usize]).collect();
    assert!(bits(&sorted) == bits(&expected), "{}", what());
    Some([left[0], left[1]])
}

#[test]
fn equal_keys_are_not_divided_further() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    for (name, values) in [("one", 1), ("two", 2), ("nine", 9)] {
        let keys: Vec<u64> = (0..3000).map(|_| random.random_range(0..values) << 40).collect();
        let what = format!("{name} of few");
        assert_eq!(check_with_values::<u64, u32>(&keys, false, seed, 4, 8, &what), Some([0, 0]), "{what}, seed {seed}");
        check_with_values::<u64, u32>(&keys, false, seed, 2, 8, &what);
    }
    // Most keys are equal, some are less and some are greater.
    let keys: Vec<u32> = (0..3000).map(|i| if i % 100 == 0 { random.random() } else { 1 << 31 }).collect();
    check_with_values::<u32, u32>(&keys, true, seed, 4, 8, "one and some others");
}

#[test]
fn the_last_division_makes_buckets_of_what_the_first_one_left_uneven() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    // Normally distributed floats: most keys are between two powers of two, so that the first division leaves long
    // segments.
    let keys: Vec<f32> = (0..6000)
        .map(|_| (0..12).map(|_| random.random::<f32>()).sum::<f32>() - 6.0)
        .filter(|x| x.abs() > 0.01)
        .collect();
    let what = "about normal";
    // By chance, some buckets are slightly too long at the end. There would be ten if the last division left keys to
    // another one.
    let [rests, _] = check_with_values::<f32, u32>(&keys, false, seed, 2, 4, what).expect("keys are divided");
    assert!(rests < 8, "{rests}, seed {seed}");
    let [rests, _] = check(&keys, seed, 2, 4, what).expect("keys are divided");
    assert!(rests < 8, "{rests}, seed {seed}");
}

#[test]
fn equal_keys_of_a_bucket_keep_their_order() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    // No equal keys in a bucket, some equal keys, and almost only equal keys.
    for bits in [22, 16, 12, 10, 8] {
        let keys: Vec<u32> = (0..3000).map(|_| random.random::<u32>() >> (32 - bits)).collect();
        let what = format!("keys of {bits} bits");
        check_with_values::<u32, u32>(&keys, true, seed, 2, 20, &what);
        check_with_values::<u32, u32>(&keys, false, seed ^ 1, 2, 20, &what);
        check_with_values::<u32, u64>(&keys, false, seed, 2, 20, &what);
        let floats: Vec<f32> = keys.iter().map(|&key| -(key as f32)).collect();
        check_with_values::<f32, u32>(&floats, false, seed, 2, 20, &what);
    }
}

#[test]
fn keys_with_values_that_numbers_do_not_tell_apart_are_merged_in_the_end() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    // Too many keys that differ only in bits that do not fit into their numbers.
    let keys: Vec<u32> = (0..200).map(|i| if i == 7 { u32::MAX } else { random.random_range(0..200) }).collect();
    let [_, failures] =
        check_with_values::<u32, u32>(&keys, false, seed, 1, 8, "all alike but one").expect("keys are divided");
    assert!(failures > 0, "seed {seed}");
}

#[test]
fn keys_that_differ_in_what_numbers_have_no_room_for_are_put_in_order() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    for alike in [2, 3, 5] {
        let keys: Vec<u32> = (0..200).map(|i| (i % 200 / alike) << 25 | random.random_range(0..200)).collect();
        let left = check_with_values::<u32, u64>(&keys, false, seed, 1, 8, &format!("{alike} alike"));
        assert_eq!(left, Some([0, 0]), "{alike} alike, seed {seed}");
        let keys: Vec<u64> = keys.into_iter().map(|key| (key as u64) << 32 | random.random_range(0..9)).collect();
        check_with_values::<u64, u32>(&keys, false, seed, 1, 8, &format!("{alike} alike of 8 bytes"));
    }
    // Any number of equal keys is in order already.
    let keys: Vec<u32> = (0..200).map(|i| if i % 3 == 0 { random.random() } else { 1 << 30 }).collect();
    check_with_values::<u32, u32>(&keys, false, seed, 1, 8, "many equal");
    // Some keys are equal, and others are put in order.
    let equal = |i: u32| if i.is_multiple_of(15) { 45 << 25 } else { (i / 3) << 25 | random.random_range(0..200) };
    let keys: Vec<u32> = (0..120).map(equal).collect();
    assert_eq!(check_with_values::<u32, u32>(&keys, false, seed, 1, 8, "some equal"), Some([0, 0]), "seed {seed}");
}

#[test]
fn digits_are_counted_once_more_where_counters_were_too_small() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    // The sample is of other keys, which are evenly distributed. More of the sorted keys are equal than a counter of 16
    // bits can hold.
    let sampled: Vec<u32> = (0..140_000).map(|_| random.random()).collect();
    let keys: Vec<u32> = (0..140_000).map(|i| if i % 100 == 0 { random.random() } else { 1 << 31 }).collect();
    let (sorted, [_, _, twice, not_twice, ..]) = run_sampled(seed, &sampled, &keys, false, 3, (8, 1))
        .unwrap_or_else(|fault| panic!("seed {seed}: {fault}"))
        .expect("keys are divided");
    assert_eq!((twice, not_twice > 0), (1, true), "seed {seed}");
    assert_eq!(sorted, common::sorted(keys), "seed {seed}");
}

#[test]
fn the_least_key_is_told_apart_where_digits_are_along_logarithms() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    for least in [0, 1, 77_000] {
        let mut key = |i| {
            least + if i % 3 == 0 { 0 } else { (random.random::<u32>() >> 2 | 1 << 29) >> random.random_range(0..29) }
        };
        let keys: Vec<u32> = (0..3000).map(&mut key).collect();
        let what = format!("one in three is {least}");
        // In ascending order.
        let result = run(seed, &keys, false, 3, (8, 1)).unwrap_or_else(|fault| panic!("{what}, seed {seed}: {fault}"));
        let (sorted, [rests, ..]) = result.expect("keys are divided");
        assert_eq!(sorted, common::sorted(keys.clone()), "{what}, seed {seed}");
        assert_eq!(rests, 0, "{what}, seed {seed}");
        check_with_values::<u32, u32>(&keys, false, seed, 3, 8, &what);
    }
}

#[test]
fn full_bins_are_made_finer_and_merged_in_the_end() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    // Half of the keys are in one bin of their bucket.
    let mut check_half = |from: u32, below: u32| {
        let draw = |i: u32| match i {
            0 => u32::MAX,
            1..100 => i << 25,
            // Few distinct keys with about equal frequencies: otherwise one in a hundred arrays has bins that cannot be
            // made finer.
            _ if below <= 8 => from + i % below,
            _ => from + random.random_range(0..below),
        };
        let keys: Vec<u32> = (0..200).map(draw).collect();
        let [_, failures] = check(&keys, seed, 1, 8, "a full bin").expect("keys are divided");
        failures
    };
    assert_eq!(check_half(7, 1 << 20), 0, "made finer once, seed {seed}");
    assert_eq!(check_half(7, 1 << 12), 0, "made finer twice, seed {seed}");
    assert_eq!(check_half(7, 8), 0, "made finer three times, seed {seed}");
    // Places have 32 bits and are slightly closer than these keys: one in 256 keys shares the place of the next one.
    assert!((0..300).any(|from| check_half(from, 2) > 0), "seed {seed}");
}

/// A rest that takes several rounds: one key in four is so close to the others of its kind that the last level does not
/// tell them apart. Its sides in the end are of one tile, of fewer keys, or empty.
#[test]
fn rests_are_divided_by_pivots_in_rounds() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    // Now and then the sample has enough of the close keys to divide them.
    let mut has_rests = |kinds: u32, levels: u32| {
        let close = |i: u32, random: &mut StdRng| {
            if i.is_multiple_of(4) { (1 << 31) + random.random_range(0..kinds) } else { random.random() }
        };
        let keys: Vec<u32> = (0..6000).map(|i| close(i, &mut random)).collect();
        assert!(keys.len() / 4 > 6 * BUCKET);
        let what = format!("one in four of {kinds} kinds close together, {levels} levels");
        let of_values = check_with_values::<u32, u32>(&keys, false, seed, levels, 8, &what).expect("keys are divided");
        let wide: Vec<u64> = keys.iter().map(|&key| (key as u64) << 16).collect();
        let of_keys = check(&wide, seed, levels, 8, &what).expect("keys are divided");
        [of_values, of_keys].map(|[rests, _]| rests > 0)
    };
    for kinds in [1, 2, 5, 100, 1000] {
        let found = (0..8).fold([false; 2], |found, i| {
            let now = has_rests(kinds, 2 + i % 2);
            [found[0] || now[0], found[1] || now[1]]
        });
        assert_eq!(found, [true; 2], "{kinds} kinds, seed {seed}");
    }
}

/// In every round, most samples of the rest are its least key, which becomes the pivot. So the rounds hardly divide the
/// rest. One block then merges it in several passes. In each pass, threads read what others wrote in the pass before.
#[test]
fn what_rounds_leave_of_a_rest_is_merged_in_several_passes() {
    const LEFT: usize = 6 * BUCKET + 5;
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    let first = 0x5a00_0000;
    let mut rest: Vec<u32> = (0..LEFT).map(|_| first + 100 + random.random_range(0..100)).collect();
    for round in (0..MOST_ROUNDS).rev() {
        // One more than half of a sample.
        let len = rest.len() + 17;
        let sampled: Vec<usize> = (0..17).map(|i| (len * (2 * i + 1)) >> 6).collect();
        let mut others = rest.into_iter();
        rest = (0..len)
            .map(|i| if sampled.contains(&i) { first + round } else { others.next().expect("there are others") })
            .collect();
    }
    // Whether one block is left with most keys of the rest, if other keys are more than `distance` away: usually too
    // far to share a digit with the rest, but not a segment.
    let mut is_left = |seed: u64, distance: u32| {
        let mut far = || loop {
            let key: u32 = random.random();
            if key.abs_diff(first) > distance {
                return key;
            }
        };
        let keys = rest.iter().flat_map(|&key| [key, far(), far(), far()]);
        // Keys are in descending order if the seed is odd.
        let keys: Vec<u32> = keys.map(|key| if seed % 2 == 1 { !key } else { key }).collect();
        check_with_values::<u32, u32>(&keys, false, seed, 2, 8, "least keys as samples").expect("keys are divided");
        let result = run_with_values::<u32, u32>(seed, &keys, false, 2, (8, 1)).expect("kernels are right");
        let ((_, [.., tasks]), _) = result.expect("keys are divided");
        // Three phases of at least as many tiles in each round.
        tasks > 3 * MOST_ROUNDS * (LEFT / BUCKET) as u32
    };
    for seed in [seed, seed ^ 1] {
        assert!((16..26).any(|log| is_left(seed, 1 << log)), "seed {seed}");
    }
}

/// All blocks find that a digit has too many keys, and move none.
#[test]
fn a_single_division_is_given_up_if_a_digit_has_too_many_keys() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    let draw = |i: u32| if i.is_multiple_of(10) { (1 << 31) + i } else { random.random() };
    let keys: Vec<u32> = (0..3000).map(draw).collect();
    assert!(keys.len() / 10 > BUCKET);
    assert_eq!(check(&keys, seed, 1, 8, "one in ten close together"), None, "seed {seed}");
}

/// No bin has more keys than a window, so that windows are sorted at once. But each bin lies across two windows, and
/// sorting them once is not enough for half of the bins.
#[test]
fn bins_are_made_finer_after_windows_have_been_sorted() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    // The first bin and the last one have two keys less.
    let mut key = |i: u32| (i + 2) / VT as u32 * (1 << 27) + random.random_range(0..1 << 18);
    let mut keys: Vec<u32> = (0..28 * VT as u32 + 3).map(&mut key).collect();
    rand::seq::SliceRandom::shuffle(&mut keys[..], &mut random);
    assert_eq!(check(&keys, seed, 1, 8, "full bins"), Some([0, 0]), "seed {seed}");
}

#[test]
fn keys_are_divided_if_they_are_spread_evenly_and_in_no_order() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    // Keys and the sample are random, so that a few draws in a hundred go the other way.
    let mut check = |name: &str, levels: u32, is_divided: bool, key: Draw| {
        let mut is_as_expected = |seed: u64| {
            let keys: Vec<u32> = (0..3000).map(|i| key(&mut random, i)).collect();
            let result =
                run(seed, &keys, false, levels, (8, 0)).unwrap_or_else(|fault| panic!("{name}, seed {seed}: {fault}"));
            if let Some((sorted, _)) = &result {
                assert_eq!(*sorted, common::sorted(keys), "{name}, seed {seed}");
            }
            result.is_some() == is_divided
        };
        let is_one_as_expected = (0..5).any(|draw| is_as_expected(seed.wrapping_add(draw)));
        assert!(is_one_as_expected, "{name}, {levels} levels, {is_divided}, seed {seed}");
    };
    check("uniform", 2, true, |random, _| random.random());
    check("in a range", 2, true, |random, _| random.random_range(1_000_000..1_900_000));
    check("of few values", 2, true, |random, _| random.random_range(0..9) << 20);
    check("from 0 to 1", 2, true, |random, _| random.random::<f32>().to_bits());
    check("one bucket a bit", 2, true, |random, _| (random.random::<u32>() | 1 << 31) >> random.random_range(0..32));
    let nearly_ascending: Draw = |random, i| if i % 7 == 0 { random.random() } else { i * (u32::MAX / 3000) };
    check("ascending but for some", 2, true, nearly_ascending);
    let descending_runs: Draw = |_, i| (29 - i % 30) << 27 | i;
    check("in descending runs", 2, true, descending_runs);
    check("in order", 2, false, |_, i| i << 20);
    // Few keys lie outside of a narrow range: the digits divide that range.
    let outliers: Draw = |random, i| if i % 200 == 0 { random.random() } else { 1 << 30 | i << 8 };
    check("ascending in a narrow range but for few", 2, true, outliers);
    let many_outliers: Draw = |random, i| if i % 10 == 0 { random.random() } else { 1 << 30 | i << 8 };
    check("ascending in a narrow range but for some", 2, false, many_outliers);
    // Skewed keys are divided if there are enough levels, unless they are too skewed.
    let bits_anded: Draw = |random, _| (0..3).fold(u32::MAX, |bits, _| bits & random.random::<u32>());
    for (levels, is_divided) in [(4, true), (3, false), (2, false), (1, false)] {
        check("bits of three words ANDed", levels, is_divided, bits_anded);
    }
    check("uniform", 1, true, |random, _| random.random());
    check("in descending runs", 1, false, descending_runs);
    let bits_ored: Draw = |random, _| (0..3).fold(0, |bits, _| bits | random.random::<u32>());
    check("bits of three words ORed", 4, true, bits_ored);
    let at_both_ends: Draw = |random, i| {
        let bits = (0..5).fold(u32::MAX, |bits, _| bits & random.random::<u32>());
        if i.is_multiple_of(2) { bits } else { !bits }
    };
    check("bits of five words ANDed, or ORed", 4, false, at_both_ends);
}

/// Keys that are the AND of `words` random words each.
fn bits_anded(words: u32, len: usize, random: &mut StdRng) -> Vec<u32> {
    (0..len).map(|_| (0..words).fold(u32::MAX, |bits, _| bits & random.random::<u32>())).collect()
}

#[test]
fn long_buckets_are_sorted_by_larger_blocks() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    for words in 1..6 {
        let keys = bits_anded(words, 4000, &mut random);
        check(&keys, seed, 3, 8, &format!("bits of {words} words ANDed"));
        let keys: Vec<f32> = keys.into_iter().map(|key| (key as i32 >> 3) as f32).collect();
        check(&keys, seed ^ 1, 3, 8, &format!("floats of the bits of {words} words ANDed"));
    }
    // Some 300 keys are close together: too many for a bucket, and in one bin of a long one.
    for range in [1 << 22, 1 << 16, 100] {
        let close = |i: u32, random: &mut StdRng| {
            if i.is_multiple_of(10) { (1 << 31) + random.random_range(0..range) } else { random.random() }
        };
        let keys: Vec<u32> = (0..3000).map(|i| close(i, &mut random)).collect();
        let result = run(seed, &keys, false, 3, (8, 1))
            .unwrap_or_else(|fault| panic!("one in ten of {range}, seed {seed}: {fault}"));
        let (sorted, [.., long, _]) = result.expect("keys are divided");
        assert!(long > 0, "one in ten of {range}, seed {seed}");
        assert_eq!(sorted, common::sorted(keys), "one in ten of {range}, seed {seed}");
    }
}

#[test]
fn keys_that_one_division_is_enough_for_may_be_in_order() {
    let seed = fresh_seed();
    for n in [2, TILE, TILE + 1, 3000] {
        for out_of_order in [false, true] {
            let mut keys: Vec<u32> = (0..n as u32).map(|i| i * 7).collect();
            if out_of_order {
                // A key of the last tile, or keys across the boundary of two tiles.
                let at = if n == TILE + 1 { TILE } else { n - 1 };
                keys.swap(at - 1, at);
            }
            // If keys are not divided, `run` checks that they are in order or sorted by tiles.
            for descending in [false, true] {
                let result = run(seed, &keys, descending, 1, (8, 0));
                result.unwrap_or_else(|fault| panic!("n = {n}, out of order: {out_of_order}, seed {seed}: {fault}"));
            }
        }
    }
}

#[test]
fn keys_that_look_sorted_are_read_to_the_end_and_others_are_not() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    let ascending: Vec<u32> = (0..5000).map(|i| i * 3).collect();
    let descending: Vec<u32> = ascending.iter().rev().copied().collect();
    let mut out_of_order = ascending.clone();
    out_of_order.swap(4998, 4999);
    let uneven = bits_anded(3, 5000, &mut random);
    // Whether keys that are not divided have many descents, and whether they have an ascent.
    let many = |keys: &[u32]| {
        let mut emulator = Emulator::new(seed);
        // At one level, keys that are mostly in order are not divided.
        let plan = plan(keys.len(), 1, 1, false);
        let [words, found] = lists(&mut emulator, plan);
        let keys = emulator.buffer(keys);
        let starts = emulator.uninit::<usize>(MAX_RUNS as usize);
        let job = Job::new(words.as_mut_ptr(), found.as_mut_ptr(), plan);
        let (none, random) = (Coding::NONE, seed);
        // SAFETY: `job` describes the lists of a plan for the 5000 keys. The launch has `CHOOSE_SHARED_BYTES`.
        emulator.launch("choose_digits", 1, CHOOSE_THREADS, CHOOSE_SHARED_BYTES, || unsafe {
            let level = LevelParameters { number: 0, single: 8, cleared: 0, always_divides: 0, random };
            choose_digits(job, keys.as_mut_ptr(), none, level)
        })?;
        // SAFETY: `keys` has 5000 keys, `found` has `DETECTION_WORDS` words, and `starts` has capacity for `MAX_RUNS`
        // indices. The launch has `DETECTION_SHARED_BYTES`.
        emulator.launch("detect_runs", 2, 64, DETECTION_SHARED_BYTES, || unsafe {
            detect_runs::<u32>(keys.as_ptr(), 5000, Coding::NONE, 0, 0, found.as_mut_ptr(), starts.as_mut_ptr())
        })?;
        let [_, many, ascent, divided, ..] = emulator.read(found)?[..] else { panic!("there are six words") };
        assert_eq!(divided, 0, "seed {seed}");
        Ok::<_, Fault>((many > 0, ascent > 0))
    };
    let check = |keys: &[u32], expected: (bool, bool), what: &str| {
        let found = many(keys).unwrap_or_else(|fault| panic!("{what}, seed {seed}: {fault}"));
        assert_eq!(found, expected, "{what}, seed {seed}");
    };
    check(&ascending, (false, true), "ascending");
    check(&descending, (true, false), "descending");
    check(&out_of_order, (true, true), "ascending but for the last key");
    check(&uneven, (true, true), "bits of three words ANDed");
}
