//! The merge sort in the emulator against the standard library's stable sort.

#[path = "../../tests/src/bank_conflicts.rs"]
mod bank_conflicts;
mod common;
use common::*;
use cuda_std::Word;
use cuda_std::emulator::{Emulator, Fault};
use kernels_gpu::key::{Bits, Coding};
use kernels_gpu::sort::block_sort;
use kernels_gpu::sort::detect_runs::{DETECTION_SHARED_BYTES, DETECTION_WORDS, copy_runs, detect_runs, reverse};
use kernels_gpu::sort::merge_pass;
use kernels_gpu::sort::merge_pass::long_runs::{merge_long_runs, split_long_runs};
use kernels_gpu::sort::merge_pass::merge_runs::{merge_runs, shared_bytes};
use kernels_gpu::sort::merge_pass::split_runs::split_runs;
use kernels_gpu::sort::network::sort_registers;
use kernels_gpu::sort::runs::{Division, MAX_RUNS, Passes, Runs, Shuffle};
use kernels_gpu::sort::{packed, packing, pairs};
use kernels_gpu::tuning;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// As much tolerance as small tiles of that shape can have, or none for every third seed.
fn rank_tolerance(seed: u64, shape: tuning::Tile, k: u32) -> u32 {
    if seed.is_multiple_of(3) { 0 } else { merge_pass::tile_keys(shape.keys(), shape.items_per_thread, k, 0) / 8 }
}

