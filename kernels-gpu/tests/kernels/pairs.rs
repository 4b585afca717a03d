//! Merges with values, and batches of any lengths, in the emulator against the standard library's stable sort.
//!
//! Most tests use smaller tiles than the library, so that small inputs have many tiles: 32 or 96 threads of 3 keys.

use crate::common::*;
use cuda_std::Word;
use cuda_std::emulator::{Buffer, Emulator, Fault};
use kernels_gpu::block::indexed_merge;
use kernels_gpu::elements::{Elements, Slice};
use kernels_gpu::kernels::merge_batch::{merge_batch, pairs_per_block};
use kernels_gpu::kernels::merge_ragged::{self, RaggedRuns, merge_ragged, path_ragged};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// A value type. `numbered` gives each value of a test a number of its own.
trait Value: Word + PartialEq + std::fmt::Debug {
    fn numbered(i: usize) -> Self;
}
impl Value for () {
    fn numbered(_: usize) -> Self {}
}
impl Value for u32 {
    fn numbered(i: usize) -> Self {
        i as u32
    }
}
impl Value for u64 {
    fn numbered(i: usize) -> Self {
        (i as u64) << 32 | 7
    }
}

/// Keys with values: one run, or many contiguous runs.
#[derive(Clone)]
struct Input<K, V> {
    keys: Vec<K>,
    values: Vec<V>,
    offsets: Vec<usize>,
}

impl<K: TestKey, V: Value> Input<K, V> {
    fn new(lengths: &[usize], keys: Keys, seed: u64, first_value: usize) -> Self {
        let mut input = Self { keys: vec![], values: vec![], offsets: vec![0] };
        for (p, &len) in lengths.iter().enumerate() {
            input.keys.extend(keys.ascending::<K>(len, seed ^ (p as u64) << 10));
            input.offsets.push(input.keys.len());
        }
        input.values = (0..input.keys.len()).map(|i| V::numbered(first_value + i)).collect();
        input
    }

    fn run(&self, p: usize) -> impl Iterator<Item = (K, V)> {
        let range = self.offsets[p]..self.offsets[p + 1];
        self.keys[range.clone()].iter().copied().zip(self.values[range].iter().copied())
    }
}

/// The oracle: A followed by B of each pair, sorted stably by key.
fn expected<K: TestKey, V: Value>(a: &Input<K, V>, b: &Input<K, V>) -> (Vec<K>, Vec<V>) {
    let pairs = (0..a.offsets.len() - 1).flat_map(|p| {
        let mut both: Vec<(K, V)> = a.run(p).chain(b.run(p)).collect();
        both.sort_by(|x, y| x.0.compare(&y.0));
        both
    });
    pairs.unzip()
}

/// A, B and C in the emulator's memory.
struct Arrays<K: TestKey, V: Value> {
    a: Elements<K::Bits, V>,
    b: Elements<K::Bits, V>,
    c: (Buffer<K::Bits>, Buffer<V>),
}

impl<K: TestKey, V: Value> Arrays<K, V> {
    fn of(emulator: &mut Emulator, a: &Input<K, V>, b: &Input<K, V>) -> Self {
        let total = a.keys.len() + b.keys.len();
        let [a, b] = [a, b].map(|input| elements_from(load(emulator, &input.keys), emulator.buffer(&input.values), 0));
        Self { a, b, c: (emulator.uninit(total), emulator.uninit(total)) }
    }

    fn out(&self) -> Elements<K::Bits, V> {
        elements_from(self.c.0, self.c.1, 0)
    }

    fn read(self, emulator: &mut Emulator) -> Result<(Vec<K>, Vec<V>), Fault> {
        Ok((store(emulator, self.c.0)?, emulator.read(self.c.1)?))
    }
}

