//! Single kernels of the merge sort in the emulator, in cases that the host never launches or launches for many keys
//! only; and device functions.
//!
//! Whole sorts, with the launches of a GPU, are tested in `merge-host/tests/launches/sort.rs`.

use crate::common::{self, *};
use cuda_std::Word;
use cuda_std::emulator::{Emulator, Fault};
use kernels_gpu::elements::Elements;
use kernels_gpu::kernels::sort::merge_pass::many_runs::{split_many_runs, words_of_tile};
use kernels_gpu::kernels::sort::merge_pass::split_runs::split_runs;
use kernels_gpu::kernels::sort::merge_pass::{self, merge_runs};
use kernels_gpu::kernels::sort::payload::Payload;
use kernels_gpu::kernels::sort::payload::beside::Beside;
use kernels_gpu::kernels::sort::payload::nothing::Nothing;
use kernels_gpu::kernels::sort::payload::packed::Packed;
use kernels_gpu::kernels::sort::runs::{MAX_RUNS, OffsetRuns, Runs, Shuffle};
use kernels_gpu::kernels::sort::segments::SegmentLists;
use kernels_gpu::kernels::sort::segments::merge_segments::{self, merge_segments};
use kernels_gpu::key::Coding;
use kernels_gpu::thread::network::sort_registers;
use kernels_gpu::tuning::{ROW, Tile};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::ops::Range;

/// The launch of a pass.
#[derive(Clone, Copy, Debug)]
struct Launch {
    /// Number of runs that are merged at once.
    k: u32,
    rank_tolerance: u32,
    /// The number of blocks, or one block per tile.
    blocks: Option<usize>,
    /// Number of tiles for each warp of `split_runs`. If `None`, the blocks find their splits.
    split_by_warp: Option<u32>,
    shuffle: Shuffle,
    descending: bool,
}

/// One pass over runs of `NT * VT` keys. The values, if any, are the original indices.
fn pass<K: TestKey, V: Word, P: Payload<K::Bits, V, NT, VT>, const NT: usize, const VT: usize>(
    seed: u64,
    keys: &[K::Bits],
    launch: Launch,
) -> Result<(Vec<K>, Vec<u64>), Fault> {
    let Launch { k, rank_tolerance, blocks, split_by_warp, shuffle, descending } = launch;
    let n = keys.len();
    let mut emulator = Emulator::new(seed);
    let values: Vec<V> = (0..n as u64).map(V::from_register).collect();
    let from = (emulator.buffer(keys), emulator.buffer(&values));
    let to = (emulator.uninit::<K::Bits>(n), emulator.uninit::<V>(n));
    let shape = Tile { threads: NT, items_per_thread: VT };
    let runs = merge_pass::runs_in_tiles(n, NT * VT, k, shape, rank_tolerance).shuffled(shuffle);
    let (tiles, order) = (runs.tile_count(), std::ptr::null_mut());
    let splits = emulator.uninit::<u32>(tiles * k as usize);
    let splits_at = if split_by_warp.is_some() { splits.as_mut_ptr() } else { std::ptr::null_mut() };
    if let Some(per_warp) = split_by_warp {
        let blocks = tiles.div_ceil(2 * per_warp as usize) as u32;
        // SAFETY: `from` has the `n` keys of `runs`, and `splits` has capacity for `k` splits per tile. `order` is
        // null. The launch has one warp per `per_warp` tiles, rounded up to whole blocks.
        emulator.launch("split_runs", blocks, 64, 0, || unsafe {
            split_runs(from.0.as_ptr(), runs, splits_at, per_warp, order)
        })?;
    }
    let blocks = blocks.unwrap_or(tiles) as u32;
    let shared_bytes = merge_runs::shared_bytes(size_of::<K>(), size_of::<V>(), NT * VT);
    // SAFETY: `from` and `to` have `n` keys and values, and `splits` is null or the result of `split_runs`. The launch
    // has blocks of `NT` threads, with the shared memory of a tile.
    emulator.launch("merge_runs", blocks, NT as u32, shared_bytes, || unsafe {
        let from = Elements { keys: from.0.as_mut_ptr(), values: from.1.as_mut_ptr() };
        let to = Elements { keys: to.0.as_mut_ptr(), values: to.1.as_mut_ptr() };
        merge_runs::merge_runs::<_, V, P, NT, VT, true>(from, to, runs, splits_at, Coding::of::<K>(descending), order)
    })?;
    let values = emulator.read(to.1)?.into_iter().map(V::to_register).collect();
    Ok((store(&mut emulator, to.0)?, values))
}