/// The sort as the host launches it: tiles, then passes between two buffers.
fn run<K: TestKey, const NT: usize, const VT: usize>(seed: u64, keys: &[K], descending: bool) -> Result<Vec<K>, Fault>
where
    K::Bits: Bits,
{
    let (n, slots) = (keys.len(), NT * VT);
    let mut emulator = Emulator::new(seed);
    let bits: Vec<K::Bits> = keys.iter().map(|key| key.to_raw()).collect();
    let (mut from, mut to) = (emulator.buffer(&bits), emulator.uninit::<K::Bits>(n));
    let read = |emulator: &mut Emulator, from| -> Result<Vec<K>, Fault> {
        Ok(emulator.read(from)?.into_iter().map(|bits: K::Bits| K::from_raw(bits)).collect())
    };
    if n == 0 {
        return read(&mut emulator, from);
    }
    let coding = Coding::of::<K>(descending);
    let mut passes = Passes::of(n.div_ceil(slots));
    let decode = |passes: Passes| if passes.left() == 0 { coding } else { Coding::NONE };
    let first_decode = decode(passes);
    let order = emulator.buffer(&[0u32; DETECTION_WORDS]);
    let (begins, starts) =
        (emulator.uninit::<usize>(MAX_RUNS as usize), emulator.uninit::<usize>(MAX_RUNS as usize + 1));
    // SAFETY: the arguments here and below are those that the kernels' documentation asks for.
    emulator.launch("detect_runs", 3, 64, DETECTION_SHARED_BYTES, || unsafe {
        let (always, when_negative) = (coding.always, coding.when_negative);
        let most_descents = MAX_RUNS - 1;
        let (order, begins) = (order.as_mut_ptr(), begins.as_mut_ptr());
        detect_runs(from.as_ptr(), n, always, when_negative, 0, most_descents, order, begins)
    })?;
    // SAFETY: as above.
    emulator.launch("reverse", 2, 32, 0, || unsafe { reverse::<_, 3>(from.as_mut_ptr(), n, order.as_mut_ptr()) })?;
    // SAFETY: as above.
    emulator.launch("copy_runs", 2, 64, 0, || unsafe {
        let (always, when_negative, order) = (coding.always, coding.when_negative, order.as_mut_ptr());
        let (from, to, begins, starts) = (from.as_ptr(), to.as_mut_ptr(), begins.as_ptr(), starts.as_mut_ptr());
        copy_runs(from, to, n, always, when_negative, order, begins, starts)
    })?;
    if slots > (MAX_RUNS as usize / 2) * (VT - 1) + 32 {
        let tile_keys = merge_pass::tile_keys(slots, VT, MAX_RUNS, 0);
        let tiles = n.div_ceil(tile_keys as usize);
        let splits = emulator.uninit::<u32>(tiles * MAX_RUNS as usize);
        // SAFETY: as above.
        emulator.launch("split_long_runs", tiles.div_ceil(4) as u32, 64, 0, || unsafe {
            let (splits, starts, order) = (splits.as_mut_ptr(), starts.as_ptr(), order.as_mut_ptr());
            split_long_runs(to.as_ptr(), n, tile_keys, splits, starts, 2, order)
        })?;
        // SAFETY: as above.
        emulator.launch("merge_long_runs", 3, NT as u32, shared_bytes::<K::Bits>(slots), || unsafe {
            let (always, when_negative, order) = (coding.always, coding.when_negative, order.as_mut_ptr());
            let (splits, starts) = (splits.as_ptr(), starts.as_ptr());
            let (scratch, keys) = (to.as_ptr(), from.as_mut_ptr());
            merge_long_runs::<_, NT, VT>(scratch, n, keys, splits, starts, always, when_negative, order)
        })?;
    }
    // As the host does, so that the last pass ends in the first array.
    let input = from;
    if !passes.left().is_multiple_of(2) {
        std::mem::swap(&mut from, &mut to);
    }
    let (blocks, shared) = (n.div_ceil(slots) as u32, block_sort::shared_bytes::<K>(NT, VT));
    let random = StdRng::seed_from_u64(seed).random();
    // SAFETY: as above.
    emulator.launch("block_sort", blocks, NT as u32, shared, || unsafe {
        let (encode, decode) = (coding, first_decode);
        let (input, output, order) = (input.as_mut_ptr(), from.as_mut_ptr(), order.as_mut_ptr());
        let (e, e_n, d, d_n) = (encode.always, encode.when_negative, decode.always, decode.when_negative);
        block_sort::block_sort::<_, NT, VT>(input, output, n, e, e_n, d, d_n, order, random)
    })?;
    let mut run = slots;
    let mut shuffled = (n / run) as u32;
    while let Some(k) = passes.next() {
        let shape = tuning::Tile { threads: NT, items_per_thread: VT };
        let rank_tolerance = rank_tolerance(seed, shape, k);
        let runs = merge_pass::runs_in_tiles(n, run, k, shape, rank_tolerance);
        let splits = emulator.uninit::<u32>(runs.tile_count() * k as usize);
        let warps = runs.tile_count().div_ceil(3);
        // For every other seed the blocks that merge find their splits themselves.
        let splits = if seed.is_multiple_of(2) { splits.as_mut_ptr() } else { std::ptr::null_mut() };
        if !splits.is_null() {
            // SAFETY: as above.
            emulator.launch("split_runs", warps.div_ceil(2) as u32, 64, 0, || unsafe {
                let (from, tile_keys, order) = (from.as_ptr(), runs.tile_keys(), order.as_mut_ptr());
                split_runs(from, n, run, k, tile_keys, rank_tolerance, splits, 3, order, shuffled, random)
            })?;
        }
        let decode = decode(passes);
        let shared = shared_bytes::<K::Bits>(slots);
        // For every third seed a block takes several tiles.
        let blocks = if seed.is_multiple_of(3) { runs.tile_count().div_ceil(3) } else { runs.tile_count() };
        // SAFETY: as above.
        emulator.launch("merge_runs", blocks as u32, NT as u32, shared, || unsafe {
            let (always, when_negative) = (decode.always, decode.when_negative);
            let (from, to, order) = (from.as_ptr(), to.as_mut_ptr(), order.as_mut_ptr());
            merge_runs::<_, NT, VT, true>(
                from,
                n,
                run,
                k,
                rank_tolerance,
                to,
                splits,
                always,
                when_negative,
                order,
                shuffled,
                random,
            )
        })?;
        std::mem::swap(&mut from, &mut to);
        run *= k as usize;
        shuffled = 0;
    }
    read(&mut emulator, input)
}