fn run_pairs<K: TestKey, V: Value, const NT: usize, const VT: usize>(
    seed: u64,
    a: &Input<K, V>,
    b: &Input<K, V>,
) -> Result<(Vec<K>, Vec<V>), Fault> {
    let mut emulator = Emulator::new(seed);
    let arrays = Arrays::of(&mut emulator, a, b);
    let (a, b) = (Slice { at: arrays.a, len: a.keys.len() }, Slice { at: arrays.b, len: b.keys.len() });
    run::merge_in_two_phases::<K, V, NT, VT>(&mut emulator, a, b, arrays.out())?;
    arrays.read(&mut emulator)
}

/// Fixed lengths.
fn run_batch<K: TestKey, V: Value, const NT: usize, const VT: usize>(
    seed: u64,
    a: &Input<K, V>,
    b: &Input<K, V>,
    (pairs, d, a_len): (usize, usize, usize),
) -> Result<(Vec<K>, Vec<V>), Fault> {
    let mut emulator = Emulator::new(seed);
    let arrays = Arrays::of(&mut emulator, a, b);
    let grid = pairs.div_ceil(pairs_per_block(NT * VT, d)) as u32;
    let bytes = indexed_merge::shared_bytes::<K::Bits>(NT * VT, VT);
    // SAFETY: the buffers have `pairs * a_len` and `pairs * (d - a_len)` keys and values, and capacity for `pairs * d`.
    // The launch has the shared memory of a tile.
    emulator.launch("merge_batch", grid, NT as u32, bytes, || unsafe {
        merge_batch::<_, _, NT, VT>(arrays.a, arrays.b, arrays.out(), pairs, d, a_len, K::coding())
    })?;
    arrays.read(&mut emulator)
}

fn run_ragged<K: TestKey, V: Value, const NT: usize, const VT: usize>(
    seed: u64,
    a: &Input<K, V>,
    b: &Input<K, V>,
) -> Result<(Vec<K>, Vec<V>), Fault> {
    let (pairs, total, tile_keys) = (a.offsets.len() - 1, a.keys.len() + b.keys.len(), NT * VT);
    let tiles = total.div_ceil(tile_keys);
    let mut emulator = Emulator::new(seed);
    let arrays = Arrays::of(&mut emulator, a, b);
    let [a, b] = [(arrays.a, a), (arrays.b, b)]
        .map(|(at, input)| RaggedRuns { at, offsets: emulator.buffer(&input.offsets).as_ptr() });
    let keys_of = |runs: RaggedRuns<K::Bits, V>| {
        let at = Elements { keys: runs.at.keys, values: std::ptr::null_mut::<()>() };
        RaggedRuns { at, offsets: runs.offsets }
    };
    let splits = emulator.uninit::<usize>(2 * tiles);
    if tiles > 0 {
        // SAFETY: the buffers have `pairs + 1` offsets, the numbers of keys as the last offsets, and capacity for
        // `2 * tiles` numbers. The launch has one thread per tile, rounded up to whole blocks.
        emulator.launch("path_ragged", tiles.div_ceil(32) as u32, 32, 0, || unsafe {
            path_ragged(keys_of(a), keys_of(b), pairs, splits.as_mut_ptr(), tiles, tile_keys, K::coding())
        })?;
        let bytes = merge_ragged::shared_bytes::<K::Bits>(tile_keys, VT, size_of::<V>() > 0);
        // SAFETY: the buffers have `pairs + 1` offsets, keys and values up to the last offsets, and capacity for
        // `total`; `path_ragged` has written `splits`. The launch has one block of `NT` threads per tile, with its
        // shared memory.
        emulator.launch("merge_ragged", tiles as u32, NT as u32, bytes, || unsafe {
            merge_ragged::<_, _, NT, VT>(a, b, pairs, arrays.out(), total, splits.as_ptr(), K::coding())
        })?;
    }
    arrays.read(&mut emulator)
}

fn verify<K: TestKey, V: Value>(what: &str, found: Result<(Vec<K>, Vec<V>), Fault>, expected: (Vec<K>, Vec<V>)) {
    let found = found.unwrap_or_else(|fault| panic!("{} {what}: {fault}", K::NAME));
    assert!(bits(&found.0) == bits(&expected.0), "keys, {} {what}", K::NAME);
    assert!(found.1 == expected.1, "values, {} {what}", K::NAME);
}

