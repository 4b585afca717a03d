//! The merge sort in the emulator against the standard library's stable sort.

#[path = "../../tests/src/bank_conflicts.rs"]
mod bank_conflicts;
mod common;
use common::*;
use cuda_std::Word;
use cuda_std::emulator::{Buffer, Emulator, Fault};
use kernels_gpu::kernels::sort::block_sort;
use kernels_gpu::kernels::sort::detect_runs::{
    DETECTION_SHARED_BYTES, DETECTION_WORDS, copy_runs, detect_runs, reverse,
};
use kernels_gpu::kernels::sort::elements::Elements;
use kernels_gpu::kernels::sort::merge_pass::long_runs::{merge_long_runs, split_long_runs};
use kernels_gpu::kernels::sort::merge_pass::split_runs::split_runs;
use kernels_gpu::kernels::sort::merge_pass::{self, merge_runs};
use kernels_gpu::kernels::sort::payload::Payload;
use kernels_gpu::kernels::sort::payload::beside::Beside;
use kernels_gpu::kernels::sort::payload::nothing::Nothing;
use kernels_gpu::kernels::sort::payload::packed::Packed;
use kernels_gpu::kernels::sort::runs::{MAX_RUNS, Passes, Runs, Shuffle};
use kernels_gpu::key::Coding;
use kernels_gpu::thread::network::sort_registers;
use kernels_gpu::tuning;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// As much tolerance as small tiles of that shape can have, or none for every third seed.
fn rank_tolerance(seed: u64, shape: tuning::Tile, k: u32) -> u32 {
    if seed.is_multiple_of(3) { 0 } else { merge_pass::tile_keys(shape.keys(), shape.items_per_thread, k, 0) / 8 }
}

