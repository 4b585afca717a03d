//! The course's sort in the emulator, against the standard library's stable sort.
//!
//! Question 3 of the course asks for a sort that loops over calls of `pathBig_k` and `mergeBig_k`. A pass merges
//! sibling runs from one array to another, first of 1 key, then of 2, 4 and so on:
//!
//! ```text
//!   run 1   5│2│9│1│7│3│8       path_big and merge_big for each pair of siblings
//!   run 2   2 5│1 9│3 7│8       a last run without a sibling is merged with an empty run, which copies it
//!   run 4   1 2 5 9│3 7 8
//!           1 2 3 5 7 8 9       d keys: ceil(log2 d) passes
//! ```
//!
//! The kernels merge one pair each, so that every pair of siblings takes two launches.
//! `cargo bench -p benches --bench sort` measures the same passes on a GPU, as rows `u32-course`, beside the sort in
//! use.

use crate::common::*;
use cuda_std::Word;
use cuda_std::emulator::{Buffer, Emulator, Fault};
use kernels_gpu::elements::Slice;
use kernels_gpu::textbook::merge_small_batch::{self, merge_small_batch};

/// The indices of two sibling runs: A is `begin .. middle`, and B is `middle .. end`.
#[derive(Clone, Copy)]
struct Siblings {
    begin: usize,
    middle: usize,
    end: usize,
}

/// The passes over `d` keys in runs of `run` keys. Calls `merge` for each pair of siblings, with whether they are in
/// the second of the two arrays. Returns whether the sorted keys are in the second array.
fn passes(
    d: usize,
    mut run: usize,
    mut in_second: bool,
    mut merge: impl FnMut(bool, Siblings) -> Result<(), Fault>,
) -> Result<bool, Fault> {
    while run < d {
        for begin in (0..d).step_by(2 * run) {
            let (middle, end) = ((begin + run).min(d), (begin + 2 * run).min(d));
            merge(in_second, Siblings { begin, middle, end })?;
        }
        in_second = !in_second;
        run *= 2;
    }
    Ok(in_second)
}

/// Sorts keys in runs of `run` keys, in the first or in the second of two arrays, and moves their values along. Returns
/// the index of the array with the result.
fn sort_runs<K: TestKey, V: Word, const NT: usize, const VT: usize>(
    emulator: &mut Emulator,
    arrays: [(Buffer<K::Bits>, Buffer<V>); 2],
    run: usize,
    in_second: bool,
) -> Result<usize, Fault> {
    let in_second = passes(arrays[0].0.len(), run, in_second, |in_second, Siblings { begin, middle, end }| {
        let (from, to) = (arrays[usize::from(in_second)], arrays[usize::from(!in_second)]);
        let run = |begin, end| Slice { at: elements_from(from.0, from.1, begin), len: end - begin };
        let c = elements_from(to.0, to.1, begin);
        run::merge_in_two_phases::<K, V, NT, VT>(emulator, run(begin, middle), run(middle, end), c)
    })?;
    Ok(usize::from(in_second))
}

/// As [`sort_runs`], for keys alone, which it returns.
fn sort_runs_of_keys<K: TestKey, const NT: usize, const VT: usize>(
    emulator: &mut Emulator,
    arrays: [Buffer<K::Bits>; 2],
    run: usize,
    in_second: bool,
) -> Result<Vec<K>, Fault> {
    let with_nothing = arrays.map(|keys| (keys, emulator.uninit::<()>(keys.len())));
    let sorted = sort_runs::<K, (), NT, VT>(emulator, with_nothing, run, in_second)?;
    store(emulator, arrays[sorted])
}

fn sort<K: TestKey, const NT: usize, const VT: usize>(seed: u64, keys: &[K]) -> Result<Vec<K>, Fault> {
    let mut emulator = Emulator::new(seed);
    let arrays = [load(&mut emulator, keys), emulator.uninit(keys.len())];
    sort_runs_of_keys::<K, NT, VT>(&mut emulator, arrays, 1, false)
}