#[test]
fn merge_with_values_is_stable() {
    fn all<K: TestKey, V: Value>() {
        for (m, n) in [(0, 0), (0, 5), (5, 0), (96, 96), (95, 96), (97, 96), (200, 3), (3, 200), (150, 333)] {
            for keys in Keys::ALL {
                let seed = fresh_seed();
                let a = Input::<K, V>::new(&[m], keys, seed, 0);
                let b = Input::<K, V>::new(&[n], keys, seed ^ 1, 10_000);
                let what = format!("{m} + {n}, {keys:?}, seed {seed}");
                verify(&what, run_pairs::<_, _, 32, 3>(seed, &a, &b), expected(&a, &b));
            }
        }
    }
    for_all_types!(pairs_of_both_widths());
    fn pairs_of_both_widths<K: TestKey>() {
        all::<K, u32>();
        all::<K, u64>();
    }
}

#[test]
fn batches_of_every_d() {
    fn all<K: TestKey, V: Value>() {
        for d in (1..=20).chain([31, 32, 33, 64, 100, 255, 257]) {
            for a_len in [0, 1, d / 2, d] {
                for pairs in [1, 5, 20, 300 / d + 1] {
                    let (seed, keys) = (fresh_seed(), [Keys::Any, Keys::Few, Keys::Equal][d % 3]);
                    let a = Input::<K, V>::new(&vec![a_len; pairs], keys, seed, 0);
                    let b = Input::<K, V>::new(&vec![d - a_len; pairs], keys, seed ^ 1, 1 << 20);
                    let found = run_batch::<_, _, 96, 3>(seed, &a, &b, (pairs, d, a_len));
                    let what = format!("{pairs} pairs, d {d}, a_len {a_len}, {keys:?}, seed {seed}");
                    verify(&what, found, expected(&a, &b));
                }
            }
        }
    }
    fn all_widths<K: TestKey>() {
        all::<K, ()>();
        all::<K, u32>();
        all::<K, u64>();
    }
    for_all_types!(all_widths());
}

#[test]
fn ragged_batches() {
    fn all<K: TestKey, V: Value>() {
        let seed = fresh_seed();
        let mut random = StdRng::seed_from_u64(seed);
        let random_lengths = |random: &mut StdRng, pairs: usize, most: usize| -> Vec<usize> {
            (0..pairs).map(|_| random.random_range(0..=most)).collect()
        };
        let mut shapes: Vec<(Vec<usize>, Vec<usize>)> = vec![
            (vec![0], vec![0]),
            (vec![7], vec![0]),
            (vec![0, 0, 0, 5, 0, 0], vec![0, 0, 0, 0, 0, 3]),
            (vec![300, 0, 1], vec![400, 0, 1]),
            // Thousands of empty pairs between two long ones.
            ([vec![40], vec![0; 3000], vec![70]].concat(), [vec![50], vec![0; 3000], vec![60]].concat()),
            (vec![96; 5], vec![96; 5]),
            (vec![1; 200], vec![0; 200]),
        ];
        for (pairs, most) in [(3, 500), (40, 30), (300, 3), (100, 1)] {
            shapes.push((random_lengths(&mut random, pairs, most), random_lengths(&mut random, pairs, most)));
        }
        for (i, (a_lengths, b_lengths)) in shapes.iter().enumerate() {
            for keys in Keys::ALL {
                let a = Input::<K, V>::new(a_lengths, keys, seed, 0);
                let b = Input::<K, V>::new(b_lengths, keys, seed ^ 1, 1 << 20);
                let what = format!("shape {i}, {keys:?}, seed {seed}");
                verify(&what, run_ragged::<_, _, 32, 3>(seed, &a, &b), expected(&a, &b));
            }
        }
    }
    fn all_widths<K: TestKey>() {
        all::<K, ()>();
        all::<K, u32>();
        all::<K, u64>();
    }
    for_all_types!(all_widths());
}