/// The sort as the host launches it: tiles, then passes between two buffers. Values are the indices in the input, if there are any.
fn run<K: TestKey, V: Word, P: Payload<K::Bits, V, NT, VT>, const NT: usize, const VT: usize>(
    seed: u64,
    keys: &[K],
    descending: bool,
) -> Result<(Vec<K>, Vec<u64>), Fault> {
    let (n, slots) = (keys.len(), NT * VT);
    let mut emulator = Emulator::new(seed);
    let bits: Vec<K::Bits> = keys.iter().map(|key| key.to_raw()).collect();
    let indices: Vec<V> = (0..n as u64).map(V::from_register).collect();
    let mut from = (emulator.buffer(&bits), emulator.buffer(&indices));
    let mut to = (emulator.uninit::<K::Bits>(n), emulator.uninit::<V>(n));
    let elements = |(keys, values): (Buffer<K::Bits>, Buffer<V>)| Elements {
        keys: keys.as_mut_ptr(),
        values: values.as_mut_ptr(),
    };
    let read = |emulator: &mut Emulator, from: (Buffer<K::Bits>, Buffer<V>)| -> Result<_, Fault> {
        let keys = emulator.read(from.0)?.into_iter().map(|bits| K::from_raw(bits)).collect();
        Ok((keys, emulator.read(from.1)?.into_iter().map(V::to_register).collect()))
    };
    if n == 0 {
        return read(&mut emulator, from);
    }
    let has_values = size_of::<V>() > 0;
    let coding = Coding::of::<K>(descending);
    let mut passes = Passes::of(n.div_ceil(slots));
    let decode = |passes: Passes| if passes.left() == 0 { coding } else { Coding::NONE };
    let first_decode = decode(passes);
    let order = emulator.buffer(&[0u32; DETECTION_WORDS]);
    let (begins, starts) =
        (emulator.uninit::<usize>(MAX_RUNS as usize), emulator.uninit::<usize>(MAX_RUNS as usize + 1));
    // SAFETY: the arguments here and below are those that the kernels' documentation asks for.
    emulator.launch("detect_runs", 3, 64, DETECTION_SHARED_BYTES, || unsafe {
        let equal_ascends = u32::from(has_values);
        let most_descents = MAX_RUNS - 1;
        let (order, begins) = (order.as_mut_ptr(), begins.as_mut_ptr());
        detect_runs(from.0.as_ptr(), n, coding, equal_ascends, most_descents, order, begins)
    })?;
    let found = order.as_mut_ptr();
    // SAFETY: as above.
    emulator.launch("reverse keys", 2, 32, 0, || unsafe { reverse::<_, 3>(from.0.as_mut_ptr(), n, found) })?;
    // SAFETY: as above.
    emulator.launch("copy_runs, keys", 2, 64, 0, || unsafe {
        let order = order.as_mut_ptr();
        let (from, to, begins, starts) = (from.0.as_ptr(), to.0.as_mut_ptr(), begins.as_ptr(), starts.as_mut_ptr());
        copy_runs(from, to, n, coding, order, begins, starts)
    })?;
    if has_values {
        // SAFETY: as above.
        emulator.launch("reverse values", 2, 32, 0, || unsafe { reverse::<_, 2>(from.1.as_mut_ptr(), n, found) })?;
        // SAFETY: as above.
        emulator.launch("copy_runs, values", 2, 64, 0, || unsafe {
            let arrays = (from.1, to.1);
            copy_values(n, arrays, order, begins, starts)
        })?;
    }
    let merge_bytes = merge_runs::shared_bytes(size_of::<K>(), size_of::<V>(), slots);
    if slots > (MAX_RUNS as usize / 2) * (VT - 1) + 32 {
        let tile_keys = merge_pass::tile_keys(slots, VT, MAX_RUNS, 0);
        let tiles = n.div_ceil(tile_keys as usize);
        let splits = emulator.uninit::<u32>(tiles * MAX_RUNS as usize);
        // SAFETY: as above.
        emulator.launch("split_long_runs", tiles.div_ceil(4) as u32, 64, 0, || unsafe {
            let (splits, starts, order) = (splits.as_mut_ptr(), starts.as_ptr(), order.as_mut_ptr());
            split_long_runs(to.0.as_ptr(), n, tile_keys, splits, starts, 2, order)
        })?;
        // SAFETY: as above.
        emulator.launch("merge_long_runs", 3, NT as u32, merge_bytes, || unsafe {
            let (splits, starts, order) = (splits.as_ptr(), starts.as_ptr(), order.as_mut_ptr());
            let (scratch, at) = (elements(to), elements(from));
            merge_long_runs::<_, V, P, NT, VT>(scratch, at, n, splits, starts, coding, order)
        })?;
    }
    // As the host does, so that the last pass ends in the first array.
    let input = from;
    if !passes.left().is_multiple_of(2) {
        std::mem::swap(&mut from, &mut to);
    }
    let (blocks, shared) = (n.div_ceil(slots) as u32, block_sort::shared_bytes(size_of::<K>(), size_of::<V>(), slots));
    let random = StdRng::seed_from_u64(seed).random();
    // SAFETY: as above.
    emulator.launch("block_sort", blocks, NT as u32, shared, || unsafe {
        let (from, to, order) = (elements(input), elements(from), order.as_mut_ptr());
        block_sort::block_sort::<_, V, P, NT, VT>(from, to, n, coding, first_decode, order, random)
    })?;
    let mut run = slots;
    let mut shuffle = Shuffle { runs: (n / run) as u32, random };
    while let Some(k) = passes.next() {
        let shape = tuning::Tile { threads: NT, items_per_thread: VT };
        let rank_tolerance = rank_tolerance(seed, shape, k);
        let runs = merge_pass::runs_in_tiles(n, run, k, shape, rank_tolerance);
        let runs = runs.shuffled(if has_values { Shuffle::NONE } else { shuffle });
        let splits = emulator.uninit::<u32>(runs.tile_count() * k as usize);
        let warps = runs.tile_count().div_ceil(3);
        // For every other seed the blocks that merge find their splits themselves.
        let splits = if seed.is_multiple_of(2) { splits.as_mut_ptr() } else { std::ptr::null_mut() };
        if !splits.is_null() {
            // SAFETY: as above.
            emulator.launch("split_runs", warps.div_ceil(2) as u32, 64, 0, || unsafe {
                split_runs(from.0.as_ptr(), runs, splits, 3, order.as_mut_ptr())
            })?;
        }
        // What is not shuffled for the splits is not for the merge.
        let runs = if has_values { runs.shuffled(shuffle) } else { runs };
        // For every third seed a block takes several tiles.
        let blocks = if seed.is_multiple_of(3) { runs.tile_count().div_ceil(3) } else { runs.tile_count() };
        // SAFETY: as above.
        emulator.launch("merge_runs", blocks as u32, NT as u32, merge_bytes, || unsafe {
            let (from, to, decode, order) = (elements(from), elements(to), decode(passes), order.as_mut_ptr());
            merge_runs::merge_runs::<_, V, P, NT, VT, true>(from, to, runs, splits, decode, order)
        })?;
        std::mem::swap(&mut from, &mut to);
        run *= k as usize;
        shuffle.runs = 0;
    }
    read(&mut emulator, input)
}