/// Checks keys, and values of type `V` that begin as indices, against the expected order of the indices.
fn assert_moved<K: TestKey, V: Word>(
    (found, moved): (&[K], &[u64]),
    expected: &[usize],
    key: impl Fn(usize) -> K::Bits,
    at: &dyn Fn() -> String,
) {
    let keys: Vec<K> = expected.iter().map(|&i| K::from_raw(key(i))).collect();
    assert!(bits(found) == bits(&keys), "keys: {}", at());
    if size_of::<V>() > 0 {
        assert!(moved.iter().copied().eq(expected.iter().map(|&i| i as u64)), "values: {}", at());
    }
}

/// Merges runs by each kind of launch of a pass, and compares with a stable sort of each group of runs.
fn check_passes<K: TestKey, V: Word, P: Payload<K::Bits, V, NT, VT>, const NT: usize, const VT: usize>() {
    let run = NT * VT;
    for k in [2, 8, MAX_RUNS] {
        for n in [run + 1, k as usize * run, k as usize * run * 3 / 2 + 7] {
            for split_by_warp in [None, Some(1), Some(3)] {
                for keys in [Keys::Any, Keys::Few] {
                    let seed = fresh_seed();
                    let mut random = StdRng::seed_from_u64(seed);
                    let descending = random.random();
                    let coding = Coding::of::<K>(descending);
                    let keys: Vec<K> = keys.random(n, seed);
                    let mut encoded: Vec<K::Bits> = keys.iter().map(|key| coding.encode(key.to_raw())).collect();
                    encoded.chunks_mut(run).for_each(<[_]>::sort);
                    let shape = Tile { threads: NT, items_per_thread: VT };
                    let most = merge_pass::tile_keys(shape.keys(), VT, k, 0) / 8;
                    let is_shuffled = n <= k as usize * run && size_of::<V>() == 0;
                    let launch = Launch {
                        k,
                        rank_tolerance: if random.random() { most } else { 0 },
                        blocks: random.random::<bool>().then(|| random.random_range(1..=3)),
                        split_by_warp,
                        // All runs of the only group; the last one may be shorter.
                        shuffle: if is_shuffled {
                            Shuffle { runs: (n / run) as u32, random: random.random() }
                        } else {
                            Shuffle::NONE
                        },
                        descending,
                    };
                    let at = || format!("{} {n} in tiles of {NT} x {VT}, {launch:?}, seed {seed}", K::NAME);
                    let (found, moved) = pass::<K, V, P, NT, VT>(seed, &encoded, launch)
                        .unwrap_or_else(|fault| panic!("{}: {fault}", at()));
                    let mut expected: Vec<usize> = (0..n).collect();
                    expected.chunks_mut(k as usize * run).for_each(|group| group.sort_by_key(|&i| encoded[i]));
                    assert_moved::<K, V>((&found, &moved), &expected, |i| coding.decode(encoded[i]), &at);
                }
            }
        }
    }
}

/// With one block per tile or with few blocks for several tiles each. With the splits of another kernel, for one or
/// several tiles per warp, or without. With and without tolerance, and with runs in any order.
#[test]
fn a_pass_merges_runs_of_keys_however_it_is_launched() {
    fn keys_alone<K: TestKey>() {
        check_passes::<K, (), Nothing, 64, 5>();
        check_passes::<K, (), Nothing, 64, 3>();
    }
    for_all_types!(keys_alone());
}

#[test]
fn a_pass_merges_runs_with_values_however_it_is_launched() {
    check_passes::<u32, u32, Beside, 64, 5>();
    check_passes::<f32, u32, Beside, 64, 3>();
    check_passes::<i32, u64, Packed, 64, 3>();
    check_passes::<u64, u32, Packed, 64, 5>();
    check_passes::<f64, u64, Packed, 64, 3>();
}

