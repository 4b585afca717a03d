//! The sort that divides, in the emulator, against the standard library's stable sort.

mod common;
use common::*;
use cuda_std::Word;
use cuda_std::emulator::{Emulator, Fault};
use kernels_gpu::key::{Bits, Coding};
use kernels_gpu::sort::block_sort;
use kernels_gpu::sort::detect_runs::DETECTION_WORDS;
use kernels_gpu::sort::divide::choose_digits::{CHOOSE_SHARED_BYTES, CHOOSE_THREADS, choose_digits};
use kernels_gpu::sort::divide::count_digits::{COUNT_SHARED_BYTES, count_digits};
use kernels_gpu::sort::divide::divide::{self, divide};
use kernels_gpu::sort::divide::place_buckets::{PLACE_SHARED_BYTES, PLACE_THREADS, place_buckets};
use kernels_gpu::sort::divide::sort_buckets::{self, sort_buckets};
use kernels_gpu::sort::divide::sort_rest::sort_rest;
use kernels_gpu::sort::divide::workspace::{HEAD_WORDS, Layout};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Threads of all blocks that divide and sort, keys of each in a tile, in a bucket.
const NT: usize = 32;
const TILE_VT: usize = 6;
const VT: usize = 7;
const TILE: usize = NT * TILE_VT;
const BUCKET: usize = NT * VT;

/// Sorted keys, and how many rests and failures there were.
type Sorted<K> = (Vec<K>, [u32; 2]);

/// How key `i` of an array is drawn.
type Draw = fn(&mut StdRng, u32) -> u32;

/// The sort as the host launches it, and how many rests and failures there were. `None` where the kernels have left the keys to
/// the passes of merges, which get them as they were.
fn run<K: TestKey>(
    seed: u64,
    keys: &[K],
    descending: bool,
    levels: u32,
    (single, divides): (u32, u32),
) -> Result<Option<Sorted<K>>, Fault>
where
    K::Bits: Bits,
{
    let (n, input) = (keys.len(), keys);
    let mut emulator = Emulator::new(seed);
    let bits: Vec<K::Bits> = keys.iter().map(|key| Word::from_register(key.to_register())).collect();
    let (keys, scratch) = (emulator.buffer(&bits), emulator.uninit::<K::Bits>(n));
    let layout = Layout::of(n, levels, TILE, BUCKET);
    let mut words: Vec<u32> = vec![0; HEAD_WORDS];
    words.resize(layout.words, u32::MAX);
    let words = emulator.buffer(&words);
    let coding = Coding::<K::Bits>::of::<K>(descending);
    let random = StdRng::seed_from_u64(seed).random();
    let at = words.as_mut_ptr();
    let found = emulator.buffer(&[0u32; DETECTION_WORDS]);
    let order = found.as_mut_ptr();
    for level in 0..levels {
        let (from, to) = if level % 2 == 0 { (keys, scratch) } else { (scratch, keys) };
        let Coding { always, when_negative } = if level == 0 { coding } else { Coding::NONE };
        let (from, to) = (from.as_mut_ptr(), to.as_mut_ptr());
        // SAFETY: the arguments here and below are those that the kernels' documentation asks for.
        emulator.launch("choose_digits", 1 + level.min(1), CHOOSE_THREADS, CHOOSE_SHARED_BYTES, || unsafe {
            let detects = 0;
            choose_digits::<_, TILE, BUCKET>(
                from,
                n,
                at,
                level,
                levels,
                always,
                when_negative,
                single,
                random,
                detects,
                divides,
                order,
            )
        })?;
        // SAFETY: as above.
        emulator.launch("count_digits", 3, NT as u32, COUNT_SHARED_BYTES, || unsafe {
            count_digits::<_, NT, TILE_VT, BUCKET>(from, n, at, level, levels, always, when_negative, order)
        })?;
        // SAFETY: as above.
        emulator.launch("place_buckets", 1 + level.min(1), PLACE_THREADS, PLACE_SHARED_BYTES, || unsafe {
            let decodes = u32::from(coding != Coding::NONE);
            place_buckets::<K::Bits, TILE, BUCKET>(n, at, level, levels, decodes, order)
        })?;
        // SAFETY: as above.
        emulator.launch("divide", 5, NT as u32, divide::shared_bytes::<K>(TILE), || unsafe {
            divide::<_, NT, TILE_VT, BUCKET>(from, to, n, at, level, levels, always, when_negative, order)
        })?;
    }
    let (at_keys, at_scratch) = (keys.as_mut_ptr(), scratch.as_mut_ptr());
    let Coding { always, when_negative } = coding;
    // SAFETY: as above.
    emulator.launch("sort_buckets", 4, NT as u32, sort_buckets::shared_bytes::<K>(NT, VT), || unsafe {
        sort_buckets::<_, NT, VT, TILE>(at_keys, at_scratch, n, at, levels, always, when_negative, order)
    })?;
    // SAFETY: as above.
    emulator.launch("sort_rest", 2, NT as u32, block_sort::shared_bytes::<K>(NT, VT), || unsafe {
        sort_rest::<_, NT, VT, TILE>(at_keys, at_scratch, n, at, levels, always, when_negative, order)
    })?;
    let words = emulator.read(words)?;
    let left = [words[HEAD_WORDS - 2], words[HEAD_WORDS - 1]];
    let sorted: Vec<K> =
        emulator.read(keys)?.into_iter().map(|bits: K::Bits| K::from_register(bits.to_register())).collect();
    if emulator.read(found)?[DETECTION_WORDS - 1] == 0 {
        assert!(self::bits(&sorted) == self::bits(input), "keys have been moved");
        return Ok(None);
    }
    Ok(Some((sorted, left)))
}