/// Copies values as the host has it done: as keys that are ordered bits.
///
/// # Safety
/// As for `copy_runs`. Values have 4 or 8 bytes.
unsafe fn copy_values<V: Word>(
    n: usize,
    (from, to): (Buffer<V>, Buffer<V>),
    order: Buffer<u32>,
    begins: Buffer<usize>,
    starts: Buffer<usize>,
) {
    let (order, begins, starts) = (order.as_mut_ptr(), begins.as_ptr(), starts.as_mut_ptr());
    // SAFETY: the caller's promise.
    unsafe {
        if size_of::<V>() == 4 {
            copy_runs::<u32>(from.as_ptr().cast(), to.as_mut_ptr().cast(), n, Coding::NONE, order, begins, starts);
        } else {
            copy_runs::<u64>(from.as_ptr().cast(), to.as_mut_ptr().cast(), n, Coding::NONE, order, begins, starts);
        }
    }
}

/// Sorts `input` with values, both ways, and compares keys and values with the standard library's.
fn check_pairs<K: TestKey, V: Word, P: Payload<K::Bits, V, NT, VT>, const NT: usize, const VT: usize>(
    input: &[K],
    what: &str,
    seed: u64,
) {
    let n = input.len();
    for descending in [false, true] {
        let at = || format!("{} {n} in tiles of {NT} x {VT}, {what}, seed {seed}, descending: {descending}", K::NAME);
        let (found, indices) =
            run::<K, V, P, NT, VT>(seed, input, descending).unwrap_or_else(|fault| panic!("{}: {fault}", at()));
        let mut expected: Vec<u64> = (0..n as u64).collect();
        expected.sort_by(|&x, &y| {
            let order = input[x as usize].compare(&input[y as usize]);
            if descending { order.reverse() } else { order }
        });
        assert!(indices == expected, "{}", at());
        let expected: Vec<K> = expected.iter().map(|&index| input[index as usize]).collect();
        assert!(bits(&found) == bits(&expected), "{}", at());
    }
}

fn check_all_pairs<K: TestKey, V: Word, P: Payload<K::Bits, V, NT, VT>, const NT: usize, const VT: usize>(
    sizes: &[usize],
) {
    for &n in sizes {
        for keys in Keys::ALL {
            let seed = fresh_seed();
            check_pairs::<K, V, P, NT, VT>(&keys.random::<K>(n, seed), &format!("{keys:?}"), seed);
        }
    }
}

const ROW: tuning::Row = tuning::ROW;

#[test]
fn values_move_with_their_keys_and_equal_keys_keep_their_order() {
    check_all_pairs::<u32, u32, Beside, 64, 5>(&[1, 2, 319, 320, 321, 961, 320 * 5 + 3, 320 * 33]);
    check_all_pairs::<i32, u32, Beside, 64, 3>(&[1, 191, 193, 1000, 192 * 32 + 191]);
    const BLOCK: tuning::Tile = ROW.block_sort.of(4, 4);
    const RUNS: tuning::Tile = ROW.merge_runs.of(4, 4);
    check_all_pairs::<f32, u32, Beside, { BLOCK.threads }, { BLOCK.items_per_thread }>(&[BLOCK.keys() - 1, 20_000]);
    check_all_pairs::<u32, u32, Beside, { RUNS.threads }, { RUNS.items_per_thread }>(&[20_000]);
}