/// The kernels for keys with values, and their shared memory in bytes.
struct PairKernels<B, V, const NT: usize, const VT: usize> {
    #[allow(clippy::type_complexity)]
    block_sort: unsafe fn(*mut B, *mut V, *mut B, *mut V, usize, [B; 4], *mut u32, u64),
    #[allow(clippy::type_complexity)]
    merge_runs: unsafe fn(*const B, *const V, usize, usize, [u32; 2], *mut B, *mut V, *const u32, [B; 2], *mut u32),
    #[allow(clippy::type_complexity)]
    merge_long_runs: unsafe fn(*const B, *const V, usize, *mut B, *mut V, *const u32, *const usize, [B; 2], *mut u32),
    shared: (u32, u32),
}

/// Values are moved along with their keys.
fn moved<const NT: usize, const VT: usize>() -> PairKernels<u32, u32, NT, VT> {
    PairKernels {
        // SAFETY: the kernel's own conditions.
        block_sort: |k, v, t, u, n, [e, f, d, g], order, _| unsafe {
            pairs::block_sort_pairs::<NT, VT>(k, v, t, u, n, e, f, d, g, order)
        },
        // SAFETY: the kernel's own conditions.
        merge_runs: |f, v, n, run, [k, rank_tolerance], t, u, splits, [d, e], order| unsafe {
            pairs::merge_runs_pairs::<NT, VT>(f, v, n, run, k, rank_tolerance, t, u, splits, d, e, order)
        },
        // SAFETY: the kernel's own conditions.
        merge_long_runs: |f, v, n, t, u, splits, starts, [d, e], order| unsafe {
            pairs::merge_long_runs_pairs::<NT, VT>(f, v, n, t, u, splits, starts, d, e, order)
        },
        shared: (pairs::block_shared_bytes(NT * VT), pairs::merge_shared_bytes(NT * VT)),
    }
}

/// Keys are packed with their places.
fn packed<B: Bits, V: Word, const NT: usize, const VT: usize>() -> PairKernels<B, V, NT, VT> {
    PairKernels {
        // SAFETY: the kernel's own conditions.
        block_sort: |k, v, t, u, n, [e, f, d, g], order, random| unsafe {
            packed::block_sort_packed::<B, V, NT, VT>(k, v, t, u, n, e, f, d, g, order, random)
        },
        // SAFETY: the kernel's own conditions.
        merge_runs: |f, v, n, run, [k, rank_tolerance], t, u, splits, [d, e], order| unsafe {
            packed::merge_runs_packed::<B, V, NT, VT>(f, v, n, run, k, rank_tolerance, t, u, splits, d, e, order)
        },
        // SAFETY: the kernel's own conditions.
        merge_long_runs: |f, v, n, t, u, splits, starts, [d, e], order| unsafe {
            packed::merge_long_runs_packed::<B, V, NT, VT>(f, v, n, t, u, splits, starts, d, e, order)
        },
        shared: (packing::shared_bytes(NT * VT), packed::merge_shared_bytes(NT * VT)),
    }
}

