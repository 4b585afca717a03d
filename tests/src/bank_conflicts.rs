//! Input that makes the sort's merges in shared memory slow: it causes several times the bank conflicts of random keys.
//!
//! Shared memory has 32 banks of 4 bytes. Lanes of a warp that read from different banks are served at once, and lanes
//! that read from one bank are served in turn. With random keys, three or four lanes meet in some bank. For a merge
//! sort, keys can be ordered so that most lanes meet (Berney and Sitchinava, "Engineering worst-case inputs for
//! pairwise merge sort on GPUs", IPDPS 2020):
//!
//! ```text
//!   a merge of two runs, 33 keys a thread           A, first to last      B, last to first
//!   first half    each thread takes 32 A, 1 B       slots 0 , 32, 64, …   all over
//!   second half   each thread takes 32 B, 1 A       all over              end, end - 32, end - 64, …
//! ```
//!
//! So in every step except one, the lanes of a warp in one half read slots that are multiples of 32 apart: one bank. In
//! the first rounds, a warp has both halves of several merges, and about half of its lanes meet. The merge path is also
//! far from the middle, so that the co-rank searches of threads take more steps. Threads with fewer than 32 keys cannot
//! all begin at one bank: with 9 keys, they begin at four banks.
//!
//! The input is computed from the output backwards, from the last pass to the first round of the first phase. Each
//! merge is undone so that it takes this path.

use kernels_gpu::kernels::sort::merge_pass::runs_in_tiles;
use kernels_gpu::kernels::sort::runs::{Division, MAX_RUNS, Passes};
use kernels_gpu::tuning::{ROW, Tile};

/// The number of adjacent keys of `bytes` bytes, 4 or 8, that fill all banks once. It is also the number of lanes that
/// read at once.
const fn keys_across(bytes: usize) -> usize {
    128 / bytes
}

/// The numbers from 0 to `n - 1`, in an order with many bank conflicts in every round and pass of a sort. The sort has
/// keys of `bytes` bytes, 4 or 8, and tiles of these shapes. A partial last tile causes fewer conflicts.
///
/// The numbers are the keys themselves, of 4 or of 8 bytes. Other keys have to be in the same order. `n` is below 2^32.
pub fn conflicting(n: usize, block: Tile, runs: Tile, bytes: usize) -> Vec<u32> {
    let mut keys: Vec<u32> = (0..n as u32).collect();
    let across = keys_across(bytes);

    // The lengths of runs before each pass.
    let mut run = block.keys();
    let passes: Vec<(usize, u32)> = Passes::of(n.div_ceil(block.keys()))
        .map(|k| {
            let before = run;
            run *= k as usize;
            (before, k)
        })
        .collect();
    for (run, k) in passes.into_iter().rev() {
        keys = before_pass(&keys, run, k, runs, across);
    }

    // Each tile is treated as full, and the keys beyond a partial tile are dropped.
    let lengths = vec![block.items_per_thread; block.threads];
    for tile in keys.chunks_mut(block.keys()) {
        let full: Vec<u32> = (0..block.keys() as u32).collect();
        let threads = segments(&full, &lengths, block.items_per_thread, across);
        // Key i of a thread is stored `block.threads` slots after its key i - 1.
        let slots = (0..block.keys()).map(|at| threads[at % block.threads][at / block.threads] as usize);
        let sorted = tile.to_vec();
        let present = slots.filter(|&slot| slot < sorted.len());
        tile.iter_mut().zip(present).for_each(|(key, slot)| *key = sorted[slot]);
    }
    keys
}

/// The runs of `run` keys each before a pass that merges `k` runs at a time into `merged`.
fn before_pass(merged: &[u32], run: usize, k: u32, shape: Tile, across: usize) -> Vec<u32> {
    let runs = runs_in_tiles(merged.len(), run, k, shape, ROW.rank_tolerance);
    let mut keys = vec![0; merged.len()];
    let mut taken = [0; MAX_RUNS as usize];
    for t in 0..runs.tiles() {
        let tile = runs.tile(t);
        if tile.rank == 0 {
            taken.fill(0);
        }
        let left: Vec<usize> = (0..k).map(|i| runs.length_of(tile, i) as usize - taken[i as usize]).collect();
        let count = (tile.length - tile.rank).min(runs.tile_keys() as usize);
        let lengths = shares(count, &left);
        let segments = segments(&merged[tile.group + tile.rank..][..count], &lengths, shape.items_per_thread, across);
        let present = (0..k as usize).filter(|&i| lengths[i] > 0);
        for (i, segment) in present.zip(segments) {
            keys[tile.group + i * run + taken[i]..][..segment.len()].copy_from_slice(&segment);
            taken[i] += segment.len();
        }
    }
    keys
}