#[test]
fn keys_packed_with_their_slots_keep_their_order() {
    check_all_pairs::<i32, u64, Packed, 64, 3>(&[1, 191, 193, 1000, 192 * 32 + 191]);
    check_all_pairs::<f32, u64, Packed, 64, 5>(&[1, 320, 321, 3000]);
    check_all_pairs::<u64, u32, Packed, 64, 5>(&[1, 319, 321, 320 * 33]);
    check_all_pairs::<f64, u64, Packed, 64, 3>(&[1, 192, 1000, 192 * 17]);
    check_all_pairs::<i64, u32, Packed, 64, 5>(&[2, 3000]);
    const BLOCK: tuning::Tile = ROW.block_sort.of(8, 8);
    const RUNS: tuning::Tile = ROW.merge_runs.of(8, 8);
    let sizes = [BLOCK.keys() - 1, BLOCK.keys() + 1, 20_000];
    check_all_pairs::<i64, u32, Packed, { BLOCK.threads }, { BLOCK.items_per_thread }>(&sizes);
    check_all_pairs::<f64, u64, Packed, { RUNS.threads }, { RUNS.items_per_thread }>(&[20_000]);
}

/// Keys that differ in few bits, of which the lowest are such that a packed key has no room for them, and keys of which a
/// tile has some that are far from all others.
#[test]
fn keys_that_differ_in_what_is_not_packed_keep_their_order() {
    for upper_bits in [0u64, 1, 3, 6, 12, 64] {
        for lower_bits in [1u64, 2, 5, 12, 13, 14, 20] {
            let seed = fresh_seed();
            let mut random = StdRng::seed_from_u64(seed);
            let upper: Vec<u64> = (0..1 << upper_bits.min(12)).map(|_| random.random()).collect();
            let input: Vec<u64> = (0..3 * 320 + 7)
                .map(|_| {
                    let upper = upper[random.random_range(0..upper.len())] >> lower_bits << lower_bits;
                    upper | random.random::<u64>() >> (64 - lower_bits)
                })
                .collect();
            let what = format!("{upper_bits} upper bits and {lower_bits} lower bits");
            check_pairs::<u64, u32, Packed, 64, 5>(&input, &what, seed);
            let mut input = input;
            for key in &mut input {
                *key &= (1 << lower_bits) - 1;
            }
            let outlier = random.random_range(0..input.len());
            input[outlier] = random.random();
            check_pairs::<u64, u64, Packed, 64, 5>(&input, &format!("{what}, one greater"), seed);
        }
    }
}

fn check<K: TestKey, const NT: usize, const VT: usize>(sizes: &[usize]) {
    for &n in sizes {
        for keys in Keys::ALL {
            let seed = fresh_seed();
            let input = keys.random::<K>(n, seed);
            let at = || format!("{} {n} in tiles of {NT} x {VT}, {keys:?}, seed {seed}", K::NAME);
            let mut expected = sorted(input.clone());
            for descending in [false, true] {
                let (found, _) = run::<K, (), Nothing, NT, VT>(seed, &input, descending)
                    .unwrap_or_else(|fault| panic!("{}: {fault}", at()));
                assert!(bits(&found) == bits(&expected), "{}, descending: {descending}", at());
                expected.reverse();
            }
        }
    }
}

#[test]
fn small_tiles_and_many_passes() {
    fn all<K: TestKey>() {
        check::<K, 64, 5>(&[0, 1, 2, 319, 320, 321, 640, 961, 320 * 5 + 3, 320 * 16, 320 * 32 + 1, 320 * 67]);
        check::<K, 64, 3>(&[191, 193, 1000, 192 * 32 + 191]);
    }
    for_all_types!(all());
}