/// The sort with values, which are the places in the input.
fn run_pairs<K: TestKey, V: Bits + TryFrom<u64>, const NT: usize, const VT: usize>(
    kernels: &PairKernels<K::Bits, V, NT, VT>,
    seed: u64,
    keys: &[K],
    descending: bool,
) -> Result<(Vec<K>, Vec<u64>), Fault> {
    let (n, slots) = (keys.len(), NT * VT);
    let mut emulator = Emulator::new(seed);
    let bits: Vec<K::Bits> = keys.iter().map(|key| key.to_raw()).collect();
    let places: Vec<V> = (0..n as u64).map(|i| V::try_from(i).ok().expect("a place fits")).collect();
    let mut from = (emulator.buffer(&bits), emulator.buffer(&places));
    let mut to = (emulator.uninit::<K::Bits>(n), emulator.uninit::<V>(n));
    let coding = Coding::of::<K>(descending);
    let mut passes = Passes::of(n.div_ceil(slots));
    let decode = |passes: Passes| if passes.left() == 0 { coding } else { Coding::NONE };
    let order = emulator.buffer(&[0u32; DETECTION_WORDS]);
    let (begins, starts) =
        (emulator.uninit::<usize>(MAX_RUNS as usize), emulator.uninit::<usize>(MAX_RUNS as usize + 1));
    // SAFETY: the arguments here and below are those that the kernels' documentation asks for.
    emulator.launch("detect_runs", 3, 64, DETECTION_SHARED_BYTES, || unsafe {
        let (order, begins, most_descents) = (order.as_mut_ptr(), begins.as_mut_ptr(), MAX_RUNS - 1);
        detect_runs(from.0.as_ptr(), n, coding.always, coding.when_negative, 1, most_descents, order, begins)
    })?;
    // SAFETY: as above.
    emulator.launch("reverse keys", 2, 32, 0, || unsafe {
        let pairs = from.0.as_mut_ptr();
        reverse::<_, 1>(pairs, n, order.as_mut_ptr())
    })?;
    // SAFETY: as above.
    emulator.launch("reverse values", 2, 32, 0, || unsafe {
        reverse::<_, 2>(from.1.as_mut_ptr(), n, order.as_mut_ptr())
    })?;
    if slots > (MAX_RUNS as usize / 2) * (VT - 1) + 32 {
        // SAFETY: as above.
        emulator.launch("copy_runs", 2, 64, 0, || unsafe {
            let (always, when_negative, order) = (coding.always, coding.when_negative, order.as_mut_ptr());
            let (begins, starts) = (begins.as_ptr(), starts.as_mut_ptr());
            copy_runs(from.0.as_ptr(), to.0.as_mut_ptr(), n, always, when_negative, order, begins, starts)
        })?;
        // SAFETY: as above.
        emulator.launch("copy_runs, values", 2, 64, 0, || unsafe {
            let (begins, starts, order) = (begins.as_ptr(), starts.as_mut_ptr(), order.as_mut_ptr());
            copy_runs(from.1.as_ptr(), to.1.as_mut_ptr(), n, V::MIN, V::MIN, order, begins, starts)
        })?;
        let tile_keys = merge_pass::tile_keys(slots, VT, MAX_RUNS, 0);
        let tiles = n.div_ceil(tile_keys as usize);
        let splits = emulator.uninit::<u32>(tiles * MAX_RUNS as usize);
        // SAFETY: as above.
        emulator.launch("split_long_runs", tiles.div_ceil(4) as u32, 64, 0, || unsafe {
            let (splits, starts, order) = (splits.as_mut_ptr(), starts.as_ptr(), order.as_mut_ptr());
            split_long_runs(to.0.as_ptr(), n, tile_keys, splits, starts, 2, order)
        })?;
        // SAFETY: as above.
        emulator.launch("merge_long_runs", 3, NT as u32, kernels.shared.1, || unsafe {
            let (f, v, t, u) = (to.0.as_ptr(), to.1.as_ptr(), from.0.as_mut_ptr(), from.1.as_mut_ptr());
            let (splits, starts, decode) = (splits.as_ptr(), starts.as_ptr(), [coding.always, coding.when_negative]);
            (kernels.merge_long_runs)(f, v, n, t, u, splits, starts, decode, order.as_mut_ptr())
        })?;
    }
    // As the host does, so that the last pass ends in the first array.
    let input = from;
    if !passes.left().is_multiple_of(2) {
        std::mem::swap(&mut from, &mut to);
    }
    let d = decode(passes);
    let random = StdRng::seed_from_u64(seed).random();
    // SAFETY: as above.
    emulator.launch("block_sort", n.div_ceil(slots) as u32, NT as u32, kernels.shared.0, || unsafe {
        let (k, v, t, u) = (input.0.as_mut_ptr(), input.1.as_mut_ptr(), from.0.as_mut_ptr(), from.1.as_mut_ptr());
        let codings = [coding.always, coding.when_negative, d.always, d.when_negative];
        (kernels.block_sort)(k, v, t, u, n, codings, order.as_mut_ptr(), random)
    })?;
    let mut run = slots;
    while let Some(k) = passes.next() {
        let shape = tuning::Tile { threads: NT, items_per_thread: VT };
        let rank_tolerance = rank_tolerance(seed, shape, k);
        let runs = merge_pass::runs_in_tiles(n, run, k, shape, rank_tolerance);
        let splits = emulator.uninit::<u32>(runs.tile_count() * k as usize);
        // SAFETY: as above.
        emulator.launch("split_runs", runs.tile_count().div_ceil(2) as u32, 64, 0, || unsafe {
            let (from, splits, order) = (from.0.as_ptr(), splits.as_mut_ptr(), order.as_mut_ptr());
            split_runs(from, n, run, k, runs.tile_keys(), rank_tolerance, splits, 1, order, 0, 0)
        })?;
        let d = decode(passes);
        // SAFETY: as above.
        emulator.launch("merge_runs", runs.tile_count() as u32, NT as u32, kernels.shared.1, || unsafe {
            let (f, v, t, u) = (from.0.as_ptr(), from.1.as_ptr(), to.0.as_mut_ptr(), to.1.as_mut_ptr());
            let (splits, order) = (splits.as_ptr(), order.as_mut_ptr());
            (kernels.merge_runs)(f, v, n, run, [k, rank_tolerance], t, u, splits, [d.always, d.when_negative], order)
        })?;
        std::mem::swap(&mut from, &mut to);
        run *= k as usize;
    }
    let keys = emulator.read(input.0)?.into_iter().map(|bits| K::from_raw(bits)).collect();
    Ok((keys, emulator.read(input.1)?.into_iter().map(|place| place.to_register()).collect()))
}

