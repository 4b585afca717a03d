//! The input that provokes bank conflicts: a model of shared memory counts them and compares with random keys.

#[path = "../../tests/src/bank_conflicts.rs"]
mod bank_conflicts;

use bank_conflicts::{conflicting, keys_across, pairs};
use kernels_gpu::kernels::sort::merge_pass::runs_in_tiles;
use kernels_gpu::kernels::sort::runs::{Division, Passes};
use kernels_gpu::tuning::{ROW, Tile};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

/// Reads by warps, and the wavefronts that serve them.
#[derive(Clone, Copy, Default)]
struct Count {
    reads: usize,
    wavefronts: usize,
}

impl Count {
    fn per_read(self) -> f64 {
        self.wavefronts as f64 / self.reads as f64
    }

    fn add(&mut self, other: Self) {
        self.reads += other.reads;
        self.wavefronts += other.wavefronts;
    }

    /// Counts the reads of threads in lockstep. `threads` has the slots that each thread reads, in order.
    fn of(threads: &[Vec<usize>], across: usize) -> Self {
        let mut count = Self::default();
        // The number of lanes that one wavefront can serve.
        for lanes in threads.chunks(across) {
            for step in 0..lanes[0].len() {
                let mut slots: Vec<usize> = lanes.iter().map(|lane| lane[step]).collect();
                slots.sort();
                slots.dedup();
                let mut of_bank = vec![0; across];
                slots.iter().for_each(|slot| of_bank[slot % across] += 1);
                count.reads += 1;
                count.wavefronts += of_bank.into_iter().max().unwrap();
            }
        }
        count
    }
}

/// The slots that a thread reads in `tile::merge_to_registers` after the diagonal search, and the keys that it merges.
/// `runs` has the keys of the list, which begins at slot `begin`.
fn merge(runs: &[u32], begin: usize, a_count: usize, diagonal: usize, values: usize) -> (Vec<usize>, Vec<u32>) {
    let (a_keys, b_keys) = runs.split_at(a_count);
    let low = diagonal.saturating_sub(b_keys.len());
    let taken = (low..diagonal.min(a_count)).find(|&i| a_keys[i] > b_keys[b_keys.len() + i - diagonal]);
    let mut a = taken.unwrap_or(diagonal.min(a_count));
    let reach = runs.len() - 1 - diagonal;
    let mut slots = vec![a, a + reach];
    let (mut key, mut of_a, mut other) = (runs[a], true, runs[a + reach]);
    let mut keys = vec![];
    for i in 0..values {
        keys.push(key.min(other));
        if i + 1 < values {
            let take_a = (key <= other) == of_a;
            other = key.max(other);
            a += usize::from(take_a);
            slots.push(if take_a { a } else { a + reach - i - 1 });
            key = runs[*slots.last().unwrap()];
            of_a = take_a;
        }
    }
    (slots.iter().map(|slot| begin + slot).collect(), keys)
}

/// Merges a tile's segments by rounds. Returns the count of each round, and the merged keys.
fn rounds(segments: Vec<Vec<u32>>, values: usize, across: usize) -> (Vec<Count>, Vec<u32>) {
    let segments: Vec<Vec<u32>> = segments.into_iter().filter(|segment| !segment.is_empty()).collect();
    let lengths: Vec<usize> = segments.iter().map(Vec::len).collect();
    let begins = pairs(&lengths, values);
    let slot = |segment: usize| begins[(segment / 2).min(begins.len() - 1)];
    let (mut lists, mut counts) = (segments, Vec::new());
    let mut of_list = 1;
    while lists.len() > 1 {
        of_list *= 2;
        let (mut reads, mut merged) = (Vec::new(), Vec::new());
        for (i, list) in lists.chunks(2).enumerate() {
            let (begin, end) = (slot(i * of_list), slot((i + 1) * of_list));
            let real = |list: &Vec<u32>| list.iter().filter(|&&key| key < u32::MAX).count();
            // A in order, B reversed, and padding between the two.
            let mut runs = vec![u32::MAX; end - begin];
            let (a, b) = (&list[0], list.get(1));
            runs[..real(a)].copy_from_slice(&a[..real(a)]);
            for (j, &key) in b.into_iter().flatten().enumerate().filter(|(_, key)| **key < u32::MAX) {
                runs[end - begin - 1 - j] = key;
            }
            let mut keys = vec![];
            for diagonal in (0..end - begin).step_by(values) {
                let (slots, part) = merge(&runs, begin, real(a), diagonal, values);
                reads.push(slots);
                keys.extend(part);
            }
            merged.push(keys);
        }
        counts.push(Count::of(&reads, across));
        lists = merged;
    }
    let mut keys = lists.swap_remove(0);
    keys.retain(|&key| key < u32::MAX);
    (counts, keys)
}

/// The counts of the first phase's rounds in a tile.
fn of_block(tile: &[u32], shape: Tile, across: usize) -> Vec<Count> {
    let thread = |t: usize| {
        let mut keys: Vec<u32> = tile.iter().skip(t).step_by(shape.threads).copied().collect();
        keys.sort();
        keys
    };
    let (counts, merged) = rounds((0..shape.threads).map(thread).collect(), shape.items_per_thread, across);
    assert!(merged.is_sorted() && merged.len() == tile.len());
    counts
}