/// What is sorted already is noticed; what is so but for one key is not taken for it.
#[test]
fn keys_that_are_sorted_or_nearly() {
    fn check<K: TestKey>() {
        for n in [320, 321, 1000, 320 * 32, 320 * 33 + 7] {
            let seed = fresh_seed();
            let keys = Keys::Any.random::<K>(n, seed);
            let expected = sorted(keys.clone());
            for input in sorted_or_nearly(keys, seed) {
                let (found, _) = run::<K, (), Nothing, 64, 5>(seed, &input, false)
                    .unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
                assert!(bits(&found) == bits(&expected), "{} {n}, seed {seed}", K::NAME);
            }
        }
    }
    for_all_types!(check());
}

/// The same with values, which tell whether equal keys have kept their order.
#[test]
fn pairs_that_are_sorted_or_nearly() {
    for n in [320, 321, 1000, 320 * 33 + 7] {
        for keys in [Keys::Any, Keys::Few] {
            let seed = fresh_seed();
            let what = format!("{keys:?}, sorted or nearly");
            for input in sorted_or_nearly(keys.random::<i32>(n, seed), seed) {
                check_pairs::<i32, u32, Beside, 64, 5>(&input, &what, seed);
                check_pairs::<i32, u64, Packed, 64, 5>(&input, &what, seed);
            }
            for input in sorted_or_nearly(keys.random::<f64>(n, seed), seed) {
                check_pairs::<f64, u32, Packed, 64, 5>(&input, &what, seed);
            }
        }
    }
}

/// The keys in order; with one at the wrong side of the first boundary between tiles of 320; the same at the end; reversed; and
/// in long runs, of lengths that are alike and not, as many as are merged at once, and more.
fn sorted_or_nearly<K: TestKey>(keys: Vec<K>, seed: u64) -> Vec<Vec<K>> {
    let (n, sorted) = (keys.len(), sorted(keys.clone()));
    let reversed: Vec<K> = sorted.iter().rev().copied().collect();
    let mut inputs = vec![sorted.clone(), sorted.clone(), sorted, reversed];
    for runs in [2, 3, 31, 32, 33] {
        let mut input = keys.clone();
        let mut ends: Vec<usize> = (1..runs).map(|i| if seed.is_multiple_of(3) { i } else { i * n / runs }).collect();
        ends.push(n);
        let mut start = 0;
        for end in ends {
            input[start..end].sort_by(K::compare);
            start = end;
        }
        inputs.push(input);
    }
    inputs[1].swap(319, 320.min(n - 1));
    inputs[2].swap(n - 2, n - 1);
    inputs
}

#[test]
fn the_tiles_that_ship() {
    const W4: [tuning::Tile; 2] = [ROW.block_sort.of(4, 0), ROW.merge_runs.of(4, 0)];
    const W8: [tuning::Tile; 2] = [ROW.block_sort.of(8, 0), ROW.merge_runs.of(8, 0)];
    fn all<K: TestKey, const NT: usize, const VT: usize>() {
        let tile = NT * VT;
        check::<K, NT, VT>(&[tile - 1, tile, 2 * tile + tile / 2]);
    }
    all::<u32, { W4[0].threads }, { W4[0].items_per_thread }>();
    all::<i32, { W4[1].threads }, { W4[1].items_per_thread }>();
    all::<f32, { W4[0].threads }, { W4[0].items_per_thread }>();
    all::<u64, { W8[0].threads }, { W8[0].items_per_thread }>();
    all::<i64, { W8[1].threads }, { W8[1].items_per_thread }>();
    all::<f64, { W8[0].threads }, { W8[0].items_per_thread }>();
    const SMALL: [tuning::Tile; 2] = [ROW.block_sort_small.of(4, 0), ROW.merge_runs_small.of(8, 0)];
    all::<f32, { SMALL[0].threads }, { SMALL[0].items_per_thread }>();
    all::<i64, { SMALL[1].threads }, { SMALL[1].items_per_thread }>();
}