/// The same passes with values: each key takes its index along.
fn sort_pairs<K: TestKey, const NT: usize, const VT: usize>(
    seed: u64,
    keys: &[K],
) -> Result<(Vec<K>, Vec<u32>), Fault> {
    let d = keys.len();
    let mut emulator = Emulator::new(seed);
    let values = emulator.buffer(&(0..d as u32).collect::<Vec<u32>>());
    let arrays = [(load(&mut emulator, keys), values), (emulator.uninit(d), emulator.uninit(d))];
    let sorted = sort_runs::<K, u32, NT, VT>(&mut emulator, arrays, 1, false)?;
    Ok((store(&mut emulator, arrays[sorted].0)?, emulator.read(arrays[sorted].1)?))
}

/// Sorts a power of two of keys: runs of up to 1024 keys by the batch kernel of question 5, and then by [`sort_runs`].
///
/// The batch kernel takes all A from one array and all B from another. Run i of the first half and run i of the second
/// are therefore siblings. This changes the order of equal keys, which is not observable for keys without values.
fn sort_by_batches<K: TestKey, const NT: usize, const VT: usize>(seed: u64, keys: &[K]) -> Result<Vec<K>, Fault> {
    let d = keys.len();
    let mut emulator = Emulator::new(seed);
    let arrays = [load(&mut emulator, keys), emulator.uninit(d)];
    let (mut run, mut in_second) = (1, false);
    while run < d && 2 * run <= merge_small_batch::MAX_D as usize {
        let (from, to) = (arrays[usize::from(in_second)], arrays[usize::from(!in_second)]);
        let (a, b, c) = (from.as_ptr(), from.as_ptr().wrapping_add(d / 2), to.as_mut_ptr());
        let (pairs, merged) = (d / (2 * run), 2 * run as u32);
        let block = merged.max(64);
        let grid = (pairs as u32).div_ceil(block / merged);
        let bytes = merge_small_batch::shared_bytes::<K::Bits>(block);
        // SAFETY: A and B are the two halves of an array of `d` keys, `pairs * run` each, and C has `d` keys. `block`
        // is a multiple of `merged`, and the launch has its shared memory.
        emulator.launch("merge_small_batch", grid, block, bytes, || unsafe {
            merge_small_batch::<K::Bits>(a, b, c, pairs, merged, run as u32, K::coding())
        })?;
        in_second = !in_second;
        run *= 2;
    }
    sort_runs_of_keys::<K, NT, VT>(&mut emulator, arrays, run, in_second)
}

/// Sizes at and around powers of two, and around tiles of 12 keys.
const SIZES: [usize; 22] = [0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 17, 23, 25, 31, 32, 33, 100, 129];

#[test]
fn keys_are_sorted() {
    fn check<K: TestKey>(seed: u64) {
        println!("{}, seed {seed}", K::NAME);
        for d in SIZES {
            for keys in Keys::ALL {
                let unsorted = keys.random::<K>(d, seed);
                let at = || format!("{d} keys, {keys:?}, {}, seed {seed}", K::NAME);
                let found = sort::<K, 4, 3>(seed, &unsorted).unwrap_or_else(|fault| panic!("{}: {fault}", at()));
                assert_eq!(bits(&found), bits(&sorted(unsorted)), "{}", at());
            }
        }
    }
    for_all_types!(check(fresh_seed()));
}

/// Several blocks of `path_big`, where each finds the splits of 64 tiles, and keys that are already in order.
#[test]
fn many_tiles_are_sorted() {
    let seed = fresh_seed();
    println!("seed {seed}");
    let random: Vec<f32> = Keys::Any.random(1500, seed);
    let ascending = sorted(random.clone());
    let descending: Vec<f32> = ascending.iter().rev().copied().collect();
    for keys in [&random, &ascending, &descending] {
        let found = emulated_sort(seed, keys);
        assert_eq!(bits(&found), bits(&ascending), "seed {seed}");
    }
}