/// Sorts `input` with values, both ways, and compares keys and values with the standard library's.
fn check_pairs<K: TestKey, V: Bits + TryFrom<u64>, const NT: usize, const VT: usize>(
    kernels: &PairKernels<K::Bits, V, NT, VT>,
    input: &[K],
    what: &str,
    seed: u64,
) {
    let n = input.len();
    for descending in [false, true] {
        let at = || format!("{} {n} in tiles of {NT} x {VT}, {what}, seed {seed}, descending: {descending}", K::NAME);
        let (found, places) = run_pairs::<K, V, NT, VT>(kernels, seed, input, descending)
            .unwrap_or_else(|fault| panic!("{}: {fault}", at()));
        let mut expected: Vec<u64> = (0..n as u64).collect();
        expected.sort_by(|&x, &y| {
            let order = input[x as usize].compare(&input[y as usize]);
            if descending { order.reverse() } else { order }
        });
        assert!(places == expected, "{}", at());
        let expected: Vec<K> = expected.iter().map(|&place| input[place as usize]).collect();
        assert!(bits(&found) == bits(&expected), "{}", at());
    }
}

fn check_all_pairs<K: TestKey, V: Bits + TryFrom<u64>, const NT: usize, const VT: usize>(
    kernels: &PairKernels<K::Bits, V, NT, VT>,
    sizes: &[usize],
) {
    for &n in sizes {
        for keys in Keys::ALL {
            let seed = fresh_seed();
            check_pairs::<K, V, NT, VT>(kernels, &keys.random::<K>(n, seed), &format!("{keys:?}"), seed);
        }
    }
}

const ROW: tuning::Row = tuning::ROW;

#[test]
fn values_move_with_their_keys_and_equal_keys_keep_their_order() {
    check_all_pairs::<u32, u32, 64, 5>(&moved(), &[1, 2, 319, 320, 321, 961, 320 * 5 + 3, 320 * 33]);
    check_all_pairs::<i32, u32, 64, 3>(&moved(), &[1, 191, 193, 1000, 192 * 32 + 191]);
    const BLOCK: tuning::Tile = ROW.block_4v4;
    const RUNS: tuning::Tile = ROW.runs_4v4;
    check_all_pairs::<f32, u32, { BLOCK.threads }, { BLOCK.items_per_thread }>(&moved(), &[BLOCK.keys() - 1, 20_000]);
    check_all_pairs::<u32, u32, { RUNS.threads }, { RUNS.items_per_thread }>(&moved(), &[20_000]);
}