/// Input made to take many bank conflicts. The crate `tests` counts them.
#[test]
fn keys_with_many_bank_conflicts() {
    fn check<K: TestKey + Word, const NT: usize, const VT: usize>(sizes: &[usize]) {
        let shape = tuning::Tile { threads: NT, items_per_thread: VT };
        for &n in sizes {
            let seed = fresh_seed();
            let keys = bank_conflicts::conflicting(n, shape, shape, size_of::<K>());
            let input: Vec<K> = keys.into_iter().map(|key| K::from_register(key.into())).collect();
            let (found, _) = run::<K, (), Nothing, NT, VT>(seed, &input, false)
                .unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
            let expected: Vec<K> = (0..n as u64).map(K::from_register).collect();
            assert!(bits(&found) == bits(&expected), "{} {n} in tiles of {NT} x {VT}, seed {seed}", K::NAME);
        }
    }
    check::<u32, 64, 33>(&[1, 2111, 2112, 64 * 33 * 8 + 1]);
    check::<u64, 64, 5>(&[319, 320 * 4, 320 * 33 + 7]);
    const BLOCK: [tuning::Tile; 2] = [ROW.block_sort.of(4, 0), ROW.block_sort.of(8, 0)];
    const RUNS: tuning::Tile = ROW.merge_runs.of(4, 0);
    const SMALL: tuning::Tile = ROW.block_sort_small.of(4, 0);
    check::<u32, { BLOCK[0].threads }, { BLOCK[0].items_per_thread }>(&[3 * 256 * 33]);
    check::<u64, { BLOCK[1].threads }, { BLOCK[1].items_per_thread }>(&[2 * 256 * 19]);
    check::<u32, { RUNS.threads }, { RUNS.items_per_thread }>(&[2 * 256 * 47 + 99]);
    check::<u32, { SMALL.threads }, { SMALL.items_per_thread }>(&[3 * 512 * 9]);
}

#[test]
#[should_panic = "a run has 1 to 2^32 - 1 keys"]
fn runs_of_no_keys_are_refused() {
    let _ = Runs::new(100, 0, 2, 32, 0);
}

#[test]
#[should_panic = "a run has 1 to 2^32 - 1 keys"]
fn runs_that_32_bits_cannot_count_are_refused() {
    let _ = Runs::new(1 << 33, 1 << 32, 2, 32, 0);
}

#[test]
#[should_panic = "a group has a power of two runs"]
fn groups_of_no_runs_are_refused() {
    let _ = Runs::new(100, 10, 0, 32, 0);
}

#[test]
#[should_panic = "a tile has more than twice the rank_tolerance"]
fn tiles_of_no_keys_are_refused() {
    let _ = Runs::new(100, 10, 2, 0, 0);
}

#[test]
fn a_shuffle_takes_each_run_once() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    for runs in (1..=200).chain([4095, 4096, 4097, 31_776]) {
        let mut stay = 0;
        for _ in 0..16 {
            let shuffle = Shuffle { runs, random: random.random() };
            let mut taken: Vec<u32> = (0..runs).map(|i| shuffle.at(i)).collect();
            stay += (0..).zip(&taken).filter(|&(i, &run)| i == run).count() as u32;
            taken.sort_unstable();
            assert!(taken.into_iter().eq(0..runs), "{runs} runs, seed {seed}");
        }
        // One of all runs can be expected to.
        assert!(runs < 100 || stay < 16 * runs / 4, "{stay} of {runs} runs stay in 16 tries, seed {seed}");
    }
}

/// A network that sorts every input of zeros and ones sorts every input (the 0-1 principle; Knuth, volume 3, 5.3.4).
#[test]
fn networks_sort_all_zeros_and_ones() {
    fn check<const N: usize>() {
        for pattern in 0u32..1 << N {
            let mut keys: [u32; N] = std::array::from_fn(|i| pattern >> i & 1);
            sort_registers(&mut keys);
            assert!(keys.is_sorted(), "{N} keys, input {pattern:b}: {keys:?}");
            assert_eq!(keys.iter().sum::<u32>(), pattern.count_ones(), "{N} keys, input {pattern:b}");
        }
    }
    check::<1>();
    check::<2>();
    check::<3>();
    check::<5>();
    check::<7>();
    check::<8>();
    check::<11>();
    check::<15>();
    check::<16>();
    check::<17>();
    check::<19>();
}