fn emulated_sort(seed: u64, keys: &[f32]) -> Vec<f32> {
    sort::<f32, 4, 3>(seed, keys).unwrap_or_else(|fault| panic!("{fault}, seed {seed}"))
}

/// -NaN, -infinity, …, -0.0, 0.0, …, infinity, NaN: every key keeps its bits.
#[test]
fn nans_and_zeros_are_in_total_order() {
    let keys = [0.0, f32::NAN, -0.0, f32::INFINITY, -f32::NAN, 1.0, f32::NEG_INFINITY, -0.0, f32::NAN, -1.0, 0.0];
    let order = [-f32::NAN, f32::NEG_INFINITY, -1.0, -0.0, -0.0, 0.0, 0.0, 1.0, f32::INFINITY, f32::NAN, f32::NAN];
    assert_eq!(bits(&emulated_sort(fresh_seed(), &keys)), bits(&order));
}

/// With indices as values: equal keys keep the order of their indices.
#[test]
fn the_sort_is_stable() {
    fn check<K: TestKey>(seed: u64) {
        println!("{}, seed {seed}", K::NAME);
        for d in [0, 1, 2, 3, 12, 13, 33, 100, 129] {
            for keys in [Keys::Few, Keys::Equal] {
                let unsorted = keys.random::<K>(d, seed);
                let mut order: Vec<u32> = (0..d as u32).collect();
                order.sort_by(|&i, &j| unsorted[i as usize].compare(&unsorted[j as usize]));
                let at = || format!("{d} keys, {keys:?}, {}, seed {seed}", K::NAME);
                let (found, indices) =
                    sort_pairs::<K, 4, 3>(seed, &unsorted).unwrap_or_else(|fault| panic!("{}: {fault}", at()));
                assert_eq!(indices, order, "{}", at());
                assert_eq!(bits(&found), bits(&sorted(unsorted)), "{}", at());
            }
        }
    }
    for_all_types!(check(fresh_seed()));
}

#[test]
fn batches_sort_the_first_runs() {
    let seed = fresh_seed();
    println!("seed {seed}");
    for d in (0..=12).map(|lg| 1 << lg) {
        for keys in Keys::ALL {
            let unsorted = keys.random::<f64>(d, seed);
            let at = || format!("{d} keys, {keys:?}, seed {seed}");
            let found =
                sort_by_batches::<f64, 16, 7>(seed, &unsorted).unwrap_or_else(|fault| panic!("{}: {fault}", at()));
            assert_eq!(bits(&found), bits(&sorted(unsorted)), "{}", at());
        }
    }
}

/// ceil(log2 d) passes; each pass covers all keys.
#[test]
fn each_pass_merges_all_keys() {
    for d in 0..=200usize {
        let mut by_pass: Vec<Vec<Siblings>> = vec![];
        passes(d, 1, false, |in_second, siblings| {
            if by_pass.is_empty() || by_pass.len().is_multiple_of(2) != in_second {
                // The arrays alternate: a change of the source array is the next pass.
                by_pass.push(vec![]);
            }
            by_pass.last_mut().unwrap().push(siblings);
            Ok(())
        })
        .unwrap();
        assert_eq!(by_pass.len(), d.max(1).next_power_of_two().ilog2() as usize, "{d} keys");
        for (pass, all) in by_pass.iter().enumerate() {
            let run = 1 << pass;
            assert!(all.iter().all(|two| two.middle - two.begin <= run && two.end - two.middle <= run));
            let ends = all.iter().map(|two| two.end);
            assert!(all.iter().map(|two| two.begin).eq(std::iter::once(0).chain(ends).take(all.len())), "{d} keys");
            assert_eq!(all.last().unwrap().end, d);
        }
    }
}