#[test]
fn unsorted_input_stays_in_bounds() {
    fn check<V: Value>(round: usize) {
        let seed = fresh_seed();
        let lengths = |salt: usize| -> Vec<usize> { (0..9).map(|p| (p * 37 + round * 11 + salt) % 90).collect() };
        let mut a = Input::<u32, V>::new(&lengths(0), Keys::Any, seed, 0);
        let mut b = Input::<u32, V>::new(&lengths(41), Keys::Any, seed ^ 1, 0);
        a.keys.reverse();
        b.keys = Keys::Any.random(b.keys.len(), seed);
        let total = a.keys.len() + b.keys.len();
        let found = [run_ragged::<_, _, 32, 3>(seed, &a, &b), run_pairs::<_, _, 32, 3>(seed, &a, &b)];
        for found in found {
            let found = found.unwrap_or_else(|fault| panic!("{fault}, seed {seed}"));
            assert_eq!((found.0.len(), found.1.len()), (total, total));
        }
    }
    for round in 0..30 {
        check::<()>(round);
        check::<u32>(round);
    }
}

#[test]
fn the_tiles_that_ship() {
    fn all<K: TestKey, V: Value, const NT: usize, const VT: usize, const RAGGED_NT: usize, const RAGGED_VT: usize>() {
        let seed = fresh_seed();
        let tile = NT * VT;
        for keys in [Keys::Any, Keys::Few] {
            let a = Input::<K, V>::new(&[tile + 3], keys, seed, 0);
            let b = Input::<K, V>::new(&[tile / 2], keys, seed ^ 1, 1 << 20);
            let what = format!("{keys:?}, seed {seed}");
            verify(&what, run_pairs::<_, _, NT, VT>(seed, &a, &b), expected(&a, &b));
            for d in [4, 100, 1024] {
                let (pairs, a_len) = (tile / d + 2, d / 2);
                let a = Input::<K, V>::new(&vec![a_len; pairs], keys, seed, 0);
                let b = Input::<K, V>::new(&vec![d - a_len; pairs], keys, seed ^ 1, 1 << 20);
                let found = run_batch::<_, _, NT, VT>(seed, &a, &b, (pairs, d, a_len));
                verify(&format!("d {d}, {what}"), found, expected(&a, &b));
            }
            // More pairs than a tile lists, few pairs, and a long pair.
            for (a_lengths, b_lengths) in
                [(vec![1; 3000], vec![2; 3000]), (vec![70; 90], vec![40; 90]), (vec![0, 9000, 3], vec![4, 5000, 0])]
            {
                let a = Input::<K, V>::new(&a_lengths, keys, seed, 0);
                let b = Input::<K, V>::new(&b_lengths, keys, seed ^ 1, 1 << 20);
                let found = run_ragged::<_, _, RAGGED_NT, RAGGED_VT>(seed, &a, &b);
                verify(&format!("ragged, {what}"), found, expected(&a, &b));
            }
        }
    }
    use kernels_gpu::tuning::ROW;
    fn four<K: TestKey, V: Value>() {
        all::<
            K,
            V,
            { ROW.indexed.of(4, 0).threads },
            { ROW.indexed.of(4, 0).items_per_thread },
            { ROW.ragged.of(4, 0).threads },
            { ROW.ragged.of(4, 0).items_per_thread },
        >();
    }
    fn eight<K: TestKey, V: Value>() {
        all::<
            K,
            V,
            { ROW.indexed.of(8, 0).threads },
            { ROW.indexed.of(8, 0).items_per_thread },
            { ROW.ragged.of(8, 0).threads },
            { ROW.ragged.of(8, 0).items_per_thread },
        >();
    }
    four::<u32, u32>();
    four::<i32, u64>();
    four::<f32, u32>();
    eight::<u64, u64>();
    eight::<i64, u32>();
    eight::<f64, u64>();
}