/// Sorts and compares; gives the numbers of rests and failures, or `None` where keys are not divided.
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
    Some(left)
}

fn all_distributions<K: TestKey>(seed: u64)
where
    K::Bits: Bits,
{
    for (i, keys) in Keys::ALL.into_iter().enumerate() {
        for n in [1, 2, 31, 223, 224, 225, 1000, 3000] {
            for levels in [1, 2, 3] {
                let seed = seed.wrapping_add(i as u64);
                check::<K>(&keys.random(n, seed), seed, levels, 4 + (seed % 100) as u32, &format!("{keys:?}"));
            }
        }
    }
}

#[test]
fn all_types_and_distributions_are_sorted() {
    let seed = fresh_seed();
    for_all_types!(all_distributions(seed));
}

#[test]
fn keys_that_divisions_do_not_spread_are_merged_in_the_end() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    // One bucket for each bit.
    let keys: Vec<u64> = (0..3000).map(|_| random.random::<u64>() >> random.random_range(0..64)).collect();
    check(&keys, seed, 3, 8, "one bucket a bit");
    let [rests, _] = check(&keys, seed, 2, 8, "one bucket a bit, divided twice").expect("keys are divided");
    assert!(rests > 0, "seed {seed}");
    assert_eq!(check(&keys, seed, 1, 8, "one bucket a bit, divided once"), None);
    // Most keys are in one bin of their bucket.
    let keys: Vec<u32> = (0..200).map(|i| if i < 100 { i << 25 } else { 7 + random.random_range(0..9000) }).collect();
    let [_, failures] = check(&keys, seed, 1, 8, "a full bin").expect("keys are divided");
    assert!(failures > 0, "seed {seed}");
}

#[test]
fn keys_are_divided_if_they_are_spread_evenly_and_in_no_runs() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    let mut is_divided = |name: &str, key: Draw| {
        let keys: Vec<u32> = (0..3000).map(|i| key(&mut random, i)).collect();
        let result = run(seed, &keys, false, 2, (8, 0)).unwrap_or_else(|fault| panic!("{name}, seed {seed}: {fault}"));
        if let Some((sorted, _)) = &result {
            assert_eq!(*sorted, common::sorted(keys), "{name}, seed {seed}");
        }
        result.is_some()
    };
    assert!(is_divided("uniform", |random, _| random.random()));
    assert!(is_divided("in a range", |random, _| random.random_range(1_000_000..1_900_000)));
    assert!(is_divided("of few values", |random, _| random.random_range(0..9) << 20));
    assert!(is_divided("from 0 to 1", |random, _| random.random::<f32>().to_bits()));
    assert!(!is_divided("bits ANDed", |random, _| (0..3).fold(u32::MAX, |bits, _| bits & random.random::<u32>())));
    assert!(!is_divided("one bucket a bit", |random, _| random.random::<u32>() >> random.random_range(0..32)));
    assert!(!is_divided("ascending but for some", |random, i| if i % 7 == 0 { random.random() } else { i << 20 }));
    assert!(!is_divided("in descending runs", |_, i| (29 - i % 30) << 27 | i));
}