#[test]
fn keys_packed_with_their_places_keep_their_order() {
    check_all_pairs::<i32, u64, 64, 3>(&packed(), &[1, 191, 193, 1000, 192 * 32 + 191]);
    check_all_pairs::<f32, u64, 64, 5>(&packed(), &[1, 320, 321, 3000]);
    check_all_pairs::<u64, u32, 64, 5>(&packed(), &[1, 319, 321, 320 * 33]);
    check_all_pairs::<f64, u64, 64, 3>(&packed(), &[1, 192, 1000, 192 * 17]);
    check_all_pairs::<i64, u32, 64, 5>(&packed(), &[2, 3000]);
    const BLOCK: tuning::Tile = ROW.block_packed;
    const RUNS: tuning::Tile = ROW.runs_packed;
    let sizes = [BLOCK.keys() - 1, BLOCK.keys() + 1, 20_000];
    check_all_pairs::<i64, u32, { BLOCK.threads }, { BLOCK.items_per_thread }>(&packed(), &sizes);
    check_all_pairs::<f64, u64, { RUNS.threads }, { RUNS.items_per_thread }>(&packed(), &[20_000]);
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
            check_pairs::<u64, u32, 64, 5>(&packed(), &input, &what, seed);
            let mut input = input;
            for key in &mut input {
                *key &= (1 << lower_bits) - 1;
            }
            let outlier = random.random_range(0..input.len());
            input[outlier] = random.random();
            check_pairs::<u64, u64, 64, 5>(&packed(), &input, &format!("{what}, one greater"), seed);
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
                let found =
                    run::<K, NT, VT>(seed, &input, descending).unwrap_or_else(|fault| panic!("{}: {fault}", at()));
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
                let found = run::<K, 64, 5>(seed, &input, false).unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
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
                check_pairs::<i32, u32, 64, 5>(&moved(), &input, &what, seed);
                check_pairs::<i32, u64, 64, 5>(&packed(), &input, &what, seed);
            }
            for input in sorted_or_nearly(keys.random::<f64>(n, seed), seed) {
                check_pairs::<f64, u32, 64, 5>(&packed(), &input, &what, seed);
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
    const W4: [tuning::Tile; 2] = [tuning::ROW.block_4, tuning::ROW.runs_4];
    const W8: [tuning::Tile; 2] = [tuning::ROW.block_8, tuning::ROW.runs_8];
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
    const SMALL: [tuning::Tile; 2] = [tuning::ROW.small_block_4, tuning::ROW.small_runs_8];
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
            let found = run::<K, NT, VT>(seed, &input, false).unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
            let expected: Vec<K> = (0..n as u64).map(K::from_register).collect();
            assert!(bits(&found) == bits(&expected), "{} {n} in tiles of {NT} x {VT}, seed {seed}", K::NAME);
        }
    }
    check::<u32, 64, 33>(&[1, 2111, 2112, 64 * 33 * 8 + 1]);
    check::<u64, 64, 5>(&[319, 320 * 4, 320 * 33 + 7]);
    check::<u32, { tuning::ROW.block_4.threads }, { tuning::ROW.block_4.items_per_thread }>(&[3 * 256 * 33]);
    check::<u64, { tuning::ROW.block_8.threads }, { tuning::ROW.block_8.items_per_thread }>(&[2 * 256 * 19]);
    check::<u32, { tuning::ROW.runs_4.threads }, { tuning::ROW.runs_4.items_per_thread }>(&[2 * 256 * 47 + 99]);
    check::<u32, { tuning::ROW.small_block_4.threads }, { tuning::ROW.small_block_4.items_per_thread }>(&[3 * 512 * 9]);
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