/// Keys of 8 bytes are packed without their lower bits. A single pair of a tile is alike but for these, wherever the
/// pair is among the keys of a thread.
#[test]
fn one_pair_that_is_packed_alike_is_put_in_order() {
    const VT: usize = 5;
    let (seed, run) = (fresh_seed(), 64 * VT);
    for first in 10 * VT..11 * VT {
        // The runs have every other key. Of the pair, the key of the first run is greater.
        let key = |rank: usize| match rank {
            _ if rank == first || rank == first + 1 => (first as u64) << 54 | u64::from(rank.is_multiple_of(2)),
            _ => (rank as u64) << 54,
        };
        let keys: Vec<u64> = [0, 1].into_iter().flat_map(|of_run| (of_run..2 * run).step_by(2).map(key)).collect();
        let launch = Launch {
            k: 2,
            rank_tolerance: 0,
            blocks: None,
            split_by_warp: None,
            shuffle: Shuffle::NONE,
            descending: false,
        };
        let (found, _) = pass::<u64, u32, Packed, 64, VT>(seed, &keys, launch)
            .unwrap_or_else(|fault| panic!("ranks {first} and {}, seed {seed}: {fault}", first + 1));
        assert_eq!(found, common::sorted(keys), "ranks {first} and {}, seed {seed}", first + 1);
    }
}

/// The passes over the runs of three long segments, by few blocks: one pass for two of them, and two for the other. The
/// host merges segments of keys alone, or of 4-byte keys with 4-byte values, only if there are too many keys to be
/// divided.
fn check_segments<K: TestKey, V: Word, P: Payload<K::Bits, V, NT, VT>, const NT: usize, const VT: usize>() {
    let (run, most) = (NT * VT, MAX_RUNS as usize);
    let tolerance = if P::KEEPS_ORDER { 0 } else { ROW.small_rank_tolerance };
    let tile = merge_pass::tile_keys(run, VT, 8, tolerance) as usize;
    let offsets = [0, 3 * run + 7, (most + 5) * run, (most + 9) * run - 1];
    for blocks in [1, 2] {
        let seed = fresh_seed();
        let (descending, n) = (seed.is_multiple_of(2), offsets[3]);
        let at = || format!("{} in tiles of {NT} x {VT}, {blocks} blocks, seed {seed}", K::NAME);
        let coding = Coding::of::<K>(descending);
        let keys: Vec<K> = Keys::Any.random(n, seed);
        let mut runs: Vec<K::Bits> = keys.into_iter().map(|key| coding.encode(key.to_raw())).collect();
        let segments: Vec<_> = offsets.windows(2).map(|ends| ends[0]..ends[1]).collect();
        segments.iter().for_each(|segment| runs[segment.clone()].chunks_mut(run).for_each(<[_]>::sort));
        // A few more units than a pass has tiles. A block takes units of different segments in turn.
        let count = |keys: &Range<usize>| keys.len().div_ceil(tile) + 4;
        let units: Vec<usize> = (0..segments.iter().map(count).max().unwrap())
            .flat_map(|unit| segments.iter().filter(move |segment| unit < count(segment)).map(move |s| (unit, s)))
            .flat_map(|(unit, segment)| [segment.start, segment.end, unit])
            .collect();
        let (found, moved) = emulated(seed, |emulator| {
            let values: Vec<V> = (0..n as u64).map(V::from_register).collect();
            // Segments begin on either side, by their number of passes.
            let sides = [(); 2].map(|()| (emulator.buffer(&runs), emulator.buffer(&values)));
            let [at, scratch] = sides.map(|(keys, values)| elements_from(keys, values, 0));
            let (count, units) = (emulator.buffer(&[units.len() as u32 / 3]), emulator.buffer(&units));
            let lists = SegmentLists {
                firsts: std::ptr::null_mut(),
                longer: std::ptr::null_mut(),
                units: units.as_mut_ptr(),
                unit_count: count.as_mut_ptr(),
            };
            let shared_bytes = merge_segments::shared_bytes(size_of::<K>(), size_of::<V>(), run);
            for pass in 0..2 {
                // SAFETY: both sides have `n` elements, and the units are of segments inside of them, with sorted runs.
                // The launch has blocks of `NT` threads, with the shared memory of a tile.
                emulator.launch("merge_segments", blocks, NT as u32, shared_bytes, || unsafe {
                    merge_segments::<_, V, P, NT, VT>(at, scratch, lists, pass, run, coding)
                })?;
            }
            let moved: Vec<u64> = emulator.read(sides[0].1)?.into_iter().map(V::to_register).collect();
            Ok((store::<K>(emulator, sides[0].0)?, moved))
        });
        let mut expected: Vec<usize> = (0..n).collect();
        segments.into_iter().for_each(|segment| expected[segment].sort_by_key(|&i| runs[i]));
        assert_moved::<K, V>((&found, &moved), &expected, |i| coding.decode(runs[i]), &at);
    }
}