/// `count`, divided as evenly as possible in proportion to `left`.
fn shares(count: usize, left: &[usize]) -> Vec<usize> {
    let all: usize = left.iter().sum();
    let mut shares: Vec<usize> =
        left.iter().map(|&left| (left as u128 * count as u128 / all as u128) as usize).collect();
    let mut rest = count - shares.iter().sum::<usize>();
    for (share, &left) in shares.iter_mut().zip(left) {
        let more = usize::from(rest > 0 && *share < left);
        *share += more;
        rest -= more;
    }
    shares
}

/// The slots at which pairs of segments of these lengths begin in a tile, and the end of the last pair. A pair takes a
/// multiple of `values` slots.
fn pairs(lengths: &[usize], values: usize) -> Vec<usize> {
    let slots = lengths.chunks(2).map(|pair| pair.iter().sum::<usize>().next_multiple_of(values));
    std::iter::once(0)
        .chain(slots.scan(0, |end, slots| {
            Some({
                *end += slots;
                *end
            })
        }))
        .collect()
}

/// Undoes the merge of a tile's segments of these lengths, with `values` keys for each thread. Empty segments are
/// dropped.
fn segments(merged: &[u32], lengths: &[usize], values: usize, across: usize) -> Vec<Vec<u32>> {
    let lengths: Vec<usize> = lengths.iter().copied().filter(|&length| length > 0).collect();
    let begins = pairs(&lengths, values);
    let rounds = lengths.len().next_power_of_two().trailing_zeros();
    // Lists of 2, 4, 8 … segments, from the last round to the first.
    let mut lists = vec![merged.to_vec()];
    for round in (0..rounds).rev() {
        let halves = lists.into_iter().enumerate().flat_map(|(list, keys)| {
            let first = list << (round + 1);
            let a_lengths = lengths.iter().skip(first).take(1 << round);
            let begin = begins.get(first / 2).copied().unwrap_or(0);
            before_merge(&keys, begin, a_lengths.sum(), values, across)
        });
        lists = halves.collect();
    }
    lists.truncate(lengths.len());
    lists
}

/// Undoes the merge of two runs that begin at slot `begin`. A has `a_count` keys, and each thread merges `values` keys.
fn before_merge(merged: &[u32], begin: usize, a_count: usize, values: usize, across: usize) -> [Vec<u32>; 2] {
    let mut sides = Sides { merged, left: [a_count, merged.len() - a_count], keys: [Vec::new(), Vec::new()] };
    // The keys that a thread takes from one side, so that the next thread begins there at the same bank, or as near to
    // it as possible.
    let most = if values < across { 1 << values.ilog2() } else { values / across * across };
    let few = values - most;
    // The first `a_threads` threads take most of their keys from A.
    let threads = merged.len().div_ceil(values);
    let a_threads = (a_count.saturating_sub(threads * few)) / (most - few);
    for thread in 0..threads {
        if thread < a_threads {
            // The merges of other lists begin at other banks. This thread first takes keys from B, so that its reads of
            // A reach the bank of the other lists' threads in the same step.
            let wait = (begin + sides.keys[0].len()) % most.min(across);
            sides.take(1, wait);
            sides.take(0, most - wait);
            sides.take(1, few);
        } else {
            sides.take(1, most);
            sides.take(0, few);
        }
    }
    sides.keys
}

/// Merged keys that are returned to A and to B.
struct Sides<'a> {
    merged: &'a [u32],
    /// The number of keys that A and B still lack.
    left: [usize; 2],
    keys: [Vec<u32>; 2],
}

impl Sides<'_> {
    /// Gives the next `count` keys to a side, or to the other side when this one is complete.
    fn take(&mut self, side: usize, count: usize) {
        let first = count.min(self.left[side]);
        for (side, count) in [(side, first), (1 - side, (count - first).min(self.left[1 - side]))] {
            let (keys, rest) = self.merged.split_at(count);
            self.keys[side].extend_from_slice(keys);
            (self.merged, self.left[side]) = (rest, self.left[side] - count);
        }
    }
}