/// The counts of a pass's rounds over runs of `run` keys, for each tile. Sorts the runs first.
fn of_pass(keys: &mut [u32], run: usize, k: u32, shape: Tile, across: usize) -> Vec<Vec<Count>> {
    let runs = runs_in_tiles(keys.len(), run, k, shape, ROW.rank_tolerance);
    keys.chunks_mut(run).for_each(<[u32]>::sort);
    let of_tile = |t: usize| {
        let tile = runs.tile(t);
        let group = &keys[tile.group..][..tile.length];
        let mut merged = group.to_vec();
        merged.sort();
        let count = (tile.length - tile.rank).min(runs.tile_keys() as usize);
        let tile_keys = &merged[tile.rank..][..count];
        let (first, last) = (tile_keys[0], tile_keys[count - 1]);
        let segments =
            group.chunks(run).map(|run| run.iter().copied().filter(|&key| first <= key && key <= last).collect());
        let (counts, found) = rounds(segments.collect(), shape.items_per_thread, across);
        assert!(found == tile_keys);
        counts
    };
    (0..runs.tiles()).map(of_tile).collect()
}

fn random(n: usize) -> (Vec<u32>, u64) {
    let seed = rand::random();
    let mut keys: Vec<u32> = (0..n as u32).collect();
    keys.shuffle(&mut StdRng::seed_from_u64(seed));
    (keys, seed)
}

/// Wavefronts per read over all rounds, for `bad` and for random keys. Prints the figures of each round.
fn compare(what: &str, bad: &[Vec<Count>], random: &[Vec<Count>]) -> (f64, f64) {
    let total = |counts: &[Vec<Count>], round: Option<usize>| {
        let mut total = Count::default();
        counts.iter().flat_map(|counts| counts.iter().enumerate()).for_each(|(i, &count)| {
            if round.is_none_or(|round| round == i) {
                total.add(count);
            }
        });
        total.per_read()
    };
    for round in (0..bad[0].len()).map(Some).chain([None]) {
        println!("{what}, round {round:?}: {:.1}, random {:.1}", total(bad, round), total(random, round));
    }
    (total(bad, None), total(random, None))
}

/// The shapes of the first phase and of the passes, the size of a key, and two lower bounds. These are the least ratios
/// of wavefronts to the wavefronts of random keys, in the first phase and in the passes.
const SHAPES: [(Tile, Tile, usize, f64, f64); 4] = [
    (ROW.block_sort.of(4, 0), ROW.merge_runs.of(4, 0), 4, 5.0, 4.0),
    (ROW.block_sort.of(8, 0), ROW.merge_runs.of(8, 0), 8, 3.0, 2.5),
    // With few keys per thread, lanes begin at two or four banks instead of one; with five keys they hardly conflict.
    (ROW.block_sort_small.of(4, 0), ROW.merge_runs_small.of(4, 0), 4, 1.5, 1.05),
    (ROW.block_sort_small.of(8, 0), ROW.merge_runs_small.of(8, 0), 8, 1.8, 2.0),
];

#[test]
fn conflicts_of_the_first_phase() {
    for (block, runs, bytes, least, _) in SHAPES {
        let n = 2 * block.keys();
        let (others, seed) = random(n);
        let of = |keys: &[u32]| -> Vec<Vec<Count>> {
            keys.chunks(block.keys()).map(|tile| of_block(tile, block, keys_across(bytes))).collect()
        };
        let what = format!("{block:?}, {bytes} bytes");
        let (bad, usual) = compare(&what, &of(&conflicting(n, block, runs, bytes)), &of(&others));
        assert!(bad > least * usual, "{what}: {bad} for {usual}, seed {seed}");
    }
}

#[test]
fn conflicts_of_one_pass() {
    conflicts_of_passes(32);
}

#[test]
fn conflicts_of_two_passes() {
    conflicts_of_passes(48);
}

/// Checks the conflicts of all passes over `tiles` tiles.
fn conflicts_of_passes(tiles: usize) {
    for (block, runs, bytes, _, least) in SHAPES {
        let n = tiles * block.keys();
        let (mut others, seed) = random(n);
        let mut bad = conflicting(n, block, runs, bytes);
        let mut run = block.keys();
        for k in Passes::of(tiles) {
            let what = format!("pass of {k} runs, {runs:?}, {bytes} bytes");
            let of = |keys: &mut [u32]| of_pass(keys, run, k, runs, keys_across(bytes));
            let (found, usual) = compare(&what, &of(&mut bad), &of(&mut others));
            assert!(found > least * usual, "{what}: {found} for {usual}, seed {seed}");
            run *= k as usize;
        }
    }
}

#[test]
fn each_number_once_for_any_length() {
    let (block, runs) = (Tile { threads: 64, items_per_thread: 5 }, Tile { threads: 64, items_per_thread: 7 });
    for bytes in [4, 8] {
        for n in [0, 1, 2, 319, 320, 321, 640, 961, 320 * 16 + 3, 320 * 32, 320 * 33 + 1, 320 * 1025 + 77] {
            let mut keys = conflicting(n, block, runs, bytes);
            assert_eq!(keys, conflicting(n, block, runs, bytes), "not the same again, {n}");
            keys.sort();
            assert!(keys.iter().copied().eq(0..n as u32), "{n}");
        }
    }
}