#[test]
fn a_block_merges_tiles_of_several_segments() {
    check_segments::<f32, (), Nothing, 64, 5>();
    check_segments::<i64, (), Nothing, 64, 5>();
    check_segments::<u32, u32, Beside, 64, 5>();
    check_segments::<i32, u64, Packed, 64, 3>();
}

/// A warp that finds the splits of several tiles begins each search at the result of the last one.
#[test]
fn splits_of_long_runs_are_the_same_however_many_a_warp_finds() {
    let seed = fresh_seed();
    let mut random = StdRng::seed_from_u64(seed);
    // Without equal keys, each tile has exactly one split.
    let mut keys: Vec<u32> = (0..5000).collect();
    rand::seq::SliceRandom::shuffle(&mut keys[..], &mut random);
    let mut starts = vec![0, 1, 900, 1000, 4000];
    starts.resize(MAX_RUNS as usize + 1, keys.len());
    starts.windows(2).for_each(|run| keys[run[0]..run[1]].sort());
    let tile_keys = 96;
    let (n, runs) = (keys.len(), MAX_RUNS as usize);
    let tiles = n / tile_keys as usize + 1;
    let splits = |per_warp: u32| {
        emulated(seed, |emulator| {
            let (from, starts) = (emulator.buffer(&keys), emulator.buffer(&starts));
            // Four runs follow the first one; keys are in no order, and not divided.
            let order = emulator.buffer(&[4u32, 0, 1, 0]);
            let splits = emulator.uninit::<u32>(tiles * words_of_tile(MAX_RUNS));
            let blocks = tiles.div_ceil(2 * per_warp as usize) as u32;
            let offsets = starts.as_ptr();
            let merged = [1, runs];
            let runs =
                OffsetRuns { offsets, count: runs, merged, n, groups: 1, k: MAX_RUNS, tile_keys, rank_tolerance: 0 };
            // SAFETY: `from` has `n` keys, `starts` has `MAX_RUNS + 1` indices, and `splits` has `words_of_tile` words
            // per tile. The launch has one warp per `per_warp` tiles, rounded up to whole blocks.
            emulator.launch("split_many_runs", blocks, 64, 0, || unsafe {
                split_many_runs(from.as_ptr(), runs, Coding::NONE, splits.as_mut_ptr(), per_warp, order.as_mut_ptr())
            })?;
            let mut words = emulator.read(splits)?;
            // The group of each tile, behind the splits, is the only one.
            assert!(words.drain(tiles * MAX_RUNS as usize..).all(|group| group == 0), "seed {seed}");
            Ok(words)
        })
    };
    let expected = splits(1);
    for (t, splits) in expected.chunks(MAX_RUNS as usize).enumerate() {
        assert_eq!(splits.iter().sum::<u32>(), t as u32 * tile_keys, "tile {t}, seed {seed}");
    }
    for per_warp in [2, 3, tiles as u32] {
        assert_eq!(splits(per_warp), expected, "{per_warp} a warp, seed {seed}");
    }
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
        // On average, one run of all stays in place.
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
