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

mod common;
use common::*;
use cuda_std::emulator::{Buffer, Emulator, Fault};
use kernels_gpu::block::indexed_merge;
use kernels_gpu::block::tile;
use kernels_gpu::kernels::merge_pairs::merge_pairs;
use kernels_gpu::kernels::merge_path::{PATH_SHARED_BYTES, PATH_THREADS, merge_big, path_big};
use kernels_gpu::key::{Bits, Coding};
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

/// Runs `path_big` for the merge of two runs, given by their addresses and lengths.
fn find_splits<B: Bits>(
    emulator: &mut Emulator,
    (a, m): (*const B, usize),
    (b, n): (*const B, usize),
    splits: Buffer<usize>,
    tile_keys: usize,
    coding: Coding<B>,
) -> Result<(), Fault> {
    let tiles = (m + n).div_ceil(tile_keys);
    let blocks = tiles.div_ceil(PATH_THREADS as usize) as u32;
    // SAFETY: the caller passes `m` keys at `a`, `n` at `b` and capacity for `tiles` indices in `splits`. The launch
    // has one thread per tile, rounded up to whole blocks.
    emulator.launch("path_big", blocks, PATH_THREADS, PATH_SHARED_BYTES, || unsafe {
        path_big::<B>(a, m, b, n, splits.as_mut_ptr(), tiles, tile_keys, coding)
    })
}

/// Sorts keys that are in runs of `run` keys in the first or in the second of two arrays.
fn sort_runs<K: TestKey, const NT: usize, const VT: usize>(
    emulator: &mut Emulator,
    arrays: [Buffer<K::Bits>; 2],
    run: usize,
    in_second: bool,
) -> Result<Vec<K>, Fault> {
    let (d, tile_keys) = (arrays[0].len(), NT * VT);
    let splits = emulator.uninit::<usize>(d.div_ceil(tile_keys));
    let in_second = passes(d, run, in_second, |in_second, Siblings { begin, middle, end }| {
        let (from, to) = (arrays[usize::from(in_second)], arrays[usize::from(!in_second)]);
        let (a, b, c) = (from.as_ptr().wrapping_add(begin), from.as_ptr().wrapping_add(middle), to.as_mut_ptr());
        let (m, n, c) = (middle - begin, end - middle, c.wrapping_add(begin));
        let tiles = (m + n).div_ceil(tile_keys);
        find_splits(emulator, (a, m), (b, n), splits, tile_keys, K::coding())?;
        // SAFETY: A, B and C are ranges of `m`, `n` and `m + n` keys of the two arrays, and `find_splits` has written
        // `splits`. The launch has one block of `NT` threads per tile.
        emulator.launch("merge_big", tiles as u32, NT as u32, tile::shared_bytes::<K::Bits>(tile_keys), || unsafe {
            merge_big::<K::Bits, NT, VT>(a, m, b, n, c, splits.as_ptr(), K::coding())
        })
    })?;
    store(emulator, arrays[usize::from(in_second)])
}

fn sort<K: TestKey, const NT: usize, const VT: usize>(seed: u64, keys: &[K]) -> Result<Vec<K>, Fault> {
    let mut emulator = Emulator::new(seed);
    let arrays = [load(&mut emulator, keys), emulator.uninit(keys.len())];
    sort_runs::<K, NT, VT>(&mut emulator, arrays, 1, false)
}

/// The same passes with `merge_pairs` instead of `merge_big`: the values are the keys' indices.
fn sort_pairs<K: TestKey, const NT: usize, const VT: usize>(
    seed: u64,
    keys: &[K],
) -> Result<(Vec<K>, Vec<u32>), Fault> {
    let (d, tile_keys) = (keys.len(), NT * VT);
    let mut emulator = Emulator::new(seed);
    let arrays = [load(&mut emulator, keys), emulator.uninit(d)];
    let values = [emulator.buffer(&(0..d as u32).collect::<Vec<u32>>()), emulator.uninit(d)];
    let splits = emulator.uninit::<usize>(d.div_ceil(tile_keys));
    let in_second = passes(d, 1, false, |in_second, Siblings { begin, middle, end }| {
        let (from, to) = (usize::from(in_second), usize::from(!in_second));
        let (keys, from_values) = (arrays[from].as_ptr(), values[from].as_ptr());
        let (a, a_values) = (keys.wrapping_add(begin), from_values.wrapping_add(begin));
        let (b, b_values) = (keys.wrapping_add(middle), from_values.wrapping_add(middle));
        let c = arrays[to].as_mut_ptr().wrapping_add(begin);
        let c_values = values[to].as_mut_ptr().wrapping_add(begin);
        let (m, n) = (middle - begin, end - middle);
        let tiles = (m + n).div_ceil(tile_keys);
        find_splits(&mut emulator, (a, m), (b, n), splits, tile_keys, K::coding())?;
        let bytes = indexed_merge::shared_bytes::<K::Bits>(tile_keys, VT);
        // SAFETY: A, B and C are ranges of `m`, `n` and `m + n` keys and values of the two arrays, and `find_splits`
        // has written `splits`. The launch has one block of `NT` threads per tile.
        emulator.launch("merge_pairs", tiles as u32, NT as u32, bytes, || unsafe {
            merge_pairs::<K::Bits, u32, NT, VT>(
                a,
                a_values,
                m,
                b,
                b_values,
                n,
                c,
                c_values,
                splits.as_ptr(),
                K::coding(),
            )
        })
    })?;
    let sorted = usize::from(in_second);
    Ok((store(&mut emulator, arrays[sorted])?, emulator.read(values[sorted])?))
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
    sort_runs::<K, NT, VT>(&mut emulator, arrays, run, in_second)
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
